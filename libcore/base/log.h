/* Warnings and logs, by topic and level. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <fornax/base.h>
#include <stdbool.h>

typedef enum fnx_topic {
    FNX_TOPIC_TENSOR,
    FNX_TOPIC_GRAPH,
    FNX_TOPIC_DISPATCH,
    FNX_TOPIC_MEMORY,
    FNX_TOPIC_REGISTRY,
    FNX_TOPIC_PLUGIN,
    FNX_TOPIC_ENV,
    FNX_TOPIC_PROGRAM,
    FNX_TOPICS
} fnx_topic;

/* Cheap: ask before composing a message. */
bool fnx_log_enabled(fnx_topic topic, int level);
void fnx_log_write(fnx_topic topic, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
