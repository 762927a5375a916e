/* The reference backend as a plugin: its device, how it runs whole groups, and what it declines. */
#include "support/ref.h"

#include <pthread.h>

/* ---- the device -------------------------------------------------------------------------------------------------- */

START_TEST(descriptor_says_what_it_is) {
    ck_assert_uint_eq(ref.plugin->struct_size, sizeof(fnx_plugin));
    ck_assert_str_eq(ref.plugin->name, "ref");
    ck_assert_str_eq(ref.plugin->version, "0.1.0");
    ck_assert_uint_eq(ref.plugin->device_count(ref.context), 1);
}
END_TEST

START_TEST(the_only_device_is_0) {
    const char *good[] = {"", "0", NULL};
    const fnx_device_table *table;
    void *device = NULL;
    for (size_t i = 0; i < COUNT(good); i++) {
        ck_assert_int_eq(ref.plugin->device_open(ref.context, good[i], &table, &device), FNX_OK);
        table->close(device);
    }
    ck_assert_int_eq(ref.plugin->device_open(ref.context, "1", &table, &device), FNX_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(backend_error(), "\"1\""));
}
END_TEST

START_TEST(an_old_host_is_refused) {
    fnx_host host = backend_host;
    void *context;
    host.struct_size = offsetof(fnx_host, alloc);
    ck_assert_int_ne(ref.plugin->init(&host, &context), FNX_OK);
}
END_TEST

START_TEST(info_promises_host_memory) {
    fnx_device_info info = {.struct_size = sizeof info};
    ck_assert_int_eq(ref.table->info(ref.device, &info), FNX_OK);
    ck_assert(info.flags & FNX_DEVICE_HOST_MEMORY);
    ck_assert_uint_ge(info.memory_align, 16);
    ck_assert_uint_ge(info.max_queues, 2);
    ck_assert_uint_gt(info.memory_bytes, 0);
    ck_assert(info.name[0] != 0);
}
END_TEST

START_TEST(allocations_are_aligned_distinct_and_bounded) {
    fnx_device_info info = {.struct_size = sizeof info};
    fnx_binding a, b, huge;
    ref.table->info(ref.device, &info);
    ck_assert_int_eq(ref.table->alloc(ref.device, 0, 0, &a), FNX_OK);
    ck_assert_int_eq(ref.table->alloc(ref.device, 0, 100, &b), FNX_OK);
    ck_assert(a.address && a.memory && a.address != b.address);
    ck_assert_uint_eq(b.address % info.memory_align, 0);
    ck_assert_int_eq(ref.table->alloc(ref.device, 0, UINT64_MAX - 5, &huge), FNX_E_NO_MEMORY);
    ref.table->free(ref.device, a.memory);
    ref.table->free(ref.device, b.memory);
    ref.table->free(ref.device, NULL);
}
END_TEST

START_TEST(copy_and_fill_write_bytes) {
    uint8_t bytes[16], copied[16];
    const fnx_binding at = {(uint64_t)(uintptr_t)bytes, NULL}, to = {(uint64_t)(uintptr_t)copied, NULL};
    for (uint32_t n = 1; n <= 8; n *= 2) {
        ck_assert_int_eq(ref.table->fill(ref.queue, &at, 16, UINT64_C(0x0807060504030201), n), FNX_OK);
        for (uint32_t i = 0; i < 16; i++) ck_assert_uint_eq(bytes[i], i % n + 1);
    }
    ck_assert_int_eq(ref.table->fill(ref.queue, &at, 16, 0, 3), FNX_E_INVALID);
    ck_assert_int_eq(ref.table->fill(ref.queue, &at, 6, 0, 4), FNX_E_INVALID);
    ck_assert_int_eq(ref.table->copy(ref.queue, &to, &at, 16), FNX_OK);
    ck_assert_mem_eq(copied, bytes, 16);
    ck_assert_int_eq(ref.table->copy(ref.queue, &to, &(fnx_binding){0, NULL}, 0), FNX_OK);
}
END_TEST

START_TEST(events_are_done_when_recorded) {
    void *event = NULL;
    uint32_t done = 0;
    ck_assert_int_eq(ref.table->event_record(ref.queue, &event), FNX_OK);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(ref.table->event_wait(ref.queue, event), FNX_OK);
    ck_assert_int_eq(ref.table->event_done(event, &done), FNX_OK);
    ck_assert_uint_eq(done, 1);
    ref.table->event_destroy(event);
    ck_assert_int_eq(ref.table->queue_flush(ref.queue), FNX_OK);
}
END_TEST

/* y = 1 / b of i32 on one queue, with the number of the step */
static void divide_on(void *queue, uint32_t site, int32_t b, int32_t *y) {
    void *handle;
    fragment *f = fragment_create();
    uint32_t one = fragment_const(f, FNX_I32, 1), v = fragment_scalar(f, FNX_I32, b);
    uint32_t out = fragment_output(f, FNX_I32, RANK0, y);
    fragment_node(f, FNX_OP_div, NULL, 0, REFS(one, v), REFS(out));
    fragment_finish(f);
    f->launch.site = site;
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    ck_assert_int_eq(ref.groups->launch(handle, queue, &f->launch, 1, sizeof f->launch), FNX_OK);
    ref.groups->release(handle);
    fragment_destroy(f);
}

START_TEST(each_queue_has_an_error_word_that_sync_clears) {
    void *other;
    fnx_error_word word;
    int32_t y;
    ck_assert_int_eq(ref.table->queue_create(ref.device, &other), FNX_OK);
    divide_on(ref.queue, 11, 0, &y);
    divide_on(ref.queue, 12, 0, &y);
    ck_assert_int_eq(ref.table->queue_sync(other, &word), FNX_OK);
    ck_assert_int_eq(ref.table->queue_sync(ref.queue, &word), FNX_E_INDEX);
    ck_assert_uint_eq(word.site, 11); /* the first failure won */
    ck_assert_int_eq(ref.table->queue_sync(ref.queue, &word), FNX_OK);
    ck_assert_int_eq(word.code, FNX_OK);
    ref.table->queue_destroy(other);
    ref.table->queue_destroy(NULL);
}
END_TEST

static void *divide_often(void *failures) {
    void *queue;
    fnx_error_word word;
    int *n = failures;
    if (ref.table->queue_create(ref.device, &queue)) return NULL;
    for (int32_t i = 0; i < 500; i++) {
        int32_t y = 7;
        divide_on(queue, (uint32_t)i, i % 2, &y);
        if (y != i % 2) return NULL;
        *n += ref.table->queue_sync(queue, &word) == (i % 2 ? FNX_OK : FNX_E_INDEX) &&
              (i % 2 || word.site == (uint32_t)i);
    }
    ref.table->queue_destroy(queue);
    return NULL;
}

START_TEST(two_threads_use_two_queues) {
    pthread_t thread;
    int there = 0, here = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, divide_often, &there), 0);
    divide_often(&here);
    pthread_join(thread, NULL);
    ck_assert_int_eq(there, 500);
    ck_assert_int_eq(here, 500);
}
END_TEST

START_TEST(capabilities_list_every_op_once) {
    static const uint16_t listed[] =
        {/* what <fornax-plugin/ops.h> allows in a group, composites apart */
         FNX_OP_add,      FNX_OP_sub,           FNX_OP_mul,           FNX_OP_div,         FNX_OP_pow,
         FNX_OP_maximum,  FNX_OP_minimum,       FNX_OP_neg,           FNX_OP_abs,         FNX_OP_exp,
         FNX_OP_log,      FNX_OP_sqrt,          FNX_OP_tanh,          FNX_OP_sigmoid,     FNX_OP_erf,
         FNX_OP_relu,     FNX_OP_equal,         FNX_OP_not_equal,     FNX_OP_less,        FNX_OP_less_equal,
         FNX_OP_greater,  FNX_OP_greater_equal, FNX_OP_where,         FNX_OP_cast,        FNX_OP_copy,
         FNX_OP_uniform,  FNX_OP_normal,        FNX_OP_sum,           FNX_OP_max,         FNX_OP_min,
         FNX_OP_argmax,   FNX_OP_matmul,        FNX_OP_conv,          FNX_OP_conv_grad_x, FNX_OP_conv_grad_w,
         FNX_OP_max_pool, FNX_OP_max_pool_grad, FNX_OP_max_pool_pick, FNX_OP_avg_pool,    FNX_OP_avg_pool_grad,
         FNX_OP_gather,   FNX_OP_scatter_add};
    const uint64_t f32 = UINT64_C(1) << FNX_F32, i64 = UINT64_C(1) << FNX_I64, boolean = UINT64_C(1) << FNX_BOOL;
    fnx_group_caps caps = {.struct_size = sizeof caps};
    ck_assert_int_eq(ref.groups->capabilities(ref.device, &caps), FNX_OK);
    ck_assert_uint_eq(caps.n_ops, COUNT(listed));
    for (uint32_t i = 0; i < caps.n_ops; i++) {
        const fnx_op_caps *op = FNX_AT(fnx_op_caps, caps.ops, caps.op_bytes, i);
        ck_assert_uint_eq(op->op, listed[i]);
        ck_assert_uint_ne(op->places, 0);
        ck_assert(op->dtypes_in & (f32 | i64));
        ck_assert(op->op != FNX_OP_less || op->dtypes_out == boolean);
        ck_assert(op->op != FNX_OP_argmax || op->dtypes_out == i64);
    }
    ck_assert_uint_eq(caps.wants, 0);
    ck_assert(caps.anchors & (1u << FNX_ANCHOR_ROWS));
}
END_TEST

/* ---- whole groups ------------------------------------------------------------------------------------------------ */

START_TEST(a_chain_broadcasts_and_has_two_outputs) {
    /* h = relu(a * s + b), y = h * h; b is a row; h is stored, too */
    const float a[] = {1, -2, 3, -4, 5, -6}, b[] = {1, 1, -2};
    float h[6], y[6];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 2, 3);
    uint32_t va = fragment_input(f, FNX_F32, s, a), vb = fragment_input(f, FNX_F32, SHAPE(f, 1, 3), b);
    uint32_t half = fragment_scalar(f, FNX_F32, 0.5), p = fragment_temp(f, FNX_F32, s),
             q = fragment_temp(f, FNX_F32, s);
    uint32_t vh = fragment_output(f, FNX_F32, s, h), vy = fragment_output(f, FNX_F32, s, y);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(half, va), REFS(p));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(p, vb), REFS(q));
    fragment_node(f, FNX_OP_relu, NULL, 0, REFS(q), REFS(vh));
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(vh, vh), REFS(vy));
    run(f);
    CHECK_SAME(h, ((const float[]){1.5f, 0, 0, 0, 3.5f, 0}), 6);
    CHECK_SAME(y, ((const float[]){2.25f, 0, 0, 0, 12.25f, 0}), 6);
}
END_TEST

START_TEST(temporaries_are_rounded_to_their_dtype) {
    const float x[] = {16777216, 1};
    float y[2];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 2);
    uint32_t vx = fragment_input(f, FNX_F32, s, x), one = fragment_const(f, FNX_F32, 1),
             t = fragment_temp(f, FNX_F32, s);
    uint32_t vy = fragment_output(f, FNX_F32, s, y);
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(vx, one), REFS(t));
    fragment_node(f, FNX_OP_sub, NULL, 0, REFS(t, vx), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){0, 1}), 2);
}
END_TEST

START_TEST(strides_may_be_negative_zero_and_permuted) {
    const int32_t x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; /* [3, 4] */
    const int32_t row[] = {100, 200, 300};
    const int64_t flipped[] = {-1, -4}, broadcast[] = {0, 1}, transposed[] = {1, 4};
    int32_t y[12];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 4, 3); /* x transposed and flipped twice; the result is stored as [3, 4] again */
    uint32_t vx = fragment_input_strided(f, FNX_I32, s, flipped, x + 11);
    uint32_t vr = fragment_input_strided(f, FNX_I32, s, broadcast, row);
    uint32_t vy = fragment_output_strided(f, FNX_I32, s, transposed, y);
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(vx, vr), REFS(vy));
    run(f);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) ck_assert_int_eq(y[j * 4 + i], 11 - i - 4 * j + row[j]);
}
END_TEST

START_TEST(outputs_of_one_slot_are_parts_of_one_tensor) {
    const float a[] = {1, 2}, b[] = {3, 4, 5, 6};
    const int64_t rows[] = {3, 1};
    float y[] = {7, 7, 7, 7, 7, 7};
    fragment *f =
        fragment_create(); /* concat of [2, 1] and [2, 2] along axis 1: two groups in real life, here two copies */
    uint32_t va = fragment_input(f, FNX_F32, SHAPE(f, 2, 1), a), vb = fragment_input(f, FNX_F32, SHAPE(f, 2, 2), b);
    uint32_t left = fragment_output_strided(f, FNX_F32, SHAPE(f, 2, 1), rows, y);
    uint32_t right = fragment_output_strided(f, FNX_F32, SHAPE(f, 2, 2), rows, y + 1);
    fragment_share_slot(f, right, left);
    fragment_node(f, FNX_OP_copy, NULL, 0, REFS(va), REFS(left));
    fragment_node(f, FNX_OP_copy, NULL, 0, REFS(vb), REFS(right));
    run(f);
    CHECK_SAME(y, ((const float[]){1, 3, 4, 2, 5, 6}), 6);
}
END_TEST

START_TEST(in_place_outputs_are_written_after_the_last_read) {
    /* m = m * 0.9 + g, p = p - m: both in place, and p's old value is read after m is new */
    double p[] = {10, 20}, m[] = {1, 2}, old[2];
    const double g[] = {3, 4};
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 2);
    uint32_t vp = fragment_input(f, FNX_F64, s, p), vm = fragment_input(f, FNX_F64, s, m),
             vg = fragment_input(f, FNX_F64, s, g);
    uint32_t beta = fragment_scalar(f, FNX_F64, 0.5), t = fragment_temp(f, FNX_F64, s);
    uint32_t new_m = fragment_output_in_place(f, vm), new_p = fragment_output_in_place(f, vp);
    uint32_t vo = fragment_output(f, FNX_F64, s, old);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(vm, beta), REFS(t));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(t, vg), REFS(new_m));
    fragment_node(f, FNX_OP_sub, NULL, 0, REFS(vp, new_m), REFS(new_p));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(vp, vm), REFS(vo)); /* old values both */
    run(f);
    CHECK_SAME(m, ((const double[]){3.5, 5}), 2);
    CHECK_SAME(p, ((const double[]){6.5, 15}), 2);
    CHECK_SAME(old, ((const double[]){11, 22}), 2);
}
END_TEST

START_TEST(a_product_may_overwrite_its_operand) {
    double a[] = {1, 2, 3, 4};
    const double b[] = {0, 1, 1, 0};
    fragment *f = fragment_create();
    uint32_t va = fragment_input(f, FNX_F64, SHAPE(f, 2, 2), a), vb = fragment_input(f, FNX_F64, SHAPE(f, 2, 2), b);
    uint32_t vy = fragment_output_in_place(f, va);
    fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(va, vb), REFS(vy));
    run(f);
    CHECK_SAME(a, ((const double[]){2, 1, 4, 3}), 4);
}
END_TEST

START_TEST(rank_0_and_rank_8_run) {
    const float x = 3;
    float y, z[256], w[256];
    fragment *f = fragment_create();
    uint32_t vx = fragment_input(f, FNX_F32, RANK0, &x), vy = fragment_output(f, FNX_F32, RANK0, &y);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(vx, vx), REFS(vy));
    run(f);
    ck_assert(y == 9);
    for (int i = 0; i < 256; i++) z[i] = (float)i;
    const int64_t reversed[] = {1, 2, 4, 8, 16, 32, 64, 128};
    f = fragment_create();
    fragment_shape s = SHAPE(f, 2, 2, 2, 2, 2, 2, 2, 2);
    vx = fragment_input_strided(f, FNX_F32, s, reversed, z), vy = fragment_output(f, FNX_F32, s, w);
    fragment_node(f, FNX_OP_neg, NULL, 0, REFS(vx), REFS(vy));
    run(f);
    for (int i = 0; i < 256; i++) {
        int mirrored = 0;
        for (int bit = 0; bit < 8; bit++) mirrored |= ((i >> bit) & 1) << (7 - bit);
        ck_assert(w[i] == (float)-mirrored);
    }
}
END_TEST

START_TEST(empty_values_touch_no_memory) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 3, 0, 2);
    uint32_t x = fragment_input(f, FNX_F32, s, NULL), t = fragment_temp(f, FNX_F32, s),
             y = fragment_output(f, FNX_F32, s, NULL);
    fragment_node(f, FNX_OP_exp, NULL, 0, REFS(x), REFS(t));
    fragment_node(f, FNX_OP_neg, NULL, 0, REFS(t), REFS(y));
    run(f);
}
END_TEST

START_TEST(index_values_count_without_memory) {
    /* a causal mask: where(column <= row, x, -1) */
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const int64_t by_row[] = {1, 0}, by_column[] = {0, 1};
    float y[9];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 3, 3);
    uint32_t row = fragment_index(f, s, by_row), column = fragment_index(f, s, by_column);
    uint32_t vx = fragment_input(f, FNX_F32, s, x), mask = fragment_temp(f, FNX_BOOL, s);
    uint32_t vy = fragment_output(f, FNX_F32, s, y), outside = fragment_const(f, FNX_F32, -1);
    fragment_node(f, FNX_OP_less_equal, NULL, 0, REFS(column, row), REFS(mask));
    fragment_node(f, FNX_OP_where, NULL, 0, REFS(mask, vx, outside), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){1, -1, -1, 4, 5, -1, 7, 8, 9}), 9);
}
END_TEST

START_TEST(scalars_may_be_any_operand) {
    const uint8_t yes = 1;
    float y[2];
    int64_t z[2];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 2);
    uint32_t c = fragment_scalar_bits(f, FNX_BOOL, yes), a = fragment_scalar(f, FNX_F32, 2.5),
             b = fragment_const(f, FNX_F32, 1);
    uint32_t vy = fragment_output(f, FNX_F32, s, y), vz = fragment_output(f, FNX_I64, s, z);
    fragment_node(f, FNX_OP_where, NULL, 0, REFS(c, a, b), REFS(vy));
    fragment_node(f, FNX_OP_cast, NULL, 0, REFS(a), REFS(vz));
    run(f);
    CHECK_SAME(y, ((const float[]){2.5f, 2.5f}), 2);
    CHECK_SAME(z, ((const int64_t[]){2, 2}), 2);
}
END_TEST

START_TEST(scalars_may_lie_in_memory) {
    const fnx_scalar in_memory[] = {fragment_scalar_of(FNX_F32, 9), fragment_scalar_of(FNX_F32, 4)};
    const float x[] = {1, 2};
    float y[2];
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 2);
    uint32_t unused = fragment_scalar(f, FNX_F32, 0), factor = fragment_scalar(f, FNX_F32, 0);
    uint32_t vx = fragment_input(f, FNX_F32, s, x), vy = fragment_output(f, FNX_F32, s, y);
    f->group_header.scalar_value = fragment_input(f, FNX_U64, SHAPE(f, 4), in_memory);
    (void)unused;
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(vx, factor), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){4, 8}), 2);
}
END_TEST

static void softmax(fragment *f, fragment_shape all, const double *x, double *y) {
    fragment_shape row = all;
    const fnx_attr_reduce last = {1u << (all.rank - 1), 0};
    row.size[row.rank - 1] = 0;
    uint32_t vx = fragment_input(f, FNX_F64, all, x), top = fragment_temp(f, FNX_F64, row),
             d = fragment_temp(f, FNX_F64, all);
    uint32_t e = fragment_temp(f, FNX_F64, all), sum = fragment_temp(f, FNX_F64, row),
             vy = fragment_output(f, FNX_F64, all, y);
    fragment_node(f, FNX_OP_max, &last, sizeof last, REFS(vx), REFS(top));
    fragment_node(f, FNX_OP_sub, NULL, 0, REFS(vx, top), REFS(d));
    fragment_node(f, FNX_OP_exp, NULL, 0, REFS(d), REFS(e));
    fragment_node(f, FNX_OP_sum, &last, sizeof last, REFS(e), REFS(sum));
    fragment_node(f, FNX_OP_div, NULL, 0, REFS(e, sum), REFS(vy));
}

START_TEST(reduced_values_meet_their_rows_again) {
    const double x[] = {0, log(3), 1000, 1000}, want[] = {0.25, 0.75, 0.5, 0.5};
    double y[4];
    fragment *f = fragment_create();
    softmax(f, SHAPE(f, 2, 2), x, y);
    run(f);
    CHECK_NEAR(y, want, 4, 1e-15);
}
END_TEST

START_TEST(a_product_has_an_epilogue) {
    const float x[] = {1, 2}, w[] = {1, -1, 10, 1}, b[] = {1, 0}; /* w is [out, in] */
    const int64_t transposed[] = {1, 2};
    float y[2];
    fragment *f = fragment_create();
    uint16_t m = fragment_size(f, 1), k = fragment_size(f, 2), n = fragment_size(f, 2);
    fragment_shape ys = ENTRIES(m, n);
    uint32_t vx = fragment_input(f, FNX_F32, ENTRIES(m, k), x),
             vw = fragment_input_strided(f, FNX_F32, ENTRIES(k, n), transposed, w);
    uint32_t vb = fragment_input(f, FNX_F32, ENTRIES(0, n), b), p = fragment_temp(f, FNX_F32, ys),
             q = fragment_temp(f, FNX_F32, ys);
    uint32_t vy = fragment_output(f, FNX_F32, ys, y);
    fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(vx, vw), REFS(p));
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(p, vb), REFS(q));
    fragment_node(f, FNX_OP_relu, NULL, 0, REFS(q), REFS(vy));
    run(f);
    CHECK_SAME(y, ((const float[]){0, 12}), 2);
}
END_TEST

START_TEST(one_handle_runs_other_sizes) {
    static const double x[] = {0, 0, 0, 5, 5, 5};
    double y[6];
    void *handle;
    fnx_error_word word;
    fragment *f = fragment_create();
    uint16_t m = fragment_size(f, 2), n = fragment_size(f, 3);
    softmax(f, ENTRIES(m, n), x, y);
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    for (int64_t columns = 6; columns >= 1; columns /= 2) { /* [1, 6], [2, 3], [6, 1] */
        fragment_resize(f, m, 6 / columns);
        fragment_resize(f, n, columns);
        ck_assert_int_eq(backend_launch(&ref, handle, &f->launch, &word), FNX_OK);
        double first = columns == 6 ? 1 / (3 + 3 * exp(5)) : 1 / (double)columns;
        ck_assert(fabs(y[0] - first) < 1e-15);
    }
    ref.groups->release(handle);
    ref.groups->release(NULL);
    fragment_destroy(f);
}
END_TEST

START_TEST(one_call_runs_many_launches) {
    struct longer { /* a host with a newer struct */
        fnx_launch launch;
        uint64_t newer;
    } launches[3];
    fnx_binding bindings[3][2];
    fnx_scalar factors[3];
    float x[3] = {1, 2, 3}, y[3];
    void *handle;
    fragment *f = fragment_create();
    uint32_t s = fragment_scalar(f, FNX_F32, 1), vx = fragment_input(f, FNX_F32, RANK0, x);
    uint32_t vy = fragment_output(f, FNX_F32, RANK0, y);
    fragment_node(f, FNX_OP_mul, NULL, 0, REFS(vx, s), REFS(vy));
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    for (int i = 0; i < 3; i++) {
        bindings[i][0].address = (uint64_t)(uintptr_t)&x[i];
        bindings[i][1].address = (uint64_t)(uintptr_t)&y[i];
        factors[i] = fragment_scalar_of(FNX_F32, 10 * i);
        launches[i].launch = f->launch;
        launches[i].launch.bindings = bindings[i];
        launches[i].launch.scalars = &factors[i];
    }
    ck_assert_int_eq(ref.groups->launch(handle, ref.queue, &launches[0].launch, 3, sizeof *launches), FNX_OK);
    CHECK_SAME(y, ((const float[]){0, 20, 60}), 3);
    ref.groups->release(handle);
    fragment_destroy(f);
}
END_TEST

START_TEST(longer_structs_of_a_newer_host_are_understood) {
    const double x[] = {0, log(3)}, want[] = {0.25, 0.75};
    double y[2];
    fragment *f = fragment_create();
    f->stretch = 24;
    softmax(f, SHAPE(f, 1, 2), x, y);
    run(f);
    CHECK_NEAR(y, want, 2, 1e-15);
}
END_TEST

START_TEST(the_group_may_go_after_prepare) {
    const float x[] = {1, 2};
    float y[2];
    void *handle;
    fragment *f = fragment_create();
    uint32_t vx = fragment_input(f, FNX_F32, SHAPE(f, 2), x), vy = fragment_output(f, FNX_F32, SHAPE(f, 2), y);
    fragment_node(f, FNX_OP_neg, NULL, 0, REFS(vx), REFS(vy));
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    memset(f->group, 0xff, f->group->total_bytes);
    ck_assert_int_eq(ref.groups->launch(handle, ref.queue, &f->launch, 1, sizeof f->launch), FNX_OK);
    CHECK_SAME(y, ((const float[]){-1, -2}), 2);
    ref.groups->release(handle);
    fragment_destroy(f);
}
END_TEST

START_TEST(workspace_of_impossible_sizes_is_refused) {
    fragment *f = fragment_create();
    uint16_t n = fragment_size(f, 2);
    void *handle;
    uint64_t bytes;
    uint32_t x = fragment_input(f, FNX_F32, ENTRIES(n, n, n), NULL), t = fragment_temp(f, FNX_F32, ENTRIES(n, n, n));
    uint32_t y = fragment_output(f, FNX_F32, ENTRIES(n, n, n), NULL);
    fragment_node(f, FNX_OP_neg, NULL, 0, REFS(x), REFS(t));
    fragment_node(f, FNX_OP_neg, NULL, 0, REFS(t), REFS(y));
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    ck_assert_int_eq(ref.groups->workspace(handle, &f->launch, &bytes), FNX_OK);
    ck_assert_uint_ge(bytes, 32);
    f->length[n] = INT64_C(1) << 30;
    ck_assert_int_eq(ref.groups->workspace(handle, &f->launch, &bytes), FNX_E_NO_MEMORY);
    ref.groups->release(handle);
    fragment_destroy(f);
}
END_TEST

/* ---- declines ---------------------------------------------------------------------------------------------------- */

/* A group of one add in f32, to be spoilt. */
static fragment *plain_add(void) {
    fragment *f = fragment_create();
    fragment_shape s = SHAPE(f, 4);
    uint32_t a = fragment_input(f, FNX_F32, s, NULL), b = fragment_input(f, FNX_F32, s, NULL),
             y = fragment_output(f, FNX_F32, s, NULL);
    fragment_node(f, FNX_OP_add, NULL, 0, REFS(a, b), REFS(y));
    return f;
}

static fnx_decline declined(fragment *f) {
    fnx_decline why = {.struct_size = sizeof why, .node = 77, .value = 77};
    void *handle = NULL;
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, &why), FNX_E_DECLINED);
    ck_assert_ptr_null(handle);
    ck_assert(why.text[0] != 0);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_E_DECLINED);
    fragment_destroy(f);
    return why;
}

static void accepted(fragment *f) {
    void *handle = NULL;
    fragment_finish(f);
    ck_assert_int_eq(ref.groups->prepare(ref.device, f->group, &handle, NULL), FNX_OK);
    ref.groups->release(handle);
    fragment_destroy(f);
}

START_TEST(unknown_words_are_declined_unknown_promises_are_not) {
    fragment *f = plain_add();
    f->group_header.features = 2;
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_FEATURE);
    f = plain_add();
    f->value[1].flags = 4;
    fnx_decline why = declined(f);
    ck_assert_uint_eq(why.why, FNX_DECLINE_FEATURE);
    ck_assert_uint_eq(why.value, 1);
    f = plain_add();
    f->node[0].flags = 1;
    why = declined(f);
    ck_assert_uint_eq(why.why, FNX_DECLINE_FEATURE);
    ck_assert_uint_eq(why.node, 0);
    f = plain_add();
    f->value[0].kind = 9;
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_FEATURE);
    f = plain_add();
    f->group_header.flags = 0x80000000u | FNX_GROUP_INDEX32;
    accepted(f);
}
END_TEST

START_TEST(unknown_ops_are_declined_by_node) {
    fragment *f = plain_add();
    f->node[0].op = FNX_OP_softmax;
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_OP);
    f = plain_add();
    f->node[0].op = fragment_extension_op(f, "linalg.cholesky");
    fnx_decline why = declined(f);
    ck_assert_uint_eq(why.why, FNX_DECLINE_OP);
    ck_assert_uint_eq(why.node, 0);
    f = plain_add();
    f->node[0].n_operands = 1; /* its result is now the second operand of before */
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_OP);
}
END_TEST

START_TEST(dtypes_that_an_op_does_not_take_are_declined_by_value) {
    fragment *f = plain_add();
    f->value[2].dtype = FNX_F64;
    fnx_decline why = declined(f);
    ck_assert_uint_eq(why.why, FNX_DECLINE_DTYPE);
    ck_assert_uint_eq(why.value, 2);
    f = plain_add();
    f->value[0].dtype = f->value[1].dtype = f->value[2].dtype = FNX_F16;
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_DTYPE);
    f = plain_add();
    f->value[0].dtype = f->value[1].dtype = f->value[2].dtype = FNX_BOOL;
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_DTYPE);
}
END_TEST

START_TEST(newer_attributes_are_declined_unless_they_are_0) {
    for (int k = 0; k < 2; k++) {
        const struct {
            fnx_attr_reduce known;
            uint64_t newer;
        } attr = {{1, 0}, (uint64_t)k};
        fragment *f = fragment_create();
        uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 4), NULL), y = fragment_output(f, FNX_F32, SHAPE(f, 1), NULL);
        fragment_node(f, FNX_OP_sum, &attr, sizeof attr, REFS(x), REFS(y));
        if (k) ck_assert_uint_eq(declined(f).why, FNX_DECLINE_ATTR);
        else accepted(f);
    }
    const fnx_attr_reduce reserved = {1, 1}; /* a member that has no meaning yet */
    fragment *f = fragment_create();
    uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 4), NULL), y = fragment_output(f, FNX_F32, SHAPE(f, 1), NULL);
    fragment_node(f, FNX_OP_sum, &reserved, sizeof reserved, REFS(x), REFS(y));
    ck_assert_uint_eq(declined(f).why, FNX_DECLINE_ATTR);
}
END_TEST

START_TEST(attributes_that_mean_nothing_are_declined) {
    fnx_attr_conv attr = {1, 0, {1, 0, 0}, {1, 0, 0}, {0, 0, 0}, {0, 0, 0}}; /* no groups */
    for (int k = 0; k < 3; k++) {
        fragment *f = fragment_create();
        uint32_t x = fragment_input(f, FNX_F32, SHAPE(f, 1, 1, 4), NULL),
                 w = fragment_input(f, FNX_F32, SHAPE(f, 1, 1, 2), NULL);
        uint32_t y = fragment_output(f, FNX_F32, SHAPE(f, 1, 1, 3), NULL);
        if (k == 1) attr.groups = 1, attr.spatial = 4;
        if (k == 2) attr.spatial = 1, attr.stride[0] = 0;
        fragment_node(f, FNX_OP_conv, &attr, sizeof attr, REFS(x, w), REFS(y));
        ck_assert_uint_eq(declined(f).why, FNX_DECLINE_ATTR);
    }
}
END_TEST

/* ---- the kernel record ------------------------------------------------------------------------------------------- */

START_TEST(the_matmul_kernel_agrees_with_the_group) {
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    float y[4] = {0};
    const fnx_kernel *kernel = ref.table->kernels;
    fnx_decline why = {.struct_size = sizeof why};
    ck_assert_uint_eq(ref.table->n_kernels, 1);
    ck_assert_uint_eq(kernel->op, FNX_OP_matmul);
    fragment *f = fragment_create();
    uint32_t va = fragment_input(f, FNX_F32, SHAPE(f, 2, 3), a), vb = fragment_input(f, FNX_F32, SHAPE(f, 3, 2), b);
    uint32_t vy = fragment_output(f, FNX_F32, SHAPE(f, 2, 2), y);
    fragment_node(f, FNX_OP_matmul, NULL, 0, REFS(va, vb), REFS(vy));
    fragment_finish(f);
    ck_assert_int_eq(kernel->supports(ref.device, f->group, &f->launch, &why), FNX_OK);
    ck_assert_int_eq(kernel->launch(ref.device, ref.queue, f->group, &f->launch), FNX_OK);
    CHECK_SAME(y, ((const float[]){58, 64, 139, 154}), 4);
    fragment_share_slot(f, vy, vb);
    fragment_finish(f);
    ck_assert_int_eq(kernel->supports(ref.device, f->group, &f->launch, &why), FNX_E_DECLINED);
    ck_assert_uint_eq(why.why, FNX_DECLINE_LAYOUT);
    fragment_destroy(f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ref: the plugin");
    TCase *t = tcase_create("plugin");
    tcase_add_checked_fixture(t, ref_setup, ref_teardown);
    tcase_add_test(t, descriptor_says_what_it_is);
    tcase_add_test(t, the_only_device_is_0);
    tcase_add_test(t, an_old_host_is_refused);
    tcase_add_test(t, info_promises_host_memory);
    tcase_add_test(t, allocations_are_aligned_distinct_and_bounded);
    tcase_add_test(t, copy_and_fill_write_bytes);
    tcase_add_test(t, events_are_done_when_recorded);
    tcase_add_test(t, each_queue_has_an_error_word_that_sync_clears);
    tcase_add_test(t, two_threads_use_two_queues);
    tcase_add_test(t, capabilities_list_every_op_once);
    tcase_add_test(t, a_chain_broadcasts_and_has_two_outputs);
    tcase_add_test(t, temporaries_are_rounded_to_their_dtype);
    tcase_add_test(t, strides_may_be_negative_zero_and_permuted);
    tcase_add_test(t, outputs_of_one_slot_are_parts_of_one_tensor);
    tcase_add_test(t, in_place_outputs_are_written_after_the_last_read);
    tcase_add_test(t, a_product_may_overwrite_its_operand);
    tcase_add_test(t, rank_0_and_rank_8_run);
    tcase_add_test(t, empty_values_touch_no_memory);
    tcase_add_test(t, index_values_count_without_memory);
    tcase_add_test(t, scalars_may_be_any_operand);
    tcase_add_test(t, scalars_may_lie_in_memory);
    tcase_add_test(t, reduced_values_meet_their_rows_again);
    tcase_add_test(t, a_product_has_an_epilogue);
    tcase_add_test(t, one_handle_runs_other_sizes);
    tcase_add_test(t, one_call_runs_many_launches);
    tcase_add_test(t, longer_structs_of_a_newer_host_are_understood);
    tcase_add_test(t, the_group_may_go_after_prepare);
    tcase_add_test(t, workspace_of_impossible_sizes_is_refused);
    tcase_add_test(t, unknown_words_are_declined_unknown_promises_are_not);
    tcase_add_test(t, unknown_ops_are_declined_by_node);
    tcase_add_test(t, dtypes_that_an_op_does_not_take_are_declined_by_value);
    tcase_add_test(t, newer_attributes_are_declined_unless_they_are_0);
    tcase_add_test(t, attributes_that_mean_nothing_are_declined);
    tcase_add_test(t, the_matmul_kernel_agrees_with_the_group);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
