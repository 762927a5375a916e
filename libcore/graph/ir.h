/* The planner's form of a graph, made of records on a miss of the plan cache.
 *
 * Nodes stand in dependency order. Records become nodes, composites become the nodes of their decomposition, views
 * become strides over what they look at. The builder simplifies while it appends: equal nodes are one, casts to the
 * same dtype, products with 1 and the like are their operand. */
#ifndef GRAPH_IR_H
#define GRAPH_IR_H

#include "graph/recorder.h"

enum {                   /* fnx_node_ir.kind */
       FNX_IR_INPUT = 1, /* a stored tensor */
       FNX_IR_SCALAR,    /* an argument of the plan, or a constant: rank 0 */
       FNX_IR_INDEX,     /* i64, element i is sum(i[d] * step[d]) */
       FNX_IR_COMPUTE,   /* made by a kernel or a group */
       FNX_IR_WRITE,     /* made by copies into parts of it: concat, pad, slice_assign */
       FNX_IR_VIEW,      /* of `base`: each axis walks an axis of base, or none */
       FNX_IR_ALIAS      /* the packed row-major elements of `base` under another shape */
};

enum { FNX_IR_MAX_DYN = 8, FNX_IR_NONE = -1 };

typedef struct fnx_dyn { /* a start that is an argument: scalar * multiple, along an axis of base (or in elements) */
    int32_t scalar;      /* node */
    int32_t axis;
    int64_t multiple;
} fnx_dyn;

typedef struct fnx_view_ir {
    int32_t base;
    int32_t n_dyn;
    int8_t axis[FNX_MAX_RANK];   /* of base; -1: broadcast, or size 1 */
    int64_t step[FNX_MAX_RANK];  /* per view axis, in elements of the base's axis */
    int64_t start[FNX_MAX_RANK]; /* per base axis */
    fnx_dyn dyn[FNX_IR_MAX_DYN];
} fnx_view_ir;

typedef struct fnx_node_ir {
    uint8_t kind, dtype, rank;
    uint8_t klass;  /* SCALAR: what is known of it */
    uint8_t layout; /* of its storage: FNX_ROW_MAJOR..; INPUT: as it is, others: chosen by the layout pass */
    bool rows;      /* its storage must be row-major: an alias looks at it */
    bool stored;    /* has storage: something outside its group reads it, or it is demanded */
    bool demanded;
    uint16_t op, n_in;
    int32_t in[4]; /* operands; all of them in `more` if there are more than 4 */
    int32_t *more;
    int32_t input; /* INPUT: its number */
    int32_t arg;   /* SCALAR: argument of the plan, or -1: the constant `bits` */
    uint64_t bits;
    const void *attr;
    int64_t count;
    int64_t size[FNX_MAX_RANK];
    fnx_view_ir *view; /* VIEW; ALIAS: base, start[0] and dyn in elements; INDEX: step */
    int32_t unit;      /* grouping: what runs it */
    int32_t sibling;   /* the node that is the second result of the same kernel, or -1 */
} fnx_node_ir;

typedef struct fnx_ir {
    fnx_node_ir *node;
    int64_t n, capacity;
    int32_t *of_record; /* node of each pending record; -1: not needed */
    int32_t *table;     /* equal nodes: open addressing, -1 empty */
    int64_t table_size;
    void **owned; /* blocks that go with the ir */
    int64_t n_owned, owned_capacity;
    fnx_status status; /* the first failure; the last error says why */

    /* Whether the backend runs a composite as a whole better than its parts. */
    bool (*whole)(void *user, const fnx_tensor *y);
    bool no_parts; /* fallback=error: what is not run as a whole is an error */
    void *user;
} fnx_ir;

/* From the records of r that are needed (fnx_demand). `whole`, `user` are set by the caller, all else is zero. Errors:
 * FNX_E_NO_MEMORY; what a decomposition failed with. */
fnx_status fnx_ir_build(fnx_ir *ir, fnx_recorder *r);
void fnx_ir_end(fnx_ir *ir);

static inline const int32_t *fnx_ir_in(const fnx_node_ir *n) { return n->more ? n->more : n->in; }

/* The node whose storage a value uses: itself, or what its views and aliases look at. */
int32_t fnx_ir_root(const fnx_ir *ir, int32_t id);

/* Whether the value is all of its root's elements in row-major order, so that it can share the root's storage. */
bool fnx_ir_is_whole(const fnx_ir *ir, int32_t id);

/* A new node: zero but for kind, dtype, shape and "none" in its links. -1 on failure (ir->status). */
int32_t fnx_ir_node(fnx_ir *ir, int kind, int dtype, int rank, const int64_t *sizes);

/* A node with storage of its own and the value of src. */
int32_t fnx_ir_copy(fnx_ir *ir, int32_t src);

/* Memory that goes with the ir, zeroed; NULL on failure (ir->status). */
void *fnx_ir_alloc(fnx_ir *ir, size_t bytes);

/* ---- views (ir_view.c) ------------------------------------------------------------------------------------------- */

int32_t fnx_ir_expand(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes);
int32_t fnx_ir_permute(fnx_ir *ir, int32_t x, const uint8_t *from);
int32_t fnx_ir_reshape(fnx_ir *ir, int32_t x, int rank, const int64_t *sizes);
/* starts: one scalar node per axis */
int32_t fnx_ir_slice(fnx_ir *ir, int32_t x, const int64_t *sizes, const int64_t *steps, const int32_t *starts);

#endif
