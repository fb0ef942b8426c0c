/* The partitioner: who gets which op and why, groups, borders, transfers, limits, and what a dry run must
   not touch. */
#include "oracle/cost.h"
#include "oracle/groups.h"
#include "rig.h"

/* ---- a backend made to order ------------------------------------------------------------------------------------ */

/* The CPU under another name that takes only some ops and notes what it was asked and given. */
typedef struct spy {
    npu_backend backend;
    npu_region region;
    const char *only[4];        /* op names; none = everything */
    uint32_t reason;            /* given for the others */
    const char *words;
    const char *refuse;         /* compile fails for groups with this op */
    bool says_which;            /* and which op of the graph it was */
    uint32_t asked, compiled, allocated, moved, submitted;
    uint32_t scratch_alignment; /* asked for, and checked at submit */
    uint32_t misaligned;
    void *program;              /* the last one compiled, */
    uint32_t foreign, released; /* submits of another, and how often it was released */
    bool weights_at_compile;    /* a weight came with its data */
    void *raw;                  /* the block of an arena aligned beyond the CPU's */
    struct { char name[48]; uint32_t kind, schema, size; uint8_t blob[16]; } seen[8]; /* device forms at compile */
    uint32_t num_seen;
} spy;

static npu_status spy_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    spy *s = ctx;
    s->asked++;
    for (int i = 0; i < 4 && s->only[i]; i++) {
        if (strcmp(s->only[i], op->name) == 0) {
            return NPU_OK;
        }
    }
    if (s->only[0]) {
        answer->reason = s->reason ? s->reason : NPU_REASON_OP;
        snprintf(answer->text, sizeof answer->text, "%s", s->words ? s->words : "");
        return NPU_OK;
    }
    return npu_ref_backend()->supports(npu_ref_backend()->ctx, op, answer);
}

static npu_status failing_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx;
    (void)op;
    (void)answer;
    return NPU_ERR_INTERNAL;
}

/* A backend that fails where it is asked takes nothing, and the plan says that it failed. */
static void test_supports_fails(void)
{
    npu_backend device = *npu_ref_backend();
    const npu_backend *backends[2] = { &device, npu_ref_backend() };
    device.name = "npu0";
    device.supports = failing_supports;
    npu_graph *g = npu_graph_create(NULL);
    npu_output(g, "y", npu_relu(g, npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 3 }))));
    npu_plan *plan = NULL;
    const char *words = "";
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &(npu_plan_desc){ .backends = backends, .num_backends = 2 }, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_refusal(plan, npu_value_producer(g, npu_graph_output(g, 0), NULL), 0, &words), NPU_REASON_OP);
    NPU_CHECK_STR(words, "supports failed: internal error");
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
}

static npu_status spy_alloc(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    spy *s = ctx;
    uintptr_t alignment = (uintptr_t)a->alignment;
    s->allocated++;
    if (alignment <= 64) {
        return npu_ref_backend()->alloc(npu_ref_backend()->ctx, a, out);
    }
    s->raw = malloc((size_t)(a->bytes + alignment));
    out->handle = (void *)(((uintptr_t)s->raw + alignment - 1) / alignment * alignment);
    out->bytes = a->bytes;
    return NPU_OK;
}

static void spy_free(void *ctx, npu_buffer *buffer)
{
    spy *s = ctx;
    if (s->raw) {
        free(s->raw);
        s->raw = NULL;
    } else {
        npu_ref_backend()->free(npu_ref_backend()->ctx, buffer);
    }
}

static npu_status spy_upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    ((spy *)ctx)->moved++;
    return npu_ref_backend()->upload(npu_ref_backend()->ctx, t, fence);
}

static npu_status spy_download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    ((spy *)ctx)->moved++;
    return npu_ref_backend()->download(npu_ref_backend()->ctx, t, fence);
}

static npu_status spy_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    spy *s = ctx;
    npu_status status;
    s->compiled++;
    for (uint32_t i = 0; i < group->num_ops; i++) {
        const npu_op_info *op = group->ops[i]->info;
        if (s->refuse && strcmp(op->name, s->refuse) == 0) {
            snprintf(out->text, sizeof out->text, "%s is not for me", op->name);
            out->failed_op = s->says_which ? op->op : 0;
            return NPU_ERR_UNSUPPORTED;
        }
        if (s->num_seen < 8) {
            snprintf(s->seen[s->num_seen].name, sizeof s->seen[0].name, "%s", op->name);
            s->seen[s->num_seen].kind = op->device_kind;
            s->seen[s->num_seen].schema = op->device_schema;
            s->seen[s->num_seen].size = op->device_size;
            memcpy(s->seen[s->num_seen].blob, op->device_attrs ? op->device_attrs : (const uint8_t *)"",
                   op->device_size % 16);
            s->num_seen++;
        }
    }
    status = npu_ref_backend()->compile(npu_ref_backend()->ctx, group, out);
    for (uint32_t i = 0; i < group->num_values; i++) {
        s->weights_at_compile |= group->values[i]->role == NPU_GROUP_WEIGHT && group->values[i]->data;
    }
    out->scratch_alignment = s->scratch_alignment ? s->scratch_alignment : out->scratch_alignment;
    s->program = out->program;
    return status;
}

static npu_status spy_place(void *ctx, void *program, const npu_places *places)
{
    (void)ctx;
    return npu_ref_backend()->place(npu_ref_backend()->ctx, program, places);
}

static npu_status spy_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    spy *s = ctx;
    const npu_place *place = binding->places->scratch;
    uintptr_t scratch = (uintptr_t)binding->buffers[place->buffer]->handle + (uintptr_t)place->offset;
    s->submitted++;
    s->foreign += program != s->program;
    s->misaligned += s->scratch_alignment && scratch % s->scratch_alignment;
    return npu_ref_backend()->submit(npu_ref_backend()->ctx, program, binding, fence);
}

static void spy_release(void *ctx, void *program)
{
    ((spy *)ctx)->released++;
    npu_ref_backend()->release(npu_ref_backend()->ctx, program);
}

static const npu_backend *spy_start(spy *s, const char *name)
{
    npu_backend *b = &s->backend;
    memset(s, 0, sizeof *s);
    s->region = npu_ref_backend()->regions[0];
    b->size = (uint32_t)sizeof *b;
    b->api_version = NPU_BACKEND_API;
    b->name = name;
    b->ctx = s;
    b->traits = NPU_BACKEND_HOST;
    b->num_regions = 1;
    b->regions = &s->region;
    b->supports = spy_supports;
    b->alloc = spy_alloc;
    b->free = spy_free;
    b->upload = spy_upload;
    b->download = spy_download;
    b->compile = spy_compile;
    b->place = spy_place;
    b->submit = spy_submit;
    b->release = spy_release;
    return b;
}

/* Two spies, then the CPU. */
static void spies_start(rig *r, spy *first, spy *second)
{
    r->backends[0] = spy_start(first, "first");
    r->backends[1] = spy_start(second, "second");
    r->backends[2] = npu_ref_backend();
    r->desc.num_backends = 3;
}

/* ---- looking at plans ------------------------------------------------------------------------------------------- */

static npu_op op_id(uint32_t id)
{
    npu_op op = { id };
    return op;
}

static npu_value value_id(uint32_t id)
{
    npu_value v = { id };
    return v;
}

/* "P0(1 2 3) T0>1(4) P1(4)": partitions with their ops, transfers with source, target and values; ? =
   nobody takes it. */
static const char *steps_of(const npu_plan *plan)
{
    static char text[1024];
    size_t len = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        const npu_step *s = npu_plan_step(plan, i);
        bool partition = s->type == NPU_STEP_PARTITION;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%c", i ? " " : "", partition ? 'P' : 'T');
        len += (size_t)(partition ? snprintf(text + len, sizeof text - len, s->backend < 32 ? "%u(" : "?(",
                                             (unsigned)s->backend)
                                  : snprintf(text + len, sizeof text - len, "%u>%u(", (unsigned)s->from,
                                             (unsigned)s->backend));
        for (uint32_t k = 0; k < (partition ? s->num_ops : s->num_outputs); k++) {
            uint32_t id = partition ? s->ops[k].id : s->outputs[k].id;
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", k ? " " : "", (unsigned)id);
        }
        len += (size_t)snprintf(text + len, sizeof text - len, ")");
    }
    return text;
}

static const char *names_of(const npu_graph *g, const npu_value *values, uint32_t n)
{
    static char text[512];
    text[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", npu_value_name(g, values[i]));
    }
    return text;
}

/* ---- tagging and grouping --------------------------------------------------------------------------------------- */

/* Every step of the example: ops, borders by name, bytes, dependencies. */
static void test_example(void)
{
    NPU_ITEM("S1.1");
    NPU_ITEM("S1.2");
    NPU_ITEM("S1.18");
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.deny = deny_cat;
    desc.num_deny = 1;
    rig r = rig_start(&desc, 1);
    build_example(r.graph);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(r.graph), 7);
    NPU_CHECK_EQ(npu_plan_num_steps(r.plan), 5);
    const npu_step *s[5];
    for (uint32_t i = 0; i < 5; i++) {
        s[i] = npu_plan_step(r.plan, i);
    }
    NPU_CHECK(npu_plan_step(r.plan, 5) == NULL);
    NPU_CHECK_EQ(s[0]->num_ops, 5);
    NPU_CHECK_EQ(s[0]->num_inputs, 4); /* x and three weights */
    NPU_CHECK_STR(npu_value_name(r.graph, s[0]->inputs[0]), "x");
    NPU_CHECK_STR(names_of(r.graph, s[0]->outputs, s[0]->num_outputs), "relu2_output");
    NPU_CHECK_EQ(s[1]->from, 0);
    NPU_CHECK_EQ(s[1]->backend, 1);
    NPU_CHECK_STR(names_of(r.graph, s[1]->outputs, s[1]->num_outputs), "relu2_output");
    NPU_CHECK_EQ(s[1]->bytes, EXAMPLE_OUT / 2 * 4);
    NPU_CHECK_STR(names_of(r.graph, s[2]->inputs, s[2]->num_inputs), "relu2_output"); /* used twice, listed once */
    NPU_CHECK_STR(names_of(r.graph, s[2]->outputs, s[2]->num_outputs), "concat_output");
    NPU_CHECK_EQ(s[3]->from, 1);
    NPU_CHECK_STR(names_of(r.graph, s[3]->outputs, s[3]->num_outputs), "concat_output");
    NPU_CHECK_EQ(s[4]->num_ops, 1);
    NPU_CHECK_STR(npu_op_definition(r.graph, s[4]->ops[0])->name, "aten.softmax.int");
    for (uint32_t i = 0; i < 5; i++) { /* a chain */
        NPU_CHECK_EQ(s[i]->num_dependencies, i > 0);
        NPU_CHECK(i == 0 || s[i]->dependencies[0] == i - 1);
    }
    NPU_CHECK(npu_plan_graph(r.plan) == r.graph);
    NPU_CHECK_EQ(npu_plan_num_backends(r.plan), 2);
    NPU_CHECK(npu_plan_backend(r.plan, 0) == r.backends[0] && npu_plan_backend(r.plan, 2) == NULL);
    rig_end(&r);
}

/* x -> n ops in a row of alternating or equal kinds; the accelerator takes relu only. */
static rig chain_start(const char *kinds)
{
    static const char *const allow[] = { "aten.relu.default" };
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.allow = allow;
    desc.num_allow = 1;
    rig r = rig_start(&desc, 1);
    npu_value y = npu_input(r.graph, "x", F32(2, 3));
    for (; *kinds; kinds++) {
        bool relu = *kinds == 'r', view = *kinds == 'v';
        y = relu ? npu_relu(r.graph, y) : view ? npu_flatten(r.graph, y, 0, -1) : npu_neg(r.graph, y);
    }
    npu_output(r.graph, "y", y);
    return r;
}

static void test_borders(void)
{
    NPU_ITEM("S1.11");
    NPU_ITEM("S1.13");
    NPU_ITEM("R1.7");
    static const struct { const char *kinds, *steps; } rows[] = {
        { "", "" },
        { "r", "P0(1)" },
        { "n", "P1(1)" },
        { "rrrr", "P0(1 2 3 4)" },
        { "nnnn", "P1(1 2 3 4)" },
        { "rn", "P0(1) T0>1(2) P1(2)" },
        { "nr", "P1(1) T1>0(2) P0(2)" },
        { "rnr", "P0(1) T0>1(2) P1(2) T1>0(3) P0(3)" },
        { "rrnnrr", "P0(1 2) T0>1(3) P1(3 4) T1>0(5) P0(5 6)" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = chain_start(rows[i].kinds);
        r.desc.contiguous = i % 2 != 0; /* of a chain there is one way to make groups */
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), rows[i].steps);
        rig_unmake(&r);
        r.desc.contiguous = !r.desc.contiguous;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), rows[i].steps);
        float x[6] = { -1, 2, -3, 4, -5, 6 };
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        rig_end(&r);
    }
}

/* Graph inputs and weights are inputs of partitions, never part of a transfer; outputs are what others or
   the graph need. */
static void test_step_values(void)
{
    NPU_ITEM("S1.14");
    NPU_ITEM("S1.34");
    NPU_ITEM("R1.4");
    static float w[6];
    rig r = chain_start("");
    npu_graph *g = r.graph;
    npu_value x = npu_graph_find(g, "x");
    npu_value p = npu_param(g, "p", F32(2, 3));
    npu_graph_bind_param(g, "p", w, sizeof w);
    npu_value a = npu_relu(g, x), b = npu_relu(g, p), inner = npu_relu(g, a), dead = npu_relu(g, a);
    npu_value c = npu_add(g, inner, x), d = npu_add(g, c, b), e = npu_add(g, d, p);
    npu_value_set_name(g, a, "a");
    npu_value_set_name(g, b, "b");
    npu_value_set_name(g, inner, "inner");
    npu_value_set_name(g, dead, "dead");
    npu_value_set_name(g, d, "d");
    npu_output(g, "out_a", a);
    npu_output(g, "out_d", d);
    npu_output(g, "out_e", e);
    r.desc.contiguous = true;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_num_steps(r.plan), 3);
    const npu_step *first = npu_plan_step(r.plan, 0), *move = npu_plan_step(r.plan, 1),
                   *second = npu_plan_step(r.plan, 2);
    NPU_CHECK_STR(names_of(g, first->inputs, first->num_inputs), "x p");
    NPU_CHECK_STR(names_of(g, first->outputs, first->num_outputs), "a b inner");
    NPU_CHECK_STR(names_of(g, move->outputs, move->num_outputs), "inner b");
    NPU_CHECK_EQ(move->bytes, 48);
    NPU_CHECK_EQ(move->num_inputs, 0);
    NPU_CHECK_STR(names_of(g, second->inputs, second->num_inputs), "inner x b p");
    NPU_CHECK_EQ(second->num_outputs, 2);
    rig_end(&r);
}

/* R1.5, R1.6: a value goes to a backend once and stays usable where it was made. */
static void test_transfers_once(void)
{
    NPU_ITEM("S1.35");
    NPU_ITEM("R1.5");
    NPU_ITEM("R1.6");
    rig r = chain_start("");
    npu_graph *g = r.graph;
    npu_value x = npu_graph_find(g, "x");
    npu_value t0 = npu_relu(g, x);           /* accelerator: value 2 */
    npu_value t1 = npu_neg(g, t0);           /* CPU: 3; t0 goes down */
    npu_value t2 = npu_relu(g, t1);          /* accelerator: 4; t1 goes up */
    npu_value t3 = npu_sub(g, t0, t1);       /* CPU: 5; both are there already */
    npu_value t4 = npu_relu(g, t0);          /* accelerator: 6; t0 never left */
    npu_value t5 = npu_sub(g, t3, t2);       /* CPU: 7; only t2 moves */
    npu_output(g, "z", npu_sub(g, t5, t4));  /* CPU: 8; t4 in the same group */
    static const char *const steps[] = { "P0(1 5) T0>1(2) P1(2 4) T1>0(3) P0(3) T0>1(4 6) P1(6 7)",
                                         "P0(1) T0>1(2) P1(2) T1>0(3) P0(3) P1(4) P0(5) T0>1(4 6) P1(6 7)" };
    for (int contiguous = 0; contiguous < 2; contiguous++) {
        r.desc.contiguous = contiguous;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), steps[contiguous]);
        float in[6] = { -1, 2, -3, 4, -5, 6 };
        npu_test_input(r.exec, "x", in, sizeof in);
        npu_sim_counters before = npu_sim_count(r.sims[0]);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const float *y = npu_exec_output(r.exec, 1, NULL); /* 0 is x itself */
        for (int i = 0; i < 6 && y; i++) { /* t0 = relu x; t1 = -t0; t2 = 0; t3 = 2 t0; t4 = t0; t5 = 2 t0; y = t0 */
            NPU_CHECK_NEAR(y[i], in[i] > 0 ? in[i] : 0, 0);
        }
        npu_sim_counters after = npu_sim_count(r.sims[0]);
        NPU_CHECK_EQ(after.calls[NPU_SIM_UPLOAD] - before.calls[NPU_SIM_UPLOAD], 2);     /* x, t1 */
        NPU_CHECK_EQ(after.calls[NPU_SIM_DOWNLOAD] - before.calls[NPU_SIM_DOWNLOAD], 3); /* t0, t2, t4 */
        rig_unmake(&r);
    }
    rig_end(&r);
}

/* Each dependency names an earlier step that makes or brings something this step uses, and none is
   missing. */
static void test_dependencies(void)
{
    NPU_ITEM("S1.19");
    NPU_ITEM("S1.36");
    rig r = chain_start("rnrrnnrnr");
    npu_graph *g = r.graph;
    npu_value late = npu_sub(g, value_id(2), value_id(3));
    npu_output(g, "late", npu_relu(g, late));
    r.desc.contiguous = true; /* then ops run in the order of their ids */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    uint32_t next_op = 1;
    for (uint32_t i = 0; i < npu_plan_num_steps(r.plan); i++) {
        const npu_step *s = npu_plan_step(r.plan, i);
        uint32_t n = s->type == NPU_STEP_PARTITION ? s->num_inputs : s->num_outputs, needed = 0;
        const npu_value *values = s->type == NPU_STEP_PARTITION ? s->inputs : s->outputs;
        uint64_t seen = 0;
        for (uint32_t k = 0; k < s->num_ops; k++) {
            NPU_CHECK_EQ(s->ops[k].id, next_op++); /* steps keep the order of ops */
        }
        for (uint32_t d = 0; d < s->num_dependencies; d++) {
            NPU_CHECK(s->dependencies[d] < i);
            NPU_CHECK(!(seen >> s->dependencies[d] & 1));
            seen |= (uint64_t)1 << s->dependencies[d];
        }
        for (uint32_t k = 0; k < n; k++) {
            bool found = npu_value_producer(g, values[k], NULL).id == 0;
            needed += !found;
            for (uint32_t d = 0; d < s->num_dependencies && !found; d++) {
                const npu_step *from = npu_plan_step(r.plan, s->dependencies[d]);
                for (uint32_t m = 0; m < from->num_outputs; m++) {
                    found |= from->outputs[m].id == values[k].id &&
                             (s->type == NPU_STEP_TRANSFER || from->backend == s->backend);
                }
            }
            NPU_CHECK_THAT(found, "step %u reads value %u '%s', which no step that it depends on has made", (unsigned)i,
                           (unsigned)values[k].id, npu_value_name(g, values[k]));
        }
        NPU_CHECK(s->num_dependencies <= needed);
    }
    NPU_CHECK_EQ(next_op, npu_graph_num_ops(g) + 1);
    rig_end(&r);
}

static void test_views_weigh_nothing(void)
{
    rig r = chain_start("rvn"); /* flatten is refused by the accelerator of this chain, so it goes with neg */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P0(1) T0>1(2) P1(2 3)");
    rig_end(&r);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

enum { NET_MAX = 10000 };

/* Ops "o0", "o1" ... with one or two operands each, and where each of them is to run. */
typedef struct net {
    uint32_t num_ops;
    uint8_t colour[NET_MAX];
    int32_t from[NET_MAX][2]; /* ops, or -1 = the input; [1] -2 = there is none */
} net;

static uint32_t net_random(uint64_t *seed) { return (uint32_t)npu_test_random(seed); }

/* Each op reads from some of the `reach` ops before it, or the input. */
static net random_net_near(uint32_t num_ops, uint32_t num_colours, uint32_t reach, uint64_t *seed)
{
    net n;
    n.num_ops = num_ops;
    for (uint32_t i = 0; i < num_ops; i++) {
        uint32_t choices = i < reach ? i + 1 : reach, least = i + 1 - choices;
        n.colour[i] = (uint8_t)(net_random(seed) % num_colours);
        n.from[i][0] = (int32_t)(least + net_random(seed) % choices) - 1;
        n.from[i][1] = net_random(seed) % 2 ? (int32_t)(least + net_random(seed) % choices) - 1 : -2;
    }
    return n;
}

static net random_net(uint32_t num_ops, uint32_t num_colours, uint64_t *seed)
{
    return random_net_near(num_ops, num_colours, num_ops, seed);
}

/* Emits the ops in a random order, which their edges allow; seed NULL = in their own. What nobody reads is an output. */
static void net_emit(const net *n, npu_graph *g, uint64_t *seed)
{
    npu_value x = npu_input(g, "x", F32(4)), made[NET_MAX];
    bool used[NET_MAX] = { false };
    char name[16];
    memset(made, 0, sizeof made);
    for (uint32_t num = 0; num < n->num_ops;) {
        uint32_t i = seed ? net_random(seed) % n->num_ops : num;
        npu_value in[2] = { x, x };
        bool ready = !made[i].id;
        for (int k = 0; k < 2 && n->from[i][k] > -2; k++) {
            in[k] = n->from[i][k] < 0 ? x : made[n->from[i][k]];
            ready = ready && in[k].id;
        }
        if (!ready) {
            continue;
        }
        for (int k = 0; k < 2; k++) {
            used[n->from[i][k] < 0 ? i : (uint32_t)n->from[i][k]] |= n->from[i][k] >= 0;
        }
        made[i] = n->from[i][1] > -2 ? npu_maximum(g, in[0], in[1]) : npu_abs(g, in[0]);
        snprintf(name, sizeof name, "o%u", (unsigned)i);
        npu_op_set_name(g, npu_value_producer(g, made[i], NULL), name);
        num++;
    }
    for (uint32_t i = 0; i < n->num_ops; i++) {
        snprintf(name, sizeof name, "y%u", (unsigned)i);
        if (!used[i]) {
            npu_output(g, name, made[i]);
        }
    }
}

static int net_place(void *ctx, const npu_op_info *op, const char *label)
{
    (void)op;
    return ((const net *)ctx)->colour[atoi(label + 1)];
}

/* Groups on accelerators (or all), of a plan made from one order of emission. */
static uint32_t net_groups(net *n, uint32_t num_sims, bool all, bool contiguous, uint64_t *seed)
{
    rig r = rig_start(NULL, num_sims);
    uint32_t num = 0;
    net_emit(n, r.graph, seed);
    r.desc.override = net_place;
    r.desc.override_ctx = n;
    r.desc.contiguous = contiguous;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    for (uint32_t i = 0; i < npu_plan_num_steps(r.plan); i++) {
        const npu_step *s = npu_plan_step(r.plan, i);
        num += s->type == NPU_STEP_PARTITION && (all || s->backend < num_sims);
    }
    rig_end(&r);
    return num;
}

/* Two colours: never more groups than there must be, in all or on the accelerator. */
static void test_fewest_groups(void)
{
    uint64_t seed = npu_test_seed();
    for (int round = 0; round < 200; round++) {
        uint64_t at = seed;
        net n = random_net(1 + net_random(&seed) % 12, 2, &seed);
        oracle_dag d;
        memset(&d, 0, sizeof d);
        d.num_ops = n.num_ops;
        memcpy(d.colour, n.colour, n.num_ops);
        for (uint32_t i = 0; i < n.num_ops; i++) {
            for (int k = 0; k < 2; k++) {
                d.needs[i] |= n.from[i][k] >= 0 ? 1u << n.from[i][k] : 0;
            }
        }
        uint32_t all = net_groups(&n, 1, true, false, NULL), offloaded = net_groups(&n, 1, false, false, NULL);
        uint32_t least = oracle_fewest_groups(&d, 0xff), least_offloaded = oracle_fewest_groups(&d, 0);
        NPU_CHECK_THAT(all == least && offloaded == least_offloaded,
                       "seed %llu: %u groups, %u on the accelerator; possible are %u and %u", (unsigned long long)at,
                       (unsigned)all, (unsigned)offloaded, (unsigned)least, (unsigned)least_offloaded);
    }
}

/* An accelerator that takes every second of two chains that are emitted by turns, or of 8 branches emitted one by one. */
static void test_groups_of_shapes(void)
{
    net chains, branches;
    uint64_t seed = npu_test_seed();
    memset(&chains, 0, sizeof chains);
    memset(&branches, 0, sizeof branches);
    chains.num_ops = 100;
    for (int i = 0; i < 100; i++) {
        chains.colour[i] = (uint8_t)(i % 2);
        chains.from[i][0] = i < 2 ? -1 : i - 2;
        chains.from[i][1] = -2;
    }
    branches.num_ops = 8 * 7;
    for (int i = 0; i < 8 * 7; i++) {
        branches.colour[i] = (uint8_t)(i % 7 % 2);
        branches.from[i][0] = i % 7 ? i - 1 : -1;
        branches.from[i][1] = -2;
    }
    NPU_CHECK_EQ(net_groups(&chains, 1, false, true, NULL), 50);
    NPU_CHECK_EQ(net_groups(&chains, 1, false, false, NULL), 1);
    NPU_CHECK_EQ(net_groups(&branches, 1, false, true, NULL), 25);
    NPU_CHECK_EQ(net_groups(&branches, 1, false, false, NULL), 4);
    for (int round = 0; round < 10; round++) {
        NPU_CHECK_EQ(net_groups(&branches, 1, false, false, &seed), 4);
    }
}

/* Graphs too large for brute force: never more groups on the accelerator than waves from the better start. */
static void test_groups_of_large(void)
{
    static const struct { uint32_t num_ops, reach; } rows[] = { { 1000, 1000 }, { 1000, 20 }, { 10000, 10000 }, { 10000, 50 } };
    uint64_t seed = npu_test_seed();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        net n = random_net_near(rows[i].num_ops, 2, rows[i].reach, &seed);
        uint32_t waves = oracle_waves(n.num_ops, n.colour, n.from), groups = net_groups(&n, 1, false, false, NULL);
        NPU_CHECK_THAT(groups <= waves, "%u ops: %u groups, %u waves", (unsigned)n.num_ops, (unsigned)groups,
                       (unsigned)waves);
        NPU_CHECK(net_groups(&n, 1, false, true, NULL) > 2 * groups);
    }
}

/* Self-attention of two heads and a small network behind it, layers of them; the accelerator refuses all views. */
static npu_value transformer_layer(npu_graph *g, npu_value x)
{
    npu_value none = { 0 }, heads[3];
    npu_value y = npu_layer_norm(g, x, W(8), W(8), 1, 1e-5);
    for (int i = 0; i < 3; i++) {
        heads[i] = npu_transpose(g, npu_reshape(g, npu_linear(g, y, W(8, 8), W(8)), DIMS(4, 2, 4), 3), 0, 1);
    }
    y = npu_softmax(g, npu_matmul(g, heads[0], npu_transpose(g, heads[1], 1, 2)), -1);
    y = npu_reshape(g, npu_transpose(g, npu_matmul(g, y, heads[2]), 0, 1), DIMS(4, 8), 2);
    x = npu_add(g, x, npu_linear(g, y, W(8, 8), none));
    y = npu_gelu(g, npu_linear(g, npu_layer_norm(g, x, W(8), W(8), 1, 1e-5), W(16, 8), W(16)), NULL);
    return npu_add(g, x, npu_linear(g, y, W(8, 16), W(8)));
}

static uint32_t count_groups(const npu_plan *plan, uint32_t backend)
{
    uint32_t num = 0;
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        const npu_step *s = npu_plan_step(plan, i);
        num += s->type == NPU_STEP_PARTITION && s->backend == backend;
    }
    return num;
}

static void test_groups_of_transformer(void)
{
    static const char *const views[] = { "aten.reshape.default", "aten.view.default", "aten.transpose.int" };
    npu_sim_desc desc = { .deny = views, .num_deny = 3, .emulate = npu_ref_backend() };
    for (int contiguous = 0; contiguous < 2; contiguous++) {
        rig r = rig_start(&desc, 1);
        npu_value x = npu_input(r.graph, "x", F32(4, 8));
        for (int i = 0; i < 12; i++) {
            x = transformer_layer(r.graph, x);
        }
        npu_output(r.graph, "y", x);
        r.desc.contiguous = contiguous != 0;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_THAT(contiguous ? count_groups(r.plan, 0) > 48 : count_groups(r.plan, 0) <= 25, "%u groups",
                       (unsigned)count_groups(r.plan, 0));
        rig_end(&r);
    }
}

/* Who reads a view elsewhere reads its operand: where a refused op changes what others read of a group, the group is
   compiled anew, though its ops are the same. */
static void test_outputs_changed(void)
{
    static const char *const deny[] = { "aten.mul.Tensor" };
    static const char text[] =
        "npu_ir 1\ngraph main\ninput x : f32[4,8]\nc = aten.neg.default(x)\nm = aten.mul.Tensor(c, c)\n"
        "s = aten.softmax.int(m, dim=-1)\nt = aten.softmax.int(c, dim=-1)\nv = aten.reshape.default(t, shape=[-1, 8])\n"
        "a = aten.add.Tensor(s, s)\nb = aten.add.Tensor(v, a)\ny = aten.neg.default(b)\noutput y = y\n";
    for (int inner = 0; inner < 2; inner++) {
        npu_sim_desc desc = { .deny = deny, .num_deny = 1, .refuse = "aten.add.Tensor", .emulate = npu_ref_backend(),
                              .emulate_all = true, .plans_inner = inner };
        rig r = rig_start(&desc, 1);
        float in[32], want[32];
        npu_exec *cpu = NULL;
        npu_array input = { "x", F32(4, 8), in };
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, npu_test_graph_desc(), &r.diag), NPU_OK);
        fill(in, 32, 3);
        NPU_CHECK_STATUS(npu_exec_create_simple(&cpu, r.graph, &r.backends[1], 1, &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_input(cpu, &input), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(cpu), NPU_OK);
        memcpy(want, npu_exec_output(cpu, 0, NULL), sizeof want);
        npu_exec_destroy(cpu);
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
        if (r.exec) {
            NPU_CHECK_STATUS(npu_exec_set_input(r.exec, &input), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            NPU_CHECK_BYTES(npu_exec_output(r.exec, 0, NULL), want, sizeof want);
        }
        rig_end(&r);
    }
}

/* Dense views that a device refuses, but passes over, part no groups; bits are those of the CPU, by any way to run. */
static void test_views_passed_over(void)
{
    static const char *const views[] = { "aten.reshape.default", "aten.view.default", "aten.transpose.int" };
    static const npu_rates fast = { .launch_ns = 10, .num_rows = 1, .rows = { { NULL, 1, 0.001, 0 } } },
                           slow = { .launch_ns = 10, .num_rows = 1, .rows = { { NULL, 100, 1, 0 } } };
    static const npu_rates *const rates[] = { &fast, &slow };
    enum { LAYERS = 12, PASSES = 1, INNER = 2, IN_PLACE = 4, PRICED = 8, FORMS = 16, TRANSPOSES = 32 };
    static const struct { int how; uint32_t least, most; bool overlap; } rows[] = {
        { 0, 20, 200, false }, { PASSES, 1, 1, false }, { PASSES | INNER, 1, 1, false },
        { PASSES | IN_PLACE, 1, 1, true },
        { PASSES | PRICED, 1, 1, false }, { PASSES | FORMS, 1, 1, false }, { TRANSPOSES, 2, 60, false },
        { PASSES | TRANSPOSES, 2, 60, true },
    };
    float x[32], want[32];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_sim_desc desc = { .deny = views, .num_deny = rows[i].how & TRANSPOSES ? 3 : 2, .emulate = npu_ref_backend(),
                              .emulate_all = true, .passes_views = rows[i].how & PASSES,
                              .plans_inner = rows[i].how & INNER, .in_place = rows[i].how & IN_PLACE,
                              .pads_channels = rows[i].how & FORMS, .async = rows[i].overlap };
        npu_exec *cpu = NULL;
        rig r = rig_start(&desc, 1);
        npu_value y = npu_input(r.graph, "x", F32(4, 8));
        npu_spec spec = *npu_value_spec(r.graph, y);
        npu_sim_counters before;
        for (int k = 0; k < LAYERS; k++) {
            y = transformer_layer(r.graph, y);
        }
        npu_output(r.graph, "y", y);
        r.desc.overlap = r.exec_desc.overlap = rows[i].overlap;
        r.desc.rates = rows[i].how & PRICED ? rates : NULL;
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "row %u: %s", (unsigned)i, r.diag.message);
        uint32_t groups = count_groups(r.plan, 0);
        NPU_CHECK_THAT(groups >= rows[i].least && groups <= rows[i].most, "row %u: %u groups", (unsigned)i,
                       (unsigned)groups);
        fill(x, 32, 5);
        NPU_CHECK_STATUS(npu_exec_create_simple(&cpu, r.graph, &r.backends[1], 1, &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_input(cpu, &(npu_array){ "x", spec, x }), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(cpu), NPU_OK);
        memcpy(want, npu_exec_output(cpu, 0, NULL), sizeof want);
        npu_exec_destroy(cpu);
        before = npu_sim_count(r.sims[0]);
        NPU_CHECK_STATUS(npu_exec_set_input(r.exec, &(npu_array){ "x", spec, x }), NPU_OK);
        NPU_CHECK_THAT(npu_exec_run(r.exec) == NPU_OK, "row %u: %s", (unsigned)i, npu_exec_diag(r.exec)->message);
        NPU_CHECK_BYTES(npu_exec_output(r.exec, 0, NULL), want, sizeof want);
        if (rows[i].how == PASSES) { /* of a layer 14 ops and 5 transposes run, 4 reshapes do not */
            NPU_CHECK_EQ(npu_sim_count(r.sims[0]).ops - before.ops, LAYERS * 19);
        }
        rig_end(&r);
    }
}

/* What waits behind a view that the device refuses goes with what the CPU makes meanwhile: in one group more, not two.
   On the CPU what waits behind one that it leaves to the device goes on, before the device has a group: in one in all,
   where that is the limit. */
static void test_views_wait(void)
{
    static const char head[] = "npu_ir 1\ngraph main\ninput x : f32[4,8]\na = aten.neg.default(x)\n"
                               "v = aten.reshape.default(a, shape=[8, 4])\n";
    static const struct { const char *deny[2], *ops; uint32_t max_groups, groups; } rows[] = {
        { { "aten.reshape.default", "aten.tanh.default" },
          "b = aten.relu.default(v)\nt = aten.tanh.default(a)\nc = aten.add.Tensor(t, a)\n", 0, 2 },
        { { "aten.softmax.int", "aten.tanh.default" },
          "s = aten.softmax.int(a, dim=-1)\nb = aten.relu.default(s)\n"
          "t = aten.tanh.default(v)\nc = aten.relu.default(t)\n", 1, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_sim_desc desc = { .deny = rows[i].deny, .num_deny = 2 };
        rig r = rig_start(&desc, 1);
        char text[512];
        snprintf(text, sizeof text, "%s%soutput b = b\noutput c = c\n", head, rows[i].ops);
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), npu_test_graph_desc(), &r.diag), NPU_OK);
        r.desc.max_groups = rows[i].max_groups;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_EQ(count_groups(r.plan, 0), rows[i].groups);
        rig_end(&r);
    }
}

/* What is given up for a limit of groups may let others be parted by more waves: they are given up, too. */
static void test_max_groups_of_two_devices(void)
{
    static const char *const first[] = { "aten.relu.default", "aten.sigmoid.default", "aten.exp.default" },
                      *const second[] = { "aten.neg.default", "aten.abs.default" };
    static const char text[] =
        "npu_ir 1\ngraph main\ninput x : f32[4]\nk = aten.tanh.default(x)\ns = aten.neg.default(x)\n"
        "p = aten.sigmoid.default(x)\nm = aten.tanh.default(s)\nd = aten.relu.default(s)\ne = aten.relu.default(m)\n"
        "q = aten.exp.default(p)\nu = aten.abs.default(p)\nw = aten.abs.default(u)\n"
        "output k = k\noutput d = d\noutput e = e\noutput q = q\noutput w = w\n";
    npu_sim_desc descs[2] = { { .name = "first", .allow = first, .num_allow = 3 },
                              { .name = "second", .allow = second, .num_allow = 2 } };
    for (uint32_t most = 1; most <= 3; most++) {
        rig r = rig_start(descs, 2);
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, npu_test_graph_desc(), &r.diag), NPU_OK);
        r.desc.max_groups = most;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_THAT(count_groups(r.plan, 0) + count_groups(r.plan, 1) <= most, "over %u groups", (unsigned)most);
        rig_end(&r);
    }
}

/* However long ops last where they are taken, none goes where it is refused. */
static void test_longest_ops(void)
{
    static const char *const deny[] = { "aten.relu.default" }, *const none[] = { "aten.exp.default" };
    static const npu_rates longest = { .num_rows = 1, .rows = { { NULL, 1e15, 0, 0 } } },
                           fast = { .launch_ns = 10, .num_rows = 1, .rows = { { NULL, 1, 0, 0 } } };
    static const npu_rates *const rates[] = { &fast, &fast, &longest };
    npu_sim_desc descs[2] = { { .name = "first", .deny = deny, .num_deny = 1 },
                              { .name = "second", .allow = none, .num_allow = 1 } };
    rig r = rig_start(descs, 2);
    npu_value x = npu_tanh(r.graph, npu_input(r.graph, "x", F32(4)));
    npu_output(r.graph, "y", npu_neg(r.graph, npu_relu(r.graph, npu_relu(r.graph, x))));
    r.desc.rates = rates;
    r.desc.max_exhaustive_ops = 1;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    for (uint32_t id = 2; id <= 3; id++) {
        NPU_CHECK_EQ(npu_plan_op_backend(r.plan, (npu_op){ id }, NULL, NULL), 2);
    }
    rig_end(&r);
}

/* 16 branches, each of an op on the CPU, one on the accelerator and a sum on the CPU: all at once they keep 16 large values
   alive, one after the other one. */
static uint64_t host_bytes_of_branches(int64_t size, bool contiguous, bool overlap, uint32_t *groups)
{
    static const char *const deny[] = { "aten.neg.default", "aten.sum.dim_IntList" };
    npu_sim_desc desc = { .deny = deny, .num_deny = 2 };
    rig r = rig_start(&desc, 1);
    npu_value x = npu_input(r.graph, "x", F32(size)), all = { 0 };
    npu_memory m;
    for (int i = 0; i < 16; i++) {
        npu_value y = npu_sum(r.graph, npu_relu(r.graph, npu_neg(r.graph, x)), DIMS(0), 1, false);
        all = i ? npu_add(r.graph, all, y) : y;
    }
    npu_output(r.graph, "y", all);
    r.desc.contiguous = contiguous;
    r.desc.overlap = overlap;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(r.plan, 1, &m), NPU_OK);
    *groups = count_groups(r.plan, 0);
    rig_end(&r);
    return m.activations;
}

static void test_host_memory(void)
{
    uint32_t groups, few;
    uint64_t least = host_bytes_of_branches(1 << 18, true, false, &groups);
    NPU_CHECK(groups >= 16);
    NPU_CHECK(host_bytes_of_branches(1 << 18, false, false, &groups) * 4 <= least * 5);
    NPU_CHECK(host_bytes_of_branches(1 << 18, false, true, &few) > 2 * least && few < groups);
    host_bytes_of_branches(1 << 10, false, false, &few); /* too little to matter */
    NPU_CHECK(few < groups);
}

/* The order of emission does not matter. */
static void test_shuffled(void)
{
    uint64_t seed = npu_test_seed();
    for (uint32_t num_sims = 1; num_sims < 3; num_sims++) {
        net n = random_net(60, num_sims + 1, &seed);
        uint32_t all = net_groups(&n, num_sims, true, false, NULL);
        for (int round = 0; round < 50; round++) {
            NPU_CHECK_EQ(net_groups(&n, num_sims, true, false, &seed), all);
        }
    }
}

/* Whatever the groups, the numbers are those of one backend. */
static void test_grouped_runs(void)
{
    uint64_t seed = npu_test_seed();
    for (int round = 0; round < 20; round++) {
        net n = random_net(40, 3, &seed);
        float x[4] = { 1, -2, 3, -4 };
        rig r = rig_start(NULL, 2);
        net_emit(&n, r.graph, &seed);
        r.desc.override = net_place;
        r.desc.override_ctx = &n;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_exec *alone = NULL;
        npu_tolerance same = { .has_rtol = true, .has_atol = true };
        NPU_CHECK_STATUS(npu_exec_create_simple(&alone, r.graph, r.backends + 2, 1, &r.diag), NPU_OK);
        npu_test_input(alone, "x", x, sizeof x);
        npu_test_input(r.exec, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_exec_compare(r.exec, alone, &same, NULL, NULL, &r.diag), NPU_OK);
        npu_exec_destroy(alone);
        rig_end(&r);
    }
}

/* ---- placement by cost ------------------------------------------------------------------------------------------- */

/* A backend for plans alone: takes and costs what a table says, op by op. */
typedef struct priced {
    npu_backend backend;
    const cost_graph *costs;
    uint32_t index;
} priced;

static npu_status priced_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    const priced *p = ctx;
    answer->reason = op->kind == NPU_NPU_IF || p->costs->ns[op->op - 1][p->index] < 0 ? NPU_REASON_OP : NPU_REASON_CLAIMED;
    return NPU_OK;
}

static npu_status priced_cost(void *ctx, const npu_op_info *op, npu_cost *answer)
{
    const priced *p = ctx;
    answer->ns = (uint64_t)p->costs->ns[op->op - 1][p->index];
    return NPU_OK;
}

static const npu_backend *priced_start(priced *p, const npu_backend *like, const cost_graph *costs, uint32_t index)
{
    p->backend = *like;
    p->backend.ctx = p;
    p->backend.supports = priced_supports;
    p->backend.cost = priced_cost;
    p->costs = costs;
    p->index = index;
    return &p->backend;
}

/* Random ops with results of random sizes, a part of which the accelerators take. Models: a fast device nearby, one far
   away, one that is faster or slower by chance and costs much to launch. */
static cost_graph random_costs(uint32_t num_ops, uint32_t num_backends, uint32_t percent, uint32_t model, uint64_t *seed)
{
    static const double launch[] = { 2000, 5000, 50000 }, transfer[] = { 500, 20000, 5000 }, byte[] = { 0.1, 1, 0.3 };
    cost_graph g;
    memset(&g, 0, sizeof g);
    g.num_ops = num_ops;
    g.num_backends = num_backends;
    g.input_bytes = 4096;
    g.fetched = (1u << num_ops) - 1;
    for (uint32_t i = 0; i < num_ops; i++) {
        double cpu = 1000 + net_random(seed) % 100000;
        for (int k = 0; k < 2; k++) {
            uint32_t from = net_random(seed) % (i < 4 ? i + 1 : 5);
            if (from == 0 && k == 0) {
                g.reads_input |= 1u << i;
            } else if (from > 0) {
                g.needs[i] |= 1u << (i - from);
                g.fetched &= ~(1u << (i - from));
            }
        }
        g.reads_input |= g.needs[i] ? 0 : 1u << i;
        g.bytes[i] = 4 * (1 + net_random(seed) % 10000);
        for (uint32_t b = 0; b + 1 < num_backends; b++) {
            double speed = model < 2 ? 8 : 0.3 + net_random(seed) % 100 / 20.0;
            g.ns[i][b] = net_random(seed) % 100 < percent ? floor(1 + cpu / speed) : -1;
        }
        g.ns[i][num_backends - 1] = cpu;
    }
    for (uint32_t b = 0; b + 1 < num_backends; b++) {
        g.launch[b] = launch[model];
        g.transfer[b] = transfer[model];
        g.byte_ns[b] = byte[model];
    }
    return g;
}

static npu_value emit_if(npu_graph *g, npu_value condition, const npu_value *in, uint32_t num, npu_spec result)
{
    npu_arg args[4] = { npu_arg_tensor(NULL, condition), npu_arg_tensors(NULL, in, num) };
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t index = 0;
        npu_graph *child = npu_graph_add_child(g, k ? "else" : "then", NPU_LEVEL_TENSOR, &index);
        for (uint32_t i = 0; i < num; i++) {
            npu_input(child, NULL, *npu_value_spec(g, in[i]));
        }
        npu_output(child, "y", npu_op_result(child, npu_emit_typed(child, "mine.of0", NULL, 0, &result, 1), 0));
        args[2 + k] = npu_arg_graph(k ? "else_body" : "then_body", index);
    }
    return npu_op_result(g, npu_emit_name(g, "npu.if", args, 4), 0);
}

static void costs_emit(const cost_graph *c, npu_graph *g)
{
    npu_value x = npu_input(g, "x", F32((int64_t)c->input_bytes / 4)), made[COST_MAX_OPS];
    npu_value condition = npu_input(g, "c", npu_spec_tensor(NPU_BOOL, 0, NULL));
    for (uint32_t i = 0; i < c->num_ops; i++) {
        npu_arg args[COST_MAX_OPS + 1];
        npu_value in[COST_MAX_OPS + 1];
        npu_spec spec = F32((int64_t)c->bytes[i] / 4);
        uint32_t num = 0;
        char name[16];
        if (c->reads_input >> i & 1) {
            in[num++] = x;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (c->needs[i] >> k & 1) {
                in[num++] = made[k];
            }
        }
        for (uint32_t k = 0; k < num; k++) {
            args[k] = npu_arg_tensor(NULL, in[k]);
        }
        snprintf(name, sizeof name, "mine.of%u", (unsigned)num);
        made[i] = c->control >> i & 1 ? emit_if(g, condition, in, num, spec)
                                      : npu_op_result(g, npu_emit_typed(g, name, args, num, &spec, 1), 0);
        snprintf(name, sizeof name, "y%u", (unsigned)i);
        if (c->fetched >> i & 1) {
            npu_output(g, name, made[i]);
        }
        if (c->fetched_twice >> i & 1) {
            name[0] = 'z';
            npu_output(g, name, made[i]);
        }
    }
}

/* What the plan says that it takes, which is what its placement costs; *last is with all on the CPU. */
static double planned_ns(cost_graph *c, uint32_t max_exhaustive, double *last)
{
    rig r = rig_start(NULL, c->num_backends - 1);
    priced backends[COST_MAX_BACKENDS];
    npu_rates rates[COST_MAX_BACKENDS];
    const npu_rates *each[COST_MAX_BACKENDS] = { NULL };
    npu_prediction predicted;
    uint8_t where[COST_MAX_OPS];
    costs_emit(c, r.graph);
    NPU_CHECK_THAT(npu_graph_status(r.graph) == NPU_OK, "%s", npu_graph_diag(r.graph)->message);
    memset(rates, 0, sizeof rates);
    for (uint32_t b = 0; b < c->num_backends; b++) {
        r.backends[b] = priced_start(&backends[b], r.backends[b], c, b);
        rates[b].launch_ns = c->launch[b];
        rates[b].transfer_ns = c->transfer[b];
        rates[b].up = rates[b].down = c->byte_ns[b] > 0 ? 1e9 / c->byte_ns[b] : 0;
        each[b] = &rates[b];
    }
    r.desc.rates = each;
    r.desc.max_exhaustive_ops = max_exhaustive;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_predict(r.plan, &predicted), NPU_OK);
    for (uint32_t i = 0; i < c->num_ops; i++) {
        where[i] = (uint8_t)npu_plan_op_backend(r.plan, op_id(i + 1), NULL, NULL);
        if (c->control >> i & 1) { /* it is told what nobody gave */
            NPU_CHECK_EQ(where[i], c->num_backends);
            c->ns[i][--where[i]] = npu_plan_op_ns(r.plan, op_id(i + 1), c->num_backends);
        }
    }
    NPU_CHECK_NEAR(predicted.ns / cost_of(c, where), 1, c->num_backends > 2 ? 0.1 : 1e-5);
    *last = predicted.last_ns;
    rig_end(&r);
    return predicted.ns;
}

/* The best there is where all placements are tried, and near it by cuts and descent; never worse than the CPU alone. */
static void test_least_cost(void)
{
    static const struct { uint32_t num_backends, max_exhaustive, rounds; double total, worst; bool has_control, is_fetched_twice; } rows[] = {
        { 2, 14, 3, 1.00001, 1.00001, false, false }, { 2, 1, 12, 1.002, 1.1, false, false },
        { 3, 1, 12, 1.002, 1.2, false, false }, { 2, 14, 2, 1.00001, 1.00001, true, false }, { 3, 1, 4, 1.002, 1.2, true, false },
        { 2, 14, 3, 1.00001, 1.00001, false, true }, { 3, 1, 12, 1.002, 1.2, false, true }
    };
    uint64_t seed = npu_test_seed();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = 0, possible = 0, worst = 1;
        uint32_t exact = 0, num = 0;
        for (uint32_t round = 0; round < rows[i].rounds * 12; round++) {
            uint32_t num_ops = rows[i].max_exhaustive > 1 ? 9 + round % 4 : 7 + round % 8;
            cost_graph c = random_costs(num_ops, rows[i].num_backends, 30 + round % 4 * 20, round % 3, &seed);
            c.fetched_twice = rows[i].is_fetched_twice ? c.fetched : 0;
            for (uint32_t op = 1; op < num_ops && rows[i].has_control; op++) {
                if (net_random(&seed) % 5 == 0) {
                    c.control |= 1u << op;
                    c.ns[op][0] = c.ns[op][rows[i].num_backends - 2] = -1;
                }
            }
            double last, ns = planned_ns(&c, rows[i].max_exhaustive, &last), least = cost_least(&c, ns);
            NPU_CHECK_THAT(ns <= last * 1.00001, "round %u: %g ns, on the CPU alone %g", (unsigned)round, ns, last);
            got += ns;
            possible += least;
            worst = ns / least > worst ? ns / least : worst;
            exact += ns < least * 1.00001;
            num++;
        }
        printf("%u backends%s, exhaustive up to %u: %.4f of the optimum in total, %.3f at worst, exact %u of %u\n",
               (unsigned)rows[i].num_backends,
               rows[i].has_control ? " and control flow" : rows[i].is_fetched_twice ? ", results fetched twice" : "", (unsigned)rows[i].max_exhaustive, got / possible, worst, (unsigned)exact, (unsigned)num);
        NPU_CHECK(got / possible <= rows[i].total && worst <= rows[i].worst);
    }
}

/* A launch that only several ops at once save: all in front of one that the accelerator does not take, or all others. */
static void test_sides_move(void)
{
    static cost_graph rows[] = {
        { .num_ops = 10, .num_backends = 2, .reads_input = 3, .fetched = 1 << 1 | 1 << 9, .input_bytes = 16,
          .needs = { 0, 1 << 0, 1 << 1, 1 << 2 | 1 << 1, 1 << 3, 1 << 3, 1 << 4, 1 << 6 | 1 << 5, 1 << 7, 1 << 8 },
          .bytes = { 52480, 68, 24784, 344, 56, 1884, 3124, 44, 996, 28 },
          .ns = { { 1913, 34161 }, { 2390, 13677 }, { 986, 7777 }, { 463, 2677 }, { 128, 1645 }, { -1, 10058 },
                  { 4889, 75383 }, { 17251, 167039 }, { 231, 1636 }, { 11426, 128178 } },
          .launch = { 104397 }, .transfer = { 106 }, .byte_ns = { 0.305 } },
        { .num_ops = 10, .num_backends = 2, .fetched = 1 << 2 | 1 << 8 | 1 << 9, .input_bytes = 20,
          .reads_input = 1 << 0 | 1 << 2 | 1 << 6 | 1 << 8 | 1 << 9,
          .needs = { 0, 1 << 0, 1 << 0, 1 << 0, 1 << 1, 1 << 3, 0, 1 << 5 | 1 << 6, 1 << 7 | 1 << 4, 1 << 4 | 1 << 6 },
          .bytes = { 2444, 31432, 40, 8, 8688, 15224, 8, 8, 46568, 20 },
          .ns = { { 4035, 23018 }, { -1, 2836 }, { 1219, 21256 }, { -1, 4608 }, { 330, 5572 }, { 2451, 15135 },
                  { 703, 5949 }, { 428, 2517 }, { 1813, 21221 }, { 926, 9574 } },
          .launch = { 44638 }, .transfer = { 412 }, .byte_ns = { 0.0433 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double last, ns = planned_ns(&rows[i], 1, &last), least = cost_least(&rows[i], ns);
        NPU_CHECK_THAT(ns < least * 1.00001 && ns < last * 0.9, "graph %u: %g ns, possible are %g, on the CPU alone %g",
                       (unsigned)i, ns, least, last);
    }
}

static int all_first(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)op, (void)label;
    return 0;
}

/* An op that was placed by hand, with costs: where compile refuses it there, it is offered to the others, and priced. */
static void test_refused_by_hand(void)
{
    static const npu_rates rates = { .launch_ns = 10, .num_rows = 1, .rows = { { .fixed_ns = 100 } } };
    const npu_rates *each[] = { &rates, &rates };
    spy first;
    npu_prediction p;
    uint32_t reason;
    rig r = rig_start(NULL, 0);
    r.backends[0] = spy_start(&first, "first");
    r.backends[1] = npu_ref_backend();
    r.desc.num_backends = 2;
    r.desc.override = all_first;
    r.desc.rates = each;
    first.refuse = "aten.relu.default";
    npu_output(r.graph, "y", npu_neg(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4)))));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(1), NULL, NULL), 0);
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
    const npu_plan *plan = npu_program_plan(r.program);
    NPU_CHECK_EQ(npu_plan_op_backend(plan, op_id(1), &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
    NPU_CHECK_EQ(npu_plan_op_backend(plan, op_id(2), NULL, NULL), 0);
    NPU_CHECK_STATUS(npu_plan_predict(plan, &p), NPU_OK);
    NPU_CHECK(p.ops_ns > 100);
    rig_end(&r);
}

/* A chain with costs of a table, for plans alone. */
typedef struct chained {
    npu_backend backend;
    double (*ns)[COST_MAX_BACKENDS];
    uint32_t index;
} chained;

static npu_status chained_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    const chained *c = ctx;
    answer->reason = c->ns[op->op - 1][c->index] < 0 ? NPU_REASON_OP : NPU_REASON_CLAIMED;
    return NPU_OK;
}

static npu_status chained_cost(void *ctx, const npu_op_info *op, npu_cost *answer)
{
    const chained *c = ctx;
    answer->ns = (uint64_t)c->ns[op->op - 1][c->index];
    return NPU_OK;
}

/* What a plan of the chain on two accelerators and the CPU takes. */
static double chain_ns(const cost_graph *costs, double (*ns)[COST_MAX_BACKENDS], uint32_t num_ops)
{
    rig r = rig_start(NULL, 2);
    chained backends[COST_MAX_BACKENDS];
    npu_rates rates[COST_MAX_BACKENDS];
    const npu_rates *each[COST_MAX_BACKENDS];
    npu_prediction predicted;
    npu_value x = npu_input(r.graph, "x", F32((int64_t)costs->input_bytes / 4));
    memset(rates, 0, sizeof rates);
    for (uint32_t i = 0; i < num_ops; i++) {
        x = npu_abs(r.graph, x);
    }
    npu_output(r.graph, "y", x);
    for (uint32_t b = 0; b < COST_MAX_BACKENDS; b++) {
        backends[b] = (chained){ *r.backends[b], ns, b };
        backends[b].backend.ctx = &backends[b];
        backends[b].backend.supports = chained_supports;
        backends[b].backend.cost = chained_cost;
        r.backends[b] = &backends[b].backend;
        rates[b].launch_ns = costs->launch[b];
        rates[b].transfer_ns = costs->transfer[b];
        rates[b].up = rates[b].down = costs->byte_ns[b] > 0 ? 1e9 / costs->byte_ns[b] : 0;
        each[b] = &rates[b];
    }
    r.desc.rates = each;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_predict(r.plan, &predicted), NPU_OK);
    rig_end(&r);
    return predicted.ns;
}

/* Of chains the optimum is known however long they are. Ops are up to a hundred times faster on one of the accelerators
   than on the other, and launches are as dear as some ops. */
static void test_long_chains(void)
{
    static const struct { uint32_t num_ops, rounds; double total, worst; } rows[] = {
        { 30, 12, 1.002, 1.03 }, { 200, 12, 1.005, 1.03 }, { 1000, 6, 1.005, 1.03 }, { 6000, 2, 1.01, 1.03 }
    };
    static double ns[6000][COST_MAX_BACKENDS];
    uint64_t seed = npu_test_seed();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = 0, possible = 0, worst = 1;
        for (uint32_t round = 0; round < rows[i].rounds; round++) {
            cost_graph c = { .num_backends = COST_MAX_BACKENDS, .input_bytes = 40000, .transfer = { 1000, 3000 }, .byte_ns = { 0.02, 0.3 } };
            double least, planned;
            for (uint32_t b = 0; b + 1 < COST_MAX_BACKENDS; b++) {
                c.launch[b] = round % 2 ? 100000 + (double)(net_random(&seed) % 200000) : 2000 + (double)(net_random(&seed) % 20000);
            }
            for (uint32_t op = 0; op < rows[i].num_ops; op++) {
                double cpu = 1000 * exp((double)(net_random(&seed) % 5700) / 1000);
                for (uint32_t b = 0; b < COST_MAX_BACKENDS; b++) {
                    double speed = b + 1 == COST_MAX_BACKENDS ? 1 : exp((double)(net_random(&seed) % 4600) / 1000);
                    ns[op][b] = speed > 1 && net_random(&seed) % 10 == 0 ? -1 : floor(1 + cpu / speed);
                }
            }
            least = cost_chain_least(&c, ns, rows[i].num_ops);
            planned = chain_ns(&c, ns, rows[i].num_ops);
            NPU_CHECK(planned >= least * 0.99999);
            got += planned / least;
            possible += 1;
            worst = planned / least > worst ? planned / least : worst;
        }
        printf("chains of %u ops: %.4f of the optimum, %.3f at worst\n", (unsigned)rows[i].num_ops, got / possible, worst);
        NPU_CHECK(got / possible <= rows[i].total && worst <= rows[i].worst);
    }
}

/* Of two accelerators alike each takes one end of a chain alone: one of them does the most of it, the CPU the other end. */
static void test_one_of_two_alike(void)
{
    static const double ns[8] = { 100, 50, 10000, 4000, 20000, 13000, 23000, 200 };
    static const double bytes[8] = { 8, 6800, 400, 8000, 120, 31000, 16000, 12 };
    cost_graph c;
    double last;
    memset(&c, 0, sizeof c);
    c.num_ops = 8;
    c.num_backends = 3;
    c.reads_input = 1;
    c.fetched = 0x81;
    c.input_bytes = 64000;
    for (uint32_t i = 0; i < 8; i++) {
        c.needs[i] = i ? 1u << (i - 1) : 0;
        c.bytes[i] = bytes[i];
        c.ns[i][0] = i < 6 ? ns[i] : -1;
        c.ns[i][1] = i != 1 ? ns[i] : -1;
        c.ns[i][2] = 8 * ns[i];
    }
    for (uint32_t b = 0; b < 2; b++) {
        c.launch[b] = 5000;
        c.transfer[b] = 20000;
        c.byte_ns[b] = 1;
    }
    NPU_CHECK_NEAR(planned_ns(&c, 1, &last) / cost_least(&c, last), 1, 1e-5);
}

/* One launch pays for ops behind others that the accelerator refuses only where an op that these wait for leaves it: no
   step that moves ops one way finds that. */
static void test_exchanged(void)
{
    static const struct { uint32_t needs; double accelerator, cpu, bytes; } ops[11] = {
        { 0, -1, 763, 4 }, { 0, 346, 1153, 328 }, { 0, 4396, 26398, 16 }, { 0, 127, 215, 328 }, { 0, 1763, 4168, 4 },
        { 1 << 4, 103, 279, 4 }, { 1 << 4, -1, 310, 4 }, { 1 << 4, 212, 738, 4 }, { 1 | 1 << 6, 221, 996, 4 },
        { 1 << 7 | 1, 228, 1379, 4 }, { 1 << 9 | 1 << 8, 2144, 6220, 4 }
    };
    cost_graph c;
    double last;
    memset(&c, 0, sizeof c);
    c.num_ops = 11;
    c.num_backends = 2;
    c.input_bytes = 328;
    c.fetched = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 10;
    c.launch[0] = 19402;
    c.byte_ns[0] = 0.8;
    for (uint32_t i = 0; i < c.num_ops; i++) {
        c.needs[i] = ops[i].needs;
        c.reads_input |= ops[i].needs ? 0 : 1u << i;
        c.bytes[i] = ops[i].bytes;
        c.ns[i][0] = ops[i].accelerator;
        c.ns[i][1] = ops[i].cpu;
    }
    NPU_CHECK_NEAR(planned_ns(&c, 1, &last) / cost_least(&c, last), 1, 1e-5);
}

/* A backend whose costs are the names': in any order of emission the same. */
typedef struct named {
    npu_backend backend;
    const npu_graph *graph;
    uint64_t index; /* 0: takes all */
} named;

static uint64_t named_random(const named *n, npu_op op)
{
    uint64_t seed = n->index << 32 | (uint64_t)atoi(npu_op_name(n->graph, op) + 1);
    return npu_test_random(&seed);
}

static npu_status named_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    const named *n = ctx;
    answer->reason = n->index && named_random(n, op_id(op->op)) % 8 < 3 ? NPU_REASON_OP : NPU_REASON_CLAIMED;
    return NPU_OK;
}

static npu_status named_cost(void *ctx, const npu_op_info *op, npu_cost *answer)
{
    const named *n = ctx;
    answer->ns = 1 + named_random(n, op_id(op->op)) / 8 % 100000 / (n->index ? 4 : 1);
    return NPU_OK;
}

static double named_ns(const net *n, uint32_t num_sims, uint64_t *seed)
{
    static const npu_rates rates = { .launch_ns = 20000, .transfer_ns = 15000 };
    const npu_rates *each[3] = { &rates, num_sims > 1 ? &rates : NULL, NULL };
    named backends[3];
    npu_prediction predicted;
    rig r = rig_start(NULL, num_sims);
    net_emit(n, r.graph, seed);
    for (uint32_t b = 0; b <= num_sims; b++) {
        backends[b].backend = *r.backends[b];
        backends[b].backend.ctx = &backends[b];
        backends[b].backend.supports = named_supports;
        backends[b].backend.cost = named_cost;
        backends[b].graph = r.graph;
        backends[b].index = b < num_sims ? b + 1 : 0;
        r.backends[b] = &backends[b].backend;
    }
    r.desc.rates = each;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_predict(r.plan, &predicted), NPU_OK);
    rig_end(&r);
    return predicted.ns;
}

/* The cheapest device refuses to compile the op, the next is found too small once it has: the CPU takes it. What a
   device has refused must not go back there for want of room elsewhere, and again to that by cost, for ever. */
static void test_refused_and_too_small(void)
{
    static const npu_rates dear = { .num_rows = 1, .rows = { { NULL, 50, 0, 0 } } };
    static const npu_rates cheap = { .num_rows = 1, .rows = { { NULL, 1, 0, 0 } } };
    static const npu_sim_desc descs[2] = { { .name = "small", .capacity = 1 << 16, .scratch = 1 << 20 },
                                           { .name = "picky", .refuse = "aten.sigmoid.default" } };
    const npu_rates *each[3] = { &dear, &cheap, NULL };
    npu_reason reason;
    rig r = rig_start(descs, 2);
    npu_output(r.graph, "y", npu_sigmoid(r.graph, npu_input(r.graph, "x", F32(4096))));
    r.desc.rates = each;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(1), NULL, NULL), 1);
    rig_unmake(&r);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(npu_program_plan(r.program), op_id(1), &reason, NULL), 2);
    NPU_CHECK_EQ(reason, NPU_REASON_BUDGET);
    rig_end(&r);
}

/* Too many ops to try all: the order of emission matters little. */
static void test_shuffled_by_cost(void)
{
    static const struct { uint32_t num_ops, reach, num_sims; } rows[] = { { 40, 10, 2 }, { 150, 20, 1 }, { 150, 20, 2 }, { 400, 20, 1 }, { 400, 20, 2 } };
    uint64_t seed = npu_test_seed();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        net n = random_net_near(rows[i].num_ops, 2, rows[i].reach, &seed);
        double least = named_ns(&n, rows[i].num_sims, NULL), most = least;
        for (int round = 0; round < 10; round++) {
            double ns = named_ns(&n, rows[i].num_sims, &seed);
            least = ns < least ? ns : least;
            most = ns > most ? ns : most;
        }
        NPU_CHECK_THAT(most <= least * 1.005, "%u ops on %u accelerators: from %.0f to %.0f ns", (unsigned)rows[i].num_ops,
                       (unsigned)rows[i].num_sims, least, most);
    }
}

/* Rates that cannot be, and cost slots that lie, are found while planning. */
static void test_bad_rates(void)
{
    static const struct { npu_rates rates; npu_status status; const char *words; } rows[] = {
        { { .launch_ns = 1 }, NPU_OK, NULL },
        { { .launch_ns = -1 }, NPU_ERR_INVALID_ARGUMENT, "launch_ns" },
        { { .transfer_ns = (double)NAN }, NPU_ERR_INVALID_ARGUMENT, "nan, expected 0 to 1e15" },
        { { .launch_ns = (double)INFINITY }, NPU_ERR_INVALID_ARGUMENT, "launch_ns" },
        { { .transfer_ns = 1e16 }, NPU_ERR_INVALID_ARGUMENT, "transfer_ns is 1e+16, expected 0 to 1e15" },
        { { .up = -1 }, NPU_ERR_INVALID_ARGUMENT, "up" },
        { { .down = 1e-300 }, NPU_ERR_INVALID_ARGUMENT, "down" },
        { { .num_rows = NPU_MAX_RATES + 1 }, NPU_ERR_INVALID_ARGUMENT, "33 rows" },
        { { .num_rows = 1, .rows = { { "matrix", -1, 0, 0 } } }, NPU_ERR_INVALID_ARGUMENT, "matrix" },
        { { .num_rows = 2, .rows = { { "matrix", 1, 0, 0 }, { NULL, 0, (double)NAN, 0 } } }, NPU_ERR_INVALID_ARGUMENT, "(any op): 0, nan and 0 ns, expected 0 to 1e15" },
        { { .num_rows = 1, .rows = { { NULL, 0, 0, 1e300 } } }, NPU_ERR_INVALID_ARGUMENT, "any op" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = chain_start("rnr");
        const npu_rates *each[2] = { &rows[i].rates, NULL };
        r.desc.rates = each;
        NPU_CHECK_STATUS(rig_plan(&r), rows[i].status);
        NPU_CHECK(!rows[i].words || strstr(r.diag.message, rows[i].words));
        rig_end(&r);
    }
    static const struct { double ns; npu_status status; } costs[] = { { 5, NPU_OK }, { 0, NPU_OK }, { 1.7e19, NPU_ERR_BACKEND } };
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        rig r = chain_start("rrr");
        cost_graph c;
        priced lying;
        memset(&c, 0, sizeof c);
        for (int k = 0; k < 3; k++) {
            c.ns[k][0] = costs[i].ns;
        }
        r.backends[0] = priced_start(&lying, r.backends[0], &c, 0);
        NPU_CHECK_STATUS(rig_plan(&r), costs[i].status);
        NPU_CHECK(costs[i].status == NPU_OK || strstr(r.diag.message, "aten.relu"));
        rig_end(&r);
    }
}

/* With rates, too: nothing is placed, nothing is lost. */
static void test_no_ops_by_cost(void)
{
    static const npu_rates rates = { .launch_ns = 1 };
    npu_alloc_counter counter = { 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    rig r = rig_start(NULL, 1);
    const npu_rates *each[2] = { &rates, NULL };
    npu_output(r.graph, "y", npu_input(r.graph, "x", F32(2)));
    r.desc.rates = each;
    r.desc.allocator = &allocator;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    npu_plan_destroy(r.plan);
    r.plan = NULL;
    NPU_CHECK_EQ(counter.live_bytes, 0);
    rig_end(&r);
}

/* Times of ops come from the first row that fits, by name, then category; those of views are none. */
static void test_rate_rows(void)
{
    static const npu_rates npu = { .num_rows = 3, .rows = { { "aten.neg.default", 7, 0, 0 }, { "activation", 11, 1, 0 },
                                                           { NULL, 0, 0, 2 } } };
    const npu_rates *each[2] = { NULL, &npu };
    rig r = chain_start("rnvn");
    npu_output(r.graph, "z", npu_matmul(r.graph, npu_graph_find(r.graph, "x"), weights(r.graph, 2, DIMS(3, 5))));
    r.desc.rates = each;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_ns(r.plan, op_id(1), 1), 11 + 6);
    NPU_CHECK_EQ(npu_plan_op_ns(r.plan, op_id(2), 1), 7);
    NPU_CHECK_EQ(npu_plan_op_ns(r.plan, op_id(3), 1), 0);
    NPU_CHECK_EQ(npu_plan_op_ns(r.plan, op_id(5), 1), 2 * 4 * (6 + 15 + 10));
    NPU_CHECK_EQ(npu_plan_op_refusal(r.plan, op_id(2), 0, NULL), NPU_REASON_OP);
    NPU_CHECK_EQ(npu_plan_op_refusal(r.plan, op_id(1), 0, NULL), NPU_REASON_CLAIMED);
    rig_end(&r);
}

/* Limits take first what saves least, and small groups join their neighbours before they go to the CPU. */
static void test_limits_by_cost(void)
{
    static const npu_rates fast = { .num_rows = 1, .rows = { { NULL, 10, 0, 0 } } };
    static const npu_rates slow = { .num_rows = 2, .rows = { { "aten.abs.default", 9000, 0, 0 }, { NULL, 1000, 0, 0 } } };
    const npu_rates *each[2] = { &fast, &slow };
    uint32_t reason = 0;
    for (uint32_t is_priced = 0; is_priced < 2; is_priced++) { /* three relus, or one abs that saves more than they */
        rig r = rig_start(NULL, 0);
        spy first;
        npu_value y = npu_relu(r.graph, npu_relu(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4)))));
        npu_output(r.graph, "y", npu_abs(r.graph, npu_neg(r.graph, y)));
        r.backends[0] = spy_start(&first, "first");
        r.backends[1] = npu_ref_backend();
        r.desc.num_backends = 2;
        first.only[0] = "aten.relu.default";
        first.only[1] = "aten.abs.default";
        r.desc.rates = is_priced ? each : NULL;
        r.desc.max_groups = 1;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), is_priced ? "P1(1 2 3 4) T1>0(5) P0(5)" : "P0(1 2 3) T0>1(4) P1(4 5)");
        npu_plan_op_backend(r.plan, op_id(is_priced ? 1 : 5), &reason, NULL);
        NPU_CHECK_EQ(reason, NPU_REASON_BUDGET);
        rig_end(&r);
    }
    static const char *const allow[2] = { "aten.relu.default", "aten.neg.default" };
    npu_sim_desc sims[2];
    memset(sims, 0, sizeof sims);
    for (int i = 0; i < 2; i++) { /* the second takes both, the first relu alone */
        sims[i].allow = allow;
        sims[i].num_allow = (uint32_t)i + 1;
    }
    rig r = rig_start(sims, 2);
    npu_value y = npu_neg(r.graph, npu_neg(r.graph, npu_input(r.graph, "x", F32(4))));
    npu_output(r.graph, "y", npu_neg(r.graph, npu_neg(r.graph, npu_relu(r.graph, y))));
    r.desc.min_group_ops = 2;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P1(1 2 3 4 5)");
    npu_plan_op_backend(r.plan, op_id(3), &reason, NULL);
    NPU_CHECK_EQ(reason, NPU_REASON_TOO_SMALL);
    rig_end(&r);
}

/* Where limits forbid what costs least, the least within them: not that without what is outside of them. */
static void test_cheapest_within_limits(void)
{
    static const npu_rates each[3] = {
        { .num_rows = 2, .rows = { { "aten.relu.default", 10, 0, 0 }, { NULL, 30, 0, 0 } } },
        { .num_rows = 2, .rows = { { "aten.neg.default", 10, 0, 0 }, { NULL, 40, 0, 0 } } },
        { .num_rows = 1, .rows = { { NULL, 1000, 0, 0 } } },
    };
    static const npu_rates *const rates[3] = { &each[0], &each[1], &each[2] };
    static const struct { uint32_t min_ops, max_groups, num_exhaustive; const char *steps; uint32_t reason; } rows[] = {
        { 0, 0, 0, "P0(1) T0>1(2) P1(2) T1>0(3) P0(3) T0>1(4) P1(4) T1>0(5) P0(5)", NPU_REASON_COST },
        { 2, 0, 0, "P0(1 2 3 4 5)", NPU_REASON_CLAIMED }, { 2, 0, 1, "P0(1 2 3 4 5)", NPU_REASON_CLAIMED },
        { 0, 1, 0, "P0(1 2 3 4 5)", NPU_REASON_CLAIMED }, { 0, 1, 1, "P0(1 2 3 4 5)", NPU_REASON_CLAIMED },
        { 0, 3, 0, "P0(1) T0>1(2) P1(2) T1>0(3) P0(3 4 5)", NPU_REASON_COST },
        { 6, 0, 0, "P2(1 2 3 4 5)", NPU_REASON_TOO_SMALL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        spy first, second;
        uint32_t reason = 0;
        npu_value y = npu_neg(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4))));
        npu_output(r.graph, "y", npu_relu(r.graph, npu_neg(r.graph, npu_relu(r.graph, y))));
        r.backends[0] = spy_start(&first, "first");
        r.backends[1] = spy_start(&second, "second");
        r.backends[2] = npu_ref_backend();
        r.desc.num_backends = 3;
        first.only[0] = second.only[0] = "aten.relu.default";
        first.only[1] = second.only[1] = "aten.neg.default";
        r.desc.rates = rates;
        r.desc.min_group_ops = rows[i].min_ops;
        r.desc.max_groups = rows[i].max_groups;
        r.desc.max_exhaustive_ops = rows[i].num_exhaustive;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), rows[i].steps);
        npu_plan_op_backend(r.plan, op_id(2), &reason, NULL);
        NPU_CHECK_EQ(reason, rows[i].reason);
        rig_end(&r);
    }
}

/* What is expected of a plan and is not true is an error that names the kinds to blame. */
static void test_expected(void)
{
    static const npu_rates npu = { .launch_ns = 1 };
    const npu_rates *each[2] = { &npu, NULL };
    static const struct { npu_expect expect; bool has_rates; npu_status status; const char *words; } rows[] = {
        { { 0 }, false, NPU_OK, NULL },
        { { .max_groups = 2 }, false, NPU_OK, NULL },
        { { .max_predicted_ns = (double)NAN }, false, NPU_ERR_INVALID_ARGUMENT, "max_predicted_ns is " },
        { { .max_predicted_ns = -1 }, false, NPU_ERR_INVALID_ARGUMENT, "max_predicted_ns is -1, expected 0 or more" },
        { { .max_groups = 1 }, false, NPU_ERR_BUDGET, "at most 1 groups on accelerators, there are 2: aten.neg.default x 1" },
        { { .max_last_ops = 1 }, false, NPU_OK, NULL },
        { { .has_max_last_ops = true }, false, NPU_ERR_BUDGET, "ops on the last backend, there are 1: aten.neg.default x 1" },
        { { .max_bytes = 96 }, false, NPU_OK, NULL }, /* x, two transfers, y */
        { { .max_bytes = 95 }, false, NPU_ERR_BUDGET, "bytes moved in a run, there are 96" },
        { { .has_max_bytes = true }, false, NPU_ERR_BUDGET, "aten.relu.default x 1, aten.neg.default x 1" },
        { { .max_predicted_ns = 1 }, false, NPU_ERR_BUDGET, "no backend has rates" },
        { { .max_predicted_ns = 1 }, true, NPU_ERR_BUDGET, "at most 1 ns predicted" },
        { { .max_predicted_ns = 1e9 }, true, NPU_OK, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = chain_start("rnr");
        r.desc.expect = &rows[i].expect;
        r.desc.rates = rows[i].has_rates ? each : NULL;
        NPU_CHECK_STATUS(rig_plan(&r), rows[i].status);
        NPU_CHECK_THAT(!rows[i].words || strstr(r.diag.message, rows[i].words), "'%s'", r.diag.message);
        rig_end(&r);
    }
    spy first; /* a compile that is refused makes another plan, of which the same is expected */
    npu_expect none = { .has_max_last_ops = true };
    rig r = rig_start(NULL, 0);
    r.backends[0] = spy_start(&first, "first");
    r.backends[1] = npu_ref_backend();
    r.desc.num_backends = 2;
    r.desc.expect = &none;
    first.refuse = "aten.neg.default";
    npu_output(r.graph, "y", npu_neg(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4)))));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_ERR_BUDGET);
    NPU_CHECK(strstr(r.diag.message, "aten.neg.default x 1"));
    rig_end(&r);
}

/* A plan that was tampered with, each time in another way: validation says what is wrong. */
static void test_validate(void)
{
    static const char *const words[] = { "", "not before it", "has not the bytes", "what is not there", "no op of this step",
                                         "runs in no step", "no dependency gives", "no output of its step",
                                         "nobody needs", "there already" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rig r = chain_start("rrnnrr");
        npu_diag wrong;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK); /* P0(1 2) T0>1(3) P1(3 4) T1>0(5) P0(5 6) */
        npu_step *steps = (npu_step *)(uintptr_t)npu_plan_step(r.plan, 0);
        uint32_t *dependency = (uint32_t *)(uintptr_t)steps[2].dependencies;
        npu_op *ops = (npu_op *)(uintptr_t)steps[0].ops;
        npu_value *moved = (npu_value *)(uintptr_t)steps[1].outputs;
        switch (i) {
        case 1: *dependency = 3; break;
        case 2: steps[3].bytes /= 2; break;
        case 3: moved->id = 5; break;
        case 4: ops[1].id = ops[0].id; break;
        case 5: steps[4].num_ops = 1; steps[4].num_outputs = 0; break;
        case 6: *dependency = 0; break;
        case 7: steps[2].num_outputs = 0; break;
        case 8: steps[2].num_outputs = 2; break; /* the pool's next entry */
        case 9: steps[3].from = 0; steps[3].backend = 1; moved = (npu_value *)(uintptr_t)steps[3].outputs; moved->id = 3;
            dependency = (uint32_t *)(uintptr_t)steps[3].dependencies; *dependency = 0; break;
        default: break;
        }
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, &wrong), i ? NPU_ERR_INTERNAL : NPU_OK);
        NPU_CHECK_THAT(!i || strstr(wrong.message, words[i]), "case %u: '%s'", (unsigned)i, wrong.message);
        rig_end(&r);
    }
}

/* What to implement next: the kind that leaves fewest groups, or with rates the one that saves most; nothing is lost where
   fewer rows fit. */
static void test_advise(void)
{
    static const npu_rates npu = { .launch_ns = 1000, .num_rows = 2, .rows = { { "aten.neg.default", 10, 0, 0 },
                                                                              { NULL, 1000, 0, 0 } } };
    static const npu_rates cpu = { .num_rows = 2, .rows = { { "aten.neg.default", 100000, 0, 0 }, { NULL, 5000, 0, 0 } } };
    const npu_rates *each[2] = { &npu, &cpu };
    for (int is_priced = 0; is_priced < 2; is_priced++) {
        rig r = chain_start("rnnn");
        npu_value y = npu_relu(r.graph, npu_graph_find(r.graph, "x"));
        for (int i = 0; i < 3; i++) {
            y = npu_relu(r.graph, npu_abs(r.graph, y));
        }
        npu_output(r.graph, "z", y);
        npu_advice rows[4];
        uint32_t num = 0;
        npu_text text = npu_text_init(NULL);
        npu_expect never = { .max_groups = 1 };
        r.desc.backends = r.backends;
        r.desc.rates = is_priced ? each : NULL;
        r.desc.expect = &never;
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, rows, 4, &num, &r.diag), NPU_OK);
        NPU_CHECK_EQ(num, 2);
        NPU_CHECK_STR(rows[0].kind, is_priced ? "aten.neg.default" : "aten.abs.default");
        NPU_CHECK_EQ(rows[0].count, 3);
        NPU_CHECK(rows[0].groups_after <= rows[0].groups_before);
        NPU_CHECK(!is_priced || (rows[0].ns_before - rows[0].ns_after >= 299000 && rows[0].ns_before - rows[0].ns_after <= 305000));
        npu_plan_print_advice(&r.desc, rows, num, &text);
        NPU_CHECK_THAT(strstr(text.data, is_priced ? "aten.neg.default x 3: groups " : "aten.abs.default x 3: groups 4 -> 1, moves"),
                       "%s", text.data);
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, rows + 1, 1, &num, &r.diag), NPU_OK);
        NPU_CHECK(num == 2 && rows[1].kind == rows[0].kind);
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, NULL, 0, &num, &r.diag), NPU_OK); /* how many there are */
        NPU_CHECK_EQ(num, 2);
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, NULL, 1, &num, &r.diag), NPU_ERR_INVALID_ARGUMENT);
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, &r.desc, NULL, 0, NULL, &r.diag), NPU_ERR_INVALID_ARGUMENT);
        NPU_CHECK_STATUS(npu_plan_advise(r.graph, NULL, NULL, 0, &num, &r.diag), NPU_ERR_INVALID_ARGUMENT);
        npu_text_free(&text);
        rig_end(&r);
    }
}

static uint64_t predicted_and_taken(rig *r, double *predicted)
{
    npu_prediction p;
    float x[4] = { 1, -2, 3, -4 };
    uint64_t begin;
    NPU_CHECK_STATUS(rig_make(r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_predict(r->plan, &p), NPU_OK);
    npu_test_input(r->exec, "x", x, sizeof x);
    begin = npu_sim_clock();
    NPU_CHECK_STATUS(npu_exec_run(r->exec), NPU_OK);
    *predicted = p.ns;
    return npu_sim_clock() - begin;
}

/* A device with a clock of its own. */
static npu_sim_desc clocked_device(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.emulate = npu_ref_backend();
    desc.emulate_all = true;
    desc.virtual_time = true;
    desc.submit_ns = 70000;
    desc.op_ns = 3000;
    desc.transfer_ns = 5000;
    desc.bandwidth = 500000000;
    return desc;
}

/* Calibration finds what the device was made with. */
static void test_calibrate(void)
{
    const npu_sim_desc desc = clocked_device();
    npu_rates npu;
    double residual = 9;
    npu_diag diag;
    npu_text text = npu_text_init(NULL);
    rig r = rig_start(&desc, 1);
    memset(&npu, 0, sizeof npu);
    NPU_CHECK_STATUS(npu_rates_calibrate(&npu, r.backends[0], NULL, npu_sim_clock, &residual, &diag), NPU_OK);
    NPU_CHECK_NEAR(npu.transfer_ns, 5000, 50);
    NPU_CHECK_NEAR(npu.up, 5e8, 5e6);
    NPU_CHECK_NEAR(npu.down, 5e8, 5e6);
    NPU_CHECK_NEAR(npu.launch_ns, 70000, 700);
    NPU_CHECK_THAT(residual < 0.15, "residual %g", residual);
    npu_rates_print(&npu, &text);
    NPU_CHECK(text.data && strstr(text.data, ".launch_ns = ") && strstr(text.data, "{ NULL, "));
    npu_text_free(&text);
    npu_rates by_graph; /* of the kinds that a graph has */
    memset(&by_graph, 0, sizeof by_graph);
    build_example(r.graph);
    NPU_CHECK_STATUS(npu_rates_calibrate(&by_graph, r.backends[0], r.graph, npu_sim_clock, NULL, &diag), NPU_OK);
    NPU_CHECK(by_graph.num_rows >= 4 && by_graph.rows[by_graph.num_rows - 1].what == NULL);
    NPU_CHECK_NEAR(by_graph.rows[0].fixed_ns, 3000, 30);
    npu_graph *runtime = npu_graph_create(npu_test_graph_desc()); /* ops with runtime dims cannot be run alone */
    int64_t any = npu_graph_add_symbol(runtime, "n", 1, 64);
    npu_value v = npu_input(runtime, "x", npu_spec_tensor(NPU_F32, 1, &any));
    npu_output(runtime, "z", npu_tanh(runtime, npu_relu(runtime, v)));
    NPU_CHECK_STATUS(npu_rates_calibrate(&by_graph, npu_ref_backend(), runtime, NULL, NULL, &diag), NPU_OK);
    npu_graph_destroy(runtime);
    static const char *const nothing[] = { "none" };
    npu_sim_desc idle = desc;
    idle.allow = nothing;
    idle.num_allow = 1;
    idle.emulate = NULL;
    idle.emulate_all = false;
    rig none = rig_start(&idle, 1);
    NPU_CHECK_STATUS(npu_rates_calibrate(&by_graph, none.backends[0], NULL, npu_sim_clock, NULL, &diag),
                     NPU_ERR_UNSUPPORTED);
    NPU_CHECK(by_graph.num_rows >= 4); /* as they were */
    rig_end(&none);
    rig_end(&r);
}

/* Of a device with little memory, what fits is measured; one that holds no kilobyte says so, and what it has. */
static void test_calibrate_small_devices(void)
{
    static const uint64_t capacities[] = { 262144, 100000, 9000 };
    npu_sim_desc desc = clocked_device();
    npu_rates npu = { .launch_ns = 7 };
    npu_diag diag;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        desc.capacity = capacities[i];
        rig r = rig_start(&desc, 1);
        memset(&diag, 0, sizeof diag);
        NPU_CHECK_THAT(npu_rates_calibrate(&npu, r.backends[0], NULL, npu_sim_clock, NULL, &diag) == NPU_OK, "%s", diag.message);
        NPU_CHECK(diag.status == NPU_OK && !diag.message[0]);
        NPU_CHECK_NEAR(npu.transfer_ns, 5000, 50);
        NPU_CHECK_NEAR(npu.up, 5e8, 5e6);
        NPU_CHECK_NEAR(npu.down, 5e8, 5e6);
        NPU_CHECK_NEAR(npu.launch_ns, 70000, 700);
        NPU_CHECK(npu.num_rows >= 2);
        build_example(r.graph); /* its ops take 64 bytes and more */
        NPU_CHECK_THAT(npu_rates_calibrate(&npu, r.backends[0], r.graph, npu_sim_clock, NULL, &diag) == NPU_OK, "%s", diag.message);
        rig_end(&r);
    }
    desc.capacity = 3000;
    rig r = rig_start(&desc, 1);
    NPU_CHECK_STATUS(npu_rates_calibrate(&npu, r.backends[0], NULL, npu_sim_clock, NULL, &diag), NPU_ERR_BUDGET);
    NPU_CHECK_THAT(strstr(diag.message, "and has 3000"), "%s", diag.message);
    NPU_CHECK_NEAR(npu.launch_ns, 70000, 700); /* as it was */
    rig_end(&r);
}

/* What was calibrated predicts runs of ten models, and rates that are wrong by a factor are set right by a profile. */
static void test_calibrated_models(void)
{
    static const npu_rates cpu = { .num_rows = 1, .rows = { { NULL, 0, 0, 0 } } }; /* no virtual time passes there */
    const npu_sim_desc desc = clocked_device();
    npu_rates npu;
    npu_diag diag;
    uint64_t seed = npu_test_seed();
    rig r = rig_start(&desc, 1);
    memset(&npu, 0, sizeof npu);
    NPU_CHECK_STATUS(npu_rates_calibrate(&npu, r.backends[0], NULL, npu_sim_clock, NULL, &diag), NPU_OK);
    rig_end(&r);
    for (int model = 0; model < 10; model++) {
        net n = random_net(10 + (uint32_t)model * 5, 2, &seed);
        const npu_rates *rates[2] = { &npu, &cpu };
        double predicted;
        r = rig_start(&desc, 1);
        net_emit(&n, r.graph, NULL);
        r.desc.override = net_place;
        r.desc.override_ctx = &n;
        r.desc.rates = rates;
        r.exec_desc.clock = npu_sim_clock;
        r.exec_desc.profile = true;
        uint64_t taken = predicted_and_taken(&r, &predicted);
        NPU_CHECK_THAT(fabs(predicted / (double)taken - 1) < 0.15, "model %d: predicted %g ns, taken %g", model, predicted,
                       (double)taken);
        npu_rates twice = npu;
        rig_unmake(&r);
        twice.launch_ns *= 2;
        twice.transfer_ns *= 2;
        twice.up /= 2;
        twice.down /= 2;
        rates[0] = &twice;
        predicted_and_taken(&r, &predicted);
        NPU_CHECK_STATUS(npu_rates_refine(&twice, r.exec, 0), NPU_OK);
        rig_unmake(&r);
        taken = predicted_and_taken(&r, &predicted);
        NPU_CHECK_THAT(fabs(predicted / (double)taken - 1) < 0.15, "model %d, refined: predicted %g ns, taken %g", model,
                       predicted, (double)taken);
        rig_end(&r);
    }
}

/* ---- choosing by hand ------------------------------------------------------------------------------------------- */

typedef struct choice { uint32_t calls, attrs; int op, backend; } choice;

static int choose(void *ctx, const npu_op_info *op, const char *label)
{
    choice *c = ctx;
    c->calls++;
    c->attrs += op->attrs_size > 0 || op->num_args > 1;
    NPU_CHECK(label != NULL);
    return (int)op->op == c->op ? c->backend : -1;
}

static int choose_nothing(void *ctx, const npu_op_info *op, const char *label)
{
    (void)op;
    (void)label;
    return ctx ? 1 : -1;
}

/* Overrides give the same result by another plan; the callback sees attributes, dtypes and shapes. */
static void test_override(void)
{
    NPU_ITEM("S1.16");
    NPU_ITEM("S1.17");
    NPU_ITEM("S1.20");
    float x[EXAMPLE_IN], expected[EXAMPLE_OUT], y[EXAMPLE_OUT];
    fill(x, EXAMPLE_IN, 3);
    for (int op = 0; op <= 7; op++) {
        rig r = rig_start(NULL, 1);
        choice c = { 0, 0, op, 1 };
        uint32_t reason = 99;
        build_example(r.graph);
        r.desc.override = choose;
        r.desc.override_ctx = &c;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_EQ(c.calls, 7);
        NPU_CHECK(c.attrs > 0);
        for (uint32_t id = 1; id <= 7; id++) {
            NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(id), &reason, NULL), (int)id == op);
            NPU_CHECK_EQ(reason, (int)id == op ? NPU_REASON_REQUESTED : NPU_REASON_CLAIMED);
        }
        NPU_CHECK_EQ(npu_plan_num_steps(r.plan), op == 0 ? 1 : op == 1 || op == 7 ? 3 : 5);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_exec_set_output(r.exec, "y", y, sizeof y);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        for (int i = 0; i < EXAMPLE_OUT; i++) {
            expected[i] = op == 0 ? y[i] : expected[i];
            NPU_CHECK_NEAR(y[i], expected[i], 1e-5);
        }
        rig_end(&r);
    }
    rig r = rig_start(NULL, 1);
    build_example(r.graph);
    r.desc.override = choose_nothing; /* looks at no attributes, and has no data of its own */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    for (uint32_t id = 1; id <= 7; id++) {
        NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(id), NULL, NULL), 0);
    }
    rig_end(&r);
    r = rig_start(NULL, 1);
    choice c = { 0, 0, 2, 2 }; /* there are only two backends */
    build_example(r.graph);
    r.desc.override = choose;
    r.desc.override_ctx = &c;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(strstr(r.diag.message, "override"));
    rig_end(&r);
}

static void test_force_last(void)
{
    NPU_ITEM("S1.12");
    static const char *const by_kind[] = { "aten.relu.default" }, *const by_name[] = { "second", "no such op" };
    rig r = rig_start(NULL, 1);
    uint32_t reason = 0;
    build_example(r.graph);
    npu_op_set_name(r.graph, op_id(5), "second"); /* the second relu */
    r.desc.force_last = by_kind;
    r.desc.num_force_last = 1;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(2), &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_REQUESTED);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(5), NULL, NULL), 1);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(3), NULL, NULL), 0);
    rig_unmake(&r);
    r.desc.force_last = by_name;
    r.desc.num_force_last = 2;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(2), &reason, NULL), 0);
    NPU_CHECK_EQ(reason, NPU_REASON_CLAIMED);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(5), NULL, NULL), 1);
    rig_end(&r);
}

/* ---- several backends, reasons ---------------------------------------------------------------------------------- */

/* relu and sigmoid for the first, neg and sigmoid for the second, the rest for the CPU. */
static void test_priority(void)
{
    NPU_ITEM("S1.42");
    NPU_ITEM("S1.46");
    spy first, second;
    rig r = rig_start(NULL, 0);
    uint32_t reason = 0;
    const char *words = NULL;
    spies_start(&r, &first, &second);
    first.only[0] = "aten.relu.default";
    first.only[1] = "aten.sigmoid.default";
    first.words = "only relu and sigmoid";
    second.only[0] = "aten.neg.default";
    second.only[1] = "aten.sigmoid.default";
    second.reason = NPU_REASON_DTYPE;
    second.words = "not in this dtype";
    npu_value x = npu_input(r.graph, "x", F32(4));
    x = npu_exp(r.graph, npu_neg(r.graph, npu_sigmoid(r.graph, npu_relu(r.graph, x))));
    npu_output(r.graph, "y", npu_abs(r.graph, x));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P0(1 2) T0>1(3) P1(3) T1>2(4) P2(4 5)");
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(1), &reason, &words), 0);
    NPU_CHECK_EQ(reason, NPU_REASON_CLAIMED);
    NPU_CHECK_STR(words, "");
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(3), &reason, &words), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);
    NPU_CHECK_STR(words, "only relu and sigmoid");
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(4), &reason, &words), 2);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);           /* of the first choice */
    NPU_CHECK_STR(words, "not in this dtype");     /* of the last that refused */
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(99), &reason, &words), -1);
    float in[4] = { 1, -1, 0.5f, 3 };
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const float *y = npu_exec_output(r.exec, 0, NULL);
    for (int i = 0; i < 4; i++) {
        NPU_CHECK_NEAR(y[i], exp(-1 / (1 + exp(-(in[i] > 0 ? (double)in[i] : 0)))), 1e-6);
    }
    rig_end(&r);
}

/* supports sees dtypes, shapes and attributes: f64, 3-D and unequal strides end up on the CPU, with
   reasons. */
static void test_reasons(void)
{
    NPU_ITEM("S1.38");
    NPU_ITEM("S1.39");
    NPU_ITEM("R1.8");
    rig r = rig_start(NULL, 1);
    npu_graph *g = r.graph;
    npu_value x = npu_input(g, "x", F32(2, 3)), d = npu_input(g, "d", npu_spec_tensor(NPU_F64, 1, DIMS(3)));
    npu_output(g, "a", npu_relu(g, x));
    npu_output(g, "b", npu_relu(g, d));
    npu_output(g, "c", npu_cat(g, (npu_value[]){ x, x }, 2, 0));
    npu_output(g, "e", npu_argmax(g, x, 1, false));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    uint32_t reason = 0;
    const char *words;
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(1), &reason, &words), 0);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(2), &reason, &words), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_DTYPE);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(4), &reason, &words), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);
    for (uint32_t i = 0; i < 12; i++) {
        NPU_CHECK(strcmp(npu_reason_text(i), "unknown reason") != 0);
    }
    NPU_CHECK_STR(npu_reason_text(12), "unknown reason");
    rig_end(&r);
}

/* A plan is made without any compile, alloc or transfer. */
static void test_dry_run(void)
{
    NPU_ITEM("S1.3");
    NPU_ITEM("S1.44");
    spy s;
    rig r = rig_start(NULL, 0);
    npu_memory memory;
    r.backends[0] = spy_start(&s, "spy");
    r.backends[1] = npu_ref_backend();
    r.desc.num_backends = 2;
    build_example(r.graph);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(r.plan, 0, &memory), NPU_OK);
    NPU_CHECK(memory.activations > 0 && !memory.exact);
    NPU_CHECK_EQ(s.asked, 7);
    NPU_CHECK_EQ(s.compiled + s.allocated + s.moved + s.submitted, 0);
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
    NPU_CHECK_EQ(s.compiled, 1);
    NPU_CHECK_EQ(s.submitted, 0);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &memory), NPU_OK);
    NPU_CHECK(memory.exact);
    NPU_CHECK_STATUS(npu_plan_memory(r.plan, 2, &memory), NPU_ERR_RANGE);
    rig_end(&r);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void test_min_group_ops(void)
{
    rig r = chain_start("rrnrnrrr");
    uint32_t reason;
    r.desc.min_group_ops = 2;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P0(1 2) T0>1(3) P1(3 4 5) T1>0(6) P0(6 7 8)");
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(4), &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_TOO_SMALL);
    rig_unmake(&r);
    r.desc.min_group_ops = 4;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P1(1 2 3 4 5 6 7 8)");
    rig_end(&r);
    rig v = rig_start(NULL, 1); /* views count nothing: one relu and two views are one op */
    npu_value x = npu_relu(v.graph, npu_flatten(v.graph, npu_input(v.graph, "x", F32(2, 3)), 0, 1));
    npu_output(v.graph, "y", npu_reshape(v.graph, x, DIMS(3, 2), 2));
    v.desc.min_group_ops = 2;
    NPU_CHECK_STATUS(rig_plan(&v), NPU_OK);
    NPU_CHECK_STR(steps_of(v.plan), "P1(1 2 3)");
    rig_end(&v);
}

static void test_max_groups(void)
{
    rig r = chain_start("rrnrnrrrnr");
    uint32_t reason;
    static const char *const steps[] = {
        "P0(1 2) T0>1(3) P1(3) T1>0(4) P0(4) T0>1(5) P1(5) T1>0(6) P0(6 7 8) T0>1(9) P1(9) T1>0(10) P0(10)",
        "P1(1 2 3 4 5) T1>0(6) P0(6 7 8) T0>1(9) P1(9 10)",
        "P0(1 2) T0>1(3) P1(3 4 5) T1>0(6) P0(6 7 8) T0>1(9) P1(9 10)",
        "P0(1 2) T0>1(3) P1(3 4 5) T1>0(6) P0(6 7 8) T0>1(9) P1(9) T1>0(10) P0(10)",
    };
    for (uint32_t max = 0; max < 4; max++) {
        r.desc.max_groups = max;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), steps[max]);
        npu_plan_op_backend(r.plan, op_id(4), &reason, NULL);
        NPU_CHECK_EQ(reason, max ? NPU_REASON_BUDGET : NPU_REASON_CLAIMED);
        rig_unmake(&r);
    }
    rig_end(&r);
}

static void test_budgets(void)
{
    rig r = chain_start("rnr");
    r.desc.max_transfer_bytes = 2 * 24;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    rig_unmake(&r);
    r.desc.max_transfer_bytes = 2 * 24 - 1;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_BUDGET);
    NPU_CHECK(strstr(r.diag.message, "48 bytes") && r.plan == NULL);
    r.desc.max_transfer_bytes = 0;
    r.desc.no_fallback = true;
    rig_unmake(&r);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_BUDGET);
    NPU_CHECK(strstr(r.diag.message, "aten.neg.default"));
    NPU_CHECK_EQ(r.diag.op, 2);
    rig_end(&r);
    r = chain_start("rr");
    r.desc.no_fallback = true;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    rig_end(&r);
}

/* ---- refused groups --------------------------------------------------------------------------------------------- */

/* Without a fallback a refused group has nowhere to go. */
static void test_refused_without_fallback(void)
{
    spy s;
    rig r = rig_start(NULL, 0);
    r.backends[0] = spy_start(&s, "spy");
    r.backends[1] = npu_ref_backend();
    r.desc.num_backends = 2;
    r.desc.no_fallback = true;
    s.refuse = "aten.softmax.int";
    build_example(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_BUDGET);
    rig_end(&r);
}

/* first refuses when it compiles, second takes what it can, the rest goes on. */
static void test_refused(void)
{
    NPU_ITEM("S1.47");
    spy first, second;
    rig r = rig_start(NULL, 0);
    uint32_t reason = 0;
    const char *words = NULL;
    spies_start(&r, &first, &second);
    first.only[0] = "aten.relu.default";
    first.only[1] = "aten.neg.default";
    first.only[2] = "aten.abs.default";
    first.refuse = "aten.neg.default";
    r.desc.max_compiles = 1; /* the whole group goes */
    second.only[0] = "aten.relu.default";
    npu_value x = npu_input(r.graph, "x", F32(4));
    x = npu_abs(r.graph, npu_exp(r.graph, npu_neg(r.graph, npu_relu(r.graph, x))));
    npu_output(r.graph, "y", x);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    const npu_plan *plan = npu_program_plan(r.program);
    NPU_CHECK_STR(steps_of(r.plan), "P0(1 2) T0>2(3) P2(3) T2>0(4) P0(4)"); /* the first plan is left as it was */
    NPU_CHECK_STR(steps_of(plan), "P1(1) T1>2(2) P2(2 3) T2>0(4) P0(4)");
    NPU_CHECK_EQ(npu_plan_op_backend(plan, op_id(1), &reason, &words), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
    NPU_CHECK_STR(words, "aten.neg.default is not for me");
    NPU_CHECK_EQ(npu_plan_op_backend(plan, op_id(2), &reason, &words), 2);
    NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
    NPU_CHECK_EQ(npu_plan_op_backend(plan, op_id(4), &reason, &words), 0);
    NPU_CHECK_EQ(reason, NPU_REASON_CLAIMED);
    float in[4] = { 1, -1, 0.5f, 3 };
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[3], exp(-3), 1e-6);
    rig_end(&r);
    r = rig_start(NULL, 0); /* the last backend's refusal is the end */
    r.backends[0] = spy_start(&first, "first");
    first.refuse = "aten.relu.default";
    npu_output(r.graph, "y", npu_relu(r.graph, npu_input(r.graph, "x", F32(4))));
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_UNSUPPORTED);
    NPU_CHECK(strstr(r.diag.message, "not for me") && strstr(r.diag.message, "first"));
    rig_end(&r);
}

static void keep_log(void *ctx, int level, const char *message)
{
    npu_text_printf((npu_text *)ctx, "%d %s\n", level, message);
}

/* The graph's logger gets a note per plan, and a warning where it goes on, but not as asked for. */
static void test_logged(void)
{
    NPU_ITEM("F54");
    static const struct { const char *claims, *refuses, *log; } rows[] = {
        { "aten.relu.default", NULL, "2 plan: 2 ops in 3 steps, 1 of them transfers, which move 16 bytes\n" },
        { "aten.relu.default", "aten.relu.default",
          "2 plan: 2 ops in 3 steps, 1 of them transfers, which move 16 bytes\n"
          "1 step 0 on first: compile refused: aten.relu.default is not for me; "
          "op 1, aten.relu.default, goes to the backends after it\n" },
        { "none", NULL, "2 plan: 2 ops in 1 steps, 0 of them transfers, which move 0 bytes\n" },
    };
    static const char *const forced[] = { "aten.cos.default", "aten.rleu.default", "aten.exp.default" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        spy first;
        npu_text log = npu_text_init(NULL);
        npu_logger logger = { &log, keep_log };
        rig r = rig_start(NULL, 0);
        npu_graph_destroy(r.graph);
        r.graph = npu_graph_create(&(npu_graph_desc){ .logger = &logger });
        r.backends[0] = spy_start(&first, "first");
        r.backends[1] = npu_ref_backend();
        r.desc.num_backends = 2;
        first.only[0] = rows[i].claims;
        first.refuse = rows[i].refuses;
        npu_output(r.graph, "y", npu_exp(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4)))));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(log.data, rows[i].log);
        rig_unmake(&r);
        r.backends[0] = &first.backend;
        r.desc.num_backends = 1; /* exp is left over */
        first.only[0] = "aten.relu.default";
        log.len = 0;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STR(log.data, "2 plan: 2 ops in 2 steps, 0 of them transfers, which move 0 bytes\n"
                                "1 plan: no backend takes 1 of 2 ops\n");
        rig_unmake(&r);
        r.desc.force_last = forced;
        r.desc.num_force_last = 3;
        log.len = 0;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_THAT(strstr(log.data, "1 plan: force_last: no op is called 'aten.rleu.default', did you mean "
                                        "'aten.relu.default'?\n2 plan:") == log.data, "%s", log.data);
        rig_end(&r);
        npu_text_free(&log);
    }
}

/* The fallback first, and a state that nothing updates: nothing fails, but it is hardly meant. */
static void test_logged_mistakes(void)
{
    spy npu;
    npu_text log = npu_text_init(NULL);
    npu_logger logger = { &log, keep_log };
    rig r = rig_start(NULL, 0);
    npu_graph_destroy(r.graph);
    r.graph = npu_graph_create(&(npu_graph_desc){ .logger = &logger });
    r.backends[0] = npu_ref_backend();
    r.backends[1] = spy_start(&npu, "npu0");
    r.desc.num_backends = 2;
    npu_output(r.graph, "y", npu_relu(r.graph, npu_state(r.graph, "cache", F32(4))));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STR(log.data, "2 plan: 1 ops in 1 steps, 0 of them transfers, which move 0 bytes\n"
                            "1 plan: cpu takes all ops, npu0 comes after it: a fallback comes last\n"
                            "2 plan: state 'cache' stays what it is: no npu_update names its next value\n");
    rig_unmake(&r);
    /* a row of rates that counts for no op */
    const npu_rates rates = { .num_rows = 4, .rows = { { "aten.relu.default", 1, 0, 0 }, { "activation", 1, 0, 0 },
                                                       { "matrx", 1, 0, 0 }, { NULL, 1, 0, 0 } } };
    const npu_rates *each[2] = { &rates, NULL };
    r.desc.rates = each;
    log.len = 0;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_THAT(strstr(log.data, "1 plan: rates of cpu: no op and no category is called 'matrx', did you mean 'matrix'?\n"
                                    "2 plan:") == log.data, "%s", log.data);
    rig_end(&r);
    npu_text_free(&log);
}

/* What a refused group leaves keeps the limits: pieces that are too small, or too many, go on to the last backend. */
static void test_refused_within_limits(void)
{
    static const struct { uint32_t min_ops, max_groups; const char *steps; } rows[] = {
        { 0, 0, "P1(1 2) T1>2(3) P2(3) T2>1(4) P1(4)" }, { 2, 0, "P1(1 2) T1>2(3) P2(3 4)" },
        { 0, 1, "P1(1 2) T1>2(3) P2(3 4)" }, { 3, 0, "P2(1 2 3 4)" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spy first, second;
        uint32_t reason = 0;
        const char *words = NULL;
        rig r = rig_start(NULL, 0);
        spies_start(&r, &first, &second);
        r.desc.min_group_ops = rows[i].min_ops;
        r.desc.max_groups = rows[i].max_groups;
        r.desc.max_compiles = 1; /* the whole group goes */
        first.only[0] = "aten.relu.default";
        first.only[1] = "aten.neg.default";
        first.refuse = "aten.neg.default";
        second.only[0] = "aten.relu.default";
        npu_value x = npu_relu(r.graph, npu_relu(r.graph, npu_input(r.graph, "x", F32(4))));
        npu_output(r.graph, "y", npu_relu(r.graph, npu_neg(r.graph, x)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(steps_of(r.plan), "P0(1 2 3 4)");
        NPU_CHECK_STR(steps_of(npu_program_plan(r.program)), rows[i].steps);
        npu_plan_op_backend(npu_program_plan(r.program), op_id(4), &reason, &words);
        NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
        NPU_CHECK_STR(words, "aten.neg.default is not for me");
        rig_end(&r);
    }
}

/* One of 100 ops is refused: the 99 others stay, whether the backend says which it was or not, and compiles are few. */
static void test_refused_alone(void)
{
    NPU_ITEM("S1.47");
    static const struct { bool says_which; uint32_t max_compiles, at, stay, compiles; } rows[] = {
        { true, 1, 60, 99, 3 },  { true, 0, 0, 99, 2 },  { false, 0, 60, 99, 10 }, { false, 0, 0, 99, 10 },
        { false, 0, 99, 99, 9 }, { false, 4, 60, 0, 4 }, { false, 1, 60, 0, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spy first;
        rig r = rig_start(NULL, 0);
        uint32_t stay = 0, reason = 0;
        float x[4] = { 1, -1, 2, -2 };
        r.backends[0] = spy_start(&first, "first");
        r.backends[1] = npu_ref_backend();
        r.desc.num_backends = 2;
        r.desc.max_compiles = rows[i].max_compiles;
        first.refuse = "aten.neg.default";
        first.says_which = rows[i].says_which;
        npu_value y = npu_input(r.graph, "x", F32(4));
        for (uint32_t k = 0; k < 100; k++) {
            y = k == rows[i].at ? npu_neg(r.graph, y) : npu_abs(r.graph, y);
        }
        npu_output(r.graph, "y", y);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        for (uint32_t k = 0; k < 100; k++) {
            stay += npu_plan_op_backend(npu_program_plan(r.program), op_id(k + 1), NULL, NULL) == 0;
        }
        npu_plan_op_backend(npu_program_plan(r.program), op_id(rows[i].at + 1), &reason, NULL);
        NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
        NPU_CHECK_EQ(stay, rows[i].stay);
        NPU_CHECK_THAT(first.compiled <= rows[i].compiles, "row %u: %u compiles, at most %u", (unsigned)i,
                       (unsigned)first.compiled, (unsigned)rows[i].compiles);
        npu_test_input(r.exec, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_EQ(((const float *)npu_exec_output(r.exec, 0, NULL))[3], rows[i].at == 99 ? -2 : 2);
        rig_end(&r);
    }
}

/* ---- ops that nobody takes, dims that nobody knows -------------------------------------------------------------- */

static npu_value unknown(npu_graph *g, const char *name, npu_value x)
{
    npu_arg arg = npu_arg_tensor(NULL, x);
    return npu_op_result(g, npu_emit_typed(g, name, &arg, 1, npu_value_spec(g, x), 1), 0);
}

static void test_nobody(void)
{
    NPU_ITEM("S2.38");
    NPU_ITEM("S2.50");
    NPU_ITEM("S2.56");
    rig r = rig_start(NULL, 1);
    npu_graph *g = r.graph;
    npu_value x = npu_relu(g, npu_input(g, "x", F32(4)));
    npu_value y = unknown(g, "mine.op10", x);
    y = npu_relu(g, unknown(g, "mine.op1", unknown(g, "mine.op10", y)));
    npu_output(g, "y", npu_add(g, x, y));
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_text dump = npu_text_init(NULL); /* the layer shows before any backend knows it */
    NPU_CHECK_STATUS(npu_graph_print_short(g, &dump), NPU_OK);
    NPU_CHECK(dump.data && strstr(dump.data, "op10"));
    npu_text_free(&dump);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK); /* no error of the plan */
    NPU_CHECK_STR(steps_of(r.plan), "P0(1) P?(2 3 4) P0(5 6)");
    uint32_t reason = 0;
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(2), &reason, NULL), -1);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);
    for (uint32_t i = 0; i < npu_plan_num_steps(r.plan); i++) {
        const npu_step *s = npu_plan_step(r.plan, i);
        for (uint32_t d = 0; d < s->num_dependencies; d++) {
            NPU_CHECK(s->dependencies[d] < i);
        }
    }
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK_STR(r.diag.message, "no backend takes 3 ops: mine.op10 (op not supported), mine.op1 (op not supported)");
    NPU_CHECK_EQ(r.diag.op, 2);
    rig_end(&r);
    r = rig_start(NULL, 0); /* more than a message holds */
    npu_value v = npu_input(r.graph, "x", F32(4));
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "mine.an_op_number_%d", i);
        v = unknown(r.graph, name, v);
    }
    npu_output(r.graph, "y", v);
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK(strstr(r.diag.message, "60 ops") && strstr(r.diag.message, " ..."));
    rig_end(&r);
}

/* Symbols are planned where a backend has the trait; a dim without one is an error, and a symbol that gets a value is
   as good as a number. */
static void test_dynamic(void)
{
    rig r = rig_start(NULL, 1);
    int64_t n = npu_graph_add_symbol(r.graph, "n", 1, 16);
    const char *name = "n";
    uint32_t reason;
    npu_value x = npu_input(r.graph, "x", F32(n, 3)), y = npu_relu(r.graph, x);
    npu_op relu = npu_value_producer(r.graph, y, NULL);
    npu_output(r.graph, "y", y);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, relu, &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_DYNAMIC);
    rig_unmake(&r);
    npu_graph *fixed = NULL;
    NPU_CHECK_STATUS(npu_graph_specialize(&fixed, r.graph, &name, DIMS(2), 1, &r.diag), NPU_OK);
    npu_graph_destroy(r.graph);
    r.graph = fixed;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, relu, &reason, NULL), 0);
    rig_end(&r);
    r = rig_start(NULL, 1);
    npu_output(r.graph, "z", npu_relu(r.graph, npu_input(r.graph, "anonymous", F32(-1, 3))));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_DYNAMIC_SHAPE);
    NPU_CHECK(strstr(r.diag.message, "anonymous"));
    rig_end(&r);
}

static void test_bad_descs(void)
{
    rig r = rig_start(NULL, 1);
    npu_plan *plan = NULL;
    npu_output(r.graph, "y", npu_relu(r.graph, npu_input(r.graph, "x", F32(4))));
    r.desc.backends = r.backends;
    NPU_CHECK_STATUS(npu_plan_create(&plan, NULL, &r.desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    r.desc._canary = 1;
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, &r.desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    r.desc._canary = 0;
    r.desc.num_backends = 0;
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, &r.desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    r.desc.num_backends = 33;
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, &r.desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    r.desc.num_backends = 2;
    npu_backend broken = *r.backends[0];
    broken.submit = NULL;
    r.backends[0] = &broken;
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, &r.desc, &r.diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(strstr(r.diag.message, "submit"));
    npu_relu(r.graph, npu_input(r.graph, "x", F32(4))); /* a second x: the graph has failed */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_GRAPH);
    NPU_CHECK(plan == NULL);
    rig_end(&r);
}

/* ---- what crosses ----------------------------------------------------------------------------------------------- */

/* A backend gets the device's kind, schema id and blob of every kind in its table, whatever namespace the
   kind is of. */
static void test_device_forms(void)
{
    NPU_ITEM("S2.2");
    NPU_ITEM("S2.30");
    NPU_ITEM("R2.4");
    static const npu_abi_row rows[] = {
        { NPU_ATEN_RELU, 1, 0, "" },
        { NPU_AICF_GEMM, 2, 0, "<ii" },
        { NPU_AICF_BIAS_ADD, 3, NPU_FOURCC('B', 'A', 'D', 'D'), "<q" },
    };
    static const npu_abi abi = NPU_ABI(rows);
    spy s;
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    r.backends[0] = spy_start(&s, "spy");
    s.backend.abi = &abi;
    npu_value x = npu_input(g, "x", F32(2, 3));
    npu_value y = npu_aicf_gemm(g, x, W(4, 3), &(npu_aicf_gemm_attrs){ false, true });
    y = npu_relu(g, npu_aicf_bias_add(g, y, W(4)));
    npu_output(g, "y", npu_sigmoid(g, y));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(s.num_seen, 4); /* one lowered op per op, in order */
    NPU_CHECK_STR(s.seen[0].name, "aicf.gemm");
    NPU_CHECK_EQ(s.seen[0].kind, 2);
    NPU_CHECK_EQ(s.seen[0].size, 8);
    NPU_CHECK_BYTES(s.seen[0].blob, "\0\0\0\0\1\0\0\0", 8);
    NPU_CHECK_STR(s.seen[1].name, "aicf.bias_add");
    NPU_CHECK_EQ(s.seen[1].schema, 0x44444142);
    NPU_CHECK_BYTES(s.seen[1].blob, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    NPU_CHECK_STR(s.seen[2].name, "aten.relu.default");
    NPU_CHECK_EQ(s.seen[2].kind, 1);
    NPU_CHECK_EQ(s.seen[2].size, 0);
    NPU_CHECK_STR(s.seen[3].name, "aten.sigmoid.default");
    NPU_CHECK_EQ(s.seen[3].kind, NPU_ATEN_SIGMOID); /* no row: the kind, 0 and the packed blob */
    NPU_CHECK_EQ(s.seen[3].schema, 0);
    rig_end(&r);
}

/* What compile made from the group, weights and all, is what every run hands back, until it is released
   once. */
static void test_delegate(void)
{
    NPU_ITEM("S1.4");
    NPU_ITEM("R1.16");
    spy s;
    rig r = rig_start(NULL, 0);
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, 1);
    r.backends[0] = spy_start(&s, "spy");
    build_example(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK(s.weights_at_compile && s.program);
    npu_test_input(r.exec, "x", x, sizeof x);
    for (int i = 0; i < 3; i++) {
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    }
    NPU_CHECK_EQ(s.compiled, 1);
    NPU_CHECK_EQ(s.submitted, 3);
    NPU_CHECK_EQ(s.foreign, 0);
    NPU_CHECK_EQ(s.released, 0);
    rig_unmake(&r);
    NPU_CHECK_EQ(s.released, 1);
    rig_end(&r);
}

/* A transfer to the accelerator is its upload, one from it its download, and the CPU's group runs between
   them. */
static void test_transfers_run(void)
{
    NPU_ITEM("S1.5");
    NPU_ITEM("S1.6");
    NPU_ITEM("S1.40");
    spy cpu;
    rig r = chain_start("rnr");
    float x[6] = { -1, 2, -3, 4, -5, 6 };
    r.backends[1] = spy_start(&cpu, "cpu");
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STR(steps_of(r.plan), "P0(1) T0>1(2) P1(2) T1>0(3) P0(3)");
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    npu_sim_counters c = npu_sim_count(r.sims[0]);
    NPU_CHECK_EQ(c.calls[NPU_SIM_SUBMIT], 2);
    NPU_CHECK_EQ(c.calls[NPU_SIM_UPLOAD], 2);   /* x, and the transfer up */
    NPU_CHECK_EQ(c.calls[NPU_SIM_DOWNLOAD], 2); /* the transfer down, and y */
    NPU_CHECK_EQ(c.bytes_up, 48);
    NPU_CHECK_EQ(c.bytes_down, 48);
    NPU_CHECK_EQ(cpu.submitted, 1);
    NPU_CHECK_EQ(cpu.moved, 0);                 /* its memory is the host's */
    rig_end(&r);
}

/* A new kind from outside: its name, its row, the device's number and layout for it; and what the old
   layout says to the new blob. */
static npu_status type_scale(npu_deduce *d) { return npu_deduce_add_result(d, npu_deduce_spec(d, "x")); }

static void test_new_kind(void)
{
    NPU_ITEM("S2.39");
    NPU_ITEM("S2.45");
    NPU_ITEM("S2.52");
    enum { SCALE = NPU_NS_USER << 16 | 7 };
    static const npu_op_row row = { SCALE, 0, type_scale,
                                    "scale(Tensor x, *, float by, int times=1) -> Tensor", "x by", NULL };
    static const npu_abi_row old_rows[] = { { SCALE, 40, NPU_FOURCC('S', 'C', 'A', 'L'), "<f" } };
    static const npu_abi_row rows[] = { { SCALE, 40, NPU_FOURCC('S', 'C', 'A', 'L'), "<fi" } };
    static const npu_abi abi = NPU_ABI(rows), old_abi = NPU_ABI(old_rows);
    spy s;
    rig r = rig_start(NULL, 0);
    npu_registry *registry = NULL;
    npu_graph_desc desc;
    uint8_t blob[32];
    uint32_t size = 0;
    memset(&desc, 0, sizeof desc);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_OK);
    desc.registry = registry;
    r.graph = npu_graph_create(&desc);
    npu_arg args[] = { npu_arg_tensor("x", npu_input(r.graph, "x", F32(3))), npu_arg_float("by", 0.5),
                       npu_arg_int("times", 3) };
    npu_output(r.graph, "y", npu_op_result(r.graph, npu_emit_name(r.graph, "mine.scale", args, 3), 0));
    r.backends[0] = spy_start(&s, "spy");
    s.only[0] = "mine.scale";
    s.backend.abi = &abi;
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(1), NULL, NULL), 0);
    /* the spy has no kernel for it */
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, NULL), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK_EQ(s.num_seen, 1);
    NPU_CHECK_EQ(s.seen[0].kind, 40);
    NPU_CHECK_EQ(s.seen[0].schema, NPU_FOURCC('S', 'C', 'A', 'L'));
    NPU_CHECK_EQ(s.seen[0].size, 8);
    NPU_CHECK_BYTES(s.seen[0].blob, "\0\0\0\x3f\3\0\0\0", 8);
    const npu_op_def *def = npu_registry_find(registry, "mine.scale");
    const uint8_t *sent = s.seen[0].blob;
    const uint32_t id = rows[0].attr_schema, room = sizeof blob;
    NPU_CHECK_STATUS(npu_abi_decode(&abi, def, id, sent, 8, blob, room, &size), NPU_OK);
    NPU_CHECK_STATUS(npu_abi_decode(&old_abi, def, id, sent, 8, blob, room, &size), NPU_ERR_BAD_ATTR_SIZE);
    NPU_CHECK_STATUS(npu_abi_decode(&abi, def, id, sent, 4, blob, room, &size), NPU_ERR_BAD_ATTR_SIZE);
    rig_end(&r);
    npu_registry_destroy(registry);
}

/* the example of the device-kind document: "reduce_sum" is kind 4 with schema RSUM, and that is what the device gets. */
static void test_kind_of_document(void)
{
    NPU_ITEM("S2.43");
    NPU_ITEM("S2.44");
    spy s;
    rig r = rig_start(NULL, 0);
    const npu_op_def *def = npu_registry_find(npu_graph_registry(r.graph), "reduce_sum");
    NPU_CHECK(def && def->kind == NPU_AICF_REDUCE_SUM && NPU_KIND_NUMBER(def->kind) == 4);
    r.backends[0] = spy_start(&s, "spy");
    s.backend.abi = npu_abi_aicf();
    npu_output(r.graph, "y", npu_aicf_reduce_sum(r.graph, npu_input(r.graph, "x", F32(2, 3)), 0));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(s.seen[0].kind, 4);
    NPU_CHECK_EQ(s.seen[0].schema, 0x4d555352);
    NPU_CHECK_EQ(s.seen[0].size, 8);
    rig_end(&r);
}

/* A scratch may need more than the region's alignment. */
static void test_scratch_alignment(void)
{
    spy s;
    rig r = rig_start(NULL, 0);
    r.backends[0] = spy_start(&s, "spy");
    s.scratch_alignment = 4096;
    build_example(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, 1);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_EQ(s.submitted, 1);
    NPU_CHECK_EQ(s.misaligned, 0);
    rig_unmake(&r);
    s.scratch_alignment = 48;
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_BACKEND);
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_supports_fails);
    NPU_RUN(test_example);
    NPU_RUN(test_borders);
    NPU_RUN(test_step_values);
    NPU_RUN(test_transfers_once);
    NPU_RUN(test_dependencies);
    NPU_RUN(test_views_weigh_nothing);
    NPU_RUN(test_fewest_groups);
    NPU_RUN(test_groups_of_shapes);
    NPU_RUN(test_groups_of_large);
    NPU_RUN(test_groups_of_transformer);
    NPU_RUN(test_outputs_changed);
    NPU_RUN(test_views_passed_over);
    NPU_RUN(test_views_wait);
    NPU_RUN(test_max_groups_of_two_devices);
    NPU_RUN(test_longest_ops);
    NPU_RUN(test_host_memory);
    NPU_RUN(test_shuffled);
    NPU_RUN(test_grouped_runs);
    NPU_RUN(test_least_cost);
    NPU_RUN(test_sides_move);
    NPU_RUN(test_refused_by_hand);
    NPU_RUN(test_long_chains);
    NPU_RUN(test_one_of_two_alike);
    NPU_RUN(test_exchanged);
    NPU_RUN(test_refused_and_too_small);
    NPU_RUN(test_shuffled_by_cost);
    NPU_RUN(test_bad_rates);
    NPU_RUN(test_rate_rows);
    NPU_RUN(test_limits_by_cost);
    NPU_RUN(test_cheapest_within_limits);
    NPU_RUN(test_no_ops_by_cost);
    NPU_RUN(test_expected);
    NPU_RUN(test_validate);
    NPU_RUN(test_advise);
    NPU_RUN(test_calibrate);
    NPU_RUN(test_calibrate_small_devices);
    NPU_RUN(test_calibrated_models);
    NPU_RUN(test_override);
    NPU_RUN(test_force_last);
    NPU_RUN(test_priority);
    NPU_RUN(test_reasons);
    NPU_RUN(test_dry_run);
    NPU_RUN(test_min_group_ops);
    NPU_RUN(test_max_groups);
    NPU_RUN(test_budgets);
    NPU_RUN(test_refused_without_fallback);
    NPU_RUN(test_refused);
    NPU_RUN(test_refused_alone);
    NPU_RUN(test_logged);
    NPU_RUN(test_logged_mistakes);
    NPU_RUN(test_refused_within_limits);
    NPU_RUN(test_nobody);
    NPU_RUN(test_dynamic);
    NPU_RUN(test_bad_descs);
    NPU_RUN(test_device_forms);
    NPU_RUN(test_delegate);
    NPU_RUN(test_transfers_run);
    NPU_RUN(test_new_kind);
    NPU_RUN(test_kind_of_document);
    NPU_RUN(test_scratch_alignment);
    return npu_test_done();
}
