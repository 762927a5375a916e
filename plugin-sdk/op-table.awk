# libcore/ops/ops.def -> <fornax-plugin/op-table.h>: id, name and attribute bytes of every op.
BEGIN {
    print "/* Generated from libcore/ops/ops.def: permanent id, name, bytes of structural attributes. */"
    print "#ifndef FORNAX_PLUGIN_OP_TABLE_H\n#define FORNAX_PLUGIN_OP_TABLE_H\n"
    printf "#define FNX_OP_TABLE(OP)"
}
/^OP\(/ {
    split(substr($0, 4), field, /, */)
    attr = field[6]
    sub(/\)$/, "", attr)
    if (attr ~ /^sizeof/ && attr !~ /\)$/) attr = attr ")"
    printf " \\\n    OP(%s, %s, %s)", field[1], field[2], attr
}
END { print "\n\n#endif" }
