/* The vector machine's instructions: loops over at most one strip, compiled once per ISA level. */
#ifndef CPU_VM_LOOPS_H
#define CPU_VM_LOOPS_H

#include <stdint.h>

/* d[i] = f(a[i], b[i], c[i]); an operand that is a scalar is read at [0] only. d may be one of the operands. */
typedef void (*vm_fn)(void *d, const void *a, const void *b, const void *c, int64_t n);

/* Which operands are scalars: bits of `scalars`. dtype: of the first operand (where: of the values); to: of the result
 * (cast). NULL: there is no such instruction; a caller then makes a vector of the scalar. */
typedef vm_fn (*vm_find)(uint16_t op, uint16_t dtype, uint16_t to, unsigned scalars);

vm_fn vm_find_base(uint16_t op, uint16_t dtype, uint16_t to, unsigned scalars);
vm_fn vm_find_avx2(uint16_t op, uint16_t dtype, uint16_t to, unsigned scalars);
vm_fn vm_find_avx512(uint16_t op, uint16_t dtype, uint16_t to, unsigned scalars);

enum { VM_MULADD = 0x7001 }; /* a * b + c, made by the peephole; scalars: bits 1 (b) and 2 (c) */

#endif
