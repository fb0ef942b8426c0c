/* 07_dynamic_shapes: sizes that are known at run time only. A detector's last step: of n boxes, n different from call to call, those
   with a score over one half, and how many of each class there are. Memory is planned for the largest sizes, a run
   allocates nothing, and the outputs say how large they came out.
   cc -O2 -I.. 07_dynamic_shapes.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>
#include <string.h>

static const char detector[] =
    "graph main\n"
    "symbol n 0 100                                 # boxes: at most 100\n"
    "input boxes : f32[n,4]\n"
    "input scores : f32[n]\n"
    "input classes : i64[n]\n"
    "good = aten.gt.Scalar(scores, 0.5)\n"
    "kept = aten.index.Tensor(boxes, [good])        # data decides how many\n"
    "kinds = aten.masked_select.default(classes, good)\n"
    "each = aten.bincount.default(kinds)            # nothing bounds how many classes there are: a buffer that grows\n"
    "output kept = kept\n"
    "output each = each\n";

static npu_status detect(npu_exec *exec, int64_t n, const float *boxes, const float *scores, const int64_t *classes)
{
    int64_t dims[2] = { n, 4 };
    size_t bytes;
    npu_array inputs[3] = { { "boxes", npu_spec_tensor(NPU_F32, 2, dims), boxes },
                            { "scores", npu_spec_tensor(NPU_F32, 1, dims), scores },
                            { "classes", npu_spec_tensor(NPU_I64, 1, dims), classes } };
    npu_status status = NPU_OK;
    for (int i = 0; i < 3; i++) {
        status = status ? status : npu_exec_set_input(exec, &inputs[i]);
    }
    status = status ? status : npu_exec_run(exec);
    if (status) {
        printf("%s\n", npu_exec_diag(exec)->message);
        return status;
    }
    const int64_t *each = npu_exec_output(exec, 1, &bytes);
    printf("%d boxes, %d kept;", (int)n, (int)npu_exec_output_spec(exec, 0)->dims[0]);
    for (size_t i = 0; i < bytes / sizeof *each; i++) {
        printf(" %d of class %d", (int)each[i], (int)i);
    }
    printf("\n");
    return NPU_OK;
}

int main(void)
{
    static float boxes[101][4];
    static const float scores[6] = { 0.9f, 0.2f, 0.7f, 0.6f, 0.1f, 0.8f };
    static const int64_t classes[6] = { 1, 0, 1, 3, 2, 1 };
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_memory memory;
    npu_diag diag = { 0 };
    if (npu_graph_parse(&g, detector, strlen(detector), NULL, &diag) ||
        npu_exec_create_simple(&exec, g, &cpu, 1, &diag)) {
        printf("%s\n", diag.message);
        return 1;
    }
    npu_plan_memory(npu_program_plan(npu_exec_program(exec)), 0, &memory);
    printf("planned: %u bytes, %u of them for outputs at their largest\n",
           (unsigned)(memory.activations + memory.outputs), (unsigned)memory.outputs);
    int failed = detect(exec, 6, boxes[0], scores, classes) || detect(exec, 1, boxes[0], scores, classes) ||
                 detect(exec, 0, boxes[0], scores, classes);
    failed = failed || !detect(exec, 101, boxes[0], scores, classes); /* more than was promised: refused by name */
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return failed;
}
