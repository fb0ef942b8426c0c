/* Small models as PyTorch exports them, against what PyTorch computed (tests/models): each is loaded from JSON and run
   whole on the CPU, split between the simulated accelerator and the CPU in two ways, and again after a round trip
   through text and through JSON. A model passes, fails (other numbers) or crashes (a status other than ok). */
#include "rig.h"

enum { MAX_OUTPUTS = 16, MAX_NAMES = 96 };
typedef enum verdict { PASS, FAIL, CRASH } verdict;
static const char *const verdicts[] = { "PASS", "FAIL", "CRASH" };

/* One model of the file; everything points into its text. */
typedef struct entry {
    char name[64], category[32];
    double tolerance;
    const char *json;
    size_t json_len;
    long bounds[MAX_OUTPUTS];         /* of integer inputs */
    int num_inputs, num_weights, num_outputs;
    char weights[MAX_NAMES][64];      /* in the order of their seeds */
    const char *outputs[MAX_OUTPUTS]; /* "count numbers .." */
} entry;

static npu_text model_files;
static const char *models; /* what stands in them */
static char passed[8192]; /* names of the models that passed, each between blanks */
static int num_split; /* runs of which the accelerator ran a part and the CPU another */

/* Those of record.py, then those of the zoo. */
static void read_models(void)
{
    static const char *const paths[] = { "tests/models/models.txt", "tests/models/zoo.txt" };
    npu_text text = npu_text_init(NULL);
    model_files = npu_text_init(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        NPU_CHECK_STATUS(npu_text_load(&text, paths[i]), NPU_OK);
        npu_text_printf(&model_files, "%s", text.data ? text.data : "");
        npu_text_free(&text);
    }
    models = model_files.data;
}

/* Reads the entry at *at and moves on; false = there is none. */
static bool next_entry(const char **at, entry *e)
{
    const char *line = *at;
    memset(e, 0, sizeof *e);
    if (sscanf(line, "model %63s %31s %lf", e->name, e->category, &e->tolerance) != 3) {
        return false;
    }
    e->json = strchr(line, '\n') + 1;
    line = strchr(e->json, '\n') + 1;
    e->json_len = (size_t)(line - e->json);
    for (; strncmp(line, "end", 3) != 0; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "input", 5) == 0) {
            sscanf(line, "input %*s %ld", &e->bounds[e->num_inputs++]);
        } else if (strncmp(line, "weight", 6) == 0) {
            sscanf(line, "weight %63s", e->weights[e->num_weights++]);
        } else {
            e->outputs[e->num_outputs++] = line + 4;
        }
    }
    *at = strchr(line, '\n') + 1;
    return true;
}

/* ---- data: the formula of record.py ---- */

static uint32_t number(size_t i, uint32_t seed) { return ((uint32_t)i * 2654435761u + seed * 40503u + 12345u) >> 16; }

static void store(void *data, npu_dtype dtype, size_t i, double x)
{
    switch (dtype) {
    case NPU_F32: ((float *)data)[i] = (float)x; break;
    case NPU_I64: ((int64_t *)data)[i] = (int64_t)x; break;
    case NPU_I32: ((int32_t *)data)[i] = (int32_t)x; break;
    default: ((uint8_t *)data)[i] = (uint8_t)x; break;
    }
}

static double load(const void *data, npu_dtype dtype, size_t i)
{
    switch (dtype) {
    case NPU_F32: return (double)((const float *)data)[i];
    case NPU_F64: return ((const double *)data)[i];
    case NPU_I64: return (double)((const int64_t *)data)[i];
    case NPU_I32: return (double)((const int32_t *)data)[i];
    default: return (double)((const uint8_t *)data)[i];
    }
}

/* Data of a spec; the caller frees it. */
static void *make_data(const npu_spec *spec, uint32_t seed, long bound, float scale, bool is_variance)
{
    size_t len = 0;
    npu_spec_len(spec, &len);
    void *data = calloc(len + 1, 8);
    for (size_t i = 0; data && i < len; i++) {
        uint32_t n = number(i, seed);
        float x = ((float)n / 32768.0f - 1.0f) * scale;
        x = is_variance ? fabsf(x) + 0.5f : x;
        store(data, (npu_dtype)spec->dtype, i,
              npu_dtype_is_float((npu_dtype)spec->dtype) ? (double)x
              : spec->dtype == NPU_BOOL                  ? n % 2
                                                         : n % (uint32_t)(bound ? bound : 100));
    }
    return data;
}

typedef struct feeds {
    void *data[MAX_OUTPUTS + MAX_NAMES];
    int count;
    void *inputs[MAX_OUTPUTS];
} feeds;

/* Binds the weights by their names in the state dict and makes the inputs. */
static npu_status feed(npu_graph *g, const entry *e, feeds *f)
{
    npu_status status = NPU_OK;
    memset(f, 0, sizeof *f);
    for (int i = 0; i < e->num_weights && status == NPU_OK; i++) {
        npu_value v = npu_graph_find(g, e->weights[i]);
        size_t size = 0, len = strlen(e->weights[i]);
        if (npu_value_role(g, v) == NPU_ROLE_PARAM) {
            bool is_variance = len >= 11 && strcmp(e->weights[i] + len - 11, "running_var") == 0;
            npu_spec_size(npu_value_spec(g, v), &size);
            f->data[f->count] = make_data(npu_value_spec(g, v), 1000u + (uint32_t)i, 7, 0.3f, is_variance);
            status = npu_graph_bind_param(g, e->weights[i], f->data[f->count++], size);
        }
    }
    for (int i = 0; i < e->num_inputs; i++) {
        f->data[f->count] = f->inputs[i] =
            make_data(npu_value_spec(g, npu_graph_input(g, (uint32_t)i)), 1u + (uint32_t)i, e->bounds[i], 2.0f, false);
        f->count++;
    }
    return status;
}

static void unfeed(feeds *f)
{
    for (int i = 0; i < f->count; i++) {
        free(f->data[i]);
    }
}

/* ---- running ---- */

/* Compares output i of a run with what PyTorch computed; prints the first difference. */
static bool same_numbers(const npu_exec *exec, const entry *e, int i)
{
    const npu_spec *spec = npu_exec_output_spec(exec, (uint32_t)i); /* data may decide its size */
    const void *got = npu_exec_output(exec, (uint32_t)i, NULL);
    const char *at = e->outputs[i];
    char *end;
    size_t len = 0, count = (size_t)strtoul(at, &end, 10);
    npu_spec_len(spec, &len);
    if (len != count) {
        fprintf(stderr, "%s: output %d has %zu elements, expected %zu\n", e->name, i, len, count);
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        double x = load(got, (npu_dtype)spec->dtype, k), want = strtod(end, &end);
        if (!(x == want || (isnan(x) && isnan(want)) || fabs(x - want) <= e->tolerance * (1 + fabs(want)))) {
            fprintf(stderr, "%s: output %d[%zu] is %.9g, expected %.9g\n", e->name, i, k, x, want);
            return false;
        }
    }
    return true;
}

static bool is_split(const rig *r)
{
    bool seen[2] = { false, false };
    for (uint32_t i = 0; i < npu_plan_num_steps(r->plan); i++) {
        const npu_step *step = npu_plan_step(r->plan, i);
        seen[step->backend != 0] |= step->type == NPU_STEP_PARTITION;
    }
    return r->desc.num_backends > 1 && seen[0] && seen[1];
}

/* Plans, runs and compares what r->graph is. Bytes of output 0 go to `copy`, if it is not NULL. */
static verdict run_model(rig *r, const entry *e, const char *way, void *copy)
{
    feeds f;
    verdict v = PASS;
    npu_status status = feed(r->graph, e, &f);
    status = status ? status : rig_make(r);
    for (int i = 0; i < e->num_inputs && status == NPU_OK; i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(r->graph, npu_graph_input(r->graph, (uint32_t)i)), &size);
        status = npu_test_input_at(r->exec, (uint32_t)i, f.inputs[i], size);
    }
    status = status ? status : npu_exec_run(r->exec);
    if (status) {
        const char *words = r->diag.message[0] ? r->diag.message
                            : r->exec          ? npu_exec_diag(r->exec)->message
                                               : npu_graph_diag(r->graph)->message;
        fprintf(stderr, "%s, %s: %s: %s\n", e->name, way, npu_status_name(status), words);
        v = CRASH;
    }
    for (int i = 0; i < e->num_outputs && v == PASS; i++) {
        v = same_numbers(r->exec, e, i) ? PASS : FAIL;
    }
    if (v == PASS && copy) {
        size_t size = 0;
        const void *got = npu_exec_output(r->exec, 0, &size);
        memcpy(copy, got, size < 4096 ? size : 4096);
    }
    num_split += v == PASS && is_split(r);
    rig_unmake(r);
    unfeed(&f);
    return v;
}

static npu_graph *from_json(const char *json, size_t len, const char *name)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse_json(&g, json, len, npu_test_graph_desc(), &diag)) {
        fprintf(stderr, "%s: %s: line %d: %s\n", name, npu_status_name(diag.status), (int)diag.line, diag.message);
    }
    return g;
}

/* The graph once more, from its text or its JSON. */
static npu_graph *round_trip(const npu_graph *g, bool json, const char *name)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *again = NULL;
    npu_diag diag = { 0 };
    npu_status status = json ? npu_graph_print_json(g, &text) : npu_graph_print(g, &text);
    if (status == NPU_OK && !json) {
        status = npu_graph_parse(&again, text.data, text.len, npu_test_graph_desc(), &diag);
    } else if (status == NPU_OK) {
        again = from_json(text.data, text.len, name);
    }
    if (!again) {
        fprintf(stderr, "%s: %s: %s\n%s\n", name, npu_status_name(status), diag.message, text.data ? text.data : "");
    }
    npu_text_free(&text);
    return again;
}

static verdict worse(verdict a, verdict b) { return a > b ? a : b; }

/* Every other op goes to the accelerator. */
static int alternate(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx;
    (void)label;
    return (int)(op->op % 2);
}

/* One way, of the graph given, which is destroyed: with an accelerator or without, which may be made to take every
   other op, whatever it is. */
static verdict run_way(npu_graph *g, const entry *e, const char *way, uint32_t sims, bool alternates, void *copy)
{
    npu_sim_desc desc = { .emulate = npu_ref_backend() };
    rig r = rig_start(alternates ? &desc : NULL, sims);
    verdict v = CRASH;
    r.desc.override = alternates ? alternate : NULL;
    if (g) {
        npu_graph_destroy(r.graph);
        r.graph = g;
        v = run_model(&r, e, way, copy);
    }
    rig_end(&r);
    return v;
}

static verdict check_model(const entry *e)
{
    static char whole[4096], text[4096], json[4096];
    npu_graph *g = from_json(e->json, e->json_len, e->name), *text_g, *json_g;
    verdict v;
    if (!g) {
        return CRASH;
    }
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    text_g = round_trip(g, false, e->name);
    json_g = round_trip(g, true, e->name);
    memset(whole, 0, sizeof whole);
    memset(text, 0, sizeof text);
    memset(json, 0, sizeof json);
    v = run_way(g, e, "whole", 0, false, whole);
    v = worse(v, run_way(text_g, e, "from its text", 0, false, text));
    v = worse(v, run_way(json_g, e, "from its JSON", 0, false, json));
    v = worse(v, run_way(from_json(e->json, e->json_len, e->name), e, "split", 1, false, NULL));
    v = worse(v, run_way(from_json(e->json, e->json_len, e->name), e, "alternating", 1, true, NULL));
    if (v == PASS && (memcmp(whole, text, sizeof whole) != 0 || memcmp(whole, json, sizeof whole) != 0)) {
        fprintf(stderr, "%s: other bits after a round trip\n", e->name);
        v = FAIL;
    }
    return v;
}

/* ---- the tests ---- */

/* Adds the ops of a model that passed to a list of names between blanks: " conv2d relu ". */
static void add_ops(const entry *e, char *ops, size_t size)
{
    npu_graph *g = from_json(e->json, e->json_len, e->name);
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        const npu_op_def *def = npu_op_definition(g, (npu_op){ i });
        char word[64];
        snprintf(word, sizeof word, " %s ", def->schema->name);
        if (!strstr(ops, word) && strlen(ops) + strlen(word) < size) {
            strcat(ops, word + (ops[0] != 0));
        }
    }
    npu_graph_destroy(g);
}

/* Runs the models of a category (NULL = all); every op of `needed` must be in one that passes. Returns how many passed.
 */
static int check_category(const char *category, const char *needed)
{
    static char ops[8192];
    const char *at = models;
    int counts[3] = { 0 };
    entry e;
    ops[0] = 0;
    while (at && next_entry(&at, &e)) {
        if (!category || strcmp(category, e.category) == 0) {
            verdict v = check_model(&e);
            counts[v]++;
            if (v != PASS) {
                printf("%-32s %s\n", e.name, verdicts[v]);
            } else {
                snprintf(passed + strlen(passed), sizeof passed - strlen(passed), " %s ", e.name);
                add_ops(&e, ops, sizeof ops);
            }
        }
    }
    printf("%-16s %3d PASS %3d FAIL %3d CRASH\n", category ? category : "all", counts[PASS], counts[FAIL],
           counts[CRASH]);
    NPU_CHECK(counts[PASS] > 0);
    NPU_CHECK_EQ(counts[FAIL], 0);
    NPU_CHECK_EQ(counts[CRASH], 0);
    for (const char *s = needed; *s; s += strcspn(s, " "), s += *s == ' ') {
        char word[64];
        snprintf(word, sizeof word, " %.*s ", (int)strcspn(s, " "), s);
        if (!strstr(ops, word)) {
            fprintf(stderr, "no model of %s with%sran\n", category ? category : "all", word);
            NPU_CHECK(!"an op without a model");
        }
    }
    return counts[PASS];
}

static int total;

static void test_convolution(void)
{
    NPU_ITEM("S0.24");
    total += check_category("convolution", "conv1d conv2d conv3d conv_transpose2d convolution");
}

static void test_matrix(void)
{
    NPU_ITEM("S0.25");
    total += check_category("matrix", "linear addmm mm bmm matmul einsum");
}

static void test_activation(void)
{
    NPU_ITEM("S0.26");
    total += check_category("activation", "relu gelu silu sigmoid tanh leaky_relu hardswish");
}

static void test_normalisation(void)
{
    NPU_ITEM("S0.27");
    total += check_category("normalisation", "batch_norm layer_norm group_norm instance_norm");
}

static void test_pooling(void)
{
    NPU_ITEM("S0.28");
    total += check_category("pooling", "max_pool2d avg_pool2d adaptive_avg_pool2d adaptive_max_pool2d");
}

static void test_elementwise(void)
{
    NPU_ITEM("S0.29");
    total += check_category("elementwise", "add sub mul div pow sqrt rsqrt neg abs exp log clamp");
}

static void test_shape(void)
{
    NPU_ITEM("S0.30");
    total += check_category("shape", "view reshape permute transpose flatten squeeze unsqueeze expand repeat");
}

static void test_joining(void)
{
    NPU_ITEM("S0.31");
    total += check_category("joining", "cat split chunk stack");
}

static void test_reduction(void)
{
    NPU_ITEM("S0.32");
    total += check_category("reduction", "mean sum max min amax amin");
}

static void test_attention(void)
{
    NPU_ITEM("S0.33");
    total += check_category("attention", "softmax log_softmax scaled_dot_product_attention");
}

static void test_lookup(void)
{
    NPU_ITEM("S0.34");
    NPU_ITEM("S0.35");
    total += check_category("lookup", "embedding select slice index gather");
}

static void test_comparison(void)
{
    NPU_ITEM("S0.36");
    total += check_category("comparison", "eq ne lt gt where");
}

static void test_memory(void)
{
    NPU_ITEM("S0.37");
    total += check_category("memory", "to _to_copy contiguous clone");
}

static void test_recurrent(void)
{
    NPU_ITEM("S0.38");
    total += check_category("recurrent", "gru lstm");
}

static void test_other(void)
{
    NPU_ITEM("S0.39");
    total += check_category("other", "dropout sort topk lerp addcmul");
}

static void test_structures(void)
{
    total += check_category("writes", "slice_scatter index_put");
    total += check_category("structures", "conv2d batch_norm linear");
}

/* Architectures of examples/pytorch/models: training steps, rotations by complex numbers, filters, quantised nets. */
static void test_zoo(void)
{
    NPU_ITEM("R1.26");
    total += check_category("zoo", "polar linalg_cholesky_ex scatter_reduce");
}

/* The standard of the operator document: 120 models and more, all of them equal to PyTorch. */
static void test_count(void)
{
    NPU_ITEM("S0.40");
    printf("%d models pass, %d runs were split\n", total, num_split);
    NPU_CHECK(total >= 120);
    NPU_CHECK(num_split >= 100);
}

/* What attackers of an exporter try, and the models that the original project registered: each has passed above. */
static void check_passed(const char *const *names)
{
    for (; *names; names++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", *names);
        NPU_CHECK_THAT(strstr(passed, word), "%s has not passed", *names);
    }
}
#define CHECK_PASSED(...) check_passed((const char *const[]){ __VA_ARGS__, NULL })

static void test_attacks(void)
{
    NPU_ITEM("R0.26");
    NPU_ITEM("R0.27");
    NPU_ITEM("R0.29");
    CHECK_PASSED("conv3d", "instance_norm_after_conv", "adaptive_max_pool2d", "repeat", "chunk_first", "split_first",
                 "index_list");
    CHECK_PASSED("times_half", "minus_three", "over_two", "max_pool2d_padded", "transpose_4d");
    CHECK_PASSED("add_broadcast", "add_to_buffer", "transpose_3d", "sum_last", "conv2d_first_layer");
}

/* Long chains, in which errors would grow: their tolerance is 1e-6. */
static void test_chains(void)
{
    NPU_ITEM("R0.28");
    CHECK_PASSED("linear_relu_20", "linear_softmax_3", "layer_norm_linear_10");
}

static void test_free_attacks_and_registered_models(void)
{
    NPU_ITEM("R0.30");
    NPU_ITEM("R0.31");
    CHECK_PASSED("upsample_nearest", "upsample_bilinear", "upsample_conv", "conv_transpose2d", "einsum", "where_einsum",
                 "odd_batch_conv_net");
    CHECK_PASSED("self_attention", "cross_attention", "transformer_block", "siamese", "heads", "unrolled_rnn",
                 "tied_weights", "deep_residual", "dense", "mlp", "conv_relu_stack", "conv_bn_relu", "residual", "cache",
                 "experts", "gated_mlp", "rotary");
}

/* ---- the same models, built of layers ---- */

static void build_rnn(npu_model *m, npu_value x, npu_layer_rnn net)
{
    npu_model_output(m, "y", npu_model_add(m, &net.base, x));
}

static void build_gru(npu_model *m, npu_value x) { build_rnn(m, x, npu_layer_rnn_init("net", NPU_ATEN_GRU, 3, 4)); }
static void build_lstm(npu_model *m, npu_value x) { build_rnn(m, x, npu_layer_rnn_init("net", NPU_ATEN_LSTM, 3, 4)); }

static void build_gru_bidirectional(npu_model *m, npu_value x)
{
    npu_layer_rnn net = npu_layer_rnn_init("net", NPU_ATEN_GRU, 3, 2);
    net.bidirectional = net.batch_first = true;
    build_rnn(m, x, net);
}

static void build_lstm_two_layers(npu_model *m, npu_value x)
{
    npu_layer_rnn net = npu_layer_rnn_init("net", NPU_ATEN_LSTM, 3, 2);
    net.num_layers = 2;
    net.no_bias = net.batch_first = true;
    build_rnn(m, x, net);
}

static void build_sequential(npu_model *m, npu_value x, const npu_layer *const *layers, uint32_t num_layers)
{
    npu_layer_sequential all = npu_layer_sequential_init(NULL, layers, num_layers);
    npu_model_output(m, "y", npu_model_add(m, &all.base, x));
}

static void build_mlp(npu_model *m, npu_value x)
{
    npu_layer_linear a = npu_layer_linear_init(NULL, 6, 8), b = npu_layer_linear_init(NULL, 8, 8), c = npu_layer_linear_init(NULL, 8, 3);
    npu_layer_unary relu = npu_layer_unary_init(NULL, NPU_ATEN_RELU), tanh_ = npu_layer_unary_init(NULL, NPU_ATEN_TANH);
    build_sequential(m, x, (const npu_layer *[]){ &a.base, &relu.base, &b.base, &tanh_.base, &c.base }, 5);
}

static void build_conv_bn_relu(npu_model *m, npu_value x)
{
    npu_layer_conv2d conv = npu_layer_conv2d_init(NULL, 3, 4, 3);
    npu_layer_batch_norm bn = npu_layer_batch_norm_init(NULL, 4);
    npu_layer_relu relu = npu_layer_relu_init(NULL);
    conv.no_bias = true;
    build_sequential(m, x, (const npu_layer *[]){ &conv.base, &bn.base, &relu.base }, 3);
}

static void build_pool_flatten_linear(npu_model *m, npu_value x)
{
    npu_layer_max_pool2d pool = npu_layer_max_pool2d_init(NULL, 2);
    npu_layer_flatten flatten = npu_layer_flatten_init(NULL);
    npu_layer_linear fc = npu_layer_linear_init(NULL, 12, 3);
    build_sequential(m, x, (const npu_layer *[]){ &pool.base, &flatten.base, &fc.base }, 3);
}

static void build_linear_softmax(npu_model *m, npu_value x)
{
    npu_layer_linear fc = npu_layer_linear_init(NULL, 32, 32); /* each a layer of its own, by its index */
    npu_layer_softmax softmax = npu_layer_softmax_init(NULL, -1);
    build_sequential(m, x, (const npu_layer *[]){ &fc.base, &softmax.base, &fc.base, &softmax.base, &fc.base, &softmax.base }, 6);
}

/* relu(x + n(b(relu(a(x))))), three times: "0.a.weight" .. "2.n.running_var". */
static void build_deep_residual(npu_model *m, npu_value x)
{
    npu_layer_conv2d a = npu_layer_conv2d_init("a", 3, 3, 3), b = npu_layer_conv2d_init("b", 3, 3, 3);
    npu_layer_batch_norm n = npu_layer_batch_norm_init("n", 3);
    npu_layer_relu relu = npu_layer_relu_init(NULL);
    a.attrs.padding[0] = a.attrs.padding[1] = b.attrs.padding[0] = b.attrs.padding[1] = 1;
    const npu_layer *path[] = { &a.base, &relu.base, &b.base, &n.base };
    npu_layer_sequential inner = npu_layer_sequential_init("", path, 4);
    npu_layer_residual sum = npu_layer_residual_init("", &inner.base);
    npu_layer_sequential block = npu_layer_sequential_init(NULL, (const npu_layer *[]){ &sum.base, &relu.base }, 2);
    build_sequential(m, x, (const npu_layer *[]){ &block.base, &block.base, &block.base }, 3);
}

static const struct { const char *name; void (*build)(npu_model *m, npu_value x); } of_layers[] = {
    { "gru", build_gru }, { "gru_batch_first_bidirectional", build_gru_bidirectional }, { "lstm", build_lstm },
    { "lstm_two_layers_no_bias", build_lstm_two_layers }, { "mlp", build_mlp }, { "conv_bn_relu", build_conv_bn_relu },
    { "pool_flatten_linear", build_pool_flatten_linear }, { "linear_softmax_3", build_linear_softmax },
    { "deep_residual", build_deep_residual },
};

static bool find_entry(const char *name, entry *e)
{
    const char *at = models;
    while (next_entry(&at, e)) {
        if (strcmp(e->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* One of the names of a parameter is that of a weight in the state dict. */
static bool is_weight(const entry *e, const npu_graph *g, npu_value v)
{
    const char *name = npu_value_name(g, v);
    for (uint32_t i = 0; name; name = npu_value_other_name(g, v, i++)) {
        for (int k = 0; k < e->num_weights; k++) {
            if (strcmp(e->weights[k], name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The parameters that layers make, walked by index, are those of the state dict, and what they compute is PyTorch's. */
static void test_layers(void)
{
    NPU_ITEM("F56");
    for (size_t i = 0; i < sizeof of_layers / sizeof of_layers[0]; i++) {
        entry e;
        npu_model *m = npu_model_create(NULL);
        NPU_CHECK(find_entry(of_layers[i].name, &e));
        npu_graph *g = npu_model_graph(m), *json = from_json(e.json, e.json_len, e.name);
        of_layers[i].build(m, npu_model_input(m, "x", *npu_value_spec(json, npu_graph_input(json, 0))));
        NPU_CHECK_STR(npu_graph_diag(g)->message, "");
        NPU_CHECK_EQ(npu_graph_num_params(g), npu_graph_num_params(json));
        NPU_CHECK(npu_graph_num_params(g) > 0 && !npu_graph_param(g, npu_graph_num_params(g)).id);
        for (uint32_t k = 0; k < npu_graph_num_params(g); k++) {
            npu_value v = npu_graph_param(g, k);
            NPU_CHECK_EQ(npu_value_role(g, v), NPU_ROLE_PARAM);
            NPU_CHECK_THAT(is_weight(&e, g, v), "%s: '%s' is no weight of the model", e.name, npu_value_name(g, v));
        }
        rig r = rig_start(NULL, 0);
        npu_graph *none = r.graph;
        r.graph = g;
        NPU_CHECK_EQ(run_model(&r, &e, "of layers", NULL), PASS);
        r.graph = none;
        rig_end(&r);
        npu_graph_destroy(json);
        npu_model_destroy(m);
    }
}

static void bind_params(npu_graph *g, float *data)
{
    for (uint32_t i = 0; i < npu_graph_num_params(g); i++) {
        size_t size = 0;
        npu_value v = npu_graph_param(g, i);
        npu_spec_size(npu_value_spec(g, v), &size);
        fill(data, size / sizeof *data, i);
        for (size_t k = 0; k < size / sizeof *data; k++) {
            data[k] /= 4;
        }
        NPU_CHECK_STATUS(npu_graph_bind_param(g, npu_value_name(g, v), data, size), NPU_OK);
        data += size / sizeof *data;
    }
}

/* Rows one by one, or some at once, over a cache are what causal attention gives of all of them, also behind a norm. */
static void test_attention_with_a_cache(void)
{
    enum { N = 2, L = 5, E = 8 };
    static float weights[2][512], x[N * L * E], part[N * L * E];
    static const int64_t cuts[] = { 0, 1, 2, 5 };
    npu_model *all = npu_model_create(NULL), *steps = npu_model_create(NULL);
    npu_layer_attention plain = npu_layer_attention_init("att", E, 2);
    npu_layer_cached_attention cached = npu_layer_cached_attention_init("att", E, 2, 7);
    npu_layer_rms_norm norm = npu_layer_rms_norm_init("norm", E);
    npu_graph *g = npu_model_graph(steps);
    int64_t n = npu_graph_add_symbol(g, "rows", 1, L);
    npu_value in = npu_model_input(steps, "x", F32(N, n, E)), at = npu_model_input(steps, "at", npu_spec_tensor(NPU_I64, 1, &n));
    NPU_ITEM("F56");
    plain.is_causal = true;
    npu_model_output(all, "y", npu_model_add(all, &plain.base, npu_model_add(all, &norm.base, npu_model_input(all, "x", F32(N, L, E)))));
    in = npu_model_add(steps, &norm.base, in);
    npu_model_output(steps, "y", npu_model_add_list(steps, &cached.base, (npu_value[]){ in, at }, 2));
    NPU_CHECK_STR(npu_graph_diag(g)->message, "");
    NPU_CHECK_EQ(npu_graph_num_params(g), 9);
    bind_params(npu_model_graph(all), weights[0]);
    bind_params(g, weights[1]);
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *whole = NULL, *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&whole, npu_model_graph(all), &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    fill(x, N * L * E, 3);
    NPU_CHECK_STATUS(npu_test_input(whole, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(whole), NPU_OK);
    const float *want = (const float *)npu_exec_output(whole, 0, NULL);
    for (int again = 0; again < 2; again++) { /* another text, over the same states */
        for (int step = 0; step < 3; step++) {
            int64_t first = cuts[step], rows = cuts[step + 1] - first, positions[L];
            for (int64_t k = 0; k < rows; k++) {
                positions[k] = first + k;
                for (int64_t b = 0; b < N; b++) {
                    memcpy(part + (b * rows + k) * E, x + (b * L + first + k) * E, E * sizeof *x);
                }
            }
            NPU_CHECK_STATUS(npu_test_input_dims(exec, "x", 3, DIMS(N, rows, E), part), NPU_OK);
            NPU_CHECK_STATUS(npu_test_input_dims(exec, "at", 1, &rows, positions), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
            const float *got = (const float *)npu_exec_output(exec, 0, NULL);
            for (int64_t k = 0; got && k < N * rows * E; k++) {
                int64_t b = k / (rows * E), row = k / E % rows + first;
                NPU_CHECK_NEAR(got[k], want[(b * L + row) * E + k % E], 1e-5);
            }
        }
    }
    npu_exec_destroy(whole);
    npu_exec_destroy(exec);
    npu_model_destroy(all);
    npu_model_destroy(steps);
}

int main(void)
{
    read_models();
    NPU_RUN(test_convolution);
    NPU_RUN(test_matrix);
    NPU_RUN(test_activation);
    NPU_RUN(test_normalisation);
    NPU_RUN(test_pooling);
    NPU_RUN(test_elementwise);
    NPU_RUN(test_shape);
    NPU_RUN(test_joining);
    NPU_RUN(test_reduction);
    NPU_RUN(test_attention);
    NPU_RUN(test_lookup);
    NPU_RUN(test_comparison);
    NPU_RUN(test_memory);
    NPU_RUN(test_recurrent);
    NPU_RUN(test_other);
    NPU_RUN(test_structures);
    NPU_RUN(test_zoo);
    NPU_RUN(test_count);
    NPU_RUN(test_attacks);
    NPU_RUN(test_chains);
    NPU_RUN(test_free_attacks_and_registered_models);
    NPU_RUN(test_layers);
    NPU_RUN(test_attention_with_a_cache);
    npu_text_free(&model_files);
    return npu_test_done();
}
