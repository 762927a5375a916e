/* Average pooling over one dtype, included by avg_pool.c once for each. Wants NAME and TYPE, and undefines them.
 * Sums are doubles, LANES channels of them at once. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FUNCTION(name) JOINED(NAME, name)

static inline __attribute__((always_inline)) void FUNCTION(_mean)(const pool *p, const TYPE *q, const cpu_range *k,
                                                                  double divisor, TYPE *to, int64_t channel,
                                                                  int64_t to_channel, int lanes) {
    double sum[LANES];
    for (int l = 0; l < lanes; l++) sum[l] = 0;
    for (int64_t i = k[0].first; i < k[0].last; i++)
        for (int64_t j = k[1].first; j < k[1].last; j++)
            for (int64_t m = k[2].first; m < k[2].last; m++) {
                const TYPE *v = q + i * p->x.stride[2] + j * p->x.stride[3] + m * p->x.stride[4];
                for (int l = 0; l < lanes; l++) sum[l] += (double)v[l * channel];
            }
    for (int l = 0; l < lanes; l++) to[l * to_channel] = (TYPE)(sum[l] / divisor);
}

/* Rows of y. */
static void FUNCTION(_rows)(void *context, int thread, int64_t first, int64_t last) {
    const pool *p = context;
    const cpu_view *x = &p->x, *y = &p->y;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        int64_t t[3] = {i / y->size[3] % y->size[2], i % y->size[3], 0};
        const int64_t n = i / y->size[3] / y->size[2];
        TYPE *to = (TYPE *)(void *)y->base + n * y->stride[0] + t[0] * y->stride[2] + t[1] * y->stride[3];
        for (; t[2] < y->size[4]; t[2]++, to += y->stride[4]) {
            const TYPE *q = (const TYPE *)(const void *)x->base + n * x->stride[0];
            cpu_range k[3];
            for (uint32_t d = 0; d < 3; d++) {
                k[d] = cpu_inside(&p->window, d, t[d], x->size[2 + d]);
                q += (t[d] * p->window.stride[d] - p->window.low[d]) * x->stride[2 + d];
            }
            const double divisor = divisor_at(p, t);
            for (int64_t c = 0; c < x->size[1]; c += LANES) {
                const TYPE *from = q + c * x->stride[1];
                TYPE *at = to + c * y->stride[1];
                if (x->stride[1] == 1 && y->stride[1] == 1 && x->size[1] - c >= LANES)
                    FUNCTION(_mean)(p, from, k, divisor, at, 1, 1, LANES);
                else
                    FUNCTION(_mean)
                    (p, from, k, divisor, at, x->stride[1], y->stride[1], (int)cpu_least(LANES, x->size[1] - c));
            }
        }
    }
}

static inline __attribute__((always_inline)) void FUNCTION(_share)(const pool *p, const TYPE *dy, const cpu_range *t,
                                                                   TYPE *to, int64_t channel, int64_t to_channel,
                                                                   int lanes) {
    double sum[LANES];
    for (int l = 0; l < lanes; l++) sum[l] = 0;
    for (int64_t i = t[0].first; i < t[0].last; i++)
        for (int64_t j = t[1].first; j < t[1].last; j++)
            for (int64_t m = t[2].first; m < t[2].last; m++) {
                const TYPE *v = dy + i * p->y.stride[2] + j * p->y.stride[3] + m * p->y.stride[4];
                const double divisor = divisor_at(p, (int64_t[]){i, j, m});
                for (int l = 0; l < lanes; l++) sum[l] += (double)v[l * channel] / divisor;
            }
    for (int l = 0; l < lanes; l++) to[l * to_channel] = (TYPE)sum[l];
}

/* Rows of dx. */
static void FUNCTION(_grad_rows)(void *context, int thread, int64_t first, int64_t last) {
    const pool *p = context;
    const cpu_view *x = &p->x, *y = &p->y;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t n = i / x->size[3] / x->size[2], s0 = i / x->size[3] % x->size[2], s1 = i % x->size[3];
        TYPE *to = (TYPE *)(void *)x->base + n * x->stride[0] + s0 * x->stride[2] + s1 * x->stride[3];
        const TYPE *dy = (const TYPE *)(const void *)y->base + n * y->stride[0];
        cpu_range t[3] = {cpu_covering(&p->window, 0, s0, y->size[2]), cpu_covering(&p->window, 1, s1, y->size[3])};
        for (int64_t s2 = 0; s2 < x->size[4]; s2++, to += x->stride[4]) {
            t[2] = cpu_covering(&p->window, 2, s2, y->size[4]);
            for (int64_t c = 0; c < x->size[1]; c += LANES) {
                const TYPE *from = dy + c * y->stride[1];
                TYPE *at = to + c * x->stride[1];
                if (x->stride[1] == 1 && y->stride[1] == 1 && x->size[1] - c >= LANES)
                    FUNCTION(_share)(p, from, t, at, 1, 1, LANES);
                else
                    FUNCTION(_share)(p, from, t, at, y->stride[1], x->stride[1], (int)cpu_least(LANES, x->size[1] - c));
            }
        }
    }
}

#undef JOINED_
#undef JOINED
#undef FUNCTION
#undef NAME
#undef TYPE
