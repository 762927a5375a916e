/* A strip-mined vector machine: elementwise groups without a compiler.
 *
 * prepare turns nodes into instructions over registers. launch walks the domain in strips of at most STRIP elements
 * along the last axis; each instruction is one loop over the strip, whose registers stay in the first-level cache.
 * Values that lie packed in memory are read and written in place of a register. Short rows are taken several at once:
 * then a strip is a block of rows.
 *
 * Two programs are made of a group. In the row program a value that does not vary along the last axis is a scalar of
 * the strip; in the block program it is a vector, since a strip spans rows. What never varies is a scalar in both. */
#include "cpu.h"
#include "vm_loops.h"

#include <math.h>
#include <stdlib.h>

enum { STRIP = 1024, REGISTER_BYTES = STRIP * 8, MAX_VALUES = 192, MAX_CODE = 64, SHORT_ROW = 96 };
enum { LAUNCH_LEVEL, ROW_LEVEL, VECTOR_LEVEL };

typedef struct vm_value {
    uint16_t dtype;
    uint8_t kind, level[2]; /* per program */
    uint8_t conflict;       /* output in the slot of an input that is read after its first write: through a register */
    uint8_t item;           /* bytes */
    int16_t reg[2];         /* register, or -1 */
    uint32_t index, first_stride;
} vm_value;

typedef struct vm_code {
    vm_fn fn;
    uint8_t level, divides; /* divides: integers, whose divisor may be 0 */
    uint16_t d, a, b, c, node;
} vm_code;

typedef struct vm_program {
    uint32_t n_code, n_registers;
    vm_code code[MAX_CODE];
} vm_program;

typedef struct vm_state {
    uint32_t rank, n_values;
    uint16_t domain[FNX_MAX_RANK];
    uint32_t n_inputs, n_outputs;
    uint16_t input[MAX_VALUES], output[MAX_VALUES];
    vm_program program[2]; /* row, block */
    double ns;             /* estimate per element */
    vm_value v[MAX_VALUES];
    uint64_t constant[MAX_VALUES];
} vm_state;

static uint32_t item_bytes(uint16_t dtype) {
    switch (dtype) {
    case FNX_BOOL:
    case FNX_U8: return 1;
    case FNX_I32:
    case FNX_F32: return 4;
    case FNX_I64:
    case FNX_F64: return 8;
    default: return 0;
    }
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

static vm_find finder(const cpu_device *d) {
#if defined(__x86_64__)
    if (d->isa == CPU_ISA_AVX512) return vm_find_avx512;
    if (d->isa == CPU_ISA_AVX2) return vm_find_avx2;
#endif
    (void)d;
    return vm_find_base;
}

static int varies(const fnx_value *v, uint32_t from, uint32_t to) {
    for (uint32_t d = from; d < to && d < v->rank; d++)
        if (v->size[d] != 0 && v->stride_class[d] != FNX_STRIDE_ZERO) return 1;
    return 0;
}

static int32_t read_values(vm_state *s, const fnx_group *g, fnx_decline *why) {
    if (g->n_values > MAX_VALUES)
        return cpu_decline(why, FNX_DECLINE_LIMIT, FNX_NONE, FNX_NONE, "more values than the vector machine takes");
    for (uint32_t i = 0; i < g->n_values; i++) {
        const fnx_value *v = fnx_group_value(g, i);
        vm_value *m = &s->v[i];
        *m = (vm_value){.dtype = v->dtype,
                        .kind = v->kind,
                        .item = (uint8_t)item_bytes(v->dtype),
                        .reg = {-1, -1},
                        .index = v->index,
                        .first_stride = v->first_stride};
        bool scalar = v->kind == FNX_VALUE_SCALAR || v->kind == FNX_VALUE_CONST;
        if (!m->item && !(scalar && v->dtype == FNX_U64))
            return cpu_decline(why, FNX_DECLINE_DTYPE, FNX_NONE, i, "a dtype that the vector machine does not know");
        if (!scalar && v->rank != g->rank)
            return cpu_decline(why, FNX_DECLINE_LAYOUT, FNX_NONE, i, "a value of another rank");
        if (scalar) m->item = 8;
        /* Such a result would be stored once per strip: over an input that the next strip reads, or by two threads. */
        for (uint32_t d = 0; d < g->rank && v->kind == FNX_VALUE_OUTPUT; d++)
            if (v->size[d] != g->domain[d])
                return cpu_decline(why, FNX_DECLINE_LAYOUT, FNX_NONE, i, "a result smaller than the domain");
        bool temp = v->kind == FNX_VALUE_TEMP || v->kind == FNX_VALUE_OUTPUT;
        bool inner = !scalar && (temp || varies(v, g->rank - 1, g->rank)),
             outer = !scalar && (temp || varies(v, 0, g->rank - 1));
        m->level[0] = inner ? VECTOR_LEVEL : outer ? ROW_LEVEL : LAUNCH_LEVEL;
        m->level[1] = inner || outer ? VECTOR_LEVEL : LAUNCH_LEVEL;
        if (v->kind == FNX_VALUE_INPUT || v->kind == FNX_VALUE_INDEX) s->input[s->n_inputs++] = (uint16_t)i;
        if (v->kind == FNX_VALUE_OUTPUT) s->output[s->n_outputs++] = (uint16_t)i;
        if (v->kind == FNX_VALUE_CONST) memcpy(&s->constant[i], fnx_group_const(g, v->index), 8);
    }
    return FNX_OK;
}

/* The group's results are vectors wherever they are stored; temporaries are as their operands are. */
static void lower_levels(vm_state *s, const fnx_group *g) {
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        const fnx_node *n = fnx_group_node(g, k);
        vm_value *y = &s->v[fnx_node_result(g, n, 0)];
        if (y->kind != FNX_VALUE_TEMP) continue;
        for (int p = 0; p < 2; p++) {
            uint8_t level = LAUNCH_LEVEL;
            for (uint32_t i = 0; i < n->n_operands; i++)
                if (s->v[fnx_node_operand(g, n, i)].level[p] > level) level = s->v[fnx_node_operand(g, n, i)].level[p];
            y->level[p] = level;
        }
    }
}

static double cost_of(uint16_t op) {
    switch (op) {
    case FNX_OP_exp:
    case FNX_OP_log:
    case FNX_OP_tanh:
    case FNX_OP_sigmoid:
    case FNX_OP_erf: return 0.5;
    case FNX_OP_pow:
    case FNX_OP_normal: return 15;
    case FNX_OP_uniform: return 4;
    default: return 0.1;
    }
}

/* The instruction for a node; a scalar operand for which there is no form is named in *fill and made a vector. */
static int32_t instruction(vm_state *s, const fnx_group *g, uint32_t node, int p, vm_find find, vm_code *out,
                           uint32_t *fill) {
    const fnx_node *n = fnx_group_node(g, node);
    uint32_t x[3] = {0, 0, 0}, y = fnx_node_result(g, n, 0);
    unsigned scalars = 0;
    *fill = FNX_NONE;
    for (uint32_t k = 0; k < n->n_operands && k < 3; k++) x[k] = fnx_node_operand(g, n, k);
    uint8_t level = s->v[y].level[p];
    for (uint32_t k = 0; k < n->n_operands && k < 3; k++) scalars |= (unsigned)(s->v[x[k]].level[p] < level) << k;
    uint16_t dtype = s->v[n->op == FNX_OP_where ? x[1] : x[0]].dtype;
    *out = (vm_code){.level = level,
                     .d = (uint16_t)y,
                     .a = (uint16_t)x[0],
                     .b = (uint16_t)x[1],
                     .c = (uint16_t)x[2],
                     .node = (uint16_t)node};
    bool random = n->op == FNX_OP_uniform || n->op == FNX_OP_normal;
    if (random) scalars |= 3; /* seed and counter are scalars at every level */
    out->fn = find(n->op, dtype, s->v[y].dtype, scalars);
    out->divides = n->op == FNX_OP_div && dtype != FNX_F32 && dtype != FNX_F64;
    for (uint32_t k = 0; k < n->n_operands && !out->fn; k++)
        if (scalars >> k & 1 && find(n->op, dtype, s->v[y].dtype, scalars & ~(1u << k))) *fill = k;
    if (!out->fn && *fill == FNX_NONE && scalars == 7u >> (3 - n->n_operands) && !random) *fill = 0;
    return out->fn || *fill != FNX_NONE ? FNX_OK : FNX_E_DECLINED;
}

/* Registers by linear scan: a temporary's is free again after its last use. Inputs that may have to be packed and
 * outputs that may have to be unpacked keep one of their own. */
static void give_registers(vm_state *s, vm_program *q, int p) {
    uint16_t last[MAX_VALUES] = {0};
    int16_t spare[MAX_CODE + 2];
    uint32_t n_spare = 0;
    for (uint32_t i = 0; i < q->n_code; i++) last[q->code[i].a] = last[q->code[i].b] = last[q->code[i].c] = (uint16_t)i;
    for (uint32_t k = 0; k < s->n_inputs; k++)
        if (s->v[s->input[k]].level[p] == VECTOR_LEVEL) s->v[s->input[k]].reg[p] = (int16_t)q->n_registers++;
    for (uint32_t k = 0; k < s->n_outputs; k++) s->v[s->output[k]].reg[p] = (int16_t)q->n_registers++;
    for (uint32_t i = 0; i < q->n_code; i++) {
        vm_code *c = &q->code[i];
        vm_value *d = &s->v[c->d];
        uint16_t used[3] = {c->a, c->b, c->c};
        if (d->level[p] == VECTOR_LEVEL && d->reg[p] < 0)
            d->reg[p] = n_spare ? spare[--n_spare] : (int16_t)q->n_registers++;
        for (int k = 0; k < 3; k++) {
            vm_value *m = &s->v[used[k]];
            bool seen = (k > 0 && used[k] == used[0]) || (k > 1 && used[k] == used[1]);
            if (!seen && m->kind == FNX_VALUE_TEMP && m->level[p] == VECTOR_LEVEL && last[used[k]] == i &&
                m->reg[p] >= 0 && used[k] != c->d)
                spare[n_spare++] = m->reg[p];
        }
    }
}

/* mul, then add of the product that nobody else wants: one pass instead of two. */
static void fuse_muladd(vm_state *s, vm_program *q, int p, vm_find find, const fnx_group *g) {
    uint16_t uses[MAX_VALUES] = {0};
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_nodes; k++)
        for (uint32_t i = 0; i < fnx_group_node(g, k)->n_operands; i++)
            uses[fnx_node_operand(g, fnx_group_node(g, k), i)]++;
    for (uint32_t i = 0; i < q->n_code; i++) {
        vm_code c = q->code[i], *m = NULL;
        uint16_t op = fnx_group_node(g, c.node)->op;
        for (uint32_t k = n; k-- > 0 && !m && op == FNX_OP_add && c.level == VECTOR_LEVEL;) {
            vm_code *x = &q->code[k];
            bool product = x->level == VECTOR_LEVEL && fnx_group_node(g, x->node)->op == FNX_OP_mul &&
                           (x->d == c.a) != (x->d == c.b);
            if (product && uses[x->d] == 1 && s->v[x->d].kind == FNX_VALUE_TEMP) m = x;
        }
        vm_fn fn = NULL;
        vm_code fused = c;
        if (m) {
            bool swap = s->v[m->a].level[p] < VECTOR_LEVEL; /* the scalar factor comes second */
            fused.a = swap ? m->b : m->a, fused.b = swap ? m->a : m->b, fused.c = c.a == m->d ? c.b : c.a;
            unsigned scalars =
                (s->v[fused.b].level[p] < VECTOR_LEVEL ? 2u : 0u) | (s->v[fused.c].level[p] < VECTOR_LEVEL ? 4u : 0u);
            fn = find(VM_MULADD, s->v[c.d].dtype, s->v[c.d].dtype, scalars);
        }
        if (fn) {
            fused.fn = fn;
            uint32_t at = (uint32_t)(m - q->code);
            memmove(m, m + 1, (n - at - 1) * sizeof *m);
            q->code[n - 1] = fused;
        } else q->code[n++] = c;
    }
    q->n_code = n;
}

static int32_t build_program(vm_state *s, const fnx_group *g, int p, vm_find find, fnx_decline *why) {
    vm_program *q = &s->program[p];
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        vm_code c;
        uint32_t fill;
        if (fnx_group_node(g, k)->n_operands > 3 || fnx_group_node(g, k)->n_results != 1 ||
            instruction(s, g, k, p, find, &c, &fill))
            return cpu_decline(why, FNX_DECLINE_OP, k, FNX_NONE,
                               "an op or dtype that the vector machine does not have");
        while (!c.fn) { /* make a vector of the scalar operand: a value of its own */
            if (s->n_values == MAX_VALUES || q->n_code + 1 >= MAX_CODE)
                return cpu_decline(why, FNX_DECLINE_LIMIT, k, FNX_NONE, "too many instructions");
            uint32_t x = fnx_node_operand(g, fnx_group_node(g, k), fill), v = s->n_values++;
            s->v[v] = (vm_value){.dtype = s->v[x].dtype,
                                 .kind = FNX_VALUE_TEMP,
                                 .item = (uint8_t)item_bytes(s->v[x].dtype),
                                 .level = {c.level, c.level},
                                 .reg = {-1, -1}};
            q->code[q->n_code++] = (vm_code){.fn = find(FNX_OP_copy, s->v[x].dtype, s->v[x].dtype, 1),
                                             .level = c.level,
                                             .d = (uint16_t)v,
                                             .a = (uint16_t)x,
                                             .b = (uint16_t)x,
                                             .c = (uint16_t)x,
                                             .node = (uint16_t)k};
            uint16_t *at = fill == 0 ? &c.a : fill == 1 ? &c.b : &c.c;
            *at = (uint16_t)v;
            const fnx_node *n = fnx_group_node(g, k);
            unsigned scalars = 0;
            uint16_t used[3] = {c.a, c.b, c.c};
            for (uint32_t i = 0; i < n->n_operands; i++) scalars |= (unsigned)(s->v[used[i]].level[p] < c.level) << i;
            c.fn = find(n->op, s->v[n->op == FNX_OP_where ? c.b : c.a].dtype, s->v[c.d].dtype, scalars);
            for (uint32_t i = 0; i < n->n_operands && !c.fn; i++)
                if (scalars >> i & 1) fill = i;
            if (!c.fn && !scalars)
                return cpu_decline(why, FNX_DECLINE_DTYPE, k, FNX_NONE,
                                   "an op or dtype that the vector machine does not have");
        }
        if (q->n_code == MAX_CODE) return cpu_decline(why, FNX_DECLINE_LIMIT, k, FNX_NONE, "too many instructions");
        q->code[q->n_code++] = c;
    }
    fuse_muladd(s, q, p, find, g);
    give_registers(s, q, p);
    return FNX_OK;
}

/* An output over an input's memory is written through a register if the input is read by a later instruction than the
 * one that makes the output. */
static void mark_conflicts(vm_state *s, const fnx_group *g) {
    for (uint32_t i = 0; i < s->n_outputs; i++)
        for (uint32_t k = 0; k < s->n_inputs; k++) {
            const fnx_value *out = fnx_group_value(g, s->output[i]), *in = fnx_group_value(g, s->input[k]);
            if (in->kind != FNX_VALUE_INPUT || in->slot != out->slot) continue;
            for (int p = 0; p < 2; p++) {
                bool made = false;
                for (uint32_t j = 0; j < s->program[p].n_code; j++) {
                    const vm_code *c = &s->program[p].code[j];
                    if (made && (c->a == s->input[k] || c->b == s->input[k] || c->c == s->input[k]))
                        s->v[s->output[i]].conflict = 1;
                    made |= c->d == s->output[i];
                }
            }
        }
}

static int32_t prepare(cpu_device *d, const fnx_group *g, void **out_state, fnx_decline *why) {
    vm_state *s = calloc(1, sizeof *s);
    if (!s) return cpu_host->error(FNX_E_NO_MEMORY, "no host memory for a group");
    s->rank = g->rank, s->n_values = g->n_values;
    memcpy(s->domain, g->domain, sizeof s->domain);
    int32_t code =
        g->rank ? read_values(s, g, why) : cpu_decline(why, FNX_DECLINE_LAYOUT, FNX_NONE, FNX_NONE, "rank 0");
    if (!code) lower_levels(s, g);
    for (int p = 0; p < 2 && !code; p++) code = build_program(s, g, p, finder(d), why);
    if (!code) mark_conflicts(s, g);
    for (uint32_t k = 0; k < g->n_nodes; k++) s->ns += cost_of(fnx_group_node(g, k)->op);
    s->ns += 0.2 * (s->n_inputs + s->n_outputs);
    if (code) free(s);
    else *out_state = s;
    return code;
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

typedef struct vm_run { /* of one thread */
    const vm_state *s;
    const cpu_task *t;
    const fnx_launch *l;
    int p; /* program */
    char *registers;
    void *at[MAX_VALUES];        /* where a value's current strip is */
    uint64_t scalar[MAX_VALUES]; /* values below vector level */
    int64_t index[FNX_MAX_RANK];
    bool packed[MAX_VALUES]; /* block program: the register already holds the block of a value that repeats per row */
} vm_run;

static char *reg(const vm_run *r, const vm_value *m) { return r->registers + (size_t)m->reg[r->p] * REGISTER_BYTES; }

static const int64_t *strides(const vm_run *r, const vm_value *m) { return r->l->strides + m->first_stride; }

static int64_t offset(const vm_run *r, const vm_value *m) {
    const int64_t *s = strides(r, m);
    int64_t o = 0;
    for (uint32_t d = 0; d < r->s->rank; d++) o += r->index[d] * s[d];
    return o;
}

static void gather_strided(char *to, const char *from, int64_t n, int64_t stride, uint32_t item) {
    switch (item) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)to)[i] = ((const uint32_t *)(const void *)from)[i * stride];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)to)[i] = ((const uint64_t *)(const void *)from)[i * stride];
    }
}

static void scatter_strided(char *to, const char *from, int64_t n, int64_t stride, uint32_t item) {
    switch (item) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)to)[i * stride] = ((const uint32_t *)(const void *)from)[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)to)[i * stride] = ((const uint64_t *)(const void *)from)[i];
    }
}

/* Points every stored vector at `rows` x `n` elements from r->index on; packs what is not packed. */
static void bind(vm_run *r, int64_t rows, int64_t n) {
    const vm_state *s = r->s;
    uint32_t in = s->rank - 1, up = s->rank >= 2 ? s->rank - 2 : 0;
    for (uint32_t k = 0; k < s->n_inputs; k++) {
        const vm_value *m = &s->v[s->input[k]];
        void **at = &r->at[s->input[k]];
        if (m->level[r->p] != VECTOR_LEVEL) continue;
        const int64_t *st = strides(r, m);
        if (m->kind == FNX_VALUE_INDEX) {
            int64_t *to = (int64_t *)(void *)reg(r, m), base = offset(r, m);
            for (int64_t j = 0; j < rows; j++)
                for (int64_t i = 0; i < n; i++) to[j * n + i] = base + j * (rows > 1 ? st[up] : 0) + i * st[in];
            *at = to;
            continue;
        }
        if (r->packed[s->input[k]]) continue;
        const char *from = (const char *)(uintptr_t)r->l->bindings[m->index].address + offset(r, m) * m->item;
        if ((st[in] == 1 || n == 1) && (rows == 1 || st[up] == n)) {
            *at = (void *)(uintptr_t)from;
            continue;
        }
        char *to = reg(r, m);
        *at = to;
        for (int64_t j = 0; j < rows; j++)
            if (st[in] == 1)
                memcpy(to + j * n * m->item, from + (rows > 1 ? j * st[up] : 0) * m->item, (size_t)n * m->item);
            else gather_strided(to + j * n * m->item, from + (rows > 1 ? j * st[up] : 0) * m->item, n, st[in], m->item);
        bool repeats = rows > 1 && st[up] == 0;
        for (uint32_t d = 0; d < up && repeats; d++) repeats = st[d] == 0 || r->l->sizes[s->domain[d]] == 1;
        r->packed[s->input[k]] = repeats;
    }
    for (uint32_t k = 0; k < s->n_outputs; k++) {
        const vm_value *m = &s->v[s->output[k]];
        const int64_t *st = strides(r, m);
        bool direct = !m->conflict && (st[in] == 1 || n == 1) && (rows == 1 || st[up] == n);
        r->at[s->output[k]] =
            direct ? (char *)(uintptr_t)r->l->bindings[m->index].address + offset(r, m) * m->item : reg(r, m);
    }
}

static void store(const vm_run *r, int64_t rows, int64_t n) {
    const vm_state *s = r->s;
    uint32_t in = s->rank - 1, up = s->rank >= 2 ? s->rank - 2 : 0;
    for (uint32_t k = 0; k < s->n_outputs; k++) {
        const vm_value *m = &s->v[s->output[k]];
        const char *from = r->at[s->output[k]];
        if (from != reg(r, m)) continue;
        const int64_t *st = strides(r, m);
        char *to = (char *)(uintptr_t)r->l->bindings[m->index].address + offset(r, m) * m->item;
        for (int64_t j = 0; j < rows; j++)
            if (st[in] == 1)
                memcpy(to + (rows > 1 ? j * st[up] : 0) * m->item, from + j * n * m->item, (size_t)n * m->item);
            else
                scatter_strided(to + (rows > 1 ? j * st[up] : 0) * m->item, from + j * n * m->item, n, st[in], m->item);
    }
}

/* Integer division: the first zero divisor is reported, its element reads 0. */
static void check_divisors(const vm_run *r, const vm_code *c, int64_t n) {
    const vm_value *b = &r->s->v[c->b];
    const char *p = r->at[c->b];
    if (b->level[r->p] < c->level) n = 1;
    for (int64_t i = 0; i < n; i++, p += b->item == 8 && b->dtype != FNX_I64 ? item_bytes(b->dtype) : b->item) {
        int64_t v = b->dtype == FNX_I64   ? *(const int64_t *)(const void *)p
                    : b->dtype == FNX_I32 ? *(const int32_t *)(const void *)p
                                          : *(const uint8_t *)p;
        if (v == 0) {
            cpu_refuse(r->t, FNX_E_INDEX, c->node, 0, 0);
            return;
        }
    }
}

static void run_code(vm_run *r, uint8_t level, int64_t n) {
    const vm_program *q = &r->s->program[r->p];
    for (const vm_code *c = q->code, *end = c + q->n_code; c < end; c++) {
        if (c->level != level) continue;
        if (c->divides) check_divisors(r, c, n);
        c->fn(r->at[c->d], r->at[c->a], r->at[c->b], r->at[c->c], n);
    }
}

static void load_scalars(vm_run *r, uint8_t level) {
    const vm_state *s = r->s;
    for (uint32_t k = 0; k < s->n_inputs; k++) {
        const vm_value *m = &s->v[s->input[k]];
        if (m->level[r->p] != level) continue;
        if (m->kind == FNX_VALUE_INDEX) r->scalar[s->input[k]] = (uint64_t)offset(r, m);
        else
            memcpy(&r->scalar[s->input[k]],
                   (const char *)(uintptr_t)r->l->bindings[m->index].address + offset(r, m) * m->item, m->item);
    }
}

static void begin(vm_run *r, const vm_state *s, const cpu_task *t, const fnx_launch *l, int p, char *registers) {
    r->s = s, r->t = t, r->l = l, r->p = p, r->registers = registers;
    memset(r->index, 0, sizeof r->index);
    memset(r->packed, 0, s->n_values);
    for (uint32_t i = 0; i < s->n_values; i++) {
        const vm_value *m = &s->v[i];
        r->at[i] = m->level[p] < VECTOR_LEVEL ? (void *)&r->scalar[i] : m->reg[p] >= 0 ? (void *)reg(r, m) : NULL;
        if (m->kind == FNX_VALUE_CONST) r->scalar[i] = s->constant[i];
        else if (m->kind == FNX_VALUE_SCALAR) memcpy(&r->scalar[i], &l->scalars[m->index], 8);
    }
    load_scalars(r, LAUNCH_LEVEL);
    run_code(r, LAUNCH_LEVEL, 1);
}

/* Strips number `from` to `to` of the domain; `block` rows of `n` elements each, or pieces of one row. */
static void strips(vm_run *r, int64_t from, int64_t to, int64_t rows, int64_t n, int64_t block, int64_t pieces) {
    const vm_state *s = r->s;
    uint32_t in = s->rank - 1;
    int64_t loaded = -1;
    for (int64_t k = from; k < to; k++) {
        int64_t row = r->p ? 0 : k / pieces, rest, here = 1, width = n;
        if (r->p) { /* block program: runs of rows of the axis above the last */
            int64_t axis = r->l->sizes[s->domain[in - 1]], per = (axis + block - 1) / block;
            r->index[in - 1] = k % per * block;
            here = axis - r->index[in - 1] < block ? axis - r->index[in - 1] : block;
            rest = k / per;
            for (uint32_t d = in - 1; d-- > 0; rest /= r->l->sizes[s->domain[d]])
                r->index[d] = rest % r->l->sizes[s->domain[d]];
        } else {
            rest = row;
            for (uint32_t d = in; d-- > 0; rest /= r->l->sizes[s->domain[d]])
                r->index[d] = rest % r->l->sizes[s->domain[d]];
            r->index[in] = k % pieces * STRIP;
            width = n - r->index[in] < STRIP ? n - r->index[in] : STRIP;
            if (row != loaded) {
                int64_t at = r->index[in];
                r->index[in] = 0;
                load_scalars(r, ROW_LEVEL);
                run_code(r, ROW_LEVEL, 1);
                r->index[in] = at, loaded = row;
            }
        }
        bool last_block = here != block && r->p;
        if (last_block) memset(r->packed, 0, s->n_values); /* registers hold blocks of another height */
        bind(r, here, width);
        run_code(r, VECTOR_LEVEL, here * width);
        store(r, here, width);
        if (last_block) memset(r->packed, 0, s->n_values);
    }
    (void)rows;
}

static int teams(const vm_state *s, const cpu_task *t, int64_t elements, int64_t n_strips) {
    int n = cpu_team(t->device, (double)elements * s->ns);
    return n_strips < n ? (int)n_strips : n;
}

static uint64_t workspace(const void *state, const fnx_launch *l) {
    const vm_state *s = state;
    uint32_t n =
        s->program[0].n_registers > s->program[1].n_registers ? s->program[0].n_registers : s->program[1].n_registers;
    (void)l;
    return (uint64_t)n * REGISTER_BYTES;
}

/* Each thread needs registers of its own: the first one uses the launch's workspace, the others their stacks'. */
enum { STACK_REGISTERS = 48 };

static void run(void *state, const cpu_task *t, const fnx_launch *l) {
    const vm_state *s = state;
    int64_t elements = 1, rows = 1, n = l->sizes[s->domain[s->rank - 1]];
    for (uint32_t d = 0; d < s->rank; d++) elements *= l->sizes[s->domain[d]];
    if (elements == 0) return;
    rows = elements / n;
    int64_t axis = s->rank >= 2 ? l->sizes[s->domain[s->rank - 2]] : 1;
    int p = s->rank >= 2 && n <= SHORT_ROW && axis > 1;
    int64_t block = p ? STRIP / n : 1, pieces = (n + STRIP - 1) / STRIP;
    if (p && block > axis) block = axis;
    int64_t n_strips = p ? elements / n / axis * ((axis + block - 1) / block) : rows * pieces;
    int team = teams(s, t, elements, n_strips);
    char *first = (char *)(uintptr_t)l->workspace.address;
    if (s->program[p].n_registers > STACK_REGISTERS) team = 1;
    if (team == 1) {
        vm_run r;
        begin(&r, s, t, l, p, first);
        strips(&r, 0, n_strips, rows, n, block, pieces);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(static)
    for (int i = 0; i < team; i++) {
        _Alignas(64) char own[STACK_REGISTERS * REGISTER_BYTES];
        vm_run r;
        begin(&r, s, t, l, p, i ? own : first);
        strips(&r, n_strips * i / team, n_strips * (i + 1) / team, rows, n, block, pieces);
    }
}

const cpu_engine cpu_vm = {prepare, workspace, run, free};
