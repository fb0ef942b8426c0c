/* The digit classifier on a microcontroller: a planned model that 15_planned_model.c wrote as C code, run where it lies, with
   its arena and 20 bytes of memory. The scores are the host's, bit for bit. With -DMODEL_I8 the one of 8 bits.
   arm-none-eabi-gcc -std=c99 -Os -I../.. -I(folder of the written files) digits.c ... */
#define NPU_IR_RUNTIME_ONLY
#define NPU_IR_STATIC
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "digits_images.h"
#include <stdio.h>
#ifdef MODEL_I8
#include "digits_i8.h"
#define NAME "digits_i8"
#define FILE_OF_MODEL digits_i8
#define SCORES digits_i8_scores
#define ARENA DIGITS_I8_ARENA
#define KERNELS DIGITS_I8_KERNELS
#else
#include "digits_f32.h"
#define NAME "digits_f32"
#define FILE_OF_MODEL digits_f32
#define SCORES digits_f32_scores
#define ARENA DIGITS_F32_ARENA
#define KERNELS DIGITS_F32_KERNELS
#endif

static const npu_planned_kernel kernels[] = { KERNELS(NPU_PLANNED_KERNEL) };
static uint64_t arena[(ARENA + 7) / 8];
static npu_planned model;

int main(void)
{
    npu_planned_desc desc = { FILE_OF_MODEL, sizeof FILE_OF_MODEL, arena, sizeof arena, kernels,
                              sizeof kernels / sizeof kernels[0], 0, 0 };
    int wrong = 0;
    npu_status status = npu_planned_open(&model, &desc);
    status = status ? status : npu_planned_check_data(&model);
    for (unsigned i = 0; i < sizeof digits_images / sizeof digits_images[0] && !status; i++) {
        float *image = (float *)npu_planned_data(&model, 0);
        const float *score = (const float *)npu_planned_data(&model, 1);
        for (unsigned k = 0; k < sizeof digits_images[0]; k++) {
            image[k] = (float)digits_images[i][k] / 255.0f;
        }
        status = npu_planned_run(&model);
        for (unsigned k = 0; k < 10 && !status; k++) {
            uint32_t bits;
            memcpy(&bits, &score[k], sizeof bits);
            wrong += bits != SCORES[i][k];
        }
    }
    printf("%s status %d, wrong scores %d, file %u, arena %u, model %u bytes\n", NAME, (int)status, wrong,
           (unsigned)sizeof FILE_OF_MODEL, (unsigned)sizeof arena, (unsigned)sizeof model);
    desc.arena_size--;
    return status || wrong || npu_planned_open(&model, &desc) != NPU_ERR_NO_MEMORY;
}
