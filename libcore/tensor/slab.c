/* Blocks for tensors: chunks of 64 KiB that belong to one thread's slab, last in first out, so that a repeated step
 * finds the same memory in cache. Blocks freed by other threads wait in a list of their own until the owner runs out. A
 * slab outlives its thread and is given to the next one. */
#include "tensor/thread.h"

#include "base/env.h"

#include <pthread.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 16, CHUNK_BLOCKS = CHUNK_BYTES / (int)sizeof(fnx_tensor) };

typedef struct chunk { /* in the first block of each chunk */
    fnx_slab *slab;
    struct chunk *next;
} chunk;

struct fnx_slab {
    chunk *chunks;      /* all of them, which also keeps them reachable for leak checkers */
    fnx_tensor *free;   /* while no thread has it */
    fnx_tensor *remote; /* freed by other threads (atomic stack; only ever taken whole) */
    fnx_slab *next_idle, *next;
};

__thread fnx_thread fnx_thread_self __attribute__((tls_model("initial-exec")));

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static fnx_slab *idle, *all; /* `all` keeps every slab reachable for leak checkers */

static fnx_slab *slab_take(void) {
    pthread_mutex_lock(&idle_lock);
    fnx_slab *s = idle;
    if (s) {
        idle = s->next_idle;
    } else if ((s = calloc(1, sizeof *s))) {
        s->next = all, all = s;
    }
    pthread_mutex_unlock(&idle_lock);
    return s;
}

void fnx_slab_retire(fnx_thread *me);
void fnx_slab_retire(fnx_thread *me) {
    if (!me->slab) return;
    me->slab->free = me->free;
    pthread_mutex_lock(&idle_lock);
    me->slab->next_idle = idle, idle = me->slab;
    pthread_mutex_unlock(&idle_lock);
    me->slab = NULL, me->free = NULL;
}

fnx_tensor *fnx_block_new_slow(fnx_thread *me) {
    if (!me->slab) {
        fnx_thread_register(me);
        if (!(me->slab = slab_take())) return NULL;
        me->free = me->slab->free, me->slab->free = NULL;
    }
    if (!me->free) me->free = __atomic_exchange_n(&me->slab->remote, NULL, __ATOMIC_ACQUIRE);
    if (!me->free) {
        fnx_tensor *blocks = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);
        if (!blocks) return NULL;
        chunk *c = (chunk *)(void *)blocks;
        *c = (chunk){me->slab, me->slab->chunks};
        me->slab->chunks = c;
        for (int i = 1; i < CHUNK_BLOCKS; i++) blocks[i].next_free = i + 1 < CHUNK_BLOCKS ? blocks + i + 1 : NULL;
        me->free = blocks + 1;
    }
    fnx_tensor *t = me->free;
    me->free = t->next_free;
    return t;
}

void fnx_block_free(fnx_tensor *t) {
    fnx_slab *home = ((chunk *)((uintptr_t)t & ~(uintptr_t)(CHUNK_BYTES - 1)))->slab;
    if (home == fnx_thread_self.slab) {
        t->next_free = fnx_thread_self.free, fnx_thread_self.free = t;
        return;
    }
    fnx_tensor *head = __atomic_load_n(&home->remote, __ATOMIC_RELAXED);
    do t->next_free = head;
    while (!__atomic_compare_exchange_n(&home->remote, &head, t, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}
