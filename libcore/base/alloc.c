/* See alloc.h. */
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *fnx_alloc(size_t bytes) { return malloc(bytes ? bytes : 1); }

void *fnx_alloc_array(size_t n, size_t item) {
    size_t bytes;
    return __builtin_mul_overflow(n, item, &bytes) ? NULL : fnx_alloc(bytes);
}

char *fnx_alloc_string(const char *text) { return strdup(text); }

char *fnx_alloc_format(const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    return n < 0 ? NULL : text;
}

bool fnx_grow(void **array, int64_t *capacity, size_t item, int64_t need) {
    if (need <= *capacity) return true;
    int64_t n = *capacity > INT64_MAX / 4 ? need : *capacity * 2;
    if (n < need) n = need + 16;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)n, item, &bytes)) return false;
    void *more = realloc(*array, bytes);
    if (!more) return false;
    *array = more, *capacity = n;
    return true;
}
