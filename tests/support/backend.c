/* See backend.h. */
#include "backend.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char error_text[256];
static atomic_int_least64_t live_blocks;

const char *backend_error(void) { return error_text; }

int64_t backend_live_blocks(void) { return atomic_load(&live_blocks); }

static void host_log(uint32_t level, const char *text) { (void)level, (void)text; }

static int32_t host_error(int32_t code, const char *text) {
    snprintf(error_text, sizeof error_text, "%s", text);
    return code;
}

static void *host_alloc(uint64_t bytes, uint64_t align) {
    if (align < sizeof(void *)) align = sizeof(void *);
    if (bytes > UINT64_MAX - align || bytes > INT64_MAX) return NULL;
    uint64_t rounded = (bytes + align - 1) / align * align;
    void *p = aligned_alloc(align, rounded ? rounded : align);
    if (p) atomic_fetch_add(&live_blocks, 1);
    return p;
}

static void host_free(void *p) {
    if (p) atomic_fetch_sub(&live_blocks, 1);
    free(p);
}

static backend_config *current_config;

static const char *host_config(const char *key, const char *fallback) {
    return current_config ? current_config(key, fallback) : fallback;
}

static void host_trace(uint32_t site, const char *text, uint64_t ns) { (void)site, (void)text, (void)ns; }

const fnx_host backend_host = {
    .struct_size = sizeof(fnx_host),
    .abi_minor = FNX_ABI_MINOR,
    .log = host_log,
    .error = host_error,
    .alloc = host_alloc,
    .free = host_free,
    .config = host_config,
    .trace = host_trace,
};

static int failed(const char *what, const char *detail) {
    char text[sizeof error_text];
    snprintf(text, sizeof text, "%s: %.180s", what, detail ? detail : "");
    memcpy(error_text, text, sizeof text);
    return -1;
}

int backend_open_with(backend *b, const char *path, const char *address, backend_config *config) {
    memset(b, 0, sizeof *b);
    b->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!b->library) return failed("dlopen", dlerror());
    b->plugin = dlsym(b->library, "fornax_plugin_v0");
    if (!b->plugin) return failed("dlsym", dlerror());
    if (b->plugin->magic != FNX_PLUGIN_MAGIC || b->plugin->abi_epoch != FNX_ABI_EPOCH)
        return failed("descriptor", path);
    current_config = config;
    if (b->plugin->init(&backend_host, &b->context)) return failed("init", backend_error());
    b->initialised = 1;
    if (b->plugin->device_open(b->context, address, &b->table, &b->device)) {
        b->device = NULL;
        return failed("device_open", backend_error());
    }
    if (b->table->queue_create(b->device, &b->queue)) return failed("queue_create", backend_error());
    b->groups = b->table->get_interface(b->device, "fornax.group/0");
    return 0;
}

int backend_open(backend *b, const char *path, const char *address) {
    return backend_open_with(b, path, address, NULL);
}

void backend_close(backend *b) {
    if (b->queue) b->table->queue_destroy(b->queue);
    if (b->device) b->table->close(b->device);
    if (b->initialised) b->plugin->shutdown(b->context);
    /* The library stays loaded, as in libfornax: unloading hides leaks from sanitizers and breaks threads. */
    memset(b, 0, sizeof *b);
}

int32_t backend_launch(backend *b, void *handle, const fnx_launch *launch, fnx_error_word *word) {
    fnx_launch l = *launch;
    fnx_error_word local;
    uint64_t bytes = 0;
    int32_t code = b->groups->workspace ? b->groups->workspace(handle, &l, &bytes) : FNX_OK;
    if (code == FNX_OK && bytes) code = b->table->alloc(b->device, 0, bytes, &l.workspace);
    if (code == FNX_OK) code = b->groups->launch(handle, b->queue, &l, 1, sizeof l);
    b->table->queue_sync(b->queue, word ? word : &local);
    if (l.workspace.memory) b->table->free(b->device, l.workspace.memory);
    return code;
}

int32_t backend_run(backend *b, const fragment *f, fnx_error_word *word, fnx_decline *why) {
    void *handle = NULL;
    int32_t code = b->groups->prepare(b->device, f->group, &handle, why);
    if (code) return code;
    code = backend_launch(b, handle, &f->launch, word);
    b->groups->release(handle);
    return code;
}
