/* The tiles of own matrix products, which decide how much workspace each thread needs. */
#ifndef PLUGINS_CPU_KERNELS_GEMM_H
#define PLUGINS_CPU_KERNELS_GEMM_H

#include "kernels/kernel.h"

/* Elements. Rows and columns are multiples of what any level computes at once. */
enum { TILE_ROWS = 96, TILE_COLUMNS = 128, TILE_DEPTH = 256 };

enum { GEMM_THREAD_BYTES = (TILE_ROWS * TILE_DEPTH + TILE_COLUMNS * TILE_DEPTH + TILE_ROWS * TILE_COLUMNS) * 8 };

#endif
