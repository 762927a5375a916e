/* fallback=host: an op that its device does not run is run on the host, by the cpu backend or else by ref: the device
 * is waited for, operands are copied to the host, results back. */
#ifndef DISPATCH_FALLBACK_H
#define DISPATCH_FALLBACK_H

#include "dispatch/hardware.h"

/* FNX_E_DECLINED: the host does not run this group either, or there is no host backend but the device itself. */
fnx_status fnx_fallback_prepare(fnx_hardware *h, const fnx_group *one, const fnx_launch *shapes,
                                const fnx_prepared **out, fnx_decline *why);
/* Runs the step and waits for it. `launch` is held. */
fnx_status fnx_fallback_run(fnx_hardware *h, const fnx_step *step);

#endif
