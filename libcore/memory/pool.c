/* Size classes and the way out of exhausted memory. */
#include "memory/pool.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SMALLEST = 64 };

/* Four classes per power of two: at most a quarter is lost. */
static int class_of(uint64_t bytes, uint64_t *out_capacity) {
    if (bytes <= SMALLEST) return *out_capacity = SMALLEST, 0;
    int log = 63 - __builtin_clzll(bytes - 1); /* 2^log < bytes <= 2^(log+1) */
    uint64_t quarter = (UINT64_C(1) << log) / 4, steps = (bytes - (UINT64_C(1) << log) + quarter - 1) / quarter;
    *out_capacity = (UINT64_C(1) << log) + steps * quarter;
    return (log - 6) * 4 + (int)steps;
}

fnx_status fnx_pool_init(fnx_pool *p, const fnx_device_table *table, void *device, void (*drain)(void *), void *user) {
    *p = (fnx_pool){.table = table, .device = device, .drain = drain, .user = user, .limit = UINT64_MAX};
    pthread_mutex_init(&p->lock, NULL);
    return FNX_OK;
}

/* Takes the cached storages off the lists; they are freed without the lock, since the plugin may call back. */
static fnx_storage *uncache_locked(fnx_pool *p) {
    fnx_storage *list = NULL;
    for (int c = 0; c < FNX_POOL_CLASSES; c++)
        for (fnx_storage *s; (s = p->cache[c]);) {
            p->cache[c] = s->next;
            p->held -= s->capacity;
            s->next = list, list = s;
        }
    return list;
}

void fnx_pool_trim(fnx_pool *p) {
    pthread_mutex_lock(&p->lock);
    fnx_storage *list = uncache_locked(p);
    pthread_mutex_unlock(&p->lock);
    if (list && p->drain) p->drain(p->user);
    while (list) {
        fnx_storage *s = list;
        list = s->next;
        p->table->free(p->device, s->at.memory);
        free(s);
    }
}

void fnx_pool_finish(fnx_pool *p) {
    fnx_pool_trim(p);
    pthread_mutex_destroy(&p->lock);
}

static fnx_status exhausted(const fnx_pool *p, uint64_t bytes) {
    return fnx_error_set(FNX_E_NO_MEMORY,
                         "out of device memory: %" PRIu64 " bytes asked for; in use %" PRIu64 " (plan arenas %" PRIu64
                         ", tensors %" PRIu64 "), limit %s%" PRIu64
                         "; use a smaller batch, release tensors, or raise memory_limit",
                         bytes, p->in_use, p->arena, p->in_use - p->arena, p->limit == UINT64_MAX ? "none " : "",
                         p->limit == UINT64_MAX ? 0 : p->limit);
}

fnx_status fnx_pool_take(fnx_pool *p, uint64_t bytes, fnx_storage **out) {
    uint64_t capacity;
    *out = NULL;
    if (bytes > UINT64_C(1) << 47) return exhausted(p, bytes);
    int class = class_of(bytes, &capacity);
    fnx_storage *s = NULL;
    pthread_mutex_lock(&p->lock);
    if (class < FNX_POOL_CLASSES && (s = p->cache[class])) p->cache[class] = s->next;
    bool over = !s && p->held + capacity > p->limit;
    pthread_mutex_unlock(&p->lock);
    if (!s) {
        if (over) fnx_pool_trim(p);
        pthread_mutex_lock(&p->lock);
        over = p->held + capacity > p->limit;
        if (!over) p->held += capacity;
        pthread_mutex_unlock(&p->lock);
        if (over) return exhausted(p, bytes);
        fnx_binding at = {0, NULL};
        fnx_status code = p->table->alloc(p->device, 0, capacity, &at);
        if (code == FNX_E_NO_MEMORY) {
            fnx_pool_trim(p);
            code = p->table->alloc(p->device, 0, capacity, &at);
        }
        if (!code && !(s = calloc(1, sizeof *s))) {
            p->table->free(p->device, at.memory);
            code = FNX_E_NO_MEMORY;
        }
        if (code) {
            pthread_mutex_lock(&p->lock);
            p->held -= capacity;
            pthread_mutex_unlock(&p->lock);
            return code == FNX_E_NO_MEMORY ? exhausted(p, bytes) : code;
        }
        s->at = at, s->capacity = capacity, s->pool = p;
    }
    s->bytes = bytes, s->refs = 1, s->maps = 0, s->next = NULL;
    pthread_mutex_lock(&p->lock);
    p->live++;
    p->in_use += capacity, p->padding += capacity - bytes;
    if (p->in_use > p->in_use_peak) p->in_use_peak = p->in_use;
    if (p->held > p->held_peak) p->held_peak = p->held;
    pthread_mutex_unlock(&p->lock);
    *out = s;
    return FNX_OK;
}

void fnx_storage_unref(fnx_storage *s) {
    if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) return;
    fnx_pool *p = s->pool;
    uint64_t capacity;
    int class = class_of(s->capacity, &capacity);
    pthread_mutex_lock(&p->lock);
    p->live--;
    p->in_use -= s->capacity, p->padding -= s->capacity - s->bytes;
    s->next = p->cache[class], p->cache[class] = s;
    pthread_mutex_unlock(&p->lock);
}

void fnx_pool_report(fnx_pool *p, fnx_memory_report *out) {
    uint32_t size = out->struct_size;
    pthread_mutex_lock(&p->lock);
    fnx_memory_report full = {.struct_size = size,
                              .in_use = p->in_use,
                              .in_use_peak = p->in_use_peak,
                              .held = p->held,
                              .held_peak = p->held_peak,
                              .arena = p->arena,
                              .padding = p->padding,
                              .limit = p->limit};
    pthread_mutex_unlock(&p->lock);
    __builtin_memcpy(out, &full, size < sizeof full ? size : sizeof full);
}

void fnx_pool_reset_peaks(fnx_pool *p) {
    pthread_mutex_lock(&p->lock);
    p->in_use_peak = p->in_use, p->held_peak = p->held;
    pthread_mutex_unlock(&p->lock);
}

void fnx_pool_set_limit(fnx_pool *p, uint64_t bytes) {
    pthread_mutex_lock(&p->lock);
    p->limit = bytes;
    pthread_mutex_unlock(&p->lock);
}

void fnx_pool_count_arena(fnx_pool *p, int64_t change) {
    pthread_mutex_lock(&p->lock);
    p->arena += (uint64_t)change;
    pthread_mutex_unlock(&p->lock);
}
