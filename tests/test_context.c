/* Compiled groups as bytes: a second start compiles nothing; what is stale, damaged, cut off or of another device is
   refused in words, and compiled. */
#include "rig.h"

enum { LEN = 60, MAX_BYTES = 1 << 14 };

/* Two groups of the accelerator around an op that it does not take. `change` makes another model of it. */
static void build(npu_graph *g, int change)
{
    npu_value x = npu_input(g, "x", change == 1 ? F32(2, 5) : F32(4, 5));
    static const float w[5] = { 1, 2, 3, 4, 5 }, other[5] = { 1, 2, 3, 4, 6 };
    npu_value y = npu_add(g, x, npu_constant(g, "w", F32(5), change == 2 ? other : w));
    y = change == 3 ? npu_neg(g, y) : npu_relu(g, y);
    npu_value both[2] = { y, y };
    y = npu_cat(g, both, 2, 0);
    npu_output(g, "y", npu_softmax(g, y, change == 4 ? 0 : -1));
}

static rig start(int change, npu_sim_desc desc)
{
    desc.deny = deny_cat;
    desc.num_deny = 1;
    rig r = rig_start(&desc, 1);
    build(r.graph, change);
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    return r;
}

static uint64_t compiles(const rig *r) { return npu_sim_count(r->sims[0]).calls[NPU_SIM_COMPILE]; }

static void run(rig *r, float *y)
{
    static float x[20];
    fill(x, 20, 3);
    npu_exec *exec = NULL;
    size_t size = 0;
    NPU_CHECK_STATUS(npu_exec_create(&exec, r->program, NULL, &r->diag), NPU_OK);
    npu_spec_size(npu_value_spec(r->graph, npu_graph_input(r->graph, 0)), &size);
    npu_test_input(exec, "x", x, size);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const void *out = npu_exec_output(exec, 0, &size);
    NPU_CHECK(out && size <= LEN * sizeof *y);
    memcpy(y, out, size);
    npu_exec_destroy(exec);
}

/* Bytes of the model as it is. */
static uint64_t save(npu_sim_desc desc, uint8_t *bytes, float *y)
{
    rig r = start(0, desc);
    uint64_t size = 0, room;
    NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
    NPU_CHECK_THAT(compiles(&r) == 2 || desc.refuse, "%u groups were compiled", (unsigned)compiles(&r));
    run(&r, y);
    NPU_CHECK_STATUS(npu_program_save(r.program, NULL, &size), NPU_OK);
    NPU_CHECK(size > 0 && size <= MAX_BYTES);
    room = size - 1;
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &room), NPU_ERR_RANGE);
    NPU_CHECK_EQ(room, size);
    room = MAX_BYTES;
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &room), NPU_OK);
    NPU_CHECK_EQ(room, size);
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_program_save(NULL, bytes, &room), NPU_ERR_INVALID_ARGUMENT);
    rig_end(&r);
    return size;
}

/* Loads into a model; its result is that of the model compiled anew. Returns how many groups were loaded. */
static uint32_t load(int change, npu_sim_desc desc, const void *bytes, uint64_t size, const char *words)
{
    float y[LEN], expected[LEN];
    npu_load_report report;
    memset(y, 0, sizeof y);
    memset(expected, 0, sizeof expected);
    rig r = start(change, desc);
    NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag), NPU_OK);
    NPU_CHECK_EQ(report.num_loaded + report.num_compiled, 2);
    NPU_CHECK_EQ(compiles(&r), report.num_compiled);
    NPU_CHECK_THAT(words ? strstr(report.text, "saved program: ") == report.text && strstr(report.text, words) != NULL
                         : !report.text[0], "'%s', expected '%s'", report.text,
                   words ? words : "");
    run(&r, y);
    rig_unmake(&r);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    run(&r, expected);
    NPU_CHECK_BYTES(y, expected, sizeof y);
    rig_end(&r);
    return report.num_loaded;
}

static void test_second_start(void)
{
    NPU_ITEM("F54");
    static uint8_t bytes[MAX_BYTES];
    float y[LEN];
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    uint64_t size = save(desc, bytes, y);
    NPU_CHECK_EQ(load(0, desc, bytes, size, NULL), 2);
    desc.keeps_weights = true; /* the weights are taken by load, too */
    NPU_CHECK_EQ(load(0, desc, bytes, size, NULL), 2);
}

static void test_stale(void)
{
    NPU_ITEM("F54");
    static uint8_t bytes[MAX_BYTES];
    float y[LEN];
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    uint64_t size = save(desc, bytes, y);
    for (int change = 1; change <= 4; change++) { /* a dim: both groups; a weight, an op, an attribute: one */
        NPU_CHECK_EQ(load(change, desc, bytes, size, "the model or its groups have changed"), change == 1 ? 0 : 1);
    }
    desc.version = "2";
    NPU_CHECK_EQ(load(0, desc, bytes, size, "another device, or another version"), 0);
    desc.version = "1";
    desc.name = "other";
    NPU_CHECK_EQ(load(0, desc, bytes, size, "another device, or another version"), 0);
    desc.name = NULL;
    desc.emulate = npu_ref_backend(); /* other kernels than those saved */
    desc.emulate_all = true;
    NPU_CHECK_EQ(load(0, desc, bytes, size, "sim: the backend refuses what was saved"), 0);
}

/* Two groups on values of rank 4, which lie in a form of the device's own, around an op that it does not take; one value
   goes from group to group in that form. Returns the bytes, or with `loaded` how many groups came from them. */
static uint64_t images(npu_sim_desc desc, uint8_t *bytes, uint64_t size, uint32_t *loaded, float *y)
{
    npu_value none = { 0 };
    float x[2 * 3 * 6 * 6];
    uint64_t room = MAX_BYTES;
    npu_load_report report = { 0 };
    desc.deny = deny_cat;
    desc.num_deny = 1;
    rig r = rig_start(&desc, 1);
    npu_graph *g = r.graph;
    npu_value a = npu_relu(g, npu_conv2d(g, npu_input(g, "x", F32(2, 3, 6, 6)), W(4, 3, 3, 3), none, NULL));
    npu_value both[2] = { a, a }, b = npu_cat(g, both, 2, 1);
    npu_output(g, "y", npu_add(g, a, npu_conv2d(g, b, W(4, 8, 1, 1), none, NULL)));
    NPU_CHECK_STATUS(rig_plan(&r), NPU_OK);
    NPU_CHECK_STATUS(loaded ? npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag)
                            : npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, NULL, &r.diag), NPU_OK);
    fill(x, sizeof x / sizeof *x, 5);
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "y", y, 2 * 4 * 4 * 4 * sizeof *y);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    if (loaded) {
        *loaded = report.num_loaded;
        NPU_CHECK_EQ(report.num_loaded + report.num_compiled, 2);
    } else {
        NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &room), NPU_OK);
    }
    rig_end(&r);
    return room;
}

/* Saved groups keep the forms of their values: loaded by devices with the same forms, those with others, or none. */
static void test_forms_saved(void)
{
    NPU_ITEM("R1.18");
    static uint8_t bytes[MAX_BYTES];
    float want[2 * 4 * 4 * 4], got[2 * 4 * 4 * 4];
    npu_sim_desc modes[3];
    memset(modes, 0, sizeof modes);
    modes[1].pads_channels = true;
    modes[2].pads_channels = modes[2].core_converts = true;
    for (int from = 0; from < 3; from++) {
        uint64_t size = images(modes[from], bytes, 0, NULL, want);
        for (int to = 0; to < 3; to++) {
            uint32_t loaded = 9;
            memset(got, 0, sizeof got);
            images(modes[to], bytes, size, &loaded, got);
            NPU_CHECK_BYTES(got, want, sizeof want);
            NPU_CHECK_THAT(from != to || loaded == 2, "mode %d: %u groups were loaded", from, (unsigned)loaded);
        }
    }
}

/* Every bit flipped, every length cut: never an error, never a wrong result, never read past the end. */
static void damage(const char *refuse)
{
    static uint8_t bytes[MAX_BYTES];
    float y[LEN], again[LEN];
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.refuse = refuse;
    uint64_t size = save(desc, bytes, y);
    rig r = start(0, desc);
    for (uint64_t i = 0; i < size * 8 + size; i++) {
        npu_load_report report;
        bool cuts = i >= size * 8;
        uint64_t length = cuts ? i - size * 8 : size;
        uint8_t *copy = malloc(length + !length); /* its end is the end */
        memcpy(copy, bytes, length);
        if (!cuts) {
            copy[i / 8] ^= (uint8_t)(1u << i % 8);
        }
        NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, copy, length, &report, &r.diag), NPU_OK);
        NPU_CHECK_THAT(report.text[0] && report.num_compiled >= 1 && (!cuts || !(report.num_loaded + report.num_refused)),
                       "bit or length %u: '%s'", (unsigned)i, report.text);
        if (i % 97 == 0) {
            run(&r, again);
            NPU_CHECK_BYTES(again, y, 40 * sizeof *y);
        }
        npu_program_destroy(r.program);
        r.program = NULL;
        free(copy);
    }
    rig_end(&r);
}

static void test_damaged(void)
{
    NPU_ITEM("F54");
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    NPU_CHECK_EQ(load(0, desc, NULL, 0, "no bytes were given"), 0);
    NPU_CHECK_EQ(load(0, desc, "something else, long enough for a head", 38, "no bytes of npu_program_save"), 0);
    damage(NULL);
    damage("aten.relu.default");
}

/* Groups of child graphs that the core runs are saved, too. */
static void test_bodies_saved(void)
{
    static const char text[] = "graph main\n"
        "child yes\ninput a : f32[4,4]\ny = aten.relu.default(a)\noutput y = y\nend\n"
        "child no\ninput a : f32[4,4]\nz = aten.abs.default(a)\ny = aten.neg.default(z)\noutput y = y\nend\n"
        "input c : bool[]\ninput x : f32[4,4]\nv = npu.if(c, [x], then_body=graph 0, else_body=graph 1)\n"
        "y = aten.neg.default(v)\noutput y = y\n";
    static uint8_t bytes[MAX_BYTES];
    uint64_t size = MAX_BYTES;
    npu_load_report report;
    bool condition = false;
    float x[16], y[16];
    rig r = rig_start(NULL, 1);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_EQ(compiles(&r), 3);
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &size), NPU_OK);
    npu_exec_destroy(r.exec);
    npu_program_destroy(r.program);
    NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag), NPU_OK);
    NPU_CHECK(report.num_loaded == 3 && report.num_compiled == 0 && !report.text[0]);
    NPU_CHECK_EQ(compiles(&r), 3);
    NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, NULL, &r.diag), NPU_OK);
    fill(x, 16, 1);
    npu_exec_set_input(r.exec, &(npu_array){ "c", npu_spec_tensor(NPU_BOOL, 0, NULL), &condition });
    npu_exec_set_input(r.exec, &(npu_array){ "x", F32(4, 4), x });
    npu_exec_set_output(r.exec, "y", y, sizeof y);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (int i = 0; i < 16; i++) {
        NPU_CHECK_EQ(y[i], x[i] < 0 ? -x[i] : x[i]);
    }
    rig_end(&r);
}

/* A backend of its own: the CPU, whose programs are "saved" as a word. */
static struct { int compiles, loads; bool lies, blames; npu_status fails, refuses; } custom;

/* With `refuses` no group with a relu. */
static npu_status custom_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    custom.compiles++;
    for (uint32_t i = 0; i < group->num_ops && custom.refuses; i++) {
        if (group->ops[i]->info->kind == NPU_ATEN_RELU) {
            out->failed_op = custom.blames ? group->ops[i]->info->op : 0;
            strcpy(out->text, "no relu here");
            return custom.refuses;
        }
    }
    return npu_ref_backend()->compile(ctx, group, out);
}

static npu_status custom_save(void *ctx, void *program, void *bytes, uint64_t *size)
{
    (void)ctx, (void)program;
    uint64_t needed = bytes && custom.lies ? 1000 : 5;
    if (bytes && *size >= 5) {
        memcpy(bytes, "hello", 5);
    }
    *size = needed;
    return custom.fails;
}

static npu_status custom_load(void *ctx, const npu_group *group, const void *bytes, uint64_t size, npu_compiled *out)
{
    custom.loads++;
    bool right = size == 5 && memcmp(bytes, "hello", 5) == 0;
    return right ? npu_ref_backend()->compile(ctx, group, out) : NPU_ERR_BACKEND;
}

static void test_custom_backend(void)
{
    NPU_ITEM("F54");
    npu_backend b = *npu_ref_backend();
    static uint8_t bytes[MAX_BYTES];
    uint64_t size = sizeof bytes;
    npu_load_report report;
    b.name = "custom";
    b.compile = custom_compile;
    b.save = custom_save;
    b.load = custom_load;
    memset(&custom, 0, sizeof custom);
    rig r = rig_start(NULL, 0);
    r.backends[0] = &b;
    build(r.graph, 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &size), NPU_OK);
    NPU_CHECK_EQ(custom.compiles, 1);
    custom.lies = true;
    uint64_t room = sizeof bytes;
    NPU_CHECK_STATUS(npu_program_save(r.program, bytes + size, &(uint64_t){ room - size }), NPU_ERR_BACKEND);
    custom.fails = NPU_ERR_NO_MEMORY;
    NPU_CHECK_STATUS(npu_program_save(r.program, NULL, &room), NPU_ERR_NO_MEMORY);
    custom.fails = NPU_ERR_UNSUPPORTED; /* nothing to save is a context without rows */
    NPU_CHECK_STATUS(npu_program_save(r.program, NULL, &room), NPU_OK);
    npu_exec_destroy(r.exec);
    npu_program_destroy(r.program);
    r.exec = NULL;
    r.program = NULL;
    NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag), NPU_OK);
    NPU_CHECK(custom.compiles == 1 && custom.loads == 1 && report.num_loaded == 1 && !report.text[0]);
    float y[LEN];
    run(&r, y);
    npu_program_destroy(r.program);
    b.load = NULL; /* half of the pair is none of it */
    NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag), NPU_OK);
    NPU_CHECK(custom.compiles == 2 && report.num_loaded == 0 && report.num_compiled == 0);
    NPU_CHECK_STATUS(npu_program_load(NULL, r.plan, bytes, size, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    rig_end(&r);
}

/* A chain whose third op of eight is refused, on a backend before the CPU. */
static void start_refusal(rig *r, npu_backend *b, uint32_t max_compiles)
{
    *r = rig_start(NULL, 0);
    *b = *npu_ref_backend();
    b->name = "custom";
    b->compile = custom_compile;
    b->save = custom_save;
    b->load = custom_load;
    r->backends[0] = b;
    r->backends[1] = npu_ref_backend();
    r->desc.num_backends = 2;
    r->desc.max_compiles = max_compiles;
    npu_value v = npu_input(r->graph, "x", F32(4, 5));
    for (int i = 0; i < 8; i++) {
        v = i == 2 ? npu_relu(r->graph, v) : i % 2 ? npu_neg(r->graph, v) : npu_abs(r->graph, v);
    }
    npu_output(r->graph, "y", v);
    NPU_CHECK_STATUS(rig_plan(r), NPU_OK);
}

/* What a compiler can never take is not offered to it again; a failure of the day is. The plan is that of the first
   start, reasons and words, too, and a third start's. */
static void test_refusals_saved(void)
{
    NPU_ITEM("F54");
    static const struct { bool blames; uint32_t max_compiles; npu_status refuses; bool is_kept; } rows[] = {
        { true, 0, NPU_ERR_NOT_IMPLEMENTED, true }, { false, 0, NPU_ERR_UNSUPPORTED, true },
        { false, 1, NPU_ERR_NOT_IMPLEMENTED, true }, { true, 0, NPU_ERR_BACKEND, false },
        { true, 0, NPU_ERR_TIMEOUT, false }
    };
    static uint8_t bytes[MAX_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        npu_text first = npu_text_init(NULL), next = npu_text_init(NULL);
        npu_backend b;
        rig r;
        uint64_t size = sizeof bytes;
        memset(&custom, 0, sizeof custom);
        custom.blames = rows[i].blames;
        custom.refuses = rows[i].refuses;
        start_refusal(&r, &b, rows[i].max_compiles);
        NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
        npu_plan_print_ops(npu_program_plan(r.program), &first);
        NPU_CHECK_THAT(strstr(first.data, "no relu here"), "row %u: %s", (unsigned)i, first.data);
        NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &size), NPU_OK);
        for (int start = 2; start < 4; start++) {
            npu_load_report report;
            npu_program_destroy(r.program);
            custom.compiles = custom.loads = 0;
            NPU_CHECK_STATUS(npu_program_load(&r.program, r.plan, bytes, size, &report, &r.diag), NPU_OK);
            NPU_CHECK_THAT((custom.compiles == 0) == rows[i].is_kept && !report.text[0] == rows[i].is_kept,
                           "row %u, start %d: %d compiles, '%s'", (unsigned)i, start, custom.compiles, report.text);
            NPU_CHECK_EQ(report.num_refused, rows[i].is_kept);
            NPU_CHECK_EQ(report.num_loaded, custom.loads);
            next.len = 0;
            npu_plan_print_ops(npu_program_plan(r.program), &next);
            NPU_CHECK_STR(next.data, first.data);
            size = sizeof bytes;
            NPU_CHECK_STATUS(npu_program_save(r.program, bytes, &size), NPU_OK);
        }
        npu_text_free(&first);
        npu_text_free(&next);
        rig_end(&r);
    }
}

int main(void)
{
    NPU_RUN(test_second_start);
    NPU_RUN(test_stale);
    NPU_RUN(test_forms_saved);
    NPU_RUN(test_damaged);
    NPU_RUN(test_bodies_saved);
    NPU_RUN(test_custom_backend);
    NPU_RUN(test_refusals_saved);
    return npu_test_done();
}
