/* A test that needs a process of its own (the environment is read once) runs its own program again, with the name
 * of a scenario as argument. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the scenario prints on both streams, in `out`. `environment`: NAME='value' words of the shell. Fails the
 * test if the child does not exit with 0. */
static inline void child_run(const char *environment, const char *scenario, char *out, size_t size) {
    char program[4096], command[8192];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    ck_assert_int_gt(n, 0);
    program[n] = 0;
    n = snprintf(command, sizeof command, "env %s '%s' %s 2>&1", environment, program, scenario);
    ck_assert_int_lt(n, sizeof command);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    n = (ssize_t)fread(out, 1, size - 1, f);
    out[n] = 0;
    int status = pclose(f);
    ck_assert_msg(status == 0, "%s: status %d: %s", scenario, status, out);
}

#define CK_CONTAINS(text, part) ck_assert_msg(strstr((text), (part)) != NULL, "no \"%s\" in: %s", (part), (text))
#define CK_LACKS(text, part) ck_assert_msg(strstr((text), (part)) == NULL, "\"%s\" in: %s", (part), (text))

#endif
