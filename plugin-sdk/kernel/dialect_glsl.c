/* GLSL 4.60 for Vulkan 1.2: memory by buffer references, arguments behind the one push constant. */
#include "dialect.h"

#include <inttypes.h>

static const char prelude[] =
    "#version 460\n#extension GL_EXT_buffer_reference : require\n"
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n#extension GL_EXT_shader_8bit_storage : require\n"
    "#extension GL_EXT_control_flow_attributes : enable\n"
    "#define poly_float intBitsToFloat\n#define poly_bits floatBitsToInt\n#define POLY_FUNCTION\n"
    "#define POLY_REAL precise float\n#define POLY_INT(x) int(x)\n#define POLY_UINT(x) uint(x)\n"
    "#define POLY_FLOAT(x) float(x)\n#define POLY_ABS abs\n"
    "#define POLY_COPYSIGN(m, s) poly_float(poly_bits(m) & 0x7fffffff | poly_bits(s) & ~0x7fffffff)\n"
    "#define POLY_IS_NAN isnan\n#define POLY_INF poly_float(0x7f800000)\n#define POLY_NAN poly_float(0x7fc00000)\n";

static const char prelude64[] =
    "#define poly64_double int64BitsToDouble\n#define poly64_bits doubleBitsToInt64\n"
    "#define POLY64_REAL precise double\n#define POLY64_INT(x) int64_t(x)\n#define POLY64_UINT(x) uint64_t(x)\n"
    "#define POLY64_FLOAT(x) double(x)\n#define POLY64_ABS abs\n#define POLY64_FLOOR floor\n"
    "#define POLY64_COPYSIGN(m, s) \\\n"
    "    poly64_double(poly64_bits(m) & 0x7fffffffffffffffl | poly64_bits(s) & ~0x7fffffffffffffffl)\n"
    "#define POLY64_INF FNX_INF64\n#define POLY64_NAN FNX_NAN64\n"
    "#define fnx_exp_f64 fnx_poly64_exp\n#define fnx_log_f64 fnx_poly64_log\n#define fnx_tanh_f64 fnx_poly64_tanh\n"
    "#define fnx_sigmoid_f64 fnx_poly64_sigmoid\n#define fnx_erf_f64 fnx_poly64_erf\n"
    "#define fnx_sin_f64 fnx_poly64_sin\n#define fnx_cos_f64 fnx_poly64_cos\n" /* near 0, where kernels want them */
    "#define fnx_pow_f32 fnx_poly_pow\n#define fnx_pow_f64 fnx_poly64_pow\n";

static const char functions[] =
    "#define ARG(m) (push.args.m)\n#define FNX_CAST(T, x) T(x)\n#define FNX_BYTE(x) uint8_t(x)\n"
    "#define FNX_IS_NAN isnan\n#define FNX_NAN64 int64BitsToDouble(0x7ff8000000000000l)\n"
    "#define FNX_INF64 int64BitsToDouble(0x7ff0000000000000l)\n"
    "#define fnx_min min\n#define fnx_max max\n#define fnx_fmin min\n#define fnx_fmax max\n"
    "uint fnx_mulhi(uint a, uint b) { uint high, low; umulExtended(a, b, high, low); return high; }\n"
    "#define fnx_fma_f32 fma\n#define fnx_fma_f64 fma\n#define fnx_exp_f32 fnx_poly_exp\n"
    "#define fnx_log_f32 fnx_poly_log\n#define fnx_sqrt_f32 sqrt\n#define fnx_tanh_f32 fnx_poly_tanh\n"
    "#define fnx_sigmoid_f32 fnx_poly_sigmoid\n#define fnx_erf_f32 fnx_poly_erf\n#define fnx_sin_f32 sin\n"
    "#define fnx_cos_f32 cos\n#define fnx_abs_f32 abs\n#define fnx_trunc_f32 trunc\n#define fnx_floor_f32 floor\n"
    "#define fnx_sqrt_f64 sqrt\n#define fnx_abs_f64 abs\n#define fnx_trunc_f64 trunc\n#define fnx_floor_f64 floor\n"
    "#define fnx_bits_f32_u32 floatBitsToUint\n#define fnx_bits_f32_i32 floatBitsToInt\n"
    "#define fnx_bits_u32_f32 uintBitsToFloat\n#define fnx_bits_i32_f32 intBitsToFloat\n"
    "#define fnx_bits_f64_u64 doubleBitsToUint64\n#define fnx_bits_f64_i64 doubleBitsToInt64\n"
    "#define fnx_bits_u64_f64 uint64BitsToDouble\n#define fnx_bits_i64_f64 int64BitsToDouble\n"
    "#define fnx_bits_i32_u32 uint\n#define fnx_bits_u32_i32 int\n#define fnx_bits_i64_u64 uint64_t\n"
    "#define fnx_bits_u64_i64 int64_t\n"
    "layout(buffer_reference, std430, buffer_reference_align = 1) buffer fnx_u8 { uint8_t v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer fnx_i32 { int v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer fnx_u32 { uint v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 8) buffer fnx_i64 { int64_t v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 8) buffer fnx_u64 { uint64_t v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer fnx_f32 { float v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 8) buffer fnx_f64 { double v[]; };\n"
    "layout(buffer_reference, std430, buffer_reference_align = 8) buffer fnx_word {\n"
    "    int code; uint site; uint node; uint reserved; int64_t index; int64_t limit; };\n"
    "void fnx_fail(uint64_t word, uint site, uint node, int64_t index, int64_t limit) {\n"
    "    fnx_word w = fnx_word(word);\n    if (atomicCompSwap(w.code, 0, -4) != 0) return;\n"
    "    w.site = site; w.node = node; w.index = index; w.limit = limit;\n}\n";

static const char *memory_type(kir_type type) {
    static const char *const names[KIR_TYPES] = {"",        "fnx_u8",  "fnx_u8",  "fnx_i32", "fnx_u32",
                                                 "fnx_i64", "fnx_u64", "fnx_f32", "fnx_f64"};
    return names[type];
}

/* pow of f32 is computed in f64, too. */
static bool needs_f64(const kir *k) {
    for (kir_value i = 0; i < k->n; i++)
        if (k->insn[i].type == KIR_F64 || k->insn[i].op == KIR_POW) return true;
    return false;
}

static void begin(kir_text *t, const kir *k, const char *entry) {
    (void)entry; /* always main */
    kir_put(t, "%s%s%s", prelude, kir_poly_text, functions);
    if (needs_f64(k)) kir_put(t, "%s%s", prelude64, kir_poly64_text);
    kir_put(t, "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer fnx_args {\n");
    kir_put_args(t, k, &kir_dialect_glsl);
    kir_put(t,
            "};\nlayout(push_constant) uniform fnx_push { fnx_args args; } push;\n"
            "layout(local_size_x = %u, local_size_y = %u, local_size_z = %u) in;\n",
            k->threads[0], k->threads[1], k->threads[2]);
    for (kir_value i = 0; i < k->n; i++)
        if (k->insn[i].op == KIR_ARRAY && k->insn[i].sub == KIR_SHARED)
            kir_put(t, "shared %s v%d[%" PRId64 "];\n", kir_dialect_glsl.type[k->insn[i].type], (int)i, k->insn[i].imm);
    kir_put(t, "void main() {");
}

static void end(kir_text *t, const kir *k) {
    (void)k;
    kir_put(t, "\n}\n");
}

static void buffer(kir_text *t, const kir *k, kir_value b) {
    const kir_insn *x = &k->insn[b];
    const char *type = memory_type((kir_type)x->type);
    kir_put(t, "%s v%d = %s(ARG(a%" PRId64 "));", type, (int)b, type, x->imm);
}

/* An index has 32 bits; beyond, the reference itself is moved. */
static void element(kir_text *t, const kir *k, kir_value b, kir_value index) {
    const kir_insn *x = &k->insn[b];
    if (k->insn[index].type == KIR_I32) {
        kir_put(t, "v%d.v[", (int)b), kir_put_index(t, k, index), kir_put(t, "]");
        return;
    }
    kir_put(t, "%s(uint64_t(v%d) + uint64_t(", memory_type((kir_type)x->type), (int)b);
    kir_put_index(t, k, index);
    kir_put(t, ") * %uul).v[0]", kir_bytes((kir_type)x->type));
}

const kir_dialect kir_dialect_glsl = {
    .type = {"void", "bool", "uint", "int", "uint", "int64_t", "uint64_t", "float", "double"},
    .memory_bool = "uint8_t",
    .begin = begin,
    .end = end,
    .buffer = buffer,
    .element = element,
    .shared = "shared ",
    .shared_outside = true,
    .barrier = "barrier();",
    .atomic_add = "atomicAdd",
    .builtin = {"gl_LocalInvocationID.%c", "gl_WorkGroupID.%c", "gl_NumWorkGroups.%c"},
    .unroll = "[[unroll]]",
    .suffix_i64 = "l",
    .suffix_u64 = "ul",
    .cast = "%s(%s)",
};
