/* Elementwise groups on the cpu plugin's vector machine, at every ISA level that this CPU has, with one thread and
 * with two.
 *
 * Groups are run twice: node by node over packed arrays, where each node must agree with the ref plugin within its op's
 * limit; and as one group over strided, permuted, reversed, broadcast and overwritten memory, which must give the
 * same bits (but where a product is added without being rounded). */
#include "support/cpu.h"

#include "ops/op.h"

/* ---- groups ------------------------------------------------------------------------------------------------------ */

enum { MAX_VALUES = 48, MAX_NODES = 16 };

typedef struct value {
    uint8_t kind;
    uint16_t dtype;
    uint32_t axes;   /* mask: along the others its size is 1 */
    int product;     /* of a sum: the product that may be added before it is rounded, or -1 */
    int in_place_of; /* output: the input that it overwrites, or -1 */
    int64_t stride[FNX_MAX_RANK], origin, elements; /* stored ones: within `data` */
    char *data;
    char *packed;  /* its elements row by row, as node by node gives them */
    uint64_t bits; /* scalars */
} value;

typedef struct program {
    uint32_t rank;
    int64_t size[FNX_MAX_RANK];
    uint32_t n_values, n_nodes;
    value v[MAX_VALUES];
    struct {
        uint16_t op;
        uint32_t n_in, in[3], out;
    } node[MAX_NODES];
} program;

static int is_memory(const value *v) { return v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT; }
static int is_scalar(const value *v) { return v->kind == FNX_VALUE_SCALAR || v->kind == FNX_VALUE_CONST; }
static uint32_t all_axes(const program *p) { return (1u << p->rank) - 1; }

static int64_t length(const program *p, const value *v, uint32_t d) { return v->axes >> d & 1 ? p->size[d] : 1; }

static int64_t count_of(const program *p, const value *v) {
    int64_t n = 1;
    for (uint32_t d = 0; d < p->rank; d++) n *= length(p, v, d);
    return n;
}

/* Where element number i (row by row) is, by the value's strides. */
static int64_t place_of(const program *p, const value *v, int64_t i) {
    int64_t at = v->origin;
    for (uint32_t d = p->rank; d-- > 0; i /= length(p, v, d)) at += i % length(p, v, d) * v->stride[d];
    return at;
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static const double special_floats[] = {0.0,   -0.0,         1,       -1,    INFINITY, -INFINITY, NAN, 1e-310,
                                        3e-42, 2147483648.0, -9.3e18, 255.5, 1e300,    88.8};
static const int64_t special_integers[] = {0, 1, -1, 2, INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 255, 256};

/* Mostly tame numbers, so that chains stay finite; now and then one of every size, or a special one. */
static void fill(char *data, uint16_t dtype, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(draw() >> 11) * 0x1p-51 - 2;
        int64_t whole = between(-9, 9);
        if (chance(5)) x = ldexp(x, (int)between(-140, 120)), whole = (int64_t)draw();
        if (chance(2))
            x = special_floats[between(0, COUNT(special_floats) - 1)],
            whole = special_integers[between(0, COUNT(special_integers) - 1)];
        put_number(data, dtype, i, x, whole);
    }
}

/* Strides in memory: any order of axes, gaps, backwards; inputs also with all elements of an axis in one place. */
static void lay_out(const program *p, value *v) {
    uint32_t order[FNX_MAX_RANK];
    int64_t packed = 1;
    const int plain = chance(35), may_expand = v->kind == FNX_VALUE_INPUT && chance(20);
    for (uint32_t d = 0; d < p->rank; d++) order[d] = d;
    for (uint32_t d = p->rank; !plain && d-- > 1;) {
        const uint32_t k = chance(60) ? d : (uint32_t)between(0, d), old = order[d];
        order[d] = order[k], order[k] = old;
    }
    v->origin = 0;
    for (uint32_t i = p->rank; i-- > 0;) {
        const uint32_t d = order[i];
        const int64_t n = length(p, v, d);
        v->stride[d] = packed;
        if (may_expand && chance(30)) v->stride[d] = 0;
        else packed *= n > 0 ? n : 1;
        if (!plain && chance(20)) packed += between(1, 3);
        if (!plain && chance(15) && n > 0) v->origin += (n - 1) * v->stride[d], v->stride[d] = -v->stride[d];
        if (!(v->axes >> d & 1)) v->stride[d] = 0;
    }
    v->elements = packed;
}

static uint32_t add_value(program *p, uint8_t kind, uint16_t dtype, uint32_t axes) {
    ck_assert_uint_lt(p->n_values, MAX_VALUES);
    value *v = &p->v[p->n_values];
    *v = (value){.kind = kind, .dtype = dtype, .axes = axes, .in_place_of = -1, .product = -1};
    return p->n_values++;
}

/* Row by row, without gaps. */
static void pack(const program *p, value *v) {
    v->elements = 1;
    for (uint32_t d = p->rank; d-- > 0; v->elements *= length(p, v, d))
        v->stride[d] = v->axes >> d & 1 ? v->elements : 0;
}

static uint32_t add_packed(program *p, uint8_t kind, uint16_t dtype, uint32_t axes) {
    const uint32_t i = add_value(p, kind, dtype, axes);
    pack(p, &p->v[i]);
    return i;
}

static void *make(int64_t n, uint16_t dtype) {
    void *data = malloc((size_t)(n + 8) * bytes_of(dtype));
    ck_assert_ptr_nonnull(data);
    return data;
}

/* Memory of the value, and its elements in order. */
static void give_memory(program *p, uint32_t i) {
    value *v = &p->v[i];
    const int64_t n = count_of(p, v);
    const uint32_t bytes = bytes_of(v->dtype);
    if (is_scalar(v)) return;
    v->packed = make(n, v->dtype);
    if (v->kind == FNX_VALUE_INDEX)
        for (int64_t k = 0; k < n; k++) ((int64_t *)(void *)v->packed)[k] = place_of(p, v, k);
    if (!is_memory(v)) return;
    v->data = make(v->elements, v->dtype);
    fill(v->data, v->dtype, v->elements);
    for (int64_t k = 0; k < n && v->kind == FNX_VALUE_INPUT; k++)
        memcpy(v->packed + k * bytes, v->data + place_of(p, v, k) * bytes, bytes);
}

static void forget(program *p) {
    for (uint32_t i = 0; i < p->n_values; i++) free(p->v[i].data), free(p->v[i].packed);
}

/* ---- fragments --------------------------------------------------------------------------------------------------- */

static uint32_t scalar_in(fragment *f, const value *v) {
    if (v->kind == FNX_VALUE_SCALAR) return fragment_scalar_bits(f, v->dtype, v->bits);
    const uint32_t i = fragment_const(f, v->dtype, 0);
    f->constant[f->value[i].index].bits[0] = v->bits;
    return i;
}

static void entries_of(const program *p, fragment *f, uint16_t *entry) {
    for (uint32_t d = 0; d < p->rank; d++) {
        entry[d] =
            fragment_size(f, p->size[d] == 1 && d % 2 ? 2 : p->size[d]); /* a size that is 1 in this launch only */
        f->length[entry[d]] = p->size[d];
    }
}

static fragment_shape shape_of(const program *p, const uint16_t *entry, const value *v) {
    fragment_shape s = {p->rank, {0}};
    for (uint32_t d = 0; d < p->rank; d++) s.size[d] = v->axes >> d & 1 ? entry[d] : 0;
    return s;
}

/* The whole group; `data` are the memories of its values. */
static fragment *whole(const program *p, char *const *data) {
    fragment *f = fragment_create();
    uint32_t id[MAX_VALUES];
    uint16_t entry[FNX_MAX_RANK];
    entries_of(p, f, entry);
    for (uint32_t i = 0; i < p->n_values; i++) {
        const value *v = &p->v[i];
        const fragment_shape s = shape_of(p, entry, v);
        char *at = is_memory(v) ? data[i] + v->origin * bytes_of(v->dtype) : NULL;
        switch (v->kind) {
        case FNX_VALUE_INPUT: id[i] = fragment_input_strided(f, v->dtype, s, v->stride, at); break;
        case FNX_VALUE_OUTPUT: id[i] = fragment_output_strided(f, v->dtype, s, v->stride, at); break;
        case FNX_VALUE_TEMP: id[i] = fragment_temp(f, v->dtype, s); break;
        case FNX_VALUE_INDEX: id[i] = fragment_index(f, s, v->stride); break;
        default: id[i] = scalar_in(f, v);
        }
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->v[i].in_place_of >= 0) fragment_share_slot(f, id[i], id[p->v[i].in_place_of]);
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        uint32_t in[3];
        for (uint32_t i = 0; i < p->node[k].n_in; i++) in[i] = id[p->node[k].in[i]];
        fragment_node(f, p->node[k].op, NULL, 0, p->node[k].n_in, in, 1, &id[p->node[k].out]);
    }
    fragment_finish(f);
    return f;
}

/* One node over packed arrays. */
static fragment *single(const program *p, uint32_t k, void *result) {
    fragment *f = fragment_create();
    uint32_t in[3];
    uint16_t entry[FNX_MAX_RANK];
    entries_of(p, f, entry);
    for (uint32_t i = 0; i < p->node[k].n_in; i++) {
        const value *v = &p->v[p->node[k].in[i]];
        in[i] = is_scalar(v) ? scalar_in(f, v) : fragment_input(f, v->dtype, shape_of(p, entry, v), v->packed);
    }
    const value *y = &p->v[p->node[k].out];
    const uint32_t out = fragment_output(f, y->dtype, shape_of(p, entry, y), result);
    fragment_node(f, p->node[k].op, NULL, 0, p->node[k].n_in, in, 1, &out);
    fragment_finish(f);
    return f;
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static const char *describe(const program *p, char *text, size_t size) {
    static const char kinds[] = {'?', 'i', 'o', 't', 's', 'c', 'x'};
    size_t n = 0;
    text[0] = 0;
    for (uint32_t d = 0; d < p->rank && n < size; d++)
        n += (size_t)snprintf(text + n, size - n, "%s%lld", d ? "," : "[", (long long)p->size[d]);
    for (uint32_t i = 0; i < p->n_values && n < size; i++) {
        n += (size_t)snprintf(text + n, size - n, "\n  %c%u %s axes %x", kinds[p->v[i].kind], i,
                              fnx_dtypes[p->v[i].dtype].name, p->v[i].axes);
        if (p->v[i].in_place_of >= 0 && n < size)
            n += (size_t)snprintf(text + n, size - n, " over %d", p->v[i].in_place_of);
        for (uint32_t d = 0; d < p->rank && is_memory(&p->v[i]) && n < size; d++)
            n += (size_t)snprintf(text + n, size - n, "%c%lld", d ? ',' : ' ', (long long)p->v[i].stride[d]);
    }
    for (uint32_t k = 0; k < p->n_nodes && n < size; k++) {
        n += (size_t)snprintf(text + n, size - n, "\n  %u = %s", p->node[k].out, fnx_ops[p->node[k].op].name);
        for (uint32_t i = 0; i < p->node[k].n_in && n < size; i++)
            n += (size_t)snprintf(text + n, size - n, " %u", p->node[k].in[i]);
    }
    return text;
}

/* Whether element i, a sum, is one without the rounding of its product. */
static int fused(const program *p, const value *v, int64_t i, const char *got, const char *want) {
    if (v->product < 0) return 0;
    const value *m = &p->v[v->product];
    int64_t at = 0, stride = 1;
    for (uint32_t d = p->rank; d-- > 0; i /= length(p, v, d)) {
        at += m->axes >> d & 1 ? i % p->size[d] * stride : 0;
        stride *= length(p, m, d);
    }
    const double x = number(v->dtype, got), y = number(v->dtype, want);
    const double product = number(v->dtype, m->packed + at * bytes_of(v->dtype));
    return !isfinite(product) || fabs(x - y) <= spacing(v->dtype, product) + spacing(v->dtype, y);
}

/* `limit` in ulp of floats; other dtypes and limit 0: exact, but any NaN is any other. */
static void compare(const program *p, uint32_t at, const char *got, const char *want, double limit, const char *who) {
    const value *v = &p->v[at];
    const int64_t n = count_of(p, v);
    for (int64_t i = 0; i < n; i++) {
        const char *x = got + i * bytes_of(v->dtype), *y = want + i * bytes_of(v->dtype);
        const double distance = memcmp(x, y, bytes_of(v->dtype)) ? ulp_distance(v->dtype, x, y) : 0;
        if (distance <= limit || (limit == 0 && fused(p, v, i, x, y))) continue;
        char a[64], b[64], text[4096];
        show(a, sizeof a, v->dtype, x), show(b, sizeof b, v->dtype, y);
        ck_abort_msg("%s: value %u, element %lld of %lld is %s, should be %s (%.3g ulp)\n%s", who, at, (long long)i,
                     (long long)n, a, b, distance, describe(p, text, sizeof text));
    }
}

/* ---- both ways --------------------------------------------------------------------------------------------------- */

/* Runs each node alone on `b` and on ref; results go to `packed`. Which nodes divided by 0 is a bit each. */
static uint32_t node_by_node(program *p, backend *b, const char *who) {
    uint32_t failed = 0;
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const value *y = &p->v[p->node[k].out];
        char *want = make(count_of(p, y), y->dtype);
        fnx_error_word word, ref_word;
        run_fragment(b, single(p, k, y->packed), &word, who);
        run_fragment(&ref, single(p, k, want), &ref_word, "ref");
        ck_assert_msg(word.code == ref_word.code, "%s: %s says %d, ref %d", who, fnx_ops[p->node[k].op].name, word.code,
                      ref_word.code);
        compare(p, p->node[k].out, y->packed, want, (double)fnx_ops[p->node[k].op].ulp, who);
        if (word.code) failed |= 1u << k;
        free(want);
    }
    return failed;
}

static void as_one(const program *p, backend *b, uint32_t failed, const char *who) {
    char *data[MAX_VALUES] = {0};
    fnx_error_word word;
    for (uint32_t i = 0; i < p->n_values; i++) {
        const value *v = &p->v[i];
        if (!is_memory(v) || v->in_place_of >= 0) continue;
        data[i] = make(v->elements, v->dtype);
        memcpy(data[i], v->data, (size_t)v->elements * bytes_of(v->dtype));
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        if (p->v[i].in_place_of >= 0) data[i] = data[p->v[i].in_place_of];
    run_fragment(b, whole(p, data), &word, who);
    char text[4096];
    ck_assert_msg((word.code != 0) == (failed != 0), "%s: the group says %d\n%s", who, word.code,
                  describe(p, text, sizeof text));
    if (word.code) {
        ck_assert_int_eq(word.code, FNX_E_INDEX);
        ck_assert_uint_eq(word.site, 7);
        ck_assert_msg(word.node < p->n_nodes && failed >> word.node & 1, "%s: node %u did not divide by 0", who,
                      word.node);
        ck_assert(word.index == 0 && word.limit == 0);
    }
    for (uint32_t i = 0; i < p->n_values; i++) {
        const value *v = &p->v[i];
        const uint32_t bytes = bytes_of(v->dtype);
        if (v->kind != FNX_VALUE_OUTPUT) continue;
        const int64_t n = count_of(p, v);
        char *got = make(n, v->dtype), *gaps = make(v->elements, v->dtype);
        const char *before = v->in_place_of >= 0 ? p->v[v->in_place_of].data : v->data;
        memcpy(gaps, data[i], (size_t)v->elements * bytes);
        for (int64_t k = 0; k < n; k++) {
            const int64_t at = place_of(p, v, k) * bytes;
            memcpy(got + k * bytes, data[i] + at, bytes);
            memcpy(gaps + at, before + at, bytes);
        }
        compare(p, i, got, v->packed, 0, who);
        ck_assert_msg(memcmp(gaps, before, (size_t)v->elements * bytes) == 0, "%s: wrote outside of value %u\n%s", who,
                      i, describe(p, text, sizeof text));
        free(got), free(gaps);
    }
    for (uint32_t i = 0; i < p->n_values; i++)
        if (is_memory(&p->v[i]) && p->v[i].kind == FNX_VALUE_INPUT) {
            int overwritten = 0;
            for (uint32_t k = 0; k < p->n_values; k++) overwritten |= p->v[k].in_place_of == (int)i;
            if (!overwritten)
                ck_assert_mem_eq(data[i], p->v[i].data, (size_t)p->v[i].elements * bytes_of(p->v[i].dtype));
            free(data[i]);
        } else if (is_memory(&p->v[i]) && p->v[i].in_place_of < 0) free(data[i]);
}

static void check_program(program *p) {
    for (uint32_t i = 0; i < p->n_values; i++) give_memory(p, i);
    for (size_t c = 0; c < CONFIGS; c += 2) {
        if (!cpu[c].device) continue;
        const uint32_t failed = node_by_node(p, &cpu[c], config_names[c]);
        as_one(p, &cpu[c], failed, config_names[c]);
        if (cpu[c + 1].device) as_one(p, &cpu[c + 1], failed, config_names[c + 1]);
    }
    forget(p);
}

/* ---- random groups ----------------------------------------------------------------------------------------------- */

static const uint16_t every_dtype[] = {FNX_F32, FNX_F64, FNX_I32, FNX_I64, FNX_U8, FNX_BOOL};
static uint16_t any_dtype(void) { return chance(50) ? FNX_F32 : every_dtype[between(0, COUNT(every_dtype) - 1)]; }

static uint32_t any_axes(const program *p) {
    if (chance(60)) return all_axes(p);
    if (chance(30)) return all_axes(p) & (p->rank ? 1u << (p->rank - 1) : 0); /* a row */
    return all_axes(p) & (uint32_t)draw();
}

static uint32_t any_scalar(program *p, uint16_t dtype) {
    const uint32_t i = add_value(p, chance(70) ? FNX_VALUE_SCALAR : FNX_VALUE_CONST, dtype, 0);
    if (dtype == FNX_U64) p->v[i].bits = draw();
    else fill((char *)&p->v[i].bits, dtype, 1);
    return i;
}

/* A value of this dtype: one that is there, or a new one. */
static uint32_t any_operand(program *p, uint16_t dtype) {
    for (int tries = 0; tries < 4 && p->n_values; tries++) {
        const uint32_t i = (uint32_t)between(0, p->n_values - 1);
        if (p->v[i].dtype == dtype) return i;
    }
    if (dtype == FNX_U64 || chance(20)) return any_scalar(p, dtype);
    const uint8_t kind = dtype == FNX_I64 && chance(40) ? FNX_VALUE_INDEX : FNX_VALUE_INPUT;
    const uint32_t i = add_value(p, kind, dtype, any_axes(p));
    lay_out(p, &p->v[i]);
    if (kind == FNX_VALUE_INDEX) p->v[i].origin = 0; /* an index value starts at 0 */
    return i;
}

static const uint16_t ops[] = {
    FNX_OP_add,     FNX_OP_sub,        FNX_OP_mul,     FNX_OP_div,           FNX_OP_pow,   FNX_OP_maximum,
    FNX_OP_minimum, FNX_OP_neg,        FNX_OP_abs,     FNX_OP_exp,           FNX_OP_log,   FNX_OP_sqrt,
    FNX_OP_tanh,    FNX_OP_sigmoid,    FNX_OP_erf,     FNX_OP_relu,          FNX_OP_equal, FNX_OP_not_equal,
    FNX_OP_less,    FNX_OP_less_equal, FNX_OP_greater, FNX_OP_greater_equal, FNX_OP_where, FNX_OP_cast,
    FNX_OP_copy,    FNX_OP_uniform,    FNX_OP_normal,
};

/* Appends `op` over operands of `dtype` (random numbers: of results). */
static void add_node(program *p, uint16_t op, uint16_t dtype, const uint32_t *in, uint32_t n_in, uint32_t axes) {
    const int compares = op >= FNX_OP_equal && op <= FNX_OP_greater_equal;
    const uint16_t result = compares ? FNX_BOOL : op == FNX_OP_cast ? any_dtype() : dtype;
    const uint32_t k = p->n_nodes++;
    for (uint32_t i = 0; i < n_in; i++) p->node[k].in[i] = in[i];
    p->node[k].op = op, p->node[k].n_in = n_in;
    p->node[k].out = add_value(p, FNX_VALUE_TEMP, result, axes);
}

static void any_node(program *p) {
    uint16_t op, dtype;
    uint32_t in[3], n_in;
    do { /* mul and add are twice as likely */
        op = chance(15) ? FNX_OP_mul : chance(15) ? FNX_OP_add : ops[between(0, COUNT(ops) - 1)], dtype = any_dtype();
    } while (!(fnx_ops[op].dtypes >> dtype & 1));
    if (op == FNX_OP_uniform || op == FNX_OP_normal) {
        n_in = 3, in[0] = any_scalar(p, FNX_U64), in[1] = any_scalar(p, FNX_U64), in[2] = any_operand(p, FNX_I64);
    } else {
        n_in = fnx_ops[op].operands;
        for (uint32_t i = 0; i < n_in; i++) in[i] = any_operand(p, op == FNX_OP_where && i == 0 ? FNX_BOOL : dtype);
    }
    add_node(p, op, dtype, in, n_in, chance(20) ? any_axes(p) : 0);
}

/* Lets result y overwrite an input that has as many elements, each in a place of its own. */
static void overwrite(const program *p, value *y, int *taken) {
    for (uint32_t i = 0; i < p->n_values; i++) {
        const value *x = &p->v[i];
        int one_place = 0;
        for (uint32_t d = 0; d < p->rank; d++) one_place |= (x->axes >> d & 1) && p->size[d] > 1 && x->stride[d] == 0;
        if (x->kind != FNX_VALUE_INPUT || x->dtype != y->dtype || x->axes != y->axes || one_place || taken[i]) continue;
        memcpy(y->stride, x->stride, sizeof y->stride);
        y->origin = x->origin, y->elements = x->elements, y->in_place_of = (int)i, taken[i] = 1;
        return;
    }
}

/* Whether the group may add product m without rounding it first. */
static int is_fused(const program *p, uint32_t m, const int *readers, const int *reader) {
    const uint16_t dtype = p->v[m].dtype;
    if (readers[m] != 1 || p->node[reader[m]].op != FNX_OP_add) return 0;
    return dtype == FNX_F32 || dtype == FNX_F64;
}

/* What nobody reads is stored, and now and then something else. */
static void choose_outputs(program *p) {
    int readers[MAX_VALUES] = {0}, reader[MAX_VALUES] = {0}, taken[MAX_VALUES] = {0};
    for (uint32_t k = 0; k < p->n_nodes; k++)
        for (uint32_t i = 0; i < p->node[k].n_in; i++) readers[p->node[k].in[i]]++, reader[p->node[k].in[i]] = (int)k;
    for (uint32_t k = 0; k < p->n_nodes; k++) {
        const uint32_t out = p->node[k].out;
        value *y = &p->v[out];
        for (uint32_t i = 0; i < p->node[k].n_in; i++) y->axes |= p->v[p->node[k].in[i]].axes;
        const int product = p->node[k].op == FNX_OP_mul && is_fused(p, out, readers, reader);
        const uint32_t sum = product ? p->node[reader[out]].out : 0;
        if (readers[out] && !chance(20) && !(product && readers[sum])) {
            if (product) p->v[sum].product = (int)out;
            continue;
        }
        y->kind = FNX_VALUE_OUTPUT, y->axes = all_axes(p);
        lay_out(p, y);
        if (chance(40)) overwrite(p, y, taken);
    }
}

static void random_nodes(program *p, int nodes) {
    for (int k = 0; k < nodes; k++) any_node(p);
    choose_outputs(p);
}

static void random_program(program *p, int nodes) {
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 10, 16, 17, 31, 33, 64, 95, 96, 97, 100, 128, 257};
    memset(p, 0, sizeof *p);
    p->rank = (uint32_t)(chance(75) ? between(1, 4) : between(1, FNX_MAX_RANK));
    int64_t elements = 1, most = chance(8) ? 40000 : 3000;
    for (uint32_t d = p->rank; d-- > 0;) {
        int64_t n = lengths[between(0, COUNT(lengths) - 1)];
        if (chance(10)) n = between(900, 4200);
        p->size[d] = n * elements <= most ? n : elements < most ? between(1, most / elements) : 1;
        elements *= p->size[d];
    }
    if (chance(3)) p->size[between(0, p->rank - 1)] = 0;
    random_nodes(p, nodes);
}

START_TEST(random_groups_equal_their_nodes_and_those_equal_ref) {
    static program p;
    seed = (uint64_t)_i + 100;
    for (int i = 0; i < 60; i++) {
        random_program(&p, (int)between(1, chance(30) ? MAX_NODES : 5));
        check_program(&p);
    }
}
END_TEST

/* Enough elements that every group is worth both threads; long rows, short rows, and a single one. */
START_TEST(two_threads_give_the_bits_of_one) {
    static const int64_t sizes[][2] = {{70, 1500}, {3001, 33}, {1, 100003}};
    static program p;
    seed = (uint64_t)_i + 900;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        memset(&p, 0, sizeof p);
        p.rank = 2, p.size[0] = sizes[i][0], p.size[1] = sizes[i][1];
        random_nodes(&p, 4);
        check_program(&p);
    }
}
END_TEST

START_TEST(groups_of_one_element_and_of_none_run) {
    static program p;
    seed = 31;
    for (uint32_t rank = 1; rank <= FNX_MAX_RANK; rank++)
        for (uint32_t empty = 0; empty <= rank; empty++)
            for (int i = 0; i < 3; i++) {
                memset(&p, 0, sizeof p);
                p.rank = rank;
                for (uint32_t d = 0; d < rank; d++) p.size[d] = d + 1 == empty ? 0 : 1;
                random_nodes(&p, 3);
                check_program(&p);
            }
}
END_TEST

/* ---- every op ---------------------------------------------------------------------------------------------------- */

/* Operand k has one element for each (0), one for each row (1), or is a scalar (2). */
static void one_op(uint16_t op, uint16_t dtype, uint16_t to, const int64_t *size, const int *form) {
    static program p;
    memset(&p, 0, sizeof p);
    p.rank = 2, p.size[0] = size[0], p.size[1] = size[1];
    const int random = op == FNX_OP_uniform || op == FNX_OP_normal;
    uint32_t in[3], n_in = random ? 3 : fnx_ops[op].operands;
    for (uint32_t k = 0; k < n_in; k++) {
        const uint16_t seeds[] = {FNX_U64, FNX_U64, FNX_I64};
        const uint16_t t = random ? seeds[k] : op == FNX_OP_where && k == 0 ? FNX_BOOL : dtype;
        if (random ? k < 2 : form[k] == 2) in[k] = any_scalar(&p, t);
        else in[k] = add_packed(&p, FNX_VALUE_INPUT, t, (random ? form[0] : form[k]) == 0 ? 3 : 1);
    }
    add_node(&p, op, dtype, in, n_in, 3);
    value *y = &p.v[p.node[0].out];
    if (op == FNX_OP_cast) y->dtype = to;
    y->kind = FNX_VALUE_OUTPUT;
    pack(&p, y);
    check_program(&p);
}

START_TEST(every_op_takes_every_dtype_and_any_operand_as_scalar) {
    static const int64_t sizes[][2] = {{3, 1061}, {45, 29}}; /* a row with a tail; several rows at once, and a rest */
    seed = 4;
    for (size_t i = 0; i < COUNT(ops); i++)
        for (size_t t = 0; t < COUNT(every_dtype); t++) {
            if (!(fnx_ops[ops[i]].dtypes >> every_dtype[t] & 1)) continue;
            const int n = fnx_ops[ops[i]].operands;
            for (int forms = 0; forms < (n == 3 ? 27 : n == 2 ? 9 : 3); forms++)
                for (size_t to = 0; to < (ops[i] == FNX_OP_cast ? COUNT(every_dtype) : 1); to++)
                    one_op(ops[i], every_dtype[t], every_dtype[to], sizes[(forms + to + t) % 2],
                           (int[]){forms % 3, forms / 3 % 3, forms / 9});
        }
}
END_TEST

/* ---- main -------------------------------------------------------------------------------------------------------- */

int main(void) {
    Suite *suite = suite_create("cpu vector machine");
    TCase *c = tcase_create("cpu vector machine");
    tcase_add_checked_fixture(c, cpu_setup, cpu_teardown);
    tcase_set_timeout(c, 240); /* against machines that are busy and sanitizers; each needs a few seconds */
    tcase_add_test(c, every_op_takes_every_dtype_and_any_operand_as_scalar);
    tcase_add_loop_test(c, random_groups_equal_their_nodes_and_those_equal_ref, 0, other_backend() ? 1 : 8);
    if (!other_backend()) tcase_add_loop_test(c, two_threads_give_the_bits_of_one, 0, 4);
    tcase_add_test(c, groups_of_one_element_and_of_none_run);
    suite_add_tcase(suite, c);
    return cpu_run_suite(suite);
}
