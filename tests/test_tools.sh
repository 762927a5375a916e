#!/bin/sh
# What the program says and exits with: help, wrong usage, lists.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/tool.sh"

# ---- help and wrong usage --------------------------------------------------------------------------------------------

commands='train eval devices plugins ops'

no_arguments() { exits 2 && has err 'usage: fornax COMMAND' && [ ! -s out ]; }
general_help() {
    exits 0 --help && [ ! -s err ] || return 1
    for command in $commands; do has out "  $command " || return 1; done
}
help_of() {
    exits 0 "$1" --help && has out "usage: fornax $1 " options: examples: --help && mv out help &&
        exits 0 help "$1" && cmp out help
}
version() { exits 0 --version && grep -q -x 'fornax [0-9.]*' out; }

ok 'without arguments it shows its usage and exits with 2' no_arguments
ok '--help lists the commands' general_help
for command in $commands; do ok "$command has help" help_of "$command"; done
ok '--version' version

while IFS='|' read -r text arguments; do
    # shellcheck disable=SC2086 # words
    ok "wrong usage: fornax $arguments" refuses 2 "$text" $arguments
done <<'END'
unknown command 'fly'; there are: train eval devices plugins ops|fly
unknown command 'fly'; there are: train eval devices plugins ops|help fly
unknown option '--fly'; there are: --model --data --device --epochs|train --fly 1
unknown option '--fly'; there are: --json --why|plugins --fly
unknown option '-x'|train -x
ambiguous option '--l'; there are:|train --l 1
--model 'rnn': expected one of cnn, mlp|train --model rnn
--optimizer 'lion': expected one of sgd, adam, adamw|train --optimizer lion
--epochs needs a value|train --epochs
--epochs '0': expected a whole number from 1 to|train --epochs 0
--epochs '3x': expected a whole number from 1 to|train --epochs 3x
--batch '1000001': expected a whole number from 1 to 1000000|train --batch 1000001
--batch '99999999999999999999': expected a whole number|train --batch 99999999999999999999
--momentum '1.5': expected a number from 0 to 1|train --momentum 1.5
--lr 'nan': expected a number from 0 to|train --lr nan
--quiet takes no value|train --quiet=yes
unexpected argument 'now'|train now
FILE is missing|eval
unexpected argument 'b'|eval a b
--json and --why cannot be combined|plugins --json --why ref
END

unknown_device() {
    exits 1 train --device gpu9 --out x &&
        has err "there is no plugin 'gpu9'" 'ref:' 'looked in' 'devices that work here:' 'ref:0'
}
unknown_address() {
    exits 1 train --device ref:7 --out x &&
        has err 'there is one device, 0; "7" names none' 'while opening device ref:7'
}
unknown_key() { exits 1 train --device 'ref?fly=1' --out x && has err "no option 'fly'" 'devices that work here:'; }

ok 'an unknown device: the candidates, where was looked, and the devices that work' unknown_device
ok 'an unknown address of a device' unknown_address
ok 'an unknown option of a device' unknown_key
ok 'a checkpoint in a folder that is not there is refused before training' \
    refuses 1 "in '/nowhere'" train --out /nowhere/x
ok 'a checkpoint that is a folder is refused before training' refuses 1 'is a directory' train --out /
ok 'data that is not there' refuses 1 "--data '/nowhere'" train --data /nowhere

full_output() { "$fornax" plugins >/dev/full 2>err; [ $? = 1 ] && has err 'writing the output'; }
if [ -c /dev/full ]; then
    ok 'output that cannot be written is a failure' full_output
else
    skip 'output that cannot be written is a failure' 'no /dev/full'
fi

# ---- lists -----------------------------------------------------------------------------------------------------------

plugins_text() { exits 0 plugins && has out NAME STATE "$top_builddir/manifests/ref.json" && [ ! -s err ]; }
plugins_json() {
    exits 0 plugins --json && "$values" name kind state shadowed manifest reason <out >rows &&
        has rows "ref${tab}backend${tab}found${tab}false${tab}$top_builddir/manifests/ref.json${tab}"
}
plugins_why() {
    exits 0 plugins --why ref && has out 'plugin ref can be used' &&
        exits 1 plugins --why gpu9 && has out "there is no plugin 'gpu9'" 'looked in'
}
devices_text() { exits 0 devices && has out DEVICE 'ref:0 ' available; }
devices_json() {
    exits 0 devices --json && "$values" device plugin available <out >rows && has rows "ref:0${tab}ref${tab}true"
}
ops_text() { exits 0 ops && has out OPERATION ref && grep -q '^add .*f32 f64 i32 i64 u8' out; }
ops_markdown() { exits 0 ops --markdown && has out '| operations |' && grep -q '^|---' out; }
no_plugins() { FORNAX_PLUGIN_PATH=$work exits 1 plugins && has err 'no plugin was found'; }

ok 'plugins' plugins_text
ok 'plugins --json' plugins_json
ok 'plugins --why' plugins_why
ok 'devices' devices_text
ok 'devices --json' devices_json
ok 'ops' ops_text
ok 'ops --markdown' ops_markdown
ok 'no plugins at all is a failure that says where to look' no_plugins

tap_end
