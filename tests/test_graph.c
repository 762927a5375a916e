/* The recorder, the demand rule and the plan cache, seen from a program: where a value is read must not matter, a
 * repeated step builds no plan, updates are done in place, and lazy equals eager. Right values come from closed forms
 * and from eager mode. */
#include "support/devices.h"

#include <fornax/fornax.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static bool near_to(double a, double b) { return fabs(a - b) <= 1e-5 * (1 + fabs(a) + fabs(b)); }

static double item(fnx_tensor *t) {
    double v = NAN;
    if (fnx_tensor_item(t, &v)) v = NAN;
    return v;
}

static double total(fnx_tensor *t) { return item(fnx_sum(t, FNX_ALL_AXES, false)); }

static fnx_graph_stats stats(fnx_device *dev) {
    fnx_graph_stats s = {.struct_size = sizeof s};
    ck_assert_int_eq(fnx_device_stats(dev, &s), 0);
    return s;
}

static void set_lazy(fnx_device *dev, bool lazy) {
    fnx_settings s = {.struct_size = sizeof s, .lazy = lazy ? FNX_ON : FNX_OFF};
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
}

static fnx_tensor *random_host(fnx_device *dev, int rank, const int64_t *sizes, uint64_t seed) {
    float x[4096];
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= sizes[d];
    for (int64_t i = 0; i < n; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (float)(seed >> 40) / (1 << 24) - 0.5f;
    }
    return fnx_tensor_from(dev, FNX_F32, rank, sizes, x, 0);
}

/* ---- a two-layer network with AdamW, out of public ops ----------------------------------------------------------- */

enum { B = 16, D = 24, H = 32, C = 4, P = 4 };

typedef struct net {
    fnx_device *dev;
    fnx_variable *w[P], *m[P], *v[P];
    int64_t steps;
    double lr;
    bool keep_gradients;
} net;

static void net_init(net *n, fnx_device *dev) {
    FNX_SCOPE;
    const int64_t sizes[P][2] = {{D, H}, {H, 0}, {H, C}, {C, 0}};
    *n = (net){.dev = dev, .lr = 1e-2};
    for (int i = 0; i < P; i++) {
        char name[40];
        int rank = i % 2 ? 1 : 2;
        snprintf(name, sizeof name, "layer%d.%s", i / 2 + 1, i % 2 ? "bias" : "weight");
        n->w[i] = fnx_variable_create(name, random_host(dev, rank, sizes[i], 7u + (unsigned)i), true);
        n->m[i] = fnx_variable_create("m", fnx_fill(dev, FNX_F32, rank, sizes[i], 0), false);
        n->v[i] = fnx_variable_create("v", fnx_fill(dev, FNX_F32, rank, sizes[i], 0), false);
    }
}

static void net_free(net *n) {
    for (int i = 0; i < P; i++)
        fnx_variable_destroy(n->w[i]), fnx_variable_destroy(n->m[i]), fnx_variable_destroy(n->v[i]);
}

static fnx_status adamw_update(net *n) { /* its scope closes before the flush: open names would keep old values alive */
    FNX_NO_GRAD;
    const double b1 = 0.9, b2 = 0.999, decay = 0.01;
    double c1 = 1 - pow(b1, (double)++n->steps), c2 = 1 - pow(b2, (double)n->steps);
    for (int i = 0; i < P; i++) {
        fnx_tensor *g = n->keep_gradients ? fnx_variable_grad(n->w[i]) : fnx_variable_grad_take(n->w[i]);
        if (!g) continue;
        fnx_tensor *w = fnx_variable_get(n->w[i]);
        fnx_tensor *m = fnx_add(fnx_mul_scalar(fnx_variable_get(n->m[i]), b1), fnx_mul_scalar(g, 1 - b1));
        fnx_tensor *v = fnx_add(fnx_mul_scalar(fnx_variable_get(n->v[i]), b2), fnx_mul_scalar(fnx_mul(g, g), 1 - b2));
        fnx_tensor *d =
            fnx_div(fnx_mul_scalar(m, n->lr / c1), fnx_add_scalar(fnx_sqrt(fnx_mul_scalar(v, 1 / c2)), 1e-8));
        fnx_status code = fnx_variable_set(n->m[i], m);
        if (!code) code = fnx_variable_set(n->v[i], v);
        if (!code) code = fnx_variable_set(n->w[i], fnx_sub(fnx_mul_scalar(w, 1 - n->lr * decay), d));
        if (code) return code;
        if (n->keep_gradients) fnx_variable_grad_clear(n->w[i]);
    }
    return FNX_OK;
}

static fnx_status adamw_step(net *n) {
    fnx_status code = adamw_update(n);
    return code ? code : fnx_flush();
}

static fnx_tensor *layer(net *n, int i, fnx_tensor *x) {
    return fnx_add(fnx_matmul(x, fnx_variable_get(n->w[2 * i])), fnx_variable_get(n->w[2 * i + 1]));
}

static fnx_tensor *forward_open(net *n, fnx_tensor *x) { return layer(n, 1, fnx_relu(layer(n, 0, x))); }

static fnx_tensor *forward_module(net *n, fnx_tensor *x) { /* as a module of a library: its own quiet scope */
    FNX_SCOPE_QUIET;
    return fnx_return(forward_open(n, x));
}

static fnx_tensor *batch_x(net *n, int step) {
    return random_host(n->dev, 2, (int64_t[]){B, D}, 1000u + (unsigned)step);
}

static fnx_tensor *batch_y(net *n, int step) {
    int64_t y[B];
    for (int i = 0; i < B; i++) y[i] = (i * 7 + step) % C;
    return fnx_tensor_from(n->dev, FNX_I64, FNX_SHAPE(B), y, 0);
}

/* ---- where the loss is read -------------------------------------------------------------------------------------- */

typedef enum when {
    BEFORE_BACKWARD,
    AFTER_STEP,
    OUTSIDE,
    EVERY_10,
    NEVER,
    LOGITS_AFTER,
    LOSS_THEN_LOGITS,
    HIDDEN_AFTER,
    N_WHEN
} when;

typedef struct outcome {
    double loss, logit;
    fnx_graph_stats s; /* of steps 3 to 29 */
    uint64_t peak;
} outcome;

static outcome train(fnx_device *dev, when w, bool lazy, bool module) {
    net n;
    outcome o = {.loss = NAN, .logit = NAN};
    fnx_graph_stats from = {0};
    fnx_memory_report memory = {.struct_size = sizeof memory};
    fnx_tensor *outside = NULL;
    uint64_t before = 0;
    set_lazy(dev, lazy);
    net_init(&n, dev);
    for (int step = 0; step < 30; step++) {
        if (step == 3) { /* plans exist */
            from = stats(dev);
            fnx_device_memory_reset(dev);
            ck_assert_int_eq(fnx_device_memory(dev, &memory), 0);
            before = memory.in_use;
        }
        FNX_SCOPE;
        fnx_tensor *x = batch_x(&n, step), *hidden = NULL, *logits;
        if (w == HIDDEN_AFTER) hidden = fnx_relu(layer(&n, 0, x)), logits = layer(&n, 1, hidden);
        else logits = module ? forward_module(&n, x) : forward_open(&n, x);
        fnx_tensor *loss = fnx_cross_entropy(logits, batch_y(&n, step));
        if (w == BEFORE_BACKWARD) o.loss = item(loss);
        ck_assert_msg(fnx_backward(loss) == 0, "%s", fnx_last_error()->message);
        ck_assert_msg(adamw_step(&n) == 0, "%s", fnx_last_error()->message);
        if (w == AFTER_STEP || w == LOSS_THEN_LOGITS || (w == EVERY_10 && step % 10 == 9)) o.loss = item(loss);
        if (w == LOGITS_AFTER || w == LOSS_THEN_LOGITS) o.logit = total(logits);
        if (w == HIDDEN_AFTER) o.logit = total(hidden);
        if (w == OUTSIDE) fnx_release(outside), outside = fnx_retain(loss);
    }
    o.s = stats(dev);
    ck_assert_int_eq(fnx_device_memory(dev, &memory), 0);
    o.peak = memory.in_use_peak - before;
    if (w == OUTSIDE) {
        FNX_SCOPE_QUIET;
        o.loss = item(outside);
        fnx_release(outside);
    }
    o.s.plans -= from.plans, o.s.hits -= from.hits, o.s.launches -= from.launches, o.s.flushes -= from.flushes;
    o.s.recomputed -= from.recomputed, o.s.donated -= from.donated, o.s.records -= from.records;
    net_free(&n);
    set_lazy(dev, true);
    return o;
}

START_TEST(reading_the_loss_elsewhere_changes_nothing) {
    fnx_device *dev = test_device(_i, true);
    outcome right = train(dev, AFTER_STEP, false, true), after = train(dev, AFTER_STEP, true, true);
    const when same[] = {OUTSIDE, EVERY_10, NEVER};
    ck_assert_int_eq(after.s.plans, 0);
    ck_assert_int_eq(after.s.donated, 27 * 3 * P);
    ck_assert(near_to(after.loss, right.loss));
    for (int i = 0; i < 3; i++) {
        outcome o = train(dev, same[i], true, true);
        ck_assert_int_eq(o.s.plans, 0);
        ck_assert_int_eq(o.s.launches, after.s.launches);
        ck_assert_int_eq(o.peak, after.peak);
        if (same[i] != NEVER) ck_assert(near_to(o.loss, right.loss));
    }
    outcome first = train(dev, BEFORE_BACKWARD, true, true);
    ck_assert_int_eq(first.s.plans, 0);
    ck_assert(near_to(first.loss, right.loss));
    fnx_device_close(dev);
}
END_TEST

START_TEST(logits_and_hidden_values_after_the_step_equal_eager) {
    fnx_device *dev = test_device(_i, true);
    for (int module = 0; module < 2; module++)
        for (when w = LOGITS_AFTER; w < N_WHEN; w++) {
            outcome right = train(dev, w, false, module), o = train(dev, w, true, module);
            ck_assert_msg(near_to(o.logit, right.logit), "case %d, module %d: %g, eager %g", (int)w, module, o.logit,
                          right.logit);
        }
    fnx_device_close(dev);
}
END_TEST

START_TEST(accumulated_micro_batches_equal_eager_and_hit_the_cache) {
    fnx_device *dev = test_device(_i, true);
    double out[2];
    for (int lazy = 0; lazy < 2; lazy++) {
        net n;
        fnx_graph_stats from = {0};
        set_lazy(dev, lazy);
        net_init(&n, dev);
        for (int step = 0; step < 12; step++) {
            if (step == 4) from = stats(dev);
            for (int micro = 0; micro < 4; micro++) {
                FNX_SCOPE;
                ck_assert_int_eq(fnx_backward(fnx_cross_entropy(forward_module(&n, batch_x(&n, step * 4 + micro)),
                                                                batch_y(&n, micro))),
                                 0);
            }
            FNX_SCOPE;
            ck_assert_int_eq(adamw_step(&n), 0);
        }
        if (lazy) ck_assert_int_eq(stats(dev).plans, from.plans);
        FNX_SCOPE;
        out[lazy] = total(fnx_variable_get(n.w[0]));
        net_free(&n);
    }
    ck_assert(near_to(out[0], out[1]));
    fnx_device_close(dev);
}
END_TEST

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

static fnx_tensor *helper(fnx_tensor *x) {
    FNX_SCOPE;
    return fnx_return(fnx_exp(fnx_neg(fnx_mul(x, x))));
}

START_TEST(a_helper_with_its_own_scope_flushes_once_inside_another) {
    fnx_device *dev = test_device(_i, false);
    {
        FNX_SCOPE;
        fnx_graph_stats from = stats(dev);
        fnx_tensor *x = fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(1), (float[]){0.1f}, 0);
        ck_assert(near_to(item(helper(helper(x))), exp(-exp(-0.02))));
        ck_assert_int_eq(stats(dev).flushes, from.flushes + 1);
    }
    {
        FNX_SCOPE_QUIET; /* as called from the root: each helper is an outermost scope */
        fnx_tensor *x = fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(1), (float[]){0.1f}, 0);
        ck_assert(near_to(item(helper(helper(x))), exp(-exp(-0.02))));
    }
    fnx_device_close(dev);
}
END_TEST

static fnx_status early(net *n, int step, bool fail) {
    FNX_SCOPE;
    fnx_tensor *x = fail ? random_host(n->dev, 2, (int64_t[]){B, D + 1}, 5) : batch_x(n, step);
    fnx_tensor *loss = fnx_cross_entropy(forward_module(n, x), batch_y(n, step));
    fnx_status code = fnx_backward(loss);
    return code ? code : adamw_step(n);
}

START_TEST(an_early_return_runs_nothing_and_names_the_first_cause) {
    fnx_device *dev = test_device(_i, true);
    net n;
    net_init(&n, dev);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(early(&n, i, false), 0);
    fnx_graph_stats from = stats(dev);
    ck_assert_int_eq(early(&n, 3, true), FNX_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "matmul"));
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "f32[16,25]"));
    ck_assert_int_eq(stats(dev).launches, from.launches);
    ck_assert_int_eq(early(&n, 3, false), 0);
    int rounds = 0;
    for (int i = 0; i < 5; i++) {
        FNX_SCOPE;
        rounds++;
        fnx_exp(batch_x(&n, i));
        if (i == 2) break;
    }
    ck_assert_int_eq(rounds, 3);
    net_free(&n);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_read_after_each_layer_recomputes_each_result_once) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE;
    net n;
    net_init(&n, dev);
    fnx_graph_stats from = stats(dev);
    fnx_tensor *h = batch_x(&n, 1);
    for (int i = 0; i < 20; i++) {
        h = fnx_add_scalar(fnx_mul_scalar(fnx_exp(fnx_neg(h)), 0.3), 0.1);
        total(h);
    }
    ck_assert_uint_lt(stats(dev).recomputed - from.recomputed, stats(dev).records - from.records);
    net_free(&n);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_graph_nobody_wants_is_dropped_without_a_plan) {
    fnx_device *dev = test_device(_i, false);
    fnx_graph_stats from = stats(dev);
    {
        FNX_SCOPE;
        fnx_exp(fnx_fill(dev, FNX_F32, FNX_SHAPE(1000), 1));
    }
    ck_assert_uint_eq(stats(dev).plans, from.plans);
    ck_assert_uint_eq(stats(dev).dropped, from.dropped + 1);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_graph_over_its_limit_is_flushed) {
    fnx_device *dev = test_device(_i, false);
    fnx_settings s = {.struct_size = sizeof s, .graph_limit = 100000};
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
    fnx_graph_stats from = stats(dev);
    FNX_SCOPE;
    fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SCALAR_SHAPE, 0);
    for (int i = 0; i < 1000; i++) x = fnx_add_scalar(x, 1); /* 4 bytes each, but 256 per record */
    ck_assert_uint_gt(stats(dev).flushes, from.flushes);
    ck_assert_double_eq(item(x), 1000);
    fnx_device_close(dev);
}
END_TEST

/* ---- variables --------------------------------------------------------------------------------------------------- */

START_TEST(a_cache_written_at_a_moving_place_has_one_plan_and_is_updated_in_place) {
    fnx_device *dev = test_device(_i, false);
    enum { T = 64, W = 8 };
    fnx_variable *cache;
    fnx_graph_stats from = {0};
    {
        FNX_SCOPE;
        cache = fnx_variable_create("kv", fnx_fill(dev, FNX_F32, FNX_SHAPE(T, W), 0), false);
    }
    for (int64_t pos = 0; pos < T; pos++) {
        if (pos == 2) from = stats(dev);
        FNX_SCOPE;
        fnx_tensor *row = fnx_mul_scalar(fnx_fill(dev, FNX_F32, FNX_SHAPE(1, W), 3.25), (double)pos + 10.25);
        ck_assert_int_eq(fnx_variable_set(cache,
                                          fnx_slice_assign(fnx_variable_get(cache), row, (int64_t[]){pos, 0}, NULL)),
                         0);
        ck_assert(near_to(total(fnx_slice(fnx_variable_get(cache), 0, pos, 1)), 3.25 * ((double)pos + 10.25) * W));
    }
    ck_assert_uint_eq(stats(dev).plans, from.plans);
    ck_assert_uint_eq(stats(dev).donated - from.donated, T - 2);
    fnx_variable_destroy(cache);
    fnx_device_close(dev);
}
END_TEST

START_TEST(slots_keep_their_values_apart) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE_QUIET;
    fnx_variable *a = fnx_variable_create("online", fnx_fill(dev, FNX_F32, FNX_SHAPE(4), 3), false);
    fnx_variable *b = fnx_variable_create("target", fnx_variable_get(a), false);
    ck_assert_int_eq(fnx_flush(), 0);
    fnx_tensor *old = fnx_keep(fnx_variable_get(a));
    {
        FNX_SCOPE;
        ck_assert_int_eq(fnx_variable_set(a, fnx_mul_scalar(fnx_variable_get(a), 3)), 0);
    }
    ck_assert_double_eq(total(fnx_variable_get(a)), 36);
    ck_assert_double_eq(total(fnx_variable_get(b)), 12);
    ck_assert_double_eq(total(old), 12);
    fnx_tensor *lent = fnx_variable_get(a);
    {
        FNX_SCOPE;
        ck_assert_int_eq(fnx_variable_set(a, fnx_mul_scalar(fnx_variable_get(a), 3)), 0);
    }
    double v;
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(lent, FNX_ALL_AXES, false), &v), FNX_E_LOST);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "online"));
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "fnx_keep"));
    fnx_tensor *w = fnx_variable_get(a),
               *next = fnx_mul_scalar(w, 7); /* the old value used after the set, in one graph */
    ck_assert_int_eq(fnx_variable_set(a, next), 0);
    ck_assert_double_eq(total(fnx_add(w, fnx_variable_get(a))), 27 * 8 * 4);
    fnx_tensor *twice = fnx_add(next, next);
    ck_assert_double_eq(total(twice), 27 * 14 * 4);
    fnx_variable_destroy(a), fnx_variable_destroy(b);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_recomputed_random_tensor_has_the_same_numbers) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE_QUIET;
    fnx_tensor *u = fnx_uniform(dev, FNX_F32, FNX_SHAPE(100), 0, 1), *v = fnx_add_scalar(u, 1);
    double first = total(v);
    ck_assert(near_to(total(u) + 100, first));
    fnx_device_close(dev);
}
END_TEST

START_TEST(values_change_without_new_plans) {
    fnx_device *dev = test_device(_i, false);
    fnx_tensor *data, *out = NULL;
    fnx_graph_stats from = {0};
    FNX_SCOPE_QUIET;
    data = fnx_cast(fnx_iota(dev, FNX_I64, FNX_SHAPE(100), 0), FNX_F32);
    ck_assert_int_eq(fnx_eval(data), 0);
    for (int i = 0; i < 50; i++) {
        if (i == 3) from = stats(dev); /* 1 and 2 are classes of their own */
        FNX_SCOPE;
        out = fnx_add_scalar(fnx_mul_scalar(fnx_slice(data, 0, i, 10), 3 + i), -0.3 * (i + 1));
        out = fnx_add(out, fnx_mul_scalar(fnx_uniform(dev, FNX_F32, FNX_SHAPE(10), 0, 1 + i), 1e-30 * (i + 1)));
        ck_assert(near_to(total(out), (3 + i) * (10 * i + 45) - 3.0 * (i + 1)));
    }
    ck_assert_uint_eq(stats(dev).plans, from.plans);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_scalar_of_another_class_builds_one_plan) {
    fnx_device *dev = test_device(_i, false);
    FNX_SCOPE_QUIET;
    fnx_tensor *x = fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(2), (float[]){INFINITY, 2}, 0);
    float out[2];
    ck_assert_int_eq(fnx_tensor_read(fnx_mul_scalar(x, 3), out, sizeof out), 0);
    ck_assert(out[0] == INFINITY && out[1] == 6);
    ck_assert_int_eq(fnx_tensor_read(fnx_mul_scalar(x, 0), out, sizeof out), 0);
    ck_assert(isnan(out[0]) && out[1] == 0);
    ck_assert_int_eq(fnx_tensor_read(fnx_mul_scalar(x, 1), out, sizeof out), 0);
    ck_assert(out[0] == INFINITY && out[1] == 2);
    ck_assert_int_eq(fnx_tensor_read(fnx_mul_scalar(x, 5), out, sizeof out), 0);
    ck_assert(out[1] == 10);
    fnx_device_close(dev);
}
END_TEST

/* ---- gradients through flushes ----------------------------------------------------------------------------------- */

START_TEST(derivatives_of_three_orders_across_a_flush) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    fnx_variable *v =
        fnx_variable_create("x", fnx_tensor_from(dev, FNX_F64, FNX_SHAPE(2), (double[]){1.5, -2}, 0), true);
    fnx_tensor *x = fnx_variable_get(v), *y = fnx_sum(fnx_mul(fnx_mul(x, x), fnx_exp(x)), FNX_ALL_AXES, false), *g, *h,
               *k;
    ck_assert_int_eq(fnx_grad(y, &x, 1, &g, .create_graph = true), 0);
    item(y);
    ck_assert_int_eq(fnx_grad(fnx_sum(g, FNX_ALL_AXES, false), &x, 1, &h, .create_graph = true), 0);
    ck_assert_int_eq(fnx_grad(fnx_sum(h, FNX_ALL_AXES, false), &x, 1, &k, .retain = true), 0);
    double e = exp(1.5), got[2];
    ck_assert_int_eq(fnx_tensor_read(g, got, sizeof got), 0);
    ck_assert(near_to(got[0], (1.5 * 1.5 + 3) * e));
    ck_assert_int_eq(fnx_tensor_read(h, got, sizeof got), 0);
    ck_assert(near_to(got[0], (1.5 * 1.5 + 6 + 2) * e));
    ck_assert_int_eq(fnx_tensor_read(k, got, sizeof got), 0);
    ck_assert(near_to(got[0], (1.5 * 1.5 + 9 + 6) * e) && near_to(got[1], (4 - 12 + 6) * exp(-2)));
    ck_assert_int_eq(fnx_backward(y), 0);
    ck_assert_int_eq(fnx_backward(y), FNX_E_GRADIENT);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, ".retain"));
    fnx_variable_destroy(v);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_live_tape_keeps_what_it_saved_across_an_update) {
    fnx_device *dev = test_device(_i, true);
    FNX_SCOPE_QUIET;
    fnx_variable *v =
        fnx_variable_create("x", fnx_tensor_from(dev, FNX_F64, FNX_SHAPE(2), (double[]){1.5, -2}, 0), true);
    fnx_tensor *x = fnx_variable_get(v), *p = fnx_sum(fnx_mul(x, x), FNX_ALL_AXES, false), *g;
    item(p);
    {
        FNX_NO_GRAD;
        ck_assert_int_eq(fnx_variable_set(v, fnx_mul_scalar(fnx_variable_get(v), 10)), 0);
    }
    ck_assert_int_eq(fnx_flush(), 0);
    ck_assert_int_eq(fnx_grad(p, &x, 1, &g, .retain = true), 0);
    double got[2];
    ck_assert_int_eq(fnx_tensor_read(g, got, sizeof got), 0);
    ck_assert(near_to(got[0], 3) && near_to(got[1], -4));
    ck_assert_int_eq(fnx_backward(p), 0); /* weights were updated in between: the gradient is that of the old value */
    ck_assert_int_eq(fnx_tensor_read(fnx_variable_grad(v), got, sizeof got), 0);
    ck_assert(near_to(got[0], 3) && near_to(got[1], -4));
    fnx_variable_destroy(v);
    fnx_device_close(dev);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static fnx_tensor *hand[64];
static int ready;

static void *consumer(void *arg) {
    double *sum = arg;
    for (int i = 0; i < 64; i++) {
        while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) <= i) sched_yield();
        FNX_SCOPE;
        *sum += total(fnx_add_scalar(hand[i], 1));
        fnx_release(hand[i]);
    }
    return NULL;
}

START_TEST(a_pending_tensor_can_be_used_in_another_thread) {
    fnx_device *dev = test_device(_i, false);
    pthread_t id;
    double sum = 0, want = 0;
    ready = 0;
    pthread_create(&id, NULL, consumer, &sum);
    for (int i = 0; i < 64; i++) {
        FNX_SCOPE;
        fnx_tensor *x = fnx_fill(dev, FNX_F32, FNX_SHAPE(8), i);
        hand[i] = fnx_retain(fnx_mul_scalar(x, 2));
        __atomic_store_n(&ready, i + 1, __ATOMIC_RELEASE);
        for (int k = 0; k < 50; k++) x = fnx_add_scalar(fnx_mul_scalar(x, 0.5), 1); /* goes on recording meanwhile */
        total(x);
        want += 8 * (2.0 * i + 1);
    }
    pthread_join(id, NULL);
    ck_assert(near_to(sum, want));
    fnx_device_close(dev);
}
END_TEST

static void *trainer(void *arg) {
    double *out = arg;
    fnx_device *dev = test_device((int)*out, true);
    outcome o = train(dev, AFTER_STEP, true, true);
    *out = o.loss;
    fnx_device_close(dev);
    return NULL;
}

START_TEST(two_threads_train_side_by_side) {
    double out[2] = {_i, _i};
    pthread_t id[2];
    for (int i = 0; i < 2; i++) pthread_create(&id[i], NULL, trainer, &out[i]);
    for (int i = 0; i < 2; i++) pthread_join(id[i], NULL);
    ck_assert_double_eq(out[0], out[1]);
    double alone = _i;
    trainer(&alone);
    ck_assert_double_eq(alone, out[0]);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

START_TEST(a_step_over_the_memory_limit_fails_whole_and_the_program_goes_on) {
    fnx_device *dev = test_device(_i, true);
    net n;
    net_init(&n, dev);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(early(&n, i, false), 0);
    double before[P];
    for (int i = 0; i < P; i++) {
        FNX_SCOPE;
        before[i] = total(fnx_variable_get(n.w[i]));
    }
    fnx_device_memory_trim(dev);
    fnx_memory_report m = {.struct_size = sizeof m};
    ck_assert_int_eq(fnx_device_memory(dev, &m), 0);
    fnx_settings s = {.struct_size = sizeof s, .memory_limit = m.held + 4096};
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
    {
        FNX_SCOPE;
        fnx_tensor *big = fnx_fill(dev, FNX_F32, FNX_SHAPE(B, D), 0.5); /* a step with much larger temporaries */
        fnx_tensor *wide = fnx_matmul(fnx_expand(fnx_fill(dev, FNX_F32, FNX_SHAPE(1, B), 1), FNX_SHAPE(4096, B)), big);
        fnx_tensor *loss = fnx_mean(forward_module(&n, wide), FNX_ALL_AXES, false);
        fnx_status code = fnx_backward(loss);
        if (!code) code = adamw_step(&n);
        ck_assert_int_eq(code, FNX_E_NO_MEMORY);
        ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "memory"));
        double v;
        ck_assert_int_eq(fnx_tensor_item(loss, &v), FNX_E_NO_MEMORY);
    }
    s.memory_limit = UINT64_MAX;
    ck_assert_int_eq(fnx_device_configure(dev, &s), 0);
    for (int i = 0; i < P; i++) {
        FNX_SCOPE;
        ck_assert_double_eq(total(fnx_variable_get(n.w[i])), before[i]);
    }
    ck_assert_int_eq(early(&n, 4, false), 0);
    net_free(&n);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_thousand_steps_hold_no_more_memory_than_ten) {
    fnx_device *dev = test_device(_i, true);
    net n;
    net_init(&n, dev);
    fnx_memory_report ten = {.struct_size = sizeof ten}, end = {.struct_size = sizeof end};
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(early(&n, i, false), 0);
        if (i == 9) ck_assert_int_eq(fnx_device_memory(dev, &ten), 0);
    }
    ck_assert_int_eq(fnx_device_memory(dev, &end), 0);
    ck_assert_uint_eq(end.in_use, ten.in_use);
    ck_assert_uint_eq(end.held, ten.held);
    net_free(&n);
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("graph");
    test_each_device(t, reading_the_loss_elsewhere_changes_nothing);
    test_each_device(t, logits_and_hidden_values_after_the_step_equal_eager);
    test_each_device(t, accumulated_micro_batches_equal_eager_and_hit_the_cache);
    test_each_device(t, a_helper_with_its_own_scope_flushes_once_inside_another);
    test_each_device(t, an_early_return_runs_nothing_and_names_the_first_cause);
    test_each_device(t, a_read_after_each_layer_recomputes_each_result_once);
    test_each_device(t, a_graph_nobody_wants_is_dropped_without_a_plan);
    test_each_device(t, a_graph_over_its_limit_is_flushed);
    test_each_device(t, a_cache_written_at_a_moving_place_has_one_plan_and_is_updated_in_place);
    test_each_device(t, slots_keep_their_values_apart);
    test_each_device(t, a_recomputed_random_tensor_has_the_same_numbers);
    test_each_device(t, values_change_without_new_plans);
    test_each_device(t, a_scalar_of_another_class_builds_one_plan);
    test_each_device(t, derivatives_of_three_orders_across_a_flush);
    test_each_device(t, a_live_tape_keeps_what_it_saved_across_an_update);
    test_each_device(t, a_pending_tensor_can_be_used_in_another_thread);
    test_each_device(t, two_threads_train_side_by_side);
    test_each_device(t, a_step_over_the_memory_limit_fails_whole_and_the_program_goes_on);
    test_each_device(t, a_thousand_steps_hold_no_more_memory_than_ten);
    return test_run("graph", t);
}
