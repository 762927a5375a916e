/* Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1,
 * 2, 3", SC 2011) and Box and Muller's transform (1958). The element's number picks the block and the word within
 * it, so each element is computed alone, in any order; <fornax-plugin/ops.h> has the formulas under FNX_PHILOX. */
#include "ref.h"

static void philox(uint64_t key, uint64_t block, uint64_t counter, uint32_t w[4]) {
    uint32_t key_low = (uint32_t)key, key_high = (uint32_t)(key >> 32);
    w[0] = (uint32_t)block, w[1] = (uint32_t)(block >> 32);
    w[2] = (uint32_t)counter, w[3] = (uint32_t)(counter >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = UINT64_C(0xd2511f53) * w[0], q = UINT64_C(0xcd9e8d57) * w[2];
        const uint32_t first = (uint32_t)(q >> 32) ^ w[1] ^ key_low, third = (uint32_t)(p >> 32) ^ w[3] ^ key_high;
        w[0] = first, w[1] = (uint32_t)q, w[2] = third, w[3] = (uint32_t)p;
        key_low += UINT32_C(0x9e3779b9); /* the golden ratio, and sqrt(3) - 1 */
        key_high += UINT32_C(0xbb67ae85);
    }
}

static double bits24(uint32_t w) { return (double)(w >> 8); }
static double bits53(const uint32_t *w) { return (double)(w[0] >> 5) * 0x1p26 + (double)(w[1] >> 6); }

/* cos(2 pi v): whole quarters of the turn are taken off exactly, so that the cosine's zeros keep all their digits. */
static double cosine_of_turn(double v) {
    const double two_pi = 6.283185307179586476925286766559, quarter = nearbyint(4 * v);
    const double rest = two_pi * (v - quarter / 4);
    switch ((int)quarter & 3) {
    case 0: return cos(rest);
    case 1: return -sin(rest);
    case 2: return -cos(rest);
    default: return sin(rest);
    }
}

/* x: seed, counter, element */
ref_cell ref_uniform(const ref_call *c, const ref_cell *x) {
    const uint64_t e = (uint64_t)x[2].i;
    uint32_t w[4];
    if (c->out[0].dtype == FNX_F32) {
        philox((uint64_t)x[0].i, e >> 2, (uint64_t)x[1].i, w);
        return (ref_cell){.f = bits24(w[e & 3]) * 0x1p-24};
    }
    philox((uint64_t)x[0].i, e >> 1, (uint64_t)x[1].i, w);
    return (ref_cell){.f = bits53(&w[2 * (e & 1)]) * 0x1p-53};
}

ref_cell ref_normal(const ref_call *c, const ref_cell *x) {
    const uint64_t e = (uint64_t)x[2].i;
    uint32_t w[4];
    if (c->out[0].dtype == FNX_F32) {
        philox((uint64_t)x[0].i, e >> 2, (uint64_t)x[1].i, w);
        const double u = (bits24(w[e & 2]) + 1) * 0x1p-24, v = bits24(w[(e & 2) + 1]) * 0x1p-24;
        return (ref_cell){.f = sqrt(-2 * log(u)) * cosine_of_turn(e & 1 ? v - 0.25 : v)};
    }
    philox((uint64_t)x[0].i, e, (uint64_t)x[1].i, w);
    const double u = (bits53(&w[0]) + 1) * 0x1p-53, v = bits53(&w[2]) * 0x1p-53;
    return (ref_cell){.f = sqrt(-2 * log(u)) * cosine_of_turn(v)};
}
