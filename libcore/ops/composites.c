/* Public functions of composites. Those with a record of their own are taken apart by the planner (decompositions.c);
 * the others are made of public ops here. */
#include "ops/record.h"
#include "tensor/shape.h"
#include "tensor/thread.h"

#include <fornax/ops.h>

static fnx_tensor *along(int op, fnx_tensor *x, int axis) {
    int a;
    if (!fnx_usable(x)) return fnx_unusable(fnx_ops[op].name, 0, x);
    if (!fnx_shape_axis(x->rank, axis, &a)) {
        char text[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(FNX_E_SHAPE, "%s: axis %d is out of range for %s", fnx_ops[op].name, axis,
                                 fnx_tensor_describe(x, text));
    }
    fnx_attr_axis attr = {(uint32_t)a, 0};
    return fnx_record(&(fnx_call){.op = (uint16_t)op, .n_operands = 1, .in = &x, .attr = &attr});
}

fnx_tensor *fnx_softmax(fnx_tensor *x, int axis) { return along(FNX_OP_softmax, x, axis); }
fnx_tensor *fnx_log_softmax(fnx_tensor *x, int axis) { return along(FNX_OP_log_softmax, x, axis); }
fnx_tensor *fnx_gelu(fnx_tensor *x) { return fnx_record_unary(FNX_OP_gelu, x); }

/* ---- cross entropy ----------------------------------------------------------------------------------------------- */

static bool labels_fit(const fnx_tensor *logits, const fnx_tensor *labels) {
    if (logits->rank < 2 || labels->rank != logits->rank - 1 || labels->size[0] != logits->size[0]) return false;
    for (int d = 2; d < logits->rank; d++)
        if (labels->size[d - 1] != logits->size[d]) return false;
    return true;
}

fnx_tensor *fnx_cross_entropy_with(fnx_tensor *logits, fnx_tensor *labels, int reduction) {
    if (!fnx_usable(logits)) return fnx_unusable("cross_entropy", 0, logits);
    if (!fnx_usable(labels)) return fnx_unusable("cross_entropy", 1, labels);
    if (reduction < FNX_REDUCE_MEAN || reduction > FNX_REDUCE_NONE)
        return fnx_tensor_failed(
            FNX_E_INVALID,
            "cross_entropy: there is no reduction %d: FNX_REDUCE_MEAN, FNX_REDUCE_SUM or FNX_REDUCE_NONE", reduction);
    if (!(FNX_MASK(labels->dtype) & FNX_MASK_INTS)) {
        char text[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(FNX_E_DTYPE, "cross_entropy: the labels are %s, not integers: fnx_cast() them",
                                 fnx_tensor_describe(labels, text));
    }
    if (!labels_fit(logits, labels)) {
        char a[FNX_DESCRIBE_BYTES], b[FNX_DESCRIBE_BYTES];
        return fnx_tensor_failed(
            FNX_E_SHAPE, "cross_entropy: logits are %s, labels %s: for logits [n, c, ..] labels are integers [n, ..]",
            fnx_tensor_describe(logits, a), fnx_tensor_describe(labels, b));
    }
    FNX_SCOPE_QUIET;
    int64_t sizes[FNX_MAX_RANK];
    for (int d = 0; d < logits->rank; d++) sizes[d] = d == 1 ? 1 : logits->size[d];
    if (labels->dtype == FNX_U8) labels = fnx_cast(labels, FNX_I32);
    fnx_tensor *picked = fnx_gather(fnx_log_softmax(logits, 1), 1, fnx_reshape(labels, logits->rank, sizes));
    if (reduction == FNX_REDUCE_NONE) return fnx_pass(fnx_neg(fnx_reshape(picked, labels->rank, labels->size)));
    if (reduction == FNX_REDUCE_SUM) return fnx_pass(fnx_neg(fnx_sum(picked, FNX_ALL_AXES, false)));
    return fnx_pass(fnx_neg(fnx_mean(picked, FNX_ALL_AXES, false)));
}

fnx_tensor *fnx_cross_entropy(fnx_tensor *logits, fnx_tensor *labels) {
    return fnx_cross_entropy_with(logits, labels, FNX_REDUCE_MEAN);
}

/* ---- dropout, batch norm ----------------------------------------------------------------------------------------- */

fnx_tensor *fnx_dropout(fnx_tensor *x, double p) {
    if (!fnx_usable(x)) return fnx_unusable("dropout", 0, x);
    if (!(p >= 0 && p < 1)) return fnx_tensor_failed(FNX_E_INVALID, "dropout: the probability %g is not in [0, 1)", p);
    if (p == 0) return fnx_copy(x);
    FNX_SCOPE_QUIET;
    fnx_tensor *kept = fnx_greater_equal_scalar(fnx_uniform(x->device, x->dtype, x->rank, x->size, 0, 1), p);
    return fnx_pass(
        fnx_mul(x, fnx_mul_scalar(fnx_cast(kept, x->dtype), 1 / (1 - p)))); /* where() would tape the condition */
}

static bool channels_fit(const fnx_tensor *x, const fnx_tensor *c) {
    return !c || (c->rank == 1 && c->size[0] == x->size[1]);
}

/* [c] as [c, 1, ..], to broadcast over axis 1 of x. */
static fnx_tensor *per_channel(const fnx_tensor *x, fnx_tensor *c) {
    int64_t sizes[FNX_MAX_RANK];
    for (int d = 0; d < x->rank - 1; d++) sizes[d] = d == 0 ? x->size[1] : 1;
    return fnx_reshape(c, x->rank - 1, sizes);
}

/* The first operand that cannot be used, or NULL. */
static fnx_tensor *first_failed(fnx_tensor *const *xs, int n) {
    for (int i = 0; i < n; i++)
        if (xs[i] && fnx_state(xs[i]) == FNX_FAILED) return xs[i];
    return NULL;
}

static fnx_tensor *bad_norm(const fnx_tensor *x) {
    char text[FNX_DESCRIBE_BYTES];
    return fnx_tensor_failed(FNX_E_SHAPE,
                             "batch_norm: x is %s: it needs two axes at least, and mean, variance, scale, bias one "
                             "element per channel (axis 1)",
                             fnx_tensor_describe(x, text));
}

static fnx_tensor *normalize(fnx_tensor *x, fnx_tensor *centered, fnx_tensor *variance, fnx_tensor *scale,
                             fnx_tensor *bias, double eps) {
    fnx_tensor *factor = fnx_scalar_div(1, fnx_sqrt(fnx_add_scalar(variance, eps)));
    if (scale) factor = fnx_mul(factor, per_channel(x, scale));
    fnx_tensor *y = fnx_mul(centered, factor);
    return bias ? fnx_add(y, per_channel(x, bias)) : y;
}

fnx_tensor *fnx_batch_norm(fnx_tensor *x, fnx_tensor *mean, fnx_tensor *variance, fnx_tensor *scale, fnx_tensor *bias,
                           double eps) {
    fnx_tensor *all[] = {x, mean, variance, scale, bias}, *failed = first_failed(all, 5);
    if (failed) return fnx_copy(failed);
    if (!x || !mean || !variance) return fnx_tensor_failed(FNX_E_INVALID, "batch_norm: x, mean or variance is NULL");
    if (x->rank < 2 || !channels_fit(x, mean) || !channels_fit(x, variance) || !channels_fit(x, scale) ||
        !channels_fit(x, bias))
        return bad_norm(x);
    FNX_SCOPE_QUIET;
    return fnx_pass(normalize(x, fnx_sub(x, per_channel(x, mean)), per_channel(x, variance), scale, bias, eps));
}

fnx_batch_norm_result fnx_batch_norm_train(fnx_tensor *x, fnx_tensor *scale, fnx_tensor *bias, double eps) {
    fnx_tensor *all[] = {x, scale, bias}, *failed = first_failed(all, 3);
    if (failed) return (fnx_batch_norm_result){fnx_copy(failed), fnx_copy(failed), fnx_copy(failed)};
    if (!x || x->rank < 2 || !channels_fit(x, scale) || !channels_fit(x, bias)) {
        fnx_tensor *bad = x ? bad_norm(x) : fnx_tensor_failed(FNX_E_INVALID, "batch_norm: x is NULL");
        return (fnx_batch_norm_result){bad, bad, bad};
    }
    FNX_SCOPE_QUIET;
    fnx_axes axes = {.count = 0};
    for (int d = 0; d < x->rank; d++)
        if (d != 1) axes.axis[axes.count++] = (int8_t)d;
    fnx_tensor *mean = fnx_mean(x, axes, true), *centered = fnx_sub(x, mean);
    fnx_tensor *variance = fnx_mean(fnx_mul(centered, centered), axes, true); /* two passes: no cancellation */
    int64_t channels = x->size[1], sizes[FNX_MAX_RANK];
    for (int d = 0; d < x->rank - 1; d++) sizes[d] = d == 0 ? channels : 1;
    fnx_batch_norm_result r;
    r.y = fnx_pass(normalize(x, centered, fnx_reshape(variance, x->rank - 1, sizes), scale, bias, eps));
    r.mean = fnx_pass(fnx_reshape(mean, FNX_SHAPE(channels)));
    r.variance = fnx_pass(fnx_reshape(variance, FNX_SHAPE(channels)));
    return r;
}
