/* Instances: the way to the drivers. One without and one with the validation layer, made when a device asks for it. */
#include "vulkan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

/* ---- validation -------------------------------------------------------------------------------------------------- */

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT type,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    vulkan_instance *i = user;
    (void)type;
    i->host->log(severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? 0 : 1, data->pMessage);
    pthread_mutex_lock(&i->lock);
    if (!i->complained) snprintf(i->complaint, sizeof i->complaint, "%s", data->pMessage);
    i->complained = true;
    pthread_mutex_unlock(&i->lock);
    return VK_FALSE;
}

bool vulkan_instance_complaint(vulkan_instance *i, char *text, size_t size) {
    if (!i->validation) return false;
    pthread_mutex_lock(&i->lock);
    const bool there = i->complained;
    if (there) snprintf(text, size, "%s", i->complaint);
    i->complained = false;
    pthread_mutex_unlock(&i->lock);
    return there;
}

static bool has_layer(const vulkan_global_calls *global) {
    uint32_t n = 0;
    if (global->EnumerateInstanceLayerProperties(&n, NULL) || !n) return false;
    VkLayerProperties *layers = calloc(n, sizeof *layers);
    bool there = false;
    if (layers && !global->EnumerateInstanceLayerProperties(&n, layers))
        for (uint32_t k = 0; k < n; k++) there |= !strcmp(layers[k].layerName, validation_layer);
    free(layers);
    return there;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int32_t unavailable(const fnx_host *host, const char *why) {
    return vulkan_error(host, FNX_E_NOT_FOUND, "vulkan: unavailable because %s", why);
}

static VkResult create(vulkan_instance *i) {
    static const char *const layers[] = {validation_layer}, *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    const VkValidationFeatureEnableEXT enable[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    const VkDebugUtilsMessengerCreateInfoEXT messenger = {.sType =
                                                              VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                          .messageSeverity =
                                                              VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                                              VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                          .messageType =
                                                              VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                                              VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                                                          .pfnUserCallback = on_message,
                                                          .pUserData = i};
    const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                              .pNext = &messenger, /* of creating and destroying the instance itself */
                                              .enabledValidationFeatureCount = 1,
                                              .pEnabledValidationFeatures = enable};
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pEngineName = "fornax",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pNext = i->validation ? &features : NULL,
                                       .pApplicationInfo = &application,
                                       .enabledLayerCount = i->validation,
                                       .ppEnabledLayerNames = layers,
                                       .enabledExtensionCount = i->validation,
                                       .ppEnabledExtensionNames = extensions};
    VkResult result = i->global->CreateInstance(&info, NULL, &i->handle);
    if (result) {
        i->handle = VK_NULL_HANDLE;
        return result;
    }
    if (!i->validation) return VK_SUCCESS;
    const PFN_vkCreateDebugUtilsMessengerEXT create_messenger =
        (PFN_vkCreateDebugUtilsMessengerEXT)i->global->GetInstanceProcAddr(i->handle, "vkCreateDebugUtilsMessengerEXT");
    return create_messenger ? create_messenger(i->handle, &messenger, NULL, &i->messenger)
                            : VK_ERROR_EXTENSION_NOT_PRESENT;
}

static int32_t make(vulkan_instance *i) {
    char text[96];
    uint32_t version = 0;
    if (i->global->EnumerateInstanceVersion(&version) || version < VK_API_VERSION_1_2)
        return unavailable(i->host, "libvulkan.so.1 is older than Vulkan 1.2");
    if (i->validation && !has_layer(i->global))
        return vulkan_error(i->host, FNX_E_NOT_FOUND,
                            "vulkan: validation=on needs the layer %s (Debian: vulkan-validationlayers)",
                            validation_layer);
    VkResult result = create(i);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return unavailable(i->host, "there is no Vulkan driver (Debian: mesa-vulkan-drivers)");
    if (result) {
        snprintf(text, sizeof text, "vkCreateInstance failed with VkResult %d", result);
        return unavailable(i->host, text);
    }
    const char *missing = vulkan_load_instance(i->global, i->handle, &i->vk);
    if (missing) {
        snprintf(text, sizeof text, "libvulkan.so.1 has no %s", missing);
        return unavailable(i->host, text);
    }
    i->n_physical = VULKAN_MAX_DEVICES;
    result = i->vk.EnumeratePhysicalDevices(i->handle, &i->n_physical, i->physical);
    if (result == VK_INCOMPLETE) result = VK_SUCCESS;
    if (result || !i->n_physical) return unavailable(i->host, "no driver found a device");
    return FNX_OK;
}

int32_t vulkan_instance_get(vulkan_context *c, bool validation, vulkan_instance **out) {
    vulkan_instance *i = &c->instance[validation];
    int32_t code = FNX_OK;
    pthread_mutex_lock(&c->lock);
    if (!c->loaded) {
        const char *why = vulkan_load_global(&c->global);
        c->loaded = !why;
        if (why)
            code = vulkan_error(c->host, FNX_E_NOT_FOUND, "vulkan: unavailable because %s (Debian: libvulkan1)", why);
    }
    if (!code && !i->handle) {
        i->host = c->host, i->global = &c->global, i->validation = validation;
        pthread_mutex_init(&i->lock, NULL);
        code = make(i);
        if (code) vulkan_instance_destroy(i), pthread_mutex_destroy(&i->lock), memset(i, 0, sizeof *i);
    }
    pthread_mutex_unlock(&c->lock);
    *out = i;
    return code;
}

void vulkan_instance_destroy(vulkan_instance *i) {
    if (!i->handle || atomic_load(&i->hung)) return;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger =
        i->messenger
            ? (PFN_vkDestroyDebugUtilsMessengerEXT)i->global->GetInstanceProcAddr(i->handle,
                                                                                  "vkDestroyDebugUtilsMessengerEXT")
            : NULL;
    if (destroy_messenger) destroy_messenger(i->handle, i->messenger, NULL);
    if (i->vk.DestroyInstance) i->vk.DestroyInstance(i->handle, NULL);
    i->handle = VK_NULL_HANDLE, i->messenger = VK_NULL_HANDLE;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static void describe(const vulkan_instance *i, uint32_t number, char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE],
                     char uuid[2 * VK_UUID_SIZE + 1]) {
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    VkPhysicalDeviceProperties properties;
    i->vk.GetPhysicalDeviceProperties(i->physical[number], &properties);
    if (properties.apiVersion >= VK_API_VERSION_1_1) i->vk.GetPhysicalDeviceProperties2(i->physical[number], &all);
    memcpy(name, properties.deviceName, VK_MAX_PHYSICAL_DEVICE_NAME_SIZE);
    name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1] = 0;
    for (size_t k = 0; k < VK_UUID_SIZE; k++) snprintf(uuid + 2 * k, 3, "%02x", id.deviceUUID[k]);
}

/* Hexadecimal digits, at least 4, with dashes anywhere. */
static bool begins_uuid(const char *uuid, const char *address) {
    size_t n = 0;
    for (; *address; address++) {
        if (*address == '-') continue;
        if (n >= 2 * VK_UUID_SIZE || tolower((unsigned char)*address) != uuid[n]) return false;
        n++;
    }
    return n >= 4;
}

int32_t vulkan_instance_find(const vulkan_instance *i, const char *address, uint32_t *out) {
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE], uuid[2 * VK_UUID_SIZE + 1], list[256] = "";
    const size_t digits = strspn(address, "0123456789");
    uint32_t found = 0;
    if (digits <= 3 && !address[digits]) {
        const unsigned long number = strtoul(address, NULL, 10); /* of "": 0 */
        *out = (uint32_t)number;
        if (number < i->n_physical) return FNX_OK;
    } else {
        for (uint32_t k = 0; k < i->n_physical; k++) {
            describe(i, k, name, uuid);
            if (!begins_uuid(uuid, address) && strncasecmp(name, address, strlen(address)) != 0) continue;
            if (!found) *out = k;
            found++;
        }
        if (found == 1) return FNX_OK;
    }
    for (uint32_t k = 0; k < i->n_physical; k++) {
        const size_t used = strlen(list);
        describe(i, k, name, uuid);
        snprintf(list + used, sizeof list - used, "%s%u is %.80s", k ? ", " : "", k, name);
    }
    return vulkan_error(i->host, FNX_E_NOT_FOUND, "vulkan: \"%.40s\" names %s; there %s %u: %s", address,
                        found ? "several devices" : "no device", i->n_physical == 1 ? "is" : "are", i->n_physical,
                        list);
}
