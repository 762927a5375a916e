/* The registry: a catalog, the administrator's policy, and a lock. The process has one; tests make their own. */
#ifndef REGISTRY_PROCESS_H
#define REGISTRY_PROCESS_H

#include "registry/catalog.h"
#include "registry/policy.h"
#include "registry/registry.h"

#include <fornax/plugins.h>

typedef struct fnx_registry {
    fnx_places places;
    fnx_policy policy;
    fnx_catalog catalog;
    pthread_mutex_t lock;   /* of all that can change; never held while code of a plugin runs */
    pthread_cond_t changed; /* a candidate is no longer LOADING */
} fnx_registry;

/* Reads policy and manifests. The texts of `places` must stay. NULL with the error set: no memory. */
fnx_registry *fnx_registry_create(const fnx_places *places);
void fnx_registry_destroy(fnx_registry *r); /* NULL-safe; what it loaded stays in the process */

/* The process's, made at the first call. */
fnx_registry *fnx_registry_process(void);

/* What registry.h and <fornax/plugins.h> offer, of this registry. */
FNX_CHECKED fnx_status fnx_registry_load(fnx_registry *r, const char *name, fnx_candidate **out);
FNX_CHECKED fnx_status fnx_registry_open(fnx_registry *r, const char *plugin, const char *address, const char *options,
                                         const fnx_device_table **out_table, void **out_device);
FNX_CHECKED fnx_status fnx_registry_list(
    fnx_registry *r, int (*each)(void *user, const char *plugin, const char *address, const char *reason), void *user);
FNX_CHECKED fnx_status fnx_registry_add(fnx_registry *r, const char *path);
int fnx_registry_count(fnx_registry *r);
FNX_CHECKED fnx_status fnx_registry_describe(fnx_registry *r, int i, fnx_plugin_description *out);
size_t fnx_registry_explain(fnx_registry *r, const char *name, char *out, size_t size);

#endif
