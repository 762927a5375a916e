/* The manifest said all that must be known before code runs, for dlopen already runs constructors. Here: the file
 * is checked once more, opened by its canonical path, and the descriptor compared before any of its functions is
 * called. */
#include "registry/load.h"

#include "base/log.h"
#include "registry/host.h"
#include "registry/trust.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char symbol_name[] = "fornax_plugin_v0";

static bool open_library(fnx_candidate *one, void **out_handle, fnx_reason *why) {
    struct stat expected, found;
    struct link_map *map = NULL;
    char *path;
    int fd = fnx_trust_open(one->library, &path, &expected, why);
    if (fd < 0) return false;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *error = handle ? NULL : dlerror();
    free(path), close(fd);
    if (!handle) return fnx_refuse(why, "%s", error ? error : "dlopen failed");
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || stat(map->l_name, &found) || found.st_dev != expected.st_dev ||
        found.st_ino != expected.st_ino)
        return fnx_refuse(why, "%s was replaced while it was loaded", one->library);
    *out_handle = handle;
    return true;
}

/* dlsym also searches what the library depends on: the descriptor counts only if it is the library's own.
 * `out_bytes` is how much there is of it. */
static const fnx_plugin *find_descriptor(void *handle, size_t *out_bytes, fnx_reason *why) {
    const void *symbol = dlsym(handle, symbol_name);
    struct link_map *own = NULL, *map = NULL;
    const ElfW(Sym) *entry = NULL;
    Dl_info info;
    if (!symbol) {
        (void)fnx_refuse(why, "the library has no symbol %s: it is no fornax plugin, or one for another ABI",
                         symbol_name);
        return NULL;
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &own) || !dladdr1(symbol, &info, (void **)&map, RTLD_DL_LINKMAP) ||
        map != own) {
        (void)fnx_refuse(why, "%s is not in the library itself, but in one that it depends on", symbol_name);
        return NULL;
    }
    if (!dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) || !entry ||
        ELF64_ST_TYPE(entry->st_info) != STT_OBJECT) {
        (void)fnx_refuse(why, "%s is not data", symbol_name);
        return NULL;
    }
    *out_bytes = entry->st_size;
    return symbol;
}

/* What it must have up to; get_interface is optional. */
static const size_t least_bytes = offsetof(fnx_plugin, device_open) + sizeof((fnx_plugin){0}.device_open);

static bool check_descriptor(const fnx_plugin *p, size_t bytes, const fnx_manifest *m, fnx_reason *why) {
    if (bytes < offsetof(fnx_plugin, abi_epoch) || p->magic != FNX_PLUGIN_MAGIC)
        return fnx_refuse(why, "%s is no plugin descriptor (its magic number is wrong)", symbol_name);
    if (p->struct_size > bytes || p->struct_size < least_bytes)
        return fnx_refuse(why, "its descriptor claims %u bytes, has %zu, and needs %zu", p->struct_size, bytes,
                          least_bytes);
    if (p->abi_epoch != (uint32_t)m->epoch)
        return fnx_refuse(why, "the library is made for ABI epoch %u, its manifest says %lld", p->abi_epoch,
                          (long long)m->epoch);
    if (p->build != m->build) {
        char its[64], said[64];
        fnx_manifest_build_words(p->build, its, sizeof its);
        fnx_manifest_build_words(m->build, said, sizeof said);
        return fnx_refuse(why, "the library's sanitizers are %s, its manifest says %s", its, said);
    }
    if (!p->name || strcmp(p->name, m->name) != 0)
        return fnx_refuse(why, "the library names itself '%.63s', its manifest '%s'", p->name ? p->name : "", m->name);
    if (!p->init) return fnx_refuse(why, "its descriptor has no init");
    if (!strcmp(m->kind, "backend") && !p->device_open)
        return fnx_refuse(why, "it is a backend, but its descriptor has no device_open");
    return true;
}

static bool initialise(fnx_candidate *one, const fnx_plugin *p, const json_t *policy, fnx_reason *why) {
    fnx_plugin_call call;
    fnx_status code = fnx_call_begin(&call, one->name, "", policy, one->manifest.config);
    if (!code) code = fnx_call_end(&call, "init", p->init(&fnx_host_table, &one->context));
    if (code) return fnx_refuse(why, "%.500s", fnx_last_error()->message);
    one->plugin = p;
    return true;
}

static double milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool fnx_candidate_load(fnx_candidate *one, const json_t *policy, fnx_reason *why) {
    const double start = milliseconds();
    const fnx_plugin *p = NULL;
    void *handle;
    size_t bytes;
    const bool good = open_library(one, &handle, why) && (p = find_descriptor(handle, &bytes, why)) &&
                      check_descriptor(p, bytes, &one->manifest, why) && initialise(one, p, policy, why);
    fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_INFO, "%s: %s%s (%.1f ms)", one->library,
                  good ? "loaded" : "not loaded: ", good ? "" : why->text, milliseconds() - start);
    return good;
}
