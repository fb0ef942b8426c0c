/* The executor: feeds and results by name and index, states, cancelling, profiles, threads, shared programs, and that
   a run allocates nothing. */
#include "rig.h"
#include "buffers.h"
#include <pthread.h>

static rig cpu_rig(void) { return rig_start(NULL, 0); }

/* ---- quick starts ----------------------------------------------------------------------------------------------- */

/* Model, plan, program, exec, run: the five calls. */
static void test_quick_start(void)
{
    NPU_ITEM("S1.33");
    NPU_ITEM("S2.1");
    static const float w[6] = { 1, 2, 3, 4, 5, 6 }, b[2] = { -10, 1 };
    npu_model *m = npu_model_create(&(npu_model_desc){ .dialect = NPU_DIALECT_AICF });
    npu_layer_linear fc = npu_layer_linear_init("fc", 3, 2);
    npu_layer_relu act = npu_layer_relu_init("act");
    npu_value y = npu_model_add(m, &fc.base, npu_model_input(m, "x", F32(1, 3)));
    npu_model_output(m, "y", npu_model_add(m, &act.base, y));
    npu_graph *g = npu_model_graph(m);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.W", w, sizeof w), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.b", b, sizeof b), NPU_OK);
    npu_sim *sim = NULL;
    npu_sim_create(&sim, NULL);
    const npu_backend *backends[] = { npu_sim_backend(sim), npu_ref_backend() };
    npu_exec *exec = NULL;
    npu_diag diag;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, backends, 2, &diag), NPU_OK);
    float x[3] = { 1, 0, 1 }, out[2];
    NPU_CHECK_STATUS(npu_test_input(exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(exec, "y", out, sizeof out), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    NPU_CHECK_NEAR(out[0], 0, 0);
    NPU_CHECK_NEAR(out[1], 11, 0);
    NPU_CHECK_STR(npu_graph_name(npu_plan_graph(npu_program_plan(npu_exec_program(exec)))), "main");
    npu_exec_destroy(exec);
    npu_sim_destroy(sim);
    npu_model_destroy(m);
}

/* A parameter that no op reads has data all the same where it is an output, or what a state will be. */
static void test_weights_without_ops(void)
{
    NPU_ITEM("F60");
    static const char *const texts[] = {
        "graph g\nparam w : f32[2]\noutput y = w\n",
        "graph g\nparam w : f32[2]\nstate s : f32[2]\nupdate s = w\noutput y = s\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static const float w[2] = { 1, 2 };
        rig r = rig_start(NULL, 0);
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, texts[i], strlen(texts[i]), npu_test_graph_desc(), &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_check_weights(r.graph, NULL, 0, NULL, NULL), NPU_ERR_MISSING_WEIGHT);
        NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_MISSING_WEIGHT);
        rig_unmake(&r);
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "w", w, sizeof w), NPU_OK);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const float *y = (const float *)npu_exec_output(r.exec, 0, NULL);
        NPU_CHECK(y && y[0] == 1 && y[1] == 2);
        rig_end(&r);
    }
}

/* Weights without elements need no data, and kernels look for none. */
static void test_empty_weights(void)
{
    NPU_ITEM("F11");
    static const char text[] =
        "graph g\nparam a : f32[2,3,0]\nparam b : f32[2,0,4]\nparam c : bool[0,1,3]\nparam d : bool[0,4,3]\n"
        "param e : f32[3,4]\ny = aten.baddbmm.default(e, a, b)\nz = aten.lt.Tensor(c, d)\noutput y = y\noutput z = z\n";
    static const float e[12] = { 1, 2, 3 };
    size_t size = 1;
    rig r = rig_start(NULL, 0);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, npu_test_graph_desc(), &r.diag), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "e", e, sizeof e), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const float *y = (const float *)npu_exec_output(r.exec, 0, &size);
    NPU_CHECK(y && memcmp(y, e, sizeof e) == 0 && memcmp(y + 12, e, sizeof e) == 0);
    npu_exec_output(r.exec, 1, &size);
    NPU_CHECK_EQ(size, 0);
    rig_end(&r);
}

/* The same from text: parse, plan, program, weights, run. */
static void test_quick_start_from_text(void)
{
    NPU_ITEM("S2.3");
    NPU_ITEM("R1.12");
    static const char text[] =
        "npu_ir 1\n"
        "graph main\n"
        "input x : f32[1,3]\n"
        "param fc.W : f32[2,3]\n"
        "%3 = aicf.gemm(a=x, b=fc.W, transB=true) : f32[1,2]\n"
        "output y = %3\n";
    static const float w[6] = { 1, 2, 3, 4, 5, 6 };
    rig r = rig_start(NULL, 1);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, npu_test_graph_desc(), &r.diag), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r), NPU_ERR_MISSING_WEIGHT);
    NPU_CHECK(strstr(r.diag.message, "'fc.W'"));
    NPU_CHECK_EQ(r.diag.value, npu_graph_find(r.graph, "fc.W").id);
    rig_unmake(&r);
    NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "fc.W", w, sizeof w), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    float x[3] = { 1, 0, 1 };
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const float *y = npu_exec_output(r.exec, 0, NULL);
    NPU_CHECK(y && y[0] == 4 && y[1] == 10);
    rig_end(&r);
}

/* ---- feeds and results ------------------------------------------------------------------------------------------ */

static void build_two(npu_graph *g)
{
    npu_value a = npu_input(g, "a", F32(3)), b = npu_input(g, "b", F32(3));
    npu_output(g, "sum", npu_add(g, a, b));
    npu_output(g, "difference", npu_sub(g, a, b));
}

static void test_bindings(void)
{
    NPU_ITEM("S1.28");
    NPU_ITEM("S2.32");
    NPU_ITEM("S2.35");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        float a[3] = { 1, 2, 3 }, b[3] = { 10, 20, 30 }, sum[3], difference[3];
        size_t size = 99;
        build_two(r.graph);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK(npu_exec_output(r.exec, 0, &size) == NULL); /* before the first run */
        NPU_CHECK_EQ(size, 0);
        NPU_CHECK_STATUS(npu_test_input_at(r.exec, 0, a, sizeof a), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_MISSING_FEED);
        NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "'b'"));
        NPU_CHECK(npu_exec_output(r.exec, 0, NULL) == NULL); /* nor after one that failed */
        NPU_CHECK_STATUS(npu_test_input_at(r.exec, 1, b, sizeof b), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output_at(r.exec, 1, difference, sizeof difference), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const float *own = npu_exec_find_output(r.exec, "sum", &size);
        NPU_CHECK_EQ(size, 12);
        NPU_CHECK(own && own[0] == 11 && own[2] == 33);
        NPU_CHECK(npu_exec_output(r.exec, 1, NULL) == difference && difference[2] == -27);
        NPU_CHECK(npu_exec_output(r.exec, 2, &size) == NULL && size == 0);
        NPU_CHECK(npu_exec_find_output(r.exec, "product", &size) == NULL);
        /* memory bound by name, changed in place, bound again */
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "sum", sum, sizeof sum), NPU_OK);
        a[0] = 5;
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK(sum[0] == 15 && difference[0] == -5 && own[0] == 11);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "b", a, sizeof a), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK(sum[0] == 10 && difference[1] == 0);
        rig_end(&r);
    }
}

static void run_serially(void *ctx, npu_task task, void *arg, uint32_t parts)
{
    (void)ctx;
    for (uint32_t i = 0; i < parts; i++) {
        task(arg, i, parts, 0);
    }
}

static void test_bad_bindings(void)
{
    rig r = cpu_rig();
    float x[4] = { 1, 2, 3, 4 };
    build_two(r.graph);
    NPU_ITEM("R0.9");
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "c", x, 12), NPU_ERR_NOT_FOUND);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "'c'"));
    NPU_CHECK_STATUS(npu_test_input(r.exec, NULL, x, 12), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_test_input_at(r.exec, 2, x, 12), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "a", x, 12), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_exec_set_output_at(r.exec, 2, x, 12), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, &(npu_array){ "a", F32(4), x }), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "f32[4] given, expected f32[3]"));
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "sum", x, 8), NPU_ERR_SHAPE);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "a", NULL, 12), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_MISSING_FEED); /* none of these was bound */
    npu_exec_desc bad = r.exec_desc;
    bad._canary = 1;
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &bad, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_exec_create(&exec, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_parallel serial = { sizeof serial, 1, NULL, run_serially };
    npu_exec_desc threads = { .parallel = &serial };
    threads.allocator = &(npu_allocator){ NULL, NULL }; /* zeros are the default one, as for all objects */
    NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &threads, NULL), NPU_OK);
    npu_exec_destroy(exec);
    serial.width = 0;
    NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &threads, &r.diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(strstr(r.diag.message, "width 0, expected at least 1"));
    serial = (npu_parallel){ sizeof serial, 1, NULL, NULL };
    NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &threads, &r.diag), NPU_ERR_INVALID_ARGUMENT);
    serial.size = 0;
    NPU_CHECK_STATUS(npu_exec_create(&exec, r.program, &threads, &r.diag), NPU_ERR_VERSION);
    npu_program *program = NULL;
    NPU_CHECK_STATUS(npu_program_create(&program, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_exec_destroy(NULL);
    npu_program_destroy(NULL);
    npu_plan_destroy(NULL);
    rig_end(&r);
}

/* Memory at odd addresses is copied, on the way in and on the way out; aligned memory again is used as it
   is. */
static void test_unaligned(void)
{
    NPU_ITEM("R2.16");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        char in[13 + 3], out[13 + 3];
        float a[3] = { 1, 2, 3 }, b[3] = { 10, 20, 30 }, sum[3], back[3];
        build_two(r.graph);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        char *odd_in = in + ((uintptr_t)in % 2 == 0), *odd_out = out + ((uintptr_t)out % 2 == 0);
        memcpy(odd_in, a, sizeof a);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "a", odd_in, 12), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "b", b, 12), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "sum", odd_out, 12), NPU_OK);
        for (int i = 0; i < 2; i++) {
            a[0] = (float)i;
            memcpy(odd_in, a, sizeof a); /* what lies there when it runs counts */
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            memcpy(back, odd_out, sizeof back);
            NPU_CHECK(back[0] == 10 + (float)i && back[2] == 33);
            NPU_CHECK(npu_exec_output(r.exec, 0, NULL) == odd_out);
        }
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "sum", sum, 12), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "a", b, 12), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK(sum[0] == 20 && sum[2] == 60);
        rig_end(&r);
    }
}

/* Outputs that are inputs, constants, states, views of inputs, or the same value twice; and nothing is
   written to inputs. */
static void test_odd_outputs(void)
{
    NPU_ITEM("S2.33");
    NPU_ITEM("S2.46");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        npu_graph *g = r.graph;
        static const float data[2] = { 7, 8 };
        npu_value x = npu_input(g, "x", F32(4, 2)), c = npu_constant(g, "c", F32(2), data), y = npu_relu(g, x);
        npu_op rows = npu_split(g, x, 1, 0);
        npu_output(g, "input", x);
        npu_output(g, "constant", c);
        npu_output(g, "once", y);
        npu_output(g, "twice", y);
        npu_output(g, "flat", npu_reshape(g, x, DIMS(8), 1));
        npu_output(g, "row", npu_op_result(g, rows, 2));
        npu_output(g, "inner", npu_neg(g, npu_op_result(g, rows, 3)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        float in[8] = { 1, -2, 3, -4, 5, -6, 7, -8 }, twice[8], copy[8], row[2];
        memcpy(copy, in, sizeof in);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", in, sizeof in), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "twice", twice, sizeof twice), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "row", row, sizeof row), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const float *input = npu_exec_find_output(r.exec, "input", NULL),
                    *constant = npu_exec_find_output(r.exec, "constant", NULL);
        const float *once = npu_exec_find_output(r.exec, "once", NULL),
                    *flat = npu_exec_find_output(r.exec, "flat", NULL);
        const float *inner = npu_exec_find_output(r.exec, "inner", NULL);
        NPU_CHECK(input != in && memcmp(input, copy, sizeof copy) == 0);
        NPU_CHECK(constant != data && constant[1] == 8);
        NPU_CHECK(once[4] == 5 && twice[4] == 5 && once[5] == 0 && twice[5] == 0);
        NPU_CHECK_BYTES(flat, copy, sizeof copy);
        NPU_CHECK(row[0] == 5 && row[1] == -6);
        NPU_CHECK(inner[0] == -7 && inner[1] == 8);
        NPU_CHECK_BYTES(in, copy, sizeof copy);
        rig_end(&r);
    }
}

/* Tensors without elements go through everything. */
static void test_empty_tensors(void)
{
    NPU_ITEM("R1.19");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        npu_graph *g = r.graph;
        npu_value e = npu_input(g, "e", F32(0, 3)), x = npu_input(g, "x", F32(2, 3));
        npu_output(g, "relu", npu_relu(g, e));
        npu_output(g, "cat", npu_cat(g, (npu_value[]){ npu_neg(g, e), x }, 2, 0));
        npu_output(g, "flat", npu_reshape(g, e, DIMS(0), 1));
        npu_arg args[] = { npu_arg_tensor("self", e), npu_arg_int("n", (int64_t)(SIZE_MAX / 8)) };
        npu_output(g, "wide", npu_op_result(g, npu_emit_name(g, "aten.fft_irfft", args, 2), 0)); /* no line of them */
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        float in[6] = { 1, 2, 3, 4, 5, 6 };
        size_t size = 9;
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", in, sizeof in), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK); /* nothing to bind for e */
        NPU_CHECK_STATUS(npu_test_input(r.exec, "e", NULL, 0), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK(memcmp(npu_exec_find_output(r.exec, "cat", &size), in, sizeof in) == 0 && size == sizeof in);
        NPU_CHECK(npu_exec_find_output(r.exec, "relu", &size) && size == 0);
        rig_end(&r);
    }
}

/* ---- state ------------------------------------------------------------------------------------------------------ */

/* a, b = b, a + x: the next contents are all read before any is written. s counts, k stays zero. */
static void test_states(void)
{
    NPU_ITEM("S1.37");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        npu_graph *g = r.graph;
        npu_value x = npu_input(g, "x", F32(2));
        npu_value a = npu_state(g, "a", F32(2)), b = npu_state(g, "b", F32(2)), k = npu_state(g, "k", F32(2));
        npu_value n = npu_state(g, "n", F32(2)), view = npu_reshape(g, b, DIMS(2), 1);
        NPU_CHECK_STATUS(npu_update(g, a, view), NPU_OK);
        NPU_CHECK_STATUS(npu_update(g, b, npu_add(g, a, x)), NPU_OK);
        NPU_CHECK_STATUS(npu_update(g, n, npu_add(g, n, npu_number(g, npu_scalar_int(1)))), NPU_OK);
        npu_output(g, "a", a);
        npu_output(g, "y", npu_add(g, b, k));
        npu_output(g, "n", npu_neg(g, n));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        float in[2] = { 1, 10 };
        static const float as[6] = { 0, 0, 1, 1, 2, 2 }, bs[6] = { 0, 1, 1, 2, 2, 3 };
        npu_test_input(r.exec, "x", in, sizeof in);
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < 6; i++) {
                NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
                const float *out_a = npu_exec_output(r.exec, 0, NULL), *out_y = npu_exec_output(r.exec, 1, NULL);
                const float *out_n = npu_exec_output(r.exec, 2, NULL);
                NPU_CHECK_NEAR(out_a[0], as[i], 0);
                NPU_CHECK_NEAR(out_y[1], bs[i] * 10, 0);
                NPU_CHECK_NEAR(out_n[0], -i, 0);
            }
            NPU_CHECK_STATUS(npu_exec_reset_state(r.exec), NPU_OK);
        }
        rig_end(&r);
    }
}

static void test_state_errors(void)
{
    rig r = cpu_rig();
    npu_value s = npu_state(r.graph, "s", F32(2)), x = npu_input(r.graph, "x", F32(2));
    NPU_CHECK_STATUS(npu_update(r.graph, s, x), NPU_OK);
    NPU_CHECK_STATUS(npu_update(r.graph, s, s), NPU_ERR_DUPLICATE);
    npu_graph_clear_error(r.graph);
    NPU_CHECK_STATUS(npu_update(r.graph, x, s), NPU_ERR_INVALID_ARGUMENT);
    npu_graph_clear_error(r.graph);
    npu_output(r.graph, "y", npu_add(r.graph, s, x));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    float in[2] = { 3, 4 };
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_MISSING_FEED); /* leaves the state alone */
    npu_test_input(r.exec, "x", in, sizeof in);
    for (int i = 1; i <= 2; i++) {
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[1], i == 1 ? 4 : 8, 0);
    }
    rig_end(&r);
}

/* ---- stopping, and going on ------------------------------------------------------------------------------------- */

typedef struct watch { uint32_t calls, stop_at; } watch;

static bool poll_step(void *ctx, uint32_t step)
{
    watch *w = ctx;
    NPU_CHECK_EQ(step, w->calls % 5);
    return ++w->calls != w->stop_at;
}

static rig example_rig(const npu_sim_desc *from)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc = from ? *from : desc;
    desc.deny = deny_cat;
    desc.num_deny = 1;
    rig r = rig_start(&desc, 1);
    build_example(r.graph);
    return r;
}

static void test_cancel(void)
{
    NPU_ITEM("S1.21");
    rig r = example_rig(NULL);
    watch w = { 0, 3 };
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, 1);
    r.exec_desc.poll = poll_step;
    r.exec_desc.poll_ctx = &w;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_CANCELLED);
    NPU_CHECK_STR(npu_exec_diag(r.exec)->message, "cancelled before step 2 of 5");
    NPU_CHECK_EQ(w.calls, 3);
    w.calls = 0;
    w.stop_at = 0;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_EQ(w.calls, 5);
    NPU_CHECK_STATUS(npu_exec_diag(r.exec)->status, NPU_ERR_CANCELLED); /* of the last call that failed */
    rig_end(&r);
}

static void test_timeout(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.async = true;
    rig r = example_rig(&desc);
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, 1);
    r.exec_desc.timeout_ns = 20000000; /* 20 ms */
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_sim_hang(r.sims[0], 2, 60000000);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_TIMEOUT);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, ": timeout_ns is "));
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "step 4"));
    r.exec_desc.timeout_ns = 0; /* the default is enough */
    npu_exec_destroy(r.exec);
    NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, &r.exec_desc, NULL), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_sim_hang(r.sims[0], 1, 60000000);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    rig_end(&r);
}

/* A kernel that fails names its op; what came before and after still works. */
static void test_kernel_errors(void)
{
    NPU_ITEM("S0.34");
    rig r = cpu_rig();
    npu_graph *g = r.graph;
    npu_value i = npu_input(g, "i", npu_spec_tensor(NPU_I64, 1, DIMS(2)));
    npu_value table = W(4, 3);
    npu_output(g, "y", npu_relu(g, npu_embedding(g, table, i)));
    npu_output(g, "z", npu_neg(g, table));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    int64_t bad[2][2] = { { 0, 4 }, { -1, 2 } }, good[2] = { 3, 0 };
    for (int k = 0; k < 2; k++) {
        npu_test_input(r.exec, "i", bad[k], sizeof bad[k]);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_RANGE);
        NPU_CHECK_EQ(npu_exec_diag(r.exec)->op, 1);
        NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "aten.embedding.default"));
        npu_test_input(r.exec, "i", good, sizeof good);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK(npu_exec_output(r.exec, 0, NULL) != NULL);
    }
    rig_end(&r);
}

/* ---- profile ---------------------------------------------------------------------------------------------------- */

static uint64_t fake_ns;

static uint64_t fake_clock(void) { return fake_ns += 10; }

/* The default clock counts less than microseconds, in a strict C99 build, too: operators on small tensors take less. */
static void test_default_clock(void)
{
#ifdef __linux__
    rig r = example_rig(NULL);
    float x[EXAMPLE_IN];
    bool is_fine = false;
    fill(x, EXAMPLE_IN, 1);
    r.exec_desc.profile = true;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    for (int run = 0; run < 100 && !is_fine; run++) {
        uint32_t n = 0;
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const npu_profile_step *p = npu_exec_profile(r.exec, &n);
        for (uint32_t i = 0; i < n; i++) {
            is_fine = is_fine || (p[i].end_ns - p[i].begin_ns) % 1000 != 0;
        }
    }
    NPU_CHECK(is_fine);
    rig_end(&r);
#endif
}

static void test_profile(void)
{
    rig r = example_rig(NULL);
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, 1);
    r.exec_desc.profile = true;
    r.exec_desc.clock = fake_clock;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    for (int run = 0; run < 3; run++) {
        uint32_t n = 0, ops = 0, steps = 0, borders = 0;
        uint64_t seen_ops = 0, last_end = 0;
        fake_ns = run == 1 ? 1000000 : fake_ns;
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const npu_profile_step *p = npu_exec_profile(r.exec, &n);
        for (uint32_t i = 0; i < n; i++) {
            NPU_CHECK(p[i].begin_ns <= p[i].end_ns && p[i].end_ns < 10000);
            if (p[i].op) {
                ops++;
                seen_ops |= (uint64_t)1 << p[i].op;
            } else {
                steps += p[i].step != NPU_NO_INDEX;
                borders += p[i].step == NPU_NO_INDEX;
                NPU_CHECK(p[i].begin_ns >= last_end); /* one after the other */
                last_end = p[i].end_ns;
            }
        }
        NPU_CHECK_EQ(ops, 7);
        NPU_CHECK_EQ(seen_ops, 0xfe);
        NPU_CHECK_EQ(steps, 5);
        NPU_CHECK_EQ(borders, 2);
    }
    rig_end(&r);
    r = cpu_rig(); /* without profile there is none */
    uint32_t n = 1;
    build_two(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_profile(r.exec, &n);
    NPU_CHECK_EQ(n, 0);
    rig_end(&r);
}

/* Skips one JSON value; NULL when it is none. Good enough to find what a viewer would choke on. */
static const char *json_value(const char *p, int depth);

static const char *json_space(const char *p)
{
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}

static const char *json_string(const char *p)
{
    if (*p++ != '"') {
        return NULL;
    }
    while (*p && *p != '"' && (unsigned char)*p >= 32) {
        p += *p == '\\' ? 2 : 1;
    }
    return *p == '"' ? p + 1 : NULL;
}

static const char *json_members(const char *p, char end, int depth)
{
    p = json_space(p + 1);
    while (p && *p != end) {
        if (end == '}') {
            p = json_string(p);
            p = p ? json_space(p) : NULL;
            p = p && *p == ':' ? p + 1 : NULL;
        }
        p = p ? json_value(p, depth + 1) : NULL;
        p = p ? json_space(p) : NULL;
        if (p && *p == ',') {
            p = json_space(p + 1);
            p = *p == end ? NULL : p;
        } else if (p && *p != end) {
            p = NULL;
        }
    }
    return p ? p + 1 : NULL;
}

static const char *json_value(const char *p, int depth)
{
    char *end;
    p = json_space(p);
    if (depth > 16) {
        return NULL;
    }
    if (*p == '{' || *p == '[') {
        return json_members(p, *p == '{' ? '}' : ']', depth);
    }
    if (*p == '"') {
        return json_string(p);
    }
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "null", 4) == 0) {
        return p + 4;
    }
    strtod(p, &end);
    return end == p || *p == '+' || *p == 'n' || *p == 'i' ? NULL : end;
}

/* The trace is JSON even when names hold quotes, backslashes and control characters. */
static void test_trace(void)
{
    rig r = rig_start(NULL, 1);
    npu_value x = npu_input(r.graph, "x \"quoted\"\\", F32(4));
    npu_op op = npu_emit_name(r.graph, "aten.relu", (npu_arg[]){ npu_arg_tensor(NULL, x) }, 1);
    npu_op_set_name(r.graph, op, "first \"op\"\\n\n\t\x01");
    npu_output(r.graph, "y", npu_op_result(r.graph, op, 0));
    r.exec_desc.profile = true;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    float in[4] = { 1, 2, 3, 4 };
    npu_test_input_at(r.exec, 0, in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    npu_text trace = npu_text_init(NULL), profile = npu_text_init(NULL);
    npu_exec_print_trace(r.exec, &trace);
    npu_exec_print_profile(r.exec, &profile);
    const char *end = trace.data ? json_value(trace.data, 0) : NULL;
    NPU_CHECK(end && *json_space(end) == 0);
    NPU_CHECK(trace.data && strstr(trace.data, "aten.relu"));
    NPU_CHECK(profile.len > 0);
    npu_text_free(&trace);
    npu_text_free(&profile);
    rig_end(&r);
}

/* ---- programs that are shared ----------------------------------------------------------------------------------- */

/* Weights go up once for a program, whatever its execs and runs; a value used twice goes up once. */
static void test_weights_once(void)
{
    NPU_ITEM("S1.27");
    NPU_ITEM("S2.36");
    NPU_ITEM("S1.22");
    rig r = example_rig(NULL);
    float x[EXAMPLE_IN], y[2][EXAMPLE_OUT];
    npu_exec *other = NULL;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_sim_counters before = npu_sim_count(r.sims[0]);
    NPU_CHECK_EQ(before.calls[NPU_SIM_UPLOAD], 3);
    NPU_CHECK_STATUS(npu_exec_create(&other, r.program, NULL, NULL), NPU_OK);
    for (int i = 0; i < 6; i++) {
        npu_exec *e = i % 2 ? other : r.exec;
        fill(x, EXAMPLE_IN, (uint32_t)i / 2);
        npu_test_input(e, "x", x, sizeof x);
        npu_exec_set_output(e, "y", y[i % 2], sizeof y[0]);
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
        NPU_CHECK(i % 2 == 0 || memcmp(y[0], y[1], sizeof y[0]) == 0);
    }
    npu_sim_counters after = npu_sim_count(r.sims[0]);
    NPU_CHECK_EQ(after.calls[NPU_SIM_COMPILE], 2);
    NPU_CHECK_EQ(after.calls[NPU_SIM_UPLOAD], 3 + 6 * 2);
    NPU_CHECK_EQ(after.calls[NPU_SIM_ALLOC], before.calls[NPU_SIM_ALLOC] + 1); /* the second arena */
    npu_exec_destroy(other);
    rig_end(&r);
}

/* A program has the weights that were bound when it was made, on every backend; a new one has those bound since. */
static void test_weights_bound_again(void)
{
    static const char *const deny[] = { "aten.mm.default" };
    static const float w[2][4] = { { 1, 2, 3, 4 }, { 10, 20, 30, 40 } };
    float x[4] = { 1, 0, 0, 1 };
    NPU_ITEM("R1.11");
    for (int on_cpu = 0; on_cpu < 2; on_cpu++) {
        npu_sim_desc sim;
        memset(&sim, 0, sizeof sim);
        sim.deny = deny;
        sim.num_deny = (uint32_t)on_cpu;
        rig r = rig_start(&sim, 1);
        npu_program *again = NULL;
        npu_exec *other = NULL;
        npu_value v = npu_param(r.graph, "w", F32(2, 2));
        npu_output(r.graph, "y", npu_mm(r.graph, npu_input(r.graph, "x", F32(2, 2)), v));
        npu_graph_bind_param(r.graph, "w", w[0], sizeof w[0]);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "w", w[1], sizeof w[1]), NPU_OK);
        NPU_CHECK_STATUS(npu_program_create(&again, r.plan, &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&other, again, NULL, &r.diag), NPU_OK);
        for (int i = 0; i < 2; i++) {
            npu_exec *e = i ? other : r.exec;
            float y[4] = { 0 };
            npu_test_input(e, "x", x, sizeof x);
            npu_exec_set_output(e, "y", y, sizeof y);
            NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
            NPU_CHECK_BYTES(y, w[i], sizeof y);
        }
        npu_exec_destroy(other);
        npu_program_destroy(again);
        rig_end(&r);
    }
}

/* The partitions of a plan as graphs of their own, each run on the CPU with what the ones before it made: together they
   compute what the whole does. */
static void test_partitions_alone(void)
{
    rig r = example_rig(NULL);
    const npu_backend *cpu = npu_ref_backend();
    float x[EXAMPLE_IN], made[2][EXAMPLE_OUT], y[EXAMPLE_OUT];
    const char *names[2] = { "relu2_output", "concat_output" };
    size_t sizes[2] = { 0, 0 };
    int parts = 0;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(x, EXAMPLE_IN, 1);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (uint32_t i = 0; i < npu_plan_num_steps(r.plan); i++) {
        const npu_step *s = npu_plan_step(r.plan, i);
        npu_graph *part = NULL;
        npu_exec *exec = NULL;
        if (s->type != NPU_STEP_PARTITION) {
            continue;
        }
        NPU_CHECK_STATUS(npu_graph_extract(&part, r.graph, s->ops, s->num_ops, &r.diag), NPU_OK);
        NPU_CHECK_EQ(npu_graph_num_ops(part), s->num_ops);
        NPU_CHECK_EQ(npu_graph_num_outputs(part), s->num_outputs);
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, part, &cpu, 1, &r.diag), NPU_OK);
        npu_test_input(exec, "x", x, sizeof x);
        for (int k = 0; k < parts; k++) {
            npu_test_input(exec, names[k], made[k], sizes[k]);
        }
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        size_t size = 0;
        const void *out = npu_exec_output(exec, 0, &size);
        NPU_CHECK(out && size <= sizeof y);
        memcpy(parts < 2 ? made[parts] : y, out, size);
        if (parts < 2) {
            NPU_CHECK_STR(npu_graph_output_name(part, 0), names[parts]);
            sizes[parts] = size;
        }
        parts++;
        npu_exec_destroy(exec);
        npu_graph_destroy(part);
    }
    NPU_CHECK_EQ(parts, 3);
    for (int i = 0; i < EXAMPLE_OUT; i++) {
        NPU_CHECK_NEAR(y[i], ((const float *)npu_exec_output(r.exec, 0, NULL))[i], 1e-5);
    }
    rig_end(&r);
}

enum { MIXED_IN = 6 * 40, MIXED_OUT = 6 * 40, ROWS_LEN = 1000 };

/* Ops of every parallel kind: convolution, matrix product, softmax, reduction, elementwise, attention. */
static void build_mixed(npu_graph *g)
{
    npu_value none = { 0 };
    npu_value x = npu_input(g, "x", F32(6, 40));
    npu_value y = npu_softmax(g, npu_matmul(g, npu_gelu(g, x, NULL), W(40, 40)), -1);
    npu_value image = npu_reshape(g, y, DIMS(1, 6, 8, 5), 4);
    image = npu_conv2d(g, image, W(6, 6, 3, 3), W(6), &(npu_conv2d_attrs){ { 1, 1 }, { 1, 1 }, { 1, 1 }, 1 });
    y = npu_add(g, npu_reshape(g, image, DIMS(6, 40), 2), npu_mean(g, x, DIMS(1), 1, true));
    y = npu_layer_norm(g, y, none, none, 1, 1e-5);
    npu_value heads = npu_reshape(g, y, DIMS(1, 4, 6, 10), 4);
    heads = npu_scaled_dot_product_attention(g, heads, heads, heads, none, NULL);
    npu_output(g, "y", npu_tanh(g, npu_reshape(g, heads, DIMS(6, 40), 2)));
}

/* Products of one row, whose parts one thread runs as one. */
static void build_rows(npu_graph *g)
{
    static float w[ROWS_LEN * 1101];
    npu_value none = { 0 };
    fill(w, ROWS_LEN * 1101, 3);
    npu_value y = npu_matmul(g, npu_input(g, "x", F32(1, ROWS_LEN)), npu_constant_ref(g, NULL, F32(ROWS_LEN, 1101), w));
    npu_output(g, "y", npu_linear(g, y, npu_constant_ref(g, NULL, F32(ROWS_LEN, 1101), w), none));
}

enum { IMAGES_LEN = 20 * 7 * 7 };

/* Convolutions whose images threads make tiles of before they are read. */
static void build_images(npu_graph *g)
{
    static float w[512 * 512];
    npu_conv2d_attrs attrs = { { 1, 1 }, { 0, 0 }, { 1, 1 }, 1 };
    npu_value none = { 0 };
    fill(w, 512 * 512, 3);
    npu_value x = npu_input(g, "x", F32(1, 20, 7, 7));
    x = npu_conv2d(g, x, npu_constant_ref(g, NULL, F32(512, 20, 1, 1), w), none, &attrs);
    x = npu_conv2d(g, x, npu_constant_ref(g, NULL, F32(512, 512, 1, 1), w), none, &attrs);
    npu_output(g, "y", npu_conv2d(g, x, npu_constant_ref(g, NULL, F32(20, 512, 1, 1), w), none, &attrs));
}

/* The same bits at any number of threads, and none at all; as many floats go in as come out. */
static void check_widths(void (*build)(npu_graph *g), size_t num)
{
    static const uint32_t widths[] = { 0, 1, 2, 3, 5 };
    static float x[ROWS_LEN], y[ROWS_LEN], expected[ROWS_LEN];
    const size_t size = num * sizeof *x;
    rig r = cpu_rig();
    build(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(x, num, 1);
    memset(expected, 0, sizeof expected);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        npu_parallel *threads = NULL;
        npu_exec_destroy(r.exec);
        r.exec = NULL;
        NPU_CHECK(widths[i] == 0 || npu_threads_create(&threads, &(npu_threads_desc){ .width = widths[i] }) == NPU_OK);
        r.exec_desc.parallel = threads;
        NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, &r.exec_desc, NULL), NPU_OK);
        npu_test_input(r.exec, "x", x, size);
        npu_exec_set_output(r.exec, "y", y, size);
        for (int run = 0; run < 3; run++) {
            memset(y, 0, size);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            if (i == 0 && run == 0) {
                memcpy(expected, y, size);
            }
            NPU_CHECK_BYTES(y, expected, size);
        }
        npu_threads_destroy(threads);
    }
    NPU_CHECK(isfinite(expected[7]) && expected[7] != 0);
    rig_end(&r);
}

static void test_widths(void)
{
    check_widths(build_mixed, MIXED_IN);
    check_widths(build_rows, ROWS_LEN);
    check_widths(build_images, IMAGES_LEN);
}

typedef struct runner {
    npu_program *program;
    const npu_parallel *parallel; /* shared by both */
    npu_status status;
    float y[MIXED_OUT];
} runner;

static void *run_often(void *arg)
{
    runner *w = arg;
    npu_exec *exec = NULL;
    npu_exec_desc desc;
    float x[MIXED_IN];
    memset(&desc, 0, sizeof desc);
    desc.parallel = w->parallel;
    fill(x, MIXED_IN, 1);
    w->status = npu_exec_create(&exec, w->program, &desc, NULL);
    if (w->status == NPU_OK) {
        npu_test_input(exec, "x", x, sizeof x);
        npu_exec_set_output(exec, "y", w->y, sizeof w->y);
    }
    for (int i = 0; i < 10 && w->status == NPU_OK; i++) {
        w->status = npu_exec_run(exec);
    }
    npu_exec_destroy(exec);
    return NULL;
}

/* Two execs of one program in two threads, which share a pool. */
static void test_two_threads(void)
{
    static runner runners[2];
    pthread_t thread[2];
    npu_parallel *threads = NULL;
    rig r = cpu_rig();
    build_mixed(r.graph);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }), NPU_OK);
    for (int i = 0; i < 2; i++) {
        runners[i].program = r.program;
        runners[i].parallel = threads;
        NPU_CHECK_EQ(pthread_create(&thread[i], NULL, run_often, &runners[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        NPU_CHECK_STATUS(runners[i].status, NPU_OK);
    }
    NPU_CHECK_BYTES(runners[0].y, runners[1].y, sizeof runners[0].y);
    npu_threads_destroy(threads);
    rig_end(&r);
}

/* One exec on two threads, and under its own callback: the second run is refused, and the first is right. */
typedef struct sharer {
    npu_exec *exec;
    npu_capture *capture; /* replayed instead; NULL = none */
    npu_status inner;
    uint32_t num_done, num_refused, num_others;
} sharer;

static bool run_beneath(void *ctx, uint32_t step)
{
    sharer *s = ctx;
    (void)step;
    npu_diag diag;
    s->inner = s->capture ? npu_capture_replay(s->capture) : npu_exec_run(s->exec);
    const npu_array none = { NULL, F32(1), NULL };
    NPU_CHECK_STATUS(npu_exec_verify(s->exec, &none, 1, NULL, NULL, NULL, &diag), NPU_ERR_STATE);
    NPU_CHECK(diag.status == NPU_ERR_STATE && strstr(diag.message, "at work"));
    return true;
}

static void *run_shared(void *arg)
{
    sharer *s = arg;
    for (int i = 0; i < 200; i++) {
        npu_status status = npu_exec_run(s->exec);
        s->num_done += status == NPU_OK;
        s->num_refused += status == NPU_ERR_STATE;
        s->num_others += status != NPU_OK && status != NPU_ERR_STATE;
    }
    return NULL;
}

static void test_one_run_at_a_time(void)
{
    sharer sharers[2] = { { 0 } }, beneath = { 0 };
    pthread_t thread[2];
    float x[MIXED_IN], y[MIXED_OUT], expected[MIXED_OUT];
    rig r = cpu_rig();
    build_mixed(r.graph);
    fill(x, MIXED_IN, 1);
    r.exec_desc.poll = run_beneath;
    r.exec_desc.poll_ctx = &beneath;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "y", expected, sizeof expected);
    beneath.exec = r.exec;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_STATUS(beneath.inner, NPU_ERR_STATE);
    NPU_CHECK_STATUS(npu_capture_create(&beneath.capture, r.exec), NPU_OK);
    beneath.inner = NPU_OK;
    NPU_CHECK_STATUS(npu_capture_replay(beneath.capture), NPU_OK);
    NPU_CHECK_STATUS(beneath.inner, NPU_ERR_STATE);
    npu_capture_destroy(beneath.capture);
    rig_unmake(&r);
    r.exec_desc.poll = NULL;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "y", y, sizeof y);
    for (int i = 0; i < 2; i++) {
        sharers[i].exec = r.exec;
        NPU_CHECK_EQ(pthread_create(&thread[i], NULL, run_shared, &sharers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        NPU_CHECK_EQ(sharers[i].num_others, 0);
    }
    NPU_CHECK_EQ(sharers[0].num_done + sharers[0].num_refused + sharers[1].num_done + sharers[1].num_refused, 400);
    NPU_CHECK(sharers[0].num_done + sharers[1].num_done > 0);
    NPU_CHECK_BYTES(y, expected, sizeof y);
    rig_end(&r);
}

static void *destroy(void *graph)
{
    npu_graph_destroy((npu_graph *)graph);
    return NULL;
}

/* Graphs that own a registry together may end in two threads. */
static void test_graphs_end_in_threads(void)
{
    for (int k = 0; k < 20; k++) {
        npu_graph *g = npu_graph_create(NULL), *now = NULL;
        pthread_t thread;
        NPU_CHECK_STATUS(npu_graph_specialize(&now, g, NULL, NULL, 0, NULL), NPU_OK);
        NPU_CHECK(npu_graph_registry(now) == npu_graph_registry(g));
        NPU_CHECK_EQ(pthread_create(&thread, NULL, destroy, g), 0);
        npu_graph_destroy(now);
        pthread_join(thread, NULL);
    }
}

static void count_part(void *arg, uint32_t part, uint32_t parts, uint32_t worker)
{
    uint32_t *counts = (uint32_t *)arg;
    (void)parts;
    (void)worker;
    counts[part]++;
}

/* However long threads look before they sleep, and whether runs follow at once or after a while. */
static void test_spinning(void)
{
    static const uint64_t spins[] = { 0, 1, 2, 3000, 1000000 };
    for (size_t i = 0; i < sizeof spins / sizeof spins[0]; i++) {
        npu_parallel *threads = NULL;
        uint32_t counts[7] = { 0 };
        NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3, .spin_ns = spins[i] }), NPU_OK);
        for (uint32_t run = 0; run < 301; run++) {
            for (volatile uint32_t pause = run % 3 == 2 ? 20000 : 0; pause; pause--) { }
            threads->run(threads->ctx, count_part, counts, 1 + run % 7);
        }
        for (uint32_t k = 0; k < 7; k++) {
            NPU_CHECK_EQ(counts[k], 301 / 7 * (7 - k)); /* of seven runs each takes one part more */
        }
        npu_threads_destroy(threads);
    }
}

/* ---- the order of destroying ------------------------------------------------------------------------------------ */

/* Memory in which what was freed is scribbled over and never given out again. */
typedef struct scribbled {
    size_t used, size;
    unsigned char *memory;
} scribbled;

static void *scribbled_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    scribbled *s = (scribbled *)ctx;
    unsigned char *now = new_size && new_size <= s->size - s->used ? s->memory + s->used : NULL;
    s->used += now ? (new_size + 15) / 16 * 16 : 0;
    if (now && ptr) {
        memcpy(now, ptr, old_size < new_size ? old_size : new_size);
    }
    if (ptr && (now || !new_size)) {
        memset(ptr, 0xdd, old_size);
    }
    return now;
}

/* Plan, program and exec may be destroyed when their graph is gone: symbols, states, children and weights with it. */
static void test_graph_goes_first(void)
{
    static const char text[] =
        "graph main\nsymbol n 0 8\nchild f scalar\ninput a : scalar f32[]\ninput b : scalar f32[]\n"
        "s = aten.add.Tensor(a, b)\noutput s = s\nend\n"
        "input x : f32[n,2]\ninput z : f32[2,2]\nconst c : f32[2,2] {1, 2, 3, 4}\n"
        "state t : f32[2,2]\nu = aten.add.Tensor(t, z)\nupdate t = u\nm = aten.mm.default(x, c)\n"
        "y = npu.fused([z, c], body=graph 0)\n"
        "output m = m\noutput y = y\n";
    scribbled memory = { 0, 1 << 24, (unsigned char *)malloc(1 << 24) };
    npu_sim_desc cap = { .deny = (const char *const[]){ "aten.mm.default" }, .num_deny = 1 };
    for (int is_simple = 0; is_simple < 2; is_simple++) {
        npu_alloc_counter counter = { 0 };
        npu_allocator counted = npu_allocator_counting(&counter), a = { &memory, scribbled_resize };
        rig r = rig_start(&cap, 1);
        npu_graph_destroy(r.graph);
        memory.used = 0;
        npu_graph_desc desc = { .allocator = &a };
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, &desc, &r.diag), NPU_OK);
        r.desc.allocator = &counted;
        if (is_simple) {
            NPU_CHECK_STATUS(npu_exec_create_simple(&r.exec, r.graph, r.backends, 2, &r.diag), NPU_OK);
        } else {
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        }
        float x[2] = { 1, 2 }, z[4] = { 0 };
        NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(1, 2), x), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "z", z, sizeof z), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        npu_graph_destroy(r.graph);
        r.graph = NULL;
        rig_end(&r);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    free(memory.memory);
}

/* ---- a run allocates nothing ------------------------------------------------------------------------------------ */

static void test_no_allocation(void)
{
    npu_alloc_counter c;
    NPU_ITEM("R1.14");
    memset(&c, 0, sizeof c);
    npu_allocator a = npu_allocator_counting(&c);
    npu_graph_desc graph_desc;
    npu_ref_desc ref_desc;
    npu_plan_desc plan_desc;
    npu_exec_desc exec_desc;
    npu_backend *cpu = NULL;
    npu_parallel *threads = NULL;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    memset(&graph_desc, 0, sizeof graph_desc);
    memset(&ref_desc, 0, sizeof ref_desc);
    memset(&plan_desc, 0, sizeof plan_desc);
    memset(&exec_desc, 0, sizeof exec_desc);
    graph_desc.allocator = ref_desc.allocator = plan_desc.allocator = exec_desc.allocator = &a;
    npu_graph *g = npu_graph_create(&graph_desc);
    build_mixed(g);
    npu_value s = npu_state(g, "s", F32(6, 40));
    npu_update(g, s, npu_add(g, s, npu_graph_output(g, 0)));
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &ref_desc), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3, .allocator = &a }), NPU_OK);
    const npu_backend *backends[1] = { cpu };
    plan_desc.backends = backends;
    plan_desc.num_backends = 1;
    exec_desc.profile = true;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &plan_desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    for (int threaded = 0; threaded < 2; threaded++) {
        static char x[MIXED_IN * 4 + 1];
        exec_desc.parallel = threaded ? threads : NULL;
        NPU_CHECK_STATUS(npu_exec_create(&exec, program, &exec_desc, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(exec, "x", x + 1, MIXED_IN * 4), NPU_OK); /* staged, too */
        uint64_t before = c.num_calls;
        size_t live = c.live_bytes;
        for (int i = 0; i < 5; i++) {
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        }
        NPU_CHECK_EQ(c.num_calls, before);
        NPU_CHECK_EQ(c.live_bytes, live);
        npu_exec_destroy(exec);
    }
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_threads_destroy(threads);
    npu_ref_destroy(cpu);
    npu_graph_destroy(g);
    NPU_CHECK_EQ(c.live_bytes, 0);
}

/* ---- one op standalone ------------------------------------------------------------------------------------------ */

static npu_status call(npu_kind kind, npu_tensor *in, uint32_t num_in, npu_tensor *out, uint32_t num_out,
                       const void *blob, uint32_t size, npu_diag *diag)
{
    return npu_op_call(npu_ref_backend(), NPU_TEST_CALL(kind, in, num_in, out, num_out, 0, blob, size), diag);
}

static void test_op_call(void)
{
    NPU_ITEM("S2.28");
    NPU_ITEM("S2.57");
    float x[6] = { 1, -2, 3, -4, 5, -6 }, y[6], w[3] = { 1, 10, 100 }, c[12];
    npu_buffer buffers[4];
    npu_tensor in[3], out[1];
    npu_diag diag;
    npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 2, DIMS(2, 3), x);
    npu_tensor_set_host(&out[0], &buffers[3], NPU_F32, 2, DIMS(2, 3), y);
    NPU_CHECK_STATUS(call(NPU_ATEN_RELU, in, 1, out, 1, NULL, 0, &diag), NPU_OK);
    NPU_CHECK(y[0] == 1 && y[1] == 0 && y[4] == 5);
    npu_tensor_set_host(&in[1], &buffers[1], NPU_F32, 1, DIMS(3), w);
    NPU_CHECK_STATUS(call(NPU_ATEN_ADD, in, 2, out, 1, NULL, 0, &diag), NPU_OK); /* no attributes: the defaults */
    NPU_CHECK(y[2] == 103 && y[3] == -3);
    static const uint8_t twice[9] = { 1, 2 };                                     /* alpha: int 2 */
    NPU_CHECK_STATUS(call(NPU_ATEN_ADD, in, 2, out, 1, twice, 9, &diag), NPU_OK);
    NPU_CHECK(y[2] == 203 && y[3] == -2);
    NPU_CHECK_STATUS(call(NPU_ATEN_ADD, in, 2, out, 1, twice, 8, &diag), NPU_ERR_BAD_ATTR_SIZE);
    NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), NPU_TEST_CALL(NPU_ATEN_ADD, in, 2, out, 1, 5, twice, 9), &diag),
                     NPU_ERR_BAD_SCHEMA);
    NPU_CHECK_STATUS(npu_op_call(NULL, NPU_TEST_CALL(NPU_ATEN_ADD, in, 2, out, 1, 0, twice, 9), &diag),
                     NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(call(NPU_ATEN_ADD, in, 1, out, 1, NULL, 0, &diag), NPU_ERR_ARITY);
    NPU_CHECK_STR(diag.operand, "other");
    static const uint8_t last[9] = { 255, 255, 255, 255, 255, 255, 255, 255, 0 }; /* softmax: dim -1, no dtype */
    NPU_CHECK_STATUS(call(NPU_ATEN_SOFTMAX, in, 1, out, 1, last, 9, &diag), NPU_OK);
    NPU_CHECK_NEAR(y[0] + y[1] + y[2], 1, 1e-6);
    npu_tensor_set_host(&out[0], &buffers[3], NPU_F32, 2, DIMS(4, 3), c);
    in[1] = in[0];
    NPU_CHECK_STATUS(call(NPU_ATEN_CAT, in, 2, out, 1, NULL, 0, &diag), NPU_OK); /* a list of two */
    NPU_CHECK(c[0] == 1 && c[6] == 1 && c[11] == -6);
    NPU_CHECK_STATUS(call(NPU_ATEN_CAT, in, 1, out, 1, NULL, 0, &diag), NPU_ERR_SHAPE);
    npu_tensor_set_host(&out[0], &buffers[3], NPU_I32, 2, DIMS(2, 3), c);
    NPU_CHECK_STATUS(call(NPU_ATEN_RELU, in, 1, out, 1, NULL, 0, &diag), NPU_ERR_DTYPE);
    NPU_CHECK(strstr(diag.message, "aten.relu"));
    NPU_CHECK_STATUS(call(0x7777, in, 1, out, 1, NULL, 0, &diag), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(call(NPU_ATEN_RELU, in, 65, out, 1, NULL, 0, &diag), NPU_ERR_ARITY);
}

/* Tensors that cannot be: each refused before a kernel sees it, as operand and as result. */
static void test_op_call_tensors(void)
{
    static const struct {
        const char *what;
        npu_status status;
        uint32_t rank;
        int64_t dim, stride;
        uint64_t offset;
        int memory; /* 0: 16 bytes; 1: no buffer; 2: no handle; 3: 32 bytes */
    } rows[] = {
        { "as it should be", NPU_OK, 1, 4, 1, 0, 0 }, { "backwards", NPU_OK, 1, 4, -1, 12, 3 },
        { "below its buffer", NPU_ERR_SHAPE, 1, 4, -1, 8, 3 },
        { "backwards without end", NPU_ERR_SHAPE, 1, 4, INT64_MIN, 12, 3 },
        { "without end", NPU_ERR_SHAPE, 1, 4, INT64_MAX, 0, 0 }, { "behind its end", NPU_ERR_SHAPE, 1, 4, 1, 4, 0 },
        { "far behind its end", NPU_ERR_SHAPE, 1, 4, 1, UINT64_MAX, 0 },
        { "between elements", NPU_ERR_UNSUPPORTED, 1, 4, 1, 2, 3 },
        { "any dim", NPU_ERR_DYNAMIC_SHAPE, 1, -1, 1, 0, 0 }, { "a symbol", NPU_ERR_DYNAMIC_SHAPE, 1, -2, 1, 0, 0 },
        { "the smallest dim", NPU_ERR_DYNAMIC_SHAPE, 1, INT64_MIN, 1, 0, 0 },
        { "nine dims", NPU_ERR_RANK, 9, 1, 1, 0, 0 },
        { "257 dims", NPU_ERR_RANK, 257, 1, 1, 0, 0 },
        { "no buffer", NPU_ERR_INVALID_ARGUMENT, 1, 4, 1, 0, 1 },
        { "no handle", NPU_ERR_INVALID_ARGUMENT, 1, 4, 1, 0, 2 },
        { "nothing", NPU_OK, 1, 0, 1, 0, 0 }, { "nothing, nowhere", NPU_OK, 1, 0, 1, 0, 2 },
        { "nothing without a buffer", NPU_ERR_INVALID_ARGUMENT, 1, 0, 1, 0, 1 },
        { "nothing at its end", NPU_OK, 1, 0, 1, 16, 0 }, { "nothing behind its end", NPU_ERR_SHAPE, 1, 0, 1, 17, 0 },
    };
    float memory[2][8] = { { 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int side = 0; side < 2; side++) {
            npu_tensor t[2];
            npu_buffer buffers[2];
            npu_diag diag;
            for (int k = 0; k < 2; k++) {
                npu_tensor_set_host(&t[k], &buffers[k], NPU_F32, 1, DIMS(rows[i].dim > 0 ? rows[i].dim : 0), memory[k]);
            }
            t[side].rank = rows[i].rank;
            t[side].dims[0] = rows[i].dim;
            t[side].strides[0] = rows[i].stride;
            t[side].offset = rows[i].offset;
            buffers[side].bytes = rows[i].memory == 3 ? 32 : 16;
            buffers[side].handle = rows[i].memory == 2 ? NULL : buffers[side].handle;
            t[side].buffer = rows[i].memory == 1 ? NULL : t[side].buffer;
            npu_status status = call(NPU_ATEN_RELU, t, 1, t + 1, 1, NULL, 0, &diag);
            NPU_CHECK_THAT(status == rows[i].status, "%s: %s", rows[i].what, diag.message);
            NPU_CHECK(!rows[i].status || strstr(diag.message, side ? "result 0" : "operand 0"));
        }
    }
}

/* Calls that are refused before anything runs, one mistake each. */
static void test_op_call_refused(void)
{
    static const char *const words[] = {
        "needs a desc that was zeroed", "the operands or results are NULL", "the operands or results are NULL",
        "1 operands and 64 results, at most 64 in all", "result 0 has no dtype", "operand 'other' is missing",
        "2 results given, expected 1", "with 600 bytes, expected 0 and the packed blob", "but its buffer has 3 bytes",
        "but its buffer has 64 bytes", "has 1 tensor lists, but the call says the sizes of 2",
        "2 operands given, expected 0 and 3 in lists", "operand 'tensors' is missing"
    };
    static const npu_status statuses[] = {
        NPU_ERR_INVALID_ARGUMENT, NPU_ERR_INVALID_ARGUMENT, NPU_ERR_INVALID_ARGUMENT, NPU_ERR_ARITY, NPU_ERR_DTYPE,
        NPU_ERR_ARITY, NPU_ERR_ARITY, NPU_ERR_BAD_ATTR_SIZE, NPU_ERR_SHAPE, NPU_ERR_SHAPE, NPU_ERR_ARITY, NPU_ERR_ARITY,
        NPU_ERR_ARITY
    };
    static float memory[3][16];
    static uint8_t blob[600];
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        npu_tensor t[3];
        npu_buffer buffers[3];
        npu_diag diag;
        npu_op_call_desc d = { .kind = NPU_ATEN_ADD, .in = t, .num_in = 2, .out = t + 2, .num_out = 1 };
        const uint32_t sizes[2] = { 3, 0 };
        for (int k = 0; k < 3; k++) {
            npu_tensor_set_host(&t[k], &buffers[k], NPU_F32, 2, DIMS(2, 4), memory[k]);
            buffers[k].bytes = sizeof memory[k];
        }
        switch (i) {
        case 0: d._canary = 1; break;
        case 1: d.in = NULL; break;
        case 2: d.out = NULL; break;
        case 3: d.num_in = 1, d.num_out = 64; break;
        case 4: t[2].dtype = NPU_NONE; break;
        case 5: t[1].dtype = NPU_NONE; break;
        case 6: d.kind = NPU_ATEN_RELU, d.num_in = 1, d.out = t + 1, d.num_out = 2; break;
        case 7: d.blob = blob, d.blob_size = sizeof blob; break;
        case 8: t[1].dtype = NPU_I4, buffers[1].bytes = 3; break; /* of 4 */
        case 9: t[1].strides[0] = INT64_MAX / 4, t[1].strides[1] = INT64_MAX; break;
        case 12: d.kind = NPU_ATEN_CAT, t[1].dtype = NPU_NONE; break;
        default: d.kind = NPU_ATEN_CAT, d.list_sizes = sizes, d.num_lists = i == 10 ? 2 : 1; break;
        }
        NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), &d, &diag), statuses[i]);
        NPU_CHECK_THAT(strstr(diag.message, words[i]), "call %u: '%s'", (unsigned)i, diag.message);
    }
}

/* Strides of what has no elements may be any. */
static void test_op_call_empty(void)
{
    uint8_t none = 0, any = 1;
    npu_tensor t[2];
    npu_buffer buffers[2];
    npu_diag diag;
    npu_tensor_set_host(&t[0], &buffers[0], NPU_BOOL, 2, DIMS(0, 3), &none);
    npu_tensor_set_host(&t[1], &buffers[1], NPU_BOOL, 0, NULL, &any);
    t[0].strides[0] = t[0].strides[1] = INT64_MIN;
    NPU_CHECK_STATUS(call(NPU_ATEN_ANY, t, 1, t + 1, 1, NULL, 0, &diag), NPU_OK);
    NPU_CHECK_EQ(any, 0);
}

/* What an op results in may depend on what its operands hold, of which there may be nothing. */
static void test_op_call_data(void)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    uint8_t mask[4] = { 1, 0, 0, 1 };
    npu_buffer buffers[3];
    npu_tensor in[2], out;
    npu_diag diag;
    for (int is_empty = 0; is_empty < 2; is_empty++) {
        int64_t n = is_empty ? 0 : 4, num = is_empty ? 0 : 2, other = 1;
        npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 1, &n, is_empty ? NULL : x);
        npu_tensor_set_host(&in[1], &buffers[1], NPU_BOOL, 1, &n, is_empty ? NULL : mask);
        npu_tensor_set_host(&out, &buffers[2], NPU_F32, 1, &num, is_empty ? NULL : y);
        NPU_CHECK_STATUS(call(NPU_ATEN_MASKED_SELECT, in, 2, &out, 1, NULL, 0, &diag), NPU_OK);
        npu_tensor_set_host(&out, &buffers[2], NPU_F32, 1, &other, y);
        NPU_CHECK_STATUS(call(NPU_ATEN_MASKED_SELECT, in, 2, &out, 1, NULL, 0, &diag), NPU_ERR_SHAPE);
    }
    NPU_CHECK(y[0] == 1 && y[1] == 4 && y[2] == 0);
}

/* Attributes that leave a number to an operand: what that holds is checked as a number among them is. */
static void test_op_call_fed(void)
{
    static const struct { int64_t k; npu_dtype dtype; npu_status status; } rows[] = {
        { 2, NPU_I64, NPU_OK },        { 4, NPU_I64, NPU_OK },          { 0, NPU_I64, NPU_ERR_RANGE },
        { 5, NPU_I64, NPU_ERR_RANGE }, { INT64_MIN, NPU_I64, NPU_ERR_RANGE }, { 2, NPU_NONE, NPU_ERR_DYNAMIC_SHAPE },
    };
    float x[4] = { 3, 1, 4, 2 };
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value self = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, DIMS(4)));
    npu_arg args[2] = { npu_arg_tensor("self", self),
                        npu_arg_tensor("k", npu_input(g, "k", npu_spec_tensor(NPU_I64, 0, NULL))) };
    npu_op op = npu_emit_name(g, "aten.kthvalue.default", args, 2);
    npu_op_storage storage = { 0 };
    npu_op_info info = { 0 };
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_buffer buffers[4];
        npu_tensor in[2], out[2];
        npu_diag diag;
        float y = 0;
        int64_t at = -1, k = rows[i].k;
        npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 1, DIMS(4), x);
        npu_tensor_set_host(&in[1], &buffers[1], NPU_I64, 0, NULL, &k);
        npu_tensor_set_host(&out[0], &buffers[2], NPU_F32, 0, NULL, &y);
        npu_tensor_set_host(&out[1], &buffers[3], NPU_I64, 0, NULL, &at);
        in[1].dtype = rows[i].dtype;
        npu_status status = call(info.kind, in, 2, out, 2, info.attrs, info.attrs_size, &diag);
        NPU_CHECK_THAT(status == rows[i].status, "row %u: %s: %s", (unsigned)i, npu_status_name(status), diag.message);
        NPU_CHECK(status || (y == (float)k && x[at] == y));
    }
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* What failed is named: the op, the operand, and the status. */
static void test_op_call_message(void)
{
    float x[6] = { 0 }, y[4];
    npu_buffer buffers[2];
    npu_tensor in[2], out[1];
    npu_diag diag;
    static const uint8_t plain[8] = { 0 };
    NPU_ITEM("R2.22");
    memset(&diag, 0, sizeof diag);
    npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 2, DIMS(2, 3), x);
    in[1] = in[0];
    npu_tensor_set_host(&out[0], &buffers[1], NPU_F32, 2, DIMS(2, 2), y);
    NPU_CHECK_STATUS(call(NPU_AICF_GEMM, in, 2, out, 1, plain, sizeof plain, &diag), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(diag.message, "gemm") && strstr(diag.message, "b dim 0 is 2"));
    NPU_CHECK_STR(npu_status_name(diag.status), "NPU_ERR_SHAPE");
}

/* A backend without op_call runs a group of one: the same bytes. A hole stays a hole. */
static void test_op_call_by_group(void)
{
    npu_backend b = *npu_ref_backend();
    float x[6] = { 1, -2, 3, -4, 5, -6 }, w[6] = { 1, 0, 0, 0, 1, 1 }, y[2][4];
    npu_buffer buffers[4];
    npu_tensor in[3], out[1];
    npu_diag diag;
    npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 2, DIMS(2, 3), x);
    npu_tensor_set_host(&in[1], &buffers[1], NPU_F32, 2, DIMS(2, 3), w);
    memset(&in[2], 0, sizeof in[2]); /* no bias */
    for (int i = 0; i < 2; i++) {
        npu_tensor_set_host(&out[0], &buffers[3], NPU_F32, 2, DIMS(2, 2), y[i]);
        NPU_CHECK_STATUS(npu_op_call(&b, NPU_TEST_CALL(NPU_ATEN_LINEAR, in, 3, out, 1, 0, NULL, 0), &diag), NPU_OK);
        b.op_call = NULL;
    }
    NPU_CHECK(y[0][0] == 1 && y[0][1] == 1 && y[0][2] == -4 && y[0][3] == -1);
    NPU_CHECK_BYTES(y[0], y[1], sizeof y[0]);
    npu_sim *sim = NULL; /* with scratch, in device memory */
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.scratch = 100;
    npu_sim_create(&sim, &desc);
    npu_backend device = *npu_sim_backend(sim);
    device.op_call = NULL;
    npu_tensor_set_host(&out[0], &buffers[3], NPU_F32, 2, DIMS(2, 3), y);
    for (int i = 0; i < 2; i++) {
        NPU_CHECK_STATUS(buffer_alloc(&device, 0, 24, &buffers[i ? 3 : 0]), NPU_OK);
    }
    buffer_upload(&device, &buffers[0], 0, x, sizeof x);
    NPU_CHECK_STATUS(npu_op_call(&device, NPU_TEST_CALL(NPU_ATEN_RELU, in, 1, out, 1, 0, NULL, 0), &diag), NPU_OK);
    float back[6];
    buffer_download(&device, back, &buffers[3], 0, sizeof back);
    NPU_CHECK(back[0] == 1 && back[1] == 0 && back[4] == 5);
    device.free(device.ctx, &buffers[0]);
    device.free(device.ctx, &buffers[3]);
    NPU_CHECK_EQ(npu_sim_count(sim).live_buffers, 0);
    NPU_CHECK_EQ(npu_sim_count(sim).live_programs, 0);
    npu_sim_destroy(sim);
}

/* What a kernel found reaches the message of a run on a device, and of a call of one op by a group of it. */
static void test_words_of_a_device(void)
{
    npu_sim_desc desc = { .emulate = npu_ref_backend(), .emulate_all = true };
    rig r = rig_start(&desc, 1);
    float x[8] = { 1, 0, 0, 1, 1, 2, 2, 4 }, y[8];
    npu_value a = npu_input(r.graph, "x", F32(2, 2, 2));
    npu_arg arg = npu_arg_tensor("A", a);
    npu_output(r.graph, "y", npu_op_result(r.graph, npu_emit_name(r.graph, "aten.linalg_inv", &arg, 1), 0));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, (npu_op){ 1 }, NULL, NULL), 0);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_NUMERICAL);
    NPU_CHECK_THAT(strstr(npu_exec_diag(r.exec)->message, ": matrix 1 of 0 to 1 is singular (A 'x'") != NULL, "%s",
                   npu_exec_diag(r.exec)->message);
    rig_end(&r);
    npu_backend cpu = *npu_ref_backend();
    npu_buffer buffers[2];
    npu_tensor t[2];
    npu_diag diag;
    cpu.op_call = NULL;
    npu_tensor_set_host(&t[0], &buffers[0], NPU_F32, 3, DIMS(2, 2, 2), x);
    npu_tensor_set_host(&t[1], &buffers[1], NPU_F32, 3, DIMS(2, 2, 2), y);
    NPU_CHECK_STATUS(npu_op_call(&cpu, NPU_TEST_CALL(NPU_ATEN_LINALG_INV, t, 1, &t[1], 1, 0, NULL, 0), &diag),
                     NPU_ERR_NUMERICAL);
    NPU_CHECK_STR(diag.message, "aten.linalg_inv.default on cpu: no result for these numbers: matrix 1 of 0 to 1 is "
                                "singular (A f32[2,2,2])");
}

/* A device without op_call that cannot do it, in each of its slots; it gets scratch as it asks for it. */
static void test_op_call_group_fails(void)
{
    static const struct { npu_sim_desc desc; npu_sim_slot slot; npu_status status; const char *words; } rows[] = {
        { { 0 }, NPU_SIM_SLOTS, NPU_OK, "" },
        { { .op_scratch = 100 }, NPU_SIM_SLOTS, NPU_OK, "" },
        { { .scratch = 100, .op_scratch = 200, .worker_scratch = 50 }, NPU_SIM_SLOTS, NPU_OK, "" },
        { { .refuse = "aten.relu.default" }, NPU_SIM_SLOTS, NPU_ERR_NOT_IMPLEMENTED, "cannot compile it" },
        { { 0 }, NPU_SIM_COMPILE, NPU_ERR_BACKEND, "cannot compile it" },
        { { .scratch = 100 }, NPU_SIM_ALLOC, NPU_ERR_NO_MEMORY, "" },
        { { .op_scratch = 100 }, NPU_SIM_ALLOC, NPU_ERR_NO_MEMORY, "" },
        { { 0 }, NPU_SIM_PLACE, NPU_ERR_BACKEND, "" },
        { { 0 }, NPU_SIM_SUBMIT, NPU_ERR_BACKEND, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float x[4] = { 1, -2, 3, -4 }, y[4] = { 0 };
        npu_sim *sim = NULL;
        npu_buffer buffers[2];
        npu_tensor t[2];
        npu_diag diag;
        NPU_CHECK_STATUS(npu_sim_create(&sim, &rows[i].desc), NPU_OK);
        npu_backend device = *npu_sim_backend(sim);
        device.op_call = NULL;
        for (int k = 0; k < 2; k++) {
            npu_tensor_set_host(&t[k], &buffers[k], NPU_F32, 1, DIMS(4), x);
            NPU_CHECK_STATUS(buffer_alloc(&device, 0, sizeof x, &buffers[k]), NPU_OK);
        }
        buffer_upload(&device, &buffers[0], 0, x, sizeof x);
        if (rows[i].slot != NPU_SIM_SLOTS) {
            npu_sim_fail(sim, rows[i].slot, 1, rows[i].status);
        }
        NPU_CHECK_STATUS(npu_op_call(&device, NPU_TEST_CALL(NPU_ATEN_RELU, &t[0], 1, &t[1], 1, 0, NULL, 0), &diag),
                         rows[i].status);
        NPU_CHECK_THAT(strstr(diag.message, rows[i].words), "row %u: '%s'", (unsigned)i, diag.message);
        buffer_download(&device, y, &buffers[1], 0, sizeof y);
        NPU_CHECK(rows[i].status || (y[0] == 1 && y[1] == 0 && y[2] == 3 && y[3] == 0));
        device.free(device.ctx, &buffers[0]);
        device.free(device.ctx, &buffers[1]);
        NPU_CHECK_EQ(npu_sim_count(sim).live_buffers, 0);
        NPU_CHECK_EQ(npu_sim_count(sim).live_programs, 0);
        npu_sim_destroy(sim);
    }
}

/* A layer that claims another shape than its op gives. */
static npu_value emit_wrong(const npu_layer *layer, npu_graph *g, const npu_value *x, uint32_t num_x)
{
    npu_spec wrong = F32(3, 2);
    npu_arg arg = npu_arg_tensor("x", x[0]);
    (void)layer;
    (void)num_x;
    return npu_op_result(g, npu_emit_typed(g, "aicf.relu", &arg, 1, &wrong, 1), 0);
}

/* The order of the device-kind document: dump the IR, call the op alone, then run the model; and a shape that is wrong
   shows in the first. */
static void test_debug_order(void)
{
    NPU_ITEM("S2.55");
    NPU_ITEM("S2.58");
    float x[6] = { 1, -2, 3, -4, 5, -6 }, y[6];
    npu_buffer buffers[2];
    npu_tensor in, out;
    npu_model *m = npu_model_create(&(npu_model_desc){ .dialect = NPU_DIALECT_AICF });
    npu_graph *g = npu_model_graph(m);
    npu_layer wrong = { "wrong", emit_wrong };
    npu_layer_relu act = npu_layer_relu_init("act");
    npu_value v = npu_model_input(m, "x", F32(2, 3));
    NPU_CHECK_EQ(npu_model_add(m, &wrong, v).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(npu_graph_diag(g)->message, "relu"));
    npu_graph_clear_error(g);
    npu_model_output(m, "y", npu_model_add(m, &act.base, v));
    npu_text dump = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print_short(g, &dump), NPU_OK);
    NPU_CHECK(dump.data && strstr(dump.data, "relu(x) -> "));
    npu_text_free(&dump);
    npu_tensor_set_host(&in, &buffers[0], NPU_F32, 2, DIMS(2, 3), x);
    npu_tensor_set_host(&out, &buffers[1], NPU_F32, 2, DIMS(2, 3), y);
    NPU_CHECK_STATUS(call(NPU_AICF_RELU, &in, 1, &out, 1, NULL, 0, NULL), NPU_OK);
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    npu_test_input(exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    NPU_CHECK(memcmp(npu_exec_output(exec, 0, NULL), y, sizeof y) == 0 && y[1] == 0 && y[4] == 5);
    npu_exec_destroy(exec);
    npu_model_destroy(m);
}

int main(void)
{
    NPU_RUN(test_quick_start);
    NPU_RUN(test_quick_start_from_text);
    NPU_RUN(test_weights_without_ops);
    NPU_RUN(test_empty_weights);
    NPU_RUN(test_bindings);
    NPU_RUN(test_bad_bindings);
    NPU_RUN(test_unaligned);
    NPU_RUN(test_odd_outputs);
    NPU_RUN(test_empty_tensors);
    NPU_RUN(test_states);
    NPU_RUN(test_state_errors);
    NPU_RUN(test_cancel);
    NPU_RUN(test_timeout);
    NPU_RUN(test_kernel_errors);
    NPU_RUN(test_default_clock);
    NPU_RUN(test_profile);
    NPU_RUN(test_trace);
    NPU_RUN(test_weights_once);
    NPU_RUN(test_weights_bound_again);
    NPU_RUN(test_partitions_alone);
    NPU_RUN(test_widths);
    NPU_RUN(test_two_threads);
    NPU_RUN(test_one_run_at_a_time);
    NPU_RUN(test_graphs_end_in_threads);
    NPU_RUN(test_spinning);
    NPU_RUN(test_graph_goes_first);
    NPU_RUN(test_no_allocation);
    NPU_RUN(test_debug_order);
    NPU_RUN(test_op_call);
    NPU_RUN(test_op_call_tensors);
    NPU_RUN(test_op_call_empty);
    NPU_RUN(test_op_call_refused);
    NPU_RUN(test_op_call_data);
    NPU_RUN(test_op_call_fed);
    NPU_RUN(test_op_call_message);
    NPU_RUN(test_op_call_by_group);
    NPU_RUN(test_words_of_a_device);
    NPU_RUN(test_op_call_group_fails);
    return npu_test_done();
}
