/* See host.h. */
#include "registry/host.h"

#include "base/env.h"
#include "base/log.h"
#include "base/spell.h"
#include "registry/json.h"

#include <stdlib.h>
#include <string.h>

static __thread fnx_plugin_call *current;

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void host_log(uint32_t level, const char *text) {
    fnx_log_write(FNX_TOPIC_PLUGIN, level > FNX_LOG_TRACE ? FNX_LOG_TRACE : (int)level, "%s%s%s",
                  current ? current->plugin : "", current ? ": " : "", text);
}

static int32_t host_error(int32_t code, const char *text) {
    (void)fnx_error_set(code, "%s", text);
    if (current) {
        fnx_error_set_plugin(current->plugin);
        current->reported = true;
    }
    return code;
}

static void *host_alloc(uint64_t bytes, uint64_t align) {
    void *p = NULL;
    if (align < sizeof(void *)) align = sizeof(void *);
    if (bytes > INT64_MAX || posix_memalign(&p, align, bytes ? bytes : 1)) return NULL;
    return p;
}

static const char *option(fnx_plugin_call *call, const char *key) {
    for (int i = 0; i < call->n_options; i++) {
        if (strcmp(call->key[i], key) != 0) continue;
        call->asked[i] = true;
        return call->value[i];
    }
    return NULL;
}

/* Each key once. */
static void remember(fnx_plugin_call *call, const char *key) {
    const size_t used = strlen(call->known), n = strlen(key);
    for (const char *p = call->known; n && (p = strstr(p, key)); p += n)
        if ((p == call->known || p[-1] == ' ') && (p[n] == ',' || !p[n])) return;
    snprintf(call->known + used, sizeof call->known - used, "%s%s", used ? ", " : "", key);
}

static const char *host_config(const char *key, const char *fallback) {
    if (!current) return fallback;
    remember(current, key);
    const char *value = option(current, key);
    if (!value) value = fnx_env_option(current->plugin, key);
    if (!value) value = fnx_json_config(current->policy, key);
    if (!value) value = fnx_json_config(current->defaults, key);
    return value ? value : fallback;
}

static void host_trace(uint32_t site, const char *text, uint64_t ns) {
    fnx_log_write(FNX_TOPIC_PLUGIN, FNX_LOG_TRACE, "site %u: %s: %llu ns", site, text, (unsigned long long)ns);
}

const fnx_host fnx_host_table = {
    .struct_size = sizeof fnx_host_table,
    .abi_minor = FNX_ABI_MINOR,
    .log = host_log,
    .error = host_error,
    .alloc = host_alloc,
    .free = free,
    .config = host_config,
    .trace = host_trace,
};

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Cuts key=value&key=value into its parts, in the call's copy. */
static fnx_status split(fnx_plugin_call *call, const char *options) {
    if (strlen(options) >= sizeof call->text)
        return fnx_error_set(FNX_E_INVALID, "device '%s': its options have more than %d bytes", call->plugin,
                             FNX_CALL_TEXT - 1);
    strcpy(call->text, options);
    for (char *p = call->text, *next; p && *p; p = next) {
        if ((next = strchr(p, '&'))) *next++ = 0;
        char *equals = strchr(p, '=');
        if (!equals || equals == p)
            return fnx_error_set(FNX_E_INVALID, "device '%s': expected key=value, got '%s'", call->plugin, p);
        *equals = 0;
        if (option(call, p))
            return fnx_error_set(FNX_E_INVALID, "device '%s': option %s is there twice", call->plugin, p);
        if (call->n_options == FNX_CALL_OPTIONS)
            return fnx_error_set(FNX_E_INVALID, "device '%s': it has more than %d options", call->plugin,
                                 FNX_CALL_OPTIONS);
        call->key[call->n_options] = p, call->value[call->n_options++] = equals + 1;
    }
    memset(call->asked, 0, sizeof call->asked);
    return FNX_OK;
}

fnx_status fnx_call_begin(fnx_plugin_call *call, const char *plugin, const char *options, const json_t *policy,
                          const json_t *defaults) {
    call->plugin = plugin, call->policy = policy, call->defaults = defaults;
    call->n_options = 0, call->known[0] = 0, call->reported = false;
    FNX_TRY(split(call, options));
    call->outer = current, current = call;
    return FNX_OK;
}

fnx_status fnx_call_end(fnx_plugin_call *call, const char *what, int32_t code) {
    current = call->outer;
    if (!code) return FNX_OK;
    if (code > 0) {
        code =
            fnx_error_set(FNX_E_INTERNAL, "%s of plugin %s returned %d, which is no status", what, call->plugin, code);
    } else if (!call->reported) {
        (void)fnx_error_set(code, "%s of plugin %s: %s", what, call->plugin, fnx_status_name(code));
    }
    fnx_error_set_plugin(call->plugin);
    return code;
}

fnx_status fnx_call_check_options(const fnx_plugin_call *call) {
    for (int i = 0; i < call->n_options; i++) {
        if (call->asked[i]) continue;
        return fnx_error_set(FNX_E_INVALID, "device '%s': the plugin has no option '%s'; %s%s", call->plugin,
                             call->key[i], *call->known ? "it has: " : "it has none", call->known);
    }
    return FNX_OK;
}
