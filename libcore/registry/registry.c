/* The life of plugins: found, then loaded once by whoever asks first, while others wait; and devices of them. */
#include "registry/process.h"

#include "base/alloc.h"
#include "base/env.h"
#include "registry/host.h"
#include "registry/load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one per process --------------------------------------------------------------------------------------------- */

fnx_registry *fnx_registry_create(const fnx_places *places) {
    fnx_registry *r = calloc(1, sizeof *r);
    if (!r) {
        (void)fnx_error_set(FNX_E_NO_MEMORY, "no host memory for the registry of plugins");
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->places = *places;
    if (places->policy) fnx_policy_read(places->policy, &r->policy);
    if (r->policy.no_user_plugins && !r->places.no_user) r->places.no_user = "not searched: the administrator's policy";
    fnx_catalog_search(&r->catalog, &r->places);
    return r;
}

void fnx_registry_destroy(fnx_registry *r) {
    if (!r) return;
    fnx_catalog_finish(&r->catalog);
    fnx_policy_finish(&r->policy);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r);
}

/* A folder that root must not take code from: whoever the home belongs to would act as root. */
static const char *user_folder(void) {
    const char *data = fnx_env_foreign("XDG_DATA_HOME"), *home = fnx_env_foreign("HOME");
    if (geteuid() == 0 || getuid() == 0 || fnx_env_elevated()) return NULL;
    if (data && *data == '/') return fnx_alloc_format("%s/fornax/plugins.d", data);
    return home && *home == '/' ? fnx_alloc_format("%s/.local/share/fornax/plugins.d", home) : NULL;
}

static fnx_registry *process;

static void warn_of_variables(const fnx_catalog *c) {
    const char **names = malloc(sizeof *names * (size_t)(c->n + 1));
    for (int64_t i = 0; names && i < c->n; i++) names[i] = c->list[i]->name;
    fnx_env_warn_of_unknown(names, names ? c->n : 0);
    free(names);
}

static void create_process(void) {
    static const char own[] = FORNAX_DATADIR "/fornax/plugins.d", local[] = "/usr/local/share/fornax/plugins.d",
                      system[] = "/usr/share/fornax/plugins.d";
    const bool listed = !strcmp(own, local) || !strcmp(own, system);
    process = fnx_registry_create(&(fnx_places){
        .path = fnx_env_text("FORNAX_PLUGIN_PATH"),
        .user = user_folder(),
        .admin = FORNAX_SYSCONFDIR "/fornax/plugins.d",
        .system = {listed ? NULL : own, local, system},
        .policy = FORNAX_SYSCONFDIR "/fornax",
        .libraries = FORNAX_PLUGIN_LIBDIR,
        .no_user = fnx_env_elevated() ? "not searched: this program has more privileges than its user"
                   : fnx_env_on("FORNAX_NO_USER_PLUGINS") ? "not searched: FORNAX_NO_USER_PLUGINS"
                                                          : NULL,
    });
    if (process) warn_of_variables(&process->catalog);
}

fnx_registry *fnx_registry_process(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_process);
    if (!process) (void)fnx_error_set(FNX_E_NO_MEMORY, "no host memory for the registry of plugins");
    return process;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static fnx_status not_usable(fnx_registry *r, const char *name, bool known) {
    char text[FNX_ERROR_TEXT];
    const size_t n = fnx_registry_explain(r, name, text, sizeof text);
    if (n >= sizeof text) memcpy(text + sizeof text - 5, "\n...", 5);
    else if (n && text[n - 1] == '\n') text[n - 1] = 0;
    (void)fnx_error_set(known ? FNX_E_PLUGIN : FNX_E_NOT_FOUND, "%s", text);
    fnx_error_set_plugin(name);
    return known ? FNX_E_PLUGIN : FNX_E_NOT_FOUND;
}

/* Runs what the plugin brings along, without the lock; it is taken again before this returns. */
static void load_unlocked(fnx_registry *r, fnx_candidate *one) {
    fnx_reason why = {""};
    one->loader = pthread_self();
    fnx_candidate_set(&r->catalog, one, FNX_PLUGIN_LOADING, "");
    pthread_mutex_unlock(&r->lock);
    const bool good = fnx_candidate_load(one, fnx_policy_config(&r->policy, one->name), &why);
    pthread_mutex_lock(&r->lock);
    fnx_candidate_set(&r->catalog, one, good ? FNX_PLUGIN_READY : FNX_PLUGIN_FAILED, why.text);
    pthread_cond_broadcast(&r->changed);
}

fnx_status fnx_registry_load(fnx_registry *r, const char *name, fnx_candidate **out) {
    *out = NULL;
    FNX_TRY(fnx_fork_check());
    pthread_mutex_lock(&r->lock);
    fnx_candidate *one = fnx_catalog_find(&r->catalog, name);
    const bool recursive = one && one->state == FNX_PLUGIN_LOADING && pthread_equal(one->loader, pthread_self());
    while (one && one->state == FNX_PLUGIN_LOADING && !recursive) pthread_cond_wait(&r->changed, &r->lock);
    if (one && one->state == FNX_PLUGIN_FOUND) load_unlocked(r, one);
    const bool ready = one && one->state == FNX_PLUGIN_READY;
    pthread_mutex_unlock(&r->lock);
    if (recursive) return fnx_error_set(FNX_E_PLUGIN, "plugin %s needs itself while it is loaded", name);
    if (!ready) return not_usable(r, name, one != NULL);
    *out = one;
    return FNX_OK;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static fnx_status open_device(const fnx_candidate *one, const char *address, fnx_plugin_call *call,
                              const fnx_device_table **out_table, void **out_device) {
    const fnx_device_table *table = NULL;
    void *device = NULL;
    int32_t code = one->plugin->device_open(one->context, address, &table, &device);
    FNX_TRY(fnx_call_end(call, "device_open", code));
    if (!table) return fnx_error_set(FNX_E_PLUGIN, "device_open of plugin %s gave no device table", one->name);
    code = fnx_call_check_options(call);
    if (code && FNX_HAS(fnx_device_table, table, close) && table->close) table->close(device);
    FNX_TRY(code);
    *out_table = table, *out_device = device;
    return FNX_OK;
}

fnx_status fnx_registry_open(fnx_registry *r, const char *plugin, const char *address, const char *options,
                             const fnx_device_table **out_table, void **out_device) {
    fnx_candidate *one;
    fnx_plugin_call call;
    *out_table = NULL, *out_device = NULL;
    FNX_TRY(fnx_registry_load(r, plugin, &one));
    if (!one->plugin->device_open)
        return fnx_error_set(FNX_E_INVALID, "%s is an extension: it has operations, no devices", plugin);
    FNX_TRY(fnx_call_begin(&call, one->name, options, fnx_policy_config(&r->policy, one->name), one->manifest.config));
    fnx_status code = open_device(one, address, &call, out_table, out_device);
    if (code) {
        fnx_error_add_context("opening device %s%s%s", plugin, *address ? ":" : "", address);
        fnx_error_set_plugin(plugin);
    }
    return code;
}

/* The devices of one backend; what `each` returned. */
static int list_devices(fnx_registry *r, const char *name,
                        int (*each)(void *, const char *, const char *, const char *), void *user) {
    fnx_candidate *one;
    int stop = 0;
    if (fnx_registry_load(r, name, &one)) {
        char reason[FNX_ERROR_TEXT]; /* `each` may fail itself, which overwrites the thread's error */
        pthread_mutex_lock(&r->lock);
        const fnx_candidate *failed = fnx_catalog_find(&r->catalog, name);
        snprintf(reason, sizeof reason, "%s: %s", fnx_state_name(failed->state), failed->reason);
        pthread_mutex_unlock(&r->lock);
        return each(user, name, NULL, reason);
    }
    const uint32_t n = one->plugin->device_count ? one->plugin->device_count(one->context) : 1;
    if (n == 0) return each(user, name, NULL, "it sees no device on this machine");
    for (uint32_t i = 0; i < n && !stop; i++) {
        char address[16];
        snprintf(address, sizeof address, "%u", i);
        stop = each(user, name, address, NULL);
    }
    return stop;
}

fnx_status fnx_registry_list(fnx_registry *r, int (*each)(void *, const char *, const char *, const char *),
                             void *user) {
    FNX_TRY(fnx_fork_check());
    for (int64_t i = 0, stop = 0; !stop; i++) {
        pthread_mutex_lock(&r->lock);
        const fnx_candidate *one = i < r->catalog.n ? r->catalog.list[i] : NULL;
        const bool serves = one && one == fnx_catalog_find(&r->catalog, one->name);
        pthread_mutex_unlock(&r->lock);
        if (!one) break;
        if (serves && strcmp(one->manifest.kind, "extension") != 0) stop = list_devices(r, one->name, each, user);
    }
    return FNX_OK;
}

/* ---- registry.h -------------------------------------------------------------------------------------------------- */

fnx_status fnx_registry_plugin(const char *name, const fnx_plugin **out_plugin, void **out_context) {
    fnx_registry *r = fnx_registry_process();
    fnx_candidate *one;
    *out_plugin = NULL, *out_context = NULL;
    if (!r) return FNX_E_NO_MEMORY;
    FNX_TRY(fnx_registry_load(r, name, &one));
    *out_plugin = one->plugin, *out_context = one->context;
    return FNX_OK;
}

fnx_status fnx_registry_device_open(const char *plugin, const char *address, const char *options,
                                    const fnx_device_table **out_table, void **out_device) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_open(r, plugin, address, options, out_table, out_device) : FNX_E_NO_MEMORY;
}

fnx_status fnx_registry_devices(int (*each)(void *user, const char *plugin, const char *address, const char *reason),
                                void *user) {
    fnx_registry *r = fnx_registry_process();
    return r ? fnx_registry_list(r, each, user) : FNX_E_NO_MEMORY;
}

const char *fnx_registry_default_device(void) {
    const fnx_registry *r = fnx_registry_process();
    return r ? r->policy.default_device : NULL;
}
