/* Shapes: checked counts, packed strides, axis numbers. */
#ifndef TENSOR_SHAPE_H
#define TENSOR_SHAPE_H

#include "tensor/dtype.h"
#include "tensor/tensor.h"

/* Checks rank, sizes, elements and bytes of a shape from outside; sets the thread's error, which begins with `what`. */
fnx_status fnx_shape_check(const char *what, int dtype, int rank, const int64_t *sizes, int64_t *out_count);

/* t->count from its sizes, or t failed: negative, or elements or bytes overflow. */
fnx_status fnx_shape_count(fnx_tensor *t);

/* Packed strides in elements: row-major, or with axis 1 fastest (rank >= 3). */
void fnx_shape_strides(int rank, const int64_t *sizes, int layout, int64_t *strides);

/* *axis in [0, rank) for an axis that may be negative; false if there is none. */
bool fnx_shape_axis(int rank, int axis, int *out);

/* "f32, f64" for a mask. */
void fnx_dtype_list(uint64_t mask, char *out, size_t size);

#endif
