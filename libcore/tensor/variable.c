/* Variables: slots whose value changes, the only mutable state there is.
 *
 * The value of a slot is the slot's alone, so that an update can overwrite it: a tensor that is taped, is another
 * slot's value or came from the host is copied into it. Until the flush that makes the new value has succeeded, the
 * slot also keeps the old one (`old`), to have it back if the flush fails. */
#include "tensor/variable.h"

#include "base/alloc.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

#include <fornax/ops.h>
#include <stdlib.h>

/* No tape, whatever the scopes say, while we copy. */
static fnx_tensor *copy_untaped(fnx_tensor *t) {
    fnx_thread_self.no_grad++;
    t = fnx_copy(t);
    fnx_thread_self.no_grad--;
    return t;
}

static void slot_hold(fnx_tensor *t) {
    __atomic_fetch_add(&t->strong, 1, __ATOMIC_RELAXED);
    fnx_tensor_ref(t);
}

static void slot_drop(fnx_tensor *t) {
    if (!t) return;
    fnx_recorder *r = t->owner;
    if (r) fnx_recorder_lock(r);
    __atomic_fetch_sub(&t->strong, 1, __ATOMIC_RELAXED);
    fnx_tensor_unref(t);
    if (r) fnx_recorder_unlock(r);
}

/* A handle in the innermost scope for a tensor that the slot holds. */
static fnx_tensor *lend(fnx_tensor *t) {
    fnx_recorder *r = t->owner;
    if (r) fnx_recorder_lock(r);
    t->handles++;
    fnx_tensor_ref(t);
    if (r) fnx_recorder_unlock(r);
    fnx_own(&fnx_thread_self, t);
    return t;
}

static fnx_status fail(fnx_variable *v, fnx_status code) {
    if (!v->error) v->error = fnx_error_take_last();
    return code;
}

fnx_variable *fnx_variable_create(const char *name, fnx_tensor *initial, bool requires_grad) {
    static fnx_variable no_memory = {.is_static = true};
    fnx_variable *v = calloc(1, sizeof *v);
    if (!v) {
        if (!no_memory.error)
            no_memory.name = (char *)"?",
            no_memory.error = fnx_error_new(FNX_E_NO_MEMORY, "variable %s: no host memory", name);
        return &no_memory;
    }
    v->refs = 1;
    v->name = fnx_alloc_string(name ? name : "variable");
    v->requires_grad = requires_grad;
    fnx_status code = FNX_OK;
    if (!v->name) code = fnx_error_set(FNX_E_NO_MEMORY, "no host memory for a variable");
    else if (!initial) code = fnx_error_set(FNX_E_INVALID, "variable %s: the initial value is NULL", v->name);
    else if (fnx_state(initial) == FNX_FAILED) code = fnx_error_raise(initial->error);
    else if (requires_grad && !initial->device->autodiff)
        code = fnx_error_set(FNX_E_GRADIENT,
                             "variable %s requires a gradient, but its device tapes none: make its value on "
                             "fnx_device_autodiff(device)",
                             v->name);
    else if (requires_grad && !fnx_dtype_is_float(initial->dtype))
        code = fnx_error_set(FNX_E_DTYPE, "variable %s requires a gradient, but its value is %s, no float", v->name,
                             fnx_dtype_text(initial->dtype));
    else code = fnx_variable_set(v, initial);
    if (code) fail(v, code);
    return v;
}

fnx_status fnx_variable_status(const fnx_variable *v) {
    if (!v) return fnx_error_set(FNX_E_INVALID, "the variable is NULL");
    return v->error ? fnx_error_raise(v->error) : FNX_OK;
}

fnx_tensor *fnx_variable_get(fnx_variable *v) {
    if (fnx_variable_status(v) || !v->value) return fnx_tensor_failed_from_last();
    return lend(v->value);
}

fnx_status fnx_variable_set(fnx_variable *v, fnx_tensor *t) {
    FNX_TRY(fnx_variable_status(v));
    if (!t) return fnx_error_set(FNX_E_INVALID, "variable %s: the new value is NULL", v->name);
    if (fnx_state(t) == FNX_FAILED) return fnx_error_raise(t->error);
    if (v->value) {
        char a[FNX_DESCRIBE_BYTES], b[FNX_DESCRIBE_BYTES];
        const fnx_tensor *now = v->value;
        if (now->dtype != t->dtype || now->rank != t->rank || memcmp(now->size, t->size, sizeof *t->size * t->rank))
            return fnx_error_set(now->dtype == t->dtype ? FNX_E_SHAPE : FNX_E_DTYPE,
                                 "variable %s is %s, the new value is %s", v->name, fnx_tensor_describe(now, a),
                                 fnx_tensor_describe(t, b));
        if (now->device->hardware != t->device->hardware)
            return fnx_error_set(FNX_E_DEVICE,
                                 "variable %s: the new value is on another device: fnx_tensor_to() it first", v->name);
    }
    bool taped = (t->flags & (FNX_T_GRAD | FNX_T_LEAF)) == FNX_T_GRAD;
    bool mine = t->owner && t->owner == fnx_recorder_of(&fnx_thread_self, t->device->hardware);
    if (taped || t->variable || t->op == FNX_OP_NONE || fnx_state(t) != FNX_PENDING || !mine) {
        t = copy_untaped(t);
        if (fnx_state(t) == FNX_FAILED) return fnx_error_raise(t->error);
    }
    fnx_recorder *r = t->owner;
    fnx_recorder_lock(r);
    fnx_tensor *before = v->value;
    slot_hold(t);
    t->variable = v;
    __atomic_fetch_add(&v->refs, 1, __ATOMIC_RELAXED);
    t->flags = (uint8_t)((t->flags & ~FNX_T_GRAD) | FNX_T_LEAF | (v->requires_grad ? FNX_T_GRAD : 0));
    v->value = t;
    if (before) __atomic_fetch_sub(&before->strong, 1, __ATOMIC_RELAXED);
    if (before && !v->old) v->old = before; /* keeps its reference */
    else if (before) fnx_tensor_unref(before);
    fnx_recorder_variable_set(r, v);
    fnx_recorder_unlock(r);
    return FNX_OK;
}

void fnx_variable_settle(fnx_variable *v, bool ok) {
    fnx_tensor *drop = ok ? v->old : v->value;
    if (!v->old) return;
    if (!ok) {
        v->value = v->old;
        __atomic_fetch_add(&v->value->strong, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&drop->strong, 1, __ATOMIC_RELAXED);
    }
    v->old = NULL;
    fnx_tensor_unref(drop);
}

const char *fnx_variable_name(const fnx_variable *v) { return v ? v->name : "?"; }
bool fnx_variable_requires_grad(const fnx_variable *v) { return v && v->requires_grad; }

fnx_tensor *fnx_variable_grad(fnx_variable *v) { return v && v->grad ? lend(v->grad) : NULL; }

fnx_tensor *fnx_variable_grad_take(fnx_variable *v) {
    fnx_tensor *g = fnx_variable_grad(v);
    fnx_variable_grad_clear(v);
    return g;
}

void fnx_variable_grad_clear(fnx_variable *v) {
    if (!v) return;
    slot_drop(v->grad);
    v->grad = NULL;
}

void fnx_variable_grad_set(fnx_variable *v, fnx_tensor *g) {
    slot_hold(g);
    fnx_variable_grad_clear(v);
    v->grad = g;
}

void fnx_variable_unref(fnx_variable *v) {
    if (v->is_static || __atomic_sub_fetch(&v->refs, 1, __ATOMIC_ACQ_REL)) return;
    fnx_error_unref(v->error);
    free(v->name);
    free(v);
}

/* Tensors that were its value may outlive it: they need its name. */
void fnx_variable_destroy(fnx_variable *v) {
    if (!v || v->is_static) return;
    fnx_recorder_variable_forget(v);
    fnx_variable_grad_clear(v);
    v->destroyed = true;
    slot_drop(v->value);
    if (v->old) fnx_tensor_unref(v->old);
    v->value = v->old = NULL;
    fnx_variable_unref(v);
}
