/* Plans within what devices have: no region is asked for more than its capacity, groups get smaller or go to the next
   backend, or the plan fails and says what would do. Results keep their bits. */
#include "oracle/memory.h"

/* ---- one chain -------------------------------------------------------------------------------------------------- */

/* x -> relu -> tanh -> neg -> y, `len` floats each; elementwise with a weight of `len` floats where with_weight. */
static void build_chain(npu_graph *g, int64_t len, bool with_weight)
{
    npu_value x = npu_input(g, "x", F32(len));
    npu_value y = npu_relu(g, x);
    npu_value_set_name(g, y, "first");
    y = npu_tanh(g, with_weight ? npu_add(g, y, W(len)) : y);
    npu_value_set_name(g, y, "second");
    npu_output(g, "y", npu_neg(g, y));
}

static uint64_t required(const npu_plan *plan, uint32_t backend, uint32_t region)
{
    npu_region_memory m;
    NPU_CHECK_STATUS(npu_plan_region_memory(plan, backend, region, &m), NPU_OK);
    return m.required;
}

static uint32_t ops_on(const npu_plan *plan, int backend)
{
    uint32_t n = 0;
    for (uint32_t id = 1; id <= npu_graph_num_ops(npu_plan_graph(plan)); id++) {
        n += npu_plan_op_backend(plan, op_id(id), NULL, NULL) == backend;
    }
    return n;
}

/* Runs the chain and compares it with the CPU alone, bit for bit. */
static void check_chain(rig *r, int64_t len)
{
    static float x[4096], y[4096], expected[4096];
    rig cpu = rig_start(NULL, 0);
    npu_graph *own = cpu.graph;
    fill(x, 4096, 3);
    cpu.graph = r->graph;
    NPU_CHECK_STATUS(rig_make(&cpu), NPU_OK);
    for (int i = 0; i < 2; i++) {
        npu_exec *e = i ? r->exec : cpu.exec;
        npu_test_input(e, "x", x, (size_t)len * 4);
        NPU_CHECK_STATUS(npu_exec_set_output(e, "y", i ? y : expected, (size_t)len * 4), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    }
    NPU_CHECK_BYTES(y, expected, (size_t)len * 4);
    cpu.graph = own;
    rig_end(&cpu);
}

static npu_sim_desc device(uint64_t capacity)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.emulate = npu_ref_backend();
    desc.emulate_all = true;
    desc.capacity = capacity;
    return desc;
}

static void test_too_small_for_anything(void)
{
    NPU_ITEM("F27");
    npu_sim_desc desc = device(64);
    rig r = rig_start(&desc, 1);
    build_chain(r.graph, 1 << 20, false); /* 4 MB each, two of which live at once */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_EQ(ops_on(r.plan, 0), 0);
    NPU_CHECK_EQ(required(r.plan, 0, 0), 0);
    for (uint32_t id = 1; id <= 3; id++) {
        uint32_t reason = 0;
        const char *words = "";
        NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op_id(id), &reason, &words), 1);
        NPU_CHECK_EQ(reason, NPU_REASON_BUDGET);
        NPU_CHECK_THAT(strstr(words, "sim: device needs ") && strstr(words, " bytes, has 64"), "'%s'", words);
    }
    rig_end(&r);
}

/* "a capacity of N would do" */
static uint64_t told_capacity(const npu_diag *diag)
{
    const char *at = strstr(diag->message, "a capacity of ");
    NPU_CHECK_THAT(at, "'%s'", diag->message);
    return at ? strtoull(at + strlen("a capacity of "), NULL, 10) : 0;
}

/* Two devices that are both too small: no capacity of the one that is named does while the other one is as it is. */
static void test_two_too_small(void)
{
    static const char *const relu[] = { "aten.relu.default" }, *const others[] = { "aten.tanh.default",
                                                                                   "aten.neg.default" };
    npu_sim_desc descs[2] = { device(64), device(64) };
    descs[0].name = "first";
    descs[0].allow = relu;
    descs[0].num_allow = 1;
    descs[1].name = "second";
    descs[1].allow = others;
    descs[1].num_allow = 2;
    for (int both = 0; both < 2; both++) {
        descs[1].capacity = both ? 64 : 0;
        rig r = rig_start(descs, 2);
        build_chain(r.graph, 1 << 10, false);
        r.desc.no_fallback = true;
        NPU_CHECK_STATUS(rig_plan(&r), NPU_ERR_BUDGET);
        const char *wanted = both ? "; no capacity of it alone would do" : "; a capacity of 8256 would do";
        NPU_CHECK_THAT(strstr(r.diag.message, wanted), "'%s'", r.diag.message); /* two values, and slack behind them */
        rig_end(&r);
    }
}

static npu_status plan_alone(const npu_graph *g, uint64_t capacity, uint32_t num_execs, npu_diag *diag)
{
    npu_sim_desc desc = device(capacity);
    rig r = rig_start(&desc, 1);
    npu_graph *own = r.graph;
    npu_plan *plan = NULL;
    npu_plan_desc d = r.desc;
    d.backends = r.backends;
    d.num_backends = 1;
    d.num_execs = num_execs;
    npu_status status = npu_plan_create(&plan, g, &d, diag);
    NPU_CHECK(!plan == (status != NPU_OK));
    npu_plan_destroy(plan);
    r.graph = own;
    rig_end(&r);
    return status;
}

/* What the message tells is the smallest that does. */
static void test_smallest_capacity(void)
{
    NPU_ITEM("F27");
    for (int with_weight = 0; with_weight < 2; with_weight++) {
        for (uint32_t execs = 1; execs <= 3; execs++) {
            npu_graph *g = npu_graph_create(NULL);
            npu_diag diag;
            build_chain(g, 1000, with_weight != 0);
            NPU_CHECK_STATUS(plan_alone(g, 64, execs, &diag), NPU_ERR_BUDGET);
            NPU_CHECK_THAT(strstr(diag.message, "sim: device needs") && strstr(diag.message, "largest: ") &&
                               strstr(diag.message, "'first' 4000"), "'%s'", diag.message);
            NPU_CHECK(diag.op != 0);
            uint64_t would_do = told_capacity(&diag);
            NPU_CHECK(would_do >= 2 * 4000 * execs + (with_weight ? 4000 : 0));
            NPU_CHECK_STATUS(plan_alone(g, would_do, execs, &diag), NPU_OK);
            NPU_CHECK_STATUS(plan_alone(g, would_do - 1, execs, &diag), NPU_ERR_BUDGET);
            NPU_CHECK_EQ(told_capacity(&diag), would_do);
            npu_graph_destroy(g);
        }
    }
}

/* At what a plan needs nothing changes; with a byte less something goes. */
static void test_at_the_bound(void)
{
    NPU_ITEM("F27");
    for (int with_weight = 0; with_weight < 2; with_weight++) {
        npu_sim_desc desc = device(0);
        rig r = rig_start(&desc, 1);
        build_chain(r.graph, 500, with_weight != 0);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        uint64_t need = required(npu_program_plan(r.program), 0, 0);
        uint32_t all = npu_graph_num_ops(r.graph);
        npu_graph *g = r.graph;
        for (uint64_t less = 0; less < 2; less++) {
            desc = device(need - less);
            rig small = rig_start(&desc, 1);
            npu_graph *own = small.graph;
            small.graph = g;
            NPU_CHECK_STATUS(rig_make(&small), NPU_OK);
            NPU_CHECK_THAT(less ? ops_on(small.plan, 0) < all : ops_on(small.plan, 0) == all, "%u of %u ops stay",
                           (unsigned)ops_on(small.plan, 0), (unsigned)all);
            check_chain(&small, 500);
            small.graph = own;
            rig_end(&small);
        }
        rig_end(&r);
    }
}

/* ---- random graphs, ever smaller devices -------------------------------------------------------------------------- */

static void check_shrinking(uint64_t *seed)
{
    static char expected[1 << 16], out[1 << 16];
    size_t expected_len, len;
    npu_graph *g = npu_graph_create(NULL);
    random_graph(g, seed);
    NPU_CHECK(expected_of(g, expected, sizeof expected, &expected_len));
    for (uint64_t capacity = 4096; capacity >= 64; capacity = capacity * 2 / 3) {
        npu_sim_desc descs[2] = { device(capacity), device(capacity / 2 + pick(seed, 200)) };
        descs[0].on_chip = pick(seed, 2) ? capacity / 3 + 1 : 0;
        descs[0].in_place = pick(seed, 2);
        descs[0].plans_inner = pick(seed, 4) == 0;
        descs[1].scratch = pick(seed, 300);
        descs[0].op_scratch = pick(seed, 2) ? pick(seed, 400) : 0;
        descs[0].worker_scratch = pick(seed, 2) ? pick(seed, 100) : 0;
        rig r = rig_start(descs, 2);
        npu_graph *own = r.graph;
        r.graph = g;
        r.desc.num_execs = 1 + pick(seed, 2);
        r.desc.stream_weights = pick(seed, 2);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        for (uint32_t b = 0; b < 3 && r.exec; b++) {
            oracle_check(r.plan, b);
            oracle_check(npu_program_plan(r.program), b);
        }
        for (uint32_t i = 0; i < r.desc.num_execs && r.exec; i++) {
            npu_exec *more = NULL;
            npu_exec_reset_state(r.exec);
            NPU_CHECK(run_three(r.exec, g, out, sizeof out, &len));
            NPU_CHECK_EQ(len, expected_len);
            NPU_CHECK_BYTES(out, expected, len < expected_len ? len : expected_len);
            if (i + 1 < r.desc.num_execs) { /* there is room for it */
                NPU_CHECK_STATUS(npu_exec_create(&more, r.program, NULL, &r.diag), NPU_OK);
                npu_exec_destroy(more);
            }
        }
        r.graph = own;
        rig_end(&r);
    }
    npu_graph_destroy(g);
}

static void test_shrinking(void)
{
    NPU_ITEM("F27");
    uint64_t seed = npu_test_seed();
    for (int i = 0; i < 40; i++) {
        check_shrinking(&seed);
    }
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

/* A value that is read often goes on chip before one that is read once, larger weights stay in DRAM. */
static void test_regions_by_benefit(void)
{
    NPU_ITEM("F27");
    npu_sim_desc desc = device(0);
    desc.on_chip = 1024;
    rig r = rig_start(&desc, 1);
    npu_graph *g = r.graph;
    npu_value x = npu_input(g, "x", F32(64));
    npu_value hot = npu_relu(g, x), cold = npu_neg(g, x), y = hot;
    for (int i = 0; i < 8; i++) {
        y = npu_add(g, y, hot);
    }
    npu_output(g, "y", npu_add(g, npu_add(g, y, cold), W(64)));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    const npu_plan *plan = npu_program_plan(r.program);
    NPU_CHECK_EQ(npu_plan_value_region(plan, hot, 0), 1);
    NPU_CHECK_EQ(npu_plan_value_region(plan, cold, 0), 0);
    NPU_CHECK(required(plan, 0, 1) <= 1024 && required(plan, 0, 0) > 0);
    oracle_check(plan, 0);
    float in[64], out[64];
    fill(in, 64, 1);
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", out, sizeof out), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    npu_text text = npu_text_init(NULL);
    npu_plan_print_memory(plan, &text);
    NPU_CHECK_THAT(strstr(text.data, "sim, on-chip: ") && strstr(text.data, " of 1024"), "%s", text.data);
    npu_text_free(&text);
    NPU_CHECK_EQ(npu_plan_value_region(plan, value_id(9999), 0), NPU_NO_INDEX);
    NPU_CHECK_EQ(npu_plan_value_region(plan, hot, 7), NPU_NO_INDEX);
    npu_region_memory m;
    NPU_CHECK_STATUS(npu_plan_region_memory(plan, 0, 2, &m), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_plan_region_memory(plan, 2, 0, &m), NPU_ERR_RANGE);
    rig_end(&r);
}

/* ---- execs, programs ---------------------------------------------------------------------------------------------- */

static void test_num_execs(void)
{
    NPU_ITEM("F27");
    for (uint32_t execs = 1; execs <= 3; execs++) {
        npu_sim_desc desc = device(0);
        rig r = rig_start(&desc, 1);
        npu_graph *g = r.graph;
        npu_exec *more[3] = { NULL, NULL, NULL };
        build_chain(g, 400, true);
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        npu_region_memory m;
        NPU_CHECK_STATUS(npu_plan_region_memory(r.plan, 0, 0, &m), NPU_OK);
        uint64_t arena = required(r.plan, 0, 0) - m.weights, slack = r.backends[0]->regions->slack;
        desc = device(m.weights + slack + execs * (arena - slack));
        rig small = rig_start(&desc, 1);
        npu_graph *own = small.graph;
        small.graph = g;
        small.desc.num_execs = execs;
        NPU_CHECK_STATUS(rig_plan(&small), NPU_OK);
        NPU_CHECK_EQ(ops_on(small.plan, 0), 4);
        NPU_CHECK_STATUS(npu_program_create(&small.program, small.plan, &small.diag), NPU_OK);
        for (uint32_t i = 0; i < execs; i++) {
            NPU_CHECK_STATUS(npu_exec_create(&more[i], small.program, NULL, &small.diag), NPU_OK);
        }
        npu_exec *last = NULL;
        NPU_CHECK_STATUS(npu_exec_create(&last, small.program, NULL, &small.diag), NPU_ERR_NO_MEMORY);
        NPU_CHECK_THAT(strstr(small.diag.message, "sim: ") && strstr(small.diag.message, " bytes of device for activations") &&
                           strstr(small.diag.message, "largest: ") && strstr(small.diag.message, " 1600"),
                       "'%s'", small.diag.message);
        for (uint32_t i = 0; i < execs; i++) {
            npu_exec_destroy(more[i]);
        }
        small.graph = own;
        rig_end(&small);
        rig_end(&r);
    }
}

/* A device with less memory than it says: the next plan takes less, as where compile refuses. */
static void test_less_than_stated(void)
{
    NPU_ITEM("F27");
    for (uint64_t capacity = 9000; capacity >= 500; capacity -= 500) {
        npu_sim_desc desc = device(capacity);
        desc.hides_capacity = true;
        rig r = rig_start(&desc, 1);
        npu_graph *g = r.graph;
        npu_value y = npu_input(g, "x", F32(1, 20));
        for (int i = 0; i < 8; i++) {
            y = npu_linear(g, y, W(20, 20), (npu_value){ 0 });
        }
        npu_output(g, "y", y);
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_EQ(ops_on(r.plan, 0), 8);
        NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
        uint32_t stay = ops_on(npu_program_plan(r.program), 0);
        NPU_CHECK_THAT(stay < 8 && stay * 1600 <= capacity, "%u ops stay in %u bytes", (unsigned)stay, (unsigned)capacity);
        NPU_CHECK(capacity < 4000 || stay > 0);
        rig_end(&r);
    }
}

/* What is said to be largest lies in the buffer that there was no memory for. */
static void test_largest(void)
{
    static const struct { uint64_t capacity; const char *words, *other; } rows[] = {
        { 1000, "bytes of device for weights: out of memory; largest: 'w' 1600", "'first'" },
        { 2200, "bytes of device for activations: out of memory; largest: 'x' 800, 'first' 800", "'w'" },
    };
    static const float w[400] = { 1 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_sim_desc desc = device(rows[i].capacity);
        desc.hides_capacity = true;
        rig r = rig_start(&desc, 1);
        npu_value first = npu_relu(r.graph, npu_input(r.graph, "x", F32(1, 200)));
        npu_value_set_name(r.graph, first, "first");
        npu_output(r.graph, "y", npu_linear(r.graph, first, npu_param(r.graph, "w", F32(2, 200)), (npu_value){ 0 }));
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "w", w, sizeof w), NPU_OK);
        r.desc.num_backends = 1;
        NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_NO_MEMORY);
        NPU_CHECK_THAT(strstr(r.diag.message, rows[i].words) && !strstr(r.diag.message, rows[i].other), "'%s'",
                       r.diag.message);
        rig_end(&r);
    }
}

/* Weights that do not fit stream: all ops stay on the device, in several groups, and results keep their bits. */
static void test_streamed_weights(void)
{
    NPU_ITEM("F27");
    enum { LAYERS = 12, SIDE = 20, ROW = SIDE * SIDE * 4 };
    static float x[SIDE], expected[SIDE], y[SIDE];
    fill(x, SIDE, 2);
    for (uint64_t capacity = 40000; capacity >= 3000; capacity -= 2500) {
        npu_sim_desc desc = device(capacity);
        npu_memory m;
        rig r = rig_start(&desc, 1);
        npu_graph *g = r.graph;
        npu_value v = npu_input(g, "x", F32(1, SIDE));
        for (int i = 0; i < LAYERS; i++) {
            v = npu_tanh(g, npu_linear(g, v, W(SIDE, SIDE), (npu_value){ 0 }));
        }
        npu_output(g, "y", v);
        r.desc.stream_weights = true;
        for (int overlap = 0; overlap < 2; overlap++) {
            r.exec_desc.overlap = overlap != 0;
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            const npu_plan *plan = npu_program_plan(r.program);
            NPU_CHECK_STATUS(npu_plan_memory(plan, 0, &m), NPU_OK);
            NPU_CHECK_THAT(ops_on(plan, 0) == 2 * LAYERS && m.required <= capacity, "capacity %u: %u ops stay, %u bytes",
                           (unsigned)capacity, (unsigned)ops_on(plan, 0), (unsigned)m.required);
            NPU_CHECK(capacity >= 20000 ? m.streamed == 0 : m.streamed >= ROW);
            NPU_CHECK(m.streamed + m.weights >= LAYERS * ROW);
            oracle_check(plan, 0);
            npu_text text = npu_text_init(NULL);
            npu_plan_print_memory(plan, &text);
            NPU_CHECK(!m.streamed == !strstr(text.data, "bytes of weights are uploaded in every run"));
            npu_text_free(&text);
            for (int run = 0; run < 3; run++) {
                uint64_t before = npu_sim_count(r.sims[0]).bytes_up;
                npu_test_input(r.exec, "x", x, sizeof x);
                NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y, sizeof y), NPU_OK);
                NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
                NPU_CHECK_EQ(npu_sim_count(r.sims[0]).bytes_up - before, m.streamed + sizeof x);
                if (capacity == 40000 && !overlap && run == 0) {
                    memcpy(expected, y, sizeof y);
                }
                NPU_CHECK_BYTES(y, expected, sizeof y);
            }
            npu_status status = NPU_ERR_BACKEND;
            for (uint32_t n = 1; status; n++) { /* the run after one that failed uploads all of them again */
                npu_sim_fail(r.sims[0], NPU_SIM_UPLOAD, n, NPU_ERR_BACKEND);
                status = npu_exec_run(r.exec);
                npu_sim_fail(r.sims[0], NPU_SIM_UPLOAD, 0, NPU_OK);
                uint64_t before = npu_sim_count(r.sims[0]).bytes_up;
                NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
                NPU_CHECK_EQ(npu_sim_count(r.sims[0]).bytes_up - before, m.streamed + sizeof x);
                NPU_CHECK_BYTES(y, expected, sizeof y);
            }
            rig_unmake(&r);
        }
        rig_end(&r);
    }
}

/* Scratch is known after compile only: then ops leave. */
static void test_scratch_after_compile(void)
{
    NPU_ITEM("F27");
    npu_sim_desc desc = device(4096);
    desc.scratch = 3000;
    rig r = rig_start(&desc, 1);
    build_chain(r.graph, 200, false);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(ops_on(r.plan, 0), 3);
    NPU_CHECK_EQ(ops_on(npu_program_plan(r.program), 0), 0);
    check_chain(&r, 200);
    rig_unmake(&r);
    r.desc.num_backends = 1; /* nowhere to go */
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_BUDGET);
    NPU_CHECK_THAT(strstr(r.diag.message, "(scratch) 3000"), "'%s'", r.diag.message);
    rig_end(&r);
}

/* An op's scratch is room for others when it has run: the bound is that of the fullest op, not the sum of the fullest
   two. */
static void test_scratch_of_ops(void)
{
    NPU_ITEM("F27");
    for (int inner = 0; inner < 2; inner++) {
        npu_sim_desc desc = device(0);
        npu_memory m;
        desc.alignment = 64;
        desc.op_scratch = 20000;
        desc.worker_scratch = 500;
        desc.plans_inner = inner != 0;
        rig r = rig_start(&desc, 1);
        npu_graph *g = r.graph;
        npu_value x = npu_relu(g, npu_input(g, "x", F32(64)));
        npu_value y = npu_sum(g, npu_expand(g, npu_reshape(g, x, DIMS(64, 1), 2), DIMS(64, 100), 2), NULL, 0, false);
        npu_output(g, "y", npu_neg(g, y));
        r.desc.num_workers = 3;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
        uint64_t one = 20032 + 3 * 512, ops = npu_graph_num_ops(g);
        NPU_CHECK_EQ(m.scratch, inner ? ops * one : one);
        NPU_CHECK_THAT(inner || (m.values_bound >= 25600 && m.lower_bound >= m.values_bound && m.lower_bound <= one + 2 * 25600 &&
                                 m.activations == m.lower_bound),
                       "values %llu, bound %llu, planned %llu", (unsigned long long)m.values_bound,
                       (unsigned long long)m.lower_bound, (unsigned long long)m.activations);
        oracle_check(npu_program_plan(r.program), 0);
        float in[64] = { 1, 2 }, out[1] = { 0 };
        npu_test_input(r.exec, "x", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", out, sizeof out), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_NEAR(out[0], -300, 0);
        npu_exec *more = NULL;
        npu_parallel *threads = NULL;
        npu_threads_desc four = { .width = 4 };
        npu_exec_desc exec_desc;
        memset(&exec_desc, 0, sizeof exec_desc);
        NPU_CHECK_STATUS(npu_threads_create(&threads, &four), NPU_OK);
        exec_desc.parallel = threads;
        NPU_CHECK_STATUS(npu_exec_create(&more, r.program, &exec_desc, &r.diag), NPU_ERR_INVALID_ARGUMENT);
        NPU_CHECK_THAT(strstr(r.diag.message, "4 threads") && strstr(r.diag.message, "for 3: set num_workers"), "'%s'",
                       r.diag.message);
        npu_threads_destroy(threads);
        rig_end(&r);
    }
}

/* Kernels of the CPU that need much at different times. */
static npu_status much_prepare(npu_prepare *p)
{
    p->workspace = 40000;
    return NPU_OK;
}

static npu_status much_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)part, (void)parts;
    memset(l->workspace, 0xff, 40000);
    for (int64_t i = 0; i < l->in[0].dims[0]; i++) {
        ((float *)l->y[0])[i] = -((const float *)l->x[0])[i];
    }
    return NPU_OK;
}

static void test_scratch_of_kernels(void)
{
    static const npu_kernel kernels[] = {
        { .kind = NPU_ATEN_NEG, .variant = "plain", .prepare = much_prepare, .launch = much_launch }
    };
    const npu_kernel_table table = NPU_KERNEL_TABLE(kernels);
    npu_ref_desc desc;
    npu_backend *cpu = NULL;
    npu_memory m;
    memset(&desc, 0, sizeof desc);
    desc.tables = &table;
    desc.num_tables = 1;
    desc.with_built_in = true;
    NPU_ITEM("F27");
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    r.backends[0] = cpu;
    npu_value y = npu_neg(g, npu_input(g, "x", F32(100))); /* much scratch, small values */
    y = npu_cumsum(g, npu_cat(g, (npu_value[]){ y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y, y }, 20, 0), 0);
    npu_output(g, "y", npu_neg(g, npu_slice(g, npu_cumsum(g, y, 0), 0, 1900, 2000, 1)));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
    NPU_CHECK_THAT(m.scratch >= 40000 && m.scratch < 42000 && m.values_bound >= 16000 && m.activations == m.lower_bound &&
                       m.activations < 40000 + 8000 + 2000,
                   "scratch %llu, values %llu, planned %llu", (unsigned long long)m.scratch,
                   (unsigned long long)m.values_bound, (unsigned long long)m.activations);
    float in[100], out[100];
    fill(in, 100, 5);
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", out, sizeof out), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    double sum = 0, twice = 0;
    for (int i = 0; i < 1901; i++) {
        sum -= (double)in[i % 100];
        twice += sum;
    }
    NPU_CHECK_NEAR(out[0], -twice, 1e-2 * (1 + fabs(twice)));
    rig_end(&r);
    npu_ref_destroy(cpu);
}

/* A kernel in 24 parts, each of which has 3000 bytes of its thread's to itself. */
static npu_status own_prepare(npu_prepare *p)
{
    p->workspace = 100;
    p->worker_workspace = 3000;
    p->parts = 24;
    return NPU_OK;
}

static npu_status own_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    unsigned char *mine = (unsigned char *)l->worker_workspace;
    uintptr_t at = (uintptr_t)mine, shared = (uintptr_t)l->workspace;
    bool alone = at % 64 == 0 && (at >= shared + 100 || at + 3000 <= shared);
    int64_t n = l->in[0].dims[0], end = n * (part + 1) / parts;
    memset(mine, (int)part + 1, 3000);
    for (int64_t i = n * part / parts; i < end; i++) {
        ((float *)l->y[0])[i] = -((const float *)l->x[0])[i];
    }
    for (int i = 0; i < 3000; i++) {
        alone = alone && mine[i] == part + 1;
    }
    return alone ? NPU_OK : NPU_ERR_BACKEND;
}

/* An exec with as many threads as were planned, fewer or more: each has its memory, which the plan has for those that it
   was told of. */
static void test_scratch_of_workers(void)
{
    static const npu_kernel kernels[] = {
        { .kind = NPU_ATEN_NEG, .variant = "plain", .prepare = own_prepare, .launch = own_launch }
    };
    const npu_kernel_table table = NPU_KERNEL_TABLE(kernels);
    npu_ref_desc desc;
    npu_backend *cpu = NULL;
    npu_memory m;
    float in[5000], out[5000];
    memset(&desc, 0, sizeof desc);
    desc.tables = &table;
    desc.num_tables = 1;
    desc.with_built_in = true;
    NPU_ITEM("F27");
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
    fill(in, 5000, 5);
    for (uint32_t i = 0; i < 6; i++) {
        rig r = rig_start(NULL, 0);
        uint32_t planned = i % 3, width = i < 3 ? 2 : 5; /* 0 = 1 */
        npu_threads_desc how = { .width = width };
        npu_exec_desc exec_desc = { 0 };
        npu_exec *exec = NULL;
        npu_parallel *threads = NULL;
        r.backends[0] = cpu;
        r.desc.num_workers = planned;
        npu_value y = npu_neg(r.graph, npu_input(r.graph, "x", F32(5000)));
        npu_output(r.graph, "y", npu_neg(r.graph, npu_cumsum(r.graph, y, 0)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
        NPU_CHECK_THAT(m.scratch >= 100 + (planned + !planned) * 3000 && m.scratch < 1500 + (planned + !planned) * 3008,
                       "%u planned: %llu", (unsigned)planned, (unsigned long long)m.scratch);
        NPU_CHECK_STATUS(npu_threads_create(&threads, &how), NPU_OK);
        exec_desc.parallel = threads;
        NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &exec_desc, &r.diag), NPU_OK);
        npu_test_input(exec, "x", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_set_output(exec, "y", out, sizeof out), NPU_OK);
        for (int k = 0; k < 20; k++) {
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        }
        NPU_CHECK_NEAR(out[1], in[0] + in[1], 1e-6);
        npu_exec_destroy(exec);
        npu_threads_destroy(threads);
        rig_end(&r);
    }
    npu_ref_destroy(cpu);
}

static void test_cpu_capacity(void)
{
    NPU_ITEM("F27");
    npu_graph *g = npu_graph_create(NULL);
    npu_backend *cpu = NULL;
    npu_diag diag;
    npu_exec *exec = NULL;
    build_chain(g, 1000, false);
    for (uint64_t capacity = 1000; capacity <= 100000; capacity += 99000) {
        npu_ref_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.capacity = capacity;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        NPU_CHECK_EQ(cpu->regions->capacity, capacity);
        const npu_backend *backends[] = { cpu };
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, backends, 1, &diag), capacity == 1000 ? NPU_ERR_BUDGET : NPU_OK);
        NPU_CHECK(capacity != 1000 || strstr(diag.message, "cpu: host needs"));
        npu_exec_destroy(exec);
        exec = NULL;
        npu_ref_destroy(cpu);
    }
    npu_graph_destroy(g);
}

/* Weights of the CPU count nowhere, neither while planning nor when a plan is checked; of a device with two regions one
   that nothing is planned in is not asked for, which would take its slack. */
static void test_counted_alike(void)
{
    static const float weight[64][64];
    npu_graph *g = npu_graph_create(NULL);
    npu_diag diag = { 0 };
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, 64 }));
    npu_value w = npu_constant_ref(g, "w", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 64, 64 }), weight);
    npu_output(g, "y", npu_relu(g, npu_linear(g, npu_relu(g, x), w, (npu_value){ 0 })));
    for (int is_cpu = 0; is_cpu < 2; is_cpu++) {
        npu_ref_desc of_cpu;
        npu_backend *cpu = NULL;
        npu_sim_desc of_sim;
        npu_sim *sim = NULL;
        npu_plan *plan = NULL;
        npu_program *program = NULL;
        npu_exec *exec = NULL;
        npu_plan_desc desc;
        memset(&of_cpu, 0, sizeof of_cpu);
        memset(&of_sim, 0, sizeof of_sim);
        memset(&desc, 0, sizeof desc);
        of_cpu.capacity = 4096; /* the weight alone is larger */
        of_sim.on_chip = 65536;
        of_sim.keeps_weights = true;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &of_cpu), NPU_OK);
        NPU_CHECK_STATUS(npu_sim_create(&sim, &of_sim), NPU_OK);
        const npu_backend *backends[] = { npu_sim_backend(sim), cpu };
        desc.backends = backends + is_cpu;
        desc.num_backends = is_cpu ? 1 : 2;
        NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, &diag), NPU_OK);
        NPU_CHECK_THAT(npu_plan_validate(plan, &diag) == NPU_OK, "%s", diag.message);
        npu_plan_destroy(plan);
        if (!is_cpu) {
            NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, &diag), NPU_OK);
            NPU_CHECK_STATUS(npu_program_create(&program, plan, &diag), NPU_OK);
            uint64_t before = npu_sim_count(sim).live_buffers;
            NPU_CHECK_STATUS(npu_exec_create(&exec, program, NULL, &diag), NPU_OK);
            NPU_CHECK_EQ(npu_sim_count(sim).live_buffers - before, 1);
            npu_exec_destroy(exec);
            npu_program_destroy(program);
            npu_plan_destroy(plan);
        }
        npu_sim_destroy(sim);
        npu_ref_destroy(cpu);
    }
    npu_graph_destroy(g);
}

/* Some ops with views among them, on two small devices and a CPU that has too little for the rest. */
static npu_status plan_at_random(uint32_t seed, uint64_t *capacity, npu_diag *diag)
{
    static const char *const deny[2][2] = { { "aten.relu.default", "aten.reshape.default" }, { "aten.neg.default", "aten.mul.Tensor" } };
    static const float weight[16][16];
    npu_rates fast[2];
    const npu_rates *rates[3] = { &fast[0], &fast[1], NULL };
    npu_sim_desc sims[2];
    npu_ref_desc of_cpu;
    npu_backend *cpu = NULL;
    npu_value made[40];
    uint32_t num = 2;
    memset(sims, 0, sizeof sims);
    memset(fast, 0, sizeof fast);
    memset(&of_cpu, 0, sizeof of_cpu);
#define RANDOM(n) ((seed = seed * 1664525u + 1013904223u) >> 8) % (n)
    for (int i = 0; i < 2; i++) {
        sims[i].deny = deny[i];
        sims[i].num_deny = RANDOM(3);
        sims[i].capacity = 64 * (1 + RANDOM(100));
        fast[i].launch_ns = RANDOM(2000);
        fast[i].transfer_ns = RANDOM(500);
        fast[i].num_rows = 1;
        fast[i].rows[0].fixed_ns = 10 + RANDOM(900);
    }
    rig r = rig_start(sims, 2);
    npu_spec spec = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 8, 16 });
    npu_value w = npu_constant_ref(r.graph, "w", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 16, 16 }), weight);
    made[0] = npu_input(r.graph, "x", spec);
    made[1] = npu_relu(r.graph, made[0]);
    for (uint32_t i = 8 + RANDOM(24); i > 0; i--) {
        npu_value a = made[num - 1 - RANDOM(num < 4 ? num : 4)], b = made[RANDOM(num)];
        uint32_t which = RANDOM(5);
        npu_value v = npu_reshape(r.graph, a, (int64_t[]){ 4, 32 }, 2);
        made[num++] = which == 0 ? npu_neg(r.graph, a) : which == 1 ? npu_mul(r.graph, a, b)
                    : which == 2 ? npu_linear(r.graph, a, w, (npu_value){ 0 })
                    : which == 3 ? npu_reshape(r.graph, npu_relu(r.graph, v), (int64_t[]){ 8, 16 }, 2) : npu_add(r.graph, a, b);
    }
    npu_output(r.graph, "y", made[num - 1]);
    npu_output(r.graph, "z", made[num / 2]);
    r.desc.rates = RANDOM(2) ? rates : NULL;
    r.desc.min_group_ops = RANDOM(3);
    r.desc.stream_weights = RANDOM(2);
    of_cpu.capacity = *capacity ? *capacity : 64 * (1 + RANDOM(40));
#undef RANDOM
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &of_cpu), NPU_OK);
    r.backends[2] = cpu;
    npu_status status = rig_plan(&r);
    *diag = r.diag;
    *capacity = of_cpu.capacity;
    rig_end(&r);
    npu_ref_destroy(cpu);
    return status;
}

/* The capacity that a message names does, and a byte less does not. */
static void test_capacity_that_would_do(void)
{
    static const struct { uint32_t first, num; } rows[] = { { 0, 20 }, { 1000, 100 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t seed = rows[i].first; seed < rows[i].first + rows[i].num; seed++) {
            npu_diag diag, other;
            uint64_t capacity = 0, less;
            if (plan_at_random(seed, &capacity, &diag) != NPU_ERR_BUDGET) {
                continue;
            }
            const char *words = strstr(diag.message, "a capacity of ");
            uint64_t named = words ? (uint64_t)strtoull(words + 14, NULL, 10) : 0;
            less = named - 1;
            NPU_CHECK_THAT(named > capacity && plan_at_random(seed, &named, &other) == NPU_OK, "seed %u: %s, then: %s",
                           (unsigned)seed, diag.message, other.message);
            NPU_CHECK_THAT(plan_at_random(seed, &less, &other) == NPU_ERR_BUDGET, "seed %u: less does, too", (unsigned)seed);
        }
    }
}

/* Of a graph with child graphs it is what all of them need, whichever it was that had no room. */
static void test_capacity_of_child_graphs(void)
{
    enum { IN_CHILD, IN_PARENT, NUM_CASES };
    static const char *const first[NUM_CASES] = { "y = aten.relu.default(x)\n", "y = aten.cat.default([x, x, x, x, x, x, x, x], 0)\n" };
    for (int i = 0; i < NUM_CASES; i++) {
        char text[1024];
        npu_graph *g = NULL;
        npu_diag diag;
        snprintf(text, sizeof text,
                 "graph main\n"
                 "child more\ninput v : f32[%d]\ns = aten.sum.default(v)\nc = aten.lt.Scalar(s, 9)\noutput c = c\nend\n"
                 "child next\ninput v : f32[%d]\na = aten.exp.default(v)\nb = aten.sin.default(v)\nd = aten.mul.Tensor(a, b)\n"
                 "w = aten.add.Tensor(d, v)\noutput w = w\nend\n"
                 "input x : f32[500]\n%sz = aten.neg.default(y)\n"
                 "r = npu.while([z], [], condition=graph 0, body=graph 1)\nq = aten.sub.Tensor(r, y)\noutput q = q\n",
                 i == IN_PARENT ? 4000 : 500, i == IN_PARENT ? 4000 : 500, first[i]);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, &diag), NPU_OK);
        for (uint64_t capacity = 64; capacity < 100000; capacity *= 6) {
            npu_status status = plan_alone(g, capacity, 1, &diag);
            if (status) {
                NPU_CHECK_STATUS(status, NPU_ERR_BUDGET);
                uint64_t named = told_capacity(&diag);
                NPU_CHECK(named > capacity);
                NPU_CHECK_THAT(plan_alone(g, named, 1, &diag) == NPU_OK, "case %d: with %llu: %s", i, (unsigned long long)named, diag.message);
                NPU_CHECK_STATUS(plan_alone(g, named - 1, 1, &diag), NPU_ERR_BUDGET);
            }
        }
        npu_graph_destroy(g);
    }
}

int main(void)
{
    NPU_RUN(test_capacity_of_child_graphs);
    NPU_RUN(test_too_small_for_anything);
    NPU_RUN(test_two_too_small);
    NPU_RUN(test_smallest_capacity);
    NPU_RUN(test_at_the_bound);
    NPU_RUN(test_shrinking);
    NPU_RUN(test_regions_by_benefit);
    NPU_RUN(test_num_execs);
    NPU_RUN(test_less_than_stated);
    NPU_RUN(test_largest);
    NPU_RUN(test_streamed_weights);
    NPU_RUN(test_scratch_after_compile);
    NPU_RUN(test_scratch_of_ops);
    NPU_RUN(test_scratch_of_kernels);
    NPU_RUN(test_scratch_of_workers);
    NPU_RUN(test_cpu_capacity);
    NPU_RUN(test_counted_alike);
    NPU_RUN(test_capacity_that_would_do);
    return npu_test_done();
}
