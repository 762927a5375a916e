/* The thread-local record, reference counted copies of it, and the check for forked children. */
#include "base/error.h"

#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    fnx_status code;
    char message[FNX_ERROR_TEXT], chain[FNX_ERROR_TEXT], op[64], plugin[64];
} record;

struct fnx_error {
    int32_t refs; /* atomic */
    record r;
};

static __thread record last;
static __thread fnx_error_info info;
static __thread uint64_t times;

static const struct {
    fnx_status code;
    const char *name;
} names[] = {
    {FNX_OK, "FNX_OK"},
    {FNX_E_INVALID, "FNX_E_INVALID"},
    {FNX_E_DECLINED, "FNX_E_DECLINED"},
    {FNX_E_NO_MEMORY, "FNX_E_NO_MEMORY"},
    {FNX_E_INDEX, "FNX_E_INDEX"},
    {FNX_E_DEVICE_LOST, "FNX_E_DEVICE_LOST"},
    {FNX_E_INTERNAL, "FNX_E_INTERNAL"},
    {FNX_E_SHAPE, "FNX_E_SHAPE"},
    {FNX_E_DTYPE, "FNX_E_DTYPE"},
    {FNX_E_DEVICE, "FNX_E_DEVICE"},
    {FNX_E_GRADIENT, "FNX_E_GRADIENT"},
    {FNX_E_LOST, "FNX_E_LOST"},
    {FNX_E_NOT_FOUND, "FNX_E_NOT_FOUND"},
    {FNX_E_PLUGIN, "FNX_E_PLUGIN"},
    {FNX_E_IO, "FNX_E_IO"},
    {FNX_E_FORMAT, "FNX_E_FORMAT"},
    {FNX_E_UNSUPPORTED, "FNX_E_UNSUPPORTED"},
    {FNX_E_FORKED, "FNX_E_FORKED"},
    {FNX_E_CANCELLED, "FNX_E_CANCELLED"},
};

const char *fnx_version(void) { return FORNAX_VERSION; }

const char *fnx_status_name(fnx_status code) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) return names[i].name;
    return "unknown status";
}

/* ---- the thread's ------------------------------------------------------------------------------------------------ */

const fnx_error_info *fnx_last_error(void) {
    info = (fnx_error_info){last.code, last.message, last.op, last.plugin, last.chain};
    return &info;
}

/* The text may be made of the very record that it replaces. */
static fnx_status set(fnx_status code, const char *format, va_list list) {
    char text[FNX_ERROR_TEXT];
    vsnprintf(text, sizeof text, format, list);
    last.code = code, times++;
    memcpy(last.message, text, sizeof text);
    last.chain[0] = last.op[0] = last.plugin[0] = 0;
    return code;
}

fnx_status fnx_error_set(fnx_status code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    set(code, format, list);
    va_end(list);
    return code;
}

void fnx_error_add_context(const char *format, ...) {
    size_t n = strlen(last.chain);
    va_list list;
    if (n + 2 >= sizeof last.chain) return;
    if (n) last.chain[n++] = '\n';
    va_start(list, format);
    vsnprintf(last.chain + n, sizeof last.chain - n, format, list);
    va_end(list);
}

uint64_t fnx_error_times(void) { return times; }

void fnx_error_set_op(const char *op) { snprintf(last.op, sizeof last.op, "%s", op); }
void fnx_error_set_plugin(const char *plugin) { snprintf(last.plugin, sizeof last.plugin, "%s", plugin); }

fnx_status fnx_perror(const char *what) {
    fnx_log_write(FNX_TOPIC_PROGRAM, FNX_LOG_ERROR, "%s: %s%s%s", what, last.message, *last.chain ? "; while " : "",
                  last.chain);
    return last.code;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static fnx_error no_memory = {INT32_MAX / 2, {FNX_E_NO_MEMORY, "no host memory", "", "", ""}};

fnx_error *fnx_error_new(fnx_status code, const char *format, ...) {
    fnx_error *e = malloc(sizeof *e);
    if (!e) return &no_memory;
    va_list list;
    e->refs = 1, e->r.code = code;
    e->r.chain[0] = e->r.op[0] = e->r.plugin[0] = 0;
    va_start(list, format);
    vsnprintf(e->r.message, sizeof e->r.message, format, list);
    va_end(list);
    return e;
}

fnx_error *fnx_error_take_last(void) {
    fnx_error *e = malloc(sizeof *e);
    if (!e) return &no_memory;
    e->refs = 1, e->r = last;
    return e;
}

fnx_error *fnx_error_ref(fnx_error *e) {
    __atomic_fetch_add(&e->refs, 1, __ATOMIC_RELAXED);
    return e;
}

void fnx_error_unref(fnx_error *e) {
    if (e && !__atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) && e != &no_memory) free(e);
}

fnx_status fnx_error_code(const fnx_error *e) { return e->r.code; }
const char *fnx_error_message(const fnx_error *e) { return e->r.message; }

fnx_status fnx_error_raise(const fnx_error *e) {
    last = e->r;
    return last.code;
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

static int forked; /* atomic */

static void in_child(void) { __atomic_store_n(&forked, 1, __ATOMIC_RELAXED); }
static void watch(void) { pthread_atfork(NULL, NULL, in_child); }

fnx_status fnx_fork_check(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    if (!__atomic_load_n(&forked, __ATOMIC_RELAXED)) return FNX_OK;
    return fnx_error_set(FNX_E_FORKED,
                         "this process was forked from one that had used a device, whose threads and memory did not "
                         "come along: fork before the first use, or start the child with exec");
}
