/* The engine of anchor groups: holds a node against the row of its op, makes views of a launch, calls the row. */
#include "kernels/kernel.h"

#include <string.h>

#define MASK(dtype) (UINT64_C(1) << (dtype))
#define FLOATS (MASK(FNX_F32) | MASK(FNX_F64))
#define NUMBERS (FLOATS | MASK(FNX_I32) | MASK(FNX_I64) | MASK(FNX_U8))
#define ANY (NUMBERS | MASK(FNX_BOOL))

/* ---- the table of ops -------------------------------------------------------------------------------------------- */

#define DEFINE_RUN(name) \
    static void run_##name(const cpu_call *c) { c->loops->name(c); }
DEFINE_RUN(reduce)
DEFINE_RUN(argmax)
DEFINE_RUN(max_pool)
DEFINE_RUN(max_pool_grad)
DEFINE_RUN(max_pool_pick)
DEFINE_RUN(avg_pool)
DEFINE_RUN(avg_pool_grad)
DEFINE_RUN(gather)
DEFINE_RUN(scatter_add)

static uint64_t max_pool_grad_workspace(const cpu_call *c) { /* dy and where with channels last */
    return (uint64_t)(cpu_view_bytes(&c->in[0]) + cpu_view_bytes(&c->in[1]));
}

static const cpu_kernel_row rows[] = {
    {FNX_OP_sum, NUMBERS, "T>T", run_reduce, NULL},
    {FNX_OP_max, NUMBERS, "T>T", run_reduce, NULL},
    {FNX_OP_min, NUMBERS, "T>T", run_reduce, NULL},
    {FNX_OP_argmax, NUMBERS, "T>L", run_argmax, NULL},
    {FNX_OP_matmul, NUMBERS, "TT>T", cpu_matmul, cpu_matmul_workspace},
    {FNX_OP_conv, FLOATS, "TT>T", cpu_conv, cpu_conv_workspace},
    {FNX_OP_conv_grad_x, FLOATS, "TT>T", cpu_conv, cpu_conv_workspace},
    {FNX_OP_conv_grad_w, FLOATS, "TT>T", cpu_conv, cpu_conv_workspace},
    {FNX_OP_max_pool, NUMBERS, "T>Tw", run_max_pool, NULL},
    {FNX_OP_max_pool_grad, NUMBERS, "TW>T", run_max_pool_grad, max_pool_grad_workspace},
    {FNX_OP_max_pool_pick, NUMBERS, "TW>T", run_max_pool_pick, NULL},
    {FNX_OP_avg_pool, FLOATS, "T>T", run_avg_pool, NULL},
    {FNX_OP_avg_pool_grad, FLOATS, "T>T", run_avg_pool_grad, NULL},
    {FNX_OP_gather, ANY, "TX>T", run_gather, NULL},
    {FNX_OP_scatter_add, NUMBERS, "TXT>T", run_scatter_add, NULL},
};

static const cpu_kernel_row *find_row(uint16_t op) {
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op) return &rows[i];
    return NULL;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const char *check_window(uint32_t spatial, const int32_t *stride, const int32_t *other, const int32_t *low,
                                const int32_t *high) {
    if (spatial < 1 || spatial > 3) return "windows run over 1, 2 or 3 axes";
    for (uint32_t d = 0; d < spatial; d++)
        if (stride[d] < 1 || other[d] < 1 || low[d] < 0 || high[d] < 0) return "a stride, size or padding out of range";
    return NULL;
}

/* NULL: we run these. */
static const char *check_attr(uint16_t op, const cpu_attr *a, uint32_t rank) {
    switch (op) {
    case FNX_OP_sum:
    case FNX_OP_max:
    case FNX_OP_min: return a->reduce.reserved || a->reduce.axes >> rank ? "unknown axes of a reduction" : NULL;
    case FNX_OP_argmax:
        if (a->reduce.reserved || a->reduce.axes >> rank) return "unknown axes of a reduction";
        return __builtin_popcount(a->reduce.axes) != 1 ? "argmax runs over exactly one axis" : NULL;
    case FNX_OP_gather:
    case FNX_OP_scatter_add: return a->axis.reserved || a->axis.axis >= rank ? "no such axis" : NULL;
    case FNX_OP_matmul: /* a precision allows, it does not demand */
        return a->matmul.reserved || a->matmul.precision > 1 ? "unknown attribute of matmul" : NULL;
    case FNX_OP_conv:
    case FNX_OP_conv_grad_x:
    case FNX_OP_conv_grad_w:
        if (a->conv.groups < 1) return "conv needs at least one group";
        return check_window(a->conv.spatial, a->conv.stride, a->conv.dilation, a->conv.pad_low, a->conv.pad_high);
    default:
        if (a->pool.flags & ~(uint32_t)FNX_POOL_EXCLUDE_PAD) return "unknown flag of pooling";
        return check_window(a->pool.spatial, a->pool.stride, a->pool.window, a->pool.pad_low, a->pool.pad_high);
    }
}

/* The rank that the op's attributes ask of all operands; 0: any. */
static uint32_t wanted_rank(uint16_t op, const cpu_attr *a) {
    switch (op) {
    case FNX_OP_conv:
    case FNX_OP_conv_grad_x:
    case FNX_OP_conv_grad_w: return a->conv.spatial + 2;
    case FNX_OP_max_pool:
    case FNX_OP_max_pool_grad:
    case FNX_OP_max_pool_pick:
    case FNX_OP_avg_pool:
    case FNX_OP_avg_pool_grad: return a->pool.spatial + 2;
    default: return 0;
    }
}

/* u8 where it can number all elements of a window, else i32. */
static uint16_t where_dtype(const fnx_attr_pool *a) {
    int64_t elements = 1;
    for (uint32_t d = 0; d < a->spatial && elements <= 256; d++) elements *= a->window[d];
    return elements <= 256 ? FNX_U8 : FNX_I32;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

static uint64_t letter_dtypes(const cpu_kernel *k, char letter) {
    switch (letter) {
    case 'L': return MASK(FNX_I64);
    case 'X': return MASK(FNX_I32) | MASK(FNX_I64);
    case 'W':
    case 'w': return MASK(where_dtype(&k->attr.pool));
    default: return k->row->dtypes;
    }
}

static int32_t read_value(cpu_kernel *k, const fnx_group *g, uint32_t at, uint32_t number, char letter, bool is_result,
                          fnx_decline *why) {
    const fnx_value *v = fnx_group_value(g, number);
    const uint16_t first = fnx_group_value(g, fnx_node_operand(g, fnx_group_node(g, 0), 0))->dtype;
    const uint32_t rank = wanted_rank(k->row->op, &k->attr);
    if (v->kind != (is_result ? FNX_VALUE_OUTPUT : FNX_VALUE_INPUT))
        return cpu_decline(why, FNX_DECLINE_PLACE, 0, number, "this op runs alone, on values in memory");
    if (v->dtype >= 64 || !(letter_dtypes(k, letter) & MASK(v->dtype)) || (letter == 'T' && v->dtype != first))
        return cpu_decline(why, FNX_DECLINE_DTYPE, 0, number, "not these dtypes");
    if (v->rank > FNX_MAX_RANK || (rank && v->rank != rank) || (k->row->op == FNX_OP_matmul && v->rank < 2))
        return cpu_decline(why, FNX_DECLINE_LAYOUT, 0, number, "not this rank");
    k->value[at] = *v;
    return FNX_OK;
}

int32_t cpu_kernel_read(cpu_device *device, const fnx_group *g, cpu_kernel *k, fnx_decline *why) {
    const fnx_node *n = fnx_group_node(g, 0);
    const char *text, *letter;
    uint32_t i = 0, results = 0;
    memset(k, 0, sizeof *k);
    k->device = device;
    if (g->n_nodes != 1) return cpu_decline(why, FNX_DECLINE_ANCHOR, FNX_NONE, FNX_NONE, "an anchor runs alone here");
    k->row = find_row(n->op);
    if (!k->row) return cpu_decline(why, FNX_DECLINE_OP, 0, FNX_NONE, "no kernel for this op");
    if (n->n_operands == 0 || fnx_node_attrs(g, n, &k->attr, fnx_op_attr_bytes(n->op)))
        return cpu_decline(why, FNX_DECLINE_ATTR, 0, FNX_NONE, "an attribute newer than this plugin");
    text = check_attr(n->op, &k->attr, fnx_group_value(g, fnx_node_operand(g, n, 0))->rank);
    if (text) return cpu_decline(why, FNX_DECLINE_ATTR, 0, FNX_NONE, text);
    for (letter = k->row->signature; *letter != '>'; letter++, i++) {
        if (i >= n->n_operands) return cpu_decline(why, FNX_DECLINE_OP, 0, FNX_NONE, "too few operands");
        const int32_t code = read_value(k, g, i, fnx_node_operand(g, n, i), *letter, false, why);
        if (code) return code;
    }
    for (letter++; *letter && (results < n->n_results || *letter != 'w'); letter++, results++) {
        if (results >= n->n_results) return cpu_decline(why, FNX_DECLINE_OP, 0, FNX_NONE, "too few results");
        const uint32_t at = CPU_KERNEL_OPERANDS + results;
        const int32_t code = read_value(k, g, at, fnx_node_result(g, n, results), *letter, true, why);
        if (code) return code;
    }
    if (i != n->n_operands || results != n->n_results)
        return cpu_decline(why, FNX_DECLINE_OP, 0, FNX_NONE, "too many operands or results");
    k->n_operands = n->n_operands;
    k->n_results = n->n_results;
    return FNX_OK;
}

static int32_t prepare(cpu_device *device, const fnx_group *g, void **out_state, fnx_decline *why) {
    cpu_kernel read, *k;
    const int32_t code = cpu_kernel_read(device, g, &read, why);
    if (code) return code;
    k = cpu_host->alloc(sizeof *k, 64);
    if (!k) return cpu_host->error(FNX_E_NO_MEMORY, "cpu: no memory for a prepared group");
    *k = read;
    *out_state = k;
    return FNX_OK;
}

static void release(void *state) {
    cpu_kernel *k = state;
    if (!k) return;
    if (k->row->run == cpu_conv) cpu_conv_release(k);
    cpu_host->free(k);
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

static cpu_view view_of(const fnx_value *v, const fnx_launch *l) {
    cpu_view view = {.dtype = v->dtype, .rank = v->rank};
    if (l->bindings) view.base = (char *)(uintptr_t)l->bindings[v->index].address;
    for (uint32_t d = 0; d < v->rank; d++) {
        view.size[d] = l->sizes[v->size[d]];
        view.stride[d] = view.size[d] == 1 ? 0 : l->strides[v->first_stride + d];
    }
    return view;
}

cpu_call cpu_kernel_call(cpu_kernel *k, const fnx_launch *l) {
#ifdef __x86_64__
    static const cpu_loops *const levels[CPU_ISAS] = {&cpu_loops_base, &cpu_loops_avx2, &cpu_loops_avx512};
#else
    static const cpu_loops *const levels[CPU_ISAS] = {&cpu_loops_base};
#endif
    cpu_call c = {.device = k->device,
                  .loops = levels[k->device->isa],
                  .kernel = k,
                  .op = k->row->op,
                  .n_results = k->n_results,
                  .attr = &k->attr,
                  .workspace = (char *)(uintptr_t)l->workspace.address};
    for (uint32_t i = 0; i < k->n_operands; i++) c.in[i] = view_of(&k->value[i], l);
    for (uint32_t i = 0; i < k->n_results; i++) c.out[i] = view_of(&k->value[CPU_KERNEL_OPERANDS + i], l);
    return c;
}

static uint64_t workspace(const void *state, const fnx_launch *l) {
    cpu_kernel *k = (cpu_kernel *)(uintptr_t)state;
    const cpu_call c = cpu_kernel_call(k, l); /* leaves the cache alone: the executor may be filling it */
    return k->row->workspace ? k->row->workspace(&c) : 0;
}

static void run(void *state, const cpu_task *t, const fnx_launch *l) {
    cpu_kernel *k = state;
    cpu_call c = cpu_kernel_call(k, l);
    c.task = t;
    k->row->run(&c);
}

const cpu_engine cpu_kernels = {prepare, workspace, run, release};
