/* The tensor: a handle, and the record of the operation that makes its value, in one block.
 *
 * Why one block: recording costs one allocation from a thread's slab and a repeated step reuses the same memory. While
 * a record is pending its graph holds the tensor, so operand links carry no counts; they get them (FNX_T_LINKED) only
 * if the tensor outlives its flush without being stored, or its tape lives on. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include "base/error.h"
#include "memory/storage.h"

#include <fornax/tensor.h>
#include <string.h>

typedef struct fnx_recorder fnx_recorder;

/* Order matters: an operand is usable as it is while state <= FNX_STORED. */
enum {
    FNX_PENDING,    /* in the graph of `owner` */
    FNX_STORED,     /* has storage */
    FNX_EVAPORATED, /* a name: its flush fused it away; used again it is recorded again */
    FNX_DONATED,    /* an update overwrote its storage */
    FNX_FAILED      /* has an error instead of a value */
};

/* Order of axes in storage, packed: last axis fastest, or axis 1 fastest ([n, h, w, c] for [n, c, h, w]). */
enum { FNX_ROW_MAJOR = 0, FNX_CHANNELS_LAST = 1 };

enum {                     /* fnx_tensor.flags */
       FNX_T_KEEP = 1,     /* fnx_keep: stored by the next flush */
       FNX_T_GRAD = 2,     /* requires grad */
       FNX_T_CONSUMED = 4, /* its tape was used by a backward */
       FNX_T_LEAF = 8,     /* its tape ends here */
       FNX_T_LINKED = 16,  /* holds references to its operands */
       FNX_T_PINNED = 32,  /* its tape holds what the gradient reads */
       FNX_T_SPILLED = 64, /* operands, attributes and scalars are in `spill` */
       FNX_T_COLD = 128    /* the last cache line is in use */
};

enum { FNX_INLINE_OPERANDS = 3, FNX_INLINE_ATTR_BYTES = 16, FNX_INLINE_SCALARS = 2, FNX_NAME_BYTES = 48 };

/* A record too long for the block; one allocation, owned by the tensor. */
typedef struct fnx_spill {
    fnx_tensor **in;
    void *attr;
    uint64_t *scalar;
} fnx_spill;

struct fnx_tensor {
    /* first line: what every use reads */
    int32_t refs;    /* handles + graph + slots + links; the block lives while > 0 (atomic) */
    int32_t handles; /* scope entries and retains: somebody can still name it */
    int32_t strong;  /* retains, slots, pins of the tape: the value must exist and is not overwritten */
    uint8_t state, dtype, rank, flags;
    uint16_t op;         /* FNX_OP_*; FNX_OP_NONE: no record (host data) */
    uint16_t n_operands; /* scalar operands included */
    int32_t id;          /* in the graph `epoch` of `owner`: >= 0 record, < 0: ~number of an input */
    uint32_t epoch;
    uint8_t scalar_mask, n_scalars, attr_bytes;
    uint8_t layout;      /* of storage: FNX_ROW_MAJOR, FNX_CHANNELS_LAST */
    fnx_recorder *owner; /* NULL: failed before it had one */
    union {
        fnx_storage *storage;
        fnx_error *error;
        fnx_tensor *next_free;
    };
    int64_t count;
    fnx_device *device; /* the handle it was made with; kept alive by the hardware */

    /* second line */
    int64_t size[FNX_MAX_RANK];

    /* third line: the record */
    union {
        struct {
            fnx_tensor *in[FNX_INLINE_OPERANDS]; /* NULL where the operand is a scalar */
            uint64_t attr[FNX_INLINE_ATTR_BYTES / 8];
            uint64_t scalar[FNX_INLINE_SCALARS]; /* bits: double for float operands, int64_t or uint64_t for others */
        };
        fnx_spill *spill;
    };
    fnx_variable *variable; /* the slot this is or was the value of */

    /* fourth line, cold: valid only with FNX_T_COLD */
    fnx_tensor *grad; /* while a backward runs */
    uint32_t visit;
    char name[FNX_NAME_BYTES];
    uint32_t reserved;
};

_Static_assert(sizeof(fnx_tensor) == 256, "a tensor is four cache lines");

enum { FNX_OP_NONE = 0 };

/* ---- the record -------------------------------------------------------------------------------------------------- */

static inline fnx_tensor *const *fnx_operands(const fnx_tensor *t) {
    return t->flags & FNX_T_SPILLED ? t->spill->in : t->in;
}
static inline fnx_tensor *fnx_operand(const fnx_tensor *t, int k) { return fnx_operands(t)[k]; }
static inline const void *fnx_attr(const fnx_tensor *t) { return t->flags & FNX_T_SPILLED ? t->spill->attr : t->attr; }
static inline const uint64_t *fnx_scalars(const fnx_tensor *t) {
    return t->flags & FNX_T_SPILLED ? t->spill->scalar : t->scalar;
}

/* Scalars travel as 64 bits. */
static inline uint64_t fnx_bits_of_double(double d) {
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}
static inline double fnx_double_of_bits(uint64_t u) {
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* Another thread's flush may change the state of what this thread recorded. */
static inline int fnx_state(const fnx_tensor *t) { return __atomic_load_n(&t->state, __ATOMIC_ACQUIRE); }
static inline void fnx_set_state(fnx_tensor *t, int state) {
    __atomic_store_n(&t->state, (uint8_t)state, __ATOMIC_RELEASE);
}

/* ---- failing ----------------------------------------------------------------------------------------------------- */

/* Makes t a failed tensor with this cause; the thread's last error stays as it is. Returns code. */
fnx_status fnx_tensor_fail(fnx_tensor *t, fnx_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Makes y failed with x's cause. */
void fnx_tensor_fail_like(fnx_tensor *y, const fnx_tensor *cause);
/* Makes y failed with the cause why the device could not be opened. */
void fnx_tensor_fail_device(fnx_tensor *y, const fnx_device *device);
/* The failed tensor for when there is no memory for tensors. */
fnx_tensor *fnx_tensor_none(void);
/* A new failed tensor in the innermost scope. */
fnx_tensor *fnx_tensor_failed(fnx_status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "f32[64,784]" or "w f32[64,784]" if named; returns `out`. */
enum { FNX_DESCRIBE_BYTES = 160 };
const char *fnx_tensor_describe(const fnx_tensor *t, char out[FNX_DESCRIBE_BYTES]);

#endif
