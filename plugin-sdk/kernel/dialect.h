/* What differs between the languages that kernels are printed in. */
#ifndef KERNEL_DIALECT_H
#define KERNEL_DIALECT_H

#include "ir.h"

typedef struct kir_text { /* grows; broken when memory ran out */
    char *at;
    size_t n, capacity;
    bool broken;
} kir_text;

void kir_put(kir_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct kir_dialect {
    const char *type[KIR_TYPES]; /* in memory and registers; of bool: in registers */
    const char *memory_bool;     /* the type of a byte */
    /* Text before the kernel: functions of floats, the error word, the argument block. */
    void (*begin)(kir_text *t, const kir *k, const char *entry);
    void (*end)(kir_text *t, const kir *k);
    void (*buffer)(kir_text *t, const kir *k, kir_value buffer); /* its declaration */
    /* An element as text: buffer and index, to be read or assigned. */
    void (*element)(kir_text *t, const kir *k, kir_value buffer, kir_value index);
    const char *shared;     /* before the declaration of an array of the work-group */
    bool shared_outside;    /* and whether that stands before the kernel */
    const char *barrier;    /* statement */
    const char *atomic_add; /* name; gets pointer or element, and value */
    bool atomic_pointer;
    const char *builtin[3]; /* with %c for the axis */
    const char *unroll;     /* before a loop */
    const char *suffix_i64, *suffix_u64;
    const char *cast; /* with two %s: type, value */
} kir_dialect;

extern const kir_dialect kir_dialect_c, kir_dialect_cuda, kir_dialect_glsl;
const kir_dialect *kir_dialect_of(uint32_t dialect); /* or NULL */

void kir_put_args(kir_text *t, const kir *k, const kir_dialect *d); /* members of the argument block */
void kir_put_index(kir_text *t, const kir *k, kir_value index);     /* as the text of an index */

/* The polynomials of poly.h, with the macros of that file undefined, and those of poly64.h for GLSL, likewise. */
extern const char kir_poly_text[], kir_poly64_text[];

#endif
