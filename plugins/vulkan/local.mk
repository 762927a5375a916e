# The vulkan backend: GPUs, and CPUs by Mesa's lavapipe. Kernels come from libfornax-kernel.a as GLSL.
EXTRA_DIST += manifests/vulkan.json.in
if PLUGIN_VULKAN

plugin_LTLIBRARIES += plugins/vulkan/fornax-vulkan.la
plugins_vulkan_fornax_vulkan_la_SOURCES = \
	plugins/vulkan/compile.c \
	plugins/vulkan/device.c \
	plugins/vulkan/instance.c \
	plugins/vulkan/loader.c \
	plugins/vulkan/memory.c \
	plugins/vulkan/plugin.c \
	plugins/vulkan/queue.c \
	plugins/vulkan/transfer.c \
	plugins/vulkan/vulkan.h
plugins_vulkan_fornax_vulkan_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags)
plugins_vulkan_fornax_vulkan_la_LDFLAGS = $(plugin_ldflags)
plugins_vulkan_fornax_vulkan_la_LIBADD = plugin-sdk/libfornax-kernel.a $(GLSLANG_LIBS)
EXTRA_plugins_vulkan_fornax_vulkan_la_DEPENDENCIES = plugin-sdk/plugin.map
manifest_DATA += manifests/installed/vulkan.json
noinst_DATA += manifests/vulkan.json

endif
