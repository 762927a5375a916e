/* See ir.h: the argument block and the verifier. */
#include "ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOL = 1 << KIR_BOOL, INT = 1 << KIR_I32 | 1 << KIR_U32 | 1 << KIR_I64 | 1 << KIR_U64 };
enum { FLOAT = 1 << KIR_F32 | 1 << KIR_F64, NUMBER = INT | FLOAT, ANY = NUMBER | BOOL };

/* What an operation takes: how many operands, of which types; all of the result's type, unless it is said below. */
static const struct {
    uint8_t operands;
    uint16_t types;
} forms[KIR_OPS] = {
    [KIR_NEG] = {1, NUMBER},
    [KIR_NOT] = {1, BOOL | INT},
    [KIR_CALL] = {1, FLOAT},
    [KIR_ADD] = {2, NUMBER},
    [KIR_SUB] = {2, NUMBER},
    [KIR_MUL] = {2, NUMBER},
    [KIR_DIV] = {2, NUMBER},
    [KIR_REM] = {2, INT},
    [KIR_MIN] = {2, NUMBER},
    [KIR_MAX] = {2, NUMBER},
    [KIR_AND] = {2, BOOL | INT},
    [KIR_OR] = {2, BOOL | INT},
    [KIR_XOR] = {2, BOOL | INT},
    [KIR_SHL] = {2, INT},
    [KIR_SHR] = {2, INT},
    [KIR_POW] = {2, FLOAT},
    [KIR_MULHI] = {2, 1 << KIR_U32},
    [KIR_FMA] = {3, FLOAT},
};

typedef struct block {
    int32_t first; /* values from here on die with it */
    uint8_t op;    /* KIR_FOR, KIR_IF, KIR_ELSE; KIR_OPS: the body */
    bool divergent;
} block;

typedef struct verifier {
    const kir *k;
    bool *alive;   /* the value may be used */
    bool *uniform; /* it is the same for all threads of a group */
    block block[KIR_MAX_DEPTH];
    int depth;
    char *why;
    size_t why_bytes;
} verifier;

static bool refuse(const verifier *v, int32_t i, const char *what) {
    const kir_insn *x = &v->k->insn[i];
    snprintf(v->why, v->why_bytes, "instruction %d, %s %s: %s", (int)i, x->op < KIR_OPS ? kir_op_names[x->op] : "?",
             x->type < KIR_TYPES ? kir_type_names[x->type] : "?", what);
    return false;
}

static bool is_value(const verifier *v, int32_t i, kir_value a) {
    if (a < 0 || a >= i || !v->alive[a]) return false;
    switch (v->k->insn[a].op) {
    case KIR_BUFFER:
    case KIR_VAR:
    case KIR_ARRAY: return false;
    default: return v->k->insn[a].type != KIR_VOID && v->k->insn[a].type != KIR_U8;
    }
}

static bool is_a(const verifier *v, int32_t i, kir_value a, kir_op op) {
    return a >= 0 && a < i && v->alive[a] && v->k->insn[a].op == op;
}

static kir_type type_of(const verifier *v, kir_value a) { return (kir_type)v->k->insn[a].type; }
static bool is_index(const verifier *v, kir_value a) { return type_of(v, a) == KIR_I32 || type_of(v, a) == KIR_I64; }
static kir_type in_register(kir_type memory) { return memory == KIR_U8 ? KIR_U32 : memory; }
static bool divergent(const verifier *v) { return v->block[v->depth - 1].divergent; }

static const char *check_memory(verifier *v, int32_t i, const kir_insn *x) {
    bool array = x->op == KIR_READ || x->op == KIR_WRITE, writes = x->op != KIR_LOAD && x->op != KIR_READ;
    if (!is_a(v, i, x->a, array ? KIR_ARRAY : KIR_BUFFER)) return array ? "no array" : "no buffer";
    if (!is_value(v, i, x->b) || !is_index(v, x->b)) return "the index is no i32 or i64";
    const kir_insn *m = &v->k->insn[x->a], *index = &v->k->insn[x->b];
    if (array && index->op == KIR_CONST && (index->imm < 0 || index->imm >= m->imm)) return "outside of its array";
    if (writes && !array && m->flag & KIR_READ_ONLY) return "the buffer is read only";
    kir_type type = in_register((kir_type)m->type);
    if (writes && (!is_value(v, i, x->c) || type_of(v, x->c) != type)) return "the value has another type";
    if (!writes && x->type != type) return "the result has another type";
    if (x->op == KIR_ATOMIC_ADD && type != KIR_I32 && type != KIR_U32) return "no atomic addition of this type";
    return NULL;
}

static const char *check_plain(verifier *v, int32_t i, const kir_insn *x) {
    const kir_value in[3] = {x->a, x->b, x->c};
    v->uniform[i] = true;
    for (int j = 0; j < forms[x->op].operands; j++) {
        if (!is_value(v, i, in[j])) return "an operand is no value here";
        if (type_of(v, in[j]) != x->type) return "an operand has another type";
        v->uniform[i] &= v->uniform[in[j]];
    }
    return forms[x->op].types >> x->type & 1 ? NULL : "not for this type";
}

static bool open(verifier *v, int32_t i, const kir_insn *x, bool diverges) {
    if (v->depth == KIR_MAX_DEPTH) return false;
    v->block[v->depth] = (block){i + 1, x->op, diverges || divergent(v)};
    v->depth++;
    return true;
}

static void close(verifier *v, int32_t i) {
    const block *b = &v->block[--v->depth];
    for (int32_t j = b->first; j < i; j++) v->alive[j] = false;
    if (b->op == KIR_FOR) v->alive[b->first - 1] = false;
}

static const char *check_control(verifier *v, int32_t i, const kir_insn *x) {
    block *b = &v->block[v->depth - 1];
    switch (x->op) {
    case KIR_FOR:
        if (!is_value(v, i, x->a) || !is_value(v, i, x->b) || type_of(v, x->a) != x->type ||
            type_of(v, x->b) != x->type || (x->type != KIR_I32 && x->type != KIR_I64))
            return "bounds are two i32 or two i64";
        if (x->imm <= 0) return "the step is not positive";
        v->uniform[i] = v->uniform[x->a] && v->uniform[x->b];
        return open(v, i, x, !v->uniform[i]) ? NULL : "too deep";
    case KIR_IF:
        if (!is_value(v, i, x->a) || type_of(v, x->a) != KIR_BOOL) return "the condition is no bool";
        return open(v, i, x, !v->uniform[x->a]) ? NULL : "too deep";
    case KIR_ELSE: {
        if (b->op != KIR_IF) return "without an if";
        bool diverges = b->divergent;
        close(v, i);
        return open(v, i, x, diverges) ? NULL : "too deep";
    }
    case KIR_END:
        if (v->depth == 1) return "without a block";
        close(v, i);
        return NULL;
    default: return divergent(v) ? "some threads of the group may not come here" : NULL; /* KIR_BARRIER */
    }
}

static const char *check_other(verifier *v, int32_t i, const kir_insn *x) {
    const kir *k = v->k;
    switch (x->op) {
    case KIR_CONST: v->uniform[i] = true; return ANY >> x->type & 1 ? NULL : "not of this type";
    case KIR_ARG:
        v->uniform[i] = true;
        if (x->imm < 0 || x->imm >= k->n_args) return "no such argument";
        return k->arg[x->imm].type == x->type ? NULL : "it has another type";
    case KIR_BUILTIN:
        v->uniform[i] = x->sub != KIR_THREAD;
        return x->sub <= KIR_GROUPS && x->imm >= 0 && x->imm < 3 && x->type == KIR_U32 ? NULL : "no such builtin";
    case KIR_BUFFER:
        if (v->depth != 1) return "inside of a block";
        if (x->imm < 0 || x->imm >= k->n_args || k->arg[x->imm].type != KIR_U64)
            return "its address is no u64 argument";
        return (ANY | 1 << KIR_U8) >> x->type & 1 ? NULL : "not of this type";
    case KIR_CAST:
    case KIR_BITS:
        if (!is_value(v, i, x->a) || !(ANY >> x->type & 1)) return "not a value";
        v->uniform[i] = v->uniform[x->a];
        if (x->op == KIR_BITS && (kir_bytes(type_of(v, x->a)) != kir_bytes((kir_type)x->type) || x->type == KIR_BOOL))
            return "of another size";
        return NULL;
    case KIR_IS_NAN:
        if (!is_value(v, i, x->a) || !(FLOAT >> type_of(v, x->a) & 1)) return "not of a float";
        v->uniform[i] = v->uniform[x->a];
        return NULL;
    case KIR_EQ:
    case KIR_NE:
    case KIR_LT:
    case KIR_LE:
        if (!is_value(v, i, x->a) || !is_value(v, i, x->b) || type_of(v, x->a) != type_of(v, x->b))
            return "operands are not two values of one type";
        v->uniform[i] = v->uniform[x->a] && v->uniform[x->b];
        return x->type == KIR_BOOL ? NULL : "the result is bool";
    case KIR_SELECT:
        if (!is_value(v, i, x->a) || type_of(v, x->a) != KIR_BOOL) return "the condition is no bool";
        if (!is_value(v, i, x->b) || !is_value(v, i, x->c) || type_of(v, x->b) != x->type ||
            type_of(v, x->c) != x->type)
            return "an operand has another type";
        v->uniform[i] = v->uniform[x->a] && v->uniform[x->b] && v->uniform[x->c];
        return NULL;
    case KIR_VAR: return is_value(v, i, x->a) && type_of(v, x->a) == x->type ? NULL : "its first value is none";
    case KIR_GET: return is_a(v, i, x->a, KIR_VAR) && type_of(v, x->a) == x->type ? NULL : "no such variable";
    case KIR_SET:
        if (!is_a(v, i, x->a, KIR_VAR)) return "no such variable";
        return is_value(v, i, x->b) && type_of(v, x->b) == type_of(v, x->a) ? NULL : "the value has another type";
    case KIR_ARRAY:
        if (x->sub == KIR_SHARED && v->depth != 1) return "inside of a block";
        return x->imm > 0 && x->imm <= 1 << 20 && NUMBER >> x->type & 1 && x->sub <= KIR_SHARED ? NULL
                                                                                                : "no such array";
    case KIR_FAIL:
        return is_value(v, i, x->a) && is_value(v, i, x->b) && type_of(v, x->a) == KIR_I64 &&
                       type_of(v, x->b) == KIR_I64
                   ? NULL
                   : "index and limit are i64";
    default: return "no such operation";
    }
}

static bool check(verifier *v, int32_t i) {
    const kir_insn *x = &v->k->insn[i];
    if (x->op >= KIR_OPS || x->type >= KIR_TYPES) return refuse(v, i, "no such operation or type");
    const char *wrong;
    if (forms[x->op].operands) wrong = check_plain(v, i, x);
    else if (x->op >= KIR_FOR && x->op <= KIR_BARRIER) wrong = check_control(v, i, x);
    else if (x->op == KIR_READ || x->op == KIR_WRITE || (x->op >= KIR_LOAD && x->op <= KIR_ATOMIC_ADD))
        wrong = check_memory(v, i, x);
    else wrong = check_other(v, i, x);
    if (wrong) return refuse(v, i, wrong);
    v->alive[i] = x->type != KIR_VOID;
    return true;
}

/* 8-byte members first. */
static void lay_out(kir *k) {
    uint32_t at = 0;
    for (uint32_t bytes = 8; bytes >= 4; bytes -= 4)
        for (int32_t i = 0; i < k->n_args; i++)
            if (kir_bytes((kir_type)k->arg[i].type) == bytes) k->arg[i].offset = at, at += bytes;
    k->args_bytes = (at + 7) & ~7u;
    uint64_t shared = 0;
    for (int32_t i = 0; i < k->n; i++)
        if (k->insn[i].op == KIR_ARRAY && k->insn[i].sub == KIR_SHARED)
            shared += ((uint64_t)k->insn[i].imm * kir_bytes((kir_type)k->insn[i].type) + 15) & ~UINT64_C(15);
    k->shared_bytes = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
}

static bool verify(const kir *k, char *why, size_t why_bytes) {
    size_t n = (size_t)k->n + 1;
    verifier v = {.k = k, .why = why, .why_bytes = why_bytes, .depth = 1, .block = {{0, KIR_OPS, false}}};
    v.alive = calloc(2 * n, sizeof *v.alive);
    if (!v.alive) return snprintf(why, why_bytes, "no host memory"), false;
    v.uniform = v.alive + n;
    bool right = true;
    for (int32_t i = 0; i < k->n && right; i++) right = check(&v, i);
    if (right && v.depth != 1) right = refuse(&v, k->n - 1, "a block is open at the end");
    free(v.alive);
    return right;
}

bool kir_finish(kir *k, char *why, size_t why_bytes) {
    if (k->overflow) return snprintf(why, why_bytes, "%s", k->overflow), false;
    for (int32_t i = 0; i < k->n_args; i++)
        if (kir_bytes((kir_type)k->arg[i].type) < 4)
            return snprintf(why, why_bytes, "argument %d is narrow", (int)i), false;
    lay_out(k);
    if (k->args_bytes > FNX_CODEGEN_ARGS_MAX) return snprintf(why, why_bytes, "too many arguments"), false;
    return verify(k, why, why_bytes);
}
