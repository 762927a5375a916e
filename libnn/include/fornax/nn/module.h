/* Modules: a tree of parameters with paths ("0.weight"), and a forward function.
 *
 * A constructor never returns NULL: a module that could not be made is a failed one, which carries the cause; what is
 * made of it fails with that cause, its forward returns a failed tensor. A parent owns its children, parameters and
 * buffers; the device must outlive it. Threads: one at a time. */
#ifndef FORNAX_NN_MODULE_H
#define FORNAX_NN_MODULE_H

#include <fornax/fornax.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_module fnx_module;

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* A layer is a module without a device; fnx_sequential (or fnx_module_build) makes its parameters, of the device's
 * default float. Initial values are uniform in [-1/sqrt(f), 1/sqrt(f)), f = inputs of one output element (He et al.
 * 2015 with a = sqrt 5, PyTorch's default), from the device's generator, in the order of the parameters. Arguments that
 * cannot be give FNX_E_INVALID; shapes of x are those of the op of the same name (<fornax/ops.h>). */

/* weight [out, in], bias [out]: x w^T + b */
FNX_API fnx_module *fnx_layer_linear(int64_t in, int64_t out);
FNX_API fnx_module *fnx_layer_linear_without_bias(int64_t in, int64_t out);

typedef struct fnx_layer_conv2d_options {
    int stride[2], dilation[2], padding[2]; /* 0: 1, 1, 0 */
    int groups;                             /* 0: 1 */
    bool without_bias;
} fnx_layer_conv2d_options;

/* weight [out, in / groups, kernel, kernel], bias [out] */
FNX_API fnx_module *fnx_layer_conv2d_with(int64_t in, int64_t out, int kernel,
                                          const fnx_layer_conv2d_options *options_or_null);
#define fnx_layer_conv2d(in, out, kernel, ...) \
    fnx_layer_conv2d_with(in, out, kernel, &(fnx_layer_conv2d_options){__VA_ARGS__})

FNX_API fnx_module *fnx_layer_max_pool2d(int size); /* window and stride of size x size, without padding */
FNX_API fnx_module *fnx_layer_avg_pool2d(int size);
FNX_API fnx_module *fnx_layer_flatten(void); /* [n, ..] to [n, m] */
FNX_API fnx_module *fnx_layer_relu(void);
FNX_API fnx_module *fnx_layer_gelu(void);
FNX_API fnx_module *fnx_layer_sigmoid(void);
FNX_API fnx_module *fnx_layer_tanh(void);
FNX_API fnx_module *fnx_layer_dropout(double p); /* only while training */

/* weight, bias [features]; buffers running_mean, running_var [features]. While training normalizes by the batch and
 * moves the buffers by 0.1 towards its mean and unbiased variance; else by the buffers. eps 1e-5. */
FNX_API fnx_module *fnx_layer_batch_norm(int64_t features);

/* Modules one after the other, named "0", "1", ...; takes them over, even if it fails; builds them on the device. */
#define fnx_sequential(device, ...) fnx_sequential_of(device, (fnx_module *[]){__VA_ARGS__, NULL})
FNX_API fnx_module *fnx_sequential_of(fnx_device *device, fnx_module *const *modules_then_null);

/* ---- modules written by hand ------------------------------------------------------------------------------------- */

/* Returns the result, which belongs to the innermost scope; the scope around a forward is quiet. */
typedef fnx_tensor *(*fnx_module_function)(fnx_module *self, void *user, fnx_tensor *x);

/* A module of this type name (copied) on the device; `user` goes to forward and at last to destroy (may be NULL). */
FNX_API fnx_module *fnx_module_create(fnx_device *device, const char *type, fnx_module_function forward, void *user,
                                      void (*destroy)(void *user));

/* Takes the child over, even if it fails, and builds it on the parent's device. Returns the child. A name has 1 to 100
 * printable characters without '.' and spaces and is not taken, else child and parent are failed (FNX_E_INVALID). */
FNX_API fnx_module *fnx_module_add(fnx_module *parent, const char *name, fnx_module *child);

/* A parameter (requires a gradient where the device tapes) or buffer (state without gradient) with an initial value;
 * the module's. Where it fails the variable and the module are failed ones. */
FNX_API fnx_variable *fnx_module_parameter(fnx_module *m, const char *name, fnx_tensor *initial);
FNX_API fnx_variable *fnx_module_buffer(fnx_module *m, const char *name, fnx_tensor *initial);

/* Makes the parameters of a layer that is used alone; does nothing the second time. */
FNX_API FNX_CHECKED fnx_status fnx_module_build(fnx_module *m, fnx_device *device);

FNX_API void fnx_module_destroy(fnx_module *m); /* NULL-safe; with everything it owns */
FNX_API FNX_CHECKED fnx_status fnx_module_status(const fnx_module *m);

/* ---- use --------------------------------------------------------------------------------------------------------- */

/* The result belongs to the innermost scope. FNX_E_INVALID: the module was not built on a device. */
FNX_API fnx_tensor *fnx_module_forward(fnx_module *m, fnx_tensor *x);

/* Training (the state it starts in) or evaluation, for it and all below. */
FNX_API void fnx_module_train(fnx_module *m, bool training);
FNX_API bool fnx_module_is_training(const fnx_module *m);
FNX_API fnx_device *fnx_module_device(const fnx_module *m); /* NULL before it is built; not the caller's to close */

/* The value now of a parameter or buffer of this very module: what hand-written forwards read. FNX_E_NOT_FOUND: there
 * is none. */
FNX_API fnx_tensor *fnx_module_value(fnx_module *m, const char *name);

typedef struct fnx_parameter {
    const char *path; /* "3.weight"; lives as long as the array */
    fnx_variable *variable;
    bool buffer;
} fnx_parameter;

/* Parameters and buffers of the tree, depth first in the order they were made. The array lives until that changes. */
FNX_API const fnx_parameter *fnx_module_parameters(fnx_module *m, int *out_n);
FNX_API int64_t fnx_module_count(fnx_module *m); /* elements of all parameters, without buffers */

/* A text with a line per module: name, type, parameters with sizes. Writes at most size bytes, NUL included; returns
 * the length that it needs, without the NUL. */
FNX_API size_t fnx_module_summary(fnx_module *m, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
