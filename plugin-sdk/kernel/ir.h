/* The kernel compiler's language: a typed loop nest for one thread of a work-group, as a list of instructions.
 *
 * An instruction that makes a value is that value's name. A value is visible from where it is made to the end of its
 * block (the body, or one side of an `if`, or a loop). What changes is a variable or an element of an array. Control
 * is structured and loops count, so a kernel ends. There are no addresses: memory is a buffer of elements of one
 * type and an index.
 *
 * The builder never fails by itself: it stops recording when memory is out or the kernel is too long, and kir_verify
 * says so. */
#ifndef KERNEL_IR_H
#define KERNEL_IR_H

#include <fornax-plugin/kernel.h>
#include <stdbool.h>

typedef enum kir_type {
    KIR_VOID,
    KIR_BOOL,
    KIR_U8, /* in memory only: a load gives u32, a store takes one and keeps its low byte */
    KIR_I32,
    KIR_U32,
    KIR_I64,
    KIR_U64,
    KIR_F32,
    KIR_F64,
    KIR_TYPES
} kir_type;

typedef enum kir_op {
    /* no operands */
    KIR_CONST,   /* imm: bits */
    KIR_ARG,     /* imm: number; see kir_arg */
    KIR_BUILTIN, /* sub: KIR_THREAD, KIR_GROUP, KIR_GROUPS; imm: axis. u32 */
    KIR_BUFFER,  /* imm: number of a u64 argument, its address; type: of the elements; flag: KIR_READ_ONLY */
    /* one operand */
    KIR_NEG,
    KIR_NOT,  /* bool, integers */
    KIR_CAST, /* between bool, integers and floats, as C; float to integer is undefined outside of its range */
    KIR_BITS, /* the same bits as another type of that size */
    KIR_CALL, /* sub: KIR_FN_*; floats */
    KIR_IS_NAN,
    /* two operands of one type */
    KIR_ADD,
    KIR_SUB,
    KIR_MUL,
    KIR_DIV, /* integers truncate; undefined for divisor 0 */
    KIR_REM, /* integers */
    KIR_MIN, /* of numbers: NaN is undefined */
    KIR_MAX,
    KIR_AND, /* bool, integers */
    KIR_OR,
    KIR_XOR,
    KIR_SHL, /* integers; less than their width */
    KIR_SHR,
    KIR_POW,   /* floats */
    KIR_MULHI, /* u32: the high word of the product */
    KIR_EQ,    /* -> bool */
    KIR_NE,
    KIR_LT,
    KIR_LE,
    /* three */
    KIR_SELECT, /* bool, T, T */
    KIR_FMA,    /* a * b + c, rounded once or twice */
    /* memory */
    KIR_LOAD,       /* buffer, index (i32 or i64) */
    KIR_STORE,      /* buffer, index, value */
    KIR_ATOMIC_ADD, /* buffer, index, value: i32 u32; nothing is returned */
    KIR_VAR,        /* a: first value; makes a variable */
    KIR_GET,        /* variable */
    KIR_SET,        /* variable, value */
    KIR_ARRAY,      /* imm: elements; sub: KIR_PRIVATE or KIR_SHARED; contents undefined */
    KIR_READ,       /* array, index (i32) */
    KIR_WRITE,      /* array, index, value */
    /* control */
    KIR_FOR, /* a: first, b: end, imm: step > 0; i32 or i64; the value is the counter; flag: KIR_UNROLL */
    KIR_IF,  /* bool */
    KIR_ELSE,
    KIR_END,
    KIR_BARRIER, /* all threads of the group; work-group memory is then the same for all */
    KIR_FAIL,    /* a: index, b: limit (i64), imm: node: the error word takes it if it is the first */
    KIR_OPS
} kir_op;

enum { KIR_THREAD, KIR_GROUP, KIR_GROUPS }; /* builtins */
enum { KIR_PRIVATE, KIR_SHARED };           /* arrays */
enum { KIR_READ_ONLY = 1, KIR_UNROLL = 2 }; /* flags */
enum { KIR_MAX_INSNS = 1 << 16, KIR_MAX_ARGS = 256, KIR_MAX_DEPTH = 32 };

typedef enum kir_fn { /* functions of floats */
                      KIR_FN_EXP,
                      KIR_FN_LOG,
                      KIR_FN_SQRT,
                      KIR_FN_TANH,
                      KIR_FN_SIGMOID,
                      KIR_FN_ERF,
                      KIR_FN_SIN,
                      KIR_FN_COS,
                      KIR_FN_ABS,
                      KIR_FN_TRUNC,
                      KIR_FN_FLOOR,
                      KIR_FNS
} kir_fn;

typedef int32_t kir_value; /* number of an instruction */
enum { KIR_NO_VALUE = -1 };

typedef struct kir_insn {
    uint8_t op, type, sub, flag;
    kir_value a, b, c;
    int64_t imm;
} kir_insn;

/* Arguments are 4 or 8 bytes wide: i32, u32, i64, u64, f32, f64. Number 0 is the address of the error word, 1 the
 * site. */
typedef struct kir_arg {
    uint8_t type;
    uint32_t offset; /* in the argument block; set by kir_finish */
} kir_arg;

typedef struct kir {
    kir_insn *insn;
    int32_t n, capacity;
    kir_arg arg[KIR_MAX_ARGS];
    int32_t n_args;
    uint32_t args_bytes;   /* set by kir_finish */
    uint32_t threads[3];   /* of a work-group */
    uint32_t shared_bytes; /* set by kir_finish */
    const char *overflow;  /* why recording stopped, or NULL */
} kir;

enum { KIR_ARG_ERROR = 0, KIR_ARG_SITE = 1 };

void kir_init(kir *k, uint32_t threads_x, uint32_t threads_y, uint32_t threads_z);
void kir_free(kir *k);

/* ---- building ---------------------------------------------------------------------------------------------------- */

int32_t kir_add_arg(kir *k, kir_type type); /* its number, for launches to fill */
kir_value kir_emit(kir *k, kir_insn insn);

kir_value kir_int(kir *k, kir_type type, int64_t value); /* i32 u32 i64 u64 bool */
kir_value kir_float(kir *k, kir_type type, double value);
kir_value kir_arg_value(kir *k, int32_t number);
kir_value kir_buffer(kir *k, kir_type type, int32_t arg, int flag);
kir_value kir_builtin(kir *k, int which, int axis);
kir_value kir_un(kir *k, kir_op op, kir_value a);
kir_value kir_bin(kir *k, kir_op op, kir_value a, kir_value b);
kir_value kir_select(kir *k, kir_value condition, kir_value a, kir_value b);
kir_value kir_fma(kir *k, kir_value a, kir_value b, kir_value c);
kir_value kir_cast(kir *k, kir_type to, kir_value a); /* a itself if it has that type */
kir_value kir_bits(kir *k, kir_type to, kir_value a);
kir_value kir_call(kir *k, kir_fn fn, kir_value a);
kir_value kir_load(kir *k, kir_value buffer, kir_value index);
void kir_store(kir *k, kir_value buffer, kir_value index, kir_value v);
void kir_atomic_add(kir *k, kir_value buffer, kir_value index, kir_value v);
kir_value kir_var(kir *k, kir_value first);
kir_value kir_get(kir *k, kir_value var);
void kir_set(kir *k, kir_value var, kir_value v);
kir_value kir_array(kir *k, kir_type type, int64_t elements, int space);
kir_value kir_read(kir *k, kir_value array, kir_value index);
void kir_write(kir *k, kir_value array, kir_value index, kir_value v);
kir_value kir_for(kir *k, kir_value first, kir_value end, int64_t step, int flag);
void kir_if(kir *k, kir_value condition);
void kir_else(kir *k);
void kir_end(kir *k);
void kir_barrier(kir *k);
void kir_fail(kir *k, uint32_t node, kir_value index, kir_value limit);

/* The type of a value: of its elements for buffers and arrays. */
kir_type kir_type_of(const kir *k, kir_value v);
uint32_t kir_bytes(kir_type type);
extern const char *const kir_type_names[KIR_TYPES];
extern const char *const kir_op_names[KIR_OPS];

/* ---- finishing --------------------------------------------------------------------------------------------------- */

/* Lays out the argument block, adds up work-group memory, and verifies: types, visibility, that control is balanced,
 * that barriers are met by all threads of a group, that constant indexes are inside their arrays. False: `why` says
 * what is wrong. */
bool kir_finish(kir *k, char *why, size_t why_bytes);

/* Source in a dialect; freed by the caller. NULL: no memory. */
char *kir_print(const kir *k, uint32_t dialect, const char *entry);

#endif
