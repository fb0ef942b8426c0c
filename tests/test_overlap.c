/* Overlap: work of several backends side by side. The numbers of runs in order, the time of the longest chain on
   devices whose clock is virtual, and what fails, hangs or lies in the middle. */
#include "rig.h"

/* ---- the CPU with a clock: each submit takes cpu.ns of virtual time -------------------------------------- */

static struct {
    npu_backend backend;
    uint64_t ns;
    int running, most; /* submits at once */
    uint32_t submits;
} cpu;

static npu_status cpu_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    npu_status status;
    cpu.most = ++cpu.running > cpu.most ? cpu.running : cpu.most;
    cpu.submits++;
    status = npu_ref_backend()->submit(ctx, program, binding, fence);
    npu_sim_advance(cpu.ns);
    cpu.running--;
    return status;
}

static const npu_backend *timed_cpu(uint64_t ns)
{
    memset(&cpu, 0, sizeof cpu);
    cpu.backend = *npu_ref_backend();
    cpu.backend.submit = cpu_submit;
    cpu.ns = ns;
    return &cpu.backend;
}

/* ---- placement by the name of an op: "0:relu" runs on backend 0 ------------------------------------------ */

static int place_by_label(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)op;
    return label[0] >= '0' && label[0] <= '9' ? label[0] - '0' : -1;
}

static npu_value on(npu_graph *g, int backend, npu_value v)
{
    char name[16];
    snprintf(name, sizeof name, "%d:%u", backend, (unsigned)v.id);
    npu_op_set_name(g, npu_value_producer(g, v, NULL), name);
    return v;
}

enum { SIDE = 8, SIZE = SIDE * SIDE };

static npu_sim_desc slow(void)
{
    npu_sim_desc d;
    memset(&d, 0, sizeof d);
    d.emulate = npu_ref_backend();
    d.emulate_all = true;
    d.virtual_time = true;
    d.submit_ns = 100000;
    d.transfer_ns = 1000;
    return d;
}

/* Simulated devices of one kind, and the CPU, which takes cpu_ns for a submit. */
static rig overlap_rig(const npu_sim_desc *desc, uint32_t num_sims, uint64_t cpu_ns)
{
    npu_sim_desc descs[RIG_MAX_SIMS];
    static const char *const names[] = { "npu0", "npu1", "npu2" };
    rig r;
    for (uint32_t i = 0; i < num_sims; i++) {
        descs[i] = *desc;
        descs[i].name = names[i];
    }
    r = rig_start(descs, num_sims);
    r.backends[num_sims] = timed_cpu(cpu_ns);
    r.desc.override = place_by_label;
    r.desc.overlap = true;
    r.exec_desc.clock = npu_sim_clock;
    r.exec_desc.overlap = true;
    r.exec_desc.timeout_ns = 60 * (uint64_t)1000000000; /* devices with threads wait for a core on a busy machine */
    return r;
}

static uint64_t time_of_run(npu_exec *e)
{
    uint64_t begin = npu_sim_clock();
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
    return npu_sim_clock() - begin;
}

/* ---- time ------------------------------------------------------------------------------------------------ */

/* relu of x on `a`, abs of x on `b`, their sum on the CPU, 2 and 3 apart. */
static void build_branches(npu_graph *g, int a, int b, int join)
{
    npu_value x = npu_input(g, "x", F32(SIDE, SIDE));
    npu_value left = on(g, a, npu_relu(g, x)), right = on(g, b, npu_abs(g, x));
    npu_output(g, "y", on(g, join, npu_add(g, left, right)));
}

static const struct {
    const char *what;
    int a, b;            /* backends of the branches: 0 and 1 are devices, 2 the CPU */
    uint64_t cpu_ns;     /* of a submit; a device's takes 100 us, a transfer 1 us */
    uint64_t critical, in_order;
} branches[] = {
    { "two devices", 0, 1, 0, 102000, 204000 },
    { "two devices, a join that takes time", 0, 1, 50000, 152000, 254000 },
    { "a device and the CPU", 0, 2, 100000, 202000, 302000 },
    { "one device", 0, 0, 0, 103000, 103000 }, /* one group with two results, both of which are transferred */
    { "the CPU alone", 2, 2, 100000, 100000, 100000 },
};

static void test_branches(void)
{
    npu_sim_desc desc = slow();
    for (size_t i = 0; i < sizeof branches / sizeof branches[0]; i++) {
        rig r = overlap_rig(&desc, 2, branches[i].cpu_ns);
        npu_exec *ordered = NULL;
        float x[SIZE], y[2][SIZE];
        uint64_t overlapped, sequential;
        fill(x, SIZE, 1);
        build_branches(r.graph, branches[i].a, branches[i].b, 2);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        r.exec_desc.overlap = false;
        NPU_CHECK_STATUS(npu_exec_create(&ordered, r.program, &r.exec_desc, NULL), NPU_OK);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_test_input(ordered, "x", x, sizeof x);
        npu_exec_set_output(r.exec, "y", y[0], sizeof y[0]);
        npu_exec_set_output(ordered, "y", y[1], sizeof y[1]);
        for (int run = 0; run < 3; run++) {
            overlapped = time_of_run(r.exec);
            sequential = time_of_run(ordered);
            NPU_CHECK_THAT(overlapped * 10 <= branches[i].critical * 11, "%s: %llu ns, the critical path takes %llu",
                           branches[i].what, (unsigned long long)overlapped, (unsigned long long)branches[i].critical);
            NPU_CHECK_THAT(overlapped <= sequential, "%s: %llu ns, in order %llu", branches[i].what,
                           (unsigned long long)overlapped, (unsigned long long)sequential);
            NPU_CHECK_EQ(sequential, branches[i].in_order);
            NPU_CHECK_BYTES(y[0], y[1], sizeof y[0]);
        }
        npu_exec_destroy(ordered);
        rig_end(&r);
    }
}

/* The device that is done first is not kept waiting by one that was asked before: a long branch on npu0, a short one on
   npu1 whose result the CPU takes long for. */
static void test_first_done(void)
{
    npu_sim_desc descs[2] = { slow(), slow() };
    for (int has_poll = 0; has_poll < 2; has_poll++) {
        rig r;
        npu_backend plain[2];
        npu_value x;
        float in[SIZE];
        uint64_t ns;
        descs[0].submit_ns = 1000000;
        r = rig_start(descs, 2);
        for (int i = 0; i < 2; i++) {
            plain[i] = *r.backends[i];
            plain[i].poll = has_poll ? plain[i].poll : NULL;
            r.backends[i] = &plain[i];
        }
        r.backends[2] = timed_cpu(800000);
        r.desc.override = place_by_label;
        r.exec_desc.clock = npu_sim_clock;
        r.exec_desc.overlap = true;
        x = npu_input(r.graph, "x", F32(SIDE, SIDE));
        npu_output(r.graph, "y", on(r.graph, 0, npu_relu(r.graph, x)));
        npu_output(r.graph, "z", on(r.graph, 2, npu_neg(r.graph, on(r.graph, 1, npu_abs(r.graph, x)))));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(in, SIZE, 2);
        npu_test_input(r.exec, "x", in, sizeof in);
        ns = time_of_run(r.exec);
        NPU_CHECK_THAT(ns <= 1002000 * 11 / 10, "%llu ns", (unsigned long long)ns);
        NPU_CHECK(has_poll == (npu_sim_count(r.sims[1]).calls[NPU_SIM_POLL] > 0));
        rig_end(&r);
    }
}

/* A device that ends between two questions: the one of npu1's queue, which is told that npu0 is at work, and the CPU's,
   which learns that it is done. Both can go on then, and nothing is under way. */
static const npu_backend *asked;
static uint32_t num_polls, num_refused;

static npu_status poll_later(void *ctx, npu_fence fence, uint32_t *done)
{
    *done = 0;
    if (num_polls++ < num_refused) {
        return NPU_OK;
    }
    npu_sim_advance(1000000);
    return asked->poll(ctx, fence, done);
}

static void test_done_between(void)
{
    for (num_refused = 0; num_refused < 4; num_refused++) {
        npu_sim_desc desc = slow();
        rig r = overlap_rig(&desc, 2, 0);
        npu_backend later = *r.backends[0];
        npu_value left = on(r.graph, 0, npu_relu(r.graph, npu_input(r.graph, "x", F32(SIDE, SIDE))));
        npu_value right = on(r.graph, 1, npu_neg(r.graph, left));
        float x[SIZE], y[SIZE];
        asked = r.backends[0];
        later.poll = poll_later;
        r.backends[0] = &later;
        npu_output(r.graph, "y", on(r.graph, 2, npu_add(r.graph, left, right)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(x, SIZE, 1);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_exec_set_output(r.exec, "y", y, sizeof y);
        for (int run = 0; run < 4; run++) {
            num_polls = 0;
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            NPU_CHECK(num_polls > num_refused);
            for (int i = 0; i < SIZE; i++) {
                NPU_CHECK(y[i] == 0);
            }
        }
        rig_end(&r);
    }
}

/* A plan for it shares no memory between steps that may meet: the CPU works on a, whose inner value is dead when the
   result of npu0 comes in. Without, that waits for a to be done. */
static void test_memory(void)
{
    uint64_t ns[2];
    for (int planned = 0; planned < 2; planned++) {
        npu_sim_desc desc = slow();
        rig r;
        npu_value x, t, a, y;
        npu_memory m;
        npu_text text = npu_text_init(NULL);
        float in[SIZE];
        desc.submit_ns = 10000;
        desc.transfer_ns = 100000;
        r = overlap_rig(&desc, 2, 200000);
        r.desc.overlap = planned;
        r.desc.contiguous = true; /* the sum is in a group of its own either way */
        x = npu_input(r.graph, "x", F32(SIDE, SIDE));
        t = on(r.graph, 2, npu_matmul(r.graph, x, x));
        a = on(r.graph, 2, npu_matmul(r.graph, t, t));
        y = on(r.graph, 0, npu_relu(r.graph, x));
        npu_output(r.graph, "y", on(r.graph, 2, npu_add(r.graph, a, y)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(in, SIZE, 6);
        npu_test_input(r.exec, "x", in, sizeof in);
        ns[planned] = time_of_run(r.exec);
        NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 2, &m), NPU_OK);
        npu_plan_print_memory(npu_program_plan(r.program), &text);
        NPU_CHECK_EQ(m.activations > m.in_order, planned);
        NPU_CHECK_EQ(strstr(text.data, "of the activations are for overlap") != NULL, planned);
        npu_text_free(&text);
        rig_end(&r);
    }
    NPU_CHECK_EQ(ns[1], 410000); /* up, relu, down; the sum */
    NPU_CHECK_EQ(ns[0], 500000); /* the products of the CPU, down; the sum */
}

/* ---- numbers: random graphs on three backends ------------------------------------------------------------- */

static npu_value random_op(npu_graph *g, uint64_t *seed, npu_value a, npu_value b)
{
    switch (npu_test_random(seed) % 9) {
    case 0: return npu_relu(g, a);
    case 1: return npu_abs(g, a);
    case 2: return npu_neg(g, a);
    case 3: return npu_mul(g, a, b);
    case 4: return npu_transpose(g, a, 0, 1);
    case 5: return npu_clone(g, a);
    case 6: return npu_reshape(g, npu_reshape(g, a, DIMS(SIZE), 1), DIMS(SIDE, SIDE), 2);
    default: return npu_add(g, a, b);
    }
}

enum { MAX_VALUES = 40 };

/* Inputs, a state that one of the values becomes, some outputs, one of them an input; most views are placed by nobody. */
static void random_graph(npu_graph *g, uint64_t *seed, int num_backends)
{
    npu_value pool[MAX_VALUES], h = npu_state(g, "h", F32(SIDE, SIDE)), k = npu_state(g, "k", F32(SIDE, SIDE));
    uint32_t n = 0, num_ops = 4 + (uint32_t)(npu_test_random(seed) % 30);
    pool[n++] = npu_input(g, "x", F32(SIDE, SIDE));
    pool[n++] = npu_input(g, "w", F32(SIDE, SIDE));
    pool[n++] = h;
    pool[n++] = k;
    for (uint32_t i = 0; i < num_ops; i++) {
        uint64_t window = n > 8 && npu_test_random(seed) % 4 ? 6 : n;
        npu_value a = pool[n - 1 - npu_test_random(seed) % window], b = pool[n - 1 - npu_test_random(seed) % window];
        npu_value y = random_op(g, seed, a, b);
        bool is_view = (npu_op_definition(g, npu_value_producer(g, y, NULL))->traits & NPU_VIEW) != 0;
        int backend = (int)(npu_test_random(seed) % (uint64_t)num_backends);
        pool[n++] = is_view && npu_test_random(seed) % 4 ? y : on(g, backend, y);
    }
    npu_output(g, "y0", pool[n - 1]);
    npu_output(g, "y1", pool[4 + npu_test_random(seed) % (n - 4)]);
    npu_output(g, "y2", pool[npu_test_random(seed) % n]);
    npu_update(g, h, pool[n - 2]);
    npu_update(g, k, npu_test_random(seed) % 2 ? h : pool[4 + npu_test_random(seed) % (n - 4)]);
}

/* Of all devices of a rig. */
static npu_sim_counters count_all(const rig *r)
{
    npu_sim_counters sum;
    memset(&sum, 0, sizeof sum);
    for (int i = 0; i < RIG_MAX_SIMS && r->sims[i]; i++) {
        npu_sim_counters c = npu_sim_count(r->sims[i]);
        sum.bytes_up += c.bytes_up;
        sum.bytes_down += c.bytes_down;
        sum.calls[NPU_SIM_UPLOAD] += c.calls[NPU_SIM_UPLOAD];
        sum.calls[NPU_SIM_DOWNLOAD] += c.calls[NPU_SIM_DOWNLOAD];
    }
    return sum;
}

/* What a run moves is what the plan counts. */
static void check_moved(const rig *r, const npu_sim_counters *before)
{
    npu_sim_counters after = count_all(r);
    npu_prediction p;
    NPU_CHECK_STATUS(npu_plan_predict(npu_program_plan(r->program), &p), NPU_OK);
    NPU_CHECK_EQ(after.bytes_up - before->bytes_up, p.up_bytes);
    NPU_CHECK_EQ(after.bytes_down - before->bytes_down, p.down_bytes);
    NPU_CHECK_EQ(after.calls[NPU_SIM_UPLOAD] - before->calls[NPU_SIM_UPLOAD], p.num_up);
    NPU_CHECK_EQ(after.calls[NPU_SIM_DOWNLOAD] - before->calls[NPU_SIM_DOWNLOAD], p.num_down);
}

/* ---- bytes ---- */

static const struct {
    const char *what;
    bool reads[4]; /* which backend reads what device 0 makes; 3 is the CPU */
    bool is_output;
    uint32_t downs, ups; /* of that value */
} read_by[] = {
    { "one device", { false, true }, false, 1, 1 },
    { "two devices", { false, true, true }, false, 1, 2 },
    { "the CPU", { false, false, false, true }, false, 1, 0 },
    { "a device and the CPU", { false, true, false, true }, false, 1, 1 },
    { "a device and outside", { false, true }, true, 1, 1 },
    { "the CPU and outside", { false, false, false, true }, true, 1, 0 },
    { "its device and another", { true, true }, false, 1, 1 },
    { "all", { true, true, true, true }, true, 1, 2 },
};

/* A value leaves its device once, whoever reads it, through host memory where devices do not see each other's. */
static void test_leaves_once(void)
{
    NPU_ITEM("F54");
    for (size_t i = 0; i < 2 * sizeof read_by / sizeof read_by[0]; i++) {
        npu_sim_desc desc = slow();
        rig r = overlap_rig(&desc, 3, 0);
        float x[SIZE], v[SIZE], y[4][SIZE];
        uint32_t downs = read_by[i / 2].downs, size = SIDE * SIDE * 4, runs_on = 0;
        npu_value in = npu_input(r.graph, "x", F32(SIDE, SIDE)), made = on(r.graph, 0, npu_relu(r.graph, in));
        char name[3] = "y0";
        r.desc.overlap = r.exec_desc.overlap = i % 2 == 0;
        for (int b = 0; b < 4; b++, name[1]++) {
            if (read_by[i / 2].reads[b]) {
                npu_output(r.graph, name, on(r.graph, b, npu_neg(r.graph, made)));
                runs_on |= 1u << b;
                downs += b < 3;
            }
        }
        if (read_by[i / 2].is_output) {
            npu_output(r.graph, "v", made);
        }
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(x, SIZE, (uint32_t)i);
        npu_test_input(r.exec, "x", x, sizeof x);
        for (int b = 0; b < 4; b++) {
            name[1] = (char)('0' + b);
            NPU_CHECK(!(runs_on >> b & 1) || npu_exec_set_output(r.exec, name, y[b], sizeof y[b]) == NPU_OK);
        }
        NPU_CHECK(!read_by[i / 2].is_output || npu_exec_set_output(r.exec, "v", v, sizeof v) == NPU_OK);
        for (int run = 0; run < 2; run++) {
            npu_sim_counters before = count_all(&r), after;
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            check_moved(&r, &before);
            after = count_all(&r);
            NPU_CHECK_THAT(after.bytes_down - before.bytes_down == downs * size, "%s: %u bytes down, expected %u",
                           read_by[i / 2].what, (unsigned)(after.bytes_down - before.bytes_down), (unsigned)(downs * size));
            NPU_CHECK_THAT(after.bytes_up - before.bytes_up == (1 + read_by[i / 2].ups) * size, "%s: %u bytes up, expected %u",
                           read_by[i / 2].what, (unsigned)(after.bytes_up - before.bytes_up), (unsigned)((1 + read_by[i / 2].ups) * size));
            for (int b = 0; b < 4; b++) {
                NPU_CHECK(!(runs_on >> b & 1) || (y[b][5] == -(x[5] > 0 ? x[5] : 0) && y[b][63] == -(x[63] > 0 ? x[63] : 0)));
            }
        }
        rig_end(&r);
    }
}

/* R, N: relu on the device, neg on the CPU; c, v: a clone, two reshapes; s: keeps what was made last; A, a: its sum
   with what was kept, on the device, on the CPU. */
static const struct {
    const char *ops;
    uint32_t groups, launches, ups, downs; /* groups of the device, steps of the CPU that run */
} viewed[] = {
    { "RcR", 2, 0, 1, 1 },      { "RvR", 2, 0, 1, 1 },   { "RcvcR", 2, 0, 1, 1 },  { "cR", 1, 0, 1, 1 },
    { "scRA", 1, 0, 1, 1 },     { "RscRA", 2, 0, 1, 1 }, { "NcsvA", 1, 1, 1, 1 },  { "RcNcN", 1, 1, 1, 1 },
    { "NscsvAcN", 1, 2, 1, 1 }, { "RcN", 1, 1, 1, 1 },   { "RscNA", 2, 1, 2, 2 },  { "RcsNvA", 2, 1, 2, 2 },
    { "RscNa", 1, 1, 1, 1 },    { "Rc", 1, 1, 1, 1 },    { "NcN", 0, 1, 0, 0 },    { "RvsNARcsRA", 3, 1, 2, 2 },
};

/* Views that the device refuses take no step of their own and move nothing: on each side they are read where their
   operand is, and with rates a step of them alone costs nothing. */
static void test_views_stay(void)
{
    static const char *const views[] = { "aten.clone.default", "aten.reshape.default" };
    for (size_t i = 0; i < 4 * sizeof viewed / sizeof *viewed; i++) {
        npu_sim_desc desc = slow();
        float x[SIZE], got[SIZE], want[SIZE];
        const char *ops = viewed[i / 4].ops;
        npu_rates device = { .launch_ns = 10 }, last = { .launch_ns = 1e6 };
        const npu_rates *rates[] = { &device, &last };
        npu_prediction p;
        uint32_t groups = 0, launches = 0;
        desc.deny = views;
        desc.num_deny = 2;
        desc.plans_inner = i % 2;
        rig r = overlap_rig(&desc, 1, 0);
        npu_value y = npu_input(r.graph, "x", F32(SIDE, SIDE)), kept = y;
        r.desc.overlap = r.exec_desc.overlap = i % 2;
        r.desc.rates = i / 2 % 2 ? rates : NULL;
        for (; *ops; ops++) {
            switch (*ops) {
            case 'R': y = on(r.graph, 0, npu_relu(r.graph, y)); break;
            case 'N': y = on(r.graph, 1, npu_neg(r.graph, y)); break;
            case 'c': y = npu_clone(r.graph, y); break;
            case 'v': y = npu_reshape(r.graph, npu_reshape(r.graph, y, DIMS(SIZE), 1), DIMS(SIDE, SIDE), 2); break;
            case 's': kept = y; break;
            default: y = on(r.graph, *ops == 'a', npu_add(r.graph, y, kept)); break;
            }
        }
        npu_output(r.graph, "y", y);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(x, SIZE, (uint32_t)i);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_exec_set_output(r.exec, "y", got, sizeof got);
        npu_sim_counters before = count_all(&r);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_moved(&r, &before);
        for (uint32_t k = 0; k < npu_plan_num_steps(r.plan); k++) {
            const npu_step *s = npu_plan_step(r.plan, k);
            groups += s->type == NPU_STEP_PARTITION && s->backend == 0;
            launches += s->type == NPU_STEP_PARTITION && s->backend == 1 && s->predicted_ns > 0;
        }
        NPU_CHECK_STATUS(npu_plan_predict(r.plan, &p), NPU_OK);
        NPU_CHECK_THAT(groups == viewed[i / 4].groups && p.num_up == viewed[i / 4].ups && p.num_down == viewed[i / 4].downs,
                       "%s: %u groups, %u values up, %u down", viewed[i / 4].ops, (unsigned)groups, (unsigned)p.num_up,
                       (unsigned)p.num_down);
        NPU_CHECK_THAT(!r.desc.rates || launches == viewed[i / 4].launches, "%s: %u launches on the CPU",
                       viewed[i / 4].ops, (unsigned)launches);
        rig_unmake(&r);
        r.desc.backends = NULL;
        r.desc.rates = NULL;
        r.desc.override = NULL;
        r.backends[0] = r.backends[1]; /* all on the CPU */
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_exec_set_output(r.exec, "y", want, sizeof want);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_BYTES(got, want, sizeof want);
        rig_end(&r);
    }
}

/* Overlapped, its capture, and in order, on inputs that change: bit for bit the same, and never slower. */
static void check_random(uint64_t seed, const npu_sim_desc *desc, uint32_t num_sims)
{
    rig r = overlap_rig(desc, num_sims, 1000 * (npu_test_random(&seed) % 300));
    r.desc.overlap = npu_test_random(&seed) % 4 != 0; /* a plan that is not for it is slower, not wrong */
    r.desc.contiguous = npu_test_random(&seed) % 4 == 0;
    npu_exec *execs[3] = { NULL, NULL, NULL };
    npu_capture *capture = NULL;
    float x[SIZE], w[SIZE], y[3][3][SIZE];
    char name[3] = "y0";
    random_graph(r.graph, &seed, (int)num_sims + 1);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&execs[2], r.program, &r.exec_desc, NULL), NPU_OK);
    r.exec_desc.overlap = false;
    NPU_CHECK_STATUS(npu_exec_create(&execs[1], r.program, &r.exec_desc, NULL), NPU_OK);
    execs[0] = r.exec;
    for (int i = 0; i < 3; i++) {
        npu_test_input(execs[i], "x", x, sizeof x);
        npu_test_input(execs[i], "w", w, sizeof w);
        for (int k = 0; k < 3; k++) {
            name[1] = (char)('0' + k);
            NPU_CHECK_STATUS(npu_exec_set_output(execs[i], name, y[i][k], sizeof y[i][k]), NPU_OK);
        }
    }
    NPU_CHECK_STATUS(npu_capture_create(&capture, execs[2]), NPU_OK);
    for (uint32_t run = 0; run < 4; run++) {
        uint64_t overlapped = 0, in_order = 0;
        fill(x, SIZE, run);
        fill(w, SIZE, run + 9);
        memset(y, 0xee, sizeof y);
        if (run == 2) { /* bound elsewhere, and back */
            npu_exec_set_output(execs[0], "y1", y[1][1], sizeof y[1][1]);
            npu_exec_set_output(execs[0], "y1", y[0][1], sizeof y[0][1]);
        }
        for (int i = 0; i < 2; i++) {
            npu_sim_counters before = count_all(&r);
            *(i ? &in_order : &overlapped) = time_of_run(execs[i]);
            if (!desc->maps) { /* else some of it is seen where it is */
                check_moved(&r, &before);
            }
        }
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
        NPU_CHECK_BYTES(y[0], y[1], sizeof y[0]);
        NPU_CHECK_BYTES(y[2], y[1], sizeof y[0]);
        NPU_CHECK_THAT(overlapped <= in_order, "%llu ns, in order %llu", (unsigned long long)overlapped,
                       (unsigned long long)in_order);
    }
    NPU_CHECK_EQ(cpu.most, cpu.submits != 0);
    npu_capture_destroy(capture);
    npu_exec_destroy(execs[1]);
    npu_exec_destroy(execs[2]);
    rig_end(&r);
}

static void test_random(void)
{
    static const char *const views[] = { "aten.clone.default", "aten.reshape.default" };
    uint64_t seed = npu_test_seed();
    for (int i = 0; i < 120 && !npu_test.bad_checks; i++) {
        npu_sim_desc desc = slow();
        uint64_t s = npu_test_random(&seed);
        desc.submit_ns = 1000 * (npu_test_random(&seed) % 200);
        desc.transfer_ns = 1000 * (npu_test_random(&seed) % 40);
        desc.is_late = i % 2;
        desc.plans_inner = i % 3 == 0;
        desc.in_place = i % 5 == 0;
        desc.maps = i % 7 == 0;
        desc.deny = views;
        desc.num_deny = (uint32_t)i / 3 % 3;
        check_random(s, &desc, 1 + (uint32_t)i % 3);
        NPU_CHECK_THAT(!npu_test.bad_checks, "graph %d of the seed", i);
    }
}

/* The same with threads that really work beside. */
static void test_random_threads(void)
{
    uint64_t seed = npu_test_seed();
    for (int i = 0; i < 20 && !npu_test.bad_checks; i++) {
        npu_sim_desc desc = slow();
        desc.virtual_time = false;
        desc.async = true;
        desc.in_place = i % 2;
        check_random(npu_test_random(&seed), &desc, 1 + (uint32_t)i % 3);
    }
}

/* Nothing is allocated in a run, the first one too, or one after binding anew. */
static void test_no_allocation(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_sim_desc desc = slow();
    rig r = overlap_rig(&desc, 2, 1000);
    float x[2][SIZE];
    fill(x[0], SIZE, 1);
    r.exec_desc.allocator = &a;
    build_branches(r.graph, 0, 1, 2);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    uint64_t calls = counter.num_calls;
    for (int k = 0; k < 4; k++) {
        npu_test_input(r.exec, "x", x[k % 2], sizeof x[0]);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    }
    NPU_CHECK_EQ(counter.num_calls, calls);
    rig_end(&r);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* Memory that runs out while an exec is made. */
static void test_out_of_memory(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_sim_desc desc = slow();
    rig r = overlap_rig(&desc, 2, 1000);
    npu_status status = NPU_ERR_NO_MEMORY;
    uint64_t n = 0;
    build_branches(r.graph, 0, 1, 2);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_exec_destroy(r.exec);
    r.exec_desc.allocator = &a;
    while (status == NPU_ERR_NO_MEMORY && n < 100) {
        counter.num_calls = 0;
        counter.fail_at = ++n;
        status = npu_exec_create(&r.exec, r.program, &r.exec_desc, NULL);
        NPU_CHECK_EQ(status == NPU_OK, r.exec != NULL);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK(n > 10);
    rig_end(&r);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* ---- failures in the middle -------------------------------------------------------------------------------- */

static uint32_t cancel_at;

static bool cancel(void *ctx, uint32_t step)
{
    (void)ctx, (void)step;
    return cancel_at == 0 || --cancel_at != 0;
}

typedef struct failing {
    rig r;
    float x[SIZE], y[SIZE];
} failing;

static void failing_start(failing *f, const npu_sim_desc *desc)
{
    memset(f, 0, sizeof *f);
    f->r = overlap_rig(desc, 2, 20000);
    build_branches(f->r.graph, 0, 1, 2);
    f->r.exec_desc.poll = cancel;
    f->r.exec_desc.timeout_ns = 5000000;
    fill(f->x, SIZE, 4);
    NPU_CHECK_STATUS(rig_make(&f->r), NPU_OK);
    npu_test_input(f->r.exec, "x", f->x, sizeof f->x);
    npu_exec_set_output(f->r.exec, "y", f->y, sizeof f->y);
}

static void failing_check(failing *f)
{
    memset(f->y, 0, sizeof f->y);
    NPU_CHECK_STATUS(npu_exec_run(f->r.exec), NPU_OK);
    for (int i = 0; i < SIZE; i++) {
        float x = f->x[i];
        NPU_CHECK_EQ(f->y[i], (x > 0 ? x : 0) + (x > 0 ? x : -x));
    }
}

/* Each call of each slot fails once, of one device or the other: the status and words come out, the next run works. */
static void test_failures(void)
{
    static const struct { npu_sim_slot slot; uint32_t calls; } slots[] = {
        { NPU_SIM_UPLOAD, 1 }, { NPU_SIM_DOWNLOAD, 1 }, { NPU_SIM_SUBMIT, 1 }, { NPU_SIM_WAIT, 3 }, { NPU_SIM_POLL, 2 },
    };
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
            for (uint32_t device = 0; device < 2; device++) {
                uint32_t n = 1;
                for (npu_status status = NPU_ERR_IO; status && n < 50; n += status != 0) {
                    npu_sim_desc desc = slow();
                    failing f;
                    desc.is_late = late;
                    failing_start(&f, &desc);
                    npu_sim_fail(f.r.sims[device], slots[i].slot, n, NPU_ERR_IO);
                    status = npu_exec_run(f.r.exec);
                    NPU_CHECK(!status || (status == NPU_ERR_IO && strstr(npu_exec_diag(f.r.exec)->message,
                                                                         device ? "npu1" : "npu0")));
                    npu_sim_fail(f.r.sims[device], slots[i].slot, 0, NPU_OK);
                    failing_check(&f);
                    rig_end(&f.r);
                }
                NPU_CHECK_THAT(n > slots[i].calls && n < 50, "slot %d: %u calls", (int)slots[i].slot, (unsigned)n - 1);
            }
        }
    }
}

static void test_cancel(void)
{
    for (uint32_t n = 1; n <= 3; n++) { /* before each of the three submits */
        npu_sim_desc desc = slow();
        failing f;
        npu_capture *capture = NULL;
        desc.is_late = n % 2;
        failing_start(&f, &desc);
        NPU_CHECK_STATUS(npu_capture_create(&capture, f.r.exec), NPU_OK);
        cancel_at = n;
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_CANCELLED);
        NPU_CHECK(strstr(npu_exec_diag(f.r.exec)->message, "cancelled before step"));
        cancel_at = n;
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_ERR_CANCELLED);
        cancel_at = 0;
        failing_check(&f);
        NPU_CHECK_STATUS(npu_capture_replay(capture), NPU_OK);
        npu_capture_destroy(capture);
        rig_end(&f.r);
    }
}

/* A fence that does not come in time: TIMEOUT, said by the runs after it until it comes; or never, and all is freed. */
static void test_hang(void)
{
    for (uint32_t device = 0; device < 2; device++) {
        npu_sim_desc desc = slow();
        failing f;
        desc.is_late = true;
        failing_start(&f, &desc);
        npu_sim_hang(f.r.sims[device], 1, 40000000); /* 40 ms; 5 ms are allowed, once */
        uint64_t before = npu_sim_clock();
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_TIMEOUT);
        NPU_CHECK_THAT(npu_sim_clock() - before < 8000000, "%llu ns", (unsigned long long)(npu_sim_clock() - before));
        NPU_CHECK(strstr(npu_exec_diag(f.r.exec)->message, device ? "npu1" : "npu0"));
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_TIMEOUT);
        NPU_CHECK(strstr(npu_exec_diag(f.r.exec)->message, "still not done"));
        npu_sim_advance(40000000);
        failing_check(&f);
        npu_sim_hang(f.r.sims[device], 1, UINT64_MAX / 2);
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_TIMEOUT);
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_TIMEOUT);
        rig_end(&f.r);
    }
}

/* What is late writes a state after it was to be zero: resetting waits for it, or says that it did not reset. */
static void test_reset_late(void)
{
    npu_sim_desc desc = slow();
    float x[SIZE];
    const float *y;
    rig r;
    desc.is_late = true;
    r = overlap_rig(&desc, 1, 0);
    npu_value h = npu_state(r.graph, "h", F32(SIDE, SIDE)), next;
    next = on(r.graph, 0, npu_add(r.graph, npu_input(r.graph, "x", F32(SIDE, SIDE)), h));
    npu_update(r.graph, h, next);
    npu_output(r.graph, "y", next);
    r.exec_desc.timeout_ns = 5000000;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(x, SIZE, 1);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_sim_hang(r.sims[0], 1, 40000000);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_TIMEOUT);
    NPU_CHECK_STATUS(npu_exec_reset_state(r.exec), NPU_ERR_TIMEOUT);
    npu_sim_advance(40000000);
    NPU_CHECK_STATUS(npu_exec_reset_state(r.exec), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    y = npu_exec_output(r.exec, 0, NULL);
    for (int i = 0; y && i < SIZE; i++) {
        NPU_CHECK_EQ(y[i], x[i]);
    }
    rig_end(&r);
}

/* The same of execs that share states: whichever of them timed out, all others wait for it. */
static void test_shared_late(void)
{
    enum { LENDER, BORROWER, OTHER, LAST, NUM };
    static const struct { int late, next; bool resets; } rows[] = {
        { LENDER, BORROWER, false }, { BORROWER, LENDER, false }, { BORROWER, OTHER, false }, { LAST, LENDER, false },
        { LENDER, LAST, true }, { BORROWER, LENDER, true }, { OTHER, BORROWER, true }, { LAST, OTHER, true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npu_sim_desc desc = slow();
        float x[SIZE];
        npu_exec *execs[NUM] = { 0 };
        desc.is_late = true;
        rig r = overlap_rig(&desc, 1, 0);
        npu_value h = npu_state(r.graph, "h", F32(SIDE, SIDE)), next;
        next = on(r.graph, 0, npu_add(r.graph, npu_input(r.graph, "x", F32(SIDE, SIDE)), h));
        npu_update(r.graph, h, next);
        r.exec_desc.timeout_ns = 5000000;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(x, SIZE, 1);
        for (int k = 0; k < NUM; k++) {
            npu_exec_desc exec_desc = r.exec_desc;
            exec_desc.states_of = k == LENDER ? NULL : k == LAST ? execs[OTHER] : r.exec;
            execs[k] = r.exec;
            NPU_CHECK_STATUS(k ? npu_exec_create(&execs[k], r.program, &exec_desc, &r.diag) : NPU_OK, NPU_OK);
            npu_test_input(execs[k], "x", x, sizeof x);
            NPU_CHECK_STATUS(npu_exec_run(execs[k]), NPU_OK);
        }
        npu_exec *late = execs[rows[i].late], *other = execs[rows[i].next];
        npu_sim_hang(r.sims[0], 1, 40000000);
        NPU_CHECK_STATUS(npu_exec_run(late), NPU_ERR_TIMEOUT);
        for (int more = 0; more < 2; more++) {
            npu_status status = rows[i].resets ? npu_exec_reset_state(other) : npu_exec_run(other);
            NPU_CHECK_THAT(status == (more ? NPU_OK : NPU_ERR_TIMEOUT), "row %u: status %d", (unsigned)i, (int)status);
            NPU_CHECK(more || strstr(npu_exec_diag(other)->message, "still not done"));
            npu_sim_advance(40000000);
        }
        npu_sim_hang(r.sims[0], 1, UINT64_MAX / 2); /* what never comes is gone with its exec */
        NPU_CHECK_STATUS(npu_exec_run(execs[LAST]), NPU_ERR_TIMEOUT);
        npu_exec_destroy(execs[LAST]);
        NPU_CHECK_STATUS(npu_exec_reset_state(execs[OTHER]), NPU_OK);
        npu_exec_destroy(execs[OTHER]);
        npu_exec_destroy(execs[BORROWER]);
        rig_end(&r);
    }
}

/* The same where a branch timed out and the next run takes the other one. */
static void test_branch_late(void)
{
    static const char text[] = "graph main\n"
        "child yes\ninput a : f32[4,4]\ny = aten.relu.default(a)\noutput y = y\nend\n"
        "child no\ninput a : f32[4,4]\ny = aten.neg.default(a)\noutput y = y\nend\n"
        "input c : bool[]\ninput x : f32[4,4]\ny = npu.if(c, [x], then_body=graph 0, else_body=graph 1)\noutput y = y\n";
    npu_sim_desc desc = slow();
    bool condition = true;
    float x[16], y[16];
    rig r;
    desc.is_late = true;
    r = overlap_rig(&desc, 1, 0);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag), NPU_OK);
    r.desc.override = NULL;
    r.exec_desc.timeout_ns = 5000000;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(x, 16, 1);
    npu_exec_set_input(r.exec, &(npu_array){ "c", npu_spec_tensor(NPU_BOOL, 0, NULL), &condition });
    npu_exec_set_input(r.exec, &(npu_array){ "x", F32(4, 4), x });
    npu_exec_set_output(r.exec, "y", y, sizeof y);
    npu_sim_hang(r.sims[0], 1, 40000000);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_TIMEOUT);
    condition = false;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_TIMEOUT);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "still not done"));
    npu_sim_advance(40000000);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (int i = 0; i < 16; i++) {
        NPU_CHECK_EQ(y[i], -x[i]);
    }
    rig_end(&r);
}

/* A device that is there when the plan is made, and gone when the exec is, or in the middle of its life. */
static void test_vanished(void)
{
    npu_sim_desc desc = slow();
    failing f;
    npu_exec *other = NULL;
    npu_diag diag = { 0 };
    failing_start(&f, &desc);
    npu_sim_vanish(f.r.sims[1], true);
    NPU_CHECK_STATUS(npu_exec_create(&other, f.r.program, &f.r.exec_desc, &diag), NPU_ERR_BACKEND);
    NPU_CHECK(!other && strstr(diag.message, "npu1"));
    for (int i = 0; i < 3; i++) {
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_BACKEND);
        NPU_CHECK(strstr(npu_exec_diag(f.r.exec)->message, "npu1"));
    }
    npu_sim_vanish(f.r.sims[1], false);
    failing_check(&f);
    npu_sim_vanish(f.r.sims[1], true); /* and it is gone when everything is destroyed */
    rig_end(&f.r);
}

/* One fence for two calls says nothing of the second. */
static npu_status repeating_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    npu_status status = npu_sim__submit(ctx, program, binding, fence);
    *fence = status ? 0 : *fence - 1;
    return status;
}

static void test_repeated_fence(void)
{
    npu_sim_desc desc = slow();
    failing f;
    npu_backend liar;
    failing_start(&f, &desc);
    rig_unmake(&f.r);
    liar = *f.r.backends[0];
    liar.submit = repeating_submit;
    f.r.backends[0] = &liar;
    NPU_CHECK_STATUS(rig_make(&f.r), NPU_OK);
    npu_test_input(f.r.exec, "x", f.x, sizeof f.x);
    for (int i = 0; i < 2; i++) {
        NPU_CHECK_STATUS(npu_exec_run(f.r.exec), NPU_ERR_BACKEND);
        NPU_CHECK_THAT(strstr(npu_exec_diag(f.r.exec)->message, "npu0 gave fence") != NULL, "%s",
                       npu_exec_diag(f.r.exec)->message);
    }
    rig_end(&f.r);
}

/* With NPU_IR_DEBUG: a device that writes into a value of the CPU's, on its way from one step to another. */
#ifdef NPU_IR_DEBUG
enum { IS_DEBUG = 1 };
#else
enum { IS_DEBUG = 0 };
#endif

static float *rogue_at;
static const npu_backend *rogue_sim;

static npu_status rogue_wait(void *ctx, npu_fence fence, uint64_t timeout_ns)
{
    if (rogue_at) {
        rogue_at[3] += 1;
        rogue_at = NULL;
    }
    return rogue_sim->wait(ctx, fence, timeout_ns);
}

static void test_rogue(void)
{
    npu_sim_desc desc = slow();
    rig r = overlap_rig(&desc, 1, 10000);
    npu_backend rogue = *r.backends[0];
    float x[SIZE];
    fill(x, SIZE, 1);
    rogue_sim = r.backends[0];
    rogue.wait = rogue_wait;
    r.backends[0] = &rogue;
    npu_value in = npu_input(r.graph, "x", F32(SIDE, SIDE)), a = on(r.graph, 1, npu_abs(r.graph, in));
    npu_output(r.graph, "y", on(r.graph, 1, npu_add(r.graph, a, on(r.graph, 0, npu_relu(r.graph, in)))));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    rogue_at = (float *)(uintptr_t)npu_exec_value_address(r.exec, a, 1);
    NPU_CHECK(rogue_at != NULL);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), IS_DEBUG ? NPU_ERR_BACKEND : NPU_OK);
    NPU_CHECK_THAT(!IS_DEBUG || strstr(npu_exec_diag(r.exec)->message, "writes where it may not") != NULL, "%s",
                   npu_exec_diag(r.exec)->message);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    rig_end(&r);
}

/* ---- what is measured ------------------------------------------------------------------------------------ */

static void test_profile(void)
{
    npu_sim_desc desc = slow();
    rig r = overlap_rig(&desc, 2, 50000);
    float x[SIZE];
    uint32_t count = 0;
    uint64_t begin[2] = { 0, 0 }, end[2] = { 0, 0 };
    fill(x, SIZE, 1);
    r.exec_desc.profile = true;
    build_branches(r.graph, 0, 1, 2);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const npu_profile_step *steps = npu_exec_profile(r.exec, &count);
    for (uint32_t i = 0; i < count; i++) {
        const npu_step *s = npu_plan_step(npu_program_plan(r.program), steps[i].step);
        if (s && s->type == NPU_STEP_PARTITION && s->backend < 2 && !steps[i].op) {
            begin[s->backend] = steps[i].begin_ns;
            end[s->backend] = steps[i].end_ns;
        }
    }
    NPU_CHECK(begin[1] < end[0] && begin[0] < end[1]); /* side by side */
    NPU_CHECK(end[0] - begin[0] >= 100000);
    rig_end(&r);
}

/* A transfer that is given to a device behind its work begins when that is done, so that the parts of a run are no more
   than the whole; and rates learn nothing from it. */
static void test_profile_behind(void)
{
    static const npu_rates rates = { .launch_ns = 1, .num_rows = 1 };
    const npu_rates *both[2] = { &rates, &rates };
    npu_sim_desc desc = slow();
    rig r = overlap_rig(&desc, 1, 50000);
    float x[SIZE];
    uint32_t count = 0;
    uint64_t done = 0, sum = 0, last = 0;
    fill(x, SIZE, 1);
    r.exec_desc.profile = true;
    r.desc.rates = both;
    npu_value in = npu_input(r.graph, "x", F32(SIDE, SIDE));
    npu_output(r.graph, "y", on(r.graph, 1, npu_abs(r.graph, on(r.graph, 0, npu_relu(r.graph, in)))));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const npu_profile_step *steps = npu_exec_profile(r.exec, &count);
    for (uint32_t i = 0; i < count; i++) {
        const npu_step *s = npu_plan_step(npu_program_plan(r.program), steps[i].step);
        done = s && s->type == NPU_STEP_PARTITION && !s->backend && !steps[i].op ? steps[i].end_ns : done;
        NPU_CHECK(!s || s->type != NPU_STEP_TRANSFER || (done && steps[i].begin_ns >= done));
        sum += steps[i].op ? 0 : steps[i].end_ns - steps[i].begin_ns;
        last = steps[i].end_ns > last ? steps[i].end_ns : last;
    }
    NPU_CHECK(done >= 100000 && sum <= last + last / 8); /* the first entry is from the start of the run */
    npu_rates learned = rates;
    NPU_CHECK_STATUS(npu_rates_refine(&learned, r.exec, 0), NPU_ERR_STATE);
    NPU_CHECK(memcmp(&learned, &rates, sizeof rates) == 0);
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_branches);
    NPU_RUN(test_first_done);
    NPU_RUN(test_done_between);
    NPU_RUN(test_memory);
    NPU_RUN(test_leaves_once);
    NPU_RUN(test_views_stay);
    NPU_RUN(test_random);
    NPU_RUN(test_random_threads);
    NPU_RUN(test_no_allocation);
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_failures);
    NPU_RUN(test_cancel);
    NPU_RUN(test_hang);
    NPU_RUN(test_reset_late);
    NPU_RUN(test_shared_late);
    NPU_RUN(test_branch_late);
    NPU_RUN(test_vanished);
    NPU_RUN(test_repeated_fence);
    NPU_RUN(test_rogue);
    NPU_RUN(test_profile);
    NPU_RUN(test_profile_behind);
    return npu_test_done();
}
