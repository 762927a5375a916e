/* Two lanes of folded 64 x 64 multiplications over 16 bytes at a time. */
#include "base/hash.h"

#include <string.h>

static inline uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    wide p = (wide)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

void fnx_hash128(const void *data, size_t bytes, uint64_t h[2]) {
    const char *p = data;
    uint64_t a = h[0] ^ bytes, b = h[1] + bytes * UINT64_C(0x9E3779B97F4A7C15), w[2];
    while (bytes) { /* the sums keep a zero product from erasing the state */
        size_t n = bytes < 16 ? bytes : 16;
        if (n == 16) memcpy(w, p, 16);
        else w[0] = w[1] = 0, memcpy(w, p, n);
        a = (a + fold(w[0] ^ UINT64_C(0xA0761D6478BD642F), w[1] ^ a)) * UINT64_C(0xFF51AFD7ED558CCD);
        b = (b + fold(w[1] ^ UINT64_C(0xE7037ED1A0B428DB), w[0] ^ b)) * UINT64_C(0xC4CEB9FE1A85EC53);
        p += n, bytes -= n;
    }
    h[0] = fold(a ^ b >> 32, UINT64_C(0x8EBC6AF09C88C6E3)), h[1] = fold(b ^ a >> 29, UINT64_C(0x589965CC75374CC3));
}
