/* accelerator.h - the accelerator of the conformance run: the simulated one of examples/sim with the CPU's
   kernels. It is exact, so that only placement and transfers are tested, and the host cannot touch its
   memory. With NPU_SIM_KERNELS in the environment it uses its own kernels where it has them. Where HAVE_OPENCL is
   defined it is an OpenCL device with the kernels of examples/opencl, and the CPU runs what it does not take. */
#ifndef CONF_ACCELERATOR_H
#define CONF_ACCELERATOR_H

#include "../../npu_ir_backend_ref.h"

#ifdef HAVE_OPENCL
#define NPU_OPENCL_IMPLEMENTATION
#include "../../examples/opencl/npu_opencl.h"

static inline const npu_backend *conformance_accelerator(void)
{
    static npu_backend *device;
    npu_diag diag;
    if (!device && npu_opencl_create(&device, NULL, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
    }
    return device;
}

#else
#define NPU_SIM_IMPLEMENTATION
#include "../../examples/sim/npu_sim.h"

static inline const npu_backend *conformance_accelerator(void)
{
    static npu_sim *sim;
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.emulate = npu_ref_backend();
    desc.emulate_all = getenv("NPU_SIM_KERNELS") == NULL;
    if (!sim && npu_sim_create(&sim, &desc)) {
        return NULL;
    }
    return npu_sim_backend(sim);
}
#endif

#endif
