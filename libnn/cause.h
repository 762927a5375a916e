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

/* For texts of files that go into messages: control characters act on a terminal or break the line. C1: C2 80 to
 * C2 9F. */
static inline void make_printable(char *text) {
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f)) {
            if (*p == 0xc2) *p++ = '?';
            *p = '?';
        }
}

#define TRY(expr) \
    do { \
        fnx_status try_code_ = (expr); \
        if (try_code_) return try_code_; \
    } while (0)

#endif
