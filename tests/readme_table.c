/* Prints the table of ops and backends that stands in README.md, from what the plugins say of themselves.
 *
 *     readme_table NAME=PLUGIN.so ... */
#include "ops/op.h"
#include "support/backend.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BACKENDS = 8, CELL = 64 };

typedef struct row { /* ops with the same cells share one line of the table */
    char cells[MOST_BACKENDS * CELL];
    char ops[1024];
} row;

static const struct {
    const char *name;
    int code;
} dtypes[] = {{"f32", FNX_F32}, {"f64", FNX_F64}, {"i32", FNX_I32}, {"i64", FNX_I64}, {"u8", FNX_U8}, {"bool", FNX_BOOL}};

/* The operand dtypes for which the backend runs the op, in a group or as a kernel. */
static uint64_t supported(const backend *b, const fnx_op_info *op) {
    uint64_t mask = 0;
    fnx_group_caps caps = {.struct_size = sizeof caps};
    if (b->groups && b->groups->capabilities(b->device, &caps) == FNX_OK)
        for (uint32_t i = 0; i < caps.n_ops; i++) {
            const fnx_op_caps *c = FNX_AT(fnx_op_caps, caps.ops, caps.op_bytes, i);
            if (c->op == op->id) mask |= op->operands ? c->dtypes_in : c->dtypes_out;
        }
    for (uint32_t i = 0; i < b->table->n_kernels; i++) {
        const fnx_kernel *k = FNX_AT(fnx_kernel, b->table->kernels, b->table->kernel_bytes, i);
        if (k->op == op->id) mask |= k->dtypes_in;
    }
    return mask & op->dtypes;
}

static void describe(const backend *b, const fnx_op_info *op, char *cell) {
    uint64_t mask = supported(b, op);
    size_t used = 0;
    cell[0] = 0;
    if (op->class == FNX_CLASS_VIEW) mask = op->dtypes; /* strides and copies: every backend has them */
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (mask >> dtypes[i].code & 1)
            used += (size_t)snprintf(cell + used, CELL - used, "%s%s", used ? " " : "", dtypes[i].name);
    if (!used) snprintf(cell, CELL, "%s", op->decompose ? "decomposed" : "-");
}

int main(int argc, char **argv) {
    static backend backends[MOST_BACKENDS];
    static row rows[FNX_OP_LIMIT];
    int n = argc - 1, n_rows = 0;
    if (n < 1 || n > MOST_BACKENDS) return fprintf(stderr, "usage: %s NAME=PLUGIN.so ...\n", argv[0]), 2;

    printf("| operations |");
    for (int i = 0; i < n; i++) {
        char *path = strchr(argv[i + 1], '=');
        if (!path) return fprintf(stderr, "%s: not NAME=PLUGIN.so\n", argv[i + 1]), 2;
        *path++ = 0;
        if (backend_open(&backends[i], path, "")) return fprintf(stderr, "%s: %s\n", path, backend_error()), 1;
        printf(" %s |", argv[i + 1]);
    }
    printf("\n|---|");
    for (int i = 0; i < n; i++) printf("---|");

    for (int id = 1; id < FNX_OP_LIMIT; id++) {
        const fnx_op_info *op = &fnx_ops[id];
        row now = {0}, *same = rows;
        if (!op->name) continue;
        for (int i = 0; i < n; i++) {
            char cell[CELL];
            size_t used = strlen(now.cells);
            describe(&backends[i], op, cell);
            snprintf(now.cells + used, sizeof now.cells - used, " %s |", cell);
        }
        while (same < rows + n_rows && strcmp(same->cells, now.cells) != 0) same++;
        if (same == rows + n_rows) *same = now, n_rows++;
        size_t used = strlen(same->ops);
        snprintf(same->ops + used, sizeof same->ops - used, "%s%s", used ? ", " : "", op->name);
    }
    for (int i = 0; i < n_rows; i++) printf("\n| %s |%s", rows[i].ops, rows[i].cells);
    printf("\n");
    for (int i = 0; i < n; i++) backend_close(&backends[i]);
    return 0;
}
