/* 01_hello: the shortest program. A linear layer, relu and softmax, built like mathematics and run on the CPU.
   cc -O2 -I.. 01_hello.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>

int main(void)
{
    static const float weight[2][3] = { { 1, 0, -1 }, { 0, 2, 1 } }, bias[2] = { 0.5f, -0.5f };
    float in[3] = { 1, 2, 3 }, out[2];

    npu_graph *g = npu_graph_create(NULL);
    npu_spec row = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, 3 });
    npu_value x = npu_input(g, "x", row);
    npu_value w = npu_constant(g, "w", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 2, 3 }), weight);
    npu_value b = npu_constant(g, "b", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), bias);
    npu_output(g, "y", npu_softmax(g, npu_relu(g, npu_linear(g, x, w, b)), -1));

    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    if (npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) { /* a failed graph, too, ends here */
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    npu_exec_set_input(exec, &(npu_array){ "x", row, in });
    npu_exec_set_output(exec, "y", out, sizeof out);
    if (npu_exec_run(exec)) {
        fprintf(stderr, "%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    printf("softmax(relu(W x + b)) = %.4f %.4f\n", (double)out[0], (double)out[1]);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return 0;
}
