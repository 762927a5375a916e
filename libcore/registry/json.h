/* The JSON files that we read: manifests and the administrator's policy. Small, plain, and checked before anything
 * is used. */
#ifndef REGISTRY_JSON_H
#define REGISTRY_JSON_H

#include "registry/reason.h"

#include <jansson.h>

enum { FNX_JSON_BYTES = 64 << 10, FNX_JSON_DEPTH = 8 };

/* An object without duplicate keys, of limited size and depth, whose texts are UTF-8 without control characters
 * (they get printed). NULL with the reason. */
json_t *fnx_json_parse(const char *text, size_t bytes, fnx_reason *why);

/* The same from a trusted file (trust.h). NULL with the reason. */
json_t *fnx_json_read(const char *path, fnx_reason *why);

/* Notes on keys that are not among `known` and do not begin with x-, or "" (as snprintf: cut where there is no
 * room). */
void fnx_json_note_unknown(const json_t *object, const char *const *known, int n, char *notes, size_t size);

/* A set of options: an object of texts, numbers and booleans; afterwards all are texts. false: it is something
 * else. */
bool fnx_json_is_config(json_t *object);
const char *fnx_json_config(const json_t *object, const char *key); /* or NULL; `object` may be NULL */

#endif
