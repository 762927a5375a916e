/* One opened device of a plugin: its tables, queue, memory, prepared work, and the recorders that feed it.
 *
 * All recorders of a piece of hardware share one queue, in order; `launch` serializes what they enqueue. */
#ifndef DISPATCH_HARDWARE_H
#define DISPATCH_HARDWARE_H

#include "graph/backend.h"
#include "graph/plan.h"
#include "memory/pool.h"
#include "tensor/device.h"

enum { FNX_BACKEND_OPS = FNX_OP_LIMIT };

typedef struct fnx_site_range { /* launches of one plan, to name what an error word points at */
    uint32_t first, n;
    uint16_t *op; /* per step */
    const fnx_group **group;
} fnx_site_range;

typedef struct fnx_staged { /* a host copy that an enqueued upload still reads */
    void *data;
    struct fnx_staged *next;
} fnx_staged;

struct fnx_hardware {
    char *spec, *plugin_name, *address; /* "cpu:0", "cpu", "0" */
    const fnx_device_table *table;
    void *device, *queue;
    const fnx_group_interface *groups; /* or NULL */
    const fnx_layout_interface *layouts;
    fnx_group_caps caps;
    fnx_device_info info;
    fnx_backend backend;
    fnx_pool pool;

    pthread_mutex_t launch; /* held while something is enqueued, and for what follows */
    bool busy;              /* something was enqueued since the last sync */
    uint64_t in_flight;     /* plans enqueued since the last sync */
    fnx_staged *staged;
    uint64_t staged_bytes;
    fnx_error_word pending; /* an error met by a sync that could not report it */
    char pending_text[256]; /* the plugin's words for it, or "" */
    fnx_site_range *sites;
    int64_t n_sites, sites_capacity;
    uint32_t next_site;

    pthread_mutex_t lock;    /* of what follows */
    fnx_prepared **prepared; /* open addressing by the group's hash */
    int64_t prepared_capacity, n_prepared;
    fnx_recorder *recorders;
    fnx_device *handles;
    int64_t open_handles;
    uint64_t seed, counter, fallbacks;
    uint64_t warned[FNX_BACKEND_OPS]; /* per op the dtypes whose host fallback was warned of */
    struct fnx_hardware *host;        /* of the host fallback, opened at first use */
    struct fnx_hardware *next;
};

/* Opens plugin:address, or shares what is open already. */
fnx_status fnx_hardware_open(const char *plugin, const char *address, const char *options, fnx_hardware **out);

void fnx_hardware_ref(fnx_hardware *h);   /* one more handle */
void fnx_hardware_unref(fnx_hardware *h); /* one handle less; the last one gives memory back */

/* Waits; `launch` is held. Keeps what the device met in `pending`. */
void fnx_hardware_drain_locked(fnx_hardware *h);

/* ---- ladder.c: who runs what ------------------------------------------------------------------------------------- */

void fnx_ladder_init(fnx_hardware *h);
void fnx_ladder_end(fnx_hardware *h);
/* Work of h that the host runs with `work`. `lock` is held. */
fnx_status fnx_ladder_keep_host(fnx_hardware *h, const fnx_group *one, const fnx_prepared *work,
                                const fnx_prepared **out);
uint64_t fnx_ladder_dtypes(const fnx_hardware *h, uint16_t op); /* that the backend claims for it */

/* ---- execute.c --------------------------------------------------------------------------------------------------- */

/* Enqueues a plan. `outs`: storage of its outputs, reserved; `started`: whether anything was launched when it fails. */
fnx_status fnx_execute(fnx_hardware *h, fnx_recorder *r, fnx_plan *p, fnx_storage *const *outs, bool *started);
/* Numbers the plan's launches, so that errors can name ops. */
fnx_status fnx_sites_add(fnx_hardware *h, fnx_plan *p);
/* `text`: what the plugin said itself, or "". */
fnx_status fnx_site_error(fnx_hardware *h, const fnx_error_word *word, const char *text);

#endif
