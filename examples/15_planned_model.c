/* 15_planned_model: the digit classifier of 02_digits.c for a microcontroller, in f32 and in 8 bits. On this machine it is
   optimised, quantised on the images that ship with it, planned, and written as C code: the files digits_f32.h and digits_i8.h,
   beside digits_images.h with four images and what they come to here. examples/firmware/digits.c runs them where they lie.
   cc -O2 -I.. 15_planned_model.c -lm -lpthread      (run it from the repository's root)
   usage: 15_planned_model [folder for the files; without one nothing is written] */
#define main digits_main /* its model, weights and images are those of the example before */
#include "02_digits.c"
#undef main

enum { SAMPLES = 40, SHOWN = 4 };
static uint8_t pictures[SAMPLES][PIXELS];
static float samples[SAMPLES][PIXELS];
static uint64_t file_memory[1 << 16], arena[1 << 13];

static void stop(const char *what, const char *message)
{
    fprintf(stderr, "%s: %s\n", what, message);
    exit(1);
}

/* Batch norms folded, activations fused with what they follow; with `integer` ops on 8 bits. */
static npu_graph *optimised(const npu_graph *g, bool integer)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .rounding = NPU_ROUNDING_DOUBLE };
    npu_graph *out = NULL;
    npu_diag diag = { 0 };
    desc.passes = integer ? 1u << NPU_PASS_INTEGER : 1u << NPU_PASS_BATCH_NORM | 1u << NPU_PASS_NO_OPS | 1u << NPU_PASS_DEAD_CODE;
    if (npu_graph_optimize(&out, g, &desc, NULL, &diag)) {
        stop("optimise", diag.message);
    }
    return out;
}

static npu_graph *quantised(const npu_graph *g)
{
    static npu_array inputs[SAMPLES];
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .inputs = inputs, .num_samples = SAMPLES };
    npu_graph *q = NULL, *out;
    npu_diag diag = { 0 };
    for (int i = 0; i < SAMPLES; i++) {
        inputs[i].spec = npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE });
        inputs[i].data = samples[i];
    }
    if (npu_graph_quantize(&q, g, &desc, &diag)) {
        stop("quantise", diag.message);
    }
    out = optimised(q, true);
    npu_graph_destroy(q);
    return out;
}

/* The file, and the same as C code in folder/name.h. */
static void write_model(const npu_graph *g, const char *folder, const char *name, npu_text *file)
{
    const npu_backend *cpu = npu_ref_backend();
    const npu_planned_library *library = npu_ref_planned();
    npu_text code = npu_text_init(NULL), path = npu_text_init(NULL);
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan_write_desc desc = { .libraries = &library, .num_libraries = 1, .code = &code, .name = name };
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    if (npu_plan_create(&plan, g, &plan_desc, &diag) || npu_plan_write(plan, &desc, file, &diag)) {
        stop(name, diag.message);
    }
    npu_text_printf(&path, "%s/%s.h", folder ? folder : "", name);
    if (folder && npu_text_save(&code, path.data)) {
        stop(path.data, "cannot be written");
    }
    npu_plan_destroy(plan);
    npu_text_free(&code);
    npu_text_free(&path);
}

/* Runs all images as the microcontroller will; the first ones and their scores go to `images` as C code. */
static int run_model(const npu_text *file, const char *name, npu_text *images)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_planned_desc desc = { file_memory, file->len, arena, sizeof arena, library->kernels, library->num_kernels, 0, 0 };
    npu_planned model;
    int right = 0;
    memcpy(file_memory, file->data, file->len < sizeof file_memory ? file->len : sizeof file_memory);
    if (npu_planned_open(&model, &desc)) {
        stop(name, "does not open");
    }
    npu_text_printf(images, "static const uint32_t %s_scores[%d][%d] = {\n", name, SHOWN, CLASSES);
    for (int i = 0; i < SAMPLES; i++) {
        const float *score = npu_planned_data(&model, 1);
        int best = 0;
        memcpy(npu_planned_data(&model, 0), samples[i], sizeof samples[i]);
        npu_planned_run(&model);
        npu_text_printf(images, "%s", i < SHOWN ? "    {" : "");
        for (int k = 0; k < CLASSES; k++) {
            uint32_t bits;
            memcpy(&bits, &score[k], 4);
            best = score[k] > score[best] ? k : best;
            if (i < SHOWN) {
                npu_text_printf(images, " 0x%08lxu,", (unsigned long)bits);
            }
        }
        npu_text_printf(images, "%s", i < SHOWN ? " },\n" : "");
        right += best == shipped[i][sizeof DIGITS "images/00_" - 1] - '0'; /* 00_7_font.pgm shows a 7 */
    }
    npu_text_printf(images, "};\n");
    printf("%-10s %6lu bytes, arena %5lu, %7lu multiply-adds; %d of %d images right\n", name, (unsigned long)file->len,
           (unsigned long)model.head->arena_size, (unsigned long)model.head->work, right, SAMPLES);
    return right < SAMPLES - 2;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : NULL;
    npu_model *m = classifier();
    npu_graph *g = npu_model_graph(m), *f32, *i8;
    npu_text images = npu_text_init(NULL), path = npu_text_init(NULL), file = npu_text_init(NULL);
    size_t size;
    uint8_t *weights = read_file(DIGITS "digits.weights", &size);
    int failed;
    if (!weights || bind_weights(g, weights, size)) {
        stop(DIGITS "digits.weights", "cannot be read");
    }
    npu_text_printf(&images, "#include <stdint.h>\nstatic const uint8_t digits_images[%d][%d] = {\n", SHOWN, PIXELS);
    for (int i = 0; i < SAMPLES; i++) {
        if (!read_pgm(shipped[i], pictures[i])) {
            stop(shipped[i], "cannot be read");
        }
        for (int k = 0; k < PIXELS; k++) {
            samples[i][k] = (float)pictures[i][k] / 255.0f;
            if (i < SHOWN) {
                npu_text_printf(&images, "%s%d,", k ? "" : "    { ", pictures[i][k]);
            }
        }
        npu_text_printf(&images, "%s", i < SHOWN ? " },\n" : "");
    }
    npu_text_printf(&images, "};\n");
    f32 = optimised(g, false);
    i8 = quantised(f32);
    write_model(f32, folder, "digits_f32", &file);
    failed = run_model(&file, "digits_f32", &images);
    file.len = 0;
    write_model(i8, folder, "digits_i8", &file);
    failed |= run_model(&file, "digits_i8", &images);
    npu_text_printf(&path, "%s/digits_images.h", folder ? folder : "");
    failed |= folder && npu_text_save(&images, path.data) != NPU_OK;
    npu_graph_destroy(i8);
    npu_graph_destroy(f32);
    npu_model_destroy(m);
    npu_text_free(&images);
    npu_text_free(&path);
    npu_text_free(&file);
    free(weights);
    return failed;
}
