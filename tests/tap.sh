# shellcheck shell=sh
# Sourced by the shell tests: one line of the Test Anything Protocol per test, as Automake's driver reads it.
tap_count=0

# ok TEXT COMMAND...: a test passes if the command succeeds; what it prints is shown if it does not.
ok() {
    tap_text=$1
    shift
    tap_count=$((tap_count + 1))
    if tap_output=$("$@" 2>&1); then
        echo "ok $tap_count - $tap_text"
    else
        echo "not ok $tap_count - $tap_text"
        printf '%s\n' "$tap_output" | sed 's/^/# /'
    fi
}

skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

tap_end() { echo "1..$tap_count"; }
