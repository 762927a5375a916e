/* Building groups: values from nodes, normal form, one block. */
#include "graph/fragment.h"

#include "base/hash.h"

#include <stdlib.h>

fnx_fragment *fnx_fragment_create(void) {
    fnx_fragment *f = malloc(sizeof *f);
    if (f) f->group = NULL, fnx_fragment_reset(f);
    return f;
}

void fnx_fragment_reset(fnx_fragment *f) {
    free(f->group);
    f->group = NULL;
    f->n_values = f->n_nodes = f->n_refs = f->attr_bytes = 0;
    f->anchor = FNX_ANCHOR_ELEMENTWISE, f->anchor_node = FNX_NONE, f->rank = 0, f->row_axes = 0, f->aligned = true;
}

void fnx_fragment_destroy(fnx_fragment *f) {
    if (!f) return;
    free(f->group);
    free(f);
}

int32_t fnx_fragment_origin(const fnx_fragment *f, uint32_t node) {
    return node < f->n_nodes ? f->node[node].origin : -1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint32_t value(fnx_fragment *f, int kind, int dtype, int32_t node, int rank, const int64_t *sizes) {
    if (f->n_values == FNX_FRAGMENT_VALUES) return FNX_NONE;
    fnx_fragment_value *v = &f->value[f->n_values];
    memset(v, 0, sizeof *v);
    v->kind = (uint8_t)kind, v->dtype = (uint8_t)dtype, v->rank = (uint8_t)rank, v->node = node, v->arg = -1,
    v->access.root = node;
    if (rank) memcpy(v->size, sizes, sizeof *sizes * (size_t)rank);
    return f->n_values++;
}

static bool same_access(const fnx_access *a, const fnx_access *b) {
    return a->root == b->root && a->offset == b->offset && a->n_dyn == b->n_dyn &&
           !memcmp(a->stride, b->stride, sizeof a->stride) &&
           !memcmp(a->dyn, b->dyn, sizeof a->dyn[0] * (size_t)a->n_dyn);
}

/* Node `id` read from memory, or as a scalar. Equal reads are one value. */
static uint32_t operand(fnx_fragment *f, const fnx_builder *b, int32_t id) {
    const fnx_node_ir *n = &b->ir.node[id];
    fnx_access a;
    fnx_access_of(b, id, &a);
    const fnx_node_ir *root = &b->ir.node[a.root];
    int kind = root->kind == FNX_IR_INDEX    ? FNX_VALUE_INDEX
               : root->kind != FNX_IR_SCALAR ? FNX_VALUE_INPUT
               : root->arg < 0               ? FNX_VALUE_CONST
                                             : FNX_VALUE_SCALAR;
    bool memory = kind == FNX_VALUE_INPUT || kind == FNX_VALUE_INDEX;
    for (uint32_t i = 0; i < f->n_values; i++) {
        const fnx_fragment_value *v = &f->value[i];
        if (v->kind == kind && (memory ? v->rank == n->rank && same_access(&v->access, &a) : v->access.root == a.root))
            return i;
    }
    uint32_t at = value(f, kind, root->dtype, id, memory ? n->rank : 0, n->size);
    if (at == FNX_NONE) return at;
    f->value[at].access = a, f->value[at].bits = root->bits, f->value[at].arg = root->arg;
    return at;
}

static uint32_t result(fnx_fragment *f, const fnx_builder *b, int32_t id) {
    const fnx_node_ir *n = &b->ir.node[id];
    uint32_t at = value(f, n->stored ? FNX_VALUE_OUTPUT : FNX_VALUE_TEMP, n->dtype, id, n->rank, n->size);
    if (at != FNX_NONE) fnx_access_of(b, id, &f->value[at].access);
    return at;
}

static bool node(fnx_fragment *f, uint16_t op, int32_t origin, const uint32_t *in, int n_in, const uint32_t *out,
                 int n_out, const void *attr, unsigned attr_bytes) {
    if (f->n_nodes == FNX_FRAGMENT_VALUES || f->n_refs + (uint32_t)(n_in + n_out) > FNX_FRAGMENT_VALUES * 4 ||
        f->attr_bytes + attr_bytes > sizeof f->attr)
        return false;
    for (int k = 0; k < n_in; k++)
        if (in[k] == FNX_NONE) return false;
    for (int k = 0; k < n_out; k++)
        if (out[k] == FNX_NONE) return false;
    uint32_t i = f->n_nodes++;
    f->node[i].op = op, f->node[i].n_in = (uint16_t)n_in, f->node[i].n_out = (uint16_t)n_out, f->node[i].reserved = 0;
    f->node[i].origin = origin, f->node[i].first_ref = f->n_refs;
    f->node[i].attr_offset = f->attr_bytes, f->node[i].attr_bytes = attr_bytes;
    if (attr_bytes) memcpy((char *)f->attr + f->attr_bytes, attr, attr_bytes);
    f->attr_bytes += attr_bytes;
    for (int k = 0; k < n_in; k++) f->ref[f->n_refs++] = in[k];
    for (int k = 0; k < n_out; k++) f->ref[f->n_refs++] = out[k];
    return true;
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static void domain(fnx_fragment *f, int rank, const int64_t *sizes) {
    f->rank = (uint32_t)rank;
    if (rank) memcpy(f->domain, sizes, sizeof *sizes * (size_t)rank);
}

fnx_status fnx_fragment_kernel(fnx_fragment *f, const fnx_builder *b, int32_t id) {
    const fnx_node_ir *n = &b->ir.node[id];
    uint32_t in[4], out[2];
    if (n->more || n->n_in > 4) return FNX_E_DECLINED;
    for (int k = 0; k < n->n_in; k++) in[k] = operand(f, b, n->in[k]);
    unsigned sibling = fnx_ops[n->op].sibling; /* alone here: its first result goes to scratch memory */
    int n_out = 0;
    if (sibling) {
        int64_t sizes[FNX_MAX_RANK];
        memcpy(sizes, n->size, sizeof sizes);
        out[n_out] = value(f, FNX_VALUE_OUTPUT, b->ir.node[n->in[0]].dtype, -1, n->rank, sizes);
        fnx_layout_strides(n->rank, n->size, n->layout, f->value[out[n_out++]].access.stride);
    }
    out[n_out++] = result(f, b, id);
    if (n->sibling >= 0) out[n_out++] = result(f, b, n->sibling);
    uint16_t op = (uint16_t)(sibling ? sibling : n->op);
    f->anchor = fnx_ops[op].anchor ? fnx_ops[op].anchor : FNX_ANCHOR_OPAQUE, f->anchor_node = 0, f->aligned = false;
    if (!node(f, op, id, in, n->n_in, out, n_out, n->attr, fnx_ops[op].attr_bytes)) return FNX_E_DECLINED;
    domain(f, n->rank, n->size);
    if (f->anchor == FNX_ANCHOR_REDUCE) {
        const fnx_node_ir *x = &b->ir.node[n->in[0]];
        domain(f, x->rank, x->size);
        f->row_axes = ((const fnx_attr_reduce *)n->attr)->axes;
        f->aligned = true;
    }
    return FNX_OK;
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

fnx_status fnx_fragment_group(fnx_fragment *f, const fnx_builder *b, const fnx_unit *u) {
    int32_t id[FNX_FRAGMENT_VALUES];
    uint32_t of[FNX_FRAGMENT_VALUES];
    int n = 0;
    for (int32_t i = u->first; i >= 0; i = b->next[i]) {
        if (n == FNX_FRAGMENT_VALUES) return FNX_E_DECLINED;
        id[n++] = i;
    }
    qsort(id, (size_t)n, sizeof *id, ascending);
    for (int i = 0; i < n; i++) {
        const fnx_node_ir *x = &b->ir.node[id[i]];
        uint32_t in[4], out;
        for (int k = 0; k < x->n_in; k++) {
            int32_t o = fnx_ir_in(x)[k];
            in[k] = FNX_NONE;
            for (int j = 0; j < i && in[k] == FNX_NONE; j++)
                if (id[j] == o) in[k] = of[j];
            if (in[k] == FNX_NONE) in[k] = operand(f, b, o);
        }
        out = of[i] = result(f, b, id[i]);
        if (!node(f, x->op, id[i], in, x->n_in, &out, 1, NULL, 0)) return FNX_E_DECLINED;
    }
    domain(f, b->ir.node[id[0]].rank, b->ir.node[id[0]].size);
    return FNX_OK;
}

fnx_status fnx_fragment_copy(fnx_fragment *f, const fnx_builder *b, int32_t src, const fnx_access *part, int dtype,
                             int rank, const int64_t *sizes) {
    uint32_t in = operand(f, b, src), out = value(f, FNX_VALUE_OUTPUT, dtype, part->root, rank, sizes);
    if (out == FNX_NONE) return FNX_E_DECLINED;
    f->value[out].access = *part;
    if (!node(f, FNX_OP_copy, -1, &in, 1, &out, 1, NULL, 0)) return FNX_E_DECLINED;
    domain(f, rank, sizes);
    return FNX_OK;
}

/* ---- normal form ------------------------------------------------------------------------------------------------- */

static bool walks(const fnx_fragment_value *v) {
    return v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT || v->kind == FNX_VALUE_INDEX;
}

/* The value whose strides decide the order of axes: what is reduced, else the first output. */
static const fnx_fragment_value *reference(const fnx_fragment *f) {
    for (uint32_t i = 0; i < f->n_values; i++)
        if (f->value[i].kind == (f->row_axes ? FNX_VALUE_INPUT : FNX_VALUE_OUTPUT)) return &f->value[i];
    return &f->value[0];
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Axes of size 1 go; kept axes first, reduced ones last, each by descending stride; then runs that every value can walk
 * as one axis are merged. */
static void normalize(fnx_fragment *f) {
    const fnx_fragment_value *ref = reference(f);
    int axis[FNX_MAX_RANK], n = 0;
    for (int reduced = 0; reduced < 2; reduced++) {
        int from = n;
        for (int d = 0; d < (int)f->rank; d++) {
            if ((int)(f->row_axes >> d & 1) != reduced || f->domain[d] == 1) continue;
            int at = n++;
            for (; at > from && magnitude(ref->access.stride[axis[at - 1]]) < magnitude(ref->access.stride[d]); at--)
                axis[at] = axis[at - 1];
            axis[at] = d;
        }
        if (reduced && f->row_axes && n == from) /* only axes of size 1 are reduced: one stays */
            for (int d = 0; d < (int)f->rank; d++)
                if (f->row_axes >> d & 1) {
                    axis[n++] = d;
                    break;
                }
    }
    bool joined[FNX_MAX_RANK] = {false}; /* axis i continues axis i - 1 */
    for (int i = 1; i < n; i++) {
        joined[i] = (f->row_axes >> axis[i] & 1) == (f->row_axes >> axis[i - 1] & 1) && f->domain[axis[i]] != 0 &&
                    f->domain[axis[i - 1]] != 0;
        for (uint32_t k = 0; k < f->n_values && joined[i]; k++) {
            const fnx_fragment_value *v = &f->value[k];
            if (walks(v) && v->access.stride[axis[i - 1]] != v->access.stride[axis[i]] * f->domain[axis[i]])
                joined[i] = false;
        }
    }
    int64_t size[FNX_MAX_RANK] = {1};
    uint32_t row_axes = 0;
    int rank = 0;
    for (int i = 0; i < n; i++) {
        if (joined[i]) size[rank - 1] *= f->domain[axis[i]];
        else size[rank++] = f->domain[axis[i]];
        if (f->row_axes >> axis[i] & 1) row_axes |= 1u << (rank - 1);
    }
    for (uint32_t k = 0; k < f->n_values; k++) {
        fnx_fragment_value *v = &f->value[k];
        int64_t s[FNX_MAX_RANK] = {0}, z[FNX_MAX_RANK] = {1};
        if (v->kind == FNX_VALUE_SCALAR || v->kind == FNX_VALUE_CONST) continue;
        int r = 0;
        for (int i = 0; i < n; i++) {
            bool one = walks(v) && v->size[axis[i]] == 1;
            if (joined[i]) s[r - 1] = v->access.stride[axis[i]]; /* sizes are those of the domain, below */
            else s[r] = v->access.stride[axis[i]], z[r] = one ? 1 : size[r], r++;
        }
        if (n == 0) r = 1;
        memcpy(v->access.stride, s, sizeof s);
        memcpy(v->size, z, sizeof z);
        v->rank = (uint8_t)r;
    }
    if (rank == 0) rank = 1; /* one element: an axis of size 1 */
    f->rank = (uint32_t)rank, f->row_axes = row_axes;
    memcpy(f->domain, size, sizeof *size * (size_t)rank);
    if (f->anchor == FNX_ANCHOR_REDUCE) memcpy(f->attr, &(fnx_attr_reduce){row_axes, 0}, sizeof(fnx_attr_reduce));
}

/* ---- the block --------------------------------------------------------------------------------------------------- */

static uint16_t size_entry(fnx_fragment *f, uint32_t *n, int64_t size, uint32_t hint) {
    if (size == 1) return 0;
    if (hint < *n && f->sizes[hint] == size) return (uint16_t)hint;
    for (uint32_t i = 1; i < *n; i++)
        if (f->sizes[i] == size) return (uint16_t)i;
    f->sizes[*n] = size;
    return (uint16_t)(*n)++;
}

static uint8_t stride_class(const fnx_fragment_value *v, int d) {
    int64_t s = v->access.stride[d];
    if (v->size[d] == 1 || s == 0) return FNX_STRIDE_ZERO;
    if (s == 1) return FNX_STRIDE_ONE;
    return d + 1 < v->rank && s == v->access.stride[d + 1] * v->size[d + 1] ? FNX_STRIDE_PACKED : FNX_STRIDE_ANY;
}

static int32_t identity(const fnx_fragment *f, const fnx_builder *b, uint32_t i) {
    int32_t root = f->value[i].access.root;
    return root < 0 ? -2 - (int32_t)i : b->identity ? b->identity[root] : root;
}

/* FNX_GROUP_INDEX32, with room for a kernel to count past an end. */
static bool fits_32_bits(const fnx_fragment *f) {
    const int64_t most = INT32_MAX - (1 << 20);
    int64_t n = 1;
    for (uint32_t d = 0; d < f->rank; d++)
        if (__builtin_mul_overflow(n, f->domain[d], &n) || n > most) return false;
    for (uint32_t i = 0; i < f->n_values; i++) {
        const fnx_fragment_value *v = &f->value[i];
        int64_t count = 1, reach = 0;
        for (int d = 0; walks(v) && d < v->rank; d++) {
            int64_t far, stride = v->access.stride[d] < 0 ? -v->access.stride[d] : v->access.stride[d];
            if (__builtin_mul_overflow(count, v->size[d], &count) || count > most) return false;
            if (v->size[d] == 0) continue;
            if (__builtin_mul_overflow(stride, v->size[d] - 1, &far) || far > most || (reach += far) > most)
                return false;
        }
    }
    return true;
}

static uint32_t align8(uint32_t x) { return (x + 7) & ~7u; }

fnx_status fnx_fragment_finish(fnx_fragment *f, const fnx_builder *b) {
    if (f->aligned) normalize(f);
    uint32_t n_sizes = 1, n_bindings = 0, n_strides = 0, n_scalars = 0, n_consts = 0, n_slots = 0;
    uint32_t slot_first[FNX_FRAGMENT_VALUES];
    fnx_value values[FNX_FRAGMENT_VALUES];
    fnx_scalar consts[FNX_FRAGMENT_VALUES];
    uint16_t domain_entry[FNX_MAX_RANK] = {0};
    f->sizes[0] = 1;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (f->domain[d] == 1) continue;
        if (f->aligned)
            f->sizes[n_sizes] = f->domain[d],
            domain_entry[d] = (uint16_t)n_sizes++; /* each axis its own: no accidents */
        else domain_entry[d] = size_entry(f, &n_sizes, f->domain[d], 0);
    }
    memset(values, 0, sizeof *values * f->n_values);
    for (uint32_t i = 0; i < f->n_values; i++) {
        fnx_fragment_value *v = &f->value[i];
        fnx_value *w = &values[i];
        w->dtype = v->dtype, w->kind = v->kind, w->rank = v->rank, w->index = FNX_NONE, w->slot = FNX_NONE;
        w->align = fnx_dtypes[v->dtype].bytes;
        for (int d = 0; d < v->rank; d++) {
            bool broadcast = f->aligned && v->kind != FNX_VALUE_OUTPUT && v->kind != FNX_VALUE_TEMP &&
                             v->access.stride[d] == 0 && !(f->row_axes >> d & 1); /* a reduction counts its elements */
            w->size[d] = broadcast || v->size[d] == 1 ? 0
                         : f->aligned                 ? domain_entry[d]
                                                      : size_entry(f, &n_sizes, v->size[d], 0);
            w->stride_class[d] = walks(v) ? stride_class(v, d) : (uint8_t)FNX_STRIDE_ANY;
        }
        if (walks(v)) {
            w->first_stride = n_strides;
            for (int d = 0; d < v->rank; d++) f->strides[n_strides++] = v->size[d] == 1 ? 0 : v->access.stride[d];
        }
        if (v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT) {
            int32_t id = identity(f, b, i);
            for (uint32_t k = 0; k < n_slots && w->slot == FNX_NONE; k++)
                if (identity(f, b, slot_first[k]) == id) w->slot = k;
            if (w->slot == FNX_NONE) slot_first[n_slots] = i, w->slot = n_slots++;
            f->binding_value[n_bindings] = (int32_t)i;
            w->index = n_bindings++;
        } else if (v->kind == FNX_VALUE_SCALAR) {
            f->scalar_value[n_scalars] = (int32_t)i;
            w->index = n_scalars++;
        } else if (v->kind == FNX_VALUE_CONST) {
            consts[n_consts] = fnx_scalar_make(v->dtype, v->bits);
            w->index = n_consts++;
        }
    }
    fnx_group h = {.struct_size = sizeof h,
                   .anchor = f->anchor,
                   .anchor_node = f->anchor_node,
                   .rank = f->rank,
                   .row_axes = f->row_axes,
                   .scalar_value = FNX_NONE,
                   .n_slots = n_slots,
                   .n_bindings = n_bindings,
                   .n_strides = n_strides,
                   .attr_bytes = f->attr_bytes,
                   .n_sizes = n_sizes,
                   .size_bytes = sizeof(fnx_size),
                   .n_values = f->n_values,
                   .value_bytes = sizeof(fnx_value),
                   .n_nodes = f->n_nodes,
                   .node_bytes = sizeof(fnx_node),
                   .n_scalars = n_scalars,
                   .scalar_bytes = sizeof(fnx_scalar_slot),
                   .n_consts = n_consts,
                   .n_refs = f->n_refs};
    memcpy(h.domain, domain_entry, sizeof domain_entry);
    if (b->backend->wants & FNX_WANTS_INDEX32 && fits_32_bits(f)) h.flags |= FNX_GROUP_INDEX32;
    uint32_t at = sizeof h;
    h.sizes_at = at, at += n_sizes * h.size_bytes;
    h.values_at = at, at += f->n_values * h.value_bytes;
    h.nodes_at = at = align8(at), at += f->n_nodes * h.node_bytes;
    h.scalars_at = at = align8(at), at += n_scalars * h.scalar_bytes;
    h.consts_at = at = align8(at), at += n_consts * (uint32_t)sizeof(fnx_scalar);
    h.refs_at = at, at += f->n_refs * (uint32_t)sizeof(uint32_t);
    h.names_at = at = align8(at);
    h.attrs_at = at, at += f->attr_bytes;
    h.total_bytes = at = align8(at);
    char *block = calloc(1, at);
    if (!block) return fnx_out_of_host_memory();
    for (uint32_t i = 0; i < n_sizes; i++)
        ((fnx_size *)(void *)(block + h.sizes_at))[i] = (fnx_size){i == 0 ? 1 : -1, 1, i == 0 ? 1 : INT64_MAX};
    memcpy(block + h.values_at, values, f->n_values * sizeof *values);
    for (uint32_t i = 0; i < f->n_nodes; i++)
        ((fnx_node *)(void *)(block + h.nodes_at))[i] = (fnx_node){f->node[i].op,        0,
                                                                   f->node[i].n_in,      f->node[i].n_out,
                                                                   f->node[i].first_ref, f->node[i].attr_offset,
                                                                   f->node[i].attr_bytes};
    for (uint32_t i = 0; i < n_scalars; i++)
        ((fnx_scalar_slot *)(void *)(block + h.scalars_at))[i] =
            (fnx_scalar_slot){f->value[f->scalar_value[i]].dtype, FNX_CLASS_ANY, 0};
    memcpy(block + h.consts_at, consts, n_consts * sizeof *consts);
    memcpy(block + h.refs_at, f->ref, f->n_refs * sizeof *f->ref);
    memcpy(block + h.attrs_at, f->attr, f->attr_bytes);
    memcpy(block, &h, sizeof h);
    fnx_hash128(block, at, h.hash);
    memcpy(block + offsetof(fnx_group, hash), h.hash, sizeof h.hash);
    free(f->group);
    f->group = (fnx_group *)(void *)block;
    memset(f->bindings, 0, sizeof *f->bindings * n_bindings);
    f->launch = (fnx_launch){.struct_size = sizeof f->launch,
                             .sizes = f->sizes,
                             .strides = f->strides,
                             .bindings = f->bindings,
                             .scalars = f->scalars};
    return FNX_OK;
}
