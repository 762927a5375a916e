/* The host records step after step and waits for the device only to look at losses, every so many steps (history.h), so
 * that both work at once. Losses reach the log, and the screen, when they are read. */
#include "trainer.h"

#include "progress.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct trainer {
    const trainer_task *task;
    const command *self;
    run_info *info;
    fnx_device *device;
    fnx_dataset *train_data, *test_data;
    fnx_module *net;
    fnx_optimizer *optimizer;
    fnx_loader *loader;
    history history;
    progress progress;
    FILE *log;
    int64_t steps;      /* of an epoch */
    int64_t looked;     /* steps of this epoch whose loss was read */
    double began;       /* when this epoch, or what this process does of it, began; less what was done before */
    int64_t idle_bytes; /* resident set with the device open */
    bool broken;        /* parameters are no numbers any more */
    bool unsaved;       /* the last checkpoint could not be written */
} trainer;

/* ---- optimizers -------------------------------------------------------------------------------------------------- */

static fnx_optimizer *make_sgd(fnx_module *net, const run_info *r) {
    return fnx_sgd(net, .lr = r->lr, .momentum = r->momentum, .weight_decay = r->weight_decay);
}
static fnx_optimizer *make_adam(fnx_module *net, const run_info *r) {
    return fnx_adam(net, .lr = r->lr, .weight_decay = r->weight_decay);
}
static fnx_optimizer *make_adamw(fnx_module *net, const run_info *r) {
    return fnx_adamw(net, .lr = r->lr, .weight_decay = r->weight_decay > 0 ? r->weight_decay : -1);
}

const char *const trainer_optimizers[] = {"sgd", "adam", "adamw", NULL};

static const struct { /* as trainer_optimizers */
    double lr, weight_decay;
    fnx_optimizer *(*make)(fnx_module *net, const run_info *r);
} optimizers[] = {{0.01, 0, make_sgd}, {0.001, 0, make_adam}, {0.001, 0.01, make_adamw}};

/* -1 if there is no such optimizer. */
static int optimizer_index(const char *name) {
    for (int i = 0; trainer_optimizers[i]; i++)
        if (!strcmp(trainer_optimizers[i], name)) return i;
    return -1;
}

void trainer_optimizer_defaults(run_info *info) {
    int i = optimizer_index(info->optimizer);
    if (info->lr < 0) info->lr = optimizers[i].lr;
    if (info->weight_decay < 0) info->weight_decay = optimizers[i].weight_decay;
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

/* A field of /proc/self/status in bytes, or 0. */
static int64_t resident(const char *field) {
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && !kib && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) kib = atoll(line + strlen(field) + 1);
    if (f) fclose(f);
    return kib * 1024;
}

static int open_data(trainer *t) {
    run_info *r = t->info;
    int64_t sizes[FNX_MAX_RANK] = {0};
    int code = task_open_data(t->self, r->data, true, &t->train_data);
    if (code < 0) code = task_open_data(t->self, r->data, false, &t->test_data);
    if (code >= 0) return code;
    if (!t->task->resume) {
        fnx_dataset_item(t->train_data, sizes);
        r->rows = sizes[1], r->columns = sizes[2], r->classes = fnx_dataset_classes(t->train_data);
    }
    code = task_check_data(t->self, r, t->train_data);
    if (code < 0) code = task_check_data(t->self, r, t->test_data);
    if (code < 0 && r->limit) fnx_dataset_limit(t->train_data, r->limit);
    return code;
}

static int make_network(trainer *t) {
    int i = optimizer_index(t->info->optimizer);
    fnx_device_seed(t->device, (uint64_t)t->info->seed);
    int code = task_make_network(t->self, t->device, t->info, &t->net);
    if (code >= 0) return code;
    if (i < 0) {
        tool_error(t->self, "there is no optimizer '%s'", t->info->optimizer);
        return EXIT_FAILED;
    }
    t->optimizer = optimizers[i].make(t->net, t->info);
    if (fnx_optimizer_status(t->optimizer)) return tool_failed(t->self, "making the optimizer");
    if (!t->task->resume) return -1;
    if (fnx_checkpoint_load(t->task->resume, t->net, t->optimizer)) return tool_failed(t->self, "--resume");
    fnx_optimizer_set_lr(t->optimizer, t->info->lr);
    return -1;
}

static int make_loader(trainer *t) {
    run_info *r = t->info;
    t->loader =
        fnx_loader_create(t->device, t->train_data, .batch = r->batch, .shuffle = true, .seed = (uint64_t)r->seed);
    if (fnx_loader_status(t->loader)) return tool_failed(t->self, "loading data");
    t->steps = fnx_loader_batches(t->loader);
    if (t->steps == 0 || r->step > t->steps) {
        tool_error(t->self, "%s: %s", r->data,
                   t->steps ? "fewer samples than when the checkpoint was written" : "no samples");
        return EXIT_FAILED;
    }
    if (r->step < t->steps) fnx_loader_seek(t->loader, r->epoch, r->step);
    else fnx_loader_seek(t->loader, r->epoch + 1, 0);
    return -1;
}

static int open_log(trainer *t) {
    if (!t->task->log) return -1;
    t->log = fopen(t->task->log, t->task->resume ? "a" : "w");
    if (t->log) return -1;
    tool_error(t->self, "--log '%s': %s", t->task->log, strerror(errno));
    return EXIT_FAILED;
}

static void say_what(const trainer *t) {
    const run_info *r = t->info;
    fnx_device_description d = {.struct_size = sizeof d};
    if (t->task->quiet || fnx_device_describe(t->device, &d)) return;
    printf("%s, %lld parameters, on %s (%s); %lld samples, batch %lld, %s, lr %g, seed %lld\n", r->model,
           (long long)fnx_module_count(t->net), d.spec, d.name, (long long)fnx_dataset_count(t->train_data),
           (long long)r->batch, r->optimizer, r->lr, (long long)r->seed);
    if (t->task->resume)
        printf("going on after epoch %lld, step %lld of %lld\n", (long long)r->epoch, (long long)r->step,
               (long long)t->steps);
    fflush(stdout);
}

static int set_up(trainer *t) {
    int code = task_open_device(t->self, t->task->device, true, &t->device);
    if (code >= 0) return code;
    t->idle_bytes = resident("VmRSS:");
    code = open_data(t);
    if (code < 0) code = make_network(t);
    if (code < 0) code = make_loader(t);
    if (code < 0) code = open_log(t);
    if (code >= 0) return code;
    history_init(&t->history, t->device, t->task->every);
    say_what(t);
    return -1;
}

static void tear_down(trainer *t) {
    if (t->log) fclose(t->log);
    history_finish(&t->history);
    fnx_loader_destroy(t->loader);
    fnx_optimizer_destroy(t->optimizer);
    fnx_module_destroy(t->net);
    fnx_dataset_destroy(t->test_data);
    fnx_dataset_destroy(t->train_data);
    fnx_device_close(t->device);
}

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/* Numbers that JSON lacks (NaN, infinity) are null. */
static const char *json_number(double value, char out[32]) {
    if (isfinite(value)) snprintf(out, 32, "%.9g", value);
    else snprintf(out, 32, "null");
    return out;
}

/* Of the samples that this epoch has seen so far. */
static double loss(const trainer *t) { return t->looked ? t->info->loss_sum / (double)t->looked : 0; }
static double accuracy(const trainer *t) {
    int64_t seen = t->looked * t->info->batch, all = fnx_dataset_count(t->train_data);
    return task_accuracy(t->info->hits, seen < all ? seen : all);
}

static void log_step(const trainer *t, int64_t step, double value) {
    char number[32];
    if (t->log) fprintf(t->log, "{\"step\": %lld, \"loss\": %s}\n", (long long)step, json_number(value, number));
}

static void log_epoch(const trainer *t, const test_result *r) {
    const run_info *i = t->info;
    char numbers[4][32];
    if (!t->log) return;
    fprintf(t->log,
            "{\"epoch\": %lld, \"epoch_seconds\": %.3f, \"train_loss\": %s, \"train_accuracy\": %s, \"test_loss\": %s, "
            "\"test_accuracy\": %s, \"idle_bytes\": %lld, \"peak_bytes\": %lld}\n",
            (long long)i->epoch + 1, i->seconds, json_number(loss(t), numbers[0]), json_number(accuracy(t), numbers[1]),
            json_number(r->loss, numbers[2]), json_number(task_accuracy(r->hits, r->samples), numbers[3]),
            (long long)t->idle_bytes, (long long)resident("VmHWM:"));
}

/* What failed, without a live line around it. */
static int failed(trainer *t, const char *what) {
    progress_clear(&t->progress);
    return tool_failed(t->self, what);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Waits for the steps so far and takes in their losses. */
static int look(trainer *t) {
    run_info *r = t->info;
    float losses[HISTORY_MOST], hits[HISTORY_MOST];
    int64_t n;
    if (history_read(&t->history, losses, hits, &n)) return failed(t, "training");
    for (int64_t i = 0; i < n; i++) {
        int64_t step = r->epoch * t->steps + ++t->looked;
        log_step(t, step, losses[i]);
        if (!isfinite(losses[i])) {
            progress_clear(&t->progress);
            tool_error(t->self, "the loss of step %lld is %g: a smaller --lr may help", (long long)step, losses[i]);
            t->broken = true;
            return EXIT_FAILED;
        }
        r->loss_sum += losses[i], r->hits += (int64_t)hits[i];
    }
    if (t->log && fflush(t->log)) {
        tool_error(t->self, "--log '%s': %s; training goes on without it", t->task->log, strerror(errno));
        fclose(t->log), t->log = NULL;
    }
    return -1;
}

static fnx_status train_on(trainer *t, const fnx_batch *b) {
    fnx_tensor *logits = fnx_module_forward(t->net, b->x);
    fnx_tensor *loss = fnx_cross_entropy(logits, b->y);
    fnx_tensor *hits = fnx_sum(fnx_cast(fnx_equal(fnx_argmax(logits, 1, false), b->y), FNX_F32), FNX_ALL_AXES, false);
    fnx_status code = fnx_backward(loss);
    if (!code) code = history_put(&t->history, loss, hits);
    if (!code) code = fnx_optimizer_step(t->optimizer);
    if (!code) t->history.n++;
    return code;
}

/* One step. False at the end of the epoch, or on failure, with the code of it. */
static bool step(trainer *t, fnx_status *code) {
    fnx_batch b;
    FNX_SCOPE;
    if (!fnx_loader_next(t->loader, &b)) {
        *code = fnx_loader_status(t->loader);
        return false;
    }
    *code = train_on(t, &b);
    return *code == FNX_OK;
}

static int show(trainer *t) {
    const run_info *r = t->info;
    int code = look(t);
    if (code >= 0) return code;
    progress_show(&t->progress, &(progress_state){.epoch = r->epoch + 1,
                                                  .step = t->looked,
                                                  .loss = loss(t),
                                                  .accuracy = accuracy(t)});
    return -1;
}

/* The steps that the epoch still has, until all are done or the user stops. */
static int train_epoch(trainer *t) {
    run_info *r = t->info;
    fnx_status status = FNX_OK;
    bool all_done = r->step == t->steps; /* stopped before it was tested; the loader stands at the next epoch */
    t->looked = r->step;
    t->began = progress_now() - r->seconds;
    progress_epoch(&t->progress, r->step);
    while (!all_done && !task_stopped() && step(t, &status)) {
        int code = -1;
        r->step++;
        if (progress_due(&t->progress, r->step)) code = show(t);
        else if (history_full(&t->history)) code = look(t);
        if (code >= 0) return code;
    }
    char where[64];
    snprintf(where, sizeof where, "epoch %lld, step %lld", (long long)r->epoch + 1, (long long)r->step + 1);
    int failure = status ? failed(t, where) : -1, code = look(t);
    r->seconds = progress_now() - t->began;
    return failure < 0 ? code : failure;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

/* A checkpoint that cannot be written is said at once, but hours of training are not thrown away for it: it is tried
 * again after the next epoch. */
static void save(trainer *t) {
    t->unsaved = run_info_save(t->info, t->task->out, t->net, t->optimizer) != FNX_OK;
    if (t->unsaved) failed(t, "the checkpoint was not written");
}

/* Ends before all epochs are done, stopped or with something failed, and keeps what was trained so far. */
static int leave(trainer *t, int code) {
    const run_info *r = t->info;
    if (task_stopped()) code = EXIT_SIGNAL + task_stopped();
    if (t->broken || (r->epoch == 0 && r->step == 0)) return code;
    save(t);
    if (t->unsaved) return EXIT_FAILED;
    printf("stopped in epoch %lld after step %lld of %lld; to go on: fornax train --resume %s\n",
           (long long)r->epoch + 1, (long long)r->step, (long long)t->steps, t->task->out);
    return code;
}

static void end_epoch(trainer *t, const test_result *test) {
    run_info *r = t->info;
    double rate = r->seconds > 0 ? (double)fnx_dataset_count(t->train_data) / r->seconds : 0;
    if (!t->task->quiet)
        printf("epoch %lld/%lld  loss %.4f  accuracy %.2f %%  test accuracy %.2f %%  %.1f s  %.0f images/s\n",
               (long long)r->epoch + 1, (long long)r->epochs, loss(t), 100 * accuracy(t),
               100 * task_accuracy(test->hits, test->samples), r->seconds, rate);
    fflush(stdout);
    log_epoch(t, test);
    if (t->log) fflush(t->log);
    r->epoch++;
    r->step = r->hits = 0, r->loss_sum = r->seconds = 0;
    r->test_accuracy = task_accuracy(test->hits, test->samples);
    save(t);
}

static int train(trainer *t) {
    test_result test;
    while (t->info->epoch < t->info->epochs) {
        int code = train_epoch(t);
        progress_clear(&t->progress);
        if (code < 0 && !task_stopped()) code = task_test(t->self, t->info, t->net, t->test_data, &test);
        if (code >= 0 || task_stopped()) return leave(t, code);
        end_epoch(t, &test);
    }
    if (t->task->quiet) printf("test accuracy %.2f %%\n", 100 * t->info->test_accuracy);
    else task_print_result(t->info, &test);
    if (t->unsaved) return EXIT_FAILED;
    if (!t->task->quiet) printf("checkpoint: %s\n", t->task->out);
    return EXIT_OK;
}

int trainer_run(const trainer_task *task) {
    trainer t = {.task = task, .self = task->self, .info = task->info};
    int code = set_up(&t);
    if (code < 0) {
        task_catch_signals(t.self);
        progress_open(&t.progress, task->quiet, task->every, t.info->epochs, t.steps, t.info->batch);
        code = train(&t);
        progress_close(&t.progress);
    }
    tear_down(&t);
    return code;
}
