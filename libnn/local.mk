# libfornax-nn: modules, optimizers, data and checkpoints, on libfornax's public interface only.
fornaxinclude_HEADERS += \
	libnn/include/fornax/nn.h
nnincludedir = $(includedir)/fornax/nn
nninclude_HEADERS = \
	libnn/include/fornax/nn/checkpoint.h \
	libnn/include/fornax/nn/data.h \
	libnn/include/fornax/nn/module.h \
	libnn/include/fornax/nn/optimizer.h
pkgconfig_DATA += libnn/fornax-nn.pc

lib_LTLIBRARIES += libnn/libfornax-nn.la
libnn_libfornax_nn_la_SOURCES = \
	libnn/cause.h \
	libnn/checkpoint.c \
	libnn/dataset.c \
	libnn/dataset.h \
	libnn/idx.c \
	libnn/idx.h \
	libnn/layers.c \
	libnn/loader.c \
	libnn/module.c \
	libnn/module.h \
	libnn/optimizer.c \
	libnn/safetensors.c
libnn_libfornax_nn_la_CPPFLAGS = $(public_cppflags) -I$(srcdir)/libnn $(ZLIB_CFLAGS) $(JANSSON_CFLAGS)
libnn_libfornax_nn_la_LIBADD = libcore/libfornax.la $(ZLIB_LIBS) $(JANSSON_LIBS) -lm
libnn_libfornax_nn_la_LDFLAGS = $(library_ldflags) -version-info $(LIBFORNAX_NN_VERSION_INFO) \
	-Wl,--version-script=$(srcdir)/libnn/libfornax-nn.map
EXTRA_libnn_libfornax_nn_la_DEPENDENCIES = libnn/libfornax-nn.map
EXTRA_DIST += libnn/libfornax-nn.map
