/* What each thread has: a slab of tensor blocks, the stack of handles that its scopes own, its recorders.
 *
 * A scope is a mark on the stack of handles: opening one costs a few stores, closing it gives up the handles above. */
#ifndef TENSOR_THREAD_H
#define TENSOR_THREAD_H

#include "tensor/tensor.h"

typedef struct fnx_slab fnx_slab;

typedef struct fnx_thread {
    fnx_recorder *recorder;  /* the last one used; the others follow its `next_of_thread` */
    fnx_recorder *recorders; /* all of this thread */
    fnx_slab *slab;
    fnx_tensor *free; /* blocks of our slab */
    fnx_tensor **handles;
    int64_t n_handles, handles_capacity, scope_start;
    int32_t depth;   /* open scopes that are not quiet */
    int32_t no_grad; /* open FNX_NO_GRAD scopes */
    bool registered, warned_root;
} fnx_thread;

/* initial-exec: one instruction to reach it (the library is linked, not dlopened late with many TLS bytes). */
extern __thread fnx_thread fnx_thread_self __attribute__((tls_model("initial-exec")));

/* A block with undefined contents, or NULL if the host has no memory. Counts as one live tensor. */
fnx_tensor *fnx_block_new_slow(fnx_thread *me);
static inline fnx_tensor *fnx_block_new(fnx_thread *me) {
    fnx_tensor *t = me->free;
    if (!t) return fnx_block_new_slow(me);
    me->free = t->next_free;
    return t;
}

/* Any thread may free: a foreign block goes back to the slab it came from, so that a producer does not grow forever. */
void fnx_block_free(fnx_tensor *t);

/* Puts t on the stack of handles of the innermost scope; its `handles` and `refs` already count that. */
void fnx_own_slow(fnx_thread *me);
static inline void fnx_own(fnx_thread *me, fnx_tensor *t) {
    if (me->n_handles == me->handles_capacity) fnx_own_slow(me);
    me->handles[me->n_handles++] = t;
}

/* The parent of the innermost scope becomes the owner; the value is not demanded by that. */
fnx_tensor *fnx_pass(fnx_tensor *t);

/* One reference less; at zero the block goes, with its links, without recursion. */
void fnx_tensor_unref(fnx_tensor *t);
static inline void fnx_tensor_ref(fnx_tensor *t) { __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED); }

/* The tape pinned what t's gradient reads: let it go. */
void fnx_tensor_unpin(fnx_tensor *t);

/* t's tape was used: what it pinned goes, and if t is stored, its links too. */
void fnx_tensor_consume(fnx_tensor *t);

/* Called once per thread, before its first handle: sets up what runs at the thread's end. */
void fnx_thread_register(fnx_thread *me);

#endif
