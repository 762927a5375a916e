/* Trains a small convolutional network on Fashion-MNIST and tests it: the whole of what a program of one's own needs.
 *
 *     mnist_cnn [DEVICE [EPOCHS]]        the device as in fornax(7), default $FORNAX_DEVICE, else cpu
 *
 * Edit a layer and `make -C build examples/mnist_cnn`. */
#include <fornax/fornax.h>
#include <fornax/nn.h>
#include <stdio.h>
#include <stdlib.h>

static fnx_module *network(fnx_device *dev) {
    return fnx_sequential(dev, fnx_layer_conv2d(1, 16, 3, .padding = {1, 1}), fnx_layer_relu(), fnx_layer_max_pool2d(2),
                          fnx_layer_conv2d(16, 32, 3, .padding = {1, 1}), fnx_layer_relu(), fnx_layer_max_pool2d(2),
                          fnx_layer_flatten(), fnx_layer_linear(32 * 7 * 7, 128), fnx_layer_relu(),
                          fnx_layer_linear(128, 10));
}

/* One pass over the training data; the mean loss. */
static fnx_status train(fnx_module *net, fnx_optimizer *opt, fnx_loader *loader, double *out_loss) {
    double sum = 0, steps = 0;
    fnx_module_train(net, true);
    for (;;) {
        FNX_SCOPE;
        fnx_batch batch;
        double loss_now;
        if (!fnx_loader_next(loader, &batch)) break;
        fnx_tensor *loss = fnx_cross_entropy(fnx_module_forward(net, batch.x), batch.y);
        if (fnx_backward(loss) || fnx_optimizer_step(opt)) return fnx_perror("training");
        if (batch.index % 50) continue; /* reading a value waits for it */
        if (fnx_tensor_item(loss, &loss_now)) return fnx_perror("training");
        sum += loss_now, steps++;
    }
    *out_loss = steps > 0 ? sum / steps : 0;
    return fnx_loader_status(loader) ? fnx_perror("training data") : 0;
}

/* The share of test images whose label is the largest output. */
static fnx_status test(fnx_module *net, fnx_loader *loader, double *out_accuracy) {
    double right = 0, all = 0;
    fnx_module_train(net, false);
    for (;;) {
        FNX_NO_GRAD;
        fnx_batch batch;
        double hits;
        if (!fnx_loader_next(loader, &batch)) break;
        fnx_tensor *guess = fnx_argmax(fnx_module_forward(net, batch.x), 1, false);
        fnx_tensor *hit = fnx_cast(fnx_equal(guess, batch.y), FNX_F32);
        if (fnx_tensor_item(fnx_sum(hit, FNX_ALL_AXES, false), &hits)) return fnx_perror("testing");
        right += hits, all += (double)batch.count;
    }
    *out_accuracy = all > 0 ? right / all : 0;
    return fnx_loader_status(loader) ? fnx_perror("test data") : 0;
}

int main(int argc, char **argv) {
    int epochs = argc > 2 ? atoi(argv[2]) : 1;
    fnx_device *dev = fnx_device_autodiff(fnx_device_open(argc > 1 ? argv[1] : NULL));
    fnx_module *net = network(dev);
    fnx_optimizer *opt = fnx_adam(net, .lr = 1e-3);
    fnx_dataset *train_data = fnx_dataset_mnist(NULL, true), *test_data = fnx_dataset_mnist(NULL, false);
    fnx_loader *train_loader = fnx_loader_create(dev, train_data, .batch = 64, .shuffle = true, .seed = 1);
    fnx_loader *test_loader = fnx_loader_create(dev, test_data, .batch = 1000);
    fnx_status failed = 0;

    for (int epoch = 0; epoch < epochs && !failed; epoch++) {
        double loss = 0, accuracy = 0;
        failed = train(net, opt, train_loader, &loss);
        if (!failed) failed = test(net, test_loader, &accuracy);
        if (!failed) printf("epoch %d  loss %.3f  test accuracy %.2f %%\n", epoch + 1, loss, 100 * accuracy);
    }

    fnx_loader_destroy(train_loader);
    fnx_loader_destroy(test_loader);
    fnx_dataset_destroy(train_data);
    fnx_dataset_destroy(test_data);
    fnx_optimizer_destroy(opt);
    fnx_module_destroy(net);
    fnx_device_close(dev);
    return failed ? 1 : 0;
}
