/* argmax over one axis: the place of the largest element, the lowest one of equals, the first NaN before all. Elements
 * are compared as integer keys, where -0 has been made +0 and all NaN are one. */
#include "kernels/kernel.h"
#include "kernels/keys.h"
#include "kernels/walk.h"

enum { X = 0, Y = 1 };
enum { LANES = 32, TILE = 128, MOST_PLACES = 1 << 30 }; /* places of lanes are as narrow as keys */

typedef struct argmax {
    const char *x;
    char *y;
    walk_axes kept; /* without the columns */
    bool by_columns;
    int64_t columns, column[2], tiles; /* the innermost kept axis */
    int64_t length, stride;            /* the reduced one */
} argmax;

#define KEEP(v) (v)
#define KEY_F32(v) key_of_float((v) + 0.0f, INT32_MAX)
#define KEY_F64(v) key_of_double((v) + 0.0, INT64_MAX)

#define NAME f32
#define TYPE float
#define KEY int32_t
#define PLACE int32_t
#define LOAD KEY_F32
#include "kernels/argmax_body.h"

#define NAME f64
#define TYPE double
#define KEY int64_t
#define PLACE int64_t
#define LOAD KEY_F64
#include "kernels/argmax_body.h"

#define NAME i32
#define TYPE int32_t
#define KEY int32_t
#define PLACE int32_t
#define LOAD KEEP
#include "kernels/argmax_body.h"

#define NAME i64
#define TYPE int64_t
#define KEY int64_t
#define PLACE int64_t
#define LOAD KEEP
#include "kernels/argmax_body.h"

#define NAME u8
#define TYPE uint8_t
#define KEY int32_t
#define PLACE int32_t
#define LOAD KEEP
#include "kernels/argmax_body.h"

void CPU_LEVEL(cpu_argmax)(const cpu_call *c) {
    const cpu_view *x = &c->in[0], *y = &c->out[0];
    const uint32_t axis = (uint32_t)__builtin_ctz(c->attr->reduce.axes);
    argmax r = {.x = x->base, .y = y->base, .columns = 1, .tiles = 1};
    r.length = x->size[axis];
    r.stride = x->stride[axis];
    const int64_t results = cpu_view_count(y);
    if (results == 0 || r.length == 0) return;
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis) walk_add(&r.kept, y->size[d], x->size[d] == 1 ? 0 : x->stride[d], y->stride[d], 0);
    walk_sort(&r.kept, X);
    walk_merge(&r.kept);
    if (r.kept.n > 0 && r.length < MOST_PLACES) {
        const uint32_t last = r.kept.n - 1;
        const int64_t kept = walk_magnitude(r.kept.stride[last][X]);
        r.by_columns = kept != 0 && kept < walk_magnitude(r.stride);
        if (r.by_columns) {
            r.columns = r.kept.size[last];
            r.column[X] = r.kept.stride[last][X];
            r.column[Y] = r.kept.stride[last][Y];
            r.tiles = (r.columns + TILE - 1) / TILE;
            r.kept.n--;
        }
    }
    const int64_t tasks = walk_count(&r.kept, 0, r.kept.n) * r.tiles;
    const double ns = (double)results * (double)r.length * 0.3;
    switch (x->dtype) {
    case FNX_F32: cpu_parallel(c->device, ns, tasks, f32_tasks, &r); break;
    case FNX_F64: cpu_parallel(c->device, ns, tasks, f64_tasks, &r); break;
    case FNX_I32: cpu_parallel(c->device, ns, tasks, i32_tasks, &r); break;
    case FNX_I64: cpu_parallel(c->device, ns, tasks, i64_tasks, &r); break;
    default: cpu_parallel(c->device, ns, tasks, u8_tasks, &r); break;
    }
}
