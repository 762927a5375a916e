/* What the subcommands of `fornax` share: how one is described, exit codes, messages.
 *
 * A subcommand is a `command`: its texts, its options and the function that runs it. main.c has the table of all. */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <fornax/base.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What the program exits with; stopped by signal S it is 128 + S, 130 for Ctrl-C. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INTEGER, OPTION_REAL } option_kind;

/* One option of a subcommand. Its value goes to offset `at` of the subcommand's struct: bool, const char *, int64_t or
 * double by kind. */
typedef struct option_spec {
    const char *name;  /* without dashes */
    const char *value; /* what stands for it in help; NULL for flags */
    const char *help;
    option_kind kind;
    size_t at;
    double least, most;         /* numbers: allowed values, both included */
    const char *const *choices; /* texts: allowed values, NULL at the end; or NULL */
} option_spec;

enum { OPTIONS_MAX = 32 };

typedef struct command {
    const char *name;
    const char *arguments;      /* for the line of usage */
    const char *summary;        /* one line */
    const char *description;    /* paragraphs, lines broken */
    const char *examples;       /* lines */
    const option_spec *options; /* up to an entry without name; --help is understood by all */
    /* argv[0] is the subcommand's name; returns an exit code */
    int (*run)(const struct command *self, int argc, char **argv);
} command;

extern const command command_train, command_eval, command_devices, command_plugins, command_ops;

/* Reads options into `values`, which holds the defaults. Bit i of *given is set if option i was there. `positionals`:
 * how many other arguments there may be at most; they end up at *argv_rest, *n_rest of them.
 *
 * Returns -1 to go on, or the exit code to return at once: help was asked for, or an argument is wrong (said on stderr,
 * with what would be right). */
int options_parse(const command *c, int argc, char **argv, void *values, uint64_t *given, int positionals,
                  char ***argv_rest, int *n_rest);

/* Whether the option was given; the name must be one of the command's. */
bool options_given(const command *c, uint64_t given, const char *name);

void options_help(const command *c);

/* "fornax train: message" on stderr, in one line. */
__attribute__((format(printf, 2, 3))) void tool_error(const command *c, const char *format, ...);

/* The same for a wrong use, with where help is. Returns EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int tool_usage_error(const command *c, const char *format, ...);

/* "fornax train: what: message" for fornax's last error, then what was being done. Returns EXIT_FAILED. */
int tool_failed(const command *c, const char *what);

/* A text in JSON; bytes that are no UTF-8 become '?'. */
json_t *tool_json_text(const char *text);

/* Prints a value to stdout and releases it. Returns an exit code. */
int tool_json_print(const command *c, json_t *value);

#endif
