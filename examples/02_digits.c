/* 02_digits: a trained convolutional classifier, split between a (simulated) accelerator and the CPU. It prints the plan with the
   reason for every op that stays on the CPU, names the digits in the PGM files given (or in those that ship with it, drawn in
   fonts the classifier never saw), and measures its accuracy on the test set.
   cc -O2 -I.. 02_digits.c -lm -lpthread      (run it from the repository's root)
   usage: 02_digits [file.pgm ...] */
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
enum { SIDE = 28, PIXELS = SIDE * SIDE, BATCH = 1, CLASSES = 10 };

/* ---- files ---- */

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long end;
    *size = 0;
    if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0) {
        rewind(file);
        data = malloc((size_t)end);
        if (data && fread(data, 1, (size_t)end, file) == (size_t)end) {
            *size = (size_t)end;
        } else {
            free(data);
            data = NULL;
        }
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

/* Binds every tensor of a weights file ("NPUW", see digits/README.md) to the parameter of its name. The data stays in the file's
   memory, which must outlive the program. */
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
        for (uint64_t k = 0; k < len; k++) { /* little-endian floats, in place */
            uint32_t bits = (uint32_t)little(p + 4 * k, 4);
            memcpy(p + 4 * k, &bits, 4);
        }
        npu_status status = npu_graph_bind_param(g, name, p, len * 4);
        if (status) {
            return status;
        }
        p += len * 4;
    }
    return count ? NPU_OK : NPU_ERR_PARSE;
}

/* A binary PGM of 28 x 28 pixels. */
static bool read_pgm(const char *path, uint8_t pixels[PIXELS])
{
    FILE *file = fopen(path, "rb");
    int width = 0, height = 0, max = 0;
    bool ok = file && fscanf(file, "P5 %d %d %d", &width, &height, &max) == 3 && fgetc(file) != EOF && width == SIDE && height == SIDE &&
              max == 255 && fread(pixels, 1, PIXELS, file) == PIXELS;
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
    npu_value x = npu_model_input(m, "image", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ BATCH, 1, SIDE, SIDE }));
    x = stage(m, x, "conv1", "bn1", 1, 16);
    x = stage(m, x, "conv2", "bn2", 16, 32);
    x = npu_relu(g, dense(g, npu_flatten(g, x, 1, -1), "fc1.weight", "fc1.bias", 1568, 64));
    npu_model_output(m, "digit", npu_softmax(g, dense(g, x, "fc2.weight", "fc2.bias", 64, CLASSES), -1));
    return m;
}

/* ---- running ---- */

typedef struct session {
    npu_exec *exec;
    float image[PIXELS], score[CLASSES];
} session;

static void bind_image(session *s)
{
    npu_spec spec = npu_spec_tensor(NPU_F32, 4, (int64_t[]){ BATCH, 1, SIDE, SIDE });
    npu_exec_set_input(s->exec, &(npu_array){ "image", spec, s->image });
}

static int classify(session *s, const uint8_t *pixels)
{
    int best = 0;
    for (int i = 0; i < PIXELS; i++) {
        s->image[i] = (float)pixels[i] / 255.0f;
    }
    if (npu_exec_run(s->exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(s->exec)->message);
        exit(1);
    }
    for (int i = 1; i < CLASSES; i++) {
        best = s->score[i] > s->score[best] ? i : best;
    }
    return best;
}

static int name_files(session *s, int num_files, char **files)
{
    int failed = 0;
    for (int i = 0; i < num_files; i++) {
        uint8_t pixels[PIXELS];
        if (!read_pgm(files[i], pixels)) {
            printf("  %-60s is no binary PGM of %d x %d\n", files[i], SIDE, SIDE);
            failed = 1;
            continue;
        }
        int digit = classify(s, pixels);
        printf("  %-60s %d  (%.1f %%)\n", files[i], digit, 100 * (double)s->score[digit]);
    }
    return failed;
}

/* The same model on the CPU alone: the simulated accelerator is plain and slow, and 2,500 images are many. */
static int measure(const npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    static session s;
    npu_diag diag = { 0 };
    size_t size;
    uint8_t *set = read_file(DIGITS "test_set.bin", &size);
    uint32_t count = set && size > 16 ? (uint32_t)little(set + 4, 4) : 0, right = 0;
    if (npu_exec_create_simple(&s.exec, g, &cpu, 1, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        free(set);
        return 1;
    }
    bind_image(&s);
    npu_exec_set_output(s.exec, "digit", s.score, sizeof s.score);
    clock_t start = clock();
    if (count == 0 || size < 16 + (size_t)count * (1 + PIXELS)) {
        fprintf(stderr, DIGITS "test_set.bin cannot be read\n");
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        right += classify(&s, set + 16 + count + (size_t)i * PIXELS) == set[16 + i];
    }
    if (count) {
        printf("test set, on the CPU alone: %u of %u right (%.2f %%), %.3f ms per image\n", (unsigned)right, (unsigned)count,
               100.0 * right / count, 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC / count);
    }
    npu_exec_destroy(s.exec);
    free(set);
    return count == 0 || right * 100.0 < 97.0 * count;
}

/* 40 images ship, four per digit; their names say what they show and in which font. */
static const char *const shipped[] = {
#include "digits/images.inc"
};

int main(int argc, char **argv)
{
    /* What this accelerator cannot do: everything else of the model it claims. */
    static const char *const missing[] = { "aten.max_pool2d.default", "aten.softmax.int" };
    npu_sim_desc sim_desc = { .name = "npu0", .deny = missing, .num_deny = 2 };
    npu_sim *sim = NULL;
    npu_model *m = classifier();
    npu_graph *g = npu_model_graph(m);
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_diag diag = { 0 };
    static session s;
    size_t size;
    uint8_t *weights = read_file(DIGITS "digits.weights", &size);
    npu_text text = npu_text_init(NULL);
    int failed;

    if (!weights || bind_weights(g, weights, size) || npu_graph_status(g)) {
        fprintf(stderr, "%s\n", weights ? npu_graph_diag(g)->message : DIGITS "digits.weights cannot be read");
        return 1;
    }
    npu_status status = npu_sim_create(&sim, &sim_desc);
    const npu_backend *backends[] = { sim ? npu_sim_backend(sim) : npu_ref_backend(), npu_ref_backend() };
    npu_plan_desc plan_desc = { .backends = backends, .num_backends = 2 };
    if (status || npu_plan_create(&plan, g, &plan_desc, &diag) || npu_program_create(&program, plan, &diag) ||
        npu_exec_create(&s.exec, program, NULL, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    bind_image(&s);
    npu_exec_set_output(s.exec, "digit", s.score, sizeof s.score);

    npu_plan_print(npu_program_plan(program), &text);
    printf("%s\nimages, on the accelerator and the CPU:\n", text.data);
    clock_t start = clock();
    failed = argc > 1 ? name_files(&s, argc - 1, argv + 1)
                      : name_files(&s, (int)(sizeof shipped / sizeof *shipped), (char **)(uintptr_t)shipped);
    printf("%.3f ms of processor time in all\n\n", 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    failed |= argc > 1 ? 0 : measure(g);

    npu_text_free(&text);
    npu_exec_destroy(s.exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_model_destroy(m);
    npu_sim_destroy(sim);
    free(weights);
    return failed;
}
