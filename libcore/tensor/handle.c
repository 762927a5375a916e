/* Who owns a tensor: scopes, keep, return, retain, release, and what happens when the last reference goes. */
#include "base/env.h"
#include "base/log.h"
#include "tensor/device.h"
#include "tensor/recorder.h"
#include "tensor/saves.h"
#include "tensor/variable.h"

#include <pthread.h>
#include <stdlib.h>

enum { ROOT_WARN_TENSORS = 10000 };

void fnx_slab_retire(fnx_thread *me);

/* ---- the end of a thread ----------------------------------------------------------------------------------------- */

static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

static void close_handles(fnx_thread *me, int64_t down_to);

static void thread_end(void *thread) {
    fnx_thread *me = thread;
    close_handles(me, 0);
    for (fnx_recorder *r = me->recorders, *next; r; r = next) {
        next = fnx_recorder_next(r);
        fnx_recorder_retire(r);
    }
    me->recorder = me->recorders = NULL;
    free(me->handles);
    me->handles = NULL, me->handles_capacity = 0;
    fnx_slab_retire(me);
    me->registered = false;
}

static void make_end_key(void) { pthread_key_create(&end_key, thread_end); }

void fnx_thread_register(fnx_thread *me) {
    if (me->registered) return;
    me->registered = true;
    pthread_once(&end_once, make_end_key);
    pthread_setspecific(end_key, me);
}

/* ---- references -------------------------------------------------------------------------------------------------- */

void fnx_tensor_unpin(fnx_tensor *t) {
    if (!(t->flags & FNX_T_PINNED)) return;
    t->flags &= (uint8_t)~FNX_T_PINNED;
    unsigned saves = fnx_op_saves(t->op);
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands && k < 3; k++)
        if (saves >> k & 1 && in[k]) __atomic_fetch_sub(&in[k]->strong, 1, __ATOMIC_RELAXED);
    if (saves & FNX_SAVES_RESULT_BIT) __atomic_fetch_sub(&t->strong, 1, __ATOMIC_RELAXED);
}

void fnx_tensor_consume(fnx_tensor *t) {
    fnx_recorder *r = t->owner;
    if (r) fnx_recorder_lock(r);
    t->flags |= FNX_T_CONSUMED;
    fnx_tensor_unpin(t);
    bool drop = fnx_state(t) == FNX_STORED && t->flags & FNX_T_LINKED;
    if (drop) t->flags &= (uint8_t)~FNX_T_LINKED;
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands && drop; k++)
        if (in[k]) fnx_tensor_unref(in[k]);
    if (r) fnx_recorder_unlock(r);
}

/* With FORNAX_DEBUG=handles a block is never used again: it stays behind as a failed tensor that says so. */
static void bury(fnx_tensor *t) {
    static fnx_error *used_after_release;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!used_after_release)
        used_after_release = fnx_error_new(FNX_E_INVALID, "a tensor was used after the scope that owned it had closed: "
                                                          "fnx_return() it from that scope, or fnx_retain() it");
    pthread_mutex_unlock(&lock);
    t->state = FNX_FAILED, t->error = used_after_release, t->owner = NULL;
    t->refs = INT32_MAX / 2, t->handles = 0, t->flags = 0, t->n_operands = 0, t->variable = NULL;
}

static void block_end(fnx_tensor *t) {
    if (t->flags & FNX_T_SPILLED) free(t->spill);
    if (t->variable) fnx_variable_unref(t->variable);
    if (fnx_state(t) == FNX_STORED) fnx_storage_unref(t->storage);
    if (fnx_state(t) == FNX_FAILED) fnx_error_unref(t->error);
    if (fnx_debug_handles()) bury(t);
    else fnx_block_free(t);
}

/* Chains of links can be as long as a program: the dead wait in a list, linked through their own `storage` word once
 * that is let go, not on the C stack. */
void fnx_tensor_unref(fnx_tensor *t) {
    if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL)) return;
    if (!(t->flags & (FNX_T_LINKED | FNX_T_PINNED))) {
        block_end(t);
        return;
    }
    fnx_tensor **stack = NULL, *fixed[64];
    int64_t n = 0, capacity = 64;
    stack = fixed;
    stack[n++] = t;
    while (n > 0) {
        t = stack[--n];
        fnx_tensor_unpin(t);
        if (t->flags & FNX_T_LINKED) {
            fnx_tensor *const *in = fnx_operands(t);
            for (int k = 0; k < t->n_operands; k++) {
                if (!in[k] || __atomic_sub_fetch(&in[k]->refs, 1, __ATOMIC_ACQ_REL)) continue;
                if (n == capacity) {
                    fnx_tensor **more = malloc(sizeof *more * (size_t)(capacity * 2));
                    if (!more) continue; /* no host memory: better a leak than a crash */
                    memcpy(more, stack, sizeof *more * (size_t)n);
                    if (stack != fixed) free(stack);
                    stack = more, capacity *= 2;
                }
                stack[n++] = in[k];
            }
        }
        block_end(t);
    }
    if (stack != fixed) free(stack);
}

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

void fnx_own_slow(fnx_thread *me) {
    fnx_thread_register(me);
    int64_t capacity = me->handles_capacity * 2 + 256;
    fnx_tensor **more = realloc(me->handles, sizeof *more * (size_t)capacity);
    if (more) me->handles = more, me->handles_capacity = capacity;
    else me->n_handles--; /* the last handle is leaked rather than written out of bounds */
    if (me->scope_start == 0 && me->n_handles >= ROOT_WARN_TENSORS && !me->warned_root) {
        me->warned_root = true;
        fnx_log_write(
            FNX_TOPIC_TENSOR, FNX_LOG_WARNING,
            "%lld tensors belong to the thread's root scope and live until the thread ends: open a FNX_SCOPE; "
            "in the loop that makes them",
            (long long)me->n_handles);
    }
}

static void close_handles(fnx_thread *me, int64_t down_to) {
    fnx_recorder *locked = NULL; /* another thread may be flushing ours and reading `handles` */
    while (me->n_handles > down_to) {
        fnx_tensor *t = me->handles[--me->n_handles];
        if (t->owner != locked && t->owner) {
            if (locked) fnx_recorder_unlock(locked);
            fnx_recorder_lock(locked = t->owner);
        }
        t->handles--;
        fnx_tensor_unref(t);
    }
    if (locked) fnx_recorder_unlock(locked);
}

fnx_scope fnx_scope_open(int flags, const char *place) {
    fnx_thread *me = &fnx_thread_self;
    fnx_scope s = {.start = me->n_handles, .parent_start = me->scope_start, .place = place, .flags = flags};
    me->scope_start = me->n_handles;
    me->depth += !(flags & FNX_SCOPE_QUIET_FLAG);
    me->no_grad += (flags & FNX_SCOPE_NO_GRAD_FLAG) != 0;
    return s;
}

void fnx_scope_close(fnx_scope *s) {
    fnx_thread *me = &fnx_thread_self;
    /* what fnx_return moved lies between s->start and scope_start, and stays. A scope that was left by longjmp is
     * passed over: its handles are above ours. */
    close_handles(me, me->scope_start > s->start && me->scope_start <= me->n_handles ? me->scope_start : s->start);
    me->scope_start = s->parent_start;
    me->no_grad -= (s->flags & FNX_SCOPE_NO_GRAD_FLAG) != 0;
    if (s->flags & FNX_SCOPE_QUIET_FLAG) return;
    if (--me->depth == 0) /* after the handles went: least is demanded here */
        for (fnx_recorder *r = me->recorders; r; r = fnx_recorder_next(r)) {
            fnx_status code = fnx_recorder_flush(r, FNX_WHY_STEP);
            if (code) fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_ERROR, "closing a scope: %s", fnx_last_error()->message);
        }
}

/* ---- who else holds it ------------------------------------------------------------------------------------------- */

fnx_tensor *fnx_keep(fnx_tensor *t) {
    if (t) t->flags |= FNX_T_KEEP;
    return t;
}

/* The scope's handles are one range of the stack: swap the entry to its bottom and move the bottom up. */
fnx_tensor *fnx_pass(fnx_tensor *t) {
    fnx_thread *me = &fnx_thread_self;
    for (int64_t i = me->n_handles - 1; i >= me->scope_start; i--)
        if (me->handles[i] == t) {
            me->handles[i] = me->handles[me->scope_start], me->handles[me->scope_start++] = t;
            break;
        }
    return t;
}

fnx_tensor *fnx_return(fnx_tensor *t) { return t ? fnx_pass(fnx_keep(t)) : NULL; }

fnx_tensor *fnx_retain(fnx_tensor *t) {
    if (!t) return NULL;
    fnx_recorder *r = t->owner;
    if (r) fnx_recorder_lock(r);
    t->handles++;
    __atomic_fetch_add(&t->strong, 1, __ATOMIC_RELAXED);
    fnx_tensor_ref(t);
    if (r) fnx_recorder_unlock(r);
    return t;
}

void fnx_release(fnx_tensor *t) {
    if (!t) return;
    fnx_recorder *r = t->owner;
    if (r) fnx_recorder_lock(r);
    t->handles--;
    __atomic_fetch_sub(&t->strong, 1, __ATOMIC_RELAXED);
    fnx_tensor_unref(t);
    if (r) fnx_recorder_unlock(r);
}
