/* 14_quantise: a trained classifier in 8 and 4 bits. It is calibrated on the 40 images that ship with it, and measured on its test
   set: how many digits it names, what its weights take, how long an image takes, and what quantising did to each value and op.
   The net of 8 bits then runs on a simulated accelerator, whole.
   cc -O2 -I.. 14_quantise.c -lm -lpthread      (run it from the repository's root) */
#define main digits_main /* its model, weights and images are those of that example */
#include "02_digits.c"
#undef main

enum { SHIPPED = 40 };

/* ---- measuring ---- */

static void check(npu_status status, const npu_diag *diag)
{
    if (status) {
        fprintf(stderr, "%s\n", diag->message);
        exit(1);
    }
}

/* Bytes of parameters and constants that ops read. */
static uint64_t weight_bytes(const npu_graph *g)
{
    npu_graph_stats stats = npu_graph_get_stats(g);
    return stats.param_bytes + stats.constant_bytes;
}

/* The share of the test set that is named right, in percent. */
static double accuracy(const char *what, const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends,
                      const uint8_t *set)
{
    uint32_t count = (uint32_t)little(set + 4, 4);
    npu_spec spec = npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE });
    static float image[PIXELS], score[CLASSES];
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    uint32_t right = 0;
    check(npu_exec_create_simple(&exec, g, backends, num_backends, &diag), &diag);
    npu_exec_set_input(exec, &(npu_array){ "image", spec, image });
    npu_exec_set_output(exec, "digit", score, sizeof score);
    clock_t start = clock();
    for (uint32_t i = 0; i < count; i++) {
        int best = 0;
        for (int k = 0; k < PIXELS; k++) {
            image[k] = (float)set[16 + count + (size_t)i * PIXELS + (size_t)k] / 255.0f;
        }
        check(npu_exec_run(exec), npu_exec_diag(exec));
        for (int k = 1; k < CLASSES; k++) {
            best = score[k] > score[best] ? k : best;
        }
        right += best == set[16 + i];
    }
    printf("%-36s %6.2f %% of %u right, %7llu bytes of weights, %.3f ms per image\n", what, 100.0 * right / count, (unsigned)count,
           (unsigned long long)weight_bytes(g), 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / count);
    npu_exec_destroy(exec);
    return 100.0 * right / count;
}

/* The plan, which has no step on the CPU, and what it makes of the test set. */
static double measure_on_accelerator(const npu_graph *g, const uint8_t *set)
{
    npu_sim *sim = NULL;
    npu_sim_desc desc = { .name = "npu0", .emulate = npu_ref_backend() };
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    check(npu_sim_create(&sim, &desc), &diag);
    const npu_backend *backends[] = { npu_sim_backend(sim), npu_ref_backend() };
    check(npu_plan_create(&plan, g, &(npu_plan_desc){ .backends = backends, .num_backends = 2 }, &diag), &diag);
    npu_text text = npu_text_init(NULL);
    npu_plan_print(plan, &text);
    printf("\n%s", text.data);
    npu_text_free(&text);
    npu_plan_destroy(plan);
    double right = accuracy("8 bits, on the accelerator", g, backends, 2, set);
    npu_sim_destroy(sim);
    return right;
}

static void print_report(void *ctx, const npu_quantize_report *report)
{
    npu_text text = npu_text_init(NULL);
    (void)ctx;
    npu_quantize_report_print(report, &text);
    printf("%s\n", text.data ? text.data : "");
    npu_text_free(&text);
}

/* The graph of ops on integers. */
static npu_graph *to_integer(const npu_graph *g, const npu_quantize_desc *desc)
{
    npu_optimize_desc integer = { .backends = desc->backends, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER };
    npu_graph *quantised = NULL, *out = NULL;
    npu_diag diag = { 0 };
    check(npu_graph_quantize(&quantised, g, desc, &diag), &diag);
    check(npu_graph_optimize(&out, quantised, &integer, NULL, &diag), &diag);
    npu_graph_destroy(quantised);
    return out;
}

int main(void)
{
    static float images[SHIPPED][PIXELS];
    static npu_array inputs[SHIPPED];
    const npu_backend *cpu = npu_ref_backend();
    npu_model *m = classifier();
    npu_graph *g = npu_model_graph(m), *made;
    npu_diag diag = { 0 };
    size_t size, set_size;
    uint8_t *weights = read_file(DIGITS "digits.weights", &size), *set = read_file(DIGITS "test_set.bin", &set_size);
    uint32_t count = set_size > 16 ? (uint32_t)little(set + 4, 4) : 0;
    double right[5];
    if (!weights || bind_weights(g, weights, size) || count == 0 || set_size < 16 + (size_t)count * (1 + PIXELS)) {
        fprintf(stderr, DIGITS "digits.weights or " DIGITS "test_set.bin cannot be read\n");
        return 1;
    }
    for (int i = 0; i < SHIPPED; i++) {
        uint8_t pixels[PIXELS];
        if (!read_pgm(shipped[i], pixels)) {
            fprintf(stderr, "%s is no binary PGM of %d x %d\n", shipped[i], SIDE, SIDE);
            return 1;
        }
        for (int k = 0; k < PIXELS; k++) {
            images[i][k] = (float)pixels[k] / 255.0f;
        }
        inputs[i] = (npu_array){ "image", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE }), images[i] };
    }
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .inputs = inputs, .num_samples = SHIPPED };

    right[0] = accuracy("f32", g, &cpu, 1, set);
    desc.per_tensor = true;
    made = to_integer(g, &desc);
    right[1] = accuracy("8 bits, weights with one scale", made, &cpu, 1, set);
    npu_graph_destroy(made);
    desc.per_tensor = false;
    desc.form = NPU_QUANTIZE_WEIGHTS4;
    check(npu_graph_quantize(&made, g, &desc, &diag), &diag);
    right[2] = accuracy("weights of linears in 4 bits", made, &cpu, 1, set);
    npu_graph_destroy(made);
    desc.form = NPU_QUANTIZE_8BIT;
    desc.num_measured = 4;
    desc.report = print_report;
    made = to_integer(g, &desc);
    right[3] = accuracy("8 bits, a scale per channel", made, &cpu, 1, set);
    right[4] = measure_on_accelerator(made, set);
    npu_graph_destroy(made);
    npu_model_destroy(m);
    free(weights);
    free(set);
    return right[0] < 99.5 || right[3] < 99.4 || right[1] < 99.3 || right[2] < 99.2 || right[4] != right[3];
}
