/* What ops.def says of each operation, as a table indexed by op id. */
#ifndef OPS_OP_H
#define OPS_OP_H

#include "tensor/dtype.h"
#include "tensor/tensor.h"

#include <fornax-plugin/group.h>
#include <fornax-plugin/ops.h>

#define FNX_VARIADIC 255

enum { FNX_CLASS_PRIMITIVE = 1, FNX_CLASS_COMPOSITE, FNX_CLASS_VIEW, FNX_CLASS_SOURCE };

enum {                      /* fnx_op_info.flags */
       FNX_OPF_ALIGNED = 1, /* elementwise: operands iterate with the result */
       FNX_OPF_SCALAR = 2,  /* one operand may be a scalar */
       FNX_OPF_CLASS = 4,   /* the class of its scalar is in the key */
       FNX_OPF_INDEXED = 8, /* a node gets its element's number as its last operand */
       FNX_OPF_COMMUTES = 16,
       FNX_OPF_SIZES = 32 /* the result's sizes are structural: given by the caller, not inferred */
};

enum { FNX_SAVES_RESULT = 128 }; /* saves: bit k: operand k */

typedef struct fnx_op_info {
    const char *name;
    uint16_t id;
    uint8_t operands, scalars, attr_bytes;
    uint8_t class, anchor, flags, saves;
    uint16_t sibling;
    uint8_t bound;
    float ulp;
    uint64_t dtypes;

    /* Sets dtype, rank, size and count of y from its operands and attributes (sizes are already set for FNX_OPF_SIZES),
     * or makes y a failed tensor and returns the code. Operands are usable tensors or NULL (scalars). Runs under the
     * recorder's lock: records nothing. */
    fnx_status (*infer)(fnx_tensor *y);

    /* The gradient of operand k, from g, the gradient of y; made of public ops. */
    fnx_tensor *(*gradient)(fnx_tensor *y, fnx_tensor *g, int k);

    /* The same value made of public ops, from operands `in`; y gives attributes and dtype only. */
    fnx_tensor *(*decompose)(fnx_tensor *const *in, const fnx_tensor *y);

    const char *onnx;
} fnx_op_info;

enum { FNX_OP_LIMIT = 128 };                    /* ids of core ops are below */
extern const fnx_op_info fnx_ops[FNX_OP_LIMIT]; /* name NULL: no such op */

#endif
