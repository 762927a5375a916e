# The reference backend: plain loops, the oracle of tests and the sample for authors.
plugin_LTLIBRARIES += plugins/ref/fornax-ref.la
ref_sources = \
	plugins/ref/conv.c \
	plugins/ref/elementwise.c \
	plugins/ref/group.c \
	plugins/ref/index.c \
	plugins/ref/kernel.c \
	plugins/ref/matmul.c \
	plugins/ref/ops.c \
	plugins/ref/plugin.c \
	plugins/ref/pool.c \
	plugins/ref/random.c \
	plugins/ref/reduce.c \
	plugins/ref/ref.h \
	plugins/ref/window.h
plugins_ref_fornax_ref_la_SOURCES = $(ref_sources)
plugins_ref_fornax_ref_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags)
plugins_ref_fornax_ref_la_LDFLAGS = $(plugin_ldflags)
plugins_ref_fornax_ref_la_LIBADD = -lm
EXTRA_plugins_ref_fornax_ref_la_DEPENDENCIES = plugin-sdk/plugin.map
manifest_DATA += manifests/installed/ref.json
noinst_DATA += manifests/ref.json
