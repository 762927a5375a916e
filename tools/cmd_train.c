/* fornax train: options, then trainer.c does the work. */
#include "trainer.h"

#include <errno.h>
#include <libgen.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct settings {
    const char *model, *data, *device, *optimizer, *out, *resume, *log;
    int64_t epochs, batch, seed, limit, every;
    double lr, momentum, weight_decay; /* lr, weight_decay < 0: the optimizer's default */
    bool quiet;
} settings;

static const settings defaults = {.model = "cnn",
                                  .data = "fashion-mnist",
                                  .optimizer = "adam",
                                  .epochs = 3,
                                  .batch = 64,
                                  .every = 100,
                                  .lr = -1,
                                  .weight_decay = -1};

static const option_spec options[] = {
#define FLAG(name, help) \
    { #name, NULL, help, OPTION_FLAG, offsetof(settings, name), 0, 0, NULL }
#define TEXT(name, value, help, choices) \
    { #name, value, help, OPTION_TEXT, offsetof(settings, name), 0, 0, choices }
#define INTEGER(name, least, most, help) \
    { #name, "N", help, OPTION_INTEGER, offsetof(settings, name), least, most, NULL }
    TEXT(model, "NAME",
         "the network: cnn (2 convolutions, 2 linear layers; 207 thousand\nparameters for 28 x 28 images) or "
         "mlp (2 linear layers); default cnn",
         task_models),
    TEXT(data, "DATA",
         "fashion-mnist (Debian's dataset-fashion-mnist), or a directory with\nthe four IDX files of such a data "
         "set, plain or .gz;\ndefault fashion-mnist",
         NULL),
    TEXT(device, "NAME",
         "where to compute: plugin[:address][?key=value&...];\ndefault $FORNAX_DEVICE, the admin's default, "
         "or cpu",
         NULL),
    INTEGER(epochs, 1, 1e6, "passes over the training data, counted from the first; default 3"),
    INTEGER(batch, 1, 1e6, "samples per step; default 64"),
    TEXT(optimizer, "NAME", "sgd, adam or adamw; default adam", trainer_optimizers),
    {"lr", "X", "learning rate; default 0.001, for sgd 0.01", OPTION_REAL, offsetof(settings, lr), 0, 1e6, NULL},
    {"momentum", "X", "of sgd; default 0", OPTION_REAL, offsetof(settings, momentum), 0, 1, NULL},
    {"weight-decay", "X", "default 0, for adamw 0.01", OPTION_REAL, offsetof(settings, weight_decay), 0, 1e6, NULL},
    INTEGER(seed, 0, 9e15, "of initial values, order of samples and dropout; default 0"),
    INTEGER(limit, 1, 1e12, "train on the first N samples only; default all"),
    TEXT(out, "FILE",
         "the checkpoint, written after each epoch and on Ctrl-C;\ndefault MODEL.safetensors, or the file resumed "
         "from",
         NULL),
    TEXT(resume, "FILE", "go on from this checkpoint, to the numbers of an uninterrupted run", NULL),
    TEXT(log, "FILE", "a line of JSON per step (step, loss) and per epoch; appended to when\nresuming", NULL),
    INTEGER(every, 1, HISTORY_MOST,
            "look at the loss every N steps; off a terminal, also a line of\nprogress; default 100"),
    FLAG(quiet, "print the final test accuracy only"),
    {0},
#undef FLAG
#undef TEXT
#undef INTEGER
};

/* ---- what to do -------------------------------------------------------------------------------------------------- */

static int new_run(const command *self, const settings *s, run_info *info) {
    *info = (run_info){.epochs = s->epochs,
                       .batch = s->batch,
                       .seed = s->seed,
                       .limit = s->limit,
                       .momentum = s->momentum,
                       .lr = s->lr,
                       .weight_decay = s->weight_decay};
    snprintf(info->model, sizeof info->model, "%s", s->model);
    snprintf(info->optimizer, sizeof info->optimizer, "%s", s->optimizer);
    trainer_optimizer_defaults(info);
    return task_set_data(self, info, s->data);
}

/* What makes the numbers cannot change in mid-run; the rest can. */
static int resumed_run(const command *self, const settings *s, uint64_t given, run_info *info) {
    char why[PATH_MAX + 256];
    if (run_info_read(info, s->resume, why, sizeof why)) {
        tool_error(self, "--resume: %s", why);
        return EXIT_FAILED;
    }
    const struct {
        const char *name;
        bool same;
    } fixed[] = {{"model", !strcmp(s->model, info->model)},
                 {"optimizer", !strcmp(s->optimizer, info->optimizer)},
                 {"batch", s->batch == info->batch},
                 {"seed", s->seed == info->seed},
                 {"limit", s->limit == info->limit}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (options_given(self, given, fixed[i].name) && !fixed[i].same)
            return tool_usage_error(
                self, "--%s cannot change when a run goes on: leave it out, or start anew without --resume",
                fixed[i].name);
    if (options_given(self, given, "epochs")) info->epochs = s->epochs;
    if (options_given(self, given, "lr")) info->lr = s->lr;
    if (options_given(self, given, "momentum")) info->momentum = s->momentum;
    if (options_given(self, given, "weight-decay")) info->weight_decay = s->weight_decay;
    if (info->epoch >= info->epochs)
        return tool_usage_error(self, "%s has all its %lld epochs: --epochs %lld trains one more", s->resume,
                                (long long)info->epoch, (long long)info->epoch + 1);
    return options_given(self, given, "data") ? task_set_data(self, info, s->data) : -1;
}

/* Before hours of training, not after: can the checkpoint be written? */
static int check_out(const command *self, const char *path) {
    struct stat s;
    char *copy = strdup(path);
    const char *folder = copy ? dirname(copy) : ".";
    int code = -1;
    if (!stat(path, &s) && S_ISDIR(s.st_mode)) {
        tool_error(self, "--out '%s' is a directory", path);
        code = EXIT_FAILED;
    } else if (access(folder, W_OK | X_OK)) {
        tool_error(self, "--out '%s': no file can be written in '%s': %s", path, folder, strerror(errno));
        code = EXIT_FAILED;
    }
    free(copy);
    return code;
}

static int run(const command *self, int argc, char **argv) {
    settings s = defaults;
    uint64_t given;
    char file[RUN_TEXT + 16];
    run_info info;
    int code = options_parse(self, argc, argv, &s, &given, 0, NULL, NULL);
    if (code < 0) code = s.resume ? resumed_run(self, &s, given, &info) : new_run(self, &s, &info);
    if (code >= 0) return code;
    snprintf(file, sizeof file, "%s.safetensors", info.model);
    if (!s.out) s.out = s.resume ? s.resume : file;
    code = check_out(self, s.out);
    if (code >= 0) return code;
    return trainer_run(&(trainer_task){self, &info, s.device, s.out, s.resume, s.log, s.every, s.quiet});
}

const command command_train = {
    .name = "train",
    .arguments = "[options]",
    .summary = "train a network on images and write checkpoints",
    .description = "Trains a classifier of images, tests it after each epoch, and at the end per class. Ctrl-C stops "
                   "after the step\n"
                   "at hand and writes the checkpoint; once more, it stops at once. The same options, device and "
                   "number of threads\n"
                   "give the same numbers.",
    .examples = "  fornax train --epochs 3 --out fashion.safetensors\n"
                "  fornax train --resume fashion.safetensors --epochs 5\n"
                "  fornax train --device cpu?threads=1 --model mlp --optimizer sgd --lr 0.1 --momentum 0.9\n"
                "  fornax train --data ~/mnist --log train.jsonl\n",
    .options = options,
    .run = run,
};
