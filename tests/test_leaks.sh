#!/bin/sh
# Training under valgrind: no invalid access, no use of what is not initialized, no byte lost.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/tool.sh"
command -v valgrind >/dev/null || { echo '1..0 # SKIP valgrind is missing'; exit 0; }
needs_data

# clean KINDS OPTION...: leaks of these kinds are failures.
clean() {
    kinds=$1
    shift
    tool_program=$fornax
    fornax=under_valgrind
    exits 0 train --data data --model mlp --batch 1 --quiet --out x.st "$@"
    clean_code=$?
    fornax=$tool_program
    return "$clean_code"
}
# The script `fornax` execs the program, which valgrind follows.
under_valgrind() {
    valgrind -q --trace-children=yes --leak-check=full --show-leak-kinds="$kinds" --errors-for-leak-kinds="$kinds" \
        --error-exitcode=9 "$tool_program" "$@"
}

ok '40 steps on ref' clean definite,indirect,possible --device ref --limit 40
# Threads of cpu still run at the end: what they hold is "possibly" lost. valgrind knows no AVX-512.
if [ "$device" = cpu ]; then
    ok '1,000 steps on cpu' clean definite,indirect --device 'cpu?isa=avx2' --limit 500 --epochs 2
else
    skip '1,000 steps on cpu' 'it is not tested here'
fi
tap_end
