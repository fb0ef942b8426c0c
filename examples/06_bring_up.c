/* 06_bring_up.c - bring up an accelerator op by op: describe it with npu_accel, run each op on it and on the
   CPU, compare.

       cc -std=c99 examples/06_bring_up.c -lm -lpthread && ./a.out

   Here the device is the heap and its kernels are loops; yours are a driver and firmware. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include <stdio.h>

/* ---- the accelerator, in 60 lines ---- */

static void *device_alloc(void *ctx, uint64_t bytes)
{
    (void)ctx;
    return malloc((size_t)bytes);
}

static void device_free(void *ctx, void *handle)
{
    (void)ctx;
    free(handle);
}

static npu_status device_upload(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes)
{
    (void)ctx;
    memcpy((char *)to + offset, from, (size_t)bytes);
    return NPU_OK;
}

static npu_status device_download(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes)
{
    (void)ctx;
    memcpy(to, (const char *)from + offset, (size_t)bytes);
    return NPU_OK;
}

static float *address(const npu_tensor *t)
{
    return (float *)(void *)((char *)t->buffer->handle + t->offset);
}

/* The numbers are the device's own: 0 add, 1 relu, 2 gemm; attributes are read by name. */
static npu_status device_call(void *ctx, const npu_call *call)
{
    const npu_op_info *op = call->op;
    const float *a = address(call->in[0]), *b = op->num_in > 1 ? address(call->in[1]) : NULL;
    float *y = address(call->out[0]);
    int64_t rows = call->out[0]->dims[0], columns = call->out[0]->dims[1], inner = call->in[0]->dims[1];
    bool transposed = npu_op_int(op, "transB", 0) != 0;
    (void)ctx;
    if (op->device_kind > 2 || npu_op_int(op, "transA", 0)) {
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        if (op->device_kind < 2) {
            y[i] = b ? a[i] + b[i] : a[i] > 0 ? a[i] : 0;
            continue;
        }
        y[i] = 0;
        for (int64_t k = 0; k < inner; k++) {
            y[i] += a[i / columns * inner + k]
                    * (transposed ? b[i % columns * inner + k] : b[k * columns + i % columns]);
        }
    }
    return NPU_OK;
}

static const npu_abi_row device_table[] = {
    { NPU_AICF_ADD, 0, 0, "" }, { NPU_AICF_RELU, 1, 0, "" }, { NPU_AICF_GEMM, 2, 0, "<ii" },
};
static const npu_abi device_abi = NPU_ABI(device_table);
static const npu_accel device = {
    .size = sizeof(npu_accel), .name = "npu0", .abi = &device_abi,
    .alloc = device_alloc, .free = device_free, .upload = device_upload, .download = device_download,
    .op_call = device_call,
};

/* ---- the bring-up: each op on both ---- */

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }

static npu_value build(npu_graph *g, int op, npu_value a, npu_value b)
{
    npu_aicf_gemm_attrs transposed = { false, true };
    switch (op) {
    case 0: return npu_aicf_add(g, a, a);
    case 1: return npu_aicf_relu(g, a);
    case 2: return npu_aicf_gemm(g, a, b, &transposed);
    default:
        return npu_relu(
            g, npu_reshape(g, npu_aicf_relu(g, a), DIMS(3, 4), 2)); /* aten.relu is not the device's */
    }
}

/* Runs the graph on the device with the CPU for the rest, and on the CPU alone: the largest difference. */
static double compare(const npu_graph *g, const npu_backend *const *backends)
{
    static const float a[12] = { 1, -2, 3, 0.5f, 4, -1, 2, 2, -3, 1, 0, 5 },
                       b[8] = { 2, 1, -1, 0.5f, 3, -2, 1, 4 };
    npu_exec *device_exec = NULL, *cpu_exec = NULL;
    npu_diag diag = { 0 };
    npu_difference total = { .max_diff = HUGE_VAL };
    npu_status status = npu_exec_create_simple(&device_exec, g, backends, 2, &diag);
    status = status ? status : npu_exec_create_simple(&cpu_exec, g, backends + 1, 1, &diag);
    if (status == NPU_OK) {
        npu_array inputs[2] = { { "a", npu_spec_tensor(NPU_F32, 2, DIMS(3, 4)), a },
                                { "b", npu_spec_tensor(NPU_F32, 2, DIMS(2, 4)), b } };
        for (int i = 0; i < 2; i++) {
            npu_exec_set_input(device_exec, &inputs[i]);
            npu_exec_set_input(cpu_exec, &inputs[i]);
        }
        status = npu_exec_compare(device_exec, cpu_exec, NULL, NULL, &total, &diag);
    }
    printf("%s%s", diag.message, status ? "\n" : "");
    npu_exec_destroy(device_exec);
    npu_exec_destroy(cpu_exec);
    return total.max_diff;
}

int main(void)
{
    static const char *const names[] = { "aicf.add", "aicf.relu", "aicf.gemm", "mixed" };
    npu_backend *npu = NULL;
    int failed = 0;
    if (npu_accel_create(&npu, &device, NULL)) {
        return 1;
    }
    const npu_backend *backends[2] = { npu, npu_ref_backend() };
    for (int op = 0; op < 4; op++) {
        npu_graph *g = npu_graph_create(NULL);
        npu_value a = npu_input(g, "a", npu_spec_tensor(NPU_F32, 2, DIMS(3, 4)));
        npu_value b = npu_input(g, "b", npu_spec_tensor(NPU_F32, 2, DIMS(2, 4)));
        npu_output(g, "y", build(g, op, a, b));
        double worst = compare(g, backends);
        printf("%-10s largest difference from the CPU %g: %s\n", names[op], worst,
               worst < 1e-5 ? "ok" : "WRONG");
        failed |= !(worst < 1e-5);
        npu_graph_destroy(g);
    }
    npu_accel_destroy(npu);
    return failed;
}
