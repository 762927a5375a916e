/* The one thing that tensors need of the table of ops above them: what an op's gradient reads. */
#ifndef TENSOR_SAVES_H
#define TENSOR_SAVES_H

enum { FNX_SAVES_RESULT_BIT = 128 };
unsigned fnx_op_saves(unsigned op); /* bit k: operand k; FNX_SAVES_RESULT_BIT: the result */

#endif
