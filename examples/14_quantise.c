/* 14_quantise: two trained classifiers in 8 and 4 bits: that of 02_digits, and one of depthwise-separable convolutions, whose
   channels differ so much that one scale for all of them is not enough (quantise/train.py). They are calibrated on the 40 images
   that ship with the first, and measured on images they never saw: how many digits they name, what their weights take, how long
   an image takes, and what quantising did to each value and op. The nets of 8 bits then run on a simulated accelerator, whole.
   cc -O2 -I.. 14_quantise.c -lm -lpthread      (run it from the repository's root) */
#define main digits_main /* its model, weights and images are those of that example */
#include "02_digits.c"
#undef main

enum { SHIPPED = 40, NUM_BLOCKS = 5, TRAINED = 1500 }; /* the depthwise net learnt from the first images of the set */

/* Images that a net never saw: those of the set (see digits/README.md) from `first` on. */
typedef struct test_set {
    const uint8_t *data;
    uint32_t count, first;
} test_set;

/* ---- the depthwise net ---- */

/* Convolution without a bias, batch norm, relu6. */
static npu_value unit(npu_model *m, npu_value x, const char *name, int64_t groups, int64_t out, int64_t kernel, int64_t stride)
{
    npu_graph *g = npu_model_graph(m);
    int64_t in = npu_value_spec(g, x)->dims[1];
    char norm[16];
    snprintf(norm, sizeof norm, "%s_bn", name);
    npu_layer_conv2d c = npu_layer_conv2d_init(name, in, out, kernel);
    npu_layer_batch_norm n = npu_layer_batch_norm_init(norm, out);
    c.no_bias = true;
    c.attrs = (npu_conv2d_attrs){ .stride = { stride, stride }, .padding = { kernel / 2, kernel / 2 }, .groups = groups };
    return npu_relu6(g, npu_model_add(m, &n.base, npu_model_add(m, &c.base, x)));
}

static npu_model *depthwise_classifier(void)
{
    static const int64_t channels[NUM_BLOCKS + 1] = { 16, 32, 48, 64, 80, 96 }, strides[NUM_BLOCKS] = { 2, 1, 2, 1, 1 };
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_value x = npu_model_input(m, "image", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE }));
    x = unit(m, x, "stem", 1, channels[0], 3, 1);
    for (int i = 0; i < NUM_BLOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "dw%d", i);
        x = unit(m, x, name, channels[i], channels[i], 3, strides[i]);
        snprintf(name, sizeof name, "pw%d", i);
        x = unit(m, x, name, 1, channels[i + 1], 1, 1);
    }
    x = npu_mean(g, x, (int64_t[]){ 2, 3 }, 2, false);
    npu_model_output(m, "digit", npu_softmax(g, dense(g, x, "fc.weight", "fc.bias", channels[NUM_BLOCKS], CLASSES), -1));
    return m;
}

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

/* The share of the images that is named right, in percent. */
static double accuracy(const char *what, const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends,
                      const test_set *set)
{
    uint32_t count = set->count - set->first;
    const uint8_t *labels = set->data + 16 + set->first, *pixels = set->data + 16 + set->count + (size_t)set->first * PIXELS;
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
            image[k] = (float)pixels[(size_t)i * PIXELS + (size_t)k] / 255.0f;
        }
        check(npu_exec_run(exec), npu_exec_diag(exec));
        for (int k = 1; k < CLASSES; k++) {
            best = score[k] > score[best] ? k : best;
        }
        right += best == labels[i];
    }
    printf("%-36s %6.2f %% of %u right, %7llu bytes of weights, %.3f ms per image\n", what, 100.0 * right / count, (unsigned)count,
           (unsigned long long)weight_bytes(g), 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / count);
    npu_exec_destroy(exec);
    return 100.0 * right / count;
}

/* The plan, which has no step on the CPU, and what it makes of the images. */
static double measure_on_accelerator(const npu_graph *g, const test_set *set)
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

/* What is right in percent. */
typedef struct shares {
    double f32, per_channel, per_tensor, weights4, accelerator;
} shares;

/* A net in all forms; the model is released. */
static shares measure_forms(npu_model *m, const char *weights_path, npu_quantize_desc desc, const test_set *set)
{
    npu_graph *g = npu_model_graph(m), *made;
    npu_diag diag = { 0 };
    size_t size;
    uint8_t *weights = read_file(weights_path, &size);
    shares right;
    if (!weights || bind_weights(g, weights, size)) {
        fprintf(stderr, "%s cannot be read\n", weights_path);
        exit(1);
    }
    right.f32 = accuracy("f32", g, desc.backends, 1, set);
    desc.per_tensor = true;
    made = to_integer(g, &desc);
    right.per_tensor = accuracy("8 bits, weights with one scale", made, desc.backends, 1, set);
    npu_graph_destroy(made);
    desc.per_tensor = false;
    desc.form = NPU_QUANTIZE_WEIGHTS4;
    check(npu_graph_quantize(&made, g, &desc, &diag), &diag);
    right.weights4 = accuracy("weights of linears in 4 bits", made, desc.backends, 1, set);
    npu_graph_destroy(made);
    desc.form = NPU_QUANTIZE_8BIT;
    desc.num_measured = 4;
    desc.report = print_report;
    made = to_integer(g, &desc);
    right.per_channel = accuracy("8 bits, a scale per channel", made, desc.backends, 1, set);
    right.accelerator = measure_on_accelerator(made, set);
    npu_graph_destroy(made);
    npu_model_destroy(m);
    free(weights);
    return right;
}

int main(void)
{
    static float images[SHIPPED][PIXELS];
    static npu_array inputs[SHIPPED];
    const npu_backend *cpu = npu_ref_backend();
    size_t size;
    uint8_t *data = read_file(DIGITS "test_set.bin", &size);
    test_set set = { data, size > 16 ? (uint32_t)little(data + 4, 4) : 0, 0 };
    if (set.count <= TRAINED || size < 16 + (size_t)set.count * (1 + PIXELS)) {
        fprintf(stderr, DIGITS "test_set.bin cannot be read\n");
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

    printf("digits\n");
    shares right = measure_forms(classifier(), DIGITS "digits.weights", desc, &set);
    bool failed = right.f32 < 99.5 || right.per_channel < 99.4 || right.per_tensor < 99.3 || right.weights4 < 99.2 ||
                  right.accelerator != right.per_channel;
    printf("\ndepthwise\n");
    set.first = TRAINED;
    right = measure_forms(depthwise_classifier(), "examples/quantise/depthwise.weights", desc, &set);
    failed = failed || right.f32 < 99.0 || right.per_channel < right.f32 - 1.0 || right.weights4 < right.f32 - 1.0 ||
             right.per_tensor > right.per_channel - 2.0 || right.accelerator != right.per_channel;
    free(data);
    return failed;
}
