/* C17 for the host's compiler: a function runs a work-group. Its threads are one, so a barrier is nothing. */
#include "dialect.h"

#include <inttypes.h>

void kir_put_args(kir_text *t, const kir *k, const kir_dialect *d) {
    for (uint32_t bytes = 8; bytes >= 4; bytes -= 4)
        for (int32_t i = 0; i < k->n_args; i++)
            if (kir_bytes((kir_type)k->arg[i].type) == bytes)
                kir_put(t, "    %s a%d;\n", d->type[k->arg[i].type], (int)i);
}

static const char prelude[] =
    "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <string.h>\n"
    "static inline float poly_float(int32_t i) { float f; memcpy(&f, &i, 4); return f; }\n"
    "static inline int32_t poly_bits(float f) { int32_t i; memcpy(&i, &f, 4); return i; }\n"
    "#define POLY_FUNCTION static inline\n#define POLY_REAL float\n#define POLY_INT(x) ((int32_t)(x))\n"
    "#define POLY_UINT(x) ((uint32_t)(x))\n#define POLY_FLOAT(x) ((float)(x))\n#define POLY_ABS fabsf\n"
    "#define POLY_COPYSIGN copysignf\n#define POLY_IS_NAN(x) ((x) != (x))\n#define POLY_INF INFINITY\n"
    "#define POLY_NAN NAN\n";

static const char functions[] =
    "#define ARG(m) (args->m)\n#define FNX_CAST(T, x) ((T)(x))\n#define FNX_BYTE(x) ((uint8_t)(x))\n"
    "#define FNX_IS_NAN(x) ((x) != (x))\n#define FNX_NAN64 ((double)NAN)\n#define FNX_INF64 ((double)INFINITY)\n"
    "#define fnx_min(a, b) ((a) < (b) ? (a) : (b))\n#define fnx_max(a, b) ((a) > (b) ? (a) : (b))\n"
    "#define fnx_fmin fnx_min\n#define fnx_fmax fnx_max\n"
    "#define fnx_atomic_add(p, x) __atomic_fetch_add(p, x, __ATOMIC_RELAXED)\n"
    "#define fnx_mulhi(a, b) ((uint32_t)((uint64_t)(a) * (b) >> 32))\n"
    "#define fnx_fma_f32(a, b, c) ((a) * (b) + (c))\n#define fnx_fma_f64(a, b, c) ((a) * (b) + (c))\n"
    "#define fnx_exp_f32 fnx_poly_exp\n#define fnx_log_f32 fnx_poly_log\n#define fnx_sqrt_f32 sqrtf\n"
    "#define fnx_tanh_f32 fnx_poly_tanh\n#define fnx_sigmoid_f32 fnx_poly_sigmoid\n#define fnx_erf_f32 fnx_poly_erf\n"
    "#define fnx_sin_f32 sinf\n#define fnx_cos_f32 cosf\n#define fnx_abs_f32 fabsf\n#define fnx_trunc_f32 truncf\n"
    "#define fnx_floor_f32 floorf\n#define fnx_exp_f64 exp\n#define fnx_log_f64 log\n#define fnx_sqrt_f64 sqrt\n"
    "#define fnx_tanh_f64 tanh\n#define fnx_sigmoid_f64(x) (1 / (1 + exp(-(x))))\n#define fnx_erf_f64 erf\n"
    "#define fnx_sin_f64 sin\n#define fnx_cos_f64 cos\n#define fnx_abs_f64 fabs\n#define fnx_trunc_f64 trunc\n"
    "#define fnx_floor_f64 floor\n#define fnx_pow_f32 powf\n#define fnx_pow_f64 pow\n"
    "#define FNX_BITS(A, B, T, U) static inline U fnx_bits_##A##_##B(T x) { U y; memcpy(&y, &x, sizeof y); return y; "
    "}\n"
    "FNX_BITS(f32, u32, float, uint32_t) FNX_BITS(f32, i32, float, int32_t) FNX_BITS(u32, f32, uint32_t, float)\n"
    "FNX_BITS(i32, f32, int32_t, float) FNX_BITS(f64, u64, double, uint64_t) FNX_BITS(u64, f64, uint64_t, double)\n"
    "FNX_BITS(f64, i64, double, int64_t) FNX_BITS(i64, f64, int64_t, double) FNX_BITS(i32, u32, int32_t, uint32_t)\n"
    "FNX_BITS(u32, i32, uint32_t, int32_t) FNX_BITS(i64, u64, int64_t, uint64_t) FNX_BITS(u64, i64, uint64_t, "
    "int64_t)\n"
    "static inline void fnx_fail(uint64_t word, uint32_t site, uint32_t node, int64_t index, int64_t limit) {\n"
    "    int32_t *code = (int32_t *)word, none = 0;\n"
    "    if (!__atomic_compare_exchange_n(code, &none, -4, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;\n"
    "    ((uint32_t *)word)[1] = site, ((uint32_t *)word)[2] = node;\n"
    "    ((int64_t *)word)[2] = index, ((int64_t *)word)[3] = limit;\n}\n";

static void begin(kir_text *t, const kir *k, const char *entry) {
    kir_put(t, "%s%s%sstruct fnx_args {\n", prelude, kir_poly_text, functions);
    kir_put_args(t, k, &kir_dialect_c);
    kir_put(t,
            "};\nvoid %s(const uint32_t *group, const uint32_t *groups, const void *block) {\n"
            "    const struct fnx_args *args = block;",
            entry);
}

static void end(kir_text *t, const kir *k) {
    (void)k;
    kir_put(t, "\n}\n");
}

static const char *memory_type(const kir_dialect *d, kir_type type) {
    return type == KIR_BOOL || type == KIR_U8 ? d->memory_bool : d->type[type];
}

static void buffer(kir_text *t, const kir *k, kir_value b) {
    const kir_insn *x = &k->insn[b];
    const char *type = memory_type(&kir_dialect_c, (kir_type)x->type);
    kir_put(t, "%s%s *v%d = (%s%s *)ARG(a%" PRId64 ");", x->flag & KIR_READ_ONLY ? "const " : "", type, (int)b,
            x->flag & KIR_READ_ONLY ? "const " : "", type, x->imm);
}

void kir_put_index(kir_text *t, const kir *k, kir_value index) {
    const kir_insn *x = &k->insn[index];
    if (x->op == KIR_CONST) kir_put(t, "%" PRId64, x->imm);
    else if (x->op == KIR_ARG) kir_put(t, "ARG(a%" PRId64 ")", x->imm);
    else kir_put(t, "v%d", (int)index);
}

static void element(kir_text *t, const kir *k, kir_value b, kir_value index) {
    kir_put(t, "v%d[", (int)b), kir_put_index(t, k, index), kir_put(t, "]");
}

const kir_dialect kir_dialect_c = {
    .type = {"void", "bool", "uint32_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double"},
    .memory_bool = "uint8_t",
    .begin = begin,
    .end = end,
    .buffer = buffer,
    .element = element,
    .shared = "",
    .barrier = ";",
    .atomic_add = "fnx_atomic_add",
    .atomic_pointer = true,
    .builtin = {"0u; (void)'%c'", "group['%c' - 'x']", "groups['%c' - 'x']"},
    .unroll = "",
    .suffix_i64 = "ll",
    .suffix_u64 = "ull",
    .cast = "((%s)%s)",
};
