/* Queues. Commands are recorded into batches, a batch is submitted when it is full or somebody waits, and retired, in
 * order, when the timeline says that it has run: then its part of the rings is free, and its downloads are handed on.
 *
 *     retired | first ... submitted ... | next: recorded now
 *
 * One lock per queue, in its timeline, lets event_done look from any thread. All queues share the device's VkQueue, so
 * a submission may only wait for what was submitted before it; that is why recording an event submits. */
#include "vulkan.h"

#include <string.h>

enum { ARGUMENT_BYTES = 1 << 20, STAGING_BYTES = 16 << 20 };

static vulkan_batch *batch_at(vulkan_queue *q, uint64_t number) { return &q->batch[number % VULKAN_BATCHES]; }

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Long work is no reason to give up, silence is: each timeout without progress of the timeline ends the device. */
static int32_t wait_for(vulkan_queue *q, uint64_t value) {
    vulkan_device *d = q->device;
    const VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &q->timeline->semaphore,
                                      .pValues = &value};
    uint64_t seen = 0, now = 0;
    for (;;) {
        VkResult result = d->vk.WaitSemaphores(d->handle, &info, d->timeout_ns);
        if (result == VK_SUCCESS) return FNX_OK;
        if (result != VK_TIMEOUT) return vulkan_device_failed(d, result, "vkWaitSemaphores");
        result = d->vk.GetSemaphoreCounterValue(d->handle, q->timeline->semaphore, &now);
        if (result) return vulkan_device_failed(d, result, "vkGetSemaphoreCounterValue");
        if (now >= value) return FNX_OK;
        if (now <= seen) return vulkan_device_lose(d, true, "it did not finish its work within the timeout");
        seen = now;
    }
}

static void retire(vulkan_queue *q) {
    vulkan_batch *b = batch_at(q, q->first);
    for (uint32_t i = 0; i < b->n_downloads; i++) memcpy(b->download[i].to, b->download[i].from, b->download[i].bytes);
    b->n_downloads = 0;
    q->arguments.tail = b->arguments_end, q->staging.tail = b->staging_end;
    q->first++;
}

static int32_t retire_oldest(vulkan_queue *q) {
    const int32_t code = wait_for(q, batch_at(q, q->first)->value);
    if (!code) retire(q);
    return code;
}

/* Never waits. */
static int32_t retire_what_has_run(vulkan_queue *q) {
    uint64_t now = 0;
    if (q->first == q->next) return FNX_OK;
    VkResult result = q->device->vk.GetSemaphoreCounterValue(q->device->handle, q->timeline->semaphore, &now);
    if (result) return vulkan_device_failed(q->device, result, "vkGetSemaphoreCounterValue");
    while (q->first < q->next && batch_at(q, q->first)->value <= now) retire(q);
    return FNX_OK;
}

bool vulkan_queue_idle(vulkan_queue *q) { return !q->recording && !retire_what_has_run(q) && q->first == q->next; }

/* ---- recording --------------------------------------------------------------------------------------------------- */

static int32_t begin(vulkan_queue *q) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    int32_t code = q->next - q->first == VULKAN_BATCHES ? retire_oldest(q) : FNX_OK;
    if (code) return code;
    vulkan_batch *b = batch_at(q, q->next);
    b->n_commands = b->n_waits = b->n_downloads = 0;
    VkResult result = q->device->vk.BeginCommandBuffer(b->commands, &info);
    if (result) return vulkan_device_failed(q->device, result, "vkBeginCommandBuffer");
    q->recording = true, q->bound = VK_NULL_HANDLE;
    return FNX_OK;
}

int32_t vulkan_queue_batch(vulkan_queue *q, vulkan_batch **out) {
    int32_t code = FNX_OK;
    const vulkan_batch *b = batch_at(q, q->next);
    if (q->recording && (b->n_commands >= VULKAN_BATCH_COMMANDS || b->n_downloads >= VULKAN_BATCH_DOWNLOADS))
        code = vulkan_queue_submit(q);
    if (!code && !q->recording) code = begin(q);
    *out = batch_at(q, q->next);
    return code;
}

int32_t vulkan_queue_reserve(vulkan_queue *q, vulkan_ring *r, uint64_t bytes, vulkan_batch **out,
                             uint64_t *out_offset) {
    int32_t code = r->memory ? FNX_OK : vulkan_memory_create(q->device, r->place, r->bytes, &r->memory);
    while (!code) {
        code = vulkan_queue_batch(q, out);
        if (code) break;
        *out_offset = vulkan_ring_take(r, bytes);
        if (*out_offset != UINT64_MAX) return FNX_OK;
        if (q->first == q->next) code = vulkan_queue_submit(q);
        if (!code) code = retire_oldest(q);
    }
    return code;
}

static void barrier(vulkan_queue *q, vulkan_batch *b, VkPipelineStageFlags stages, VkAccessFlags access) {
    const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                    .dstAccessMask = access};
    q->device->vk.CmdPipelineBarrier(b->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                                     stages, 0, 1, &memory, 0, NULL, 0, NULL);
}

void vulkan_queue_barrier(vulkan_queue *q, vulkan_batch *b) {
    barrier(q, b, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT);
    b->n_commands++;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

/* A batch that could not be submitted is gone, and what it would have done with it. */
int32_t vulkan_queue_submit(vulkan_queue *q) {
    static const VkPipelineStageFlags stages[VULKAN_BATCH_WAITS] =
        {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT};
    vulkan_device *d = q->device;
    if (!q->recording) return FNX_OK;
    vulkan_batch *b = batch_at(q, q->next);
    barrier(q, b, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
    q->recording = false;
    VkResult result = d->vk.EndCommandBuffer(b->commands);
    if (result) return vulkan_device_failed(d, result, "vkEndCommandBuffer");
    const uint64_t value = q->timeline->submitted + 1;
    const VkTimelineSemaphoreSubmitInfo times = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                 .waitSemaphoreValueCount = b->n_waits,
                                                 .pWaitSemaphoreValues = b->wait_value,
                                                 .signalSemaphoreValueCount = 1,
                                                 .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &times,
                               .waitSemaphoreCount = b->n_waits,
                               .pWaitSemaphores = b->wait,
                               .pWaitDstStageMask = stages,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &b->commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &q->timeline->semaphore};
    pthread_mutex_lock(&d->submit);
    result = d->vk.QueueSubmit(d->queue, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&d->submit);
    if (result) return vulkan_device_failed(d, result, "vkQueueSubmit");
    q->timeline->submitted = b->value = value;
    b->arguments_end = q->arguments.head, b->staging_end = q->staging.head;
    q->next++;
    return FNX_OK;
}

int32_t vulkan_queue_finish(vulkan_queue *q) {
    int32_t code = vulkan_queue_submit(q);
    while (!code && q->first < q->next) code = retire_oldest(q);
    return code;
}

int32_t vulkan_queue_flush(void *queue) {
    vulkan_queue *q = queue;
    pthread_mutex_lock(&q->timeline->lock);
    int32_t code = vulkan_device_check(q->device);
    if (!code) code = vulkan_queue_submit(q);
    pthread_mutex_unlock(&q->timeline->lock);
    return code;
}

int32_t vulkan_queue_sync(void *queue, fnx_error_word *out) {
    vulkan_queue *q = queue;
    fnx_error_word word = {0};
    char text[240];
    pthread_mutex_lock(&q->timeline->lock);
    word.code = vulkan_device_check(q->device);
    if (!word.code) word.code = vulkan_queue_finish(q);
    if (!word.code) {
        memcpy(&word, q->word->mapped, sizeof word);
        memset(q->word->mapped, 0, sizeof word);
    }
    pthread_mutex_unlock(&q->timeline->lock);
    if (vulkan_instance_complaint(q->device->instance, text, sizeof text)) {
        word = (fnx_error_word){0};
        word.code = vulkan_error(q->device->host, FNX_E_INTERNAL, "vulkan: validation: %s", text);
    }
    if (out) *out = word;
    return word.code;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static int32_t launch(vulkan_queue *q, VkPipeline pipeline, const uint32_t groups[3], const void *args,
                      uint32_t bytes) {
    vulkan_device *d = q->device;
    vulkan_batch *b;
    uint64_t offset;
    int32_t code = vulkan_device_check(d);
    if (!code) code = vulkan_queue_reserve(q, &q->arguments, bytes, &b, &offset);
    if (code) return code;
    memcpy(q->arguments.memory->mapped + offset, args, bytes);
    const uint64_t address = q->arguments.memory->address + offset;
    vulkan_queue_barrier(q, b);
    if (q->bound != pipeline) d->vk.CmdBindPipeline(b->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    q->bound = pipeline;
    d->vk.CmdPushConstants(b->commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof address, &address);
    d->vk.CmdDispatch(b->commands, groups[0], groups[1], groups[2]);
    return FNX_OK;
}

int32_t vulkan_launch(void *user, void *queue, void *program, const uint32_t groups[3], const void *args,
                      uint32_t args_bytes) {
    vulkan_device *d = user;
    vulkan_queue *q = queue;
    for (int k = 0; k < 3; k++) {
        if (!groups[k]) return FNX_OK;
        if (groups[k] > d->codegen.max_groups[k])
            return vulkan_error(d->host, FNX_E_INVALID, "vulkan: %u work-groups along axis %d; the limit is %u",
                                groups[k], k, d->codegen.max_groups[k]);
    }
    if (args_bytes > FNX_CODEGEN_ARGS_MAX)
        return vulkan_error(d->host, FNX_E_INVALID, "vulkan: an argument block of %u bytes; the limit is %d",
                            args_bytes, FNX_CODEGEN_ARGS_MAX);
    pthread_mutex_lock(&q->timeline->lock);
    const int32_t code = launch(q, ((const vulkan_program *)program)->pipeline, groups, args, args_bytes);
    pthread_mutex_unlock(&q->timeline->lock);
    return code;
}

uint64_t vulkan_error_word(void *user, void *queue) {
    (void)user;
    return ((const vulkan_queue *)queue)->word->address;
}

/* ---- events: a value of a timeline ------------------------------------------------------------------------------- */

typedef struct event {
    vulkan_device *device;
    vulkan_timeline *timeline;
    uint64_t value;
} event;

int32_t vulkan_event_record(void *queue, void **out_event) {
    vulkan_queue *q = queue;
    event *e = vulkan_alloc(q->device->host, sizeof *e);
    if (!e) return vulkan_error(q->device->host, FNX_E_NO_MEMORY, "vulkan: no host memory for an event");
    int32_t code = vulkan_queue_flush(q);
    *e = (event){q->device, q->timeline, q->timeline->submitted};
    if (code) vulkan_event_destroy(e);
    else *out_event = e;
    return code;
}

/* Downloads are handed on by the host, which the device cannot wait for; so here the host waits, if there are any. */
static int32_t wait_for_downloads(const event *e) {
    int32_t code = FNX_OK;
    pthread_mutex_lock(&e->timeline->lock);
    vulkan_queue *q = e->timeline->owner;
    for (uint64_t last = q ? q->next : 0; !code && last > q->first; last--) {
        const vulkan_batch *b = batch_at(q, last - 1);
        if (b->value > e->value || !b->n_downloads) continue;
        while (!code && q->first < last) code = retire_oldest(q);
    }
    pthread_mutex_unlock(&e->timeline->lock);
    return code;
}

int32_t vulkan_event_wait(void *queue, void *event_) {
    vulkan_queue *q = queue;
    const event *e = event_;
    vulkan_batch *b;
    if (e->timeline == q->timeline) return FNX_OK;
    int32_t code = vulkan_device_check(q->device);
    if (!code) code = wait_for_downloads(e);
    if (code) return code;
    pthread_mutex_lock(&q->timeline->lock);
    if (q->recording && batch_at(q, q->next)->n_waits == VULKAN_BATCH_WAITS) code = vulkan_queue_submit(q);
    if (!code) code = vulkan_queue_batch(q, &b);
    if (!code) {
        b->wait[b->n_waits] = e->timeline->semaphore, b->wait_value[b->n_waits] = e->value;
        b->n_waits++;
    }
    pthread_mutex_unlock(&q->timeline->lock);
    return code;
}

/* Done means that downloads have arrived, too. While somebody else holds the queue, perhaps waiting, it is not done. */
int32_t vulkan_event_done(void *event_, uint32_t *out_done) {
    const event *e = event_;
    uint64_t now = 0;
    *out_done = 0;
    int32_t code = vulkan_device_check(e->device);
    if (code) return code;
    VkResult result = e->device->vk.GetSemaphoreCounterValue(e->device->handle, e->timeline->semaphore, &now);
    if (result) return vulkan_device_failed(e->device, result, "vkGetSemaphoreCounterValue");
    if (now < e->value || pthread_mutex_trylock(&e->timeline->lock)) return FNX_OK;
    if (e->timeline->owner) code = retire_what_has_run(e->timeline->owner);
    pthread_mutex_unlock(&e->timeline->lock);
    *out_done = !code;
    return code;
}

void vulkan_event_destroy(void *event_) {
    event *e = event_;
    if (e) e->device->host->free(e);
}

/* ---- making and ending ------------------------------------------------------------------------------------------- */

static VkResult make_timeline(vulkan_device *d, vulkan_timeline **out) {
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    vulkan_timeline *t = vulkan_alloc(d->host, sizeof *t);
    if (!t) return VK_ERROR_OUT_OF_HOST_MEMORY;
    const VkResult result = d->vk.CreateSemaphore(d->handle, &info, NULL, &t->semaphore);
    if (result) d->host->free(t);
    else pthread_mutex_init(&t->lock, NULL), *out = t;
    return result;
}

/* An idle one or a new one. `submitted` goes on: events of the queue that had it before stay true. */
static VkResult take_timeline(vulkan_device *d, vulkan_queue *q) {
    VkResult result = VK_SUCCESS;
    pthread_mutex_lock(&d->lock);
    vulkan_timeline *t = d->timelines;
    while (t && t->owner) t = t->next;
    if (!t && !(result = make_timeline(d, &t))) t->next = d->timelines, d->timelines = t;
    if (!result) t->owner = q, q->timeline = t;
    pthread_mutex_unlock(&d->lock);
    return result;
}

static int32_t make(vulkan_queue *q) {
    vulkan_device *d = q->device;
    VkCommandBuffer commands[VULKAN_BATCHES];
    int32_t code = vulkan_memory_create(d, VULKAN_PLACE_HOST, sizeof(fnx_error_word), &q->word);
    if (code) return code;
    memset(q->word->mapped, 0, sizeof(fnx_error_word));
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT |
                                                   VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = d->family};
    VkResult result = d->vk.CreateCommandPool(d->handle, &pool, NULL, &q->pool);
    if (result) return q->pool = VK_NULL_HANDLE, vulkan_device_failed(d, result, "vkCreateCommandPool");
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = q->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = VULKAN_BATCHES};
    result = d->vk.AllocateCommandBuffers(d->handle, &info, commands);
    if (result) return vulkan_device_failed(d, result, "vkAllocateCommandBuffers");
    for (int i = 0; i < VULKAN_BATCHES; i++) q->batch[i].commands = commands[i];
    result = take_timeline(d, q);
    return result ? vulkan_device_failed(d, result, "vkCreateSemaphore") : FNX_OK;
}

int32_t vulkan_queue_create(void *device, void **out_queue) {
    vulkan_device *d = device;
    int32_t code = vulkan_device_check(d);
    if (code) return code;
    vulkan_queue *q = vulkan_alloc(d->host, sizeof *q);
    if (!q) return vulkan_error(d->host, FNX_E_NO_MEMORY, "vulkan: no host memory for a queue");
    q->device = d;
    q->arguments = (vulkan_ring){.place = VULKAN_PLACE_ARGUMENT, .bytes = ARGUMENT_BYTES};
    q->staging = (vulkan_ring){.place = VULKAN_PLACE_HOST, .bytes = STAGING_BYTES};
    code = make(q);
    if (code) vulkan_queue_destroy(q);
    else *out_queue = q;
    return code;
}

void vulkan_queue_destroy(void *queue) {
    vulkan_queue *q = queue;
    if (!q) return;
    vulkan_device *d = q->device;
    if (q->timeline) {
        pthread_mutex_lock(&q->timeline->lock);
        if (!atomic_load(&d->lost)) (void)vulkan_queue_finish(q);
        pthread_mutex_unlock(&q->timeline->lock);
        pthread_mutex_lock(&d->lock);
        q->timeline->owner = NULL;
        pthread_mutex_unlock(&d->lock);
    }
    if (q->pool && !atomic_load(&d->hung)) d->vk.DestroyCommandPool(d->handle, q->pool, NULL);
    vulkan_memory_destroy(d, q->word);
    vulkan_memory_destroy(d, q->arguments.memory);
    vulkan_memory_destroy(d, q->staging.memory);
    d->host->free(q);
}
