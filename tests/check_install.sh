#!/bin/sh
# What is installed works without the tree: headers, pkg-config files, library, plugins and manifests.
. "$top_srcdir/tests/tap.sh"

root=$PWD/check_install.tmp
rm -rf "$root"
ok 'make install DESTDIR' make -s -C "$top_builddir" install "DESTDIR=$root"

prefix=$root$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")
libdir=$(find "$root" -name libfornax.so -exec dirname {} \;)
PKG_CONFIG_PATH=$libdir/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

for package in fornax fornax-nn fornax-plugin; do
    ok "pkg-config knows $package" pkg-config --exists --print-errors $package
done

cat >"$root/program.c" <<'END'
#include <fornax/fornax.h>
#include <stdio.h>

int main(void) {
    fnx_device *dev = fnx_device_open(NULL);
    fnx_tensor *two = fnx_fill(dev, FNX_F32, FNX_SHAPE(3), 2.0);
    double sum = 0;
    if (fnx_tensor_item(fnx_sum(two, FNX_ALL_AXES, false), &sum)) {
        fprintf(stderr, "%s\n", fnx_last_error()->message);
        return 1;
    }
    printf("%g\n", sum);
    return sum != 6.0;
}
END
# shellcheck disable=SC2046 # a list of flags
build() { ${CC:-cc} "$root/program.c" -o "$root/program" $(pkg-config --cflags --libs fornax fornax-plugin); }
# The manifests are where only a real installation looks for them, and hold a name that is sought in the real plugin
# folder: copies with the path stand in for it.
compute_on() {
    mkdir -p "$root/manifests"
    for manifest in "$prefix"/share/fornax/plugins.d/*.json; do
        sed "s|\"\(fornax-[a-z]*\.so\)\"|\"$libdir/fornax/\1\"|" "$manifest" >"$root/manifests/${manifest##*/}"
    done
    FORNAX_DEVICE=$1 FORNAX_PLUGIN_PATH=$root/manifests LD_LIBRARY_PATH=$libdir "$root/program"
}
no_libtool_archives() { ! find "$libdir/fornax" -name '*.la' | grep .; }

ok 'a program builds with the flags of pkg-config' build
for device in $(echo "$FORNAX_TEST_DEVICES" | tr , ' '); do
    ok "it computes on $device as installed" compute_on "$device"
done
ok 'no libtool archives among the plugins' no_libtool_archives
ok 'make uninstall leaves no file' sh -c "make -s -C '$top_builddir' uninstall 'DESTDIR=$root' >/dev/null &&
    ! find '$prefix' -type f -o -type l | grep ."
rm -rf "$root"
tap_end
