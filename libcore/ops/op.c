/* The table of ops, made of ops.def. */
#include "ops/op.h"

#include "autodiff/gradients.h"
#include "ops/decompositions.h"
#include "ops/infer.h"
#include "tensor/saves.h"

#define PRIMITIVE FNX_CLASS_PRIMITIVE
#define COMPOSITE FNX_CLASS_COMPOSITE
#define VIEW FNX_CLASS_VIEW
#define SOURCE FNX_CLASS_SOURCE
#define FLOATS FNX_MASK_FLOATS
#define NUMBERS FNX_MASK_NUMBERS
#define ANY FNX_MASK_ANY
#define ALIGNED FNX_OPF_ALIGNED
#define SCALAR_OK FNX_OPF_SCALAR
#define CLASS FNX_OPF_CLASS
#define INDEXED FNX_OPF_INDEXED
#define COMMUTES FNX_OPF_COMMUTES
#define SIZES FNX_OPF_SIZES
#define S0 1
#define S1 2
#define S2 4
#define SR FNX_SAVES_RESULT
#define SUM 1

#define OP(number, identifier, n_operands, n_scalars, n_results, attributes, ...) \
    [number] = {.name = #identifier, \
                .id = number, \
                .operands = n_operands, \
                .scalars = n_scalars, \
                .attr_bytes = attributes, \
                __VA_ARGS__},

const fnx_op_info fnx_ops[FNX_OP_LIMIT] = {
#include "ops/ops.def"
};

#undef OP
#define OP(number, identifier, ...) _Static_assert((number) > 0 && (number) < FNX_OP_LIMIT, #identifier);
#include "ops/ops.def"

unsigned fnx_op_saves(unsigned op) { return op < FNX_OP_LIMIT ? fnx_ops[op].saves : 0; }
