#!/bin/sh
# Programs of other tests, and training, on the first Vulkan device: Mesa's lavapipe, a CPU, where there is no GPU.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/tool.sh"
"$fornax" devices 2>/dev/null | grep '^vulkan:0 .* available' || { echo '1..0 # SKIP no Vulkan device'; exit 0; }
needs_data
unset CK_TAP_LOG_FILE_NAME
FORNAX_TEST_PROGRAMS=30
export FORNAX_TEST_PROGRAMS

program() { [ ! -x "$top_builddir/tests/$2" ] || FORNAX_TEST_DEVICES=$1 "$top_builddir/tests/$2"; }
losses() { "$values" step loss <"$1.log"; }
agree() { # 20 steps, within 1e-3
    train ref ref --limit 320 --model mlp --optimizer sgd &&
        train vulkan vulkan --limit 320 --model mlp --optimizer sgd || return 1
    losses ref >a && losses vulkan >b && paste a b | awk '
            { difference = ($2 - $4) / $2 }
            $1 != $3 || difference > 1e-3 || difference < -1e-3 { print; bad = 1 }
            END { exit bad || NR != 20 }'
}

ok 'what wrong programs are told' program 'vulkan?validation=on' test_bad_input
ok 'graphs' program 'vulkan?validation=on' test_graph
ok 'modules and optimizers equal PyTorch' program 'vulkan?validation=on' test_nn
ok 'values of operations' program vulkan test_ops
ok 'random programs equal ref' program 'vulkan?staging=on' test_random_programs
ok '20 steps of training equal ref' agree
tap_end
