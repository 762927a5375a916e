/* The registry: where manifests are found and which wins, whom it trusts, how plugins are loaded, and what it says
 * about all that. Each test makes its own folders, and a registry of them. */
#include "registry/process.h"
#include "support/child.h"

#include <dlfcn.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LIBRARIES TEST_BUILD_DIR "/tests/plugins"

static char root[sizeof TEST_BUILD_DIR + 32];
static fnx_places places;
static fnx_registry *registry;
static const char *kind; /* of the manifests that are written */

/* ---- folders ----------------------------------------------------------------------------------------------------- */

/* "root/name"; of the last eight. */
static const char *at(const char *name) {
    static char text[8][512];
    static int n;
    char *path = text[n++ % 8];
    snprintf(path, sizeof text[0], "%s/%s", root, name);
    return path;
}

static void folder(const char *name) { ck_assert_int_eq(mkdir(at(name), 0755), 0); }

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(at(name), "w");
    ck_assert_msg(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", at(name));
    ck_assert_int_eq(chmod(at(name), 0644), 0);
}

#define ABI "\"abi\": {\"major\": 0, \"minor\": 0, \"epoch\": 1}"

/* A manifest of `library` with more keys. Only sanitized plugins fit into a sanitized build. */
static void manifest(const char *file, const char *name, const char *library, const char *more) {
    static const char *const words[] = {"",   "\"address\"",   "\"thread\"",
                                        NULL, "\"undefined\"", "\"address\", \"undefined\""};
    char text[2048];
    snprintf(text, sizeof text,
             "{\"manifest_version\": 1, \"name\": \"%s\", \"version\": \"0.1.0\", \"kind\": \"%s\", " ABI
             ", \"build\": [%s], \"library\": \"%s\"%s%s}",
             name, kind, words[FORNAX_BUILD_SANITIZERS], library, *more ? ", " : "", more);
    write_file(file, text);
}

/* One that could be loaded. */
static void good(const char *file, const char *name) {
    const bool system = !strncmp(file, "admin/", 6) || !strncmp(file, "system", 6);
    manifest(file, name, system ? "fake-good.so" : LIBRARIES "/fake-good.so", "");
}

static void mask(const char *file, const char *name) {
    char text[128];
    snprintf(text, sizeof text, "{\"manifest_version\": 1, \"name\": \"%s\", \"enabled\": false}", name);
    write_file(file, text);
}

static void quiet(void *user, int level, const char *topic, const char *text) {
    (void)user, (void)level, (void)topic, (void)text;
}

static void setup(void) {
    fnx_log_set(quiet, NULL);
    snprintf(root, sizeof root, "%s/tests/registry.XXXXXX", TEST_BUILD_DIR);
    ck_assert_ptr_nonnull(mkdtemp(root));
    folder("path"), folder("user"), folder("admin"), folder("admin/plugins.d"), folder("system"), folder("system2");
    static char text[5][512];
    const char *const names[] = {"path", "user", "admin/plugins.d", "system", "system2"};
    for (int i = 0; i < 5; i++) snprintf(text[i], sizeof text[i], "%s", at(names[i]));
    static char policy[512];
    snprintf(policy, sizeof policy, "%s", at("admin"));
    places = (fnx_places){.path = text[0],
                          .user = text[1],
                          .admin = text[2],
                          .system = {text[3], text[4]},
                          .policy = policy,
                          .libraries = LIBRARIES};
    registry = NULL, kind = "backend";
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *w) {
    (void)s, (void)type, (void)w;
    return remove(path);
}

static void teardown(void) {
    fnx_registry_destroy(registry);
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void search(void) {
    fnx_registry_destroy(registry);
    registry = fnx_registry_create(&places);
    ck_assert_ptr_nonnull(registry);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

static fnx_plugin_description number(int i) {
    fnx_plugin_description d = {.struct_size = sizeof d};
    ck_assert_int_eq(fnx_registry_describe(registry, i, &d), FNX_OK);
    return d;
}

static fnx_plugin_description of(const char *file) {
    for (int i = 0; i < fnx_registry_count(registry); i++)
        if (!strcmp(number(i).manifest, at(file))) return number(i);
    ck_abort_msg("%s was not found", file);
}

static void is(const char *file, const char *state, const char *reason) {
    const fnx_plugin_description d = of(file);
    ck_assert_msg(!strcmp(d.shadowed ? "shadowed" : d.state, state), "%s is %s (%s), not %s", file,
                  d.shadowed ? "shadowed" : d.state, d.reason, state);
    if (reason) CK_CONTAINS(d.reason, reason);
    else ck_assert_str_eq(d.reason, "");
}

static void rejected(const char *file, const char *reason) {
    search();
    is(file, "rejected", reason);
}

/* The files in the order of the list. */
static void order(const char *first, ...) {
    va_list list;
    int i = 0;
    va_start(list, first);
    for (const char *file = first; file; file = va_arg(list, const char *), i++)
        ck_assert_str_eq(number(i).manifest, at(file));
    va_end(list);
    ck_assert_int_eq(fnx_registry_count(registry), i);
}

static const char *explain(const char *name) {
    static char text[8192];
    ck_assert_uint_lt(fnx_registry_explain(registry, name, text, sizeof text), sizeof text);
    return text;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

START_TEST(the_first_manifest_of_a_name_wins) {
    static const char *const files[] = {"system2/a.json", "system/a.json", "admin/plugins.d/a.json", "user/a.json",
                                        "path/a.json"};
    for (int i = 0; i < 5; i++) {
        good(files[i], "a");
        search();
        is(files[i], "found", NULL);
        for (int k = 0; k < i; k++) is(files[k], "shadowed", at(files[i]));
        ck_assert_int_eq(fnx_registry_count(registry), i + 1);
    }
    order("path/a.json", "user/a.json", "admin/plugins.d/a.json", "system/a.json", "system2/a.json", NULL);
    ck_assert_str_eq(number(0).origin, "FORNAX_PLUGIN_PATH");
    ck_assert_str_eq(number(1).origin, "the user");
    ck_assert_str_eq(number(2).origin, "the administrator");
    ck_assert_str_eq(number(4).origin, "the system");
}
END_TEST

START_TEST(within_a_folder_the_order_is_bytewise) {
    static const char *const files[] = {"path/b.json",  "path/B.json", "path/a-.json",      "path/a.json",
                                        "path/10.json", "path/9.json", "path/\xc3\xa4.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%zu", i);
        good(files[i], name);
    }
    write_file("path/.hidden.json", "{}");
    write_file("path/a.json~", "{}");
    write_file("path/.json", "{}");
    search();
    order("path/10.json", "path/9.json", "path/B.json", "path/a-.json", "path/a.json", "path/b.json",
          "path/\xc3\xa4.json", NULL);
}
END_TEST

START_TEST(priority_comes_before_the_order_of_names) {
    manifest("path/a.json", "x", LIBRARIES "/fake-good.so", "\"priority\": -1");
    manifest("path/b.json", "x", LIBRARIES "/fake-good.so", "");
    manifest("path/c.json", "x", LIBRARIES "/fake-good.so", "\"priority\": 5");
    manifest("path/d.json", "x", LIBRARIES "/fake-good.so", "\"priority\": 5");
    manifest("user/a.json", "x", LIBRARIES "/fake-good.so", "\"priority\": 900");
    search();
    order("path/c.json", "path/d.json", "path/b.json", "path/a.json", "user/a.json", NULL);
    is("path/c.json", "found", NULL);
}
END_TEST

START_TEST(the_path_names_folders_and_manifests_and_never_the_working_directory) {
    char path[2048];
    folder("more");
    good("path/a.json", "a"), good("more/b.json", "b"), good("more/c.json", "c"), good("user/here.json", "here");
    snprintf(path, sizeof path, ":%s/more/c.json::%s/no-such-folder:%s/path:%s/more/no-such.json:", root, root, root,
             root);
    places.path = path, places.user = NULL;
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(at("user")), 0);
    search();
    ck_assert_int_eq(chdir(before), 0);
    order("more/c.json", "path/a.json", NULL);
    CK_CONTAINS(explain("nobody"), "no-such-folder (FORNAX_PLUGIN_PATH): No such file or directory");
}
END_TEST

START_TEST(a_rejected_manifest_takes_no_name) {
    write_file("path/a.json", "{\"manifest_version\": 1, \"name\": \"a\"}");
    write_file("user/a.json", "nonsense");
    good("system/a.json", "a");
    search();
    is("path/a.json", "rejected", "\"version\" is missing");
    is("user/a.json", "rejected", "line 1");
    is("system/a.json", "found", NULL);
    ck_assert_str_eq(of("user/a.json").name, "a"); /* called what its file is called */
}
END_TEST

START_TEST(a_mask_hides_what_comes_after_it) {
    mask("user/m.json", "a");
    good("system/a.json", "a"), good("system2/a.json", "a");
    search();
    is("user/m.json", "masked", "\"enabled\" is false");
    is("system/a.json", "masked", at("user/m.json"));
    is("system2/a.json", "masked", at("user/m.json"));
    good("path/a.json", "a");
    search();
    is("path/a.json", "found", NULL);
    is("system/a.json", "shadowed", at("path/a.json"));
}
END_TEST

START_TEST(a_mask_of_the_administrator_beats_users_but_not_the_program) {
    mask("admin/plugins.d/m.json", "a");
    good("path/a.json", "a"), good("user/a.json", "a"), good("system/a.json", "a"), good("path/b.json", "b");
    search();
    is("path/a.json", "masked", at("admin/plugins.d/m.json"));
    is("user/a.json", "masked", at("admin/plugins.d/m.json"));
    is("system/a.json", "masked", at("admin/plugins.d/m.json"));
    is("path/b.json", "found", NULL);
    folder("own");
    good("own/a.json", "a");
    ck_assert_int_eq(fnx_registry_add(registry, at("own/a.json")), FNX_OK);
    is("own/a.json", "found", NULL);
}
END_TEST

START_TEST(an_unmet_requirement_gates_and_keeps_the_name) {
    manifest("path/a.json", "a", LIBRARIES "/fake-good.so",
             "\"requires\": {\"paths\": [\"/dev/null\", \"/no/such/thing\"]}");
    good("system/a.json", "a");
    search();
    is("path/a.json", "gated", "/no/such/thing");
    is("system/a.json", "shadowed", at("path/a.json"));
}
END_TEST

START_TEST(a_required_plugin_must_be_usable) {
    manifest("path/a.json", "a", LIBRARIES "/fake-good.so", "\"requires\": {\"plugins\": [\"b\"]}");
    manifest("path/b.json", "b", LIBRARIES "/fake-good.so", "\"requires\": {\"plugins\": [\"c\"]}");
    search();
    is("path/a.json", "gated", "the plugin b, which is gated");
    is("path/b.json", "gated", "the plugin c, which is not there");
    good("system/c.json", "c");
    search();
    is("path/a.json", "found", NULL);
    is("path/b.json", "found", NULL);
    mask("user/c.json", "c");
    search();
    is("path/b.json", "gated", "the plugin c, which is masked");
}
END_TEST

/* ---- the administrator's policy ---------------------------------------------------------------------------------- */

START_TEST(the_policy_chooses_the_default_device) {
    search();
    ck_assert_ptr_null(registry->policy.default_device);
    write_file("admin/fornax.json", "{\"default_device\": \"cuda:1\", \"user_plugins\": \"merge\", \"x-note\": []}");
    good("path/a.json", "a");
    search();
    ck_assert_str_eq(registry->policy.default_device, "cuda:1");
    is("path/a.json", "found", NULL);
}
END_TEST

START_TEST(a_policy_against_user_plugins_is_kept_also_when_it_is_broken) {
    static const char *const policies[] = {
        "{\"user_plugins\": \"none\"}", "{\"user_plugins\": \"nome\"}",   "{\"user_plugins\": none}", "",
        "{\"default_device\": 1}",      "{\"config\": {\"cpu\": \"x\"}}", "{\"config\": []}",
    };
    good("path/a.json", "a"), good("user/b.json", "b"), good("system/c.json", "c");
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        write_file("admin/fornax.json", policies[i]);
        search();
        order("system/c.json", NULL);
        CK_CONTAINS(explain("a"), "not searched: the administrator's policy");
    }
    ck_assert_int_eq(chmod(at("admin/fornax.json"), 0666), 0);
    search();
    order("system/c.json", NULL);
}
END_TEST

/* ---- trust ------------------------------------------------------------------------------------------------------- */

START_TEST(what_everybody_can_write_is_not_trusted) {
    folder("lib");
    char command[2048];
    snprintf(command, sizeof command, "cp %s/fake-good.so %s/lib/x.so", LIBRARIES, root);
    ck_assert_int_eq(system(command), 0);
    manifest("path/a.json", "a", at("lib/x.so"), "");
    search();
    is("path/a.json", "found", NULL);

    chmod(at("path/a.json"), 0666);
    rejected("path/a.json", "path/a.json can be written by everybody");
    chmod(at("path/a.json"), 0644), chmod(at("path"), 01777);
    rejected("path/a.json", "path can be written by everybody");
    chmod(at("path"), 0755), chmod(at("lib/x.so"), 0777);
    rejected("path/a.json", "lib/x.so can be written by everybody");
    chmod(at("lib/x.so"), 0755), chmod(at("lib"), 0777);
    rejected("path/a.json", "lib can be written by everybody");
    chmod(at("lib"), 0755);
    search();
    is("path/a.json", "found", NULL);
}
END_TEST

START_TEST(what_belongs_to_somebody_else_is_not_trusted) {
    if (geteuid() != 0) return; /* only root can give files away */
    good("path/a.json", "a");
    ck_assert_int_eq(chown(at("path/a.json"), 12345, 0), 0);
    rejected("path/a.json", "belongs to user 12345");
    ck_assert_int_eq(chown(at("path/a.json"), 0, 0), 0);
    ck_assert_int_eq(chown(at("path"), 12345, 0), 0);
    rejected("path/a.json", "path belongs to user 12345");
}
END_TEST

START_TEST(links_are_followed_into_trusted_folders_only) {
    folder("open");
    good("open/a.json", "a");
    ck_assert_int_eq(symlink(at("open/a.json"), at("path/a.json")), 0);
    search();
    is("path/a.json", "found", NULL);
    chmod(at("open"), 0777);
    rejected("path/a.json", "open can be written by everybody");
    chmod(at("open"), 0755), chmod(at("path"), 0777);
    rejected("path/a.json", "path can be written by everybody");
    chmod(at("path"), 0755);

    manifest("path/b.json", "b", "b.so", "");
    ck_assert_int_eq(symlink(LIBRARIES "/fake-good.so", at("path/b.so")), 0);
    search();
    is("path/b.json", "found", NULL);
    ck_assert_str_eq(of("path/b.json").library, LIBRARIES "/fake-good.so");
}
END_TEST

START_TEST(only_regular_files_are_read) {
    ck_assert_int_eq(mkfifo(at("path/a.json"), 0644), 0);
    folder("path/b.json");
    ck_assert_int_eq(symlink(at("no-such-file"), at("path/c.json")), 0);
    manifest("path/d.json", "d", at("path"), "");
    search();
    is("path/a.json", "rejected", "no regular file");
    is("path/b.json", "rejected", "no regular file");
    is("path/c.json", "rejected", "No such file");
    is("path/d.json", "rejected", "no regular file");
}
END_TEST

START_TEST(a_library_is_found_beside_its_manifest_or_in_the_plugin_folder) {
    manifest("path/a.json", "a", "no-such.so", "");
    manifest("system/b.json", "b", "no-such.so", "");
    manifest("system/c.json", "c", LIBRARIES "/fake-good.so", "");
    manifest("admin/plugins.d/d.json", "d", "sub/fake-good.so", "");
    search();
    is("path/a.json", "rejected", "path/no-such.so: No such file");
    is("system/b.json", "rejected", LIBRARIES "/no-such.so: No such file");
    is("system/c.json", "rejected", "plain name of a file in " LIBRARIES);
    is("admin/plugins.d/d.json", "rejected", "plain name of a file in " LIBRARIES);
}
END_TEST

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* A counter of a fake plugin. */
static int counter(const char *variation, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/fake-%s.so", LIBRARIES, variation);
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    const int *n = handle ? dlsym(handle, name) : NULL;
    return n ? *n : -1;
}

/* path/fake.json of a variation. */
static void fake(const char *variation, const char *more) {
    char library[1024];
    snprintf(library, sizeof library, "%s/fake-%s.so", LIBRARIES, variation);
    manifest("path/fake.json", "fake", library, more);
    search();
    is("path/fake.json", "found", NULL);
}

static fnx_status load(void) {
    fnx_candidate *one;
    return fnx_registry_load(registry, "fake", &one);
}

START_TEST(nothing_is_loaded_until_it_is_asked_for) {
    fake("good", "");
    explain("fake");
    ck_assert_int_eq(counter("good", "fake_inits"), -1);
    ck_assert_int_eq(load(), FNX_OK);
    ck_assert_int_eq(load(), FNX_OK);
    is("path/fake.json", "ready", NULL);
    ck_assert_int_eq(counter("good", "fake_inits"), 1);
}
END_TEST

static const struct {
    const char *variation, *reason;
} breaches[] = {
    {"name", "names itself 'somebody', its manifest 'fake'"},
    {"undefined", "nobody_defines_this"},
    {"absent", "has no symbol fornax_plugin_v0"},
    {"borrowed", "not in the library itself"},
    {"function", "is not data"},
    {"size", "its descriptor claims"},
    {"claim", "its descriptor claims"},
    {"magic", "magic number"},
    {"epoch", "made for ABI epoch 2, its manifest says 1"},
    {"build", "sanitizers"},
    {"init", "has no init"},
    {"open", "has no device_open"},
};

START_TEST(a_library_that_breaks_a_rule_fails_before_any_of_its_functions_runs) {
    fake(breaches[_i].variation, "");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    is("path/fake.json", "failed", breaches[_i].reason);
    CK_CONTAINS(fnx_last_error()->message, breaches[_i].reason);
    CK_CONTAINS(fnx_last_error()->message, at("path/fake.json"));
    ck_assert_str_eq(fnx_last_error()->plugin, "fake");
    ck_assert_int_le(counter(breaches[_i].variation, "fake_inits"), 0);
}
END_TEST

START_TEST(an_older_descriptor_without_the_optional_end_is_accepted) {
    fake("old", "");
    ck_assert_int_eq(load(), FNX_OK);
}
END_TEST

START_TEST(a_file_that_is_no_library_fails_with_the_linker_s_words) {
    write_file("path/text.so", "text");
    manifest("path/fake.json", "fake", "text.so", "");
    search();
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    is("path/fake.json", "failed", "text.so: file too short");
}
END_TEST

START_TEST(a_failed_init_is_not_tried_again) {
    fake("good", "\"config\": {\"fail\": \"no driver\"}");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    is("path/fake.json", "failed", "no driver");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    CK_CONTAINS(fnx_last_error()->message, "no driver");
    ck_assert_int_eq(counter("good", "fake_inits"), 1);
}
END_TEST

START_TEST(a_failed_init_without_words_gets_some) {
    fake("good", "\"config\": {\"silent\": -14}");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    is("path/fake.json", "failed", "init of plugin fake: FNX_E_IO");
    fake("good", "\"config\": {\"silent\": 3}");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    is("path/fake.json", "failed", "returned 3, which is no status");
}
END_TEST

static void *load_in_thread(void *out) {
    *(fnx_status *)out = load();
    return NULL;
}

START_TEST(threads_that_ask_at_once_load_once_and_no_lock_is_held_meanwhile) {
    enum { THREADS = 6 };
    pthread_t t[THREADS];
    fnx_status code[THREADS];
    char more[1024];
    snprintf(more, sizeof more, "\"config\": {\"wait\": \"%s\"}", at("go"));
    fake("good", more);
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, load_in_thread, &code[i]);
    while (strcmp(of("path/fake.json").state, "loading") != 0) usleep(100);
    CK_CONTAINS(explain("fake"), "loading");
    write_file("go", "");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        ck_assert_int_eq(code[i], FNX_OK);
    }
    ck_assert_int_eq(counter("good", "fake_inits"), 1);
}
END_TEST

START_TEST(a_forked_child_cannot_load) {
    fake("good", "");
    ck_assert_int_eq(load(), FNX_OK);
    pid_t child = fork();
    if (child == 0) _exit(load() == FNX_E_FORKED ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* Opens, and tells what the device got as `threads`; the code if it cannot be opened. */
static fnx_status open_device(const char *address, const char *options, char name[64]) {
    const fnx_device_table *table;
    void *device;
    fnx_device_info info = {.struct_size = sizeof info};
    fnx_status code = fnx_registry_open(registry, "fake", address, options, &table, &device);
    if (code) {
        ck_assert(table == NULL && device == NULL);
        return code;
    }
    ck_assert_int_eq(table->info(device, &info), FNX_OK);
    memcpy(name, info.name, 64);
    table->close(device);
    return FNX_OK;
}

static void gets(const char *options, const char *expected) {
    char name[64];
    ck_assert_msg(open_device("0", options, name) == FNX_OK, "%s", fnx_last_error()->message);
    ck_assert_str_eq(name, expected);
}

START_TEST(an_option_comes_from_the_device_then_the_administrator_then_the_manifest) {
    fake("good", "");
    gets("", "threads none");
    gets("threads=3", "threads 3");
    fake("good", "\"config\": {\"threads\": 7}");
    gets("", "threads 7");
    gets("threads=", "threads ");
    write_file("admin/fornax.json", "{\"config\": {\"fake\": {\"threads\": 5}, \"other\": {\"threads\": 6}}}");
    fake("good", "\"config\": {\"threads\": 7}");
    gets("", "threads 5");
    gets("threads=3", "threads 3");
}
END_TEST

START_TEST(an_option_that_the_plugin_does_not_have_is_an_error_and_leaks_no_device) {
    char name[64];
    fake("good", "");
    ck_assert_int_eq(open_device("0", "threads=2&colour=blue", name), FNX_E_INVALID);
    CK_CONTAINS(fnx_last_error()->message, "no option 'colour'; it has: threads");
    ck_assert_int_eq(counter("good", "fake_open_devices"), 0);
    ck_assert_int_eq(open_device("0", "threads=2&threads=2", name), FNX_E_INVALID);
    CK_CONTAINS(fnx_last_error()->message, "threads is there twice");
    ck_assert_int_eq(open_device("0", "threads", name), FNX_E_INVALID);
    CK_CONTAINS(fnx_last_error()->message, "expected key=value, got 'threads'");
    char many[1024] = "a=1";
    for (int i = 0; i < 20; i++) snprintf(many + strlen(many), sizeof many - strlen(many), "&k%d=1", i);
    ck_assert_int_eq(open_device("0", many, name), FNX_E_INVALID);
    memset(many, 'x', sizeof many - 1);
    ck_assert_int_eq(open_device("0", many, name), FNX_E_INVALID);
    gets("threads=2", "threads 2");
}
END_TEST

START_TEST(a_device_that_cannot_be_opened_says_why) {
    static const struct {
        const char *address, *says;
        fnx_status code;
    } cases[] = {{"bad", "no device bad", FNX_E_NOT_FOUND},
                 {"mute", "device_open of plugin fake: FNX_E_NO_MEMORY", FNX_E_NO_MEMORY},
                 {"odd", "returned 7, which is no status", FNX_E_INTERNAL},
                 {"empty", "gave no device table", FNX_E_PLUGIN}};
    char name[64];
    fake("good", "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(open_device(cases[i].address, "", name), cases[i].code);
        CK_CONTAINS(fnx_last_error()->message, cases[i].says);
        ck_assert_str_eq(fnx_last_error()->plugin, "fake");
        CK_CONTAINS(fnx_last_error()->chain, "opening device fake:");
    }
}
END_TEST

START_TEST(an_extension_has_no_devices) {
    char name[64];
    kind = "extension";
    fake("open", "");
    ck_assert_int_eq(open_device("0", "", name), FNX_E_INVALID);
    CK_CONTAINS(fnx_last_error()->message, "fake is an extension");
}
END_TEST

static char listed[1024];
static int stop_after;

static int list(void *user, const char *plugin, const char *address, const char *reason) {
    ck_assert_ptr_eq(user, listed);
    snprintf(listed + strlen(listed), sizeof listed - strlen(listed), "%s:%s %s\n", plugin, address ? address : "-",
             reason ? reason : "");
    return --stop_after == 0;
}

static const char *list_all(int stop) {
    listed[0] = 0, stop_after = stop;
    ck_assert_int_eq(fnx_registry_list(registry, list, listed), FNX_OK);
    return listed;
}

START_TEST(every_device_of_every_backend_is_listed_with_what_is_wrong) {
    manifest("path/a.json", "a", LIBRARIES "/fake-good.so", "\"requires\": {\"paths\": [\"/no/such\"]}");
    mask("path/m.json", "m");
    write_file("path/z.json", "{}");
    good("system/a.json", "a");
    fake("good", "\"config\": {\"devices\": 3}");
    ck_assert_str_eq(list_all(0), "a:- gated: it requires /no/such, which is not there\n"
                                  "fake:0 \nfake:1 \nfake:2 \n"
                                  "m:- masked: \"enabled\" is false in it, which masks the name\n"
                                  "z:- rejected: \"manifest_version\" is missing\n");
    ck_assert_str_eq(list_all(3), "a:- gated: it requires /no/such, which is not there\nfake:0 \nfake:1 \n");
    fake("good", "\"config\": {\"devices\": 0}");
    CK_CONTAINS(list_all(0), "fake:- it sees no device on this machine\n");
}
END_TEST

/* ---- texts and programs ------------------------------------------------------------------------------------------ */

START_TEST(the_explanation_names_every_candidate_and_why_it_is_not_used) {
    write_file("path/fake.json", "nonsense");
    manifest("user/x.json", "fake", "no-such.so", "\"colour\": 1");
    good("system/fake.json", "fake"), good("system2/fake.json", "fake"), good("system/other.json", "other");
    search();
    const char *text = explain("fake");
    CK_CONTAINS(text, "plugin fake can be used:\n");
    CK_CONTAINS(text, "path/fake.json (FORNAX_PLUGIN_PATH): rejected: line 1");
    CK_CONTAINS(text, "user/x.json (the user): rejected: ");
    CK_CONTAINS(text, "no-such.so: No such file or directory; unknown key \"colour\"");
    CK_CONTAINS(text, "system/fake.json (the system): found\n");
    CK_CONTAINS(text, "system2/fake.json (the system): shadowed: ");
    CK_LACKS(text, "other");

    mask("admin/plugins.d/fake.json", "fake");
    search();
    CK_CONTAINS(explain("fake"), "plugin fake cannot be used:\n");
    ck_assert_int_eq(load(), FNX_E_PLUGIN);
    ck_assert_str_eq(fnx_last_error()->plugin, "fake");
    CK_CONTAINS(fnx_last_error()->message, "masked by ");
}
END_TEST

START_TEST(without_a_manifest_the_error_lists_all_others_and_where_was_looked) {
    good("system/fakir.json", "fakir");
    search();
    ck_assert_int_eq(load(), FNX_E_NOT_FOUND);
    const char *text = explain("fake");
    CK_CONTAINS(fnx_last_error()->message, "there is no plugin 'fake'; did you mean 'fakir'?\n");
    CK_CONTAINS(text, "fakir: ");
    CK_CONTAINS(text, "path (FORNAX_PLUGIN_PATH): 0 manifests");
    CK_CONTAINS(text, "system (the system): 1 manifest\n");
}
END_TEST

START_TEST(an_explanation_that_does_not_fit_is_cut_and_its_length_told) {
    char small[20], whole[8192];
    good("path/fake.json", "fake");
    search();
    const size_t n = fnx_registry_explain(registry, "fake", whole, sizeof whole);
    ck_assert_uint_eq(n, strlen(whole));
    ck_assert_uint_eq(fnx_registry_explain(registry, "fake", NULL, 0), n);
    ck_assert_uint_eq(fnx_registry_explain(registry, "fake", small, sizeof small), n);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    ck_assert_int_eq(strncmp(small, whole, sizeof small - 1), 0);
}
END_TEST

START_TEST(a_program_can_add_manifests_until_the_name_is_in_use) {
    folder("own");
    good("own/fake.json", "fake"), good("own/late.json", "fake"), good("path/fake.json", "fake");
    write_file("own/bad.json", "{}");
    search();
    ck_assert_int_eq(fnx_registry_add(registry, at("own/no-such.json")), FNX_E_NOT_FOUND);
    ck_assert_int_eq(fnx_registry_add(registry, at("own/bad.json")), FNX_E_PLUGIN);
    CK_CONTAINS(fnx_last_error()->message, "own/bad.json: \"manifest_version\" is missing");
    is("own/bad.json", "rejected", "\"manifest_version\" is missing");
    ck_assert_int_eq(fnx_registry_add(registry, at("own/fake.json")), FNX_OK);
    is("own/fake.json", "found", NULL);
    is("path/fake.json", "shadowed", "own/fake.json");
    ck_assert_str_eq(number(0).origin, "the program");
    ck_assert_int_eq(load(), FNX_OK);
    ck_assert_int_eq(fnx_registry_add(registry, at("own/late.json")), FNX_E_INVALID);
    CK_CONTAINS(fnx_last_error()->message, "fake is in use already");
    is("own/fake.json", "ready", NULL);
}
END_TEST

START_TEST(a_description_fills_what_the_caller_has_room_for) {
    manifest("path/a.json", "a", LIBRARIES "/fake-good.so",
             "\"summary\": \"s\", \"license\": \"MIT\", \"devices\": [\"a\", \"b\"], \"tier\": 1");
    search();
    const fnx_plugin_description all = number(0);
    ck_assert_str_eq(all.version, "0.1.0");
    ck_assert_str_eq(all.kind, "backend");
    ck_assert_str_eq(all.summary, "s");
    ck_assert_str_eq(all.license, "MIT");
    ck_assert_str_eq(all.devices, "a, b");
    ck_assert_str_eq(all.library, LIBRARIES "/fake-good.so");
    ck_assert_int_eq(all.tier, 1);
    fnx_plugin_description d = {.struct_size = offsetof(fnx_plugin_description, kind), .kind = "mine"};
    ck_assert_int_eq(fnx_registry_describe(registry, 0, &d), FNX_OK);
    ck_assert_str_eq(d.version, "0.1.0");
    ck_assert_str_eq(d.kind, "mine");
    d.struct_size = 0;
    ck_assert_int_eq(fnx_registry_describe(registry, 0, &d), FNX_E_INVALID);
    d.struct_size = sizeof d;
    ck_assert_int_eq(fnx_registry_describe(registry, 1, &d), FNX_E_NOT_FOUND);
    ck_assert_int_eq(fnx_registry_describe(registry, -1, &d), FNX_E_NOT_FOUND);
}
END_TEST

/* The process's own registry, through what programs call. */
static int scenario_process(void) {
    char text[4096];
    fnx_plugin_explain("fake", text, sizeof text);
    printf("%s", text);
    for (int i = 0; i < fnx_plugin_count(); i++) {
        fnx_plugin_description d = {.struct_size = sizeof d};
        if (fnx_plugin_describe(i, &d)) return 1;
        printf("%s by %s\n", d.name, d.origin);
    }
    return 0;
}

START_TEST(the_process_looks_where_the_environment_says) {
    char environment[2048], out[8192];
    good("path/fake.json", "fake");
    folder("data"), folder("data/fornax"), folder("data/fornax/plugins.d");
    good("data/fornax/plugins.d/mine.json", "mine");
    snprintf(environment, sizeof environment, "FORNAX_PLUGIN_PATH='%s' XDG_DATA_HOME='%s'", at("path"), at("data"));
    child_run(environment, "process", out, sizeof out);
    CK_CONTAINS(out, "fake by FORNAX_PLUGIN_PATH\n");
    if (getuid() == 0) CK_LACKS(out, "mine"); /* root takes no code from a home */
    else CK_CONTAINS(out, "mine by the user\n");
    strcat(environment, " FORNAX_NO_USER_PLUGINS=1");
    child_run(environment, "process", out, sizeof out);
    CK_CONTAINS(out, "there is no plugin 'fake'");
    CK_CONTAINS(out, "not searched: FORNAX_NO_USER_PLUGINS\n");
    CK_LACKS(out, "mine by");
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------------ */

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "process")) return scenario_process();
    Suite *s = suite_create("registry");
    TCase *t = tcase_create("registry");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_first_manifest_of_a_name_wins);
    tcase_add_test(t, within_a_folder_the_order_is_bytewise);
    tcase_add_test(t, priority_comes_before_the_order_of_names);
    tcase_add_test(t, the_path_names_folders_and_manifests_and_never_the_working_directory);
    tcase_add_test(t, a_rejected_manifest_takes_no_name);
    tcase_add_test(t, a_mask_hides_what_comes_after_it);
    tcase_add_test(t, a_mask_of_the_administrator_beats_users_but_not_the_program);
    tcase_add_test(t, an_unmet_requirement_gates_and_keeps_the_name);
    tcase_add_test(t, a_required_plugin_must_be_usable);
    tcase_add_test(t, the_policy_chooses_the_default_device);
    tcase_add_test(t, a_policy_against_user_plugins_is_kept_also_when_it_is_broken);
    tcase_add_test(t, what_everybody_can_write_is_not_trusted);
    tcase_add_test(t, what_belongs_to_somebody_else_is_not_trusted);
    tcase_add_test(t, links_are_followed_into_trusted_folders_only);
    tcase_add_test(t, only_regular_files_are_read);
    tcase_add_test(t, a_library_is_found_beside_its_manifest_or_in_the_plugin_folder);
    tcase_add_test(t, nothing_is_loaded_until_it_is_asked_for);
    tcase_add_loop_test(t, a_library_that_breaks_a_rule_fails_before_any_of_its_functions_runs, 0,
                        sizeof breaches / sizeof *breaches);
    tcase_add_test(t, an_older_descriptor_without_the_optional_end_is_accepted);
    tcase_add_test(t, a_file_that_is_no_library_fails_with_the_linker_s_words);
    tcase_add_test(t, a_failed_init_is_not_tried_again);
    tcase_add_test(t, a_failed_init_without_words_gets_some);
    tcase_add_test(t, threads_that_ask_at_once_load_once_and_no_lock_is_held_meanwhile);
    tcase_add_test(t, a_forked_child_cannot_load);
    tcase_add_test(t, an_option_comes_from_the_device_then_the_administrator_then_the_manifest);
    tcase_add_test(t, an_option_that_the_plugin_does_not_have_is_an_error_and_leaks_no_device);
    tcase_add_test(t, a_device_that_cannot_be_opened_says_why);
    tcase_add_test(t, an_extension_has_no_devices);
    tcase_add_test(t, every_device_of_every_backend_is_listed_with_what_is_wrong);
    tcase_add_test(t, the_explanation_names_every_candidate_and_why_it_is_not_used);
    tcase_add_test(t, without_a_manifest_the_error_lists_all_others_and_where_was_looked);
    tcase_add_test(t, an_explanation_that_does_not_fit_is_cut_and_its_length_told);
    tcase_add_test(t, a_program_can_add_manifests_until_the_name_is_in_use);
    tcase_add_test(t, a_description_fills_what_the_caller_has_room_for);
    tcase_add_test(t, the_process_looks_where_the_environment_says);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
