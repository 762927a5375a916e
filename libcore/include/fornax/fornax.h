/* libfornax: tensors on devices that are plugins. Everything a program needs but neural networks (<fornax/nn.h>). */
#ifndef FORNAX_H
#define FORNAX_H

#include <fornax/autodiff.h>
#include <fornax/ops.h>
#include <fornax/plugins.h>

#endif
