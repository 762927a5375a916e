/* Operations as a plugin sees them: ids, structural attributes, and what each op means.
 *
 * Ids come from the one table of ops, libcore/ops/ops.def, through the generated <fornax-plugin/op-table.h>. They are
 * permanent. Ids from FNX_OP_EXTENSION on mean "name number (id - FNX_OP_EXTENSION) of this group": nothing in a group
 * depends on the process it was made in.
 *
 * Attribute bytes hold *structural* attributes only (they are hashed and compared as bytes). Value and class attributes
 * (a factor, a seed) are operands of kind FNX_VALUE_SCALAR. Each struct is a multiple of 8 bytes without padding.
 *
 * Meaning of the ops that can be in a group (T: the common dtype of operands and result unless said otherwise):
 *
 *   elementwise, operands and result aligned
 *     add sub mul            integers wrap
 *     div                    floats: IEEE; integers: truncates; divisor 0: element reads 0, error word FNX_E_INDEX with
 *                            index 0 and limit 0; INT_MIN / -1 wraps
 *     pow                    floats: IEEE pow; integers: wrapping product, negative exponent: 0, except 1 and -1 bases
 *     maximum minimum        NaN if either is NaN; max(-0, +0) = +0, min(-0, +0) = -0
 *     neg abs                integers wrap; u8 neg wraps; bool: none
 *     exp log sqrt tanh sigmoid erf     floats only
 *     relu                   x > 0 ? x : x != x ? x : 0  (NaN passes; -0 becomes 0)
 *     equal not_equal less less_equal greater greater_equal     T, T -> bool; NaN compares unequal and unordered
 *     where                  (bool, T, T) -> T
 *     cast                   T -> U: float to integer truncates toward zero and saturates, NaN to 0; integer to
 *                            narrower integer wraps; anything to bool is x != 0 (NaN: 1); bool is 0 or 1
 *     copy                   T -> T
 *     uniform                (seed u64 scalar, counter u64 scalar, element i64) -> f32, f64 in [0, 1)
 *     normal                 the same operands -> f32, f64; standard normal. Both: see FNX_PHILOX below
 *
 *   reductions: result keeps the axes with size 1; attr fnx_attr_reduce
 *     sum                    integers wrap; over nothing: 0. Floats: any order within the error bound, NaN passes
 *     max min                NaN if any is NaN; over nothing: refused by the host
 *     argmax                 T -> i64, over exactly one axis; the lowest index wins; the first NaN wins over all
 *
 *   addressed
 *     matmul                 (a [b.., m, k], b [b.., k, n]) -> [b.., m, n]; ranks equal, batch axes of a and b may have
 *                            size 1 (stride 0). Attr fnx_attr_matmul. k = 0: zeros. Integers wrap. Any strides
 *     conv                   (x [n, c, s..], w [o, c / groups, k..]) -> [n, o, t..], correlation (no flip);
 *                            t = (s + pad_low + pad_high - dilation (k - 1) - 1) / stride + 1
 *     conv_grad_x            (dy, w) -> x's shape (sizes of the result)
 *     conv_grad_w            (x, dy) -> w's shape (sizes of the result)
 *     max_pool               x [n, c, s..] -> (y, where): where is the number of the element within its window
 *                            (row-major over the window; the node has one result, y, where nobody needs it), u8 if a
 *                            window has at most 256 elements, else i32. Padding never wins; first NaN wins; ties:
 *                            lowest number; a window wholly in padding: y 0, where 0. t as for conv, with the window
 *                            for k and dilation 1. Attr fnx_attr_pool
 *     max_pool_grad          (dy, where) -> x's shape: adds each dy to the element that won
 *     max_pool_pick          (z of x's shape, where) -> y's shape: z at the element that won (the adjoint of the last);
 *                            0 where that lies in padding
 *     avg_pool               divides by the window's size, or with FNX_POOL_EXCLUDE_PAD by its elements inside x; a
 *                            window wholly in padding: 0, with the flag NaN (0 / 0)
 *     avg_pool_grad          dy -> x's shape: its adjoint
 *     gather                 (x, index i32/i64) -> index's shape: y[i..] = x[i.. with axis: index[i..]]; on the other
 *                            axes index may be shorter than x. Attr fnx_attr_axis. Index outside [0, n): reads 0,
 *                            error word FNX_E_INDEX with that index and limit n
 *     scatter_add            (target, index, update) -> target's shape: result = target, then for each i of index:
 *                            result[i.. with axis: index[i..]] += update[i..], in ascending row-major order of i (so
 *                            that bits do not depend on threads). Outside: writes nothing, error word as for
 *                            gather. The result may share the slot of target
 *     softmax log_softmax    composites; a backend may offer a kernel. Attr fnx_attr_axis
 *
 * Views (reshape, permute, expand, slice), concat, pad, slice_assign, fill and iota never reach a plugin: they are
 * strides, copies into parts of a result, scalars and index values.
 *
 * FNX_PHILOX. Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) with key = seed
 * (low word first) and counter words {b low, b high, c low, c high}, c = counter operand, gives four words w[0..3] for
 * a block b. With e = element:
 *     uniform f32   b = e >> 2:  (w[e & 3] >> 8) * 2^-24
 *     uniform f64   b = e >> 1, j = 2 (e & 1):  ((w[j] >> 5) * 2^26 + (w[j + 1] >> 6)) * 2^-53
 *     normal f32    b = e >> 2, j = e & 2:  u = ((w[j] >> 8) + 1) * 2^-24, v = (w[j + 1] >> 8) * 2^-24;
 *                   sqrt(-2 ln u) * (e & 1 ? sin : cos)(2 pi v)        (Box and Muller 1958)
 *     normal f64    b = e:  u = ((w[0] >> 5) * 2^26 + (w[1] >> 6) + 1) * 2^-53, v likewise from w[2], w[3] without + 1;
 *                   sqrt(-2 ln u) * cos(2 pi v) */
#ifndef FORNAX_PLUGIN_OPS_H
#define FORNAX_PLUGIN_OPS_H

#include <stdint.h>

typedef struct fnx_attr_reduce {
    uint32_t axes; /* mask of axes */
    uint32_t reserved;
} fnx_attr_reduce;

typedef struct fnx_attr_axis {
    uint32_t axis;
    uint32_t reserved;
} fnx_attr_axis;

typedef struct fnx_attr_matmul {
    uint32_t precision; /* 0: 16-bit types accumulate in f32; 1: reduced allowed (tf32, bf16 pieces) */
    uint32_t reserved;
} fnx_attr_matmul;

/* Axis order is always the one above; channels last is a matter of strides. */
typedef struct fnx_attr_conv {
    uint32_t spatial; /* 1, 2 or 3; unused entries below are 0 */
    uint32_t groups;
    int32_t stride[3], dilation[3], pad_low[3], pad_high[3];
} fnx_attr_conv;

enum { FNX_POOL_EXCLUDE_PAD = 1 };

typedef struct fnx_attr_pool {
    uint32_t spatial; /* as in fnx_attr_conv */
    uint32_t flags;   /* FNX_POOL_* */
    int32_t window[3], stride[3], pad_low[3], pad_high[3];
} fnx_attr_pool;

/* Of records that never become nodes; here because one table describes all. */
typedef struct fnx_attr_permute {
    uint8_t from[8]; /* axis d of the result is axis from[d] of the operand */
} fnx_attr_permute;

typedef struct fnx_attr_slice {
    int64_t step[8]; /* per axis, not 0; negative walks backwards. Starts are scalars, one per axis; sizes are the
                        result's (slice) or the second operand's (slice_assign) */
} fnx_attr_slice;

typedef struct fnx_attr_pad {
    int64_t low[8], high[8]; /* elements before and after, per axis, >= 0 */
} fnx_attr_pad;

#include <fornax-plugin/op-table.h>

#define FNX_OP_ID_(id, name, attr) FNX_OP_##name = id,
enum { FNX_OP_TABLE(FNX_OP_ID_) FNX_OP_EXTENSION = 0x8000 };
#undef FNX_OP_ID_

/* Bytes of attributes that this header knows for a core op: what to pass to fnx_node_attrs. */
static inline uint32_t fnx_op_attr_bytes(uint16_t op) {
#define FNX_OP_ATTR_(id, name, attr) \
    case id: return (uint32_t)(attr);
    switch (op) {
        FNX_OP_TABLE(FNX_OP_ATTR_)
    default: return 0;
    }
#undef FNX_OP_ATTR_
}

#endif
