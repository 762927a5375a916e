/* Tests that run once per device: those of $FORNAX_TEST_DEVICES (names with commas between), else ref and cpu. */
#ifndef TESTS_SUPPORT_DEVICES_H
#define TESTS_SUPPORT_DEVICES_H

#include <check.h>
#include <fornax/fornax.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_DEVICES_MAX = 8 };

static inline int test_device_names(char names[TEST_DEVICES_MAX][64]) {
    const char *list = getenv("FORNAX_TEST_DEVICES");
    int n = 0;
    for (const char *p = list && *list ? list : "ref,cpu"; *p && n < TEST_DEVICES_MAX;) {
        size_t k = strcspn(p, ",");
        snprintf(names[n++], 64, "%.*s", (int)k, p);
        p += k + (p[k] == ',');
    }
    return n;
}

/* Device number i, opened; the test fails if it cannot be. */
static inline fnx_device *test_device(int i, bool autodiff) {
    char names[TEST_DEVICES_MAX][64];
    ck_assert_int_lt(i, test_device_names(names));
    fnx_device *dev = fnx_device_open(names[i]);
    ck_assert_msg(fnx_device_status(dev) == 0, "%s: %s", names[i], fnx_last_error()->message);
    return autodiff ? fnx_device_autodiff(dev) : dev;
}

static inline TCase *test_case(const char *name) {
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 300);
    return t;
}

#define test_each_device(t, function) \
    do { \
        char names_[TEST_DEVICES_MAX][64]; \
        tcase_add_loop_test(t, function, 0, test_device_names(names_)); \
    } while (0)

static inline int test_run(const char *name, TCase *t) {
    Suite *s = suite_create(name);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
