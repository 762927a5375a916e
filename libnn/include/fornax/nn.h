/* libfornax-nn: modules, optimizers, data and checkpoints. */
#ifndef FORNAX_NN_H
#define FORNAX_NN_H

#include <fornax/fornax.h>
#include <fornax/nn/checkpoint.h>
#include <fornax/nn/data.h>
#include <fornax/nn/module.h>
#include <fornax/nn/optimizer.h>

#endif
