/* The public device: names, settings, descriptions, generators. */
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/spell.h"
#include "dispatch/hardware.h"
#include "registry/registry.h"

#include <ctype.h>
#include <errno.h>
#include <fornax/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { DEFAULT_GRAPH_LIMIT = 1 << 30 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct choice {
    const char *text;
    uint32_t value;
} choice;

static const choice on_off[] =
    {{"on", FNX_ON}, {"1", FNX_ON}, {"true", FNX_ON}, {"off", FNX_OFF}, {"0", FNX_OFF}, {"false", FNX_OFF}, {0}};
static const choice fallbacks[] = {{"decompose", FNX_FALLBACK_DECOMPOSE},
                                   {"error", FNX_FALLBACK_ERROR},
                                   {"host", FNX_FALLBACK_HOST},
                                   {0}};
static const choice precisions[] = {{"full", FNX_PRECISION_FULL}, {"reduced", FNX_PRECISION_REDUCED}, {0}};

/* Options that every device takes; the others are the plugin's. */
static const struct option {
    const char *key, *variable; /* environment, or NULL */
    const choice *choices;      /* NULL: bytes, with suffix k, m, g, t */
    size_t at;
} options[] = {
    {"lazy", "FORNAX_LAZY", on_off, offsetof(fnx_settings, lazy)},
    {"verify", NULL, on_off, offsetof(fnx_settings, verify)},
    {"fallback", "FORNAX_FALLBACK", fallbacks, offsetof(fnx_settings, fallback)},
    {"precision", NULL, precisions, offsetof(fnx_settings, precision)},
    {"memory_limit", "FORNAX_MEMORY_LIMIT", NULL, offsetof(fnx_settings, memory_limit)},
    {"graph_limit", NULL, NULL, offsetof(fnx_settings, graph_limit)},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static bool parse_bytes(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (end == text || errno || strchr(text, '-')) return false;
    int shift = 0;
    switch (tolower((unsigned char)*end)) {
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    case 't': shift = 40; break;
    case 0: *out = n; return true;
    default: return false;
    }
    end++;
    if (*end == 'i' || *end == 'I') end++;
    if (*end == 'b' || *end == 'B') end++;
    if (*end || n > UINT64_MAX >> shift) return false;
    *out = (uint64_t)n << shift;
    return true;
}

static fnx_status set_option(fnx_settings *s, const struct option *o, const char *text, const char *source) {
    char *field = (char *)s + o->at;
    if (!o->choices) {
        uint64_t bytes;
        if (!parse_bytes(text, &bytes) || !bytes)
            return fnx_error_set(FNX_E_INVALID, "%s: '%s' is no size (examples: 4096, 512m, 8g)", source, text);
        memcpy(field, &bytes, sizeof bytes);
        return FNX_OK;
    }
    char known[128] = "";
    for (const choice *c = o->choices; c->text; c++) {
        if (!strcasecmp(c->text, text)) {
            memcpy(field, &c->value, sizeof c->value);
            return FNX_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "", c->text);
    }
    return fnx_error_set(FNX_E_INVALID, "%s: '%s' is not one of %s", source, text, known);
}

static uint64_t plan_settings(const fnx_settings *s) { return s->fallback | s->precision << 4 | s->verify << 8; }

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static fnx_device *handle_new(fnx_hardware *h) {
    fnx_device *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->hardware = h;
    d->settings = (fnx_settings){.struct_size = sizeof d->settings,
                                 .float_dtype = FNX_F32,
                                 .int_dtype = FNX_I64,
                                 .fallback = FNX_FALLBACK_DECOMPOSE,
                                 .lazy = FNX_ON,
                                 .verify = FNX_OFF,
                                 .precision = FNX_PRECISION_FULL,
                                 .memory_limit = UINT64_MAX,
                                 .graph_limit = DEFAULT_GRAPH_LIMIT};
    if (h) {
        pthread_mutex_lock(&h->lock);
        d->next = h->handles, h->handles = d;
        pthread_mutex_unlock(&h->lock);
    }
    return d;
}

static fnx_device none; /* the failed device for when there is no memory for one */

static fnx_device *failed(void) {
    fnx_device *d = handle_new(NULL);
    if (!d) d = &none;
    if (!d->error) d->error = fnx_error_take_last();
    return d;
}

/* plugin[:address][?key=value&...]: our keys go into the settings, the plugin's into `rest`, in the order given. */
static fnx_status parse(const char *name, char *plugin, char *address, char *rest, size_t size, fnx_settings *s) {
    const char *question = strchr(name, '?'), *end = question ? question : name + strlen(name),
               *colon = memchr(name, ':', (size_t)(end - name));
    const char *plugin_end = colon ? colon : end;
    size_t n = (size_t)(plugin_end - name);
    if (n == 0 || n >= size || strlen(name) >= size)
        return fnx_error_set(FNX_E_INVALID, "device '%s': expected plugin[:address][?key=value&...]", name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
            return fnx_error_set(FNX_E_INVALID, "device '%s': '%c' cannot be in a plugin's name", name, name[i]);
    memcpy(plugin, name, n), plugin[n] = 0;
    n = colon ? (size_t)(end - colon - 1) : 0;
    memcpy(address, colon ? colon + 1 : "", n), address[n] = 0;
    *rest = 0;
    for (const char *p = question ? question + 1 : ""; *p;) {
        const char *amp = strchr(p, '&'), *stop = amp ? amp : p + strlen(p),
                   *equals = memchr(p, '=', (size_t)(stop - p));
        if (!equals || equals == p)
            return fnx_error_set(FNX_E_INVALID, "device '%s': expected key=value, got '%.*s'", name, (int)(stop - p),
                                 p);
        char value[256], source[320];
        snprintf(value, sizeof value, "%.*s", (int)(stop - equals - 1), equals + 1);
        snprintf(source, sizeof source, "device '%s': %.*s", name, (int)(equals - p), p);
        const struct option *mine = NULL;
        for (size_t i = 0; i < N_OPTIONS; i++)
            if (strlen(options[i].key) == (size_t)(equals - p) && !strncmp(options[i].key, p, (size_t)(equals - p)))
                mine = &options[i];
        if (mine) FNX_TRY(set_option(s, mine, value, source));
        else snprintf(rest + strlen(rest), size - strlen(rest), "%s%.*s", *rest ? "&" : "", (int)(stop - p), p);
        p = *stop ? stop + 1 : stop;
    }
    return FNX_OK;
}

fnx_device *fnx_device_open(const char *name) {
    char plugin[256], address[256], rest[256];
    fnx_settings s = {.struct_size = sizeof s}; /* 0: not said; the limit of hardware that is open stays */
    fnx_hardware *h = NULL;
    fnx_status code = FNX_OK;
    if (!name || !*name) name = fnx_env_text("FORNAX_DEVICE");
    if (!name || !*name) name = fnx_registry_default_device();
    if (!name || !*name) name = "cpu";
    for (size_t i = 0; i < N_OPTIONS && !code; i++) {
        const char *value = options[i].variable ? fnx_env_text(options[i].variable) : NULL;
        if (value && *value) code = set_option(&s, &options[i], value, options[i].variable);
    }
    if (!code) code = parse(name, plugin, address, rest, sizeof rest, &s);
    if (!code) code = fnx_hardware_open(plugin, address, rest, &h);
    if (code) return failed();
    fnx_device *d = handle_new(h);
    if (!d) {
        (void)fnx_error_set(FNX_E_NO_MEMORY, "device '%s': no host memory", name);
        return failed();
    }
    if (fnx_device_configure(d, &s)) return failed();
    return d;
}

static fnx_device *another(const fnx_device *device, bool autodiff) {
    fnx_device *d = handle_new(device->hardware);
    if (!d) {
        (void)fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a device");
        return failed();
    }
    d->settings = device->settings, d->plan_settings = device->plan_settings, d->autodiff = autodiff;
    fnx_hardware_ref(d->hardware);
    return d;
}

fnx_device *fnx_device_autodiff(fnx_device *device) {
    if (!device || device->error)
        return device ? device : (fnx_error_set(FNX_E_INVALID, "device_autodiff: the device is NULL"), failed());
    fnx_device *d = another(device, true);
    fnx_device_close(device);
    return d;
}

fnx_device *fnx_device_plain(const fnx_device *device) {
    if (fnx_device_status(device)) return failed();
    return another(device, false);
}

void fnx_device_close(fnx_device *device) {
    if (!device || device->closed) return;
    device->closed = true;
    if (device->hardware) fnx_hardware_unref(device->hardware);
    else if (device != &none) {
        fnx_error_unref(device->error); /* failed: nothing points to it */
        free(device);
    }
}

fnx_status fnx_device_status(const fnx_device *device) {
    if (!device) return fnx_error_set(FNX_E_INVALID, "the device is NULL");
    return device->error ? fnx_error_raise(device->error) : FNX_OK;
}

bool fnx_device_is_autodiff(const fnx_device *device) { return device && device->autodiff; }
bool fnx_device_same_hardware(const fnx_device *a, const fnx_device *b) {
    return a && b && a->hardware && a->hardware == b->hardware;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

fnx_status fnx_device_settings(const fnx_device *device, fnx_settings *out) {
    FNX_TRY(fnx_device_status(device));
    uint32_t size = out->struct_size;
    fnx_settings s = device->settings;
    fnx_memory_report memory = {.struct_size = sizeof memory};
    fnx_pool_report(&device->hardware->pool, &memory);
    s.memory_limit = memory.limit;
    s.struct_size = size;
    if (size < sizeof(uint32_t)) return fnx_error_set(FNX_E_INVALID, "device_settings: set struct_size first");
    memcpy(out, &s, size < sizeof s ? size : sizeof s);
    return FNX_OK;
}

fnx_status fnx_device_configure(fnx_device *device, const fnx_settings *settings) {
    FNX_TRY(fnx_device_status(device));
    fnx_settings in = {0}, s = device->settings;
    if (settings->struct_size < sizeof(uint32_t))
        return fnx_error_set(FNX_E_INVALID, "device_configure: set struct_size first");
    memcpy(&in, settings, settings->struct_size < sizeof in ? settings->struct_size : sizeof in);
    if (in.float_dtype && !(in.float_dtype < 16 && FNX_MASK(in.float_dtype) & FNX_MASK_FLOATS))
        return fnx_error_set(FNX_E_DTYPE, "device_configure: float_dtype %d is no supported float", in.float_dtype);
    if (in.int_dtype && !(in.int_dtype < 16 && FNX_MASK(in.int_dtype) & FNX_MASK_INTS))
        return fnx_error_set(FNX_E_DTYPE, "device_configure: int_dtype %d is no supported integer", in.int_dtype);
    if (in.fallback > FNX_FALLBACK_HOST || in.lazy > FNX_OFF || in.verify > FNX_OFF ||
        in.precision > FNX_PRECISION_REDUCED)
        return fnx_error_set(FNX_E_INVALID, "device_configure: a setting has no such value");
    if (in.float_dtype) s.float_dtype = in.float_dtype;
    if (in.int_dtype) s.int_dtype = in.int_dtype;
    if (in.fallback) s.fallback = in.fallback;
    if (in.lazy) s.lazy = in.lazy;
    if (in.verify) s.verify = in.verify;
    if (in.precision) s.precision = in.precision;
    if (in.graph_limit) s.graph_limit = in.graph_limit > INT64_MAX ? INT64_MAX : in.graph_limit;
    if (in.memory_limit) fnx_pool_set_limit(&device->hardware->pool, in.memory_limit);
    device->settings = s;
    device->plan_settings = plan_settings(&s);
    return FNX_OK;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static void describe(const fnx_hardware *h, fnx_device_description *out) {
    fnx_device_description d = {.struct_size = out->struct_size,
                                .host_memory = fnx_hardware_host_memory(h),
                                .memory_bytes = h->info.memory_bytes};
    snprintf(d.spec, sizeof d.spec, "%s", h->spec);
    snprintf(d.plugin, sizeof d.plugin, "%s", h->plugin_name);
    snprintf(d.name, sizeof d.name, "%.*s", (int)sizeof h->info.name, h->info.name);
    memcpy(d.uuid, h->info.uuid, sizeof d.uuid);
    memcpy(out, &d, out->struct_size < sizeof d ? out->struct_size : sizeof d);
}

fnx_status fnx_device_describe(const fnx_device *device, fnx_device_description *out) {
    FNX_TRY(fnx_device_status(device));
    if (out->struct_size < sizeof(uint32_t))
        return fnx_error_set(FNX_E_INVALID, "device_describe: set struct_size first");
    describe(device->hardware, out);
    return FNX_OK;
}

typedef struct listing {
    int (*each)(void *user, const fnx_device_description *device, const char *reason);
    void *user;
} listing;

/* One device of a plugin, or the plugin itself if it has none (`address` NULL, `reason` says why). */
static int list_one(void *user, const char *plugin, const char *address, const char *reason) {
    const listing *l = user;
    fnx_device_description d = {.struct_size = sizeof d};
    snprintf(d.plugin, sizeof d.plugin, "%s", plugin);
    snprintf(d.spec, sizeof d.spec, "%s%s%s", plugin, address && *address ? ":" : "", address ? address : "");
    fnx_hardware *h = NULL;
    if (!reason && fnx_hardware_open(plugin, address, "", &h)) reason = fnx_last_error()->message;
    if (h) describe(h, &d);
    if (h && (!address || !*address || !strcmp(address, "0"))) snprintf(d.spec, sizeof d.spec, "%s:0", plugin);
    int stop = l->each(l->user, &d, reason);
    if (h) fnx_hardware_unref(h);
    return stop;
}

fnx_status fnx_device_list(int (*each)(void *user, const fnx_device_description *device, const char *reason),
                           void *user) {
    listing l = {each, user};
    return fnx_registry_devices(list_one, &l);
}

int fnx_op_count(void) {
    int n = 0;
    for (int i = 0; i < FNX_OP_LIMIT; i++) n += fnx_ops[i].name != NULL;
    return n;
}

static const fnx_op_info *nth_op(int n) {
    for (int i = 0; i < FNX_OP_LIMIT; i++)
        if (fnx_ops[i].name && n-- == 0) return &fnx_ops[i];
    return NULL;
}

const char *fnx_op_name(int i) { return nth_op(i) ? nth_op(i)->name : NULL; }

/* Views, sources without kernels and composites work on what their parts work on. */
uint64_t fnx_device_op_dtypes(const fnx_device *device, int i) {
    const fnx_op_info *op = nth_op(i);
    if (!op || !device || !device->hardware) return 0;
    uint64_t copies = fnx_ladder_dtypes(device->hardware, FNX_OP_copy);
    bool made_of_copies =
        op->class == FNX_CLASS_VIEW || op->id == FNX_OP_fill || op->id == FNX_OP_iota || op->id == FNX_OP_transfer;
    uint64_t mask = made_of_copies ? copies : fnx_ladder_dtypes(device->hardware, op->sibling ? op->sibling : op->id);
    if (op->id == FNX_OP_uniform || op->id == FNX_OP_normal) mask = mask ? FNX_MASK_FLOATS : 0;
    if (op->class == FNX_CLASS_COMPOSITE)
        mask |= fnx_ladder_dtypes(device->hardware, FNX_OP_exp) | fnx_ladder_dtypes(device->hardware, FNX_OP_erf);
    return mask & op->dtypes;
}

/* ---- memory, waiting, randomness --------------------------------------------------------------------------------- */

fnx_status fnx_device_memory(const fnx_device *device, fnx_memory_report *out) {
    FNX_TRY(fnx_device_status(device));
    if (out->struct_size < sizeof(uint32_t))
        return fnx_error_set(FNX_E_INVALID, "device_memory: set struct_size first");
    fnx_pool_report(&device->hardware->pool, out);
    return FNX_OK;
}

void fnx_device_memory_reset(fnx_device *device) {
    if (device && device->hardware) fnx_pool_reset_peaks(&device->hardware->pool);
}

void fnx_device_memory_trim(fnx_device *device) {
    if (device && device->hardware) fnx_pool_trim(&device->hardware->pool);
}

fnx_status fnx_device_sync(fnx_device *device) {
    FNX_TRY(fnx_device_status(device));
    fnx_recorder *r = fnx_recorder_of(&fnx_thread_self, device->hardware);
    if (!r) return FNX_E_NO_MEMORY;
    FNX_TRY(fnx_recorder_flush(r, FNX_WHY_STEP));
    return fnx_hardware_sync(device->hardware);
}

void fnx_device_seed(fnx_device *device, uint64_t seed) { fnx_device_generator_set(device, seed, 0); }

void fnx_device_generator(const fnx_device *device, uint64_t *out_seed, uint64_t *out_counter) {
    *out_seed = *out_counter = 0;
    if (!device || !device->hardware) return;
    pthread_mutex_lock(&device->hardware->lock);
    *out_seed = device->hardware->seed, *out_counter = device->hardware->counter;
    pthread_mutex_unlock(&device->hardware->lock);
}

void fnx_device_generator_set(fnx_device *device, uint64_t seed, uint64_t counter) {
    if (!device || !device->hardware) return;
    pthread_mutex_lock(&device->hardware->lock);
    device->hardware->seed = seed, device->hardware->counter = counter;
    pthread_mutex_unlock(&device->hardware->lock);
}

void fnx_device_take_counter(fnx_device *device, uint64_t *seed, uint64_t *counter) {
    *seed = *counter = 0;
    if (!device || !device->hardware) return;
    pthread_mutex_lock(&device->hardware->lock);
    *seed = device->hardware->seed, *counter = device->hardware->counter++;
    pthread_mutex_unlock(&device->hardware->lock);
}

fnx_status fnx_device_stats(const fnx_device *device, fnx_graph_stats *out) {
    FNX_TRY(fnx_device_status(device));
    uint32_t size = out->struct_size;
    if (size < sizeof(uint32_t)) return fnx_error_set(FNX_E_INVALID, "device_stats: set struct_size first");
    fnx_recorder *r = fnx_recorder_of(&fnx_thread_self, device->hardware);
    if (!r) return FNX_E_NO_MEMORY;
    fnx_graph_stats s = r->stats;
    s.struct_size = size, s.fallbacks = __atomic_load_n(&device->hardware->fallbacks, __ATOMIC_RELAXED);
    memcpy(out, &s, size < sizeof s ? size : sizeof s);
    return FNX_OK;
}

/* ---- between devices --------------------------------------------------------------------------------------------- */

fnx_tensor *fnx_tensor_to(fnx_tensor *t, fnx_device *device) {
    if (!t) return fnx_tensor_failed(FNX_E_INVALID, "tensor_to: the tensor is NULL");
    if (fnx_device_status(device)) return fnx_tensor_failed_from_last();
    if (fnx_state(t) == FNX_FAILED) return fnx_copy(t);
    if (t->device->hardware == device->hardware) {
        if (!device->autodiff) fnx_thread_self.no_grad++;
        fnx_tensor *y = fnx_copy(t);
        if (!device->autodiff) fnx_thread_self.no_grad--;
        if (fnx_state(y) != FNX_FAILED) y->device = device;
        return y;
    }
    size_t bytes = (size_t)t->count * fnx_dtypes[t->dtype].bytes;
    void *host = fnx_alloc(bytes + 1);
    if (!host) return fnx_tensor_failed(FNX_E_NO_MEMORY, "tensor_to: no host memory for %zu bytes", bytes);
    fnx_tensor *y = fnx_tensor_read(t, host, bytes) ? fnx_tensor_failed_from_last()
                                                    : fnx_tensor_from(device, t->dtype, t->rank, t->size, host, 0);
    free(host);
    if (fnx_state(y) == FNX_FAILED || !device->autodiff || fnx_thread_self.no_grad || !(t->flags & FNX_T_GRAD))
        return y;
    y->op = FNX_OP_transfer, y->n_operands = 1,
    y->in[0] = t; /* stored from the start: only the tape follows this link */
    y->flags |= FNX_T_GRAD | FNX_T_LINKED;
    fnx_tensor_ref(t);
    return y;
}
