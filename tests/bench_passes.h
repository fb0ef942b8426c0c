/* bench_passes.h - what the optimising passes cost and bring: part of bench.c. */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

/* ---- the models of the examples ---- */

#define NPU_IR_IMPLEMENTATION_DONE /* linked in already */
#define NPU_IR_BACKEND_REF_DONE
#define main digits_main
#define measure digits_measure
#include "../examples/02_digits.c"
#undef main
#undef measure
#define main resnet_main
#include "../examples/03_resnet18.c"
#undef main
#define main encoder_main
#define is_norm encoder_is_norm
#define CLASSES ENCODER_CLASSES
#include "../examples/04_transformer.c"
#undef main
#undef CLASSES
#undef is_norm

static npu_model *bound_digits(void)
{
    npu_model *m = classifier();
    size_t size = 0;
    uint8_t *file = (uint8_t *)read_file(DIGITS "digits.weights", &size); /* stays: the weights are used where they lie */
    require(file ? bind_weights(npu_model_graph(m), file, size) : NPU_ERR_IO, "digits.weights");
    return m;
}

static npu_model *bound_resnet(void)
{
    npu_model *m = resnet18();
    require(reference_bind(npu_model_graph(m), NULL, resnet18_is_norm) ? NPU_OK : NPU_ERR_NO_MEMORY, "resnet");
    return m;
}

static npu_model *bound_encoder(void)
{
    npu_model *m = encoder();
    require(reference_bind(npu_model_graph(m), torch_name, encoder_is_norm) ? NPU_OK : NPU_ERR_NO_MEMORY, "transformer");
    return m;
}

/* ---- running two graphs in turns ---- */

static npu_exec *exec_of(const npu_graph *g, bool no_inplace)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.no_inplace = no_inplace;
    require(npu_plan_create(&plan, g, &desc, &diag), diag.message);
    require(npu_program_create(&program, plan, &diag), diag.message); /* never freed: the program ends soon */
    require(npu_exec_create(&exec, program, NULL, &diag), diag.message);
    npu_plan_destroy(plan);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        size_t len = 0, size = 0;
        npu_spec_len(spec, &len);
        npu_spec_size(spec, &size);
        npu_array input = { NULL, *spec, spec->dtype == NPU_F32 ? (void *)numbers(len) : take(size) };
        require(npu_exec_set_input_at(exec, i, &input), "input");
    }
    return exec;
}

/* Medians of 9 rounds, in each of which both run for about `least` seconds. */
static void in_turns(npu_exec *const execs[2], double least, double seconds[2])
{
    double times[2][9];
    long calls = 1;
    for (double begin = now(); now() - begin < least && calls < 1000000; calls++) {
        run_exec(execs[0]);
        run_exec(execs[1]);
    }
    for (int k = 0; k < 9; k++) {
        for (int i = 0; i < 2; i++) {
            double begin = now();
            for (long n = 0; n < calls; n++) {
                run_exec(execs[i]);
            }
            times[i][k] = (now() - begin) / (double)calls;
        }
    }
    seconds[0] = median(times[0], 9);
    seconds[1] = median(times[1], 9);
}

static npu_graph *optimized(const npu_graph *g, uint32_t passes)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc;
    npu_graph *now = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.passes = passes;
    desc.frozen = true;
    require(npu_graph_optimize(&now, g, &desc, NULL, &diag), diag.message);
    return now;
}

static void bench_pair(const char *name, const npu_graph *g, uint32_t passes, bool no_inplace, double least)
{
    npu_graph *now = optimized(g, passes);
    npu_exec *execs[2];
    double seconds[2];
    execs[0] = exec_of(g, no_inplace);
    execs[1] = exec_of(now, no_inplace);
    in_turns(execs, least, seconds);
    printf("  %-42s %4u ops %8.3f ms %4u ops %8.3f ms %6.2fx\n", name, (unsigned)npu_graph_num_ops(g), seconds[0] * 1e3,
           (unsigned)npu_graph_num_ops(now), seconds[1] * 1e3, seconds[0] / seconds[1]);
    fflush(stdout);
    npu_exec_destroy(execs[0]);
    npu_exec_destroy(execs[1]);
}

/* ---- 8 elementwise ops over 16M elements ---- */

static npu_graph *elementwise8(void)
{
    const int64_t dims[2] = { 4096, 4096 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", npu_spec_tensor(NPU_F32, 2, dims)), b = npu_input(g, "b", npu_spec_tensor(NPU_F32, 2, dims));
    npu_value x = npu_mul(g, npu_relu(g, npu_add(g, a, b)), b);
    x = npu_abs(g, npu_mul(g, npu_sub(g, x, a), npu_number(g, npu_scalar_float(0.5))));
    npu_output(g, "y", npu_maximum(g, npu_add(g, x, a), b));
    return g;
}

/* ---- all passes on a large graph ---- */

static void bench_large(uint32_t num_ops)
{
    npu_graph *g = wide(num_ops), *after;
    double begin = now(), total;
    after = optimized(g, 0);
    total = now() - begin;
    printf("  all passes, %u ops to %u: %.0f ms:", (unsigned)npu_graph_num_ops(g), (unsigned)npu_graph_num_ops(after), total * 1e3);
    npu_graph_destroy(after);
    for (uint32_t id = 1; id < 32; id++) {
        npu_pass pass = npu_pass_init((npu_pass_id)id, NULL);
        begin = now();
        if (pass.run) {
            after = optimized(g, 1u << id);
            printf(" %s %.0f", pass.name, (now() - begin) * 1e3);
            npu_graph_destroy(after);
        }
    }
    printf("\n");
    fflush(stdout);
    npu_graph_destroy(g);
}

static void bench_passes(void)
{
    static const struct { const char *name; npu_model *(*make)(void); } models[] = {
        { "digits", bound_digits }, { "resnet18", bound_resnet }, { "transformer", bound_encoder }
    };
    npu_graph *g = elementwise8();
    printf("passes                                            before                after     gain\n");
    bench_large(100000);
    bench_pair("8 elementwise ops, 16M floats, in place", g, 1u << NPU_PASS_FUSE, false, 0.02);
    bench_pair("8 elementwise ops, 16M floats, not in place", g, 1u << NPU_PASS_FUSE, true, 0.02);
    npu_graph_destroy(g);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        npu_model *m = models[i].make();
        char name[64];
        snprintf(name, sizeof name, "%s, elementwise fusion", models[i].name);
        bench_pair(name, npu_model_graph(m), 1u << NPU_PASS_FUSE, false, 0.05);
        snprintf(name, sizeof name, "%s, all passes", models[i].name);
        bench_pair(name, npu_model_graph(m), 0, false, 0.05);
        npu_model_destroy(m);
    }
}

#endif
