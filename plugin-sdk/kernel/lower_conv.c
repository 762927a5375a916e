/* Convolution and its two adjoints, directly: each element of the result is one sum, of a thread or, where it is
 * long, of a work-group. All three are sums of x[n, c, s] w[o, c, k] y[n, o, t] over the matching (s, k, t). */
#include "lower_window.h"

typedef struct conv {
    uint32_t x, w, y; /* values; y is the output of the convolution, whichever of the three is the result */
    lower_window window;
    kir_value in, out; /* channels of a group */
    kir_value sum;
} conv;

static void add_product(lowering *l, const conv *v, uint32_t a, const kir_value *at_a, uint32_t b,
                        const kir_value *at_b) {
    kir *k = &l->k;
    kir_set(k, v->sum, kir_fma(k, lower_load(l, a, at_a), lower_load(l, b, at_b), kir_get(k, v->sum)));
}

static void forward(lowering *l, conv *v) {
    kir *k = &l->k;
    kir_value y[5], x[5], w[5];
    lower_each(l, v->y, y);
    v->sum = kir_var(k, lower_number(l, lower_register(fnx_group_value(l->g, v->y)->dtype), 0));
    x[0] = y[0], w[0] = y[1];
    kir_value first = lower_mul(l, kir_bin(k, KIR_DIV, y[1], v->out), v->in);
    lower_window_open(l, &v->window, &w[2]);
    kir_if(k, lower_touches(l, &v->window, &y[2], &w[2], &x[2]));
    w[1] = kir_for(k, lower_index(l, 0), v->in, 1, 0);
    x[1] = lower_add(l, first, w[1]);
    add_product(l, v, v->x, x, v->w, w);
    kir_end(k), kir_end(k);
    lower_window_close(l, &v->window);
    lower_store(l, v->y, y, kir_get(k, v->sum));
    kir_end(k);
}

static void grad_x(lowering *l, conv *v) {
    kir *k = &l->k;
    kir_value x[5], y[5], w[5];
    lower_each(l, v->x, x);
    v->sum = kir_var(k, lower_number(l, lower_register(fnx_group_value(l->g, v->x)->dtype), 0));
    kir_value group = kir_bin(k, KIR_DIV, x[1], v->in), first = lower_mul(l, group, v->out);
    y[0] = x[0], w[1] = kir_bin(k, KIR_SUB, x[1], lower_mul(l, group, v->in));
    lower_window_open(l, &v->window, &w[2]);
    kir_if(k, lower_touched(l, &v->window, &x[2], &w[2], &y[2]));
    kir_value o = kir_for(k, lower_index(l, 0), v->out, 1, 0);
    y[1] = w[0] = lower_add(l, first, o);
    add_product(l, v, v->y, y, v->w, w);
    kir_end(k), kir_end(k);
    lower_window_close(l, &v->window);
    lower_store(l, v->x, x, kir_get(k, v->sum));
    kir_end(k);
}

/* A work-group per element of w: its threads share the positions of all images. */
static void grad_w(lowering *l, conv *v) {
    kir *k = &l->k;
    kir_value at[5], x[5], y[5], w[5];
    const fnx_value *yv = fnx_group_value(l->g, v->y), *wv = fnx_group_value(l->g, v->w);
    kir_type type = lower_register(yv->dtype);
    uint16_t places[4] = {yv->size[0]};
    for (uint32_t d = 0; d < v->window.spatial; d++) places[1 + d] = yv->size[2 + d];
    uint32_t n_places = 1 + v->window.spatial;
    kir_value side = kir_array(k, type, l->threads, KIR_SHARED), me = kir_cast(k, KIR_I32, lower_thread(l));
    lower_grid_add(l, wv->rank, wv->size, 1);
    lower_rounds_add(l, n_places, places, l->threads);
    /* work-groups beyond the last do its work once more: all threads come to the barriers */
    kir_value last = kir_bin(k, KIR_SUB, lower_product(l, wv->rank, wv->size), lower_index(l, 1));
    lower_unravel(l, kir_bin(k, KIR_MIN, lower_group(l), last), wv->rank, wv->size, w);
    y[1] = w[0];
    x[1] = lower_add(l, lower_mul(l, kir_bin(k, KIR_DIV, w[0], v->out), v->in), w[1]);
    v->sum = kir_var(k, lower_number(l, type, 0));
    kir_value i = kir_for(k, lower_thread(l), lower_product(l, n_places, places), l->threads, 0);
    lower_unravel(l, i, n_places, places, at);
    y[0] = x[0] = at[0];
    for (uint32_t d = 0; d < v->window.spatial; d++) y[2 + d] = at[1 + d];
    kir_if(k, lower_touches(l, &v->window, &y[2], &w[2], &x[2]));
    add_product(l, v, v->x, x, v->y, y);
    kir_end(k), kir_end(k);
    kir_value total = lower_total(l, side, me, kir_get(k, v->sum));
    kir_if(k, kir_bin(k, KIR_EQ, me, kir_int(k, KIR_I32, 0)));
    lower_store(l, v->w, w, total);
    kir_end(k);
}

/* Products of a thread's sum; conv_grad_w has its own. */
static void add_rounds(lowering *l, const fnx_value *w, bool inputs) {
    uint16_t sizes[4] = {w->size[inputs]}; /* channels: in, or out of all groups */
    for (uint32_t d = 2; d < w->rank; d++) sizes[d - 1] = w->size[d];
    lower_rounds_add(l, (uint32_t)w->rank - 1, sizes, 1), lower_rounds_add(l, (uint32_t)w->rank - 2, &w->size[2], 1);
    lower_rounds_add(l, (uint32_t)w->rank - 2, &w->size[2], 1);
}

int32_t lower_conv(lowering *l) {
    const fnx_group *g = l->g;
    const fnx_node *n = fnx_group_node(g, 0);
    fnx_attr_conv a = {0};
    if (fnx_node_attrs(g, n, &a, sizeof a) || a.spatial < 1 || a.spatial > 3 || a.groups < 1)
        return lower_decline(l, FNX_DECLINE_ATTR, 0, FNX_NONE, "unknown attributes");
    uint32_t first = fnx_node_operand(g, n, 0), second = fnx_node_operand(g, n, 1), result = fnx_node_result(g, n, 0);
    conv v = {.x = first, .w = second, .y = result};
    if (n->op == FNX_OP_conv_grad_x) v.y = first, v.x = result;
    if (n->op == FNX_OP_conv_grad_w) v.y = second, v.w = result;
    uint32_t threads = n->op == FNX_OP_conv_grad_w ? 128 : 64;
    while (threads > l->device->max_threads) threads /= 2;
    lower_begin(l, threads);
    const fnx_value *w = fnx_group_value(g, v.w);
    v.window = (lower_window){.spatial = a.spatial, .x = fnx_group_value(g, v.x), .y = fnx_group_value(g, v.y)};
    for (uint32_t d = 0; d < a.spatial; d++)
        v.window.stride[d] = a.stride[d], v.window.dilation[d] = a.dilation[d], v.window.low[d] = a.pad_low[d],
        v.window.size[d] = l->size[w->size[2 + d]];
    v.in = l->size[w->size[1]];
    v.out = kir_bin(&l->k, KIR_DIV, l->size[w->size[0]], lower_index(l, a.groups));
    if (n->op != FNX_OP_conv_grad_w) add_rounds(l, w, n->op == FNX_OP_conv);
    if (n->op == FNX_OP_conv) forward(l, &v);
    else if (n->op == FNX_OP_conv_grad_x) grad_x(l, &v);
    else grad_w(l, &v);
    return FNX_OK;
}
