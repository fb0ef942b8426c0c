/* 15_planned_model: the digit classifier of 02_digits.c and the keyword spotter of 12_firmware.c for a microcontroller, in
   f32 and in 8 bits. On this machine they are optimised, quantised on the images that ship with them (on sounds), planned,
   and written as C code: digits_f32.h, digits_i8.h, spotter_f32.h and spotter_i8.h, each with a file ..._cases.h of inputs
   and what they come to here, and once more as C calls, digits_f32.c and so on. Steps may take 4 KB of the arena to be
   faster, in files ..._least.h none. A layer of a transformer, attention_f32.h and attention_i8.h, has made-up weights; a
   small model with a branch and a loop, level_f32.h, is a file with jumps and C with if and for. examples/firmware/run.c runs them where they lie.
   cc -O2 -I.. 15_planned_model.c -lm -lpthread      (run it from the repository's root)
   usage: 15_planned_model [folder for the files; "" or none: nothing is written] [images of the test set: of 2500]
   So many images (100) go through the executor, too: planned f32 is within 1e-5 of it, i8 the same bits. */
#define main digits_main /* its model, weights and images are those of the example before */
#include "02_digits.c"
#undef main

#include "firmware/spotter.h"

enum { SAMPLES = 40, CASES = 2, SPARE = 4096 };
static uint8_t picture[PIXELS];
static float images[SAMPLES][PIXELS], sounds[SAMPLES][FRAMES * COEFFICIENTS];
static uint64_t file_memory[1 << 16], arena[1 << 13];
static uint32_t images_to_compare = 100;

typedef struct example {
    const char *name;
    npu_spec spec;            /* of the input */
    float *samples;
    uint32_t len, classes;    /* numbers of a sample, and of its result */
} example;

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

static npu_graph *quantised(const npu_graph *g, const example *e)
{
    static npu_array inputs[SAMPLES];
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .inputs = inputs, .num_samples = SAMPLES };
    npu_graph *q = NULL, *out;
    npu_diag diag = { 0 };
    for (uint32_t i = 0; i < SAMPLES; i++) {
        inputs[i].spec = e->spec;
        inputs[i].data = e->samples + i * e->len;
    }
    if (npu_graph_quantize(&q, g, &desc, &diag)) {
        stop("quantise", diag.message);
    }
    out = optimised(q, true);
    npu_graph_destroy(q);
    return out;
}

static void save(const npu_text *text, const char *folder, const char *name, const char *end)
{
    npu_text path = npu_text_init(NULL);
    npu_text_printf(&path, "%s/%s%s", folder ? folder : "", name, end);
    if (folder && npu_text_save(text, path.data)) {
        stop(path.data, "cannot be written");
    }
    npu_text_free(&path);
}

/* The file, the same as C code in folder/name.h, and as C calls in folder/name.c. */
static void write_model(const npu_graph *g, const char *folder, const char *name, uint32_t scratch, npu_text *file)
{
    const npu_backend *cpu = npu_ref_backend();
    const npu_planned_library *library = npu_ref_planned();
    npu_text code = npu_text_init(NULL), calls = npu_text_init(NULL);
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan_write_desc desc = { .libraries = &library, .num_libraries = 1, .code = &code, .calls = &calls,
                                 .scratch = scratch };
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    file->len = 0;
    if (npu_plan_create(&plan, g, &plan_desc, &diag) || npu_plan_write(plan, &desc, file, &diag)) {
        stop(name, diag.message);
    }
    save(&code, folder, name, ".h");
    save(&calls, folder, name, ".c");
    npu_plan_destroy(plan);
    npu_text_free(&code);
    npu_text_free(&calls);
}

static void put_words(npu_text *text, const char *what, const void *data, uint32_t len)
{
    npu_text_printf(text, "%s", what);
    for (uint32_t i = 0; i < len; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)data + 4 * i, 4);
        npu_text_printf(text, "%s0x%08lxu,", i % 8 ? " " : "\n    ", (unsigned long)bits);
    }
}

/* Runs all samples as the microcontroller will; the first ones and their results go to folder/name_cases.h. right: how many
   pictures are named as their files are; -1 = they are none. */
static npu_planned run_model(const example *e, const npu_text *file, const char *folder, const char *name, int *right)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_planned_desc desc = { file_memory, file->len, arena, sizeof arena, library->kernels, library->num_kernels, 0, 0 };
    npu_text in = npu_text_init(NULL), out = npu_text_init(NULL);
    npu_planned model;
    memcpy(file_memory, file->data, file->len < sizeof file_memory ? file->len : sizeof file_memory);
    if (npu_planned_open(&model, &desc)) {
        stop(name, "does not open");
    }
    npu_text_printf(&in, "#include <stdint.h>\nstatic const uint32_t case_inputs[%d][%lu] = {", CASES,
                    (unsigned long)e->len);
    npu_text_printf(&out, "};\nstatic const uint32_t case_outputs[%d][%lu] = {", CASES, (unsigned long)e->classes);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const float *score = npu_planned_data(&model, 1);
        uint32_t best = 0;
        memcpy(npu_planned_data(&model, 0), e->samples + i * e->len, e->len * sizeof *score);
        if (npu_planned_run(&model)) {
            stop(name, "does not run");
        }
        for (uint32_t k = 0; k < e->classes; k++) {
            best = score[k] > score[best] ? k : best;
        }
        if (i < CASES) {
            put_words(&in, "{", e->samples + i * e->len, e->len);
            put_words(&out, "{", score, e->classes);
            npu_text_printf(&in, "\n},");
            npu_text_printf(&out, "\n},");
        }
        *right += *right >= 0 && best == (uint32_t)(shipped[i][sizeof DIGITS "images/00_" - 1] - '0'); /* 00_7_font.pgm */
    }
    npu_text_printf(&in, "%s\n};\n", out.data);
    save(&in, folder, name, "_cases.h");
    npu_text_free(&in);
    npu_text_free(&out);
    return model;
}

/* Images of the test set by the planned model and by the executor. */
static int compare(const npu_graph *g, npu_planned *model, bool is_integer)
{
    static session s;
    const npu_backend *cpu = npu_ref_backend();
    npu_diag diag = { 0 };
    size_t size;
    uint8_t *set = read_file(DIGITS "test_set.bin", &size);
    uint32_t count = set && size > 16 ? (uint32_t)little(set + 4, 4) : 0, right = 0, other = 0, n = images_to_compare;
    double most = 0;
    if (!set || size < 16 + (size_t)count * (1 + PIXELS) || npu_exec_create_simple(&s.exec, g, &cpu, 1, &diag)) {
        stop(DIGITS "test_set.bin", set ? diag.message : "cannot be read");
    }
    n = n < count ? n : count;
    bind_image(&s);
    npu_exec_set_output(s.exec, "digit", s.score, sizeof s.score);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)((uint64_t)i * count / n), best = 0;
        int expected = classify(&s, set + 16 + count + (size_t)at * PIXELS);
        const float *score = npu_planned_data(model, 1);
        memcpy(npu_planned_data(model, 0), s.image, sizeof s.image);
        if (npu_planned_run(model)) {
            stop("test set", "does not run");
        }
        for (uint32_t k = 0; k < CLASSES; k++) {
            double d = (double)score[k] - (double)s.score[k];
            most = d > most ? d : -d > most ? -d : most;
            best = score[k] > score[best] ? k : best;
        }
        other += best != (uint32_t)expected;
        right += best == set[16 + at];
    }
    printf("%17s %u of %u images of the test set right; from the executor's: %u others, numbers off by at most %.1e\n", "",
           (unsigned)right, (unsigned)n, (unsigned)other, most);
    npu_exec_destroy(s.exec);
    free(set);
    return other != 0 || most > (is_integer ? 0.0 : 1e-5);
}

static int make(const npu_graph *g, const example *e, const char *folder, const char *type, uint32_t scratch, int right)
{
    bool is_named = right >= 0;
    npu_text name = npu_text_init(NULL), file = npu_text_init(NULL);
    npu_planned model;
    npu_text_printf(&name, "%s_%s", e->name, type);
    write_model(g, folder, name.data, scratch, &file);
    model = run_model(e, &file, folder, name.data, &right);
    printf("%-17s %6lu bytes, arena %5lu, %7lu multiply-adds", name.data, (unsigned long)file.len,
           (unsigned long)model.head->arena_size, (unsigned long)model.head->work);
    printf(is_named ? "; %d of %d images right\n" : "\n", right, SAMPLES);
    npu_text_free(&name);
    npu_text_free(&file);
    return (is_named && right < SAMPLES - 2) || (is_named && scratch && compare(g, &model, type[0] == 'i'));
}

/* In f32 and in 8 bits, with memory to be faster and with least memory. */
static int make_all(const npu_graph *g, const example *e, const char *folder, int right)
{
    npu_graph *f32 = optimised(g, false), *i8 = quantised(f32, e);
    int failed = make(f32, e, folder, "f32", SPARE, right);
    failed |= make(f32, e, folder, "f32_least", 0, right);
    failed |= make(i8, e, folder, "i8", SPARE, right);
    failed |= make(i8, e, folder, "i8_least", 0, right);
    npu_graph_destroy(i8);
    npu_graph_destroy(f32);
    return failed;
}

/* What is loud is halved until its largest number is at most 0.25, at most eight times; what is not becomes 0. */
static const char level_text[] =
    "npu_ir 1\ngraph level\n"
    "child loud\n"
    "child above\ninput x : f32[8]\ninput peak : f32[]\nc = aten.gt.Scalar(peak, 0.25)\noutput c = c\nend\n"
    "child halve\ninput x : f32[8]\ninput peak : f32[]\ny = aten.mul.Scalar(x, 0.5)\n"
    "p = aten.mul.Scalar(peak, 0.5)\noutput y = y\noutput p = p\nend\n"
    "input x : f32[8]\ninput peak : f32[]\n"
    "y, p = npu.while([x, peak], [], condition=graph 0, body=graph 1, max_iterations=8)\noutput y = y\nend\n"
    "child quiet\ninput x : f32[8]\ninput peak : f32[]\ny = aten.mul.Scalar(x, 0)\noutput y = y\nend\n"
    "input x : f32[8]\na = aten.abs.default(x)\npeak = aten.amax.default(a, [0])\nc = aten.gt.Scalar(peak, 0.1)\n"
    "y = npu.if(c, [x, peak], then_body=graph 0, else_body=graph 1)\noutput y = y\n";

/* A layer of a transformer that looks at 16 rows of 32 numbers and names one of four kinds. */
static const char attention_text[] =
    "npu_ir 1\ngraph attention\n"
    "input x : f32[1,16,32]\nparam norm_w : f32[32]\nparam norm_b : f32[32]\nparam in_w : f32[96,32]\n"
    "param in_b : f32[96]\nparam out_w : f32[32,32]\nparam out_b : f32[32]\nparam up_w : f32[64,32]\n"
    "param up_b : f32[64]\nparam down_w : f32[32,64]\nparam kinds_w : f32[4,32]\n"
    "n = aten.layer_norm.default(x, [32], norm_w, norm_b)\nqkv = aten.linear.default(n, in_w, in_b)\n"
    "heads = aten.reshape.default(qkv, [1,16,3,2,16])\nsplit = aten.permute.default(heads, [2,0,3,1,4])\n"
    "q, k, v = aten.unbind.int(split, 0)\na = aten.scaled_dot_product_attention.default(q, k, v)\n"
    "b = aten.transpose.int(a, 1, 2)\nc = aten.reshape.default(b, [1,16,32])\n"
    "d = aten.linear.default(c, out_w, out_b)\ne = aten.add.Tensor(x, d)\n"
    "f = aten.layer_norm.default(e, [32], norm_w, norm_b)\nup = aten.linear.default(f, up_w, up_b)\n"
    "h = aten.gelu.default(up)\ndown = aten.linear.default(h, down_w)\ni = aten.add.Tensor(e, down)\n"
    "first = aten.select.int(i, 1, 0)\nkind = aten.linear.default(first, kinds_w)\noutput kind = kind\n";

/* From -scale to scale. */
static void fill(float *x, size_t len, float scale)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < len; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / 8388608.0f - 1.0f) * scale;
    }
}

static int make_attention(const char *folder)
{
    static float rows[SAMPLES][16 * 32], weights[11][96 * 32];
    const example e = { "attention", npu_spec_tensor(NPU_F32, 3, (int64_t[]){ 1, 16, 32 }), rows[0], 16 * 32, 4 };
    npu_graph *g = NULL, *i8;
    npu_diag diag = { 0 };
    int failed;
    if (npu_graph_parse(&g, attention_text, sizeof attention_text - 1, NULL, &diag)) {
        stop("attention", diag.message);
    }
    fill(rows[0], SAMPLES * 16 * 32, 1.0f);
    for (uint32_t i = 0; i < npu_graph_num_params(g); i++) {
        npu_value v = npu_graph_param(g, i);
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, v), &size);
        fill(weights[i], size / sizeof(float), 0.3f);
        npu_graph_bind_param(g, npu_value_name(g, v), weights[i], size);
    }
    i8 = quantised(g, &e);
    failed = make(g, &e, folder, "f32", SPARE, -1) | make(i8, &e, folder, "i8", SPARE, -1);
    npu_graph_destroy(i8);
    npu_graph_destroy(g);
    return failed;
}

static int make_level(const char *folder)
{
    static float levels[SAMPLES][8]; /* loud and quiet ones in turn */
    const example e = { "level", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 8 }), levels[0], 8, 8 };
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    int failed;
    if (npu_graph_parse(&g, level_text, sizeof level_text - 1, NULL, &diag)) {
        stop("level", diag.message);
    }
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < 8; k++) {
            levels[i][k] = (float)((i * 7 + k * 5) % 11 - 5) * (i % 2 ? 0.01f : 1.5f);
        }
    }
    failed = make(g, &e, folder, "f32", 0, -1);
    npu_graph_destroy(g);
    return failed;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 && argv[1][0] ? argv[1] : NULL;
    npu_model *m = classifier();
    npu_graph *g = npu_model_graph(m), *words = spotter(NULL);
    example digits = { "digits", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, SIDE, SIDE }), images[0], PIXELS, CLASSES };
    example keywords = { "spotter", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 1, FRAMES, COEFFICIENTS }), sounds[0],
                         FRAMES * COEFFICIENTS, WORDS };
    size_t size;
    uint8_t *weights = read_file(DIGITS "digits.weights", &size);
    int failed;
    images_to_compare = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : images_to_compare;
    if (!weights || bind_weights(g, weights, size)) {
        stop(DIGITS "digits.weights", "cannot be read");
    }
    for (int i = 0; i < SAMPLES; i++) {
        if (!read_pgm(shipped[i], picture)) {
            stop(shipped[i], "cannot be read");
        }
        for (int k = 0; k < PIXELS; k++) {
            images[i][k] = (float)picture[k] / 255.0f;
        }
        fill_sound(sounds[i], i);
    }
    failed = make_all(g, &digits, folder, 0) | make_all(words, &keywords, folder, -1) |
             make_attention(folder) | make_level(folder);
    npu_graph_destroy(words);
    npu_model_destroy(m);
    free(weights);
    return failed;
}
