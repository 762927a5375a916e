/* Tensors out of nothing: fill, iota, random numbers. */
#include "base/error.h"
#include "ops/record.h"
#include "tensor/device.h"
#include "tensor/shape.h"

#include <fornax/ops.h>
#include <math.h>

/* Checks what the record cannot hold: rank and sizes; resolves dtype 0. */
static fnx_tensor *source(fnx_device *device, int op, int dtype, bool integer, int rank, const int64_t *sizes,
                          const void *attr, const uint64_t *scalars, int n_scalars) {
    int64_t count;
    if (fnx_device_status(device)) return fnx_tensor_failed_from_last();
    if (dtype == 0) dtype = integer ? device->settings.int_dtype : device->settings.float_dtype;
    if (!fnx_dtype_valid(dtype))
        return fnx_tensor_failed(FNX_E_DTYPE, "%s: there is no dtype %d", fnx_ops[op].name, dtype);
    if (fnx_shape_check(fnx_ops[op].name, dtype, rank, sizes, &count)) return fnx_tensor_failed_from_last();
    return fnx_record(&(fnx_call){.op = (uint16_t)op,
                                  .dtype = (uint8_t)dtype,
                                  .rank = (uint8_t)rank,
                                  .sizes = sizes,
                                  .attr = attr,
                                  .scalars = scalars,
                                  .n_scalars = (uint8_t)n_scalars,
                                  .device = device});
}

fnx_tensor *fnx_fill(fnx_device *device, int dtype, int rank, const int64_t *sizes, double value) {
    int effective = dtype || !device ? dtype : device->settings.float_dtype;
    uint64_t bits;
    if (!fnx_scalar_bits(effective, value, &bits))
        return fnx_tensor_failed(FNX_E_DTYPE, "fill: %g is no %s", value, fnx_dtype_text(dtype));
    return source(device, FNX_OP_fill, dtype, false, rank, sizes, NULL, &bits, 1);
}

fnx_tensor *fnx_fill_like(fnx_tensor *x, double value) {
    if (!fnx_usable(x)) return fnx_unusable("fill_like", 0, x);
    return fnx_fill(x->device, x->dtype, x->rank, x->size, value);
}

fnx_tensor *fnx_iota(fnx_device *device, int dtype, int rank, const int64_t *sizes, int axis) {
    int a;
    if (!fnx_shape_axis(rank, axis, &a))
        return fnx_tensor_failed(FNX_E_SHAPE, "iota: axis %d of a tensor of rank %d", axis, rank);
    fnx_attr_axis attr = {(uint32_t)a, 0};
    return source(device, FNX_OP_iota, dtype, true, rank, sizes, &attr, NULL, 0);
}

static fnx_tensor *random_source(fnx_device *device, int op, int dtype, int rank, const int64_t *sizes) {
    uint64_t key[2];
    fnx_device_take_counter(device, &key[0], &key[1]);
    return source(device, op, dtype, false, rank, sizes, NULL, key, 2);
}

fnx_tensor *fnx_uniform(fnx_device *device, int dtype, int rank, const int64_t *sizes, double low, double high) {
    fnx_tensor *u = random_source(device, FNX_OP_uniform, dtype, rank, sizes);
    if ((low == 0 && high == 1) || fnx_state(u) == FNX_FAILED) return u;
    u = fnx_add_scalar(fnx_mul_scalar(u, high - low), low);
    if (low == high) return u;
    /* the largest numbers may round up to `high`, which is not in the range */
    double last = u->dtype == FNX_F32 ? (double)nextafterf((float)high, (float)low) : nextafter(high, low);
    return low < high ? fnx_minimum_scalar(u, last) : fnx_maximum_scalar(u, last);
}

fnx_tensor *fnx_normal(fnx_device *device, int dtype, int rank, const int64_t *sizes, double mean, double deviation) {
    fnx_tensor *n = random_source(device, FNX_OP_normal, dtype, rank, sizes);
    return mean == 0 && deviation == 1 ? n : fnx_add_scalar(fnx_mul_scalar(n, deviation), mean);
}
