/* What a plugin exports and what it gets: descriptor, host table, device table, kernel records.
 *
 * A plugin exports exactly one datum, `const fnx_plugin fornax_plugin_v0`. The host reads magic, sizes, epoch and name
 * before it calls anything. Tables are constant and live as long as the process; a NULL entry means "not offered" where
 * the comment says so. Everything optional is an interface with a name and a number ("fornax.group/0"): a new version
 * is a new name, and strangers can add their own. */
#ifndef FORNAX_PLUGIN_PLUGIN_H
#define FORNAX_PLUGIN_PLUGIN_H

#include <fornax-plugin/group.h>

#define FNX_PLUGIN_MAGIC UINT32_C(0x30584e46) /* "FNX0" */
#define FNX_ABI_EPOCH 1u                      /* until 1.0 host and plugin must agree exactly */
#define FNX_ABI_MINOR 0u

/* ---- what the host offers ---------------------------------------------------------------------------------------- */

/* Lives as long as the process. Texts are copied. Threads: any, but see config. */
typedef struct fnx_host {
    uint32_t struct_size;
    uint32_t abi_minor;
    void (*log)(uint32_t level, const char *text); /* 0 error, 1 warning, 2 info, 3 debug, 4 trace */
    /* Sets this thread's error record; returns `code`, so that a plugin writes `return host->error(...)`. */
    int32_t (*error)(int32_t code, const char *text);
    /* Host memory; align: a power of two, or 0. NULL when exhausted. Freed with `free`, which is NULL-safe. */
    void *(*alloc)(uint64_t bytes, uint64_t align);
    void (*free)(void *p);
    /* The text of an option: from the device's name, the environment (variables of fornax-env(7)), the administrator,
     * the manifest; else `fallback`. Only inside init and device_open, on their thread, and valid until they return:
     * anywhere else it gives `fallback`. A key in the device's name that device_open never asks for is an error. */
    const char *(*config)(const char *key, const char *fallback);
    void (*trace)(uint32_t site, const char *text, uint64_t ns); /* logs how long the launch of this site took */
} fnx_host;

/* ---- devices ----------------------------------------------------------------------------------------------------- */

typedef struct fnx_device_info {
    uint32_t struct_size;  /* set by the host: no more bytes are written */
    uint32_t flags;        /* FNX_DEVICE_* */
    uint32_t memory_align; /* bytes: of every allocation and of workspace */
    uint32_t max_queues;   /* at least 1 */
    uint64_t memory_bytes; /* in all; 0: unknown */
    uint8_t uuid[16];      /* zeros: none. Equal: one piece of hardware seen by two plugins */
    char name[64];         /* of the hardware, for people */
} fnx_device_info;

/* One word per queue, in memory that kernels can write. The first failure wins (compare and swap of `code` from 0): of
 * the elements of one launch that fail, which one that is, is unspecified. The element that failed reads 0 or writes
 * nothing, and the launch goes on. */
typedef struct fnx_error_word {
    int32_t code;  /* FNX_E_INDEX, ... or 0 */
    uint32_t site; /* of the launch */
    uint32_t node; /* within its group */
    uint32_t reserved;
    int64_t index; /* the value that was refused: it is outside [0, limit) */
    int64_t limit; /* 0: an integer was divided by 0 */
} fnx_error_word;

/* fnx_kernel.flags */
enum {
    FNX_KERNEL_BETTER = 1,       /* faster than the op's decomposition wherever `supports` accepts */
    FNX_KERNEL_STRIDED = 2,      /* takes any strides of operands and results */
    FNX_KERNEL_DETERMINISTIC = 8 /* same bits for any number of threads */
};

enum { FNX_DEVICE_HOST_MEMORY = 1 }; /* fnx_device_info.flags: the host can address device memory */

/* A kernel for one op. Gets a group of one node: the same two structs, without prepare. The group stays where it is
 * until the launch has completed on the queue; the launch's arguments are copied before `launch` returns. Records are
 * asked in their order, before fornax.group/0. Threads: supports and workspace any, launch as in fornax.group/0. */
typedef struct fnx_kernel {
    uint32_t struct_size;
    uint16_t op;        /* or 0 and a name: ops of extensions */
    uint16_t flags;     /* FNX_KERNEL_* */
    uint64_t dtypes_in; /* masks: of every operand, of every result */
    uint64_t dtypes_out;
    const char *op_name; /* where op is 0 */
    /* NULL: always. Called while building a plan, with the exact sizes and strides, without addresses and scalars;
     * FNX_E_DECLINED fills `why` (may be NULL). `workspace` gets the same, and may be NULL: no bytes. */
    int32_t (*supports)(void *device, const fnx_group *one, const fnx_launch *shapes, fnx_decline *why);
    int32_t (*workspace)(void *device, const fnx_group *one, const fnx_launch *shapes, uint64_t *out_bytes);
    int32_t (*launch)(void *device, void *queue, const fnx_group *one, const fnx_launch *launch);
} fnx_kernel;

/* Needed are close, info, get_interface, alloc, free, copy, queue_create, queue_destroy and queue_sync; another may be
 * NULL. This host makes one queue per device, and does not call fill, events and captures yet. Functions return 0 or
 * FNX_E_*, with the text in host->error. Threads: one queue's functions one at a time, the others any. */
typedef struct fnx_device_table {
    uint32_t struct_size;
    uint32_t n_kernels;
    uint32_t kernel_bytes; /* stride of `kernels` */
    uint32_t flags;
    const fnx_kernel *kernels;

    void (*close)(void *device); /* last, all else given back; a device that lives as long as the process gets none */
    int32_t (*info)(void *device, fnx_device_info *out);
    const void *(*get_interface)(void *device, const char *name); /* NULL: not offered */

    /* kind: 0, device memory; there is no other yet. bytes > 0, contents undefined. FNX_E_NO_MEMORY: the host frees
     * what it has cached and asks once more. `free` gets out->memory, once no enqueued work uses it. */
    int32_t (*alloc)(void *device, uint32_t kind, uint64_t bytes, fnx_binding *out);
    void (*free)(void *device, void *memory);
    /* Enqueued, in order with launches. Any of the two sides may be host memory: then its `memory` is NULL and it must
     * stay until the copy has run. fill: the low 1, 2, 4 or 8 bytes of the pattern, which divide `bytes`. */
    int32_t (*copy)(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes);
    int32_t (*fill)(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes);

    int32_t (*queue_create)(void *device, void **out_queue);
    void (*queue_destroy)(void *queue);
    int32_t (*queue_flush)(void *queue); /* what is enqueued starts without another call; never waits */
    /* Waits until the queue is idle, then copies the error word out and clears it. Returns its code. */
    int32_t (*queue_sync)(void *queue, fnx_error_word *out);

    int32_t (*event_record)(void *queue, void **out_event); /* true once what was enqueued before it has completed */
    int32_t (*event_wait)(void *queue, void *event);        /* on the device */
    int32_t (*event_done)(void *event, uint32_t *out_done); /* never waits */
    void (*event_destroy)(void *event);

    /* Hardware graphs. All four or none. Between begin and end launches are recorded, not run; addresses, sizes and
     * strides are frozen; scalars are read from device memory (fnx_group.scalar_value), so they may change. */
    int32_t (*capture_begin)(void *queue);
    int32_t (*capture_end)(void *queue, void **out_capture);
    int32_t (*capture_run)(void *queue, void *capture);
    void (*capture_destroy)(void *capture);
} fnx_device_table;

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* fnx_layout.kind */
enum {
    FNX_LAYOUT_ANY = 0,       /* any strides will do; a result is written with the strides it gets */
    FNX_LAYOUT_ROW_MAJOR = 1, /* packed, last axis fastest */
    FNX_LAYOUT_ORDER = 2      /* packed in the order of `order` */
};

typedef struct fnx_layout {
    uint32_t kind;
    uint32_t reserved;
    uint8_t order[FNX_MAX_RANK]; /* axes from slowest to fastest, e.g. channels last of [n,c,h,w]: {0, 2, 3, 1} */
} fnx_layout;

typedef struct fnx_layout_interface { /* get_interface(device, "fornax.layout/0"); optional */
    uint32_t struct_size;
    uint32_t flags;
    /* Asked while building a plan, for each node that a kernel runs: fills one layout per operand, then per result. The
     * host keeps what is asked along chains of elementwise groups, and copies at most once where two sides disagree.
     * FNX_E_DECLINED, or no interface: kernels with FNX_KERNEL_STRIDED get operands as they are, others row-major. */
    int32_t (*prefer)(void *device, const fnx_group *one, const fnx_launch *shapes, fnx_layout *out);
} fnx_layout_interface;

/* ---- the descriptor ---------------------------------------------------------------------------------------------- */

/* init is called once, before any other function, and device_open once per device and set of options; both one call at
 * a time. What fails says why in host->error. */
typedef struct fnx_plugin {
    uint32_t struct_size;
    uint32_t magic;
    uint32_t abi_epoch;
    uint32_t abi_minor; /* of the header it was built with; for messages, never for decisions */
    uint32_t build;     /* 1 address, 2 thread, 4 undefined sanitizer */
    uint32_t flags;     /* 0 */
    const char *name;   /* as in the manifest */
    const char *version;
    int32_t (*init)(const fnx_host *host, void **out_context);
    void (*shutdown)(void *context);         /* not called yet: plugins stay until the process ends */
    uint32_t (*device_count)(void *context); /* for lists: addresses "0" to "count - 1". NULL: 1 */
    /* address: as in the device's name, "" for the first one; FNX_E_NOT_FOUND: it names none. NULL in extensions. */
    int32_t (*device_open)(void *context, const char *address, const fnx_device_table **out_table, void **out_device);
    const void *(*get_interface)(void *context, const char *name); /* or NULL: not offered */
} fnx_plugin;

#ifdef __cplusplus
#define FNX_PLUGIN_EXPORT extern "C" __attribute__((visibility("default"))) const fnx_plugin fornax_plugin_v0
#else
#define FNX_PLUGIN_EXPORT __attribute__((visibility("default"))) const fnx_plugin fornax_plugin_v0
#endif

#endif
