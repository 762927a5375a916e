/* Element types: one row each. */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include <fornax-plugin/types.h>
#include <stdbool.h>

typedef enum fnx_dtype_kind {
    FNX_KIND_NONE,
    FNX_KIND_BOOL,
    FNX_KIND_INT,
    FNX_KIND_UINT,
    FNX_KIND_FLOAT,
    FNX_KIND_COMPLEX
} fnx_dtype_kind;

typedef struct fnx_dtype_info {
    const char *name; /* "f32" */
    uint8_t bytes;    /* of one element; 0: no such dtype */
    uint8_t kind;
} fnx_dtype_info;

extern const fnx_dtype_info fnx_dtypes[16];

#define FNX_MASK(dtype) (UINT64_C(1) << (dtype))
#define FNX_MASK_FLOATS (FNX_MASK(FNX_F32) | FNX_MASK(FNX_F64))
#define FNX_MASK_INTS (FNX_MASK(FNX_I32) | FNX_MASK(FNX_I64) | FNX_MASK(FNX_U8))
#define FNX_MASK_NUMBERS (FNX_MASK_FLOATS | FNX_MASK_INTS)
#define FNX_MASK_ANY (FNX_MASK_NUMBERS | FNX_MASK(FNX_BOOL))

static inline bool fnx_dtype_valid(int dtype) { return dtype > 0 && dtype < 16 && fnx_dtypes[dtype].bytes != 0; }
static inline bool fnx_dtype_is_float(int dtype) { return fnx_dtypes[dtype].kind == FNX_KIND_FLOAT; }
static inline const char *fnx_dtype_text(int dtype) { return fnx_dtype_valid(dtype) ? fnx_dtypes[dtype].name : "?"; }

#endif
