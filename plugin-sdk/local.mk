# The plugin ABI: headers, and the table of ops that is generated from libcore/ops/ops.def.
pluginincludedir = $(includedir)/fornax-plugin
plugininclude_HEADERS = \
	plugin-sdk/include/fornax-plugin/check.h \
	plugin-sdk/include/fornax-plugin/group.h \
	plugin-sdk/include/fornax-plugin/kernel.h \
	plugin-sdk/include/fornax-plugin/ops.h \
	plugin-sdk/include/fornax-plugin/plugin.h \
	plugin-sdk/include/fornax-plugin/types.h
nodist_plugininclude_HEADERS = plugin-sdk/include/fornax-plugin/op-table.h
pkgconfig_DATA += plugin-sdk/fornax-plugin.pc

plugin-sdk/include/fornax-plugin/op-table.h: plugin-sdk/op-table.awk libcore/ops/ops.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/plugin-sdk/op-table.awk $(srcdir)/libcore/ops/ops.def > $@.tmp && \
	  mv $@.tmp $@

# Checks of groups, to be linked into plugins, hosts and tests: position independent, hidden.
lib_LIBRARIES += plugin-sdk/libfornax-check.a
plugin_sdk_libfornax_check_a_SOURCES = \
	plugin-sdk/check/group_check.c \
	plugin-sdk/check/launch_check.c \
	plugin-sdk/check/op_form.c \
	plugin-sdk/check/op_form.h \
	plugin-sdk/check/refuse.h
plugin_sdk_libfornax_check_a_CPPFLAGS = $(sdk_cppflags)
plugin_sdk_libfornax_check_a_CFLAGS = $(AM_CFLAGS) -fPIC

# The kernel compiler, for backends: position independent, hidden.
lib_LIBRARIES += plugin-sdk/libfornax-kernel.a
plugin_sdk_libfornax_kernel_a_SOURCES = \
	plugin-sdk/kernel/codegen.c \
	plugin-sdk/kernel/dialect.h \
	plugin-sdk/kernel/dialect_c.c \
	plugin-sdk/kernel/dialect_cuda.c \
	plugin-sdk/kernel/dialect_glsl.c \
	plugin-sdk/kernel/ir.c \
	plugin-sdk/kernel/ir.h \
	plugin-sdk/kernel/lower.c \
	plugin-sdk/kernel/lower.h \
	plugin-sdk/kernel/lower_conv.c \
	plugin-sdk/kernel/lower_elementwise.c \
	plugin-sdk/kernel/lower_group.c \
	plugin-sdk/kernel/lower_index.c \
	plugin-sdk/kernel/lower_matmul.c \
	plugin-sdk/kernel/lower_pool.c \
	plugin-sdk/kernel/lower_reduce.c \
	plugin-sdk/kernel/lower_window.c \
	plugin-sdk/kernel/lower_window.h \
	plugin-sdk/kernel/poly.h \
	plugin-sdk/kernel/poly64.h \
	plugin-sdk/kernel/print.c \
	plugin-sdk/kernel/verify.c
nodist_plugin_sdk_libfornax_kernel_a_SOURCES = plugin-sdk/kernel/poly_text.c
plugin_sdk_libfornax_kernel_a_CPPFLAGS = $(sdk_cppflags) -I$(srcdir)/plugin-sdk/kernel
plugin_sdk_libfornax_kernel_a_CFLAGS = $(AM_CFLAGS) -fPIC

plugin-sdk/kernel/poly_text.c: plugin-sdk/kernel/poly_text.awk plugin-sdk/kernel/poly.h plugin-sdk/kernel/poly64.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/plugin-sdk/kernel/poly_text.awk $(srcdir)/plugin-sdk/kernel/poly.h \
	  $(srcdir)/plugin-sdk/kernel/poly64.h > $@.tmp && mv $@.tmp $@
CLEANFILES += plugin-sdk/kernel/poly_text.c

BUILT_SOURCES += plugin-sdk/include/fornax-plugin/op-table.h
CLEANFILES += plugin-sdk/include/fornax-plugin/op-table.h
EXTRA_DIST += plugin-sdk/kernel/fit_poly.py plugin-sdk/kernel/poly_text.awk plugin-sdk/op-table.awk
EXTRA_DIST += plugin-sdk/plugin.map
