/* Printed plans, profiles, traces and statistics, and runs compared. The clock is a counter, so that the text is always
   the same. */
#define NPU_SIM_IMPLEMENTATION
#include "../examples/sim/npu_sim.h"
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

static const char *const model =
    "graph classifier\ninput image : f32[1,3,16,16]\nparam w1 : f32[8,3,3,3]\nparam b1 : f32[8]\n"
    "param fc : f32[10,512]\n"
    "features = aten.conv2d.default(image, w1, b1, padding=[1, 1]) @conv\n%6 = aten.relu.default(features)\n"
    "%7 = aten.max_pool2d.default(%6, [2, 2]) @\"the \\\"pool\\\"\"\n%8 = aten.flatten.using_ints(%7, 1)\n"
    "%9 = aten.linear.default(%8, fc) @fc\n"
    "p = aten.softmax.int(%9, 1)\noutput p = p\n";

typedef struct rig {
    npu_sim *sim;
    const npu_backend *backends[2];
    npu_graph *graph;
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
    npu_text text;
} rig;

static float weights[10 * 512];

static rig rig_start(const char *const *deny, uint32_t num_deny)
{
    rig r;
    npu_sim_desc sim = { 0 };
    npu_plan_desc desc = { 0 };
    memset(&r, 0, sizeof r);
    sim.name = "npu0";
    sim.deny = deny;
    sim.num_deny = num_deny;
    NPU_CHECK_STATUS(npu_sim_create(&r.sim, &sim), NPU_OK);
    r.backends[0] = npu_sim_backend(r.sim);
    r.backends[1] = npu_ref_backend();
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, model, strlen(model), NULL, NULL), NPU_OK);
    desc.backends = r.backends;
    desc.num_backends = 2;
    NPU_CHECK_STATUS(npu_plan_create(&r.plan, r.graph, &desc, NULL), NPU_OK);
    r.text = npu_text_init(NULL);
    return r;
}

static void rig_end(rig *r)
{
    npu_text_free(&r->text);
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
    npu_plan_destroy(r->plan);
    npu_graph_destroy(r->graph);
    npu_sim_destroy(r->sim);
}

static uint64_t ticks;
static uint64_t tick(void) { return ticks += 1500; }

static void rig_run(rig *r)
{
    static float image[3 * 16 * 16];
    npu_exec_desc desc = { 0 };
    desc.profile = true;
    desc.clock = tick;
    ticks = 0;
    NPU_CHECK_STATUS(npu_graph_bind_param(r->graph, "w1", weights, 8 * 3 * 3 * 3 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(r->graph, "b1", weights, 8 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(r->graph, "fc", weights, 10 * 512 * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&r->program, r->plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&r->exec, r->program, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r->exec, "image", image, sizeof image), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r->exec), NPU_OK);
}

static const char *const denied[] = { "aten.max_pool2d.default", "aten.softmax.int" };

static void test_plan(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan.txt", r.text.data);
    rig_end(&r);
}

static void test_plan_ops(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print_ops(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan_ops.txt", r.text.data);
    rig_end(&r);
}

/* With rates: predicted times beside steps and ops, words with numbers for ops that cost keeps off, and all as JSON. */
static void test_plan_costs(void)
{
    static const npu_rates npu = { .launch_ns = 20000, .transfer_ns = 5000, .up = 1e9, .down = 1e9, .num_rows = 2,
                                   .rows = { { "convolution", 1000, 0.001, 0.01 }, { NULL, 1000, 0.01, 0.01 } } };
    static const npu_rates cpu = { .num_rows = 1, .rows = { { NULL, 1000, 1, 1 } } };
    static const npu_rates *const rates[2] = { &npu, &cpu };
    rig r = rig_start(denied, 2);
    npu_plan *plan = NULL;
    const npu_backend *backends[2] = { npu_plan_backend(r.plan, 0), npu_plan_backend(r.plan, 1) };
    npu_plan_desc desc = { .backends = backends, .num_backends = 2, .rates = rates };
    NPU_CHECK_STATUS(npu_plan_create(&plan, npu_plan_graph(r.plan), &desc, NULL), NPU_OK);
    npu_plan_print(plan, &r.text);
    npu_plan_print_ops(plan, &r.text);
    NPU_CHECK_GOLDEN("plan_costs.txt", r.text.data);
    r.text.len = 0;
    npu_plan_print_json(plan, &r.text);
    NPU_CHECK_GOLDEN("plan.json", r.text.data);
    r.text.len = 0;
    npu_plan_destroy(r.plan);
    r.plan = plan; /* which the rig ends */
    rig_run(&r);
    npu_exec_print_profile(r.exec, &r.text);
    NPU_CHECK_GOLDEN("profile_costs.txt", r.text.data);
    rig_end(&r);
}

static void test_plan_memory(void)
{
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_plan_print_memory(npu_program_plan(r.program), &r.text);
    NPU_CHECK(!strstr(r.text.data, "after compile"));
    rig_end(&r);
}

/* Nothing refused: nothing is said about it. */
static void test_plan_all_claimed(void)
{
    npu_plan_desc desc = { 0 };
    rig r = rig_start(NULL, 0);
    npu_plan_destroy(r.plan);
    desc.backends = r.backends + 1;
    desc.num_backends = 1;
    NPU_CHECK_STATUS(npu_plan_create(&r.plan, r.graph, &desc, NULL), NPU_OK);
    npu_plan_print(r.plan, &r.text);
    NPU_CHECK(strstr(r.text.data, "6 ops in 1 step on cpu"));
    NPU_CHECK(!strstr(r.text.data, "not on"));
    rig_end(&r);
}

static void test_plan_dot(void)
{
    rig r = rig_start(denied, 2);
    npu_plan_print_dot(r.plan, &r.text);
    NPU_CHECK_GOLDEN("plan.dot", r.text.data);
    rig_end(&r);
}

static void test_profile(void)
{
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_exec_print_profile(r.exec, &r.text);
    NPU_CHECK_GOLDEN("profile.txt", r.text.data);
    rig_end(&r);
}

/* ---- trace: valid JSON ---- */

static const char *skip_json(const char *s, int depth);

static const char *skip_blank(const char *s)
{
    while (s && (*s == ' ' || *s == '\n')) {
        s++;
    }
    return s;
}

static const char *skip_string(const char *s)
{
    if (*s++ != '"') {
        return NULL;
    }
    while (*s && *s != '"') {
        if ((unsigned char)*s < 0x20 || (*s == '\\' && !strchr("\"\\u", s[1]))) {
            return NULL;
        }
        s += *s == '\\' ? 2 : 1;
    }
    return *s == '"' ? s + 1 : NULL;
}

static const char *skip_list(const char *s, char close, int depth)
{
    s = skip_blank(s + 1);
    while (s && *s != close) {
        if (close == '}') {
            s = skip_blank(skip_string(s));
            if (!s || *s++ != ':') {
                return NULL;
            }
        }
        s = skip_blank(skip_json(skip_blank(s), depth + 1));
        if (s && *s == ',') {
            s = skip_blank(s + 1);
            if (*s == close) {
                return NULL;
            }
        } else if (s && *s != close) {
            return NULL;
        }
    }
    return s ? s + 1 : NULL;
}

/* Past one JSON value; NULL = there is none. */
static const char *skip_json(const char *s, int depth)
{
    char *end;
    if (!s || depth > 20) {
        return NULL;
    }
    if (*s == '{' || *s == '[') {
        return skip_list(s, *s == '{' ? '}' : ']', depth);
    }
    if (*s == '"') {
        return skip_string(s);
    }
    strtod(s, &end);
    return end == s ? NULL : end;
}

static void test_trace(void)
{
    rig r = rig_start(denied, 2);
    const char *end;
    rig_run(&r);
    npu_exec_print_trace(r.exec, &r.text);
    NPU_CHECK_GOLDEN("trace.json", r.text.data);
    end = skip_blank(skip_json(r.text.data, 0));
    NPU_CHECK(end && *end == 0);
    rig_end(&r);
}

static void test_no_profile(void)
{
    npu_exec_desc desc = { 0 };
    rig r = rig_start(denied, 2);
    rig_run(&r);
    npu_exec_destroy(r.exec);
    NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, &desc, NULL), NPU_OK);
    npu_exec_print_profile(r.exec, &r.text);
    NPU_CHECK(strstr(r.text.data, "no profile"));
    npu_text_free(&r.text);
    npu_exec_print_trace(r.exec, &r.text);
    NPU_CHECK(skip_json(r.text.data, 0));
    rig_end(&r);
}

/* ---- statistics ---- */

static npu_graph *graph_of(const char *text)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse(&g, text, strlen(text), NULL, &diag)) {
        NPU_CHECK_STR(diag.message, "");
    }
    return g;
}

static void test_stats(void)
{
    npu_graph *g = graph_of(model);
    npu_text text = npu_text_init(NULL);
    npu_op_count rows[3] = { { NULL, 77 }, { NULL, 77 }, { NULL, 77 } };
    uint32_t num = 0;
    NPU_ITEM("R0.24");
    NPU_ITEM("R0.22");
    npu_constant(g, "c", npu_spec_tensor(NPU_F16, 1, (const int64_t[]){ 3 }), weights);
    npu_relu(g, npu_relu(g, npu_add(g, npu_graph_input(g, 0), npu_state(g, "h", npu_spec_tensor(NPU_F32, 0, NULL)))));
    npu_graph_stats s = npu_graph_get_stats(g);
    NPU_CHECK_EQ(s.num_ops, 9);
    NPU_CHECK_EQ(s.num_inputs, 1);
    NPU_CHECK_EQ(s.num_outputs, 1);
    NPU_CHECK_EQ(s.num_params, 3);
    NPU_CHECK_EQ(s.num_constants, 1);
    NPU_CHECK_EQ(s.num_states, 1);
    NPU_CHECK_EQ(s.num_edges, 6 + 4); /* without w1, b1 and fc */
    NPU_CHECK_EQ(s.param_elements, 8 * 3 * 3 * 3 + 8 + 10 * 512);
    NPU_CHECK_EQ(s.param_bytes, 4 * s.param_elements);
    NPU_CHECK_EQ(s.constant_elements, 3);
    NPU_CHECK_EQ(s.constant_bytes, 6);
    NPU_CHECK_STATUS(npu_graph_count_ops(g, rows, 2, &num), NPU_OK);
    NPU_CHECK_EQ(num, 7);
    NPU_CHECK_STR(rows[0].name, "aten.relu.default");
    NPU_CHECK_EQ(rows[0].count, 3);
    NPU_CHECK_STR(rows[1].name, "aten.add.Tensor"); /* the first by name of those that occur once */
    NPU_CHECK_EQ(rows[2].count, 77);
    NPU_CHECK_STATUS(npu_graph_print_stats(g, &text), NPU_OK);
    NPU_CHECK_GOLDEN("stats.txt", text.data);
    npu_text_free(&text);
    NPU_CHECK_STATUS(npu_graph_print_pie(g, 2, &text), NPU_OK);
    NPU_CHECK_STR(text.data, "pie showData\n    title Ops of classifier\n    \"aten.relu.default\" : 3\n"
                             "    \"aten.add.Tensor\" : 1\n    \"Others\" : 5\n");
    npu_text_free(&text);
    NPU_CHECK_STATUS(npu_graph_print_pie(g, 0, &text), NPU_OK);
    NPU_CHECK(strstr(text.data, "aten.softmax.int") && !strstr(text.data, "Others"));
    npu_text_free(&text);
    npu_graph_destroy(g);
    NPU_CHECK_EQ(npu_graph_get_stats(NULL).num_edges, 0);
    NPU_CHECK_STATUS(npu_graph_count_ops(NULL, rows, 2, &num), NPU_ERR_NO_MEMORY);
    NPU_CHECK_EQ(num, 0);
}

/* ---- verify: two tensors ---- */

#define SPEC(dtype, ...) \
    npu_spec_tensor(dtype, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[]){ __VA_ARGS__ })

/* torch.allclose, element by element. */
static void test_compare(void)
{
    const double nan = (double)NAN, inf = HUGE_VAL;
    static const npu_tolerance exact = { .has_rtol = true, .has_atol = true }, nans = { .equal_nan = true },
                               half = { .rtol = 0.5, .has_atol = true };
    const struct {
        double got[2], want[2];
        const npu_tolerance *tolerance;
        uint32_t wrong;
        double max, mean;
    } rows[] = {
        { { 1, 2 }, { 1, 2 }, NULL, 0, 0, 0 },
        { { 1, 2 }, { 1, 2.5 }, NULL, 1, 0.5, 0.25 },
        { { 0.000009, 2 }, { 0, 2 }, NULL, 0, 0.000009, 0.0000045 }, /* atol */
        { { 1000.01, 2 }, { 1000, 2 }, NULL, 0, 0.01, 0.005 },       /* rtol */
        { { 1000.02, 2 }, { 1000, 2 }, NULL, 1, 0.02, 0.01 },
        { { 1.0000001, 2 }, { 1, 2 }, &exact, 1, 0.0000001, 0.00000005 },
        { { 1, 3 }, { 2, 2 }, &half, 0, 1, 1 }, /* relative to what is expected: |1 - 2| <= 0.5 * 2 */
        { { 2, 2 }, { 1, 2 }, &half, 1, 1, 0.5 },
        { { nan, 2 }, { nan, 2 }, NULL, 1, inf, inf },
        { { nan, 2 }, { nan, 2 }, &nans, 0, 0, 0 },
        { { nan, 2 }, { 1, 2 }, &nans, 1, inf, inf },
        { { 1, 2 }, { nan, 2 }, &nans, 1, inf, inf },
        { { inf, -inf }, { inf, -inf }, NULL, 0, 0, 0 },
        { { inf, 2 }, { -inf, 2 }, NULL, 1, inf, inf },
        { { 1, 2 }, { inf, 2 }, NULL, 1, inf, inf },
        { { inf, 2 }, { 1, 2 }, NULL, 1, inf, inf },
    };
    NPU_ITEM("R0.21");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_array got = { "got", SPEC(NPU_F64, 2), rows[i].got }, want = { "want", SPEC(NPU_F64, 2), rows[i].want };
        npu_difference d;
        NPU_CHECK_STATUS(npu_array_compare(&got, &want, rows[i].tolerance, &d), rows[i].wrong ? NPU_ERR_MISMATCH : NPU_OK);
        NPU_CHECK_STATUS(d.status, rows[i].wrong ? NPU_ERR_MISMATCH : NPU_OK);
        NPU_CHECK_EQ(d.num_elements, 2);
        NPU_CHECK_EQ(d.num_wrong, rows[i].wrong);
        NPU_CHECK_NEAR(d.max_diff, rows[i].max, 1e-9);
        NPU_CHECK_NEAR(d.mean_diff, rows[i].mean, 1e-9);
    }
    /* a complex element is one, whichever of its parts is wrong */
    static const float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 9, 9, 3, 9, 5, 6 };
    npu_array got = { "got", SPEC(NPU_C64, 3), a }, want = { "want", SPEC(NPU_C64, 3), b };
    npu_difference d;
    NPU_CHECK_STATUS(npu_array_compare(&got, &want, NULL, &d), NPU_ERR_MISMATCH);
    NPU_CHECK(d.num_elements == 3 && d.num_wrong == 2 && d.worst == 0);
}

/* What is no number of one kind: shapes, dtypes, no elements, integers that doubles round. */
static void test_compare_types(void)
{
    static const float x[4] = { 1, 2, 3, 4 }, y[4] = { 1, 2, 3, 5 };
    static const uint16_t half[4] = { 0x3c00, 0x4000, 0x4200, 0x4400 }; /* 1, 2, 3, 4 */
    static const int64_t big[2] = { INT64_MAX, INT64_MIN }, near_big[2] = { INT64_MAX - 1, INT64_MIN };
    static const uint64_t all[2] = { UINT64_MAX, 0 }, none[2] = { 0, 0 };
    static const npu_tolerance exact = { .has_rtol = true, .has_atol = true };
    static const struct {
        npu_dtype got_dtype, want_dtype;
        int64_t got_len, want_len;
        const void *got, *want;
        npu_status status;
        double max;
        uint64_t worst;
    } rows[] = {
        { NPU_F32, NPU_F32, 4, 4, x, y, NPU_ERR_MISMATCH, 1, 3 },
        { NPU_F32, NPU_F32, 4, 3, x, x, NPU_ERR_SHAPE, HUGE_VAL, 0 },
        { NPU_F32, NPU_F32, 0, 0, x, y, NPU_OK, 0, 0 },
        { NPU_F32, NPU_F32, 0, 0, NULL, NULL, NPU_OK, 0, 0 },
        { NPU_F16, NPU_F32, 4, 4, half, x, NPU_OK, 0, 0 },
        { NPU_F32, NPU_F16, 4, 4, y, half, NPU_ERR_MISMATCH, 1, 3 },
        { NPU_I64, NPU_I64, 2, 2, big, near_big, NPU_ERR_MISMATCH, 1, 0 },
        { NPU_U64, NPU_U64, 2, 2, all, none, NPU_ERR_MISMATCH, 1.8446744073709552e19, 0 },
        { NPU_C64, NPU_C64, 2, 2, x, y, NPU_ERR_MISMATCH, 1, 1 },
        { NPU_C64, NPU_F32, 2, 2, x, x, NPU_ERR_DTYPE, HUGE_VAL, 0 },
        { NPU_F8, NPU_F8, 2, 2, x, x, NPU_ERR_DTYPE, HUGE_VAL, 0 },
        { NPU_F32, NPU_F32, 4, 4, NULL, x, NPU_ERR_INVALID_ARGUMENT, HUGE_VAL, 0 },
        { NPU_F32, NPU_F32, -2, -2, x, x, NPU_ERR_DYNAMIC_SHAPE, HUGE_VAL, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_array got = { "got", SPEC(rows[i].got_dtype, rows[i].got_len), rows[i].got };
        npu_array want = { "want", SPEC(rows[i].want_dtype, rows[i].want_len), rows[i].want };
        npu_difference d;
        NPU_CHECK_STATUS(npu_array_compare(&got, &want, &exact, &d), rows[i].status);
        NPU_CHECK_NEAR(d.max_diff, rows[i].max, 0);
        NPU_CHECK_EQ(d.worst, rows[i].worst);
    }
}

/* What is named is wrong: a small number that is off, not a large one that is off by more, and may be. */
static void test_compare_names_what_is_wrong(void)
{
    const float want[4] = { 1e6f, 0, 1, 2 }, got[4] = { 1e6f + 5, 0, 1.5f, 2.25f }, near_want[4] = { 1e6f + 5, 0, 1, 2 };
    const npu_array a = { "a", SPEC(NPU_F32, 4), got }, b = { "b", SPEC(NPU_F32, 4), want };
    const npu_array near_b = { "near", SPEC(NPU_F32, 4), near_want };
    npu_difference d, total;
    NPU_CHECK_STATUS(npu_array_compare(&a, &b, NULL, &d), NPU_ERR_MISMATCH);
    NPU_CHECK(d.num_wrong == 2 && d.worst == 2 && d.got == 1.5 && d.want == 1 && d.max_diff == 5);
    NPU_CHECK_STATUS(npu_array_compare(&near_b, &b, NULL, &d), NPU_OK);
    NPU_CHECK(d.num_wrong == 0 && d.worst == 0 && d.max_diff == 5);
    /* so of outputs */
    npu_graph *g = graph_of("graph main\ninput x : f32[4]\ny = aten.abs.default(x)\noutput x = x\noutput y = y\n");
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, near_want, sizeof near_want), NPU_OK);
    const float off[4] = { 1e6f + 5, 0, 1, 2.5f };
    for (int wrong = 0; wrong < 2; wrong++) { /* the second output, the first */
        const npu_array expected[2] = { { NULL, SPEC(NPU_F32, 4), wrong ? off : want }, { NULL, SPEC(NPU_F32, 4), wrong ? want : off } };
        NPU_CHECK_STATUS(npu_exec_verify(exec, expected, 2, NULL, NULL, &total, NULL), NPU_ERR_MISMATCH);
        NPU_CHECK(total.worst == (wrong ? 0 : 1) && total.got == 2 && total.want == 2.5 && total.max_diff == 5);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* ---- verify: what is largest ---- */

static void test_ranking(void)
{
    static const float x[6] = { 1, 5, 3, 4, 4, 2 }, twice[6] = { 3, 11, 7, 9, 9, 5 }, other[6] = { 5, 1, 3, 4, 4, 2 };
    static const float flat[6] = { 2, 2, 2, 2, 2, 2 }, wrong[6] = { 1, 5, NAN, 4, 4, 2 };
    static const uint16_t half[6] = { 0x3c00, 0x4500, 0x4200, 0x4400, 0x4400, 0x4000 };
    static const struct {
        npu_dtype dtype;
        const void *got;
        uint32_t k;
        uint64_t first, top, shared;
        double correlation;
    } rows[] = {
        { NPU_F32, x, 1, 2, 2, 2, 1 },       { NPU_F32, twice, 2, 2, 4, 4, 1 }, { NPU_F16, half, 9, 2, 6, 6, 1 },
        { NPU_F32, other, 1, 1, 2, 1, -0.47692307692307695 }, { NPU_F32, other, 2, 1, 4, 3, -0.47692307692307695 },
        { NPU_F32, flat, 1, 1, 2, 1, 0 },    { NPU_F32, wrong, 2, 2, 4, 3, (double)NAN },
    };
    npu_array want = { "want", SPEC(NPU_F32, 2, 3), x }, none = { "none", SPEC(NPU_F32, 0, 3), NULL };
    npu_array longer = { "longer", SPEC(NPU_F32, 3, 2), x }, pairs = { "pairs", SPEC(NPU_C64, 3), x };
    npu_array same = { "same", SPEC(NPU_F32, 2, 3), flat }, empty = { "empty", SPEC(NPU_F32, 2, 3), NULL };
    npu_ranking r;
    NPU_ITEM("R1.24");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_array got = { "got", SPEC(rows[i].dtype, 2, 3), rows[i].got };
        NPU_CHECK_STATUS(npu_array_compare_ranking(&got, &want, rows[i].k, &r), NPU_OK);
        NPU_CHECK_EQ(r.num_rows, 2);
        NPU_CHECK_EQ(r.num_first, rows[i].first);
        NPU_CHECK_EQ(r.num_top, rows[i].top);
        NPU_CHECK_EQ(r.num_shared, rows[i].shared);
        NPU_CHECK_NEAR(r.correlation, rows[i].correlation, 1e-12);
    }
    NPU_CHECK_STATUS(npu_array_compare_ranking(&same, &same, 1, &r), NPU_OK);
    NPU_CHECK_NEAR(r.correlation, 1, 0);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&none, &none, 1, &r), NPU_OK);
    NPU_CHECK_EQ(r.num_rows, 0);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&longer, &want, 1, &r), NPU_ERR_SHAPE);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&pairs, &pairs, 1, &r), NPU_ERR_DTYPE);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&want, &want, 0, &r), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&want, &want, NPU_MAX_TOP + 1, &r), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_array_compare_ranking(&empty, &want, 1, &r), NPU_ERR_INVALID_ARGUMENT);
}

/* A small network in halves against the same in floats: numbers to a few hundredths, the same class on top. */
static void test_network_in_halves(void)
{
    static const char text[] =
        "graph main\ninput x : @[4,3,8,8]\nparam w : @[8,3,3,3]\nparam b : @[8]\nparam f : @[10,128]\n"
        "param c : @[10]\na = aten.conv2d.default(x, w, b, padding=[1, 1])\nr = aten.relu.default(a)\n"
        "p = aten.max_pool2d.default(r, [2, 2])\nv = aten.flatten.using_ints(p, 1)\n"
        "y = aten.linear.default(v, f, c)\noutput y = y\n";
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F16, NPU_BF16 };
    static float numbers[1280];
    static uint16_t halves[2][1280];
    static const char *const params[] = { "w", "b", "f", "c" };
    const npu_backend *cpu = npu_ref_backend();
    const npu_tolerance close = { .rtol = 5e-2, .atol = 5e-2 };
    npu_graph *graphs[3];
    npu_exec *execs[3];
    npu_array out[3];
    for (uint32_t i = 0; i < 1280; i++) {
        numbers[i] = (float)((i * 2654435761u >> 8) % 2001u) / 4000.0f - 0.25f;
        halves[0][i] = npu_f32_to_f16(numbers[i]);
        halves[1][i] = npu_f32_to_bf16(numbers[i]);
    }
    for (int t = 0; t < 3; t++) {
        const void *data = t ? (const void *)halves[t - 1] : numbers;
        npu_text line = npu_text_init(NULL);
        size_t size = 0;
        for (const char *at = text; *at; at++) {
            npu_text_printf(&line, *at == '@' ? "%s" : "%.1s", *at == '@' ? npu_dtype_name(dtypes[t]) : at);
        }
        NPU_CHECK_STATUS(npu_graph_parse(&graphs[t], line.data, line.len, NULL, NULL), NPU_OK);
        for (int i = 0; i < 4; i++) {
            npu_spec_size(npu_value_spec(graphs[t], npu_graph_find(graphs[t], params[i])), &size);
            NPU_CHECK_STATUS(npu_graph_bind_param(graphs[t], params[i], data, size), NPU_OK);
        }
        NPU_CHECK_STATUS(npu_exec_create_simple(&execs[t], graphs[t], &cpu, 1, NULL), NPU_OK);
        npu_spec_size(npu_value_spec(graphs[t], npu_graph_input(graphs[t], 0)), &size);
        NPU_CHECK_STATUS(npu_test_input(execs[t], "x", data, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(execs[t]), NPU_OK);
        out[t] = (npu_array){ "y", *npu_exec_output_spec(execs[t], 0), npu_exec_output(execs[t], 0, NULL) };
        npu_text_free(&line);
    }
    for (int t = 1; t < 3; t++) {
        npu_difference d;
        npu_ranking r;
        NPU_CHECK_STATUS(npu_array_compare(&out[t], &out[0], &close, &d), NPU_OK);
        NPU_CHECK(d.max_diff > 0);
        NPU_CHECK_STATUS(npu_array_compare_ranking(&out[t], &out[0], 5, &r), NPU_OK);
        NPU_CHECK_EQ(r.num_first, r.num_rows);
        NPU_CHECK(r.correlation > 0.99 && r.num_shared * 10 >= r.num_top * 9);
    }
    for (int t = 0; t < 3; t++) {
        npu_exec_destroy(execs[t]);
        npu_graph_destroy(graphs[t]);
    }
}

/* ---- verify: runs ---- */

static const char *const chain =
    "graph main\ninput x : f32[2,3]\na = aten.relu.default(x)\nb = aten.neg.default(a) @minus\n"
    "c = aten.abs.default(b)\nv, i = aten.max.dim(c, 1)\noutput b = b\noutput v = v\n";
static const float chain_x[6] = { 1, -2, 3, 4, 5, -6 }, chain_b[6] = { -1, 0, -3, -4, -5, 0 }, chain_v[2] = { 3, 5 };

/* neg, off by `ctx` in its element 4 */
static npu_status run_neg(void *ctx, const npu_op_info *op, const void *const *in, void *const *out)
{
    size_t len = 0;
    npu_spec_len(op->out[0], &len);
    for (size_t i = 0; i < len; i++) {
        ((float *)out[0])[i] = -((const float *)in[0])[i] + (i == 4 ? *(const float *)ctx : 0);
    }
    return NPU_OK;
}

/* A device whose neg is wrong by half. */
typedef struct broken {
    npu_registry *registry;
    npu_backend *backend;
    float error;
} broken;

static void broken_begin(broken *b, float error)
{
    npu_executor neg = { "aten.neg", run_neg, &b->error, 0 };
    npu_ref_desc desc = { 0 };
    b->error = error;
    NPU_CHECK_STATUS(npu_registry_create(&b->registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_executor(b->registry, &neg, NULL), NPU_OK);
    desc.registry = b->registry;
    NPU_CHECK_STATUS(npu_ref_create(&b->backend, &desc), NPU_OK);
}

static void broken_end(broken *b)
{
    npu_ref_destroy(b->backend);
    npu_registry_destroy(b->registry);
}

static npu_exec *exec_of(const npu_graph *g, const npu_backend *backend)
{
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backend, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, chain_x, sizeof chain_x), NPU_OK);
    return exec;
}

static void test_verify(void)
{
    npu_graph *g = graph_of(chain);
    npu_array want[3] = { { NULL, SPEC(NPU_F32, 2, 3), chain_b }, { NULL, SPEC(NPU_F32, 2), chain_v } };
    npu_difference outputs[2], total;
    npu_exec *exec = exec_of(g, npu_ref_backend());
    npu_diag diag;
    broken b;
    NPU_ITEM("R0.21");
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 2, NULL, outputs, &total, &diag), NPU_OK);
    NPU_CHECK(diag.status == NPU_OK && total.max_diff == 0 && total.num_elements == 8 && outputs[1].num_elements == 2);
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 1, NULL, outputs, &total, &diag), NPU_ERR_ARITY);
    NPU_CHECK(isinf(total.max_diff) && isinf(outputs[1].mean_diff) && outputs[0].status == NPU_ERR_ARITY);
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 3, NULL, NULL, NULL, NULL), NPU_ERR_ARITY);
    want[0].spec = SPEC(NPU_F32, 3, 2);
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 2, NULL, outputs, &total, &diag), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(diag.message, "output 'b'") && strstr(diag.message, "f32[2,3], expected f32[3,2]"));
    NPU_CHECK(isinf(total.max_diff) && isinf(total.mean_diff) && total.worst == 0 && outputs[1].status == NPU_OK);
    npu_exec_destroy(exec);
    /* a wrong device: the first output in one element, and what follows from it */
    want[0].spec = SPEC(NPU_F32, 2, 3);
    broken_begin(&b, 0.5f);
    exec = exec_of(g, b.backend);
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 2, NULL, outputs, &total, &diag), NPU_ERR_MISMATCH);
    NPU_CHECK(strstr(diag.message, "output 'b': 1 of 6 elements differ, most of all element 4: got -4.5, expected -5"));
    NPU_CHECK(outputs[0].num_wrong == 1 && outputs[0].worst == 4 && outputs[1].num_wrong == 1);
    NPU_CHECK_NEAR(total.max_diff, 0.5, 0);
    NPU_CHECK_NEAR(total.mean_diff, 1.0 / 8, 0);
    NPU_CHECK_EQ(total.num_wrong, 2);
    npu_exec *right = exec_of(g, npu_ref_backend());
    NPU_CHECK_STATUS(npu_exec_compare(exec, right, NULL, NULL, &total, NULL), NPU_ERR_MISMATCH);
    NPU_CHECK_EQ(total.num_wrong, 2);
    b.error = 0;
    NPU_CHECK_STATUS(npu_exec_compare(exec, right, NULL, outputs, NULL, &diag), NPU_OK);
    NPU_CHECK_EQ(diag.status, NPU_OK);
    npu_exec_destroy(right);
    npu_exec_destroy(exec);
    /* a run that fails is what is wrong */
    const npu_backend *cpu = npu_ref_backend();
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_verify(exec, want, 2, NULL, outputs, &total, &diag), NPU_ERR_MISSING_FEED);
    NPU_CHECK(strstr(diag.message, "'x'") && total.status == NPU_ERR_MISSING_FEED && isinf(outputs[0].max_diff));
    npu_exec_destroy(exec);
    broken_end(&b);
    npu_graph_destroy(g);
}

/* max along rows of three, right but for its indices */
static npu_status run_max(void *ctx, const npu_op_info *op, const void *const *in, void *const *out)
{
    (void)ctx;
    (void)op;
    for (int i = 0; i < 2; i++) {
        const float *x = (const float *)in[0] + 3 * i;
        ((float *)out[0])[i] = x[0] > x[1] ? (x[0] > x[2] ? x[0] : x[2]) : x[1] > x[2] ? x[1] : x[2];
        ((int64_t *)out[1])[i] = 7;
    }
    return NPU_OK;
}

/* The op that is wrong, not those that read its result; and nothing where all agree. */
static void test_find_wrong_op(void)
{
    npu_graph *g = graph_of(chain);
    npu_array x = { "x", SPEC(NPU_F32, 2, 3), chain_x };
    const npu_backend *backends[2] = { NULL, npu_ref_backend() };
    npu_difference d;
    npu_diag diag;
    npu_op op = { 9 };
    broken b;
    NPU_ITEM("R0.21");
    broken_begin(&b, 0.5f);
    backends[0] = b.backend;
    NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), &x, 1, NULL, &op, &d, &diag),
                     NPU_ERR_MISMATCH);
    NPU_CHECK_EQ(op.id, 2);
    NPU_CHECK(d.num_wrong == 1 && d.worst == 4 && diag.op == 2);
    NPU_CHECK_STR(diag.message,
                  "text:4: minus: result 0: 1 of 6 elements differ, most of all element 4: got -4.5, expected -5");
    b.error = 0;
    NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), &x, 1, NULL, &op, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(op.id, 0);
    /* any result of an op */
    const npu_executor max = { "aten.max", run_max, NULL, 0 };
    broken with_max;
    npu_ref_desc desc = { 0 };
    NPU_CHECK_STATUS(npu_registry_create(&with_max.registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_executor(with_max.registry, &max, NULL), NPU_OK);
    desc.registry = with_max.registry;
    NPU_CHECK_STATUS(npu_ref_create(&with_max.backend, &desc), NPU_OK);
    backends[0] = with_max.backend;
    NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), &x, 1, NULL, &op, &d, &diag),
                     NPU_ERR_MISMATCH);
    NPU_CHECK_EQ(op.id, 4);
    NPU_CHECK_THAT(strstr(diag.message, "result 1: 2 of 2 elements differ"), "'%s'", diag.message);
    broken_end(&with_max);
    backends[0] = b.backend;
    NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), &x, 0, NULL, &op, NULL, &diag),
                     NPU_ERR_ARITY);
    x.spec = SPEC(NPU_F32, 3, 2);
    NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), &x, 1, NULL, &op, &d, &diag),
                     NPU_ERR_SHAPE);
    NPU_CHECK_EQ(op.id, 0);
    broken_end(&b);
    npu_graph_destroy(g);
}

/* A device that holds the results that a run needs at a time, but not all of them: the op is found there, too, and not
   taken for right because the CPU made it. What cannot be run alone is said to be untried. */
static void test_find_wrong_op_in_little_memory(void)
{
    static const char chain_of[] =
        "graph main\ninput x : f32[4096]\n%sa = aten.abs.default(x)\nb = aten.exp.default(a)\nc = aten.relu.default(b)\n"
        "d = aten.abs.default(c)\ne = aten.exp.default(d)\nf = aten.neg.default(%s)\nh = aten.sub.Tensor(f, e)\n"
        "g = aten.addcmul.default(h, h, %s)\nm, i = aten.max.dim(g, 0)\n%soutput g = g\noutput i = i\n";
    static const struct {
        const char *state, *reads, *kept, *update;
        uint32_t num_backends; /* the device and the CPU */
        uint32_t values;       /* that the device holds */
        bool hides;            /* how many */
        float error;
        npu_status status;
        const char *words;
    } rows[] = {
        { "", "e", "e", "", 1, 3, false, 0.5f, NPU_ERR_MISMATCH,
          "neg: result 0: 1 of 4096 elements differ, most of all element 4" },
        { "", "e", "e", "", 2, 3, false, 0.5f, NPU_ERR_MISMATCH, "neg: result 0: 1 of 4096" },
        { "", "e", "e", "", 2, 3, true, 0.5f, NPU_ERR_MISMATCH, "neg: result 0: 1 of 4096" },
        { "", "e", "e", "", 1, 3, false, 0, NPU_OK, "" },
        { "", "e", "e", "", 2, 3, true, 0, NPU_OK, "" },
        { "", "e", "d", "", 2, 2, false, 0.5f, NPU_OK, "" }, /* neg is the CPU's, as d is there, too: alone it would fit */
        { "state s : f32[4096]\n", "s", "e", "update s = g\n", 1, 3, false, 0.5f, NPU_ERR_BUDGET,
          "neg: was not tried: operand 0 is a state or a scalar; beside all others: text:4: sim: device needs" },
        { "state s : f32[4096]\n", "s", "e", "update s = g\n", 1, 3, true, 0.5f, NPU_ERR_NO_MEMORY,
          "neg: was not tried" },
    };
    static float numbers[4096];
    const npu_array x = { "x", SPEC(NPU_F32, 4096), numbers };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        npu_difference d;
        npu_diag diag;
        npu_op op = { 9 };
        broken b;
        snprintf(text, sizeof text, chain_of, rows[i].state, rows[i].reads, rows[i].kept, rows[i].update);
        npu_graph *g = graph_of(text);
        broken_begin(&b, rows[i].error);
        npu_sim_desc desc = { .emulate = b.backend, .emulate_all = true, .hides_capacity = rows[i].hides,
                              .capacity = rows[i].values * sizeof numbers + 512 };
        npu_sim *sim = NULL;
        NPU_CHECK_STATUS(npu_sim_create(&sim, &desc), NPU_OK);
        const npu_backend *backends[2] = { npu_sim_backend(sim), npu_ref_backend() };
        NPU_CHECK_STATUS(npu_graph_find_wrong_op(g, backends, rows[i].num_backends, npu_ref_backend(), &x, 1, NULL, &op, &d,
                                                 &diag), rows[i].status);
        NPU_CHECK_EQ(op.id, rows[i].status ? 6 : 0);
        NPU_CHECK_EQ(d.num_wrong, rows[i].status == NPU_ERR_MISMATCH);
        NPU_CHECK_EQ(diag.op, op.id);
        if (!strstr(diag.message, rows[i].words)) {
            NPU_CHECK_STR(diag.message, rows[i].words);
        }
        npu_sim_destroy(sim);
        broken_end(&b);
        npu_graph_destroy(g);
    }
}

/* Out of memory at any moment: a status, and nothing is left. */
static void test_no_memory(void)
{
    npu_status status = NPU_ERR_NO_MEMORY;
    npu_array x = { "x", SPEC(NPU_F32, 2, 3), chain_x };
    const npu_backend *cpu = npu_ref_backend();
    bool failed = true;
    for (uint64_t n = 1; failed && n < 4000; n++) {
        npu_alloc_counter counter = { .fail_at = 0 };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_graph_desc desc = { .allocator = &allocator };
        npu_text text = npu_text_init(&allocator);
        npu_graph *g = NULL;
        npu_op op;
        NPU_CHECK_STATUS(npu_graph_parse(&g, chain, strlen(chain), &desc, NULL), NPU_OK);
        counter.fail_at = counter.num_calls + n;
        status = npu_graph_find_wrong_op(g, &cpu, 1, cpu, &x, 1, NULL, &op, NULL, NULL);
        status = status ? status : npu_graph_print_stats(g, &text);
        status = status ? status : npu_graph_print_pie(g, 1, &text);
        status = status ? status : npu_graph_check_weights(g, NULL, 0, NULL, NULL);
        status = status ? status : npu_graph_bind_weights(g, NULL, 0, NULL, NULL);
        npu_text_free(&text);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
        failed = counter.num_calls >= counter.fail_at;
        NPU_CHECK(status == NPU_OK || (failed && status == NPU_ERR_NO_MEMORY));
    }
    NPU_CHECK(!failed);
    NPU_CHECK_STATUS(status, NPU_OK);
}

/* A plan may have ops that no backend takes: every form of it says so, and why. */
static void test_plan_without_backend(void)
{
    static const struct { const char *name; void (*print)(const npu_plan *plan, npu_text *text); const char *words[2]; } rows[] = {
        { "print", npu_plan_print, { "partition  (none)", "my.unknown  -> (none)  op not supported" } },
        { "ops", npu_plan_print_ops, { "(none)", "op not supported" } },
        { "memory", npu_plan_print_memory, { "cpu", "0 B" } },
        { "slots", npu_plan_print_slots, { "slot", "cpu" } },
        { "dot", npu_plan_print_dot, { "label=\"0  (none)\"", "#ff6666" } },
    };
    npu_graph *g = npu_graph_create(NULL), *part = NULL;
    npu_spec spec = npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 4 });
    npu_value x = npu_input(g, "x", spec);
    npu_arg arg = npu_arg_tensor("input", x);
    npu_op op = npu_emit_typed(g, "my.unknown", &arg, 1, &spec, 1);
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan *plan = NULL;
    NPU_ITEM("F1");
    npu_output(g, "y", npu_relu(g, npu_op_result(g, op, 0)));
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_init(NULL);
        rows[i].print(plan, &text);
        for (int k = 0; k < 2; k++) {
            if (!text.data || !strstr(text.data, rows[i].words[k])) {
                NPU_CHECK_STR(text.data, rows[i].words[k]);
            }
        }
        npu_text_free(&text);
    }
    NPU_CHECK_EQ(npu_plan_step(plan, 0)->backend, 255);
    NPU_CHECK_STATUS(npu_graph_extract(&part, g, npu_plan_step(plan, 0)->ops, npu_plan_step(plan, 0)->num_ops, NULL), NPU_OK);
    npu_graph_destroy(part);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
}

int main(void)
{
    NPU_RUN(test_plan_without_backend);
    NPU_RUN(test_plan);
    NPU_RUN(test_plan_ops);
    NPU_RUN(test_plan_costs);
    NPU_RUN(test_plan_memory);
    NPU_RUN(test_plan_all_claimed);
    NPU_RUN(test_plan_dot);
    NPU_RUN(test_profile);
    NPU_RUN(test_trace);
    NPU_RUN(test_no_profile);
    NPU_RUN(test_stats);
    NPU_RUN(test_compare);
    NPU_RUN(test_compare_types);
    NPU_RUN(test_ranking);
    NPU_RUN(test_network_in_halves);
    NPU_RUN(test_verify);
    NPU_RUN(test_compare_names_what_is_wrong);
    NPU_RUN(test_find_wrong_op);
    NPU_RUN(test_find_wrong_op_in_little_memory);
    NPU_RUN(test_no_memory);
    return npu_test_done();
}
