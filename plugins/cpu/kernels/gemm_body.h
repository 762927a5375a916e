/* A matrix product over one dtype, included by gemm.c once for each. Wants NAME, TYPE (of elements) and PACKED (what is
 * computed in: as wide as TYPE or wider, unsigned for integers, so that they wrap), and undefines them. */
#define JOINED_(a, b) a##b
#define JOINED(a, b) JOINED_(a, b)
#define FUNCTION(name) JOINED(NAME, name)
#define WIDTH ((int)(VECTOR_BYTES / sizeof(PACKED)))
#define COLUMNS (2 * WIDTH)

typedef PACKED FUNCTION(_vector) __attribute__((vector_size(VECTOR_BYTES)));

/* [k][ROWS] from rows of a, [k][COLUMNS] from columns of b, panel after panel; what is missing is 0. */
static void FUNCTION(_pack)(const TYPE *from, int64_t count, int64_t stride, int64_t k, int64_t k_stride, int panel,
                            PACKED *to) {
    for (int64_t first = 0; first < count; first += panel) {
        const int n = (int)(count - first < panel ? count - first : panel);
        const TYPE *p = from + first * stride;
        if (n < panel) memset(to, 0, (size_t)k * (size_t)panel * sizeof *to);
        if (k_stride == 1)
            for (int i = 0; i < n; i++)
                for (int64_t j = 0; j < k; j++) to[j * panel + i] = (PACKED)p[i * stride + j];
        else
            for (int64_t j = 0; j < k; j++)
                for (int i = 0; i < n; i++) to[j * panel + i] = (PACKED)p[i * stride + j * k_stride];
        to += k * panel;
    }
}

/* c[ROWS][COLUMNS] += a b, of rows of a tile that are TILE_COLUMNS long. */
static void FUNCTION(_micro)(const PACKED *a, const PACKED *b, int64_t k, PACKED *c) {
    FUNCTION(_vector) sum[ROWS][2];
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < 2; v++)
        memcpy(&sum[i][v], c + i * TILE_COLUMNS + v * WIDTH, VECTOR_BYTES);
    for (int64_t j = 0; j < k; j++, a += ROWS, b += COLUMNS) {
        FUNCTION(_vector) left, right;
        memcpy(&left, b, VECTOR_BYTES);
        memcpy(&right, b + WIDTH, VECTOR_BYTES);
        UNROLL for (int i = 0; i < ROWS; i++) {
            sum[i][0] += a[i] * left;
            sum[i][1] += a[i] * right;
        }
    }
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < 2; v++)
        memcpy(c + i * TILE_COLUMNS + v * WIDTH, &sum[i][v], VECTOR_BYTES);
}

/* Tiles of the result, each packed and computed by one thread. */
static void FUNCTION(_tiles)(void *context, int thread, int64_t first, int64_t last) {
    const gemm *g = context;
    PACKED *a = (PACKED *)(void *)(g->workspace + thread * (int64_t)GEMM_THREAD_BYTES);
    PACKED *b = a + TILE_ROWS * TILE_DEPTH, *c = b + TILE_COLUMNS * TILE_DEPTH;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / g->column_tiles * TILE_ROWS, column = i % g->column_tiles * TILE_COLUMNS;
        const int64_t rows = g->m - row < TILE_ROWS ? g->m - row : TILE_ROWS;
        const int64_t columns = g->n - column < TILE_COLUMNS ? g->n - column : TILE_COLUMNS;
        memset(c, 0, (size_t)((rows + ROWS - 1) / ROWS * ROWS) * TILE_COLUMNS * sizeof *c);
        for (int64_t from = 0; from < g->k; from += TILE_DEPTH) {
            const int64_t k = g->k - from < TILE_DEPTH ? g->k - from : TILE_DEPTH;
            const TYPE *pa = (const TYPE *)(const void *)g->a->base + row * g->a->stride[0] + from * g->a->stride[1];
            const TYPE *pb = (const TYPE *)(const void *)g->b->base + column * g->b->stride[1] + from * g->b->stride[0];
            FUNCTION(_pack)(pa, rows, g->a->stride[0], k, g->a->stride[1], ROWS, a);
            FUNCTION(_pack)(pb, columns, g->b->stride[1], k, g->b->stride[0], COLUMNS, b);
            for (int64_t l = 0; l < columns; l += COLUMNS)
                for (int64_t j = 0; j < rows; j += ROWS)
                    FUNCTION(_micro)(a + j * k, b + l * k, k, c + j * TILE_COLUMNS + l);
        }
        TYPE *y = (TYPE *)(void *)g->y->base + row * g->y->stride[0] + column * g->y->stride[1];
        for (int64_t j = 0; j < rows; j++)
            for (int64_t l = 0; l < columns; l++) {
                TYPE *to = &y[j * g->y->stride[0] + l * g->y->stride[1]];
                *to = (TYPE)(c[j * TILE_COLUMNS + l] + (g->adds ? (PACKED)*to : 0));
            }
    }
}

/* The same without packing, for products so small that packing would be most of it. */
static void FUNCTION(_small)(const gemm *g) {
    const int64_t a_row = g->a->stride[0], a_k = g->a->stride[1], b_k = g->b->stride[0], b_column = g->b->stride[1];
    for (int64_t i = 0; i < g->m; i++) {
        const TYPE *a = (const TYPE *)(const void *)g->a->base + i * a_row;
        TYPE *y = (TYPE *)(void *)g->y->base + i * g->y->stride[0];
        for (int64_t first = 0; first < g->n; first += SMALL) {
            const int64_t n = g->n - first < SMALL ? g->n - first : SMALL;
            const TYPE *b = (const TYPE *)(const void *)g->b->base + first * b_column;
            PACKED sum[SMALL];
            for (int64_t l = 0; l < n; l++) sum[l] = 0;
            if (b_column == 1)
                for (int64_t k = 0; k < g->k; k++)
                    for (int64_t l = 0; l < n; l++) sum[l] += (PACKED)a[k * a_k] * (PACKED)b[k * b_k + l];
            else
                for (int64_t l = 0; l < n; l++)
                    for (int64_t k = 0; k < g->k; k++) sum[l] += (PACKED)a[k * a_k] * (PACKED)b[k * b_k + l * b_column];
            for (int64_t l = 0; l < n; l++) y[(first + l) * g->y->stride[1]] = (TYPE)sum[l];
        }
    }
}

#undef JOINED_
#undef JOINED
#undef FUNCTION
#undef WIDTH
#undef COLUMNS
#undef NAME
#undef TYPE
#undef PACKED
