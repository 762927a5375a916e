/* Functions of f32 as polynomials: within 2 ulp, specials right, no tables, no branches, so that compilers vectorise a loop over
 * them. The cpu plugin and the kernel compiler use the same formulas, so that devices agree. Coefficients: fit_poly.py.
 *
 * To be compiled without -ffast-math; FNX_POLY is the prefix of each function (static inline by default). */
#ifndef FORNAX_KERNEL_POLY_H
#define FORNAX_KERNEL_POLY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef FNX_POLY
#define FNX_POLY static inline
#endif

FNX_POLY float fnx_poly_float(int32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

FNX_POLY int32_t fnx_poly_bits(float f) {
    int32_t i;
    memcpy(&i, &f, sizeof i);
    return i;
}

/* n = round(x / ln 2), r = x - n ln 2 in two pieces (Cody and Waite), e^x = 2^n e^r; 2^n in two factors, for subnormal results. */
FNX_POLY float fnx_poly_exp(float x) {
    float c = x > 89.f ? 89.f : x;
    c = c < -104.f ? -104.f : c;
    float t = c * 1.44269504f + 12582912.f, n = t - 12582912.f;
    int32_t k = fnx_poly_bits(t) - 0x4b400000;
    float r = c - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    float q = 0.001381446706f;
    q = q * r + 0.008368780411f;
    q = q * r + 0.04166839421f;
    q = q * r + 0.1666652011f;
    q = q * r + 0.4999999341f;
    float p = q * (r * r) + r + 1.f;
    int32_t half = k >> 1; /* of a NaN these are any bits, and p is NaN */
    float low = fnx_poly_float((int32_t)((uint32_t)(half + 127) << 23));
    float high = fnx_poly_float((int32_t)((uint32_t)(k - half + 127) << 23));
    return p * low * high;
}

/* x = 2^e m, m in [1/sqrt 2, sqrt 2): log x = e ln 2 + log m. */
FNX_POLY float fnx_poly_log(float x) {
    float small = x < 1.17549435e-38f ? 8388608.f : 1.f; /* subnormal: 2^23 times as large */
    int32_t bits = (int32_t)((uint32_t)fnx_poly_bits(x * small) - 0x3f3504f3u); /* any bits where x is no positive number */
    float e = (float)(bits >> 23) - (x < 1.17549435e-38f ? 23.f : 0.f);
    float f = fnx_poly_float((bits & 0x007fffff) + 0x3f3504f3) - 1.f;
    float p = 0.06746651523f;
    p = p * f - 0.1167565457f;
    p = p * f + 0.1188815885f;
    p = p * f - 0.1240558824f;
    p = p * f + 0.1421955273f;
    p = p * f - 0.166679959f;
    p = p * f + 0.2000211864f;
    p = p * f - 0.250000096f;
    p = p * f + 0.333333126f;
    float z = f * f, y = f * z * p + e * 1.42860677e-6f;
    y = y - 0.5f * z + f + e * 0.693145752f;
    y = x == INFINITY ? x : y;
    y = x > 0.f ? y : x == 0.f ? -INFINITY : NAN;
    return x != x ? x : y;
}

FNX_POLY float fnx_poly_tanh(float x) {
    float a = fabsf(x), z = x * x;
    float p = -0.005717045483f;
    p = p * z + 0.0206505877f;
    p = p * z - 0.05374349821f;
    p = p * z + 0.1333149129f;
    p = p * z - 0.3333328393f;
    float large = 1.f - 2.f / (fnx_poly_exp(2.f * (a > 20.f ? 20.f : a)) + 1.f);
    float y = a < 0.625f ? a * z * p + a : large;
    return x != x ? x : copysignf(y, x);
}

FNX_POLY float fnx_poly_sigmoid(float x) {
    float e = fnx_poly_exp(-fabsf(x)); /* e <= 1: nothing overflows */
    float y = (x < 0.f ? e : 1.f) / (1.f + e);
    return x != x ? x : y;
}

FNX_POLY float fnx_poly_erf(float x) {
    float a = fabsf(x), z = x * x;
    float p = 7.889123246e-5f;
    p = p * z - 0.0008020842332f;
    p = p * z + 0.005189535449f;
    p = p * z - 0.02685444464f;
    p = p * z + 0.1128360018f;
    p = p * z - 0.3761262714f;
    p = p * z + 0.1283791659f;
    float c = a > 4.f ? 4.f : a;
    float q = 3.850748708e-6f;
    q = q * c - 3.214220743e-5f;
    q = q * c - 0.0001191340912f;
    q = q * c + 0.003125577501f;
    q = q * c - 0.02299625464f;
    q = q * c + 0.1055743173f;
    q = q * c + 0.6354613529f;
    q = q * c + 1.128587942f;
    float large = 1.f - fnx_poly_exp(-c * q);
    float y = a < 1.f ? a * p + a : large;
    return x != x ? x : copysignf(y, x);
}

#endif
