/* Largest first, each at the lowest offset that is free during its life: within a few per cent of the bound for the
 * graphs of training steps, where lives nest. */
#include "graph/pack.h"

#include <stdlib.h>

static int by_size(const void *a, const void *b) {
    const fnx_interval *x = *(fnx_interval *const *)a, *y = *(fnx_interval *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x < y ? -1 : x > y;
}

static uint64_t most_alive(const fnx_interval *interval, int64_t n, int64_t *delta, int64_t positions) {
    uint64_t most = 0;
    int64_t alive = 0;
    for (int64_t i = 0; i < n; i++)
        delta[interval[i].first] += (int64_t)interval[i].bytes,
            delta[interval[i].last + 1] -= (int64_t)interval[i].bytes;
    for (int64_t p = 0; p <= positions; p++)
        if ((uint64_t)(alive += delta[p]) > most) most = (uint64_t)alive;
    return most;
}

bool fnx_pack(fnx_interval *interval, int64_t n, uint64_t *out_bytes, uint64_t *out_bound) {
    int64_t positions = 0;
    for (int64_t i = 0; i < n; i++)
        if (interval[i].last + 1 > positions) positions = interval[i].last + 1;
    fnx_interval **order = malloc(sizeof *order * (size_t)(2 * n + 1)), **placed = order + n; /* placed: by offset */
    int64_t *delta = calloc((size_t)positions + 1, sizeof *delta);
    *out_bytes = *out_bound = 0;
    if (order && delta) {
        *out_bound = most_alive(interval, n, delta, positions);
        for (int64_t i = 0; i < n; i++) order[i] = &interval[i];
        qsort(order, (size_t)n, sizeof *order, by_size);
        for (int64_t i = 0; i < n; i++) {
            fnx_interval *x = order[i];
            uint64_t at = 0;
            for (int64_t j = 0; j < i; j++) {
                const fnx_interval *y = placed[j];
                if (y->last < x->first || x->last < y->first) continue;
                if (y->offset >= at + x->bytes) break;
                if (y->offset + y->bytes > at) at = y->offset + y->bytes;
            }
            x->offset = at;
            if (at + x->bytes > *out_bytes) *out_bytes = at + x->bytes;
            int64_t j = i;
            for (; j > 0 && placed[j - 1]->offset > at; j--) placed[j] = placed[j - 1];
            placed[j] = x;
        }
    }
    bool ok = order && delta;
    free(order), free(delta);
    return ok;
}
