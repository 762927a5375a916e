/* Loading: what can be known without running code was checked in the manifest; the library is then opened by its canonical path,
 * and its descriptor compared before any of its functions is called. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "registry/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fornax/plugins.h>
#include <jansson.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loaded = PTHREAD_COND_INITIALIZER;

/* ---- the host table ---------------------------------------------------------------------------------------------------------- */

static __thread const fnx_candidate *in_plugin;  /* whose code runs on this thread, for messages and config */
static __thread const char *in_options;          /* key=value&... of the device that is being opened */
static __thread char option_used[32];            /* per option: whether it was read */
static __thread char option_value[8][256];
static __thread unsigned option_next;

static void host_log(uint32_t level, const char *text) {
    fnx_log_write(FNX_TOPIC_PLUGIN, level > FNX_LOG_TRACE ? FNX_LOG_TRACE : (int)level, "%s%s%s", in_plugin ? in_plugin->name : "", in_plugin ? ": " : "", text);
}

static int32_t host_error(int32_t code, const char *text) {
    fnx_error_set(code, "%s", text);
    if (in_plugin) fnx_error_set_plugin(in_plugin->name);
    return code;
}

static void *host_alloc(uint64_t bytes, uint64_t align) {
    void *p = NULL;
    if (align < sizeof(void *)) align = sizeof(void *);
    if (bytes > SIZE_MAX / 2 || posix_memalign(&p, align, bytes ? bytes : 1)) return NULL;
    return p;
}

/* The value of key number *index of the options that are set on this thread, or NULL. */
static const char *option(const char *key) {
    size_t n = strlen(key);
    int index = 0;
    for (const char *p = in_options; p && *p; index++) {
        size_t end = strcspn(p, "&");
        if (!strncmp(p, key, n) && p[n] == '=') {
            char *value = option_value[option_next++ % 8];
            snprintf(value, sizeof *option_value, "%.*s", (int)(end - n - 1), p + n + 1);
            if (index < (int)sizeof option_used) option_used[index] = 1;
            return value;
        }
        p += end + (p[end] == '&');
    }
    return NULL;
}

/* The device's options, then the environment, then the manifest's defaults. */
static const char *host_config(const char *key, const char *fallback) {
    const char *value = option(key);
    if (value) return value;
    if (in_plugin && !strcmp(in_plugin->name, "cpu") && !strcmp(key, "threads") && (value = fnx_env_text("FORNAX_CPU_THREADS"))) return value;
    const json_t *item = in_plugin ? json_object_get(in_plugin->config, key) : NULL;
    return json_is_string(item) ? json_string_value(item) : fallback;
}

static void host_trace(uint32_t site, const char *text, uint64_t ns) {
    fnx_log_write(FNX_TOPIC_PLUGIN, FNX_LOG_TRACE, "site %u: %s: %llu ns", site, text, (unsigned long long)ns);
}

static const fnx_host host = {sizeof host, FNX_ABI_MINOR, host_log, host_error, host_alloc, free, host_config, host_trace};

/* ---- loading -------------------------------------------------------------------------------------------------------------------- */

static fnx_status failed(fnx_candidate *c, const char *text) { return fnx_candidate_reject(c, FNX_PLUGIN_FAILED, "%s", text); }

/* The library's file, checked; *out_path is canonical. */
static fnx_status check_library(fnx_candidate *c, char out_path[PATH_MAX], struct stat *out_stat) {
    char why[FNX_REASON_BYTES];
    if (!realpath(c->library, out_path)) return fnx_candidate_reject(c, FNX_PLUGIN_FAILED, "the library %s: %s", c->library, strerror(errno));
    int fd = open(out_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fnx_candidate_reject(c, FNX_PLUGIN_FAILED, "the library %s: %s", out_path, strerror(errno));
    bool ok = fnx_trusted(fd, out_path, why, sizeof why) && fnx_trusted_directory(out_path, why, sizeof why);
    if (ok && (fstat(fd, out_stat) || !S_ISREG(out_stat->st_mode))) ok = false, snprintf(why, sizeof why, "%s is no regular file", out_path);
    close(fd);
    return ok ? FNX_OK : failed(c, why);
}

/* What was loaded is the file that was checked, and the symbol lives in it, not in something that it depends on. */
static fnx_status check_loaded(fnx_candidate *c, void *handle, const void *symbol, const struct stat *expected) {
    struct link_map *map = NULL;
    struct stat s;
    Dl_info where;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || stat(map->l_name, &s) || s.st_dev != expected->st_dev || s.st_ino != expected->st_ino)
        return failed(c, "the library changed while it was loaded");
    if (!dladdr(symbol, &where) || where.dli_fbase != (void *)map->l_addr)
        return failed(c, "fornax_plugin_v0 is not in the library itself, but in one that it depends on");
    return FNX_OK;
}

static fnx_status check_descriptor(fnx_candidate *c, const fnx_plugin *p) {
    char text[FNX_REASON_BYTES];
    if (p->magic != FNX_PLUGIN_MAGIC) return failed(c, "fornax_plugin_v0 has a wrong magic number: it is no plugin descriptor");
    if (!FNX_HAS(fnx_plugin, p, get_interface)) return failed(c, "its descriptor is shorter than this ABI's");
    if (p->abi_epoch != FNX_ABI_EPOCH) {
        snprintf(text, sizeof text, "the library is made for ABI epoch %u, its manifest says %u", p->abi_epoch, c->epoch);
        return failed(c, text);
    }
    if (p->build != c->build) return failed(c, "its sanitizers are not those that its manifest names");
    if (!p->name || strcmp(p->name, c->name)) {
        snprintf(text, sizeof text, "the library names itself '%.60s', its manifest '%s'", p->name ? p->name : "", c->name);
        return failed(c, text);
    }
    if (!p->init || !p->device_count || !p->device_open) return failed(c, "its descriptor lacks init, device_count or device_open");
    return FNX_OK;
}

static fnx_status load(fnx_candidate *c) {
    char path[PATH_MAX];
    struct stat s;
    FNX_TRY(check_library(c, path, &s));
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) return failed(c, dlerror());
    const fnx_plugin *p = dlsym(handle, "fornax_plugin_v0");
    if (!p) return failed(c, "the library has no symbol fornax_plugin_v0");
    FNX_TRY(check_loaded(c, handle, p, &s));
    FNX_TRY(check_descriptor(c, p));
    in_plugin = c;
    fnx_status code = p->init(&host, &c->context);
    in_plugin = NULL;
    if (code) return fnx_candidate_reject(c, FNX_PLUGIN_FAILED, "init returned %s: %.300s", fnx_status_name(code), fnx_last_error()->message);
    c->plugin = p;
    return FNX_OK;
}

fnx_status fnx_candidate_load(fnx_candidate *c) {
    pthread_mutex_lock(&lock);
    while (c->state == FNX_PLUGIN_LOADING) pthread_cond_wait(&loaded, &lock);
    bool mine = c->state == FNX_PLUGIN_FOUND;
    if (mine) c->state = FNX_PLUGIN_LOADING;
    pthread_mutex_unlock(&lock);
    if (mine) { /* without the lock: constructors and init are plugin code */
        fnx_status code = load(c);
        pthread_mutex_lock(&lock);
        if (!code) c->state = FNX_PLUGIN_READY;
        pthread_cond_broadcast(&loaded);
        pthread_mutex_unlock(&lock);
    }
    if (c->state == FNX_PLUGIN_READY) return FNX_OK;
    return fnx_error_set(FNX_E_PLUGIN, "plugin '%s' (%s): %s", c->name, c->manifest, c->reason);
}

/* ---- devices ---------------------------------------------------------------------------------------------------------------------- */

static fnx_status unread_option(const char *plugin, const char *options) {
    int index = 0;
    for (const char *p = options; *p; index++) {
        size_t end = strcspn(p, "&");
        if (index < (int)sizeof option_used && !option_used[index])
            return fnx_error_set(FNX_E_INVALID, "device '%s': the plugin has no option '%.*s' (options of every device: lazy, verify, fallback, precision, memory_limit, "
                                 "graph_limit)", plugin, (int)strcspn(p, "=&"), p);
        p += end + (p[end] == '&');
    }
    return FNX_OK;
}

fnx_status fnx_registry_device_open(const char *plugin, const char *address, const char *options, const fnx_device_table **out_table, void **out_device) {
    fnx_candidate *c = fnx_candidate_find(plugin);
    char text[FNX_ERROR_TEXT];
    if (!c || (c->state != FNX_PLUGIN_FOUND && c->state != FNX_PLUGIN_READY && c->state != FNX_PLUGIN_LOADING)) {
        fnx_plugin_explain(plugin, text, sizeof text);
        for (char *p = text; *p; p++)
            if (*p == '\n') *p = p[1] ? ';' : 0;
        return fnx_error_set(c ? FNX_E_PLUGIN : FNX_E_NOT_FOUND, "no device '%s%s%s': %s", plugin, *address ? ":" : "", address, text);
    }
    FNX_TRY(fnx_candidate_load(c));
    memset(option_used, 0, sizeof option_used);
    in_plugin = c, in_options = options;
    (void)fnx_error_set(FNX_OK, "%s", "");
    fnx_status code = c->plugin->device_open(c->context, address, out_table, out_device);
    in_plugin = NULL, in_options = NULL;
    if (code) {
        snprintf(text, sizeof text, "%s", fnx_last_error()->message);
        return fnx_error_set(code, "device '%s%s%s' cannot be opened: %s", plugin, *address ? ":" : "", address, *text ? text : fnx_status_name(code));
    }
    code = unread_option(plugin, options);
    if (code && FNX_HAS(fnx_device_table, *out_table, close) && (*out_table)->close) (*out_table)->close(*out_device);
    return code;
}

fnx_status fnx_registry_devices(int (*each)(void *user, const char *plugin, const char *address, const char *reason), void *user) {
    for (fnx_candidate *c = fnx_candidates(); c; c = c->next) {
        if (!c->name || c->shadowed || (c->kind && strcmp(c->kind, "backend"))) continue;
        bool usable = c->state == FNX_PLUGIN_FOUND || c->state == FNX_PLUGIN_READY || c->state == FNX_PLUGIN_LOADING;
        if (!usable || fnx_candidate_load(c)) {
            if (each(user, c->name, NULL, c->reason)) return FNX_OK;
            continue;
        }
        uint32_t n = c->plugin->device_count(c->context);
        if (n == 0 && each(user, c->name, NULL, "it sees no device")) return FNX_OK;
        for (uint32_t i = 0; i < n; i++) {
            char address[16];
            snprintf(address, sizeof address, "%u", i);
            if (each(user, c->name, address, NULL)) return FNX_OK;
        }
    }
    return FNX_OK;
}
