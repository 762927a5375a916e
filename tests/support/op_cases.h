/* The cases of tests/fixtures/ops.json: an op, its operands and arguments, and what PyTorch, mpmath or Python say comes
 * out. Read once, before a device is opened, so that each forked test has them. */
#ifndef TESTS_SUPPORT_OP_CASES_H
#define TESTS_SUPPORT_OP_CASES_H

#include <fornax/fornax.h>
#include <jansson.h>

enum { CASE_OPERANDS = 6, CASE_RESULTS = 3 };

typedef struct host_tensor {
    int dtype; /* 0: there is none */
    int rank;
    int64_t sizes[FNX_MAX_RANK], count;
    size_t bytes;
    void *data;
} host_tensor;

typedef struct op_case {
    const char *op, *name;
    int n_in, n_out;
    host_tensor in[CASE_OPERANDS], out[CASE_RESULTS];
    host_tensor scale[CASE_RESULTS];                         /* none: results are measured in their own last place */
    double terms;                                            /* summed for one element; 0: no sum */
    host_tensor seed[CASE_RESULTS], gradient[CASE_OPERANDS]; /* none: not differentiable */
    bool smooth;
    json_t *args;
} op_case;

/* All cases. Ends the program with a message if the file cannot be read. */
const op_case *op_cases(int *out_n);

/* A tensor of the host's data. */
fnx_tensor *op_case_upload(fnx_device *device, const host_tensor *t);

/* Calls the public function of the case. in: n_in operands, NULL where the case has none. out: n_out results. */
void op_case_call(const op_case *c, fnx_device *device, fnx_tensor *const *in, fnx_tensor **out);

/* Whether a public function of this name can be called. */
bool op_case_knows(const char *op);

double host_element(const host_tensor *t, int64_t i);

/* The unit in the last place of v in a float dtype. */
double last_place(int dtype, double v);

/* .ulp of ops.def of the op behind a public function; 0 if there is none. */
double op_ulps(const char *function);

/* How much element i of result k may differ from the right value, the one rule of all tests:
 *
 *   integers, bool, NaN, infinities     nothing
 *   no scale                            .ulp of ops.def, in units of the right value's last place; where that is 0,
 *                                       +0 is not -0 either
 *   scale and terms                     4 sqrt(terms) eps scale: .bound = SUM of ops.def
 *   scale                               .ulp of ops.def, or 16 for functions without a row there, times eps scale */
double op_case_limit(const op_case *c, int k, int64_t i);

/* Whether got is as right as the limit says; it is a host array of result k. `at`: the first wrong element. */
bool op_case_right(const op_case *c, int k, const void *got, int64_t *at);

/* All mistakes of a run over many cases; the text has the first ones, a line each. */
typedef struct case_report {
    int mistakes, checked;
    char text[8192];
} case_report;

void case_mistake(case_report *r, const op_case *c, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
