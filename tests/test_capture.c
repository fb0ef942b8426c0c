/* Capture and replay, what may share memory, slots, and the cache of programs. */
#include "rig.h"

/* ---- capture ---- */

/* x and state in, states and two outputs out, across an accelerator and the CPU. */
static void build(npu_graph *g)
{
    npu_value x = npu_input(g, "x", F32(4, 3)), h = npu_state(g, "h", F32(4, 2));
    npu_value w = W(3, 2), y = npu_add(g, npu_matmul(g, npu_relu(g, x), w), h); /* ids in this order everywhere */
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
    for (uint32_t sims = 0; sims < 3; sims++) { /* 2: one accelerator, asynchronous */
        rig r = split_rig(sims ? 1 : 0, sims == 2);
        npu_capture *capture = NULL;
        npu_exec *other = NULL;
        float x[12], y[2][8], z[2][12];
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&other, r.program, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_ERR_MISSING_FEED);
        NPU_CHECK(!capture);
        for (int i = 0; i < 2; i++) {
            npu_exec *e = i ? other : r.exec;
            npu_test_input(e, "x", x, sizeof x);
            npu_exec_set_output(e, "y", y[i], sizeof y[i]);
            npu_exec_set_output(e, "z", z[i], sizeof z[i]);
        }
        NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_OK);
        NPU_CHECK(!npu_exec_output(r.exec, 0, NULL)); /* nothing has run yet */
        for (uint32_t k = 0; k < 5; k++) {
            fill(x, 12, k);
            memset(y, (int)k, sizeof y);
            NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(other), NPU_OK);
            NPU_CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(z[0], z[1], sizeof z[0]) == 0);
        }
        NPU_CHECK(npu_capture_num_actions(capture) >= 3); /* the CPU alone: a submit, and the state in two moves */
        npu_test_input(r.exec, "x", x, sizeof x);
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
    npu_allocator a = npu_allocator_counting(&counter);
    rig r = split_rig(1, false);
    npu_capture *capture = NULL;
    float x[12];
    uint64_t calls, buffers;
    NPU_ITEM("S2.61");
    fill(x, 12, 1);
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_OK);
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
    npu_allocator a = npu_allocator_counting(&counter);
    rig r = split_rig(0, false);
    npu_capture *capture = NULL;
    npu_status status = NPU_ERR_NO_MEMORY;
    float x[12];
    fill(x, 12, 1);
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 100; n++) {
        counter.num_calls = 0;
        counter.fail_at = n;
        status = npu_capture_create(&capture, r.exec);
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
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_OK);
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

static npu_status record_begin(void *ctx, uint64_t stream)
{
    (void)ctx, (void)stream;
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

static npu_status record_replay(void *ctx, void *capture, uint64_t stream, npu_fence *fence)
{
    note *n = (note *)capture;
    (void)stream;
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
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "z", z, sizeof z);
    NPU_CHECK_STATUS(npu_capture_create(&capture, r.exec), NPU_OK);
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

/* ---- which memory a result may take ---- */

/* One step of Adam, its five tensors inputs, temporaries (through exp) or states. */
static npu_op adam(npu_graph *g, npu_value p, npu_value grad, npu_value m, npu_value v)
{
    npu_arg args[6];
    npu_value one = npu_input(g, "bc1", npu_spec_tensor(NPU_F32, 0, NULL)), two = npu_input(g, "bc2", npu_spec_tensor(NPU_F32, 0, NULL));
    args[0] = npu_arg_tensor(NULL, p);
    args[1] = npu_arg_tensor(NULL, grad);
    args[2] = npu_arg_tensor(NULL, m);
    args[3] = npu_arg_tensor(NULL, v);
    args[4] = npu_arg_tensor(NULL, one);
    args[5] = npu_arg_tensor(NULL, two);
    return npu_emit(g, NPU_AICF_ADAM_STEP, args, 6);
}

static const struct {
    const char *op;
    uint32_t result, operand;
    npu_status status;
} alias_cases[] = {
    { "adam", 0, 0, NPU_OK }, { "adam", 0, 1, NPU_ERR_INVALID_ARGUMENT }, { "adam", 0, 2, NPU_ERR_INVALID_ARGUMENT },
    { "adam", 1, 2, NPU_OK }, { "adam", 2, 3, NPU_OK }, { "adam", 2, 2, NPU_ERR_INVALID_ARGUMENT },
    { "adam", 3, 0, NPU_ERR_RANGE }, { "adam", 0, 9, NPU_ERR_RANGE },
    { "sgd", 0, 0, NPU_OK }, { "sgd", 0, 1, NPU_ERR_INVALID_ARGUMENT },
    { "step", 0, 0, NPU_OK }, { "bias", 0, 0, NPU_OK }, { "bias", 0, 1, NPU_ERR_INVALID_ARGUMENT },
    { "later", 0, 0, NPU_ERR_STATE },  /* a later op reads it */
    { "output", 0, 0, NPU_ERR_STATE },
    { "input", 0, 0, NPU_ERR_STATE }, /* the caller's memory stays */
    { "viewed", 0, 0, NPU_ERR_STATE },
    { "itself", 0, 1, NPU_ERR_STATE }, /* it is written while it is read */
    { "twice", 0, 2, NPU_OK },         /* element by element */
    { "norm", 0, 0, NPU_OK }, { "norm", 0, 1, NPU_ERR_INVALID_ARGUMENT }, { "rows", 0, 0, NPU_OK },
    { "own", 0, 0, NPU_ERR_STATE }, /* its weight is a row of what it would overwrite */
};

static const char alias_text[] =
    "npu_ir 1\ngraph main\ninput x : f32[4,3]\ninput n : i32[]\ninput b : f32[3]\ninput one : f32[]\n"
    "p = aten.exp.default(x)\ng = aten.exp.default(x)\nm = aten.exp.default(x)\nv = aten.exp.default(x)\n"
    "p2, m2, v2 = aicf.adam_step(p, g, m, v, one, one, lr=0.1) @adam\n"
    "q = aten.exp.default(x)\ns = aicf.sgd_step(q, g, lr=0.1) @sgd\n"
    "k = aicf.copy(n)\nt = aicf.step_inc(k)\nt2 = aicf.step_inc(t) @step\n"
    "y = aten.exp.default(x)\nz = aicf.bias_add(y, b) @bias\n"
    "c = aten.exp.default(x)\nd = aicf.bias_add(c, b) @later\ne = aten.mul.Tensor(c, d)\n"
    "f = aicf.bias_add(z, b) @output\n"
    "h = aicf.bias_add(x, b) @input\n"
    "i = aten.exp.default(x)\nj = aten.view.default(i, [12])\nl = aicf.bias_add(i, b) @viewed\n"
    "o = aten.exp.default(j)\n"
    "input sq : f32[3,3]\nu = aten.exp.default(sq)\nw = linalg.transpose(u, u, permutation=[1, 0]) @itself\n"
    "aa = aten.exp.default(sq)\nbb = linalg.add(aa, aa, aa) @twice\n"
    "cc = aten.exp.default(x)\ndd = aten.batch_norm.default(cc, b, b, b, b, false, 0.1, 1e-5, false) @norm\n"
    "ee = aten.exp.default(x)\nff = aten.layer_norm.default(ee, [3], b, b) @rows\n"
    "gg = aten.exp.default(sq)\nhh = aten.select.int(gg, 0, 1)\nii = aten.layer_norm.default(gg, [3], hh) @own\n"
    "output z = z\noutput o = o\n";

static void test_alias_rules(void)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    NPU_ITEM("S2.60");
    NPU_ITEM("R2.18");
    NPU_ITEM("R3.28");
    NPU_CHECK_STATUS(npu_graph_parse(&g, alias_text, sizeof alias_text - 1, NULL, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    for (size_t i = 0; g && i < sizeof alias_cases / sizeof alias_cases[0]; i++) {
        npu_op op = { 0 };
        for (uint32_t id = 1; id <= npu_graph_num_ops(g); id++) {
            npu_op each = { id };
            op = strcmp(npu_op_name(g, each), alias_cases[i].op) == 0 ? each : op;
        }
        NPU_CHECK(op.id);
        NPU_CHECK_STATUS(npu_graph_check_alias(g, op, alias_cases[i].result, alias_cases[i].operand, &diag), alias_cases[i].status);
        npu_op_info info;
        npu_op_storage storage = { 0 };
        NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
        bool allowed = alias_cases[i].status == NPU_OK || alias_cases[i].status == NPU_ERR_STATE; /* by the kind alone */
        NPU_CHECK_EQ(npu_op_may_alias(&info, alias_cases[i].result, alias_cases[i].operand), allowed);
        npu_op_storage_free(&storage);
    }
    npu_graph_destroy(g);
}

/* A row says it, that of an op from outside, too. */
static void test_alias_traits(void)
{
    static const struct { uint32_t traits; const char *allowed; } cases[] = { /* results 0 and 1, operands 0 to 3 */
        { 0, "0000 0000" },
        { NPU_INPLACE, "1000 0000" },
        { NPU_INPLACE | NPU_ELEMENTWISE, "1111 0000" },
        { NPU_INPLACE | NPU_ELEMENTWISE | NPU_REUSES_0, "1000 0000" },
        { NPU_DESTINATION, "0010 0001" },
        { NPU_REUSES_1, "0100 0000" },
        { NPU_REUSES_0 | NPU_REUSES_3, "1000 0001" },
        { NPU_REUSES_2 | NPU_REUSES_3 | NPU_DESTINATION, "0010 0001" },
    };
    npu_spec spec = npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 4 });
    const npu_spec *specs[] = { &spec, &spec, &spec, &spec };
    NPU_ITEM("F49");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npu_op_info info = { 0 };
        info.traits = cases[i].traits, info.in = info.out = specs, info.num_in = 4, info.num_out = 2;
        for (uint32_t at = 0; at < 9; at++) {
            NPU_CHECK(at == 4 || npu_op_may_alias(&info, at / 5, at % 5) == (cases[i].allowed[at] == '1'));
        }
    }
}

/* The planner does it: on the CPU Adam's temporaries are written where p, m and v are, never where g is. */
static void test_adam_in_place(void)
{
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    npu_value x = npu_input(g, "x", F32(4, 3)), in[4];
    npu_op op;
    uint64_t at[2], size;
    uint32_t first, last;
    NPU_ITEM("R2.18");
    NPU_ITEM("R2.19");
    for (int i = 0; i < 4; i++) {
        in[i] = npu_softmax(g, x, i & 1);
    }
    op = adam(g, in[0], in[1], in[2], in[3]);
    for (uint32_t i = 0; i < 3; i++) {
        npu_output(g, NULL, npu_exp(g, npu_op_result(g, op, i)));
    }
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (uint32_t i = 0; r.program && i < 3; i++) {
        npu_plan_value_memory(npu_program_plan(r.program), npu_op_result(g, op, i), 0, &at[0], &size, &first, &last);
        npu_plan_value_memory(npu_program_plan(r.program), in[i ? i + 1 : 0], 0, &at[1], &size, &first, &last);
        NPU_CHECK_EQ(at[0], at[1]);
        NPU_CHECK(npu_exec_value_address(r.exec, npu_op_result(g, op, i), 0) ==
                  npu_exec_value_address(r.exec, in[i ? i + 1 : 0], 0));
    }
    NPU_CHECK(!npu_exec_value_address(r.exec, in[0], 7));
    rig_end(&r);
}

/* The caller's own memory: p, m and v may be updated where they are; p in the memory of g is an error. */
static void test_overlap(void)
{
    float data[4][12], expected[3][12], one = 1;
    const char *const names[] = { "p", "g", "m", "v" };
    rig r = rig_start(NULL, 0);
    npu_value in[4];
    npu_op op;
    NPU_ITEM("R2.18");
    for (int i = 0; i < 4; i++) {
        in[i] = npu_input(r.graph, names[i], F32(4, 3));
        fill(data[i], 12, (uint32_t)i);
        for (int k = 0; k < 12; k++) {
            data[i][k] = data[i][k] * data[i][k];
        }
    }
    op = adam(r.graph, in[0], in[1], in[2], in[3]);
    for (uint32_t i = 0; i < 3; i++) {
        npu_output(r.graph, NULL, npu_op_result(r.graph, op, i));
    }
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "bc1", &one, sizeof one);
    npu_test_input(r.exec, "bc2", &one, sizeof one);
    for (uint32_t i = 0; i < 4; i++) {
        npu_test_input_at(r.exec, i, data[i], sizeof data[i]);
    }
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (uint32_t i = 0; i < 3; i++) {
        memcpy(expected[i], npu_exec_output(r.exec, i, NULL), sizeof expected[i]);
    }
    npu_exec_set_output_at(r.exec, 0, data[1], sizeof data[1]);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_INVALID_ARGUMENT);
    npu_exec_set_output_at(r.exec, 0, data[0], sizeof data[0]);
    npu_exec_set_output_at(r.exec, 1, data[2], sizeof data[2]);
    npu_exec_set_output_at(r.exec, 2, data[3], sizeof data[3]);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK(memcmp(data[0], expected[0], sizeof data[0]) == 0 && memcmp(data[2], expected[1], sizeof data[2]) == 0 &&
              memcmp(data[3], expected[2], sizeof data[3]) == 0);
    rig_end(&r);
}

/* An output anywhere over an input that is copied after it, as another output or as what a state is next, is an error,
   though memory that is not aligned is written when everything has run. */
static void test_overlap_read_last(void)
{
    for (int last = 0; last < 3; last++) { /* nothing, an output, a state */
        for (size_t at = 0; at < 14; at++) {
            const float x[3] = { 1, 2, 3 }, negative[3] = { -1, -2, -3 };
            union { float x[3]; char bytes[32]; } room;
            rig r = rig_start(NULL, 0);
            npu_value in = npu_input(r.graph, "x", F32(3));
            npu_output(r.graph, "y", npu_neg(r.graph, in));
            if (last == 1) {
                npu_output(r.graph, "x", in);
            } else if (last == 2) {
                npu_update(r.graph, npu_state(r.graph, "s", F32(3)), in);
            }
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            memcpy(room.x, x, sizeof x);
            npu_test_input(r.exec, "x", room.x, sizeof x);
            npu_exec_set_output(r.exec, "y", room.bytes + at, sizeof x);
            bool is_right = at >= sizeof x || (!last && at % sizeof(float) != 0) || (!last && !at);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), is_right ? NPU_OK : NPU_ERR_INVALID_ARGUMENT);
            if (is_right) {
                NPU_CHECK_BYTES(room.bytes + at, negative, sizeof negative);
                const void *now = last ? npu_exec_find_output(r.exec, "x", NULL) : NULL;
                NPU_CHECK(!now || memcmp(now, x, sizeof x) == 0);
            }
            rig_end(&r);
        }
    }
}

/* Outputs over each other, and over numbers that the graph borrows, on the CPU and on a device: an error that names
   both, at the bindings alone; side by side, or one value twice at one place, they may lie. */
static void test_overlap_outputs(void)
{
    static const struct {
        uint32_t first, second; /* outputs: 0 and 1 two values, 2 the first again */
        size_t at, apart;       /* of the first, from a parameter's start; of the second from the first's: floats */
        const char *words;
    } rows[] = {
        { 0, 1, 8, 0, "output 1 ('b') overlaps output 0 ('a'): give it" },
        { 0, 1, 8, 2, "output 1 ('b') overlaps output 0 ('a'): give it" },
        { 1, 0, 8, 2, "output 1 ('b') overlaps output 0 ('a'): give it" },
        { 0, 1, 8, 3, NULL },
        { 1, 0, 8, 3, NULL },
        { 0, 2, 8, 0, NULL },
        { 0, 2, 8, 1, "output 2 ('again') overlaps output 0 ('a'): give it" },
        { 0, 1, 0, 12, "output 0 ('a') overlaps 'w': give it" },
        { 0, 1, 2, 12, "output 0 ('a') overlaps 'w': give it" },
        { 1, 0, 3, 3, "output 0 ('a') overlaps 'c': give it" },
        { 0, 1, 5, 3, NULL },
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        const float x[3] = { 1, 2, 3 };
        float room[20] = { 4, 5, 6, 0, 0, 0, 0, 0, 7, 8, 9 }; /* w first, c from 8 on where nothing is bound before it */
        bool with_c = rows[i / 2].words && strstr(rows[i / 2].words, "'c'");
        rig r = rig_start(NULL, (uint32_t)(i % 2));
        npu_value in = npu_input(r.graph, "x", F32(3)), w = npu_param(r.graph, "w", F32(3));
        npu_value c = with_c ? npu_constant_ref(r.graph, "c", F32(3), room + 8) : in, a = npu_add(r.graph, in, w);
        npu_output(r.graph, "a", a);
        npu_output(r.graph, "b", npu_mul(r.graph, in, c));
        npu_output(r.graph, "again", a);
        NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "w", room, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_exec_set_output_at(r.exec, rows[i / 2].first, room + rows[i / 2].at, sizeof x);
        npu_exec_set_output_at(r.exec, rows[i / 2].second, room + rows[i / 2].at + rows[i / 2].apart, sizeof x);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), rows[i / 2].words ? NPU_ERR_INVALID_ARGUMENT : NPU_OK);
        NPU_CHECK_THAT(!rows[i / 2].words || strstr(npu_exec_diag(r.exec)->message, rows[i / 2].words), "'%s'",
                       npu_exec_diag(r.exec)->message);
        NPU_CHECK(rows[i / 2].words || ((const float *)npu_exec_output(r.exec, 0, NULL))[2] == 9);
        rig_end(&r);
    }
}

/* Where everything lies: a golden table, the same in every run. */
static void test_slots(void)
{
    rig r = split_rig(1, false);
    npu_text text = npu_text_init(NULL);
    NPU_ITEM("S2.53");
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_plan_print_slots(npu_program_plan(r.program), &text);
    NPU_CHECK_GOLDEN("slots.txt", text.data);
    npu_text_free(&text);
    rig_end(&r);
}

/* ---- the cache ---- */

static npu_graph *scaled(double factor, const float *w)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value p = npu_param(g, "w", F32(4));
    npu_graph_bind_param(g, "w", w, 4 * sizeof *w);
    npu_output(g, "y", npu_mul(g, npu_add(g, npu_input(g, "x", F32(4)), p), npu_number(g, npu_scalar_float(factor))));
    return g;
}

static float run_first(npu_program *program)
{
    float x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create(&exec, program, NULL, NULL), NPU_OK);
    npu_test_input(exec, "x", x, sizeof x);
    npu_exec_set_output(exec, "y", y, sizeof y);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    npu_exec_destroy(exec);
    return y[0];
}

/* The same graph planned otherwise is another program, by each member of the desc; a program that borrows weights is
   none for a cache. */
static void test_cache_of_descs(void)
{
    static const float w[4] = { 1, 1, 1, 1 };
    const npu_backend *cpu = npu_ref_backend();
    npu_rates rates = { .launch_ns = 1000, .num_rows = 1, .rows = { { .what = "matrix", .mac_ns = 1 } } };
    npu_rates others[4] = { rates, rates, rates, rates };
    const npu_rates *list[1] = { &rates };
    npu_expect expect = { .max_groups = 3 }, less = { .max_groups = 2 };
    char name[] = "matrix";
    npu_plan_desc descs[12];
    npu_program_cache *cache = NULL;
    npu_program *programs[12], *borrowed;
    npu_diag diag;
    others[1].launch_ns = 2000;
    others[2].rows[0].mac_ns = 2;
    others[3].rows[0].what = name;
    for (int i = 0; i < 12; i++) {
        static const npu_rates *other[3];
        memset(&descs[i], 0, sizeof descs[i]);
        descs[i].backends = &cpu;
        descs[i].num_backends = 1;
        descs[i].rates = i == 1 ? list : i > 1 && i < 5 ? &other[i - 2] : NULL;
        if (i > 1 && i < 5) {
            other[i - 2] = &others[i == 2 ? 1 : i == 3 ? 2 : 3]; /* the last is equal, at another address */
        }
        descs[i].expect = i == 5 ? &expect : i == 6 ? &less : NULL;
        descs[i].max_compiles = i == 7 ? 5 : 0;
        descs[i].max_exhaustive_ops = i == 8 ? 3 : 0;
        descs[i].num_execs = i == 9 ? 2 : 0;
        descs[i].contiguous = i == 10;
        descs[i].stream_weights = i == 11;
    }
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, NULL), NPU_OK);
    for (int i = 0; i < 12; i++) {
        npu_graph *g = scaled(2, w);
        NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &programs[i], g, &descs[i], NULL), NPU_OK);
        npu_graph_destroy(g);
        for (int k = 0; k < i; k++) {
            NPU_CHECK_THAT((programs[i] == programs[k]) == (i == 4 && k == 1), "descs %d and %d", i, k);
        }
    }
    descs[0].weights_of = programs[0];
    npu_graph *g = scaled(2, w);
    NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &borrowed, g, &descs[0], &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(strstr(diag.message, "weights_of") && !borrowed);
    npu_graph_destroy(g);
    for (int i = 0; i < 12; i++) {
        npu_program_cache_release(cache, programs[i]);
    }
    npu_program_cache_destroy(cache);
}

/* The same graph built twice is compiled once; another number, other weights or another plan is another program. The graphs
   may go before the programs. */
static void test_cache(void)
{
    static const float w[2][4] = { { 1, 1, 1, 1 }, { 2, 2, 2, 2 } };
    const npu_backend *cpu = npu_ref_backend();
    npu_program_cache_desc cache_desc = { 0 };
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_program_cache *cache = NULL;
    npu_plan_desc desc = { 0 };
    npu_program *programs[5] = { NULL };
    npu_program_cache_stats stats;
    NPU_ITEM("S2.59");
    cache_desc.allocator = &a;
    cache_desc.capacity = 2;
    desc.backends = &cpu;
    desc.num_backends = 1;
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, &cache_desc), NPU_OK);
    for (int i = 0; i < 5; i++) {
        npu_graph *g = scaled(i == 2 ? 3 : 2, w[i == 3]);
        desc.no_inplace = i == 4;
        NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &programs[i], g, &desc, NULL), NPU_OK);
        npu_graph_destroy(g);
    }
    NPU_CHECK(programs[0] == programs[1] && programs[0] != programs[2] && programs[0] != programs[3] && programs[0] != programs[4]);
    NPU_CHECK_NEAR(run_first(programs[1]), 4, 0);
    NPU_CHECK_NEAR(run_first(programs[2]), 6, 0);
    NPU_CHECK_NEAR(run_first(programs[3]), 6, 0);
    stats = npu_program_cache_get_stats(cache);
    NPU_CHECK(stats.num_hits == 1 && stats.num_misses == 4 && stats.num_programs == 4 && stats.num_used == 4);
    for (int i = 0; i < 5; i++) {
        npu_program_cache_release(cache, programs[i]);
        stats = npu_program_cache_get_stats(cache);
        NPU_CHECK_EQ(stats.num_programs, i < 3 ? 4 : 6 - i); /* 0 and 1 are one program; two unused ones stay */
    }
    npu_program_cache_clear(cache);
    NPU_CHECK_EQ(npu_program_cache_get_stats(cache).num_programs, 0);
    npu_program_cache_destroy(cache);
    npu_program_cache_destroy(NULL);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

static void test_cache_failures(void)
{
    static const float w[4] = { 1, 2, 3, 4 };
    const npu_backend *cpu = npu_ref_backend();
    npu_program_cache_desc cache_desc = { 0 };
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_program_cache *cache = NULL;
    npu_plan_desc desc = { 0 };
    npu_program *program = NULL;
    npu_graph *g = scaled(2, w), *bare = npu_graph_create(NULL);
    npu_status status = NPU_ERR_NO_MEMORY;
    cache_desc._canary = 1;
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, &cache_desc), NPU_ERR_INVALID_ARGUMENT);
    cache_desc._canary = 0;
    cache_desc.allocator = &a;
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, &cache_desc), NPU_OK);
    NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &program, g, &desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    desc.backends = &cpu;
    desc.num_backends = 1 << 20; /* more than there can be: the list is not read */
    NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &program, g, &desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    desc.num_backends = 1;
    npu_output(bare, "y", npu_param(bare, "w", F32(4)));
    npu_output(bare, "z", npu_neg(bare, npu_param(bare, "w", F32(4))));
    NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &program, bare, &desc, NULL), NPU_ERR_MISSING_WEIGHT);
    NPU_CHECK(!program && npu_program_cache_get_stats(cache).num_programs == 0);
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 100000; n++) {
        counter.num_calls = 0;
        counter.fail_at = n;
        status = npu_program_cache_acquire(cache, &program, g, &desc, NULL);
        NPU_CHECK_EQ(npu_program_cache_get_stats(cache).num_programs, status == NPU_OK);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    npu_program_cache_destroy(cache);
    npu_graph_destroy(bare);
    npu_graph_destroy(g);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* Threads that ask for the same and for different programs at once. */
typedef struct asking {
    npu_program_cache *cache;
    npu_graph *graphs[3];
} asking;

static void ask(void *arg, uint32_t part, uint32_t parts, uint32_t worker)
{
    asking *q = (asking *)arg;
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { 0 };
    (void)parts, (void)worker;
    desc.backends = &cpu;
    desc.num_backends = 1;
    for (uint32_t k = 0; k < 20; k++) {
        npu_program *program = NULL;
        if (npu_program_cache_acquire(q->cache, &program, q->graphs[(part + k) % 3], &desc, NULL) == NPU_OK) {
            npu_program_cache_release(q->cache, program);
        }
    }
}

static void test_cache_threads(void)
{
    static const float w[4] = { 1, 2, 3, 4 };
    npu_parallel *threads = NULL;
    asking q;
    NPU_ITEM("S2.59");
    NPU_CHECK_STATUS(npu_program_cache_create(&q.cache, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 4 }), NPU_OK);
    for (int i = 0; i < 3; i++) {
        q.graphs[i] = scaled(i, w);
    }
    threads->run(threads->ctx, ask, &q, 8);
    NPU_CHECK_EQ(npu_program_cache_get_stats(q.cache).num_misses, 3);
    NPU_CHECK_EQ(npu_program_cache_get_stats(q.cache).num_hits, 157);
    NPU_CHECK_EQ(npu_program_cache_get_stats(q.cache).num_used, 0);
    npu_threads_destroy(threads);
    npu_program_cache_destroy(q.cache);
    for (int i = 0; i < 3; i++) {
        npu_graph_destroy(q.graphs[i]);
    }
}

int main(void)
{
    NPU_RUN(test_cache);
    NPU_RUN(test_cache_of_descs);
    NPU_RUN(test_cache_failures);
    NPU_RUN(test_cache_threads);
    NPU_RUN(test_alias_rules);
    NPU_RUN(test_alias_traits);
    NPU_RUN(test_adam_in_place);
    NPU_RUN(test_overlap);
    NPU_RUN(test_overlap_read_last);
    NPU_RUN(test_overlap_outputs);
    NPU_RUN(test_slots);
    NPU_RUN(test_replay);
    NPU_RUN(test_no_allocation);
    NPU_RUN(test_capture_out_of_memory);
    NPU_RUN(test_replay_failures);
    NPU_RUN(test_backend_slots);
    return npu_test_done();
}
