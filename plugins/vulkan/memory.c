/* Allocations: one buffer and one piece of memory each, used by its address. The host's pool gives parts of them away.
 *
 * Which type of memory is a matter of points: what a place needs, what it likes, what it would rather leave alone. */
#include "vulkan.h"

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    SHARED = LOCAL | VISIBLE | COHERENT | CACHED /* one memory for both: the host reads and writes at full speed */
};

enum { RING_ALIGN = 64, BUFFER_ALIGN = 16 };

static int32_t points(vulkan_place place, uint32_t flags) {
    if (flags & ~(uint32_t)SHARED) return -1; /* protected, lazy and other special kinds */
    switch (place) {
    case VULKAN_PLACE_DEVICE: /* the window through which a host sees a card's memory may be small: keep it free */
        return !(flags & LOCAL) ? -1 : flags == SHARED ? 3 : !(flags & VISIBLE) ? 2 : 1;
    case VULKAN_PLACE_HOST: return ~flags & (VISIBLE | COHERENT) ? -1 : flags & CACHED ? 2 : 1;
    case VULKAN_PLACE_ARGUMENT: return ~flags & (VISIBLE | COHERENT) ? -1 : flags & LOCAL ? 2 : 1;
    }
    return -1;
}

static int32_t find_type(const vulkan_device *d, vulkan_place place, uint32_t allowed) {
    int32_t best = -1, best_points = -1;
    for (uint32_t k = 0; k < d->memory.memoryTypeCount; k++) {
        const int32_t p = allowed >> k & 1 ? points(place, d->memory.memoryTypes[k].propertyFlags) : -1;
        if (p > best_points) best = (int32_t)k, best_points = p;
    }
    return best;
}

static int32_t refuse_size(vulkan_device *d, uint64_t bytes) {
    return vulkan_error(d->host, FNX_E_NO_MEMORY,
                        "vulkan: device %u: no memory for an allocation of %llu bytes; the driver's limit for one is "
                        "%llu",
                        d->number, (unsigned long long)bytes, (unsigned long long)d->max_allocation);
}

static int32_t fill_in(vulkan_device *d, vulkan_place place, uint64_t bytes, vulkan_memory *m) {
    const VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = m->bytes,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                                VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements need;
    VkResult result = d->vk.CreateBuffer(d->handle, &buffer, NULL, &m->buffer);
    if (result) return m->buffer = VK_NULL_HANDLE, vulkan_device_failed(d, result, "vkCreateBuffer");
    d->vk.GetBufferMemoryRequirements(d->handle, m->buffer, &need);
    if (need.size > d->max_allocation) return refuse_size(d, bytes);
    const int32_t type = find_type(d, place, need.memoryTypeBits);
    if (type < 0) return vulkan_error(d->host, FNX_E_UNSUPPORTED, "vulkan: device %u has no fitting memory", d->number);
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &flags,
                                         .allocationSize = need.size,
                                         .memoryTypeIndex = (uint32_t)type};
    result = d->vk.AllocateMemory(d->handle, &memory, NULL, &m->handle);
    if (result) {
        m->handle = VK_NULL_HANDLE;
        if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY)
            return vulkan_device_failed(d, result, "vkAllocateMemory");
        return vulkan_error(d->host, FNX_E_NO_MEMORY, "vulkan: device %u: no memory for an allocation of %llu bytes",
                            d->number, (unsigned long long)bytes);
    }
    result = d->vk.BindBufferMemory(d->handle, m->buffer, m->handle, 0);
    const uint32_t properties = d->memory.memoryTypes[type].propertyFlags;
    if (!result && (place != VULKAN_PLACE_DEVICE || properties == SHARED)) {
        void *at = NULL;
        result = d->vk.MapMemory(d->handle, m->handle, 0, VK_WHOLE_SIZE, 0, &at);
        m->mapped = at;
    }
    if (result) return vulkan_device_failed(d, result, "binding memory");
    const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                               .buffer = m->buffer};
    m->address = d->vk.GetBufferDeviceAddress(d->handle, &address);
    return FNX_OK;
}

int32_t vulkan_memory_create(vulkan_device *d, vulkan_place place, uint64_t bytes, vulkan_memory **out) {
    int32_t code = vulkan_device_check(d);
    if (code) return code;
    if (bytes > d->max_allocation || bytes > INT64_MAX) return refuse_size(d, bytes);
    vulkan_memory *m = vulkan_alloc(d->host, sizeof *m);
    if (!m) return vulkan_error(d->host, FNX_E_NO_MEMORY, "vulkan: no host memory for an allocation's record");
    m->bytes = bytes ? (bytes + BUFFER_ALIGN - 1) & ~(uint64_t)(BUFFER_ALIGN - 1) : BUFFER_ALIGN;
    code = fill_in(d, place, bytes, m);
    if (code) vulkan_memory_destroy(d, m);
    else *out = m;
    return code;
}

void vulkan_memory_destroy(vulkan_device *d, vulkan_memory *m) {
    if (!m) return;
    if (!atomic_load(&d->hung)) {
        if (m->buffer) d->vk.DestroyBuffer(d->handle, m->buffer, NULL);
        if (m->handle) d->vk.FreeMemory(d->handle, m->handle, NULL); /* unmaps, too */
    }
    d->host->free(m);
}

uint64_t vulkan_ring_take(vulkan_ring *r, uint64_t bytes) {
    uint64_t at = (r->head + RING_ALIGN - 1) & ~(uint64_t)(RING_ALIGN - 1);
    if (at % r->bytes + bytes > r->bytes) at += r->bytes - at % r->bytes; /* never around the end */
    if (at + bytes - r->tail > r->bytes) return UINT64_MAX;
    r->head = at + bytes;
    return at % r->bytes;
}
