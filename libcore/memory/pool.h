/* Device memory: a caching allocator over a plugin's raw allocations, one per hardware.
 *
 * Freed memory is kept by size class and given out again in the order of the device's queue: what is enqueued later may
 * overwrite it at once. It goes back to the plugin only when trimmed, or when a limit or an exhausted device demands
 * it, and only after the queue has drained. */
#ifndef MEMORY_POOL_H
#define MEMORY_POOL_H

#include "base/error.h"
#include "memory/storage.h"

#include <fornax-plugin/plugin.h>
#include <fornax/device.h>
#include <pthread.h>

enum { FNX_POOL_CLASSES = 4 * 48 };

struct fnx_pool {
    pthread_mutex_t lock;
    const fnx_device_table *table;
    void *device;
    void (*drain)(void *user); /* waits until nothing enqueued uses freed memory */
    void *user;
    fnx_storage *cache[FNX_POOL_CLASSES];
    uint64_t limit, in_use, in_use_peak, held, held_peak, arena, padding;
    int64_t live; /* storages given out */
};

fnx_status fnx_pool_init(fnx_pool *p, const fnx_device_table *table, void *device, void (*drain)(void *), void *user);
void fnx_pool_finish(fnx_pool *p); /* everything goes back to the plugin */

/* Memory of one reference for `bytes` (0 is fine). Errors: FNX_E_NO_MEMORY with a report of who holds what. */
fnx_status fnx_pool_take(fnx_pool *p, uint64_t bytes, fnx_storage **out);

void fnx_pool_trim(fnx_pool *p);
void fnx_pool_report(fnx_pool *p, fnx_memory_report *out);
void fnx_pool_reset_peaks(fnx_pool *p);
void fnx_pool_set_limit(fnx_pool *p, uint64_t bytes);
void fnx_pool_count_arena(fnx_pool *p, int64_t change); /* part of in_use that arenas are */

#endif
