/* See ir.h: building. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

const char *const kir_type_names[KIR_TYPES] = {"void", "bool", "u8", "i32", "u32", "i64", "u64", "f32", "f64"};

const char *const kir_op_names[KIR_OPS] = {"const",  "arg",     "builtin", "buffer", "neg",        "not", "cast",
                                           "bits",   "call",    "is_nan",  "add",    "sub",        "mul", "div",
                                           "rem",    "min",     "max",     "and",    "or",         "xor", "shl",
                                           "shr",    "pow",     "mulhi",   "eq",     "ne",         "lt",  "le",
                                           "select", "fma",     "load",    "store",  "atomic_add", "var", "get",
                                           "set",    "array",   "read",    "write",  "for",        "if",  "else",
                                           "end",    "barrier", "fail"};

uint32_t kir_bytes(kir_type type) {
    static const uint8_t bytes[KIR_TYPES] = {0, 1, 1, 4, 4, 8, 8, 4, 8};
    return bytes[type];
}

void kir_init(kir *k, uint32_t threads_x, uint32_t threads_y, uint32_t threads_z) {
    memset(k, 0, sizeof *k);
    k->threads[0] = threads_x, k->threads[1] = threads_y, k->threads[2] = threads_z;
    (void)kir_add_arg(k, KIR_U64);
    (void)kir_add_arg(k, KIR_U32);
}

void kir_free(kir *k) {
    free(k->insn);
    k->insn = NULL;
}

int32_t kir_add_arg(kir *k, kir_type type) {
    if (k->n_args == KIR_MAX_ARGS) {
        k->overflow = "too many arguments";
        return 0;
    }
    k->arg[k->n_args] = (kir_arg){(uint8_t)type, 0};
    return k->n_args++;
}

kir_value kir_emit(kir *k, kir_insn insn) {
    if (k->n == k->capacity) {
        int32_t capacity = k->capacity * 2 + 256;
        kir_insn *more =
            k->overflow || capacity > KIR_MAX_INSNS ? NULL : realloc(k->insn, sizeof *more * (size_t)capacity);
        if (!more) {
            if (!k->overflow) k->overflow = capacity > KIR_MAX_INSNS ? "the kernel is too long" : "no host memory";
            return KIR_NO_VALUE;
        }
        k->insn = more, k->capacity = capacity;
    }
    k->insn[k->n] = insn;
    return k->n++;
}

kir_type kir_type_of(const kir *k, kir_value v) {
    if (v < 0 || v >= k->n) return KIR_VOID;
    return (kir_type)k->insn[v].type;
}

static kir_value emit(kir *k, kir_op op, kir_type type, kir_value a, kir_value b, kir_value c, int64_t imm) {
    return kir_emit(k, (kir_insn){.op = (uint8_t)op, .type = (uint8_t)type, .a = a, .b = b, .c = c, .imm = imm});
}

enum { NO = KIR_NO_VALUE };

kir_value kir_int(kir *k, kir_type type, int64_t value) { return emit(k, KIR_CONST, type, NO, NO, NO, value); }

kir_value kir_float(kir *k, kir_type type, double value) {
    int64_t bits = 0;
    float narrow = (float)value;
    if (type == KIR_F32) memcpy(&bits, &narrow, sizeof narrow);
    else memcpy(&bits, &value, sizeof value);
    return emit(k, KIR_CONST, type, NO, NO, NO, bits);
}

kir_value kir_arg_value(kir *k, int32_t number) {
    return emit(k, KIR_ARG, (kir_type)k->arg[number].type, NO, NO, NO, number);
}

kir_value kir_buffer(kir *k, kir_type type, int32_t arg, int flag) {
    return kir_emit(k, (kir_insn){.op = KIR_BUFFER,
                                  .type = (uint8_t)type,
                                  .flag = (uint8_t)flag,
                                  .a = NO,
                                  .b = NO,
                                  .c = NO,
                                  .imm = arg});
}

kir_value kir_builtin(kir *k, int which, int axis) {
    return kir_emit(
        k,
        (kir_insn){.op = KIR_BUILTIN, .type = KIR_U32, .sub = (uint8_t)which, .a = NO, .b = NO, .c = NO, .imm = axis});
}

kir_value kir_un(kir *k, kir_op op, kir_value a) {
    return emit(k, op, op == KIR_IS_NAN ? KIR_BOOL : kir_type_of(k, a), a, NO, NO, 0);
}

kir_value kir_bin(kir *k, kir_op op, kir_value a, kir_value b) {
    bool compares = op >= KIR_EQ && op <= KIR_LE;
    return emit(k, op, compares ? KIR_BOOL : kir_type_of(k, a), a, b, NO, 0);
}

kir_value kir_select(kir *k, kir_value condition, kir_value a, kir_value b) {
    return emit(k, KIR_SELECT, kir_type_of(k, a), condition, a, b, 0);
}

kir_value kir_fma(kir *k, kir_value a, kir_value b, kir_value c) {
    return emit(k, KIR_FMA, kir_type_of(k, a), a, b, c, 0);
}

kir_value kir_cast(kir *k, kir_type to, kir_value a) {
    return kir_type_of(k, a) == to ? a : emit(k, KIR_CAST, to, a, NO, NO, 0);
}

kir_value kir_bits(kir *k, kir_type to, kir_value a) { return emit(k, KIR_BITS, to, a, NO, NO, 0); }

kir_value kir_call(kir *k, kir_fn fn, kir_value a) {
    return kir_emit(
        k,
        (kir_insn){.op = KIR_CALL, .type = (uint8_t)kir_type_of(k, a), .sub = (uint8_t)fn, .a = a, .b = NO, .c = NO});
}

/* Bytes are u32 outside of memory. */
static kir_type loaded(kir_type memory) { return memory == KIR_U8 ? KIR_U32 : memory; }

kir_value kir_load(kir *k, kir_value buffer, kir_value index) {
    return emit(k, KIR_LOAD, loaded(kir_type_of(k, buffer)), buffer, index, NO, 0);
}

void kir_store(kir *k, kir_value buffer, kir_value index, kir_value v) {
    (void)emit(k, KIR_STORE, KIR_VOID, buffer, index, v, 0);
}

void kir_atomic_add(kir *k, kir_value buffer, kir_value index, kir_value v) {
    (void)emit(k, KIR_ATOMIC_ADD, KIR_VOID, buffer, index, v, 0);
}

kir_value kir_var(kir *k, kir_value first) { return emit(k, KIR_VAR, kir_type_of(k, first), first, NO, NO, 0); }
kir_value kir_get(kir *k, kir_value var) { return emit(k, KIR_GET, kir_type_of(k, var), var, NO, NO, 0); }
void kir_set(kir *k, kir_value var, kir_value v) { (void)emit(k, KIR_SET, KIR_VOID, var, v, NO, 0); }

kir_value kir_array(kir *k, kir_type type, int64_t elements, int space) {
    return kir_emit(k, (kir_insn){.op = KIR_ARRAY,
                                  .type = (uint8_t)type,
                                  .sub = (uint8_t)space,
                                  .a = NO,
                                  .b = NO,
                                  .c = NO,
                                  .imm = elements});
}

kir_value kir_read(kir *k, kir_value array, kir_value index) {
    return emit(k, KIR_READ, kir_type_of(k, array), array, index, NO, 0);
}

void kir_write(kir *k, kir_value array, kir_value index, kir_value v) {
    (void)emit(k, KIR_WRITE, KIR_VOID, array, index, v, 0);
}

kir_value kir_for(kir *k, kir_value first, kir_value end, int64_t step, int flag) {
    return kir_emit(k, (kir_insn){.op = KIR_FOR,
                                  .type = (uint8_t)kir_type_of(k, first),
                                  .flag = (uint8_t)flag,
                                  .a = first,
                                  .b = end,
                                  .c = NO,
                                  .imm = step});
}

void kir_if(kir *k, kir_value condition) { (void)emit(k, KIR_IF, KIR_VOID, condition, NO, NO, 0); }
void kir_else(kir *k) { (void)emit(k, KIR_ELSE, KIR_VOID, NO, NO, NO, 0); }
void kir_end(kir *k) { (void)emit(k, KIR_END, KIR_VOID, NO, NO, NO, 0); }
void kir_barrier(kir *k) { (void)emit(k, KIR_BARRIER, KIR_VOID, NO, NO, NO, 0); }

void kir_fail(kir *k, uint32_t node, kir_value index, kir_value limit) {
    (void)emit(k, KIR_FAIL, KIR_VOID, index, limit, NO, node);
}
