/* See fragment.h. */
#include "fragment.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void misuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("fragment: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static uint32_t next(uint32_t *count, uint32_t limit, const char *what) {
    if (*count >= limit) misuse("more than %u %s", limit, what);
    return (*count)++;
}

static void *allocate(size_t bytes) {
    void *p = calloc(1, bytes);
    if (!p) misuse("out of memory");
    return p;
}

fragment *fragment_create(void) {
    fragment *f = allocate(sizeof *f);
    f->group_header.anchor_node = f->group_header.scalar_value = FNX_NONE;
    f->group_header.n_sizes = 1;
    f->size[0] = (fnx_size){1, 1, 1};
    f->length[0] = 1;
    return f;
}

void fragment_destroy(fragment *f) {
    if (!f) return;
    free(f->group);
    free(f);
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static const uint8_t dtype_bytes[] = {
    [FNX_BOOL] = 1, [FNX_I8] = 1,  [FNX_I16] = 2, [FNX_I32] = 4, [FNX_I64] = 8,
    [FNX_U8] = 1,   [FNX_U16] = 2, [FNX_U32] = 4, [FNX_U64] = 8, [FNX_F16] = 2,
    [FNX_BF16] = 2, [FNX_F32] = 4, [FNX_F64] = 8, [FNX_C64] = 8, [FNX_C128] = 16,
};

uint32_t fragment_dtype_bytes(uint16_t dtype) {
    if (dtype >= sizeof dtype_bytes || dtype_bytes[dtype] == 0) misuse("no such dtype: %u", dtype);
    return dtype_bytes[dtype];
}

fnx_scalar fragment_scalar_of(uint16_t dtype, double value) {
    fnx_scalar s = {{0, 0}};
    float single = (float)value;
    int64_t integer;
    switch (dtype) {
    case FNX_F32: memcpy(s.bits, &single, sizeof single); break;
    case FNX_F64: memcpy(s.bits, &value, sizeof value); break;
    case FNX_F16:
    case FNX_BF16:
    case FNX_C64:
    case FNX_C128: misuse("no scalars of dtype %u", dtype); break;
    default: integer = (int64_t)value; memcpy(s.bits, &integer, fragment_dtype_bytes(dtype));
    }
    return s;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

uint16_t fragment_size(fragment *f, int64_t length) {
    if (length == 1) return 0;
    uint32_t i = next(&f->group_header.n_sizes, FRAGMENT_MAX, "sizes");
    f->size[i] = (fnx_size){-1, 1, INT64_MAX};
    f->length[i] = length;
    return (uint16_t)i;
}

fragment_shape fragment_shape_of(fragment *f, uint32_t rank, const int64_t *lengths) {
    fragment_shape shape = {rank, {0}};
    if (rank > FNX_MAX_RANK) misuse("rank %u", rank);
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t i = 0;
        while (i < f->group_header.n_sizes && f->length[i] != lengths[d]) i++;
        shape.size[d] = i < f->group_header.n_sizes ? (uint16_t)i : fragment_size(f, lengths[d]);
    }
    return shape;
}

int64_t fragment_count(const fragment *f, fragment_shape shape) {
    int64_t n = 1;
    for (uint32_t d = 0; d < shape.rank; d++) n *= f->length[shape.size[d]];
    return n;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint32_t new_value(fragment *f, uint8_t kind, uint16_t dtype, fragment_shape shape) {
    uint32_t i = next(&f->group_header.n_values, FRAGMENT_MAX, "values");
    fnx_value *v = &f->value[i];
    *v = (fnx_value){.dtype = dtype, .kind = kind, .rank = (uint8_t)shape.rank, .align = fragment_dtype_bytes(dtype)};
    v->index = v->slot = v->first_stride = FNX_NONE;
    memcpy(v->size, shape.size, sizeof v->size);
    return i;
}

static void set_row_major(fragment *f, const fnx_value *v) {
    int64_t packed = 1;
    for (uint32_t d = v->rank; d-- > 0;) {
        f->stride[v->first_stride + d] = v->size[d] == 0 ? 0 : packed;
        packed *= f->length[v->size[d]];
    }
}

static void add_strides(fragment *f, uint32_t value, const int64_t *strides) {
    fnx_value *v = &f->value[value];
    v->first_stride = f->group_header.n_strides;
    f->group_header.n_strides += v->rank;
    f->row_major[value] = strides == NULL;
    if (!strides) set_row_major(f, v);
    for (uint32_t d = 0; strides && d < v->rank; d++) f->stride[v->first_stride + d] = v->size[d] == 0 ? 0 : strides[d];
}

static uint32_t new_stored(fragment *f, uint8_t kind, uint16_t dtype, fragment_shape shape, const int64_t *strides,
                           const void *at) {
    uint32_t i = new_value(f, kind, dtype, shape);
    f->value[i].index = next(&f->group_header.n_bindings, FRAGMENT_MAX, "bindings");
    f->value[i].slot = f->group_header.n_slots++;
    add_strides(f, i, strides);
    fragment_bind(f, i, at);
    return i;
}

uint32_t fragment_input(fragment *f, uint16_t dtype, fragment_shape shape, const void *at) {
    return new_stored(f, FNX_VALUE_INPUT, dtype, shape, NULL, at);
}

uint32_t fragment_output(fragment *f, uint16_t dtype, fragment_shape shape, void *at) {
    return new_stored(f, FNX_VALUE_OUTPUT, dtype, shape, NULL, at);
}

uint32_t fragment_input_strided(fragment *f, uint16_t dtype, fragment_shape shape, const int64_t *strides,
                                const void *at) {
    return new_stored(f, FNX_VALUE_INPUT, dtype, shape, strides, at);
}

uint32_t fragment_output_strided(fragment *f, uint16_t dtype, fragment_shape shape, const int64_t *strides, void *at) {
    return new_stored(f, FNX_VALUE_OUTPUT, dtype, shape, strides, at);
}

void fragment_share_slot(fragment *f, uint32_t value, uint32_t like) { f->value[value].slot = f->value[like].slot; }

uint32_t fragment_output_in_place(fragment *f, uint32_t input) {
    const fnx_value *v = &f->value[input];
    fragment_shape shape = {v->rank, {0}};
    memcpy(shape.size, v->size, sizeof shape.size);
    uint32_t i =
        new_stored(f, FNX_VALUE_OUTPUT, v->dtype, shape, f->row_major[input] ? NULL : &f->stride[v->first_stride],
                   (const void *)(uintptr_t)f->binding[v->index].address);
    f->group_header.n_slots--; /* it needs none of its own */
    fragment_share_slot(f, i, input);
    return i;
}

uint32_t fragment_temp(fragment *f, uint16_t dtype, fragment_shape shape) {
    return new_value(f, FNX_VALUE_TEMP, dtype, shape);
}

uint32_t fragment_index(fragment *f, fragment_shape shape, const int64_t *strides) {
    uint32_t i = new_value(f, FNX_VALUE_INDEX, FNX_I64, shape);
    add_strides(f, i, strides);
    return i;
}

static uint32_t new_scalar(fragment *f, uint16_t dtype, fnx_scalar s) {
    uint32_t i = new_value(f, FNX_VALUE_SCALAR, dtype, RANK0);
    uint32_t k = f->value[i].index = next(&f->group_header.n_scalars, FRAGMENT_MAX, "scalars");
    f->scalar_slot[k] = (fnx_scalar_slot){dtype, FNX_CLASS_ANY, 0};
    f->scalar[k] = s;
    return i;
}

uint32_t fragment_scalar(fragment *f, uint16_t dtype, double value) {
    return new_scalar(f, dtype, fragment_scalar_of(dtype, value));
}

uint32_t fragment_scalar_bits(fragment *f, uint16_t dtype, uint64_t bits) {
    return new_scalar(f, dtype, (fnx_scalar){{bits, 0}});
}

uint32_t fragment_const(fragment *f, uint16_t dtype, double value) {
    uint32_t i = new_value(f, FNX_VALUE_CONST, dtype, RANK0);
    f->value[i].index = next(&f->group_header.n_consts, FRAGMENT_MAX, "constants");
    f->constant[f->value[i].index] = fragment_scalar_of(dtype, value);
    return i;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void fragment_node(fragment *f, uint16_t op, const void *attr, uint32_t attr_size, uint32_t n_operands,
                   const uint32_t *operands, uint32_t n_results, const uint32_t *results) {
    fnx_group *g = &f->group_header;
    fnx_node *n = &f->node[next(&g->n_nodes, FRAGMENT_MAX, "nodes")];
    uint32_t padded = (attr_size + 7u) & ~7u;
    if (g->n_refs + n_operands + n_results > sizeof f->ref / sizeof *f->ref) misuse("too many operands");
    if (g->attr_bytes + padded > sizeof f->attr) misuse("too many attributes");
    *n = (fnx_node){op, 0, (uint16_t)n_operands, (uint16_t)n_results, g->n_refs, g->attr_bytes, padded};
    if (n_operands) memcpy(&f->ref[g->n_refs], operands, n_operands * sizeof *operands);
    if (n_results) memcpy(&f->ref[g->n_refs + n_operands], results, n_results * sizeof *results);
    if (attr_size) memcpy((char *)f->attr + g->attr_bytes, attr, attr_size);
    g->n_refs += n_operands + n_results;
    g->attr_bytes += padded;
}

uint16_t fragment_extension_op(fragment *f, const char *name) {
    uint32_t i = next(&f->group_header.n_names, FRAGMENT_MAX, "names");
    f->name[i] = name;
    return (uint16_t)(FNX_OP_EXTENSION + i);
}

/* ---- finish ------------------------------------------------------------------------------------------------------ */

static uint32_t anchor_of(uint16_t op) {
    switch (op) {
    case FNX_OP_sum:
    case FNX_OP_max:
    case FNX_OP_min:
    case FNX_OP_argmax: return FNX_ANCHOR_REDUCE;
    case FNX_OP_matmul: return FNX_ANCHOR_MATMUL;
    case FNX_OP_conv:
    case FNX_OP_conv_grad_x:
    case FNX_OP_conv_grad_w: return FNX_ANCHOR_CONV;
    case FNX_OP_gather: return FNX_ANCHOR_GATHER;
    case FNX_OP_scatter_add: return FNX_ANCHOR_SCATTER;
    case FNX_OP_max_pool:
    case FNX_OP_max_pool_grad:
    case FNX_OP_max_pool_pick:
    case FNX_OP_avg_pool:
    case FNX_OP_avg_pool_grad: return FNX_ANCHOR_OPAQUE;
    default: return op >= FNX_OP_EXTENSION ? FNX_ANCHOR_OPAQUE : FNX_ANCHOR_ELEMENTWISE;
    }
}

static const fnx_value *node_value(const fragment *f, const fnx_node *n, uint32_t k) {
    return &f->value[f->ref[n->first_ref + k]];
}

static void set_domain(fnx_group *g, const fnx_value *v) {
    g->rank = v->rank;
    memcpy(g->domain, v->size, sizeof g->domain);
}

/* Of elementwise groups: rank of the largest result, and on each axis the first size that is not 1. */
static void set_elementwise_domain(fragment *f) {
    fnx_group *g = &f->group_header;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const fnx_value *y = node_value(f, &f->node[i], f->node[i].n_operands);
        if (i == 0 || y->rank > g->rank) set_domain(g, y);
        for (uint32_t d = 0; d < y->rank; d++)
            if (g->domain[d] == 0) g->domain[d] = y->size[d];
    }
}

/* Does an elementwise node spread a reduced value over the row again? */
static int meets_its_row(const fragment *f) {
    const fnx_group *g = &f->group_header;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const fnx_node *n = &f->node[i];
        const fnx_value *y = node_value(f, n, n->n_operands);
        for (uint32_t k = 0; anchor_of(n->op) == FNX_ANCHOR_ELEMENTWISE && k < n->n_operands; k++) {
            const fnx_value *x = node_value(f, n, k);
            if (x->kind != FNX_VALUE_TEMP && x->kind != FNX_VALUE_OUTPUT) continue;
            for (uint32_t d = 0; d < y->rank && d < x->rank; d++)
                if (((g->row_axes >> d) & 1) && x->size[d] == 0 && y->size[d] != 0) return 1;
        }
    }
    return 0;
}

static void derive_anchor(fragment *f) {
    fnx_group *g = &f->group_header;
    if (g->n_nodes == 0) misuse("a group without nodes");
    g->anchor = FNX_ANCHOR_ELEMENTWISE;
    g->anchor_node = FNX_NONE;
    g->row_axes = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const fnx_node *n = &f->node[i];
        uint32_t anchor = anchor_of(n->op);
        fnx_attr_reduce reduce;
        if (anchor == FNX_ANCHOR_ELEMENTWISE) continue;
        if (anchor == FNX_ANCHOR_REDUCE && n->attr_size >= sizeof reduce) {
            memcpy(&reduce, (const char *)f->attr + n->attr_offset, sizeof reduce);
            g->row_axes |= reduce.axes;
        }
        if (g->anchor != FNX_ANCHOR_ELEMENTWISE) continue; /* the first one counts */
        g->anchor = anchor;
        if (anchor != FNX_ANCHOR_REDUCE) g->anchor_node = i;
        set_domain(g, node_value(f, n, anchor == FNX_ANCHOR_REDUCE ? 0 : n->n_operands));
    }
    if (g->anchor == FNX_ANCHOR_ELEMENTWISE) set_elementwise_domain(f);
    if (g->anchor == FNX_ANCHOR_REDUCE && meets_its_row(f)) g->anchor = FNX_ANCHOR_ROWS;
}

static void classify_strides(fragment *f, uint32_t value) {
    fnx_value *v = &f->value[value];
    const int64_t *s = &f->stride[v->first_stride];
    for (uint32_t d = v->rank, inner = 1; d-- > 0;) { /* inner: all axes after d have size 1 */
        int packed = d + 1 < v->rank && v->size[d + 1] != 0 && s[d] == s[d + 1] * f->length[v->size[d + 1]];
        int one = f->row_major[value] ? inner != 0 : s[d] == 1;
        if (v->size[d] == 0) v->stride_class[d] = FNX_STRIDE_ZERO;
        else
            v->stride_class[d] = packed                              ? FNX_STRIDE_PACKED
                                 : one                               ? FNX_STRIDE_ONE
                                 : s[d] == 0 && !f->row_major[value] ? FNX_STRIDE_ZERO
                                                                     : FNX_STRIDE_ANY;
        if (v->size[d] != 0) inner = 0;
    }
}

/* Appends `n` structs of `bytes`, each followed by f->stretch bytes of junk where `stride` is given. */
static uint32_t append(fragment *f, char *block, const void *from, uint32_t n, uint32_t bytes, uint32_t *stride) {
    fnx_group *g = &f->group_header;
    uint32_t at = g->total_bytes, step = bytes + (stride ? f->stretch : 0);
    if (stride) *stride = step;
    if (block && n) memset(block + at, 0xa5, (size_t)n * step);
    for (uint32_t i = 0; block && i < n; i++)
        memcpy(block + at + (size_t)i * step, (const char *)from + (size_t)i * bytes, bytes);
    g->total_bytes += (n * step + 7u) & ~7u;
    return at;
}

/* Lays the arrays out behind the header; with a block, also copies them there. */
static void lay_out(fragment *f, char *block) {
    fnx_group *g = &f->group_header;
    uint32_t names[FRAGMENT_MAX];
    g->struct_size = (uint32_t)sizeof *g + f->stretch;
    g->total_bytes = g->struct_size;
    if (block) memset(block + sizeof *g, 0xa5, f->stretch);
    g->sizes_at = append(f, block, f->size, g->n_sizes, sizeof *f->size, &g->size_bytes);
    g->values_at = append(f, block, f->value, g->n_values, sizeof *f->value, &g->value_bytes);
    g->nodes_at = append(f, block, f->node, g->n_nodes, sizeof *f->node, &g->node_bytes);
    g->scalars_at = append(f, block, f->scalar_slot, g->n_scalars, sizeof *f->scalar_slot, &g->scalar_bytes);
    g->consts_at = append(f, block, f->constant, g->n_consts, sizeof *f->constant, NULL);
    g->attrs_at = append(f, block, f->attr, g->attr_bytes, 1, NULL);
    g->refs_at = append(f, block, f->ref, g->n_refs, sizeof *f->ref, NULL);
    for (uint32_t i = 0; i < g->n_names; i++)
        names[i] = append(f, block, f->name[i], (uint32_t)strlen(f->name[i]) + 1, 1, NULL);
    g->names_at = append(f, block, names, g->n_names, sizeof *names, NULL);
    if (block) memcpy(block, g, sizeof *g);
}

static uint64_t hash_bytes(const void *p, size_t bytes, uint64_t h) { /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) h = (h ^ ((const uint8_t *)p)[i]) * UINT64_C(1099511628211);
    return h;
}

void fragment_finish(fragment *f) {
    fnx_group *g = &f->group_header;
    if (f->stretch % 8) misuse("stretch must be a multiple of 8");
    derive_anchor(f);
    for (uint32_t i = 0; i < g->n_values; i++)
        if (f->value[i].first_stride != FNX_NONE) classify_strides(f, i);
    g->hash[0] = g->hash[1] = 0;
    lay_out(f, NULL);
    free(f->group);
    f->group = allocate(g->total_bytes);
    lay_out(f, (char *)f->group);
    uint64_t low = hash_bytes(f->group, g->total_bytes, UINT64_C(14695981039346656037));
    uint64_t high = hash_bytes(f->group, g->total_bytes, ~low);
    f->group->hash[0] = low;
    f->group->hash[1] = high;
    f->launch = (fnx_launch){sizeof f->launch, 1, f->length, f->stride, f->binding, f->scalar, {0, NULL}};
}

void fragment_resize(fragment *f, uint16_t entry, int64_t length) {
    f->length[entry] = length;
    for (uint32_t i = 0; i < f->group_header.n_values; i++)
        if (f->value[i].first_stride != FNX_NONE && f->row_major[i]) set_row_major(f, &f->value[i]);
}

void fragment_bind(fragment *f, uint32_t value, const void *at) {
    f->binding[f->value[value].index] = (fnx_binding){(uint64_t)(uintptr_t)at, NULL};
}
