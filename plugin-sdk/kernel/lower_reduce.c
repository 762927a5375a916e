/* Reductions of one node. Two kernels: a thread per result, which walks its row alone; and a work-group per result,
 * whose threads share the row. Sums of floats add blocks of 128 elements first, so that rounding grows with the
 * number of blocks. */
#include "lower.h"

enum { BLOCK = 128 };

typedef struct reduction {
    uint16_t op, dtype; /* of the operand */
    uint32_t x, y, n_row, n_kept;
    uint16_t row[FNX_MAX_RANK], kept[FNX_MAX_RANK]; /* sizes */
    uint8_t row_axis[FNX_MAX_RANK], kept_axis[FNX_MAX_RANK];
    kir_value at[FNX_MAX_RANK]; /* the result's position; reduced axes: 0 */
    kir_value best, where;      /* variables */
} reduction;

static reduction begin(lowering *l, uint32_t threads) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    reduction r = {.op = n->op, .x = fnx_node_operand(g, n, 0), .y = fnx_node_result(g, n, 0)};
    r.dtype = fnx_group_value(g, r.x)->dtype;
    lower_begin(l, threads);
    fnx_attr_reduce attr = {0, 0};
    (void)fnx_node_attrs(g, n, &attr, sizeof attr);
    for (uint32_t d = 0; d < g->rank; d++) {
        if (attr.axes >> d & 1) r.row_axis[r.n_row] = (uint8_t)d, r.row[r.n_row++] = g->domain[d];
        else r.kept_axis[r.n_kept] = (uint8_t)d, r.kept[r.n_kept++] = g->domain[d];
    }
    return r;
}

static void set_position(lowering *l, reduction *r, kir_value result) {
    kir_value kept[FNX_MAX_RANK];
    lower_unravel(l, result, r->n_kept, r->kept, kept);
    for (uint32_t d = 0; d < l->g->rank; d++) r->at[d] = lower_index(l, 0);
    for (uint32_t d = 0; d < r->n_kept; d++) r->at[r->kept_axis[d]] = kept[d];
}

static kir_value element(lowering *l, const reduction *r, kir_value j) {
    kir_value at[FNX_MAX_RANK], row[FNX_MAX_RANK];
    for (uint32_t d = 0; d < l->g->rank; d++) at[d] = r->at[d];
    lower_unravel(l, j, r->n_row, r->row, row);
    for (uint32_t d = 0; d < r->n_row; d++) at[r->row_axis[d]] = row[d];
    return lower_load(l, r->x, at);
}

/* Whether v at i is to be taken instead of what is there: larger, the first NaN, the lower number among equals. */
static kir_value beats(lowering *l, const reduction *r, kir_value v, kir_value i, kir_value best, kir_value where) {
    kir *k = &l->k;
    kir_value more = kir_bin(k, KIR_LT, best, v), same = kir_bin(k, KIR_EQ, best, v);
    if (r->dtype == FNX_F32 || r->dtype == FNX_F64) {
        kir_value nan = kir_un(k, KIR_IS_NAN, v), had = kir_un(k, KIR_IS_NAN, best);
        more = kir_bin(k, KIR_OR, more, kir_bin(k, KIR_AND, nan, kir_un(k, KIR_NOT, had)));
        same = kir_bin(k, KIR_OR, same, kir_bin(k, KIR_AND, nan, had));
    }
    return kir_bin(k, KIR_OR, more, kir_bin(k, KIR_AND, same, kir_bin(k, KIR_LT, i, where)));
}

static kir_value combine(lowering *l, const reduction *r, kir_value a, kir_value b) {
    return r->op == FNX_OP_sum ? lower_sum(l, r->dtype, a, b) : lower_larger(l, r->dtype, a, b, r->op == FNX_OP_min);
}

/* The first element stands for all in the beginning, but of sums; there is one wherever those others are asked for. */
static void start(lowering *l, reduction *r) {
    kir *k = &l->k;
    bool sum = r->op == FNX_OP_sum;
    r->best = kir_var(k, sum ? lower_number(l, lower_register(r->dtype), 0) : element(l, r, lower_index(l, 0)));
    if (r->op == FNX_OP_argmax) r->where = kir_var(k, lower_index(l, 0));
}

static void take(lowering *l, const reduction *r, kir_value var, kir_value j) {
    kir *k = &l->k;
    kir_value v = element(l, r, j);
    if (r->op != FNX_OP_argmax) {
        kir_set(k, var, combine(l, r, kir_get(k, var), v));
        return;
    }
    kir_if(k, beats(l, r, v, j, kir_get(k, r->best), kir_get(k, r->where)));
    kir_set(k, r->best, v), kir_set(k, r->where, j);
    kir_end(k);
}

/* Elements first, first + step, ... below end. */
static void walk(lowering *l, const reduction *r, kir_value first, kir_value end, int64_t step) {
    kir *k = &l->k;
    bool blocks = r->op == FNX_OP_sum && (r->dtype == FNX_F32 || r->dtype == FNX_F64);
    if (!blocks) {
        kir_value j = kir_for(k, first, end, step, 0);
        take(l, r, r->best, j);
        kir_end(k);
        return;
    }
    kir_value b = kir_for(k, first, end, step * BLOCK, 0);
    kir_value part = kir_var(k, lower_number(l, lower_register(r->dtype), 0));
    kir_value to = kir_bin(k, KIR_MIN, lower_add(l, b, lower_index(l, step * BLOCK)), end);
    kir_value j = kir_for(k, b, to, step, 0);
    take(l, r, part, j);
    kir_end(k);
    kir_set(k, r->best, lower_add(l, kir_get(k, r->best), kir_get(k, part)));
    kir_end(k);
}

static void finish(lowering *l, const reduction *r) {
    kir_value v = kir_get(&l->k, r->op == FNX_OP_argmax ? r->where : r->best);
    lower_store(l, r->y, r->at, r->op == FNX_OP_argmax ? kir_cast(&l->k, KIR_I64, v) : v);
}

static int32_t by_thread(lowering *l) {
    kir *k = &l->k;
    uint32_t threads = l->device->max_threads < 64 ? l->device->max_threads : 64;
    reduction r = begin(l, threads);
    lower_grid_add(l, r.n_kept, r.kept, threads);
    lower_rounds_add(l, r.n_row, r.row, 1), lower_rounds_add(l, r.n_row, r.row, BLOCK);
    kir_value results = lower_product(l, r.n_kept, r.kept), n = lower_product(l, r.n_row, r.row);
    kir_value result = lower_add(l, lower_mul(l, lower_group(l), lower_index(l, threads)), lower_thread(l));
    kir_if(k, kir_bin(k, KIR_LT, result, results));
    set_position(l, &r, result);
    start(l, &r);
    walk(l, &r, lower_index(l, 0), n, 1);
    finish(l, &r);
    kir_end(k);
    return FNX_OK;
}

/* Halves the values of all threads in work-group memory. */
static void share(lowering *l, reduction *r, kir_value me) {
    kir *k = &l->k;
    bool argmax = r->op == FNX_OP_argmax;
    kir_value index = kir_cast(k, KIR_I32, me);
    kir_value side = kir_array(k, lower_register(r->dtype), l->threads, KIR_SHARED);
    kir_value places = argmax ? kir_array(k, l->index, l->threads, KIR_SHARED) : KIR_NO_VALUE;
    kir_write(k, side, index, kir_get(k, r->best));
    if (argmax) kir_write(k, places, index, kir_get(k, r->where));
    kir_barrier(k);
    for (uint32_t half = l->threads / 2; half > 0; half /= 2) {
        kir_if(k, kir_bin(k, KIR_LT, index, kir_int(k, KIR_I32, half)));
        kir_value other = lower_add(l, index, kir_int(k, KIR_I32, half));
        kir_value a = kir_read(k, side, index), b = kir_read(k, side, other);
        if (argmax) {
            kir_value i = kir_read(k, places, index), j = kir_read(k, places, other);
            kir_if(k, beats(l, r, b, j, a, i));
            kir_write(k, side, index, b), kir_write(k, places, index, j);
            kir_end(k);
        } else kir_write(k, side, index, combine(l, r, a, b));
        kir_end(k);
        kir_barrier(k);
    }
    kir_if(k, kir_bin(k, KIR_EQ, index, kir_int(k, KIR_I32, 0)));
    kir_set(k, r->best, kir_read(k, side, index));
    if (argmax) kir_set(k, r->where, kir_read(k, places, index));
    finish(l, r);
    kir_end(k);
}

static int32_t by_group(lowering *l) {
    kir *k = &l->k;
    uint32_t threads = 256;
    while (threads > l->device->max_threads) threads /= 2;
    reduction r = begin(l, threads);
    lower_grid_add(l, r.n_kept, r.kept, 1);
    lower_rounds_add(l, r.n_row, r.row, threads), lower_rounds_add(l, r.n_row, r.row, (int64_t)threads * BLOCK);
    kir_value results = lower_product(l, r.n_kept, r.kept), n = lower_product(l, r.n_row, r.row);
    /* work-groups beyond the last do its work once more: all threads come to the barriers */
    kir_value result = kir_bin(k, KIR_MIN, lower_group(l), kir_bin(k, KIR_SUB, results, lower_index(l, 1)));
    kir_value me = lower_thread(l);
    set_position(l, &r, result);
    start(l, &r);
    walk(l, &r, me, n, threads);
    share(l, &r, me);
    return FNX_OK;
}

int32_t lower_reduce(lowering *l, bool group) { return group ? by_group(l) : by_thread(l); }
