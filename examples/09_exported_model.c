/* 09_exported_model: a model as a PyTorch exporter writes it. Its calls are put back together by their schemas, relu_
   becomes functional (mul names linear, and reads what relu_ wrote), weights are bound under either of their names, and
   an op that is no ATen op is run by a function of ours.
   cc -O2 -I.. 09_exported_model.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>

static const char json[] =
    "{\"model_name\": \"tiny\", \"pytorch_version\": \"2.9\",\n"
    " \"graph_inputs\": [{\"name\": \"x\", \"shape\": [1, 3], \"dtype\": \"float32\"}],\n"
    " \"graph_outputs\": [{\"name\": \"swap\", \"shape\": [1, 2], \"dtype\": \"float32\"}],\n"
    " \"weights\": [{\"name\": \"fc.weight\", \"shape\": [2, 3], \"dtype\": \"float32\"},\n"
    "             {\"name\": \"fc.bias\", \"shape\": [2], \"dtype\": \"float32\"}],\n"
    " \"weight_name_mapping\": {\"p_fc_weight\": \"fc.weight\", \"p_fc_bias\": \"fc.bias\"},\n"
    " \"nodes\": [\n"
    "  {\"name\": \"linear\", \"op_type\": \"aten.linear.default\",\n"
    "   \"inputs\": [{\"producer_node\": \"x\"}, {\"name\": \"p_fc_weight\"}, {\"name\": \"p_fc_bias\"}],\n"
    "   \"outputs\": [{\"name\": \"linear\", \"shape\": [1, 2], \"dtype\": \"float32\"}], \"attrs\": {}},\n"
    "  {\"name\": \"relu_\", \"op_type\": \"aten.relu_.default\", \"inputs\": [{\"producer_node\": \"linear\"}],\n"
    "   \"outputs\": [{\"name\": \"relu_\", \"shape\": [1, 2], \"dtype\": \"float32\"}], \"attrs\": {}},\n"
    "  {\"name\": \"mul\", \"op_type\": \"aten.mul.Tensor\", \"inputs\": [{\"producer_node\": \"linear\"}],\n"
    "   \"outputs\": [{\"name\": \"mul\", \"shape\": [1, 2], \"dtype\": \"float32\"}], \"attrs\": {\"other\": 0.5}},\n"
    "  {\"name\": \"swap\", \"op_type\": \"my_swap\", \"inputs\": [{\"producer_node\": \"mul\"}],\n"
    "   \"outputs\": [{\"name\": \"swap\", \"shape\": [1, 2], \"dtype\": \"float32\"}], \"attrs\": {\"plus\": 1.0}}]}";

/* y[i] = x[len - 1 - i] + plus */
static npu_status run_swap(void *ctx, const npu_op_info *op, const void *const *in, void *const *out)
{
    double plus = npu_op_float(op, "plus", 0);
    size_t len = 0;
    (void)ctx;
    npu_spec_len(op->in[0], &len);
    for (size_t i = 0; i < len; i++) {
        ((float *)out[0])[i] = ((const float *)in[0])[len - 1 - i] + (float)plus;
    }
    return NPU_OK;
}

int main(void)
{
    npu_registry *registry = NULL;
    npu_backend *cpu = NULL;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_executor swap = { "my_swap", run_swap, NULL, 1 };
    float weight[6] = { 1, 0, 1, -1, 0, -1 }, bias[2] = { 0, 1 }, x[3] = { 1, 2, 3 }, y[2];

    if (npu_registry_create(&registry, NULL, &diag) || npu_registry_add_executor(registry, &swap, &diag) ||
        npu_ref_create(&cpu, &(npu_ref_desc){ .registry = registry }) ||
        npu_graph_parse_json(&g, json, sizeof json - 1, &(npu_graph_desc){ .registry = registry }, &diag)) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
        return 1;
    }
    npu_graph_bind_param(g, "fc.weight", weight, sizeof weight); /* as in the state dict */
    npu_graph_bind_param(g, "p_fc_bias", bias, sizeof bias);     /* as in the graph */
    if (npu_graph_status(g) || npu_exec_create_simple(&exec, g, (const npu_backend *const[]){ cpu }, 1, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    npu_exec_set_input(exec, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, 3 }), x });
    npu_exec_set_output(exec, "swap", y, sizeof y);
    if (npu_exec_run(exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    npu_text text = npu_text_init(NULL);
    npu_graph_print(g, &text);
    printf("%s\nexecutors:", text.data);
    for (uint32_t i = 0; i < npu_registry_num_extensions(registry, NPU_EXTENSION_EXECUTOR); i++) {
        printf(" %s", npu_registry_extension(registry, NPU_EXTENSION_EXECUTOR, i));
    }
    printf("\nswap(relu(fc(x)) / 2) + 1 = %g %g\n", (double)y[0], (double)y[1]);
    npu_text_free(&text);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    npu_registry_destroy(registry);
    return y[0] != 1 || y[1] != 3;
}
