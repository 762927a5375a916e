/* Floats as integers of the same order, so that maximum and minimum are one instruction each and treat what floats do
 * not order: keys of -0 and +0 differ, and NaN has the key that wins. A key is the float's bits with all but the sign
 * flipped where the sign is set (Herf, "Radix tricks", 2001). */
#ifndef PLUGINS_CPU_KERNELS_KEYS_H
#define PLUGINS_CPU_KERNELS_KEYS_H

#include <stdint.h>
#include <string.h>

static inline int32_t key_of_float(float value, int32_t nan) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int32_t key = bits ^ ((bits >> 31) & INT32_MAX);
    return (bits & INT32_MAX) > 0x7f800000 ? nan : key;
}

static inline float float_of_key(int32_t key) {
    const int32_t bits = key ^ ((key >> 31) & INT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int64_t key_of_double(double value, int64_t nan) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int64_t key = bits ^ ((bits >> 63) & INT64_MAX);
    return (bits & INT64_MAX) > INT64_C(0x7ff0000000000000) ? nan : key;
}

static inline double double_of_key(int64_t key) {
    const int64_t bits = key ^ ((key >> 63) & INT64_MAX);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
