/* All use of oneDNN in one place (its 2.x C interface; 3.x has other functions for the same): sgemm, and convolutions
 * of f32 with the reorders around them. To be called from the executor thread only, because it opens OpenMP regions. */
#ifndef PLUGINS_CPU_KERNELS_DNNL_H
#define PLUGINS_CPU_KERNELS_DNNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y [m, n] = a [m, k] b [k, n], row-major; 'T': the operand is stored transposed. ld: elements between rows (or
 * columns) of what is stored. */
void cpu_dnnl_sgemm(char a_form, char b_form, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                    const void *b, int64_t ldb, void *y, int64_t ldy);

enum { CPU_CONV = 0, CPU_CONV_GRAD_X = 1, CPU_CONV_GRAD_W = 2 };

enum {                      /* how the library sees an array of images */
       CPU_FORM_ROWS = 0,   /* [n, c, s..] */
       CPU_FORM_LAST = 1,   /* [n, s.., c] */
       CPU_FORM_BLOCKED = 2 /* [n, c / 16, s.., 16] */
};

/* A convolution with everything that its code depends on. Compared as bytes: clear all of it first. */
typedef struct cpu_conv_shape {
    int32_t direction; /* CPU_CONV... */
    int32_t winograd;  /* else direct */
    int32_t spatial;   /* 2 or 3 */
    int32_t groups;
    int32_t threads;
    int32_t x_form, y_form;
    int32_t x_in_place, y_in_place; /* the array has that form as it is; else it is reordered to or from it */
    int32_t reserved;
    int64_t x_size[5], y_size[5], w_size[5];       /* [n, c, s..], [n, o, t..], [o, c / groups, k..] */
    int64_t x_stride[5], y_stride[5], w_stride[5]; /* elements, not negative, without overlap */
    int64_t stride[3], dilation[3], low[3], high[3];
} cpu_conv_shape;

typedef struct cpu_dnnl cpu_dnnl;           /* the library's objects of one device */
typedef struct cpu_dnnl_conv cpu_dnnl_conv; /* generated code for one shape */

cpu_dnnl *cpu_dnnl_create(void); /* NULL: no memory */
void cpu_dnnl_destroy(cpu_dnnl *d);

/* NULL: the library has no fast code for this shape, or no memory. */
cpu_dnnl_conv *cpu_dnnl_conv_create(cpu_dnnl *d, const cpu_conv_shape *shape);
void cpu_dnnl_conv_destroy(cpu_dnnl_conv *c);

/* Bytes of an array in a form. */
uint64_t cpu_form_bytes(int32_t form, uint32_t rank, const int64_t *size);

/* Scratch that a run needs for weights and for the library itself, aligned to 64. */
uint64_t cpu_dnnl_conv_scratch(const cpu_dnnl_conv *c);

/* x_form, y_form: memory of cpu_form_bytes, where the shape says that the array is not in place. False: failed. */
bool cpu_dnnl_conv_run(cpu_dnnl_conv *c, void *x, void *w, void *y, void *x_form, void *y_form, void *scratch);

/* Name of the chosen implementation, for logs. */
const char *cpu_dnnl_conv_name(const cpu_dnnl_conv *c);

#endif
