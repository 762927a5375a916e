/* Convolutions of f32 through oneDNN, in all three directions: which form each array is given in, which algorithm, and
 * the code for each shape, kept by the handle.
 *
 * Arrays of images are wanted with channels last, and taken in place then; others are reordered. Two exceptions:
 * Winograd's algorithm exists for blocked channels only, and is worth reordering both sides (twice as fast from 32
 * channels on); and an image of one or three channels in rows, with 16 channels out, is what the library's first-layer
 * code wants: 16 channels last are one block of channels. f64, empty arrays and what the library lacks go to
 * conv_loops.c. */
#include "kernels/conv.h"
#include "kernels/dnnl.h"

#include <stdlib.h>

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* [n, c, s] as [n, c, 1, s]: the library's code for two axes is the better kept one. */
static cpu_view two_axes(const cpu_view *v) {
    cpu_view w = *v;
    if (v->rank != 3) return w;
    w.rank = 4;
    w.size[3] = v->size[2], w.stride[3] = v->stride[2];
    w.size[2] = 1, w.stride[2] = 0;
    return w;
}

cpu_conv_operands cpu_conv_operands_of(const cpu_call *c) {
    const cpu_view *first = &c->in[0], *second = &c->in[1], *result = &c->out[0];
    switch (c->op) {
    case FNX_OP_conv: return (cpu_conv_operands){*first, *second, *result};
    case FNX_OP_conv_grad_x: return (cpu_conv_operands){*result, *second, *first};
    default: return (cpu_conv_operands){*first, *result, *second};
    }
}

static int32_t direction_of(const cpu_call *c) {
    return c->op == FNX_OP_conv ? CPU_CONV : c->op == FNX_OP_conv_grad_x ? CPU_CONV_GRAD_X : CPU_CONV_GRAD_W;
}

static bool is_last(const cpu_view *v) {
    static const uint8_t order[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    return cpu_view_is_packed(v, order[v->rank - 4]);
}

/* Strides that the library takes: forwards, without overlap. */
static bool is_plain(const cpu_view *v) {
    cpu_view left = *v;
    int64_t extent = 1;
    for (uint32_t i = 0; i < v->rank; i++) {
        uint32_t least = FNX_MAX_RANK;
        for (uint32_t d = 0; d < v->rank; d++)
            if (left.size[d] > 1 && (least == FNX_MAX_RANK || left.stride[d] < left.stride[least])) least = d;
        if (least == FNX_MAX_RANK) return true;
        if (left.stride[least] < extent) return false;
        extent = left.stride[least] * left.size[least];
        left.size[least] = 1;
    }
    return true;
}

/* ---- the shape that decides about the code ----------------------------------------------------------------------- */

static bool wants_winograd(const cpu_call *c, const cpu_conv_shape *s) {
    if (c->device->isa != CPU_ISA_AVX512 || s->spatial != 2 || s->groups != 1) return false;
    for (int d = 0; d < 2; d++)
        if (s->w_size[2 + d] != 3 || s->stride[d] != 1 || s->dilation[d] != 1 || s->low[d] > 1 || s->high[d] > 1)
            return false;
    return s->x_size[1] >= 32 && s->y_size[1] >= 32 && s->x_size[1] % 16 == 0 && s->y_size[1] % 16 == 0 &&
           s->y_size[2] * s->y_size[3] >= 64;
}

static void choose_forms(const cpu_call *c, const cpu_conv_operands *o, cpu_conv_shape *s) {
    const int64_t channels = o->x.size[1];
    s->winograd = wants_winograd(c, s);
    s->x_form = s->y_form = s->winograd ? CPU_FORM_BLOCKED : CPU_FORM_LAST;
    s->x_in_place = !s->winograd && is_last(&o->x);
    s->y_in_place = !s->winograd && is_last(&o->y);
    if (c->device->isa == CPU_ISA_AVX512 && s->direction != CPU_CONV_GRAD_X && s->groups == 1 &&
        (channels == 1 || channels == 3) && o->y.size[1] == 16) {
        s->x_form = CPU_FORM_ROWS;
        s->x_in_place = cpu_view_is_packed(&o->x, NULL);
        s->y_form = CPU_FORM_BLOCKED; /* in place as above */
    }
}

static cpu_conv_shape shape_of(const cpu_call *c, const cpu_conv_operands *o) {
    const fnx_attr_conv *a = &c->attr->conv;
    cpu_conv_shape s;
    memset(&s, 0, sizeof s);
    s.direction = direction_of(c);
    s.spatial = (int32_t)o->x.rank - 2;
    s.groups = (int32_t)a->groups;
    for (uint32_t d = 0; d < o->x.rank; d++) {
        s.x_size[d] = o->x.size[d], s.x_stride[d] = o->x.stride[d];
        s.y_size[d] = o->y.size[d], s.y_stride[d] = o->y.stride[d];
        s.w_size[d] = o->w.size[d], s.w_stride[d] = o->w.stride[d];
    }
    for (int32_t d = 0; d < s.spatial; d++) {
        const int32_t i = d - s.spatial + (int32_t)a->spatial; /* -1: the axis of size 1 that two_axes put in */
        s.stride[d] = i < 0 ? 1 : a->stride[i];
        s.dilation[d] = i < 0 ? 1 : a->dilation[i];
        s.low[d] = i < 0 ? 0 : a->pad_low[i];
        s.high[d] = i < 0 ? 0 : a->pad_high[i];
    }
    choose_forms(c, o, &s);
    return s;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Views whose strides the library does not take get packed memory from `at` on. Returns its bytes. */
static uint64_t pack_operands(cpu_conv_operands *o, char *at) {
    static const uint8_t order[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    cpu_view *const views[] = {&o->x, &o->w, &o->y};
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < 3; i++) {
        cpu_view *v = views[i];
        if (is_plain(v)) continue;
        cpu_view_pack(v, v == &o->w ? NULL : order[v->rank - 4]);
        if (at) v->base = at + bytes;
        bytes += (uint64_t)cpu_view_bytes(v);
    }
    return bytes;
}

static cpu_conv_operands library_operands(const cpu_call *c) {
    cpu_conv_operands o = cpu_conv_operands_of(c);
    o.x = two_axes(&o.x);
    o.w = two_axes(&o.w);
    o.y = two_axes(&o.y);
    return o;
}

static bool is_for_loops(const cpu_call *c) {
    const cpu_conv_operands o = cpu_conv_operands_of(c);
    return o.x.dtype != FNX_F32 || !cpu_view_count(&o.x) || !cpu_view_count(&o.w) || !cpu_view_count(&o.y);
}

uint64_t cpu_conv_workspace(const cpu_call *c) {
    const uint64_t loops = cpu_conv_loops_workspace(c); /* f32 may need them, too */
    if (is_for_loops(c)) return loops;
    cpu_conv_operands o = library_operands(c);
    uint64_t bytes = pack_operands(&o, NULL);
    const cpu_conv_shape s = shape_of(c, &o);
    if (!s.x_in_place) bytes += cpu_form_bytes(s.x_form, o.x.rank, s.x_size);
    if (!s.y_in_place) bytes += cpu_form_bytes(s.y_form, o.y.rank, s.y_size);
    return bytes > loops ? bytes : loops;
}

/* Of a device: the library, and scratch for weights and for the library, which all convolutions share. */
typedef struct cpu_kernel_state {
    cpu_dnnl *dnnl;
    char *scratch;
    uint64_t scratch_bytes;
} cpu_kernel_state;

void cpu_kernels_close(cpu_device *d) {
    if (!d->kernels) return;
    cpu_dnnl_destroy(d->kernels->dnnl);
    cpu_host->free(d->kernels->scratch);
    cpu_host->free(d->kernels);
    d->kernels = NULL;
}

static cpu_kernel_state *state_of(cpu_device *d) {
    if (d->kernels) return d->kernels;
    cpu_kernel_state *s = cpu_host->alloc(sizeof *s, 64);
    if (!s) return NULL;
    *s = (cpu_kernel_state){.dnnl = cpu_dnnl_create()};
    if (s->dnnl) return d->kernels = s;
    cpu_host->free(s);
    return NULL;
}

static bool reserve_scratch(cpu_kernel_state *s, uint64_t bytes) {
    if (bytes <= s->scratch_bytes) return true;
    char *larger = cpu_host->alloc(bytes, 64);
    if (!larger) return false;
    cpu_host->free(s->scratch);
    s->scratch = larger;
    s->scratch_bytes = bytes;
    return true;
}

/* ---- the code of each shape -------------------------------------------------------------------------------------- */

enum { SHAPES = 8 }; /* that a handle keeps */

typedef struct cache {
    uint32_t n, oldest;
    struct {
        cpu_conv_shape shape;
        cpu_dnnl_conv *code; /* NULL: the library has none */
    } entry[SHAPES];
} cache;

void cpu_conv_release(cpu_kernel *k) {
    cache *all = k->cache;
    if (!all) return;
    for (uint32_t i = 0; i < all->n; i++) cpu_dnnl_conv_destroy(all->entry[i].code);
    cpu_host->free(all);
    k->cache = NULL;
}

static cpu_dnnl_conv *code_for(cpu_kernel *k, cpu_dnnl *library, const cpu_conv_shape *shape) {
    cache *all = k->cache;
    if (!all) {
        if (!(all = k->cache = cpu_host->alloc(sizeof *all, 64))) return NULL;
        all->n = all->oldest = 0;
    }
    for (uint32_t i = 0; i < all->n; i++)
        if (memcmp(&all->entry[i].shape, shape, sizeof *shape) == 0) return all->entry[i].code;
    const uint32_t at = all->n < SHAPES ? all->n++ : all->oldest++ % SHAPES;
    if (all->oldest > 0) cpu_dnnl_conv_destroy(all->entry[at].code);
    all->entry[at].shape = *shape;
    return all->entry[at].code = cpu_dnnl_conv_create(library, shape);
}

static double estimate_ns(const cpu_conv_shape *s) {
    double flops = 2.0 * (double)s->w_size[1];
    for (int32_t d = 0; d < s->spatial; d++) flops *= (double)s->w_size[2 + d];
    for (int32_t d = 0; d < s->spatial + 2; d++) flops *= (double)s->y_size[d];
    return flops / 100;
}

/* False: not by the library. */
static bool run_library(const cpu_call *c) {
    const cpu_conv_operands given = library_operands(c);
    cpu_conv_operands o = given;
    cpu_kernel_state *state = state_of(c->device);
    if (!state) return false;
    char *x_form = c->workspace + pack_operands(&o, c->workspace);
    cpu_conv_shape shape = shape_of(c, &o);
    shape.threads = cpu_team(c->device, estimate_ns(&shape));
    cpu_set_team(shape.threads);
    cpu_dnnl_conv *code = code_for(c->kernel, state->dnnl, &shape);
    if (!code || !reserve_scratch(state, cpu_dnnl_conv_scratch(code))) return false;
    const cpu_view *const from[] = {&given.x, &given.w, &given.y}, *const packed[] = {&o.x, &o.w, &o.y};
    const int result = shape.direction == CPU_CONV ? 2 : shape.direction == CPU_CONV_GRAD_X ? 0 : 1;
    for (int i = 0; i < 3; i++)
        if (i != result && packed[i]->base != from[i]->base) c->loops->copy(c->device, from[i], packed[i]);
    char *y_form = x_form + (shape.x_in_place ? 0 : cpu_form_bytes(shape.x_form, o.x.rank, shape.x_size));
    if (!cpu_dnnl_conv_run(code, o.x.base, o.w.base, o.y.base, x_form, y_form, state->scratch)) return false;
    if (packed[result]->base != from[result]->base) c->loops->copy(c->device, packed[result], from[result]);
    return true;
}

void cpu_conv(const cpu_call *c) {
    if (cpu_view_count(&c->out[0]) == 0) return;
    if (is_for_loops(c) || !run_library(c)) cpu_conv_loops(c);
}
