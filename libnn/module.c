/* The tree of modules: names, parameters, building on a device, forward. */
#include "module.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static fnx_module *no_memory(void) {
    static fnx_module none = {.is_static = true, .type = (char *)"none", .name = (char *)"none"};
    if (!none.cause.code) {
        none.cause.code = FNX_E_NO_MEMORY;
        snprintf(none.cause.message, sizeof none.cause.message, "no host memory for a module");
    }
    return &none;
}

fnx_module *module_new(const char *type, const module_class *class) {
    fnx_module *m = calloc(1, sizeof *m);
    if (!m || !(m->type = strdup(type)) || !(m->name = strdup(""))) {
        if (m) free(m->type), free(m);
        return no_memory();
    }
    m->class = class, m->training = true;
    return m;
}

fnx_module *fnx_module_create(fnx_device *device, const char *type, fnx_module_function forward, void *user,
                              void (*destroy)(void *user)) {
    fnx_module *m = module_new(type ? type : "module", NULL);
    if (m->is_static) return m;
    m->forward = forward, m->user = user, m->destroy = destroy;
    if (!forward) cause_take(&m->cause, fnx_error_set(FNX_E_INVALID, "module_create: forward is NULL"));
    else if (fnx_device_status(device)) cause_take(&m->cause, fnx_last_error()->code);
    else m->device = device;
    return m;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool is_name(const char *s) {
    if (!s || !*s || strlen(s) > 100) return false;
    for (; *s; s++)
        if (*s == '.' || *s <= ' ' || *s >= 127) return false;
    return true;
}

static bool taken(const fnx_module *m, const char *name) {
    for (int i = 0; i < m->n_children; i++)
        if (!strcmp(m->children[i]->name, name)) return true;
    for (int i = 0; i < m->n_slots; i++)
        if (!strcmp(m->slots[i].name, name)) return true;
    return false;
}

static fnx_status check_name(const fnx_module *m, const char *name) {
    if (!is_name(name))
        return fnx_error_set(FNX_E_INVALID,
                             "module %s: '%s' is no name: 1 to 100 printable characters without '.' and spaces",
                             m->type, name ? name : "NULL");
    if (taken(m, name)) return fnx_error_set(FNX_E_INVALID, "module %s has a '%s' already", m->type, name);
    return FNX_OK;
}

/* The list of parameters of the root is made anew when it is next asked for. */
static void changed(fnx_module *m) {
    for (; m; m = m->parent) m->listed = false;
}

/* ---- parameters, children ---------------------------------------------------------------------------------------- */

static fnx_variable *add_slot(fnx_module *m, const char *name, fnx_tensor *initial, bool buffer) {
    if (fnx_module_status(m) || check_name(m, name)) goto failed;
    void *more = realloc(m->slots, sizeof *m->slots * (size_t)(m->n_slots + 1));
    char *copy = strdup(name);
    if (more) m->slots = more;
    if (!more || !copy) {
        free(copy);
        (void)fnx_error_set(FNX_E_NO_MEMORY, "no host memory for parameter %s", name);
        goto failed;
    }
    fnx_variable *v = fnx_variable_create(name, initial, !buffer && fnx_device_is_autodiff(m->device));
    m->slots[m->n_slots++] = (module_slot){copy, v, buffer};
    changed(m);
    if (fnx_variable_status(v)) cause_take(&m->cause, fnx_last_error()->code);
    return v;
failed:
    if (m && !m->is_static) cause_take(&m->cause, fnx_last_error()->code);
    return fnx_variable_create(name, NULL, false); /* a failed one; nobody owns it, it is the price of a mistake */
}

fnx_variable *fnx_module_parameter(fnx_module *m, const char *name, fnx_tensor *initial) {
    return add_slot(m, name, initial, false);
}
fnx_variable *fnx_module_buffer(fnx_module *m, const char *name, fnx_tensor *initial) {
    return add_slot(m, name, initial, true);
}

fnx_module *fnx_module_add(fnx_module *parent, const char *name, fnx_module *child) {
    if (!parent || parent->is_static) {
        fnx_module_destroy(child);
        return no_memory();
    }
    if (!child) {
        cause_take(&parent->cause,
                   fnx_error_set(FNX_E_INVALID, "module %s: child '%s' is NULL", parent->type, name ? name : "NULL"));
        return no_memory();
    }
    fnx_status code = check_name(parent, name);
    if (!code && child->parent) code = fnx_error_set(FNX_E_INVALID, "module '%s' has a parent already", name);
    void *more = code ? NULL : realloc(parent->children, sizeof *parent->children * (size_t)(parent->n_children + 1));
    char *copy = code ? NULL : strdup(name);
    if (more) parent->children = more;
    if (!code && (!more || !copy)) code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory for module %s", name);
    if (code) {
        free(copy);
        cause_take(&parent->cause, code);
        if (!child->is_static && !child->parent) {
            cause_take(&child->cause, code);
            child->orphan_next = parent->orphans, parent->orphans = child; /* still owned */
        }
        return child;
    }
    if (child->is_static) { /* cannot be owned; its failure is the parent's */
        free(copy);
        cause_take(&parent->cause, cause_raise(&child->cause));
        return child;
    }
    free(child->name);
    child->name = copy, child->parent = parent;
    parent->children[parent->n_children++] = child;
    changed(parent);
    if (parent->device && fnx_module_build(child, parent->device)) cause_take(&parent->cause, fnx_last_error()->code);
    return child;
}

fnx_status fnx_module_build(fnx_module *m, fnx_device *device) {
    TRY(fnx_module_status(m));
    TRY(fnx_device_status(device));
    if (m->device == NULL) {
        m->device = device;
        if (m->class && m->class->build) {
            FNX_SCOPE_QUIET;
            m->class->build(m);
        }
    }
    TRY(fnx_module_status(m));
    for (int i = 0; i < m->n_children; i++) {
        fnx_status code = fnx_module_build(m->children[i], m->device);
        if (code) return cause_take(&m->cause, code);
    }
    return FNX_OK;
}

void fnx_module_destroy(fnx_module *m) {
    if (!m || m->is_static) return;
    for (int i = 0; i < m->n_children; i++) fnx_module_destroy(m->children[i]);
    while (m->orphans) {
        fnx_module *o = m->orphans;
        m->orphans = o->orphan_next;
        fnx_module_destroy(o);
    }
    for (int i = 0; i < m->n_slots; i++) fnx_variable_destroy(m->slots[i].variable), free(m->slots[i].name);
    for (int i = 0; i < m->n_list; i++) free((char *)m->list[i].path);
    if (m->destroy) m->destroy(m->user);
    free(m->children), free(m->slots), free(m->list), free(m->type), free(m->name);
    free(m);
}

fnx_status fnx_module_status(const fnx_module *m) {
    return m ? cause_raise(&m->cause) : fnx_error_set(FNX_E_INVALID, "the module is NULL");
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

fnx_tensor *fnx_module_forward(fnx_module *m, fnx_tensor *x) {
    if (fnx_module_status(m)) return fnx_tensor_failed_from_last();
    if (!m->device) {
        (void)fnx_error_set(FNX_E_INVALID,
                            "module %s has no device: put it into a fnx_sequential, or fnx_module_build() it", m->type);
        return fnx_tensor_failed_from_last();
    }
    FNX_SCOPE_QUIET;
    fnx_tensor *y = m->class ? m->class->forward(m, x) : m->forward(m, m->user, x);
    if (!y) {
        (void)fnx_error_set(FNX_E_INVALID, "the forward function of module %s returned NULL", m->type);
        y = fnx_tensor_failed_from_last();
    }
    return fnx_return(y);
}

void fnx_module_train(fnx_module *m, bool training) {
    if (!m || m->is_static) return;
    m->training = training;
    for (int i = 0; i < m->n_children; i++) fnx_module_train(m->children[i], training);
}

bool fnx_module_is_training(const fnx_module *m) { return m && m->training; }
fnx_device *fnx_module_device(const fnx_module *m) { return m ? m->device : NULL; }

fnx_variable *module_variable(const fnx_module *m, const char *name) {
    for (int i = 0; i < m->n_slots; i++)
        if (!strcmp(m->slots[i].name, name)) return m->slots[i].variable;
    return NULL;
}

fnx_tensor *fnx_module_value(fnx_module *m, const char *name) {
    fnx_variable *v = m && name ? module_variable(m, name) : NULL;
    if (v) return fnx_variable_get(v);
    (void)fnx_error_set(FNX_E_NOT_FOUND, "module %s has no parameter or buffer '%s'", m ? m->type : "NULL",
                        name ? name : "NULL");
    return fnx_tensor_failed_from_last();
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static bool list_tree(fnx_module *root, const fnx_module *m, const char *prefix) {
    for (int i = 0; i < m->n_slots; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s", prefix, m->slots[i].name);
        void *more = realloc(root->list, sizeof *root->list * (size_t)(root->n_list + 1));
        char *copy = strdup(path);
        if (more) root->list = more;
        if (!more || !copy) {
            free(copy);
            return false;
        }
        root->list[root->n_list++] = (fnx_parameter){copy, m->slots[i].variable, m->slots[i].buffer};
    }
    for (int i = 0; i < m->n_children; i++) {
        char path[1024];
        if (snprintf(path, sizeof path, "%s%s.", prefix, m->children[i]->name) >= (int)sizeof path) return false;
        if (!list_tree(root, m->children[i], path)) return false;
    }
    return true;
}

const fnx_parameter *fnx_module_parameters(fnx_module *m, int *out_n) {
    *out_n = 0;
    if (!m || m->is_static) return NULL;
    if (!m->listed) {
        for (int i = 0; i < m->n_list; i++) free((char *)m->list[i].path);
        m->n_list = 0;
        if (!(m->listed = list_tree(m, m, "")))
            cause_take(&m->cause, fnx_error_set(FNX_E_NO_MEMORY, "no host memory for the paths of module %s", m->type));
    }
    *out_n = m->n_list;
    return m->list;
}

static int64_t elements(const fnx_variable *v) { return fnx_tensor_count(fnx_variable_get((fnx_variable *)v)); }

int64_t fnx_module_count(fnx_module *m) {
    int n;
    int64_t sum = 0;
    const fnx_parameter *p = fnx_module_parameters(m, &n);
    FNX_SCOPE_QUIET;
    for (int i = 0; i < n; i++)
        if (!p[i].buffer) sum += elements(p[i].variable);
    return sum;
}

typedef struct text {
    char *out;
    size_t size, n;
} text;

static void print(text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    t->n += (size_t)vsnprintf(t->n < t->size ? t->out + t->n : NULL, t->n < t->size ? t->size - t->n : 0, format, list);
    va_end(list);
}

static void summarize(text *t, const fnx_module *m, int depth) {
    print(t, "%*s%s%s%s", 2 * depth, "", m->name, *m->name ? ": " : "", m->type);
    for (int i = 0; i < m->n_slots; i++) {
        const fnx_tensor *v = fnx_variable_get(m->slots[i].variable);
        print(t, "%s%s [", i ? ", " : "  ", m->slots[i].name);
        for (int d = 0; d < fnx_tensor_rank(v); d++) print(t, d ? ",%lld" : "%lld", (long long)fnx_tensor_size(v, d));
        print(t, "]");
    }
    print(t, "\n");
    for (int i = 0; i < m->n_children; i++) summarize(t, m->children[i], depth + 1);
}

size_t fnx_module_summary(fnx_module *m, char *out, size_t size) {
    text t = {out, size, 0};
    if (size) out[0] = 0;
    if (!m) return 0;
    FNX_SCOPE_QUIET;
    summarize(&t, m, 0);
    print(&t, "%lld parameters\n", (long long)fnx_module_count(m));
    return t.n;
}
