/* One table describes the fields for both directions. */
#include "run_info.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum field_kind { FIELD_TEXT, FIELD_INTEGER, FIELD_REAL } field_kind;

static const struct field {
    const char *key;
    field_kind kind;
    size_t at, size;    /* size: of a text */
    double least, most; /* of a number */
} fields[] = {
#define TEXT(name) \
    { "train." #name, FIELD_TEXT, offsetof(run_info, name), sizeof(((run_info *)0)->name), 0, 0 }
#define INTEGER(name, least, most) \
    { "train." #name, FIELD_INTEGER, offsetof(run_info, name), 0, least, most }
#define REAL(name, least, most) \
    { "train." #name, FIELD_REAL, offsetof(run_info, name), 0, least, most }
    TEXT(model),
    TEXT(optimizer),
    TEXT(data),
    INTEGER(rows, 1, 65536),
    INTEGER(columns, 1, 65536),
    INTEGER(classes, 1, 256),
    INTEGER(epochs, 1, 1e6),
    INTEGER(batch, 1, 1e6),
    INTEGER(seed, 0, 9e15),
    INTEGER(limit, 0, 1e12),
    REAL(lr, 0, 1e6),
    REAL(momentum, 0, 1),
    REAL(weight_decay, 0, 1e6),
    INTEGER(epoch, 0, 1e6),
    INTEGER(step, 0, 1e12),
    INTEGER(hits, 0, 1e15),
    REAL(loss_sum, 0, HUGE_VAL),
    REAL(seconds, 0, HUGE_VAL),
    REAL(test_accuracy, 0, 1),
#undef TEXT
#undef INTEGER
#undef REAL
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* What is printed must not act on the terminal. */
static bool is_plain(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
    return true;
}

static bool set(const struct field *f, run_info *info, const char *text) {
    void *at = (char *)info + f->at;
    char *end;
    if (f->kind == FIELD_TEXT) {
        size_t n = strlen(text);
        if (!n || n >= f->size) return false;
        memcpy(at, text, n + 1);
        return true;
    }
    errno = 0;
    if (f->kind == FIELD_INTEGER) {
        long long value = strtoll(text, &end, 10);
        memcpy(at, &(int64_t){value}, sizeof(int64_t));
        return end != text && !*end && !errno && (double)value >= f->least && (double)value <= f->most;
    }
    double value = strtod(text, &end);
    memcpy(at, &value, sizeof value);
    return end != text && !*end && value >= f->least && value <= f->most;
}

fnx_status run_info_read(run_info *info, const char *path, char *why, size_t size) {
    fnx_safetensors *file = fnx_safetensors_open(path);
    fnx_status code = fnx_safetensors_status(file);
    memset(info, 0, sizeof *info);
    if (code) snprintf(why, size, "%s", fnx_last_error()->message);
    for (int i = 0; i < FIELDS && !code; i++) {
        const char *text = fnx_safetensors_metadata(file, fields[i].key);
        bool plain = text && is_plain(text);
        if (plain && set(&fields[i], info, text)) continue;
        code = FNX_E_FORMAT;
        if (plain)
            snprintf(why, size, "%s: its metadata has '%.60s' for %s, which cannot be", path, text, fields[i].key);
        else if (text) snprintf(why, size, "%s: its metadata has control characters for %s", path, fields[i].key);
        else snprintf(why, size, "%s: no checkpoint of `fornax train`: its metadata lacks %s", path, fields[i].key);
    }
    fnx_safetensors_close(file);
    return code;
}

fnx_status run_info_save(const run_info *info, const char *path, fnx_module *net, fnx_optimizer *optimizer) {
    char numbers[FIELDS][40];
    fnx_text_pair pairs[FIELDS + 1] = {0};
    for (int i = 0; i < FIELDS; i++) {
        const void *at = (const char *)info + fields[i].at;
        pairs[i] = (fnx_text_pair){fields[i].key, fields[i].kind == FIELD_TEXT ? at : numbers[i]};
        if (fields[i].kind == FIELD_INTEGER)
            snprintf(numbers[i], sizeof *numbers, "%lld", (long long)*(const int64_t *)at);
        if (fields[i].kind == FIELD_REAL) snprintf(numbers[i], sizeof *numbers, "%.17g", *(const double *)at);
    }
    return fnx_checkpoint_save(path, net, optimizer, pairs);
}
