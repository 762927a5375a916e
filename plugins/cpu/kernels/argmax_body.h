/* argmax over one dtype, included by argmax.c once for each. Wants NAME, TYPE (of elements), KEY (an integer that
 * orders them), PLACE (an integer as wide as KEY) and LOAD(v), an element's key; undefines them. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FUNCTION(name) JOINED(NAME, name)

/* One row: lanes of their own winners, then the lowest place among the best of them. */
static int64_t FUNCTION(_row)(const TYPE *p, int64_t n, int64_t stride) {
    KEY best = LOAD(p[0]);
    int64_t place = 0, i = 0;
    if (stride == 1 && n >= 2 * LANES) {
        KEY key[LANES];
        PLACE at[LANES];
        const int64_t end = (n < MOST_PLACES ? n : MOST_PLACES) / LANES * LANES;
        for (int k = 0; k < LANES; k++) key[k] = LOAD(p[k]), at[k] = 0;
        for (i = LANES; i < end; i += LANES)
            for (int k = 0; k < LANES; k++) {
                const KEY v = LOAD(p[i + k]);
                at[k] = v > key[k] ? (PLACE)i : at[k];
                key[k] = v > key[k] ? v : key[k];
            }
        best = key[0], place = at[0];
        for (int k = 1; k < LANES; k++)
            if (key[k] > best || (key[k] == best && at[k] + k < place)) best = key[k], place = at[k] + k;
    }
    for (; i < n; i++) {
        const KEY v = LOAD(p[i * stride]);
        if (v > best) best = v, place = i;
    }
    return place;
}

static void FUNCTION(_columns)(const TYPE *p, int64_t n, int64_t row, int64_t columns, int64_t column, int64_t *y,
                               int64_t y_column) {
    KEY key[TILE];
    PLACE at[TILE];
    for (int64_t k = 0; k < columns; k++) key[k] = LOAD(p[k * column]), at[k] = 0;
    for (int64_t i = 1; i < n; i++) {
        const TYPE *q = p + i * row;
        for (int64_t k = 0; k < columns; k++) {
            const KEY v = LOAD(q[k * column]);
            at[k] = v > key[k] ? (PLACE)i : at[k];
            key[k] = v > key[k] ? v : key[k];
        }
    }
    for (int64_t k = 0; k < columns; k++) y[k * y_column] = at[k];
}

static void FUNCTION(_tasks)(void *context, int thread, int64_t first, int64_t last) {
    const argmax *r = context;
    (void)thread;
    walk w = walk_start(&r->kept, r->kept.n, first / r->tiles);
    for (int64_t i = first; i < last; i++) {
        const int64_t tile = i % r->tiles * TILE, columns = r->columns - tile < TILE ? r->columns - tile : TILE;
        const TYPE *x = (const TYPE *)(const void *)r->x + w.offset[X] + tile * r->column[X];
        int64_t *y = (int64_t *)(void *)r->y + w.offset[Y] + tile * r->column[Y];
        if (r->by_columns) FUNCTION(_columns)(x, r->length, r->stride, columns, r->column[X], y, r->column[Y]);
        else *y = FUNCTION(_row)(x, r->length, r->stride);
        if (i % r->tiles == r->tiles - 1) walk_next(&w);
    }
}

#undef JOINED_
#undef JOINED
#undef FUNCTION
#undef NAME
#undef TYPE
#undef KEY
#undef PLACE
#undef LOAD
