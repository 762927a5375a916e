/* Public functions of matmul, convolution and pooling. */
#include "ops/record.h"
#include "tensor/device.h"
#include "tensor/shape.h"

#include <fornax/ops.h>

static fnx_tensor *product(fnx_tensor *a, fnx_tensor *b) {
    fnx_tensor *in[] = {a, b};
    fnx_attr_matmul attr = {a->device->settings.precision == FNX_PRECISION_REDUCED, 0};
    return fnx_record(&(fnx_call){.op = FNX_OP_matmul, .n_operands = 2, .in = in, .attr = &attr});
}

/* A vector is a row on the left, a column on the right; its axis is gone from the result. */
fnx_tensor *fnx_matmul(fnx_tensor *a, fnx_tensor *b) {
    if (!fnx_usable(a)) return fnx_unusable("matmul", 0, a);
    if (!fnx_usable(b)) return fnx_unusable("matmul", 1, b);
    if (a->rank != 1 && b->rank != 1) return product(a, b);
    FNX_SCOPE_QUIET;
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) a = fnx_reshape(a, FNX_SHAPE(1, a->size[0]));
    if (column) b = fnx_reshape(b, FNX_SHAPE(b->size[0], 1));
    fnx_tensor *y = product(a, b);
    if (fnx_usable(y)) {
        int64_t sizes[FNX_MAX_RANK];
        int rank = 0;
        for (int d = 0; d < y->rank; d++)
            if (!(row && d == y->rank - 2) && !(column && d == y->rank - 1)) sizes[rank++] = y->size[d];
        y = fnx_reshape(y, rank, sizes);
    }
    return fnx_pass(y);
}

fnx_tensor *fnx_linear(fnx_tensor *x, fnx_tensor *w, fnx_tensor *b) {
    char xt[FNX_DESCRIBE_BYTES], wt[FNX_DESCRIBE_BYTES];
    if (!fnx_usable(x)) return fnx_unusable("linear", 0, x);
    if (!fnx_usable(w)) return fnx_unusable("linear", 1, w);
    if (b && !fnx_usable(b)) return fnx_unusable("linear", 2, b);
    if (w->rank != 2 || x->rank < 1 || x->size[x->rank - 1] != w->size[1])
        return fnx_tensor_failed(FNX_E_SHAPE, "linear: x is %s, w is %s: w must be [out, in] with in = x's last size",
                                 fnx_tensor_describe(x, xt), fnx_tensor_describe(w, wt));
    if (b && (b->rank != 1 || b->size[0] != w->size[0])) {
        char bt[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(FNX_E_SHAPE, "linear: the bias %s needs one element per row of w %s",
                                 fnx_tensor_describe(b, bt), fnx_tensor_describe(w, wt));
    }
    FNX_SCOPE_QUIET;
    fnx_tensor *y = fnx_matmul(x, fnx_transpose(w, 0, 1));
    return fnx_pass(b ? fnx_add(y, b) : y);
}

fnx_tensor *fnx_conv2d_with(fnx_tensor *x, fnx_tensor *w, fnx_tensor *b, const fnx_conv2d_options *options_or_null) {
    static const fnx_conv2d_options none = {0};
    const fnx_conv2d_options *o = options_or_null ? options_or_null : &none;
    fnx_tensor *in[] = {x, w};
    if (o->groups < 0) return fnx_tensor_failed(FNX_E_INVALID, "conv2d: groups must be at least 1, not %d", o->groups);
    fnx_attr_conv a = {.spatial = 2, .groups = o->groups ? (uint32_t)o->groups : 1};
    for (int d = 0; d < 2; d++) {
        a.stride[d] = o->stride[d] ? o->stride[d] : 1, a.dilation[d] = o->dilation[d] ? o->dilation[d] : 1;
        a.pad_low[d] = o->padding[d], a.pad_high[d] = o->asymmetric ? o->padding_after[d] : o->padding[d];
    }
    fnx_tensor *y = fnx_record(&(fnx_call){.op = FNX_OP_conv, .n_operands = 2, .in = in, .attr = &a});
    if (!b || !fnx_usable(y)) return y;
    if (!fnx_usable(b)) return fnx_unusable("conv2d", 2, b);
    if (b->rank != 1 || b->size[0] != y->size[1]) {
        char bt[FNX_DESCRIBE_BYTES], yt[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(FNX_E_SHAPE, "conv2d: the bias %s needs one element per channel of the result %s",
                                 fnx_tensor_describe(b, bt), fnx_tensor_describe(y, yt));
    }
    FNX_SCOPE_QUIET;
    return fnx_pass(fnx_add(y, fnx_reshape(b, FNX_SHAPE(b->size[0], 1, 1))));
}

static fnx_tensor *pool(int op, fnx_tensor *x, int height, int width, const fnx_pool2d_options *options_or_null) {
    static const fnx_pool2d_options none = {0};
    const fnx_pool2d_options *o = options_or_null ? options_or_null : &none;
    const int window[2] = {height, width};
    fnx_attr_pool a = {.spatial = 2, .flags = o->exclude_padding && op == FNX_OP_avg_pool ? FNX_POOL_EXCLUDE_PAD : 0};
    for (int d = 0; d < 2; d++) {
        a.window[d] = window[d], a.stride[d] = o->stride[d] ? o->stride[d] : window[d];
        a.pad_low[d] = a.pad_high[d] = o->padding[d];
    }
    return fnx_record(&(fnx_call){.op = (uint16_t)op, .n_operands = 1, .in = &x, .attr = &a});
}

fnx_tensor *fnx_max_pool2d_with(fnx_tensor *x, int height, int width, const fnx_pool2d_options *options_or_null) {
    return pool(FNX_OP_max_pool, x, height, width, options_or_null);
}

fnx_tensor *fnx_avg_pool2d_with(fnx_tensor *x, int height, int width, const fnx_pool2d_options *options_or_null) {
    return pool(FNX_OP_avg_pool, x, height, width, options_or_null);
}
