#!/bin/sh
# How long `make` takes after a layer of the example was edited: median of 5. The aim is under a second.
builddir=$1
source=$2
program=$3
for _ in 1 2 3 4 5; do
    touch "$source"
    begin=$(date +%s%N)
    make -s -C "$builddir" "$program" >/dev/null || exit
    echo $(($(date +%s%N) - begin))
done | sort -n | awk '{ t[NR] = $1 / 1e6 } END { printf "edit, make: %.0f ms\n", t[(NR + 1) / 2] }'
