/* The vulkan plugin's device: memory, copies, queues, events, kernels given as GLSL, and how it fails. Every test runs
 * with the validation layer, whose words fail the next sync, if that is installed. Without a Vulkan driver there is
 * nothing to test. */
#include "support/backend.h"
#include "support/child.h"

#include <check.h>
#include <fornax-plugin/kernel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const path = TEST_BUILD_DIR "/plugins/vulkan/.libs/fornax-vulkan.so";
static const char *staging = "off", *validation = "on", *timeout = "";

static const char *config(const char *key, const char *fallback) {
    if (!strcmp(key, "staging")) return staging;
    if (!strcmp(key, "validation")) return validation;
    if (!strcmp(key, "timeout")) return timeout;
    return fallback;
}

static backend vk;

/* Drivers and layers leak a little, and are unloaded when somebody could look whose it was. What the plugin allocates
 * the host counts. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) { return "detect_leaks=0"; }

/* They also have threads whose locks are not seen. */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void) {
    return "race:libVkLayer_khronos_validation.so\nrace:libvulkan_lvp.so\n"
           "deadlock:libVkLayer_khronos_validation.so\n";
}

static void open_at(backend *b, const char *address) {
    if (backend_open_with(b, path, address, config)) ck_abort_msg("%s", backend_error());
}

/* Most tests run twice: straight into mapped memory where the device has it, and through the staging ring. */
static void open_with_staging(int on) {
    staging = on ? "on" : "off";
    open_at(&vk, "");
}

static void sync_ok(void) {
    fnx_error_word word;
    if (vk.table->queue_sync(vk.queue, &word)) ck_abort_msg("sync: %d %s", word.code, backend_error());
}

static void close_but(int64_t blocks) {
    sync_ok();
    backend_close(&vk);
    ck_assert_int_eq(backend_live_blocks(), blocks);
}

static void close_after_sync(void) { close_but(0); }

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static fnx_binding take(uint64_t bytes) {
    fnx_binding at;
    if (vk.table->alloc(vk.device, 0, bytes, &at)) ck_abort_msg("%s", backend_error());
    return at;
}

static void give(fnx_binding at) { vk.table->free(vk.device, at.memory); }

static fnx_binding host(const void *p) { return (fnx_binding){(uint64_t)(uintptr_t)p, NULL}; }

static fnx_binding part(fnx_binding at, uint64_t offset) { return (fnx_binding){at.address + offset, at.memory}; }

static void copy(fnx_binding to, fnx_binding from, uint64_t bytes) {
    if (vk.table->copy(vk.queue, &to, &from, bytes)) ck_abort_msg("%s", backend_error());
}

static void fill(fnx_binding to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    if (vk.table->fill(vk.queue, &to, bytes, pattern, pattern_bytes)) ck_abort_msg("%s", backend_error());
}

static uint8_t *noise(uint64_t bytes, uint32_t seed) {
    uint8_t *p = malloc(bytes);
    ck_assert_ptr_nonnull(p);
    for (uint64_t i = 0; i < bytes; i++) p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    return p;
}

static bool all_are(const uint8_t *bytes, size_t n, uint8_t value) {
    size_t i = 0;
    while (i < n && bytes[i] == value) i++;
    return i == n;
}

/* ---- memory, copies, fills --------------------------------------------------------------------------------------- */

START_TEST(info_names_the_device_and_promises_no_host_memory) {
    static const uint8_t none[16];
    fnx_device_info info = {.struct_size = sizeof info};
    open_with_staging(0);
    ck_assert_int_eq(vk.table->info(vk.device, &info), FNX_OK);
    ck_assert_uint_eq(info.flags & FNX_DEVICE_HOST_MEMORY, 0);
    ck_assert_uint_ge(info.memory_align, 16);
    ck_assert_uint_ge(info.max_queues, 2);
    ck_assert_uint_gt(info.memory_bytes, 0);
    ck_assert(info.name[0] != 0);
    ck_assert_mem_ne(info.uuid, none, sizeof none);
    close_after_sync();
}
END_TEST

START_TEST(allocations_are_aligned_distinct_and_bounded) {
    fnx_device_info info = {.struct_size = sizeof info};
    fnx_binding huge;
    open_with_staging(0);
    vk.table->info(vk.device, &info);
    fnx_binding a = take(0), b = take(100), c = take(5);
    ck_assert(a.address && a.memory && a.address != b.address && b.address != c.address);
    ck_assert_uint_eq((a.address | b.address | c.address) % info.memory_align, 0);
    ck_assert_int_eq(vk.table->alloc(vk.device, 0, UINT64_MAX - 5, &huge), FNX_E_NO_MEMORY);
    ck_assert_int_eq(vk.table->alloc(vk.device, 0, UINT64_C(1) << 46, &huge), FNX_E_NO_MEMORY);
    CK_CONTAINS(backend_error(), "70368744177664 bytes; the driver's limit for one is ");
    give(a), give(b), give(c);
    vk.table->free(vk.device, NULL);
    close_after_sync();
}
END_TEST

START_TEST(copies_of_any_size_and_offset_come_back) {
    static const uint64_t sizes[] = {1, 3, 7, 64, 4097, (5 << 20) + 3, (20 << 20) + 1};
    open_with_staging(_i);
    for (size_t k = 0; k < COUNT(sizes); k++) {
        uint8_t *data = noise(sizes[k] + 5, 1), *back = calloc(1, sizes[k]);
        fnx_binding at = take(sizes[k] + 5);
        copy(part(at, 5), host(data + 3), sizes[k]);
        copy(host(back), part(at, 5), sizes[k]);
        sync_ok();
        ck_assert_mem_eq(back, data + 3, sizes[k]);
        give(at), free(data), free(back);
    }
    copy(host(NULL), host(NULL), 0);
    close_after_sync();
}
END_TEST

START_TEST(an_upload_has_read_its_source_when_it_returns) {
    uint8_t data[] = "before", back[sizeof data];
    open_with_staging(_i);
    fnx_binding at = take(sizeof data);
    fill(at, 4, 0, 1); /* something is under way */
    copy(at, host(data), sizeof data);
    memset(data, 'x', sizeof data);
    copy(host(back), at, sizeof back);
    sync_ok();
    ck_assert_str_eq((char *)back, "before");
    give(at);
    close_after_sync();
}
END_TEST

START_TEST(fills_repeat_patterns_at_any_offset) {
    static const struct {
        uint64_t offset, bytes;
        uint32_t pattern_bytes;
    } cases[] = {{0, 16, 1}, {0, 16, 2}, {0, 16, 4},    {0, 16, 8},   {1, 13, 1}, {4, 7, 1},
                 {2, 6, 2},  {3, 10, 2}, {1, 12, 4},    {4, 20, 4},   {4, 8, 8},  {5, 65544, 8},
                 {0, 1, 1},  {8, 0, 8},  {16, 4099, 1}, {0, 4098, 2}, {3, 64, 8}, {0, (5 << 20) + 8, 8}};
    const uint64_t pattern = UINT64_C(0x0807060504030201), most = 6 << 20;
    uint8_t *back = malloc(most);
    open_with_staging(_i);
    fnx_binding at = take(most);
    for (size_t k = 0; k < COUNT(cases); k++) {
        const uint64_t first = cases[k].offset, end = first + cases[k].bytes;
        fill(at, end + 64, 0xee, 1);
        fill(part(at, first), cases[k].bytes, pattern, cases[k].pattern_bytes);
        copy(host(back), at, end + 64);
        sync_ok();
        for (uint64_t i = 0; i < end + 64; i++) {
            const uint64_t want = i < first || i >= end ? 0xee : (i - first) % cases[k].pattern_bytes + 1;
            if (back[i] != want)
                ck_abort_msg("case %zu: byte %llu is %u, should be %u", k, (unsigned long long)i, back[i],
                             (unsigned)want);
        }
    }
    ck_assert_int_eq(vk.table->fill(vk.queue, &at, 16, 0, 3), FNX_E_INVALID);
    ck_assert_int_eq(vk.table->fill(vk.queue, &at, 6, 0, 4), FNX_E_INVALID);
    give(at), free(back);
    close_after_sync();
}
END_TEST

START_TEST(copies_within_the_device_may_overlap) {
    static const struct {
        uint64_t to, from, bytes;
    } cases[] = {{9, 2, 100}, {2, 9, 100}, {0, 500, 400}, {5, 5, 50}, {1, 0, 9 << 20}, {0, 1, 9 << 20}};
    const uint64_t most = (9 << 20) + 16;
    uint8_t *data = noise(most, 3), *back = malloc(most);
    open_with_staging(_i);
    fnx_binding a = take(most), b = take(most);
    for (size_t k = 0; k < COUNT(cases); k++) {
        copy(a, host(data), most);
        copy(part(a, cases[k].to), part(a, cases[k].from), cases[k].bytes);
        copy(b, a, most);
        copy(host(back), b, most);
        sync_ok();
        memmove(data + cases[k].to, data + cases[k].from, cases[k].bytes);
        ck_assert_mem_eq(back, data, most);
    }
    give(a), give(b), free(data), free(back);
    close_after_sync();
}
END_TEST

START_TEST(commands_of_a_queue_run_in_order) {
    uint32_t one[100], two[100], three[100];
    open_with_staging(_i);
    fnx_binding at = take(sizeof one), other = take(sizeof one);
    fill(at, sizeof one, 1, 4);
    copy(host(one), at, sizeof one);
    fill(at, sizeof one, 2, 4);
    copy(other, at, sizeof one);
    fill(at, sizeof one, 3, 4);
    copy(host(two), other, sizeof one);
    copy(host(three), at, sizeof one);
    sync_ok();
    for (size_t i = 0; i < COUNT(one); i++) ck_assert(one[i] == 1 && two[i] == 2 && three[i] == 3);
    give(at), give(other);
    close_after_sync();
}
END_TEST

START_TEST(an_upload_waits_for_the_download_it_reads) {
    uint32_t between[64] = {0}, back[64] = {0};
    open_with_staging(_i);
    fnx_binding a = take(sizeof between), b = take(sizeof between);
    fill(a, sizeof between, 77, 4);
    copy(host(between), a, sizeof between);
    copy(b, host(between), sizeof between);
    copy(host(back), b, sizeof back);
    sync_ok();
    for (size_t i = 0; i < COUNT(back); i++) ck_assert_uint_eq(back[i], 77);
    give(a), give(b);
    close_after_sync();
}
END_TEST

/* More commands than a batch has, more batches than a queue has, more bytes than the ring has. */
START_TEST(many_queued_copies_wrap_around_every_ring) {
    enum { N = 6000, EACH = 4001 };
    uint8_t *data = noise((uint64_t)N * EACH, 5), *back = calloc(N, EACH);
    open_with_staging(_i);
    fnx_binding at = take((uint64_t)N * EACH);
    fill(at, 64, 0, 1);
    for (uint64_t i = 0; i < N; i++) copy(part(at, i * EACH), host(data + i * EACH), EACH);
    for (uint64_t i = 0; i < (_i ? N : 20); i++) copy(host(back + i * EACH), part(at, i * EACH), EACH);
    sync_ok();
    ck_assert_mem_eq(back, data, (uint64_t)(_i ? N : 20) * EACH);
    give(at), free(data), free(back);
    close_after_sync();
}
END_TEST

START_TEST(copies_beyond_an_allocation_are_refused) {
    uint8_t data[64] = {0};
    open_with_staging(_i);
    fnx_binding at = take(32), from = host(data), before = part(at, (uint64_t)-8);
    ck_assert_int_eq(vk.table->copy(vk.queue, &at, &from, 64), FNX_E_INVALID);
    ck_assert_int_eq(vk.table->copy(vk.queue, &from, &before, 4), FNX_E_INVALID);
    ck_assert_int_eq(vk.table->fill(vk.queue, &at, 64, 0, 1), FNX_E_INVALID);
    give(at);
    close_after_sync();
}
END_TEST

/* ---- events ------------------------------------------------------------------------------------------------------ */

START_TEST(an_event_is_done_when_downloads_before_it_have_arrived) {
    enum { BYTES = 3 << 20 };
    uint8_t *back = calloc(1, BYTES);
    uint32_t done = 0;
    void *event;
    open_with_staging(_i);
    fnx_binding at = take(BYTES);
    fill(at, BYTES, 9, 1);
    copy(host(back), at, BYTES);
    ck_assert_int_eq(vk.table->event_record(vk.queue, &event), FNX_OK);
    while (!done) ck_assert_int_eq(vk.table->event_done(event, &done), FNX_OK);
    ck_assert(all_are(back, BYTES, 9));
    vk.table->event_destroy(event);
    give(at), free(back);
    close_after_sync();
}
END_TEST

START_TEST(a_queue_waits_for_an_event_of_another) {
    enum { BYTES = 8 << 20 };
    uint8_t *there = calloc(1, BYTES), *back = calloc(1, BYTES);
    fnx_error_word word;
    void *other, *event;
    open_with_staging(_i);
    fnx_binding a = take(BYTES), b = take(BYTES), c = take(BYTES), from = host(there), to = host(back);
    ck_assert_int_eq(vk.table->queue_create(vk.device, &other), FNX_OK);
    fill(a, BYTES, 1, 1);
    copy(b, a, BYTES);
    copy(host(there), b, BYTES);
    ck_assert_int_eq(vk.table->event_record(vk.queue, &event), FNX_OK);
    ck_assert_int_eq(vk.table->event_wait(other, event), FNX_OK);
    ck_assert_int_eq(vk.table->copy(other, &c, &from, BYTES), FNX_OK);
    ck_assert_int_eq(vk.table->copy(other, &to, &c, BYTES), FNX_OK);
    ck_assert_int_eq(vk.table->queue_sync(other, &word), FNX_OK);
    ck_assert(all_are(back, BYTES, 1));
    vk.table->event_destroy(event);
    vk.table->queue_destroy(other);
    give(a), give(b), give(c), free(there), free(back);
    close_after_sync();
}
END_TEST

START_TEST(an_event_outlives_its_queue) {
    void *other, *event, *third;
    uint32_t done = 0;
    open_with_staging(0);
    fnx_binding at = take(64);
    ck_assert_int_eq(vk.table->queue_create(vk.device, &other), FNX_OK);
    ck_assert_int_eq(vk.table->fill(other, &at, 64, 0, 4), FNX_OK);
    ck_assert_int_eq(vk.table->event_record(other, &event), FNX_OK);
    vk.table->queue_destroy(other);
    ck_assert_int_eq(vk.table->queue_create(vk.device, &third), FNX_OK);
    for (int i = 0; i < 20; i++) { /* more than one submission waits for */
        ck_assert_int_eq(vk.table->event_wait(vk.queue, event), FNX_OK);
        ck_assert_int_eq(vk.table->event_wait(third, event), FNX_OK);
    }
    ck_assert_int_eq(vk.table->event_done(event, &done), FNX_OK);
    ck_assert_uint_eq(done, 1);
    vk.table->event_destroy(event);
    vk.table->queue_destroy(third);
    vk.table->queue_destroy(NULL);
    give(at);
    close_after_sync();
}
END_TEST

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

#define HEAD \
    "#version 460\n#extension GL_EXT_buffer_reference : require\n" \
    "#extension GL_EXT_shader_explicit_arithmetic_types : require\n" \
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer floats { float v[]; };\n" \
    "layout(buffer_reference, std430, buffer_reference_align = 8) buffer words {\n" \
    "    int code; uint site; uint node; uint reserved; int64_t index; int64_t limit; };\n" \
    "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer block {\n" \
    "    words word; floats a, b, c; uint n, site; };\n" \
    "layout(push_constant) uniform push { block args; };\n" \
    "layout(local_size_x = 64) in;\n"

typedef struct block {
    uint64_t word, a, b, c;
    uint32_t n, site;
} block;

/* The first member of the device is what the kernel compiler gets. */
static const fnx_codegen_device *codegen(void) { return vk.device; }

static void *compile(const char *text) {
    const fnx_codegen_source source = {.struct_size = sizeof source,
                                       .dialect = FNX_DIALECT_GLSL,
                                       .text = text,
                                       .entry = "main",
                                       .threads = {64, 1, 1},
                                       .args_bytes = sizeof(block)};
    void *program = NULL;
    char log[1024];
    if (codegen()->compile(codegen()->user, &source, &program, log, sizeof log)) ck_abort_msg("%s", log);
    return program;
}

static void launch(void *queue, void *program, block args) {
    const uint32_t groups[3] = {(args.n + 63) / 64, 1, 1};
    args.word = codegen()->error_word(codegen()->user, queue);
    if (codegen()->launch(codegen()->user, queue, program, groups, &args, sizeof args))
        ck_abort_msg("%s", backend_error());
}

static void release(void *program) { codegen()->release(codegen()->user, program); }

START_TEST(the_compiler_gets_a_device_for_glsl) {
    open_with_staging(0);
    ck_assert_uint_eq(codegen()->struct_size, sizeof(fnx_codegen_device));
    ck_assert_uint_eq(codegen()->dialect, FNX_DIALECT_GLSL);
    ck_assert(codegen()->features & FNX_CODEGEN_I64);
    ck_assert_uint_ge(codegen()->max_threads, 128); /* what Vulkan guarantees */
    ck_assert_uint_ge(codegen()->max_shared, 16384);
    for (int k = 0; k < 3; k++) ck_assert_uint_ge(codegen()->max_groups[k], 65535);
    ck_assert_ptr_nonnull(vk.groups);
    close_after_sync();
}
END_TEST

START_TEST(a_kernel_adds_vectors) {
    enum { N = 100003 };
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = calloc(N + 1, sizeof *c);
    open_with_staging(_i);
    void *add = compile(HEAD "void main() {\n    uint i = gl_GlobalInvocationID.x;\n"
                             "    if (i < args.n) args.c.v[i] = args.a.v[i] + args.b.v[i];\n}\n");
    fnx_binding at = take(3 * N * sizeof *a), to = part(at, 2 * N * sizeof *a);
    for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = 0.5f;
    copy(at, host(a), N * sizeof *a);
    copy(part(at, N * sizeof *a), host(b), N * sizeof *b);
    launch(vk.queue, add, (block){.a = at.address, .b = at.address + N * sizeof *a, .c = to.address, .n = N});
    copy(host(c), to, N * sizeof *c);
    sync_ok();
    for (int i = 0; i < N; i++)
        if (c[i] != (float)i + 0.5f) ck_abort_msg("c[%d] is %g", i, (double)c[i]);
    release(add), release(NULL);
    give(at), free(a), free(b), free(c);
    close_after_sync();
}
END_TEST

/* Each launch needs what the one before it wrote; their arguments fill their ring several times. */
START_TEST(launches_see_the_results_of_earlier_ones) {
    enum { N = 1000, TIMES = 3000 };
    float back[N];
    uint8_t large[FNX_CODEGEN_ARGS_MAX] = {0};
    const uint32_t groups[3] = {(N + 63) / 64, 1, 1}, none[3] = {1, 0, 1};
    open_with_staging(_i);
    void *next = compile(HEAD "void main() {\n    uint i = gl_GlobalInvocationID.x;\n"
                              "    if (i < args.n) args.a.v[args.n - 1 - i] = args.b.v[i] + 1.0;\n}\n");
    fnx_binding a = take(sizeof back), b = take(sizeof back);
    fill(b, sizeof back, 0, 4);
    for (int k = 0; k < TIMES; k++) {
        const block args = {.word = codegen()->error_word(codegen()->user, vk.queue),
                            .a = k % 2 ? b.address : a.address,
                            .b = k % 2 ? a.address : b.address,
                            .n = N};
        memcpy(large, &args, sizeof args);
        ck_assert_int_eq(codegen()->launch(codegen()->user, vk.queue, next, groups, large, sizeof large), FNX_OK);
        ck_assert_int_eq(codegen()->launch(codegen()->user, vk.queue, next, none, large, sizeof large), FNX_OK);
        memset(large, 0xff, sizeof large);
    }
    copy(host(back), b, sizeof back);
    sync_ok();
    for (int i = 0; i < N; i++) ck_assert(back[i] == TIMES);
    release(next);
    give(a), give(b);
    close_after_sync();
}
END_TEST

START_TEST(a_refused_element_arrives_at_the_sync_of_its_queue) {
    fnx_error_word word;
    void *other;
    open_with_staging(_i);
    void *refuse = compile(HEAD "void main() {\n    uint i = gl_GlobalInvocationID.x;\n"
                                "    if (i != 7 || atomicCompSwap(args.word.code, 0, -4) != 0) return;\n"
                                "    args.word.site = args.site; args.word.node = 3;\n"
                                "    args.word.index = -5000000000l; args.word.limit = 12;\n}\n");
    ck_assert_int_eq(vk.table->queue_create(vk.device, &other), FNX_OK);
    launch(vk.queue, refuse, (block){.n = 64, .site = 11});
    launch(vk.queue, refuse, (block){.n = 64, .site = 12});
    ck_assert_int_eq(vk.table->queue_sync(other, &word), FNX_OK);
    ck_assert_int_eq(vk.table->queue_sync(vk.queue, &word), FNX_E_INDEX);
    ck_assert_int_eq(word.code, FNX_E_INDEX);
    ck_assert_uint_eq(word.site, 11); /* the first failure won */
    ck_assert_uint_eq(word.node, 3);
    ck_assert_int_eq(word.index, -5000000000);
    ck_assert_int_eq(word.limit, 12);
    ck_assert_int_eq(vk.table->queue_sync(vk.queue, &word), FNX_OK); /* and it is cleared */
    ck_assert_int_eq(word.code, FNX_OK);
    launch(other, refuse, (block){.n = 64, .site = 13});
    ck_assert_int_eq(vk.table->queue_sync(other, NULL), FNX_E_INDEX);
    release(refuse);
    vk.table->queue_destroy(other);
    close_after_sync();
}
END_TEST

START_TEST(a_kernel_with_a_syntax_error_gives_the_log) {
    fnx_codegen_source source = {.struct_size = sizeof source,
                                 .dialect = FNX_DIALECT_GLSL,
                                 .text = HEAD "void main() { float y = unheard_of; }\n",
                                 .entry = "main",
                                 .threads = {64, 1, 1}};
    char log[512] = "", small[8];
    void *program;
    open_with_staging(0);
    ck_assert_int_eq(codegen()->compile(codegen()->user, &source, &program, log, sizeof log), FNX_E_INTERNAL);
    CK_CONTAINS(log, "unheard_of");
    CK_CONTAINS(backend_error(), "glslang refused");
    ck_assert_int_eq(codegen()->compile(codegen()->user, &source, &program, small, sizeof small), FNX_E_INTERNAL);
    ck_assert_uint_lt(strlen(small), sizeof small);
    source.text = HEAD "void entry() {}\n"; /* parses, but does not link */
    ck_assert_int_eq(codegen()->compile(codegen()->user, &source, &program, log, sizeof log), FNX_E_INTERNAL);
    CK_CONTAINS(log, "entry point");
    close_after_sync();
}
END_TEST

START_TEST(kernels_beyond_the_limits_are_refused) {
    fnx_codegen_source source = {.struct_size = sizeof source, .text = HEAD "void main() {}\n", .entry = "main"};
    const uint32_t many[3] = {1, UINT32_MAX, 1};
    uint8_t args[FNX_CODEGEN_ARGS_MAX + 8] = {0};
    char log[256];
    void *program;
    open_with_staging(0);
    source.threads[0] = codegen()->max_threads, source.threads[1] = 2, source.threads[2] = 1;
    ck_assert_int_eq(codegen()->compile(codegen()->user, &source, &program, log, sizeof log), FNX_E_UNSUPPORTED);
    CK_CONTAINS(log, "threads");
    program = compile(HEAD "void main() {}\n");
    if (codegen()->max_groups[1] < UINT32_MAX)
        ck_assert_int_eq(codegen()->launch(codegen()->user, vk.queue, program, many, args, 64), FNX_E_INVALID);
    ck_assert_int_eq(codegen()->launch(codegen()->user, vk.queue, program, (uint32_t[3]){1, 1, 1}, args, sizeof args),
                     FNX_E_INVALID);
    release(program);
    close_after_sync();
}
END_TEST

static void *work(void *failures) {
    enum { N = 5000 };
    float in[N], out[N];
    void *queue, *add = compile(HEAD "void main() {\n    uint i = gl_GlobalInvocationID.x;\n"
                                     "    if (i < args.n) args.a.v[i] = args.a.v[i] + 1.0;\n}\n");
    if (vk.table->queue_create(vk.device, &queue)) return NULL;
    fnx_binding at = take(sizeof in), from = host(in), to = host(out);
    for (int k = 0; k < 100; k++) {
        for (int i = 0; i < N; i++) in[i] = (float)(i + k);
        if (vk.table->copy(queue, &at, &from, sizeof in)) return NULL;
        launch(queue, add, (block){.a = at.address, .n = N});
        launch(queue, add, (block){.a = at.address, .n = N});
        if (vk.table->copy(queue, &to, &at, sizeof out) || vk.table->queue_sync(queue, NULL)) return NULL;
        bool same = true;
        for (int i = 0; i < N; i++) same &= out[i] == (float)(i + k + 2);
        *(int *)failures -= same;
    }
    vk.table->queue_destroy(queue);
    release(add);
    give(at);
    return NULL;
}

START_TEST(two_threads_use_two_queues) {
    pthread_t thread;
    int there = 100, here = 100;
    open_with_staging(_i);
    ck_assert_int_eq(pthread_create(&thread, NULL, work, &there), 0);
    work(&here);
    pthread_join(thread, NULL);
    ck_assert_int_eq(there, 0);
    ck_assert_int_eq(here, 0);
    close_after_sync();
}
END_TEST

/* ---- addresses, options, failures -------------------------------------------------------------------------------- */

START_TEST(a_device_is_named_by_number_uuid_or_name) {
    fnx_device_info info = {.struct_size = sizeof info}, other = {.struct_size = sizeof other};
    const fnx_device_table *table;
    char uuid[40], name[12];
    void *device;
    int n = 0;
    open_with_staging(0);
    vk.table->info(vk.device, &info);
    for (int i = 0; i < 16; i++)
        n += snprintf(uuid + n, sizeof uuid - (size_t)n, i == 4 ? "-%02x" : "%02X", info.uuid[i]);
    snprintf(name, sizeof name, "%.8s", info.name);
    const char *const good[] = {"", "0", uuid, name};
    for (size_t k = 0; k < COUNT(good); k++) {
        if (vk.plugin->device_open(vk.context, good[k], &table, &device)) ck_abort_msg("%s", backend_error());
        table->info(device, &other);
        ck_assert_mem_eq(&other, &info, sizeof info);
        table->close(device);
    }
    const char *const bad[] = {"99", "12345678", "0x", "nothing"};
    for (size_t k = 0; k < COUNT(bad); k++) {
        ck_assert_int_eq(vk.plugin->device_open(vk.context, bad[k], &table, &device), FNX_E_NOT_FOUND);
        CK_CONTAINS(backend_error(), bad[k]);
        CK_CONTAINS(backend_error(), "0 is ");
    }
    ck_assert_uint_ge(vk.plugin->device_count(vk.context), 1);
    close_after_sync();
}
END_TEST

START_TEST(options_that_mean_nothing_are_refused) {
    backend b;
    staging = "perhaps";
    ck_assert_int_ne(backend_open_with(&b, path, "", config), 0);
    CK_CONTAINS(backend_error(), "staging must be on or off, not 'perhaps'");
    backend_close(&b);
    staging = "off", timeout = "soon";
    ck_assert_int_ne(backend_open_with(&b, path, "", config), 0);
    CK_CONTAINS(backend_error(), "timeout must be");
    backend_close(&b);
}
END_TEST

/* A shader that wants more push constants than pipelines here have. */
START_TEST(what_the_validation_layer_says_fails_the_next_sync) {
    fnx_error_word word;
    open_with_staging(0);
    if (!strcmp(validation, "on")) {
        release(compile("#version 460\nlayout(local_size_x = 64) in;\nshared uint x;\n"
                        "layout(push_constant) uniform push { uvec4 args; };\nvoid main() { x = args.w; }\n"));
        ck_assert_int_eq(vk.table->queue_sync(vk.queue, &word), FNX_E_INTERNAL);
        ck_assert_int_eq(word.code, FNX_E_INTERNAL);
        CK_CONTAINS(backend_error(), "validation: ");
    }
    close_after_sync();
}
END_TEST

START_TEST(a_device_that_stops_answering_is_lost_and_others_go_on) {
    uint64_t text[4] = {0};
    fnx_error_word word;
    backend other;
    fnx_binding at, from = host(text);
    void *event;
    uint32_t done;
    open_with_staging(0);
    other = vk;
    timeout = "0.05";
    open_at(&vk, "");
    void *busy = compile(HEAD "void main() {\n    uint x = args.n;\n" /* lavapipe ends a loop after 65535 rounds */
                              "    for (uint k = 0; k < args.n / 4; k++) x = x * 1664525 + 1013904223;\n"
                              "    if (x == 1) args.a.v[0] = float(x);\n}\n");
    fnx_binding target = take(64);
    launch(vk.queue, busy, (block){.a = target.address, .n = 64 * 4000});
    ck_assert_int_eq(vk.table->event_record(vk.queue, &event), FNX_OK);
    ck_assert_int_eq(vk.table->queue_sync(vk.queue, &word), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(word.code, FNX_E_DEVICE_LOST);
    CK_CONTAINS(backend_error(), "timeout");
    ck_assert_int_eq(vk.table->queue_sync(vk.queue, &word), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->queue_flush(vk.queue), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->copy(vk.queue, &target, &from, sizeof text), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->fill(vk.queue, &target, 16, 0, 1), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->alloc(vk.device, 0, 16, &at), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->event_done(event, &done), FNX_E_DEVICE_LOST);
    ck_assert_int_eq(vk.table->event_wait(vk.queue, event), FNX_OK); /* its own */
    vk.table->event_destroy(event);
    release(busy);
    give(target);
    backend_close(&vk);

    vk = other;
    at = take(sizeof text);
    fill(at, sizeof text, 5, 8);
    copy(host(text), at, sizeof text);
    sync_ok();
    ck_assert_uint_eq(text[3], 5);
    give(at);
    close_but(1); /* what a hanging driver may call */
}
END_TEST

START_TEST(without_a_driver_it_says_so) {
    char out[1024];
    child_run("VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent", "unavailable", out, sizeof out);
    CK_CONTAINS(out, "vulkan: unavailable because there is no Vulkan driver");
}
END_TEST

START_TEST(without_a_loader_it_says_so) {
    char folder[] = "/tmp/fornax-vulkan-XXXXXX", file[64], environment[128], out[1024];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/libvulkan.so.1", folder);
    FILE *f = fopen(file, "w"); /* found first, and no library */
    ck_assert_ptr_nonnull(f);
    fclose(f);
    snprintf(environment, sizeof environment, "LD_LIBRARY_PATH='%s'", folder);
    child_run(environment, "unavailable", out, sizeof out);
    CK_CONTAINS(out, "vulkan: unavailable because ");
    CK_CONTAINS(out, "libvulkan.so.1");
    unlink(file), rmdir(folder);
}
END_TEST

START_TEST(without_the_layer_validation_says_so) {
    char out[1024];
    child_run("VK_LAYER_PATH=/nonexistent", "validated", out, sizeof out);
    CK_CONTAINS(out, "vulkan: validation=on needs the layer VK_LAYER_KHRONOS_validation");
}
END_TEST

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* What opening says, in a process of its own. */
static int say(void) {
    backend b;
    const int failed = backend_open_with(&b, path, "", config);
    printf("%s\n", failed ? backend_error() : "it opened");
    if (b.initialised) printf("%u devices\n", b.plugin->device_count(b.context));
    backend_close(&b);
    return 0;
}

/* Whether a device opens, asked of a child: a process that has used Vulkan must not fork. */
static bool opens(void) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        backend b;
        const int failed = backend_open_with(&b, path, "", config);
        if (failed) printf("# %s\n", backend_error());
        fflush(NULL);
        _exit(failed != 0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
    static const char lavapipe[] = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
    if (!access(lavapipe, R_OK)) setenv("VK_ICD_FILENAMES", lavapipe, 0);
    if (argc > 1) {
        if (!strcmp(argv[1], "unavailable")) validation = "off";
        return say();
    }
    if (!opens()) {
        validation = "off";
        if (!opens()) {
            puts("1..0 # SKIP no Vulkan device");
            return EXIT_SUCCESS;
        }
        puts("# without the validation layer (Debian: vulkan-validationlayers)");
    }
    Suite *suite = suite_create("vulkan");
    TCase *c = tcase_create("vulkan");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, info_names_the_device_and_promises_no_host_memory);
    tcase_add_test(c, allocations_are_aligned_distinct_and_bounded);
    tcase_add_loop_test(c, copies_of_any_size_and_offset_come_back, 0, 2);
    tcase_add_loop_test(c, an_upload_has_read_its_source_when_it_returns, 0, 2);
    tcase_add_loop_test(c, fills_repeat_patterns_at_any_offset, 0, 2);
    tcase_add_loop_test(c, copies_within_the_device_may_overlap, 0, 2);
    tcase_add_loop_test(c, commands_of_a_queue_run_in_order, 0, 2);
    tcase_add_loop_test(c, an_upload_waits_for_the_download_it_reads, 0, 2);
    tcase_add_loop_test(c, many_queued_copies_wrap_around_every_ring, 0, 2);
    tcase_add_loop_test(c, copies_beyond_an_allocation_are_refused, 0, 2);
    tcase_add_loop_test(c, an_event_is_done_when_downloads_before_it_have_arrived, 0, 2);
    tcase_add_loop_test(c, a_queue_waits_for_an_event_of_another, 0, 2);
    tcase_add_test(c, an_event_outlives_its_queue);
    tcase_add_test(c, the_compiler_gets_a_device_for_glsl);
    tcase_add_loop_test(c, a_kernel_adds_vectors, 0, 2);
    tcase_add_loop_test(c, launches_see_the_results_of_earlier_ones, 0, 2);
    tcase_add_loop_test(c, a_refused_element_arrives_at_the_sync_of_its_queue, 0, 2);
    tcase_add_test(c, a_kernel_with_a_syntax_error_gives_the_log);
    tcase_add_test(c, kernels_beyond_the_limits_are_refused);
    tcase_add_loop_test(c, two_threads_use_two_queues, 0, 2);
    tcase_add_test(c, a_device_is_named_by_number_uuid_or_name);
    tcase_add_test(c, options_that_mean_nothing_are_refused);
    tcase_add_test(c, what_the_validation_layer_says_fails_the_next_sync);
    tcase_add_test(c, a_device_that_stops_answering_is_lost_and_others_go_on);
    tcase_add_test(c, without_a_driver_it_says_so);
    tcase_add_test(c, without_a_loader_it_says_so);
    tcase_add_test(c, without_the_layer_validation_says_so);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
