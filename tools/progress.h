/* What training shows while it runs: one line that is drawn again and again on a terminal, plain lines elsewhere.
 *
 * Messages of the library (warnings, logs) go through here as well, so that they do not break the line. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool live;           /* a terminal */
    bool quiet;          /* show no progress */
    int64_t every;       /* steps between plain lines */
    double drawn;        /* seconds, when the live line was drawn last */
    int64_t epochs, steps, batch; /* of the whole run; steps of one epoch; samples of one step */
    double started;      /* when the first step of this epoch that this process made began */
    int64_t first;       /* that step */
} progress;

/* What is shown of a step. */
typedef struct progress_state {
    int64_t epoch, step;   /* from 1 */
    double loss, accuracy; /* means of the epoch so far */
} progress_state;

/* Also takes over the library's messages, until progress_close. */
void progress_open(progress *p, bool quiet, int64_t every, int64_t epochs, int64_t steps, int64_t batch);
void progress_close(progress *p);

/* Steps of an epoch begin after `done` of them: rates count from here. */
void progress_epoch(progress *p, int64_t done);

/* Whether this step should be shown. Asked first because showing needs a value from the device, which waits for it. */
bool progress_due(const progress *p, int64_t step);
void progress_show(progress *p, const progress_state *state);

/* Removes the live line: ordinary output follows. */
void progress_clear(progress *p);

/* Seconds of a clock that never steps back. */
double progress_now(void);

#endif
