/* Gradients: reverse mode over the records of a computation.
 *
 * Only paths from tensors that require gradients are taped (variables of an autodiff device do), and only outside
 * FNX_NO_GRAD. The tape keeps what the gradients need and is consumed by one backward, unless `.retain`. Each gradient
 * is itself made of public ops: with `.create_graph` it can be differentiated again, to any order.
 *
 * Threads: any, each with its own tensors. Gradients are recorded, not computed: reading them flushes. */
#ifndef FORNAX_AUTODIFF_H
#define FORNAX_AUTODIFF_H

#include <fornax/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_grad_options {
    bool retain;       /* the tape can be used again */
    bool create_graph; /* the gradients are taped too; implies retain */
    fnx_tensor *seed;  /* gradient of y, of its shape; NULL: ones, and y must have one element */
    bool allow_unused; /* an x that y does not depend on gives NULL; otherwise it is an error that names it */
} fnx_grad_options;

/* Adds d(loss)/d(variable) to the gradient of every variable that `loss` depends on. Errors: FNX_E_GRADIENT (no
 * autodiff, nothing requires a gradient, more than one element without seed, tape already used, op without gradient:
 * the message says which and what to do), FNX_E_SHAPE (the seed), and the cause of a failed loss; then the gradients of
 * some variables may have been added. */
FNX_API FNX_CHECKED fnx_status fnx_backward_with(fnx_tensor *loss, const fnx_grad_options *options_or_null);
#define fnx_backward(...) \
    FNX_BACKWARD_PICK_(__VA_ARGS__, fnx_backward_some_, fnx_backward_some_, fnx_backward_some_, fnx_backward_plain_, \
                       0) \
    (__VA_ARGS__)
#define FNX_BACKWARD_PICK_(a, b, c, d, name, ...) name
#define fnx_backward_plain_(loss) fnx_backward_with(loss, NULL)
#define fnx_backward_some_(loss, ...) fnx_backward_with(loss, &(fnx_grad_options){__VA_ARGS__})

/* out[i] = d(y)/d(xs[i]), as tensors; xs may be any taped tensors, also values of variables. The out tensors belong to
 * the innermost scope; on failure (as above, and an x that y does not depend on) they are failed tensors with the
 * cause. Adds to no variable's gradient. */
FNX_API FNX_CHECKED fnx_status fnx_grad_with(fnx_tensor *y, fnx_tensor *const *xs, int n, fnx_tensor **out,
                                             const fnx_grad_options *options_or_null);
#define fnx_grad(y, xs, n, out, ...) fnx_grad_with(y, xs, n, out, &(fnx_grad_options){__VA_ARGS__})

/* A taped leaf that is no variable: the same value, and gradients stop and can be asked for here. Floats on an autodiff
 * device, else FNX_E_DTYPE, FNX_E_GRADIENT. */
FNX_API fnx_tensor *fnx_requires_grad(fnx_tensor *t);
/* The same value, not taped. */
FNX_API fnx_tensor *fnx_detach(fnx_tensor *t);

#ifdef __cplusplus
}
#endif
#endif
