/* Grouping: elementwise nodes of one shape that feed each other run as one unit, everything else is a unit of its own.
 *
 * A unit's depth is greater than that of every unit it reads. So a node may join a unit if all else it reads is less
 * deep (nothing less deep can depend on the unit), or if nobody outside reads the unit yet (then the unit may become
 * deeper). Two units of one depth cannot depend on each other and may merge. That keeps the graph of units without
 * cycles at a constant cost per operand. */
#include "graph/builder.h"

#include "base/alloc.h"

#include <stdlib.h>

fnx_status fnx_out_of_host_memory(void) { return fnx_error_set(FNX_E_NO_MEMORY, "no host memory to plan a graph"); }

static bool is_elementwise(const fnx_node_ir *n) {
    return n->kind == FNX_IR_COMPUTE && fnx_ops[n->op].flags & FNX_OPF_ALIGNED;
}
static bool is_made(const fnx_node_ir *n) { return n->kind == FNX_IR_COMPUTE || n->kind == FNX_IR_WRITE; }

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

/* From the demanded nodes down; nodes stand in dependency order. Scalars of views count through their node only. */
static void mark_live(fnx_builder *b) {
    fnx_ir *ir = &b->ir;
    for (int64_t i = 0; i < ir->n; i++) b->live[i] = ir->node[i].demanded;
    for (int64_t i = ir->n - 1; i >= 0; i--) {
        const fnx_node_ir *n = &ir->node[i];
        if (!b->live[i]) continue;
        if (n->kind == FNX_IR_VIEW || n->kind == FNX_IR_ALIAS) b->live[n->view->base] = true;
        for (int k = 0; k < n->n_in; k++) b->live[fnx_ir_in(n)[k]] = true;
    }
}

/* A kernel that gives two results serves both nodes. */
static void pair_siblings(fnx_builder *b) {
    fnx_ir *ir = &b->ir;
    int64_t n = ir->n;
    for (int64_t i = 0; i < n; i++) {
        const fnx_node_ir *w = &ir->node[i];
        unsigned sibling = fnx_ops[w->op].sibling;
        if (!b->live[i] || w->kind != FNX_IR_COMPUTE || !sibling) continue;
        int32_t first = FNX_IR_NONE;
        for (int64_t j = 0; j < i && first < 0; j++) {
            const fnx_node_ir *y = &ir->node[j];
            if (y->kind == FNX_IR_COMPUTE && y->op == sibling && y->in[0] == w->in[0] &&
                !memcmp(y->attr, w->attr, fnx_ops[w->op].attr_bytes))
                first = (int32_t)j;
        }
        if (first >= 0 && b->live[first]) ir->node[first].sibling = (int32_t)i;
    }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

int32_t fnx_unit_add(fnx_builder *b, int kind, int32_t node, int32_t depth) {
    if (!fnx_grow((void **)&b->units, &b->units_capacity, sizeof *b->units, b->n_units + 1)) return -1;
    b->units[b->n_units] = (fnx_unit){.kind = (uint8_t)kind,
                                      .depth = depth,
                                      .first = node,
                                      .last = node,
                                      .newest = node,
                                      .n_nodes = 1,
                                      .position = -1};
    b->ir.node[node].unit = (int32_t)b->n_units;
    b->next[node] = -1;
    return (int32_t)b->n_units++;
}

static void merge(fnx_builder *b, int32_t into, int32_t from) {
    fnx_unit *u = &b->units[into], *v = &b->units[from];
    for (int32_t i = v->first; i >= 0; i = b->next[i]) b->ir.node[i].unit = into;
    b->next[u->last] = v->first;
    u->last = v->last;
    if (v->newest > u->newest) u->newest = v->newest;
    u->n_nodes += v->n_nodes, u->read_outside |= v->read_outside;
    v->gone = true;
}

static bool same_sizes(const fnx_node_ir *a, const fnx_node_ir *b) {
    return a->rank == b->rank && !memcmp(a->size, b->size, sizeof *a->size * a->rank);
}

static bool is_solo(const fnx_builder *b, int32_t node) { return node < b->n_solo && b->solo[node]; }

static fnx_status place_elementwise(fnx_builder *b, int32_t id) {
    fnx_ir *ir = &b->ir;
    const fnx_node_ir *n = &ir->node[id];
    int32_t candidate[4], n_candidates = 0, depth = 0;
    for (int k = 0; k < n->n_in; k++) {
        int32_t in = fnx_ir_in(n)[k], root = fnx_ir_root(ir, in);
        if (!is_made(&ir->node[root])) continue;
        int32_t u = ir->node[root].unit;
        bool joinable = in == root && b->units[u].kind == FNX_UNIT_GROUP && same_sizes(&ir->node[root], n) &&
                        !is_solo(b, id) && !is_solo(b, root) && n_candidates < 4;
        for (int c = 0; c < n_candidates; c++) joinable &= candidate[c] != u;
        bool known = false;
        for (int c = 0; c < n_candidates; c++) known |= candidate[c] == u;
        if (joinable) candidate[n_candidates++] = u;
        else if (!known && b->units[u].depth > depth) depth = b->units[u].depth;
    }
    int32_t into = -1; /* the deepest candidate, and the others merged into it where that is possible */
    for (int c = 0; c < n_candidates; c++)
        if (into < 0 || b->units[candidate[c]].depth > b->units[into].depth) into = candidate[c];
    if (into >= 0 && (depth >= b->units[into].depth && b->units[into].read_outside)) {
        for (int c = 0; c < n_candidates; c++)
            if (b->units[candidate[c]].depth > depth) depth = b->units[candidate[c]].depth;
        into = -1, n_candidates = 0;
    }
    int limit = (int)b->backend->max_nodes;
    for (int c = 0; c < n_candidates; c++) {
        fnx_unit *u = &b->units[into], *v = &b->units[candidate[c]];
        if (candidate[c] == into) continue;
        if ((v->depth == u->depth || !v->read_outside) && u->n_nodes + v->n_nodes < limit) merge(b, into, candidate[c]);
        else if (v->depth > depth) depth = v->depth;
    }
    if (into >= 0 &&
        (b->units[into].n_nodes >= limit || (depth >= b->units[into].depth && b->units[into].read_outside))) {
        if (b->units[into].depth > depth) depth = b->units[into].depth;
        into = -1;
    }
    if (into < 0) {
        into = fnx_unit_add(b, FNX_UNIT_GROUP, id, depth + 1);
        return into < 0 ? fnx_out_of_host_memory() : FNX_OK;
    }
    fnx_unit *u = &b->units[into];
    b->next[u->last] = id, b->next[id] = -1, u->last = u->newest = id;
    u->n_nodes++;
    ir->node[id].unit = into;
    if (depth >= u->depth) u->depth = depth + 1;
    return FNX_OK;
}

static fnx_status place_alone(fnx_builder *b, int32_t id) {
    const fnx_node_ir *n = &b->ir.node[id];
    int32_t depth = 0;
    for (int k = 0; k < n->n_in; k++) {
        int32_t root = fnx_ir_root(&b->ir, fnx_ir_in(n)[k]);
        if (is_made(&b->ir.node[root]) && b->units[b->ir.node[root].unit].depth > depth)
            depth = b->units[b->ir.node[root].unit].depth;
    }
    int32_t u = fnx_unit_add(b, n->kind == FNX_IR_WRITE ? FNX_UNIT_WRITE : FNX_UNIT_KERNEL, id, depth + 1);
    return u < 0 ? fnx_out_of_host_memory() : FNX_OK;
}

/* Whatever node `id` reads from other units has to be in storage. */
static void note_reads(fnx_builder *b, int32_t id) {
    fnx_ir *ir = &b->ir;
    const fnx_node_ir *n = &ir->node[id];
    for (int k = 0; k < n->n_in; k++) {
        int32_t root = fnx_ir_root(ir, fnx_ir_in(n)[k]);
        if (is_made(&ir->node[root]) && ir->node[root].unit != n->unit)
            b->units[ir->node[root].unit].read_outside = true;
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Units run in the order in which their last node was recorded, what they read before them. */
static void emit(fnx_builder *b, int32_t unit, int32_t *stack) {
    int64_t n = 0;
    stack[n++] = unit;
    while (n > 0) {
        fnx_unit *u = &b->units[stack[n - 1]];
        int32_t missing = -1;
        for (int32_t i = u->first; i >= 0 && missing < 0 && u->position < 0; i = b->next[i]) {
            const fnx_node_ir *x = &b->ir.node[i];
            for (int k = 0; k < x->n_in && missing < 0; k++) {
                int32_t root = fnx_ir_root(&b->ir, fnx_ir_in(x)[k]);
                int32_t v = is_made(&b->ir.node[root]) ? b->ir.node[root].unit : -1;
                if (v >= 0 && v != stack[n - 1] && b->units[v].position < 0) missing = v;
            }
        }
        if (missing >= 0) {
            stack[n++] = missing;
            continue;
        }
        if (u->position < 0) {
            u->position = (int32_t)b->n_order;
            b->order[b->n_order++] = stack[n - 1];
        }
        n--;
    }
}

fnx_status fnx_units_build(fnx_builder *b) {
    fnx_ir *ir = &b->ir;
    b->n_units = b->n_order = 0;
    for (int64_t i = 0; i < ir->n; i++) ir->node[i].unit = -1, ir->node[i].sibling = -1;
    mark_live(b);
    pair_siblings(b);
    for (int64_t i = 0; i < ir->n; i++) {
        if (!b->live[i] || !is_made(&ir->node[i]) || ir->node[i].unit >= 0) continue;
        FNX_TRY(is_elementwise(&ir->node[i]) ? place_elementwise(b, (int32_t)i) : place_alone(b, (int32_t)i));
        int32_t second = ir->node[i].sibling;
        if (second >= 0) ir->node[second].unit = ir->node[i].unit;
        note_reads(b, (int32_t)i);
    }
    int32_t *stack = malloc(sizeof *stack * (size_t)(b->n_units + 1));
    b->order = malloc(sizeof *b->order * (size_t)(b->n_units * 4 + 64));
    b->order_capacity = b->n_units * 4 + 64;
    if (!stack || !b->order) {
        free(stack);
        return fnx_out_of_host_memory();
    }
    for (int64_t i = 0; i < ir->n; i++) {
        int32_t u = ir->node[i].unit;
        if (b->live[i] && u >= 0 && b->units[u].newest == i) emit(b, u, stack);
    }
    free(stack);
    for (int64_t i = 0; i < ir->n; i++) { /* storage: read across units, or demanded */
        const fnx_node_ir *n = &ir->node[i];
        if (!b->live[i] || !is_made(n)) continue;
        if (n->demanded) ir->node[i].stored = true;
        if (b->units[n->unit].kind != FNX_UNIT_GROUP) ir->node[i].stored = true;
        for (int k = 0; k < n->n_in; k++) {
            int32_t root = fnx_ir_root(ir, fnx_ir_in(n)[k]);
            if (is_made(&ir->node[root]) && ir->node[root].unit != n->unit) ir->node[root].stored = true;
        }
    }
    for (int64_t i = 0; i < ir->n; i++) /* a demanded view shares the storage of its root */
        if (b->live[i] && ir->node[i].demanded && !is_made(&ir->node[i]))
            ir->node[fnx_ir_root(ir, (int32_t)i)].stored = true;
    return FNX_OK;
}
