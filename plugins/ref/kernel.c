/* A kernel record: one op without prepare, here the matrix product of floats. It does what the group would do; it is
 * here to show how a kernel says what it takes, and so that hosts have one to call. */
#include "ref.h"

#define FLOATS (UINT64_C(1) << FNX_F32 | UINT64_C(1) << FNX_F64)

static int32_t supports(void *device, const fnx_group *one, const fnx_launch *shapes, fnx_decline *why) {
    const fnx_node *n = fnx_group_node(one, 0);
    const fnx_value *a = fnx_group_value(one, fnx_node_operand(one, n, 0));
    const fnx_value *b = fnx_group_value(one, fnx_node_operand(one, n, 1));
    const fnx_value *y = fnx_group_value(one, fnx_node_result(one, n, 0));
    const char *text;
    ref_call c;
    (void)device, (void)shapes; /* all sizes and strides are fine */
    if (one->features || n->flags || a->flags || b->flags || y->flags)
        return ref_decline(why, FNX_DECLINE_FEATURE, 0, FNX_NONE, "a feature newer than this plugin");
    if (!ref_read_attrs(one, n, &c, &text)) return ref_decline(why, FNX_DECLINE_ATTR, 0, FNX_NONE, text);
    if (a->kind != FNX_VALUE_INPUT || b->kind != FNX_VALUE_INPUT)
        return ref_decline(why, FNX_DECLINE_LAYOUT, 0, FNX_NONE, "this kernel reads both operands from memory");
    if (a->slot == y->slot || b->slot == y->slot)
        return ref_decline(why, FNX_DECLINE_LAYOUT, 0, FNX_NONE, "this kernel does not work in place");
    return FNX_OK;
}

static int32_t launch(void *device, void *queue, const fnx_group *one, const fnx_launch *launch) {
    const fnx_node *n = fnx_group_node(one, 0);
    ref_call c = {.queue = queue, .site = launch->site, .op = n->op, .n_operands = 2, .n_results = 1};
    (void)device;
    for (uint32_t k = 0; k < 2; k++) c.in[k] = ref_view_of(fnx_group_value(one, fnx_node_operand(one, n, k)), launch);
    c.out[0] = ref_view_of(fnx_group_value(one, fnx_node_result(one, n, 0)), launch);
    ref_matmul(&c);
    return FNX_OK;
}

const fnx_kernel ref_matmul_kernel = {
    .struct_size = sizeof ref_matmul_kernel,
    .op = FNX_OP_matmul,
    .flags = FNX_KERNEL_STRIDED | FNX_KERNEL_DETERMINISTIC,
    .dtypes_in = FLOATS,
    .dtypes_out = FLOATS,
    .supports = supports,
    .launch = launch,
};
