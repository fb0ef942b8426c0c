/* What every file of tests/compile does with the declarations: it touches each kind of them once. */
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"

static int use_declarations(void)
{
    const int64_t dims[2] = { 2, 3 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    npu_value y = npu_relu(NPU_AT(g), x);
    npu_arg arg = npu_arg_tensor("self", x);
    npu_op op = npu_emit(g, NPU_ATEN_RELU, &arg, 1);
    int ok = y.id && op.id && npu_graph_status(g) == NPU_OK && npu_ref_backend() != NULL && NPU_KIND_NUMBER(NPU_AICF_GEMM) == 2;
    npu_graph_destroy(g);
    return !ok;
}
