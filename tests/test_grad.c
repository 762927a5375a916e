/* Gradients against PyTorch's (tests/fixtures/ops.py), first and second derivatives against finite differences, and
 * linear ops against the identity that defines an adjoint. */
#include "support/devices.h"
#include "support/op_cases.h"

#include "ops/op.h"

#include <math.h>

enum { INPUTS = CASE_OPERANDS + CASE_RESULTS };

static bool is_differentiable(const op_case *c) { return c->seed[0].dtype != 0; }

static fnx_tensor *dot(fnx_tensor *a, fnx_tensor *b) { return fnx_sum(fnx_mul(a, b), FNX_ALL_AXES, false); }

/* ---- PyTorch's gradients ----------------------------------------------------------------------------------------- */

/* A gradient may be off by 64 sqrt(n) eps of itself plus the largest one of the tensor; n: elements that may have been
 * summed. Wrong formulas are off by far more. */
static bool gradient_right(const host_tensor *want, const host_tensor *got, double n, int64_t *at) {
    const double eps = want->dtype == FNX_F32 ? 0x1p-23 : 0x1p-52;
    double largest = 0;
    for (int64_t i = 0; i < want->count; i++)
        if (isfinite(host_element(want, i))) largest = fmax(largest, fabs(host_element(want, i)));
    for (*at = 0; *at < want->count; ++*at) {
        const double w = host_element(want, *at), g = host_element(got, *at);
        if ((isnan(w) && isnan(g)) || w == g) continue;
        if (!(fabs(w - g) <= 64 * sqrt(n) * eps * (fabs(w) + largest))) return false;
    }
    return true;
}

static void check_gradients(case_report *r, fnx_device *dev, const op_case *c) {
    FNX_SCOPE;
    fnx_tensor *in[CASE_OPERANDS], *out[CASE_RESULTS], *x[CASE_OPERANDS], *g[CASE_OPERANDS], *seed = NULL, *y = NULL;
    int of[CASE_OPERANDS], n = 0;
    double elements = 1;
    for (int k = 0; k < c->n_in; k++) {
        in[k] = op_case_upload(dev, &c->in[k]);
        elements = fmax(elements, (double)c->in[k].count);
        if (!c->gradient[k].dtype) continue;
        of[n] = k, x[n++] = in[k] = fnx_requires_grad(in[k]);
    }
    op_case_call(c, dev, in, out);
    if (c->n_out == 1) y = out[0], seed = op_case_upload(dev, &c->seed[0]);
    else
        for (int k = 0; k < c->n_out; k++) {
            fnx_tensor *part = dot(out[k], op_case_upload(dev, &c->seed[k]));
            y = y ? fnx_add(y, part) : part;
        }
    for (int k = 0; k < c->n_out; k++) elements = fmax(elements, (double)c->out[k].count);
    r->checked++;
    if (fnx_grad(y, x, n, g, .seed = seed)) {
        case_mistake(r, c, "%s", fnx_last_error()->message);
        return;
    }
    for (int i = 0; i < n; i++) {
        host_tensor got = c->gradient[of[i]];
        int64_t at;
        got.data = malloc(got.bytes + 1);
        bool same = fnx_tensor_dtype(g[i]) == got.dtype && fnx_tensor_rank(g[i]) == got.rank;
        for (int d = 0; d < got.rank && same; d++) same = fnx_tensor_size(g[i], d) == got.sizes[d];
        if (!same) case_mistake(r, c, "the gradient of operand %d has the wrong dtype or shape", of[i]);
        else if (fnx_tensor_read(g[i], got.data, got.bytes)) case_mistake(r, c, "%s", fnx_last_error()->message);
        else if (!gradient_right(&c->gradient[of[i]], &got, elements, &at))
            case_mistake(r, c, "gradient of operand %d, element %lld is %.17g, right is %.17g", of[i], (long long)at,
                         host_element(&got, at), host_element(&c->gradient[of[i]], at));
        free(got.data);
    }
}

static void check_all(int device, bool lazy, void (*check)(case_report *r, fnx_device *dev, const op_case *c),
                      bool (*takes)(const op_case *c)) {
    static case_report r;
    int n;
    const op_case *cases = op_cases(&n);
    fnx_device *dev = test_device(device, true);
    fnx_settings s = {.struct_size = sizeof s, .lazy = lazy ? FNX_ON : FNX_OFF};
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
    for (int i = 0; i < n; i++)
        if (takes(&cases[i])) check(&r, dev, &cases[i]);
    fnx_device_close(dev);
    ck_assert_msg(r.mistakes == 0, "%d mistakes in %d cases:%s", r.mistakes, r.checked, r.text);
    ck_assert_int_gt(r.checked, 100);
}

START_TEST(gradients_equal_pytorchs_lazily) { check_all(_i, true, check_gradients, is_differentiable); }
END_TEST

START_TEST(gradients_equal_pytorchs_eagerly) { check_all(_i, false, check_gradients, is_differentiable); }
END_TEST

/* ---- finite differences ------------------------------------------------------------------------------------------ */

/* The operands of a case and the gradients of its results, all moved by t along directions of their own. */
typedef struct line {
    const op_case *c;
    fnx_device *dev;
    double direction[INPUTS][512];     /* of operands, then of seeds */
    double weight[CASE_OPERANDS][512]; /* of the gradients, in the sum whose derivative is the second one */
} line;

static double chance(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

static bool moves(const line *l, int i) {
    return i < CASE_OPERANDS ? l->c->gradient[i].dtype != 0 : l->c->seed[i - CASE_OPERANDS].dtype != 0;
}
static const host_tensor *start(const line *l, int i) {
    return i < CASE_OPERANDS ? &l->c->in[i] : &l->c->seed[i - CASE_OPERANDS];
}

/* in: operands at t; seeds too. Those that move are leaves. */
static void at_point(const line *l, double t, fnx_tensor **in) {
    for (int i = 0; i < INPUTS; i++) {
        const host_tensor *h = start(l, i);
        in[i] = NULL;
        if (i < CASE_OPERANDS ? i >= l->c->n_in : i - CASE_OPERANDS >= l->c->n_out) continue;
        if (!moves(l, i)) {
            in[i] = op_case_upload(l->dev, h);
            continue;
        }
        double x[512];
        for (int64_t e = 0; e < h->count; e++) x[e] = host_element(h, e) + t * l->direction[i][e];
        in[i] = fnx_requires_grad(fnx_tensor_from(l->dev, FNX_F64, h->rank, h->sizes, x, 0));
    }
}

/* The sum of all results times their seeds. */
static fnx_tensor *total(const line *l, fnx_tensor **in) {
    fnx_tensor *out[CASE_RESULTS], *sum = NULL;
    op_case_call(l->c, l->dev, in, out);
    for (int k = 0; k < l->c->n_out; k++) {
        fnx_tensor *part = dot(out[k], in[CASE_OPERANDS + k]);
        sum = sum ? fnx_add(sum, part) : part;
    }
    return sum;
}

static fnx_tensor *host_like(const line *l, const host_tensor *h, const double *x) {
    return fnx_tensor_from(l->dev, FNX_F64, h->rank, h->sizes, x, 0);
}

/* The gradients of `total` for the operands, times their weights: the second derivatives are in its gradient. */
static fnx_tensor *slope(const line *l, fnx_tensor **in, bool create_graph) {
    fnx_tensor *x[CASE_OPERANDS], *g[CASE_OPERANDS], *sum = NULL;
    int of[CASE_OPERANDS], n = 0;
    for (int i = 0; i < CASE_OPERANDS; i++)
        if (moves(l, i)) of[n] = i, x[n++] = in[i];
    if (fnx_grad(total(l, in), x, n, g, .create_graph = create_graph)) return g[0];
    for (int k = 0; k < n; k++) {
        fnx_tensor *part = dot(g[k], host_like(l, start(l, of[k]), l->weight[of[k]]));
        sum = sum ? fnx_add(sum, part) : part;
    }
    return sum;
}

static double item(fnx_tensor *t) {
    double v = NAN;
    return fnx_tensor_item(t, &v) ? NAN : v;
}

static double function_at(const line *l, double t, bool second) {
    FNX_SCOPE;
    fnx_tensor *in[INPUTS];
    at_point(l, t, in);
    return item(second ? slope(l, in, false) : total(l, in));
}

/* d(total)/dt or d(slope)/dt by the tape; NaN with the thread's error if it failed. A missing gradient counts as 0. */
static double derivative_by_tape(const line *l, bool second) {
    FNX_SCOPE;
    fnx_tensor *in[INPUTS], *x[INPUTS], *g[INPUTS];
    double sum = 0;
    int of[INPUTS], n = 0;
    at_point(l, 0, in);
    for (int i = 0; i < INPUTS; i++)
        if (moves(l, i)) of[n] = i, x[n++] = in[i];
    fnx_tensor *y = second ? slope(l, in, true) : total(l, in);
    if (fnx_tensor_status(y)) return NAN;
    if (!fnx_tensor_requires_grad(y)) return 0; /* a constant */
    if (fnx_grad(y, x, n, g, .allow_unused = true)) return NAN;
    for (int k = 0; k < n; k++)
        if (g[k]) sum += item(dot(g[k], host_like(l, start(l, of[k]), l->direction[of[k]])));
    return sum;
}

/* Central differences, extrapolated (Richardson 1911); *out_error: how far the two steps are apart. */
static double derivative_by_difference(const line *l, bool second, double *out_error) {
    const double h = 0x1p-10;
    double wide = (function_at(l, h, second) - function_at(l, -h, second)) / (2 * h);
    double narrow = (function_at(l, h / 2, second) - function_at(l, -h / 2, second)) / h;
    *out_error = fabs(wide - narrow);
    return (4 * narrow - wide) / 3;
}

static bool is_smooth(const op_case *c) { return c->smooth && is_differentiable(c) && c->out[0].dtype == FNX_F64; }

static void check_derivatives(case_report *r, fnx_device *dev, const op_case *c) {
    static line l;
    uint64_t state = (uint64_t)r->checked++;
    l.c = c, l.dev = dev;
    for (int i = 0; i < INPUTS; i++) {
        if (!moves(&l, i)) continue;
        if (start(&l, i)->count > 512 || start(&l, i)->dtype != FNX_F64) {
            case_mistake(r, c, "too large, or not f64");
            return;
        }
        for (int64_t e = 0; e < start(&l, i)->count; e++) {
            l.direction[i][e] = chance(&state);
            if (i < CASE_OPERANDS) l.weight[i][e] = chance(&state);
        }
    }
    for (int second = 0; second < 2; second++) {
        double error, by_difference = derivative_by_difference(&l, second, &error),
                      by_tape = derivative_by_tape(&l, second);
        if (isnan(by_tape))
            case_mistake(r, c, "%s derivative: %s", second ? "second" : "first", fnx_last_error()->message);
        else if (!(fabs(by_tape - by_difference) <= 1e-8 * (1 + fabs(by_tape)) + error / 100))
            case_mistake(r, c, "%s derivative by the tape is %.12g, by differences %.12g +- %.1g",
                         second ? "second" : "first", by_tape, by_difference, error / 100);
    }
}

START_TEST(first_and_second_derivatives_equal_finite_differences) { check_all(_i, true, check_derivatives, is_smooth); }
END_TEST

/* The public function of an op has the op's name, with 2d for convolution and pooling. */
static bool is_function_of(const char *function, const char *op) {
    size_t n = strlen(op);
    return !strncmp(function, op, n) && (!function[n] || !strcmp(function + n, "2d"));
}

/* conv_grad_x and its like are reached by second derivatives, transfer by a test below. */
START_TEST(every_differentiable_op_has_cases) {
    int n;
    const op_case *cases = op_cases(&n);
    for (int op = 0; op < FNX_OP_LIMIT; op++) {
        const char *name = fnx_ops[op].name;
        bool found =
            !name || !fnx_ops[op].gradient || strstr(name, "_grad") || strstr(name, "_pick") || op == FNX_OP_transfer;
        for (int i = 0; i < n && !found; i++) found = is_smooth(&cases[i]) && is_function_of(cases[i].op, name);
        ck_assert_msg(found, "%s has no smooth case in tests/fixtures/ops.py", name);
    }
}
END_TEST

/* ---- adjoints ---------------------------------------------------------------------------------------------------- */

/* For a linear y = A x the gradient of <y, g> is A' g, and <A x, g> = <x, A' g>. Small integers make all sums exact. */

typedef struct lab {
    fnx_device *dev;
    uint64_t state;
} lab;

static int64_t pick(lab *l, int64_t n) {
    l->state = l->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((l->state >> 33) % (uint64_t)n);
}

static int64_t between(lab *l, int64_t low, int64_t high) { return low + pick(l, high - low + 1); }

static fnx_tensor *small_integers(lab *l, int dtype, int rank, const int64_t *sizes) {
    double x[4096];
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= sizes[d];
    ck_assert_int_le(n, 4096);
    for (int64_t i = 0; i < n; i++) x[i] = (double)pick(l, 15) - 7;
    return fnx_cast(fnx_tensor_from(l->dev, FNX_F64, rank, sizes, x, 0), dtype);
}

static fnx_tensor *leaf(lab *l, int rank, const int64_t *sizes) {
    return fnx_requires_grad(small_integers(l, FNX_F64, rank, sizes));
}
static fnx_tensor *like(lab *l, fnx_tensor *t) {
    return small_integers(l, FNX_F64, fnx_tensor_rank(t), fnx_tensor_sizes(t));
}

static double value(fnx_tensor *t) {
    double v;
    ck_assert_msg(fnx_tensor_item(t, &v) == 0, "%s", fnx_last_error()->message);
    return v;
}

/* <y, g> equals the sum of <x[i], gradient of x[i]> over all x. `each`: y is linear in each x alone, and it equals
 * every one of them. */
static void check_adjoint(lab *l, const char *what, fnx_tensor *y, fnx_tensor **x, int n, bool each) {
    fnx_tensor *gradient[3];
    ck_assert_msg(fnx_tensor_status(y) == 0, "%s: %s", what, fnx_last_error()->message);
    fnx_tensor *g = like(l, y);
    ck_assert_msg(fnx_grad(y, x, n, gradient, .seed = g) == 0, "%s: %s", what, fnx_last_error()->message);
    double left = value(dot(y, g)), right = 0;
    for (int i = 0; i < n; i++) {
        double part = value(dot(x[i], gradient[i]));
        right += part;
        if (each)
            ck_assert_msg(fabs(part - left) <= 1e-9, "%s: <y, g> is %g, <x, x's gradient> %g for operand %d", what,
                          left, part, i);
    }
    if (!each) ck_assert_msg(fabs(right - left) <= 1e-9, "%s: <y, g> is %g, <x, x's gradient> %g", what, left, right);
}

enum { ROUNDS = 100 };

START_TEST(gradients_of_convolution_are_its_adjoints) {
    lab l = {test_device(_i, true), 1};
    for (int i = 0; i < ROUNDS; i++) {
        FNX_SCOPE;
        fnx_conv2d_options o = {.groups = (int)between(&l, 1, 3), .asymmetric = pick(&l, 2)};
        int64_t x[4] = {between(&l, 1, 2), o.groups * between(&l, 1, 2)},
                w[4] = {o.groups * between(&l, 1, 2), x[1] / o.groups};
        for (int d = 0; d < 2; d++) {
            o.stride[d] = (int)between(&l, 1, 3), o.dilation[d] = (int)between(&l, 1, 2);
            o.padding[d] = (int)pick(&l, 3), o.padding_after[d] = (int)pick(&l, 3);
            w[2 + d] = between(&l, 1, 3), x[2 + d] = o.dilation[d] * (w[2 + d] - 1) + between(&l, 1, 4);
        }
        fnx_tensor *in[2] = {leaf(&l, 4, x), leaf(&l, 4, w)};
        check_adjoint(&l, "conv2d", fnx_conv2d_with(in[0], in[1], NULL, &o), in, 2, true);
    }
    fnx_device_close(l.dev);
}
END_TEST

START_TEST(gradients_of_pooling_are_its_adjoints) {
    lab l = {test_device(_i, true), 2};
    for (int i = 0; i < ROUNDS; i++) {
        FNX_SCOPE;
        fnx_pool2d_options o = {.exclude_padding = pick(&l, 2)};
        int64_t x[4] = {between(&l, 1, 2), between(&l, 1, 2)};
        int window[2];
        for (int d = 0; d < 2; d++) {
            window[d] = (int)between(&l, 1, 4), o.stride[d] = (int)between(&l, 1, 3),
            o.padding[d] = (int)pick(&l, window[d] / 2 + 1);
            x[2 + d] = window[d] + pick(&l, 4);
        }
        fnx_tensor *in = leaf(&l, 4, x);
        check_adjoint(&l, "max_pool2d", fnx_max_pool2d_with(in, window[0], window[1], &o), &in, 1, true);
        check_adjoint(&l, "avg_pool2d", fnx_avg_pool2d_with(in, window[0], window[1], &o), &in, 1, true);
    }
    fnx_device_close(l.dev);
}
END_TEST

START_TEST(gradients_of_gather_and_scatter_are_their_adjoints) {
    lab l = {test_device(_i, true), 3};
    for (int i = 0; i < ROUNDS; i++) {
        FNX_SCOPE;
        int64_t x[3], small[3], index[512], n = 1;
        int rank = (int)between(&l, 1, 3), axis = (int)pick(&l, rank);
        for (int d = 0; d < rank; d++)
            x[d] = between(&l, 1, 5), small[d] = d == axis ? between(&l, 1, 7) : between(&l, 1, x[d]), n *= small[d];
        for (int64_t k = 0; k < n; k++) index[k] = pick(&l, x[axis]);
        fnx_tensor *at =
            fnx_cast(fnx_tensor_from(l.dev, FNX_I64, rank, small, index, 0), pick(&l, 2) ? FNX_I64 : FNX_I32);
        fnx_tensor *in[2] = {leaf(&l, rank, x), leaf(&l, rank, small)};
        check_adjoint(&l, "gather", fnx_gather(in[0], axis, at), in, 1, false);
        check_adjoint(&l, "scatter_add", fnx_scatter_add(in[0], axis, at, in[1]), in, 2, false);
    }
    fnx_device_close(l.dev);
}
END_TEST

START_TEST(gradients_of_shapes_are_their_adjoints) {
    lab l = {test_device(_i, true), 4};
    for (int i = 0; i < ROUNDS; i++) {
        FNX_SCOPE;
        int64_t x[4], part[4], starts[4], steps[4], low[4], high[4], wide[5], other[4];
        int rank = (int)between(&l, 1, 4), order[4], axis = (int)pick(&l, rank);
        wide[0] = between(&l, 1, 3);
        for (int d = 0; d < rank; d++) {
            x[d] = between(&l, 1, 5), order[d] = d, part[d] = between(&l, 1, x[d]), low[d] = pick(&l, 3),
            high[d] = pick(&l, 3);
            int64_t most = part[d] == 1 ? 1 : (x[d] - 1) / (part[d] - 1), step = between(&l, 1, most),
                    room = x[d] - 1 - step * (part[d] - 1);
            starts[d] = pick(&l, room + 1), steps[d] = step;
            if (pick(&l, 2)) starts[d] += step * (part[d] - 1), steps[d] = -step; /* from the other end */
            wide[d + 1] = x[d] == 1 ? between(&l, 1, 3) : x[d];
            other[d] = d == axis ? between(&l, 1, 4) : x[d];
        }
        for (int d = rank - 1; d > 0; d--) {
            int k = (int)pick(&l, d + 1), was = order[d];
            order[d] = order[k], order[k] = was;
        }
        fnx_tensor *in[3] = {leaf(&l, rank, x), leaf(&l, rank, part), leaf(&l, rank, other)};
        check_adjoint(&l, "slice_all", fnx_slice_all(in[0], starts, part, steps), in, 1, false);
        check_adjoint(&l, "slice_assign", fnx_slice_assign(in[0], in[1], starts, steps), in, 2, false);
        check_adjoint(&l, "pad", fnx_pad(in[0], low, high, 0), in, 1, false);
        check_adjoint(&l, "permute", fnx_permute(in[0], order), in, 1, false);
        check_adjoint(&l, "reshape", fnx_reshape(fnx_permute(in[0], order), FNX_SHAPE(-1)), in, 1, false);
        check_adjoint(&l, "expand", fnx_expand(in[0], rank + 1, wide), in, 1, false);
        check_adjoint(&l, "concat", fnx_concat((fnx_tensor *[]){in[0], in[2], in[0]}, 3, axis),
                      (fnx_tensor *[]){in[0], in[2]}, 2, false);
        check_adjoint(&l, "sum", fnx_sum(in[0], FNX_AXES((int8_t)axis), pick(&l, 2)), in, 1, false);
    }
    fnx_device_close(l.dev);
}
END_TEST

START_TEST(gradients_of_matmul_are_its_adjoints) {
    lab l = {test_device(_i, true), 5};
    for (int i = 0; i < ROUNDS; i++) {
        FNX_SCOPE;
        int64_t batch[2] = {between(&l, 1, 3), between(&l, 1, 3)}, m = between(&l, 1, 5), k = between(&l, 1, 5),
                n = between(&l, 1, 5);
        int64_t a[4] = {pick(&l, 2) ? batch[0] : 1, pick(&l, 2) ? batch[1] : 1, m, k},
                b[4] = {pick(&l, 2) ? batch[0] : 1, pick(&l, 2) ? batch[1] : 1, k, n};
        int skip_a = (int)pick(&l, 3), skip_b = (int)pick(&l, 3); /* leading axes that are not there */
        fnx_tensor *in[2] = {leaf(&l, 4 - skip_a, a + skip_a), leaf(&l, 4 - skip_b, b + skip_b)};
        check_adjoint(&l, "matmul", fnx_matmul(in[0], in[1]), in, 2, true);
    }
    fnx_device_close(l.dev);
}
END_TEST

/* ---- the tape ---------------------------------------------------------------------------------------------------- */

static fnx_tensor *number(fnx_device *dev, double v) {
    return fnx_requires_grad(fnx_fill(dev, FNX_F64, FNX_SCALAR_SHAPE, v));
}

START_TEST(gradients_of_a_tensor_used_often_add_up) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_tensor *x = number(dev, 3), *y = x, *g;
    for (int i = 0; i < 5; i++) y = fnx_add(fnx_mul(y, x), x); /* x^6 + x^5 + .. + x */
    ck_assert_int_eq(fnx_grad(y, &x, 1, &g, .retain = true), 0);
    double want = 0;
    for (int i = 1; i <= 6; i++) want += i * pow(3, i - 1);
    ck_assert_double_eq(value(g), want);
    fnx_device_close(dev);
}
END_TEST

START_TEST(backward_adds_to_the_gradients_of_variables_only) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    fnx_variable *w = fnx_variable_create("w", fnx_fill(dev, FNX_F64, FNX_SCALAR_SHAPE, 2), true);
    fnx_variable *fixed = fnx_variable_create("fixed", fnx_fill(dev, FNX_F64, FNX_SCALAR_SHAPE, 5), false);
    ck_assert_ptr_null(fnx_variable_grad(w));
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(fnx_backward(
                             fnx_mul(fnx_mul(fnx_variable_get(w), fnx_variable_get(w)), fnx_variable_get(fixed))),
                         0);
        ck_assert_double_eq(value(fnx_variable_grad(w)), 20 * i);
        ck_assert_ptr_null(fnx_variable_grad(fixed));
    }
    fnx_variable_grad_clear(w);
    ck_assert_ptr_null(fnx_variable_grad(w));
    fnx_variable_destroy(w), fnx_variable_destroy(fixed);
    fnx_device_close(dev);
}
END_TEST

START_TEST(gradients_stop_where_the_program_says) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_tensor *x = number(dev, 3), *g, *untaped;
    {
        FNX_NO_GRAD;
        untaped = fnx_return(fnx_mul(x, x));
    }
    ck_assert(!fnx_tensor_requires_grad(untaped) && !fnx_tensor_requires_grad(fnx_detach(x)) &&
              fnx_tensor_requires_grad(fnx_mul(x, x)));
    ck_assert_int_eq(fnx_grad(fnx_add(fnx_mul(fnx_detach(x), x), fnx_mul(untaped, x)), &x, 1, &g), 0);
    ck_assert_double_eq(value(g), 3 + 9);
    fnx_device_close(dev);
}
END_TEST

START_TEST(gradients_of_intermediate_tensors_can_be_asked_for) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_tensor *x = number(dev, 0.5), *h = fnx_exp(x), *y = fnx_mul(h, h), *g[3];
    ck_assert_int_eq(fnx_grad(y, ((fnx_tensor *[]){h, x, y}), 3, g, .retain = true), 0);
    ck_assert_double_eq_tol(value(g[0]), 2 * exp(0.5), 1e-12);
    ck_assert_double_eq_tol(value(g[1]), 2 * exp(1), 1e-12);
    ck_assert_double_eq(value(g[2]), 1);
    fnx_device_close(dev);
}
END_TEST

START_TEST(gradients_flow_back_from_another_device) {
    fnx_device *from = test_device(_i, true), *to = fnx_device_autodiff(fnx_device_open("ref"));
    FNX_SCOPE;
    fnx_tensor *x = number(from, 3), *moved = fnx_tensor_to(fnx_mul(x, x), to), *y = fnx_mul(moved, moved), *g;
    ck_assert(fnx_device_same_hardware(fnx_tensor_device(moved), to));
    ck_assert_msg(fnx_grad(y, &x, 1, &g) == 0, "%s", fnx_last_error()->message);
    ck_assert_double_eq(value(g), 4 * 27);
    ck_assert(fnx_device_same_hardware(fnx_tensor_device(g), from));
    fnx_device_close(from), fnx_device_close(to);
}
END_TEST

START_TEST(dropout_passes_gradients_where_it_passed_values) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    double y[200], g[200];
    fnx_tensor *x = fnx_requires_grad(fnx_fill(dev, FNX_F64, FNX_SHAPE(200), 1)), *out = fnx_dropout(x, 0.3), *gradient;
    ck_assert_int_eq(fnx_grad(fnx_sum(out, FNX_ALL_AXES, false), &x, 1, &gradient), 0);
    ck_assert_int_eq(fnx_tensor_read(out, y, sizeof y), 0);
    ck_assert_int_eq(fnx_tensor_read(gradient, g, sizeof g), 0);
    ck_assert_mem_eq(y, g, sizeof y);
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("grad");
    int n;
    (void)op_cases(&n);
    test_each_device(t, gradients_equal_pytorchs_lazily);
    test_each_device(t, gradients_equal_pytorchs_eagerly);
    test_each_device(t, first_and_second_derivatives_equal_finite_differences);
    tcase_add_test(t, every_differentiable_op_has_cases);
    test_each_device(t, gradients_of_convolution_are_its_adjoints);
    test_each_device(t, gradients_of_pooling_are_its_adjoints);
    test_each_device(t, gradients_of_gather_and_scatter_are_their_adjoints);
    test_each_device(t, gradients_of_shapes_are_their_adjoints);
    test_each_device(t, gradients_of_matmul_are_its_adjoints);
    test_each_device(t, gradients_of_a_tensor_used_often_add_up);
    test_each_device(t, backward_adds_to_the_gradients_of_variables_only);
    test_each_device(t, gradients_stop_where_the_program_says);
    test_each_device(t, gradients_of_intermediate_tensors_can_be_asked_for);
    test_each_device(t, gradients_flow_back_from_another_device);
    test_each_device(t, dropout_passes_gradients_where_it_passed_values);
    return test_run("grad", t);
}
