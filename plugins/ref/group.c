/* fornax.group/0: prepare looks whether every word of a group is known, and copies it; launch runs it node by node. */
#include "ref.h"

#include <string.h>

enum { MAX_VALUES = 1024 }; /* of a group: a launch keeps one address per value on its stack */

typedef struct ref_handle {
    ref_device *device;
    fnx_group *group;      /* our copy, behind this struct */
    uint8_t *in_workspace; /* per value: it lives there during a launch */
} ref_handle;

/* ---- capabilities ------------------------------------------------------------------------------------------------ */

static int32_t capabilities(void *device, fnx_group_caps *out) {
    const ref_device *d = device;
    out->wants = 0; /* no promise helps scalar loops */
    out->anchors = 1u << FNX_ANCHOR_ELEMENTWISE | 1u << FNX_ANCHOR_REDUCE | 1u << FNX_ANCHOR_ROWS |
                   1u << FNX_ANCHOR_MATMUL | 1u << FNX_ANCHOR_CONV | 1u << FNX_ANCHOR_GATHER |
                   1u << FNX_ANCHOR_SCATTER | 1u << FNX_ANCHOR_OPAQUE;
    out->max_bindings = 0;
    out->max_nodes = MAX_VALUES / (REF_MAX_OPERANDS + REF_MAX_RESULTS);
    out->max_rank = FNX_MAX_RANK;
    out->max_row = INT64_MAX;
    out->n_ops = ref_n_ops;
    out->op_bytes = sizeof *d->ops;
    out->ops = d->ops;
    return FNX_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

int32_t ref_decline(fnx_decline *why, uint32_t reason, uint32_t node, uint32_t value, const char *text) {
    if (why) {
        why->why = reason;
        why->node = node;
        why->value = value;
        strncpy(why->text, text, sizeof why->text - 1);
        why->text[sizeof why->text - 1] = 0;
    }
    return FNX_E_DECLINED;
}

static int32_t check_value(const fnx_group *g, uint32_t i, fnx_decline *why) {
    const fnx_value *v = fnx_group_value(g, i);
    if (v->flags) return ref_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, i, "a value flag newer than this plugin");
    if (v->kind < FNX_VALUE_INPUT || v->kind > FNX_VALUE_INDEX)
        return ref_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, i, "a value kind newer than this plugin");
    if (v->rank > FNX_MAX_RANK) return ref_decline(why, FNX_DECLINE_LAYOUT, FNX_NONE, i, "rank above 8");
    if (ref_dtype_bytes(v->dtype) == 0 || (v->kind == FNX_VALUE_INDEX && v->dtype != FNX_I64))
        return ref_decline(why, FNX_DECLINE_DTYPE, FNX_NONE, i, "ref has bool, u8, i32, i64, f32, f64 (and u64 seeds)");
    return FNX_OK;
}

static int32_t check_dtype(const fnx_group *g, const ref_op *row, uint32_t node, char letter, uint32_t value,
                           uint16_t *common, fnx_decline *why) {
    const uint16_t dtype = fnx_group_value(g, value)->dtype;
    if (!((ref_letter_dtypes(row, letter) >> dtype) & 1))
        return ref_decline(why, FNX_DECLINE_DTYPE, node, value, "ref does not run this op on this dtype");
    if (letter == 'T' && *common != 0 && dtype != *common)
        return ref_decline(why, FNX_DECLINE_DTYPE, node, value, "operands and result of this op have one dtype");
    if (letter == 'T') *common = dtype;
    return FNX_OK;
}

/* Holds the node's operands and results against the signature of its row. */
static int32_t check_node(const fnx_group *g, uint32_t i, fnx_decline *why) {
    const fnx_node *n = fnx_group_node(g, i);
    const ref_op *row = ref_find_op(n->op);
    const char *text, *letter;
    uint32_t k = 0;
    uint16_t common = 0;
    ref_call scratch;
    if (n->flags) return ref_decline(why, FNX_DECLINE_FEATURE, i, FNX_NONE, "a node flag newer than this plugin");
    if (!row) return ref_decline(why, FNX_DECLINE_OP, i, FNX_NONE, "ref does not have this op");
    if (!ref_read_attrs(g, n, &scratch, &text)) return ref_decline(why, FNX_DECLINE_ATTR, i, FNX_NONE, text);
    for (letter = row->signature; *letter != '>'; letter++, k++) {
        if (k >= n->n_operands) return ref_decline(why, FNX_DECLINE_OP, i, FNX_NONE, "too few operands");
        if (check_dtype(g, row, i, *letter, fnx_node_operand(g, n, k), &common, why)) return FNX_E_DECLINED;
    }
    if (k != n->n_operands) return ref_decline(why, FNX_DECLINE_OP, i, FNX_NONE, "too many operands");
    for (letter++, k = 0; *letter; letter++, k++) {
        if (k >= n->n_results && *letter == 'w') break;
        if (k >= n->n_results) return ref_decline(why, FNX_DECLINE_OP, i, FNX_NONE, "too few results");
        if (check_dtype(g, row, i, *letter, fnx_node_result(g, n, k), &common, why)) return FNX_E_DECLINED;
    }
    if (k != n->n_results) return ref_decline(why, FNX_DECLINE_OP, i, FNX_NONE, "too many results");
    return FNX_OK;
}

static int32_t check_group(const fnx_group *g, fnx_decline *why) {
    if (g->features)
        return ref_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, FNX_NONE,
                           "the group uses a feature newer than this plugin");
    if (g->n_values > MAX_VALUES)
        return ref_decline(why, FNX_DECLINE_LIMIT, FNX_NONE, FNX_NONE, "more than 1024 values");
    for (uint32_t i = 0; i < g->n_values; i++)
        if (check_value(g, i, why)) return FNX_E_DECLINED;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (check_node(g, i, why)) return FNX_E_DECLINED;
    return FNX_OK;
}

/* Temporaries live in the workspace; so does, until all nodes have run, an output whose slot an input has, too: then
 * no node can overwrite what another (or the same one, at another position) still has to read. */
static bool lives_in_workspace(const fnx_group *g, const fnx_value *v) {
    if (v->kind == FNX_VALUE_TEMP) return true;
    if (v->kind != FNX_VALUE_OUTPUT) return false;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const fnx_value *other = fnx_group_value(g, i);
        if (other->kind == FNX_VALUE_INPUT && other->slot == v->slot) return true;
    }
    return false;
}

static int32_t prepare(void *device, const fnx_group *group, void **out_handle, fnx_decline *why) {
    ref_device *d = device;
    if (check_group(group, why)) return FNX_E_DECLINED;
    ref_handle *h = d->host->alloc(sizeof *h + (uint64_t)group->total_bytes + group->n_values, REF_ALIGN);
    if (!h) return d->host->error(FNX_E_NO_MEMORY, "ref: no memory for a prepared group");
    h->device = d;
    h->group = (fnx_group *)(h + 1);
    h->in_workspace = (uint8_t *)h->group + group->total_bytes;
    memcpy(h->group, group, group->total_bytes);
    for (uint32_t i = 0; i < group->n_values; i++)
        h->in_workspace[i] = lives_in_workspace(group, fnx_group_value(group, i));
    *out_handle = h;
    return FNX_OK;
}

static void release(void *handle) {
    ref_handle *h = handle;
    if (h) h->device->host->free(h);
}

/* ---- workspace --------------------------------------------------------------------------------------------------- */

/* Bytes of value v as a row-major array, rounded up so that the next one is aligned. False: more than there can be. */
static bool workspace_bytes(const fnx_value *v, const fnx_launch *l, uint64_t *bytes) {
    *bytes = ref_dtype_bytes(v->dtype);
    for (uint32_t d = 0; d < v->rank; d++)
        if (__builtin_mul_overflow(*bytes, (uint64_t)l->sizes[v->size[d]], bytes)) return false;
    if (*bytes > INT64_MAX) return false;
    *bytes = (*bytes + REF_ALIGN - 1) / REF_ALIGN * REF_ALIGN;
    return true;
}

static int32_t workspace(void *handle, const fnx_launch *launch, uint64_t *out_bytes) {
    const ref_handle *h = handle;
    *out_bytes = 0;
    for (uint32_t i = 0; i < h->group->n_values; i++) {
        uint64_t bytes;
        if (!h->in_workspace[i]) continue;
        if (!workspace_bytes(fnx_group_value(h->group, i), launch, &bytes) ||
            __builtin_add_overflow(*out_bytes, bytes, out_bytes))
            return h->device->host->error(FNX_E_NO_MEMORY, "ref: the temporaries of a group exceed all memory");
    }
    return FNX_OK;
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

ref_view ref_view_of(const fnx_value *v, const fnx_launch *launch) {
    ref_view view = {.dtype = v->dtype, .rank = v->rank};
    view.base = (char *)(uintptr_t)launch->bindings[v->index].address;
    for (uint32_t d = 0; d < v->rank; d++) {
        view.size[d] = launch->sizes[v->size[d]];
        view.stride[d] = view.size[d] == 1 ? 0 : launch->strides[v->first_stride + d];
    }
    return view;
}

static ref_view row_major(const fnx_value *v, const fnx_launch *l, char *base) {
    ref_view view = {.dtype = v->dtype, .rank = v->rank, .base = base};
    int64_t packed = 1;
    for (uint32_t d = v->rank; d-- > 0;) {
        view.size[d] = l->sizes[v->size[d]];
        view.stride[d] = view.size[d] == 1 ? 0 : packed;
        packed *= view.size[d];
    }
    return view;
}

/* One launch being run. */
typedef struct ref_run {
    const ref_handle *handle;
    const fnx_launch *launch;
    ref_queue *queue;
    char *temporary[MAX_VALUES]; /* address of each value in the workspace */
} ref_run;

static const fnx_scalar *scalars_of(const fnx_group *g, const fnx_launch *l) {
    if (g->scalar_value == FNX_NONE) return l->scalars;
    return (const fnx_scalar *)(uintptr_t)l->bindings[fnx_group_value(g, g->scalar_value)->index].address;
}

static ref_view view_of(const ref_run *r, uint32_t i) {
    const fnx_group *g = r->handle->group;
    const fnx_value *v = fnx_group_value(g, i);
    if (r->handle->in_workspace[i]) return row_major(v, r->launch, r->temporary[i]);
    switch (v->kind) {
    case FNX_VALUE_SCALAR: return row_major(v, r->launch, (char *)(uintptr_t)&scalars_of(g, r->launch)[v->index]);
    case FNX_VALUE_CONST: return row_major(v, r->launch, (char *)(uintptr_t)fnx_group_const(g, v->index));
    case FNX_VALUE_INDEX: {
        ref_view view = row_major(v, r->launch, NULL);
        view.dtype = REF_NO_MEMORY;
        for (uint32_t d = 0; d < v->rank; d++) view.stride[d] = r->launch->strides[v->first_stride + d];
        return view;
    }
    default: return ref_view_of(v, r->launch);
    }
}

static void run_node(const ref_run *r, uint32_t i) {
    const fnx_group *g = r->handle->group;
    const fnx_node *n = fnx_group_node(g, i);
    const char *text;
    ref_call c = {.queue = r->queue, .site = r->launch->site, .node = i, .op = n->op};
    c.n_operands = n->n_operands;
    c.n_results = n->n_results;
    for (uint32_t k = 0; k < n->n_operands; k++) c.in[k] = view_of(r, fnx_node_operand(g, n, k));
    for (uint32_t k = 0; k < n->n_results; k++) c.out[k] = view_of(r, fnx_node_result(g, n, k));
    (void)ref_read_attrs(g, n, &c, &text); /* prepare has looked */
    ref_find_op(n->op)->run(&c);
}

void ref_copy(const ref_view *from, const ref_view *to) {
    int64_t at[FNX_MAX_RANK] = {0};
    for (bool more = ref_count(to) > 0; more; more = ref_next(to, to->rank, at))
        ref_store(to, ref_offset(to, at), ref_load(from, ref_offset(from, at)));
}

static void launch_one(const ref_handle *h, ref_queue *queue, const fnx_launch *l) {
    const fnx_group *g = h->group;
    ref_run r; /* without an initializer, which would clear all addresses */
    r.handle = h;
    r.launch = l;
    r.queue = queue;
    uint64_t at = l->workspace.address, bytes;
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (!h->in_workspace[i]) continue;
        r.temporary[i] = (char *)(uintptr_t)at;
        at += workspace_bytes(fnx_group_value(g, i), l, &bytes) ? bytes : 0;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) run_node(&r, i);
    for (uint32_t i = 0; i < g->n_values; i++) {
        const fnx_value *v = fnx_group_value(g, i);
        if (v->kind != FNX_VALUE_OUTPUT || !h->in_workspace[i]) continue;
        const ref_view from = view_of(&r, i), to = ref_view_of(v, l);
        ref_copy(&from, &to);
    }
}

static int32_t launch(void *handle, void *queue, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes) {
    for (uint32_t i = 0; i < n; i++) launch_one(handle, queue, FNX_AT(fnx_launch, launches, launch_bytes, i));
    return FNX_OK;
}

const fnx_group_interface ref_groups = {
    .struct_size = sizeof ref_groups,
    .capabilities = capabilities,
    .prepare = prepare,
    .workspace = workspace,
    .launch = launch,
    .release = release,
};
