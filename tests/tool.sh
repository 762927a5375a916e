# shellcheck shell=sh
# Sourced, after tap.sh, by the tests of the program `fornax`: a folder of its own to work in, and how it is run there.
fornax=$top_builddir/fornax
values=$top_builddir/tests/support/json_values
fashion=/usr/share/datasets/fashion-mnist
device=${FORNAX_TEST_DEVICES##*,} # the last; ref is the other one
tab=$(printf '\t')
work=$PWD/$(basename "$0" .sh).tmp
rm -rf "$work"
mkdir "$work" && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT

# exits CODE ARGUMENT...: the program exits with CODE; `out` and `err` are what it printed.
exits() {
    tool_code=$1
    shift
    "$fornax" "$@" >out 2>err
    tool_got=$?
    [ "$tool_got" = "$tool_code" ] && ! grep -q Sanitizer err && return
    echo "fornax $*: exit code $tool_got instead of $tool_code"
    cat out err
    return 1
}

# has FILE TEXT...: all these texts are in the file.
has() {
    tool_file=$1
    shift
    for tool_text in "$@"; do
        grep -q -F -e "$tool_text" "$tool_file" || { echo "no '$tool_text' in:"; cat "$tool_file"; return 1; }
    done
}

one_line() { [ "$(wc -l <"$1")" = 1 ] || { echo 'not one line:'; cat "$1"; return 1; }; }

# refuses CODE TEXT ARGUMENT...: exits with CODE and says TEXT, in one line on stderr.
refuses() {
    tool_says=$2
    tool_code=$1
    shift 2
    exits "$tool_code" "$@" && has err "$tool_says" && one_line err
}

# images FOLDER PART COUNT: the first COUNT images of a part of Fashion-MNIST and their labels, as plain IDX files.
images() {
    mkdir -p "$1"
    # shellcheck disable=SC1003 # backslashes
    tool_count=$(printf '\\%o\\%o' $(($3 / 256)) $(($3 % 256)))
    # shellcheck disable=SC2059 # escapes
    { printf "\\0\\0\\10\\3\\0\\0$tool_count\\0\\0\\0\\34\\0\\0\\0\\34"
      gzip -dc "$fashion/$2-images-idx3-ubyte.gz" 2>/dev/null | tail -c +17 | head -c $(($3 * 784))
    } >"$1/$2-images-idx3-ubyte"
    # shellcheck disable=SC2059
    { printf "\\0\\0\\10\\1\\0\\0$tool_count"
      gzip -dc "$fashion/$2-labels-idx1-ubyte.gz" 2>/dev/null | tail -c +9 | head -c "$3"
    } >"$1/$2-labels-idx1-ubyte"
}

# needs_data: the folder `data` is a small part of Fashion-MNIST; without the data set the test ends here.
needs_data() {
    [ -d "$fashion" ] || { echo '1..0 # SKIP dataset-fashion-mnist is missing'; exit 0; }
    images data train 640
    images data t10k 200
}

# train DEVICE NAME OPTION...: a training on `data`; writes NAME.out, NAME.err, NAME.log and the checkpoint NAME.st.
train() {
    tool_device=$1
    tool_name=$2
    shift 2
    "$fornax" train --data data --device "$tool_device" --batch 16 --epochs 1 --log "$tool_name.log" \
        --out "$tool_name.st" "$@" >"$tool_name.out" 2>"$tool_name.err" && return
    echo "train on $tool_device $*: exit code $?"
    cat "$tool_name.out" "$tool_name.err"
    return 1
}
