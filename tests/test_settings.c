/* Settings of a device: what each changes, read back, and what is no setting. */
#include "support/devices.h"

#include <math.h>

static double total(fnx_tensor *t) {
    double v = NAN;
    return fnx_tensor_item(fnx_sum(t, FNX_ALL_AXES, false), &v) ? NAN : v;
}

static void configure(fnx_device *dev, fnx_settings s) {
    s.struct_size = sizeof s;
    ck_assert_msg(fnx_device_configure(dev, &s) == 0, "%s", fnx_last_error()->message);
}

START_TEST(settings_are_read_back_and_kept_per_handle) {
    fnx_device *dev = test_device(_i, false), *other = fnx_device_plain(dev);
    fnx_settings s = {.struct_size = sizeof s};
    configure(dev, (fnx_settings){.float_dtype = FNX_F64,
                                  .int_dtype = FNX_I32,
                                  .lazy = FNX_OFF,
                                  .fallback = FNX_FALLBACK_ERROR});
    ck_assert_int_eq(fnx_device_settings(dev, &s), 0);
    ck_assert(s.float_dtype == FNX_F64 && s.int_dtype == FNX_I32 && s.lazy == FNX_OFF &&
              s.fallback == FNX_FALLBACK_ERROR);
    ck_assert_int_eq(fnx_device_settings(other, &s), 0);
    ck_assert(s.float_dtype == FNX_F32 && s.int_dtype == FNX_I64 && s.lazy == FNX_ON &&
              s.fallback == FNX_FALLBACK_DECOMPOSE);
    FNX_SCOPE;
    ck_assert_int_eq(fnx_tensor_dtype(fnx_fill(dev, 0, FNX_SHAPE(2), 1)), FNX_F64);
    ck_assert_int_eq(fnx_tensor_dtype(fnx_iota(dev, 0, FNX_SHAPE(2), 0)), FNX_I32);
    s = (fnx_settings){.struct_size = sizeof s, .float_dtype = FNX_I32};
    ck_assert_int_eq(fnx_device_configure(dev, &s), FNX_E_DTYPE);
    fnx_device_close(dev), fnx_device_close(other);
}
END_TEST

START_TEST(an_eager_device_runs_each_op_at_once) {
    fnx_device *dev = test_device(_i, false);
    configure(dev, (fnx_settings){.lazy = FNX_OFF});
    fnx_graph_stats from = {.struct_size = sizeof from}, to = {.struct_size = sizeof to};
    FNX_SCOPE;
    fnx_tensor *x = fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(3), (float[]){1, 2, 3}, 0);
    ck_assert_int_eq(fnx_device_stats(dev, &from), 0);
    x = fnx_exp(fnx_neg(fnx_mul(x, x)));
    ck_assert_int_eq(fnx_device_stats(dev, &to), 0);
    ck_assert_uint_eq(to.flushes - from.flushes, 3);
    fnx_device_close(dev);
}
END_TEST

/* Values of a graph with several groups; with verify on, each is also run op by op and compared. */
START_TEST(verify_runs_every_graph_twice_and_agrees) {
    fnx_device *dev = test_device(_i, true);
    double plain = 0;
    for (int verify = 0; verify < 2; verify++) {
        FNX_SCOPE;
        configure(dev, (fnx_settings){.verify = verify ? FNX_ON : FNX_OFF});
        fnx_device_seed(dev, 3);
        fnx_graph_stats from = {.struct_size = sizeof from}, to = {.struct_size = sizeof to};
        fnx_variable *w = fnx_variable_create("w", fnx_normal(dev, FNX_F32, FNX_SHAPE(30, 7), 0, 1), true);
        ck_assert_int_eq(fnx_device_stats(dev, &from), 0);
        fnx_tensor *x = fnx_normal(dev, FNX_F32, FNX_SHAPE(20, 30), 0, 1);
        fnx_tensor *y = fnx_softmax(fnx_tanh(fnx_matmul(x, fnx_variable_get(w))), 1);
        ck_assert_int_eq(fnx_backward(fnx_sum(fnx_mul(y, y), FNX_ALL_AXES, false)), 0);
        double sum = total(fnx_variable_grad(w));
        ck_assert_msg(!isnan(sum), "%s", fnx_last_error()->message);
        ck_assert_int_eq(fnx_device_stats(dev, &to), 0);
        if (!verify) plain = sum;
        else ck_assert(fabs(sum - plain) <= 1e-5 * (1 + fabs(plain)));
        ck_assert_int_eq(fnx_variable_set(w, fnx_mul_scalar(fnx_variable_get(w), 2)), 0); /* donation */
        ck_assert(!isnan(total(fnx_variable_get(w))));
        fnx_variable_destroy(w);
    }
    fnx_device_close(dev);
}
END_TEST

START_TEST(fallback_error_forbids_decompositions) {
    fnx_device *dev = test_device(_i, false);
    configure(dev, (fnx_settings){.fallback = FNX_FALLBACK_ERROR});
    FNX_SCOPE;
    double v;
    fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(3, 4), 1);
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_softmax(x, 1), FNX_ALL_AXES, false), &v), FNX_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "softmax"));
    ck_assert_double_eq(total(fnx_exp(fnx_mul_scalar(x, 0))), 12); /* device and x go on */
    configure(dev, (fnx_settings){.fallback = FNX_FALLBACK_DECOMPOSE});
    ck_assert_double_eq_tol(total(fnx_softmax(x, 1)), 3, 1e-6);
    fnx_device_close(dev);
}
END_TEST

/* Sums of everything that x goes through, on a device whose memory the host cannot address. */
static void compute(fnx_device *dev, double *sums) {
    FNX_SCOPE;
    float data[60];
    for (int i = 0; i < 60; i++) data[i] = (float)(i * 37 % 60) / 20 - 1;
    fnx_tensor *x = fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(3, 4, 5), data, 0);
    fnx_tensor *views = fnx_permute(fnx_slice(fnx_exp(fnx_permute(x, (int[]){2, 0, 1})), 1, 1, 2), (int[]){1, 2, 0});
    fnx_variable *w = fnx_variable_create("w", fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(5, 2), data, 0), true);
    fnx_tensor *y = fnx_exp(fnx_matmul(views, fnx_variable_get(w)));
    ck_assert_int_eq(fnx_backward(fnx_sum(y, FNX_ALL_AXES, false)), 0);
    sums[0] = total(views), sums[1] = total(y), sums[2] = total(fnx_argmax(x, 1, false)),
    sums[3] = total(fnx_variable_grad(w)), sums[4] = total(fnx_concat((fnx_tensor *[]){fnx_exp(x), x}, 2, 0));
    fnx_variable_destroy(w);
}

START_TEST(fallback_host_runs_what_the_device_lacks) {
    static const char *const lacking[] = {"partial", "partial:exp+matmul+argmax+sum+cast"};
    setenv("FORNAX_PLUGIN_PATH", TEST_BUILD_DIR "/manifests:" TEST_BUILD_DIR "/tests/plugins", 1);
    double want[5], got[5];
    fnx_device *dev = fnx_device_autodiff(fnx_device_open("ref"));
    compute(dev, want);
    fnx_device_close(dev);
    for (int i = 0; i < 2; i++) {
        fnx_graph_stats stats = {.struct_size = sizeof stats};
        dev = fnx_device_autodiff(fnx_device_open(lacking[i]));
        ck_assert_msg(fnx_device_status(dev) == 0, "%s", fnx_last_error()->message);
        if (i == 1) {
            double v;
            FNX_SCOPE;
            fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(1), 1);
            ck_assert_int_eq(fnx_tensor_item(fnx_exp(x), &v), FNX_E_UNSUPPORTED);
            configure(dev, (fnx_settings){.fallback = FNX_FALLBACK_HOST});
        }
        compute(dev, got);
        for (int k = 0; k < 5; k++) ck_assert_double_eq_tol(got[k], want[k], 1e-5 * fabs(want[k]));
        ck_assert_int_eq(fnx_device_stats(dev, &stats), 0);
        ck_assert((stats.fallbacks > 0) == (i == 1));
        fnx_device_close(dev);
    }
}
END_TEST

START_TEST(an_index_error_in_a_fallback_is_reported) {
    setenv("FORNAX_PLUGIN_PATH", TEST_BUILD_DIR "/manifests:" TEST_BUILD_DIR "/tests/plugins", 1);
    fnx_device *dev = fnx_device_open("partial:gather?fallback=host");
    FNX_SCOPE;
    fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(4), 1);
    fnx_tensor *index = fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(2), (int64_t[]){3, 4}, 0);
    float got[2];
    ck_assert_int_eq(fnx_tensor_read(fnx_gather(x, 0, index), got, sizeof got), FNX_E_INDEX);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "index 4 is outside [0, 4)"));
    fnx_device_close(dev);
}
END_TEST

/* 4 TB as a value: as a name it costs nothing. */
START_TEST(a_repeated_value_that_nobody_needs_is_not_stored) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    fnx_tensor *row = fnx_exp(fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(1, 4), (float[]){0, 1, 2, 3}, 0));
    fnx_tensor *huge = fnx_expand(row, FNX_SHAPE(1 << 28, 1 << 10, 1, 4));
    ck_assert_double_eq(total(fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 2)), 6); /* the flush passes it by */
    ck_assert_int_eq(fnx_tensor_status(huge), 0);
    fnx_tensor *part = fnx_slice(fnx_slice(huge, 0, 5, 1), 1, 7, 2);
    ck_assert_double_eq_tol(total(part), 2 * (1 + exp(1) + exp(2) + exp(3)), 1e-3);
    fnx_device_close(dev);
}
END_TEST

START_TEST(gradients_end_where_floats_end) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    fnx_variable *w = fnx_variable_create("w", fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 1.5), true);
    fnx_tensor *cut = fnx_cast(fnx_cast(fnx_variable_get(w), FNX_I32), FNX_F32);
    ck_assert(!fnx_tensor_requires_grad(cut));
    ck_assert_int_eq(fnx_backward(fnx_sum(cut, FNX_ALL_AXES, false)), FNX_E_GRADIENT);
    fnx_variable_destroy(w);
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("settings");
    test_each_device(t, settings_are_read_back_and_kept_per_handle);
    test_each_device(t, an_eager_device_runs_each_op_at_once);
    test_each_device(t, verify_runs_every_graph_twice_and_agrees);
    test_each_device(t, fallback_error_forbids_decompositions);
    tcase_add_test(t, fallback_host_runs_what_the_device_lacks);
    tcase_add_test(t, an_index_error_in_a_fallback_is_reported);
    test_each_device(t, a_repeated_value_that_nobody_needs_is_not_stored);
    test_each_device(t, gradients_end_where_floats_end);
    return test_run("settings", t);
}
