/* Elementwise instructions of the cpu plugin's vector machine against values known from elsewhere, at every ISA level
 * that this CPU has: functions of f32 against the C library's of f64, ends of their range, casts, integers, division by
 * zero; and what groups may do to memory. */
#include "support/cpu.h"

#include "ops/op.h"

/* ---- functions of f32 -------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static const struct {
    uint16_t op;
    double (*f)(double);
} functions[] = {{FNX_OP_exp, exp},         {FNX_OP_log, log}, {FNX_OP_tanh, tanh},
                 {FNX_OP_sigmoid, sigmoid}, {FNX_OP_erf, erf}, {FNX_OP_sqrt, sqrt}};

static void check_element(const char *who, uint16_t op, uint16_t dtype, int64_t i, const void *got, const void *want) {
    const char *x = (const char *)got + i * bytes_of(dtype), *y = (const char *)want + i * bytes_of(dtype);
    char a[64], b[64];
    if (memcmp(x, y, bytes_of(dtype)) == 0) return;
    show(a, sizeof a, dtype, x), show(b, sizeof b, dtype, y);
    ck_abort_msg("%s: %s, element %lld is %s, should be %s", who, fnx_ops[op].name, (long long)i, a, b);
}

static void apply(backend *b, uint16_t op, uint16_t dtype, uint16_t to, int64_t n, const void *x, void *y) {
    fragment *f = fragment_create();
    const uint32_t in = fragment_input(f, dtype, SHAPE(f, n), x), out = fragment_output(f, to, SHAPE(f, n), y);
    fragment_node(f, op, NULL, 0, REFS(in), REFS(out));
    fragment_finish(f);
    run_fragment(b, f, NULL, fnx_ops[op].name);
}

START_TEST(functions_of_f32_keep_their_limit_over_all_exponents) {
    enum { STEP = 16381, N = (int)((UINT64_C(1) << 32) / STEP) };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    for (uint32_t i = 0; i < N; i++) memcpy(&x[i], &(uint32_t){i * STEP}, sizeof *x);
    for (size_t c = 0; c < CONFIGS; c += 2) {
        if (!cpu[c].device) continue;
        apply(&cpu[c], functions[_i].op, FNX_F32, FNX_F32, N, x, y);
        double worst = 0;
        float at = 0;
        for (uint32_t i = 0; i < N; i++) {
            const double want = functions[_i].f((double)x[i]);
            float rounded = (float)want;
            double distance;
            if (isnan(rounded) || isinf(rounded) || isinf(y[i]) || rounded == 0)
                distance = ulp_distance(FNX_F32, (char *)&y[i], (char *)&rounded);
            else
                distance =
                    fabs((double)y[i] - want) / ldexp(1, (fabsf(rounded) < FLT_MIN ? -126 : ilogbf(rounded)) - 23);
            if (!(distance <= worst)) worst = distance, at = x[i];
        }
        ck_assert_msg(worst <= (double)fnx_ops[functions[_i].op].ulp, "%s, %s: %.3g ulp at %a (%g)", config_names[c],
                      fnx_ops[functions[_i].op].name, worst, (double)at, (double)at);
    }
    free(x), free(y);
}
END_TEST

START_TEST(functions_know_the_ends_of_their_range) {
    const float x[] = {INFINITY, -INFINITY, NAN, 0.f, -0.f, 1e-45f, -1e-45f, 89.f, -104.f, FLT_MAX, -FLT_MAX, 1.f};
    const struct {
        uint16_t op;
        float y[COUNT(x)];
    } rows[] = {
        {FNX_OP_exp, {INFINITY, 0, NAN, 1, 1, 1, 1, INFINITY, 0, INFINITY, 0, 0x1.5bf0a8p1f}},
        {FNX_OP_log,
         {INFINITY, NAN, NAN, -INFINITY, -INFINITY, -0x1.9d1dap6f, NAN, 0x1.1f45d2p2f, NAN, 0x1.62e43p6f, NAN, 0}},
        {FNX_OP_tanh, {1, -1, NAN, 0, -0.f, 1e-45f, -1e-45f, 1, -1, 1, -1, 0x1.85efacp-1f}},
        {FNX_OP_sigmoid, {1, 0, NAN, .5f, .5f, .5f, .5f, 1, 1e-45f, 1, 0, 0x1.764d5p-1f}},
        {FNX_OP_erf, {1, -1, NAN, 0, -0.f, 1e-45f, -1e-45f, 1, -1, 1, -1, 0x1.af767ap-1f}},
        {FNX_OP_sqrt, {INFINITY, NAN, NAN, 0, -0.f, 0x1.6a09e6p-75f, NAN, 0x1.2de32cp3f, NAN, 0x1.fffffep63f, NAN, 1}},
        {FNX_OP_relu, {INFINITY, 0, NAN, 0, 0, 1e-45f, 0, 89, 0, FLT_MAX, 0, 1}},
    };
    for (size_t c = 0; c < CONFIGS; c += 2)
        for (size_t i = 0; i < COUNT(rows) && cpu[c].device; i++) {
            float y[COUNT(x)];
            apply(&cpu[c], rows[i].op, FNX_F32, FNX_F32, COUNT(x), x, y);
            for (size_t k = 0; k < COUNT(x); k++)
                ck_assert_msg(ulp_distance(FNX_F32, (char *)&y[k], (const char *)&rows[i].y[k]) <= 1,
                              "%s: %s(%g) is %a, should be %a", config_names[c], fnx_ops[rows[i].op].name, (double)x[k],
                              (double)y[k], (double)rows[i].y[k]);
        }
}
END_TEST

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* Row `from` of the table cast to each dtype. Values by the contract of ops.h, written down by hand. */
START_TEST(casts_saturate_wrap_and_know_nan) {
    enum { N = 10 };
    static const double floats[N] = {NAN, INFINITY, -INFINITY, -0.0, 1.9, -1.9, 255.9, 256, 3e9, -1e19};
    static const int64_t of_floats[][N] = {
        {0, INT32_MAX, INT32_MIN, 0, 1, -1, 255, 256, INT32_MAX, INT32_MIN},
        {0, INT64_MAX, INT64_MIN, 0, 1, -1, 255, 256, 3000000000, INT64_MIN},
        {0, 255, 0, 0, 1, 0, 255, 255, 255, 0},
        {1, 1, 1, 0, 1, 1, 1, 1, 1, 1},
    };
    static const int64_t wholes[N] = {0, 1, -1, 256, 257, 511, 4294967296, INT64_MAX, INT64_MIN, -3000000000};
    static const int64_t of_wholes[][N] = {
        {0, 1, -1, 256, 257, 511, 0, -1, 0, 1294967296},
        {0, 1, -1, 256, 257, 511, 4294967296, INT64_MAX, INT64_MIN, -3000000000},
        {0, 1, 255, 0, 1, 255, 0, 255, 0, 0},
        {0, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    };
    static const uint16_t to[] = {FNX_I32, FNX_I64, FNX_U8, FNX_BOOL}, from[] = {FNX_F32, FNX_F64, FNX_I64};
    for (size_t c = 0; c < CONFIGS; c += 2)
        for (size_t t = 0; t < COUNT(to) * COUNT(from) && cpu[c].device; t++) {
            const uint16_t source = from[t / COUNT(to)], dtype = to[t % COUNT(to)];
            int64_t x[N], y[N], want[N];
            for (int i = 0; i < N; i++) {
                put_number((char *)x, source, i, floats[i], wholes[i]);
                put_number((char *)want, dtype, i, 0, (source == FNX_I64 ? of_wholes : of_floats)[t % COUNT(to)][i]);
            }
            apply(&cpu[c], FNX_OP_cast, source, dtype, N, x, y);
            for (int i = 0; i < N; i++) check_element(config_names[c], FNX_OP_cast, dtype, i, y, want);
        }
}
END_TEST

START_TEST(integers_wrap_and_truncate) {
    static const struct {
        uint16_t op, dtype;
        int64_t a, b, y;
    } rows[] = {
        {FNX_OP_add, FNX_I32, INT32_MAX, 1, INT32_MIN},
        {FNX_OP_add, FNX_I64, INT64_MAX, 1, INT64_MIN},
        {FNX_OP_add, FNX_U8, 250, 10, 4},
        {FNX_OP_sub, FNX_I32, INT32_MIN, 1, INT32_MAX},
        {FNX_OP_sub, FNX_U8, 3, 5, 254},
        {FNX_OP_mul, FNX_I32, 65537, 65537, 131073},
        {FNX_OP_mul, FNX_I64, INT64_MAX, 2, -2},
        {FNX_OP_mul, FNX_U8, 16, 17, 16},
        {FNX_OP_div, FNX_I32, -7, 2, -3},
        {FNX_OP_div, FNX_I64, 7, -2, -3},
        {FNX_OP_div, FNX_I32, INT32_MIN, -1, INT32_MIN},
        {FNX_OP_div, FNX_I64, INT64_MIN, -1, INT64_MIN},
        {FNX_OP_div, FNX_U8, 255, 2, 127},
        {FNX_OP_pow, FNX_I32, 3, 21, 1870418611},
        {FNX_OP_pow, FNX_I32, 0, 0, 1},
        {FNX_OP_pow, FNX_I64, -1, -3, -1},
        {FNX_OP_pow, FNX_I64, 1, INT64_MIN, 1},
        {FNX_OP_pow, FNX_I64, 2, -1, 0},
        {FNX_OP_pow, FNX_U8, 3, 6, 217},
        {FNX_OP_neg, FNX_I32, INT32_MIN, 0, INT32_MIN},
        {FNX_OP_neg, FNX_U8, 1, 0, 255},
        {FNX_OP_abs, FNX_I64, INT64_MIN, 0, INT64_MIN},
        {FNX_OP_maximum, FNX_I64, INT64_MIN, -1, -1},
        {FNX_OP_maximum, FNX_U8, 128, 127, 128},
        {FNX_OP_minimum, FNX_I32, INT32_MIN, 0, INT32_MIN},
        {FNX_OP_relu, FNX_I32, -5, 0, 0},
        {FNX_OP_less, FNX_U8, 127, 128, 1},
        {FNX_OP_greater, FNX_I64, INT64_MIN, INT64_MAX, 0},
    };
    enum { N = 21 };
    for (size_t c = 0; c < CONFIGS; c += 2)
        for (size_t i = 0; i < COUNT(rows) && cpu[c].device; i++) {
            const int compares = rows[i].op == FNX_OP_less || rows[i].op == FNX_OP_greater;
            const uint16_t result = compares ? FNX_BOOL : rows[i].dtype;
            int64_t a[N], b[N], y[N], want[N];
            for (int k = 0; k < N; k++) {
                put_number((char *)a, rows[i].dtype, k, 0, rows[i].a),
                    put_number((char *)b, rows[i].dtype, k, 0, rows[i].b);
                put_number((char *)want, result, k, 0, rows[i].y);
            }
            fragment *f = fragment_create();
            const uint32_t in[] = {fragment_input(f, rows[i].dtype, SHAPE(f, N), a),
                                   fragment_input(f, rows[i].dtype, SHAPE(f, N), b)};
            const uint32_t out = fragment_output(f, result, SHAPE(f, N), y);
            fragment_node(f, rows[i].op, NULL, 0, fnx_ops[rows[i].op].operands, in, 1, &out);
            fragment_finish(f);
            run_fragment(&cpu[c], f, NULL, fnx_ops[rows[i].op].name);
            for (int k = 0; k < N; k++) check_element(config_names[c], rows[i].op, result, k, y, want);
        }
}
END_TEST

START_TEST(a_zero_divisor_is_noted_wherever_it_comes_from) {
    static const uint16_t integers[] = {FNX_I32, FNX_I64, FNX_U8};
    static int64_t a[5000], b[5000], y[5000];
    enum { VECTOR, STRIDED, SCALAR, PER_ROW };
    for (size_t c = 0; c < CONFIGS; c++)
        for (size_t t = 0; t < COUNT(integers) && cpu[c].device; t++)
            for (int form = VECTOR; form <= PER_ROW; form++)
                for (int zero = 0; zero < 2; zero++) {
                    const uint16_t dtype = integers[t];
                    const int64_t rows = 5, n = 400, bad = form == SCALAR ? 0 : form == PER_ROW ? 3 : 1733;
                    fragment *f = fragment_create();
                    fnx_error_word word;
                    for (int64_t i = 0; i < 5000; i++)
                        put_number((char *)a, dtype, i, 0, i % 100 + 7), put_number((char *)b, dtype, i, 0, 2);
                    if (zero) put_number((char *)b, dtype, form == STRIDED ? 2 * bad : bad, 0, 0);
                    const uint32_t x = fragment_input(f, dtype, SHAPE(f, rows, n), a),
                                   out = fragment_output(f, dtype, SHAPE(f, rows, n), y);
                    const uint32_t d = form == VECTOR    ? fragment_input(f, dtype, SHAPE(f, rows, n), b)
                                       : form == STRIDED ? fragment_input_strided(f, dtype, SHAPE(f, rows, n),
                                                                                  (int64_t[]){2 * n, 2}, b)
                                       : form == SCALAR  ? fragment_scalar(f, dtype, zero ? 0 : 2)
                                                         : fragment_input(f, dtype, SHAPE(f, rows, 1), b);
                    fragment_node(f, FNX_OP_div, NULL, 0, REFS(x, d), REFS(out));
                    fragment_finish(f);
                    run_fragment(&cpu[c], f, &word, "div");
                    ck_assert_int_eq(word.code, zero ? FNX_E_INDEX : FNX_OK);
                    if (zero) ck_assert(word.site == 7 && word.node == 0 && word.index == 0 && word.limit == 0);
                    for (int64_t i = 0; i < rows * n; i++) {
                        const int hit = zero && (form == SCALAR || (form == PER_ROW ? i / n == bad : i == bad));
                        int64_t got = 0;
                        memcpy(&got, (char *)y + i * bytes_of(dtype), bytes_of(dtype));
                        if (got != (hit ? 0 : (i % 100 + 7) / 2))
                            ck_abort_msg("%s: element %lld is %lld", config_names[c], (long long)i, (long long)got);
                    }
                }
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

START_TEST(a_handle_serves_many_shapes) {
    static float x[70000], row[70000], y[70000];
    const int64_t shapes[][2] = {{1, 1},  {3, 5}, {1, 1024}, {1, 5000},  {7, 1025}, {300, 10},
                                 {1, 97}, {0, 4}, {50, 1},   {200, 333}, {2, 96}};
    for (int64_t i = 0; i < 70000; i++) x[i] = (float)(i % 1000), row[i] = (float)(i % 7);
    for (size_t c = 0; c < CONFIGS; c++) {
        if (!cpu[c].device) continue;
        fragment *f = fragment_create();
        void *handle;
        const uint16_t m = fragment_size(f, 2), n = fragment_size(f, 3);
        const uint32_t a = fragment_input(f, FNX_F32, ENTRIES(m, n), x),
                       b = fragment_input(f, FNX_F32, ENTRIES(0, n), row), t = fragment_temp(f, FNX_F32, ENTRIES(m, n)),
                       r = fragment_output(f, FNX_F32, ENTRIES(m, n), y);
        fragment_node(f, FNX_OP_mul, NULL, 0, REFS(a, b), REFS(t));
        fragment_node(f, FNX_OP_add, NULL, 0, REFS(t, b), REFS(r));
        fragment_finish(f);
        ck_assert_int_eq(cpu[c].groups->prepare(cpu[c].device, f->group, &handle, NULL), FNX_OK);
        for (size_t k = 0; k < COUNT(shapes); k++) {
            fragment_resize(f, m, shapes[k][0]), fragment_resize(f, n, shapes[k][1]);
            memset(y, 0xff, sizeof y);
            ck_assert_int_eq(backend_launch(&cpu[c], handle, &f->launch, NULL), FNX_OK);
            for (int64_t i = 0; i < shapes[k][0] * shapes[k][1]; i++) {
                const float r_i = row[i % shapes[k][1]];
                if (y[i] != x[i] * r_i + r_i)
                    ck_abort_msg("%s: element %lld of shape %zu is %g", config_names[c], (long long)i, k, (double)y[i]);
            }
            ck_assert(isnan(y[shapes[k][0] * shapes[k][1]]));
        }
        cpu[c].groups->release(handle);
        fragment_destroy(f);
    }
}
END_TEST

/* Short rows are taken a block at a time, and a row that all of them read is copied once for all blocks. Here the
 * second thread begins with a block that is less high than the next. */
START_TEST(rows_repeat_in_the_blocks_of_every_thread) {
    enum { OUTER = 7, ROWS = 150, N = 10 };
    static float x[OUTER * ROWS * N], row[N], y[OUTER * ROWS * N];
    for (int i = 0; i < OUTER * ROWS * N; i++) x[i] = (float)(i % 1000);
    for (int i = 0; i < N; i++) row[i] = (float)(1000 * i);
    for (size_t c = 0; c < CONFIGS; c++) {
        if (!cpu[c].device) continue;
        fragment *f = fragment_create();
        const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, OUTER, ROWS, N), x);
        const uint32_t b = fragment_input(f, FNX_F32, SHAPE(f, 1, 1, N), row);
        const uint32_t r = fragment_output(f, FNX_F32, SHAPE(f, OUTER, ROWS, N), y);
        fragment_node(f, FNX_OP_add, NULL, 0, REFS(a, b), REFS(r));
        fragment_finish(f);
        run_fragment(&cpu[c], f, NULL, "repeated row");
        for (int i = 0; i < OUTER * ROWS * N; i++)
            if (y[i] != x[i] + row[i % N]) ck_abort_msg("%s: element %d is %g", config_names[c], i, (double)y[i]);
    }
}
END_TEST

START_TEST(results_may_be_parts_of_one_memory) {
    static float x[64 * 10], y[64 * 21];
    for (size_t c = 0; c < CONFIGS; c++) {
        if (!cpu[c].device) continue;
        fragment *f = fragment_create();
        for (int i = 0; i < 640; i++) x[i] = (float)i;
        for (int i = 0; i < 64 * 21; i++) y[i] = -1;
        const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, 64, 10), x);
        const uint32_t r = fragment_output_strided(f, FNX_F32, SHAPE(f, 64, 10), (int64_t[]){21, 1}, y);
        const uint32_t s = fragment_output_strided(f, FNX_F32, SHAPE(f, 64, 10), (int64_t[]){21, 1}, y + 10);
        fragment_share_slot(f, s, r);
        fragment_node(f, FNX_OP_neg, NULL, 0, REFS(a), REFS(r));
        fragment_node(f, FNX_OP_relu, NULL, 0, REFS(a), REFS(s));
        fragment_finish(f);
        run_fragment(&cpu[c], f, NULL, "two parts");
        for (int i = 0; i < 64; i++)
            for (int k = 0; k < 21; k++) {
                const float want = k < 10 ? -x[i * 10 + k] : k < 20 ? x[i * 10 + k - 10] : -1;
                if (y[i * 21 + k] != want)
                    ck_abort_msg("%s: row %d, column %d is %g", config_names[c], i, k, (double)y[i * 21 + k]);
            }
    }
}
END_TEST

/* More elements than any level of a CPU's caches holds, so that whatever is done for large results only is done. */
START_TEST(large_results_are_right) {
    enum { N = (3 << 20) + 37 };
    float *x = malloc(N * sizeof *x), *y = malloc((N + 1) * sizeof *y);
    for (int i = 0; i < N; i++) x[i] = (float)(i % 4099) - 2000;
    for (size_t c = 0; c < CONFIGS; c++)
        for (int shift = 0; shift < 2 && cpu[c].device; shift++) {
            fragment *f = fragment_create();
            y[N] = 77;
            const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, N - shift), x), s = fragment_scalar(f, FNX_F32, 0.5);
            const uint32_t t = fragment_temp(f, FNX_F32, SHAPE(f, N - shift)),
                           r = fragment_output(f, FNX_F32, SHAPE(f, N - shift), y + shift);
            fragment_node(f, FNX_OP_mul, NULL, 0, REFS(a, s), REFS(t));
            fragment_node(f, FNX_OP_relu, NULL, 0, REFS(t), REFS(r));
            fragment_finish(f);
            run_fragment(&cpu[c], f, NULL, "large");
            for (int i = 0; i < N - shift; i++)
                if (y[i + shift] != (x[i] > 0 ? x[i] * 0.5f : 0))
                    ck_abort_msg("%s: element %d is %g", config_names[c], i, (double)y[i + shift]);
            ck_assert(y[N] == 77);
        }
    free(x), free(y);
}
END_TEST

START_TEST(what_the_vector_machine_does_not_run_is_declined_with_a_reason) {
    static const struct {
        uint16_t op, from, to;
        uint32_t why;
    } cases[] = {
        {FNX_OP_add, FNX_F16, FNX_F16, FNX_DECLINE_DTYPE},
        {FNX_OP_exp, FNX_I32, FNX_I32, FNX_DECLINE_OP},
        {FNX_OP_cast, FNX_F32, FNX_BF16, FNX_DECLINE_DTYPE},
        {4321, FNX_F32, FNX_F32, FNX_DECLINE_OP},
    };
    static float x[4], y[4];
    for (size_t i = 0; i < COUNT(cases); i++) {
        fragment *f = fragment_create();
        fnx_decline why = {.struct_size = sizeof why};
        void *handle;
        const uint32_t a = fragment_input(f, cases[i].from, SHAPE(f, 2), x),
                       r = fragment_output(f, cases[i].to, SHAPE(f, 2), y);
        fragment_node(f, cases[i].op, NULL, 0, REFS(a, a), REFS(r));
        if (cases[i].op != FNX_OP_add) f->node[0].n_operands = 1, f->ref[1] = r;
        fragment_finish(f);
        ck_assert_int_eq(cpu[0].groups->prepare(cpu[0].device, f->group, &handle, &why), FNX_E_DECLINED);
        ck_assert_uint_eq(why.why, cases[i].why);
        ck_assert(why.text[0] != 0);
        fragment_destroy(f);
    }
}
END_TEST

START_TEST(results_that_do_not_span_the_domain_are_declined) {
    static float x[12], y[12], z[12];
    for (int form = 0; form < 2; form++) {
        fragment *f = fragment_create();
        fnx_decline why = {.struct_size = sizeof why};
        void *handle;
        if (form == 0) { /* one result for each row, beside one for each element */
            const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, 3, 1), x);
            const uint32_t r = fragment_output(f, FNX_F32, SHAPE(f, 3, 1), y);
            const uint32_t s = fragment_output(f, FNX_F32, SHAPE(f, 3, 4), z);
            fragment_node(f, FNX_OP_neg, NULL, 0, REFS(a), REFS(r));
            fragment_node(f, FNX_OP_neg, NULL, 0, REFS(r), REFS(s));
        } else {
            const uint32_t a = fragment_input(f, FNX_F32, RANK0, x), r = fragment_output(f, FNX_F32, RANK0, y);
            fragment_node(f, FNX_OP_neg, NULL, 0, REFS(a), REFS(r));
        }
        fragment_finish(f);
        ck_assert_int_eq(cpu[0].groups->prepare(cpu[0].device, f->group, &handle, &why), FNX_E_DECLINED);
        ck_assert_uint_eq(why.why, FNX_DECLINE_LAYOUT);
        ck_assert(why.text[0] != 0);
        fragment_destroy(f);
    }
}
END_TEST

/* ---- main -------------------------------------------------------------------------------------------------------- */

int main(void) {
    Suite *suite = suite_create("cpu elementwise values");
    TCase *c = tcase_create("cpu elementwise values");
    tcase_add_checked_fixture(c, cpu_setup, cpu_teardown);
    tcase_set_timeout(c, 240); /* against machines that are busy and sanitizers; each needs a few seconds */
    tcase_add_loop_test(c, functions_of_f32_keep_their_limit_over_all_exponents, 0, COUNT(functions));
    tcase_add_test(c, functions_know_the_ends_of_their_range);
    tcase_add_test(c, casts_saturate_wrap_and_know_nan);
    tcase_add_test(c, integers_wrap_and_truncate);
    tcase_add_test(c, a_zero_divisor_is_noted_wherever_it_comes_from);
    tcase_add_test(c, a_handle_serves_many_shapes);
    tcase_add_test(c, rows_repeat_in_the_blocks_of_every_thread);
    tcase_add_test(c, results_may_be_parts_of_one_memory);
    tcase_add_test(c, large_results_are_right);
    tcase_add_test(c, what_the_vector_machine_does_not_run_is_declined_with_a_reason);
    tcase_add_test(c, results_that_do_not_span_the_domain_are_declined);
    suite_add_tcase(suite, c);
    return cpu_run_suite(suite);
}
