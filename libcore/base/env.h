/* The one reader of the environment, and the one table of what it reads. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stdbool.h>

typedef struct fnx_env_variable {
    const char *name, *value_hint, *fallback, *summary;
    bool path; /* ignored where the program has elevated privileges */
} fnx_env_variable;

extern const fnx_env_variable fnx_env_variables[]; /* ends with a NULL name */

/* The value when first asked for (kept: later changes of the environment do not show), or NULL. Only names of the table. */
const char *fnx_env_text(const char *name);

/* Whether a word stands in FORNAX_DEBUG. */
bool fnx_debug_handles(void);

/* $XDG_DATA_HOME, $HOME: not ours, read the same way. */
const char *fnx_env_foreign(const char *name);

/* More rights than the caller: user paths do not count (AT_SECURE). */
bool fnx_env_elevated(void);

#endif
