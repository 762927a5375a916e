/* What the files of the reference backend share: cells, views, and the call of one node.
 *
 * The whole plugin rests on one idea. In a launch every value of a group is a *view*: an address, sizes, strides. To
 * run a node is to walk the positions of its result, read operands through their views, compute in double or int64, and
 * write the result through its view. Temporaries are row-major views of the workspace. Nothing here looks at the
 * anchor, at stride classes or at promises: those help a fast backend, the meaning of a group never depends on them. */
#ifndef PLUGINS_REF_H
#define PLUGINS_REF_H

#include <fornax-plugin/ops.h>
#include <fornax-plugin/plugin.h>

#include <math.h>
#include <stdbool.h>

#define REF_ALIGN 64u /* bytes: of allocations, and of every value in the workspace */

/* ---- the device (plugin.c) --------------------------------------------------------------------------------------- */

enum { REF_MAX_OPS = 64 };

typedef struct ref_device {
    const fnx_host *host;
    fnx_op_caps ops[REF_MAX_OPS]; /* what capabilities() shows */
} ref_device;

typedef struct ref_queue {
    ref_device *device;
    fnx_error_word error;
} ref_queue;

extern const fnx_group_interface ref_groups; /* group.c */
extern const fnx_kernel ref_matmul_kernel;   /* kernel.c */

/* ---- one element ------------------------------------------------------------------------------------------------- */

/* Floats are computed in double and integers in int64; what is stored is rounded or wrapped to the dtype. For f32
 * that is the correctly rounded result of + - * / sqrt, because a double has more than twice the bits of a float. */
typedef union ref_cell {
    double f;  /* f32, f64 */
    int64_t i; /* all others */
} ref_cell;

static inline bool ref_is_float(uint16_t dtype) { return dtype == FNX_F32 || dtype == FNX_F64; }

static inline uint32_t ref_dtype_bytes(uint16_t dtype) {
    static const uint8_t bytes[] = {
        [FNX_BOOL] = 1, [FNX_U8] = 1, [FNX_I32] = 4, [FNX_I64] = 8, [FNX_U64] = 8, [FNX_F32] = 4, [FNX_F64] = 8,
    };
    return dtype < sizeof bytes ? bytes[dtype] : 0; /* 0: a dtype that this backend does not have */
}

/* Is a the one that max_pool and argmax choose, when b came before it? The first NaN beats everything. */
static inline bool ref_beats(ref_cell a, ref_cell b, bool is_float) {
    return is_float ? a.f > b.f || (isnan(a.f) && !isnan(b.f)) : a.i > b.i;
}

/* ---- one value in one launch ------------------------------------------------------------------------------------- */

enum { REF_NO_MEMORY = 0 }; /* ref_view.dtype of a value of kind INDEX: an element is its own offset */

typedef struct ref_view {
    uint16_t dtype;
    uint16_t rank;
    char *base; /* element [0, 0, ...] */
    int64_t size[FNX_MAX_RANK];
    int64_t stride[FNX_MAX_RANK]; /* in elements; 0 on broadcast axes, so that any position of the domain may be used */
} ref_view;

static inline int64_t ref_offset(const ref_view *v, const int64_t *at) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < v->rank; d++) offset += at[d] * v->stride[d];
    return offset;
}

static inline int64_t ref_count(const ref_view *v) {
    int64_t count = 1;
    for (uint32_t d = 0; d < v->rank; d++) count *= v->size[d];
    return count;
}

/* Steps `at` to the next position of the first `axes` axes, last one fastest. False after the last position: then
 * `at` is all zeros again. */
static inline bool ref_next(const ref_view *v, uint32_t axes, int64_t *at) {
    for (uint32_t d = axes; d-- > 0;) {
        if (++at[d] < v->size[d]) return true;
        at[d] = 0;
    }
    return false;
}

static inline ref_cell ref_load(const ref_view *v, int64_t offset) {
    switch (v->dtype) {
    case FNX_BOOL: return (ref_cell){.i = ((const uint8_t *)v->base)[offset] != 0};
    case FNX_U8: return (ref_cell){.i = ((const uint8_t *)v->base)[offset]};
    case FNX_I32: return (ref_cell){.i = ((const int32_t *)(const void *)v->base)[offset]};
    case FNX_I64:
    case FNX_U64: return (ref_cell){.i = ((const int64_t *)(const void *)v->base)[offset]};
    case FNX_F32: return (ref_cell){.f = (double)((const float *)(const void *)v->base)[offset]};
    case FNX_F64: return (ref_cell){.f = ((const double *)(const void *)v->base)[offset]};
    default: return (ref_cell){.i = offset}; /* REF_NO_MEMORY */
    }
}

static inline void ref_store(const ref_view *v, int64_t offset, ref_cell c) {
    switch (v->dtype) {
    case FNX_BOOL: ((uint8_t *)v->base)[offset] = c.i != 0; break;
    case FNX_U8: ((uint8_t *)v->base)[offset] = (uint8_t)c.i; break;
    case FNX_I32: ((int32_t *)(void *)v->base)[offset] = (int32_t)c.i; break;
    case FNX_I64:
    case FNX_U64: ((int64_t *)(void *)v->base)[offset] = c.i; break;
    case FNX_F32: ((float *)(void *)v->base)[offset] = (float)c.f; break;
    case FNX_F64: ((double *)(void *)v->base)[offset] = c.f; break;
    default: break;
    }
}

/* Integers wrap: in C only unsigned ones do. */
static inline int64_t ref_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t ref_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static inline ref_cell ref_add(ref_cell a, ref_cell b, bool is_float) {
    return is_float ? (ref_cell){.f = a.f + b.f} : (ref_cell){.i = ref_wrap_add(a.i, b.i)};
}

/* ---- one node in one launch -------------------------------------------------------------------------------------- */

enum { REF_MAX_OPERANDS = 3, REF_MAX_RESULTS = 2 };

typedef struct ref_call {
    ref_queue *queue; /* of the error word */
    uint32_t site;    /* of the launch */
    uint32_t node;    /* its number in the group */
    uint16_t op;
    uint16_t n_operands, n_results;
    ref_view in[REF_MAX_OPERANDS];
    ref_view out[REF_MAX_RESULTS];
    union {
        fnx_attr_reduce reduce;
        fnx_attr_axis axis;
        fnx_attr_matmul matmul;
        fnx_attr_conv conv;
        fnx_attr_pool pool;
    } attr;
} ref_call;

/* Notes a failure in the queue's error word, unless there is one already. */
void ref_fail(const ref_call *c, int32_t code, int64_t index, int64_t limit);

/* One row per op that this backend runs (ops.c).
 *
 * The signature has one letter per operand, '>', one letter per result:
 *     T  one dtype of `dtypes`, the same at every T     U  any dtype of `dtypes`     B  bool     L  i64
 *     S  u64 (the seed and counter of random numbers)   X  i32 or i64 (an index)     W  u8 or i32 (a place in a window)
 * A small letter is a result that may be missing. */
typedef struct ref_op {
    uint16_t op;
    uint16_t places; /* as in fnx_op_caps */
    uint64_t dtypes; /* mask */
    const char *signature;
    void (*run)(const ref_call *c);
} ref_op;

extern const ref_op ref_ops[];
extern const uint32_t ref_n_ops;
void ref_op_capabilities(fnx_op_caps *caps); /* fills ref_n_ops of them */

const ref_op *ref_find_op(uint16_t op); /* NULL: unknown */
uint64_t ref_letter_dtypes(const ref_op *row, char letter);

/* Reads the node's attributes and looks whether this backend runs them. False: no; `text` says why. */
bool ref_read_attrs(const fnx_group *g, const fnx_node *n, ref_call *c, const char **text);

void ref_elementwise(const ref_call *c); /* elementwise.c */
void ref_reduce(const ref_call *c);      /* reduce.c: sum, max, min */
void ref_argmax(const ref_call *c);
void ref_matmul(const ref_call *c); /* matmul.c */
void ref_conv(const ref_call *c);   /* conv.c */
void ref_conv_grad_x(const ref_call *c);
void ref_conv_grad_w(const ref_call *c);
void ref_max_pool(const ref_call *c); /* pool.c */
void ref_max_pool_grad(const ref_call *c);
void ref_max_pool_pick(const ref_call *c);
void ref_avg_pool(const ref_call *c);
void ref_avg_pool_grad(const ref_call *c);
void ref_gather(const ref_call *c); /* index.c */
void ref_scatter_add(const ref_call *c);

ref_cell ref_maximum(ref_cell a, ref_cell b, bool is_float); /* elementwise.c; NaN if either is */
ref_cell ref_minimum(ref_cell a, ref_cell b, bool is_float);
ref_cell ref_uniform(const ref_call *c, const ref_cell *x); /* random.c */
ref_cell ref_normal(const ref_call *c, const ref_cell *x);

/* sum of a[i * a_step] * b[i * b_step] over n elements from the given offsets, both of the same dtype (matmul.c) */
ref_cell ref_dot(const ref_view *a, int64_t a_offset, int64_t a_step, const ref_view *b, int64_t b_offset,
                 int64_t b_step, int64_t n);

/* Fills a decline and returns FNX_E_DECLINED; `why` may be NULL (group.c). */
int32_t ref_decline(fnx_decline *why, uint32_t reason, uint32_t node, uint32_t value, const char *text);

/* A stored value as a view of the memory that the launch names (group.c). */
ref_view ref_view_of(const fnx_value *v, const fnx_launch *launch);
void ref_copy(const ref_view *from, const ref_view *to); /* every element of `to` */

#endif
