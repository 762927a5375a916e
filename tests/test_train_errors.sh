#!/bin/sh
# What `fornax train` and `eval` cannot use they refuse in one line, and nothing that was there is lost.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/tool.sh"
needs_data

# trains CODE OPTION...: a short training of the small network exits with CODE.
trains() {
    trains_code=$1
    shift
    exits "$trains_code" train --data data --device "$device" --model mlp --batch 16 --epochs 1 --limit 64 "$@"
}

# ---- what goes wrong amid a run --------------------------------------------------------------------------------------

# A limit on the size of files: the program sees what it sees when a disk is full, an error of write.
full_disk() {
    trains 0 --out kept.st && cp kept.st before.st || return 1
    (ulimit -f 200 && trains 1 --seed 2 --out kept.st) || return 1
    has err 'the checkpoint was not written: ' 'what was there before is unchanged' && cmp before.st kept.st &&
        [ "$(echo kept.st*)" = kept.st ]
}
full_log() { trains 0 --log /dev/full --out log.st && has err "--log '/dev/full': " 'training goes on without it'; }
diverges() {
    trains 1 --limit 320 --optimizer sgd --lr 1e6 --weight-decay 1e6 --out wild.st &&
        has err 'a smaller --lr may help' && [ ! -e wild.st ]
}
no_memory() {
    FORNAX_MEMORY_LIMIT=100k trains 1 --out tight.st && has err 'epoch 1, step 1: out of device memory' &&
        [ ! -e tight.st ]
}

ok 'a full disk: the checkpoint that was there stays as it was' full_disk
if [ -c /dev/full ]; then
    ok 'a log that cannot be written does not stop the run' full_log
else
    skip 'a log that cannot be written does not stop the run' 'no /dev/full'
fi
ok 'a loss that is no number ends the run, without a checkpoint' diverges
ok 'too little device memory' no_memory

# ---- checkpoints -----------------------------------------------------------------------------------------------------

good=good.st
trains 0 --out $good

# altered FROM TO TEXT COMMAND...: the checkpoint, its header altered, is refused in one line.
altered() {
    LC_ALL=C sed "s/$1/$2/" $good >altered.st
    text=$3
    shift 3
    ! cmp -s $good altered.st && refuses 1 "$text" "$@" altered.st
}
resume='train --epochs 2 --resume'

ok 'eval refuses a checkpoint of another architecture' altered '"train.model":"mlp"' '"train.model":"cnn"' \
    'is a checkpoint of another architecture or optimizer: missing' eval
# shellcheck disable=SC2086 # words
ok '--resume refuses it' altered '"train.model":"mlp"' '"train.model":"cnn"' \
    'is a checkpoint of another architecture or optimizer: missing' $resume
# shellcheck disable=SC2086
ok '--resume refuses the state of another optimizer' altered '"train.optimizer":"adam"' '"train.optimizer":"sgd" ' \
    'holds the state of optimizer adam, not sgd' $resume
ok 'a number that cannot be' altered '"train.batch":"16"' '"train.batch":"-6"' "has '-6' for train.batch" eval
ok 'a text that would act on the terminal' altered '"train.model":"mlp"' '"train.model":"\\nm"' \
    'has control characters for train.model' eval
ok 'data that overlaps' altered '"data_offsets":\[0,' '"data_offsets":[1,' \
    'its data has another size than its dtype and shape' eval
ok '--resume with another model is wrong usage' refuses 2 '--model cannot change' train --resume $good --model cnn
ok '--resume of a run that is over is wrong usage' refuses 2 'has all its 1 epochs: --epochs 2' train --resume $good

# bad TEXT FILE COMMAND...: FILE, which is what the command prints, is no checkpoint.
bad() {
    text=$1
    file=$2
    shift 2
    "$@" >"$file"
    ok "no checkpoint: $file" refuses 1 "$text" eval "$file"
}
bad 'ends within the length of its header' empty true
bad 'ends within its header' cut_early head -c 60 $good
bad 'its data lies outside of the file' cut_late head -c 100000 $good
bad 'there are bytes that belong to no tensor' longer cat $good $good
bad 'its header is longer than 100 MB' huge printf '\377\377\377\377\377\377\377\177{}'
bad 'its header is longer than 100 MB' text echo 'this is no checkpoint at all'
bad 'its metadata lacks train.model' foreign printf '\2\0\0\0\0\0\0\0{}'
ok 'no checkpoint: a folder' refuses 1 'is no regular file' eval data
ok 'no checkpoint: no file' refuses 1 '/nowhere: No such file or directory' eval /nowhere

# ---- data ------------------------------------------------------------------------------------------------------------

# broken TEXT FILE COMMAND...: the data with FILE replaced by what the command prints is refused.
broken() {
    text=$1
    file=$2
    shift 2
    rm -rf bad && cp -r data bad && "$@" >"bad/$file"
    trains 1 --data bad --out x && has err "$text" && one_line err && [ ! -e x ]
}
packed() { gzip -c "data/$images" | "$@"; }
half_images() { printf '\0\0\10\3\0\0\0\310\0\0\0\34\0\0\0\16' && head -c $((200 * 28 * 14)) /dev/zero; }

images=train-images-idx3-ubyte
ok 'images that are cut off' broken 'ends after 499984 of 501760 elements' $images head -c 500000 data/$images
ok 'images without a whole header' broken 'ends within its header' $images head -c 10 data/$images
ok 'images with more at the end' broken 'has bytes after its last element' $images cat data/$images data/$images
ok 'images that are something else' broken 'the magic number is' $images cat $good
ok 'images that claim to be huge' broken 'its sizes make more than' $images \
    printf '\0\0\10\3\377\377\377\377\377\377\377\377\377\377\377\377'
ok 'labels of another count' broken '640 images' train-labels-idx1-ubyte cat data/t10k-labels-idx1-ubyte
ok 'gzip that is cut off' broken 'the compressed data is c' $images.gz packed head -c 100000
ok 'gzip with wrong bytes' broken 'the compressed data is corrupt' $images.gz packed env LC_ALL=C sed 's/a/b/g'
ok 'test images of another size' broken 'its images are 28 x 14, the network takes 28 x 28' \
    t10k-images-idx3-ubyte half_images
tap_end
