/* A device whose memory the host cannot address and that lacks operations: the ref plugin, with addresses that are
 * shifted out of the host's reach, declining the ops that its address names ("partial:exp+argmax"). */
#include <fornax-plugin/op-table.h>
#include <fornax-plugin/plugin.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define SHIFT (UINT64_C(1) << 60)
enum { MAX_BINDINGS = 64 };

static const fnx_plugin *ref;
static const fnx_host *host;
static void *ref_context;
static const fnx_device_table *ref_table;
static fnx_device_table table;
static const fnx_group_interface *ref_groups;
static fnx_group_interface groups;
static char lacking[256];

static int lacks(uint16_t op) {
    static const char *const names[] = {
#define NAME(id, name, bytes) [id] = #name,
        FNX_OP_TABLE(NAME)
#undef NAME
    };
    const char *name = op < sizeof names / sizeof *names ? names[op] : NULL;
    size_t n = name ? strlen(name) : 0;
    for (const char *p = lacking; n && (p = strstr(p, name)); p += n)
        if ((p == lacking || p[-1] == '+') && (p[n] == '+' || !p[n])) return 1;
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static fnx_binding reachable(fnx_binding b) {
    b.address &= ~SHIFT;
    return b;
}

static int32_t info(void *device, fnx_device_info *out) {
    int32_t code = ref_table->info(device, out);
    out->flags &= ~(uint32_t)FNX_DEVICE_HOST_MEMORY;
    return code;
}

static int32_t take(void *device, uint32_t kind, uint64_t bytes, fnx_binding *out) {
    int32_t code = ref_table->alloc(device, kind, bytes, out);
    out->address |= SHIFT;
    return code;
}

static int32_t copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    fnx_binding a = reachable(*to), b = reachable(*from);
    return ref_table->copy(queue, &a, &b, bytes);
}

static int32_t fill(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    fnx_binding a = reachable(*to);
    return ref_table->fill(queue, &a, bytes, pattern, pattern_bytes);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

typedef struct handle {
    void *of_ref;
    uint32_t n_bindings;
} handle;

static int32_t capabilities(void *device, fnx_group_caps *out) {
    int32_t code = ref_groups->capabilities(device, out);
    out->max_bindings = MAX_BINDINGS;
    return code;
}

static int32_t prepare(void *device, const fnx_group *g, void **out, fnx_decline *why) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (!lacks(fnx_group_node(g, i)->op)) continue;
        if (why) why->why = FNX_DECLINE_OP, why->node = i;
        return FNX_E_DECLINED;
    }
    handle *h = malloc(sizeof *h);
    if (!h) return host->error(FNX_E_NO_MEMORY, "partial: no memory");
    h->n_bindings = g->n_bindings;
    int32_t code = ref_groups->prepare(device, g, &h->of_ref, why);
    if (code) free(h);
    else *out = h;
    return code;
}

static int32_t workspace(void *work, const fnx_launch *launch, uint64_t *bytes) {
    return ref_groups->workspace ? ref_groups->workspace(((handle *)work)->of_ref, launch, bytes) : FNX_OK;
}

static int32_t launch(void *work, void *queue, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes) {
    const handle *h = work;
    int32_t code = FNX_OK;
    for (uint32_t i = 0; i < n && !code; i++) {
        fnx_launch one = *FNX_AT(fnx_launch, launches, launch_bytes, i);
        fnx_binding bindings[MAX_BINDINGS];
        for (uint32_t k = 0; k < h->n_bindings; k++) bindings[k] = reachable(one.bindings[k]);
        one.bindings = bindings, one.workspace = reachable(one.workspace);
        code = ref_groups->launch(h->of_ref, queue, &one, 1, sizeof one);
    }
    return code;
}

static void release(void *work) {
    if (work) ref_groups->release(((handle *)work)->of_ref);
    free(work);
}

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

static const void *device_interface(void *device, const char *name) {
    (void)device;
    return strcmp(name, "fornax.group/0") ? NULL : &groups;
}

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    (void)context;
    int32_t code = ref->device_open(ref_context, "", &ref_table, out_device);
    if (code) return code;
    strncpy(lacking, address, sizeof lacking - 1);
    ref_groups = ref_table->get_interface(*out_device, "fornax.group/0");
    groups = *ref_groups;
    groups.capabilities = capabilities, groups.prepare = prepare, groups.workspace = workspace, groups.launch = launch,
    groups.release = release;
    table = *ref_table;
    table.n_kernels = 0, table.info = info, table.get_interface = device_interface, table.alloc = take,
    table.copy = copy, table.fill = fill;
    *out_table = &table;
    return FNX_OK;
}

static int32_t init(const fnx_host *given, void **out_context) {
    host = given;
    void *library = dlopen(REF_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ref = library ? dlsym(library, "fornax_plugin_v0") : NULL;
    if (!ref) return host->error(FNX_E_PLUGIN, dlerror());
    *out_context = NULL;
    return ref->init(host, &ref_context);
}

static void shutdown(void *context) { (void)context; }
static uint32_t device_count(void *context) { return context == NULL; }
static const void *get_interface(void *context, const char *name) {
    (void)context, (void)name;
    return NULL;
}

FNX_PLUGIN_EXPORT = {
    .struct_size = sizeof(fnx_plugin),
    .magic = FNX_PLUGIN_MAGIC,
    .abi_epoch = FNX_ABI_EPOCH,
    .abi_minor = FNX_ABI_MINOR,
    .build = FORNAX_BUILD_SANITIZERS,
    .name = "partial",
    .version = "0",
    .init = init,
    .shutdown = shutdown,
    .device_count = device_count,
    .device_open = device_open,
    .get_interface = get_interface,
};
