#!/bin/sh
# What README.md shows is true: its program compiles and runs, its table is what the plugins say.
. "$top_srcdir/tests/tap.sh"

work=check_readme.tmp
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT

# The block after ```LANGUAGE, first of its kind.
block() { awk -v fence="\`\`\`$1" '$0 == fence { on = 1; next } on && /^```/ { exit } on' "$top_srcdir/README.md"; }

compile() {
    block c >"$work/program.c" && [ -s "$work/program.c" ] || return 1
    ${CC:-cc} -std=c17 -Wall -Wextra -Werror "$work/program.c" -o "$work/program" \
        -I"$top_srcdir/libcore/include" -I"$top_srcdir/libnn/include" -I"$top_srcdir/plugin-sdk/include" \
        -I"$top_builddir/plugin-sdk/include" -L"$top_builddir/libnn/.libs" -L"$top_builddir/libcore/.libs" \
        -lfornax-nn -lfornax -Wl,-rpath,"$top_builddir/libnn/.libs:$top_builddir/libcore/.libs"
}
run_on() { (cd "$work" && FORNAX_DEVICE=$1 ./program); }

table_is_current() {
    sed -n '/^<!-- table of ops/,/^<!-- end/p' "$top_srcdir/README.md" | sed '1d;$d' >"$work/readme"
    "$top_builddir/fornax" ops --markdown >"$work/now" || return 1
    diff "$work/readme" "$work/now" || { echo 'out of date: run make readme'; return 1; }
}

ok 'the program compiles without a warning' compile
for device in $(echo "$FORNAX_TEST_DEVICES" | tr , ' '); do
    if [ -d /usr/share/datasets/fashion-mnist ]; then
        ok "the program runs on $device" run_on "$device"
    else
        skip "the program runs on $device" 'dataset-fashion-mnist is missing'
    fi
done

# The table has a column for each plugin that has a device where it was made.
missing=
plugins=$(sed -n '/^<!-- table of ops/,/^<!-- end/s/^| operations |\(.*\)|$/\1/p' "$top_srcdir/README.md" | tr -d '|')
for plugin in $plugins; do
    "$top_builddir/fornax" devices 2>/dev/null | grep -q "^$plugin:0 .* available" || missing="$missing $plugin"
done
if [ -z "$missing" ]; then
    ok 'the table of ops is what the plugins say' table_is_current
else
    skip 'the table of ops is what the plugins say' "there is no device of$missing"
fi
tap_end
