/* The backend interface, on the simulated accelerator of examples/sim: what it takes, what it computes, what
   crosses to it and how often, and what happens when it fails, hangs or lies. */
#define NPU_SIM_IMPLEMENTATION
#include "../examples/sim/npu_sim.h"
#include "../npu_ir_backend_ref.h"
#include "buffers.h"
#include <signal.h>
#include <sys/wait.h>

/* ---- a graph on backends ------------------------------------------------------------------------------- */

typedef struct rig {
    npu_sim *sim;
    const npu_backend *backends[2]; /* the accelerator, the CPU */
    npu_graph *graph;
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
    npu_diag diag;
} rig;

static rig rig_start(const npu_sim_desc *desc)
{
    rig r;
    memset(&r, 0, sizeof r);
    NPU_CHECK_STATUS(npu_sim_create(&r.sim, desc), NPU_OK);
    r.backends[0] = npu_sim_backend(r.sim);
    r.backends[1] = npu_ref_backend();
    r.graph = npu_graph_create(NULL);
    return r;
}

static npu_status rig_plan(rig *r)
{
    npu_plan_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backends = r->backends;
    desc.num_backends = 2;
    desc.max_compiles = 1; /* a refused group goes as a whole */
    return npu_plan_create(&r->plan, r->graph, &desc, &r->diag);
}

/* Plan, program, exec. */
static npu_status rig_make(rig *r, uint64_t timeout_ns)
{
    npu_exec_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.timeout_ns = timeout_ns;
    npu_status status = rig_plan(r);
    status = status ? status : npu_program_create(&r->program, r->plan, &r->diag);
    return status ? status : npu_exec_create(&r->exec, r->program, &desc, &r->diag);
}

static void rig_unmake(rig *r)
{
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
    npu_plan_destroy(r->plan);
    r->exec = NULL;
    r->program = NULL;
    r->plan = NULL;
}

static void rig_end(rig *r)
{
    rig_unmake(r);
    npu_sim_counters c = npu_sim_count(r->sim);
    NPU_CHECK_EQ(c.live_buffers, 0);
    NPU_CHECK_EQ(c.live_bytes, 0);
    NPU_CHECK_EQ(c.live_programs, 0);
    npu_graph_destroy(r->graph);
    npu_sim_destroy(r->sim);
}

/* Numbers between -2 and 2, the same in every run, no two alike for a while. */
static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((i * 2654435761u + seed * 40503u) % 4001u) / 1000.0f - 2.0f;
    }
}

static npu_value weights(npu_graph *g, uint32_t rank, const int64_t *dims)
{
    static float data[4096];
    npu_spec spec = npu_spec_tensor(NPU_F32, rank, dims);
    size_t n = 0;
    npu_spec_len(&spec, &n);
    fill(data, n, 7 + rank);
    return npu_constant(g, NULL, spec, data);
}

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }
#define NUM(...) (uint32_t)(sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))
#define W(...) weights(g, NUM(__VA_ARGS__), DIMS(__VA_ARGS__))

/* The example of the partitioning document: [conv relu matmul add relu2] npu, [concat] cpu, [softmax] npu. */
static void build_example(npu_graph *g)
{
    npu_value none = { 0 };
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 4, DIMS(1, 3, 8, 8)));
    npu_value y = npu_relu(g, npu_conv2d(g, x, W(4, 3, 3, 3), none, NULL));
    y = npu_relu(g, npu_add(g, npu_matmul(g, y, W(6, 5)), W(5)));
    npu_value_set_name(g, y, "relu2_output");
    npu_value both[2] = { y, y };
    npu_value joined = npu_cat(g, both, 2, 1);
    npu_value_set_name(g, joined, "concat_output");
    npu_output(g, "y", npu_softmax(g, joined, -1));
}

enum { EXAMPLE_IN = 1 * 3 * 8 * 8, EXAMPLE_OUT = 1 * 8 * 6 * 5 };
static const char *const deny_cat[] = { "aten.cat.default" };

static char wrong_at[80]; /* the first that run_example found */

/* One run of the example: x filled from seed, y compared with the CPU's. */
static npu_status run_example(rig *r, uint32_t seed, bool *right)
{
    float x[EXAMPLE_IN], y[EXAMPLE_OUT], expected[EXAMPLE_OUT];
    npu_exec *cpu = NULL;
    fill(x, EXAMPLE_IN, seed);
    memset(y, 0, sizeof y);
    NPU_CHECK_STATUS(npu_exec_create_simple(&cpu, r->graph, &r->backends[1], 1, NULL), NPU_OK);
    npu_test_input(cpu, "x", x, sizeof x);
    npu_exec_set_output(cpu, "y", expected, sizeof expected);
    NPU_CHECK_STATUS(npu_exec_run(cpu), NPU_OK);
    npu_exec_destroy(cpu);
    NPU_CHECK_STATUS(npu_test_input(r->exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r->exec, "y", y, sizeof y), NPU_OK);
    npu_status status = npu_exec_run(r->exec);
    *right = true;
    for (int i = EXAMPLE_OUT; i-- > 0;) {
        if (!(fabs((double)y[i] - (double)expected[i]) < 1e-5)) {
            *right = false;
            snprintf(wrong_at, sizeof wrong_at, "y[%d] is %.9g, expected %.9g", i, (double)y[i], (double)expected[i]);
        }
    }
    return status;
}

static rig example_start(const npu_sim_desc *from)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc = from ? *from : desc;
    desc.deny = deny_cat;
    desc.num_deny = 1;
    rig r = rig_start(&desc);
    build_example(r.graph);
    NPU_CHECK_STATUS(npu_graph_status(r.graph), NPU_OK);
    return r;
}

/* ---- the interface ------------------------------------------------------------------------------------- */

static void test_check(void)
{
    rig r = rig_start(NULL);
    npu_diag diag;
    NPU_ITEM("R1.17");
    memset(&diag, 0, sizeof diag);
    NPU_CHECK_STATUS(npu_backend_check(r.backends[0], NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_backend_check(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_backend b;
#define WITHOUT(slot, words) do { \
        b = *r.backends[0]; \
        b.slot = 0; \
        memset(&diag, 0, sizeof diag); \
        NPU_CHECK_STATUS(npu_backend_check(&b, &diag), NPU_ERR_INVALID_ARGUMENT); \
        NPU_CHECK_THAT(strstr(diag.message, words), "without " #slot ": %s", diag.message); \
    } while (0)
    WITHOUT(name, "name");
    WITHOUT(supports, "supports");
    WITHOUT(alloc, "alloc");
    WITHOUT(free, "free");
    WITHOUT(upload, "upload");
    WITHOUT(download, "download");
    WITHOUT(compile, "compile");
    WITHOUT(submit, "submit");
    WITHOUT(release, "release");
    WITHOUT(regions, "region");
    WITHOUT(num_regions, "region");
#undef WITHOUT
    npu_region region = r.backends[0]->regions[0];
    region.alignment = 48;
    b = *r.backends[0];
    b.regions = &region;
    NPU_CHECK_STATUS(npu_backend_check(&b, NULL), NPU_ERR_INVALID_ARGUMENT);
    rig_end(&r);
}

/* What another version of the header made: refused with what came, what is needed and what to do. */
static void test_versions(void)
{
    static const struct { uint32_t api, less, more; npu_status status; const char *words; } rows[] = {
        { NPU_BACKEND_API, 0, 0, NPU_OK, "" },
        { NPU_BACKEND_API, 0, 64, NPU_OK, "" },
        { 1, 0, 0, NPU_ERR_VERSION, "API 1, but 2 is needed: compile it anew" },
        { 0, 0, 0, NPU_ERR_VERSION, "API 0, but 2 is needed: zero the struct, then set size" },
        { 3, 0, 64, NPU_ERR_VERSION, "API 3, but this core has 2: compile the core" },
        { NPU_BACKEND_API, sizeof(npu_backend) - offsetof(npu_backend, op_call), 0, NPU_ERR_VERSION,
          "set it to sizeof(npu_backend)" },
        { NPU_BACKEND_API, sizeof(npu_backend), 0, NPU_ERR_VERSION, "set it to sizeof(npu_backend)" },
    };
    static const npu_abi_row abi_rows[] = { { NPU_AICF_ADD, 0, 0, "" } };
    NPU_ITEM("F31");
    rig r = rig_start(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct { npu_backend backend; char tail[64]; } b = { *r.backends[0], "" };
        npu_diag diag = { 0 };
        b.backend.api_version = rows[i].api;
        b.backend.size = (uint32_t)sizeof b.backend - rows[i].less + rows[i].more;
        NPU_CHECK_STATUS(npu_backend_check(&b.backend, &diag), rows[i].status);
        NPU_CHECK(strstr(diag.message, rows[i].words));
    }
    npu_backend b;
    npu_diag diag = { 0 };
    memset(&b, 0xcc, sizeof b); /* not zeroed: its name is no address */
    NPU_CHECK_STATUS(npu_backend_check(&b, &diag), NPU_ERR_VERSION);
    NPU_CHECK(strstr(diag.message, "API 3435973836, but 2 is needed: zero the struct"));
    b = *r.backends[0];
    npu_region regions[2] = { b.regions[0], b.regions[0] };
    npu_abi abi = NPU_ABI(abi_rows);
    b.regions = regions;
    b.num_regions = 2;
    b.abi = &abi;
    NPU_CHECK_STATUS(npu_backend_check(&b, NULL), NPU_OK);
    regions[1].size = 8;
    NPU_CHECK_STATUS(npu_backend_check(&b, NULL), NPU_ERR_VERSION);
    regions[0].size = regions[1].size = 0;
    NPU_CHECK_STATUS(npu_backend_check(&b, NULL), NPU_ERR_VERSION);
    regions[0] = regions[1] = r.backends[0]->regions[0];
    abi.row_size = 0;
    NPU_CHECK_STATUS(npu_backend_check(&b, NULL), NPU_ERR_VERSION);
    rig_end(&r);
}

/* ---- what compile may not say: the CPU, with one lie at a time ---- */

static struct {
    int lie;
    npu_inplace pair;
    npu_scratch scratch[2];
    uint32_t weight;
    const char *variants[8];
} liar;

static void lying_scratch(const npu_group *group, npu_compiled *out, int lie)
{
    npu_scratch *s = liar.scratch;
    for (uint32_t i = 0; i < 2; i++) {
        npu_scratch right = { sizeof right, i, 64, 0, 100, 0 };
        s[i] = right;
    }
    switch (lie) {
    case 0: s[1].op = group->num_ops; break;
    case 1: s[1].op = 0; break;
    case 2: s[0].alignment = 3; break;
    case 3: s[1].bytes = UINT64_MAX; break;
    case 4: s[0].worker_bytes = UINT64_MAX; break;
    default: s[1].size = 8; break;
    }
    out->scratches = s;
    out->num_scratches = 2;
}

static npu_status lying_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_status status = npu_ref_backend()->compile(ctx, group, out);
    npu_inplace *pair = &liar.pair;
    memset(pair, 0, sizeof *pair);
    pair->size = sizeof *pair;
    switch (liar.lie) {
    case 0: pair->op = 99, out->views = pair, out->num_views = 1; break;
    case 1: pair->operand = 77, out->views = pair, out->num_views = 1; break;
    case 2: pair->result = 99, out->views = pair, out->num_views = 1; break;
    case 3: pair->op = 1, pair->size = 4, out->views = pair, out->num_views = 1; break;
    case 4: pair->op = group->num_ops - 1, out->views = pair, out->num_views = 1; break; /* makes an output */
    case 5: out->views = NULL, out->num_views = 3; break;
    case 6: pair->op = 99, out->inplace = pair, out->num_inplace = 1; break;
    case 7: pair->operand = 77, out->inplace = pair, out->num_inplace = 1; break;
    case 8: pair->result = 99, out->inplace = pair, out->num_inplace = 1; break;
    case 9: out->inplace = NULL, out->num_inplace = 3; break;
    case 10: liar.weight = 99, out->own_weights = &liar.weight, out->num_own_weights = 1; break;
    case 11: liar.weight = 0, out->own_weights = &liar.weight, out->num_own_weights = 1; break; /* an input */
    case 12: out->own_weights = NULL, out->num_own_weights = 3; break;
    case 13: out->scratch_alignment = 3; break;
    case 14: out->scratch_alignment = 0x80000000u; break;
    case 15: out->scratch = UINT64_MAX; break;
    case 16: out->prepared = UINT64_MAX; break;
    case 17: out->plans_inner = 77; break;
    case 18: out->num_forms = 1; break;
    case 19: out->scratches = NULL, out->num_scratches = 1; break;
    case 21: case 22: case 23: case 24: case 25: case 26: lying_scratch(group, out, liar.lie - 21); break;
    case 20: memset(out->text, 'x', sizeof out->text), status = NPU_ERR_BACKEND; break;
    default: break;
    }
    return status;
}

/* Each is a status with words that name the backend and what came; nothing of it is used. */
static void test_answers(void)
{
    static const struct { npu_status status; const char *words; } rows[] = {
        { NPU_ERR_BACKEND, "liar: compile gave views[0] = {size 16, op 99, operand 0, result 0}: the group has" },
        { NPU_ERR_BACKEND, "operand 77, result 0}: aten.matmul.default" },
        { NPU_ERR_BACKEND, "operand 0, result 99}: aten.matmul.default" },
        { NPU_ERR_BACKEND, "1 views, but their size is 4" },
        { NPU_ERR_BACKEND, "operand 0, result 0}: aten.add.Tensor has no such" },
        { NPU_ERR_BACKEND, "3 views, but no array" },
        { NPU_ERR_BACKEND, "inplace[0] = {size 16, op 99" },
        { NPU_ERR_BACKEND, "operand 77, result 0}: aten.matmul.default" },
        { NPU_ERR_BACKEND, "operand 0, result 99}: aten.matmul.default" },
        { NPU_ERR_BACKEND, "3 inplace, but no array" },
        { NPU_ERR_BACKEND, "own_weights[0] = 99" },
        { NPU_ERR_BACKEND, "own_weights[0] = 0" },
        { NPU_ERR_BACKEND, "own_weights[0] = 4294967295" },
        { NPU_ERR_BACKEND, "scratch_alignment 3 " },
        { NPU_ERR_BACKEND, "scratch_alignment 2147483648 " },
        { NPU_ERR_BACKEND, "scratch 18446744073709551615" },
        { NPU_ERR_BACKEND, "prepared 18446744073709551615" },
        { NPU_ERR_BACKEND, "plans_inner 77" },
        { NPU_ERR_BACKEND, "1 forms, but no array" },
        { NPU_ERR_BACKEND, "1 scratches, but no array" },
        { NPU_ERR_BACKEND, "step 0 on liar: compile failed: xxxx" },
        { NPU_ERR_BACKEND, "scratches[1] = {size 32, op 4, alignment 64, bytes 100, worker_bytes 0}: the group has fewer" },
        { NPU_ERR_BACKEND, "ops must rise" },
        { NPU_ERR_BACKEND, "scratches[0] = {size 32, op 0, alignment 3," },
        { NPU_ERR_BACKEND, "bytes 18446744073709551615" },
        { NPU_ERR_BACKEND, "worker_bytes 18446744073709551615" },
        { NPU_ERR_BACKEND, "scratches[1] = {size 8" },
        { NPU_OK, "" },
    };
    static const float w[16] = { 1, 2, 3 };
    NPU_ITEM("F7");
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(4, 4)));
    npu_value y = npu_matmul(g, x, npu_constant(g, "w", npu_spec_tensor(NPU_F32, 2, DIMS(4, 4)), w));
    npu_output(g, "y", npu_add(g, npu_relu(g, npu_sigmoid(g, y)), x));
    npu_backend b = *npu_ref_backend();
    const npu_backend *backends = &b;
    b.name = "liar";
    b.compile = lying_compile;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_exec *exec = NULL;
        npu_diag diag = { 0 };
        liar.lie = (int)i;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backends, 1, &diag), rows[i].status);
        NPU_CHECK(strstr(diag.message, rows[i].words));
        if (!strstr(diag.message, rows[i].words)) {
            fprintf(stderr, "%s\n", diag.message);
        }
        npu_exec_destroy(exec);
    }
    npu_graph_destroy(g);
}

/* A buffer that is not what was asked for is no buffer. */
static int alloc_lie;

static npu_status lying_alloc(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    npu_status status = npu_ref_backend()->alloc(ctx, a, out);
    out->bytes = alloc_lie == 1 ? 1 : out->bytes;
    out->region = alloc_lie == 2 ? 99 : out->region;
    return status;
}

static void test_buffers_that_lie(void)
{
    NPU_ITEM("F7");
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(4, 4)));
    npu_output(g, "y", npu_add(g, npu_relu(g, npu_sigmoid(g, x)), x));
    npu_backend b = *npu_ref_backend();
    const npu_backend *backends = &b;
    b.alloc = lying_alloc;
    for (alloc_lie = 0; alloc_lie < 3; alloc_lie++) {
        npu_exec *exec = NULL;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backends, 1, NULL), alloc_lie ? NPU_ERR_BACKEND : NPU_OK);
        npu_exec_destroy(exec);
    }
    npu_graph_destroy(g);
}

/* ---- which op failed: always its id in the graph ---- */

static uint32_t blamed;

static npu_status blaming_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    (void)ctx, (void)program, (void)fence;
    *binding->failed_op = blamed;
    memset(binding->failed_text, 'x', (size_t)binding->failed_text_size); /* without an end */
    return NPU_ERR_RANGE;
}

static npu_status blaming_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    (void)ctx, (void)group;
    out->failed_op = blamed;
    snprintf(out->text, sizeof out->text, "too long");
    return NPU_ERR_UNSUPPORTED;
}

static void test_failed_op(void)
{
    static const struct { uint32_t said, taken; } rows[] = { { 2, 2 }, { 3, 3 }, { 0, 0 }, { 4, 0 }, { 999999, 0 } };
    NPU_ITEM("F39");
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(4, 4)));
    npu_output(g, "y", npu_tanh(g, npu_sigmoid(g, npu_relu(g, x))));
    npu_backend b = *npu_ref_backend();
    const npu_backend *backends = &b;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_exec *exec = NULL;
        float in[16] = { 0 };
        npu_diag diag = { 0 };
        blamed = rows[i].said;
        b.submit = blaming_submit;
        b.compile = npu_ref_backend()->compile;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backends, 1, NULL), NPU_OK);
        npu_test_input(exec, "x", in, sizeof in);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_ERR_RANGE);
        NPU_CHECK_EQ(npu_exec_diag(exec)->op, rows[i].taken);
        NPU_CHECK_EQ(strstr(npu_exec_diag(exec)->message, "aten.") != NULL, rows[i].taken != 0);
        NPU_CHECK(strstr(npu_exec_diag(exec)->message, "index or number out of range: xxx"));
        NPU_CHECK_EQ(strstr(npu_exec_diag(exec)->message, " (self ") != NULL, rows[i].taken != 0);
        npu_exec_destroy(exec);
        b.compile = blaming_compile;
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backends, 1, &diag), NPU_ERR_UNSUPPORTED);
        NPU_CHECK_EQ(diag.op, rows[i].taken);
    }
    npu_graph_destroy(g);
}

/* ---- create functions without a parameter for it say why they fail in their desc ---- */

static void test_creates_say_why(void)
{
    npu_diag diag;
    npu_parallel *threads = NULL;
    npu_backend *b = NULL;
    NPU_ITEM("F39");
#define SAYS(call, result, words) do { \
        memset(&diag, 0xaa, sizeof diag); \
        NPU_CHECK((call) == (result)); \
        NPU_CHECK(strstr(diag.message, words)); \
    } while (0)
    SAYS(npu_graph_create(&(npu_graph_desc){ .diag = &diag, .level = 99 }), NULL, "level");
    SAYS(npu_model_create(&(npu_model_desc){ .graph = &(npu_graph_desc){ .diag = &diag }, .dialect = 99 }), NULL, "dialect");
    SAYS(npu_threads_create(&threads, &(npu_threads_desc){ .diag = &diag }), NPU_ERR_INVALID_ARGUMENT, "width 0");
    SAYS(npu_threads_create(&threads, &(npu_threads_desc){ .diag = &diag, .width = 2, .spin_ns = 1000000001 }),
         NPU_ERR_INVALID_ARGUMENT, "spin_ns 1000000001, expected at most a second");
    SAYS(npu_ref_create(&b, &(npu_ref_desc){ .diag = &diag, .tables = &(npu_kernel_table){ NULL, 0, 1 },
                                             .num_tables = 1 }), NPU_ERR_VERSION, "NPU_KERNEL_TABLE");
    SAYS(npu_accel_create(&b, &(npu_accel){ .diag = &diag }, NULL), NPU_ERR_VERSION, "sizeof(npu_accel)");
    SAYS(npu_accel_create(&b, &(npu_accel){ .size = sizeof(npu_accel), .name = "n", .diag = &diag }, NULL),
         NPU_ERR_INVALID_ARGUMENT, "accel n: alloc is missing");
#undef SAYS
}

/* A desc that was never zeroed is found by its canary, and nothing else of it is read: not its diag, not its allocator. */
static void test_dirty_descs(void)
{
    npu_parallel *threads = NULL;
    npu_backend *b = NULL;
    npu_program_cache *cache = NULL;
    npu_graph_desc graph;
    npu_model_desc model = { .graph = &graph };
    npu_threads_desc pool;
    npu_ref_desc ref;
    npu_program_cache_desc programs;
    NPU_ITEM("F39");
    memset(&graph, 0x55, sizeof graph);
    memset(&pool, 0x55, sizeof pool);
    memset(&ref, 0x55, sizeof ref);
    memset(&programs, 0x55, sizeof programs);
    NPU_CHECK(npu_graph_create(&graph) == NULL && npu_model_create(&model) == NULL);
    memset(&model, 0x55, sizeof model);
    NPU_CHECK(npu_model_create(&model) == NULL);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &pool), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_ref_create(&b, &ref), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, &programs), NPU_ERR_INVALID_ARGUMENT);
}

/* Rows are looked for by halves: those of the library are in order, and of a table that is not the row is named. */
static void test_order_of_kernels(void)
{
    uint32_t num;
    const npu_kernel_table *built_in = npu_ref_kernels(&num);
    static const npu_kernel mixed[] = {
        { .kind = NPU_ATEN_RELU }, { .kind = NPU_ATEN_EXP }, { .kind = NPU_ATEN_GELU }
    };
    const npu_kernel_table table = NPU_KERNEL_TABLE(mixed);
    npu_diag diag = { 0 };
    npu_backend *b = NULL;
    char words[64];
    npu_ref_desc all = { .tables = built_in, .num_tables = num, .diag = &diag };
    NPU_CHECK_THAT(npu_ref_create(&b, &all) == NPU_OK, "%s", diag.message);
    npu_ref_destroy(b);
    b = NULL;
    NPU_CHECK_STATUS(npu_ref_create(&b, &(npu_ref_desc){ .tables = &table, .num_tables = 1, .diag = &diag }),
                     NPU_ERR_INVALID_ARGUMENT);
    snprintf(words, sizeof words, "row 2, kind 0x%08x", (unsigned)NPU_ATEN_GELU);
    NPU_CHECK_THAT(!b && strstr(diag.message, words), "%s", diag.message);
}

/* ---- the stream of a run reaches every slot, and the variant of a kernel comes back ---- */

static struct { uint64_t current, seen[4]; } streams;

static uint64_t stream_now(void *ctx) { (void)ctx; return streams.current; }

static npu_status stream_alloc(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    streams.seen[0] = a->stream;
    return npu_ref_backend()->alloc(ctx, a, out);
}

static npu_status stream_upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    streams.seen[1] = t->stream;
    return npu_ref_backend()->upload(ctx, t, fence);
}

static npu_status stream_download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    streams.seen[2] = t->stream;
    return npu_ref_backend()->download(ctx, t, fence);
}

static npu_status stream_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    streams.seen[3] = binding->stream;
    return npu_ref_backend()->submit(ctx, program, binding, fence);
}

static void test_streams(void)
{
    NPU_ITEM("F26");
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, DIMS(4)));
    npu_value y = npu_relu(g, x);
    npu_output(g, "y", y);
    npu_backend b = *npu_ref_backend();
    const npu_backend *backends = &b;
    npu_exec *exec = NULL;
    float in[4] = { 1, -1, 2, -2 }, out[4];
    b.traits = 0; /* a device: everything goes through the slots */
    b.stream = stream_now;
    b.alloc = stream_alloc;
    b.upload = stream_upload;
    b.download = stream_download;
    b.submit = stream_submit;
    streams.current = 5;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backends, 1, NULL), NPU_OK);
    NPU_CHECK_EQ(streams.seen[0], 5);
    npu_test_input(exec, "x", in, sizeof in);
    npu_exec_set_output(exec, "y", out, sizeof out);
    for (streams.current = 6; streams.current < 8; streams.current++) { /* each run has its own */
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        for (int i = 1; i < 4; i++) {
            NPU_CHECK_EQ(streams.seen[i], streams.current);
        }
    }
    NPU_CHECK(npu_program_op_variant(npu_exec_program(exec), npu_value_producer(g, y, NULL)) != NULL);
    NPU_CHECK(npu_program_op_variant(npu_exec_program(exec), (npu_op){ 99 }) == NULL);
    NPU_CHECK(npu_program_op_variant(NULL, (npu_op){ 1 }) == NULL);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_optional_slots(void)
{
    rig r = example_start(NULL);
    npu_backend b = *r.backends[0];
    bool right;
    b.copy = NULL;
    b.place = NULL;
    b.wait = NULL;
    b.poll = NULL;
    b.op_call = NULL;
    r.backends[0] = &b;
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
    NPU_CHECK_THAT(right, "%s", wrong_at);
    rig_end(&r);
}

static bool in_table(const char *name)
{
    for (uint32_t i = 0; npu_sim_op_name(i); i++) {
        if (strcmp(npu_sim_op_name(i), name) == 0) {
            return true;
        }
    }
    return false;
}

/* The support table is the kernel table: at least 50 names, and no name outside it. */
static void test_support_table(void)
{
    NPU_ITEM("S1.7");
    NPU_ITEM("S1.8");
    rig r = rig_start(NULL);
    const npu_registry *registry = npu_graph_registry(r.graph);
    uint32_t names = 0, found = 0;
    while (npu_sim_op_name(names)) {
        NPU_CHECK(npu_backend_supports(r.backends[0], registry, npu_sim_op_name(names)));
        names++;
    }
    NPU_CHECK(names >= 50);
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const char *name = npu_registry_op(registry, i)->name;
        NPU_CHECK_EQ(npu_backend_supports(r.backends[0], registry, name), in_table(name));
        found += in_table(name);
    }
    NPU_CHECK_EQ(found, names); /* every name is an op */
    NPU_CHECK(!npu_backend_supports(r.backends[0], registry, "aten.no_such_op"));
    NPU_CHECK(npu_backend_supports(r.backends[1], registry, "aten.gather"));
    rig_end(&r);
}

/* What only renames a tensor counts as supported, runs where its neighbours run, and costs no call of a kernel. */
static void test_free_ops(void)
{
    static const char *const free_ops[] = {
        "aten.reshape", "aten.view", "aten.flatten", "aten.contiguous", "aten.unsqueeze", "aten.alias", "aten.detach_",
        "aten.to.dtype", "aten.dropout", "<built-in function getitem>", "aten._assert_tensor_metadata",
        "aten.detach", "aten.squeeze",
    };
    static const char text[] =
        "graph m\ninput x : f32[2,3]\na = aten.relu.default(x)\nb = aten.reshape(a, [3, 2])\nc = aten.view(b, [6])\n"
        "d = aten.flatten.using_ints(c)\ne = aten.contiguous(d)\nf = aten.unsqueeze(e, 0)\ng = aten.alias(f)\n"
        "h = aten.detach_(g)\ni = aten.to.dtype(h, f32)\nj = aten.dropout(i, 0.5, false)\nk = npu.getitem([j])\n"
        "aten._assert_tensor_metadata(k, [1, 6], dtype=f32)\ny = aten.neg.default(k)\noutput y = y\n";
    static const float x[] = { -1, 2, -3, 4, -5, 6 };
    float y[6] = { 0 };
    rig r = rig_start(NULL);
    NPU_ITEM("S1.9");
    NPU_ITEM("F28");
    for (size_t i = 0; i < sizeof free_ops / sizeof free_ops[0]; i++) {
        if (!npu_backend_supports(r.backends[0], npu_graph_registry(r.graph), free_ops[i])) {
            NPU_CHECK_STR(free_ops[i], "supported");
        }
    }
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, NULL, &r.diag), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    for (uint32_t op = 1; op <= npu_graph_num_ops(r.graph); op++) {
        NPU_CHECK_EQ(npu_plan_op_backend(r.plan, (npu_op){ op }, NULL, NULL), 0);
    }
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_EQ(npu_sim_count(r.sim).ops, 3); /* relu, neg, and the cast, which may change a dtype */
    for (int i = 0; i < 6; i++) {
        NPU_CHECK_NEAR(y[i], x[i] > 0 ? -x[i] : 0, 0);
    }
    rig_end(&r);
}

/* Layers are the ops that a backend lists: one with aten.linear gets linear layers, one with the kinds of a device gets
   them where the model is of that dialect. */
static void test_layers_of_a_backend(void)
{
    static const char *const aten[] = { "aten.linear.default" }, *const aicf[] = { "aicf.gemm", "aicf.bias_add" };
    NPU_ITEM("F36");
    for (uint32_t dialect = NPU_DIALECT_ATEN; dialect <= NPU_DIALECT_AICF; dialect++) {
        for (uint32_t listed = NPU_DIALECT_ATEN; listed <= NPU_DIALECT_AICF; listed++) {
            npu_sim_desc desc = { .allow = listed ? aicf : aten, .num_allow = listed ? 2 : 1 };
            rig r = rig_start(&desc);
            npu_model *m = npu_model_create(&(npu_model_desc){ .dialect = (npu_dialect)dialect });
            npu_layer_linear fc = npu_layer_linear_init("fc", 3, 4);
            npu_value y = npu_model_add(m, &fc.base, npu_model_input(m, "x", npu_spec_tensor(NPU_F32, 2, DIMS(2, 3))));
            npu_plan_desc plan_desc = { .backends = r.backends, .num_backends = 2 };
            npu_plan *plan = NULL;
            npu_model_output(m, "y", y);
            NPU_CHECK_EQ(npu_graph_num_ops(npu_model_graph(m)), dialect ? 2 : 1);
            NPU_CHECK_STATUS(npu_plan_create(&plan, npu_model_graph(m), &plan_desc, NULL), NPU_OK);
            for (uint32_t op = 1; op <= npu_graph_num_ops(npu_model_graph(m)); op++) {
                NPU_CHECK_EQ(npu_plan_op_backend(plan, (npu_op){ op }, NULL, NULL), dialect == listed ? 0 : 1);
            }
            npu_plan_destroy(plan);
            npu_model_destroy(m);
            rig_end(&r);
        }
    }
}

/* The names that a file may give are those that are answered: what writes is its twin, loaded and run. */
static void test_names_that_write(void)
{
    static const struct { const char *name; bool is_supported; } rows[] = {
        { "aten.relu_", true }, { "aten.relu_.default", true }, { "aten.add_.Tensor", true }, { "aten::mul_.Scalar", true },
        { "aten.detach_", true }, { "aten.atan2.out", true }, { "aten.resize_.default", true }, { "aten.copy_", true },
        { "aten.zero_", true }, { "aten.transpose_", true }, { "aten.add.out", true }, { "aten.add_", true },
        { "aten.normal_", false }, { "aten.set_.source_Tensor", false }, { "aten.relu_.bogus", false },
        { "aten.relu.bogus", false }, { "my.op_", false }, { "", false }
    };
    npu_registry *registry = NULL;
    NPU_ITEM("F28");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (npu_backend_supports(npu_ref_backend(), registry, rows[i].name) != rows[i].is_supported) {
            NPU_CHECK_STR(rows[i].name, rows[i].is_supported ? "supported" : "not supported");
        }
    }
    npu_registry_destroy(registry);
}

/* The ops of a first accelerator, as an exporter writes them, and the calls without a kernel among them: each loads,
   and the CPU takes what the accelerator does not. */
static void test_first_ops(void)
{
    static const char *const names[] = {
        "aten._assert_tensor_metadata.default", "aten.adaptive_avg_pool2d.default", "aten.add.Tensor",
        "aten.add_.Tensor", "aten.addmm.default", "aten.alias.default", "aten.batch_norm.default",
        "aten.cat.default", "aten.contiguous.default", "aten.conv2d.default", "aten.cos.default",
        "aten.detach_.default", "aten.div.Tensor", "aten.dropout.default", "aten.embedding.default",
        "aten.expand.default", "aten.flatten.using_ints", "aten.full.default", "aten.index_copy.default",
        "aten.linear.default", "aten.matmul.default", "aten.max_pool2d.default", "aten.mean.dim",
        "aten.mul.Tensor", "aten.neg.default", "aten.pow.Tensor_Scalar", "aten.relu.default",
        "aten.relu_.default", "aten.reshape.default", "aten.rsqrt.default", "aten.silu.default",
        "aten.sin.default", "aten.slice.Tensor", "aten.softmax.int", "aten.t.default", "aten.to.dtype",
        "aten.transpose.int", "aten.unsqueeze.default", "aten.view.default", "<built-in function getitem>",
    };
    NPU_ITEM("R1.2");
    rig r = rig_start(NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const npu_op_def *def = npu_registry_find(npu_graph_registry(r.graph), names[i]);
        NPU_CHECK(def || strstr(names[i], "_.")); /* what writes becomes functional while it is read */
        NPU_CHECK(npu_backend_supports(r.backends[1], npu_graph_registry(r.graph), names[i]));
    }
    rig_end(&r);
}

/* Layers that small accelerators lack: the accelerator is refused them, the CPU runs them, and the numbers are the
   CPU's. */
static void test_layers_of_the_cpu(void)
{
    static const char *const deny[] = { "aten.gelu.default", "aten.layer_norm.default", "aten.tanh.default",
                                        "aten.group_norm.default", "aten.leaky_relu.default" };
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.deny = deny;
    desc.num_deny = sizeof deny / sizeof deny[0];
    NPU_ITEM("R1.3");
    rig r = rig_start(&desc);
    npu_graph *g = r.graph;
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 4, DIMS(1, 4, 3, 2))), y;
    float data[24], expected[24];
    npu_exec *cpu = NULL;
    y = npu_relu(g, npu_gelu(g, npu_relu(g, x), NULL));
    y = npu_relu(g, npu_tanh(g, npu_layer_norm(g, y, (npu_value){ 0 }, (npu_value){ 0 }, 2, 1e-5)));
    y = npu_leaky_relu(g, npu_group_norm(g, y, 2, (npu_value){ 0 }, (npu_value){ 0 }, 1e-5), NULL);
    npu_arg args[] = { npu_arg_tensor("self", y), npu_arg_int("upscale_factor", 2) };
    npu_output(g, "y", npu_op_result(g, npu_emit_name(g, "aten.pixel_shuffle", args, 2), 0));
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    for (uint32_t op = 1; op <= npu_graph_num_ops(g); op++) {
        uint32_t reason = 0;
        bool is_relu = npu_op_kind(g, (npu_op){ op }) == NPU_ATEN_RELU;
        NPU_CHECK_EQ(npu_plan_op_backend(r.plan, (npu_op){ op }, &reason, NULL), is_relu ? 0 : 1);
        NPU_CHECK_EQ(reason, is_relu ? NPU_REASON_CLAIMED : NPU_REASON_OP);
    }
    fill(data, 24, 9);
    NPU_CHECK_STATUS(npu_exec_create_simple(&cpu, g, &r.backends[1], 1, NULL), NPU_OK);
    npu_test_input(cpu, "x", data, sizeof data);
    npu_exec_set_output(cpu, "y", expected, sizeof expected);
    npu_test_input(r.exec, "x", data, sizeof data);
    NPU_CHECK_STATUS(npu_exec_run(cpu), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    const float *got = (const float *)npu_exec_output(r.exec, 0, NULL);
    for (int i = 0; got && i < 24; i++) {
        NPU_CHECK_NEAR(got[i], expected[i], 1e-5);
    }
    npu_exec_destroy(cpu);
    rig_end(&r);
}

/* ---- every op computes what the CPU computes, or is refused -------------------------------------------- */

static npu_value emit(npu_graph *g, const char *name, const npu_arg *args, uint32_t num_args)
{
    return npu_op_result(g, npu_emit_name(g, name, args, num_args), 0);
}

#define EMIT(name, ...) \
    emit(g, name, (const npu_arg[]){ __VA_ARGS__ }, \
         (uint32_t)(sizeof((const npu_arg[]){ __VA_ARGS__ }) / sizeof(npu_arg)))
#define BUILD(name, expression) \
    static npu_value build_##name(npu_graph *g, npu_value x) { return expression; }
#define X npu_arg_tensor(NULL, x)
#define NONE ((npu_value){ 0 })
#define FLAT npu_reshape(g, x, DIMS(48, 6), 2)

/* x is f32[2,3,8,6]. */
BUILD(conv, npu_conv2d(g, x, W(4, 3, 3, 2), W(4), NULL))
BUILD(conv_dilated,
      npu_conv2d(g, x, W(4, 3, 3, 2), NONE, &(npu_conv2d_attrs){ { 2, 1 }, { 1, 2 }, { 2, 3 }, 0 }))
BUILD(conv_groups,
      npu_conv2d(g, x, W(6, 1, 3, 3), W(6), &(npu_conv2d_attrs){ { 1, 1 }, { 1, 1 }, { 1, 1 }, 3 }))
BUILD(conv_same,
      EMIT("aten.conv2d.padding", X, npu_arg_tensor(NULL, W(4, 3, 4, 3)), npu_arg_str("padding", "same")))
BUILD(conv_unbatched, npu_conv2d(g, npu_select(g, x, 0, 1), W(4, 3, 3, 2), NONE, NULL))
BUILD(convolution,
      EMIT("aten.convolution.default", X, npu_arg_tensor(NULL, W(4, 3, 3, 2)), npu_arg_none("bias"),
           npu_arg_ints("stride", DIMS(2, 2), 2), npu_arg_ints("padding", DIMS(1, 0), 2),
           npu_arg_ints("dilation", DIMS(1, 2), 2), npu_arg_bool("transposed", false),
           npu_arg_ints("output_padding", DIMS(0, 0), 2), npu_arg_int("groups", 1)))
BUILD(conv_transposed,
      EMIT("aten.convolution.default", X, npu_arg_tensor(NULL, W(3, 4, 3, 2)), npu_arg_none("bias"),
           npu_arg_ints("stride", DIMS(2, 2), 2), npu_arg_ints("padding", DIMS(0, 0), 2),
           npu_arg_ints("dilation", DIMS(1, 1), 2), npu_arg_bool("transposed", true),
           npu_arg_ints("output_padding", DIMS(0, 0), 2), npu_arg_int("groups", 1)))
BUILD(conv1d, npu_conv1d(g, npu_select(g, x, 1, 0), W(5, 8, 3), NONE, NULL))
BUILD(linear, npu_linear(g, x, W(5, 6), W(5)))
BUILD(mm, npu_mm(g, FLAT, W(6, 7)))
BUILD(bmm, npu_bmm(g, npu_select(g, x, 0, 0), W(3, 6, 2)))
BUILD(matmul, npu_matmul(g, x, W(3, 6, 5)))
BUILD(matmul_vector, npu_matmul(g, x, W(6)))
BUILD(addmm,
      npu_addmm(g, W(7), FLAT, W(6, 7), &(npu_addmm_attrs){ { 0, 0.5, 1, 0 }, true, { 3, 0, 0, 0 }, true }))
BUILD(relu, npu_relu(g, x))
BUILD(gelu, npu_gelu(g, x, NULL))
BUILD(gelu_tanh, npu_gelu(g, x, &(npu_gelu_attrs){ "tanh" }))
BUILD(leaky_relu, npu_leaky_relu(g, x, NULL))
BUILD(silu, npu_silu(g, x))
BUILD(sigmoid, npu_sigmoid(g, x))
BUILD(tanh, npu_tanh(g, x))
BUILD(hardswish, npu_hardswish(g, x))
BUILD(hardtanh, npu_hardtanh(g, x, NULL))
BUILD(elu,
      npu_elu(g, x, &(npu_elu_attrs){ { 0, 1.5, 1, 0 }, true, { 0, 0.5, 1, 0 }, true, { 2, 0, 0, 0 }, true }))
BUILD(batch_norm, npu_batch_norm(g, x, W(3), NONE, W(3), npu_abs(g, W(3)), 1e-3))
BUILD(layer_norm, npu_layer_norm(g, x, W(8, 6), W(8, 6), 2, 1e-5))
BUILD(group_norm, npu_group_norm(g, x, 3, W(3), W(3), 1e-5))
BUILD(max_pool,
      npu_max_pool2d(g, x, &(npu_max_pool2d_attrs){ { 3, 2 }, { DIMS(2, 1), 2 }, { 1, 0 }, { 2, 1 }, true }))
BUILD(avg_pool,
      npu_avg_pool2d(g, x,
                     &(npu_avg_pool2d_attrs){ { 3, 2 }, { NULL, 0 }, { 1, 1 }, true, false, true, 0, false }))
BUILD(avg_pool_divisor,
      npu_avg_pool2d(g, x,
                     &(npu_avg_pool2d_attrs){ { 3, 2 }, { NULL, 0 }, { 1, 1 }, false, true, true, 5, true }))
BUILD(adaptive_pool, npu_adaptive_avg_pool2d(g, x, 3, 4))
BUILD(add_alpha, EMIT("aten.add.Tensor", X, npu_arg_tensor(NULL, W(3, 1, 6)), npu_arg_float("alpha", 2.5)))
BUILD(sub_alpha, EMIT("aten.sub.Tensor", X, npu_arg_tensor(NULL, W(8, 1)), npu_arg_int("alpha", 3)))
BUILD(add_scalar, EMIT("aten.add.Scalar", X, npu_arg_float(NULL, 0.75), npu_arg_int("alpha", 2)))
BUILD(sub_scalar, EMIT("aten.sub.Scalar", X, npu_arg_float(NULL, 0.75), npu_arg_int("alpha", 2)))
BUILD(mul, npu_mul(g, x, W(6)))
BUILD(mul_scalar, EMIT("aten.mul.Scalar", X, npu_arg_float(NULL, 1.5)))
BUILD(div, npu_div(g, W(3, 8, 6), x))
BUILD(div_number, npu_div(g, x, npu_number(g, npu_scalar_float(2.5))))
BUILD(div_scalar, EMIT("aten.div.Scalar", X, npu_arg_int(NULL, 2)))
BUILD(div_floor,
      EMIT("aten.div.Tensor_mode", X, npu_arg_tensor(NULL, W(6)), npu_arg_str("rounding_mode", "floor")))
BUILD(div_trunc,
      EMIT("aten.div.Tensor_mode", X, npu_arg_tensor(NULL, W(6)), npu_arg_str("rounding_mode", "trunc")))
BUILD(div_scalar_mode,
      EMIT("aten.div.Scalar_mode", X, npu_arg_float(NULL, 0.7), npu_arg_none("rounding_mode")))
BUILD(pow, npu_pow(g, npu_abs(g, x), W(6)))
BUILD(maximum, npu_maximum(g, x, W(3, 8, 1)))
BUILD(minimum, npu_minimum(g, x, W(3, 8, 1)))
BUILD(sqrt, npu_sqrt(g, x))
BUILD(rsqrt, npu_rsqrt(g, npu_exp(g, x)))
BUILD(neg, npu_neg(g, x))
BUILD(log, npu_log(g, x))
BUILD(clamp, npu_clamp(g, x, -0.5, 0.25))
BUILD(clamp_min, EMIT("aten.clamp.default", X, npu_arg_float("min", 0.1)))
BUILD(mean, npu_mean(g, x, NULL, 0, false))
BUILD(mean_dims, npu_mean(g, x, DIMS(0, 2), 2, false))
BUILD(sum_keep, npu_sum(g, x, DIMS(-2), 1, true))
BUILD(amax, npu_amax(g, x, DIMS(1, 3), 2, false))
BUILD(amin, npu_amin(g, x, NULL, 0, true))
BUILD(softmax, npu_softmax(g, x, 1))
BUILD(log_softmax, npu_log_softmax(g, x, -1))
BUILD(embedding,
      npu_embedding(g, FLAT,
                    npu_constant(g, NULL, npu_spec_tensor(NPU_I64, 2, DIMS(2, 2)), DIMS(47, 0, 3, 3))))
BUILD(permute, npu_permute(g, x, DIMS(2, -1, 0, 1), 4))
BUILD(transpose, npu_transpose(g, x, -1, 1))
BUILD(expand, npu_expand(g, npu_slice(g, x, 1, 0, 1, 1), DIMS(4, 2, 5, 8, 6), 5))
BUILD(cat, npu_cat(g, (npu_value[]){ x, W(2, 3, 1, 6), npu_neg(g, x) }, 3, -2))
BUILD(stack, npu_stack(g, (npu_value[]){ x, npu_neg(g, x) }, 2, -1))
BUILD(split, npu_op_result(g, npu_split(g, x, 3, 2), 2))
BUILD(chunk, npu_op_result(g, npu_chunk(g, x, 4, -1), 1))
BUILD(select, npu_select(g, x, -2, -3))
BUILD(slice, npu_slice(g, x, -2, -7, 100, 3))
BUILD(views,
      npu_unsqueeze(g, npu_squeeze(g, npu_flatten(g, npu_clone(g, npu_dropout(g, x, 0.5)), 1, 2), 0), -1))
BUILD(to_f32, npu_to(g, x, NPU_F32))
BUILD(aicf_add, npu_aicf_add(g, x, x))
BUILD(aicf_relu, npu_aicf_relu(g, x))
BUILD(aicf_gemm, npu_aicf_gemm(g, FLAT, W(7, 6), &(npu_aicf_gemm_attrs){ false, true }))
BUILD(aicf_gemm_a, npu_aicf_gemm(g, FLAT, W(48, 7), &(npu_aicf_gemm_attrs){ true, false }))
BUILD(aicf_bias_add, npu_aicf_bias_add(g, FLAT, W(6)))
BUILD(aicf_reduce_sum, npu_aicf_reduce_sum(g, FLAT, 0))
BUILD(aicf_softmax, EMIT("aicf.softmax", npu_arg_tensor(NULL, FLAT)))

/* Refused. */
BUILD(relu_f64, npu_relu(g, npu_to(g, x, NPU_F64)))
BUILD(add_bf16, npu_add(g, npu_to(g, x, NPU_BF16), npu_to(g, x, NPU_BF16)))
BUILD(sum_f64, EMIT("aten.sum.default", X, npu_arg_dtype("dtype", NPU_F64)))
BUILD(cast, npu_to(g, x, NPU_I32))
BUILD(gather,
      npu_gather(g, FLAT, 0, npu_constant(g, NULL, npu_spec_tensor(NPU_I64, 2, DIMS(1, 2)), DIMS(4, 9))))
BUILD(aicf_copy, EMIT("aicf.copy", X))

typedef struct op_row {
    const char *name;
    npu_value (*build)(npu_graph *g, npu_value x);
    uint32_t reason; /* why the last op is refused, 0 = it runs on the accelerator */
} op_row;

#define ROW(name) { #name, build_##name, 0 }
static const op_row op_rows[] = {
    ROW(conv), ROW(conv_dilated), ROW(conv_groups), ROW(conv_same), ROW(conv_unbatched), ROW(convolution),
    ROW(conv1d), ROW(linear), ROW(mm), ROW(bmm), ROW(matmul), ROW(matmul_vector), ROW(addmm), ROW(relu),
    ROW(gelu), ROW(gelu_tanh), ROW(leaky_relu), ROW(silu), ROW(sigmoid), ROW(tanh), ROW(hardswish),
    ROW(hardtanh), ROW(elu), ROW(batch_norm), ROW(layer_norm), ROW(group_norm), ROW(max_pool),
    ROW(avg_pool), ROW(avg_pool_divisor), ROW(adaptive_pool), ROW(add_alpha), ROW(sub_alpha),
    ROW(add_scalar), ROW(sub_scalar), ROW(mul), ROW(mul_scalar), ROW(div), ROW(div_number), ROW(div_scalar),
    ROW(div_floor), ROW(div_trunc), ROW(div_scalar_mode), ROW(pow), ROW(maximum), ROW(minimum), ROW(sqrt),
    ROW(rsqrt), ROW(neg), ROW(log), ROW(clamp), ROW(clamp_min), ROW(mean), ROW(mean_dims), ROW(sum_keep),
    ROW(amax), ROW(amin), ROW(softmax), ROW(log_softmax), ROW(embedding), ROW(permute), ROW(transpose),
    ROW(expand), ROW(cat), ROW(stack), ROW(split), ROW(chunk), ROW(select), ROW(slice), ROW(views),
    ROW(to_f32), ROW(aicf_add), ROW(aicf_relu), ROW(aicf_gemm), ROW(aicf_gemm_a), ROW(aicf_bias_add),
    ROW(aicf_reduce_sum), ROW(aicf_softmax),
    { "conv_transposed", build_conv_transposed, NPU_REASON_ATTRIBUTE },
    { "relu_f64", build_relu_f64, NPU_REASON_DTYPE },
    { "add_bf16", build_add_bf16, NPU_REASON_DTYPE },
    { "sum_f64", build_sum_f64, NPU_REASON_DTYPE },
    { "cast", build_cast, NPU_REASON_DTYPE },
    { "gather", build_gather, NPU_REASON_OP },
    { "aicf_copy", build_aicf_copy, NPU_REASON_OP },
};

/* True when both hold the same numbers, f32 within the tolerance, everything else bit for bit. */
static bool same_output(const npu_exec *a, const npu_exec *b, const npu_spec *spec, double tolerance)
{
    size_t size_a = 0, size_b = 0;
    const void *data_a = npu_exec_output(a, 0, &size_a), *data_b = npu_exec_output(b, 0, &size_b);
    if (!data_a || !data_b || size_a != size_b || spec->dtype != NPU_F32 || tolerance == 0) {
        return data_a && data_b && size_a == size_b && memcmp(data_a, data_b, size_a) == 0;
    }
    for (size_t i = 0; i < size_a / sizeof(float); i++) {
        double u = (double)((const float *)data_a)[i], v = (double)((const float *)data_b)[i];
        if (!(u == v || (isnan(u) && isnan(v)) || fabs(u - v) <= tolerance * (1 + fabs(v)))) {
            fprintf(stderr, "element %u: got %g, expected %g\n", (unsigned)i, u, v);
            return false;
        }
    }
    return size_a > 0;
}

/* Runs the row's graph on accelerator and CPU and on the CPU alone. */
static void check_row(const op_row *row, const npu_sim_desc *desc, double tolerance)
{
    static float x[2 * 3 * 8 * 6];
    rig r = rig_start(desc);
    npu_exec *cpu = NULL;
    npu_value in = npu_input(r.graph, "x", npu_spec_tensor(NPU_F32, 4, DIMS(2, 3, 8, 6)));
    npu_value y = row->build(r.graph, in);
    npu_output(r.graph, "y", y);
    fill(x, sizeof x / sizeof x[0], 3);
    npu_status status = npu_graph_status(r.graph);
    status = status ? status : rig_make(&r, 0);
    status = status ? status : npu_exec_create_simple(&cpu, r.graph, &r.backends[1], 1, &r.diag);
    if (status) {
        fprintf(stderr, "%s: %s %s\n", row->name, npu_graph_diag(r.graph)->message, r.diag.message);
    } else {
        uint32_t reason = 0;
        int backend = npu_plan_op_backend(r.plan, npu_value_producer(r.graph, y, NULL), &reason, NULL);
        npu_test_input(r.exec, "x", x, sizeof x);
        npu_test_input(cpu, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(cpu), NPU_OK);
        if (backend != (row->reason ? 1 : 0) || reason != row->reason) {
            fprintf(stderr, "%s: on backend %d, reason %s\n", row->name, backend, npu_reason_text(reason));
            NPU_CHECK_EQ(reason, row->reason);
        }
        NPU_CHECK_THAT(same_output(r.exec, cpu, npu_value_spec(r.graph, y), tolerance), "%s: differs from the CPU", row->name);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    npu_exec_destroy(cpu);
    rig_end(&r);
}

static void test_ops(void)
{
    NPU_ITEM("S1.24");
    NPU_ITEM("R1.9");
    NPU_ITEM("R1.10");
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++) {
        check_row(&op_rows[i], NULL, 2e-6);
    }
}

/* The same with everything that a backend may ask for: scratch, in-place results, inner values of its own,
 * wide alignment. */
static void test_ops_in_other_memory(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.scratch = 1000;
    desc.in_place = true;
    desc.alignment = 512;
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++) {
        check_row(&op_rows[i], &desc, 2e-6);
    }
    desc.plans_inner = true;
    desc.keeps_weights = true;
    desc.async = true;
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++) {
        check_row(&op_rows[i], &desc, 2e-6);
    }
}

/* With the CPU's kernels in device memory nothing is refused and no bit differs. */
static void test_emulate_all(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.emulate = npu_ref_backend();
    desc.emulate_all = true;
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++) {
        op_row row = op_rows[i];
        row.reason = 0;
        check_row(&row, &desc, 0);
    }
}

/* Dtypes that the device has no bytes for stay on the CPU, whatever that would run. */
static void test_emulate_small_dtypes(void)
{
    NPU_ITEM("F19");
    static const struct { npu_dtype dtype; bool taken; } rows[] = {
        { NPU_F8, false }, { NPU_HF8, false }, { NPU_I8, true }, { NPU_C128, true }, { NPU_F4, false }, { NPU_HF4, false }, { NPU_I4, false }, { NPU_U4, false } };
    npu_sim_desc desc;
    npu_sim *sim = NULL;
    memset(&desc, 0, sizeof desc);
    desc.emulate = npu_ref_backend();
    desc.emulate_all = true;
    NPU_CHECK_STATUS(npu_sim_create(&sim, &desc), NPU_OK);
    const npu_backend *b = npu_sim_backend(sim);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_spec spec = npu_spec_tensor(rows[i].dtype, 2, DIMS(3, 4));
        const npu_spec *specs[2] = { &spec, &spec };
        npu_graph *g = npu_graph_create(NULL);
        npu_op_storage storage;
        npu_op_info info;
        npu_support answer;
        memset(&storage, 0, sizeof storage);
        memset(&answer, 0, sizeof answer);
        npu_value y = npu_reshape(g, npu_input(g, "x", spec), DIMS(4, 3), 2);
        NPU_CHECK_STATUS(npu_op_describe(g, npu_value_producer(g, y, NULL), &info, &storage), NPU_OK);
        info.in = info.out = specs;
        npu_support host = answer;
        b->supports(b->ctx, &info, &answer);
        desc.emulate->supports(desc.emulate->ctx, &info, &host);
        NPU_CHECK_EQ(answer.reason == 0, rows[i].taken && host.reason == 0);
        npu_op_storage_free(&storage);
        npu_graph_destroy(g);
    }
    npu_sim_destroy(sim);
}

/* What the device decodes must be exactly what it expects: other schema ids and sizes are errors. */
static void test_blobs(void)
{
    static const uint8_t axis[9] = { 0 };
    rig r = rig_start(NULL);
    npu_diag diag;
    npu_buffer buffer[2];
    npu_tensor in, out;
    float x[6] = { 1, 2, 3, 4, 5, 6 }, y[3] = { 0 };
    const npu_backend *b = r.backends[0];
    const uint32_t rsum = NPU_FOURCC('R', 'S', 'U', 'M');
    NPU_ITEM("R2.6");
    npu_tensor_set_host(&in, &buffer[0], NPU_F32, 2, DIMS(2, 3), x);
    npu_tensor_set_host(&out, &buffer[1], NPU_F32, 1, DIMS(3), y);
    NPU_CHECK_STATUS(buffer_alloc(b, 0, sizeof x, &buffer[0]), NPU_OK);
    NPU_CHECK_STATUS(buffer_alloc(b, 0, sizeof y, &buffer[1]), NPU_OK);
    NPU_CHECK_STATUS(buffer_upload(b, &buffer[0], 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_AICF_REDUCE_SUM, &in, 1, &out, 1, rsum, axis, 8), &diag), NPU_OK);
    NPU_CHECK_STATUS(buffer_download(b, y, &buffer[1], 0, sizeof y), NPU_OK);
    NPU_CHECK_NEAR(y[0], 5, 0);
    NPU_CHECK_NEAR(y[2], 9, 0);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_AICF_REDUCE_SUM, &in, 1, &out, 1, rsum + 1, axis, 8), &diag),
                     NPU_ERR_BAD_SCHEMA);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_AICF_REDUCE_SUM, &in, 1, &out, 1, rsum, axis, 9), &diag),
                     NPU_ERR_BAD_ATTR_SIZE);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_AICF_REDUCE_SUM, &in, 1, &out, 1, rsum, axis, 7), &diag),
                     NPU_ERR_BAD_ATTR_SIZE);
    b->free(b->ctx, &buffer[0]);
    b->free(b->ctx, &buffer[1]);
    rig_end(&r);
}

/* ---- plans and runs ------------------------------------------------------------------------------------ */

static void test_example_plan(void)
{
    NPU_ITEM("S1.18");
    NPU_ITEM("S1.10");
    NPU_ITEM("S1.15");
    static const struct { uint32_t type, backend, num_ops; const char *moved;
    } expected[] = {
        { NPU_STEP_PARTITION, 0, 5, NULL }, { NPU_STEP_TRANSFER, 1, 0, "relu2_output" },
        { NPU_STEP_PARTITION, 1, 1, NULL }, { NPU_STEP_TRANSFER, 0, 0, "concat_output" },
        { NPU_STEP_PARTITION, 0, 1, NULL },
    };
    rig r = example_start(NULL);
    bool right;
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    NPU_CHECK_EQ(npu_plan_num_steps(r.plan), 5);
    for (uint32_t i = 0; i < 5 && i < npu_plan_num_steps(r.plan); i++) {
        const npu_step *s = npu_plan_step(r.plan, i);
        NPU_CHECK_EQ(s->type, expected[i].type);
        NPU_CHECK_EQ(s->backend, expected[i].backend);
        NPU_CHECK_EQ(s->num_ops, expected[i].num_ops);
        if (expected[i].moved) {
            NPU_CHECK_EQ(s->num_outputs, 1);
            NPU_CHECK_STR(npu_value_name(r.graph, s->outputs[0]), expected[i].moved);
        }
    }
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
    NPU_CHECK_THAT(right, "%s", wrong_at);
    rig_end(&r);
}

/* A plan touches no device; the first call of one is that of a program. */
static void test_plan_is_lazy(void)
{
    NPU_ITEM("S2.27");
    rig r = example_start(NULL);
    npu_plan *plan = NULL;
    npu_plan_desc desc = { .backends = r.backends, .num_backends = 2 };
    NPU_CHECK_STATUS(npu_plan_create(&plan, r.graph, &desc, NULL), NPU_OK);
    npu_sim_counters c = npu_sim_count(r.sim);
    for (int slot = 0; slot < NPU_SIM_SLOTS; slot++) {
        NPU_CHECK_THAT(c.calls[slot] == 0, "slot %d was called %u times", slot, (unsigned)c.calls[slot]);
    }
    npu_plan_destroy(plan);
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    NPU_CHECK(npu_sim_count(r.sim).calls[NPU_SIM_COMPILE] > 0);
    rig_end(&r);
}

/* One compile per partition and one upload per weight, however often it runs. */
static void test_once(void)
{
    NPU_ITEM("S1.21");
    NPU_ITEM("S1.22");
    NPU_ITEM("S1.27");
    rig r = example_start(NULL);
    bool right;
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    npu_sim_counters before = npu_sim_count(r.sim);
    NPU_CHECK_EQ(before.calls[NPU_SIM_COMPILE], 2);
    NPU_CHECK_EQ(before.calls[NPU_SIM_UPLOAD], 3); /* three weights on the accelerator */
    NPU_CHECK_EQ(before.bytes_up, (4 * 3 * 3 * 3 + 6 * 5 + 5) * 4);
    for (uint32_t i = 0; i < 10; i++) {
        NPU_CHECK_STATUS(run_example(&r, i, &right), NPU_OK);
        NPU_CHECK_THAT(right, "%s", wrong_at);
    }
    npu_sim_counters after = npu_sim_count(r.sim);
    NPU_CHECK_EQ(after.calls[NPU_SIM_COMPILE], 2);
    NPU_CHECK_EQ(after.calls[NPU_SIM_ALLOC], before.calls[NPU_SIM_ALLOC]);
    NPU_CHECK_EQ(after.calls[NPU_SIM_SUBMIT], 2 * 10);
    NPU_CHECK_EQ(after.calls[NPU_SIM_UPLOAD], 3 + 2 * 10);   /* x, concat_output */
    NPU_CHECK_EQ(after.calls[NPU_SIM_DOWNLOAD], 2 * 10);     /* relu2_output, y */
    NPU_CHECK_EQ(after.bytes_up - before.bytes_up, 10 * (EXAMPLE_IN + EXAMPLE_OUT) * 4);
    NPU_CHECK_EQ(after.bytes_down, 10 * (EXAMPLE_OUT / 2 + EXAMPLE_OUT) * 4);
    NPU_CHECK_EQ(after.ops, 6 * 10);
    rig_end(&r);
}

static void test_named(void)
{
    NPU_ITEM("S1.23");
    NPU_ITEM("S1.25");
    NPU_ITEM("S1.28");
    rig r = rig_start(NULL);
    npu_value a = npu_input(r.graph, "a", npu_spec_tensor(NPU_F32, 1, DIMS(3)));
    npu_value b = npu_input(r.graph, "b", npu_spec_tensor(NPU_F32, 1, DIMS(3)));
    npu_output(r.graph, "sum", npu_add(r.graph, a, b));
    npu_output(r.graph, "difference", npu_sub(r.graph, a, b));
    float x[3] = { 1, 2, 3 }, y[3] = { 10, 20, 30 }, difference[3];
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "b", y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_MISSING_FEED);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "'a'"));
    NPU_CHECK_STATUS(npu_test_input(r.exec, "a", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "difference", difference, sizeof difference), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "c", x, sizeof x), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    size_t size = 0;
    const float *sum = npu_exec_find_output(r.exec, "sum", &size);
    NPU_CHECK_EQ(size, sizeof x);
    NPU_CHECK(sum && sum[2] == 33);
    NPU_CHECK_NEAR(difference[0], -9, 0);
    rig_end(&r);
}

static void test_refused_group(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.refuse = "aten.softmax.int";
    rig r = example_start(&desc);
    bool right;
    uint32_t reason = 0;
    const char *words = "";
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    const npu_plan *plan = npu_program_plan(r.program);
    npu_op softmax = npu_value_producer(r.graph, npu_graph_output(r.graph, 0), NULL);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, softmax, &reason, NULL), 0); /* before compile */
    NPU_CHECK_EQ(npu_plan_op_backend(plan, softmax, &reason, &words), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
    NPU_CHECK(words && strstr(words, "refuse"));
    NPU_CHECK_EQ(npu_plan_num_steps(plan), 3);
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
    NPU_CHECK_THAT(right, "%s", wrong_at);
    rig_end(&r);
}

/* ---- transfers ----------------------------------------------------------------------------------------- */

/* All 65536 bit patterns: NaN payloads, infinities, -0 and denormals among them. */
static void test_bf16(void)
{
    NPU_ITEM("S1.26");
    NPU_ITEM("S1.30");
    NPU_ITEM("S1.31");
    static uint16_t x[65536], y[65536];
    static const char *const deny[] = { "aten.permute.default" };
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.deny = deny;
    desc.num_deny = 1;
    rig r = rig_start(&desc);
    npu_value v = npu_input(r.graph, "x", npu_spec_tensor(NPU_BF16, 2, DIMS(256, 256)));
    v = npu_transpose(r.graph, npu_permute(r.graph, npu_transpose(r.graph, v, 0, 1), DIMS(1, 0), 2), 0, 1);
    v = npu_transpose(r.graph, v, 0, 1);
    npu_output(r.graph, "y", v);
    for (uint32_t i = 0; i < 65536; i++) {
        x[i] = (uint16_t)i;
    }
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    NPU_CHECK_EQ(npu_plan_num_steps(r.plan), 5); /* accelerator, CPU, accelerator */
    npu_test_input(r.exec, "x", x, sizeof x);
    npu_exec_set_output(r.exec, "y", y, sizeof y);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_BYTES(x, y, sizeof x);
    rig_end(&r);
}

/* Ops whose result has three dims on the accelerator, others on the CPU. */
static int place_by_rank(void *ctx, const npu_op_info *op, const char *op_label)
{
    (void)ctx;
    (void)op_label;
    return op->out[0]->rank == 3 ? 0 : 1;
}

/* Every dtype of whole bytes goes up and down as it is: nothing is converted. */
static void test_every_dtype(void)
{
    static const npu_dtype dtypes[] = {
#define NPU_X(code, symbol, name, bits, letter, aten) symbol,
        NPU_IR_DTYPES(NPU_X)
#undef NPU_X
    };
    NPU_ITEM("R1.13");
    for (size_t t = 1; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        if (npu_dtype_bits(dtypes[t]) < 8) {
            continue;
        }
        rig r = rig_start(NULL);
        uint8_t x[512], y[512];
        npu_spec spec = npu_spec_tensor(dtypes[t], 2, DIMS(4, 8));
        npu_value v = npu_input(r.graph, "x", spec);
        size_t size = 0;
        npu_plan_desc desc;
        for (int i = 0; i < 3; i++) {
            v = npu_reshape(r.graph, v, i % 2 ? DIMS(4, 8) : DIMS(2, 2, 8), i % 2 ? 2 : 3);
        }
        npu_output(r.graph, "y", v);
        memset(&desc, 0, sizeof desc);
        desc.backends = r.backends;
        desc.num_backends = 2;
        desc.override = place_by_rank;
        npu_spec_size(&spec, &size);
        for (size_t i = 0; i < size; i++) {
            x[i] = (uint8_t)(i * 37 + 0xf1);
        }
        memset(y, 0, sizeof y);
        NPU_CHECK_STATUS(npu_plan_create(&r.plan, r.graph, &desc, &r.diag), NPU_OK);
        /* the CPU has no ops of them */
        bool is_narrow = npu_dtype_is_float(dtypes[t]) && npu_dtype_bits(dtypes[t]) == 8;
        NPU_CHECK_EQ(npu_plan_num_steps(r.plan), is_narrow ? 1 : 5);
        NPU_CHECK_STATUS(npu_program_create(&r.program, r.plan, &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create(&r.exec, r.program, NULL, &r.diag), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_BYTES(x, y, size);
        rig_end(&r);
    }
}

static void test_slots_by_hand(void)
{
    NPU_ITEM("S1.25");
    NPU_ITEM("S1.29");
    rig r = rig_start(NULL);
    const npu_backend *b = r.backends[0];
    npu_buffer u, v;
    uint16_t x[4] = { 0x7fc1, 0xff81, 0x8000, 0x0001 }, y[4] = { 0 }; /* bf16: two NaNs, -0, a denormal */
    NPU_CHECK_STATUS(buffer_alloc(b, 0, 64, &u), NPU_OK);
    NPU_CHECK_STATUS(buffer_alloc(b, 0, 64, &v), NPU_OK);
    NPU_CHECK_EQ((uintptr_t)u.handle % 64, 0);
    NPU_CHECK_STATUS(buffer_upload(b, &u, 56, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(buffer_copy(b, &v, 8, &u, 56, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(buffer_download(b, y, &v, 8, sizeof y), NPU_OK);
    NPU_CHECK_BYTES(x, y, sizeof x);
    NPU_CHECK_STATUS(buffer_upload(b, &u, 57, x, sizeof x), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(buffer_download(b, y, &u, UINT64_MAX, 2), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(buffer_alloc(b, 1, 64, &v), NPU_ERR_INVALID_ARGUMENT);
    b->free(b->ctx, &u);
    NPU_CHECK_STATUS(buffer_upload(b, &u, 0, x, sizeof x), NPU_ERR_RANGE); /* a buffer that is gone */
    npu_sim_destroy(r.sim);
    npu_graph_destroy(r.graph);
}

/* What the executor asks of the CPU's memory by map, any other caller may ask by the slots that all backends have. */
static void test_slots_of_the_cpu(void)
{
    const npu_backend *cpu = npu_ref_backend();
    const char x[8] = "abcdefg";
    char y[8] = "";
    npu_buffer u, v;
    NPU_ITEM("F59");
    NPU_CHECK_STATUS(buffer_alloc(cpu, 0, 64, &u), NPU_OK);
    NPU_CHECK_STATUS(buffer_alloc(cpu, 0, 64, &v), NPU_OK);
    NPU_CHECK_STATUS(buffer_upload(cpu, &u, 56, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(buffer_copy(cpu, &v, 8, &u, 56, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(buffer_download(cpu, y, &v, 8, sizeof y), NPU_OK);
    NPU_CHECK_STR(y, x);
    NPU_CHECK(memcmp((const char *)v.handle + 8, x, sizeof x) == 0);
    NPU_CHECK_STATUS(buffer_download(cpu, y, &v, 64, 0), NPU_OK); /* nothing, at the very end */
    static const struct { uint64_t offset, bytes; } outside[] = { { 57, 8 }, { 65, 0 }, { UINT64_MAX, 2 }, { 0, 65 } };
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        NPU_CHECK_STATUS(buffer_upload(cpu, &u, outside[i].offset, x, outside[i].bytes), NPU_ERR_RANGE);
        NPU_CHECK_STATUS(buffer_download(cpu, y, &u, outside[i].offset, outside[i].bytes), NPU_ERR_RANGE);
        NPU_CHECK_STATUS(buffer_copy(cpu, &v, 0, &u, outside[i].offset, outside[i].bytes), NPU_ERR_RANGE);
        NPU_CHECK_STATUS(buffer_copy(cpu, &v, outside[i].offset, &u, 0, outside[i].bytes), NPU_ERR_RANGE);
    }
    NPU_CHECK_STR(y, x); /* the refused have written nothing */
    cpu->free(cpu->ctx, &u);
    cpu->free(cpu->ctx, &v);
    NPU_CHECK_STATUS(buffer_alloc(cpu, 1, 64, &u), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(buffer_alloc(cpu, 0, UINT64_MAX - 8, &u), NPU_ERR_OVERFLOW);
}

/* A child process reads device memory and must die. */
static void test_memory_is_closed(void)
{
    rig r = rig_start(NULL);
    const npu_backend *b = r.backends[0];
    npu_buffer u;
    int state = 0;
    NPU_CHECK_STATUS(buffer_alloc(b, 0, 64, &u), NPU_OK);
    NPU_CHECK_STATUS(buffer_upload(b, &u, 0, "abcd", 4), NPU_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* sanitizers catch it */
        signal(SIGBUS, SIG_DFL);
        _exit(*(volatile const char *)u.handle == 'a' ? 0 : 1);
    }
    NPU_CHECK(child > 0 && waitpid(child, &state, 0) == child);
    NPU_CHECK(WIFSIGNALED(state) && (WTERMSIG(state) == SIGSEGV || WTERMSIG(state) == SIGBUS));
    b->free(b->ctx, &u);
    rig_end(&r);
}

static void test_capacity(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    for (desc.capacity = 1000; desc.capacity <= 100000; desc.capacity *= 10) { /* at first the weights fit alone */
        rig r = example_start(&desc);
        bool right;
        NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
        NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
        NPU_CHECK_THAT(right, "%s", wrong_at);
        rig_end(&r);
    }
    desc.alignment = 3;
    npu_sim *sim = NULL;
    NPU_CHECK_STATUS(npu_sim_create(&sim, &desc), NPU_ERR_INVALID_ARGUMENT);
}

static void test_simulated_time(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.bandwidth = 1000000; /* 1000 ns per byte */
    desc.transfer_ns = 5000;
    desc.submit_ns = 70000;
    rig r = example_start(&desc);
    npu_backend plain = *r.backends[0];
    bool right;
    plain.cost = NULL; /* it would be placed by */
    r.backends[0] = &plain;
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    uint64_t before = npu_sim_count(r.sim).busy_ns;
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
    uint64_t bytes = (EXAMPLE_IN + EXAMPLE_OUT / 2 + EXAMPLE_OUT + EXAMPLE_OUT) * 4;
    NPU_CHECK_EQ(npu_sim_count(r.sim).busy_ns - before, bytes * 1000 + 4 * 5000 + 2 * 70000);
    rig_end(&r);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

/* Makes and runs the example with the nth call of a slot failing: the status must come out, with a message,
   and everything must work again at once. Returns false when there is no nth call. */
static bool fail_once(npu_sim_slot slot, uint32_t n, const npu_sim_desc *desc)
{
    rig r = example_start(desc);
    bool right = false;
    npu_sim_fail(r.sim, slot, n, NPU_ERR_BACKEND);
    npu_status status = rig_make(&r, 0), run = NPU_OK;
    NPU_CHECK(status == NPU_OK || (status == NPU_ERR_BACKEND && r.diag.message[0]));
    if (status) {
        rig_unmake(&r);
        memset(&r.diag, 0, sizeof r.diag);
        NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    } else {
        run = run_example(&r, 1, &right);
        NPU_CHECK_THAT(run == NPU_OK ? right : run == NPU_ERR_BACKEND, "%s: %s", npu_status_name(run), wrong_at);
        if (run) {
            NPU_CHECK_STATUS(npu_exec_diag(r.exec)->status, NPU_ERR_BACKEND);
            NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "sim"));
        }
    }
    npu_sim_fail(r.sim, slot, 0, NPU_OK);
    NPU_CHECK_STATUS(run_example(&r, 2, &right), NPU_OK);
    NPU_CHECK_THAT(right, "%s", wrong_at);
    bool happened = status || run || (slot == NPU_SIM_COMPILE && n <= 2);
    rig_end(&r);
    return happened;
}

static void test_failures(void)
{
    static const struct { npu_sim_slot slot; uint32_t calls;
    } slots[] = {
        { NPU_SIM_ALLOC, 2 },   { NPU_SIM_UPLOAD, 3 + 2 }, { NPU_SIM_DOWNLOAD, 2 },
        { NPU_SIM_COMPILE, 2 }, { NPU_SIM_PLACE, 2 },      { NPU_SIM_SUBMIT, 2 },
    };
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        uint32_t n = 1;
        while (n < 20 && fail_once(slots[i].slot, n, NULL)) {
            n++;
        }
        NPU_CHECK_EQ(n - 1, slots[i].calls);
    }
}

/* The same where work is queued: a failing submit comes out of wait. */
static void test_failures_async(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.async = true;
    for (uint32_t n = 1; n <= 2; n++) {
        NPU_CHECK(fail_once(NPU_SIM_SUBMIT, n, &desc));
        NPU_CHECK(fail_once(NPU_SIM_WAIT, n, &desc));
        NPU_CHECK(fail_once(NPU_SIM_DOWNLOAD, n, &desc));
    }
}

/* A failed compile is no error: the group runs on the CPU, and the plan says why. */
static void test_failed_compile(void)
{
    rig r = example_start(NULL);
    bool right;
    uint32_t reason = 0;
    npu_sim_fail(r.sim, NPU_SIM_COMPILE, 1, NPU_ERR_TIMEOUT);
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    npu_op first = npu_value_user(r.graph, npu_graph_input(r.graph, 0), 0);
    NPU_CHECK_EQ(npu_plan_op_backend(npu_program_plan(r.program), first, &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_REJECTED);
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
    NPU_CHECK_THAT(right, "%s", wrong_at);
    rig_end(&r);
}

/* A wrong result is visible in the outputs, once, at whichever op it happens. */
static void test_wrong_result(void)
{
    rig r = example_start(NULL);
    bool right = true;
    NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
    for (uint32_t op = 1; op <= 6; op++) {
        npu_sim_corrupt(r.sim, op);
        NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
        NPU_CHECK(!right);
        NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_OK);
        NPU_CHECK_THAT(right, "%s", wrong_at);
    }
    rig_end(&r);
}

static void test_timeout(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.async = true;
    rig r = example_start(&desc);
    bool right;
    NPU_CHECK_STATUS(rig_make(&r, 50000000), NPU_OK); /* 50 ms */
    for (uint32_t n = 1; n <= 2; n++) {
        npu_sim_hang(r.sim, n, 400000000);
        NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_ERR_TIMEOUT);
        NPU_CHECK_STATUS(npu_exec_diag(r.exec)->status, NPU_ERR_TIMEOUT);
        NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "sim"));
        npu_status status = run_example(&r, 2, &right); /* waits for the device, but not for ever */
        NPU_CHECK_STATUS(status, NPU_ERR_TIMEOUT);
        NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "still not done"));
        for (int i = 0; i < 20 && status == NPU_ERR_TIMEOUT; i++) {
            status = run_example(&r, 2, &right);
        }
        NPU_CHECK_STATUS(status, NPU_OK);
        NPU_CHECK_THAT(right, "%s", wrong_at);
    }
    npu_sim_hang(r.sim, 1, 100000000);
    NPU_CHECK_STATUS(run_example(&r, 1, &right), NPU_ERR_TIMEOUT);
    rig_end(&r); /* while the device still hangs */
}

/* ---- queues -------------------------------------------------------------------------------------------- */

static void test_fences(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.async = true;
    desc.sleeps = true;
    desc.transfer_ns = 20000000; /* 20 ms */
    rig r = rig_start(&desc);
    const npu_backend *b = r.backends[0];
    npu_buffer u;
    npu_fence up = 0, down = 0, last = 0;
    char text[5] = "abcd", back[5] = "";
    npu_transfer to_device = { .size = sizeof to_device, .to = &u, .from_host = text, .bytes = 5 };
    npu_transfer to_host = { .size = sizeof to_host, .to_host = back, .from = &u, .bytes = 5 };
    uint32_t done = 1;
    NPU_CHECK_STATUS(buffer_alloc(b, 0, 64, &u), NPU_OK);
    NPU_CHECK_STATUS(b->upload(b->ctx, &to_device, &up), NPU_OK);
    NPU_CHECK_STATUS(b->download(b->ctx, &to_host, &down), NPU_OK);
    NPU_CHECK(up && down > up);
    NPU_CHECK_STATUS(b->poll(b->ctx, down, &done), NPU_OK);
    NPU_CHECK_EQ(done, 0);
    NPU_CHECK_STATUS(b->wait(b->ctx, down, 1000000), NPU_ERR_TIMEOUT);
    NPU_CHECK_STATUS(b->wait(b->ctx, down, 10000000000u), NPU_OK);
    NPU_CHECK_STATUS(b->wait(b->ctx, up, 0), NPU_OK);
    NPU_CHECK_STATUS(b->poll(b->ctx, down, &done), NPU_OK);
    NPU_CHECK_EQ(done, 1);
    NPU_CHECK_STR(back, "abcd");
    npu_sim_fail(r.sim, NPU_SIM_UPLOAD, 1, NPU_ERR_IO);
    NPU_CHECK_STATUS(b->upload(b->ctx, &to_device, &last), NPU_OK);
    NPU_CHECK_STATUS(b->wait(b->ctx, last, UINT64_MAX), NPU_ERR_IO);
    NPU_CHECK_STATUS(b->wait(b->ctx, 0, 0), NPU_OK);
    b->free(b->ctx, &u);
    rig_end(&r);
}

typedef struct worker {
    npu_program *program;
    uint32_t seed;
    float y[EXAMPLE_OUT];
    npu_status status;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    npu_exec *exec = NULL;
    float x[EXAMPLE_IN];
    fill(x, EXAMPLE_IN, w->seed);
    w->status = npu_exec_create(&exec, w->program, NULL, NULL);
    if (!w->status) {
        npu_test_input(exec, "x", x, sizeof x);
        npu_exec_set_output(exec, "y", w->y, sizeof w->y);
    }
    for (int i = 0; i < 20 && !w->status; i++) {
        w->status = npu_exec_run(exec);
    }
    npu_exec_destroy(exec);
    return NULL;
}

/* Two execs of one program submit from two threads at once. */
static void test_two_threads(void)
{
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.plans_inner = true;
    for (int async = 0; async < 2; async++) {
        desc.async = async;
        rig r = example_start(&desc);
        static worker workers[3];
        pthread_t threads[2];
        NPU_CHECK_STATUS(rig_make(&r, 0), NPU_OK);
        for (uint32_t i = 0; i < 3; i++) {
            workers[i].program = r.program;
            workers[i].seed = i == 2 ? 1 : i;
        }
        for (int i = 0; i < 2; i++) {
            NPU_CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
        work(&workers[2]); /* alone, with the input of the second */
        for (int i = 0; i < 3; i++) {
            NPU_CHECK_STATUS(workers[i].status, NPU_OK);
        }
        NPU_CHECK_BYTES(workers[1].y, workers[2].y, sizeof workers[1].y);
        NPU_CHECK(memcmp(workers[0].y, workers[1].y, sizeof workers[1].y) != 0);
        rig_end(&r);
    }
}

int main(void)
{
    NPU_RUN(test_check);
    NPU_RUN(test_versions);
    NPU_RUN(test_answers);
    NPU_RUN(test_buffers_that_lie);
    NPU_RUN(test_failed_op);
    NPU_RUN(test_creates_say_why);
    NPU_RUN(test_dirty_descs);
    NPU_RUN(test_order_of_kernels);
    NPU_RUN(test_streams);
    NPU_RUN(test_optional_slots);
    NPU_RUN(test_support_table);
    NPU_RUN(test_free_ops);
    NPU_RUN(test_layers_of_a_backend);
    NPU_RUN(test_names_that_write);
    NPU_RUN(test_first_ops);
    NPU_RUN(test_layers_of_the_cpu);
    NPU_RUN(test_ops);
    NPU_RUN(test_ops_in_other_memory);
    NPU_RUN(test_emulate_all);
    NPU_RUN(test_emulate_small_dtypes);
    NPU_RUN(test_blobs);
    NPU_RUN(test_example_plan);
    NPU_RUN(test_plan_is_lazy);
    NPU_RUN(test_once);
    NPU_RUN(test_named);
    NPU_RUN(test_refused_group);
    NPU_RUN(test_bf16);
    NPU_RUN(test_every_dtype);
    NPU_RUN(test_slots_by_hand);
    NPU_RUN(test_slots_of_the_cpu);
    NPU_RUN(test_memory_is_closed);
    NPU_RUN(test_capacity);
    NPU_RUN(test_simulated_time);
    NPU_RUN(test_failures);
    NPU_RUN(test_failures_async);
    NPU_RUN(test_failed_compile);
    NPU_RUN(test_wrong_result);
    NPU_RUN(test_timeout);
    NPU_RUN(test_fences);
    NPU_RUN(test_two_threads);
    return npu_test_done();
}
