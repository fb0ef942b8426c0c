/* What every file of tests/compile does with the declarations: it touches each kind of them once. */
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
#include <string.h>

/* A plan with what a part left out gives is refused, with all parts it is made. */
enum { USE_NOTHING, USE_RATES, USE_MAX_GROUPS, USE_MIN_GROUP_OPS, USE_STREAM_WEIGHTS, USE_OVERLAP, USE_ALL };
static int use_plan(const npu_graph *g, int what)
{
    const npu_backend *cpu = npu_ref_backend();
    const npu_rates *rates = NULL;
    npu_plan_desc desc;
    npu_plan *plan;
    npu_status status, want = NPU_OK;
    memset(&desc, 0, sizeof desc);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.rates = what == USE_RATES ? &rates : NULL;
    desc.max_groups = what == USE_MAX_GROUPS ? 4 : 0;
    desc.min_group_ops = what == USE_MIN_GROUP_OPS ? 2 : 0;
    desc.stream_weights = what == USE_STREAM_WEIGHTS;
    desc.overlap = what == USE_OVERLAP;
#ifdef NPU_IR_NO_COSTS
    want = what >= USE_RATES && what <= USE_STREAM_WEIGHTS ? NPU_ERR_UNSUPPORTED : want;
#endif
#ifdef NPU_IR_NO_OVERLAP
    want = what == USE_OVERLAP ? NPU_ERR_UNSUPPORTED : want;
#endif
    status = npu_plan_create(&plan, g, &desc, NULL);
    npu_plan_destroy(plan);
    return status == want;
}

/* A region that is too small is said, whether or not plans can give way to it. */
static int use_capacity(const npu_graph *g)
{
    npu_ref_desc ref_desc;
    npu_plan_desc desc;
    npu_backend *small = NULL;
    const npu_backend *backends[1];
    npu_plan *plan = NULL;
    npu_diag diag;
    npu_status status;
    memset(&ref_desc, 0, sizeof ref_desc);
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    ref_desc.capacity = 1;
    status = npu_ref_create(&small, &ref_desc);
    backends[0] = small;
    desc.backends = backends;
    desc.num_backends = 1;
    status = status ? status : npu_plan_create(&plan, g, &desc, &diag);
    npu_plan_destroy(plan);
    npu_ref_destroy(small);
    return status == NPU_ERR_BUDGET && diag.status == NPU_ERR_BUDGET;
}

static int use_declarations(void)
{
    const int64_t dims[2] = { 2, 3 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    npu_value y = npu_relu(NPU_AT(g), x);
    npu_arg arg = npu_arg_tensor("self", x);
    npu_op op = npu_emit(g, NPU_ATEN_RELU, &arg, 1);
    int ok = y.id && op.id && npu_graph_status(g) == NPU_OK && npu_ref_backend() != NULL && NPU_KIND_NUMBER(NPU_AICF_GEMM) == 2;
    npu_output(g, "y", y);
    ok = ok && use_capacity(g);
    for (int what = USE_NOTHING; what < USE_ALL; what++) {
        ok = ok && use_plan(g, what);
    }
#ifdef NPU_IR_NO_ISA
    ok = ok && strcmp(npu_ref_isa(0), "base") == 0 && npu_ref_isa(1) == NULL;
#endif
    npu_graph_destroy(g);
    return !ok;
}
