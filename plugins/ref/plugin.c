/* The descriptor and the device of the reference backend: memory of the host, and queues that have always finished,
 * because every call does its work at once in the calling thread. This is the smallest honest device; its rules:
 *  - a queue belongs to one thread at a time; what queues share is never written, so two threads may use two of them;
 *  - nothing but an error word outlives a call, so events are true from the start and sync has nothing to wait for;
 *  - memory comes from the host table. */
#include "ref.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef REF_NAME /* tests build a second plugin from these sources */
#define REF_NAME "ref"
#endif

/* ---- queues and the error word ----------------------------------------------------------------------------------- */

void ref_fail(const ref_call *c, int32_t code, int64_t index, int64_t limit) {
    fnx_error_word *word = &c->queue->error;
    if (word->code != FNX_OK) return; /* the first failure wins */
    *word = (fnx_error_word){.code = code, .site = c->site, .node = c->node, .index = index, .limit = limit};
}

static int32_t queue_create(void *device, void **out_queue) {
    ref_device *d = device;
    ref_queue *q = d->host->alloc(sizeof *q, REF_ALIGN);
    if (!q) return d->host->error(FNX_E_NO_MEMORY, "ref: no memory for a queue");
    *q = (ref_queue){.device = d};
    *out_queue = q;
    return FNX_OK;
}

static void queue_destroy(void *queue) {
    ref_queue *q = queue;
    if (q) q->device->host->free(q);
}

static int32_t queue_flush(void *queue) {
    (void)queue;
    return FNX_OK;
}

static int32_t queue_sync(void *queue, fnx_error_word *out) {
    ref_queue *q = queue;
    const fnx_error_word word = q->error;
    q->error = (fnx_error_word){0};
    if (out) *out = word;
    return word.code;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int32_t memory_alloc(void *device, uint32_t kind, uint64_t bytes, fnx_binding *out) {
    ref_device *d = device;
    char text[96];
    (void)kind; /* all kinds are the host's memory */
    out->memory = d->host->alloc(bytes ? bytes : 1, REF_ALIGN);
    out->address = (uint64_t)(uintptr_t)out->memory;
    if (out->memory) return FNX_OK;
    snprintf(text, sizeof text, "ref: no memory for an allocation of %llu bytes", (unsigned long long)bytes);
    return d->host->error(FNX_E_NO_MEMORY, text);
}

static void memory_free(void *device, void *memory) {
    ref_device *d = device;
    if (memory) d->host->free(memory);
}

static int32_t copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    (void)queue;
    if (bytes) memmove((void *)(uintptr_t)to->address, (const void *)(uintptr_t)from->address, bytes);
    return FNX_OK;
}

static int32_t fill(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    ref_queue *q = queue;
    char *at = (char *)(uintptr_t)to->address;
    const bool known = pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8;
    if (!known || bytes % pattern_bytes != 0)
        return q->device->host->error(FNX_E_INVALID,
                                      "ref: a fill has a pattern of 1, 2, 4 or 8 bytes that divides its size");
    for (uint64_t i = 0; i < bytes; i += pattern_bytes) memcpy(at + i, &pattern, pattern_bytes);
    return FNX_OK;
}

/* ---- events: what came before has already run -------------------------------------------------------------------- */

static int32_t event_record(void *queue, void **out_event) {
    *out_event = queue; /* anything but NULL */
    return FNX_OK;
}

static int32_t event_wait(void *queue, void *event) {
    (void)queue, (void)event;
    return FNX_OK;
}

static int32_t event_done(void *event, uint32_t *out_done) {
    (void)event;
    *out_done = 1;
    return FNX_OK;
}

static void event_destroy(void *event) { (void)event; }

/* ---- the device -------------------------------------------------------------------------------------------------- */

static int32_t info(void *device, fnx_device_info *out) {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    (void)device;
    out->flags = FNX_DEVICE_HOST_MEMORY;
    out->memory_align = REF_ALIGN;
    out->max_queues = UINT32_MAX;
    out->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    memset(out->uuid, 0, sizeof out->uuid);
    snprintf(out->name, sizeof out->name, "%s", "reference: scalar loops, one thread");
    return FNX_OK;
}

static const void *device_interface(void *device, const char *name) {
    (void)device;
    return strcmp(name, "fornax.group/0") == 0 ? &ref_groups : NULL;
}

static void device_close(void *device) {
    ref_device *d = device;
    if (d) d->host->free(d);
}

static const fnx_device_table device_table = {
    .struct_size = sizeof device_table,
    .n_kernels = 1,
    .kernel_bytes = sizeof ref_matmul_kernel,
    .kernels = &ref_matmul_kernel,
    .close = device_close,
    .info = info,
    .get_interface = device_interface,
    .alloc = memory_alloc,
    .free = memory_free,
    .copy = copy,
    .fill = fill,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_flush = queue_flush,
    .queue_sync = queue_sync,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_done = event_done,
    .event_destroy = event_destroy,
};

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    const fnx_host *host = context;
    if (address && *address && strcmp(address, "0") != 0) {
        char text[128];
        snprintf(text, sizeof text, "ref: there is one device, 0; \"%.40s\" names none", address);
        return host->error(FNX_E_NOT_FOUND, text);
    }
    ref_device *d = host->alloc(sizeof *d, REF_ALIGN);
    if (!d) return host->error(FNX_E_NO_MEMORY, "ref: no memory for a device");
    d->host = host;
    ref_op_capabilities(d->ops);
    *out_table = &device_table;
    *out_device = d;
    return FNX_OK;
}

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

static int32_t init(const fnx_host *host, void **out_context) {
    if (!FNX_HAS(fnx_host, host, free)) return FNX_E_PLUGIN; /* all that we use */
    *out_context = (void *)(uintptr_t)host;
    return FNX_OK;
}

static void shutdown(void *context) { (void)context; }

static uint32_t device_count(void *context) {
    (void)context;
    return 1;
}

static const void *get_interface(void *context, const char *name) {
    (void)context, (void)name;
    return NULL;
}

/* A library built for a sanitizer fits only programs built for it, too. The build system knows best. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#ifdef FORNAX_BUILD_SANITIZERS
#define BUILD FORNAX_BUILD_SANITIZERS
#elif defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define BUILD 1u
#elif defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define BUILD 2u
#else
#define BUILD 0u
#endif

FNX_PLUGIN_EXPORT = {
    .struct_size = sizeof(fnx_plugin),
    .magic = FNX_PLUGIN_MAGIC,
    .abi_epoch = FNX_ABI_EPOCH,
    .abi_minor = FNX_ABI_MINOR,
    .build = BUILD,
    .name = REF_NAME,
    .version = "0.1.0",
    .init = init,
    .shutdown = shutdown,
    .device_count = device_count,
    .device_open = device_open,
    .get_interface = get_interface,
};
