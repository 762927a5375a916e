/* A plugin that does nothing, built in variations (-DFAKE_<variation>) of which each breaks one rule, for
 * test_registry.
 *
 * What its functions do is asked for as configuration: fail (text), silent (a code without a text), wait (a path
 * that must exist before init returns), devices, threads. */
#include <fornax-plugin/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME "fake"
#define SIZE sizeof(fnx_plugin)
#define MAGIC FNX_PLUGIN_MAGIC
#define EPOCH FNX_ABI_EPOCH
#define BUILD FORNAX_BUILD_SANITIZERS
#define INIT init
#define OPEN device_open

#if defined(FAKE_name)
#undef NAME
#define NAME "somebody"
#elif defined(FAKE_size) /* too short */
#undef SIZE
#define SIZE offsetof(fnx_plugin, device_open)
#elif defined(FAKE_old) /* short, with all that is needed */
#undef SIZE
#define SIZE offsetof(fnx_plugin, get_interface)
#elif defined(FAKE_claim) /* more than there is */
#undef SIZE
#define SIZE (2 * sizeof(fnx_plugin))
#elif defined(FAKE_magic)
#undef MAGIC
#define MAGIC 1
#elif defined(FAKE_epoch)
#undef EPOCH
#define EPOCH (FNX_ABI_EPOCH + 1)
#elif defined(FAKE_build)
#undef BUILD
#define BUILD (FORNAX_BUILD_SANITIZERS ^ 2)
#elif defined(FAKE_init)
#undef INIT
#define INIT NULL
#elif defined(FAKE_open)
#undef OPEN
#define OPEN NULL
#elif defined(FAKE_absent) || defined(FAKE_borrowed) || defined(FAKE_function)
#define fornax_plugin_v0 under_another_name
#define fake_inits under_another_name_inits /* `borrowed` depends on a whole plugin, which has these */
#define fake_open_devices under_another_name_open_devices
#elif defined(FAKE_undefined)
int nobody_defines_this(void); /* a function, which would be looked for when it is called */
#define MORE nobody_defines_this()
#endif
#ifndef MORE
#define MORE 0
#endif

/* How often init ran and how many devices are open: the test looks these up. */
__attribute__((visibility("default"))) int fake_inits, fake_open_devices;

static const fnx_host *host;
static uint32_t devices = 1;
static char threads[16];

__attribute__((unused)) static int32_t init(const fnx_host *h, void **out_context) {
    const char *text = h->config("fail", ""), *code = h->config("silent", ""), *path = h->config("wait", "");
    __atomic_add_fetch(&fake_inits, 1, __ATOMIC_RELAXED);
    host = h;
    h->log(3, "init");
    if (*text) return h->error(FNX_E_NOT_FOUND, text);
    if (*code) return (int32_t)atoi(code) + MORE;
    devices = (uint32_t)atoi(h->config("devices", "1"));
    while (*path && access(path, F_OK)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    *out_context = &devices;
    return FNX_OK;
}

static uint32_t device_count(void *context) { return *(const uint32_t *)context; }

static int32_t info(void *device, fnx_device_info *out) {
    (void)device;
    snprintf(out->name, sizeof out->name, "threads %s", threads);
    return FNX_OK;
}

static void device_close(void *device) {
    (void)device;
    fake_open_devices--;
}

static const fnx_device_table table = {.struct_size = sizeof table, .close = device_close, .info = info};

__attribute__((unused)) static int32_t device_open(void *context, const char *address,
                                                   const fnx_device_table **out_table, void **out_device) {
    if (!strcmp(address, "bad")) return host->error(FNX_E_NOT_FOUND, "no device bad");
    if (!strcmp(address, "mute")) return FNX_E_NO_MEMORY;
    if (!strcmp(address, "odd")) return 7;
    if (!strcmp(address, "empty")) return FNX_OK;
    snprintf(threads, sizeof threads, "%s", host->config("threads", "none"));
    fake_open_devices++;
    *out_table = &table, *out_device = context;
    return FNX_OK;
}

static const void *get_interface(void *context, const char *name) {
    (void)context, (void)name;
    return NULL;
}

FNX_PLUGIN_EXPORT = {
    .struct_size = SIZE,
    .magic = MAGIC,
    .abi_epoch = EPOCH,
    .abi_minor = FNX_ABI_MINOR,
    .build = BUILD,
    .name = NAME,
    .version = "0.1.0",
    .init = INIT,
    .device_count = device_count,
    .device_open = OPEN,
    .get_interface = get_interface,
};

#ifdef FAKE_function
#undef fornax_plugin_v0
int fornax_plugin_v0(void) __attribute__((visibility("default")));
int fornax_plugin_v0(void) { return 0; }
#endif
