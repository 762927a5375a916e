/* What the rest of libfornax asks of the registry: plugins and devices by name. Listing is in <fornax/plugins.h>.
 *
 * Plugins are loaded when first asked for, once per process, and stay. All functions may be called from any
 * thread; no lock is held while plugin code runs, so plugins may log, and may open devices of other plugins. */
#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

#include "base/error.h"

#include <fornax-plugin/plugin.h>

/* The plugin of that name, loaded and initialised. Descriptor and context live as long as the process.
 *
 * Errors: FNX_E_NOT_FOUND (no manifest has the name), FNX_E_PLUGIN (masked, rejected, gated or failed); both list
 * every candidate and why it was not used. FNX_E_FORKED in a child of a process that had used plugins. */
FNX_CHECKED fnx_status fnx_registry_plugin(const char *name, const fnx_plugin **out_plugin, void **out_context);

/* Opens a device. `options` is "key=value&key=value" or "": what the plugin asks for as config(key) during the
 * call. An option that it did not ask for is an error which lists those it did. The caller closes with
 * out_table->close. */
FNX_CHECKED fnx_status fnx_registry_device_open(const char *plugin, const char *address, const char *options,
                                                const fnx_device_table **out_table, void **out_device);

/* Loads every backend that can be loaded and calls `each` for its devices, by addresses that device_open takes;
 * for a plugin without any (not usable, or no hardware) once, with address NULL and the reason. A result other
 * than 0 stops. */
FNX_CHECKED fnx_status fnx_registry_devices(int (*each)(void *user, const char *plugin, const char *address,
                                                        const char *reason),
                                            void *user);

/* The device that the administrator made the default, or NULL. Lives as long as the process. */
const char *fnx_registry_default_device(void);

#endif
