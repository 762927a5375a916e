/* Windows that step over spatial axes, for pooling and for convolutions by loops. There are always three: where a node
 * has fewer, axes of size 1 are put in front. So all views are [n, c, s0, s1, s2]. */
#ifndef PLUGINS_CPU_KERNELS_WINDOW_H
#define PLUGINS_CPU_KERNELS_WINDOW_H

#include "kernels/kernel.h"

typedef struct cpu_window {
    int64_t size[3], stride[3], dilation[3], low[3]; /* low: padding before the first element */
} cpu_window;

typedef struct cpu_range {
    int64_t first, last; /* without last */
} cpu_range;

static inline cpu_view cpu_three_axes(const cpu_view *v, uint32_t spatial) {
    cpu_view w = *v;
    w.rank = 5;
    for (uint32_t d = 0; d < 3; d++) {
        const bool is_there = d + spatial >= 3;
        w.size[2 + d] = is_there ? v->size[2 + d + spatial - 3] : 1;
        w.stride[2 + d] = is_there ? v->stride[2 + d + spatial - 3] : 0;
    }
    return w;
}

static inline cpu_window cpu_pool_window(const fnx_attr_pool *a) {
    cpu_window w = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    for (uint32_t i = 0, d = 3 - a->spatial; i < a->spatial; i++, d++) {
        w.size[d] = a->window[i];
        w.stride[d] = a->stride[i];
        w.low[d] = a->pad_low[i];
    }
    return w;
}

/* `weight` has three spatial axes. */
static inline cpu_window cpu_conv_window(const fnx_attr_conv *a, const cpu_view *weight) {
    cpu_window w = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    for (uint32_t i = 0, d = 3 - a->spatial; i < a->spatial; i++, d++) {
        w.size[d] = weight->size[2 + d];
        w.stride[d] = a->stride[i];
        w.dilation[d] = a->dilation[i];
        w.low[d] = a->pad_low[i];
    }
    return w;
}

/* The positions within an undilated window that stands at t which lie inside of the axis, of `size` elements. */
static inline cpu_range cpu_inside(const cpu_window *w, uint32_t d, int64_t t, int64_t size) {
    const int64_t start = t * w->stride[d] - w->low[d];
    cpu_range r = {cpu_most(0, -start), cpu_least(w->size[d], size - start)};
    if (r.last < r.first) r.last = r.first;
    return r;
}

/* Where undilated windows that cover position s stand, of `count` windows. */
static inline cpu_range cpu_covering(const cpu_window *w, uint32_t d, int64_t s, int64_t count) {
    const int64_t from = s + w->low[d] - w->size[d] + 1; /* where the first of them starts, if it is on a step */
    cpu_range r = {from <= 0 ? 0 : (from + w->stride[d] - 1) / w->stride[d],
                   cpu_least(count, (s + w->low[d]) / w->stride[d] + 1)};
    if (r.last < r.first) r.last = r.first;
    return r;
}

#endif
