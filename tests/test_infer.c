/* What is wrong with the operands of an op is said when it is recorded: a code, and a message that names the op, the
 * operands and their shapes. The expression around it carries the first cause, and the program goes on. */
#include "support/devices.h"
#include "support/op_cases.h"

#include <limits.h>
#include <math.h>

/* t failed with this code, and its message has all the words (up to NULL). */
static void check_failed(const char *file, int line, fnx_tensor *t, fnx_status code, ...) {
    va_list words;
    char message[1100], buffer[8] = "1234567";
    double item = 1;
    fnx_status got = fnx_tensor_status(t);
    snprintf(message, sizeof message, "%s", got ? fnx_last_error()->message : "no error");
    ck_assert_msg(got == code, "%s:%d: %s, not %s: %s", file, line, fnx_status_name(got), fnx_status_name(code),
                  message);
    va_start(words, code);
    for (const char *word = va_arg(words, const char *); word; word = va_arg(words, const char *))
        ck_assert_msg(strstr(message, word) != NULL, "%s:%d: no \"%s\" in: %s", file, line, word, message);
    va_end(words);
    ck_assert_msg(fnx_tensor_read(t, buffer, sizeof buffer) == code && !memcmp(buffer, "\0\0\0\0\0\0\0", 8),
                  "%s:%d: a read gave something", file, line);
    ck_assert_msg(fnx_tensor_item(t, &item) == code && item == 0, "%s:%d: an item came out", file, line);
    ck_assert_msg(fnx_eval(t) == code, "%s:%d: it could be evaluated", file, line);
    fnx_tensor *after = fnx_neg(fnx_matmul(fnx_exp(t), t));
    ck_assert_msg(fnx_tensor_status(after) == code && !strcmp(fnx_last_error()->message, message),
                  "%s:%d: the cause was lost", file, line);
}

#define FAILS(t, code, ...) \
    do { \
        FNX_SCOPE_QUIET; \
        check_failed(__FILE__, __LINE__, t, code, __VA_ARGS__, NULL); \
    } while (0)

static fnx_tensor *zeros_of(fnx_device *dev, int dtype, int rank, const int64_t *sizes) {
    return fnx_fill(dev, dtype, rank, sizes, 0);
}
#define ZEROS(dtype, ...) zeros_of(dev, dtype, FNX_SHAPE(__VA_ARGS__))
#define ONE(dtype) zeros_of(dev, dtype, FNX_SCALAR_SHAPE)
#define FLOATS(...) ZEROS(FNX_F32, __VA_ARGS__)

/* A large shape that takes no memory. */
static fnx_tensor *spread(fnx_device *dev, int dtype, int rank, const int64_t *sizes) {
    return fnx_expand(ONE(dtype), rank, sizes);
}
#define SPREAD(dtype, ...) spread(dev, dtype, FNX_SHAPE(__VA_ARGS__))

#define NUMBERS(...) ((const int64_t[]){__VA_ARGS__})
#define INTS(...) ((const int[]){__VA_ARGS__})

enum { NONE = 0, F16 = FNX_F16 };
#define HUGE_SIZE (INT64_C(1) << 40)

/* Each test opens a device and a scope, and at the end shows that the device still computes. */
#define BEGIN \
    fnx_device *dev = test_device(_i, false); \
    FNX_SCOPE
static void end(fnx_device *dev) {
    double v;
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_fill(dev, FNX_F32, FNX_SHAPE(2, 3), 2), FNX_ALL_AXES, false), &v), 0);
    ck_assert_double_eq(v, 12);
    fnx_device_close(dev);
}

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

START_TEST(shapes_that_do_not_broadcast_are_refused) {
    BEGIN;
    FAILS(fnx_add(FLOATS(2, 3), FLOATS(4)), FNX_E_SHAPE, "add", "f32[2,3]", "f32[4]", "broadcast");
    FAILS(fnx_mul(FLOATS(2, 3), FLOATS(3, 2)), FNX_E_SHAPE, "mul", "f32[2,3]", "f32[3,2]");
    FAILS(fnx_sub(FLOATS(0, 3), FLOATS(2, 3)), FNX_E_SHAPE, "sub", "f32[0,3]", "f32[2,3]");
    FAILS(fnx_less(FLOATS(2), FLOATS(3)), FNX_E_SHAPE, "less", "f32[2]", "f32[3]");
    FAILS(fnx_where(ZEROS(FNX_BOOL, 2), FLOATS(3), FLOATS(3)), FNX_E_SHAPE, "where", "bool[2]", "f32[3]");
    FAILS(fnx_where(ZEROS(FNX_BOOL, 3), FLOATS(3), FLOATS(2)), FNX_E_SHAPE, "where", "f32[3]", "f32[2]");
    end(dev);
}
END_TEST

START_TEST(dtypes_that_do_not_match_are_refused) {
    BEGIN;
    FAILS(fnx_add(FLOATS(2), ZEROS(FNX_F64, 2)), FNX_E_DTYPE, "add", "f32[2]", "f64[2]", "fnx_cast");
    FAILS(fnx_pow(ZEROS(FNX_I32, 2), ZEROS(FNX_I64, 2)), FNX_E_DTYPE, "pow", "i32[2]", "i64[2]");
    FAILS(fnx_equal(ZEROS(FNX_BOOL, 2), ZEROS(FNX_U8, 2)), FNX_E_DTYPE, "equal", "bool[2]", "u8[2]");
    FAILS(fnx_where(ZEROS(FNX_BOOL, 2), FLOATS(2), ZEROS(FNX_F64, 2)), FNX_E_DTYPE, "where", "f32[2]", "f64[2]");
    FAILS(fnx_where(FLOATS(2), FLOATS(2), FLOATS(2)), FNX_E_DTYPE, "where", "f32[2]", "bool");
    FAILS(fnx_matmul(FLOATS(2, 2), ZEROS(FNX_F64, 2, 2)), FNX_E_DTYPE, "matmul", "f32[2,2]", "f64[2,2]");
    FAILS(fnx_slice_assign(FLOATS(2), ZEROS(FNX_I32, 1), NUMBERS(0), NULL), FNX_E_DTYPE, "slice_assign", "f32[2]",
          "i32[1]");
    FAILS(fnx_concat((fnx_tensor *[]){FLOATS(2), ZEROS(FNX_U8, 2)}, 2, 0), FNX_E_DTYPE, "concat", "f32[2]", "u8[2]");
    FAILS(fnx_scatter_add(FLOATS(2), 0, ZEROS(FNX_I64, 2), ZEROS(FNX_F64, 2)), FNX_E_DTYPE, "scatter_add", "f32[2]",
          "f64[2]");
    FAILS(fnx_conv2d_with(FLOATS(1, 1, 3, 3), ZEROS(FNX_F64, 1, 1, 2, 2), NULL, NULL), FNX_E_DTYPE, "conv",
          "f32[1,1,3,3]", "f64[1,1,2,2]");
    end(dev);
}
END_TEST

START_TEST(dtypes_that_an_op_does_not_take_are_refused) {
    BEGIN;
    fnx_tensor *(*const of_floats[])(fnx_tensor *) = {fnx_exp,     fnx_log, fnx_sqrt, fnx_tanh,
                                                      fnx_sigmoid, fnx_erf, fnx_gelu};
    for (size_t i = 0; i < sizeof of_floats / sizeof *of_floats; i++)
        FAILS(of_floats[i](ZEROS(FNX_I32, 2)), FNX_E_DTYPE, "i32[2]", "f32, f64", "fnx_cast");
    fnx_tensor *(*const of_numbers[])(fnx_tensor *) = {fnx_neg, fnx_abs, fnx_relu};
    for (size_t i = 0; i < sizeof of_numbers / sizeof *of_numbers; i++)
        FAILS(of_numbers[i](ZEROS(FNX_BOOL, 2)), FNX_E_DTYPE, "bool[2]", "i32");
    FAILS(fnx_add(ZEROS(FNX_BOOL, 2), ZEROS(FNX_BOOL, 2)), FNX_E_DTYPE, "add", "bool[2]");
    FAILS(fnx_less(ZEROS(FNX_BOOL, 2), ZEROS(FNX_BOOL, 2)), FNX_E_DTYPE, "less", "bool[2]");
    FAILS(fnx_sum(ZEROS(FNX_BOOL, 2), FNX_ALL_AXES, false), FNX_E_DTYPE, "sum", "bool[2]");
    FAILS(fnx_mean(ZEROS(FNX_I64, 2), FNX_ALL_AXES, false), FNX_E_DTYPE, "mean", "i64[2]", "fnx_cast");
    FAILS(fnx_matmul(ZEROS(FNX_BOOL, 2, 2), ZEROS(FNX_BOOL, 2, 2)), FNX_E_DTYPE, "matmul", "bool[2,2]");
    FAILS(fnx_conv2d_with(ZEROS(FNX_I32, 1, 1, 2, 2), ZEROS(FNX_I32, 1, 1, 1, 1), NULL, NULL), FNX_E_DTYPE, "conv",
          "i32[1,1,2,2]");
    FAILS(fnx_avg_pool2d_with(ZEROS(FNX_I32, 1, 1, 2, 2), 2, 2, NULL), FNX_E_DTYPE, "avg_pool", "i32[1,1,2,2]");
    FAILS(fnx_max_pool2d_with(ZEROS(FNX_BOOL, 1, 1, 2, 2), 2, 2, NULL), FNX_E_DTYPE, "max_pool", "bool[1,1,2,2]");
    FAILS(fnx_softmax(ZEROS(FNX_I32, 2), 0), FNX_E_DTYPE, "softmax", "i32[2]");
    FAILS(fnx_scatter_add(ZEROS(FNX_BOOL, 2), 0, ZEROS(FNX_I64, 2), ZEROS(FNX_BOOL, 2)), FNX_E_DTYPE, "scatter_add",
          "bool[2]");
    FAILS(fnx_gather(FLOATS(2), 0, FLOATS(2)), FNX_E_DTYPE, "gather", "f32[2]", "i32 or i64");
    FAILS(fnx_gather(FLOATS(2), 0, ZEROS(FNX_U8, 2)), FNX_E_DTYPE, "gather", "u8[2]", "fnx_cast");
    FAILS(fnx_one_hot(FLOATS(2), 3, FNX_F32), FNX_E_DTYPE, "one_hot", "f32[2]");
    FAILS(fnx_cross_entropy(FLOATS(2, 3), FLOATS(2)), FNX_E_DTYPE, "cross_entropy", "f32[2]");
    FAILS(fnx_cross_entropy(ZEROS(FNX_I32, 2, 3), ZEROS(FNX_I64, 2)), FNX_E_DTYPE, "i32[2,3]");
    FAILS(fnx_dropout(ZEROS(FNX_I32, 2), 0.5), FNX_E_DTYPE, "i32");
    FAILS(fnx_batch_norm(ZEROS(FNX_I32, 2, 3), ZEROS(FNX_I32, 3), ZEROS(FNX_I32, 3), NULL, NULL, 0), FNX_E_DTYPE,
          "i32");
    end(dev);
}
END_TEST

START_TEST(there_is_no_cast_to_dtypes_that_are_not_supported) {
    BEGIN;
    FAILS(fnx_cast(FLOATS(2), NONE), FNX_E_DTYPE, "cast", "0");
    FAILS(fnx_cast(FLOATS(2), F16), FNX_E_DTYPE, "cast", "f16");
    FAILS(fnx_cast(FLOATS(2), -1), FNX_E_DTYPE, "cast");
    FAILS(fnx_cast(FLOATS(2), 256 + FNX_F32), FNX_E_DTYPE, "cast");
    FAILS(fnx_one_hot(ZEROS(FNX_I64, 2), 3, F16), FNX_E_DTYPE, "f16");
    end(dev);
}
END_TEST

START_TEST(scalars_that_the_dtype_does_not_have_are_refused) {
    BEGIN;
    FAILS(fnx_add_scalar(ZEROS(FNX_I32, 2), 0.5), FNX_E_DTYPE, "add", "0.5", "i32[2]", "fnx_cast");
    FAILS(fnx_mul_scalar(ZEROS(FNX_U8, 2), -1), FNX_E_DTYPE, "mul", "-1", "u8[2]");
    FAILS(fnx_less_scalar(ZEROS(FNX_U8, 2), 256), FNX_E_DTYPE, "less", "256");
    FAILS(fnx_scalar_sub(0x1p31, ZEROS(FNX_I32, 2)), FNX_E_DTYPE, "sub", "i32[2]");
    FAILS(fnx_scalar_div(0x1p63, ZEROS(FNX_I64, 2)), FNX_E_DTYPE, "div", "i64[2]");
    FAILS(fnx_maximum_scalar(ZEROS(FNX_I64, 2), NAN), FNX_E_DTYPE, "maximum", "nan");
    FAILS(fnx_minimum_scalar(ZEROS(FNX_I64, 2), -INFINITY), FNX_E_DTYPE, "minimum", "inf");
    FAILS(fnx_equal_scalar(ZEROS(FNX_BOOL, 2), 2), FNX_E_DTYPE, "equal", "bool[2]");
    FAILS(fnx_fill(dev, FNX_I32, FNX_SHAPE(2), 1.5), FNX_E_DTYPE, "fill", "1.5", "i32");
    FAILS(fnx_fill_like(ZEROS(FNX_U8, 2), 300), FNX_E_DTYPE, "fill", "300", "u8");
    FAILS(fnx_pad(ZEROS(FNX_I32, 2), NUMBERS(1), NUMBERS(1), 0.5), FNX_E_DTYPE, "pad", "0.5", "i32");
    end(dev);
}
END_TEST

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

START_TEST(ranks_above_8_are_refused) {
    BEGIN;
    const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    float data = 0;
    FAILS(fnx_fill(dev, FNX_F32, 9, ones, 0), FNX_E_SHAPE, "fill", "rank 9", "8");
    FAILS(fnx_fill(dev, FNX_F32, -1, ones, 0), FNX_E_SHAPE, "fill", "rank -1");
    FAILS(fnx_uniform(dev, FNX_F32, 9, ones, 0, 1), FNX_E_SHAPE, "uniform", "rank 9");
    FAILS(fnx_normal(dev, FNX_F32, INT_MAX, ones, 0, 1), FNX_E_SHAPE, "normal");
    FAILS(fnx_iota(dev, FNX_I64, 9, ones, 0), FNX_E_SHAPE, "iota", "rank 9");
    FAILS(fnx_tensor_from(dev, FNX_F32, 9, ones, &data, 0), FNX_E_SHAPE, "tensor_from", "rank 9");
    FAILS(fnx_reshape(FLOATS(1), 9, ones), FNX_E_SHAPE, "reshape", "rank 9");
    FAILS(fnx_expand(FLOATS(1), 9, ones), FNX_E_SHAPE, "expand", "rank 9");
    FAILS(fnx_expand(FLOATS(1, 1), 1, ones), FNX_E_SHAPE, "expand", "rank 1");
    FAILS(fnx_one_hot(zeros_of(dev, FNX_I64, 8, ones), 2, FNX_F32), FNX_E_SHAPE, "one_hot", "i64[1,1,1,1,1,1,1,1]");
    ck_assert_int_eq(fnx_tensor_status(zeros_of(dev, FNX_F32, 8, ones)), 0);
    end(dev);
}
END_TEST

START_TEST(sizes_that_overflow_are_refused) {
    BEGIN;
    const int64_t huge = HUGE_SIZE, most = INT64_MAX;
    FAILS(fnx_fill(dev, FNX_F32, FNX_SHAPE(huge, huge), 0), FNX_E_SHAPE, "fill", "overflow");
    FAILS(fnx_fill(dev, FNX_F64, FNX_SHAPE(most), 0), FNX_E_SHAPE, "fill", "overflow");
    FAILS(fnx_fill(dev, FNX_F32, FNX_SHAPE(2, -1), 0), FNX_E_SHAPE, "fill", "axis 1", "-1");
    FAILS(fnx_expand(FLOATS(1, 1), FNX_SHAPE(huge, huge)), FNX_E_SHAPE, "expand", "overflow");
    FAILS(fnx_expand(FLOATS(1), FNX_SHAPE(-2)), FNX_E_SHAPE, "expand", "-2");
    FAILS(fnx_add(SPREAD(FNX_F32, huge, 1), SPREAD(FNX_F32, 1, huge)), FNX_E_SHAPE, "add", "overflow");
    FAILS(fnx_where(SPREAD(FNX_BOOL, huge, 1), SPREAD(FNX_F32, 1, huge), ONE(FNX_F32)), FNX_E_SHAPE, "where",
          "overflow");
    FAILS(fnx_matmul(SPREAD(FNX_F32, huge, 1), SPREAD(FNX_F32, 1, huge)), FNX_E_SHAPE, "matmul", "overflow");
    FAILS(fnx_pad(FLOATS(2), NUMBERS(most), NUMBERS(0), 0), FNX_E_SHAPE, "pad", "axis 0");
    FAILS(fnx_pad(FLOATS(2, 2), NUMBERS(huge, huge), NUMBERS(0, 0), 0), FNX_E_SHAPE, "pad", "overflow");
    FAILS(fnx_concat((fnx_tensor *[]){SPREAD(FNX_U8, most / 2), SPREAD(FNX_U8, most / 2), SPREAD(FNX_U8, 2)}, 3, 0),
          FNX_E_SHAPE, "concat");
    FAILS(fnx_one_hot(ZEROS(FNX_I64, 4), INT64_C(1) << 62, FNX_F64), FNX_E_SHAPE, "overflow");
    FAILS(fnx_cast(SPREAD(FNX_U8, INT64_C(1) << 61), FNX_F64), FNX_E_SHAPE, "cast", "overflow");
    FAILS(fnx_argmax(SPREAD(FNX_U8, INT64_C(1) << 61, 1), 1, false), FNX_E_SHAPE, "argmax", "overflow");
    FAILS(fnx_reshape(FLOATS(4), FNX_SHAPE(huge, huge)), FNX_E_SHAPE, "reshape", "overflow");
    FAILS(fnx_conv2d(FLOATS(1, 1, 1, 1), SPREAD(FNX_F32, huge, 1, 1, 1), NULL, .padding = {INT_MAX, INT_MAX}),
          FNX_E_SHAPE, "overflow");
    end(dev);
}
END_TEST

/* Strides are products of sizes, also where there are no elements. */
START_TEST(sizes_of_empty_tensors_do_not_overflow_either) {
    BEGIN;
    const int64_t huge = HUGE_SIZE;
    fnx_tensor *x = FLOATS(huge, 0, 2);
    FAILS(fnx_fill(dev, FNX_F32, FNX_SHAPE(huge, huge, 0, 2), 0), FNX_E_SHAPE, "fill", "overflow");
    FAILS(fnx_reshape(x, FNX_SHAPE(0, huge, huge)), FNX_E_SHAPE, "reshape", "overflow");
    FAILS(fnx_expand(x, FNX_SHAPE(huge, huge, 0, 2)), FNX_E_SHAPE, "expand", "overflow");
    FAILS(fnx_reshape(x, FNX_SHAPE(huge, 0, -1)), FNX_E_SHAPE, "reshape", "evenly");
    FAILS(fnx_conv2d(FLOATS(1, 1, 3, 3), FLOATS(0, 1, INT64_MAX / 511 + 1, 1), NULL, .dilation = {511, 1}), FNX_E_SHAPE,
          "conv", "larger");
    ck_assert_int_eq(fnx_eval(fnx_neg(fnx_permute(x, INTS(1, 2, 0)))), 0);
    ck_assert_int_eq(fnx_eval(fnx_flatten(x, 0)), 0);
    end(dev);
}
END_TEST

START_TEST(reshapes_that_do_not_fit_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(2, 3);
    FAILS(fnx_reshape(x, FNX_SHAPE(4)), FNX_E_SHAPE, "reshape", "f32[2,3]", "f32[4]");
    FAILS(fnx_reshape(x, FNX_SHAPE(-1, -1)), FNX_E_SHAPE, "reshape", "-1");
    FAILS(fnx_reshape(x, FNX_SHAPE(4, -1)), FNX_E_SHAPE, "reshape", "f32[2,3]", "evenly");
    FAILS(fnx_reshape(x, FNX_SHAPE(0, -1)), FNX_E_SHAPE, "reshape", "evenly");
    FAILS(fnx_reshape(x, FNX_SHAPE(2, -3)), FNX_E_SHAPE, "reshape", "-3");
    FAILS(fnx_reshape(x, 1, NULL), FNX_E_INVALID, "reshape", "NULL");
    FAILS(fnx_expand(x, FNX_SHAPE(2, 4)), FNX_E_SHAPE, "expand", "f32[2,3]", "f32[2,4]");
    FAILS(fnx_expand(x, FNX_SHAPE(-1, 2, 3)), FNX_E_SHAPE, "expand", "-1");
    FAILS(fnx_expand(x, 2, NULL), FNX_E_INVALID, "expand", "NULL");
    end(dev);
}
END_TEST

START_TEST(axes_out_of_range_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(2, 3), *scalar = ONE(FNX_F32);
    FAILS(fnx_sum(x, FNX_AXES(2), false), FNX_E_SHAPE, "sum", "axis 2", "f32[2,3]");
    FAILS(fnx_max(x, FNX_AXES(0, -2), false), FNX_E_SHAPE, "max", "axis -2", "twice");
    FAILS(fnx_mean(x, FNX_AXES(-3), true), FNX_E_SHAPE, "axis -3", "f32[2,3]");
    FAILS(fnx_argmax(x, 2, false), FNX_E_SHAPE, "argmax", "axis 2");
    FAILS(fnx_argmax(x, 258, false), FNX_E_SHAPE, "argmax", "258");
    FAILS(fnx_argmax(scalar, 0, false), FNX_E_SHAPE, "argmax", "f32[]");
    FAILS(fnx_softmax(x, 2), FNX_E_SHAPE, "softmax", "axis 2", "f32[2,3]");
    FAILS(fnx_log_softmax(scalar, 0), FNX_E_SHAPE, "log_softmax", "f32[]");
    FAILS(fnx_permute(x, INTS(0, 2)), FNX_E_SHAPE, "permute", "axis 2", "f32[2,3]");
    FAILS(fnx_permute(x, INTS(1, -1)), FNX_E_SHAPE, "permute", "twice");
    FAILS(fnx_permute(x, NULL), FNX_E_INVALID, "permute", "NULL");
    FAILS(fnx_transpose(x, 0, 2), FNX_E_SHAPE, "transpose", "axis 2");
    FAILS(fnx_transpose(x, -3, 0), FNX_E_SHAPE, "transpose", "axis -3");
    FAILS(fnx_flatten(x, 2), FNX_E_SHAPE, "flatten", "axis 2");
    FAILS(fnx_slice(x, 2, 0, 1), FNX_E_SHAPE, "slice", "axis 2");
    FAILS(fnx_concat((fnx_tensor *[]){x, x}, 2, 2), FNX_E_SHAPE, "concat", "axis 2");
    FAILS(fnx_concat((fnx_tensor *[]){scalar, scalar}, 2, 0), FNX_E_SHAPE, "concat", "f32[]");
    FAILS(fnx_gather(x, 2, ZEROS(FNX_I64, 2, 3)), FNX_E_SHAPE, "gather", "axis 2");
    FAILS(fnx_scatter_add(x, -3, ZEROS(FNX_I64, 2, 3), x), FNX_E_SHAPE, "scatter_add", "axis -3");
    FAILS(fnx_iota(dev, FNX_I64, FNX_SHAPE(2, 3), 2), FNX_E_SHAPE, "iota", "axis 2");
    FAILS(fnx_iota(dev, FNX_I64, FNX_SCALAR_SHAPE, 0), FNX_E_SHAPE, "iota", "axis 0");
    end(dev);
}
END_TEST

START_TEST(regions_outside_a_tensor_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(4, 5);
    FAILS(fnx_slice(x, 1, 3, 3), FNX_E_SHAPE, "slice", "3 elements from 3", "axis 1", "f32[4,5]");
    FAILS(fnx_slice(x, 0, 5, 0), FNX_E_SHAPE, "slice", "axis 0");
    FAILS(fnx_slice(x, 0, -5, 1), FNX_E_SHAPE, "slice", "axis 0");
    FAILS(fnx_slice(x, 0, 0, -1), FNX_E_SHAPE, "slice", "-1");
    FAILS(fnx_slice(x, 0, INT64_MAX, 2), FNX_E_SHAPE, "slice");
    FAILS(fnx_slice(x, 0, INT64_MIN, 1), FNX_E_SHAPE, "slice");
    FAILS(fnx_slice_all(x, NUMBERS(0, 0), NUMBERS(2, 2), NUMBERS(1, 0)), FNX_E_SHAPE, "slice", "step 0", "axis 1");
    FAILS(fnx_slice_all(x, NUMBERS(0, 0), NUMBERS(2, 3), NUMBERS(1, 3)), FNX_E_SHAPE, "slice", "step 3", "axis 1");
    FAILS(fnx_slice_all(x, NUMBERS(1, 0), NUMBERS(3, 1), NUMBERS(-1, 1)), FNX_E_SHAPE, "slice", "step -1", "axis 0");
    FAILS(fnx_slice_all(x, NUMBERS(0, 1), NUMBERS(1, 2), NUMBERS(1, INT64_MAX)), FNX_E_SHAPE, "slice", "axis 1");
    FAILS(fnx_slice_all(x, NULL, NUMBERS(1, 1), NULL), FNX_E_INVALID, "slice", "NULL");
    FAILS(fnx_slice_all(x, NUMBERS(0, 0), NULL, NULL), FNX_E_INVALID, "slice", "NULL");
    FAILS(fnx_slice_assign(x, FLOATS(2, 2), NUMBERS(3, 0), NULL), FNX_E_SHAPE, "slice_assign", "axis 0", "f32[4,5]");
    FAILS(fnx_slice_assign(x, FLOATS(2), NUMBERS(0, 0), NULL), FNX_E_SHAPE, "slice_assign", "f32[2]", "rank");
    FAILS(fnx_slice_assign(x, FLOATS(5, 1), NUMBERS(0, 0), NULL), FNX_E_SHAPE, "slice_assign", "5 elements");
    FAILS(fnx_slice_assign(x, FLOATS(2, 2), NULL, NULL), FNX_E_INVALID, "slice_assign", "NULL");
    FAILS(fnx_pad(x, NUMBERS(-1, 0), NUMBERS(0, 0), 0), FNX_E_SHAPE, "pad", "-1", "axis 0", "f32[4,5]");
    FAILS(fnx_pad(x, NUMBERS(0, 0), NUMBERS(0, INT64_MIN), 0), FNX_E_SHAPE, "pad", "axis 1");
    FAILS(fnx_pad(x, NULL, NUMBERS(0, 0), 0), FNX_E_INVALID, "pad", "NULL");
    end(dev);
}
END_TEST

START_TEST(concat_needs_tensors_that_fit) {
    BEGIN;
    fnx_tensor *x = FLOATS(2, 3);
    FAILS(fnx_concat(NULL, 2, 0), FNX_E_INVALID, "concat");
    FAILS(fnx_concat((fnx_tensor *[]){x}, 0, 0), FNX_E_INVALID, "concat", "0");
    FAILS(fnx_concat((fnx_tensor *[]){x}, -1, 0), FNX_E_INVALID, "concat", "-1");
    FAILS(fnx_concat((fnx_tensor *[]){x, FLOATS(2, 4)}, 2, 0), FNX_E_SHAPE, "concat", "operand 1", "f32[2,4]",
          "f32[2,3]");
    FAILS(fnx_concat((fnx_tensor *[]){x, x, FLOATS(3)}, 3, 1), FNX_E_SHAPE, "concat", "operand 2", "f32[3]");
    end(dev);
}
END_TEST

START_TEST(extrema_of_nothing_are_refused) {
    BEGIN;
    FAILS(fnx_max(FLOATS(2, 0), FNX_AXES(1), false), FNX_E_SHAPE, "max", "f32[2,0]", "nothing");
    FAILS(fnx_min(FLOATS(0), FNX_ALL_AXES, false), FNX_E_SHAPE, "min", "f32[0]");
    FAILS(fnx_argmax(FLOATS(2, 0), 1, true), FNX_E_SHAPE, "argmax", "f32[2,0]");
    ck_assert_int_eq(fnx_eval(fnx_max(FLOATS(0, 3), FNX_AXES(1), false)), 0); /* no maximum is asked for */
    end(dev);
}
END_TEST

/* ---- matrices, windows ------------------------------------------------------------------------------------------- */

START_TEST(matrices_that_do_not_fit_are_refused) {
    BEGIN;
    FAILS(fnx_matmul(FLOATS(64, 784), FLOATS(512, 10)), FNX_E_SHAPE, "matmul", "f32[64,784]", "f32[512,10]", "784",
          "512");
    FAILS(fnx_matmul(FLOATS(64, 784), FLOATS(10, 784)), FNX_E_SHAPE, "matmul", "did you mean fnx_transpose");
    FAILS(fnx_matmul(FLOATS(2, 3, 4), FLOATS(3, 4, 2)), FNX_E_SHAPE, "matmul", "f32[2,3,4]", "f32[3,4,2]", "broadcast");
    FAILS(fnx_matmul(ONE(FNX_F32), FLOATS(2, 2)), FNX_E_SHAPE, "matmul", "f32[]");
    FAILS(fnx_matmul(FLOATS(3), FLOATS(2, 2)), FNX_E_SHAPE, "matmul", "3", "2");
    FAILS(fnx_matmul(FLOATS(3), FLOATS(4)), FNX_E_SHAPE, "matmul", "3", "4");
    FAILS(fnx_linear(FLOATS(2, 3), FLOATS(3, 4), NULL), FNX_E_SHAPE, "linear", "f32[2,3]", "f32[3,4]");
    FAILS(fnx_linear(FLOATS(2, 3), FLOATS(3), NULL), FNX_E_SHAPE, "linear", "f32[3]");
    FAILS(fnx_linear(FLOATS(2, 3), FLOATS(4, 3), FLOATS(3)), FNX_E_SHAPE, "linear", "f32[3]", "f32[4,3]");
    FAILS(fnx_linear(FLOATS(2, 3), FLOATS(4, 3), FLOATS(2, 4)), FNX_E_SHAPE, "linear", "f32[2,4]");
    FAILS(fnx_linear(FLOATS(2, 3), FLOATS(4, 3), ONE(FNX_F32)), FNX_E_SHAPE, "linear", "f32[]");
    end(dev);
}
END_TEST

START_TEST(convolutions_that_do_not_fit_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(2, 4, 5, 5), *w = FLOATS(6, 4, 3, 3);
    FAILS(fnx_conv2d_with(FLOATS(4, 5, 5), w, NULL, NULL), FNX_E_SHAPE, "conv", "f32[4,5,5]", "4 axes");
    FAILS(fnx_conv2d_with(x, FLOATS(6, 4, 3), NULL, NULL), FNX_E_SHAPE, "conv", "f32[6,4,3]");
    FAILS(fnx_conv2d_with(x, FLOATS(6, 3, 3, 3), NULL, NULL), FNX_E_SHAPE, "conv", "f32[2,4,5,5]", "f32[6,3,3,3]",
          "groups");
    FAILS(fnx_conv2d(x, w, NULL, .groups = 2), FNX_E_SHAPE, "conv", "groups 2");
    FAILS(fnx_conv2d(x, FLOATS(6, 1, 3, 3), NULL, .groups = 4), FNX_E_SHAPE, "conv", "groups 4");
    FAILS(fnx_conv2d(x, w, NULL, .groups = -1), FNX_E_INVALID, "conv", "groups", "-1");
    FAILS(fnx_conv2d_with(x, FLOATS(6, 4, 6, 3), NULL, NULL), FNX_E_SHAPE, "conv", "larger", "f32[6,4,6,3]");
    FAILS(fnx_conv2d(x, w, NULL, .dilation = {1, 3}), FNX_E_SHAPE, "conv", "larger", "dilation 3");
    FAILS(fnx_conv2d(x, w, NULL, .stride = {-1, 1}), FNX_E_INVALID, "conv", "stride -1");
    FAILS(fnx_conv2d(x, w, NULL, .dilation = {1, INT_MIN}), FNX_E_INVALID, "conv", "dilation");
    FAILS(fnx_conv2d(x, w, NULL, .padding = {-1, 0}), FNX_E_INVALID, "conv", "padding -1");
    FAILS(fnx_conv2d(x, w, NULL, .padding_after = {0, -2}, .asymmetric = true), FNX_E_INVALID, "conv", "-2");
    FAILS(fnx_conv2d_with(x, FLOATS(6, 4, 0, 3), NULL, NULL), FNX_E_SHAPE, "conv", "empty", "f32[6,4,0,3]");
    FAILS(fnx_conv2d_with(x, w, FLOATS(4), NULL), FNX_E_SHAPE, "conv2d", "f32[4]", "channel");
    FAILS(fnx_conv2d_with(x, w, FLOATS(6, 1), NULL), FNX_E_SHAPE, "conv2d", "f32[6,1]");
    FAILS(fnx_conv2d_with(x, w, ZEROS(FNX_F64, 6), NULL), FNX_E_DTYPE, "f64[6");
    end(dev);
}
END_TEST

START_TEST(pools_that_do_not_fit_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(1, 1, 4, 4);
    fnx_tensor *(*const pools[])(fnx_tensor *, int, int, const fnx_pool2d_options *) = {fnx_max_pool2d_with,
                                                                                        fnx_avg_pool2d_with};
    for (int i = 0; i < 2; i++) {
        FAILS(pools[i](FLOATS(4, 4), 2, 2, NULL), FNX_E_SHAPE, "pool", "f32[4,4]", "4 axes");
        FAILS(pools[i](x, 0, 2, NULL), FNX_E_INVALID, "pool", "window 0");
        FAILS(pools[i](x, 2, -2, NULL), FNX_E_INVALID, "pool", "window -2");
        FAILS(pools[i](x, 5, 2, NULL), FNX_E_SHAPE, "pool", "larger", "f32[1,1,4,4]", "window 5");
        FAILS(pools[i](x, 2, 2, &(fnx_pool2d_options){.padding = {0, 2}}), FNX_E_INVALID, "pool", "half", "padding 2");
        FAILS(pools[i](x, 2, 2, &(fnx_pool2d_options){.padding = {-1, 0}}), FNX_E_INVALID, "pool", "padding -1");
        FAILS(pools[i](x, 2, 2, &(fnx_pool2d_options){.padding = {INT_MAX, 0}}), FNX_E_INVALID, "pool", "half");
        FAILS(pools[i](x, 2, 2, &(fnx_pool2d_options){.stride = {0, -1}}), FNX_E_INVALID, "pool", "stride -1");
        FAILS(pools[i](x, INT_MAX, INT_MAX, NULL), FNX_E_SHAPE, "pool");
    }
    end(dev);
}
END_TEST

/* ---- indexes, composites, sources -------------------------------------------------------------------------------- */

START_TEST(indexes_that_do_not_fit_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(2, 3);
    FAILS(fnx_gather(x, 0, ZEROS(FNX_I64, 3)), FNX_E_SHAPE, "gather", "i64[3]", "rank", "f32[2,3]");
    FAILS(fnx_gather(x, 0, ZEROS(FNX_I64, 5, 4)), FNX_E_SHAPE, "gather", "i64[5,4]", "axis 1");
    FAILS(fnx_scatter_add(x, 0, ZEROS(FNX_I64, 5, 4), FLOATS(5, 4)), FNX_E_SHAPE, "scatter_add", "i64[5,4]", "axis 1");
    FAILS(fnx_scatter_add(x, 0, ZEROS(FNX_I64, 5, 3), FLOATS(3, 5)), FNX_E_SHAPE, "scatter_add", "f32[3,5]",
          "i64[5,3]");
    FAILS(fnx_scatter_add(x, 0, ZEROS(FNX_I64, 5, 3), FLOATS(1, 3)), FNX_E_SHAPE, "scatter_add", "f32[1,3]");
    FAILS(fnx_one_hot(ZEROS(FNX_I64, 2), 0, FNX_F32), FNX_E_INVALID, "one_hot", "depth", "0");
    FAILS(fnx_one_hot(ZEROS(FNX_I64, 2), -3, FNX_F32), FNX_E_INVALID, "one_hot", "-3");
    end(dev);
}
END_TEST

START_TEST(composites_that_do_not_fit_are_refused) {
    BEGIN;
    fnx_tensor *x = FLOATS(4, 3), *c = FLOATS(3);
    FAILS(fnx_cross_entropy(x, ZEROS(FNX_I64, 3)), FNX_E_SHAPE, "cross_entropy", "f32[4,3]", "i64[3]");
    FAILS(fnx_cross_entropy(x, ZEROS(FNX_I64, 4, 3)), FNX_E_SHAPE, "cross_entropy", "i64[4,3]");
    FAILS(fnx_cross_entropy(c, ZEROS(FNX_I64, 3)), FNX_E_SHAPE, "cross_entropy", "f32[3]");
    FAILS(fnx_cross_entropy(FLOATS(2, 3, 4), ZEROS(FNX_I64, 2, 5)), FNX_E_SHAPE, "cross_entropy", "f32[2,3,4]",
          "i64[2,5]");
    FAILS(fnx_cross_entropy_with(x, ZEROS(FNX_I64, 4), 3), FNX_E_INVALID, "cross_entropy", "reduction", "3");
    FAILS(fnx_cross_entropy_with(x, ZEROS(FNX_I64, 4), -1), FNX_E_INVALID, "cross_entropy", "reduction");
    FAILS(fnx_dropout(x, 1), FNX_E_INVALID, "dropout", "1", "[0, 1)");
    FAILS(fnx_dropout(x, -0.1), FNX_E_INVALID, "dropout", "-0.1");
    FAILS(fnx_dropout(x, NAN), FNX_E_INVALID, "dropout", "nan");
    FAILS(fnx_batch_norm(c, c, c, NULL, NULL, 0), FNX_E_SHAPE, "batch_norm", "f32[3]");
    FAILS(fnx_batch_norm(x, FLOATS(4), c, NULL, NULL, 0), FNX_E_SHAPE, "batch_norm", "f32[4,3]", "channel");
    FAILS(fnx_batch_norm(x, c, c, x, NULL, 0), FNX_E_SHAPE, "batch_norm");
    FAILS(fnx_batch_norm(x, c, c, c, FLOATS(1), 0), FNX_E_SHAPE, "batch_norm");
    FAILS(fnx_batch_norm(x, c, NULL, c, c, 0), FNX_E_INVALID, "batch_norm", "NULL");
    fnx_batch_norm_result r = fnx_batch_norm_train(x, FLOATS(4), NULL, 0);
    FAILS(r.y, FNX_E_SHAPE, "batch_norm", "f32[4,3]");
    FAILS(r.mean, FNX_E_SHAPE, "batch_norm");
    FAILS(r.variance, FNX_E_SHAPE, "batch_norm");
    FAILS(fnx_batch_norm_train(ZEROS(FNX_I32, 4, 3), NULL, NULL, 0).variance, FNX_E_DTYPE, "i32[4,3]");
    end(dev);
}
END_TEST

START_TEST(sources_that_cannot_be_are_refused) {
    BEGIN;
    FAILS(fnx_fill(dev, F16, FNX_SHAPE(2), 0), FNX_E_DTYPE, "fill", "f16");
    FAILS(fnx_fill(dev, 77, FNX_SHAPE(2), 0), FNX_E_DTYPE, "fill", "77");
    FAILS(fnx_fill(dev, -5, FNX_SHAPE(2), 0), FNX_E_DTYPE, "fill", "-5");
    FAILS(fnx_fill(dev, FNX_F32, 2, NULL, 0), FNX_E_INVALID, "fill", "NULL");
    FAILS(fnx_iota(dev, FNX_BOOL, FNX_SHAPE(2), 0), FNX_E_DTYPE, "iota", "bool");
    FAILS(fnx_uniform(dev, FNX_I32, FNX_SHAPE(2), 0, 1), FNX_E_DTYPE, "uniform", "i32");
    FAILS(fnx_normal(dev, FNX_BOOL, FNX_SHAPE(2), 1, 2), FNX_E_DTYPE, "normal", "bool");
    FAILS(fnx_uniform(dev, FNX_F32, FNX_SHAPE(-4), 1, 2), FNX_E_SHAPE, "uniform", "-4");
    FAILS(fnx_fill(NULL, FNX_F32, FNX_SHAPE(2), 0), FNX_E_INVALID, "device", "NULL");
    FAILS(fnx_iota(NULL, FNX_I64, FNX_SHAPE(2), 0), FNX_E_INVALID, "device", "NULL");
    FAILS(fnx_uniform(NULL, FNX_F32, FNX_SHAPE(2), 1, 2), FNX_E_INVALID, "device", "NULL");
    FAILS(fnx_normal(NULL, 0, FNX_SHAPE(2), 0, 1), FNX_E_INVALID, "device", "NULL");
    end(dev);
}
END_TEST

/* ---- any op: what its operands are ------------------------------------------------------------------------------- */

/* Operands that a program may leave out. */
static bool is_optional(const op_case *c, int k) {
    return (!strcmp(c->op, "linear") && k == 2) || (!strcmp(c->op, "conv2d") && k == 2) ||
           (!strcmp(c->op, "batch_norm") && k > 2) || (!strcmp(c->op, "batch_norm_train") && k > 0);
}

/* Each operand of each case in turn replaced; all results must fail with the code and the words. */
static void replace_operands(fnx_device *dev, fnx_tensor *(*replacement)(fnx_device *dev, const host_tensor *t),
                             fnx_status code, const char *word) {
    int n;
    const op_case *cases = op_cases(&n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < cases[i].n_in; k++) {
            const op_case *c = &cases[i];
            int there = 0;
            for (int o = 0; o < c->n_in; o++) there += c->in[o].dtype != 0;
            if (!c->in[k].dtype || (code == FNX_E_INVALID && is_optional(c, k)) || (code == FNX_E_DEVICE && there < 2))
                continue;
            FNX_SCOPE_QUIET;
            fnx_tensor *in[CASE_OPERANDS], *out[CASE_RESULTS];
            for (int o = 0; o < c->n_in; o++)
                in[o] = o == k ? replacement(dev, &c->in[o]) : op_case_upload(dev, &c->in[o]);
            op_case_call(c, dev, in, out);
            int n_out = code == FNX_E_DEVICE ? 1 : c->n_out; /* batch_norm_train's mean is of x alone */
            for (int r = 0; r < n_out; r++) {
                fnx_status got = fnx_tensor_status(out[r]);
                ck_assert_msg(got == code && strstr(fnx_last_error()->message, word),
                              "%s: %s, operand %d: %s, not %s, and \"%s\" in: %s", c->op, c->name, k,
                              fnx_status_name(got), fnx_status_name(code), word, got ? fnx_last_error()->message : "");
                /* scalar_sub is sub, conv2d conv: the name of the table will do */
                if (code == FNX_E_INVALID)
                    ck_assert_msg(!strstr(fnx_last_error()->message, "copy") || !strcmp(c->op, "copy"), "%s: %s", c->op,
                                  fnx_last_error()->message);
            }
        }
}

static fnx_tensor *nothing(fnx_device *dev, const host_tensor *t) {
    (void)dev, (void)t;
    return NULL;
}

static fnx_tensor *failed(fnx_device *dev, const host_tensor *t) {
    (void)t;
    return fnx_add(FLOATS(2, 3), FLOATS(7));
}

START_TEST(an_operand_that_is_null_is_an_error_that_names_the_op) {
    BEGIN;
    replace_operands(dev, nothing, FNX_E_INVALID, "NULL");
    FAILS(fnx_exp(NULL), FNX_E_INVALID, "exp", "operand 0", "NULL");
    FAILS(fnx_add(FLOATS(2), NULL), FNX_E_INVALID, "add", "operand 1", "NULL");
    FAILS(fnx_reshape(NULL, FNX_SHAPE(2)), FNX_E_INVALID, "reshape", "operand 0");
    FAILS(fnx_sum(NULL, FNX_ALL_AXES, false), FNX_E_INVALID, "sum", "operand 0");
    FAILS(fnx_matmul(FLOATS(2), NULL), FNX_E_INVALID, "matmul", "operand 1");
    FAILS(fnx_cross_entropy(FLOATS(2, 2), NULL), FNX_E_INVALID, "cross_entropy", "operand 1");
    FAILS(fnx_concat((fnx_tensor *[]){FLOATS(2), FLOATS(2), FLOATS(2), FLOATS(2), NULL}, 5, 0), FNX_E_INVALID, "concat",
          "operand 4");
    end(dev);
}
END_TEST

START_TEST(every_op_passes_the_first_cause_on) {
    BEGIN;
    replace_operands(dev, failed, FNX_E_SHAPE, "add: shapes do not broadcast: f32[2,3] and f32[7]");
    end(dev);
}
END_TEST

START_TEST(a_long_expression_names_what_went_wrong_first) {
    BEGIN;
    fnx_tensor *x = FLOATS(3, 3), *y = fnx_matmul(x, fnx_tensor_set_name(FLOATS(4, 4), "weight"));
    for (int i = 0; i < 1000; i++)
        y = fnx_add(fnx_relu(fnx_matmul(y, x)), fnx_sum(fnx_reshape(y, FNX_SHAPE(5)), FNX_ALL_AXES, false));
    FAILS(fnx_cross_entropy(y, ZEROS(FNX_I64, 3)), FNX_E_SHAPE, "matmul: inner sizes differ", "f32[3,3]",
          "weight f32[4,4]");
    end(dev);
}
END_TEST

/* Other hardware than that of device number i: another one of the list, or of another plugin. */
static fnx_device *other_device(int i) {
    char names[TEST_DEVICES_MAX][64];
    int n = test_device_names(names);
    const char *candidates[TEST_DEVICES_MAX + 3] = {0};
    for (int k = 0; k < n; k++) candidates[k] = names[k];
    candidates[n] = "ref", candidates[n + 1] = "cpu", candidates[n + 2] = "ref?other=1";
    fnx_device *mine = fnx_device_open(names[i]), *found = NULL;
    for (int k = 0; k < n + 3 && !found; k++) {
        fnx_device *d = fnx_device_open(candidates[k]);
        if (!fnx_device_status(d) && !fnx_device_same_hardware(d, mine)) found = d;
        else fnx_device_close(d);
    }
    fnx_device_close(mine);
    return found;
}

static fnx_device *elsewhere;
static fnx_tensor *moved(fnx_device *dev, const host_tensor *t) {
    (void)dev;
    return op_case_upload(elsewhere, t);
}

START_TEST(operands_on_two_devices_are_refused) {
    BEGIN;
    if ((elsewhere = other_device(_i))) {
        replace_operands(dev, moved, FNX_E_DEVICE, "two devices");
        FAILS(fnx_add(FLOATS(2), zeros_of(elsewhere, FNX_F32, FNX_SHAPE(2))), FNX_E_DEVICE, "add", "f32[2]",
              "two devices", "fnx_tensor_to");
        FAILS(fnx_linear(FLOATS(2, 2), FLOATS(2, 2), zeros_of(elsewhere, FNX_F32, FNX_SHAPE(2))), FNX_E_DEVICE,
              "two devices");
        double v;
        fnx_tensor *sum = fnx_add(fnx_fill(dev, FNX_F32, FNX_SCALAR_SHAPE, 1),
                                  fnx_tensor_to(fnx_fill(elsewhere, FNX_F32, FNX_SCALAR_SHAPE, 2), dev));
        ck_assert(fnx_tensor_item(sum, &v) == 0 && v == 3);
        fnx_device_close(elsewhere);
    }
    end(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("infer");
    int n;
    (void)op_cases(&n);
    test_each_device(t, shapes_that_do_not_broadcast_are_refused);
    test_each_device(t, dtypes_that_do_not_match_are_refused);
    test_each_device(t, dtypes_that_an_op_does_not_take_are_refused);
    test_each_device(t, there_is_no_cast_to_dtypes_that_are_not_supported);
    test_each_device(t, scalars_that_the_dtype_does_not_have_are_refused);
    test_each_device(t, ranks_above_8_are_refused);
    test_each_device(t, sizes_that_overflow_are_refused);
    test_each_device(t, sizes_of_empty_tensors_do_not_overflow_either);
    test_each_device(t, reshapes_that_do_not_fit_are_refused);
    test_each_device(t, axes_out_of_range_are_refused);
    test_each_device(t, regions_outside_a_tensor_are_refused);
    test_each_device(t, concat_needs_tensors_that_fit);
    test_each_device(t, extrema_of_nothing_are_refused);
    test_each_device(t, matrices_that_do_not_fit_are_refused);
    test_each_device(t, convolutions_that_do_not_fit_are_refused);
    test_each_device(t, pools_that_do_not_fit_are_refused);
    test_each_device(t, indexes_that_do_not_fit_are_refused);
    test_each_device(t, composites_that_do_not_fit_are_refused);
    test_each_device(t, sources_that_cannot_be_are_refused);
    test_each_device(t, an_operand_that_is_null_is_an_error_that_names_the_op);
    test_each_device(t, every_op_passes_the_first_cause_on);
    test_each_device(t, a_long_expression_names_what_went_wrong_first);
    test_each_device(t, operands_on_two_devices_are_refused);
    return test_run("infer", t);
}
