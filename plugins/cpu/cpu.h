/* The cpu plugin's own types.
 *
 *   plugin.c   descriptor, device table, group interface: which part runs a group
 *   queue.c    the executor thread: everything runs there, in order
 *   vm*.c      the strip-mined vector machine for elementwise groups
 *   kernels/   everything else: matmul, convolution, pooling, reductions, indexes, layouts
 *
 * One executor thread per device issues all OpenMP and oneDNN work: a team of threads opened from a second thread runs
 * at half its speed. Launches only copy their arguments into its ring. */
#ifndef CPU_CPU_H
#define CPU_CPU_H

#include <fornax-plugin/ops.h>
#include <fornax-plugin/plugin.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

typedef enum cpu_isa { CPU_ISA_BASE, CPU_ISA_AVX2, CPU_ISA_AVX512, CPU_ISAS } cpu_isa;

typedef struct cpu_queue cpu_queue;

typedef struct cpu_device {
    int threads;
    cpu_isa isa;
    cpu_queue *queue;                 /* all queues of the host are this one */
    struct cpu_kernel_state *kernels; /* kernels/conv.c: made by the executor at first use */
} cpu_device;

extern const fnx_host *cpu_host;

/* What a run needs to say that an element was refused. */
typedef struct cpu_task {
    cpu_device *device;
    fnx_error_word *error;
    uint32_t site;
} cpu_task;

/* The first failure wins. Any thread. */
void cpu_refuse(const cpu_task *t, int32_t code, uint32_t node, int64_t index, int64_t limit);

/* One way to run groups. `prepare` may run on any thread, `run` on the executor. */
typedef struct cpu_engine {
    int32_t (*prepare)(cpu_device *d, const fnx_group *g, void **out_state, fnx_decline *why);
    uint64_t (*workspace)(const void *state, const fnx_launch *l); /* NULL: none */
    void (*run)(void *state, const cpu_task *t, const fnx_launch *l);
    void (*release)(void *state);
} cpu_engine;

extern const cpu_engine cpu_vm;               /* vm.c: elementwise groups */
extern const cpu_engine cpu_kernels;          /* kernels/kernel.c: groups of one node with any other anchor */
extern const fnx_layout_interface cpu_layout; /* kernels/layout.c */
void cpu_kernels_close(cpu_device *d);        /* kernels/conv.c; after the executor has ended */

typedef struct cpu_handle {
    const cpu_engine *engine;
    cpu_device *device;
    void *state;
    uint32_t n_sizes, n_strides, n_bindings, n_scalars;
} cpu_handle;

/* ---- queue.c ----------------------------------------------------------------------------------------------------- */

cpu_queue *cpu_queue_create(cpu_device *d); /* NULL: no memory or no thread */
void cpu_queue_destroy(cpu_queue *q);
int32_t cpu_queue_launch(cpu_queue *q, cpu_handle *h, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes);
int32_t cpu_queue_copy(cpu_queue *q, void *to, const void *from, uint64_t bytes);
int32_t cpu_queue_fill(cpu_queue *q, void *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes);
int32_t cpu_queue_sync(cpu_queue *q, fnx_error_word *out);
void cpu_queue_release(cpu_queue *q, cpu_handle *h); /* after what was launched before */

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Threads for work that takes one thread about `ns` nanoseconds: one below what a team costs, or while a neighbour
 * keeps our threads waiting. Called on the executor. */
int cpu_team(const cpu_device *device, double ns);

/* Teams that libraries open on this thread have this many members from now on. */
void cpu_set_team(int threads);

/* Runs body over tasks [0, n), cut into one range per thread, if `ns` (of one thread, for all) is worth a team; else as
 * one range on this thread. `thread` is below device->threads. Called on the executor. */
typedef void (*cpu_body)(void *arg, int thread, int64_t from, int64_t to);
void cpu_parallel(cpu_device *device, double ns, int64_t n, cpu_body body, void *arg);

/* ---- small things ------------------------------------------------------------------------------------------------ */

int32_t cpu_decline(fnx_decline *why, uint32_t reason, uint32_t node, uint32_t value, const char *text);
#endif
