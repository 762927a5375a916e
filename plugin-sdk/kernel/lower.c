/* See lower.h: what all schedules share. */
#include "lower.h"

#include <stdio.h>
#include <string.h>

int32_t lower_decline(const lowering *l, uint32_t reason, uint32_t node, uint32_t value, const char *text) {
    if (l->why) {
        l->why->why = reason, l->why->node = node, l->why->value = value;
        snprintf(l->why->text, sizeof l->why->text, "%s", text);
    }
    return FNX_E_DECLINED;
}

kir_type lower_register(uint16_t dtype) {
    switch (dtype) {
    case FNX_BOOL: return KIR_BOOL;
    case FNX_U8: return KIR_U32;
    case FNX_I32: return KIR_I32;
    case FNX_I64: return KIR_I64;
    case FNX_U64: return KIR_U64;
    case FNX_F32: return KIR_F32;
    case FNX_F64: return KIR_F64;
    default: return KIR_VOID;
    }
}

kir_type lower_memory(uint16_t dtype) { return dtype == FNX_U8 ? KIR_U8 : lower_register(dtype); }

/* ---- small words ------------------------------------------------------------------------------------------------- */

kir_value lower_add(lowering *l, kir_value a, kir_value b) { return kir_bin(&l->k, KIR_ADD, a, b); }
kir_value lower_mul(lowering *l, kir_value a, kir_value b) { return kir_bin(&l->k, KIR_MUL, a, b); }
kir_value lower_index(lowering *l, int64_t v) { return kir_int(&l->k, l->index, v); }

kir_value lower_number(lowering *l, kir_type type, double v) {
    return type == KIR_F32 || type == KIR_F64 ? kir_float(&l->k, type, v) : kir_int(&l->k, type, (int64_t)v);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static kir_value argument(lowering *l, lower_fill fill, kir_type type, uint32_t number) {
    int32_t arg = kir_add_arg(&l->k, type);
    l->source[arg] = (lower_source){.fill = (uint8_t)fill, .type = (uint8_t)type, .number = number};
    return kir_arg_value(&l->k, arg);
}

static kir_value constant(lowering *l, const fnx_value *v) {
    const fnx_scalar *s = fnx_group_const(l->g, v->index);
    kir_type type = lower_register(v->dtype);
    float f;
    double d;
    memcpy(&f, s, sizeof f), memcpy(&d, s, sizeof d);
    switch (v->dtype) {
    case FNX_F32: return kir_float(&l->k, type, (double)f);
    case FNX_F64: return kir_float(&l->k, type, d);
    case FNX_BOOL:
    case FNX_U8: return kir_int(&l->k, type, (uint8_t)s->bits[0]);
    case FNX_I32: return kir_int(&l->k, type, (int32_t)s->bits[0]);
    default: return kir_int(&l->k, type, (int64_t)s->bits[0]);
    }
}

/* Scalars narrower than 4 bytes are passed as u32. */
static kir_value scalar(lowering *l, const fnx_value *v) {
    kir_type type = lower_register(v->dtype);
    if (type != KIR_BOOL) return argument(l, LOWER_SCALAR, type, v->index);
    return kir_cast(&l->k, KIR_BOOL, argument(l, LOWER_SCALAR, KIR_U32, v->index));
}

static kir_value size_of(lowering *l, uint32_t entry) {
    if (l->size[entry] != KIR_NO_VALUE) return l->size[entry];
    const fnx_size *s = fnx_group_size(l->g, entry);
    /* Mesa 22.3's llvmpipe stores zeros for a matrix product of one column if that 1 is a literal. */
    bool literal = s->fixed >= 0 && l->g->anchor != FNX_ANCHOR_MATMUL;
    l->size[entry] = literal ? lower_index(l, s->fixed) : argument(l, LOWER_SIZE, l->index, entry);
    return l->size[entry];
}

static void begin_value(lowering *l, uint32_t i) {
    const fnx_value *v = fnx_group_value(l->g, i);
    l->buffer[i] = l->value[i] = KIR_NO_VALUE;
    for (uint32_t d = 0; d < v->rank; d++) (void)size_of(l, v->size[d]);
    if (v->kind == FNX_VALUE_CONST) l->value[i] = constant(l, v);
    if (v->kind == FNX_VALUE_SCALAR) l->value[i] = scalar(l, v);
    bool stored = v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT;
    if (!stored && v->kind != FNX_VALUE_INDEX) return;
    if (stored) {
        int32_t arg = kir_add_arg(&l->k, KIR_U64);
        l->source[arg] = (lower_source){.fill = LOWER_ADDRESS, .type = KIR_U64, .number = v->index};
        l->buffer[i] = kir_buffer(&l->k, lower_memory(v->dtype), arg, v->kind == FNX_VALUE_INPUT ? KIR_READ_ONLY : 0);
    }
    kir_type type = stored ? l->index : KIR_I64;
    for (uint32_t d = 0; d < v->rank; d++) {
        bool fixed = fnx_group_size(l->g, v->size[d])->fixed == 1 || v->stride_class[d] == FNX_STRIDE_ZERO;
        l->one[i][d] = v->stride_class[d] == FNX_STRIDE_ONE;
        l->stride[i][d] = fixed || l->one[i][d] ? KIR_NO_VALUE : argument(l, LOWER_STRIDE, type, v->first_stride + d);
        if (fixed) l->one[i][d] = false;
    }
}

void lower_begin(lowering *l, uint32_t threads) {
    l->threads = threads;
    kir_init(&l->k, threads, 1, 1);
    l->source[KIR_ARG_ERROR] = (lower_source){.fill = LOWER_ERROR, .type = KIR_U64};
    l->source[KIR_ARG_SITE] = (lower_source){.fill = LOWER_SITE, .type = KIR_U32};
    for (uint32_t i = 0; i < l->g->n_sizes; i++) l->size[i] = KIR_NO_VALUE;
    for (uint32_t d = 0; d < l->g->rank; d++) (void)size_of(l, l->g->domain[d]);
    for (uint32_t i = 0; i < l->g->n_values; i++) begin_value(l, i);
    memset(&l->grid, 0, sizeof l->grid), memset(&l->rounds, 0, sizeof l->rounds);
}

kir_value lower_product(lowering *l, uint32_t n, const uint16_t *sizes) {
    if (n == 0) return lower_index(l, 1);
    if (n == 1) return l->size[sizes[0]];
    kir_value v = argument(l, LOWER_PRODUCT, l->index, 0);
    lower_source *s = &l->source[l->k.n_args - 1];
    s->n = (uint16_t)n;
    for (uint32_t d = 0; d < n; d++) s->size[d] = sizes[d];
    return v;
}

void lower_grid_add(lowering *l, uint32_t n, const uint16_t *sizes, int64_t per) {
    lower_grid *grid = &l->grid;
    grid->n_sizes[grid->n] = (uint16_t)n, grid->per[grid->n] = per;
    for (uint32_t d = 0; d < n; d++) grid->size[grid->n][d] = sizes[d];
    grid->n++;
}

void lower_rounds_add(lowering *l, uint32_t n, const uint16_t *sizes, int64_t per) {
    lower_rounds *r = &l->rounds;
    r->n_sizes[r->n] = (uint16_t)n, r->per[r->n] = per;
    for (uint32_t d = 0; d < n; d++) r->size[r->n][d] = sizes[d];
    r->n++;
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

kir_value lower_group(lowering *l) {
    kir_value x = kir_cast(&l->k, l->index, kir_builtin(&l->k, KIR_GROUP, 0));
    kir_value y = kir_cast(&l->k, l->index, kir_builtin(&l->k, KIR_GROUP, 1));
    kir_value wide = kir_cast(&l->k, l->index, kir_builtin(&l->k, KIR_GROUPS, 0));
    return lower_add(l, lower_mul(l, y, wide), x);
}

kir_value lower_thread(lowering *l) { return kir_cast(&l->k, l->index, kir_builtin(&l->k, KIR_THREAD, 0)); }

void lower_unravel(lowering *l, kir_value linear, uint32_t n, const uint16_t *sizes, kir_value *at) {
    for (uint32_t d = n; d-- > 0;) {
        if (fnx_group_size(l->g, sizes[d])->fixed == 1) {
            at[d] = lower_index(l, 0);
            continue;
        }
        bool first = true; /* nothing is left over before it */
        for (uint32_t e = 0; e < d; e++) first &= fnx_group_size(l->g, sizes[e])->fixed == 1;
        at[d] = first ? linear : kir_bin(&l->k, KIR_REM, linear, l->size[sizes[d]]);
        if (!first) linear = kir_bin(&l->k, KIR_DIV, linear, l->size[sizes[d]]);
    }
}

kir_value lower_offset(lowering *l, uint32_t value, const kir_value *at) {
    const fnx_value *v = fnx_group_value(l->g, value);
    kir_type type = v->kind == FNX_VALUE_INDEX ? KIR_I64 : l->index;
    kir_value sum = KIR_NO_VALUE;
    for (uint32_t d = 0; d < v->rank; d++) {
        if (!l->one[value][d] && l->stride[value][d] == KIR_NO_VALUE) continue;
        kir_value part = kir_cast(&l->k, type, at[d]);
        if (!l->one[value][d]) part = lower_mul(l, part, l->stride[value][d]);
        sum = sum == KIR_NO_VALUE ? part : lower_add(l, sum, part);
    }
    return sum == KIR_NO_VALUE ? kir_int(&l->k, type, 0) : sum;
}

kir_value lower_load(lowering *l, uint32_t value, const kir_value *at) {
    const fnx_value *v = fnx_group_value(l->g, value);
    switch (v->kind) {
    case FNX_VALUE_INPUT: return kir_load(&l->k, l->buffer[value], lower_offset(l, value, at));
    case FNX_VALUE_INDEX: return lower_offset(l, value, at);
    default: return l->value[value];
    }
}

void lower_store(lowering *l, uint32_t value, const kir_value *at, kir_value v) {
    kir_store(&l->k, l->buffer[value], lower_offset(l, value, at), v);
}

kir_value lower_total(lowering *l, kir_value side, kir_value me, kir_value v) {
    kir *k = &l->k;
    kir_write(k, side, me, v);
    kir_barrier(k);
    for (uint32_t half = l->threads / 2; half > 0; half /= 2) {
        kir_if(k, kir_bin(k, KIR_LT, me, kir_int(k, KIR_I32, half)));
        kir_value other = kir_read(k, side, lower_add(l, me, kir_int(k, KIR_I32, half)));
        kir_write(k, side, me, lower_add(l, kir_read(k, side, me), other));
        kir_end(k);
        kir_barrier(k);
    }
    return kir_read(k, side, kir_int(k, KIR_I32, 0));
}
