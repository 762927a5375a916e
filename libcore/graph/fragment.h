/* One fnx_group and one launch of it, made from nodes: the form in which work crosses to a plugin.
 *
 * Values are added with the sizes and strides that nodes have; `finish` brings them into normal form (axes of size 1
 * dropped, ordered by stride, merged; kept axes first, reduced ones last) and lays everything out in one block. */
#ifndef GRAPH_FRAGMENT_H
#define GRAPH_FRAGMENT_H

#include "graph/builder.h"

enum { FNX_FRAGMENT_VALUES = 160 };

typedef struct fnx_fragment_value {
    uint8_t kind, dtype, rank, klass;
    int32_t node;      /* that it is the value of, or -1 */
    uint64_t bits;     /* CONST */
    int32_t arg;       /* SCALAR */
    fnx_access access; /* INPUT, OUTPUT, INDEX: strides; where in its root's storage */
    int64_t size[FNX_MAX_RANK];
} fnx_fragment_value;

typedef struct fnx_fragment {
    fnx_fragment_value value[FNX_FRAGMENT_VALUES];
    uint32_t n_values, n_nodes, n_refs, attr_bytes;
    struct {
        uint16_t op, n_in, n_out, reserved;
        int32_t origin;
        uint32_t first_ref, attr_offset, attr_bytes;
    } node[FNX_FRAGMENT_VALUES];
    uint32_t ref[FNX_FRAGMENT_VALUES * 4];
    uint64_t attr[64];
    uint32_t anchor, anchor_node, rank, row_axes;
    int64_t domain[FNX_MAX_RANK];
    bool aligned; /* values have the domain's rank: axes may be moved and merged */

    /* after finish */
    fnx_group *group;                           /* owned */
    fnx_launch launch;                          /* its arrays follow */
    int32_t binding_value[FNX_FRAGMENT_VALUES]; /* value of each binding */
    int32_t scalar_value[FNX_FRAGMENT_VALUES];  /* value of each scalar slot */
    int64_t sizes[1 + FNX_MAX_RANK * 4], strides[FNX_FRAGMENT_VALUES * FNX_MAX_RANK];
    fnx_binding bindings[FNX_FRAGMENT_VALUES];
    fnx_scalar scalars[FNX_FRAGMENT_VALUES];
} fnx_fragment;

fnx_fragment *fnx_fragment_create(void); /* NULL: no host memory */
void fnx_fragment_destroy(fnx_fragment *f);
void fnx_fragment_reset(fnx_fragment *f); /* empty, for the next one */

/* The whole of a unit: a kernel's node, a group of elementwise nodes, or a copy of src into a part of dst.
 * FNX_E_DECLINED: it does not fit into a fragment (a group must be cut). */
fnx_status fnx_fragment_kernel(fnx_fragment *f, const fnx_builder *b, int32_t id);
fnx_status fnx_fragment_group(fnx_fragment *f, const fnx_builder *b, const fnx_unit *u);
fnx_status fnx_fragment_copy(fnx_fragment *f, const fnx_builder *b, int32_t src, const fnx_access *part, int dtype,
                             int rank, const int64_t *sizes);

/* The node of the unit behind node number `node` of the group. */
int32_t fnx_fragment_origin(const fnx_fragment *f, uint32_t node);

/* Normal form, block and launch; slots follow b->identity. */
fnx_status fnx_fragment_finish(fnx_fragment *f, const fnx_builder *b);

#endif
