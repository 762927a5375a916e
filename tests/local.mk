# Tests. Each program and script is a test with many results: Check and tests/tap.sh speak TAP, Automake's driver counts them.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
TEST_EXTENSIONS = .sh

# Tests of devices run on these, unless FORNAX_TEST_DEVICES says otherwise.
if SANITIZE_THREAD
test_devices = ref
else
if PLUGIN_CPU
test_devices = ref,cpu
else
test_devices = ref
endif
endif

# Tests run as a user without settings would: nothing of the caller's but the devices to test on. One thread, because
# programs run beside each other: two that share cores wait for each other's threads.
AM_TESTS_ENVIRONMENT = \
	CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; \
	FORNAX_PLUGIN_PATH='$(abs_builddir)/manifests'; export FORNAX_PLUGIN_PATH; \
	FORNAX_TEST_DEVICES="$${FORNAX_TEST_DEVICES:-$(test_devices)}"; export FORNAX_TEST_DEVICES; \
	XDG_DATA_HOME='$(abs_builddir)/tests/home'; export XDG_DATA_HOME; \
	XDG_CACHE_HOME='$(abs_builddir)/tests/home'; export XDG_CACHE_HOME; \
	top_srcdir='$(abs_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	TABLE_PLUGINS='$(table_plugins)'; export TABLE_PLUGINS; \
	SANITIZERS='$(FNX_BUILD_WORDS)'; export SANITIZERS; \
	SANITIZE_CFLAGS='$(FNX_LDFLAGS)'; export SANITIZE_CFLAGS; \
	FORNAX_CPU_THREADS=1; export FORNAX_CPU_THREADS; \
	unset MAKEFLAGS MAKELEVEL FORNAX_DEBUG FORNAX_DEVICE FORNAX_FALLBACK FORNAX_LAZY FORNAX_LOG FORNAX_MEMORY_LIMIT \
	  FORNAX_NO_USER_PLUGINS;

# Programs in C. All see libcore's internal headers; `inside` ones link its objects to call what is not exported, the others
# link the libraries as programs do.
AM_CPPFLAGS = $(public_cppflags) -I$(srcdir)/libcore -I$(srcdir)/tests $(CHECK_CFLAGS) $(JANSSON_CFLAGS) \
	-DTEST_SOURCE_DIR='"$(abs_srcdir)/tests"' -DTEST_BUILD_DIR='"$(abs_builddir)"'
AM_LDFLAGS = $(all_ldflags) -no-install
LDADD = tests/support/libsupport.la plugin-sdk/libfornax-check.a libnn/libfornax-nn.la libcore/libfornax.la $(CHECK_LIBS) -lm
inside_ldadd = tests/support/libsupport.la plugin-sdk/libfornax-check.a libcore/libcore.la $(CHECK_LIBS) -lm

check_LTLIBRARIES += tests/support/libsupport.la
tests_support_libsupport_la_SOURCES = \
	tests/support/backend.c \
	tests/support/backend.h \
	tests/support/devices.h \
	tests/support/fragment.c \
	tests/support/fragment.h \
	tests/support/ref.h

inside_tests =

outside_tests = \
	tests/test_graph \
	tests/test_group_check \
	tests/test_random_programs \
	tests/test_ref \
	tests/test_ref_elementwise \
	tests/test_ref_ops

if HAVE_CHECK
check_PROGRAMS += $(inside_tests) $(outside_tests)
TESTS += $(inside_tests) $(outside_tests)
endif

tree_tests = \
	tests/check_dist.sh \
	tests/check_exports.sh \
	tests/check_headers.sh \
	tests/check_install.sh \
	tests/check_layers.sh \
	tests/check_man.sh \
	tests/check_readme.sh

dist_check_SCRIPTS += $(tree_tests)
EXTRA_DIST += tests/tap.sh
TESTS += $(tree_tests)

# A backend that computes nothing, for bench/records: a module like a plugin, never installed.
check_LTLIBRARIES += tests/plugins/fornax-null.la
tests_plugins_fornax_null_la_SOURCES = tests/plugins/null.c
tests_plugins_fornax_null_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags)
tests_plugins_fornax_null_la_LDFLAGS = $(plugin_ldflags) -rpath $(abs_builddir)/tests/plugins

tests/plugins/null.json: manifests/ref.json.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(fill_manifest) -e 's|"ref"|"null"|' \
	  -e 's|@''LIBRARY@|$(abs_builddir)/tests/plugins/.libs/fornax-null.so|' $< > $@
check_DATA = tests/plugins/null.json
CLEANFILES += $(check_DATA)

# The table of README.md, from the plugins that were built.
check_PROGRAMS += tests/readme_table
tests_readme_table_LDADD = tests/support/libsupport.la libcore/libcore.la
table_plugins = cpu=plugins/cpu/.libs/fornax-cpu.so ref=plugins/ref/.libs/fornax-ref.so

readme: tests/readme_table $(plugin_LTLIBRARIES)
	$(AM_V_GEN)sed '/^<!-- table of ops/q' $(srcdir)/README.md > README.tmp && \
	  tests/readme_table $(table_plugins) >> README.tmp && \
	  sed -n '/^<!-- end/,$$p' $(srcdir)/README.md >> README.tmp && mv README.tmp $(srcdir)/README.md
.PHONY: readme

clean-local:
	rm -rf tests/home check_*.tmp README.tmp
