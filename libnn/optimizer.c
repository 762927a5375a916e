/* SGD, Adam, AdamW: an update rule each, over the parameters of a module. */
#include "cause.h"

#include <fornax/nn/optimizer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_MAX = 2 };

typedef struct hyper {
    double lr, beta1, beta2, eps, weight_decay, momentum;
    bool nesterov, keep_gradients;
} hyper;

/* New values of a parameter and its state, from its gradient. */
typedef struct update {
    fnx_tensor *p, *state[STATES_MAX];
} update;

typedef struct rule {
    const char *name;
    int n_states;
    const char *state_names[STATES_MAX];
    update (*step)(const hyper *h, int64_t t, bool first, fnx_tensor *p, fnx_tensor *g, fnx_tensor *const *state);
} rule;

struct fnx_optimizer {
    const rule *rule;
    hyper h;
    int64_t t;       /* steps done */
    int n, n_states; /* parameters; states of each (0 for SGD without momentum) */
    fnx_variable **parameter;
    bool *started;        /* per parameter: its state has been written */
    fnx_parameter *state; /* [n_states][n] */
    cause cause;
    bool is_static;
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static fnx_tensor *scaled(fnx_tensor *x, double s) { return fnx_mul_scalar(x, s); }

static update sgd_step(const hyper *h, int64_t t, bool first, fnx_tensor *p, fnx_tensor *g, fnx_tensor *const *state) {
    update u = {NULL, {NULL, NULL}};
    (void)t;
    if (h->weight_decay != 0) g = fnx_add(g, scaled(p, h->weight_decay));
    if (h->momentum != 0) {
        u.state[0] = first ? fnx_copy(g) : fnx_add(scaled(state[0], h->momentum), g);
        g = h->nesterov ? fnx_add(g, scaled(u.state[0], h->momentum)) : u.state[0];
    }
    u.p = fnx_sub(p, scaled(g, h->lr));
    return u;
}

static update adam_moments(const hyper *h, int64_t t, fnx_tensor *p, fnx_tensor *g, fnx_tensor *const *state) {
    update u;
    double c1 = 1 - pow(h->beta1, (double)t), c2 = 1 - pow(h->beta2, (double)t);
    u.state[0] = fnx_add(scaled(state[0], h->beta1), scaled(g, 1 - h->beta1));
    u.state[1] = fnx_add(scaled(state[1], h->beta2), scaled(fnx_mul(g, g), 1 - h->beta2));
    fnx_tensor *denominator = fnx_add_scalar(scaled(fnx_sqrt(u.state[1]), 1 / sqrt(c2)), h->eps);
    u.p = fnx_sub(p, fnx_div(scaled(u.state[0], h->lr / c1), denominator));
    return u;
}

static update adam_step(const hyper *h, int64_t t, bool first, fnx_tensor *p, fnx_tensor *g, fnx_tensor *const *state) {
    (void)first;
    if (h->weight_decay != 0) g = fnx_add(g, scaled(p, h->weight_decay));
    return adam_moments(h, t, p, g, state);
}

static update adamw_step(const hyper *h, int64_t t, bool first, fnx_tensor *p, fnx_tensor *g,
                         fnx_tensor *const *state) {
    (void)first;
    if (h->weight_decay != 0) p = scaled(p, 1 - h->lr * h->weight_decay);
    return adam_moments(h, t, p, g, state);
}

static const rule sgd = {"sgd", 1, {"momentum", NULL}, sgd_step};
static const rule adam = {"adam", 2, {"exp_avg", "exp_avg_sq"}, adam_step};
static const rule adamw = {"adamw", 2, {"exp_avg", "exp_avg_sq"}, adamw_step};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static fnx_optimizer *no_memory(void) {
    static fnx_optimizer none = {.is_static = true, .rule = &sgd};
    if (!none.cause.code) {
        none.cause.code = FNX_E_NO_MEMORY;
        snprintf(none.cause.message, sizeof none.cause.message, "no host memory for an optimizer");
    }
    return &none;
}

static fnx_status check(const rule *r, const hyper *h) {
    if (!(h->lr > 0) || !isfinite(h->lr))
        return fnx_error_set(FNX_E_INVALID, "%s: the learning rate %g is not above 0", r->name, h->lr);
    if (!(h->momentum >= 0 && h->momentum < 1) || !(h->beta1 >= 0 && h->beta1 < 1) || !(h->beta2 >= 0 && h->beta2 < 1))
        return fnx_error_set(FNX_E_INVALID, "%s: momentum, beta1 and beta2 must be in [0, 1)", r->name);
    if (!(h->eps > 0) || !(h->weight_decay >= 0))
        return fnx_error_set(FNX_E_INVALID, "%s: eps must be above 0, weight_decay not below", r->name);
    if (h->nesterov && h->momentum == 0) return fnx_error_set(FNX_E_INVALID, "%s: nesterov needs momentum", r->name);
    return FNX_OK;
}

static fnx_status make_state(fnx_optimizer *o, const fnx_parameter *all, int n_all) {
    FNX_SCOPE_QUIET;
    for (int i = 0; i < n_all; i++) {
        if (all[i].buffer) continue;
        o->parameter[o->n] = all[i].variable;
        for (int s = 0; s < o->n_states; s++) {
            char path[1100];
            fnx_tensor *like = fnx_variable_get(all[i].variable);
            snprintf(path, sizeof path, "%s.%s", o->rule->state_names[s], all[i].path);
            fnx_parameter *p = &o->state[o->n * o->n_states + s];
            p->buffer = true, p->path = strdup(path);
            p->variable = fnx_variable_create(path, fnx_detach(fnx_fill_like(like, 0)), false);
            TRY(p->path ? fnx_variable_status(p->variable)
                        : fnx_error_set(FNX_E_NO_MEMORY, "no host memory for %s", path));
        }
        o->n++;
    }
    return FNX_OK;
}

static fnx_optimizer *make(fnx_module *net, const rule *r, hyper h) {
    fnx_optimizer *o = calloc(1, sizeof *o);
    if (!o) return no_memory();
    o->rule = r, o->h = h;
    o->n_states = r == &sgd && h.momentum == 0 ? 0 : r->n_states;
    int n = 0;
    fnx_status code = fnx_module_status(net);
    const fnx_parameter *all = code ? NULL : fnx_module_parameters(net, &n);
    if (!code) code = check(r, &h);
    o->parameter = calloc((size_t)n + 1, sizeof *o->parameter), o->started = calloc((size_t)n + 1, sizeof *o->started);
    o->state = calloc((size_t)(n * o->n_states) + 1, sizeof *o->state);
    if (!code && (!o->parameter || !o->started || !o->state))
        code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory for an optimizer");
    if (!code) code = make_state(o, all, n);
    if (!code && o->n == 0) code = fnx_error_set(FNX_E_INVALID, "%s: the module has no parameters", r->name);
    cause_take(&o->cause, code);
    return o;
}

static double or_default(double value, double fallback) { return value == 0 ? fallback : value; }

fnx_optimizer *fnx_sgd_with(fnx_module *net, const fnx_sgd_options *options_or_null) {
    static const fnx_sgd_options none = {0};
    const fnx_sgd_options *o = options_or_null ? options_or_null : &none;
    return make(net, &sgd,
                (hyper){.lr = or_default(o->lr, 0.01),
                        .momentum = o->momentum,
                        .weight_decay = o->weight_decay,
                        .nesterov = o->nesterov,
                        .eps = 1,
                        .keep_gradients = o->keep_gradients});
}

static fnx_optimizer *make_adam(fnx_module *net, const rule *r, const fnx_adam_options *options_or_null, double decay) {
    static const fnx_adam_options none = {0};
    const fnx_adam_options *o = options_or_null ? options_or_null : &none;
    double wd = or_default(o->weight_decay, decay);
    return make(net, r,
                (hyper){.lr = or_default(o->lr, 1e-3),
                        .beta1 = or_default(o->beta1, 0.9),
                        .beta2 = or_default(o->beta2, 0.999),
                        .eps = or_default(o->eps, 1e-8),
                        .weight_decay = wd < 0 ? 0 : wd,
                        .keep_gradients = o->keep_gradients});
}

fnx_optimizer *fnx_adam_with(fnx_module *net, const fnx_adam_options *options_or_null) {
    return make_adam(net, &adam, options_or_null, 0);
}
fnx_optimizer *fnx_adamw_with(fnx_module *net, const fnx_adam_options *options_or_null) {
    return make_adam(net, &adamw, options_or_null, 0.01);
}

void fnx_optimizer_destroy(fnx_optimizer *o) {
    if (!o || o->is_static) return;
    for (int i = 0; o->state && i < o->n * o->n_states; i++)
        fnx_variable_destroy(o->state[i].variable), free((char *)o->state[i].path);
    free(o->parameter), free(o->started), free(o->state);
    free(o);
}

fnx_status fnx_optimizer_status(const fnx_optimizer *o) {
    return o ? cause_raise(&o->cause) : fnx_error_set(FNX_E_INVALID, "the optimizer is NULL");
}

/* ---- stepping ---------------------------------------------------------------------------------------------------- */

static fnx_status set_one(fnx_optimizer *o, int i, fnx_tensor *g) {
    fnx_tensor *state[STATES_MAX] = {NULL, NULL};
    fnx_parameter *s = &o->state[i * o->n_states];
    for (int k = 0; k < o->n_states; k++) state[k] = fnx_variable_get(s[k].variable);
    update u = o->rule->step(&o->h, o->t, !o->started[i], fnx_variable_get(o->parameter[i]), g, state);
    for (int k = 0; k < o->n_states; k++) TRY(fnx_variable_set(s[k].variable, u.state[k]));
    return fnx_variable_set(o->parameter[i], u.p);
}

/* All is recorded in a scope that closes before the flush: names that are still open would keep old values alive. */
static fnx_status record_all(fnx_optimizer *o, int *out_updated) {
    FNX_NO_GRAD;
    for (int i = 0; i < o->n; i++) {
        fnx_tensor *g =
            o->h.keep_gradients ? fnx_variable_grad(o->parameter[i]) : fnx_variable_grad_take(o->parameter[i]);
        if (!g) continue;
        TRY(set_one(o, i, g));
        ++*out_updated;
    }
    return FNX_OK;
}

fnx_status fnx_optimizer_step(fnx_optimizer *o) {
    TRY(fnx_optimizer_status(o));
    int updated = 0;
    o->t++;
    fnx_status code = record_all(o, &updated);
    if (!code && !updated)
        code =
            fnx_error_set(FNX_E_GRADIENT, "%s: no parameter has a gradient: call fnx_backward() first", o->rule->name);
    if (!code) code = fnx_flush();
    if (code) o->t--;
    else memset(o->started, 1, sizeof *o->started * (size_t)o->n);
    return code;
}

void fnx_optimizer_set_lr(fnx_optimizer *o, double lr) {
    if (o && !o->is_static) o->h.lr = lr;
}
double fnx_optimizer_lr(const fnx_optimizer *o) { return o ? o->h.lr : 0; }
const char *fnx_optimizer_name(const fnx_optimizer *o) { return o ? o->rule->name : ""; }
int64_t fnx_optimizer_steps(const fnx_optimizer *o) { return o ? o->t : 0; }
void fnx_optimizer_set_steps(fnx_optimizer *o, int64_t steps) {
    if (!o || o->is_static) return;
    o->t = steps;
    if (o->started) memset(o->started, steps > 0, sizeof *o->started * (size_t)o->n);
}

const fnx_parameter *fnx_optimizer_state(fnx_optimizer *o, int *out_n) {
    *out_n = o && !o->is_static ? o->n * o->n_states : 0;
    return o ? o->state : NULL;
}
