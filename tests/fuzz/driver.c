/* Runs a fuzz target (LLVMFuzzerTestOneInput, as libFuzzer and others call it) without a fuzzer: first each file
 * of its corpus as it is, then seeded mutations of them. The same seed gives the same inputs everywhere.
 *
 *     fuzz_NAME [FILE...]    default: all of tests/corpus/NAME; $FORNAX_TEST_FUZZ_RUNS and _SEED say how many mutations
 *
 * An input that ends the process is left in NAME.crash. With clang, `-fsanitize=fuzzer` in place of this file
 * hunts properly. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { MOST_FILES = 1024, MOST_BYTES = 1 << 18, DEFAULT_RUNS = 20000 };

static struct {
    uint8_t *data;
    size_t size;
} corpus[MOST_FILES];
static int files;

static uint8_t input[MOST_BYTES];
static size_t size;
static char crash_path[256];

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static void add_file(const char *path) {
    FILE *f = files < MOST_FILES ? fopen(path, "rb") : NULL;
    uint8_t *data = f ? malloc(MOST_BYTES) : NULL;
    if (data) corpus[files].size = fread(data, 1, MOST_BYTES, f), corpus[files++].data = data;
    if (f) fclose(f);
}

static int bytewise(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorted, so that a seed means the same everywhere. */
static void add_folder(const char *folder) {
    char *names[MOST_FILES], path[8192];
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && n < MOST_FILES && (e = readdir(d));)
        if (e->d_name[0] != '.' && (names[n] = strdup(e->d_name))) n++;
    if (d) closedir(d);
    qsort(names, (size_t)n, sizeof *names, bytewise);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        add_file(path);
        free(names[i]);
    }
}

/* ---- mutations --------------------------------------------------------------------------------------------------- */

static uint64_t state;

static size_t below(size_t n) { /* xorshift64* */
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return n ? (size_t)((state * UINT64_C(2685821657736338717)) >> 33) % n : 0;
}

/* Puts n bytes in at `where`, as far as there is room. */
static void insert(size_t where, const void *bytes, size_t n) {
    uint8_t copy[4096];
    if (n > sizeof copy) n = sizeof copy;
    if (n > MOST_BYTES - size) n = MOST_BYTES - size;
    memcpy(copy, bytes, n); /* they may come from the input itself */
    memmove(input + where + n, input + where, size - where);
    memcpy(input + where, copy, n);
    size += n;
}

static void cut(size_t where, size_t n) {
    if (n > size - where) n = size - where;
    memmove(input + where, input + where + n, size - where - n);
    size -= n;
}

static void insert_token(size_t where) {
    static const char *const tokens[] = {"0",
                                         "-1",
                                         "1e999",
                                         "9223372036854775807",
                                         "18446744073709551616",
                                         "null",
                                         "true",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "\"",
                                         "\\u0000",
                                         "\\ud800",
                                         "\xff\xfe",
                                         "..",
                                         "/",
                                         "\n",
                                         ",",
                                         ":"};
    const char *token = tokens[below(sizeof tokens / sizeof *tokens)];
    insert(where, token, strlen(token));
}

static void insert_integer(size_t where) {
    static const uint64_t values[] = {0, 1, 0x7f, 0xff, 0x7fff, 0xffff, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    const uint64_t value = values[below(sizeof values / sizeof *values)];
    const size_t n = (size_t)1 << below(4);
    if (where + n <= size) memcpy(input + where, &value, n);
    else insert(where, &value, n);
}

static void repeat(size_t where) {
    const size_t n = 1 + below(size - where < 64 ? size - where : 64), times = 1 + below(below(16) ? 8 : 4096);
    for (size_t i = 0; i < times && where + n <= size; i++) insert(where, input + where, n);
}

static void mix_in(size_t where) {
    const int other = (int)below((size_t)files);
    const size_t from = below(corpus[other].size + 1);
    insert(where, corpus[other].data + from, below(corpus[other].size - from + 1));
}

static void mutate(void) {
    const size_t where = below(size + 1);
    switch (below(8)) {
    case 0: insert_token(where); break;
    case 1: insert_integer(where); break;
    case 2: repeat(where < size ? where : 0); break;
    case 3: mix_in(where); break;
    case 4: cut(where, 1 + below(below(4) ? 4 : size)); break;
    case 5: cut(where, size); break;
    default:
        if (where < size) input[where] ^= (uint8_t)(1u << below(8));
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void save_crash(void) {
    const int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, input, size) == (ssize_t)size) close(fd);
}

static void on_signal(int number) {
    save_crash();
    signal(number, SIG_DFL);
    raise(number);
}

/* From memory of the exact size, so that a sanitizer sees a byte too far. */
static void run(void) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return;
    memcpy(copy, input, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void start_from(int file) {
    size = corpus[file].size;
    memcpy(input, corpus[file].data, size);
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0], *top = getenv("top_srcdir");
    const char *runs_text = getenv("FORNAX_TEST_FUZZ_RUNS"), *seed_text = getenv("FORNAX_TEST_FUZZ_SEED");
    const long runs = runs_text ? atol(runs_text) : DEFAULT_RUNS;
    char folder[4096];
    if (!strncmp(name, "fuzz_", 5)) name += 5;
    snprintf(crash_path, sizeof crash_path, "%s.crash", name);
    snprintf(folder, sizeof folder, "%s/tests/corpus/%s", top ? top : ".", name);
    for (int i = 1; i < argc; i++) add_file(argv[i]);
    if (argc < 2) add_folder(folder);
    if (!files) return printf("Bail out! nothing in %s\n", folder), EXIT_FAILURE;
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], on_signal);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(save_crash);

    for (int i = 0; i < files; i++) start_from(i), run();
    printf("ok 1 - %d files of the corpus\n", files);
    fflush(stdout);
    state = (seed_text ? strtoull(seed_text, NULL, 0) : 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    for (long i = 0; i < runs; i++) {
        start_from((int)below((size_t)files));
        for (size_t k = 1 + below(6); k > 0; k--) mutate();
        run();
    }
    printf("ok 2 - %ld mutations\n1..2\n", runs);
    for (int i = 0; i < files; i++) free(corpus[i].data);
    return EXIT_SUCCESS;
}
