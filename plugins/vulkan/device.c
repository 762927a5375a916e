/* A device: what it must have, what is made of it once, and how it ends. */
#include "vulkan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH_BYTES = 8, MAX_QUEUES = 64 };

/* ---- errors ------------------------------------------------------------------------------------------------------ */

int32_t vulkan_error(const fnx_host *host, int32_t code, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return host->error(code, text);
}

void *vulkan_alloc(const fnx_host *host, size_t bytes) {
    void *p = host->alloc(bytes, 64);
    return p ? memset(p, 0, bytes) : NULL;
}

int32_t vulkan_device_check(vulkan_device *d) {
    if (!atomic_load_explicit(&d->lost, memory_order_acquire)) return FNX_OK;
    return vulkan_error(d->host, FNX_E_DEVICE_LOST, "vulkan: device %u is lost: %s", d->number, d->lost_text);
}

int32_t vulkan_device_lose(vulkan_device *d, bool hung, const char *why) {
    pthread_mutex_lock(&d->lock);
    if (!atomic_load(&d->lost)) snprintf(d->lost_text, sizeof d->lost_text, "%s", why);
    if (hung) atomic_store(&d->hung, true);
    atomic_store_explicit(&d->lost, true, memory_order_release);
    pthread_mutex_unlock(&d->lock);
    return vulkan_device_check(d);
}

int32_t vulkan_device_failed(vulkan_device *d, VkResult result, const char *what) {
    static const struct {
        VkResult result;
        int32_t code;
        const char *text;
    } known[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, FNX_E_NO_MEMORY, "no host memory"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, FNX_E_NO_MEMORY, "no device memory"},
        {VK_ERROR_TOO_MANY_OBJECTS, FNX_E_NO_MEMORY, "the driver allows no more objects of this kind"},
        {VK_ERROR_MEMORY_MAP_FAILED, FNX_E_NO_MEMORY, "the memory cannot be mapped"},
        {VK_ERROR_INITIALIZATION_FAILED, FNX_E_UNSUPPORTED, "the driver could not initialise"},
        {VK_ERROR_FEATURE_NOT_PRESENT, FNX_E_UNSUPPORTED, "the driver lacks a feature that it claims"},
    };
    char text[128];
    if (result == VK_ERROR_DEVICE_LOST) {
        snprintf(text, sizeof text, "%s: the driver says so", what);
        return vulkan_device_lose(d, false, text);
    }
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].result == result)
            return vulkan_error(d->host, known[k].code, "vulkan: device %u: %s: %s", d->number, what, known[k].text);
    return vulkan_error(d->host, FNX_E_INTERNAL, "vulkan: device %u: %s: VkResult %d", d->number, what, result);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int32_t read_switch(const fnx_host *host, const char *key, bool *out) {
    const char *value = host->config(key, "off");
    *out = !strcmp(value, "on");
    if (*out || !strcmp(value, "off")) return FNX_OK;
    return vulkan_error(host, FNX_E_INVALID, "vulkan: %s must be on or off, not '%.40s'", key, value);
}

/* Unset it is 0 here, and decided by the device. */
static int32_t read_timeout(const fnx_host *host, uint64_t *out_ns) {
    const char *value = host->config("timeout", "");
    if (!*value) return FNX_OK;
    char *end;
    const double seconds = strtod(value, &end);
    if (end != value && !*end && seconds >= 0.001 && seconds <= 86400) {
        *out_ns = (uint64_t)(seconds * 1e9);
        return FNX_OK;
    }
    return vulkan_error(host, FNX_E_INVALID, "vulkan: timeout must be 0.001 to 86400 seconds, not '%.40s'", value);
}

/* ---- what it must have ------------------------------------------------------------------------------------------- */

typedef struct features { /* asked for, then what of it is there is enabled */
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan12Features v12;
} features;

static int32_t lacks(const vulkan_device *d, const char *name, const char *what) {
    return vulkan_error(d->host, FNX_E_UNSUPPORTED, "vulkan: device %u (%.80s) has no %s, which is needed", d->number,
                        name, what);
}

/* Fills what there is to enable, in `use`. */
static int32_t check_features(vulkan_device *d, const char *name, features *use) {
    features f = {.base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                  .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    f.base.pNext = &f.v12;
    d->instance->vk.GetPhysicalDeviceFeatures2(d->physical, &f.base);
    const struct {
        VkBool32 there;
        const char *name;
    } need[] = {
        {f.v12.bufferDeviceAddress, "bufferDeviceAddress"},
        {f.v12.timelineSemaphore, "timelineSemaphore"},
        {f.base.features.shaderInt64, "shaderInt64"},
    };
    for (size_t k = 0; k < sizeof need / sizeof *need; k++)
        if (!need[k].there) return lacks(d, name, need[k].name);
    *use = (features){
        .base = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                 .features = {.shaderInt64 = VK_TRUE,
                              .shaderInt16 = f.base.features.shaderInt16,
                              .shaderFloat64 = f.base.features.shaderFloat64}},
        .v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                .bufferDeviceAddress = VK_TRUE,
                .timelineSemaphore = VK_TRUE,
                .scalarBlockLayout = f.v12.scalarBlockLayout,
                .storageBuffer8BitAccess = f.v12.storageBuffer8BitAccess,
                .shaderInt8 = f.v12.shaderInt8,
                .shaderFloat16 = f.v12.shaderFloat16,
                .shaderBufferInt64Atomics = f.v12.shaderBufferInt64Atomics},
    };
    d->codegen.features = FNX_CODEGEN_I64;
    if (f.base.features.shaderFloat64) d->codegen.features |= FNX_CODEGEN_F64;
    if (f.v12.storageBuffer8BitAccess && f.v12.shaderInt8) d->codegen.features |= FNX_CODEGEN_U8;
    return FNX_OK;
}

/* A family that only computes and copies runs beside what a screen needs. */
static bool find_family(vulkan_device *d) {
    VkQueueFamilyProperties family[32];
    uint32_t n = sizeof family / sizeof *family;
    bool found = false;
    d->instance->vk.GetPhysicalDeviceQueueFamilyProperties(d->physical, &n, family);
    for (uint32_t k = 0; k < n; k++) {
        if (!(family[k].queueFlags & VK_QUEUE_COMPUTE_BIT) || !family[k].queueCount) continue;
        const bool alone = !(family[k].queueFlags & VK_QUEUE_GRAPHICS_BIT);
        if (!found || alone) d->family = k;
        found = true;
        if (alone) break;
    }
    return found;
}

static uint64_t device_bytes(const VkPhysicalDeviceMemoryProperties *memory) {
    uint64_t most = 0;
    for (uint32_t k = 0; k < memory->memoryHeapCount; k++)
        if (memory->memoryHeaps[k].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT && memory->memoryHeaps[k].size > most)
            most = memory->memoryHeaps[k].size;
    return most;
}

static int32_t look(vulkan_device *d, features *use) {
    const vulkan_instance_calls *vk = &d->instance->vk;
    VkPhysicalDeviceProperties properties;
    vk->GetPhysicalDeviceProperties(d->physical, &properties);
    const uint32_t version = properties.apiVersion;
    if (version < VK_API_VERSION_1_2)
        return vulkan_error(d->host, FNX_E_UNSUPPORTED, "vulkan: device %u (%.80s) has Vulkan %u.%u; 1.2 is needed",
                            d->number, properties.deviceName, VK_API_VERSION_MAJOR(version),
                            VK_API_VERSION_MINOR(version));
    int32_t code = check_features(d, properties.deviceName, use);
    if (code) return code;
    if (!find_family(d)) return lacks(d, properties.deviceName, "queue for compute");

    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceVulkan11Properties v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES,
                                              .pNext = &driver};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v11};
    const VkPhysicalDeviceLimits *limits = &all.properties.limits;
    vk->GetPhysicalDeviceProperties2(d->physical, &all);
    vk->GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
    d->max_allocation = v11.maxMemoryAllocationSize;
    if (!d->timeout_ns) /* a CPU is never silent because it hangs, but may be because it is slow */
        d->timeout_ns = UINT64_C(1000000000) * (properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? 600 : 60);
    d->codegen.max_threads = limits->maxComputeWorkGroupInvocations;
    d->llvmpipe = driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
    if (d->llvmpipe) d->codegen.max_rounds = 65535; /* after so many its loops just end */
    d->codegen.max_shared = limits->maxComputeSharedMemorySize;
    memcpy(d->codegen.max_groups, limits->maxComputeWorkGroupCount, sizeof d->codegen.max_groups);
    d->info = (fnx_device_info){.struct_size = sizeof d->info,
                                .max_queues = MAX_QUEUES,
                                .memory_bytes = device_bytes(&d->memory)};
    memcpy(d->info.uuid, v11.deviceUUID, sizeof d->info.uuid);
    snprintf(d->info.name, sizeof d->info.name, "%.63s", all.properties.deviceName);
    return FNX_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The alignment that the driver gives each buffer: nothing says it but a buffer. */
static VkResult find_align(vulkan_device *d) {
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = 4096,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkMemoryRequirements need;
    VkBuffer buffer;
    VkResult result = d->vk.CreateBuffer(d->handle, &info, NULL, &buffer);
    if (result) return result;
    d->vk.GetBufferMemoryRequirements(d->handle, buffer, &need);
    d->vk.DestroyBuffer(d->handle, buffer, NULL);
    d->info.memory_align = need.alignment < 4096 ? (uint32_t)need.alignment : 4096;
    return VK_SUCCESS;
}

static int32_t make(vulkan_device *d, features *use) {
    static const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = d->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    use->base.pNext = &use->v12;
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &use->base,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    VkResult result = d->instance->vk.CreateDevice(d->physical, &info, NULL, &d->handle);
    if (result) {
        d->handle = VK_NULL_HANDLE;
        return vulkan_device_failed(d, result, "vkCreateDevice");
    }
    const char *missing = vulkan_load_device(&d->instance->vk, d->handle, &d->vk);
    if (missing) return lacks(d, d->info.name, missing);
    d->vk.GetDeviceQueue(d->handle, d->family, 0, &d->queue);

    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, PUSH_BYTES};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &range};
    const VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    result = d->vk.CreatePipelineLayout(d->handle, &layout, NULL, &d->layout);
    if (!result) result = d->vk.CreatePipelineCache(d->handle, &cache, NULL, &d->cache);
    if (!result) result = find_align(d);
    return result ? vulkan_device_failed(d, result, "opening") : FNX_OK;
}

int32_t vulkan_device_open(vulkan_context *c, const char *address, vulkan_device **out) {
    bool validation = false, staging = false;
    uint64_t timeout_ns = 0;
    vulkan_instance *instance = NULL;
    uint32_t number = 0;
    features use;
    int32_t code = read_switch(c->host, "validation", &validation);
    if (!code) code = read_switch(c->host, "staging", &staging);
    if (!code) code = read_timeout(c->host, &timeout_ns);
    if (!code) code = vulkan_instance_get(c, validation, &instance);
    if (!code) code = vulkan_instance_find(instance, address ? address : "", &number);
    if (code) return code;
    vulkan_device *d = vulkan_alloc(c->host, sizeof *d);
    if (!d) return vulkan_error(c->host, FNX_E_NO_MEMORY, "vulkan: no host memory for a device");
    d->codegen = (fnx_codegen_device){.struct_size = sizeof d->codegen,
                                      .dialect = FNX_DIALECT_GLSL,
                                      .user = d,
                                      .host = c->host,
                                      .compile = vulkan_compile,
                                      .release = vulkan_release,
                                      .launch = vulkan_launch,
                                      .error_word = vulkan_error_word};
    d->host = c->host, d->instance = instance, d->number = number, d->physical = instance->physical[number];
    d->staging = staging, d->timeout_ns = timeout_ns;
    pthread_mutex_init(&d->submit, NULL), pthread_mutex_init(&d->lock, NULL);
    code = look(d, &use);
    if (!code) code = make(d, &use);
    if (code) vulkan_device_close(d);
    else *out = d;
    return code;
}

/* Of a device that hangs only the host's memory is taken back: the driver would wait for it, perhaps forever. */
void vulkan_device_close(vulkan_device *d) {
    if (!d) return;
    const bool hung = atomic_load(&d->hung);
    for (vulkan_timeline *t = d->timelines, *next; t; t = next) {
        next = t->next;
        if (!hung) d->vk.DestroySemaphore(d->handle, t->semaphore, NULL);
        pthread_mutex_destroy(&t->lock);
        d->host->free(t);
    }
    if (d->handle && !hung && d->vk.DestroyDevice) {
        if (d->cache) d->vk.DestroyPipelineCache(d->handle, d->cache, NULL);
        if (d->layout) d->vk.DestroyPipelineLayout(d->handle, d->layout, NULL);
        d->vk.DestroyDevice(d->handle, NULL);
    }
    if (hung) atomic_store(&d->instance->hung, true);
    pthread_mutex_destroy(&d->submit), pthread_mutex_destroy(&d->lock);
    d->host->free(d);
}
