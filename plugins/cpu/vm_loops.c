/* Compiled three times, with the flags of each ISA level and VM_SUFFIX base, avx2, avx512. With -O3 -fno-math-errno
 * -fno-trapping-math, never -ffast-math: NaN must pass. */
#include "vm_loops.h"

#include "../../plugin-sdk/kernel/poly.h"

#include <fornax-plugin/ops.h>
#include <fornax-plugin/types.h>
#include <math.h>

typedef float f32;
typedef double f64;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint8_t boolean;

#define EACH(n) _Pragma("GCC ivdep") for (int64_t i = 0; i < (n); i++)
#define START(R, A, B) \
    R *d = d_; \
    const A *a = a_; \
    const B *b = b_; \
    (void)a, (void)b, (void)c_

/* ---- two operands ------------------------------------------------------------------------------------------------ */

#define BINARY_AS(name, T, R, F) \
    static void name##_vv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(R, T, T); \
        EACH(n) d[i] = F(T, a[i], b[i]); \
    } \
    static void name##_vs(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(R, T, T); \
        T s = b[0]; \
        EACH(n) d[i] = F(T, a[i], s); \
    } \
    static void name##_sv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(R, T, T); \
        T s = a[0]; \
        EACH(n) d[i] = F(T, s, b[i]); \
    }

#define ADD_F(T, x, y) ((x) + (y))
#define SUB_F(T, x, y) ((x) - (y))
#define MUL_F(T, x, y) ((x) * (y))
#define DIV_F(T, x, y) ((x) / (y))
/* NaN if either is; max(-0, +0) = +0: where equal, the sum of zeros has the right sign, others are themselves */
#define MAX_F(T, x, y) ((x) > (y) ? (x) : (x) < (y) ? (y) : (x) == (y) ? ((x) == 0 ? (x) + (y) : (x)) : (x) + (y))
#define MIN_F(T, x, y) ((x) < (y) ? (x) : (x) > (y) ? (y) : (x) == (y) ? ((x) == 0 ? -(-(x) - (y)) : (x)) : (x) + (y))
/* integers wrap: in the unsigned type of 64 bits, then cut */
#define ADD_I(T, x, y) ((T)((uint64_t)(x) + (uint64_t)(y)))
#define SUB_I(T, x, y) ((T)((uint64_t)(x) - (uint64_t)(y)))
#define MUL_I(T, x, y) ((T)((uint64_t)(x) * (uint64_t)(y)))
#define MAX_I(T, x, y) ((x) > (y) ? (x) : (y))
#define MIN_I(T, x, y) ((x) < (y) ? (x) : (y))
#define EQ(T, x, y) ((x) == (y))
#define NE(T, x, y) ((x) != (y))
#define LT(T, x, y) ((x) < (y))
#define LE(T, x, y) ((x) <= (y))
#define GT(T, x, y) ((x) > (y))
#define GE(T, x, y) ((x) >= (y))

#define COMPARE(T) \
    BINARY_AS(eq_##T, T, u8, EQ) \
    BINARY_AS(ne_##T, T, u8, NE) \
    BINARY_AS(lt_##T, T, u8, LT) BINARY_AS(le_##T, T, u8, LE) BINARY_AS(gt_##T, T, u8, GT) BINARY_AS(ge_##T, T, u8, GE)
#define ARITHMETIC(T, K) \
    BINARY_AS(add_##T, T, T, ADD_##K) \
    BINARY_AS(sub_##T, T, T, SUB_##K) \
    BINARY_AS(mul_##T, T, T, MUL_##K) BINARY_AS(max_##T, T, T, MAX_##K) BINARY_AS(min_##T, T, T, MIN_##K) COMPARE(T)

ARITHMETIC(f32, F)
ARITHMETIC(f64, F)
ARITHMETIC(i32, I)
ARITHMETIC(i64, I)
ARITHMETIC(u8, I)
BINARY_AS(div_f32, f32, f32, DIV_F)
BINARY_AS(div_f64, f64, f64, DIV_F)

#define POW_F32(T, x, y) powf(x, y)
#define POW_F64(T, x, y) pow(x, y)
BINARY_AS(pow_f32, f32, f32, POW_F32)
BINARY_AS(pow_f64, f64, f64, POW_F64)

/* a zero divisor is found by the caller, who scans for it; here it gives 0 */
#define DIV_S(T, x, y) ((T)((y) == 0 ? (T)0 : (y) == (T)-1 ? (T)(0 - (uint64_t)(x)) : (T)((x) / (y))))
#define DIV_U(T, x, y) ((T)((y) == 0 ? 0 : (x) / (y)))
BINARY_AS(div_i32, i32, i32, DIV_S)
BINARY_AS(div_i64, i64, i64, DIV_S)
BINARY_AS(div_u8, u8, u8, DIV_U)

static uint64_t power(uint64_t base, int64_t exponent, int is_minus_one) {
    uint64_t y = 1;
    if (exponent < 0) return base == 1 ? 1 : is_minus_one ? (exponent & 1 ? base : 1) : 0;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) y *= base;
    return y;
}
#define POW_S(T, x, y) ((T)power((uint64_t)(x), (y), (x) == (T)-1))
#define POW_U(T, x, y) ((T)power((x), (y), 0))
BINARY_AS(pow_i32, i32, i32, POW_S)
BINARY_AS(pow_i64, i64, i64, POW_S)
BINARY_AS(pow_u8, u8, u8, POW_U)

/* ---- a * b + c --------------------------------------------------------------------------------------------------- */

#define MULADD_AS(T) \
    static void muladd_##T##_vvv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        const T *c = c_; \
        EACH(n) d[i] = a[i] * b[i] + c[i]; \
    } \
    static void muladd_##T##_vsv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        const T *c = c_; \
        T s = b[0]; \
        EACH(n) d[i] = a[i] * s + c[i]; \
    } \
    static void muladd_##T##_vvs(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        T s = *(const T *)c_; \
        EACH(n) d[i] = a[i] * b[i] + s; \
    } \
    static void muladd_##T##_vss(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        T s = b[0], u = *(const T *)c_; \
        EACH(n) d[i] = a[i] * s + u; \
    }
MULADD_AS(f32)
MULADD_AS(f64)

/* ---- one operand ------------------------------------------------------------------------------------------------- */

#define UNARY_AS(name, T, R, expr) \
    static void name(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(R, T, T); \
        EACH(n) { \
            T x = a[i]; \
            d[i] = (R)(expr); \
        } \
    }

#define SIGMOID64(x) ((x) < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-(x))))
UNARY_AS(exp_f32, f32, f32, fnx_poly_exp(x))
UNARY_AS(log_f32, f32, f32, fnx_poly_log(x))
UNARY_AS(tanh_f32, f32, f32, fnx_poly_tanh(x))
UNARY_AS(sigmoid_f32, f32, f32, fnx_poly_sigmoid(x))
UNARY_AS(erf_f32, f32, f32, fnx_poly_erf(x))
UNARY_AS(sqrt_f32, f32, f32, sqrtf(x))
UNARY_AS(exp_f64, f64, f64, exp(x))
UNARY_AS(log_f64, f64, f64, log(x))
UNARY_AS(tanh_f64, f64, f64, tanh(x))
UNARY_AS(sigmoid_f64, f64, f64, SIGMOID64(x))
UNARY_AS(erf_f64, f64, f64, erf(x))
UNARY_AS(sqrt_f64, f64, f64, sqrt(x))
#define SIGNED(T, ABS) UNARY_AS(neg_##T, T, T, -x) UNARY_AS(abs_##T, T, T, ABS)
SIGNED(f32, fabsf(x))
SIGNED(f64, fabs(x))
UNARY_AS(neg_i32, i32, i32, 0 - (uint32_t)x)
UNARY_AS(abs_i32, i32, i32, x < 0 ? 0 - (uint32_t)x : (uint32_t)x)
UNARY_AS(neg_i64, i64, i64, 0 - (uint64_t)x)
UNARY_AS(abs_i64, i64, i64, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNARY_AS(neg_u8, u8, u8, (u8)(0 - x))
UNARY_AS(abs_u8, u8, u8, x)
UNARY_AS(relu_f32, f32, f32, x > 0 ? x : x != x ? x : 0)
UNARY_AS(relu_f64, f64, f64, x > 0 ? x : x != x ? x : 0)
UNARY_AS(relu_i32, i32, i32, x > 0 ? x : 0)
UNARY_AS(relu_i64, i64, i64, x > 0 ? x : 0)
UNARY_AS(relu_u8, u8, u8, x)

/* ---- conversion -------------------------------------------------------------------------------------------------- */

/* float to integer: toward zero, saturating, NaN to 0. Limits are the largest floats that fit. */
#define SATURATE(T, low, high, max) (x != x ? 0 : x >= (high) ? (max) : x <= (low) ? (T)(low) : (T)x)
#define FROM(T) \
    UNARY_AS(cast_##T##_f32, T, f32, x) UNARY_AS(cast_##T##_f64, T, f64, x) UNARY_AS(cast_##T##_boolean, T, u8, x != 0)
#define FROM_INT(T) \
    FROM(T) UNARY_AS(cast_##T##_i32, T, i32, x) UNARY_AS(cast_##T##_i64, T, i64, x) UNARY_AS(cast_##T##_u8, T, u8, x)
#define FROM_FLOAT(T) \
    FROM(T) \
    UNARY_AS(cast_##T##_i32, T, i32, SATURATE(i32, -2147483648.0, 2147483648.0, INT32_MAX)) \
    UNARY_AS(cast_##T##_i64, T, i64, SATURATE(i64, -9223372036854775808.0, 9223372036854775808.0, INT64_MAX)) \
    UNARY_AS(cast_##T##_u8, T, u8, SATURATE(u8, 0.0, 256.0, UINT8_MAX))
FROM_FLOAT(f32)
FROM_FLOAT(f64)
FROM_INT(i32)
FROM_INT(i64)
FROM_INT(u8)
FROM_INT(boolean)

/* ---- bytes: copy, where ------------------------------------------------------------------------------------------ */

#define MOVE(T) \
    static void copy_##T(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        EACH(n) d[i] = a[i]; \
    } \
    static void fill_##T(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, T, T); \
        T s = a[0]; \
        EACH(n) d[i] = s; \
    } \
    static void where_##T##_vv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, u8, T); \
        const T *c = c_; \
        EACH(n) d[i] = a[i] ? b[i] : c[i]; \
    } \
    static void where_##T##_vs(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, u8, T); \
        T s = *(const T *)c_; \
        EACH(n) d[i] = a[i] ? b[i] : s; \
    } \
    static void where_##T##_sv(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, u8, T); \
        const T *c = c_; \
        T s = b[0]; \
        EACH(n) d[i] = a[i] ? s : c[i]; \
    } \
    static void where_##T##_ss(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        START(T, u8, T); \
        T s = b[0], u = *(const T *)c_; \
        EACH(n) d[i] = a[i] ? s : u; \
    }
MOVE(u8)
MOVE(i32)
MOVE(i64)

/* ---- random numbers: a seed, b counter, c element numbers -------------------------------------------------------- */

typedef struct words {
    uint32_t w[4];
} words;

static inline words philox(uint64_t seed, uint64_t counter, uint64_t block) {
    uint32_t x0 = (uint32_t)block, x1 = (uint32_t)(block >> 32), x2 = (uint32_t)counter, x3 = (uint32_t)(counter >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p = UINT64_C(0xD2511F53) * x0, q = UINT64_C(0xCD9E8D57) * x2;
        x0 = (uint32_t)(q >> 32) ^ x1 ^ k0, x1 = (uint32_t)q, x2 = (uint32_t)(p >> 32) ^ x3 ^ k1, x3 = (uint32_t)p;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return (words){{x0, x1, x2, x3}};
}

/* cos(2 pi v): whole quarters of the turn are taken off exactly, so that the cosine's zeros keep all their digits. */
static inline double cosine_of_turn(double v) {
    double quarter = nearbyint(4 * v), rest = 6.283185307179586476925 * (v - quarter / 4);
    switch ((int)quarter & 3) {
    case 0: return cos(rest);
    case 1: return -sin(rest);
    case 2: return -cos(rest);
    default: return sin(rest);
    }
}

#define UNIT64(hi, lo) (((double)((hi) >> 5) * 67108864.0 + (double)((lo) >> 6)) * 0x1p-53)
#define RANDOM(name, R, ...) \
    static void name(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) { \
        R *d = d_; \
        uint64_t seed = *(const uint64_t *)a_, counter = *(const uint64_t *)b_; \
        const uint64_t *c = c_; \
        for (int64_t i = 0; i < n; i++) { \
            uint64_t e = c[i]; \
            __VA_ARGS__ \
        } \
    }
static void uniform_f32(void *d_, const void *a_, const void *b_, const void *c_, int64_t n) {
    float *d = d_;
    uint64_t seed = *(const uint64_t *)a_, counter = *(const uint64_t *)b_, last = UINT64_MAX;
    const uint64_t *c = c_;
    words w = {{0, 0, 0, 0}};
    for (int64_t i = 0; i < n; i++) { /* four neighbours share a block */
        if (c[i] >> 2 != last) last = c[i] >> 2, w = philox(seed, counter, last);
        d[i] = (float)(w.w[c[i] & 3] >> 8) * 0x1p-24f;
    }
}
RANDOM(uniform_f64, f64, {
    words w = philox(seed, counter, e >> 1);
    d[i] = e & 1 ? UNIT64(w.w[2], w.w[3]) : UNIT64(w.w[0], w.w[1]);
})
RANDOM(normal_f32, f32, {
    words w = philox(seed, counter, e >> 2);
    uint32_t u = e & 2 ? w.w[2] : w.w[0], v = e & 2 ? w.w[3] : w.w[1];
    double r = sqrt(-2 * log((double)((u >> 8) + 1) * 0x1p-24)), turn = (double)(v >> 8) * 0x1p-24;
    d[i] = (float)(r * cosine_of_turn(e & 1 ? turn - 0.25 : turn));
})
RANDOM(normal_f64, f64, {
    words w = philox(seed, counter, e);
    d[i] = sqrt(-2 * log(UNIT64(w.w[0], w.w[1]) + 0x1p-53)) * cosine_of_turn(UNIT64(w.w[2], w.w[3]));
})

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* One row per op: for f32, f64, i32, i64, u8 the three forms vv, vs, sv. */
enum { D_F32, D_F64, D_I32, D_I64, D_U8, D_BOOL, DTYPES };
static const int8_t column[16] = {[FNX_F32] = D_F32 + 1, [FNX_F64] = D_F64 + 1, [FNX_I32] = D_I32 + 1,
                                  [FNX_I64] = D_I64 + 1, [FNX_U8] = D_U8 + 1,   [FNX_BOOL] = D_BOOL + 1};

#define FORMS(f) \
    { f##_vv, f##_vs, f##_sv }
#define ROW2(op, f) \
    { \
        FNX_OP_##op, { FORMS(f##_f32), FORMS(f##_f64), FORMS(f##_i32), FORMS(f##_i64), FORMS(f##_u8) } \
    }
#define ROW2B(op, f) \
    { \
        FNX_OP_##op, { FORMS(f##_f32), FORMS(f##_f64), FORMS(f##_i32), FORMS(f##_i64), FORMS(f##_u8), FORMS(f##_u8) } \
    }
static const struct {
    uint16_t op;
    vm_fn fn[DTYPES][3];
} binary[] = {
    ROW2(add, add),       ROW2(sub, sub),     ROW2(mul, mul),          ROW2(div, div),       ROW2(pow, pow),
    ROW2(maximum, max),   ROW2(minimum, min), ROW2B(equal, eq),        ROW2B(not_equal, ne), ROW2(less, lt),
    ROW2(less_equal, le), ROW2(greater, gt),  ROW2(greater_equal, ge),
};

#define ROW1(op, f) \
    { \
        FNX_OP_##op, { f##_f32, f##_f64, f##_i32, f##_i64, f##_u8 } \
    }
#define ROWF(op, f) \
    { \
        FNX_OP_##op, { f##_f32, f##_f64 } \
    }
static const struct {
    uint16_t op;
    vm_fn fn[DTYPES];
} unary[] = {
    ROW1(neg, neg),   ROW1(abs, abs),
    ROW1(relu, relu), ROWF(exp, exp),
    ROWF(log, log),   ROWF(sqrt, sqrt),
    ROWF(tanh, tanh), ROWF(sigmoid, sigmoid),
    ROWF(erf, erf),   {FNX_OP_copy, {copy_i32, copy_i64, copy_i32, copy_i64, copy_u8, copy_u8}},
};

#define CASTS(T) \
    { cast_##T##_f32, cast_##T##_f64, cast_##T##_i32, cast_##T##_i64, cast_##T##_u8, cast_##T##_boolean }
static const vm_fn casts[DTYPES][DTYPES] = {CASTS(f32), CASTS(f64), CASTS(i32), CASTS(i64), CASTS(u8), CASTS(boolean)};

#define WHERE(T) \
    { where_##T##_vv, where_##T##_sv, where_##T##_vs, where_##T##_ss }
static const vm_fn wheres[DTYPES][4] = {WHERE(i32), WHERE(i64), WHERE(i32), WHERE(i64), WHERE(u8), WHERE(u8)};
static const vm_fn muladds[2][4] = {{muladd_f32_vvv, muladd_f32_vsv, muladd_f32_vvs, muladd_f32_vss},
                                    {muladd_f64_vvv, muladd_f64_vsv, muladd_f64_vvs, muladd_f64_vss}};
static const vm_fn fills[DTYPES] = {fill_i32, fill_i64, fill_i32, fill_i64, fill_u8, fill_u8};

#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)

vm_fn CAT(vm_find_, VM_SUFFIX)(uint16_t op, uint16_t dtype, uint16_t to, unsigned scalars) {
    int d = dtype < 16 ? column[dtype] - 1 : -1, t = to < 16 ? column[to] - 1 : -1;
    if (op == FNX_OP_uniform || op == FNX_OP_normal) {
        if (scalars != 3 || t < 0) return NULL;
        return op == FNX_OP_uniform ? t == D_F32   ? uniform_f32
                                      : t == D_F64 ? uniform_f64
                                                   : NULL
               : t == D_F32         ? normal_f32
               : t == D_F64         ? normal_f64
                                    : NULL;
    }
    if (d < 0) return NULL;
    if (op == FNX_OP_cast) return t < 0 || scalars ? NULL : casts[d][t];
    if (op == FNX_OP_copy && scalars) return fills[d];
    if (op == FNX_OP_where) return scalars & 1 ? NULL : wheres[d][scalars >> 1];
    if (op == VM_MULADD) return d > D_F64 || scalars & 1 ? NULL : muladds[d][scalars >> 1];
    for (size_t i = 0; i < sizeof binary / sizeof *binary && scalars < 3; i++)
        if (binary[i].op == op) return binary[i].fn[d][scalars == 0 ? 0 : scalars == 2 ? 1 : 2];
    for (size_t i = 0; i < sizeof unary / sizeof *unary && scalars == 0; i++)
        if (unary[i].op == op) return unary[i].fn[d];
    return NULL;
}
