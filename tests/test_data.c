/* Data sets and loaders: IDX files plain and compressed, what is wrong with them, orders, positions. */
#include "support/devices.h"

#include <fornax/nn.h>
#include <unistd.h>
#include <zlib.h>

static char folder[64];

static void setup(void) {
    snprintf(folder, sizeof folder, "/tmp/fornax-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Writes bytes, compressed if the name ends so; returns the path. */
static const char *put(const char *name, const void *bytes, size_t size) {
    static char path[16][128];
    static int next;
    char *p = path[next = (next + 1) % 16];
    snprintf(p, sizeof *path, "%s/%s", folder, name);
    gzFile f = gzopen(p, strstr(name, ".gz") ? "wb" : "wbT");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(f), Z_OK);
    return p;
}

enum { N = 5 };
static const uint8_t images[16 + N * 6] = {0, 0, 8,  3,  0,  0,  0,  N,  0,  0,  0,  2,  0,  0,
                                           0, 3, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 255};
static const uint8_t labels[8 + N] = {0, 0, 8, 1, 0, 0, 0, N, 3, 1, 0, 2, 9};

START_TEST(idx_files_are_read_plain_and_compressed) {
    for (int compressed = 0; compressed < 2; compressed++) {
        fnx_dataset *d = fnx_dataset_idx(put(compressed ? "x.gz" : "x", images, sizeof images),
                                         put(compressed ? "y.gz" : "y", labels, sizeof labels));
        int64_t sizes[FNX_MAX_RANK];
        ck_assert_msg(fnx_dataset_status(d) == 0, "%s", fnx_last_error()->message);
        ck_assert_int_eq(fnx_dataset_count(d), N);
        ck_assert_int_eq(fnx_dataset_classes(d), 10);
        ck_assert_int_eq(fnx_dataset_item(d, sizes), 3);
        ck_assert(sizes[0] == 1 && sizes[1] == 2 && sizes[2] == 3);
        ck_assert_mem_eq(fnx_dataset_labels(d), labels + 8, N);
        fnx_dataset_destroy(d);
    }
}
END_TEST

static void refused(const char *x, const char *y, fnx_status code, const char *says) {
    fnx_dataset *d = fnx_dataset_idx(x, y);
    ck_assert_int_eq(fnx_dataset_status(d), code);
    ck_assert_msg(strstr(fnx_last_error()->message, says) != NULL, "'%s' does not say '%s'", fnx_last_error()->message,
                  says);
    fnx_dataset_destroy(d);
}

START_TEST(wrong_idx_files_are_refused_with_the_reason) {
    uint8_t bad[sizeof images + 1];
    const char *y = put("y", labels, sizeof labels);
    memcpy(bad, images, sizeof images);
    refused(put("x", images, 10), y, FNX_E_FORMAT, "within its header");
    refused(put("x", images, sizeof images - 1), y, FNX_E_FORMAT, "ends after 29 of 30");
    bad[sizeof images] = 0;
    refused(put("x", bad, sizeof bad), y, FNX_E_FORMAT, "after its last");
    bad[2] = 9;
    refused(put("x", bad, sizeof images), y, FNX_E_FORMAT, "magic");
    bad[2] = 8, bad[4] = 255;
    refused(put("x", bad, sizeof images), y, FNX_E_FORMAT, "sizes");
    bad[4] = 0, bad[5] = 0x40;
    refused(put("x", bad, sizeof images), y, FNX_E_FORMAT, "ends after");
    refused(y, y, FNX_E_FORMAT, "within its header"); /* labels are shorter than a header of three axes */
    refused(put("x", images, sizeof images), put("y3", images, sizeof images), FNX_E_FORMAT, "magic");
    memcpy(bad, labels, sizeof labels);
    bad[7] = N - 1;
    refused(put("x", images, sizeof images), put("y2", bad, sizeof labels - 1), FNX_E_FORMAT, "5 images");
    refused("/nowhere/x", y, FNX_E_NOT_FOUND, "/nowhere/x");
    fnx_dataset *d = fnx_dataset_mnist(folder, true);
    ck_assert_int_eq(fnx_dataset_status(d), FNX_E_NOT_FOUND);
    fnx_dataset_destroy(d);
}
END_TEST

/* Every byte of a compressed file changed, the file cut off everywhere: refused, or (a byte of no account) read. */
START_TEST(corrupt_compressed_files_are_refused) {
    uint8_t file[512], bad[512];
    const char *y = put("y", labels, sizeof labels), *x = put("x.gz", images, sizeof images);
    FILE *f = fopen(x, "rb");
    size_t size = fread(file, 1, sizeof file, f);
    fclose(f);
    int refusals = 0;
    for (size_t i = 0; i < 2 * size; i++) {
        memcpy(bad, file, size);
        if (i < size) bad[i] ^= 0x55;
        f = fopen(x, "wb");
        fwrite(bad, 1, i < size ? size : i - size, f);
        fclose(f);
        fnx_dataset *d = fnx_dataset_idx(x, y);
        fnx_status code = fnx_dataset_status(d);
        ck_assert(code == 0 || code == FNX_E_FORMAT);
        if (code) refusals++;
        else ck_assert_int_eq(fnx_dataset_count(d), N); /* flags, time and the like in the header of gzip */
        ck_assert_msg(i < size || code, "a file of %zu of %zu bytes was accepted", i - size, size);
        fnx_dataset_destroy(d);
    }
    ck_assert_int_gt(refusals, (int)size + (int)size / 2);
}
END_TEST

/* ---- loaders ----------------------------------------------------------------------------------------------------- */

enum { COUNT = 103, BATCH = 10 };
static uint8_t items[COUNT][2], item_labels[COUNT];

static fnx_dataset *numbered(void) {
    for (int i = 0; i < COUNT; i++)
        items[i][0] = (uint8_t)i, items[i][1] = (uint8_t)(255 - i), item_labels[i] = (uint8_t)i;
    return fnx_dataset_from(COUNT, 1, (int64_t[]){2}, items[0], item_labels);
}

/* The labels of an epoch in their order; checks that items go with them. */
static int epoch(fnx_loader *l, int64_t out[COUNT + BATCH]) {
    fnx_batch b;
    int n = 0;
    while (fnx_loader_next(l, &b)) {
        FNX_SCOPE;
        float x[BATCH * 2];
        ck_assert_int_le(b.count, BATCH);
        ck_assert_int_eq(fnx_tensor_read(b.y, out + n, 8 * (size_t)b.count), 0);
        ck_assert_int_eq(fnx_tensor_read(b.x, x, sizeof(float) * 2 * (size_t)b.count), 0);
        for (int i = 0; i < b.count; i++) {
            ck_assert_float_eq_tol(x[2 * i], (float)out[n + i] / 255, 1e-7f);
            ck_assert_float_eq_tol(x[2 * i + 1], (float)(255 - out[n + i]) / 255, 1e-7f);
        }
        n += (int)b.count;
    }
    ck_assert_int_eq(fnx_loader_status(l), 0);
    return n;
}

START_TEST(an_epoch_has_every_sample_once_in_an_order_of_its_own) {
    fnx_device *dev = test_device(_i, false);
    fnx_dataset *d = numbered();
    fnx_loader *l = fnx_loader_create(dev, d, .batch = BATCH, .shuffle = true, .seed = 3),
               *same = fnx_loader_create(dev, d, .batch = BATCH, .shuffle = true, .seed = 3);
    fnx_loader *plain = fnx_loader_create(dev, d, .batch = BATCH, .drop_last = true);
    int64_t order[3][COUNT + BATCH];
    for (int e = 0; e < 2; e++) {
        int seen[COUNT] = {0};
        ck_assert_int_eq(epoch(l, order[e]), COUNT);
        for (int i = 0; i < COUNT; i++) seen[order[e][i]]++;
        for (int i = 0; i < COUNT; i++) ck_assert_int_eq(seen[i], 1);
        ck_assert_int_eq(epoch(same, order[2]), COUNT);
        ck_assert_mem_eq(order[e], order[2], sizeof(int64_t) * COUNT);
    }
    ck_assert(memcmp(order[0], order[1], sizeof(int64_t) * COUNT) != 0);
    ck_assert_int_eq(epoch(plain, order[0]), COUNT / BATCH * BATCH);
    for (int i = 0; i < COUNT / BATCH * BATCH; i++) ck_assert_int_eq(order[0][i], i);
    fnx_loader_destroy(l), fnx_loader_destroy(same), fnx_loader_destroy(plain);
    fnx_dataset_destroy(d);
    fnx_device_close(dev);
}
END_TEST

START_TEST(a_loader_goes_on_where_another_stood) {
    fnx_device *dev = test_device(_i, false);
    fnx_dataset *d = numbered();
    fnx_loader *l = fnx_loader_create(dev, d, .batch = BATCH, .shuffle = true, .seed = 8),
               *other = fnx_loader_create(dev, d, .batch = BATCH, .shuffle = true, .seed = 8);
    int64_t rest[COUNT + BATCH], again[COUNT + BATCH], e, i;
    fnx_batch b;
    epoch(l, rest);
    for (int k = 0; k < 4; k++) ck_assert(fnx_loader_next(l, &b));
    fnx_loader_position(l, &e, &i);
    ck_assert(e == 1 && i == 4);
    ck_assert(fnx_loader_next(other, &b)); /* it had begun elsewhere */
    fnx_loader_seek(other, e, i);
    int n = epoch(l, rest);
    ck_assert_int_eq(n, COUNT - 4 * BATCH);
    ck_assert_int_eq(epoch(other, again), n);
    ck_assert_mem_eq(rest, again, sizeof(int64_t) * (size_t)n);
    fnx_loader_seek(other, 0, 0);
    ck_assert_int_eq(epoch(other, again), COUNT);
    fnx_loader_destroy(l), fnx_loader_destroy(other);
    fnx_dataset_destroy(d);
    fnx_device_close(dev);
}
END_TEST

START_TEST(loaders_without_sense_say_why) {
    fnx_device *dev = test_device(_i, false);
    fnx_dataset *d = numbered();
    fnx_batch b;
    fnx_loader *l = fnx_loader_create(dev, d, .batch = -1);
    ck_assert(!fnx_loader_next(l, &b));
    ck_assert_int_eq(fnx_loader_status(l), FNX_E_INVALID);
    fnx_loader_destroy(l);
    l = fnx_loader_create(dev, d, .batch = COUNT + 1, .drop_last = true);
    ck_assert_int_eq(fnx_loader_status(l), FNX_E_INVALID);
    fnx_loader_destroy(l);
    fnx_dataset *none = fnx_dataset_idx("/nowhere", "/nowhere");
    l = fnx_loader_create(dev, none, .batch = 1);
    ck_assert_int_eq(fnx_loader_status(l), FNX_E_NOT_FOUND);
    fnx_loader_destroy(l);
    fnx_dataset_destroy(none), fnx_dataset_destroy(d);
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("data");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, idx_files_are_read_plain_and_compressed);
    tcase_add_test(t, wrong_idx_files_are_refused_with_the_reason);
    tcase_add_test(t, corrupt_compressed_files_are_refused);
    test_each_device(t, an_epoch_has_every_sample_once_in_an_order_of_its_own);
    test_each_device(t, a_loader_goes_on_where_another_stood);
    test_each_device(t, loaders_without_sense_say_why);
    return test_run("data", t);
}
