/* Inference of convolution and pooling. */
#include "ops/infer.h"

#include <inttypes.h>

int64_t fnx_window_size(int64_t size, int64_t window, int64_t dilation, int64_t stride, int64_t low, int64_t high) {
    int64_t span, room;
    if (__builtin_mul_overflow(window - 1, dilation, &span) || __builtin_add_overflow(size, low + high, &room))
        return -1;
    return room <= span ? -1 : (room - span - 1) / stride + 1;
}

fnx_status infer_conv(fnx_tensor *y) {
    const fnx_tensor *x = fnx_operand(y, 0), *w = fnx_operand(y, 1);
    const fnx_attr_conv *a = fnx_attr(y);
    char xt[FNX_DESCRIBE_BYTES], wt[FNX_DESCRIBE_BYTES];
    int rank = (int)a->spatial + 2;
    FNX_TRY(fnx_infer_takes(y, 0));
    fnx_tensor_describe(x, xt), fnx_tensor_describe(w, wt);
    if (x->dtype != w->dtype) return fnx_tensor_fail(y, FNX_E_DTYPE, "conv: dtypes differ: x is %s, w is %s", xt, wt);
    if (x->rank != rank || w->rank != rank)
        return fnx_tensor_fail(y, FNX_E_SHAPE, "conv: x and w need %d axes: x is %s, w is %s", rank, xt, wt);
    if (a->groups < 1 || x->size[1] % a->groups || w->size[0] % a->groups || w->size[1] != x->size[1] / a->groups)
        return fnx_tensor_fail(y, FNX_E_SHAPE,
                               "conv: x is %s, w is %s, groups %u: w's axis 1 must be x's axis 1 / groups (%" PRId64
                               "), and groups divide both "
                               "channel counts",
                               xt, wt, a->groups, a->groups ? x->size[1] / a->groups : 0);
    y->dtype = x->dtype, y->rank = (uint8_t)rank;
    y->size[0] = x->size[0], y->size[1] = w->size[0];
    for (int d = 0; d < (int)a->spatial; d++) {
        if (a->stride[d] < 1 || a->dilation[d] < 1 || a->pad_low[d] < 0 || a->pad_high[d] < 0)
            return fnx_tensor_fail(y, FNX_E_INVALID,
                                   "conv: stride and dilation must be at least 1, padding at least 0 (axis %d: stride "
                                   "%d, dilation %d, padding "
                                   "%d and %d)",
                                   d, a->stride[d], a->dilation[d], a->pad_low[d], a->pad_high[d]);
        if (w->size[d + 2] < 1) return fnx_tensor_fail(y, FNX_E_SHAPE, "conv: the kernel is empty: w is %s", wt);
        y->size[d + 2] = fnx_window_size(x->size[d + 2], w->size[d + 2], a->dilation[d], a->stride[d], a->pad_low[d],
                                         a->pad_high[d]);
        if (y->size[d + 2] < 0)
            return fnx_tensor_fail(y, FNX_E_SHAPE,
                                   "conv: the kernel is larger than its input along axis %d: x is %s, w is %s, padding "
                                   "%d and %d, dilation %d",
                                   d + 2, xt, wt, a->pad_low[d], a->pad_high[d], a->dilation[d]);
    }
    return fnx_infer_count(y);
}

static fnx_status pool(fnx_tensor *y, int64_t *out_window) {
    const fnx_tensor *x = fnx_operand(y, 0);
    const fnx_attr_pool *a = fnx_attr(y);
    char text[FNX_DESCRIBE_BYTES];
    const char *name = fnx_ops[y->op].name;
    FNX_TRY(fnx_infer_takes(y, 0));
    fnx_tensor_describe(x, text);
    if (x->rank != (int)a->spatial + 2)
        return fnx_tensor_fail(y, FNX_E_SHAPE, "%s: x needs %u axes, it is %s", name, a->spatial + 2, text);
    fnx_infer_like(y, x);
    *out_window = 1;
    for (int d = 0; d < (int)a->spatial; d++) {
        if (a->window[d] < 1 || a->stride[d] < 1 || a->pad_low[d] < 0 || a->pad_high[d] < 0 ||
            a->pad_low[d] > a->window[d] / 2 || a->pad_high[d] > a->window[d] / 2)
            return fnx_tensor_fail(y, FNX_E_INVALID,
                                   "%s: window and stride must be at least 1, padding at most half the window (axis "
                                   "%d: window %d, stride %d, padding "
                                   "%d and %d)",
                                   name, d, a->window[d], a->stride[d], a->pad_low[d], a->pad_high[d]);
        *out_window *= a->window[d];
        y->size[d + 2] = fnx_window_size(x->size[d + 2], a->window[d], 1, a->stride[d], a->pad_low[d], a->pad_high[d]);
        if (y->size[d + 2] < 0 || *out_window > INT32_MAX)
            return fnx_tensor_fail(
                y, FNX_E_SHAPE,
                "%s: the window is larger than its input along axis %d: x is %s, window %d, padding %d and %d", name,
                d + 2, text, a->window[d], a->pad_low[d], a->pad_high[d]);
    }
    return fnx_infer_count(y);
}

fnx_status infer_max_pool(fnx_tensor *y) {
    int64_t window;
    FNX_TRY(pool(y, &window));
    if (y->op == FNX_OP_max_pool_where) y->dtype = window <= 256 ? FNX_U8 : FNX_I32;
    return FNX_OK;
}

fnx_status infer_avg_pool(fnx_tensor *y) {
    int64_t window;
    return pool(y, &window);
}
