/* CUDA C++ for NVRTC and HIP C++ for hipRTC: neither includes anything. */
#include "dialect.h"

#include <inttypes.h>

static const char prelude[] =
    "typedef int int32_t;\ntypedef unsigned int uint32_t;\ntypedef long long int64_t;\ntypedef unsigned long long "
    "uint64_t;\n"
    "typedef unsigned char uint8_t;\n"
    "__device__ inline float poly_float(int i) { return __int_as_float(i); }\n"
    "__device__ inline int poly_bits(float f) { return __float_as_int(f); }\n"
    "#define POLY_FUNCTION __device__ inline\n#define POLY_REAL float\n#define POLY_INT(x) ((int)(x))\n"
    "#define POLY_UINT(x) ((uint32_t)(x))\n#define POLY_FLOAT(x) ((float)(x))\n#define POLY_ABS fabsf\n"
    "#define POLY_COPYSIGN copysignf\n#define POLY_IS_NAN(x) ((x) != (x))\n"
    "#define POLY_INF __int_as_float(0x7f800000)\n#define POLY_NAN __int_as_float(0x7fffffff)\n";

static const char functions[] =
    "#define ARG(m) (args.m)\n#define FNX_CAST(T, x) ((T)(x))\n#define FNX_BYTE(x) ((uint8_t)(x))\n"
    "#define FNX_IS_NAN(x) ((x) != (x))\n#define FNX_NAN64 __longlong_as_double(0x7fffffffffffffffll)\n"
    "#define FNX_INF64 __longlong_as_double(0x7ff0000000000000ll)\n"
    "#define fnx_min(a, b) ((a) < (b) ? (a) : (b))\n#define fnx_max(a, b) ((a) > (b) ? (a) : (b))\n"
    "#define fnx_fmin fnx_min\n#define fnx_fmax fnx_max\n#define fnx_mulhi __umulhi\n"
    "#define fnx_fma_f32 fmaf\n#define fnx_fma_f64 fma\n"
    "#define fnx_exp_f32 fnx_poly_exp\n#define fnx_log_f32 fnx_poly_log\n#define fnx_sqrt_f32 sqrtf\n"
    "#define fnx_tanh_f32 fnx_poly_tanh\n#define fnx_sigmoid_f32 fnx_poly_sigmoid\n#define fnx_erf_f32 fnx_poly_erf\n"
    "#define fnx_sin_f32 sinf\n#define fnx_cos_f32 cosf\n#define fnx_abs_f32 fabsf\n#define fnx_trunc_f32 truncf\n"
    "#define fnx_floor_f32 floorf\n#define fnx_exp_f64 exp\n#define fnx_log_f64 log\n#define fnx_sqrt_f64 sqrt\n"
    "#define fnx_tanh_f64 tanh\n#define fnx_sigmoid_f64(x) (1 / (1 + exp(-(x))))\n#define fnx_erf_f64 erf\n"
    "#define fnx_sin_f64 sin\n#define fnx_cos_f64 cos\n#define fnx_abs_f64 fabs\n#define fnx_trunc_f64 trunc\n"
    "#define fnx_floor_f64 floor\n#define fnx_pow_f32 powf\n#define fnx_pow_f64 pow\n#define fnx_bits_f32_u32(x) "
    "((uint32_t)__float_as_int(x))\n"
    "#define fnx_bits_f32_i32 __float_as_int\n#define fnx_bits_u32_f32(x) __int_as_float((int)(x))\n"
    "#define fnx_bits_i32_f32 __int_as_float\n#define fnx_bits_f64_u64(x) ((uint64_t)__double_as_longlong(x))\n"
    "#define fnx_bits_f64_i64 __double_as_longlong\n#define fnx_bits_u64_f64(x) __longlong_as_double((int64_t)(x))\n"
    "#define fnx_bits_i64_f64 __longlong_as_double\n#define fnx_bits_i32_u32(x) ((uint32_t)(x))\n"
    "#define fnx_bits_u32_i32(x) ((int32_t)(x))\n#define fnx_bits_i64_u64(x) ((uint64_t)(x))\n"
    "#define fnx_bits_u64_i64(x) ((int64_t)(x))\n"
    "__device__ inline void fnx_fail(uint64_t word, uint32_t site, uint32_t node, int64_t index, int64_t limit) {\n"
    "    if (atomicCAS((int *)word, 0, -4) != 0) return;\n"
    "    ((uint32_t *)word)[1] = site, ((uint32_t *)word)[2] = node;\n"
    "    ((int64_t *)word)[2] = index, ((int64_t *)word)[3] = limit;\n}\n";

static void begin(kir_text *t, const kir *k, const char *entry) {
    kir_put(t, "%s%s%sstruct fnx_args {\n", prelude, kir_poly_text, functions);
    kir_put_args(t, k, &kir_dialect_cuda);
    kir_put(t, "};\nextern \"C\" __global__ void __launch_bounds__(%u) %s(const struct fnx_args args) {",
            k->threads[0] * k->threads[1] * k->threads[2], entry);
}

static void end(kir_text *t, const kir *k) {
    (void)k;
    kir_put(t, "\n}\n");
}

static void buffer(kir_text *t, const kir *k, kir_value b) {
    const kir_insn *x = &k->insn[b];
    const char *type = x->type == KIR_BOOL || x->type == KIR_U8 ? "uint8_t" : kir_dialect_cuda.type[x->type];
    const char *constant = x->flag & KIR_READ_ONLY ? "const " : "";
    kir_put(t, "%s%s *v%d = (%s%s *)ARG(a%" PRId64 ");", constant, type, (int)b, constant, type, x->imm);
}

static void element(kir_text *t, const kir *k, kir_value b, kir_value index) {
    kir_put(t, "v%d[", (int)b), kir_put_index(t, k, index), kir_put(t, "]");
}

const kir_dialect kir_dialect_cuda = {
    .type = {"void", "bool", "uint32_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double"},
    .memory_bool = "uint8_t",
    .begin = begin,
    .end = end,
    .buffer = buffer,
    .element = element,
    .shared = "__shared__ ",
    .barrier = "__syncthreads();",
    .atomic_add = "atomicAdd",
    .atomic_pointer = true,
    .builtin = {"threadIdx.%c", "blockIdx.%c", "gridDim.%c"},
    .unroll = "#pragma unroll",
    .suffix_i64 = "ll",
    .suffix_u64 = "ull",
    .cast = "((%s)%s)",
};
