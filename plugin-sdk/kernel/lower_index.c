/* gather and scatter_add: one axis of a position is replaced by an index that is read from memory, and checked. */
#include "lower.h"

static kir_value index_at(lowering *l, uint32_t value, const kir_value *at) {
    return kir_cast(&l->k, KIR_I64, lower_load(l, value, at));
}

static kir_value is_inside(lowering *l, kir_value index, kir_value limit) {
    kir *k = &l->k;
    return kir_bin(k, KIR_AND, kir_bin(k, KIR_LE, kir_int(k, KIR_I64, 0), index), kir_bin(k, KIR_LT, index, limit));
}

static int32_t axis_of(lowering *l, uint32_t *axis) {
    fnx_attr_axis a = {0, 0};
    const fnx_node *n = fnx_group_node(l->g, 0);
    uint32_t rank = fnx_group_value(l->g, fnx_node_operand(l->g, n, 0))->rank;
    if (fnx_node_attrs(l->g, n, &a, sizeof a) || a.axis >= rank)
        return lower_decline(l, FNX_DECLINE_ATTR, 0, FNX_NONE, "unknown attributes");
    *axis = a.axis;
    return FNX_OK;
}

int32_t lower_gather(lowering *l) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    kir *k = &l->k;
    uint32_t x = fnx_node_operand(g, n, 0), index = fnx_node_operand(g, n, 1), y = fnx_node_result(g, n, 0), axis;
    kir_value at[FNX_MAX_RANK];
    if (axis_of(l, &axis)) return FNX_E_DECLINED;
    const fnx_value *yv = fnx_group_value(g, y), *xv = fnx_group_value(g, x);
    uint32_t threads = l->device->max_threads < 64 ? l->device->max_threads : 64;
    lower_begin(l, threads);
    lower_grid_add(l, yv->rank, yv->size, threads);
    kir_value i = lower_add(l, lower_mul(l, lower_group(l), lower_index(l, threads)), lower_thread(l));
    kir_if(k, kir_bin(k, KIR_LT, i, lower_product(l, yv->rank, yv->size)));
    lower_unravel(l, i, yv->rank, yv->size, at);
    kir_value limit = kir_cast(k, KIR_I64, l->size[xv->size[axis]]), from = index_at(l, index, at);
    kir_type type = lower_register(xv->dtype);
    kir_value got = kir_var(k, type == KIR_BOOL ? kir_int(k, type, 0) : lower_number(l, type, 0)),
              to = lower_offset(l, y, at);
    kir_if(k, is_inside(l, from, limit));
    at[axis] = kir_cast(k, l->index, from);
    kir_set(k, got, lower_load(l, x, at));
    kir_else(k);
    kir_fail(k, 0, from, limit);
    kir_end(k);
    kir_store(k, l->buffer[y], to, kir_get(k, got));
    kir_end(k);
    return FNX_OK;
}

/* A thread per line of the result along the axis, which copies the target's and then adds in ascending order: so the
 * bits do not depend on threads, and no two of them write one element. */
int32_t lower_scatter(lowering *l) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    kir *k = &l->k;
    uint32_t target = fnx_node_operand(g, n, 0), index = fnx_node_operand(g, n, 1), update = fnx_node_operand(g, n, 2);
    uint32_t y = fnx_node_result(g, n, 0), axis, n_lines = 0;
    uint16_t lines[FNX_MAX_RANK];
    kir_value at[FNX_MAX_RANK], line[FNX_MAX_RANK];
    if (axis_of(l, &axis)) return FNX_E_DECLINED;
    const fnx_value *yv = fnx_group_value(g, y), *iv = fnx_group_value(g, index), *uv = fnx_group_value(g, update);
    for (uint32_t d = 0; d < yv->rank; d++)
        if (d != axis) lines[n_lines++] = yv->size[d];
    uint32_t threads = l->device->max_threads < 64 ? l->device->max_threads : 64;
    lower_begin(l, threads);
    lower_grid_add(l, n_lines, lines, threads);
    kir_value i = lower_add(l, lower_mul(l, lower_group(l), lower_index(l, threads)), lower_thread(l));
    kir_if(k, kir_bin(k, KIR_LT, i, lower_product(l, n_lines, lines)));
    lower_unravel(l, i, n_lines, lines, line);
    kir_value walked = kir_int(k, KIR_BOOL, 1),
              steps = KIR_NO_VALUE; /* index and update may be shorter, or broadcast */
    for (uint32_t d = 0, j = 0; d < yv->rank; d++) {
        kir_value length = kir_bin(k, KIR_MAX, l->size[iv->size[d]], l->size[uv->size[d]]);
        kir_value empty = kir_bin(k, KIR_MIN, l->size[iv->size[d]], l->size[uv->size[d]]);
        length = kir_select(k, kir_bin(k, KIR_EQ, empty, lower_index(l, 0)), empty, length);
        if (d == axis) steps = length;
        else at[d] = line[j++], walked = kir_bin(k, KIR_AND, walked, kir_bin(k, KIR_LT, at[d], length));
    }
    lower_rounds_add(l, 1, &yv->size[axis], 1);
    lower_rounds_add(l, 1, &iv->size[axis], 1), lower_rounds_add(l, 1, &uv->size[axis], 1);
    kir_value m = kir_for(k, lower_index(l, 0), l->size[yv->size[axis]], 1, 0);
    at[axis] = m;
    lower_store(l, y, at, lower_load(l, target, at));
    kir_end(k);
    kir_if(k, walked);
    kir_value limit = kir_cast(k, KIR_I64, l->size[yv->size[axis]]);
    m = kir_for(k, lower_index(l, 0), steps, 1, 0);
    at[axis] = m;
    kir_value to = index_at(l, index, at), v = lower_load(l, update, at);
    kir_if(k, is_inside(l, to, limit));
    at[axis] = kir_cast(k, l->index, to);
    kir_value where = lower_offset(l, y, at);
    kir_store(k, l->buffer[y], where, lower_sum(l, yv->dtype, kir_load(k, l->buffer[y], where), v));
    kir_else(k);
    kir_fail(k, 0, to, limit);
    kir_end(k);
    kir_end(k);
    kir_end(k);
    kir_end(k);
    return FNX_OK;
}
