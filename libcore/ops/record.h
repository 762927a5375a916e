/* The bridge: the one door from an op's public function to the recorder.
 *
 * A public function checks only what cannot be said in ops.def (axis numbers, option ranges), fills in a call and
 * returns what comes back: always a tensor, failed if operands are missing, failed, on two devices or of wrong dtype
 * or shape. */
#ifndef OPS_RECORD_H
#define OPS_RECORD_H

#include "ops/op.h"

typedef struct fnx_call {
    uint16_t op;
    uint16_t n_operands; /* scalar operands included */
    uint8_t scalar_mask; /* operands that are scalars: in[k] is not read */
    uint8_t n_scalars;
    uint8_t dtype; /* results whose dtype is not inferred (sources, cast) */
    uint8_t rank;  /* with `sizes` */
    fnx_tensor *const *in;
    const void *attr; /* fnx_ops[op].attr_bytes */
    const uint64_t *scalars;
    const int64_t *sizes; /* NULL: inferred */
    fnx_device *device;   /* sources; NULL: that of the operands */
} fnx_call;

fnx_tensor *fnx_record(const fnx_call *call);

/* The common shapes of a call, without its memory traffic. */
fnx_tensor *fnx_record_unary(int op, fnx_tensor *x);
fnx_tensor *fnx_record_binary(int op, fnx_tensor *a, fnx_tensor *b);
/* One tensor, one scalar as operand `at` (0 or 1). An integer tensor takes integers only, else FNX_E_DTYPE. */
fnx_tensor *fnx_record_scalar(int op, fnx_tensor *x, double s, int at);

/* The 64 bits that a scalar of a dtype is recorded as; false if the dtype has no such value (2.5 as an integer). */
bool fnx_scalar_bits(int dtype, double s, uint64_t *out);

/* For public functions that look at an operand before they record. */
static inline bool fnx_usable(const fnx_tensor *x) { return x && fnx_state(x) != FNX_FAILED; }

/* What such a function returns if operand k is not usable: the operand's cause, or that it is NULL. */
static inline fnx_tensor *fnx_unusable(const char *op, int k, fnx_tensor *x) {
    return x ? fnx_record_unary(FNX_OP_copy, x) : fnx_tensor_failed(FNX_E_INVALID, "%s: operand %d is NULL", op, k);
}

/* Whether operand k of y is a scalar. */
static inline bool fnx_operand_is_scalar(const fnx_tensor *y, int k) { return (y->scalar_mask >> k & 1) != 0; }

#endif
