/* sum, max and min over any axes of a view of any strides.
 *
 * Axes are ordered by the operand's strides and merged. If the innermost is a reduced one, each result is a run of
 * elements (a row); if it is a kept one, results are made a tile at a time (columns). Few results of many elements
 * are cut into chunks. What is cut where depends on sizes alone, so bits do not depend on the number of threads. */
#include "kernels/kernel.h"
#include "kernels/keys.h"
#include "kernels/walk.h"

enum { X = 0, Y = 1 };
enum { LANES = 64, TILE = 128, MOST_CHUNKS = 32, LEAST_CHUNK = 16384 };

typedef struct reduce {
    const char *x;
    char *y;
    walk_axes kept;    /* without the columns */
    walk_axes reduced; /* at least one axis */
    bool by_columns;
    int64_t columns, column[2], tiles; /* the innermost kept axis, in tiles; 1 where rows are reduced */
    int64_t length;                    /* elements per result */
    int64_t tasks, chunks, width;      /* rows or tiles; parts of each; totals of each part */
    void *totals;
} reduce;

#define KEEP(v) (v)
#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

#define NAME sum_f32
#define TYPE float
#define LANE float
#define TOTAL double
#define LOAD KEEP
#define JOIN ADD
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME sum_f64
#define TYPE double
#define LANE double
#define TOTAL double
#define LOAD KEEP
#define JOIN ADD
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME sum_i32
#define TYPE uint32_t
#define LANE uint32_t
#define TOTAL uint32_t
#define LOAD KEEP
#define JOIN ADD
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME sum_i64
#define TYPE uint64_t
#define LANE uint64_t
#define TOTAL uint64_t
#define LOAD KEEP
#define JOIN ADD
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME sum_u8
#define TYPE uint8_t
#define LANE uint32_t
#define TOTAL uint32_t
#define LOAD KEEP
#define JOIN ADD
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define MAX_KEY_F32(v) key_of_float(v, INT32_MAX)
#define MIN_KEY_F32(v) key_of_float(v, INT32_MIN)
#define MAX_KEY_F64(v) key_of_double(v, INT64_MAX)
#define MIN_KEY_F64(v) key_of_double(v, INT64_MIN)

#define NAME max_f32
#define TYPE float
#define LANE int32_t
#define TOTAL int32_t
#define LOAD MAX_KEY_F32
#define JOIN LARGER
#define START INT32_MIN
#define STORE float_of_key
#include "kernels/reduce_body.h"

#define NAME max_f64
#define TYPE double
#define LANE int64_t
#define TOTAL int64_t
#define LOAD MAX_KEY_F64
#define JOIN LARGER
#define START INT64_MIN
#define STORE double_of_key
#include "kernels/reduce_body.h"

#define NAME max_i32
#define TYPE int32_t
#define LANE int32_t
#define TOTAL int32_t
#define LOAD KEEP
#define JOIN LARGER
#define START INT32_MIN
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME max_i64
#define TYPE int64_t
#define LANE int64_t
#define TOTAL int64_t
#define LOAD KEEP
#define JOIN LARGER
#define START INT64_MIN
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME max_u8
#define TYPE uint8_t
#define LANE uint8_t
#define TOTAL uint8_t
#define LOAD KEEP
#define JOIN LARGER
#define START 0
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME min_f32
#define TYPE float
#define LANE int32_t
#define TOTAL int32_t
#define LOAD MIN_KEY_F32
#define JOIN SMALLER
#define START INT32_MAX
#define STORE float_of_key
#include "kernels/reduce_body.h"

#define NAME min_f64
#define TYPE double
#define LANE int64_t
#define TOTAL int64_t
#define LOAD MIN_KEY_F64
#define JOIN SMALLER
#define START INT64_MAX
#define STORE double_of_key
#include "kernels/reduce_body.h"

#define NAME min_i32
#define TYPE int32_t
#define LANE int32_t
#define TOTAL int32_t
#define LOAD KEEP
#define JOIN SMALLER
#define START INT32_MAX
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME min_i64
#define TYPE int64_t
#define LANE int64_t
#define TOTAL int64_t
#define LOAD KEEP
#define JOIN SMALLER
#define START INT64_MAX
#define STORE KEEP
#include "kernels/reduce_body.h"

#define NAME min_u8
#define TYPE uint8_t
#define LANE uint8_t
#define TOTAL uint8_t
#define LOAD KEEP
#define JOIN SMALLER
#define START UINT8_MAX
#define STORE KEEP
#include "kernels/reduce_body.h"

static const struct {
    uint16_t op, dtype;
    void (*run)(cpu_device *device, reduce *r);
} reductions[] = {
    {FNX_OP_sum, FNX_F32, sum_f32_reduce}, {FNX_OP_sum, FNX_F64, sum_f64_reduce}, {FNX_OP_sum, FNX_I32, sum_i32_reduce},
    {FNX_OP_sum, FNX_I64, sum_i64_reduce}, {FNX_OP_sum, FNX_U8, sum_u8_reduce},   {FNX_OP_max, FNX_F32, max_f32_reduce},
    {FNX_OP_max, FNX_F64, max_f64_reduce}, {FNX_OP_max, FNX_I32, max_i32_reduce}, {FNX_OP_max, FNX_I64, max_i64_reduce},
    {FNX_OP_max, FNX_U8, max_u8_reduce},   {FNX_OP_min, FNX_F32, min_f32_reduce}, {FNX_OP_min, FNX_F64, min_f64_reduce},
    {FNX_OP_min, FNX_I32, min_i32_reduce}, {FNX_OP_min, FNX_I64, min_i64_reduce}, {FNX_OP_min, FNX_U8, min_u8_reduce},
};

/* Axes of one kind, of operand and result. A kept axis may be broadcast in the operand, never in the result. */
static void collect(walk_axes *a, const cpu_view *x, const cpu_view *y, uint32_t axes, bool reduced) {
    for (uint32_t d = 0; d < x->rank; d++) {
        if (((axes >> d) & 1) != reduced) continue;
        walk_add(a, reduced ? x->size[d] : y->size[d], x->size[d] == 1 ? 0 : x->stride[d], reduced ? 0 : y->stride[d],
                 0);
    }
    walk_sort(a, X);
    walk_merge(a);
}

static reduce plan(const cpu_call *c) {
    const cpu_view *x = &c->in[0], *y = &c->out[0];
    reduce r = {.x = x->base, .y = y->base, .columns = 1, .tiles = 1, .width = 1, .chunks = 1};
    collect(&r.kept, x, y, c->attr->reduce.axes, false);
    collect(&r.reduced, x, y, c->attr->reduce.axes, true);
    r.length = walk_count(&r.reduced, 0, r.reduced.n);
    if (r.reduced.n == 0) r.reduced = (walk_axes){.n = 1, .size = {1}};
    if (r.length == 0) r.reduced = (walk_axes){.n = 1, .size = {1}}; /* nothing is walked, but divided by */
    if (r.kept.n > 0) {
        const uint32_t last = r.kept.n - 1;
        const int64_t kept = walk_magnitude(r.kept.stride[last][X]);
        const int64_t reduced = walk_magnitude(r.reduced.stride[r.reduced.n - 1][X]);
        r.by_columns = r.length <= 1 || (kept != 0 && kept < reduced);
        if (r.by_columns) {
            r.columns = r.kept.size[last];
            r.column[X] = r.kept.stride[last][X];
            r.column[Y] = r.kept.stride[last][Y];
            r.tiles = (r.columns + TILE - 1) / TILE;
            r.width = TILE;
            r.kept.n--;
        }
    }
    r.tasks = walk_count(&r.kept, 0, r.kept.n) * r.tiles;
    const int64_t width = r.by_columns && r.columns < TILE ? r.columns : r.width;
    if (r.tasks > 0 && r.tasks < MOST_CHUNKS / 2) {
        int64_t chunks = r.length * width / LEAST_CHUNK;
        if (chunks > MOST_CHUNKS / r.tasks) chunks = MOST_CHUNKS / r.tasks;
        if (chunks > 1) r.chunks = chunks;
    }
    return r;
}

void CPU_LEVEL(cpu_reduce)(const cpu_call *c) {
    reduce r = plan(c);
    if (r.tasks == 0) return;
    for (uint32_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].op == c->op && reductions[i].dtype == c->in[0].dtype) reductions[i].run(c->device, &r);
}
