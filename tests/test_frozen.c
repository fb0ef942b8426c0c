/* Backends that were compiled with 0.2, or with something later than this core, on today's core. Declarations of 0.2 are
   those of compile/frozen_0_2.h, for ever; `make check` runs this with a core of larger structs, too. */
#include "npu_test.h"
#include "../npu_ir_backend_ref.h"
#include "compile/frozen_0_2.h"

const void *frozen_backend(unsigned counts[4]); /* compile/backend_0_2.c */
const void *next_backend(unsigned counts[4]);   /* compile/backend_next.c */

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }

/* No member has another place or size; today's structs may have more. */
static void test_members(void)
{
    static const struct { const char *name; size_t at, was, size, size_was; bool has_grown_only; } rows[] = {
#define AT(thing, member) \
    { #thing "." #member, offsetof(npu_##thing, member), offsetof(v02_##thing, member), \
      sizeof(((npu_##thing *)0)->member), sizeof(((v02_##thing *)0)->member), \
      sizeof(npu_##thing) >= sizeof(v02_##thing) }
        AT(quant, block), AT(quant, zeros),
        AT(spec, dtype), AT(spec, rank), AT(spec, dims), AT(spec, offset), AT(spec, quant),
        AT(bound_arg, form), AT(bound_arg, count), AT(bound_arg, i), AT(bound_arg, f), AT(bound_arg, data),
        AT(op_info, op), AT(op_info, num_args), AT(op_info, num_in), AT(op_info, arg_size), AT(op_info, spec_size),
        AT(op_info, dynamic), AT(op_info, name), AT(op_info, args), AT(op_info, in), AT(op_info, in_data),
        AT(op_info, bodies), AT(op_info, device_kind), AT(op_info, device_attrs),
        AT(abi_row, attr_schema), AT(abi_row, layout), AT(abi, row_size), AT(abi, rows),
        AT(parallel, width), AT(parallel, run), AT(support, text),
        AT(region, name), AT(region, alignment), AT(region, priority),
        AT(buffer, handle), AT(buffer, bytes), AT(allocation, bytes), AT(allocation, stream),
        AT(transfer, to), AT(transfer, from_host), AT(transfer, from_offset), AT(transfer, stream),
        AT(tensor, dtype), AT(tensor, offset), AT(tensor, dims), AT(tensor, strides),
        AT(call, op), AT(call, out), AT(call, stream),
        AT(group_value, role), AT(group_value, form), AT(group_value, spec), AT(group_value, data),
        AT(group_op, info), AT(group_op, out), AT(group, ops), AT(group, values),
        AT(inplace, result), AT(scratch, bytes), AT(scratch, worker_bytes), AT(form, id), AT(form, bytes),
        AT(compiled, program), AT(compiled, scratch), AT(compiled, failed_op), AT(compiled, text),
        AT(compiled, num_forms), AT(compiled, inplace), AT(compiled, own_weights), AT(compiled, forms),
        AT(place, offset), AT(places, place_size), AT(places, values), AT(places, scratches),
        AT(dynamic, describe), AT(dynamic, set_result_dims), AT(binding, places), AT(binding, stream), AT(binding, dynamic),
        AT(cost, ns), AT(backend, supports), AT(backend, alloc), AT(backend, copy), AT(backend, compile),
        AT(backend, stream), AT(backend, submit), AT(backend, save), AT(backend, wait), AT(backend, replay),
        AT(backend, op_call),
#undef AT
    };
    NPU_ITEM("F31");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].at != rows[i].was || rows[i].size != rows[i].size_was || !rows[i].has_grown_only) {
            NPU_CHECK_STR(rows[i].name, "where it was in 0.2");
        }
    }
    NPU_CHECK_EQ(V02_BACKEND_API, NPU_BACKEND_API);
    NPU_CHECK_EQ(V02_F32, NPU_F32);
    NPU_CHECK_EQ(V02_REASON_OP, NPU_REASON_OP);
    NPU_CHECK_EQ(V02_GROUP_WEIGHT, NPU_GROUP_WEIGHT);
    NPU_CHECK_EQ(V02_ERR_NO_MEMORY, NPU_ERR_NO_MEMORY);
}

/* y = tanh(relu(x + 2 w) + x) + w: two groups on the device, one op on the CPU. */
static npu_graph *model(npu_op *first)
{
    static const float w[6] = { 1, -1, 0.5f, 2, -3, 0 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(2, 3)));
    npu_value c = npu_constant(g, "w", npu_spec_tensor(NPU_F32, 2, DIMS(2, 3)), w);
    npu_arg args[] = { npu_arg_tensor("self", x), npu_arg_tensor("other", c), npu_arg_float("alpha", 2) };
    *first = npu_emit_name(g, "aten.add.Tensor", args, 3);
    npu_value y = npu_tanh(g, npu_add(g, npu_relu(g, npu_op_result(g, *first, 0)), x));
    npu_output(g, "y", npu_add(g, y, c));
    return g;
}

static void run(const npu_graph *g, const npu_backend *const *backends, uint32_t num, npu_op first, const char *variant,
                float y[6])
{
    static const float x[6] = { 0.5f, 1, -2, -5, 4, 0.25f };
    npu_exec *exec = NULL;
    npu_diag diag;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, backends, num, &diag), NPU_OK);
    for (int i = 0; exec && i < 2; i++) {
        memset(y, 0, 6 * sizeof *y);
        NPU_CHECK_STATUS(npu_test_input(exec, "x", x, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output(exec, "y", y, 6 * sizeof *y), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        if (variant) {
            NPU_CHECK_STR(npu_program_op_variant(npu_exec_program(exec), first), variant);
            NPU_CHECK(npu_plan_backend(npu_program_plan(npu_exec_program(exec)), 0) == backends[0]);
        }
    }
    npu_exec_destroy(exec);
}

static void test_older_and_newer(void)
{
    NPU_ITEM("F31");
    for (int newer = 0; newer < 2; newer++) {
        unsigned counts[4] = { 0 };
        const npu_backend *cpu = npu_ref_backend();
        const npu_backend *both[2] = { newer ? next_backend(counts) : frozen_backend(counts), cpu };
        npu_op first;
        npu_graph *g = model(&first);
        float expected[6], y[6];
        NPU_CHECK_STATUS(npu_backend_check(both[0], NULL), NPU_OK);
        NPU_CHECK_EQ(npu_region_at(both[0]->regions, 1)->alignment, 64);
        NPU_CHECK(npu_backend_supports(both[0], npu_graph_registry(g), "aten.relu"));
        run(g, &cpu, 1, first, NULL, expected);
        run(g, both, 2, first, "frozen", y);
        for (int i = 0; i < 6; i++) {
            NPU_CHECK_NEAR(y[i], expected[i], 1e-6);
        }
        NPU_CHECK_EQ(counts[0], 4); /* two groups, two runs */
        NPU_CHECK_EQ(counts[1], 2);
        NPU_CHECK(counts[3] > 0);   /* pairs were read at their own size */
        npu_graph_destroy(g);
    }
}

int main(void)
{
    NPU_RUN(test_members);
    NPU_RUN(test_older_and_newer);
    return npu_test_done();
}
