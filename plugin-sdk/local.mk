# The plugin ABI: headers, and the table of ops that is generated from libcore/ops/ops.def.
pluginincludedir = $(includedir)/fornax-plugin
plugininclude_HEADERS = \
	plugin-sdk/include/fornax-plugin/check.h \
	plugin-sdk/include/fornax-plugin/group.h \
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

BUILT_SOURCES += plugin-sdk/include/fornax-plugin/op-table.h
CLEANFILES += plugin-sdk/include/fornax-plugin/op-table.h
EXTRA_DIST += plugin-sdk/kernel/fit_poly.py plugin-sdk/kernel/poly.h plugin-sdk/op-table.awk plugin-sdk/plugin.map
