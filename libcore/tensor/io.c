/* Values in and out: host arrays, reads, maps, and the questions a program asks of a tensor. */
#include "base/alloc.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdlib.h>

/* ---- in ---------------------------------------------------------------------------------------------------------- */

fnx_tensor *fnx_tensor_from(fnx_device *device, int dtype, int rank, const int64_t *sizes, const void *data,
                            int flags) {
    int64_t count = 0;
    if (fnx_device_status(device)) return fnx_tensor_failed_from_last();
    if (dtype == 0) dtype = device->settings.float_dtype;
    if (!fnx_dtype_valid(dtype) || !(FNX_MASK(dtype) & FNX_MASK_ANY))
        return fnx_tensor_failed(FNX_E_DTYPE, "tensor_from: dtype %d (%s) is not supported", dtype,
                                 fnx_dtype_text(dtype));
    if (flags & ~FNX_BORROW)
        return fnx_tensor_failed(FNX_E_INVALID, "tensor_from: unknown flags 0x%x", (unsigned)flags);
    if (fnx_shape_check("tensor_from", dtype, rank, sizes, &count)) return fnx_tensor_failed_from_last();
    size_t bytes = (size_t)count * fnx_dtypes[dtype].bytes;
    if (!data && bytes) return fnx_tensor_failed(FNX_E_INVALID, "tensor_from: data is NULL");
    fnx_storage *storage = NULL;
    if (fnx_hardware_storage(device->hardware, bytes, &storage) ||
        fnx_hardware_upload(device->hardware, storage, data, bytes, (flags & FNX_BORROW) != 0)) {
        fnx_storage_unref(storage);
        return fnx_tensor_failed_from_last();
    }
    return fnx_tensor_stored(device, dtype, rank, sizes, storage);
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

/* Axis 1 fastest in `from`, row-major in `to`: both [n][c][rest]. */
static void from_channels_last(const fnx_tensor *t, const char *from, char *to) {
    int64_t n = t->size[0], c = t->size[1], rest = c ? t->count / (n ? n : 1) / c : 0;
    size_t e = fnx_dtypes[t->dtype].bytes;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t j = 0; j < rest; j++)
                memcpy(to + (size_t)((i * c + k) * rest + j) * e, from + (size_t)((i * rest + j) * c + k) * e, e);
}

static fnx_status download(const fnx_tensor *t, void *out, size_t bytes) {
    fnx_hardware *h = t->device->hardware;
    if (t->layout == FNX_ROW_MAJOR || bytes == 0) return fnx_hardware_download(h, t->storage, out, bytes);
    char *raw = fnx_alloc(bytes);
    if (!raw) return fnx_error_set(FNX_E_NO_MEMORY, "reading a tensor: no host memory for %zu bytes", bytes);
    fnx_status code = fnx_hardware_download(h, t->storage, raw, bytes);
    if (!code) from_channels_last(t, raw, out);
    free(raw);
    return code;
}

static size_t bytes_of(const fnx_tensor *t) { return (size_t)t->count * fnx_dtypes[t->dtype].bytes; }

fnx_status fnx_eval(fnx_tensor *t) {
    if (!t) return fnx_error_set(FNX_E_INVALID, "eval: the tensor is NULL");
    fnx_keep(t);
    if (fnx_make_stored(t)) return fnx_error_raise(t->error);
    return fnx_hardware_sync(t->device->hardware);
}

fnx_status fnx_eval_all(fnx_tensor *const *ts, int n) {
    for (int i = 0; i < n; i++) fnx_keep(ts[i]);
    for (int i = 0; i < n; i++) FNX_TRY(fnx_eval(ts[i]));
    return FNX_OK;
}

fnx_status fnx_tensor_read(fnx_tensor *t, void *out, size_t bytes) {
    fnx_status code = FNX_OK;
    if (!t) code = fnx_error_set(FNX_E_INVALID, "tensor_read: the tensor is NULL");
    else if (fnx_make_stored(t)) code = fnx_error_raise(t->error);
    else if (bytes != bytes_of(t)) {
        char text[FNX_DESCRIBE_BYTES];
        code = fnx_error_set(FNX_E_INVALID, "tensor_read: %s has %zu bytes, the buffer %zu",
                             fnx_tensor_describe(t, text), bytes_of(t), bytes);
    } else if (!out && bytes) return fnx_error_set(FNX_E_INVALID, "tensor_read: out is NULL");
    else code = download(t, out, bytes);
    if (code && out) memset(out, 0, bytes);
    return code;
}

static double to_double(int dtype, const void *p) {
    switch (dtype) {
    case FNX_BOOL:
    case FNX_U8: return *(const uint8_t *)p;
    case FNX_I32: return *(const int32_t *)p;
    case FNX_I64: return (double)*(const int64_t *)p;
    case FNX_F32: return *(const float *)p;
    case FNX_F64: return *(const double *)p;
    default: return 0;
    }
}

fnx_status fnx_tensor_item(fnx_tensor *t, double *out) {
    uint64_t raw[2] = {0, 0};
    *out = 0;
    if (!t) return fnx_error_set(FNX_E_INVALID, "tensor_item: the tensor is NULL");
    if (fnx_state(t) != FNX_FAILED && t->count != 1) {
        char text[FNX_DESCRIBE_BYTES];
        return fnx_error_set(FNX_E_SHAPE, "tensor_item: %s has %lld elements, not one: fnx_tensor_read() it",
                             fnx_tensor_describe(t, text), (long long)t->count);
    }
    FNX_TRY(fnx_tensor_read(t, raw, fnx_state(t) == FNX_FAILED ? 0 : bytes_of(t)));
    *out = to_double(t->dtype, raw);
    return FNX_OK;
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

typedef struct mapping {
    fnx_storage *storage; /* held, or NULL */
    void *copy;           /* ours, or NULL */
} mapping;

fnx_status fnx_tensor_map(fnx_tensor *t, int flags, fnx_host_view *out) {
    memset(out, 0, sizeof *out);
    if (!t) return fnx_error_set(FNX_E_INVALID, "tensor_map: the tensor is NULL");
    if (fnx_make_stored(t)) return fnx_error_raise(t->error);
    mapping *m = calloc(1, sizeof *m);
    if (!m) return fnx_error_set(FNX_E_NO_MEMORY, "tensor_map: no host memory");
    bool direct =
        fnx_hardware_host_memory(t->device->hardware) && (t->layout == FNX_ROW_MAJOR || flags & FNX_MAP_STRIDED);
    fnx_status code;
    if (direct) {
        code = fnx_hardware_sync(t->device->hardware);
        m->storage = fnx_storage_ref(t->storage);
        __atomic_fetch_add(&t->storage->maps, 1, __ATOMIC_RELAXED);
        out->data = (const void *)(uintptr_t)t->storage->at.address;
    } else {
        m->copy = fnx_alloc(bytes_of(t) + 1);
        code =
            m->copy ? download(t, m->copy, bytes_of(t)) : fnx_error_set(FNX_E_NO_MEMORY, "tensor_map: no host memory");
        out->data = m->copy;
    }
    out->owner = m, out->rank = t->rank, out->dtype = t->dtype;
    memcpy(out->sizes, t->size, sizeof *t->size * t->rank);
    fnx_shape_strides(t->rank, t->size, direct ? t->layout : FNX_ROW_MAJOR, out->strides);
    if (code) fnx_tensor_unmap(out);
    return code;
}

void fnx_tensor_unmap(fnx_host_view *view) {
    mapping *m = view->owner;
    if (!m) return;
    if (m->storage) __atomic_fetch_sub(&m->storage->maps, 1, __ATOMIC_RELAXED);
    fnx_storage_unref(m->storage);
    free(m->copy);
    free(m);
    memset(view, 0, sizeof *view);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

fnx_status fnx_tensor_status(const fnx_tensor *t) {
    if (!t) return fnx_error_set(FNX_E_INVALID, "the tensor is NULL");
    return fnx_state(t) == FNX_FAILED ? fnx_error_raise(t->error) : FNX_OK;
}

int fnx_tensor_dtype(const fnx_tensor *t) { return t->dtype; }
int fnx_tensor_rank(const fnx_tensor *t) { return t->rank; }
const int64_t *fnx_tensor_sizes(const fnx_tensor *t) { return t->size; }
int64_t fnx_tensor_count(const fnx_tensor *t) { return t->count; }
fnx_device *fnx_tensor_device(const fnx_tensor *t) { return t->device; }
bool fnx_tensor_requires_grad(const fnx_tensor *t) { return (t->flags & FNX_T_GRAD) != 0; }

int64_t fnx_tensor_size(const fnx_tensor *t, int axis) {
    if (axis < 0) axis += t->rank;
    return axis >= 0 && axis < t->rank ? t->size[axis] : 0;
}

fnx_tensor *fnx_tensor_set_name(fnx_tensor *t, const char *name) {
    if (!t || !name) return t;
    if (!(t->flags & FNX_T_COLD)) t->grad = NULL, t->visit = 0;
    t->flags |= FNX_T_COLD;
    size_t n = strlen(name);
    if (n > FNX_NAME_BYTES - 1) n = FNX_NAME_BYTES - 1;
    memcpy(t->name, name, n);
    t->name[n] = 0;
    return t;
}
