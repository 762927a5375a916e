/* Max pooling over one dtype, included by max_pool.c once for each. Wants NAME, TYPE, PLACE (an integer as wide), SUM
 * (TYPE, unsigned for integers, so that sums wrap) and BEATS(a, b): is a, which came later, the winner over b?
 * Undefines them. `lanes` channels are taken at once; where it is the constant LANES, loops over them are unrolled. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FUNCTION(name) JOINED(NAME, name)
#undef LANES
#define LANES ((int)(64 / sizeof(TYPE)))

/* The winners of one window; q is channel `first` of its first element, `channel` apart from the next. */
static inline __attribute__((always_inline)) void FUNCTION(_window)(const pool *p, const TYPE *q, const cpu_range *k,
                                                                    int64_t channel, int lanes, TYPE *best,
                                                                    PLACE *place) {
    const cpu_window *w = &p->window;
    bool is_first = true;
    for (int l = 0; l < lanes; l++) best[l] = 0, place[l] = 0;
    for (int64_t i = k[0].first; i < k[0].last; i++)
        for (int64_t j = k[1].first; j < k[1].last; j++)
            for (int64_t m = k[2].first; m < k[2].last; m++) {
                const TYPE *v = q + i * p->x.stride[2] + j * p->x.stride[3] + m * p->x.stride[4];
                const PLACE number = (PLACE)((i * w->size[1] + j) * w->size[2] + m);
                if (is_first)
                    for (int l = 0; l < lanes; l++) best[l] = v[l * channel], place[l] = number;
                else
                    for (int l = 0; l < lanes; l++) {
                        const TYPE a = v[l * channel], b = best[l];
                        place[l] = BEATS(a, b) ? number : place[l];
                        best[l] = BEATS(a, b) ? a : b;
                    }
                is_first = false;
            }
}

/* Writes what was found for `n` positions of a row of y, `lanes` channels each. */
static inline __attribute__((always_inline)) void FUNCTION(_flush)(const pool *p, int64_t offset, int64_t where_offset,
                                                                   const TYPE (*best)[LANES],
                                                                   const PLACE (*place)[LANES], int64_t n, int lanes) {
    TYPE *y = (TYPE *)(void *)p->y.base + offset;
    const int64_t row = p->y.stride[4], channel = p->y.stride[1];
    if (channel == 1)
        for (int64_t i = 0; i < n; i++)
            for (int l = 0; l < lanes; l++) y[i * row + l] = best[i][l];
    else
        for (int l = 0; l < lanes; l++)
            for (int64_t i = 0; i < n; i++) y[i * row + l * channel] = best[i][l];
    if (!p->wants_where) return;
    const int64_t where_row = p->where.stride[4], where_channel = p->where.stride[1];
    if (p->where.dtype == FNX_U8) {
        uint8_t *to = (uint8_t *)p->where.base + where_offset;
        if (where_channel == 1)
            for (int64_t i = 0; i < n; i++)
                for (int l = 0; l < lanes; l++) to[i * where_row + l] = (uint8_t)place[i][l];
        else
            for (int l = 0; l < lanes; l++)
                for (int64_t i = 0; i < n; i++) to[i * where_row + l * where_channel] = (uint8_t)place[i][l];
    } else {
        int32_t *to = (int32_t *)(void *)p->where.base + where_offset;
        for (int64_t i = 0; i < n; i++)
            for (int l = 0; l < lanes; l++) to[i * where_row + l * where_channel] = (int32_t)place[i][l];
    }
}

/* One row of y, `lanes` channels of it. */
static inline __attribute__((always_inline)) void FUNCTION(_row)(const pool *p, const int64_t *at, const cpu_range *k,
                                                                 int64_t first, int64_t channel, int lanes) {
    const cpu_view *x = &p->x;
    const TYPE *base = (const TYPE *)(const void *)x->base + at[0] * x->stride[0] + first * x->stride[1];
    TYPE best[ROW][LANES];
    PLACE place[ROW][LANES];
    for (uint32_t d = 0; d < 2; d++) base += (at[1 + d] * p->window.stride[d] - p->window.low[d]) * x->stride[2 + d];
    for (int64_t from = 0; from < p->y.size[4]; from += ROW) {
        const int64_t n = cpu_least(ROW, p->y.size[4] - from);
        for (int64_t i = 0; i < n; i++) {
            const int64_t start = (from + i) * p->window.stride[2] - p->window.low[2];
            const cpu_range range[3] = {k[0], k[1], cpu_inside(&p->window, 2, from + i, x->size[4])};
            FUNCTION(_window)(p, base + start * x->stride[4], range, channel, lanes, best[i], place[i]);
        }
        FUNCTION(_flush)
        (p, offset_of(&p->y, at, first) + from * p->y.stride[4],
         p->wants_where ? offset_of(&p->where, at, first) + from * p->where.stride[4] : 0, best, place, n, lanes);
    }
}

static void FUNCTION(_rows)(void *context, int thread, int64_t first, int64_t last) {
    const pool *p = context;
    const int64_t channels = p->y.size[1];
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t at[3] = {i / p->y.size[3] / p->y.size[2], i / p->y.size[3] % p->y.size[2], i % p->y.size[3]};
        const cpu_range k[2] = {cpu_inside(&p->window, 0, at[1], p->x.size[2]),
                                cpu_inside(&p->window, 1, at[2], p->x.size[3])};
        for (int64_t c = 0; c < channels; c += LANES) {
            if (p->x.stride[1] == 1 && channels - c >= LANES) FUNCTION(_row)(p, at, k, c, 1, LANES);
            else FUNCTION(_row)(p, at, k, c, p->x.stride[1], (int)cpu_least(LANES, channels - c));
        }
    }
}

/* One element of dx, `lanes` channels of it: the dy of the windows that it won. */
static inline __attribute__((always_inline)) void FUNCTION(_grad)(const pool *p, const cpu_range *t, const int64_t *s,
                                                                  const TYPE *dy, const void *where, TYPE *to,
                                                                  int64_t channel, int lanes) {
    const cpu_window *w = &p->window;
    SUM sum[LANES];
    for (int l = 0; l < lanes; l++) sum[l] = 0;
    for (int64_t i = t[0].first; i < t[0].last; i++)
        for (int64_t j = t[1].first; j < t[1].last; j++)
            for (int64_t m = t[2].first; m < t[2].last; m++) {
                const int64_t a = s[0] + w->low[0] - i * w->stride[0], b = s[1] + w->low[1] - j * w->stride[1];
                const int64_t number = (a * w->size[1] + b) * w->size[2] + s[2] + w->low[2] - m * w->stride[2];
                const TYPE *v = dy + i * p->y.stride[2] + j * p->y.stride[3] + m * p->y.stride[4];
                const int64_t o = i * p->where.stride[2] + j * p->where.stride[3] + m * p->where.stride[4];
                PLACE place[LANES]; /* as wide as TYPE: compilers want a mask of one width for vectors */
                if (p->where.dtype == FNX_U8)
                    for (int l = 0; l < lanes; l++) place[l] = ((const uint8_t *)where)[o + l];
                else
                    for (int l = 0; l < lanes; l++) place[l] = ((const int32_t *)where)[o + l];
#pragma omp simd /* or the loop would be unrolled before it could become vectors */
                for (int l = 0; l < lanes; l++) sum[l] += place[l] == (PLACE)number ? (SUM)v[l] : (SUM)0;
            }
    for (int l = 0; l < lanes; l++) to[l * channel] = (TYPE)sum[l];
}

/* Rows of dx. dy and `where` have channels next to each other. */
static void FUNCTION(_grad_rows)(void *context, int thread, int64_t first, int64_t last) {
    const pool *p = context;
    const cpu_view *x = &p->x;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        int64_t s[3] = {i / x->size[3] % x->size[2], i % x->size[3], 0};
        const int64_t n = i / x->size[3] / x->size[2], channels = x->size[1];
        cpu_range t[3] = {cpu_covering(&p->window, 0, s[0], p->y.size[2]),
                          cpu_covering(&p->window, 1, s[1], p->y.size[3])};
        TYPE *to = (TYPE *)(void *)x->base + n * x->stride[0] + s[0] * x->stride[2] + s[1] * x->stride[3];
        const TYPE *dy = (const TYPE *)(const void *)p->y.base + n * p->y.stride[0];
        const char *where = p->where.base + n * p->where.stride[0] * cpu_element_bytes(p->where.dtype);
        for (s[2] = 0; s[2] < x->size[4]; s[2]++, to += x->stride[4]) {
            t[2] = cpu_covering(&p->window, 2, s[2], p->y.size[4]);
            for (int64_t c = 0; c < channels; c += LANES) {
                const void *places = where + c * cpu_element_bytes(p->where.dtype);
                if (x->stride[1] == 1 && channels - c >= LANES)
                    FUNCTION(_grad)(p, t, s, dy + c, places, to + c, 1, LANES);
                else
                    FUNCTION(_grad)
                    (p, t, s, dy + c, places, to + c * x->stride[1], x->stride[1], (int)cpu_least(LANES, channels - c));
            }
        }
    }
}

#undef JOINED_
#undef JOINED
#undef FUNCTION
#undef NAME
#undef TYPE
#undef PLACE
#undef SUM
#undef BEATS
