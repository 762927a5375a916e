/* Public functions of elementwise ops. */
#include "ops/record.h"

#include <fornax/ops.h>

#define UNARY(name) \
    fnx_tensor *fnx_##name(fnx_tensor *x) { return fnx_record_unary(FNX_OP_##name, x); }
#define BINARY(name) \
    fnx_tensor *fnx_##name(fnx_tensor *a, fnx_tensor *b) { return fnx_record_binary(FNX_OP_##name, a, b); }
#define BINARY_SCALAR(name) \
    BINARY(name) \
    fnx_tensor *fnx_##name##_scalar(fnx_tensor *a, double s) { return fnx_record_scalar(FNX_OP_##name, a, s, 0); }

BINARY_SCALAR(add)
BINARY_SCALAR(sub)
BINARY_SCALAR(mul)
BINARY_SCALAR(div)
BINARY_SCALAR(pow)
BINARY_SCALAR(maximum)
BINARY_SCALAR(minimum)
BINARY_SCALAR(equal)
BINARY_SCALAR(not_equal)
BINARY_SCALAR(less)
BINARY_SCALAR(less_equal)
BINARY_SCALAR(greater)
BINARY_SCALAR(greater_equal)

fnx_tensor *fnx_scalar_sub(double s, fnx_tensor *a) { return fnx_record_scalar(FNX_OP_sub, a, s, 1); }
fnx_tensor *fnx_scalar_div(double s, fnx_tensor *a) { return fnx_record_scalar(FNX_OP_div, a, s, 1); }

UNARY(neg)
UNARY(abs)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(tanh)
UNARY(sigmoid)
UNARY(erf)
UNARY(relu)
UNARY(copy)

fnx_tensor *fnx_where(fnx_tensor *condition, fnx_tensor *a, fnx_tensor *b) {
    fnx_tensor *in[] = {condition, a, b};
    return fnx_record(&(fnx_call){.op = FNX_OP_where, .n_operands = 3, .in = in});
}

fnx_tensor *fnx_cast(fnx_tensor *x, int dtype) {
    uint8_t to = dtype < 0 || dtype > 255 ? 255 : (uint8_t)dtype;
    return fnx_record(&(fnx_call){.op = FNX_OP_cast, .n_operands = 1, .in = &x, .dtype = to});
}
