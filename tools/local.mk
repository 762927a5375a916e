# The program `fornax`. `build/fornax` (tools/uninstalled.in) runs it from the build tree.
bin_PROGRAMS += tools/fornax
tools_fornax_SOURCES =
tools_fornax_CPPFLAGS = $(public_cppflags)
tools_fornax_LDFLAGS = $(all_ldflags)
tools_fornax_LDADD = libnn/libfornax-nn.la libcore/libfornax.la
