/* 11_opencl: ResNet-18 split between an OpenCL device and the CPU, beside the outputs that PyTorch recorded.
   opencl/npu_opencl.h is the backend, over a real driver: the device takes what it has kernels for, the rest
   runs on the CPU, and the plan says what and why.
   cc -O2 -DHAVE_OPENCL -I.. 11_opencl.c -lOpenCL -lm -lpthread      (run it from the repository's root)

   An argument chooses a device by a part of its name. */
#ifdef HAVE_OPENCL
#define _POSIX_C_SOURCE 199309L
#define NPU_IR_IMPLEMENTATION
#define NPU_OPENCL_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "opencl/npu_opencl.h"
#include "reference/reference.h"
#include "reference/resnet18.h"
#include <time.h>

enum { PIXELS = 3 * 224 * 224, CLASSES = 1000 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Runs the graph twice, the second time with the clock; prints what ran where. 0: the outputs are PyTorch's. */
static int classify(const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends, bool show_plan)
{
    float *in = reference_make("input", npu_value_spec(g, npu_graph_input(g, 0)), 0), out[CLASSES];
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_text text = npu_text_init(NULL);
    double start = 0, difference = -1;
    npu_status status = npu_exec_create_simple(&exec, g, backends, num_backends, &diag);
    if (!status) {
        npu_exec_set_input(exec, &(npu_array){ "input", *npu_value_spec(g, npu_graph_input(g, 0)), in });
        npu_exec_set_output(exec, "output", out, sizeof out);
        status = npu_exec_run(exec);
        start = seconds();
        status = status ? status : npu_exec_run(exec);
        diag = *npu_exec_diag(exec);
    }
    if (status) {
        fprintf(stderr, "%s\n", diag.message);
    } else {
        difference = reference_compare("examples/reference/resnet18.expected", "output", out, CLASSES);
        npu_plan_print(npu_program_plan(npu_exec_program(exec)), &text);
        printf("%s%u ops, %.1f ms, largest difference from PyTorch over the largest output: %.2g (allowed 1e-4)\n\n",
               show_plan ? text.data : "", (unsigned)npu_graph_num_ops(g), 1e3 * (seconds() - start), difference);
    }
    npu_text_free(&text);
    npu_exec_destroy(exec);
    free(in);
    return difference < 0 || difference > 1e-4;
}

int main(int argc, char **argv)
{
    npu_backend *device = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_opencl_create(&device, argc > 1 ? argv[1] : NULL, &diag);
    if (status) {
        printf("%s%s\n", status == NPU_ERR_NOT_FOUND ? "SKIP: " : "", diag.message);
        return status != NPU_ERR_NOT_FOUND;
    }
    printf("device: %s\n\n", npu_opencl_device(device));
    const npu_backend *backends[] = { device, npu_ref_backend() };
    npu_optimize_desc desc = { .backends = backends, .num_backends = 2, .frozen = true };
    npu_model *m = resnet18();
    npu_graph *g = npu_model_graph(m), *folded = NULL;
    int failed = reference_bind(g, NULL, resnet18_is_norm) == 0;
    printf("the CPU alone: ");
    failed |= classify(g, &backends[1], 1, false);
    failed |= classify(g, backends, 2, true);
    printf("batch norms folded into convolutions: ");
    failed |= npu_graph_optimize(&folded, g, &desc, NULL, &diag) || classify(folded, backends, 2, false);
    npu_graph_destroy(folded);
    npu_model_destroy(m);
    npu_opencl_destroy(device);
    return failed;
}
#else
#include <stdio.h>
int main(void)
{
    printf("SKIP: no OpenCL here (Debian: ocl-icd-opencl-dev and a driver, pocl-opencl-icd for the CPU)\n");
    return 0;
}
#endif
