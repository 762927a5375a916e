/* fnx_launch_check: do the numbers of a launch keep what the group promises? First every size, stride and address by
 * itself, then, node by node, the sizes that ops with operands of their own shape compare: matrices, windows,
 * indexes. */
#include "op_form.h"
#include "refuse.h"

#include <fornax-plugin/check.h>

typedef struct checker {
    const fnx_group *g;
    const fnx_launch *l;
    char *why;
    size_t why_size;
} checker;

#define CHECK(condition, ...) REQUIRE(condition, FNX_E_SHAPE, __VA_ARGS__)
#define GIVEN(condition, ...) REQUIRE(condition, FNX_E_INVALID, __VA_ARGS__)

typedef long long number; /* for printing */

static int is_stored(const fnx_value *v) { return v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_OUTPUT; }
static int64_t length(const fnx_launch *l, const fnx_value *v, uint32_t d) { return l->sizes[v->size[d]]; }
static int64_t stride(const fnx_launch *l, const fnx_value *v, uint32_t d) { return l->strides[v->first_stride + d]; }

static int is_empty(const fnx_launch *l, const fnx_value *v) {
    for (uint32_t d = 0; d < v->rank; d++)
        if (length(l, v, d) == 0) return 1;
    return 0;
}

/* ---- each number by itself --------------------------------------------------------------------------------------- */

static int32_t check_given(const checker *c) {
    const fnx_group *g = c->g;
    const fnx_launch *l = c->l;
    GIVEN(l->struct_size >= sizeof *l, "struct_size of the launch is %u", l->struct_size);
    GIVEN(l->sizes, "a launch without sizes");
    GIVEN(l->strides || g->n_strides == 0, "a launch without strides");
    GIVEN(l->bindings || g->n_bindings == 0, "a launch without bindings");
    GIVEN(l->scalars || g->n_scalars == 0 || g->scalar_value != FNX_NONE, "a launch without scalars");
    return FNX_OK;
}

static int32_t check_sizes(const checker *c) {
    int64_t product = 1;
    for (uint32_t i = 0; i < c->g->n_sizes; i++) {
        const fnx_size *s = fnx_group_size(c->g, i);
        const int64_t n = c->l->sizes[i];
        CHECK(n >= 0, "size %u is %lld", i, (number)n);
        CHECK(s->fixed < 0 || n == s->fixed, "size %u is %lld, not its fixed %lld", i, (number)n, (number)s->fixed);
        CHECK(n % s->divisor == 0, "size %u, %lld, is no multiple of %lld", i, (number)n, (number)s->divisor);
        CHECK(n <= s->most, "size %u, %lld, is above its bound %lld", i, (number)n, (number)s->most);
    }
    for (uint32_t d = 0; d < c->g->rank; d++) {
        const int64_t n = c->l->sizes[c->g->domain[d]];
        CHECK(!__builtin_mul_overflow(product, n ? n : 1, &product), "the domain's sizes overflow");
    }
    CHECK(!(c->g->flags & FNX_GROUP_INDEX32) || product < INT64_C(1) << 31,
          "%lld elements, but 32-bit indexes are promised", (number)product);
    return FNX_OK;
}

/* Lowest and highest element offset of a value that walks memory (or counts), 0 and -1 for an empty one. */
static int32_t offsets(const fnx_launch *l, const fnx_value *v, int64_t *low, int64_t *high) {
    *low = *high = 0;
    if (is_empty(l, v)) {
        *high = -1;
        return FNX_OK;
    }
    for (uint32_t d = 0; d < v->rank; d++) {
        int64_t far, *end;
        if (length(l, v, d) == 1) continue;
        if (__builtin_mul_overflow(length(l, v, d) - 1, stride(l, v, d), &far)) return FNX_E_SHAPE;
        end = far < 0 ? low : high;
        if (__builtin_add_overflow(*end, far, end)) return FNX_E_SHAPE;
    }
    return FNX_OK;
}

int32_t fnx_value_extent(const fnx_group *group, const fnx_launch *launch, uint32_t value, int64_t *low,
                         int64_t *high) {
    const fnx_value *v = fnx_group_value(group, value);
    const int64_t bytes = fnx_check_dtype_bytes(v->dtype);
    if (offsets(launch, v, low, high) || __builtin_add_overflow(*high, 1, high) ||
        __builtin_mul_overflow(*low, bytes, low) || __builtin_mul_overflow(*high, bytes, high))
        return FNX_E_SHAPE;
    return FNX_OK;
}

/* The promise about one axis. */
static int keeps_class(const fnx_launch *l, const fnx_value *v, uint32_t d) {
    const int64_t s = stride(l, v, d);
    int64_t packed;
    if (length(l, v, d) <= 1) return 1; /* never stepped along */
    switch (v->stride_class[d]) {
    case FNX_STRIDE_ZERO: return s == 0;
    case FNX_STRIDE_ONE: return s == 1;
    case FNX_STRIDE_PACKED:
        return !__builtin_mul_overflow(stride(l, v, d + 1), length(l, v, d + 1), &packed) && s == packed;
    default: return 1;
    }
}

static int32_t check_value(const checker *c, uint32_t i) {
    const fnx_value *v = fnx_group_value(c->g, i);
    const fnx_launch *l = c->l;
    int64_t low, high, elements = 1, bytes;
    for (uint32_t d = 0; d < v->rank; d++)
        CHECK(!__builtin_mul_overflow(elements, length(l, v, d) ? length(l, v, d) : 1, &elements),
              "value %u: its sizes overflow", i);
    CHECK(!__builtin_mul_overflow(elements, (int64_t)fnx_check_dtype_bytes(v->dtype), &bytes),
          "value %u: its bytes overflow", i);
    if (!is_stored(v) && v->kind != FNX_VALUE_INDEX) return FNX_OK;
    CHECK(fnx_value_extent(c->g, l, i, &low, &high) == FNX_OK, "value %u: its strides overflow", i);
    if (is_empty(l, v)) return FNX_OK;
    for (uint32_t d = 0; d < v->rank; d++) {
        CHECK(keeps_class(l, v, d), "value %u, axis %u: stride %lld breaks the promised class %u", i, d,
              (number)stride(l, v, d), v->stride_class[d]);
        CHECK(v->kind != FNX_VALUE_OUTPUT || length(l, v, d) == 1 || stride(l, v, d) != 0,
              "value %u, axis %u: a result with stride 0", i, d);
    }
    (void)offsets(l, v, &low, &high);
    CHECK(!(c->g->flags & FNX_GROUP_INDEX32) || (low > INT32_MIN && high <= INT32_MAX),
          "value %u has offsets from %lld to %lld, but 32-bit indexes are promised", i, (number)low, (number)high);
    if (is_stored(v))
        GIVEN(l->bindings[v->index].address != 0 && l->bindings[v->index].address % v->align == 0,
              "value %u has address 0x%llx, which is not aligned to %u", i,
              (unsigned long long)l->bindings[v->index].address, v->align);
    return FNX_OK;
}

/* Scalars in device memory: an input that holds all of them, one after the other. */
static int32_t check_scalar_value(const checker *c) {
    int64_t low, high;
    if (c->g->scalar_value == FNX_NONE) return FNX_OK;
    CHECK(fnx_value_extent(c->g, c->l, c->g->scalar_value, &low, &high) == FNX_OK && low == 0 &&
              high >= (int64_t)(c->g->n_scalars * sizeof(fnx_scalar)),
          "value %u is too small for %u scalars", c->g->scalar_value, c->g->n_scalars);
    GIVEN(c->g->n_scalars == 0 || c->l->bindings[fnx_group_value(c->g, c->g->scalar_value)->index].address % 8 == 0,
          "value %u, which holds the scalars, is not aligned to 8", c->g->scalar_value);
    return FNX_OK;
}

/* An output in an input's slot is that input's memory. */
static int32_t check_in_place(const checker *c) {
    for (uint32_t i = 0; i < c->g->n_values; i++) {
        const fnx_value *y = fnx_group_value(c->g, i);
        if (y->kind != FNX_VALUE_OUTPUT || is_empty(c->l, y)) continue;
        for (uint32_t k = 0; k < c->g->n_values; k++) {
            const fnx_value *x = fnx_group_value(c->g, k);
            if (x->kind != FNX_VALUE_INPUT || x->slot != y->slot) continue;
            CHECK(c->l->bindings[x->index].address == c->l->bindings[y->index].address,
                  "values %u and %u are one in place, but have two addresses", k, i);
            for (uint32_t d = 0; d < y->rank; d++)
                CHECK(length(c->l, y, d) == 1 || stride(c->l, x, d) == stride(c->l, y, d),
                      "values %u and %u are one in place, but axis %u has two strides", k, i, d);
        }
    }
    return FNX_OK;
}

/* ---- sizes that ops compare -------------------------------------------------------------------------------------- */

static const fnx_value *operand(const checker *c, const fnx_node *n, uint32_t k) {
    return fnx_group_value(c->g, fnx_node_operand(c->g, n, k));
}

static const fnx_value *result(const checker *c, const fnx_node *n, uint32_t k) {
    return fnx_group_value(c->g, fnx_node_result(c->g, n, k));
}

static int32_t check_reduction(const checker *c, uint32_t i, const fnx_node *n) {
    if (n->op == FNX_OP_sum || is_empty(c->l, result(c, n, 0))) return FNX_OK;
    CHECK(!is_empty(c->l, operand(c, n, 0)), "node %u: an extremum of nothing", i);
    return FNX_OK;
}

static int32_t check_matmul(const checker *c, uint32_t i, const fnx_node *n) {
    const fnx_value *a = operand(c, n, 0), *b = operand(c, n, 1), *y = result(c, n, 0);
    const uint32_t row = y->rank - 2u, column = y->rank - 1u;
    CHECK(length(c->l, a, row) == length(c->l, y, row) && length(c->l, b, column) == length(c->l, y, column) &&
              length(c->l, a, column) == length(c->l, b, row),
          "node %u: a product of [%lld, %lld] and [%lld, %lld] to [%lld, %lld]", i, (number)length(c->l, a, row),
          (number)length(c->l, a, column), (number)length(c->l, b, row), (number)length(c->l, b, column),
          (number)length(c->l, y, row), (number)length(c->l, y, column));
    for (uint32_t d = 0; d < row; d++)
        for (uint32_t k = 0; k < 2; k++) {
            const int64_t batch = length(c->l, k ? b : a, d);
            CHECK(batch == length(c->l, y, d) || batch == 1, "node %u, operand %u: batch axis %u has %lld elements", i,
                  k, d, (number)batch);
        }
    return FNX_OK;
}

/* y = (x + low + high - dilation (k - 1) - 1) / stride + 1, rounded down; 0 where the window is longer than x. */
static int fits_window(const window_form *w, uint32_t d, int64_t x, int64_t k, int64_t y) {
    int64_t reach, padded;
    if (k < 1 || __builtin_mul_overflow(k - 1, (int64_t)w->dilation[d], &reach) || reach > INT64_MAX / 4) return 0;
    if (__builtin_add_overflow(x, (int64_t)w->low[d] + w->high[d], &padded)) return 0;
    padded -= reach + 1;
    return y == (padded < 0 ? 0 : padded / w->stride[d] + 1);
}

static int32_t check_window(const checker *c, uint32_t i, const fnx_node *n, const op_form *form) {
    const fnx_launch *l = c->l;
    window_form w;
    (void)fnx_check_window(c->g, n, form, &w);
    CHECK(length(l, w.x, 0) == length(l, w.y, 0), "node %u: %lld images become %lld", i, (number)length(l, w.x, 0),
          (number)length(l, w.y, 0));
    if (w.w) {
        const int64_t out = length(l, w.w, 0), in = length(l, w.w, 1), all = length(l, w.x, 1);
        CHECK(length(l, w.y, 1) == out && out % w.groups == 0 && all % w.groups == 0 && all / w.groups == in,
              "node %u: %lld channels in, %lld out, weights [%lld, %lld], %u groups", i, (number)all,
              (number)length(l, w.y, 1), (number)out, (number)in, w.groups);
    } else {
        CHECK(length(l, w.x, 1) == length(l, w.y, 1), "node %u: %lld channels become %lld", i,
              (number)length(l, w.x, 1), (number)length(l, w.y, 1));
    }
    for (uint32_t d = 0; d < w.spatial; d++) {
        const int64_t x = length(l, w.x, d + 2), k = w.w ? length(l, w.w, d + 2) : w.size[d], y = length(l, w.y, d + 2);
        CHECK(fits_window(&w, d, x, k, y), "node %u: a window of %lld over %lld elements does not give %lld", i,
              (number)k, (number)x, (number)y);
    }
    for (uint32_t d = 0; w.where && d < w.y->rank; d++)
        CHECK(length(l, w.where, d) == length(l, w.y, d), "node %u: axis %u has %lld results, but %lld places", i, d,
              (number)length(l, w.y, d), (number)length(l, w.where, d));
    return FNX_OK;
}

/* index and y (gather), index and update (scatter_add) iterate together; off the axis they stay inside of x. */
static int32_t check_indexed(const checker *c, uint32_t i, const fnx_node *n, int scatters) {
    const fnx_value *x = operand(c, n, 0), *index = operand(c, n, 1),
                    *other = scatters ? operand(c, n, 2) : result(c, n, 0);
    fnx_attr_axis attr;
    (void)fnx_node_attrs(c->g, n, &attr, sizeof attr);
    for (uint32_t d = 0; d < x->rank; d++) {
        const int64_t a = length(c->l, index, d), b = length(c->l, other, d), steps = b == 1 ? a : b;
        CHECK(a == b || a == 1 || (scatters && b == 1), "node %u, axis %u: %lld indexes for %lld elements", i, d,
              (number)a, (number)b);
        CHECK(scatters || b != 1 || a == 1, "node %u, axis %u: %lld indexes for one element", i, d, (number)a);
        CHECK(d == attr.axis || steps <= length(c->l, x, d), "node %u, axis %u: %lld indexes into %lld elements", i, d,
              (number)steps, (number)length(c->l, x, d));
        CHECK(!scatters || length(c->l, x, d) == length(c->l, result(c, n, 0), d),
              "node %u, axis %u: target and result differ", i, d);
    }
    return FNX_OK;
}

static int32_t check_node(const checker *c, uint32_t i) {
    const fnx_node *n = fnx_group_node(c->g, i);
    const op_form *form = fnx_check_op_form(n->op);
    switch (form ? form->shapes : 0) {
    case FORM_REDUCE: return check_reduction(c, i, n);
    case FORM_MATMUL: return check_matmul(c, i, n);
    case FORM_CONV:
    case FORM_POOL: return check_window(c, i, n, form);
    case FORM_GATHER: return check_indexed(c, i, n, 0);
    case FORM_SCATTER: return check_indexed(c, i, n, 1);
    default: return FNX_OK; /* the group's size entries say it all */
    }
}

int32_t fnx_launch_check(const fnx_group *group, const fnx_launch *launch, char *why, size_t why_size) {
    const checker check = {group, launch, why, why_size}, *c = &check;
    TRY(check_given(c));
    TRY(check_sizes(c));
    for (uint32_t i = 0; i < group->n_values; i++) TRY(check_value(c, i));
    TRY(check_scalar_value(c));
    TRY(check_in_place(c));
    for (uint32_t i = 0; i < group->n_nodes; i++) TRY(check_node(c, i));
    return FNX_OK;
}
