/* Loss and hits (samples recognised) of every step, gathered on the device and read in batches: looking at a step would
 * wait for it, and the host would no longer record ahead. */
#ifndef TOOLS_HISTORY_H
#define TOOLS_HISTORY_H

#include <fornax/fornax.h>

enum { HISTORY_SERIES = 2, HISTORY_MOST = 4096 };

typedef struct history {
    fnx_variable *series[HISTORY_SERIES]; /* f32 [capacity] each */
    int64_t capacity;
    int64_t n; /* steps since the last read, at 0 .. n - 1 */
} history;

/* Room for `capacity` steps (at most HISTORY_MOST) between two reads. Never fails itself: variables carry the cause. */
void history_init(history *h, fnx_device *device, int64_t capacity);
void history_finish(history *h);

static inline bool history_full(const history *h) { return h->n == h->capacity; }

/* Records a step's values (f32 scalars) as part of the step's own graph. Not when full. They count once the step was
 * done: then the caller adds 1 to h->n. */
fnx_status history_put(history *h, fnx_tensor *loss, fnx_tensor *hits);

/* Waits for the recorded steps and copies their values out, up to `capacity` of each; returns how many at *n. */
fnx_status history_read(history *h, float *losses, float *hits, int64_t *n);

#endif
