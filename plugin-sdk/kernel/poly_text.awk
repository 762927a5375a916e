# Makes poly_text.c: the shared text of poly.h as a string, without comments.
BEGIN {
    print "/* Generated from poly.h. */"
    print "#include \"dialect.h\""
    print "const char kir_poly_text[] ="
}
/^\/\* ---- the shared text/ { inside = 1; next }
/^\/\* ---- the end of it/ { inside = 0 }
inside {
    if (comment && !sub(/^.*\*\//, "")) next
    comment = 0
    gsub(/\/\*[^*]*\*\//, "")
    comment = sub(/\/\*.*$/, "")
    sub(/ *$/, "")
    if ($0 != "") printf "    \"%s\\n\"\n", $0
}
END { print "    \"\";" }
