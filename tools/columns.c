/* Cells are gathered first, because a column's width is that of its widest cell. */
#include "columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void columns_add(columns *c, const char *text) {
    if (c->n == c->capacity) {
        int capacity = c->capacity * 2 + 64;
        char **cells = realloc(c->cells, (size_t)capacity * sizeof *cells);
        if (!cells) {
            c->failed = true;
            return;
        }
        c->cells = cells, c->capacity = capacity;
    }
    char *copy = strdup(*text ? text : "-");
    if (copy) c->cells[c->n++] = copy;
    else c->failed = true;
}

void columns_format(columns *c, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL, c->failed = true;
    va_end(arguments);
    if (text) columns_add(c, text);
    free(text);
}

/* Characters on the screen: UTF-8 bytes that begin one. */
static int width_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_row(const columns *c, int row, const int *widths, bool markdown) {
    for (int i = 0; i < c->width; i++) {
        const char *text = c->cells[row * c->width + i];
        bool last = i == c->width - 1;
        if (markdown) printf("%s%s%s", i ? " " : "| ", text, last ? " |" : " |");
        else printf("%s%s%*s", i ? "  " : "", text, last ? 0 : widths[i] - width_of(text), "");
    }
    putchar('\n');
}

bool columns_print(columns *c, bool markdown) {
    int *widths = calloc((size_t)c->width, sizeof *widths);
    if (!widths) c->failed = true;
    for (int i = 0; i < c->n && widths; i++) {
        int w = width_of(c->cells[i]);
        if (w > widths[i % c->width]) widths[i % c->width] = w;
    }
    for (int row = 0; widths && row < c->n / c->width; row++) {
        print_row(c, row, widths, markdown);
        if (markdown && row == 0) {
            putchar('|');
            for (int i = 0; i < c->width; i++) fputs("---|", stdout);
            putchar('\n');
        }
    }
    for (int i = 0; i < c->n; i++) free(c->cells[i]);
    free(c->cells), free(widths);
    return !c->failed;
}

const char *columns_bytes(double bytes, char out[16]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 5; unit++) bytes /= 1024;
    snprintf(out, 16, unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}
