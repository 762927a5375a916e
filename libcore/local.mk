# libfornax: the tensor runtime that programs link.
fornaxinclude_HEADERS += \
	libcore/include/fornax/autodiff.h \
	libcore/include/fornax/base.h \
	libcore/include/fornax/device.h \
	libcore/include/fornax/fornax.h \
	libcore/include/fornax/ops.h \
	libcore/include/fornax/plugins.h \
	libcore/include/fornax/tensor.h
pkgconfig_DATA += libcore/fornax.pc

# What libcore is compiled with: its internal headers, and what configure decided.
core_cppflags = -I$(srcdir)/libcore $(JANSSON_CFLAGS) -DFORNAX_VERSION='"$(PACKAGE_VERSION)"' \
	-DFORNAX_BUILD_SANITIZERS=$(FNX_BUILD_BITS)u -DFORNAX_SYSCONFDIR='"$(sysconfdir)"' -DFORNAX_DATADIR='"$(datadir)"' \
	-DFORNAX_PLUGIN_LIBDIR='"$(plugindir)"'

# The objects, also for tests of what the library does not export.
noinst_LTLIBRARIES += libcore/libcore.la
libcore_libcore_la_SOURCES = \
	libcore/autodiff/gradients.c \
	libcore/autodiff/gradients.h \
	libcore/autodiff/tape.c \
	libcore/base/alloc.c \
	libcore/base/alloc.h \
	libcore/base/env.c \
	libcore/base/env.h \
	libcore/base/error.c \
	libcore/base/error.h \
	libcore/base/hash.c \
	libcore/base/hash.h \
	libcore/base/log.c \
	libcore/base/log.h \
	libcore/base/spell.c \
	libcore/base/spell.h \
	libcore/dispatch/device.c \
	libcore/dispatch/execute.c \
	libcore/dispatch/fallback.c \
	libcore/dispatch/fallback.h \
	libcore/dispatch/flush.c \
	libcore/dispatch/hardware.c \
	libcore/dispatch/hardware.h \
	libcore/dispatch/ladder.c \
	libcore/dispatch/verify.c \
	libcore/dispatch/verify.h \
	libcore/graph/backend.h \
	libcore/graph/build.c \
	libcore/graph/builder.h \
	libcore/graph/demand.c \
	libcore/graph/fragment.c \
	libcore/graph/fragment.h \
	libcore/graph/ir.c \
	libcore/graph/ir.h \
	libcore/graph/ir_view.c \
	libcore/graph/layout.c \
	libcore/graph/pack.c \
	libcore/graph/pack.h \
	libcore/graph/plan.c \
	libcore/graph/plan.h \
	libcore/graph/recorder.c \
	libcore/graph/recorder.h \
	libcore/graph/units.c \
	libcore/memory/pool.c \
	libcore/memory/pool.h \
	libcore/memory/storage.h \
	libcore/ops/composites.c \
	libcore/ops/decompositions.c \
	libcore/ops/decompositions.h \
	libcore/ops/elementwise.c \
	libcore/ops/infer.c \
	libcore/ops/infer.h \
	libcore/ops/infer_window.c \
	libcore/ops/op.c \
	libcore/ops/op.h \
	libcore/ops/record.h \
	libcore/ops/reductions.c \
	libcore/ops/shapes.c \
	libcore/ops/sources.c \
	libcore/ops/windows.c \
	libcore/registry/catalog.c \
	libcore/registry/catalog.h \
	libcore/registry/discovery.c \
	libcore/registry/host.c \
	libcore/registry/host.h \
	libcore/registry/json.c \
	libcore/registry/json.h \
	libcore/registry/listing.c \
	libcore/registry/load.c \
	libcore/registry/load.h \
	libcore/registry/manifest.c \
	libcore/registry/manifest.h \
	libcore/registry/policy.c \
	libcore/registry/policy.h \
	libcore/registry/process.h \
	libcore/registry/reason.h \
	libcore/registry/registry.c \
	libcore/registry/registry.h \
	libcore/registry/trust.c \
	libcore/registry/trust.h \
	libcore/tensor/device.h \
	libcore/tensor/dtype.h \
	libcore/tensor/fail.c \
	libcore/tensor/handle.c \
	libcore/tensor/io.c \
	libcore/tensor/recorder.h \
	libcore/tensor/saves.h \
	libcore/tensor/shape.c \
	libcore/tensor/shape.h \
	libcore/tensor/slab.c \
	libcore/tensor/tensor.h \
	libcore/tensor/thread.h \
	libcore/tensor/variable.c \
	libcore/tensor/variable.h
libcore_libcore_la_CPPFLAGS = $(public_cppflags) $(core_cppflags)
libcore_libcore_la_LIBADD = $(JANSSON_LIBS) -lm

lib_LTLIBRARIES += libcore/libfornax.la
libcore_libfornax_la_SOURCES =
libcore_libfornax_la_LIBADD = libcore/libcore.la
libcore_libfornax_la_LDFLAGS = $(library_ldflags) -version-info $(LIBFORNAX_VERSION_INFO) \
	-Wl,--version-script=$(srcdir)/libcore/libfornax.map
EXTRA_libcore_libfornax_la_DEPENDENCIES = libcore/libfornax.map
EXTRA_DIST += libcore/libfornax.map libcore/ops/ops.def
