/* See dnnl.h. */
#include "kernels/dnnl.h"

#include <oneapi/dnnl/dnnl.h>

#include <stdlib.h>
#include <string.h>

void cpu_dnnl_sgemm(char a_form, char b_form, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                    const void *b, int64_t ldb, void *y, int64_t ldy) {
    (void)dnnl_sgemm(a_form, b_form, m, n, k, 1.0f, a, lda, b, ldb, 0.0f, y, ldy);
}

/* ---- the library's objects --------------------------------------------------------------------------------------- */

struct cpu_dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

cpu_dnnl *cpu_dnnl_create(void) {
    cpu_dnnl *d = calloc(1, sizeof *d);
    if (d && dnnl_engine_create(&d->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags) == dnnl_success)
        return d;
    cpu_dnnl_destroy(d);
    return NULL;
}

void cpu_dnnl_destroy(cpu_dnnl *d) {
    if (!d) return;
    if (d->stream) dnnl_stream_destroy(d->stream);
    if (d->engine) dnnl_engine_destroy(d->engine);
    free(d);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static bool describe_form(dnnl_memory_desc_t *md, int32_t form, uint32_t rank, const int64_t *size) {
    static const dnnl_format_tag_t tags[3][2] = {{dnnl_nchw, dnnl_ncdhw},
                                                 {dnnl_nhwc, dnnl_ndhwc},
                                                 {dnnl_nChw16c, dnnl_nCdhw16c}};
    dnnl_dims_t sizes = {0};
    for (uint32_t d = 0; d < rank; d++) sizes[d] = size[d];
    return dnnl_memory_desc_init_by_tag(md, (int)rank, sizes, dnnl_f32, tags[form][rank - 4]) == dnnl_success;
}

static bool describe_strides(dnnl_memory_desc_t *md, uint32_t rank, const int64_t *size, const int64_t *stride) {
    dnnl_dims_t sizes = {0}, strides = {0};
    int64_t extent = 1; /* a stride that overlaps with nothing, for axes of size 1 */
    for (uint32_t d = 0; d < rank; d++)
        if (size[d] > 1 && stride[d] * size[d] > extent) extent = stride[d] * size[d];
    for (uint32_t d = 0; d < rank; d++) sizes[d] = size[d], strides[d] = size[d] > 1 ? stride[d] : extent;
    return dnnl_memory_desc_init_by_strides(md, (int)rank, sizes, dnnl_f32, strides) == dnnl_success;
}

uint64_t cpu_form_bytes(int32_t form, uint32_t rank, const int64_t *size) {
    uint64_t elements = 1;
    for (uint32_t d = 0; d < rank; d++)
        elements *= (uint64_t)(form == CPU_FORM_BLOCKED && d == 1 ? (size[d] + 15) / 16 * 16 : size[d]);
    return (elements * sizeof(float) + 63) / 64 * 64;
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* An operand or result: as it is stored, as the primitive sees it, and the reorder between them if those differ. */
typedef struct side {
    dnnl_memory_t stored, formed; /* one and the same where nothing is reordered */
    dnnl_primitive_t reorder;
    size_t bytes; /* of `formed`, where that is apart */
} side;

struct cpu_dnnl_conv {
    cpu_dnnl *owner;
    int32_t direction;
    dnnl_primitive_t primitive;
    dnnl_memory_t scratchpad;
    size_t scratchpad_bytes;
    side x, w, y;
    char name[64];
};

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

static bool make_side(cpu_dnnl *d, side *s, const dnnl_memory_desc_t *stored, const dnnl_memory_desc_t *formed,
                      bool is_result) {
    const dnnl_memory_desc_t *from = is_result ? formed : stored, *to = is_result ? stored : formed;
    dnnl_primitive_desc_t pd;
    if (dnnl_memory_create(&s->stored, stored, d->engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
    if (dnnl_memory_desc_equal(stored, formed)) {
        s->formed = s->stored;
        return true;
    }
    s->bytes = round_up(dnnl_memory_desc_get_size(formed));
    if (dnnl_memory_create(&s->formed, formed, d->engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
    if (dnnl_reorder_primitive_desc_create(&pd, from, d->engine, to, d->engine, NULL) != dnnl_success) return false;
    const dnnl_status_t status = dnnl_primitive_create(&s->reorder, pd);
    dnnl_primitive_desc_destroy(pd);
    return status == dnnl_success;
}

static void free_side(side *s) {
    if (s->reorder) dnnl_primitive_destroy(s->reorder);
    if (s->formed && s->formed != s->stored) dnnl_memory_destroy(s->formed);
    if (s->stored) dnnl_memory_destroy(s->stored);
}

/* Weights with an axis of groups in front, if there are any. */
static uint32_t weight_axes(const cpu_conv_shape *s, dnnl_dims_t size, dnnl_dims_t stride) {
    const uint32_t rank = (uint32_t)s->spatial + 2;
    uint32_t n = 0;
    if (s->groups > 1) size[n] = s->groups, stride[n++] = s->w_size[0] / s->groups * s->w_stride[0];
    for (uint32_t d = 0; d < rank; d++) size[n] = s->w_size[d], stride[n++] = s->w_stride[d];
    if (s->groups > 1) size[1] /= s->groups;
    return n;
}

typedef struct descriptions {
    dnnl_memory_desc_t x, y, w, any_w;
} descriptions;

/* The primitive's description for one direction, or NULL. The gradients want the forward one as a hint. */
static dnnl_primitive_desc_t describe(cpu_dnnl *d, const cpu_conv_shape *s, const descriptions *m, int32_t direction,
                                      dnnl_primitive_desc_t hint) {
    const dnnl_alg_kind_t algorithm = s->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_dims_t stride = {0}, dilation = {0}, low = {0}, high = {0};
    dnnl_status_t status;
    for (int32_t i = 0; i < s->spatial; i++) {
        stride[i] = s->stride[i];
        dilation[i] = s->dilation[i] - 1; /* 0 is dense there */
        low[i] = s->low[i];
        high[i] = s->high[i];
    }
    if (direction == CPU_CONV)
        status = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_training, algorithm, &m->x, &m->any_w,
                                                            NULL, &m->y, stride, dilation, low, high);
    else if (direction == CPU_CONV_GRAD_X)
        status = dnnl_dilated_convolution_backward_data_desc_init(&desc, algorithm, &m->x, &m->any_w, &m->y, stride,
                                                                  dilation, low, high);
    else
        status = dnnl_dilated_convolution_backward_weights_desc_init(&desc, algorithm, &m->x, &m->any_w, NULL, &m->y,
                                                                     stride, dilation, low, high);
    if (status != dnnl_success || dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) != dnnl_success ||
        dnnl_primitive_desc_create(&pd, &desc, attr, d->engine, hint) != dnnl_success)
        pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    return pd;
}

static bool make_primitive(cpu_dnnl_conv *c, const cpu_conv_shape *s, const descriptions *m) {
    cpu_dnnl *d = c->owner;
    dnnl_primitive_desc_t forward = describe(d, s, m, CPU_CONV, NULL), pd = forward;
    const char *name = "";
    bool done = false;
    if (forward && s->direction != CPU_CONV) pd = describe(d, s, m, s->direction, forward);
    if (pd && dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
        !strstr(name, "ref")) { /* its own reference loops are slower than ours */
        const dnnl_query_t weights =
            s->direction == CPU_CONV_GRAD_W ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
        const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(pd, weights, 0);
        const dnnl_memory_desc_t *scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        strncpy(c->name, name, sizeof c->name - 1);
        c->scratchpad_bytes = round_up(dnnl_memory_desc_get_size(scratchpad));
        done = make_side(d, &c->w, &m->w, w, s->direction == CPU_CONV_GRAD_W) &&
               dnnl_memory_create(&c->scratchpad, scratchpad, d->engine, DNNL_MEMORY_NONE) == dnnl_success &&
               dnnl_primitive_create(&c->primitive, pd) == dnnl_success;
    }
    if (pd && pd != forward) dnnl_primitive_desc_destroy(pd);
    if (forward) dnnl_primitive_desc_destroy(forward);
    return done;
}

cpu_dnnl_conv *cpu_dnnl_conv_create(cpu_dnnl *d, const cpu_conv_shape *s) {
    const uint32_t rank = (uint32_t)s->spatial + 2;
    dnnl_dims_t w_size, w_stride;
    dnnl_memory_desc_t x_stored, y_stored;
    descriptions m;
    const uint32_t w_rank = weight_axes(s, w_size, w_stride);
    cpu_dnnl_conv *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->owner = d;
    c->direction = s->direction;
    bool done =
        describe_form(&m.x, s->x_form, rank, s->x_size) && describe_form(&m.y, s->y_form, rank, s->y_size) &&
        describe_strides(&m.w, w_rank, w_size, w_stride) &&
        dnnl_memory_desc_init_by_tag(&m.any_w, (int)w_rank, w_size, dnnl_f32, dnnl_format_tag_any) == dnnl_success;
    x_stored = m.x;
    y_stored = m.y;
    if (done && !s->x_in_place) done = describe_strides(&x_stored, rank, s->x_size, s->x_stride);
    if (done && !s->y_in_place) done = describe_strides(&y_stored, rank, s->y_size, s->y_stride);
    done = done && make_primitive(c, s, &m) && make_side(d, &c->x, &x_stored, &m.x, s->direction == CPU_CONV_GRAD_X) &&
           make_side(d, &c->y, &y_stored, &m.y, s->direction == CPU_CONV);
    if (done) return c;
    cpu_dnnl_conv_destroy(c);
    return NULL;
}

void cpu_dnnl_conv_destroy(cpu_dnnl_conv *c) {
    if (!c) return;
    if (c->primitive) dnnl_primitive_destroy(c->primitive);
    if (c->scratchpad) dnnl_memory_destroy(c->scratchpad);
    free_side(&c->x);
    free_side(&c->w);
    free_side(&c->y);
    free(c);
}

uint64_t cpu_dnnl_conv_scratch(const cpu_dnnl_conv *c) { return c->w.bytes + c->scratchpad_bytes; }

const char *cpu_dnnl_conv_name(const cpu_dnnl_conv *c) { return c->name; }

static bool set_side(const side *s, void *stored, void *formed) {
    return dnnl_memory_set_data_handle(s->stored, stored) == dnnl_success &&
           (s->formed == s->stored || dnnl_memory_set_data_handle(s->formed, formed) == dnnl_success);
}

static bool reorder(const cpu_dnnl_conv *c, const side *s, dnnl_memory_t from, dnnl_memory_t to) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return !s->reorder || dnnl_primitive_execute(s->reorder, c->owner->stream, 2, args) == dnnl_success;
}

bool cpu_dnnl_conv_run(cpu_dnnl_conv *c, void *x, void *w, void *y, void *x_form, void *y_form, void *scratch) {
    static const int names[3][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const side *const sides[] = {&c->x, &c->w, &c->y};
    const int result = c->direction == CPU_CONV ? 2 : c->direction == CPU_CONV_GRAD_X ? 0 : 1;
    bool done = set_side(&c->x, x, x_form) && set_side(&c->y, y, y_form) && set_side(&c->w, w, scratch) &&
                dnnl_memory_set_data_handle(c->scratchpad, (char *)scratch + c->w.bytes) == dnnl_success;
    for (int i = 0; i < 3 && done; i++)
        if (i != result) done = reorder(c, sides[i], sides[i]->stored, sides[i]->formed);
    const dnnl_exec_arg_t args[] = {{names[c->direction][0], c->x.formed},
                                    {names[c->direction][1], c->w.formed},
                                    {names[c->direction][2], c->y.formed},
                                    {DNNL_ARG_SCRATCHPAD, c->scratchpad}};
    done = done && dnnl_primitive_execute(c->primitive, c->owner->stream, 4, args) == dnnl_success;
    done = done && reorder(c, sides[result], sides[result]->formed, sides[result]->stored);
    return dnnl_stream_wait(c->owner->stream) == dnnl_success && done;
}
