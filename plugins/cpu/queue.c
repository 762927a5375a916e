/* The executor: a ring of commands, filled by any thread, emptied by one.
 *
 * A command is copied into the ring with all its arguments, so a launch costs a copy of some hundred bytes and no
 * system call while the executor is awake. Idle, it spins for some microseconds, then sleeps on a condition. */
#include "cpu.h"

#include <stdlib.h>

enum { RING_BYTES = 1 << 20, SPINS = 2000 };

typedef enum kind { RUN, COPY, FILL, RELEASE, STOP, WRAP } kind;

typedef struct command { /* followed by its arrays; a multiple of 64 bytes */
    uint32_t bytes, kind;
    union {
        struct {
            cpu_handle *handle;
            fnx_launch launch;
        } run;
        struct {
            void *to;
            const void *from;
            uint64_t bytes, pattern;
            uint32_t pattern_bytes;
        } copy;
    };
} command;

struct cpu_queue {
    cpu_device *device;
    pthread_t thread;
    pthread_mutex_t lock; /* of producers, and for sleeping */
    pthread_cond_t work, room;
    uint64_t head, tail; /* bytes ever written and done (atomic); both grow */
    bool sleeping, waiting;
    fnx_error_word error;
    char *ring;
};

/* ---- producers --------------------------------------------------------------------------------------------------- */

static uint64_t done(cpu_queue *q) { return __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE); }

/* Room for a command; `lock` is held. */
static command *reserve(cpu_queue *q, uint32_t bytes) {
    bytes = (bytes + 63) & ~63u;
    uint64_t at = q->head % RING_BYTES, skip = at + bytes > RING_BYTES ? RING_BYTES - at : 0;
    while (q->head + skip + bytes - done(q) > RING_BYTES) {
        __atomic_store_n(&q->waiting, true, __ATOMIC_RELAXED);
        pthread_cond_wait(&q->room, &q->lock);
    }
    if (skip) {
        command *wrap = (command *)(void *)(q->ring + at);
        wrap->bytes = (uint32_t)skip, wrap->kind = WRAP;
        __atomic_store_n(&q->head, q->head + skip, __ATOMIC_RELEASE);
    }
    command *c = (command *)(void *)(q->ring + q->head % RING_BYTES);
    c->bytes = bytes;
    return c;
}

static void publish(cpu_queue *q, const command *c) {
    __atomic_store_n(&q->head, q->head + c->bytes, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&q->sleeping, __ATOMIC_SEQ_CST)) pthread_cond_signal(&q->work);
}

static void *put(char **at, const void *from, size_t bytes) {
    void *to = *at;
    if (bytes) memcpy(to, from, bytes);
    *at += (bytes + 15) & ~(size_t)15;
    return to;
}

int32_t cpu_queue_launch(cpu_queue *q, cpu_handle *h, const fnx_launch *launches, uint32_t n, uint32_t launch_bytes) {
    uint32_t arrays = (uint32_t)(((h->n_sizes + h->n_strides) * sizeof(int64_t) + 31) +
                                 h->n_bindings * sizeof(fnx_binding) + h->n_scalars * sizeof(fnx_scalar) + 64);
    if (sizeof(command) + arrays > RING_BYTES / 4)
        return cpu_host->error(FNX_E_INVALID, "cpu: a launch with too many arguments");
    pthread_mutex_lock(&q->lock);
    for (uint32_t i = 0; i < n; i++) {
        const fnx_launch *l = FNX_AT(fnx_launch, launches, launch_bytes, i);
        command *c = reserve(q, (uint32_t)sizeof(command) + arrays);
        char *at = (char *)c + ((sizeof(command) + 15) & ~(size_t)15);
        c->kind = RUN, c->run.handle = h;
        c->run.launch = *l;
        c->run.launch.sizes = put(&at, l->sizes, h->n_sizes * sizeof(int64_t));
        c->run.launch.strides = put(&at, l->strides, h->n_strides * sizeof(int64_t));
        c->run.launch.bindings = put(&at, l->bindings, h->n_bindings * sizeof(fnx_binding));
        c->run.launch.scalars = put(&at, l->scalars, h->n_scalars * sizeof(fnx_scalar));
        publish(q, c);
    }
    pthread_mutex_unlock(&q->lock);
    return FNX_OK;
}

static int32_t enqueue(cpu_queue *q, kind what, void *to, const void *from, uint64_t bytes, uint64_t pattern,
                       uint32_t pattern_bytes) {
    pthread_mutex_lock(&q->lock);
    command *c = reserve(q, sizeof(command));
    c->kind = what;
    if (what == RELEASE) c->run.handle = to;
    else
        c->copy.to = to, c->copy.from = from, c->copy.bytes = bytes, c->copy.pattern = pattern,
        c->copy.pattern_bytes = pattern_bytes;
    publish(q, c);
    pthread_mutex_unlock(&q->lock);
    return FNX_OK;
}

int32_t cpu_queue_copy(cpu_queue *q, void *to, const void *from, uint64_t bytes) {
    return enqueue(q, COPY, to, from, bytes, 0, 0);
}
int32_t cpu_queue_fill(cpu_queue *q, void *to, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    return enqueue(q, FILL, to, NULL, bytes, pattern, pattern_bytes);
}
void cpu_queue_release(cpu_queue *q, cpu_handle *h) { enqueue(q, RELEASE, h, NULL, 0, 0, 0); }

int32_t cpu_queue_sync(cpu_queue *q, fnx_error_word *out) {
    for (int i = 0; i < SPINS && done(q) != __atomic_load_n(&q->head, __ATOMIC_ACQUIRE); i++) __builtin_ia32_pause();
    pthread_mutex_lock(&q->lock);
    while (done(q) != q->head) {
        __atomic_store_n(&q->waiting, true, __ATOMIC_RELAXED);
        pthread_cond_wait(&q->room, &q->lock);
    }
    *out = q->error;
    memset(&q->error, 0, sizeof q->error);
    pthread_mutex_unlock(&q->lock);
    return out->code;
}

/* ---- the executor ------------------------------------------------------------------------------------------------ */

void cpu_refuse(const cpu_task *t, int32_t code, uint32_t node, int64_t index, int64_t limit) {
    int32_t none = 0;
    if (!__atomic_compare_exchange_n(&t->error->code, &none, code, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    t->error->site = t->site, t->error->node = node, t->error->index = index, t->error->limit = limit;
}

static void fill(const command *c) {
    for (uint64_t i = 0; i < c->copy.bytes; i++)
        ((char *)c->copy.to)[i] =
            ((const char *)&c->copy.pattern)[i % (c->copy.pattern_bytes ? c->copy.pattern_bytes : 1)];
}

static void release(cpu_handle *h) {
    h->engine->release(h->state);
    free(h);
}

static bool execute(cpu_queue *q, command *c) {
    switch ((kind)c->kind) {
    case RUN: {
        cpu_task t = {q->device, &q->error, c->run.launch.site};
        c->run.handle->engine->run(c->run.handle->state, &t, &c->run.launch);
        break;
    }
    case COPY: memcpy(c->copy.to, c->copy.from, c->copy.bytes); break;
    case FILL: fill(c); break;
    case RELEASE: release(c->run.handle); break;
    case STOP: return false;
    case WRAP: break;
    }
    return true;
}

static void wake_waiters(cpu_queue *q) {
    pthread_mutex_lock(&q->lock);
    if (q->waiting) {
        __atomic_store_n(&q->waiting, false, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&q->room);
    }
    pthread_mutex_unlock(&q->lock);
}

/* Waits until there is a command; the number of bytes ever written. */
static uint64_t wait_for_work(cpu_queue *q) {
    for (int i = 0; i < SPINS; i++) {
        uint64_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
        if (head != q->tail) return head;
        if (__atomic_load_n(&q->waiting, __ATOMIC_RELAXED)) wake_waiters(q);
        __builtin_ia32_pause();
    }
    pthread_mutex_lock(&q->lock);
    __atomic_store_n(&q->sleeping, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&q->head, __ATOMIC_SEQ_CST) == q->tail) {
        if (q->waiting) __atomic_store_n(&q->waiting, false, __ATOMIC_RELAXED), pthread_cond_broadcast(&q->room);
        pthread_cond_wait(&q->work, &q->lock);
    }
    __atomic_store_n(&q->sleeping, false, __ATOMIC_SEQ_CST);
    uint64_t head = q->head;
    pthread_mutex_unlock(&q->lock);
    return head;
}

static void *executor(void *arg) {
    cpu_queue *q = arg;
    cpu_set_team(q->device->threads);
    for (;;) {
        uint64_t head = wait_for_work(q);
        while (q->tail != head) {
            command *c = (command *)(void *)(q->ring + q->tail % RING_BYTES);
            bool go_on = execute(q, c);
            __atomic_store_n(&q->tail, q->tail + c->bytes, __ATOMIC_RELEASE);
            if (!go_on) return NULL;
        }
        if (__atomic_load_n(&q->waiting, __ATOMIC_RELAXED)) wake_waiters(q);
    }
}

cpu_queue *cpu_queue_create(cpu_device *d) {
    cpu_queue *q = calloc(1, sizeof *q);
    if (!q) return NULL;
    q->device = d;
    pthread_mutex_init(&q->lock, NULL), pthread_cond_init(&q->work, NULL), pthread_cond_init(&q->room, NULL);
    if ((q->ring = aligned_alloc(64, RING_BYTES)) && !pthread_create(&q->thread, NULL, executor, q)) return q;
    free(q->ring), free(q);
    return NULL;
}

void cpu_queue_destroy(cpu_queue *q) {
    if (!q) return;
    enqueue(q, STOP, NULL, NULL, 0, 0, 0);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock), pthread_cond_destroy(&q->work), pthread_cond_destroy(&q->room);
    free(q->ring), free(q);
}
