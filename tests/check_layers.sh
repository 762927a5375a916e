#!/bin/sh
# A folder of libcore includes only itself and the folders beneath it; other parts of the tree include none of them.
. "$top_srcdir/tests/tap.sh"

# Who may include what. A new edge is a decision: it belongs here and in CONTRIBUTING.md.
may_include() {
    case $1 in
    base) echo '' ;;
    registry | memory) echo base ;;
    tensor) echo base memory ;;
    ops) echo base memory tensor ;;
    autodiff) echo base memory tensor ops ;;
    graph) echo base memory tensor ops autodiff ;;
    dispatch) echo base registry memory tensor ops autodiff graph ;;
    *) return 1 ;;
    esac
}

# The table of ops names the gradients that autodiff has for them: the one line that looks up.
exception='ops/op\.c:[0-9]*:#include "autodiff/gradients\.h"'

# The quoted includes of the files under a folder: "file:line:#include "folder/...".
quoted_includes() { grep -rnE --include='*.[ch]' '^ *# *include +"' "$1"; }

stays_in_its_layer() {
    folder=$1
    allowed=$(may_include "$folder") ||
        { echo "unknown folder: say in tests/check_layers.sh what it may include"; return 1; }
    upward=$(quoted_includes "$top_srcdir/libcore/$folder" | grep -v "$exception")
    for each in $folder $allowed; do upward=$(printf '%s' "$upward" | grep -v "include *\"$each/"); done
    [ -z "$upward" ] || { printf '%s\n' "$upward"; return 1; }
}

uses_no_folder_of_libcore() {
    ! quoted_includes "$1" | grep -E '"(\.\./)*(libcore|base|registry|memory|tensor|ops|autodiff|graph|dispatch)/'
}

public_headers_stand_alone() { ! quoted_includes "$1"; }

for path in "$top_srcdir"/libcore/*/; do
    folder=$(basename "$path")
    [ "$folder" = include ] || ok "libcore/$folder includes nothing above it" stays_in_its_layer "$folder"
done
for part in libnn plugins tools examples plugin-sdk; do
    ok "$part includes no folder of libcore" uses_no_folder_of_libcore "$top_srcdir/$part"
done
for headers in libcore/include libnn/include plugin-sdk/include; do
    ok "$headers includes only installed headers" public_headers_stand_alone "$top_srcdir/$headers"
done
tap_end
