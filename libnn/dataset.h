/* A data set's inside: all in host memory. */
#ifndef LIBNN_DATASET_H
#define LIBNN_DATASET_H

#include "cause.h"

#include <fornax/nn/data.h>

struct fnx_dataset {
    int64_t count, item_bytes;
    int rank;
    int64_t item[FNX_MAX_RANK];
    const uint8_t *items, *labels;
    uint8_t *own_items, *own_labels; /* malloc, or NULL */
    int classes;
    bool is_static;
    cause cause;
};

#endif
