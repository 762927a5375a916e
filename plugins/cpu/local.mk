# The cpu backend: a vector machine for elementwise groups, kernels of its own and of oneDNN for the rest.
if PLUGIN_CPU

plugin_LTLIBRARIES += plugins/cpu/fornax-cpu.la
plugins_cpu_fornax_cpu_la_SOURCES = \
	plugins/cpu/cpu.h \
	plugins/cpu/kernels/argmax_body.h \
	plugins/cpu/kernels/avg_pool_body.h \
	plugins/cpu/kernels/conv.c \
	plugins/cpu/kernels/conv.h \
	plugins/cpu/kernels/conv_loops.c \
	plugins/cpu/kernels/dnnl.c \
	plugins/cpu/kernels/dnnl.h \
	plugins/cpu/kernels/gemm.h \
	plugins/cpu/kernels/gemm_body.h \
	plugins/cpu/kernels/kernel.c \
	plugins/cpu/kernels/kernel.h \
	plugins/cpu/kernels/keys.h \
	plugins/cpu/kernels/layout.c \
	plugins/cpu/kernels/matmul.c \
	plugins/cpu/kernels/max_pool_body.h \
	plugins/cpu/kernels/reduce_body.h \
	plugins/cpu/kernels/walk.h \
	plugins/cpu/kernels/window.h \
	plugins/cpu/plugin.c \
	plugins/cpu/queue.c \
	plugins/cpu/vm.c \
	plugins/cpu/vm_loops.h
plugins_cpu_fornax_cpu_la_CPPFLAGS = $(cpu_cppflags)
plugins_cpu_fornax_cpu_la_CFLAGS = $(AM_CFLAGS) $(CPU_CFLAGS)
plugins_cpu_fornax_cpu_la_LDFLAGS = $(plugin_ldflags) $(OPENMP_CFLAGS)
plugins_cpu_fornax_cpu_la_LIBADD = $(cpu_levels) $(DNNL_LIBS) -lm
EXTRA_plugins_cpu_fornax_cpu_la_DEPENDENCIES = plugin-sdk/plugin.map

cpu_cppflags = $(sdk_cppflags) $(plugin_cppflags) -I$(srcdir)/plugins/cpu -I$(srcdir)/plugin-sdk

# Loops over elements, compiled for each level of x86-64; which one runs is decided by the CPU that is there. Level 3
# has AVX2 and FMA, level 4 AVX-512. The options that follow -O3 hold even where CFLAGS, which come last, say -O2.
cpu_loops = \
	plugins/cpu/kernels/argmax.c \
	plugins/cpu/kernels/avg_pool.c \
	plugins/cpu/kernels/copy.c \
	plugins/cpu/kernels/gemm.c \
	plugins/cpu/kernels/index.c \
	plugins/cpu/kernels/loops.c \
	plugins/cpu/kernels/max_pool.c \
	plugins/cpu/kernels/reduce.c \
	plugins/cpu/vm_loops.c
cpu_loop_cflags = $(AM_CFLAGS) $(CPU_CFLAGS) -O3 -ftree-vectorize -fvect-cost-model=dynamic -funswitch-loops \
	-fno-math-errno -fno-trapping-math

noinst_LTLIBRARIES += plugins/cpu/libbase.la
cpu_levels = plugins/cpu/libbase.la
plugins_cpu_libbase_la_SOURCES = $(cpu_loops)
plugins_cpu_libbase_la_CPPFLAGS = $(cpu_cppflags) -DVM_SUFFIX=base
plugins_cpu_libbase_la_CFLAGS = $(cpu_loop_cflags)

if X86_64
noinst_LTLIBRARIES += plugins/cpu/libv3.la plugins/cpu/libv4.la
cpu_levels += plugins/cpu/libv3.la plugins/cpu/libv4.la
plugins_cpu_libv3_la_SOURCES = $(cpu_loops)
plugins_cpu_libv3_la_CPPFLAGS = $(cpu_cppflags) -DVM_SUFFIX=avx2
plugins_cpu_libv3_la_CFLAGS = $(cpu_loop_cflags) -march=x86-64-v3
plugins_cpu_libv4_la_SOURCES = $(cpu_loops)
plugins_cpu_libv4_la_CPPFLAGS = $(cpu_cppflags) -DVM_SUFFIX=avx512
plugins_cpu_libv4_la_CFLAGS = $(cpu_loop_cflags) -march=x86-64-v4 -mprefer-vector-width=512
endif

manifest_DATA += manifests/installed/cpu.json
noinst_DATA += manifests/cpu.json

endif
