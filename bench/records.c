/* Host cost per operation: a synthetic training step of about 1,000 records (12-layer MLP out of primitives, dropout,
 * AdamW on 24 parameters) on tensors so small that kernels cost nothing much, and a chain of adds. Prints medians:
 *
 *   ns per record      recording alone, forward, backward and update (lock, checks, inference, append)
 *   ns per replay      flush on a hit of the plan cache, per record: demand, key, compare, patch, settle, launches
 *
 * The device is $FORNAX_DEVICE, or "null" if a plugin of that name is there; a second thread is alive, since C
 * libraries skip atomic instructions in programs of one thread. */
#include <fornax/fornax.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LAYERS = 12, PARAMETERS = 2 * LAYERS, ROWS = 4, WIDTH = 4, STEPS = 1000 };

static fnx_variable *w[PARAMETERS], *m[PARAMETERS], *v[PARAMETERS];
static fnx_tensor *data, *target;
static fnx_device *dev;
static int64_t steps;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(void) {
    fprintf(stderr, "records: %s\n", fnx_last_error()->message);
    exit(1);
}

static fnx_tensor *forward(fnx_tensor *x) {
    FNX_SCOPE_QUIET;
    for (int i = 0; i < LAYERS; i++) {
        fnx_tensor *z = fnx_add(fnx_matmul(x, fnx_variable_get(w[2 * i])), fnx_variable_get(w[2 * i + 1]));
        fnx_tensor *gate = fnx_add_scalar(fnx_exp(fnx_neg(z)), 1);
        fnx_tensor *kept =
            fnx_cast(fnx_greater_scalar(fnx_uniform(dev, FNX_F32, FNX_SHAPE(ROWS, WIDTH), 0, 1), 0.1), FNX_F32);
        fnx_tensor *y = fnx_mul(fnx_mul_scalar(fnx_div(z, gate), 1 / 0.9), kept);
        fnx_tensor *c = fnx_sub(y, fnx_mul_scalar(fnx_sum(y, FNX_AXES(1), true), 1.0 / WIDTH));
        fnx_tensor *variance = fnx_mul_scalar(fnx_sum(fnx_mul(c, c), FNX_AXES(1), true), 1.0 / WIDTH);
        x = fnx_div(c, fnx_sqrt(fnx_add_scalar(variance, 1e-5)));
    }
    return fnx_return(x);
}

static fnx_status update(double lr) {
    FNX_NO_GRAD;
    double c1 = 1 - pow(0.9, (double)++steps), c2 = 1 - pow(0.999, (double)steps);
    for (int i = 0; i < PARAMETERS; i++) {
        fnx_tensor *g = fnx_variable_grad_take(w[i]);
        fnx_tensor *mean = fnx_add(fnx_mul_scalar(fnx_variable_get(m[i]), 0.9), fnx_mul_scalar(g, 0.1));
        fnx_tensor *square =
            fnx_add(fnx_mul_scalar(fnx_variable_get(v[i]), 0.999), fnx_mul_scalar(fnx_mul(g, g), 0.001));
        fnx_tensor *d =
            fnx_div(fnx_mul_scalar(mean, lr / c1), fnx_add_scalar(fnx_sqrt(fnx_mul_scalar(square, 1 / c2)), 1e-8));
        fnx_tensor *next = fnx_sub(fnx_mul_scalar(fnx_variable_get(w[i]), 1 - lr * 0.01), d);
        if (fnx_variable_set(m[i], mean) || fnx_variable_set(v[i], square) || fnx_variable_set(w[i], next)) return -1;
    }
    return 0;
}

static void step(int64_t s, double *recorded, double *flushed) {
    FNX_SCOPE;
    double t0 = now();
    fnx_tensor *x = fnx_slice(data, 0, s * 7 % 56 * ROWS, ROWS), *d = fnx_sub(forward(x), target);
    fnx_tensor *loss = fnx_mul_scalar(fnx_sum(fnx_mul(d, d), FNX_ALL_AXES, false), 1.0 / ROWS);
    if (fnx_backward(loss) || update(1e-3 / (1 + 0.01 * (double)s))) fail();
    double t1 = now();
    if (fnx_flush()) fail();
    *recorded = t1 - t0, *flushed = now() - t1;
}

static void *sleeper(void *arg) {
    for (;;) pause();
    return arg;
}

static int ascending(const void *a, const void *b) {
    double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

static double median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

int main(void) {
    static double recorded[STEPS], flushed[STEPS], chain[300];
    pthread_t id;
    pthread_create(&id, NULL, sleeper, NULL);
    dev = fnx_device_autodiff(fnx_device_open(NULL));
    if (fnx_device_status(dev)) fail();
    {
        FNX_SCOPE;
        for (int i = 0; i < PARAMETERS; i++) {
            int rank = i % 2 ? 1 : 2;
            const int64_t size[2] = {WIDTH, WIDTH};
            w[i] = fnx_variable_create("w", fnx_uniform(dev, FNX_F32, rank, size, -0.25, 0.25), true);
            m[i] = fnx_variable_create("m", fnx_fill(dev, FNX_F32, rank, size, 0), false);
            v[i] = fnx_variable_create("v", fnx_fill(dev, FNX_F32, rank, size, 0), false);
        }
        data = fnx_retain(fnx_uniform(dev, FNX_F32, FNX_SHAPE(64 * ROWS, WIDTH), 0, 1));
        target = fnx_retain(fnx_uniform(dev, FNX_F32, FNX_SHAPE(ROWS, WIDTH), 0, 1));
    }
    fnx_graph_stats a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    double ignored, t0 = now();
    step(0, &ignored, &ignored);
    double first = now() - t0;
    for (int i = 1; i < 100; i++) step(i, &ignored, &ignored);
    if (fnx_device_stats(dev, &a)) fail();
    for (int i = 0; i < STEPS; i++) step(100 + i, &recorded[i], &flushed[i]);
    if (fnx_device_stats(dev, &b)) fail();
    double records = (double)(b.records - a.records) / STEPS;
    printf("records per step            %.0f, launches %.0f\n", records, (double)(b.launches - a.launches) / STEPS);
    printf("plans built                 %llu of %llu flushes\n", (unsigned long long)(b.plans - a.plans),
           (unsigned long long)(b.flushes - a.flushes));
    printf("building the plan           %.2f us per record (first step)\n", first / 1000 / records);
    printf("recording                   %.1f ns per record\n", median(recorded, STEPS) / records);
    printf("replay, launches included   %.1f ns per record\n", median(flushed, STEPS) / records);
    for (int i = 0; i < 300; i++) {
        FNX_SCOPE;
        fnx_tensor *x = fnx_variable_get(w[0]), *y = x;
        double from = now();
        for (int k = 0; k < 1000; k++) y = fnx_add(y, x);
        chain[i] = (now() - from) / 1000;
    }
    printf("add, recording only         %.1f ns\n", median(chain, 300));
    return 0;
}
