/* matmul: f32 through the library's sgemm, which takes rows or columns next to each other on either side; everything
 * else through own loops, which take any strides. Batch axes are folded into rows or columns where one operand lacks
 * them, so a batch of rows times one weight is one product. */
#include "kernels/dnnl.h"
#include "kernels/gemm.h"
#include "kernels/walk.h"

enum { A = 0, B = 1, Y = 2 };

/* Fewer multiplications than this: own loops without packing, in the time that a call of a library takes. */
enum { SMALL_PRODUCT = 4096, NARROW_PRODUCT = 32 * 32 * 32, NARROW = 16 };

/* Batches of products below this are shared out among threads as wholes. */
enum { SERIAL_PRODUCT = 512 * 512 * 512 };

typedef struct product {
    const cpu_call *call;
    cpu_view a, b, y; /* [m, k], [k, n], [m, n] of the first of the batch */
    walk_axes batch;
} product;

static double work_of(const product *p) { return (double)p->y.size[0] * (double)p->y.size[1] * (double)p->a.size[1]; }

static bool is_small(const product *p) {
    const double work = work_of(p);
    const bool narrow = p->y.size[0] <= NARROW || p->y.size[1] <= NARROW || p->a.size[1] <= NARROW;
    return work < SMALL_PRODUCT || (narrow && work < NARROW_PRODUCT);
}

/* The last two axes. */
static cpu_view matrix_of(const cpu_view *v) {
    cpu_view m = {.base = v->base, .dtype = v->dtype, .rank = 2};
    for (uint32_t d = 0; d < 2; d++) {
        m.size[d] = v->size[v->rank - 2u + d];
        m.stride[d] = m.size[d] == 1 ? 0 : v->stride[v->rank - 2u + d];
    }
    return m;
}

/* Appends `size` positions, `step` apart, to axis d of a matrix. False: its strides do not allow that. */
static bool extend(cpu_view *v, uint32_t d, int64_t size, int64_t step) {
    if (v->size[d] == 1) v->stride[d] = step;
    else if (step != v->size[d] * v->stride[d]) return false;
    v->size[d] *= size;
    return true;
}

/* Folds the innermost batch axis into rows of a and y, or into columns of b and y. */
static bool fold(product *p, uint32_t d, cpu_view *operand, uint32_t view, uint32_t other) {
    const uint32_t last = p->batch.n - 1;
    const int64_t size = p->batch.size[last], *stride = p->batch.stride[last];
    cpu_view v = *operand, y = p->y;
    if (stride[other] != 0 || !extend(&v, d, size, stride[view]) || !extend(&y, d, size, stride[Y])) return false;
    *operand = v;
    p->y = y;
    p->batch.n--;
    return true;
}

static product product_of(const cpu_call *c) {
    const cpu_view *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    product p = {.call = c, .a = matrix_of(a), .b = matrix_of(b), .y = matrix_of(y)};
    for (uint32_t d = 0; d + 2 < y->rank; d++)
        walk_add(&p.batch, y->size[d], a->size[d] == 1 ? 0 : a->stride[d], b->size[d] == 1 ? 0 : b->stride[d],
                 y->stride[d]);
    walk_merge(&p.batch);
    while (p.batch.n > 0 && (fold(&p, 0, &p.a, A, B) || fold(&p, 1, &p.b, B, A))) {}
    return p;
}

/* ---- f32: operands as the library takes them --------------------------------------------------------------------- */

typedef struct operand {
    char form;  /* 'N': elements of a row lie next to each other; 'T': of a column; 0: neither */
    int64_t ld; /* from one row (column) to the next */
} operand;

static operand operand_of(const cpu_view *v) {
    const int64_t rows = v->size[0], columns = v->size[1], row = v->stride[0], column = v->stride[1];
    if ((column == 1 || columns == 1) && (rows == 1 || row >= columns))
        return (operand){'N', rows == 1 ? cpu_most(columns, 1) : row};
    if ((row == 1 || rows == 1) && (columns == 1 || column >= rows))
        return (operand){'T', columns == 1 ? cpu_most(rows, 1) : column};
    return (operand){0, 0};
}

static bool needs_packing(const cpu_view *v) { return operand_of(v).form == 0; }

/* The matrices of an operand or result for all positions of the batch as one view: without batch axes that it lacks. */
static cpu_view with_batch(const product *p, const cpu_view *matrix, uint32_t view) {
    cpu_view v = {.base = matrix->base, .dtype = matrix->dtype};
    for (uint32_t i = 0; i < p->batch.n; i++) {
        if (p->batch.stride[i][view] == 0) continue;
        v.size[v.rank] = p->batch.size[i];
        v.stride[v.rank++] = p->batch.stride[i][view];
    }
    for (uint32_t d = 0; d < 2; d++) {
        v.size[v.rank] = matrix->size[d];
        v.stride[v.rank++] = matrix->stride[d];
    }
    return v;
}

/* Puts packed memory at `at` in the place of a matrix and of its batch; returns a view of that memory. */
static cpu_view replace(product *p, cpu_view *matrix, uint32_t view, char *at) {
    cpu_view packed = with_batch(p, matrix, view);
    uint32_t k = 0;
    packed.base = matrix->base = at;
    cpu_view_pack(&packed, NULL);
    for (uint32_t i = 0; i < p->batch.n; i++)
        if (p->batch.stride[i][view] != 0) p->batch.stride[i][view] = packed.stride[k++];
    for (uint32_t d = 0; d < 2; d++) matrix->stride[d] = packed.stride[k++];
    return packed;
}

static int64_t packed_bytes(const product *p, const cpu_view *matrix, uint32_t view) {
    const cpu_view v = with_batch(p, matrix, view);
    return needs_packing(matrix) ? cpu_view_bytes(&v) : 0;
}

static cpu_view transpose(const cpu_view *v) {
    cpu_view t = *v;
    for (uint32_t d = 0; d < 2; d++) t.size[d] = v->size[1 - d], t.stride[d] = v->stride[1 - d];
    return t;
}

static void one_f32(const cpu_call *c, const cpu_view *a, const cpu_view *b, const cpu_view *y, bool small) {
    if (small || a->size[1] == 0) {
        c->loops->small_gemm(a, b, y);
        return;
    }
    const operand to = operand_of(y);
    const cpu_view at = transpose(a), bt = transpose(b);
    const bool turned = to.form == 'T'; /* then y' = b' a' has rows */
    const cpu_view *left = turned ? &bt : a, *right = turned ? &at : b;
    const operand l = operand_of(left), r = operand_of(right);
    cpu_dnnl_sgemm(l.form, r.form, left->size[0], right->size[1], left->size[1], left->base, l.ld, right->base, r.ld,
                   y->base, to.ld);
}

static void batch_f32(void *context, int thread, int64_t first, int64_t last) {
    const product *p = context;
    const bool small = is_small(p);
    walk w = walk_start(&p->batch, p->batch.n, first);
    (void)thread;
    for (int64_t i = first; i < last; i++, walk_next(&w)) {
        cpu_view a = p->a, b = p->b, y = p->y;
        a.base += w.offset[A] * (int64_t)sizeof(float);
        b.base += w.offset[B] * (int64_t)sizeof(float);
        y.base += w.offset[Y] * (int64_t)sizeof(float);
        one_f32(p->call, &a, &b, &y, small);
    }
}

static void run_f32(product *p) {
    const cpu_call *c = p->call;
    const int64_t batch = walk_count(&p->batch, 0, p->batch.n);
    char *workspace = c->workspace;
    cpu_view result = {0}, packed_result = {0};
    if (!is_small(p)) {
        cpu_view *const matrix[] = {&p->a, &p->b};
        for (uint32_t i = A; i <= B; i++) {
            if (!needs_packing(matrix[i])) continue;
            const cpu_view from = with_batch(p, matrix[i], i), to = replace(p, matrix[i], i, workspace);
            c->loops->copy(c->device, &from, &to);
            workspace += cpu_view_bytes(&to);
        }
        if (needs_packing(&p->y)) {
            result = with_batch(p, &p->y, Y);
            packed_result = replace(p, &p->y, Y, workspace);
        }
    }
    if (batch > 1 && work_of(p) < SERIAL_PRODUCT)
        cpu_parallel(c->device, work_of(p) * (double)batch * 0.02, batch, batch_f32, p);
    else batch_f32(p, 0, 0, batch);
    if (packed_result.base) c->loops->copy(c->device, &packed_result, &result);
}

/* ---- the op ------------------------------------------------------------------------------------------------------ */

void cpu_matmul(const cpu_call *c) {
    product p = product_of(c);
    if (cpu_view_count(&c->out[0]) == 0) return;
    if (p.y.dtype == FNX_F32) {
        run_f32(&p);
        return;
    }
    const uint32_t bytes = cpu_element_bytes(p.y.dtype);
    const int64_t batch = walk_count(&p.batch, 0, p.batch.n);
    const bool small = is_small(&p);
    walk w = walk_start(&p.batch, p.batch.n, 0);
    for (int64_t i = 0; i < batch; i++, walk_next(&w)) {
        cpu_view a = p.a, b = p.b, y = p.y;
        a.base += w.offset[A] * bytes;
        b.base += w.offset[B] * bytes;
        y.base += w.offset[Y] * bytes;
        if (small) c->loops->small_gemm(&a, &b, &y);
        else c->loops->gemm(c->device, &a, &b, &y, false, c->workspace);
    }
}

uint64_t cpu_matmul_workspace(const cpu_call *c) {
    const product p = product_of(c);
    if (cpu_view_count(&c->out[0]) == 0 || is_small(&p)) return 0;
    if (p.y.dtype != FNX_F32) return (uint64_t)c->device->threads * GEMM_THREAD_BYTES;
    return (uint64_t)(packed_bytes(&p, &p.a, A) + packed_bytes(&p, &p.b, B) + packed_bytes(&p, &p.y, Y));
}
