/* The gradient of each op: g is the gradient of the result y, k the operand. Made of public ops. */
#ifndef AUTODIFF_GRADIENTS_H
#define AUTODIFF_GRADIENTS_H

#include "ops/record.h"

#define FNX_GRADIENTS(G) \
    G(add) \
    G(sub) G(mul) G(div) G(pow) G(maximum) G(minimum) G(neg) G(abs) G(exp) G(log) G(sqrt) G(tanh) G(sigmoid) G(erf) \
        G(relu) G(where) G(cast) G(copy) G(sum) G(extremum) G(matmul) G(conv) G(conv_grad_x) G(conv_grad_w) \
            G(max_pool) G(max_pool_grad) G(max_pool_pick) G(avg_pool) G(avg_pool_grad) G(gather) G(scatter_add) \
                G(reshape) G(permute) G(expand) G(slice) G(slice_assign) G(concat) G(pad) G(transfer) G(softmax) \
                    G(log_softmax) G(gelu)

#define FNX_GRADIENT_PROTOTYPE_(name) fnx_tensor *grad_##name(fnx_tensor *y, fnx_tensor *g, int k);
FNX_GRADIENTS(FNX_GRADIENT_PROTOTYPE_)
#undef FNX_GRADIENT_PROTOTYPE_

#endif
