/* Own allocation macros: all memory must come through them, and a call that has no allocator says when there is none. */
#include <stddef.h>
static long num_live, num_calls, fail_at; /* the call that gets no memory, from 1; 0 = none */
static void *own_malloc(size_t size);
static void *own_realloc(void *p, size_t size);
static void own_free(void *p);
#define NPU_IR_MALLOC(n) own_malloc(n)
#define NPU_IR_REALLOC(p, n) own_realloc((p), (n))
#define NPU_IR_FREE(p) own_free(p)
#define NPU_IR_IMPLEMENTATION
#include "use.h"
#include <stdio.h>
#include <stdlib.h>

static void *own_malloc(size_t size)
{
    if (++num_calls == fail_at) {
        return NULL;
    }
    num_live++;
    return malloc(size);
}

static void *own_realloc(void *p, size_t size)
{
    if (++num_calls == fail_at) {
        return NULL;
    }
    num_live += p == NULL;
    return realloc(p, size);
}

static void own_free(void *p)
{
    num_live -= p != NULL;
    free(p);
}

/* Rates are measured with graphs of the library's own. The first allocations fail in turn, then some of the others. */
static int use_calibration(void)
{
    long live, calls, n;
    npu_rates rates;
    npu_diag diag;
    npu_status status;
    memset(&diag, 0, sizeof diag);
    num_calls = 0;
    status = npu_rates_calibrate(&rates, npu_ref_backend(), NULL, NULL, NULL, &diag); /* what stays is made now */
    live = num_live;
    calls = num_calls;
    for (n = 1; status == NPU_OK && n < calls / 2; n += 1 + n / 4) {
        num_calls = 0, fail_at = n;
        if (npu_rates_calibrate(&rates, npu_ref_backend(), NULL, NULL, NULL, &diag) != NPU_ERR_NO_MEMORY ||
            diag.status != NPU_ERR_NO_MEMORY || num_live != live) {
            fprintf(stderr, "allocation %ld of %ld: \"%s\", %ld more are live\n", n, calls, diag.message, num_live - live);
            return 1;
        }
    }
    return status != NPU_OK || calls < 100;
}

/* ---- an allocator in the desc, or in the graph where a function has no desc: the macros give nothing then ---- */

static long given_live;

static void *given_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    given_live += (new_size != 0) - (ptr != NULL);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static const npu_allocator given = { NULL, given_resize };

static const char doubled_until[] =
    "graph main\nchild small\ninput v : f32[2]\ns = aten.sum.default(v)\nc = aten.lt.Scalar(s, 100)\noutput c = c\nend\n"
    "child twice\ninput v : f32[2]\nw = aten.add.Tensor(v, v)\noutput w = w\nend\ninput x : f32[2]\n"
    "y = npu.while([x], [], condition=graph 0, body=graph 1)\nz = aten.relu.default(y)\noutput z = z\n";

/* A loop, what it gives, and how a wrong expectation is told. */
static npu_status use_given_run(const npu_graph *g, const npu_backend *cpu, npu_diag *diag)
{
    static const float x[2] = { 1, 2 };
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_array array;
    npu_status status;
    memset(&desc, 0, sizeof desc);
    memset(&array, 0, sizeof array);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.allocator = &given;
    array.name = "x";
    array.spec = *npu_value_spec(g, npu_graph_input(g, 0));
    array.data = x;
    status = npu_plan_create(&plan, g, &desc, diag);
    status = status ? status : npu_program_create(&program, plan, diag);
    status = status ? status : npu_exec_create(&exec, program, NULL, diag);
    status = status ? status : npu_exec_set_input(exec, &array);
    status = status ? status : npu_exec_run(exec);
    array.name = "z";
    if (status == NPU_OK && npu_exec_verify(exec, &array, 1, NULL, NULL, NULL, diag) == NPU_OK) {
        status = NPU_ERR_INTERNAL;
    }
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return status;
}

static npu_status use_given_call(const npu_backend *cpu, npu_diag *diag)
{
    static const int64_t two[1] = { 2 };
    float x[2] = { -1, 2 };
    npu_buffer buffer;
    npu_tensor tensor;
    npu_op_call_desc call;
    memset(&call, 0, sizeof call);
    npu_tensor_set_host(&tensor, &buffer, NPU_F32, 1, two, x);
    call.kind = NPU_ATEN_RELU;
    call.in = call.out = &tensor;
    call.num_in = call.num_out = 1;
    call.allocator = &given;
    return npu_op_call(cpu, &call, diag);
}

static int use_given(void)
{
    npu_registry_desc registry_desc;
    npu_registry *registry = NULL;
    npu_graph_desc graph_desc;
    npu_graph *g = NULL;
    npu_ref_desc ref_desc;
    npu_backend *cpu = NULL;
    npu_rates rates;
    npu_diag diag;
    npu_status status;
    memset(&registry_desc, 0, sizeof registry_desc);
    memset(&graph_desc, 0, sizeof graph_desc);
    memset(&ref_desc, 0, sizeof ref_desc);
    memset(&diag, 0, sizeof diag);
    registry_desc.allocator = graph_desc.allocator = ref_desc.allocator = &given;
    num_calls = 0;
    status = npu_registry_create(&registry, &registry_desc, &diag);
    ref_desc.registry = registry;
    graph_desc.registry = registry;
    status = status ? status : npu_ref_create(&cpu, &ref_desc);
    status = status ? status : npu_graph_parse(&g, doubled_until, strlen(doubled_until), &graph_desc, &diag);
    status = status ? status : use_given_run(g, cpu, &diag);
    status = status ? status : use_given_call(cpu, &diag);
    status = status ? status : npu_rates_calibrate(&rates, cpu, g, NULL, NULL, &diag);
    npu_graph_destroy(g);
    npu_ref_destroy(cpu);
    npu_registry_destroy(registry);
    if (status || num_calls || given_live) {
        fprintf(stderr, "%s: %s; %ld calls of the macros, %ld are live\n", npu_status_name(status), diag.message, num_calls, given_live);
    }
    return status || num_calls || given_live;
}

int main(void)
{
    return use_declarations() || num_live != 0 || use_calibration() || use_given();
}
