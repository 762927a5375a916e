/* A verified kernel as source. Each value is a variable of its own, v<number>; compilers do the rest. */
#include "dialect.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kir_put(kir_text *t, const char *format, ...) {
    for (;;) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->at ? t->at + t->n : NULL, t->capacity - t->n, format, args);
        va_end(args);
        if (n < 0) t->broken = true;
        if (t->broken) return;
        if (t->n + (size_t)n < t->capacity) {
            t->n += (size_t)n;
            return;
        }
        size_t capacity = t->capacity * 2 + (size_t)n + 4096;
        char *more = realloc(t->at, capacity);
        if (!more) t->broken = true;
        else t->at = more, t->capacity = capacity;
    }
}

typedef struct printer {
    kir_text *t;
    const kir *k;
    const kir_dialect *d;
    int depth;
} printer;

static void line(const printer *p) { kir_put(p->t, "\n%*s", 4 * p->depth, ""); }

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void constant(const printer *p, const kir_insn *x) {
    float f;
    double d;
    switch (x->type) {
    case KIR_BOOL: kir_put(p->t, x->imm ? "true" : "false"); break;
    case KIR_I32: /* INT_MIN is no literal */
        if (x->imm == INT32_MIN) kir_put(p->t, "(-2147483647 - 1)");
        else kir_put(p->t, "(%" PRId64 ")", x->imm);
        break;
    case KIR_U32: kir_put(p->t, "%" PRIu32 "u", (uint32_t)x->imm); break;
    case KIR_I64:
        if (x->imm == INT64_MIN) kir_put(p->t, "(-9223372036854775807%s - 1)", p->d->suffix_i64);
        else kir_put(p->t, "(%" PRId64 "%s)", x->imm, p->d->suffix_i64);
        break;
    case KIR_U64: kir_put(p->t, "%" PRIu64 "%s", (uint64_t)x->imm, p->d->suffix_u64); break;
    case KIR_F32:
        memcpy(&f, &x->imm, sizeof f);
        if (isfinite(f)) kir_put(p->t, "(%.9e%s)", (double)f, "f");
        else kir_put(p->t, "poly_float(%" PRId32 ")", (int32_t)x->imm);
        break;
    default:
        memcpy(&d, &x->imm, sizeof d);
        if (isfinite(d)) kir_put(p->t, "(%.17e%s)", d, p->d == &kir_dialect_glsl ? "lf" : "");
        else kir_put(p->t, isnan(d) ? "FNX_NAN64" : d > 0 ? "FNX_INF64" : "(-FNX_INF64)");
    }
}

static void value(const printer *p, kir_value v) {
    const kir_insn *x = &p->k->insn[v];
    if (x->op == KIR_CONST) constant(p, x);
    else if (x->op == KIR_ARG) kir_put(p->t, "ARG(a%" PRId64 ")", x->imm);
    else kir_put(p->t, "v%d", (int)v);
}

static void infix(const printer *p, const kir_insn *x, const char *op) {
    value(p, x->a);
    kir_put(p->t, " %s ", op);
    value(p, x->b);
}

static void call(const printer *p, const char *name, const kir_insn *x, int n) {
    const kir_value in[3] = {x->a, x->b, x->c};
    kir_put(p->t, "%s(", name);
    for (int j = 0; j < n; j++) {
        if (j) kir_put(p->t, ", ");
        value(p, in[j]);
    }
    kir_put(p->t, ")");
}

static const char *const function_names[KIR_FNS] =
    {[KIR_FN_EXP] = "fnx_exp",     [KIR_FN_LOG] = "fnx_log",         [KIR_FN_SQRT] = "fnx_sqrt",
     [KIR_FN_TANH] = "fnx_tanh",   [KIR_FN_SIGMOID] = "fnx_sigmoid", [KIR_FN_ERF] = "fnx_erf",
     [KIR_FN_SIN] = "fnx_sin",     [KIR_FN_COS] = "fnx_cos",         [KIR_FN_ABS] = "fnx_abs",
     [KIR_FN_TRUNC] = "fnx_trunc", [KIR_FN_FLOOR] = "fnx_floor"};

static void expression(const printer *p, kir_value i) {
    static const char *const operators[KIR_OPS] = {
        [KIR_ADD] = "+",  [KIR_SUB] = "-", [KIR_MUL] = "*", [KIR_DIV] = "/", [KIR_REM] = "%", [KIR_SHL] = "<<",
        [KIR_SHR] = ">>", [KIR_EQ] = "==", [KIR_NE] = "!=", [KIR_LT] = "<",  [KIR_LE] = "<=",
    };
    const kir_insn *x = &p->k->insn[i];
    bool is_bool = x->type == KIR_BOOL, is_int = x->type >= KIR_I32 && x->type <= KIR_U64;
    char name[32];
    if (operators[x->op]) {
        infix(p, x, operators[x->op]);
        return;
    }
    switch (x->op) {
    case KIR_BUILTIN: kir_put(p->t, p->d->builtin[x->sub], "xyz"[x->imm]); break;
    case KIR_NEG: kir_put(p->t, "-"), value(p, x->a); break;
    case KIR_NOT: kir_put(p->t, is_bool ? "!" : "~"), value(p, x->a); break;
    case KIR_AND: infix(p, x, is_bool ? "&&" : "&"); break;
    case KIR_OR: infix(p, x, is_bool ? "||" : "|"); break;
    case KIR_XOR: infix(p, x, is_bool ? "!=" : "^"); break;
    case KIR_MIN: call(p, is_int ? "fnx_min" : "fnx_fmin", x, 2); break;
    case KIR_MAX: call(p, is_int ? "fnx_max" : "fnx_fmax", x, 2); break;
    case KIR_POW: call(p, x->type == KIR_F32 ? "fnx_pow_f32" : "fnx_pow_f64", x, 2); break;
    case KIR_MULHI: call(p, "fnx_mulhi", x, 2); break;
    case KIR_FMA: call(p, x->type == KIR_F32 ? "fnx_fma_f32" : "fnx_fma_f64", x, 3); break;
    case KIR_IS_NAN: call(p, "FNX_IS_NAN", x, 1); break;
    case KIR_CALL:
        snprintf(name, sizeof name, "%s_%s", function_names[x->sub], kir_type_names[x->type]);
        call(p, name, x, 1);
        break;
    case KIR_CAST:
        if (is_bool) {
            value(p, x->a), kir_put(p->t, " != "), kir_put(p->t, p->d->cast, p->d->type[kir_type_of(p->k, x->a)], "0");
        } else {
            kir_put(p->t, "FNX_CAST(%s, ", p->d->type[x->type]), value(p, x->a), kir_put(p->t, ")");
        }
        break;
    case KIR_BITS:
        snprintf(name, sizeof name, "fnx_bits_%s_%s", kir_type_names[kir_type_of(p->k, x->a)], kir_type_names[x->type]);
        call(p, name, x, 1);
        break;
    case KIR_SELECT: value(p, x->a), kir_put(p->t, " ? "), value(p, x->b), kir_put(p->t, " : "), value(p, x->c); break;
    case KIR_LOAD:
        p->d->element(p->t, p->k, x->a, x->b);
        if (p->k->insn[x->a].type == KIR_BOOL) kir_put(p->t, " != FNX_BYTE(0)");
        break;
    case KIR_GET:
    case KIR_VAR: value(p, x->a); break;
    case KIR_READ: kir_put(p->t, "v%d[", (int)x->a), value(p, x->b), kir_put(p->t, "]"); break;
    default: break;
    }
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void store(const printer *p, const kir_insn *x) {
    kir_type type = (kir_type)p->k->insn[x->a].type;
    p->d->element(p->t, p->k, x->a, x->b);
    kir_put(p->t, type == KIR_BOOL ? " = FNX_BYTE(" : type == KIR_U8 ? " = FNX_BYTE(" : " = ");
    value(p, x->c);
    kir_put(p->t, type == KIR_BOOL ? " ? 1 : 0);" : type == KIR_U8 ? " & 255u);" : ";");
}

static void array(const printer *p, kir_value i) {
    const kir_insn *x = &p->k->insn[i];
    kir_put(p->t, "%s%s v%d[%" PRId64 "];", x->sub == KIR_SHARED ? p->d->shared : "", p->d->type[x->type], (int)i,
            x->imm);
}

static void loop(const printer *p, kir_value i) {
    const kir_insn *x = &p->k->insn[i];
    if (x->flag & KIR_UNROLL && *p->d->unroll) kir_put(p->t, "%s", p->d->unroll), line(p);
    kir_put(p->t, "for (%s v%d = ", p->d->type[x->type], (int)i), value(p, x->a);
    kir_put(p->t, "; v%d < ", (int)i), value(p, x->b);
    kir_put(p->t, "; v%d += %" PRId64 ") {", (int)i, x->imm);
}

static void statement(printer *p, kir_value i) {
    const kir_insn *x = &p->k->insn[i];
    if (x->op == KIR_CONST || x->op == KIR_ARG || (x->op == KIR_ARRAY && x->sub == KIR_SHARED && p->d->shared_outside))
        return;
    if (x->op == KIR_END || x->op == KIR_ELSE) p->depth--;
    line(p);
    switch (x->op) {
    case KIR_BUFFER: p->d->buffer(p->t, p->k, i); break;
    case KIR_STORE: store(p, x); break;
    case KIR_ATOMIC_ADD:
        kir_put(p->t, "%s(%s", p->d->atomic_add, p->d->atomic_pointer ? "&" : "");
        p->d->element(p->t, p->k, x->a, x->b), kir_put(p->t, ", "), value(p, x->c), kir_put(p->t, ");");
        break;
    case KIR_SET: kir_put(p->t, "v%d = ", (int)x->a), value(p, x->b), kir_put(p->t, ";"); break;
    case KIR_ARRAY: array(p, i); break;
    case KIR_WRITE:
        kir_put(p->t, "v%d[", (int)x->a), value(p, x->b), kir_put(p->t, "] = "), value(p, x->c), kir_put(p->t, ";");
        break;
    case KIR_FOR: loop(p, i), p->depth++; break;
    case KIR_IF: kir_put(p->t, "if ("), value(p, x->a), kir_put(p->t, ") {"), p->depth++; break;
    case KIR_ELSE: kir_put(p->t, "} else {"), p->depth++; break;
    case KIR_END: kir_put(p->t, "}"); break;
    case KIR_BARRIER: kir_put(p->t, "%s", p->d->barrier); break;
    case KIR_FAIL:
        kir_put(p->t, "fnx_fail(ARG(a%d), ARG(a%d), %" PRId64 "u, ", KIR_ARG_ERROR, KIR_ARG_SITE, x->imm);
        value(p, x->a), kir_put(p->t, ", "), value(p, x->b), kir_put(p->t, ");");
        break;
    default:
        kir_put(p->t, "%s v%d = ", p->d->type[x->type], (int)i);
        expression(p, i);
        kir_put(p->t, ";");
    }
}

const kir_dialect *kir_dialect_of(uint32_t dialect) {
    switch (dialect) {
    case FNX_DIALECT_C: return &kir_dialect_c;
    case FNX_DIALECT_CUDA:
    case FNX_DIALECT_HIP: return &kir_dialect_cuda;
    case FNX_DIALECT_GLSL: return &kir_dialect_glsl;
    default: return NULL;
    }
}

char *kir_print(const kir *k, uint32_t dialect, const char *entry) {
    kir_text t = {NULL, 0, 0, false};
    printer p = {&t, k, kir_dialect_of(dialect), 1};
    if (!p.d) return NULL;
    p.d->begin(&t, k, entry);
    for (kir_value i = 0; i < k->n; i++) statement(&p, i);
    p.d->end(&t, k);
    if (t.broken) {
        free(t.at);
        return NULL;
    }
    return t.at;
}
