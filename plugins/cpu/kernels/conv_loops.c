/* Convolutions as matrix products, for f64 and for what the library has no code for: any strides, windows, groups and
 * dilations, also empty arrays. Image by image and group by group, the elements under each window become a column:
 *
 *     y [o, t] = w [o, ik] columns [ik, t]     columns' = w' y, added up into dx     dw [o, ik] += y columns'
 *
 * Sums run in an order that does not depend on the number of threads. */
#include "kernels/conv.h"
#include "kernels/gemm.h"
#include "kernels/window.h"

typedef struct conv {
    cpu_device *device;
    const cpu_loops *loops;
    cpu_view x, w, y; /* with three spatial axes */
    cpu_window window;
    int64_t groups, in, out, inner, places; /* channels of a group; in times window; positions of y */
    uint32_t bytes;
    cpu_view matrix;  /* w, or room for dw: packed [o, c / groups, k..] */
    char *columns;    /* [inner, places] of one group of one image */
    char *image;      /* [out, places], the same of y */
    char *workspace;  /* of gemm */
    int64_t n, group; /* being worked on */
} conv;

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static conv conv_of(const cpu_call *c) {
    const cpu_conv_operands o = cpu_conv_operands_of(c);
    const fnx_attr_conv *a = &c->attr->conv;
    conv v = {.device = c->device, .loops = c->loops, .groups = a->groups};
    v.x = cpu_three_axes(&o.x, a->spatial);
    v.w = cpu_three_axes(&o.w, a->spatial);
    v.y = cpu_three_axes(&o.y, a->spatial);
    v.window = cpu_conv_window(a, &v.w);
    v.in = v.w.size[1];
    v.out = v.w.size[0] / v.groups;
    v.inner = v.in * v.w.size[2] * v.w.size[3] * v.w.size[4];
    v.places = v.y.size[2] * v.y.size[3] * v.y.size[4];
    v.bytes = cpu_element_bytes(v.x.dtype);
    v.matrix = v.w;
    cpu_view_pack(&v.matrix, NULL);
    return v;
}

uint64_t cpu_conv_loops_workspace(const cpu_call *c) {
    const conv v = conv_of(c);
    return (uint64_t)(cpu_view_bytes(&v.matrix) + round_up(v.inner * v.places * v.bytes) +
                      round_up(v.out * v.places * v.bytes) + (int64_t)GEMM_THREAD_BYTES * c->device->threads);
}

static cpu_view matrix(const conv *v, char *base, int64_t rows, int64_t columns) {
    cpu_view m = {.base = base, .dtype = v->x.dtype, .rank = 2, .size = {rows, columns}};
    cpu_view_pack(&m, NULL);
    return m;
}

static cpu_view transpose(const cpu_view *m) {
    cpu_view t = *m;
    for (uint32_t d = 0; d < 2; d++) t.size[d] = m->size[1 - d], t.stride[d] = m->stride[1 - d];
    return t;
}

/* The weights of one group as [out, inner]. */
static cpu_view weights_of(const conv *v) {
    return matrix(v, v->matrix.base + v->group * v->out * v->inner * v->bytes, v->out, v->inner);
}

/* One group of one image of y as an array like `image`. */
static cpu_view part_of(const cpu_view *a, const conv *v, int64_t channels) {
    cpu_view part = *a;
    part.base += (v->n * a->stride[0] + v->group * channels * a->stride[1]) * v->bytes;
    part.size[0] = 1;
    part.size[1] = channels;
    return part;
}

static cpu_view image_of(const conv *v, const cpu_view *part) {
    cpu_view image = *part;
    image.base = v->image;
    cpu_view_pack(&image, NULL);
    return image;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

/* The positions t in [0, count) where window position k lies inside an axis of `size` elements. */
static cpu_range steps_inside(const cpu_window *w, uint32_t d, int64_t k, int64_t size, int64_t count) {
    const int64_t from = w->low[d] - k * w->dilation[d], step = w->stride[d]; /* t step >= from, t step < from + size */
    cpu_range r = {from <= 0 ? 0 : (from + step - 1) / step, from + size <= 0 ? 0 : (from + size + step - 1) / step};
    r.last = cpu_least(r.last, count);
    if (r.last < r.first) r.last = r.first;
    return r;
}

/* Rows of columns: each is one position of the window in one channel. Either copied from x, or added to it. */
#define DEFINE_COLUMNS(name, type) \
    static void name##_gather(void *context, int thread, int64_t first, int64_t last) { \
        const conv *v = context; \
        (void)thread; \
        for (int64_t row = first; row < last; row++) { \
            const int64_t k2 = row % v->w.size[4], k1 = row / v->w.size[4] % v->w.size[3]; \
            const int64_t k0 = row / v->w.size[4] / v->w.size[3] % v->w.size[2]; \
            const int64_t channel = row / v->w.size[4] / v->w.size[3] / v->w.size[2]; \
            name##_row(v, channel, (int64_t[]){k0, k1, k2}, (type *)(void *)v->columns + row * v->places, false); \
        } \
    } \
    /* Channels of dx, each with all its rows in ascending order. */ \
    static void name##_scatter(void *context, int thread, int64_t first, int64_t last) { \
        const conv *v = context; \
        (void)thread; \
        for (int64_t channel = first; channel < last; channel++) { \
            int64_t row = channel * (v->w.size[2] * v->w.size[3] * v->w.size[4]); \
            for (int64_t k0 = 0; k0 < v->w.size[2]; k0++) \
                for (int64_t k1 = 0; k1 < v->w.size[3]; k1++) \
                    for (int64_t k2 = 0; k2 < v->w.size[4]; k2++, row++) \
                        name##_row(v, channel, (int64_t[]){k0, k1, k2}, (type *)(void *)v->columns + row * v->places, \
                                   true); \
        } \
    }

#define DEFINE_ROW(name, type) \
    static void name##_row(const conv *v, int64_t channel, const int64_t *k, type *row, bool adds) { \
        const cpu_view part = part_of(&v->x, v, v->in); \
        const cpu_window *w = &v->window; \
        cpu_range t[3]; \
        type *x = (type *)(void *)part.base + channel * part.stride[1]; \
        for (uint32_t d = 0; d < 3; d++) { \
            t[d] = steps_inside(w, d, k[d], v->x.size[2 + d], v->y.size[2 + d]); \
            x += (k[d] * w->dilation[d] - w->low[d]) * part.stride[2 + d]; \
        } \
        if (!adds) memset(row, 0, (size_t)v->places * sizeof *row); \
        for (int64_t i = t[0].first; i < t[0].last; i++) \
            for (int64_t j = t[1].first; j < t[1].last; j++) { \
                type *to = row + (i * v->y.size[3] + j) * v->y.size[4]; \
                type *from = x + i * w->stride[0] * part.stride[2] + j * w->stride[1] * part.stride[3]; \
                const int64_t step = w->stride[2] * part.stride[4]; \
                if (adds) \
                    for (int64_t m = t[2].first; m < t[2].last; m++) from[m * step] += to[m]; \
                else \
                    for (int64_t m = t[2].first; m < t[2].last; m++) to[m] = from[m * step]; \
            } \
    }

DEFINE_ROW(f32, float)
DEFINE_ROW(f64, double)
DEFINE_COLUMNS(f32, float)
DEFINE_COLUMNS(f64, double)

static void gather_columns(conv *v) {
    cpu_parallel(v->device, (double)v->inner * (double)v->places, v->inner,
                 v->x.dtype == FNX_F32 ? f32_gather : f64_gather, v);
}

static void scatter_columns(conv *v) {
    cpu_parallel(v->device, (double)v->inner * (double)v->places, v->in,
                 v->x.dtype == FNX_F32 ? f32_scatter : f64_scatter, v);
}

/* ---- directions -------------------------------------------------------------------------------------------------- */

static void forward(conv *v) {
    const cpu_view w = weights_of(v), columns = matrix(v, v->columns, v->inner, v->places);
    const cpu_view y = matrix(v, v->image, v->out, v->places), to = part_of(&v->y, v, v->out);
    const cpu_view image = image_of(v, &to);
    gather_columns(v);
    v->loops->gemm(v->device, &w, &columns, &y, false, v->workspace);
    v->loops->copy(v->device, &image, &to);
}

static void gradient_of_x(conv *v) {
    const cpu_view w = weights_of(v), columns = matrix(v, v->columns, v->inner, v->places);
    const cpu_view y = matrix(v, v->image, v->out, v->places), from = part_of(&v->y, v, v->out);
    const cpu_view image = image_of(v, &from), turned = transpose(&w);
    v->loops->copy(v->device, &from, &image);
    v->loops->gemm(v->device, &turned, &y, &columns, false, v->workspace);
    scatter_columns(v);
}

static void gradient_of_w(conv *v) {
    const cpu_view w = weights_of(v), columns = matrix(v, v->columns, v->inner, v->places);
    const cpu_view y = matrix(v, v->image, v->out, v->places), from = part_of(&v->y, v, v->out);
    const cpu_view image = image_of(v, &from), turned = transpose(&columns);
    gather_columns(v);
    v->loops->copy(v->device, &from, &image);
    v->loops->gemm(v->device, &y, &turned, &w, true, v->workspace);
}

/* Zeros, by a copy of one element that is broadcast. */
static void clear(const conv *v, const cpu_view *to) {
    static const double zero;
    cpu_view from = *to;
    from.base = (char *)(uintptr_t)&zero;
    memset(from.stride, 0, sizeof from.stride);
    v->loops->copy(v->device, &from, to);
}

void cpu_conv_loops(const cpu_call *c) {
    conv v = conv_of(c);
    v.matrix.base = c->workspace;
    v.columns = v.matrix.base + cpu_view_bytes(&v.matrix);
    v.image = v.columns + round_up(v.inner * v.places * v.bytes);
    v.workspace = v.image + round_up(v.out * v.places * v.bytes);
    if (c->op == FNX_OP_conv_grad_x) clear(&v, &v.x);
    if (c->op == FNX_OP_conv_grad_w) clear(&v, &v.matrix);
    else v.loops->copy(v.device, &v.w, &v.matrix);
    const int64_t images = v.places > 0 && v.out > 0 ? v.x.size[0] : 0;
    for (v.n = 0; v.n < images; v.n++)
        for (v.group = 0; v.group < v.groups; v.group++) {
            if (c->op == FNX_OP_conv) forward(&v);
            else if (c->op == FNX_OP_conv_grad_x) gradient_of_x(&v);
            else gradient_of_w(&v);
        }
    if (c->op == FNX_OP_conv_grad_w) v.loops->copy(v.device, &v.matrix, &v.w);
}
