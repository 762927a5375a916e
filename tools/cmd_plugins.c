/* fornax plugins: what manifests were found, in which state and why. Loads no plugin. */
#include "columns.h"
#include "tool.h"

#include <fornax/plugins.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    bool json;
    const char *why;
} settings;

static const option_spec options[] = {
    {"json", NULL, "a JSON array of objects", OPTION_FLAG, offsetof(settings, json), 0, 0, NULL},
    {"why", "NAME", "every candidate of this name, and why it is used or not", OPTION_TEXT, offsetof(settings, why), 0,
     0, NULL},
    {0},
};

static int describe(const command *self, int i, fnx_plugin_description *out) {
    *out = (fnx_plugin_description){.struct_size = sizeof *out};
    return fnx_plugin_describe(i, out) ? tool_failed(self, "") : EXIT_OK;
}

/* ---- --why ------------------------------------------------------------------------------------------------------- */

/* The name may also be a device's: plugin:address?key=value. */
static int explain(const command *self, const char *device) {
    size_t n = strcspn(device, ":?");
    char *name = strndup(device, n);
    size_t size = name ? fnx_plugin_explain(name, NULL, 0) + 1 : 0;
    char *text = size ? malloc(size) : NULL;
    bool known = false;
    int code = text ? EXIT_OK : EXIT_FAILED;
    if (text) {
        fnx_plugin_explain(name, text, size);
        n = strlen(text);
        printf("%s%s", text, n && text[n - 1] == '\n' ? "" : "\n");
    } else {
        tool_error(self, "no memory");
    }
    for (int i = 0; text && !known && i < fnx_plugin_count(); i++) {
        fnx_plugin_description d;
        known = describe(self, i, &d) == EXIT_OK && !strcmp(d.name, name);
    }
    free(name), free(text);
    return code ? code : known ? EXIT_OK : EXIT_FAILED;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static int print_json(const command *self) {
    json_t *array = json_array();
    for (int i = 0; i < fnx_plugin_count(); i++) {
        fnx_plugin_description d;
        if (describe(self, i, &d)) {
            json_decref(array);
            return EXIT_FAILED;
        }
        const char *const texts[][2] = {{"name", d.name},       {"version", d.version}, {"kind", d.kind},
                                        {"state", d.state},     {"reason", d.reason},   {"manifest", d.manifest},
                                        {"library", d.library}, {"devices", d.devices}, {"summary", d.summary},
                                        {"license", d.license}};
        json_t *o = json_object();
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            json_object_set_new(o, texts[k][0], tool_json_text(texts[k][1]));
        json_object_set_new(o, "shadowed", json_boolean(d.shadowed));
        json_array_append_new(array, o);
    }
    return tool_json_print(self, array);
}

static int print_text(const command *self) {
    columns t = {.width = 5};
    static const char *const head[] = {"NAME", "VERSION", "STATE", "MANIFEST", "NOTE"};
    for (int i = 0; i < 5; i++) columns_add(&t, head[i]);
    for (int i = 0; i < fnx_plugin_count(); i++) {
        fnx_plugin_description d;
        if (describe(self, i, &d)) return EXIT_FAILED;
        columns_add(&t, d.name);
        columns_add(&t, d.version);
        columns_add(&t, d.shadowed ? "shadowed" : d.state);
        columns_add(&t, d.manifest);
        columns_add(&t, d.shadowed ? "an earlier plugin of this name is used" : *d.reason ? d.reason : d.summary);
    }
    if (!columns_print(&t, false)) {
        tool_error(self, "no memory");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static int run(const command *self, int argc, char **argv) {
    settings s = {0};
    uint64_t given;
    int code = options_parse(self, argc, argv, &s, &given, 0, NULL, NULL);
    if (code >= 0) return code;
    if (s.json && s.why) return tool_usage_error(self, "--json and --why cannot be combined");
    if (s.why) return explain(self, s.why);
    if (s.json) return print_json(self);
    if (fnx_plugin_count() == 0) {
        tool_error(self, "no plugin was found (fornax plugins --why cpu says where was looked)");
        return EXIT_FAILED;
    }
    return print_text(self);
}

const command command_plugins = {
    .name = "plugins",
    .arguments = "[--json | --why NAME]",
    .summary = "list plugins, the states they are in, and why",
    .description =
        "Lists the manifests that were found, in the order of the search: name, version, state, path, reason. Loads "
        "no\n"
        "plugin. With --why, everything known about one name; the exit code is 1 if there is no plugin of that name.\n"
        "Where is looked: fornax-plugins(7).",
    .examples = "  fornax plugins\n"
                "  fornax plugins --why cuda\n"
                "  FORNAX_PLUGIN_PATH=~/acme fornax plugins --json\n",
    .options = options,
    .run = run,
};
