/* libfornax-kernel.a: groups in, kernels out. A backend that can compile and launch a kernel gets every operation
 * from here.
 *
 * The plugin fills a fnx_codegen_device, one per opened device, and its fornax.group/0 hands on to the functions
 * below: `prepare` lowers a group into kernels, prints them in the device's dialect and has them compiled; `launch`
 * computes grids and argument blocks and launches. Kernels are specialised by class (rank, stride classes, dtypes,
 * width of indexes), never by sizes, so new shapes compile nothing.
 *
 * An argument block has 8-byte members first, then 4-byte ones, each at its natural alignment: the same bytes as a C
 * struct and as GLSL's std430. Its first member is the address of the queue's fnx_error_word. Dialects of C take the
 * block by value as the one parameter of the kernel; GLSL takes, as its push constant, the 8-byte address of a copy
 * of it. */
#ifndef FORNAX_PLUGIN_KERNEL_H
#define FORNAX_PLUGIN_KERNEL_H

#include <fornax-plugin/plugin.h>

enum {                    /* fnx_codegen_device.dialect: the language of sources */
       FNX_DIALECT_C = 1, /* C17: void entry(const uint32_t *group, const uint32_t *groups, const void *args) runs one
                             work-group, of one thread: max_threads is 1 */
       FNX_DIALECT_CUDA = 2, /* CUDA C++, for NVRTC */
       FNX_DIALECT_HIP = 3,  /* HIP C++, for hipRTC */
       FNX_DIALECT_GLSL = 4  /* GLSL 4.60 for Vulkan 1.2: buffer references, 64-bit integers, entry main */
};

enum {                      /* fnx_codegen_device.features */
       FNX_CODEGEN_F64 = 1, /* double arithmetic */
       FNX_CODEGEN_U8 = 2,  /* 8-bit loads and stores */
       FNX_CODEGEN_I64 = 4  /* 64-bit integer arithmetic (addresses need it in any case) */
};

enum { FNX_CODEGEN_ARGS_MAX = 2048 }; /* bytes of an argument block */

typedef struct fnx_codegen_source {
    uint32_t struct_size;
    uint32_t dialect;
    const char *text;      /* NUL-terminated */
    const char *entry;     /* name of the kernel function */
    uint32_t threads[3];   /* of a work-group */
    uint32_t shared_bytes; /* of work-group memory that it declares */
    uint32_t args_bytes;
    uint32_t reserved;
    uint64_t key[2]; /* hash of the text: with the device's own compiler version a key for caches of binaries */
} fnx_codegen_source;

typedef struct fnx_codegen_device {
    uint32_t struct_size;
    uint32_t dialect;
    uint32_t features;      /* FNX_CODEGEN_* */
    uint32_t max_threads;   /* of a work-group, 1024 at most are used */
    uint32_t max_shared;    /* bytes of work-group memory */
    uint32_t max_rounds;    /* of all loops of a thread together, before the device ends them unasked; 0: no limit */
    uint32_t max_groups[3]; /* of a launch */
    uint32_t reserved;
    void *user;
    const fnx_host *host; /* for error() and log() */

    /* Compiles. On failure returns a code other than FNX_E_DECLINED and leaves the compiler's words in `log`.
     * Threads: any. */
    int32_t (*compile)(void *user, const fnx_codegen_source *source, void **out_program, char *log, uint32_t log_bytes);
    /* After the last launch has completed. NULL-safe. */
    void (*release)(void *user, void *program);
    /* Enqueues. Copies `args` before it returns. */
    int32_t (*launch)(void *user, void *queue, void *program, const uint32_t groups[3], const void *args,
                      uint32_t args_bytes);
    /* Where kernels on this queue find its fnx_error_word. */
    uint64_t (*error_word)(void *user, void *queue);
} fnx_codegen_device;

/* ---- fornax.group/0 of such a device, argument for argument ------------------------------------------------------ */

int32_t fnx_codegen_capabilities(const fnx_codegen_device *device, fnx_group_caps *out);
int32_t fnx_codegen_prepare(const fnx_codegen_device *device, const fnx_group *group, void **out_handle,
                            fnx_decline *why);
int32_t fnx_codegen_workspace(void *handle, const fnx_launch *launch, uint64_t *out_bytes);
int32_t fnx_codegen_launch(void *handle, void *queue, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes);
void fnx_codegen_release(void *handle);

#endif
