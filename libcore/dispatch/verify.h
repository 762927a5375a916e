/* verify=on: each graph also runs op by op, and the results are compared. */
#ifndef DISPATCH_VERIFY_H
#define DISPATCH_VERIFY_H

#include "dispatch/hardware.h"

typedef struct fnx_verification {
    fnx_plan *plan; /* of groups of one node, without donation */
    fnx_storage **outs;
} fnx_verification;

/* Runs r's graph op by op, before its plan runs (which may overwrite inputs). */
fnx_status fnx_verify_begin(fnx_hardware *h, fnx_recorder *r, fnx_verification *v);
/* Compares with what plan p made. FNX_E_INTERNAL names the first result that differs by more than rounding. */
fnx_status fnx_verify_end(fnx_hardware *h, fnx_recorder *r, const fnx_plan *p, const fnx_verification *v);
void fnx_verify_free(fnx_verification *v);

#endif
