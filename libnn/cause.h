/* Objects that could not be made carry the cause: the first error, raised again by everything done with them. */
#ifndef LIBNN_CAUSE_H
#define LIBNN_CAUSE_H

#include <fornax/base.h>
#include <stdio.h>

typedef struct cause {
    fnx_status code; /* 0: none */
    char message[480];
} cause;

/* Keeps the thread's last error, unless there is a cause already. */
static inline fnx_status cause_take(cause *c, fnx_status code) {
    if (c->code || !code) return c->code;
    c->code = code;
    snprintf(c->message, sizeof c->message, "%s", fnx_last_error()->message);
    return code;
}

/* 0, or the cause as the thread's last error. */
static inline fnx_status cause_raise(const cause *c) {
    return c->code ? fnx_error_set(c->code, "%s", c->message) : FNX_OK;
}

#define TRY(expr) \
    do { \
        fnx_status try_code_ = (expr); \
        if (try_code_) return try_code_; \
    } while (0)

#endif
