/* Manifests: what is accepted, what is refused and in which words. The cases are in fixtures/manifest_cases.json,
 * which check_schema.sh also holds the schema against. */
#include "base/alloc.h"
#include "registry/manifest.h"
#include "support/child.h"

#include <fornax-plugin/plugin.h>

static const char least[] = "{\"manifest_version\": 1, \"name\": \"acme\", \"version\": \"1\", \"kind\": \"backend\", "
                            "\"library\": \"acme.so\", \"abi\": {\"major\": 0, \"minor\": 0, \"epoch\": 1}";

/* `least` and more keys. */
static bool parse_with(const char *more, fnx_manifest *m, fnx_reason *why) {
    char *text = fnx_alloc_format("%s%s}", least, more);
    const bool good = fnx_manifest_parse(text, strlen(text), m, why);
    free(text);
    return good;
}

static void refused(const char *text, size_t bytes, const char *says) {
    fnx_manifest m;
    fnx_reason why = {""};
    ck_assert_msg(!fnx_manifest_parse(text, bytes, &m, &why), "accepted: %.80s", text);
    CK_CONTAINS(why.text, says);
    fnx_manifest_finish(&m);
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

/* The base with the case's "set" in it and its "drop" out of it. Sanitized builds load only their like. */
static char *manifest_of(const json_t *base, const json_t *one) {
    json_t *m = json_deep_copy(base), *words = json_object_get(m, "build"), *key;
    size_t i;
    if (FORNAX_BUILD_SANITIZERS & 1) json_array_append_new(words, json_string("address"));
    if (FORNAX_BUILD_SANITIZERS & 2) json_array_append_new(words, json_string("thread"));
    if (FORNAX_BUILD_SANITIZERS & 4) json_array_append_new(words, json_string("undefined"));
    json_object_update(m, json_object_get(one, "set"));
    json_array_foreach(json_object_get(one, "drop"), i, key) {
        const char *name = json_string_value(key);
        if (FORNAX_BUILD_SANITIZERS == 0 || strcmp(name, "build") != 0) json_object_del(m, name);
    }
    char *text = json_dumps(m, 0);
    json_decref(m);
    return text;
}

START_TEST(every_case_is_accepted_or_refused_for_the_reason_it_names) {
    json_t *file = json_load_file(TEST_SOURCE_DIR "/fixtures/manifest_cases.json", 0, NULL), *one;
    size_t i;
    ck_assert_uint_gt(json_array_size(json_object_get(file, "cases")), 100);
    json_array_foreach(json_object_get(file, "cases"), i, one) {
        const char *says = json_string_value(json_object_get(one, "says"));
        const char *about = json_string_value(json_object_get(one, "why"));
        char *text = manifest_of(json_object_get(file, "base"), one);
        fnx_manifest m;
        fnx_reason why = {""};
        const bool good = fnx_manifest_parse(text, strlen(text), &m, &why);
        ck_assert_msg(good == !says, "%s: %s", about, good ? "accepted" : why.text);
        ck_assert_msg(!says || strstr(why.text, says), "%s: \"%s\" does not say \"%s\"", about, why.text, says);
        fnx_manifest_finish(&m);
        free(text);
    }
    json_decref(file);
}
END_TEST

START_TEST(every_key_has_a_case_that_gets_it_wrong) {
    json_t *file = json_load_file(TEST_SOURCE_DIR "/fixtures/manifest_cases.json", 0, NULL), *one;
    json_t *schema = json_load_file(TEST_SOURCE_DIR "/../manifests/schema.json", 0, NULL);
    const char *key;
    size_t i;
    int n = 0;
    for (; (key = fnx_manifest_key(n)); n++) {
        bool wrong = false;
        json_array_foreach(json_object_get(file, "cases"), i, one) {
            if (json_object_get(one, "says") && json_object_get(json_object_get(one, "set"), key)) wrong = true;
        }
        ck_assert_msg(wrong, "no case gets %s wrong", key);
        ck_assert_msg(json_object_get(json_object_get(schema, "properties"), key), "the schema has no %s", key);
    }
    ck_assert_int_eq(n, json_object_size(json_object_get(schema, "properties")));
    json_decref(file), json_decref(schema);
}
END_TEST

/* ---- what is read ------------------------------------------------------------------------------------------------ */

START_TEST(all_fields_are_read) {
    static const char text[] =
        "{\"manifest_version\": 1, \"name\": \"acme\", \"version\": \"1.0.2\", \"kind\": \"extension\","
        "\"abi\": {\"major\": 0, \"minor\": 9, \"epoch\": 2}, \"library\": \"acme.so\", \"devices\": [\"acme\", "
        "\"npu\"],"
        "\"namespaces\": [\"acme\"], \"tier\": 2, \"priority\": -7, \"config\": {\"threads\": 4, \"scale\": 0.1, "
        "\"on\": true},"
        "\"requires\": {\"paths\": [\"/dev/acme\"], \"cpu\": [\"avx2\"], \"plugins\": [\"cpu\"]},"
        "\"summary\": \"An NPU\", \"license\": \"MIT\", \"build\": [\"undefined\", \"address\"], \"colour\": 1, "
        "\"x-y\": 2}";
    fnx_manifest m;
    fnx_reason why;
    ck_assert(!fnx_manifest_parse(text, strlen(text), &m, &why)); /* of another epoch, and yet all of it is known */
    ck_assert_str_eq(m.name, "acme");
    ck_assert_str_eq(m.version, "1.0.2");
    ck_assert_str_eq(m.kind, "extension");
    ck_assert_str_eq(m.library, "acme.so");
    ck_assert_str_eq(m.devices, "acme, npu");
    ck_assert_str_eq(m.summary, "An NPU");
    ck_assert_str_eq(m.license, "MIT");
    ck_assert_int_eq(m.epoch, 2);
    ck_assert_int_eq(m.tier, 2);
    ck_assert_int_eq(m.priority, -7);
    ck_assert_int_eq(m.build, 5);
    ck_assert(m.enabled);
    ck_assert_str_eq(json_string_value(json_array_get(m.paths, 0)), "/dev/acme");
    ck_assert_str_eq(json_string_value(json_array_get(m.cpu, 0)), "avx2");
    ck_assert_str_eq(json_string_value(json_array_get(m.plugins, 0)), "cpu");
    ck_assert_str_eq(fnx_json_config(m.config, "threads"), "4");
    ck_assert_str_eq(fnx_json_config(m.config, "scale"), "0.1");
    ck_assert_str_eq(fnx_json_config(m.config, "on"), "true");
    ck_assert_ptr_null(fnx_json_config(m.config, "off"));
    ck_assert_str_eq(m.notes, "unknown key \"colour\"");
    fnx_manifest_finish(&m);
}
END_TEST

START_TEST(what_is_not_given_has_a_default) {
    fnx_manifest m;
    fnx_reason why;
    ck_assert(parse_with(", \"prority\": 1", &m, &why) == (FORNAX_BUILD_SANITIZERS == 0));
    ck_assert_str_eq(m.summary, "");
    ck_assert_str_eq(m.license, "");
    ck_assert_int_eq(m.tier, -1);
    ck_assert_int_eq(m.priority, 0);
    ck_assert(m.enabled && !m.config && !m.paths && !m.devices && !m.build);
    ck_assert_str_eq(m.notes, "unknown key \"prority\", did you mean \"priority\"?");
    fnx_manifest_finish(&m);
}
END_TEST

START_TEST(a_build_with_other_sanitizers_is_refused) {
    fnx_manifest m;
    fnx_reason why;
    ck_assert(!parse_with(FORNAX_BUILD_SANITIZERS ? ", \"build\": []" : ", \"build\": [\"thread\"]", &m, &why));
    CK_CONTAINS(why.text, "both cannot be in one process");
    fnx_manifest_finish(&m);
}
END_TEST

/* ---- text that is no manifest ------------------------------------------------------------------------------------ */

START_TEST(duplicate_keys_are_refused_at_any_depth) {
    fnx_manifest m;
    fnx_reason why;
    ck_assert(!parse_with(", \"name\": \"acme\"", &m, &why));
    CK_CONTAINS(why.text, "duplicate");
    fnx_manifest_finish(&m);
    ck_assert(!parse_with(", \"config\": {\"a\": 1, \"a\": 1}", &m, &why));
    CK_CONTAINS(why.text, "duplicate");
    fnx_manifest_finish(&m);
}
END_TEST

START_TEST(more_than_64_KiB_are_refused) {
    const size_t n = FNX_JSON_BYTES + 1;
    char *text = malloc(n + 1);
    fnx_manifest m;
    fnx_reason why;
    memset(text, ' ', n);
    text[n] = 0;
    memcpy(text, "{", 1);
    memcpy(text + n - 1, "}", 1);
    refused(text, n, "65536 bytes");
    memcpy(text + n - 2, "} ", 2);
    refused(text, n - 1, "is missing");
    ck_assert(!fnx_manifest_parse(text, 0, &m, &why));
    free(text);
}
END_TEST

START_TEST(deep_nesting_is_refused_before_it_is_parsed) {
    char text[FNX_JSON_BYTES];
    memset(text, '[', sizeof text);
    refused(text, sizeof text, "nest deeper than 8");
    fnx_manifest m;
    fnx_reason why;
    ck_assert(!parse_with(", \"x-a\": [[[[[[[[1]]]]]]]]", &m, &why));
    CK_CONTAINS(why.text, "nest deeper than 8");
    fnx_manifest_finish(&m);
    ck_assert(!parse_with(", \"x-a\": \"[[[[[[[[[{{{{{\\\"[[[[[[[[\", \"tier\": 9", &m,
                          &why)); /* brackets in a text are none */
    CK_CONTAINS(why.text, "\"tier\"");
    fnx_manifest_finish(&m);
}
END_TEST

START_TEST(text_that_is_no_JSON_object_is_refused_with_its_line) {
    refused("", 0, "line 1");
    refused("[]", 2, "no JSON object");
    refused("\"acme\"", 6, "line 1"); /* JSON of old: the outermost value is an object or an array */
    refused("{} {}", 5, "line 1");
    refused("{\n\"name\": acme}", 15, "line 2");
    refused("\xef\xbb\xbf{}", 5, "line 1");                /* byte order mark */
    refused("{\"name\": \"\xff\"}", 13, "line 1");         /* not UTF-8 */
    refused("{\"name\": \"\xc0\xaf\"}", 14, "line 1");     /* overlong */
    refused("{\"name\": \"\xed\xa0\x80\"}", 15, "line 1"); /* surrogate */
    refused("{\"name\": \"a\\u0000b\"}", 20, "line 1");
    refused("{\"name\": \"a\0b\"}", 15, "line 1");
    refused("{\"priority\": 99999999999999999999}", 34, "line 1");
    refused("{\"tier\": 1e999}", 15, "line 1");
    refused("{\"a\\n\": 1}", 10, "control characters");
}
END_TEST

/* ---- gates ------------------------------------------------------------------------------------------------------- */

static bool fits(const char *list, const char *value, fnx_reason *why) {
    json_t *item = json_pack("[s]", value);
    const fnx_manifest m = {.paths = strcmp(list, "paths") ? NULL : item, .cpu = strcmp(list, "cpu") ? NULL : item};
    const bool fit = fnx_manifest_fits(&m, why);
    json_decref(item);
    return fit;
}

START_TEST(requirements_are_looked_up_on_this_machine) {
    fnx_reason why = {""};
    ck_assert(fits("paths", "/dev/null", &why));
    ck_assert(!fits("paths", "/dev/no-such-accelerator", &why));
    CK_CONTAINS(why.text, "/dev/no-such-accelerator, which is not there");
    ck_assert(!fits("cpu", "warp-drive", &why));
    CK_CONTAINS(why.text, "warp-drive");
#if defined(__x86_64__)
    char flags[8192] = "";
    FILE *f = popen("grep -m1 '^flags' /proc/cpuinfo", "r");
    ck_assert_ptr_nonnull(fgets(flags, sizeof flags, f));
    pclose(f);
    static const char *const words[][2] = {{"sse4.2", " sse4_2 "},
                                           {"avx2", " avx2 "},
                                           {"fma", " fma "},
                                           {"avx512f", " avx512f "}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        ck_assert_msg(fits("cpu", words[i][0], &why) == (strstr(flags, words[i][1]) != NULL), "%s: %s", words[i][0],
                      why.text);
#endif
}
END_TEST

int main(void) {
    Suite *s = suite_create("manifest");
    TCase *t = tcase_create("manifest");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_case_is_accepted_or_refused_for_the_reason_it_names);
    tcase_add_test(t, every_key_has_a_case_that_gets_it_wrong);
    tcase_add_test(t, all_fields_are_read);
    tcase_add_test(t, what_is_not_given_has_a_default);
    tcase_add_test(t, a_build_with_other_sanitizers_is_refused);
    tcase_add_test(t, duplicate_keys_are_refused_at_any_depth);
    tcase_add_test(t, more_than_64_KiB_are_refused);
    tcase_add_test(t, deep_nesting_is_refused_before_it_is_parsed);
    tcase_add_test(t, text_that_is_no_JSON_object_is_refused_with_its_line);
    tcase_add_test(t, requirements_are_looked_up_on_this_machine);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
