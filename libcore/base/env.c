/* Read once, with secure_getenv; unknown FORNAX_ names are warned of, with the closest known one. */
#include "base/env.h"

#include "base/log.h"
#include "base/spell.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

extern char **environ;

const fnx_env_variable fnx_env_variables[] = {
    {"FORNAX_CPU_THREADS", "N", "the CPUs that the process may use", "threads of the cpu plugin"},
    {"FORNAX_DEBUG", "WORDS", "none", "handles: use after release becomes a failed tensor that says so"},
    {"FORNAX_DEVICE", "NAME", "the admin's default, else cpu", "the device that fnx_device_open(NULL) opens"},
    {"FORNAX_FALLBACK", "decompose|error|host", "decompose", "for ops that the backend has no kernel for"},
    {"FORNAX_LAZY", "on|off", "on", "off: each op runs at once"},
    {"FORNAX_LOG", "TOPIC[=LEVEL],...", "warning", "what is logged"},
    {"FORNAX_MEMORY_LIMIT", "BYTES[k|m|g]", "none", "device memory that may be reserved"},
    {"FORNAX_NO_USER_PLUGINS", "1", "off", "only plugins of the system"},
    {"FORNAX_PLUGIN_PATH", "DIRS", "none", "folders or manifests to look for plugins in first"},
    {NULL, NULL, NULL, NULL},
};
enum { VARIABLES = sizeof fnx_env_variables / sizeof *fnx_env_variables - 1 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *values[VARIABLES];
static bool elevated;

static int find(const char *name, size_t length) {
    for (int i = 0; i < VARIABLES; i++)
        if (strlen(fnx_env_variables[i].name) == length && !strncmp(fnx_env_variables[i].name, name, length)) return i;
    return -1;
}

static void read_all(void) {
    elevated = getauxval(AT_SECURE) != 0;
    for (int i = 0; i < VARIABLES; i++) {
        const char *v = secure_getenv(fnx_env_variables[i].name);
        if (v) values[i] = strdup(v);
    }
}

const char *fnx_env_text(const char *name) {
    pthread_once(&once, read_all);
    int i = find(name, strlen(name));
    return i < 0 ? NULL : values[i];
}

bool fnx_env_on(const char *name) {
    static const char *const off[] = {"", "0", "off", "no", "false"};
    const char *v = fnx_env_text(name);
    if (!v) return false;
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        if (!strcasecmp(v, off[i])) return false;
    return true;
}

const char *fnx_env_foreign(const char *name) { return secure_getenv(name); }

bool fnx_env_elevated(void) {
    pthread_once(&once, read_all);
    return elevated;
}

bool fnx_debug_handles(void) {
    static int known = -1; /* atomic */
    int v = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (v < 0) {
        const char *words = fnx_env_text("FORNAX_DEBUG");
        v = words && strstr(words, "handles");
        __atomic_store_n(&known, v, __ATOMIC_RELAXED);
    }
    return v;
}

/* FORNAX_<PLUGIN>_<KEY>; without a key its beginning. */
static bool option_name(char *out, size_t size, const char *plugin, const char *key) {
    const int n = snprintf(out, size, "FORNAX_%s_%s", plugin, key);
    for (char *p = out; *p; p++) *p = (char)(*p == '-' || *p == '.' ? '_' : toupper((unsigned char)*p));
    return n > 0 && n < (int)size;
}

const char *fnx_env_option(const char *plugin, const char *key) {
    char name[128];
    return option_name(name, sizeof name, plugin, key) ? secure_getenv(name) : NULL;
}

static bool is_option(const char *name, const char *const *plugins, int64_t n) {
    char start[128];
    for (int64_t i = 0; i < n; i++)
        if (option_name(start, sizeof start, plugins[i], "") && !strncmp(name, start, strlen(start))) return true;
    return false;
}

/* Tests and benchmarks have names of their own. */
void fnx_env_warn_of_unknown(const char *const *plugins, int64_t n_plugins) {
    const char *names[VARIABLES];
    if (fnx_env_elevated()) return;
    for (int i = 0; i < VARIABLES; i++) names[i] = fnx_env_variables[i].name;
    for (char **e = environ; e && *e; e++) {
        char name[128];
        const size_t n = strcspn(*e, "=");
        if (strncmp(*e, "FORNAX_", 7) != 0 || !strncmp(*e, "FORNAX_TEST_", 12) || !strncmp(*e, "FORNAX_BENCH_", 13) ||
            n >= sizeof name || find(*e, n) >= 0)
            continue;
        memcpy(name, *e, n), name[n] = 0;
        if (is_option(name, plugins, n_plugins)) continue;
        const char *close = fnx_spell_closest(name, names, VARIABLES);
        fnx_log_write(FNX_TOPIC_ENV, FNX_LOG_WARNING, "%s is not known%s%s%s", name, close ? "; did you mean " : "",
                      close ? close : "", close ? "?" : "");
    }
}
