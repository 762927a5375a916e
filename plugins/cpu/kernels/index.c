/* gather and scatter_add: along one axis an index says which element is meant. Indexes are checked here: a bad one
 * reads 0 or writes nothing, and is noted in the queue's error word.
 *
 * scatter_add adds in ascending order of the indexed axis for each element of the result. Threads share out the other
 * axes, or, where there are none to share, ranges of the result: so its bits do not depend on their number. */
#include "kernels/kernel.h"
#include "kernels/walk.h"

#include <string.h>

enum { INDEX = 0, FAR = 1, NEAR = 2 }; /* far: what the index points into; near: what iterates with the index */
enum { COLUMNS = 16 };                 /* of the inner axis in one task of scatter_add */

typedef struct indexed {
    const cpu_call *call;
    walk_axes outer;
    int64_t inner, inner_stride[WALK_VIEWS]; /* the axis along which near is densest; never the indexed one in
                                                  scatter_add */
    int64_t length, axis_stride[WALK_VIEWS]; /* of the indexed axis */
    int64_t limit;                           /* elements of far along it */
    int64_t parts;                           /* scatter_add: ranges of the result or of the inner axis */
    const char *index, *near_from, *far_from;
    char *near_to, *far_to;
    uint32_t index_bytes;
} indexed;

static inline int64_t index_at(const indexed *g, int64_t offset) {
    return g->index_bytes == 4 ? ((const int32_t *)(const void *)g->index)[offset]
                               : ((const int64_t *)(const void *)g->index)[offset];
}

static inline bool is_inside(const indexed *g, int64_t i) {
    if (i >= 0 && i < g->limit) return true;
    cpu_call_fail(g->call, i, g->limit);
    return false;
}

static int64_t stride_of(const cpu_view *v, uint32_t d) { return v->size[d] == 1 ? 0 : v->stride[d]; }

/* ---- gather ------------------------------------------------------------------------------------------------------ */

#define DEFINE_GATHER(name, type) \
    static void name(void *context, int thread, int64_t first, int64_t last) { \
        const indexed *g = context; \
        const int64_t index = g->inner_stride[INDEX], far = g->inner_stride[FAR], near = g->inner_stride[NEAR]; \
        walk w = walk_start(&g->outer, g->outer.n, first); \
        (void)thread; \
        for (int64_t i = first; i < last; i++, walk_next(&w)) { \
            const type *x = (const type *)(const void *)g->far_from + w.offset[FAR]; \
            type *y = (type *)(void *)g->near_to + w.offset[NEAR]; \
            if (index == 0) { \
                const int64_t at = index_at(g, w.offset[INDEX]); \
                const bool inside = is_inside(g, at); \
                const type *from = inside ? x + at * g->axis_stride[FAR] : x; \
                if (inside && far == 1 && near == 1) memcpy(y, from, (size_t)g->inner * sizeof *y); \
                else \
                    for (int64_t k = 0; k < g->inner; k++) y[k * near] = inside ? from[k * far] : 0; \
                continue; \
            } \
            for (int64_t k = 0; k < g->inner; k++) { \
                const int64_t at = index_at(g, w.offset[INDEX] + k * index); \
                y[k * near] = is_inside(g, at) ? x[k * far + at * g->axis_stride[FAR]] : 0; \
            } \
        } \
    }

DEFINE_GATHER(gather_1, uint8_t)
DEFINE_GATHER(gather_4, uint32_t)
DEFINE_GATHER(gather_8, uint64_t)

void CPU_LEVEL(cpu_gather)(const cpu_call *c) {
    const cpu_view *x = &c->in[0], *index = &c->in[1], *y = &c->out[0];
    const uint32_t axis = c->attr->axis.axis, bytes = cpu_element_bytes(y->dtype);
    const int64_t count = cpu_view_count(y);
    indexed g = {.call = c,
                 .inner = 1,
                 .limit = x->size[axis],
                 .index = index->base,
                 .far_from = x->base,
                 .near_to = y->base,
                 .index_bytes = cpu_element_bytes(index->dtype)};
    if (count == 0) return;
    g.axis_stride[FAR] = stride_of(x, axis);
    for (uint32_t d = 0; d < y->rank; d++)
        walk_add(&g.outer, y->size[d], stride_of(index, d), d == axis ? 0 : stride_of(x, d), stride_of(y, d));
    walk_sort(&g.outer, NEAR);
    walk_merge(&g.outer);
    if (g.outer.n > 0) {
        const uint32_t last = --g.outer.n;
        g.inner = g.outer.size[last];
        for (uint32_t v = 0; v < WALK_VIEWS; v++) g.inner_stride[v] = g.outer.stride[last][v];
    }
    cpu_parallel(c->device, (double)count * (g.inner_stride[INDEX] ? 2 : 0.3), walk_count(&g.outer, 0, g.outer.n),
                 bytes == 1   ? gather_1
                 : bytes == 4 ? gather_4
                              : gather_8,
                 &g);
}

/* ---- scatter_add ------------------------------------------------------------------------------------------------- */

/* Tasks: outer positions times parts. A part is a block of columns of the inner axis, or, where the inner axis has
 * one element, a range of the result. */
#define DEFINE_SCATTER(name, type) \
    static void name(void *context, int thread, int64_t first, int64_t last) { \
        const indexed *g = context; \
        const int64_t far = g->inner_stride[FAR], near = g->inner_stride[NEAR], step = g->inner_stride[INDEX]; \
        (void)thread; \
        for (int64_t i = first; i < last; i++) { \
            const walk w = walk_start(&g->outer, g->outer.n, i / g->parts); \
            const int64_t part = i % g->parts; \
            int64_t from = 0, to = g->inner, low = INT64_MIN, high = INT64_MAX; /* both included */ \
            if (g->inner > 1) { \
                from = part * COLUMNS; \
                to = from + COLUMNS < g->inner ? from + COLUMNS : g->inner; \
            } else { \
                if (part > 0) low = g->limit / g->parts * part; \
                if (part < g->parts - 1) high = g->limit / g->parts * (part + 1) - 1; \
            } \
            for (int64_t k = 0; k < g->length; k++) { \
                const int64_t o = w.offset[INDEX] + k * g->axis_stride[INDEX]; \
                const type *update = \
                    (const type *)(const void *)g->near_from + w.offset[NEAR] + k * g->axis_stride[NEAR]; \
                type *y = (type *)(void *)g->far_to + w.offset[FAR]; \
                if (step == 0) { \
                    const int64_t at = index_at(g, o); \
                    if (at < low || at > high || !is_inside(g, at)) continue; \
                    y += at * g->axis_stride[FAR]; \
                    for (int64_t l = from; l < to; l++) y[l * far] = (type)(y[l * far] + update[l * near]); \
                } else { \
                    for (int64_t l = from; l < to; l++) { \
                        const int64_t at = index_at(g, o + l * step); \
                        if (!is_inside(g, at)) continue; \
                        type *z = &y[l * far + at * g->axis_stride[FAR]]; \
                        *z = (type)(*z + update[l * near]); \
                    } \
                } \
            } \
        } \
    }

DEFINE_SCATTER(scatter_f32, float)
DEFINE_SCATTER(scatter_f64, double)
DEFINE_SCATTER(scatter_i32, uint32_t)
DEFINE_SCATTER(scatter_i64, uint64_t)
DEFINE_SCATTER(scatter_u8, uint8_t)

void CPU_LEVEL(cpu_scatter_add)(const cpu_call *c) {
    const cpu_view *target = &c->in[0], *index = &c->in[1], *update = &c->in[2], *y = &c->out[0];
    const uint32_t axis = c->attr->axis.axis;
    indexed g = {.call = c,
                 .inner = 1,
                 .limit = y->size[axis],
                 .index = index->base,
                 .near_from = update->base,
                 .far_to = y->base,
                 .index_bytes = cpu_element_bytes(index->dtype)};
    if (target->base != y->base) CPU_LEVEL(cpu_copy)(c->device, target, y);
    for (uint32_t d = 0; d < y->rank; d++) {
        const int64_t size = index->size[d] == 1 ? update->size[d] : index->size[d];
        if (d == axis) {
            g.length = size;
            g.axis_stride[INDEX] = stride_of(index, d);
            g.axis_stride[FAR] = stride_of(y, d);
            g.axis_stride[NEAR] = stride_of(update, d);
        } else {
            walk_add(&g.outer, size, stride_of(index, d), stride_of(y, d), stride_of(update, d));
        }
    }
    walk_sort(&g.outer, FAR);
    walk_merge(&g.outer);
    const int64_t positions = walk_count(&g.outer, 0, g.outer.n), count = positions * g.length;
    if (count == 0) return;
    if (g.outer.n > 0) {
        const uint32_t last = --g.outer.n;
        g.inner = g.outer.size[last];
        for (uint32_t v = 0; v < WALK_VIEWS; v++) g.inner_stride[v] = g.outer.stride[last][v];
        g.parts = (g.inner + COLUMNS - 1) / COLUMNS;
    } else {
        g.parts = count < 32768 ? 1 : c->device->threads;
    }
    void (*const body)(void *, int, int64_t, int64_t) = y->dtype == FNX_F32   ? scatter_f32
                                                        : y->dtype == FNX_F64 ? scatter_f64
                                                        : y->dtype == FNX_I32 ? scatter_i32
                                                        : y->dtype == FNX_I64 ? scatter_i64
                                                                              : scatter_u8;
    cpu_parallel(c->device, (double)count, walk_count(&g.outer, 0, g.outer.n) * g.parts, body, &g);
}
