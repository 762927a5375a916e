/* Why a manifest or a plugin is not used, in words for people. */
#ifndef REGISTRY_REASON_H
#define REGISTRY_REASON_H

#include <stdbool.h>
#include <stdio.h>

typedef struct fnx_reason {
    char text[512];
} fnx_reason;

/* Writes the reason; false, so that checks can `return fnx_refuse(why, ...)`. */
#define fnx_refuse(why, ...) (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), false)

#endif
