#!/bin/sh
# Installed headers stand alone, in C17 and C++17, without warnings; structs of the plugin ABI have no implicit padding.
. "$top_srcdir/tests/tap.sh"

flags="-fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I$top_builddir/plugin-sdk/include
    -I$top_srcdir/plugin-sdk/include -I$top_srcdir/libcore/include -I$top_srcdir/libnn/include"

compile() { # LANGUAGE STANDARD HEADER [FLAG]
    # shellcheck disable=SC2086 # a list of flags
    printf '#include <%s>\n' "$3" | ${CXX:-c++} -x "$1" -std="$2" $flags ${4-} -
}

command -v "${CXX:-c++}" >/dev/null || { echo '1..0 # SKIP no C++ compiler'; exit 0; }

for path in "$top_srcdir"/plugin-sdk/include/fornax-plugin/*.h; do
    header=fornax-plugin/${path##*/}
    ok "$header is C17 without padding" compile c c17 "$header" -Wpadded
    ok "$header is C++17 without padding" compile c++ c++17 "$header" -Wpadded
done
for folder in libcore/include libnn/include; do
    for header in $(cd "$top_srcdir/$folder" && find fornax -name '*.h' | sort); do
        ok "$header is C17" compile c c17 "$header"
        ok "$header is C++17" compile c++ c++17 "$header"
    done
done
tap_end
