/* Elementwise nodes, and groups of nothing else. <fornax-plugin/ops.h> says what each op means. */
#include "lower.h"

enum { ELEMENTS_PER_THREAD = 4, ELEMENTS_ALONE = 4096 }; /* the latter where a group is one thread */

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool is_float(uint16_t dtype) { return dtype == FNX_F32 || dtype == FNX_F64; }

/* Integers wrap: signed ones are computed as unsigned, which every dialect defines; bytes are cut. */
static kir_value wrapping(lowering *l, kir_op op, uint16_t dtype, kir_value a, kir_value b) {
    kir *k = &l->k;
    kir_type type = lower_register(dtype), wide = type == KIR_I32 ? KIR_U32 : type == KIR_I64 ? KIR_U64 : type;
    if (is_float(dtype)) return kir_bin(k, op, a, b);
    if (wide == type) return kir_bin(k, KIR_AND, kir_bin(k, op, a, b), kir_int(k, type, dtype == FNX_U8 ? 255 : -1));
    return kir_bits(k, type, kir_bin(k, op, kir_bits(k, wide, a), kir_bits(k, wide, b)));
}

static kir_value zero(lowering *l, uint16_t dtype) { return lower_number(l, lower_register(dtype), 0); }

static kir_value negative(lowering *l, uint16_t dtype, kir_value a) {
    return is_float(dtype) ? kir_un(&l->k, KIR_NEG, a) : wrapping(l, KIR_SUB, dtype, zero(l, dtype), a);
}

kir_value lower_sum(lowering *l, uint16_t dtype, kir_value a, kir_value b) { return wrapping(l, KIR_ADD, dtype, a, b); }

kir_value lower_larger(lowering *l, uint16_t dtype, kir_value a, kir_value b, bool smaller) {
    kir *k = &l->k;
    kir_value wins = smaller ? kir_bin(k, KIR_LT, a, b) : kir_bin(k, KIR_LT, b, a);
    if (!is_float(dtype)) return kir_select(k, wins, a, b);
    /* of equals: zeros of either sign, added as such */
    kir_value both =
        smaller ? kir_un(k, KIR_NEG, lower_add(l, kir_un(k, KIR_NEG, a), kir_un(k, KIR_NEG, b))) : lower_add(l, a, b);
    kir_value zeros = kir_bin(k, KIR_AND, kir_bin(k, KIR_EQ, a, b), kir_bin(k, KIR_EQ, a, zero(l, dtype)));
    kir_value v = kir_select(k, zeros, both, kir_select(k, wins, a, b));
    return kir_select(k, kir_un(k, KIR_IS_NAN, a), a, kir_select(k, kir_un(k, KIR_IS_NAN, b), b, v));
}

static kir_value quotient(lowering *l, uint32_t node, uint16_t dtype, kir_value a, kir_value b) {
    kir *k = &l->k;
    kir_type type = lower_register(dtype);
    if (is_float(dtype)) return kir_bin(k, KIR_DIV, a, b);
    kir_value none = kir_bin(k, KIR_EQ, b, zero(l, dtype)), nothing = kir_int(k, KIR_I64, 0);
    kir_if(k, none);
    kir_fail(k, node, nothing, nothing);
    kir_end(k);
    kir_value by = kir_select(k, none, lower_number(l, type, 1), b), y;
    if (dtype == FNX_U8) y = kir_bin(k, KIR_DIV, a, by);
    else { /* the least number divided by -1 wraps */
        kir_value minus = kir_bin(k, KIR_EQ, by, lower_number(l, type, -1));
        kir_value safe = kir_select(k, minus, lower_number(l, type, 1), by);
        y = kir_select(k, minus, negative(l, dtype, a), kir_bin(k, KIR_DIV, a, safe));
    }
    return kir_select(k, none, zero(l, dtype), y);
}

/* By squaring; a negative exponent gives 0, but for the bases 1 and -1. */
static kir_value integer_power(lowering *l, uint16_t dtype, kir_value a, kir_value b) {
    kir *k = &l->k;
    kir_type type = lower_register(dtype);
    kir_value one = lower_number(l, type, 1), y = kir_var(k, one), base = kir_var(k, a), rest = kir_var(k, b);
    int bits = dtype == FNX_U8 ? 8 : dtype == FNX_I32 ? 31 : 63;
    (void)kir_for(k, kir_int(k, KIR_I32, 0), kir_int(k, KIR_I32, bits), 1, 0);
    kir_if(k, kir_bin(k, KIR_EQ, kir_bin(k, KIR_AND, kir_get(k, rest), one), one));
    kir_set(k, y, wrapping(l, KIR_MUL, dtype, kir_get(k, y), kir_get(k, base)));
    kir_end(k);
    kir_set(k, base, wrapping(l, KIR_MUL, dtype, kir_get(k, base), kir_get(k, base)));
    kir_set(k, rest, kir_bin(k, KIR_SHR, kir_get(k, rest), one));
    kir_end(k);
    if (dtype == FNX_U8) return kir_get(k, y);
    kir_value minus = lower_number(l, type, -1), odd = kir_bin(k, KIR_AND, b, one);
    kir_value unit = kir_select(k, kir_bin(k, KIR_EQ, a, minus),
                                kir_select(k, kir_bin(k, KIR_EQ, odd, one), minus, one), zero(l, dtype));
    unit = kir_select(k, kir_bin(k, KIR_EQ, a, one), one, unit);
    return kir_select(k, kir_bin(k, KIR_LT, b, zero(l, dtype)), unit, kir_get(k, y));
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

/* Saturates; NaN becomes 0. `low` and `high` are powers of two, or next to one where the float has the digits. */
static kir_value saturate(lowering *l, kir_type from, uint16_t to, kir_value x) {
    kir *k = &l->k;
    kir_type type = lower_register(to);
    double low = to == FNX_U8 ? 0 : to == FNX_I32 ? -0x1p31 : -0x1p63;
    double end = to == FNX_U8 ? 256 : to == FNX_I32 ? 0x1p31 : 0x1p63; /* the first that is too large */
    int64_t least = to == FNX_U8 ? 0 : to == FNX_I32 ? INT32_MIN : INT64_MIN;
    int64_t most = to == FNX_U8 ? 255 : to == FNX_I32 ? INT32_MAX : INT64_MAX;
    kir_value under = kir_bin(k, KIR_LE, x, kir_float(k, from, low)),
              over = kir_bin(k, KIR_LE, kir_float(k, from, end), x);
    kir_value nan = kir_un(k, KIR_IS_NAN, x),
              inside = kir_un(k, KIR_NOT, kir_bin(k, KIR_OR, nan, kir_bin(k, KIR_OR, under, over)));
    kir_value v = kir_cast(k, type, kir_select(k, inside, x, kir_float(k, from, 0)));
    v = kir_select(k, under, kir_int(k, type, least), v);
    return kir_select(k, over, kir_int(k, type, most), v);
}

static kir_value cast(lowering *l, uint16_t from, uint16_t to, kir_value x) {
    kir *k = &l->k;
    kir_type type = lower_register(to);
    if (from == to) return x;
    if (to == FNX_BOOL) return kir_bin(k, KIR_NE, x, zero(l, from)); /* true for NaN */
    if (from == FNX_BOOL) return kir_select(k, x, lower_number(l, type, 1), lower_number(l, type, 0));
    if (is_float(from) && !is_float(to)) return saturate(l, lower_register(from), to, x);
    kir_value v = kir_cast(k, type, x);
    return to == FNX_U8 ? kir_bin(k, KIR_AND, v, kir_int(k, KIR_U32, 255)) : v;
}

/* ---- random numbers: FNX_PHILOX ---------------------------------------------------------------------------------- */

static kir_value u32(lowering *l, int64_t v) { return kir_int(&l->k, KIR_U32, v); }
static kir_value low_word(lowering *l, kir_value v) { return kir_cast(&l->k, KIR_U32, v); }

static kir_value high_word(lowering *l, kir_value v) {
    return kir_cast(&l->k, KIR_U32, kir_bin(&l->k, KIR_SHR, v, kir_int(&l->k, KIR_U64, 32)));
}

static void philox(lowering *l, kir_value seed, kir_value block, kir_value counter, kir_value w[4]) {
    kir *k = &l->k;
    kir_value key[2] = {low_word(l, seed), high_word(l, seed)};
    w[0] = low_word(l, block), w[1] = high_word(l, block), w[2] = low_word(l, counter), w[3] = high_word(l, counter);
    for (int round = 0; round < 10; round++) {
        kir_value p = u32(l, 0xd2511f53), q = u32(l, 0xcd9e8d57), x = w[0], z = w[2];
        w[0] = kir_bin(k, KIR_XOR, kir_bin(k, KIR_XOR, kir_bin(k, KIR_MULHI, q, z), w[1]), key[0]);
        w[1] = kir_bin(k, KIR_MUL, q, z);
        w[2] = kir_bin(k, KIR_XOR, kir_bin(k, KIR_XOR, kir_bin(k, KIR_MULHI, p, x), w[3]), key[1]);
        w[3] = kir_bin(k, KIR_MUL, p, x);
        key[0] = kir_bin(k, KIR_ADD, key[0], u32(l, 0x9e3779b9)),
        key[1] = kir_bin(k, KIR_ADD, key[1], u32(l, 0xbb67ae85));
    }
}

/* The top bits of words as a float: 24 of one, or 53 of two. */
static kir_value top_bits(lowering *l, kir_type type, kir_value a, kir_value b) {
    kir *k = &l->k;
    if (type == KIR_F32) return kir_cast(k, type, kir_bin(k, KIR_SHR, a, u32(l, 8)));
    kir_value high = kir_cast(k, type, kir_bin(k, KIR_SHR, a, u32(l, 5))),
              low = kir_cast(k, type, kir_bin(k, KIR_SHR, b, u32(l, 6)));
    return lower_add(l, lower_mul(l, high, kir_float(k, type, 0x1p26)), low);
}

static kir_value pick(lowering *l, kir_value odd, kir_value a, kir_value b) { return kir_select(&l->k, odd, b, a); }

static kir_value has_bit(lowering *l, kir_value v, int64_t bit) {
    kir *k = &l->k;
    return kir_bin(k, KIR_NE, kir_bin(k, KIR_AND, v, kir_int(k, KIR_U64, bit)), kir_int(k, KIR_U64, 0));
}

/* sin or cos of 2 pi v: whole quarters are taken off first, so that zeros keep their digits. */
static kir_value cosine_of_turn(lowering *l, kir_type type, kir_value v) {
    kir *k = &l->k;
    kir_value quarter =
        kir_call(k, KIR_FN_FLOOR, lower_add(l, lower_mul(l, v, kir_float(k, type, 4)), kir_float(k, type, 0.5)));
    kir_value rest = kir_bin(k, KIR_SUB, v, lower_mul(l, quarter, kir_float(k, type, 0.25)));
    kir_value angle = lower_mul(l, rest, kir_float(k, type, 6.283185307179586476925286766559));
    kir_value which = kir_bin(k, KIR_AND, kir_cast(k, KIR_I32, quarter), kir_int(k, KIR_I32, 3));
    kir_value c = kir_call(k, KIR_FN_COS, angle), s = kir_call(k, KIR_FN_SIN, angle);
    kir_value odd = kir_bin(k, KIR_EQ, kir_bin(k, KIR_AND, which, kir_int(k, KIR_I32, 1)), kir_int(k, KIR_I32, 1));
    kir_value y = kir_select(k, odd, s, c); /* cos, -sin, -cos, sin */
    kir_value minus = kir_bin(k, KIR_OR, kir_bin(k, KIR_EQ, which, kir_int(k, KIR_I32, 1)),
                              kir_bin(k, KIR_EQ, which, kir_int(k, KIR_I32, 2)));
    return kir_select(k, minus, kir_un(k, KIR_NEG, y), y);
}

static kir_value random_number(lowering *l, uint16_t op, uint16_t dtype, const kir_value *in) {
    kir *k = &l->k;
    kir_type type = lower_register(dtype);
    bool narrow = type == KIR_F32, normal = op == FNX_OP_normal;
    kir_value e = kir_bits(k, KIR_U64, in[2]), w[4];
    int shift = narrow ? 2 : normal ? 0 : 1;
    philox(l, in[0], shift ? kir_bin(k, KIR_SHR, e, kir_int(k, KIR_U64, shift)) : e, in[1], w);
    kir_value one = has_bit(l, e, 1), two = has_bit(l, e, 2), unit = kir_float(k, type, narrow ? 0x1p-24 : 0x1p-53);
    if (!normal && narrow)
        return lower_mul(l, top_bits(l, type, pick(l, two, pick(l, one, w[0], w[1]), pick(l, one, w[2], w[3])), 0),
                         unit);
    if (!normal) return lower_mul(l, top_bits(l, type, pick(l, one, w[0], w[2]), pick(l, one, w[1], w[3])), unit);
    kir_value u = narrow ? top_bits(l, type, pick(l, two, w[0], w[2]), 0) : top_bits(l, type, w[0], w[1]);
    kir_value v = narrow ? top_bits(l, type, pick(l, two, w[1], w[3]), 0) : top_bits(l, type, w[2], w[3]);
    u = lower_mul(l, lower_add(l, u, kir_float(k, type, 1)), unit), v = lower_mul(l, v, unit);
    kir_value radius = kir_call(k, KIR_FN_SQRT, lower_mul(l, kir_float(k, type, -2), kir_call(k, KIR_FN_LOG, u)));
    if (narrow) v = kir_select(k, one, kir_bin(k, KIR_SUB, v, kir_float(k, type, 0.25)), v);
    return lower_mul(l, radius, cosine_of_turn(l, type, v));
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

bool lower_is_elementwise(uint16_t op) {
    switch (op) {
    case FNX_OP_add:
    case FNX_OP_sub:
    case FNX_OP_mul:
    case FNX_OP_div:
    case FNX_OP_pow:
    case FNX_OP_maximum:
    case FNX_OP_minimum:
    case FNX_OP_neg:
    case FNX_OP_abs:
    case FNX_OP_exp:
    case FNX_OP_log:
    case FNX_OP_sqrt:
    case FNX_OP_tanh:
    case FNX_OP_sigmoid:
    case FNX_OP_erf:
    case FNX_OP_relu:
    case FNX_OP_equal:
    case FNX_OP_not_equal:
    case FNX_OP_less:
    case FNX_OP_less_equal:
    case FNX_OP_greater:
    case FNX_OP_greater_equal:
    case FNX_OP_where:
    case FNX_OP_cast:
    case FNX_OP_copy:
    case FNX_OP_uniform:
    case FNX_OP_normal: return true;
    default: return false;
    }
}

kir_value lower_node(lowering *l, uint32_t node, const kir_value *in) {
    const fnx_node *n = fnx_group_node(l->g, node);
    uint16_t to = fnx_group_value(l->g, fnx_node_result(l->g, n, 0))->dtype;
    uint16_t of = fnx_group_value(l->g, fnx_node_operand(l->g, n, 0))->dtype;
    kir *k = &l->k;
    switch (n->op) {
    case FNX_OP_add: return wrapping(l, KIR_ADD, to, in[0], in[1]);
    case FNX_OP_sub: return wrapping(l, KIR_SUB, to, in[0], in[1]);
    case FNX_OP_mul: return wrapping(l, KIR_MUL, to, in[0], in[1]);
    case FNX_OP_div: return quotient(l, node, to, in[0], in[1]);
    case FNX_OP_pow:
        if (!is_float(to)) return integer_power(l, to, in[0], in[1]);
        if (l->device->dialect == FNX_DIALECT_GLSL && !(l->device->features & FNX_CODEGEN_F64)) {
            (void)lower_decline(l, FNX_DECLINE_OP, node, FNX_NONE, "pow is computed in f64, which the device has not");
            return KIR_NO_VALUE;
        }
        return kir_bin(k, KIR_POW, in[0], in[1]);
    case FNX_OP_maximum: return lower_larger(l, to, in[0], in[1], false);
    case FNX_OP_minimum: return lower_larger(l, to, in[0], in[1], true);
    case FNX_OP_neg: return negative(l, to, in[0]);
    case FNX_OP_abs:
        if (is_float(to)) return kir_call(k, KIR_FN_ABS, in[0]);
        if (to == FNX_U8) return in[0];
        return kir_select(k, kir_bin(k, KIR_LT, in[0], zero(l, to)), negative(l, to, in[0]), in[0]);
    case FNX_OP_exp: return kir_call(k, KIR_FN_EXP, in[0]);
    case FNX_OP_log: return kir_call(k, KIR_FN_LOG, in[0]);
    case FNX_OP_sqrt: return kir_call(k, KIR_FN_SQRT, in[0]);
    case FNX_OP_tanh: return kir_call(k, KIR_FN_TANH, in[0]);
    case FNX_OP_sigmoid: return kir_call(k, KIR_FN_SIGMOID, in[0]);
    case FNX_OP_erf: return kir_call(k, KIR_FN_ERF, in[0]);
    case FNX_OP_relu: {
        kir_value none = is_float(to) ? kir_select(k, kir_un(k, KIR_IS_NAN, in[0]), in[0], zero(l, to)) : zero(l, to);
        return kir_select(k, kir_bin(k, KIR_LT, zero(l, to), in[0]), in[0], none);
    }
    case FNX_OP_equal: return kir_bin(k, KIR_EQ, in[0], in[1]);
    case FNX_OP_not_equal: return kir_bin(k, KIR_NE, in[0], in[1]);
    case FNX_OP_less: return kir_bin(k, KIR_LT, in[0], in[1]);
    case FNX_OP_less_equal: return kir_bin(k, KIR_LE, in[0], in[1]);
    case FNX_OP_greater: return kir_bin(k, KIR_LT, in[1], in[0]);
    case FNX_OP_greater_equal: return kir_bin(k, KIR_LE, in[1], in[0]);
    case FNX_OP_where: return kir_select(k, in[0], in[1], in[2]);
    case FNX_OP_cast: return cast(l, of, to, in[0]);
    case FNX_OP_copy: return in[0];
    case FNX_OP_uniform:
    case FNX_OP_normal: return random_number(l, n->op, to, in);
    default:
        (void)lower_decline(l, FNX_DECLINE_OP, node, FNX_NONE, "an op that the kernel compiler does not know");
        return KIR_NO_VALUE;
    }
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

int32_t lower_elementwise(lowering *l) {
    const fnx_group *g = l->g;
    kir *k = &l->k;
    uint32_t threads = l->device->max_threads < 256 ? l->device->max_threads : 256;
    int each = threads == 1 ? ELEMENTS_ALONE : ELEMENTS_PER_THREAD;
    lower_begin(l, threads);
    lower_grid_add(l, g->rank, g->domain, (int64_t)threads * each);
    kir_value n = lower_product(l, g->rank, g->domain), at[FNX_MAX_RANK], in[FNX_MAX_RANK];
    kir_value first = lower_mul(l, lower_group(l), lower_index(l, (int64_t)threads * each));
    kir_value end = kir_bin(k, KIR_MIN, lower_add(l, first, lower_index(l, (int64_t)threads * each)), n);
    kir_value i = kir_for(k, lower_add(l, first, lower_thread(l)), end, threads, 0);
    lower_unravel(l, i, g->rank, g->domain, at);
    for (uint32_t v = 0; v < g->n_values; v++) { /* all is read before anything is written */
        uint8_t kind = fnx_group_value(g, v)->kind;
        if (kind == FNX_VALUE_INPUT || kind == FNX_VALUE_INDEX) l->value[v] = lower_load(l, v, at);
    }
    for (uint32_t j = 0; j < g->n_nodes; j++) {
        const fnx_node *node = fnx_group_node(g, j);
        if (node->n_operands > FNX_MAX_RANK) return lower_decline(l, FNX_DECLINE_OP, j, FNX_NONE, "too many operands");
        for (uint32_t o = 0; o < node->n_operands; o++) in[o] = l->value[fnx_node_operand(g, node, o)];
        kir_value y = lower_node(l, j, in);
        if (y == KIR_NO_VALUE && !k->overflow) return FNX_E_DECLINED;
        l->value[fnx_node_result(g, node, 0)] = y;
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        if (fnx_group_value(g, v)->kind == FNX_VALUE_OUTPUT) lower_store(l, v, at, l->value[v]);
    kir_end(k);
    return FNX_OK;
}
