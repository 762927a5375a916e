/* What the test programs of the cpu plugin share: the plugin opened once per ISA level that this CPU has and number of
 * threads, the ref plugin to compare with, random numbers, and what tells how far two elements are apart. */
#ifndef TESTS_SUPPORT_CPU_H
#define TESTS_SUPPORT_CPU_H

#include "backend.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const config_names[] = {"base",   "base, 2 threads",  "avx2", "avx2, 2 threads",
                                           "avx512", "avx512, 2 threads"};
static const char *const isa_names[] = {"base", "avx2", "avx512"};
enum { CONFIGS = COUNT(config_names) };

static backend ref, cpu[CONFIGS]; /* without a device where the CPU lacks the level */
static size_t opening;

static inline const char *cpu_config(const char *key, const char *fallback) {
    if (strcmp(key, "threads") == 0) return opening % 2 ? "2" : "1";
    return strcmp(key, "isa") == 0 ? isa_names[opening / 2] : fallback;
}

static inline const char *plugin_path(const char *variable, const char *built) {
    const char *path = getenv(variable);
    return path ? path : built;
}

#ifdef TEST_BUILD_DIR
#define BUILT(name) TEST_BUILD_DIR "/plugins/" name "/.libs/fornax-" name ".so"
#else
#define BUILT(name) ""
#endif

/* So that a level that the plugin fails to open is not taken for one that the CPU lacks. */
static inline int cpu_has(size_t level) {
#ifdef __x86_64__
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return level == 0 || (level == 1 ? avx2 || avx512 : avx512);
#else
    return level == 0;
#endif
}

/* $FORNAX_TEST_CPU names another plugin, which then runs what is not particular to cpu, and less of it. */
static inline int other_backend(void) { return getenv("FORNAX_TEST_CPU") != NULL; }

static inline void cpu_setup(void) {
    const char *path = plugin_path("FORNAX_TEST_CPU", BUILT("cpu"));
    if (backend_open(&ref, plugin_path("FORNAX_TEST_REF", BUILT("ref")), "")) ck_abort_msg("%s", backend_error());
    const size_t configs = other_backend() ? 1 : CONFIGS;
    for (opening = 0; opening < configs; opening++)
        if (cpu_has(opening / 2) && backend_open_with(&cpu[opening], path, "", cpu_config))
            ck_abort_msg("%s: %s", config_names[opening], backend_error());
}

static inline void cpu_teardown(void) {
    backend_close(&ref);
    for (size_t i = 0; i < CONFIGS; i++) backend_close(&cpu[i]);
    ck_assert_int_eq(backend_live_blocks(), 0);
}

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

static uint64_t seed;

static inline uint64_t draw(void) { /* splitmix64, Steele et al., OOPSLA 2014 */
    uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int64_t between(int64_t low, int64_t high) {
    return low + (int64_t)(draw() % (uint64_t)(high - low + 1));
}
static inline int chance(int percent) { return between(1, 100) <= percent; }

/* ---- fragments --------------------------------------------------------------------------------------------------- */

/* Runs and destroys it; ends the test if it was declined or failed. */
static inline void run_fragment(backend *b, fragment *f, fnx_error_word *word, const char *what) {
    fnx_decline why = {.struct_size = sizeof why};
    f->launch.site = 7;
    const int32_t code = backend_run(b, f, word, &why);
    if (code) ck_abort_msg("%s: %d %s", what, code, code == FNX_E_DECLINED ? why.text : backend_error());
    fragment_destroy(f);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static inline uint32_t bytes_of(uint16_t dtype) { return fragment_dtype_bytes(dtype); }

/* Element i of an array: `x` in floats, `whole` in others. */
static inline void put_number(char *data, uint16_t dtype, int64_t i, double x, int64_t whole) {
    switch (dtype) {
    case FNX_F32: ((float *)(void *)data)[i] = (float)x; break;
    case FNX_F64: ((double *)(void *)data)[i] = x; break;
    case FNX_I32: ((int32_t *)(void *)data)[i] = (int32_t)whole; break;
    case FNX_I64: ((int64_t *)(void *)data)[i] = whole; break;
    case FNX_BOOL: ((uint8_t *)data)[i] = whole & 1; break;
    default: ((uint8_t *)data)[i] = (uint8_t)whole;
    }
}

static inline double number(uint16_t dtype, const char *at) {
    float single_float;
    double x;
    if (dtype == FNX_F64) memcpy(&x, at, sizeof x);
    else memcpy(&single_float, at, sizeof single_float), x = (double)single_float;
    return x;
}

/* From x to the next number of the dtype. */
static inline double spacing(uint16_t dtype, double x) {
    const int least = dtype == FNX_F32 ? FLT_MIN_EXP - 1 : DBL_MIN_EXP - 1;
    const int digits = dtype == FNX_F32 ? FLT_MANT_DIG - 1 : DBL_MANT_DIG - 1;
    return ldexp(1, (x == 0 || ilogb(x) < least ? least : ilogb(x)) - digits);
}

/* In units of the last place of b; other zeros and infinities, and integers, are equal or infinitely far apart. */
static inline double ulp_distance(uint16_t dtype, const char *a, const char *b) {
    if (dtype != FNX_F32 && dtype != FNX_F64) return memcmp(a, b, bytes_of(dtype)) ? INFINITY : 0;
    const double x = number(dtype, a), y = number(dtype, b), most = dtype == FNX_F32 ? (double)FLT_MAX : DBL_MAX;
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y) ? 0 : INFINITY;
    if (x == y) return signbit(x) == signbit(y) ? 0 : INFINITY;
    if (isinf(x) || isinf(y)) return fabs(x) == most || fabs(y) == most ? 1 : INFINITY;
    return fabs(x - y) / spacing(dtype, y);
}

static inline void show(char *text, size_t size, uint16_t dtype, const char *at) {
    int64_t whole = 0;
    memcpy(&whole, at, bytes_of(dtype));
    if (dtype == FNX_F32 || dtype == FNX_F64) snprintf(text, size, "%.17g (%a)", number(dtype, at), number(dtype, at));
    else snprintf(text, size, "%lld", (long long)whole);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static inline int cpu_run_suite(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
