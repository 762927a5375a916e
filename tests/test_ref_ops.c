/* Reductions, matrix products, windows and indexes of the reference backend: against hand-written values and against
 * definitions written out independently here. */
#include "support/ref.h"

#define FILL(array, seed_value) \
    do { \
        uint64_t seed_ = (seed_value); \
        for (size_t i_ = 0; i_ < COUNT(array); i_++) (array)[i_] = noise(&seed_); \
    } while (0)

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void reduce(uint16_t op, uint32_t axes, uint16_t dtype, const int64_t *sizes, const int64_t *strides,
                   const void *x, void *y) {
    const fnx_attr_reduce attr = {axes, 0};
    int64_t kept[3];
    fragment *f = fragment_create();
    for (uint32_t d = 0; d < 3; d++) kept[d] = (axes >> d) & 1 ? 1 : sizes[d];
    fragment_shape s = fragment_shape_of(f, 3, sizes);
    uint32_t in = strides ? fragment_input_strided(f, dtype, s, strides, x) : fragment_input(f, dtype, s, x);
    uint32_t out = fragment_output(f, op == FNX_OP_argmax ? FNX_I64 : dtype, fragment_shape_of(f, 3, kept), y);
    fragment_node(f, op, &attr, sizeof attr, REFS(in), REFS(out));
    run(f);
}

static const int64_t sizes_232[] = {2, 3, 2};
static const double x_232[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

START_TEST(sum_runs_over_any_axes) {
    const struct {
        uint32_t axes, n;
        double y[6];
    } rows[] = {
        {4, 6, {3, 7, 11, 15, 19, 23}},
        {2, 4, {9, 12, 27, 30}},
        {1, 6, {8, 10, 12, 14, 16, 18}},
        {6, 2, {21, 57}},
        {5, 3, {18, 26, 34}},
        {7, 1, {78}},
    };
    double y[6];
    for (size_t i = 0; i < COUNT(rows); i++) {
        reduce(FNX_OP_sum, rows[i].axes, FNX_F64, sizes_232, NULL, x_232, y);
        CHECK_SAME(y, rows[i].y, rows[i].n);
    }
}
END_TEST

START_TEST(sum_follows_strides) {
    const int64_t flipped[] = {0, -2, 1}; /* axis 0 broadcast, axis 1 backwards */
    double y[4];
    reduce(FNX_OP_sum, 2, FNX_F64, sizes_232, flipped, x_232 + 4, y);
    CHECK_SAME(y, ((const double[]){9, 12, 9, 12}), 4);
}
END_TEST

START_TEST(sum_over_nothing_is_0_and_of_nothing_writes_nothing) {
    const int64_t empty_rows[] = {2, 0, 1}, no_rows[] = {0, 3, 2};
    float y[2] = {7, 7};
    reduce(FNX_OP_sum, 2, FNX_F32, empty_rows, NULL, NULL, y);
    CHECK_SAME(y, ((const float[]){0, 0}), 2);
    y[0] = 7;
    reduce(FNX_OP_sum, 2, FNX_F32, no_rows, NULL, NULL, y);
    ck_assert(y[0] == 7);
}
END_TEST

START_TEST(sum_accumulates_in_double_and_passes_nan) {
    const float x[] = {1e8f, 1, 1, 1, 1, -1e8f}, bad[] = {1, NAN, 2, 3, 4, 5};
    const int64_t sizes[] = {1, 1, 6};
    float y;
    reduce(FNX_OP_sum, 4, FNX_F32, sizes, NULL, x, &y);
    ck_assert(y == 4); /* in f32 the ones would be lost */
    reduce(FNX_OP_sum, 4, FNX_F32, sizes, NULL, bad, &y);
    ck_assert(isnan(y));
}
END_TEST

START_TEST(integer_sums_wrap) {
    const int32_t x[] = {INT32_MAX, 1, 0, 0, 0, 0};
    const uint8_t z[] = {200, 100, 0, 0, 0, 0};
    const int64_t sizes[] = {1, 1, 6};
    int32_t y;
    uint8_t w;
    reduce(FNX_OP_sum, 4, FNX_I32, sizes, NULL, x, &y);
    ck_assert_int_eq(y, INT32_MIN);
    reduce(FNX_OP_sum, 4, FNX_U8, sizes, NULL, z, &w);
    ck_assert_int_eq(w, 44);
}
END_TEST

START_TEST(max_and_min_pass_nan) {
    const float x[] = {3, -1, 2, 0, NAN, 9}; /* rows of two */
    const int64_t sizes[] = {1, 3, 2};
    const int32_t z[] = {INT32_MIN, -7, 5, 6, 0, -1};
    float y[3];
    int32_t w[3];
    reduce(FNX_OP_max, 4, FNX_F32, sizes, NULL, x, y);
    CHECK_SAME(y, ((const float[]){3, 2, NAN}), 3);
    reduce(FNX_OP_min, 4, FNX_F32, sizes, NULL, x, y);
    CHECK_SAME(y, ((const float[]){-1, 0, NAN}), 3);
    reduce(FNX_OP_max, 4, FNX_I32, sizes, NULL, z, w);
    CHECK_SAME(w, ((const int32_t[]){-7, 6, 0}), 3);
    reduce(FNX_OP_min, 4, FNX_I32, sizes, NULL, z, w);
    CHECK_SAME(w, ((const int32_t[]){INT32_MIN, 5, -1}), 3);
}
END_TEST

START_TEST(argmax_takes_the_lowest_index_and_the_first_nan) {
    const double x[] = {1, 5, 5, 0, NAN, 7, NAN, 9, -1, -1, -2, -1};
    const int64_t sizes[] = {1, 3, 4}, columns[] = {1, 3, 4};
    int64_t y[4];
    reduce(FNX_OP_argmax, 4, FNX_F64, sizes, NULL, x, y);
    CHECK_SAME(y, ((const int64_t[]){1, 0, 0}), 3);
    reduce(FNX_OP_argmax, 2, FNX_F64, columns, NULL, x, y);
    CHECK_SAME(y, ((const int64_t[]){1, 1, 1, 1}), 4);
}
END_TEST

/* ---- matrix products --------------------------------------------------------------------------------------------- */

START_TEST(matmul_of_small_matrices) {
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12}; /* [2,3] [3,2] */
    float y[4];
    fragment *f = fragment_create();
    uint32_t va = fragment_input(f, FNX_F32, SHAPE(f, 2, 3), a), vb = fragment_input(f, FNX_F32, SHAPE(f, 3, 2), b);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 2, 2), y);
    fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(va, vb), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){58, 64, 139, 154}), 4);
}
END_TEST

START_TEST(matmul_broadcasts_batches_and_follows_strides) {
    /* q is stored as [b, s, h, d], k is one [s, d] for all, transposed by its strides, y is stored transposed */
    enum { B = 2, H = 3, S = 4, D = 5 };
    static double q[B * S * H * D], k[S * D], y[B * H * S * S];
    const int64_t q_strides[] = {S * H * D, D, H * D, 1}, k_strides[] = {0, 0, 1, D},
                  y_strides[] = {H * S * S, S * S, 1, S};
    fnx_attr_matmul attr = {0, 0};
    FILL(q, 1);
    FILL(k, 2);
    fragment *f = fragment_create();
    uint32_t vq = fragment_input_strided(f, FNX_F64, SHAPE(f, B, H, S, D), q_strides, q);
    uint32_t vk = fragment_input_strided(f, FNX_F64, SHAPE(f, 1, 1, D, S), k_strides, k);
    uint32_t vy = fragment_output_strided(f, FNX_F64, SHAPE(f, B, H, S, S), y_strides, y);
    fragment_node(f, FNX_OP_matmul, &attr, sizeof attr, REFS(vq, vk), REFS(vy));
    run(f);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < S; i++)
                for (int j = 0; j < S; j++) {
                    double want = 0;
                    for (int d = 0; d < D; d++) want += q[((b * S + i) * H + h) * D + d] * k[j * D + d];
                    ck_assert(fabs(y[((b * H + h) * S + j) * S + i] - want) < 1e-14);
                }
}
END_TEST

START_TEST(matmul_over_nothing_is_0) {
    float y[] = {7, 7, 7, 7};
    fragment *f = fragment_create();
    uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, 2, 0), NULL), b = fragment_input(f, FNX_F32, SHAPE(f, 0, 2), NULL);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 2, 2), y);
    fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(a, b), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){0, 0, 0, 0}), 4);
}
END_TEST

START_TEST(matmul_of_integers_wraps) {
    const int32_t a[] = {65536, 1}, b[] = {65536, 5};
    const uint8_t c[] = {16, 1}, d[] = {16, 3};
    int32_t y;
    uint8_t z;
    for (int k = 0; k < 2; k++) {
        fragment *f = fragment_create();
        uint16_t dtype = k ? FNX_U8 : FNX_I32;
        uint32_t va = fragment_input(f, dtype, SHAPE(f, 1, 2), k ? (const void *)c : a);
        uint32_t vb = fragment_input(f, dtype, SHAPE(f, 2, 1), k ? (const void *)d : b);
        uint32_t vy = fragment_output(f, dtype, SHAPE(f, 1, 1), k ? (void *)&z : &y);
        fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(va, vb), REFS(vy));
        run(f);
    }
    ck_assert_int_eq(y, 5);
    ck_assert_int_eq(z, 3);
}
END_TEST

/* ---- convolution ------------------------------------------------------------------------------------------------- */

START_TEST(conv_of_one_axis_by_hand) {
    /* x = 1 2 3 4 with a zero before and two after, w = 1 10, dilation 2, stride 3: [0 1 2 3 4 0 0] at 0, 3 */
    const float x[] = {1, 2, 3, 4}, w[] = {1, 10}, dy[] = {1, 2};
    const fnx_attr_conv attr = {1, 1, {3, 0, 0}, {2, 0, 0}, {1, 0, 0}, {2, 0, 0}};
    float y[2], dx[4], dw[2];
    for (int k = 0; k < 3; k++) {
        fragment *f = fragment_create();
        fragment_shape xs = SHAPE(f, 1, 1, 4), ws = SHAPE(f, 1, 1, 2), ys = SHAPE(f, 1, 1, 2);
        uint32_t a = k == 1 ? fragment_input(f, FNX_F32, ys, dy) : fragment_input(f, FNX_F32, xs, x);
        uint32_t b = k == 2 ? fragment_input(f, FNX_F32, ys, dy) : fragment_input(f, FNX_F32, ws, w);
        uint32_t out = k == 0   ? fragment_output(f, FNX_F32, ys, y)
                       : k == 1 ? fragment_output(f, FNX_F32, xs, dx)
                                : fragment_output(f, FNX_F32, ws, dw);
        fragment_node(f, (uint16_t)(FNX_OP_conv + k), &attr, sizeof attr, REFS(a, b), REFS(out));
        run(f);
    }
    CHECK_SAME(y, ((const float[]){20, 3}), 2);
    CHECK_SAME(dx, ((const float[]){0, 10, 2, 0}), 4);
    CHECK_SAME(dw, ((const float[]){6, 2}), 2);
}
END_TEST

/* All three convolutions by one walk over every (image, output channel, place, tap): what the plugin does not do. */
typedef struct planes {     /* of 3 spatial axes */
    int n, groups, in, out; /* channels per group */
    int x[3], w[3], y[3];
    int stride[3], dilation[3], low[3], high[3];
} planes;

static void walk(const planes *p, const double *x, const double *w, const double *dy, double *y, double *dx,
                 double *dw) {
    int volume = p->y[0] * p->y[1] * p->y[2], taps = p->w[0] * p->w[1] * p->w[2];
    for (int n = 0; n < p->n; n++)
        for (int o = 0; o < p->groups * p->out; o++)
            for (int t = 0; t < volume; t++)
                for (int c = 0; c < p->in; c++)
                    for (int k = 0; k < taps; k++) {
                        int at[3] = {t / p->y[2] / p->y[1], t / p->y[2] % p->y[1], t % p->y[2]};
                        int tap[3] = {k / p->w[2] / p->w[1], k / p->w[2] % p->w[1], k % p->w[2]}, from[3], inside = 1;
                        for (int d = 0; d < 3; d++) {
                            from[d] = at[d] * p->stride[d] + tap[d] * p->dilation[d] - p->low[d];
                            inside &= from[d] >= 0 && from[d] < p->x[d];
                        }
                        if (!inside) continue;
                        int channel = o / p->out * p->in + c;
                        int xi =
                            (((n * p->groups * p->in + channel) * p->x[0] + from[0]) * p->x[1] + from[1]) * p->x[2] +
                            from[2];
                        int wi = (o * p->in + c) * taps + k, yi = (n * p->groups * p->out + o) * volume + t;
                        y[yi] += x[xi] * w[wi];
                        dx[xi] += dy[yi] * w[wi];
                        dw[wi] += x[xi] * dy[yi];
                    }
}

static int volume(const int *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* Channels last: only the strides say so. */
static void channels_last(const double *from, double *to, int n, int c, int space) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++)
            for (int k = 0; k < space; k++) to[(i * space + k) * c + j] = from[(i * c + j) * space + k];
}

START_TEST(conv_and_its_gradients_agree_with_the_definition) {
    static const planes cases[] = {
        {2, 2, 2, 3, {1, 7, 8}, {1, 3, 2}, {1, 3, 9}, {1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {0, 0, 1}},
        {3, 1, 4, 2, {1, 5, 5}, {1, 3, 3}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
        {2, 3, 1, 1, {4, 5, 6}, {2, 3, 2}, {2, 3, 6}, {2, 1, 1}, {1, 2, 1}, {0, 1, 1}, {1, 1, 0}},
        {1, 1, 1, 1, {1, 6, 6}, {1, 1, 1}, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    };
    enum { MOST = 2000 };
    static double x[MOST], w[MOST], dy[MOST], x_last[MOST], y[MOST], dx[MOST], dw[MOST];
    static double want_y[MOST], want_dx[MOST], want_dw[MOST];
    const planes *p = &cases[_i];
    const int three = p->x[0] > 1, spatial = three ? 3 : 2, skip = three ? 0 : 1;
    const int ci = p->groups * p->in, co = p->groups * p->out;
    fnx_attr_conv attr = {(uint32_t)spatial, (uint32_t)p->groups, {0}, {0}, {0}, {0}};
    for (int d = 0; d < spatial; d++) {
        attr.stride[d] = p->stride[skip + d], attr.dilation[d] = p->dilation[skip + d];
        attr.pad_low[d] = p->low[skip + d], attr.pad_high[d] = p->high[skip + d];
    }
    FILL(x, 1);
    FILL(w, 2);
    FILL(dy, 3);
    walk(p, x, w, dy, want_y, want_dx, want_dw);
    channels_last(x, x_last, p->n, ci, volume(p->x));
    for (int k = 0; k < 3; k++) {
        fragment *f = fragment_create();
        int64_t xs[5] = {p->n, ci}, ws[5] = {co, p->in}, ys[5] = {p->n, co}, last[5] = {(int64_t)ci * volume(p->x), 1};
        for (int d = spatial, step = ci; d-- > 0;) {
            xs[2 + d] = p->x[skip + d], ws[2 + d] = p->w[skip + d], ys[2 + d] = p->y[skip + d];
            last[2 + d] = step;
            step *= p->x[skip + d];
        }
        uint32_t rank = (uint32_t)spatial + 2;
        fragment_shape x_shape = fragment_shape_of(f, rank, xs), w_shape = fragment_shape_of(f, rank, ws);
        fragment_shape y_shape = fragment_shape_of(f, rank, ys);
        uint32_t a = k == 1 ? fragment_input(f, FNX_F64, y_shape, dy)
                            : fragment_input_strided(f, FNX_F64, x_shape, last, x_last);
        uint32_t b = k == 2 ? fragment_input(f, FNX_F64, y_shape, dy) : fragment_input(f, FNX_F64, w_shape, w);
        uint32_t out = k == 0   ? fragment_output(f, FNX_F64, y_shape, y)
                       : k == 1 ? fragment_output(f, FNX_F64, x_shape, dx)
                                : fragment_output(f, FNX_F64, w_shape, dw);
        fragment_node(f, (uint16_t)(FNX_OP_conv + k), &attr, sizeof attr, REFS(a, b), REFS(out));
        run(f);
    }
    CHECK_NEAR(y, want_y, p->n * co * volume(p->y), 1e-14);
    CHECK_NEAR(dx, want_dx, p->n * ci * volume(p->x), 1e-14);
    CHECK_NEAR(dw, want_dw, co * p->in * volume(p->w), 1e-14);
}
END_TEST

START_TEST(conv_gradients_of_an_empty_batch_are_0) {
    const fnx_attr_conv attr = {1, 1, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    float dw[] = {7, 7};
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 0, 1, 4), NULL),
             dy = fragment_input(f, FNX_F32, SHAPE(f, 0, 1, 3), NULL);
    uint32_t out = fragment_output(f, FNX_F32, SHAPE(f, 1, 1, 2), dw);
    fragment_node(f, FNX_OP_conv_grad_w, &attr, sizeof attr, REFS(x, dy), REFS(out));
    run(f);
    CHECK_SAME(dw, ((const float[]){0, 0}), 2);
}
END_TEST

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* One channel of one image; sizes of x and y in rows and columns. */
static void pool(uint16_t op, const fnx_attr_pool *attr, uint16_t dtype, const int64_t *from, const int64_t *to,
                 const void *a, const void *where, const int64_t *where_size, void *y, void *y_where) {
    fragment *f = fragment_create();
    uint32_t n = 1;
    uint32_t in[2] = {fragment_input(f, dtype, SHAPE(f, 1, 1, from[0], from[1]), a)}, out[2];
    if (where) in[n++] = fragment_input(f, FNX_U8, SHAPE(f, 1, 1, where_size[0], where_size[1]), where);
    out[0] = fragment_output(f, dtype, SHAPE(f, 1, 1, to[0], to[1]), y);
    if (y_where) out[1] = fragment_output(f, FNX_U8, SHAPE(f, 1, 1, to[0], to[1]), y_where);
    fragment_node(f, op, attr, sizeof *attr, n, in, y_where ? 2 : 1, out);
    run(f);
}

static const fnx_attr_pool two_by_two = {2,         0,         {2, 2, 0},
                                         {2, 2, 0}, {1, 0, 0}, {1, 0, 0}}; /* a row of padding at each end */
static const int64_t plane_x[] = {2, 4}, plane_y[] = {2, 2};

START_TEST(max_pool_finds_values_and_places) {
    /* rows: padding, 1 5 -3 -3, -9 5 -4 -2, padding. Windows of the first and the last row hold one real row each. */
    const float x[] = {1, 5, -3, -3, -9, 5, -4, -2};
    float y[4], alone[4];
    uint8_t where[4];
    pool(FNX_OP_max_pool, &two_by_two, FNX_F32, plane_x, plane_y, x, NULL, NULL, y, where);
    CHECK_SAME(y, ((const float[]){5, -3, 5, -2}), 4);
    ck_assert_mem_eq(where, ((const uint8_t[]){3, 2, 1, 1}), 4); /* the tie -3 -3 goes to the first */
    pool(FNX_OP_max_pool, &two_by_two, FNX_F32, plane_x, plane_y, x, NULL, NULL, alone, NULL);
    CHECK_SAME(alone, y, 4);
}
END_TEST

START_TEST(max_pool_takes_the_first_nan_and_minus_infinity) {
    const float x[] = {9, NAN, -INFINITY, -INFINITY, 1, NAN, -INFINITY, -INFINITY};
    const fnx_attr_pool attr = {2, 0, {2, 2, 0}, {2, 2, 0}, {0, 0, 0}, {0, 0, 0}};
    const int64_t to[] = {1, 2};
    float y[2];
    uint8_t where[2];
    pool(FNX_OP_max_pool, &attr, FNX_F32, plane_x, to, x, NULL, NULL, y, where);
    CHECK_SAME(y, ((const float[]){NAN, -INFINITY}), 2);
    ck_assert_mem_eq(where, ((const uint8_t[]){1, 0}), 2);
}
END_TEST

START_TEST(max_pool_of_integers) {
    const int32_t x[] = {-1, -5, -3, -3, -9, -5, -4, -2};
    int32_t y[4];
    pool(FNX_OP_max_pool, &two_by_two, FNX_I32, plane_x, plane_y, x, NULL, NULL, y, NULL);
    CHECK_SAME(y, ((const int32_t[]){-1, -3, -5, -2}), 4); /* padding never wins */
}
END_TEST

START_TEST(max_pool_grad_adds_up_where_windows_overlap) {
    /* one axis as two: x of 1 x 5, windows of 3 at 0, 1, 2; all of them chose the element 2 */
    const fnx_attr_pool attr = {2, 0, {1, 3, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}};
    const int64_t x_size[] = {1, 5}, y_size[] = {1, 3};
    const float dy[] = {1, 10, 100};
    const double z[] = {1, 2, 3, 4, 5};
    const uint8_t where[] = {2, 1, 0}, other[] = {0, 2, 2};
    float dx[5];
    double picked[3];
    pool(FNX_OP_max_pool_grad, &attr, FNX_F32, y_size, x_size, dy, where, y_size, dx, NULL);
    CHECK_SAME(dx, ((const float[]){0, 0, 111, 0, 0}), 5);
    pool(FNX_OP_max_pool_pick, &attr, FNX_F64, x_size, y_size, z, other, y_size, picked, NULL);
    CHECK_SAME(picked, ((const double[]){1, 4, 5}), 3);
}
END_TEST

START_TEST(a_place_outside_of_x_picks_0_and_adds_nothing) {
    const float z[] = {1, 2, 3, 4, 5, 6, 7, 8}, dy[] = {1, 1, 1, 1};
    const uint8_t where[] = {0, 1, 200, 3}; /* 0 and 1 lie in the upper padding, 200 nowhere, 3 in the lower padding */
    float y[4], dx[8];
    pool(FNX_OP_max_pool_pick, &two_by_two, FNX_F32, plane_x, plane_y, z, where, plane_y, y, NULL);
    CHECK_SAME(y, ((const float[]){0, 0, 0, 0}), 4);
    pool(FNX_OP_max_pool_grad, &two_by_two, FNX_F32, plane_y, plane_x, dy, where, plane_y, dx, NULL);
    CHECK_SAME(dx, ((const float[]){0, 0, 0, 0, 0, 0, 0, 0}), 8);
}
END_TEST

START_TEST(wide_windows_number_places_in_i32) {
    enum { N = 400 };
    static float x[N];
    const fnx_attr_pool attr = {1, 0, {N, 0, 0}, {1, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    float y, dy = 2, dx[N];
    int32_t where;
    x[300] = 1;
    fragment *f = fragment_create();
    uint32_t vx = fragment_input(f, FNX_F32, SHAPE(f, 1, 1, N), x);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 1, 1, 1), &y);
    uint32_t vw = fragment_output(f, FNX_I32, SHAPE(f, 1, 1, 1), &where);
    fragment_node(f, FNX_OP_max_pool, &attr, sizeof attr, REFS(vx), REFS(vy, vw));
    run(f);
    ck_assert_int_eq(where, 300);
    f = fragment_create();
    vy = fragment_input(f, FNX_F32, SHAPE(f, 1, 1, 1), &dy), vw = fragment_input(f, FNX_I32, SHAPE(f, 1, 1, 1), &where);
    vx = fragment_output(f, FNX_F32, SHAPE(f, 1, 1, N), dx);
    fragment_node(f, FNX_OP_max_pool_grad, &attr, sizeof attr, REFS(vy, vw), REFS(vx));
    run(f);
    for (int i = 0; i < N; i++) ck_assert(dx[i] == (i == 300 ? 2 : 0));
}
END_TEST

START_TEST(avg_pool_divides_by_the_window_or_what_is_inside) {
    const double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, dy[] = {4, 8, 12, 16};
    fnx_attr_pool attr = two_by_two;
    double y[4], dx[8];
    pool(FNX_OP_avg_pool, &attr, FNX_F64, plane_x, plane_y, x, NULL, NULL, y, NULL);
    CHECK_SAME(y, ((const double[]){0.75, 1.75, 2.75, 3.75}), 4);
    pool(FNX_OP_avg_pool_grad, &attr, FNX_F64, plane_y, plane_x, dy, NULL, NULL, dx, NULL);
    CHECK_SAME(dx, ((const double[]){1, 1, 2, 2, 3, 3, 4, 4}), 8);
    attr.flags = FNX_POOL_EXCLUDE_PAD;
    pool(FNX_OP_avg_pool, &attr, FNX_F64, plane_x, plane_y, x, NULL, NULL, y, NULL);
    CHECK_SAME(y, ((const double[]){1.5, 3.5, 5.5, 7.5}), 4);
    pool(FNX_OP_avg_pool_grad, &attr, FNX_F64, plane_y, plane_x, dy, NULL, NULL, dx, NULL);
    CHECK_SAME(dx, ((const double[]){2, 2, 4, 4, 6, 6, 8, 8}), 8);
}
END_TEST

START_TEST(avg_pool_grad_is_the_adjoint_of_overlapping_windows) {
    enum { H = 6, W = 7, P = 4, Q = 3 }; /* windows 3 x 3, strides 2 and 3, uneven padding */
    const int64_t x_size[] = {H, W}, y_size[] = {P, Q};
    fnx_attr_pool attr = {2, FNX_POOL_EXCLUDE_PAD, {3, 3, 0}, {2, 3, 0}, {1, 1, 0}, {2, 1, 0}};
    double x[H * W], y[P * Q], dy[P * Q], dx[H * W], left = 0, right = 0;
    FILL(x, 4);
    FILL(dy, 5);
    pool(FNX_OP_avg_pool, &attr, FNX_F64, x_size, y_size, x, NULL, NULL, y, NULL);
    pool(FNX_OP_avg_pool_grad, &attr, FNX_F64, y_size, x_size, dy, NULL, NULL, dx, NULL);
    for (int i = 0; i < P * Q; i++) left += y[i] * dy[i];
    for (int i = 0; i < H * W; i++) right += x[i] * dx[i];
    ck_assert_double_le(fabs(left - right), 1e-14);
}
END_TEST

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

START_TEST(gather_replaces_one_axis) {
    const float x[] = {0, 1, 2, 10, 11, 12}; /* [2, 3] */
    const int64_t index[] = {2, 0, 0, 2};    /* [2, 2] along axis 1 */
    const int32_t rows[] = {1, 0, 1};        /* [1, 3] along axis 0 */
    const fnx_attr_axis axis_0 = {0, 0}, axis_1 = {1, 0};
    float y[4], z[3];
    fragment *f = fragment_create();
    uint32_t vx = fragment_input(f, FNX_F32, SHAPE(f, 2, 3), x), vi = fragment_input(f, FNX_I64, SHAPE(f, 2, 2), index);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 2, 2), y);
    fragment_node(f, FNX_OP_gather, &axis_1, sizeof axis_1, REFS(vx, vi), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){2, 0, 10, 12}), 4);
    f = fragment_create();
    vx = fragment_input(f, FNX_F32, SHAPE(f, 2, 3), x), vi = fragment_input(f, FNX_I32, SHAPE(f, 1, 3), rows);
    vy = fragment_output(f, FNX_F32, SHAPE(f, 1, 3), z);
    fragment_node(f, FNX_OP_gather, &axis_0, sizeof axis_0, REFS(vx, vi), REFS(vy));
    run(f);
    CHECK_SAME(z, ((const float[]){10, 1, 12}), 3);
}
END_TEST

START_TEST(gather_takes_rows_with_a_broadcast_index) {
    const double table[] = {0, 1, 10, 11, 20, 21}; /* [3, 2] */
    const int64_t ids[] = {2, 0, 2, 1}, by_row[] = {1, 0};
    const fnx_attr_axis axis = {0, 0};
    double y[8];
    for (int k = 0; k < 2; k++) { /* as size 1, and as stride 0 */
        fragment *f = fragment_create();
        uint32_t vx = fragment_input(f, FNX_F64, SHAPE(f, 3, 2), table);
        uint32_t vi = k ? fragment_input(f, FNX_I64, SHAPE(f, 4, 1), ids)
                        : fragment_input_strided(f, FNX_I64, SHAPE(f, 4, 2), by_row, ids);
        uint32_t vy = fragment_output(f, FNX_F64, SHAPE(f, 4, 2), y);
        fragment_node(f, FNX_OP_gather, &axis, sizeof axis, REFS(vx, vi), REFS(vy));
        run(f);
        CHECK_SAME(y, ((const double[]){20, 21, 0, 1, 20, 21, 10, 11}), 8);
    }
}
END_TEST

START_TEST(gather_outside_reads_0_and_the_first_failure_is_kept) {
    const float x[] = {1, 2, 3};
    const int64_t index[] = {0, 3, -1, 2};
    const fnx_attr_axis axis = {0, 0};
    float y[4];
    fnx_error_word word;
    fragment *f = fragment_create();
    uint32_t vx = fragment_input(f, FNX_F32, SHAPE(f, 3), x), vi = fragment_input(f, FNX_I64, SHAPE(f, 4), index);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 4), y);
    fragment_node(f, FNX_OP_gather, &axis, sizeof axis, REFS(vx, vi), REFS(vy));
    run_with_word(f, &word);
    CHECK_SAME(y, ((const float[]){1, 0, 0, 3}), 4);
    ck_assert_int_eq(word.code, FNX_E_INDEX);
    ck_assert_int_eq(word.index, 3);
    ck_assert_int_eq(word.limit, 3);
}
END_TEST

static fnx_error_word scatter(int in_place, float *target, const int64_t *index, const float *update, float *y) {
    const fnx_attr_axis axis = {0, 0};
    fnx_error_word word;
    fragment *f = fragment_create();
    uint32_t t = fragment_input(f, FNX_F32, SHAPE(f, 3, 2), target),
             i = fragment_input(f, FNX_I64, SHAPE(f, 4, 1), index);
    uint32_t u = fragment_input(f, FNX_F32, SHAPE(f, 4, 2), update);
    uint32_t out = in_place ? fragment_output_in_place(f, t) : fragment_output(f, FNX_F32, SHAPE(f, 3, 2), y);
    fragment_node(f, FNX_OP_scatter_add, &axis, sizeof axis, REFS(t, i, u), REFS(out));
    run_with_word(f, &word);
    return word;
}

START_TEST(scatter_add_adds_repeated_rows) {
    float target[] = {100, 200, 300, 400, 500, 600}, y[6];
    const float update[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t index[] = {2, 0, 0, 2};
    /* row 0: 3 + 5, 4 + 6; row 2: 1 + 7, 2 + 8 */
    const float sums[] = {108, 210, 300, 400, 508, 610};
    ck_assert_int_eq(scatter(0, target, index, update, y).code, FNX_OK);
    CHECK_SAME(y, sums, 6);
    ck_assert_int_eq(scatter(1, target, index, update, NULL).code, FNX_OK);
    CHECK_SAME(target, sums, 6);
}
END_TEST

START_TEST(scatter_add_outside_writes_nothing) {
    float target[] = {0, 0, 0, 0, 0, 0}, y[6];
    const float update[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t index[] = {1, -5, 3, 1};
    const fnx_error_word word = scatter(0, target, index, update, y);
    CHECK_SAME(y, ((const float[]){0, 0, 8, 10, 0, 0}), 6);
    ck_assert_int_eq(word.code, FNX_E_INDEX);
    ck_assert_int_eq(word.index, -5);
    ck_assert_int_eq(word.limit, 3);
}
END_TEST

START_TEST(nothing_can_be_indexed_in_an_empty_axis) {
    const fnx_attr_axis axis = {0, 0};
    const int64_t index[] = {0, 0};
    const float update[] = {1, 2};
    float y[] = {7, 7};
    fnx_error_word word;
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 0), NULL), i = fragment_input(f, FNX_I64, SHAPE(f, 2), index);
    uint32_t out = fragment_output(f, FNX_F32, SHAPE(f, 2), y);
    fragment_node(f, FNX_OP_gather, &axis, sizeof axis, REFS(x, i), REFS(out));
    run_with_word(f, &word);
    CHECK_SAME(y, ((const float[]){0, 0}), 2);
    ck_assert(word.code == FNX_E_INDEX && word.index == 0 && word.limit == 0);
    f = fragment_create();
    x = fragment_input(f, FNX_F32, SHAPE(f, 0), NULL), i = fragment_input(f, FNX_I64, SHAPE(f, 2), index);
    uint32_t u = fragment_input(f, FNX_F32, SHAPE(f, 2), update);
    out = fragment_output(f, FNX_F32, SHAPE(f, 0), NULL);
    fragment_node(f, FNX_OP_scatter_add, &axis, sizeof axis, REFS(x, i, u), REFS(out));
    run_with_word(f, &word);
    ck_assert_int_eq(word.code, FNX_E_INDEX);
}
END_TEST

START_TEST(scatter_add_rounds_in_ascending_order) {
    /* 1 is lost beside 2^24, one at a time; added up first, two of them would not be */
    float target[] = {16777216, 0, 0, 0, 0, 0}, y[6];
    const float update[] = {1, 0, 1, 0, 1, 0, 1, 0};
    const int64_t index[] = {0, 0, 0, 0};
    scatter(0, target, index, update, y);
    ck_assert(y[0] == 16777216);
}
END_TEST

START_TEST(scatter_add_broadcasts_updates) {
    const float target[6] = {0}, update[] = {1, 2, 3};
    const int64_t index[] = {1, 0, 1, 1, 1, 0}; /* [3, 2] along axis 0; one update for both columns */
    const fnx_attr_axis axis = {0, 0};
    float y[6];
    fragment *f = fragment_create();
    uint32_t t = fragment_input(f, FNX_F32, SHAPE(f, 3, 2), target),
             i = fragment_input(f, FNX_I64, SHAPE(f, 3, 2), index);
    uint32_t u = fragment_input(f, FNX_F32, SHAPE(f, 3, 1), update),
             out = fragment_output(f, FNX_F32, SHAPE(f, 3, 2), y);
    fragment_node(f, FNX_OP_scatter_add, &axis, sizeof axis, REFS(t, i, u), REFS(out));
    run(f);
    CHECK_SAME(y, ((const float[]){0, 4, 6, 2, 0, 0}), 6);
}
END_TEST

START_TEST(scatter_add_of_integers_wraps) {
    const uint8_t target[] = {250, 1}, update[] = {5, 5};
    const int32_t index[] = {0, 0};
    const fnx_attr_axis axis = {0, 0};
    uint8_t y[2];
    fragment *f = fragment_create();
    uint32_t t = fragment_input(f, FNX_U8, SHAPE(f, 2), target), i = fragment_input(f, FNX_I32, SHAPE(f, 2), index);
    uint32_t u = fragment_input(f, FNX_U8, SHAPE(f, 2), update), out = fragment_output(f, FNX_U8, SHAPE(f, 2), y);
    fragment_node(f, FNX_OP_scatter_add, &axis, sizeof axis, REFS(t, i, u), REFS(out));
    run(f);
    ck_assert_mem_eq(y, ((const uint8_t[]){4, 1}), 2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ref: reductions, matrices, windows, indexes");
    TCase *t = tcase_create("ops");
    tcase_add_checked_fixture(t, ref_setup, ref_teardown);
    tcase_add_test(t, sum_runs_over_any_axes);
    tcase_add_test(t, sum_follows_strides);
    tcase_add_test(t, sum_over_nothing_is_0_and_of_nothing_writes_nothing);
    tcase_add_test(t, sum_accumulates_in_double_and_passes_nan);
    tcase_add_test(t, integer_sums_wrap);
    tcase_add_test(t, max_and_min_pass_nan);
    tcase_add_test(t, argmax_takes_the_lowest_index_and_the_first_nan);
    tcase_add_test(t, matmul_of_small_matrices);
    tcase_add_test(t, matmul_broadcasts_batches_and_follows_strides);
    tcase_add_test(t, matmul_over_nothing_is_0);
    tcase_add_test(t, matmul_of_integers_wraps);
    tcase_add_test(t, conv_of_one_axis_by_hand);
    tcase_add_loop_test(t, conv_and_its_gradients_agree_with_the_definition, 0, 4);
    tcase_add_test(t, conv_gradients_of_an_empty_batch_are_0);
    tcase_add_test(t, max_pool_finds_values_and_places);
    tcase_add_test(t, max_pool_takes_the_first_nan_and_minus_infinity);
    tcase_add_test(t, max_pool_of_integers);
    tcase_add_test(t, max_pool_grad_adds_up_where_windows_overlap);
    tcase_add_test(t, a_place_outside_of_x_picks_0_and_adds_nothing);
    tcase_add_test(t, wide_windows_number_places_in_i32);
    tcase_add_test(t, avg_pool_divides_by_the_window_or_what_is_inside);
    tcase_add_test(t, avg_pool_grad_is_the_adjoint_of_overlapping_windows);
    tcase_add_test(t, gather_replaces_one_axis);
    tcase_add_test(t, gather_takes_rows_with_a_broadcast_index);
    tcase_add_test(t, gather_outside_reads_0_and_the_first_failure_is_kept);
    tcase_add_test(t, scatter_add_adds_repeated_rows);
    tcase_add_test(t, scatter_add_outside_writes_nothing);
    tcase_add_test(t, nothing_can_be_indexed_in_an_empty_axis);
    tcase_add_test(t, scatter_add_rounds_in_ascending_order);
    tcase_add_test(t, scatter_add_broadcasts_updates);
    tcase_add_test(t, scatter_add_of_integers_wraps);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
