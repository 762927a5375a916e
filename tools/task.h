/* What train and eval have in common: devices, networks and data by name, and testing. */
#ifndef TOOLS_TASK_H
#define TOOLS_TASK_H

#include "run_info.h"
#include "tool.h"

extern const char *const task_models[]; /* NULL at the end */
extern const char *const task_fashion;  /* the name of the data set that has one */

/* Opens the device (NULL: the default), says on stderr why that failed, and what devices there are. */
int task_open_device(const command *c, const char *name, bool autodiff, fnx_device **out);

/* Sets info->data: task_fashion, or the directory's absolute path, so that checkpoints are good in any directory. */
int task_set_data(const command *c, run_info *info, const char *data);

/* Opens the training or the test part of a data set: task_fashion or a directory with the four IDX files. */
int task_open_data(const command *c, const char *data, bool train, fnx_dataset **out);

/* The network for images and labels of the run, on the device; parameters come from the device's generator. */
int task_make_network(const command *c, fnx_device *device, const run_info *info, fnx_module **out);

/* Whether the data has the image size and no more classes than the network. */
int task_check_data(const command *c, const run_info *info, const fnx_dataset *data);

enum { TASK_CLASSES_MAX = 256 };

typedef struct test_result {
    int64_t samples, hits;
    double loss;                             /* mean */
    int64_t class_samples[TASK_CLASSES_MAX]; /* per label */
    int64_t class_hits[TASK_CLASSES_MAX];
} test_result;

/* Runs the network on all of `data` without gradients. Returns -1, or an exit code: what failed was said, or the user
 * stopped it. */
int task_test(const command *c, const run_info *info, fnx_module *net, const fnx_dataset *data, test_result *out);

static inline double task_accuracy(int64_t hits, int64_t samples) {
    return samples ? (double)hits / (double)samples : 0;
}

/* "Sneaker", or the label where classes have no names. */
const char *task_class_name(const run_info *info, int label, char out[16]);

/* Accuracy in all, and per class. */
void task_print_result(const run_info *info, const test_result *r);

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

/* From now on SIGINT, SIGTERM and SIGHUP ask for a clean stop; the second one ends the process at once. */
void task_catch_signals(const command *c);

/* The signal that asked to stop, or 0. */
int task_stopped(void);

#endif
