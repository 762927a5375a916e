/* What is wrong outside of shapes and dtypes: device names and settings, host arrays, reads, variables, gradients,
 * indexes that only the device can check, handles used too late. Each gets its code and a message that says what to do;
 * nothing is lost. */
#include "support/devices.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>

static void check_code(const char *file, int line, fnx_status got, fnx_status code, ...) {
    va_list words;
    const char *message = got ? fnx_last_error()->message : "no error";
    ck_assert_msg(got == code, "%s:%d: %s, not %s: %s", file, line, fnx_status_name(got), fnx_status_name(code),
                  message);
    ck_assert_int_eq(fnx_last_error()->code, code);
    va_start(words, code);
    for (const char *word = va_arg(words, const char *); word; word = va_arg(words, const char *))
        ck_assert_msg(strstr(message, word) != NULL, "%s:%d: no \"%s\" in: %s", file, line, word, message);
    va_end(words);
}

/* The call returned this code, and its message has all the words. */
#define FAILS(call, code, ...) check_code(__FILE__, __LINE__, call, code, __VA_ARGS__, NULL)
#define OK(call) ck_assert_msg((call) == 0, "%s:%d: %s", __FILE__, __LINE__, fnx_last_error()->message)

static fnx_tensor *number(fnx_device *dev, double v) { return fnx_fill(dev, FNX_F64, FNX_SCALAR_SHAPE, v); }
static fnx_tensor *ones(fnx_device *dev, int64_t n) { return fnx_fill(dev, FNX_F64, FNX_SHAPE(n), 1); }

static double value(fnx_tensor *t) {
    double v;
    OK(fnx_tensor_item(t, &v));
    return v;
}

static void set_lazy(fnx_device *dev, bool lazy) {
    fnx_settings s = {.struct_size = sizeof s, .lazy = lazy ? FNX_ON : FNX_OFF};
    OK(fnx_device_configure(dev, &s));
}

static void still_computes(fnx_device *dev) {
    FNX_SCOPE_QUIET;
    ck_assert_double_eq(value(fnx_sum(fnx_mul_scalar(ones(dev, 5), 3), FNX_ALL_AXES, false)), 15);
}

/* ---- what the device finds --------------------------------------------------------------------------------------- */

START_TEST(an_index_out_of_range_is_reported_once_and_its_element_reads_0) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    const float x[3] = {1, 2, 3};
    float got[4];
    for (int lazy = 0; lazy < 2; lazy++)
        for (int dtype = FNX_I32; dtype <= FNX_I64; dtype++) {
            set_lazy(dev, lazy);
            fnx_tensor *index =
                fnx_cast(fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(4), (int64_t[]){2, 3, -1, 0}, 0), dtype);
            fnx_tensor *y = fnx_mul_scalar(fnx_gather(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(3), x, 0), 0, index), 10);
            FAILS(fnx_tensor_read(y, got, sizeof got), FNX_E_INDEX, "gather", "[0, 3)");
            ck_assert(strstr(fnx_last_error()->message, "index 3") || strstr(fnx_last_error()->message, "index -1"));
            for (int i = 0; i < 4; i++) ck_assert(got[i] == 0);
            OK(fnx_tensor_read(y, got, sizeof got));
            ck_assert(got[0] == 30 && got[1] == 0 && got[2] == 0 && got[3] == 10);
            still_computes(dev);
        }
    fnx_device_close(dev);
}
END_TEST

START_TEST(an_index_out_of_range_writes_nothing) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    double got[3];
    fnx_tensor *index = fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(4), (int64_t[]){1, INT64_MAX, INT64_MIN, 1}, 0);
    fnx_tensor *y = fnx_scatter_add(ones(dev, 3), 0, index, ones(dev, 4));
    FAILS(fnx_tensor_read(y, got, sizeof got), FNX_E_INDEX, "scatter_add", "index", "922337203685477580", "[0, 3)");
    OK(fnx_tensor_read(y, got, sizeof got));
    ck_assert(got[0] == 1 && got[1] == 3 && got[2] == 1);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_label_out_of_range_is_reported_by_the_loss) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    double v;
    fnx_variable *w = fnx_variable_create("w", fnx_fill(dev, FNX_F64, FNX_SHAPE(2, 3), 0), true);
    fnx_tensor *loss =
        fnx_cross_entropy(fnx_variable_get(w), fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(2), (int64_t[]){0, 3}, 0));
    OK(fnx_backward(loss));
    FAILS(fnx_tensor_item(loss, &v), FNX_E_INDEX, "index 3", "[0, 3)");
    ck_assert(v == 0);
    fnx_variable_destroy(w);
    (void)!fnx_device_sync(dev);
    still_computes(dev);
    fnx_device_close(dev);
}
END_TEST

START_TEST(what_the_device_met_is_reported_by_eval_sync_and_reads_of_other_tensors) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    double v;
    fnx_tensor *other = number(dev, 4);
    OK(fnx_eval(other));
    for (int way = 0; way < 4; way++) {
        fnx_tensor *bad = fnx_keep(fnx_gather(ones(dev, 2), 0, fnx_fill(dev, FNX_I64, FNX_SHAPE(1), 7)));
        if (way == 0) FAILS(fnx_eval(bad), FNX_E_INDEX, "gather", "index 7", "[0, 2)");
        if (way == 1) FAILS(fnx_device_sync(dev), FNX_E_INDEX, "gather", "index 7", "[0, 2)");
        if (way == 2) {
            OK(fnx_flush());
            FAILS(fnx_tensor_item(other, &v), FNX_E_INDEX, "gather", "index 7", "[0, 2)");
        }
        if (way == 3) {
            fnx_host_view view;
            FAILS(fnx_tensor_map(bad, 0, &view), FNX_E_INDEX, "gather", "index 7");
            ck_assert(view.data == NULL && view.owner == NULL);
        }
        OK(fnx_device_sync(dev));
        ck_assert_double_eq(value(other), 4);
        ck_assert_double_eq(value(bad), 0);
    }
    fnx_device_close(dev);
}
END_TEST

START_TEST(an_integer_divided_by_0_is_0_and_reported) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    for (int lazy = 0; lazy < 2; lazy++)
        for (int dtype = FNX_I32; dtype <= FNX_U8; dtype++) {
            uint8_t got[8 * 3];
            set_lazy(dev, lazy);
            fnx_tensor *a = fnx_cast(fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(3), (int64_t[]){6, 7, 8}, 0), dtype);
            fnx_tensor *b = fnx_cast(fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(3), (int64_t[]){2, 0, 1}, 0), dtype);
            fnx_tensor *q[3] = {fnx_div(a, b), fnx_div_scalar(a, 0), fnx_scalar_div(9, b)};
            const double want[3][3] = {{3, 0, 8}, {0, 0, 0}, {4, 0, 9}};
            for (int k = 0; k < 3; k++) {
                q[k] = fnx_cast(fnx_add_scalar(q[k], 0), FNX_I64);
                (void)!fnx_device_sync(dev);
            }
            for (int k = 0; k < 3; k++) {
                fnx_tensor *again = fnx_cast(k == 0   ? fnx_div(a, b)
                                             : k == 1 ? fnx_div_scalar(a, 0)
                                                      : fnx_scalar_div(9, b),
                                             FNX_I64);
                int64_t x[3];
                FAILS(fnx_tensor_read(again, got, sizeof got), FNX_E_INDEX, "div", "divided by 0");
                OK(fnx_tensor_read(again, x, sizeof x));
                for (int i = 0; i < 3; i++)
                    ck_assert_msg((double)x[i] == want[k][i], "dtype %d, quotient %d[%d]: %lld", dtype, k, i,
                                  (long long)x[i]);
            }
        }
    ck_assert(isinf(value(fnx_div(number(dev, 1), number(dev, 0))))); /* floats have an answer */
    fnx_device_close(dev);
}
END_TEST

/* ---- host arrays ------------------------------------------------------------------------------------------------- */

START_TEST(host_arrays_that_are_none_are_refused) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    float x[2] = {1, 2};
    FAILS(fnx_tensor_status(fnx_tensor_from(NULL, FNX_F32, FNX_SHAPE(2), x, 0)), FNX_E_INVALID, "device", "NULL");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(2), NULL, 0)), FNX_E_INVALID, "tensor_from", "data",
          "NULL");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F32, 1, NULL, x, 0)), FNX_E_INVALID, "tensor_from", "sizes",
          "NULL");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F16, FNX_SHAPE(2), x, 0)), FNX_E_DTYPE, "tensor_from", "f16");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, 99, FNX_SHAPE(2), x, 0)), FNX_E_DTYPE, "tensor_from", "99");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, -3, FNX_SHAPE(2), x, 0)), FNX_E_DTYPE, "tensor_from", "-3");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(2), x, 8)), FNX_E_INVALID, "tensor_from", "flags",
          "8");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(-2), x, 0)), FNX_E_SHAPE, "tensor_from", "axis 0",
          "-2");
    FAILS(fnx_tensor_status(fnx_tensor_from(dev, FNX_F64, FNX_SHAPE(INT64_MAX, 2), x, 0)), FNX_E_SHAPE, "tensor_from",
          "overflow");
    OK(fnx_tensor_status(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(2, 0), NULL, 0))); /* nothing is read */
    ck_assert_int_eq(fnx_tensor_dtype(fnx_tensor_from(dev, 0, FNX_SHAPE(2), x, 0)), FNX_F32);
    still_computes(dev);
    fnx_device_close(dev);
}
END_TEST

START_TEST(reads_that_do_not_fit_are_refused_and_leave_the_tensor) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    double x[4] = {7, 7, 7, 7}, v = 7;
    fnx_tensor *t = fnx_mul_scalar(ones(dev, 3), 2);
    fnx_host_view view;
    FAILS(fnx_tensor_read(t, x, sizeof x), FNX_E_INVALID, "tensor_read", "f64[3]", "24", "32");
    ck_assert(x[0] == 0 && x[3] == 0);
    FAILS(fnx_tensor_read(t, x, 0), FNX_E_INVALID, "tensor_read", "24");
    FAILS(fnx_tensor_read(t, NULL, 24), FNX_E_INVALID, "tensor_read", "NULL");
    FAILS(fnx_tensor_read(NULL, x, 24), FNX_E_INVALID, "tensor_read", "NULL");
    FAILS(fnx_tensor_item(t, &v), FNX_E_SHAPE, "tensor_item", "f64[3]", "3 elements");
    ck_assert(v == 0);
    FAILS(fnx_tensor_item(ones(dev, 0), &v), FNX_E_SHAPE, "tensor_item", "f64[0]");
    FAILS(fnx_tensor_item(NULL, &v), FNX_E_INVALID, "tensor_item", "NULL");
    FAILS(fnx_eval(NULL), FNX_E_INVALID, "eval", "NULL");
    FAILS(fnx_eval_all((fnx_tensor *[]){t, NULL}, 2), FNX_E_INVALID, "NULL");
    FAILS(fnx_tensor_status(NULL), FNX_E_INVALID, "NULL");
    FAILS(fnx_tensor_map(NULL, 0, &view), FNX_E_INVALID, "tensor_map", "NULL");
    FAILS(fnx_tensor_map(fnx_add(t, ones(dev, 2)), 0, &view), FNX_E_SHAPE, "add");
    ck_assert(view.data == NULL);
    fnx_tensor_unmap(&view);
    FAILS(fnx_tensor_status(fnx_tensor_to(NULL, dev)), FNX_E_INVALID, "tensor_to", "NULL");
    FAILS(fnx_tensor_status(fnx_tensor_to(t, NULL)), FNX_E_INVALID, "device", "NULL");
    OK(fnx_tensor_read(t, x, 24));
    ck_assert(x[0] == 2 && x[2] == 2);
    OK(fnx_tensor_read(ones(dev, 0), NULL, 0));
    ck_assert(fnx_keep(NULL) == NULL && fnx_return(NULL) == NULL && fnx_retain(NULL) == NULL &&
              fnx_tensor_set_name(NULL, "x") == NULL);
    fnx_release(NULL);
    fnx_device_close(dev);
}
END_TEST

START_TEST(more_memory_than_the_limit_is_an_error_and_the_program_goes_on) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    fnx_settings s = {.struct_size = sizeof s, .memory_limit = 1 << 20};
    OK(fnx_device_configure(dev, &s));
    double v;
    fnx_tensor *large = fnx_fill(dev, FNX_F64, FNX_SHAPE(1 << 20), 1), *kept = fnx_keep(fnx_mul_scalar(large, 2));
    FAILS(fnx_eval(kept), FNX_E_NO_MEMORY, "memory", "limit");
    FAILS(fnx_tensor_item(fnx_sum(kept, FNX_ALL_AXES, false), &v), FNX_E_NO_MEMORY, "memory");
    still_computes(dev);
    s.memory_limit = UINT64_MAX;
    OK(fnx_device_configure(dev, &s));
    ck_assert_double_eq(value(fnx_sum(fnx_fill(dev, FNX_F64, FNX_SHAPE(1 << 20), 1), FNX_ALL_AXES, false)), 1 << 20);
    fnx_device_close(dev);
}
END_TEST

/* ---- devices ----------------------------------------------------------------------------------------------------- */

START_TEST(a_device_that_is_not_there_names_those_that_are_and_fails_what_is_made_on_it) {
    char names[TEST_DEVICES_MAX][64];
    test_device_names(names);
    fnx_device *none = fnx_device_open("nosuch:3");
    FNX_SCOPE;
    float x = 1;
    double v = 1;
    FAILS(fnx_device_status(none), FNX_E_NOT_FOUND, "nosuch", "ref");
    char message[1024];
    snprintf(message, sizeof message, "%s", fnx_last_error()->message);
    fnx_tensor *made[] = {fnx_fill(none, FNX_F32, FNX_SHAPE(2), 0), fnx_iota(none, 0, FNX_SHAPE(2), 0),
                          fnx_uniform(none, FNX_F32, FNX_SHAPE(2), 0, 1), fnx_normal(none, 0, FNX_SHAPE(2), 1, 2),
                          fnx_tensor_from(none, FNX_F32, FNX_SCALAR_SHAPE, &x, 0)};
    for (int i = 0; i < 5; i++) {
        FAILS(fnx_tensor_status(made[i]), FNX_E_NOT_FOUND, message);
        FAILS(fnx_tensor_item(fnx_exp(made[i]), &v), FNX_E_NOT_FOUND, message);
        ck_assert(v == 0);
    }
    fnx_settings s = {.struct_size = sizeof s};
    fnx_memory_report memory = {.struct_size = sizeof memory};
    fnx_graph_stats stats = {.struct_size = sizeof stats};
    fnx_device_description description = {.struct_size = sizeof description};
    FAILS(fnx_device_settings(none, &s), FNX_E_NOT_FOUND, message);
    FAILS(fnx_device_configure(none, &s), FNX_E_NOT_FOUND, message);
    FAILS(fnx_device_memory(none, &memory), FNX_E_NOT_FOUND, message);
    FAILS(fnx_device_stats(none, &stats), FNX_E_NOT_FOUND, message);
    FAILS(fnx_device_describe(none, &description), FNX_E_NOT_FOUND, message);
    FAILS(fnx_device_sync(none), FNX_E_NOT_FOUND, message);
    fnx_device_memory_reset(none), fnx_device_memory_trim(none), fnx_device_seed(none, 1);
    ck_assert(!fnx_device_is_autodiff(none) && !fnx_device_same_hardware(none, none));
    fnx_device *plain = fnx_device_plain(none);
    FAILS(fnx_device_status(plain), FNX_E_NOT_FOUND, message);
    fnx_device_close(plain);
    none = fnx_device_autodiff(none); /* takes it over */
    FAILS(fnx_device_status(none), FNX_E_NOT_FOUND, message);
    fnx_variable *w = fnx_variable_create("w", fnx_fill(none, FNX_F32, FNX_SHAPE(2), 0), true);
    FAILS(fnx_variable_status(w), FNX_E_NOT_FOUND, message);
    fnx_variable_destroy(w);
    fnx_device_close(none);
    fnx_device *dev = test_device(_i, false);
    still_computes(dev);
    fnx_device_close(dev);
}
END_TEST

START_TEST(device_names_that_are_none_are_refused) {
    static const struct {
        const char *name;
        fnx_status code;
        const char *words[3];
    } bad[] = {
        {":0", FNX_E_INVALID, {"plugin[:address]", ":0"}},
        {"?lazy=on", FNX_E_INVALID, {"plugin[:address]", "?lazy=on"}},
        {"../ref", FNX_E_INVALID, {"/", "name"}},
        {"ref?lazy=perhaps", FNX_E_INVALID, {"perhaps", "on", "off"}},
        {"ref?lazy", FNX_E_INVALID, {"key=value", "lazy"}},
        {"ref?=on", FNX_E_INVALID, {"key=value"}},
        {"ref?memory_limit=lots", FNX_E_INVALID, {"memory_limit", "lots", "512m"}},
        {"ref?memory_limit=-1", FNX_E_INVALID, {"memory_limit", "-1"}},
        {"ref?memory_limit=99999999999999999999g", FNX_E_INVALID, {"memory_limit"}},
        {"ref?fallback=never", FNX_E_INVALID, {"never", "decompose", "host"}},
        {"ref?precision=", FNX_E_INVALID, {"full", "reduced"}},
        {"ref?speed=fast", FNX_E_INVALID, {"speed", "ref"}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fnx_device *d = fnx_device_open(bad[i].name);
        fnx_status code = fnx_device_status(d);
        ck_assert_msg(code == bad[i].code, "%s: %s: %s", bad[i].name, fnx_status_name(code),
                      code ? fnx_last_error()->message : "");
        for (int k = 0; k < 3 && bad[i].words[k]; k++)
            ck_assert_msg(strstr(fnx_last_error()->message, bad[i].words[k]) != NULL, "%s: no \"%s\" in: %s",
                          bad[i].name, bad[i].words[k], fnx_last_error()->message);
        fnx_device_close(d);
    }
    char name[4096] = "ref?lazy=";
    memset(name + strlen(name), 'x', sizeof name - 1 - strlen(name));
    fnx_device *d = fnx_device_open(name);
    ck_assert_int_eq(fnx_device_status(d), FNX_E_INVALID);
    fnx_device_close(d);
    FAILS(fnx_device_status(NULL), FNX_E_INVALID, "NULL");
    d = fnx_device_autodiff(NULL);
    FAILS(fnx_device_status(d), FNX_E_INVALID, "NULL");
    fnx_device_close(d);
    fnx_device_close(NULL);
}
END_TEST

START_TEST(settings_that_are_none_are_refused_and_change_nothing) {
    fnx_device *dev = test_device(_i, false);
    fnx_settings before = {.struct_size = sizeof before}, after = before, s;
    OK(fnx_device_settings(dev, &before));
    s = (fnx_settings){0};
    FAILS(fnx_device_configure(dev, &s), FNX_E_INVALID, "struct_size");
    FAILS(fnx_device_settings(dev, &s), FNX_E_INVALID, "struct_size");
    s = (fnx_settings){.struct_size = sizeof s, .float_dtype = FNX_I32, .lazy = FNX_OFF};
    FAILS(fnx_device_configure(dev, &s), FNX_E_DTYPE, "float_dtype");
    s = (fnx_settings){.struct_size = sizeof s, .int_dtype = 200, .lazy = FNX_OFF};
    FAILS(fnx_device_configure(dev, &s), FNX_E_DTYPE, "int_dtype");
    s = (fnx_settings){.struct_size = sizeof s, .lazy = FNX_OFF, .verify = 3};
    FAILS(fnx_device_configure(dev, &s), FNX_E_INVALID, "setting");
    s = (fnx_settings){.struct_size = sizeof s, .lazy = FNX_OFF, .precision = UINT32_MAX};
    FAILS(fnx_device_configure(dev, &s), FNX_E_INVALID, "setting");
    OK(fnx_device_settings(dev, &after));
    ck_assert_mem_eq(&before, &after, sizeof before);
    fnx_device_close(dev);
}
END_TEST

/* ---- gradients --------------------------------------------------------------------------------------------------- */

START_TEST(backward_of_what_has_no_gradient_says_why) {
    fnx_device *dev = test_device(_i, true), *plain = fnx_device_plain(dev);
    FNX_SCOPE;
    fnx_tensor *x = fnx_requires_grad(ones(dev, 3)), *y = fnx_mul(x, x);
    FAILS(fnx_backward(y), FNX_E_GRADIENT, "f64[3]", "3 elements", ".seed");
    FAILS(fnx_backward(number(plain, 1)), FNX_E_GRADIENT, "fnx_device_autodiff");
    FAILS(fnx_backward(number(dev, 1)), FNX_E_GRADIENT, "requires a gradient");
    FAILS(fnx_backward(NULL), FNX_E_INVALID, "backward", "NULL");
    FAILS(fnx_backward(fnx_add(y, ones(dev, 2))), FNX_E_SHAPE, "add", "f64[3]", "f64[2]");
    FAILS(fnx_backward(y, .seed = ones(dev, 4)), FNX_E_SHAPE, "seed", "f64[3]");
    FAILS(fnx_backward(y, .seed = fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 1)), FNX_E_SHAPE, "seed", "f64[3]");
    FAILS(fnx_backward(y, .seed = fnx_add(y, ones(dev, 2))), FNX_E_SHAPE, "add");
    {
        FNX_NO_GRAD;
        FAILS(fnx_backward(fnx_sum(fnx_mul(x, x), FNX_ALL_AXES, false)), FNX_E_GRADIENT, "FNX_NO_GRAD");
    }
    fnx_tensor *sum = fnx_sum(y, FNX_ALL_AXES, false);
    OK(fnx_backward(sum));
    FAILS(fnx_backward(sum), FNX_E_GRADIENT, "earlier backward", ".retain");
    FAILS(fnx_backward(fnx_mul_scalar(y, 2), .seed = ones(dev, 3)), FNX_E_GRADIENT,
          ".retain"); /* what it is made of was used */
    fnx_device_close(dev), fnx_device_close(plain);
}
END_TEST

START_TEST(grad_fails_with_failed_tensors_that_say_why) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_tensor *x = fnx_requires_grad(number(dev, 2)), *z = fnx_requires_grad(number(dev, 3)), *y = fnx_mul(x, x),
               *g[2];
    FAILS(fnx_grad(y, ((fnx_tensor *[]){x, fnx_tensor_set_name(z, "bias")}), 2, g, .retain = true), FNX_E_GRADIENT,
          "number 1", "bias f64[]", ".allow_unused");
    for (int i = 0; i < 2; i++) FAILS(fnx_tensor_status(fnx_exp(g[i])), FNX_E_GRADIENT, "bias f64[]");
    OK(fnx_grad(y, ((fnx_tensor *[]){x, z}), 2, g, .retain = true, .allow_unused = true));
    ck_assert(value(g[0]) == 4 && g[1] == NULL);
    FAILS(fnx_grad(y, ((fnx_tensor *[]){x, NULL}), 2, g, .retain = true), FNX_E_INVALID, "number 1", "NULL");
    FAILS(fnx_tensor_status(g[0]), FNX_E_INVALID, "number 1");
    FAILS(fnx_grad(NULL, &x, 1, g, .retain = true), FNX_E_INVALID, "NULL");
    FAILS(fnx_grad(fnx_add(ones(dev, 2), ones(dev, 3)), &x, 1, g, .retain = true), FNX_E_SHAPE, "add");
    FAILS(fnx_grad(y, ((fnx_tensor *[]){fnx_add(ones(dev, 2), ones(dev, 3))}), 1, g, .retain = true), FNX_E_SHAPE,
          "add");
    OK(fnx_grad(y, &x, 1, g)); /* the failures used no tape */
    ck_assert_double_eq(value(g[0]), 4);
    FAILS(fnx_grad(y, &x, 1, g), FNX_E_GRADIENT, ".retain");
    FAILS(fnx_tensor_status(g[0]), FNX_E_GRADIENT, ".retain");
    fnx_device_close(dev);
}
END_TEST

START_TEST(what_cannot_require_a_gradient_stays_failed) {
    fnx_device *dev = test_device(_i, true), *plain = fnx_device_plain(dev);
    FNX_SCOPE;
    fnx_tensor *untaped = fnx_requires_grad(ones(plain, 2)),
               *integer = fnx_requires_grad(fnx_fill(dev, FNX_I64, FNX_SHAPE(2), 1));
    for (int flushed = 0; flushed < 2; flushed++) {
        FAILS(fnx_tensor_status(untaped), FNX_E_GRADIENT, "requires_grad", "fnx_device_autodiff");
        FAILS(fnx_tensor_status(integer), FNX_E_DTYPE, "requires_grad", "i64");
        OK(fnx_device_sync(dev));
    }
    FAILS(fnx_tensor_status(fnx_requires_grad(NULL)), FNX_E_INVALID, "NULL");
    FAILS(fnx_tensor_status(fnx_detach(NULL)), FNX_E_INVALID, "NULL");
    FAILS(fnx_tensor_status(fnx_requires_grad(fnx_add(ones(dev, 2), ones(dev, 3)))), FNX_E_SHAPE, "add");
    fnx_device_close(dev), fnx_device_close(plain);
}
END_TEST

/* ---- variables --------------------------------------------------------------------------------------------------- */

START_TEST(variables_that_cannot_be_carry_their_cause) {
    fnx_device *dev = test_device(_i, true), *plain = fnx_device_plain(dev);
    FNX_SCOPE;
    const struct {
        fnx_tensor *initial;
        fnx_status code;
        const char *word;
    } bad[] = {
        {NULL, FNX_E_INVALID, "NULL"},
        {fnx_add(ones(dev, 2), ones(dev, 3)), FNX_E_SHAPE, "broadcast"},
        {ones(plain, 2), FNX_E_GRADIENT, "fnx_device_autodiff"},
        {fnx_fill(dev, FNX_I64, FNX_SHAPE(2), 0), FNX_E_DTYPE, "i64"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fnx_variable *v = fnx_variable_create("weight", bad[i].initial, true);
        FAILS(fnx_variable_status(v), bad[i].code, bad[i].word);
        FAILS(fnx_tensor_status(fnx_exp(fnx_variable_get(v))), bad[i].code, bad[i].word);
        FAILS(fnx_variable_set(v, ones(dev, 2)), bad[i].code, bad[i].word);
        ck_assert(fnx_variable_grad(v) == NULL && fnx_variable_grad_take(v) == NULL &&
                  !strcmp(fnx_variable_name(v), "weight"));
        fnx_variable_destroy(v);
    }
    FAILS(fnx_variable_status(NULL), FNX_E_INVALID, "NULL");
    FAILS(fnx_variable_set(NULL, ones(dev, 2)), FNX_E_INVALID, "NULL");
    FAILS(fnx_tensor_status(fnx_variable_get(NULL)), FNX_E_INVALID, "NULL");
    ck_assert(fnx_variable_grad(NULL) == NULL && !fnx_variable_requires_grad(NULL));
    fnx_variable_grad_clear(NULL), fnx_variable_destroy(NULL);
    fnx_variable *nameless = fnx_variable_create(NULL, ones(dev, 2), true);
    OK(fnx_variable_status(nameless));
    ck_assert_ptr_nonnull(fnx_variable_name(nameless));
    fnx_variable_destroy(nameless);
    fnx_device_close(dev), fnx_device_close(plain);
}
END_TEST

START_TEST(a_value_that_does_not_fit_leaves_the_variable_as_it_was) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    fnx_variable *v = fnx_variable_create("weight", ones(dev, 3), true);
    FAILS(fnx_variable_set(v, ones(dev, 4)), FNX_E_SHAPE, "weight", "f64[3]", "f64[4]");
    FAILS(fnx_variable_set(v, fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 0)), FNX_E_DTYPE, "weight", "f64[3]", "f32[3]");
    FAILS(fnx_variable_set(v, NULL), FNX_E_INVALID, "weight", "NULL");
    FAILS(fnx_variable_set(v, fnx_add(ones(dev, 2), ones(dev, 3))), FNX_E_SHAPE, "add");
    OK(fnx_variable_status(v));
    ck_assert_double_eq(value(fnx_sum(fnx_variable_get(v), FNX_ALL_AXES, false)), 3);
    fnx_variable_destroy(v);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_lent_value_that_an_update_overwrote_names_the_variable) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    double v;
    fnx_variable *w = fnx_variable_create("layer1.weight", ones(dev, 1000), true);
    OK(fnx_flush());
    fnx_tensor *lent = fnx_variable_get(w);
    {
        FNX_NO_GRAD;
        OK(fnx_variable_set(w, fnx_mul_scalar(fnx_variable_get(w), 2)));
    }
    OK(fnx_flush());
    FAILS(fnx_tensor_item(fnx_sum(lent, FNX_ALL_AXES, false), &v), FNX_E_LOST, "layer1.weight", "fnx_keep");
    fnx_tensor *kept = fnx_keep(fnx_variable_get(w));
    {
        FNX_NO_GRAD;
        OK(fnx_variable_set(w, fnx_mul_scalar(fnx_variable_get(w), 2)));
    }
    OK(fnx_flush());
    ck_assert_double_eq(value(fnx_sum(kept, FNX_ALL_AXES, false)), 2000);
    ck_assert_double_eq(value(fnx_sum(fnx_variable_get(w), FNX_ALL_AXES, false)), 4000);
    fnx_variable_destroy(w);
    fnx_device_close(dev);
}
END_TEST

/* ---- handles ----------------------------------------------------------------------------------------------------- */

/* Read once per process: only where each test has one of its own. */
START_TEST(with_debug_handles_a_tensor_used_after_its_scope_says_so) {
    if (getenv("CK_FORK") && !strcmp(getenv("CK_FORK"), "no")) return;
    setenv("FORNAX_DEBUG", "handles", 1);
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    double v;
    fnx_tensor *gone[3], *returned, *retained;
    {
        FNX_SCOPE;
        gone[0] = ones(dev, 2);
        gone[1] = fnx_mul_scalar(gone[0], 3);
        gone[2] = number(dev, 1);
        returned = fnx_return(fnx_add_scalar(gone[1], 1));
        retained = fnx_retain(fnx_add_scalar(gone[1], 2));
        ck_assert_double_eq(value(gone[2]), 1);
    }
    for (int i = 0; i < 3; i++) {
        FAILS(fnx_tensor_status(gone[i]), FNX_E_INVALID, "scope", "fnx_return", "fnx_retain");
        FAILS(fnx_tensor_item(fnx_sum(gone[i], FNX_ALL_AXES, false), &v), FNX_E_INVALID, "scope");
    }
    ck_assert_double_eq(value(fnx_sum(returned, FNX_ALL_AXES, false)), 8);
    ck_assert_double_eq(value(fnx_sum(retained, FNX_ALL_AXES, false)), 10);
    fnx_release(retained);
    fnx_device_close(dev);
}
END_TEST

START_TEST(long_names_and_shapes_are_cut) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    char name[300];
    memset(name, 'n', sizeof name);
    name[299] = 0;
    fnx_tensor *x = fnx_tensor_set_name(ones(dev, 2), name);
    fnx_tensor *y =
        fnx_tensor_set_name(fnx_expand(number(dev, 0), 8, ((const int64_t[]){INT32_MAX, 1000, 1, 1, 1, 1, 1, 1})),
                            name);
    FAILS(fnx_tensor_status(fnx_add(x, fnx_tensor_set_name(ones(dev, 3), name))), FNX_E_SHAPE, "add",
          "nnnnnnnn f64[2]");
    FAILS(fnx_tensor_status(fnx_matmul(y, x)), FNX_E_SHAPE, "matmul", "nnnnnnnn f64[2147483647,1000,1");
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("bad input");
    test_each_device(t, an_index_out_of_range_is_reported_once_and_its_element_reads_0);
    test_each_device(t, an_index_out_of_range_writes_nothing);
    test_each_device(t, a_label_out_of_range_is_reported_by_the_loss);
    test_each_device(t, what_the_device_met_is_reported_by_eval_sync_and_reads_of_other_tensors);
    test_each_device(t, an_integer_divided_by_0_is_0_and_reported);
    test_each_device(t, host_arrays_that_are_none_are_refused);
    test_each_device(t, reads_that_do_not_fit_are_refused_and_leave_the_tensor);
    test_each_device(t, more_memory_than_the_limit_is_an_error_and_the_program_goes_on);
    test_each_device(t, a_device_that_is_not_there_names_those_that_are_and_fails_what_is_made_on_it);
    tcase_add_test(t, device_names_that_are_none_are_refused);
    test_each_device(t, settings_that_are_none_are_refused_and_change_nothing);
    test_each_device(t, backward_of_what_has_no_gradient_says_why);
    test_each_device(t, grad_fails_with_failed_tensors_that_say_why);
    test_each_device(t, what_cannot_require_a_gradient_stays_failed);
    test_each_device(t, variables_that_cannot_be_carry_their_cause);
    test_each_device(t, a_value_that_does_not_fit_leaves_the_variable_as_it_was);
    test_each_device(t, a_lent_value_that_an_update_overwrote_names_the_variable);
    test_each_device(t, with_debug_handles_a_tensor_used_after_its_scope_says_so);
    test_each_device(t, long_names_and_shapes_are_cut);
    return test_run("bad input", t);
}
