/* safetensors: u64 length (little endian) of a JSON header, the header, the data. The header maps names to {dtype,
 * shape, data_offsets}, and "__metadata__" to texts. (Format section of the safetensors README,
 * huggingface/safetensors.)
 *
 * Reading is strict: what overlaps, leaves gaps, lies outside or has another size than its shape is refused. */
#include "cause.h"

#include <errno.h>
#include <fcntl.h>
#include <fornax/nn/checkpoint.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000, HEADER_ALIGN = 64, DEPTH_MAX = 4 };

struct fnx_safetensors {
    cause cause;
    bool is_static;
    char name[PATH_MAX];
    void *map;
    size_t map_size;
    const uint8_t *data; /* after the header */
    uint64_t data_size;
    json_t *header; /* owns the names */
    fnx_safetensor *tensors;
    int n;
};

static const struct {
    const char *text;
    int dtype, bytes;
} dtypes[] = {
    {"BOOL", FNX_BOOL, 1}, {"U8", FNX_U8, 1},     {"I8", FNX_I8, 1},   {"U16", FNX_U16, 2}, {"I16", FNX_I16, 2},
    {"F16", FNX_F16, 2},   {"BF16", FNX_BF16, 2}, {"U32", FNX_U32, 4}, {"I32", FNX_I32, 4}, {"F32", FNX_F32, 4},
    {"U64", FNX_U64, 8},   {"I64", FNX_I64, 8},   {"F64", FNX_F64, 8},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static fnx_status bad(const fnx_safetensors *f, const char *tensor, const char *what) {
    char text[320];
    snprintf(text, sizeof text, "%s%.80s%s%s", *tensor ? "tensor '" : "", tensor, *tensor ? "': " : "", what);
    make_printable(text);
    return fnx_error_set(FNX_E_FORMAT, "%s: %s", f->name, text);
}

static fnx_status read_shape(const fnx_safetensors *f, fnx_safetensor *t, const json_t *shape, int item) {
    size_t i;
    json_t *size;
    uint64_t bytes = (uint64_t)item;
    bool overflow = false;
    if (!json_is_array(shape) || json_array_size(shape) > FNX_MAX_RANK)
        return bad(f, t->name, "its shape is no list of at most 8 sizes");
    t->rank = (int)json_array_size(shape);
    json_array_foreach(shape, i, size) {
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return bad(f, t->name, "its shape has a size that is no whole number");
        t->sizes[i] = json_integer_value(size);
        overflow |= __builtin_mul_overflow(bytes, (uint64_t)t->sizes[i], &bytes);
    }
    if (overflow) return bad(f, t->name, "the product of its sizes overflows");
    t->bytes = bytes;
    return FNX_OK;
}

static fnx_status read_tensor(fnx_safetensors *f, const char *name, const json_t *value, fnx_safetensor *t) {
    const json_t *dtype = json_object_get(value, "dtype"), *offsets = json_object_get(value, "data_offsets");
    int row = -1;
    t->name = name;
    if (!json_is_object(value) || json_object_size(value) != 3)
        return bad(f, name, "needs dtype, shape and data_offsets, nothing else");
    for (int i = 0; i < DTYPES && json_is_string(dtype); i++)
        if (!strcmp(dtypes[i].text, json_string_value(dtype))) row = i;
    if (row < 0) return bad(f, name, "its dtype is not known");
    t->dtype = dtypes[row].dtype;
    TRY(read_shape(f, t, json_object_get(value, "shape"), dtypes[row].bytes));
    const json_t *from = json_array_get(offsets, 0), *to = json_array_get(offsets, 1);
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return bad(f, name, "data_offsets must be two whole numbers");
    json_int_t begin = json_integer_value(from), end = json_integer_value(to);
    if (begin < 0 || end < begin || (uint64_t)end > f->data_size)
        return bad(f, name, "its data lies outside of the file");
    if ((uint64_t)(end - begin) != t->bytes) return bad(f, name, "its data has another size than its dtype and shape");
    t->data = f->data + begin;
    return FNX_OK;
}

static int by_place(const void *a, const void *b) {
    const fnx_safetensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) : strcmp(x->name, y->name); /* empty ones first */
}

static fnx_status check_places(const fnx_safetensors *f) {
    const uint8_t *at = f->data;
    for (int i = 0; i < f->n; i++) {
        const fnx_safetensor *t = &f->tensors[i];
        if ((const uint8_t *)t->data < at) return bad(f, t->name, "its data overlaps with another tensor's");
        if ((const uint8_t *)t->data > at) return bad(f, t->name, "there is a gap before its data");
        at += t->bytes;
    }
    return at == f->data + f->data_size ? FNX_OK : bad(f, "", "there are bytes that belong to no tensor");
}

static fnx_status check_metadata(const fnx_safetensors *f, const json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return bad(f, "", "__metadata__ is no object");
    json_object_foreach((json_t *)metadata, key,
                        value) if (!json_is_string(value)) return bad(f, "",
                                                                      "__metadata__ has a value that is no text");
    return FNX_OK;
}

/* Brackets may nest as deep as the format needs; deeper ones would only cost the parser's stack. */
static bool too_deep(const char *text, size_t size) {
    int depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < size; i++) {
        if (in_text) {
            if (text[i] == '\\') i++;
            else in_text = text[i] != '"';
        } else if (text[i] == '"') in_text = true;
        else if (text[i] == '{' || text[i] == '[') {
            if (++depth > DEPTH_MAX) return true;
        } else depth -= text[i] == '}' || text[i] == ']';
    }
    return false;
}

static fnx_status parse(fnx_safetensors *f, const uint8_t *bytes, size_t size) {
    uint64_t length = 0;
    json_error_t error;
    if (size < 8) return bad(f, "", "ends within the length of its header");
    for (int i = 0; i < 8; i++) length |= (uint64_t)bytes[i] << 8 * i;
    if (length > HEADER_MAX) return bad(f, "", "its header is longer than 100 MB: no safetensors file");
    if (length > size - 8) return bad(f, "", "ends within its header");
    if (too_deep((const char *)bytes + 8, (size_t)length)) return bad(f, "", "its header is nested too deep");
    f->data = bytes + 8 + length, f->data_size = size - 8 - length;
    f->header = json_loadb((const char *)bytes + 8, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(f->header)) return bad(f, "", f->header ? "its header is no JSON object" : error.text);
    f->tensors = calloc(json_object_size(f->header) + 1, sizeof *f->tensors);
    if (!f->tensors) return fnx_error_set(FNX_E_NO_MEMORY, "%s: no host memory for its header", f->name);
    const char *name;
    json_t *value;
    json_object_foreach(f->header, name, value) {
        if (!strcmp(name, "__metadata__")) TRY(check_metadata(f, value));
        else {
            TRY(read_tensor(f, name, value, &f->tensors[f->n]));
            f->n++;
        }
    }
    qsort(f->tensors, (size_t)f->n, sizeof *f->tensors, by_place);
    return check_places(f);
}

static fnx_safetensors *new_file(const char *name) {
    static fnx_safetensors none = {.is_static = true, .cause = {FNX_E_NO_MEMORY, "no host memory for a file"}};
    fnx_safetensors *f = calloc(1, sizeof *f);
    if (!f) return &none;
    snprintf(f->name, sizeof f->name, "%s", name);
    return f;
}

fnx_safetensors *fnx_safetensors_from(const void *bytes, size_t size, const char *name) {
    fnx_safetensors *f = new_file(name);
    if (!f->is_static) cause_take(&f->cause, parse(f, bytes, size));
    return f;
}

static fnx_status map_file(fnx_safetensors *f) {
    struct stat s;
    int fd = open(f->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fnx_error_set(errno == ENOENT ? FNX_E_NOT_FOUND : FNX_E_IO, "%s: %s", f->name, strerror(errno));
    fnx_status code = FNX_OK;
    if (fstat(fd, &s)) code = fnx_error_set(FNX_E_IO, "%s: %s", f->name, strerror(errno));
    else if (!S_ISREG(s.st_mode)) code = fnx_error_set(FNX_E_FORMAT, "%s: is no regular file", f->name);
    else if (s.st_size < 8) code = bad(f, "", "ends within the length of its header");
    else {
        f->map_size = (size_t)s.st_size;
        f->map = mmap(NULL, f->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (f->map == MAP_FAILED) f->map = NULL, code = fnx_error_set(FNX_E_IO, "%s: %s", f->name, strerror(errno));
    }
    close(fd);
    return code;
}

fnx_safetensors *fnx_safetensors_open(const char *path) {
    fnx_safetensors *f = new_file(path ? path : "(null)");
    if (f->is_static) return f;
    fnx_status code = path ? map_file(f) : fnx_error_set(FNX_E_INVALID, "safetensors_open: the path is NULL");
    if (!code) code = parse(f, f->map, f->map_size);
    cause_take(&f->cause, code);
    return f;
}

void fnx_safetensors_close(fnx_safetensors *f) {
    if (!f || f->is_static) return;
    json_decref(f->header);
    if (f->map) munmap(f->map, f->map_size);
    free(f->tensors);
    free(f);
}

fnx_status fnx_safetensors_status(const fnx_safetensors *f) {
    return f ? cause_raise(&f->cause) : fnx_error_set(FNX_E_INVALID, "the file is NULL");
}
int fnx_safetensors_count(const fnx_safetensors *f) { return f && !f->cause.code ? f->n : 0; }
const fnx_safetensor *fnx_safetensors_at(const fnx_safetensors *f, int i) {
    return i >= 0 && i < fnx_safetensors_count(f) ? &f->tensors[i] : NULL;
}

const fnx_safetensor *fnx_safetensors_find(const fnx_safetensors *f, const char *name) {
    for (int i = 0; i < fnx_safetensors_count(f); i++)
        if (!strcmp(f->tensors[i].name, name)) return &f->tensors[i];
    return NULL;
}

const char *fnx_safetensors_metadata(const fnx_safetensors *f, const char *key) {
    return f && !f->cause.code ? json_string_value(json_object_get(json_object_get(f->header, "__metadata__"), key))
                               : NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *header_of(const fnx_safetensor *tensors, int n, const fnx_text_pair *metadata) {
    json_t *header = json_object(), *texts = json_object();
    uint64_t at = 0;
    bool ok = header && texts;
    for (const fnx_text_pair *m = metadata; ok && m && m->key; m++)
        ok = !json_object_set_new(texts, m->key, json_string(m->value));
    ok = ok && !json_object_set(header, "__metadata__", texts);
    for (int i = 0; i < n && ok; i++) {
        const fnx_safetensor *t = &tensors[i];
        const char *dtype = NULL;
        json_t *shape = json_array();
        for (int k = 0; k < DTYPES; k++)
            if (dtypes[k].dtype == t->dtype) dtype = dtypes[k].text;
        for (int d = 0; d < t->rank; d++) json_array_append_new(shape, json_integer(t->sizes[d]));
        ok = dtype && !json_object_get(header, t->name) &&
             !json_object_set_new(header, t->name,
                                  json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", shape, "data_offsets",
                                            (json_int_t)at, (json_int_t)(at + t->bytes)));
        at += t->bytes;
    }
    json_decref(texts);
    if (ok) return header;
    json_decref(header);
    return NULL;
}

static bool write_all(int fd, const void *data, uint64_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(fd, p, bytes > INT32_MAX ? INT32_MAX : (size_t)bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n == 0) errno = ENOSPC;
            return false;
        }
        p += n, bytes -= (uint64_t)n;
    }
    return true;
}

static bool write_file(int fd, const char *text, size_t length, const fnx_safetensor *tensors, int n) {
    static const char spaces[HEADER_ALIGN] = "                                                                ";
    size_t padded = (8 + length + HEADER_ALIGN - 1) / HEADER_ALIGN * HEADER_ALIGN - 8;
    uint8_t head[8];
    for (int i = 0; i < 8; i++) head[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    if (!write_all(fd, head, 8) || !write_all(fd, text, length) || !write_all(fd, spaces, padded - length))
        return false;
    for (int i = 0; i < n; i++)
        if (!write_all(fd, tensors[i].data, tensors[i].bytes)) return false;
    return fsync(fd) == 0;
}

/* The new name has reached the disk when the directory has. */
static void sync_directory(const char *path) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!fsync(fd);
    close(fd);
}

fnx_status fnx_safetensors_save(const char *path, const fnx_safetensor *tensors, int n, const fnx_text_pair *metadata) {
    char temporary[PATH_MAX];
    if (!path || snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return fnx_error_set(FNX_E_INVALID, "safetensors_save: the path is NULL or too long");
    json_t *header = header_of(tensors, n, metadata);
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (!text)
        return fnx_error_set(
            FNX_E_INVALID, "%s: a name stands twice, a text is not UTF-8, a dtype is not known, or there is no memory",
            path);
    int fd = mkstemp(temporary);
    if (fd < 0) {
        free(text);
        return fnx_error_set(FNX_E_IO, "%s: %s", temporary, strerror(errno));
    }
    mode_t mask = umask(0);
    umask(mask);
    bool ok = !fchmod(fd, 0666 & ~mask) && write_file(fd, text, strlen(text), tensors, n);
    int reason = errno;
    if (close(fd) && ok) ok = false, reason = errno;
    if (ok && rename(temporary, path)) ok = false, reason = errno;
    free(text);
    if (!ok) {
        unlink(temporary);
        return fnx_error_set(FNX_E_IO, "%s: %s; what was there before is unchanged", path, strerror(reason));
    }
    sync_directory(path);
    return FNX_OK;
}
