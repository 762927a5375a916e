/* Everything that runs once per operation: checking operands, inferring the result, appending the record. */
#include "graph/recorder.h"

#include "base/alloc.h"
#include "base/log.h"
#include "tensor/variable.h"

#include <stdlib.h>

/* ---- the recorder ------------------------------------------------------------------------------------------------ */

fnx_recorder *fnx_recorder_create(fnx_hardware *hardware) {
    fnx_recorder *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    pthread_mutex_init(&r->lock, NULL);
    r->hardware = hardware, r->epoch = 1;
    return r;
}

void fnx_recorder_destroy(fnx_recorder *r) {
    if (!r) return;
    pthread_mutex_destroy(&r->lock);
    free(r->pending), free(r->code), free(r->mark), free(r->demand), free(r->words), free(r->args), free(r->inputs);
    free(r->donatable), free(r->sets), free(r->out_storage);
    free(r);
}

void fnx_recorder_lock(fnx_recorder *r) { pthread_mutex_lock(&r->lock); }
void fnx_recorder_unlock(fnx_recorder *r) { pthread_mutex_unlock(&r->lock); }
fnx_recorder *fnx_recorder_next(const fnx_recorder *r) { return r->next_of_thread; }

void fnx_recorder_variable_set(fnx_recorder *r, fnx_variable *v) {
    if (v->recorder == r) return;
    fnx_recorder_variable_forget(v);
    if (r->n_sets == r->sets_capacity &&
        !fnx_grow((void **)&r->sets, &r->sets_capacity, sizeof *r->sets, r->n_sets + 1))
        return; /* no host memory: the flush cannot restore this one */
    v->recorder = r, v->set_index = r->n_sets;
    r->sets[r->n_sets++] = v;
}

void fnx_recorder_variable_forget(fnx_variable *v) {
    fnx_recorder *r = v->recorder;
    if (!r) return;
    r->sets[v->set_index] = NULL;
    v->recorder = NULL;
}

void fnx_recorder_clear(fnx_recorder *r) {
    r->n = r->n_inputs = r->n_words = r->n_args = r->n_sets = 0;
    r->pending_bytes = 0, r->recomputing = false;
    r->epoch++;
}

/* ---- appending --------------------------------------------------------------------------------------------------- */

unsigned fnx_class_of(double v) {
    if (v == 0) return FNX_CLASS_ZERO;
    if (v == 1) return FNX_CLASS_ONE;
    if (v == -1) return FNX_CLASS_MINUS_ONE;
    if (v == 2) return FNX_CLASS_TWO;
    if (v == 0.5) return FNX_CLASS_HALF;
    if (v != v) return FNX_CLASS_NAN;
    return v - v == 0 ? FNX_CLASS_FINITE : v > 0 ? FNX_CLASS_INF : FNX_CLASS_MINUS_INF;
}

static unsigned class_of_scalar(const fnx_tensor *y) {
    uint64_t bits = fnx_scalars(y)[0];
    int dtype = y->dtype; /* of the scalar: that of its neighbour, which for CLASS ops is the result's */
    return fnx_class_of(fnx_dtype_is_float(dtype) ? fnx_double_of_bits(bits) : (double)(int64_t)bits);
}

enum { WORDS_PER_INPUT = 1 + FNX_MAX_RANK };

static bool reserve(fnx_recorder *r, const fnx_tensor *y) {
    int64_t words =
        r->n_words + 2 + (int64_t)y->n_operands * (1 + WORDS_PER_INPUT) + y->attr_bytes / 8 + FNX_MAX_RANK + 1;
    if (r->n == r->capacity) {
        int64_t n = r->capacity * 2 + 256;
        void *p;
        if (!(p = realloc(r->pending, (size_t)n * sizeof *r->pending))) return false;
        r->pending = p;
        if (!(p = realloc(r->code, (size_t)n * sizeof *r->code))) return false;
        r->code = p;
        if (!(p = realloc(r->mark, (size_t)n))) return false;
        r->mark = p;
        if (!(p = realloc(r->demand, (size_t)n))) return false;
        r->demand = p;
        r->capacity = n;
    }
    if (r->n_inputs + y->n_operands > r->inputs_capacity) {
        int64_t n = r->inputs_capacity * 2 + y->n_operands + 64;
        void *p;
        if (!(p = realloc(r->inputs, (size_t)n * sizeof *r->inputs))) return false;
        r->inputs = p;
        if (!(p = realloc(r->donatable, (size_t)n))) return false;
        r->donatable = p;
        r->inputs_capacity = n;
    }
    return fnx_grow((void **)&r->words, &r->words_capacity, sizeof *r->words, words) &&
           fnx_grow((void **)&r->args, &r->args_capacity, sizeof *r->args, r->n_args + y->n_scalars + 2);
}

/* A tensor of another thread cannot carry our number and is looked up in the list. Room is reserved. */
static int32_t input_id(fnx_recorder *r, fnx_tensor *t) {
    if (t->owner != r)
        for (int64_t j = 0; j < r->n_inputs; j++)
            if (r->inputs[j] == t) return (int32_t)~j;
    int32_t id = (int32_t)~r->n_inputs;
    r->inputs[r->n_inputs++] = t;
    fnx_tensor_ref(t);
    if (t->owner == r) t->id = id, t->epoch = r->epoch;
    uint64_t *w = r->words + r->n_words;
    *w++ = (uint64_t)t->dtype | (uint64_t)t->rank << 8 | (uint64_t)t->layout << 16;
    for (int d = 0; d < t->rank; d++) *w++ = (uint64_t)t->size[d];
    r->n_words = w - r->words;
    return id;
}

fnx_status fnx_recorder_append(fnx_recorder *r, fnx_tensor *y) {
    if ((r->n == r->capacity || r->n_words + 64 > r->words_capacity || r->n_args + 16 > r->args_capacity ||
         r->n_inputs + 4 > r->inputs_capacity || y->n_operands > FNX_INLINE_OPERANDS) &&
        !reserve(r, y))
        return FNX_E_NO_MEMORY;
    unsigned flags = fnx_ops[y->op].flags;
    if (r->n == 0) r->words[r->n_words++] = r->settings;
    fnx_code c = {y->op, y->dtype, y->scalar_mask, {0, 0, 0}};
    fnx_tensor *const *in = fnx_operands(y);
    for (int k = 0; k < y->n_operands; k++) {
        fnx_tensor *x = in[k];
        int32_t id = !x ? FNX_ID_SCALAR : x->epoch == r->epoch && x->owner == r ? x->id : input_id(r, x);
        if (k < 3) c.id[k] = id;
        else r->words[r->n_words++] = (uint64_t)(uint32_t)id;
    }
    if (y->n_operands > 3) r->words[r->n_words++] = y->n_operands;
    if (y->attr_bytes) {
        memcpy(r->words + r->n_words, fnx_attr(y), y->attr_bytes);
        r->n_words += y->attr_bytes / 8;
    }
    if (flags & FNX_OPF_SIZES) {
        r->words[r->n_words++] = y->rank;
        for (int d = 0; d < y->rank; d++) r->words[r->n_words++] = (uint64_t)y->size[d];
    }
    if (y->n_scalars) {
        const uint64_t *s = fnx_scalars(y);
        if (flags & FNX_OPF_CLASS) c.bits |= (uint8_t)(class_of_scalar(y) << 4);
        for (int k = 0; k < y->n_scalars; k++) r->args[r->n_args++] = s[k];
    }
    fnx_set_state(y, FNX_PENDING);
    y->owner = r, y->id = (int32_t)r->n, y->epoch = r->epoch;
    r->pending[r->n] = y, r->code[r->n++] = c;
    bool strides = y->op == FNX_OP_reshape || y->op == FNX_OP_permute || y->op == FNX_OP_expand ||
                   y->op == FNX_OP_slice; /* take no memory */
    int64_t bytes = (strides ? 0 : y->count * fnx_dtypes[y->dtype].bytes) + (int64_t)sizeof *y;
    if (__builtin_add_overflow(r->pending_bytes, bytes, &r->pending_bytes)) r->pending_bytes = INT64_MAX;
    return FNX_OK;
}

/* ---- using names that a flush fused away ------------------------------------------------------------------------- */

static void lost(fnx_tensor *t) {
    fnx_storage *none = NULL;
    t->storage = none;
    if (t->variable)
        fnx_tensor_fail(t, FNX_E_LOST,
                        "the value of variable %s was read after an update overwrote it: call fnx_keep() on "
                        "the handle before the update",
                        fnx_variable_name(t->variable));
    else
        fnx_tensor_fail(t, FNX_E_LOST,
                        "a lent value was read after an update overwrote it: call fnx_keep() on the handle "
                        "before the update");
}

/* Records t again, its lost operands first; without recursion, a chain may be long. The lock of r is held. */
static void revive(fnx_recorder *r, fnx_tensor *t) {
    fnx_tensor *fixed[64], **stack = fixed;
    int64_t n = 0, capacity = 64;
    stack[n++] = t;
    while (n > 0) {
        fnx_tensor *y = stack[n - 1], *missing = NULL;
        if (fnx_state(y) == FNX_DONATED) lost(y);
        if (fnx_state(y) != FNX_EVAPORATED) {
            n--;
            continue;
        }
        fnx_tensor *const *in = fnx_operands(y);
        for (int k = 0; k < y->n_operands && !missing; k++)
            if (in[k] && fnx_state(in[k]) > FNX_STORED) missing = in[k];
        if (!missing) {
            fnx_tensor_ref(y);
            if (fnx_recorder_append(r, y)) {
                __atomic_fetch_sub(&y->refs, 1, __ATOMIC_RELAXED);
                fnx_tensor_fail(y, FNX_E_NO_MEMORY, "no host memory to record %s again", fnx_ops[y->op].name);
            } else {
                if (y->op != FNX_OP_fill && y->op != FNX_OP_expand) r->recomputing = true;
                r->stats.recomputed++;
                if (fnx_log_enabled(FNX_TOPIC_GRAPH, FNX_LOG_DEBUG)) {
                    char text[FNX_DESCRIBE_BYTES];
                    fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_DEBUG,
                                  "%s of %s is computed again: its flush did not store it "
                                  "(fnx_keep() it before)",
                                  fnx_ops[y->op].name, fnx_tensor_describe(y, text));
                }
            }
            n--;
        } else if (fnx_state(missing) == FNX_FAILED) {
            fnx_tensor_fail_like(y, missing);
            n--;
        } else if (fnx_state(missing) == FNX_DONATED) {
            fnx_tensor_fail(y, FNX_E_LOST,
                            "the result of %s was not stored by its flush and cannot be computed again, because "
                            "an update overwrote %s: call fnx_keep() on it before the update",
                            fnx_ops[y->op].name,
                            missing->variable ? fnx_variable_name(missing->variable) : "an operand");
            n--;
        } else {
            if (n == capacity) {
                fnx_tensor **more = malloc(sizeof *more * (size_t)capacity * 2);
                if (!more) {
                    fnx_tensor_fail(y, FNX_E_NO_MEMORY, "no host memory to record %s again", fnx_ops[y->op].name);
                    n--;
                    continue;
                }
                memcpy(more, stack, sizeof *more * (size_t)n);
                if (stack != fixed) free(stack);
                stack = more, capacity *= 2;
            }
            stack[n++] = missing;
        }
    }
    if (stack != fixed) free(stack);
}

/* 0 if x can be an operand in r now. No lock is held. */
static bool make_usable(fnx_recorder *r, fnx_tensor *x) {
    int state = fnx_state(x);
    if (state == FNX_FAILED) return false;
    if (x->owner != r) return state == FNX_STORED || fnx_make_stored(x) == FNX_OK;
    fnx_recorder_lock(r);
    revive(r, x);
    fnx_recorder_unlock(r);
    return fnx_state(x) != FNX_FAILED;
}

/* The lock of r is held, t is pending; afterwards it is stored or failed. */
static void flush_for(fnx_recorder *r, fnx_tensor *t) {
    __atomic_fetch_add(&t->strong, 1, __ATOMIC_RELAXED);
    (void)fnx_recorder_flush_locked(r, FNX_WHY_READ);
    __atomic_fetch_sub(&t->strong, 1, __ATOMIC_RELAXED);
}

fnx_status fnx_make_stored(fnx_tensor *t) {
    fnx_recorder *r = t->owner;
    if (r) {
        fnx_recorder_lock(r);
        if (fnx_state(t) == FNX_EVAPORATED || fnx_state(t) == FNX_DONATED) revive(r, t);
        if (fnx_state(t) == FNX_PENDING) flush_for(r, t);
        fnx_recorder_unlock(r);
    }
    return fnx_state(t) == FNX_FAILED ? fnx_error_code(t->error) : FNX_OK;
}

fnx_status fnx_recorder_flush(fnx_recorder *r, fnx_why why) {
    fnx_recorder_lock(r);
    fnx_status code = fnx_recorder_flush_locked(r, why);
    fnx_recorder_unlock(r);
    return code;
}

/* ---- the bridge -------------------------------------------------------------------------------------------------- */

static inline fnx_tensor *begin(fnx_thread *me, int op, int n_operands) {
    fnx_tensor *y = fnx_block_new(me);
    if (!y) return NULL;
    y->refs = 1, y->handles = 1, y->strong = 0;
    y->state = FNX_PENDING, y->flags = 0, y->layout = FNX_ROW_MAJOR;
    y->op = (uint16_t)op, y->n_operands = (uint16_t)n_operands, y->epoch = 0;
    y->scalar_mask = 0, y->n_scalars = 0, y->attr_bytes = 0;
    y->owner = NULL, y->storage = NULL, y->variable = NULL, y->device = NULL;
    y->rank = 0, y->count = 0;
    return y;
}

/* The recorder of y's operands (or device); checks that they are on one piece of hardware. NULL: y failed. */
static fnx_recorder *place(fnx_thread *me, fnx_tensor *y) {
    fnx_tensor *const *in = fnx_operands(y);
    fnx_device *device = y->device;
    for (int k = 0; k < y->n_operands; k++) {
        fnx_tensor *x = in[k];
        if (!x) {
            if (y->scalar_mask >> k & 1) continue;
            fnx_tensor_fail(y, FNX_E_INVALID, "%s: operand %d is NULL", fnx_ops[y->op].name, k);
            return NULL;
        }
        if (fnx_state(x) == FNX_FAILED) {
            fnx_tensor_fail_like(y, x);
            return NULL;
        }
        if (device && device->hardware != x->device->hardware) {
            char a[FNX_DESCRIBE_BYTES], b[FNX_DESCRIBE_BYTES];
            fnx_device_description da = {.struct_size = sizeof da}, db = {.struct_size = sizeof db};
            (void)!fnx_device_describe(device, &da), (void)!fnx_device_describe(x->device, &db);
            fnx_tensor_fail(y, FNX_E_DEVICE,
                            "%s: operands are on two devices: %s on %s, %s on %s; fnx_tensor_to() moves one",
                            fnx_ops[y->op].name, k && in[0] ? fnx_tensor_describe(in[0], a) : "the result", da.spec,
                            fnx_tensor_describe(x, b), db.spec);
            return NULL;
        }
        if (!device || x->device->autodiff) device = x->device;
    }
    if (!device) {
        fnx_tensor_fail(y, FNX_E_INVALID, "%s: no device", fnx_ops[y->op].name);
        return NULL;
    }
    y->device = device;
    if (device->error) {
        fnx_error_raise(device->error);
        fnx_tensor_fail(y, fnx_error_code(device->error), "%s", fnx_last_error()->message);
        return NULL;
    }
    fnx_recorder *r = fnx_recorder_of(me, device->hardware);
    if (!r) fnx_tensor_fail(y, FNX_E_NO_MEMORY, "no host memory for a recorder");
    return r;
}

/* y has its op, operands, attributes, scalars and, where given, sizes. Ends with y owned by the innermost scope. */
static fnx_tensor *record(fnx_thread *me, fnx_tensor *y) {
    fnx_tensor *const *in = fnx_operands(y);
    fnx_recorder *r = me->recorder;
    fnx_device *device = y->device;
    unsigned grad = 0;
    for (int k = 0; k < y->n_operands; k++) { /* the common case: all of this thread's recorder, of one handle */
        const fnx_tensor *x = in[k];
        if (!x && y->scalar_mask >> k & 1) continue;
        if (!x || x->owner != r || (device && device != x->device)) {
            device = NULL;
            break;
        }
        device = x->device;
    }
    if (device && r && r->hardware == device->hardware) y->device = device;
    else if (!(r = place(me, y))) goto done;
    device = y->device;
    if (device->plan_settings != r->settings) {
        fnx_status code = fnx_recorder_flush(r, FNX_WHY_LIMIT);
        if (code) fnx_log_write(FNX_TOPIC_GRAPH, FNX_LOG_ERROR, "changing settings: %s", fnx_last_error()->message);
        r->settings = device->plan_settings;
    }
    fnx_recorder_lock(r);
    for (int k = 0; k < y->n_operands; k++) {
        fnx_tensor *x = in[k];
        if (!x) continue;
        grad |= x->flags & FNX_T_GRAD;
        if (x->owner == r ? fnx_state(x) <= FNX_STORED : fnx_state(x) == FNX_STORED) continue;
        fnx_recorder_unlock(r); /* never two recorder locks at once; then look at all operands again */
        if (!make_usable(r, x)) {
            fnx_tensor_fail_like(y, x);
            goto done;
        }
        fnx_recorder_lock(r);
        k = -1;
    }
    y->flags |= (uint8_t)(me->no_grad ? 0 : grad);
    if (fnx_ops[y->op].infer(y) == FNX_OK) {
        if (!fnx_dtype_is_float(y->dtype))
            y->flags &= (uint8_t)~FNX_T_GRAD; /* comparisons, indexes, integers: the path ends */
        y->refs = 2;
        r->stats.records++;
        if (fnx_recorder_append(r, y)) {
            y->refs = 1;
            fnx_tensor_fail(y, FNX_E_NO_MEMORY, "%s: no host memory to record it", fnx_ops[y->op].name);
        } else if (device->settings.lazy == FNX_OFF) flush_for(r, y);
        else if (r->pending_bytes > (int64_t)device->settings.graph_limit)
            (void)fnx_recorder_flush_locked(r, FNX_WHY_LIMIT);
    }
    fnx_recorder_unlock(r);
done:
    fnx_own(me, y);
    return y;
}

fnx_tensor *fnx_record_unary(int op, fnx_tensor *x) {
    fnx_thread *me = &fnx_thread_self;
    fnx_tensor *y = begin(me, op, 1);
    if (!y) return fnx_tensor_none();
    y->in[0] = x;
    return record(me, y);
}

fnx_tensor *fnx_record_binary(int op, fnx_tensor *a, fnx_tensor *b) {
    fnx_thread *me = &fnx_thread_self;
    fnx_tensor *y = begin(me, op, 2);
    if (!y) return fnx_tensor_none();
    y->in[0] = a, y->in[1] = b;
    return record(me, y);
}

bool fnx_scalar_bits(int dtype, double s, uint64_t *out) {
    static const struct {
        double low, high;
    } range[16] = {
        [FNX_BOOL] = {0, 1},
        [FNX_U8] = {0, 255},
        [FNX_I32] = {INT32_MIN, INT32_MAX},
        [FNX_I64] = {-0x1p63, 0x1.fffffffffffffp62},
    };
    *out = fnx_bits_of_double(s);
    if (!fnx_dtype_valid(dtype) || fnx_dtype_is_float(dtype)) return true; /* no dtype: inference says so */
    if (!(s >= range[dtype].low && s <= range[dtype].high) || s != (double)(int64_t)s) return false;
    *out = (uint64_t)(int64_t)s;
    return true;
}

fnx_tensor *fnx_record_scalar(int op, fnx_tensor *x, double s, int at) {
    fnx_thread *me = &fnx_thread_self;
    fnx_tensor *y = begin(me, op, 2);
    if (!y) return fnx_tensor_none();
    y->in[at] = x, y->in[!at] = NULL;
    y->scalar_mask = (uint8_t)(1u << !at), y->n_scalars = 1;
    if (x && fnx_state(x) != FNX_FAILED && !fnx_scalar_bits(x->dtype, s, &y->scalar[0])) {
        char text[FNX_DESCRIBE_BYTES];
        fnx_tensor_fail(y, FNX_E_DTYPE, "%s: the scalar %g is no %s: %s keeps its dtype, fnx_cast() it first",
                        fnx_ops[op].name, s, fnx_dtype_text(x->dtype), fnx_tensor_describe(x, text));
        fnx_own(me, y);
        return y;
    }
    return record(me, y);
}

static bool spill(fnx_tensor *y, const fnx_call *c, unsigned attr_bytes) {
    size_t bytes = sizeof(fnx_spill) + sizeof(fnx_tensor *) * c->n_operands + attr_bytes + 8u * c->n_scalars;
    fnx_spill *s = malloc(bytes);
    if (!s) return false;
    s->attr = s + 1;
    s->scalar = (uint64_t *)((char *)s->attr + attr_bytes);
    s->in = (fnx_tensor **)(s->scalar + c->n_scalars);
    y->spill = s;
    y->flags |= FNX_T_SPILLED;
    return true;
}

fnx_tensor *fnx_record(const fnx_call *c) {
    fnx_thread *me = &fnx_thread_self;
    const fnx_op_info *op = &fnx_ops[c->op];
    fnx_tensor *y = begin(me, c->op, c->n_operands);
    if (!y) return fnx_tensor_none();
    if ((c->n_operands > FNX_INLINE_OPERANDS || op->attr_bytes > FNX_INLINE_ATTR_BYTES ||
         c->n_scalars > FNX_INLINE_SCALARS) &&
        !spill(y, c, op->attr_bytes)) {
        y->n_operands = 0;
        fnx_tensor_fail(y, FNX_E_NO_MEMORY, "%s: no host memory to record it", op->name);
        fnx_own(me, y);
        return y;
    }
    bool spilled = (y->flags & FNX_T_SPILLED) != 0;
    fnx_tensor **in = spilled ? y->spill->in : y->in;
    for (int k = 0; k < c->n_operands; k++) in[k] = k < 3 && c->scalar_mask >> k & 1 ? NULL : c->in[k];
    if (op->attr_bytes) memcpy(spilled ? y->spill->attr : y->attr, c->attr, op->attr_bytes);
    if (c->n_scalars) memcpy(spilled ? y->spill->scalar : y->scalar, c->scalars, 8u * c->n_scalars);
    y->attr_bytes = op->attr_bytes, y->scalar_mask = c->scalar_mask, y->n_scalars = c->n_scalars, y->dtype = c->dtype;
    y->device = c->device;
    if (c->device && c->device->error) {
        fnx_tensor_fail_device(y, c->device);
        fnx_own(me, y);
        return y;
    }
    if (c->sizes || op->flags & FNX_OPF_SIZES) {
        y->rank = c->rank;
        for (int d = 0; d < c->rank && d < (int)FNX_MAX_RANK; d++) y->size[d] = c->sizes[d];
    }
    return record(me, y);
}
