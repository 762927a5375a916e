/* fornax devices: every device of every plugin, and why one does not work. */
#include "columns.h"
#include "tool.h"

#include <fornax/device.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    bool json;
} settings;

static const option_spec options[] = {
    {"json", NULL, "a JSON array of objects", OPTION_FLAG, offsetof(settings, json), 0, 0, NULL},
    {0},
};

typedef struct listing {
    columns table;
    json_t *array;
    int n;
} listing;

static void add_row(columns *t, const fnx_device_description *d, const char *reason) {
    char memory[16];
    columns_add(t, d->spec);
    columns_add(t, d->name);
    columns_add(t, d->memory_bytes ? columns_bytes((double)d->memory_bytes, memory) : "");
    columns_format(t, "%s%s", reason ? "not available: " : "available", reason ? reason : "");
}

static int add_object(json_t *array, const fnx_device_description *d, const char *reason) {
    json_t *o = json_object();
    json_object_set_new(o, "device", tool_json_text(d->spec));
    json_object_set_new(o, "plugin", tool_json_text(d->plugin));
    json_object_set_new(o, "name", tool_json_text(d->name));
    json_object_set_new(o, "memory_bytes", json_integer((json_int_t)d->memory_bytes));
    json_object_set_new(o, "host_memory", json_boolean(d->host_memory));
    json_object_set_new(o, "available", json_boolean(!reason));
    json_object_set_new(o, "reason", reason ? tool_json_text(reason) : json_null());
    return json_array_append_new(array, o);
}

static int each(void *user, const fnx_device_description *d, const char *reason) {
    listing *l = user;
    l->n++;
    if (l->array) return add_object(l->array, d, reason);
    add_row(&l->table, d, reason);
    return 0;
}

static int run(const command *self, int argc, char **argv) {
    settings s = {0};
    uint64_t given;
    int code = options_parse(self, argc, argv, &s, &given, 0, NULL, NULL);
    if (code >= 0) return code;

    listing l = {.table = {.width = 4}, .array = s.json ? json_array() : NULL};
    static const char *const head[] = {"DEVICE", "NAME", "MEMORY", "STATUS"};
    for (int i = 0; i < 4 && !s.json; i++) columns_add(&l.table, head[i]);
    if (fnx_device_list(each, &l)) {
        json_decref(l.array);
        return tool_failed(self, "");
    }
    if (s.json) return tool_json_print(self, l.array);
    if (!l.n) {
        tool_error(self, "no plugin was found (fornax plugins --why cpu says where was looked)");
        return EXIT_FAILED;
    }
    if (!columns_print(&l.table, false)) {
        tool_error(self, "no memory");
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

const command command_devices = {
    .name = "devices",
    .arguments = "[--json]",
    .summary = "list the devices of all plugins",
    .description =
        "Lists every device of every plugin, with its memory, and for one that does not work why. Plugins are loaded\n"
        "to ask them. The first column is what --device and FORNAX_DEVICE take.",
    .examples = "  fornax devices\n"
                "  fornax devices --json | jq -r '.[] | select(.available) | .device'\n",
    .options = options,
    .run = run,
};
