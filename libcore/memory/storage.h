/* A piece of device memory with a reference count. Its bytes belong to one or more tensors (a reshape shares). */
#ifndef MEMORY_STORAGE_H
#define MEMORY_STORAGE_H

#include <fornax-plugin/group.h>

typedef struct fnx_pool fnx_pool;

typedef struct fnx_storage {
    int32_t refs;      /* atomic */
    int32_t maps;      /* views handed to the program: neither written nor moved while > 0 (atomic) */
    uint64_t bytes;    /* of the value */
    uint64_t capacity; /* of the allocation */
    fnx_binding at;
    fnx_pool *pool;
    struct fnx_storage *next; /* in the pool's cache */
} fnx_storage;

/* NULL-safe. The memory goes back to the pool with the last reference. Threads: safe. */
void fnx_storage_unref(fnx_storage *s);

static inline fnx_storage *fnx_storage_ref(fnx_storage *s) {
    __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

#endif
