/* A backend that accepts everything and computes nothing: what the host costs, without kernels (bench/records). */
#include <fornax-plugin/plugin.h>

#include <stdlib.h>
#include <string.h>

static int32_t init(const fnx_host *host, void **out_context) {
    (void)host;
    *out_context = NULL;
    return FNX_OK;
}
static void shutdown_plugin(void *context) { (void)context; }
static uint32_t device_count(void *context) { return context == NULL; }

static int32_t info(void *device, fnx_device_info *out) {
    (void)device;
    uint32_t size = out->struct_size;
    fnx_device_info i = {.struct_size = size,
                         .flags = FNX_DEVICE_HOST_MEMORY,
                         .memory_align = 64,
                         .max_queues = 1,
                         .name = "computes nothing"};
    memcpy(out, &i, size < sizeof i ? size : sizeof i);
    return FNX_OK;
}
static int32_t take(void *device, uint32_t kind, uint64_t bytes, fnx_binding *out) {
    (void)device, (void)kind;
    out->memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    out->address = (uint64_t)(uintptr_t)out->memory;
    return out->memory ? FNX_OK : FNX_E_NO_MEMORY;
}
static void give(void *device, void *memory) {
    (void)device;
    free(memory);
}
static int32_t copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    (void)queue;
    memcpy((void *)(uintptr_t)to->address, (const void *)(uintptr_t)from->address, bytes);
    return FNX_OK;
}
static int32_t queue_create(void *device, void **out) {
    *out = device;
    return FNX_OK;
}
static void nothing(void *p) { (void)p; }
static int32_t sync(void *queue, fnx_error_word *out) {
    (void)queue;
    memset(out, 0, sizeof *out);
    return FNX_OK;
}

static int32_t capabilities(void *device, fnx_group_caps *out) {
    (void)device;
    out->wants = 0, out->max_bindings = 64, out->max_nodes = 64, out->max_rank = FNX_MAX_RANK;
    return FNX_OK;
}
static int32_t prepare(void *device, const fnx_group *group, void **out_handle, fnx_decline *why) {
    (void)group, (void)why;
    *out_handle = device;
    return FNX_OK;
}
static int32_t launch(void *handle, void *queue, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes) {
    (void)handle, (void)queue, (void)launches, (void)n, (void)launch_bytes;
    return FNX_OK;
}
static const fnx_group_interface groups = {sizeof groups, 0, capabilities, prepare, NULL, launch, nothing};

static const void *get_interface(void *device, const char *name) {
    (void)device;
    return strcmp(name, "fornax.group/0") ? NULL : &groups;
}

static const fnx_device_table table = {
    .struct_size = sizeof table,
    .kernel_bytes = sizeof(fnx_kernel),
    .close = nothing,
    .info = info,
    .get_interface = get_interface,
    .alloc = take,
    .free = give,
    .copy = copy,
    .queue_create = queue_create,
    .queue_destroy = nothing,
    .queue_sync = sync,
};

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    static int device;
    (void)context, (void)address;
    *out_table = &table, *out_device = &device;
    return FNX_OK;
}

FNX_PLUGIN_EXPORT = {
    .struct_size = sizeof(fnx_plugin),
    .magic = FNX_PLUGIN_MAGIC,
    .abi_epoch = FNX_ABI_EPOCH,
    .abi_minor = FNX_ABI_MINOR,
#ifdef FORNAX_BUILD_SANITIZERS
    .build = FORNAX_BUILD_SANITIZERS,
#endif
    .name = "null",
    .version = "0.1.0",
    .init = init,
    .shutdown = shutdown_plugin,
    .device_count = device_count,
    .device_open = device_open,
};
