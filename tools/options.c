/* Options of a subcommand, from its table: what getopt_long is given, the values, the help. */
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_HELP = 'h', CODE_FIRST = 256 }; /* option i is CODE_FIRST + i to getopt_long */

static int count(const command *c) {
    int n = 0;
    while (c->options[n].name) n++;
    return n;
}

bool options_given(const command *c, uint64_t given, const char *name) {
    for (int i = 0; i < count(c); i++)
        if (!strcmp(c->options[i].name, name)) return given >> i & 1;
    return false;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

void options_help(const command *c) {
    char left[64];
    printf("usage: fornax %s %s\n\n%s\n", c->name, c->arguments, c->description);
    printf("\noptions:\n");
    for (const option_spec *o = c->options; o->name; o++) {
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("  %-22s  ", left);
        for (const char *p = o->help; *p; p++) /* later lines stand below the first */
            if (*p == '\n') printf("\n%26s", "");
            else putchar(*p);
        putchar('\n');
    }
    printf("  %-22s  this text\n", "--help");
    printf("\nexamples:\n%s", c->examples);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int read_integer(const command *c, const option_spec *o, const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)value < o->least || (double)value > o->most)
        return tool_usage_error(c, "--%s '%s': expected a whole number from %.0f to %.0f", o->name, text, o->least,
                                o->most);
    *out = value;
    return -1;
}

static int read_real(const command *c, const option_spec *o, const char *text, double *out) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= o->least && value <= o->most))
        return tool_usage_error(c, "--%s '%s': expected a number from %g to %g", o->name, text, o->least, o->most);
    *out = value;
    return -1;
}

static int read_text(const command *c, const option_spec *o, const char *text, const char **out) {
    char known[256] = "";
    *out = text;
    if (!o->choices) return -1;
    for (const char *const *choice = o->choices; *choice; choice++) {
        if (!strcmp(*choice, text)) return -1;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "", *choice);
    }
    return tool_usage_error(c, "--%s '%s': expected one of %s", o->name, text, known);
}

static int set(const command *c, const option_spec *o, const char *text, void *values) {
    void *field = (char *)values + o->at;
    switch (o->kind) {
    case OPTION_INTEGER: return read_integer(c, o, text, field);
    case OPTION_REAL: return read_real(c, o, text, field);
    case OPTION_TEXT: return read_text(c, o, text, field);
    case OPTION_FLAG: *(bool *)field = true;
    }
    return -1;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static int unknown(const command *c, const char *text, struct option *known, int n) {
    char list[1024] = "";
    int matches = 0;
    size_t length = strcspn(text, "=");
    for (int i = 0; i < n; i++) {
        matches += length > 2 && !strncmp(known[i].name, text + 2, length - 2);
        snprintf(list + strlen(list), sizeof list - strlen(list), " --%s", known[i].name);
    }
    return tool_usage_error(c, "%s option '%.*s'; there are:%s", matches > 1 ? "ambiguous" : "unknown", (int)length,
                            text, list);
}

int options_parse(const command *c, int argc, char **argv, void *values, uint64_t *given, int positionals,
                  char ***argv_rest, int *n_rest) {
    struct option known[OPTIONS_MAX + 2] = {0};
    int n = count(c), code = -1, o;
    for (int i = 0; i < n; i++)
        known[i] = (struct option){c->options[i].name, c->options[i].value ? required_argument : no_argument, NULL,
                                   CODE_FIRST + i};
    known[n] = (struct option){"help", no_argument, NULL, CODE_HELP};
    *given = 0;
    opterr = 0, optind = 0;
    while (code < 0 && (o = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        int i = o - CODE_FIRST;
        if (o == CODE_HELP) {
            options_help(c);
            return EXIT_OK;
        }
        if (o == ':') return tool_usage_error(c, "--%s needs a value", c->options[optopt - CODE_FIRST].name);
        if (o == '?' && optopt >= CODE_FIRST)
            return tool_usage_error(c, "--%s takes no value", c->options[optopt - CODE_FIRST].name);
        if (o == '?') return unknown(c, optopt ? (char[]){'-', (char)optopt, 0} : argv[optind - 1], known, n + 1);
        *given |= UINT64_C(1) << i;
        code = set(c, &c->options[i], optarg, values);
    }
    if (code >= 0) return code;
    if (argc - optind > positionals) return tool_usage_error(c, "unexpected argument '%s'", argv[optind + positionals]);
    if (argv_rest) *argv_rest = argv + optind, *n_rest = argc - optind;
    return -1;
}
