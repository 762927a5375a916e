/* Views: permute, expand, slice and most reshapes are only another way to walk the storage of their root. */
#include "graph/ir.h"

int32_t fnx_ir_root(const fnx_ir *ir, int32_t id) {
    while (id >= 0 && (ir->node[id].kind == FNX_IR_VIEW || ir->node[id].kind == FNX_IR_ALIAS))
        id = ir->node[id].view->base;
    return id;
}

/* A view node over x that walks it as x is: the start of each of the functions below. */
static int32_t look_at(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes) {
    int32_t id = fnx_ir_node(ir, FNX_IR_VIEW, ir->node[x].dtype, rank, sizes);
    fnx_view_ir *v = fnx_ir_alloc(ir, sizeof *v);
    if (id < 0 || !v) return FNX_IR_NONE;
    const fnx_node_ir *n = &ir->node[x];
    if (n->kind == FNX_IR_VIEW) {
        *v = *n->view;
    } else {
        v->base = x;
        for (int d = 0; d < (int)FNX_MAX_RANK; d++) {
            v->axis[d] = d < n->rank && n->size[d] != 1 ? (int8_t)d : (int8_t)-1;
            v->step[d] = v->axis[d] >= 0;
        }
    }
    ir->node[id].view = v;
    return id;
}

static bool same_shape(const fnx_node_ir *n, int rank, const int64_t *sizes) {
    return n->rank == rank && !memcmp(n->size, sizes, sizeof *sizes * (size_t)rank);
}

/* Each axis of the result walks axis from[d] of x; from[d] < 0: none. */
static int32_t remap(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes, const int *from) {
    int32_t id = look_at(ir, x, rank, sizes);
    if (id < 0) return id;
    fnx_view_ir *v = ir->node[id].view, was = *v;
    for (int d = 0; d < (int)FNX_MAX_RANK; d++) {
        int f = d < rank ? from[d] : -1;
        v->axis[d] = f >= 0 ? was.axis[f] : (int8_t)-1, v->step[d] = f >= 0 && was.axis[f] >= 0 ? was.step[f] : 0;
    }
    return id;
}

int32_t fnx_ir_expand(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes) {
    if (x < 0 || same_shape(&ir->node[x], rank, sizes)) return x;
    int from[FNX_MAX_RANK], shift = rank - ir->node[x].rank;
    for (int d = 0; d < rank; d++)
        from[d] = d < shift || (ir->node[x].size[d - shift] == 1 && sizes[d] != 1) ? -1 : d - shift;
    return remap(ir, x, rank, sizes, from);
}

int32_t fnx_ir_permute(fnx_ir *ir, int32_t x, const uint8_t *axes) {
    if (x < 0) return x;
    int64_t sizes[FNX_MAX_RANK];
    int from[FNX_MAX_RANK], rank = ir->node[x].rank, same = 1;
    for (int d = 0; d < rank; d++) from[d] = axes[d], sizes[d] = ir->node[x].size[axes[d]], same &= axes[d] == d;
    return same ? x : remap(ir, x, rank, sizes, from);
}

int32_t fnx_ir_slice(fnx_ir *ir, int32_t x, const int64_t *sizes, const int64_t *steps, const int32_t *starts) {
    if (x < 0) return x;
    int rank = ir->node[x].rank, moving = 0, changed = 0;
    for (int d = 0; d < rank; d++) {
        bool all = sizes[d] == ir->node[x].size[d] && steps[d] == 1; /* then its start can only be 0 */
        changed |= !all, moving += !all;
    }
    if (!changed) return x;
    int had = ir->node[x].kind == FNX_IR_VIEW ? ir->node[x].view->n_dyn : 0;
    if (had + moving > FNX_IR_MAX_DYN || ir->node[fnx_ir_root(ir, x)].kind == FNX_IR_INDEX) x = fnx_ir_copy(ir, x);
    int32_t id = x < 0 ? x : look_at(ir, x, rank, sizes);
    if (id < 0) return id;
    fnx_view_ir *v = ir->node[id].view;
    for (int d = 0; d < rank; d++) {
        if (v->axis[d] < 0 || (sizes[d] == ir->node[x].size[d] && steps[d] == 1)) continue;
        if (ir->node[starts[d]].arg < 0) v->start[v->axis[d]] += (int64_t)ir->node[starts[d]].bits * v->step[d];
        else v->dyn[v->n_dyn++] = (fnx_dyn){starts[d], v->axis[d], v->step[d]};
        v->step[d] *= steps[d];
        if (sizes[d] == 1) v->axis[d] = -1, v->step[d] = 0;
    }
    return id;
}

/* ---- reshape ----------------------------------------------------------------------------------------------------- */

/* Only axes of size 1 come and go: an axis map. */
static bool squeezes(const fnx_node_ir *n, int rank, const int64_t *sizes, int from[FNX_MAX_RANK]) {
    int k = 0;
    for (int d = 0; d < rank; d++) {
        from[d] = -1;
        if (sizes[d] == 1) continue;
        while (k < n->rank && n->size[k] == 1) k++;
        if (k == n->rank || n->size[k] != sizes[d]) return false;
        from[d] = k++;
    }
    while (k < n->rank && n->size[k] == 1) k++;
    return k == n->rank;
}

/* The view walks a run of its base's row-major elements: all axes in order with step 1, only the outermost one cut. */
static bool is_run(const fnx_ir *ir, const fnx_node_ir *n) {
    const fnx_view_ir *v = n->view;
    const fnx_node_ir *b = &ir->node[v->base];
    int last = -1;
    bool outermost = true;
    for (int d = 0; d < n->rank; d++) {
        if (n->size[d] == 1) continue;
        int a = v->axis[d];
        if (a < 0 || v->step[d] != 1 || a <= last) return false;
        for (int k = last + 1; k < a; k++)
            if (b->size[k] != 1 && !outermost) return false; /* an axis was cut to one element within */
        if (!outermost && b->size[a] != n->size[d]) return false;
        outermost = false, last = a;
    }
    for (int k = last + 1; k < b->rank; k++)
        if (b->size[k] != 1 && !outermost) return false;
    return b->kind != FNX_IR_SCALAR && b->kind != FNX_IR_INDEX && n->count > 0;
}

bool fnx_ir_is_whole(const fnx_ir *ir, int32_t id) {
    const fnx_node_ir *n = &ir->node[id];
    if (n->kind == FNX_IR_INPUT || n->kind == FNX_IR_COMPUTE || n->kind == FNX_IR_WRITE) return true;
    if (n->kind != FNX_IR_VIEW && n->kind != FNX_IR_ALIAS) return false;
    const fnx_node_ir *b = &ir->node[n->view->base];
    if (b->count != n->count || n->view->n_dyn || n->count == 0) return false;
    if (n->kind == FNX_IR_VIEW && !is_run(ir, n)) return false;
    return fnx_ir_is_whole(ir, n->view->base);
}

int32_t fnx_ir_reshape(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes) {
    int from[FNX_MAX_RANK];
    if (x < 0 || same_shape(&ir->node[x], rank, sizes)) return x;
    if (squeezes(&ir->node[x], rank, sizes, from)) return remap(ir, x, rank, sizes, from);
    int32_t root = fnx_ir_root(ir, x);
    if (ir->node[root].kind == FNX_IR_SCALAR) { /* one value everywhere */
        for (int d = 0; d < rank; d++) from[d] = -1;
        return remap(ir, root, rank, sizes, from);
    }
    if (ir->node[x].kind == FNX_IR_VIEW ? !is_run(ir, &ir->node[x]) : ir->node[x].kind == FNX_IR_INDEX)
        x = fnx_ir_copy(ir, x);
    else if (ir->node[root].kind == FNX_IR_INPUT && ir->node[root].layout != FNX_ROW_MAJOR) x = fnx_ir_copy(ir, x);
    int32_t id = x < 0 ? x : fnx_ir_node(ir, FNX_IR_ALIAS, ir->node[x].dtype, rank, sizes);
    fnx_view_ir *v = id < 0 ? NULL : fnx_ir_alloc(ir, sizeof *v);
    if (!v) return FNX_IR_NONE;
    v->base = x;
    if (ir->node[x].kind == FNX_IR_VIEW) { /* look through it: starts become elements */
        const fnx_view_ir *w = ir->node[x].view;
        const fnx_node_ir *b = &ir->node[w->base];
        int64_t stride[FNX_MAX_RANK], at = 1;
        for (int d = b->rank - 1; d >= 0; at *= b->size[d], d--) stride[d] = at;
        v->base = w->base;
        for (int d = 0; d < b->rank; d++) v->start[0] += w->start[d] * stride[d];
        for (int k = 0; k < w->n_dyn; k++)
            v->dyn[v->n_dyn++] = (fnx_dyn){w->dyn[k].scalar, 0, w->dyn[k].multiple * stride[w->dyn[k].axis]};
    }
    ir->node[fnx_ir_root(ir, v->base)].rows = true;
    ir->node[id].view = v;
    return id;
}
