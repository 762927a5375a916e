/* What plugins get from us: the host table, and the frame of a call into a plugin, which tells its functions for
 * whom they work. */
#ifndef REGISTRY_HOST_H
#define REGISTRY_HOST_H

#include "base/error.h"

#include <fornax-plugin/plugin.h>
#include <jansson.h>

extern const fnx_host fnx_host_table;

enum { FNX_CALL_OPTIONS = 16, FNX_CALL_TEXT = 512 };

/* A call of a plugin's init or device_open on this thread. Outside of one, `config` knows nothing but its
 * fallback. */
typedef struct fnx_plugin_call {
    const char *plugin;              /* name */
    const json_t *policy, *defaults; /* options of the administrator and of the manifest; may be NULL */
    char text[FNX_CALL_TEXT];        /* storage of keys and values */
    const char *key[FNX_CALL_OPTIONS], *value[FNX_CALL_OPTIONS]; /* of the device's name */
    bool asked[FNX_CALL_OPTIONS];                                /* whether the plugin did ask for the option */
    int n_options;
    char known[256]; /* every key it asked for, with commas between */
    bool reported;   /* it called host->error */
    struct fnx_plugin_call *outer;
} fnx_plugin_call;

/* Between begin and end `config` finds: an option of the device's name (key=value&...), the environment
 * (FORNAX_<PLUGIN>_<KEY>, if env.c lists it), the administrator's, the manifest's. FNX_E_INVALID: malformed
 * options. */
FNX_CHECKED fnx_status fnx_call_begin(fnx_plugin_call *call, const char *plugin, const char *options,
                                      const json_t *policy, const json_t *defaults);
/* `code` is what the plugin returned. The error is set if the plugin did not do so itself. */
FNX_CHECKED fnx_status fnx_call_end(fnx_plugin_call *call, const char *what, int32_t code);

/* An option that the plugin never asked for is none that it has. */
FNX_CHECKED fnx_status fnx_call_check_options(const fnx_plugin_call *call);

#endif
