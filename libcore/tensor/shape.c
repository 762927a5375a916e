/* See shape.h. */
#include "tensor/shape.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>

const fnx_dtype_info fnx_dtypes[16] = {
    [FNX_BOOL] = {"bool", 1, FNX_KIND_BOOL},     [FNX_I8] = {"i8", 1, FNX_KIND_INT},
    [FNX_I16] = {"i16", 2, FNX_KIND_INT},        [FNX_I32] = {"i32", 4, FNX_KIND_INT},
    [FNX_I64] = {"i64", 8, FNX_KIND_INT},        [FNX_U8] = {"u8", 1, FNX_KIND_UINT},
    [FNX_U16] = {"u16", 2, FNX_KIND_UINT},       [FNX_U32] = {"u32", 4, FNX_KIND_UINT},
    [FNX_U64] = {"u64", 8, FNX_KIND_UINT},       [FNX_F16] = {"f16", 2, FNX_KIND_FLOAT},
    [FNX_BF16] = {"bf16", 2, FNX_KIND_FLOAT},    [FNX_F32] = {"f32", 4, FNX_KIND_FLOAT},
    [FNX_F64] = {"f64", 8, FNX_KIND_FLOAT},      [FNX_C64] = {"c64", 8, FNX_KIND_COMPLEX},
    [FNX_C128] = {"c128", 16, FNX_KIND_COMPLEX},
};

static bool count_of(int dtype, int rank, const int64_t *sizes, int64_t *out) {
    int64_t n = 1, bytes;
    bool empty = false;
    for (int d = 0; d < rank; d++) { /* the other sizes of an empty tensor too: strides are made of them */
        if (sizes[d] < 0 || (sizes[d] && !fnx_size_mul(n, sizes[d], &n))) return false;
        empty |= sizes[d] == 0;
    }
    *out = empty ? 0 : n;
    return fnx_size_mul(n, fnx_dtypes[dtype].bytes, &bytes) && bytes <= INT64_MAX / 2;
}

fnx_status fnx_shape_check(const char *what, int dtype, int rank, const int64_t *sizes, int64_t *out_count) {
    if (rank < 0 || rank > (int)FNX_MAX_RANK)
        return fnx_error_set(FNX_E_SHAPE, "%s: rank %d is not in 0 to %u", what, rank, FNX_MAX_RANK);
    if (rank && !sizes) return fnx_error_set(FNX_E_INVALID, "%s: sizes is NULL", what);
    for (int d = 0; d < rank; d++)
        if (sizes[d] < 0) return fnx_error_set(FNX_E_SHAPE, "%s: the size of axis %d is %" PRId64, what, d, sizes[d]);
    if (!count_of(dtype, rank, sizes, out_count))
        return fnx_error_set(FNX_E_SHAPE, "%s: the product of the sizes overflows", what);
    return FNX_OK;
}

fnx_status fnx_shape_count(fnx_tensor *t) {
    if (count_of(t->dtype, t->rank, t->size, &t->count)) return FNX_OK;
    char text[FNX_DESCRIBE_BYTES];
    return fnx_tensor_fail(t, FNX_E_SHAPE, "the sizes of %s are negative or their product overflows",
                           fnx_tensor_describe(t, text));
}

void fnx_shape_strides(int rank, const int64_t *sizes, int layout, int64_t *strides) {
    int64_t at = 1;
    if (layout == FNX_CHANNELS_LAST && rank > 2) strides[1] = 1, at = sizes[1];
    for (int d = rank - 1; d >= 0; d--) {
        if (d == 1 && layout == FNX_CHANNELS_LAST && rank > 2) continue;
        strides[d] = at, at *= sizes[d] ? sizes[d] : 1;
    }
}

bool fnx_shape_axis(int rank, int axis, int *out) {
    *out = axis < 0 ? axis + rank : axis;
    return *out >= 0 && *out < rank;
}

void fnx_dtype_list(uint64_t mask, char *out, size_t size) {
    size_t n = 0;
    out[0] = 0;
    for (int d = 1; d < 16; d++)
        if (mask >> d & 1 && n < size)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", fnx_dtypes[d].name);
}

const char *fnx_tensor_describe(const fnx_tensor *t, char out[FNX_DESCRIBE_BYTES]) {
    size_t n = 0;
    const size_t size = FNX_DESCRIBE_BYTES;
    if (t->flags & FNX_T_COLD && t->name[0]) n += (size_t)snprintf(out, size, "%s ", t->name);
    else if (t->variable) n += (size_t)snprintf(out, size, "%.60s ", fnx_variable_name(t->variable));
    n += (size_t)snprintf(out + n, size - n, "%s[", fnx_dtype_text(t->dtype));
    for (int d = 0; d < t->rank && n < size - 24; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%" PRId64, d ? "," : "", t->size[d]);
    snprintf(out + n, size - n, "]");
    return out;
}
