#!/bin/sh
# How long `fornax plugins` takes, as a whole process: least and median of 21 runs. The aim is under 15 ms.
fornax=$1
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do
    begin=$(date +%s%N)
    "$fornax" plugins >/dev/null || exit
    echo $(($(date +%s%N) - begin))
done | sort -n | awk '{ t[NR] = $1 / 1e6 }
    END { printf "start-up: fornax plugins %.1f ms (least %.1f)\n", t[(NR + 1) / 2], t[1] }'
