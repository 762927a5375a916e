/* Public functions of ops that change shapes. */
#include "ops/record.h"
#include "tensor/device.h"
#include "tensor/shape.h"

#include <fornax/ops.h>

static fnx_tensor *bad_axis(const char *op, const fnx_tensor *x, int axis) {
    char text[FNX_DESCRIBE_BYTES];
    return fnx_tensor_failed(FNX_E_SHAPE, "%s: axis %d is out of range for %s", op, axis, fnx_tensor_describe(x, text));
}

static fnx_tensor *no_array(const char *op, const char *name) {
    return fnx_tensor_failed(FNX_E_INVALID, "%s: %s is NULL", op, name);
}

static fnx_tensor *last_error(void) { return fnx_tensor_failed_from_last(); }

fnx_tensor *fnx_reshape(fnx_tensor *x, int rank, const int64_t *sizes) {
    int64_t resolved[FNX_MAX_RANK] = {0}, known;
    int open = -1;
    char text[FNX_DESCRIBE_BYTES];
    if (!fnx_usable(x)) return fnx_unusable("reshape", 0, x);
    if (rank < 0 || rank > (int)FNX_MAX_RANK)
        return fnx_tensor_failed(FNX_E_SHAPE, "reshape: rank %d is not in 0 to %u", rank, FNX_MAX_RANK);
    if (rank && !sizes) return no_array("reshape", "sizes");
    for (int d = 0; d < rank; d++) {
        resolved[d] = sizes[d];
        if (sizes[d] == -1 && open < 0) open = d, resolved[d] = 1;
    }
    if (fnx_shape_check("reshape", x->dtype, rank, resolved, &known)) return last_error();
    if (open >= 0) {
        if (known == 0 || x->count % known)
            return fnx_tensor_failed(FNX_E_SHAPE, "reshape: the elements of %s do not fill the other sizes evenly",
                                     fnx_tensor_describe(x, text));
        resolved[open] = x->count / known;
    }
    return fnx_record(
        &(fnx_call){.op = FNX_OP_reshape, .n_operands = 1, .in = &x, .rank = (uint8_t)rank, .sizes = resolved});
}

fnx_tensor *fnx_flatten(fnx_tensor *x, int first_axis) {
    int64_t sizes[FNX_MAX_RANK + 1];
    int a;
    if (!fnx_usable(x)) return fnx_unusable("flatten", 0, x);
    if (!fnx_shape_axis(x->rank, first_axis, &a)) return bad_axis("flatten", x, first_axis);
    sizes[a] = 1;
    for (int d = 0; d < a; d++) sizes[d] = x->size[d];
    for (int d = a; d < x->rank; d++) sizes[a] *= x->size[d];
    return fnx_reshape(x, a + 1, sizes);
}

fnx_tensor *fnx_permute(fnx_tensor *x, const int *axes) {
    fnx_attr_permute attr = {{0}};
    unsigned seen = 0;
    if (!fnx_usable(x)) return fnx_unusable("permute", 0, x);
    if (x->rank && !axes) return no_array("permute", "axes");
    for (int d = 0; d < x->rank; d++) {
        int a;
        if (!fnx_shape_axis(x->rank, axes[d], &a) || seen >> a & 1) {
            char text[FNX_DESCRIBE_BYTES];
            return fnx_tensor_failed(FNX_E_SHAPE, "permute: axis %d is out of range, or named twice, for %s", axes[d],
                                     fnx_tensor_describe(x, text));
        }
        seen |= 1u << a;
        attr.from[d] = (uint8_t)a;
    }
    return fnx_record(&(fnx_call){.op = FNX_OP_permute, .n_operands = 1, .in = &x, .attr = &attr});
}

fnx_tensor *fnx_transpose(fnx_tensor *x, int axis_a, int axis_b) {
    int axes[FNX_MAX_RANK], a, b;
    if (!fnx_usable(x)) return fnx_unusable("transpose", 0, x);
    if (!fnx_shape_axis(x->rank, axis_a, &a)) return bad_axis("transpose", x, axis_a);
    if (!fnx_shape_axis(x->rank, axis_b, &b)) return bad_axis("transpose", x, axis_b);
    for (int d = 0; d < x->rank; d++) axes[d] = d == a ? b : d == b ? a : d;
    return fnx_permute(x, axes);
}

fnx_tensor *fnx_expand(fnx_tensor *x, int rank, const int64_t *sizes) {
    int64_t resolved[FNX_MAX_RANK], count;
    if (!fnx_usable(x)) return fnx_unusable("expand", 0, x);
    if (rank < x->rank || rank > (int)FNX_MAX_RANK)
        return fnx_tensor_failed(FNX_E_SHAPE, "expand: rank %d is not in %d to %u", rank, x->rank, FNX_MAX_RANK);
    if (rank && !sizes) return no_array("expand", "sizes");
    for (int d = 0; d < rank; d++)
        resolved[d] = sizes[d] == -1 && d >= rank - x->rank ? x->size[d - rank + x->rank] : sizes[d];
    if (fnx_shape_check("expand", x->dtype, rank, resolved, &count)) return last_error();
    return fnx_record(
        &(fnx_call){.op = FNX_OP_expand, .n_operands = 1, .in = &x, .rank = (uint8_t)rank, .sizes = resolved});
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static fnx_attr_slice steps_of(const fnx_tensor *x, const int64_t *steps) {
    fnx_attr_slice a;
    for (int d = 0; d < (int)FNX_MAX_RANK; d++) a.step[d] = steps && d < x->rank ? steps[d] : 1;
    return a;
}

/* Negative starts count from the end. */
static void starts_of(const fnx_tensor *x, const int64_t *starts, uint64_t *out) {
    for (int d = 0; d < x->rank; d++) out[d] = (uint64_t)(starts[d] < 0 ? starts[d] + x->size[d] : starts[d]);
}

fnx_tensor *fnx_slice_all(fnx_tensor *x, const int64_t *starts, const int64_t *sizes, const int64_t *steps) {
    uint64_t from[FNX_MAX_RANK];
    int64_t count;
    if (!fnx_usable(x)) return fnx_unusable("slice", 0, x);
    if (x->rank && !starts) return no_array("slice", "starts");
    if (fnx_shape_check("slice", x->dtype, x->rank, sizes, &count)) return last_error();
    fnx_attr_slice attr = steps_of(x, steps);
    starts_of(x, starts, from);
    return fnx_record(&(fnx_call){.op = FNX_OP_slice,
                                  .n_operands = 1,
                                  .in = &x,
                                  .attr = &attr,
                                  .scalars = from,
                                  .n_scalars = x->rank,
                                  .rank = x->rank,
                                  .sizes = sizes});
}

fnx_tensor *fnx_slice(fnx_tensor *x, int axis, int64_t start, int64_t size) {
    int64_t starts[FNX_MAX_RANK] = {0}, sizes[FNX_MAX_RANK];
    int a;
    if (!fnx_usable(x)) return fnx_unusable("slice", 0, x);
    if (!fnx_shape_axis(x->rank, axis, &a)) return bad_axis("slice", x, axis);
    for (int d = 0; d < x->rank; d++) sizes[d] = x->size[d];
    starts[a] = start, sizes[a] = size;
    return fnx_slice_all(x, starts, sizes, NULL);
}

fnx_tensor *fnx_slice_assign(fnx_tensor *x, fnx_tensor *update, const int64_t *starts, const int64_t *steps_or_null) {
    fnx_tensor *in[] = {x, update};
    uint64_t from[FNX_MAX_RANK];
    if (!fnx_usable(x)) return fnx_unusable("slice_assign", 0, x);
    if (x->rank && !starts) return no_array("slice_assign", "starts");
    fnx_attr_slice attr = steps_of(x, steps_or_null);
    starts_of(x, starts, from);
    return fnx_record(&(fnx_call){
        .op = FNX_OP_slice_assign, .n_operands = 2, .in = in, .attr = &attr, .scalars = from, .n_scalars = x->rank});
}

fnx_tensor *fnx_concat(fnx_tensor *const *xs, int n, int axis) {
    int a;
    if (n < 1 || n > UINT16_MAX || !xs) return fnx_tensor_failed(FNX_E_INVALID, "concat: %d tensors", n);
    if (!fnx_usable(xs[0])) return fnx_unusable("concat", 0, xs[0]);
    if (!fnx_shape_axis(xs[0]->rank, axis, &a)) return bad_axis("concat", xs[0], axis);
    fnx_attr_axis attr = {(uint32_t)a, 0};
    return fnx_record(&(fnx_call){.op = FNX_OP_concat, .n_operands = (uint16_t)n, .in = xs, .attr = &attr});
}

fnx_tensor *fnx_pad(fnx_tensor *x, const int64_t *low, const int64_t *high, double value) {
    fnx_attr_pad attr = {{0}, {0}};
    uint64_t bits;
    if (!fnx_usable(x)) return fnx_unusable("pad", 0, x);
    if (x->rank && (!low || !high)) return no_array("pad", low ? "high" : "low");
    if (!fnx_scalar_bits(x->dtype, value, &bits))
        return fnx_tensor_failed(FNX_E_DTYPE, "pad: %g is no %s", value, fnx_dtype_text(x->dtype));
    for (int d = 0; d < x->rank; d++) attr.low[d] = low[d], attr.high[d] = high[d];
    return fnx_record(
        &(fnx_call){.op = FNX_OP_pad, .n_operands = 1, .in = &x, .attr = &attr, .scalars = &bits, .n_scalars = 1});
}

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

fnx_tensor *fnx_gather(fnx_tensor *x, int axis, fnx_tensor *index) {
    fnx_tensor *in[] = {x, index};
    int a;
    if (!fnx_usable(x)) return fnx_unusable("gather", 0, x);
    if (!fnx_shape_axis(x->rank, axis, &a)) return bad_axis("gather", x, axis);
    fnx_attr_axis attr = {(uint32_t)a, 0};
    return fnx_record(&(fnx_call){.op = FNX_OP_gather, .n_operands = 2, .in = in, .attr = &attr});
}

fnx_tensor *fnx_scatter_add(fnx_tensor *target, int axis, fnx_tensor *index, fnx_tensor *update) {
    fnx_tensor *in[] = {target, index, update};
    int a;
    if (!fnx_usable(target)) return fnx_unusable("scatter_add", 0, target);
    if (!fnx_shape_axis(target->rank, axis, &a)) return bad_axis("scatter_add", target, axis);
    fnx_attr_axis attr = {(uint32_t)a, 0};
    return fnx_record(&(fnx_call){.op = FNX_OP_scatter_add, .n_operands = 3, .in = in, .attr = &attr});
}

fnx_tensor *fnx_one_hot(fnx_tensor *index, int64_t depth, int dtype) {
    if (!fnx_usable(index)) return fnx_unusable("one_hot", 0, index);
    char text[FNX_DESCRIBE_BYTES];
    fnx_tensor_describe(index, text);
    if (!(FNX_MASK(index->dtype) & FNX_MASK_INTS))
        return fnx_tensor_failed(FNX_E_DTYPE, "one_hot: the index is %s, not integers: fnx_cast() it", text);
    if (index->rank >= (int)FNX_MAX_RANK)
        return fnx_tensor_failed(FNX_E_SHAPE, "one_hot: there is no axis left for the depth: the index is %s", text);
    if (depth < 1)
        return fnx_tensor_failed(FNX_E_INVALID, "one_hot: the depth is %lld, not at least 1", (long long)depth);
    FNX_SCOPE_QUIET;
    int64_t sizes[FNX_MAX_RANK];
    int rank = index->rank;
    for (int d = 0; d < rank; d++) sizes[d] = index->size[d];
    sizes[rank] = 1;
    fnx_tensor *column =
        fnx_cast(fnx_reshape(index, rank + 1, sizes), FNX_I64); /* a depth may be more than u8 can count */
    sizes[rank] = depth;
    for (int d = 0; d < rank; d++) sizes[d] = 1;
    fnx_tensor *numbers = fnx_iota(index->device, FNX_I64, rank + 1, sizes, rank);
    return fnx_pass(fnx_cast(fnx_equal(column, numbers), dtype ? dtype : index->device->settings.float_dtype));
}
