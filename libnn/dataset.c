/* Data sets: IDX files and arrays of the program. */
#include "dataset.h"

#include "idx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBIAN_FASHION_MNIST "/usr/share/datasets/fashion-mnist"

static fnx_dataset *new_dataset(void) {
    static fnx_dataset none = {.is_static = true, .cause = {FNX_E_NO_MEMORY, "no host memory for a data set"}};
    fnx_dataset *d = calloc(1, sizeof *d);
    return d ? d : &none;
}

static void count_classes(fnx_dataset *d) {
    int most = -1;
    for (int64_t i = 0; i < d->count; i++)
        if (d->labels[i] > most) most = d->labels[i];
    d->classes = most + 1;
}

fnx_dataset *fnx_dataset_from(int64_t count, int rank, const int64_t *item_sizes, const uint8_t *items,
                              const uint8_t *labels) {
    fnx_dataset *d = new_dataset();
    if (d->is_static) return d;
    int64_t bytes = 1, all;
    fnx_status code = FNX_OK;
    if (count < 0 || rank < 0 || rank >= (int)FNX_MAX_RANK || (rank && !item_sizes) || (count && (!items || !labels)))
        code = fnx_error_set(
            FNX_E_INVALID,
            "dataset_from: %lld items of rank %d: a count of at least 0, a rank below %u and arrays are needed",
            (long long)count, rank, FNX_MAX_RANK);
    for (int k = 0; k < rank && !code; k++)
        if (item_sizes[k] < 0 || __builtin_mul_overflow(bytes, item_sizes[k], &bytes))
            code = fnx_error_set(FNX_E_SHAPE, "dataset_from: the sizes of an item overflow");
    if (!code && __builtin_mul_overflow(bytes, count, &all))
        code = fnx_error_set(FNX_E_SHAPE, "dataset_from: the sizes overflow");
    if (cause_take(&d->cause, code)) return d;
    d->count = count, d->rank = rank, d->item_bytes = bytes, d->items = items, d->labels = labels;
    for (int k = 0; k < rank; k++) d->item[k] = item_sizes[k];
    count_classes(d);
    return d;
}

fnx_dataset *fnx_dataset_idx(const char *images, const char *labels) {
    fnx_dataset *d = new_dataset();
    idx_array x = {0}, y = {0};
    if (d->is_static) return d;
    fnx_status code =
        images && labels ? idx_read(images, 3, &x) : fnx_error_set(FNX_E_INVALID, "dataset_idx: a path is NULL");
    if (!code) code = idx_read(labels, 1, &y);
    if (!code && x.sizes[0] != y.sizes[0])
        code = fnx_error_set(FNX_E_FORMAT, "%s has %lld images, %s %lld labels", images, (long long)x.sizes[0], labels,
                             (long long)y.sizes[0]);
    if (!code && x.count == 0) code = fnx_error_set(FNX_E_FORMAT, "%s: there are no images in it", images);
    if (cause_take(&d->cause, code)) {
        free(x.data), free(y.data);
        return d;
    }
    d->count = x.sizes[0], d->rank = 3;
    d->item[0] = 1, d->item[1] = x.sizes[1], d->item[2] = x.sizes[2];
    d->item_bytes = x.sizes[1] * x.sizes[2];
    d->items = d->own_items = x.data, d->labels = d->own_labels = y.data;
    count_classes(d);
    return d;
}

/* directory/name.gz or directory/name, whichever is there. */
static void find(char *out, size_t size, const char *directory, const char *name) {
    snprintf(out, size, "%s/%s.gz", directory, name);
    if (access(out, F_OK)) snprintf(out, size, "%s/%s", directory, name);
    if (access(out, F_OK)) snprintf(out, size, "%s/%s.gz", directory, name);
}

fnx_dataset *fnx_dataset_mnist(const char *directory, bool train) {
    char images[PATH_MAX], labels[PATH_MAX], name[64];
    const char *part = train ? "train" : "t10k";
    if (!directory) directory = DEBIAN_FASHION_MNIST;
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    find(images, sizeof images, directory, name);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    find(labels, sizeof labels, directory, name);
    fnx_dataset *d = fnx_dataset_idx(images, labels);
    if (d->cause.code == FNX_E_NOT_FOUND && !strcmp(directory, DEBIAN_FASHION_MNIST)) {
        size_t n = strlen(d->cause.message);
        snprintf(d->cause.message + n, sizeof d->cause.message - n, "; install the package dataset-fashion-mnist");
    }
    return d;
}

void fnx_dataset_destroy(fnx_dataset *d) {
    if (!d || d->is_static) return;
    free(d->own_items), free(d->own_labels);
    free(d);
}

fnx_status fnx_dataset_status(const fnx_dataset *d) {
    return d ? cause_raise(&d->cause) : fnx_error_set(FNX_E_INVALID, "the data set is NULL");
}
int64_t fnx_dataset_count(const fnx_dataset *d) { return d ? d->count : 0; }
int fnx_dataset_classes(const fnx_dataset *d) { return d ? d->classes : 0; }
const uint8_t *fnx_dataset_labels(const fnx_dataset *d) { return d ? d->labels : NULL; }

int fnx_dataset_item(const fnx_dataset *d, int64_t out_sizes[FNX_MAX_RANK]) {
    for (int k = 0; d && k < d->rank; k++) out_sizes[k] = d->item[k];
    return d ? d->rank : 0;
}

void fnx_dataset_limit(fnx_dataset *d, int64_t n) {
    if (d && !d->is_static && n >= 0 && n < d->count) d->count = n;
}
