/* What the planner asks of a backend, as dispatch offers it: capabilities, preparing work, layouts. */
#ifndef GRAPH_BACKEND_H
#define GRAPH_BACKEND_H

#include "base/error.h"

#include <fornax-plugin/plugin.h>
#include <stdbool.h>

/* Work that can be launched: a handle of fornax.group/0, or a kernel record with its group of one node. Lives as long
 * as the hardware; equal groups share one. */
typedef struct fnx_prepared {
    const fnx_group *group;
    void *handle;
    const fnx_kernel *kernel;        /* NULL: launch through the group interface */
    const struct fnx_prepared *host; /* not NULL: the host runs it, with this */
} fnx_prepared;

typedef struct fnx_backend {
    void *user;
    uint32_t max_nodes, max_bindings; /* of a group; never 0 */
    uint32_t memory_align;
    uint32_t wants;    /* FNX_WANTS_*: the promises that its groups state */
    uint32_t fallback; /* FNX_FALLBACK_*, of the graph that is planned */

    /* FNX_E_DECLINED: nothing runs this group, `why` says where it failed. Other failures are errors of the plan. */
    fnx_status (*prepare)(void *user, const fnx_group *group, const fnx_launch *shapes, const fnx_prepared **out,
                          fnx_decline *why);
    fnx_status (*prepare_on_host)(void *user, const fnx_group *one, const fnx_launch *shapes, const fnx_prepared **out,
                                  fnx_decline *why); /* of one node; for fallback=host */
    fnx_status (*workspace)(void *user, const fnx_prepared *work, const fnx_launch *shapes, uint64_t *out_bytes);
    /* One layout per operand, then per result. FNX_E_DECLINED: no wishes. `strided`: takes operands as they are. */
    fnx_status (*layout)(void *user, const fnx_group *one, const fnx_launch *shapes, fnx_layout *out, bool *strided);
    /* Whether a whole-op kernel is better than the op's decomposition. */
    bool (*whole)(void *user, uint16_t op, int dtype);
} fnx_backend;

#endif
