/* Read once, with secure_getenv; unknown FORNAX_ names are warned of, with the closest known one. */
#include "base/env.h"

#include "base/spell.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

extern char **environ;

const fnx_env_variable fnx_env_variables[] = {
    {"FORNAX_CPU_THREADS", "N", "the CPUs that the process may use", "threads of the cpu plugin", false},
    {"FORNAX_DEBUG", "WORDS", "none", "handles: use after release becomes a failed tensor that says so", false},
    {"FORNAX_DEVICE", "NAME", "the admin's default, else cpu", "the device that fnx_device_open(NULL) opens", false},
    {"FORNAX_FALLBACK", "decompose|error|host", "decompose", "what to do with an op that the backend has no kernel for", false},
    {"FORNAX_LAZY", "on|off", "on", "off: each op runs at once", false},
    {"FORNAX_LOG", "TOPIC[=LEVEL],...", "warning", "what is logged", false},
    {"FORNAX_MEMORY_LIMIT", "BYTES[k|m|g]", "none", "device memory that may be reserved", false},
    {"FORNAX_NO_USER_PLUGINS", "1", "off", "only plugins of the system", false},
    {"FORNAX_PLUGIN_PATH", "DIRS", "none", "directories or manifests to look for plugins in first, with colons between", true},
    {NULL, NULL, NULL, NULL, false},
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

static void warn_unknown(const char *entry) {
    const char *names[VARIABLES];
    size_t length = strcspn(entry, "=");
    char name[128];
    /* tests of ours, and settings of programs, may use names of their own */
    if (find(entry, length) >= 0 || !strncmp(entry, "FORNAX_TEST_", 12) || !strncmp(entry, "FORNAX_BENCH_", 13)) return;
    for (int i = 0; i < VARIABLES; i++) names[i] = fnx_env_variables[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, entry);
    const char *close = fnx_spell_closest(name, names, VARIABLES);
    fprintf(stderr, "fornax: env: warning: %s is not known%s%s%s\n", name, close ? "; did you mean " : "", close ? close : "", close ? "?" : "");
}

static void read_all(void) {
    elevated = getauxval(AT_SECURE) != 0;
    for (int i = 0; i < VARIABLES; i++) {
        const char *v = secure_getenv(fnx_env_variables[i].name);
        if (v) values[i] = strdup(v);
    }
    for (char **e = environ; e && *e && !elevated; e++)
        if (!strncmp(*e, "FORNAX_", 7)) warn_unknown(*e);
}

const char *fnx_env_text(const char *name) {
    pthread_once(&once, read_all);
    int i = find(name, strlen(name));
    return i < 0 ? NULL : values[i];
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
