/* The training loop of `fornax train`. */
#ifndef TOOLS_TRAINER_H
#define TOOLS_TRAINER_H

#include "history.h"
#include "task.h"

extern const char *const trainer_optimizers[]; /* NULL at the end */

/* Replaces a negative lr or weight_decay by the default of info->optimizer. */
void trainer_optimizer_defaults(run_info *info);

typedef struct trainer_task {
    const command *self;
    run_info *info;     /* where the run stands; moves on with it */
    const char *device; /* NULL: the default */
    const char *out;    /* the checkpoint to write */
    const char *resume; /* the checkpoint to go on from, or NULL */
    const char *log;    /* or NULL */
    int64_t every;      /* steps between looks at the loss */
    bool quiet;
} trainer_task;

/* Trains until all epochs are done. Returns an exit code. */
int trainer_run(const trainer_task *task);

#endif
