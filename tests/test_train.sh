#!/bin/sh
# `fornax train` and `eval` on a part of Fashion-MNIST: devices agree, runs repeat, stop and go on, plugins come from
# elsewhere.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/tool.sh"
needs_data

losses() { "$values" step loss <"$1.log"; }

# agree LIMIT STEPS A B: logs A and B have as many steps, with losses that differ by at most LIMIT, relative.
agree() {
    losses "$3" >a && losses "$4" >b || return 1
    paste a b | awk -v limit="$1" -v steps="$2" '
        { difference = $2 - $4 }
        $1 != $3 || difference > limit * $2 || -difference > limit * $2 { print "step " $1 ": " $2 ", " $4; bad = 1 }
        END { if (NR != steps) print NR " steps"; exit bad || NR != steps }'
}
same() { # A B: the same digits in log and checkpoint
    losses "$1" >a && losses "$2" >b && [ -s a ] && cmp a b && cmp "$1.st" "$2.st"
}

for optimizer in sgd:1e-4 adam:1e-3; do
    limit=${optimizer#*:}
    optimizer=${optimizer%:*}
    ok "a CNN trains on ref with $optimizer" train ref "ref-$optimizer" --limit 320 --optimizer "$optimizer"
    if [ "$device" = ref ]; then
        skip "20 steps on a device agree with ref, $optimizer" 'there is only ref'
    else
        ok "it trains on $device with $optimizer" \
            train "$device" "device-$optimizer" --limit 320 --optimizer "$optimizer"
        ok "20 steps on $device agree with ref within $limit, $optimizer" \
            agree "$limit" 20 "device-$optimizer" "ref-$optimizer"
    fi
done

# repeats DEVICE OPTION...
repeats() { train "$1" once --limit 320 "$2" "$3" && train "$1" twice --limit 320 "$2" "$3" && same once twice; }
other_seed() {
    train "$device" other --model mlp --limit 320 --seed 1 && losses other >a && losses once >b && ! cmp -s a b
}

ok 'two runs on ref give the same digits' repeats ref --model mlp
if [ "$device" = cpu ]; then ok 'two runs with two threads give the same digits' repeats 'cpu?threads=2' --model cnn; fi
ok "two runs on $device give the same digits" repeats "$device" --model mlp
ok 'another seed gives other digits' other_seed

# ---- what a run leaves -----------------------------------------------------------------------------------------------

log_lines() {
    train "$device" run --model mlp --epochs 2 --every 7 || return 1
    losses run | awk '$1 != NR { print; bad = 1 } END { exit bad || NR != 80 }' &&
        "$values" epoch epoch_seconds train_loss train_accuracy test_loss test_accuracy idle_bytes peak_bytes \
            <run.log >epochs &&
        awk '$1 != NR || $2 <= 0 || $6 <= 0.2 || $8 < $7 { print; bad = 1 } END { exit bad || NR != 2 }' epochs ||
        return 1
    losses run | awk -v mean="$(head -n 1 epochs | cut -f 3)" \
        'NR <= 40 { sum += $2 } END { exit (sum / 40 / mean - 1) ^ 2 > 1e-12 }'
}
progress_lines() {
    has run.out 'mlp, 101770 parameters, on ' '640 samples, batch 16, adam, lr 0.001, seed 0' 'checkpoint: run.st' ||
        return 1
    grep -q '^epoch 1/2  step 7/40  loss [0-9.]*  accuracy [0-9.]* %  [0-9]* images/s  [0-9:]* left$' run.out &&
        [ "$(grep -c '^epoch [12]/2  loss .* test accuracy .* images/s$' run.out)" = 2 ] &&
        [ "$(grep -c '  step ' run.out)" = 10 ]
}
learns() { "$values" epoch test_accuracy <run.log | awk '{ last = $2 } END { exit last < 0.5 }'; }
eval_same() { # the result, from the line of accuracy on, is the same text
    exits 0 eval --device "$device" run.st &&
        sed -n '/^test accuracy/,/^checkpoint/p' run.out | grep -v ^checkpoint >trained &&
        [ -s trained ] && cmp trained out
}
eval_json() {
    exits 0 eval --device "$device" --json run.st && "$values" model epoch samples accuracy <out >a &&
        "$values" epoch test_accuracy <run.log | awk 'END { print "mlp", 2, 200, $2 }' >b &&
        paste a b | awk '$1 != $5 || $2 != $6 || $3 != $7 || ($4 - $8) ^ 2 > 1e-12 { print; exit 1 }'
}
eval_fashion() { exits 0 eval --device "$device" --data fashion-mnist run.st && has out ' of 10000)' '  Ankle boot '; }
quiet_run() {
    train "$device" quiet --model mlp --quiet --limit 64 && grep -q '^test accuracy [0-9.]* %$' quiet.out &&
        one_line quiet.out
}
terminal() {
    run="TERM=xterm '$fornax' train --data data --device $device --model mlp --epochs 2 --out tty.st"
    script -qec "$run" tty.out >out </dev/null || return 1
    return_key=$(printf '\r')
    has tty.out "${return_key}epoch 1/2  step " 'left' 'test accuracy'
}

ok 'the log has a line of JSON per step and per epoch' log_lines
ok 'lines of progress, off a terminal' progress_lines
ok 'the network learns' learns
ok 'eval prints the accuracy that train printed, per class too' eval_same
ok 'eval --json' eval_json
ok 'eval of another data set names its classes' eval_fashion
ok '--quiet prints the accuracy only' quiet_run
if command -v script >/dev/null; then
    ok 'a live line on a terminal' terminal
else
    skip 'a live line on a terminal' 'no script(1)'
fi

# ---- stopping and going on -------------------------------------------------------------------------------------------

# start NAME OPTION...: a run in the background (`child`) that heeds SIGINT, with a log of at least six steps.
start() {
    name=$1
    shift
    rm -f "$name".*
    env --default-signal=INT "$fornax" train --data data --batch 16 --every 1 --log "$name.log" --out "$name.st" "$@" \
        >"$name.out" 2>"$name.err" &
    child=$!
    trap 'kill -KILL "$child" 2>/dev/null' EXIT
    tries=0
    until [ -f "$name.log" ] && [ "$(wc -l <"$name.log")" -ge 6 ]; do
        kill -0 "$child" && [ $((tries += 1)) -lt 600 ] || { cat "$name.err"; return 1; }
        sleep 0.05
    done
}

# ended CODES: the run in the background ends with one of them.
ended() {
    wait "$child"
    code=$?
    trap - EXIT
    case " $1 " in *" $code "*) ;; *) echo "exit code $code"; return 1 ;; esac
}

# goes_on CODE SIGNAL DEVICE OPTION...: a run that is stopped wherever it happens to be exits with CODE; after going on
# to the end of that epoch it has the digits of an uninterrupted one.
goes_on() {
    stops_with=$1
    signal=$2
    where=$3
    shift 3
    start part --device "$where" --epochs 500 "$@" && kill -"$signal" "$child" && ended "$stops_with" || return 1
    has part.err 'stopping after this step' || return 1
    hint='to go on: fornax train --resume part.st'
    epoch=$(sed -n "s/^stopped in epoch \([0-9]*\) after step [0-9]* of [0-9]*; $hint\$/\1/p" part.out)
    [ -n "$epoch" ] || { cat part.out; return 1; }
    exits 0 train --resume part.st --device "$where" --epochs "$epoch" --log part.log &&
        has out 'going on after epoch' && train "$where" whole --epochs "$epoch" "$@" && same part whole
}
at_once() { # both signals are there before the program can look at either
    start twice --device "$device" --epochs 500 --model mlp && kill -STOP "$child" && kill -INT "$child" &&
        kill -TERM "$child" && kill -CONT "$child" || return 1
    ended '130 143' && ! grep 'stopped in epoch' twice.out
}

ok "Ctrl-C on $device: exit code 130, and --resume reaches the numbers of an uninterrupted run" \
    goes_on 130 INT "$device"
ok 'the same on ref, amid an epoch' goes_on 130 INT ref --limit 160
ok 'SIGTERM, with the state of sgd with momentum' goes_on 143 TERM "$device" --model mlp --optimizer sgd --momentum 0.9
ok 'a second signal ends it at once' at_once

# ---- plugins from elsewhere ------------------------------------------------------------------------------------------

# A copy of the ref backend under another name, in a folder that nothing but $FORNAX_PLUGIN_PATH names.
mkdir elsewhere && cp "$top_builddir/tests/plugins/.libs/fornax-twin.so" elsewhere
sed -e 's|"ref"|"twin"|' -e 's|"library": .*|"library": "fornax-twin.so",|' \
    "$top_builddir/manifests/ref.json" >twin.json
with_twin() { FORNAX_PLUGIN_PATH=$work/elsewhere:$FORNAX_PLUGIN_PATH "$@"; }

twin_trains() {
    cp twin.json elsewhere && with_twin train twin twin --model mlp --limit 320 &&
        train ref original --model mlp --limit 320 && same twin original &&
        with_twin exits 0 plugins --why twin && has out "$work/elsewhere/twin.json (FORNAX_PLUGIN_PATH): found"
}
twin_unannounced() {
    rm -f elsewhere/twin.json
    with_twin exits 1 train --device twin --out x &&
        has err "there is no plugin 'twin'" "ref: $top_builddir/manifests/ref.json (FORNAX_PLUGIN_PATH): " \
            "looked in $work/elsewhere (FORNAX_PLUGIN_PATH): 0 manifests" 'looked in /etc/fornax/plugins.d' \
            'devices that work here: '
}
twin_unusable() { # two candidates, and neither will do
    mkdir -p further && sed 's|fornax-twin.so|absent.so|' twin.json >elsewhere/twin.json &&
        sed 's|"epoch": [0-9]*|"epoch": 99999|' twin.json >further/twin.json || return 1
    FORNAX_PLUGIN_PATH=$work/elsewhere:$work/further exits 1 train --device twin --out x &&
        has err 'plugin twin cannot be used' "$work/elsewhere/twin.json (FORNAX_PLUGIN_PATH): " absent.so \
            "$work/further/twin.json (FORNAX_PLUGIN_PATH): " 99999
}

ok 'a plugin of another name in another folder is found through FORNAX_PLUGIN_PATH and trains' twin_trains
ok 'without its manifest the error lists every candidate and every folder' twin_unannounced
ok 'with two manifests that will not do it says why of both' twin_unusable
tap_end
