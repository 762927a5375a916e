/* A fast 128-bit hash of bytes. Not for secrets: whoever compares in full may use it as a key. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Mixes the bytes into h, which may come from an earlier call. */
void fnx_hash128(const void *data, size_t bytes, uint64_t h[2]);

#endif
