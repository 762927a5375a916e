/* Devices, networks and data by name. */
#include "task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int add_name(void *user, const fnx_device_description *d, const char *reason) {
    char *list = user;
    size_t n = strlen(list);
    if (!reason) snprintf(list + n, 512 - n, "%s%s", n ? ", " : "", d->spec);
    return 0;
}

int task_open_device(const command *c, const char *name, bool autodiff, fnx_device **out) {
    fnx_device *device = fnx_device_open(name);
    *out = NULL;
    if (fnx_device_status(device)) {
        char there[512] = "";
        int code = tool_failed(c, "");
        fnx_device_close(device);
        fnx_device_list(add_name, there);
        fprintf(stderr, "  devices that work here: %s (fornax devices, fornax plugins)\n", *there ? there : "none");
        return code;
    }
    *out = autodiff ? fnx_device_autodiff(device) : device;
    return -1;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

const char *const task_fashion = "fashion-mnist";

static const char *const fashion_classes[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                              "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

int task_set_data(const command *c, run_info *info, const char *data) {
    if (!strcmp(data, task_fashion)) {
        snprintf(info->data, sizeof info->data, "%s", data);
    } else if (!realpath(data, info->data)) {
        tool_error(c, "--data '%s': %s (%s, or a directory with the four IDX files)", data, strerror(errno),
                   task_fashion);
        return EXIT_FAILED;
    }
    return -1;
}

int task_open_data(const command *c, const char *data, bool train, fnx_dataset **out) {
    bool fashion = !strcmp(data, task_fashion);
    *out = fnx_dataset_mnist(fashion ? NULL : data, train);
    if (!fnx_dataset_status(*out)) return -1;
    int code = tool_failed(c, "");
    if (fashion && fnx_last_error()->code == FNX_E_NOT_FOUND)
        fputs("  Debian has it: apt install dataset-fashion-mnist\n", stderr);
    if (!fashion && fnx_last_error()->code == FNX_E_NOT_FOUND)
        fprintf(stderr,
                "  --data takes %s, or a directory with {train,t10k}-{images-idx3,labels-idx1}-ubyte, plain or .gz\n",
                task_fashion);
    return code;
}

int task_check_data(const command *c, const run_info *info, const fnx_dataset *data) {
    int64_t sizes[FNX_MAX_RANK] = {0};
    int rank = fnx_dataset_item(data, sizes);
    if (rank != 3 || sizes[0] != 1 || sizes[1] != info->rows || sizes[2] != info->columns) {
        tool_error(c, "%s: its images are %lld x %lld, the network takes %lld x %lld", info->data, (long long)sizes[1],
                   (long long)sizes[2], (long long)info->rows, (long long)info->columns);
        return EXIT_FAILED;
    }
    if (fnx_dataset_classes(data) > info->classes) {
        tool_error(c, "%s: it has labels up to %d, the network tells %lld classes apart", info->data,
                   fnx_dataset_classes(data) - 1, (long long)info->classes);
        return EXIT_FAILED;
    }
    return -1;
}

const char *task_class_name(const run_info *info, int label, char out[16]) {
    bool named = !strcmp(info->data, task_fashion) && label < (int)(sizeof fashion_classes / sizeof *fashion_classes);
    snprintf(out, 16, "%d", label);
    return named ? fashion_classes[label] : out;
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

const char *const task_models[] = {"cnn", "mlp", NULL};

static fnx_module *make_cnn(fnx_device *device, const run_info *info) {
    int64_t pixels = (info->rows / 4) * (info->columns / 4);
    return fnx_sequential(device, fnx_layer_conv2d(1, 16, 3, .padding = {1, 1}), fnx_layer_relu(),
                          fnx_layer_max_pool2d(2), fnx_layer_conv2d(16, 32, 3, .padding = {1, 1}), fnx_layer_relu(),
                          fnx_layer_max_pool2d(2), fnx_layer_flatten(), fnx_layer_linear(32 * pixels, 128),
                          fnx_layer_relu(), fnx_layer_linear(128, info->classes));
}

static fnx_module *make_mlp(fnx_device *device, const run_info *info) {
    return fnx_sequential(device, fnx_layer_flatten(), fnx_layer_linear(info->rows * info->columns, 128),
                          fnx_layer_relu(), fnx_layer_linear(128, info->classes));
}

int task_make_network(const command *c, fnx_device *device, const run_info *info, fnx_module **out) {
    static fnx_module *(*const makers[])(fnx_device *, const run_info *) = {make_cnn, make_mlp}; /* as task_models */
    *out = NULL;
    for (int i = 0; task_models[i]; i++)
        if (!strcmp(task_models[i], info->model)) *out = makers[i](device, info);
    if (!*out) {
        tool_error(c, "there is no model '%s'", info->model);
        return EXIT_FAILED;
    }
    return fnx_module_status(*out) ? tool_failed(c, "making the network") : -1;
}
