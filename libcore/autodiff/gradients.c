/* See gradients.h. NULL: the operand has no gradient (indexes, conditions, integers). */
#include "autodiff/gradients.h"

#include "tensor/device.h"

#include <fornax/ops.h>
#include <math.h>

#define GRADIENT(name) fnx_tensor *grad_##name(fnx_tensor *y, fnx_tensor *g, int k)

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* Sums g down to the shape of x, undoing a broadcast. */
static fnx_tensor *unbroadcast(fnx_tensor *g, const fnx_tensor *x) {
    fnx_axes axes = {.count = 0};
    if (fnx_state(g) == FNX_FAILED || (g->rank == x->rank && !memcmp(g->size, x->size, sizeof *x->size * x->rank)))
        return g;
    for (int d = 0; d < g->rank; d++) {
        int dx = d - (g->rank - x->rank);
        if (dx < 0 || (x->size[dx] == 1 && g->size[d] != 1)) axes.axis[axes.count++] = (int8_t)d;
    }
    if (axes.count) g = fnx_sum(g, axes, true);
    return g->rank == x->rank ? g : fnx_reshape(g, x->rank, x->size);
}

static double scalar(const fnx_tensor *y) {
    return fnx_double_of_bits(fnx_scalars(y)[0]);
} /* gradients are of floats */

/* a op operand k of y, whichever that is. */
static fnx_tensor *with_operand(int op, fnx_tensor *a, const fnx_tensor *y, int k) {
    return fnx_operand_is_scalar(y, k) ? fnx_record_scalar(op, a, scalar(y), 0)
                                       : fnx_record_binary(op, a, fnx_operand(y, k));
}

static fnx_tensor *masked(fnx_tensor *condition, fnx_tensor *g) { return fnx_where(condition, g, fnx_fill_like(g, 0)); }

static fnx_axes axis_of(const fnx_tensor *y) { return FNX_AXES((int8_t)((const fnx_attr_axis *)fnx_attr(y))->axis); }

/* A record of `op` with y's attributes and the sizes of `like`. */
static fnx_tensor *adjoint(int op, const fnx_tensor *y, const fnx_tensor *like, fnx_tensor *a, fnx_tensor *b) {
    fnx_tensor *in[] = {a, b};
    return fnx_record(&(fnx_call){.op = (uint16_t)op,
                                  .n_operands = b ? 2 : 1,
                                  .in = in,
                                  .attr = fnx_attr(y),
                                  .rank = like->rank,
                                  .sizes = like->size});
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

GRADIENT(add) { return unbroadcast(g, fnx_operand(y, k)); }
GRADIENT(sub) { return unbroadcast(k ? fnx_neg(g) : g, fnx_operand(y, k)); }
GRADIENT(mul) { return unbroadcast(with_operand(FNX_OP_mul, g, y, !k), fnx_operand(y, k)); }

/* a / b: g / b, and -g y / b */
GRADIENT(div) {
    fnx_tensor *q = with_operand(FNX_OP_div, k ? fnx_mul(g, y) : g, y, 1);
    return unbroadcast(k ? fnx_neg(q) : q, fnx_operand(y, k));
}

/* a^b: g b a^(b-1), where b = 0 gives 0 even at a = 0; and g y ln a, where a = 0 and b >= 0 gives 0 */
GRADIENT(pow) {
    fnx_tensor *a = fnx_operand(y, 0), *b = fnx_operand(y, 1);
    if (k == 0 && fnx_operand_is_scalar(y, 1)) {
        double s = scalar(y);
        if (s == 0) return fnx_fill_like(a, 0);
        return fnx_mul(g, fnx_mul_scalar(fnx_pow_scalar(a, s - 1), s));
    }
    if (k == 0) {
        fnx_tensor *d = fnx_mul(g, fnx_mul(b, fnx_pow(a, fnx_sub_scalar(b, 1))));
        return unbroadcast(fnx_where(fnx_equal_scalar(b, 0), fnx_fill_like(d, 0), d), a);
    }
    if (fnx_operand_is_scalar(y, 0)) {
        double s = scalar(y);
        if (s == 0)
            return fnx_where(fnx_greater_equal_scalar(b, 0), fnx_fill_like(g, 0),
                             fnx_mul(g, fnx_mul_scalar(y, -INFINITY)));
        return fnx_mul(g, fnx_mul_scalar(y, log(s)));
    }
    fnx_tensor *d = fnx_mul(g, fnx_mul(y, fnx_log(a))), *none = fnx_fill_like(d, 0);
    return unbroadcast(fnx_where(fnx_equal_scalar(a, 0), fnx_where(fnx_greater_equal_scalar(b, 0), none, d), d), b);
}

/* The operand that is the extremum gets g, equal ones half each; with a scalar, nothing at a tie. NaN gets g. */
static fnx_tensor *pick_extremum(fnx_tensor *y, fnx_tensor *g, int k, int beats) {
    fnx_tensor *x = fnx_operand(y, k);
    if (fnx_operand_is_scalar(y, !k)) return masked(fnx_record_scalar(beats, x, scalar(y), 0), g);
    fnx_tensor *other = fnx_operand(y, !k);
    fnx_tensor *half = fnx_where(fnx_equal(x, other), fnx_mul_scalar(g, 0.5), fnx_fill_like(g, 0));
    return unbroadcast(fnx_where(fnx_record_binary(beats, x, other), g, half), x);
}

GRADIENT(maximum) { return pick_extremum(y, g, k, FNX_OP_greater); }
GRADIENT(minimum) { return pick_extremum(y, g, k, FNX_OP_less); }

/* ---- functions of one operand ------------------------------------------------------------------------------------ */

GRADIENT(neg) {
    (void)y, (void)k;
    return fnx_neg(g);
}

GRADIENT(abs) {
    fnx_tensor *x = fnx_operand(y, k);
    return fnx_where(fnx_greater_scalar(x, 0), g, fnx_where(fnx_less_scalar(x, 0), fnx_neg(g), fnx_fill_like(g, 0)));
}

GRADIENT(exp) {
    (void)k;
    return fnx_mul(g, y);
}

GRADIENT(log) { return fnx_div(g, fnx_operand(y, k)); }

GRADIENT(sqrt) {
    (void)k;
    return fnx_div(fnx_mul_scalar(g, 0.5), y);
}

/* 1 - y^2 */
GRADIENT(tanh) {
    (void)k;
    return fnx_mul(g, fnx_scalar_sub(1, fnx_mul(y, y)));
}

/* y (1 - y) */
GRADIENT(sigmoid) {
    (void)k;
    return fnx_mul(g, fnx_mul(y, fnx_scalar_sub(1, y)));
}

/* 2 / sqrt(pi) e^(-x^2) */
GRADIENT(erf) {
    fnx_tensor *x = fnx_operand(y, k);
    return fnx_mul(g, fnx_mul_scalar(fnx_exp(fnx_neg(fnx_mul(x, x))), 1.12837916709551257390));
}

GRADIENT(relu) {
    (void)k;
    return masked(fnx_greater_scalar(y, 0), g);
}

GRADIENT(copy) {
    (void)y, (void)k;
    return g;
}

GRADIENT(where) {
    fnx_tensor *c = fnx_operand(y, 0);
    if (k == 0) return NULL;
    fnx_tensor *zero = fnx_fill_like(g, 0);
    return unbroadcast(k == 1 ? fnx_where(c, g, zero) : fnx_where(c, zero, g), fnx_operand(y, k));
}

GRADIENT(cast) {
    const fnx_tensor *x = fnx_operand(y, k);
    return fnx_dtype_is_float(x->dtype) && fnx_dtype_is_float(y->dtype) ? fnx_cast(g, x->dtype) : NULL;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

GRADIENT(sum) {
    const fnx_tensor *x = fnx_operand(y, k);
    return fnx_expand(g, x->rank, x->size);
}

/* Elements equal to the extremum share its gradient. */
GRADIENT(extremum) {
    fnx_tensor *x = fnx_operand(y, k);
    uint32_t mask = ((const fnx_attr_reduce *)fnx_attr(y))->axes;
    fnx_axes axes = {.count = 0};
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1) axes.axis[axes.count++] = (int8_t)d;
    fnx_tensor *hit = fnx_cast(fnx_equal(x, y), g->dtype);
    if (!axes.count) return fnx_mul(g, hit);
    return fnx_mul(fnx_div(g, fnx_sum(hit, axes, true)), hit);
}

/* ---- matrices, windows ------------------------------------------------------------------------------------------- */

GRADIENT(matmul) {
    fnx_tensor *a = fnx_operand(y, 0), *b = fnx_operand(y, 1);
    return unbroadcast(k ? fnx_matmul(fnx_transpose(a, -2, -1), g) : fnx_matmul(g, fnx_transpose(b, -2, -1)),
                       fnx_operand(y, k));
}

/* conv, conv_grad_x and conv_grad_w are bilinear in two of x, w, dy and each the adjoint of the others. */
GRADIENT(conv) {
    fnx_tensor *x = fnx_operand(y, 0), *w = fnx_operand(y, 1);
    return k ? adjoint(FNX_OP_conv_grad_w, y, w, x, g) : adjoint(FNX_OP_conv_grad_x, y, x, g, w);
}

GRADIENT(conv_grad_x) { /* (dy, w); g has x's shape */
    fnx_tensor *dy = fnx_operand(y, 0), *w = fnx_operand(y, 1);
    return k ? adjoint(FNX_OP_conv_grad_w, y, w, g, dy) : adjoint(FNX_OP_conv, y, dy, g, w);
}

GRADIENT(conv_grad_w) { /* (x, dy); g has w's shape */
    fnx_tensor *x = fnx_operand(y, 0), *dy = fnx_operand(y, 1);
    return k ? adjoint(FNX_OP_conv, y, dy, x, g) : adjoint(FNX_OP_conv_grad_x, y, x, dy, g);
}

GRADIENT(max_pool) {
    fnx_tensor *x = fnx_operand(y, k);
    fnx_tensor *where =
        fnx_record(&(fnx_call){.op = FNX_OP_max_pool_where, .n_operands = 1, .in = &x, .attr = fnx_attr(y)});
    return adjoint(FNX_OP_max_pool_grad, y, x, g, where);
}

GRADIENT(max_pool_grad) { /* (dy, where) */
    fnx_tensor *dy = fnx_operand(y, 0);
    return k ? NULL : adjoint(FNX_OP_max_pool_pick, y, dy, g, fnx_operand(y, 1));
}

GRADIENT(max_pool_pick) { /* (z, where) */
    fnx_tensor *z = fnx_operand(y, 0);
    return k ? NULL : adjoint(FNX_OP_max_pool_grad, y, z, g, fnx_operand(y, 1));
}

GRADIENT(avg_pool) { return adjoint(FNX_OP_avg_pool_grad, y, fnx_operand(y, k), g, NULL); }
GRADIENT(avg_pool_grad) { return adjoint(FNX_OP_avg_pool, y, fnx_operand(y, k), g, NULL); }

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

static int axis_number(const fnx_tensor *y) { return (int)((const fnx_attr_axis *)fnx_attr(y))->axis; }

GRADIENT(gather) {
    return k ? NULL : fnx_scatter_add(fnx_fill_like(fnx_operand(y, 0), 0), axis_number(y), fnx_operand(y, 1), g);
}

GRADIENT(scatter_add) {
    if (k == 0) return g;
    return k == 2 ? fnx_gather(g, axis_number(y), fnx_operand(y, 1)) : NULL;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

GRADIENT(reshape) {
    const fnx_tensor *x = fnx_operand(y, k);
    return fnx_reshape(g, x->rank, x->size);
}

GRADIENT(expand) { return unbroadcast(g, fnx_operand(y, k)); }

GRADIENT(permute) {
    int inverse[FNX_MAX_RANK];
    (void)k;
    for (int d = 0; d < y->rank; d++) inverse[((const fnx_attr_permute *)fnx_attr(y))->from[d]] = d;
    return fnx_permute(g, inverse);
}

static const int64_t *starts(const fnx_tensor *y) { return (const int64_t *)fnx_scalars(y); }
static const int64_t *steps(const fnx_tensor *y) { return ((const fnx_attr_slice *)fnx_attr(y))->step; }

GRADIENT(slice) { return fnx_slice_assign(fnx_fill_like(fnx_operand(y, k), 0), g, starts(y), steps(y)); }

GRADIENT(slice_assign) {
    fnx_tensor *update = fnx_operand(y, 1);
    if (k == 1) return fnx_slice_all(g, starts(y), update->size, steps(y));
    return fnx_slice_assign(g, fnx_fill_like(update, 0), starts(y), steps(y));
}

GRADIENT(concat) {
    int axis = axis_number(y);
    int64_t start = 0;
    for (int i = 0; i < k; i++) start += fnx_operand(y, i)->size[axis];
    return fnx_slice(g, axis, start, fnx_operand(y, k)->size[axis]);
}

GRADIENT(pad) { return fnx_slice_all(g, ((const fnx_attr_pad *)fnx_attr(y))->low, fnx_operand(y, k)->size, NULL); }

GRADIENT(transfer) { return fnx_tensor_to(g, fnx_operand(y, k)->device); }

/* ---- composites -------------------------------------------------------------------------------------------------- */

/* y (g - sum(g y)) */
GRADIENT(softmax) {
    (void)k;
    return fnx_mul(y, fnx_sub(g, fnx_sum(fnx_mul(g, y), axis_of(y), true)));
}

/* g - e^y sum(g) */
GRADIENT(log_softmax) {
    (void)k;
    return fnx_sub(g, fnx_mul(fnx_exp(y), fnx_sum(g, axis_of(y), true)));
}

/* (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2 / 2) / sqrt(2 pi) */
GRADIENT(gelu) {
    fnx_tensor *x = fnx_operand(y, k);
    fnx_tensor *cdf = fnx_add_scalar(fnx_mul_scalar(fnx_erf(fnx_mul_scalar(x, 0.70710678118654752440)), 0.5), 0.5);
    fnx_tensor *pdf = fnx_mul_scalar(fnx_exp(fnx_mul_scalar(fnx_mul(x, x), -0.5)), 0.39894228040143267794);
    return fnx_mul(g, fnx_add(cdf, fnx_mul(x, pdf)));
}
