/* The SDK's checks of groups and launches: good ones pass, each broken rule is named, and no bytes at all make them, or
 * the reference backend after them, step outside of memory (run under the address sanitizer to see that). */
#include "support/ref.h"

#include <fornax-plugin/check.h>

enum { MOST_BYTES = 1 << 16 };
static _Alignas(64) uint8_t memory[MOST_BYTES]; /* what the good fragments point at; their values do not matter */

/* ---- good groups ------------------------------------------------------------------------------------------------- */

static fragment *chain(void) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 4, 6);
    uint32_t a = fragment_input(f, FNX_F32, s, memory), b = fragment_input(f, FNX_F32, SHAPE(f, 1, 6), memory + 1024);
    uint32_t factor = fragment_scalar(f, FNX_F32, 2), one = fragment_const(f, FNX_F32, 1),
             e = fragment_index(f, s, NULL);
    uint32_t t = fragment_temp(f, FNX_F32, s), u = fragment_temp(f, FNX_F32, s), v = fragment_temp(f, FNX_F32, s);
    uint32_t y = fragment_output_in_place(f, a), flags = fragment_output(f, FNX_BOOL, s, memory + 4096);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(a, factor), REFS(t));
    fragment_node(f, FNX_OP_cast, NULL, 0, REFS(e), REFS(u));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(t, b), REFS(v));
    fragment_node(f, FNX_OP_maximum, NULL, 0, REFS(v, u), REFS(y));
    fragment_node(f, FNX_OP_less, NULL, 0, REFS(y, one), REFS(flags));
    return f;
}

static fragment *random_mask(void) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 3, 5);
    uint32_t seed = fragment_scalar_bits(f, FNX_U64, 1), counter = fragment_scalar_bits(f, FNX_U64, 2),
             e = fragment_index(f, s, NULL);
    uint32_t u = fragment_temp(f, FNX_F32, s), keep = fragment_temp(f, FNX_BOOL, s),
             y = fragment_output(f, FNX_F32, s, memory);
    uint32_t x = fragment_input(f, FNX_F32, s, memory + 1024), p = fragment_scalar(f, FNX_F32, 0.5),
             zero = fragment_const(f, FNX_F32, 0);
    fragment_node(f, FNX_OP_uniform, NULL, 0, REFS(seed, counter, e), REFS(u));
    fragment_node(f, FNX_OP_greater_equal, NULL, 0, REFS(u, p), REFS(keep));
    fragment_node(f, FNX_OP_where, NULL, 0, REFS(keep, x, zero), REFS(y));
    return f;
}

static fragment *softmax(void) {
    fragment *f = fragment_create();
    const fnx_attr_reduce last = {2, 0};
    fragment_shape all = SHAPE(f, 3, 7), row = SHAPE(f, 3, 1);
    uint32_t x = fragment_input(f, FNX_F32, all, memory), top = fragment_temp(f, FNX_F32, row),
             d = fragment_temp(f, FNX_F32, all);
    uint32_t e = fragment_temp(f, FNX_F32, all), sum = fragment_temp(f, FNX_F32, row),
             y = fragment_output(f, FNX_F32, all, memory + 4096);
    fragment_node(f, FNX_OP_max, &last, sizeof last, REFS(x), REFS(top));
    fragment_node(f, FNX_OP_sub, NULL, 0, REFS(x, top), REFS(d));
    fragment_node(f, FNX_OP_exp, NULL, 0, REFS(d), REFS(e));
    fragment_node(f, FNX_OP_sum, &last, sizeof last, REFS(e), REFS(sum));
    fragment_node(f, FNX_OP_div, NULL, 0, REFS(e, sum), REFS(y));
    return f;
}

static fragment *argmax(void) {
    fragment *f = fragment_create();
    const fnx_attr_reduce middle = {2, 0};
    uint32_t x = fragment_input(f, FNX_I32, SHAPE(f, 2, 3, 4), memory),
             y = fragment_output(f, FNX_I64, SHAPE(f, 2, 1, 4), memory + 1024);
    fragment_node(f, FNX_OP_argmax, &middle, sizeof middle, REFS(x), REFS(y));
    return f;
}

static fragment *product(void) {
    fragment *f = fragment_create();
    const fnx_attr_matmul attr = {0, 0};
    fragment_shape s = SHAPE(f, 2, 3, 5);
    uint32_t a = fragment_input(f, FNX_F64, SHAPE(f, 2, 3, 4), memory);
    uint32_t b = fragment_input_strided(f, FNX_F64, SHAPE(f, 1, 4, 5), ((const int64_t[]){0, 1, 4}), memory + 1024);
    uint32_t bias = fragment_input(f, FNX_F64, SHAPE(f, 1, 1, 5), memory + 2048), t = fragment_temp(f, FNX_F64, s);
    uint32_t y = fragment_output(f, FNX_F64, s, memory + 4096);
    fragment_node(f, FNX_OP_matmul, &attr, sizeof attr, REFS(a, b), REFS(t));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(t, bias), REFS(y));
    return f;
}

static fragment *convolution(uint16_t op) {
    const fnx_attr_conv attr = {2, 2, {2, 1, 0}, {1, 2, 0}, {1, 2, 0}, {0, 1, 0}};
    const int64_t last[] = {112, 1, 16, 4};
    fragment *f = fragment_create();
    fragment_shape x = SHAPE(f, 2, 4, 7, 4), w = SHAPE(f, 6, 2, 3, 2), y = SHAPE(f, 2, 6, 3, 5);
    uint32_t a = op == FNX_OP_conv_grad_x ? fragment_input(f, FNX_F32, y, memory)
                                          : fragment_input_strided(f, FNX_F32, x, last, memory);
    uint32_t b = fragment_input(f, FNX_F32, op == FNX_OP_conv_grad_w ? y : w, memory + 8192);
    uint32_t out = fragment_output(f, FNX_F32,
                                   op == FNX_OP_conv          ? y
                                   : op == FNX_OP_conv_grad_x ? x
                                                              : w,
                                   memory + 16384);
    fragment_node(f, op, &attr, sizeof attr, REFS(a, b), REFS(out));
    return f;
}

static fragment *conv(void) { return convolution(FNX_OP_conv); }
static fragment *conv_grad_x(void) { return convolution(FNX_OP_conv_grad_x); }
static fragment *conv_grad_w(void) { return convolution(FNX_OP_conv_grad_w); }

static const fnx_attr_pool pooling = {2, 0, {3, 2, 0}, {2, 1, 0}, {1, 0, 0}, {1, 1, 0}};

static fragment *max_pool(void) {
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 2, 3, 5, 4), memory),
             y = fragment_output(f, FNX_F32, SHAPE(f, 2, 3, 3, 4), memory + 4096);
    uint32_t where = fragment_output(f, FNX_U8, SHAPE(f, 2, 3, 3, 4), memory + 8192);
    fragment_node(f, FNX_OP_max_pool, &pooling, sizeof pooling, REFS(x), REFS(y, where));
    return f;
}

static fragment *max_pool_grad(void) {
    fragment *f = fragment_create();
    uint32_t dy = fragment_input(f, FNX_F32, SHAPE(f, 2, 3, 3, 4), memory),
             where = fragment_input(f, FNX_U8, SHAPE(f, 2, 3, 3, 4), memory + 4096);
    uint32_t dx = fragment_output(f, FNX_F32, SHAPE(f, 2, 3, 5, 4), memory + 8192);
    fragment_node(f, FNX_OP_max_pool_grad, &pooling, sizeof pooling, REFS(dy, where), REFS(dx));
    return f;
}

static fragment *max_pool_pick(void) {
    fragment *f = fragment_create();
    uint32_t z = fragment_input(f, FNX_I32, SHAPE(f, 2, 3, 5, 4), memory),
             where = fragment_input(f, FNX_U8, SHAPE(f, 2, 3, 3, 4), memory + 4096);
    uint32_t y = fragment_output(f, FNX_I32, SHAPE(f, 2, 3, 3, 4), memory + 8192);
    fragment_node(f, FNX_OP_max_pool_pick, &pooling, sizeof pooling, REFS(z, where), REFS(y));
    return f;
}

static fragment *avg_pool_grad(void) {
    fnx_attr_pool attr = pooling;
    fragment *f = fragment_create();
    uint32_t dy = fragment_input(f, FNX_F64, SHAPE(f, 2, 3, 3, 4), memory),
             dx = fragment_output(f, FNX_F64, SHAPE(f, 2, 3, 5, 4), memory + 8192);
    attr.flags = FNX_POOL_EXCLUDE_PAD;
    fragment_node(f, FNX_OP_avg_pool_grad, &attr, sizeof attr, REFS(dy), REFS(dx));
    return f;
}

static fragment *gather(void) {
    fragment *f = fragment_create();
    const fnx_attr_axis axis = {0, 0};
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 8, 3), memory),
             index = fragment_input(f, FNX_I64, SHAPE(f, 5, 1), memory + 1024);
    uint32_t y = fragment_output(f, FNX_F32, SHAPE(f, 5, 3), memory + 2048);
    fragment_node(f, FNX_OP_gather, &axis, sizeof axis, REFS(x, index), REFS(y));
    return f;
}

static fragment *scatter_add(void) {
    fragment *f = fragment_create();
    const fnx_attr_axis axis = {1, 0};
    uint32_t x = fragment_input(f, FNX_I64, SHAPE(f, 3, 8), memory),
             index = fragment_input(f, FNX_I32, SHAPE(f, 2, 5), memory + 1024);
    uint32_t update = fragment_input(f, FNX_I64, SHAPE(f, 2, 5), memory + 2048), y = fragment_output_in_place(f, x);
    fragment_node(f, FNX_OP_scatter_add, &axis, sizeof axis, REFS(x, index, update), REFS(y));
    return f;
}

static fragment *extension(void) {
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 3, 3), memory),
             y = fragment_output(f, FNX_F32, SHAPE(f, 3, 3), memory + 1024);
    fragment_node(f, fragment_extension_op(f, "linalg.cholesky"), NULL, 0, REFS(x), REFS(y));
    return f;
}

static fragment *scalars_in_memory(void) {
    fragment *f = fragment_create();
    uint32_t factor = fragment_scalar(f, FNX_F32, 0), x = fragment_input(f, FNX_F32, SHAPE(f, 7), memory);
    uint32_t y = fragment_output(f, FNX_F32, SHAPE(f, 7), memory + 1024);
    f->group_header.scalar_value = fragment_input(f, FNX_U64, SHAPE(f, 2), memory + 2048);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(x, factor), REFS(y));
    return f;
}

static fragment *stretched(void) {
    fragment *f = softmax();
    f->stretch = 16;
    return f;
}

static fragment *empty(void) {
    fragment *f = fragment_create();
    const fnx_attr_reduce last = {2, 0};
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 3, 0), memory),
             y = fragment_output(f, FNX_F32, SHAPE(f, 3, 1), memory + 1024);
    fragment_node(f, FNX_OP_sum, &last, sizeof last, REFS(x), REFS(y));
    return f;
}

static fragment *(*const good[])(void) = {
    chain,       random_mask,       softmax,       argmax,        product,       conv,   conv_grad_x,
    conv_grad_w, max_pool,          max_pool_grad, max_pool_pick, avg_pool_grad, gather, scatter_add,
    extension,   scalars_in_memory, stretched,     empty,
};

START_TEST(good_groups_and_launches_pass) {
    fragment *f = good[_i]();
    char why[200] = "";
    fragment_finish(f);
    ck_assert_msg(fnx_group_check(f->group, f->group->total_bytes, why, sizeof why) == FNX_OK, "%s", why);
    ck_assert_msg(fnx_launch_check(f->group, &f->launch, why, sizeof why) == FNX_OK, "%s", why);
    fragment_destroy(f);
}
END_TEST

/* ---- each rule by itself ----------------------------------------------------------------------------------------- */

/* Spoils a finished softmax (values: x, top, d, e, sum, y; nodes: max, sub, exp, sum, div). */
static fnx_value *value(fragment *f, uint32_t i) { return (fnx_value *)(uintptr_t)fnx_group_value(f->group, i); }
static fnx_node *node(fragment *f, uint32_t i) { return (fnx_node *)(uintptr_t)fnx_group_node(f->group, i); }
static fnx_size *size(fragment *f, uint32_t i) { return (fnx_size *)(uintptr_t)fnx_group_size(f->group, i); }
static uint32_t *refs(fragment *f) { return (uint32_t *)(void *)((char *)f->group + f->group->refs_at); }
static fnx_attr_reduce *reduction(fragment *f) {
    return (fnx_attr_reduce *)(void *)((char *)f->group + f->group->attrs_at);
}

#define RULES(R) \
    R(f->group->struct_size = 8, "struct_size") \
    R(f->group->total_bytes -= 8, "but there are") \
    R(f->group->features = 1, "unknown features") \
    R(f->group->anchor = 0, "unknown anchor") \
    R(f->group->reserved = 1, "reserved") \
    R(f->group->n_values = 1 << 20, "are more than") \
    R(f->group->value_bytes = 40, "too short") \
    R(f->group->value_bytes = 50, "not aligned") \
    R(f->group->values_at += 2, "not aligned") \
    R(f->group->nodes_at = 0, "leave the group") \
    R(f->group->nodes_at = f->group->total_bytes - 8, "leave the group") \
    R(f->group->nodes_at = UINT32_MAX - 7, "leave the group") \
    R(f->group->attr_bytes = UINT32_MAX, "leave the group") \
    R(f->group->n_nodes = 0, "without nodes") \
    R(f->group->n_slots = 7, "slots for") \
    R(f->group->n_bindings = 7, "bindings for") \
    R(f->group->n_strides = 49, "strides for") \
    R(size(f, 0)->fixed = 2, "fixed size 1") \
    R(size(f, 1)->fixed = -2, "size 1: fixed -2") \
    R(size(f, 1)->divisor = 0, "divisor 0") \
    R((size(f, 1)->fixed = 3, size(f, 1)->divisor = 2), "its own promises") \
    R((size(f, 1)->fixed = 3, size(f, 1)->most = 2), "its own promises") \
    R(f->group->rank = 9, "rank 9") \
    R(f->group->row_axes = 4, "row axes") \
    R(f->group->domain[1] = 3, "names size 3 of 3") \
    R(value(f, 2)->flags = 1, "unknown flags") \
    R(value(f, 2)->kind = 7, "unknown kind 7") \
    R(value(f, 2)->dtype = 16, "dtype 16") \
    R(value(f, 2)->rank = 9, "rank 9") \
    R(value(f, 2)->size[1] = 3, "names size 3 of 3") \
    R(value(f, 0)->stride_class[0] = 4, "stride class 4") \
    R(value(f, 0)->stride_class[1] = FNX_STRIDE_PACKED, "last axis is packed") \
    R(value(f, 2)->index = 0, "its kind does not have") \
    R(value(f, 0)->index = 2, "has index 2 of 2") \
    R(value(f, 0)->slot = 2, "slot 2 of 2") \
    R(value(f, 0)->align = 6, "aligned to 6") \
    R(value(f, 0)->align = 2, "aligned to 2") \
    R(value(f, 0)->first_stride = 3, "has strides 3") \
    R(value(f, 0)->first_stride = UINT32_MAX - 1, "has strides") \
    R(value(f, 0)->index = 1, "but not the slot") \
    R(f->group->scalar_value = 2, "is no input") \
    R(f->group->scalar_value = 6, "is no input") \
    R(node(f, 1)->flags = 1, "unknown flags") \
    R(node(f, 1)->op = FNX_OP_EXTENSION, "extension op 0 of 0") \
    R(node(f, 1)->first_ref = f->group->n_refs - 1, "has operands up to") \
    R(node(f, 1)->first_ref = UINT32_MAX, "has operands up to") \
    R(node(f, 1)->n_results = 0, "no result") \
    R(node(f, 0)->attr_size = 4, "attribute bytes") \
    R(node(f, 0)->attr_offset = 16, "attribute bytes") \
    R(node(f, 0)->attr_offset = UINT32_MAX - 7, "attribute bytes") \
    R(refs(f)[2] = 6, "is value 6 of 6") \
    R(refs(f)[3] = 3, "before it is made") \
    R(refs(f)[3] = 2, "before it is made") \
    R(refs(f)[1] = 0, "neither temporary nor output") \
    R(refs(f)[4] = 1, "made already") \
    R(node(f, 2)->op = FNX_OP_add, "more than 1 operands") \
    R(node(f, 1)->op = FNX_OP_exp, "has 1 operands, not 2") \
    R(node(f, 1)->op = FNX_OP_less, "does not make") \
    R(value(f, 1)->dtype = FNX_F64, "does not make") \
    R(value(f, 2)->size[1] = 0, "does not broadcast") \
    R(value(f, 1)->size[1] = 2, "axis 1 of the result") \
    R(reduction(f)->axes = 1, "axis 0 of the result") \
    R(reduction(f)->axes = 4, "over axes 0x4") \
    R(reduction(f)->reserved = 4, "unknown attributes") \
    R(f->group->anchor_node = 5, "anchor node 5") \
    R(f->group->anchor = FNX_ANCHOR_MATMUL, "without its node") \
    R((f->group->anchor = FNX_ANCHOR_MATMUL, f->group->anchor_node = 0), "is no anchor") \
    R(f->group->anchor = FNX_ANCHOR_ELEMENTWISE, "does not belong") \
    R(f->group->domain[0] = 0, "does not fit the domain") \
    R(f->group->row_axes = 1, "but rows are 0x1") \
    R(value(f, 0)->size[1] = 0, "which is not the domain's")

static void check_rule(fragment *f, const char *spoilt, const char *text) {
    char why[200] = "";
    const int32_t code = fnx_group_check(f->group, f->group_header.total_bytes, why, sizeof why);
    ck_assert_msg(code == FNX_E_FORMAT || code == FNX_E_UNSUPPORTED, "accepted: %s", spoilt);
    ck_assert_msg(strstr(why, text), "%s: \"%s\" should say \"%s\"", spoilt, why, text);
    fragment_destroy(f);
}

START_TEST(each_broken_rule_is_named) {
#define SPOIL(how, text) \
    do { \
        fragment *f = softmax(); \
        fragment_finish(f); \
        (void)(how); \
        check_rule(f, #how, text); \
    } while (0);
    RULES(SPOIL)
}
END_TEST

/* The rules that a softmax has no use for. */
START_TEST(rules_of_other_ops_are_named) {
    const struct {
        fragment *(*make)(void);
        uint32_t word; /* of the attributes, to be set */
        uint32_t bits;
        const char *text;
    } rows[] = {
        {argmax, 0, 6, "argmax over axes 0x6"},
        {conv, 0, 0, "over 0 axes"},
        {conv, 0, 4, "over 4 axes"},
        {conv, 0, 3, "operands of rank 5"},
        {conv, 1, 0, "of 0 groups"},
        {conv, 2, 0, "stride 0"},
        {conv, 5, 0x80000000u, "dilation -2147483648"},
        {conv, 8, UINT32_MAX, "padding -1"},
        {max_pool, 1, 2, "unknown flags"},
        {max_pool, 2, 0, "a window of 0"},
        {max_pool, 2, 0x7fffffff, "too large"},
        {max_pool, 2, 256, "places of dtype"},
        {gather, 0, 2, "axis 2 of rank 2"},
        {gather, 1, 1, "unknown attributes"},
        {product, 0, 2, "unknown attributes"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fragment *f = rows[i].make();
        fragment_finish(f);
        ((uint32_t *)(void *)((char *)f->group + f->group->attrs_at))[rows[i].word] = rows[i].bits;
        check_rule(f, rows[i].text, rows[i].text);
    }
}
END_TEST

START_TEST(names_end_inside_and_scalars_agree) {
    fragment *f = extension();
    fragment_finish(f);
    uint32_t *name = (uint32_t *)(void *)((char *)f->group + f->group->names_at);
    *name = f->group->total_bytes - 4; /* the padding at the end of the block, without a zero byte */
    memset((char *)f->group + f->group->total_bytes - 4, 'x', 4);
    check_rule(f, "name", "does not end");
    f = extension();
    fragment_finish(f);
    name = (uint32_t *)(void *)((char *)f->group + f->group->names_at);
    *name = f->group->total_bytes;
    check_rule(f, "name", "begins outside");
    f = chain();
    fragment_finish(f);
    ((fnx_scalar_slot *)(uintptr_t)fnx_group_scalar(f->group, 0))->dtype = FNX_F64;
    check_rule(f, "scalar", "its scalar");
    f = chain();
    fragment_finish(f);
    ((fnx_scalar_slot *)(uintptr_t)fnx_group_scalar(f->group, 0))->klass = 10;
    check_rule(f, "class", "unknown class 10");
}
END_TEST

START_TEST(an_output_in_place_has_its_inputs_type_and_sizes) {
    const fnx_attr_reduce attr = {1, 0};
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 4), memory), y = fragment_output(f, FNX_BOOL, SHAPE(f, 4), memory);
    fragment_share_slot(f, y, x);
    fragment_node(f, FNX_OP_less, NULL, 0, REFS(x, x), REFS(y));
    fragment_finish(f);
    check_rule(f, "type", "of two types");
    f = fragment_create();
    x = fragment_input(f, FNX_F32, SHAPE(f, 4), memory), y = fragment_output(f, FNX_F32, SHAPE(f, 1), memory);
    fragment_share_slot(f, y, x);
    fragment_node(f, FNX_OP_sum, &attr, sizeof attr, REFS(x), REFS(y));
    fragment_finish(f);
    check_rule(f, "sizes", "axis 0 differs");
}
END_TEST

START_TEST(a_group_in_the_wrong_place_or_too_short_is_refused) {
    fragment *f = softmax();
    char why[200], *moved;
    fragment_finish(f);
    const uint32_t total = f->group->total_bytes;
    moved = malloc(total + 8);
    memcpy(moved + 4, f->group, total);
    ck_assert_int_eq(fnx_group_check(moved + 4, total, why, sizeof why), FNX_E_FORMAT);
    free(moved);
    for (uint32_t n = 0; n < total; n++) { /* each in a block of its own, so that reading on is seen */
        char *shorter = malloc(n ? n : 1);
        memcpy(shorter, f->group, n);
        ck_assert_int_eq(fnx_group_check(shorter, n, NULL, 0), FNX_E_FORMAT);
        if (n >= 8) { /* also where the header agrees */
            memcpy(shorter + 4, &n, sizeof n);
            ck_assert_int_ne(fnx_group_check(shorter, n, why, 10), FNX_OK);
            ck_assert_uint_lt(strlen(why), 10);
        }
        free(shorter);
    }
    fragment_destroy(f);
}
END_TEST

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static int64_t stride_of(fragment *f, uint32_t v, uint32_t axis, int64_t to) {
    return f->stride[f->value[v].first_stride + axis] = to;
}

#define LAUNCH_RULES(R) \
    R(softmax, f->launch.struct_size = 8, "struct_size") \
    R(softmax, f->launch.sizes = NULL, "without sizes") \
    R(softmax, f->launch.strides = NULL, "without strides") \
    R(softmax, f->launch.bindings = NULL, "without bindings") \
    R(chain, f->launch.scalars = NULL, "without scalars") \
    R(softmax, f->length[1] = -1, "size 1 is -1") \
    R(softmax, f->length[0] = 2, "not its fixed 1") \
    R(softmax, size(f, 2)->divisor = 2, "is no multiple of 2") \
    R(softmax, size(f, 2)->most = 6, "above its bound 6") \
    R(softmax, f->length[1] = f->length[2] = INT64_C(1) << 40, "overflow") \
    R(argmax, f->length[2] = INT64_C(1) << 60, "overflow") \
    R(softmax, (f->length[1] = 1 << 16, f->length[2] = 1 << 16, f->group->flags = FNX_GROUP_INDEX32), "32-bit") \
    R(softmax, (value(f, 0)->stride_class[0] = 0, stride_of(f, 0, 0, INT64_MAX)), "strides overflow") \
    R(softmax, (value(f, 0)->stride_class[0] = 0, stride_of(f, 0, 0, INT64_C(1) << 40), f->group->flags = 1), \
      "32-bit") \
    R(softmax, stride_of(f, 0, 0, 8), "promised class") \
    R(softmax, stride_of(f, 0, 1, 2), "promised class") \
    R(softmax, (value(f, 5)->stride_class[0] = 0, stride_of(f, 5, 0, 0)), "stride 0") \
    R(softmax, f->binding[0].address += 2, "not aligned") \
    R(softmax, f->binding[0].address = 0, "address 0x0") \
    R(chain, f->binding[0].address += 4, "two addresses") \
    R(chain, (value(f, 0)->stride_class[0] = 0, stride_of(f, 0, 0, 12)), "two strides") \
    R(scalars_in_memory, f->length[2] = 1, "too small") \
    R(empty, (node(f, 0)->op = FNX_OP_max), "extremum of nothing")

START_TEST(each_broken_promise_of_a_launch_is_named) {
#define SPOIL_LAUNCH(make, how, text) \
    do { \
        char why[200] = ""; \
        fragment *f = make(); \
        fragment_finish(f); \
        (void)(how); \
        int32_t code = fnx_launch_check(f->group, &f->launch, why, sizeof why); \
        ck_assert_msg(code != FNX_OK, "accepted: %s, %s", #make, #how); \
        ck_assert_msg(strstr(why, text), "%s: \"%s\" should say \"%s\"", #how, why, text); \
        fragment_destroy(f); \
    } while (0);
    LAUNCH_RULES(SPOIL_LAUNCH)
}
END_TEST

/* Sizes of axes that an op compares are given names of their own, then one of them is changed. */
START_TEST(sizes_that_do_not_fit_an_op_are_named) {
    const struct {
        fragment *(*make)(void);
        uint32_t value, axis;
        const char *text;
    } rows[] = {
        {product, 0, 1, "a product of"}, {product, 0, 2, "a product of"},    {product, 1, 2, "a product of"},
        {product, 0, 0, "batch axis 0"}, {conv, 0, 0, "images become"},      {conv, 0, 1, "channels in"},
        {conv, 1, 0, "channels in"},     {conv, 1, 1, "channels in"},        {conv, 0, 2, "a window of"},
        {conv, 1, 3, "a window of"},     {conv_grad_x, 2, 3, "a window of"}, {max_pool, 0, 1, "channels become"},
        {max_pool, 1, 2, "a window of"}, {max_pool, 2, 2, "but 4 places"},   {gather, 1, 0, "indexes for"},
        {gather, 0, 1, "indexes into"},  {scatter_add, 1, 1, "indexes for"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char why[200] = "";
        fragment *f = rows[i].make();
        fnx_value *v = &f->value[rows[i].value];
        const int64_t length = f->length[v->size[rows[i].axis]];
        v->size[rows[i].axis] = fragment_size(f, strcmp(rows[i].text, "indexes into") ? length + 1 : length - 1);
        fragment_finish(f);
        ck_assert_int_eq(fnx_launch_check(f->group, &f->launch, why, sizeof why), FNX_E_SHAPE);
        ck_assert_msg(strstr(why, rows[i].text), "row %zu: \"%s\" should say \"%s\"", i, why, rows[i].text);
        fragment_destroy(f);
    }
}
END_TEST

START_TEST(extents_cover_negative_strides_in_bytes) {
    const int64_t strides[] = {-12, 3};
    int64_t low, high;
    fragment *f = fragment_create();
    uint32_t x = fragment_input_strided(f, FNX_F64, SHAPE(f, 4, 5), strides, memory + 4096);
    uint32_t y = fragment_output(f, FNX_F64, SHAPE(f, 4, 5), memory),
             none = fragment_input(f, FNX_F64, SHAPE(f, 4, 0), memory);
    fragment_node(f, FNX_OP_copy, NULL, 0, REFS(x), REFS(y));
    fragment_finish(f);
    ck_assert_int_eq(fnx_value_extent(f->group, &f->launch, x, &low, &high), FNX_OK);
    ck_assert_int_eq(low, -36 * 8);
    ck_assert_int_eq(high, 13 * 8);
    ck_assert_int_eq(fnx_value_extent(f->group, &f->launch, y, &low, &high), FNX_OK);
    ck_assert(low == 0 && high == 20 * 8);
    ck_assert_int_eq(fnx_value_extent(f->group, &f->launch, none, &low, &high), FNX_OK);
    ck_assert(low == 0 && high == 0);
    fragment_destroy(f);
}
END_TEST

/* ---- hostile bytes ----------------------------------------------------------------------------------------------- */

/* What a daemon would do with a group that passed: make up a launch, give each slot exactly the memory that its values
 * cover, and run it. */
typedef struct trial {
    const fnx_group *g;
    fnx_launch launch;
    int64_t sizes[FRAGMENT_MAX], strides[4 * FRAGMENT_MAX];
    fnx_binding bindings[FRAGMENT_MAX];
    fnx_scalar scalars[FRAGMENT_MAX];
    void *slots[FRAGMENT_MAX];
} trial;

static int choose_sizes(trial *t, const fragment *f) {
    for (uint32_t i = 0; i < t->g->n_sizes; i++) {
        const fnx_size *s = fnx_group_size(t->g, i);
        int64_t n = i < f->group_header.n_sizes ? f->length[i] : 2;
        if (s->divisor > 64 || s->fixed > 64) return 0;
        n = s->fixed >= 0 ? s->fixed : (n + s->divisor - 1) / s->divisor * s->divisor;
        if (n > s->most) n = s->most / s->divisor * s->divisor;
        t->sizes[i] = n;
    }
    return 1;
}

/* Little enough to be run in no time? Elements of all values, times the places of windows. */
static int is_small(const trial *t) {
    double work = 0;
    for (uint32_t i = 0; i < t->g->n_values; i++) {
        const fnx_value *v = fnx_group_value(t->g, i);
        double n = 1;
        for (uint32_t d = 0; d < v->rank; d++) n *= (double)t->sizes[v->size[d]];
        work += n;
    }
    for (uint32_t i = 0; i < t->g->n_nodes; i++) {
        const fnx_node *n = fnx_group_node(t->g, i);
        fnx_attr_pool attr;
        if (n->op < FNX_OP_max_pool || n->op > FNX_OP_avg_pool_grad || fnx_node_attrs(t->g, n, &attr, sizeof attr))
            continue;
        for (uint32_t d = 0; d < attr.spatial; d++) work *= attr.window[d];
    }
    return work < 1e6;
}

static int bind_slots(trial *t) {
    for (uint32_t slot = 0; slot < t->g->n_slots; slot++) {
        int64_t low = 0, high = 1, align = 1;
        for (uint32_t i = 0; i < t->g->n_values; i++) {
            const fnx_value *v = fnx_group_value(t->g, i);
            int64_t from, to;
            if ((v->kind != FNX_VALUE_INPUT && v->kind != FNX_VALUE_OUTPUT) || v->slot != slot) continue;
            if (fnx_value_extent(t->g, &t->launch, i, &from, &to)) return 0;
            low = from < low ? from : low, high = to > high ? to : high;
            align = v->align > align ? v->align : align;
        }
        if (align > 4096 || high - low > 1 << 20) return 0;
        low = -((-low + align - 1) / align * align);
        if (posix_memalign(&t->slots[slot], (size_t)(align < 8 ? 8 : align), (size_t)(high - low))) return 0;
        uint64_t seed = slot + 1;
        for (int64_t b = 0; b < high - low; b++) ((uint8_t *)t->slots[slot])[b] = (uint8_t)(noise(&seed) * 4);
        for (uint32_t i = 0; i < t->g->n_values; i++) {
            const fnx_value *v = fnx_group_value(t->g, i);
            if ((v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT) && v->slot == slot)
                t->bindings[v->index].address = (uint64_t)(uintptr_t)t->slots[slot] + (uint64_t)-low;
        }
    }
    return 1;
}

static int run_accepted(const fragment *f, const fnx_group *g) {
    trial *t = calloc(1, sizeof *t);
    void *handle = NULL;
    int ran = 0;
    t->g = g;
    t->launch = (fnx_launch){sizeof t->launch, 1, t->sizes, t->strides, t->bindings, t->scalars, {0, NULL}};
    for (uint32_t i = 0; i < COUNT(t->strides); i++) t->strides[i] = i < f->group_header.n_strides ? f->stride[i] : 1;
    if (g->n_sizes <= FRAGMENT_MAX && g->n_strides <= COUNT(t->strides) && g->n_bindings <= FRAGMENT_MAX &&
        g->n_scalars <= FRAGMENT_MAX && choose_sizes(t, f) && is_small(t) && bind_slots(t) &&
        fnx_launch_check(g, &t->launch, NULL, 0) == FNX_OK &&
        ref.groups->prepare(ref.device, g, &handle, NULL) == FNX_OK) {
        ck_assert_int_eq(backend_launch(&ref, handle, &t->launch, NULL), FNX_OK);
        ref.groups->release(handle);
        ran = 1;
    }
    for (uint32_t i = 0; i < FRAGMENT_MAX; i++) free(t->slots[i]);
    free(t);
    return ran;
}

typedef struct tally {
    int accepted, ran;
} tally;

static void try_bytes(tally *sum, const fragment *f, const uint8_t *bytes, size_t n) {
    void *exact = malloc(n); /* so that the sanitizer sees a step outside */
    memcpy(exact, bytes, n);
    if (fnx_group_check(exact, n, NULL, 0) == FNX_OK) {
        sum->accepted++;
        sum->ran += run_accepted(f, exact);
    }
    free(exact);
}

START_TEST(no_changed_byte_leads_outside) {
    static const uint8_t masks[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x80, 0xff};
    fragment *f = good[_i]();
    tally sum = {0, 0};
    fragment_finish(f);
    const size_t n = f->group->total_bytes;
    uint8_t *bytes = malloc(n);
    memcpy(bytes, f->group, n);
    for (size_t at = 0; at < n; at++)
        for (size_t k = 0; k < COUNT(masks); k++) {
            bytes[at] ^= masks[k];
            try_bytes(&sum, f, bytes, n);
            bytes[at] ^= masks[k];
        }
    ck_assert_int_gt(sum.accepted, 0); /* the hash, constants and promises may be anything */
    ck_assert_int_lt(sum.accepted, (int)(n * COUNT(masks)));
    ck_assert(sum.ran > 0 || good[_i] == extension); /* which ref declines */
    free(bytes);
    fragment_destroy(f);
}
END_TEST

START_TEST(no_changed_words_lead_outside) {
    static const uint32_t words[] = {0, 1, 2, 3, 5, 8, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff8};
    fragment *f = good[_i]();
    tally sum = {0, 0};
    uint64_t seed = (uint64_t)_i + 17;
    fragment_finish(f);
    const size_t n = f->group->total_bytes;
    uint8_t *bytes = malloc(n);
    for (int round = 0; round < 4000; round++) {
        memcpy(bytes, f->group, n);
        for (int k = 1 + (int)(2 * fabs(noise(&seed))); k >= 0; k--) { /* one to three changes */
            size_t at = (size_t)(fabs(noise(&seed)) * (double)(n / 4)) * 4;
            uint32_t word = words[(size_t)(fabs(noise(&seed)) * COUNT(words))];
            if (noise(&seed) < 0) /* or a word from elsewhere in the group */
                memcpy(&word, (const uint8_t *)f->group + (size_t)(fabs(noise(&seed)) * (double)(n / 4)) * 4,
                       sizeof word);
            if (noise(&seed) < 0) bytes[at + (size_t)(fabs(noise(&seed)) * 4)] = (uint8_t)word;
            else memcpy(bytes + at, &word, sizeof word);
        }
        try_bytes(&sum, f, bytes, n);
    }
    ck_assert_int_gt(sum.accepted, 0);
    free(bytes);
    fragment_destroy(f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("group check");
    TCase *t = tcase_create("rules"), *hostile = tcase_create("hostile");
    tcase_add_loop_test(t, good_groups_and_launches_pass, 0, COUNT(good));
    tcase_add_test(t, each_broken_rule_is_named);
    tcase_add_test(t, rules_of_other_ops_are_named);
    tcase_add_test(t, names_end_inside_and_scalars_agree);
    tcase_add_test(t, an_output_in_place_has_its_inputs_type_and_sizes);
    tcase_add_test(t, a_group_in_the_wrong_place_or_too_short_is_refused);
    tcase_add_test(t, each_broken_promise_of_a_launch_is_named);
    tcase_add_test(t, sizes_that_do_not_fit_an_op_are_named);
    tcase_add_test(t, extents_cover_negative_strides_in_bytes);
    suite_add_tcase(suite, t);
    tcase_add_checked_fixture(hostile, ref_setup, ref_teardown);
    tcase_set_timeout(hostile, 60);
    tcase_add_loop_test(hostile, no_changed_byte_leads_outside, 0, COUNT(good));
    tcase_add_loop_test(hostile, no_changed_words_lead_outside, 0, COUNT(good));
    suite_add_tcase(suite, hostile);
    return run_suite(suite);
}
