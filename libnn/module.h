/* A module's inside. */
#ifndef LIBNN_MODULE_H
#define LIBNN_MODULE_H

#include "cause.h"

#include <fornax/nn/module.h>

typedef struct module_class {     /* of our layers */
    void (*build)(fnx_module *m); /* makes parameters on m->device; may be NULL */
    fnx_tensor *(*forward)(fnx_module *m, fnx_tensor *x);
} module_class;

typedef struct module_slot {
    char *name;
    fnx_variable *variable;
    bool buffer;
} module_slot;

struct fnx_module {
    char *type, *name;
    const module_class *class; /* or forward, user, destroy */
    fnx_module_function forward;
    void *user;
    void (*destroy)(void *user);
    fnx_device *device; /* NULL until it is built */
    fnx_module *parent, **children;
    fnx_module *orphans, *orphan_next; /* modules that could not be added, still owned */
    module_slot *slots;
    int n_children, n_slots;
    fnx_parameter *list; /* of the tree below, while `listed` */
    int n_list;
    bool listed, training, is_static;
    cause cause;
    union { /* what layers are made with */
        struct {
            int64_t in, out;
            bool bias;
        } linear;
        struct {
            int64_t in, out;
            int kernel;
            fnx_layer_conv2d_options options;
        } conv;
        struct {
            int size;
            bool max;
        } pool;
        struct {
            double p;
        } dropout;
        struct {
            int64_t features;
        } norm;
        struct {
            fnx_tensor *(*function)(fnx_tensor *x);
        } activation;
    };
};

fnx_module *module_new(const char *type, const module_class *class);
fnx_variable *module_variable(const fnx_module *m, const char *name); /* or NULL */

#endif
