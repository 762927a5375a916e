/* A variable's slot. */
#ifndef TENSOR_VARIABLE_H
#define TENSOR_VARIABLE_H

#include "tensor/tensor.h"

struct fnx_variable {
    int32_t refs;      /* the program's, and one per tensor that is or was its value (atomic) */
    fnx_tensor *value; /* now, maybe pending; holds a reference and a strong count */
    fnx_tensor *old;   /* the last value that was flushed, while `value` is pending: a reference, not strong */
    fnx_tensor *grad;  /* reference and strong count */
    fnx_error *error;  /* of a failed variable */
    char *name;
    fnx_recorder *recorder; /* that lists it among the variables set since its last flush, or NULL */
    int64_t set_index;      /* there */
    bool requires_grad, is_static, destroyed;
};

void fnx_variable_unref(fnx_variable *v);

/* The flush that was to make `value` is over. ok: the old value goes; else it is the value again. Its recorder's lock
 * is held. */
void fnx_variable_settle(fnx_variable *v, bool ok);

/* Replaces the gradient. */
void fnx_variable_grad_set(fnx_variable *v, fnx_tensor *g);

#endif
