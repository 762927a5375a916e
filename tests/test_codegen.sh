#!/bin/sh
# The kernel compiler through the host's C compiler (tests/plugins/cc.c): programs of other tests on that device.
# What they print is shown where one fails.
. "$top_srcdir/tests/tap.sh"
FORNAX_PLUGIN_PATH=$FORNAX_PLUGIN_PATH:$top_builddir/tests/plugins
FORNAX_TEST_DEVICES=cc
FORNAX_TEST_PROGRAMS=20
export FORNAX_PLUGIN_PATH FORNAX_TEST_DEVICES FORNAX_TEST_PROGRAMS
unset CK_TAP_LOG_FILE_NAME

program() { [ ! -x "$top_builddir/tests/$1" ] || "$top_builddir/tests/$1"; }
against_ref() { FORNAX_TEST_CPU=$top_builddir/tests/plugins/.libs/fornax-cc.so program "$1"; }

ok 'what wrong programs are told' program test_bad_input
ok 'graphs' program test_graph
ok 'modules and optimizers equal PyTorch' program test_nn
ok 'random programs equal ref' program test_random_programs
if [ -x "$top_builddir/tests/test_cpu_vm" ]; then
    ok 'elementwise groups equal ref' against_ref test_cpu_vm
    ok 'reductions, products, convolutions, pooling, gathers and scatters equal ref' against_ref test_cpu_kernels
fi
tap_end
