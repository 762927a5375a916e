/* What tensors, scopes and variables need of the recorder, which is made above them (graph, dispatch). */
#ifndef TENSOR_RECORDER_H
#define TENSOR_RECORDER_H

#include "tensor/thread.h"

typedef enum fnx_why { FNX_WHY_READ, FNX_WHY_STEP, FNX_WHY_LIMIT } fnx_why;

typedef struct fnx_hardware fnx_hardware;

/* This thread's recorder of the hardware, made if need be. NULL: no host memory (the thread's last error says so). */
fnx_recorder *fnx_recorder_of(fnx_thread *me, fnx_hardware *hardware);

fnx_recorder *fnx_recorder_next(const fnx_recorder *r); /* of the same thread */

void fnx_recorder_lock(fnx_recorder *r);
void fnx_recorder_unlock(fnx_recorder *r);

/* Runs what is pending. The lock is held. On failure every pending tensor becomes a failed one and variables have their
 * old values again. */
fnx_status fnx_recorder_flush_locked(fnx_recorder *r, fnx_why why);
fnx_status fnx_recorder_flush(fnx_recorder *r, fnx_why why);

/* Stored, or failed with the cause returned (not raised). Takes the lock of t's recorder; the caller holds none. */
fnx_status fnx_make_stored(fnx_tensor *t);

/* At the end of a thread: what it recorded runs, the recorder waits for the next thread. */
void fnx_recorder_retire(fnx_recorder *r);

/* A tensor for a value in `storage` (taken over) in the innermost scope; NULL only if the host has no memory. */
fnx_tensor *fnx_tensor_stored(fnx_device *device, int dtype, int rank, const int64_t *sizes, fnx_storage *storage);

/* The variable gets another value before the flush: the recorder remembers the old one, in case the flush fails. */
void fnx_recorder_variable_set(fnx_recorder *r, fnx_variable *v);
void fnx_recorder_variable_forget(fnx_variable *v);

#endif
