/* What convolution and pooling have in common: a window that steps over the spatial axes of x [n, c, s..] and stands at
 * positions t of y. Strides, dilations and padding are attributes, so constants of the kernel. */
#ifndef KERNEL_LOWER_WINDOW_H
#define KERNEL_LOWER_WINDOW_H

#include "lower.h"

typedef struct lower_window {
    uint32_t spatial;
    int32_t stride[3], dilation[3], low[3];
    kir_value size[3];      /* of the window */
    const fnx_value *x, *y; /* whose spatial sizes bound the positions */
} lower_window;

/* Opens `spatial` loops over the window, at[] being the position in it; lower_window_close closes them. */
void lower_window_open(lowering *l, const lower_window *w, kir_value *at);
void lower_window_close(lowering *l, const lower_window *w);
/* Where position k of the window at t touches x. The value: whether that is inside. */
kir_value lower_touches(lowering *l, const lower_window *w, const kir_value *t, const kir_value *k, kir_value *s);
/* Where a window stands whose position k touches s. The value: whether there is one. */
kir_value lower_touched(lowering *l, const lower_window *w, const kir_value *s, const kir_value *k, kir_value *t);
/* A thread per element of value v: its position, inside an `if` that the caller ends. */
void lower_each(lowering *l, uint32_t v, kir_value *at);

#endif
