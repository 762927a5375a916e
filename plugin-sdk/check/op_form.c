/* See op_form.h. */
#include "op_form.h"

#include <string.h>

static const op_form forms[] = {
    {FNX_OP_add, FORM_ALIGNED, "TT>T"},        {FNX_OP_sub, FORM_ALIGNED, "TT>T"},
    {FNX_OP_mul, FORM_ALIGNED, "TT>T"},        {FNX_OP_div, FORM_ALIGNED, "TT>T"},
    {FNX_OP_pow, FORM_ALIGNED, "TT>T"},        {FNX_OP_maximum, FORM_ALIGNED, "TT>T"},
    {FNX_OP_minimum, FORM_ALIGNED, "TT>T"},    {FNX_OP_neg, FORM_ALIGNED, "T>T"},
    {FNX_OP_abs, FORM_ALIGNED, "T>T"},         {FNX_OP_exp, FORM_ALIGNED, "T>T"},
    {FNX_OP_log, FORM_ALIGNED, "T>T"},         {FNX_OP_sqrt, FORM_ALIGNED, "T>T"},
    {FNX_OP_tanh, FORM_ALIGNED, "T>T"},        {FNX_OP_sigmoid, FORM_ALIGNED, "T>T"},
    {FNX_OP_erf, FORM_ALIGNED, "T>T"},         {FNX_OP_relu, FORM_ALIGNED, "T>T"},
    {FNX_OP_equal, FORM_ALIGNED, "TT>B"},      {FNX_OP_not_equal, FORM_ALIGNED, "TT>B"},
    {FNX_OP_less, FORM_ALIGNED, "TT>B"},       {FNX_OP_less_equal, FORM_ALIGNED, "TT>B"},
    {FNX_OP_greater, FORM_ALIGNED, "TT>B"},    {FNX_OP_greater_equal, FORM_ALIGNED, "TT>B"},
    {FNX_OP_where, FORM_ALIGNED, "BTT>T"},     {FNX_OP_cast, FORM_ALIGNED, "U>U"},
    {FNX_OP_copy, FORM_ALIGNED, "T>T"},        {FNX_OP_uniform, FORM_ALIGNED, "SSL>T"},
    {FNX_OP_normal, FORM_ALIGNED, "SSL>T"},    {FNX_OP_sum, FORM_REDUCE, "T>T"},
    {FNX_OP_max, FORM_REDUCE, "T>T"},          {FNX_OP_min, FORM_REDUCE, "T>T"},
    {FNX_OP_argmax, FORM_REDUCE, "T>L"},       {FNX_OP_matmul, FORM_MATMUL, "TT>T"},
    {FNX_OP_conv, FORM_CONV, "TT>T"},          {FNX_OP_conv_grad_x, FORM_CONV, "TT>T"},
    {FNX_OP_conv_grad_w, FORM_CONV, "TT>T"},   {FNX_OP_max_pool, FORM_POOL, "T>Tw"},
    {FNX_OP_max_pool_grad, FORM_POOL, "TW>T"}, {FNX_OP_max_pool_pick, FORM_POOL, "TW>T"},
    {FNX_OP_avg_pool, FORM_POOL, "T>T"},       {FNX_OP_avg_pool_grad, FORM_POOL, "T>T"},
    {FNX_OP_gather, FORM_GATHER, "TX>T"},      {FNX_OP_scatter_add, FORM_SCATTER, "TXT>T"},
    {FNX_OP_gelu, FORM_ALIGNED, "T>T"},        {FNX_OP_softmax, FORM_ALIGNED, "T>T"},
    {FNX_OP_log_softmax, FORM_ALIGNED, "T>T"},
};

const op_form *fnx_check_op_form(uint16_t op) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].op == op) return &forms[i];
    return NULL;
}

uint32_t fnx_check_dtype_bytes(uint16_t dtype) {
    static const uint8_t bytes[] = {
        [FNX_BOOL] = 1, [FNX_I8] = 1,  [FNX_I16] = 2, [FNX_I32] = 4, [FNX_I64] = 8,
        [FNX_U8] = 1,   [FNX_U16] = 2, [FNX_U32] = 4, [FNX_U64] = 8, [FNX_F16] = 2,
        [FNX_BF16] = 2, [FNX_F32] = 4, [FNX_F64] = 8, [FNX_C64] = 8, [FNX_C128] = 16,
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0;
}

int32_t fnx_check_window(const fnx_group *g, const fnx_node *n, const op_form *form, window_form *out) {
    const fnx_value *first = fnx_group_value(g, fnx_node_operand(g, n, 0));
    const fnx_value *second = n->n_operands > 1 ? fnx_group_value(g, fnx_node_operand(g, n, 1)) : NULL;
    const fnx_value *result = fnx_group_value(g, fnx_node_result(g, n, 0));
    fnx_attr_conv conv;
    fnx_attr_pool pool;
    *out = (window_form){.x = first, .y = result, .groups = 1, .dilation = {1, 1, 1}};
    if (form->shapes == FORM_CONV) {
        if (fnx_node_attrs(g, n, &conv, sizeof conv)) return FNX_E_UNSUPPORTED;
        out->x = n->op == FNX_OP_conv_grad_x ? result : first;
        out->w = n->op == FNX_OP_conv_grad_w ? result : second;
        out->y = n->op == FNX_OP_conv ? result : n->op == FNX_OP_conv_grad_x ? first : second;
        out->spatial = conv.spatial;
        out->groups = conv.groups;
        memcpy(out->stride, conv.stride, sizeof out->stride);
        memcpy(out->dilation, conv.dilation, sizeof out->dilation);
        memcpy(out->low, conv.pad_low, sizeof out->low);
        memcpy(out->high, conv.pad_high, sizeof out->high);
        return FNX_OK;
    }
    if (fnx_node_attrs(g, n, &pool, sizeof pool)) return FNX_E_UNSUPPORTED;
    if (n->op == FNX_OP_max_pool_grad || n->op == FNX_OP_avg_pool_grad) out->x = result, out->y = first;
    if (n->op == FNX_OP_max_pool_grad || n->op == FNX_OP_max_pool_pick) out->where = second;
    if (n->op == FNX_OP_max_pool && n->n_results > 1) out->where = fnx_group_value(g, fnx_node_result(g, n, 1));
    out->spatial = pool.spatial;
    out->flags = pool.flags;
    memcpy(out->size, pool.window, sizeof out->size);
    memcpy(out->stride, pool.stride, sizeof out->stride);
    memcpy(out->low, pool.pad_low, sizeof out->low);
    memcpy(out->high, pool.pad_high, sizeof out->high);
    return FNX_OK;
}
