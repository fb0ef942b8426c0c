/* Runs a planned model (npu_run MODEL --plan-out FILE) with inputs of 0 and prints the bytes of its outputs. Built by
   CMakeLists.txt, meson.build and Makefile beside it; zephyr/ is the same as a module.
   usage: planned [FILE] */
#define NPU_IR_RUNTIME_ONLY
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>

static const npu_planned_kernel kernels[] = {
#define NPU_X(id, name) NPU_PLANNED_KERNEL(name)
    NPU_IR_PLANNED_KERNELS(NPU_X)
#undef NPU_X
};
static uint64_t file[1 << 17], arena[1 << 17];

int main(int argc, char **argv)
{
    npu_planned_desc desc = { file, 0, arena, sizeof arena, kernels, sizeof kernels / sizeof kernels[0], 0, 0 };
    npu_planned model;
    npu_status status;
    FILE *from = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (argc > 1 && !from) {
        fprintf(stderr, "%s: cannot be read\n", argv[1]);
        return 1;
    }
    desc.size = from ? fread(file, 1, sizeof file, from) : 0;
    if (from) {
        fclose(from);
    }
    status = npu_planned_open(&model, &desc);
    status = status ? status : npu_planned_run(&model);
    printf("status %d, %u kernels\n", (int)status, (unsigned)desc.num_kernels);
    for (uint32_t i = 0; npu_planned_port_at(&model, i); i++) {
        const npu_planned_port *port = npu_planned_port_at(&model, i);
        const uint8_t *bytes = (const uint8_t *)npu_planned_data(&model, i);
        for (uint32_t k = 0; port->role == NPU_PORT_OUTPUT && k < port->bytes; k++) {
            printf("%02x%s", bytes[k], k + 1 < port->bytes ? "" : "\n");
        }
    }
    return argc > 1 ? status != NPU_OK : status != NPU_ERR_PARSE; /* without a file there is nothing to open */
}
