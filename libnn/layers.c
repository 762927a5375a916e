/* Layers: a class each, with what it is made with in the module's union. */
#include "module.h"

#include <math.h>

/* A layer of this class whose arguments were right, or failed. */
static fnx_module *layer(const char *type, const module_class *class, bool valid, const char *needs) {
    fnx_module *m = module_new(type, class);
    if (!m->is_static && !valid) cause_take(&m->cause, fnx_error_set(FNX_E_INVALID, "%s: %s", type, needs));
    return m;
}

/* Uniform in [-1/sqrt(fan_in), 1/sqrt(fan_in)). */
static void initial(fnx_module *m, const char *name, int rank, const int64_t *sizes, int64_t fan_in) {
    double bound = 1 / sqrt((double)fan_in);
    fnx_module_parameter(m, name, fnx_uniform(m->device, 0, rank, sizes, -bound, bound));
}

/* ---- linear ------------------------------------------------------------------------------------------------------ */

static void linear_build(fnx_module *m) {
    initial(m, "weight", FNX_SHAPE(m->linear.out, m->linear.in), m->linear.in);
    if (m->linear.bias) initial(m, "bias", FNX_SHAPE(m->linear.out), m->linear.in);
}

static fnx_tensor *linear_forward(fnx_module *m, fnx_tensor *x) {
    return fnx_linear(x, fnx_module_value(m, "weight"), m->linear.bias ? fnx_module_value(m, "bias") : NULL);
}

static const module_class linear = {linear_build, linear_forward};

static fnx_module *linear_new(int64_t in, int64_t out, bool bias) {
    fnx_module *m = layer("linear", &linear, in > 0 && out > 0, "in and out must be at least 1");
    if (!m->is_static) m->linear.in = in, m->linear.out = out, m->linear.bias = bias;
    return m;
}

fnx_module *fnx_layer_linear(int64_t in, int64_t out) { return linear_new(in, out, true); }
fnx_module *fnx_layer_linear_without_bias(int64_t in, int64_t out) { return linear_new(in, out, false); }

/* ---- convolution ------------------------------------------------------------------------------------------------- */

static int groups_of(const fnx_module *m) { return m->conv.options.groups ? m->conv.options.groups : 1; }

static void conv_build(fnx_module *m) {
    int64_t per_group = m->conv.in / groups_of(m), k = m->conv.kernel, fan_in = per_group * k * k;
    initial(m, "weight", FNX_SHAPE(m->conv.out, per_group, k, k), fan_in);
    if (!m->conv.options.without_bias) initial(m, "bias", FNX_SHAPE(m->conv.out), fan_in);
}

static fnx_tensor *conv_forward(fnx_module *m, fnx_tensor *x) {
    const fnx_layer_conv2d_options *o = &m->conv.options;
    fnx_conv2d_options op = {.stride = {o->stride[0], o->stride[1]},
                             .dilation = {o->dilation[0], o->dilation[1]},
                             .padding = {o->padding[0], o->padding[1]},
                             .groups = o->groups};
    return fnx_conv2d_with(x, fnx_module_value(m, "weight"), o->without_bias ? NULL : fnx_module_value(m, "bias"), &op);
}

static const module_class conv = {conv_build, conv_forward};

fnx_module *fnx_layer_conv2d_with(int64_t in, int64_t out, int kernel,
                                  const fnx_layer_conv2d_options *options_or_null) {
    static const fnx_layer_conv2d_options none = {0};
    const fnx_layer_conv2d_options *o = options_or_null ? options_or_null : &none;
    int groups = o->groups ? o->groups : 1;
    bool valid = in > 0 && out > 0 && kernel > 0 && groups > 0 && in % groups == 0 && out % groups == 0;
    fnx_module *m =
        layer("conv2d", &conv, valid, "channels and kernel must be at least 1, and groups divide both channel counts");
    if (!m->is_static) m->conv.in = in, m->conv.out = out, m->conv.kernel = kernel, m->conv.options = *o;
    return m;
}

/* ---- pooling, shape, activations --------------------------------------------------------------------------------- */

static fnx_tensor *pool_forward(fnx_module *m, fnx_tensor *x) {
    int k = m->pool.size;
    return m->pool.max ? fnx_max_pool2d_with(x, k, k, NULL) : fnx_avg_pool2d_with(x, k, k, NULL);
}

static const module_class pool = {NULL, pool_forward};

static fnx_module *pool_new(const char *type, int size, bool max) {
    fnx_module *m = layer(type, &pool, size > 0, "the size must be at least 1");
    if (!m->is_static) m->pool.size = size, m->pool.max = max;
    return m;
}

fnx_module *fnx_layer_max_pool2d(int size) { return pool_new("max_pool2d", size, true); }
fnx_module *fnx_layer_avg_pool2d(int size) { return pool_new("avg_pool2d", size, false); }

static fnx_tensor *flatten(fnx_tensor *x) { return fnx_flatten(x, 1); }
static fnx_tensor *activation_forward(fnx_module *m, fnx_tensor *x) { return m->activation.function(x); }

static const module_class activation = {NULL, activation_forward};

static fnx_module *activation_new(const char *type, fnx_tensor *(*function)(fnx_tensor *x)) {
    fnx_module *m = layer(type, &activation, true, "");
    if (!m->is_static) m->activation.function = function;
    return m;
}

fnx_module *fnx_layer_flatten(void) { return activation_new("flatten", flatten); }
fnx_module *fnx_layer_relu(void) { return activation_new("relu", fnx_relu); }
fnx_module *fnx_layer_gelu(void) { return activation_new("gelu", fnx_gelu); }
fnx_module *fnx_layer_sigmoid(void) { return activation_new("sigmoid", fnx_sigmoid); }
fnx_module *fnx_layer_tanh(void) { return activation_new("tanh", fnx_tanh); }

/* ---- dropout, batch norm ----------------------------------------------------------------------------------------- */

static fnx_tensor *dropout_forward(fnx_module *m, fnx_tensor *x) {
    return m->training ? fnx_dropout(x, m->dropout.p) : fnx_copy(x);
}

static const module_class dropout = {NULL, dropout_forward};

fnx_module *fnx_layer_dropout(double p) {
    fnx_module *m = layer("dropout", &dropout, p >= 0 && p < 1, "the probability must be in [0, 1)");
    if (!m->is_static) m->dropout.p = p;
    return m;
}

static const double momentum = 0.1, eps = 1e-5;

static void norm_build(fnx_module *m) {
    int64_t n = m->norm.features;
    fnx_module_parameter(m, "weight", fnx_fill(m->device, 0, FNX_SHAPE(n), 1));
    fnx_module_parameter(m, "bias", fnx_fill(m->device, 0, FNX_SHAPE(n), 0));
    fnx_module_buffer(m, "running_mean", fnx_fill(m->device, 0, FNX_SHAPE(n), 0));
    fnx_module_buffer(m, "running_var", fnx_fill(m->device, 0, FNX_SHAPE(n), 1));
}

/* buffer += momentum (value - buffer) */
static fnx_status move(fnx_module *m, const char *buffer, fnx_tensor *value) {
    FNX_NO_GRAD;
    fnx_variable *v = module_variable(m, buffer);
    return fnx_variable_set(v, fnx_add(fnx_mul_scalar(fnx_variable_get(v), 1 - momentum),
                                       fnx_mul_scalar(fnx_detach(value), momentum)));
}

static fnx_tensor *norm_forward(fnx_module *m, fnx_tensor *x) {
    fnx_tensor *weight = fnx_module_value(m, "weight"), *bias = fnx_module_value(m, "bias");
    if (!m->training)
        return fnx_batch_norm(x, fnx_module_value(m, "running_mean"), fnx_module_value(m, "running_var"), weight, bias,
                              eps);
    fnx_batch_norm_result r = fnx_batch_norm_train(x, weight, bias, eps);
    if (fnx_tensor_status(r.y)) return r.y;
    double n = (double)fnx_tensor_count(x) /
               (double)m->norm.features; /* samples per channel; the running variance is the unbiased one */
    if (move(m, "running_mean", r.mean) ||
        move(m, "running_var", n > 1 ? fnx_mul_scalar(r.variance, n / (n - 1)) : r.variance))
        return fnx_tensor_failed_from_last();
    return r.y;
}

static const module_class norm = {norm_build, norm_forward};

fnx_module *fnx_layer_batch_norm(int64_t features) {
    fnx_module *m = layer("batch_norm", &norm, features > 0, "features must be at least 1");
    if (!m->is_static) m->norm.features = features;
    return m;
}

/* ---- sequential -------------------------------------------------------------------------------------------------- */

static fnx_tensor *sequential_forward(fnx_module *m, fnx_tensor *x) {
    for (int i = 0; i < m->n_children; i++) x = fnx_module_forward(m->children[i], x);
    return m->n_children ? x : fnx_copy(x);
}

static const module_class sequential = {NULL, sequential_forward};

fnx_module *fnx_sequential_of(fnx_device *device, fnx_module *const *modules) {
    fnx_module *m = module_new("sequential", &sequential);
    if (m->is_static) return m;
    if (fnx_device_status(device)) cause_take(&m->cause, fnx_last_error()->code);
    else m->device = device;
    for (int i = 0; modules[i]; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        fnx_module_add(m, name, modules[i]);
    }
    return m;
}
