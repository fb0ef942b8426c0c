/* 03_resnet18: ResNet-18 with weights from a formula; the 1000 outputs equal those that PyTorch recorded. The model in
   the layer DSL is in reference/resnet18.h.
   cc -O2 -I.. 03_resnet18.c -lm -lpthread      (run it from the repository's root) */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "reference/reference.h"
#include "reference/resnet18.h"
#include <time.h>

int main(int argc, char **argv)
{
    const char *expected = argc > 1 ? argv[1] : "examples/reference/resnet18.expected";
    const npu_backend *cpu = npu_ref_backend();
    npu_model *m = resnet18();
    npu_graph *g = npu_model_graph(m);
    size_t weights = npu_graph_status(g) ? 0 : reference_bind(g, NULL, resnet18_is_norm);
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_memory memory;
    static float out[1000];
    float *in;
    double difference;
    clock_t start;

    if (!weights || npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) {
        fprintf(stderr, "%s\n", weights ? diag.message : npu_graph_diag(g)->message);
        return 1;
    }
    in = reference_make("input", npu_value_spec(g, npu_graph_input(g, 0)), 0);
    npu_exec_set_input(exec, &(npu_array){ "input", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 3, 224, 224 }), in });
    npu_exec_set_output(exec, "output", out, sizeof out);
    start = clock();
    if (npu_exec_run(exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    printf("ResNet-18: %u ops, %.1f MB of weights, %.1f ms\n", (unsigned)npu_graph_num_ops(g), (double)weights / 1e6,
           1e3 * (double)(clock() - start) / CLOCKS_PER_SEC);
    npu_plan_memory(npu_program_plan(npu_exec_program(exec)), 0, &memory);
    printf("activations %.2f MB (lower bound %.2f, without reuse %.2f)\n", (double)memory.activations / 1e6, (double)memory.lower_bound / 1e6,
           (double)memory.no_reuse / 1e6);
    difference = reference_compare(expected, "output", out, 1000);
    printf("largest difference from PyTorch, over the largest output: %.2g (allowed 1e-4)\n", difference);
    free(in);
    npu_exec_destroy(exec);
    npu_model_destroy(m);
    return difference < 0 || difference > 1e-4;
}
