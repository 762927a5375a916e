/* Plugins: what was found, what state it is in and why. Listing loads nothing. */
#ifndef FORNAX_PLUGINS_H
#define FORNAX_PLUGINS_H

#include <fornax/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A candidate: one manifest file. Strings live as long as the process. */
typedef struct fnx_plugin_description {
    uint32_t struct_size;  /* sizeof, set by the caller */
    uint32_t shadowed;     /* 1: an earlier candidate of this name is used instead */
    const char *name, *version, *kind, *summary, *license, *devices;
    const char *state;     /* "found", "gated", "rejected", "loading", "ready", "failed", "masked" */
    const char *reason;    /* of gated, rejected, failed, masked; else "" */
    const char *manifest;  /* path */
    const char *library;   /* path; "" if the manifest was rejected before it was known */
} fnx_plugin_description;

/* Adds a manifest before all others. Errors: FNX_E_NOT_FOUND, FNX_E_PLUGIN (the reason). Only before its name is first used. */
FNX_API FNX_CHECKED fnx_status fnx_plugin_add_manifest(const char *path);

/* Candidates in the order of the search. Threads: safe. */
FNX_API int fnx_plugin_count(void);
FNX_API FNX_CHECKED fnx_status fnx_plugin_describe(int i, fnx_plugin_description *out);

/* A text for people: every candidate of the name, and why it is used or not; where was looked if there is none. Writes at most
 * size bytes, NUL included; returns the length that it needs. */
FNX_API size_t fnx_plugin_explain(const char *name, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
