/* The model net: 3 steps, 24 bytes of constants. Written by npu_plan_write; see npu_ir.h, PLANNED MODELS, C CALLS. */
#ifndef NET_CALLS
#define NET_CALLS
#ifndef NET_DECLARATIONS
#ifndef NPU_IR_RUNTIME_ONLY
#define NPU_IR_RUNTIME_ONLY
#endif
#ifndef NPU_IR_STATIC
#define NPU_IR_STATIC
#endif
#ifndef NPU_IR_IMPLEMENTATION
#define NPU_IR_IMPLEMENTATION
#endif
#ifndef NPU_IR_PLANNED_CALLS
#define NPU_IR_PLANNED_CALLS
#endif
#endif
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"

#define NET_ARENA 40 /* bytes */
#define NET_ALIGNMENT 8u
#define NET_STEPS 3u
#define NET_IN_X_PLACE 16u /* of the arena: f32[1,2], 8 bytes */
#define NET_OUT_Y_PLACE 0u /* of the arena: f32[1,3], 12 bytes */
#define NET_STATE_S_PLACE 24u /* of the arena: f32[2], 8 bytes */

npu_status net_run(void *arena);
npu_status net_step(void *arena, uint32_t step);
void net_reset(void *arena);

#ifndef NET_DECLARATIONS

typedef struct net_constants {
    float b_0[6]; /* w */
} net_constants;
#if defined(__GNUC__)
__attribute__((aligned(8)))
#endif
static const net_constants net_data = {
    .b_0 = {
        1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f,
    },
};
#define net_PLACE(constant) ((uint32_t)offsetof(net_constants, constant))
#define net_MODEL(arena) { (const npu_planned_head *)(const void *)&net_data, (uint8_t *)(arena), NULL, 0, 0, 0 }

/* 0: aten.linear.default, l */
static const npu_planned_matmul_words net_words_0 = {
    .y = NPU_PLANNED_ARENA | 0u, .a = NPU_PLANNED_ARENA | 16u, .b = net_PLACE(b_0), .bias = NPU_PLANNED_NONE,
    .batch = 1u, .m = 1u, .n = 3u, .k = 2u, .a_batch = 0u, .b_batch = 0u, .b_n = 2u, .b_k = 1u,
    .low = 0.0f, .high = 1.0f / 0.0f,
};
NPU_PLANNED_HEAVY npu_status net_step_0(void *arena)
{
    const npu_planned m = net_MODEL(arena);
    return NPU_PLANNED_CALL(matmul_f32, &m, net_words_0);
}

/* 1: aten.add.Tensor, n */
static const npu_planned_binary_words net_words_1 = {
    .pair.y = NPU_PLANNED_ARENA | 32u, .pair.a = NPU_PLANNED_ARENA | 24u, .pair.b = NPU_PLANNED_ARENA | 16u,
    .pair.dims = { 1u, 1u, 1u, 2u }, .pair.a_steps = { 0u, 0u, 0u, 1u }, .pair.b_steps = { 0u, 0u, 0u, 1u },
    .mode = 1u, .alpha = 1.0f, .low = -1.0f / 0.0f, .high = 1.0f / 0.0f,
};
NPU_PLANNED_HEAVY npu_status net_step_1(void *arena)
{
    const npu_planned m = net_MODEL(arena);
    return NPU_PLANNED_CALL(binary_f32, &m, net_words_1);
}

/* 2: copy */
static const npu_planned_copy_words net_words_2 = {
    .y = NPU_PLANNED_ARENA | 24u, .x = NPU_PLANNED_ARENA | 32u, .size = 1u, .y_first = 0u, .x_first = 0u,
    .dims = { 1u, 1u, 1u, 1u, 8u }, .y_steps = { 0u, 0u, 0u, 0u, 1u }, .x_steps = { 0u, 0u, 0u, 0u, 1u },
};
NPU_PLANNED_HEAVY npu_status net_step_2(void *arena)
{
    const npu_planned m = net_MODEL(arena);
    return NPU_PLANNED_CALL(copy, &m, net_words_2);
}

npu_status net_step(void *arena, uint32_t step)
{
    if (((uintptr_t)arena & (NET_ALIGNMENT - 1)) != 0 || arena == NULL) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    switch (step) {
    case 0: return net_step_0(arena);
    case 1: return net_step_1(arena);
    case 2: return net_step_2(arena);
    default: return NPU_ERR_INVALID_ARGUMENT;
    }
}

npu_status net_run(void *arena)
{
    npu_status status = NPU_OK;
    if (((uintptr_t)arena & (NET_ALIGNMENT - 1)) != 0 || arena == NULL) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    status = net_step_0(arena);
    status = status != NPU_OK ? status : net_step_1(arena);
    status = status != NPU_OK ? status : net_step_2(arena);
    return status;
}

void net_reset(void *arena)
{
    uint8_t *bytes = (uint8_t *)arena;
    (void)bytes;
    for (uint32_t i = 0; i < 8u; i++) {
        bytes[24u + i] = 0;
    }
}
#endif
#endif
