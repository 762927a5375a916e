/* Whatever the bytes, reading a safetensors file refuses them with a reason or gives tensors that lie side by side. */
#include <fornax/nn/checkpoint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition) \
    do { \
        if (!(condition)) abort(); \
    } while (0)

static void check_refused(const fnx_safetensors *f) {
    const char *message = fnx_last_error()->message;
    MUST(*message && !fnx_safetensors_count(f) && !fnx_safetensors_at(f, 0));
    MUST(!fnx_safetensors_find(f, "a.weight") && !fnx_safetensors_metadata(f, "format"));
    for (const char *p = message; *p; p++) MUST((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_tensors(const fnx_safetensors *f, const uint8_t *data, size_t size) {
    const int n = fnx_safetensors_count(f);
    const uint8_t *end = data + size, *at = n ? fnx_safetensors_at(f, 0)->data : end;
    MUST(at >= data + 8 && at <= end);
    for (int i = 0; i < n; i++) {
        const fnx_safetensor *t = fnx_safetensors_at(f, i), *found = fnx_safetensors_find(f, t->name);
        MUST(t->data == at && t->bytes <= (size_t)(end - at) && t->rank >= 0 && t->rank <= (int)FNX_MAX_RANK);
        MUST(found && !strcmp(found->name, t->name));
        uint64_t items = 1;
        for (int d = 0; d < t->rank; d++) MUST(!__builtin_mul_overflow(items, (uint64_t)t->sizes[d], &items));
        MUST(items ? t->bytes % items == 0 && t->bytes / items <= 8 : !t->bytes);
        at += t->bytes;
    }
    MUST(at == end && !fnx_safetensors_at(f, n) && !fnx_safetensors_at(f, -1));
    (void)fnx_safetensors_metadata(f, "format");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fnx_safetensors *f = fnx_safetensors_from(data, size, "input");
    if (fnx_safetensors_status(f)) check_refused(f);
    else check_tensors(f, data, size);
    fnx_safetensors_close(f);
    return 0;
}
