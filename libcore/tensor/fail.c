/* Tensors that could not be made, and tensors made of storage. */
#include "tensor/device.h"
#include "tensor/shape.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static void set_error(fnx_tensor *t, fnx_error *e) {
    if (fnx_state(t) == FNX_STORED) fnx_storage_unref(t->storage);
    if (fnx_state(t) == FNX_FAILED) fnx_error_unref(t->error);
    t->error = e;
    fnx_set_state(t, FNX_FAILED);
}

static fnx_status fail_with(fnx_tensor *t, fnx_status code, const char *format, va_list list) {
    char text[512];
    vsnprintf(text, sizeof text, format, list);
    set_error(t, fnx_error_new(code, "%s", text));
    return code;
}

fnx_status fnx_tensor_fail(fnx_tensor *t, fnx_status code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    fail_with(t, code, format, list);
    va_end(list);
    return code;
}

void fnx_tensor_fail_like(fnx_tensor *y, const fnx_tensor *cause) { set_error(y, fnx_error_ref(cause->error)); }

void fnx_tensor_fail_device(fnx_tensor *y, const fnx_device *device) { set_error(y, fnx_error_ref(device->error)); }

/* A block without record: host data, or a failure. NULL: no host memory. */
static fnx_tensor *bare(void) {
    fnx_thread *me = &fnx_thread_self;
    fnx_tensor *t = fnx_block_new(me);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    t->refs = t->handles = 1;
    t->op = FNX_OP_NONE;
    return t;
}

fnx_tensor *fnx_tensor_failed(fnx_status code, const char *format, ...) {
    fnx_tensor *t = bare();
    if (!t) return fnx_tensor_none();
    va_list list;
    va_start(list, format);
    fail_with(t, code, format, list);
    va_end(list);
    fnx_own(&fnx_thread_self, t);
    return t;
}

fnx_tensor *fnx_tensor_failed_from_last(void) {
    fnx_tensor *t = bare();
    if (!t) return fnx_tensor_none();
    set_error(t, fnx_error_take_last());
    fnx_own(&fnx_thread_self, t);
    return t;
}

fnx_tensor *fnx_tensor_stored(fnx_device *device, int dtype, int rank, const int64_t *sizes, fnx_storage *storage) {
    fnx_tensor *t = bare();
    if (!t) {
        fnx_storage_unref(storage);
        return fnx_tensor_none();
    }
    t->state = FNX_STORED, t->dtype = (uint8_t)dtype, t->rank = (uint8_t)rank, t->count = 1;
    for (int d = 0; d < rank; d++) t->size[d] = sizes[d], t->count *= sizes[d];
    t->storage = storage, t->device = device;
    t->owner = fnx_recorder_of(&fnx_thread_self, device->hardware);
    fnx_own(&fnx_thread_self, t);
    return t;
}

fnx_tensor *fnx_tensor_none(void) {
    static fnx_tensor t;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!t.error) {
        t.refs = INT32_MAX / 2, t.state = FNX_FAILED;
        t.error = fnx_error_new(FNX_E_NO_MEMORY, "no host memory for a tensor");
    }
    pthread_mutex_unlock(&lock);
    return &t;
}
