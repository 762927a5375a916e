/* fornax.group/0 by kernels: which schedules serve a group, compiling them, and what a launch does. See kernel.h. */
#include "lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
    void *compiled;
    lower_source *source; /* per argument */
    uint32_t *offset;
    int32_t n_args;
    uint32_t args_bytes;
    lower_grid grid;
    lower_rounds rounds;
} program;

typedef struct handle {
    const fnx_codegen_device *device;
    program program[LOWER_MAX_KERNELS];
    int n; /* two of a reduction: a thread per result, and a work-group per result */
    uint32_t n_row, n_result;
    uint16_t row[FNX_MAX_RANK], result[FNX_MAX_RANK]; /* sizes: what is reduced, and what is left */
    fnx_group *group;
} handle;

/* ---- capabilities ------------------------------------------------------------------------------------------------ */

int32_t fnx_codegen_capabilities(const fnx_codegen_device *device, fnx_group_caps *out) {
    out->wants = FNX_WANTS_INDEX32;
    out->anchors = 1u << FNX_ANCHOR_ELEMENTWISE | 1u << FNX_ANCHOR_REDUCE | 1u << FNX_ANCHOR_MATMUL |
                   1u << FNX_ANCHOR_CONV | 1u << FNX_ANCHOR_GATHER | 1u << FNX_ANCHOR_SCATTER | 1u << FNX_ANCHOR_OPAQUE;
    out->max_bindings = 64, out->max_nodes = 64, out->max_rank = FNX_MAX_RANK, out->max_row = INT64_MAX;
    (void)device;
    return lower_capabilities(out);
}

/* ---- preparing --------------------------------------------------------------------------------------------------- */

static int32_t fail(const fnx_codegen_device *device, int32_t code, const char *what, const char *detail) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s", what, *detail ? ": " : "", detail);
    return device->host->error(code, text);
}

static int32_t no_memory(const fnx_codegen_device *device) {
    return fail(device, FNX_E_NO_MEMORY, "no host memory to prepare a kernel", "");
}

static uint64_t hash(const char *text, uint64_t h) { /* FNV-1a */
    for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

static int32_t compile(lowering *l, program *p) {
    const fnx_codegen_device *device = l->device;
    char why[256], log[1536] = "";
    if (!kir_finish(&l->k, why, sizeof why)) return fail(device, FNX_E_INTERNAL, "a kernel that is wrong", why);
    if (l->k.shared_bytes > device->max_shared)
        return lower_decline(l, FNX_DECLINE_LIMIT, FNX_NONE, FNX_NONE, "more work-group memory than the device has");
    char *text = kir_print(&l->k, device->dialect, "fnx_kernel");
    if (!text) return no_memory(device);
    fnx_codegen_source source = {.struct_size = sizeof source,
                                 .dialect = device->dialect,
                                 .text = text,
                                 .entry = device->dialect == FNX_DIALECT_GLSL ? "main" : "fnx_kernel",
                                 .threads = {l->k.threads[0], l->k.threads[1], l->k.threads[2]},
                                 .shared_bytes = l->k.shared_bytes,
                                 .args_bytes = l->k.args_bytes,
                                 .key = {hash(text, UINT64_C(0xcbf29ce484222325)), hash(text, 0x9747b28c)}};
    int32_t code = device->compile(device->user, &source, &p->compiled, log, sizeof log);
    free(text);
    if (code) return *log ? fail(device, code, "a kernel does not compile", log) : code;
    p->n_args = l->k.n_args, p->args_bytes = l->k.args_bytes, p->grid = l->grid, p->rounds = l->rounds;
    p->source = malloc(sizeof *p->source * (size_t)p->n_args);
    p->offset = malloc(sizeof *p->offset * (size_t)p->n_args);
    if (!p->source || !p->offset) return no_memory(device);
    memcpy(p->source, l->source, sizeof *p->source * (size_t)p->n_args);
    for (int32_t i = 0; i < p->n_args; i++) p->offset[i] = l->k.arg[i].offset;
    return FNX_OK;
}

static int32_t build(handle *h, fnx_decline *why, int number) {
    lowering *l = calloc(1, sizeof *l);
    kir_value *size = malloc(sizeof *size * (h->group->n_sizes + 1));
    int32_t code = l && size ? FNX_OK : no_memory(h->device);
    if (!code) {
        l->device = h->device, l->g = h->group, l->why = why, l->size = size;
        l->index = h->group->flags & FNX_GROUP_INDEX32 ? KIR_I32 : KIR_I64;
        code = lower_group_kernel(l, number);
        if (!code) code = compile(l, &h->program[number]);
        kir_free(&l->k);
    }
    free(size), free(l);
    return code;
}

/* What a reduction leaves and what it takes, to choose between its kernels. */
static void note_reduction(handle *h) {
    const fnx_group *g = h->group;
    for (uint32_t d = 0; d < g->rank; d++) {
        if (g->row_axes >> d & 1) h->row[h->n_row++] = g->domain[d];
        else h->result[h->n_result++] = g->domain[d];
    }
}

int32_t fnx_codegen_prepare(const fnx_codegen_device *device, const fnx_group *group, void **out_handle,
                            fnx_decline *why) {
    int32_t code = lower_check(device, group, why);
    if (code) return code;
    handle *h = calloc(1, sizeof *h);
    if (!h) return no_memory(device);
    h->device = device;
    h->group = malloc(group->total_bytes);
    h->n = group->anchor == FNX_ANCHOR_REDUCE && device->max_threads > 1 ? 2 : 1;
    code = h->group ? FNX_OK : no_memory(device);
    if (!code) memcpy(h->group, group, group->total_bytes), note_reduction(h);
    for (int i = 0; i < h->n && !code; i++) code = build(h, why, i);
    if (code) fnx_codegen_release(h);
    else *out_handle = h;
    return code;
}

void fnx_codegen_release(void *handle_of) {
    handle *h = handle_of;
    if (!h) return;
    for (int i = 0; i < h->n; i++) {
        if (h->program[i].compiled) h->device->release(h->device->user, h->program[i].compiled);
        free(h->program[i].source), free(h->program[i].offset);
    }
    free(h->group), free(h);
}

int32_t fnx_codegen_workspace(void *handle_of, const fnx_launch *launch, uint64_t *out_bytes) {
    (void)handle_of, (void)launch;
    *out_bytes = 0;
    return FNX_OK;
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

static int64_t product(const fnx_launch *l, uint32_t n, const uint16_t *sizes) {
    int64_t p = 1;
    for (uint32_t d = 0; d < n; d++) p *= l->sizes[sizes[d]];
    return p;
}

static void fill(const handle *h, const program *p, void *queue, const fnx_launch *l, unsigned char *args) {
    for (int32_t i = 0; i < p->n_args; i++) {
        const lower_source *s = &p->source[i];
        uint64_t v = 0;
        switch ((lower_fill)s->fill) {
        case LOWER_ERROR: v = h->device->error_word(h->device->user, queue); break;
        case LOWER_SITE: v = l->site; break;
        case LOWER_ADDRESS: v = l->bindings[s->number].address; break;
        case LOWER_SIZE: v = (uint64_t)l->sizes[s->number]; break;
        case LOWER_STRIDE: v = (uint64_t)l->strides[s->number]; break;
        case LOWER_PRODUCT: v = (uint64_t)product(l, s->n, s->size); break;
        case LOWER_SCALAR: /* little endian: narrower ones are the low bytes */
            v = l->scalars[s->number].bits[0];
            if (s->type == KIR_U32) v &= 255; /* bool, u8 */
            break;
        }
        memcpy(args + p->offset[i], &v, kir_bytes((kir_type)s->type));
    }
}

/* Work-groups in all, or 0. */
static int64_t count_groups(const program *p, const fnx_launch *l) {
    int64_t n = 1;
    for (uint32_t i = 0; i < p->grid.n; i++) {
        int64_t part = product(l, p->grid.n_sizes[i], p->grid.size[i]), per = p->grid.per[i];
        part = part / per + (part % per > 0);
        if (__builtin_mul_overflow(n, part, &n)) return INT64_MAX;
    }
    return n;
}

/* Rounds of a thread's loops, or more. */
static int64_t count_rounds(const program *p, const fnx_launch *l) {
    int64_t n = 0;
    for (uint32_t i = 0; i < p->rounds.n; i++)
        n += product(l, p->rounds.n_sizes[i], p->rounds.size[i]) / p->rounds.per[i] + 1;
    return n;
}

enum { LONG_ROW = 256, MANY_RESULTS = 4096 };

/* A reduction of long rows to few results takes a work-group per result. */
static const program *choose(const handle *h, const fnx_launch *l) {
    if (h->n == 1) return &h->program[0];
    int64_t row = product(l, h->n_row, h->row), results = product(l, h->n_result, h->result);
    bool long_row = row >= LONG_ROW && results < MANY_RESULTS;
    if (h->device->max_rounds) long_row |= row > (int64_t)h->device->max_rounds / 2;
    return &h->program[long_row];
}

static int32_t launch_one(const handle *h, void *queue, const fnx_launch *l) {
    const program *p = choose(h, l);
    const fnx_codegen_device *device = h->device;
    unsigned char args[FNX_CODEGEN_ARGS_MAX] __attribute__((aligned(8)));
    int64_t n = count_groups(p, l), wide = device->max_groups[0] < 32768 ? device->max_groups[0] : 32768;
    if (n == 0) return FNX_OK;
    if (device->max_rounds && count_rounds(p, l) > (int64_t)device->max_rounds)
        return fail(device, FNX_E_UNSUPPORTED, "a loop with more rounds than the device lets run", "");
    uint32_t groups[3] = {(uint32_t)(n < wide ? n : wide), 1, 1};
    int64_t high = n / groups[0] + (n % groups[0] > 0);
    if (high > (int64_t)device->max_groups[1])
        return fail(device, FNX_E_UNSUPPORTED, "a launch of more work-groups than the device takes", "");
    groups[1] = (uint32_t)high;
    fill(h, p, queue, l, args);
    return device->launch(device->user, queue, p->compiled, groups, args, p->args_bytes);
}

int32_t fnx_codegen_launch(void *handle_of, void *queue, const fnx_launch *launches, uint32_t n,
                           uint32_t launch_bytes) {
    int32_t code = FNX_OK;
    for (uint32_t i = 0; i < n && !code; i++)
        code = launch_one(handle_of, queue, FNX_AT(fnx_launch, launches, launch_bytes, i));
    return code;
}
