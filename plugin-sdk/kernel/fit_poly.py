#!/usr/bin/env python3
"""Fits the polynomials of poly.h and poly64.h: near-minimax in relative error, by Remez exchange in high precision.

Prints C. Needs mpmath. Run by hand when a fit is to change; the headers keep the result.
"""
import mpmath as mp

mp.mp.dps = 60


def remez(f, weight, lo, hi, degree, rounds=12):
    """Coefficients c (lowest first) such that weight(x) * (f(x) - sum c[k] x^k) has equal ripples on [lo, hi]."""
    n = degree + 2
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (n - 1 - i) / (n - 1)) for i in range(n)]
    for _ in range(rounds):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, x in enumerate(xs):
            for k in range(degree + 1):
                a[i, k] = x ** k
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        s = mp.lu_solve(a, b)
        c = [s[k] for k in range(degree + 1)]
        error = lambda x: weight(x) * (f(x) - mp.polyval(c[::-1], x))
        grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
        values = [error(x) for x in grid]
        peaks, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or mp.sign(values[i]) != mp.sign(values[start]):
                peaks.append(max(range(start, i), key=lambda j: abs(values[j])))
                start = i
        if len(peaks) < n:
            break
        while len(peaks) > n:
            peaks.pop(0 if abs(values[peaks[0]]) < abs(values[peaks[-1]]) else -1)
        xs = [grid[j] for j in peaks]
    return c, max(abs(v) for v in values)


def show(name, c, error):
    print(f"/* {name}: relative error {mp.nstr(error, 3)} */")
    print("    " + ", ".join(mp.nstr(x, 10) + "f" for x in c))


def show64(name, c, error):
    print(f"/* {name}, f64: relative error {mp.nstr(error, 3)} */")
    print("    " + ",\n    ".join(repr(float(x)) for x in c))


half_ln2 = mp.log(2) / 2 * mp.mpf("1.001")
# e^r = 1 + r + r^2 Q(r)
q = lambda r: mp.mpf(1) / 2 + r / 6 + r * r / 24 if abs(r) < 1e-8 else (mp.exp(r) - 1 - r) / r ** 2
show("exp", *remez(q, lambda r: r * r / mp.exp(r) if abs(r) > 1e-6 else mp.mpf("1e-12"), -half_ln2, half_ln2, 4))

# log(1 + f) = f - f^2 / 2 + f^3 P(f), 1 + f in [1/sqrt 2, sqrt 2]
lo, hi = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
p = lambda f: mp.mpf(1) / 3 - f / 4 + f * f / 5 if abs(f) < 1e-8 else (mp.log1p(f) - f + f * f / 2) / f ** 3
show("log", *remez(p, lambda f: abs(f ** 3 / mp.log1p(f)) if abs(f) > 1e-6 else mp.mpf("1e-12"), lo, hi, 8))

# tanh(x) = x + x z P(z), z = x^2, |x| <= 0.625
t = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > 1e-10 else -mp.mpf(1) / 3 + 2 * z / 15
show("tanh", *remez(t, lambda z: z + mp.mpf("1e-9"), mp.mpf(0), mp.mpf("0.390625"), 4))

# erf(x) = x + x P(z), z = x^2, |x| <= 1
e = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1 if z > 1e-20 else 2 / mp.sqrt(mp.pi) - 1
show("erf, small", *remez(e, lambda z: mp.mpf(1), mp.mpf(0), mp.mpf(1), 6))

# erf(x) = 1 - e^(-x P(x)), 1 <= x <= 4: P = -log(erfc(x)) / x
g = lambda x: -mp.log(mp.erfc(x)) / x
show("erf, large", *remez(g, lambda x: x * mp.erfc(x), mp.mpf("0.98"), mp.mpf(4), 7))

# ---- poly64.h ----

# e^r = 1 + r + r^2 Q(r)
q = lambda r: sum(r ** k / mp.factorial(k + 2) for k in range(5)) if abs(r) < 1e-10 else (mp.exp(r) - 1 - r) / r ** 2
show64("exp", *remez(q, lambda r: r * r / mp.exp(r) if abs(r) > 1e-12 else mp.mpf("1e-24"), -half_ln2, half_ln2, 9))

# 2 atanh(s) = 2 s + s z P(z), and for log in two pieces 2 s + s z (2 / 3 + z P(z)); z = s^2, s = f / (2 + f)
top = (hi / (2 + hi)) ** 2 * mp.mpf("1.0001")
atanh = lambda z, n: sum(2 * z ** k / (2 * (k + n) + 1) for k in range(40))
show64("log", *remez(lambda z: atanh(z, 1), lambda z: z + mp.mpf("1e-12"), mp.mpf(0), top, 6))
show64("log in two pieces", *remez(lambda z: atanh(z, 2), lambda z: z * z + mp.mpf("1e-20"), mp.mpf(0), top, 7))

# tanh(x) = x + x z P(z), |x| <= 0.55
show64("tanh", *remez(t, lambda z: z + mp.mpf("1e-12"), mp.mpf(0), mp.mpf("0.3025"), 10))

# erf(x) = x + x P(z), |x| <= 1; erf(x) = 1 - e^(-x P(x)), 1 <= x <= 6
show64("erf, small", *remez(e, lambda z: mp.mpf(1), mp.mpf(0), mp.mpf(1), 11))
show64("erf, large", *remez(g, lambda x: x * mp.erfc(x), mp.mpf("0.99"), mp.mpf(6), 17))

# sin(x) = x + x z P(z), cos(x) = 1 - z / 2 + z^2 P(z), |x| <= 1.01 pi / 4
top = (mp.pi / 4 * mp.mpf("1.01")) ** 2
sine = lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > 1e-12 else z / 120 - mp.mpf(1) / 6
cosine = lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z ** 2 if z > 1e-8 else mp.mpf(1) / 24 - z / 720
show64("sin", *remez(sine, lambda z: z + mp.mpf("1e-12"), mp.mpf(0), top, 5))
show64("cos", *remez(cosine, lambda z: z * z + mp.mpf("1e-20"), mp.mpf(0), top, 5))
