/* The one reader of the environment, and the one table of what it reads.
 *
 * Programs with more privileges than their user (AT_SECURE) see no variable at all. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fnx_env_variable {
    const char *name, *value_hint, *fallback, *summary;
} fnx_env_variable;

extern const fnx_env_variable fnx_env_variables[]; /* ends with a NULL name */

/* The value at the first call (later changes of the environment do not show), or NULL. Only names of the table. */
const char *fnx_env_text(const char *name);

/* Whether an on/off variable is on: set, and not to "", 0, off, no or false. */
bool fnx_env_on(const char *name);

/* Whether the word "handles" stands in FORNAX_DEBUG. */
bool fnx_debug_handles(void);

/* FORNAX_<PLUGIN>_<KEY>, in capitals, with _ for - and .; NULL: not set, or more privileges. Such names stand in no
 * table. */
const char *fnx_env_option(const char *plugin, const char *key);

/* $XDG_DATA_HOME, $HOME: not ours, with the same rule about privileges. */
const char *fnx_env_foreign(const char *name);

/* Logs a warning for each FORNAX_ name that is not in the table and cannot be an option of one of these plugins. The
 * registry calls it when it has found them. */
void fnx_env_warn_of_unknown(const char *const *plugins, int64_t n);

/* More rights than the caller: user paths do not count (AT_SECURE). */
bool fnx_env_elevated(void);

#endif
