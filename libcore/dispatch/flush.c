/* Flush: what is demanded, which plan, its memory, run it, settle every tensor of the graph. */
#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/hardware.h"
#include "dispatch/verify.h"
#include "tensor/saves.h"
#include "tensor/variable.h"

#include <stdlib.h>

/* ---- settling ---------------------------------------------------------------------------------------------------- */

static void unlink_operands(fnx_tensor *t) {
    if (!(t->flags & FNX_T_LINKED)) return;
    t->flags &= (uint8_t)~FNX_T_LINKED;
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands; k++)
        if (in[k]) fnx_tensor_unref(in[k]);
}

static void link_operands(fnx_tensor *t) {
    if (t->flags & FNX_T_LINKED) return;
    t->flags |= FNX_T_LINKED;
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands; k++)
        if (in[k]) fnx_tensor_ref(in[k]);
}

static void pin(fnx_tensor *t) {
    if (t->flags & FNX_T_PINNED) return;
    unsigned saves = fnx_op_saves(t->op);
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands && k < 3; k++)
        if (saves >> k & 1 && in[k]) __atomic_fetch_add(&in[k]->strong, 1, __ATOMIC_RELAXED);
    if (saves & FNX_SAVES_RESULT_BIT) __atomic_fetch_add(&t->strong, 1, __ATOMIC_RELAXED);
    t->flags |= FNX_T_PINNED;
}

/* Every tensor of the graph leaves the state PENDING. Backwards, so that a survivor's links reach its operands before
 * the graph lets go of them. */
static void settle(fnx_recorder *r, const fnx_plan *p) {
    fnx_storage **outs = r->out_storage;
    int64_t n_outputs = p ? p->n_outputs : 0;
    for (int64_t k = 0; k < n_outputs; k++)
        if (p->outputs[k].from >= 0) {
            fnx_tensor *old = r->inputs[p->outputs[k].from];
            old->storage = NULL;
            fnx_set_state(old, FNX_DONATED);
        }
    int64_t out = n_outputs - 1;
    for (int64_t i = r->n - 1; i >= 0; i--) {
        fnx_tensor *t = r->pending[i];
        bool stored = p && r->demand[i], taped = r->mark[i] & FNX_M_TAPED;
        fnx_storage *s = stored ? outs[out] : NULL;
        if (stored) t->layout = p->outputs[out--].layout;
        if (__atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) == 1) { /* only the graph: the common case */
            fnx_storage_unref(s);
            fnx_set_state(t, FNX_EVAPORATED);
            fnx_tensor_unref(t);
            continue;
        }
        t->storage = s;
        fnx_set_state(t, stored ? FNX_STORED : FNX_EVAPORATED);
        if (!stored || taped) link_operands(t);
        else unlink_operands(t);
        if (taped) pin(t);
        fnx_tensor_unref(t);
    }
    for (int64_t j = 0; j < r->n_inputs; j++) fnx_tensor_unref(r->inputs[j]);
    for (int64_t k = 0; k < r->n_sets; k++) {
        fnx_variable *v = r->sets[k];
        if (!v) continue;
        v->recorder = NULL;
        fnx_variable_settle(v, true);
    }
    fnx_recorder_clear(r);
}

/* The flush failed: what was pending is failed, variables have their old values, except those that a started plan may
 * have overwritten. What depends on nothing, a fill, say, and was not asked for can be computed again. The thread's
 * last error is the cause. */
static void settle_failed(fnx_recorder *r, const fnx_plan *p, bool started) {
    fnx_error *cause = fnx_error_take_last();
    for (int64_t k = 0; started && k < p->n_outputs; k++)
        if (p->outputs[k].from >= 0) {
            fnx_tensor *old = r->inputs[p->outputs[k].from];
            old->storage = NULL;
            fnx_set_state(old, FNX_DONATED);
        }
    for (int64_t k = 0; k < r->n_sets; k++) {
        fnx_variable *v = r->sets[k];
        if (!v) continue;
        v->recorder = NULL;
        fnx_variable_settle(v, !v->old || fnx_state(v->old) == FNX_DONATED);
    }
    for (int64_t i = r->n - 1; i >= 0; i--) {
        fnx_tensor *t = r->pending[i];
        bool again = t->n_operands == 0 && !t->strong;
        if (!again) t->error = fnx_error_ref(cause);
        fnx_set_state(t, again ? FNX_EVAPORATED : FNX_FAILED);
        fnx_tensor_unpin(t);
        unlink_operands(t);
        fnx_tensor_unref(t);
    }
    for (int64_t j = 0; j < r->n_inputs; j++) fnx_tensor_unref(r->inputs[j]);
    fnx_recorder_clear(r);
    fnx_error_raise(cause);
    fnx_error_unref(cause);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Everything is reserved before the first launch. */
static fnx_status reserve(fnx_hardware *h, fnx_recorder *r, const fnx_plan *p) {
    if (!fnx_grow((void **)&r->out_storage, &r->out_capacity, sizeof *r->out_storage, p->n_outputs + 1))
        return fnx_error_set(FNX_E_NO_MEMORY, "no host memory for %lld results", (long long)p->n_outputs);
    fnx_status code = FNX_OK;
    if (p->stats.arena_bytes > (r->arena ? r->arena->bytes : 0)) {
        if (r->arena) fnx_pool_count_arena(&h->pool, -(int64_t)r->arena->capacity);
        fnx_storage_unref(r->arena);
        r->arena = NULL;
        FNX_TRY(fnx_pool_take(&h->pool, p->stats.arena_bytes, &r->arena));
        fnx_pool_count_arena(&h->pool, (int64_t)r->arena->capacity);
    }
    int64_t k = 0;
    for (; k < p->n_outputs && !code; k++) {
        const fnx_output *o = &p->outputs[k];
        if (o->from >= 0) r->out_storage[k] = r->inputs[o->from]->storage;
        else if (o->share >= 0)
            r->out_storage[k] = fnx_storage_ref(o->share < p->n_inputs ? r->inputs[o->share]->storage
                                                                       : r->out_storage[o->share - p->n_inputs]);
        else if ((code = fnx_pool_take(&h->pool, o->bytes, &r->out_storage[k]))) break;
    }
    if (!code) return FNX_OK;
    while (k-- > 0)
        if (p->outputs[k].from < 0) fnx_storage_unref(r->out_storage[k]);
    return code;
}

static void release_outputs(fnx_recorder *r, const fnx_plan *p) {
    for (int64_t k = 0; k < p->n_outputs; k++)
        fnx_storage_unref(r->out_storage[k]); /* donated ones too: their input is DONATED */
}

/* ---- flush ------------------------------------------------------------------------------------------------------- */

static const char *const why_text[] =
    {[FNX_WHY_READ] = "a read", [FNX_WHY_STEP] = "a step", [FNX_WHY_LIMIT] = "its limit"};

static fnx_status plan_for(fnx_hardware *h, fnx_recorder *r, fnx_plan **out) {
    uint64_t key[2];
    fnx_plan_key(r, key);
    if ((*out = fnx_plan_find(r, key))) {
        r->stats.hits++;
        return FNX_OK;
    }
    fnx_backend backend = h->backend;
    backend.fallback = (uint32_t)r->settings & 15;
    FNX_TRY(fnx_plan_build(r, &backend, key, out));
    fnx_status code = fnx_sites_add(h, *out);
    if (!code) code = fnx_plan_insert(r, *out);
    if (code) {
        fnx_plan_destroy(*out);
        return code;
    }
    r->stats.plans++;
    return FNX_OK;
}

static void log_flush(const fnx_recorder *r, const fnx_plan *p, fnx_why why) {
    fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_DEBUG,
                  "flush for %s: %lld records, %u groups of %u nodes, %u launches in %lld calls, arena %llu bytes "
                  "(bound %llu)",
                  why_text[why], (long long)r->n, p->stats.groups, p->stats.grouped_nodes, p->stats.launches,
                  (long long)p->n_steps, (unsigned long long)p->stats.arena_bytes,
                  (unsigned long long)p->stats.bound_bytes);
}

fnx_status fnx_recorder_flush_locked(fnx_recorder *r, fnx_why why) {
    if (!r->n) return FNX_OK;
    fnx_hardware *h = r->hardware;
    fnx_plan *p = NULL;
    bool started = false;
    fnx_demand(r, why == FNX_WHY_LIMIT || r->recomputing);
    if (!memchr(r->demand, 1, (size_t)r->n)) { /* an abandoned graph needs no plan */
        r->stats.dropped++;
        settle(r, NULL);
        return FNX_OK;
    }
    fnx_status code = fnx_fork_check();
    if (!code) code = plan_for(h, r, &p);
    if (!code) code = reserve(h, r, p);
    if (code) {
        settle_failed(r, NULL, false);
        return code;
    }
    if (fnx_log_enabled(FNX_TOPIC_GRAPH, FNX_LOG_DEBUG)) log_flush(r, p, why);
    fnx_verification v = {NULL, NULL};
    bool verify = r->settings >> 8 == FNX_ON;
    if (verify) code = fnx_verify_begin(h, r, &v);
    if (!code) code = fnx_execute(h, r, p, r->out_storage, &started);
    if (!code && verify) code = fnx_verify_end(h, r, p, &v);
    fnx_verify_free(&v);
    r->stats.flushes++;
    if (code) {
        for (int64_t k = 0; k < p->n_outputs; k++)
            if (!started && p->outputs[k].from >= 0) r->out_storage[k] = NULL; /* stays the input's */
        release_outputs(r, p);
        settle_failed(r, p, started);
        return code;
    }
    for (int64_t k = 0; k < p->n_outputs; k++) {
        r->stats.donated += p->outputs[k].from >= 0;
        if (p->outputs[k].from < 0 && p->outputs[k].share < 0)
            r->stats.stored++, r->stats.stored_bytes += p->outputs[k].bytes;
    }
    settle(r, p);
    return FNX_OK;
}

fnx_status fnx_flush(void) {
    fnx_status first = FNX_OK;
    for (fnx_recorder *r = fnx_thread_self.recorders; r; r = r->next_of_thread) {
        fnx_status code = fnx_recorder_flush(r, FNX_WHY_STEP);
        if (code && !first) first = code;
    }
    return first;
}
