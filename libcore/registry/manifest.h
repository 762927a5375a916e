/* A manifest: what a plugin says of itself before any of its code runs. fornax-plugins(7) and
 * manifests/schema.json describe the fields. */
#ifndef REGISTRY_MANIFEST_H
#define REGISTRY_MANIFEST_H

#include "registry/json.h"

#include <stdint.h>

enum { FNX_PLUGIN_NAME = 63 }; /* bytes, without the NUL */

typedef struct fnx_manifest {
    json_t *root; /* owns what is not allocated here; NULL: not read */
    const char *name, *version, *kind, *library, *summary, *license; /* "" where not given */
    char *devices;                                                   /* with commas between, or NULL */
    const json_t *paths, *cpu, *plugins;                             /* what it requires: lists of texts, or NULL */
    const json_t *config;                                            /* or NULL */
    int64_t priority, tier;                                          /* tier -1: not given */
    int64_t major, epoch;                                            /* of the ABI */
    uint32_t build;                                                  /* as fnx_plugin.build */
    bool enabled;
    char notes[256]; /* on unknown keys, or "" */
} fnx_manifest;

/* Reads all fields. false with the reason if one of them is missing or wrong, or this library cannot load what it
 * describes (ABI, sanitizers); `out` then has what was read so far. Finish in both cases. */
bool fnx_manifest_parse(const char *text, size_t bytes, fnx_manifest *out, fnx_reason *why);
bool fnx_manifest_read(const char *path, fnx_manifest *out, fnx_reason *why);
void fnx_manifest_finish(fnx_manifest *m);

/* Whether the machine has what the manifest requires, plugins aside. false with the reason. Loads nothing. */
bool fnx_manifest_fits(const fnx_manifest *m, fnx_reason *why);

/* "address and undefined" or "none" for the bits of fnx_plugin.build. */
void fnx_manifest_build_words(uint32_t build, char *out, size_t size);

/* The keys that are known, for the test of the schema; NULL after the last. */
const char *fnx_manifest_key(int i);

#endif
