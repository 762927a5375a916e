/* Public functions of reductions: the record keeps the reduced axes, a reshape drops them. */
#include "ops/record.h"
#include "tensor/shape.h"

#include <fornax/ops.h>

/* The mask of axes; false with `*bad` for one that is not there or stands twice. */
static bool axes_mask(const fnx_tensor *x, fnx_axes axes, uint32_t *out, int *bad) {
    *out = axes.count == 0 ? (1u << x->rank) - 1 : 0;
    for (int i = 0; i < axes.count; i++) {
        int a;
        *bad = axes.axis[i];
        if (!fnx_shape_axis(x->rank, axes.axis[i], &a) || *out >> a & 1) return false;
        *out |= 1u << a;
    }
    return true;
}

static fnx_tensor *without(fnx_tensor *y, uint32_t axes) {
    int64_t sizes[FNX_MAX_RANK];
    int rank = 0;
    if (fnx_state(y) == FNX_FAILED) return y;
    for (int d = 0; d < y->rank; d++)
        if (!(axes >> d & 1)) sizes[rank++] = y->size[d];
    return fnx_reshape(y, rank, sizes);
}

static fnx_tensor *reduce(int op, fnx_tensor *x, fnx_axes axes, bool keep) {
    fnx_attr_reduce attr = {0, 0};
    int bad = 0;
    if (!fnx_usable(x)) return fnx_unusable(fnx_ops[op].name, 0, x);
    if (!axes_mask(x, axes, &attr.axes, &bad)) {
        char text[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(FNX_E_SHAPE, "%s: axis %d is out of range, or named twice, for %s", fnx_ops[op].name,
                                 bad, fnx_tensor_describe(x, text));
    }
    fnx_tensor *y = fnx_record(&(fnx_call){.op = (uint16_t)op, .n_operands = 1, .in = &x, .attr = &attr});
    return keep ? y : without(y, attr.axes);
}

fnx_tensor *fnx_sum(fnx_tensor *x, fnx_axes axes, bool keep) { return reduce(FNX_OP_sum, x, axes, keep); }
fnx_tensor *fnx_max(fnx_tensor *x, fnx_axes axes, bool keep) { return reduce(FNX_OP_max, x, axes, keep); }
fnx_tensor *fnx_min(fnx_tensor *x, fnx_axes axes, bool keep) { return reduce(FNX_OP_min, x, axes, keep); }
fnx_tensor *fnx_argmax(fnx_tensor *x, int axis, bool keep) {
    if (axis < -128 || axis > 127) return fnx_tensor_failed(FNX_E_SHAPE, "argmax: axis %d is out of range", axis);
    return reduce(FNX_OP_argmax, x, FNX_AXES((int8_t)axis), keep);
}

fnx_tensor *fnx_mean(fnx_tensor *x, fnx_axes axes, bool keep) {
    char text[FNX_DESCRIBE_BYTES];
    if (!fnx_usable(x)) return fnx_unusable("mean", 0, x);
    if (!fnx_dtype_is_float(x->dtype))
        return fnx_tensor_failed(FNX_E_DTYPE, "mean: %s is no float: fnx_cast() it", fnx_tensor_describe(x, text));
    fnx_tensor *sum = fnx_sum(x, axes, keep);
    if (fnx_state(sum) == FNX_FAILED) return sum;
    int64_t n = 1;
    uint32_t mask;
    int bad;
    axes_mask(x, axes, &mask, &bad);
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1) n *= x->size[d];
    return n ? fnx_mul_scalar(sum, 1.0 / (double)n) : fnx_div_scalar(sum, 0); /* over nothing: 0 / 0 */
}
