/* A device that runs the kernel compiler's C: each kernel is compiled by the host's compiler ($CC, else cc) into a
 * shared object of its own. Memory and the rest are those of the ref plugin. What it shows about kernels holds for
 * the other dialects, which are printed from the same lists of instructions. */
#include <fornax-plugin/kernel.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void kernel(const uint32_t *group, const uint32_t *groups, const void *args);

typedef struct queue {
    void *of_ref;
    fnx_error_word word;
} queue;

static const fnx_plugin *ref;
static const fnx_host *host;
static void *ref_context;
static const fnx_device_table *ref_table;
static fnx_device_table table;

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static void read_log(const char *path, char *log, uint32_t log_bytes) {
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(log, 1, log_bytes - 1, f) : 0;
    log[n] = 0;
    if (f) fclose(f);
}

/* Compiled once per source text and folder $XDG_CACHE_HOME/fornax-cc: tests fork, and compilers take long. */
static int32_t compile(void *user, const fnx_codegen_source *source, void **out_program, char *log,
                       uint32_t log_bytes) {
    const char *cache = getenv("XDG_CACHE_HOME"), *cc = getenv("CC");
    char stem[320], path[384], command[2048];
    (void)user;
    snprintf(stem, sizeof stem, "%s/fornax-cc/%016llx%016llx", cache ? cache : "/tmp",
             (unsigned long long)source->key[0], (unsigned long long)source->key[1]);
    snprintf(path, sizeof path, "%s.so", stem);
    if (access(path, R_OK)) {
        snprintf(command, sizeof command, "mkdir -p '%s/fornax-cc'", cache ? cache : "/tmp");
        if (system(command)) return host->error(FNX_E_IO, "cc: no folder for kernels");
        snprintf(path, sizeof path, "%s.%d.c", stem, (int)getpid());
        FILE *f = fopen(path, "w");
        int written = f && fputs(source->text, f) >= 0;
        if (f && fclose(f)) written = 0;
        snprintf(
            command, sizeof command,
            "o='%s.%d' && %s -std=gnu17 -O1 -Wall -Werror -Wno-unused -Wno-overflow -Wno-tautological-compare -shared "
            "-fPIC -o $o.so $o.c -lm >$o.log 2>&1 && mv $o.so '%s.so' && rm $o.c $o.log",
            stem, (int)getpid(), cc && *cc ? cc : "cc", stem);
        if (!written || system(command)) {
            snprintf(path, sizeof path, "%s.%d.log", stem, (int)getpid());
            read_log(path, log, log_bytes);
            return host->error(FNX_E_INTERNAL, "cc: a kernel does not compile");
        }
        snprintf(path, sizeof path, "%s.so", stem);
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *out_program = library ? dlsym(library, source->entry) : NULL;
    return *out_program ? FNX_OK : host->error(FNX_E_INTERNAL, dlerror());
}

static void forget(void *user, void *program) { (void)user, (void)program; } /* libraries stay */

static int32_t run(void *user, void *q, void *program, const uint32_t groups[3], const void *args, uint32_t bytes) {
    kernel *k;
    (void)user, (void)q, (void)bytes;
    memcpy(&k, &program, sizeof k);
    for (uint32_t z = 0; z < groups[2]; z++)
        for (uint32_t y = 0; y < groups[1]; y++)
            for (uint32_t x = 0; x < groups[0]; x++) k((const uint32_t[]){x, y, z}, groups, args);
    return FNX_OK;
}

static uint64_t error_word(void *user, void *q) {
    (void)user;
    return (uint64_t)(uintptr_t) & ((queue *)q)->word;
}

static fnx_codegen_device codegen = {
    .struct_size = sizeof codegen,
    .dialect = FNX_DIALECT_C,
    .features = FNX_CODEGEN_F64 | FNX_CODEGEN_U8 | FNX_CODEGEN_I64,
    .max_threads = 1,
    .max_shared = 1 << 16,
    .max_groups = {1u << 30, 1u << 30, 1},
    .compile = compile,
    .release = forget,
    .launch = run,
    .error_word = error_word,
};

static int32_t capabilities(void *device, fnx_group_caps *out) {
    (void)device;
    return fnx_codegen_capabilities(&codegen, out);
}

static int32_t prepare(void *device, const fnx_group *group, void **out_handle, fnx_decline *why) {
    (void)device;
    return fnx_codegen_prepare(&codegen, group, out_handle, why);
}

static const fnx_group_interface groups = {sizeof groups,         0,
                                           capabilities,          prepare,
                                           fnx_codegen_workspace, fnx_codegen_launch,
                                           fnx_codegen_release};

/* ---- queues, for the error word ---------------------------------------------------------------------------------- */

static int32_t queue_create(void *device, void **out) {
    queue *q = calloc(1, sizeof *q);
    if (!q) return host->error(FNX_E_NO_MEMORY, "cc: no memory");
    int32_t code = ref_table->queue_create(device, &q->of_ref);
    if (code) free(q);
    else *out = q;
    return code;
}

static void queue_destroy(void *q) {
    if (q) ref_table->queue_destroy(((queue *)q)->of_ref);
    free(q);
}

static int32_t queue_flush(void *q) {
    (void)q;
    return FNX_OK;
}

static int32_t queue_sync(void *of, fnx_error_word *out) {
    queue *q = of;
    *out = q->word;
    memset(&q->word, 0, sizeof q->word);
    return out->code;
}

static int32_t copy(void *q, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    return ref_table->copy(((queue *)q)->of_ref, to, from, bytes);
}

static int32_t fill(void *q, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    return ref_table->fill(((queue *)q)->of_ref, to, bytes, pattern, pattern_bytes);
}

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

static const void *device_interface(void *device, const char *name) {
    (void)device;
    return strcmp(name, "fornax.group/0") ? NULL : &groups;
}

static int32_t device_open(void *context, const char *address, const fnx_device_table **out_table, void **out_device) {
    (void)context;
    int32_t code = ref->device_open(ref_context, address, &ref_table, out_device);
    if (code) return code;
    codegen.host = host;
    table = *ref_table;
    table.n_kernels = 0, table.get_interface = device_interface, table.copy = copy, table.fill = fill;
    table.queue_create = queue_create, table.queue_destroy = queue_destroy, table.queue_flush = queue_flush;
    table.queue_sync = queue_sync;
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
    .name = "cc",
    .version = "0",
    .init = init,
    .shutdown = shutdown,
    .device_count = device_count,
    .device_open = device_open,
    .get_interface = get_interface,
};
