/* See lower_window.h. */
#include "lower_window.h"

void lower_window_open(lowering *l, const lower_window *w, kir_value *at) {
    for (uint32_t d = 0; d < w->spatial; d++) at[d] = kir_for(&l->k, lower_index(l, 0), w->size[d], 1, 0);
}

void lower_window_close(lowering *l, const lower_window *w) {
    for (uint32_t d = 0; d < w->spatial; d++) kir_end(&l->k);
}

static kir_value scaled(lowering *l, kir_value v, int32_t by) {
    return by == 1 ? v : lower_mul(l, v, lower_index(l, by));
}

static kir_value within(lowering *l, kir_value v, kir_value end) {
    return kir_bin(&l->k, KIR_AND, kir_bin(&l->k, KIR_LE, lower_index(l, 0), v), kir_bin(&l->k, KIR_LT, v, end));
}

kir_value lower_touches(lowering *l, const lower_window *w, const kir_value *t, const kir_value *k, kir_value *s) {
    kir_value all = KIR_NO_VALUE;
    for (uint32_t d = 0; d < w->spatial; d++) {
        s[d] = lower_add(l, scaled(l, t[d], w->stride[d]), scaled(l, k[d], w->dilation[d]));
        if (w->low[d]) s[d] = kir_bin(&l->k, KIR_SUB, s[d], lower_index(l, w->low[d]));
        kir_value inside = within(l, s[d], l->size[w->x->size[2 + d]]);
        all = d ? kir_bin(&l->k, KIR_AND, all, inside) : inside;
    }
    return all;
}

kir_value lower_touched(lowering *l, const lower_window *w, const kir_value *s, const kir_value *k, kir_value *t) {
    kir_value all = KIR_NO_VALUE;
    for (uint32_t d = 0; d < w->spatial; d++) {
        kir_value from = lower_add(l, s[d], lower_index(l, w->low[d])), step = lower_index(l, w->stride[d]);
        from = kir_bin(&l->k, KIR_SUB, from, scaled(l, k[d], w->dilation[d]));
        kir_value whole = kir_bin(&l->k, KIR_LE, lower_index(l, 0), from); /* division truncates toward 0 */
        t[d] = from;
        if (w->stride[d] != 1) {
            t[d] = kir_bin(&l->k, KIR_DIV, from, step);
            kir_value exact = kir_bin(&l->k, KIR_EQ, lower_mul(l, t[d], step), from);
            whole = kir_bin(&l->k, KIR_AND, whole, exact);
        }
        kir_value inside = kir_bin(&l->k, KIR_AND, whole, kir_bin(&l->k, KIR_LT, t[d], l->size[w->y->size[2 + d]]));
        all = d ? kir_bin(&l->k, KIR_AND, all, inside) : inside;
    }
    return all;
}

void lower_each(lowering *l, uint32_t v, kir_value *at) {
    const fnx_value *x = fnx_group_value(l->g, v);
    lower_grid_add(l, x->rank, x->size, l->threads);
    kir_value n = lower_product(l, x->rank, x->size);
    kir_value i = lower_add(l, lower_mul(l, lower_group(l), lower_index(l, l->threads)), lower_thread(l));
    kir_if(&l->k, kir_bin(&l->k, KIR_LT, i, n));
    lower_unravel(l, i, x->rank, x->size, at);
}
