/* The memory planner, held against an oracle that knows nothing of it (tests/oracle/memory.h). */
#include "oracle/memory.h"

/* Random refusals, so that groups and transfers come up in all orders. */
static uint32_t random_deny(uint64_t *seed, const char **names, uint32_t odds)
{
    static const char *const all[] = {
        "aten.relu.default",  "aten.neg.default",  "aten.add.Tensor", "aten.sub.Tensor",
        "aten.softmax.int",   "aten.cat.default",  "aten.max.dim",    "aten.reshape.default",
        "aten.clone.default", "aten.slice.Tensor", "aten.select.int", "aten.split.Tensor",
        "aten.tanh.default",  "aten.abs.default",
    };
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (pick(seed, odds) == 0) {
            names[n++] = all[i];
        }
    }
    return n;
}

/* How many values share bytes in a random graph on two devices and the CPU; the bits must be those of the
   plain run. */
static uint32_t check_random(uint64_t *seed, uint32_t variant)
{
    static char expected[1 << 16], out[1 << 16];
    const char *deny[2][16];
    npu_sim_desc descs[2];
    size_t expected_len, len;
    uint32_t shared = 0;
    memset(descs, 0, sizeof descs);
    for (uint32_t i = 0; i < 2; i++) {
        descs[i].emulate = npu_ref_backend();
        descs[i].emulate_all = true;
        descs[i].deny = deny[i];
        descs[i].num_deny = random_deny(seed, deny[i], variant % 4 + 2);
        descs[i].in_place = variant & 1;
        descs[i].plans_inner = variant % 8 == 7 && i == 1;
        descs[i].keeps_weights = variant % 3 == i;
        descs[i].scratch = variant & 2 ? 300 : 0;
        descs[i].alignment = variant & 4 ? 16 : 256;
    }
    rig r = rig_start(descs, 2);
    random_graph(r.graph, seed);
    NPU_CHECK(expected_of(r.graph, expected, sizeof expected, &expected_len));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    if (r.exec) {
        for (uint32_t b = 0; b < 3; b++) {
            shared += oracle_check(npu_program_plan(r.program), b);
            oracle_check(r.plan, b); /* the dry run, too */
        }
        NPU_CHECK(run_three(r.exec, r.graph, out, sizeof out, &len));
        NPU_CHECK_EQ(len, expected_len);
        NPU_CHECK_BYTES(out, expected, len);
    }
    rig_end(&r);
    return shared;
}

static void test_random(void)
{
    NPU_ITEM("R2.19");
    uint64_t seed = npu_test_seed();
    uint32_t shared = 0, bad = 0;
    for (uint32_t i = 0; i < 250 && bad < 3; i++) {
        uint64_t at = seed + i;
        int before = npu_test.bad_checks;
        shared += check_random(&at, i);
        if (npu_test.bad_checks != before) {
            fprintf(stderr, "graph %u: again with NPU_SEED=%llu\n", (unsigned)i, (unsigned long long)(seed + i));
            bad++;
        }
    }
    NPU_CHECK(shared > 1000); /* the planner does share */
}

/* ---- places of single values ------------------------------------------------------------------------------------ */

typedef struct spot { uint64_t offset, size; uint32_t first, last; } spot;

static spot spot_of(const rig *r, const char *name, uint32_t backend)
{
    spot s = { 0, 0, 0, 0 };
    npu_value v = npu_graph_find(r->graph, name);
    NPU_CHECK(v.id != 0);
    npu_plan_value_memory(npu_program_plan(r->program), v, backend, &s.offset, &s.size, &s.first, &s.last);
    return s;
}

static npu_value named(npu_graph *g, const char *name, npu_value v)
{
    NPU_CHECK_STATUS(npu_value_set_name(g, v, name), NPU_OK);
    return v;
}

/* Views and leading pieces lie inside what they are pieces of; other pieces do not. */
static void test_views(void)
{
    NPU_ITEM("S1.9");
    NPU_ITEM("S2.33");
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        npu_graph *g = r.graph;
        npu_value x = npu_input(g, "x", F32(4, 6));
        npu_value base = named(g, "base", npu_relu(g, x));
        npu_value flat = named(g, "flat", npu_reshape(g, base, DIMS(24), 1));
        npu_value part = named(g, "part", npu_slice(g, flat, 0, 6, 18, 1));
        npu_value again = named(g, "again", npu_reshape(g, part, DIMS(2, 6), 2));
        npu_value row = named(g, "row", npu_select(g, again, 0, 1));
        npu_op columns = npu_split(g, base, 3, 1), rows = npu_split(g, base, 1, 0);
        npu_value column = named(g, "column", npu_op_result(g, columns, 1));
        npu_value third = named(g, "third", npu_op_result(g, rows, 2));
        npu_value sum = npu_add(g, npu_sum(g, row, NULL, 0, false), npu_sum(g, column, NULL, 0, false));
        npu_output(g, "y", npu_add(g, sum, npu_sum(g, third, NULL, 0, false)));
        for (uint32_t i = 0; i < npu_op_num_results(g, rows); i++) {
            NPU_CHECK(npu_op_result(g, rows, i).id != 0);
        }
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        spot b = spot_of(&r, "base", 0), f = spot_of(&r, "flat", 0), p = spot_of(&r, "part", 0);
        NPU_CHECK_EQ(b.size, 96);
        NPU_CHECK_EQ(f.offset, b.offset);
        NPU_CHECK_EQ(p.offset, b.offset + 24);
        NPU_CHECK_EQ(p.size, 48);
        NPU_CHECK_EQ(spot_of(&r, "again", 0).offset, p.offset);
        NPU_CHECK_EQ(spot_of(&r, "row", 0).offset, p.offset + 24);
        NPU_CHECK_EQ(spot_of(&r, "third", 0).offset, b.offset + 48);
        spot c = spot_of(&r, "column", 0);
        NPU_CHECK(c.offset + c.size <= b.offset || c.offset >= b.offset + b.size); /* not dense: a copy */
        NPU_CHECK(b.first == 1 && b.last == 7);
        oracle_check(npu_program_plan(r.program), 0);
        float in[24], expected = 0;
        fill(in, 24, 1);
        for (int i = 0; i < 24; i++) {
            float v = in[i] > 0 ? in[i] : 0;
            expected += v * (float)((i >= 12 && i < 18) + (i % 6 >= 3) + (i >= 12 && i < 18));
        }
        npu_test_input(r.exec, "x", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_NEAR(*(const float *)npu_exec_output(r.exec, 0, NULL), expected, 1e-4);
        rig_end(&r);
    }
}

/* extract_slice: dims of one element, a part of a dim, whole dims: that lies in its source; all else is a copy. */
static void test_extracted_parts(void)
{
    static const struct {
        int64_t offsets[3], sizes[3], strides[3]; /* of [2,4,6] */
        int64_t at;                               /* elements; -1 = a copy */
    } rows[] = {
        { { 0, 0, 0 }, { 2, 4, 6 }, { 1, 1, 1 }, 0 }, { { 1, 1, 0 }, { 1, 2, 6 }, { 1, 1, 1 }, 30 },
        { { 1, 0, 0 }, { 1, 4, 6 }, { 5, 1, 1 }, 24 }, { { 1, 3, 2 }, { 1, 1, 3 }, { 1, 1, 1 }, 44 },
        { { 0, 1, 0 }, { 2, 2, 6 }, { 1, 1, 1 }, -1 }, { { 0, 0, 1 }, { 1, 2, 3 }, { 1, 1, 1 }, -1 },
        { { 0, 0, 0 }, { 1, 2, 6 }, { 1, 2, 1 }, -1 }, { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 31 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        npu_value base = named(r.graph, "base", npu_neg(r.graph, npu_input(r.graph, "x", F32(2, 4, 6))));
        npu_arg args[] = { npu_arg_tensor("source", base), npu_arg_ints("offsets", rows[i].offsets, 3),
                           npu_arg_ints("sizes", rows[i].sizes, 3), npu_arg_ints("strides", rows[i].strides, 3) };
        npu_op op = npu_emit_name(r.graph, "tensor.extract_slice", args, 4);
        npu_value part = named(r.graph, "part", npu_op_result(r.graph, op, 0));
        npu_output(r.graph, "y", npu_neg(r.graph, part));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        spot b = spot_of(&r, "base", 0), p = spot_of(&r, "part", 0);
        bool inside = p.offset >= b.offset && p.offset < b.offset + b.size;
        NPU_CHECK_EQ(inside, rows[i].at >= 0);
        NPU_CHECK(!inside || p.offset - b.offset == (uint64_t)rows[i].at * sizeof(float));
        float in[48];
        fill(in, 48, 1);
        npu_test_input(r.exec, "x", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        const float *y = (const float *)npu_exec_output(r.exec, 0, NULL);
        for (int64_t a = 0; a < rows[i].sizes[0]; a++) {
            for (int64_t k = 0; k < rows[i].sizes[1] * rows[i].sizes[2]; k++) {
                int64_t row = rows[i].offsets[1] + k / rows[i].sizes[2] * rows[i].strides[1];
                int64_t col = rows[i].offsets[2] + k % rows[i].sizes[2] * rows[i].strides[2];
                NPU_CHECK(*y++ == in[((rows[i].offsets[0] + a * rows[i].strides[0]) * 4 + row) * 6 + col]);
            }
        }
        rig_end(&r);
    }
}

/* Of split(x) some pieces are outputs: the kernel that writes those must not write the caller's input. */
static void test_split_of_an_input(void)
{
    static const float in[4] = { 1, 2, 3, 4 }; /* read-only memory */
    rig r = rig_start(NULL, 0);
    npu_op pieces = npu_split(r.graph, npu_input(r.graph, "x", F32(4)), 2, 0);
    npu_output(r.graph, "first", npu_op_result(r.graph, pieces, 0));
    npu_output(r.graph, "second", npu_neg(r.graph, npu_op_result(r.graph, pieces, 1)));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[1], 2, 0);
    NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 1, NULL))[1], -4, 0);
    rig_end(&r);
}

static npu_sim_desc in_place_desc(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.in_place = true;
    return desc;
}

/* bias_add takes the place of a value that dies there, never of one that is used later, or must stay. */
static void test_in_place(void)
{
    NPU_ITEM("S2.31");
    NPU_ITEM("S2.54");
    NPU_ITEM("R2.18");
    for (uint32_t sims = 0; sims < 2; sims++) {
        for (uint32_t no_inplace = 0; no_inplace < 2; no_inplace++) {
            npu_sim_desc desc = in_place_desc();
            rig r = rig_start(&desc, sims);
            npu_graph *g = r.graph;
            npu_value x = npu_input(g, "x", F32(2, 3)), b = W(3);
            npu_value m = named(g, "m", npu_softmax(g, x, -1));
            npu_value free_ = named(g, "free", npu_aicf_bias_add(g, m, b));      /* m dies */
            npu_value used = named(g, "used", npu_aicf_bias_add(g, free_, b));   /* free is used below */
            npu_value sum = named(g, "sum", npu_add(g, free_, used));
            npu_value out = named(g, "out", npu_aicf_bias_add(g, sum, b));       /* sum is an output */
            npu_value last = named(g, "last", npu_aicf_bias_add(g, out, b));
            npu_output(g, "sum", sum);
            npu_output(g, "y", npu_softmax(g, last, -1));
            r.desc.no_inplace = no_inplace != 0;
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            spot sm = spot_of(&r, "m", 0), sf = spot_of(&r, "free", 0), su = spot_of(&r, "used", 0),
                 so = spot_of(&r, "out", 0);
            spot ss = spot_of(&r, "sum", 0), sl = spot_of(&r, "last", 0);
            NPU_CHECK_EQ(sf.offset == sm.offset, !no_inplace);
            NPU_CHECK(su.offset != sf.offset);
            NPU_CHECK(sims == 0 ? ss.size == 0 : ss.size == 24); /* on the CPU outputs lie in the caller's memory */
            NPU_CHECK(ss.size == 0 || so.offset != ss.offset);
            NPU_CHECK_EQ(sl.offset == so.offset, !no_inplace);
            oracle_check(npu_program_plan(r.program), 0);
            rig_end(&r);
        }
    }
}

/* A destination that is what the op reads, too, is written while it is read: the result takes other memory. */
static void test_own_destination(void)
{
    static const float x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    NPU_ITEM("S2.54");
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    npu_value t = named(g, "t", npu_relu(g, npu_input(g, "x", F32(3, 3))));
    int64_t order[] = { 1, 0 };
    npu_arg args[] = { npu_arg_tensor("input", t), npu_arg_tensor("outs", t), npu_arg_ints("permutation", order, 2) };
    npu_value y = named(g, "turned", npu_op_result(g, npu_emit(g, NPU_LINALG_TRANSPOSE, args, 3), 0));
    npu_output(g, "y", npu_neg(g, y));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK(spot_of(&r, "t", 0).offset != spot_of(&r, "turned", 0).offset);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (int i = 0; i < 9; i++) {
        NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[i], -x[i % 3 * 3 + i / 3], 0);
    }
    rig_end(&r);
}

/* scatter(t, 1, places, t) reads as src what it would have overwritten as self. */
static void test_operand_twice(void)
{
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t places[6] = { 2, 0, 1, 1, 2, 0 };
    static const float expected[6] = { 2, 3, 1, 6, 4, 5 };
    NPU_ITEM("S2.54");
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    npu_value t = named(g, "t", npu_relu(g, npu_input(g, "x", F32(2, 3))));
    npu_value index = npu_input(g, "places", npu_spec_tensor(NPU_I64, NUM(2, 3), DIMS(2, 3)));
    npu_arg args[] = { npu_arg_tensor("self", t), npu_arg_int("dim", 1), npu_arg_tensor("index", index),
                       npu_arg_tensor("src", t) };
    npu_value y = named(g, "moved", npu_op_result(g, npu_emit(g, NPU_ATEN_SCATTER, args, 4), 0));
    npu_output(g, "y", npu_neg(g, y));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK(spot_of(&r, "t", 0).offset != spot_of(&r, "moved", 0).offset);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_test_input(r.exec, "places", places, sizeof places);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (int i = 0; i < 6; i++) {
        NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[i], -expected[i], 0);
    }
    rig_end(&r);
}

/* Inputs and weights stay as they are: the second run gives the same. */
static void test_inputs_stay(void)
{
    for (uint32_t sims = 0; sims < 2; sims++) {
        npu_sim_desc desc = in_place_desc();
        rig r = rig_start(&desc, sims);
        npu_graph *g = r.graph;
        static float w[6] = { 1, -2, 3, -4, 5, -6 };
        float x[6] = { -1, 2, -3, 4, -5, 6 }, first[2][6], copy[6];
        npu_value p = npu_param(g, "p", F32(2, 3)), in = npu_input(g, "x", F32(2, 3));
        npu_graph_bind_param(g, "p", w, sizeof w);
        npu_output(g, "a", npu_neg(g, npu_relu(g, in)));
        npu_output(g, "b", npu_neg(g, npu_relu(g, p)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        memcpy(copy, x, sizeof x);
        npu_test_input(r.exec, "x", x, sizeof x);
        for (int run = 0; run < 2; run++) {
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            for (uint32_t i = 0; i < 2; i++) {
                const float *y = npu_exec_output(r.exec, i, NULL);
                NPU_CHECK(run == 0 || memcmp(y, first[i], sizeof first[i]) == 0);
                memcpy(first[i], y, sizeof first[i]);
            }
        }
        NPU_CHECK(memcmp(x, copy, sizeof x) == 0 && w[1] == -2);
        NPU_CHECK(first[0][1] == -2 && first[1][2] == -3);
        rig_end(&r);
    }
}

/* A piece that is not aligned like a value is no place for a result. */
static void test_in_place_of_a_piece(void)
{
    npu_sim_desc desc = in_place_desc();
    rig r = rig_start(&desc, 1);
    npu_graph *g = r.graph;
    npu_op rows = npu_split(g, npu_softmax(g, npu_input(g, "x", F32(4, 3)), -1), 1, 0);
    npu_value y = npu_neg(g, npu_op_result(g, rows, 1));
    npu_output(g, "y", npu_softmax(g, y, -1));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    float x[12];
    fill(x, 12, 1);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    oracle_check(npu_program_plan(r.program), 0);
    rig_end(&r);
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

static void test_sums(void)
{
    npu_memory m;
    rig r = rig_start(NULL, 1);
    npu_graph *g = r.graph;
    npu_value x = npu_input(g, "x", F32(2, 3)), s = npu_state(g, "s", F32(2, 3));
    npu_value y = npu_softmax(g, npu_matmul(g, npu_add(g, x, s), W(3, 5)), -1);
    npu_update(g, s, npu_neg(g, x));
    npu_output(g, "y", npu_argmax(g, y, -1, false)); /* the CPU's */
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(r.plan, 0, &m), NPU_OK);
    NPU_CHECK_EQ(m.weights, 64);      /* 60 bytes, aligned */
    NPU_CHECK_EQ(m.inputs, 24);
    NPU_CHECK_EQ(m.state, 24);
    NPU_CHECK_EQ(m.outputs, 0);
    NPU_CHECK_EQ(m.scratch, 0);
    NPU_CHECK_EQ(m.no_reuse, 6 * 64); /* x, s, sum, product, softmax, neg */
    NPU_CHECK(m.lower_bound <= m.activations && m.activations <= 5 * 64);
    NPU_CHECK_STATUS(npu_plan_memory(r.plan, 1, &m), NPU_OK);
    NPU_CHECK_EQ(m.outputs, 16);
    NPU_CHECK_EQ(m.inputs + m.state + m.weights, 0);
    NPU_CHECK_EQ(m.activations, 64);  /* the softmax's copy */
    uint64_t offset, size;
    uint32_t first, last;
    NPU_CHECK_STATUS(npu_plan_value_memory(r.plan, y, 2, &offset, &size, &first, &last), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_plan_value_memory(r.plan, value_id(99), 0, &offset, &size, &first, &last), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_plan_value_memory(r.plan, y, 1, &offset, &size, &first, &last), NPU_OK);
    NPU_CHECK_EQ(size, 40);
    rig_end(&r);
}

/* A kernel that keeps as many bytes as its operand has. */
static npu_status keep_prepare(npu_prepare *p)
{
    size_t size = 0;
    npu_status status = npu_spec_size(p->op->in[0], &size);
    p->state = status ? NULL : npu_prepare_alloc(p, size);
    return status ? status : p->state ? NPU_OK : NPU_ERR_NO_MEMORY;
}

static npu_status keep_launch(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)l, (void)part, (void)parts;
    return NPU_OK;
}

/* What programs keep is counted where they were compiled, and is what the allocator says, but for a few words. */
static void test_prepared(void)
{
    static const npu_kernel kernels[] = {
        { .kind = NPU_ATEN_NEG, .variant = "plain", .prepare = keep_prepare, .launch = keep_launch }
    };
    const npu_kernel_table table = { kernels, 1, NPU_IR_VERSION };
    npu_alloc_counter counter = { 0, 0, 0, 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_ref_desc desc = { 0 };
    npu_backend *keeper = NULL;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_memory m, cpu;
    npu_diag diag;
    desc.tables = &table, desc.num_tables = 1, desc.name = "keeper", desc.allocator = &allocator;
    NPU_CHECK_STATUS(npu_ref_create(&keeper, &desc), NPU_OK);
    const npu_backend *backends[2] = { keeper, npu_ref_backend() };
    npu_plan_desc plan_desc = { 0 };
    plan_desc.backends = backends, plan_desc.num_backends = 2;
    npu_graph *g = npu_graph_create(NULL);
    npu_value y = npu_neg(g, npu_input(g, "x", F32(1000)));
    npu_output(g, "y", npu_neg(g, npu_relu(g, y))); /* two groups of the keeper */
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &plan_desc, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(plan, 0, &m), NPU_OK);
    NPU_CHECK_EQ(m.prepared, 0);
    size_t before = counter.live_bytes;
    NPU_CHECK_STATUS(npu_program_create(&program, plan, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(program), 0, &m), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(program), 1, &cpu), NPU_OK);
    NPU_CHECK(m.prepared >= 8000 && m.prepared < 8000 + 1000);
    NPU_CHECK(m.prepared < counter.live_bytes - before && counter.live_bytes - before < m.prepared + 4000);
    NPU_CHECK(cpu.prepared < 1000);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    npu_ref_destroy(keeper);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* A weight is uploaded unless all groups that use it keep it, and none looks at it through a view. */
static void test_own_weights(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    for (uint32_t keeps = 0; keeps < 2; keeps++) {
        desc.keeps_weights = keeps != 0;
        npu_memory m;
        rig r = rig_start(&desc, 1);
        npu_graph *g = r.graph;
        npu_value a = W(5, 6), b = W(6);
        npu_value y = npu_add(g, npu_matmul(g, npu_input(g, "x", F32(4, 5)), a), b);
        npu_output(g, "y", npu_add(g, y, npu_reshape(g, b, DIMS(1, 6), 2)));
        npu_output(g, "z", npu_argmax(g, y, 1, false)); /* the CPU's */
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_plan_memory(r.plan, 0, &m), NPU_OK);
        NPU_CHECK_EQ(m.weights, 128 + 64); /* 120 and 24 bytes, aligned */
        NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
        NPU_CHECK_EQ(m.weights, keeps ? 64 : 128 + 64);
        NPU_CHECK_EQ(m.prepared, keeps ? 128 + 64 : 0);
        NPU_CHECK_EQ(npu_sim_count(r.sims[0]).bytes_up, keeps ? 24 : 144);
        rig_end(&r);
    }
}

/* Sizes that fit alone and not together are an error, not a small arena. */
static void test_overflow(void)
{
    rig r = rig_start(NULL, 0);
    npu_value x = npu_input(r.graph, "x", F32(1));
    for (int i = 0; i < 5; i++) {
        npu_value y = npu_expand(r.graph, x, DIMS((int64_t)1 << (sizeof(size_t) == 8 ? 60 : 28)), 1);
        npu_value sum = npu_sum(r.graph, npu_neg(r.graph, y), NULL, 0, true);
        x = npu_add(r.graph, x, npu_add(r.graph, sum, npu_sum(r.graph, y, NULL, 0, true)));
    }
    npu_output(r.graph, "y", x);
    NPU_CHECK_STATUS(npu_graph_status(r.graph), NPU_OK);
    NPU_CHECK_STATUS(rig_plan(&r), sizeof(size_t) == 8 ? NPU_ERR_OVERFLOW : NPU_OK);
    rig_end(&r);
}

static npu_value conv(npu_graph *g, npu_value x, int64_t in, int64_t out, int64_t size, int64_t stride)
{
    npu_value none = { 0 };
    npu_conv2d_attrs attrs = { { stride, stride }, { size / 2, size / 2 }, { 1, 1 }, 1 };
    static uint32_t number;
    char name[32];
    snprintf(name, sizeof name, "w%u", (unsigned)number++);
    return npu_conv2d(g, x, npu_param(g, name, F32(out, in, size, size)), none, &attrs);
}

static npu_value residual(npu_graph *g, npu_value x, int64_t in, int64_t out)
{
    int64_t stride = in == out ? 1 : 2;
    npu_value y = npu_relu(g, conv(g, x, in, out, 3, stride));
    y = conv(g, y, out, out, 3, 1);
    return npu_relu(g, npu_add(g, y, in == out ? x : conv(g, x, in, out, 1, stride)));
}

/* Ops without elements need no memory, however long the rows are that they do not have. */
static void test_empty_ops(void)
{
    enum { IS_WIDE = sizeof(size_t) > 4, SIDE = IS_WIDE ? 1 << 20 : 1 << 14 };
    const int64_t length = (int64_t)1 << (IS_WIDE ? 33 : 28); /* as many as sizes of this machine count */
    const struct { const char *call; int64_t dims[3]; } rows[] = {
        { "y, i = aten.sort.stable(x, stable=true)", { 2, 0, length } },
        { "y = aten.argsort.default(x, dim=0)", { length, 2, 0 } },
        { "y, i = aten.topk.default(x, k=1, dim=0)", { length, 2, 0 } },
        { "y, i = aten.median.dim(x, dim=2)", { 0, 2, length } },
        { "y, i = aten.mode.default(x)", { 0, 2, length } },
        { "y = aten.linalg_svdvals.default(x)", { 0, SIDE, SIDE } },
        { "y, a, b = aten._linalg_det.default(x)", { 0, SIDE, SIDE } },
        { "y = aten.bmm.default(x, x)", { 0, SIDE, SIDE } },
        { "y = aten.scaled_dot_product_attention.default(x, x, x)", { 0, SIDE, SIDE } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        npu_spec spec = npu_spec_tensor(NPU_F32, 3, rows[i].dims);
        npu_array x = { "x", spec, "" };
        npu_memory m = { 0 };
        char text[256];
        snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput x : f32[%lld,%lld,%lld]\n%s\noutput y = y\n",
                 (long long)rows[i].dims[0], (long long)rows[i].dims[1], (long long)rows[i].dims[2], rows[i].call);
        npu_graph_destroy(r.graph);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), npu_test_graph_desc(), &r.diag), NPU_OK);
        NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s: %s", rows[i].call, r.diag.message);
        if (r.exec) {
            NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
            NPU_CHECK_THAT(m.activations < 1 << 16, "%s: %llu bytes", rows[i].call, (unsigned long long)m.activations);
            NPU_CHECK_STATUS(npu_exec_set_input(r.exec, &x), NPU_OK);
            NPU_CHECK_THAT(npu_exec_run(r.exec) == NPU_OK, "%s: %s", rows[i].call, npu_exec_diag(r.exec)->message);
        }
        rig_end(&r);
    }
}

/* The shapes of ResNet-18: the arena is within a tenth of what is alive at once, and a small part of all
   values. */
static void test_residual_network(void)
{
    for (uint32_t sims = 0; sims < 2; sims++) {
        rig r = rig_start(NULL, sims);
        npu_graph *g = r.graph;
        npu_memory m;
        static const int64_t widths[] = { 64, 64, 128, 256, 512 };
        npu_value x = npu_relu(g, conv(g, npu_input(g, "x", F32(1, 3, 224, 224)), 3, 64, 7, 2));
        x = npu_max_pool2d(g, x, &(npu_max_pool2d_attrs){ { 3, 3 }, { DIMS(2, 2), 2 }, { 1, 1 }, { 1, 1 }, false });
        for (int i = 0; i < 4; i++) {
            x = residual(g, residual(g, x, widths[i], widths[i + 1]), widths[i + 1], widths[i + 1]);
        }
        npu_output(g, "y", npu_flatten(g, npu_adaptive_avg_pool2d(g, x, 1, 1), 1, -1));
        NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_plan_memory(r.plan, 0, &m), NPU_OK);
        NPU_CHECK(m.lower_bound >= 2 * 64 * 112 * 112 * 4);
        NPU_CHECK(m.activations <= m.lower_bound + m.lower_bound / 10);
        NPU_CHECK(m.activations * 3 < m.no_reuse);
        oracle_check(r.plan, 0);
        rig_end(&r);
    }
}

/* More values than the better of the two packings takes: the other one alone must be right, too. */
static void test_many_values(void)
{
    rig r = rig_start(NULL, 0);
    npu_graph *g = r.graph;
    npu_memory m;
    npu_value x = npu_input(g, "x", F32(8)), sum = npu_neg(g, x);
    for (int i = 0; i < 3000; i++) {
        npu_value branch = npu_softmax(g, npu_slice(g, sum, 0, 0, 1 + i % 8, 1), 0);
        sum = npu_add(g, sum, npu_sum(g, branch, NULL, 0, true));
    }
    npu_output(g, "y", sum);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
    NPU_CHECK(m.lower_bound <= m.activations && m.activations <= m.lower_bound + 4096);
    NPU_CHECK(m.exact);
    float in[8] = { 0 };
    npu_test_input(r.exec, "x", in, sizeof in);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[5], 3000, 0.1);
    rig_end(&r);
}

/* ---- states ---- */

enum { STATE_ROWS = 5, STATE_COLS = 4, STATE_LEN = STATE_ROWS * STATE_COLS };

typedef struct state_graph {
    npu_graph *g;
    npu_value state, other, at, row; /* [5,4], [5,4], [1] of i64, [1,4] */
} state_graph;

static npu_value emit_state(npu_graph *g, const char *name, const npu_arg *args, uint32_t num)
{
    return npu_op_result(g, npu_emit_name(g, name, args, num), 0);
}

static npu_value state_copied(const state_graph *s) { return npu_index_copy(s->g, s->state, 0, s->at, s->row); }

static npu_value state_put(const state_graph *s)
{
    const npu_value indices[1] = { s->at };
    npu_arg args[] = { npu_arg_tensor("self", s->state), npu_arg_tensors("indices", indices, 1),
                       npu_arg_tensor("values", s->row) };
    return emit_state(s->g, "aten.index_put.default", args, 3);
}

static npu_value state_sliced(const state_graph *s)
{
    npu_arg args[] = { npu_arg_tensor("self", s->state), npu_arg_tensor("src", s->row), npu_arg_int("dim", 0),
                       npu_arg_int("start", 3), npu_arg_int("end", 4) };
    return emit_state(s->g, "aten.slice_scatter.default", args, 5);
}

static npu_value state_selected(const state_graph *s)
{
    npu_arg args[] = { npu_arg_tensor("self", s->state),
                       npu_arg_tensor("src", npu_reshape(s->g, s->row, DIMS(4), 1)), npu_arg_int("dim", 0),
                       npu_arg_int("index", -1) };
    return emit_state(s->g, "aten.select_scatter.default", args, 4);
}

static npu_value state_added(const state_graph *s) { return npu_add(s->g, s->state, s->row); }

/* Two writes, one after the other, by way of other dims. */
static npu_value state_chain(const state_graph *s)
{
    state_graph flat = *s;
    flat.state = npu_reshape(s->g, npu_reshape(s->g, s->state, DIMS(20), 1), DIMS(5, 4), 2);
    flat.state = state_sliced(&flat);
    npu_output(s->g, "between", npu_neg(s->g, flat.state));
    return state_copied(&flat);
}

/* What was there is read by the op that writes, at other places. */
static npu_value state_shifted(const state_graph *s)
{
    state_graph other = *s;
    other.row = npu_slice(s->g, s->state, 0, 1, 2, 1);
    return state_sliced(&other);
}

static npu_value state_read_later(const state_graph *s)
{
    npu_value next = state_copied(s);
    npu_output(s->g, "old", npu_neg(s->g, s->state));
    return next;
}

static npu_value state_viewed_later(const state_graph *s)
{
    npu_value row = npu_slice(s->g, s->state, 0, 2, 3, 1), next = state_copied(s);
    npu_output(s->g, "old", npu_mul(s->g, row, npu_slice(s->g, next, 0, 2, 3, 1)));
    return next;
}

static npu_value state_listed(const state_graph *s)
{
    npu_output(s->g, "old", s->state);
    return state_copied(s);
}

static npu_value state_next_listed(const state_graph *s)
{
    npu_value next = state_copied(s);
    npu_output(s->g, "next", next);
    return next;
}

/* The old content of one state is the next of another. */
static npu_value state_handed_on(const state_graph *s)
{
    npu_update(s->g, s->other, s->state);
    return state_copied(s);
}

/* One value for both: it lies in one of them. */
static npu_value state_shared(const state_graph *s)
{
    npu_value next = state_copied(s);
    npu_update(s->g, s->other, next);
    return next;
}

/* Written, but the next content is another. */
static npu_value state_discarded(const state_graph *s)
{
    npu_output(s->g, "tried", npu_neg(s->g, state_copied(s)));
    return state_added(s);
}

static const struct {
    const char *name;
    npu_value (*build)(const state_graph *s);
    bool in_place;
} state_rows[] = {
    { "index_copy", state_copied, true },
    { "index_put", state_put, true },
    { "slice_scatter", state_sliced, true },
    { "select_scatter", state_selected, true },
    { "add", state_added, true },
    { "two in a row", state_chain, true },
    { "of itself", state_shifted, false },
    { "read later", state_read_later, false },
    { "a view is read later", state_viewed_later, false },
    { "the old content is an output", state_listed, false },
    { "the next content is an output", state_next_listed, false },
    { "handed on", state_handed_on, false },
    { "of two states", state_shared, true },
    { "not the next", state_discarded, true },
};

/* All outputs of five runs; one that fails between them has changed nothing. */
static uint32_t run_states(npu_exec *e, float *all)
{
    uint32_t num = 0;
    for (int64_t i = 0; i < 5; i++) {
        const int64_t at = (2 * i + 1) % STATE_ROWS;
        float row[STATE_COLS];
        fill(row, STATE_COLS, (uint32_t)i + 1);
        npu_test_input(e, "at", &at, sizeof at);
        npu_test_input(e, "row", row, sizeof row);
        if (i == 2) {
            const int64_t far = 100;
            npu_test_input(e, "at", &far, sizeof far);
            npu_exec_run(e); /* fails where `at` is read, before anything is written */
            npu_test_input(e, "at", &at, sizeof at);
        }
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
        for (uint32_t k = 0; k < npu_graph_num_outputs(npu_plan_graph(npu_program_plan(npu_exec_program(e)))); k++) {
            size_t size;
            const void *y = npu_exec_output(e, k, &size);
            memcpy(all + num, y, size);
            num += (uint32_t)(size / sizeof *all);
        }
    }
    return num;
}

/* A state's next content takes its memory where nothing reads it later: the same bits as by way of copies, in order,
   overlapped, and on accelerators. */
static void test_states(void)
{
    NPU_ITEM("F32");
    for (size_t row = 0; row < sizeof state_rows / sizeof *state_rows; row++) {
        static float all[2][4096];
        uint32_t num[2] = { 0, 0 };
        for (uint32_t way = 0; way < 4; way++) { /* copies, in place, overlapped, an accelerator first */
            rig r = rig_start(NULL, way == 3);
            npu_graph *g = r.graph;
            state_graph s;
            npu_value next;
            bool stays;
            s.g = g;
            s.state = npu_state(g, "state", F32(STATE_ROWS, STATE_COLS));
            s.other = npu_state(g, "other", F32(STATE_ROWS, STATE_COLS));
            s.at = npu_input(g, "at", npu_spec_tensor(NPU_I64, 1, DIMS(1)));
            s.row = npu_input(g, "row", F32(1, STATE_COLS));
            next = state_rows[row].build(&s);
            npu_update(g, s.state, next);
            npu_output(g, "sum", npu_relu(g, npu_add(g, next, s.other)));
            r.desc.no_inplace = way == 0;
            r.desc.overlap = r.exec_desc.overlap = way == 2;
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            NPU_CHECK_STATUS(npu_plan_validate(npu_program_plan(r.program), &r.diag), NPU_OK);
            stays = npu_exec_value_address(r.exec, next, 0) == npu_exec_value_address(r.exec, s.state, 0);
            NPU_CHECK_THAT(way == 3 || stays == (way && state_rows[row].in_place), "%s, way %u: %s",
                           state_rows[row].name, way, stays ? "in place" : "copied");
            num[way != 0] = run_states(r.exec, all[way != 0]);
            NPU_CHECK_THAT(num[1] == 0 || (num[0] == num[1] && memcmp(all[0], all[1], num[0] * sizeof **all) == 0),
                           "%s, way %u", state_rows[row].name, way);
            rig_end(&r);
        }
    }
}

/* ---- norms in place ---- */

/* What a norm reads dies there, and its rows are longer than what is converted at a time: the same bits in its memory as
   in other memory. */
static void test_norms(void)
{
    static const char *const rows[] = {
        "batch_norm.default(x, w, b, w, w, false, 0.1, 1e-5, false)",
        "batch_norm.default(x, w, b, none, none, true, 0.1, 1e-5, false)",
        "batch_norm.default(x, none, none, w, w, false, 0.1, 1e-5, false)",
        "group_norm.default(x, 2, w, b, 1e-5, false)",
        "layer_norm.default(x, [40, 40])",
        "layer_norm.default(x, [6, 40, 40], v)",
        "rms_norm.default(x, [40, 40])",
        "instance_norm.default(x, w, b, none, none, true, 0.1, 1e-5, false)",
    };
    static const char *const dtypes[] = { "f32", "f64", "bf16" };
    enum { SIZE = 2 * 6 * 40 * 40 };
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        const npu_backend *cpu = npu_ref_backend();
        const char *type = dtypes[i % 3];
        static float x[SIZE], y[2][SIZE];
        char text[600];
        snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput in : f32[2,6,40,40]\nh = aten._to_copy.default(in, dtype=%s)\n"
                 "a = aten.ones.default([6], dtype=%s)\nw = aten.add.Tensor(a, 1)\nb = aten.neg.default(a)\n"
                 "v = aten.ones.default([6, 40, 40], dtype=%s)\nx = aten.exp.default(h)\n"
                 "y = aten.%s\nz = aten._to_copy.default(y, dtype=f32)\noutput z = z\n", type, type, type, rows[i / 3]);
        fill(x, SIZE, (uint32_t)i);
        for (int way = 0; way < 2; way++) {
            npu_graph *g = NULL;
            npu_plan *plan = NULL;
            npu_program *program = NULL;
            npu_exec *exec = NULL;
            npu_diag diag = { 0 };
            npu_plan_desc desc = { .backends = &cpu, .num_backends = 1, .no_inplace = way == 0 };
            npu_status status = npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag);
            status = status ? status : npu_plan_create(&plan, g, &desc, &diag);
            status = status ? status : npu_program_create(&program, plan, &diag);
            status = status ? status : npu_exec_create(&exec, program, NULL, &diag);
            NPU_CHECK_THAT(status == NPU_OK, "%s: %s", text, diag.message);
            if (!status) {
                npu_test_input(exec, "in", x, sizeof x);
                NPU_CHECK_STATUS(npu_exec_set_output(exec, "z", y[way], sizeof y[way]), NPU_OK);
                NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
                bool same = npu_exec_value_address(exec, npu_graph_find(g, "x"), 0) ==
                            npu_exec_value_address(exec, npu_graph_find(g, "y"), 0);
                NPU_CHECK_THAT(same == (way == 1), "%s %s: %s", type, rows[i / 3], same ? "in place" : "not in place");
            }
            npu_exec_destroy(exec);
            npu_program_destroy(program);
            npu_plan_destroy(plan);
            npu_graph_destroy(g);
        }
        NPU_CHECK_THAT(memcmp(y[0], y[1], sizeof y[0]) == 0, "%s %s: other bits in place", type, rows[i / 3]);
    }
}

/* A sum that follows a convolution lies where what is added does, whichever operand that is: what the convolution alone
   would have written is written nowhere, and the planes are streamed twice, not three times. */
static void test_sum_in_place(void)
{
    enum { SIZE = 8 * 12 * 12 };
    static float x[SIZE], y[2][SIZE];
    fill(x, SIZE, 7);
    for (uint32_t way = 0; way < 4; way++) {
        bool is_in_place = way % 2 == 1;
        rig r = rig_start(NULL, 0);
        npu_graph *g = r.graph;
        npu_value in = npu_input(g, "x", F32(1, 8, 12, 12)), none = { 0 };
        npu_value more = npu_exp(g, in), c = npu_conv2d(g, in, W(8, 8, 1, 1), none, NULL);
        npu_value sum = way / 2 ? npu_add(g, more, c) : npu_add(g, c, more);
        npu_output(g, "y", npu_neg(g, sum));
        r.desc.no_inplace = !is_in_place;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y[way % 2], sizeof y[0]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_THAT((npu_exec_value_address(r.exec, sum, 0) == npu_exec_value_address(r.exec, more, 0)) == is_in_place,
                       "way %u: %s", way, is_in_place ? "not where what is added lies" : "in place");
        NPU_CHECK_THAT(!is_in_place || memcmp(y[0], y[1], sizeof y[0]) == 0, "way %u: other bits in place", way);
        rig_end(&r);
    }
}

/* A capture replays the same. */
static void test_states_replayed(void)
{
    static float all[2][4096];
    for (uint32_t way = 0; way < 2; way++) {
        rig r = rig_start(NULL, 0);
        npu_value state = npu_state(r.graph, "state", F32(STATE_ROWS, STATE_COLS));
        npu_value next = npu_add(r.graph, state, npu_input(r.graph, "row", F32(1, STATE_COLS)));
        npu_capture *c = NULL;
        float row[STATE_COLS] = { 1, 2, 3, 4 };
        npu_update(r.graph, state, next);
        npu_output(r.graph, "sum", npu_neg(r.graph, next));
        r.desc.no_inplace = way == 0;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "row", row, sizeof row);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(npu_capture_create(&c, r.exec), NPU_OK);
        for (int i = 0; i < 3; i++) {
            NPU_CHECK_STATUS(npu_capture_replay(c), NPU_OK);
            memcpy(all[way] + i * STATE_LEN, npu_exec_output(r.exec, 0, NULL), STATE_LEN * sizeof(float));
        }
        npu_capture_destroy(c);
        rig_end(&r);
    }
    NPU_CHECK_EQ(memcmp(all[0], all[1], sizeof(float) * 3 * STATE_LEN), 0);
    NPU_CHECK_NEAR(all[1][2 * STATE_LEN + 1], -8, 0);
}

/* A row written into a state of any size costs no memory of that size, and no time: the bytes that an exec takes
   beside the state are few. */
static void test_large_state(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    rig r = rig_start(NULL, 0);
    npu_value state = npu_state(r.graph, "cache", F32(1, 8, 16384, 128));
    npu_value at = npu_input(r.graph, "at", npu_spec_tensor(NPU_I64, 1, DIMS(1)));
    npu_value next = npu_index_copy(r.graph, state, 2, at, npu_input(r.graph, "row", F32(1, 8, 1, 128)));
    float row[8 * 128] = { 1 };
    const int64_t last = 16383;
    npu_update(r.graph, state, next);
    npu_output(r.graph, "first", npu_slice(r.graph, next, 2, 16383, 16384, 1));
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK(counter.live_bytes < 65u * 1024 * 1024);
    npu_test_input(r.exec, "at", &last, sizeof last);
    npu_test_input(r.exec, "row", row, sizeof row);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_NEAR(((const float *)npu_exec_output(r.exec, 0, NULL))[0], 1, 0);
    rig_end(&r);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* Attention whose weights nobody needs holds no scores: of 256 x 256 by 2 heads they would be 512 KiB. */
static void test_attention_without_scores(void)
{
    static const char text[] =
        "graph main\ninput x : f32[1,256,8]\ninput w : f32[24,8]\ninput b : f32[24]\ninput p : f32[8,8]\ninput c : f32[8]\n"
        "y, a = aten._native_multi_head_attention.default(x, x, x, 8, 2, w, b, p, c, none, false)\n"
        "z = aten._transformer_encoder_layer_fwd.default(x, 8, 2, w, b, p, c, false, false, 1e-5, c, c, c, c, p, c, p, c)\n"
        "output y = y\noutput z = z\n";
    rig r = rig_start(NULL, 0);
    npu_memory m = { 0 };
    npu_graph_destroy(r.graph);
    r.graph = NULL;
    NPU_CHECK_THAT(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag) == NPU_OK, "%s", r.diag.message);
    NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s", r.diag.message);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
    NPU_CHECK_THAT(m.activations < 300000, "%llu bytes", (unsigned long long)m.activations);
    rig_end(&r);
}

/* Scratch of the op of a text, in which %%d is `num`, as a program has it. */
static uint64_t scratch_of(const char *format, int num)
{
    char text[600];
    rig r = rig_start(NULL, 0);
    npu_memory m = { 0 };
    snprintf(text, sizeof text, format, num, num);
    npu_graph_destroy(r.graph);
    r.graph = NULL;
    NPU_CHECK_THAT(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag) == NPU_OK, "%s: %s", text, r.diag.message);
    NPU_CHECK_THAT(rig_make(&r) == NPU_OK, "%s: %s", text, r.diag.message);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
    rig_end(&r);
    return m.scratch;
}

/* Threads have scratch, not parts: what more rows there are takes no more of it. */
static void test_scratch_of_parts(void)
{
    static const char *const texts[] = {
        "graph g\ninput x : f32[%d,5000]\ny, i = aten.sort.default(x)\noutput y = y\n",
        "graph g\ninput x : f32[%d,5000]\ny, i = aten.median.dim(x, 1)\noutput y = y\n",
        "graph g\ninput x : f32[%d,5000]\ny, i = aten.topk.default(x, 300)\noutput y = y\n",
        "graph g\ninput x : f32[%d,5000]\ny = aten.quantile.scalar(x, 0.5, 1)\noutput y = y\n",
        "graph g\ninput x : f32[%d,5000]\ny = aten.diff.default(x)\noutput y = y\n",
        "graph g\ninput x : f32[%d,40,40]\ny = aten.det.default(x)\noutput y = y\n",
        "graph g\ninput x : f32[%d,40,40]\ny, z = aten.linalg_qr.default(x)\noutput y = y\n",
        "graph g\ninput x : f32[%d,40,30]\nu, y, v = aten.linalg_svd.default(x)\noutput y = y\n",
        "graph g\ninput x : f32[%d,40,40]\ny = aten.linalg_matrix_power.default(x, 5)\noutput y = y\n",
        "graph g\ninput x : f32[%d,40,30]\ny = aten.linalg_matrix_norm.default(x, 2.0)\noutput y = y\n",
        "graph g\ninput g : f32[1,%d,20,20]\ninput x : f32[1,%d,40,40]\n"
        "y = aten.avg_pool2d_backward.default(g, x, [2, 2], [2, 2], [0, 0], false, true, none)\noutput y = y\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t few = scratch_of(texts[i], 1), many = scratch_of(texts[i], 500);
        NPU_CHECK_THAT(few > 0 && many == few, "%s: %llu bytes for one, %llu for 500", texts[i], (unsigned long long)few,
                       (unsigned long long)many);
    }
    /* the first few of a long row */
    NPU_CHECK(scratch_of("graph g\ninput x : f32[%d,100000]\ny, i = aten.topk.default(x, 8)\noutput y = y\n", 1) <= 256);
}

int main(void)
{
    NPU_RUN(test_random);
    NPU_RUN(test_views);
    NPU_RUN(test_extracted_parts);
    NPU_RUN(test_split_of_an_input);
    NPU_RUN(test_in_place);
    NPU_RUN(test_own_destination);
    NPU_RUN(test_operand_twice);
    NPU_RUN(test_inputs_stay);
    NPU_RUN(test_in_place_of_a_piece);
    NPU_RUN(test_sums);
    NPU_RUN(test_prepared);
    NPU_RUN(test_own_weights);
    NPU_RUN(test_overflow);
    NPU_RUN(test_empty_ops);
    NPU_RUN(test_residual_network);
    NPU_RUN(test_many_values);
    NPU_RUN(test_norms);
    NPU_RUN(test_sum_in_place);
    NPU_RUN(test_states);
    NPU_RUN(test_states_replayed);
    NPU_RUN(test_large_state);
    NPU_RUN(test_attention_without_scores);
    NPU_RUN(test_scratch_of_parts);
    return npu_test_done();
}
