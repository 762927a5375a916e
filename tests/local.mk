# Tests. Each program and script is one with many results: Check and tests/tap.sh speak TAP, Automake's driver counts.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
TEST_EXTENSIONS = .sh

# Tests of devices run on these, unless FORNAX_TEST_DEVICES says otherwise.
if PLUGIN_CPU
test_devices = ref,cpu
else
test_devices = ref
endif

# Random programs that each device runs.
if SANITIZE
test_programs = 500
else
test_programs = 5000
endif

# Tests run as a user without settings would: nothing of the caller's but the devices to test on. One thread, because
# programs run beside each other: two that share cores wait for each other's threads. The leak sanitizer of gcc 12 takes
# some blocks of thread-local memory for ones of glibc 2.19, and crashes; what they hold it finds without that, too.
AM_TESTS_ENVIRONMENT = \
	CK_TAP_LOG_FILE_NAME=-; export CK_TAP_LOG_FILE_NAME; \
	FORNAX_PLUGIN_PATH='$(abs_builddir)/manifests'; export FORNAX_PLUGIN_PATH; \
	FORNAX_TEST_DEVICES="$${FORNAX_TEST_DEVICES:-$(test_devices)}"; export FORNAX_TEST_DEVICES; \
	FORNAX_TEST_PROGRAMS="$${FORNAX_TEST_PROGRAMS:-$(test_programs)}"; export FORNAX_TEST_PROGRAMS; \
	XDG_DATA_HOME='$(abs_builddir)/tests/home'; export XDG_DATA_HOME; \
	XDG_CACHE_HOME='$(abs_builddir)/tests/home'; export XDG_CACHE_HOME; \
	top_srcdir='$(abs_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; \
	FORNAX_CPU_THREADS=1; export FORNAX_CPU_THREADS; \
	ASAN_OPTIONS="$${ASAN_OPTIONS-}$${ASAN_OPTIONS:+:}intercept_tls_get_addr=0"; export ASAN_OPTIONS; \
	LSAN_OPTIONS='suppressions=$(abs_srcdir)/tests/drivers.supp:print_suppressions=0'; export LSAN_OPTIONS; \
	unset MAKEFLAGS MAKELEVEL FORNAX_DEBUG FORNAX_DEVICE FORNAX_FALLBACK FORNAX_LAZY FORNAX_LOG FORNAX_MEMORY_LIMIT \
	  FORNAX_NO_USER_PLUGINS;

# Programs in C. All see libcore's internal headers; `inside` ones link its objects to call what is not exported, the
# others link the libraries as programs do.
AM_CPPFLAGS = $(public_cppflags) $(core_cppflags) -I$(srcdir)/tests $(CHECK_CFLAGS) \
	-DTEST_SOURCE_DIR='"$(abs_srcdir)/tests"' -DTEST_BUILD_DIR='"$(abs_builddir)"'
AM_LDFLAGS = $(all_ldflags) -no-install
support_ldadd = tests/support/libsupport.la plugin-sdk/libfornax-check.a $(CHECK_LIBS) $(JANSSON_LIBS) -lm
LDADD = $(support_ldadd) libnn/libfornax-nn.la libcore/libfornax.la
inside_ldadd = $(support_ldadd) libcore/libcore.la

check_LTLIBRARIES += tests/support/libsupport.la
tests_support_libsupport_la_SOURCES = \
	tests/support/backend.c \
	tests/support/backend.h \
	tests/support/child.h \
	tests/support/cpu.h \
	tests/support/devices.h \
	tests/support/fragment.c \
	tests/support/fragment.h \
	tests/support/op_cases.c \
	tests/support/op_cases.h \
	tests/support/ref.h

inside_tests = \
	tests/test_base \
	tests/test_grad \
	tests/test_infer \
	tests/test_kernel_ir \
	tests/test_manifest \
	tests/test_ops \
	tests/test_poly64 \
	tests/test_registry

tests_test_base_LDADD = $(inside_ldadd)
tests_test_grad_LDADD = $(inside_ldadd)
tests_test_infer_LDADD = $(inside_ldadd)
tests_test_kernel_ir_SOURCES = tests/test_kernel_ir.c tests/support/kernels.c tests/support/kernels.h
tests_test_kernel_ir_LDADD = plugin-sdk/libfornax-kernel.a $(support_ldadd)
tests_test_manifest_LDADD = $(inside_ldadd)
tests_test_ops_LDADD = $(inside_ldadd)
tests_test_poly64_LDADD = $(CHECK_LIBS) -lm
tests_test_registry_LDADD = $(inside_ldadd)

outside_tests = \
	tests/test_bad_input \
	tests/test_checkpoint \
	tests/test_data \
	tests/test_graph \
	tests/test_group_check \
	tests/test_nn \
	tests/test_random_programs \
	tests/test_ref \
	tests/test_ref_elementwise \
	tests/test_ref_ops \
	tests/test_settings

tests_test_data_LDADD = $(LDADD) $(ZLIB_LIBS)

# Not with the thread sanitizer, which takes the barriers of OpenMP, that it does not see, for races.
if PLUGIN_CPU
if !SANITIZE_THREAD
outside_tests += tests/test_cpu_kernels tests/test_cpu_values tests/test_cpu_vm
tests_test_cpu_values_LDADD = $(inside_ldadd)
tests_test_cpu_vm_LDADD = $(inside_ldadd)
endif
endif

# Skips itself where there is no Vulkan driver.
if PLUGIN_VULKAN
outside_tests += tests/test_vulkan
tests_test_vulkan_LDADD = $(support_ldadd)
endif

# Values from outside with the scripts that made them: those need PyTorch, the tests do not.
EXTRA_DIST += tests/fixtures

if HAVE_CHECK
check_PROGRAMS += $(inside_tests) $(outside_tests)
TESTS += $(inside_tests) $(outside_tests)
endif

# Every reader of foreign bytes has a fuzz target and a corpus; without a fuzzer, tests/fuzz/driver.c runs it.
fuzz_targets = \
	tests/fuzz/fuzz_idx \
	tests/fuzz/fuzz_manifest \
	tests/fuzz/fuzz_safetensors
tests_fuzz_fuzz_idx_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz_idx.c libnn/idx.c
tests_fuzz_fuzz_idx_CPPFLAGS = $(public_cppflags) -I$(srcdir)/libnn $(ZLIB_CFLAGS)
tests_fuzz_fuzz_idx_LDADD = libcore/libfornax.la $(ZLIB_LIBS)
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz_manifest.c
tests_fuzz_fuzz_manifest_LDADD = libcore/libcore.la
tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz_safetensors.c
tests_fuzz_fuzz_safetensors_LDADD = libnn/libfornax-nn.la libcore/libfornax.la
check_PROGRAMS += $(fuzz_targets)
TESTS += $(fuzz_targets)
EXTRA_DIST += tests/corpus

# A helper of shell tests.
check_PROGRAMS += tests/support/json_values
tests_support_json_values_LDADD = $(JANSSON_LIBS)

# The program as its users run it. Training with the thread sanitizer takes long and shows nothing that test_data and
# test_graph, which have the threads, do not.
training_tests = tests/test_train.sh tests/test_train_errors.sh
dist_check_SCRIPTS += tests/test_tools.sh $(training_tests) tests/test_leaks.sh
TESTS += tests/test_tools.sh
if !SANITIZE_THREAD
TESTS += $(training_tests)
endif
dist_check_SCRIPTS += tests/test_codegen.sh tests/test_on_vulkan.sh
if !SANITIZE
TESTS += tests/test_codegen.sh tests/test_on_vulkan.sh tests/test_leaks.sh
endif

# Scripts that look at the tree and at what is installed; once is enough, without sanitizers.
tree_tests = \
	tests/check_dist.sh \
	tests/check_exports.sh \
	tests/check_headers.sh \
	tests/check_install.sh \
	tests/check_layers.sh \
	tests/check_man.sh \
	tests/check_readme.sh \
	tests/check_schema.sh \
	tests/check_style.sh

dist_check_SCRIPTS += $(tree_tests)
EXTRA_DIST += tests/drivers.supp tests/tap.sh tests/tool.sh
if !SANITIZE
TESTS += $(tree_tests)
endif

# After all others: while libtool installs a library, it is missing in the build tree.
tests/check_install.log: $(filter-out tests/check_install.log,$(TEST_LOGS))

# A backend that computes nothing, for bench/records: a module like a plugin, never installed.
check_LTLIBRARIES += tests/plugins/fornax-null.la
tests_plugins_fornax_null_la_SOURCES = tests/plugins/null.c
tests_plugins_fornax_null_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags)
tests_plugins_fornax_null_la_LDFLAGS = $(plugin_ldflags) -rpath $(abs_builddir)/tests/plugins

tests/plugins/%.json: manifests/ref.json.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(fill_manifest) -e 's|"ref"|"$*"|' \
	  -e 's|@''LIBRARY@|$(abs_builddir)/tests/plugins/.libs/fornax-$*.so|' $< > $@
check_DATA = tests/plugins/null.json tests/plugins/partial.json tests/plugins/cc.json

# The kernel compiler's C, through the host's compiler.
check_LTLIBRARIES += tests/plugins/fornax-cc.la
tests_plugins_fornax_cc_la_SOURCES = tests/plugins/cc.c
tests_plugins_fornax_cc_la_CPPFLAGS = $(tests_plugins_fornax_partial_la_CPPFLAGS)
tests_plugins_fornax_cc_la_LDFLAGS = $(plugin_ldflags) -rpath $(abs_builddir)/tests/plugins
tests_plugins_fornax_cc_la_LIBADD = plugin-sdk/libfornax-kernel.a

# The ref backend, without host memory and without some operations.
check_LTLIBRARIES += tests/plugins/fornax-partial.la
tests_plugins_fornax_partial_la_SOURCES = tests/plugins/partial.c
tests_plugins_fornax_partial_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags) \
	-DREF_LIBRARY='"$(abs_builddir)/plugins/ref/.libs/fornax-ref.so"'
tests_plugins_fornax_partial_la_LDFLAGS = $(plugin_ldflags) -rpath $(abs_builddir)/tests/plugins

# The ref backend under another name, for tests/test_train.sh.
check_LTLIBRARIES += tests/plugins/fornax-twin.la
tests_plugins_fornax_twin_la_SOURCES = $(ref_sources)
tests_plugins_fornax_twin_la_CPPFLAGS = $(sdk_cppflags) $(plugin_cppflags) -DREF_NAME='"twin"'
tests_plugins_fornax_twin_la_LDFLAGS = $(plugin_ldflags) -rpath $(abs_builddir)/tests/plugins
tests_plugins_fornax_twin_la_LIBADD = -lm

# Plugins of which each but the first breaks one rule; `borrowed` has the descriptor of a library that it depends on.
fake_variations = good name size old claim magic epoch build init open absent function undefined borrowed
fake_plugins = $(fake_variations:%=tests/plugins/fake-%.so)
tests/plugins/fake-%.so: tests/plugins/fake.c plugin-sdk/include/fornax-plugin/op-table.h
	$(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(sdk_cppflags) $(plugin_cppflags) -DFAKE_$* $(AM_CFLAGS) $(CFLAGS) -fPIC -shared \
	  -o $@ $< $(fake_$*_ldflags)
fake_borrowed_ldflags = -Ltests/plugins -Wl,--no-as-needed -l:fake-good.so -Wl,-rpath,'$$ORIGIN'
tests/plugins/fake-borrowed.so: tests/plugins/fake-good.so
check_DATA += $(fake_plugins)
EXTRA_DIST += tests/plugins/fake.c
CLEANFILES += $(check_DATA)

# The table of README.md, from what the plugins say.
readme: all
	$(AM_V_GEN)sed '/^<!-- table of ops/q' $(srcdir)/README.md > README.tmp && \
	  ./fornax ops --markdown >> README.tmp && \
	  sed -n '/^<!-- end/,$$p' $(srcdir)/README.md >> README.tmp && mv README.tmp $(srcdir)/README.md
.PHONY: readme

clean-local:
	rm -rf tests/home check_*.tmp README.tmp *.crash
