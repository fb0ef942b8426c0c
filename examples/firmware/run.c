/* A planned model on a microcontroller: the C code that 15_planned_model.c wrote, run where it lies, with its arena
   and 24 bytes of memory. -DMODEL names that file, -DCASES the one beside it with inputs and what the host makes of
   them: the outputs are the same, bit for bit. What it takes is printed: instructions, and in machine.c the stack.
   With -DVECTOR_UNIT there is an accelerator. With -DCALLS it is the file of C calls instead, -DIN and -DOUT the places
   of its ports; with -DWITH_CMSIS_NN products are those of CMSIS-NN. firmware.sh builds it for its machines.
   arm-none-eabi-gcc -std=c99 -Os -I../.. '-DMODEL="digits_i8.h"' '-DCASES="digits_i8_cases.h"' run.c runtime.c machine.c ... */
#ifdef CALLS
#ifdef VECTOR_UNIT /* its kernels are part of this file, so what the calls would define is defined before */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_STATIC
#define NPU_IR_IMPLEMENTATION
#define NPU_IR_PLANNED_CALLS
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "vector_unit.h"
#endif
#include CALLS
#else
#define NPU_IR_RUNTIME_ONLY
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#ifdef VECTOR_UNIT
#include "vector_unit.h"
#endif
#ifdef WITH_CMSIS_NN
#include "cmsis_nn.h"
#else
#define CMSIS_NN_KERNELS
#endif
#include MODEL
#endif
#include CASES
#include "machine.h"
#include <string.h>

static uint64_t arena[(MODEL_ARENA + 7) / 8];

#ifdef CALLS
static npu_status begin(void) { return NPU_OK; }
#ifdef VECTOR_UNIT
/* A loop that has other things to do while the unit works. */
static npu_status run(void)
{
    npu_status status = NPU_OK;
    uint32_t free_turns = 0;
    for (uint32_t step = 0, waits = 0; step < MODEL_STEPS && (status == NPU_OK || status == NPU_ERR_BUSY);) {
        status = model_poll(arena, step, waits);
        free_turns += status == NPU_ERR_BUSY;
        waits = status == NPU_ERR_BUSY ? waits + 1 : 0;
        step += status != NPU_ERR_BUSY;
    }
    machine_print("free turns", free_turns);
    return status;
}
#else
static npu_status run(void) { return model_run(arena); }
#endif
static void *input(void) { return (uint8_t *)arena + IN; }
static const void *output(void) { return (uint8_t *)arena + OUT; }
#else
static const npu_planned_kernel kernels[] = { CMSIS_NN_KERNELS MODEL_KERNELS(NPU_PLANNED_KERNEL) };
static npu_planned open_model;
static npu_status run(void) { return npu_planned_run(&open_model); }
static void *input(void) { return npu_planned_data(&open_model, 0); }
static const void *output(void) { return npu_planned_data(&open_model, 1); }

/* One byte less than it needs is refused. */
static npu_status begin(void)
{
    npu_planned_desc desc = { model, sizeof model, arena, MODEL_ARENA, kernels, sizeof kernels / sizeof kernels[0], 0, 0 };
    npu_status status;
    desc.arena_size--;
    status = npu_planned_open(&open_model, &desc) == NPU_ERR_NO_MEMORY ? NPU_OK : NPU_ERR_INTERNAL;
    desc.arena_size++;
    machine_count();
    status = status ? status : npu_planned_open(&open_model, &desc);
    machine_print("instructions to open", machine_count());
    status = status ? status : npu_planned_check_data(&open_model);
    machine_print("instructions to check constants", machine_count());
    machine_print("file", sizeof model);
    machine_print("beside the arena", sizeof open_model);
    return status;
}
#endif

/* The status of it all; *wrong: bits of outputs that are not the host's. */
static npu_status run_cases(uint32_t *wrong)
{
    npu_status status = NPU_OK;
    for (unsigned i = 0; i < sizeof case_inputs / sizeof case_inputs[0] && !status; i++) {
        const uint32_t *result = (const uint32_t *)output();
        memcpy(input(), case_inputs[i], sizeof case_inputs[i]);
        machine_count();
        status = run();
        machine_print("instructions of a run", machine_count());
        for (unsigned k = 0; k < sizeof case_outputs[i] / 4; k++) {
            *wrong |= result[k] ^ case_outputs[i][k];
        }
    }
    return status;
}

int main(void)
{
    uint32_t wrong = 0;
    npu_status status = begin();
    status = status ? status : run_cases(&wrong);
    machine_print("status", (uint32_t)status);
    machine_print("wrong bits", wrong);
    machine_print("arena", MODEL_ARENA);
    return status || wrong;
}
