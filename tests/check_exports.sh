#!/bin/sh
# What the libraries export, need, and weigh.
. "$top_srcdir/tests/tap.sh"

exports() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }'; }
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# each_matches PATTERN: every line of standard input does, and there is one.
each_matches() {
    awk -v pattern="$1" '{ n++ } $0 !~ pattern { print "unexpected: " $0; bad = 1 } END { exit bad || n == 0 }'
}
only_exports() { exports "$1" | each_matches "$2"; }
only_needs() { needed "$1" | each_matches "$2"; }
needs_no_fornax() { ! needed "$1" | grep '^libfornax'; }
weighs_at_most() {
    strip -o "$3" "$1" && bytes=$(wc -c <"$3") && rm -f "$3" && echo "$bytes bytes" && [ "$bytes" -le "$2" ]
}
flagged() { readelf -d "$1" | grep -q -E "$2"; }
has_no_executable_stack() { ! readelf -lW "$1" | grep -E 'GNU_STACK' | grep -q 'E'; }

core=$top_builddir/libcore/.libs/libfornax.so.0
nn=$top_builddir/libnn/.libs/libfornax-nn.so.0
system='^(lib(c|m)\.so\.6|ld-linux.*'

ok 'libfornax exports only fnx_*' only_exports "$core" '^(fnx_|FORNAX_0$)'
ok 'libfornax needs only libc, libm and jansson' only_needs "$core" "$system|libjansson\.so\.4)\$"
ok 'libfornax-nn exports only fnx_*' only_exports "$nn" '^(fnx_|FORNAX_NN_0$)'
ok 'libfornax-nn needs only libc, libm, libz, jansson and libfornax' \
    only_needs "$nn" "$system|libz\.so\.1|libjansson\.so\.4|libfornax\.so\.0)\$"
ok 'libfornax has at most 1.5 MB stripped' weighs_at_most "$core" 1500000 check_exports.stripped
for library in "$core" "$nn" "$top_builddir"/plugins/*/.libs/fornax-*.so; do
    name=${library##*/}
    ok "$name binds its symbols at load" flagged "$library" '(BIND_NOW|FLAGS.*NOW)'
    ok "$name has no executable stack" has_no_executable_stack "$library"
done
for plugin in "$top_builddir"/plugins/*/.libs/fornax-*.so; do
    name=${plugin##*/}
    ok "$name exports only fornax_plugin_v0" only_exports "$plugin" '^fornax_plugin_v0$'
    ok "$name does not need libfornax" needs_no_fornax "$plugin"
    ok "$name is never unloaded" flagged "$plugin" 'NODELETE'
done
tap_end
