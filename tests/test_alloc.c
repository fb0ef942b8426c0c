/* Every allocation fails in turn: whatever was asked for then says so, nothing crashes, and nothing is
   left behind. */
#include "rig.h"
#include "../examples/report/npu_report.h"

static npu_registry *shared; /* where making one is not what is tested */

/* After one of so many failures the whole is run once more: after each, but for a sanitizer, under which it takes minutes. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { FULL_RUNS = 4 };
#define IS_SANITIZED
#endif
#endif
#ifndef IS_SANITIZED
enum { FULL_RUNS = 1 };
#endif

static uint64_t fail_each(npu_test_scenario run) { return npu_test_fail_each(run, false); }

/* ---- from a registry to a run ----------------------------------------------------------------------------------- */

enum { MINE_TWICE = NPU_NS_USER << 16 | 1 };

static npu_status type_twice(npu_deduce *d) { return npu_deduce_add_result(d, npu_deduce_spec(d, "x")); }

static const npu_op_row twice_row = { MINE_TWICE, NPU_ELEMENTWISE, type_twice,
                                      "twice(Tensor x, *, float[] extra=[]) -> Tensor", "x + x", NULL };

static npu_status run_twice(const npu_launch *l, uint32_t part, uint32_t parts)
{
    int64_t len = 1;
    (void)part;
    (void)parts;
    for (uint32_t i = 0; i < l->in[0].rank; i++) {
        len *= l->in[0].dims[i];
    }
    for (int64_t i = 0; i < len; i++) {
        ((float *)l->y[0])[i] = 2 * ((const float *)l->x[0])[i];
    }
    return NPU_OK;
}

static npu_status prepare_twice(npu_prepare *p)
{
    p->workspace = 100;
    p->state = npu_prepare_alloc(p, 32);
    return p->state ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static const npu_kernel twice_kernels[] = {
    { .kind = MINE_TWICE, .variant = "plain", .prepare = prepare_twice, .launch = run_twice }
};

/* A model of layers and of ops by name, with parameters, constants, a state, a view, a custom op and
   unknown dims of attributes. */
static npu_status build(npu_model *m)
{
    static const float w[12] = { 1, 2, 3 }, b[3] = { 1, 2, 3 };
    npu_graph *g = npu_model_graph(m);
    npu_layer_linear fc = npu_layer_linear_init("fc", 4, 3);
    npu_layer_relu act = npu_layer_relu_init("act");
    npu_layer_add add = npu_layer_add_init("add");
    npu_value x = npu_model_input(m, "x", F32(2, 4));
    npu_value y = npu_model_add(m, &act.base, npu_model_add(m, &fc.base, x));
    npu_value s = npu_state(g, "s", F32(2, 3)), both[2];
    both[0] = y = npu_model_add_list(m, &add.base, (npu_value[]){ y, s }, 2);
    both[1] = npu_op_result(g, npu_emit_name(g, "mine.twice", (npu_arg[]){ npu_arg_tensor("x", y) }, 1), 0);
    npu_update(g, s, y);
    npu_value joined = npu_cat(NPU_AT(g), both, 2, 1);
    npu_op_set_name(g, npu_value_producer(g, joined, NULL), "join");
    npu_value flat = npu_reshape(g, npu_softmax(g, joined, -1), DIMS(12), 1);
    npu_output(g, "y", npu_add(g, flat, npu_constant(g, NULL, F32(12), w)));
    npu_output(g, "twice", both[1]);
    npu_op_add_saved(g, npu_value_producer(g, joined, NULL), joined);
    npu_graph_bind_param(g, "fc.W", w, sizeof w);
    npu_graph_bind_param(g, "fc.b", b, sizeof b);
    return npu_graph_status(g);
}

/* Prints a graph and parses it again. */
static npu_status round_trip(const npu_graph *g, npu_registry *registry, const npu_allocator *a)
{
    npu_text text = npu_text_init(a), dump = npu_text_init(a), dot = npu_text_init(a);
    npu_graph_desc desc;
    npu_graph *again = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    desc.registry = registry;
    desc.allocator = a;
    npu_status status = npu_graph_print(g, &text);
    status = status ? status : npu_graph_print_short(g, &dump);
    status = status ? status : npu_graph_print_dot(g, &dot);
    status = status ? status : npu_graph_parse(&again, text.data, text.len, &desc, &diag);
    npu_graph_destroy(again);
    npu_text_free(&text);
    npu_text_free(&dump);
    npu_text_free(&dot);
    return status;
}

static npu_status print_all(const npu_plan *plan, const npu_exec *exec, const npu_allocator *a)
{
    npu_text text = npu_text_init(a);
    npu_plan_print(plan, &text);
    npu_plan_print_ops(plan, &text);
    npu_plan_print_memory(plan, &text);
    npu_plan_print_dot(plan, &text);
    npu_exec_print_profile(exec, &text);
    npu_exec_print_trace(exec, &text);
    npu_status status = text.status;
    npu_text_free(&text);
    return status;
}

static npu_status run_on(npu_exec *exec)
{
    static char unaligned[4 * 8 + 1];
    static float y[12];
    npu_status status = npu_test_input(exec, "x", unaligned + 1, 32);
    status = status ? status : npu_exec_set_output(exec, "y", y, sizeof y);
    return status ? status : npu_exec_run(exec);
}

static npu_status plan_and_run(const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends,
                               const npu_allocator *a)
{
    static const char *const force[] = { "aten.softmax.int" };
    npu_plan_desc plan_desc;
    npu_exec_desc exec_desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&plan_desc, 0, sizeof plan_desc);
    memset(&exec_desc, 0, sizeof exec_desc);
    plan_desc.backends = backends;
    plan_desc.num_backends = num_backends;
    plan_desc.force_last = force;
    plan_desc.num_force_last = 1;
    plan_desc.max_groups = 4;
    plan_desc.min_group_ops = 1;
    plan_desc.allocator = exec_desc.allocator = a;
    exec_desc.profile = true;
    npu_status status = npu_plan_create(&plan, g, &plan_desc, &diag);
    status = status ? status : npu_program_create(&program, plan, &diag);
    status = status ? status : npu_exec_create(&exec, program, &exec_desc, &diag);
    NPU_CHECK(status == diag.status && (diag.message[0] != 0) == (status != NPU_OK));
    status = status ? status : run_on(exec);
    status = status ? status : print_all(plan, exec, a);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return status;
}

/* Everything between a registry and a result, with the CPU backend's memory from the same allocator. */
static npu_status whole_way(const npu_allocator *a)
{
    npu_kernel_table tables[64];
    uint32_t num_tables;
    const npu_kernel_table *built_in = npu_ref_kernels(&num_tables);
    npu_registry_desc registry_desc;
    npu_graph_desc graph_desc;
    npu_ref_desc ref_desc;
    npu_registry *registry = NULL;
    npu_backend *cpu = NULL;
    npu_model *m = NULL;
    npu_diag diag;
    memset(&registry_desc, 0, sizeof registry_desc);
    memset(&graph_desc, 0, sizeof graph_desc);
    memset(&ref_desc, 0, sizeof ref_desc);
    memset(&diag, 0, sizeof diag);
    registry_desc.allocator = graph_desc.allocator = ref_desc.allocator = a;
    tables[0].version = NPU_IR_VERSION;
    tables[0].kernels = twice_kernels;
    tables[0].num_kernels = 1;
    NPU_CHECK(num_tables < sizeof tables / sizeof tables[0]);
    memcpy(tables + 1, built_in, num_tables * sizeof *built_in);
    ref_desc.tables = tables;
    ref_desc.num_tables = num_tables + 1;
    npu_status status = npu_registry_create(&registry, &registry_desc, &diag);
    status = status ? status : npu_registry_add(registry, "mine", &twice_row, &diag);
    status = status ? status : npu_ref_create(&cpu, &ref_desc);
    if (!status) {
        graph_desc.registry = registry;
        m = npu_model_create(&(npu_model_desc){ .graph = &graph_desc, .dialect = NPU_DIALECT_AICF });
        status = m ? build(m) : NPU_ERR_NO_MEMORY;
    }
    status = status ? status : npu_graph_validate(npu_model_graph(m), NULL, NULL);
    status = status ? status : round_trip(npu_model_graph(m), registry, a);
    if (!status) {
        const npu_backend *backends[1];
        backends[0] = cpu; /* alone: a group that one backend has no memory for goes to the next */
        status = plan_and_run(npu_model_graph(m), backends, 1, a);
    }
    npu_model_destroy(m);
    npu_ref_destroy(cpu);
    npu_registry_destroy(registry);
    return status;
}

static void test_whole_way(void)
{
    NPU_CHECK(fail_each(whole_way) > 200);
}

/* ---- rewriting and specializing --------------------------------------------------------------------------------- */

static npu_status drop_relu(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    if (npu_op_kind(from, op) == NPU_ATEN_RELU) {
        npu_value y = npu_neg(npu_rewrite_target(rw), npu_rewrite_value(rw, npu_op_operand_value(from, op, 0)));
        npu_rewrite_replace(rw, npu_op_result(from, op, 0), y);
        return npu_graph_status(npu_rewrite_target(rw));
    }
    return npu_rewrite_copy(rw, op).id ? NPU_OK : npu_graph_status(npu_rewrite_target(rw));
}

static npu_status change(const npu_allocator *a)
{
    const char *name = "n";
    npu_graph_desc desc;
    npu_graph *fixed = NULL, *rewritten = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.allocator = a;
    npu_graph *g = npu_graph_create(&desc);
    int64_t n = npu_graph_add_symbol(g, "n", 1, 16);
    npu_value x = npu_input(g, "x", F32(n, 4)), p = npu_param(g, "p", F32(4)), s = npu_state(g, "s", F32(n, 4));
    npu_value y = npu_relu(g, npu_add(NPU_AT(g), x, p));
    npu_update(g, s, npu_add(g, y, s));
    npu_output(g, "y", npu_softmax(g, npu_cat(g, (npu_value[]){ y, s }, 2, 1), -1));
    npu_status status = npu_graph_status(g);
    status = status ? status : npu_graph_specialize(&fixed, g, &name, DIMS(3), 1, &diag);
    status = status ? status : npu_graph_rewrite(&rewritten, fixed, drop_relu, NULL, &diag);
    NPU_CHECK((rewritten != NULL) == (status == NPU_OK));
    npu_graph_destroy(rewritten);
    npu_graph_destroy(fixed);
    npu_graph_destroy(g);
    return status;
}

static void test_change(void)
{
    NPU_CHECK(fail_each(change) > 50);
}

/* ---- a refused group, threads, texts ---------------------------------------------------------------------------- */

/* The accelerator refuses a group, so the plan changes while the program is made. */
static npu_status refused(const npu_allocator *a)
{
    npu_sim_desc sim_desc;
    npu_graph_desc graph_desc;
    npu_sim *sim = NULL;
    memset(&sim_desc, 0, sizeof sim_desc);
    memset(&graph_desc, 0, sizeof graph_desc);
    graph_desc.registry = shared;
    sim_desc.refuse = "aten.add.Tensor";
    graph_desc.allocator = a;
    NPU_CHECK_STATUS(npu_sim_create(&sim, &sim_desc), NPU_OK);
    const npu_backend *backends[2];
    backends[0] = npu_sim_backend(sim);
    backends[1] = npu_ref_backend();
    npu_graph *g = npu_graph_create(&graph_desc);
    npu_value x = npu_input(g, "x", F32(2, 4)), s = npu_state(g, "s", F32(2, 4));
    npu_value y = npu_add(g, npu_relu(g, x), W(4));
    npu_update(g, s, npu_neg(g, s));
    npu_output(g, "where", npu_argmax(g, y, 0, false)); /* not for the accelerator */
    npu_value joined = npu_cat(g, (npu_value[]){ y, npu_slice(g, s, 0, 0, 1, 1) }, 2, 0);
    npu_output(g, "y", npu_reshape(g, joined, DIMS(12), 1));
    npu_status status = npu_graph_status(g);
    status = status ? status : plan_and_run(g, backends, 2, a);
    npu_graph_destroy(g);
    NPU_CHECK_EQ(npu_sim_count(sim).live_buffers, 0);
    NPU_CHECK_EQ(npu_sim_count(sim).live_programs, 0);
    npu_sim_destroy(sim);
    return status;
}

static void test_refused(void)
{
    NPU_CHECK(fail_each(refused) > 50);
}

static npu_status simple(const npu_allocator *a)
{
    npu_graph_desc desc;
    npu_exec *exec = NULL;
    npu_parallel *threads = NULL;
    const npu_backend *cpu = npu_ref_backend();
    memset(&desc, 0, sizeof desc);
    desc.registry = shared;
    desc.allocator = a;
    npu_graph *g = npu_graph_create(&desc);
    npu_output(g, "y", npu_relu(g, npu_input(g, "x", F32(12))));
    npu_status status = npu_graph_status(g);
    status = status ? status : npu_threads_create(&threads, &(npu_threads_desc){ .width = 3, .allocator = a });
    status = status ? status : npu_exec_create_simple(&exec, g, &cpu, 1, NULL);
    npu_exec_destroy(exec);
    npu_threads_destroy(threads);
    npu_graph_destroy(g);
    return status;
}

static void test_simple(void)
{
    NPU_CHECK(fail_each(simple) > 30);
}

/* ---- runtime dims: planned ones, and a buffer that grows twice -------------------------------------- */

static npu_status run_repeats(npu_exec *exec, const float *x, int64_t n, const int64_t *repeats)
{
    static float out[64];
    npu_status status = npu_test_input_dims(exec, "x", 2, DIMS(n, 2), x);
    status = status ? status : npu_test_input_dims(exec, "r", 1, &n, repeats);
    status = status ? status : npu_exec_set_output(exec, "y", out, sizeof out);
    return status ? status : npu_exec_run(exec);
}

static npu_status dynamic(const npu_allocator *a)
{
    static const char text[] =
        "graph main\nsymbol n 0 4\ninput x : f32[n,2]\ninput r : i64[n]\nconst w : f32[2,2] {1.0, 2.0, 3.0, 4.0}\n"
        "p = aten.linear.default(x, w)\nq = aten.repeat_interleave.self_Tensor(p, r, 0)\nz = aten.relu.default(q)\n"
        "y = aten.mm.default(z, w)\nm = aten.gt.Scalar(x, 0)\ns = aten.masked_select.default(x, m)\n"
        "output y = y\noutput s = s\noutput z = z\n";
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_ref_desc ref_desc = { .allocator = a };
    npu_backend *cpu = NULL;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    float x[8];
    fill(x, 8, 1);
    npu_status status = npu_graph_parse(&g, text, strlen(text), &desc, NULL);
    status = status ? status : npu_ref_create(&cpu, &ref_desc);
    if (!status) {
        const npu_backend *backends[1];
        backends[0] = cpu;
        status = npu_exec_create_simple(&exec, g, backends, 1, NULL);
    }
    status = status ? status : run_repeats(exec, x, 2, DIMS(1, 2));
    status = status ? status : run_repeats(exec, x, 0, DIMS(0));
    status = status ? status : run_repeats(exec, x, 4, DIMS(5, 4, 3, 9));
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    return status;
}

static void test_dynamic(void)
{
    NPU_CHECK(fail_each(dynamic) > 100);
}

/* ---- kernels that PyTorch's vectors do not reach: those of conformance fail there ------------------------------ */

static npu_status kernels(const npu_allocator *a)
{
    static const char text[] =
        "graph main\nchild f scalar\ninput a : scalar f32[]\ninput b : scalar f32[]\ns = aten.add.Tensor(a, b)\n"
        "t = aten.exp.default(s)\noutput t = t\nend\n"
        "child g scalar\ninput a : scalar f32[]\ninput b : scalar f32[]\ns = aten.add.Tensor(a, b)\noutput s = s\nend\n"
        "input x : f32[2,3]\ninput v : f32[3]\ninput m : f32[2]\ninput one : f32[]\ninput h : f16[9,16]\n"
        "input c : f16[1,3,5,5]\n"
        "y0 = npu.fused([x, x], body=graph 0)\nd = tensor.empty(size=[2], dtype=f32)\n"
        "y1 = linalg.generic([x], [d], maps=['(i, j) -> (i, j)', '(i, j) -> (i)'], "
        "iterators=['parallel', 'reduction'], body=graph 1)\n"
        "y2, m2, v2 = aicf.adam_step(x, x, x, x, one, one, lr=0.01)\ny3 = aicf.mse_grad(x, x, scale=2.0)\n"
        "y4, y5, y6 = aicf.layernorm_bwd(x, x, v, m, m)\ny7 = tensor.pad(x, low=[0, 1], high=[2, 0], value=-1.5)\n";
    npu_ref_desc ref_desc = { .allocator = a };
    npu_backend *cpu = NULL;
    npu_text all = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    static const float zeros[9 * 16];
    static const struct { const char *name, *dims; int len; } weights[] = {
        { "w", "16,16", 256 }, { "k", "4,3,3,3", 108 }, { "u", "4,3,1,1", 12 }
    };
    npu_text_printf(&all, "%s", text);
    for (int i = 0; i < 3; i++) {
        npu_text_printf(&all, "const %s : f16[%s] {0.5", weights[i].name, weights[i].dims);
        for (int n = 1; n < weights[i].len; n++) {
            npu_text_printf(&all, ", 0.5");
        }
        npu_text_printf(&all, "}\n");
    }
    npu_text_printf(&all, "y8 = aten.mm.default(h, w)\ny9 = aten.conv2d.default(c, k)\n"
                          "y10 = aten.conv2d.default(c, u)\n");
    for (int i = 0; i <= 10; i++) {
        npu_text_printf(&all, "output y%d = y%d\n", i, i);
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, all.data, all.len, NULL, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    npu_status status = npu_ref_create(&cpu, &ref_desc);
    const npu_backend *backends[] = { cpu };
    status = status ? status : npu_exec_create_simple(&exec, g, backends, 1, NULL);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g) && !status; i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        status = npu_test_input_at(exec, i, zeros, size);
    }
    status = status ? status : npu_exec_run(exec);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    npu_text_free(&all);
    return status;
}

static void test_kernels(void)
{
    NPU_ITEM("F59");
    NPU_CHECK(fail_each(kernels) > 20);
}

/* ---- ops with two new specs each ---- */


/* The table of specs grows between the first and the second look at what an op results in. */
static npu_status many_specs(const npu_allocator *a)
{
    npu_graph_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.registry = shared;
    desc.allocator = a;
    npu_graph *g = npu_graph_create(&desc);
    for (int64_t n = 1; n <= 40 && npu_graph_status(g) == NPU_OK; n++) {
        npu_value x = npu_input(g, NULL, npu_spec_tensor(NPU_F32, 2, DIMS(n, 3)));
        npu_op most = npu_max_dim(g, x, 1, false);
        npu_output(g, NULL, npu_op_result(g, most, 1));
    }
    npu_status status = npu_graph_status(g);
    npu_graph_clear_error(g);
    for (uint32_t id = 1; id <= npu_graph_num_values(g); id++) {
        npu_value v = { id };
        NPU_CHECK(npu_value_spec(g, v)->dtype == NPU_F32 || npu_value_spec(g, v)->dtype == NPU_I64);
    }
    npu_graph_destroy(g);
    return status;
}

static void test_many_specs(void)
{
    NPU_ITEM("F60");
    NPU_CHECK(fail_each(many_specs) > 40);
}

/* ---- files, optimising, lowering ---- */

/* A batch norm whose two tensors may stand in several places: the reader tries them. */
static const char node_json[] =
    "{'graph_inputs':[{'name':'x','shape':[2,3,2,2],'dtype':'float32'}],"
    "'graph_outputs':[{'name':'y','shape':[2,3,2,2],'dtype':'float32'}],"
    "'weights':[{'name':'v','shape':[3],'dtype':'float32'},{'name':'m','shape':[3],'dtype':'float32'}],"
    "'weight_name_mapping':{'bv':'v','bm':'m'},'nodes':[{'name':'y','op_type':'aten.batch_norm.default',"
    "'inputs':[{'name':'x','producer_node':'x','producer_output_idx':0},{'name':'bm'},{'name':'bv'}],"
    "'outputs':[{'name':'y','shape':[2,3,2,2],'dtype':'float32'}],"
    "'attrs':{'training':false,'momentum':0.1,'eps':1e-05,'cudnn_enabled':true}}]}";

/* Writes to views, runtime dims by name, constants, and types of quantised weights. */
static const char written_json[] =
    "{'graph_inputs':[{'name':'x','shape':['s0',3],'dtype':'float32'}],"
    "'graph_outputs':[{'name':'y','shape':['s0',3],'dtype':'float32'}],"
    "'range_constraints':{'s0':{'min_val':2,'max_val':8}},"
    "'constants':{'c':{'data':[1.5,2.5,3.5],'dtype':'float32'}},'weight_name_mapping':{'p_c':'c'},"
    "'weights':[{'name':'c','shape':[3],'dtype':'float32'}],"
    "'nodes':[{'name':'n','op_type':'aten.neg.default','inputs':[{'name':'x'}],"
    "'outputs':[{'name':'n','shape':['s0',3],'dtype':'float32'}],'attrs':{}},"
    "{'name':'v','op_type':'aten.select.int','inputs':[{'name':'n'}],"
    "'outputs':[{'name':'v','shape':[3],'dtype':'float32'}],'attrs':{'dim':0,'index':1}},"
    "{'name':'w','op_type':'aten.add_.Tensor','inputs':[{'name':'v'},{'name':'p_c'}],"
    "'outputs':[{'name':'w','shape':[3],'dtype':'float32'}],'attrs':{}},"
    "{'name':'y','op_type':'aten.relu.default','inputs':[{'name':'n'}],"
    "'outputs':[{'name':'y','shape':['s0',3],'dtype':'float32'}],'attrs':{}}]}";

static const char *json_now = node_json;

static npu_status read_json(const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_text json = npu_text_init(a), again = npu_text_init(a);
    npu_graph *g = NULL, *copy = NULL;
    npu_diag diag = { 0 };
    npu_status status;
    for (const char *c = json_now; *c; c++) {
        npu_text_printf(&json, "%c", *c == '\'' ? '"' : *c);
    }
    status = json.status ? json.status : npu_graph_parse_json(&g, json.data, json.len, &desc, &diag);
    NPU_CHECK_STATUS(diag.status, json.status ? NPU_OK : status);
    status = status ? status : npu_graph_print_json(g, &again);
    status = status ? status : npu_graph_parse_json(&copy, again.data, again.len, &desc, &diag);
    npu_graph_destroy(g);
    npu_graph_destroy(copy);
    npu_text_free(&json);
    npu_text_free(&again);
    return status;
}

static void test_json(void)
{
    NPU_ITEM("F16");
    NPU_CHECK(fail_each(read_json) > 40);
    json_now = written_json;
    NPU_CHECK(fail_each(read_json) > 60);
}

static const char to_optimise[] =
    "graph main\ninput x : f32[1,2,6,6]\nconst w : f32[2,2,1,1] {1, 2, 3, 4}\nconst s : f32[2] {1, 2}\nconst i : i64[1] {1}\n"
    "const dead : f32[2] {1, 2}\nparam h : f32[6,6]\nstate k : f32[1,2,6,6]\n"
    "c = aten.conv2d.default(x, w)\nn = aten.batch_norm.default(c, s, s, s, s, false, 0.1, 0.001, false)\n"
    "r = aten.relu.default(n)\nq = aten.mul.Tensor(r, k)\nt = aten.t.default(h)\nu = aten.matmul.default(q, t)\n"
    "v = aten.matmul.default(q, t)\ne = aten.alias.default(v)\nf = aten.add.Tensor(u, e)\nz = aten.max_pool2d.default(f, [2, 2])\n"
    "g = aten.sigmoid.default(z)\nb = aten.mul.Tensor(g, z)\no = aten.softmax.int(b, -1)\na = aten.index_select.default(o, 3, i)\n"
    "p, l = aten.max.dim(a, 1)\nupdate k = f\noutput o = o\noutput p = p\n";

static void count_reports(void *ctx, const npu_pass_report *report) { *(uint32_t *)ctx += report->num_changes; }

static npu_status optimised(const npu_allocator *a)
{
    static const float h[36] = { 1, 2, 3 };
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_ref_desc ref_desc = { .allocator = a };
    npu_optimize_desc optimize = { 0 }, fuse = { 0 };
    npu_backend *cpu = NULL;
    const npu_backend *backends[1];
    npu_graph *g = NULL, *fast = NULL, *fused = NULL, *loops = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    uint32_t changes = 0;
    npu_status status = npu_ref_create(&cpu, &ref_desc);
    backends[0] = cpu;
    optimize.backends = backends;
    optimize.num_backends = 1;
    fuse.passes = 1u << NPU_PASS_FUSE | 1u << NPU_PASS_CONV_ACTIVATION;
    optimize.report = count_reports;
    optimize.report_ctx = &changes;
    status = status ? status : npu_graph_parse(&g, to_optimise, sizeof to_optimise - 1, &desc, &diag);
    status = status ? status : npu_graph_bind_param(g, "h", h, sizeof h);
    status = status ? status : npu_graph_optimize(&fast, g, &optimize, NULL, &diag);
    NPU_CHECK(status || changes > 6);
    status = status ? status : npu_graph_optimize(&fused, g, &fuse, NULL, &diag);
    status = status ? status : npu_graph_run_passes(&loops, g, npu_conversion_pass("convert-aten-to-linalg"), 1, NULL, &diag);
    status = status ? status : npu_exec_create_simple(&exec, fast, backends, 1, &diag);
    npu_exec_destroy(exec);
    npu_graph_destroy(loops);
    npu_graph_destroy(fused);
    npu_graph_destroy(fast);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    return status;
}

static void test_optimised(void)
{
    NPU_ITEM("F16");
    NPU_CHECK(fail_each(optimised) > 500);
}

/* An exported quantised model, which becomes a convolution and a sum on integers. */
static const char quantised[] =
    "graph main\ninput x : f32[1,2,4,4]\nconst w : i8[2,2,1,1] {1, 2, 3, 4}\nconst s : f32[2] {0.5, 0.25}\nconst z : i64[2] {0, 0}\n"
    "const b : f32[2] {1, 2}\nq = quantized_decomposed.quantize_per_tensor.default(x, 0.5, 1, -128, 127, i8)\n"
    "d = quantized_decomposed.dequantize_per_tensor.default(q, 0.5, 1, -128, 127, i8)\n"
    "v = quantized_decomposed.dequantize_per_channel.default(w, s, z, 0, -127, 127, i8)\nc = aten.conv2d.default(d, v, b)\n"
    "r = aten.relu.default(c)\np = quantized_decomposed.quantize_per_tensor.default(r, 0.5, 1, -128, 127, i8)\n"
    "e = quantized_decomposed.dequantize_per_tensor.default(p, 0.5, 1, -128, 127, i8)\na = aten.add.Tensor(e, d)\n"
    "f = quantized_decomposed.quantize_per_tensor.default(a, 0.5, 1, -128, 127, i8)\n"
    "h = quantized_decomposed.dequantize_per_tensor.default(f, 0.5, 1, -128, 127, i8)\ny = aten.exp.default(h)\noutput y = y\n";

static void count_refusals(void *ctx, const npu_pass_report *report) { *(uint32_t *)ctx += report->num_refusals; }

static npu_status made_integer(const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    uint32_t refusals = 0;
    npu_optimize_desc optimize = { .passes = 1u << NPU_PASS_INTEGER, .report = count_refusals, .report_ctx = &refusals };
    npu_graph *g = NULL, *now = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, quantised, sizeof quantised - 1, &desc, &diag);
    status = status ? status : npu_graph_optimize(&now, g, &optimize, NULL, &diag);
    NPU_CHECK(status || (refusals == 1 && npu_graph_num_ops(now) == 5));
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    return status;
}

static void test_integer(void)
{
    NPU_ITEM("F16");
    NPU_CHECK(fail_each(made_integer) > 50);
}

static bool measures;

static void quantise_report(void *ctx, const npu_quantize_report *report)
{
    npu_text text = npu_text_init((const npu_allocator *)ctx);
    npu_quantize_report_print(report, &text);
    npu_text_free(&text);
}

static npu_status quantised_graph(const npu_allocator *a)
{
    static const char text[] = "graph main\ninput x : f32[1,2,3,3]\nconst w : f32[2,2,1,1] {1, 2, 3, 4}\n"
        "c = aten.conv2d.default(x, w)\nr = aten.clamp.default(c, 0.0, 6.0)\ns = aten.add.Tensor(r, x)\noutput y = s\n";
    static const char one[] = "graph main\ninput x : f32[1,2,3,3]\nconst w : f32[2,2,1,1] {1, 2, 3, 4}\n"
        "c = aten.conv2d.default(x, w)\noutput c = c\n";
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    const npu_backend *cpu = npu_ref_backend();
    float x[18];
    npu_array sample = { .spec = F32(1, 2, 3, 3), .data = x };
    npu_quantize_desc quantise = { .backends = &cpu, .num_backends = 1, .inputs = &sample, .num_samples = 1,
                                   .correct_bias = measures, .num_measured = measures, .report = measures ? quantise_report : NULL };
    npu_graph *g = NULL, *now = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, measures ? one : text, measures ? sizeof one - 1 : sizeof text - 1, &desc, &diag);
    quantise.report_ctx = (void *)(uintptr_t)a;
    for (int i = 0; i < 18; i++) {
        x[i] = (float)(i - 9);
    }
    status = status ? status : npu_graph_quantize(&now, g, &quantise, &diag);
    NPU_CHECK((status == NPU_OK) == (now != NULL));
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    return status;
}

/* What the report is printed to may have no memory: then it alone says so. */
static void test_quantize(void)
{
    for (int i = 0; i < 2; i++) {
        measures = i;
        NPU_CHECK(npu_test_fail_each(quantised_graph, measures) > 100);
    }
}

/* ---- everything that is done with a file ------------------------------------------------------------------------ */

#define PASSES(x) (1u << NPU_PASS_##x)

/* Ops that each of the passes, conversions and forms of text does something with. */
static const char *const files[] = {
    "graph main\nsymbol n 1 8\ninput x : f32[n,3]\nconst w : f32[4,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
    "const c : f32[4] {0.5, 1.5, -1.0, 0.25}\nconst h : i64[2] {0, 2}\nstate s : f32[n,4]\n"
    "y = aten.linear.default(x, w)\na = aten.add.Tensor(y, c)\nd = aten.add.Tensor(c, c)\nb = aten.mul.Tensor(a, d)\n"
    "r = aten.relu.default(b)\nu = aten.sigmoid.default(r)\nv = aten.mul.Tensor(u, r)\n"
    "p, q = aten.split.Tensor(v, 2, 1)\nk = aten.cat.default([q, p], 1)\ne = aten.select.int(k, 1, -1)\n"
    "i = aten.index_select.default(k, 1, h)\nt = aten.softmax.int(i, -1)\nsave y = k\nupdate s = k\n"
    "output e = e\noutput t = t\n",
    "graph conv\ninput x : f32[1,2,5,5]\nconst w : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
    "c = aten.conv2d.default(x, w)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
    "r = aten.relu.default(n)\nd = aten.conv2d.default(r, w)\ns = aten.silu.default(d)\n"
    "p = aten.max_pool2d.default(s, [2, 2])\nf = aten.flatten.using_ints(p, 1, -1)\n"
    "a = aten.add.Tensor(f, f)\nl = aten.layer_norm.default(a, [8])\noutput y = l\n",
    "graph attention\ninput q : f32[2,3,4]\ninput k : f32[2,3,4]\nconst g : f32[4] {1, 2, 3, 4}\n"
    "t = aten.transpose.int(k, -2, -1)\nm = aten.matmul.default(q, t)\nd = aten.div.Scalar(m, 2.0)\n"
    "s = aten.softmax.int(d, -1)\no = aten.matmul.default(s, k)\nz = aten.mul.Tensor(o, o)\n"
    "e = aten.mean.dim(z, [-1], true)\nv = aten.add.Scalar(e, 1e-5)\nr = aten.rsqrt.default(v)\n"
    "n = aten.mul.Tensor(o, r)\ny = aten.mul.Tensor(n, g)\noutput y = y\n",
    "graph device\ninput x : f32[2,3]\nconst w : f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
    "const b : f32[4] {1, 2, 3, 4}\ng = aicf.gemm(x, w)\n"
    "a = aicf.bias_add(g, b)\nr = aicf.relu(a)\ns = aicf.softmax(r)\noutput y = s\n",
    "graph writes\ninput x : f32[2,3]\na = aten.neg.default(x)\nv = aten.view.default(a, [6])\nt = aten.t.default(a)\n"
    "b = aten.add_.Tensor(v, 10.0)\nu = aten.select.int(a, 0, 1)\nw = aten.mul_.Tensor(u, 2.0)\n"
    "m = aten.transpose.int(t, 0, 1)\nn = aten.relu_.default(m)\noutput y = a\noutput v = v\noutput t = t\n",
    "graph quantised\ninput q : i8[2,4] quant(2, 0, 0, [0.5, 1.0], [0, -3])\n"
    "input r : i4[2,64] quant(3, 1, 32, [0.5, 1.0, 2.0, 4.0])\nv = aten.t.default(q)\n"
    "w = aten.t.default(v)\nu = aten.t.default(w)\noutput q = q\noutput u = u\noutput r = r\n",
    "graph calls\nchild f\n"
    "input a : f32[2]\nb = aten.exp.default(a)\nc = aten.add.Tensor(b, a)\noutput c = c\nend\n"
    "input x : f32[2]\ny = npu.call([x], body=graph 0) : f32[2]\nz = npu.call([y], body=graph 0) : f32[2]\n"
    "output z = z\n",
};

typedef npu_status (*way)(const npu_graph *g, const npu_allocator *a);

static struct { const char *text; way take; } now;

static npu_status way_prints(const npu_graph *g, const npu_allocator *a)
{
    static npu_status (*const prints[])(const npu_graph *, npu_text *) = { npu_graph_print, npu_graph_print_short, npu_graph_print_dot, npu_graph_print_stats };
    npu_text text = npu_text_init(a);
    npu_status status = NPU_OK;
    for (size_t i = 0; i < sizeof prints / sizeof prints[0] && !status; i++) {
        status = prints[i](g, &text);
    }
    status = status ? status : npu_graph_print_mermaid(g, NULL, &text);
    status = status ? status : npu_graph_print_pie(g, 3, &text);
    npu_text_free(&text);
    return status;
}

static npu_status way_json(const npu_graph *g, const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_text text = npu_text_init(a);
    npu_graph *again = NULL;
    const npu_backend *cpu = npu_ref_backend();
    npu_status status = npu_graph_print_json(g, &text);
    status = status ? status : npu_graph_check_json(text.data, text.len, &desc, &cpu, 1, NULL, NULL, NULL);
    status = status ? status : npu_graph_parse_json(&again, text.data, text.len, &desc, NULL);
    npu_graph_destroy(again);
    npu_text_free(&text);
    return status;
}

static npu_status optimize(const npu_graph *g, uint32_t passes)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = passes };
    npu_pass_options options = { .validate = true };
    npu_graph *better = NULL;
    npu_status status = npu_graph_optimize(&better, g, &desc, &options, NULL);
    npu_graph_destroy(better);
    return status;
}

static npu_status way_passes(const npu_graph *g, const npu_allocator *a)
{
    (void)a;
    return optimize(g, 0);
}

static npu_status way_device_passes(const npu_graph *g, const npu_allocator *a)
{
    (void)a;
    return optimize(g, PASSES(ATEN_TO_AICF) | PASSES(GEMM) | PASSES(CONV_ACTIVATION) | PASSES(ADD_NORM) | PASSES(COMMON));
}

static npu_status way_aten_passes(const npu_graph *g, const npu_allocator *a)
{
    (void)a;
    return optimize(g, PASSES(AICF_TO_ATEN) | PASSES(FUSE) | PASSES(INLINE) | PASSES(DEAD_CODE));
}

static npu_status way_lower(const npu_graph *g, const npu_allocator *a)
{
    npu_pass pass = *npu_conversion_pass("convert-aten-to-linalg");
    npu_pass_options options = { .validate = true };
    npu_graph *lowered = NULL;
    npu_status status = npu_graph_run_passes(&lowered, g, &pass, 1, &options, NULL);
    status = status ? status : round_trip(lowered, shared, a);
    npu_graph_destroy(lowered);
    return status;
}

static npu_status way_extract(const npu_graph *g, const npu_allocator *a)
{
    npu_op ops[32];
    npu_graph *part = NULL;
    uint32_t n = 0;
    (void)a;
    for (uint32_t i = 2; i <= npu_graph_num_ops(g) && n < 32; i += 1 + i % 2) {
        ops[n++].id = i;
    }
    npu_status status = npu_graph_extract(&part, g, ops, n, NULL);
    npu_graph_destroy(part);
    return status;
}

static npu_status way_cache(const npu_graph *g, const npu_allocator *a)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc plan = { .backends = &cpu, .num_backends = 1, .allocator = a };
    npu_program_cache *cache = NULL;
    npu_program *program = NULL;
    npu_graph *fixed = NULL;
    const char *const name = "n";
    npu_status status = npu_program_cache_create(&cache, &(npu_program_cache_desc){ .allocator = a });
    status = status ? status : npu_graph_specialize(&fixed, g, &name, DIMS(2), strstr(now.text, "symbol n") != NULL, NULL);
    status = status ? status : npu_program_cache_acquire(cache, &program, fixed, &plan, NULL);
    if (program) {
        npu_program_cache_release(cache, program);
    }
    npu_program_cache_destroy(cache);
    npu_graph_destroy(fixed);
    return status;
}

static const struct { const char *name; way take; bool may_go_on; } ways[] = { /* what cannot be looked into may stay as it is */
    { "prints", way_prints, false }, { "json", way_json, false }, { "passes", way_passes, false }, { "device passes", way_device_passes, true },
    { "aten passes", way_aten_passes, true }, { "lower", way_lower, true }, { "extract", way_extract, false }, { "cache", way_cache, false },
};

static npu_status one_way(const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_graph *g = NULL;
    npu_status status = npu_graph_parse(&g, now.text, strlen(now.text), &desc, NULL);
    status = status ? status : npu_graph_validate(g, NULL, NULL);
    status = status ? status : now.take(g, a);
    npu_graph_destroy(g);
    return status;
}

static void test_files(void)
{
    NPU_ITEM("F59");
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            int bad = npu_test.bad_checks;
            now.text = files[f];
            now.take = ways[i].take;
            NPU_CHECK(npu_test_fail_each(one_way, ways[i].may_go_on) > 30);
            if (npu_test.bad_checks != bad) {
                fprintf(stderr, "%s of file %d\n", ways[i].name, (int)f);
            }
        }
    }
}

/* Planning asks the CPU about a call, which looks at each op of its body. */
static const char with_call[] =
    "graph main\nchild c\ninput a : f32[2,3]\nb = aten.cumsum.default(a, 1)\noutput b = b\nend\n"
    "input x : f32[2,3]\ny = npu.call(args=[x], body=graph 0) : f32[2,3]\noutput y = y\n";

static npu_status planned_call(const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_ref_desc ref_desc = { .allocator = a };
    npu_backend *cpu = NULL;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_ref_create(&cpu, &ref_desc);
    const npu_backend *backend = cpu;
    status = status ? status : npu_graph_parse(&g, with_call, sizeof with_call - 1, &desc, &diag);
    status = status ? status : npu_exec_create_simple(&exec, g, &backend, 1, &diag);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    return status;
}

/* Ops whose lowering goes on with what an earlier step of it made. */
static const char to_lower[] =
    "graph main\ninput x : f32[2,4,4,4]\ninput n : f32[1,2,4,4,4]\ninput i : i64[2,4,4,4]\ninput w : f32[2,2,2,2,2]\n"
    "a = aten.max_pool3d.default(x, [2, 2, 2], [2, 2, 2], [1, 1, 1])\nb = aten.avg_pool3d.default(x, [3, 3, 3], [2, 2, 2], [1, 1, 1])\n"
    "c = aten.adaptive_avg_pool3d.default(x, [2, 2, 2])\nd = aten.conv3d.default(x, w, padding=[1, 1, 1])\n"
    "e = aten.max_pool2d.default(i, [2, 2], [1, 1], [1, 1])\nf = aten.mean.dim(n, [1, 2])\n"
    "h = aten.softmax.int(x, 1)\nj = aten.constant_pad_nd.default(x, [1, 1, 0, 2], 3.0)\n"
    "k = aten.cat.default([x, x], 1)\nl = aten.permute.default(x, [3, 1, 0, 2])\nm = aten.select.int(x, 1, 2)\n"
    "output a = a\noutput b = b\noutput c = c\noutput d = d\noutput e = e\noutput f = f\noutput h = h\noutput j = j\n"
    "output k = k\noutput l = l\noutput m = m\n";

static npu_status lowered(const npu_allocator *a)
{
    npu_graph_desc desc = { .registry = shared, .allocator = a };
    npu_graph *g = NULL, *loops = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, to_lower, sizeof to_lower - 1, &desc, &diag);
    NPU_CHECK(status == NPU_OK || status == NPU_ERR_NO_MEMORY || !fprintf(stderr, "%s\n", diag.message));
    status = status ? status : npu_graph_run_passes(&loops, g, npu_conversion_pass("convert-aten-to-linalg"), 1, NULL, &diag);
    NPU_CHECK(status == NPU_OK || status == NPU_ERR_NO_MEMORY || !fprintf(stderr, "%s\n", diag.message));
    npu_graph_destroy(loops);
    npu_graph_destroy(g);
    return status;
}

static void test_asked(void)
{
    NPU_ITEM("F16");
    NPU_CHECK(fail_each(planned_call) > 20);
    NPU_CHECK(fail_each(lowered) > 100);
}

/* ---- things that are done again and again with objects that stay ---- */

/* Allocations of `again.a` fail in turn while `step` runs, which leaves nothing; after each failure the same objects do
   it with all memory there is. May go on: see fail_each_of. */
static struct {
    npu_alloc_counter c;
    npu_allocator a;
    rig r;
    npu_text text; /* what the step writes, of `a`, emptied after each; or what it reads, of none */
    npu_advice advice[16];
    uint32_t num_advice;
} again;

static uint64_t fail_again(npu_status (*step)(void), bool may_go_on)
{
    npu_status status;
    uint64_t n = 0, calls;
    int bad = npu_test.bad_checks;
    do {
        uint64_t before = again.c.live_bytes;
        again.c.num_calls = 0;
        again.c.fail_at = ++n;
        status = step();
        calls = again.c.num_calls;
        NPU_CHECK_STATUS(status, calls < n || (may_go_on && !status) ? NPU_OK : NPU_ERR_NO_MEMORY);
        NPU_CHECK_EQ(again.c.live_bytes, before);
        again.c.fail_at = 0;
        if (n % FULL_RUNS == 0) {
            NPU_CHECK_STATUS(step(), NPU_OK);
            NPU_CHECK_EQ(again.c.live_bytes, before);
        }
        if (npu_test.bad_checks != bad) {
            fprintf(stderr, "allocation %llu\n", (unsigned long long)n);
            break;
        }
    } while (calls >= n);
    return n - 1;
}

/* Two accelerators, the first of which takes no cat and no softmax, and a graph from text; all is made of `a`. */
static void again_start(const char *text, const npu_sim_desc *desc)
{
    static const char *const deny[] = { "aten.cat.default", "aten.softmax.int" };
    npu_sim_desc descs[2];
    npu_graph_desc graph_desc = { .registry = shared, .allocator = &again.a };
    memset(&again, 0, sizeof again);
    descs[0] = descs[1] = *desc;
    descs[0].deny = deny;
    descs[0].num_deny = 2;
    descs[1].name = "other";
    descs[1].allow = deny;
    descs[1].num_allow = 1;
    again.a = npu_allocator_counting(&again.c);
    again.r = rig_start(descs, 2);
    again.text = npu_text_init(&again.a);
    npu_graph_destroy(again.r.graph);
    again.r.graph = NULL;
    NPU_CHECK_STATUS(npu_graph_parse(&again.r.graph, text, strlen(text), &graph_desc, &again.r.diag), NPU_OK);
    again.r.desc.backends = again.r.backends;
    again.r.desc.allocator = again.r.exec_desc.allocator = &again.a;
}

static void again_end(void)
{
    npu_text_free(&again.text);
    rig_end(&again.r);
    NPU_CHECK_EQ(again.c.live_bytes, 0);
}

static const char parted[] =
    "graph parted\ninput x : f32[4,6]\nconst w : f32[6] {1, 2, 3, 4, 5, 6}\nstate s : f32[4,6]\n"
    "a = aten.add.Tensor(x, w)\nb = aten.relu.default(a)\nc = aten.cat.default([b, s], 1)\n"
    "d = aten.softmax.int(c, -1)\ne = aten.neg.default(d)\nf = aten.abs.default(x)\ng = aten.mul.Tensor(f, b)\n"
    "update s = g\noutput e = e\noutput g = g\n";

/* Zeros, and what they make; the same in every run. */
static npu_status run_zeros(npu_exec *exec)
{
    static const double zeros[32];
    npu_status status = npu_exec_reset_state(exec);
    for (uint32_t i = 0; i < npu_graph_num_inputs(again.r.graph) && !status; i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(again.r.graph, npu_graph_input(again.r.graph, i)), &size);
        status = npu_test_input_at(exec, i, zeros, size);
    }
    return status ? status : npu_exec_run(exec);
}

static npu_status step_make_and_run(void)
{
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_capture *capture = NULL;
    npu_diag diag;
    npu_status status = npu_plan_create(&plan, again.r.graph, &again.r.desc, &diag);
    status = status ? status : npu_plan_validate(plan, &diag);
    status = status ? status : npu_program_create(&program, plan, &diag);
    status = status ? status : npu_exec_create(&exec, program, &again.r.exec_desc, &diag);
    NPU_CHECK_THAT(status == diag.status && (diag.message[0] != 0) == (status != NPU_OK), "'%s'", diag.message);
    status = status ? status : run_zeros(exec);
    if (status == NPU_OK && strcmp(npu_graph_name(again.r.graph), "parted") == 0) {
        status = npu_capture_create(&capture, exec);
        status = status ? status : npu_capture_replay(capture);
        npu_capture_destroy(capture);
        status = status ? status : npu_exec_run(exec);
    }
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return status;
}

/* Steps side by side, on devices with threads and without; weights that every run uploads. */
static void test_overlap(void)
{
    for (int i = 0; i < 3; i++) {
        npu_sim_desc desc = { .async = i > 0, .in_place = i == 2, .capacity = i == 2 ? 4096 : 0 };
        again_start(parted, &desc);
        again.r.desc.overlap = again.r.exec_desc.overlap = i < 2;
        again.r.desc.stream_weights = i == 2;
        again.r.exec_desc.profile = true;
        NPU_CHECK(fail_again(step_make_and_run, false) > 100);
        again_end();
    }
}

/* Groups that were saved, and what the device refused, which the same plan takes again and again. */
static npu_status step_load(void)
{
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_load_report report;
    npu_status status = npu_program_load(&program, again.r.plan, again.text.data, again.text.len, &report, NULL);
    NPU_CHECK_THAT(status || (report.num_compiled == 0 && report.num_loaded >= 2), "%s", report.text);
    status = status ? status : npu_exec_create(&exec, program, &again.r.exec_desc, NULL);
    status = status ? status : run_zeros(exec);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    return status;
}

static void test_context(void)
{
    static char room[1 << 14];
    for (int i = 0; i < 2; i++) {
        npu_sim_desc desc = { .keeps_weights = true, .refuse = i ? "aten.relu.default" : NULL };
        uint64_t size = sizeof room;
        again_start(parted, &desc);
        NPU_CHECK_STATUS(rig_make(&again.r), NPU_OK);
        again.c.fail_at = again.c.num_calls + 1;
        NPU_CHECK_STATUS(npu_program_save(again.r.program, room, &size), NPU_OK); /* takes no memory */
        again.c.fail_at = 0;
        npu_text_append(&again.text, room, (size_t)size);
        NPU_CHECK(fail_again(step_load, false) > 50);
        again_end();
    }
}

/* ---- control flow ---- */

static const char control[] =
    "graph main\nchild more\ninput i : i64[]\ninput x : f32[1]\nc = aten.lt.Scalar(i, 3)\noutput c = c\nend\n"
    "child turn\nchild large\ninput a : f32[1]\ny = aten.mul.Scalar(a, 0.5)\noutput y = y\nend\n"
    "child small\ninput a : f32[1]\ny = aten.mul.Scalar(a, 3)\nz = aten.cat.default([y, a], 0)\n"
    "v = aten.sum.dim_IntList(z, [0], true)\noutput y = v\nend\n"
    "input i : i64[]\ninput x : f32[1]\nj = aten.add.Scalar(i, 1)\nc = aten.gt.Scalar(x, 4)\nb = aten.any.default(c)\n"
    "y = npu.if(b, [x], then_body=graph 0, else_body=graph 1)\noutput j = j\noutput y = y\nend\n"
    "input x : f32[1]\nconst zero : i64[] {0}\nw = aten.relu.default(x)\n"
    "i, y = npu.while([zero, w], [], condition=graph 0, body=graph 1)\noutput y = y\n";

static npu_status step_forms(void)
{
    npu_graph_desc desc = { .registry = shared, .allocator = &again.a };
    const npu_graph *g = again.r.graph;
    npu_text text = npu_text_init(&again.a), json = npu_text_init(&again.a);
    npu_graph *parsed = NULL, *read = NULL, *better = NULL;
    npu_optimize_desc optimize = { .backends = again.r.backends, .num_backends = 3 };
    npu_status status = npu_graph_print(g, &text);
    status = status ? status : npu_graph_parse(&parsed, text.data, text.len, &desc, NULL);
    status = status ? status : npu_graph_validate(parsed, NULL, NULL);
    status = status ? status : npu_graph_print_json(g, &json);
    status = status ? status : npu_graph_parse_json(&read, json.data, json.len, &desc, NULL);
    status = status ? status : npu_graph_optimize(&better, g, &optimize, NULL, NULL);
    npu_graph_destroy(better);
    npu_graph_destroy(read);
    npu_graph_destroy(parsed);
    npu_text_free(&json);
    npu_text_free(&text);
    return status;
}

static void test_control(void)
{
    npu_sim_desc desc = { 0 };
    again_start(control, &desc);
    NPU_CHECK(fail_again(step_forms, false) > 300);
    NPU_CHECK(fail_again(step_make_and_run, false) > 300);
    again.r.desc.overlap = again.r.exec_desc.overlap = true;
    NPU_CHECK(fail_again(step_make_and_run, false) > 300);
    again_end();
}

/* ---- advice, prices, reports ---- */

static npu_status step_advise(void)
{
    return npu_plan_advise(again.r.graph, &again.r.desc, again.advice, 16, &again.num_advice, NULL);
}

static npu_status step_refine(void)
{
    npu_rates rates = *again.r.desc.rates[0];
    return npu_rates_refine(&rates, again.r.exec, 0);
}

/* A graph's ops are taken out of it one by one and run: with half of them away there were no prices. */
static npu_status step_calibrate(void)
{
    npu_rates rates;
    npu_diag diag = { 0 };
    npu_status status = npu_rates_calibrate(&rates, npu_ref_backend(), again.r.graph, npu_sim_clock, NULL, &diag);
    NPU_CHECK_THAT(status == diag.status, "%s", diag.message);
    return status;
}

static npu_status step_print(void)
{
    static void (*const prints[])(const npu_plan *, npu_text *) = {
        npu_plan_print, npu_plan_print_ops, npu_plan_print_memory, npu_plan_print_slots, npu_plan_print_dot,
        npu_plan_print_json
    };
    npu_text text = npu_text_init(&again.a);
    npu_op_count rows[4];
    uint32_t num;
    for (size_t i = 0; i < sizeof prints / sizeof prints[0]; i++) {
        prints[i](again.r.plan, &text);
    }
    npu_exec_print_profile(again.r.exec, &text);
    npu_exec_print_trace(again.r.exec, &text);
    npu_plan_print_advice(&again.r.desc, again.advice, again.num_advice, &text);
    npu_rates_print(again.r.desc.rates[0], &text);
    npu_status status = text.status ? text.status : npu_graph_count_ops(again.r.graph, rows, 4, &num);
    npu_text_free(&text);
    return status;
}

static npu_status step_page(void)
{
    npu_text text = npu_text_init(&again.a);
    npu_report_desc desc = { .plan = npu_program_plan(again.r.program), .exec = again.r.exec, .advice = again.advice,
                             .num_advice = again.num_advice };
    npu_status status = npu_report_print(&desc, &text);
    npu_text_free(&text);
    return status;
}

static void test_reports(void)
{
    static const npu_rates fast = { .launch_ns = 1000, .num_rows = 1, .rows = { { NULL, 10, 0, 0 } } };
    static const npu_rates slow = { .num_rows = 1, .rows = { { NULL, 5000, 0, 0 } } };
    const npu_rates *rates[3] = { &fast, &fast, &slow };
    npu_sim_desc desc = { 0 };
    again_start(parted, &desc);
    again.r.desc.rates = rates;
    again.r.exec_desc.profile = true;
    NPU_CHECK_STATUS(rig_make(&again.r), NPU_OK);
    NPU_CHECK_STATUS(run_zeros(again.r.exec), NPU_OK);
    NPU_CHECK(fail_again(step_advise, false) > 100);
    NPU_CHECK(again.num_advice > 1);
    NPU_CHECK_EQ(fail_again(step_refine, false), 1);
    NPU_CHECK(fail_again(step_calibrate, false) > 10);
    NPU_CHECK(fail_again(step_print, false) > 5);
    NPU_CHECK(fail_again(step_page, false) > 5);
    again_end();
}

/* ---- weights from files, models for the runtime ---- */

static npu_status step_weights(void)
{
    static const float w[6] = { 1, 2, 3, 4, 5, 6 };
    static const int16_t n[3] = { 1, 2, 3 };
    const npu_array arrays[2] = { { "w", F32(2, 3), w }, { "n", npu_spec_tensor(NPU_I16, 1, DIMS(3)), n } };
    npu_graph_desc desc = { .registry = shared, .allocator = &again.a };
    npu_text file = npu_text_init(&again.a);
    npu_graph *g = npu_graph_create(&desc);
    npu_param(g, "w", arrays[0].spec);
    npu_param(g, "n", arrays[1].spec);
    npu_status status = npu_graph_status(g);
    status = status ? status : npu_array_print_safetensors(arrays, 2, &file);
    npu_bytes bytes = { "file", file.data, file.len };
    status = status ? status : npu_graph_bind_safetensors(g, &bytes, 1, NULL, NULL);
    status = status ? status : npu_graph_check_weights(g, NULL, 0, NULL, NULL);
    npu_graph_destroy(g);
    npu_text_free(&file);
    return status;
}

/* All kinds of steps: copies, floats, integers, states. */
static const char planned[] =
    "graph planned\ninput x : f32[2,3,4,4]\nconst w : f32[4,3,1,1] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
    "state s : f32[2,4,4,4]\nc = aten.conv2d.default(x, w)\nr = aten.relu.default(c)\na = aten.add.Tensor(r, s)\n"
    "t = aten.transpose.int(a, 2, 3)\nk = aten.cat.default([t, a], 1)\np = aten.max_pool2d.default(k, [2, 2])\n"
    "m = aten.mean.dim(p, [2, 3])\nf = aten.softmax.int(m, -1)\n"
    "q = quantized_decomposed.quantize_per_tensor.default(f, 0.5, 1, -128, 127, i8)\nupdate s = a\noutput q = q\n";

static npu_status step_write(void)
{
    const npu_planned_library *library = npu_ref_planned();
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1, .allocator = &again.a };
    npu_text file = npu_text_init(&again.a), code = npu_text_init(&again.a), calls = npu_text_init(&again.a);
    npu_plan_write_desc desc = { .libraries = &library, .num_libraries = 1, .code = &code, .calls = &calls,
                                 .name = "net", .allocator = &again.a };
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_plan_create(&plan, again.r.graph, &plan_desc, &diag);
    status = status ? status : npu_plan_write(plan, &desc, &file, &diag);
    NPU_CHECK(status == diag.status && (status == NPU_OK || (file.len == 0 && code.len == 0 && calls.len == 0)));
    npu_plan_destroy(plan);
    npu_text_free(&calls);
    npu_text_free(&code);
    npu_text_free(&file);
    return status;
}

static void test_written(void)
{
    npu_sim_desc desc = { 0 };
    again_start(planned, &desc);
    NPU_CHECK(fail_again(step_weights, false) > 20);
    NPU_CHECK(fail_again(step_write, false) > 50);
    again_end();
}

/* Both forms of a branch and of a loop whose end is known. */
static const char flow[] =
    "graph flow\nchild more\ninput i : i64[]\ninput x : f32[2]\nc = aten.lt.Scalar(i, 3)\noutput c = c\nend\n"
    "child turn\ninput i : i64[]\ninput x : f32[2]\nj = aten.add.Scalar(i, 1)\ny = aten.relu.default(x)\n"
    "output j = j\noutput y = y\nend\n"
    "child yes\ninput x : f32[2]\ny = aten.relu.default(x)\noutput y = y\nend\n"
    "child no\ninput x : f32[2]\noutput y = x\nend\n"
    "input b : bool[]\ninput x : f32[2]\nconst zero : i64[] {0}\nv = npu.if(b, [x], then_body=graph 2, else_body=graph 3)\n"
    "i, y = npu.while([zero, v], [], condition=graph 0, body=graph 1, max_iterations=4)\noutput y = y\n";

static void test_written_flow(void)
{
    npu_sim_desc desc = { 0 };
    again_start(flow, &desc);
    NPU_CHECK(fail_again(step_write, false) > 100);
    again_end();
}

/* ---- what two programs have in common, and what is compared ---- */

/* A second program beside that of again.r: its weights, and the states of its exec. */
static npu_status step_share(void)
{
    npu_plan_desc desc = again.r.desc;
    npu_exec_desc exec_desc = again.r.exec_desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    desc.weights_of = again.r.program;
    exec_desc.states_of = again.r.exec;
    npu_status status = npu_plan_create(&plan, again.r.graph, &desc, &diag);
    status = status ? status : npu_program_create(&program, plan, &diag);
    status = status ? status : npu_exec_create(&exec, program, &exec_desc, &diag);
    NPU_CHECK_THAT(status == diag.status && (diag.message[0] != 0) == (status != NPU_OK), "'%s'", diag.message);
    status = status ? status : run_zeros(exec);
    status = status ? status : npu_exec_compare(exec, again.r.exec, NULL, NULL, NULL, &diag);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return status;
}

/* Each result of the graph as an output, on both sides. */
static npu_status step_find_wrong(void)
{
    static const float zeros[24];
    const npu_array x = { NULL, F32(4, 6), zeros };
    npu_op op;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_find_wrong_op(again.r.graph, again.r.backends, 3, npu_ref_backend(), &x, 1, NULL, &op,
                                                NULL, &diag);
    NPU_CHECK_THAT((status != NPU_OK) == (diag.message[0] != 0) && op.id == diag.op, "'%s'", diag.message);
    return status;
}

static void test_shared(void)
{
    npu_sim_desc desc = { .keeps_weights = true };
    again_start(parted, &desc);
    NPU_CHECK_STATUS(rig_make(&again.r), NPU_OK);
    NPU_CHECK_STATUS(run_zeros(again.r.exec), NPU_OK);
    NPU_CHECK(fail_again(step_share, false) > 100);
    NPU_CHECK(fail_again(step_find_wrong, true) > 100);
    again_end();
}

/* ---- tile programs ---- */

static const char tiles[] =
    "graph main\n"
    "child tiles tile\ninput x : f32[4,8]\ninput out : f32[4,8]\ni = block.get_block_idx()\n"
    "a = block.load(x, [i, 0], [1, 8])\nb = block.add(a, a)\n"
    "y = block.store(b, [i, 0], [1, 8], out)\noutput y = y\nend\ninput x : f32[4,8]\ninput d : f32[4,8]\n"
    "y = npu.launch([x, d], blocks=4, body=graph 0)\noutput y = y\n";

static npu_status step_tiles(void)
{
    npu_tile_desc desc = { .blocks = 4, .overlapping = ~0u, .allocator = &again.a };
    npu_tile_place places[16];
    npu_graph *synced = NULL;
    npu_diag diag = { 0 };
    const npu_graph *program = npu_graph_child(again.r.graph, 0);
    npu_status status = npu_tile_plan(program, &desc, places, &diag);
    status = status ? status : npu_tile_sync(&synced, again.r.graph, &desc, &diag);
    NPU_CHECK_THAT(status == diag.status && (diag.message[0] != 0) == (status != NPU_OK), "'%s'", diag.message);
    status = status ? status : npu_tile_check(npu_graph_child(synced, 0), &desc, NULL, NULL);
    npu_graph_destroy(synced);
    return status;
}

static void test_tiles(void)
{
    npu_sim_desc desc = { 0 };
    again_start(tiles, &desc);
    NPU_CHECK_THAT(again.r.graph != NULL, "%s", again.r.diag.message);
    NPU_CHECK(fail_again(step_tiles, false) > 20);
    again_end();
}

/* A constant is there with its data or not at all: what is built before a failure can be printed and read. */
static npu_status constants(const npu_allocator *a)
{
    static const float one = 1;
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = shared, .allocator = a }), *back = NULL;
    npu_text text = npu_text_init(NULL);
    npu_status status;
    for (int i = 0; i < 40 && npu_graph_status(g) == NPU_OK; i++) {
        npu_constant(g, NULL, npu_spec_tensor(NPU_F32, 0, NULL), &one);
    }
    status = npu_graph_status(g);
    if (g) {
        npu_graph_clear_error(g);
        NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_parse(&back, text.data, text.len, npu_test_graph_desc(), NULL), NPU_OK);
    }
    npu_text_free(&text);
    npu_graph_destroy(back);
    npu_graph_destroy(g);
    return status;
}

static void test_constants(void) { NPU_CHECK(fail_each(constants) > 5); }

int main(void)
{
    if (npu_registry_create(&shared, NULL, NULL)) {
        return 1;
    }
    NPU_RUN(test_constants);
    NPU_RUN(test_json);
    NPU_RUN(test_optimised);
    NPU_RUN(test_integer);
    NPU_RUN(test_quantize);
    NPU_RUN(test_asked);
    NPU_RUN(test_whole_way);
    NPU_RUN(test_change);
    NPU_RUN(test_refused);
    NPU_RUN(test_simple);
    NPU_RUN(test_dynamic);
    NPU_RUN(test_kernels);
    NPU_RUN(test_many_specs);
    NPU_RUN(test_files);
    NPU_RUN(test_overlap);
    NPU_RUN(test_context);
    NPU_RUN(test_control);
    NPU_RUN(test_reports);
    NPU_RUN(test_written);
    NPU_RUN(test_written_flow);
    NPU_RUN(test_shared);
    NPU_RUN(test_tiles);
    npu_registry_destroy(shared);
    return npu_test_done();
}
