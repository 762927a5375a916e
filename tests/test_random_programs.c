/* Seeded programs of up to 40 ops, run lazily on each device, equal the same program run eagerly on ref. Reads,
 * gradients, updates of variables, helpers with scopes of their own and flushes by limit come in between.
 * FORNAX_TEST_PROGRAMS: how many. */
#include "support/devices.h"

#include <math.h>

typedef struct dice {
    uint64_t state;
} dice;

static unsigned pick(dice *d, unsigned n) {
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(d->state >> 33) % n;
}

static bool near_to(double a, double b) {
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 2e-4 * (1 + fabs(a) + fabs(b));
}

static double item(fnx_tensor *t) {
    double v = NAN;
    return fnx_tensor_item(t, &v) ? NAN : v;
}

static double total(fnx_tensor *t) { return item(fnx_sum(t, FNX_ALL_AXES, false)); }

static fnx_tensor *host(fnx_device *dev, dice *d) {
    float x[12];
    for (int i = 0; i < 12; i++) x[i] = (float)pick(d, 2001) / 1000 - 1;
    return fnx_tensor_from(dev, FNX_F32, FNX_SHAPE(3, 4), x, 0);
}

static fnx_tensor *helper(fnx_tensor *x) {
    FNX_SCOPE;
    return fnx_return(fnx_exp(fnx_neg(fnx_mul(x, x))));
}

enum { OPS = 40, READS = 16 };

typedef struct outcome {
    double read[READS + 4];
    int n;
    fnx_status code; /* of the first failure, with its message */
    char message[300];
} outcome;

static void note(outcome *o, double v) {
    if (o->n < READS + 4) o->read[o->n++] = v;
}

static fnx_status trouble(outcome *o, fnx_status code) {
    if (code && !o->code) {
        o->code = code;
        snprintf(o->message, sizeof o->message, "%s", fnx_last_error()->message);
    }
    return code;
}

/* A [3, 4] result of one more op over what there is; NULL: the op made none. */
static fnx_tensor *one_op(fnx_device *dev, dice *d, fnx_tensor **t, int n, fnx_variable **v, outcome *o) {
    fnx_tensor *a = t[pick(d, (unsigned)n)], *b = t[pick(d, (unsigned)n)], *y = NULL;
    switch (pick(d, 30)) {
    case 0: return fnx_add(a, b);
    case 1: return fnx_sub(a, b);
    case 2: return fnx_mul_scalar(fnx_mul(a, b), 0.5);
    case 3: return fnx_div(a, fnx_add_scalar(fnx_mul(b, b), 1.5));
    case 4: return fnx_maximum(a, b);
    case 5: return fnx_exp(fnx_mul_scalar(a, -0.1));
    case 6: return fnx_matmul(a, fnx_mul_scalar(fnx_matmul(fnx_transpose(b, 0, 1), a), 0.1));
    case 7: return fnx_add(a, fnx_sum(b, FNX_AXES(0), true));
    case 8: return fnx_transpose(fnx_reshape(b, FNX_SHAPE(4, 3)), 0, 1);
    case 9: return fnx_slice_assign(a, fnx_slice(b, 1, pick(d, 3), 2), (int64_t[]){0, pick(d, 3)}, NULL);
    case 10: return fnx_mul(a, fnx_uniform(dev, FNX_F32, FNX_SHAPE(3, 4), -1, 1));
    case 11: return fnx_add(fnx_variable_get(v[pick(d, 2)]), a);
    case 12: {
        unsigned i = pick(d, 2);
        trouble(o, fnx_variable_set(v[i], fnx_mul_scalar(fnx_add(a, fnx_keep(fnx_variable_get(v[i]))), 0.5)));
        return NULL;
    }
    case 13: note(o, total(a)); return NULL;
    case 14: {
        fnx_tensor *x = fnx_keep(fnx_variable_get(v[0]));
        fnx_tensor *s = fnx_sum(fnx_mul(a, fnx_add(x, b)), FNX_ALL_AXES, false);
        trouble(o, fnx_grad(s, &x, 1, &y, .create_graph = pick(d, 2), .retain = true));
        return y;
    }
    case 15: return helper(a);
    case 16:
        if (pick(d, 3) == 0) trouble(o, fnx_flush());
        return NULL;
    case 17: return fnx_where(fnx_greater(a, b), a, fnx_neg(b));
    case 18: return fnx_concat((fnx_tensor *[]){fnx_slice(a, 0, 0, 1), fnx_slice(b, 0, 1, 2)}, 2, 0);
    case 19: {
        fnx_tensor *padded = fnx_pad(a, (int64_t[]){1, 0}, (int64_t[]){0, 2}, 0.25);
        return fnx_slice(fnx_slice(padded, 0, pick(d, 2), 3), 1, pick(d, 3), 4);
    }
    case 20:
    case 21: {
        int64_t i[12];
        bool add = pick(d, 2);
        for (int k = 0; k < 12; k++) i[k] = pick(d, 4);
        fnx_tensor *index = fnx_tensor_from(dev, FNX_I64, FNX_SHAPE(3, 4), i, 0);
        return add ? fnx_scatter_add(a, 1, index, b) : fnx_gather(a, 1, index);
    }
    case 22: return fnx_log_softmax(a, (int)pick(d, 2));
    case 23: return fnx_mul(a, fnx_max(b, FNX_AXES(0), true));
    case 24:
        return fnx_expand(fnx_cast(fnx_argmax(fnx_concat((fnx_tensor *[]){a, b}, 2, 0), 0, true), FNX_F32),
                          FNX_SHAPE(3, 4));
    case 25: return fnx_slice_all(a, (int64_t[]){2, 3}, (int64_t[]){3, 4}, (int64_t[]){-1, -1});
    case 26: return fnx_relu(fnx_add_scalar(a, (double)pick(d, 3) - 1));
    case 27: return fnx_mul_scalar(a, (double)pick(d, 4) - 1);
    default: return fnx_expand(fnx_sum(a, FNX_AXES(1), true), FNX_SHAPE(3, 4));
    }
}

/* What the program reads is the outcome. Values are kept in [-8, 8], so that they stay comparable. */
static void run(const char *name, uint64_t seed, bool lazy, outcome *o) {
    dice d = {seed * 77 + 1};
    fnx_device *dev = fnx_device_autodiff(fnx_device_open(name));
    fnx_settings s = {.struct_size = sizeof s,
                      .lazy = lazy ? FNX_ON : FNX_OFF,
                      .graph_limit = lazy && seed % 4 == 0 ? 4000 : 1 << 30};
    memset(o, 0, sizeof *o);
    ck_assert_msg(fnx_device_configure(dev, &s) == 0, "%s: %s", name, fnx_last_error()->message);
    fnx_device_seed(dev, seed);
    {
        FNX_SCOPE;
        fnx_tensor *t[OPS];
        fnx_variable *v[2];
        int n = 0, tries = 0;
        for (; n < 2; n++) t[n] = host(dev, &d), v[n] = fnx_variable_create("p", t[n], true);
        while (n < OPS && tries++ < 4 * OPS) {
            fnx_tensor *y = one_op(dev, &d, t, n, v, o);
            if (y) t[n++] = fnx_maximum_scalar(fnx_minimum_scalar(fnx_mul_scalar(y, 0.7), 8), -8);
        }
        o->n = o->n > READS ? READS : o->n;
        double sum = 0;
        for (int i = 0; i < n; i += 3) sum += total(t[i]);
        note(o, sum);
        for (int i = 0; i < 2; i++) note(o, total(fnx_variable_get(v[i]))), fnx_variable_destroy(v[i]);
    }
    fnx_device_close(dev);
}

START_TEST(lazy_programs_equal_the_same_run_eagerly_on_ref) {
    char names[TEST_DEVICES_MAX][64];
    const char *count = getenv("FORNAX_TEST_PROGRAMS");
    int n = count ? atoi(count) : 1000;
    test_device_names(names);
    for (int i = 0; i < n; i++) {
        outcome want, got;
        run("ref", (uint64_t)i, false, &want);
        run(names[_i], (uint64_t)i, true, &got);
        ck_assert_msg(want.code == 0, "seed %d, eager: %s", i, want.message);
        ck_assert_msg(got.code == 0, "seed %d, lazy: %s", i, got.message);
        ck_assert_int_eq(want.n, got.n);
        for (int k = 0; k < want.n; k++)
            ck_assert_msg(near_to(want.read[k], got.read[k]), "seed %d, read %d: eager %.9g, lazy %.9g", i, k,
                          want.read[k], got.read[k]);
    }
}
END_TEST

int main(void) {
    TCase *t = test_case("random programs");
    tcase_set_timeout(t, 900);
    test_each_device(t, lazy_programs_equal_the_same_run_eagerly_on_ref);
    return test_run("random programs", t);
}
