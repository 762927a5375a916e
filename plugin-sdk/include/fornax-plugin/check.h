/* Checks of groups and launches that come from somewhere else: off a wire, off a disk, from a host under test.
 *
 * fnx_group_check reads nothing outside the bytes it is given, whatever they are. What it accepts can be walked with
 * the accessors of group.h, and every core op in it has operands of the right number, dtype relation and rank, and
 * attributes in range. fnx_launch_check then holds the numbers of one launch against the group: after it, no element
 * that a core op reads or writes lies outside the extents of its values (fnx_value_extent), which the caller compares
 * with its allocations. Whether a backend has the ops and dtypes is for its prepare to say.
 *
 * They need no libfornax: link libfornax-check.a. Nothing is allocated. Threads: safe. `why` (or NULL) gets a sentence
 * when the answer is not 0, cut to `why_size` bytes. */
#ifndef FORNAX_PLUGIN_CHECK_H
#define FORNAX_PLUGIN_CHECK_H

#include <fornax-plugin/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values, nodes, sizes, scalars, constants or names of one group that are accepted: far above what a host makes. */
#define FNX_CHECK_MOST 16384u

/* `bytes` must be aligned to 8. Errors: FNX_E_FORMAT (not a group, or one that breaks a rule of group.h),
 * FNX_E_UNSUPPORTED (a feature, flag, kind, anchor or attribute newer than this file, so that nobody here can say). */
int32_t fnx_group_check(const void *bytes, size_t size, char *why, size_t why_size);

/* `group` was accepted by fnx_group_check; the launch's arrays have the lengths that the group says. Errors:
 * FNX_E_SHAPE (sizes or strides that break a promise, do not fit together, or overflow), FNX_E_INVALID (a missing
 * array, a misaligned address). The workspace and the classes of scalars are not looked at. */
int32_t fnx_launch_check(const fnx_group *group, const fnx_launch *launch, char *why, size_t why_size);

/* The bytes [low, high) around the launch's address that value number `value` (kind INPUT or OUTPUT) covers; low is
 * negative with negative strides; both are 0 where a size is 0. Errors: FNX_E_SHAPE where they do not fit 64 bits. */
int32_t fnx_value_extent(const fnx_group *group, const fnx_launch *launch, uint32_t value, int64_t *low, int64_t *high);

#ifdef __cplusplus
}
#endif
#endif
