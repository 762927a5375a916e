/* Records become nodes: operands are looked through, composites taken apart, equal nodes and no-ops dropped. */
#include "graph/ir.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdlib.h>

static int32_t fail(fnx_ir *ir) {
    if (!ir->status)
        ir->status = fnx_error_set(FNX_E_NO_MEMORY, "no host memory to plan a graph of %lld nodes", (long long)ir->n);
    return FNX_IR_NONE;
}

void *fnx_ir_alloc(fnx_ir *ir, size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (p && fnx_grow((void **)&ir->owned, &ir->owned_capacity, sizeof *ir->owned, ir->n_owned + 1)) {
        ir->owned[ir->n_owned++] = p;
        return p;
    }
    free(p);
    fail(ir);
    return NULL;
}

int32_t fnx_ir_node(fnx_ir *ir, int kind, int dtype, int rank, const int64_t *sizes) {
    if (!fnx_grow((void **)&ir->node, &ir->capacity, sizeof *ir->node, ir->n + 1)) return fail(ir);
    fnx_node_ir *n = &ir->node[ir->n];
    memset(n, 0, sizeof *n);
    n->kind = (uint8_t)kind, n->dtype = (uint8_t)dtype, n->rank = (uint8_t)rank;
    n->input = n->arg = n->unit = n->sibling = -1;
    n->count = 1;
    for (int d = 0; d < rank; d++) n->size[d] = sizes[d], n->count *= sizes[d];
    return (int32_t)ir->n++;
}

void fnx_ir_end(fnx_ir *ir) {
    for (int64_t i = 0; i < ir->n_owned; i++) free(ir->owned[i]);
    free(ir->owned), free(ir->node), free(ir->of_record), free(ir->table);
}

/* ---- equal nodes ------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v) { return (h ^ v) * UINT64_C(0x9E3779B97F4A7C15) ^ h >> 29; }

static bool equal(const fnx_node_ir *a, const fnx_node_ir *b) {
    if (a->kind != b->kind || a->op != b->op || a->dtype != b->dtype || a->rank != b->rank || a->n_in != b->n_in ||
        a->bits != b->bits || a->arg != b->arg || memcmp(a->size, b->size, sizeof a->size) ||
        memcmp(fnx_ir_in(a), fnx_ir_in(b), sizeof(int32_t) * a->n_in))
        return false;
    unsigned bytes = a->kind == FNX_IR_SCALAR ? 0 : fnx_ops[a->op].attr_bytes;
    return !bytes || !memcmp(a->attr, b->attr, bytes);
}

static uint64_t hash(const fnx_node_ir *n) {
    uint64_t h = mix(n->op, (uint64_t)n->kind << 16 | (uint64_t)n->dtype << 8 | n->rank);
    h = mix(mix(h, n->bits), (uint64_t)(uint32_t)n->arg);
    for (int d = 0; d < n->rank; d++) h = mix(h, (uint64_t)n->size[d]);
    for (int k = 0; k < n->n_in; k++) h = mix(h, (uint64_t)(uint32_t)fnx_ir_in(n)[k]);
    return h ^ h >> 32;
}

/* The last node, or an equal one made before. */
static int32_t unique(fnx_ir *ir, int32_t id) {
    if (id < 0) return id;
    if (2 * ir->n >= ir->table_size) {
        int64_t size = ir->table_size * 2 + 256;
        int32_t *table = malloc(sizeof *table * (size_t)size);
        if (!table) return fail(ir);
        memset(table, 0xff, sizeof *table * (size_t)size);
        for (int64_t i = 0; i < ir->table_size; i++) {
            if (ir->table[i] < 0) continue;
            uint64_t at = hash(&ir->node[ir->table[i]]) % (uint64_t)size;
            while (table[at] >= 0) at = (at + 1) % (uint64_t)size;
            table[at] = ir->table[i];
        }
        free(ir->table);
        ir->table = table, ir->table_size = size;
    }
    uint64_t at = hash(&ir->node[id]) % (uint64_t)ir->table_size;
    for (; ir->table[at] >= 0; at = (at + 1) % (uint64_t)ir->table_size)
        if (equal(&ir->node[ir->table[at]], &ir->node[id])) {
            ir->n--; /* it is the last one */
            return ir->table[at];
        }
    ir->table[at] = id;
    return id;
}

/* ---- small makers ------------------------------------------------------------------------------------------------ */

static int32_t scalar(fnx_ir *ir, int dtype, int32_t arg, uint64_t bits, unsigned klass) {
    int32_t id = fnx_ir_node(ir, FNX_IR_SCALAR, dtype, 0, NULL);
    if (id < 0) return id;
    ir->node[id].arg = arg, ir->node[id].bits = arg < 0 ? bits : 0, ir->node[id].klass = (uint8_t)klass;
    return unique(ir, id);
}

static int32_t compute(fnx_ir *ir, int op, int dtype, int rank, const int64_t *sizes, int n_in, const int32_t *in,
                       const void *attr) {
    for (int k = 0; k < n_in; k++)
        if (in[k] < 0) return FNX_IR_NONE;
    int32_t id = fnx_ir_node(ir, FNX_IR_COMPUTE, dtype, rank, sizes);
    if (id < 0) return id;
    fnx_node_ir *n = &ir->node[id];
    n->op = (uint16_t)op, n->n_in = (uint16_t)n_in, n->attr = attr;
    if (n_in > 4) {
        int32_t *more = fnx_ir_alloc(ir, sizeof *more * (size_t)n_in);
        if (!more) return FNX_IR_NONE;
        memcpy(more, in, sizeof *more * (size_t)n_in);
        n->more = more;
    } else memcpy(n->in, in, sizeof *in * (size_t)n_in);
    return unique(ir, id);
}

int32_t fnx_ir_copy(fnx_ir *ir, int32_t src) {
    if (src < 0) return src;
    int64_t sizes[FNX_MAX_RANK];
    memcpy(sizes, ir->node[src].size, sizeof sizes);
    return compute(ir, FNX_OP_copy, ir->node[src].dtype, ir->node[src].rank, sizes, 1, &src, NULL);
}

/* Row-major numbers 0, 1, 2, ... of a shape's elements; axis >= 0: the position along that axis. */
static int32_t index_of(fnx_ir *ir, int rank, const int64_t *sizes, int axis) {
    int32_t id = fnx_ir_node(ir, FNX_IR_INDEX, FNX_I64, rank, sizes);
    fnx_view_ir *v = id < 0 ? NULL : fnx_ir_alloc(ir, sizeof *v);
    if (!v) return FNX_IR_NONE;
    int64_t at = 1;
    for (int d = rank - 1; d >= 0; at *= sizes[d], d--) v->step[d] = axis >= 0 ? d == axis : at;
    ir->node[id].view = v;
    return id;
}

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

/* An operand that is the same everywhere is a scalar, whatever its shape. */
static int32_t through_fill(const fnx_ir *ir, int32_t id) {
    int32_t root = fnx_ir_root(ir, id);
    return root >= 0 && ir->node[root].kind == FNX_IR_SCALAR ? root : id;
}

static bool is(const fnx_ir *ir, int32_t id, unsigned klass) {
    return ir->node[id].kind == FNX_IR_SCALAR && ir->node[id].klass == klass;
}

/* Identities that hold for every value, NaN and -0 included. The operand that the result is, or -1. */
static int32_t identity(const fnx_ir *ir, int op, const int32_t *in) {
    switch (op) {
    case FNX_OP_mul: return is(ir, in[1], FNX_CLASS_ONE) ? in[0] : is(ir, in[0], FNX_CLASS_ONE) ? in[1] : FNX_IR_NONE;
    case FNX_OP_div:
    case FNX_OP_pow: return is(ir, in[1], FNX_CLASS_ONE) ? in[0] : FNX_IR_NONE;
    default: return FNX_IR_NONE;
    }
}

static int32_t elementwise(fnx_ir *ir, int op, int dtype, int rank, const int64_t *sizes, int n_in, int32_t *in) {
    for (int k = 0; k < n_in; k++) {
        if (in[k] < 0) return FNX_IR_NONE;
        in[k] = through_fill(ir, in[k]);
        if (ir->node[in[k]].kind != FNX_IR_SCALAR) in[k] = fnx_ir_expand(ir, in[k], rank, sizes);
    }
    if (op == FNX_OP_copy || (op == FNX_OP_cast && ir->node[in[0]].dtype == dtype))
        return fnx_ir_expand(ir, in[0], rank, sizes);
    int32_t same = identity(ir, op, in);
    if (same >= 0) return fnx_ir_expand(ir, same, rank, sizes);
    if (op == FNX_OP_mul && is(ir, in[1], FNX_CLASS_MINUS_ONE))
        return compute(ir, FNX_OP_neg, dtype, rank, sizes, 1, in, NULL);
    if (op == FNX_OP_pow && is(ir, in[1], FNX_CLASS_TWO) && fnx_dtype_is_float(dtype)) {
        int32_t square[2] = {in[0], in[0]};
        return compute(ir, FNX_OP_mul, dtype, rank, sizes, 2, square, NULL);
    }
    if (fnx_ops[op].flags & FNX_OPF_COMMUTES && n_in == 2 && in[0] > in[1]) {
        int32_t first = in[0];
        in[0] = in[1], in[1] = first;
    }
    return compute(ir, op, dtype, rank, sizes, n_in, in, NULL);
}

/* ---- one record -------------------------------------------------------------------------------------------------- */

typedef struct source { /* where the operands of a record come from */
    const fnx_recorder *r;
    const int32_t *of_record, *of_input;
    bool constant; /* scalars are constants of a decomposition, not arguments */
} source;

static int32_t operand(const source *s, const fnx_tensor *x) {
    if (x->owner == s->r && x->epoch == s->r->epoch) return x->id >= 0 ? s->of_record[x->id] : s->of_input[~x->id];
    for (int64_t j = 0; j < s->r->n_inputs; j++)
        if (s->r->inputs[j] == x) return s->of_input[j];
    return FNX_IR_NONE;
}

static int32_t convert(fnx_ir *ir, const source *s, fnx_tensor *y, int64_t first_arg);

/* The decomposition runs on a recorder of its own, over stand-ins for the operands; its records are then converted. */
static int32_t decompose(fnx_ir *ir, fnx_tensor *y, const int32_t *in) {
    if (ir->no_parts) {
        ir->status = fnx_error_set(FNX_E_UNSUPPORTED,
                                   "%s: the device has no kernel for it, and fallback=error forbids to take it apart",
                                   fnx_ops[y->op].name);
        return FNX_IR_NONE;
    }
    fnx_thread *me = &fnx_thread_self;
    fnx_recorder *was = me->recorder, *scratch = fnx_recorder_create(y->device->hardware);
    if (!scratch) return fail(ir);
    fnx_device device = *y->device;
    device.settings.lazy = FNX_ON, device.settings.graph_limit = UINT64_MAX >> 1, device.autodiff = false;
    scratch->settings = device.plan_settings;
    me->recorder = scratch;
    fnx_scope scope = fnx_scope_open(FNX_SCOPE_QUIET_FLAG | FNX_SCOPE_NO_GRAD_FLAG, __FILE__);
    fnx_tensor *stand_in[4] = {0};
    for (int k = 0; k < y->n_operands && k < 4; k++) {
        const fnx_tensor *x = fnx_operand(y, k);
        stand_in[k] = fnx_tensor_stored(&device, x->dtype, x->rank, x->size, NULL);
    }
    fnx_tensor *result = fnx_ops[y->op].decompose(stand_in, y);
    int32_t id = FNX_IR_NONE;
    if (fnx_state(result) == FNX_FAILED) ir->status = fnx_error_raise(result->error);
    else {
        int32_t *of_input = fnx_ir_alloc(ir, sizeof *of_input * (size_t)(scratch->n_inputs + 1));
        int32_t *of_record = fnx_ir_alloc(ir, sizeof *of_record * (size_t)(scratch->n + 1));
        source inner = {scratch, of_record, of_input, true};
        for (int64_t j = 0; j < scratch->n_inputs && of_input; j++)
            for (int k = 0; k < 4; k++)
                if (scratch->inputs[j] == stand_in[k]) of_input[j] = in[k];
        for (int64_t i = 0; i < scratch->n && of_record && of_input && !ir->status; i++)
            of_record[i] = convert(ir, &inner, scratch->pending[i], 0);
        if (!ir->status) id = operand(&inner, result);
    }
    fnx_scope_close(&scope);
    for (int64_t i = scratch->n - 1; i >= 0; i--) {
        scratch->pending[i]->state = FNX_EVAPORATED;
        fnx_tensor_unref(scratch->pending[i]);
    }
    for (int64_t j = 0; j < scratch->n_inputs; j++) fnx_tensor_unref(scratch->inputs[j]);
    me->recorder = was;
    fnx_recorder_destroy(scratch);
    return id;
}

static int32_t view(fnx_ir *ir, const fnx_tensor *y, const int32_t *in, const int32_t *scalars) {
    switch (y->op) {
    case FNX_OP_reshape: return fnx_ir_reshape(ir, in[0], y->rank, y->size);
    case FNX_OP_expand: return fnx_ir_expand(ir, in[0], y->rank, y->size);
    case FNX_OP_permute: return fnx_ir_permute(ir, in[0], ((const fnx_attr_permute *)fnx_attr(y))->from);
    case FNX_OP_slice: return fnx_ir_slice(ir, in[0], y->size, ((const fnx_attr_slice *)fnx_attr(y))->step, scalars);
    default: break;
    }
    /* concat, pad, slice_assign: written in parts; scalars follow the operands */
    int32_t all[4 + FNX_MAX_RANK], *list = all;
    int n = y->n_operands + y->n_scalars;
    if (n > (int)(sizeof all / sizeof *all) && !(list = fnx_ir_alloc(ir, sizeof *list * (size_t)n))) return FNX_IR_NONE;
    memcpy(list, in, sizeof *in * y->n_operands);
    memcpy(list + y->n_operands, scalars, sizeof *scalars * y->n_scalars);
    int32_t id = compute(ir, y->op, y->dtype, y->rank, y->size, n, list, fnx_attr(y));
    if (id >= 0) ir->node[id].kind = FNX_IR_WRITE;
    return id;
}

static int32_t from_source(fnx_ir *ir, const fnx_tensor *y, const int32_t *scalars) {
    const int64_t *sizes = y->size;
    if (y->op == FNX_OP_fill) return fnx_ir_expand(ir, scalars[0], y->rank, sizes);
    if (y->op == FNX_OP_iota) {
        int32_t index = index_of(ir, y->rank, sizes, (int)((const fnx_attr_axis *)fnx_attr(y))->axis);
        return y->dtype == FNX_I64 ? index : elementwise(ir, FNX_OP_cast, y->dtype, y->rank, sizes, 1, &index);
    }
    int32_t in[3] = {scalars[0], scalars[1], index_of(ir, y->rank, sizes, -1)};
    return compute(ir, y->op, y->dtype, y->rank, sizes, 3, in, NULL);
}

/* Leading axes of size 1, which a batch is broadcast over. */
static int32_t with_rank(fnx_ir *ir, int32_t x, int rank) {
    int64_t sizes[FNX_MAX_RANK];
    if (x < 0) return x;
    int missing = rank - ir->node[x].rank;
    for (int d = 0; d < rank; d++) sizes[d] = d < missing ? 1 : ir->node[x].size[d - missing];
    return fnx_ir_reshape(ir, x, rank, sizes);
}

static int32_t convert(fnx_ir *ir, const source *s, fnx_tensor *y, int64_t first_arg) {
    const fnx_op_info *op = &fnx_ops[y->op];
    int32_t few[8], few_scalars[FNX_MAX_RANK], *in = few, *scalars = few_scalars;
    if (y->n_operands > 8 && !(in = fnx_ir_alloc(ir, sizeof *in * y->n_operands))) return FNX_IR_NONE;
    const uint64_t *bits = fnx_scalars(y);
    int of_operand = FNX_I64; /* dtype of scalars that are no operands: starts, or of the result */
    if (y->op == FNX_OP_fill || y->op == FNX_OP_pad) of_operand = y->dtype;
    if (y->op == FNX_OP_uniform || y->op == FNX_OP_normal) of_operand = FNX_U64;
    fnx_tensor *const *x = fnx_operands(y);
    for (int k = 0; k < y->n_operands; k++)
        if (x[k])
            of_operand = y->op == FNX_OP_where && k == 0 ? of_operand
                         : op->flags & FNX_OPF_ALIGNED   ? x[k]->dtype
                                                         : of_operand;
    for (int k = 0; k < y->n_scalars; k++) {
        unsigned klass = FNX_CLASS_ANY;
        if (op->flags & FNX_OPF_CLASS || s->constant)
            klass =
                fnx_class_of(fnx_dtype_is_float(of_operand) ? fnx_double_of_bits(bits[k]) : (double)(int64_t)bits[k]);
        scalars[k] = scalar(ir, of_operand, s->constant ? -1 : (int32_t)(first_arg + k), bits[k], klass);
    }
    for (int k = 0, next = 0; k < y->n_operands; k++)
        if ((in[k] = x[k] ? operand(s, x[k]) : scalars[next++]) < 0) {
            if (!ir->status) ir->status = fnx_error_set(FNX_E_INTERNAL, "%s: operand %d has no node", op->name, k);
            return FNX_IR_NONE;
        }
    if (ir->status) return FNX_IR_NONE;
    if (op->class == FNX_CLASS_VIEW) return view(ir, y, in, scalars);
    if (op->class == FNX_CLASS_SOURCE) return from_source(ir, y, scalars);
    if (op->class == FNX_CLASS_COMPOSITE && !(ir->whole && ir->whole(ir->user, y))) return decompose(ir, y, in);
    if (op->flags & FNX_OPF_ALIGNED) return elementwise(ir, y->op, y->dtype, y->rank, y->size, y->n_operands, in);
    const void *attr = fnx_attr(y);
    if (s->constant && op->attr_bytes) { /* the scratch record goes before the ir */
        void *copy = fnx_ir_alloc(ir, op->attr_bytes);
        if (!copy) return FNX_IR_NONE;
        attr = memcpy(copy, attr, op->attr_bytes);
    }
    for (int k = 0; k < y->n_operands; k++) { /* an anchor reads memory: what is only a number gets some */
        int32_t root = fnx_ir_root(ir, in[k]);
        if (root >= 0 && (ir->node[root].kind == FNX_IR_SCALAR || ir->node[root].kind == FNX_IR_INDEX))
            in[k] = fnx_ir_copy(ir, in[k]);
    }
    for (int k = 0; k < y->n_operands && y->op == FNX_OP_matmul; k++) in[k] = with_rank(ir, in[k], y->rank);
    return compute(ir, y->op, y->dtype, y->rank, y->size, y->n_operands, in, attr);
}

fnx_status fnx_ir_build(fnx_ir *ir, fnx_recorder *r) {
    ir->of_record = malloc(sizeof *ir->of_record * (size_t)(r->n + 1));
    int32_t *of_input = fnx_ir_alloc(ir, sizeof *of_input * (size_t)(r->n_inputs + 1));
    if (!ir->of_record || !of_input) return fail(ir), ir->status;
    for (int64_t j = 0; j < r->n_inputs && !ir->status; j++) {
        const fnx_tensor *t = r->inputs[j];
        int32_t id = of_input[j] = fnx_ir_node(ir, FNX_IR_INPUT, t->dtype, t->rank, t->size);
        if (id >= 0) ir->node[id].input = (int32_t)j, ir->node[id].layout = t->layout, ir->node[id].stored = true;
    }
    source s = {r, ir->of_record, of_input, false};
    int64_t args = 0;
    for (int64_t i = 0; i < r->n && !ir->status; i++) {
        fnx_tensor *y = r->pending[i];
        ir->of_record[i] = r->mark[i] & FNX_M_NEEDED ? convert(ir, &s, y, args) : FNX_IR_NONE;
        args += y->n_scalars;
    }
    return ir->status;
}
