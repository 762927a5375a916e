/* How a check says no: a code, and a sentence for people. Functions that use the macros have a checker `c` with `why`
 * and `why_size`, and return a code. */
#ifndef CHECK_REFUSE_H
#define CHECK_REFUSE_H

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 5))) static inline int32_t refuse(char *why, size_t why_size, int32_t code,
                                                                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (why && why_size) vsnprintf(why, why_size, format, args);
    va_end(args);
    return code;
}

#define REQUIRE(condition, code, ...) \
    do { \
        if (!(condition)) return refuse(c->why, c->why_size, code, __VA_ARGS__); \
    } while (0)

#define TRY(call) \
    do { \
        int32_t code_ = (call); \
        if (code_) return code_; \
    } while (0)

#endif
