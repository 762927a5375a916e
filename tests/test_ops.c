/* Every public op against values from outside (tests/fixtures/ops.py): lazily, eagerly, and with operands that are
 * views. Random numbers against the published vectors of their generator, a second implementation here, and their
 * moments. */
#include "support/devices.h"
#include "support/op_cases.h"

#include <math.h>

/* ---- the fixture ------------------------------------------------------------------------------------------------- */

/* An operand as the program has it; the same value each time. */
typedef fnx_tensor *(*operand_maker)(fnx_device *device, const host_tensor *t);

static fnx_tensor *plain(fnx_device *device, const host_tensor *t) { return op_case_upload(device, t); }

/* All axes turned around in memory, and turned back by a view: no operand is packed. */
static fnx_tensor *permuted(fnx_device *device, const host_tensor *t) {
    int axes[FNX_MAX_RANK];
    for (int d = 0; d < t->rank; d++) axes[d] = t->rank - 1 - d;
    fnx_tensor *x = op_case_upload(device, t);
    if (!x) return NULL;
    fnx_tensor *turned = fnx_copy(fnx_permute(x, axes));
    ck_assert_int_eq(fnx_eval(turned), 0);
    return fnx_permute(turned, axes);
}

/* Every second element of a larger tensor, backwards: negative strides and an offset. */
static fnx_tensor *reversed(fnx_device *device, const host_tensor *t) {
    int64_t starts[FNX_MAX_RANK], steps[FNX_MAX_RANK], low[FNX_MAX_RANK], high[FNX_MAX_RANK], sizes[FNX_MAX_RANK];
    fnx_tensor *x = op_case_upload(device, t);
    if (!x || t->count == 0) return x;
    for (int d = 0; d < t->rank; d++) {
        sizes[d] = 2 * t->sizes[d], low[d] = 1, high[d] = 2;
        starts[d] = 2 * t->sizes[d] - 1, steps[d] = -2;
    }
    fnx_tensor *larger = fnx_slice_assign(fnx_fill(device, t->dtype, t->rank, sizes, 1), x, starts, steps);
    larger = fnx_pad(larger, low, high, 0);
    ck_assert_int_eq(fnx_eval(larger), 0);
    for (int d = 0; d < t->rank; d++) starts[d]++;
    return fnx_slice_all(larger, starts, t->sizes, steps);
}

static void check_result(case_report *r, const op_case *c, int k, fnx_tensor *y) {
    const host_tensor *want = &c->out[k];
    int64_t at;
    if (fnx_tensor_status(y)) {
        case_mistake(r, c, "%s", fnx_last_error()->message);
        return;
    }
    bool same = fnx_tensor_dtype(y) == want->dtype && fnx_tensor_rank(y) == want->rank;
    for (int d = 0; d < want->rank && same; d++) same = fnx_tensor_size(y, d) == want->sizes[d];
    if (!same) {
        case_mistake(r, c, "result %d has the wrong dtype or shape", k);
        return;
    }
    char *got = malloc(want->bytes + 1);
    host_tensor g = *want;
    g.data = got;
    if (fnx_tensor_read(y, got, want->bytes)) case_mistake(r, c, "%s", fnx_last_error()->message);
    else if (!op_case_right(c, k, got, &at))
        case_mistake(r, c, "element %lld of result %d is %.17g, right is %.17g, they may differ by %.3g", (long long)at,
                     k, host_element(&g, at), host_element(want, at), op_case_limit(c, k, at));
    free(got);
}

static void read_doubles(fnx_tensor *t, double *out) {
    int64_t n = fnx_tensor_count(t);
    if (fnx_tensor_dtype(t) == FNX_F64) {
        ck_assert_msg(fnx_tensor_read(t, out, sizeof *out * (size_t)n) == 0, "%s", fnx_last_error()->message);
        return;
    }
    float *x = malloc(sizeof *x * (size_t)n + 1);
    ck_assert_msg(fnx_tensor_read(t, x, sizeof *x * (size_t)n) == 0, "%s", fnx_last_error()->message);
    for (int64_t i = 0; i < n; i++) out[i] = (double)x[i];
    free(x);
}

static void run_all(int device, bool lazy, operand_maker make) {
    static case_report r;
    int n;
    const op_case *cases = op_cases(&n);
    fnx_device *dev = test_device(device, false);
    fnx_settings s = {.struct_size = sizeof s, .lazy = lazy ? FNX_ON : FNX_OFF};
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
    for (int i = 0; i < n; i++) {
        FNX_SCOPE;
        fnx_tensor *in[CASE_OPERANDS], *out[CASE_RESULTS];
        for (int k = 0; k < cases[i].n_in; k++) in[k] = make(dev, &cases[i].in[k]);
        op_case_call(&cases[i], dev, in, out);
        for (int k = 0; k < cases[i].n_out; k++) check_result(&r, &cases[i], k, out[k]);
    }
    fnx_device_close(dev);
    ck_assert_msg(r.mistakes == 0, "%d of %d cases:%s", r.mistakes, n, r.text);
}

START_TEST(ops_give_the_right_values_lazily) { run_all(_i, true, plain); }
END_TEST

START_TEST(ops_give_the_right_values_eagerly) { run_all(_i, false, plain); }
END_TEST

START_TEST(ops_give_the_right_values_on_permuted_operands) { run_all(_i, true, permuted); }
END_TEST

START_TEST(ops_give_the_right_values_on_reversed_operands) { run_all(_i, true, reversed); }
END_TEST

/* ---- functions over the whole range of a dtype ------------------------------------------------------------------- */

static long double sigmoidl(long double x) { return 1 / (1 + expl(-x)); }

static const struct {
    const char *name;
    fnx_tensor *(*op)(fnx_tensor *x);
    long double (*right)(long double x);
} functions[] = {{"exp", fnx_exp, expl},
                 {"log", fnx_log, logl},
                 {"sqrt", fnx_sqrt, sqrtl},
                 {"tanh", fnx_tanh, tanhl},
                 {"sigmoid", fnx_sigmoid, sigmoidl},
                 {"erf", fnx_erf, erfl}};
enum { FUNCTIONS = sizeof functions / sizeof *functions, SWEEP = 200000 };

/* Bit patterns at even distances: all exponents, both signs, subnormal numbers, infinities, NaN. */
static double sweep_at(int dtype, int64_t i) {
    uint64_t bits = UINT64_MAX / SWEEP * (uint64_t)i;
    uint32_t high = (uint32_t)(bits >> 32);
    float f;
    double d;
    memcpy(&f, &high, sizeof f), memcpy(&d, &bits, sizeof d);
    return dtype == FNX_F32 ? (double)f : d;
}

static fnx_tensor *host_doubles(fnx_device *dev, int dtype, int64_t n, const double *x) {
    fnx_tensor *t = fnx_tensor_from(dev, FNX_F64, FNX_SHAPE(n), x, 0);
    return dtype == FNX_F64 ? t : fnx_cast(t, dtype);
}

START_TEST(functions_keep_their_limit_over_the_whole_range) {
    static double x[SWEEP], got[SWEEP];
    fnx_device *dev = test_device(_i, false);
    for (int dtype = FNX_F32; dtype <= FNX_F64; dtype++) {
        for (int64_t i = 0; i < SWEEP; i++) x[i] = sweep_at(dtype, i);
        for (int f = 0; f < FUNCTIONS; f++) {
            FNX_SCOPE;
            const double ulps = op_ulps(functions[f].name);
            read_doubles(functions[f].op(host_doubles(dev, dtype, SWEEP, x)), got);
            for (int64_t i = 0; i < SWEEP; i++) {
                const long double want = functions[f].right((long double)x[i]);
                const double near = dtype == FNX_F32 ? (double)(float)want : (double)want,
                             limit = (ulps + 0.5) * last_place(dtype, near);
                if ((isnan(got[i]) && isnan(want)) || (isinf(near) && got[i] == near)) continue;
                ck_assert_msg(fabsl((long double)got[i] - want) <= (long double)limit,
                              "%s(%a) is %a, right is %La, they may differ by %g ulp", functions[f].name, x[i], got[i],
                              want, ulps);
            }
        }
    }
    fnx_device_close(dev);
}
END_TEST

/* Those without cases of their own are tested below. */
static bool tested_otherwise(const char *name) { return !strcmp(name, "uniform") || !strcmp(name, "normal"); }

START_TEST(every_function_of_the_header_has_cases) {
    char line[512], name[64];
    int n, counted = 0;
    const op_case *cases = op_cases(&n);
    FILE *header = fopen(TEST_SOURCE_DIR "/../libcore/include/fornax/ops.h", "r");
    ck_assert_ptr_nonnull(header);
    while (fgets(line, sizeof line, header)) {
        if (sscanf(line, "FNX_API fnx_tensor *fnx_%63[a-z0-9_](", name) != 1 &&
            sscanf(line, "FNX_API fnx_batch_norm_result fnx_%63[a-z0-9_](", name) != 1)
            continue;
        char *with = strstr(name, "_with");
        bool found = tested_otherwise(name);
        if (with) *with = 0;
        for (int i = 0; i < n && !found; i++) found = !strcmp(cases[i].op, name);
        ck_assert_msg(found, "fnx_%s has no case in tests/fixtures/ops.py", name);
        counted++;
    }
    fclose(header);
    ck_assert_int_gt(counted, 70);
}
END_TEST

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Philox 4x32-10 as in the paper: a second implementation, held against the authors' vectors. */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    memcpy(out, counter, 16);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t a = (uint64_t)out[0] * 0xD2511F53u, b = (uint64_t)out[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ out[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ out[3] ^ k1,
                            (uint32_t)a};
        memcpy(out, next, 16);
    }
}

/* Random123 1.14, kat_vectors, philox4x32 10 */
START_TEST(the_generator_here_gives_the_published_vectors) {
    static const uint32_t kat[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t w[4];
        philox(&kat[i][0], &kat[i][4], w);
        ck_assert_mem_eq(w, &kat[i][6], 16);
    }
}
END_TEST

static void block(uint64_t seed, uint64_t counter, uint64_t b, uint32_t w[4]) {
    philox((uint32_t[]){(uint32_t)b, (uint32_t)(b >> 32), (uint32_t)counter, (uint32_t)(counter >> 32)},
           (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, w);
}

static double bits53(const uint32_t *w) { return (double)(w[0] >> 5) * 0x1p26 + (double)(w[1] >> 6); }

static double uniform_at(int dtype, uint64_t seed, uint64_t counter, uint64_t e) {
    uint32_t w[4];
    block(seed, counter, dtype == FNX_F32 ? e >> 2 : e >> 1, w);
    return dtype == FNX_F32 ? (w[e & 3] >> 8) * 0x1p-24 : bits53(&w[2 * (e & 1)]) * 0x1p-53;
}

static long double normal_at(int dtype, uint64_t seed, uint64_t counter, uint64_t e) {
    uint32_t w[4];
    long double u, v, turn = 6.283185307179586476925286766559L;
    bool f32 = dtype == FNX_F32;
    block(seed, counter, f32 ? e >> 2 : e, w);
    if (f32) u = ((w[e & 2] >> 8) + 1) * 0x1p-24L, v = (w[(e & 2) + 1] >> 8) * 0x1p-24L;
    else u = (bits53(&w[0]) + 1) * 0x1p-53L, v = bits53(&w[2]) * 0x1p-53L;
    return sqrtl(-2 * logl(u)) * (f32 && e & 1 ? sinl(turn * v) : cosl(turn * v));
}

static const struct {
    uint64_t seed, counter;
} states[] = {{0, 0}, {1, 0}, {0x299f31d0a4093822, 0x0370734413198a2e}, {UINT64_MAX, UINT64_MAX - 1}};
enum { STATES = sizeof states / sizeof *states, NUMBERS = 1003 };

START_TEST(uniform_numbers_have_the_bits_of_the_published_generator) {
    fnx_device *dev = test_device(_i, false);
    for (int dtype = FNX_F32; dtype <= FNX_F64; dtype++)
        for (int s = 0; s < STATES; s++) {
            FNX_SCOPE;
            double x[NUMBERS];
            fnx_device_generator_set(dev, states[s].seed, states[s].counter);
            fnx_tensor *first = fnx_uniform(dev, dtype, FNX_SHAPE(NUMBERS), 0, 1);
            fnx_tensor *second = fnx_uniform(dev, dtype, FNX_SHAPE(17, 59), 0, 1);
            read_doubles(first, x);
            for (int i = 0; i < NUMBERS; i++)
                ck_assert(x[i] == uniform_at(dtype, states[s].seed, states[s].counter, (uint64_t)i));
            read_doubles(second, x);
            for (int i = 0; i < NUMBERS; i++)
                ck_assert(x[i] == uniform_at(dtype, states[s].seed, states[s].counter + 1, (uint64_t)i));
        }
    fnx_device_close(dev);
}
END_TEST

START_TEST(normal_numbers_are_within_4_ulp_of_the_formula) {
    fnx_device *dev = test_device(_i, false);
    for (int dtype = FNX_F32; dtype <= FNX_F64; dtype++)
        for (int s = 0; s < STATES; s++) {
            FNX_SCOPE;
            double x[NUMBERS];
            fnx_device_generator_set(dev, states[s].seed, states[s].counter);
            read_doubles(fnx_normal(dev, dtype, FNX_SHAPE(NUMBERS), 0, 1), x);
            for (int i = 0; i < NUMBERS; i++) {
                long double want = normal_at(dtype, states[s].seed, states[s].counter, (uint64_t)i);
                ck_assert_msg(fabsl((long double)x[i] - want) <= 4 * (long double)last_place(dtype, (double)want),
                              "number %d of state %d: %.17g, right is %.17Lg", i, s, x[i], want);
            }
        }
    fnx_device_close(dev);
}
END_TEST

/* Mean, variance, skewness and kurtosis, each within 5 standard errors. */
START_TEST(random_numbers_have_the_moments_of_their_distribution) {
    enum { N = 100000 };
    static double x[N];
    fnx_device *dev = test_device(_i, false);
    for (int dtype = FNX_F32; dtype <= FNX_F64; dtype++)
        for (int normal = 0; normal < 2; normal++) {
            FNX_SCOPE;
            fnx_device_seed(dev, 5);
            read_doubles(normal ? fnx_normal(dev, dtype, FNX_SHAPE(N), 3, 2)
                                : fnx_uniform(dev, dtype, FNX_SHAPE(N), -1, 3),
                         x);
            const double deviation = normal ? 2 : 4 / sqrt(12), mean = normal ? 3 : 1, fourth = normal ? 3 : 1.8,
                         sixth = normal ? 15 : 27.0 / 7;
            const double eighth = normal ? 105 : 9, want[4] = {0, 1, 0, fourth};
            const double spread[4] = {1, fourth - 1, sixth, eighth - fourth * fourth};
            double moment[4] = {0};
            for (int i = 0; i < N; i++) {
                double z = (x[i] - mean) / deviation;
                moment[0] += z, moment[1] += z * z, moment[2] += z * z * z, moment[3] += z * z * z * z;
            }
            for (int k = 0; k < 4; k++)
                ck_assert_msg(fabs(moment[k] / N - want[k]) < 5 * sqrt(spread[k] / N), "%s: moment %d is %g, not %g",
                              normal ? "normal" : "uniform", k + 1, moment[k] / N, want[k]);
        }
    fnx_device_close(dev);
}
END_TEST

START_TEST(uniform_numbers_stay_below_their_upper_end) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    const double low = 1, high = 1 + 0x1p-22; /* two numbers of f32: rounding reaches the end for half of all */
    double x[NUMBERS];
    read_doubles(fnx_uniform(dev, FNX_F32, FNX_SHAPE(NUMBERS), low, high), x);
    for (int i = 0; i < NUMBERS; i++)
        ck_assert_msg(x[i] >= low && x[i] < high, "%.9g is not in [%.9g, %.9g)", x[i], low, high);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_seed_gives_the_same_numbers_again_and_each_call_others) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE;
    double a[64], b[64], again[64];
    fnx_device_seed(dev, 11);
    read_doubles(fnx_normal(dev, FNX_F32, FNX_SHAPE(64), 0, 1), a);
    read_doubles(fnx_normal(dev, FNX_F32, FNX_SHAPE(64), 0, 1), b);
    fnx_device_seed(dev, 11);
    read_doubles(fnx_normal(dev, FNX_F32, FNX_SHAPE(64), 0, 1), again);
    ck_assert_mem_eq(a, again, sizeof a);
    for (int i = 0; i < 64; i++) ck_assert(a[i] != b[i]);
    fnx_device_close(dev);
}
END_TEST

/* Whether element i is zeroed follows from the generator: dropped where its number is below p. */
START_TEST(dropout_zeroes_by_the_generator_and_scales_the_rest) {
    enum { N = 20000 };
    static double x[N];
    fnx_device *dev = test_device(_i, false);
    const double p[] = {0.1, 0.5, 0.9};
    for (int dtype = FNX_F32; dtype <= FNX_F64; dtype++)
        for (int k = 0; k < 3; k++) {
            FNX_SCOPE;
            int dropped = 0;
            fnx_device_generator_set(dev, 3, 40);
            read_doubles(fnx_dropout(fnx_fill(dev, dtype, FNX_SHAPE(N), 2), p[k]), x);
            const double limit = dtype == FNX_F32 ? (double)(float)p[k] : p[k];
            for (int i = 0; i < N; i++) {
                bool drop = uniform_at(dtype, 3, 40, (uint64_t)i) < limit;
                ck_assert_msg(drop ? x[i] == 0 : fabs(x[i] - 2 / (1 - p[k])) < 1e-5, "element %d: %g", i, x[i]);
                dropped += drop;
            }
            ck_assert(fabs(dropped - N * p[k]) < 5 * sqrt(N * p[k] * (1 - p[k])));
        }
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("ops");
    int n;
    (void)op_cases(&n);
    test_each_device(t, ops_give_the_right_values_lazily);
    test_each_device(t, ops_give_the_right_values_eagerly);
    test_each_device(t, ops_give_the_right_values_on_permuted_operands);
    test_each_device(t, ops_give_the_right_values_on_reversed_operands);
    test_each_device(t, functions_keep_their_limit_over_the_whole_range);
    tcase_add_test(t, every_function_of_the_header_has_cases);
    tcase_add_test(t, the_generator_here_gives_the_published_vectors);
    test_each_device(t, uniform_numbers_have_the_bits_of_the_published_generator);
    test_each_device(t, normal_numbers_are_within_4_ulp_of_the_formula);
    test_each_device(t, random_numbers_have_the_moments_of_their_distribution);
    test_each_device(t, uniform_numbers_stay_below_their_upper_end);
    test_each_device(t, a_seed_gives_the_same_numbers_again_and_each_call_others);
    test_each_device(t, dropout_zeroes_by_the_generator_and_scales_the_rest);
    return test_run("ops", t);
}
