/* The table of one ISA level's loops. */
#include "kernels/kernel.h"

const cpu_loops CPU_LEVEL(cpu_loops) = {
    .copy = CPU_LEVEL(cpu_copy),
    .reduce = CPU_LEVEL(cpu_reduce),
    .argmax = CPU_LEVEL(cpu_argmax),
    .max_pool = CPU_LEVEL(cpu_max_pool),
    .max_pool_grad = CPU_LEVEL(cpu_max_pool_grad),
    .max_pool_pick = CPU_LEVEL(cpu_max_pool_pick),
    .avg_pool = CPU_LEVEL(cpu_avg_pool),
    .avg_pool_grad = CPU_LEVEL(cpu_avg_pool_grad),
    .gather = CPU_LEVEL(cpu_gather),
    .scatter_add = CPU_LEVEL(cpu_scatter_add),
    .small_gemm = CPU_LEVEL(cpu_small_gemm),
    .gemm = CPU_LEVEL(cpu_gemm),
};
