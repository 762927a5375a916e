/* Building a plan: nodes, units, layouts, then memory and launches.
 *
 * Positions are places in the order of units. A stored value that is neither input nor output has an interval in the
 * arena, from the position that makes it to the last one that reads it; a result may take over the memory of an operand
 * that dies there, if both are walked alike. */
#include "base/alloc.h"
#include "base/log.h"
#include "graph/fragment.h"
#include "graph/pack.h"

#include <stdlib.h>

enum { ATTEMPTS = 100, BATCH_MAX = 256 };

typedef struct work { /* one launch, before launches of one handle are put together */
    const fnx_prepared *prepared;
    fnx_launch launch;
    int32_t position;
    uint16_t op;
    int64_t first_use; /* in uses: identities of its bindings */
    int32_t n_uses;
} work;

typedef struct use {
    int32_t identity;
    bool written;
} use;

typedef struct placer {
    fnx_builder *b;
    fnx_plan *plan;
    fnx_fragment *f;
    int64_t n_buffers;   /* inputs and outputs */
    int32_t *last_use;   /* per node */
    int32_t *owner;      /* per output: node whose storage it is, or -1 if it shares */
    bool *taken;         /* per input: overwritten, or shared with an output */
    fnx_interval *slots; /* of the arena */
    int64_t n_slots, slots_capacity;
    work *works;
    int64_t n_works, works_capacity;
    use *uses;
    int64_t n_uses, uses_capacity;
    int64_t patches_capacity, arena_capacity, dyn_capacity, scalar_capacity;
} placer;

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

/* Which node's storage each demanded record is the value of. A value that is not all of a root's elements in order gets
 * a copy of its own. */
static fnx_status choose_outputs(fnx_builder *b) {
    fnx_ir *ir = &b->ir;
    int64_t n = 0;
    for (int64_t i = 0; i < b->r->n; i++) n += b->r->demand[i];
    if (!(b->plan->outputs = fnx_plan_alloc(b->plan, sizeof *b->plan->outputs * (size_t)n)))
        return fnx_out_of_host_memory();
    for (int64_t i = 0; i < b->r->n; i++) {
        if (!b->r->demand[i]) continue;
        int32_t id = ir->of_record[i];
        if (!fnx_ir_is_whole(ir, id)) id = fnx_ir_copy(ir, id);
        if (id < 0) return ir->status;
        ir->of_record[i] = id;
        int32_t root = fnx_ir_root(ir, id);
        ir->node[id].demanded = ir->node[root].demanded = true;
        if (root != id) ir->node[root].rows = true;
        if (root != id && ir->node[root].kind == FNX_IR_INPUT &&
            ir->node[root].layout != FNX_ROW_MAJOR) { /* looks row-major, is not */
            if ((id = fnx_ir_copy(ir, id)) < 0) return ir->status;
            ir->of_record[i] = id;
            ir->node[id].demanded = true;
        }
        b->plan->outputs[b->plan->n_outputs++] = (fnx_output){.record = i, .from = -1, .share = -1};
    }
    return FNX_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t bytes_of(const fnx_node_ir *n) { return (uint64_t)n->count * fnx_dtypes[n->dtype].bytes; }

static uint64_t aligned(const placer *p, uint64_t bytes) {
    uint64_t a = p->b->backend->memory_align > 64 ? p->b->backend->memory_align : 64;
    return (bytes + a - 1) / a * a;
}

static int32_t slot_new(placer *p, int32_t position, int32_t last, uint64_t bytes) {
    if (!fnx_grow((void **)&p->slots, &p->slots_capacity, sizeof *p->slots, p->n_slots + 1)) return -1;
    p->slots[p->n_slots] = (fnx_interval){position, last, aligned(p, bytes), 0};
    return (int32_t)p->n_slots++;
}

/* Whether result `o` of the unit may be written over `q`: all that the unit reads of q it reads element for element as
 * o is written. */
static bool can_overwrite(const fnx_builder *b, const fnx_unit *u, int32_t o, int32_t q) {
    const fnx_node_ir *y = &b->ir.node[o], *x = &b->ir.node[q];
    if (x->dtype != y->dtype || x->rank != y->rank || x->layout != y->layout ||
        memcmp(x->size, y->size, sizeof x->size))
        return false;
    for (int32_t i = u->first; i >= 0; i = b->next[i])
        for (int k = 0; k < b->ir.node[i].n_in; k++) {
            int32_t in = fnx_ir_in(&b->ir.node[i])[k];
            if (fnx_ir_root(&b->ir, in) != q || in == q) continue;
            return false;
        }
    return true;
}

/* The operands of a unit whose memory its result may take. WRITE and scatter_add only update their first operand. */
static bool is_candidate(const fnx_builder *b, const fnx_unit *u, int32_t o, int32_t q) {
    const fnx_node_ir *y = &b->ir.node[o];
    if (u->kind == FNX_UNIT_GROUP) return can_overwrite(b, u, o, q);
    bool updates = y->op == FNX_OP_slice_assign || y->op == FNX_OP_scatter_add;
    if (!updates || fnx_ir_in(y)[0] != q) return false;
    for (int k = 1; k < y->n_in; k++)
        if (fnx_ir_root(&b->ir, fnx_ir_in(y)[k]) == q) return false;
    return can_overwrite(b, u, o, q);
}

/* An operand of the unit that dies here and may be overwritten by o: an input if `input`, else a temporary. */
static int32_t dying_operand(placer *p, const fnx_unit *u, int32_t position, int32_t o, bool input) {
    fnx_builder *b = p->b;
    for (int32_t i = u->first; i >= 0; i = b->next[i])
        for (int k = 0; k < b->ir.node[i].n_in; k++) {
            int32_t q = fnx_ir_in(&b->ir.node[i])[k];
            const fnx_node_ir *x = &b->ir.node[q];
            if (p->last_use[q] != position || !is_candidate(b, u, o, q)) continue;
            if (input ? x->kind == FNX_IR_INPUT && b->r->donatable[x->input] && !p->taken[x->input]
                      : x->unit >= 0 && x->stored && x->unit != b->ir.node[o].unit && b->identity[q] >= p->n_buffers)
                return q;
        }
    return -1;
}

static int32_t spare_input(const placer *p, int32_t position, uint64_t bytes) {
    const fnx_builder *b = p->b;
    for (int64_t j = 0; j < b->r->n_inputs; j++)
        if (b->r->donatable[j] && !p->taken[j] && p->last_use[j] < position &&
            b->r->inputs[j]->storage->bytes == bytes && bytes)
            return (int32_t)j;
    return -1;
}

/* Where node o of the unit at this position lives. */
static fnx_status place_result(placer *p, const fnx_unit *u, int32_t position, int32_t o, int32_t output) {
    fnx_builder *b = p->b;
    fnx_node_ir *y = &b->ir.node[o];
    if (output >= 0) {
        fnx_output *out = &p->plan->outputs[output];
        int32_t q = dying_operand(p, u, position, o, true);
        int32_t from = q >= 0 ? b->ir.node[q].input : spare_input(p, position, bytes_of(y));
        out->bytes = bytes_of(y), out->layout = y->layout, out->from = from;
        if (from >= 0) p->taken[from] = true;
        b->identity[o] = from >= 0 ? from : (int32_t)b->r->n_inputs + output;
        return FNX_OK;
    }
    int32_t last = p->last_use[o] > position ? p->last_use[o] : position, q = dying_operand(p, u, position, o, false);
    if (q >= 0) {
        b->identity[o] = b->identity[q];
        p->slots[b->identity[o] - p->n_buffers].last = last;
        p->last_use[q] = -1; /* taken: nobody else may */
        return FNX_OK;
    }
    int32_t slot = slot_new(p, position, last, bytes_of(y));
    if (slot < 0) return fnx_out_of_host_memory();
    b->identity[o] = (int32_t)p->n_buffers + slot;
    p->plan->stats.sum_bytes += aligned(p, bytes_of(y));
    return FNX_OK;
}

static fnx_status place_all(placer *p) {
    fnx_builder *b = p->b;
    fnx_ir *ir = &b->ir;
    p->n_buffers = b->r->n_inputs + p->plan->n_outputs;
    for (int64_t i = 0; i < ir->n; i++)
        p->last_use[i] = -1, b->identity[i] = ir->node[i].kind == FNX_IR_INPUT ? ir->node[i].input : -1;
    for (int64_t at = 0; at < b->n_order; at++) {
        fnx_unit *u = &b->units[b->order[at]];
        u->position = (int32_t)at;
        for (int32_t i = u->first; i >= 0; i = b->next[i])
            for (int k = 0; k < ir->node[i].n_in; k++)
                p->last_use[fnx_ir_root(ir, fnx_ir_in(&ir->node[i])[k])] = (int32_t)at;
    }
    for (int64_t k = 0; k < p->plan->n_outputs;
         k++) { /* the first output of a root owns its storage, the others share */
        fnx_output *out = &p->plan->outputs[k];
        int32_t root = fnx_ir_root(ir, ir->of_record[out->record]);
        const fnx_node_ir *y = &ir->node[root];
        p->owner[k] = root;
        if (y->kind == FNX_IR_INPUT) {
            out->share = y->input, p->taken[y->input] = true, p->owner[k] = -1;
            out->bytes = bytes_of(y), out->layout = y->layout;
        }
        for (int64_t j = 0; j < k && out->share < 0; j++)
            if (p->owner[j] == root) out->share = (int32_t)(b->r->n_inputs + j), p->owner[k] = -1;
    }
    for (int64_t at = 0; at < b->n_order; at++) {
        const fnx_unit *u = &b->units[b->order[at]];
        for (int32_t i = u->first; i >= 0; i = b->next[i]) {
            int32_t results[2] = {i, ir->node[i].sibling};
            for (int k = 0; k < 2; k++) {
                if (results[k] < 0 || !ir->node[results[k]].stored) continue;
                int32_t output = -1;
                for (int64_t o = 0; ir->node[results[k]].demanded && o < p->plan->n_outputs && output < 0; o++)
                    if (p->owner[o] == results[k]) output = (int32_t)o;
                FNX_TRY(place_result(p, u, (int32_t)at, results[k], output));
            }
        }
    }
    for (int64_t k = 0; k < p->plan->n_outputs; k++) {
        fnx_output *out = &p->plan->outputs[k];
        if (out->share < b->r->n_inputs) continue;
        const fnx_output *of = &p->plan->outputs[out->share - b->r->n_inputs];
        out->bytes = of->bytes, out->layout = of->layout;
    }
    return FNX_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool all_empty(const fnx_fragment *f) {
    for (uint32_t i = 0; i < f->n_values; i++) {
        const fnx_fragment_value *v = &f->value[i];
        int64_t count = 1;
        for (int d = 0; d < v->rank; d++) count *= v->size[d];
        if (v->kind == FNX_VALUE_OUTPUT && count) return false;
    }
    return true;
}

/* The address of a binding: identity and bytes; what is known only in the arena is completed when it is packed. */
static fnx_status bind(placer *p, fnx_binding *at, const fnx_fragment_value *v, int32_t identity) {
    uint64_t item = fnx_dtypes[v->dtype].bytes, offset = (uint64_t)v->access.offset * item;
    fnx_plan *plan = p->plan;
    if (identity < p->n_buffers) {
        if (!fnx_grow((void **)&plan->patches, &p->patches_capacity, sizeof *plan->patches, plan->n_patches + 1))
            return fnx_out_of_host_memory();
        plan->patches[plan->n_patches++] = (fnx_patch){at, identity, offset};
    } else {
        if (!fnx_grow((void **)&plan->arena_patches, &p->arena_capacity, sizeof *plan->arena_patches,
                      plan->n_arena_patches + 1))
            return fnx_out_of_host_memory();
        at->address = offset, at->memory = NULL;
        plan->arena_patches[plan->n_arena_patches++] = (fnx_arena_patch){at, (uint64_t)(identity - p->n_buffers)};
    }
    for (int k = 0; k < v->access.n_dyn; k++) {
        if (!fnx_grow((void **)&plan->dyn_patches, &p->dyn_capacity, sizeof *plan->dyn_patches,
                      plan->n_dyn_patches + 1))
            return fnx_out_of_host_memory();
        plan->dyn_patches[plan->n_dyn_patches++] =
            (fnx_dyn_patch){at, v->access.dyn[k].arg, v->access.dyn[k].multiple * (int64_t)item};
    }
    return FNX_OK;
}

static fnx_status add_use(placer *p, work *w, int32_t identity, bool written) {
    if (!fnx_grow((void **)&p->uses, &p->uses_capacity, sizeof *p->uses, p->n_uses + 1))
        return fnx_out_of_host_memory();
    p->uses[p->n_uses++] = (use){identity, written};
    w->n_uses++;
    return FNX_OK;
}

/* The finished fragment becomes a launch of `prepared`. */
static fnx_status add_work(placer *p, const fnx_prepared *prepared, int32_t position, uint16_t op) {
    fnx_fragment *f = p->f;
    fnx_builder *b = p->b;
    fnx_plan *plan = p->plan;
    const fnx_group *g = f->group;
    size_t size_bytes = sizeof(int64_t) * (g->n_sizes + g->n_strides);
    char *room = fnx_plan_alloc(plan, size_bytes + sizeof(fnx_scalar) * g->n_scalars +
                                          sizeof(fnx_binding) * (g->n_bindings + 1));
    uint64_t workspace = 0;
    if (!room || !fnx_grow((void **)&p->works, &p->works_capacity, sizeof *p->works, p->n_works + 1))
        return fnx_out_of_host_memory();
    int64_t *sizes = (int64_t *)(void *)room, *strides = sizes + g->n_sizes;
    fnx_scalar *scalars = (fnx_scalar *)(void *)(room + size_bytes);
    fnx_binding *bindings = (fnx_binding *)(void *)(scalars + g->n_scalars);
    memcpy(sizes, f->sizes, sizeof *sizes * g->n_sizes);
    memcpy(strides, f->strides, sizeof *strides * g->n_strides);
    work *w = &p->works[p->n_works++];
    *w = (work){.prepared = prepared, .position = position, .op = op, .first_use = p->n_uses};
    w->launch = (fnx_launch){.struct_size = sizeof w->launch,
                             .sizes = sizes,
                             .strides = strides,
                             .bindings = bindings,
                             .scalars = scalars};
    for (uint32_t k = 0; k < g->n_bindings; k++) {
        const fnx_fragment_value *v = &f->value[f->binding_value[k]];
        int32_t identity;
        if (v->access.root >= 0) identity = b->identity[v->access.root];
        else {
            int64_t count = 1; /* a result that nobody reads */
            for (int d = 0; d < v->rank; d++) count *= v->size[d];
            int32_t slot = slot_new(p, position, position, (uint64_t)count * fnx_dtypes[v->dtype].bytes);
            if (slot < 0) return fnx_out_of_host_memory();
            identity = (int32_t)p->n_buffers + slot;
        }
        FNX_TRY(bind(p, &bindings[k], v, identity));
        FNX_TRY(add_use(p, w, identity, v->kind == FNX_VALUE_OUTPUT));
    }
    for (uint32_t k = 0; k < g->n_scalars; k++) {
        const fnx_fragment_value *v = &f->value[f->scalar_value[k]];
        if (!fnx_grow((void **)&plan->scalar_patches, &p->scalar_capacity, sizeof *plan->scalar_patches,
                      plan->n_scalar_patches + 1))
            return fnx_out_of_host_memory();
        plan->scalar_patches[plan->n_scalar_patches++] = (fnx_scalar_patch){&scalars[k], v->arg, v->dtype};
    }
    FNX_TRY(b->backend->workspace(b->backend->user, prepared, &w->launch, &workspace));
    if (workspace) {
        int32_t slot = slot_new(p, position, position, workspace);
        fnx_fragment_value none = {.dtype = FNX_U8};
        if (slot < 0) return fnx_out_of_host_memory();
        /* the launch itself moves when launches are put together: its workspace lives beside the bindings until then */
        FNX_TRY(bind(p, &bindings[g->n_bindings], &none, (int32_t)p->n_buffers + slot));
        FNX_TRY(add_use(p, w, (int32_t)p->n_buffers + slot, true));
        w->launch.workspace.memory = &bindings[g->n_bindings];
    }
    return FNX_OK;
}

/* Nothing runs this: a group is cut next to the node in question and offered again, a single op is an error. */
static fnx_status declined(placer *p, const fnx_unit *u, const fnx_decline *why) {
    fnx_builder *b = p->b;
    if (u && u->kind == FNX_UNIT_GROUP && u->n_nodes > 1) {
        int32_t id = fnx_fragment_origin(p->f, why->node);
        int32_t middle = u->first;
        for (int k = 0; k < u->n_nodes / 2; k++) middle = b->next[middle];
        if (id < 0) id = middle;
        if (id >= b->n_solo || b->solo[id]) return fnx_error_set(FNX_E_INTERNAL, "a group cannot be cut any further");
        if (fnx_log_enabled(FNX_TOPIC_DISPATCH, FNX_LOG_DEBUG))
            fnx_log_write(FNX_TOPIC_DISPATCH, FNX_LOG_DEBUG, "group of %d nodes declined at %s: %s", (int)u->n_nodes,
                          fnx_ops[b->ir.node[id].op].name, why->text);
        b->solo[id] = 1;
        b->again = true;
        return FNX_OK;
    }
    const fnx_node_ir *n = u ? &b->ir.node[u->first] : NULL;
    return fnx_error_set(FNX_E_UNSUPPORTED, "%s of %s: the device has no kernel for it: %s",
                         n ? fnx_ops[n->op].name : "copy",
                         n ? fnx_dtype_text(n->n_in && b->ir.node[n->in[0]].kind != FNX_IR_SCALAR
                                                ? b->ir.node[n->in[0]].dtype
                                                : n->dtype)
                           : "a part",
                         why->text[0] ? why->text : "it declined");
}

static fnx_status emit(placer *p, const fnx_unit *u, int32_t position, uint16_t op) {
    const fnx_backend *backend = p->b->backend;
    const fnx_prepared *prepared = NULL;
    fnx_decline why = {.struct_size = sizeof why, .node = FNX_NONE, .value = FNX_NONE};
    FNX_TRY(fnx_fragment_finish(p->f, p->b));
    if (all_empty(p->f)) return FNX_OK;
    fnx_status code = p->f->group->n_bindings > backend->max_bindings
                          ? FNX_E_DECLINED
                          : backend->prepare(backend->user, p->f->group, &p->f->launch, &prepared, &why);
    if (code == FNX_E_DECLINED && backend->fallback == FNX_FALLBACK_HOST && p->f->group->n_nodes == 1)
        code = backend->prepare_on_host(backend->user, p->f->group, &p->f->launch, &prepared, &why);
    if (code == FNX_E_DECLINED) return declined(p, u, &why);
    FNX_TRY(code);
    return add_work(p, prepared, position, op);
}

/* concat, pad, slice_assign: copies into parts of the result, in order. */
static fnx_status emit_write(placer *p, const fnx_unit *u, int32_t position) {
    fnx_builder *b = p->b;
    const fnx_node_ir *y = &b->ir.node[u->first];
    const int32_t *in = fnx_ir_in(y);
    fnx_access whole, part;
    fnx_access_of(b, u->first, &whole);
    bool in_place = y->op == FNX_OP_slice_assign && b->identity[u->first] == b->identity[fnx_ir_root(&b->ir, in[0])];
    int32_t base = y->op == FNX_OP_slice_assign && !in_place ? in[0] : y->op == FNX_OP_pad ? in[1] : -1;
    if (base >= 0) {
        fnx_fragment_reset(p->f);
        if (fnx_fragment_copy(p->f, b, base, &whole, y->dtype, y->rank, y->size)) return fnx_out_of_host_memory();
        FNX_TRY(emit(p, NULL, position, y->op));
    }
    int n_parts = y->op == FNX_OP_concat ? y->n_in : 1;
    int64_t done = 0;
    for (int k = 0; k < n_parts; k++) {
        int32_t src = in[y->op == FNX_OP_slice_assign ? 1 : k];
        const fnx_node_ir *x = &b->ir.node[src];
        part = whole;
        if (y->op == FNX_OP_concat) {
            uint32_t axis = ((const fnx_attr_axis *)y->attr)->axis;
            part.offset += done * whole.stride[axis], done += x->size[axis];
        }
        for (int d = 0; d < y->rank && y->op == FNX_OP_pad; d++)
            part.offset += ((const fnx_attr_pad *)y->attr)->low[d] * whole.stride[d];
        for (int d = 0; d < y->rank && y->op == FNX_OP_slice_assign; d++) {
            int64_t step = ((const fnx_attr_slice *)y->attr)->step[d];
            const fnx_node_ir *start = &b->ir.node[in[2 + d]];
            if (x->size[d] == y->size[d] && step == 1) continue;
            if (start->arg < 0) part.offset += (int64_t)start->bits * whole.stride[d];
            else part.dyn[part.n_dyn].arg = start->arg, part.dyn[part.n_dyn++].multiple = whole.stride[d];
            part.stride[d] *= step;
        }
        for (int d = 0; d < y->rank; d++)
            if (x->size[d] == 1) part.stride[d] = 0;
        int64_t sizes[FNX_MAX_RANK];
        memcpy(sizes, x->size, sizeof sizes);
        fnx_fragment_reset(p->f);
        if (fnx_fragment_copy(p->f, b, src, &part, y->dtype, y->rank, sizes)) return fnx_out_of_host_memory();
        FNX_TRY(emit(p, NULL, position, y->op));
    }
    return FNX_OK;
}

static fnx_status emit_all(placer *p) {
    fnx_builder *b = p->b;
    for (int64_t at = 0; at < b->n_order && !b->again; at++) {
        const fnx_unit *u = &b->units[b->order[at]];
        if (u->kind == FNX_UNIT_WRITE) {
            FNX_TRY(emit_write(p, u, (int32_t)at));
            continue;
        }
        fnx_fragment_reset(p->f);
        fnx_status code =
            u->kind == FNX_UNIT_GROUP ? fnx_fragment_group(p->f, b, u) : fnx_fragment_kernel(p->f, b, u->first);
        fnx_decline full = {.struct_size = sizeof full, .node = FNX_NONE, .value = FNX_NONE};
        if (code == FNX_E_DECLINED) FNX_TRY(declined(p, u, &full));
        else FNX_TRY(code);
        if (code) continue;
        if (u->kind == FNX_UNIT_GROUP) p->plan->stats.groups++, p->plan->stats.grouped_nodes += (uint32_t)u->n_nodes;
        FNX_TRY(emit(p, u, (int32_t)at, b->ir.node[u->first].op));
    }
    return FNX_OK;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool independent(const placer *p, const work *first, const work *w) {
    for (const work *v = first; v < w; v++)
        for (int i = 0; i < v->n_uses; i++)
            for (int k = 0; k < w->n_uses; k++) {
                const use *a = &p->uses[v->first_use + i], *c = &p->uses[w->first_use + k];
                if (a->identity == c->identity && (a->written || c->written)) return false;
            }
    return true;
}

/* Neighbours of one handle that do not depend on each other are one step; what they use must then live together. */
static fnx_status make_steps(placer *p) {
    fnx_plan *plan = p->plan;
    plan->steps = fnx_plan_alloc(plan, sizeof *plan->steps * (size_t)p->n_works);
    fnx_launch *launches = fnx_plan_alloc(plan, sizeof *launches * (size_t)p->n_works);
    if (!plan->steps || !launches) return fnx_out_of_host_memory();
    for (int64_t i = 0; i < p->n_works;) {
        const work *first = &p->works[i];
        int64_t n = 1;
        while (i + n < p->n_works && n < BATCH_MAX && !first->prepared->kernel && !first->prepared->host &&
               p->works[i + n].prepared == first->prepared && independent(p, first, &p->works[i + n]))
            n++;
        int32_t from = first->position, to = p->works[i + n - 1].position;
        for (int64_t k = 0; n > 1 && k < n; k++)
            for (int j = 0; j < p->works[i + k].n_uses; j++) {
                int32_t identity = p->uses[p->works[i + k].first_use + j].identity;
                if (identity < p->n_buffers) continue;
                fnx_interval *s = &p->slots[identity - p->n_buffers];
                if (s->first > from) s->first = from;
                if (s->last < to) s->last = to;
            }
        for (int64_t k = 0; k < n; k++) {
            launches[i + k] = p->works[i + k].launch;
            launches[i + k].site = (uint32_t)plan->n_steps;
        }
        plan->steps[plan->n_steps++] = (fnx_step){first->prepared, launches + i, (uint32_t)n, first->op};
        i += n;
    }
    plan->stats.launches = (uint32_t)p->n_works;
    return FNX_OK;
}

static fnx_status pack(placer *p) {
    fnx_plan *plan = p->plan;
    if (!fnx_pack(p->slots, p->n_slots, &plan->stats.arena_bytes, &plan->stats.bound_bytes))
        return fnx_out_of_host_memory();
    for (int64_t i = 0; i < plan->n_arena_patches; i++) {
        fnx_arena_patch *a = &plan->arena_patches[i];
        a->offset = p->slots[a->offset].offset + a->at->address;
    }
    for (int64_t i = 0; i < plan->n_steps; i++) /* a workspace's binding moves into its launch */
        for (uint32_t k = 0; k < plan->steps[i].n; k++) {
            fnx_launch *l = &plan->steps[i].launches[k];
            fnx_binding *beside = l->workspace.memory;
            for (int64_t j = 0; beside && j < plan->n_arena_patches; j++)
                if (plan->arena_patches[j].at == beside) plan->arena_patches[j].at = &l->workspace, beside = NULL;
        }
    plan->arena_address = 0;
    return FNX_OK;
}

static fnx_status make_plan(fnx_builder *b) {
    fnx_plan *plan = b->plan;
    placer p = {.b = b, .plan = plan, .f = fnx_fragment_create()};
    fnx_status code = p.f ? FNX_OK : fnx_out_of_host_memory();
    p.last_use = malloc(sizeof *p.last_use * (size_t)b->ir.n);
    b->identity = malloc(sizeof *b->identity * (size_t)b->ir.n);
    p.owner = malloc(sizeof *p.owner * (size_t)(plan->n_outputs + 1));
    p.taken = calloc((size_t)b->r->n_inputs + 1, 1);
    if (!p.last_use || !b->identity || !p.owner || !p.taken) code = fnx_out_of_host_memory();
    if (!code) code = place_all(&p);
    if (!code) code = emit_all(&p);
    if (!code && !b->again) code = make_steps(&p);
    if (!code && !b->again) code = pack(&p);
    fnx_fragment_destroy(p.f);
    free(p.last_use), free(p.owner), free(p.taken), free(p.slots), free(p.works), free(p.uses);
    return code;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool keep_key(fnx_plan *p, const fnx_recorder *r, const uint64_t key[2]) {
    p->key[0] = key[0], p->key[1] = key[1];
    p->n = r->n, p->n_words = r->n_words, p->n_inputs = r->n_inputs;
    p->code = fnx_plan_alloc(p, sizeof *p->code * (size_t)r->n);
    p->words = fnx_plan_alloc(p, sizeof *p->words * (size_t)r->n_words);
    p->demand = fnx_plan_alloc(p, (size_t)r->n), p->donatable = fnx_plan_alloc(p, (size_t)r->n_inputs);
    if (!p->code || !p->words || !p->demand || !p->donatable) return false;
    memcpy(p->code, r->code, sizeof *p->code * (size_t)r->n);
    memcpy(p->words, r->words, sizeof *p->words * (size_t)r->n_words);
    memcpy(p->demand, r->demand, (size_t)r->n);
    if (r->n_inputs) memcpy(p->donatable, r->donatable, (size_t)r->n_inputs);
    return true;
}

static bool whole(void *user, const fnx_tensor *y) {
    const fnx_backend *backend = user;
    return backend->whole && backend->whole(backend->user, y->op, y->dtype);
}

static void builder_end(fnx_builder *b) {
    fnx_ir_end(&b->ir);
    free(b->units), free(b->next), free(b->live), free(b->order), free(b->wishes), free(b->identity);
}

static fnx_status attempt(fnx_builder *b) {
    b->ir.whole = whole, b->ir.user = (void *)b->backend, b->ir.no_parts = b->backend->fallback == FNX_FALLBACK_ERROR;
    FNX_TRY(fnx_ir_build(&b->ir, b->r));
    FNX_TRY(choose_outputs(b));
    int64_t n = b->ir.n;
    b->nodes_capacity = n;
    b->next = malloc(sizeof *b->next * (size_t)(n + 1));
    b->live = calloc((size_t)n + 1, sizeof *b->live);
    if (!b->solo) b->solo = calloc((size_t)n + 1, 1), b->n_solo = n;
    if (!b->next || !b->live || !b->solo) return fnx_out_of_host_memory();
    FNX_TRY(fnx_units_build(b));
    FNX_TRY(fnx_layouts_choose(b));
    return make_plan(b);
}

fnx_status fnx_plan_build(fnx_recorder *r, const fnx_backend *backend, const uint64_t key[2], fnx_plan **out) {
    uint8_t *solo = NULL;
    int64_t n_solo = 0;
    *out = NULL;
    for (int tries = 0; tries < ATTEMPTS; tries++) {
        fnx_builder b = {.r = r,
                         .backend = backend,
                         .solo = solo,
                         .n_solo = n_solo,
                         .plan = calloc(1, sizeof(fnx_plan))};
        fnx_status code = b.plan && keep_key(b.plan, r, key) ? attempt(&b) : fnx_out_of_host_memory();
        solo = b.solo, n_solo = b.n_solo;
        if (b.plan) b.plan->stats.records = (uint32_t)r->n;
        builder_end(&b);
        if (!code && !b.again) {
            free(solo);
            *out = b.plan;
            return FNX_OK;
        }
        fnx_plan_destroy(b.plan);
        if (code) {
            free(solo);
            return code;
        }
    }
    free(solo);
    return fnx_error_set(FNX_E_INTERNAL, "the device declined a graph %d times, however it was cut", (int)ATTEMPTS);
}
