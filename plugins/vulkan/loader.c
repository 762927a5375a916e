/* libvulkan.so.1 is not linked but opened when a device is: the plugin loads where there is none, and says so then. */
#include "vulkan.h"

#include <dlfcn.h>

const char *vulkan_load_global(vulkan_global_calls *out) {
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    out->GetInstanceProcAddr = (PFN_vkGetInstanceProcAddr)dlsym(library, "vkGetInstanceProcAddr");
    if (!out->GetInstanceProcAddr) return "libvulkan.so.1 has no vkGetInstanceProcAddr";
#define LOAD(name) \
    out->name = (PFN_vk##name)out->GetInstanceProcAddr(NULL, "vk" #name); \
    if (!out->name) return "libvulkan.so.1 has no vk" #name;
    VULKAN_GLOBAL_CALLS(LOAD)
#undef LOAD
    return NULL;
}

const char *vulkan_load_instance(const vulkan_global_calls *global, VkInstance instance, vulkan_instance_calls *out) {
#define LOAD(name) \
    out->name = (PFN_vk##name)global->GetInstanceProcAddr(instance, "vk" #name); \
    if (!out->name) return "vk" #name;
    VULKAN_INSTANCE_CALLS(LOAD)
#undef LOAD
    return NULL;
}

const char *vulkan_load_device(const vulkan_instance_calls *calls, VkDevice device, vulkan_device_calls *out) {
#define LOAD(name) \
    out->name = (PFN_vk##name)calls->GetDeviceProcAddr(device, "vk" #name); \
    if (!out->name) return "vk" #name;
    VULKAN_DEVICE_CALLS(LOAD)
#undef LOAD
    return NULL;
}
