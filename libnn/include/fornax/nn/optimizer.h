/* Optimizers: they take the gradients that fnx_backward left at a module's parameters and give these new values.
 *
 * Learning rate and bias corrections are arguments of the plan: changing them builds no new one. Never NULL; a failed
 * optimizer carries its cause (a failed module's, or FNX_E_INVALID: an option out of its range). It has the parameters
 * that the module has when it is made, and does not own the module, which must outlive it. Threads: one at a time. */
#ifndef FORNAX_NN_OPTIMIZER_H
#define FORNAX_NN_OPTIMIZER_H

#include <fornax/nn/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fnx_optimizer fnx_optimizer;

/* g' = g + weight_decay p; b = momentum b + g' (b = g' at the first step); p -= lr (nesterov ? g' + momentum b : b).
 * PyTorch's form of momentum (Polyak 1964) and Nesterov's (Sutskever et al. 2013). */
typedef struct fnx_sgd_options {
    double lr;       /* 0: 0.01 */
    double momentum; /* in [0, 1); 0: no buffer is kept; nesterov needs one */
    double weight_decay;
    bool nesterov;
    bool keep_gradients; /* they stay readable after the step; one more copy of the parameters */
} fnx_sgd_options;
FNX_API fnx_optimizer *fnx_sgd_with(fnx_module *net, const fnx_sgd_options *options_or_null);
#define fnx_sgd(net, ...) fnx_sgd_with(net, &(fnx_sgd_options){__VA_ARGS__})

/* Kingma and Ba 2015: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= lr m' / (sqrt(v') + eps),
 * m' = m / (1 - b1^t), v' = v / (1 - b2^t). adam adds weight_decay p to g; adamw multiplies p by 1 - lr weight_decay
 * first (Loshchilov and Hutter 2019). */
typedef struct fnx_adam_options {
    double lr;                /* 0: 1e-3 */
    double beta1, beta2, eps; /* 0: 0.9, 0.999, 1e-8 */
    double weight_decay;      /* adamw, 0: 0.01; negative: none */
    bool keep_gradients;      /* as in fnx_sgd_options */
} fnx_adam_options;
FNX_API fnx_optimizer *fnx_adam_with(fnx_module *net, const fnx_adam_options *options_or_null);
FNX_API fnx_optimizer *fnx_adamw_with(fnx_module *net, const fnx_adam_options *options_or_null);
#define fnx_adam(net, ...) fnx_adam_with(net, &(fnx_adam_options){__VA_ARGS__})
#define fnx_adamw(net, ...) fnx_adamw_with(net, &(fnx_adam_options){__VA_ARGS__})

FNX_API void fnx_optimizer_destroy(fnx_optimizer *o); /* NULL-safe */
FNX_API FNX_CHECKED fnx_status fnx_optimizer_status(const fnx_optimizer *o);

/* One step over all parameters that have a gradient, in one graph, which is started but not waited for. If it fails (no
 * memory) parameters and state have their old values. FNX_E_GRADIENT: no parameter has a gradient. */
FNX_API FNX_CHECKED fnx_status fnx_optimizer_step(fnx_optimizer *o);

/* From the next step on; not checked. */
FNX_API void fnx_optimizer_set_lr(fnx_optimizer *o, double lr);
FNX_API double fnx_optimizer_lr(const fnx_optimizer *o);
FNX_API const char *fnx_optimizer_name(const fnx_optimizer *o); /* "sgd", "adam", "adamw" */
/* Steps done: t of the formulas. Set when training is resumed, together with the state. */
FNX_API int64_t fnx_optimizer_steps(const fnx_optimizer *o);
FNX_API void fnx_optimizer_set_steps(fnx_optimizer *o, int64_t steps);

/* Its state, for checkpoints: path "momentum.0.weight", "exp_avg.0.weight", "exp_avg_sq.0.weight". The array lives as
 * long as the optimizer. */
FNX_API const fnx_parameter *fnx_optimizer_state(fnx_optimizer *o, int *out_n);

#ifdef __cplusplus
}
#endif
#endif
