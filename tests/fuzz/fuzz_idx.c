/* Whatever the bytes, reading an IDX file refuses them with a reason or gives exactly the elements that are there. */
#include "idx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
    do { \
        if (!(condition)) abort(); \
    } while (0)

typedef struct input {
    const uint8_t *data;
    int64_t size, at;
    int64_t fails_at; /* as a broken disk does; < 0: never */
} input;

/* A few bytes at a time: pieces end anywhere. */
static int64_t from_memory(void *user, void *to, int64_t bytes) {
    input *in = user;
    int64_t n = in->size - in->at < 7 ? in->size - in->at : 1 + in->at % 7;
    if (in->fails_at >= 0 && in->at >= in->fails_at) return -1;
    if (n > bytes) n = bytes;
    memcpy(to, in->data + in->at, (size_t)n);
    in->at += n;
    return n;
}

static void check(fnx_status code, const idx_array *a, int rank) {
    int64_t count = 1;
    if (code) {
        MUST(code == FNX_E_FORMAT || code == FNX_E_NO_MEMORY || code == FNX_E_IO);
        MUST(*fnx_last_error()->message && !strchr(fnx_last_error()->message, '\n'));
        MUST(!a->data && !a->count && !a->rank);
        return;
    }
    for (int d = 0; d < rank; d++) count *= a->sizes[d];
    MUST(a->rank == rank && a->data && a->count == count && count <= IDX_LIMIT);
}

static void read_plain(const uint8_t *data, size_t size, int rank, int64_t fails_at) {
    input in = {data, (int64_t)size, 0, fails_at};
    const size_t header = 4 + 4 * (size_t)rank;
    idx_array a;
    fnx_status code = idx_read_from(from_memory, &in, "input", rank, &a);
    check(code, &a, rank);
    MUST(code || (fails_at < 0 && (size_t)a.count + header == size && !memcmp(a.data, data + header, (size_t)a.count)));
    free(a.data);
}

/* As a file, which may also be compressed. */
static void read_file(const uint8_t *data, size_t size, int rank) {
    static int fd = -1;
    static char path[64];
    idx_array a;
    if (fd < 0) {
        fd = memfd_create("idx", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    MUST(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    check(idx_read(path, rank, &a), &a, rank);
    free(a.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int rank = 1; rank <= 4; rank++) {
        read_plain(data, size, rank, -1);
        read_plain(data, size, rank, (int64_t)size / 2);
    }
    const int rank = size > 3 && data[3] >= 1 && data[3] <= 4 ? data[3] : 3;
    read_file(data, size, rank);
    return 0;
}
