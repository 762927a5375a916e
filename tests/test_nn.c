/* Modules and optimizers: trees, paths, errors; values against PyTorch (fixtures/nn.json, made by fixtures/nn.py). */
#include "support/devices.h"

#include <fornax/nn.h>
#include <jansson.h>
#include <math.h>

static json_t *fixture(const char *part) {
    static json_t *root;
    if (!root) root = json_load_file(TEST_SOURCE_DIR "/fixtures/nn.json", 0, NULL);
    ck_assert_ptr_nonnull(root);
    return json_object_get(root, part);
}

static int64_t numbers(const json_t *list, float *out) {
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) out[i] = strtof(json_string_value(v), NULL);
    return (int64_t)json_array_size(list);
}

static fnx_tensor *tensor(fnx_device *dev, const json_t *t) {
    static float x[4096];
    int64_t sizes[FNX_MAX_RANK];
    const json_t *shape = json_object_get(t, "shape");
    for (size_t d = 0; d < json_array_size(shape); d++) sizes[d] = json_integer_value(json_array_get(shape, d));
    numbers(json_object_get(t, "values"), x);
    return fnx_tensor_from(dev, FNX_F32, (int)json_array_size(shape), sizes, x, 0);
}

static void expect(fnx_tensor *got, const json_t *values, double tolerance, const char *what) {
    static float want[4096], have[4096];
    int64_t n = numbers(values, want);
    ck_assert_int_eq(fnx_tensor_count(got), n);
    ck_assert_msg(fnx_tensor_read(got, have, sizeof *have * (size_t)n) == 0, "%s: %s", what, fnx_last_error()->message);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(have[i] - want[i]) <= tolerance * (1 + fabs(want[i])), "%s, element %d: %.9g, PyTorch %.9g",
                      what, (int)i, have[i], want[i]);
}

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

static double option(const json_t *options, const char *key) {
    return json_number_value(json_object_get(options, key));
}

static fnx_optimizer *make(fnx_module *net, const json_t *c) {
    const json_t *o = json_object_get(c, "options");
    const char *rule = json_string_value(json_object_get(c, "rule"));
    if (!strcmp(rule, "sgd"))
        return fnx_sgd(net, .lr = option(o, "lr"), .momentum = option(o, "momentum"),
                       .weight_decay = option(o, "weight_decay"), .nesterov = option(o, "nesterov") != 0);
    fnx_adam_options a = {.lr = option(o, "lr"),
                          .beta1 = option(o, "beta1"),
                          .beta2 = option(o, "beta2"),
                          .eps = option(o, "eps"),
                          .weight_decay = option(o, "weight_decay")};
    return !strcmp(rule, "adam") ? fnx_adam_with(net, &a) : fnx_adamw_with(net, &a);
}

static fnx_tensor *times_parameter(fnx_module *m, void *user, fnx_tensor *x) {
    (void)user;
    return fnx_sum(fnx_mul(fnx_module_value(m, "p"), x), FNX_ALL_AXES, false);
}

START_TEST(optimizers_follow_pytorch) {
    fnx_device *dev = test_device(_i, true);
    size_t i, s;
    json_t *c, *g;
    json_array_foreach(fixture("optimizers"), i, c) {
        FNX_SCOPE;
        float x[64];
        int64_t n = numbers(json_object_get(c, "start"), x);
        fnx_module *m = fnx_module_create(dev, "product", times_parameter, NULL, NULL);
        fnx_variable *p = fnx_module_parameter(m, "p", fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(n), x, 0));
        fnx_optimizer *o = make(m, c);
        ck_assert_msg(fnx_optimizer_status(o) == 0, "%s", fnx_last_error()->message);
        json_array_foreach(json_object_get(c, "gradients"), s, g) {
            char what[64];
            FNX_SCOPE;
            numbers(g, x); /* the gradient of sum(p g) is g */
            ck_assert_int_eq(fnx_backward(fnx_module_forward(m, fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(n), x, 0))), 0);
            ck_assert_msg(fnx_optimizer_step(o) == 0, "%s", fnx_last_error()->message);
            snprintf(what, sizeof what, "optimizer %d, step %d", (int)i, (int)s);
            expect(fnx_variable_get(p), json_array_get(json_object_get(c, "after"), s), 2e-6, what);
        }
        ck_assert_int_eq(fnx_optimizer_steps(o), 6);
        fnx_optimizer_destroy(o);
        fnx_module_destroy(m);
    }
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_changed_learning_rate_builds_no_plan) {
    fnx_device *dev = test_device(_i, true);
    fnx_module *net = fnx_sequential(dev, fnx_layer_linear(4, 3));
    fnx_optimizer *o = fnx_adamw(net, .lr = 0.01);
    fnx_graph_stats from = {.struct_size = sizeof from}, to = {.struct_size = sizeof to};
    for (int i = 0; i < 20; i++) {
        FNX_SCOPE;
        fnx_optimizer_set_lr(o, 0.01 / (1 + i));
        ck_assert_int_eq(fnx_backward(fnx_sum(fnx_module_forward(net, fnx_fill(dev, FNX_F32, FNX_SHAPE(2, 4), 0.25)),
                                              FNX_ALL_AXES, false)),
                         0);
        ck_assert_int_eq(fnx_optimizer_step(o), 0);
        if (i == 3) ck_assert_int_eq(fnx_device_stats(dev, &from), 0);
    }
    ck_assert_int_eq(fnx_device_stats(dev, &to), 0);
    ck_assert_uint_eq(to.plans, from.plans);
    ck_assert_uint_eq(to.donated - from.donated, 16 * 3 * 2); /* parameters and both moments, in place */
    fnx_optimizer_destroy(o);
    fnx_module_destroy(net);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_step_without_gradients_says_so) {
    fnx_device *dev = test_device(_i, true);
    fnx_module *net = fnx_sequential(dev, fnx_layer_linear(4, 3));
    fnx_optimizer *o = fnx_sgd(net, .lr = 0.1);
    ck_assert_int_eq(fnx_optimizer_step(o), FNX_E_GRADIENT);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "fnx_backward"));
    ck_assert_int_eq(fnx_optimizer_steps(o), 0);
    fnx_optimizer_destroy(o);
    o = fnx_sgd(net, .lr = -1);
    ck_assert_int_eq(fnx_optimizer_step(o), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "learning rate"));
    fnx_optimizer_destroy(o);
    fnx_module_destroy(net);
    fnx_device_close(dev);
}
END_TEST

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static fnx_module *layer_of(const json_t *c) {
    const char *kind = json_string_value(json_object_get(c, "kind"));
    const json_t *o = json_object_get(c, "options"),
                 *weight = json_object_get(json_object_get(json_object_get(c, "state"), "weight"), "shape");
    int64_t first = json_integer_value(json_array_get(weight, 0)),
            second = json_integer_value(json_array_get(weight, 1));
    int groups = (int)option(o, "groups"), stride = (int)option(o, "stride"), padding = (int)option(o, "padding");
    if (!strcmp(kind, "linear")) return fnx_layer_linear(second, first);
    if (!strcmp(kind, "conv"))
        return fnx_layer_conv2d(second * groups, first, (int)option(o, "kernel"), .stride = {stride, stride},
                                .padding = {padding, padding}, .groups = groups);
    return fnx_layer_batch_norm(first);
}

START_TEST(layers_equal_pytorch) {
    fnx_device *dev = test_device(_i, true);
    size_t i;
    json_t *c, *value;
    const char *name;
    json_array_foreach(fixture("modules"), i, c) {
        FNX_SCOPE;
        const char *kind = json_string_value(json_object_get(c, "kind"));
        fnx_module *m = layer_of(c);
        int n;
        ck_assert_int_eq(fnx_module_build(m, dev), 0);
        fnx_module_train(m, strcmp(kind, "norm eval") != 0);
        const fnx_parameter *p = fnx_module_parameters(m, &n);
        ck_assert_int_eq(n, (int)json_object_size(json_object_get(c, "state")));
        for (int k = 0; k < n; k++) {
            value = json_object_get(json_object_get(c, "state"), p[k].path);
            ck_assert_msg(value != NULL, "%s has no %s", kind, p[k].path);
            ck_assert_int_eq(fnx_variable_set(p[k].variable, tensor(dev, value)), 0);
        }
        expect(fnx_module_forward(m, tensor(dev, json_object_get(c, "x"))),
               json_object_get(json_object_get(c, "y"), "values"), 2e-6, kind);
        json_object_foreach(json_object_get(c, "after"), name, value)
            expect(fnx_module_value(m, name), json_object_get(value, "values"), 1e-6, name);
        fnx_module_destroy(m);
    }
    fnx_device_close(dev);
}
END_TEST

START_TEST(parameters_have_paths_and_initial_values_in_their_bounds) {
    fnx_device *dev = test_device(_i, true);
    fnx_module *net =
        fnx_sequential(dev, fnx_layer_conv2d(1, 4, 3, .padding = {1, 1}), fnx_layer_batch_norm(4), fnx_layer_relu(),
                       fnx_sequential(dev, fnx_layer_flatten(), fnx_layer_linear(4 * 36, 10)));
    const char *const paths[] = {"0.weight",       "0.bias",        "1.weight",   "1.bias",
                                 "1.running_mean", "1.running_var", "3.1.weight", "3.1.bias"};
    int n;
    char text[2000];
    float w[1440];
    ck_assert_msg(fnx_module_status(net) == 0, "%s", fnx_last_error()->message);
    const fnx_parameter *p = fnx_module_parameters(net, &n);
    ck_assert_int_eq(n, 8);
    for (int i = 0; i < n; i++) ck_assert_str_eq(p[i].path, paths[i]);
    ck_assert(p[4].buffer && p[5].buffer && !p[3].buffer);
    ck_assert(fnx_variable_requires_grad(p[0].variable) && !fnx_variable_requires_grad(p[4].variable));
    ck_assert_int_eq(fnx_module_count(net), 36 + 4 + 8 + 1440 + 10);
    FNX_SCOPE;
    ck_assert_int_eq(fnx_tensor_read(fnx_variable_get(p[6].variable), w, sizeof w), 0);
    double least = 1, most = -1;
    for (int i = 0; i < 1440; i++) least = fmin(least, w[i]), most = fmax(most, w[i]);
    ck_assert(least >= -1.0 / 12 && most < 1.0 / 12 && most - least > 0.9 / 6); /* fan-in 144 */
    ck_assert_uint_gt(fnx_module_summary(net, text, sizeof text), 100);
    ck_assert_ptr_nonnull(strstr(text, "1498 parameters"));
    fnx_module_destroy(net);
    fnx_device_close(dev);
}
END_TEST

START_TEST(dropout_and_batch_norm_know_whether_they_train) {
    fnx_device *dev = test_device(_i, true);
    fnx_module *net = fnx_sequential(dev, fnx_layer_dropout(0.5));
    FNX_SCOPE;
    double sum;
    fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(100, 100), 1);
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_module_forward(net, x), FNX_ALL_AXES, false), &sum), 0);
    ck_assert(fabs(sum - 10000) < 500 && sum != 10000 && fmod(sum, 2) == 0); /* kept elements are 2 */
    fnx_module_train(net, false);
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_module_forward(net, x), FNX_ALL_AXES, false), &sum), 0);
    ck_assert_double_eq(sum, 10000);
    fnx_module_destroy(net);
    fnx_device_close(dev);
}
END_TEST

static fnx_tensor *residual(fnx_module *m, void *user, fnx_tensor *x) {
    return fnx_add(x, fnx_module_forward(user, fnx_mul(x, fnx_module_value(m, "scale"))));
}

START_TEST(a_module_written_by_hand_trains) {
    fnx_device *dev = test_device(_i, true);
    fnx_module *inner = fnx_sequential(dev, fnx_layer_linear(3, 3), fnx_layer_tanh());
    fnx_module *m = fnx_module_create(dev, "residual", residual, inner, NULL);
    FNX_SCOPE;
    fnx_module_parameter(m, "scale", fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 0.5));
    fnx_module_add(m, "inner", inner);
    int n;
    const fnx_parameter *p = fnx_module_parameters(m, &n);
    ck_assert_int_eq(n, 3);
    ck_assert_str_eq(p[1].path, "inner.0.weight");
    fnx_optimizer *o = fnx_adam(m, .lr = 0.05);
    double first = 0, loss = 0;
    for (int i = 0; i < 60; i++) {
        FNX_SCOPE;
        fnx_tensor *d = fnx_sub(fnx_module_forward(m, fnx_fill(dev, FNX_F32, FNX_SHAPE(2, 3), 0.75)),
                                fnx_fill(dev, FNX_F32, FNX_SHAPE(2, 3), 0.25));
        fnx_tensor *l = fnx_mean(fnx_mul(d, d), FNX_ALL_AXES, false);
        ck_assert_int_eq(fnx_backward(l), 0);
        ck_assert_int_eq(fnx_optimizer_step(o), 0);
        ck_assert_int_eq(fnx_tensor_item(l, &loss), 0);
        if (!i) first = loss;
    }
    ck_assert(loss < 0.01 * first);
    fnx_optimizer_destroy(o);
    fnx_module_destroy(m);
    fnx_device_close(dev);
}
END_TEST

START_TEST(what_is_wrong_with_a_module_comes_out_at_its_use) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(2, 3), 1);
    double v;
    fnx_module *net = fnx_sequential(dev, fnx_layer_linear(3, 0), fnx_layer_relu());
    ck_assert_int_eq(fnx_tensor_item(fnx_module_forward(net, x), &v), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "linear"));
    fnx_optimizer *o = fnx_adam(net, .lr = 1);
    ck_assert_int_eq(fnx_optimizer_step(o), FNX_E_INVALID);
    fnx_optimizer_destroy(o);
    fnx_module_destroy(net);
    net = fnx_sequential(dev, fnx_layer_linear(4, 2));
    ck_assert_int_eq(fnx_tensor_item(fnx_module_forward(net, x), &v), FNX_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "f32[2,3]"));
    fnx_module *again = fnx_module_add(net, "0", fnx_layer_relu()); /* the name is taken; still owned by net */
    ck_assert_int_eq(fnx_module_status(again), FNX_E_INVALID);
    ck_assert_int_eq(fnx_module_status(net), FNX_E_INVALID);
    fnx_module_destroy(net);
    net = fnx_layer_relu();
    ck_assert_int_eq(fnx_tensor_status(fnx_module_forward(net, x)), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "device"));
    fnx_module_destroy(net);
    fnx_module_destroy(NULL);
    fnx_device *bad = fnx_device_open("no-such-plugin");
    net = fnx_sequential(bad, fnx_layer_linear(4, 2));
    ck_assert_int_eq(fnx_module_status(net), FNX_E_NOT_FOUND);
    fnx_module_destroy(net);
    fnx_device_close(bad), fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("nn");
    test_each_device(t, optimizers_follow_pytorch);
    test_each_device(t, a_changed_learning_rate_builds_no_plan);
    test_each_device(t, a_step_without_gradients_says_so);
    test_each_device(t, layers_equal_pytorch);
    test_each_device(t, parameters_have_paths_and_initial_values_in_their_bounds);
    test_each_device(t, dropout_and_batch_norm_know_whether_they_train);
    test_each_device(t, a_module_written_by_hand_trains);
    test_each_device(t, what_is_wrong_with_a_module_comes_out_at_its_use);
    return test_run("nn", t);
}
