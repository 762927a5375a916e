/* From a library on disk to an initialised plugin. */
#ifndef REGISTRY_LOAD_H
#define REGISTRY_LOAD_H

#include "registry/catalog.h"

/* Loads the candidate's library and initialises the plugin; it is never unloaded, also if this fails half way.
 * Runs code of the plugin: call it without locks, once per candidate. `policy`: the administrator's options for
 * it, or NULL.
 *
 * false with the reason; candidate->plugin and ->context are set by nobody else. */
bool fnx_candidate_load(fnx_candidate *one, const json_t *policy, fnx_reason *why);

#endif
