/* Operations on tensors. fornax-ops(7) states the rules for all of them; in short:
 *
 *   - Operands live on one piece of hardware and have one dtype: nothing is promoted. A scalar argument takes the
 *     tensor's dtype. Shapes broadcast from the last axis on, size 1 to any size.
 *   - Integers wrap; NaN passes through maximum, minimum, max, min; ties go to the lowest index.
 *   - Negative axes count from the end; one that is not there, or twice in a list, is FNX_E_SHAPE. Sizes may be 0; rank
 *     may be 0.
 *   - Every function returns a tensor, a failed one where a precondition is broken: FNX_E_SHAPE, FNX_E_DTYPE,
 *     FNX_E_DEVICE, FNX_E_INVALID (an operand is NULL, an option has no such value). Nothing is computed before a flush
 *     (fornax/tensor.h).
 *   - Floats: f32, f64. Numbers: floats, i32, i64, u8. Any: numbers and bool.
 *   - Where a result is "differentiable", fnx_backward reaches its float operands.
 *
 * Threads: any, each with its own scopes. Ownership: results belong to the innermost scope. */
#ifndef FORNAX_OPS_H
#define FORNAX_OPS_H

#include <fornax/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arithmetic: numbers, broadcast, differentiable -------------------------------------------------------------- */

FNX_API fnx_tensor *fnx_add(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_sub(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_mul(fnx_tensor *a, fnx_tensor *b);
/* Integers truncate; an integer divisor of 0 gives 0 and FNX_E_INDEX at the next read or sync. */
FNX_API fnx_tensor *fnx_div(fnx_tensor *a, fnx_tensor *b);
/* a to the power of b. Integers: a negative power is 0 except for bases 1 and -1. */
FNX_API fnx_tensor *fnx_pow(fnx_tensor *a, fnx_tensor *b);
/* NaN if either is. Where a equals b, each gets half of the gradient. */
FNX_API fnx_tensor *fnx_maximum(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_minimum(fnx_tensor *a, fnx_tensor *b);

/* The same with a scalar: it is an argument of the plan, so changing it builds no new one. A scalar that an integer
 * tensor cannot hold (0.5, or out of range) is FNX_E_DTYPE. */
FNX_API fnx_tensor *fnx_add_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_sub_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_mul_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_div_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_pow_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_maximum_scalar(fnx_tensor *a, double s); /* where a equals s the gradient is 0 */
FNX_API fnx_tensor *fnx_minimum_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_scalar_sub(double s, fnx_tensor *a); /* s - a */
FNX_API fnx_tensor *fnx_scalar_div(double s, fnx_tensor *a); /* s / a */

/* ---- functions of one tensor: differentiable --------------------------------------------------------------------- */

FNX_API fnx_tensor *fnx_neg(fnx_tensor *x); /* numbers */
FNX_API fnx_tensor *fnx_abs(fnx_tensor *x); /* numbers; gradient 0 at 0 */
FNX_API fnx_tensor *fnx_exp(fnx_tensor *x); /* floats, as the next ones */
FNX_API fnx_tensor *fnx_log(fnx_tensor *x); /* natural */
FNX_API fnx_tensor *fnx_sqrt(fnx_tensor *x);
FNX_API fnx_tensor *fnx_tanh(fnx_tensor *x);
FNX_API fnx_tensor *fnx_sigmoid(fnx_tensor *x); /* 1 / (1 + e^-x) */
FNX_API fnx_tensor *fnx_erf(fnx_tensor *x);
FNX_API fnx_tensor *fnx_relu(fnx_tensor *x); /* numbers; NaN passes; gradient 0 at 0 */
FNX_API fnx_tensor *fnx_gelu(fnx_tensor *x); /* x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016) */

/* ---- comparison, choice, conversion ------------------------------------------------------------------------------ */

/* bool results; numbers, and bool for equal and not_equal; broadcast. NaN is unequal to everything and unordered. */
FNX_API fnx_tensor *fnx_equal(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_not_equal(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_less(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_less_equal(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_greater(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_greater_equal(fnx_tensor *a, fnx_tensor *b);
FNX_API fnx_tensor *fnx_equal_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_not_equal_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_less_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_less_equal_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_greater_scalar(fnx_tensor *a, double s);
FNX_API fnx_tensor *fnx_greater_equal_scalar(fnx_tensor *a, double s);

/* condition (bool) ? a : b, all three broadcast; a and b any. Differentiable in a and b. */
FNX_API fnx_tensor *fnx_where(fnx_tensor *condition, fnx_tensor *a, fnx_tensor *b);

/* Float to integer truncates and saturates, NaN to 0; integers wrap; to bool: x != 0. Differentiable between floats. */
FNX_API fnx_tensor *fnx_cast(fnx_tensor *x, int dtype);
FNX_API fnx_tensor *fnx_copy(fnx_tensor *x); /* any; differentiable */

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* dtype 0: the device's default float (iota: default integer). fill: any, `value` as scalars above; iota: numbers. */
FNX_API fnx_tensor *fnx_fill(fnx_device *device, int dtype, int rank, const int64_t *sizes, double value);
FNX_API fnx_tensor *fnx_fill_like(fnx_tensor *x, double value); /* shape, dtype, device of x */
/* 0, 1, 2, ... along `axis`, the same along all others. */
FNX_API fnx_tensor *fnx_iota(fnx_device *device, int dtype, int rank, const int64_t *sizes, int axis);
/* Uniform in [low, high) and normal numbers from the device's generator: the counter is taken when recording, element i
 * has the generator's i-th number, equal on every backend (<fornax-plugin/ops.h>, FNX_PHILOX). Floats. */
FNX_API fnx_tensor *fnx_uniform(fnx_device *device, int dtype, int rank, const int64_t *sizes, double low, double high);
FNX_API fnx_tensor *fnx_normal(fnx_device *device, int dtype, int rank, const int64_t *sizes, double mean,
                               double deviation);

/* ---- reductions -------------------------------------------------------------------------------------------------- */

typedef struct fnx_axes {
    int8_t count; /* 0: all axes */
    int8_t axis[FNX_MAX_RANK];
} fnx_axes;
#define FNX_AXES(...) ((fnx_axes){(int8_t)(sizeof((const int8_t[]){__VA_ARGS__})), {__VA_ARGS__}})
#define FNX_ALL_AXES ((fnx_axes){0, {0}})

/* keep: reduced axes stay, with size 1; else they go. x's dtype, numbers, differentiable. Over nothing: sum 0, mean
 * NaN, max, min and argmax FNX_E_SHAPE. */
FNX_API fnx_tensor *fnx_sum(fnx_tensor *x, fnx_axes axes, bool keep);
FNX_API fnx_tensor *fnx_mean(fnx_tensor *x, fnx_axes axes, bool keep); /* floats */
/* Elements that share the extremum share the gradient. */
FNX_API fnx_tensor *fnx_max(fnx_tensor *x, fnx_axes axes, bool keep);
FNX_API fnx_tensor *fnx_min(fnx_tensor *x, fnx_axes axes, bool keep);
FNX_API fnx_tensor *fnx_argmax(fnx_tensor *x, int axis, bool keep); /* i64; the first NaN wins; no gradient */

/* ---- matrices, convolution, pooling ------------------------------------------------------------------------------ */

/* [.., m, k] x [.., k, n] -> [.., m, n], leading axes broadcast; a vector operand (rank 1) is a row on the left, a
 * column on the right, and its axis is gone from the result. Numbers, differentiable. */
FNX_API fnx_tensor *fnx_matmul(fnx_tensor *a, fnx_tensor *b);
/* x w^T + b: x [.., in], w [out, in], b [out] or NULL -> [.., out]. */
FNX_API fnx_tensor *fnx_linear(fnx_tensor *x, fnx_tensor *w, fnx_tensor *b);

typedef struct fnx_conv2d_options {
    int stride[2];        /* rows, columns; 0: 1 */
    int dilation[2];      /* 0: 1 */
    int padding[2];       /* before, and after unless padding_after is given */
    int padding_after[2]; /* used where asymmetric is set */
    bool asymmetric;
    int groups; /* 0: 1 */
} fnx_conv2d_options;

/* x [n, c, h, w], w [o, c / groups, kh, kw], b [o] or NULL -> [n, o, h', w'], where
 * h' = (h + padding before and after - dilation (kh - 1) - 1) / stride + 1, rounded down; FNX_E_SHAPE if the kernel is
 * larger than the padded x. Cross-correlation, floats, differentiable. */
FNX_API fnx_tensor *fnx_conv2d_with(fnx_tensor *x, fnx_tensor *w, fnx_tensor *b,
                                    const fnx_conv2d_options *options_or_null);
#define fnx_conv2d(x, w, b, ...) fnx_conv2d_with(x, w, b, &(fnx_conv2d_options){__VA_ARGS__})

typedef struct fnx_pool2d_options {
    int stride[2];        /* 0: the window's size */
    int padding[2];       /* on both sides; at most half the window */
    bool exclude_padding; /* avg: divide by the elements inside x */
} fnx_pool2d_options;

/* x [n, c, h, w] -> [n, c, h', w'], window height x width, h' = (h + 2 padding - height) / stride + 1, rounded down;
 * FNX_E_SHAPE if the window is larger. max: numbers, padding never wins, NaN passes, the first of equal ones gets the
 * gradient; avg: floats. Differentiable. Windows wholly in padding (there are only where x is empty): 0; avg with
 * exclude_padding NaN. */
FNX_API fnx_tensor *fnx_max_pool2d_with(fnx_tensor *x, int height, int width,
                                        const fnx_pool2d_options *options_or_null);
FNX_API fnx_tensor *fnx_avg_pool2d_with(fnx_tensor *x, int height, int width,
                                        const fnx_pool2d_options *options_or_null);
#define fnx_max_pool2d(x, height, width, ...) fnx_max_pool2d_with(x, height, width, &(fnx_pool2d_options){__VA_ARGS__})
#define fnx_avg_pool2d(x, height, width, ...) fnx_avg_pool2d_with(x, height, width, &(fnx_pool2d_options){__VA_ARGS__})

/* ---- shapes: any dtype, differentiable --------------------------------------------------------------------------- */

/* The same elements in row-major order. One size may be -1: what is left. */
FNX_API fnx_tensor *fnx_reshape(fnx_tensor *x, int rank, const int64_t *sizes);
/* Axis d of the result is axis axes[d] of x; as many as x has, each once. */
FNX_API fnx_tensor *fnx_permute(fnx_tensor *x, const int *axes);
FNX_API fnx_tensor *fnx_transpose(fnx_tensor *x, int axis_a, int axis_b);
/* Axes of size 1 grow to sizes; missing leading axes are added. -1 keeps a size. */
FNX_API fnx_tensor *fnx_expand(fnx_tensor *x, int rank, const int64_t *sizes);
/* Elements start, start + 1, ... along one axis; a negative start counts from the end, outside of x is FNX_E_SHAPE.
 * Starts are arguments of the plan. */
FNX_API fnx_tensor *fnx_slice(fnx_tensor *x, int axis, int64_t start, int64_t size);
/* All axes at once: result[i] = x[starts + i * steps]; steps NULL: 1, negative walks backwards, 0 is FNX_E_SHAPE. */
FNX_API fnx_tensor *fnx_slice_all(fnx_tensor *x, const int64_t *starts, const int64_t *sizes, const int64_t *steps);
/* x with the region of update's shape at `starts` replaced; dtypes and ranks are equal. */
FNX_API fnx_tensor *fnx_slice_assign(fnx_tensor *x, fnx_tensor *update, const int64_t *starts,
                                     const int64_t *steps_or_null);
/* One after the other along `axis`; all other axes are equal. n from 1 to 65535. */
FNX_API fnx_tensor *fnx_concat(fnx_tensor *const *xs, int n, int axis);
/* `value`, as for scalars, before and after: elements per axis, >= 0. */
FNX_API fnx_tensor *fnx_pad(fnx_tensor *x, const int64_t *low, const int64_t *high, double value);
FNX_API fnx_tensor *fnx_flatten(fnx_tensor *x, int first_axis); /* axes from first_axis on become one */

/* ---- indexes: i32 or i64, checked on the device ------------------------------------------------------------------ */

/* An index outside reads 0 or writes nothing, and is FNX_E_INDEX at the next read or sync; of several any is named. */

/* y[i..] = x[i.. with axis: index[i..]], of index's shape; index has x's rank and, off the axis, at most its sizes.
 * Differentiable in x. */
FNX_API fnx_tensor *fnx_gather(fnx_tensor *x, int axis, fnx_tensor *index);
/* target with target[i.. with axis: index[i..]] += update[i..] for all i of index, in ascending order. Shapes of
 * index and target as above, update has index's. Numbers; differentiable in target and update. */
FNX_API fnx_tensor *fnx_scatter_add(fnx_tensor *target, int axis, fnx_tensor *index, fnx_tensor *update);
/* A new last axis of `depth` >= 1: 1 where it equals the index, else 0. An index outside is all zeros, and no error.
 * index: integers; dtype 0: the device's default float. */
FNX_API fnx_tensor *fnx_one_hot(fnx_tensor *index, int64_t depth, int dtype);

/* ---- composites: floats, differentiable -------------------------------------------------------------------------- */

/* e^(x - m) / sum of e^(x - m) along the axis, m the largest x there; and its logarithm. */
FNX_API fnx_tensor *fnx_softmax(fnx_tensor *x, int axis);
FNX_API fnx_tensor *fnx_log_softmax(fnx_tensor *x, int axis);

enum { FNX_REDUCE_MEAN = 0, FNX_REDUCE_SUM = 1, FNX_REDUCE_NONE = 2 };
/* -log softmax(logits)[label] over axis 1: logits [n, c, ..], labels [n, ..] integers in [0, c) (others: see
 * fnx_gather). Mean over all labels, their sum, or one per label, [n, ..]. */
FNX_API fnx_tensor *fnx_cross_entropy(fnx_tensor *logits, fnx_tensor *labels);
FNX_API fnx_tensor *fnx_cross_entropy_with(fnx_tensor *logits, fnx_tensor *labels, int reduction);

/* Zeroes elements with probability p in [0, 1) and scales the others by 1 / (1 - p) (Srivastava et al. 2014). Uses the
 * device's generator, unless p is 0. */
FNX_API fnx_tensor *fnx_dropout(fnx_tensor *x, double p);

/* (x - mean) / sqrt(variance + eps) * scale + bias over axis 1 of x [n, c, ..] (Ioffe and Szegedy 2015); the others are
 * [c]; scale, bias may be NULL. */
FNX_API fnx_tensor *fnx_batch_norm(fnx_tensor *x, fnx_tensor *mean, fnx_tensor *variance, fnx_tensor *scale,
                                   fnx_tensor *bias, double eps);
typedef struct fnx_batch_norm_result {
    fnx_tensor *y, *mean, *variance; /* of x's shape, [c], [c]; the variance is the biased one, as used for y */
} fnx_batch_norm_result;
/* The same with the batch's own mean and variance. */
FNX_API fnx_batch_norm_result fnx_batch_norm_train(fnx_tensor *x, fnx_tensor *scale, fnx_tensor *bias, double eps);

#ifdef __cplusplus
}
#endif
#endif
