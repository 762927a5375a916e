/* Inference of elementwise ops, reductions, shapes and indexes. The first lines of a rule are its common case. */
#include "ops/infer.h"

#include "base/alloc.h"
#include "tensor/shape.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static const char *name_of(const fnx_tensor *y) { return fnx_ops[y->op].name; }

#define TEXTS(a, b) \
    char a##_text[FNX_DESCRIBE_BYTES], b##_text[FNX_DESCRIBE_BYTES]; \
    fnx_tensor_describe(a, a##_text), fnx_tensor_describe(b, b##_text)

fnx_status fnx_infer_count(fnx_tensor *y) {
    if (fnx_shape_count(y) == FNX_OK) return FNX_OK;
    char text[FNX_DESCRIBE_BYTES];
    return fnx_tensor_fail(y, FNX_E_SHAPE, "%s: the result would be %s: sizes are negative, or their product overflows",
                           name_of(y), fnx_tensor_describe(y, text));
}

fnx_status fnx_infer_takes(fnx_tensor *y, int k) {
    const fnx_tensor *x = fnx_operand(y, k);
    if (!x || fnx_ops[y->op].dtypes >> x->dtype & 1) return FNX_OK;
    char text[FNX_DESCRIBE_BYTES], list[96];
    fnx_dtype_list(fnx_ops[y->op].dtypes, list, sizeof list);
    return fnx_tensor_fail(y, FNX_E_DTYPE, "%s: operand %d is %s, but the op takes %s: fnx_cast() it", name_of(y), k,
                           fnx_tensor_describe(x, text), list);
}

void fnx_infer_like(fnx_tensor *y, const fnx_tensor *x) {
    y->dtype = x->dtype, y->rank = x->rank, y->count = x->count;
    for (int d = 0; d < x->rank; d++) y->size[d] = x->size[d];
}

static fnx_status same_dtype(fnx_tensor *y, const fnx_tensor *a, const fnx_tensor *b) {
    if (a->dtype == b->dtype) return FNX_OK;
    TEXTS(a, b);
    return fnx_tensor_fail(y, FNX_E_DTYPE, "%s: dtypes differ: %s and %s; nothing is promoted, fnx_cast() one",
                           name_of(y), a_text, b_text);
}

/* y's sizes widened so that these broadcast to them. */
static bool broadcast(fnx_tensor *y, int rank, const int64_t *size) {
    if (rank > y->rank) {
        int shift = rank - y->rank;
        for (int d = rank - 1; d >= 0; d--) y->size[d] = d < shift ? 1 : y->size[d - shift];
        y->rank = (uint8_t)rank;
    }
    for (int d = 0; d < rank; d++) {
        int64_t *to = &y->size[d + y->rank - rank];
        if (*to == 1) *to = size[d];
        else if (size[d] != 1 && size[d] != *to) return false;
    }
    return true;
}

static fnx_status no_broadcast(fnx_tensor *y, const fnx_tensor *a, const fnx_tensor *b) {
    TEXTS(a, b);
    return fnx_tensor_fail(y, FNX_E_SHAPE,
                           "%s: shapes do not broadcast: %s and %s; from the last axis on, sizes must be equal or 1",
                           name_of(y), a_text, b_text);
}

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

fnx_status infer_same(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0];
    if (!(fnx_ops[y->op].dtypes >> x->dtype & 1)) return fnx_infer_takes(y, 0);
    fnx_infer_like(y, x);
    return FNX_OK;
}

fnx_status infer_arithmetic(fnx_tensor *y) {
    const fnx_tensor *a = y->in[0], *b = y->in[1];
    if (!a || !b) a = b = a ? a : b; /* the other one is a scalar */
    if (!(fnx_ops[y->op].dtypes >> a->dtype & 1)) return fnx_infer_takes(y, y->in[0] ? 0 : 1);
    if (a->dtype != b->dtype) return same_dtype(y, a, b);
    fnx_infer_like(y, a);
    if (a->rank == b->rank) {
        int d = 0;
        while (d < a->rank && a->size[d] == b->size[d]) d++;
        if (d == a->rank) return FNX_OK;
    }
    return broadcast(y, b->rank, b->size) ? fnx_infer_count(y) : no_broadcast(y, a, b);
}

fnx_status infer_compare(fnx_tensor *y) {
    FNX_TRY(infer_arithmetic(y));
    y->dtype = FNX_BOOL;
    return FNX_OK;
}

fnx_status infer_where(fnx_tensor *y) {
    const fnx_tensor *c = y->in[0], *a = y->in[1], *b = y->in[2];
    if (!a || !b) a = b = a ? a : b;
    if (!c || c->dtype != FNX_BOOL) {
        char text[FNX_DESCRIBE_BYTES];
        return fnx_tensor_fail(y, FNX_E_DTYPE, "where: the condition is %s, not bool: compare or fnx_cast() it",
                               c ? fnx_tensor_describe(c, text) : "a scalar");
    }
    if (!a) return fnx_tensor_fail(y, FNX_E_INVALID, "where: both values are scalars: fnx_fill_like() one");
    FNX_TRY(same_dtype(y, a, b));
    fnx_infer_like(y, c);
    y->dtype = a->dtype;
    if (!broadcast(y, a->rank, a->size)) return no_broadcast(y, c, a);
    if (!broadcast(y, b->rank, b->size)) return no_broadcast(y, a, b);
    return fnx_infer_count(y);
}

fnx_status infer_cast(fnx_tensor *y) {
    int to = y->dtype;
    if (!fnx_dtype_valid(to) || !(FNX_MASK(to) & FNX_MASK_ANY))
        return fnx_tensor_fail(y, FNX_E_DTYPE, "cast: dtype %d (%s) is not supported", to, fnx_dtype_text(to));
    FNX_TRY(infer_same(y));
    y->dtype = (uint8_t)to;
    return fnx_infer_count(y); /* elements may have become larger */
}

fnx_status infer_source(fnx_tensor *y) {
    char list[96];
    fnx_dtype_list(fnx_ops[y->op].dtypes, list, sizeof list);
    if (!fnx_dtype_valid(y->dtype) || !(fnx_ops[y->op].dtypes >> y->dtype & 1))
        return fnx_tensor_fail(y, FNX_E_DTYPE, "%s: dtype %d (%s) is not one of %s", name_of(y), y->dtype,
                               fnx_dtype_text(y->dtype), list);
    return fnx_shape_count(y);
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

fnx_status infer_reduce(fnx_tensor *y) {
    uint32_t axes = ((const fnx_attr_reduce *)fnx_attr(y))->axes;
    FNX_TRY(infer_same(y));
    for (int d = 0; d < y->rank; d++)
        if (axes >> d & 1) y->size[d] = 1;
    return fnx_infer_count(y);
}

fnx_status infer_reduce_nonempty(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0];
    FNX_TRY(infer_reduce(y));
    if (x->count || !y->count) return FNX_OK;
    char text[FNX_DESCRIBE_BYTES];
    return fnx_tensor_fail(y, FNX_E_SHAPE,
                           "%s: %s has no elements along the reduced axes: there is no extremum of nothing", name_of(y),
                           fnx_tensor_describe(x, text));
}

fnx_status infer_argmax(fnx_tensor *y) {
    FNX_TRY(infer_reduce_nonempty(y));
    y->dtype = FNX_I64;
    return fnx_infer_count(y);
}

fnx_status infer_softmax(fnx_tensor *y) { return infer_same(y); }

/* Sizes were given by a gradient that knows them. */
fnx_status infer_given(fnx_tensor *y) {
    FNX_TRY(fnx_infer_takes(y, 0));
    y->dtype = fnx_operand(y, 0)->dtype;
    return fnx_infer_count(y);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

fnx_status infer_matmul(fnx_tensor *y) {
    const fnx_tensor *a = y->in[0], *b = y->in[1];
    FNX_TRY(fnx_infer_takes(y, 0));
    FNX_TRY(same_dtype(y, a, b));
    TEXTS(a, b);
    if (a->rank < 2 || b->rank < 2)
        return fnx_tensor_fail(y, FNX_E_SHAPE, "matmul: operands need two axes at least: %s and %s", a_text, b_text);
    int64_t m = a->size[a->rank - 2], k = a->size[a->rank - 1], k2 = b->size[b->rank - 2], n = b->size[b->rank - 1];
    if (k != k2)
        return fnx_tensor_fail(y, FNX_E_SHAPE,
                               "matmul: inner sizes differ: a is %s, b is %s (a's last axis %" PRId64
                               ", b's axis %d is %" PRId64 ")%s",
                               a_text, b_text, k, b->rank - 2, k2,
                               k == n ? "; did you mean fnx_transpose(b, -2, -1)?" : "");
    y->dtype = a->dtype, y->rank = 0;
    if (!broadcast(y, a->rank - 2, a->size) || !broadcast(y, b->rank - 2, b->size)) return no_broadcast(y, a, b);
    y->size[y->rank] = m, y->size[y->rank + 1] = n;
    y->rank += 2;
    return fnx_infer_count(y);
}

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

static fnx_status check_index(fnx_tensor *y, const fnx_tensor *x, const fnx_tensor *index, uint32_t axis) {
    TEXTS(x, index);
    if (index->dtype != FNX_I32 && index->dtype != FNX_I64)
        return fnx_tensor_fail(y, FNX_E_DTYPE, "%s: the index is %s, not i32 or i64: fnx_cast() it", name_of(y),
                               index_text);
    if (index->rank != x->rank)
        return fnx_tensor_fail(y, FNX_E_SHAPE, "%s: the index %s needs the rank of %s", name_of(y), index_text, x_text);
    for (int d = 0; d < x->rank; d++)
        if ((uint32_t)d != axis && index->size[d] > x->size[d])
            return fnx_tensor_fail(y, FNX_E_SHAPE, "%s: the index %s is longer than %s along axis %d", name_of(y),
                                   index_text, x_text, d);
    return FNX_OK;
}

fnx_status infer_gather(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0], *index = y->in[1];
    FNX_TRY(fnx_infer_takes(y, 0));
    FNX_TRY(check_index(y, x, index, ((const fnx_attr_axis *)fnx_attr(y))->axis));
    fnx_infer_like(y, index);
    y->dtype = x->dtype;
    return fnx_infer_count(y);
}

fnx_status infer_scatter(fnx_tensor *y) {
    const fnx_tensor *target = y->in[0], *index = y->in[1], *update = y->in[2];
    FNX_TRY(fnx_infer_takes(y, 0));
    FNX_TRY(same_dtype(y, target, update));
    FNX_TRY(check_index(y, target, index, ((const fnx_attr_axis *)fnx_attr(y))->axis));
    if (update->rank != index->rank || memcmp(update->size, index->size, sizeof *index->size * index->rank)) {
        TEXTS(index, update);
        return fnx_tensor_fail(y, FNX_E_SHAPE, "scatter_add: the update %s needs the shape of the index %s",
                               update_text, index_text);
    }
    fnx_infer_like(y, target);
    return FNX_OK;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

fnx_status infer_reshape(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0];
    y->dtype = x->dtype;
    FNX_TRY(fnx_infer_count(y));
    if (y->count == x->count) return FNX_OK;
    TEXTS(x, y);
    return fnx_tensor_fail(y, FNX_E_SHAPE, "reshape: %s has %" PRId64 " elements, %s %" PRId64, x_text, x->count,
                           y_text, y->count);
}

fnx_status infer_permute(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0];
    const uint8_t *from = ((const fnx_attr_permute *)fnx_attr(y))->from;
    fnx_infer_like(y, x);
    for (int d = 0; d < x->rank; d++) y->size[d] = x->size[from[d]];
    return FNX_OK;
}

fnx_status infer_expand(fnx_tensor *y) {
    const fnx_tensor *x = y->in[0];
    y->dtype = x->dtype;
    FNX_TRY(fnx_infer_count(y));
    bool ok = x->rank <= y->rank;
    for (int d = 0; d < x->rank && ok; d++) ok = x->size[d] == 1 || x->size[d] == y->size[d + y->rank - x->rank];
    if (ok) return FNX_OK;
    TEXTS(x, y);
    return fnx_tensor_fail(y, FNX_E_SHAPE, "expand: %s does not expand to %s: only axes of size 1 grow", x_text,
                           y_text);
}

/* start + (size - 1) * step stays inside; `whole`: the axis. */
static bool inside(int64_t start, int64_t size, int64_t step, int64_t whole) {
    int64_t last;
    if (size == 0) return start >= 0 && start <= whole;
    if (size < 0 || step == 0 || start < 0 || start >= whole) return false;
    if (__builtin_mul_overflow(size - 1, step, &last) || __builtin_add_overflow(last, start, &last)) return false;
    return last >= 0 && last < whole;
}

static fnx_status check_region(fnx_tensor *y, const fnx_tensor *whole, const int64_t *sizes) {
    const int64_t *step = ((const fnx_attr_slice *)fnx_attr(y))->step;
    for (int d = 0; d < whole->rank; d++) {
        int64_t start = (int64_t)fnx_scalars(y)[d];
        if (inside(start, sizes[d], step[d], whole->size[d])) continue;
        char text[FNX_DESCRIBE_BYTES];
        return fnx_tensor_fail(y, FNX_E_SHAPE,
                               "%s: %" PRId64 " elements from %" PRId64 " with step %" PRId64
                               " do not fit into axis %d of %s",
                               name_of(y), sizes[d], start, step[d], d, fnx_tensor_describe(whole, text));
    }
    return FNX_OK;
}

fnx_status infer_slice(fnx_tensor *y) {
    const fnx_tensor *x = fnx_operand(y, 0);
    FNX_TRY(check_region(y, x, y->size));
    y->dtype = x->dtype;
    return fnx_infer_count(y);
}

fnx_status infer_slice_assign(fnx_tensor *y) {
    const fnx_tensor *x = fnx_operand(y, 0), *update = fnx_operand(y, 1);
    FNX_TRY(same_dtype(y, x, update));
    if (x->rank != update->rank) {
        TEXTS(x, update);
        return fnx_tensor_fail(y, FNX_E_SHAPE, "slice_assign: the update %s needs the rank of %s", update_text, x_text);
    }
    FNX_TRY(check_region(y, x, update->size));
    fnx_infer_like(y, x);
    return FNX_OK;
}

fnx_status infer_concat(fnx_tensor *y) {
    uint32_t axis = ((const fnx_attr_axis *)fnx_attr(y))->axis;
    const fnx_tensor *first = fnx_operand(y, 0);
    fnx_infer_like(y, first);
    for (int k = 1; k < y->n_operands; k++) {
        const fnx_tensor *x = fnx_operand(y, k);
        bool fits = x->rank == first->rank;
        FNX_TRY(same_dtype(y, first, x));
        for (int d = 0; d < first->rank && fits; d++) fits = (uint32_t)d == axis || x->size[d] == first->size[d];
        if (!fits || !fnx_size_add(y->size[axis], x->size[axis], &y->size[axis])) {
            TEXTS(first, x);
            return fnx_tensor_fail(
                y, FNX_E_SHAPE, "concat: operand %d, %s, does not fit to operand 0, %s: all axes but %u must be equal",
                k, x_text, first_text, axis);
        }
    }
    return fnx_infer_count(y);
}

fnx_status infer_pad(fnx_tensor *y) {
    const fnx_tensor *x = fnx_operand(y, 0);
    const fnx_attr_pad *a = fnx_attr(y);
    fnx_infer_like(y, x);
    for (int d = 0; d < x->rank; d++)
        if (a->low[d] < 0 || a->high[d] < 0 || !fnx_size_add(y->size[d], a->low[d], &y->size[d]) ||
            !fnx_size_add(y->size[d], a->high[d], &y->size[d])) {
            char text[FNX_DESCRIBE_BYTES];
            return fnx_tensor_fail(y, FNX_E_SHAPE,
                                   "pad: %" PRId64 " before and %" PRId64 " after axis %d of %s: both must be >= 0",
                                   a->low[d], a->high[d], d, fnx_tensor_describe(x, text));
        }
    return fnx_infer_count(y);
}
