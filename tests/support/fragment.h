/* Builds a group and one launch of it from values with concrete sizes and addresses: what libfornax's planner does for
 * programs, this does for tests of plugins. It knows nothing of libfornax and needs only the SDK's headers.
 *
 *     fragment *f = fragment_create();
 *     uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 4, 6), x_data);
 *     uint32_t s = fragment_scalar(f, FNX_F32, 0.5);
 *     uint32_t y = fragment_output(f, FNX_F32, SHAPE(f, 4, 6), y_data);
 *     fragment_node(f, FNX_OP_mul, NULL, 0, REFS(x, s), REFS(y));
 *     fragment_finish(f);
 *     ... prepare(device, f->group, ...), launch(handle, queue, &f->launch, 1, sizeof f->launch) ...
 *     fragment_destroy(f);
 *
 * Values are named by their number. Anchor, domain, row axes, stride classes, attribute padding and hash are derived by
 * fragment_finish. Axes are not merged: tests decide the form that a plugin sees. Misuse (too many values, finish
 * without nodes) ends the test program with a message. */
#ifndef TESTS_SUPPORT_FRAGMENT_H
#define TESTS_SUPPORT_FRAGMENT_H

#include <fornax-plugin/group.h>
#include <fornax-plugin/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FRAGMENT_MAX = 256 }; /* values, nodes, sizes, ... of each at most */

typedef struct fragment_shape { /* entries of the size table, as in fnx_value */
    uint32_t rank;
    uint16_t size[FNX_MAX_RANK];
} fragment_shape;

typedef struct fragment {
    fnx_group *group;  /* after finish: the block */
    fnx_launch launch; /* after finish: sizes, strides, bindings and scalars point into this object */

    /* What the block is made of. A test may change any of it between building and finish; `group_header` also takes
     * features, flags and scalar_value. */
    fnx_group group_header;
    fnx_size size[FRAGMENT_MAX];
    fnx_value value[FRAGMENT_MAX];
    fnx_node node[FRAGMENT_MAX];
    fnx_scalar_slot scalar_slot[FRAGMENT_MAX];
    fnx_scalar constant[FRAGMENT_MAX];
    const char *name[FRAGMENT_MAX];
    uint32_t ref[4 * FRAGMENT_MAX];
    uint64_t attr[8 * FRAGMENT_MAX];
    uint32_t stretch; /* bytes of junk after each element of an array whose stride is in the header: newer structs */

    /* What the launch is made of. */
    int64_t length[FRAGMENT_MAX]; /* per size entry */
    int64_t stride[FRAGMENT_MAX * FNX_MAX_RANK];
    uint8_t row_major[FRAGMENT_MAX]; /* per value: strides follow from the sizes */
    fnx_binding binding[FRAGMENT_MAX];
    fnx_scalar scalar[FRAGMENT_MAX];
} fragment;

fragment *fragment_create(void);
void fragment_destroy(fragment *f); /* NULL is fine */

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* A new size entry, given at launch. Length 1 is always entry 0. Entries are what axes have in common: name one
 * entry in two shapes and they stay equal in every launch. */
uint16_t fragment_size(fragment *f, int64_t length);

/* A shape by lengths: equal lengths are one entry (that of an earlier axis where there is one). */
fragment_shape fragment_shape_of(fragment *f, uint32_t rank, const int64_t *lengths);
#define SHAPE(f, ...) \
    fragment_shape_of(f, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
/* A shape by entries of fragment_size. */
#define ENTRIES(...) ((fragment_shape){(uint32_t)(sizeof((uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t)), {__VA_ARGS__}})
#define RANK0 ((fragment_shape){0, {0}})

int64_t fragment_count(const fragment *f, fragment_shape shape); /* elements */

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Row-major values in memory, each in a slot of its own. `at` is the address of element [0, 0, ...]. */
uint32_t fragment_input(fragment *f, uint16_t dtype, fragment_shape shape, const void *at);
uint32_t fragment_output(fragment *f, uint16_t dtype, fragment_shape shape, void *at);

/* The same with any strides, in elements; where the size is 1 the stride becomes 0. */
uint32_t fragment_input_strided(fragment *f, uint16_t dtype, fragment_shape shape, const int64_t *strides,
                                const void *at);
uint32_t fragment_output_strided(fragment *f, uint16_t dtype, fragment_shape shape, const int64_t *strides, void *at);

/* Puts `value` in the slot of `like`: an output into its input's (then address and strides must be equal, too), several
 * outputs into one. */
void fragment_share_slot(fragment *f, uint32_t value, uint32_t like);

/* An output that overwrites `input`: its dtype, shape, strides, address and slot. */
uint32_t fragment_output_in_place(fragment *f, uint32_t input);

uint32_t fragment_temp(fragment *f, uint16_t dtype, fragment_shape shape);
uint32_t fragment_index(fragment *f, fragment_shape shape, const int64_t *strides); /* NULL: row-major numbers */

/* Rank 0. The scalar's class in the key is FNX_CLASS_ANY; set f->scalar_slot[...].klass for another. */
uint32_t fragment_scalar(fragment *f, uint16_t dtype, double value);
uint32_t fragment_scalar_bits(fragment *f, uint16_t dtype, uint64_t bits);
uint32_t fragment_const(fragment *f, uint16_t dtype, double value);

fnx_scalar fragment_scalar_of(uint16_t dtype, double value); /* the bytes of a scalar; value must be in range */
uint32_t fragment_dtype_bytes(uint16_t dtype);

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* `operands` and `results` are value numbers; `attr` (or NULL) is copied, padded to a multiple of 8 bytes. */
void fragment_node(fragment *f, uint16_t op, const void *attr, uint32_t attr_size, uint32_t n_operands,
                   const uint32_t *operands, uint32_t n_results, const uint32_t *results);
#define REFS(...) \
    (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (uint32_t[]) { __VA_ARGS__ }

/* An op id for an extension op of this group; `name` must live until finish. */
uint16_t fragment_extension_op(fragment *f, const char *name);

/* ---- finish ------------------------------------------------------------------------------------------------------ */

/* Makes group and launch. May be called again after changes. The anchor follows from the nodes: that of the first
 * node that is not elementwise (reduce becomes rows where a reduced result meets its row again). The domain is the
 * operand's shape for reductions, the first result's shape of the anchor otherwise, of elementwise groups the
 * largest result's. */
void fragment_finish(fragment *f);

/* Other lengths, strides and addresses for the same group (after finish; f->group stays as it is). fragment_resize
 * derives the strides of row-major values anew; the stride classes of a finished group must still hold. */
void fragment_resize(fragment *f, uint16_t entry, int64_t length);
void fragment_bind(fragment *f, uint32_t value, const void *at);

#ifdef __cplusplus
}
#endif
#endif
