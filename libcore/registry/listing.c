/* <fornax/plugins.h>: what was found, in which state, and why; texts for people. */
#include "registry/process.h"

#include "base/alloc.h"
#include "base/spell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fnx_registry_count(fnx_registry *r) {
    pthread_mutex_lock(&r->lock);
    const int n = (int)r->catalog.n;
    pthread_mutex_unlock(&r->lock);
    return n;
}

fnx_status fnx_registry_describe(fnx_registry *r, int i, fnx_plugin_description *out) {
    const uint32_t size = out->struct_size;
    if (size < sizeof(uint32_t)) return fnx_error_set(FNX_E_INVALID, "plugin_describe: set struct_size first");
    pthread_mutex_lock(&r->lock);
    const bool there = i >= 0 && i < r->catalog.n;
    fnx_plugin_description d = {.struct_size = size};
    if (there) {
        const fnx_candidate *one = r->catalog.list[i];
        const fnx_manifest *m = &one->manifest;
        d = (fnx_plugin_description){
            .struct_size = size,
            .shadowed = one->shadowed_by != NULL,
            .name = one->name,
            .version = m->version,
            .kind = m->kind,
            .summary = m->summary,
            .license = m->license,
            .devices = m->devices ? m->devices : "",
            .state = fnx_state_name(one->state),
            .reason = one->reason,
            .manifest = one->path,
            .library = one->library ? one->library : "",
            .origin = fnx_origin_name(one->origin),
            .tier = (int32_t)m->tier,
        };
    }
    pthread_mutex_unlock(&r->lock);
    if (!there) return fnx_error_set(FNX_E_NOT_FOUND, "there is no plugin number %d", i);
    memcpy(out, &d, size < sizeof d ? size : sizeof d);
    return FNX_OK;
}

/* A plugin that is in use cannot be replaced. */
static const fnx_candidate *in_use(const fnx_catalog *c, const char *name) {
    for (int64_t i = 0; i < c->n; i++)
        if (c->list[i]->state >= FNX_PLUGIN_LOADING && !strcmp(c->list[i]->name, name)) return c->list[i];
    return NULL;
}

/* The manifest is read before the lock is taken: reading may log, and whoever gets the log may ask us something. */
fnx_status fnx_registry_add(fnx_registry *r, const char *path) {
    if (access(path, F_OK)) return fnx_error_set(FNX_E_NOT_FOUND, "plugin_add_manifest: %s: %s", path, strerror(errno));
    fnx_candidate *one = fnx_candidate_read(&r->places, path, FNX_ORIGIN_PROGRAM);
    fnx_status code = FNX_OK;
    if (one && one->own_state == FNX_PLUGIN_REJECTED)
        code = fnx_error_set(FNX_E_PLUGIN, "plugin_add_manifest: %s: %s", path, one->own_reason);
    pthread_mutex_lock(&r->lock);
    const fnx_candidate *other = one && !code ? in_use(&r->catalog, one->name) : NULL;
    if (other) {
        code = fnx_error_set(FNX_E_INVALID, "plugin_add_manifest: %s: plugin %s is in use already, as %s", path,
                             one->name, other->path);
        fnx_candidate_destroy(one);
    } else if (!fnx_catalog_insert(&r->catalog, one, true)) {
        code = fnx_error_set(FNX_E_NO_MEMORY, "plugin_add_manifest: %s: no host memory", path);
    } else {
        fnx_catalog_resolve(&r->catalog);
    }
    pthread_mutex_unlock(&r->lock);
    return code;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

typedef struct text { /* as snprintf: writes what fits, counts all */
    char *out;
    size_t size, n;
} text;

static void add(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(t->n < t->size ? t->out + t->n : NULL, t->n < t->size ? t->size - t->n : 0, format, list);
    va_end(list);
    if (n > 0) t->n += (size_t)n;
}

/* "  acme: /a/acme.json (FORNAX_PLUGIN_PATH): rejected: why; notes" */
static void add_candidate(text *t, const fnx_candidate *one) {
    add(t, "  %s: %s (%s): %s", one->name, one->path, fnx_origin_name(one->origin),
        one->shadowed_by ? "shadowed" : fnx_state_name(one->state));
    add(t, "%s%s", *one->reason ? ": " : "", one->reason);
    add(t, "%s%s\n", *one->manifest.notes ? "; " : "", one->manifest.notes);
}

static bool usable(const fnx_candidate *one) {
    return one->state == FNX_PLUGIN_FOUND || one->state == FNX_PLUGIN_LOADING || one->state == FNX_PLUGIN_READY;
}

static void explain_candidates(text *t, const fnx_catalog *c, const fnx_candidate *used) {
    add(t, "plugin %s %s:\n", used->name, usable(used) ? "can be used" : "cannot be used");
    for (int64_t i = 0; i < c->n; i++)
        if (!strcmp(c->list[i]->name, used->name)) add_candidate(t, c->list[i]);
}

static void explain_absence(text *t, const fnx_catalog *c, const char *name) {
    const char **names = fnx_alloc_array((size_t)c->n, sizeof *names);
    int n = 0;
    for (int64_t i = 0; i < c->n && names; i++)
        if (c->list[i] == fnx_catalog_find(c, c->list[i]->name)) names[n++] = c->list[i]->name;
    const char *close = fnx_spell_closest(name, names, n);
    add(t, "there is no plugin '%s'", name);
    if (close) add(t, "; did you mean '%s'?", close);
    add(t, "\n");
    free(names);
    for (int64_t i = 0; i < c->n; i++) add_candidate(t, c->list[i]);
    for (int64_t i = 0; i < c->n_looked; i++)
        add(t, "  looked in %s (%s): %s\n", c->looked[i].place ? c->looked[i].place : "?",
            fnx_origin_name(c->looked[i].origin), c->looked[i].outcome);
}

size_t fnx_registry_explain(fnx_registry *r, const char *name, char *out, size_t size) {
    text t = {out, size, 0};
    if (size) *out = 0;
    pthread_mutex_lock(&r->lock);
    const fnx_candidate *used = fnx_catalog_find(&r->catalog, name);
    if (used) explain_candidates(&t, &r->catalog, used);
    else explain_absence(&t, &r->catalog, name);
    pthread_mutex_unlock(&r->lock);
    return t.n;
}

/* ---- <fornax/plugins.h> ------------------------------------------------------------------------------------------ */

fnx_status fnx_plugin_add_manifest(const char *path) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_add(r, path) : FNX_E_NO_MEMORY;
}

int fnx_plugin_count(void) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_count(r) : 0;
}

fnx_status fnx_plugin_describe(int i, fnx_plugin_description *out) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_describe(r, i, out) : FNX_E_NO_MEMORY;
}

size_t fnx_plugin_explain(const char *name, char *out, size_t size) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_explain(r, name, out, size) : 0;
}
