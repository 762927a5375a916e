#!/bin/sh
# Lines have at most 120 columns and nothing blank at their end; C has no tabs. The rest is for .clang-format.
. "$top_srcdir/tests/tap.sh"
cd "$top_srcdir" || exit

# What is kept under version control; in a release, where nothing says that, what lies in the folders of sources.
sources() {
    if [ -n "$(git ls-files 2>/dev/null | head -n 1)" ]; then
        git ls-files
    else
        find check quickstart build-aux/prepare.sh bench examples libcore libnn man manifests plugin-sdk plugins \
            tests tools -type f ! -name op-table.h ! -name poly_text.c
    fi
}

text='\.([ch]|sh|mk|scd)$|(^|/)(check|quickstart)$'

# none FILES PATTERN: no line of these files has the pattern; those that do are shown as file:line:text.
none() {
    files=$(sources | grep -E "$1" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
    [ -n "$files" ] || { echo "no file is named $1"; return 1; }
    # shellcheck disable=SC2086 # names without blanks
    ! grep -n -E "$2" $files /dev/null
}

ok 'no line is longer than 120 columns' none "$text" '.{121}'
ok 'no line ends with white space' none "$text" '[[:space:]]$'
ok 'no tabs in C' none '\.[ch]$' "$(printf '\t')"
tap_end
