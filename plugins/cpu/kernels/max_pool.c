/* Max pooling with the place of each winner, its gradient, and the pick of what stands at winners.
 *
 * All run over channels in vectors when those lie next to each other (channels last), whatever window, stride and
 * padding are; other strides are right, and slower. The gradient asks for each element of x which windows it won, so
 * that each is written once, without a fill before and in an order that threads do not change. */
#include "kernels/window.h"

enum { ROW = 32 }; /* positions of y held back, so that rows of a row-major y are written along the row */

typedef struct pool {
    cpu_window window;
    cpu_view x, y, where; /* of the gradient: dx, dy */
    bool wants_where;
} pool;

/* Of a row of y (at: image, then two spatial axes), channel c. */
static inline int64_t offset_of(const cpu_view *v, const int64_t *at, int64_t c) {
    return at[0] * v->stride[0] + c * v->stride[1] + at[1] * v->stride[2] + at[2] * v->stride[3];
}

#define FLOAT_BEATS(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
#define INTEGER_BEATS(a, b) ((a) > (b))

#define NAME f32
#define TYPE float
#define PLACE int32_t
#define SUM float
#define BEATS FLOAT_BEATS
#include "kernels/max_pool_body.h"

#define NAME f64
#define TYPE double
#define PLACE int64_t
#define SUM double
#define BEATS FLOAT_BEATS
#include "kernels/max_pool_body.h"

#define NAME i32
#define TYPE int32_t
#define PLACE int32_t
#define SUM uint32_t
#define BEATS INTEGER_BEATS
#include "kernels/max_pool_body.h"

#define NAME i64
#define TYPE int64_t
#define PLACE int64_t
#define SUM uint64_t
#define BEATS INTEGER_BEATS
#include "kernels/max_pool_body.h"

#define NAME u8
#define TYPE uint8_t
#define PLACE int32_t
#define SUM uint32_t
#define BEATS INTEGER_BEATS
#include "kernels/max_pool_body.h"

static pool pool_of(const cpu_call *c, const cpu_view *x, const cpu_view *y, const cpu_view *where) {
    const uint32_t spatial = c->attr->pool.spatial;
    pool p = {.window = cpu_pool_window(&c->attr->pool),
              .x = cpu_three_axes(x, spatial),
              .y = cpu_three_axes(y, spatial),
              .wants_where = where != NULL};
    if (where) p.where = cpu_three_axes(where, spatial);
    return p;
}

static void run(const cpu_call *c, pool *p, uint16_t dtype, int64_t elements, int64_t rows,
                void (*const body[5])(void *, int, int64_t, int64_t)) {
    const uint32_t i = dtype == FNX_F32 ? 0 : dtype == FNX_F64 ? 1 : dtype == FNX_I32 ? 2 : dtype == FNX_I64 ? 3 : 4;
    cpu_parallel(c->device, (double)elements * cpu_element_bytes(dtype) * 0.15, rows, body[i], p);
}

void CPU_LEVEL(cpu_max_pool)(const cpu_call *c) {
    static void (*const body[])(void *, int, int64_t, int64_t) = {f32_rows, f64_rows, i32_rows, i64_rows, u8_rows};
    pool p = pool_of(c, &c->in[0], &c->out[0], c->n_results > 1 ? &c->out[1] : NULL);
    if (cpu_view_count(&p.y) == 0) return;
    run(c, &p, p.y.dtype, cpu_view_count(&p.x), p.y.size[0] * p.y.size[2] * p.y.size[3], body);
}

/* A view whose channels lie next to each other: `v`, or a copy of it at *at, which moves on. */
static cpu_view with_channels_last(const cpu_call *c, const cpu_view *v, char **at) {
    static const uint8_t channels_last[] = {0, 2, 3, 4, 1};
    if (v->stride[1] == 1 || v->size[1] == 1) return *v;
    cpu_view packed = *v;
    packed.base = *at;
    cpu_view_pack(&packed, channels_last);
    CPU_LEVEL(cpu_copy)(c->device, v, &packed);
    *at += cpu_view_bytes(&packed);
    return packed;
}

void CPU_LEVEL(cpu_max_pool_grad)(const cpu_call *c) {
    static void (*const body[])(void *, int, int64_t, int64_t) = {f32_grad_rows, f64_grad_rows, i32_grad_rows,
                                                                  i64_grad_rows, u8_grad_rows};
    pool p = pool_of(c, &c->out[0], &c->in[0], &c->in[1]);
    char *workspace = c->workspace;
    if (cpu_view_count(&p.x) == 0) return;
    p.y = with_channels_last(c, &p.y, &workspace);
    p.where = with_channels_last(c, &p.where, &workspace);
    run(c, &p, p.x.dtype, cpu_view_count(&p.x), p.x.size[0] * p.x.size[2] * p.x.size[3], body);
}

/* ---- pick: only higher derivatives need it, so any dtype of one width runs in one plain loop --------------------- */

static int64_t place_at(const cpu_view *where, int64_t offset) {
    return where->dtype == FNX_U8 ? ((const uint8_t *)where->base)[offset]
                                  : ((const int32_t *)(const void *)where->base)[offset];
}

static void pick_rows(void *context, int thread, int64_t first, int64_t last) {
    const pool *p = context;
    const cpu_window *w = &p->window;
    const uint32_t bytes = cpu_element_bytes(p->x.dtype);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t at[3] = {i / p->y.size[3] / p->y.size[2], i / p->y.size[3] % p->y.size[2], i % p->y.size[3]};
        for (int64_t m = 0; m < p->y.size[4]; m++)
            for (int64_t c = 0; c < p->y.size[1]; c++) {
                const int64_t place = place_at(&p->where, offset_of(&p->where, at, c) + m * p->where.stride[4]);
                const int64_t k[3] = {place / w->size[2] / w->size[1], place / w->size[2] % w->size[1],
                                      place % w->size[2]};
                const int64_t t[3] = {at[1], at[2], m};
                int64_t from = at[0] * p->x.stride[0] + c * p->x.stride[1];
                bool inside = place >= 0 && k[0] < w->size[0];
                for (uint32_t d = 0; d < 3; d++) {
                    const int64_t s = t[d] * w->stride[d] - w->low[d] + k[d];
                    inside &= s >= 0 && s < p->x.size[2 + d];
                    from += s * p->x.stride[2 + d];
                }
                char *to = p->y.base + (offset_of(&p->y, at, c) + m * p->y.stride[4]) * bytes;
                if (inside) memcpy(to, p->x.base + from * bytes, bytes);
                else memset(to, 0, bytes);
            }
    }
}

void CPU_LEVEL(cpu_max_pool_pick)(const cpu_call *c) {
    pool p = pool_of(c, &c->in[0], &c->out[0], &c->in[1]);
    const int64_t count = cpu_view_count(&p.y);
    if (count == 0) return;
    cpu_parallel(c->device, (double)count * 5, p.y.size[0] * p.y.size[2] * p.y.size[3], pick_rows, &p);
}
