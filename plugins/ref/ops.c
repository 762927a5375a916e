/* The table of ops: a row each, and what follows from it. To teach this backend an op, write its function and add a
 * row. */
#include "ref.h"

#include <string.h>

#define MASK(dtype) (UINT64_C(1) << (dtype))
#define FLOATS (MASK(FNX_F32) | MASK(FNX_F64))
#define NUMBERS (FLOATS | MASK(FNX_I32) | MASK(FNX_I64) | MASK(FNX_U8))
#define ANY (NUMBERS | MASK(FNX_BOOL))

enum { MEMBER = 1, BEFORE = 2, AFTER = 4, ANCHOR = 8, ANYWHERE = MEMBER | BEFORE | AFTER };

const ref_op ref_ops[] = {
    {FNX_OP_add, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_sub, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_mul, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_div, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_pow, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_maximum, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_minimum, ANYWHERE, NUMBERS, "TT>T", ref_elementwise},
    {FNX_OP_neg, ANYWHERE, NUMBERS, "T>T", ref_elementwise},
    {FNX_OP_abs, ANYWHERE, NUMBERS, "T>T", ref_elementwise},
    {FNX_OP_exp, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_log, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_sqrt, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_tanh, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_sigmoid, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_erf, ANYWHERE, FLOATS, "T>T", ref_elementwise},
    {FNX_OP_relu, ANYWHERE, NUMBERS, "T>T", ref_elementwise},
    {FNX_OP_equal, ANYWHERE, ANY, "TT>B", ref_elementwise},
    {FNX_OP_not_equal, ANYWHERE, ANY, "TT>B", ref_elementwise},
    {FNX_OP_less, ANYWHERE, NUMBERS, "TT>B", ref_elementwise},
    {FNX_OP_less_equal, ANYWHERE, NUMBERS, "TT>B", ref_elementwise},
    {FNX_OP_greater, ANYWHERE, NUMBERS, "TT>B", ref_elementwise},
    {FNX_OP_greater_equal, ANYWHERE, NUMBERS, "TT>B", ref_elementwise},
    {FNX_OP_where, ANYWHERE, ANY, "BTT>T", ref_elementwise},
    {FNX_OP_cast, ANYWHERE, ANY, "U>U", ref_elementwise},
    {FNX_OP_copy, ANYWHERE, ANY, "T>T", ref_elementwise},
    {FNX_OP_uniform, ANYWHERE, FLOATS, "SSL>T", ref_elementwise},
    {FNX_OP_normal, ANYWHERE, FLOATS, "SSL>T", ref_elementwise},
    {FNX_OP_sum, MEMBER | ANCHOR, NUMBERS, "T>T", ref_reduce},
    {FNX_OP_max, MEMBER | ANCHOR, NUMBERS, "T>T", ref_reduce},
    {FNX_OP_min, MEMBER | ANCHOR, NUMBERS, "T>T", ref_reduce},
    {FNX_OP_argmax, MEMBER | ANCHOR, NUMBERS, "T>L", ref_argmax},
    {FNX_OP_matmul, ANCHOR, NUMBERS, "TT>T", ref_matmul},
    {FNX_OP_conv, ANCHOR, FLOATS, "TT>T", ref_conv},
    {FNX_OP_conv_grad_x, ANCHOR, FLOATS, "TT>T", ref_conv_grad_x},
    {FNX_OP_conv_grad_w, ANCHOR, FLOATS, "TT>T", ref_conv_grad_w},
    {FNX_OP_max_pool, ANCHOR, NUMBERS, "T>Tw", ref_max_pool},
    {FNX_OP_max_pool_grad, ANCHOR, NUMBERS, "TW>T", ref_max_pool_grad},
    {FNX_OP_max_pool_pick, ANCHOR, NUMBERS, "TW>T", ref_max_pool_pick},
    {FNX_OP_avg_pool, ANCHOR, FLOATS, "T>T", ref_avg_pool},
    {FNX_OP_avg_pool_grad, ANCHOR, FLOATS, "T>T", ref_avg_pool_grad},
    {FNX_OP_gather, ANCHOR, ANY, "TX>T", ref_gather},
    {FNX_OP_scatter_add, ANCHOR, NUMBERS, "TXT>T", ref_scatter_add},
};

const uint32_t ref_n_ops = sizeof ref_ops / sizeof *ref_ops;
_Static_assert(sizeof ref_ops / sizeof *ref_ops <= REF_MAX_OPS, "make REF_MAX_OPS larger");

const ref_op *ref_find_op(uint16_t op) {
    for (uint32_t i = 0; i < ref_n_ops; i++)
        if (ref_ops[i].op == op) return &ref_ops[i];
    return NULL;
}

uint64_t ref_letter_dtypes(const ref_op *row, char letter) {
    switch (letter) {
    case 'B': return MASK(FNX_BOOL);
    case 'L': return MASK(FNX_I64);
    case 'S': return MASK(FNX_U64);
    case 'X': return MASK(FNX_I32) | MASK(FNX_I64);
    case 'W':
    case 'w': return MASK(FNX_U8) | MASK(FNX_I32);
    default: return row->dtypes;
    }
}

void ref_op_capabilities(fnx_op_caps *caps) {
    for (uint32_t i = 0; i < ref_n_ops; i++) {
        const ref_op *row = &ref_ops[i];
        const char *arrow = strchr(row->signature, '>');
        caps[i] = (fnx_op_caps){.op = row->op, .places = row->places};
        for (const char *s = row->signature; *s; s++) {
            if (s == arrow) continue;
            *(s < arrow ? &caps[i].dtypes_in : &caps[i].dtypes_out) |= ref_letter_dtypes(row, *s);
        }
    }
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const char *check_window(uint32_t spatial, const int32_t *stride, const int32_t *other, const int32_t *low,
                                const int32_t *high) {
    if (spatial < 1 || spatial > 3) return "ref runs windows over 1, 2 or 3 axes";
    for (uint32_t d = 0; d < spatial; d++)
        if (stride[d] < 1 || other[d] < 1 || low[d] < 0 || high[d] < 0) return "a stride, size or padding out of range";
    return NULL;
}

static const char *check_attrs(uint16_t op, const ref_call *c) {
    switch (op) {
    case FNX_OP_sum:
    case FNX_OP_max:
    case FNX_OP_min:
        if (c->attr.reduce.reserved) return "unknown attribute of a reduction";
        return c->attr.reduce.axes >> FNX_MAX_RANK ? "no such axis" : NULL;
    case FNX_OP_argmax:
        if (c->attr.reduce.reserved) return "unknown attribute of a reduction";
        return __builtin_popcount(c->attr.reduce.axes) != 1 ? "argmax runs over exactly one axis" : NULL;
    case FNX_OP_gather:
    case FNX_OP_scatter_add:
        if (c->attr.axis.reserved) return "unknown attribute";
        return c->attr.axis.axis >= FNX_MAX_RANK ? "no such axis" : NULL;
    case FNX_OP_matmul: /* a precision allows, it does not demand */
        return c->attr.matmul.reserved || c->attr.matmul.precision > 1 ? "unknown attribute of matmul" : NULL;
    case FNX_OP_conv:
    case FNX_OP_conv_grad_x:
    case FNX_OP_conv_grad_w:
        if (c->attr.conv.groups < 1) return "conv needs at least one group";
        return check_window(c->attr.conv.spatial, c->attr.conv.stride, c->attr.conv.dilation, c->attr.conv.pad_low,
                            c->attr.conv.pad_high);
    case FNX_OP_max_pool:
    case FNX_OP_max_pool_grad:
    case FNX_OP_max_pool_pick:
    case FNX_OP_avg_pool:
    case FNX_OP_avg_pool_grad:
        if (c->attr.pool.flags & ~(uint32_t)FNX_POOL_EXCLUDE_PAD) return "unknown flag of pooling";
        return check_window(c->attr.pool.spatial, c->attr.pool.stride, c->attr.pool.window, c->attr.pool.pad_low,
                            c->attr.pool.pad_high);
    default: return NULL;
    }
}

bool ref_read_attrs(const fnx_group *g, const fnx_node *n, ref_call *c, const char **text) {
    memset(&c->attr, 0, sizeof c->attr);
    *text = "an attribute newer than this plugin";
    if (fnx_node_attrs(g, n, &c->attr, fnx_op_attr_bytes(n->op))) return false;
    *text = check_attrs(n->op, c);
    return *text == NULL;
}
