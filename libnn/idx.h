/* IDX files: big-endian magic {0, 0, type, rank}, rank sizes of 4 bytes, then the elements. Read through zlib, which
 * also takes files that are not compressed. */
#ifndef LIBNN_IDX_H
#define LIBNN_IDX_H

#include <fornax/base.h>

typedef struct idx_array {
    int rank;
    int64_t sizes[4];
    int64_t count; /* bytes: elements of u8 */
    uint8_t *data; /* malloc */
} idx_array;

enum { IDX_LIMIT = 1 << 30 }; /* bytes after decompression: a hostile file is cut off there */

/* Errors: FNX_E_NOT_FOUND, FNX_E_IO, FNX_E_FORMAT, FNX_E_NO_MEMORY; *out is zeroed then. */
fnx_status idx_read(const char *path, int rank, idx_array *out);

/* The same from a function like read(2): bytes given, 0 at the end, negative on failure. */
typedef int64_t (*idx_source)(void *user, void *to, int64_t bytes);
fnx_status idx_read_from(idx_source source, void *user, const char *name, int rank, idx_array *out);

#endif
