/* Where manifests are looked for. Within a folder their order is bytewise, so that it depends on neither file
 * system nor locale, after `priority`. Never looked at: the working directory, the executable's folder, what ld.so
 * searches. */
#include "registry/catalog.h"

#include "base/alloc.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_MANIFESTS = 256 }; /* of one folder */

static void note(fnx_catalog *c, fnx_origin origin, const char *place, const char *outcome) {
    if (!fnx_grow((void **)&c->looked, &c->looked_capacity, sizeof *c->looked, c->n_looked + 1)) return;
    fnx_looked *l = &c->looked[c->n_looked++];
    l->origin = origin, l->place = fnx_alloc_string(place);
    snprintf(l->outcome, sizeof l->outcome, "%s", outcome);
}

static int bytewise(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names of the folder's manifests, sorted. */
static int list_folder(DIR *d, char *names[MOST_MANIFESTS]) {
    int n = 0;
    for (const struct dirent *e; n < MOST_MANIFESTS && (e = readdir(d));) {
        const size_t length = strlen(e->d_name);
        if (length > 5 && e->d_name[0] != '.' && !strcmp(e->d_name + length - 5, ".json") &&
            (names[n] = fnx_alloc_string(e->d_name)))
            n++;
    }
    qsort(names, (size_t)n, sizeof *names, bytewise);
    return n;
}

/* Higher priorities first, else as they are. */
static void order_by_priority(fnx_candidate **list, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        fnx_candidate *one = list[i];
        int64_t k = i;
        for (; k > 0 && list[k - 1]->manifest.priority < one->manifest.priority; k--) list[k] = list[k - 1];
        list[k] = one;
    }
}

static void look_in_folder(fnx_catalog *c, const fnx_places *places, const char *folder, fnx_origin origin) {
    char *names[MOST_MANIFESTS], outcome[64];
    DIR *d = opendir(folder);
    if (!d) {
        note(c, origin, folder, errno == ENOENT ? "does not exist" : strerror(errno));
        return;
    }
    const int n = list_folder(d, names);
    const int64_t before = c->n;
    closedir(d);
    for (int i = 0; i < n; i++) {
        char *path = fnx_alloc_format("%s/%s", folder, names[i]);
        if (path) (void)fnx_catalog_insert(c, fnx_candidate_read(places, path, origin), false);
        free(path), free(names[i]);
    }
    if (c->n > before) order_by_priority(c->list + before, c->n - before);
    snprintf(outcome, sizeof outcome, "%d manifest%s%s", n, n == 1 ? "" : "s",
             n == MOST_MANIFESTS ? "; more are not read" : "");
    note(c, origin, folder, outcome);
}

/* A list of folders and manifests. An empty entry would be the working directory: it is none. */
static void look_in_path(fnx_catalog *c, const fnx_places *places) {
    for (const char *p = places->path; p && *p; p += *p == ':') {
        const size_t n = strcspn(p, ":");
        char *entry = n ? fnx_alloc_format("%.*s", (int)n, p) : NULL;
        struct stat s;
        p += n;
        if (!entry) continue;
        if (stat(entry, &s)) {
            const char *why = strerror(errno);
            note(c, FNX_ORIGIN_PATH, entry, why);
            fnx_log_write(FNX_TOPIC_REGISTRY, FNX_LOG_WARNING, "FORNAX_PLUGIN_PATH: %s: %s", entry, why);
        } else if (S_ISDIR(s.st_mode)) {
            look_in_folder(c, places, entry, FNX_ORIGIN_PATH);
        } else {
            (void)fnx_catalog_insert(c, fnx_candidate_read(places, entry, FNX_ORIGIN_PATH), false);
            note(c, FNX_ORIGIN_PATH, entry, "1 manifest");
        }
        free(entry);
    }
}

void fnx_catalog_search(fnx_catalog *c, const fnx_places *places) {
    if (places->no_user) {
        note(c, FNX_ORIGIN_PATH, "FORNAX_PLUGIN_PATH and the user's folder", places->no_user);
    } else {
        if (!places->path || !*places->path) note(c, FNX_ORIGIN_PATH, "the folders named there", "it is not set");
        look_in_path(c, places);
        if (places->user) look_in_folder(c, places, places->user, FNX_ORIGIN_USER);
    }
    if (places->admin) look_in_folder(c, places, places->admin, FNX_ORIGIN_ADMIN);
    for (int i = 0; i < (int)(sizeof places->system / sizeof *places->system); i++)
        if (places->system[i]) look_in_folder(c, places, places->system[i], FNX_ORIGIN_SYSTEM);
    fnx_catalog_resolve(c);
}
