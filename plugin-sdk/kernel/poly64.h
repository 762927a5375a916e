/* Functions of f64 as polynomials, and pow of f32: within 2 ulp, specials as C has them, no tables. For languages that
 * have no such functions of doubles: what follows the mark below is C and GLSL at once, as in poly.h; poly_text.awk
 * gives constants GLSL's suffix, and what else differs is in the macros. Coefficients: fit_poly.py.
 *
 * Nothing relies on a fused a * b + c: GLSL allows fma to round twice, and some drivers do. Exact products are made of
 * halves with few enough bits, so that results are the same either way.
 *
 * To be compiled without -ffast-math. */
#ifndef FORNAX_KERNEL_POLY64_H
#define FORNAX_KERNEL_POLY64_H

#include "poly.h"

#include <stdbool.h>

static inline double poly64_double(int64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static inline int64_t poly64_bits(double d) {
    int64_t i;
    memcpy(&i, &d, sizeof i);
    return i;
}

#define POLY64_REAL double /* of what must not be simplified */
#define POLY64_INT(x) ((int64_t)(x))
#define POLY64_UINT(x) ((uint64_t)(x))
#define POLY64_FLOAT(x) ((double)(x))
#define POLY64_ABS fabs
#define POLY64_FLOOR floor
#define POLY64_COPYSIGN copysign
#define POLY64_INF ((double)INFINITY)
#define POLY64_NAN ((double)NAN)

/* ---- the shared text: up to the next mark ------------------------------------------------------------------------ */

/* a b - p exactly but for a last bit, p = a b rounded (Dekker): the upper halves have 26 bits. */
POLY_FUNCTION double poly64_upper(double x) { return poly64_double(poly64_bits(x) & ~0x7ffffffl); }

POLY_FUNCTION double poly64_lost(double a, double b, double p) {
    POLY64_REAL a1 = poly64_upper(a), a2 = a - a1, b1 = poly64_upper(b), b2 = b - b1;
    POLY64_REAL rest = a1 * b1 - p + a1 * b2 + a2 * b1 + a2 * b2;
    return rest;
}

/* e^(x + low), low tiny: n = round(x / ln 2), r = x - n ln 2 in two pieces (Cody and Waite), e^x = 2^n e^r; 2^n in two
 * factors, so that results may be subnormal. */
POLY_FUNCTION double poly64_exp(double x, double low) {
    POLY64_REAL c = x > 710.0 ? 710.0 : x;
    c = c < -746.0 ? -746.0 : c;
    POLY64_REAL t = c * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    int k = POLY_INT(poly64_bits(t) - 0x4338000000000000l);
    POLY64_REAL a = c - n * 0.6931471803691238, b = low - n * 1.9082149292705877e-10;
    POLY64_REAL r = a + b;
    POLY64_REAL q = 2.4999965359640575e-8;
    q = q * r + 2.7630378625210986e-7;
    q = q * r + 2.7557587342164025e-6;
    q = q * r + 2.480149276278181e-5;
    q = q * r + 0.00019841269504765384;
    q = q * r + 0.0013888888943922656;
    q = q * r + 0.008333333333495624;
    q = q * r + 0.04166666666652919;
    q = q * r + 0.1666666666666641;
    q = q * r + 0.5000000000000011;
    POLY64_REAL s = 1.0 + r, rest = a - r + b;
    POLY64_REAL p = 1.0 - s + r + (rest + q * (r * r)) + s;
    int h = k >> 1; /* of a NaN these are any bits, and p is NaN */
    POLY64_REAL first = poly64_double(POLY64_INT(POLY64_UINT(h + 1023) << 52));
    POLY64_REAL second = poly64_double(POLY64_INT(POLY64_UINT(k - h + 1023) << 52));
    POLY64_REAL y = p * first * second;
    return y;
}

POLY_FUNCTION double fnx_poly64_exp(double x) { return poly64_exp(x, 0.0); }

/* x = 2^e m, m in [1/sqrt 2, sqrt 2): the bits above the 52nd are e, as a signed number; those below, added to those of
 * 1/sqrt 2, are m. Subnormal numbers are made 2^54 times as large. Any bits where x is no positive number. */
POLY_FUNCTION int64_t poly64_split(double x) {
    POLY64_REAL large = x * (x < 2.2250738585072014e-308 ? 18014398509481984.0 : 1.0);
    return POLY64_INT(POLY64_UINT(poly64_bits(large)) - 0x3fe6a09e667f3bcdul);
}

POLY_FUNCTION double poly64_exponent(double x, int64_t split) {
    return POLY64_FLOAT(POLY_INT(split >> 52)) - (x < 2.2250738585072014e-308 ? 54.0 : 0.0);
}

POLY_FUNCTION double poly64_mantissa(int64_t split) {
    return poly64_double((split & 0x000fffffffffffffl) + 0x3fe6a09e667f3bcdl);
}

/* log x = e ln 2 + log m; with f = m - 1 and s = f / (2 + f), log m = 2 atanh s = f - (f^2 / 2 - s (f^2 / 2 + s^2 P)),
 * as in fdlibm. */
POLY_FUNCTION double fnx_poly64_log(double x) {
    int64_t bits = poly64_split(x);
    POLY64_REAL e = poly64_exponent(x, bits), f = poly64_mantissa(bits) - 1.0;
    POLY64_REAL s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    POLY64_REAL p = 0.1479610555591778;
    p = p * z + 0.15314035814328336;
    p = p * z + 0.18183564867954574;
    p = p * z + 0.22222198563449297;
    p = p * z + 0.28571428742475385;
    p = p * z + 0.39999999999414315;
    p = p * z + 0.6666666666666734;
    POLY64_REAL y = e * 0.6931471803691238 - (h - (s * (h + z * p) + e * 1.9082149292705877e-10) - f);
    y = x == POLY64_INF ? x : y;
    y = x > 0.0 ? y : x == 0.0 ? -POLY64_INF : POLY64_NAN;
    return POLY_IS_NAN(x) ? x : y;
}

POLY_FUNCTION double fnx_poly64_tanh(double x) {
    POLY64_REAL a = POLY64_ABS(x), z = x * x;
    POLY64_REAL p = -1.9521026231654752e-5;
    p = p * z + 8.336006438628012e-5;
    p = p * z - 0.00023341272308734242;
    p = p * z + 0.0005884570460947775;
    p = p * z - 0.0014555459831218866;
    p = p * z + 0.0035920925323504748;
    p = p * z - 0.008863232652765085;
    p = p * z + 0.021869488389101577;
    p = p * z - 0.05396825396387855;
    p = p * z + 0.13333333333326833;
    p = p * z - 0.333333333333333;
    POLY64_REAL large = 1.0 - 2.0 / (fnx_poly64_exp(2.0 * (a > 20.0 ? 20.0 : a)) + 1.0);
    POLY64_REAL y = a < 0.55 ? a * z * p + a : large;
    return POLY_IS_NAN(x) ? x : POLY64_COPYSIGN(y, x);
}

POLY_FUNCTION double fnx_poly64_sigmoid(double x) {
    POLY64_REAL e = fnx_poly64_exp(-POLY64_ABS(x)); /* e <= 1: nothing overflows */
    POLY64_REAL d = 1.0 + e, d2 = 1.0 - d + e, y = (x < 0.0 ? e : 1.0) / d;
    y = y - y * (x < 0.0 ? 1.0 - y : y) * d2; /* what d lost, by 1 / d */
    return POLY_IS_NAN(x) ? x : y;
}

POLY_FUNCTION double fnx_poly64_erf(double x) {
    POLY64_REAL a = POLY64_ABS(x), z = x * x;
    POLY64_REAL p = -7.801191041049295e-10;
    p = p * z + 1.3722976230298362e-8;
    p = p * z - 1.6209175581526133e-7;
    p = p * z + 1.6447517585648827e-6;
    p = p * z - 1.4924744651197302e-5;
    p = p * z + 0.00012055295319577022;
    p = p * z - 0.0008548325989654836;
    p = p * z + 0.005223977607422316;
    p = p * z - 0.02686617064327604;
    p = p * z + 0.11283791670945252;
    p = p * z - 0.3761263890318355;
    p = p * z + 0.12837916709551256;
    POLY64_REAL c = a > 6.0 ? 6.0 : a;
    POLY64_REAL q = -1.5349687982427166e-12;
    q = q * c + 6.809325097744421e-11;
    q = q * c - 1.4144181930615668e-9;
    q = q * c + 1.8268034178530365e-8;
    q = q * c - 1.6410777757940073e-7;
    q = q * c + 1.084391521871626e-6;
    q = q * c - 5.4126782803307145e-6;
    q = q * c + 2.0444418404618656e-5;
    q = q * c - 5.6285986224074026e-5;
    q = q * c + 9.60054799744801e-5;
    q = q * c - 1.8330241073351237e-6;
    q = q * c - 0.0005735457792974398;
    q = q * c + 0.001691489954463848;
    q = q * c - 0.00021118473272408212;
    q = q * c - 0.019125439920276318;
    q = q * c + 0.10277101013355712;
    q = q * c + 0.6366202092148737;
    q = q * c + 1.1283791156489655;
    POLY64_REAL large = 1.0 - fnx_poly64_exp(-c * q);
    POLY64_REAL y = a < 1.0 ? a * p + a : large;
    return POLY_IS_NAN(x) ? x : POLY64_COPYSIGN(y, x);
}

/* sin and cos for |x| <= pi / 4 and a little more: whole quarters are the caller's to take off. */
POLY_FUNCTION double fnx_poly64_sin(double x) {
    POLY64_REAL z = x * x;
    POLY64_REAL p = 1.5893583550621383e-10;
    p = p * z - 2.5050704033063308e-8;
    p = p * z + 2.7557313355970392e-6;
    p = p * z - 0.00019841269828869992;
    p = p * z + 0.008333333333321286;
    p = p * z - 0.16666666666666627;
    POLY64_REAL y = x * z * p + x;
    return POLY64_COPYSIGN(y, x); /* of -0 */
}

POLY_FUNCTION double fnx_poly64_cos(double x) {
    POLY64_REAL z = x * x, h = 0.5 * z, w = 1.0 - h;
    POLY64_REAL p = -1.1357447862584098e-11;
    p = p * z + 2.087568186344175e-9;
    p = p * z - 2.7557314056452325e-7;
    p = p * z + 2.480158728849164e-5;
    p = p * z - 0.0013888888888872598;
    p = p * z + 0.04166666666666659;
    POLY64_REAL y = 1.0 - w - h + z * z * p + w;
    return y;
}

/* What pow is where that is not |x|^y, which is r if x is neither 0 nor infinite. */
POLY_FUNCTION double poly64_power(double x, double y, double r) {
    POLY64_REAL a = POLY64_ABS(x), v = r, w = 0.5 * y;
    bool whole = POLY64_FLOOR(y) == y, odd = whole && POLY64_FLOOR(w) != w;
    bool limit = a == 0.0 || a == POLY64_INF;
    v = limit ? ((a > 1.0) == (y > 0.0) ? POLY64_INF : 0.0) : v;
    v = poly64_bits(x) >= 0l ? v : odd ? -v : whole || limit ? v : POLY64_NAN;
    v = POLY_IS_NAN(x) || POLY_IS_NAN(y) ? x + y : v;
    return y == 0.0 || x == 1.0 ? 1.0 : v;
}

/* An exponent beyond 2^65 has no other powers than that has: no base is nearer to 1 than by 2^-53. */
POLY_FUNCTION double poly64_limited(double y) {
    POLY64_REAL c = y > 36893488147419103232.0 ? 36893488147419103232.0 : y;
    return c < -36893488147419103232.0 ? -36893488147419103232.0 : c;
}

/* e^(y log |x|), the logarithm as the sum of two numbers, good to 2^-64: log m = 2 s + s z (2 / 3 + z P), s and z also
 * such sums. Names that end in 2 are lower parts. */
POLY_FUNCTION double fnx_poly64_pow(double x, double y) {
    POLY64_REAL a = POLY64_ABS(x);
    int64_t bits = poly64_split(a);
    POLY64_REAL e = poly64_exponent(a, bits), m = poly64_mantissa(bits);
    POLY64_REAL f = m - 1.0, d = m + 1.0, d2 = m - (d - 1.0);
    POLY64_REAL s = f / d, g = s * d;
    POLY64_REAL s2 = (f - g - poly64_lost(s, d, g) - s * d2) / d;
    POLY64_REAL z = s * s, z2 = poly64_lost(s, s, z) + 2.0 * s * s2;
    POLY64_REAL p = 0.1198901193437381;
    p = p * z + 0.11674818665320418;
    p = p * z + 0.13336317410876583;
    p = p * z + 0.15384556871211466;
    p = p * z + 0.181818188703117;
    p = p * z + 0.22222222217536483;
    p = p * z + 0.2857142857144511;
    p = p * z + 0.3999999999999998;
    POLY64_REAL u = z * p, c = 0.6666666666666666 + u, c2 = 0.6666666666666666 - c + u + 3.700743415417188e-17;
    POLY64_REAL t = z * c, t2 = poly64_lost(z, c, t) + (z * c2 + z2 * c);
    POLY64_REAL w = s * t, w2 = poly64_lost(s, t, w) + (s * t2 + s2 * t);
    POLY64_REAL v = 2.0 * s + w, v2 = 2.0 * s - v + w + (2.0 * s2 + w2);
    POLY64_REAL n = e * 0.6931471803691238, h = n + v, h2 = n - h + v + (v2 + e * 1.9082149292705877e-10);
    POLY64_REAL l = h + h2, l2 = h - l + h2;
    POLY64_REAL b = poly64_limited(y), k = b * l, k2 = poly64_lost(b, l, k) + b * l2;
    return poly64_power(x, y, poly64_exp(k, POLY64_ABS(k) < 1000.0 ? k2 : 0.0));
}

POLY_FUNCTION float fnx_poly_pow(float x, float y) {
    POLY64_REAL a = POLY64_FLOAT(x), b = POLY64_FLOAT(y);
    POLY64_REAL r = fnx_poly64_exp(poly64_limited(b) * fnx_poly64_log(POLY64_ABS(a)));
    return POLY_FLOAT(poly64_power(a, b, r));
}

/* ---- the end of it ----------------------------------------------------------------------------------------------- */

#endif
