/* See json.h. */
#include "registry/json.h"

#include "base/alloc.h"
#include "base/spell.h"
#include "registry/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* How deep the brackets nest, before anything recursive sees the text. */
static int depth_of(const char *text, size_t bytes) {
    int depth = 0, most = 0;
    bool quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text[i];
        if (quoted && c == '\\') i++;
        else if (c == '"') quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[') && ++depth > most) most = depth;
        else if (!quoted && (c == '}' || c == ']')) depth--;
    }
    return most;
}

/* No control characters: C0 and DEL are one byte, C1 is C2 80 to C2 9F in UTF-8. */
static bool is_plain(const char *s) {
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0)) return false;
    return true;
}

static bool all_plain(const json_t *value) {
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(value)) return is_plain(json_string_value(value));
    json_array_foreach(value, i, item) {
        if (!all_plain(item)) return false;
    }
    json_object_foreach((json_t *)value, key, item) {
        if (!is_plain(key) || !all_plain(item)) return false;
    }
    return true;
}

json_t *fnx_json_parse(const char *text, size_t bytes, fnx_reason *why) {
    json_error_t error;
    json_t *root = NULL;
    if (bytes > FNX_JSON_BYTES) (void)fnx_refuse(why, "it has more than %d bytes", (int)FNX_JSON_BYTES);
    else if (depth_of(text, bytes) > FNX_JSON_DEPTH)
        (void)fnx_refuse(why, "its brackets nest deeper than %d", (int)FNX_JSON_DEPTH);
    else if (!(root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error)))
        (void)fnx_refuse(why, "line %d: %s", error.line, error.text);
    else if (json_is_object(root) && all_plain(root)) return root;
    else (void)fnx_refuse(why, json_is_object(root) ? "a text in it has control characters" : "it is no JSON object");
    json_decref(root);
    return NULL;
}

json_t *fnx_json_read(const char *path, fnx_reason *why) {
    json_t *root = NULL;
    size_t n = 0;
    ssize_t got;
    int fd = fnx_trust_open(path, NULL, NULL, why);
    if (fd < 0) return NULL;
    char *text = fnx_alloc(FNX_JSON_BYTES + 1); /* one more, to notice that there is more */
    if (!text) errno = ENOMEM, got = -1;
    else
        while ((got = read(fd, text + n, FNX_JSON_BYTES + 1 - n)) > 0) n += (size_t)got;
    if (got < 0) (void)fnx_refuse(why, "it cannot be read: %s", strerror(errno));
    else root = fnx_json_parse(text, n, why);
    free(text);
    close(fd);
    return root;
}

/* ---- keys and options -------------------------------------------------------------------------------------------- */

void fnx_json_note_unknown(const json_t *object, const char *const *known, int n, char *notes, size_t size) {
    const char *key;
    json_t *value;
    *notes = 0;
    json_object_foreach((json_t *)object, key, value) {
        bool found = !strncmp(key, "x-", 2);
        for (int i = 0; i < n && !found; i++) found = !strcmp(key, known[i]);
        if (found) continue;
        const char *close = fnx_spell_closest(key, known, n);
        const size_t used = strlen(notes);
        snprintf(notes + used, size - used, "%sunknown key \"%.60s\"%s%s%s", used ? "; " : "", key,
                 close ? ", did you mean \"" : "", close ? close : "", close ? "\"?" : "");
    }
}

/* As short as it can be read back. */
static void print_real(char *text, size_t size, double value) {
    snprintf(text, size, "%.15g", value);
    if (strtod(text, NULL) != value) snprintf(text, size, "%.17g", value);
}

bool fnx_json_is_config(json_t *object) {
    const char *key;
    json_t *value;
    void *next;
    if (!json_is_object(object)) return false;
    json_object_foreach_safe(object, next, key, value) {
        char text[64];
        if (json_is_string(value)) continue;
        if (json_is_integer(value)) snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_real(value)) print_real(text, sizeof text, json_real_value(value));
        else if (json_is_boolean(value)) snprintf(text, sizeof text, "%s", json_is_true(value) ? "true" : "false");
        else return false;
        if (json_object_set_new(object, key, json_string(text))) return false;
    }
    return true;
}

const char *fnx_json_config(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}
