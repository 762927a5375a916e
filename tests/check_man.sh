#!/bin/sh
# The pages are well formed, and say of the environment and of the tool's options what the code says.
. "$top_srcdir/tests/tap.sh"

page() { # NAME: the page as made, here or shipped
    for folder in "$top_builddir" "$top_srcdir"; do
        [ ! -f "$folder/man/$1" ] || { echo "$folder/man/$1"; return; }
    done
}
# scdoc writes a paragraph macro more than it needs.
lint() { ! mandoc -Tlint -Wwarning "$1" | grep -v 'skipping paragraph macro'; }

for source in "$top_srcdir"/man/*.scd; do
    name=$(basename "$source" .scd)
    made=$(page "$name")
    if [ -z "$made" ]; then
        skip "$name is well formed" 'scdoc is missing'
    elif ! command -v mandoc >/dev/null; then
        skip "$name is well formed" 'mandoc is missing'
    else
        ok "$name is well formed" lint "$made"
    fi
done

same_environment() {
    sed -n 's/^ *{"\(FORNAX_[A-Z_]*\)", "\([^"]*\)".*/\1=\2/p' "$top_srcdir/libcore/base/env.c" | sort >check_env.code
    sed -n 's/^\*\(FORNAX_[A-Z_]*\)\*=\(.*\)/\1=\2/p' "$top_srcdir/man/fornax-env.7.scd" | sort >check_env.page
    [ -s check_env.code ] && diff check_env.code check_env.page
}

ok 'fornax-env(7) lists the variables that libcore/base/env.c reads' same_environment

same_options() {
    for command in $("$top_builddir/fornax" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        "$top_builddir/fornax" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'
    done | grep -v -x -e --help | sort -u >check_options.code
    grep -o -e '\*--[a-z-]*\*' "$top_srcdir/man/fornax.1.scd" | tr -d '*' |
        grep -v -x -e --help -e --version | sort -u >check_options.page
    [ -s check_options.code ] && diff check_options.code check_options.page
}
ok 'fornax(1) has the options that the program has' same_options
rm -f check_env.* check_options.*
tap_end
