/* Pooling and its companions: a thread per element of the result. "where" is the row-major number, within its
 * window, of the element that won. */
#include "lower_window.h"

typedef struct pool {
    lower_window window;
    int32_t size[3], elements; /* of the window */
    bool inside_only;          /* averages divide by the elements inside x */
    uint16_t dtype;
    kir_type type;
} pool;

static kir_value number_of(lowering *l, const pool *p, const kir_value *at) {
    kir_value v = at[0];
    for (uint32_t d = 1; d < p->window.spatial; d++)
        v = lower_add(l, lower_mul(l, v, lower_index(l, p->size[d])), at[d]);
    return v;
}

static kir_value load_where(lowering *l, uint32_t where, const kir_value *at) {
    return kir_cast(&l->k, l->index, lower_load(l, where, at));
}

static void max_pool(lowering *l, const pool *p, uint32_t x, uint32_t y, uint32_t where) {
    kir *k = &l->k;
    kir_value at[5], from[5], in[3];
    lower_each(l, y, at);
    kir_value best = kir_var(k, lower_number(l, p->type, 0)), winner = kir_var(k, lower_index(l, -1));
    from[0] = at[0], from[1] = at[1];
    lower_window_open(l, &p->window, in);
    kir_if(k, lower_touches(l, &p->window, &at[2], in, &from[2]));
    kir_value v = lower_load(l, x, from), had = kir_get(k, best);
    kir_value wins = kir_bin(k, KIR_LT, had, v);
    if (p->type == KIR_F32 || p->type == KIR_F64) {
        kir_value first_nan =
            kir_bin(k, KIR_AND, kir_un(k, KIR_IS_NAN, v), kir_un(k, KIR_NOT, kir_un(k, KIR_IS_NAN, had)));
        wins = kir_bin(k, KIR_OR, wins, first_nan);
    }
    kir_if(k, kir_bin(k, KIR_OR, wins, kir_bin(k, KIR_LT, kir_get(k, winner), lower_index(l, 0))));
    kir_set(k, best, v), kir_set(k, winner, number_of(l, p, in));
    kir_end(k), kir_end(k);
    lower_window_close(l, &p->window);
    lower_store(l, y, at, kir_get(k, best));
    if (where != FNX_NONE) {
        kir_type type = lower_register(fnx_group_value(l->g, where)->dtype);
        kir_value place = kir_bin(k, KIR_MAX, kir_get(k, winner), lower_index(l, 0));
        lower_store(l, where, at, kir_cast(k, type, place));
    }
    kir_end(k);
}

static void max_pool_grad(lowering *l, const pool *p, uint32_t dy, uint32_t where, uint32_t dx) {
    kir *k = &l->k;
    kir_value at[5], t[5], in[3];
    lower_each(l, dx, at);
    kir_value sum = kir_var(k, lower_number(l, p->type, 0));
    t[0] = at[0], t[1] = at[1];
    lower_window_open(l, &p->window, in);
    kir_if(k, lower_touched(l, &p->window, &at[2], in, &t[2]));
    kir_if(k, kir_bin(k, KIR_EQ, load_where(l, where, t), number_of(l, p, in)));
    kir_set(k, sum, lower_sum(l, p->dtype, kir_get(k, sum), lower_load(l, dy, t)));
    kir_end(k), kir_end(k);
    lower_window_close(l, &p->window);
    lower_store(l, dx, at, kir_get(k, sum));
    kir_end(k);
}

static void max_pool_pick(lowering *l, const pool *p, uint32_t z, uint32_t where, uint32_t y) {
    kir *k = &l->k;
    kir_value at[5], from[5], in[3];
    lower_each(l, y, at);
    kir_value place = load_where(l, where, at), picked = kir_var(k, lower_number(l, p->type, 0));
    from[0] = at[0], from[1] = at[1];
    kir_value known = kir_bin(k, KIR_AND, kir_bin(k, KIR_LE, lower_index(l, 0), place),
                              kir_bin(k, KIR_LT, place, lower_index(l, p->elements)));
    for (uint32_t d = p->window.spatial; d-- > 0;) {
        in[d] = d ? kir_bin(k, KIR_REM, place, lower_index(l, p->size[d])) : place;
        if (d) place = kir_bin(k, KIR_DIV, place, lower_index(l, p->size[d]));
    }
    kir_if(k, kir_bin(k, KIR_AND, known, lower_touches(l, &p->window, &at[2], in, &from[2])));
    kir_set(k, picked, lower_load(l, z, from));
    kir_end(k);
    lower_store(l, y, at, kir_get(k, picked));
    kir_end(k);
}

/* What an average over the window at t divides by. */
static kir_value divisor(lowering *l, const pool *p, const kir_value *t) {
    kir *k = &l->k;
    if (!p->inside_only) return lower_number(l, p->type, p->elements);
    kir_value n = KIR_NO_VALUE;
    for (uint32_t d = 0; d < p->window.spatial; d++) { /* windows of pooling have no dilation */
        kir_value first = kir_bin(k, KIR_SUB, lower_mul(l, t[d], lower_index(l, p->window.stride[d])),
                                  lower_index(l, p->window.low[d]));
        kir_value end =
            kir_bin(k, KIR_MIN, lower_add(l, first, lower_index(l, p->size[d])), l->size[p->window.x->size[2 + d]]);
        first = kir_bin(k, KIR_MAX, first, lower_index(l, 0));
        kir_value here = kir_bin(k, KIR_MAX, kir_bin(k, KIR_SUB, end, first), lower_index(l, 0));
        n = d ? lower_mul(l, n, here) : here;
    }
    return kir_cast(k, p->type, n);
}

static void avg_pool(lowering *l, const pool *p, uint32_t x, uint32_t y) {
    kir *k = &l->k;
    kir_value at[5], from[5], in[3];
    lower_each(l, y, at);
    kir_value sum = kir_var(k, lower_number(l, p->type, 0));
    from[0] = at[0], from[1] = at[1];
    lower_window_open(l, &p->window, in);
    kir_if(k, lower_touches(l, &p->window, &at[2], in, &from[2]));
    kir_set(k, sum, lower_add(l, kir_get(k, sum), lower_load(l, x, from)));
    kir_end(k);
    lower_window_close(l, &p->window);
    lower_store(l, y, at, kir_bin(k, KIR_DIV, kir_get(k, sum), divisor(l, p, &at[2])));
    kir_end(k);
}

static void avg_pool_grad(lowering *l, const pool *p, uint32_t dy, uint32_t dx) {
    kir *k = &l->k;
    kir_value at[5], t[5], in[3];
    lower_each(l, dx, at);
    kir_value sum = kir_var(k, lower_number(l, p->type, 0));
    t[0] = at[0], t[1] = at[1];
    lower_window_open(l, &p->window, in);
    kir_if(k, lower_touched(l, &p->window, &at[2], in, &t[2]));
    kir_set(k, sum, lower_add(l, kir_get(k, sum), kir_bin(k, KIR_DIV, lower_load(l, dy, t), divisor(l, p, &t[2]))));
    kir_end(k);
    lower_window_close(l, &p->window);
    lower_store(l, dx, at, kir_get(k, sum));
    kir_end(k);
}

int32_t lower_pool(lowering *l) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    fnx_attr_pool a = {0};
    if (fnx_node_attrs(g, n, &a, sizeof a) || a.spatial < 1 || a.spatial > 3 ||
        a.flags & ~(uint32_t)FNX_POOL_EXCLUDE_PAD)
        return lower_decline(l, FNX_DECLINE_ATTR, 0, FNX_NONE, "unknown attributes");
    uint32_t in0 = fnx_node_operand(g, n, 0), in1 = n->n_operands > 1 ? fnx_node_operand(g, n, 1) : FNX_NONE;
    uint32_t out0 = fnx_node_result(g, n, 0), out1 = n->n_results > 1 ? fnx_node_result(g, n, 1) : FNX_NONE;
    bool adjoint = n->op == FNX_OP_max_pool_grad || n->op == FNX_OP_avg_pool_grad;
    lower_begin(l, l->device->max_threads < 64 ? l->device->max_threads : 64);
    pool p = {.window = {.spatial = a.spatial}, .elements = 1, .inside_only = a.flags & FNX_POOL_EXCLUDE_PAD};
    p.window.x = fnx_group_value(g, adjoint ? out0 : in0), p.window.y = fnx_group_value(g, adjoint ? in0 : out0);
    p.dtype = fnx_group_value(g, out0)->dtype, p.type = lower_register(p.dtype);
    for (uint32_t d = 0; d < a.spatial; d++) {
        p.window.stride[d] = a.stride[d], p.window.dilation[d] = 1, p.window.low[d] = a.pad_low[d];
        p.window.size[d] = lower_index(l, a.window[d]);
        p.size[d] = a.window[d], p.elements *= a.window[d];
    }
    switch (n->op) {
    case FNX_OP_max_pool: max_pool(l, &p, in0, out0, out1); break;
    case FNX_OP_max_pool_grad: max_pool_grad(l, &p, in0, in1, out0); break;
    case FNX_OP_max_pool_pick: max_pool_pick(l, &p, in0, in1, out0); break;
    case FNX_OP_avg_pool: avg_pool(l, &p, in0, out0); break;
    default: avg_pool_grad(l, &p, in0, out0);
    }
    return FNX_OK;
}
