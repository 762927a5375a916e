/* The kernel compiler's language: what the verifier refuses, and three kernels written by hand, printed as C,
 * compiled by the host's compiler and run. */
#include "support/kernels.h"

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void kernel(const uint32_t *group, const uint32_t *groups, const void *args);

/* ---- running ----------------------------------------------------------------------------------------------------- */

static kernel *compile(kir *k) {
    char why[256] = "", folder[] = "/tmp/fornax-test-XXXXXX", path[64], command[256];
    ck_assert_msg(kir_finish(k, why, sizeof why), "%s", why);
    char *text = kir_print(k, FNX_DIALECT_C, "run");
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/k.c", folder);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert(fputs(text, f) >= 0 && fclose(f) == 0);
    free(text);
    const char *cc = getenv("CC");
    snprintf(command, sizeof command,
             "cd %s && %s -std=gnu17 -O2 -Wall -Werror -Wno-unused -shared -fPIC -o k.so k.c -lm", folder,
             cc && *cc ? cc : "cc");
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/k.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "run") : NULL;
    ck_assert_msg(symbol, "%s", dlerror());
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    kernel *run;
    memcpy(&run, &symbol, sizeof run);
    return run;
}

static void set(const kir *k, unsigned char *args, int32_t number, uint64_t value) {
    memcpy(args + k->arg[number].offset, &value, kir_bytes((kir_type)k->arg[number].type));
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

static float pattern(int i) { return (float)(i * 7919 % 1000) / 250 - 2; }

START_TEST(a_softmax_of_rows_sums_to_one_and_keeps_ratios) {
    enum { ROWS = 3, LENGTH = 37 };
    float x[ROWS * LENGTH], y[ROWS * LENGTH];
    unsigned char args[256] = {0};
    kir k;
    kernel_softmax(&k, 1);
    kernel *run = compile(&k);
    for (int i = 0; i < ROWS * LENGTH; i++) x[i] = pattern(i);
    set(&k, args, 2, address(x)), set(&k, args, 3, address(y)), set(&k, args, 4, LENGTH);
    for (uint32_t row = 0; row < ROWS; row++) run((const uint32_t[]){row, 0, 0}, (const uint32_t[]){ROWS, 1, 1}, args);
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int i = 0; i < LENGTH; i++) sum += exp((double)x[row * LENGTH + i]);
        for (int i = 0; i < LENGTH; i++)
            ck_assert_double_eq_tol((double)y[row * LENGTH + i], exp((double)x[row * LENGTH + i]) / sum, 1e-7);
    }
    kir_free(&k);
}
END_TEST

START_TEST(a_blocked_matrix_product_with_bias_and_relu) {
    enum { M = 19, N = 21, K = 35, TILE = 8 };
    float a[M * K], b[K * N], bias[N], c[M * N];
    unsigned char args[256] = {0};
    kir k;
    kernel_matmul(&k, 1, TILE, 16);
    kernel *run = compile(&k);
    for (int i = 0; i < M * K; i++) a[i] = pattern(i);
    for (int i = 0; i < K * N; i++) b[i] = pattern(i + 5);
    for (int i = 0; i < N; i++) bias[i] = pattern(i + 9);
    const uint64_t values[] = {address(a), address(b), address(bias), address(c), M, N, K};
    for (int j = 0; j < 7; j++) set(&k, args, 2 + j, values[j]);
    const uint32_t groups[] = {(N + TILE - 1) / TILE, (M + TILE - 1) / TILE, 1};
    for (uint32_t y = 0; y < groups[1]; y++)
        for (uint32_t x = 0; x < groups[0]; x++) run((const uint32_t[]){x, y, 0}, groups, args);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = (double)bias[j];
            for (int d = 0; d < K; d++) sum += (double)a[i * K + d] * (double)b[d * N + j];
            ck_assert_double_eq_tol((double)c[i * N + j], sum > 0 ? sum : 0, 1e-4);
        }
    kir_free(&k);
}
END_TEST

START_TEST(a_scatter_counts_and_reports_the_first_index_outside) {
    const int64_t index[] = {1, 3, 1, 9, 0, -2, 1};
    uint32_t counts[4] = {0};
    fnx_error_word word = {0};
    unsigned char args[256] = {0};
    kir k;
    kernel_scatter(&k, 1);
    kernel *run = compile(&k);
    set(&k, args, KIR_ARG_ERROR, address(&word)), set(&k, args, KIR_ARG_SITE, 77);
    set(&k, args, 2, address(counts)), set(&k, args, 3, address(index)), set(&k, args, 4, 4), set(&k, args, 5, 7);
    for (uint32_t i = 0; i < 7; i++) run((const uint32_t[]){i, 0, 0}, (const uint32_t[]){7, 1, 1}, args);
    ck_assert(counts[0] == 1 && counts[1] == 3 && counts[2] == 0 && counts[3] == 1);
    ck_assert(word.code == FNX_E_INDEX && word.site == 77 && word.index == 9 && word.limit == 4);
    kir_free(&k);
}
END_TEST

/* ---- the verifier ------------------------------------------------------------------------------------------------ */

/* Ends `k` and looks for `text` in the verifier's words. */
static void refused(kir *k, const char *text) {
    char why[256] = "";
    ck_assert_msg(!kir_finish(k, why, sizeof why), "accepted instead of: %s", text);
    ck_assert_msg(strstr(why, text) != NULL, "'%s' instead of '%s'", why, text);
    kir_free(k);
}

static kir_value i32(kir *k, int64_t v) { return kir_int(k, KIR_I32, v); }

START_TEST(operands_have_the_types_that_an_operation_takes) {
    kir k;
    kir_init(&k, 1, 1, 1);
    (void)kir_bin(&k, KIR_ADD, i32(&k, 1), kir_int(&k, KIR_I64, 1));
    refused(&k, "an operand has another type");
    kir_init(&k, 1, 1, 1);
    (void)kir_bin(&k, KIR_REM, kir_float(&k, KIR_F32, 1), kir_float(&k, KIR_F32, 1));
    refused(&k, "not for this type");
    kir_init(&k, 1, 1, 1);
    (void)kir_bits(&k, KIR_F64, i32(&k, 1));
    refused(&k, "of another size");
    kir_init(&k, 1, 1, 1);
    kir_if(&k, i32(&k, 1)), kir_end(&k);
    refused(&k, "the condition is no bool");
}
END_TEST

START_TEST(a_value_ends_with_its_block) {
    kir k;
    kir_init(&k, 1, 1, 1);
    kir_value i = kir_for(&k, i32(&k, 0), i32(&k, 4), 1, 0), twice = kir_bin(&k, KIR_ADD, i, i);
    kir_end(&k);
    (void)kir_bin(&k, KIR_ADD, twice, twice);
    refused(&k, "an operand is no value here");
    kir_init(&k, 1, 1, 1);
    i = kir_for(&k, i32(&k, 0), i32(&k, 4), 1, 0);
    kir_end(&k);
    (void)kir_un(&k, KIR_NEG, i);
    refused(&k, "an operand is no value here");
    kir_init(&k, 1, 1, 1);
    kir_if(&k, kir_int(&k, KIR_BOOL, 1));
    kir_value one = kir_bin(&k, KIR_ADD, i32(&k, 1), i32(&k, 1));
    kir_else(&k);
    (void)kir_un(&k, KIR_NEG, one);
    kir_end(&k);
    refused(&k, "an operand is no value here");
}
END_TEST

START_TEST(all_threads_of_a_group_come_to_a_barrier) {
    kir k;
    kir_init(&k, 64, 1, 1);
    kir_value me = kir_cast(&k, KIR_I32, kir_builtin(&k, KIR_THREAD, 0));
    kir_if(&k, kir_bin(&k, KIR_LT, me, i32(&k, 3)));
    kir_barrier(&k);
    kir_end(&k);
    refused(&k, "some threads of the group may not come here");
    kir_init(&k, 64, 1, 1);
    me = kir_cast(&k, KIR_I32, kir_builtin(&k, KIR_THREAD, 0));
    (void)kir_for(&k, me, i32(&k, 99), 1, 0);
    kir_barrier(&k);
    kir_end(&k);
    refused(&k, "some threads of the group may not come here");
    char why[256] = "";
    kir_init(&k, 64, 1, 1);
    (void)kir_for(&k, i32(&k, 0), kir_arg_value(&k, kir_add_arg(&k, KIR_I32)), 1, 0);
    kir_barrier(&k);
    kir_end(&k);
    ck_assert_msg(kir_finish(&k, why, sizeof why), "%s", why);
    kir_free(&k);
}
END_TEST

START_TEST(blocks_are_balanced_and_loops_end) {
    kir k;
    kir_init(&k, 1, 1, 1);
    kir_end(&k);
    refused(&k, "without a block");
    kir_init(&k, 1, 1, 1);
    kir_if(&k, kir_int(&k, KIR_BOOL, 1));
    refused(&k, "a block is open at the end");
    kir_init(&k, 1, 1, 1);
    kir_else(&k);
    refused(&k, "without an if");
    kir_init(&k, 1, 1, 1);
    (void)kir_for(&k, i32(&k, 0), i32(&k, 4), 0, 0), kir_end(&k);
    refused(&k, "the step is not positive");
    kir_init(&k, 1, 1, 1);
    for (int i = 0; i < 40; i++) kir_if(&k, kir_int(&k, KIR_BOOL, 1));
    refused(&k, "too deep");
}
END_TEST

START_TEST(memory_is_accessed_as_it_was_declared) {
    kir k;
    kir_init(&k, 1, 1, 1);
    kir_value b = kir_buffer(&k, KIR_F32, kir_add_arg(&k, KIR_U64), KIR_READ_ONLY);
    kir_store(&k, b, i32(&k, 0), kir_float(&k, KIR_F32, 1));
    refused(&k, "the buffer is read only");
    kir_init(&k, 1, 1, 1);
    b = kir_buffer(&k, KIR_F32, kir_add_arg(&k, KIR_U64), 0);
    kir_store(&k, b, i32(&k, 0), i32(&k, 1));
    refused(&k, "the value has another type");
    kir_init(&k, 1, 1, 1);
    b = kir_array(&k, KIR_F32, 4, KIR_PRIVATE);
    (void)kir_read(&k, b, i32(&k, 4));
    refused(&k, "outside of its array");
    kir_init(&k, 1, 1, 1);
    (void)kir_buffer(&k, KIR_F32, kir_add_arg(&k, KIR_I32), 0);
    refused(&k, "its address is no u64 argument");
    kir_init(&k, 1, 1, 1);
    b = kir_buffer(&k, KIR_F32, kir_add_arg(&k, KIR_U64), 0);
    kir_atomic_add(&k, b, i32(&k, 0), kir_float(&k, KIR_F32, 1));
    refused(&k, "no atomic addition of this type");
}
END_TEST

START_TEST(a_kernel_that_is_too_long_is_refused) {
    kir k;
    kir_init(&k, 1, 1, 1);
    kir_value v = i32(&k, 1);
    for (int i = 0; i < KIR_MAX_INSNS + 10; i++) v = kir_bin(&k, KIR_ADD, v, v);
    refused(&k, "too long");
}
END_TEST

START_TEST(arguments_of_eight_bytes_come_first) {
    char why[256] = "";
    kir k;
    kir_init(&k, 1, 1, 1);
    int32_t narrow = kir_add_arg(&k, KIR_F32), wide = kir_add_arg(&k, KIR_I64), last = kir_add_arg(&k, KIR_U32);
    ck_assert_msg(kir_finish(&k, why, sizeof why), "%s", why);
    ck_assert(k.arg[KIR_ARG_ERROR].offset == 0 && k.arg[wide].offset == 8 && k.arg[KIR_ARG_SITE].offset == 16);
    ck_assert(k.arg[narrow].offset == 20 && k.arg[last].offset == 24 && k.args_bytes == 32);
    kir_free(&k);
}
END_TEST

int main(void) {
    Suite *s = suite_create("kernel language");
    TCase *t = tcase_create("kernel language");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_softmax_of_rows_sums_to_one_and_keeps_ratios);
    tcase_add_test(t, a_blocked_matrix_product_with_bias_and_relu);
    tcase_add_test(t, a_scatter_counts_and_reports_the_first_index_outside);
    tcase_add_test(t, operands_have_the_types_that_an_operation_takes);
    tcase_add_test(t, a_value_ends_with_its_block);
    tcase_add_test(t, all_threads_of_a_group_come_to_a_barrier);
    tcase_add_test(t, blocks_are_balanced_and_loops_end);
    tcase_add_test(t, memory_is_accessed_as_it_was_declared);
    tcase_add_test(t, a_kernel_that_is_too_long_is_refused);
    tcase_add_test(t, arguments_of_eight_bytes_come_first);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
