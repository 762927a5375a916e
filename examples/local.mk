# Programs to start from. They see installed headers only.
noinst_PROGRAMS += examples/mnist_cnn
examples_mnist_cnn_CPPFLAGS = $(public_cppflags)
examples_mnist_cnn_LDADD = libnn/libfornax-nn.la libcore/libfornax.la
