/* safetensors files and checkpoints: round trips, resuming, and everything that can be wrong with a file. */
#include "support/devices.h"

#include <fcntl.h>
#include <fornax/nn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

static const char *in_folder(const char *name) {
    static char path[2][128];
    static int next;
    snprintf(path[next ^= 1], sizeof *path, "%s/%s", folder, name);
    return path[next];
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(what_was_written_is_read) {
    const float a[6] = {1, -2, 3, 4, 5, 6.5f};
    const int64_t b[1] = {INT64_MIN};
    const fnx_safetensor in[] = {{"b.two", FNX_I64, 0, {0}, b, 8},
                                 {"a.one", FNX_F32, 2, {2, 3}, a, 24},
                                 {"empty", FNX_U8, 1, {0}, a, 0}};
    const fnx_text_pair texts[] = {{"model", "cnn \"x\" \xc3\xa4"}, {NULL, NULL}};
    ck_assert_msg(fnx_safetensors_save(in_folder("x"), in, 3, texts) == 0, "%s", fnx_last_error()->message);
    fnx_safetensors *f = fnx_safetensors_open(in_folder("x"));
    ck_assert_msg(fnx_safetensors_status(f) == 0, "%s", fnx_last_error()->message);
    ck_assert_int_eq(fnx_safetensors_count(f), 3);
    for (int i = 0; i < 3; i++) {
        const fnx_safetensor *t = fnx_safetensors_find(f, in[i].name);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq(t->dtype, in[i].dtype);
        ck_assert_int_eq(t->rank, in[i].rank);
        ck_assert_uint_eq(t->bytes, in[i].bytes);
        ck_assert_mem_eq(t->data, in[i].data, in[i].bytes);
        for (int d = 0; d < t->rank; d++) ck_assert_int_eq(t->sizes[d], in[i].sizes[d]);
    }
    ck_assert_str_eq(fnx_safetensors_metadata(f, "model"), texts[0].value);
    ck_assert_ptr_null(fnx_safetensors_metadata(f, "other"));
    ck_assert_uint_eq((uintptr_t)fnx_safetensors_at(f, 0)->data % 64, 0);
    fnx_safetensors_close(f);
}
END_TEST

/* Length, header, and `data` bytes of zeros; what the message must say. */
static const struct {
    const char *header;
    int data;
    const char *says;
} wrong[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "outside"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, "no tensor"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, "another size"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "outside"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "outside"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
     "offsets\":[4,12]}}",
     12, "overlaps"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
     "offsets\":[12,16]}}",
     16, "gap"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_"
     "offsets\":[0,8]}}",
     8, "duplicate"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8, "overflows"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8, "8 sizes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, "nothing else"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "no text"},
    {"{\"__metadata__\":[]}", 0, "no object"},
    {"[]", 0, "object"},
    {"{", 0, "expected"},
    {"{\"a\":[[[[[[1]]]]]]}", 0, "too deep"},
};

START_TEST(wrong_files_are_refused_with_the_reason) {
    uint8_t file[1024];
    size_t length = strlen(wrong[_i].header);
    memset(file, 0, sizeof file);
    file[0] = (uint8_t)length, file[1] = (uint8_t)(length >> 8);
    memcpy(file + 8, wrong[_i].header, length);
    fnx_safetensors *f = fnx_safetensors_from(file, 8 + length + (size_t)wrong[_i].data, "wrong");
    ck_assert_int_eq(fnx_safetensors_status(f), FNX_E_FORMAT);
    ck_assert_msg(strstr(fnx_last_error()->message, wrong[_i].says) != NULL, "%s: %s", wrong[_i].header,
                  fnx_last_error()->message);
    ck_assert_int_eq(fnx_safetensors_count(f), 0);
    fnx_safetensors_close(f);
}
END_TEST

START_TEST(lengths_that_lie_are_refused) {
    const struct {
        uint8_t bytes[12];
        size_t size;
        const char *says;
    } c[] = {
        {{0}, 7, "length"},
        {{5, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10, "within its header"},
        {{255, 255, 255, 255, 255, 255, 255, 255}, 12, "100 MB"},
        {{0, 0, 0, 6, 0, 0, 0, 0}, 12, "100 MB"},
        {{0}, 8, ""},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        fnx_safetensors *f = fnx_safetensors_from(c[i].bytes, c[i].size, "lie");
        ck_assert_int_eq(fnx_safetensors_status(f), FNX_E_FORMAT);
        ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, c[i].says));
        fnx_safetensors_close(f);
    }
    fnx_safetensors *f = fnx_safetensors_open("/nowhere/at-all");
    ck_assert_int_eq(fnx_safetensors_status(f), FNX_E_NOT_FOUND);
    fnx_safetensors_close(f);
    f = fnx_safetensors_open("/tmp");
    ck_assert_int_eq(fnx_safetensors_status(f), FNX_E_FORMAT);
    fnx_safetensors_close(f);
}
END_TEST

START_TEST(a_disk_that_is_full_leaves_the_old_file) {
    const uint8_t old[4] = {1, 2, 3, 4};
    static uint8_t big[1 << 20];
    const fnx_safetensor small = {"a", FNX_U8, 1, {4}, old, 4}, large = {"a", FNX_U8, 1, {1 << 20}, big, 1 << 20};
    ck_assert_int_eq(fnx_safetensors_save(in_folder("x"), &small, 1, NULL), 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit was, tight;
    getrlimit(RLIMIT_FSIZE, &was);
    tight = was, tight.rlim_cur = 100000;
    setrlimit(RLIMIT_FSIZE, &tight);
    fnx_status code = fnx_safetensors_save(in_folder("x"), &large, 1, NULL);
    setrlimit(RLIMIT_FSIZE, &was);
    ck_assert_int_eq(code, FNX_E_IO);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "unchanged"));
    fnx_safetensors *f = fnx_safetensors_open(in_folder("x"));
    ck_assert_int_eq(fnx_safetensors_status(f), 0);
    ck_assert_mem_eq(fnx_safetensors_find(f, "a")->data, old, 4);
    fnx_safetensors_close(f);
    char command[160];
    snprintf(command, sizeof command, "test $(ls %s | wc -l) = 1", folder); /* no temporary file is left */
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(fnx_safetensors_save(in_folder("no/such/folder"), &small, 1, NULL), FNX_E_IO);
}
END_TEST

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

static fnx_module *make_net(fnx_device *dev, int hidden) {
    return fnx_sequential(dev, fnx_layer_linear(6, hidden), fnx_layer_batch_norm(hidden), fnx_layer_relu(),
                          fnx_layer_dropout(0.25), fnx_layer_linear(hidden, 3));
}

static double step(fnx_device *dev, fnx_module *net, fnx_optimizer *o) {
    FNX_SCOPE;
    double v;
    fnx_tensor *y = fnx_module_forward(net, fnx_normal(dev, FNX_F32, FNX_SHAPE(8, 6), 0, 1));
    fnx_tensor *loss = fnx_mean(fnx_mul(y, y), FNX_ALL_AXES, false);
    ck_assert_int_eq(fnx_backward(loss), 0);
    ck_assert_msg(fnx_optimizer_step(o) == 0, "%s", fnx_last_error()->message);
    ck_assert_int_eq(fnx_tensor_item(loss, &v), 0);
    return v;
}

START_TEST(a_resumed_run_goes_on_to_the_same_numbers) {
    fnx_device *dev = test_device(_i, true);
    double straight[10], resumed[10];
    for (int kind = 0; kind < 3; kind++) {
        for (int half = 0; half < 2; half++) { /* straight through, saving on the way; then from the file */
            fnx_device_seed(dev, half ? 99 : 5);
            fnx_module *net = make_net(dev, 5);
            fnx_optimizer *o = kind == 0   ? fnx_adam(net, .lr = 0.01)
                               : kind == 1 ? fnx_adamw(net, .lr = 0.01)
                                           : fnx_sgd(net, .lr = 0.05, .momentum = 0.9);
            if (half) ck_assert_msg(fnx_checkpoint_load(in_folder("c"), net, o) == 0, "%s", fnx_last_error()->message);
            for (int i = half ? 5 : 0; i < 10; i++) {
                if (i == 5 && !half)
                    ck_assert_msg(fnx_checkpoint_save(in_folder("c"), net, o, NULL) == 0, "%s",
                                  fnx_last_error()->message);
                (half ? resumed : straight)[i] = step(dev, net, o);
            }
            ck_assert_int_eq(fnx_optimizer_steps(o), 10);
            fnx_optimizer_destroy(o);
            fnx_module_destroy(net);
        }
        for (int i = 5; i < 10; i++) ck_assert_double_eq(straight[i], resumed[i]);
    }
    fnx_device_close(dev);
}
END_TEST

START_TEST(another_architecture_is_refused_and_changes_nothing) {
    fnx_device *dev = test_device(_i, true);
    fnx_device_seed(dev, 1);
    fnx_module *five = make_net(dev, 5), *four = make_net(dev, 4), *less = fnx_sequential(dev, fnx_layer_linear(6, 5));
    fnx_optimizer *adam = fnx_adam(five, .lr = 0.01), *sgd = fnx_sgd(five, .lr = 0.01, .momentum = 0.9);
    const fnx_text_pair texts[] = {{"model", "five"}, {NULL, NULL}};
    int n;
    double before, after;
    FNX_SCOPE;
    step(dev, five, adam);
    ck_assert_int_eq(fnx_checkpoint_save(in_folder("c"), five, adam, texts), 0);
    const fnx_parameter *p = fnx_module_parameters(four, &n);
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_variable_get(p[0].variable), FNX_ALL_AXES, false), &before), 0);
    ck_assert_int_eq(fnx_checkpoint_load(in_folder("c"), four, NULL), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "model.0.weight"));
    ck_assert_int_eq(fnx_tensor_item(fnx_sum(fnx_variable_get(p[0].variable), FNX_ALL_AXES, false), &after), 0);
    ck_assert_double_eq(before, after);
    ck_assert_int_eq(fnx_checkpoint_load(in_folder("c"), less, NULL), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "unexpected model.4.weight"));
    ck_assert_int_eq(fnx_checkpoint_load(in_folder("c"), five, sgd), FNX_E_INVALID);
    ck_assert_ptr_nonnull(strstr(fnx_last_error()->message, "adam"));
    ck_assert_int_eq(fnx_checkpoint_load(in_folder("c"), five, NULL), 0); /* without the optimizer: to evaluate */
    fnx_safetensors *f = fnx_safetensors_open(in_folder("c"));
    ck_assert_str_eq(fnx_safetensors_metadata(f, "model"), "five");
    fnx_safetensors_close(f);
    const fnx_safetensor foreign = {"x", FNX_U8, 1, {0}, "", 0};
    ck_assert_int_eq(fnx_safetensors_save(in_folder("f"), &foreign, 1, NULL), 0);
    ck_assert_int_eq(fnx_checkpoint_load(in_folder("f"), five, NULL), FNX_E_FORMAT);
    fnx_optimizer_destroy(adam), fnx_optimizer_destroy(sgd);
    fnx_module_destroy(five), fnx_module_destroy(four), fnx_module_destroy(less);
    fnx_device_close(dev);
}
END_TEST

int main(void) {
    TCase *t = test_case("checkpoint");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_was_written_is_read);
    tcase_add_loop_test(t, wrong_files_are_refused_with_the_reason, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, lengths_that_lie_are_refused);
    tcase_add_test(t, a_disk_that_is_full_leaves_the_old_file);
    test_each_device(t, a_resumed_run_goes_on_to_the_same_numbers);
    test_each_device(t, another_architecture_is_refused_and_changes_nothing);
    return test_run("checkpoint", t);
}
