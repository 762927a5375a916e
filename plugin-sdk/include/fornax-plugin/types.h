/* The words every part of the plugin ABI uses: codes, dtypes, limits, and the macros that make structs extensible.
 *
 * Why macros and fixed-width integers: a struct that crosses the border has the same bytes in C17, C++17, and in a
 * library built next year. Therefore no enum, bool, long or bit-field in a struct, no implicit padding, and growth only
 * at the end. Anonymous enums below only name constants. Needs nothing but the freestanding headers. */
#ifndef FORNAX_PLUGIN_TYPES_H
#define FORNAX_PLUGIN_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "the fornax plugin ABI is defined for 64-bit pointers"
#endif

/* True if the struct behind `p` was built with a header that already had `member`. Never compare struct_size itself. */
#define FNX_HAS(type, p, member) \
    ((p)->struct_size >= (uint32_t)(offsetof(type, member) + sizeof(((const type *)0)->member)))

/* Element `i` of an array of structs whose writer may have used a longer struct than this header knows. */
#define FNX_AT(type, base, stride, i) \
    ((const type *)(const void *)((const char *)(base) + (size_t)(i) * (size_t)(stride)))

#define FNX_MAX_RANK 8u
#define FNX_NONE UINT32_MAX /* "no such index" */

/* Canonical codes, negative; 0 is success. Each says when to use it instead of its neighbour. */
enum {
    FNX_OK = 0,
    FNX_E_INVALID = -1,      /* the caller broke the contract of the call, and none of the next four says it better */
    FNX_E_DECLINED = -2,     /* an expected "not by me": the host tries something else, nobody is told an error */
    FNX_E_NO_MEMORY = -3,    /* device or host exhausted or over its limit, after pools gave back what they could */
    FNX_E_INDEX = -4,        /* an index (or an integer divisor of 0) on the device; found at the next read or sync */
    FNX_E_DEVICE_LOST = -5,  /* nothing on this device works any more */
    FNX_E_INTERNAL = -6,     /* our own or a plugin's failure: a bug, never the caller's */
    FNX_E_SHAPE = -7,        /* sizes, ranks or axes that do not fit together, or overflow */
    FNX_E_DTYPE = -8,        /* element types that do not fit together or that the op does not take */
    FNX_E_DEVICE = -9,       /* operands on two devices */
    FNX_E_GRADIENT = -10,    /* no gradient: no autodiff on the device, nothing requires one, or the tape was used */
    FNX_E_LOST = -11,        /* a lent value that an update overwrote; the message names fnx_keep */
    FNX_E_NOT_FOUND = -12,   /* no such plugin, device, file or name */
    FNX_E_PLUGIN = -13,      /* a plugin that was rejected or failed to load; the message says why */
    FNX_E_IO = -14,          /* the operating system refused to read or write */
    FNX_E_FORMAT = -15,      /* data that is not what it claims to be: truncated, corrupt, of another kind */
    FNX_E_UNSUPPORTED = -16, /* right, but nothing here can run it (no kernel, no decomposition, fallback forbidden) */
    FNX_E_FORKED = -17,      /* a device used in a forked child */
    FNX_E_CANCELLED = -18    /* stopped on request */
};

/* A mask over dtypes is (1 << code) in 64 bits. Codes are permanent. */
enum {
    FNX_BOOL = 1, FNX_I8 = 2, FNX_I16 = 3, FNX_I32 = 4, FNX_I64 = 5, FNX_U8 = 6, FNX_U16 = 7, FNX_U32 = 8, FNX_U64 = 9,
    FNX_F16 = 10, FNX_BF16 = 11, FNX_F32 = 12, FNX_F64 = 13, FNX_C64 = 14, FNX_C128 = 15
};

/* One scalar of any dtype, which is said elsewhere (fnx_scalar_slot, fnx_value): as many bytes as the dtype has, little
 * endian, from bits[0] on (f32: 4 bytes, not a double; bool: 0 or 1); a complex number has its imaginary part in
 * bits[1]. Bytes beyond those are unspecified. 16 bytes whatever the dtype, so that an array of them can also live in
 * device memory. */
typedef struct fnx_scalar {
    uint64_t bits[2];
} fnx_scalar;

#endif
