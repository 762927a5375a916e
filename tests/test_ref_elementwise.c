/* Elementwise ops of the reference backend: against hand-written values, published vectors and rounding by hand. */
#include "support/ref.h"

/* ---- arithmetic of floats ---------------------------------------------------------------------------------------- */

START_TEST(f32_arithmetic_is_rounded_once_to_f32) {
    /* 1 + 2^-24 is a tie and goes to even; 1 + 2^-24 + 2^-47 is above it */
    const float a[] = {1, 1, 16777216, 3, 1, 0x1p-149f, 3e38f};
    const float b[] = {0x1p-24f, 0x1.000002p-24f, 1, 0.1f, 3, 0.5f, 3e38f};
    const float sum[] = {1, 0x1.000002p0f, 16777216, 3.1f, 4, 0.5f, INFINITY};
    const float product[] = {0x1p-24f, 0x1.000002p-24f, 16777216, 0x1.333334p-2f, 3, 0, INFINITY};
    float y[COUNT(a)];
    run_vector(FNX_OP_add, FNX_F32, FNX_F32, COUNT(a), a, b, y);
    CHECK_SAME(y, sum, COUNT(a));
    run_vector(FNX_OP_mul, FNX_F32, FNX_F32, COUNT(a), a, b, y);
    CHECK_SAME(y, product, COUNT(a));
}
END_TEST

START_TEST(f32_agrees_with_the_compiler_on_random_operands) {
    enum { N = 2000 };
    static float a[N], b[N], y[N], want[N];
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) a[i] = (float)(noise(&seed) * exp2(40 * noise(&seed)));
    for (int i = 0; i < N; i++) b[i] = (float)(noise(&seed) * exp2(40 * noise(&seed)));
    for (int i = 0; i < N; i++) want[i] = a[i] - b[i];
    run_vector(FNX_OP_sub, FNX_F32, FNX_F32, N, a, b, y);
    CHECK_SAME(y, want, N);
    for (int i = 0; i < N; i++) want[i] = a[i] / b[i];
    run_vector(FNX_OP_div, FNX_F32, FNX_F32, N, a, b, y);
    CHECK_SAME(y, want, N);
    for (int i = 0; i < N; i++) want[i] = sqrtf(a[i]);
    run_vector(FNX_OP_sqrt, FNX_F32, FNX_F32, N, a, NULL, y);
    CHECK_SAME(y, want, N);
}
END_TEST

START_TEST(f64_arithmetic_is_ieee) {
    const double a[] = {0.1, 1, 1e308, 0.0, -1};
    const double b[] = {0.2, 3, 10, 0.0, 0.0};
    const double sum[] = {0.30000000000000004, 4, 1e308, 0, -1};
    const double quotient[] = {0.5, 0.33333333333333331, 1e307, NAN, -INFINITY};
    double y[COUNT(a)];
    run_vector(FNX_OP_add, FNX_F64, FNX_F64, COUNT(a), a, b, y);
    CHECK_SAME(y, sum, COUNT(a));
    run_vector(FNX_OP_div, FNX_F64, FNX_F64, COUNT(a), a, b, y);
    CHECK_SAME(y, quotient, COUNT(a));
}
END_TEST

START_TEST(maximum_and_minimum_pass_nan_and_order_zeros) {
    const float a[] = {1, NAN, 1, -0.0f, 0.0f, -INFINITY, NAN};
    const float b[] = {2, 1, NAN, 0.0f, -0.0f, 3, NAN};
    const float high[] = {2, NAN, NAN, 0.0f, 0.0f, 3, NAN};
    const float low[] = {1, NAN, NAN, -0.0f, -0.0f, -INFINITY, NAN};
    float y[COUNT(a)];
    run_vector(FNX_OP_maximum, FNX_F32, FNX_F32, COUNT(a), a, b, y);
    CHECK_SAME(y, high, COUNT(a));
    run_vector(FNX_OP_minimum, FNX_F32, FNX_F32, COUNT(a), a, b, y);
    CHECK_SAME(y, low, COUNT(a));
}
END_TEST

START_TEST(float_pow_is_ieee_pow) {
    const double a[] = {2, -2, -8, 0, 0, NAN, 1, INFINITY};
    const double b[] = {0.5, 3, 1.0 / 3, 0, -1, 0, NAN, -1};
    const double want[] = {1.4142135623730951, -8, NAN, 1, INFINITY, 1, 1, 0};
    double y[COUNT(a)];
    run_vector(FNX_OP_pow, FNX_F64, FNX_F64, COUNT(a), a, b, y);
    CHECK_SAME(y, want, COUNT(a));
}
END_TEST

/* Values to more digits than a double has, from tables of the functions. */
static const struct {
    uint16_t op;
    double x, y;
} functions[] = {
    {FNX_OP_exp, 1, 2.71828182845904523536},
    {FNX_OP_exp, -10, 4.5399929762484851535e-05},
    {FNX_OP_log, 2, 0.693147180559945309417},
    {FNX_OP_log, 10, 2.30258509299404568402},
    {FNX_OP_sqrt, 2, 1.41421356237309504880},
    {FNX_OP_tanh, 0.5, 0.462117157260009758502},
    {FNX_OP_sigmoid, 1, 0.731058578630004879251},
    {FNX_OP_sigmoid, -1, 0.268941421369995120749},
    {FNX_OP_sigmoid, -40, 4.2483542552915889e-18},
    {FNX_OP_erf, 0.5, 0.520499877813046537683},
    {FNX_OP_erf, -1, -0.842700792949714869341},
    {FNX_OP_neg, 1.5, -1.5},
    {FNX_OP_abs, -1.5, 1.5},
    {FNX_OP_relu, -1.5, 0},
    {FNX_OP_relu, 1.5, 1.5},
};

START_TEST(functions_give_tabled_values) {
    double x = functions[_i].x, y;
    float x_single = (float)x, y_single, want = (float)functions[_i].y;
    run_vector(functions[_i].op, FNX_F64, FNX_F64, 1, &x, NULL, &y);
    ck_assert_double_le(fabs(y - functions[_i].y), 1e-15 * fabs(functions[_i].y));
    run_vector(functions[_i].op, FNX_F32, FNX_F32, 1, &x_single, NULL, &y_single);
    CHECK_SAME(&y_single, &want, 1); /* all x are exact in f32, so the result is the rounded one */
}
END_TEST

START_TEST(functions_at_the_ends_of_their_range) {
    const double x[] = {INFINITY, -INFINITY, NAN, -0.0};
    const struct {
        uint16_t op;
        double y[4];
    } rows[] = {
        {FNX_OP_exp, {INFINITY, 0, NAN, 1}},
        {FNX_OP_log, {INFINITY, NAN, NAN, -INFINITY}},
        {FNX_OP_tanh, {1, -1, NAN, -0.0}},
        {FNX_OP_sigmoid, {1, 0, NAN, 0.5}},
        {FNX_OP_erf, {1, -1, NAN, -0.0}},
        {FNX_OP_relu, {INFINITY, 0, NAN, 0}},
        {FNX_OP_neg, {-INFINITY, INFINITY, NAN, 0}},
        {FNX_OP_abs, {INFINITY, INFINITY, NAN, 0}},
    };
    double y[4];
    for (size_t i = 0; i < COUNT(rows); i++) {
        run_vector(rows[i].op, FNX_F64, FNX_F64, 4, x, NULL, y);
        CHECK_SAME(y, rows[i].y, 4);
    }
}
END_TEST

/* ---- arithmetic of integers -------------------------------------------------------------------------------------- */

START_TEST(integers_wrap) {
    const int32_t a[] = {INT32_MAX, INT32_MIN, 65536}, b[] = {1, -1, 65537};
    const int32_t sum[] = {INT32_MIN, INT32_MAX, 131073}, product[] = {INT32_MAX, INT32_MIN, 65536};
    const int64_t c[] = {INT64_MAX, INT64_MIN}, d[] = {1, 1}, difference[] = {INT64_MAX - 1, INT64_MAX};
    const uint8_t e[] = {200, 3}, g[] = {100, 5}, wrapped[] = {44, 8}, less[] = {100, 254}, negative[] = {56, 253};
    int32_t y[3];
    int64_t z[2];
    uint8_t w[2];
    run_vector(FNX_OP_add, FNX_I32, FNX_I32, 3, a, b, y);
    CHECK_SAME(y, sum, 3);
    run_vector(FNX_OP_mul, FNX_I32, FNX_I32, 3, a, b, y);
    CHECK_SAME(y, product, 3);
    run_vector(FNX_OP_sub, FNX_I64, FNX_I64, 2, c, d, z);
    ck_assert_mem_eq(z, difference, sizeof z);
    run_vector(FNX_OP_add, FNX_U8, FNX_U8, 2, e, g, w);
    ck_assert_mem_eq(w, wrapped, sizeof w);
    run_vector(FNX_OP_sub, FNX_U8, FNX_U8, 2, e, g, w);
    ck_assert_mem_eq(w, less, sizeof w);
    run_vector(FNX_OP_neg, FNX_U8, FNX_U8, 2, e, NULL, w);
    ck_assert_mem_eq(w, negative, sizeof w);
    run_vector(FNX_OP_abs, FNX_I32, FNX_I32, 3, b, NULL, y);
    CHECK_SAME(y, ((const int32_t[]){1, 1, 65537}), 3);
    run_vector(FNX_OP_neg, FNX_I64, FNX_I64, 2, c, NULL, z);
    ck_assert_mem_eq(z, ((const int64_t[]){-INT64_MAX, INT64_MIN}), sizeof z);
}
END_TEST

START_TEST(integer_division_truncates_and_wraps) {
    const int32_t a[] = {7, -7, 7, INT32_MIN}, b[] = {2, 2, -2, -1}, want[] = {3, -3, -3, INT32_MIN};
    const int64_t c[] = {INT64_MIN, -9}, d[] = {-1, 4}, wide[] = {INT64_MIN, -2};
    int32_t y[4];
    int64_t z[2];
    run_vector(FNX_OP_div, FNX_I32, FNX_I32, 4, a, b, y);
    CHECK_SAME(y, want, 4);
    run_vector(FNX_OP_div, FNX_I64, FNX_I64, 2, c, d, z);
    ck_assert_mem_eq(z, wide, sizeof z);
}
END_TEST

START_TEST(integer_division_by_zero_reads_0_and_is_noted) {
    const int64_t a[] = {8, 9, 10}, b[] = {2, 0, 5};
    int64_t y[3], z[3];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 3);
    uint32_t va = fragment_input(f, FNX_I64, s, a), vb = fragment_input(f, FNX_I64, s, b);
    uint32_t vy = fragment_output(f, FNX_I64, s, y), vz = fragment_output(f, FNX_I64, s, z);
    fnx_error_word word;
    fragment_node(f, FNX_OP_copy, NULL, 0, REFS(va), REFS(vz));
    fragment_node(f, FNX_OP_div, NULL, 0, REFS(va, vb), REFS(vy));
    run_with_word(f, &word);
    CHECK_SAME(y, ((const int64_t[]){4, 0, 2}), 3);
    ck_assert_int_eq(word.code, FNX_E_INDEX);
    ck_assert_uint_eq(word.site, 1);
    ck_assert_uint_eq(word.node, 1);
    ck_assert_int_eq(word.index, 0);
    ck_assert_int_eq(word.limit, 0);
}
END_TEST

START_TEST(integer_pow_wraps_and_knows_negative_exponents) {
    const int32_t a[] = {3, -2, 2, 2, 1, -1, -1, 0, 0, 5}, b[] = {4, 3, 31, -1, -7, -3, -2, -1, 0, 0};
    const int32_t want[] = {81, -8, INT32_MIN, 0, 1, -1, 1, 0, 1, 1};
    const uint8_t c[] = {3, 2}, d[] = {5, 8}, small[] = {243, 0};
    int32_t y[COUNT(a)];
    uint8_t z[2];
    run_vector(FNX_OP_pow, FNX_I32, FNX_I32, COUNT(a), a, b, y);
    CHECK_SAME(y, want, COUNT(a));
    run_vector(FNX_OP_pow, FNX_U8, FNX_U8, 2, c, d, z);
    ck_assert_mem_eq(z, small, sizeof z);
}
END_TEST

START_TEST(relu_and_extremes_of_integers) {
    const int32_t a[] = {-5, 0, 5}, b[] = {-6, 1, 4};
    int32_t y[3];
    run_vector(FNX_OP_relu, FNX_I32, FNX_I32, 3, a, NULL, y);
    CHECK_SAME(y, ((const int32_t[]){0, 0, 5}), 3);
    run_vector(FNX_OP_maximum, FNX_I32, FNX_I32, 3, a, b, y);
    CHECK_SAME(y, ((const int32_t[]){-5, 1, 5}), 3);
    run_vector(FNX_OP_minimum, FNX_I32, FNX_I32, 3, a, b, y);
    CHECK_SAME(y, ((const int32_t[]){-6, 0, 4}), 3);
}
END_TEST

/* ---- comparison, choice, conversion ------------------------------------------------------------------------------ */

START_TEST(comparisons_are_false_with_nan_but_for_not_equal) {
    const double a[] = {1, 2, 2, NAN, NAN, 0.0}, b[] = {2, 1, 2, 1, NAN, -0.0};
    const struct {
        uint16_t op;
        uint8_t y[6];
    } rows[] = {
        {FNX_OP_equal, {0, 0, 1, 0, 0, 1}},   {FNX_OP_not_equal, {1, 1, 0, 1, 1, 0}},
        {FNX_OP_less, {1, 0, 0, 0, 0, 0}},    {FNX_OP_less_equal, {1, 0, 1, 0, 0, 1}},
        {FNX_OP_greater, {0, 1, 0, 0, 0, 0}}, {FNX_OP_greater_equal, {0, 1, 1, 0, 0, 1}},
    };
    uint8_t y[6];
    for (size_t i = 0; i < COUNT(rows); i++) {
        run_vector(rows[i].op, FNX_F64, FNX_BOOL, 6, a, b, y);
        ck_assert_mem_eq(y, rows[i].y, 6);
    }
}
END_TEST

START_TEST(comparisons_of_integers_and_bools_are_exact) {
    const int64_t a[] = {INT64_C(9007199254740993), -1}, b[] = {INT64_C(9007199254740992), 1};
    const uint8_t c[] = {0, 1, 1}, d[] = {0, 1, 0};
    uint8_t y[3];
    run_vector(FNX_OP_greater, FNX_I64, FNX_BOOL, 2, a, b, y); /* the first pair is equal as doubles */
    ck_assert_mem_eq(y, ((const uint8_t[]){1, 0}), 2);
    run_vector(FNX_OP_equal, FNX_BOOL, FNX_BOOL, 3, c, d, y);
    ck_assert_mem_eq(y, ((const uint8_t[]){1, 1, 0}), 3);
}
END_TEST

START_TEST(where_chooses_per_element) {
    const uint8_t condition[] = {1, 0, 1};
    const float a[] = {1, 2, NAN}, b[] = {4, 5, 6}, want[] = {1, 5, NAN};
    float y[3];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 3);
    uint32_t c = fragment_input(f, FNX_BOOL, s, condition), x = fragment_input(f, FNX_F32, s, a);
    uint32_t z = fragment_input(f, FNX_F32, s, b), out = fragment_output(f, FNX_F32, s, y);
    fragment_node(f, FNX_OP_where, NULL, 0, REFS(c, x, z), REFS(out));
    run(f);
    CHECK_SAME(y, want, 3);
}
END_TEST

#define CAST(from_code, from_type, to_code, to_type, ...) \
    do { \
        const struct { \
            from_type from; \
            to_type to; \
        } rows[] = __VA_ARGS__; \
        for (size_t i = 0; i < COUNT(rows); i++) { \
            to_type y; \
            run_vector(FNX_OP_cast, from_code, to_code, 1, &rows[i].from, NULL, &y); \
            ck_assert_msg(memcmp(&y, &rows[i].to, sizeof y) == 0, "%s to %s, row %zu", #from_code, #to_code, i); \
        } \
    } while (0)

START_TEST(cast_truncates_saturates_and_wraps) {
    CAST(FNX_F32, float, FNX_I32, int32_t,
         {{1.9f, 1},
          {-1.9f, -1},
          {3e9f, INT32_MAX},
          {-3e9f, INT32_MIN},
          {NAN, 0},
          {INFINITY, INT32_MAX},
          {2147483520.f, 2147483520}});
    CAST(FNX_F64, double, FNX_I64, int64_t,
         {{-0.5, 0},
          {1e19, INT64_MAX},
          {-1e19, INT64_MIN},
          {0x1p63, INT64_MAX},
          {9223372036854774784., INT64_C(9223372036854774784)}});
    CAST(FNX_F64, double, FNX_U8, uint8_t,
         {{-1, 0}, {255.9, 255}, {256, 255}, {-INFINITY, 0}, {254.99, 254}, {NAN, 0}});
    CAST(FNX_F32, float, FNX_BOOL, uint8_t, {{0, 0}, {-0.0f, 0}, {0.25f, 1}, {NAN, 1}});
    CAST(FNX_I64, int64_t, FNX_I32, int32_t, {{INT64_C(0x180000001), INT32_MIN + 1}, {-1, -1}});
    CAST(FNX_I32, int32_t, FNX_U8, uint8_t, {{-1, 255}, {257, 1}});
    CAST(FNX_I32, int32_t, FNX_BOOL, uint8_t, {{256, 1}, {0, 0}});
    CAST(FNX_U8, uint8_t, FNX_I64, int64_t, {{255, 255}});
    CAST(FNX_BOOL, uint8_t, FNX_F32, float, {{1, 1.f}, {0, 0.f}});
    CAST(FNX_F64, double, FNX_F32, float, {{1e300, INFINITY}, {0.1, 0.1f}});
    CAST(FNX_F32, float, FNX_F64, double, {{0.1f, 0x1.99999ap-4}});
    /* Half way between two floats as a double, above half way as it is: rounding twice would go down. */
    CAST(FNX_I64, int64_t, FNX_F32, float, {{(INT64_C(1) << 60) + (INT64_C(1) << 36) + 1, 0x1.000002p60f}});
    CAST(FNX_I64, int64_t, FNX_F64, double, {{INT64_MAX, 0x1p63}});
}
END_TEST

START_TEST(copy_keeps_every_dtype) {
    const uint8_t a[] = {0, 1, 1};
    const int64_t b[] = {INT64_MIN, -1, INT64_MAX};
    uint8_t y[3];
    int64_t z[3];
    run_vector(FNX_OP_copy, FNX_BOOL, FNX_BOOL, 3, a, NULL, y);
    ck_assert_mem_eq(y, a, sizeof y);
    run_vector(FNX_OP_copy, FNX_I64, FNX_I64, 3, b, NULL, z);
    ck_assert_mem_eq(z, b, sizeof z);
}
END_TEST

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Known-answer tests of philox4x32-10 from Random123 1.14 (kat_vectors): counter, key, words. */
static const struct {
    uint32_t counter[4], key[2], w[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void random_numbers(uint16_t op, uint16_t dtype, uint64_t seed, uint64_t counter, int64_t n,
                           const int64_t *elements, void *y) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, n);
    uint32_t a = fragment_scalar_bits(f, FNX_U64, seed), b = fragment_scalar_bits(f, FNX_U64, counter);
    uint32_t e = elements ? fragment_input(f, FNX_I64, s, elements) : fragment_index(f, s, NULL);
    uint32_t out = fragment_output(f, dtype, s, y);
    fragment_node(f, op, NULL, 0, REFS(a, b, e), REFS(out));
    run(f);
}

static uint64_t wide(const uint32_t *low_high) { return (uint64_t)low_high[1] << 32 | low_high[0]; }

START_TEST(philox_gives_the_published_words) {
    const uint32_t *w = known[_i].w;
    const int64_t element = (int64_t)wide(known[_i].counter); /* normal f64 is the one whose block is the element */
    const double u = ((w[0] >> 5) * 0x1p26 + (w[1] >> 6) + 1) * 0x1p-53,
                 v = ((w[2] >> 5) * 0x1p26 + (w[3] >> 6)) * 0x1p-53;
    const double want = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
    double y;
    random_numbers(FNX_OP_normal, FNX_F64, wide(known[_i].key), wide(&known[_i].counter[2]), 1, &element, &y);
    CHECK_NEAR(&y, &want, 1, 1e-15);
}
END_TEST

START_TEST(uniform_takes_the_words_in_order) {
    const uint32_t *w = known[0].w;
    float y[4], want[4];
    double z[2];
    random_numbers(FNX_OP_uniform, FNX_F32, 0, 0, 4, NULL, y);
    for (int k = 0; k < 4; k++) want[k] = (float)(w[k] >> 8) * 0x1p-24f;
    CHECK_SAME(y, want, 4);
    random_numbers(FNX_OP_uniform, FNX_F64, 0, 0, 2, NULL, z);
    for (int k = 0; k < 2; k++) {
        double bits = (w[2 * k] >> 5) * 0x1p26 + (w[2 * k + 1] >> 6);
        ck_assert(z[k] == bits * 0x1p-53);
    }
}
END_TEST

START_TEST(normal_f32_pairs_sine_and_cosine) {
    const uint32_t *w = known[0].w;
    float y[4], want[4];
    random_numbers(FNX_OP_normal, FNX_F32, 0, 0, 4, NULL, y);
    for (int k = 0; k < 4; k += 2) {
        double u = ((w[k] >> 8) + 1) * 0x1p-24, angle = 2 * 3.14159265358979323846 * (w[k + 1] >> 8) * 0x1p-24;
        want[k] = (float)(sqrt(-2 * log(u)) * cos(angle));
        want[k + 1] = (float)(sqrt(-2 * log(u)) * sin(angle));
    }
    CHECK_NEAR(y, want, 4, 1e-7);
}
END_TEST

START_TEST(uniform_and_normal_have_their_moments) {
    enum { N = 40000 };
    static float y[N];
    double mean = 0, square = 0;
    random_numbers(FNX_OP_uniform, FNX_F32, 7, 3, N, NULL, y);
    for (int i = 0; i < N; i++) mean += y[i] / N, square += (double)y[i] * y[i] / N;
    ck_assert_double_le(fabs(mean - 0.5), 0.01);
    ck_assert_double_le(fabs(square - 1.0 / 3), 0.01);
    random_numbers(FNX_OP_normal, FNX_F32, 7, 3, N, NULL, y);
    mean = square = 0;
    for (int i = 0; i < N; i++) mean += y[i] / N, square += (double)y[i] * y[i] / N;
    ck_assert_double_le(fabs(mean), 0.03);
    ck_assert_double_le(fabs(square - 1), 0.03);
}
END_TEST

START_TEST(an_elements_number_decides_not_its_place) {
    float row_major[6], transposed[6];
    for (int k = 0; k < 2; k++) {
        fragment *f = fragment_create();
        fragment_shape s = k ? SHAPE(f, 3, 2) : SHAPE(f, 2, 3);
        const int64_t numbers[] = {1, 3}; /* of element [i, j] of the transpose */
        uint32_t seed = fragment_scalar_bits(f, FNX_U64, 5), counter = fragment_scalar_bits(f, FNX_U64, UINT64_MAX);
        uint32_t e = fragment_index(f, s, k ? numbers : NULL);
        uint32_t y = fragment_output(f, FNX_F32, s, k ? transposed : row_major);
        fragment_node(f, FNX_OP_uniform, NULL, 0, REFS(seed, counter, e), REFS(y));
        run(f);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) ck_assert(row_major[i * 3 + j] == transposed[j * 2 + i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ref: elementwise");
    TCase *t = tcase_create("elementwise");
    tcase_add_checked_fixture(t, ref_setup, ref_teardown);
    tcase_add_test(t, f32_arithmetic_is_rounded_once_to_f32);
    tcase_add_test(t, f32_agrees_with_the_compiler_on_random_operands);
    tcase_add_test(t, f64_arithmetic_is_ieee);
    tcase_add_test(t, maximum_and_minimum_pass_nan_and_order_zeros);
    tcase_add_test(t, float_pow_is_ieee_pow);
    tcase_add_loop_test(t, functions_give_tabled_values, 0, COUNT(functions));
    tcase_add_test(t, functions_at_the_ends_of_their_range);
    tcase_add_test(t, integers_wrap);
    tcase_add_test(t, integer_division_truncates_and_wraps);
    tcase_add_test(t, integer_division_by_zero_reads_0_and_is_noted);
    tcase_add_test(t, integer_pow_wraps_and_knows_negative_exponents);
    tcase_add_test(t, relu_and_extremes_of_integers);
    tcase_add_test(t, comparisons_are_false_with_nan_but_for_not_equal);
    tcase_add_test(t, comparisons_of_integers_and_bools_are_exact);
    tcase_add_test(t, where_chooses_per_element);
    tcase_add_test(t, cast_truncates_saturates_and_wraps);
    tcase_add_test(t, copy_keeps_every_dtype);
    tcase_add_loop_test(t, philox_gives_the_published_words, 0, COUNT(known));
    tcase_add_test(t, uniform_takes_the_words_in_order);
    tcase_add_test(t, normal_f32_pairs_sine_and_cosine);
    tcase_add_test(t, uniform_and_normal_have_their_moments);
    tcase_add_test(t, an_elements_number_decides_not_its_place);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
