/* "Owning is not demanding": which results a flush stores, and which inputs it may overwrite.
 *
 * One sweep from the last record to the first, so that consumers are decided before operands and a dead consumer does
 * not count. Stored are: what is retained, a variable's new value, or being read (strong); what a live tape reads
 * (saved); and, where a handle is alive: what was kept, results of one element, results that nothing demanded needs. */
#include "graph/recorder.h"
#include "tensor/saves.h"
#include "tensor/variable.h"

/* Operand k of record i as a number, as append wrote it; FNX_ID_SCALAR for scalars. */
static int32_t operand_id(const fnx_recorder *r, int64_t i, int k) {
    if (k < 3) return r->code[i].id[k];
    const fnx_tensor *x = fnx_operand(r->pending[i], k);
    if (!x) return FNX_ID_SCALAR;
    if (x->owner == r && x->epoch == r->epoch) return x->id;
    for (int64_t j = 0; j < r->n_inputs; j++)
        if (r->inputs[j] == x) return (int32_t)~j;
    return FNX_ID_SCALAR;
}

/* One value repeated: as a name it costs nothing, stored it may be huge. What it repeats is stored instead. */
static bool is_repetition(const fnx_tensor *t) { return t->op == FNX_OP_fill || t->op == FNX_OP_expand; }

static void keep_operand(fnx_recorder *r, int64_t i) {
    if (r->pending[i]->n_operands == 0) return;
    int32_t id = r->code[i].id[0];
    if (id >= 0) r->mark[id] |= FNX_M_SAVED;
    else r->donatable[~id] = 0;
}

static void sweep(fnx_recorder *r, bool every_handle) {
    for (int64_t i = r->n - 1; i >= 0; i--) {
        const fnx_tensor *t = r->pending[i];
        unsigned m = r->mark[i];
        int strong = __atomic_load_n(&t->strong, __ATOMIC_RELAXED), n = t->n_operands;
        bool live = t->handles > 0;
        if ((t->flags & (FNX_T_GRAD | FNX_T_CONSUMED | FNX_T_LEAF)) == FNX_T_GRAD &&
            (live || strong || m & FNX_M_REACHED)) {
            unsigned saves = fnx_op_saves(t->op);
            m |= FNX_M_TAPED | (saves & FNX_SAVES_RESULT_BIT ? (unsigned)FNX_M_SAVED : 0u);
            for (int k = 0; k < n; k++) {
                int32_t id = operand_id(r, i, k);
                unsigned saved = k < 3 && saves >> k & 1;
                if (id >= 0) r->mark[id] |= (uint8_t)(FNX_M_REACHED | (saved ? FNX_M_SAVED : 0));
                else if (saved && id != FNX_ID_SCALAR) r->donatable[~id] = 0;
            }
        }
        bool asked = strong > 0 || m & FNX_M_SAVED || (live && t->flags & FNX_T_KEEP);
        bool wanted = asked || (live && (t->count == 1 || !(m & FNX_M_NEEDED) || every_handle));
        if (wanted && !asked && is_repetition(t)) wanted = false, keep_operand(r, i);
        if (wanted) m |= FNX_M_NEEDED;
        else if (live) m |= FNX_M_NAMED;
        unsigned down = (m & FNX_M_NEEDED) | (wanted ? 0u : m & FNX_M_NAMED);
        for (int k = 0; k < n && down; k++) {
            int32_t id = operand_id(r, i, k);
            if (id >= 0) r->mark[id] |= (uint8_t)down;
            else if (down & FNX_M_NAMED && id != FNX_ID_SCALAR)
                r->donatable[~id] = 0; /* the name would need it again */
        }
        r->mark[i] = (uint8_t)m, r->demand[i] = wanted;
    }
}

void fnx_demand(fnx_recorder *r, bool every_handle) {
    memset(r->mark, 0, (size_t)r->n);
    if (r->n_inputs) memset(r->donatable, 1, (size_t)r->n_inputs);
    sweep(r, every_handle);
    for (int64_t j = 0; j < r->n_inputs;
         j++) { /* nobody but this graph may refer to it; a handle from _get is only lent */
        const fnx_tensor *t = r->inputs[j];
        if (!r->donatable[j]) continue;
        int lent = t->variable && !(t->flags & FNX_T_KEEP) ? t->handles : 0;
        int slot = t->variable && t->variable->old == t;
        if (__atomic_load_n(&t->strong, __ATOMIC_RELAXED) ||
            __atomic_load_n(&t->refs, __ATOMIC_RELAXED) != 1 + lent + slot || t->owner != r ||
            __atomic_load_n(&t->storage->refs, __ATOMIC_RELAXED) > 1 ||
            __atomic_load_n(&t->storage->maps, __ATOMIC_RELAXED))
            r->donatable[j] = 0;
    }
}
