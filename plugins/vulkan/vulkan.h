/* The vulkan plugin's own types.
 *
 *   loader.c    libvulkan.so.1, found at run time; tables of its functions
 *   instance.c  instances, validation, and which physical device an address names
 *   device.c    what a device must have, opening and closing it, and what happens when it is lost
 *   memory.c    allocations and the rings that arguments and staged bytes live in
 *   queue.c     recorded batches on a timeline: launches, flush, sync, events
 *   transfer.c  copies and fills
 *   compile.c   GLSL to pipelines
 *   plugin.c    descriptor, device table, fornax.group/0 by way of libfornax-kernel.a
 *
 * Memory is bound by address only: a kernel's one push constant is the 8-byte address of its argument block, which
 * holds the addresses of everything else. There are no descriptor sets. All queues of a device share one VkQueue. */
#ifndef VULKAN_VULKAN_H
#define VULKAN_VULKAN_H

#define VK_NO_PROTOTYPES
#include <fornax-plugin/kernel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <vulkan/vulkan.h>

/* ---- loader.c ---------------------------------------------------------------------------------------------------- */

#define VULKAN_GLOBAL_CALLS(X) X(CreateInstance) X(EnumerateInstanceLayerProperties) X(EnumerateInstanceVersion)
#define VULKAN_INSTANCE_CALLS(X) \
    X(CreateDevice) \
    X(DestroyInstance) \
    X(EnumerateDeviceExtensionProperties) \
    X(EnumeratePhysicalDevices) \
    X(GetDeviceProcAddr) \
    X(GetPhysicalDeviceFeatures2) \
    X(GetPhysicalDeviceMemoryProperties) \
    X(GetPhysicalDeviceProperties) \
    X(GetPhysicalDeviceProperties2) \
    X(GetPhysicalDeviceQueueFamilyProperties)
#define VULKAN_DEVICE_CALLS(X) \
    X(AllocateCommandBuffers) \
    X(AllocateMemory) \
    X(BeginCommandBuffer) \
    X(BindBufferMemory) \
    X(CmdBindPipeline) \
    X(CmdCopyBuffer) \
    X(CmdDispatch) \
    X(CmdFillBuffer) \
    X(CmdPipelineBarrier) \
    X(CmdPushConstants) \
    X(CreateBuffer) \
    X(CreateCommandPool) \
    X(CreateComputePipelines) \
    X(CreatePipelineCache) \
    X(CreatePipelineLayout) \
    X(CreateSemaphore) \
    X(CreateShaderModule) \
    X(DestroyBuffer) \
    X(DestroyCommandPool) \
    X(DestroyDevice) \
    X(DestroyPipeline) \
    X(DestroyPipelineCache) \
    X(DestroyPipelineLayout) \
    X(DestroySemaphore) \
    X(DestroyShaderModule) \
    X(EndCommandBuffer) \
    X(FreeMemory) \
    X(GetBufferDeviceAddress) \
    X(GetBufferMemoryRequirements) \
    X(GetDeviceQueue) \
    X(GetSemaphoreCounterValue) \
    X(MapMemory) \
    X(QueueSubmit) \
    X(WaitSemaphores)

#define VULKAN_CALL(name) PFN_vk##name name;
typedef struct vulkan_global_calls {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    VULKAN_GLOBAL_CALLS(VULKAN_CALL)
} vulkan_global_calls;
typedef struct vulkan_instance_calls {
    VULKAN_INSTANCE_CALLS(VULKAN_CALL)
} vulkan_instance_calls;
typedef struct vulkan_device_calls {
    VULKAN_DEVICE_CALLS(VULKAN_CALL)
} vulkan_device_calls;
#undef VULKAN_CALL

/* Each returns NULL, or why not: a name or a sentence that lives as long as the process or, of the first, until the
 * thread's next call of dlopen. The library stays loaded: drivers have threads and exit handlers. */
const char *vulkan_load_global(vulkan_global_calls *out);
const char *vulkan_load_instance(const vulkan_global_calls *global, VkInstance instance, vulkan_instance_calls *out);
const char *vulkan_load_device(const vulkan_instance_calls *calls, VkDevice device, vulkan_device_calls *out);

/* ---- instance.c -------------------------------------------------------------------------------------------------- */

enum { VULKAN_MAX_DEVICES = 16 };

typedef struct vulkan_instance { /* one of each kind is enough: made at first use, kept until shutdown */
    const fnx_host *host;
    const vulkan_global_calls *global;
    VkInstance handle; /* VK_NULL_HANDLE: not made */
    vulkan_instance_calls vk;
    bool validation;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical[VULKAN_MAX_DEVICES]; /* in the driver's order */
    uint32_t n_physical;
    atomic_bool hung;     /* a device of it hangs: it is never destroyed */
    pthread_mutex_t lock; /* of what follows */
    bool complained;
    char complaint[240]; /* the first message of the validation layer that no sync has reported */
} vulkan_instance;

typedef struct vulkan_context { /* of the plugin */
    const fnx_host *host;
    pthread_mutex_t lock; /* while an instance is made */
    vulkan_global_calls global;
    bool loaded;
    vulkan_instance instance[2]; /* without and with validation */
} vulkan_context;

/* Errors: FNX_E_NOT_FOUND "vulkan: unavailable because ...", also for a missing validation layer. */
int32_t vulkan_instance_get(vulkan_context *c, bool validation, vulkan_instance **out);
void vulkan_instance_destroy(vulkan_instance *i);

/* The number of the physical device that is meant: "" (the first), a number, a UUID's or a name's beginning. */
int32_t vulkan_instance_find(const vulkan_instance *i, const char *address, uint32_t *out);

/* Takes the pending complaint; false: there is none. */
bool vulkan_instance_complaint(vulkan_instance *i, char *text, size_t size);

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

typedef struct vulkan_timeline { /* outlives its queue, since events and other queues' submissions may name it */
    struct vulkan_timeline *next;
    VkSemaphore semaphore;
    pthread_mutex_t lock;       /* of the queue */
    struct vulkan_queue *owner; /* NULL: idle, may be given to a new queue */
    uint64_t submitted;         /* value of the last submission */
} vulkan_timeline;

typedef struct vulkan_device {
    fnx_codegen_device codegen; /* first: what fnx_codegen_* and tests get */
    bool llvmpipe;              /* Mesa's driver for CPUs */
    const fnx_host *host;
    vulkan_instance *instance;
    uint32_t number; /* of the physical device */
    VkPhysicalDevice physical;
    VkDevice handle;
    vulkan_device_calls vk;
    VkPhysicalDeviceMemoryProperties memory;
    fnx_device_info info;
    uint64_t max_allocation; /* bytes */
    bool staging;            /* option: never use mapped device memory */
    uint64_t timeout_ns;     /* option: a wait without progress of this length means that the device is lost; 60 s,
                                of a CPU 600 */

    uint32_t family;
    VkQueue queue;
    pthread_mutex_t submit; /* of `queue` */
    VkPipelineLayout layout;
    VkPipelineCache cache;

    pthread_mutex_t lock; /* of `timelines` and `lost_text` */
    vulkan_timeline *timelines;
    atomic_bool lost;
    atomic_bool hung; /* lost by timeout: the hardware may still write, so nothing may be destroyed */
    char lost_text[160];
} vulkan_device;

int32_t vulkan_device_open(vulkan_context *c, const char *address, vulkan_device **out);
void vulkan_device_close(vulkan_device *d);

/* The error of a lost device, or FNX_OK. */
int32_t vulkan_device_check(vulkan_device *d);
/* From now on every call fails. Returns FNX_E_DEVICE_LOST, with `why` in this thread's error. */
int32_t vulkan_device_lose(vulkan_device *d, bool hung, const char *why);
/* The error of a result that is not VK_SUCCESS. */
int32_t vulkan_device_failed(vulkan_device *d, VkResult result, const char *what);

/* Zeros, from the host, which counts them; or NULL. Goes back by host->free. */
void *vulkan_alloc(const fnx_host *host, size_t bytes);

int32_t vulkan_error(const fnx_host *host, int32_t code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

typedef struct vulkan_memory {
    VkBuffer buffer;
    VkDeviceMemory handle;
    uint64_t address, bytes;
    char *mapped; /* or NULL */
} vulkan_memory;

typedef enum vulkan_place {
    VULKAN_PLACE_DEVICE,  /* tensors: mapped only where the device shares cached memory with the host */
    VULKAN_PLACE_HOST,    /* mapped, coherent, cached if possible: staging, error words */
    VULKAN_PLACE_ARGUMENT /* mapped, coherent, close to the device if possible: written once, read by kernels */
} vulkan_place;

/* Errors: FNX_E_NO_MEMORY with the limit that was met. Threads: any. */
int32_t vulkan_memory_create(vulkan_device *d, vulkan_place place, uint64_t bytes, vulkan_memory **out);
void vulkan_memory_destroy(vulkan_device *d, vulkan_memory *m);

typedef struct vulkan_ring { /* head and tail count bytes and only grow; memory is made at first use */
    vulkan_place place;
    uint64_t bytes, head, tail;
    vulkan_memory *memory;
} vulkan_ring;

/* The offset of `bytes` (a quarter of the ring at most) in its memory; UINT64_MAX: the ring is full. */
uint64_t vulkan_ring_take(vulkan_ring *r, uint64_t bytes);

/* ---- queue.c ----------------------------------------------------------------------------------------------------- */

enum { VULKAN_BATCHES = 16, VULKAN_BATCH_COMMANDS = 256, VULKAN_BATCH_DOWNLOADS = 64, VULKAN_BATCH_WAITS = 8 };

typedef struct vulkan_download { /* bytes that a batch stages, to be handed on once it has run */
    void *to;
    const void *from;
    uint64_t bytes;
} vulkan_download;

typedef struct vulkan_batch { /* one submission */
    VkCommandBuffer commands;
    uint64_t value; /* of the timeline when it has run */
    uint32_t n_commands, n_waits, n_downloads;
    VkSemaphore wait[VULKAN_BATCH_WAITS];
    uint64_t wait_value[VULKAN_BATCH_WAITS];
    uint64_t arguments_end, staging_end; /* heads of the rings when it was submitted */
    vulkan_download download[VULKAN_BATCH_DOWNLOADS];
} vulkan_batch;

typedef struct vulkan_queue {
    vulkan_device *device;
    vulkan_timeline *timeline;
    VkCommandPool pool;
    uint64_t first, next; /* submitted and not retired: first to next - 1; `next` is recorded or will be */
    bool recording;
    VkPipeline bound; /* in the batch that is recorded */
    vulkan_memory *word;
    vulkan_ring arguments, staging;
    vulkan_batch batch[VULKAN_BATCHES];
} vulkan_queue;

/* What transfer.c needs; the timeline's lock is held, and the device was checked. */

/* A batch that takes one more command and one more download. */
int32_t vulkan_queue_batch(vulkan_queue *q, vulkan_batch **out);
/* The same, with room in a ring that stays until the batch has run. */
int32_t vulkan_queue_reserve(vulkan_queue *q, vulkan_ring *r, uint64_t bytes, vulkan_batch **out, uint64_t *out_offset);
/* Before each command: what was recorded or submitted earlier is over and visible. */
void vulkan_queue_barrier(vulkan_queue *q, vulkan_batch *b);
int32_t vulkan_queue_submit(vulkan_queue *q);
/* Submits and waits for everything; downloads have arrived then. */
int32_t vulkan_queue_finish(vulkan_queue *q);
/* Never waits: nothing is recorded, and all that was submitted has run. */
bool vulkan_queue_idle(vulkan_queue *q);

/* Entries of the device table and of fnx_codegen_device. */
int32_t vulkan_queue_create(void *device, void **out_queue);
void vulkan_queue_destroy(void *queue);
int32_t vulkan_queue_flush(void *queue);
int32_t vulkan_queue_sync(void *queue, fnx_error_word *out);
int32_t vulkan_event_record(void *queue, void **out_event);
int32_t vulkan_event_wait(void *queue, void *event);
int32_t vulkan_event_done(void *event, uint32_t *out_done);
void vulkan_event_destroy(void *event);
int32_t vulkan_launch(void *user, void *queue, void *program, const uint32_t groups[3], const void *args,
                      uint32_t args_bytes);
uint64_t vulkan_error_word(void *user, void *queue);

/* ---- transfer.c -------------------------------------------------------------------------------------------------- */

int32_t vulkan_copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes);
int32_t vulkan_fill(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes);

/* ---- compile.c --------------------------------------------------------------------------------------------------- */

typedef struct vulkan_program {
    VkPipeline pipeline;
} vulkan_program;

int32_t vulkan_compile(void *user, const fnx_codegen_source *source, void **out_program, char *log, uint32_t log_bytes);
void vulkan_release(void *user, void *program);

#endif
