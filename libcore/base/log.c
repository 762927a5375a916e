/* $FORNAX_LOG is parsed once; the callback is called under a lock, so that lines do not mix. */
#include "base/log.h"

#include "base/env.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const topic_names[FNX_TOPICS] = {"tensor", "graph", "dispatch", "memory", "registry", "plugin", "env", "program"};
static const char *const level_names[] = {"error", "warning", "info", "debug", "trace"};
enum { LEVELS = sizeof level_names / sizeof *level_names };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static fnx_log_callback callback;
static void *callback_user;
static int levels[FNX_TOPICS];

static int find(const char *const *list, int n, const char *text, size_t length) {
    for (int i = 0; i < n; i++)
        if (strlen(list[i]) == length && !strncmp(list[i], text, length)) return i;
    return -1;
}

static void parse(void) {
    const char *p = fnx_env_text("FORNAX_LOG");
    for (int i = 0; i < FNX_TOPICS; i++) levels[i] = FNX_LOG_WARNING;
    while (p && *p) {
        size_t n = strcspn(p, ","), name = strcspn(p, "=,");
        int level = name < n ? find(level_names, LEVELS, p + name + 1, n - name - 1) : FNX_LOG_DEBUG;
        int topic = find(topic_names, FNX_TOPICS, p, name), all = name == n ? find(level_names, LEVELS, p, n) : -1;
        if (all >= 0)
            for (int i = 0; i < FNX_TOPICS; i++) levels[i] = all;
        else if (topic >= 0 && level >= 0) levels[topic] = level;
        else if (n) fprintf(stderr, "fornax: env: warning: FORNAX_LOG: '%.*s' is no topic[=level]\n", (int)n, p);
        p += n + (p[n] == ',');
    }
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

void fnx_log_write(fnx_topic topic, int level, const char *format, ...) {
    char text[2048];
    va_list list;
    if (!fnx_log_enabled(topic, level)) return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pthread_mutex_lock(&lock);
    if (callback) callback(callback_user, level, topic_names[topic], text);
    else if (topic == FNX_TOPIC_PROGRAM) fprintf(stderr, "%s\n", text);
    else fprintf(stderr, "fornax: %s: %s: %s\n", topic_names[topic], level_names[level < LEVELS ? level : LEVELS - 1], text);
    pthread_mutex_unlock(&lock);
}
