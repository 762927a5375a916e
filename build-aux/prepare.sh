# shellcheck shell=sh
# Sourced by ./quickstart and ./check: what both need to install and to build. The caller has set `program`, for
# messages, and stands in the root of the tree.

build_packages='build-essential autoconf automake libtool pkg-config libjansson-dev libdnnl-dev zlib1g-dev scdoc
libvulkan-dev glslang-dev spirv-tools'
data_packages='dataset-fashion-mnist'
test_packages='check mandoc valgrind mesa-vulkan-drivers vulkan-validationlayers'

say() { printf '%s: %s\n' "$program" "$*"; }
die() { printf '%s: %s\n' "$program" "$*" >&2; exit 1; }
seconds() { date +%s; }

missing_packages() {
    for package in "$@"; do
        case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) in
        ii*) ;;
        *) printf ' %s' "$package" ;;
        esac
    done
}

# Installs those of the packages that are missing; says so, and does nothing if none is.
install_packages() {
    command -v dpkg-query >/dev/null || { say "no dpkg here: install by hand: $*"; return 0; }
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            die "missing packages, and no sudo to install them; as root: apt-get install$missing"
        sudo=sudo
    fi
    say "installing$missing (apt-get${sudo:+, with sudo})"
    $sudo apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
    # shellcheck disable=SC2086 # a list of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        die "apt-get could not install$missing"
}

cores() { nproc 2>/dev/null || echo 2; }

# Runs a command with its output in a file, and shows the end of it if the command fails.
logged() {
    log=$1
    shift
    if "$@" >"$log" 2>&1; then return 0; fi
    grep -E 'error:|Error [0-9]|undefined reference|warning:' "$log" | head -n 20 >&2
    say "failed: $* (the whole output: $log)" >&2
    return 1
}

# configure_tree DIR ARGUMENT...: makes ./configure if it is missing, and runs it in DIR unless that was done with the
# same arguments. Later changes of configure.ac and Makefile.am are followed by make itself.
configure_tree() {
    dir=$1
    shift
    mkdir -p "$dir" || return 1
    if [ ! -x configure ]; then
        say 'generating ./configure (autoreconf)'
        logged "$dir/autoreconf.log" autoreconf -i || return 1
    fi
    if [ -f "$dir/Makefile" ] && [ "$(cat "$dir/configured-with" 2>/dev/null)" = "$*" ]; then return 0; fi
    say "configuring $dir${1:+ ($*)}"
    root=$PWD
    (cd "$dir" && logged configure.log "$root/configure" "$@") || return 1
    sed -n 's/^  \(plugin .* no, .*\)/\1/p' "$dir/configure.log" | while read -r line; do say "left out: $line"; done
    printf '%s\n' "$*" >"$dir/configured-with"
}
