/* Pooling and its companions. "where" is the row-major number, within its window, of the element that won. */
#include "window.h"

/* The position within the window that `number` names. False: it names none. */
static bool place_in_window(const ref_window *w, int64_t number, int64_t *k) {
    if (number < 0 || number >= ref_window_count(w)) return false;
    for (uint32_t d = 3; d-- > 0;) {
        k[d] = number % w->size[d];
        number /= w->size[d];
    }
    return true;
}

void ref_max_pool(const ref_call *c) {
    const uint32_t spatial = c->attr.pool.spatial;
    const ref_window window = ref_pool_window(&c->attr.pool);
    const ref_view x = ref_three_axes(&c->in[0], spatial), y = ref_three_axes(&c->out[0], spatial);
    const bool is_float = ref_is_float(x.dtype), wants_where = c->n_results > 1;
    ref_view where = {0};
    int64_t at[5] = {0};
    if (wants_where) where = ref_three_axes(&c->out[1], spatial);
    for (bool more = ref_count(&y) > 0; more; more = ref_next(&y, 5, at)) {
        int64_t k[3] = {0}, from[5] = {at[0], at[1]}, number = 0, winner = -1;
        ref_cell best = {0};
        for (bool inner = ref_window_count(&window) > 0; inner; inner = ref_next_in_window(&window, k)) {
            if (ref_touches(&window, &x, &at[2], k, &from[2])) {
                const ref_cell v = ref_load(&x, ref_offset(&x, from));
                if (winner < 0 || ref_beats(v, best, is_float)) best = v, winner = number;
            }
            number++;
        }
        ref_store(&y, ref_offset(&y, at), best);
        if (wants_where) ref_store(&where, ref_offset(&where, at), (ref_cell){.i = winner < 0 ? 0 : winner});
    }
}

/* Each element of x looks for the windows that it won. */
void ref_max_pool_grad(const ref_call *c) {
    const uint32_t spatial = c->attr.pool.spatial;
    const ref_window window = ref_pool_window(&c->attr.pool);
    const ref_view dy = ref_three_axes(&c->in[0], spatial), where = ref_three_axes(&c->in[1], spatial);
    const ref_view dx = ref_three_axes(&c->out[0], spatial);
    const bool is_float = ref_is_float(dx.dtype);
    int64_t at[5] = {0};
    for (bool more = ref_count(&dx) > 0; more; more = ref_next(&dx, 5, at)) {
        int64_t k[3] = {0}, t[5] = {at[0], at[1]}, number = 0;
        ref_cell sum = {0};
        for (bool inner = ref_window_count(&window) > 0; inner; inner = ref_next_in_window(&window, k)) {
            if (ref_touched(&window, &dy, &at[2], k, &t[2]) && ref_load(&where, ref_offset(&where, t)).i == number)
                sum = ref_add(sum, ref_load(&dy, ref_offset(&dy, t)), is_float);
            number++;
        }
        ref_store(&dx, ref_offset(&dx, at), sum);
    }
}

void ref_max_pool_pick(const ref_call *c) {
    const uint32_t spatial = c->attr.pool.spatial;
    const ref_window window = ref_pool_window(&c->attr.pool);
    const ref_view z = ref_three_axes(&c->in[0], spatial), where = ref_three_axes(&c->in[1], spatial);
    const ref_view y = ref_three_axes(&c->out[0], spatial);
    int64_t at[5] = {0};
    for (bool more = ref_count(&y) > 0; more; more = ref_next(&y, 5, at)) {
        int64_t k[3], from[5] = {at[0], at[1]};
        ref_cell picked = {0};
        if (place_in_window(&window, ref_load(&where, ref_offset(&where, at)).i, k) &&
            ref_touches(&window, &z, &at[2], k, &from[2]))
            picked = ref_load(&z, ref_offset(&z, from));
        ref_store(&y, ref_offset(&y, at), picked);
    }
}

/* What an average over the window that stands at t divides by. */
static double divisor(const ref_call *c, const ref_window *window, const ref_view *x, const int64_t *t) {
    int64_t k[3] = {0}, s[3], inside = 0;
    if (!(c->attr.pool.flags & FNX_POOL_EXCLUDE_PAD)) return (double)ref_window_count(window);
    for (bool more = true; more; more = ref_next_in_window(window, k)) inside += ref_touches(window, x, t, k, s);
    return (double)inside;
}

void ref_avg_pool(const ref_call *c) {
    const uint32_t spatial = c->attr.pool.spatial;
    const ref_window window = ref_pool_window(&c->attr.pool);
    const ref_view x = ref_three_axes(&c->in[0], spatial), y = ref_three_axes(&c->out[0], spatial);
    int64_t at[5] = {0};
    for (bool more = ref_count(&y) > 0; more; more = ref_next(&y, 5, at)) {
        int64_t k[3] = {0}, from[5] = {at[0], at[1]};
        double sum = 0;
        for (bool inner = ref_window_count(&window) > 0; inner; inner = ref_next_in_window(&window, k)) {
            if (ref_touches(&window, &x, &at[2], k, &from[2])) sum += ref_load(&x, ref_offset(&x, from)).f;
        }
        ref_store(&y, ref_offset(&y, at), (ref_cell){.f = sum / divisor(c, &window, &x, &at[2])});
    }
}

void ref_avg_pool_grad(const ref_call *c) {
    const uint32_t spatial = c->attr.pool.spatial;
    const ref_window window = ref_pool_window(&c->attr.pool);
    const ref_view dy = ref_three_axes(&c->in[0], spatial), dx = ref_three_axes(&c->out[0], spatial);
    int64_t at[5] = {0};
    for (bool more = ref_count(&dx) > 0; more; more = ref_next(&dx, 5, at)) {
        int64_t k[3] = {0}, t[5] = {at[0], at[1]};
        double sum = 0;
        for (bool inner = ref_window_count(&window) > 0; inner; inner = ref_next_in_window(&window, k)) {
            if (ref_touched(&window, &dy, &at[2], k, &t[2]))
                sum += ref_load(&dy, ref_offset(&dy, t)).f / divisor(c, &window, &dx, &t[2]);
        }
        ref_store(&dx, ref_offset(&dx, at), (ref_cell){.f = sum});
    }
}
