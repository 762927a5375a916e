# make bench: figures, mostly ratios. Nothing here is a test.
bench_programs = bench/records
EXTRA_PROGRAMS += $(bench_programs)
EXTRA_DIST += \
	bench/edit_compile.sh \
	bench/epoch.sh \
	bench/peers/fashion_torch.py \
	bench/startup.sh

bench: all $(bench_programs) tests/plugins/fornax-null.la tests/plugins/null.json
	FORNAX_DEVICE=null FORNAX_PLUGIN_PATH=$(abs_builddir)/tests/plugins bench/records
	$(srcdir)/bench/startup.sh ./fornax
	$(srcdir)/bench/edit_compile.sh . $(srcdir)/examples/mnist_cnn.c examples/mnist_cnn
	$(srcdir)/bench/epoch.sh ./fornax
.PHONY: bench
