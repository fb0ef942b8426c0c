/* 04_transformer: a two-layer transformer encoder in the model DSL, attention included; outputs equal those that PyTorch
   recorded. Attention streams over keys: no score matrix is stored.
   cc -O2 -I.. 04_transformer.c -lm -lpthread      (run it from the repository's root) */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "reference/reference.h"

enum { TOKENS = 16, WIDTH = 64, HEADS = 4, HIDDEN = 256, CLASSES = 10, LAYERS = 2 };

static const char *layer_name(char *buf, size_t size, int layer, const char *what)
{
    snprintf(buf, size, "layers.%d%s", layer, what);
    return buf;
}

/* One pre-norm layer: x + attention(norm(x)), then x + feed forward(norm(x)). */
static npu_value encoder_layer(npu_model *m, npu_value x, int layer)
{
    npu_graph *g = npu_model_graph(m);
    char name[5][40];
    npu_layer_layer_norm norm1 = npu_layer_layer_norm_init(layer_name(name[0], sizeof name[0], layer, ".norm1"), WIDTH);
    npu_layer_layer_norm norm2 = npu_layer_layer_norm_init(layer_name(name[1], sizeof name[1], layer, ".norm2"), WIDTH);
    npu_layer_attention attention = npu_layer_attention_init(layer_name(name[2], sizeof name[2], layer, ""), WIDTH, HEADS);
    npu_layer_linear up = npu_layer_linear_init(layer_name(name[3], sizeof name[3], layer, ".linear1"), WIDTH, HIDDEN);
    npu_layer_linear down = npu_layer_linear_init(layer_name(name[4], sizeof name[4], layer, ".linear2"), HIDDEN, WIDTH);
    x = npu_add(g, x, npu_model_add(m, &attention.base, npu_model_add(m, &norm1.base, x)));
    npu_value h = npu_model_add(m, &up.base, npu_model_add(m, &norm2.base, x));
    return npu_add(g, x, npu_model_add(m, &down.base, npu_gelu(g, h, NULL)));
}

static npu_model *encoder(void)
{
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_layer_embedding embedding = npu_layer_embedding_init("embedding", 100, WIDTH);
    npu_layer_layer_norm norm = npu_layer_layer_norm_init("norm", WIDTH);
    npu_layer_linear head = npu_layer_linear_init("head", WIDTH, CLASSES);
    npu_value tokens = npu_model_input(m, "tokens", npu_spec_tensor(NPU_I64, 2, (int64_t[]){ 1, TOKENS }));
    npu_value position = npu_param(g, "position.weight", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ TOKENS, WIDTH }));
    npu_value x = npu_add(g, npu_model_add(m, &embedding.base, tokens), position);
    for (int layer = 0; layer < LAYERS; layer++) {
        char label[40];
        x = encoder_layer(m, x, layer);
        npu_model_output(m, layer_name(label, sizeof label, layer, ""), x);
    }
    npu_model_output(m, "output", npu_model_add(m, &head.base, npu_model_add(m, &norm.base, x)));
    return m;
}

/* Linear layers here call their parameters W and b; PyTorch calls them weight and bias. */
static const char *torch_name(const char *name, char *buf, size_t size)
{
    size_t n = strlen(name);
    if (reference_ends_with(name, ".W") || reference_ends_with(name, ".b")) {
        snprintf(buf, size, "%.*s%s", (int)n - 1, name, name[n - 1] == 'W' ? "weight" : "bias");
        return buf;
    }
    return name;
}

static int is_norm(const char *name) { return strstr(name, "norm") != NULL; }

int main(int argc, char **argv)
{
    const char *expected = argc > 1 ? argv[1] : "examples/reference/transformer.expected";
    const npu_backend *cpu = npu_ref_backend();
    npu_model *m = encoder();
    npu_graph *g = npu_model_graph(m);
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    int64_t tokens[TOKENS];
    int failed = 0;

    if (npu_graph_status(g) || !reference_bind(g, torch_name, is_norm) || npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) {
        fprintf(stderr, "%s\n", diag.status ? diag.message : npu_graph_diag(g)->message);
        return 1;
    }
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (i * 37 + 11) % 100;
    }
    npu_exec_set_input(exec, &(npu_array){ "tokens", npu_spec_tensor(NPU_I64, 2, (int64_t[]){ 1, TOKENS }), tokens });
    if (npu_exec_run(exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    printf("transformer encoder: %u ops\n", (unsigned)npu_graph_num_ops(g));
    for (uint32_t i = 0; i < npu_graph_num_outputs(g); i++) {
        size_t size;
        const float *got = npu_exec_output(exec, i, &size);
        double difference = reference_compare(expected, npu_graph_output_name(g, i), got, size / sizeof(float));
        printf("%-10s largest difference from PyTorch, over the largest value: %.2g (allowed 1e-4)\n", npu_graph_output_name(g, i), difference);
        failed |= difference < 0 || difference > 1e-4;
    }
    npu_exec_destroy(exec);
    npu_model_destroy(m);
    return failed;
}
