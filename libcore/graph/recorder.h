/* The pending graph of one thread on one device.
 *
 * A record is appended as 16 bytes of code, its structural words and its arguments; together with what is demanded
 * these byte streams are the key of the plan. No address and no tensor id is in them: operands are numbers of records,
 * or of inputs in the order of their first use. The number sits in the tensor and is valid while `epoch` matches. */
#ifndef GRAPH_RECORDER_H
#define GRAPH_RECORDER_H

#include "ops/record.h"
#include "tensor/device.h"

#include <pthread.h>

enum { FNX_ID_SCALAR = INT32_MIN };

typedef struct fnx_code {
    uint16_t op;
    uint8_t dtype;
    uint8_t bits;  /* operands that are scalars (low three), class of the scalar (high four) */
    int32_t id[3]; /* operands: >= 0 record, < 0 ~input, FNX_ID_SCALAR. More than three stand in the words */
} fnx_code;

_Static_assert(sizeof(fnx_code) == 16, "the code of a record is 16 bytes");

enum {                    /* fnx_recorder.mark of a record, by the demand sweep */
       FNX_M_NEEDED = 1,  /* something demanded reads it */
       FNX_M_SAVED = 2,   /* a live tape reads it */
       FNX_M_REACHED = 4, /* a taped consumer exists */
       FNX_M_TAPED = 8,   /* its own tape is live */
       FNX_M_NAMED = 16   /* a live name depends on it that is not stored */
};

typedef struct fnx_plan fnx_plan;

typedef struct fnx_plan_cache {
    fnx_plan **slot; /* open addressing by key[0] */
    int64_t capacity, used;
    uint64_t clock;
} fnx_plan_cache;

struct fnx_recorder {
    pthread_mutex_t lock;
    fnx_hardware *hardware;
    uint32_t epoch; /* of the graph being recorded; starts at 1 */
    bool recomputing, lazy_off, retired;
    uint64_t settings; /* part of the key */
    int64_t limit, pending_bytes;

    int64_t n, capacity;
    fnx_tensor **pending; /* the graph holds a reference to each */
    fnx_code *code;
    uint8_t *mark, *demand;

    int64_t n_words, words_capacity;
    uint64_t *words; /* structural: settings, dtype and sizes of inputs, attributes, sizes */
    int64_t n_args, args_capacity;
    uint64_t *args; /* values: arguments of the plan */
    int64_t n_inputs, inputs_capacity;
    fnx_tensor **inputs;
    uint8_t *donatable;

    fnx_variable **sets; /* variables set since the last flush */
    int64_t n_sets, sets_capacity;

    fnx_plan_cache cache;
    fnx_storage *arena;
    fnx_storage **out_storage; /* scratch of the flush */
    int64_t out_capacity;

    fnx_graph_stats stats;
    fnx_recorder *next_of_thread, *next_of_hardware;
};

/* An empty recorder; NULL: no host memory. */
fnx_recorder *fnx_recorder_create(fnx_hardware *hardware);
void fnx_recorder_destroy(fnx_recorder *r); /* with nothing pending */

/* Classes of a scalar: FNX_CLASS_* of <fornax-plugin/group.h>. */
unsigned fnx_class_of(double v);

/* Adds y, whose operands are usable and which is inferred, to the graph, which takes a reference. */
fnx_status fnx_recorder_append(fnx_recorder *r, fnx_tensor *y);

/* Drops the graph after a flush, forgetting ids. */
void fnx_recorder_clear(fnx_recorder *r);

/* Which results the flush stores, and which inputs it may overwrite. every_handle: as after recomputing or by limit. */
void fnx_demand(fnx_recorder *r, bool every_handle);

#endif
