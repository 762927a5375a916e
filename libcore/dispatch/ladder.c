/* Who runs a group: a kernel record of the backend that accepts it, or fornax.group/0. What was prepared is kept by the
 * bytes of the group, so equal work of all plans and shapes shares one handle. */
#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/fallback.h"

#include <stdlib.h>
#include <string.h>

static const fnx_kernel *kernel_at(const fnx_hardware *h, uint32_t i) {
    return FNX_AT(fnx_kernel, h->table->kernels, h->table->kernel_bytes, i);
}

/* ---- prepared work ----------------------------------------------------------------------------------------------- */

static fnx_prepared *lookup(const fnx_hardware *h, const fnx_group *g, const fnx_kernel *kernel,
                            const fnx_prepared *host) {
    if (!h->prepared_capacity) return NULL;
    for (uint64_t at = g->hash[0] % (uint64_t)h->prepared_capacity; h->prepared[at];
         at = (at + 1) % (uint64_t)h->prepared_capacity) {
        fnx_prepared *p = h->prepared[at];
        if (p->kernel == kernel && p->host == host && p->group->total_bytes == g->total_bytes &&
            !memcmp(p->group, g, g->total_bytes))
            return p;
    }
    return NULL;
}

static bool insert(fnx_hardware *h, fnx_prepared *p) {
    if (2 * h->n_prepared >= h->prepared_capacity) {
        int64_t capacity = h->prepared_capacity * 2 + 256;
        fnx_prepared **more = calloc((size_t)capacity, sizeof *more);
        if (!more) return false;
        for (int64_t i = 0; i < h->prepared_capacity; i++) {
            if (!h->prepared[i]) continue;
            uint64_t at = h->prepared[i]->group->hash[0] % (uint64_t)capacity;
            while (more[at]) at = (at + 1) % (uint64_t)capacity;
            more[at] = h->prepared[i];
        }
        free(h->prepared);
        h->prepared = more, h->prepared_capacity = capacity;
    }
    uint64_t at = p->group->hash[0] % (uint64_t)h->prepared_capacity;
    while (h->prepared[at]) at = (at + 1) % (uint64_t)h->prepared_capacity;
    h->prepared[at] = p;
    h->n_prepared++;
    return true;
}

/* A lasting copy of the group, with its handle, kernel, or work of the host. `lock` is held. */
static fnx_status keep(fnx_hardware *h, const fnx_group *g, const fnx_kernel *kernel, const fnx_prepared *host,
                       const fnx_prepared **out, fnx_decline *why) {
    fnx_prepared *p = lookup(h, g, kernel, host);
    bool own = !kernel && !host;
    if (p) return *out = p, FNX_OK;
    p = calloc(1, sizeof *p);
    void *copy = malloc(g->total_bytes);
    fnx_status code = p && copy ? FNX_OK : fnx_error_set(FNX_E_NO_MEMORY, "no host memory to prepare a group");
    if (!code) {
        p->group = memcpy(copy, g, g->total_bytes), p->kernel = kernel, p->host = host;
        if (own) code = h->groups->prepare(h->device, p->group, &p->handle, why);
        if (!code && !insert(h, p)) {
            if (own) h->groups->release(p->handle);
            code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory to prepare a group");
        }
    }
    if (code) {
        free(copy), free(p);
        return code;
    }
    *out = p;
    return FNX_OK;
}

fnx_status fnx_ladder_keep_host(fnx_hardware *h, const fnx_group *one, const fnx_prepared *work,
                                const fnx_prepared **out) {
    return keep(h, one, NULL, work, out, NULL);
}

/* ---- the ladder -------------------------------------------------------------------------------------------------- */

static bool takes(const fnx_group *g, const fnx_kernel *k) {
    const fnx_node *n = fnx_group_node(g, 0);
    if (g->n_nodes != 1 || k->op != n->op) return false;
    for (uint32_t i = 0; i < n->n_operands; i++)
        if (!(k->dtypes_in >> fnx_group_value(g, fnx_node_operand(g, n, i))->dtype & 1)) return false;
    for (uint32_t i = 0; i < n->n_results; i++)
        if (!(k->dtypes_out >> fnx_group_value(g, fnx_node_result(g, n, i))->dtype & 1)) return false;
    return true;
}

static void explain(const fnx_group *g, const char *by, const fnx_decline *why) {
    if (!fnx_log_enabled(FNX_TOPIC_DISPATCH, FNX_LOG_TRACE)) return;
    uint16_t op = fnx_group_node(g, 0)->op;
    fnx_log_write(FNX_TOPIC_DISPATCH, FNX_LOG_TRACE, "%s: declined by %s: %s",
                  op < FNX_OP_LIMIT && fnx_ops[op].name ? fnx_ops[op].name : "?", by,
                  why && why->text[0] ? why->text : "no reason given");
}

static fnx_status prepare(void *user, const fnx_group *g, const fnx_launch *shapes, const fnx_prepared **out,
                          fnx_decline *why) {
    fnx_hardware *h = user;
    pthread_mutex_lock(&h->lock);
    fnx_status code = FNX_E_DECLINED;
    for (uint32_t i = 0; i < h->table->n_kernels && code == FNX_E_DECLINED; i++) {
        const fnx_kernel *k = kernel_at(h, i);
        if (!takes(g, k)) continue;
        code = k->supports ? k->supports(h->device, g, shapes, why) : FNX_OK;
        if (!code) code = keep(h, g, k, NULL, out, why);
        else if (code == FNX_E_DECLINED) explain(g, "a kernel", why);
    }
    if (code == FNX_E_DECLINED && h->groups) {
        code = keep(h, g, NULL, NULL, out, why);
        if (code == FNX_E_DECLINED) explain(g, "fornax.group/0", why);
    }
    pthread_mutex_unlock(&h->lock);
    return code;
}

static fnx_status prepare_on_host(void *user, const fnx_group *one, const fnx_launch *shapes, const fnx_prepared **out,
                                  fnx_decline *why) {
    return fnx_fallback_prepare(user, one, shapes, out, why);
}

static fnx_status workspace(void *user, const fnx_prepared *work, const fnx_launch *shapes, uint64_t *out_bytes) {
    fnx_hardware *h = user;
    *out_bytes = 0;
    if (work->host) return FNX_OK;
    if (work->kernel)
        return work->kernel->workspace ? work->kernel->workspace(h->device, work->group, shapes, out_bytes) : FNX_OK;
    return h->groups->workspace ? h->groups->workspace(work->handle, shapes, out_bytes) : FNX_OK;
}

static fnx_status layout(void *user, const fnx_group *one, const fnx_launch *shapes, fnx_layout *out, bool *strided) {
    const fnx_hardware *h = user;
    *strided = h->groups != NULL;
    for (uint32_t i = 0; i < h->table->n_kernels; i++)
        if (takes(one, kernel_at(h, i))) *strided = (kernel_at(h, i)->flags & FNX_KERNEL_STRIDED) != 0;
    return h->layouts ? h->layouts->prefer(h->device, one, shapes, out) : FNX_E_DECLINED;
}

static bool whole(void *user, uint16_t op, int dtype) {
    const fnx_hardware *h = user;
    for (uint32_t i = 0; i < h->table->n_kernels; i++) {
        const fnx_kernel *k = kernel_at(h, i);
        if (k->op == op && k->flags & FNX_KERNEL_BETTER && k->dtypes_in >> dtype & 1) return true;
    }
    return false;
}

uint64_t fnx_ladder_dtypes(const fnx_hardware *h, uint16_t op) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < h->table->n_kernels; i++)
        if (kernel_at(h, i)->op == op) mask |= kernel_at(h, i)->dtypes_in;
    for (uint32_t i = 0; i < h->caps.n_ops; i++) {
        const fnx_op_caps *c = FNX_AT(fnx_op_caps, h->caps.ops, h->caps.op_bytes, i);
        if (c->op == op) mask |= c->dtypes_in;
    }
    return mask;
}

void fnx_ladder_init(fnx_hardware *h) {
    h->caps = (fnx_group_caps){.struct_size = sizeof h->caps};
    if (h->groups && h->groups->capabilities(h->device, &h->caps)) h->groups = NULL;
    uint32_t nodes = h->caps.max_nodes ? h->caps.max_nodes : 64,
             bindings = h->caps.max_bindings ? h->caps.max_bindings : 64;
    h->backend = (fnx_backend){.user = h,
                               .max_nodes = nodes < 64 ? nodes : 64,
                               .max_bindings = bindings,
                               .memory_align = h->info.memory_align,
                               .wants = h->caps.wants,
                               .prepare = prepare,
                               .prepare_on_host = prepare_on_host,
                               .workspace = workspace,
                               .layout = layout,
                               .whole = whole};
}

void fnx_ladder_end(fnx_hardware *h) {
    for (int64_t i = 0; i < h->prepared_capacity; i++) {
        fnx_prepared *p = h->prepared[i];
        if (!p) continue;
        if (p->handle) h->groups->release(p->handle);
        free((void *)p->group);
        free(p);
    }
    free(h->prepared);
}
