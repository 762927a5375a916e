/* What the kernels of anchors share: views, the call of one node, the table of ops, and the loops of an ISA level.
 *
 * An anchor group has one node here. prepare holds it against the row of its op and keeps attributes and values; at
 * launch its operands become views, whatever their strides, and the row's function runs on them in the executor
 * thread. Functions that loop over elements are compiled once per ISA level and reached through `cpu_loops`. */
#ifndef PLUGINS_CPU_KERNELS_KERNEL_H
#define PLUGINS_CPU_KERNELS_KERNEL_H

#include "cpu.h"

#include <fornax-plugin/ops.h>

#include <stdbool.h>

/* ---- views ------------------------------------------------------------------------------------------------------- */

typedef struct cpu_view {
    char *base; /* element [0, 0, ...] */
    uint16_t dtype;
    uint16_t rank;
    int64_t size[FNX_MAX_RANK];
    int64_t stride[FNX_MAX_RANK]; /* elements; 0 where the size is 1 */
} cpu_view;

static inline uint32_t cpu_element_bytes(uint16_t dtype) {
    static const uint8_t bytes[] = {
        [FNX_BOOL] = 1, [FNX_U8] = 1, [FNX_I32] = 4, [FNX_I64] = 8, [FNX_F32] = 4, [FNX_F64] = 8,
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0; /* 0: none that kernels have */
}

static inline int64_t cpu_view_count(const cpu_view *v) {
    int64_t count = 1;
    for (uint32_t d = 0; d < v->rank; d++) count *= v->size[d];
    return count;
}

static inline int64_t cpu_view_bytes(const cpu_view *v) { /* packed; a multiple of 64, so that another may follow */
    return (cpu_view_count(v) * cpu_element_bytes(v->dtype) + 63) / 64 * 64;
}

/* Packed strides in the order of `order` (slowest first; NULL: row-major). */
static inline void cpu_view_pack(cpu_view *v, const uint8_t *order) {
    int64_t packed = 1;
    for (uint32_t i = v->rank; i-- > 0;) {
        const uint32_t d = order ? order[i] : i;
        v->stride[d] = v->size[d] == 1 ? 0 : packed;
        packed *= v->size[d];
    }
}

/* Does the view have the strides that cpu_view_pack would give it? */
static inline bool cpu_view_is_packed(const cpu_view *v, const uint8_t *order) {
    cpu_view packed = *v;
    bool same = true;
    cpu_view_pack(&packed, order);
    for (uint32_t d = 0; d < v->rank; d++) same &= v->stride[d] == packed.stride[d];
    return same;
}

static inline int64_t cpu_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cpu_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- one node in one launch -------------------------------------------------------------------------------------- */

typedef union cpu_attr {
    fnx_attr_reduce reduce;
    fnx_attr_axis axis;
    fnx_attr_matmul matmul;
    fnx_attr_conv conv;
    fnx_attr_pool pool;
} cpu_attr;

enum { CPU_KERNEL_OPERANDS = 3, CPU_KERNEL_RESULTS = 2 };

struct cpu_kernel;
struct cpu_loops;

typedef struct cpu_call {
    cpu_device *device;
    const struct cpu_loops *loops;
    struct cpu_kernel *kernel; /* the handle; caches live there */
    const cpu_task *task;      /* NULL while workspace is asked for */
    uint16_t op;
    uint16_t n_results;
    const cpu_attr *attr;
    cpu_view in[CPU_KERNEL_OPERANDS];
    cpu_view out[CPU_KERNEL_RESULTS];
    char *workspace;
} cpu_call;

/* One row per op. The signature has a letter per operand, '>', a letter per result:
 *     T  one dtype of `dtypes`, the same at every T     L  i64     X  i32 or i64 (an index)
 *     W  u8 or i32 (a place in a window), as the window's size demands; w: a result that may be missing */
typedef struct cpu_kernel_row {
    uint16_t op;
    uint64_t dtypes;
    const char *signature;
    void (*run)(const cpu_call *c);
    uint64_t (*workspace)(const cpu_call *c); /* bytes, UINT64_MAX: too many to count; NULL: never any */
} cpu_kernel_row;

/* A prepared node. */
typedef struct cpu_kernel {
    cpu_device *device;
    const cpu_kernel_row *row;
    cpu_attr attr;
    uint16_t n_operands, n_results;
    fnx_value value[CPU_KERNEL_OPERANDS + CPU_KERNEL_RESULTS];
    void *cache; /* of conv: primitives by shape */
} cpu_kernel;

/* ---- loops that exist once per ISA level ------------------------------------------------------------------------- */

typedef struct cpu_loops {
    void (*copy)(cpu_device *device, const cpu_view *from, const cpu_view *to); /* copy.c */
    void (*reduce)(const cpu_call *c);                                          /* reduce.c: sum, max, min */
    void (*argmax)(const cpu_call *c);                                          /* argmax.c */
    void (*max_pool)(const cpu_call *c);                                        /* max_pool.c */
    void (*max_pool_grad)(const cpu_call *c);
    void (*max_pool_pick)(const cpu_call *c);
    void (*avg_pool)(const cpu_call *c); /* avg_pool.c */
    void (*avg_pool_grad)(const cpu_call *c);
    void (*gather)(const cpu_call *c); /* index.c */
    void (*scatter_add)(const cpu_call *c);
    void (*small_gemm)(const cpu_view *a, const cpu_view *b, const cpu_view *y); /* gemm.c */
    /* y = a b, or y += a b */
    void (*gemm)(cpu_device *device, const cpu_view *a, const cpu_view *b, const cpu_view *y, bool adds,
                 char *workspace);
} cpu_loops;

extern const cpu_loops cpu_loops_base, cpu_loops_avx2, cpu_loops_avx512; /* loops.c */

/* The same function of another level has another name: CPU_LEVEL(reduce) is reduce_avx512 where that may be used. */
#if defined __AVX512F__ && defined __AVX512BW__ && defined __AVX512DQ__ && defined __AVX512VL__
#define CPU_LEVEL(name) name##_avx512
#elif defined __AVX2__ && defined __FMA__
#define CPU_LEVEL(name) name##_avx2
#else
#define CPU_LEVEL(name) name##_base
#endif

#define CPU_DECLARE_LOOPS(level) \
    void cpu_copy_##level(cpu_device *device, const cpu_view *from, const cpu_view *to); \
    void cpu_reduce_##level(const cpu_call *c); \
    void cpu_argmax_##level(const cpu_call *c); \
    void cpu_max_pool_##level(const cpu_call *c); \
    void cpu_max_pool_grad_##level(const cpu_call *c); \
    void cpu_max_pool_pick_##level(const cpu_call *c); \
    void cpu_avg_pool_##level(const cpu_call *c); \
    void cpu_avg_pool_grad_##level(const cpu_call *c); \
    void cpu_gather_##level(const cpu_call *c); \
    void cpu_scatter_add_##level(const cpu_call *c); \
    void cpu_small_gemm_##level(const cpu_view *a, const cpu_view *b, const cpu_view *y); \
    void cpu_gemm_##level(cpu_device *device, const cpu_view *a, const cpu_view *b, const cpu_view *y, bool adds, \
                          char *workspace);
CPU_DECLARE_LOOPS(base)
CPU_DECLARE_LOOPS(avx2)
CPU_DECLARE_LOOPS(avx512)

/* An index outside of [0, limit). */
static inline void cpu_call_fail(const cpu_call *c, int64_t index, int64_t limit) {
    cpu_refuse(c->task, FNX_E_INDEX, 0, index, limit);
}

/* ---- kernels without loops of their own -------------------------------------------------------------------------- */

void cpu_matmul(const cpu_call *c); /* matmul.c */
uint64_t cpu_matmul_workspace(const cpu_call *c);
void cpu_conv(const cpu_call *c); /* conv.c: all three directions */
uint64_t cpu_conv_workspace(const cpu_call *c);
void cpu_conv_release(cpu_kernel *k);
void cpu_conv_loops(const cpu_call *c); /* conv_loops.c: what the library does not have */
uint64_t cpu_conv_loops_workspace(const cpu_call *c);

/* Reads the node of a group of one. Fills `why` where a part of it is not ours (kernel.c). */
int32_t cpu_kernel_read(cpu_device *device, const fnx_group *g, cpu_kernel *out, fnx_decline *why);

/* The call of one launch; without addresses if the launch has none (kernel.c). */
cpu_call cpu_kernel_call(cpu_kernel *k, const fnx_launch *l);

#endif
