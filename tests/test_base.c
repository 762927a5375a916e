/* Errors, logs, environment, allocation, hash, spelling, forks. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/spell.h"
#include "support/child.h"

#include <pthread.h>
#include <sys/wait.h>

/* ---- errors ------------------------------------------------------------------------------------------------------ */

START_TEST(every_code_has_its_name) {
    for (fnx_status code = 0; code >= FNX_E_CANCELLED; code--) {
        const char *name = fnx_status_name(code);
        ck_assert_msg(!strncmp(name, code ? "FNX_E_" : "FNX_OK", 6), "%d is %s", code, name);
        for (fnx_status other = 0; other > code; other--) ck_assert_str_ne(name, fnx_status_name(other));
    }
    ck_assert_str_eq(fnx_status_name(FNX_E_SHAPE), "FNX_E_SHAPE");
    ck_assert_str_eq(fnx_status_name(1), "unknown status");
    ck_assert_str_eq(fnx_status_name(FNX_E_CANCELLED - 1), "unknown status");
    ck_assert_str_eq(fnx_version(), FORNAX_VERSION);
}
END_TEST

static void *report_first_error(void *out) {
    *(fnx_error_info *)out = *fnx_last_error();
    return NULL;
}

START_TEST(an_error_stays_until_the_next_one_of_its_thread) {
    ck_assert_int_eq(fnx_error_set(FNX_E_SHAPE, "axis %d", 3), FNX_E_SHAPE);
    fnx_error_set_op("matmul");
    fnx_error_set_plugin("ref");
    const fnx_error_info *e = fnx_last_error();
    ck_assert_int_eq(e->code, FNX_E_SHAPE);
    ck_assert_str_eq(e->message, "axis 3");
    ck_assert_str_eq(e->op, "matmul");
    ck_assert_str_eq(e->plugin, "ref");

    fnx_error_info other = {.code = 1};
    pthread_t t;
    pthread_create(&t, NULL, report_first_error, &other);
    pthread_join(t, NULL);
    ck_assert_int_eq(other.code, FNX_OK);

    (void)fnx_error_set(FNX_E_IO, "disk");
    e = fnx_last_error();
    ck_assert_int_eq(e->code, FNX_E_IO);
    ck_assert_str_eq(e->op, "");
    ck_assert_str_eq(e->plugin, "");
    ck_assert_str_eq(e->chain, "");
}
END_TEST

START_TEST(a_message_may_be_made_of_the_last_one) {
    (void)fnx_error_set(FNX_E_IO, "disk full");
    (void)fnx_error_set(FNX_E_IO, "saving: %s", fnx_last_error()->message);
    ck_assert_str_eq(fnx_last_error()->message, "saving: disk full");
}
END_TEST

START_TEST(the_chain_grows_outwards_and_is_bounded) {
    (void)fnx_error_set(FNX_E_IO, "x");
    fnx_error_add_context("reading %s", "a");
    fnx_error_add_context("loading");
    ck_assert_str_eq(fnx_last_error()->chain, "reading a\nloading");
    for (int i = 0; i < 1000; i++) fnx_error_add_context("once more, number %d", i);
    ck_assert_uint_lt(strlen(fnx_last_error()->chain), FNX_ERROR_TEXT);
    ck_assert(!strncmp(fnx_last_error()->chain, "reading a\nloading\n", 18));
}
END_TEST

START_TEST(a_message_that_is_too_long_is_cut) {
    char text[3 * FNX_ERROR_TEXT];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    (void)fnx_error_set(FNX_E_IO, "%s", text);
    ck_assert_uint_eq(strlen(fnx_last_error()->message), FNX_ERROR_TEXT - 1);
    fnx_error *e = fnx_error_new(FNX_E_IO, "%s", text);
    ck_assert_uint_eq(strlen(fnx_error_message(e)), FNX_ERROR_TEXT - 1);
    fnx_error_unref(e);
}
END_TEST

static int steps;
static fnx_status step(fnx_status code) {
    steps++;
    return code;
}
static fnx_status three_steps(void) {
    FNX_TRY(step(FNX_OK));
    FNX_TRY(step(FNX_E_DTYPE));
    FNX_TRY(step(FNX_OK));
    return FNX_OK;
}

START_TEST(try_returns_the_first_failure) {
    steps = 0;
    ck_assert_int_eq(three_steps(), FNX_E_DTYPE);
    ck_assert_int_eq(steps, 2);
}
END_TEST

static void *raise_it(void *e) { return (void *)(intptr_t)fnx_error_raise(e); }

static void *count_up_and_down(void *e) {
    for (int i = 0; i < 20000; i++) fnx_error_unref(fnx_error_ref(e));
    return NULL;
}

START_TEST(an_error_object_outlives_its_record_and_moves_to_other_threads) {
    (void)fnx_error_set(FNX_E_INDEX, "index 7");
    fnx_error_set_op("gather");
    fnx_error_add_context("reading y");
    fnx_error *e = fnx_error_take_last();
    (void)fnx_error_set(FNX_E_IO, "something else");
    ck_assert_int_eq(fnx_error_code(e), FNX_E_INDEX);
    ck_assert_str_eq(fnx_error_message(e), "index 7");

    pthread_t t[4];
    void *code;
    pthread_create(t, NULL, raise_it, e);
    pthread_join(t[0], &code);
    ck_assert_int_eq((intptr_t)code, FNX_E_INDEX);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, count_up_and_down, e);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);

    ck_assert_int_eq(fnx_error_raise(e), FNX_E_INDEX);
    fnx_error_unref(e);
    fnx_error_unref(NULL);
    ck_assert_str_eq(fnx_last_error()->message, "index 7");
    ck_assert_str_eq(fnx_last_error()->op, "gather");
    ck_assert_str_eq(fnx_last_error()->chain, "reading y");
}
END_TEST

/* ---- logs -------------------------------------------------------------------------------------------------------- */

static struct {
    int n, level;
    char topic[32], text[256];
} got;

static void take(void *user, int level, const char *topic, const char *text) {
    ck_assert_ptr_eq(user, &got);
    got.n++, got.level = level;
    snprintf(got.topic, sizeof got.topic, "%s", topic);
    snprintf(got.text, sizeof got.text, "%s", text);
}

START_TEST(perror_logs_the_last_error_and_returns_its_code) {
    fnx_log_set(take, &got);
    (void)fnx_error_set(FNX_E_IO, "disk full");
    fnx_error_add_context("saving");
    ck_assert_int_eq(fnx_perror("training"), FNX_E_IO);
    fnx_log_set(NULL, NULL);
    ck_assert_int_eq(got.n, 1);
    ck_assert_int_eq(got.level, FNX_LOG_ERROR);
    ck_assert_str_eq(got.text, "training: disk full; while saving");
}
END_TEST

START_TEST(warnings_are_logged_and_debugging_is_not) {
    got.n = 0;
    fnx_log_set(take, &got);
    fnx_log_write(FNX_TOPIC_MEMORY, FNX_LOG_INFO, "no");
    ck_assert(!fnx_log_enabled(FNX_TOPIC_MEMORY, FNX_LOG_INFO));
    ck_assert_int_eq(got.n, 0);
    fnx_log_write(FNX_TOPIC_MEMORY, FNX_LOG_WARNING, "%d bytes", 64);
    fnx_log_set(NULL, NULL);
    ck_assert_int_eq(got.n, 1);
    ck_assert_str_eq(got.topic, "memory");
    ck_assert_str_eq(got.text, "64 bytes");
}
END_TEST

static void log_once_more(void *user, int level, const char *topic, const char *text) {
    (void)user, (void)topic;
    fnx_log_write(FNX_TOPIC_ENV, level, "about %s", text);
}

/* Each topic at each level, one line per message. */
static int scenario_log(void) {
    static const char *const names[] = {"error", "warning", "info", "debug", "trace"};
    for (int level = FNX_LOG_ERROR; level <= FNX_LOG_TRACE; level++) {
        fnx_log_write(FNX_TOPIC_GRAPH, level, "graph at %s", names[level]);
        fnx_log_write(FNX_TOPIC_DISPATCH, level, "dispatch at %s", names[level]);
    }
    return 0;
}

static int scenario_nested(void) {
    fnx_log_set(log_once_more, NULL);
    fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_ERROR, "something");
    return 0;
}

START_TEST(the_environment_chooses_topics_and_levels) {
    char out[4096];
    child_run("FORNAX_LOG=graph,dispatch=trace", "log", out, sizeof out);
    CK_CONTAINS(out, "fornax: graph: debug: graph at debug\n");
    CK_LACKS(out, "graph at trace");
    CK_CONTAINS(out, "dispatch at trace");
    child_run("FORNAX_LOG=info,graph=error", "log", out, sizeof out);
    CK_CONTAINS(out, "dispatch at info");
    CK_LACKS(out, "dispatch at debug");
    CK_CONTAINS(out, "graph at error");
    CK_LACKS(out, "graph at warning");
    child_run("FORNAX_LOG=error", "log", out, sizeof out);
    CK_LACKS(out, "warning");
    child_run("FORNAX_LOG=grahp=trace,,dispatch=loud,graph", "log", out, sizeof out);
    CK_CONTAINS(out, "graph at debug");
    CK_CONTAINS(out, "is no topic[=level]");
}
END_TEST

START_TEST(a_callback_may_log_itself) {
    char out[4096];
    child_run("FORNAX_LOG=", "nested", out, sizeof out);
    ck_assert_str_eq(out, "fornax: env: error: about something\n");
}
END_TEST

/* ---- environment ------------------------------------------------------------------------------------------------- */

static int scenario_environment(void) {
    setenv("FORNAX_DEVICE", "later", 1);
    printf("device %s\n", fnx_env_text("FORNAX_DEVICE"));
    setenv("FORNAX_DEVICE", "even later", 1);
    printf("device %s\n", fnx_env_text("FORNAX_DEVICE"));
    printf("on %d lazy %d foreign %s debug %d unknown %d elevated %d\n", fnx_env_on("FORNAX_NO_USER_PLUGINS"),
           fnx_env_on("FORNAX_LAZY"), fnx_env_foreign("XDG_DATA_HOME"), fnx_debug_handles(),
           fnx_env_text("FORNAX_NO_SUCH") != NULL, fnx_env_elevated());
    if (fnx_env_option("acme-gpu", "speed")) printf("speed %s\n", fnx_env_option("acme-gpu", "speed"));
    fflush(stdout);
    fnx_env_warn_of_unknown((const char *const[]){"acme-gpu"}, 1);
    return 0;
}

START_TEST(variables_are_read_once) {
    char out[4096];
    child_run("FORNAX_NO_USER_PLUGINS=1 FORNAX_LAZY=Off XDG_DATA_HOME=/data FORNAX_DEBUG=x,handles FORNAX_NO_SUCH=1",
              "environment", out, sizeof out);
    CK_CONTAINS(out, "device later\ndevice later\non 1 lazy 0 foreign /data debug 1 unknown 0 elevated 0\n");
}
END_TEST

START_TEST(unknown_variables_are_warned_of_with_the_closest_known) {
    char out[4096];
    child_run(
        "FORNAX_DEVCIE=cpu FORNAX_QQQQQQQQQQQQQ=1 FORNAX_TEST_X=1 FORNAX_BENCH_X=1 FORNAXX=1 FORNAX_ACME_GPU_SPEED=9",
        "environment", out, sizeof out);
    CK_CONTAINS(out, "FORNAX_DEVCIE is not known; did you mean FORNAX_DEVICE?\n");
    CK_CONTAINS(out, "FORNAX_QQQQQQQQQQQQQ is not known\n");
    CK_LACKS(out, "FORNAX_TEST");
    CK_LACKS(out, "FORNAX_BENCH");
    CK_LACKS(out, "FORNAXX");
    CK_CONTAINS(out, "speed 9\n");
    CK_LACKS(out, "FORNAX_ACME_GPU_SPEED is");
}
END_TEST

/* ---- allocation -------------------------------------------------------------------------------------------------- */

START_TEST(sizes_that_overflow_are_refused) {
    int64_t x;
    ck_assert_ptr_null(fnx_alloc_array(SIZE_MAX / 4, 8));
    ck_assert_ptr_null(fnx_alloc_array((size_t)1 << 33, (size_t)1 << 33));
    ck_assert(!fnx_size_mul(INT64_MAX / 2, 3, &x));
    ck_assert(!fnx_size_add(INT64_MAX, 1, &x));
    ck_assert(fnx_size_mul(INT64_MAX, 1, &x) && x == INT64_MAX);
    ck_assert(fnx_size_add(INT64_MAX, -1, &x) && x == INT64_MAX - 1);

    void *array = NULL;
    int64_t capacity = 0;
    ck_assert(!fnx_grow(&array, &capacity, 1 << 20, INT64_MAX / 2));
    ck_assert(array == NULL && capacity == 0);
}
END_TEST

START_TEST(an_array_keeps_its_items_while_it_grows) {
    int *array = NULL;
    int64_t capacity = 0, moves = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t before = capacity;
        ck_assert(fnx_grow((void **)&array, &capacity, sizeof *array, i + 1));
        ck_assert_int_gt(capacity, i);
        moves += capacity != before;
        array[i] = i;
    }
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(array[i], i);
    ck_assert_int_lt(moves, 12);
    free(array);
}
END_TEST

START_TEST(an_allocation_of_nothing_is_a_block) {
    void *p = fnx_alloc(0), *q = fnx_alloc_array(0, 8);
    char *text = fnx_alloc_format("%s-%d", "a", 3);
    ck_assert(p && q);
    ck_assert_str_eq(text, "a-3");
    free(p), free(q), free(text);
}
END_TEST

/* ---- hash -------------------------------------------------------------------------------------------------------- */

enum { HASH_BYTES = 96 };

static void hash(const unsigned char *data, size_t n, uint64_t out[2]) {
    out[0] = 1, out[1] = 2;
    fnx_hash128(data, n, out);
}

static int bits_between(const uint64_t a[2], const uint64_t b[2]) {
    return __builtin_popcountll(a[0] ^ b[0]) + __builtin_popcountll(a[1] ^ b[1]);
}

START_TEST(every_bit_of_the_input_changes_half_of_the_hash) {
    unsigned char data[HASH_BYTES];
    uint64_t before[2], after[2];
    double sum = 0;
    int n = 0;
    for (int i = 0; i < HASH_BYTES; i++) data[i] = (unsigned char)(i * 37);
    for (size_t length = 1; length <= HASH_BYTES; length += 5)
        for (size_t bit = 0; bit < 8 * length; bit++, n++) {
            hash(data, length, before);
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            hash(data, length, after);
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            ck_assert_int_gt(bits_between(before, after), 24);
            sum += bits_between(before, after);
        }
    ck_assert_msg(sum / n > 62 && sum / n < 66, "%g bits of 128 change on average", sum / n);
}
END_TEST

START_TEST(the_length_and_what_came_before_count) {
    const unsigned char zeros[HASH_BYTES] = {0};
    uint64_t h[HASH_BYTES + 1][2], once[2], twice[2];
    for (size_t i = 0; i <= HASH_BYTES; i++) {
        hash(zeros, i, h[i]);
        for (size_t k = 0; k < i; k++) ck_assert_int_gt(bits_between(h[i], h[k]), 24);
    }
    hash(zeros, 32, once);
    hash(zeros, 16, twice);
    fnx_hash128(zeros + 16, 16, twice);
    ck_assert_int_gt(bits_between(once, twice), 24);
}
END_TEST

/* ---- spelling ---------------------------------------------------------------------------------------------------- */

START_TEST(the_closest_name_is_found_if_it_is_close) {
    static const char *const names[] = {"cpu", "cuda", "vulkan", "remote"};
    static const char *const cases[][2] = {{"cuad", "cuda"},    {"gpu", "cpu"}, {"vulcan", "vulkan"},
                                           {"remot", "remote"}, {"cpu", "cpu"}, {"tensorflow", NULL},
                                           {"xyz", NULL},       {"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_pstr_eq(fnx_spell_closest(cases[i][0], names, 4), cases[i][1]);
    ck_assert_pstr_eq(fnx_spell_closest("cpu", names, 0), NULL);
    char text[1000];
    memset(text, 'c', sizeof text);
    text[sizeof text - 1] = 0;
    fnx_spell_closest(text, names, 4);
}
END_TEST

/* ---- forks ------------------------------------------------------------------------------------------------------- */

static int check_in_child(void) {
    pid_t child = fork();
    if (child == 0) _exit(fnx_fork_check() == FNX_E_FORKED ? 1 : 0);
    int status = -1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static int scenario_fork(void) {
    const int before = check_in_child();
    const fnx_status code = fnx_fork_check();
    printf("%d %d %d\n", before, code, check_in_child());
    return 0;
}

START_TEST(a_child_is_refused_if_its_parent_had_begun) {
    char out[256];
    child_run("FORNAX_LOG=", "fork", out, sizeof out);
    ck_assert_str_eq(out, "0 0 1\n");
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {{"log", scenario_log},
                 {"nested", scenario_nested},
                 {"environment", scenario_environment},
                 {"fork", scenario_fork}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof *scenarios; i++)
        if (!strcmp(argv[1], scenarios[i].name)) return scenarios[i].run();
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_code_has_its_name);
    tcase_add_test(t, an_error_stays_until_the_next_one_of_its_thread);
    tcase_add_test(t, a_message_may_be_made_of_the_last_one);
    tcase_add_test(t, the_chain_grows_outwards_and_is_bounded);
    tcase_add_test(t, a_message_that_is_too_long_is_cut);
    tcase_add_test(t, try_returns_the_first_failure);
    tcase_add_test(t, an_error_object_outlives_its_record_and_moves_to_other_threads);
    tcase_add_test(t, perror_logs_the_last_error_and_returns_its_code);
    tcase_add_test(t, warnings_are_logged_and_debugging_is_not);
    tcase_add_test(t, the_environment_chooses_topics_and_levels);
    tcase_add_test(t, a_callback_may_log_itself);
    tcase_add_test(t, variables_are_read_once);
    tcase_add_test(t, unknown_variables_are_warned_of_with_the_closest_known);
    tcase_add_test(t, sizes_that_overflow_are_refused);
    tcase_add_test(t, an_array_keeps_its_items_while_it_grows);
    tcase_add_test(t, an_allocation_of_nothing_is_a_block);
    tcase_add_test(t, every_bit_of_the_input_changes_half_of_the_hash);
    tcase_add_test(t, the_length_and_what_came_before_count);
    tcase_add_test(t, the_closest_name_is_found_if_it_is_close);
    tcase_add_test(t, a_child_is_refused_if_its_parent_had_begun);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
