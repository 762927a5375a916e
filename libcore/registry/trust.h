/* Files that may decide what code runs in this process.
 *
 * Trusted is what belongs to root or to the effective user and cannot be written by everybody, in folders of which
 * the same is true. That is looked up on opened descriptors, so that what was checked is what is read. */
#ifndef REGISTRY_TRUST_H
#define REGISTRY_TRUST_H

#include "registry/reason.h"

#include <sys/stat.h>

/* Opens a regular file for reading if it, the folder it was asked for in, and the folder it really lies in are
 * trusted.
 *
 *   out_path   its canonical path, to be freed; may be NULL
 *   out_stat   of the opened descriptor; may be NULL
 *
 * Returns the descriptor, or -1 with the reason. */
int fnx_trust_open(const char *path, char **out_path, struct stat *out_stat, fnx_reason *why);

#endif
