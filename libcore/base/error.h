/* The error record of a thread, and errors that live on in tensors, devices and modules. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <fornax/base.h>
#include <stdbool.h>

enum { FNX_ERROR_TEXT = 1024 };

typedef struct fnx_error fnx_error;

/* One line more of what was being done. Bounded: the outermost lines are dropped. */
void fnx_error_add_context(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fnx_error_set_op(const char *op);
void fnx_error_set_plugin(const char *plugin);

#define FNX_TRY(expr) \
    do { \
        fnx_status fnx_try_ = (expr); \
        if (fnx_try_) return fnx_try_; \
    } while (0)

/* How often this thread's record was set: tells whether a call into a plugin left words. */
uint64_t fnx_error_times(void);

/* An error as an object, of one reference. Never NULL: without memory a static one that says so. Counts are atomic. */
fnx_error *fnx_error_new(fnx_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));
fnx_error *fnx_error_take_last(void); /* a copy of the thread's */
fnx_error *fnx_error_ref(fnx_error *e);
void fnx_error_unref(fnx_error *e); /* NULL-safe */
fnx_status fnx_error_code(const fnx_error *e);
const char *fnx_error_message(const fnx_error *e);
/* Makes it the thread's last error; returns its code. */
fnx_status fnx_error_raise(const fnx_error *e);

/* FNX_E_FORKED in a child whose parent had called this before the fork: threads of devices are not there. */
fnx_status fnx_fork_check(void);

#endif
