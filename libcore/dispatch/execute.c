/* Walking a plan: patch what may differ, then one call through the device's tables per step. */
#include "base/alloc.h"
#include "dispatch/fallback.h"

#include <inttypes.h>
#include <stdlib.h>

static void patch(const fnx_recorder *r, fnx_plan *p, fnx_storage *const *outs) {
    if (p->n_arena_patches &&
        (p->arena_address != r->arena->at.address || p->n_dyn_patches)) { /* below these are added to */
        const fnx_binding *arena = &r->arena->at;
        for (int64_t i = 0; i < p->n_arena_patches; i++)
            *p->arena_patches[i].at = (fnx_binding){arena->address + p->arena_patches[i].offset, arena->memory};
        p->arena_address = arena->address;
    }
    for (int64_t i = 0; i < p->n_patches; i++) {
        const fnx_patch *a = &p->patches[i];
        const fnx_binding *base =
            a->buffer < p->n_inputs ? &r->inputs[a->buffer]->storage->at : &outs[a->buffer - p->n_inputs]->at;
        *a->at = (fnx_binding){base->address + a->offset, base->memory};
    }
    for (int64_t i = 0; i < p->n_dyn_patches; i++) {
        const fnx_dyn_patch *a = &p->dyn_patches[i];
        a->at->address += r->args[a->arg] * (uint64_t)a->bytes;
    }
    for (int64_t i = 0; i < p->n_scalar_patches; i++) {
        const fnx_scalar_patch *a = &p->scalar_patches[i];
        *a->at = fnx_scalar_make(a->dtype, r->args[a->arg]);
    }
}

static fnx_status run(fnx_hardware *h, const fnx_step *s) {
    const fnx_prepared *w = s->work;
    if (w->host) return fnx_fallback_run(h, s);
    if (!w->kernel) return h->groups->launch(w->handle, h->queue, s->launches, s->n, sizeof *s->launches);
    for (uint32_t i = 0; i < s->n; i++) {
        fnx_status code = w->kernel->launch(h->device, h->queue, w->group, &s->launches[i]);
        if (code) return code;
    }
    return FNX_OK;
}

fnx_status fnx_execute(fnx_hardware *h, fnx_recorder *r, fnx_plan *p, fnx_storage *const *outs, bool *started) {
    fnx_status code = FNX_OK;
    *started = false;
    patch(r, p, outs);
    pthread_mutex_lock(&h->launch);
    for (int64_t i = 0; i < p->n_steps && !code; i++) {
        code = run(h, &p->steps[i]);
        if (code)
            fnx_error_add_context("launching %s",
                                  fnx_ops[p->steps[i].op].name ? fnx_ops[p->steps[i].op].name : "a step");
        else *started = true;
    }
    h->busy = true;
    if (!code && h->table->queue_flush) code = h->table->queue_flush(h->queue);
    pthread_mutex_unlock(&h->launch);
    r->stats.launches += p->stats.launches;
    return code;
}

/* ---- errors that kernels met ------------------------------------------------------------------------------------- */

fnx_status fnx_sites_add(fnx_hardware *h, fnx_plan *p) {
    fnx_status code = FNX_OK;
    pthread_mutex_lock(&h->launch);
    uint16_t *op = malloc(sizeof *op * (size_t)(p->n_steps + 1));
    const fnx_group **group = malloc(sizeof *group * (size_t)(p->n_steps + 1));
    if (!op || !group || !fnx_grow((void **)&h->sites, &h->sites_capacity, sizeof *h->sites, h->n_sites + 1)) {
        free(op), free(group);
        code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a plan");
    } else {
        p->first_site = h->next_site;
        for (int64_t i = 0; i < p->n_steps; i++) {
            op[i] = p->steps[i].op, group[i] = p->steps[i].work->group;
            for (uint32_t k = 0; k < p->steps[i].n; k++) p->steps[i].launches[k].site = p->first_site + (uint32_t)i;
        }
        h->sites[h->n_sites++] = (fnx_site_range){p->first_site, (uint32_t)p->n_steps, op, group};
        h->next_site += (uint32_t)p->n_steps;
    }
    pthread_mutex_unlock(&h->launch);
    return code;
}

fnx_status fnx_site_error(fnx_hardware *h, const fnx_error_word *word, const char *text) {
    const char *name = "an operation";
    int64_t low = 0, high = h->n_sites;
    while (low + 1 < high) { /* ranges ascend */
        int64_t middle = (low + high) / 2;
        if (h->sites[middle].first <= word->site) low = middle;
        else high = middle;
    }
    if (low < h->n_sites && word->site - h->sites[low].first < h->sites[low].n) {
        const fnx_group *g = h->sites[low].group[word->site - h->sites[low].first];
        uint16_t op = word->node < g->n_nodes ? fnx_group_node(g, word->node)->op : 0;
        if (op < FNX_OP_LIMIT && fnx_ops[op].name) name = fnx_ops[op].name;
    }
    if (word->code != FNX_E_INDEX)
        return fnx_error_set(word->code, "%s failed on %s%s%s", name, h->spec, *text ? ": " : "", text);
    if (word->limit == 0) return fnx_error_set(FNX_E_INDEX, "%s: an integer was divided by 0; its element is 0", name);
    return fnx_error_set(FNX_E_INDEX,
                         "%s: index %" PRId64 " is outside [0, %" PRId64 "); its element reads 0 or was not written",
                         name, word->index, word->limit);
}
