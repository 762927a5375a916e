#include "kernels.h"

static kir_value i32(kir *k, int64_t v) { return kir_int(k, KIR_I32, v); }
static kir_value add(kir *k, kir_value a, kir_value b) { return kir_bin(k, KIR_ADD, a, b); }
static kir_value mul(kir *k, kir_value a, kir_value b) { return kir_bin(k, KIR_MUL, a, b); }
static kir_value less(kir *k, kir_value a, kir_value b) { return kir_bin(k, KIR_LT, a, b); }
static kir_value thread(kir *k, int axis) { return kir_cast(k, KIR_I32, kir_builtin(k, KIR_THREAD, axis)); }
static kir_value group(kir *k, int axis) { return kir_cast(k, KIR_I32, kir_builtin(k, KIR_GROUP, axis)); }

/* The combination of all threads' v, by halving; `side` is an array of the group. */
static kir_value combine(kir *k, kir_value side, kir_value me, uint32_t threads, kir_op op, kir_value v) {
    kir_write(k, side, me, v);
    kir_barrier(k);
    for (uint32_t half = threads / 2; half > 0; half /= 2) {
        kir_if(k, less(k, me, i32(k, half)));
        kir_write(k, side, me, kir_bin(k, op, kir_read(k, side, me), kir_read(k, side, add(k, me, i32(k, half)))));
        kir_end(k);
        kir_barrier(k);
    }
    kir_value all = kir_read(k, side, i32(k, 0));
    kir_barrier(k);
    return all;
}

void kernel_softmax(kir *k, uint32_t threads) {
    kir_init(k, threads, 1, 1);
    int32_t x_at = kir_add_arg(k, KIR_U64), y_at = kir_add_arg(k, KIR_U64), n_at = kir_add_arg(k, KIR_I32);
    kir_value x = kir_buffer(k, KIR_F32, x_at, KIR_READ_ONLY), y = kir_buffer(k, KIR_F32, y_at, 0);
    kir_value side = kir_array(k, KIR_F32, threads, KIR_SHARED), n = kir_arg_value(k, n_at), me = thread(k, 0);
    kir_value row = mul(k, group(k, 0), n);
    kir_value most = kir_var(k, kir_float(k, KIR_F32, -3e38)), sum = kir_var(k, kir_float(k, KIR_F32, 0));
    kir_value i = kir_for(k, me, n, threads, 0);
    kir_set(k, most, kir_bin(k, KIR_MAX, kir_get(k, most), kir_load(k, x, add(k, row, i))));
    kir_end(k);
    kir_value top = combine(k, side, me, threads, KIR_MAX, kir_get(k, most));
    i = kir_for(k, me, n, threads, 0);
    kir_value e = kir_call(k, KIR_FN_EXP, kir_bin(k, KIR_SUB, kir_load(k, x, add(k, row, i)), top));
    kir_set(k, sum, add(k, kir_get(k, sum), e));
    kir_store(k, y, add(k, row, i), e);
    kir_end(k);
    kir_value total = combine(k, side, me, threads, KIR_ADD, kir_get(k, sum));
    i = kir_for(k, me, n, threads, 0);
    kir_value at = add(k, row, i);
    kir_store(k, y, at, kir_bin(k, KIR_DIV, kir_load(k, y, at), total));
    kir_end(k);
}

/* A panel of a tile into work-group memory: rows x columns from [first_row, first_column] of a packed matrix, zeros
 * outside. */
static void fetch(kir *k, kir_value from, kir_value to, kir_value me, int threads, int rows, int columns,
                  kir_value first_row, kir_value first_column, kir_value n_rows, kir_value n_columns) {
    kir_value i = kir_for(k, me, i32(k, rows * columns), threads, 0);
    kir_value r = add(k, first_row, kir_bin(k, KIR_DIV, i, i32(k, columns)));
    kir_value c = add(k, first_column, kir_bin(k, KIR_REM, i, i32(k, columns)));
    kir_value v = kir_var(k, kir_float(k, KIR_F32, 0));
    kir_if(k, kir_bin(k, KIR_AND, less(k, r, n_rows), less(k, c, n_columns)));
    kir_set(k, v, kir_load(k, from, add(k, mul(k, r, n_columns), c)));
    kir_end(k);
    kir_write(k, to, i, kir_get(k, v));
    kir_end(k);
}

void kernel_matmul(kir *k, uint32_t side, int each, int depth) {
    int tile = (int)side * each, threads = (int)(side * side);
    kir_init(k, side, side, 1);
    int32_t arg[7];
    for (int j = 0; j < 7; j++) arg[j] = kir_add_arg(k, j < 4 ? KIR_U64 : KIR_I32);
    kir_value a = kir_buffer(k, KIR_F32, arg[0], KIR_READ_ONLY), b = kir_buffer(k, KIR_F32, arg[1], KIR_READ_ONLY);
    kir_value bias = kir_buffer(k, KIR_F32, arg[2], KIR_READ_ONLY), c = kir_buffer(k, KIR_F32, arg[3], 0);
    kir_value m = kir_arg_value(k, arg[4]), n = kir_arg_value(k, arg[5]), depths = kir_arg_value(k, arg[6]);
    kir_value pa = kir_array(k, KIR_F32, tile * depth, KIR_SHARED);
    kir_value pb = kir_array(k, KIR_F32, depth * tile, KIR_SHARED);
    kir_value acc = kir_array(k, KIR_F32, each * each, KIR_PRIVATE), left = kir_array(k, KIR_F32, each, KIR_PRIVATE);
    kir_value tx = thread(k, 0), ty = thread(k, 1), me = add(k, mul(k, ty, i32(k, side)), tx);
    kir_value row0 = mul(k, group(k, 1), i32(k, tile)), col0 = mul(k, group(k, 0), i32(k, tile));
    for (int j = 0; j < each * each; j++) kir_write(k, acc, i32(k, j), kir_float(k, KIR_F32, 0));
    kir_value p = kir_for(k, i32(k, 0), depths, depth, 0);
    fetch(k, a, pa, me, threads, tile, depth, row0, p, m, depths);
    fetch(k, b, pb, me, threads, depth, tile, p, col0, depths, n);
    kir_barrier(k);
    kir_value d = kir_for(k, i32(k, 0), i32(k, depth), 1, 0);
    kir_value row = mul(k, mul(k, ty, i32(k, each)), i32(k, depth));
    for (int r = 0; r < each; r++)
        kir_write(k, left, i32(k, r), kir_read(k, pa, add(k, add(k, row, i32(k, r * depth)), d)));
    kir_value base = add(k, mul(k, d, i32(k, tile)), tx);
    for (int q = 0; q < each; q++) { /* neighbours read neighbours */
        kir_value v = kir_read(k, pb, add(k, base, i32(k, q * (int)side)));
        for (int r = 0; r < each; r++) {
            kir_value at = i32(k, r * each + q);
            kir_write(k, acc, at, kir_fma(k, kir_read(k, left, i32(k, r)), v, kir_read(k, acc, at)));
        }
    }
    kir_end(k);
    kir_barrier(k);
    kir_end(k);
    for (int r = 0; r < each; r++)
        for (int q = 0; q < each; q++) {
            kir_value i = add(k, add(k, row0, mul(k, ty, i32(k, each))), i32(k, r));
            kir_value j = add(k, add(k, col0, tx), i32(k, q * (int)side));
            kir_if(k, kir_bin(k, KIR_AND, less(k, i, m), less(k, j, n)));
            kir_value v = add(k, kir_read(k, acc, i32(k, r * each + q)), kir_load(k, bias, j));
            v = kir_select(k, less(k, kir_float(k, KIR_F32, 0), v), v, kir_float(k, KIR_F32, 0));
            kir_store(k, c, add(k, mul(k, i, n), j), v);
            kir_end(k);
        }
}

void kernel_scatter(kir *k, uint32_t threads) {
    kir_init(k, threads, 1, 1);
    int32_t t_at = kir_add_arg(k, KIR_U64), index_at = kir_add_arg(k, KIR_U64), n_at = kir_add_arg(k, KIR_I64),
            count_at = kir_add_arg(k, KIR_I32);
    kir_value t = kir_buffer(k, KIR_U32, t_at, 0), index = kir_buffer(k, KIR_I64, index_at, KIR_READ_ONLY);
    kir_value n = kir_arg_value(k, n_at), zero = kir_int(k, KIR_I64, 0);
    kir_value i = add(k, mul(k, group(k, 0), i32(k, threads)), thread(k, 0));
    kir_if(k, less(k, i, kir_arg_value(k, count_at)));
    kir_value at = kir_load(k, index, i);
    kir_if(k, kir_bin(k, KIR_AND, kir_bin(k, KIR_LE, zero, at), less(k, at, n)));
    kir_atomic_add(k, t, at, kir_int(k, KIR_U32, 1));
    kir_else(k);
    kir_fail(k, 0, at, n);
    kir_end(k);
    kir_end(k);
}
