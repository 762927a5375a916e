/* fnx_group_check: is this block of bytes a group? In this order, because each step reads through what the last one
 * found sound: header, arrays, names, sizes, scalars, values, nodes, the ops of the nodes, domain, memory. */
#include "op_form.h"
#include "refuse.h"

#include <fornax-plugin/check.h>

#define MOST_NAME 255u /* bytes of an extension op's name */

typedef struct checker {
    const fnx_group *g;
    char *why;
    size_t why_size;
    uint8_t defined[FNX_CHECK_MOST / 8]; /* a bit per value: a node has made it */
} checker;

#define CHECK(condition, ...) REQUIRE(condition, FNX_E_FORMAT, __VA_ARGS__)
#define KNOWN(condition, ...) REQUIRE(condition, FNX_E_UNSUPPORTED, __VA_ARGS__)

static int is_stored(const fnx_value *v) { return v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT; }
static int is_made(const fnx_value *v) { return v->kind == FNX_VALUE_TEMP || v->kind == FNX_VALUE_OUTPUT; }

/* ---- the block --------------------------------------------------------------------------------------------------- */

static int32_t check_header(checker *c, size_t size) {
    const fnx_group *g = c->g;
    CHECK((uintptr_t)g % 8 == 0, "the group is not aligned to 8 bytes: copy it to where it is");
    CHECK(size >= sizeof *g, "%zu bytes are too few for a group: its header has %zu", size, sizeof *g);
    CHECK(g->struct_size >= sizeof *g && g->struct_size <= size, "struct_size is %u, of %zu bytes", g->struct_size,
          size);
    CHECK(g->total_bytes == size, "the group has %u bytes by its header, but there are %zu", g->total_bytes, size);
    KNOWN(g->features == 0, "unknown features 0x%llx", (unsigned long long)g->features);
    KNOWN(g->anchor >= FNX_ANCHOR_ELEMENTWISE && g->anchor <= FNX_ANCHOR_OPAQUE, "unknown anchor %u", g->anchor);
    CHECK(g->reserved == 0, "a reserved member is %u", g->reserved);
    return FNX_OK;
}

static int32_t check_arrays(checker *c) {
    const fnx_group *g = c->g;
    const struct {
        const char *name;
        uint32_t n, most, stride, known, align, at;
    } arrays[] = {
        {"sizes", g->n_sizes, FNX_CHECK_MOST, g->size_bytes, sizeof(fnx_size), 8, g->sizes_at},
        {"values", g->n_values, FNX_CHECK_MOST, g->value_bytes, sizeof(fnx_value), 4, g->values_at},
        {"nodes", g->n_nodes, FNX_CHECK_MOST, g->node_bytes, sizeof(fnx_node), 4, g->nodes_at},
        {"scalars", g->n_scalars, FNX_CHECK_MOST, g->scalar_bytes, sizeof(fnx_scalar_slot), 4, g->scalars_at},
        {"constants", g->n_consts, FNX_CHECK_MOST, sizeof(fnx_scalar), sizeof(fnx_scalar), 8, g->consts_at},
        {"names", g->n_names, FNX_CHECK_MOST, sizeof(uint32_t), sizeof(uint32_t), 4, g->names_at},
        {"refs", g->n_refs, UINT32_MAX, sizeof(uint32_t), sizeof(uint32_t), 4, g->refs_at},
        {"attributes", g->attr_bytes, UINT32_MAX, 1, 1, 8, g->attrs_at},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const char *name = arrays[i].name;
        const uint64_t end = arrays[i].at + (uint64_t)arrays[i].n * arrays[i].stride;
        if (arrays[i].n == 0) continue;
        CHECK(arrays[i].n <= arrays[i].most, "%u %s are more than %u", arrays[i].n, name, arrays[i].most);
        CHECK(arrays[i].stride >= arrays[i].known, "%s of %u bytes each are too short", name, arrays[i].stride);
        CHECK(arrays[i].stride % arrays[i].align == 0 || arrays[i].stride == 1, "%s of %u bytes are not aligned", name,
              arrays[i].stride);
        CHECK(arrays[i].at % arrays[i].align == 0, "%s begin at %u, which is not aligned", name, arrays[i].at);
        CHECK(arrays[i].at >= g->struct_size && end <= g->total_bytes, "%u %s at %u leave the group of %u bytes",
              arrays[i].n, name, arrays[i].at, g->total_bytes);
    }
    CHECK(g->n_nodes > 0, "a group without nodes");
    CHECK(g->n_slots <= g->n_values, "%u slots for %u values", g->n_slots, g->n_values);
    CHECK(g->n_bindings <= g->n_values, "%u bindings for %u values", g->n_bindings, g->n_values);
    CHECK(g->n_strides <= g->n_values * FNX_MAX_RANK, "%u strides for %u values", g->n_strides, g->n_values);
    return FNX_OK;
}

static int32_t check_names(checker *c) {
    const fnx_group *g = c->g;
    for (uint32_t i = 0; i < g->n_names; i++) {
        uint32_t at = *FNX_GROUP_AT(uint32_t, g, g->names_at, sizeof(uint32_t), i), length = 0;
        CHECK(at >= g->struct_size && at < g->total_bytes, "name %u begins outside of the group", i);
        while (length <= MOST_NAME && at + length < g->total_bytes && ((const char *)g)[at + length] != 0) length++;
        CHECK(at + length < g->total_bytes, "name %u does not end in the group", i);
        CHECK(length > 0 && length <= MOST_NAME, "name %u is empty or has more than %u bytes", i, MOST_NAME);
    }
    return FNX_OK;
}

/* ---- sizes and values -------------------------------------------------------------------------------------------- */

static int32_t check_sizes(checker *c) {
    const fnx_group *g = c->g;
    CHECK(g->n_sizes > 0 && fnx_group_size(g, 0)->fixed == 1, "size 0 is not the fixed size 1");
    for (uint32_t i = 0; i < g->n_sizes; i++) {
        const fnx_size *s = fnx_group_size(g, i);
        CHECK(s->fixed >= -1 && s->divisor >= 1 && s->most >= 0, "size %u: fixed %lld, divisor %lld, most %lld", i,
              (long long)s->fixed, (long long)s->divisor, (long long)s->most);
        CHECK(s->fixed < 0 || (s->fixed % s->divisor == 0 && s->fixed <= s->most),
              "size %u: the fixed size %lld breaks its own promises", i, (long long)s->fixed);
    }
    CHECK(g->rank <= FNX_MAX_RANK, "the domain has rank %u", g->rank);
    CHECK(g->row_axes >> g->rank == 0, "row axes 0x%x of rank %u", g->row_axes, g->rank);
    for (uint32_t d = 0; d < g->rank; d++)
        CHECK(g->domain[d] < g->n_sizes, "axis %u of the domain names size %u of %u", d, g->domain[d], g->n_sizes);
    return FNX_OK;
}

static int32_t check_scalars(checker *c) {
    const fnx_group *g = c->g;
    for (uint32_t i = 0; i < g->n_scalars; i++) {
        const fnx_scalar_slot *s = fnx_group_scalar(g, i);
        KNOWN(s->flags == 0, "scalar %u has unknown flags 0x%x", i, s->flags);
        KNOWN(s->klass <= FNX_CLASS_MINUS_INF, "scalar %u has the unknown class %u", i, s->klass);
        CHECK(fnx_check_dtype_bytes(s->dtype), "scalar %u has dtype %u", i, s->dtype);
    }
    return FNX_OK;
}

static uint32_t dtype_align(uint16_t dtype) { /* complex numbers are pairs */
    return dtype == FNX_C64 ? 4 : dtype == FNX_C128 ? 8 : fnx_check_dtype_bytes(dtype);
}

/* Of kinds whose `index` counts something: how many there are. */
static uint32_t index_limit(const fnx_group *g, const fnx_value *v) {
    return is_stored(v) ? g->n_bindings : v->kind == FNX_VALUE_SCALAR ? g->n_scalars : g->n_consts;
}

static int32_t check_value(checker *c, uint32_t i) {
    const fnx_group *g = c->g;
    const fnx_value *v = fnx_group_value(g, i);
    const int walks = is_stored(v) || v->kind == FNX_VALUE_INDEX;
    KNOWN(v->flags == 0, "value %u has unknown flags 0x%x", i, v->flags);
    KNOWN(v->kind >= FNX_VALUE_INPUT && v->kind <= FNX_VALUE_INDEX, "value %u has the unknown kind %u", i, v->kind);
    CHECK(fnx_check_dtype_bytes(v->dtype), "value %u has dtype %u", i, v->dtype);
    CHECK(v->rank <= FNX_MAX_RANK, "value %u has rank %u", i, v->rank);
    for (uint32_t d = 0; d < v->rank; d++) {
        CHECK(v->size[d] < g->n_sizes, "value %u, axis %u names size %u of %u", i, d, v->size[d], g->n_sizes);
        CHECK(v->stride_class[d] <= FNX_STRIDE_PACKED, "value %u, axis %u has stride class %u", i, d,
              v->stride_class[d]);
        CHECK(v->stride_class[d] != FNX_STRIDE_PACKED || d + 1 < v->rank, "value %u: its last axis is packed", i);
        CHECK(v->size[d] == 0 || (v->kind != FNX_VALUE_SCALAR && v->kind != FNX_VALUE_CONST),
              "value %u is a scalar, but its axis %u is not 1", i, d);
    }
    if (v->kind == FNX_VALUE_TEMP || v->kind == FNX_VALUE_INDEX)
        CHECK(v->index == FNX_NONE, "value %u has an index %u that its kind does not have", i, v->index);
    else CHECK(v->index < index_limit(g, v), "value %u has index %u of %u", i, v->index, index_limit(g, v));
    if (is_stored(v)) {
        CHECK(v->slot < g->n_slots, "value %u is in slot %u of %u", i, v->slot, g->n_slots);
        CHECK(v->align && (v->align & (v->align - 1)) == 0 && v->align >= dtype_align(v->dtype),
              "value %u is aligned to %u bytes", i, v->align);
    }
    CHECK(!walks || v->rank == 0 || (v->first_stride <= g->n_strides && v->rank <= g->n_strides - v->first_stride),
          "value %u has strides %u and following of %u", i, v->first_stride, g->n_strides);
    CHECK(v->kind != FNX_VALUE_INDEX || v->dtype == FNX_I64, "value %u counts in dtype %u, not in i64", i, v->dtype);
    CHECK(v->kind != FNX_VALUE_SCALAR || v->dtype == fnx_group_scalar(g, v->index)->dtype,
          "value %u has dtype %u, its scalar %u", i, v->dtype, fnx_group_scalar(g, v->index)->dtype);
    return FNX_OK;
}

static int32_t check_scalar_value(checker *c) {
    const fnx_group *g = c->g;
    if (g->scalar_value == FNX_NONE) return FNX_OK;
    CHECK(g->scalar_value < g->n_values && fnx_group_value(g, g->scalar_value)->kind == FNX_VALUE_INPUT,
          "value %u, which should hold the scalars, is no input", g->scalar_value);
    return FNX_OK;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static int is_defined(const checker *c, uint32_t value) { return c->defined[value / 8] >> (value % 8) & 1; }

static int32_t check_node(checker *c, uint32_t i) {
    const fnx_group *g = c->g;
    const fnx_node *n = fnx_group_node(g, i);
    const uint64_t last_ref = (uint64_t)n->first_ref + n->n_operands + n->n_results;
    KNOWN(n->flags == 0, "node %u has unknown flags 0x%x", i, n->flags);
    CHECK(n->op < FNX_OP_EXTENSION || fnx_group_op_name(g, n), "node %u is extension op %u of %u", i,
          n->op - (unsigned)FNX_OP_EXTENSION, g->n_names);
    CHECK(last_ref <= g->n_refs, "node %u has operands up to %llu of %u", i, (unsigned long long)last_ref, g->n_refs);
    CHECK(n->n_results > 0, "node %u has no result", i);
    CHECK(n->attr_size % 8 == 0 && n->attr_offset % 8 == 0 && (uint64_t)n->attr_offset + n->attr_size <= g->attr_bytes,
          "node %u has %u attribute bytes at %u of %u", i, n->attr_size, n->attr_offset, g->attr_bytes);
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const uint32_t v = fnx_node_operand(g, n, k);
        CHECK(v < g->n_values, "node %u, operand %u is value %u of %u", i, k, v, g->n_values);
        CHECK(!is_made(fnx_group_value(g, v)) || is_defined(c, v), "node %u reads value %u before it is made", i, v);
    }
    for (uint32_t k = 0; k < n->n_results; k++) {
        const uint32_t v = fnx_node_result(g, n, k);
        CHECK(v < g->n_values, "node %u, result %u is value %u of %u", i, k, v, g->n_values);
        CHECK(is_made(fnx_group_value(g, v)), "node %u makes value %u, which is neither temporary nor output", i, v);
        CHECK(!is_defined(c, v), "node %u makes value %u, which is made already", i, v);
        c->defined[v / 8] |= (uint8_t)(1u << (v % 8));
    }
    return FNX_OK;
}

/* ---- the ops of nodes -------------------------------------------------------------------------------------------- */

static int fits_letter(char letter, uint16_t dtype, uint16_t *common) {
    switch (letter) {
    case 'B': return dtype == FNX_BOOL;
    case 'L': return dtype == FNX_I64;
    case 'S': return dtype == FNX_U64;
    case 'X': return dtype == FNX_I32 || dtype == FNX_I64;
    case 'W':
    case 'w': return dtype == FNX_U8 || dtype == FNX_I32;
    case 'T':
        if (*common == 0) *common = dtype;
        return dtype == *common;
    default: return 1;
    }
}

/* Numbers and dtypes of operands and results. */
static int32_t check_signature(checker *c, uint32_t i, const fnx_node *n, const char *letter) {
    const fnx_group *g = c->g;
    uint32_t k = 0;
    uint16_t common = 0;
    for (; *letter != '>'; letter++, k++) {
        CHECK(k < n->n_operands, "node %u: op %u has more than %u operands", i, n->op, n->n_operands);
        const uint32_t v = fnx_node_operand(g, n, k);
        CHECK(fits_letter(*letter, fnx_group_value(g, v)->dtype, &common),
              "node %u: value %u has a dtype that op %u does not take", i, v, n->op);
    }
    CHECK(k == n->n_operands, "node %u: op %u has %u operands, not %u", i, n->op, k, n->n_operands);
    for (letter++, k = 0; *letter; letter++, k++) {
        if (k == n->n_results && *letter == 'w') return FNX_OK;
        CHECK(k < n->n_results, "node %u: op %u has more than %u results", i, n->op, n->n_results);
        const uint32_t v = fnx_node_result(g, n, k);
        CHECK(fits_letter(*letter, fnx_group_value(g, v)->dtype, &common),
              "node %u: value %u has a dtype that op %u does not make", i, v, n->op);
    }
    CHECK(k == n->n_results, "node %u: op %u has %u results, not %u", i, n->op, k, n->n_results);
    return FNX_OK;
}

/* Every axis of x is that of y, or 1. A rank of 0 is all ones. */
static int broadcasts_to(const fnx_value *x, const fnx_value *y) {
    if (x->rank == 0) return 1;
    if (x->rank != y->rank) return 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->size[d] != 0 && x->size[d] != y->size[d]) return 0;
    return 1;
}

static int32_t check_aligned(checker *c, uint32_t i, const fnx_node *n) {
    const fnx_group *g = c->g;
    const fnx_value *y = fnx_group_value(g, fnx_node_result(g, n, 0));
    for (uint32_t k = 0; k < n->n_operands; k++) {
        const uint32_t v = fnx_node_operand(g, n, k);
        CHECK(broadcasts_to(fnx_group_value(g, v), y), "node %u: value %u does not broadcast to the result", i, v);
    }
    return FNX_OK;
}

static int32_t check_reduction(checker *c, uint32_t i, const fnx_node *n) {
    const fnx_group *g = c->g;
    const fnx_value *x = fnx_group_value(g, fnx_node_operand(g, n, 0)),
                    *y = fnx_group_value(g, fnx_node_result(g, n, 0));
    fnx_attr_reduce attr;
    KNOWN(fnx_node_attrs(g, n, &attr, sizeof attr) == FNX_OK && attr.reserved == 0, "node %u: unknown attributes", i);
    CHECK(x->rank == y->rank, "node %u: a reduction of rank %u to %u", i, x->rank, y->rank);
    CHECK(attr.axes >> x->rank == 0, "node %u: a reduction over axes 0x%x of rank %u", i, attr.axes, x->rank);
    CHECK(n->op != FNX_OP_argmax || (attr.axes && (attr.axes & (attr.axes - 1)) == 0), "node %u: argmax over axes 0x%x",
          i, attr.axes);
    for (uint32_t d = 0; d < x->rank; d++)
        CHECK(y->size[d] == ((attr.axes >> d) & 1 ? 0 : x->size[d]), "node %u: axis %u of the result has size %u", i, d,
              y->size[d]);
    return FNX_OK;
}

static int32_t check_window(checker *c, uint32_t i, const fnx_node *n, const op_form *form) {
    window_form w;
    int64_t places = 1;
    KNOWN(fnx_check_window(c->g, n, form, &w) == FNX_OK, "node %u: unknown attributes", i);
    KNOWN((w.flags & ~(uint32_t)FNX_POOL_EXCLUDE_PAD) == 0, "node %u: unknown flags 0x%x of pooling", i, w.flags);
    CHECK(w.spatial >= 1 && w.spatial <= 3, "node %u: a window over %u axes", i, w.spatial);
    CHECK(w.groups >= 1 && w.groups <= INT32_MAX, "node %u: a convolution of %u groups", i, w.groups);
    CHECK(w.x->rank == w.spatial + 2 && w.y->rank == w.spatial + 2 && (!w.w || w.w->rank == w.spatial + 2) &&
              (!w.where || w.where->rank == w.spatial + 2),
          "node %u: a window over %u axes needs operands of rank %u", i, w.spatial, w.spatial + 2);
    for (uint32_t d = 0; d < w.spatial; d++) {
        CHECK(w.stride[d] >= 1 && w.dilation[d] >= 1 && w.low[d] >= 0 && w.high[d] >= 0,
              "node %u: stride %d, dilation %d, padding %d and %d", i, w.stride[d], w.dilation[d], w.low[d], w.high[d]);
        CHECK(w.w || w.size[d] >= 1, "node %u: a window of %d", i, w.size[d]);
        CHECK(w.w || (places *= w.size[d]) <= INT32_MAX, "node %u: a window too large", i);
    }
    CHECK(!w.where || w.where->dtype == (places <= 256 ? FNX_U8 : FNX_I32),
          "node %u: places of dtype %u in a window of %lld", i, w.where->dtype, (long long)places);
    return FNX_OK;
}

/* matmul, gather, scatter_add, softmax: only ranks and attributes; fnx_launch_check compares their sizes. */
static int32_t check_ranks(checker *c, uint32_t i, const fnx_node *n, uint32_t least) {
    const fnx_group *g = c->g;
    const uint32_t rank = fnx_group_value(g, fnx_node_result(g, n, 0))->rank;
    CHECK(rank >= least, "node %u: op %u needs rank %u", i, n->op, least);
    for (uint32_t k = 0; k < n->n_operands; k++)
        CHECK(fnx_group_value(g, fnx_node_operand(g, n, k))->rank == rank, "node %u: operand %u has not rank %u", i, k,
              rank);
    return FNX_OK;
}

static int32_t check_axis(checker *c, uint32_t i, const fnx_node *n) {
    const uint32_t rank = fnx_group_value(c->g, fnx_node_result(c->g, n, 0))->rank;
    fnx_attr_axis attr;
    KNOWN(fnx_node_attrs(c->g, n, &attr, sizeof attr) == FNX_OK && attr.reserved == 0, "node %u: unknown attributes",
          i);
    CHECK(attr.axis < rank, "node %u: axis %u of rank %u", i, attr.axis, rank);
    return FNX_OK;
}

static int32_t check_op(checker *c, uint32_t i) {
    const fnx_node *n = fnx_group_node(c->g, i);
    const op_form *form = fnx_check_op_form(n->op);
    fnx_attr_matmul matmul;
    if (!form) return FNX_OK; /* a plugin knows it or declines it */
    TRY(check_signature(c, i, n, form->signature));
    switch (form->shapes) {
    case FORM_REDUCE: return check_reduction(c, i, n);
    case FORM_CONV:
    case FORM_POOL: return check_window(c, i, n, form);
    case FORM_GATHER:
    case FORM_SCATTER: TRY(check_ranks(c, i, n, 1)); return check_axis(c, i, n);
    case FORM_MATMUL:
        KNOWN(fnx_node_attrs(c->g, n, &matmul, sizeof matmul) == FNX_OK && matmul.precision <= 1 &&
                  matmul.reserved == 0,
              "node %u: unknown attributes", i);
        return check_ranks(c, i, n, 2);
    default:
        TRY(check_aligned(c, i, n));
        if (fnx_op_attr_bytes(n->op)) return check_axis(c, i, n); /* softmax */
        KNOWN(fnx_node_attrs(c->g, n, &matmul, 0) == FNX_OK, "node %u: unknown attributes", i);
        return FNX_OK;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The anchors that name a node name one of their ops. */
static int32_t check_anchor_node(checker *c) {
    static const uint16_t shapes[] = {
        [FNX_ANCHOR_MATMUL] = FORM_MATMUL,   [FNX_ANCHOR_CONV] = FORM_CONV, [FNX_ANCHOR_GATHER] = FORM_GATHER,
        [FNX_ANCHOR_SCATTER] = FORM_SCATTER, [FNX_ANCHOR_OPAQUE] = 0, /* any op */
    };
    const fnx_group *g = c->g;
    CHECK(g->anchor_node < g->n_nodes, "anchor %u without its node", g->anchor);
    const op_form *form = fnx_check_op_form(fnx_group_node(g, g->anchor_node)->op);
    CHECK(!form || shapes[g->anchor] == 0 || form->shapes == shapes[g->anchor], "node %u is no anchor %u",
          g->anchor_node, g->anchor);
    return FNX_OK;
}

/* Where no anchor reads operands in its own way, every value iterates with the domain; and the size of what a reduction
 * runs over is the domain's, so that it does not matter whether a backend looks at the operand or at the domain. */
static int32_t check_domain(checker *c) {
    const fnx_group *g = c->g;
    fnx_value domain = {.rank = (uint8_t)g->rank};
    fnx_attr_reduce attr;
    CHECK(g->anchor_node == FNX_NONE || g->anchor_node < g->n_nodes, "anchor node %u of %u", g->anchor_node,
          g->n_nodes);
    if (g->anchor > FNX_ANCHOR_ROWS) return check_anchor_node(c);
    for (uint32_t d = 0; d < g->rank; d++) domain.size[d] = g->domain[d];
    for (uint32_t i = 0; i < g->n_values; i++)
        CHECK(i == g->scalar_value || broadcasts_to(fnx_group_value(g, i), &domain), "value %u does not fit the domain",
              i);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const fnx_node *n = fnx_group_node(g, i);
        const op_form *form = fnx_check_op_form(n->op);
        if (!form || form->shapes == FORM_ALIGNED) continue;
        CHECK(form->shapes == FORM_REDUCE && g->anchor != FNX_ANCHOR_ELEMENTWISE,
              "node %u does not belong in a group with anchor %u", i, g->anchor);
        const fnx_value *x = fnx_group_value(g, fnx_node_operand(g, n, 0));
        (void)fnx_node_attrs(g, n, &attr, sizeof attr);
        CHECK((attr.axes & ~g->row_axes) == 0, "node %u reduces axes 0x%x, but rows are 0x%x", i, attr.axes,
              g->row_axes);
        for (uint32_t d = 0; d < x->rank; d++)
            CHECK(!((attr.axes >> d) & 1) || x->size[d] == g->domain[d],
                  "node %u reduces axis %u, which is not the domain's", i, d);
    }
    return FNX_OK;
}

/* One binding is one slot; an output in the slot of an input has its dtype and sizes. */
static int32_t check_memory(checker *c) {
    const fnx_group *g = c->g;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const fnx_value *a = fnx_group_value(g, i);
        if (!is_stored(a)) continue;
        for (uint32_t k = 0; k < i; k++) {
            const fnx_value *b = fnx_group_value(g, k);
            if (!is_stored(b)) continue;
            CHECK(a->index != b->index || a->slot == b->slot, "values %u and %u share binding %u, but not the slot", k,
                  i, a->index);
            if (a->slot != b->slot || a->kind == b->kind) continue;
            CHECK(a->dtype == b->dtype && a->rank == b->rank, "values %u and %u are one in place, but of two types", k,
                  i);
            for (uint32_t d = 0; d < a->rank; d++)
                CHECK(a->size[d] == b->size[d], "values %u and %u are one in place, but axis %u differs", k, i, d);
        }
    }
    return FNX_OK;
}

int32_t fnx_group_check(const void *bytes, size_t size, char *why, size_t why_size) {
    checker checks = {.g = bytes, .why = why, .why_size = why_size}, *c = &checks;
    TRY(check_header(c, size));
    TRY(check_arrays(c));
    TRY(check_names(c));
    TRY(check_sizes(c));
    TRY(check_scalars(c));
    for (uint32_t i = 0; i < c->g->n_values; i++) TRY(check_value(c, i));
    TRY(check_scalar_value(c));
    for (uint32_t i = 0; i < c->g->n_nodes; i++) TRY(check_node(c, i));
    for (uint32_t i = 0; i < c->g->n_nodes; i++) TRY(check_op(c, i));
    for (uint32_t i = 0; i < c->g->n_values; i++)
        CHECK(!is_made(fnx_group_value(c->g, i)) || is_defined(c, i), "no node makes value %u", i);
    TRY(check_domain(c));
    return check_memory(c);
}
