/* Matrix products of any strides for dtypes that have no library: f64 and integers, and small ones of f32. Tiles of
 * the result are computed from packed panels of the operands, as in Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (TOMS 2008). Tiles and depths are fixed, so bits do not depend on the
 * number of threads. */
#include "kernels/gemm.h"

#include <string.h>

#if defined __AVX512F__
enum { VECTOR_BYTES = 64, ROWS = 8 };
#elif defined __AVX__
enum { VECTOR_BYTES = 32, ROWS = 6 };
#else
enum { VECTOR_BYTES = 16, ROWS = 4 };
#endif
enum { SMALL = 64 };

#ifdef __clang__
#define UNROLL /* it does */
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef struct gemm {
    const cpu_view *a, *b, *y;
    int64_t m, n, k, column_tiles;
    bool adds; /* to what y holds */
    char *workspace;
} gemm;

#define NAME f32
#define TYPE float
#define PACKED float
#include "kernels/gemm_body.h"

#define NAME f64
#define TYPE double
#define PACKED double
#include "kernels/gemm_body.h"

#define NAME i32
#define TYPE uint32_t
#define PACKED uint32_t
#include "kernels/gemm_body.h"

#define NAME i64
#define TYPE uint64_t
#define PACKED uint64_t
#include "kernels/gemm_body.h"

#define NAME u8
#define TYPE uint8_t
#define PACKED uint32_t
#include "kernels/gemm_body.h"

static gemm gemm_of(const cpu_view *a, const cpu_view *b, const cpu_view *y) {
    return (gemm){.a = a, .b = b, .y = y, .m = y->size[0], .n = y->size[1], .k = a->size[1]};
}

void CPU_LEVEL(cpu_small_gemm)(const cpu_view *a, const cpu_view *b, const cpu_view *y) {
    const gemm g = gemm_of(a, b, y);
    switch (y->dtype) {
    case FNX_F32: f32_small(&g); break;
    case FNX_F64: f64_small(&g); break;
    case FNX_I32: i32_small(&g); break;
    case FNX_I64: i64_small(&g); break;
    default: u8_small(&g); break;
    }
}

void CPU_LEVEL(cpu_gemm)(cpu_device *device, const cpu_view *a, const cpu_view *b, const cpu_view *y, bool adds,
                         char *workspace) {
    gemm g = gemm_of(a, b, y);
    g.adds = adds;
    if (g.m == 0 || g.n == 0) return;
    g.column_tiles = (g.n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    g.workspace = workspace;
    const int64_t tiles = (g.m + TILE_ROWS - 1) / TILE_ROWS * g.column_tiles;
    const double ns = (double)g.m * (double)g.n * (double)g.k * 0.1;
    switch (y->dtype) {
    case FNX_F32: cpu_parallel(device, ns, tiles, f32_tiles, &g); break;
    case FNX_F64: cpu_parallel(device, ns, tiles, f64_tiles, &g); break;
    case FNX_I32: cpu_parallel(device, ns, tiles, i32_tiles, &g); break;
    case FNX_I64: cpu_parallel(device, ns, tiles, i64_tiles, &g); break;
    default: cpu_parallel(device, ns, tiles, u8_tiles, &g); break;
    }
}
