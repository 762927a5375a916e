/* See op_cases.h. */
#include "support/op_cases.h"

#include "ops/op.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int code;
} dtypes[] = {{"bool", FNX_BOOL}, {"u8", FNX_U8},   {"i32", FNX_I32},
              {"i64", FNX_I64},   {"f32", FNX_F32}, {"f64", FNX_F64}};

static _Noreturn void stop(const char *what, const char *name) {
    fprintf(stderr, "ops.json: %s: %s\n", name, what);
    exit(99);
}

static int dtype_of(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, name)) return dtypes[i].code;
    stop("no such dtype", name);
}

/* ---- reading the file -------------------------------------------------------------------------------------------- */

static int digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c ? strchr(digits, c) : NULL;
    return p ? (int)(p - digits) : -1;
}

/* Base64; false unless it is `bytes` bytes. */
static bool decode(const char *text, uint8_t *out, size_t bytes) {
    size_t n = 0;
    uint32_t word = 0;
    int bits = 0;
    for (; digit(*text) >= 0; text++) {
        word = word << 6 | (uint32_t)digit(*text);
        if ((bits += 6) < 8) continue;
        bits -= 8;
        if (n == bytes) return false;
        out[n++] = (uint8_t)(word >> bits);
    }
    return n == bytes;
}

static host_tensor read_tensor(const json_t *j, const char *name) {
    host_tensor t = {.count = 1};
    if (!j || json_is_null(j)) return (host_tensor){0};
    const json_t *sizes = json_array_get(j, 1);
    const char *data = json_string_value(json_array_get(j, 2));
    t.dtype = dtype_of(json_string_value(json_array_get(j, 0)));
    t.rank = (int)json_array_size(sizes);
    for (int d = 0; d < t.rank; d++) t.count *= t.sizes[d] = json_integer_value(json_array_get(sizes, (size_t)d));
    t.bytes = (size_t)t.count * fnx_dtypes[t.dtype].bytes;
    t.data = calloc(t.bytes + 1, 1);
    if (!t.data || !data || !decode(data, t.data, t.bytes)) stop("a tensor cannot be read", name);
    return t;
}

static int read_tensors(const json_t *c, const char *key, host_tensor *out, int most) {
    const json_t *list = json_object_get(c, key);
    const char *name = json_string_value(json_object_get(c, "name"));
    int n = (int)json_array_size(list);
    if (n > most) stop("too many tensors", name);
    for (int i = 0; i < n; i++) out[i] = read_tensor(json_array_get(list, (size_t)i), name);
    return n;
}

const op_case *op_cases(int *out_n) {
    static op_case *all;
    static json_t *file; /* the strings in `all` are its */
    static int n;
    json_error_t error;
    *out_n = n;
    if (all) return all;
    file = json_load_file(TEST_SOURCE_DIR "/fixtures/ops.json", 0, &error);
    if (!file) stop(error.text, error.source);
    n = *out_n = (int)json_array_size(file);
    all = calloc((size_t)n + 1, sizeof *all);
    for (int i = 0; i < n && all; i++) {
        const json_t *j = json_array_get(file, (size_t)i);
        op_case *c = &all[i];
        c->op = json_string_value(json_object_get(j, "op"));
        c->name = json_string_value(json_object_get(j, "name"));
        c->args = json_object_get(j, "args");
        c->terms = json_number_value(json_object_get(j, "terms"));
        c->smooth = json_integer_value(json_object_get(j, "smooth")) != 0;
        c->n_in = read_tensors(j, "in", c->in, CASE_OPERANDS);
        c->n_out = read_tensors(j, "out", c->out, CASE_RESULTS);
        read_tensors(j, "scale", c->scale, CASE_RESULTS);
        read_tensors(j, "seed", c->seed, CASE_RESULTS);
        read_tensors(j, "grad", c->gradient, CASE_OPERANDS);
        if (!op_case_knows(c->op)) stop("no such function", c->op);
    }
    return all;
}

fnx_tensor *op_case_upload(fnx_device *device, const host_tensor *t) {
    return t->dtype ? fnx_tensor_from(device, t->dtype, t->rank, t->sizes, t->data, 0) : NULL;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

typedef struct call {
    const op_case *c;
    fnx_device *device;
    fnx_tensor *const *in;
    fnx_tensor **out;
} call;

static int64_t number(const call *a, const char *key) { return json_integer_value(json_object_get(a->c->args, key)); }

static double real(const call *a, const char *key) {
    const char *text = json_string_value(json_object_get(a->c->args, key));
    return text ? strtod(text, NULL) : 0;
}

static int element_type(const call *a) { return dtype_of(json_string_value(json_object_get(a->c->args, "dtype"))); }

/* Returns how many. */
static int numbers(const call *a, const char *key, int64_t *out) {
    const json_t *list = json_object_get(a->c->args, key);
    int n = (int)json_array_size(list);
    for (int i = 0; i < n && i < (int)FNX_MAX_RANK; i++) out[i] = json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

static void ints(const call *a, const char *key, int *out) {
    int64_t v[FNX_MAX_RANK];
    int n = numbers(a, key, v);
    for (int i = 0; i < n; i++) out[i] = (int)v[i];
}

static fnx_axes axes(const call *a) {
    int64_t v[FNX_MAX_RANK];
    fnx_axes x = {.count = (int8_t)numbers(a, "axes", v)};
    for (int i = 0; i < x.count; i++) x.axis[i] = (int8_t)v[i];
    return x;
}

/* ---- the public functions ---------------------------------------------------------------------------------------- */

#define DEFINE(name, expression) \
    static void call_##name(const call *a) { a->out[0] = (expression); }
#define UNARY(name) DEFINE(name, fnx_##name(a->in[0]))
#define BINARY(name) DEFINE(name, fnx_##name(a->in[0], a->in[1]))
#define SCALAR(name) DEFINE(name, fnx_##name(a->in[0], real(a, "s")))
#define REDUCE(name) DEFINE(name, fnx_##name(a->in[0], axes(a), number(a, "keep") != 0))
#define ALONG(name) DEFINE(name, fnx_##name(a->in[0], (int)number(a, "axis")))

/* clang-format off */
#define UNARIES(X) X(neg) X(abs) X(exp) X(log) X(sqrt) X(tanh) X(sigmoid) X(erf) X(relu) X(gelu) X(copy)
#define BINARIES(X) \
    X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum) X(equal) X(not_equal) X(less) X(less_equal) X(greater) \
    X(greater_equal) X(matmul)
#define SCALARS(X) \
    X(add_scalar) X(sub_scalar) X(mul_scalar) X(div_scalar) X(pow_scalar) X(maximum_scalar) X(minimum_scalar) \
    X(equal_scalar) X(not_equal_scalar) X(less_scalar) X(less_equal_scalar) X(greater_scalar) X(greater_equal_scalar) \
    X(fill_like) X(dropout)
#define REDUCTIONS(X) X(sum) X(mean) X(max) X(min)
#define ALONGS(X) X(softmax) X(log_softmax) X(flatten)
#define OTHERS(X) \
    X(scalar_sub) X(scalar_div) X(where) X(cast) X(fill) X(iota) X(argmax) X(linear) X(conv2d) X(max_pool2d) \
    X(avg_pool2d) X(reshape) X(permute) X(transpose) X(expand) X(slice) X(slice_all) X(slice_assign) X(concat) X(pad) \
    X(gather) X(scatter_add) X(one_hot) X(cross_entropy) X(batch_norm) X(batch_norm_train)
/* clang-format on */

UNARIES(UNARY)
BINARIES(BINARY)
SCALARS(SCALAR)
REDUCTIONS(REDUCE)
ALONGS(ALONG)
DEFINE(scalar_sub, fnx_scalar_sub(real(a, "s"), a->in[0]))
DEFINE(scalar_div, fnx_scalar_div(real(a, "s"), a->in[0]))
DEFINE(where, fnx_where(a->in[0], a->in[1], a->in[2]))
DEFINE(cast, fnx_cast(a->in[0], element_type(a)))
DEFINE(argmax, fnx_argmax(a->in[0], (int)number(a, "axis"), number(a, "keep") != 0))
DEFINE(linear, fnx_linear(a->in[0], a->in[1], a->in[2]))
DEFINE(concat, fnx_concat(a->in, a->c->n_in, (int)number(a, "axis")))
DEFINE(gather, fnx_gather(a->in[0], (int)number(a, "axis"), a->in[1]))
DEFINE(scatter_add, fnx_scatter_add(a->in[0], (int)number(a, "axis"), a->in[1], a->in[2]))
DEFINE(one_hot, fnx_one_hot(a->in[0], number(a, "size"), element_type(a)))
DEFINE(slice, fnx_slice(a->in[0], (int)number(a, "axis"), number(a, "start"), number(a, "size")))
DEFINE(batch_norm, fnx_batch_norm(a->in[0], a->in[1], a->in[2], a->in[3], a->in[4], real(a, "eps")))

static void call_cross_entropy(const call *a) {
    int reduction = (int)number(a, "reduction");
    a->out[0] = reduction == FNX_REDUCE_MEAN ? fnx_cross_entropy(a->in[0], a->in[1])
                                             : fnx_cross_entropy_with(a->in[0], a->in[1], reduction);
}

static void call_batch_norm_train(const call *a) {
    fnx_batch_norm_result r = fnx_batch_norm_train(a->in[0], a->in[1], a->in[2], real(a, "eps"));
    a->out[0] = r.y, a->out[1] = r.mean, a->out[2] = r.variance;
}

static void call_fill(const call *a) {
    int64_t sizes[FNX_MAX_RANK];
    int rank = numbers(a, "sizes", sizes);
    a->out[0] = fnx_fill(a->device, element_type(a), rank, sizes, real(a, "s"));
}

static void call_iota(const call *a) {
    int64_t sizes[FNX_MAX_RANK];
    int rank = numbers(a, "sizes", sizes);
    a->out[0] = fnx_iota(a->device, element_type(a), rank, sizes, (int)number(a, "axis"));
}

static void call_reshape(const call *a) {
    int64_t sizes[FNX_MAX_RANK];
    int rank = numbers(a, "sizes", sizes);
    a->out[0] = fnx_reshape(a->in[0], rank, sizes);
}

static void call_expand(const call *a) {
    int64_t sizes[FNX_MAX_RANK];
    int rank = numbers(a, "sizes", sizes);
    a->out[0] = fnx_expand(a->in[0], rank, sizes);
}

static void call_permute(const call *a) {
    int order[FNX_MAX_RANK];
    ints(a, "axes", order);
    a->out[0] = fnx_permute(a->in[0], order);
}

static void call_transpose(const call *a) {
    int two[FNX_MAX_RANK];
    ints(a, "axes", two);
    a->out[0] = fnx_transpose(a->in[0], two[0], two[1]);
}

static void call_slice_all(const call *a) {
    int64_t starts[FNX_MAX_RANK], sizes[FNX_MAX_RANK], steps[FNX_MAX_RANK];
    numbers(a, "starts", starts), numbers(a, "sizes", sizes);
    a->out[0] = fnx_slice_all(a->in[0], starts, sizes, numbers(a, "steps", steps) ? steps : NULL);
}

static void call_slice_assign(const call *a) {
    int64_t starts[FNX_MAX_RANK], steps[FNX_MAX_RANK];
    numbers(a, "starts", starts);
    a->out[0] = fnx_slice_assign(a->in[0], a->in[1], starts, numbers(a, "steps", steps) ? steps : NULL);
}

static void call_pad(const call *a) {
    int64_t low[FNX_MAX_RANK], high[FNX_MAX_RANK];
    numbers(a, "low", low), numbers(a, "high", high);
    a->out[0] = fnx_pad(a->in[0], low, high, real(a, "s"));
}

static void call_conv2d(const call *a) {
    fnx_conv2d_options o = {.groups = (int)number(a, "groups"), .asymmetric = number(a, "asymmetric") != 0};
    ints(a, "stride", o.stride), ints(a, "dilation", o.dilation), ints(a, "padding", o.padding),
        ints(a, "padding_after", o.padding_after);
    a->out[0] = fnx_conv2d_with(a->in[0], a->in[1], a->in[2], json_object_size(a->c->args) ? &o : NULL);
}

static void pool(const call *a, fnx_tensor *(*f)(fnx_tensor *, int, int, const fnx_pool2d_options *)) {
    fnx_pool2d_options o = {.exclude_padding = number(a, "exclude_padding") != 0};
    int window[FNX_MAX_RANK];
    ints(a, "window", window), ints(a, "stride", o.stride), ints(a, "padding", o.padding);
    a->out[0] = f(a->in[0], window[0], window[1], json_object_size(a->c->args) > 1 ? &o : NULL);
}

static void call_max_pool2d(const call *a) { pool(a, fnx_max_pool2d_with); }
static void call_avg_pool2d(const call *a) { pool(a, fnx_avg_pool2d_with); }

#define ROW(name) {#name, call_##name},
static const struct {
    const char *name;
    void (*call)(const call *a);
} functions[] = {UNARIES(ROW) BINARIES(ROW) SCALARS(ROW) REDUCTIONS(ROW) ALONGS(ROW) OTHERS(ROW)};

static int find(const char *op) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, op)) return (int)i;
    return -1;
}

bool op_case_knows(const char *op) { return find(op) >= 0; }

void op_case_call(const op_case *c, fnx_device *device, fnx_tensor *const *in, fnx_tensor **out) {
    functions[find(c->op)].call(&(call){c, device, in, out});
}

/* ---- right or wrong ---------------------------------------------------------------------------------------------- */

double host_element(const host_tensor *t, int64_t i) {
    switch (t->dtype) {
    case FNX_BOOL:
    case FNX_U8: return ((const uint8_t *)t->data)[i];
    case FNX_I32: return ((const int32_t *)t->data)[i];
    case FNX_I64: return (double)((const int64_t *)t->data)[i];
    case FNX_F32: return (double)((const float *)t->data)[i];
    default: return ((const double *)t->data)[i];
    }
}

/* The row of ops.def behind a public function: add for add_scalar, sub for scalar_sub. NULL: it has none. */
static const fnx_op_info *row(const char *op) {
    char name[64];
    snprintf(name, sizeof name, "%s", !strncmp(op, "scalar_", 7) ? op + 7 : op);
    char *suffix = strstr(name, "_scalar");
    if (suffix) *suffix = 0;
    for (int i = 0; i < FNX_OP_LIMIT; i++)
        if (fnx_ops[i].name && !strcmp(fnx_ops[i].name, name)) return &fnx_ops[i];
    return NULL;
}

double last_place(int dtype, double v) {
    if (dtype == FNX_F32) {
        float x = fabsf((float)v);
        return x == FLT_MAX ? 0x1p104 : (double)nextafterf(x, INFINITY) - (double)x;
    }
    return fabs(v) == DBL_MAX ? 0x1p971 : nextafter(fabs(v), INFINITY) - fabs(v);
}

double op_ulps(const char *function) {
    const fnx_op_info *op = row(function);
    return op ? (double)op->ulp : 0;
}

double op_case_limit(const op_case *c, int k, int64_t i) {
    const host_tensor *want = &c->out[k];
    const double units = op_ulps(c->op), eps = want->dtype == FNX_F32 ? 0x1p-23 : 0x1p-52;
    if (!fnx_dtype_is_float(want->dtype)) return 0;
    if (!c->scale[k].dtype) return units * last_place(want->dtype, host_element(want, i));
    const double scale = host_element(&c->scale[k], i) * (1 + 0x1p-20); /* it was rounded to f32 */
    if (c->terms != 0) return 4 * sqrt(c->terms) * eps * scale;
    return (units != 0 ? units : 16) * eps * scale;
}

bool op_case_right(const op_case *c, int k, const void *got, int64_t *at) {
    host_tensor g = c->out[k];
    g.data = (void *)(uintptr_t)got;
    const size_t each = g.count ? g.bytes / (size_t)g.count : 0;
    for (*at = 0; *at < g.count; ++*at) {
        const size_t o = (size_t)*at * each;
        if (!memcmp((const char *)got + o, (const char *)c->out[k].data + o, each)) continue;
        if (!fnx_dtype_is_float(g.dtype)) return false;
        const double x = host_element(&g, *at), want = host_element(&c->out[k], *at), limit = op_case_limit(c, k, *at);
        if (isnan(x) && isnan(want)) continue;
        if (isinf(want) || limit == 0) return false; /* their bits differ */
        if (!(fabs(x - want) <= limit)) return false;
    }
    return true;
}

void case_mistake(case_report *r, const op_case *c, const char *format, ...) {
    enum { SHOWN = 20 };
    size_t n = strlen(r->text);
    va_list list;
    if (r->mistakes++ >= SHOWN) return;
    n += (size_t)snprintf(r->text + n, sizeof r->text - n, "\n  %s: %s: ", c->op, c->name);
    va_start(list, format);
    if (n < sizeof r->text) vsnprintf(r->text + n, sizeof r->text - n, format, list);
    va_end(list);
}
