/* fornax.layout/0: where a kernel is faster with channels last. All kernels take and give any strides; wishes are for
 * arrays of images, where the vectors of pooling and oneDNN's code run over channels. */
#include "kernels/kernel.h"

enum { FEW_CHANNELS = 3 }; /* of a first layer: not worth a copy */

static fnx_layout channels_last(const cpu_view *v) {
    fnx_layout l = {.kind = FNX_LAYOUT_ORDER};
    for (uint32_t i = 0; i < v->rank; i++) l.order[i] = (uint8_t)(i == 0 ? 0 : i == v->rank - 1u ? 1 : i + 1);
    return l;
}

static fnx_layout rows(void) { return (fnx_layout){.kind = FNX_LAYOUT_ROW_MAJOR}; }

/* Channels last if `like` has them, which has the same channels; else rows. */
static fnx_layout as_in(const cpu_view *v, const cpu_view *like) {
    const fnx_layout last = channels_last(v);
    return cpu_view_is_packed(like, last.order) && !cpu_view_is_packed(like, NULL) ? last : rows();
}

static int32_t prefer(void *device, const fnx_group *one, const fnx_launch *shapes, fnx_layout *out) {
    cpu_kernel k;
    fnx_decline why = {.struct_size = sizeof why};
    if (one->anchor == FNX_ANCHOR_ELEMENTWISE || cpu_kernel_read(device, one, &k, &why)) return FNX_E_DECLINED;
    const cpu_call c = cpu_kernel_call(&k, shapes);
    fnx_layout *operand = out, *result = out + k.n_operands;
    for (uint32_t i = 0; i < (uint32_t)k.n_operands + k.n_results; i++) out[i] = (fnx_layout){.kind = FNX_LAYOUT_ANY};
    switch (c.op) {
    case FNX_OP_conv:
        if (c.out[0].dtype != FNX_F32) break;
        if (c.in[0].size[1] > FEW_CHANNELS) operand[0] = channels_last(&c.in[0]);
        result[0] = channels_last(&c.out[0]);
        break;
    case FNX_OP_conv_grad_x:
        if (c.out[0].dtype != FNX_F32) break;
        operand[0] = channels_last(&c.in[0]);
        result[0] = channels_last(&c.out[0]);
        break;
    case FNX_OP_conv_grad_w:
        result[0] = rows();
        if (c.out[0].dtype != FNX_F32) break;
        if (c.in[0].size[1] > FEW_CHANNELS) operand[0] = channels_last(&c.in[0]);
        operand[1] = channels_last(&c.in[1]);
        break;
    case FNX_OP_max_pool_grad:
    case FNX_OP_max_pool_pick: result[0] = as_in(&c.out[0], &c.in[1]); break;
    case FNX_OP_avg_pool_grad: /* nothing here says what x was; where channels are many, it came from a convolution */
        if (c.out[0].size[1] > FEW_CHANNELS) result[0] = channels_last(&c.out[0]);
        break;
    case FNX_OP_matmul: result[0] = rows(); break;
    default: break;
    }
    return FNX_OK;
}

const fnx_layout_interface cpu_layout = {.struct_size = sizeof cpu_layout, .prefer = prefer};
