/* Convolution and its two adjoints. All three are sums of x[n, c, s] w[o, c, k] y[n, o, t] over the same set of
 * matching (s, k, t); they differ in which of the three is the result. Each element of it is one sum, in double,
 * whose innermost part is an inner product over the axis that the result lacks: channels in, channels out, images. */
#include "window.h"

typedef struct conv {
    ref_view x, w, y; /* with three spatial axes */
    ref_window window;
    int64_t in_channels, out_channels; /* of one group */
} conv;

static conv conv_of(const ref_call *c, const ref_view *x, const ref_view *w, const ref_view *y) {
    const fnx_attr_conv *a = &c->attr.conv;
    conv v = {.x = ref_three_axes(x, a->spatial),
              .w = ref_three_axes(w, a->spatial),
              .y = ref_three_axes(y, a->spatial)};
    v.window = ref_conv_window(a, &v.w);
    v.in_channels = w->size[1];
    v.out_channels = w->size[0] / a->groups;
    return v;
}

void ref_conv(const ref_call *c) {
    const conv v = conv_of(c, &c->in[0], &c->in[1], &c->out[0]);
    int64_t y[5] = {0};
    for (bool more = ref_count(&v.y) > 0; more; more = ref_next(&v.y, 5, y)) {
        const int64_t group = y[1] / v.out_channels;
        int64_t x[5] = {y[0], group * v.in_channels}, w[5] = {y[1]};
        double sum = 0;
        for (bool inner = ref_window_count(&v.window) > 0; inner; inner = ref_next_in_window(&v.window, &w[2])) {
            if (!ref_touches(&v.window, &v.x, &y[2], &w[2], &x[2])) continue;
            const ref_cell part = ref_dot(&v.x, ref_offset(&v.x, x), v.x.stride[1], &v.w, ref_offset(&v.w, w),
                                          v.w.stride[1], v.in_channels);
            sum += part.f;
        }
        ref_store(&v.y, ref_offset(&v.y, y), (ref_cell){.f = sum});
    }
}

void ref_conv_grad_x(const ref_call *c) {
    const conv v = conv_of(c, &c->out[0], &c->in[1], &c->in[0]);
    int64_t x[5] = {0};
    for (bool more = ref_count(&v.x) > 0; more; more = ref_next(&v.x, 5, x)) {
        const int64_t group = x[1] / v.in_channels, first = group * v.out_channels;
        int64_t y[5] = {x[0], first}, w[5] = {first, x[1] - group * v.in_channels};
        double sum = 0;
        for (bool inner = ref_window_count(&v.window) > 0; inner; inner = ref_next_in_window(&v.window, &w[2])) {
            if (!ref_touched(&v.window, &v.y, &x[2], &w[2], &y[2])) continue;
            const ref_cell part = ref_dot(&v.y, ref_offset(&v.y, y), v.y.stride[1], &v.w, ref_offset(&v.w, w),
                                          v.w.stride[0], v.out_channels);
            sum += part.f;
        }
        ref_store(&v.x, ref_offset(&v.x, x), (ref_cell){.f = sum});
    }
}

void ref_conv_grad_w(const ref_call *c) {
    const conv v = conv_of(c, &c->in[0], &c->out[0], &c->in[1]);
    ref_view stands = v.y; /* where the window may stand: the spatial axes of y only */
    int64_t w[5] = {0};
    stands.size[0] = stands.size[1] = 1;
    for (bool more = ref_count(&v.w) > 0; more; more = ref_next(&v.w, 5, w)) {
        int64_t y[5] = {0}, x[5] = {0, w[0] / v.out_channels * v.in_channels + w[1]};
        double sum = 0;
        for (bool inner = ref_count(&stands) > 0; inner; inner = ref_next(&stands, 5, y)) {
            if (!ref_touches(&v.window, &v.x, &y[2], &w[2], &x[2])) continue;
            const ref_cell part = ref_dot(&v.x, ref_offset(&v.x, x), v.x.stride[0], &v.y,
                                          ref_offset(&v.y, y) + w[0] * v.y.stride[1], v.y.stride[0], v.y.size[0]);
            sum += part.f;
        }
        ref_store(&v.w, ref_offset(&v.w, w), (ref_cell){.f = sum});
    }
}
