/* Checkpoints: what the module and the optimizer hold, as safetensors, and back. */
#include "cause.h"

#include <fornax/nn/checkpoint.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "1"
enum { DTYPE_BYTES_MAX = 8, PROBLEMS = 400 };

/* Every variable that a checkpoint holds: parameters and buffers, then the optimizer's state. */
typedef struct entry {
    char name[1100];
    fnx_variable *variable;
} entry;

static size_t item_bytes(int dtype) {
    static const uint8_t bytes[16] =
        {[FNX_BOOL] = 1, [FNX_U8] = 1, [FNX_I32] = 4, [FNX_I64] = 8, [FNX_F32] = 4, [FNX_F64] = 8};
    return dtype > 0 && dtype < 16 ? bytes[dtype] : 0;
}

static fnx_status entries_of(fnx_module *net, fnx_optimizer *o, entry **out, int *out_n) {
    int n_net, n_state = 0, k = 0;
    *out = NULL, *out_n = 0;
    TRY(fnx_module_status(net));
    if (o) TRY(fnx_optimizer_status(o));
    const fnx_parameter *p = fnx_module_parameters(net, &n_net), *s = o ? fnx_optimizer_state(o, &n_state) : NULL;
    entry *e = malloc(sizeof *e * (size_t)(n_net + n_state + 1));
    if (!e) return fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a checkpoint");
    for (int i = 0; i < n_net; i++, k++)
        snprintf(e[k].name, sizeof e[k].name, "model.%s", p[i].path), e[k].variable = p[i].variable;
    for (int i = 0; i < n_state; i++, k++)
        snprintf(e[k].name, sizeof e[k].name, "optimizer.%s", s[i].path), e[k].variable = s[i].variable;
    *out = e, *out_n = k;
    return FNX_OK;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static fnx_status read_entry(const entry *e, fnx_safetensor *t) {
    FNX_SCOPE_QUIET;
    fnx_tensor *v = fnx_keep(fnx_variable_get(e->variable));
    TRY(fnx_tensor_status(v));
    t->name = e->name, t->dtype = fnx_tensor_dtype(v), t->rank = fnx_tensor_rank(v);
    for (int d = 0; d < t->rank; d++) t->sizes[d] = fnx_tensor_size(v, d);
    t->bytes = (uint64_t)fnx_tensor_count(v) * item_bytes(t->dtype);
    void *data = malloc(t->bytes + 1);
    t->data = data;
    if (!data) return fnx_error_set(FNX_E_NO_MEMORY, "no host memory for %" PRIu64 " bytes of %s", t->bytes, e->name);
    return fnx_tensor_read(v, data, t->bytes);
}

static fnx_status save(const char *path, fnx_module *net, fnx_optimizer *o, const fnx_text_pair *metadata,
                       const entry *e, int n, fnx_safetensor *t) {
    char steps[32], seed[32], counter[32];
    uint64_t s, c;
    int n_meta = 0;
    for (int i = 0; i < n; i++) TRY(read_entry(&e[i], &t[i]));
    while (metadata && metadata[n_meta].key) n_meta++;
    fnx_device_generator(fnx_module_device(net), &s, &c);
    snprintf(steps, sizeof steps, "%" PRId64, o ? fnx_optimizer_steps(o) : 0);
    snprintf(seed, sizeof seed, "%" PRIu64, s), snprintf(counter, sizeof counter, "%" PRIu64, c);
    fnx_text_pair *all = calloc((size_t)n_meta + 6, sizeof *all);
    if (!all) return fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a checkpoint");
    int k = 0;
    for (; k < n_meta; k++) all[k] = metadata[k];
    all[k++] = (fnx_text_pair){"fornax.format", FORMAT};
    all[k++] = (fnx_text_pair){"fornax.generator.seed", seed};
    all[k++] = (fnx_text_pair){"fornax.generator.counter", counter};
    if (o)
        all[k++] = (fnx_text_pair){"fornax.optimizer", fnx_optimizer_name(o)},
        all[k++] = (fnx_text_pair){"fornax.optimizer.steps", steps};
    fnx_status code = fnx_safetensors_save(path, t, n, all);
    free(all);
    return code;
}

fnx_status fnx_checkpoint_save(const char *path, fnx_module *net, fnx_optimizer *optimizer,
                               const fnx_text_pair *metadata) {
    entry *e;
    int n;
    TRY(entries_of(net, optimizer, &e, &n));
    fnx_safetensor *t = calloc((size_t)n + 1, sizeof *t);
    fnx_status code = t ? save(path, net, optimizer, metadata, e, n, t)
                        : fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a checkpoint");
    for (int i = 0; t && i < n; i++) free((void *)t[i].data);
    free(t), free(e);
    return code;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct problems {
    char text[PROBLEMS];
    int n;
} problems;

static void add(problems *p, const char *what, const char *name, const char *more) {
    size_t k = strlen(p->text);
    if (++p->n > 5) return; /* the first ones tell enough */
    snprintf(p->text + k, sizeof p->text - k, "%s%s %.60s%s", k ? ", " : "", what, name, more);
}

static bool same_shape(const fnx_safetensor *t, const fnx_tensor *v) {
    if (t->dtype != fnx_tensor_dtype(v) || t->rank != fnx_tensor_rank(v)) return false;
    for (int d = 0; d < t->rank; d++)
        if (t->sizes[d] != fnx_tensor_size(v, d)) return false;
    return true;
}

static fnx_status compare(const char *path, const fnx_safetensors *f, const entry *e, int n, bool with_optimizer) {
    FNX_SCOPE_QUIET;
    problems p = {{0}, 0};
    for (int i = 0; i < n; i++) {
        const fnx_safetensor *t = fnx_safetensors_find(f, e[i].name);
        if (!t) add(&p, "missing", e[i].name, "");
        else if (!same_shape(t, fnx_variable_get(e[i].variable))) add(&p, "another shape or dtype:", e[i].name, "");
    }
    for (int i = 0; i < fnx_safetensors_count(f); i++) {
        const char *name = fnx_safetensors_at(f, i)->name;
        bool known = !with_optimizer && !strncmp(name, "optimizer.", 10);
        for (int k = 0; k < n && !known; k++) known = !strcmp(name, e[k].name);
        if (!known) add(&p, "unexpected", name, "");
    }
    if (!p.n) return FNX_OK;
    make_printable(p.text);
    return fnx_error_set(FNX_E_INVALID, "%s is a checkpoint of another architecture or optimizer: %s%s", path, p.text,
                         p.n > 5 ? ", and more" : "");
}

static fnx_status set_entry(fnx_device *device, const fnx_safetensors *f, const entry *e) {
    FNX_NO_GRAD;
    const fnx_safetensor *t = fnx_safetensors_find(f, e->name);
    return fnx_variable_set(e->variable, fnx_tensor_from(device, t->dtype, t->rank, t->sizes, t->data, 0));
}

static bool number(const fnx_safetensors *f, const char *key, uint64_t *out) {
    const char *text = fnx_safetensors_metadata(f, key);
    char *end;
    if (!text || *text < '0' || *text > '9') return false;
    *out = strtoull(text, &end, 10);
    return !*end;
}

static fnx_status load(const char *path, const fnx_safetensors *f, fnx_module *net, fnx_optimizer *o, const entry *e,
                       int n) {
    const char *format = fnx_safetensors_metadata(f, "fornax.format"),
               *rule = fnx_safetensors_metadata(f, "fornax.optimizer");
    uint64_t steps = 0, seed = 0, counter = 0;
    if (!format || strcmp(format, FORMAT))
        return fnx_error_set(FNX_E_FORMAT, "%s: no checkpoint of fornax, or of a later version", path);
    if (o && (!rule || strcmp(rule, fnx_optimizer_name(o)))) {
        char its[41];
        snprintf(its, sizeof its, "%s", rule ? rule : "none");
        make_printable(its);
        return fnx_error_set(FNX_E_INVALID, "%s holds the state of optimizer %s, not %s", path, its,
                             fnx_optimizer_name(o));
    }
    if (o && (!number(f, "fornax.optimizer.steps", &steps) || steps > INT64_MAX ||
              !number(f, "fornax.generator.seed", &seed) || !number(f, "fornax.generator.counter", &counter)))
        return fnx_error_set(FNX_E_FORMAT, "%s: the counts in its metadata are no numbers", path);
    TRY(compare(path, f, e, n, o != NULL));
    for (int i = 0; i < n; i++) TRY(set_entry(fnx_module_device(net), f, &e[i]));
    TRY(fnx_device_sync(fnx_module_device(net)));
    if (!o) return FNX_OK;
    fnx_optimizer_set_steps(o, (int64_t)steps);
    fnx_device_generator_set(fnx_module_device(net), seed, counter);
    return FNX_OK;
}

fnx_status fnx_checkpoint_load(const char *path, fnx_module *net, fnx_optimizer *optimizer) {
    entry *e;
    int n;
    TRY(entries_of(net, optimizer, &e, &n));
    fnx_safetensors *f = fnx_safetensors_open(path);
    fnx_status code = fnx_safetensors_status(f);
    if (!code) code = load(path, f, net, optimizer, e, n);
    fnx_safetensors_close(f);
    free(e);
    return code;
}
