/* Graphs and plans that were damaged, each time in another way: validation names what is wrong, and reads nothing that
   is not there. The public functions cannot make such objects, so the implementation is included, with few ops. */
#define NPU_IR_HAS_OP(kind) ((kind) == NPU_ATEN_RELU || (kind) == NPU_ATEN_NEG || (kind) == NPU_ATEN_ADD || \
                             (kind) == NPU_ATEN_FLATTEN || (kind) == NPU_ATEN_ASSERT_ASYNC || (kind) == NPU_ATEN_MM || \
                             (kind) == NPU_ATEN_T || (kind) == NPU_ATEN_EINSUM)
static unsigned long num_asserted, num_broken;
#define NPU_IR_ASSERT(x) ((x) ? (void)num_asserted++ : (void)num_broken++)
#define NPU_IR_NO_JSON
#define NPU_IR_NO_LAYERS
#define NPU_IR_NO_REPORT
#define NPU_IR_NO_REWRITE
#define NPU_IR_NO_TILES
#define NPU_IR_IMPLEMENTATION
#include "rig.h"

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

/* x is value 1, c 2, a = relu(x) 3, y = a + c 4; ops 1 and 2. */
static npu_graph *small_graph(void)
{
    static const float c[4] = { 1, 2, 3, 4 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", F32(4)), b = npu_constant(g, "c", F32(4), c);
    npu_output(g, "y", npu_add(g, npu_relu(g, x), b));
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    return g;
}

static void g_nothing(npu_graph *g) { (void)g; }
static void g_spec(npu_graph *g) { g->values[3].spec = g->num_specs; }
static void g_name(npu_graph *g) { g->values[3].name = g->num_names; }
static void g_data(npu_graph *g) { g->values[2].data = g->num_data; }
static void g_role(npu_graph *g) { g->values[3].role = NPU_ROLE_INPUT; }
static void g_orphan(npu_graph *g) { g->values[1].role = NPU_ROLE_TEMPORARY; }
static void g_producer(npu_graph *g) { g->values[3].producer = g->num_ops; }
static void g_result(npu_graph *g) { g->values[3].result = 1; }
static void g_other(npu_graph *g) { g->values[3].producer = 2; }
static void g_fewer(npu_graph *g) { g->values[3].num_uses = 0; }
static void g_more(npu_graph *g) { g->values[1].num_uses = 2; }
static void g_chain(npu_graph *g) { g->values[3].first_use = g->num_uses + 1; }
static void g_circle(npu_graph *g) { g->uses[g->values[3].first_use - 1].next = g->values[3].first_use; }
static void g_twice(npu_graph *g) { g->values[3].name = g->values[1].name; }
static void g_operands(npu_graph *g) { g->ops[1].first_operand = g->num_uses; }
static void g_results(npu_graph *g) { g->ops[2].num_results = 0xffffffffu; }
static void g_user(npu_graph *g) { g->uses[0].op = 2; }
static void g_operand(npu_graph *g) { g->uses[0].value = g->num_values; }
static void g_later(npu_graph *g) { g->uses[0].value = 4; }
static void g_blob(npu_graph *g) { g->ops[2].attrs = 0, g->ops[2].attrs_size = 0; }
static void g_type(npu_graph *g) { g->ops[1].num_results = 2; }
static void g_output(npu_graph *g) { g->outputs[0].a = g->num_values; }
static void g_no_output(npu_graph *g) { g->outputs[0].a = 0; }
static void g_unmarked(npu_graph *g) { g->values[g->outputs[0].a].is_output = 0; }

static const struct { void (*damage)(npu_graph *g); npu_status status; const char *words; } damages[] = {
    { g_nothing, NPU_OK, "" },
    { g_spec, NPU_ERR_GRAPH, "value 3: spec, name or data out of range" },
    { g_name, NPU_ERR_GRAPH, "value 3: spec, name or data out of range" },
    { g_data, NPU_ERR_GRAPH, "value 2: spec, name or data out of range" },
    { g_role, NPU_ERR_GRAPH, "value 3: role 1 with producer 1" },
    { g_orphan, NPU_ERR_GRAPH, "with producer 0" },
    { g_producer, NPU_ERR_GRAPH, "with producer 3" },
    { g_result, NPU_ERR_GRAPH, "value 3: op 1 does not list it as result 1" },
    { g_other, NPU_ERR_GRAPH, "value 3: op 2 does not list it as result 0" },
    { g_fewer, NPU_ERR_GRAPH, "value 3: 1 users listed, 0 counted" },
    { g_more, NPU_ERR_GRAPH, "value 1: 1 users listed, 2 counted" },
    { g_chain, NPU_ERR_GRAPH, "value 3: 0 users listed, 1 counted" },
    { g_circle, NPU_ERR_GRAPH, "value 3: 2 users listed, 1 counted" },
    { g_twice, NPU_ERR_DUPLICATE, "value 3: the name 'x' is not its own" },
    { g_operands, NPU_ERR_GRAPH, "op 1: operands or results out of range" },
    { g_results, NPU_ERR_GRAPH, "op 2: operands or results out of range" },
    { g_user, NPU_ERR_GRAPH, "op 1: operand 0 is not defined before it" },
    { g_operand, NPU_ERR_GRAPH, "op 1: operand 0 is not defined before it" },
    { g_later, NPU_ERR_GRAPH, "op 1: operand 0 is not defined before it" },
    { g_blob, NPU_ERR_BAD_ATTR_SIZE, "aten.add.Tensor: its attribute blob does not decode" },
    { g_type, NPU_ERR_SHAPE, "aten.relu.default: results differ from what its type rule gives" },
    { g_output, NPU_ERR_GRAPH, "output 0: value out of range" },
    { g_no_output, NPU_ERR_GRAPH, "output 0: value out of range" },
    { g_unmarked, NPU_ERR_GRAPH, "output 0: its value does not say that it is one" },
};

/* All that is reported, one line each. */
static void note(void *ctx, const npu_diag *diag)
{
    npu_text_printf((npu_text *)ctx, "%s\n", diag->message);
}

static void test_graphs(void)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = small_graph();
        damages[i].damage(g);
        NPU_CHECK_STATUS(npu_graph_validate(g, note, &text), damages[i].status);
        NPU_CHECK_THAT(strstr(text.data ? text.data : "", damages[i].words), "damage %u: '%s'", (unsigned)i, text.data);
        NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), damages[i].status);
        npu_text_free(&text);
        npu_graph_destroy(g);
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------ */

/* relu on the accelerator, neg on the CPU: P0(1 2) T0>1(3) P1(3 4) T1>0(5) P0(5 6); values are ops and 1. */
static rig small_plan(void)
{
    static const char *const allow[] = { "aten.relu.default" };
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.allow = allow;
    desc.num_allow = 1;
    desc.capacity = 1024;
    rig r = rig_start(&desc, 1);
    npu_value y = npu_input(r.graph, "x", F32(2, 3));
    for (const char *kind = "rrnnrr"; *kind; kind++) {
        y = *kind == 'r' ? npu_relu(r.graph, y) : npu_neg(r.graph, y);
    }
    npu_output(r.graph, "y", y);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    return r;
}

static npu__storage *place(npu_plan *p, uint32_t value, uint32_t backend)
{
    uint32_t i = npu__storage_find(p, value, backend);
    NPU_CHECK(i != NPU_NO_INDEX);
    return &p->storage[i == NPU_NO_INDEX ? 0 : i];
}

static void p_nothing(npu_plan *p) { (void)p; }
static void p_no_op(npu_plan *p) { p->step_ops[0].id = 0; }
static void p_op(npu_plan *p) { p->step_ops[0].id = p->num_ops; }
static void p_backend(npu_plan *p) { p->targets[1].backend = 1; }
static void p_order(npu_plan *p) { p->step_ops[0].id = 2, p->step_ops[1].id = 1; }
static void p_dead(npu_plan *p) { place(p, 2, 0)->until = 1; }
static void p_early(npu_plan *p) { place(p, 2, 0)->first = 3; }
static void p_nowhere(npu_plan *p) { p->value_storage[3] = 0; }
static void p_moved_dead(npu_plan *p) { place(p, 3, 0)->until = 2; }
static void p_needless(npu_plan *p) { p->graph->values[p->graph->outputs[0].a].is_output = 0; }
static void p_borrowed(npu_plan *p)
{
    npu__storage *x = place(p, 1, 0);
    x->kind = NPU__WEIGHT;
    x->until = 9;
    place(p, 2, 0)->parent = (uint32_t)(x - p->storage);
}
static void p_outside(npu_plan *p) { place(p, 2, 0)->offset = 1 << 20; }
static void p_shared(npu_plan *p)
{
    npu__storage *a = place(p, 2, 0), *b = place(p, 3, 0);
    a->parent = (uint32_t)(a - p->storage), b->parent = (uint32_t)(b - p->storage);
    a->until = b->until = a->last > b->last ? a->last : b->last;
    a->offset = b->offset = 0;
}
static void p_read(npu_plan *p)
{
    npu__storage *a = place(p, 2, 0), *b = place(p, 3, 0);
    a->last = a->until = 9;
    b->parent = a->parent, b->delta = 0;
}
static void p_shared_buffer(npu_plan *p) { place(p, 3, 0)->offset = place(p, 2, 0)->offset; }
static void p_capacity(npu_plan *p) { p->room[0][0].weights = 2000; }

static const struct { void (*damage)(npu_plan *p); const char *words; } plan_damages[] = {
    { p_nothing, NULL },
    { p_no_op, "step 0, op 0: is no op of this step, or runs twice" },
    { p_op, "step 0, op 7: is no op of this step, or runs twice" },
    { p_backend, "step 0, op 1: is no op of this step, or runs twice" },
    { p_order, "step 0, op 2: reads what is not there yet: value %2" },
    { p_dead, "step 0, op 2: is read when it does not live: value %2" },
    { p_early, "step 0, op 2: is read when it does not live: value %2" },
    { p_nowhere, "step 1, op 0: has no memory: value %3" },
    { p_moved_dead, "step 1, op 0: is read when it does not live: value %3" },
    { p_needless, "step 4, op 0: has an output that nobody needs" },
    { p_borrowed, "overwrites what is no temporary: value x" },
    { p_read, "overwrites what is still read: value %2" },
    { p_outside, "lies outside its arena: value %2" },
    { p_shared, "lies in the memory of another: value" },
    { p_capacity, "a region holds more than its capacity" },
};

static void test_plans(void)
{
    for (size_t i = 0; i < sizeof plan_damages / sizeof *plan_damages; i++) {
        npu_diag diag;
        rig r = small_plan();
        npu_status expected = plan_damages[i].words ? NPU_ERR_INTERNAL : NPU_OK;
        plan_damages[i].damage(r.plan);
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, &diag), expected);
        NPU_CHECK_THAT(!plan_damages[i].words || strstr(diag.message, plan_damages[i].words), "damage %u: '%s'",
                       (unsigned)i, diag.message);
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, NULL), expected);
        rig_end(&r);
    }
}

/* Values that nothing bounds: the third lies where the first did. */
static void test_grown(void)
{
    static const struct { void (*damage)(npu_plan *p); const char *words; } rows[] = {
        { p_nothing, NULL }, { p_shared_buffer, "lies in the memory of another: value" },
        { p_read, "overwrites what is still read: value a" }
    };
    static const char text[] = "graph g\nsymbol n 0 0\ninput x : f32[n,3]\na = aten.relu.default(x)\n"
                               "b = aten.neg.default(a)\nc = aten.relu.default(b)\nd = aten.neg.default(c)\noutput d = d\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npu_diag diag;
        rig r = rig_start(NULL, 0);
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_EQ(r.plan->num_grown[0], 2);
        NPU_CHECK_EQ(place(r.plan, 4, 0)->offset, place(r.plan, 2, 0)->offset);
        rows[i].damage(r.plan);
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, &diag), rows[i].words ? NPU_ERR_INTERNAL : NPU_OK);
        NPU_CHECK_THAT(!rows[i].words || strstr(diag.message, rows[i].words), "damage %u: '%s'", (unsigned)i,
                       diag.message);
        rig_end(&r);
    }
}

/* No op is on a backend that does not take it. */
static void test_refused_op(void)
{
    static const char *const deny[] = { "aten.relu.default" };
    npu_sim_desc desc = { .deny = deny, .num_deny = 1 };
    npu_diag diag;
    rig r = rig_start(&desc, 1);
    npu_value x = npu_input(r.graph, "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 4 }));
    npu_output(r.graph, "y", npu_relu(r.graph, npu_neg(r.graph, x)));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    if (r.plan) {
        NPU_CHECK_EQ(r.plan->num_refused, 1);
        r.plan->refused[0].backend = 1; /* the CPU's */
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, &diag), NPU_ERR_INTERNAL);
        NPU_CHECK_THAT(strstr(diag.message, "op 2: is where it is refused"), "'%s'", diag.message);
    }
    rig_end(&r);
}

/* What has effects runs in the order in which it was written. */
static void test_effects(void)
{
    npu_diag diag;
    rig r = rig_start(NULL, 0);
    for (int i = 0; i < 2; i++) {
        npu_value x = npu_input(r.graph, i ? "b" : "a", npu_spec_tensor(NPU_BOOL, 0, NULL));
        npu_emit(r.graph, NPU_ATEN_ASSERT_ASYNC, (npu_arg[]){ npu_arg_tensor("self", x) }, 1);
    }
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    if (r.plan) {
        npu_op first = r.plan->step_ops[0];
        r.plan->step_ops[0] = r.plan->step_ops[1];
        r.plan->step_ops[1] = first;
        place(r.plan, 1, 0)->until = 2;
        place(r.plan, 2, 0)->first = 0;
        NPU_CHECK_STATUS(npu_plan_validate(r.plan, &diag), NPU_ERR_INTERNAL);
        NPU_CHECK_THAT(strstr(diag.message, "op 1: has effects, and runs too early or too late"), "'%s'", diag.message);
    }
    rig_end(&r);
}

/* ---- invariants ------------------------------------------------------------------------------------------------ */

/* Both headers state theirs with NPU_IR_ASSERT, as the file defines it; they hold from text to run. */
static void test_invariants_are_stated(void)
{
    NPU_ITEM("F54");
    static const char text[] = "graph g\ninput x : f32[2,3]\nt = aten.t.default(x)\nm = aten.mm.default(x, t)\n"
                               "e = aten.einsum.default('ij,jk->ki', [m, x])\ny = aten.relu.default(e)\noutput y = y\n";
    const npu_backend *cpu = npu_ref_backend();
    unsigned long before = num_asserted;
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    NPU_CHECK(num_asserted > before + 30);
    NPU_CHECK_EQ(num_broken, 0);
    npu_plan *plan = exec->program->plan;
    uint32_t root = 0;
    while (plan->storage[root].parent != root) {
        root++;
    }
    npu__storage_join(plan, root, root, 0); /* what no plan does: memory that lies in itself */
    NPU_CHECK_EQ(num_broken, 1);
    num_broken = 0;
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

int main(void)
{
    NPU_RUN(test_graphs);
    NPU_RUN(test_plans);
    NPU_RUN(test_grown);
    NPU_RUN(test_refused_op);
    NPU_RUN(test_effects);
    NPU_RUN(test_invariants_are_stated);
    return npu_test_done();
}
