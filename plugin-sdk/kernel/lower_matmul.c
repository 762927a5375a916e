/* Matrix products: tiles of the result in registers, panels of the operands in work-group memory. Any strides. */
#include "lower.h"

#include <string.h>

enum {
    DEPTH = 16,
    EACH = 4,
    EACH_ALONE = 8,
    SIDE = 16
}; /* of a panel; results per thread and axis; threads per axis */

typedef struct product {
    uint32_t a, b, c, rank; /* values; all have this rank */
    uint16_t dtype;
    kir_type type; /* of sums: unsigned for integers, which wrap */
    int side, each, tile;
    kir_value batch[FNX_MAX_RANK]; /* positions along the batch axes */
} product;

/* The element of operand v at (row, column) of its matrix, 0 outside. */
static kir_value element(lowering *l, const product *p, uint32_t v, kir_value row, kir_value column) {
    kir *k = &l->k;
    const fnx_value *x = fnx_group_value(l->g, v);
    kir_value at[FNX_MAX_RANK];
    for (uint32_t d = 0; d + 2 < p->rank; d++) at[d] = p->batch[d]; /* of axes of size 1 no offset is taken */
    at[p->rank - 2] = row, at[p->rank - 1] = column;
    kir_value inside = kir_bin(k, KIR_AND, kir_bin(k, KIR_LT, row, l->size[x->size[p->rank - 2]]),
                               kir_bin(k, KIR_LT, column, l->size[x->size[p->rank - 1]]));
    kir_value var = kir_var(k, lower_number(l, p->type, 0));
    kir_if(k, inside);
    kir_value got = lower_load(l, v, at);
    kir_set(k, var, kir_type_of(k, got) == p->type ? got : kir_bits(k, p->type, got));
    kir_end(k);
    return kir_get(k, var);
}

/* rows x columns elements from (row0, column0) into work-group memory. */
static void fetch(lowering *l, const product *p, uint32_t v, kir_value panel, int rows, int columns, kir_value row0,
                  kir_value column0) {
    kir *k = &l->k;
    kir_value me = kir_cast(k, KIR_I32, lower_thread(l));
    kir_value i = kir_for(k, me, kir_int(k, KIR_I32, rows * columns), l->threads, 0);
    kir_value row = kir_cast(k, l->index, kir_bin(k, KIR_DIV, i, kir_int(k, KIR_I32, columns)));
    kir_value column = kir_cast(k, l->index, kir_bin(k, KIR_REM, i, kir_int(k, KIR_I32, columns)));
    kir_write(k, panel, i, element(l, p, v, lower_add(l, row0, row), lower_add(l, column0, column)));
    kir_end(k);
}

static void multiply(lowering *l, const product *p, kir_value left, kir_value right, kir_value sums, kir_value tx,
                     kir_value ty) {
    kir *k = &l->k;
    kir_value own = kir_array(k, p->type, p->each, KIR_PRIVATE);
    kir_value d = kir_for(k, kir_int(k, KIR_I32, 0), kir_int(k, KIR_I32, DEPTH), 1, 0);
    kir_value row = lower_add(l, lower_mul(l, ty, kir_int(k, KIR_I32, p->each * DEPTH)), d);
    for (int r = 0; r < p->each; r++)
        kir_write(k, own, kir_int(k, KIR_I32, r), kir_read(k, left, lower_add(l, row, kir_int(k, KIR_I32, r * DEPTH))));
    kir_value base = lower_add(l, lower_mul(l, d, kir_int(k, KIR_I32, p->tile)), tx);
    for (int q = 0; q < p->each; q++) { /* neighbours read neighbours */
        kir_value v = kir_read(k, right, lower_add(l, base, kir_int(k, KIR_I32, q * p->side)));
        for (int r = 0; r < p->each; r++) {
            kir_value at = kir_int(k, KIR_I32, r * p->each + q), u = kir_read(k, own, kir_int(k, KIR_I32, r));
            kir_value sum = kir_read(k, sums, at);
            bool is_float = p->type == KIR_F32 || p->type == KIR_F64;
            kir_write(k, sums, at, is_float ? kir_fma(k, u, v, sum) : lower_add(l, lower_mul(l, u, v), sum));
        }
    }
    kir_end(k);
}

static void store(lowering *l, const product *p, kir_value sums, kir_value row0, kir_value column0, kir_value tx,
                  kir_value ty) {
    kir *k = &l->k;
    const fnx_value *c = fnx_group_value(l->g, p->c);
    kir_value at[FNX_MAX_RANK];
    memcpy(at, p->batch, sizeof at);
    for (int r = 0; r < p->each; r++)
        for (int q = 0; q < p->each; q++) {
            kir_value row = lower_add(l, lower_mul(l, ty, kir_int(k, KIR_I32, p->each)), kir_int(k, KIR_I32, r));
            kir_value column = lower_add(l, tx, kir_int(k, KIR_I32, q * p->side));
            at[p->rank - 2] = lower_add(l, row0, kir_cast(k, l->index, row));
            at[p->rank - 1] = lower_add(l, column0, kir_cast(k, l->index, column));
            kir_if(k, kir_bin(k, KIR_AND, kir_bin(k, KIR_LT, at[p->rank - 2], l->size[c->size[p->rank - 2]]),
                              kir_bin(k, KIR_LT, at[p->rank - 1], l->size[c->size[p->rank - 1]])));
            kir_value v = kir_read(k, sums, kir_int(k, KIR_I32, r * p->each + q));
            kir_type type = lower_register(p->dtype);
            if (p->dtype == FNX_U8) v = kir_bin(k, KIR_AND, v, kir_int(k, KIR_U32, 255));
            lower_store(l, p->c, at, type == p->type ? v : kir_bits(k, type, v));
            kir_end(k);
        }
}

int32_t lower_matmul(lowering *l) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    kir *k = &l->k;
    product p = {.a = fnx_node_operand(g, n, 0), .b = fnx_node_operand(g, n, 1), .c = fnx_node_result(g, n, 0)};
    bool alone = l->device->max_threads < SIDE * SIDE;
    const fnx_value *c = fnx_group_value(g, p.c);
    p.rank = c->rank, p.dtype = c->dtype, p.type = lower_register(c->dtype);
    p.type = p.type == KIR_I32 ? KIR_U32 : p.type == KIR_I64 ? KIR_U64 : p.type;
    p.side = alone ? 1 : SIDE, p.each = alone ? EACH_ALONE : EACH, p.tile = p.side * p.each;
    lower_begin(l, (uint32_t)(p.side * p.side));
    uint32_t n_batch = p.rank - 2;
    lower_grid_add(l, n_batch, c->size, 1);
    lower_grid_add(l, 1, &c->size[p.rank - 2], p.tile), lower_grid_add(l, 1, &c->size[p.rank - 1], p.tile);
    const uint16_t *inner = &fnx_group_value(g, p.a)->size[p.rank - 1];
    lower_rounds_add(l, 1, inner, 1), lower_rounds_add(l, 1, inner, 1); /* products, and at most as many to fetch */
    kir_value tile = lower_index(l, p.tile), rest = lower_index(l, p.tile - 1), rows = l->size[c->size[p.rank - 2]];
    kir_value columns = l->size[c->size[p.rank - 1]], depth = l->size[fnx_group_value(g, p.a)->size[p.rank - 1]];
    kir_value high = kir_bin(k, KIR_DIV, lower_add(l, rows, rest), tile);
    kir_value wide = kir_bin(k, KIR_DIV, lower_add(l, columns, rest), tile), group = lower_group(l);
    kir_value matrices = lower_product(l, n_batch, c->size), tiles = lower_mul(l, high, wide);
    /* work-groups beyond the last do its work once more: all threads come to the barriers */
    kir_value last = kir_bin(k, KIR_SUB, lower_mul(l, tiles, matrices), lower_index(l, 1));
    group = kir_bin(k, KIR_MIN, group, last);
    lower_unravel(l, kir_bin(k, KIR_DIV, group, tiles), n_batch, c->size, p.batch);
    kir_value in_matrix = kir_bin(k, KIR_REM, group, tiles);
    kir_value row0 = lower_mul(l, kir_bin(k, KIR_DIV, in_matrix, wide), tile);
    kir_value column0 = lower_mul(l, kir_bin(k, KIR_REM, in_matrix, wide), tile);
    kir_value left = kir_array(k, p.type, p.tile * DEPTH, KIR_SHARED);
    kir_value right = kir_array(k, p.type, DEPTH * p.tile, KIR_SHARED);
    kir_value sums = kir_array(k, p.type, p.each * p.each, KIR_PRIVATE);
    kir_value me = kir_cast(k, KIR_I32, lower_thread(l)), side = kir_int(k, KIR_I32, p.side);
    kir_value tx = kir_bin(k, KIR_REM, me, side), ty = kir_bin(k, KIR_DIV, me, side);
    for (int i = 0; i < p.each * p.each; i++) kir_write(k, sums, kir_int(k, KIR_I32, i), lower_number(l, p.type, 0));
    kir_value from = kir_for(k, lower_index(l, 0), depth, DEPTH, 0);
    fetch(l, &p, p.a, left, p.tile, DEPTH, row0, from);
    fetch(l, &p, p.b, right, DEPTH, p.tile, from, column0);
    kir_barrier(k);
    multiply(l, &p, left, right, sums, tx, ty);
    kir_barrier(k);
    kir_end(k);
    store(l, &p, sums, row0, column0, tx, ty);
    return FNX_OK;
}
