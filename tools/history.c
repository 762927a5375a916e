/* A series is a variable that each step replaces with itself, one element assigned. Where that is, is an argument of
 * the plan: all steps share one. */
#include "history.h"

#include <string.h>

static const char *const names[HISTORY_SERIES] = {"losses", "hits"};

void history_init(history *h, fnx_device *device, int64_t capacity) {
    FNX_SCOPE_QUIET;
    *h = (history){.capacity = capacity < HISTORY_MOST ? capacity : HISTORY_MOST};
    for (int i = 0; i < HISTORY_SERIES; i++)
        h->series[i] = fnx_variable_create(names[i], fnx_fill(device, FNX_F32, FNX_SHAPE(h->capacity), 0), false);
}

void history_finish(history *h) {
    for (int i = 0; i < HISTORY_SERIES; i++) fnx_variable_destroy(h->series[i]);
    *h = (history){0};
}

fnx_status history_put(history *h, fnx_tensor *loss, fnx_tensor *hits) {
    FNX_NO_GRAD;
    fnx_tensor *const values[HISTORY_SERIES] = {loss, hits};
    for (int i = 0; i < HISTORY_SERIES; i++) {
        fnx_tensor *series = fnx_variable_get(h->series[i]), *value = fnx_reshape(values[i], FNX_SHAPE(1));
        fnx_status code = fnx_variable_set(h->series[i], fnx_slice_assign(series, value, &h->n, NULL));
        if (code) return code;
    }
    return FNX_OK;
}

fnx_status history_read(history *h, float *losses, float *hits, int64_t *n) {
    FNX_SCOPE_QUIET;
    float all[HISTORY_MOST], *const out[HISTORY_SERIES] = {losses, hits};
    *n = 0;
    for (int i = 0; i < HISTORY_SERIES && h->n; i++) {
        fnx_status code = fnx_tensor_read(fnx_variable_get(h->series[i]), all, (size_t)h->capacity * sizeof *all);
        if (code) return code;
        memcpy(out[i], all, (size_t)h->n * sizeof *all);
    }
    *n = h->n;
    h->n = 0;
    return FNX_OK;
}
