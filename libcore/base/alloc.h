/* Host memory whose sizes cannot overflow. NULL on failure; the caller says what for. Freed with free(). */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *fnx_alloc(size_t bytes); /* 0 bytes: a block all the same */
void *fnx_alloc_array(size_t n, size_t item);
char *fnx_alloc_string(const char *text);
char *fnx_alloc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Makes room for `need` items, doubling. false: no memory, the array is as it was. */
bool fnx_grow(void **array, int64_t *capacity, size_t item, int64_t need);

/* *out = a * b, a + b; false on overflow. */
static inline bool fnx_size_mul(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool fnx_size_add(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

#endif
