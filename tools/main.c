/* The program `fornax`: picks the subcommand. Each is described in its own file, cmd_*.c. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const command *const commands[] = {&command_train, &command_eval, &command_devices, &command_plugins,
                                          &command_ops};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *out) {
    fputs("usage: fornax COMMAND [options]\n\nTensors and training on devices that are plugins, chosen at run "
          "time.\n\ncommands:\n",
          out);
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n  fornax COMMAND --help   options and examples\n  fornax --version        the version\n"
          "\nexit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped with Ctrl-C\nmanual: fornax(1)\n",
          out);
}

static const command *find(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i]->name, name)) return commands[i];
    return NULL;
}

static int unknown(const char *name) {
    fprintf(stderr, "fornax: unknown command '%s'; there are:", name);
    for (int i = 0; i < COMMANDS; i++) fprintf(stderr, " %s", commands[i]->name);
    fputs(" (fornax --help)\n", stderr);
    return EXIT_USAGE;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("fornax %s\n", fnx_version());
        return EXIT_OK;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        const command *c = argc > 2 ? find(argv[2]) : NULL;
        if (argc > 2 && !c) return unknown(argv[2]);
        if (c) options_help(c);
        else usage(stdout);
        return EXIT_OK;
    }
    const command *c = find(name);
    return c ? c->run(c, argc - 1, argv + 1) : unknown(name);
}

int main(int argc, char **argv) {
    int code = run(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_OK) {
        fprintf(stderr, "fornax: writing the output: %s\n", strerror(errno));
        code = EXIT_FAILED;
    }
    return code;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void say(const command *c, const char *format, va_list arguments) {
    fprintf(stderr, "fornax %s: ", c->name);
    vfprintf(stderr, format, arguments);
}

void tool_error(const command *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(c, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

int tool_usage_error(const command *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(c, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (fornax %s --help)\n", c->name);
    return EXIT_USAGE;
}

int tool_failed(const command *c, const char *what) {
    const fnx_error_info *e = fnx_last_error();
    tool_error(c, "%s%s%s", what, *what ? ": " : "", e->message);
    for (const char *line = e->chain; *line;) {
        size_t n = strcspn(line, "\n");
        fprintf(stderr, "  while %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return EXIT_FAILED;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *tool_json_text(const char *text) {
    json_t *value = json_string(text);
    char *copy = value ? NULL : strdup(text);
    if (!copy) return value;
    for (char *p = copy; *p; p++)
        if ((unsigned char)*p > 0x7f) *p = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

int tool_json_print(const command *c, json_t *value) {
    int failed = !value || json_dumpf(value, stdout, JSON_INDENT(2));
    json_decref(value);
    putchar('\n');
    if (failed) tool_error(c, "no memory, or the output cannot be written");
    return failed ? EXIT_FAILED : EXIT_OK;
}
