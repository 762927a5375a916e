/* Loaders: a thread gathers the samples of the batches to come into host buffers; the training thread uploads them as
 * bytes and lets the device convert. The thread never touches fornax. */
#include "dataset.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4 };

typedef struct slot {
    uint8_t *items;
    int64_t *labels;
    int64_t count, epoch, index;
    bool full;
} slot;

struct fnx_loader {
    fnx_device *device;
    const fnx_dataset *data;
    fnx_loader_options o;
    int64_t batches;
    cause cause;
    bool is_static;

    /* of the thread that calls */
    fnx_tensor *x, *y;    /* the batch that was given out */
    int64_t epoch, index; /* of the next batch */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool running, stop, ended; /* ended: the last call returned the end of an epoch */
    slot slots[SLOTS];
    int first;                                  /* slot that the caller takes next */
    int64_t want_epoch, want_index, generation; /* where the thread gathers; a seek starts another generation */
    uint32_t *order;
    int64_t order_epoch;
};

/* ---- the order of an epoch --------------------------------------------------------------------------------------- */

typedef struct pcg {
    uint64_t state, stream;
} pcg;

static uint32_t pcg_next(pcg *g) {
    uint64_t s = g->state;
    g->state = s * UINT64_C(6364136223846793005) + g->stream;
    uint32_t x = (uint32_t)(((s >> 18) ^ s) >> 27), r = (uint32_t)(s >> 59);
    return x >> r | x << (-r & 31);
}

static pcg pcg_start(uint64_t seed, uint64_t stream) {
    pcg g = {0, stream << 1 | 1};
    pcg_next(&g);
    g.state += seed;
    pcg_next(&g);
    return g;
}

/* Uniform in [0, bound), without bias: numbers above the largest multiple are drawn again. */
static uint32_t pcg_below(pcg *g, uint32_t bound) {
    uint32_t floor = -bound % bound, r;
    do r = pcg_next(g);
    while (r < floor);
    return r % bound;
}

static void shuffle(fnx_loader *l, int64_t epoch) {
    int64_t n = l->data->count;
    if (l->order_epoch == epoch) return;
    for (int64_t i = 0; i < n; i++) l->order[i] = (uint32_t)i;
    pcg g = pcg_start(l->o.seed, (uint64_t)epoch);
    for (int64_t i = n - 1; i > 0 && l->o.shuffle; i--) {
        uint32_t k = pcg_below(&g, (uint32_t)(i + 1)), was = l->order[i];
        l->order[i] = l->order[k], l->order[k] = was;
    }
    l->order_epoch = epoch;
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

static void gather(fnx_loader *l, slot *s, int64_t epoch, int64_t index) {
    const fnx_dataset *d = l->data;
    int64_t from = index * l->o.batch, n = d->count - from < l->o.batch ? d->count - from : l->o.batch;
    shuffle(l, epoch);
    for (int64_t i = 0; i < n; i++) {
        uint32_t k = l->order[from + i];
        memcpy(s->items + i * d->item_bytes, d->items + (int64_t)k * d->item_bytes, (size_t)d->item_bytes);
        s->labels[i] = d->labels[k];
    }
    s->count = n, s->epoch = epoch, s->index = index;
}

static void *work(void *arg) {
    fnx_loader *l = arg;
    int next = 0;
    int64_t generation = 0;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->stop && l->slots[next].full && generation == l->generation) pthread_cond_wait(&l->changed, &l->lock);
        if (l->stop) break;
        if (generation != l->generation) { /* after a seek all slots are empty again */
            generation = l->generation, next = l->first;
            continue;
        }
        int64_t epoch = l->want_epoch, index = l->want_index;
        slot *s = &l->slots[next];
        pthread_mutex_unlock(&l->lock);
        gather(l, s, epoch, index);
        pthread_mutex_lock(&l->lock);
        if (generation != l->generation) continue;
        s->full = true, next = (next + 1) % SLOTS;
        if (++l->want_index == l->batches) l->want_index = 0, l->want_epoch++;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static fnx_status start(fnx_loader *l) {
    const fnx_dataset *d = l->data;
    int64_t bytes;
    TRY(fnx_device_status(l->device));
    TRY(fnx_dataset_status(d));
    if (l->o.batch < 1 || __builtin_mul_overflow(l->o.batch, d->item_bytes ? d->item_bytes : 1, &bytes) ||
        bytes > INT64_MAX / 8)
        return fnx_error_set(FNX_E_INVALID, "loader: a batch of %lld samples", (long long)l->o.batch);
    if (d->count > UINT32_MAX / 2) return fnx_error_set(FNX_E_INVALID, "loader: more than 2^31 samples");
    if (l->o.batch > d->count && d->count) l->o.batch = l->o.drop_last ? l->o.batch : d->count;
    l->batches = l->o.drop_last ? d->count / l->o.batch : (d->count + l->o.batch - 1) / l->o.batch;
    if (l->batches == 0)
        return fnx_error_set(FNX_E_INVALID, "loader: %lld samples make no batch of %lld", (long long)d->count,
                             (long long)l->o.batch);
    l->order = malloc(sizeof *l->order * (size_t)d->count);
    bool ok = l->order != NULL;
    for (int i = 0; i < SLOTS; i++) {
        l->slots[i].items = malloc((size_t)(l->o.batch * d->item_bytes) + 1),
        l->slots[i].labels = malloc(sizeof(int64_t) * (size_t)l->o.batch);
        ok = ok && l->slots[i].items && l->slots[i].labels;
    }
    if (!ok || pthread_create(&l->thread, NULL, work, l))
        return fnx_error_set(FNX_E_NO_MEMORY, "loader: no memory or no thread for it");
    l->running = true;
    return FNX_OK;
}

fnx_loader *fnx_loader_with(fnx_device *device, const fnx_dataset *data, const fnx_loader_options *options_or_null) {
    static fnx_loader none = {.is_static = true, .cause = {FNX_E_NO_MEMORY, "no host memory for a loader"}};
    fnx_loader *l = calloc(1, sizeof *l);
    if (!l) return &none;
    if (options_or_null) l->o = *options_or_null;
    if (l->o.batch == 0) l->o.batch = 64;
    l->device = device, l->data = data, l->order_epoch = -1;
    pthread_mutex_init(&l->lock, NULL), pthread_cond_init(&l->changed, NULL);
    cause_take(&l->cause, start(l));
    return l;
}

static void give_up_batch(fnx_loader *l) {
    fnx_release(l->x), fnx_release(l->y);
    l->x = l->y = NULL;
}

void fnx_loader_destroy(fnx_loader *l) {
    if (!l || l->is_static) return;
    if (l->running) {
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->lock);
        pthread_join(l->thread, NULL);
    }
    give_up_batch(l);
    for (int i = 0; i < SLOTS; i++) free(l->slots[i].items), free(l->slots[i].labels);
    pthread_mutex_destroy(&l->lock), pthread_cond_destroy(&l->changed);
    free(l->order);
    free(l);
}

fnx_status fnx_loader_status(const fnx_loader *l) {
    return l ? cause_raise(&l->cause) : fnx_error_set(FNX_E_INVALID, "the loader is NULL");
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Bytes go up; the device makes floats in [0, 1] of them. */
static fnx_status upload(fnx_loader *l, const slot *s, fnx_batch *out) {
    int64_t sizes[FNX_MAX_RANK] = {s->count};
    for (int k = 0; k < l->data->rank; k++) sizes[k + 1] = l->data->item[k];
    FNX_SCOPE_QUIET;
    fnx_tensor *bytes = fnx_tensor_from(l->device, FNX_U8, l->data->rank + 1, sizes, s->items, 0);
    out->x = l->x = fnx_retain(fnx_mul_scalar(fnx_cast(bytes, FNX_F32), 1.0 / 255));
    out->y = l->y = fnx_retain(fnx_tensor_from(l->device, FNX_I64, FNX_SHAPE(s->count), s->labels, 0));
    out->count = s->count, out->epoch = s->epoch, out->index = s->index;
    TRY(fnx_tensor_status(out->x));
    return fnx_tensor_status(out->y);
}

bool fnx_loader_next(fnx_loader *l, fnx_batch *out) {
    memset(out, 0, sizeof *out);
    if (fnx_loader_status(l)) return false;
    give_up_batch(l);
    if (l->index == 0 && l->epoch > 0 && !l->ended) { /* between two epochs, once */
        l->ended = true;
        return false;
    }
    l->ended = false;
    pthread_mutex_lock(&l->lock);
    slot *s = &l->slots[l->first];
    while (!s->full) pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    fnx_status code = upload(l, s, out);
    pthread_mutex_lock(&l->lock);
    s->full = false, l->first = (l->first + 1) % SLOTS;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (++l->index == l->batches) l->index = 0, l->epoch++;
    return cause_take(&l->cause, code) == FNX_OK;
}

int64_t fnx_loader_batches(const fnx_loader *l) { return l ? l->batches : 0; }

void fnx_loader_position(const fnx_loader *l, int64_t *out_epoch, int64_t *out_index) {
    *out_epoch = l ? l->epoch : 0, *out_index = l ? l->index : 0;
}

void fnx_loader_seek(fnx_loader *l, int64_t epoch, int64_t index) {
    if (fnx_loader_status(l) || epoch < 0 || index < 0 || index >= l->batches) return;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < SLOTS; i++) l->slots[i].full = false;
    l->want_epoch = l->epoch = epoch, l->want_index = l->index = index;
    l->generation++, l->ended = true; /* no end of an epoch before the batch that was asked for */
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
