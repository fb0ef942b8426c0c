/* What every file of tests/compile does with the declarations: it touches each kind of them once. */
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
#include <string.h>

/* A plan with what a part left out gives is refused, with all parts it is made. */
enum { USE_NOTHING, USE_RATES, USE_MAX_GROUPS, USE_MIN_GROUP_OPS, USE_STREAM_WEIGHTS, USE_OVERLAP, USE_TWO_BACKENDS, USE_ALL };
static int use_plan(const npu_graph *g, int what)
{
    const npu_backend *cpu[2];
    const npu_rates *rates[2] = { NULL, NULL };
    npu_plan_desc desc;
    npu_plan *plan;
    npu_status status, want = NPU_OK;
    memset(&desc, 0, sizeof desc);
    cpu[0] = cpu[1] = npu_ref_backend();
    desc.backends = cpu;
    desc.num_backends = what == USE_TWO_BACKENDS ? 2 : 1;
    desc.rates = what == USE_RATES ? rates : NULL;
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
#ifdef NPU_IR_NO_DEVICES
    want = what == USE_TWO_BACKENDS ? NPU_ERR_UNSUPPORTED : want;
#endif
    status = npu_plan_create(&plan, g, &desc, NULL);
    npu_plan_destroy(plan);
    return status == want;
}

/* A symbol, a dim that is not known, a result whose size depends on data, and a number that is read from a value. */
enum { USE_SYMBOL, USE_UNKNOWN, USE_OPEN, USE_READ, USE_ALL_DIMS };
static int use_dims(int what)
{
    int64_t dims[2] = { 2, 3 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x;
    npu_arg args[4];
    npu_status status, want = NPU_OK;
#ifdef NPU_IR_NO_SYMBOLS
    want = NPU_ERR_UNSUPPORTED;
#endif
    dims[0] = what == USE_SYMBOL ? npu_graph_add_symbol(g, "n", 1, 8) : what == USE_UNKNOWN ? -1 : 2;
    x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    args[0] = npu_arg_tensor("self", x);
    args[1] = npu_arg_int("dim", 0);
    args[2] = npu_arg_tensor("start", npu_input(g, "at", npu_spec_tensor(NPU_I64, 0, NULL)));
    args[3] = npu_arg_int("end", 2);
    if (what == USE_OPEN) {
        npu_emit(g, NPU_ATEN_NONZERO, args, 1);
    } else if (what == USE_READ) {
        npu_emit(g, NPU_ATEN_SLICE, args, 4);
    }
    status = npu_graph_status(g);
    npu_graph_destroy(g);
    return status == want;
}

/* A state, and a spec with a quantisation. */
static int use_input(int is_state)
{
    const int64_t dims[1] = { 2 };
    const float scale = 0.5f;
    npu_quant q;
    npu_graph *g = npu_graph_create(NULL);
    npu_spec spec = npu_spec_tensor(is_state ? NPU_F32 : NPU_I8, 1, dims);
    npu_status status, want = NPU_OK;
#ifdef NPU_IR_NO_STATES
    want = is_state ? NPU_ERR_UNSUPPORTED : want;
#endif
#ifdef NPU_IR_NO_QUANT
    want = is_state ? want : NPU_ERR_UNSUPPORTED;
#endif
    memset(&q, 0, sizeof q);
    q.scheme = 1;
    q.count = 1;
    q.scales = &scale;
    spec.quant = is_state ? NULL : &q;
    if (is_state) {
        npu_state(g, "x", spec);
    } else {
        npu_input(g, "x", spec);
    }
    status = npu_graph_status(g);
    npu_graph_destroy(g);
    return status == want;
}

/* A program as bytes. */
static int use_save(const npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    uint64_t size = 0;
    npu_status status, want = NPU_OK;
#ifdef NPU_IR_NO_DEVICES
    want = NPU_ERR_UNSUPPORTED;
#endif
    memset(&desc, 0, sizeof desc);
    desc.backends = &cpu;
    desc.num_backends = 1;
    status = npu_plan_create(&plan, g, &desc, NULL);
    status = status ? status : npu_program_create(&program, plan, NULL);
    status = status ? status : npu_program_save(program, NULL, &size);
    npu_program_destroy(program);
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
    ok = ok && use_capacity(g) && use_save(g) && use_input(0) && use_input(1);
    for (int what = USE_NOTHING; what < USE_ALL; what++) {
        ok = ok && use_plan(g, what);
    }
    for (int what = USE_SYMBOL; what < USE_ALL_DIMS; what++) {
        ok = ok && use_dims(what);
    }
#ifdef NPU_IR_NO_ISA
    ok = ok && strcmp(npu_ref_isa(0), "base") == 0 && npu_ref_isa(1) == NULL;
#endif
    npu_graph_destroy(g);
    return !ok;
}
