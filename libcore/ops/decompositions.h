/* Composites in terms of public ops; `y` gives attributes only. */
#ifndef OPS_DECOMPOSITIONS_H
#define OPS_DECOMPOSITIONS_H

#include "ops/op.h"

fnx_tensor *decompose_softmax(fnx_tensor *const *in, const fnx_tensor *y);
fnx_tensor *decompose_log_softmax(fnx_tensor *const *in, const fnx_tensor *y);
fnx_tensor *decompose_gelu(fnx_tensor *const *in, const fnx_tensor *y);

#endif
