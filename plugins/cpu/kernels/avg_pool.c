/* Average pooling and its gradient. Vectors run over channels where those lie next to each other. */
#include "kernels/window.h"

enum { LANES = 16 };

typedef struct pool {
    cpu_window window;
    cpu_view x, y; /* of the gradient: dx, dy */
    bool excludes_padding;
} pool;

/* What the average over the window that stands at t divides by. */
static double divisor_at(const pool *p, const int64_t *t) {
    double elements = 1;
    for (uint32_t d = 0; d < 3; d++) {
        const cpu_range k = cpu_inside(&p->window, d, t[d], p->x.size[2 + d]);
        elements *= (double)(p->excludes_padding ? k.last - k.first : p->window.size[d]);
    }
    return elements;
}

#define NAME f32
#define TYPE float
#include "kernels/avg_pool_body.h"

#define NAME f64
#define TYPE double
#include "kernels/avg_pool_body.h"

static pool pool_of(const cpu_call *c, const cpu_view *x, const cpu_view *y) {
    const fnx_attr_pool *attr = &c->attr->pool;
    return (pool){.window = cpu_pool_window(attr),
                  .x = cpu_three_axes(x, attr->spatial),
                  .y = cpu_three_axes(y, attr->spatial),
                  .excludes_padding = (attr->flags & FNX_POOL_EXCLUDE_PAD) != 0};
}

void CPU_LEVEL(cpu_avg_pool)(const cpu_call *c) {
    pool p = pool_of(c, &c->in[0], &c->out[0]);
    if (cpu_view_count(&p.y) == 0) return;
    cpu_parallel(c->device, (double)cpu_view_count(&p.x), p.y.size[0] * p.y.size[2] * p.y.size[3],
                 p.y.dtype == FNX_F32 ? f32_rows : f64_rows, &p);
}

void CPU_LEVEL(cpu_avg_pool_grad)(const cpu_call *c) {
    pool p = pool_of(c, &c->out[0], &c->in[0]);
    if (cpu_view_count(&p.x) == 0) return;
    cpu_parallel(c->device, (double)cpu_view_count(&p.x), p.x.size[0] * p.x.size[2] * p.x.size[3],
                 p.x.dtype == FNX_F32 ? f32_grad_rows : f64_grad_rows, &p);
}
