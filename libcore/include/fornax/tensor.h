/* Tensors, scopes and variables: what a program holds.
 *
 * A tensor is an immutable value of rank 0 to FNX_MAX_RANK with a dtype and a shape (row-major, axis 0 slowest),
 * possibly not computed yet. Functions that make one always return one; a tensor that could not be made is a *failed
 * tensor*: each op on it returns a failed tensor with the first cause, and reading or evaluating it, or backward,
 * returns the code. An expression needs one check, at its end.
 *
 * Ownership. Every result belongs to the innermost scope of its thread and lives until that scope closes, or to the
 * thread's root scope. Nothing has to be released except what was retained. A handle belongs to the thread whose scope
 * made it; another thread retains it first (the owner must still be alive then). */
#ifndef FORNAX_TENSOR_H
#define FORNAX_TENSOR_H

#include <fornax/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_variable fnx_variable;

/* A shape argument: fnx_fill(dev, FNX_F32, FNX_SHAPE(64, 10), 0.5). FNX_SCALAR_SHAPE is rank 0. */
#define FNX_SHAPE(...) (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), ((const int64_t[]){__VA_ARGS__})
#define FNX_SCALAR_SHAPE 0, ((const int64_t *)0)

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

/* Scopes are a stack per thread: closed by the thread that opened them, the last one first. */
typedef struct fnx_scope { /* fornax's; only to be closed */
    int64_t start, parent_start;
    const char *place; /* "file.c:12", for messages */
    int32_t flags;
    int32_t reserved;
} fnx_scope;

enum { FNX_SCOPE_QUIET_FLAG = 1, FNX_SCOPE_NO_GRAD_FLAG = 2 };

/* What FNX_SCOPE is made of; for bindings. `place` may be NULL, else it lives as long as the scope's tensors. */
FNX_API fnx_scope fnx_scope_open(int flags, const char *place);
FNX_API void fnx_scope_close(fnx_scope *scope);

#define FNX_TEXT2_(a) #a
#define FNX_TEXT_(a) FNX_TEXT2_(a)
#define FNX_CAT2_(a, b) a##b
#define FNX_CAT_(a, b) FNX_CAT2_(a, b)
#define FNX_SCOPE_(flags) \
    __attribute__((cleanup(fnx_scope_close), unused)) fnx_scope FNX_CAT_(fnx_scope_, __COUNTER__) = \
        fnx_scope_open(flags, __FILE__ ":" FNX_TEXT_(__LINE__))

/* A declaration at the head of a block; the scope closes on every way out of the block (break, return, goto). Closing a
 * thread's outermost scope flushes, without waiting. */
#define FNX_SCOPE FNX_SCOPE_(0)
/* For libraries: closing it never flushes. */
#define FNX_SCOPE_QUIET FNX_SCOPE_(FNX_SCOPE_QUIET_FLAG)
/* Nothing in the block is taped (evaluation, updates). Quiet. */
#define FNX_NO_GRAD FNX_SCOPE_(FNX_SCOPE_QUIET_FLAG | FNX_SCOPE_NO_GRAD_FLAG)

/* The value will be stored by the next flush; the owner stays. Returns t. */
FNX_API fnx_tensor *fnx_keep(fnx_tensor *t);
/* fnx_keep, and the parent of the innermost scope becomes the owner: `return fnx_return(y);`. Returns t. */
FNX_API fnx_tensor *fnx_return(fnx_tensor *t);
/* The caller owns a share, in any thread, until fnx_release. Its value will be stored. Returns t. */
FNX_API fnx_tensor *fnx_retain(fnx_tensor *t);
/* Undoes one fnx_retain, nothing else. NULL-safe. */
FNX_API void fnx_release(fnx_tensor *t);

/* ---- making and reading ------------------------------------------------------------------------------------------ */

enum { FNX_BORROW = 1 }; /* read the host array when the graph runs: it must stay unchanged until fnx_device_sync */

/* A tensor of host data, packed and row-major: bool (bytes 0 or 1), u8, i32, i64, f32, f64; dtype 0: the device's
 * default float. Copied before the return, unless FNX_BORROW. Failures: FNX_E_DTYPE, FNX_E_SHAPE (a negative size, a
 * rank above FNX_MAX_RANK, overflow), FNX_E_INVALID (data is NULL), FNX_E_NO_MEMORY. */
FNX_API fnx_tensor *fnx_tensor_from(fnx_device *device, int dtype, int rank, const int64_t *sizes, const void *data,
                                    int flags);

/* The tensor on another device: waits for its value, copies it. On the same hardware only the handle changes (moving to
 * a handle without autodiff detaches). Gradients flow back across devices. */
FNX_API fnx_tensor *fnx_tensor_to(fnx_tensor *t, fnx_device *device);

/* 0, or the cause why it is a failed tensor. Computes nothing: a tensor that is still pending is fine so far. */
FNX_API FNX_CHECKED fnx_status fnx_tensor_status(const fnx_tensor *t);

/* A failed tensor whose cause is the thread's last error: what functions on top of this library return. */
FNX_API fnx_tensor *fnx_tensor_failed_from_last(void);

/* t is not NULL; of a failed tensor the answers are unspecified. The device is not the caller's to close. */
FNX_API int fnx_tensor_dtype(const fnx_tensor *t);
FNX_API int fnx_tensor_rank(const fnx_tensor *t);
/* Negative axes count from the end; 0 if out of range. */
FNX_API int64_t fnx_tensor_size(const fnx_tensor *t, int axis);
FNX_API const int64_t *fnx_tensor_sizes(const fnx_tensor *t); /* rank entries, valid as long as t */
FNX_API int64_t fnx_tensor_count(const fnx_tensor *t);        /* elements */
FNX_API fnx_device *fnx_tensor_device(const fnx_tensor *t);
FNX_API bool fnx_tensor_requires_grad(const fnx_tensor *t);

/* A name for error messages and graph dumps; copied, at most 47 bytes. NULL-safe. Returns t. */
FNX_API fnx_tensor *fnx_tensor_set_name(fnx_tensor *t, const char *name);

/* Computes and waits, copies all elements out, packed and row-major. `bytes` must be the tensor's size exactly, else
 * FNX_E_INVALID. On failure `out` is zeroed. Also returns what work before it met on the device (FNX_E_INDEX). */
FNX_API FNX_CHECKED fnx_status fnx_tensor_read(fnx_tensor *t, void *out, size_t bytes);

/* The one element of a tensor of one element, of any dtype, rounded to double; more than one: FNX_E_SHAPE. On failure
 * *out is 0. */
FNX_API FNX_CHECKED fnx_status fnx_tensor_item(fnx_tensor *t, double *out);

/* Computes now and waits; the value stays stored as long as t lives. fnx_eval_all stops at the first error. */
FNX_API FNX_CHECKED fnx_status fnx_eval(fnx_tensor *t);
FNX_API FNX_CHECKED fnx_status fnx_eval_all(fnx_tensor *const *ts, int n);

/* Starts what this thread has recorded on any device, without waiting. Returns the first error: FNX_E_NO_MEMORY,
 * FNX_E_UNSUPPORTED, what a plugin failed with; tensors of that graph are then failed ones. */
FNX_API FNX_CHECKED fnx_status fnx_flush(void);

typedef struct fnx_host_view {
    const void *data;
    int rank;
    int dtype;
    int64_t sizes[FNX_MAX_RANK];
    int64_t strides[FNX_MAX_RANK]; /* elements */
    void *owner;                   /* fornax's */
} fnx_host_view;

enum { FNX_MAP_STRIDED = 1 }; /* the caller takes any strides; without it the view is packed and row-major */

/* Read access to the value in host memory: the device's own memory where the host can address it, else a copy. The
 * storage is neither moved nor written until fnx_tensor_unmap. On failure *out is zeroed, and need not be unmapped. */
FNX_API FNX_CHECKED fnx_status fnx_tensor_map(fnx_tensor *t, int flags, fnx_host_view *out);
FNX_API void fnx_tensor_unmap(fnx_host_view *view);

/* ---- variables: state -------------------------------------------------------------------------------------------- */

/* A slot for a value that changes: a parameter, optimizer state, running statistics. Dtype and shape stay.
 *
 * `_set` gives another value, in program order; the old value is overwritten in place where nothing else refers to it.
 * If a step fails (out of memory, say) the variable keeps its old value.
 * Threads: one at a time; another thread sees a value after fnx_flush in the first. */

/* requires_grad needs an autodiff device (else FNX_E_GRADIENT) and floats (else FNX_E_DTYPE). The name is copied. Never
 * NULL; a failed variable carries its cause. The caller's, to be destroyed. */
FNX_API fnx_variable *fnx_variable_create(const char *name, fnx_tensor *initial, bool requires_grad);
FNX_API void fnx_variable_destroy(fnx_variable *v); /* NULL-safe */

/* The value now. The handle is lent: once a later `_set` is flushed it may be a failed tensor (FNX_E_LOST), unless
 * fnx_keep was called on it before. Belongs to the innermost scope. */
FNX_API fnx_tensor *fnx_variable_get(fnx_variable *v);
/* The value becomes a leaf: its tape ends here. Errors: FNX_E_DTYPE, FNX_E_SHAPE, FNX_E_DEVICE (another device), the
 * cause of a failed value. */
FNX_API FNX_CHECKED fnx_status fnx_variable_set(fnx_variable *v, fnx_tensor *value);
FNX_API FNX_CHECKED fnx_status fnx_variable_status(const fnx_variable *v);
FNX_API const char *fnx_variable_name(const fnx_variable *v);
FNX_API bool fnx_variable_requires_grad(const fnx_variable *v);

/* What fnx_backward added since the gradient was taken or cleared, or NULL. Belongs to the innermost scope. */
FNX_API fnx_tensor *fnx_variable_grad(fnx_variable *v);
FNX_API void fnx_variable_grad_clear(fnx_variable *v);
/* As fnx_variable_grad, and clears it: what optimizers do. */
FNX_API fnx_tensor *fnx_variable_grad_take(fnx_variable *v);

#ifdef __cplusplus
}
#endif
#endif
