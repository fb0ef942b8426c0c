/* 14_quantise: a trained classifier in 8 and 4 bits. It is calibrated on the 40 images that ship with it, and measured on its test
   set: how many digits it names, what its weights take, how long an image takes, and what quantising did to each value and op.
   The net of 8 bits then runs on a simulated accelerator, whole.
   cc -O2 -I.. 14_quantise.c -lm -lpthread      (run it from the repository's root) */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#define NPU_SIM_IMPLEMENTATION
#include "sim/npu_sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DIGITS "examples/digits/"
enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, SHIPPED = 40 };

static const char *const shipped[] = {
#include "digits/images.inc"
};

/* ---- files ---- */

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long end;
    *size = 0;
    if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0) {
        rewind(file);
        data = malloc((size_t)end);
        *size = data ? fread(data, 1, (size_t)end, file) : 0;
    }
    if (file) {
        fclose(file);
    }
    return data;
}

static uint64_t little(const uint8_t *p, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes; i-- > 0;) {
        x = x << 8 | p[i];
    }
    return x;
}

/* Binds every tensor of a weights file ("NPUW", see digits/README.md), which stays where it is. */
static npu_status bind_weights(npu_graph *g, uint8_t *file, size_t size)
{
    const uint8_t *end = file + size;
    uint8_t *p = file + 12;
    uint32_t count = size >= 12 && memcmp(file, "NPUW", 4) == 0 ? (uint32_t)little(file + 8, 4) : 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[64];
        uint64_t name_len = end - p >= 4 ? little(p, 4) : sizeof name, rank, len = 1;
        if (name_len >= sizeof name || (uint64_t)(end - p) < 8 + name_len) {
            return NPU_ERR_PARSE;
        }
        memcpy(name, p + 4, name_len);
        name[name_len] = 0;
        rank = little(p + 4 + name_len, 4);
        p += 8 + name_len;
        for (uint64_t d = 0; d < rank && end - p >= 8; d++, p += 8) {
            len *= little(p, 8);
        }
        if (rank > NPU_MAX_RANK || len > (uint64_t)(end - p) / 4) {
            return NPU_ERR_PARSE;
        }
        for (uint64_t k = 0; k < len; k++) {
            uint32_t bits = (uint32_t)little(p + 4 * k, 4);
            memcpy(p + 4 * k, &bits, 4);
        }
        if (npu_graph_bind_param(g, name, p, len * 4)) {
            return NPU_ERR_NOT_FOUND;
        }
        p += len * 4;
    }
    return count ? NPU_OK : NPU_ERR_PARSE;
}

static bool read_pgm(const char *path, float *image)
{
    uint8_t pixels[PIXELS];
    int width = 0, height = 0, max = 0;
    FILE *file = fopen(path, "rb");
    bool ok = file && fscanf(file, "P5 %d %d %d", &width, &height, &max) == 3 && fgetc(file) != EOF && width == SIDE && height == SIDE &&
              fread(pixels, 1, PIXELS, file) == PIXELS;
    for (int i = 0; i < PIXELS && ok; i++) {
        image[i] = (float)pixels[i] / 255.0f;
    }
    if (file) {
        fclose(file);
    }
    return ok;
}

/* ---- the model ---- */

static npu_value stage(npu_model *m, npu_value x, const char *conv, const char *bn, int64_t in, int64_t out)
{
    npu_layer_conv2d c = npu_layer_conv2d_init(conv, in, out, 3);
    npu_layer_batch_norm n = npu_layer_batch_norm_init(bn, out);
    npu_max_pool2d_attrs pool = { .kernel_size = { 2, 2 } };
    npu_graph *g = npu_model_graph(m);
    c.attrs.padding[0] = c.attrs.padding[1] = 1;
    return npu_max_pool2d(g, npu_relu(g, npu_model_add(m, &n.base, npu_model_add(m, &c.base, x))), &pool);
}

static npu_value dense(npu_graph *g, npu_value x, const char *weight, const char *bias, int64_t in, int64_t out)
{
    npu_value w = npu_param(g, weight, npu_spec_tensor(NPU_F32, 2, (int64_t[]){ out, in }));
    npu_value b = npu_param(g, bias, npu_spec_tensor(NPU_F32, 1, (int64_t[]){ out }));
    return npu_linear(g, x, w, b);
}

static npu_model *classifier(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_value x = npu_model_input(m, "image", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE }));
    x = stage(m, x, "conv1", "bn1", 1, 16);
    x = stage(m, x, "conv2", "bn2", 16, 32);
    x = npu_relu(g, dense(g, npu_flatten(g, x, 1, -1), "fc1.weight", "fc1.bias", 1568, 64));
    npu_model_output(m, "digit", npu_softmax(g, dense(g, x, "fc2.weight", "fc2.bias", 64, CLASSES), -1));
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

/* The share of the test set that is named right, in percent. */
static double measure(const char *what, const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends,
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
    double right = measure("8 bits, on the accelerator", g, backends, 2, set);
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
        if (!read_pgm(shipped[i], images[i])) {
            fprintf(stderr, "%s is no binary PGM of %d x %d\n", shipped[i], SIDE, SIDE);
            return 1;
        }
        inputs[i] = (npu_array){ "image", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE }), images[i] };
    }
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .inputs = inputs, .num_samples = SHIPPED };

    right[0] = measure("f32", g, &cpu, 1, set);
    desc.per_tensor = true;
    made = to_integer(g, &desc);
    right[1] = measure("8 bits, weights with one scale", made, &cpu, 1, set);
    npu_graph_destroy(made);
    desc.per_tensor = false;
    desc.form = NPU_QUANTIZE_WEIGHTS4;
    check(npu_graph_quantize(&made, g, &desc, &diag), &diag);
    right[2] = measure("weights of linears in 4 bits", made, &cpu, 1, set);
    npu_graph_destroy(made);
    desc.form = NPU_QUANTIZE_8BIT;
    desc.num_measured = 4;
    desc.report = print_report;
    made = to_integer(g, &desc);
    right[3] = measure("8 bits, a scale per channel", made, &cpu, 1, set);
    right[4] = measure_on_accelerator(made, set);
    npu_graph_destroy(made);
    npu_model_destroy(m);
    free(weights);
    free(set);
    return right[0] < 99.5 || right[3] < 99.4 || right[1] < 99.3 || right[2] < 99.2 || right[4] != right[3];
}
