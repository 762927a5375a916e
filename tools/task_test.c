/* Testing: hits are counted on the device, per class, and read once at the end. */
#include "task.h"

#include <stdio.h>
#include <string.h>

typedef struct counts {
    fnx_variable *hits; /* f32 [classes]: exact up to 2^24 samples of a class */
    fnx_variable *loss; /* f32: sum over samples */
} counts;

static fnx_status add_batch(counts *k, fnx_module *net, const fnx_batch *b, int64_t classes) {
    fnx_tensor *logits = fnx_module_forward(net, b->x);
    fnx_tensor *hit =
        fnx_cast(fnx_equal(fnx_argmax(logits, 1, true), fnx_reshape(b->y, FNX_SHAPE(b->count, 1))), FNX_F32);
    fnx_tensor *hits = fnx_sum(fnx_mul(fnx_one_hot(b->y, classes, FNX_F32), hit), FNX_AXES(0), false);
    fnx_tensor *loss = fnx_cross_entropy_with(logits, b->y, FNX_REDUCE_SUM);
    fnx_status code = fnx_variable_set(k->hits, fnx_add(fnx_variable_get(k->hits), hits));
    return code ? code : fnx_variable_set(k->loss, fnx_add(fnx_variable_get(k->loss), loss));
}

/* False at the end of the data, when stopped, or on failure, with the code of it. */
static bool next_batch(counts *k, fnx_module *net, fnx_loader *loader, int64_t classes, fnx_status *code) {
    fnx_batch b;
    FNX_SCOPE;
    FNX_NO_GRAD;
    if (task_stopped() || !fnx_loader_next(loader, &b)) {
        *code = fnx_loader_status(loader);
        return false;
    }
    *code = add_batch(k, net, &b, classes);
    return *code == FNX_OK;
}

static fnx_status read_counts(counts *k, const run_info *info, const fnx_dataset *data, test_result *out) {
    FNX_SCOPE_QUIET;
    float hits[TASK_CLASSES_MAX];
    double loss;
    const uint8_t *labels = fnx_dataset_labels(data);
    fnx_status code = fnx_tensor_read(fnx_variable_get(k->hits), hits, (size_t)info->classes * sizeof *hits);
    if (!code) code = fnx_tensor_item(fnx_variable_get(k->loss), &loss);
    if (code) return code;
    memset(out, 0, sizeof *out);
    out->samples = fnx_dataset_count(data);
    for (int64_t i = 0; i < out->samples; i++) out->class_samples[labels[i]]++;
    for (int64_t i = 0; i < info->classes; i++) out->hits += out->class_hits[i] = (int64_t)hits[i];
    out->loss = out->samples ? loss / (double)out->samples : 0;
    return FNX_OK;
}

static fnx_status test(const run_info *info, fnx_module *net, const fnx_dataset *data, test_result *out) {
    fnx_device *device = fnx_module_device(net);
    fnx_loader *loader = fnx_loader_create(device, data, .batch = info->batch);
    fnx_status code;
    counts k;
    {
        FNX_SCOPE_QUIET;
        k.hits = fnx_variable_create("hits", fnx_fill(device, FNX_F32, FNX_SHAPE(info->classes), 0), false);
        k.loss = fnx_variable_create("loss", fnx_fill(device, FNX_F32, FNX_SCALAR_SHAPE, 0), false);
    }
    while (next_batch(&k, net, loader, info->classes, &code)) continue;
    if (!code) code = read_counts(&k, info, data, out);
    fnx_variable_destroy(k.hits);
    fnx_variable_destroy(k.loss);
    fnx_loader_destroy(loader);
    return code;
}

int task_test(const command *c, const run_info *info, fnx_module *net, const fnx_dataset *data, test_result *out) {
    bool training = fnx_module_is_training(net);
    fnx_module_train(net, false);
    fnx_status code = test(info, net, data, out);
    fnx_module_train(net, training);
    if (code) return tool_failed(c, "testing");
    return task_stopped() ? EXIT_SIGNAL + task_stopped() : -1;
}

void task_print_result(const run_info *info, const test_result *r) {
    printf("test accuracy %.2f %% (%lld of %lld), loss %.4f\n", 100 * task_accuracy(r->hits, r->samples),
           (long long)r->hits, (long long)r->samples, r->loss);
    for (int i = 0; i < info->classes; i++) {
        char label[16];
        if (!r->class_samples[i]) continue;
        printf("  %-12s %6.2f %%\n", task_class_name(info, i, label),
               100 * task_accuracy(r->class_hits[i], r->class_samples[i]));
    }
}
