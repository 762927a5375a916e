/* The live line is drawn at most ten times a second, and not at all if the terminal cannot go back in a line. */
#include "progress.h"

#include <fornax/base.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double redraw_seconds = 0.1;

/* The line on the screen is one for the process; the library's messages may come from any thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool line_shown;

double progress_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void clear_locked(void) {
    if (line_shown) fputs("\r\033[K", stdout);
    line_shown = false;
}

static void on_message(void *user, int level, const char *topic, const char *text) {
    static const char *const levels[] = {"error", "warning", "info", "debug", "trace"};
    (void)user;
    pthread_mutex_lock(&lock);
    clear_locked();
    fflush(stdout);
    fprintf(stderr, "fornax: %s: %s: %s\n", topic, level >= 0 && level < 5 ? levels[level] : "", text);
    pthread_mutex_unlock(&lock);
}

void progress_open(progress *p, bool quiet, int64_t every, int64_t epochs, int64_t steps, int64_t batch) {
    const char *terminal = getenv("TERM");
    *p = (progress){.quiet = quiet, .every = every, .epochs = epochs, .steps = steps, .batch = batch};
    p->live = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    fnx_log_set(on_message, NULL);
}

void progress_close(progress *p) {
    progress_clear(p);
    fnx_log_set(NULL, NULL);
}

void progress_epoch(progress *p, int64_t done) { p->started = progress_now(), p->first = done; }

bool progress_due(const progress *p, int64_t step) {
    if (p->quiet) return false;
    if (p->live) return progress_now() - p->drawn >= redraw_seconds;
    return step % p->every == 0 && step < p->steps; /* the epoch's own line follows its last step */
}

/* 75 -> "1:15", 3675 -> "1:01:15" */
static const char *duration(double seconds, char out[32]) {
    long long s = seconds < 0 ? 0 : seconds > 1e9 ? 1000000000 : (long long)(seconds + 0.5);
    if (s >= 3600) snprintf(out, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else snprintf(out, 32, "%lld:%02lld", s / 60, s % 60);
    return out;
}

void progress_show(progress *p, const progress_state *s) {
    char line[256], left[32];
    double now = progress_now(), elapsed = now - p->started;
    double rate = elapsed > 0 ? (double)(s->step - p->first) / elapsed : 0; /* steps per second */
    double remaining = (double)((p->epochs - s->epoch) * p->steps + p->steps - s->step);
    snprintf(line, sizeof line, "epoch %lld/%lld  step %lld/%lld  loss %.4f  accuracy %.2f %%  %.0f images/s  %s left",
             (long long)s->epoch, (long long)p->epochs, (long long)s->step, (long long)p->steps, s->loss,
             100 * s->accuracy, rate * (double)p->batch, duration(rate > 0 ? remaining / rate : 0, left));
    pthread_mutex_lock(&lock);
    if (p->live) {
        struct winsize size;
        int width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
        printf("\r%.*s\033[K", width, line); /* a line that wraps could not be drawn over */
        line_shown = true;
    } else {
        puts(line);
    }
    fflush(stdout);
    pthread_mutex_unlock(&lock);
    p->drawn = now;
}

void progress_clear(progress *p) {
    (void)p;
    pthread_mutex_lock(&lock);
    clear_locked();
    fflush(stdout);
    pthread_mutex_unlock(&lock);
}
