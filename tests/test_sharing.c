/* Programs that have weights in common, and execs that have states in common: the two graphs of a model that reads a
   prompt and goes on token by token. The same bits as with everything twice, and nothing uploaded or packed twice. */
#include "rig.h"

enum { WIDTH = 32, HIDDEN = 48 };

static float weight_data[2][WIDTH * HIDDEN], bias_data[HIDDEN];

/* A decoder of a kind: two layers, and a cache that sums what they gave, which is an input where `is_open`. */
static npu_graph *decoder(int64_t rows, bool is_open)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", F32(rows, WIDTH));
    npu_value cache = is_open ? npu_input(g, "cache", F32(WIDTH)) : npu_state(g, "cache", F32(WIDTH)), y, next;
    npu_value w[2], bias = npu_param(g, "bias", F32(HIDDEN));
    w[0] = npu_param(g, "up", F32(HIDDEN, WIDTH));
    w[1] = npu_param(g, "down", F32(WIDTH, HIDDEN));
    y = npu_linear(g, npu_relu(g, npu_linear(g, x, w[0], bias)), w[1], (npu_value){ 0 });
    next = npu_add(g, cache, npu_sum(g, y, DIMS(0), 1, false));
    if (is_open) {
        npu_output(g, "next", next);
    } else {
        NPU_CHECK_STATUS(npu_update(g, cache, next), NPU_OK);
    }
    npu_output(g, "y", npu_add(g, y, next));
    fill(weight_data[0], WIDTH * HIDDEN, 1);
    fill(weight_data[1], WIDTH * HIDDEN, 2);
    fill(bias_data, HIDDEN, 3);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "up", weight_data[0], sizeof weight_data[0]), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "down", weight_data[1], sizeof weight_data[1]), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "bias", bias_data, sizeof bias_data), NPU_OK);
    return g;
}

/* y of one run of a graph whose cache is an input, and the cache after it: on the CPU, with nothing in common. */
static void expect_run(int64_t rows, const float *x, float *cache, float *y)
{
    npu_graph *g = decoder(rows, true);
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *e = NULL;
    float next[WIDTH];
    NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &cpu, 1, NULL), NPU_OK);
    npu_test_input(e, "x", x, (size_t)rows * WIDTH * sizeof *x);
    npu_test_input(e, "cache", cache, sizeof next);
    NPU_CHECK_STATUS(npu_exec_set_output(e, "next", next, sizeof next), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(e, "y", y, (size_t)rows * WIDTH * sizeof *y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    memcpy(cache, next, sizeof next);
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

static void check_run(npu_exec *e, int64_t rows, uint32_t seed, float *cache)
{
    float x[16 * WIDTH], y[16 * WIDTH], expected[16 * WIDTH];
    fill(x, (size_t)rows * WIDTH, seed);
    expect_run(rows, x, cache, expected);
    npu_test_input(e, "x", x, (size_t)rows * WIDTH * sizeof *x);
    NPU_CHECK_STATUS(npu_exec_set_output(e, "y", y, (size_t)rows * WIDTH * sizeof *y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    NPU_CHECK_BYTES(y, expected, (size_t)rows * WIDTH * sizeof *y);
}

static uint64_t uploaded(const rig *r) { return r->sims[0] ? npu_sim_count(r->sims[0]).bytes_up : 0; }

static npu_memory memory_of(const npu_program *program, uint32_t backend)
{
    npu_memory m;
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(program), backend, &m), NPU_OK);
    return m;
}

typedef struct way {
    const char *name;
    uint32_t num_sims;
    npu_sim_desc sim;
    bool overlap;
    bool uploads; /* weights are on the device as they are */
} way;

#define EMULATES .emulate_all = true
static const way ways[] = {
    { "the CPU alone", 0, { 0 }, false, false },
    { "a device", 1, { EMULATES }, false, true },
    { "a device with two regions", 1, { EMULATES, .on_chip = 8192 }, false, true },
    { "a device that works on", 1, { EMULATES, .async = true }, true, true },
    { "a device with layouts of its own", 1, { EMULATES, .keeps_weights = true }, false, false },
    { "a device for a part of it", 1, { EMULATES, .deny = (const char *const[]){ "aten.relu.default" }, .num_deny = 1 },
      false, true },
};

/* The program of 8 rows, then that of 3 beside it, and the execs in turn over one cache. */
static void check_way(const way *w)
{
    npu_sim_desc sim = w->sim;
    float cache[WIDTH] = { 0 };
    const uint64_t weights = 2 * WIDTH * HIDDEN * 4 + HIDDEN * 4;
    sim.emulate = npu_ref_backend();
    rig r = rig_start(&sim, w->num_sims);
    npu_graph *prompt = decoder(8, false), *step = decoder(3, false), *own = r.graph;
    npu_plan *plan = NULL;
    npu_program *beside = NULL, *alone = NULL;
    npu_exec *steps = NULL;
    int bad = npu_test.bad_checks;
    uint64_t before;
    r.graph = prompt;
    r.desc.overlap = r.exec_desc.overlap = w->overlap;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_plan_desc desc = r.desc;
    NPU_CHECK_STATUS(npu_plan_create(&plan, step, &desc, NULL), NPU_OK);
    before = uploaded(&r);
    NPU_CHECK_STATUS(npu_program_create(&alone, plan, NULL), NPU_OK);
    /* where the first program fills a region, a second one with weights of its own has to go elsewhere */
    NPU_CHECK_EQ(uploaded(&r) - before, w->uploads && !w->sim.on_chip ? weights : 0);
    npu_plan_destroy(plan);

    desc.weights_of = r.program;
    NPU_CHECK_STATUS(npu_plan_create(&plan, step, &desc, NULL), NPU_OK);
    before = uploaded(&r);
    NPU_CHECK_STATUS(npu_program_create(&beside, plan, NULL), NPU_OK);
    NPU_CHECK_EQ(uploaded(&r), before);
    npu_memory m = memory_of(beside, 0), had = memory_of(alone, 0);
    NPU_CHECK_EQ(m.weights, w->uploads || !had.weights ? 0 : had.weights);
    npu_exec_desc exec_desc = r.exec_desc;
    exec_desc.states_of = r.exec;
    NPU_CHECK_STATUS(npu_exec_create(&steps, beside, &exec_desc, &r.diag), NPU_OK);
    for (uint32_t i = 0; i < 6; i++) {
        check_run(i % 3 ? steps : r.exec, i % 3 ? 3 : 8, i, cache);
    }
    NPU_CHECK_STATUS(npu_exec_reset_state(steps), NPU_OK);
    memset(cache, 0, sizeof cache);
    check_run(r.exec, 8, 9, cache);
    NPU_CHECK_THAT(npu_test.bad_checks == bad, "%s", w->name);

    npu_exec_destroy(steps);
    npu_program_destroy(beside);
    npu_program_destroy(alone);
    npu_plan_destroy(plan);
    check_run(r.exec, 8, 10, cache); /* what was lent is still there */
    rig_unmake(&r);
    r.graph = own;
    rig_end(&r);
    npu_graph_destroy(prompt);
    npu_graph_destroy(step);
}

static void test_two_graphs(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        check_way(&ways[i]);
    }
}

/* What the CPU backend packs is packed once: beside another program, and where one program uses a weight twice. */
static void test_packed_once(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_program *programs[3] = { NULL };
    npu_graph *graphs[3];
    for (int i = 0; i < 3; i++) {
        npu_plan *plan = NULL;
        graphs[i] = decoder(i ? 12 : 8, false);
        desc.weights_of = i == 2 ? programs[0] : NULL;
        NPU_CHECK_STATUS(npu_plan_create(&plan, graphs[i], &desc, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_program_create(&programs[i], plan, NULL), NPU_OK);
        npu_plan_destroy(plan);
    }
    uint64_t alone = memory_of(programs[1], 0).prepared, beside = memory_of(programs[2], 0).prepared;
    NPU_CHECK_THAT(alone >= beside + sizeof weight_data, "alone %llu, beside another %llu", (unsigned long long)alone,
                   (unsigned long long)beside);
    for (int i = 3; i-- > 0;) {
        npu_program_destroy(programs[i]);
        npu_graph_destroy(graphs[i]);
    }
}

/* A layer that is called again, as PyTorch's modules may be: a linear one, a convolution of 1x1 and one of 3x3. */
static void test_called_again(void)
{
    static float data[WIDTH * WIDTH * 9];
    const npu_backend *cpu = npu_ref_backend();
    fill(data, WIDTH * WIDTH * 9, 1);
    for (int64_t kernel = 0; kernel <= 3; kernel += kernel ? 2 : 1) {
        uint64_t bytes[2];
        for (int times = 1; times <= 2; times++) {
            npu_graph *g = npu_graph_create(NULL);
            npu_value x = npu_input(g, "x", kernel ? F32(1, WIDTH, 28, 28) : F32(8, WIDTH)), none = { 0 };
            npu_value w = npu_param(g, "w", kernel ? F32(WIDTH, WIDTH, kernel, kernel) : F32(WIDTH, WIDTH));
            const npu_conv2d_attrs attrs = { .padding = { kernel / 2, kernel / 2 } };
            npu_exec *e = NULL;
            for (int i = 0; i < times; i++) {
                x = npu_tanh(g, kernel ? npu_conv2d(g, x, w, none, &attrs) : npu_linear(g, x, w, none));
            }
            npu_output(g, "y", x);
            size_t size = (size_t)(WIDTH * WIDTH * (kernel ? kernel * kernel : 1)) * sizeof data[0];
            NPU_CHECK_STATUS(npu_graph_bind_param(g, "w", data, size), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &cpu, 1, NULL), NPU_OK);
            bytes[times - 1] = memory_of(npu_exec_program(e), 0).prepared;
            npu_exec_destroy(e);
            npu_graph_destroy(g);
        }
        NPU_CHECK_THAT(bytes[1] < bytes[0] + WIDTH * WIDTH * 4, "kernel %d: %llu bytes, then %llu", (int)kernel,
                       (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    }
}

/* Data at another address, or of another type, is no common weight; nor is that of another device. */
static void test_not_common(void)
{
    static float other[WIDTH * HIDDEN];
    const npu_sim_desc sims[2] = { { .emulate = npu_ref_backend(), EMULATES },
                                   { .emulate = npu_ref_backend(), EMULATES, .name = "second" } };
    rig r = rig_start(sims, 2);
    npu_graph *prompt = decoder(8, false), *step = decoder(3, false), *own = r.graph;
    r.graph = prompt;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(other, WIDTH * HIDDEN, 1);
    NPU_CHECK_STATUS(npu_graph_bind_param(step, "up", other, sizeof other), NPU_OK);
    npu_plan_desc desc = r.desc;
    desc.weights_of = r.program;
    for (int device = 0; device < 2; device++) {
        npu_plan *plan = NULL;
        const npu_backend *pair[2] = { r.backends[device], r.backends[2] };
        desc.backends = pair;
        desc.num_backends = 2;
        NPU_CHECK_STATUS(npu_plan_create(&plan, step, &desc, NULL), NPU_OK);
        npu_memory m;
        NPU_CHECK_STATUS(npu_plan_memory(plan, 0, &m), NPU_OK);
        NPU_CHECK_EQ(m.weights, sizeof other + (device ? sizeof other + HIDDEN * 4 : 0));
        npu_plan_destroy(plan);
    }
    rig_unmake(&r);
    r.graph = own;
    rig_end(&r);
    npu_graph_destroy(prompt);
    npu_graph_destroy(step);
}

static void test_states_refused(void)
{
    static const struct {
        const char *name;
        npu_dtype dtype;
        int64_t len;
        npu_status status;
        const char *words;
    } rows[] = {
        { "cache", NPU_F32, WIDTH, NPU_OK, "" },
        { "cache", NPU_F32, WIDTH + 1, NPU_ERR_SHAPE, "exec: state 'cache' is f32[33], that of states_of f32[32]" },
        { "cache", NPU_I32, WIDTH, NPU_ERR_DTYPE, "exec: state 'cache' is i32[32], that of states_of f32[32]" },
        { "k", NPU_F32, WIDTH, NPU_ERR_NOT_FOUND, "exec: states_of has no state 'k'" },
    };
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = decoder(3, false);
    npu_exec *from = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&from, g, &cpu, 1, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *other = npu_graph_create(NULL);
        npu_value s = npu_state(other, rows[i].name, npu_spec_tensor(rows[i].dtype, 1, &rows[i].len));
        npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
        npu_exec_desc exec_desc = { .states_of = from };
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_exec *e = NULL;
        npu_diag diag;
        npu_output(other, "y", npu_neg(other, s));
        NPU_CHECK_STATUS(npu_plan_create(&plan, other, &desc, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&e, program, &exec_desc, &diag), rows[i].status);
        NPU_CHECK_STR(diag.message, rows[i].words);
        NPU_CHECK((e != NULL) == (rows[i].status == NPU_OK));
        npu_exec_destroy(e);
        npu_program_destroy(program);
        npu_plan_destroy(plan);
        npu_graph_destroy(other);
    }
    NPU_CHECK_STATUS(npu_exec_run(from), NPU_ERR_MISSING_FEED); /* it is as it was */
    npu_exec_destroy(from);
    npu_graph_destroy(g);
}

/* Every allocation of the second program and its exec fails in turn; the first goes on. */
static void test_no_memory(void)
{
    const npu_sim_desc sim = { .emulate = npu_ref_backend(), EMULATES };
    float cache[WIDTH] = { 0 };
    rig r = rig_start(&sim, 1);
    npu_graph *prompt = decoder(8, false), *step = decoder(3, false), *own = r.graph;
    npu_alloc_counter counter;
    npu_status status = NPU_ERR_NO_MEMORY;
    r.graph = prompt;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY; n++) {
        npu_allocator a = npu_allocator_counting(&counter);
        npu_plan_desc desc = r.desc;
        npu_exec_desc exec_desc = { .states_of = r.exec, .allocator = &a };
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_exec *e = NULL;
        memset(&counter, 0, sizeof counter);
        counter.fail_at = n;
        desc.weights_of = r.program;
        desc.allocator = &a;
        status = npu_plan_create(&plan, step, &desc, NULL);
        status = status ? status : npu_program_create(&program, plan, NULL);
        status = status ? status : npu_exec_create(&e, program, &exec_desc, NULL);
        npu_exec_destroy(e);
        npu_program_destroy(program);
        npu_plan_destroy(plan);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK(counter.fail_at > 30);
    check_run(r.exec, 8, 1, cache);
    rig_unmake(&r);
    r.graph = own;
    rig_end(&r);
    npu_graph_destroy(prompt);
    npu_graph_destroy(step);
}

int main(void)
{
    NPU_RUN(test_two_graphs);
    NPU_RUN(test_packed_once);
    NPU_RUN(test_called_again);
    NPU_RUN(test_not_common);
    NPU_RUN(test_states_refused);
    NPU_RUN(test_no_memory);
    return npu_test_done();
}
