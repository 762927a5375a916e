/* Inference: what an operation's operands must be, dtype and shape of its result. One function per rule of ops.def. */
#ifndef OPS_INFER_H
#define OPS_INFER_H

#include "ops/op.h"

/* clang-format off */
#define FNX_INFER_RULES(RULE) \
    RULE(arithmetic) \
    RULE(same) RULE(compare) RULE(where) RULE(cast) RULE(source) RULE(reduce) RULE(reduce_nonempty) RULE(argmax) \
        RULE(matmul) RULE(conv) RULE(given) RULE(max_pool) RULE(avg_pool) RULE(gather) RULE(scatter) RULE(reshape) \
            RULE(permute) RULE(expand) RULE(slice) RULE(slice_assign) RULE(concat) RULE(pad) RULE(softmax)
/* clang-format on */

#define FNX_INFER_PROTOTYPE_(rule) fnx_status infer_##rule(fnx_tensor *y);
FNX_INFER_RULES(FNX_INFER_PROTOTYPE_)
#undef FNX_INFER_PROTOTYPE_

/* ---- helpers of the rules ---------------------------------------------------------------------------------------- */

/* y has rank and sizes: its count, if elements and bytes do not overflow. */
fnx_status fnx_infer_count(fnx_tensor *y);
/* Operand k's dtype is one that the op takes. */
fnx_status fnx_infer_takes(fnx_tensor *y, int k);
/* y takes the shape and dtype of operand k. */
void fnx_infer_like(fnx_tensor *y, const fnx_tensor *x);
/* Result size of a window along one axis, or -1. */
int64_t fnx_window_size(int64_t size, int64_t window, int64_t dilation, int64_t stride, int64_t low, int64_t high);

#endif
