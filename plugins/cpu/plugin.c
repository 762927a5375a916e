/* Descriptor, device table, and the choice of the engine for each group. */
#include "cpu.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const fnx_host *cpu_host;

int32_t cpu_decline(fnx_decline *why, uint32_t reason, uint32_t node, uint32_t value, const char *text) {
    if (why) {
        why->why = reason, why->node = node, why->value = value;
        snprintf(why->text, sizeof why->text, "cpu: %s", text);
    }
    return FNX_E_DECLINED;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { TEAM_COSTS_NS = 4000 };

void cpu_set_team(int threads) { omp_set_num_threads(threads); }

int cpu_team(const cpu_device *device, double ns) { return ns < TEAM_COSTS_NS ? 1 : device->threads; }

void cpu_parallel(cpu_device *device, double ns, int64_t n, cpu_body body, void *arg) {
    int64_t team = cpu_team(device, ns);
    if (team > n) team = n;
    if (team <= 1) {
        body(arg, 0, 0, n);
        return;
    }
#pragma omp parallel for num_threads((int)team) schedule(static)
    for (int64_t i = 0; i < team; i++) body(arg, (int)i, n * i / team, n * (i + 1) / team);
}

static int allowed_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* Feature bits decide, never the model: virtual machines lie about that. */
static cpu_isa best_isa(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return CPU_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CPU_ISA_AVX2;
#endif
    return CPU_ISA_BASE;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { HUGE_PAGE = 2 << 20, LARGE = 1 << 20 };

/* The plugin's object of an allocation is its address. Large pieces ask for huge pages: first touches cost a fifth. */
static int32_t take(void *device, uint32_t memory_kind, uint64_t bytes, fnx_binding *out) {
    size_t align = bytes >= LARGE ? HUGE_PAGE : 64;
    void *p = NULL;
    (void)device, (void)memory_kind;
    *out = (fnx_binding){0, NULL};
    if (bytes > SIZE_MAX / 2 || posix_memalign(&p, align, bytes ? bytes : 1))
        return cpu_host->error(FNX_E_NO_MEMORY, "no host memory");
    if (bytes >= LARGE) madvise(p, bytes, MADV_HUGEPAGE);
    *out = (fnx_binding){(uint64_t)(uintptr_t)p, p};
    return FNX_OK;
}

static void give(void *device, void *memory) {
    (void)device;
    free(memory);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

#define MASK(dtype) (UINT64_C(1) << (dtype))
#define FLOATS (MASK(FNX_F32) | MASK(FNX_F64))
#define NUMBERS (FLOATS | MASK(FNX_I32) | MASK(FNX_I64) | MASK(FNX_U8))
#define ANY (NUMBERS | MASK(FNX_BOOL))

static const fnx_op_caps caps[] = {
#define E(op, in, out) \
    { FNX_OP_##op, 1, 0, in, out }
#define K(op, in, out) \
    { FNX_OP_##op, 8, 0, in, out }
    E(add, NUMBERS, NUMBERS),
    E(sub, NUMBERS, NUMBERS),
    E(mul, NUMBERS, NUMBERS),
    E(div, NUMBERS, NUMBERS),
    E(pow, NUMBERS, NUMBERS),
    E(maximum, NUMBERS, NUMBERS),
    E(minimum, NUMBERS, NUMBERS),
    E(neg, NUMBERS, NUMBERS),
    E(abs, NUMBERS, NUMBERS),
    E(exp, FLOATS, FLOATS),
    E(log, FLOATS, FLOATS),
    E(sqrt, FLOATS, FLOATS),
    E(tanh, FLOATS, FLOATS),
    E(sigmoid, FLOATS, FLOATS),
    E(erf, FLOATS, FLOATS),
    E(relu, NUMBERS, NUMBERS),
    E(equal, ANY, MASK(FNX_BOOL)),
    E(not_equal, ANY, MASK(FNX_BOOL)),
    E(less, NUMBERS, MASK(FNX_BOOL)),
    E(less_equal, NUMBERS, MASK(FNX_BOOL)),
    E(greater, NUMBERS, MASK(FNX_BOOL)),
    E(greater_equal, NUMBERS, MASK(FNX_BOOL)),
    E(where, ANY, ANY),
    E(cast, ANY, ANY),
    E(copy, ANY, ANY),
    E(uniform, MASK(FNX_U64) | MASK(FNX_I64), FLOATS),
    E(normal, MASK(FNX_U64) | MASK(FNX_I64), FLOATS),
    K(sum, NUMBERS, NUMBERS),
    K(max, NUMBERS, NUMBERS),
    K(min, NUMBERS, NUMBERS),
    K(argmax, NUMBERS, MASK(FNX_I64)),
    K(matmul, NUMBERS, NUMBERS),
    K(conv, FLOATS, FLOATS),
    K(conv_grad_x, FLOATS, FLOATS),
    K(conv_grad_w, FLOATS, FLOATS),
    K(max_pool, NUMBERS, NUMBERS),
    K(max_pool_grad, NUMBERS, NUMBERS),
    K(max_pool_pick, NUMBERS, NUMBERS),
    K(avg_pool, FLOATS, FLOATS),
    K(avg_pool_grad, FLOATS, FLOATS),
    K(gather, ANY, ANY),
    K(scatter_add, NUMBERS, NUMBERS),
#undef E
#undef K
};

static int32_t capabilities(void *device, fnx_group_caps *out) {
    (void)device;
    uint32_t size = out->struct_size;
    fnx_group_caps c = {.struct_size = size,
                        .anchors = UINT32_MAX,
                        .max_bindings = 64,
                        .max_nodes = 64,
                        .max_rank = FNX_MAX_RANK,
                        .max_row = INT64_MAX,
                        .n_ops = sizeof caps / sizeof *caps,
                        .op_bytes = sizeof *caps,
                        .ops = caps};
    memcpy(out, &c, size < sizeof c ? size : sizeof c);
    return FNX_OK;
}

static int32_t refuse_unknown(const fnx_group *g, fnx_decline *why) {
    if (g->features)
        return cpu_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, FNX_NONE,
                           "the group uses a feature newer than this plugin");
    if (g->scalar_value != FNX_NONE)
        return cpu_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, FNX_NONE, "scalars in memory");
    for (uint32_t i = 0; i < g->n_values; i++)
        if (fnx_group_value(g, i)->flags)
            return cpu_decline(why, FNX_DECLINE_FEATURE, FNX_NONE, i, "unknown value flag");
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (fnx_group_node(g, i)->flags) return cpu_decline(why, FNX_DECLINE_FEATURE, i, FNX_NONE, "unknown node flag");
    return FNX_OK;
}

static int32_t prepare(void *device, const fnx_group *g, void **out_handle, fnx_decline *why) {
    const cpu_engine *engine = g->anchor == FNX_ANCHOR_ELEMENTWISE ? &cpu_vm : &cpu_kernels;
    int32_t code = refuse_unknown(g, why);
    if (code) return code;
    if (engine == &cpu_kernels && g->n_nodes != 1)
        return cpu_decline(why, FNX_DECLINE_ANCHOR, g->anchor_node, FNX_NONE, "an anchor runs alone here");
    cpu_handle *h = calloc(1, sizeof *h);
    if (!h) return cpu_host->error(FNX_E_NO_MEMORY, "no host memory for a group");
    *h = (cpu_handle){engine, device, NULL, g->n_sizes, g->n_strides, g->n_bindings, g->n_scalars};
    code = engine->prepare(device, g, &h->state, why);
    if (code) free(h);
    else *out_handle = h;
    return code;
}

static int32_t workspace(void *handle, const fnx_launch *l, uint64_t *out_bytes) {
    const cpu_handle *h = handle;
    *out_bytes = h->engine->workspace ? h->engine->workspace(h->state, l) : 0;
    return FNX_OK;
}

static int32_t launch(void *handle, void *queue, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes) {
    return cpu_queue_launch(queue, handle, launches, n, launch_bytes);
}

static void release(void *handle) {
    cpu_handle *h = handle;
    if (h) cpu_queue_release(h->device->queue, h);
}

static const fnx_group_interface groups = {sizeof groups, 0, capabilities, prepare, workspace, launch, release};

/* ---- device ------------------------------------------------------------------------------------------------------ */

static int32_t info(void *device, fnx_device_info *out) {
    const cpu_device *d = device;
    static const char *const isa[CPU_ISAS] = {"baseline", "AVX2", "AVX-512"};
    uint32_t size = out->struct_size;
    fnx_device_info i = {.struct_size = size, .flags = FNX_DEVICE_HOST_MEMORY, .memory_align = 64, .max_queues = 1};
    i.memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(i.name, sizeof i.name, "CPU, %s, %d thread%s", isa[d->isa], d->threads, d->threads == 1 ? "" : "s");
    memcpy(out, &i, size < sizeof i ? size : sizeof i);
    return FNX_OK;
}

static const void *get_interface(void *device, const char *name) {
    (void)device;
    if (!strcmp(name, "fornax.group/0")) return &groups;
    return strcmp(name, "fornax.layout/0") ? NULL : &cpu_layout;
}

static int32_t copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    return cpu_queue_copy(queue, (void *)(uintptr_t)to->address, (const void *)(uintptr_t)from->address, bytes);
}

static int32_t fill(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    return cpu_queue_fill(queue, (void *)(uintptr_t)to->address, bytes, pattern, pattern_bytes);
}

static int32_t queue_create(void *device, void **out_queue) {
    *out_queue = ((cpu_device *)device)->queue;
    return FNX_OK;
}

static void queue_destroy(void *queue) {
    fnx_error_word ignored;
    cpu_queue_sync(queue, &ignored);
}

static int32_t queue_flush(void *queue) { return queue ? FNX_OK : FNX_E_INVALID; }
static int32_t queue_sync(void *queue, fnx_error_word *out) { return cpu_queue_sync(queue, out); }

static void device_close(void *device) {
    cpu_device *d = device;
    if (!d) return;
    cpu_queue_destroy(d->queue);
    cpu_kernels_close(d);
    free(d);
}

static const fnx_device_table table = {
    .struct_size = sizeof table,
    .kernel_bytes = sizeof(fnx_kernel),
    .close = device_close,
    .info = info,
    .get_interface = get_interface,
    .alloc = take,
    .free = give,
    .copy = copy,
    .fill = fill,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_flush = queue_flush,
    .queue_sync = queue_sync,
};

/* ---- descriptor -------------------------------------------------------------------------------------------------- */

static int32_t init(const fnx_host *host, void **out_context) {
    if (!FNX_HAS(fnx_host, host, config)) return FNX_E_INVALID;
    cpu_host = host;
    *out_context = NULL;
    return FNX_OK;
}

static void shutdown_plugin(void *context) { (void)context; }

static uint32_t device_count(void *context) { return context == NULL; }

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    static const char *const isa_names[CPU_ISAS] = {"base", "avx2", "avx512"};
    char text[160];
    (void)context;
    if (*address && strcmp(address, "0"))
        return cpu_host->error(FNX_E_NOT_FOUND, "there is one CPU device, \"cpu\" or \"cpu:0\"");
    cpu_device *d = calloc(1, sizeof *d);
    if (!d) return cpu_host->error(FNX_E_NO_MEMORY, "no host memory");
    const char *threads = cpu_host->config("threads", ""), *isa = cpu_host->config("isa", "");
    char *end;
    long n = *threads ? strtol(threads, &end, 10) : allowed_cpus();
    d->isa = best_isa();
    int wanted = -1;
    for (int i = 0; i < CPU_ISAS; i++)
        if (!strcmp(isa, isa_names[i])) wanted = i;
    if ((*threads && (end == threads || *end)) || n < 1 || n > 1024)
        snprintf(text, sizeof text, "threads must be 1 to 1024, not '%.40s'", threads);
    else if (*isa && (wanted < 0 || wanted > (int)d->isa))
        snprintf(text, sizeof text, "isa must be base, avx2 or avx512 and the CPU must have it, not '%.40s'", isa);
    else if (!(d->queue = (d->threads = (int)n, d->isa = wanted >= 0 ? (cpu_isa)wanted : d->isa, cpu_queue_create(d))))
        snprintf(text, sizeof text, "no thread could be started");
    else {
        *out_table = &table, *out_device = d;
        return FNX_OK;
    }
    free(d);
    return cpu_host->error(FNX_E_INVALID, text);
}

FNX_PLUGIN_EXPORT = {
    .struct_size = sizeof(fnx_plugin),
    .magic = FNX_PLUGIN_MAGIC,
    .abi_epoch = FNX_ABI_EPOCH,
    .abi_minor = FNX_ABI_MINOR,
#ifdef FORNAX_BUILD_SANITIZERS
    .build = FORNAX_BUILD_SANITIZERS,
#endif
    .name = "cpu",
    .version = "0.1.0",
    .init = init,
    .shutdown = shutdown_plugin,
    .device_count = device_count,
    .device_open = device_open,
};
