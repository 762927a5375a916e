/* Copies and fills. Bytes of the host go through a staging ring, except where the device's memory is the host's, too,
 * and nothing is under way: then they are copied at once. An upload has read its source when it returns; a download
 * arrives when its batch is retired. */
#include "vulkan.h"

#include <string.h>

enum { CHUNK = 4 << 20, PATTERN_CHUNK = 64 << 10, PATTERN_REGIONS = 64 };

typedef struct range { /* of device memory */
    const vulkan_memory *memory;
    uint64_t offset;
} range;

static bool find_range(const fnx_binding *at, uint64_t bytes, range *out) {
    const vulkan_memory *m = at->memory;
    out->memory = m, out->offset = at->address - m->address;
    return out->offset <= m->bytes && bytes <= m->bytes - out->offset;
}

static void *host_pointer(const fnx_binding *at) { return (void *)(uintptr_t)at->address; }

static void copy_buffer(vulkan_queue *q, vulkan_batch *b, range from, range to, uint64_t bytes) {
    const VkBufferCopy region = {from.offset, to.offset, bytes};
    vulkan_queue_barrier(q, b);
    q->device->vk.CmdCopyBuffer(b->commands, from.memory->buffer, to.memory->buffer, 1, &region);
}

/* ---- host and device --------------------------------------------------------------------------------------------- */

/* A download that has not arrived yet may be what an upload reads. */
static bool awaited(const vulkan_queue *q, const char *from, uint64_t bytes) {
    for (uint64_t k = q->first; k < q->next + q->recording; k++) {
        const vulkan_batch *b = &q->batch[k % VULKAN_BATCHES];
        for (uint32_t i = 0; i < b->n_downloads; i++) {
            const char *to = b->download[i].to;
            if (to < from + bytes && from < to + b->download[i].bytes) return true;
        }
    }
    return false;
}

static bool direct(const vulkan_queue *q, range r) { return r.memory->mapped && !q->device->staging; }

static int32_t upload(vulkan_queue *q, range to, const char *from, uint64_t bytes) {
    int32_t code = awaited(q, from, bytes) ? vulkan_queue_finish(q) : FNX_OK;
    if (!code && direct(q, to) && vulkan_queue_idle(q)) {
        memcpy(to.memory->mapped + to.offset, from, bytes);
        return FNX_OK;
    }
    while (!code && bytes) {
        const uint64_t n = bytes < CHUNK ? bytes : CHUNK;
        vulkan_batch *b;
        uint64_t offset;
        code = vulkan_queue_reserve(q, &q->staging, n, &b, &offset);
        if (code) break;
        memcpy(q->staging.memory->mapped + offset, from, n);
        copy_buffer(q, b, (range){q->staging.memory, offset}, to, n);
        if (n == CHUNK) code = vulkan_queue_submit(q); /* runs while the next one is filled */
        from += n, to.offset += n, bytes -= n;
    }
    return code;
}

static int32_t download(vulkan_queue *q, char *to, range from, uint64_t bytes) {
    if (direct(q, from)) {
        const int32_t code = vulkan_queue_finish(q);
        if (!code) memcpy(to, from.memory->mapped + from.offset, bytes);
        return code;
    }
    int32_t code = FNX_OK;
    while (!code && bytes) {
        const uint64_t n = bytes < CHUNK ? bytes : CHUNK;
        vulkan_batch *b;
        uint64_t offset;
        code = vulkan_queue_reserve(q, &q->staging, n, &b, &offset);
        if (code) break;
        copy_buffer(q, b, from, (range){q->staging.memory, offset}, n);
        b->download[b->n_downloads++] = (vulkan_download){to, q->staging.memory->mapped + offset, n};
        if (n == CHUNK) code = vulkan_queue_submit(q);
        to += n, from.offset += n, bytes -= n;
    }
    return code;
}

/* ---- within the device ------------------------------------------------------------------------------------------- */

/* Overlapping: piece by piece through the ring, from the end if it moves up. */
static int32_t move(vulkan_queue *q, range to, range from, uint64_t bytes) {
    const bool up = to.offset > from.offset;
    int32_t code = FNX_OK;
    for (uint64_t done = 0; !code && done < bytes;) {
        const uint64_t n = bytes - done < CHUNK ? bytes - done : CHUNK, at = up ? bytes - done - n : done;
        vulkan_batch *b;
        uint64_t offset;
        code = vulkan_queue_reserve(q, &q->staging, n, &b, &offset);
        if (code) break;
        const range between = {q->staging.memory, offset};
        copy_buffer(q, b, (range){from.memory, from.offset + at}, between, n);
        copy_buffer(q, b, between, (range){to.memory, to.offset + at}, n);
        done += n;
    }
    return code;
}

static int32_t copy_within(vulkan_queue *q, range to, range from, uint64_t bytes) {
    vulkan_batch *b;
    if (to.memory == from.memory && to.offset == from.offset) return FNX_OK;
    if (to.memory == from.memory && to.offset < from.offset + bytes && from.offset < to.offset + bytes)
        return move(q, to, from, bytes);
    const int32_t code = vulkan_queue_batch(q, &b);
    if (!code) copy_buffer(q, b, from, to, bytes);
    return code;
}

static int32_t copy(vulkan_queue *q, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    range target = {0}, source = {0};
    int32_t code = vulkan_device_check(q->device);
    if (code) return code;
    if ((to->memory && !find_range(to, bytes, &target)) || (from->memory && !find_range(from, bytes, &source)))
        return vulkan_error(q->device->host, FNX_E_INVALID, "vulkan: a copy of %llu bytes beyond its allocation",
                            (unsigned long long)bytes);
    if (to->memory && from->memory) return copy_within(q, target, source, bytes);
    if (to->memory) return upload(q, target, host_pointer(from), bytes);
    if (from->memory) return download(q, host_pointer(to), source, bytes);
    code = vulkan_queue_finish(q);
    if (!code) memmove(host_pointer(to), host_pointer(from), bytes);
    return code;
}

int32_t vulkan_copy(void *queue, const fnx_binding *to, const fnx_binding *from, uint64_t bytes) {
    vulkan_queue *q = queue;
    if (!bytes) return FNX_OK;
    pthread_mutex_lock(&q->timeline->lock);
    const int32_t code = copy(q, to, from, bytes);
    pthread_mutex_unlock(&q->timeline->lock);
    return code;
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

/* What vkCmdFillBuffer cannot do: copies of a staged piece of the pattern, many by one command. */
static int32_t fill_pieces(vulkan_queue *q, range to, uint64_t bytes, uint64_t pattern) {
    int32_t code = FNX_OK;
    while (!code && bytes) {
        const uint64_t piece = bytes < PATTERN_CHUNK ? (bytes + 7) & ~UINT64_C(7) : PATTERN_CHUNK;
        VkBufferCopy region[PATTERN_REGIONS];
        uint32_t n = 0;
        vulkan_batch *b;
        uint64_t offset;
        code = vulkan_queue_reserve(q, &q->staging, piece, &b, &offset);
        if (code) break;
        for (uint64_t i = 0; i < piece; i += 8) memcpy(q->staging.memory->mapped + offset + i, &pattern, 8);
        for (; n < PATTERN_REGIONS && bytes; n++) {
            const uint64_t some = bytes < piece ? bytes : piece;
            region[n] = (VkBufferCopy){offset, to.offset, some};
            to.offset += some, bytes -= some;
        }
        vulkan_queue_barrier(q, b);
        q->device->vk.CmdCopyBuffer(b->commands, q->staging.memory->buffer, to.memory->buffer, n, region);
    }
    return code;
}

static int32_t fill(vulkan_queue *q, range to, uint64_t bytes, uint64_t pattern) {
    const uint64_t words = bytes & ~UINT64_C(3);
    vulkan_batch *b;
    int32_t code = vulkan_device_check(q->device);
    if (code) return code;
    if (to.offset % 4 || (uint32_t)pattern != pattern >> 32) return fill_pieces(q, to, bytes, pattern);
    if (words) {
        code = vulkan_queue_batch(q, &b);
        if (code) return code;
        vulkan_queue_barrier(q, b);
        q->device->vk.CmdFillBuffer(b->commands, to.memory->buffer, to.offset, words, (uint32_t)pattern);
    }
    to.offset += words;
    return fill_pieces(q, to, bytes - words, pattern);
}

int32_t vulkan_fill(void *queue, const fnx_binding *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    vulkan_queue *q = queue;
    const bool known = pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8;
    range target;
    if (!known || bytes % pattern_bytes)
        return vulkan_error(q->device->host, FNX_E_INVALID,
                            "vulkan: a fill has a pattern of 1, 2, 4 or 8 bytes that divides its size");
    if (!bytes) return FNX_OK;
    if (!to->memory || !find_range(to, bytes, &target))
        return vulkan_error(q->device->host, FNX_E_INVALID, "vulkan: a fill of %llu bytes beyond its allocation",
                            (unsigned long long)bytes);
    if (pattern_bytes < 8) pattern &= (UINT64_C(1) << 8 * pattern_bytes) - 1;
    for (uint32_t n = pattern_bytes; n < 8; n *= 2) pattern |= pattern << 8 * n;
    pthread_mutex_lock(&q->timeline->lock);
    const int32_t code = fill(q, target, bytes, pattern);
    pthread_mutex_unlock(&q->timeline->lock);
    return code;
}
