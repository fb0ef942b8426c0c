/* Planned models as C calls: the file that test_planned.c records is compiled as it is, a program of its own, and gives
   what its ops say. */
#define NET_DECLARATIONS
#include "golden/planned.c"
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
    NPU_RUN(test_refused);
    return npu_test_done();
}
