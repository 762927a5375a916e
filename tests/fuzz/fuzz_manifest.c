/* Whatever the bytes, reading a manifest refuses it with a reason or gives one that keeps its promises. */
#include "registry/manifest.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
    do { \
        if (!(condition)) abort(); \
    } while (0)

static void check_texts(const fnx_manifest *m) {
    const char *const texts[] =
        {m->name, m->version, m->kind, m->library, m->summary, m->license, m->devices ? m->devices : ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *p = texts[i]; *p; p++) MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
    MUST(strlen(m->name) <= FNX_PLUGIN_NAME);
    MUST(!strchr(m->name, '/') && !strchr(m->name, ':') && !strchr(m->name, '?'));
    MUST(!strstr(m->library, "/../") && strncmp(m->library, "../", 3) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fnx_manifest m;
    fnx_reason why = {""};
    const bool good = fnx_manifest_parse((const char *)data, size, &m, &why);
    MUST(good == !*why.text);
    if (good) {
        MUST(size <= FNX_JSON_BYTES && *m.name && m.root);
        MUST(!m.enabled || (*m.version && *m.kind && *m.library));
        check_texts(&m);
        (void)fnx_manifest_fits(&m, &why);
    }
    fnx_manifest_finish(&m);
    return 0;
}
