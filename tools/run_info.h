/* What a checkpoint says of the run that wrote it: enough to make network and data again, and to go on where it stood.
 *
 * Kept as texts in the metadata of the safetensors file, "train.<field>". */
#ifndef TOOLS_RUN_INFO_H
#define TOOLS_RUN_INFO_H

#include <fornax/nn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { RUN_TEXT = 32 };

typedef struct run_info {
    char model[RUN_TEXT], optimizer[RUN_TEXT];
    char data[PATH_MAX];                /* "fashion-mnist" or an absolute path */
    int64_t rows, columns, classes;     /* of an image; labels */
    int64_t epochs, batch, seed, limit; /* limit 0: all samples */
    double lr, momentum, weight_decay;
    int64_t epoch, step;      /* finished epochs, and steps of the next one */
    int64_t hits;             /* of those steps: samples recognised, */
    double loss_sum, seconds; /* sum of losses, time taken */
    double test_accuracy;     /* after the last finished epoch */
} run_info;

/* Reads the metadata of a checkpoint; every value is checked. Errors: FNX_E_FORMAT if the file is no checkpoint of
 * fornax train; `why` (size bytes) says what is wrong. */
fnx_status run_info_read(run_info *info, const char *path, char *why, size_t size);

/* Writes a checkpoint with module, optimizer and this. */
fnx_status run_info_save(const run_info *info, const char *path, fnx_module *net, fnx_optimizer *optimizer);

#endif
