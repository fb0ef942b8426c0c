/* Planned models as C calls: the files that test_planned.c records are compiled as they are, programs of their own, and
   give what their ops say. */
#define NET_DECLARATIONS
#include "golden/planned.c"
#define FLOW_DECLARATIONS
#include "golden/planned_flow.c"
#include "npu_test.h"

/* y = relu(w x) of w = 1 2, 3 4, 5 6; the state is the sum of all x since the reset. */
static void test_runs(void)
{
    static uint64_t arena[NET_ARENA / 8];
    uint8_t *at = (uint8_t *)arena;
    float x[2] = { 1.5f, -2.0f }, y[3], s[2];
    memset(arena, 0xff, sizeof arena);
    net_reset(arena);
    for (int run = 0; run < 2; run++) {
        memcpy(at + NET_IN_X_PLACE, x, sizeof x);
        NPU_CHECK_STATUS(net_run(arena), NPU_OK);
        memcpy(y, at + NET_OUT_Y_PLACE, sizeof y);
        NPU_CHECK(y[0] <= 0.0f && y[0] >= 0.0f && y[1] <= 0.0f && y[1] >= 0.0f && y[2] <= 0.0f && y[2] >= 0.0f);
        x[0] = 0.0f;
        x[1] = 0.5f;
        memcpy(at + NET_IN_X_PLACE, x, sizeof x);
        for (uint32_t i = 0; i < NET_STEPS; i++) {
            NPU_CHECK_STATUS(net_step(arena, i), NPU_OK);
        }
        memcpy(y, at + NET_OUT_Y_PLACE, sizeof y);
        NPU_CHECK(memcmp(y, (const float[]){ 1.0f, 2.0f, 3.0f }, sizeof y) == 0);
        x[0] = 1.5f;
        x[1] = -2.0f;
    }
    memcpy(s, at + NET_STATE_S_PLACE, sizeof s);
    NPU_CHECK(memcmp(s, (const float[]){ 3.0f, -3.0f }, sizeof s) == 0);
    net_reset(arena);
    memcpy(s, at + NET_STATE_S_PLACE, sizeof s);
    NPU_CHECK(memcmp(s, (const float[]){ 0.0f, 0.0f }, sizeof s) == 0);
}

/* x, halved where it is above 4, else tripled, n times; more than six are refused. */
static void test_flow(void)
{
    static uint64_t arena[FLOW_ARENA / 8];
    uint8_t *at = (uint8_t *)arena;
    for (int way = 0; way < 2; way++) {
        float x = 1.0f, y = 1.0f;
        for (int32_t n = 0; n < 9; n++) {
            npu_status status = NPU_OK;
            memcpy(at + FLOW_IN_X_PLACE, &x, 4);
            memcpy(at + FLOW_IN_N_PLACE, &n, 4);
            for (uint32_t i = 0; way && status == NPU_OK && i < FLOW_STEPS; i = flow_next(arena, i)) {
                status = flow_step(arena, i);
            }
            status = way ? status : flow_run(arena);
            NPU_CHECK_STATUS(status, n <= 6 ? NPU_OK : NPU_ERR_RANGE);
            NPU_CHECK(n > 6 || memcmp(at + FLOW_OUT_Y_PLACE, &y, 4) == 0);
            y = y > 4 ? y / 2 : y * 3;
        }
    }
}

static void test_refused(void)
{
    static uint64_t arena[NET_ARENA / 8 + 1];
    NPU_CHECK_STATUS(net_run(NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(net_step(NULL, 0), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(net_run((uint8_t *)arena + 4), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(net_step(arena, NET_STEPS), NPU_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    NPU_RUN(test_runs);
    NPU_RUN(test_flow);
    NPU_RUN(test_refused);
    return npu_test_done();
}
