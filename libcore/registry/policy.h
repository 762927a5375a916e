/* The administrator's policy: /etc/fornax/fornax.json (manifests/fornax.json is a sample). */
#ifndef REGISTRY_POLICY_H
#define REGISTRY_POLICY_H

#include "registry/json.h"

typedef struct fnx_policy {
    json_t *root;               /* owns the texts */
    const char *default_device; /* or NULL */
    bool no_user_plugins;
    fnx_reason wrong; /* what is wrong with the file, or "" */
} fnx_policy;

/* Reads `folder`/fornax.json, if there is one. What is wrong in it is logged as a warning, and then no plugins of
 * users are searched: a restriction must not vanish with a typing error. */
void fnx_policy_read(const char *folder, fnx_policy *out);
void fnx_policy_finish(fnx_policy *p);

/* The options that the administrator sets for a plugin, or NULL. */
const json_t *fnx_policy_config(const fnx_policy *p, const char *plugin);

#endif
