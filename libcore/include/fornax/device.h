/* Devices: opening them by name, their settings, what they are, what memory they use.
 *
 * A device is a handle: hardware plus settings plus whether gradients are taped. Several handles may share one piece of
 * hardware; tensors of all of them mix. Whoever opened one closes it, after what uses it (modules, loaders).
 *
 * Names follow `plugin[:address][?key=value&...]`: "cpu", "cpu?threads=1", "cuda:0", "remote:lab/cuda:0". The plugin
 * parses the address; unknown keys are errors that list the known ones. Keys every device takes: lazy and verify (on,
 * off), fallback (decompose, error, host), precision (full, reduced), memory_limit and graph_limit (bytes: 4096, 512m,
 * 8g); the others are the plugin's.
 *
 * Threads: safe, except that one handle is configured or closed by one thread at a time. Structs whose first member is
 * struct_size: set it to sizeof, else FNX_E_INVALID; a failed device gives its cause where a status is returned. */
#ifndef FORNAX_DEVICE_H
#define FORNAX_DEVICE_H

#include <fornax/base.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_device fnx_device;
typedef struct fnx_tensor fnx_tensor;

/* Opens a device. `name` NULL: $FORNAX_DEVICE, else the admin's default, else "cpu".
 *
 * Never NULL: a device that could not be opened is a failed device, which carries the cause; what is made on it fails
 * with that cause, fnx_device_status returns it. The error of an unknown name lists every candidate and why it was not
 * used. Codes: FNX_E_INVALID (the name or an option), FNX_E_NOT_FOUND, FNX_E_PLUGIN, FNX_E_NO_MEMORY, FNX_E_FORKED, and
 * what the plugin failed with. Close with fnx_device_close. */
FNX_API fnx_device *fnx_device_open(const char *name);

/* The same hardware and settings with gradients on: variables made on it require gradients, and what is computed from
 * them is taped. A new handle, to be closed; takes over `device`, so that fnx_device_autodiff(fnx_device_open(n)) leaks
 * nothing: close only the result. */
FNX_API fnx_device *fnx_device_autodiff(fnx_device *device);

/* Another handle of the same hardware, without gradients, that does not take `device` over. */
FNX_API fnx_device *fnx_device_plain(const fnx_device *device);

/* Gives the handle up. NULL-safe. With the last one of a piece of hardware its cached memory goes back; tensors
 * stay valid. */
FNX_API void fnx_device_close(fnx_device *device);

/* 0, or why the device could not be opened (also set as the thread's last error). */
FNX_API FNX_CHECKED fnx_status fnx_device_status(const fnx_device *device);

/* false for NULL and failed devices */
FNX_API bool fnx_device_is_autodiff(const fnx_device *device);
FNX_API bool fnx_device_same_hardware(const fnx_device *a, const fnx_device *b);

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* What to do with an op that the backend has no kernel for: make it of others; or fail, as where there are none, with
 * FNX_E_UNSUPPORTED; or run what is left on plugin cpu, else ref, of this process. That is slow: each time the device
 * is waited for, operands are copied to the host and results back. */
enum { FNX_FALLBACK_DECOMPOSE = 1, FNX_FALLBACK_ERROR = 2, FNX_FALLBACK_HOST = 3 };
/* Accumulation of matrix products: FULL is IEEE in the operands' dtype, REDUCED allows tf32 or bf16 pieces. */
enum { FNX_PRECISION_FULL = 1, FNX_PRECISION_REDUCED = 2 };
enum { FNX_ON = 1, FNX_OFF = 2 };

/* In fnx_device_configure 0 leaves a setting as it is. */
typedef struct fnx_settings {
    uint32_t struct_size;  /* sizeof(fnx_settings) */
    uint16_t float_dtype;  /* FNX_F32: default of constructors that are given dtype 0 */
    uint16_t int_dtype;    /* FNX_I64 */
    uint32_t fallback;     /* FNX_FALLBACK_DECOMPOSE */
    uint32_t lazy;         /* FNX_ON; FNX_OFF runs each op at once */
    uint32_t verify;       /* FNX_OFF; FNX_ON also runs op by op; FNX_E_INTERNAL names what differs */
    uint32_t precision;    /* FNX_PRECISION_FULL */
    uint64_t memory_limit; /* bytes that the hardware's pools may reserve; UINT64_MAX: no limit */
    uint64_t graph_limit;  /* bytes of pending results, plus 256 per record, above which a graph is flushed */
} fnx_settings;

/* Settings of this handle (memory_limit is the hardware's, shared). They hold for what is recorded from then on.
 * Errors: FNX_E_DTYPE, FNX_E_INVALID (a value that a setting does not have). */
FNX_API FNX_CHECKED fnx_status fnx_device_settings(const fnx_device *device, fnx_settings *out);
FNX_API FNX_CHECKED fnx_status fnx_device_configure(fnx_device *device, const fnx_settings *settings);

/* ---- what it is -------------------------------------------------------------------------------------------------- */

typedef struct fnx_device_description {
    uint32_t struct_size;  /* sizeof, set by the caller */
    uint32_t host_memory;  /* 1: device memory is host memory */
    uint64_t memory_bytes; /* in all; 0: unknown */
    char spec[128];        /* a name that opens it: "cpu:0" */
    char plugin[64];
    char name[64];    /* of the hardware */
    uint8_t uuid[16]; /* zeros: none */
} fnx_device_description;

FNX_API FNX_CHECKED fnx_status fnx_device_describe(const fnx_device *device, fnx_device_description *out);

/* Calls `each` for every device of every plugin that can be loaded, in the order of plugins; opens none of them longer
 * than the call. `reason` is NULL for a device that works, else why it, or the plugin whose name is all of `spec`, does
 * not; both are valid during the call. A return other than 0 stops. Errors: FNX_E_NO_MEMORY, FNX_E_FORKED. */
FNX_API fnx_status fnx_device_list(int (*each)(void *user, const fnx_device_description *device, const char *reason),
                                   void *user);

/* ---- memory, waiting, randomness --------------------------------------------------------------------------------- */

typedef struct fnx_memory_report {
    uint32_t struct_size; /* sizeof, set by the caller */
    uint32_t reserved;
    uint64_t in_use;      /* bytes of live tensors and of arenas in use */
    uint64_t in_use_peak; /* since the last fnx_device_memory_reset */
    uint64_t held;        /* bytes taken from the plugin: in use plus cached */
    uint64_t held_peak;
    uint64_t arena;   /* bytes of plan arenas, part of in_use */
    uint64_t padding; /* bytes lost to alignment and size classes, part of in_use */
    uint64_t limit;   /* fnx_settings.memory_limit */
} fnx_memory_report;

FNX_API FNX_CHECKED fnx_status fnx_device_memory(const fnx_device *device, fnx_memory_report *out);
FNX_API void fnx_device_memory_reset(fnx_device *device); /* peaks start again from now */
FNX_API void fnx_device_memory_trim(fnx_device *device);  /* waits; cached memory goes back to the plugin */

/* Flushes this thread's graph on the device and waits until the device is idle. Returns the first error that work on
 * the device met since the last call (an index out of range names op and index). */
FNX_API FNX_CHECKED fnx_status fnx_device_sync(fnx_device *device);

/* Starts the hardware's generator (FNX_PHILOX of <fornax-plugin/ops.h>), which all handles share, anew: the random ops
 * that follow give the same numbers again. A device starts with seed 0. */
FNX_API void fnx_device_seed(fnx_device *device, uint64_t seed);

/* Where the generator stands, to be stored in checkpoints and set again. The counter goes up by 1 per random op. */
FNX_API void fnx_device_generator(const fnx_device *device, uint64_t *out_seed, uint64_t *out_counter);
FNX_API void fnx_device_generator_set(fnx_device *device, uint64_t seed, uint64_t counter);

/* The ops that there are, and the dtypes (mask of 1 << dtype) that the device's backend takes as operands of one; NULL
 * and 0 where i is not in [0, count). */
FNX_API int fnx_op_count(void);
FNX_API const char *fnx_op_name(int i);
FNX_API uint64_t fnx_device_op_dtypes(const fnx_device *device, int i);

/* Counters of the calling thread's recorder on this hardware and of the hardware, for tests and benchmarks. */
typedef struct fnx_graph_stats {
    uint32_t struct_size; /* sizeof, set by the caller */
    uint32_t reserved;
    uint64_t records; /* operations recorded */
    uint64_t flushes; /* graphs that ran */
    uint64_t plans;   /* plans built: flushes minus hits of the cache */
    uint64_t hits;
    uint64_t dropped;    /* graphs in which nothing was demanded */
    uint64_t launches;   /* calls of kernels and groups */
    uint64_t recomputed; /* records run again because a name was used after its flush */
    uint64_t donated;    /* results written over an old value */
    uint64_t stored;     /* results that got memory of their own, and their bytes */
    uint64_t stored_bytes;
    uint64_t fallbacks; /* ops run on the host */
} fnx_graph_stats;

FNX_API FNX_CHECKED fnx_status fnx_device_stats(const fnx_device *device, fnx_graph_stats *out);

#ifdef __cplusplus
}
#endif
#endif
