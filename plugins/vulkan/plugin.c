/* The descriptor and the tables. Everything that computes comes from libfornax-kernel.a, which gets the device's
 * compiler and launcher and gives fornax.group/0 in return. */
#include "vulkan.h"

#include <string.h>

/* ---- the device -------------------------------------------------------------------------------------------------- */

static int32_t info(void *device, fnx_device_info *out) {
    const vulkan_device *d = device;
    const uint32_t size = out->struct_size;
    memcpy(out, &d->info, size < sizeof d->info ? size : sizeof d->info);
    out->struct_size = size;
    return FNX_OK;
}

static int32_t memory_alloc(void *device, uint32_t kind, uint64_t bytes, fnx_binding *out) {
    vulkan_memory *m;
    (void)kind; /* the device's own is all there is */
    *out = (fnx_binding){0, NULL};
    const int32_t code = vulkan_memory_create(device, VULKAN_PLACE_DEVICE, bytes, &m);
    if (!code) *out = (fnx_binding){m->address, m};
    return code;
}

static void memory_free(void *device, void *memory) { vulkan_memory_destroy(device, memory); }

static int32_t capabilities(void *device, fnx_group_caps *out) {
    return fnx_codegen_capabilities(&((const vulkan_device *)device)->codegen, out);
}

static int32_t prepare(void *device, const fnx_group *group, void **out_handle, fnx_decline *why) {
    return fnx_codegen_prepare(&((const vulkan_device *)device)->codegen, group, out_handle, why);
}

static const void *device_interface(void *device, const char *name) {
    static const fnx_group_interface groups = {sizeof groups,         0,
                                               capabilities,          prepare,
                                               fnx_codegen_workspace, fnx_codegen_launch,
                                               fnx_codegen_release};
    (void)device;
    return strcmp(name, "fornax.group/0") == 0 ? &groups : NULL;
}

static void device_close(void *device) { vulkan_device_close(device); }

static const fnx_device_table device_table = {
    .struct_size = sizeof device_table,
    .kernel_bytes = sizeof(fnx_kernel),
    .close = device_close,
    .info = info,
    .get_interface = device_interface,
    .alloc = memory_alloc,
    .free = memory_free,
    .copy = vulkan_copy,
    .fill = vulkan_fill,
    .queue_create = vulkan_queue_create,
    .queue_destroy = vulkan_queue_destroy,
    .queue_flush = vulkan_queue_flush,
    .queue_sync = vulkan_queue_sync,
    .event_record = vulkan_event_record,
    .event_wait = vulkan_event_wait,
    .event_done = vulkan_event_done,
    .event_destroy = vulkan_event_destroy,
};

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

static int32_t init(const fnx_host *host, void **out_context) {
    if (!FNX_HAS(fnx_host, host, config)) return FNX_E_PLUGIN; /* all that we use */
    vulkan_context *c = vulkan_alloc(host, sizeof *c);
    if (!c) return vulkan_error(host, FNX_E_NO_MEMORY, "vulkan: no host memory");
    c->host = host;
    pthread_mutex_init(&c->lock, NULL);
    *out_context = c;
    return FNX_OK;
}

static void shutdown_plugin(void *context) {
    vulkan_context *c = context;
    for (int k = 0; k < 2; k++) {
        vulkan_instance_destroy(&c->instance[k]);
        if (c->instance[k].handle) return; /* a device of it hangs, and its layers may still call us */
    }
    pthread_mutex_destroy(&c->lock);
    c->host->free(c);
}

/* Where there is none, opening the first one says why. */
static uint32_t device_count(void *context) {
    vulkan_instance *i;
    return vulkan_instance_get(context, false, &i) ? 1 : i->n_physical;
}

/* llvmpipe compiles when a kernel first runs, in a thread of its own, by LLVM, whose exit handlers are registered
 * then: after libfornax's, which waits for what runs at exit, and they would take LLVM away from under it. A first
 * kernel now puts them in order. */
static int32_t warm_up(vulkan_device *d) {
    static const char text[] = "#version 460\nlayout(local_size_x = 1) in;\nshared uint x;\nvoid main() { x = 1; }\n";
    const fnx_codegen_source source = {.struct_size = sizeof source,
                                       .dialect = FNX_DIALECT_GLSL,
                                       .text = text,
                                       .entry = "main",
                                       .threads = {1, 1, 1}};
    void *program = NULL, *queue = NULL;
    fnx_error_word word;
    char log[256] = "";
    int32_t code = vulkan_queue_create(d, &queue);
    if (!code) code = vulkan_compile(d, &source, &program, log, sizeof log);
    if (!code) code = vulkan_launch(d, queue, program, (const uint32_t[]){1, 1, 1}, "", 0);
    if (!code) code = vulkan_queue_sync(queue, &word);
    if (queue) vulkan_queue_destroy(queue);
    if (program) vulkan_release(d, program);
    return code;
}

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    vulkan_device *d;
    int32_t code = vulkan_device_open(context, address, &d);
    if (code) return code;
    code = d->llvmpipe ? warm_up(d) : FNX_OK;
    if (code) vulkan_device_close(d);
    else *out_table = &device_table, *out_device = d;
    return code;
}

FNX_PLUGIN_EXPORT = {
    .struct_size = sizeof(fnx_plugin),
    .magic = FNX_PLUGIN_MAGIC,
    .abi_epoch = FNX_ABI_EPOCH,
    .abi_minor = FNX_ABI_MINOR,
#ifdef FORNAX_BUILD_SANITIZERS
    .build = FORNAX_BUILD_SANITIZERS,
#endif
    .name = "vulkan",
    .version = "0.1.0",
    .init = init,
    .shutdown = shutdown_plugin,
    .device_count = device_count,
    .device_open = device_open,
};
