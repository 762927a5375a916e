#!/bin/sh
# Every file that is kept under version control is in the release, and every source is in some local.mk.
. "$top_srcdir/tests/tap.sh"

git -C "$top_srcdir" ls-files >/dev/null 2>&1 && [ -n "$(git -C "$top_srcdir" ls-files | head -n 1)" ] ||
    { echo '1..0 # SKIP not a checkout'; exit 0; }

# What a release does not need.
not_shipped='(^|/)\.gitignore$'

everything_ships() {
    (cd "$top_builddir" && make -s distdir "distdir=$PWD/check_dist.tmp" >/dev/null) || return 1
    git -C "$top_srcdir" ls-files | grep -v -E "$not_shipped" | while read -r file; do
        [ -e "$PWD/check_dist.tmp/$file" ] || echo "not in the release: $file (name it in its folder's local.mk)"
    done >check_dist.missing
    chmod -R u+w check_dist.tmp
    rm -rf check_dist.tmp
    cat check_dist.missing
    [ ! -s check_dist.missing ]
}

ok 'every file of the tree is in the release' everything_ships
rm -f check_dist.missing
tap_end
