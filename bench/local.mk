# make bench: figures, mostly ratios. Nothing here is a test.
EXTRA_DIST += bench/edit_compile.sh bench/fashion_mnist.py bench/startup.sh

bench: all
	$(srcdir)/bench/startup.sh ./fornax
	$(srcdir)/bench/edit_compile.sh . $(srcdir)/examples/mnist_cnn.c examples/mnist_cnn
	$(srcdir)/bench/fashion_mnist.py ./fornax
.PHONY: bench
