# Makes poly_text.c: the shared text of each file as a string, kir_<name of the file>_text, without comments. C takes
# what GLSL calls a double from a constant without a suffix, so poly64.h has none and gets it here.
BEGIN { print "#include \"dialect.h\"" }
FNR == 1 {
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.h$/, "", name)
}
/^\/\* ---- the shared text/ {
    printf "/* Generated from %s.h. */\nconst char kir_%s_text[] =\n", name, name
    inside = 1
    next
}
/^\/\* ---- the end of it/ {
    print "    \"\";"
    inside = 0
}
inside {
    if (comment && !sub(/^.*\*\//, "")) next
    comment = 0
    gsub(/\/\*[^*]*\*\//, "")
    comment = sub(/\/\*.*$/, "")
    sub(/ *$/, "")
    if (name == "poly64") gsub(/[0-9]+\.[0-9]+(e-?[0-9]+)?/, "&lf")
    if ($0 != "") printf "    \"%s\\n\"\n", $0
}
