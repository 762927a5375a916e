/* Manifests: JSON of at most 64 KiB that says what a plugin is before any of its code runs. Every field is a row of a table. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/spell.h"
#include "registry/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFEST_BYTES = 64 << 10, NAME_BYTES = 63 };

fnx_status fnx_candidate_reject(fnx_candidate *c, fnx_plugin_state state, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(c->reason, sizeof c->reason, format, list);
    va_end(list);
    c->state = state;
    return FNX_E_PLUGIN;
}

void fnx_candidate_destroy(fnx_candidate *c) {
    if (!c) return;
    free(c->manifest), free(c->name), free(c->version), free(c->kind), free(c->summary), free(c->license), free(c->devices), free(c->library);
    json_decref(c->config);
    free(c);
}

/* ---- trust ---------------------------------------------------------------------------------------------------------------- */

bool fnx_trusted(int fd, const char *path, char *why, size_t size) {
    struct stat s;
    if (fstat(fd, &s)) snprintf(why, size, "%s: %s", path, strerror(errno));
    else if (s.st_uid != 0 && s.st_uid != geteuid()) snprintf(why, size, "%s belongs to user %u, not to root or the user who runs this", path, (unsigned)s.st_uid);
    else if (s.st_mode & S_IWOTH) snprintf(why, size, "%s can be written by everybody: chmod o-w %s", path, path);
    else return true;
    return false;
}

bool fnx_trusted_directory(const char *file, char *why, size_t size) {
    char directory[PATH_MAX];
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
    int fd = open(*directory ? directory : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, size, "%s: %s", directory, strerror(errno));
        return false;
    }
    bool ok = fnx_trusted(fd, directory, why, size);
    close(fd);
    return ok;
}

/* The whole file, from a descriptor that was checked. NULL with `why`. */
static char *read_trusted(const char *path, size_t *out_size, char *why, size_t size) {
    struct stat s;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, size, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    if (!fnx_trusted(fd, path, why, size) || !fnx_trusted_directory(path, why, size)) goto done;
    if (fstat(fd, &s) || !S_ISREG(s.st_mode)) snprintf(why, size, "is no regular file");
    else if (s.st_size > MANIFEST_BYTES) snprintf(why, size, "has %lld bytes, more than %d", (long long)s.st_size, MANIFEST_BYTES);
    else if ((text = fnx_alloc(MANIFEST_BYTES + 1))) {
        size_t n = 0;
        ssize_t got;
        while (n <= MANIFEST_BYTES && (got = read(fd, text + n, MANIFEST_BYTES + 1 - n)) > 0) n += (size_t)got;
        *out_size = n;
        if (n > MANIFEST_BYTES) {
            snprintf(why, size, "has more than %d bytes", MANIFEST_BYTES);
            free(text), text = NULL;
        }
    } else snprintf(why, size, "no host memory to read it");
done:
    close(fd);
    return text;
}

/* ---- fields ----------------------------------------------------------------------------------------------------------------- */

typedef fnx_status (*field_reader)(fnx_candidate *c, const char *key, const json_t *value);

static fnx_status wrong(fnx_candidate *c, const char *key, const char *expected) {
    return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "\"%s\" must be %s", key, expected);
}

static fnx_status copy_text(fnx_candidate *c, char **to, const char *key, const json_t *value) {
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) return wrong(c, key, "a text");
    free(*to);
    return (*to = fnx_alloc_string(json_string_value(value))) ? FNX_OK : fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "no host memory");
}

static bool is_name(const char *s) {
    size_t n = strlen(s);
    return n > 0 && n <= NAME_BYTES && strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

static fnx_status read_version_number(fnx_candidate *c, const char *key, const json_t *value) {
    if (json_is_integer(value) && json_integer_value(value) == 1) return FNX_OK;
    return wrong(c, key, "1, the only version there is");
}

static fnx_status read_name(fnx_candidate *c, const char *key, const json_t *value) {
    FNX_TRY(copy_text(c, &c->name, key, value));
    return is_name(c->name) ? FNX_OK : wrong(c, key, "1 to 63 letters, digits, _ or -");
}

static fnx_status read_version(fnx_candidate *c, const char *key, const json_t *value) { return copy_text(c, &c->version, key, value); }
static fnx_status read_summary(fnx_candidate *c, const char *key, const json_t *value) { return copy_text(c, &c->summary, key, value); }
static fnx_status read_license(fnx_candidate *c, const char *key, const json_t *value) { return copy_text(c, &c->license, key, value); }

static fnx_status read_kind(fnx_candidate *c, const char *key, const json_t *value) {
    FNX_TRY(copy_text(c, &c->kind, key, value));
    return !strcmp(c->kind, "backend") || !strcmp(c->kind, "extension") ? FNX_OK : wrong(c, key, "\"backend\" or \"extension\"");
}

static fnx_status read_abi(fnx_candidate *c, const char *key, const json_t *value) {
    const json_t *major = json_object_get(value, "major"), *epoch = json_object_get(value, "epoch"), *minor = json_object_get(value, "minor");
    if (!json_is_object(value) || !json_is_integer(major) || !json_is_integer(epoch) || (minor && !json_is_integer(minor)))
        return wrong(c, key, "an object with the integers major, minor and epoch");
    c->epoch = (uint32_t)json_integer_value(epoch);
    if (json_integer_value(major) != 0 || json_integer_value(epoch) != FNX_ABI_EPOCH)
        return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "it is made for plugin ABI %lld, epoch %lld; this library has ABI 0, epoch %u: install the plugin of "
                                    "this version", (long long)json_integer_value(major), (long long)json_integer_value(epoch), FNX_ABI_EPOCH);
    return FNX_OK;
}

static fnx_status read_build(fnx_candidate *c, const char *key, const json_t *value) {
    static const struct { const char *word; uint32_t bit; } words[] = {{"address", 1}, {"thread", 2}, {"undefined", 4}};
    size_t i;
    json_t *item;
    if (!json_is_array(value)) return wrong(c, key, "a list of \"address\", \"thread\", \"undefined\"");
    json_array_foreach(value, i, item) {
        uint32_t bit = 0;
        for (size_t k = 0; k < sizeof words / sizeof *words && json_is_string(item); k++)
            if (!strcmp(words[k].word, json_string_value(item))) bit = words[k].bit;
        if (!bit) return wrong(c, key, "a list of \"address\", \"thread\", \"undefined\"");
        c->build |= bit;
    }
    return FNX_OK;
}

static fnx_status read_library(fnx_candidate *c, const char *key, const json_t *value) {
    FNX_TRY(copy_text(c, &c->library, key, value));
    if (!*c->library || strlen(c->library) >= PATH_MAX) return wrong(c, key, "the name of a file");
    bool system = c->origin == FNX_ORIGIN_ADMIN || c->origin == FNX_ORIGIN_SYSTEM;
    if (system && strchr(c->library, '/')) return wrong(c, key, "a file name without / in a system manifest");
    for (const char *p = c->library; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2])) return wrong(c, key, "a path without ..");
        if (!strchr(p, '/')) break;
    }
    if (c->library[0] == '/') return FNX_OK;
    const char *slash = strrchr(c->manifest, '/');
    char *full = system ? fnx_alloc_format("%s/%s", FORNAX_PLUGIN_LIBDIR, c->library)
                        : fnx_alloc_format("%.*s/%s", slash ? (int)(slash - c->manifest) : 1, slash ? c->manifest : ".", c->library);
    if (!full) return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "no host memory");
    free(c->library);
    c->library = full;
    return FNX_OK;
}

/* A list of short texts, kept with spaces between. */
static fnx_status read_words(fnx_candidate *c, char **to, const char *key, const json_t *value) {
    size_t i;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) > 64) return wrong(c, key, "a list of at most 64 names");
    json_array_foreach(value, i, item) {
        if (!json_is_string(item) || !is_name(json_string_value(item))) return wrong(c, key, "a list of names");
        if (!to) continue;
        char *more = fnx_alloc_format("%s%s%s", *to ? *to : "", *to ? " " : "", json_string_value(item));
        if (!more) return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "no host memory");
        free(*to);
        *to = more;
    }
    return FNX_OK;
}

static fnx_status read_devices(fnx_candidate *c, const char *key, const json_t *value) { return read_words(c, &c->devices, key, value); }
static fnx_status read_namespaces(fnx_candidate *c, const char *key, const json_t *value) { return read_words(c, NULL, key, value); }

static fnx_status read_tier(fnx_candidate *c, const char *key, const json_t *value) {
    return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= 3 ? FNX_OK : wrong(c, key, "a number from 0 to 3");
}

static fnx_status read_priority(fnx_candidate *c, const char *key, const json_t *value) { return json_is_integer(value) ? FNX_OK : wrong(c, key, "an integer"); }

static fnx_status read_enabled(fnx_candidate *c, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return wrong(c, key, "true or false");
    c->enabled = json_is_true(value);
    return FNX_OK;
}

static fnx_status read_config(fnx_candidate *c, const char *key, const json_t *value) {
    const char *name;
    json_t *item;
    if (!json_is_object(value)) return wrong(c, key, "an object of texts");
    json_object_foreach((json_t *)value, name, item) if (!json_is_string(item)) return wrong(c, key, "an object of texts");
    c->config = json_incref((json_t *)value);
    return FNX_OK;
}

#if defined(__x86_64__)
static bool cpu_has(const char *feature) {
    static const char *const known[] = {"sse4.2", "avx", "avx2", "fma", "avx512f"};
    const bool has[] = {__builtin_cpu_supports("sse4.2"), __builtin_cpu_supports("avx"), __builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
                        __builtin_cpu_supports("avx512f")};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i], feature)) return has[i];
    return false;
}
#else
static bool cpu_has(const char *feature) { return feature == NULL; }
#endif

/* Gates: what must be there before it makes sense to load. Every unmet one hides the plugin without an error. */
static fnx_status read_requires(fnx_candidate *c, const char *key, const json_t *value) {
    static const char *const gates[] = {"paths", "cpu", "plugins"};
    if (!json_is_object(value)) return wrong(c, key, "an object of paths, cpu, plugins");
    for (size_t g = 0; g < 3; g++) {
        const json_t *list = json_object_get(value, gates[g]);
        size_t i;
        json_t *item;
        if (list && !json_is_array(list)) return wrong(c, key, "an object of lists");
        json_array_foreach(list, i, item) {
            if (!json_is_string(item)) return wrong(c, key, "an object of lists of texts");
            const char *text = json_string_value(item);
            if (g == 0 && access(text, F_OK)) return fnx_candidate_reject(c, FNX_PLUGIN_GATED, "%s is not there", text);
            if (g == 1 && !cpu_has(text)) return fnx_candidate_reject(c, FNX_PLUGIN_GATED, "the CPU has no %s", text);
        }
    }
    return FNX_OK;
}

static const struct field {
    const char *key;
    bool required;
    field_reader read;
} fields[] = {
    {"manifest_version", true, read_version_number}, {"name", true, read_name}, {"kind", true, read_kind}, {"version", true, read_version},
    {"enabled", false, read_enabled}, {"abi", true, read_abi}, {"build", false, read_build}, {"library", true, read_library},
    {"devices", false, read_devices}, {"namespaces", false, read_namespaces}, {"tier", false, read_tier}, {"priority", false, read_priority},
    {"config", false, read_config}, {"summary", false, read_summary}, {"license", false, read_license}, {"requires", false, read_requires},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static void warn_unknown(const fnx_candidate *c, const json_t *root) {
    const char *key, *names[FIELDS];
    json_t *value;
    for (int i = 0; i < FIELDS; i++) names[i] = fields[i].key;
    json_object_foreach((json_t *)root, key, value) {
        bool known = !strncmp(key, "x-", 2);
        for (int i = 0; i < FIELDS; i++) known |= !strcmp(key, names[i]);
        if (known) continue;
        const char *close = fnx_spell_closest(key, names, FIELDS);
        fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "%s: unknown key \"%.60s\"%s%s%s", c->manifest, key, close ? "; did you mean \"" : "", close ? close : "",
                      close ? "\"?" : "");
    }
}

/* A mask needs no library: name and "enabled": false are enough. */
static fnx_status read_fields(fnx_candidate *c, const json_t *root) {
    if (!json_is_object(root)) return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "is no JSON object");
    bool mask = json_is_false(json_object_get(root, "enabled"));
    for (int i = 0; i < FIELDS; i++) {
        const json_t *value = json_object_get(root, fields[i].key);
        if (value) FNX_TRY(fields[i].read(c, fields[i].key, value));
        else if (fields[i].required && !(mask && i > 1)) return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "\"%s\" is missing", fields[i].key);
        if (mask && c->name && !c->enabled) return FNX_OK;
    }
    warn_unknown(c, root);
    if (c->build != FORNAX_BUILD_SANITIZERS)
        return fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "it is built %s sanitizers, this library %s: they cannot be in one process", c->build ? "with" : "without",
                                    FORNAX_BUILD_SANITIZERS ? "with others" : "without");
    return FNX_OK;
}

fnx_candidate *fnx_manifest_read(const char *path, fnx_origin origin) {
    fnx_candidate *c = calloc(1, sizeof *c);
    if (!c || !(c->manifest = fnx_alloc_string(path))) {
        free(c);
        return NULL;
    }
    c->origin = origin, c->enabled = true;
    char why[FNX_REASON_BYTES];
    size_t size = 0;
    char *text = read_trusted(path, &size, why, sizeof why);
    if (!text) {
        fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "the manifest %s", why);
        return c;
    }
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root) fnx_candidate_reject(c, FNX_PLUGIN_REJECTED, "the manifest is no JSON: line %d: %s", error.line, error.text);
    else if (read_fields(c, root) == FNX_OK && !c->enabled) fnx_candidate_reject(c, FNX_PLUGIN_MASKED, "disabled by this manifest");
    json_decref(root);
    free(text);
    return c;
}
