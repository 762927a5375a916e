/* Walks over several views at once: axes with one size and a stride per view, outermost first, and a position on them.
 *
 * A kernel takes the axes of its operands, drops those of size 1, orders them by the view whose memory matters most and
 * merges what can be walked as one axis. What is left is usually one or two axes, whatever rank came in. */
#ifndef PLUGINS_CPU_KERNELS_WALK_H
#define PLUGINS_CPU_KERNELS_WALK_H

#include <stdbool.h>
#include <stdint.h>

enum { WALK_AXES = 8, WALK_VIEWS = 3 };

typedef struct walk_axes {
    uint32_t n;
    int64_t size[WALK_AXES];
    int64_t stride[WALK_AXES][WALK_VIEWS]; /* elements */
} walk_axes;

static inline int64_t walk_magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Adds the next inner axis, unless nothing is stepped along it. Views that are not there have stride 0. */
static inline void walk_add(walk_axes *a, int64_t size, int64_t s0, int64_t s1, int64_t s2) {
    if (size == 1) return;
    a->size[a->n] = size;
    a->stride[a->n][0] = s0;
    a->stride[a->n][1] = s1;
    a->stride[a->n++][2] = s2;
}

static inline void walk_swap(walk_axes *a, uint32_t i, uint32_t k) {
    const walk_axes old = *a;
    a->size[i] = old.size[k];
    a->size[k] = old.size[i];
    for (uint32_t v = 0; v < WALK_VIEWS; v++) {
        a->stride[i][v] = old.stride[k][v];
        a->stride[k][v] = old.stride[i][v];
    }
}

/* Largest strides of `view` first; equal ones keep their order. */
static inline void walk_sort(walk_axes *a, uint32_t view) {
    for (uint32_t i = 1; i < a->n; i++)
        for (uint32_t k = i; k > 0; k--) {
            if (walk_magnitude(a->stride[k - 1][view]) >= walk_magnitude(a->stride[k][view])) break;
            walk_swap(a, k - 1, k);
        }
}

/* Joins neighbours that every view can walk as one axis. */
static inline void walk_merge(walk_axes *a) {
    uint32_t n = a->n > 0;
    for (uint32_t i = 1; i < a->n; i++) {
        bool joined = true;
        for (uint32_t v = 0; v < WALK_VIEWS; v++) joined &= a->stride[n - 1][v] == a->stride[i][v] * a->size[i];
        if (!joined) n++;
        a->size[n - 1] = joined ? a->size[n - 1] * a->size[i] : a->size[i];
        for (uint32_t v = 0; v < WALK_VIEWS; v++) a->stride[n - 1][v] = a->stride[i][v];
    }
    a->n = n;
}

/* Elements of the axes from `first` to `last` - 1. */
static inline int64_t walk_count(const walk_axes *a, uint32_t first, uint32_t last) {
    int64_t count = 1;
    for (uint32_t i = first; i < last; i++) count *= a->size[i];
    return count;
}

/* A position on the first `n` axes, and the offsets of the views there. */
typedef struct walk {
    const walk_axes *axes;
    uint32_t n;
    int64_t at[WALK_AXES];
    int64_t offset[WALK_VIEWS];
} walk;

/* Stands at position number `index`, counted with the last axis fastest. */
static inline walk walk_start(const walk_axes *axes, uint32_t n, int64_t index) {
    walk w = {.axes = axes, .n = n};
    for (uint32_t i = n; i-- > 0;) {
        w.at[i] = index % axes->size[i];
        index /= axes->size[i];
        for (uint32_t v = 0; v < WALK_VIEWS; v++) w.offset[v] += w.at[i] * axes->stride[i][v];
    }
    return w;
}

/* The next position; after the last one, the first again. */
static inline void walk_next(walk *w) {
    for (uint32_t i = w->n; i-- > 0;) {
        const bool wraps = ++w->at[i] == w->axes->size[i];
        const int64_t steps = wraps ? 1 - w->at[i] : 1;
        for (uint32_t v = 0; v < WALK_VIEWS; v++) w->offset[v] += steps * w->axes->stride[i][v];
        if (!wraps) return;
        w->at[i] = 0;
    }
}

#endif
