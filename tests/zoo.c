/* The zoo: models that examples/pytorch/zoo.py exports from PyTorch into a folder, each with inputs and what PyTorch
   computes of them. Each is run whole; split, every other op on the simulated accelerator; optimised; after a round trip
   through text and through JSON; and by two threads. The round trips and the threads give the same bits. Other inputs
   give other outputs, and PyTorch's.

       make zoo [MODELS="resnet18 gpt"]      exports and runs: a line for each model, then how many passed

   Close is rtol 1e-4 and atol 1e-5 of the largest number, or an error against a run in f64 that is at most three times
   PyTorch's own; models in bf16 and f16 are held to 2e-2. */
#define NPU_SIM_IMPLEMENTATION
#include "../examples/sim/npu_sim.h"
#include "../npu_ir_backend_ref.h"
#include "../examples/files/npu_map.h"
#include "../examples/files/npu_npy.h"

enum { MAX_TENSORS = 96 };

typedef struct tensors {
    npu_map maps[MAX_TENSORS];
    npu_array arrays[MAX_TENSORS];
    void *own[MAX_TENSORS];
    uint32_t count;
} tensors;

typedef struct model {
    const char *folder, *name;
    char failed[512];         /* the first thing that went wrong; "" = nothing did */
    npu_map json, weights;
    tensors in, other_in;     /* two sets of inputs */
    tensors out, other_out;   /* what PyTorch computes of them */
    tensors exact, other_exact; /* the same in f64; may be absent */
    void *bits[MAX_TENSORS];  /* outputs of the whole run */
    size_t sizes[MAX_TENSORS];
    uint32_t num_ops, num_split;
    double tolerance;         /* 0 = the strict one */
} model;

typedef struct way {
    const char *name;
    bool splits, optimizes, from_text, from_json, has_threads, has_other_inputs, same_bits;
} way;

static const way ways[] = {
    { .name = "whole" },
    { .name = "split", .splits = true },
    { .name = "optimised", .optimizes = true },
    { .name = "text", .from_text = true, .same_bits = true },
    { .name = "JSON", .from_json = true, .same_bits = true },
    { .name = "two threads", .has_threads = true, .same_bits = true },
    { .name = "other inputs", .has_other_inputs = true },
};

typedef struct run {
    npu_graph *graph;
    npu_sim *sim;
    const npu_backend *backends[2];
    npu_parallel *parallel;
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
    uint16_t *halves[MAX_TENSORS];
    npu_diag diag;
} run;

static bool fail(model *m, const char *what, const char *words)
{
    if (!m->failed[0]) {
        snprintf(m->failed, sizeof m->failed, "%.100s: %.400s", what, words);
    }
    return false;
}

/* ---- files ---- */

static void path_of(const model *m, char *path, size_t size, const char *end)
{
    snprintf(path, size, "%s/%s.%s", m->folder, m->name, end);
}

/* NAME.<kind>0.npy and so on, up to the first that is not there. */
static bool load_tensors(model *m, tensors *t, const char *kind)
{
    for (t->count = 0; t->count < MAX_TENSORS; t->count++) {
        char end[64], path[1024];
        uint32_t i = t->count;
        npu_diag diag = { 0 };
        snprintf(end, sizeof end, "%s%u.npy", kind, (unsigned)i);
        path_of(m, path, sizeof path, end);
        if (npu_map_open(&t->maps[i], path)) {
            return true;
        }
        if (npu_npy_read(&t->maps[i].bytes, &t->arrays[i], &t->own[i], &diag)) {
            return fail(m, end, diag.message);
        }
    }
    return fail(m, kind, "too many files");
}

static void free_tensors(tensors *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        free(t->own[i]);
        npu_map_close(&t->maps[i]);
    }
}

static bool load_model(model *m)
{
    char path[1024];
    npu_text words = npu_text_init(NULL);
    path_of(m, path, sizeof path, "failed");
    if (npu_text_load(&words, path) == NPU_OK) {
        fail(m, "export", words.data);
    }
    npu_text_free(&words);
    path_of(m, path, sizeof path, "json");
    if (m->failed[0] || npu_map_open(&m->json, path)) {
        return fail(m, path, "not there");
    }
    path_of(m, path, sizeof path, "safetensors");
    if (npu_map_open(&m->weights, path)) {
        return fail(m, path, "not there");
    }
    return load_tensors(m, &m->in, "input") && load_tensors(m, &m->out, "output") && load_tensors(m, &m->exact, "exact") &&
           load_tensors(m, &m->other_in, "other_input") && load_tensors(m, &m->other_out, "other_output") &&
           load_tensors(m, &m->other_exact, "other_exact");
}

static void free_model(model *m)
{
    tensors *all[] = { &m->in, &m->out, &m->exact, &m->other_in, &m->other_out, &m->other_exact };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free_tensors(all[i]);
    }
    for (uint32_t i = 0; i < MAX_TENSORS; i++) {
        free(m->bits[i]);
    }
    npu_map_close(&m->json);
    npu_map_close(&m->weights);
}

/* ---- a way of running ---- */

static void replace(run *r, npu_graph *by)
{
    npu_graph_destroy(r->graph);
    r->graph = by;
}

static npu_status rewrite(run *r, const way *w)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *other = NULL;
    npu_status status = NPU_OK;
    const npu_backend *cpu = npu_ref_backend();
    if (w->optimizes) {
        npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1 };
        status = npu_graph_optimize(&other, r->graph, &desc, NULL, &r->diag);
    } else if (w->from_text || w->from_json) {
        status = w->from_text ? npu_graph_print(r->graph, &text) : npu_graph_print_json(r->graph, &text);
        status = status        ? status
                 : w->from_text ? npu_graph_parse(&other, text.data, text.len, NULL, &r->diag)
                                : npu_graph_parse_json(&other, text.data, text.len, NULL, &r->diag);
    }
    npu_text_free(&text);
    if (other) {
        replace(r, other);
    }
    return status;
}

static int alternate(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)label;
    return (int)(op->op % 2);
}

static npu_status plan(run *r, const way *w)
{
    npu_plan_desc desc = { .num_workers = w->has_threads ? 2 : 1 };
    npu_exec_desc exec = { .parallel = NULL };
    npu_sim_desc sim = { .emulate = npu_ref_backend() };
    npu_threads_desc threads = { .width = 2 };
    npu_status status = w->splits ? npu_sim_create(&r->sim, &sim) : NPU_OK;
    if (r->sim) {
        r->backends[desc.num_backends++] = npu_sim_backend(r->sim);
        desc.override = alternate;
    }
    r->backends[desc.num_backends++] = npu_ref_backend();
    desc.backends = r->backends;
    status = status || !w->has_threads ? status : npu_threads_create(&r->parallel, &threads);
    exec.parallel = r->parallel;
    status = status ? status : npu_plan_create(&r->plan, r->graph, &desc, &r->diag);
    status = status ? status : npu_program_create(&r->program, r->plan, &r->diag);
    return status ? status : npu_exec_create(&r->exec, r->program, &exec, &r->diag);
}

/* Models in half precision are fed what f32 files have, rounded. */
static npu_status set_input(run *r, uint32_t i, const npu_array *given)
{
    npu_array a = *given;
    const npu_spec *spec = npu_value_spec(r->graph, npu_graph_input(r->graph, i));
    size_t len = 0;
    if (given->spec.dtype != NPU_F32 || !spec || (spec->dtype != NPU_BF16 && spec->dtype != NPU_F16)) {
        return npu_exec_set_input_at(r->exec, i, &a);
    }
    npu_spec_len(spec, &len);
    uint16_t *half = r->halves[i] = (uint16_t *)malloc(len * sizeof *half + 1);
    for (size_t k = 0; half && k < len; k++) {
        float x = ((const float *)given->data)[k];
        half[k] = spec->dtype == NPU_F16 ? npu_f32_to_f16(x) : npu_f32_to_bf16(x);
    }
    a.spec = *spec;
    a.data = half;
    return half ? npu_exec_set_input_at(r->exec, i, &a) : NPU_ERR_NO_MEMORY;
}

static npu_status start(run *r, const model *m, const way *w)
{
    const tensors *in = w->has_other_inputs ? &m->other_in : &m->in;
    npu_bytes weights = m->weights.bytes;
    const char *json = (const char *)m->json.bytes.data;
    npu_status status = npu_graph_parse_json(&r->graph, json, m->json.bytes.size, NULL, &r->diag);
    if (status == NPU_OK && (w->from_text || w->from_json)) { /* weights are bound by name to what came back */
        status = rewrite(r, w);
    }
    if (status == NPU_OK && npu_graph_bind_safetensors(r->graph, &weights, 1, NULL, NULL)) {
        r->diag = *npu_graph_diag(r->graph);
        status = r->diag.status;
    }
    status = status || !w->optimizes ? status : rewrite(r, w);
    status = status ? status : plan(r, w);
    for (uint32_t i = 0; i < in->count && status == NPU_OK; i++) {
        status = set_input(r, i, &in->arrays[i]);
    }
    status = status ? status : npu_exec_run(r->exec);
    if (status && r->exec) {
        r->diag = *npu_exec_diag(r->exec);
    }
    return status;
}

static void stop(run *r)
{
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
    npu_plan_destroy(r->plan);
    npu_threads_destroy(r->parallel);
    npu_graph_destroy(r->graph);
    npu_sim_destroy(r->sim);
    for (uint32_t i = 0; i < MAX_TENSORS; i++) {
        free(r->halves[i]);
    }
}

/* ---- what came out ---- */

static npu_array output_of(const run *r, uint32_t i)
{
    npu_array a = { NULL, *npu_exec_output_spec(r->exec, i), npu_exec_output(r->exec, i, NULL) };
    return a;
}

static double largest(const npu_array *a)
{
    npu_array zero = { NULL, a->spec, NULL };
    npu_difference d;
    npu_tolerance t = { .rtol = 0, .has_rtol = true, .atol = 0, .has_atol = true, .equal_nan = true };
    size_t size = 0;
    npu_spec_size(&a->spec, &size);
    zero.data = calloc(size + 1, 1);
    npu_array_compare(a, &zero, &t, &d);
    free((void *)(uintptr_t)zero.data);
    return d.max_diff < 1e30 ? d.max_diff : 1.0; /* infinities are compared as such */
}

/* How far `a` is from what was computed in f64. */
static double distance(const npu_array *a, const npu_array *exact)
{
    npu_tolerance t = { .equal_nan = true };
    npu_difference d;
    npu_array_compare(a, exact, &t, &d);
    return d.max_diff;
}

static bool is_close(model *m, const way *w, const npu_array *got, const npu_array *want, const npu_array *exact)
{
    npu_tolerance t = { .has_rtol = true, .has_atol = true, .equal_nan = true };
    npu_difference d;
    t.rtol = m->tolerance > 0 ? m->tolerance : 1e-4;
    t.atol = (m->tolerance > 0 ? m->tolerance : 1e-5) * largest(want);
    npu_status status = npu_array_compare(got, want, &t, &d);
    if (status == NPU_ERR_MISMATCH && exact && distance(got, exact) <= 3 * distance(want, exact)) {
        return true;
    }
    if (status) {
        char words[256];
        snprintf(words, sizeof words, "%llu of %llu elements differ, element %llu is %g, expected %g (%s)",
                 (unsigned long long)d.num_wrong, (unsigned long long)d.num_elements, (unsigned long long)d.worst, d.got,
                 d.want, npu_status_name(status));
        return fail(m, w->name, words);
    }
    return true;
}

/* The bits of the whole run are kept; other runs may have to have the same, or, with other inputs, others. */
static bool check_bits(model *m, const way *w, const run *r)
{
    bool differs = false;
    for (uint32_t i = 0; i < m->out.count; i++) {
        size_t size = 0;
        const void *data = npu_exec_output(r->exec, i, &size);
        if (w == ways) {
            m->sizes[i] = size;
            m->bits[i] = malloc(size + 1);
            memcpy(m->bits[i], data ? data : "", data ? size : 0);
        } else {
            differs = differs || size != m->sizes[i] || (size && memcmp(m->bits[i], data, size) != 0);
        }
    }
    if (w->same_bits && differs) {
        return fail(m, w->name, "other bits");
    }
    return !w->has_other_inputs || differs || fail(m, w->name, "the same outputs");
}

static uint32_t count_partitions(const run *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < npu_plan_num_steps(r->plan); i++) {
        count += npu_plan_step(r->plan, i)->type == NPU_STEP_PARTITION;
    }
    return count;
}

static bool check_way(model *m, const way *w)
{
    run r;
    memset(&r, 0, sizeof r);
    const tensors *out = w->has_other_inputs ? &m->other_out : &m->out;
    const tensors *exact = w->has_other_inputs ? &m->other_exact : &m->exact;
    bool good = start(&r, m, w) == NPU_OK || fail(m, w->name, r.diag.message);
    if (good && npu_graph_num_outputs(r.graph) < out->count) {
        good = fail(m, w->name, "fewer outputs than PyTorch has");
    }
    for (uint32_t i = 0; i < out->count && good; i++) {
        npu_array got = output_of(&r, i);
        good = is_close(m, w, &got, &out->arrays[i], i < exact->count ? &exact->arrays[i] : NULL);
    }
    good = good && check_bits(m, w, &r);
    if (good && w == ways) {
        m->num_ops = npu_graph_num_ops(r.graph);
    }
    m->num_split = good && w->splits ? count_partitions(&r) : m->num_split;
    stop(&r);
    return good;
}

static bool check_model(const char *folder, const char *name, double tolerance)
{
    static model m; /* of the largest size */
    bool good;
    memset(&m, 0, sizeof m);
    m.folder = folder;
    m.name = name;
    m.tolerance = tolerance;
    good = load_model(&m) && (m.out.count > 0 || fail(&m, name, "no outputs"));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && good; i++) {
        good = (ways[i].has_other_inputs && !m.other_in.count) || check_way(&m, &ways[i]);
    }
    if (good) {
        printf("ok   %-28s %4u ops, %u outputs, %u partitions\n", name, (unsigned)m.num_ops, (unsigned)m.out.count,
               (unsigned)m.num_split);
    } else {
        printf("FAIL %-28s %s\n", name, m.failed);
    }
    fflush(stdout);
    free_model(&m);
    return good;
}

/* The folder has models.txt: a name and a tolerance in each line. */
int main(int argc, char **argv)
{
    char path[1024], name[128];
    npu_text list = npu_text_init(NULL);
    double tolerance;
    int counts[2] = { 0, 0 }, len;
    if (argc != 2) {
        fprintf(stderr, "zoo FOLDER\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/models.txt", argv[1]);
    if (npu_text_load(&list, path)) {
        fprintf(stderr, "%s: not there\n", path);
        return 2;
    }
    for (const char *at = list.data; at && sscanf(at, "%127s %lf\n%n", name, &tolerance, &len) == 2; at += len) {
        counts[check_model(argv[1], name, tolerance)]++;
    }
    npu_text_free(&list);
    printf("%d passed, %d failed\n", counts[1], counts[0]);
    return counts[0] || !counts[1] ? 1 : 0;
}
