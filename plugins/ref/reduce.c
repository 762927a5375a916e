/* Reductions: for each position of the result, a walk over the reduced axes. */
#include "ref.h"

/* The reduced axes only: x with every other axis at size 1. */
static ref_view reduced_axes(const ref_view *x, uint32_t axes) {
    ref_view v = *x;
    for (uint32_t d = 0; d < v.rank; d++)
        if (!((axes >> d) & 1)) v.size[d] = 1;
    return v;
}

static ref_cell combine(uint16_t op, ref_cell a, ref_cell b, bool is_float) {
    return op == FNX_OP_sum   ? ref_add(a, b, is_float)
           : op == FNX_OP_max ? ref_maximum(a, b, is_float)
                              : ref_minimum(a, b, is_float);
}

void ref_reduce(const ref_call *c) {
    const ref_view *x = &c->in[0], *y = &c->out[0];
    const ref_view inner = reduced_axes(x, c->attr.reduce.axes);
    const bool is_float = ref_is_float(y->dtype);
    int64_t at[FNX_MAX_RANK] = {0};
    for (bool more = ref_count(y) > 0; more; more = ref_next(y, y->rank, at)) {
        const int64_t base = ref_offset(x, at);
        int64_t in[FNX_MAX_RANK] = {0};
        ref_cell sum = {0}; /* over nothing */
        if (ref_count(&inner) > 0) {
            sum = ref_load(x, base);
            while (ref_next(&inner, inner.rank, in))
                sum = combine(c->op, sum, ref_load(x, base + ref_offset(&inner, in)), is_float);
        }
        ref_store(y, ref_offset(y, at), sum);
    }
}

/* The lowest index of the largest element; the first NaN is larger than everything. */
void ref_argmax(const ref_call *c) {
    const ref_view *x = &c->in[0], *y = &c->out[0];
    const uint32_t axis = (uint32_t)__builtin_ctz(c->attr.reduce.axes);
    const bool is_float = ref_is_float(x->dtype);
    int64_t at[FNX_MAX_RANK] = {0};
    for (bool more = ref_count(y) > 0; more; more = ref_next(y, y->rank, at)) {
        const int64_t base = ref_offset(x, at);
        ref_cell best = {0};
        int64_t index = 0;
        for (int64_t i = 0; i < x->size[axis]; i++) {
            const ref_cell v = ref_load(x, base + i * x->stride[axis]);
            if (i == 0 || ref_beats(v, best, is_float)) best = v, index = i;
        }
        ref_store(y, ref_offset(y, at), (ref_cell){.i = index});
    }
}
