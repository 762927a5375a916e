/* See idx.h. Memory grows with what is really there, not with what the header claims. */
#include "idx.h"

#include "cause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 1 << 20 };

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* All of n bytes, or how many there were. */
static int64_t fill(idx_source source, void *user, uint8_t *to, int64_t n) {
    int64_t done = 0, got;
    while (done < n && (got = source(user, to + done, n - done)) > 0) done += got;
    return done < n && got < 0 ? got : done;
}

static fnx_status read_header(idx_source source, void *user, const char *name, int rank, idx_array *out) {
    uint8_t head[4 + 4 * 4];
    int64_t got = fill(source, user, head, 4 + 4 * rank);
    if (got < 0) return fnx_error_set(FNX_E_FORMAT, "%s: the compressed data is corrupt", name);
    if (got < 4 + 4 * rank) return fnx_error_set(FNX_E_FORMAT, "%s: ends within its header", name);
    if (head[0] || head[1] || head[2] != 8 || head[3] != rank)
        return fnx_error_set(FNX_E_FORMAT,
                             "%s: the magic number is 0x%08x, expected 0x%08x: no IDX file of bytes with %d axes", name,
                             big_endian(head), 0x800u + (unsigned)rank, rank);
    out->rank = rank, out->count = 1;
    for (int d = 0; d < rank; d++) {
        out->sizes[d] = big_endian(head + 4 + 4 * d);
        if (__builtin_mul_overflow(out->count, out->sizes[d], &out->count) || out->count > IDX_LIMIT)
            return fnx_error_set(FNX_E_FORMAT, "%s: its sizes make more than %d bytes", name, (int)IDX_LIMIT);
    }
    return FNX_OK;
}

fnx_status idx_read_from(idx_source source, void *user, const char *name, int rank, idx_array *out) {
    memset(out, 0, sizeof *out);
    fnx_status code = rank < 1 || rank > 4 ? fnx_error_set(FNX_E_INVALID, "%s: %d axes", name, rank)
                                           : read_header(source, user, name, rank, out);
    uint8_t *data = NULL, extra;
    int64_t done = 0;
    while (!code && (done < out->count || !data)) {
        int64_t piece = out->count - done < PIECE ? out->count - done : PIECE, room = done + piece;
        if (done && room < out->count)
            room = done * 2 < out->count ? done * 2 : out->count, piece = room - done; /* doubling */
        void *more = realloc(data, (size_t)room + 1);
        if (!more) code = fnx_error_set(FNX_E_NO_MEMORY, "%s: no host memory for %lld bytes", name, (long long)room);
        else data = more;
        int64_t got = code ? 0 : fill(source, user, data + done, piece);
        if (got < 0) code = fnx_error_set(FNX_E_FORMAT, "%s: the compressed data is corrupt", name);
        else if (!code && got < piece)
            code = fnx_error_set(FNX_E_FORMAT, "%s: ends after %lld of %lld elements", name, (long long)(done + got),
                                 (long long)out->count);
        done += got > 0 ? got : 0;
    }
    if (!code) {
        int64_t got = fill(source, user, &extra, 1);
        if (got != 0)
            code = fnx_error_set(FNX_E_FORMAT,
                                 got < 0 ? "%s: the compressed data is corrupt at its end"
                                         : "%s: has bytes after its last element",
                                 name);
    }
    if (code) {
        free(data);
        memset(out, 0, sizeof *out);
    } else out->data = data;
    return code;
}

/* zlib reports a stream that is cut off as the end of the file; gzclose tells. */
static int64_t from_gzip(void *user, void *to, int64_t bytes) {
    int got = gzread(user, to, (unsigned)(bytes > INT32_MAX ? INT32_MAX : bytes));
    int error = Z_OK;
    if (got == 0) gzerror(user, &error);
    return error != Z_OK && error != Z_STREAM_END ? -1 : got;
}

fnx_status idx_read(const char *path, int rank, idx_array *out) {
    memset(out, 0, sizeof *out);
    errno = 0;
    gzFile f = gzopen(path, "rb");
    if (!f)
        return fnx_error_set(errno == ENOENT ? FNX_E_NOT_FOUND
                             : errno         ? FNX_E_IO
                                             : FNX_E_NO_MEMORY,
                             "%s: %s", path, errno ? strerror(errno) : "no host memory");
    gzbuffer(f, 1 << 17);
    fnx_status code = idx_read_from(from_gzip, f, path, rank, out);
    int closed = gzclose(f);
    if (!code && closed != Z_OK) {
        free(out->data);
        memset(out, 0, sizeof *out);
        code = fnx_error_set(FNX_E_FORMAT, "%s: the compressed data is cut off or corrupt", path);
    }
    return code;
}
