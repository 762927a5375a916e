/* See fallback.h. Slow by nature: the user has asked for it. */
#include "dispatch/fallback.h"

#include "base/alloc.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096 };

/* ---- preparing --------------------------------------------------------------------------------------------------- */

/* The hardware that stands in for h, opened once. Another thread may be first; then its handle count is too high by
 * one, which only keeps it open. */
static fnx_hardware *host_of(fnx_hardware *h, fnx_decline *why) {
    static const char *const candidates[] = {"cpu", "ref"};
    fnx_hardware *host = __atomic_load_n(&h->host, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates && !host; i++) {
        if (!strcmp(h->plugin_name, candidates[i]) || fnx_hardware_open(candidates[i], "", "", &host)) continue;
        if (!fnx_hardware_host_memory(host)) {
            fnx_hardware_unref(host);
            host = NULL;
            continue;
        }
        __atomic_store_n(&h->host, host, __ATOMIC_RELEASE);
    }
    if (!host) snprintf(why->text, sizeof why->text, "fallback=host: no plugin cpu or ref runs here");
    return host;
}

static int operand_dtype(const fnx_group *one) {
    const fnx_node *n = fnx_group_node(one, 0);
    return fnx_group_value(one, n->n_operands ? fnx_node_operand(one, n, 0) : fnx_node_result(one, n, 0))->dtype;
}

fnx_status fnx_fallback_prepare(fnx_hardware *h, const fnx_group *one, const fnx_launch *shapes,
                                const fnx_prepared **out, fnx_decline *why) {
    const fnx_prepared *work = NULL;
    fnx_hardware *host = host_of(h, why);
    if (!host) return FNX_E_DECLINED;
    FNX_TRY(host->backend.prepare(host->backend.user, one, shapes, &work, why));
    uint16_t op = fnx_group_node(one, 0)->op;
    int dtype = operand_dtype(one);
    pthread_mutex_lock(&h->lock);
    fnx_status code = fnx_ladder_keep_host(h, one, work, out);
    bool first = op < FNX_OP_LIMIT && !(h->warned[op] >> dtype & 1);
    if (first) h->warned[op] |= UINT64_C(1) << dtype;
    pthread_mutex_unlock(&h->lock);
    if (first)
        fnx_log_write(FNX_TOPIC_DISPATCH, FNX_LOG_WARNING,
                      "%s of %s is run on %s, because %s has no kernel for it: slow (fallback=host)", fnx_ops[op].name,
                      fnx_dtype_text(dtype), host->spec, h->spec);
    return code;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct span { /* the bytes of one binding that a launch may touch, and their copy */
    uint64_t from, bytes;
    void *copy;
    char *at; /* of the copy: as far from a page as on the device, so that promised alignments hold */
    bool written;
} span;

/* Several values never share a binding. */
static void measure(const fnx_launch *l, const fnx_value *v, span *s) {
    int64_t low = 0, high = 0, item = fnx_dtypes[v->dtype].bytes;
    for (int d = 0; d < v->rank; d++) {
        int64_t size = l->sizes[v->size[d]], reach = (size - 1) * l->strides[v->first_stride + (uint32_t)d];
        if (size == 0) return;
        if (reach < 0) low += reach;
        else high += reach;
    }
    s->from = l->bindings[v->index].address + (uint64_t)(low * item);
    s->bytes = (uint64_t)((high - low + 1) * item);
    s->written = v->kind == FNX_VALUE_OUTPUT;
}

static fnx_status transfer(fnx_hardware *h, const fnx_launch *l, uint32_t binding, const span *s, bool up) {
    fnx_binding there = {s->from, l->bindings[binding].memory}, here = {(uint64_t)(uintptr_t)s->at, NULL};
    return s->bytes ? h->table->copy(h->queue, up ? &there : &here, up ? &here : &there, s->bytes) : FNX_OK;
}

/* What is written is copied, too: between the elements of a strided result lie others. */
static fnx_status stage(fnx_hardware *h, const fnx_group *g, const fnx_launch *l, span *spans, fnx_binding *bindings) {
    for (uint32_t i = 0; i < g->n_values; i++) {
        const fnx_value *v = fnx_group_value(g, i);
        if (v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT) measure(l, v, &spans[v->index]);
    }
    for (uint32_t k = 0; k < g->n_bindings; k++) {
        span *s = &spans[k];
        if (!(s->copy = malloc(s->bytes + 2 * PAGE)))
            return fnx_error_set(FNX_E_NO_MEMORY, "fallback=host: no host memory for %llu bytes",
                                 (unsigned long long)s->bytes);
        s->at = (char *)(((uintptr_t)s->copy + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) + s->from % PAGE;
        bindings[k] = (fnx_binding){(uint64_t)(uintptr_t)s->at + (l->bindings[k].address - s->from), NULL};
        FNX_TRY(transfer(h, l, k, s, false));
    }
    return FNX_OK;
}

static fnx_status on_host(fnx_hardware *host, const fnx_prepared *w, fnx_launch *l, fnx_error_word *word) {
    uint64_t bytes = 0;
    char *scratch = NULL;
    FNX_TRY(host->backend.workspace(host->backend.user, w, l, &bytes));
    l->workspace = (fnx_binding){0, NULL};
    if (bytes) {
        if (!(scratch = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE)))
            return fnx_error_set(FNX_E_NO_MEMORY, "fallback=host: no host memory for %llu bytes",
                                 (unsigned long long)bytes);
        l->workspace.address = (uint64_t)(uintptr_t)scratch;
    }
    pthread_mutex_lock(&host->launch);
    fnx_hardware_drain_locked(host); /* what others have met stays theirs */
    fnx_status code = w->kernel ? w->kernel->launch(host->device, host->queue, w->group, l)
                                : host->groups->launch(w->handle, host->queue, l, 1, sizeof *l);
    host->table->queue_sync(host->queue, word);
    pthread_mutex_unlock(&host->launch);
    free(scratch);
    return code;
}

static fnx_status run_one(fnx_hardware *h, const fnx_prepared *work, const fnx_launch *l) {
    const fnx_group *g = work->group;
    bool shared = fnx_hardware_host_memory(h);
    span *spans = calloc(g->n_bindings + 1, sizeof *spans);
    fnx_binding *bindings = calloc(g->n_bindings + 1, sizeof *bindings);
    fnx_error_word word = {0, 0, 0, 0, 0, 0};
    fnx_launch here = *l;
    fnx_status code = spans && bindings ? FNX_OK : fnx_error_set(FNX_E_NO_MEMORY, "fallback=host: no host memory");
    if (!code && !shared) code = stage(h, g, l, spans, bindings);
    h->busy = true;
    fnx_hardware_drain_locked(h);
    if (!shared) here.bindings = bindings;
    if (!code) code = on_host(h->host, work->host, &here, &word);
    if (word.code && !h->pending.code) h->pending = word;
    for (uint32_t k = 0; k < g->n_bindings && !code && !shared; k++)
        if (spans[k].written) code = transfer(h, l, k, &spans[k], true);
    h->busy = true;
    fnx_hardware_drain_locked(h);
    for (uint32_t k = 0; spans && k < g->n_bindings; k++) free(spans[k].copy);
    free(spans), free(bindings);
    return code;
}

fnx_status fnx_fallback_run(fnx_hardware *h, const fnx_step *step) {
    fnx_status code = FNX_OK;
    for (uint32_t i = 0; i < step->n && !code; i++) code = run_one(h, step->work, &step->launches[i]);
    __atomic_fetch_add(&h->fallbacks, step->n, __ATOMIC_RELAXED);
    return code;
}
