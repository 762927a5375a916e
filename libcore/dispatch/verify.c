/* See verify.h. Slow: plans are built anew, results are copied to the host. */
#include "dispatch/verify.h"

#include "base/alloc.h"
#include "tensor/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Orders of sums may differ between the two plans: what rounding can do, generously. */
static const double limit_f32 = 1e-3, limit_f64 = 1e-9;

static fnx_status no_memory(void) { return fnx_error_set(FNX_E_NO_MEMORY, "verify: no host memory"); }

static fnx_status no_wishes(void *user, const fnx_group *one, const fnx_launch *shapes, fnx_layout *out,
                            bool *strided) {
    (void)user, (void)one, (void)shapes, (void)out;
    *strided = false;
    return FNX_E_DECLINED;
}

static fnx_status build(fnx_hardware *h, fnx_recorder *r, fnx_verification *v) {
    static const uint64_t no_key[2] = {0, 0};
    fnx_backend backend = h->backend;
    uint8_t *donatable = fnx_alloc((size_t)r->n_inputs);
    if (!donatable) return no_memory();
    backend.max_nodes = 1, backend.layout = no_wishes, backend.fallback = (uint32_t)r->settings & 15;
    for (int64_t j = 0; j < r->n_inputs; j++) donatable[j] = r->donatable[j], r->donatable[j] = 0;
    fnx_status code = fnx_plan_build(r, &backend, no_key, &v->plan);
    for (int64_t j = 0; j < r->n_inputs; j++) r->donatable[j] = donatable[j];
    free(donatable);
    return code;
}

static fnx_status reserve(fnx_hardware *h, const fnx_recorder *r, fnx_verification *v) {
    v->outs = calloc((size_t)v->plan->n_outputs + 1, sizeof *v->outs);
    if (!v->outs) return no_memory();
    for (int64_t k = 0; k < v->plan->n_outputs; k++) {
        const fnx_output *o = &v->plan->outputs[k];
        if (o->share < 0) FNX_TRY(fnx_pool_take(&h->pool, o->bytes, &v->outs[k]));
        else
            v->outs[k] = fnx_storage_ref(o->share < v->plan->n_inputs ? r->inputs[o->share]->storage
                                                                      : v->outs[o->share - v->plan->n_inputs]);
    }
    return FNX_OK;
}

fnx_status fnx_verify_begin(fnx_hardware *h, fnx_recorder *r, fnx_verification *v) {
    bool started;
    FNX_TRY(build(h, r, v));
    FNX_TRY(reserve(h, r, v));
    fnx_storage *arena = r->arena;
    r->arena = NULL;
    fnx_status code = fnx_pool_take(&h->pool, v->plan->stats.arena_bytes, &r->arena);
    if (!code) code = fnx_execute(h, r, v->plan, v->outs, &started);
    fnx_storage_unref(r->arena);
    r->arena = arena;
    return code;
}

/* Element i of a tensor of this shape, stored packed in a layout. */
static double element(const fnx_tensor *t, const void *data, int layout, int64_t i) {
    int64_t stride[FNX_MAX_RANK], at = 0;
    fnx_shape_strides(t->rank, t->size, layout, stride);
    for (int d = t->rank - 1; d >= 0; i /= t->size[d], d--) at += i % t->size[d] * stride[d];
    switch (t->dtype) {
    case FNX_F32: return (double)((const float *)data)[at];
    case FNX_F64: return ((const double *)data)[at];
    case FNX_I32: return ((const int32_t *)data)[at];
    case FNX_I64: return (double)((const int64_t *)data)[at];
    default: return ((const uint8_t *)data)[at];
    }
}

static fnx_status compare(const fnx_tensor *t, const void *got, int layout, const void *want) {
    double limit = t->dtype == FNX_F32 ? limit_f32 : t->dtype == FNX_F64 ? limit_f64 : 0, largest = 1;
    for (int64_t i = 0; i < t->count; i++) {
        double b = fabs(element(t, want, FNX_ROW_MAJOR, i));
        if (isfinite(b) && b > largest) largest = b; /* sums cancel: the limit is that of their largest neighbours */
    }
    for (int64_t i = 0; i < t->count; i++) {
        double a = element(t, got, layout, i), b = element(t, want, FNX_ROW_MAJOR, i);
        if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= limit * largest) continue;
        char text[FNX_DESCRIBE_BYTES];
        return fnx_error_set(FNX_E_INTERNAL,
                             "verify: %s, %s: element %" PRId64 " is %.9g in the group that made it, %.9g op by op",
                             fnx_ops[t->op].name, fnx_tensor_describe(t, text), i, a, b);
    }
    return FNX_OK;
}

fnx_status fnx_verify_end(fnx_hardware *h, fnx_recorder *r, const fnx_plan *p, const fnx_verification *v) {
    for (int64_t k = 0; k < p->n_outputs; k++) {
        const fnx_tensor *t = r->pending[p->outputs[k].record];
        size_t bytes = (size_t)t->count * fnx_dtypes[t->dtype].bytes;
        char *got = fnx_alloc(2 * bytes + 1);
        if (!got) return no_memory();
        fnx_status code = fnx_hardware_download(h, r->out_storage[k], got, bytes);
        if (!code) code = fnx_hardware_download(h, v->outs[k], got + bytes, bytes);
        if (!code) code = compare(t, got, p->outputs[k].layout, got + bytes);
        free(got);
        FNX_TRY(code);
    }
    return FNX_OK;
}

void fnx_verify_free(fnx_verification *v) {
    for (int64_t k = 0; v->outs && k < v->plan->n_outputs; k++) fnx_storage_unref(v->outs[k]);
    free(v->outs);
    fnx_plan_destroy(v->plan);
}
