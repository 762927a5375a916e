/* What the checks know of each core op: the form of its node. */
#ifndef CHECK_OP_FORM_H
#define CHECK_OP_FORM_H

#include <fornax-plugin/group.h>
#include <fornax-plugin/ops.h>

enum {                   /* op_form.shapes: how the sizes of operands and results hang together */
       FORM_ALIGNED = 1, /* operands have the result's sizes, or 1 */
       FORM_REDUCE = 2,  /* the result has the operand's sizes, 1 on reduced axes */
       FORM_MATMUL = 3,
       FORM_CONV = 4,
       FORM_POOL = 5,
       FORM_GATHER = 6,
       FORM_SCATTER = 7
};

typedef struct op_form {
    uint16_t op;
    uint16_t shapes;
    /* A letter per operand, '>', a letter per result. T: one common dtype, U: any, B: bool, L: i64, S: u64, X: i32 or
     * i64, W: u8 or i32; a small letter may be missing. */
    const char *signature;
} op_form;

const op_form *fnx_check_op_form(uint16_t op); /* NULL: an op that this build does not know */

uint32_t fnx_check_dtype_bytes(uint16_t dtype); /* 0: no such dtype */

/* The tensors of a convolution or of pooling, whichever of them is the result: x [n, c, s..], y [n, o, t..], and w of a
 * convolution, where of pooling. */
typedef struct window_form {
    const fnx_value *x, *w, *y, *where;
    uint32_t spatial, groups, flags;
    int32_t size[3]; /* of the window; a convolution's is w's */
    int32_t stride[3], dilation[3], low[3], high[3];
} window_form;

/* Reads a window node whose number of operands has been checked. 0, or FNX_E_UNSUPPORTED: newer attributes. */
int32_t fnx_check_window(const fnx_group *g, const fnx_node *n, const op_form *form, window_form *out);

#endif
