/* The model flow: 13 steps, 40 bytes of constants. Written by npu_plan_write; see npu_ir.h, PLANNED MODELS, C CALLS. */
#ifndef FLOW_CALLS
#define FLOW_CALLS
#ifndef FLOW_DECLARATIONS
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

#define FLOW_ARENA 32 /* bytes */
#define FLOW_ALIGNMENT 8u
#define FLOW_STEPS 13u
#define FLOW_IN_X_PLACE 0u /* of the arena: f32[1], 4 bytes */
#define FLOW_IN_N_PLACE 8u /* of the arena: i32[], 4 bytes */
#define FLOW_OUT_Y_PLACE 0u /* of the arena: f32[1], 4 bytes */

uint32_t flow_next(const void *arena, uint32_t step);
npu_status flow_run(void *arena);
npu_status flow_step(void *arena, uint32_t step);
void flow_reset(void *arena);

#ifndef FLOW_DECLARATIONS

typedef struct flow_constants {
    int32_t x_0[2]; /* zero */
    int32_t pair_b_4[2];
    float pair_b_5[2];
    float pair_b_7[2];
    float pair_b_9[2];
} flow_constants;
#if defined(__GNUC__)
__attribute__((aligned(8)))
#endif
static const flow_constants flow_data = {
    .x_0 = {
        0,
    },
    .pair_b_4 = {
        1,
    },
    .pair_b_5 = {
        4.0f,
    },
    .pair_b_7 = {
        0.5f,
    },
    .pair_b_9 = {
        3.0f,
    },
};
#define flow_PLACE(constant) ((uint32_t)offsetof(flow_constants, constant))
#define flow_MODEL(arena) { (const npu_planned_head *)(const void *)&flow_data, (uint8_t *)(arena), NULL, 0, 0, 0 }

/* 0: npu.while, i */
static const npu_planned_copy_words flow_words_0 = {
    .y = NPU_PLANNED_ARENA | 16u, .x = flow_PLACE(x_0), .size = 1u, .y_first = 0u, .x_first = 0u,
    .dims = { 1u, 1u, 1u, 1u, 4u }, .y_steps = { 0u, 0u, 0u, 0u, 1u }, .x_steps = { 0u, 0u, 0u, 0u, 1u },
};
NPU_PLANNED_HEAVY npu_status flow_step_0(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(copy, &m, flow_words_0);
}

/* 1: a loop begins */
static npu_status flow_step_1(void *arena)
{
    uint32_t *turns = (uint32_t *)(void *)((uint8_t *)arena + 28u);
    *turns = 0u;
    return NPU_OK;
}

/* 2: npu.while, i */
static const npu_planned_compare_words flow_words_2 = {
    .pair.y = NPU_PLANNED_ARENA | 24u, .pair.a = NPU_PLANNED_ARENA | 16u, .pair.b = NPU_PLANNED_ARENA | 8u,
    .pair.dims = { 1u, 1u, 1u, 1u }, .pair.a_steps = { 0u, 0u, 0u, 0u }, .pair.b_steps = { 0u, 0u, 0u, 0u },
    .mode = 3u, .dtype = 19u,
};
NPU_PLANNED_HEAVY npu_status flow_step_2(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(compare, &m, flow_words_2);
}

/* 3: a loop goes on, or ends */
static npu_status flow_step_3(void *arena)
{
    uint32_t *turns = (uint32_t *)(void *)((uint8_t *)arena + 28u);
    const uint8_t *bytes = (const uint8_t *)arena;
    bool is_on = bytes[24u] != 0u;
    npu_status status = is_on && *turns >= 6u ? NPU_ERR_RANGE : NPU_OK;
    (void)bytes;
    *turns += is_on ? 1u : 0u;
    return status;
}

/* 4: npu.while, i */
static const npu_planned_binary_int_words flow_words_4 = {
    .pair.y = NPU_PLANNED_ARENA | 16u, .pair.a = NPU_PLANNED_ARENA | 16u, .pair.b = flow_PLACE(pair_b_4),
    .pair.dims = { 1u, 1u, 1u, 1u }, .pair.a_steps = { 0u, 0u, 0u, 0u }, .pair.b_steps = { 0u, 0u, 0u, 0u },
    .mode = 1u, .dtype = 19u,
};
NPU_PLANNED_HEAVY npu_status flow_step_4(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(binary_int, &m, flow_words_4);
}

/* 5: npu.while, i */
static const npu_planned_compare_words flow_words_5 = {
    .pair.y = NPU_PLANNED_ARENA | 24u, .pair.a = NPU_PLANNED_ARENA | 0u, .pair.b = flow_PLACE(pair_b_5),
    .pair.dims = { 1u, 1u, 1u, 1u }, .pair.a_steps = { 0u, 0u, 0u, 0u }, .pair.b_steps = { 0u, 0u, 0u, 0u },
    .mode = 5u, .dtype = 51u,
};
NPU_PLANNED_HEAVY npu_status flow_step_5(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(compare, &m, flow_words_5);
}

/* 7: npu.while, i */
static const npu_planned_binary_words flow_words_7 = {
    .pair.y = NPU_PLANNED_ARENA | 24u, .pair.a = NPU_PLANNED_ARENA | 0u, .pair.b = flow_PLACE(pair_b_7),
    .pair.dims = { 1u, 1u, 1u, 1u }, .pair.a_steps = { 0u, 0u, 0u, 0u }, .pair.b_steps = { 0u, 0u, 0u, 0u },
    .mode = 3u, .alpha = 1.0f, .low = -1.0f / 0.0f, .high = 1.0f / 0.0f,
};
NPU_PLANNED_HEAVY npu_status flow_step_7(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(binary_f32, &m, flow_words_7);
}

/* 9: npu.while, i */
static const npu_planned_binary_words flow_words_9 = {
    .pair.y = NPU_PLANNED_ARENA | 24u, .pair.a = NPU_PLANNED_ARENA | 0u, .pair.b = flow_PLACE(pair_b_9),
    .pair.dims = { 1u, 1u, 1u, 1u }, .pair.a_steps = { 0u, 0u, 0u, 0u }, .pair.b_steps = { 0u, 0u, 0u, 0u },
    .mode = 3u, .alpha = 1.0f, .low = -1.0f / 0.0f, .high = 1.0f / 0.0f,
};
NPU_PLANNED_HEAVY npu_status flow_step_9(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(binary_f32, &m, flow_words_9);
}

/* 11: npu.while, i */
static const npu_planned_copy_words flow_words_11 = {
    .y = NPU_PLANNED_ARENA | 0u, .x = NPU_PLANNED_ARENA | 24u, .size = 1u, .y_first = 0u, .x_first = 0u,
    .dims = { 1u, 1u, 1u, 1u, 4u }, .y_steps = { 0u, 0u, 0u, 0u, 1u }, .x_steps = { 0u, 0u, 0u, 0u, 1u },
};
NPU_PLANNED_HEAVY npu_status flow_step_11(void *arena)
{
    const npu_planned m = flow_MODEL(arena);
    return NPU_PLANNED_CALL(copy, &m, flow_words_11);
}

npu_status flow_step(void *arena, uint32_t step)
{
    if (((uintptr_t)arena & (FLOW_ALIGNMENT - 1)) != 0 || arena == NULL) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    switch (step) {
    case 0: return flow_step_0(arena);
    case 1: return flow_step_1(arena);
    case 2: return flow_step_2(arena);
    case 3: return flow_step_3(arena);
    case 4: return flow_step_4(arena);
    case 5: return flow_step_5(arena);
    case 6: return NPU_OK; /* see flow_next */
    case 7: return flow_step_7(arena);
    case 8: return NPU_OK; /* see flow_next */
    case 9: return flow_step_9(arena);
    case 10: return NPU_OK; /* see flow_next */
    case 11: return flow_step_11(arena);
    case 12: return NPU_OK; /* see flow_next */
    default: return NPU_ERR_INVALID_ARGUMENT;
    }
}

uint32_t flow_next(const void *arena, uint32_t step)
{
    const uint8_t *bytes = (const uint8_t *)arena;
    (void)bytes;
    switch (step) {
    case 3: return bytes[24u] != 0u ? 4u : 13u;
    case 6: return bytes[24u] != 0u ? 7u : 9u;
    case 8: return 11u;
    case 12: return 2u;
    default: return step + 1u;
    }
}

npu_status flow_run(void *arena)
{
    npu_status status = NPU_OK;
    const uint8_t *bytes = (const uint8_t *)arena;
    (void)bytes;
    if (((uintptr_t)arena & (FLOW_ALIGNMENT - 1)) != 0 || arena == NULL) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    status = flow_step_0(arena);
    for (uint32_t turns_1 = 0u; status == NPU_OK; turns_1++) {
        status = status != NPU_OK ? status : flow_step_2(arena);
        if (!(bytes[24u] != 0u)) {
            break;
        }
        status = status == NPU_OK && turns_1 >= 6u ? NPU_ERR_RANGE : status;
        status = status != NPU_OK ? status : flow_step_4(arena);
        status = status != NPU_OK ? status : flow_step_5(arena);
        if (bytes[24u] != 0u) {
            status = status != NPU_OK ? status : flow_step_7(arena);
        } else {
            status = status != NPU_OK ? status : flow_step_9(arena);
        }
        status = status != NPU_OK ? status : flow_step_11(arena);
    }
    return status;
}

void flow_reset(void *arena)
{
    uint8_t *bytes = (uint8_t *)arena;
    (void)bytes;
}
#endif
#endif
