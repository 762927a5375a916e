/* Elementwise ops: one function of cells per op, for floats and for integers, and one loop for all of them. */
#include "ref.h"

typedef ref_cell (*cell_function)(const ref_call *c, const ref_cell *x);

/* Each expression sees its operands as a and b. */
#define FLOAT(name, expression) \
    static ref_cell name##_float(const ref_call *c, const ref_cell *x) { \
        const double a = x[0].f, b = x[1].f; \
        (void)c, (void)a, (void)b; \
        return (ref_cell){.f = (expression)}; \
    }
#define INTEGER(name, expression) \
    static ref_cell name##_integer(const ref_call *c, const ref_cell *x) { \
        const int64_t a = x[0].i, b = x[1].i; \
        (void)c, (void)a, (void)b; \
        return (ref_cell){.i = (expression)}; \
    }
#define COMPARE(name, operator) \
    static ref_cell name##_float(const ref_call *c, const ref_cell *x) { \
        (void)c; \
        return (ref_cell){.i = x[0].f operator x[1].f }; \
    } \
    INTEGER(name, a operator b)

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static int64_t divide(const ref_call *c, int64_t a, int64_t b) {
    if (b == 0) {
        ref_fail(c, FNX_E_INDEX, 0, 0);
        return 0;
    }
    return b == -1 ? ref_wrap_mul(a, -1) : a / b; /* the smallest integer by -1 wraps */
}

static int64_t integer_power(int64_t base, int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    int64_t power = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) power = ref_wrap_mul(power, base);
        base = ref_wrap_mul(base, base);
    }
    return power;
}

/* +0 is larger than -0. */
static double larger(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) ? a : b;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static double smaller(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) ? a : b;
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

ref_cell ref_maximum(ref_cell a, ref_cell b, bool is_float) {
    return is_float ? (ref_cell){.f = larger(a.f, b.f)} : (ref_cell){.i = a.i > b.i ? a.i : b.i};
}

ref_cell ref_minimum(ref_cell a, ref_cell b, bool is_float) {
    return is_float ? (ref_cell){.f = smaller(a.f, b.f)} : (ref_cell){.i = a.i < b.i ? a.i : b.i};
}

static double sigmoid(double x) { /* e^x of a positive x may be infinite */
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

FLOAT(add, a + b)
FLOAT(sub, a - b)
FLOAT(mul, (a * b))
FLOAT(div, a / b)
FLOAT(pow, pow(a, b))
FLOAT(maximum, larger(a, b))
FLOAT(minimum, smaller(a, b))
FLOAT(neg, -a)
FLOAT(abs, fabs(a))
FLOAT(exp, exp(a))
FLOAT(log, log(a))
FLOAT(sqrt, sqrt(a))
FLOAT(tanh, tanh(a))
FLOAT(sigmoid, sigmoid(a))
FLOAT(erf, erf(a))
FLOAT(relu, a > 0 ? a : isnan(a) ? a : 0.0)

INTEGER(add, ref_wrap_add(a, b))
INTEGER(sub, ref_wrap_add(a, ref_wrap_mul(b, -1)))
INTEGER(mul, ref_wrap_mul(a, b))
INTEGER(div, divide(c, a, b))
INTEGER(pow, integer_power(a, b))
INTEGER(maximum, a > b ? a : b)
INTEGER(minimum, a < b ? a : b)
INTEGER(neg, ref_wrap_mul(a, -1))
INTEGER(abs, a < 0 ? ref_wrap_mul(a, -1) : a)
INTEGER(relu, a > 0 ? a : 0)

/* ---- comparison, choice, conversion ------------------------------------------------------------------------------ */

COMPARE(equal, ==)
COMPARE(not_equal, !=)
COMPARE(less, <)
COMPARE(less_equal, <=)
COMPARE(greater, >)
COMPARE(greater_equal, >=)

static ref_cell where(const ref_call *c, const ref_cell *x) {
    (void)c;
    return x[0].i ? x[1] : x[2];
}

static ref_cell copy(const ref_call *c, const ref_cell *x) {
    (void)c;
    return x[0];
}

/* Toward zero; what does not fit becomes the nearest end of the dtype's range, NaN becomes 0. */
static int64_t saturate(double x, uint16_t dtype) {
    const int64_t low = dtype == FNX_I64 ? INT64_MIN : dtype == FNX_I32 ? INT32_MIN : 0;
    const int64_t high = dtype == FNX_I64 ? INT64_MAX : dtype == FNX_I32 ? INT32_MAX : UINT8_MAX;
    if (isnan(x)) return 0;
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

static ref_cell cast(const ref_call *c, const ref_cell *x) {
    const uint16_t to = c->out[0].dtype;
    const bool from_float = ref_is_float(c->in[0].dtype);
    if (to == FNX_BOOL) return (ref_cell){.i = from_float ? x[0].f != 0 : x[0].i != 0};
    if (from_float) return ref_is_float(to) ? x[0] : (ref_cell){.i = saturate(x[0].f, to)};
    if (to == FNX_F32) return (ref_cell){.f = (double)(float)x[0].i}; /* by way of double it would be rounded twice */
    return to == FNX_F64 ? (ref_cell){.f = (double)x[0].i} : x[0];
}

/* ---- the table, by op id ----------------------------------------------------------------------------------------- */

/* Which of the two runs is decided by the dtype of the last operand: T in all signatures. */
static const struct {
    cell_function on_floats, on_integers;
} functions[] = {
    [FNX_OP_add] = {add_float, add_integer},
    [FNX_OP_sub] = {sub_float, sub_integer},
    [FNX_OP_mul] = {mul_float, mul_integer},
    [FNX_OP_div] = {div_float, div_integer},
    [FNX_OP_pow] = {pow_float, pow_integer},
    [FNX_OP_maximum] = {maximum_float, maximum_integer},
    [FNX_OP_minimum] = {minimum_float, minimum_integer},
    [FNX_OP_neg] = {neg_float, neg_integer},
    [FNX_OP_abs] = {abs_float, abs_integer},
    [FNX_OP_exp] = {exp_float, NULL},
    [FNX_OP_log] = {log_float, NULL},
    [FNX_OP_sqrt] = {sqrt_float, NULL},
    [FNX_OP_tanh] = {tanh_float, NULL},
    [FNX_OP_sigmoid] = {sigmoid_float, NULL},
    [FNX_OP_erf] = {erf_float, NULL},
    [FNX_OP_relu] = {relu_float, relu_integer},
    [FNX_OP_equal] = {equal_float, equal_integer},
    [FNX_OP_not_equal] = {not_equal_float, not_equal_integer},
    [FNX_OP_less] = {less_float, less_integer},
    [FNX_OP_less_equal] = {less_equal_float, less_equal_integer},
    [FNX_OP_greater] = {greater_float, greater_integer},
    [FNX_OP_greater_equal] = {greater_equal_float, greater_equal_integer},
    [FNX_OP_where] = {where, where},
    [FNX_OP_cast] = {cast, cast},
    [FNX_OP_copy] = {copy, copy},
    [FNX_OP_uniform] = {NULL, ref_uniform}, /* the last operand is the element's number */
    [FNX_OP_normal] = {NULL, ref_normal},
};

void ref_elementwise(const ref_call *c) {
    const ref_view *y = &c->out[0];
    const uint32_t outer = y->rank ? y->rank - 1u : 0; /* axes around the row, which is the last axis */
    const int64_t row = y->rank ? y->size[outer] : 1;
    const cell_function f =
        ref_is_float(c->in[c->n_operands - 1].dtype) ? functions[c->op].on_floats : functions[c->op].on_integers;
    int64_t at[FNX_MAX_RANK] = {0}, from[REF_MAX_OPERANDS] = {0}, step[REF_MAX_OPERANDS] = {0};
    ref_cell x[REF_MAX_OPERANDS] = {{0}};
    if (ref_count(y) == 0) return;
    for (uint32_t k = 0; k < c->n_operands; k++) step[k] = c->in[k].rank ? c->in[k].stride[c->in[k].rank - 1] : 0;
    for (bool more = ref_count(y) > 0; more; more = ref_next(y, outer, at)) {
        const int64_t to = ref_offset(y, at), to_step = y->rank ? y->stride[outer] : 0;
        for (uint32_t k = 0; k < c->n_operands; k++) from[k] = ref_offset(&c->in[k], at);
        for (int64_t i = 0; i < row; i++) {
            for (uint32_t k = 0; k < c->n_operands; k++) x[k] = ref_load(&c->in[k], from[k] + i * step[k]);
            ref_store(y, to + i * to_step, f(c, x));
        }
    }
}
