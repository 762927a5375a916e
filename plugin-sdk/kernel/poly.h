/* Functions of f32 as polynomials: within 2 ulp, specials right, no tables, no branches, so that compilers vectorise a
 * loop over them. The cpu plugin and the kernel compiler use the same text, so that devices agree: what follows the
 * mark below is C, CUDA C++ and GLSL at once; what differs between them is in the macros. Coefficients: fit_poly.py.
 *
 * To be compiled without -ffast-math. */
#ifndef FORNAX_KERNEL_POLY_H
#define FORNAX_KERNEL_POLY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float poly_float(int32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline int32_t poly_bits(float f) {
    int32_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

#define POLY_FUNCTION static inline
#define POLY_REAL float /* of what must not be simplified */
#define POLY_INT(x) ((int32_t)(x))
#define POLY_UINT(x) ((uint32_t)(x))
#define POLY_FLOAT(x) ((float)(x))
#define POLY_ABS fabsf
#define POLY_COPYSIGN copysignf
#define POLY_IS_NAN(x) ((x) != (x))
#define POLY_INF INFINITY
#define POLY_NAN NAN

/* ---- the shared text: up to the next mark ------------------------------------------------------------------------ */

/* n = round(x / ln 2), r = x - n ln 2 in two pieces (Cody and Waite), e^x = 2^n e^r; 2^n in two factors, so that
 * results may be subnormal. */
POLY_FUNCTION float fnx_poly_exp(float x) {
    POLY_REAL c = x > 89.f ? 89.f : x;
    c = c < -104.f ? -104.f : c;
    POLY_REAL t = c * 1.44269504f + 12582912.f, n = t - 12582912.f;
    int k = poly_bits(t) - 0x4b400000;
    POLY_REAL r = c - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    POLY_REAL q = 0.001381446706f;
    q = q * r + 0.008368780411f;
    q = q * r + 0.04166839421f;
    q = q * r + 0.1666652011f;
    q = q * r + 0.4999999341f;
    POLY_REAL p = q * (r * r) + r + 1.f;
    int h = k >> 1; /* of a NaN these are any bits, and p is NaN */
    POLY_REAL low = poly_float(POLY_INT(POLY_UINT(h + 127) << 23));
    POLY_REAL high = poly_float(POLY_INT(POLY_UINT(k - h + 127) << 23));
    return p * low * high;
}

/* x = 2^e m, m in [1/sqrt 2, sqrt 2): log x = e ln 2 + log m. */
POLY_FUNCTION float fnx_poly_log(float x) {
    POLY_REAL small = x < 1.17549435e-38f ? 8388608.f : 1.f;            /* subnormal: 2^23 times as large */
    int bits = POLY_INT(POLY_UINT(poly_bits(x * small)) - 0x3f3504f3u); /* any bits where x is no positive number */
    POLY_REAL e = POLY_FLOAT(bits >> 23) - (x < 1.17549435e-38f ? 23.f : 0.f);
    POLY_REAL f = poly_float((bits & 0x007fffff) + 0x3f3504f3) - 1.f;
    POLY_REAL p = 0.06746651523f;
    p = p * f - 0.1167565457f;
    p = p * f + 0.1188815885f;
    p = p * f - 0.1240558824f;
    p = p * f + 0.1421955273f;
    p = p * f - 0.166679959f;
    p = p * f + 0.2000211864f;
    p = p * f - 0.250000096f;
    p = p * f + 0.333333126f;
    POLY_REAL z = f * f, y = f * z * p + e * 1.42860677e-6f;
    y = y - 0.5f * z + f + e * 0.693145752f;
    y = x == POLY_INF ? x : y;
    y = x > 0.f ? y : x == 0.f ? -POLY_INF : POLY_NAN;
    return POLY_IS_NAN(x) ? x : y;
}

POLY_FUNCTION float fnx_poly_tanh(float x) {
    POLY_REAL a = POLY_ABS(x), z = x * x;
    POLY_REAL p = -0.005717045483f;
    p = p * z + 0.0206505877f;
    p = p * z - 0.05374349821f;
    p = p * z + 0.1333149129f;
    p = p * z - 0.3333328393f;
    POLY_REAL large = 1.f - 2.f / (fnx_poly_exp(2.f * (a > 20.f ? 20.f : a)) + 1.f);
    POLY_REAL y = a < 0.625f ? a * z * p + a : large;
    return POLY_IS_NAN(x) ? x : POLY_COPYSIGN(y, x);
}

POLY_FUNCTION float fnx_poly_sigmoid(float x) {
    POLY_REAL e = fnx_poly_exp(-POLY_ABS(x)); /* e <= 1: nothing overflows */
    POLY_REAL y = (x < 0.f ? e : 1.f) / (1.f + e);
    return POLY_IS_NAN(x) ? x : y;
}

POLY_FUNCTION float fnx_poly_erf(float x) {
    POLY_REAL a = POLY_ABS(x), z = x * x;
    POLY_REAL p = 7.889123246e-5f;
    p = p * z - 0.0008020842332f;
    p = p * z + 0.005189535449f;
    p = p * z - 0.02685444464f;
    p = p * z + 0.1128360018f;
    p = p * z - 0.3761262714f;
    p = p * z + 0.1283791659f;
    POLY_REAL c = a > 4.f ? 4.f : a;
    POLY_REAL q = 3.850748708e-6f;
    q = q * c - 3.214220743e-5f;
    q = q * c - 0.0001191340912f;
    q = q * c + 0.003125577501f;
    q = q * c - 0.02299625464f;
    q = q * c + 0.1055743173f;
    q = q * c + 0.6354613529f;
    q = q * c + 1.128587942f;
    POLY_REAL large = 1.f - fnx_poly_exp(-c * q);
    POLY_REAL y = a < 1.f ? a * p + a : large;
    return POLY_IS_NAN(x) ? x : POLY_COPYSIGN(y, x);
}

/* ---- the end of it ----------------------------------------------------------------------------------------------- */

#endif
