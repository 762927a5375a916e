/* The list of candidates and the rules that choose among them. */
#include "registry/catalog.h"

#include "base/alloc.h"
#include "base/log.h"
#include "registry/trust.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fnx_kept {
    struct fnx_kept *next;
    char text[];
} fnx_kept;

static const char *const origin_names[] = {"the program", "FORNAX_PLUGIN_PATH", "the user", "the administrator",
                                           "the system"};
static const char *const state_names[] = {"found", "masked", "gated", "rejected", "loading", "ready", "failed"};

const char *fnx_origin_name(fnx_origin origin) { return origin_names[origin]; }
const char *fnx_state_name(fnx_plugin_state state) { return state_names[state]; }

static const char *keep(fnx_catalog *c, const char *text) {
    const size_t n = strlen(text) + 1;
    fnx_kept *k = fnx_alloc(sizeof *k + n);
    if (!k) return "no host memory for the reason";
    memcpy(k->text, text, n);
    k->next = c->kept, c->kept = k;
    return k->text;
}

void fnx_candidate_set(fnx_catalog *c, fnx_candidate *one, fnx_plugin_state state, const char *reason) {
    one->state = state;
    if (strcmp(one->reason, reason) != 0) one->reason = *reason ? keep(c, reason) : "";
}

void fnx_candidate_destroy(fnx_candidate *one) {
    if (!one) return;
    fnx_manifest_finish(&one->manifest);
    free(one->path), free(one->library), free(one->stem), free(one->own_reason), free(one);
}

void fnx_catalog_finish(fnx_catalog *c) {
    for (int64_t i = 0; i < c->n; i++) fnx_candidate_destroy(c->list[i]);
    for (int64_t i = 0; i < c->n_looked; i++) free(c->looked[i].place);
    for (fnx_kept *k = c->kept, *next; k; k = next) next = k->next, free(k);
    free(c->list), free(c->looked);
    *c = (fnx_catalog){.n = 0};
}

/* ---- one manifest ------------------------------------------------------------------------------------------------ */

static bool is_system(fnx_origin origin) { return origin == FNX_ORIGIN_ADMIN || origin == FNX_ORIGIN_SYSTEM; }

/* Where the library is sought: in our folder if the manifest is the system's, else beside the manifest. */
static char *library_path(const fnx_candidate *one, const fnx_places *places) {
    const char *library = one->manifest.library, *slash = strrchr(one->path, '/');
    if (is_system(one->origin)) return fnx_alloc_format("%s/%s", places->libraries ? places->libraries : "", library);
    if (*library == '/') return fnx_alloc_string(library);
    return fnx_alloc_format("%.*s/%s", slash ? (int)(slash - one->path) : 1, slash ? one->path : ".", library);
}

/* The library is there and may be trusted. It is looked at again when it is loaded. */
static bool check_library(fnx_candidate *one, const fnx_places *places, fnx_reason *why) {
    char *canonical = NULL;
    if (is_system(one->origin) && strchr(one->manifest.library, '/'))
        return fnx_refuse(why, "\"library\" must be the plain name of a file in %s, because this is a manifest of %s",
                          places->libraries ? places->libraries : "the plugin folder", fnx_origin_name(one->origin));
    if (!(one->library = library_path(one, places))) return fnx_refuse(why, "no host memory");
    int fd = fnx_trust_open(one->library, &canonical, NULL, why);
    if (fd < 0) return false;
    close(fd);
    free(one->library);
    one->library = canonical;
    return true;
}

static void read_all(fnx_candidate *one, const fnx_places *places, fnx_reason *why) {
    const bool good = fnx_manifest_read(one->path, &one->manifest, why) &&
                      (!one->manifest.enabled || check_library(one, places, why));
    if (*one->manifest.name) one->name = one->manifest.name;
    if (!good) one->own_state = FNX_PLUGIN_REJECTED;
    else if (!fnx_manifest_fits(&one->manifest, why)) one->own_state = FNX_PLUGIN_GATED;

    /* What the user of this process named is theirs to put right; what is wrong with an installation, not. */
    const int level = one->origin <= FNX_ORIGIN_PATH ? FNX_LOG_WARNING : FNX_LOG_INFO;
    if (!good) fnx_log_write(FNX_TOPIC_REGISTRY, level, "%s: rejected: %s", one->path, why->text);
    if (*one->manifest.notes) fnx_log_write(FNX_TOPIC_REGISTRY, level, "%s: %s", one->path, one->manifest.notes);
}

/* "/a/acme.json" -> "acme" */
static char *stem_of(const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const size_t n = strlen(file);
    return fnx_alloc_format("%.*s", (int)(n > 5 && !strcmp(file + n - 5, ".json") ? n - 5 : n), file);
}

fnx_candidate *fnx_candidate_read(const fnx_places *places, const char *path, fnx_origin origin) {
    fnx_reason why = {""};
    fnx_candidate *one = calloc(1, sizeof *one);
    if (one) one->path = fnx_alloc_string(path), one->stem = stem_of(path);
    if (one && one->path && one->stem) {
        one->origin = origin, one->name = one->stem, one->reason = "";
        read_all(one, places, &why);
        if ((one->own_reason = fnx_alloc_string(why.text))) return one;
    }
    fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: no host memory to read it", path);
    fnx_candidate_destroy(one);
    return NULL;
}

bool fnx_catalog_insert(fnx_catalog *c, fnx_candidate *one, bool first) {
    if (!one || !fnx_grow((void **)&c->list, &c->capacity, sizeof *c->list, c->n + 1)) {
        fnx_candidate_destroy(one);
        return false;
    }
    if (first) memmove(c->list + 1, c->list, (size_t)c->n * sizeof *c->list);
    c->list[first ? 0 : c->n] = one;
    c->n++;
    return true;
}

/* ---- who serves a name ------------------------------------------------------------------------------------------- */

static bool same_name(const fnx_candidate *a, const char *name) { return !strcmp(a->name, name); }

static bool loaded(const fnx_candidate *one) { return one->state >= FNX_PLUGIN_LOADING; }

static fnx_candidate *choose(const fnx_catalog *c, const char *name) {
    fnx_candidate *first = NULL, *admin = NULL;
    for (int64_t i = 0; i < c->n; i++) {
        fnx_candidate *one = c->list[i];
        if (!same_name(one, name) || one->own_state == FNX_PLUGIN_REJECTED) continue;
        if (!first) first = one;
        if (!admin && one->origin == FNX_ORIGIN_ADMIN) admin = one;
    }
    const bool masked = admin && !admin->manifest.enabled && first->origin != FNX_ORIGIN_PROGRAM;
    return masked ? admin : first;
}

static void place(fnx_catalog *c, fnx_candidate *one, const fnx_candidate *winner) {
    fnx_reason why = {""};
    fnx_plugin_state state = one->own_state;
    one->shadowed_by = NULL;
    if (state != FNX_PLUGIN_REJECTED && !winner->manifest.enabled) {
        state = FNX_PLUGIN_MASKED;
        if (one == winner) (void)fnx_refuse(&why, "\"enabled\" is false in it, which masks the name");
        else (void)fnx_refuse(&why, "masked by %s", winner->path);
    } else if (state != FNX_PLUGIN_REJECTED && one != winner) {
        one->shadowed_by = winner;
        (void)fnx_refuse(&why, "%s comes first", winner->path);
    } else {
        (void)fnx_refuse(&why, "%s", one->own_reason);
    }
    fnx_candidate_set(c, one, state, why.text);
}

/* A plugin that requires one which cannot be loaded cannot be either; repeated, because that may hold for others
 * in turn. */
static bool gate_by_plugins(fnx_catalog *c) {
    bool changed = false;
    for (int64_t i = 0; i < c->n; i++) {
        fnx_candidate *one = c->list[i];
        size_t k;
        json_t *item;
        if (one->state != FNX_PLUGIN_FOUND || one->shadowed_by) continue;
        json_array_foreach(one->manifest.plugins, k, item) {
            const char *name = json_string_value(item);
            const fnx_candidate *other = fnx_catalog_find(c, name);
            fnx_reason why;
            if (other && (other->state == FNX_PLUGIN_FOUND || (loaded(other) && other->state != FNX_PLUGIN_FAILED)))
                continue;
            (void)fnx_refuse(&why, "it requires the plugin %s, which is %s", name,
                             other ? fnx_state_name(other->state) : "not there");
            fnx_candidate_set(c, one, FNX_PLUGIN_GATED, why.text);
            changed = true;
            break;
        }
    }
    return changed;
}

void fnx_catalog_resolve(fnx_catalog *c) {
    for (int64_t i = 0; i < c->n; i++)
        if (!loaded(c->list[i])) place(c, c->list[i], choose(c, c->list[i]->name));
    while (gate_by_plugins(c)) continue;
}

fnx_candidate *fnx_catalog_find(const fnx_catalog *c, const char *name) {
    fnx_candidate *one = choose(c, name);
    for (int64_t i = 0; i < c->n && !one; i++)
        if (same_name(c->list[i], name)) one = c->list[i];
    return one;
}
