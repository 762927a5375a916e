/* Matrix products: one inner product per element of the result. */
#include "ref.h"

/* The only loops written per dtype, since nearly all time of a training step is spent here. */
#define FLOAT_DOT(type) \
    do { \
        const type *p = (const type *)(const void *)a->base + a_offset; \
        const type *q = (const type *)(const void *)b->base + b_offset; \
        for (int64_t i = 0; i < n; i++) sum += (double)p[i * a_step] * (double)q[i * b_step]; \
    } while (0)

ref_cell ref_dot(const ref_view *a, int64_t a_offset, int64_t a_step, const ref_view *b, int64_t b_offset,
                 int64_t b_step, int64_t n) {
    double sum = 0;
    int64_t wrapped = 0;
    if (n == 0) return (ref_cell){0};
    switch (a->dtype) {
    case FNX_F32: FLOAT_DOT(float); return (ref_cell){.f = sum};
    case FNX_F64: FLOAT_DOT(double); return (ref_cell){.f = sum};
    default:
        for (int64_t i = 0; i < n; i++) {
            const int64_t p = ref_load(a, a_offset + i * a_step).i, q = ref_load(b, b_offset + i * b_step).i;
            wrapped = ref_wrap_add(wrapped, ref_wrap_mul(p, q));
        }
        return (ref_cell){.i = wrapped};
    }
}

/* y[.., i, j] = sum over k of a[.., i, k] b[.., k, j]. Batch axes of size 1 have stride 0. */
void ref_matmul(const ref_call *c) {
    const ref_view *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    const uint32_t row = y->rank - 2u, column = y->rank - 1u;
    int64_t at[FNX_MAX_RANK] = {0};
    for (bool more = ref_count(y) > 0; more; more = ref_next(y, y->rank, at)) {
        int64_t a_at[FNX_MAX_RANK], b_at[FNX_MAX_RANK];
        for (uint32_t d = 0; d < y->rank; d++) a_at[d] = b_at[d] = at[d];
        a_at[column] = b_at[row] = 0; /* k */
        ref_store(y, ref_offset(y, at),
                  ref_dot(a, ref_offset(a, a_at), a->stride[column], b, ref_offset(b, b_at), b->stride[row],
                          a->size[column]));
    }
}
