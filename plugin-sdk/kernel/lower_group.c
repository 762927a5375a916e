/* Which groups the kernel compiler takes, and which schedule each goes to. */
#include "lower.h"

#include <string.h>

#define MASK(dtype) (UINT64_C(1) << (dtype))
#define FLOATS (MASK(FNX_F32) | MASK(FNX_F64))
#define NUMBERS (FLOATS | MASK(FNX_I32) | MASK(FNX_I64) | MASK(FNX_U8))
#define ANY (NUMBERS | MASK(FNX_BOOL))

enum { MEMBER = 1, BEFORE = 2, AFTER = 4, ANCHOR = 8, ANYWHERE = MEMBER | BEFORE | AFTER };

static const fnx_op_caps ops[] = {
    {FNX_OP_add, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_sub, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_mul, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_div, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_pow, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_maximum, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_minimum, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_neg, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_abs, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_exp, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_log, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_sqrt, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_tanh, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_sigmoid, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_erf, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_relu, ANYWHERE, 0, NUMBERS, NUMBERS},
    {FNX_OP_equal, ANYWHERE, 0, ANY, MASK(FNX_BOOL)},
    {FNX_OP_not_equal, ANYWHERE, 0, ANY, MASK(FNX_BOOL)},
    {FNX_OP_less, ANYWHERE, 0, NUMBERS, MASK(FNX_BOOL)},
    {FNX_OP_less_equal, ANYWHERE, 0, NUMBERS, MASK(FNX_BOOL)},
    {FNX_OP_greater, ANYWHERE, 0, NUMBERS, MASK(FNX_BOOL)},
    {FNX_OP_greater_equal, ANYWHERE, 0, NUMBERS, MASK(FNX_BOOL)},
    {FNX_OP_where, ANYWHERE, 0, ANY, ANY},
    {FNX_OP_cast, ANYWHERE, 0, ANY, ANY},
    {FNX_OP_copy, ANYWHERE, 0, ANY, ANY},
    {FNX_OP_uniform, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_normal, ANYWHERE, 0, FLOATS, FLOATS},
    {FNX_OP_sum, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_max, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_min, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_argmax, ANCHOR, 0, NUMBERS, MASK(FNX_I64)},
    {FNX_OP_matmul, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_conv, ANCHOR, 0, FLOATS, FLOATS},
    {FNX_OP_conv_grad_x, ANCHOR, 0, FLOATS, FLOATS},
    {FNX_OP_conv_grad_w, ANCHOR, 0, FLOATS, FLOATS},
    {FNX_OP_max_pool, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_max_pool_grad, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_max_pool_pick, ANCHOR, 0, NUMBERS, NUMBERS},
    {FNX_OP_avg_pool, ANCHOR, 0, FLOATS, FLOATS},
    {FNX_OP_avg_pool_grad, ANCHOR, 0, FLOATS, FLOATS},
    {FNX_OP_gather, ANCHOR, 0, ANY, ANY},
    {FNX_OP_scatter_add, ANCHOR, 0, NUMBERS, NUMBERS},
};

int32_t lower_capabilities(fnx_group_caps *out) {
    out->n_ops = sizeof ops / sizeof *ops, out->op_bytes = sizeof *ops, out->ops = ops;
    return FNX_OK;
}

static int32_t no(fnx_decline *why, uint32_t reason, uint32_t node, uint32_t value, const char *text) {
    lowering l = {.why = why};
    return lower_decline(&l, reason, node, value, text);
}

static int32_t check_value(const fnx_codegen_device *device, const fnx_group *g, uint32_t i, fnx_decline *why) {
    const fnx_value *v = fnx_group_value(g, i);
    if (v->flags) return no(why, FNX_DECLINE_FEATURE, FNX_NONE, i, "an unknown flag of a value");
    if (v->kind < FNX_VALUE_INPUT || v->kind > FNX_VALUE_INDEX)
        return no(why, FNX_DECLINE_FEATURE, FNX_NONE, i, "an unknown kind of value");
    if (lower_register(v->dtype) == KIR_VOID)
        return no(why, FNX_DECLINE_DTYPE, FNX_NONE, i, "a dtype that the kernel compiler lacks");
    if (v->dtype == FNX_F64 && !(device->features & FNX_CODEGEN_F64))
        return no(why, FNX_DECLINE_DTYPE, FNX_NONE, i, "the device has no f64");
    if ((v->dtype == FNX_U8 || v->dtype == FNX_BOOL) && !(device->features & FNX_CODEGEN_U8))
        return no(why, FNX_DECLINE_DTYPE, FNX_NONE, i, "the device has no 8-bit memory");
    if (g->anchor == FNX_ANCHOR_ELEMENTWISE && v->kind == FNX_VALUE_OUTPUT)
        for (uint32_t d = 0; d < g->rank; d++)
            if (v->rank != g->rank || v->size[d] != g->domain[d])
                return no(why, FNX_DECLINE_LAYOUT, FNX_NONE, i, "a result smaller than the domain");
    return FNX_OK;
}

static int32_t check_node(const fnx_group *g, uint32_t i, fnx_decline *why) {
    const fnx_node *n = fnx_group_node(g, i);
    const fnx_op_caps *row = NULL;
    if (n->flags) return no(why, FNX_DECLINE_FEATURE, i, FNX_NONE, "an unknown flag of a node");
    for (size_t k = 0; k < sizeof ops / sizeof *ops && !row; k++)
        if (ops[k].op == n->op) row = &ops[k];
    if (!row) return no(why, FNX_DECLINE_OP, i, FNX_NONE, "an op that the kernel compiler does not know");
    bool elementwise = lower_is_elementwise(n->op);
    if (elementwise != (g->anchor == FNX_ANCHOR_ELEMENTWISE) || (!elementwise && g->n_nodes > 1))
        return no(why, FNX_DECLINE_PLACE, i, FNX_NONE, "an op alone, or elementwise ones");
    uint16_t in =
        fnx_group_value(g, n->n_operands ? fnx_node_operand(g, n, n->op == FNX_OP_where) : fnx_node_result(g, n, 0))
            ->dtype;
    if (n->op != FNX_OP_uniform && n->op != FNX_OP_normal && !(row->dtypes_in >> in & 1))
        return no(why, FNX_DECLINE_DTYPE, i, FNX_NONE, "a dtype that this op does not take");
    return FNX_OK;
}

int32_t lower_check(const fnx_codegen_device *device, const fnx_group *g, fnx_decline *why) {
    if (g->features)
        return no(why, FNX_DECLINE_FEATURE, FNX_NONE, FNX_NONE, "a feature that the kernel compiler does not know");
    if (g->n_values > LOWER_MAX_VALUES) return no(why, FNX_DECLINE_LIMIT, FNX_NONE, FNX_NONE, "more than 256 values");
    if (g->scalar_value != FNX_NONE)
        return no(why, FNX_DECLINE_FEATURE, FNX_NONE, FNX_NONE, "scalars in device memory");
    for (uint32_t i = 0; i < g->n_values; i++)
        if (check_value(device, g, i, why)) return FNX_E_DECLINED;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (check_node(g, i, why)) return FNX_E_DECLINED;
    return FNX_OK;
}

int32_t lower_group_kernel(lowering *l, int number) {
    switch (fnx_group_node(l->g, 0)->op) {
    case FNX_OP_sum:
    case FNX_OP_max:
    case FNX_OP_min:
    case FNX_OP_argmax: return lower_reduce(l, number == 1);
    case FNX_OP_matmul: return lower_matmul(l);
    case FNX_OP_conv:
    case FNX_OP_conv_grad_x:
    case FNX_OP_conv_grad_w: return lower_conv(l);
    case FNX_OP_max_pool:
    case FNX_OP_max_pool_grad:
    case FNX_OP_max_pool_pick:
    case FNX_OP_avg_pool:
    case FNX_OP_avg_pool_grad: return lower_pool(l);
    case FNX_OP_gather: return lower_gather(l);
    case FNX_OP_scatter_add: return lower_scatter(l);
    default: return lower_elementwise(l);
    }
}
