/* What the passes of the planner share while a plan is built. */
#ifndef GRAPH_BUILDER_H
#define GRAPH_BUILDER_H

#include "graph/ir.h"
#include "graph/plan.h"

enum { FNX_UNIT_GROUP = 1, FNX_UNIT_KERNEL, FNX_UNIT_WRITE };

typedef struct fnx_unit { /* nodes that run together */
    uint8_t kind;
    bool read_outside;            /* a node of another unit reads one of ours */
    bool gone;                    /* merged into another */
    int32_t depth;                /* longer than that of every unit it reads */
    int32_t first, last, n_nodes; /* nodes linked by builder.next */
    int32_t newest;               /* the highest of them: recorded last */
    int32_t position;             /* in the order of execution, or -1 */
} fnx_unit;

/* How an operand is read: an address in its root's storage and strides, all in elements. */
typedef struct fnx_access {
    int32_t root; /* node with storage, SCALAR or INDEX */
    int32_t n_dyn;
    int64_t offset;
    int64_t stride[FNX_MAX_RANK];
    struct {
        int32_t arg;
        int64_t multiple;
    } dyn[FNX_IR_MAX_DYN];
} fnx_access;

typedef struct fnx_wish { /* a copy made because a kernel asked for another layout */
    int32_t src, copy;
    uint8_t layout;
} fnx_wish;

typedef struct fnx_builder {
    fnx_ir ir;
    fnx_recorder *r;
    const fnx_backend *backend;
    fnx_plan *plan;
    uint8_t *solo; /* per node: a backend declined it in a group; empty at first, survives a second attempt */
    int64_t n_solo;
    bool again; /* a decline changed `solo`: group anew */

    fnx_unit *units;
    int64_t n_units, units_capacity;
    int32_t *next;          /* per node: the next of its unit */
    bool *live;             /* per node */
    int64_t nodes_capacity; /* of the arrays per node */
    int32_t *order;         /* units in order of execution */
    int64_t n_order, order_capacity;
    fnx_wish *wishes;
    int64_t n_wishes, wishes_capacity;

    int32_t *identity; /* per node with storage: equal where memory is the same; NULL: all different (not placed yet) */
} fnx_builder;

fnx_status fnx_out_of_host_memory(void);

/* units.c: which nodes run together, and in which order. */
fnx_status fnx_units_build(fnx_builder *b);
/* A unit of one node, at the end of b->units. */
int32_t fnx_unit_add(fnx_builder *b, int kind, int32_t node, int32_t depth);

/* layout.c: strides of everything stored. */
fnx_status fnx_layouts_choose(fnx_builder *b);
void fnx_access_of(const fnx_builder *b, int32_t id, fnx_access *out);
/* Strides of packed storage of a shape in a layout. */
void fnx_layout_strides(int rank, const int64_t *sizes, int layout, int64_t *strides);

#endif
