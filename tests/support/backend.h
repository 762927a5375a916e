/* Opens a plugin the way libfornax does (dlopen, descriptor, init, device, queue), with the smallest possible host, and
 * runs fragments on it. For tests and benchmarks of plugins that can address host memory. */
#ifndef TESTS_SUPPORT_BACKEND_H
#define TESTS_SUPPORT_BACKEND_H

#include "fragment.h"

#include <fornax-plugin/plugin.h>

typedef struct backend {
    void *library;
    const fnx_plugin *plugin;
    int initialised;
    void *context;
    const fnx_device_table *table;
    void *device;
    void *queue;
    const fnx_group_interface *groups; /* NULL: not offered */
} backend;

/* The host table that plugins get: plain malloc, errors kept in backend_error. */
extern const fnx_host backend_host;
const char *backend_error(void);   /* text of this thread's last host->error */
int64_t backend_live_blocks(void); /* host->alloc minus host->free: 0 when nothing leaks */

/* Opens `path` and its device `address`. 0, or -1 with the reason in backend_error. Safe to close when it failed. */
int backend_open(backend *b, const char *path, const char *address);

/* The same with settings: what host->config answers while the device is opened. */
typedef const char *backend_config(const char *key, const char *fallback);
int backend_open_with(backend *b, const char *path, const char *address, backend_config *config);

void backend_close(backend *b);

/* Prepares the group, gets workspace from the device, launches once, syncs and releases. Returns the first failure
 * of these; what the error word said (sync's code) is not one: it goes to `word` (may be NULL). A decline fills
 * `why` (may be NULL). */
int32_t backend_run(backend *b, const fragment *f, fnx_error_word *word, fnx_decline *why);

/* One launch of a prepared handle, with its workspace, and a sync. */
int32_t backend_launch(backend *b, void *handle, const fnx_launch *launch, fnx_error_word *word);

#endif
