/* Copies between views of any strides: how operands that a kernel cannot take as they are get packed, and results
 * unpacked. Works on tiles of two axes, the inner one of each side, so that a transposition stays in cache. */
#include "kernels/kernel.h"
#include "kernels/walk.h"

#include <string.h>

enum { FROM = 0, TO = 1, TILE = 16 };

typedef struct copy {
    walk_axes outer; /* all but the last two */
    int64_t rows, columns, blocks;
    int64_t row[2], column[2]; /* strides of the two sides */
    const char *from;
    char *to;
    uint32_t bytes;
} copy;

#define DEFINE_TILE(name, type) \
    static void name(const copy *c, const char *from_bytes, char *to_bytes, int64_t rows) { \
        const type *from = (const type *)(const void *)from_bytes; \
        type *to = (type *)(void *)to_bytes; \
        for (int64_t first = 0; first < c->columns; first += TILE) { \
            const int64_t last = first + TILE < c->columns ? first + TILE : c->columns; \
            for (int64_t i = 0; i < rows; i++) { \
                const type *p = from + i * c->row[FROM]; \
                type *q = to + i * c->row[TO]; \
                if (c->column[TO] == 1) \
                    for (int64_t k = first; k < last; k++) q[k] = p[k * c->column[FROM]]; \
                else \
                    for (int64_t k = first; k < last; k++) q[k * c->column[TO]] = p[k * c->column[FROM]]; \
            } \
        } \
    }

DEFINE_TILE(copy_tile_1, uint8_t)
DEFINE_TILE(copy_tile_4, uint32_t)
DEFINE_TILE(copy_tile_8, uint64_t)

/* Blocks of up to TILE rows. */
static void copy_blocks(void *context, int thread, int64_t first, int64_t last) {
    const copy *c = context;
    (void)thread;
    walk w = walk_start(&c->outer, c->outer.n, first / c->blocks);
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i % c->blocks * TILE, rows = c->rows - row < TILE ? c->rows - row : TILE;
        const char *from = c->from + (w.offset[FROM] + row * c->row[FROM]) * c->bytes;
        char *to = c->to + (w.offset[TO] + row * c->row[TO]) * c->bytes;
        if (c->column[FROM] == 1 && c->column[TO] == 1)
            for (int64_t k = 0; k < rows; k++)
                memcpy(to + k * c->row[TO] * c->bytes, from + k * c->row[FROM] * c->bytes,
                       (size_t)c->columns * c->bytes);
        else if (c->bytes == 4) copy_tile_4(c, from, to, rows);
        else if (c->bytes == 8) copy_tile_8(c, from, to, rows);
        else copy_tile_1(c, from, to, rows);
        if ((i + 1) % c->blocks == 0) walk_next(&w);
    }
}

/* Every element of `to`; `from` may be broadcast. They do not overlap. */
void CPU_LEVEL(cpu_copy)(cpu_device *device, const cpu_view *from, const cpu_view *to) {
    copy c = {.from = from->base, .to = to->base, .bytes = cpu_element_bytes(to->dtype), .rows = 1, .columns = 1};
    const int64_t count = cpu_view_count(to);
    if (count == 0) return;
    for (uint32_t d = 0; d < to->rank; d++)
        walk_add(&c.outer, to->size[d], from->size[d] == 1 ? 0 : from->stride[d], to->stride[d], 0);
    walk_sort(&c.outer, TO);
    walk_merge(&c.outer);
    if (c.outer.n > 0) { /* columns: where writing is densest */
        const uint32_t last = --c.outer.n;
        c.columns = c.outer.size[last];
        for (uint32_t side = 0; side < 2; side++) c.column[side] = c.outer.stride[last][side];
    }
    if (c.outer.n > 0) { /* rows: where reading is */
        uint32_t best = c.outer.n - 1;
        for (uint32_t i = 0; i < c.outer.n && c.column[FROM] != 1; i++)
            if (walk_magnitude(c.outer.stride[i][FROM]) < walk_magnitude(c.outer.stride[best][FROM])) best = i;
        for (; best + 1 < c.outer.n; best++) walk_swap(&c.outer, best, best + 1);
        const uint32_t last = --c.outer.n;
        c.rows = c.outer.size[last];
        for (uint32_t side = 0; side < 2; side++) c.row[side] = c.outer.stride[last][side];
    }
    c.blocks = (c.rows + TILE - 1) / TILE;
    const bool straight = c.column[FROM] == 1 && c.column[TO] == 1;
    cpu_parallel(device, (double)count * c.bytes * (straight ? 0.1 : 0.25),
                 walk_count(&c.outer, 0, c.outer.n) * c.blocks, copy_blocks, &c);
}
