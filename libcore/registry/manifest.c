/* Every field is a row of one table: its key, how it is read, and what is said if it is wrong. */
#include "registry/manifest.h"

#include "base/alloc.h"

#include <fornax-plugin/plugin.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

typedef struct field {
    const char *key, *expected; /* a wrong one: "key" must be `expected` */
    size_t at;                  /* in fnx_manifest */
    bool (*read)(fnx_manifest *m, const struct field *f, json_t *value);
    enum { OPTIONAL, NEEDED, ALWAYS } presence; /* needed: unless the manifest only masks a name */
} field;

/* ---- kinds of values --------------------------------------------------------------------------------------------- */

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* `most` characters out of `set`, the first one out of `first`. */
static bool is_word(const json_t *value, const char *first, const char *set, size_t most) {
    const char *s = json_string_value(value);
    const size_t n = s ? strlen(s) : 0;
    return n > 0 && n <= most && strchr(first, s[0]) && strspn(s, set) == n;
}

static bool is_name(const json_t *value) {
    return is_word(value, LETTERS DIGITS, LETTERS DIGITS "_.-", FNX_PLUGIN_NAME);
}

static bool read_text(fnx_manifest *m, const field *f, json_t *value) {
    const char *s = json_string_value(value);
    if (!s || strlen(s) >= PATH_MAX) return false;
    *(const char **)((char *)m + f->at) = s;
    return true;
}

static bool read_name(fnx_manifest *m, const field *f, json_t *value) {
    return is_name(value) && read_text(m, f, value);
}

static bool read_version(fnx_manifest *m, const field *f, json_t *value) {
    return is_word(value, DIGITS, LETTERS DIGITS ".+~-", FNX_PLUGIN_NAME) && read_text(m, f, value);
}

static bool read_kind(fnx_manifest *m, const field *f, json_t *value) {
    return read_text(m, f, value) && (!strcmp(m->kind, "backend") || !strcmp(m->kind, "extension"));
}

/* A path without a ".." in it: a library is beside or beneath its manifest, or somewhere that the manifest spells
 * out. */
static bool read_library(fnx_manifest *m, const field *f, json_t *value) {
    if (!read_text(m, f, value) || !*m->library || m->library[strlen(m->library) - 1] == '/') return false;
    for (const char *p = m->library; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2])) return false;
    }
    return true;
}

static bool read_one(fnx_manifest *m, const field *f, json_t *value) {
    (void)m, (void)f;
    return json_is_integer(value) && json_integer_value(value) == 1;
}

static bool integer_in(const json_t *value, int64_t least, int64_t most, int64_t *out) {
    if (!json_is_integer(value)) return false;
    *out = json_integer_value(value);
    return *out >= least && *out <= most;
}

static bool read_priority(fnx_manifest *m, const field *f, json_t *value) {
    (void)f;
    return integer_in(value, -1000, 1000, &m->priority);
}

static bool read_tier(fnx_manifest *m, const field *f, json_t *value) {
    (void)f;
    return integer_in(value, 0, 3, &m->tier);
}

static bool read_flag(fnx_manifest *m, const field *f, json_t *value) {
    *(bool *)((char *)m + f->at) = json_is_true(value);
    return json_is_boolean(value);
}

static bool is_list(const json_t *value, bool (*each)(const json_t *item)) {
    size_t i;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) > 64) return false;
    json_array_foreach(value, i, item) {
        if (!each(item)) return false;
    }
    return true;
}

static bool read_devices(fnx_manifest *m, const field *f, json_t *value) {
    size_t i, used = 0;
    json_t *item;
    (void)f;
    if (!is_list(value, is_name)) return false;
    m->devices = fnx_alloc_array(json_array_size(value) + 1, FNX_PLUGIN_NAME + 2);
    if (!m->devices) return false;
    m->devices[0] = 0;
    json_array_foreach(value, i, item) {
        used += (size_t)sprintf(m->devices + used, "%s%s", i ? ", " : "", json_string_value(item));
    }
    return true;
}

static bool read_namespaces(fnx_manifest *m, const field *f, json_t *value) {
    (void)m, (void)f;
    return is_list(value, is_name);
}

static bool read_abi(fnx_manifest *m, const field *f, json_t *value) {
    int64_t minor;
    (void)f;
    return integer_in(json_object_get(value, "major"), 0, UINT32_MAX, &m->major) &&
           integer_in(json_object_get(value, "minor"), 0, UINT32_MAX, &minor) &&
           integer_in(json_object_get(value, "epoch"), 0, UINT32_MAX, &m->epoch) && json_object_size(value) == 3;
}

static const char *const sanitizers[] = {"address", "thread", "undefined"}; /* bits of fnx_plugin.build */

static bool read_build(fnx_manifest *m, const field *f, json_t *value) {
    size_t i;
    json_t *item;
    (void)f;
    json_array_foreach(value, i, item) {
        uint32_t bit = 0;
        for (int k = 0; k < COUNT(sanitizers) && json_is_string(item); k++)
            if (!strcmp(sanitizers[k], json_string_value(item))) bit = 1u << k;
        if (!bit) return false;
        m->build |= bit;
    }
    return json_is_array(value);
}

void fnx_manifest_build_words(uint32_t build, char *out, size_t size) {
    snprintf(out, size, "%s", build ? "" : "none");
    for (int k = 0; k < COUNT(sanitizers); k++) {
        const size_t used = strlen(out);
        if (build >> k & 1) snprintf(out + used, size - used, "%s%s", used ? " and " : "", sanitizers[k]);
    }
}

static bool is_path(const json_t *item) { return json_is_string(item) && *json_string_value(item) == '/'; }

static bool is_feature(const json_t *item) { return is_word(item, LETTERS, LETTERS DIGITS "_.-", FNX_PLUGIN_NAME); }

static bool read_requires(fnx_manifest *m, const field *f, json_t *value) {
    const struct {
        const char *key;
        const json_t **to;
        bool (*each)(const json_t *item);
    } lists[] = {{"paths", &m->paths, is_path}, {"cpu", &m->cpu, is_feature}, {"plugins", &m->plugins, is_name}};
    size_t there = 0;
    (void)f;
    for (int i = 0; i < COUNT(lists); i++) {
        if (!(*lists[i].to = json_object_get(value, lists[i].key))) continue;
        if (!is_list(*lists[i].to, lists[i].each)) return false;
        there++;
    }
    return json_is_object(value) && json_object_size(value) == there;
}

static bool read_config(fnx_manifest *m, const field *f, json_t *value) {
    (void)f;
    m->config = value;
    return fnx_json_is_config(value);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(fnx_manifest, member)
#define NAMES "a list of at most 64 names"

static const field fields[] = {
    {"manifest_version", "1, the only version that this library knows", 0, read_one, ALWAYS},
    {"name", "1 to 63 letters, digits and _ . -, a letter or digit first", AT(name), read_name, ALWAYS},
    {"enabled", "true or false", AT(enabled), read_flag, OPTIONAL},
    {"version", "a version such as \"1.0.2\"", AT(version), read_version, NEEDED},
    {"kind", "\"backend\" or \"extension\"", AT(kind), read_kind, NEEDED},
    {"summary", "a text of at most 4095 bytes", AT(summary), read_text, OPTIONAL},
    {"license", "a text of at most 4095 bytes", AT(license), read_text, OPTIONAL},
    {"library", "the path of a file, without ..", AT(library), read_library, NEEDED},
    {"devices", NAMES, AT(devices), read_devices, OPTIONAL},
    {"namespaces", NAMES, 0, read_namespaces, OPTIONAL},
    {"tier", "a number from 0 to 3", 0, read_tier, OPTIONAL},
    {"priority", "an integer from -1000 to 1000", 0, read_priority, OPTIONAL},
    {"config", "an object of texts, numbers and booleans", 0, read_config, OPTIONAL},
    {"requires", "an object of lists of at most 64: \"paths\" (absolute), \"cpu\" (features), \"plugins\" (names)", 0,
     read_requires, OPTIONAL},
    {"abi", "an object of the integers \"major\", \"minor\" and \"epoch\"", 0, read_abi, NEEDED},
    {"build", "a list of \"address\", \"thread\", \"undefined\"", 0, read_build, OPTIONAL},
};

const char *fnx_manifest_key(int i) { return i < COUNT(fields) ? fields[i].key : NULL; }

static void note_unknown(fnx_manifest *m) {
    const char *keys[COUNT(fields)];
    for (int i = 0; i < COUNT(fields); i++) keys[i] = fields[i].key;
    fnx_json_note_unknown(m->root, keys, COUNT(fields), m->notes, sizeof m->notes);
}

/* Code of another ABI or sanitizer must not even be loaded: its constructors would run. */
static bool is_loadable(const fnx_manifest *m, fnx_reason *why) {
    if (m->major != 0 || m->epoch != FNX_ABI_EPOCH)
        return fnx_refuse(why,
                          "it is made for plugin ABI %lld, epoch %lld; this library has ABI 0, epoch %u: install the "
                          "plugin that belongs to fornax %s",
                          (long long)m->major, (long long)m->epoch, FNX_ABI_EPOCH, FORNAX_VERSION);
    if (m->build == FORNAX_BUILD_SANITIZERS) return true;
    char its[64], ours[64];
    fnx_manifest_build_words(m->build, its, sizeof its);
    fnx_manifest_build_words(FORNAX_BUILD_SANITIZERS, ours, sizeof ours);
    return fnx_refuse(why, "its sanitizers are %s, this library's %s: both cannot be in one process", its, ours);
}

static bool read_fields(fnx_manifest *m, fnx_reason *why) {
    const bool mask = json_is_false(json_object_get(m->root, "enabled"));
    for (int i = 0; i < COUNT(fields); i++) {
        const field *f = &fields[i];
        json_t *value = json_object_get(m->root, f->key);
        if (!value && f->presence > (mask ? NEEDED : OPTIONAL)) return fnx_refuse(why, "\"%s\" is missing", f->key);
        if (value && !f->read(m, f, value)) return fnx_refuse(why, "\"%s\" must be %s", f->key, f->expected);
    }
    note_unknown(m);
    return mask || is_loadable(m, why);
}

static bool take(fnx_manifest *m, json_t *root, fnx_reason *why) {
    *m = (fnx_manifest){.root = root, .tier = -1, .enabled = true};
    m->name = m->version = m->kind = m->library = m->summary = m->license = "";
    return root && read_fields(m, why);
}

bool fnx_manifest_parse(const char *text, size_t bytes, fnx_manifest *out, fnx_reason *why) {
    return take(out, fnx_json_parse(text, bytes, why), why);
}

bool fnx_manifest_read(const char *path, fnx_manifest *out, fnx_reason *why) {
    return take(out, fnx_json_read(path, why), why);
}

void fnx_manifest_finish(fnx_manifest *m) {
    json_decref(m->root);
    free(m->devices);
    m->root = NULL, m->devices = NULL;
}

/* ---- gates ------------------------------------------------------------------------------------------------------- */

/* 1, 0, or -1: not known here. */
static int cpu_has(const char *feature) {
#if defined(__x86_64__)
#define FEATURE(name) \
    { name, __builtin_cpu_supports(name) != 0 }
    const struct {
        const char *name;
        int there;
    } features[] = {FEATURE("sse4.2"),   FEATURE("avx"),       FEATURE("avx2"),     FEATURE("fma"),
                    FEATURE("bmi2"),     FEATURE("avx512f"),   FEATURE("avx512bw"), FEATURE("avx512dq"),
                    FEATURE("avx512vl"), FEATURE("avx512vnni")};
    for (int i = 0; i < COUNT(features); i++)
        if (!strcmp(features[i].name, feature)) return features[i].there;
#endif
    (void)feature;
    return -1;
}

bool fnx_manifest_fits(const fnx_manifest *m, fnx_reason *why) {
    size_t i;
    json_t *item;
    json_array_foreach(m->paths, i, item) {
        const char *path = json_string_value(item);
        if (access(path, F_OK)) return fnx_refuse(why, "it requires %s, which is not there", path);
    }
    json_array_foreach(m->cpu, i, item) {
        const char *feature = json_string_value(item);
        const int there = cpu_has(feature);
        if (there < 0)
            return fnx_refuse(why, "it requires the CPU feature %s, which this library cannot look up", feature);
        if (!there) return fnx_refuse(why, "it requires the CPU feature %s, which this CPU does not have", feature);
    }
    return true;
}
