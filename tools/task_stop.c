/* A handler may only set a flag; the loops look at it after each step. */
#include "task.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static char message[128];

static void on_signal(int number) {
    if (stopped) _exit(EXIT_SIGNAL + number);
    stopped = number;
    if (write(STDERR_FILENO, message, strlen(message)) < 0) return; /* nobody is left to tell */
}

void task_catch_signals(const command *c) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    snprintf(message, sizeof message, "\nfornax %s: stopping after this step (once more: at once)\n", c->name);
    sigemptyset(&now.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN) sigaction(numbers[i], &now, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of write, as a full disk is */
}

int task_stopped(void) { return stopped; }
