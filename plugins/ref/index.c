/* gather and scatter_add: one axis of the position is replaced by an index that is read from memory, and checked. */
#include "ref.h"

/* `replaced` is `at` with the axis replaced by the index that stands there. False, with the error noted: it is outside
 * the `limit` elements of the axis. */
static bool replace_axis(const ref_call *c, const ref_view *index, const int64_t *at, int64_t *replaced,
                         int64_t limit) {
    const int64_t i = ref_load(index, ref_offset(index, at)).i;
    for (uint32_t d = 0; d < FNX_MAX_RANK; d++) replaced[d] = at[d];
    replaced[c->attr.axis.axis] = i;
    if (i >= 0 && i < limit) return true;
    ref_fail(c, FNX_E_INDEX, i, limit);
    return false;
}

void ref_gather(const ref_call *c) {
    const ref_view *x = &c->in[0], *index = &c->in[1], *y = &c->out[0];
    const int64_t limit = x->size[c->attr.axis.axis];
    int64_t at[FNX_MAX_RANK] = {0}, from[FNX_MAX_RANK];
    for (bool more = ref_count(y) > 0; more; more = ref_next(y, y->rank, at)) {
        const bool inside = replace_axis(c, index, at, from, limit);
        ref_store(y, ref_offset(y, at), inside ? ref_load(x, ref_offset(x, from)) : (ref_cell){0});
    }
}

void ref_scatter_add(const ref_call *c) {
    const ref_view *target = &c->in[0], *index = &c->in[1], *update = &c->in[2], *y = &c->out[0];
    const int64_t limit = y->size[c->attr.axis.axis];
    const bool is_float = ref_is_float(y->dtype);
    ref_view walk = *update; /* update and index may be broadcast to one another */
    int64_t at[FNX_MAX_RANK] = {0}, to[FNX_MAX_RANK];
    ref_copy(target, y);
    for (uint32_t d = 0; d < walk.rank; d++)
        if (walk.size[d] == 1) walk.size[d] = index->size[d];
    for (bool more = ref_count(&walk) > 0; more; more = ref_next(&walk, walk.rank, at)) {
        if (!replace_axis(c, index, at, to, limit)) continue;
        const int64_t o = ref_offset(y, to);
        ref_store(y, o, ref_add(ref_load(y, o), ref_load(update, ref_offset(update, at)), is_float));
    }
}
