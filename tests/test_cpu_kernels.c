/* The kernels of the cpu plugin against the ref plugin: random shapes, strides and attributes for each op and dtype, at
 * every ISA level that this CPU has, with one thread and with two. And what has a closed form, or must be refused. */
#include "support/cpu.h"

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* A view into a buffer of its own. Where strides leave gaps, the buffer tells whether a kernel wrote there. */
typedef struct array {
    uint16_t dtype;
    uint32_t rank;
    int64_t size[FNX_MAX_RANK], stride[FNX_MAX_RANK], origin, elements;
    char *data;
} array;

enum form { ROWS, LAST, ANY, BROADCAST }; /* LAST: channels last; BROADCAST: ANY, with some strides 0 */

static void put(array *a, int64_t i, double v) {
    switch (a->dtype) {
    case FNX_F32: ((float *)(void *)a->data)[i] = (float)v; break;
    case FNX_F64: ((double *)(void *)a->data)[i] = v; break;
    case FNX_I32: ((int32_t *)(void *)a->data)[i] = (int32_t)(int64_t)v; break;
    case FNX_I64: ((int64_t *)(void *)a->data)[i] = (int64_t)v; break;
    default: ((uint8_t *)a->data)[i] = (uint8_t)(int64_t)v;
    }
}

static double get(const array *a, int64_t i) {
    switch (a->dtype) {
    case FNX_F32: return (double)((const float *)(const void *)a->data)[i];
    case FNX_F64: return ((const double *)(const void *)a->data)[i];
    case FNX_I32: return ((const int32_t *)(const void *)a->data)[i];
    case FNX_I64: return (double)((const int64_t *)(const void *)a->data)[i];
    default: return ((const uint8_t *)a->data)[i];
    }
}

static int is_float(uint16_t dtype) { return dtype == FNX_F32 || dtype == FNX_F64; }

/* Values between -1 and 1, integers of all sizes; one in four is a small integer, so that there are ties. */
static void fill(array *a) {
    for (int64_t i = 0; i < a->elements; i++) {
        const double v = is_float(a->dtype) ? (double)(draw() >> 11) * 0x1p-52 - 1 : (double)(int64_t)(draw() >> 12);
        put(a, i, chance(25) ? (double)between(a->dtype == FNX_U8 ? 0 : -1, 1) : v);
    }
}

static array make(uint16_t dtype, uint32_t rank, const int64_t *size, enum form form) {
    array a = {.dtype = dtype, .rank = rank};
    uint32_t order[FNX_MAX_RANK];
    int64_t packed = 1;
    for (uint32_t d = 0; d < rank; d++) a.size[d] = size[d], order[d] = d;
    if (form == LAST)
        for (uint32_t d = 1; d < rank; d++) order[d] = d + 1 < rank ? d + 1 : 1;
    if (form >= ANY)
        for (uint32_t d = rank; d-- > 1;) {
            const uint32_t k = (uint32_t)between(0, d), old = order[d];
            order[d] = order[k], order[k] = old;
        }
    for (uint32_t i = rank; i-- > 0;) {
        const uint32_t d = order[i];
        const int64_t n = size[d];
        a.stride[d] = packed;
        if (form == BROADCAST && chance(30)) a.stride[d] = 0;
        else packed *= n > 0 ? n : 1;
        if (form >= ANY && chance(30)) packed += between(1, 3); /* a gap */
        if (form >= ANY && chance(15) && n > 0) a.origin += (n - 1) * a.stride[d], a.stride[d] = -a.stride[d];
        if (n == 1) a.stride[d] = 0;
    }
    a.elements = packed;
    a.data = calloc((size_t)packed + 8, 8);
    fill(&a);
    return a;
}

static array copy_of(const array *a) {
    array b = *a;
    b.data = malloc(((size_t)a->elements + 8) * 8);
    memcpy(b.data, a->data, ((size_t)a->elements + 8) * 8);
    return b;
}

static char *address(const array *a) { return a->data + a->origin * fragment_dtype_bytes(a->dtype); }

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct operation {
    uint16_t op;
    const void *attr;
    uint32_t attr_size;
    uint32_t n_in, n_out;
    array in[3], out[2];
    double tolerance; /* of floats, absolute; 0: exact */
} operation;

static fragment *fragment_of(const operation *o, const array *out) {
    fragment *f = fragment_create();
    uint32_t in[3], result[2];
    for (uint32_t i = 0; i < o->n_in; i++) {
        const array *a = &o->in[i];
        in[i] = fragment_input_strided(f, a->dtype, fragment_shape_of(f, a->rank, a->size), a->stride, address(a));
    }
    for (uint32_t i = 0; i < o->n_out; i++) {
        const array *a = &out[i];
        result[i] = fragment_output_strided(f, a->dtype, fragment_shape_of(f, a->rank, a->size), a->stride, address(a));
    }
    fragment_node(f, o->op, o->attr, o->attr_size, o->n_in, in, o->n_out, result);
    fragment_finish(f);
    return f;
}

static void run_on(backend *b, const operation *o, const array *out, fnx_error_word *word) {
    fnx_decline why = {.struct_size = sizeof why};
    fragment *f = fragment_of(o, out);
    const int32_t code = backend_run(b, f, word, &why);
    if (code) ck_abort_msg("op %u: %d %s", o->op, code, code == FNX_E_DECLINED ? why.text : backend_error());
    fragment_destroy(f);
}

static void describe(const operation *o, char *text, size_t bytes) {
    size_t n = (size_t)snprintf(text, bytes, "op %u", o->op);
    for (uint32_t i = 0; i < o->n_in + o->n_out && n < bytes; i++) {
        const array *a = i < o->n_in ? &o->in[i] : &o->out[i - o->n_in];
        n += (size_t)snprintf(text + n, bytes - n, " %s%u", i < o->n_in ? "" : "> ", a->dtype);
        for (uint32_t d = 0; d < a->rank && n < bytes; d++)
            n += (size_t)snprintf(text + n, bytes - n, "%c%lld:%lld", d ? ',' : '[', (long long)a->size[d],
                                  (long long)a->stride[d]);
        if (n < bytes) n += (size_t)snprintf(text + n, bytes - n, "]");
    }
}

static int agree(double got, double want, double tolerance) {
    if (isnan(want)) return isnan(got);
    if (tolerance == 0 || isinf(want)) return got == want && (want != 0 || signbit(got) == signbit(want));
    return fabs(got - want) <= tolerance;
}

static void compare(const operation *o, const array *got, const array *want, size_t config_number) {
    for (int64_t i = 0; i < want->elements; i++) {
        char text[512];
        if (agree(get(got, i), get(want, i), is_float(want->dtype) ? o->tolerance : 0)) continue;
        describe(o, text, sizeof text);
        ck_abort_msg("%s: element %lld is %.9g, should be %.9g: %s", config_names[config_number], (long long)i,
                     get(got, i), get(want, i), text);
    }
}

/* Runs the operation everywhere and frees its arrays. Two threads must give the bits of one, unless the library is free
 * to cut sums between threads. */
static void check(operation *o, int same_bits) {
    array want[2], got[2], first[2] = {{0}, {0}};
    fnx_error_word word;
    for (uint32_t i = 0; i < o->n_out; i++) want[i] = copy_of(&o->out[i]);
    run_on(&ref, o, want, &word);
    for (size_t k = 0; k < CONFIGS; k++) {
        if (!cpu[k].device) continue;
        for (uint32_t i = 0; i < o->n_out; i++) got[i] = copy_of(&o->out[i]);
        run_on(&cpu[k], o, got, &word);
        ck_assert_int_eq(word.code, FNX_OK);
        for (uint32_t i = 0; i < o->n_out; i++) {
            compare(o, &got[i], &want[i], k);
            if (k % 2 && same_bits)
                ck_assert_mem_eq(got[i].data, first[i].data,
                                 (size_t)got[i].elements * fragment_dtype_bytes(got[i].dtype));
            if (k % 2) free(first[i].data), free(got[i].data);
            else first[i] = got[i];
        }
    }
    for (uint32_t i = 0; i < o->n_in; i++) free(o->in[i].data);
    for (uint32_t i = 0; i < o->n_out; i++) free(o->out[i].data), free(want[i].data);
}

/* The bound of a sum of k products of values up to 1, of which a quarter is their mean size. */
static double sum_bound(uint16_t dtype, int64_t k) {
    const double eps = dtype == FNX_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    return is_float(dtype) ? 4 * sqrt((double)k + 1) * eps * ((double)k / 4 + 1) : 0;
}

static enum form any_form(void) { return chance(40) ? ROWS : chance(50) ? LAST : ANY; }

static const uint16_t numbers[] = {FNX_F32, FNX_F64, FNX_I32, FNX_I64, FNX_U8};
static uint16_t any_number(void) { return numbers[between(0, COUNT(numbers) - 1)]; }
static uint16_t any_float(void) { return chance(65) ? FNX_F32 : FNX_F64; }

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void reduce(uint16_t op, uint16_t dtype, uint32_t rank, const int64_t *size, uint32_t axes, enum form form) {
    fnx_attr_reduce attr = {axes, 0};
    int64_t kept[FNX_MAX_RANK], k = 1;
    for (uint32_t d = 0; d < rank; d++) {
        kept[d] = axes >> d & 1 ? 1 : size[d];
        if (axes >> d & 1) k *= size[d];
    }
    operation o = {.op = op, .attr = &attr, .attr_size = sizeof attr, .n_in = 1, .n_out = 1};
    o.in[0] = make(dtype, rank, size, form);
    o.out[0] = make(op == FNX_OP_argmax ? FNX_I64 : dtype, rank, kept, form == BROADCAST ? ANY : form);
    o.tolerance = op == FNX_OP_sum ? sum_bound(dtype, k) : 0;
    check(&o, 1);
}

START_TEST(random_reductions_equal_ref) {
    static const uint16_t ops[] = {FNX_OP_sum, FNX_OP_max, FNX_OP_min, FNX_OP_argmax};
    seed = (uint64_t)_i;
    for (int i = 0; i < 200; i++) {
        const uint16_t op = ops[between(0, 3)];
        const uint32_t rank = (uint32_t)between(1, 5);
        int64_t size[5];
        for (uint32_t d = 0; d < rank; d++) size[d] = chance(10) ? between(60, 200) : between(1, 6);
        if (op == FNX_OP_sum && chance(5)) size[between(0, rank - 1)] = 0;
        const uint32_t axes = op == FNX_OP_argmax ? 1u << between(0, rank - 1) : (uint32_t)between(0, (1 << rank) - 1);
        reduce(op, any_number(), rank, size, axes, chance(20) ? BROADCAST : any_form());
    }
}
END_TEST

START_TEST(long_reductions_keep_the_error_bound_and_their_bits) {
    static const struct {
        uint32_t rank;
        int64_t size[4];
        uint32_t axes;
        enum form form;
    } cases[] = {
        {1, {1000003}, 1, ROWS},         {2, {3, 300001}, 2, ROWS},   {2, {50176, 16}, 1, ROWS},
        {2, {64, 128}, 1, ROWS},         {2, {4099, 131}, 2, ROWS},   {4, {16, 32, 14, 14}, 13, LAST},
        {4, {16, 32, 14, 14}, 13, ROWS}, {3, {70, 300, 20}, 5, ROWS}, {2, {20000, 10}, 2, ROWS},
        {2, {1, 40000}, 3, ROWS},        {3, {2, 5000, 33}, 2, ROWS},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(numbers); k++)
            for (uint16_t op = FNX_OP_sum; op <= FNX_OP_min; op++)
                reduce(op, numbers[k], cases[i].rank, cases[i].size, cases[i].axes, cases[i].form);
}
END_TEST

/* n values of which number `at` is `v`, reduced along the axis whose neighbours are `stride` apart. */
static double special(uint16_t op, uint16_t dtype, int64_t n, double others, double v, int64_t at, size_t config) {
    const fnx_attr_reduce attr = {1, 0};
    operation o = {.op = op, .attr = &attr, .attr_size = sizeof attr, .n_in = 1, .n_out = 1};
    o.in[0] = make(dtype, 2, (int64_t[]){n, 3}, ROWS);
    o.out[0] = make(op == FNX_OP_argmax ? FNX_I64 : dtype, 2, (int64_t[]){1, 3}, ROWS);
    for (int64_t i = 0; i < o.in[0].elements; i++) put(&o.in[0], i, i / 3 == at ? v : others);
    run_on(&cpu[config], &o, o.out, NULL);
    const double y = get(&o.out[0], 1);
    free(o.in[0].data), free(o.out[0].data);
    return y;
}

START_TEST(extrema_know_nan_infinities_and_signed_zeros) {
    static const uint16_t floats[] = {FNX_F32, FNX_F64};
    for (size_t c = 0; c < CONFIGS; c++)
        for (size_t k = 0; k < 2 && cpu[c].device; k++)
            for (int64_t n = 5; n < 400; n += 131)
                for (int64_t at = 0; at < n; at += n / 4) {
                    const uint16_t t = floats[k];
                    ck_assert(isnan(special(FNX_OP_max, t, n, INFINITY, NAN, at, c)));
                    ck_assert(isnan(special(FNX_OP_min, t, n, -INFINITY, NAN, at, c)));
                    ck_assert(isnan(special(FNX_OP_max, t, n, 1, -(double)NAN, at, c)));
                    ck_assert(isnan(special(FNX_OP_sum, t, n, 1, NAN, at, c)));
                    ck_assert(special(FNX_OP_max, t, n, -INFINITY, -INFINITY, at, c) == -(double)INFINITY);
                    ck_assert(special(FNX_OP_sum, t, n, 1, INFINITY, at, c) == (double)INFINITY);
                    ck_assert(!signbit(special(FNX_OP_max, t, n, -0.0, 0.0, at, c)));
                    ck_assert(signbit(special(FNX_OP_min, t, n, 0.0, -0.0, at, c)));
                    ck_assert_int_eq((int64_t)special(FNX_OP_argmax, t, n, INFINITY, NAN, at, c), at);
                    ck_assert_int_eq((int64_t)special(FNX_OP_argmax, t, n, -0.0, 0.0, at, c), 0);
                    ck_assert_int_eq((int64_t)special(FNX_OP_argmax, t, n, -1, 0.5, at, c), at);
                }
}
END_TEST

START_TEST(argmax_takes_the_first_of_equals_and_the_first_nan) {
    static const int64_t lengths[] = {3, 40, 100, 1000};
    const fnx_attr_reduce attr = {1, 0};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int nan = 0; nan < 2; nan++) {
            const int64_t n = lengths[i];
            operation o = {.op = FNX_OP_argmax, .attr = &attr, .attr_size = sizeof attr, .n_in = 1, .n_out = 1};
            o.in[0] = make(FNX_F32, 1, &n, ROWS);
            o.out[0] = make(FNX_I64, 1, (int64_t[]){1}, ROWS);
            for (int64_t k = 0; k < n; k++) put(&o.in[0], k, k >= n / 3 ? nan ? (double)NAN : 7 : 1);
            for (size_t c = 0; c < CONFIGS; c++) {
                if (!cpu[c].device) continue;
                run_on(&cpu[c], &o, o.out, NULL);
                ck_assert_int_eq((int64_t)get(&o.out[0], 0), n / 3);
            }
            free(o.in[0].data), free(o.out[0].data);
        }
}
END_TEST

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

static void matmul(uint16_t dtype, uint32_t rank, const int64_t *batch_a, const int64_t *batch_b, int64_t m, int64_t k,
                   int64_t n, enum form fa, enum form fb, enum form fy) {
    static const fnx_attr_matmul attr = {0, 0};
    int64_t a[FNX_MAX_RANK], b[FNX_MAX_RANK], y[FNX_MAX_RANK];
    for (uint32_t d = 0; d + 2 < rank; d++) {
        a[d] = batch_a[d], b[d] = batch_b[d];
        y[d] = a[d] == 1 ? b[d] : a[d];
    }
    a[rank - 2] = y[rank - 2] = m, a[rank - 1] = b[rank - 2] = k, b[rank - 1] = y[rank - 1] = n;
    operation o = {.op = FNX_OP_matmul, .attr = &attr, .attr_size = sizeof attr, .n_in = 2, .n_out = 1};
    o.in[0] = make(dtype, rank, a, fa), o.in[1] = make(dtype, rank, b, fb), o.out[0] = make(dtype, rank, y, fy);
    o.tolerance = sum_bound(dtype, k);
    check(&o, dtype != FNX_F32);
}

START_TEST(random_products_equal_ref) {
    seed = 77 + (uint64_t)_i;
    for (int i = 0; i < 80; i++) {
        const uint32_t rank = (uint32_t)between(2, 5);
        int64_t a[3], b[3], s[3];
        for (uint32_t d = 0; d < 3; d++) {
            a[d] = b[d] = between(1, 3);
            if (chance(30)) *(chance(50) ? &a[d] : &b[d]) = 1;
            if (chance(3)) a[d] = b[d] = 0;
            s[d] = chance(20) ? between(30, 150) : chance(4) ? 0 : between(1, 20);
        }
        matmul(any_number(), rank, a, b, s[0], s[1], s[2], chance(20) ? BROADCAST : any_form(),
               chance(20) ? BROADCAST : any_form(), any_form());
    }
}
END_TEST

START_TEST(transposed_operands_and_results_equal_ref) {
    static const int64_t shapes[][3] = {{64, 128, 10}, {10, 64, 128}, {128, 64, 300},
                                        {1, 200, 33},  {200, 1, 33},  {97, 259, 131}};
    static const enum form forms[] = {ROWS, LAST}; /* of rank 3: [b, k, m] seen as [b, m, k] */
    const int64_t one[] = {1}, two[] = {2};
    seed = 5;
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (uint32_t f = 0; f < 8; f++)
            for (size_t k = 0; k < 3; k++)
                matmul(numbers[k], 3, f & 1 ? one : two, two, shapes[i][0], shapes[i][1], shapes[i][2], forms[f & 1],
                       forms[f >> 1 & 1], forms[f >> 2]);
}
END_TEST

START_TEST(a_product_over_nothing_is_zero) {
    const int64_t none[] = {1};
    for (size_t i = 0; i < COUNT(numbers); i++) matmul(numbers[i], 2, none, none, 70, 0, 90, ROWS, ROWS, ANY);
}
END_TEST

START_TEST(products_pass_nan_and_infinity) {
    static const fnx_attr_matmul attr = {0, 0};
    for (int64_t n = 4; n < 200; n += 90)
        for (size_t c = 0; c < CONFIGS; c++) {
            operation o = {.op = FNX_OP_matmul, .attr = &attr, .attr_size = sizeof attr, .n_in = 2, .n_out = 1};
            if (!cpu[c].device) continue;
            for (uint32_t i = 0; i < 3; i++) {
                array *a = i < 2 ? &o.in[i] : &o.out[0];
                *a = make(FNX_F32, 2, (int64_t[]){n, n}, ROWS);
                for (int64_t k = 0; k < n * n; k++) put(a, k, i < 2 ? 0 : (double)NAN);
            }
            put(&o.in[0], 0, NAN), put(&o.in[0], n, INFINITY), put(&o.in[1], 0, 1);
            run_on(&cpu[c], &o, o.out, NULL);
            ck_assert(isnan(get(&o.out[0], 0)) && isnan(get(&o.out[0], 1))); /* NaN * 0 */
            ck_assert(isinf(get(&o.out[0], n)) && isnan(get(&o.out[0], n + 1)));
            ck_assert(get(&o.out[0], 2 * n) == 0);
            for (uint32_t i = 0; i < 2; i++) free(o.in[i].data);
            free(o.out[0].data);
        }
}
END_TEST

/* ---- convolution ------------------------------------------------------------------------------------------------- */

typedef struct conv_case {
    uint32_t spatial, groups;
    int64_t n, c, o, s[3], k[3]; /* c and o: of a group */
    int32_t stride[3], dilation[3], low[3], high[3];
} conv_case;

static void conv(uint16_t op, uint16_t dtype, const conv_case *v, enum form fx, enum form fw, enum form fy) {
    fnx_attr_conv attr = {.spatial = v->spatial, .groups = v->groups};
    int64_t x[5] = {v->n, v->c * v->groups}, w[5] = {v->o * v->groups, v->c}, y[5] = {v->n, v->o * v->groups};
    int64_t window = 1, places = 1;
    for (uint32_t d = 0; d < v->spatial; d++) {
        attr.stride[d] = v->stride[d], attr.dilation[d] = v->dilation[d];
        attr.pad_low[d] = v->low[d], attr.pad_high[d] = v->high[d];
        x[2 + d] = v->s[d], w[2 + d] = v->k[d];
        const int64_t room = v->s[d] + v->low[d] + v->high[d] - v->dilation[d] * (v->k[d] - 1) - 1;
        y[2 + d] = room < 0 ? 0 : room / v->stride[d] + 1;
        window *= v->k[d], places *= y[2 + d];
    }
    operation o = {.op = op, .attr = &attr, .attr_size = sizeof attr, .n_in = 2, .n_out = 1};
    const array ax = make(dtype, v->spatial + 2, x, fx), aw = make(dtype, v->spatial + 2, w, fw);
    const array ay = make(dtype, v->spatial + 2, y, fy);
    o.in[0] = op == FNX_OP_conv_grad_x ? ay : ax;
    o.in[1] = op == FNX_OP_conv_grad_w ? ay : aw;
    o.out[0] = op == FNX_OP_conv ? ay : op == FNX_OP_conv_grad_x ? ax : aw;
    o.tolerance = sum_bound(dtype, op == FNX_OP_conv          ? v->c * window
                                   : op == FNX_OP_conv_grad_x ? v->o * window
                                                              : v->n * places);
    check(&o, dtype != FNX_F32);
}

START_TEST(random_convolutions_equal_ref) {
    seed = 1000 + (uint64_t)_i;
    for (int i = 0; i < 25; i++) {
        conv_case v = {.spatial = (uint32_t)(chance(60) ? 2 : chance(50) ? 1 : 3)};
        v.groups = (uint32_t)(chance(25) ? between(2, 4) : 1);
        v.n = between(1, 3), v.c = chance(20) ? 16 : between(1, 5), v.o = chance(30) ? 16 : between(1, 5);
        if (v.groups > 1 && chance(40)) v.c = v.o = 1; /* depthwise */
        if (chance(3)) v.n = 0;
        for (uint32_t d = 0; d < v.spatial; d++) {
            v.k[d] = between(1, 3), v.s[d] = between(2, 9);
            v.stride[d] = (int32_t)between(1, 3), v.dilation[d] = (int32_t)(chance(25) ? between(2, 3) : 1);
            v.low[d] = (int32_t)between(0, 3), v.high[d] = (int32_t)between(0, 3);
        }
        for (uint16_t op = FNX_OP_conv; op <= FNX_OP_conv_grad_w; op++)
            conv(op, any_float(), &v, chance(10) ? ANY : any_form(), any_form(), any_form());
    }
}
END_TEST

/* Shapes for which another algorithm or another form is chosen. */
START_TEST(chosen_algorithms_equal_ref) {
    static const conv_case cases[] = {
        {2, 1, 4, 1, 16, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},  /* one channel in, one block out */
        {2, 1, 2, 3, 16, {17, 19}, {5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 1}},  /* three channels in */
        {2, 1, 2, 16, 32, {14, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, /* direct */
        {2, 1, 2, 32, 48, {13, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 0}, {1, 1}}, /* Winograd */
        {2, 1, 1, 64, 32, {10, 10}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, /* Winograd without padding */
        {2, 1, 2, 20, 24, {9, 9}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},   /* 1 by 1 */
        {1, 1, 3, 8, 16, {40}, {5}, {1}, {2}, {4}, {4}},                     /* a causal one has high 0 */
        {3, 1, 1, 4, 16, {6, 7, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
        {2, 32, 2, 1, 1, {12, 12}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, /* depthwise */
    };
    seed = 3;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint16_t op = FNX_OP_conv; op <= FNX_OP_conv_grad_w; op++) {
            conv(op, FNX_F32, &cases[i], ROWS, ROWS, ROWS);
            conv(op, FNX_F32, &cases[i], LAST, ROWS, LAST);
            conv(op, FNX_F32, &cases[i], ANY, ANY, ANY);
            conv(op, FNX_F64, &cases[i], LAST, ROWS, ROWS);
        }
}
END_TEST

/* All-one arrays count the elements under each window: 9 inside, 6 at edges, 4 at corners, times channels. */
START_TEST(a_convolution_of_ones_counts) {
    const fnx_attr_conv attr = {2, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    for (size_t c = 0; c < CONFIGS; c++) {
        operation o = {.op = FNX_OP_conv, .attr = &attr, .attr_size = sizeof attr, .n_in = 2, .n_out = 1};
        if (!cpu[c].device) continue;
        o.in[0] = make(FNX_F32, 4, (int64_t[]){1, 32, 8, 8}, LAST);
        o.in[1] = make(FNX_F32, 4, (int64_t[]){32, 32, 3, 3}, ROWS);
        o.out[0] = make(FNX_F32, 4, (int64_t[]){1, 32, 8, 8}, LAST);
        for (uint32_t i = 0; i < 2; i++)
            for (int64_t k = 0; k < o.in[i].elements; k++) put(&o.in[i], k, 1);
        run_on(&cpu[c], &o, o.out, NULL);
        for (int64_t k = 0; k < o.out[0].elements; k++) {
            const int64_t row = k / 32 / 8, column = k / 32 % 8;
            const double rows = row % 7 ? 3 : 2, columns = column % 7 ? 3 : 2;
            ck_assert_double_eq_tol(get(&o.out[0], k), 32 * rows * columns, 1e-3);
        }
        for (uint32_t i = 0; i < 2; i++) free(o.in[i].data);
        free(o.out[0].data);
    }
}
END_TEST

/* One handle, more shapes than it keeps code for, each of them twice. */
START_TEST(a_handle_serves_many_shapes) {
    const fnx_attr_conv attr = {2, 1, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
    static float x[2 * 4 * 30 * 8], w[4 * 4 * 3 * 3], y[2 * 4 * 28 * 6];
    for (size_t i = 0; i < COUNT(x); i++) x[i] = (float)(i % 7);
    for (size_t i = 0; i < COUNT(w); i++) w[i] = 1;
    for (size_t c = 0; c < CONFIGS; c++) {
        void *handle;
        if (!cpu[c].device) continue;
        fragment *f = fragment_create();
        const uint16_t n = fragment_size(f, 2), k = fragment_size(f, 4), s0 = fragment_size(f, 5),
                       s1 = fragment_size(f, 8), three = fragment_size(f, 3), t0 = fragment_size(f, 3),
                       t1 = fragment_size(f, 6);
        const uint32_t a = fragment_input(f, FNX_F32, ENTRIES(n, k, s0, s1), x),
                       b = fragment_input(f, FNX_F32, ENTRIES(k, k, three, three), w),
                       r = fragment_output(f, FNX_F32, ENTRIES(n, k, t0, t1), y);
        fragment_node(f, FNX_OP_conv, &attr, sizeof attr, REFS(a, b), REFS(r));
        fragment_finish(f);
        ck_assert_int_eq(cpu[c].groups->prepare(cpu[c].device, f->group, &handle, NULL), FNX_OK);
        for (int64_t round = 0; round < 2; round++)
            for (int64_t size = 5; size <= 30; size++) {
                float want = 0;
                fragment_resize(f, s0, size);
                fragment_resize(f, t0, size - 2);
                ck_assert_int_eq(backend_launch(&cpu[c], handle, &f->launch, NULL), FNX_OK);
                for (int64_t i = 0; i < 4 * 9; i++) /* the window at the first place, all channels */
                    want += x[(i / 9 * size + i % 9 / 3) * 8 + i % 3];
                ck_assert_double_eq_tol((double)y[0], (double)want, 1e-3);
            }
        cpu[c].groups->release(handle);
        fragment_destroy(f);
    }
}
END_TEST

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* Runs an op of pooling; `where` is made by ref's max_pool where one is read. */
static void pool(uint16_t op, uint16_t dtype, const fnx_attr_pool *attr, int64_t n, int64_t c, const int64_t *s,
                 enum form fx, enum form fy, enum form fw) {
    int64_t x[5] = {n, c}, y[5] = {n, c}, window = 1;
    for (uint32_t d = 0; d < attr->spatial; d++) {
        const int64_t room = s[d] + attr->pad_low[d] + attr->pad_high[d] - attr->window[d];
        x[2 + d] = s[d];
        y[2 + d] = room < 0 ? 0 : room / attr->stride[d] + 1;
        window *= attr->window[d];
    }
    operation o = {.op = op, .attr = attr, .attr_size = sizeof *attr, .n_in = 1, .n_out = 1};
    const array ax = make(dtype, attr->spatial + 2, x, fx), ay = make(dtype, attr->spatial + 2, y, fy);
    array where = make(window <= 256 ? FNX_U8 : FNX_I32, attr->spatial + 2, y, fw);
    o.in[0] = op == FNX_OP_max_pool_grad || op == FNX_OP_avg_pool_grad ? ay : ax;
    o.out[0] = op == FNX_OP_max_pool_grad || op == FNX_OP_avg_pool_grad ? ax : ay;
    o.tolerance = op == FNX_OP_max_pool || op == FNX_OP_max_pool_pick ? 0 : sum_bound(dtype, window);
    if (op == FNX_OP_max_pool && chance(70)) o.out[o.n_out++] = where;
    else if (op == FNX_OP_max_pool_grad || op == FNX_OP_max_pool_pick) {
        operation first = {.op = FNX_OP_max_pool, .attr = attr, .attr_size = sizeof *attr, .n_in = 1, .n_out = 2};
        first.in[0] = make(dtype, attr->spatial + 2, x, ROWS);
        first.out[0] = make(dtype, attr->spatial + 2, y, ROWS);
        first.out[1] = where;
        run_on(&ref, &first, first.out, NULL);
        free(first.in[0].data), free(first.out[0].data);
        o.in[o.n_in++] = where;
    } else free(where.data);
    check(&o, 1);
}

START_TEST(random_pooling_equals_ref) {
    seed = 2000 + (uint64_t)_i;
    for (int i = 0; i < 50; i++) {
        const int long_window = chance(5); /* places beyond u8 */
        fnx_attr_pool attr = {.spatial = (uint32_t)(long_window ? 1 : chance(60) ? 2 : chance(50) ? 1 : 3)};
        int64_t s[3];
        const int64_t c = chance(50) ? between(1, 6) : between(14, 37);
        attr.flags = chance(50) ? FNX_POOL_EXCLUDE_PAD : 0;
        for (uint32_t d = 0; d < attr.spatial; d++) {
            attr.window[d] = (int32_t)between(1, 4), attr.stride[d] = (int32_t)between(1, 4);
            attr.pad_low[d] = (int32_t)between(0, attr.window[d] - 1);
            attr.pad_high[d] = (int32_t)between(0, attr.window[d] - 1);
            s[d] = between(2, 9);
        }
        if (long_window) attr.window[0] = 300, s[0] = 311;
        for (uint16_t op = FNX_OP_max_pool; op <= FNX_OP_avg_pool_grad; op++) {
            const uint16_t dtype = op >= FNX_OP_avg_pool ? any_float() : any_number();
            pool(op, dtype, &attr, chance(3) ? 0 : between(1, 3), c, s, any_form(), any_form(), any_form());
        }
    }
}
END_TEST

START_TEST(pooling_of_a_network_equals_ref) {
    const fnx_attr_pool two = {2, 0, {2, 2}, {2, 2}, {0, 0}, {0, 0}}, three = {2, 0, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
    seed = 4;
    for (uint16_t op = FNX_OP_max_pool; op <= FNX_OP_avg_pool_grad; op++)
        for (uint32_t f = 0; f < 4; f++) {
            pool(op, FNX_F32, &two, 8, 32, (int64_t[]){28, 28}, f & 1 ? LAST : ROWS, f & 2 ? LAST : ROWS, LAST);
            pool(op, FNX_F32, &three, 4, 48, (int64_t[]){15, 15}, f & 1 ? LAST : ROWS, f & 2 ? LAST : ROWS, ROWS);
        }
}
END_TEST

START_TEST(max_pool_takes_the_first_of_equals_and_the_first_nan) {
    const fnx_attr_pool attr = {2, 0, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
    static const struct {
        double x[4], y;
        int where;
    } cases[] = {{{1, 1, 1, 1}, 1, 0},          {{0, 3, 3, 1}, 3, 1},      {{1, NAN, 9, NAN}, NAN, 1},
                 {{-0.0, 0, 1, 1}, 1, 2},       {{-2, -3, -1, -1}, -1, 2}, {{-INFINITY, -INFINITY, NAN, 0}, NAN, 2},
                 {{NAN, NAN, NAN, NAN}, NAN, 0}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t c = 0; c < CONFIGS; c++)
            for (int64_t channels = 1; channels < 40; channels += 19) {
                operation o = {.op = FNX_OP_max_pool, .attr = &attr, .attr_size = sizeof attr, .n_in = 1, .n_out = 2};
                if (!cpu[c].device) continue;
                o.in[0] = make(FNX_F32, 4, (int64_t[]){1, channels, 2, 2}, LAST);
                o.out[0] = make(FNX_F32, 4, (int64_t[]){1, channels, 1, 1}, LAST);
                o.out[1] = make(FNX_U8, 4, (int64_t[]){1, channels, 1, 1}, LAST);
                for (int64_t k = 0; k < 4 * channels; k++) put(&o.in[0], k, cases[i].x[k / channels]);
                run_on(&cpu[c], &o, o.out, NULL);
                for (int64_t k = 0; k < channels; k++) {
                    ck_assert(agree(get(&o.out[0], k), cases[i].y, 0));
                    ck_assert_int_eq((int)get(&o.out[1], k), cases[i].where);
                }
                free(o.in[0].data), free(o.out[0].data), free(o.out[1].data);
            }
}
END_TEST

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

static const uint16_t gathered[] = {FNX_F32, FNX_F64, FNX_I32, FNX_I64, FNX_U8, FNX_BOOL};

static void fill_indexes(array *a, int64_t limit) {
    for (int64_t i = 0; i < a->elements; i++) put(a, i, (double)between(0, limit > 0 ? limit - 1 : 0));
}

START_TEST(random_gathers_and_scatters_equal_ref) {
    seed = 3000 + (uint64_t)_i;
    for (int i = 0; i < 120; i++) {
        const uint32_t rank = (uint32_t)between(1, 4), axis = (uint32_t)between(0, rank - 1);
        const fnx_attr_axis attr = {axis, 0};
        const int scatters = chance(50);
        const uint16_t index_type = chance(50) ? FNX_I32 : FNX_I64;
        int64_t x[4], index[4], y[4];
        for (uint32_t d = 0; d < rank; d++) {
            x[d] = chance(10) ? between(20, 90) : between(1, 7);
            y[d] = d == axis ? chance(10) ? between(40, 300) : between(0, 9) : between(1, x[d]);
            index[d] = chance(25) ? 1 : y[d];
        }
        operation o = {.op = scatters ? FNX_OP_scatter_add : FNX_OP_gather, .attr = &attr, .attr_size = sizeof attr};
        const uint16_t dtype = scatters ? any_number() : gathered[between(0, COUNT(gathered) - 1)];
        o.in[o.n_in++] = make(dtype, rank, x, any_form());
        o.in[o.n_in++] = make(index_type, rank, index, chance(20) ? BROADCAST : any_form());
        if (scatters) o.in[o.n_in++] = make(dtype, rank, y, chance(20) ? BROADCAST : any_form());
        o.out[o.n_out++] = make(dtype, rank, scatters ? x : y, any_form());
        if (dtype == FNX_BOOL)
            for (int64_t k = 0; k < o.in[0].elements; k++) put(&o.in[0], k, (double)between(0, 1));
        fill_indexes(&o.in[1], x[axis]);
        check(&o, 1);
    }
}
END_TEST

START_TEST(large_gathers_and_scatters_equal_ref) {
    static const struct {
        int64_t rows, columns, n;
    } cases[] = {{1000, 64, 4000}, {50000, 1, 100000}, {7, 1, 100000}, {300, 3, 40000}};
    const fnx_attr_axis attr = {0, 0};
    seed = 9;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int scatters = 0; scatters < 2; scatters++) {
            const int64_t x[] = {cases[i].rows, cases[i].columns}, y[] = {cases[i].n, cases[i].columns};
            const int64_t index[] = {cases[i].n, 1};
            operation o = {.op = scatters ? FNX_OP_scatter_add : FNX_OP_gather,
                           .attr = &attr,
                           .attr_size = sizeof attr};
            o.in[o.n_in++] = make(FNX_F32, 2, x, ROWS);
            o.in[o.n_in++] = make(FNX_I64, 2, index, ROWS);
            if (scatters) o.in[o.n_in++] = make(FNX_F32, 2, y, ROWS);
            o.out[o.n_out++] = make(FNX_F32, 2, scatters ? x : y, ROWS);
            fill_indexes(&o.in[1], cases[i].rows);
            check(&o, 1);
        }
}
END_TEST

START_TEST(an_index_outside_is_noted_and_does_nothing) {
    const fnx_attr_axis attr = {0, 0};
    static const float x[] = {1, 2, 3}, update[] = {10, 20, 30};
    static const int64_t bad[] = {-1, 3, INT64_MAX, INT64_MIN};
    for (size_t c = 0; c < CONFIGS; c++)
        for (size_t i = 0; i < COUNT(bad) && cpu[c].device; i++)
            for (int scatters = 0; scatters < 2; scatters++) {
                const int64_t index[] = {2, bad[i], 0};
                float y[3] = {7, 7, 7};
                fnx_error_word word;
                fragment *f = fragment_create();
                const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, 3), x),
                               b = fragment_input(f, FNX_I64, SHAPE(f, 3), index),
                               u = scatters ? fragment_input(f, FNX_F32, SHAPE(f, 3), update) : 0,
                               r = fragment_output(f, FNX_F32, SHAPE(f, 3), y);
                if (scatters) fragment_node(f, FNX_OP_scatter_add, &attr, sizeof attr, REFS(a, b, u), REFS(r));
                else fragment_node(f, FNX_OP_gather, &attr, sizeof attr, REFS(a, b), REFS(r));
                fragment_finish(f);
                f->launch.site = 42;
                ck_assert_int_eq(backend_run(&cpu[c], f, &word, NULL), FNX_OK);
                ck_assert_int_eq(word.code, FNX_E_INDEX);
                ck_assert_int_eq(word.index, bad[i]);
                ck_assert_int_eq(word.limit, 3);
                ck_assert_uint_eq(word.site, 42);
                ck_assert(y[0] == (scatters ? 31.f : 3.f) && y[1] == (scatters ? 2.f : 0.f));
                ck_assert(y[2] == (scatters ? 13.f : 1.f));
                fragment_destroy(f);
            }
}
END_TEST

START_TEST(a_scatter_in_place_keeps_the_rest) {
    const fnx_attr_axis attr = {0, 0};
    for (size_t c = 0; c < CONFIGS; c++) {
        float y[4] = {1, 2, 3, 4};
        const float update[] = {10, 20, 30};
        const int32_t index[] = {3, 0, 3};
        if (!cpu[c].device) continue;
        fragment *f = fragment_create();
        const uint32_t a = fragment_input(f, FNX_F32, SHAPE(f, 4), y),
                       b = fragment_input(f, FNX_I32, SHAPE(f, 3), index),
                       u = fragment_input(f, FNX_F32, SHAPE(f, 3), update), r = fragment_output_in_place(f, a);
        fragment_node(f, FNX_OP_scatter_add, &attr, sizeof attr, REFS(a, b, u), REFS(r));
        fragment_finish(f);
        ck_assert_int_eq(backend_run(&cpu[c], f, NULL, NULL), FNX_OK);
        ck_assert(y[0] == 21 && y[1] == 2 && y[2] == 3 && y[3] == 44);
        fragment_destroy(f);
    }
}
END_TEST

/* ---- what is declined, and layouts ------------------------------------------------------------------------------- */

START_TEST(what_a_kernel_does_not_run_is_declined_with_a_reason) {
    static float x[16], y[16];
    static const fnx_attr_reduce beyond = {4, 0}, unknown = {1, 1}, two_axes = {3, 0};
    static const fnx_attr_matmul precision = {9, 0};
    static const fnx_attr_conv no_groups = {2, 0, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, rank = {1, 1, {1}, {1}, {0}, {0}};
    static const fnx_attr_pool stride = {2, 0, {1, 1}, {0, 1}, {0, 0}, {0, 0}};
    static const struct {
        uint16_t op, dtype;
        const void *attr;
        uint32_t attr_size, why;
    } cases[] = {
        {FNX_OP_sum, FNX_F32, &beyond, sizeof beyond, FNX_DECLINE_ATTR},
        {FNX_OP_sum, FNX_F32, &unknown, sizeof unknown, FNX_DECLINE_ATTR},
        {FNX_OP_sum, FNX_BF16, &two_axes, sizeof two_axes, FNX_DECLINE_DTYPE},
        {FNX_OP_argmax, FNX_F32, &two_axes, sizeof two_axes, FNX_DECLINE_ATTR},
        {FNX_OP_matmul, FNX_F32, &precision, sizeof precision, FNX_DECLINE_ATTR},
        {FNX_OP_conv, FNX_I32, &no_groups, sizeof no_groups, FNX_DECLINE_ATTR},
        {FNX_OP_conv, FNX_F32, &rank, sizeof rank, FNX_DECLINE_LAYOUT},
        {FNX_OP_max_pool, FNX_F32, &stride, sizeof stride, FNX_DECLINE_ATTR},
        {FNX_OP_softmax, FNX_F32, NULL, 0, FNX_DECLINE_OP},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        fragment *f = fragment_create();
        fnx_decline why = {.struct_size = sizeof why};
        void *handle;
        const uint32_t a = fragment_input(f, cases[i].dtype, SHAPE(f, 2, 2), x),
                       r = fragment_output(f, cases[i].dtype, SHAPE(f, 2, 2), y);
        fragment_node(f, cases[i].op, cases[i].attr, cases[i].attr_size, REFS(a, a), REFS(r));
        if (cases[i].op != FNX_OP_matmul && cases[i].op != FNX_OP_conv) f->node[0].n_operands = 1;
        fragment_finish(f);
        f->group->anchor = cases[i].op == FNX_OP_softmax ? FNX_ANCHOR_OPAQUE : f->group->anchor;
        ck_assert_int_eq(cpu[0].groups->prepare(cpu[0].device, f->group, &handle, &why), FNX_E_DECLINED);
        ck_assert_uint_eq(why.why, cases[i].why);
        ck_assert(why.text[0] != 0);
        fragment_destroy(f);
    }
}
END_TEST

START_TEST(convolutions_wish_for_channels_last) {
    const fnx_layout_interface *layouts = cpu[0].table->get_interface(cpu[0].device, "fornax.layout/0");
    const fnx_attr_conv attr = {2, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    static const uint8_t last[] = {0, 2, 3, 1};
    ck_assert_ptr_nonnull(layouts);
    for (int64_t channels = 1; channels <= 16; channels += 15)
        for (uint16_t op = FNX_OP_conv; op <= FNX_OP_conv_grad_w; op++) {
            fnx_layout wish[3];
            operation o = {.op = op, .attr = &attr, .attr_size = sizeof attr, .n_in = 2, .n_out = 1};
            const array x = make(FNX_F32, 4, (int64_t[]){2, channels, 8, 8}, ROWS);
            const array w = make(FNX_F32, 4, (int64_t[]){16, channels, 3, 3}, ROWS);
            const array y = make(FNX_F32, 4, (int64_t[]){2, 16, 8, 8}, ROWS);
            o.in[0] = op == FNX_OP_conv_grad_x ? y : x;
            o.in[1] = op == FNX_OP_conv_grad_w ? y : w;
            o.out[0] = op == FNX_OP_conv ? y : op == FNX_OP_conv_grad_x ? x : w;
            fragment *f = fragment_of(&o, o.out);
            ck_assert_int_eq(layouts->prefer(cpu[0].device, f->group, &f->launch, wish), FNX_OK);
            for (uint32_t i = 0; i < 3; i++) {
                const array *a = i < 2 ? &o.in[i] : &o.out[0];
                if (a->data == w.data) ck_assert_uint_eq(wish[i].kind, i < 2 ? FNX_LAYOUT_ANY : FNX_LAYOUT_ROW_MAJOR);
                else if (i < 2 && a->size[1] == 1) ck_assert_uint_eq(wish[i].kind, FNX_LAYOUT_ANY);
                else {
                    ck_assert_uint_eq(wish[i].kind, FNX_LAYOUT_ORDER);
                    ck_assert_mem_eq(wish[i].order, last, sizeof last);
                }
            }
            fragment_destroy(f);
            free(x.data), free(w.data), free(y.data);
        }
}
END_TEST

/* ---- main -------------------------------------------------------------------------------------------------------- */

int main(void) {
    Suite *suite = suite_create("cpu kernels");
    TCase *c = tcase_create("cpu kernels");
    const int rounds = other_backend() ? 1 : 4;
    tcase_add_checked_fixture(c, cpu_setup, cpu_teardown);
    tcase_set_timeout(c, 240); /* against machines that are busy and sanitizers; each needs a few seconds */
    tcase_add_loop_test(c, random_reductions_equal_ref, 0, rounds);
    tcase_add_test(c, long_reductions_keep_the_error_bound_and_their_bits);
    tcase_add_test(c, extrema_know_nan_infinities_and_signed_zeros);
    tcase_add_test(c, argmax_takes_the_first_of_equals_and_the_first_nan);
    tcase_add_loop_test(c, random_products_equal_ref, 0, rounds);
    tcase_add_test(c, transposed_operands_and_results_equal_ref);
    tcase_add_test(c, a_product_over_nothing_is_zero);
    tcase_add_test(c, products_pass_nan_and_infinity);
    tcase_add_loop_test(c, random_convolutions_equal_ref, 0, rounds);
    tcase_add_test(c, chosen_algorithms_equal_ref);
    tcase_add_test(c, a_convolution_of_ones_counts);
    tcase_add_test(c, a_handle_serves_many_shapes);
    tcase_add_loop_test(c, random_pooling_equals_ref, 0, rounds);
    tcase_add_test(c, pooling_of_a_network_equals_ref);
    tcase_add_test(c, max_pool_takes_the_first_of_equals_and_the_first_nan);
    tcase_add_loop_test(c, random_gathers_and_scatters_equal_ref, 0, rounds);
    tcase_add_test(c, large_gathers_and_scatters_equal_ref);
    tcase_add_test(c, an_index_outside_is_noted_and_does_nothing);
    tcase_add_test(c, a_scatter_in_place_keeps_the_rest);
    if (!other_backend()) {
        tcase_add_test(c, what_a_kernel_does_not_run_is_declined_with_a_reason);
        tcase_add_test(c, convolutions_wish_for_channels_last);
    }
    suite_add_tcase(suite, c);
    return cpu_run_suite(suite);
}
