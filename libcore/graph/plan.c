/* Plans: their memory, their key and cache. The key is the byte streams of the recorder, hashed at once and, on a hit,
 * always compared in full. */
#include "graph/plan.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <stdlib.h>

void *fnx_plan_alloc(fnx_plan *p, size_t bytes) {
    void *block = calloc(1, bytes ? bytes : 1);
    if (block && fnx_grow((void **)&p->owned, &p->owned_capacity, sizeof *p->owned, p->n_owned + 1)) {
        p->owned[p->n_owned++] = block;
        return block;
    }
    free(block);
    return NULL;
}

void fnx_plan_destroy(fnx_plan *p) {
    if (!p) return;
    for (int64_t i = 0; i < p->n_owned; i++) free(p->owned[i]);
    free(p->owned), free(p->patches), free(p->arena_patches), free(p->dyn_patches), free(p->scalar_patches);
    free(p);
}

/* ---- cache ------------------------------------------------------------------------------------------------------- */

void fnx_plan_key(const fnx_recorder *r, uint64_t key[2]) {
    key[0] = (uint64_t)r->n << 32 ^ (uint64_t)r->n_words, key[1] = (uint64_t)r->n_inputs;
    fnx_hash128(r->code, sizeof *r->code * (size_t)r->n, key);
    fnx_hash128(r->words, sizeof *r->words * (size_t)r->n_words, key);
    fnx_hash128(r->demand, (size_t)r->n, key);
    fnx_hash128(r->donatable, (size_t)r->n_inputs, key);
}

fnx_plan *fnx_plan_find(fnx_recorder *r, const uint64_t key[2]) {
    fnx_plan_cache *c = &r->cache;
    if (!c->capacity) return NULL;
    for (uint64_t at = key[0] % (uint64_t)c->capacity; c->slot[at]; at = (at + 1) % (uint64_t)c->capacity) {
        fnx_plan *p = c->slot[at];
        if (p->key[0] == key[0] && p->key[1] == key[1] && p->n == r->n && p->n_words == r->n_words &&
            p->n_inputs == r->n_inputs && !memcmp(p->code, r->code, sizeof *p->code * (size_t)r->n) &&
            !memcmp(p->words, r->words, sizeof *p->words * (size_t)r->n_words) &&
            !memcmp(p->demand, r->demand, (size_t)r->n) &&
            (!r->n_inputs || !memcmp(p->donatable, r->donatable, (size_t)r->n_inputs))) {
            p->last_used = ++c->clock;
            return p;
        }
    }
    return NULL;
}

static void put(fnx_plan **slot, int64_t capacity, fnx_plan *p) {
    uint64_t at = p->key[0] % (uint64_t)capacity;
    while (slot[at]) at = (at + 1) % (uint64_t)capacity;
    slot[at] = p;
}

/* Moves what was used after `since` into a table of this capacity; the rest goes. */
static fnx_status rebuild(fnx_plan_cache *c, int64_t capacity, uint64_t since) {
    fnx_plan **slot = calloc((size_t)capacity, sizeof *slot);
    if (!slot) return fnx_error_set(FNX_E_NO_MEMORY, "no host memory for the cache of plans");
    int64_t used = 0;
    for (int64_t i = 0; i < c->capacity; i++) {
        if (!c->slot[i]) continue;
        if (c->slot[i]->last_used >= since) put(slot, capacity, c->slot[i]), used++;
        else fnx_plan_destroy(c->slot[i]);
    }
    free(c->slot);
    c->slot = slot, c->capacity = capacity, c->used = used;
    return FNX_OK;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The median of when plans were last used. */
static uint64_t median_use(const fnx_plan_cache *c) {
    uint64_t *use = malloc(sizeof *use * (size_t)c->used), median = 0;
    int64_t n = 0;
    if (!use) return 0;
    for (int64_t i = 0; i < c->capacity; i++)
        if (c->slot[i]) use[n++] = c->slot[i]->last_used;
    qsort(use, (size_t)n, sizeof *use, ascending);
    median = use[n / 2];
    free(use);
    return median;
}

fnx_status fnx_plan_insert(fnx_recorder *r, fnx_plan *p) {
    fnx_plan_cache *c = &r->cache;
    if (c->used >= FNX_PLANS_MAX) FNX_TRY(rebuild(c, c->capacity, median_use(c)));
    if (2 * c->used >= c->capacity) FNX_TRY(rebuild(c, c->capacity * 2 + 64, 0));
    p->last_used = ++c->clock;
    put(c->slot, c->capacity, p);
    c->used++;
    return FNX_OK;
}

void fnx_plan_cache_clear(fnx_recorder *r) {
    for (int64_t i = 0; i < r->cache.capacity; i++) fnx_plan_destroy(r->cache.slot[i]);
    free(r->cache.slot);
    memset(&r->cache, 0, sizeof r->cache);
}
