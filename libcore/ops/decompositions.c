/* See decompositions.h. */
#include "ops/decompositions.h"

#include <fornax/ops.h>

static fnx_axes axis_of(const fnx_tensor *y) { return FNX_AXES((int8_t)((const fnx_attr_axis *)fnx_attr(y))->axis); }

/* The largest element becomes 0, so that nothing overflows. An empty axis has none, and no elements either. */
static fnx_tensor *centered(fnx_tensor *x, fnx_axes axis) { return x->count ? fnx_sub(x, fnx_max(x, axis, true)) : x; }

fnx_tensor *decompose_softmax(fnx_tensor *const *in, const fnx_tensor *y) {
    fnx_tensor *e = fnx_exp(centered(in[0], axis_of(y)));
    return fnx_div(e, fnx_sum(e, axis_of(y), true));
}

fnx_tensor *decompose_log_softmax(fnx_tensor *const *in, const fnx_tensor *y) {
    fnx_tensor *c = centered(in[0], axis_of(y));
    return fnx_sub(c, fnx_log(fnx_sum(fnx_exp(c), axis_of(y), true)));
}

/* x (1 + erf(x / sqrt 2)) / 2 */
fnx_tensor *decompose_gelu(fnx_tensor *const *in, const fnx_tensor *y) {
    (void)y;
    fnx_tensor *half = fnx_mul_scalar(in[0], 0.5);
    return fnx_add(half, fnx_mul(half, fnx_erf(fnx_mul_scalar(in[0], 0.70710678118654752440))));
}
