/* Plugins: what was found, what state it is in and why. Listing loads nothing. */
#ifndef FORNAX_PLUGINS_H
#define FORNAX_PLUGINS_H

#include <fornax/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A candidate: one manifest file. Strings live as long as the process; none is NULL. */
typedef struct fnx_plugin_description {
    uint32_t struct_size; /* sizeof, set by the caller */
    uint32_t shadowed;    /* 1: an earlier candidate of this name is used instead */
    const char *name, *version, *kind, *summary, *license, *devices;
    const char *state;    /* "found", "masked", "gated", "rejected", "loading", "ready", "failed" */
    const char *reason;   /* why it is masked, gated, rejected, failed or shadowed; else "" */
    const char *manifest; /* path */
    const char *library;  /* path; "" if the manifest was rejected before it was known */
    const char *origin;   /* "the program", "FORNAX_PLUGIN_PATH", "the user", "the administrator", "the system" */
    int32_t tier;         /* how complete it says it is, 0 to 3; -1: it does not say */
    int32_t reserved;
} fnx_plugin_description;

/* Adds a manifest before all others. Errors: FNX_E_NOT_FOUND (no such file), FNX_E_PLUGIN (rejected; the message
 * says why), FNX_E_INVALID (the plugin of its name is in use already). Threads: safe. */
FNX_API FNX_CHECKED fnx_status fnx_plugin_add_manifest(const char *path);

/* Candidates in the order of the search. Errors: FNX_E_NOT_FOUND (i is not in [0, count)), FNX_E_INVALID (struct_size
 * is not set). Threads: safe. */
FNX_API int fnx_plugin_count(void);
FNX_API FNX_CHECKED fnx_status fnx_plugin_describe(int i, fnx_plugin_description *out);

/* A text for people: every candidate of the name, and why it is used or not; if there is none, all others and
 * where was looked. Writes at most `size` bytes, NUL included; returns the length that it needs. Threads: safe. */
FNX_API size_t fnx_plugin_explain(const char *name, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
