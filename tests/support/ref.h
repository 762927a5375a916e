/* What the test programs of the reference backend share: the plugin under test, opened before and closed after each
 * test, and the shortest way to run one node over vectors. */
#ifndef TESTS_SUPPORT_REF_H
#define TESTS_SUPPORT_REF_H

#include "backend.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static backend ref;

static inline const char *ref_path(void) {
    const char *path = getenv("FORNAX_TEST_REF");
#ifdef TEST_BUILD_DIR
    if (!path) path = TEST_BUILD_DIR "/plugins/ref/.libs/fornax-ref.so";
#endif
    return path ? path : "FORNAX_TEST_REF is not set";
}

static inline void ref_setup(void) {
    if (backend_open(&ref, ref_path(), "")) ck_abort_msg("%s", backend_error());
}

static inline void ref_teardown(void) {
    backend_close(&ref);
    ck_assert_int_eq(backend_live_blocks(), 0);
}

/* Runs and frees the fragment; the error word goes to `word`. */
static inline void run_with_word(fragment *f, fnx_error_word *word) {
    fnx_decline why = {.struct_size = sizeof why};
    int32_t code;
    fragment_finish(f);
    code = backend_run(&ref, f, word, &why);
    if (code) ck_abort_msg("run: %d %s", code, code == FNX_E_DECLINED ? why.text : backend_error());
    fragment_destroy(f);
}

static inline void run(fragment *f) {
    fnx_error_word word;
    run_with_word(f, &word);
    ck_assert_int_eq(word.code, FNX_OK);
}

/* y = op(a, b) over vectors of n; b NULL: one operand. */
static inline void run_vector(uint16_t op, uint16_t from, uint16_t to, int64_t n, const void *a, const void *b,
                              void *y) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, n);
    uint32_t in[2] = {fragment_input(f, from, s, a), b ? fragment_input(f, from, s, b) : 0};
    uint32_t out = fragment_output(f, to, s, y);
    fragment_node(f, op, NULL, 0, b ? 2 : 1, in, 1, &out);
    run(f);
}

/* The same number: NaN is NaN, and -0 is not +0. */
static inline int same(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a == b && signbit(a) == signbit(b);
}

#define CHECK_SAME(got, want, n) \
    for (size_t i_ = 0; i_ < (size_t)(n); i_++) \
    ck_assert_msg(same((double)(got)[i_], (double)(want)[i_]), "%s[%zu] is %.17g, should be %.17g", #got, i_, \
                  (double)(got)[i_], (double)(want)[i_])

#define CHECK_NEAR(got, want, n, relative) \
    for (size_t i_ = 0; i_ < (size_t)(n); i_++) \
    ck_assert_msg(fabs((double)(got)[i_] - (double)(want)[i_]) <= (relative) * (1 + fabs((double)(want)[i_])), \
                  "%s[%zu] is %.17g, should be %.17g", #got, i_, (double)(got)[i_], (double)(want)[i_])

/* Numbers in [-1, 1) for inputs: a different sequence for each seed (xorshift). */
static inline double noise(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (double)(int64_t)*state * 0x1p-63;
}

static inline int run_suite(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
