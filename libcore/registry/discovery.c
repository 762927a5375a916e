/* Where manifests are looked for, and which candidate of a name wins: the first in the search order, unless an admin's mask
 * beats it. Within a directory the order is bytewise. Never: the working directory, the executable's, ld.so's. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "registry/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fornax/plugins.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFESTS_MAX = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fnx_candidate *candidates, **tail = &candidates;
static bool discovered;
static char looked_at[4096]; /* for "where was looked" */
static struct { char *default_device; bool no_user_plugins; } policy;

/* ---- the list -------------------------------------------------------------------------------------------------------------- */

static void append(fnx_candidate *c) {
    if (!c) return;
    *tail = c, tail = &c->next;
}

static void look_in_file(const char *path, fnx_origin origin) { append(fnx_manifest_read(path, origin)); }

static int bytewise(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void look_in_directory(const char *directory, fnx_origin origin) {
    size_t n = strlen(looked_at);
    snprintf(looked_at + n, sizeof looked_at - n, "%s%s", n ? ", " : "", directory);
    DIR *d = opendir(directory);
    if (!d) {
        if (errno != ENOENT) fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: %s", directory, strerror(errno));
        return;
    }
    char *names[MANIFESTS_MAX];
    int count = 0;
    for (struct dirent *e; (e = readdir(d));) {
        size_t k = strlen(e->d_name);
        if (k < 6 || strcmp(e->d_name + k - 5, ".json") || e->d_name[0] == '.') continue;
        if (count == MANIFESTS_MAX) {
            fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: only the first %d manifests are read", directory, MANIFESTS_MAX);
            break;
        }
        if ((names[count] = fnx_alloc_format("%s/%s", directory, e->d_name))) count++;
    }
    closedir(d);
    qsort(names, (size_t)count, sizeof *names, bytewise);
    for (int i = 0; i < count; i++) {
        look_in_file(names[i], origin);
        free(names[i]);
    }
}

static void look_in_path(const char *list) {
    char entry[PATH_MAX];
    for (const char *p = list; p && *p;) {
        size_t n = strcspn(p, ":");
        struct stat s;
        if (n && n < sizeof entry) {
            snprintf(entry, sizeof entry, "%.*s", (int)n, p);
            if (!stat(entry, &s) && S_ISDIR(s.st_mode)) look_in_directory(entry, FNX_ORIGIN_PATH);
            else look_in_file(entry, FNX_ORIGIN_PATH);
        }
        p += n + (p[n] == ':');
    }
}

static void look_in_home(void) {
    const char *data = fnx_env_foreign("XDG_DATA_HOME"), *home = fnx_env_foreign("HOME");
    char path[PATH_MAX];
    if (geteuid() == 0 || fnx_env_elevated()) return;
    if (data && data[0] == '/') snprintf(path, sizeof path, "%s/fornax/plugins.d", data);
    else if (home && home[0] == '/') snprintf(path, sizeof path, "%s/.local/share/fornax/plugins.d", home);
    else return;
    look_in_directory(path, FNX_ORIGIN_USER);
}

/* /etc/fornax/fornax.json; what is wrong with it is warned of, and the rest holds. */
static void read_policy(void) {
    json_error_t error;
    const char *path = FORNAX_SYSCONFDIR "/fornax/fornax.json";
    if (access(path, F_OK)) return;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    const json_t *device = json_object_get(root, "default_device"), *user = json_object_get(root, "user_plugins");
    if (!root) fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: line %d: %s", path, error.line, error.text);
    if (json_is_string(device)) policy.default_device = fnx_alloc_string(json_string_value(device));
    if (json_is_string(user)) policy.no_user_plugins = !strcmp(json_string_value(user), "none");
    json_decref(root);
}

/* First name wins; an admin's mask also beats what programs' users added. */
static void decide(void) {
    for (fnx_candidate *c = candidates; c; c = c->next) {
        c->shadowed = false;
        if (!c->name) continue;
        for (fnx_candidate *before = candidates; before != c && !c->shadowed; before = before->next)
            c->shadowed = before->name && !strcmp(before->name, c->name) && before->state != FNX_PLUGIN_REJECTED;
    }
    for (fnx_candidate *mask = candidates; mask; mask = mask->next) {
        if (mask->state != FNX_PLUGIN_MASKED || mask->origin != FNX_ORIGIN_ADMIN) continue;
        for (fnx_candidate *c = candidates; c; c = c->next)
            if (c->name && !strcmp(c->name, mask->name) && c->state == FNX_PLUGIN_FOUND && c->origin != FNX_ORIGIN_PROGRAM)
                fnx_candidate_reject(c, FNX_PLUGIN_MASKED, "disabled by the admin in %s", mask->manifest);
    }
}

static void discover_locked(void) {
    static const char *const system[] = {"/usr/local/share/fornax/plugins.d", "/usr/share/fornax/plugins.d"};
    if (discovered) return;
    discovered = true;
    read_policy();
    const char *no_user = fnx_env_text("FORNAX_NO_USER_PLUGINS");
    bool user = !policy.no_user_plugins && !(no_user && strcmp(no_user, "0"));
    if (user) look_in_path(fnx_env_text("FORNAX_PLUGIN_PATH"));
    if (user) look_in_home();
    look_in_directory(FORNAX_SYSCONFDIR "/fornax/plugins.d", FNX_ORIGIN_ADMIN);
    bool own = false;
    for (int i = 0; i < 2; i++) own |= !strcmp(FORNAX_DATADIR "/fornax/plugins.d", system[i]);
    if (!own) look_in_directory(FORNAX_DATADIR "/fornax/plugins.d", FNX_ORIGIN_SYSTEM);
    for (int i = 0; i < 2; i++) look_in_directory(system[i], FNX_ORIGIN_SYSTEM);
    decide();
}

fnx_candidate *fnx_candidates(void) {
    pthread_mutex_lock(&lock);
    discover_locked();
    fnx_candidate *first = candidates;
    pthread_mutex_unlock(&lock);
    return first;
}

fnx_candidate *fnx_candidate_find(const char *name) {
    fnx_candidate *c = fnx_candidates();
    while (c && !(c->name && !strcmp(c->name, name) && !c->shadowed && c->state != FNX_PLUGIN_REJECTED)) c = c->next;
    return c;
}

const char *fnx_registry_default_device(void) {
    fnx_candidates();
    return policy.default_device;
}

/* ---- the public list ---------------------------------------------------------------------------------------------------------- */

fnx_status fnx_plugin_add_manifest(const char *path) {
    fnx_candidate *c = path ? fnx_manifest_read(path, FNX_ORIGIN_PROGRAM) : NULL;
    if (!c) return fnx_error_set(path ? FNX_E_NO_MEMORY : FNX_E_INVALID, "plugin_add_manifest: %s", path ? "no host memory" : "the path is NULL");
    if (c->state == FNX_PLUGIN_REJECTED) {
        fnx_status code = fnx_error_set(access(path, F_OK) ? FNX_E_NOT_FOUND : FNX_E_PLUGIN, "%s: %s", path, c->reason);
        fnx_candidate_destroy(c);
        return code;
    }
    pthread_mutex_lock(&lock);
    discover_locked();
    c->next = candidates, candidates = c;
    if (tail == &candidates) tail = &c->next;
    decide();
    pthread_mutex_unlock(&lock);
    return FNX_OK;
}

static const char *const state_names[] = {"found", "masked", "gated", "rejected", "loading", "ready", "failed"};

int fnx_plugin_count(void) {
    int n = 0;
    for (const fnx_candidate *c = fnx_candidates(); c; c = c->next) n++;
    return n;
}

fnx_status fnx_plugin_describe(int i, fnx_plugin_description *out) {
    const fnx_candidate *c = fnx_candidates();
    uint32_t size = out->struct_size;
    for (int k = 0; c && k < i; k++) c = c->next;
    if (!c || i < 0) return fnx_error_set(FNX_E_NOT_FOUND, "there is no plugin number %d", i);
    if (size < sizeof(uint32_t)) return fnx_error_set(FNX_E_INVALID, "plugin_describe: set struct_size first");
#define TEXT(s) ((s) ? (s) : "")
    fnx_plugin_description d = {.struct_size = size, .shadowed = c->shadowed, .name = TEXT(c->name), .version = TEXT(c->version), .kind = TEXT(c->kind),
                                .summary = TEXT(c->summary), .license = TEXT(c->license), .devices = TEXT(c->devices), .state = state_names[c->state],
                                .reason = c->reason, .manifest = c->manifest, .library = TEXT(c->library)};
    memcpy(out, &d, size < sizeof d ? size : sizeof d);
    return FNX_OK;
}

size_t fnx_plugin_explain(const char *name, char *out, size_t size) {
    size_t n = 0;
    bool any = false;
    const fnx_candidate *used = fnx_candidate_find(name);
#define ADD(...) n += (size_t)snprintf(n < size ? out + n : NULL, n < size ? size - n : 0, __VA_ARGS__)
    for (const fnx_candidate *c = fnx_candidates(); c; c = c->next) {
        /* a manifest too broken to have a name counts by its file's */
        const char *slash = strrchr(c->manifest, '/'), *file = slash ? slash + 1 : c->manifest;
        bool mine = c->name ? !strcmp(c->name, name) : !strncmp(file, name, strlen(name)) && !strcmp(file + strlen(name), ".json");
        if (!mine) continue;
        any = true;
        ADD("%s: %s%s%s%s\n", c->manifest, c->shadowed ? "not used, an earlier manifest of this name comes first" : state_names[c->state],
            *c->reason ? ": " : "", c->reason, c == used ? " (this one is used)" : "");
    }
    if (!any) ADD("no manifest of a plugin named '%s' was found in %s\n", name, *looked_at ? looked_at : "any directory");
    ADD("plugins there are:");
    int listed = 0;
    for (const fnx_candidate *c = fnx_candidates(); c; c = c->next)
        if (c->name && !c->shadowed) ADD("%s %s", listed++ ? "," : "", c->name);
    ADD("%s\n", listed ? "" : " none");
    return n;
}
