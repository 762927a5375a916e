/* A device handle: hardware plus settings. */
#ifndef TENSOR_DEVICE_H
#define TENSOR_DEVICE_H

#include "tensor/recorder.h"

struct fnx_device {
    fnx_hardware *hardware; /* NULL: failed */
    fnx_error *error;       /* why, if failed */
    bool autodiff, closed;
    fnx_settings settings;  /* without memory_limit, which is the hardware's */
    uint64_t plan_settings; /* of the settings, what shapes a plan: part of its key */
    fnx_device *next;       /* of the same hardware; handles are freed with it, since tensors point to them */
};

/* Seed and counter for one random operation; the counter moves on by one. Threads: safe. */
void fnx_device_take_counter(fnx_device *device, uint64_t *seed, uint64_t *counter);

/* ---- what tensors need of the hardware, which is made above them (libcore/dispatch) ------------------------------ */

/* Memory for `bytes`, of one reference. Errors: FNX_E_NO_MEMORY with the report of holders, set as the last error. */
fnx_status fnx_hardware_storage(fnx_hardware *h, uint64_t bytes, fnx_storage **out);

/* Copies host bytes into fresh storage, in order with what the device does; `borrow`: later, `data` must stay. */
fnx_status fnx_hardware_upload(fnx_hardware *h, fnx_storage *to, const void *data, size_t bytes, bool borrow);

/* Waits for the device, then copies out. Reports what the device met (FNX_E_INDEX). */
fnx_status fnx_hardware_download(fnx_hardware *h, const fnx_storage *from, void *data, size_t bytes);

/* Waits. Reports what the device met, once. */
fnx_status fnx_hardware_sync(fnx_hardware *h);

/* Whether device memory can be read at its addresses. */
bool fnx_hardware_host_memory(const fnx_hardware *h);

#endif
