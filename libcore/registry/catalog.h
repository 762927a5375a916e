/* What was found where: one candidate per manifest, in the order of the search, and which of them serves a name.
 *
 * Not locked; the registry does that. */
#ifndef REGISTRY_CATALOG_H
#define REGISTRY_CATALOG_H

#include "registry/manifest.h"

#include <fornax-plugin/plugin.h>
#include <pthread.h>

/* Where a manifest was found; earlier ones win. */
typedef enum fnx_origin {
    FNX_ORIGIN_PROGRAM,
    FNX_ORIGIN_PATH,
    FNX_ORIGIN_USER,
    FNX_ORIGIN_ADMIN,
    FNX_ORIGIN_SYSTEM
} fnx_origin;

typedef enum fnx_plugin_state {
    FNX_PLUGIN_FOUND,
    FNX_PLUGIN_MASKED,
    FNX_PLUGIN_GATED,
    FNX_PLUGIN_REJECTED,
    FNX_PLUGIN_LOADING,
    FNX_PLUGIN_READY,
    FNX_PLUGIN_FAILED
} fnx_plugin_state;

const char *fnx_origin_name(fnx_origin origin);     /* "FORNAX_PLUGIN_PATH", ... */
const char *fnx_state_name(fnx_plugin_state state); /* "found", ... */

typedef struct fnx_candidate {
    fnx_origin origin;
    fnx_manifest manifest;
    char *path;                 /* of the manifest */
    const char *name;           /* the manifest's, or if it has none that can be read, what its file is called */
    char *library;              /* canonical path, or what was looked for; NULL: not known */
    fnx_plugin_state own_state; /* FOUND, GATED or REJECTED: whatever else there is */
    char *own_reason;
    fnx_plugin_state state;
    const char *reason;                      /* "" in the states that need none */
    const struct fnx_candidate *shadowed_by; /* or NULL */

    pthread_t loader;         /* LOADING: who does */
    const fnx_plugin *plugin; /* READY */
    void *context;
    char *stem; /* storage of `name`, or NULL */
} fnx_candidate;

/* Where to look. Any member may be NULL. */
typedef struct fnx_places {
    const char *path;         /* folders and manifests with colons between */
    const char *user, *admin; /* folders of manifests */
    const char *system[4];
    const char *policy;    /* folder of fornax.json */
    const char *libraries; /* folder of the libraries that `admin` and `system` name */
    const char *no_user;   /* why `path` and `user` are not searched, or NULL */
} fnx_places;

typedef struct fnx_looked { /* one place, and what came of it */
    fnx_origin origin;
    char *place;
    char outcome[128];
} fnx_looked;

typedef struct fnx_catalog {
    fnx_candidate **list;
    fnx_looked *looked;
    struct fnx_kept *kept; /* texts of reasons: they live as long as the catalog, because listings hand them out */
    int64_t n, capacity, n_looked, looked_capacity;
} fnx_catalog;

/* Reads the manifests of all places and resolves. What does not fit into memory is left out, with a warning. */
void fnx_catalog_search(fnx_catalog *c, const fnx_places *places);
void fnx_catalog_finish(fnx_catalog *c);

/* Reads one manifest and looks at its library. NULL: no memory (logged). */
fnx_candidate *fnx_candidate_read(const fnx_places *places, const char *path, fnx_origin origin);
void fnx_candidate_destroy(fnx_candidate *one); /* NULL-safe */

/* Takes the candidate over, in front of all others or behind them. Resolve afterwards. false: no memory, or `one`
 * is NULL; it is destroyed. */
bool fnx_catalog_insert(fnx_catalog *c, fnx_candidate *one, bool first);

/* Decides who serves which name: the first that is not rejected, but a mask of the administrator beats what users
 * added. */
void fnx_catalog_resolve(fnx_catalog *c);

/* Who serves the name, in whatever state; if all candidates are rejected, the first of them; NULL: there is none. */
fnx_candidate *fnx_catalog_find(const fnx_catalog *c, const char *name);

/* Sets state and reason. Texts of reasons are kept until the catalog ends. */
void fnx_candidate_set(fnx_catalog *c, fnx_candidate *one, fnx_plugin_state state, const char *reason);

#endif
