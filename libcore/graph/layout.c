/* Strides of everything stored. Kernels may ask for a permutation of axes (channels last); elementwise groups keep what
 * their operands have; where two sides disagree one copy is made, and shared by all who ask the same. */
#include "graph/builder.h"
#include "graph/fragment.h"
#include "tensor/shape.h"

#include "base/alloc.h"

#include <stdlib.h>

void fnx_layout_strides(int rank, const int64_t *sizes, int layout, int64_t *strides) {
    fnx_shape_strides(rank, sizes, layout, strides);
    for (int d = 0; d < rank; d++)
        if (sizes[d] == 1) strides[d] = 0;
}

void fnx_access_of(const fnx_builder *b, int32_t id, fnx_access *out) {
    const fnx_node_ir *n = &b->ir.node[id];
    if (n->kind == FNX_IR_VIEW || n->kind == FNX_IR_ALIAS) {
        const fnx_view_ir *v = n->view;
        fnx_access base;
        fnx_access_of(b, v->base, &base);
        *out = base;
        bool alias = n->kind == FNX_IR_ALIAS;
        if (alias) fnx_layout_strides(n->rank, n->size, FNX_ROW_MAJOR, out->stride), out->offset += v->start[0];
        else {
            for (int a = 0; a < b->ir.node[v->base].rank; a++) out->offset += v->start[a] * base.stride[a];
            for (int d = 0; d < n->rank; d++)
                out->stride[d] = v->axis[d] < 0 || n->size[d] == 1 ? 0 : v->step[d] * base.stride[v->axis[d]];
        }
        for (int k = 0; k < v->n_dyn && out->n_dyn < FNX_IR_MAX_DYN; k++) {
            out->dyn[out->n_dyn].arg = b->ir.node[v->dyn[k].scalar].arg;
            out->dyn[out->n_dyn++].multiple = v->dyn[k].multiple * (alias ? 1 : base.stride[v->dyn[k].axis]);
        }
        return;
    }
    memset(out, 0, sizeof *out);
    out->root = id;
    if (n->kind == FNX_IR_INDEX) memcpy(out->stride, n->view->step, sizeof *out->stride * n->rank);
    else if (n->kind != FNX_IR_SCALAR) fnx_layout_strides(n->rank, n->size, n->layout, out->stride);
    for (int d = 0; d < n->rank; d++)
        if (n->size[d] == 1) out->stride[d] = 0;
}

/* ---- copies into another layout ---------------------------------------------------------------------------------- */

static bool has_layout(const fnx_builder *b, int32_t id, int layout) {
    const fnx_node_ir *n = &b->ir.node[id];
    int64_t want[FNX_MAX_RANK];
    fnx_access a;
    fnx_access_of(b, id, &a);
    fnx_layout_strides(n->rank, n->size, layout, want);
    return n->count == 0 || !memcmp(a.stride, want, sizeof *want * n->rank);
}

static bool grow_nodes(fnx_builder *b) {
    if (b->ir.n <= b->nodes_capacity) return true;
    int64_t n = b->ir.n * 2 + 64;
    void *next = realloc(b->next, sizeof *b->next * (size_t)n);
    if (next) b->next = next;
    void *live = realloc(b->live, sizeof *b->live * (size_t)n);
    if (live) b->live = live;
    if (!next || !live) return false;
    b->nodes_capacity = n;
    return true;
}

/* The node that has src's value in this layout; *at is the position in the order before which a new copy runs. */
static int32_t in_layout(fnx_builder *b, int32_t src, int layout, int64_t *at) {
    fnx_ir *ir = &b->ir;
    if (has_layout(b, src, layout)) return src;
    for (int64_t i = 0; i < b->n_wishes; i++)
        if (b->wishes[i].src == src && b->wishes[i].layout == layout) return b->wishes[i].copy;
    int64_t sizes[FNX_MAX_RANK];
    memcpy(sizes, ir->node[src].size, sizeof sizes);
    int32_t id = fnx_ir_node(ir, FNX_IR_COMPUTE, ir->node[src].dtype, ir->node[src].rank, sizes);
    if (id < 0 || !grow_nodes(b) ||
        !fnx_grow((void **)&b->wishes, &b->wishes_capacity, sizeof *b->wishes, b->n_wishes + 1))
        return -1;
    fnx_node_ir *n = &ir->node[id];
    n->op = FNX_OP_copy, n->n_in = 1, n->in[0] = src, n->layout = (uint8_t)layout, n->stored = true;
    b->live[id] = true;
    int32_t unit = fnx_unit_add(b, FNX_UNIT_GROUP, id, 0);
    if (unit < 0 || b->n_order + 1 > b->order_capacity) return -1;
    memmove(b->order + *at + 1, b->order + *at, sizeof *b->order * (size_t)(b->n_order - *at));
    b->order[(*at)++] = unit, b->n_order++;
    b->wishes[b->n_wishes++] = (fnx_wish){src, id, (uint8_t)layout};
    return id;
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* Our name of an order of axes, or -1. */
static int layout_of(const fnx_layout *l, int rank) {
    if (l->kind == FNX_LAYOUT_ROW_MAJOR) return FNX_ROW_MAJOR;
    if (l->kind != FNX_LAYOUT_ORDER) return -1;
    bool row = true, last = rank >= 2;
    for (int d = 0; d < rank; d++) {
        row &= l->order[d] == d;
        last &= l->order[d] == (d == 0 ? 0 : d == rank - 1 ? 1 : d + 1);
    }
    return row ? FNX_ROW_MAJOR : last ? FNX_CHANNELS_LAST : -1;
}

/* Demanded under another shape, or looked at by an alias: packed rows. */
static int own_layout(const fnx_node_ir *n, int layout) { return n->rows || n->rank < 3 ? FNX_ROW_MAJOR : layout; }

static fnx_status kernel_layouts(fnx_builder *b, int32_t id, int64_t *at) {
    fnx_ir *ir = &b->ir;
    int n_in = ir->node[id].n_in, second = ir->node[id].sibling, n_out = 1 + (second >= 0);
    fnx_layout wish[8] = {{0, 0, {0}}};
    bool strided = false;
    if (n_in > 4 || b->ir.node[id].more) return FNX_OK;
    fnx_fragment *f = fnx_fragment_create();
    if (!f) return fnx_out_of_host_memory();
    fnx_status code = fnx_fragment_kernel(f, b, id);
    if (!code) code = fnx_fragment_finish(f, b);
    if (!code) code = b->backend->layout(b->backend->user, f->group, &f->launch, wish, &strided);
    fnx_fragment_destroy(f);
    if (code && code != FNX_E_DECLINED) return code;
    for (int k = 0; k < n_in; k++) {
        int layout = code ? strided ? -1 : FNX_ROW_MAJOR : layout_of(&wish[k], ir->node[ir->node[id].in[k]].rank);
        if (layout < 0 || ir->node[ir->node[id].in[k]].kind == FNX_IR_SCALAR) continue;
        int32_t in = in_layout(b, ir->node[id].in[k], layout, at);
        if (in < 0) return fnx_out_of_host_memory();
        ir->node[id].in[k] = in;
    }
    for (int k = 0; k < n_out; k++) {
        fnx_node_ir *y = &ir->node[k ? second : id];
        int layout = code ? FNX_ROW_MAJOR : layout_of(&wish[n_in + k], y->rank);
        if (layout < 0)
            layout = n_in && y->rank > 2 && has_layout(b, ir->node[id].in[0], FNX_CHANNELS_LAST) &&
                             !has_layout(b, ir->node[id].in[0], FNX_ROW_MAJOR)
                         ? FNX_CHANNELS_LAST
                         : FNX_ROW_MAJOR;
        y->layout = (uint8_t)own_layout(y, layout);
    }
    return FNX_OK;
}

static void group_layouts(fnx_builder *b, const fnx_unit *u) {
    fnx_ir *ir = &b->ir;
    const fnx_node_ir *first = &ir->node[u->first];
    int layout = -1; /* of the first operand that has the group's whole shape */
    for (int32_t i = u->first; i >= 0 && layout < 0 && first->rank >= 3; i = b->next[i])
        for (int k = 0; k < ir->node[i].n_in && layout < 0; k++) {
            int32_t in = fnx_ir_in(&ir->node[i])[k], root = fnx_ir_root(ir, in);
            const fnx_node_ir *x = &ir->node[root];
            if (in != root || x->unit == first->unit || x->kind == FNX_IR_SCALAR || x->kind == FNX_IR_INDEX ||
                x->rank != first->rank)
                continue;
            layout = has_layout(b, in, FNX_ROW_MAJOR) ? FNX_ROW_MAJOR : x->layout;
            if (has_layout(b, in, FNX_ROW_MAJOR) && has_layout(b, in, FNX_CHANNELS_LAST))
                layout = -1; /* both: no opinion */
        }
    for (int32_t i = u->first; i >= 0; i = b->next[i]) {
        fnx_node_ir *n = &ir->node[i];

        n->layout = (uint8_t)own_layout(n, layout < 0 ? FNX_ROW_MAJOR : layout);
    }
}

fnx_status fnx_layouts_choose(fnx_builder *b) {
    for (int64_t at = 0; at < b->n_order; at++) {
        const fnx_unit *u = &b->units[b->order[at]];
        int32_t first = u->first;
        if (u->kind == FNX_UNIT_GROUP) {
            bool wish = false;
            for (int64_t i = 0; i < b->n_wishes; i++) wish |= b->wishes[i].copy == first;
            if (!wish) group_layouts(b, u);
        } else if (u->kind == FNX_UNIT_WRITE) b->ir.node[first].layout = FNX_ROW_MAJOR;
        else FNX_TRY(kernel_layouts(b, first, &at));
    }
    return FNX_OK;
}
