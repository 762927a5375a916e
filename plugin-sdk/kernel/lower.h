/* From groups to kernels: what all schedules share.
 *
 * A schedule builds one kernel in `k`: it calls lower_begin, which makes a value of everything that a launch passes,
 * then emits its loops. Work-groups are numbered by one linear number, so that limits of a grid's axes are met in
 * one place. */
#ifndef KERNEL_LOWER_H
#define KERNEL_LOWER_H

#include "ir.h"

#include <fornax-plugin/ops.h>

enum { LOWER_MAX_VALUES = 256, LOWER_MAX_KERNELS = 2 };

typedef enum lower_fill {
    LOWER_ERROR,
    LOWER_SITE,
    LOWER_ADDRESS,
    LOWER_SIZE,
    LOWER_STRIDE,
    LOWER_SCALAR,
    LOWER_PRODUCT
} lower_fill;

typedef struct lower_source { /* what an argument is filled with */
    uint8_t fill, type;
    uint16_t n;      /* LOWER_PRODUCT: of so many sizes */
    uint32_t number; /* of binding, size, stride, scalar */
    uint16_t size[FNX_MAX_RANK];
} lower_source;

typedef struct lower_grid { /* work-groups: the product over i of ceil(product of size[i][..] / per[i]) */
    uint16_t n, n_sizes[FNX_MAX_RANK + 1];
    uint16_t size[FNX_MAX_RANK + 1][FNX_MAX_RANK];
    int64_t per[FNX_MAX_RANK + 1];
} lower_grid;

typedef struct lower_rounds { /* of a thread's loops: the sum over i of product of size[i][..] / per[i] */
    uint16_t n, n_sizes[4];
    uint16_t size[4][FNX_MAX_RANK];
    int64_t per[4];
} lower_rounds;

typedef struct lowering {
    const fnx_codegen_device *device;
    const fnx_group *g;
    fnx_decline *why;
    kir k;
    kir_type index;   /* i32 or i64: of sizes, strides and offsets */
    uint32_t threads; /* of a work-group, a power of two */
    lower_source source[KIR_MAX_ARGS];
    lower_grid grid;
    lower_rounds rounds;
    kir_value buffer[LOWER_MAX_VALUES];               /* per stored value */
    kir_value stride[LOWER_MAX_VALUES][FNX_MAX_RANK]; /* KIR_NO_VALUE: 0 */
    bool one[LOWER_MAX_VALUES][FNX_MAX_RANK];         /* the stride is 1 */
    kir_value value[LOWER_MAX_VALUES];                /* what a node made, or a scalar */
    kir_value *size;                                  /* per entry of the group's table */
} lowering;

int32_t lower_decline(const lowering *l, uint32_t reason, uint32_t node, uint32_t value, const char *text);

kir_type lower_register(uint16_t dtype); /* KIR_VOID: unknown */
kir_type lower_memory(uint16_t dtype);

/* Values of arguments, buffers, sizes, strides and scalars; before any block. */
void lower_begin(lowering *l, uint32_t threads);
kir_value lower_index(lowering *l, int64_t v); /* a constant of the index type */
kir_value lower_product(lowering *l, uint32_t n, const uint16_t *sizes);
void lower_grid_add(lowering *l, uint32_t n, const uint16_t *sizes, int64_t per);

void lower_rounds_add(lowering *l, uint32_t n, const uint16_t *sizes, int64_t per);

kir_value lower_group(lowering *l); /* the work-group's linear number, of the index type */
kir_value lower_thread(lowering *l);
/* `linear` as positions along sizes, last one fastest. */
void lower_unravel(lowering *l, kir_value linear, uint32_t n, const uint16_t *sizes, kir_value *at);
kir_value lower_offset(lowering *l, uint32_t value, const kir_value *at); /* in elements; at: one per axis */
kir_value lower_load(lowering *l, uint32_t value, const kir_value *at);   /* of whatever kind the value is */
void lower_store(lowering *l, uint32_t value, const kir_value *at, kir_value v);

/* The sum of all threads' v, by halving in `side`, an array of the work-group with one element per thread. */
kir_value lower_total(lowering *l, kir_value side, kir_value me, kir_value v);

/* Small words for building. */
kir_value lower_add(lowering *l, kir_value a, kir_value b);
kir_value lower_mul(lowering *l, kir_value a, kir_value b);
kir_value lower_number(lowering *l, kir_type type, double v);

/* ---- lower_group.c ----------------------------------------------------------------------------------------------- */

int32_t lower_capabilities(fnx_group_caps *out); /* the table of ops */
int32_t lower_check(const fnx_codegen_device *device, const fnx_group *g, fnx_decline *why);
/* Builds kernel `number` of a group (a reduction has two). */
int32_t lower_group_kernel(lowering *l, int number);

/* ---- lower_elementwise.c ----------------------------------------------------------------------------------------- */

bool lower_is_elementwise(uint16_t op);
/* Emits one elementwise node; operands are in registers. KIR_NO_VALUE: declined (`why` is filled). */
kir_value lower_node(lowering *l, uint32_t node, const kir_value *operands);
kir_value lower_sum(lowering *l, uint16_t dtype, kir_value a, kir_value b);                  /* integers wrap */
kir_value lower_larger(lowering *l, uint16_t dtype, kir_value a, kir_value b, bool smaller); /* NaN wins */
int32_t lower_elementwise(lowering *l);

/* ---- other schedules: one kernel each ---------------------------------------------------------------------------- */

int32_t lower_reduce(lowering *l, bool by_group);
int32_t lower_matmul(lowering *l);
int32_t lower_conv(lowering *l);
int32_t lower_pool(lowering *l);
int32_t lower_gather(lowering *l);
int32_t lower_scatter(lowering *l);

#endif
