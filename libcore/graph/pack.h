/* Interval packing: temporaries of a plan in one arena. */
#ifndef GRAPH_PACK_H
#define GRAPH_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fnx_interval {
    int32_t first, last; /* positions at which it is in use, both included */
    uint64_t bytes;      /* a multiple of the alignment */
    uint64_t offset;     /* out */
} fnx_interval;

/* Gives each interval an offset such that no two that are in use at once overlap. Returns false without host memory;
 * *out_bytes: the arena's size, *out_bound: the most bytes in use at once, which no packing can beat. */
bool fnx_pack(fnx_interval *interval, int64_t n, uint64_t *out_bytes, uint64_t *out_bound);

#endif
