/* What convolution and pooling have in common: a window that steps over the spatial axes. Always three of them:
 * where a node has fewer, axes of size 1 are put in front, so that one loop nest serves 1, 2 and 3. */
#ifndef PLUGINS_REF_WINDOW_H
#define PLUGINS_REF_WINDOW_H

#include "ref.h"

typedef struct ref_window {
    int64_t stride[3], dilation[3], low[3]; /* low: padding before the first element */
    int64_t size[3];
} ref_window;

/* v [n, c, s..] as [n, c, s0, s1, s2]. */
static inline ref_view ref_three_axes(const ref_view *v, uint32_t spatial) {
    ref_view w = *v;
    w.rank = 5;
    for (uint32_t d = 0; d < 3; d++) {
        const bool is_there = d + spatial >= 3;
        w.size[2 + d] = is_there ? v->size[2 + d + spatial - 3] : 1;
        w.stride[2 + d] = is_there ? v->stride[2 + d + spatial - 3] : 0;
    }
    return w;
}

static inline ref_window ref_conv_window(const fnx_attr_conv *a, const ref_view *weight) {
    ref_window w = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
    for (uint32_t i = 0, d = 3 - a->spatial; i < a->spatial; i++, d++) {
        w.stride[d] = a->stride[i];
        w.dilation[d] = a->dilation[i];
        w.low[d] = a->pad_low[i];
        w.size[d] = weight->size[2 + d];
    }
    return w;
}

static inline ref_window ref_pool_window(const fnx_attr_pool *a) {
    ref_window w = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
    for (uint32_t i = 0, d = 3 - a->spatial; i < a->spatial; i++, d++) {
        w.stride[d] = a->stride[i];
        w.low[d] = a->pad_low[i];
        w.size[d] = a->window[i];
    }
    return w;
}

/* The position s in x that window position k touches when the window stands at t. False: it lies in the padding. */
static inline bool ref_touches(const ref_window *w, const ref_view *x, const int64_t *t, const int64_t *k, int64_t *s) {
    bool inside = true;
    for (uint32_t d = 0; d < 3; d++) {
        s[d] = t[d] * w->stride[d] + k[d] * w->dilation[d] - w->low[d];
        inside &= s[d] >= 0 && s[d] < x->size[2 + d];
    }
    return inside;
}

/* The converse: where the window stands (t, a position of y) when its position k touches s. False: nowhere. */
static inline bool ref_touched(const ref_window *w, const ref_view *y, const int64_t *s, const int64_t *k, int64_t *t) {
    for (uint32_t d = 0; d < 3; d++) {
        const int64_t from = s[d] + w->low[d] - k[d] * w->dilation[d];
        t[d] = from / w->stride[d];
        if (from < 0 || from % w->stride[d] != 0 || t[d] >= y->size[2 + d]) return false;
    }
    return true;
}

/* Steps k to the next position of the window, row-major. */
static inline bool ref_next_in_window(const ref_window *w, int64_t *k) {
    for (uint32_t d = 3; d-- > 0;) {
        if (++k[d] < w->size[d]) return true;
        k[d] = 0;
    }
    return false;
}

/* Elements of a window; 0 if it has none. */
static inline int64_t ref_window_count(const ref_window *w) { return w->size[0] * w->size[1] * w->size[2]; }

#endif
