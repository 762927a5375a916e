#!/bin/sh
# One epoch of the Fashion-MNIST CNN: fornax against PyTorch, alternating in one run, two threads each, the best epoch
# of either. Without a Python that has PyTorch only fornax is measured.
#
#     epoch.sh FORNAX [ROUNDS]        TORCH_PYTHON=python3 with torch, BENCH_DEVICE (default cpu?threads=2), BENCH_DATA
#
# Memory is the peak of the resident set above the idle process: fornax with the device open, PyTorch after its import.
fornax=$1
rounds=${2:-3}
here=$(dirname "$0")
device=${BENCH_DEVICE:-cpu?threads=2}
data=${BENCH_DATA:-/usr/share/datasets/fashion-mnist}
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT

run_fornax() {
    "$fornax" train --quiet --model cnn --data "$data" --device "$device" --epochs 2 --log "$work/log" \
        --out "$work/out.safetensors" >"$work/output" || exit
    grep epoch_seconds "$work/log" >>"$work/fornax"
}
run_torch() { "$TORCH_PYTHON" "$here/peers/fashion_torch.py" 2 "$data" >>"$work/torch" || exit; }

# summary FILE: "seconds MiB accuracy" of the fastest epoch, the largest peak, the last accuracy
summary() {
    awk 'function field(name) {
             return match($0, "\"" name "\": *[0-9.e+-]+") ? substr($0, RSTART + length(name) + 3) + 0 : 0
         }
         { s = field("epoch_seconds"); m = field("peak_bytes") - field("idle_bytes"); a = field("test_accuracy") }
         NR == 1 || s < best { best = s }
         m > most { most = m }
         END { printf "%.3f %.1f %.4f\n", best, most / 1048576, a }' "$1"
}

round=0
while [ $((round += 1)) -le "$rounds" ]; do
    run_fornax
    [ -z "${TORCH_PYTHON-}" ] || run_torch
done

# shellcheck disable=SC2046 # three words
set -- $(summary "$work/fornax")
printf 'fornax    epoch %6.2f s   memory %6.0f MiB   accuracy after 2 epochs %s\n' "$1" "$2" "$3"
if [ -z "${TORCH_PYTHON-}" ]; then
    echo 'PyTorch   not measured: TORCH_PYTHON names no python3 that has it'
    exit
fi
# shellcheck disable=SC2046
set -- "$1" "$2" $(summary "$work/torch")
printf 'PyTorch   epoch %6.2f s   memory %6.0f MiB   accuracy after 2 epochs %s\n' "$3" "$4" "$5"
echo "$1 $2 $3 $4" | awk '{ printf "ratio     epoch %6.2f (aim: at most 0.60)   memory %.2f\n", $1 / $3, $2 / $4 }'
