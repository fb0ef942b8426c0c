/* An implementation that lists its ops: these run, all others are not found, and a registry is small. It reads no text,
   but the numbers of schemas as strtod does, and takes little of the stack. */
#define NPU_IR_NO_TEXT
#define NPU_IR_NO_JSON
#define NPU_IR_STRIP 32
#define NPU_IR_HAS_OP(kind) ((kind) == NPU_ATEN_LINEAR || (kind) == NPU_ATEN_RELU)
#define NPU_IR_IMPLEMENTATION
#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"

static bool runs(npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag;
    float in[2] = { 1, -2 }, out[1] = { 0 };
    bool ok = npu_exec_create_simple(&exec, g, &cpu, 1, &diag) == NPU_OK &&
              npu_exec_set_input(exec, &(npu_array){ "x", *npu_value_spec(g, npu_graph_input(g, 0)), in }) == NPU_OK &&
              npu_exec_set_output(exec, "y", out, sizeof out) == NPU_OK && npu_exec_run(exec) == NPU_OK &&
              out[0] == 7;
    npu_exec_destroy(exec);
    return ok;
}

/* Also where a number ends. */
static bool reads_numbers(void)
{
    static const char *const texts[] = { "0.01", "-1.5e-05)", "1.", "1e-12,", "3.1415926535897", "1e22", "-2.5E+3 ",
                                         "1e5e", "0.3333333333333333]", "1e-300", "0.0", "-0.0", "7e", "12" };
    bool ok = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *end;
        char *stop;
        double got = npu__parse_double(texts[i], &end), want = strtod(texts[i], &stop), off = got - want;
        ok = ok && end == stop && (off < 0 ? -off : off) <= 4e-16 * (want < 0 ? -want : want);
    }
    return ok;
}

int main(void)
{
    static const float weight[2] = { 3, -2 };
    const int64_t dims[2] = { 1, 2 };
    npu_alloc_counter counter = { 0, 0, 0, 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_graph_desc desc = { 0 };
    npu_value none = { 0 };
    desc.allocator = &allocator;
    npu_graph *g = npu_graph_create(&desc);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    npu_value w = npu_constant(g, "w", npu_spec_tensor(NPU_F32, 2, dims), weight);
    npu_output(g, "y", npu_relu(g, npu_linear(g, x, w, none)));
    bool ok = npu_graph_status(g) == NPU_OK && runs(g) && counter.live_bytes < 40000 &&
              npu_registry_num_ops(npu_graph_registry(g)) == 2 && !npu_registry_find(npu_graph_registry(g), "aten.tanh");
    ok = ok && npu_tanh(g, x).id == 0 && npu_graph_status(g) == NPU_ERR_NOT_FOUND;
    npu_graph_destroy(g);
    return !ok || !reads_numbers() || counter.live_bytes != 0;
}
