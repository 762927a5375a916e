/* Status codes, the last error, warnings and logs: what every other header builds on. */
#ifndef FORNAX_BASE_H
#define FORNAX_BASE_H

#include <fornax-plugin/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FNX_API __attribute__((visibility("default")))
#define FNX_CHECKED __attribute__((warn_unused_result))

/* Functions of this header may be called from any thread. */

/* 0, or one of the negative FNX_E_* codes of <fornax-plugin/types.h>. */
typedef int32_t fnx_status;

/* "0.1.0"; static, as the next. */
FNX_API const char *fnx_version(void);

/* "FNX_E_SHAPE"; "unknown status" for numbers that are none. */
FNX_API const char *fnx_status_name(fnx_status code);

typedef struct fnx_error_info {
    fnx_status code;
    const char *message; /* what, where, values, what to do; never NULL */
    const char *op;      /* operation in question, or "" */
    const char *plugin;  /* plugin in question, or "" */
    const char *chain;   /* what was being done, innermost first, one per line; "" if nothing more is known */
} fnx_error_info;

/* The calling thread's last error. Success never clears it; the strings stay until the thread's next failing call.
 * Before the first failure code is 0 and message "". Never NULL. */
FNX_API const fnx_error_info *fnx_last_error(void);

/* For libraries on top of this one: sets the thread's last error (its message is cut if too long); returns `code`. */
FNX_API fnx_status fnx_error_set(fnx_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs "what: message" of the last error at level error and returns its code: `return fnx_perror("training");`. */
FNX_API fnx_status fnx_perror(const char *what);

enum { FNX_LOG_ERROR = 0, FNX_LOG_WARNING = 1, FNX_LOG_INFO = 2, FNX_LOG_DEBUG = 3, FNX_LOG_TRACE = 4 };

/* `topic`: "tensor", "graph", "dispatch", "memory", "registry", "plugin", "env", "program". */
typedef void (*fnx_log_callback)(void *user, int level, const char *topic, const char *text);

/* Where messages go; NULL: to stderr, the default. $FORNAX_LOG chooses which there are: a list of topic[=level] with
 * commas between, or a level for all topics; else warnings and errors. The callback may come from any thread, one at a
 * time; it must not open devices or list plugins. What its own calls log goes to stderr. */
FNX_API void fnx_log_set(fnx_log_callback callback, void *user);

#ifdef __cplusplus
}
#endif
#endif
