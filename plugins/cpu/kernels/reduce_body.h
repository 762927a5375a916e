/* The loops of one reduction over one dtype, included by reduce.c once for each. Wants
 *
 *     NAME         of the functions          LOAD(v)       an element as a LANE
 *     TYPE         of elements               JOIN(a, b)    of two LANEs or two TOTALs
 *     LANE         of short partial results  START         the LANE and the TOTAL of nothing
 *     TOTAL        of long ones              STORE(t)      a TOTAL as an element
 *
 * and undefines them. Partial results of f32 sums are floats for at most 64 additions in a row, then doubles: the
 * error stays within 4 sqrt(K) eps whatever K is. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FUNCTION(name) JOINED(NAME, name)

/* n elements, `stride` apart. */
static TOTAL FUNCTION(_run)(const TYPE *p, int64_t n, int64_t stride) {
    TOTAL total = START;
    int64_t i = 0;
    if (stride == 1 && n >= LANES) {
        while (i + LANES <= n) {
            LANE lane[LANES];
            const int64_t last = n - i < 64 * LANES ? n - LANES : i + 63 * LANES;
            for (int k = 0; k < LANES; k++) lane[k] = START;
            for (; i <= last; i += LANES)
                for (int k = 0; k < LANES; k++) lane[k] = JOIN(lane[k], LOAD(p[i + k]));
            for (int half = LANES / 2; half > 0; half /= 2)
                for (int k = 0; k < half; k++) lane[k] = JOIN(lane[k], lane[k + half]);
            total = JOIN(total, (TOTAL)lane[0]);
        }
    }
    while (i < n) {
        LANE lane[4] = {START, START, START, START};
        const int64_t last = n - i < 64 ? n : i + 64;
        for (; i + 4 <= last; i += 4)
            for (int k = 0; k < 4; k++) lane[k] = JOIN(lane[k], LOAD(p[(i + k) * stride]));
        for (; i < last; i++) lane[0] = JOIN(lane[0], LOAD(p[i * stride]));
        lane[0] = JOIN(JOIN(lane[0], lane[1]), JOIN(lane[2], lane[3]));
        total = JOIN(total, (TOTAL)lane[0]);
    }
    return total;
}

/* Adds n rows to the totals of up to TILE columns. */
static void FUNCTION(_columns)(const TYPE *p, int64_t n, int64_t row, int64_t columns, int64_t column, TOTAL *total) {
    for (int64_t i = 0; i < n;) {
        LANE lane[TILE];
        const int64_t last = n - i < 256 ? n : i + 256;
        for (int64_t k = 0; k < columns; k++) lane[k] = START;
        for (; i + 8 <= last; i += 8) {
            const TYPE *q = p + i * row;
            if (column == 1)
                for (int64_t k = 0; k < columns; k++) {
                    const LANE a =
                        JOIN(JOIN(LOAD(q[k]), LOAD(q[k + row])), JOIN(LOAD(q[k + 2 * row]), LOAD(q[k + 3 * row])));
                    const LANE b = JOIN(JOIN(LOAD(q[k + 4 * row]), LOAD(q[k + 5 * row])),
                                        JOIN(LOAD(q[k + 6 * row]), LOAD(q[k + 7 * row])));
                    lane[k] = JOIN(lane[k], JOIN(a, b));
                }
            else
                for (int64_t r = 0; r < 8; r++)
                    for (int64_t k = 0; k < columns; k++) lane[k] = JOIN(lane[k], LOAD(q[k * column + r * row]));
        }
        for (; i < last; i++)
            for (int64_t k = 0; k < columns; k++) lane[k] = JOIN(lane[k], LOAD(p[i * row + k * column]));
        for (int64_t k = 0; k < columns; k++) total[k] = JOIN(total[k], (TOTAL)lane[k]);
    }
}

/* Columns of one tile, over elements `first` to `last` - 1 of the reduced axes. */
static void FUNCTION(_tile)(const reduce *r, const TYPE *p, int64_t first, int64_t last, TOTAL *total,
                            int64_t columns) {
    const uint32_t outer = r->reduced.n - 1;
    const int64_t length = r->reduced.size[outer], stride = r->reduced.stride[outer][X];
    walk w = walk_start(&r->reduced, outer, first / length);
    for (int64_t k = 0; k < columns; k++) total[k] = START;
    for (int64_t i = first; i < last;) {
        const int64_t from = i % length, n = length - from < last - i ? length - from : last - i;
        FUNCTION(_columns)(p + w.offset[X] + from * stride, n, stride, columns, r->column[X], total);
        i += n;
        walk_next(&w);
    }
}

/* One row, the same. */
static TOTAL FUNCTION(_row)(const reduce *r, const TYPE *p, int64_t first, int64_t last) {
    const uint32_t outer = r->reduced.n - 1;
    const int64_t length = r->reduced.size[outer], stride = r->reduced.stride[outer][X];
    walk w = walk_start(&r->reduced, outer, first / length);
    TOTAL total = START;
    for (int64_t i = first; i < last;) {
        const int64_t from = i % length, n = length - from < last - i ? length - from : last - i;
        total = JOIN(total, FUNCTION(_run)(p + w.offset[X] + from * stride, n, stride));
        i += n;
        walk_next(&w);
    }
    return total;
}

/* Tasks of one chunk each: all results are written at once. */
static void FUNCTION(_whole)(void *context, int thread, int64_t first, int64_t last) {
    const reduce *r = context;
    (void)thread;
    TYPE *y = (TYPE *)(void *)r->y;
    const TYPE *x = (const TYPE *)(const void *)r->x;
    walk w = walk_start(&r->kept, r->kept.n, first / r->tiles);
    for (int64_t i = first; i < last; i++) {
        if (!r->by_columns) {
            y[w.offset[Y]] = (TYPE)STORE(FUNCTION(_row)(r, x + w.offset[X], 0, r->length));
            walk_next(&w);
            continue;
        }
        TOTAL total[TILE];
        const int64_t at = i % r->tiles * TILE, columns = r->columns - at < TILE ? r->columns - at : TILE;
        FUNCTION(_tile)(r, x + w.offset[X] + at * r->column[X], 0, r->length, total, columns);
        for (int64_t k = 0; k < columns; k++) y[w.offset[Y] + (at + k) * r->column[Y]] = (TYPE)STORE(total[k]);
        if (i % r->tiles == r->tiles - 1) walk_next(&w);
    }
}

/* Tasks of many chunks: chunk by chunk, into totals that are joined in order afterwards. */
static void FUNCTION(_chunk)(void *context, int thread, int64_t first, int64_t last) {
    const reduce *r = context;
    (void)thread;
    const TYPE *x = (const TYPE *)(const void *)r->x;
    for (int64_t i = first; i < last; i++) {
        const int64_t task = i / r->chunks, chunk = i % r->chunks;
        const int64_t from = r->length / r->chunks * chunk;
        const int64_t to = chunk == r->chunks - 1 ? r->length : from + r->length / r->chunks;
        const walk w = walk_start(&r->kept, r->kept.n, task / r->tiles);
        TOTAL *total = (TOTAL *)r->totals + i * r->width;
        if (r->by_columns) {
            const int64_t at = task % r->tiles * TILE, columns = r->columns - at < TILE ? r->columns - at : TILE;
            FUNCTION(_tile)(r, x + w.offset[X] + at * r->column[X], from, to, total, columns);
        } else {
            *total = FUNCTION(_row)(r, x + w.offset[X], from, to);
        }
    }
}

static void FUNCTION(_reduce)(cpu_device *device, reduce *r) {
    const double ns = (double)(r->tasks * r->width) * (double)r->length * sizeof(TYPE) * 0.06;
    TYPE *y = (TYPE *)(void *)r->y;
    if (r->length == 0 || r->chunks == 1) {
        cpu_parallel(device, ns, r->tasks, FUNCTION(_whole), r);
        return;
    }
    TOTAL totals[MOST_CHUNKS * TILE];
    r->totals = totals;
    cpu_parallel(device, ns, r->tasks * r->chunks, FUNCTION(_chunk), r);
    for (int64_t task = 0; task < r->tasks; task++) {
        const walk w = walk_start(&r->kept, r->kept.n, task / r->tiles);
        const int64_t at = r->by_columns ? task % r->tiles * TILE : 0;
        for (int64_t k = 0; k < r->width && (!r->by_columns || at + k < r->columns); k++) {
            TOTAL total = totals[task * r->chunks * r->width + k];
            for (int64_t chunk = 1; chunk < r->chunks; chunk++)
                total = JOIN(total, totals[(task * r->chunks + chunk) * r->width + k]);
            y[w.offset[Y] + (at + k) * r->column[Y]] = (TYPE)STORE(total);
        }
    }
}

#undef JOINED_
#undef JOINED
#undef FUNCTION
#undef NAME
#undef TYPE
#undef LANE
#undef TOTAL
#undef LOAD
#undef JOIN
#undef START
#undef STORE
