/* A plan: what a flush runs, built once per structure of graph and then replayed.
 *
 * Everything that the key fixes is ready to launch: groups are prepared, sizes and strides stand in the launches. What
 * may differ each time is patched in: addresses of inputs and outputs, the arena's address if it moved, starts of
 * slices, and scalars. */
#ifndef GRAPH_PLAN_H
#define GRAPH_PLAN_H

#include "graph/backend.h"
#include "graph/recorder.h"

typedef struct fnx_step { /* one call into the plugin */
    const fnx_prepared *work;
    fnx_launch *launches;
    uint32_t n;  /* independent launches of one handle */
    uint16_t op; /* of the first node, for messages */
} fnx_step;

typedef struct fnx_patch { /* address = base of a buffer + offset */
    fnx_binding *at;
    int32_t buffer; /* inputs, then outputs */
    uint64_t offset;
} fnx_patch;

typedef struct fnx_arena_patch {
    fnx_binding *at;
    uint64_t offset;
} fnx_arena_patch;

typedef struct fnx_dyn_patch { /* address += argument * bytes, after the others */
    fnx_binding *at;
    int32_t arg;
    int64_t bytes;
} fnx_dyn_patch;

typedef struct fnx_scalar_patch {
    fnx_scalar *at;
    int32_t arg;
    uint8_t dtype;
} fnx_scalar_patch;

typedef struct fnx_output {
    int64_t record; /* pending record that it is the value of */
    int32_t from;   /* input whose storage it takes over, or -1 */
    int32_t share;  /* buffer whose storage it shares (an input, or an earlier output), or -1 */
    uint8_t layout;
    uint64_t bytes;
} fnx_output;

typedef struct fnx_plan_stats {
    uint64_t arena_bytes, sum_bytes, bound_bytes; /* arena; all temporaries; the largest set alive at once */
    uint32_t records, groups, grouped_nodes, launches;
} fnx_plan_stats;

struct fnx_plan {
    uint64_t key[2]; /* and the key in full: a hit is compared, always */
    int64_t n, n_words, n_inputs;
    fnx_code *code;
    uint64_t *words;
    uint8_t *demand, *donatable;
    uint64_t last_used;
    uint32_t first_site; /* of its steps */

    fnx_step *steps;
    fnx_patch *patches;
    fnx_arena_patch *arena_patches;
    fnx_dyn_patch *dyn_patches;
    fnx_scalar_patch *scalar_patches;
    fnx_output *outputs;
    int64_t n_steps, n_patches, n_arena_patches, n_dyn_patches, n_scalar_patches, n_outputs;
    uint64_t arena_address; /* that arena_patches were made for */
    fnx_plan_stats stats;

    void **owned;
    int64_t n_owned, owned_capacity;
};

/* ---- cache ------------------------------------------------------------------------------------------------------- */

enum { FNX_PLANS_MAX = 1024 }; /* per recorder; the least recently used half goes */

void fnx_plan_key(const fnx_recorder *r, uint64_t key[2]);
fnx_plan *fnx_plan_find(fnx_recorder *r, const uint64_t key[2]);
fnx_status fnx_plan_insert(fnx_recorder *r, fnx_plan *p);
void fnx_plan_cache_clear(fnx_recorder *r);

/* ---- building ---------------------------------------------------------------------------------------------------- */

/* A plan for r's pending graph, whose demand is decided. Errors: FNX_E_UNSUPPORTED (names the op), FNX_E_NO_MEMORY,
 * what a plugin failed with. */
fnx_status fnx_plan_build(fnx_recorder *r, const fnx_backend *backend, const uint64_t key[2], fnx_plan **out);
void fnx_plan_destroy(fnx_plan *p);

/* Zeroed memory that goes with the plan, or NULL. */
void *fnx_plan_alloc(fnx_plan *p, size_t bytes);

/* Turns a scalar argument into the 16 bytes of a dtype. */
static inline fnx_scalar fnx_scalar_make(int dtype, uint64_t bits) {
    fnx_scalar s = {{0, 0}};
    if (dtype == FNX_F32) {
        float f = (float)fnx_double_of_bits(bits);
        memcpy(&s, &f, sizeof f);
    } else s.bits[0] = bits; /* integers: the low bytes, little endian */
    return s;
}

#endif
