/* memory.h - an oracle for plans of memory that knows nothing of the planner: who is alive when follows from the steps,
   and no two values that are alive at once may share a byte of a region, except views and permitted in-place results.
   Random graphs for it, and what they give on the CPU. */
#ifndef NPU_ORACLE_MEMORY_H
#define NPU_ORACLE_MEMORY_H

#include "../rig.h"

/* ---- the oracle ------------------------------------------------------------------------------------------------- */

enum { MAX_VALUES = 512 };

typedef struct place {
    uint64_t offset, size;
    uint32_t first, last;     /* as the planner says */
    uint32_t made, used;      /* as the steps say: ticks of its making and of its last use here; made 0 = fed */
    bool exists;
    uint32_t region;
    uint32_t family;          /* values that are views of one another have the same one */
    uint32_t maker;           /* op that makes it on this backend, 0 = none: fed or transferred */
} place;

typedef struct oracle {
    const npu_plan *plan;
    const npu_graph *g;
    uint32_t backend, num;    /* values 1 .. num */
    place at[MAX_VALUES];
} oracle;

static inline npu_value value_id(uint32_t id)
{
    npu_value v = { id };
    return v;
}

static inline npu_op op_id(uint32_t id)
{
    npu_op op = { id };
    return op;
}

static inline void oracle_use(oracle *o, npu_value v, uint32_t tick)
{
    if (v.id && o->at[v.id].used < tick) {
        o->at[v.id].used = tick;
    }
}

static inline void oracle_make(oracle *o, npu_value v, uint32_t tick, uint32_t op)
{
    o->at[v.id].made = tick;
    o->at[v.id].maker = op;
    oracle_use(o, v, tick);
}

/* What an op reads as operand i: of a view that its step neither makes nor gets, the input that that is a view of. */
static inline npu_value oracle_read(const oracle *o, npu_op op, uint32_t i)
{
    npu_value v = npu_op_operand_value(o->g, op, i);
    const npu_step *s = NULL;
    bool is_there = !v.id;
    for (uint32_t k = 0; k < npu_plan_num_steps(o->plan) && !s; k++) {
        const npu_step *one = npu_plan_step(o->plan, k);
        for (uint32_t n = 0; n < one->num_ops && !s; n++) {
            s = one->ops[n].id == op.id ? one : NULL;
        }
    }
    while (!is_there) {
        npu_op maker = npu_value_producer(o->g, v, NULL);
        for (uint32_t n = 0; n < s->num_ops && v.id == npu_op_operand_value(o->g, op, i).id; n++) {
            is_there = is_there || (maker.id && s->ops[n].id == maker.id);
        }
        for (uint32_t n = 0; n < s->num_inputs; n++) {
            is_there = is_there || s->inputs[n].id == v.id;
        }
        if (!is_there && !(npu_op_definition(o->g, maker) && npu_op_definition(o->g, maker)->traits & NPU_VIEW)) {
            NPU_CHECK_THAT(false, "op %u reads value %u from nowhere", (unsigned)op.id, (unsigned)v.id);
            return v;
        }
        v = is_there ? v : npu_op_operand_value(o->g, maker, 0);
    }
    return v;
}

static inline void oracle_op(oracle *o, npu_op op, uint32_t tick)
{
    uint32_t traits = npu_op_definition(o->g, op)->traits;
    npu_value x = { 0 };
    for (uint32_t i = 0; i < npu_op_num_operands(o->g, op); i++) {
        npu_value v = oracle_read(o, op, i);
        oracle_use(o, v, tick);
        x = i ? x : v;
    }
    for (uint32_t i = 0; i < npu_op_num_results(o->g, op); i++) {
        npu_value y = npu_op_result(o->g, op, i);
        oracle_make(o, y, tick, op.id);
        o->at[y.id].family = (traits & (NPU_VIEW | NPU_SLICE)) ? o->at[x.id].family : y.id;
    }
}

/* Walks the steps with one tick per op and per transfer. */
static inline void oracle_init(oracle *o, const npu_plan *plan, uint32_t backend)
{
    uint32_t tick = 1;
    memset(o, 0, sizeof *o);
    o->plan = plan;
    o->g = npu_plan_graph(plan);
    o->backend = backend;
    o->num = npu_graph_num_values(o->g);
    NPU_CHECK(o->num < MAX_VALUES);
    for (uint32_t v = 1; v <= o->num; v++) {
        place *p = &o->at[v];
        NPU_CHECK_STATUS(
            npu_plan_value_memory(plan, value_id(v), backend, &p->offset, &p->size, &p->first, &p->last),
            NPU_OK);
        p->exists = p->size > 0;
        p->region = npu_plan_value_region(plan, value_id(v), backend);
        p->family = v;
    }
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        const npu_step *s = npu_plan_step(plan, i);
        for (uint32_t k = 0; k < s->num_inputs && s->backend == backend; k++) { /* a weight that is uploaded for this step */
            npu_role role = npu_value_role(o->g, s->inputs[k]);
            place *p = &o->at[s->inputs[k].id];
            p->made = (role == NPU_ROLE_PARAM || role == NPU_ROLE_CONSTANT) && !p->made ? tick : p->made;
        }
        for (uint32_t k = 0; k < s->num_ops; k++, tick++) {
            /* views that nobody has to make are in steps of their own, which read nothing */
            bool is_idle = !s->num_inputs && npu_op_definition(o->g, s->ops[0])->traits & NPU_VIEW;
            if (s->backend == backend && !is_idle) {
                oracle_op(o, s->ops[k], tick);
            }
        }
        for (uint32_t k = 0; s->type == NPU_STEP_TRANSFER && k < s->num_outputs; k++) {
            if (s->from == backend) {
                oracle_use(o, s->outputs[k], tick);
            } else if (s->backend == backend) {
                oracle_make(o, s->outputs[k], tick, 0);
            }
        }
        tick += s->type == NPU_STEP_TRANSFER;
    }
    for (uint32_t i = 0; i < npu_graph_num_outputs(o->g); i++) { /* read when everything has run */
        place *p = &o->at[npu_graph_output(o->g, i).id];
        p->used = p->maker ? tick : p->used;
    }
}

/* True when y may overlap x at the one tick where the op that makes y reads x for the last time. */
static inline bool oracle_inplace(const oracle *o, uint32_t x, uint32_t y)
{
    npu_op op = op_id(o->at[y].maker);
    if (!op.id || !(npu_op_definition(o->g, op)->traits & NPU_INPLACE) || o->at[x].last > o->at[y].first ||
        o->at[x].used > o->at[y].made) {
        return false;
    }
    for (uint32_t i = 0; i < npu_op_num_operands(o->g, op); i++) {
        const place *p = &o->at[oracle_read(o, op, i).id];
        if (p->family == o->at[x].family && p->offset == o->at[y].offset && p->size == o->at[y].size) {
            return true;
        }
    }
    return false;
}

static inline bool oracle_pair(const oracle *o, uint32_t x, uint32_t y)
{
    const place *a = &o->at[x], *b = &o->at[y];
    bool in_time = a->first <= b->last && b->first <= a->last,
         in_space = a->offset < b->offset + b->size && b->offset < a->offset + a->size;
    return a->region != b->region || !in_time || !in_space || a->family == b->family || oracle_inplace(o, x, y) || oracle_inplace(o, y, x);
}

#define PLACE "value %u '%s' at %llu, %llu bytes, alive from %u to %u"
#define PLACE_ARGS(o, v) \
    (unsigned)(v), npu_value_name((o)->g, value_id(v)), (unsigned long long)(o)->at[v].offset, \
        (unsigned long long)(o)->at[v].size, (unsigned)(o)->at[v].first, (unsigned)(o)->at[v].last

/* Everything that must hold on one backend of an exact plan. Returns the number of values that share bytes
   with another one. */
static inline uint32_t oracle_check(const npu_plan *plan, uint32_t backend)
{
    static oracle o;
    npu_memory m;
    npu_region_memory region;
    uint32_t alignment = npu_plan_backend(plan, backend)->regions[0].alignment, shared = 0;
    NPU_CHECK_STATUS(npu_plan_memory(plan, backend, &m), NPU_OK);
    NPU_CHECK(m.lower_bound <= m.activations && m.activations <= m.no_reuse);
    NPU_CHECK(m.scratch <= m.activations);
    for (uint32_t i = 0; npu_plan_region_memory(plan, backend, i, &region) == NPU_OK; i++) {
        NPU_CHECK_THAT(!region.capacity || region.required <= region.capacity, "%s: %s needs %llu of %llu bytes",
                       npu_plan_backend(plan, backend)->name, region.name, (unsigned long long)region.required,
                       (unsigned long long)region.capacity);
    }
    oracle_init(&o, plan, backend);
    for (uint32_t x = 1; x <= o.num; x++) {
        place *p = &o.at[x];
        size_t size = 0;
        if (!p->exists) {
            continue;
        }
        npu_spec_size(npu_value_spec(o.g, value_id(x)), &size);
        NPU_CHECK_EQ(p->size, size);
        NPU_CHECK_STATUS(npu_plan_region_memory(plan, backend, p->region, &region), NPU_OK);
        NPU_CHECK_THAT(p->offset + p->size <= region.activations, PLACE " ends behind %llu bytes", PLACE_ARGS(&o, x),
                       (unsigned long long)region.activations);
        NPU_CHECK_THAT(p->first <= p->made && p->last >= p->used, PLACE " is made at %u and used at %u", PLACE_ARGS(&o, x),
                       (unsigned)p->made, (unsigned)p->used);
        NPU_CHECK_THAT(p->offset % alignment == 0 || p->family != x, PLACE " is not aligned to %u", PLACE_ARGS(&o, x),
                       (unsigned)alignment);
        for (uint32_t y = 1; y < x; y++) {
            if (o.at[y].exists) {
                NPU_CHECK_THAT(oracle_pair(&o, x, y), PLACE " overlaps " PLACE, PLACE_ARGS(&o, x), PLACE_ARGS(&o, y));
                shared += p->region == o.at[y].region && p->offset < o.at[y].offset + o.at[y].size && o.at[y].offset < p->offset + p->size;
            }
        }
    }
    return shared;
}

/* ---- random graphs ---------------------------------------------------------------------------------------------- */

typedef struct pool { npu_value values[MAX_VALUES]; uint32_t num; } pool;

static inline uint32_t pick(uint64_t *seed, uint32_t n) { return (uint32_t)(npu_test_random(seed) % n); }

static inline npu_value pick_value(uint64_t *seed, const pool *p)
{
    uint32_t recent = p->num < 4 || pick(seed, 3) == 0 ? p->num : 4; /* mostly young values, so that old ones die */
    return p->values[p->num - 1 - pick(seed, recent)];
}

static inline void keep(pool *p, npu_value v)
{
    if (v.id) {
        p->values[p->num++] = v;
    }
}

static inline void random_view(npu_graph *g, uint64_t *seed, pool *p, npu_value x)
{
    const npu_spec *s = npu_value_spec(g, x);
    int64_t rows = s->dims[0], half = rows / 2;
    size_t len = 0;
    npu_spec_len(s, &len);
    switch (pick(seed, 6)) {
    case 0: keep(p, npu_reshape(g, x, DIMS((int64_t)len), 1)); break;
    case 1: keep(p, npu_reshape(g, x, DIMS(1, (int64_t)len), 2)); break;
    case 2: keep(p, npu_clone(g, x)); break;
    case 3: keep(p, npu_slice(g, x, 0, half, rows, 1)); break;
    case 4:
        if (s->rank > 1) {
            keep(p, npu_select(g, x, 0, (int64_t)pick(seed, (uint32_t)rows)));
        }
        break;
    default: {
        npu_op op = npu_split(g, x, half ? half : 1, pick(seed, s->rank));
        for (uint32_t i = 0; i < npu_op_num_results(g, op); i++) {
            if (pick(seed, 3)) { /* some pieces have no users */
                keep(p, npu_op_result(g, op, i));
            }
        }
    }
    }
}

static inline void random_op(npu_graph *g, uint64_t *seed, pool *p)
{
    npu_value x = pick_value(seed, p), y = pick_value(seed, p);
    bool same = npu_spec_equal(npu_value_spec(g, x), npu_value_spec(g, y));
    size_t len = 0;
    npu_spec_len(npu_value_spec(g, x), &len);
    switch (pick(seed, 10)) {
    case 0: keep(p, npu_relu(g, x)); break;
    case 1: keep(p, npu_neg(g, x)); break;
    case 2: keep(p, npu_add(g, x, same ? y : x)); break;
    case 3: keep(p, same ? npu_sub(g, y, x) : npu_tanh(g, x)); break;
    case 4: keep(p, npu_softmax(g, x, 0)); break;
    case 5: keep(p, len < 200 ? npu_cat(g, (npu_value[]){ x, x }, 2, 0) : npu_abs(g, x)); break;
    case 6: keep(p, npu_op_result(g, npu_max_dim(g, x, 0, true), 0)); break; /* its indices have no users */
    default: random_view(g, seed, p, x);
    }
}

static inline void random_graph(npu_graph *g, uint64_t *seed)
{
    static pool p;
    char name[16];
    p.num = 0;
    keep(&p, npu_input(g, "x", F32(4, 6)));
    keep(&p, npu_input(g, "w", F32(4, 6)));
    keep(&p, W(4, 6));
    npu_value state = npu_state(g, "s", F32(4, 6));
    keep(&p, state);
    for (uint32_t i = 0, n = 10 + pick(seed, 40); i < n; i++) {
        random_op(g, seed, &p);
    }
    for (uint32_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "y%u", (unsigned)i);
        npu_output(g, name, p.values[i == 0 ? p.num - 1 : pick(seed, p.num)]);
    }
    for (uint32_t i = p.num; i-- > 4;) {
        if (npu_spec_equal(npu_value_spec(g, p.values[i]), npu_value_spec(g, state))) {
            npu_update(g, state, p.values[i]);
            break;
        }
    }
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
}

/* Runs three times and appends all outputs; false = a run failed. */
static inline bool run_three(npu_exec *e, const npu_graph *g, char *out, size_t capacity, size_t *len)
{
    static float x[24], w[24];
    bool ok = true;
    *len = 0;
    npu_test_input(e, "x", x, sizeof x);
    npu_test_input(e, "w", w, sizeof w);
    for (uint32_t run = 0; run < 3 && ok; run++) {
        fill(x, 24, run);
        fill(w, 24, run + 7);
        ok = npu_exec_run(e) == NPU_OK;
        for (uint32_t i = 0; i < npu_graph_num_outputs(g) && ok; i++) {
            size_t size = 0;
            const void *data = npu_exec_output(e, i, &size);
            ok = *len + size <= capacity;
            if (ok) {
                memcpy(out + *len, data, size);
                *len += size;
            }
        }
    }
    return ok;
}

/* What a plain run on the CPU gives: nothing in place. */
static inline bool expected_of(const npu_graph *g, char *out, size_t capacity, size_t *len)
{
    rig r = rig_start(NULL, 0);
    npu_graph *own = r.graph;
    r.graph = (npu_graph *)(uintptr_t)g;
    r.desc.no_inplace = true;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    bool ok = run_three(r.exec, g, out, capacity, len);
    oracle_check(npu_program_plan(r.program), 0);
    r.graph = own;
    rig_end(&r);
    return ok;
}

#endif
