/* Reverse mode: the tape is the records' own operand links, walked from the result down; each op's gradient is made of
 * public ops (gradients.c). */
#include "base/alloc.h"
#include "ops/record.h"
#include "tensor/device.h"
#include "tensor/variable.h"

#include <fornax/autodiff.h>
#include <fornax/ops.h>
#include <stdlib.h>

typedef struct list {
    fnx_tensor **t;
    int64_t n, capacity;
} list;

typedef struct walk {
    list order;  /* taped tensors, operands before results */
    list leaves; /* where gradients end: leaves, and what an earlier backward used */
    bool create_graph, retain;
} walk;

static bool push(list *l, fnx_tensor *t) {
    if (!fnx_grow((void **)&l->t, &l->capacity, sizeof *l->t, l->n + 1)) return false;
    l->t[l->n++] = t;
    return true;
}

static bool on_tape(const fnx_tensor *t) {
    return (t->flags & (FNX_T_GRAD | FNX_T_LEAF | FNX_T_CONSUMED)) == FNX_T_GRAD;
}
static bool wants_grad(const fnx_tensor *t) { return (t->flags & FNX_T_GRAD) != 0; }

static void warm(fnx_tensor *t) {
    if (t->flags & FNX_T_COLD) return;
    t->flags |= FNX_T_COLD;
    t->grad = NULL, t->visit = 0, t->name[0] = 0;
}

/* Operands before results, without recursion: a tensor is met twice, on the way down and on the way up. */
static bool order_from(fnx_tensor *y, walk *w) {
    static __thread uint32_t visits;
    uint32_t entered = visits += 2, left = entered + 1;
    list stack = {0};
    bool ok = push(&stack, y);
    while (ok && stack.n) {
        fnx_tensor *t = stack.t[stack.n - 1];
        warm(t);
        if (t->visit == left) {
            stack.n--;
        } else if (t->visit == entered || !on_tape(t)) {
            t->visit = left, stack.n--;
            t->grad = NULL;
            ok = push(on_tape(t) ? &w->order : &w->leaves, t);
        } else {
            t->visit = entered;
            fnx_tensor *const *in = fnx_operands(t);
            for (int k = t->n_operands - 1; k >= 0 && ok; k--)
                if (in[k] && wants_grad(in[k]) && !(in[k]->flags & FNX_T_COLD && in[k]->visit == left))
                    ok = push(&stack, in[k]);
        }
    }
    free(stack.t);
    return ok ? true : (fnx_error_set(FNX_E_NO_MEMORY, "backward: no host memory to walk the tape"), false);
}

static fnx_status check(const char *what, const fnx_tensor *y, const fnx_grad_options *o) {
    char text[FNX_DESCRIBE_BYTES];
    if (!y) return fnx_error_set(FNX_E_INVALID, "%s: the tensor is NULL", what);
    if (fnx_state(y) == FNX_FAILED) return fnx_error_raise(y->error);
    if (!o->seed && y->count != 1)
        return fnx_error_set(FNX_E_GRADIENT,
                             "%s: %s has %lld elements: reduce it to one (fnx_mean), or give its gradient as .seed",
                             what, fnx_tensor_describe(y, text), (long long)y->count);
    if (y->flags & FNX_T_CONSUMED)
        return fnx_error_set(FNX_E_GRADIENT,
                             "%s: the tape of %s was used by an earlier backward: pass .retain = true there", what,
                             fnx_tensor_describe(y, text));
    if (!(y->flags & FNX_T_GRAD))
        return fnx_error_set(
            FNX_E_GRADIENT,
            "%s: nothing that %s is made of requires a gradient: use a device of fnx_device_autodiff(), "
            "variables that require gradients, and no FNX_NO_GRAD around",
            what, fnx_tensor_describe(y, text));
    if (o->seed) {
        if (fnx_state(o->seed) == FNX_FAILED) return fnx_error_raise(o->seed->error);
        if (o->seed->dtype != y->dtype || o->seed->rank != y->rank ||
            memcmp(o->seed->size, y->size, sizeof *y->size * y->rank))
            return fnx_error_set(FNX_E_SHAPE, "%s: .seed must have the dtype and shape of %s", what,
                                 fnx_tensor_describe(y, text));
    }
    return FNX_OK;
}

/* One step of the walk: gradients of t's operands from that of t. */
static fnx_status step(fnx_tensor *t) {
    const fnx_op_info *op = &fnx_ops[t->op];
    fnx_tensor *const *in = fnx_operands(t);
    for (int k = 0; k < t->n_operands; k++) {
        fnx_tensor *x = in[k];
        if (!x || !wants_grad(x)) continue;
        if (!op->gradient)
            return fnx_error_set(FNX_E_GRADIENT, "backward: %s has no gradient: fnx_detach() its operand", op->name);
        fnx_tensor *g = op->gradient(t, t->grad, k);
        if (!g) continue; /* this operand gets none, as the op says */
        if (fnx_state(g) == FNX_FAILED) return fnx_error_raise(g->error);
        warm(x);
        x->grad = x->grad ? fnx_add(x->grad, g) : g;
        if (fnx_state(x->grad) == FNX_FAILED) return fnx_error_raise(x->grad->error);
    }
    return FNX_OK;
}

/* Fills `grad` of everything on the tape of y. A scope is open around it, which owns what is made. */
static fnx_status gradients(fnx_tensor *y, const fnx_grad_options *o, walk *w) {
    int32_t *no_grad = &fnx_thread_self.no_grad, was = *no_grad;
    w->create_graph = o->create_graph, w->retain = o->retain || o->create_graph;
    if (!order_from(y, w)) return FNX_E_NO_MEMORY;
    *no_grad = o->create_graph ? 0 : was + 1;
    y->grad = o->seed ? o->seed : fnx_fill_like(y, 1);
    fnx_status code = fnx_state(y->grad) == FNX_FAILED ? fnx_error_raise(y->grad->error) : FNX_OK;
    for (int64_t i = w->order.n - 1; i >= 0 && !code; i--)
        if (w->order.t[i]->grad) code = step(w->order.t[i]);
    *no_grad = was;
    return code;
}

/* A gradient that reached a used tape would get lost there, unless it was asked for. */
static fnx_status check_ends(const char *what, const walk *w, fnx_tensor *const *xs, int n) {
    for (int64_t i = 0; i < w->leaves.n; i++) {
        const fnx_tensor *t = w->leaves.t[i];
        bool asked = false;
        if (!t->grad || t->flags & FNX_T_LEAF) continue;
        for (int k = 0; k < n && !asked; k++) asked = xs[k] == t;
        char text[FNX_DESCRIBE_BYTES];
        if (!asked)
            return fnx_error_set(
                FNX_E_GRADIENT,
                "%s: the tape of %s, the result of %s, was used by an earlier backward: pass .retain = true there, "
                "or fnx_detach() it here",
                what, fnx_tensor_describe(t, text), fnx_ops[t->op].name);
    }
    return FNX_OK;
}

static void finish(walk *w, bool ok) {
    for (int64_t i = 0; i < w->leaves.n; i++) w->leaves.t[i]->grad = NULL;
    for (int64_t i = 0; i < w->order.n; i++) w->order.t[i]->grad = NULL;
    for (int64_t i = 0; i < w->order.n && ok && !w->retain;
         i++) { /* operands first: links free only what was visited */
        fnx_tensor_consume(w->order.t[i]);
    }
    free(w->order.t), free(w->leaves.t);
}

fnx_status fnx_backward_with(fnx_tensor *loss, const fnx_grad_options *options) {
    static const fnx_grad_options none = {0};
    const fnx_grad_options *o = options ? options : &none;
    FNX_TRY(check("backward", loss, o));
    walk w = {{0}, {0}, false, false};
    fnx_scope scope = fnx_scope_open(FNX_SCOPE_QUIET_FLAG, __FILE__);
    fnx_status code = gradients(loss, o, &w);
    if (!code) code = check_ends("backward", &w, NULL, 0);
    for (int64_t i = 0; i < w.leaves.n && !code; i++) {
        fnx_tensor *leaf = w.leaves.t[i], *g = leaf->grad;
        fnx_variable *v = leaf->variable;
        if (!g || !v || v->destroyed)
            continue; /* the value may be an old one: the gradient is the variable's all the same */
        if (v->grad && fnx_state(v->grad) != FNX_FAILED) {
            if (!o->create_graph) fnx_thread_self.no_grad++;
            g = fnx_add(v->grad, g);
            if (!o->create_graph) fnx_thread_self.no_grad--;
        }
        if (fnx_state(g) == FNX_FAILED) code = fnx_error_raise(g->error);
        else fnx_variable_grad_set(v, g);
    }
    finish(&w, !code);
    fnx_scope_close(&scope);
    return code;
}

fnx_status fnx_grad_with(fnx_tensor *y, fnx_tensor *const *xs, int n, fnx_tensor **out,
                         const fnx_grad_options *options) {
    static const fnx_grad_options none = {0};
    const fnx_grad_options *o = options ? options : &none;
    fnx_status code = check("grad", y, o);
    walk w = {{0}, {0}, false, false};
    fnx_scope scope = fnx_scope_open(FNX_SCOPE_QUIET_FLAG, __FILE__);
    for (int i = 0; i < n; i++) {
        out[i] = NULL;
        if (!code && !xs[i]) code = fnx_error_set(FNX_E_INVALID, "grad: x number %d is NULL", i);
        if (!code && fnx_state(xs[i]) == FNX_FAILED) code = fnx_error_raise(xs[i]->error);
    }
    if (!code) code = gradients(y, o, &w);
    if (!code) code = check_ends("grad", &w, xs, n);
    for (int i = 0; i < n && !code; i++) {
        out[i] = xs[i]->flags & FNX_T_COLD ? xs[i]->grad : NULL;
        char text[FNX_DESCRIBE_BYTES];
        if (!out[i] && !o->allow_unused)
            code = fnx_error_set(
                FNX_E_GRADIENT,
                "grad: y does not depend on x number %d, %s (or it is not taped): .allow_unused = true gives "
                "NULL for it",
                i, fnx_tensor_describe(xs[i], text));
    }
    for (int i = 0; i < n; i++) {
        if (code) out[i] = fnx_tensor_failed(code, "%s", fnx_last_error()->message);
        if (out[i]) fnx_keep(fnx_pass(out[i]));
    }
    finish(&w, !code);
    fnx_scope_close(&scope);
    return code;
}

fnx_tensor *fnx_detach(fnx_tensor *t) {
    fnx_thread_self.no_grad++;
    fnx_tensor *y = fnx_copy(t);
    fnx_thread_self.no_grad--;
    return y;
}

fnx_tensor *fnx_requires_grad(fnx_tensor *t) {
    if (!fnx_usable(t)) return fnx_unusable("requires_grad", 0, t);
    if (!t->device->autodiff)
        return fnx_tensor_failed(
            FNX_E_GRADIENT, "requires_grad: the tensor's device tapes none: make it on fnx_device_autodiff(device)");
    if (!fnx_dtype_is_float(t->dtype))
        return fnx_tensor_failed(FNX_E_DTYPE, "requires_grad: gradients need a float dtype, not %s",
                                 fnx_dtype_text(t->dtype));
    fnx_tensor *y = fnx_detach(t);
    if (fnx_state(y) != FNX_FAILED) y->flags |= FNX_T_GRAD | FNX_T_LEAF;
    return y;
}
