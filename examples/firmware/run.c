/* A planned model on a microcontroller: the C code that 15_planned_model.c wrote, run where it lies, with its arena
   and 24 bytes of memory. -DMODEL names that file, -DCASES the one beside it with inputs and what the host makes of
   them: the outputs are the same, bit for bit. What it takes is printed: instructions, and in machine.c the stack.
   firmware.sh builds it for its machines.
   arm-none-eabi-gcc -std=c99 -Os -I../.. '-DMODEL="digits_i8.h"' '-DCASES="digits_i8_cases.h"' run.c machine.c ... */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include MODEL
#include CASES
#include "machine.h"

static const npu_planned_kernel kernels[] = { MODEL_KERNELS(NPU_PLANNED_KERNEL) };
static uint64_t arena[(MODEL_ARENA + 7) / 8];
static npu_planned open_model;

/* The status of it all; *wrong: bits of outputs that are not the host's. */
static npu_status run_cases(npu_planned *m, uint32_t *wrong)
{
    npu_status status = NPU_OK;
    for (unsigned i = 0; i < sizeof case_inputs / sizeof case_inputs[0] && !status; i++) {
        const uint32_t *result = (const uint32_t *)npu_planned_data(m, 1);
        memcpy(npu_planned_data(m, 0), case_inputs[i], sizeof case_inputs[i]);
        machine_count();
        status = npu_planned_run(m);
        machine_print("instructions of a run", machine_count());
        for (unsigned k = 0; k < sizeof case_outputs[i] / 4; k++) {
            *wrong |= result[k] ^ case_outputs[i][k];
        }
    }
    return status;
}

int main(void)
{
    npu_planned_desc desc = { model, sizeof model, arena, MODEL_ARENA, kernels, sizeof kernels / sizeof kernels[0], 0, 0 };
    uint32_t wrong = 0;
    npu_status status;
    desc.arena_size--;
    status = npu_planned_open(&open_model, &desc) == NPU_ERR_NO_MEMORY ? NPU_OK : NPU_ERR_INTERNAL;
    desc.arena_size++;
    machine_count();
    status = status ? status : npu_planned_open(&open_model, &desc);
    machine_print("instructions to open", machine_count());
    status = status ? status : npu_planned_check_data(&open_model);
    machine_print("instructions to check constants", machine_count());
    status = status ? status : run_cases(&open_model, &wrong);
    machine_print("status", (uint32_t)status);
    machine_print("wrong bits", wrong);
    machine_print("file", sizeof model);
    machine_print("arena", MODEL_ARENA);
    machine_print("beside the arena", sizeof open_model);
    return status || wrong;
}
