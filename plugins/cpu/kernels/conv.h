/* The three arrays of a convolution, whichever of them is the result. */
#ifndef PLUGINS_CPU_KERNELS_CONV_H
#define PLUGINS_CPU_KERNELS_CONV_H

#include "kernels/kernel.h"

typedef struct cpu_conv_operands {
    cpu_view x, w, y;
} cpu_conv_operands;

cpu_conv_operands cpu_conv_operands_of(const cpu_call *c);

#endif
