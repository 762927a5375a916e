/* fornax eval: tests a checkpoint of fornax train. */
#include "task.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *data, *device;
    bool json;
} settings;

static const option_spec options[] = {
    {"data", "DATA", "fashion-mnist, or a directory with IDX files; default what the\nnetwork was trained on",
     OPTION_TEXT, offsetof(settings, data), 0, 0, NULL},
    {"device", "NAME", "where to compute; default $FORNAX_DEVICE, the admin's default, or cpu", OPTION_TEXT,
     offsetof(settings, device), 0, 0, NULL},
    {"json", NULL, "a JSON object", OPTION_FLAG, offsetof(settings, json), 0, 0, NULL},
    {0},
};

static json_t *describe(const char *file, const run_info *info, const test_result *r) {
    json_t *o = json_object(), *classes = json_array();
    json_object_set_new(o, "file", tool_json_text(file));
    json_object_set_new(o, "model", tool_json_text(info->model));
    json_object_set_new(o, "data", tool_json_text(info->data));
    json_object_set_new(o, "epoch", json_integer(info->epoch));
    json_object_set_new(o, "samples", json_integer(r->samples));
    json_object_set_new(o, "accuracy", json_real(task_accuracy(r->hits, r->samples)));
    json_object_set_new(o, "loss", json_real(r->loss));
    for (int i = 0; i < info->classes; i++) {
        char label[16];
        json_t *c = json_object();
        json_object_set_new(c, "class", json_integer(i));
        json_object_set_new(c, "name", tool_json_text(task_class_name(info, i, label)));
        json_object_set_new(c, "samples", json_integer(r->class_samples[i]));
        json_object_set_new(c, "accuracy", json_real(task_accuracy(r->class_hits[i], r->class_samples[i])));
        json_array_append_new(classes, c);
    }
    json_object_set_new(o, "classes", classes);
    return o;
}

static int evaluate(const command *self, const settings *s, const char *file, run_info *info) {
    fnx_device *device = NULL;
    fnx_dataset *data = NULL;
    fnx_module *net = NULL;
    test_result result;
    int code = task_open_device(self, s->device, false, &device);
    if (code < 0) code = task_open_data(self, info->data, false, &data);
    if (code < 0) code = task_check_data(self, info, data);
    if (code < 0) code = task_make_network(self, device, info, &net);
    if (code < 0 && fnx_checkpoint_load(file, net, NULL)) code = tool_failed(self, "");
    if (code < 0) code = task_test(self, info, net, data, &result);
    if (code < 0 && s->json) code = tool_json_print(self, describe(file, info, &result));
    else if (code < 0) task_print_result(info, &result);
    fnx_module_destroy(net);
    fnx_dataset_destroy(data);
    fnx_device_close(device);
    return code < 0 ? EXIT_OK : code;
}

static int run(const command *self, int argc, char **argv) {
    settings s = {0};
    uint64_t given;
    char **files, why[PATH_MAX + 256];
    int n;
    run_info info;
    int code = options_parse(self, argc, argv, &s, &given, 1, &files, &n);
    if (code >= 0) return code;
    if (n == 0) return tool_usage_error(self, "which checkpoint? FILE is missing");
    if (run_info_read(&info, files[0], why, sizeof why)) {
        tool_error(self, "%s", why);
        return EXIT_FAILED;
    }
    if (s.data && task_set_data(self, &info, s.data) >= 0) return EXIT_FAILED;
    return evaluate(self, &s, files[0], &info);
}

const command command_eval = {
    .name = "eval",
    .arguments = "[options] FILE",
    .summary = "test a checkpoint",
    .description = "Tests a checkpoint that `fornax train` wrote: accuracy on the test images, in all and per class. "
                   "The file says which\n"
                   "network it is and which data it was trained on.",
    .examples = "  fornax eval fashion.safetensors\n"
                "  fornax eval --device ref --json fashion.safetensors\n",
    .options = options,
    .run = run,
};
