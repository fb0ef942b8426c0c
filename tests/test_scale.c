/* What takes time by the square of a number: each stage is run on graphs of one form, of n ops and of four times as
   many, and its steps are counted, not its time: basic blocks of npu_ir.h, which the compiler makes call a function. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

enum { SMALL = 500, LARGE = 4 * SMALL };
static const double most = 7; /* 4 to the power of 1.4: n log n is 4.9, n * n 16, and compilers differ by a tenth */

static uint64_t num_steps;
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { num_steps++; }

/* ---- forms of graphs -------------------------------------------------------------------------------------------- */

static npu_spec f32(int64_t n) { return npu_spec_tensor(NPU_F32, 1, &n); }

static const char *label(const char *prefix, uint32_t i)
{
    static char text[32];
    snprintf(text, sizeof text, "%s%u", prefix, (unsigned)i);
    return text;
}

/* The device takes no relu. */
static npu_value op(npu_graph *g, npu_value x, uint32_t i) { return i % 4 == 3 ? npu_relu(g, x) : npu_abs(g, x); }

static void chain(npu_graph *g, uint32_t n)
{
    npu_value x = npu_input(g, "x", f32(4));
    for (uint32_t i = 0; i < n; i++) {
        x = op(g, x, i);
    }
    npu_output(g, "y", x);
}

/* Each op reads any of those before. */
static void far(npu_graph *g, uint32_t n)
{
    npu_value *v = (npu_value *)calloc(n + 1, sizeof *v);
    uint64_t seed = 1;
    v[0] = npu_input(g, "x", f32(4));
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t a = (uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % i;
        uint32_t b = (uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % i;
        v[i] = i % 3 ? npu_maximum(g, v[a], v[b]) : op(g, v[a], i);
    }
    npu_output(g, "y", v[n]);
    free(v);
}

/* One op with n operands, and one value with n users. */
static void wide(npu_graph *g, uint32_t n)
{
    npu_value *v = (npu_value *)calloc(n, sizeof *v), x = npu_input(g, "x", f32(4));
    for (uint32_t i = 0; i < n; i++) {
        v[i] = op(g, x, i);
    }
    npu_output(g, "y", npu_cat(g, v, n, 0));
    free(v);
}

/* One op with n results. */
static void pieces(npu_graph *g, uint32_t n)
{
    npu_value *v = (npu_value *)calloc(n, sizeof *v), x = npu_abs(g, npu_input(g, "x", f32(n)));
    npu_op split = npu_split(g, x, 1, 0);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = op(g, npu_op_result(g, split, i), i);
    }
    npu_output(g, "y", npu_cat(g, v, n, 0));
    free(v);
}

static void ports(npu_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        npu_value x = npu_input(g, label("x", i), f32(4));
        npu_output(g, label("y", i), op(g, x, i));
    }
}

static void states(npu_graph *g, uint32_t n)
{
    npu_value x = npu_input(g, "x", f32(4));
    for (uint32_t i = 0; i < n; i++) {
        npu_value state = npu_state(g, label("s", i), f32(4));
        npu_update(g, state, op(g, npu_add(g, state, x), i));
    }
    npu_output(g, "y", npu_relu(g, x));
}

static void weights(npu_graph *g, uint32_t n)
{
    static const float data[4] = { 1, 2, 3, 4 };
    npu_value x = npu_input(g, "x", f32(4));
    for (uint32_t i = 0; i < n; i++) {
        npu_value w = npu_param(g, label("layer.weight.", i), f32(4));
        npu_graph_bind_param(g, label("layer.weight.", i), data, sizeof data);
        x = op(g, npu_add(g, x, i % 2 ? w : npu_constant(g, NULL, f32(4), data)), i);
    }
    npu_output(g, "y", x);
}

static void symbols(npu_graph *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        npu_value x = npu_input(g, label("x", i), f32(npu_graph_add_symbol(g, label("n", i), 1, 4)));
        npu_output(g, label("y", i), op(g, x, i));
    }
    for (uint32_t i = n; i < 8 * n; i++) {
        npu_input(g, label("x", i), f32(npu_graph_add_symbol(g, label("n", i), 1, 4)));
    }
}

static void children(npu_graph *g, uint32_t n)
{
    npu_value c = npu_input(g, "c", npu_spec_tensor(NPU_BOOL, 0, NULL)), x = npu_input(g, "x", f32(4));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t body[2];
        for (uint32_t k = 0; k < 2; k++) {
            npu_graph *child = npu_graph_add_child(g, label(k ? "no" : "yes", i), NPU_LEVEL_TENSOR, &body[k]);
            npu_output(child, "y", op(child, npu_input(child, "a", f32(4)), k));
        }
        npu_arg args[4] = { npu_arg_tensor("condition", c), npu_arg_tensors("args", &x, 1),
                            npu_arg_int("then_body", body[0]), npu_arg_int("else_body", body[1]) };
        x = op(g, npu_op_result(g, npu_emit_name(g, "npu.if", args, 4), 0), i);
    }
    npu_output(g, "y", x);
}

enum { CHAIN, FAR, WIDE, PIECES, PORTS, STATES, WEIGHTS, SYMBOLS, CHILDREN, FORMS };
static const struct { const char *name; void (*make)(npu_graph *g, uint32_t n); } forms[FORMS] = {
    { "chain", chain }, { "far", far }, { "wide", wide }, { "pieces", pieces }, { "ports", ports },
    { "states", states }, { "weights", weights }, { "symbols", symbols }, { "children", children }
};

/* ---- stages ----------------------------------------------------------------------------------------------------- */

/* A device that copies, made of the CPU. */
static npu_status refuse(void *ctx, const npu_op_info *info, npu_support *answer)
{
    (void)ctx;
    answer->reason = info->kind == NPU_ATEN_RELU || info->kind == NPU_NPU_IF ? NPU_REASON_OP : NPU_REASON_CLAIMED;
    return NPU_OK;
}
static npu_status upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    (void)ctx, (void)fence;
    memcpy((char *)t->to->handle + t->to_offset, t->from_host, (size_t)t->bytes);
    return NPU_OK;
}
static npu_status download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    (void)ctx, (void)fence;
    memcpy(t->to_host, (char *)t->from->handle + t->from_offset, (size_t)t->bytes);
    return NPU_OK;
}

/* What a stage works on; made before its steps are counted. */
typedef struct work {
    npu_graph *graph, *made;
    npu_backend device;
    npu_region region;
    const npu_backend *backends[2];
    npu_plan_desc desc;
    npu_plan *plan, *plan2;
    npu_program *program, *program2;
    npu_exec *exec, *exec2;
    npu_text text;
    npu_diag diag;
} work;

static npu_status stage_validate(work *w) { return npu_graph_validate(w->graph, NULL, NULL); }
static npu_status stage_print(work *w) { return npu_graph_print(w->graph, &w->text); }
static npu_status stage_parse(work *w)
{
    npu_status status = npu_graph_print(w->graph, &w->text);
    return status ? status : npu_graph_parse(&w->made, w->text.data, w->text.len, NULL, &w->diag);
}
static npu_status stage_json(work *w)
{
    npu_status status = npu_graph_print_json(w->graph, &w->text);
    return status ? status : npu_graph_parse_json(&w->made, w->text.data, w->text.len, NULL, &w->diag);
}
static npu_status stage_dot(work *w) { return npu_graph_print_dot(w->graph, &w->text); }
static npu_status stage_optimize(work *w)
{
    npu_optimize_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backends = &w->backends[1];
    desc.num_backends = 1;
    return npu_graph_optimize(&w->made, w->graph, &desc, NULL, &w->diag);
}
static npu_status stage_extract(work *w)
{
    uint32_t n = npu_graph_num_ops(w->graph) / 2;
    npu_op *ops = (npu_op *)calloc(n, sizeof *ops);
    for (uint32_t i = 0; i < n; i++) {
        ops[i].id = i + 1;
    }
    npu_status status = npu_graph_extract(&w->made, w->graph, ops, n, &w->diag);
    free(ops);
    return status;
}

static npu_status stage_plan(work *w) { return npu_plan_create(&w->plan, w->graph, &w->desc, &w->diag); }
static npu_status stage_check(work *w)
{
    npu_status status = stage_plan(w);
    return status ? status : npu_plan_validate(w->plan, &w->diag);
}
static npu_status stage_overlap(work *w)
{
    w->desc.overlap = true;
    return stage_check(w);
}
static npu_status plan_costs(work *w, double launch)
{
    static npu_rates device = { .transfer_ns = 50, .up = 4e9, .down = 4e9, .num_rows = 1,
                                .rows = { { NULL, 100, 0.01, 0.01 } } };
    static const npu_rates cpu = { .num_rows = 1, .rows = { { NULL, 400, 0.1, 0.1 } } };
    static const npu_rates *const rates[2] = { &device, &cpu };
    device.launch_ns = launch;
    w->desc.rates = rates;
    return stage_plan(w);
}
static npu_status stage_costs(work *w) { return plan_costs(w, 100); }
static npu_status stage_dear(work *w) { return plan_costs(w, 2e9); }
/* A third of what it needs. */
static npu_status stage_capacity(work *w)
{
    npu_memory m;
    npu_status status = stage_plan(w);
    if (status == NPU_OK) {
        npu_plan_memory(w->plan, 0, &m);
        w->region.capacity = m.required / 3 + 1;
        status = npu_plan_create(&w->plan2, w->graph, &w->desc, &w->diag);
    }
    return status;
}
static npu_status stage_words(work *w)
{
    npu_status status = stage_plan(w);
    npu_plan_print(w->plan, &w->text);
    npu_plan_print_ops(w->plan, &w->text);
    npu_plan_print_json(w->plan, &w->text);
    npu_plan_print_memory(w->plan, &w->text);
    npu_plan_print_dot(w->plan, &w->text);
    return status ? status : w->text.status;
}

static npu_status stage_program(work *w)
{
    npu_status status = stage_plan(w);
    return status ? status : npu_program_create(&w->program, w->plan, &w->diag);
}
static npu_status stage_shared(work *w)
{
    npu_status status = stage_program(w);
    w->desc.weights_of = w->program;
    status = status ? status : npu_plan_create(&w->plan2, w->graph, &w->desc, &w->diag);
    return status ? status : npu_program_create(&w->program2, w->plan2, &w->diag);
}
static npu_status stage_run(work *w)
{
    static float data[LARGE];
    npu_exec_desc desc;
    npu_status status = stage_program(w);
    memset(&desc, 0, sizeof desc);
    status = status ? status : npu_exec_create(&w->exec, w->program, &desc, &w->diag);
    for (uint32_t i = 0; i < npu_graph_num_inputs(w->graph) && status == NPU_OK; i++) {
        npu_array in = { NULL, *npu_value_spec(w->graph, npu_graph_input(w->graph, i)), data };
        in.spec.dims[0] = in.spec.rank && in.spec.dims[0] < 0 ? 2 : in.spec.dims[0];
        status = npu_exec_set_input_at(w->exec, i, &in);
    }
    status = status ? status : npu_exec_run(w->exec);
    desc.states_of = w->exec;
    return status ? status : npu_exec_create(&w->exec2, w->program, &desc, &w->diag);
}

/* The arena is planned by trying places among all others: the square of their number, and no more. Where each memory
   overwrites the one before, there is one place. */
static npu_status stage_planned(work *w)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_text calls = npu_text_init(NULL);
    npu_plan_write_desc desc;
    w->desc.backends = &w->backends[1];
    w->desc.num_backends = 1;
    npu_status status = stage_plan(w);
    memset(&desc, 0, sizeof desc);
    desc.libraries = &library;
    desc.num_libraries = 1;
    desc.calls = &calls;
    status = status ? status : npu_plan_write(w->plan, &desc, &w->text, &w->diag);
    npu_text_free(&calls);
    return status;
}

#define ALL ((1u << FORMS) - 1)
#define BIT(form) (1u << (form))
static const struct { const char *name; npu_status (*run)(work *w); uint32_t of; } stages[] = {
    { "validate", stage_validate, ALL }, { "print", stage_print, ALL }, { "parse", stage_parse, ALL },
    { "json", stage_json, ALL }, { "dot", stage_dot, ALL }, { "optimize", stage_optimize, ALL },
    { "extract", stage_extract, ALL & ~BIT(CHILDREN) }, { "plan", stage_plan, ALL },
    { "validate plan", stage_check, ALL }, { "overlap", stage_overlap, ALL }, { "costs", stage_costs, ALL },
    { "dear", stage_dear, ALL }, { "capacity", stage_capacity, ALL }, { "words", stage_words, ALL },
    { "program", stage_program, ALL }, { "shared weights", stage_shared, ALL }, { "run", stage_run, ALL },
    { "planned model", stage_planned, BIT(CHAIN) | BIT(WIDE) | BIT(FAR) }
};

static uint64_t count(size_t stage, uint32_t form, uint32_t n)
{
    work w;
    npu_status status;
    memset(&w, 0, sizeof w);
    w.graph = npu_graph_create(NULL);
    forms[form].make(w.graph, n);
    NPU_CHECK_STATUS(npu_graph_status(w.graph), NPU_OK);
    w.device = *npu_ref_backend();
    w.region = w.device.regions[0];
    w.region.size = (uint32_t)sizeof w.region;
    w.region.shared_with_host = 0;
    w.device.name = "device";
    w.device.traits = 0;
    w.device.regions = &w.region;
    w.device.num_regions = 1;
    w.device.supports = refuse;
    w.device.upload = upload;
    w.device.download = download;
    w.device.copy = NULL;
    w.device.map = NULL;
    w.backends[0] = &w.device;
    w.backends[1] = npu_ref_backend();
    w.desc.backends = w.backends;
    w.desc.num_backends = 2;
    w.text = npu_text_init(NULL);
    num_steps = 0;
    status = stages[stage].run(&w);
    uint64_t steps = num_steps;
    NPU_CHECK_THAT(status == NPU_OK, "%s of %u %s: %s", stages[stage].name, (unsigned)n, forms[form].name,
                   w.diag.message);
    npu_exec_destroy(w.exec2);
    npu_exec_destroy(w.exec);
    npu_program_destroy(w.program2);
    npu_program_destroy(w.program);
    npu_plan_destroy(w.plan2);
    npu_plan_destroy(w.plan);
    npu_graph_destroy(w.made);
    npu_graph_destroy(w.graph);
    npu_text_free(&w.text);
    return steps;
}

static void test_scale(void)
{
    for (size_t stage = 0; stage < sizeof stages / sizeof stages[0]; stage++) {
        for (uint32_t form = 0; form < FORMS; form++) {
            if (stages[stage].of >> form & 1) {
                uint64_t small = count(stage, form, SMALL), large = count(stage, form, LARGE);
                double ratio = (double)large / ((double)small + 1);
                double limit = stages[stage].run == stage_planned && form != CHAIN ? 10.5 : most;
                if (!small) {
                    NPU_SKIP("the compiler has no -fsanitize-coverage=trace-pc: nothing is counted");
                    return;
                }
                NPU_CHECK_THAT(ratio <= limit, "%s of %s: %.0f steps for %d, %.0f for %d: %.1f times",
                               stages[stage].name, forms[form].name, (double)small, SMALL, (double)large, LARGE, ratio);
            }
        }
    }
}

/* Steps to quantise n layers, or with none to make a registry. */
static uint64_t count_quantize(uint32_t n)
{
    static const float data[4] = { 1, 2, 3, 4 };
    const npu_backend *cpu = npu_ref_backend();
    const int64_t square[2] = { 2, 2 };
    npu_array in = { "x", npu_spec_tensor(NPU_F32, 2, square), data };
    npu_graph *g = npu_graph_create(NULL), *made = NULL;
    npu_value x = npu_input(g, "x", in.spec), none = { 0 };
    npu_quantize_desc desc;
    for (uint32_t i = 0; i < n; i++) {
        x = npu_relu(g, npu_linear(g, x, npu_constant(g, NULL, in.spec, data), none));
    }
    npu_output(g, "y", x);
    memset(&desc, 0, sizeof desc);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.inputs = &in;
    desc.num_samples = 1;
    num_steps = 0;
    if (n) {
        NPU_CHECK_STATUS(npu_graph_quantize(&made, g, &desc, NULL), NPU_OK);
    } else {
        made = npu_graph_create(NULL);
    }
    uint64_t steps = num_steps;
    npu_graph_destroy(made);
    npu_graph_destroy(g);
    return steps;
}

/* A weight is computed by a graph of its own, which needs no registry of its own. */
static void test_quantize(void)
{
    uint64_t registry = count_quantize(0), each = (count_quantize(40) - count_quantize(20)) / 20;
    NPU_CHECK_THAT(4 * each <= registry, "quantise: %.0f steps for a layer, %.0f for a registry", (double)each,
                   (double)registry);
}

int main(void)
{
    NPU_RUN(test_scale);
    NPU_RUN(test_quantize);
    return npu_test_done();
}
