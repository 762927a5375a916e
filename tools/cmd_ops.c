/* fornax ops: which operations work on which backend, for which dtypes of their operands. */
#include "columns.h"
#include "tool.h"

#include <fornax/device.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct settings {
    bool markdown;
} settings;

static const option_spec options[] = {
    {"markdown", NULL, "a Markdown table; operations that work on the same dtypes share a row", OPTION_FLAG,
     offsetof(settings, markdown), 0, 0, NULL},
    {0},
};

static const struct {
    int code;
    const char *name;
} dtypes[] = {{FNX_F32, "f32"}, {FNX_F64, "f64"}, {FNX_F16, "f16"},   {FNX_BF16, "bf16"}, {FNX_I8, "i8"},
              {FNX_I16, "i16"}, {FNX_I32, "i32"}, {FNX_I64, "i64"},   {FNX_U8, "u8"},     {FNX_U16, "u16"},
              {FNX_U32, "u32"}, {FNX_U64, "u64"}, {FNX_BOOL, "bool"}, {FNX_C64, "c64"},   {FNX_C128, "c128"}};

enum { BACKENDS_MAX = 16 };

typedef struct backends {
    int n;
    fnx_device *device[BACKENDS_MAX];
    char plugin[BACKENDS_MAX][64];
} backends;

/* The first working device of each plugin. */
static int each(void *user, const fnx_device_description *d, const char *reason) {
    backends *b = user;
    bool known = b->n > 0 && !strcmp(b->plugin[b->n - 1], d->plugin); /* devices come plugin by plugin */
    if (reason || known || b->n == BACKENDS_MAX) return 0;
    snprintf(b->plugin[b->n], sizeof b->plugin[0], "%s", d->plugin);
    b->device[b->n++] = fnx_device_open(d->spec);
    return 0;
}

static void add_dtypes(columns *t, uint64_t mask) {
    char text[128] = "";
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (mask >> dtypes[i].code & 1)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "", dtypes[i].name);
    columns_add(t, text);
}

static bool same_dtypes(const backends *b, int i, int j) {
    for (int k = 0; k < b->n; k++)
        if (fnx_device_op_dtypes(b->device[k], i) != fnx_device_op_dtypes(b->device[k], j)) return false;
    return true;
}

/* The name of op i; with `group` also those after it that work on the same dtypes, and "" if i came with one before. */
static void op_names(const backends *b, int i, bool group, char *out, size_t size) {
    *out = 0;
    for (int j = 0; group && j < i; j++)
        if (same_dtypes(b, i, j)) return;
    snprintf(out, size, "%s", fnx_op_name(i));
    for (int j = i + 1; group && j < fnx_op_count(); j++)
        if (same_dtypes(b, i, j)) snprintf(out + strlen(out), size - strlen(out), ", %s", fnx_op_name(j));
}

static int run(const command *self, int argc, char **argv) {
    settings s = {0};
    uint64_t given;
    backends b = {0};
    int code = options_parse(self, argc, argv, &s, &given, 0, NULL, NULL);
    if (code >= 0) return code;
    if (fnx_device_list(each, &b)) return tool_failed(self, "");
    if (b.n == 0) {
        tool_error(self, "no device works (fornax devices says why)");
        return EXIT_FAILED;
    }
    columns t = {.width = 1 + b.n};
    columns_add(&t, s.markdown ? "operations" : "OPERATION");
    for (int k = 0; k < b.n; k++) columns_add(&t, b.plugin[k]);
    for (int i = 0; i < fnx_op_count(); i++) {
        char names[4096];
        op_names(&b, i, s.markdown, names, sizeof names);
        if (!*names) continue;
        columns_add(&t, names);
        for (int k = 0; k < b.n; k++) add_dtypes(&t, fnx_device_op_dtypes(b.device[k], i));
    }
    for (int k = 0; k < b.n; k++) fnx_device_close(b.device[k]);
    if (!columns_print(&t, s.markdown)) {
        tool_error(self, "no memory");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

const command command_ops = {
    .name = "ops",
    .arguments = "[--markdown]",
    .summary = "list operations and the backends they work on",
    .description = "Lists all operations and, for each plugin that works here, the dtypes of operands that it takes.\n"
                   "`-` means none: the operation is then taken apart into others where it can be, or is an error.",
    .examples = "  fornax ops\n"
                "  fornax ops --markdown >ops.md\n",
    .options = options,
    .run = run,
};
