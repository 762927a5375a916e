/* $FORNAX_LOG is parsed once; the callback is called under a lock, so that lines do not mix. */
#include "base/log.h"

#include "base/env.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const topic_names[FNX_TOPICS] = {"tensor",   "graph",  "dispatch", "memory",
                                                    "registry", "plugin", "env",      "program"};
static const char *const level_names[] = {"error", "warning", "info", "debug", "trace"};
enum { LEVELS = sizeof level_names / sizeof *level_names };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static fnx_log_callback callback;
static void *callback_user;
static int levels[FNX_TOPICS];
static __thread bool writing; /* this thread holds the lock: what the callback itself causes goes to stderr */

static int find(const char *const *list, int n, const char *text, size_t length) {
    for (int i = 0; i < n; i++)
        if (strlen(list[i]) == length && !strncmp(list[i], text, length)) return i;
    return -1;
}

/* topic=level, topic (at debug) or level (for all topics); false: none of these. */
static bool parse_item(const char *item, size_t n) {
    const size_t name = strcspn(item, "=,");
    const int topic = find(topic_names, FNX_TOPICS, item, name);
    const int level = find(level_names, LEVELS, name < n ? item + name + 1 : item, name < n ? n - name - 1 : n);
    if (name < n || topic >= 0) {
        if (topic < 0 || (name < n && level < 0)) return false;
        levels[topic] = name < n ? level : FNX_LOG_DEBUG;
    } else if (level >= 0) {
        for (int i = 0; i < FNX_TOPICS; i++) levels[i] = level;
    }
    return n == 0 || topic >= 0 || level >= 0;
}

static void parse(void) {
    const char *wrong = NULL, *p = fnx_env_text("FORNAX_LOG");
    for (int i = 0; i < FNX_TOPICS; i++) levels[i] = FNX_LOG_WARNING;
    for (; p && *p; p += *p == ',') {
        const size_t n = strcspn(p, ",");
        if (!parse_item(p, n)) wrong = p;
        p += n;
    }
    if (!wrong) return;
    fprintf(stderr, "fornax: env: warning: FORNAX_LOG: '%.*s' is no topic[=level]\n", (int)strcspn(wrong, ","), wrong);
}

bool fnx_log_enabled(fnx_topic topic, int level) {
    pthread_once(&once, parse);
    return level <= levels[topic];
}

void fnx_log_set(fnx_log_callback function, void *user) {
    pthread_mutex_lock(&lock);
    callback = function, callback_user = user;
    pthread_mutex_unlock(&lock);
}

static void print(fnx_topic topic, int level, const char *text) {
    const char *name = level_names[level < LEVELS ? level : LEVELS - 1];
    if (topic == FNX_TOPIC_PROGRAM) fprintf(stderr, "%s\n", text);
    else fprintf(stderr, "fornax: %s: %s: %s\n", topic_names[topic], name, text);
}

void fnx_log_write(fnx_topic topic, int level, const char *format, ...) {
    char text[2048];
    va_list list;
    if (!fnx_log_enabled(topic, level)) return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (writing) {
        print(topic, level, text);
        return;
    }
    pthread_mutex_lock(&lock);
    writing = true;
    if (callback) callback(callback_user, level, topic_names[topic], text);
    else print(topic, level, text);
    writing = false;
    pthread_mutex_unlock(&lock);
}
