/* See policy.h. */
#include "registry/policy.h"

#include "base/alloc.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const keys[] = {"config", "default_device", "user_plugins"};
enum { KEYS = sizeof keys / sizeof *keys };

static bool read_fields(fnx_policy *p) {
    const json_t *device = json_object_get(p->root, "default_device"), *user = json_object_get(p->root, "user_plugins");
    json_t *config = json_object_get(p->root, "config"), *options;
    const char *name, *plugins = json_string_value(user);
    if (device && !json_is_string(device)) return fnx_refuse(&p->wrong, "\"default_device\" must be a text");
    if (user && (!plugins || (strcmp(plugins, "merge") != 0 && strcmp(plugins, "none") != 0)))
        return fnx_refuse(&p->wrong, "\"user_plugins\" must be \"merge\" or \"none\"");
    if (config && !json_is_object(config)) return fnx_refuse(&p->wrong, "\"config\" must be an object");
    json_object_foreach(config, name, options) {
        if (!fnx_json_is_config(options))
            return fnx_refuse(&p->wrong, "\"config\": \"%s\" must be an object of texts, numbers and booleans", name);
    }
    p->default_device = json_string_value(device);
    p->no_user_plugins = plugins && !strcmp(plugins, "none");
    return true;
}

void fnx_policy_read(const char *folder, fnx_policy *out) {
    char notes[256];
    struct stat s;
    char *path = fnx_alloc_format("%s/fornax.json", folder);
    *out = (fnx_policy){.root = NULL};
    if (path && stat(path, &s) && (errno == ENOENT || errno == ENOTDIR)) {
        /* there is none */
    } else if (!path || !(out->root = fnx_json_read(path, &out->wrong)) || !read_fields(out)) {
        out->no_user_plugins = true;
        fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING,
                      "%s: %s; until that is put right, plugins of users are not used", path ? path : folder,
                      out->wrong.text);
    } else {
        fnx_json_note_unknown(out->root, keys, KEYS, notes, sizeof notes);
        if (*notes) fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: %s", path, notes);
    }
    free(path);
}

void fnx_policy_finish(fnx_policy *p) {
    json_decref(p->root);
    *p = (fnx_policy){.root = NULL};
}

const json_t *fnx_policy_config(const fnx_policy *p, const char *plugin) {
    return json_object_get(json_object_get(p->root, "config"), plugin);
}
