/* Capture and replay, and the cache of programs. */
#include "rig.h"

/* ---- capture ---- */

/* x and state in, states and two outputs out, across an accelerator and the CPU. */
static void build(npu_graph *g)
{
    npu_value x = npu_input(g, "x", F32(4, 3)), h = npu_state(g, "h", F32(4, 2));
    npu_value y = npu_add(g, npu_matmul(g, npu_relu(g, x), W(3, 2)), h);
    npu_update(g, h, y);
    npu_output(g, "y", npu_softmax(g, y, -1));
    npu_output(g, "z", npu_exp(g, x));
}

static const char *const deny_exp[] = { "aten.exp.default", "aten.add.Tensor" };

static rig split_rig(uint32_t sims, bool async)
{
    npu_sim_desc desc;
    rig r;
    memset(&desc, 0, sizeof desc);
    desc.deny = deny_exp;
    desc.num_deny = 2;
    desc.async = async;
    r = rig_start(&desc, sims);
    build(r.graph);
    return r;
}

/* Five runs on changing input, as a run or as a replay: the same numbers. */
static void test_replay(void)
{
    NPU_ITEM("S2.61");
    NPU_ITEM("R2.21");
    for (uint32_t sims = 0; sims < 3; sims++) { /* 2: one accelerator, asynchronous */
        rig r = split_rig(sims ? 1 : 0, sims == 2);
        npu_capture *capture = NULL;
        npu_exec *other = NULL;
        float x[12], y[2][8], z[2][12];
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&other, r.program, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_capture(r.exec, &capture), NPU_ERR_MISSING_FEED);
        NPU_CHECK(!capture);
        for (int i = 0; i < 2; i++) {
            npu_exec *e = i ? other : r.exec;
            npu_exec_set_input(e, "x", x, sizeof x);
            npu_exec_set_output(e, "y", y[i], sizeof y[i]);
            npu_exec_set_output(e, "z", z[i], sizeof z[i]);
        }
        NPU_CHECK_STATUS(npu_exec_capture(r.exec, &capture), NPU_OK);
        NPU_CHECK(!npu_exec_output(r.exec, 0, NULL)); /* nothing has run yet */
        for (uint32_t k = 0; k < 5; k++) {
            fill(x, 12, k);
            memset(y, (int)k, sizeof y);
            NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(other), NPU_OK);
            NPU_CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(z[0], z[1], sizeof z[0]) == 0);
        }
        NPU_CHECK(npu_capture_num_actions(capture) >= 3); /* the CPU alone: a submit, and the state in two moves */
        npu_exec_set_input(r.exec, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_ERR_STATE);
        npu_capture_destroy(capture);
        npu_capture_destroy(NULL);
        npu_exec_destroy(other);
        rig_end(&r);
    }
}

/* A replay allocates nothing, on the host or on the device. */
static void test_no_allocation(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_counting_allocator(&counter);
    rig r = split_rig(1, false);
    npu_capture *capture = NULL;
    float x[12];
    uint64_t calls, buffers;
    NPU_ITEM("S2.61");
    fill(x, 12, 1);
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_set_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_capture(r.exec, &capture), NPU_OK);
    calls = counter.num_calls;
    buffers = npu_sim_count(r.sims[0]).calls[NPU_SIM_ALLOC];
    for (int k = 0; k < 3; k++) {
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
    }
    NPU_CHECK_EQ(counter.num_calls, calls);
    NPU_CHECK_EQ(npu_sim_count(r.sims[0]).calls[NPU_SIM_ALLOC], buffers);
    npu_capture_destroy(capture);
    rig_end(&r);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* Memory that runs out while capturing leaves an exec that runs. */
static void test_capture_out_of_memory(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_counting_allocator(&counter);
    rig r = split_rig(0, false);
    npu_capture *capture = NULL;
    npu_status status = NPU_ERR_NO_MEMORY;
    float x[12];
    fill(x, 12, 1);
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_set_input(r.exec, "x", x, sizeof x);
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 100; n++) {
        counter.num_calls = 0;
        counter.fail_at = n;
        status = npu_exec_capture(r.exec, &capture);
        NPU_CHECK_EQ(status == NPU_OK, capture != NULL);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    counter.fail_at = 0;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    npu_capture_destroy(capture);
    rig_end(&r);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* A device that stops working: the replay says so, and works again when the device does. */
static void test_replay_failures(void)
{
    rig r = split_rig(1, false);
    npu_capture *capture = NULL;
    float x[12];
    fill(x, 12, 1);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_set_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_capture(r.exec, &capture), NPU_OK);
    npu_sim_fail(r.sims[0], NPU_SIM_SUBMIT, 1, NPU_ERR_BACKEND);
    NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_ERR_BACKEND);
    npu_sim_fail(r.sims[0], NPU_SIM_UPLOAD, 1, NPU_ERR_IO);
    NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_ERR_IO);
    NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
    npu_capture_destroy(capture);
    rig_end(&r);
}

/* ---- a backend with slots for it: the CPU, whose submits are noted while it captures ---- */

typedef struct note {
    void *program;
    npu_binding binding;
} note;

static struct {
    bool is_capturing;
    note *now;
    int captures, replays, releases, submits;
} recorder;

static npu_status record_begin(void *ctx)
{
    (void)ctx;
    recorder.is_capturing = true;
    recorder.now = (note *)calloc(1, sizeof *recorder.now);
    recorder.captures++;
    return NPU_OK;
}

static npu_status record_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    if (recorder.is_capturing) {
        recorder.now->program = program;
        recorder.now->binding = *binding;
        return NPU_OK;
    }
    recorder.submits++;
    return npu_ref_backend()->submit(ctx, program, binding, fence);
}

static npu_status record_end(void *ctx, void **capture)
{
    (void)ctx;
    recorder.is_capturing = false;
    *capture = recorder.now;
    return NPU_OK;
}

static npu_status record_replay(void *ctx, void *capture, npu_fence *fence)
{
    note *n = (note *)capture;
    recorder.replays++;
    return npu_ref_backend()->submit(ctx, n->program, &n->binding, fence);
}

static void record_release(void *ctx, void *capture)
{
    (void)ctx;
    recorder.releases++;
    free(capture);
}

static void test_backend_slots(void)
{
    npu_backend backend = *npu_ref_backend();
    rig r = split_rig(0, false);
    npu_capture *capture = NULL;
    float x[12], z[12];
    NPU_ITEM("S2.61");
    fill(x, 12, 1);
    memset(&recorder, 0, sizeof recorder);
    backend.capture_begin = record_begin;
    backend.capture_end = record_end;
    backend.replay = record_replay;
    backend.release_capture = record_release;
    backend.submit = record_submit;
    r.backends[0] = &backend;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_set_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "z", z, sizeof z);
    NPU_CHECK_STATUS(npu_exec_capture(r.exec, &capture), NPU_OK);
    NPU_CHECK_EQ(recorder.captures, 1);
    for (int k = 0; k < 3; k++) {
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
    }
    NPU_CHECK_EQ(recorder.replays, 3);
    NPU_CHECK_EQ(recorder.submits, 0);
    NPU_CHECK_NEAR(z[5], exp((double)x[5]), 1e-6);
    npu_capture_destroy(capture);
    NPU_CHECK_EQ(recorder.releases, 1);
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_replay);
    NPU_RUN(test_no_allocation);
    NPU_RUN(test_capture_out_of_memory);
    NPU_RUN(test_replay_failures);
    NPU_RUN(test_backend_slots);
    return npu_test_done();
}
