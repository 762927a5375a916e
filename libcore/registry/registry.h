/* Plugins: found through manifests, loaded when first needed, never unloaded.
 *
 *   manifest.c    one file -> one candidate, checked field by field
 *   discovery.c   the search order: which candidate of a name wins
 *   load.c        dlopen, the descriptor, the host table; opening devices
 *
 * Start-up reads manifests only. The list of candidates is made once and only grows; the lock is never held in plugin code. */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include "base/error.h"

#include <fornax-plugin/plugin.h>

typedef enum fnx_plugin_state { /* order of a life; MASKED, GATED, REJECTED and FAILED are ends */
    FNX_PLUGIN_FOUND, FNX_PLUGIN_MASKED, FNX_PLUGIN_GATED, FNX_PLUGIN_REJECTED, FNX_PLUGIN_LOADING, FNX_PLUGIN_READY, FNX_PLUGIN_FAILED
} fnx_plugin_state;

enum { FNX_REASON_BYTES = 512 };

typedef enum fnx_origin { /* where a manifest was found; earlier ones win */
    FNX_ORIGIN_PROGRAM, FNX_ORIGIN_PATH, FNX_ORIGIN_USER, FNX_ORIGIN_ADMIN, FNX_ORIGIN_SYSTEM
} fnx_origin;

typedef struct fnx_candidate {
    char *manifest;          /* path of the manifest */
    char *name, *version, *kind, *summary, *license, *devices, *library;
    fnx_origin origin;
    fnx_plugin_state state;
    bool shadowed, enabled;
    uint32_t epoch, build;
    char reason[FNX_REASON_BYTES];
    void *config;            /* json_t: defaults of the plugin's options, or NULL */
    const fnx_plugin *plugin; /* READY */
    void *context;
    struct fnx_candidate *next;
} fnx_candidate;

/* Opens a device of the plugin of this name, loading it if need be. `options`: key=value&..., which the plugin reads through
 * the host table's config; one that it does not read is an error. */
fnx_status fnx_registry_device_open(const char *plugin, const char *address, const char *options, const fnx_device_table **out_table,
                                    void **out_device);

/* Every device of every plugin that loads: address "0", "1", ...; for a plugin that does not, address NULL and the reason. */
fnx_status fnx_registry_devices(int (*each)(void *user, const char *plugin, const char *address, const char *reason), void *user);

/* The admin's default, or NULL. */
const char *fnx_registry_default_device(void);

/* ---- between the files ---------------------------------------------------------------------------------------------------- */

/* A candidate for the manifest file; REJECTED with a reason where it is not right. NULL: no host memory. */
fnx_candidate *fnx_manifest_read(const char *path, fnx_origin origin);
void fnx_candidate_destroy(fnx_candidate *c);
fnx_status fnx_candidate_reject(fnx_candidate *c, fnx_plugin_state state, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whether file and directory belong to root or us and only they can write there. `fd` is open; false with `why`. */
bool fnx_trusted(int fd, const char *path, char *why, size_t size);
bool fnx_trusted_directory(const char *file, char *why, size_t size);

/* The list in search order, made at the first call. */
fnx_candidate *fnx_candidates(void);
/* The one that is used for a name, or NULL. */
fnx_candidate *fnx_candidate_find(const char *name);

/* READY, or the error why not. */
fnx_status fnx_candidate_load(fnx_candidate *c);

#endif
