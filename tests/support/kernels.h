/* Three kernels written by hand in the kernel compiler's language: a softmax of rows, a register-blocked matrix
 * product with bias and relu, and a scatter-add. Each for any number of threads, so that one source serves all
 * dialects. */
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include "../../plugin-sdk/kernel/ir.h"

/* Arguments: 2 x, 3 y (addresses), 4 row length (i32). A group per row. */
void kernel_softmax(kir *k, uint32_t threads);

/* c = relu(a b + bias) of f32: a [m, k], b [k, n], bias [n], packed. Arguments: 2 a, 3 b, 4 bias, 5 c, 6 m, 7 n, 8 k
 * (i32). Groups: x over n, y over m; a tile is side * each threads wide and high; depth elements of k at a time. */
void kernel_matmul(kir *k, uint32_t side, int each, int depth);

/* t[index[i]] += 1 for u32 t of n elements, with the error word for indexes outside. Arguments: 2 t, 3 index (i64),
 * 4 n (i64), 5 number of indexes (i32). */
void kernel_scatter(kir *k, uint32_t threads);

#endif
