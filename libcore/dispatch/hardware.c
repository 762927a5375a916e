/* Opened devices: one object per piece of hardware and options, shared by all handles, kept while a tensor is on it. */
#include "dispatch/hardware.h"

#include "base/alloc.h"
#include "base/log.h"
#include "registry/registry.h"

#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and around opening */
static fnx_hardware *all;

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void free_staged(fnx_hardware *h) {
    for (fnx_staged *s; (s = h->staged);) {
        h->staged = s->next;
        free(s);
    }
    h->staged_bytes = 0;
}

void fnx_hardware_drain_locked(fnx_hardware *h) {
    fnx_error_word word = {0, 0, 0, 0, 0, 0};
    if (!h->busy) return;
    uint64_t times = fnx_error_times();
    int32_t code = h->table->queue_sync(h->queue, &word);
    if (code && !word.code) word.code = code;
    if (word.code && !h->pending.code) {
        h->pending = word;
        snprintf(h->pending_text, sizeof h->pending_text, "%s",
                 fnx_error_times() == times ? "" : fnx_last_error()->message);
    }
    h->busy = false;
    free_staged(h);
}

static void drain(void *hardware) {
    fnx_hardware *h = hardware;
    pthread_mutex_lock(&h->launch);
    fnx_hardware_drain_locked(h);
    pthread_mutex_unlock(&h->launch);
}

/* Raises what the device met, once. `launch` is held. */
static fnx_status report_locked(fnx_hardware *h) {
    if (!h->pending.code) return FNX_OK;
    fnx_error_word word = h->pending;
    memset(&h->pending, 0, sizeof h->pending);
    return fnx_site_error(h, &word, h->pending_text);
}

fnx_status fnx_hardware_sync(fnx_hardware *h) {
    FNX_TRY(fnx_fork_check());
    pthread_mutex_lock(&h->launch);
    fnx_hardware_drain_locked(h);
    fnx_status code = report_locked(h);
    pthread_mutex_unlock(&h->launch);
    return code;
}

/* ---- memory in and out ------------------------------------------------------------------------------------------- */

bool fnx_hardware_host_memory(const fnx_hardware *h) { return (h->info.flags & FNX_DEVICE_HOST_MEMORY) != 0; }

fnx_status fnx_hardware_storage(fnx_hardware *h, uint64_t bytes, fnx_storage **out) {
    return fnx_pool_take(&h->pool, bytes, out);
}

enum { STAGED_MAX = 256 << 20 };

/* Straight into idle host memory; else an enqueued copy from a staged one, since what is enqueued may still use the
 * memory that the storage had before. */
fnx_status fnx_hardware_upload(fnx_hardware *h, fnx_storage *to, const void *data, size_t bytes, bool borrow) {
    if (!bytes) return FNX_OK;
    FNX_TRY(fnx_fork_check());
    fnx_status code = FNX_OK;
    pthread_mutex_lock(&h->launch);
    if (h->staged_bytes > STAGED_MAX) fnx_hardware_drain_locked(h);
    if (!h->busy && !borrow && fnx_hardware_host_memory(h)) {
        memcpy((void *)(uintptr_t)to->at.address, data, bytes);
    } else {
        const void *from = data;
        if (!borrow) {
            fnx_staged *s = fnx_alloc(sizeof *s + 64 + bytes);
            if (!s) code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory to stage %zu bytes", bytes);
            else {
                s->data = (void *)(((uintptr_t)(s + 1) + 63) & ~(uintptr_t)63);
                memcpy(s->data, data, bytes);
                s->next = h->staged, h->staged = s, h->staged_bytes += bytes;
                from = s->data;
            }
        }
        fnx_binding source = {(uint64_t)(uintptr_t)from, NULL};
        if (!code) code = h->table->copy(h->queue, &to->at, &source, bytes);
        h->busy = true;
    }
    pthread_mutex_unlock(&h->launch);
    return code;
}

fnx_status fnx_hardware_download(fnx_hardware *h, const fnx_storage *from, void *data, size_t bytes) {
    FNX_TRY(fnx_fork_check());
    fnx_status code = FNX_OK;
    pthread_mutex_lock(&h->launch);
    if (!fnx_hardware_host_memory(h) && bytes) {
        fnx_binding target = {(uint64_t)(uintptr_t)data, NULL};
        code = h->table->copy(h->queue, &target, &from->at, bytes);
        h->busy = true;
    }
    fnx_hardware_drain_locked(h);
    if (fnx_hardware_host_memory(h) && bytes) memcpy(data, (const void *)(uintptr_t)from->at.address, bytes);
    if (!code) code = report_locked(h);
    pthread_mutex_unlock(&h->launch);
    return code;
}

/* ---- recorders --------------------------------------------------------------------------------------------------- */

fnx_recorder *fnx_recorder_of(fnx_thread *me, fnx_hardware *h) {
    if (me->recorder && me->recorder->hardware == h) return me->recorder;
    for (fnx_recorder *r = me->recorders; r; r = r->next_of_thread)
        if (r->hardware == h) return me->recorder = r;
    fnx_recorder *r = NULL;
    fnx_thread_register(me);
    pthread_mutex_lock(&h->lock);
    for (fnx_recorder *idle = h->recorders; idle && !r; idle = idle->next_of_hardware)
        if (idle->retired) r = idle;
    if (!r && (r = fnx_recorder_create(h))) r->next_of_hardware = h->recorders, h->recorders = r;
    if (r) r->retired = false;
    pthread_mutex_unlock(&h->lock);
    if (!r) {
        (void)fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a recorder");
        return NULL;
    }
    r->next_of_thread = me->recorders, me->recorders = r;
    return me->recorder = r;
}

void fnx_recorder_retire(fnx_recorder *r) {
    if (fnx_recorder_flush(r, FNX_WHY_STEP))
        fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_ERROR, "at the end of a thread: %s", fnx_last_error()->message);
    fnx_hardware *h = r->hardware;
    pthread_mutex_lock(&h->lock);
    r->next_of_thread = NULL, r->retired = true;
    pthread_mutex_unlock(&h->lock);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Before destructors of plugins run: nothing may be executing. */
static void at_exit(void) {
    if (fnx_fork_check()) return;
    for (fnx_hardware *h = all; h; h = h->next) drain(h);
}

static void destroy(fnx_hardware *h) {
    if (!h) return;
    for (fnx_recorder *r = h->recorders, *next; r; r = next) {
        next = r->next_of_hardware;
        fnx_plan_cache_clear(r);
        fnx_storage_unref(r->arena);
        fnx_recorder_destroy(r);
    }
    if (h->table) {
        if (h->queue) {
            fnx_hardware_drain_locked(h);
            if (h->groups) fnx_ladder_end(h);
            fnx_pool_finish(&h->pool);
            h->table->queue_destroy(h->queue);
        }
        if (h->device) h->table->close(h->device);
    }
    for (int64_t i = 0; i < h->n_sites; i++) free(h->sites[i].op), free(h->sites[i].group);
    for (fnx_device *d = h->handles, *next; d; d = next) next = d->next, free(d);
    pthread_mutex_destroy(&h->launch), pthread_mutex_destroy(&h->lock);
    free(h->sites), free(h->spec), free(h->plugin_name), free(h->address), free(h);
}

/* What every backend must have. */
static fnx_status check_table(const fnx_device_table *t, const char *plugin) {
    const struct {
        const char *name;
        bool there;
    } need[] = {
        {"close", FNX_HAS(fnx_device_table, t, close) && t->close},
        {"info", FNX_HAS(fnx_device_table, t, info) && t->info},
        {"alloc", FNX_HAS(fnx_device_table, t, alloc) && t->alloc},
        {"free", FNX_HAS(fnx_device_table, t, free) && t->free},
        {"copy", FNX_HAS(fnx_device_table, t, copy) && t->copy},
        {"queue_create", FNX_HAS(fnx_device_table, t, queue_create) && t->queue_create},
        {"queue_destroy", FNX_HAS(fnx_device_table, t, queue_destroy) && t->queue_destroy},
        {"queue_sync", FNX_HAS(fnx_device_table, t, queue_sync) && t->queue_sync},
        {"get_interface", FNX_HAS(fnx_device_table, t, get_interface) && t->get_interface},
    };
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (!need[i].there)
            return fnx_error_set(FNX_E_PLUGIN, "plugin %s: its device table has no %s", plugin, need[i].name);
    return FNX_OK;
}

static fnx_status open_new(const char *plugin, const char *address, const char *options, fnx_hardware **out) {
    fnx_hardware *h = calloc(1, sizeof *h);
    if (!h) return fnx_error_set(FNX_E_NO_MEMORY, "no host memory to open %s", plugin);
    pthread_mutex_init(&h->launch, NULL), pthread_mutex_init(&h->lock, NULL);
    h->plugin_name = fnx_alloc_string(plugin), h->address = fnx_alloc_string(address);
    h->spec = fnx_alloc_format("%s%s%s%s%s", plugin, *address ? ":" : "", address, *options ? "?" : "", options);
    h->next_site = 1;
    fnx_status code = h->plugin_name && h->address && h->spec
                          ? FNX_OK
                          : fnx_error_set(FNX_E_NO_MEMORY, "no host memory to open %s", plugin);
    if (!code) code = fnx_registry_device_open(plugin, address, options, &h->table, &h->device);
    if (!code) code = check_table(h->table, plugin);
    h->info.struct_size = sizeof h->info;
    if (!code) code = h->table->info(h->device, &h->info);
    if (!code) code = h->table->queue_create(h->device, &h->queue);
    if (!code) {
        h->groups = h->table->get_interface(h->device, "fornax.group/0");
        h->layouts = h->table->get_interface(h->device, "fornax.layout/0");
        code = fnx_pool_init(&h->pool, h->table, h->device, drain, h);
        fnx_ladder_init(h);
    }
    if (code) {
        destroy(h);
        return code;
    }
    *out = h;
    return FNX_OK;
}

fnx_status fnx_hardware_open(const char *plugin, const char *address, const char *options, fnx_hardware **out) {
    static bool registered;
    fnx_status code = FNX_OK;
    if (!strcmp(address, "0")) address = ""; /* the first one, by either name */
    pthread_mutex_lock(&open_lock);
    for (fnx_hardware *h = all; h; h = h->next) {
        const char *had = strchr(h->spec, '?');
        if (strcmp(h->plugin_name, plugin) || strcmp(h->address, address) || strcmp(had ? had + 1 : "", options))
            continue;
        h->open_handles++;
        *out = h;
        pthread_mutex_unlock(&open_lock);
        return FNX_OK;
    }
    code = open_new(plugin, address, options, out);
    if (!code) {
        (*out)->open_handles = 1;
        (*out)->next = all, all = *out;
        if (!registered) registered = !atexit(at_exit);
    }
    pthread_mutex_unlock(&open_lock);
    return code;
}

void fnx_hardware_ref(fnx_hardware *h) {
    pthread_mutex_lock(&open_lock);
    h->open_handles++;
    pthread_mutex_unlock(&open_lock);
}

/* The last handle is closed: arenas, plans and cached memory go back. The device itself stays open until the process
 * ends, since tensors may still name it, and opening it again costs nothing. */
void fnx_hardware_unref(fnx_hardware *h) {
    pthread_mutex_lock(&open_lock);
    bool last = --h->open_handles == 0;
    pthread_mutex_unlock(&open_lock);
    if (!last) return;
    pthread_mutex_lock(&h->lock);
    fnx_recorder *first = h->recorders; /* the list only ever grows at its head */
    pthread_mutex_unlock(&h->lock);
    for (fnx_recorder *r = first; r; r = r->next_of_hardware) {
        fnx_recorder_lock(r);
        if (r->arena) fnx_pool_count_arena(&h->pool, -(int64_t)r->arena->capacity);
        fnx_storage_unref(r->arena);
        r->arena = NULL;
        fnx_recorder_unlock(r);
    }
    fnx_pool_trim(&h->pool);
}
