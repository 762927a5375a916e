/* For shell tests: reads JSON from stdin (one value or several, as in JSON lines) and prints, per object, the values of
 * the keys named, with tabs between; elements of an array count as objects of their own. Objects that lack a key are
 * skipped. Exits 1 if the input is no JSON.
 *
 *     json_values [KEY ...] */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void print_value(const json_t *v) {
    if (json_is_string(v)) printf("%s", json_string_value(v));
    else if (json_is_integer(v)) printf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v)) printf("%.17g", json_real_value(v));
    else printf("%s", json_is_true(v) ? "true" : json_is_false(v) ? "false" : json_is_null(v) ? "null" : "?");
}

static void print_object(const json_t *object, int n, char **keys) {
    for (int i = 0; i < n; i++)
        if (!json_object_get(object, keys[i])) return;
    for (int i = 0; i < n; i++) {
        if (i) putchar('\t');
        print_value(json_object_get(object, keys[i]));
    }
    if (n) putchar('\n');
}

int main(int argc, char **argv) {
    json_error_t error;
    for (int c; (c = getchar()) != EOF;) {
        if (strchr(" \t\r\n", c)) continue;
        ungetc(c, stdin);
        json_t *v = json_loadf(stdin, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error), *element;
        size_t i;
        if (!v) return fprintf(stderr, "line %d: %s\n", error.line, error.text), 1;
        if (!json_is_array(v)) print_object(v, argc - 1, argv + 1);
        json_array_foreach(v, i, element) print_object(element, argc - 1, argv + 1);
        json_decref(v);
    }
    return 0;
}
