/* The JSON of PyTorch exporters: calls put back together by their schemas, and what is wrong with a file said so. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

/* ---- documents in short ----

   A list of tensors is "x=float32[2,3] w=float32[4]"; an input of a node may also be "x" (by name), "split.1" (result 1
   of node split) and "null". A node is "name | op_type | inputs | outputs | attrs", attrs with ' for ". */

typedef struct document {
    const char *inputs, *weights, *outputs;
    const char *more;      /* further members: "'constants': {..}, " */
    const char *nodes[12];
} document;

static void put_tensor(npu_text *text, const char *s, int len)
{
    const char *equals = memchr(s, '=', (size_t)len), *dot = memchr(s, '.', (size_t)len);
    const char *bracket = memchr(s, '[', (size_t)len);
    if (len == 4 && memcmp(s, "null", 4) == 0) {
        npu_text_printf(text, "null");
    } else if (equals && bracket) {
        npu_text_printf(text, "{\"name\": \"%.*s\", \"shape\": %.*s, \"dtype\": \"%.*s\"}", (int)(equals - s), s,
                        (int)(s + len - bracket), bracket, (int)(bracket - equals - 1), equals + 1);
    } else if (dot && dot[1] >= '0' && dot[1] <= '9') {
        npu_text_printf(text, "{\"name\": \"?\", \"producer_node\": \"%.*s\", \"producer_output_idx\": %.*s}",
                        (int)(dot - s), s, (int)(s + len - dot - 1), dot + 1);
    } else {
        npu_text_printf(text, "{\"name\": \"%.*s\"}", len, s);
    }
}

static void put_tensors(npu_text *text, const char *key, const char *list, const char *end)
{
    const char *separator = "";
    npu_text_printf(text, "\"%s\": [", key);
    for (const char *s = list ? list : ""; s < end && *s;) {
        int len = (int)strcspn(s, " ");
        if (len) {
            npu_text_printf(text, "%s", separator);
            put_tensor(text, s, len);
            separator = ", ";
        }
        s += len + (s[len] == ' ');
    }
    npu_text_printf(text, "], ");
}

static const char *end_of(const char *s) { return s ? s + strlen(s) : NULL; }

static void put_json(npu_text *text, const char *s)
{
    for (; *s; s++) {
        npu_text_append(text, *s == '\'' ? "\"" : s, 1);
    }
}

static void put_node(npu_text *text, const char *line)
{
    const char *part[5], *end[5];
    for (int i = 0; i < 5; i++) {
        part[i] = line + strspn(line, " ");
        line = part[i] + strcspn(part[i], "|");
        end[i] = line;
        while (end[i] > part[i] && end[i][-1] == ' ') {
            end[i]--;
        }
        line += *line == '|';
    }
    npu_text_printf(text, "{\"name\": \"%.*s\", \"op_type\": \"%.*s\", ", (int)(end[0] - part[0]), part[0],
                    (int)(end[1] - part[1]), part[1]);
    put_tensors(text, "inputs", part[2], end[2]);
    put_tensors(text, "outputs", part[3], end[3]);
    npu_text_printf(text, "\"attrs\": {");
    put_json(text, part[4]);
    npu_text_printf(text, "}}");
}

static npu_text document_text(const document *d)
{
    npu_text text = npu_text_init(NULL);
    npu_text_printf(&text, "{\"model_name\": \"m\", ");
    put_tensors(&text, "graph_inputs", d->inputs, end_of(d->inputs));
    put_tensors(&text, "weights", d->weights, end_of(d->weights));
    put_tensors(&text, "graph_outputs", d->outputs, end_of(d->outputs));
    put_json(&text, d->more ? d->more : "");
    npu_text_printf(&text, "\"nodes\": [");
    for (int i = 0; i < 12 && d->nodes[i]; i++) {
        npu_text_printf(&text, i ? ",\n " : "\n ");
        put_node(&text, d->nodes[i]);
    }
    npu_text_printf(&text, "]}");
    for (char *c = text.data; *c; c++) {
        *c = *c == '\'' ? '"' : *c; /* names among the dims */
    }
    return text;
}

static npu_status try_document(npu_graph **g, const document *d, const npu_graph_desc *desc, npu_diag *diag)
{
    npu_text text = document_text(d);
    npu_status status = npu_graph_parse_json(g, text.data, text.len, desc, diag);
    npu_text_free(&text);
    return status;
}

static npu_text json_of(const npu_graph *g)
{
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print_json(g, &text), NPU_OK);
    return text;
}

/* Loads it; checks that what is written of it reads back to the same. */
static npu_graph *load_with(const document *d, const npu_graph_desc *desc)
{
    npu_diag diag = { 0 };
    npu_graph *g = NULL, *again = NULL;
    if (try_document(&g, d, desc, &diag)) {
        fprintf(stderr, "%s: line %d: %s\n", npu_status_name(diag.status), (int)diag.line, diag.message);
        NPU_CHECK(g);
        return NULL;
    }
    npu_text first = json_of(g), second = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    if (npu_graph_parse_json(&again, first.data, first.len, desc, &diag)) {
        fprintf(stderr, "%s: line %d: %s\n%s\n", npu_status_name(diag.status), (int)diag.line, diag.message,
                first.data);
        NPU_CHECK(again);
    } else {
        second = json_of(again);
        NPU_CHECK_STR(second.data, first.data);
    }
    npu_graph_destroy(again);
    npu_text_free(&first);
    npu_text_free(&second);
    return g;
}

static npu_graph *load(const document *d) { return load_with(d, NULL); }

static void refuse(const document *d, npu_status status, const char *words)
{
    npu_diag diag = { 0 };
    npu_graph *g = NULL;
    NPU_CHECK_STATUS(try_document(&g, d, NULL, &diag), status);
    NPU_CHECK(g == NULL);
    NPU_CHECK_STATUS(diag.status, status);
    if (!strstr(diag.message, words)) {
        NPU_CHECK_STR(diag.message, words);
    }
    npu_graph_destroy(g);
}

/* ---- running ---- */

typedef struct run {
    npu_exec *exec;
    npu_diag diag;
} run;

/* Inputs in order, of the sizes that the graph gives them. */
static run run_graph(const npu_graph *g, const void *const *inputs)
{
    run r;
    const npu_backend *cpu = npu_ref_backend();
    memset(&r, 0, sizeof r);
    if (!g || npu_exec_create_simple(&r.exec, g, &cpu, 1, &r.diag)) {
        fprintf(stderr, "%s\n", r.diag.message);
        NPU_CHECK(r.exec);
        return r;
    }
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        NPU_CHECK_STATUS(npu_test_input_at(r.exec, i, inputs[i], size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    return r;
}

/* Output i of the only run of g is these floats. */
static void check_floats(const run *r, uint32_t i, const float *want, size_t len)
{
    size_t size = 0;
    const float *got = r->exec ? (const float *)npu_exec_output(r->exec, i, &size) : NULL;
    NPU_CHECK_EQ(size, len * sizeof *want);
    for (size_t k = 0; got && k < len && k < size / sizeof *want; k++) {
        NPU_CHECK_NEAR(got[k], want[k], 1e-5);
    }
}

/* One node with x and perhaps y as inputs; its first output as floats. */
static void check_node(const char *inputs, const char *outputs, const char *node, const void *const *data,
                       const float *want, size_t len)
{
    document d = { inputs, "", outputs, NULL, { node } };
    npu_graph *g = load(&d);
    run r = run_graph(g, data);
    if (want) {
        check_floats(&r, 0, want, len);
    }
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
}
#define FLOATS(...) (const float[]){ __VA_ARGS__ }, sizeof((const float[]){ __VA_ARGS__ }) / sizeof(float)
#define DATA(...) (const void *const[]){ __VA_ARGS__ }

static const float x6[] = { 1, 2, 3, 4, 5, 6 }, y6[] = { 10, 20, 30, 40, 50, 60 }, z2[] = { 7, 8 };

/* ---- from schema to call ---- */

/* An op that only its schema describes: no type rule, no kernel, no line of code. */
static void test_schema_alone(void)
{
    static const npu_op_row row = {
        NPU_NS_USER << 16 | 1, 0, NULL,
        "axpy(Tensor a, Tensor? b=None, *, float alpha=1.5, int[] axes=[0,1]) -> (Tensor, Tensor)", "", NULL
    };
    npu_registry *registry = NULL;
    npu_graph_desc desc = { .name = NULL };
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "my", &row, NULL), NPU_OK);
    desc.registry = registry;
    document d = { "x=float32[2,3] y=float32[2,3]", "", "n_1=float32[5]", NULL,
                   { "n | my::axpy | x y | n_0=float32[4] n_1=float32[5] | 'alpha': 2" } };
    npu_graph *g = load_with(&d, &desc);
    npu_op_info info;
    npu_op_storage storage = { .capacity = 0 };
    NPU_ITEM("S0.1");
    NPU_ITEM("S0.2");
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, &storage), NPU_OK);
    NPU_CHECK_NEAR(npu_op_float(&info, "alpha", 0), 2, 0);
    NPU_CHECK_EQ(npu_op_list_len(&info, "axes"), 2);
    NPU_CHECK_EQ(npu_op_operand(&info, "b"), 1);
    NPU_CHECK_EQ(info.out[1]->dims[0], 5);
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* Two lists with holes, and a tensor given by keyword only: masks belong to their lists, keywords take inputs. */
static void test_lists_and_keywords(void)
{
    static const npu_op_row row = {
        NPU_NS_USER << 16 | 1, 0, NULL,
        "two(Tensor?[] a, Tensor?[] b, *, Tensor weight, Tensor? bias=None) -> Tensor", "", NULL
    };
    static const struct { const char *attrs; const char *operands; } rows[] = {
        { "'_tensor_list_sizes': [1, 1], '_tensor_list_none_masks': [[], [true, false]]", "x-yw" },
        { "'_tensor_list_sizes': [1, 1], '_tensor_list_none_masks': [[false, true], []]", "x-yw" },
        { "'_tensor_list_sizes': [1, 1], '_tensor_list_none_masks': [[true, false], [true, false]]", "-x-yw" },
        { "'_tensor_list_sizes': [1, 1]", "xyw" },
        { "'_tensor_list_sizes': [2, 0]", "xyw" },
    };
    npu_registry *registry = NULL;
    NPU_ITEM("R0.35");
    NPU_ITEM("R0.39");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "my", &row, NULL), NPU_OK);
    npu_graph_desc desc = { .registry = registry };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char node[256], got[16] = "";
        snprintf(node, sizeof node, "n | my.two | x y w | n=float32[1] | %s", rows[i].attrs);
        document d = { "x=float32[1] y=float32[1] w=float32[1]", "", "n=float32[1]", NULL, { node } };
        npu_graph *g = load_with(&d, &desc);
        for (uint32_t k = 0; k + 1 < npu_op_num_operands(g, (npu_op){ 1 }) && k < 15; k++) { /* bias is the last */
            npu_value v = npu_op_operand_value(g, (npu_op){ 1 }, k);
            got[k] = v.id ? npu_value_name(g, v)[0] : '-';
        }
        NPU_CHECK_STR(got, rows[i].operands);
        npu_graph_destroy(g);
    }
    npu_registry_destroy(registry);
}

/* A bare name is its first overload; an overload that does not exist is no op, and never another one. */
static void test_overloads(void)
{
    document d = { "x=float32[2]", "", "y=float32[2]", NULL, { "y | aten.relu | x | y=float32[2] | " } };
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_graph *g = load(&d);
    NPU_ITEM("R0.40");
    NPU_CHECK_STR(npu_op_definition(g, (npu_op){ 1 })->name, "aten.relu.default");
    npu_graph_destroy(g);
    d.nodes[0] = "y | aten.relu.bogus | x | y=float32[2] | ";
    g = load(&d);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_ERR_NOT_IMPLEMENTED);
    npu_graph_destroy(g);
}

/* An op that nothing describes loads, keeps its attributes, and fails only where something must execute it. */
static void test_unknown_op(void)
{
    document d = {
        "x=float32[6]",
        "",
        "y=float32[2]",
        NULL,
        { "y | my_lib.thing.v2 | x null x | y=float32[2] | 'k': 3, 'f': 0.5, 's': 'a', 'on': true, 'l': [1, 2], "
          "'n': null, 'deep': {'a': [[1]]}, 'mixed': [1, 'b']" }
    };
    npu_graph *g = load(&d);
    npu_op_info info;
    npu_op_storage storage = { .capacity = 0 };
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    NPU_ITEM("S0.2");
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, &storage), NPU_OK);
    NPU_CHECK_STR(info.name, "my_lib.thing.v2");
    NPU_CHECK_EQ(info.num_in, 3);
    NPU_CHECK(info.in[1] == NULL);
    NPU_CHECK_EQ(npu_op_int(&info, "k", 0), 3);
    NPU_CHECK_EQ(npu_op_int_at(&info, "l", 1), 2);
    NPU_CHECK(npu_op_str_is(&info, "deep", "{\"a\": [[1]]}"));
    NPU_CHECK(!npu_op_has(&info, "n"));
    npu_op_storage_free(&storage);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK(strstr(diag.message, "my_lib.thing.v2"));
    npu_graph_destroy(g);
}

/* Three spellings of a call run the same kernel, found by the schema that the name stands for. */
static void test_execution(void)
{
    NPU_ITEM("S0.3");
    NPU_ITEM("S0.9");
    NPU_ITEM("R0.16");
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[2,3]", "y | aten.sub.Tensor | x w | y=float32[2,3] | ",
               DATA(x6, y6), FLOATS(-9, -18, -27, -36, -45, -54));
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[2,3]", "y | aten::sub | w x | y=float32[2,3] | ",
               DATA(x6, y6), FLOATS(9, 18, 27, 36, 45, 54));
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[2,3]",
               "y | torch.ops.aten.sub.Tensor | x.0 w.0 | y=float32[2,3] | 'alpha': 2", DATA(x6, y6),
               FLOATS(-19, -38, -57, -76, -95, -114));
}

/* Positional and keyword arguments land where the schema has them, in whatever order the file gives them. */
static void test_positional_and_keyword(void)
{
    NPU_ITEM("S0.7");
    NPU_ITEM("S0.18");
    NPU_ITEM("S0.19");
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[2,3]",
               "y | aten.add.Tensor | x w | y=float32[2,3] | 'alpha': 0.5", DATA(x6, y6),
               FLOATS(6, 12, 18, 24, 30, 36));
    check_node("x=float32[2,3]", "y=float64[2]",
               "y | aten.sum.dim_IntList | x | y=float64[2] | 'dtype': 'torch.float64', 'keepdim': false, 'dim': [-1]",
               DATA(x6), NULL, 0);
    check_node("x=float32[1,1,2,3]", "y=float32[1,1,1,2]",
               "y | aten.avg_pool2d.default | x | y=float32[1,1,1,2] | 'kernel_size': [2, 2], 'stride': [1, 1]",
               DATA(x6), FLOATS(3, 4));
}

/* One tensor, a tuple and a list of tensors all become results 0..n-1. */
static void test_results(void)
{
    document d = { "x=float32[2,3]", "", "m_0=float32[2] m_1=int64[2] s_0=float32[1,3] s_1=float32[1,3]", NULL,
                   { "m | aten.max.dim | x | m_0=float32[2] m_1=int64[2] | 'dim': 1",
                     "s | aten.split.Tensor | x | s_0=float32[1,3] s_1=float32[1,3] | 'split_size': 1, 'dim': 0" } };
    npu_graph *g = load(&d);
    run r = run_graph(g, DATA(x6));
    const int64_t *index = r.exec ? (const int64_t *)npu_exec_output(r.exec, 1, NULL) : NULL;
    NPU_ITEM("S0.8");
    NPU_ITEM("R0.12");
    check_floats(&r, 0, FLOATS(3, 6));
    NPU_CHECK(index && index[0] == 2 && index[1] == 2);
    check_floats(&r, 2, FLOATS(1, 2, 3));
    check_floats(&r, 3, FLOATS(4, 5, 6));
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
}

/* ---- numbers in tensor slots ---- */

static void test_scalar_in_tensor_slot(void)
{
    NPU_ITEM("S0.10");
    NPU_ITEM("S0.20");
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.mul.Tensor | x | y=float32[2,3] | 'other': 0.5", DATA(x6),
               FLOATS(0.5f, 1, 1.5f, 2, 2.5f, 3));
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.sub.Tensor | x | y=float32[2,3] | 'other': 3.0", DATA(x6),
               FLOATS(-2, -1, 0, 1, 2, 3));
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.div.Tensor | x | y=float32[2,3] | 'other': 2", DATA(x6),
               FLOATS(0.5f, 1, 1.5f, 2, 2.5f, 3));
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.add.Tensor | x | y=float32[2,3] | 'other': 1, 'alpha': 10",
               DATA(x6), FLOATS(11, 12, 13, 14, 15, 16));
    /* the number may stand in front, too: 1 - x */
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.sub.Tensor | x | y=float32[2,3] | 'self': 1", DATA(x6),
               FLOATS(0, -1, -2, -3, -4, -5));
}

/* A number takes part in promotion by its kind only. */
static void test_scalar_promotion(void)
{
    static const struct { const char *in, *node, *out; } rows[] = {
        { "x=int32[3]", "y | aten.mul.Tensor | x | y=float32[3] | 'other': 0.5", "y=float32[3]" },
        { "x=float16[3]", "y | aten.mul.Tensor | x | y=float16[3] | 'other': 0.5", "y=float16[3]" },
        { "x=bfloat16[3]", "y | aten.add.Tensor | x | y=bfloat16[3] | 'other': 2", "y=bfloat16[3]" },
        { "x=uint8[3]", "y | aten.add.Tensor | x | y=uint8[3] | 'other': 300", "y=uint8[3]" },
        { "x=bool[3]", "y | aten.add.Tensor | x | y=int64[3] | 'other': 1", "y=int64[3]" },
        { "x=int64[3]", "y | aten.add.Tensor | x | y=int64[3] | 'other': true", "y=int64[3]" },
    };
    NPU_ITEM("S0.21");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = { rows[i].in, "", rows[i].out, NULL, { rows[i].node } };
        npu_graph_destroy(load(&d));
    }
    document tensor = {
        "x=float16[3] s=float32[1]", "", "y=float16[3]", NULL, { "y | aten.mul.Tensor | x s | y=float16[3] | " }
    };
    refuse(&tensor, NPU_ERR_SHAPE, "node 'y'"); /* a tensor of one element is no number */
}

/* ---- lists ---- */

static void test_tensor_lists(void)
{
    document lstm = {
        "x=float32[1,1,2] h=float32[1,1,1] c=float32[1,1,1]",
        "wi=float32[4,2] wh=float32[4,1] bi=float32[4] bh=float32[4]",
        "l_0=float32[1,1,1]",
        NULL,
        { "l | aten.lstm.input | x h c wi wh bi bh | l_0=float32[1,1,1] l_1=float32[1,1,1] l_2=float32[1,1,1] | "
          "'_tensor_list_sizes': [2, 4], 'has_biases': true, 'num_layers': 1, 'dropout': 0.0, 'train': false, "
          "'bidirectional': false, 'batch_first': false" }
    };
    NPU_ITEM("S0.11");
    NPU_ITEM("S0.12");
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[4,3]",
               "y | aten.cat.default | x w | y=float32[4,3] | '_tensor_list_sizes': [2]", DATA(x6, y6),
               FLOATS(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60));
    check_node("x=float32[2,3] w=float32[2,3]", "y=float32[2,2,3]",
               "y | aten.stack.default | w x | y=float32[2,2,3] | ", DATA(x6, y6),
               FLOATS(10, 20, 30, 40, 50, 60, 1, 2, 3, 4, 5, 6));
    npu_graph_destroy(load(&lstm));
    lstm.nodes[0] = "l | aten.lstm.input | x h c wi wh bi bh | l_0=float32[1,1,1] | '_tensor_list_sizes': [2, 3], "
                    "'has_biases': true, "
                    "'num_layers': 1, 'dropout': 0.0, 'train': false, 'bidirectional': false, 'batch_first': false";
    refuse(&lstm, NPU_ERR_ARITY, "7 input tensors");
    lstm.nodes[0] = "l | aten.lstm.input | x h c wi wh bi bh | l_0=float32[1,1,1] | 'has_biases': true, 'num_layers': "
                    "1, 'dropout': 0.0, "
                    "'train': false, 'bidirectional': false, 'batch_first': false";
    refuse(&lstm, NPU_ERR_ARITY, "_tensor_list_sizes");
    lstm.nodes[0] = "l | aten.cat.default | x | l=float32[1,1,2] | '_tensor_list_sizes': [-1]";
    refuse(&lstm, NPU_ERR_ARITY, "_tensor_list_sizes");
}

/* None among the indices, and how many tensors there are then. */
static void test_list_holes(void)
{
    static const int64_t i2[] = { 2, 0 };
    static const char *const bad[] = {
        "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': [[true, "
        "true]]",
        "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': [[true, "
        "false, false]]",
        "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': [[true, "
        "false], [true]]",
    };
    document d = { "x=float32[2,3] i=int64[2]", "", "y=float32[2,2]", NULL, { NULL } };
    NPU_ITEM("S0.13");
    NPU_ITEM("S0.14");
    NPU_ITEM("S0.23");
    check_node("x=float32[2,3] i=int64[2]", "y=float32[2,2]",
               "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': "
               "[[true, false]]",
               DATA(x6, i2), FLOATS(3, 1, 6, 4));
    check_node("x=float32[3,2] i=int64[2]", "y=float32[2,2]",
               "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': "
               "[[false, true]]",
               DATA(x6, i2), FLOATS(5, 6, 1, 2));
    check_node("x=float32[1,2,3] i=int64[2]", "y=float32[1,2,2]",
               "y | aten.index.Tensor | x i | y=float32[1,2,2] | '_tensor_list_sizes': [1], '_tensor_list_none_masks': "
               "[[true, true, false]]",
               DATA(x6, i2), FLOATS(3, 1, 6, 4));
    /* None between two tensors: the dim that they index comes first */
    check_node("x=float32[3,1,3] i=int64[2]", "y=float32[2,1]",
               "y | aten.index.Tensor | x i i | y=float32[2,1] | '_tensor_list_sizes': [2], '_tensor_list_none_masks': "
               "[[false, true, false]]",
               DATA(((const float[]){ 1, 2, 3, 4, 5, 6, 7, 8, 9 }), i2), FLOATS(9, 1));
    check_node("x=float32[3,2] i=int64[2]", "y=float32[2,2]",
               "y | aten.index.Tensor | x i | y=float32[2,2] | '_tensor_list_sizes': [1], "
               "'_tensor_list_none_masks': [[]]",
               DATA(x6, i2), FLOATS(5, 6, 1, 2));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        d.nodes[0] = bad[i];
        refuse(&d, NPU_ERR_ARITY, "_tensor_list_none_masks");
    }
}

/* ---- optional tensors ---- */

static void test_optional_tensors(void)
{
    NPU_ITEM("S0.15");
    NPU_ITEM("S0.16");
    NPU_ITEM("S0.17");
    check_node("x=float32[3,2] w=float32[1,2] b=float32[1]", "y=float32[3,1]",
               "y | aten.linear.default | x w b | y=float32[3,1] | ", DATA(x6, z2, y6), FLOATS(33, 63, 93));
    check_node("x=float32[3,2] w=float32[1,2]", "y=float32[3,1]", "y | aten.linear.default | x w | y=float32[3,1] | ",
               DATA(x6, z2), FLOATS(23, 53, 83));
    check_node("x=float32[3,2] w=float32[1,2]", "y=float32[3,1]",
               "y | aten.linear.default | x w null | y=float32[3,1] | ", DATA(x6, z2), FLOATS(23, 53, 83));
    check_node("x=float32[3,2] w=float32[1,2]", "y=float32[3,1]",
               "y | aten.linear.default | x w | y=float32[3,1] | 'bias': null", DATA(x6, z2), FLOATS(23, 53, 83));
    check_node("x=float32[2,3]", "y=float32[2,3]", "y | aten.clamp.Tensor | x | y=float32[2,3] | 'max': 3.0", DATA(x6),
               FLOATS(1, 2, 3, 3, 3, 3));
}

/* The optional tensors that are missing need not be the last ones. What the type rule cannot decide, the file has to
 * say. */
static void test_missing_optional(void)
{
    document d = {
        "x=float32[1,2,1,3] m=float32[2] v=float32[2]",
        "",
        "y=float32[1,2,1,3]",
        NULL,
        { "y | aten.batch_norm.default | x m v | y=float32[1,2,1,3] | 'training': false, 'momentum': 0.1, 'eps': 0.0, "
          "'cudnn_enabled': false" }
    };
    static const float mean[] = { 1, 4 }, var[] = { 1, 4 };
    npu_graph *g = load(&d); /* without weight and bias: only the running statistics can be the two */
    run r = run_graph(g, DATA(x6, mean, var));
    NPU_ITEM("R0.32");
    NPU_ITEM("R0.34");
    check_floats(&r, 0, FLOATS(0, 1, 2, 0, 0.5f, 1));
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
    d.nodes[0] =
        "y | aten.batch_norm.default | x m v | y=float32[1,2,1,3] | 'training': true, 'momentum': 0.1, 'eps': 0.0, "
        "'cudnn_enabled': false";
    refuse(&d, NPU_ERR_ARITY, "_optional_tensor_mask");
    d.nodes[0] =
        "y | aten.batch_norm.default | x m v | y=float32[1,2,1,3] | 'training': true, 'momentum': 0.1, 'eps': 0.0, "
        "'cudnn_enabled': false, '_optional_tensor_mask': [true, true, false, false]";
    npu_graph_destroy(load(&d));
    d.nodes[0] =
        "y | aten.batch_norm.default | x m v | y=float32[1,2,1,3] | 'training': true, 'momentum': 0.1, 'eps': 0.0, "
        "'cudnn_enabled': false, '_optional_tensor_mask': [true, false, false, false]";
    refuse(&d, NPU_ERR_ARITY, "_optional_tensor_mask");
    document clamp = {
        "x=float32[2,3] t=float32[]", "", "y=float32[2,3]", NULL, { "y | aten.clamp.Tensor | x t | y=float32[2,3] | " }
    };
    static const float three[] = { 3 };
    refuse(&clamp, NPU_ERR_ARITY, "2 ways");
    check_node(clamp.inputs, clamp.outputs,
               "y | aten.clamp.Tensor | x t | y=float32[2,3] | '_optional_tensor_mask': [false, true]", DATA(x6, three),
               FLOATS(1, 2, 3, 3, 3, 3));
    check_node(clamp.inputs, clamp.outputs, "y | aten.clamp.Tensor | x null t | y=float32[2,3] | ", DATA(x6, three),
               FLOATS(1, 2, 3, 3, 3, 3));
    check_node(clamp.inputs, clamp.outputs, "y | aten.clamp.Tensor | x t null | y=float32[2,3] | ", DATA(x6, three),
               FLOATS(3, 3, 3, 4, 5, 6));
    clamp.nodes[0] = "y | aten.clamp.Tensor | x t t t | y=float32[2,3] | ";
    refuse(&clamp, NPU_ERR_ARITY, "4 input tensors, its schema takes 1 to 3");
    static const char *const masks[] = { "[true]", "[]", "[false, true, false]", "[false, false]", "[true, true]" };
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) { /* too short, too long, other counts */
        char node[160];
        snprintf(node, sizeof node, "y | aten.clamp.Tensor | x t | y=float32[2,3] | '_optional_tensor_mask': %s",
                 masks[i]);
        clamp.nodes[0] = node;
        refuse(&clamp, NPU_ERR_ARITY, "_optional_tensor_mask");
    }
    /* what is a number among the attributes takes no tensor, whatever the mask says */
    check_node(clamp.inputs, clamp.outputs,
               "y | aten.clamp.Tensor | x t | y=float32[2,3] | '_optional_tensor_mask': [true, true], 'max': 4.0",
               DATA(x6, three), FLOATS(3, 3, 3, 4, 4, 4));
}

/* ---- attributes ---- */

/* A missing attribute takes the schema's default, and what comes after it still counts. */
static void test_defaults(void)
{
    document d = {
        "x=float32[1,1,3,3]",
        "",
        "y=float32[1,1,2,2]",
        NULL,
        { "y | aten.avg_pool2d.default | x | y=float32[1,1,2,2] | 'kernel_size': [2, 2], 'ceil_mode': true" }
    };
    NPU_ITEM("R0.33");
    npu_graph_destroy(load(&d));
    d.nodes[0] = "y | aten.avg_pool2d.default | x | y=float32[1,1,2,2] | 'kernel_size': [2, 2], 'ceil_mod': true";
    refuse(&d, NPU_ERR_ATTRIBUTE, "'ceil_mod'");
    d.nodes[0] = "y | aten.avg_pool2d.default | x | y=float32[1,1,2,2] | 'kernel_size': 'two'";
    refuse(&d, NPU_ERR_ATTRIBUTE, "kernel_size");
    d.nodes[0] = "y | aten.avg_pool2d.default | x | y=float32[1,1,2,2] | ";
    refuse(&d, NPU_ERR_ATTRIBUTE, "kernel_size");
}

/* A model exported without data creates its tensors on "meta": they are made where it runs. */
static void test_meta_device(void)
{
    static const struct { const char *node, *out; float want[4];
    } rows[] = {
        { "y | aten.full.default | | y=float32[4] | 'size': [4], 'fill_value': 2.5, 'device': 'meta', 'pin_memory': "
          "false",
          "y=float32[4]",
          { 2.5f, 2.5f, 2.5f, 2.5f } },
        { "y | aten.zeros.default | | y=float32[4] | 'size': [4], 'dtype': 'torch.float32', 'layout': 'torch.strided', "
          "'device': 'meta'",
          "y=float32[4]",
          { 0 } },
        { "y | aten.ones.default | | y=float32[4] | 'size': [4], 'device': 'meta:0'", "y=float32[4]", { 1, 1, 1, 1 } },
        { "y | aten.arange.default | | y=float32[4] | 'end': 4, 'dtype': 'float32', 'device': 'meta'",
          "y=float32[4]",
          { 0, 1, 2, 3 } },
        { "y | aten.full_like.default | x | y=float32[2,2] | 'fill_value': 7, 'memory_format': "
          "'torch.preserve_format', 'device': 'meta'",
          "y=float32[2,2]",
          { 7, 7, 7, 7 } },
        { "y | aten.ones_like.default | x | y=float32[2,2] | 'device': 'meta'", "y=float32[2,2]", { 1, 1, 1, 1 } },
        { "y | aten.to.device | x | y=float32[2,2] | 'device': 'meta', 'dtype': 'torch.float32'",
          "y=float32[2,2]",
          { 1, 2, 3, 4 } },
        { "y | aten.to.dtype_layout | x | y=float32[2,2] | 'layout': 'torch.strided', 'device': 'meta'",
          "y=float32[2,2]",
          { 1, 2, 3, 4 } },
    };
    NPU_ITEM("S0.22");
    NPU_ITEM("R0.36");
    NPU_ITEM("R0.37");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_node("x=float32[2,2]", rows[i].out, rows[i].node, DATA(x6), rows[i].want, 4);
        document d = { "x=float32[2,2]", "", rows[i].out, NULL, { rows[i].node } };
        npu_graph *g = load(&d);
        npu_op_info info;
        npu_op_storage storage = { .capacity = 0 };
        NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, &storage), NPU_OK);
        NPU_CHECK_EQ(npu_op_int(&info, "device", -1), 0); /* c10's number of the CPU */
        npu_op_storage_free(&storage);
        npu_graph_destroy(g);
    }
    document scalar = {
        "",
        "",
        "y=int64[]",
        NULL,
        { "y | aten.scalar_tensor.default | | y=int64[] | 's': 3, 'dtype': 'torch.int64', 'device': 'meta'" }
    };
    npu_graph_destroy(load(&scalar));
}

/* ---- getitem ---- */

static void test_getitem(void)
{
    document d = { "x=float32[2,3]", "", "g=int64[2] h=float32[2]", NULL,
                   { "m | aten.max.dim | x | m_0=float32[2] m_1=int64[2] | 'dim': 1",
                     "g | <built-in function getitem> | m.0 m.1 | g=int64[2] | 'index': 1",
                     "h | <built-in function getitem> | m.0 m.1 | h=float32[2] | " } };
    npu_graph *g = load(&d);
    run r = run_graph(g, DATA(x6));
    const int64_t *index = r.exec ? (const int64_t *)npu_exec_output(r.exec, 0, NULL) : NULL;
    NPU_ITEM("S0.42");
    NPU_ITEM("S0.43");
    NPU_ITEM("R0.13");
    NPU_CHECK(index && index[0] == 2 && index[1] == 2);
    check_floats(&r, 1, FLOATS(3, 6));
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
    d.nodes[1] = "g | <built-in function getitem> | m.0 m.1 | g=int64[2] | 'index': 2";
    refuse(&d, NPU_ERR_RANGE, "node 'g'");
    d.nodes[1] = "g | <built-in function getitem> | m.0 | g=int64[2] | 'index': 2";
    refuse(&d, NPU_ERR_RANGE, "node 'g'");
    d.nodes[1] = "g | <built-in function getitem> | m.0 | g=int64[2] | 'index': 1"; /* the node, named once */
    d.nodes[2] = "h | <built-in function getitem> | m.0 | h=float32[2] | 'index': 0";
    g = load(&d);
    r = run_graph(g, DATA(x6));
    index = r.exec ? (const int64_t *)npu_exec_output(r.exec, 0, NULL) : NULL;
    NPU_CHECK(index && index[0] == 2 && index[1] == 2);
    check_floats(&r, 1, FLOATS(3, 6));
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
}

/* Which result of op 1 op 2 reads; getitem reads the one that it selects. */
static uint32_t place_read(const npu_graph *g)
{
    npu_op_info info;
    npu_op_storage storage = { .capacity = 0 };
    uint32_t index = 99;
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 2 }, &info, &storage), NPU_OK);
    npu_value_producer(g, npu_op_operand_value(g, (npu_op){ 2 }, (uint32_t)npu_op_int(&info, "index", 0)), &index);
    npu_op_storage_free(&storage);
    return index;
}

#define GETITEM "r | <built-in function getitem> | "
#define LAYER "d=float32[2,3] x=float32[2,3] m=float32[2,1] s=float32[2,1] w=float32[3] b=float32[3]"
#define LAYER_NODE(outputs, mask) "n | aten.native_layer_norm_backward | d x m s w b | " outputs \
                                  " | 'normalized_shape': [3], 'output_mask': " mask
#define CONV "d=float32[1,3,4] x=float32[1,2,6] w=float32[3,2,3]"
#define CONV_NODE(outputs, mask) "n | aten.convolution_backward | d x w | " outputs \
                                 " | 'bias_sizes': [3], 'stride': [1], 'padding': [0], 'dilation': [1], " \
                                 "'transposed': false, 'output_padding': [0], 'groups': 1, 'output_mask': " mask
#define GROUP "d=float32[1,2,3] x=float32[1,2,3] m=float32[1,1] s=float32[1,1] w=float32[2]"
#define GROUP_NODE "n | aten.native_group_norm_backward | d x m s w | n_1=float32[2] n_2=float32[2] | " \
                   "'N': 1, 'C': 2, 'HxW': 3, 'group': 1, 'output_mask': [false, true, true]"
#define UNKNOWN_NODE "n | my.op | x | n_1=float32[2] n_3=float32[4] | "

/* A result that nobody uses may be listed with other dims, as embedding_bag's are; one that is used, or the first, may not. */
static void test_unused_results(void)
{
    static const struct { const char *listed, *reader, *out; npu_status status; } rows[] = {
        { "n_0=float32[2] n_1=int64[7]", "r | aten.relu | n.0 | r=float32[2] | ", "r=float32[2]", NPU_OK },
        { "n_0=float32[2] n_1=int64[7]", "r | aten.neg | n.1 | r=int64[2] | ", "r=int64[2]", NPU_ERR_SHAPE },
        { "n_0=float32[2] n_1=int64[7]", NULL, "n_1=int64[7]", NPU_ERR_SHAPE },
        { "n_0=float32[2] n_1=int32[2]", NULL, "n_0=float32[2]", NPU_ERR_SHAPE },
        { "n_0=float32[7] n_1=int64[2]", NULL, "n_1=int64[2]", NPU_ERR_SHAPE },
    };
    NPU_ITEM("F23");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char node[128];
        document d = { "x=float32[2,3]", "", rows[i].out, NULL, { node, rows[i].reader } };
        npu_graph *g = NULL;
        snprintf(node, sizeof node, "n | aten.max.dim | x | %s | 'dim': 1", rows[i].listed);
        NPU_CHECK_STATUS(try_document(&g, &d, NULL, NULL), rows[i].status);
        npu_graph_destroy(g);
    }
}

/* producer_output_idx and getitem count all results of an op, those that are None and not listed, too. */
static void test_none_results(void)
{
    static const struct { const char *inputs, *node, *reader, *out; uint32_t place; npu_status status; } rows[] = {
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          "r | aten.relu | n.1 | r=float32[3] | ", "r=float32[3]", 1, NPU_OK },
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 | r=float32[3] | 'index': 1", "r=float32[3]", 1, NPU_OK },
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 n.1 | r=float32[3] | 'index': 2", "r=float32[3]", 2, NPU_OK },
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 | r=float32[3] | 'index': -1", "r=float32[3]", 2, NPU_OK },
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 | r=float32[3] | ", "r=float32[3]", 0, NPU_ERR_SHAPE }, /* None */
        { LAYER, LAYER_NODE("n_1=float32[3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 | r=float32[3] | 'index': 3", "r=float32[3]", 0, NPU_ERR_RANGE },
        { LAYER, LAYER_NODE("n_0=float32[2,3] n_2=float32[3]", "[true, false, true]"),
          GETITEM "n.0 | r=float32[3] | 'index': 2", "r=float32[3]", 2, NPU_OK },
        { LAYER, LAYER_NODE("n_1=float32[3]", "[false, true, false]"), /* not listed: not read */
          GETITEM "n.1 | r=float32[3] | 'index': 1", "r=float32[3]", 1, NPU_OK },
        { CONV, CONV_NODE("n_1=float32[3,2,3] n_2=float32[3]", "[false, true, true]"),
          GETITEM "n.0 | r=float32[3,2,3] | 'index': 1", "r=float32[3,2,3]", 1, NPU_OK },
        { CONV, CONV_NODE("n_2=float32[3]", "[false, false, true]"), GETITEM "n.0 | r=float32[3] | 'index': 2",
          "r=float32[3]", 2, NPU_OK },
        { GROUP, GROUP_NODE, "r | aten.relu | n.2 | r=float32[2] | ", "r=float32[2]", 2, NPU_OK },
        { "x=float32[2]", UNKNOWN_NODE, "r | aten.relu | n.3 | r=float32[4] | ", "r=float32[4]", 1, NPU_OK },
        { "x=float32[2]", UNKNOWN_NODE, "r | aten.relu | n.2 | r=float32[4] | ", "r=float32[4]", 0, NPU_ERR_RANGE },
        { "x=float32[2]", UNKNOWN_NODE, GETITEM "n.1 | r=float32[2] | 'index': 1", "r=float32[2]", 0, NPU_OK },
        { "x=float32[2]", UNKNOWN_NODE, GETITEM "n.1 | r=float32[4] | 'index': 3", "r=float32[4]", 1, NPU_OK },
        { "x=float32[2]", UNKNOWN_NODE, GETITEM "n.1 | r=float32[4] | 'index': 2", "r=float32[4]", 0, NPU_ERR_RANGE },
        { "x=float32[2]", "n | my.op | x | a=float32[2] b=float32[4] | ", GETITEM "n.0 | r=float32[4] | 'index': 1",
          "r=float32[4]", 1, NPU_OK },
    };
    NPU_ITEM("F20");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = { rows[i].inputs, "", rows[i].out, NULL, { rows[i].node, rows[i].reader } };
        npu_graph *g = rows[i].status ? NULL : load(&d);
        if (rows[i].status) {
            refuse(&d, rows[i].status, "node 'r'");
        } else if (g && place_read(g) != rows[i].place) {
            NPU_CHECK_STR(rows[i].reader, "the result in that place");
        }
        npu_graph_destroy(g);
    }
}

/* ---- ops that read the memory of their operand ---- */

#define T "t | aten.t.default | x | t=float32[3,2] | "
#define FLAT "y=float32[6] | 'size': [6], 'stride': [1]"
#define STRIDED "y | aten.as_strided.default | "
#define FULL { 1, 2, 3, 4, 5, 6 }
static const struct { const char *nodes[4], *out; npu_status status; float want[6]; } storage_rows[] = {
    { { STRIDED "x | y=float32[3,2] | 'size': [3, 2], 'stride': [1, 3]" }, "[3,2]", NPU_OK, { 1, 4, 2, 5, 3, 6 } },
    { { T, STRIDED "t | y=float32[3,2] | 'size': [3, 2], 'stride': [1, 3], 'storage_offset': 0" }, "[3,2]", NPU_OK,
      { 1, 4, 2, 5, 3, 6 } },
    { { T, STRIDED "t | " FLAT }, "[6]", NPU_OK, FULL },
    { { T, "u | aten.unsqueeze.default | t | u=float32[3,1,2] | 'dim': 1", STRIDED "u | " FLAT }, "[6]", NPU_OK, FULL },
    { { "t | aten.permute.default | x | t=float32[3,2] | 'dims': [-1, 0]", STRIDED "t | " FLAT }, "[6]", NPU_OK, FULL },
    { { "s | aten.select.int | x | s=float32[3] | 'dim': 0, 'index': -1", STRIDED "s | y=float32[2] | 'size': [2], "
        "'stride': [1]" }, "[2]", NPU_OK, { 4, 5 } },
    { { "s | aten.select.int | x | s=float32[3] | 'dim': 0, 'index': 1", STRIDED "s | y=float32[2] | 'size': [2], "
        "'stride': [1], 'storage_offset': null" }, "[2]", NPU_OK, { 4, 5 } },
    { { "s | aten.select.int | x | s=float32[3] | 'dim': 0, 'index': 1", STRIDED "s | y=float32[2] | 'size': [2], "
        "'stride': [2], 'storage_offset': 1" }, "[2]", NPU_OK, { 2, 4 } }, /* from the start of the memory */
    { { "s | aten.slice.Tensor | x | s=float32[2,2] | 'dim': 1, 'start': 1", STRIDED "s | y=float32[2] | 'size': [2],"
        " 'stride': [3]" }, "[2]", NPU_OK, { 2, 5 } },
    { { "p | aten.split.Tensor | x | p_0=float32[2,2] p_1=float32[2,1] | 'split_size': 2, 'dim': 1",
        "s | <built-in function getitem> | p.0 | s=float32[2,1] | 'index': 1",
        STRIDED "s | y=float32[2] | 'size': [2], 'stride': [3]" }, "[2]", NPU_OK, { 3, 6 } },
    { { T, "v | aten.as_strided.default | t | v=float32[3] | 'size': [3], 'stride': [2]", STRIDED "v | " FLAT },
      "[6]", NPU_OK, FULL },
    { { "r | aten.relu.default | x | r=float32[2,3] | ", STRIDED "r | " FLAT }, "[6]", NPU_OK, FULL },
    { { T, "c | aten.contiguous.default | t | c=float32[3,2] | ", STRIDED "c | " FLAT }, "[6]", NPU_OK,
      { 1, 4, 2, 5, 3, 6 } },
    { { T, "c | aten.clone.default | t | c=float32[3,2] | 'memory_format': 'torch.contiguous_format'",
        STRIDED "c | " FLAT }, "[6]", NPU_OK, { 1, 4, 2, 5, 3, 6 } },
    /* a write reaches the memory */
    { { "a | aten.clone.default | x | a=float32[2,3] | ", "t | aten.t.default | a | t=float32[3,2] | ",
        "w | aten.add_.Tensor | a | w=float32[2,3] | 'other': 1", STRIDED "t | " FLAT }, "[6]", NPU_OK,
      { 2, 3, 4, 5, 6, 7 } },
    { { "a | aten.clone.default | x | a=float32[2,3] | ",
        "b | aten.as_strided_.default | a | b=float32[3,2] | 'size': [3, 2], 'stride': [1, 3]",
        "y | aten.relu.default | a | y=float32[3,2] | " }, "[3,2]", NPU_OK, { 1, 4, 2, 5, 3, 6 } },
    /* elementwise ops keep strides; of others nobody knows, or more would be needed than another operand */
    { { T, "r | aten.relu.default | t | r=float32[3,2] | ", STRIDED "r | " FLAT }, "[6]", NPU_ERR_UNSUPPORTED, { 0 } },
    { { T, "r | aten.relu.default | t | r=float32[3,2] | ", "n | aten.neg.default | r | n=float32[3,2] | ",
        STRIDED "n | " FLAT }, "[6]", NPU_ERR_UNSUPPORTED, { 0 } },
    { { T, "m | aten.mean.dim | t | m=float32[3,1] | 'dim': [1], 'keepdim': true",
        STRIDED "m | y=float32[2] | 'size': [2], 'stride': [1]" }, "[2]", NPU_OK, { 2.5f, 3.5f } }, /* one order only */
    /* what is made new is row-major, whatever it takes its dtype from */
    { { T, "m | aten.mm.default | t x | m=float32[3,3] | ",
        "n | aten.new_ones.default | m | n=float32[3,2] | 'size': [3, 2]", STRIDED "n | " FLAT }, "[6]", NPU_OK, { 1, 1, 1, 1, 1, 1 } },
    { { T, "c | aten.clone.default | t | c=float32[3,2] | ", STRIDED "c | " FLAT }, "[6]", NPU_ERR_UNSUPPORTED, { 0 } },
    { { T, "r | aten.reshape.default | t | r=float32[6] | 'shape': [6]", STRIDED "r | " FLAT }, "[6]",
      NPU_ERR_UNSUPPORTED, { 0 } },
    { { "e | aten.expand.default | x | e=float32[2,2,3] | 'size': [2, 2, 3]", STRIDED "e | " FLAT }, "[6]",
      NPU_ERR_UNSUPPORTED, { 0 } },
    { { "s | aten.select.int | x | s=float32[3] | 'dim': 0, 'index': 1", STRIDED "s | " FLAT }, "[6]", NPU_ERR_RANGE,
      { 0 } },
    { { T, "y | aten.as_strided_scatter.default | t z | y=float32[3,2] | 'size': [2], 'stride': [1]" }, "[3,2]",
      NPU_ERR_UNSUPPORTED, { 0 } },
    { { "y | aten.as_strided_scatter.default | x z | y=float32[2,3] | 'size': [2], 'stride': [1]" }, "[2,3]", NPU_OK,
      { 1, 2, 3, 4, 5, 6 } },
    { { T, "y | aten.resize_.default | t | y=float32[2] | 'size': [2]" }, "[2]", NPU_ERR_UNSUPPORTED, { 0 } },
    { { T, "y | aten.as_strided_.default | t | y=float32[2] | 'size': [2], 'stride': [1]" }, "[2]",
      NPU_ERR_UNSUPPORTED, { 0 } },
    { { "y | aten.set_.source_Tensor | x z | y=float32[2] | " }, "[2]", NPU_ERR_UNSUPPORTED, { 0 } },
};

/* PyTorch's as_strided sees the memory of which its operand is a view: that where the views tell it, else refused. */
static void test_storage(void)
{
    static const float z[] = { 1, 2 };
    NPU_ITEM("F21");
    for (size_t i = 0; i < sizeof storage_rows / sizeof storage_rows[0]; i++) {
        char out[40];
        document d = { "x=float32[2,3] z=float32[2]", "", out, NULL, { NULL } };
        npu_graph *g;
        run r;
        size_t len = storage_rows[i].out[1] == '2' && storage_rows[i].out[2] == ']' ? 2 : 6;
        snprintf(out, sizeof out, "y=float32%s", storage_rows[i].out);
        for (int n = 0; n < 4; n++) {
            d.nodes[n] = storage_rows[i].nodes[n];
        }
        if (storage_rows[i].status) {
            refuse(&d, storage_rows[i].status, "");
            continue;
        }
        g = load(&d);
        r = run_graph(g, DATA(x6, z));
        check_floats(&r, 0, storage_rows[i].want, len);
        npu_exec_destroy(r.exec);
        npu_graph_destroy(g);
    }
}

/* What reads the memory of a value that PyTorch would lay out otherwise has no place in a file. */
static void test_print_storage(void)
{
    static const struct { npu_status status; const char *lines; } rows[] = {
        { NPU_OK, "y = aten.as_strided(x, [6], [1])\n" },
        { NPU_OK, "v = aten.view(x, [6])\ny = aten.as_strided(v, [6], [1])\n" },
        { NPU_ERR_UNSUPPORTED, "t = aten.t(x)\ny = aten.as_strided(t, [6], [1])\n" },
        { NPU_ERR_UNSUPPORTED, "s = aten.select.int(x, 0, 1)\ny = aten.as_strided(s, [2], [1])\n" },
#define SQUARE "t = aten.t(x)\nm = aten.mm(x, t)\ne = aten.new_empty_strided(x, [2, 2], [2, 1])\n"
        { NPU_OK, SQUARE "c = aten.copy(e, m)\ny = aten.as_strided(c, [2], [1])\n" },
        { NPU_OK, SQUARE "c = aten.as_strided_scatter(e, m, [2, 2], [2, 1])\ny = aten.as_strided(c, [2], [1])\n" },
        { NPU_ERR_UNSUPPORTED, "s = aten.select.int(x, 1, 0)\nz = aten.relu(s)\nc = aten.copy(s, z)\n"
                               "y = aten.as_strided(c, [2], [1])\n" },
        { NPU_OK, "f = aten.new_zeros(x, [6])\nt = aten.permute(x, [1, 0])\n"
                  "s = aten.as_strided_scatter(f, t, [3, 2], [2, 1])\ny = aten.as_strided(s, [2, 3], [3, 1])\n" },
        { NPU_ERR_UNSUPPORTED, SQUARE "c = aten.copy(m, e)\ny = aten.as_strided(c, [2], [1])\n" },
        { NPU_OK, "y = aten.resize(x, [2, 2])\n" },
        { NPU_ERR_UNSUPPORTED, "v = aten.view(x, [6])\ny = aten.resize(v, [2])\n" }, /* as reading is */
    };
    NPU_ITEM("F21");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_init(NULL), json = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_text_printf(&text, "graph m\ninput x : f32[2,3]\n%soutput y = y\n", rows[i].lines);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_print_json(g, &json), rows[i].status);
        npu_graph_destroy(g);
        if (rows[i].status == NPU_OK) {
            NPU_CHECK_STATUS(npu_graph_parse_json(&g, json.data, json.len, npu_test_graph_desc(), NULL), NPU_OK);
            npu_graph_destroy(g);
        }
        npu_text_free(&text);
        npu_text_free(&json);
    }
}

/* Outputs keep their names, whatever they are values of. */
static void test_output_names(void)
{
    static const char text[] = "npu_ir 1\ngraph m\ninput x : f32[2]\nconst c : f32[2] {1, 2}\nparam w : f32[2]\n"
                               "state s : f32[2]\nr = aten.relu.default(x)\noutput a = c\noutput b = w\noutput d = s\n"
                               "output e = x\noutput f = r\noutput g = c\noutput c = c\noutput w = w\n";
    npu_graph *g = NULL, *again = NULL;
    npu_text json;
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    json = json_of(g);
    NPU_CHECK_STATUS(npu_graph_parse_json(&again, json.data, json.len, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_outputs(again), npu_graph_num_outputs(g));
    for (uint32_t i = 0; i < npu_graph_num_outputs(g); i++) {
        npu_value now = npu_graph_output(again, i), was = npu_graph_output(g, i);
        NPU_CHECK_STR(npu_graph_output_name(again, i), npu_graph_output_name(g, i));
        NPU_CHECK_EQ(npu_value_role(again, now), npu_value_role(g, was));
        NPU_CHECK(npu_value_role(g, was) == NPU_ROLE_TEMPORARY ||
                  strcmp(npu_value_name(again, now), npu_value_name(g, was)) == 0);
    }
    npu_text_free(&json);
    npu_graph_destroy(g);
    npu_graph_destroy(again);
}

/* A getitem over some results of an op, as a program may build it, is none of torch's: its index counts its list. */
static void test_getitem_of_a_part(void)
{
    static const char text[] = "npu_ir 1\ngraph m\ninput x : f32[3,2]\na, b, c = aten.unbind.int(x)\n"
                               "y = npu.getitem([b, c], index=1)\nz = npu.getitem([c])\noutput y = y\noutput z = z\n";
    npu_graph *g = NULL, *again = NULL;
    npu_text json, first = npu_text_init(NULL), second = npu_text_init(NULL);
    NPU_ITEM("F20");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    json = json_of(g);
    NPU_CHECK_STATUS(npu_graph_parse_json(&again, json.data, json.len, npu_test_graph_desc(), NULL), NPU_OK);
    npu_graph_print(g, &first);
    npu_graph_print(again, &second);
    NPU_CHECK(again && strstr(second.data, "npu.getitem(results=[b, c], index=1)"));
    NPU_CHECK_STR(strstr(second.data, "input"), strstr(first.data, "input"));
    npu_text_free(&json);
    npu_text_free(&first);
    npu_text_free(&second);
    npu_graph_destroy(g);
    npu_graph_destroy(again);
}

/* ---- weights and constants ---- */

static void test_weights(void)
{
    document d = { "x=float32[3,2]", "fc.weight=float32[1,2] fc.bias=float32[1]", "y=float32[3,1]",
                   "'weight_name_mapping': {'p_fc_weight': 'fc.weight', 'p_fc_bias': 'fc.bias'}, ",
                   { "y | aten.linear.default | x.0 p_fc_weight p_fc_bias | y=float32[3,1] | " } };
    static const float w[] = { 7, 8 }, b[] = { 10 };
    npu_graph *g = load(&d), *copy = NULL;
    NPU_CHECK_EQ(npu_graph_find(g, "p_fc_weight").id, npu_graph_find(g, "fc.weight").id);
    NPU_CHECK_STR(npu_value_name(g, npu_graph_find(g, "p_fc_weight")), "fc.weight");
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_ERR_MISSING_WEIGHT);
    NPU_ITEM("S0.54");
    NPU_ITEM("R0.10");
    NPU_ITEM("R0.11");
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "p_fc_weight", w, sizeof w), NPU_OK); /* by either name */
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.bias", b, sizeof b), NPU_OK);
    run r = run_graph(g, DATA(x6));
    check_floats(&r, 0, FLOATS(33, 63, 93));
    npu_exec_destroy(r.exec);
    NPU_CHECK_STATUS(npu_graph_rewrite(&copy, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_graph_find(copy, "p_fc_bias").id, npu_graph_find(copy, "fc.bias").id);
    npu_graph_destroy(copy);
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_parse(&copy, text.data, text.len, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_EQ(npu_graph_find(copy, "p_fc_bias").id, npu_graph_find(copy, "fc.bias").id);
    npu_graph_destroy(copy);
    npu_text_free(&text);
    npu_graph_destroy(g);
    d.weights = "p_fc_weight=float32[1,2] p_fc_bias=float32[1]"; /* listed by placeholder */
    g = load(&d);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "fc.weight", w, sizeof w), NPU_OK);
    npu_graph_destroy(g);
    d.weights = "fc.weight=float32[1,2]";
    refuse(&d, NPU_ERR_NOT_FOUND, "fc.bias");
}

/* Every dtype's bits come back. */
static void test_constants(void)
{
    static const struct { const char *dtype, *data; uint8_t bytes[16]; size_t size; } rows[] = {
        { "float32", "[0.1, -0.0]", { 0xcd, 0xcc, 0xcc, 0x3d, 0, 0, 0, 0x80 }, 8 },
        { "bfloat16", "[1.5, Infinity]", { 0xc0, 0x3f, 0x80, 0x7f }, 4 },
        { "float16", "[65504, 6e-8]", { 0xff, 0x7b, 1, 0 }, 4 },
        { "float64", "[0.1]", { 0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f }, 8 },
        { "float64", "[18446744073709551615]", { 0, 0, 0, 0, 0, 0, 0xf0, 0x43 }, 8 },
        { "float32", "7", { 0, 0, 0xe0, 0x40 }, 4 },
        { "uint8", "[255, 0, 128]", { 255, 0, 128 }, 3 },
        { "int8", "[-128, 127]", { 0x80, 0x7f }, 2 },
        { "int16", "[-2]", { 0xfe, 0xff }, 2 },
        { "int32", "[[1], [2]]", { 1, 0, 0, 0, 2, 0, 0, 0 }, 8 },
        { "int64", "[-9223372036854775808]", { 0, 0, 0, 0, 0, 0, 0, 0x80 }, 8 },
        { "uint64", "[18446744073709551615]", { 255, 255, 255, 255, 255, 255, 255, 255 }, 8 },
        { "bool", "[true, false, 1]", { 1, 0, 1 }, 3 },
        { "complex64", "[[1.0, -2.0]]", { 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0 }, 8 },
        { "complex128", "[[1.0, -2.0]]", { 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0 }, 16 },
        { "float32", "'0x010080ff'", { 1, 0, 0x80, 0xff }, 4 }, /* a NaN that no number stands for */
    };
    NPU_ITEM("R0.19");
    NPU_ITEM("R0.38");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char more[200];
        bool is_hex = rows[i].data[0] == '\'';
        snprintf(more, sizeof more, "'constants': {'k': {'data': %s, 'dtype': '%s'}}, ", rows[i].data, rows[i].dtype);
        document d = { "x=float32[1]", is_hex ? "k=float32[1]" : "", "x=float32[1]", more, { NULL } };
        npu_graph *g = load(&d);
        size_t size = 0;
        const uint8_t *data = (const uint8_t *)npu_value_data(g, npu_graph_find(g, "k"), &size);
        const uint16_t one = 1;
        bool is_little = *(const uint8_t *)&one == 1;
        NPU_CHECK_EQ(size, rows[i].size);
        for (size_t k = 0; data && is_little && k < size && k < rows[i].size; k++) {
            NPU_CHECK_EQ(data[k], rows[i].bytes[k]);
        }
        npu_graph_destroy(g);
    }
}

/* Numbers that the dtype does not hold, lists of another shape, and what is no list of numbers. */
static void test_bad_constants(void)
{
    static const struct { const char *dtype, *data; npu_status status; } rows[] = {
        { "int8", "[128]", NPU_ERR_DTYPE }, { "int8", "[-129]", NPU_ERR_DTYPE }, { "uint8", "[256]", NPU_ERR_DTYPE },
        { "uint8", "[-1]", NPU_ERR_DTYPE }, { "int32", "[2147483648]", NPU_ERR_DTYPE },
        { "uint64", "[-1]", NPU_ERR_DTYPE }, { "uint64", "[18446744073709551616]", NPU_ERR_DTYPE },
        { "int64", "[9223372036854775808]", NPU_ERR_DTYPE }, { "bool", "[2]", NPU_ERR_DTYPE },
        { "bool", "[0.5]", NPU_ERR_DTYPE }, { "bool", "['true']", NPU_ERR_DTYPE }, { "int32", "[1.5]", NPU_ERR_DTYPE },
        { "float32", "['a']", NPU_ERR_DTYPE }, { "float32", "[null]", NPU_ERR_DTYPE },
        { "float32", "{}", NPU_ERR_DTYPE }, { "float32", "'01020304'", NPU_ERR_PARSE },
        { "float32", "'0x0102030g'", NPU_ERR_PARSE }, { "float32", "'0'", NPU_ERR_PARSE },
        { "complex64", "1", NPU_ERR_SHAPE }, { "float32", "null", NPU_ERR_CONVERSION },
        { "complex64", "[[[[[[[[[[1, 2]]]]]]]]]]", NPU_ERR_SHAPE },
        { "nope", "[1]", NPU_ERR_DTYPE }, { "complex64", "[1.0]", NPU_ERR_SHAPE },
        { "complex64", "[[1.0]]", NPU_ERR_SHAPE }, { "float32", "[[1],[1,2]]", NPU_ERR_SHAPE },
        { "float32", "[[1],2]", NPU_ERR_SHAPE }, { "float32", "[[[[[[[[[1]]]]]]]]]", NPU_ERR_RANK },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char more[200];
        document d = { "x=float32[1]", rows[i].data[0] == '\'' ? "k=float32[1]" : "", "x=float32[1]", more, { NULL } };
        snprintf(more, sizeof more, "'constants': {'k': {'data': %s, 'dtype': '%s'}}, ", rows[i].data, rows[i].dtype);
        refuse(&d, rows[i].status, "constant 'k'");
    }
}

/* A tensor made in forward() of a model without data has none either: said by name, with what to do instead. */
static void test_constant_without_data(void)
{
    document d = { "x=float32[2]",
                   "lifted_0=float32[2]",
                   "y=float32[2]",
                   "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, ",
                   { "y | aten.add.Tensor | x.0 c_lifted_0 | y=float32[2] | " } };
    NPU_ITEM("S0.53");
    NPU_ITEM("S0.54");
    refuse(&d, NPU_ERR_CONVERSION, "constant 'lifted_0' has no data");
    refuse(&d, NPU_ERR_CONVERSION, "register_buffer");
    d.more = "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, 'constants': {'lifted_0': {'data': [5, 6], 'dtype': "
             "'float32'}}, ";
    npu_graph *g = load(&d);
    run r = run_graph(g, DATA(x6));
    check_floats(&r, 0, FLOATS(6, 8));
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
    d.more = "'constants': {'lifted_0': {'data': null, 'dtype': 'float32'}}, ";
    refuse(&d, NPU_ERR_CONVERSION, "lifted_0");
    d.more = "'weight_name_mapping': {'b_buffer': 'lifted_0'}, "; /* a buffer: its data is bound later */
    d.nodes[0] = "y | aten.add.Tensor | x.0 b_buffer | y=float32[2] | ";
    npu_graph_destroy(load(&d));
    static const char *const unlisted[][2] = { /* where the file does not list it among the weights either */
        { "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, ", "y | aten.add.Tensor | x c_lifted_0 | y=float32[2] | " },
        { "", "y | aten.add.Tensor | x c_lifted_tensor_0 | y=float32[2] | " },
        { "", "y | aten.add.Tensor | x model.lifted_tensor_0 | y=float32[2] | " },
        { "", "y | aten.add.Tensor | x _tensor_constant0 | y=float32[2] | " },
    };
    d.weights = "";
    NPU_ITEM("F30");
    for (size_t i = 0; i < sizeof unlisted / sizeof unlisted[0]; i++) {
        d.more = unlisted[i][0];
        d.nodes[0] = unlisted[i][1];
        refuse(&d, NPU_ERR_CONVERSION, "register_buffer");
    }
    d.nodes[0] = "y | aten.add.Tensor | x b_buffer | y=float32[2] | ";
    refuse(&d, NPU_ERR_NOT_FOUND, "'b_buffer' is no weight");
}

/* Constants of the caller: under either name, listed as weights or not, and before those of the file. */
static void test_given_constants(void)
{
    static const float data[] = { 5, 6 };
    document d = { "x=float32[2]",
                   "lifted_0=float32[2]",
                   "y=float32[2]",
                   "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, ",
                   { "y | aten.add.Tensor | x.0 c_lifted_0 | y=float32[2] | " } };
    static const char *const more[] = {
        "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, ",
        "'weight_name_mapping': {'c_lifted_0': 'lifted_0'}, 'constants': {'lifted_0': {'data': "
        "[1, 1], 'dtype': 'float32'}}, "
    };
    npu_array given[2] = { { "lifted_0", npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 2 }), data } };
    npu_graph_desc desc = { .constants = given, .num_constants = 1 };
    NPU_ITEM("R0.23");
    for (int i = 0; i < 8; i++) {
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        given[0].name = i & 1 ? "c_lifted_0" : "lifted_0";
        d.more = more[i >> 1 & 1];
        d.weights = i & 4 ? "" : "lifted_0=float32[2]";
        NPU_CHECK_STATUS(try_document(&g, &d, &desc, &diag), NPU_OK);
        run r = run_graph(g, DATA(x6));
        check_floats(&r, 0, FLOATS(6, 8));
        npu_exec_destroy(r.exec);
        npu_graph_destroy(g);
    }
    given[1] = given[0];
    desc.num_constants = 2;
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    given[0].name = "lifted_0"; /* the two names of one */
    d.weights = "lifted_0=float32[2]";
    NPU_CHECK_STATUS(try_document(&g, &d, &desc, &diag), NPU_ERR_DUPLICATE);
    desc.num_constants = 1;
    given[0].spec.dtype = NPU_I32;
    NPU_CHECK_STATUS(try_document(&g, &d, &desc, NULL), NPU_ERR_DTYPE);
    given[0].spec.dims[0] = 3;
    NPU_CHECK_STATUS(try_document(&g, &d, &desc, NULL), NPU_ERR_SHAPE);
    desc.num_constants = 0; /* and without them it is refused, as ever */
    d.more = more[0];
    NPU_CHECK_STATUS(try_document(&g, &d, &desc, NULL), NPU_ERR_CONVERSION);
}

/* ---- as real exporters write it ---- */

static npu_status convert_rope(void *ctx, npu_graph *g, const npu_node *node, npu_value *results)
{
    (void)ctx;
    for (uint32_t i = 0; i < node->num_results; i++) {
        npu_value x = npu_to(g, node->in[1], (npu_dtype)node->results[i].dtype);
        results[i] = npu_expand(g, npu_unsqueeze(g, x, -1), node->results[i].dims, node->results[i].rank);
    }
    return npu_graph_status(g);
}

/* A decoder layer's idioms: lifted empty tensors that are detached in place and joined, checks without results, a call
   that no schema describes and two getitems of it, -1 and INT64_MAX. */
static void test_decoder_idioms(void)
{
    document d = { "x=float32[1,2,4] p=int64[1,2]",
                   "m.w=float32[4] m.lifted_tensor_0=float32[0]",
                   "cat=float32[1,4,2] add=float32[1,2,4]",
                   "'weight_name_mapping': {'p_m_w': 'm.w', 'c_m_lifted_tensor_0': 'm.lifted_tensor_0'}, ",
                   { "wrap_with_set_grad_enabled | wrap_with_set_grad_enabled | p_m_w p.0 | "
                     "wrap_with_set_grad_enabled_0=float32[1,2,4] "
                     "wrap_with_set_grad_enabled_1=float32[1,2,4] | ",
                     "to_5 | <built-in function getitem> | wrap_with_set_grad_enabled.0 wrap_with_set_grad_enabled.1 | "
                     "to_5=float32[1,2,4] | 'index': 1",
                     "_assert_tensor_metadata_default | aten._assert_tensor_metadata.default | x.0 | | 'dtype': "
                     "'torch.float32', 'device': 'meta', "
                     "'layout': 'torch.strided'",
                     "mul | aten.mul.Tensor | p_m_w x.0 | mul=float32[1,2,4] | ",
                     "add | aten.add.Tensor | mul.0 to_5.0 | add=float32[1,2,4] | ",
                     "view | aten.view.default | add.0 | view=float32[1,4,2] | 'size': [1, -1, 2]",
                     "slice_1 | aten.slice.Tensor | view.0 | slice_1=float32[1,4,1] | 'dim': 2, 'start': 1, 'end': "
                     "9223372036854775807",
                     "neg | aten.neg.default | slice_1.0 | neg=float32[1,4,1] | ",
                     "slice_2 | aten.slice.Tensor | view.0 | slice_2=float32[1,4,1] | 'dim': 2, 'start': 0, 'end': 1",
                     "detach_ | aten.detach_.default | c_m_lifted_tensor_0 | detach_=float32[0] | ",
                     "cat | aten.cat.default | detach_.0 neg.0 slice_2.0 | cat=float32[1,4,2] | '_tensor_list_sizes': "
                     "[3], 'dim': -1" } };
    static const float x[] = { 1, 2, 3, 4, 5, 6, 7, 8 }, w[] = { 1, 1, 1, 2 };
    static const int64_t p[] = { 10, 20 };
    npu_registry *registry = NULL;
    npu_converter rope = { "wrap_with_set_grad_enabled", convert_rope, NULL, true };
    NPU_ITEM("S1.32");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_converter(registry, &rope, NULL), NPU_OK);
    NPU_CHECK_STR(npu_registry_find_converter(registry, rope.pattern)->pattern, rope.pattern);
    NPU_CHECK(!npu_registry_find_converter(registry, "aten.cos.default"));
    npu_graph_desc desc = { .registry = registry };
    npu_graph *g = load_with(&d, &desc);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "m.w", w, sizeof w), NPU_OK);
    run r = run_graph(g, DATA(x, p));
    check_floats(&r, 0, FLOATS(-12, 11, -18, 13, -26, 25, -36, 27));
    check_floats(&r, 1, FLOATS(11, 12, 13, 18, 25, 26, 27, 36));
    NPU_CHECK_EQ(npu_graph_num_outputs(g), 2);
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
    d.nodes[2] = "a | aten._assert_tensor_metadata.default | x.0 | | 'dtype': 'torch.float16'";
    refuse(&d, NPU_ERR_DTYPE, "node 'a'");
    d.nodes[2] = "a | aten._assert_tensor_metadata.default | x.0 | | 'size': [1, 2, 5]";
    refuse(&d, NPU_ERR_SHAPE, "node 'a'");
}

/* ---- what is refused ---- */

/* A dim that is no number is refused where the desc says so. */
static void test_static_shapes(void)
{
    static const char *const inputs[] = { "x=float32['s0',3]", "x=float32[-1,3]", "x=float32[null]", "x=float32[2.5]" };
    NPU_ITEM("S0.52");
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    const npu_graph_desc desc = { .static_shapes = true };
    static const char symbolic[] =
        "{\"graph_inputs\": [], \"weights\": [], \"graph_outputs\": [], \"nodes\": [\n"
        "{\"name\": \"relu\", \"op_type\": \"aten.relu\", \"inputs\": [], \"outputs\": [{\"name\": \"r\", "
        "\"shape\": [\"s0\", 3], \"dtype\": \"float32\"}]}]}";
    NPU_CHECK_STATUS(npu_graph_parse_json(&g, symbolic, sizeof symbolic - 1, &desc, &diag), NPU_ERR_DYNAMIC_SHAPE);
    NPU_CHECK(strstr(diag.message, "node 'relu'") && strstr(diag.message, "s0"));
    NPU_CHECK_EQ(diag.line, 2);
    for (size_t i = 0; i < 4; i++) {
        document d = { inputs[i], "", "", NULL, { NULL } };
        NPU_CHECK_STATUS(try_document(&g, &d, &desc, &diag), NPU_ERR_DYNAMIC_SHAPE);
        NPU_CHECK(!g && strstr(diag.message, "'x'"));
    }
}

/* Names are symbols with their ranges, the same name the same dim; -1 and null are named after the input. */
static void test_symbolic(void)
{
    document d = { "x=float32['s0',3] z=float32['s0',3] w=float32[-1,2] v=float32[null]", "", "y=float32['s0',3] r=float32[3,'s0']",
                   "'range_constraints': {'s0': {'min_val': 2, 'max_val': 8}, 'w.0': {'max_val': 9223372036854775806}}, ",
                   { "y | aten.add.Tensor | x z | y=float32['s0',3] | ", "r | aten.view.default | y.0 | r=float32[3,'s0'] | 'size': [3, 's0']",
                     "q | aten.relu.default | w | q=float32[null,2] | " } };
    npu_graph *g = load(&d);
    int64_t min, max;
    const npu_spec *x = npu_value_spec(g, npu_graph_find(g, "x")), *y = npu_value_spec(g, npu_graph_find(g, "y"));
    const npu_spec *w = npu_value_spec(g, npu_graph_find(g, "w")), *r = npu_value_spec(g, npu_graph_find(g, "r"));
    NPU_CHECK(x && y && r && w && x->dims[0] < -1 && x->dims[0] == y->dims[0] && r->dims[1] == x->dims[0]);
    NPU_CHECK(npu_graph_dim_bounds(g, x->dims[0], &min, &max) && min == 2 && max == 8);
    NPU_CHECK_STR(npu_graph_symbol_name(g, w->dims[0]), "w.0");
    NPU_CHECK(!npu_graph_dim_bounds(g, w->dims[0], &min, &max));
    NPU_CHECK_STR(npu_graph_symbol_name(g, npu_value_spec(g, npu_graph_find(g, "v"))->dims[0]), "v.0");
    npu_graph_destroy(g);
}

/* Sizes that data decides: traced as a number, as a name, as -1 or null; what follows counts by the same symbol. */
static void test_data_decided(void)
{
    static const char *const outputs[] = { "3", "'u0'", "-1", "null" };
    static const float x[2][4] = { { 0, 2, 0, 4 }, { 1, 2, 3, 4 } };
    static const int64_t want[2][4] = { { 1, 3 }, { 0, 1, 2, 3 } };
    for (size_t i = 0; i < 4; i++) {
        char outer[64], nz[96], n[96];
        snprintf(outer, sizeof outer, "n=int64[%s]", outputs[i]);
        snprintf(nz, sizeof nz, "z | aten.nonzero.default | x | z=int64[%s,1] | ", outputs[i]);
        snprintf(n, sizeof n, "n | aten.squeeze.dim | z.0 | n=int64[%s] | 'dim': 1", outputs[i]);
        document d = { "x=float32[4]", "", outer, NULL, { nz, n } };
        npu_graph *g = load(&d);
        const npu_spec *y = npu_value_spec(g, npu_graph_output(g, 0));
        NPU_CHECK(y && y->dims[0] < -1);
        NPU_CHECK(i != 1 || strcmp(npu_graph_symbol_name(g, y->dims[0]), "u0") == 0);
        for (int k = 0; k < 2; k++) {
            run r = run_graph(g, DATA(x[k]));
            NPU_CHECK_EQ(npu_exec_output_spec(r.exec, 0)->dims[0], k ? 4 : 2);
            NPU_CHECK_BYTES(npu_exec_output(r.exec, 0, NULL), want[k], k ? 32 : 16);
            npu_exec_destroy(r.exec);
        }
        npu_graph_destroy(g);
    }
}

/* What the file says of a size that data decides bounds it: more is refused in the run. */
static void test_data_bound(void)
{
    static const float x[2][4] = { { 0, 2, 0, 4 }, { 1, 2, 3, 4 } };
    document d = { "x=float32[4]", "", "z=int64['u0',1]", "'range_constraints': {'u0': {'max_val': 3}}, ",
                   { "z | aten.nonzero.default | x | z=int64['u0',1] | " } };
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_graph *g = load(&d);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    for (int k = 0; k < 2; k++) {
        NPU_CHECK_STATUS(npu_exec_set_input(exec, &(npu_array){ "x", *npu_value_spec(g, npu_graph_input(g, 0)), x[k] }), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), k ? NPU_ERR_RANGE : NPU_OK);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_bad_dims(void)
{
    static const struct { npu_status status; const char *words, *constraints; document d; } rows[] = {
        { NPU_ERR_DYNAMIC_SHAPE, "'s7', which no input and no op defines", "",
          { "x=float32[2]", "", "", NULL, { "y | aten.relu | x | y=float32['s7'] | " } } },
        { NPU_ERR_DYNAMIC_SHAPE, "'s7', which no input and no op defines", "",
          { "x=float32[2]", "", "x=float32['s7']", NULL, { NULL } } },
        { NPU_ERR_DYNAMIC_SHAPE, "'w' is s0: only numbers", "", { "x=float32['s0']", "w=float32['s0']", "", NULL, { NULL } } },
        { NPU_ERR_DYNAMIC_SHAPE, "'x' is no size", "", { "x=float32[-2]", "", "", NULL, { NULL } } },
        { NPU_ERR_DYNAMIC_SHAPE, "a dim that no input defines", "",
          { "x=float32[2]", "", "", NULL, { "y | my.op | x | y=float32['u0'] | " } } },
        { NPU_ERR_DYNAMIC_SHAPE, "a dim that no input defines", "",
          { "x=float32['s0']", "", "", NULL, { "y | my.op | x | y=float32[null] | " } } },
        { NPU_ERR_DYNAMIC_SHAPE, "a size is '2*s0'", "",
          { "x=float32['s0',2]", "", "", NULL, { "y | aten.view.default | x | y=float32['s0',2] | 'size': ['2*s0']" } } },
        { NPU_ERR_DYNAMIC_SHAPE, "end is 's0': expected a number", "",
          { "x=float32['s0',2]", "", "", NULL, { "y | aten.slice.Tensor | x | | 'dim': 0, 'start': 0, 'end': 's0'" } } },
        { NPU_ERR_DYNAMIC_SHAPE, "output_size is 's0': expected a number", "",
          { "x=float32[1,1,'s0',2]", "", "", NULL, { "y | aten.upsample_nearest2d.default | x | | 'output_size': ['s0', 4]" } } },
        { NPU_ERR_SHAPE, "the file says f32[3", "", { "x=float32['s0']", "", "", NULL, { "y | aten.relu | x | y=float32[3] | " } } },
        { NPU_ERR_SHAPE, "output 0 is", "",
          { "x=float32['s0'] z=float32['s1']", "", "", NULL, { "y | aten.relu | x | y=float32['s1'] | " } } },
        { NPU_ERR_SHAPE, "output 0 is", "", { "x=float32[4]", "", "", NULL, { "y | aten.nonzero | x | y=int64['u0'] | " } } },
        { NPU_ERR_SHAPE, "output 0 is", "", { "x=float32[4]", "", "", NULL, { "y | aten.nonzero | x | y=int64['u0',2] | " } } },
        { NPU_ERR_RANGE, "'s0' is from 9 to 8", "'range_constraints': {'s0': {'min_val': 9, 'max_val': 8}}, ",
          { "x=float32['s0']", "", "", NULL, { NULL } } },
        { NPU_ERR_PARSE, "max_val is no integer", "'range_constraints': {'s0': {'max_val': 'big'}}, ",
          { "x=float32['s0']", "", "", NULL, { NULL } } },
        { NPU_ERR_PARSE, "'s0' is no object", "'range_constraints': {'s0': 3}, ", { "x=float32['s0']", "", "", NULL, { NULL } } },
        { NPU_ERR_PARSE, "\"range_constraints\" must be", "'range_constraints': 3, ", { "x=float32['s0']", "", "", NULL, { NULL } } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = rows[i].d;
        d.more = rows[i].constraints;
        refuse(&d, rows[i].status, rows[i].words);
    }
}

/* What a run leaves for the next: a value that "next" names, or what was written to the state. */
static void test_states(void)
{
    static const char *const more[] = {
        "'states': [{'name': 's', 'shape': [2], 'dtype': 'float32', 'next': {'name': 'y', 'producer_node': 'y'}}], ",
        "'states': [{'name': 's', 'shape': [2], 'dtype': 'float32'}], ",
        "'states': [{'name': 's', 'shape': [2], 'dtype': 'float32', 'next': {'name': 's'}}], "
    };
    static const char *const nodes[] = { "y | aten.add.Tensor | x s | y=float32[2] | ", "y | aten.add_.Tensor | s x | y=float32[2] | ",
                                         "y | aten.add_.Tensor | s x | y=float32[2] | " };
    static const float x[2] = { 1, 2 }, want[2] = { 3, 6 };
    for (size_t i = 0; i < 3; i++) {
        document d = { "x=float32[2]", "", "y=float32[2]", more[i], { nodes[i] } };
        npu_graph *g = load(&d);
        NPU_CHECK_EQ(npu_graph_num_outputs(g), 1);
        run r = run_graph(g, DATA(x));
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_BYTES(npu_exec_output(r.exec, 0, NULL), want, sizeof want);
        npu_exec_destroy(r.exec);
        npu_graph_destroy(g);
    }
    static const struct { npu_status status; const char *words, *states; } rows[] = {
        { NPU_ERR_PARSE, "\"states\" must be", "'states': 3, " },
        { NPU_ERR_PARSE, "\"shape\"", "'states': [{'name': 's'}], " },
        { NPU_ERR_PARSE, "\"next\" must be", "'states': [{'name': 's', 'shape': [2], 'dtype': 'float32', 'next': 'y'}], " },
        { NPU_ERR_NOT_FOUND, "'z' is no", "'states': [{'name': 's', 'shape': [2], 'dtype': 'float32', 'next': {'name': 'z'}}], " },
        { NPU_ERR_SHAPE, "state 's' is f32[3], its next value 'y' f32[2]", "'states': [{'name': 's', 'shape': [3], 'dtype': 'float32', 'next': {'name': 'y'}}], " },
        { NPU_ERR_DYNAMIC_SHAPE, "no size of an input", "'states': [{'name': 's', 'shape': ['n'], 'dtype': 'float32'}], " },
        { NPU_ERR_DUPLICATE, "'w'", "'states': [{'name': 'w', 'shape': [2], 'dtype': 'float32'}], " },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = { "x=float32[2]", "w=float32[2]", "y=float32[2]", rows[i].states, { "y | aten.relu | x | y=float32[2] | " } };
        refuse(&d, rows[i].status, rows[i].words);
    }
}

static void test_mixed_precision(void)
{
    document d = { "x=float16[2,2]",
                   "w=float32[2,2]",
                   "y=float16[2,2]",
                   NULL,
                   { "y | aten.linear.default | x w | y=float16[2,2] | " } };
    NPU_ITEM("S0.51");
    refuse(&d, NPU_ERR_DTYPE, "node 'y'");
    d.nodes[0] = "y | aten.mm.default | x w | y=float16[2,2] | ";
    refuse(&d, NPU_ERR_DTYPE, "node 'y'");
    d.nodes[0] = "y | aten.add.Tensor | x w | y=float32[2,2] | ";
    d.outputs = "y=float32[2,2]";
    npu_graph_destroy(load(&d)); /* elementwise ops promote */
}

static void test_bad_graphs(void)
{
    static const struct { npu_status status; const char *words; document d;
    } rows[] = {
        { NPU_ERR_NOT_FOUND,
          "'later' is no graph input or node",
          { "x=float32[2]",
            "",
            "",
            NULL,
            { "a | aten.relu | later.0 | a=float32[2] | ", "later | aten.relu | x | later=float32[2] | " } } },
        { NPU_ERR_RANGE,
          "has 2 results, number 2",
          { "x=float32[2,3]",
            "",
            "",
            NULL,
            { "m | aten.max.dim | x | m_0=float32[2] m_1=int64[2] | 'dim': 1",
              "r | aten.relu | m.2 | r=float32[2] | " } } },
        { NPU_ERR_RANGE,
          "'m' has 2 results, number 9 is asked for",
          { "x=float32[2,3]", "", "", NULL,
            { "m | aten.max.dim | x | m_0=float32[2] m_1=int64[2] | 'dim': 1",
              "r | aten.relu | m.9 | r=float32[2] | " } } },
        { NPU_ERR_NOT_FOUND,
          "'w' is no weight, input or result",
          { "x=float32[2]", "", "", NULL, { "a | aten.add.Tensor | x w | a=float32[2] | " } } },
        { NPU_ERR_NOT_FOUND,
          "'b'",
          { "x=float32[2]", "", "b=float32[2]", NULL, { "a | aten.relu | x | a=float32[2] | " } } },
        { NPU_ERR_SHAPE,
          "node 'a': output 0 is f32[2]",
          { "x=float32[2]", "", "", NULL, { "a | aten.relu | x | a=float32[3] | " } } },
        { NPU_ERR_SHAPE,
          "output 0 is f32[2]",
          { "x=float32[2]", "", "", NULL, { "a | aten.relu | x | a=float64[2] | " } } },
        { NPU_ERR_ARITY,
          "2 outputs are listed",
          { "x=float32[2]", "", "", NULL, { "a | aten.relu | x | a=float32[2] b=float32[2] | " } } },
        { NPU_ERR_ARITY,
          "1 input tensors",
          { "x=float32[2]", "", "", NULL, { "a | aten.add.Tensor | x | a=float32[2] | " } } },
        { NPU_ERR_ARITY,
          "2 input tensors",
          { "x=float32[2]", "", "", NULL, { "a | aten.relu | x x | a=float32[2] | " } } },
        { NPU_ERR_DTYPE, "'float31'", { "x=float31[2]", "", "", NULL, { NULL } } },
        { NPU_ERR_RANK, "9 dims", { "x=float32[1,1,1,1,1,1,1,1,1]", "", "", NULL, { NULL } } },
        { NPU_ERR_DUPLICATE, "'x'", { "x=float32[2] x=float32[2]", "", "", NULL, { NULL } } },
        { NPU_ERR_SHAPE,
          "not of its shape",
          { "", "k=float32[3]", "", "'constants': {'k': {'data': [1, 2], 'dtype': 'float32'}}, ", { NULL } } },
        { NPU_ERR_DTYPE,
          "no i8",
          { "", "k=int8[1]", "", "'constants': {'k': {'data': [128], 'dtype': 'int8'}}, ", { NULL } } },
        { NPU_ERR_DTYPE,
          "no u8",
          { "", "k=uint8[1]", "", "'constants': {'k': {'data': [-1], 'dtype': 'uint8'}}, ", { NULL } } },
    };
    NPU_ITEM("R0.6");
    NPU_ITEM("R0.7");
    NPU_ITEM("R0.8");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        refuse(&rows[i].d, rows[i].status, rows[i].words);
    }
}

/* Nodes have names of their own, an op_type, and tensors with name, shape and dtype. */
static void test_bad_names(void)
{
    static const struct { npu_status status; const char *words, *node; } rows[] = {
        { NPU_ERR_DUPLICATE, "'a'", "a | aten.relu | x | b=float32[2] | " },
        { NPU_ERR_PARSE, "\"name\" is empty", " | aten.relu | x | b=float32[2] | " },
        { NPU_ERR_PARSE, "\"op_type\" is empty", "b | | x | b=float32[2] | " },
        { NPU_ERR_PARSE, "\"name\" is empty", "b | aten.relu | x | =float32[2] | " },
        { NPU_ERR_PARSE, "\"dtype\" is empty", "b | aten.relu | x | b=[2] | " },
        { NPU_ERR_PARSE, "\"shape\" is missing", "b | aten.relu | x | b | " },
    };
    NPU_ITEM("R0.17");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = { "x=float32[2]", "", "", NULL, { "a | aten.relu | x | a=float32[2] | ", rows[i].node } };
        refuse(&d, rows[i].status, rows[i].words);
    }
}

/* What is no JSON, and where: line and column, counted from 1. */
static void test_bad_text(void)
{
    static const struct { const char *text; int line, column; } rows[] = {
        { "", 1, 1 }, { "{", 1, 2 }, { "[1,", 1, 4 }, { "{\"a\" 1}", 1, 6 }, { "{\"a\": 1,}", 1, 9 },
        { "{1: 2}", 1, 2 }, { "nul", 1, 1 }, { "{} x", 1, 4 }, { "\n\n{\"a\": tru}", 3, 7 },
        { "\"\\udc00\"", 1, 8 }, { "\"\\ud800\\u0041\"", 1, 14 }, { "\"\\ud800\\ue000\"", 1, 14 },
        { "\"\\ue000\"", 1, 1 },
        { "\"\\u12\"", 1, 7 }, { "\"\\ud800\"", 1, 8 }, { "\"\\u0000\"", 1, 8 }, { "\"\xff\"", 1, 3 },
        { "\"a\nb\"", 1, 3 }, { "01x", 1, 1 }, { "-", 1, 1 }, { "1e", 1, 1 }, { "1.2.3", 1, 1 }, { "[1 2]", 1, 4 },
        { "\"\\q\"", 1, 3 }, { "{}", 1, 1 }, { "[]", 1, 1 }, { "{\"graph_inputs\": 3}", 1, 18 },
        { "{\"graph_inputs\": [],\n \"graph_outputs\": {}}", 2, 19 },
        /* numbers and words as JSON has them, and no others */
        { "01", 1, 1 }, { "[1, 02]", 1, 5 }, { "-01", 1, 1 }, { "00", 1, 1 }, { "1.", 1, 1 }, { ".5", 1, 1 },
        { "+1", 1, 1 }, { "1e+", 1, 1 }, { "0x10", 1, 2 }, { "1e999", 1, 1 }, { "[-1e999]", 1, 2 }, { "True", 1, 1 },
        { "[None]", 1, 2 }, { "nan", 1, 1 }, { "'a'", 1, 1 },
        /* keys are unique, in small objects and in large ones */
        { "{\"a\": 1, \"a\": 2}", 1, 15 }, { "[{\"a\": 1,\n  \"b\": {}, \"\\u0061\": 2}]", 2, 22 },
        { "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,\"l\":1,\"m\":1,"
          "\"n\":1,\"o\":1,\"p\":1,\"q\":1,\"c\":1}", 1, 108 },
    };
    NPU_ITEM("R0.18");
    NPU_ITEM("F18");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_diag diag = { 0 };
        npu_graph *g = NULL;
        NPU_CHECK_STATUS(npu_graph_parse_json(&g, rows[i].text, strlen(rows[i].text), npu_test_graph_desc(), &diag), NPU_ERR_PARSE);
        if (diag.line != rows[i].line || diag.column != rows[i].column) {
            fprintf(stderr, "%s -> line %d, column %d: %s\n", rows[i].text, (int)diag.line, (int)diag.column,
                    diag.message);
        }
        NPU_CHECK_EQ(diag.line, rows[i].line);
        NPU_CHECK_EQ(diag.column, rows[i].column);
        NPU_CHECK_STR(diag.file, "json");
    }
    char deep[300];
    memset(deep, '[', sizeof deep);
    npu_diag diag = { 0 };
    npu_graph *g = NULL;
    NPU_CHECK_STATUS(npu_graph_parse_json(&g, deep, sizeof deep, npu_test_graph_desc(), &diag), NPU_ERR_PARSE);
    NPU_CHECK(strstr(diag.message, "64 levels"));
}

/* A failure that the text alone does not show stands at the record, or at the node that was built. */
static void test_places(void)
{
    static const struct { const char *node, *part; } rows[] = {
        { "y | aten.softmax.int | x | y=float32[2] | 'dim': 7", "{\"name\": \"y\", \"op" },
        { "y | aten.softmax.int | x | y=float32[2] | 'dim': 1e0", "{\"name\": \"y\", \"op" },
        { "y | aten.softmax.int | x | y=float32[2] | 'dim': 0, 'axis': 3", "3}" },
        { "y | aten.softmax.int | z | y=float32[2] | 'dim': 0", "{\"name\": \"z\"" },
        { "y | aten.softmax.int | x | y=float32[3] | 'dim': 0", "{\"name\": \"y\", \"shape\"" },
        { "y | aten.softmax.int | x.1 | y=float32[2] | 'dim': 0", "1}" },
    };
    NPU_ITEM("F18");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        document d = { "x=float32[2]", "", "", NULL, { "a | aten.relu | x | a=float32[2] | ", rows[i].node } };
        npu_text text = document_text(&d);
        npu_diag diag = { 0 };
        npu_graph *g = NULL;
        const char *line = strstr(text.data, "{\"name\": \"y\", \"op"), *part = line ? strstr(line, rows[i].part) : NULL;
        NPU_CHECK(npu_graph_parse_json(&g, text.data, text.len, npu_test_graph_desc(), &diag) != NPU_OK);
        NPU_CHECK_EQ(diag.line, 3);
        NPU_CHECK_EQ(diag.column, part - line + 2); /* the line begins with a blank */
        npu_text_free(&text);
    }
}

/* ---- names ---- */

/* A file that is not there is an I/O error; one that is reads back as it was written. */
static void test_files(void)
{
    document d = { "x=float32[2]", "", "a=float32[2]", NULL, { "a | aten.neg | x | a=float32[2] | " } };
    npu_text text = document_text(&d), again = npu_text_init(NULL);
    npu_graph *g = NULL;
    char path[64];
    snprintf(path, sizeof path, "test_json_%p.tmp", (void *)text.data); /* in the working directory, for a moment */
    NPU_ITEM("R0.18");
    NPU_CHECK_STATUS(npu_text_load(&again, "no/such/file.json"), NPU_ERR_IO);
    NPU_CHECK_STATUS(npu_text_save(&text, "no/such/directory/file.json"), NPU_ERR_IO);
    NPU_CHECK_STATUS(npu_text_save(&text, path), NPU_OK);
    NPU_CHECK_STATUS(npu_text_load(&again, path), NPU_OK);
    NPU_CHECK_STR(again.data, text.data);
    NPU_CHECK_STATUS(npu_graph_parse_json(&g, again.data, again.len, npu_test_graph_desc(), NULL), NPU_OK);
    npu_graph_destroy(g);
    npu_text_free(&text);
    npu_text_free(&again);
    remove(path);
}

/* Results that are None are left out of a file; the others keep their places. */
static void test_output_positions(void)
{
    document d = { "x=float32[2,3]",
                   "w=float32[3]",
                   "n_2=float32[2,1]",
                   NULL,
                   { "n | aten.native_layer_norm.default | x w null | n_0=float32[2,3] n_2=float32[2,1] | "
                     "'normalized_shape': [3], 'eps': 1e-05",
                     "r | aten.relu | n.2 | r=float32[2,1] | " } };
    npu_graph *g = load(&d);
    uint32_t index = 9;
    npu_value_producer(g, npu_graph_find(g, "n_2"), &index);
    NPU_ITEM("R0.41");
    NPU_CHECK_EQ(index, 2);
    NPU_CHECK_EQ(npu_op_operand_value(g, (npu_op){ 2 }, 0).id, npu_graph_find(g, "n_2").id);
    NPU_CHECK_STR(npu_op_name(g, (npu_op){ 1 }), "n");
    npu_graph_destroy(g);
    d.nodes[0] = "n | aten.native_layer_norm.default | x w null | a=float32[2,3] b=float32[2,1] | 'normalized_shape': "
                 "[3], 'eps': 1e-05";
    refuse(&d, NPU_ERR_ARITY, "2 outputs are listed, the op has 3");
}

/* Two results of one name are told apart by their producers, and only by them. */
static void test_shadowed_names(void)
{
    document d = { "x=float32[2]",
                   "",
                   "r=float32[2]",
                   NULL,
                   { "a | aten.relu | x | t=float32[2] | ", "b | aten.neg | x | t=float32[2] | ",
                     "r | aten.abs | b.0 | r=float32[2] | " } };
    npu_graph *g = load(&d);
    NPU_ITEM("R0.5");
    NPU_CHECK_EQ(npu_op_operand_value(g, (npu_op){ 3 }, 0).id, npu_op_result(g, (npu_op){ 2 }, 0).id);
    npu_graph_destroy(g);
    d.nodes[2] = "r | aten.abs | t | r=float32[2] | ";
    refuse(&d, NPU_ERR_GRAPH, "two values are named 't'");
}

/* One value returned twice keeps both places. */
static void test_repeated_output(void)
{
    document d = { "x=float32[2]", "", "a=float32[2] a=float32[2]", NULL, { "a | aten.neg | x | a=float32[2] | " } };
    npu_graph *g = load(&d);
    NPU_CHECK_EQ(npu_graph_num_outputs(g), 2);
    NPU_CHECK_STR(npu_graph_output_name(g, 1), "a_1");
    npu_graph_destroy(g);
}

/* ---- printing ---- */

/* What the builder makes: unnamed values, numbers, holes, lists, words. */
static void test_print(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *again = NULL;
    npu_spec f = npu_spec_tensor(NPU_F32, 2, (const int64_t[]){ 2, 3 });
    npu_value x = npu_input(g, "x \"\\ \xc3\xa9", f),
              w = npu_param(g, "w", npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 3 })), none = { 0 };
    npu_value y = npu_mul(g, x, npu_number(g, npu_scalar_float(0.5)));
    y = npu_layer_norm(g, y, none, w, 1, 0);
    npu_value xs[3] = { y, x, npu_constant(g, NULL, f, x6) };
    y = npu_cat(g, xs, 3, 0);
    npu_arg dtype[] = { npu_arg_tensor("self", y), npu_arg_dtype("dtype", NPU_BF16), npu_arg_str("device", "cuda:1") };
    y = npu_op_result(g, npu_emit_name(g, "aten._to_copy", dtype, 3), 0);
    npu_output(g, "out", y);
    NPU_ITEM("R0.2");
    NPU_ITEM("R0.3");
    NPU_ITEM("R0.4");
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_text first = json_of(g), second = npu_text_init(NULL);
    NPU_CHECK_GOLDEN("graph.json", first.data);
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse_json(&again, first.data, first.len, npu_test_graph_desc(), &diag), NPU_OK);
    if (again) {
        second = json_of(again);
        NPU_CHECK_STR(second.data, first.data);
        NPU_CHECK_EQ(npu_graph_num_ops(again), npu_graph_num_ops(g));
    } else {
        fprintf(stderr, "%s\n", diag.message);
    }
    npu_graph_destroy(again);
    npu_text_free(&first);
    npu_text_free(&second);
    npu_state(g, "\xff", f); /* no UTF-8 */
    NPU_CHECK_STATUS(npu_graph_print_json(g, &first), NPU_ERR_UNSUPPORTED);
    npu_text_free(&first);
    npu_graph_destroy(g);
}

/* Quantisation of specs, of inputs and of results: written, read back to the same, and refused where it is cut off. */
static void test_quantisation(void)
{
    static const char *const lines = "npu_ir 1\ngraph m\ninput x : i8[2,64] quant(3, 1, 32, [0.5, 0.1, 1e-20, 3.0], [0, -3, 127, 1])\n"
                                     "input z : u8[2] quant(1, 0, 0, [0.25])\n%3 = my.op(a=x, b=z) : i8[2] quant(2, 0, 0, [1.0, 2.0])\n"
                                     "output y = %3\n";
    static const struct { const char *from, *to; npu_status status; } spoiled[] = {
        { ", \"scales\": [0.25]", "", NPU_ERR_PARSE },
        { "[0.25]", "[]", NPU_ERR_ATTRIBUTE },
        { "[0.25]", "[\"a\"]", NPU_ERR_PARSE },
        { "[0.25]", "[-1]", NPU_ERR_ATTRIBUTE },
        { "[0.25]", "[1e39]", NPU_ERR_ATTRIBUTE },
        { "[0, -3, 127, 1]", "[0, -3, 127]", NPU_ERR_PARSE },
        { "[0, -3, 127, 1]", "[0, -3, 128, 1]", NPU_ERR_ATTRIBUTE },
        { "[0, -3, 127, 1]", "[0, -3, 1e9, 1]", NPU_ERR_PARSE },
        { "[0, -3, 127, 1]", "[0, -3, 3000000000, 1]", NPU_ERR_PARSE },
        { "\"axis\": 1", "\"axis\": 2", NPU_ERR_ATTRIBUTE },
        { "\"block\": 32", "\"block\": -1", NPU_ERR_PARSE },
        { "\"block\": 32", "\"block\": 33", NPU_ERR_ATTRIBUTE },
        { "\"scheme\": 3", "\"scheme\": null", NPU_ERR_PARSE },
        { "{\"scheme\": 1, \"axis\": 0, \"block\": 0, \"scales\": [0.25], \"zeros\": null}", "1", NPU_ERR_PARSE },
    };
    npu_graph *g = NULL, *again = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse(&g, lines, strlen(lines), npu_test_graph_desc(), &diag), NPU_OK);
    npu_text json = json_of(g);
    NPU_CHECK_THAT(npu_graph_parse_json(&again, json.data, json.len, npu_test_graph_desc(), &diag) == NPU_OK, "%s", diag.message);
    for (uint32_t v = 1; v <= 3; v++) {
        NPU_CHECK(npu_spec_equal(npu_value_spec(g, (npu_value){ v }), npu_value_spec(again, (npu_value){ v })));
    }
    for (size_t i = 0; i < sizeof spoiled / sizeof spoiled[0]; i++) {
        const char *at = strstr(json.data, spoiled[i].from);
        npu_text text = npu_text_init(NULL);
        npu_graph *bad = NULL;
        NPU_CHECK_THAT(at, "row %d", (int)i);
        npu_text_append(&text, json.data, at ? (size_t)(at - json.data) : 0);
        npu_text_printf(&text, "%s%s", spoiled[i].to, at ? at + strlen(spoiled[i].from) : "");
        NPU_CHECK_THAT(npu_graph_parse_json(&bad, text.data, text.len, npu_test_graph_desc(), &diag) == spoiled[i].status && diag.message[0], "row %d: %s: %s",
                       (int)i, npu_status_text(diag.status), diag.message);
        npu_graph_destroy(bad);
        npu_text_free(&text);
    }
    npu_text_free(&json);
    npu_graph_destroy(again);
    npu_graph_destroy(g);
}

/* An op may be called as a constant without a name is written: it gives way, and what is printed again is the same. */
static void test_print_names(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *again = NULL;
    npu_spec f = npu_spec_tensor(NPU_F32, 2, (const int64_t[]){ 2, 3 });
    npu_value w = npu_constant(g, NULL, f, x6), y = npu_relu(g, npu_input(g, "x", f));
    npu_op_set_name(g, npu_value_producer(g, y, NULL), "%1");
    NPU_CHECK_EQ(w.id, 1);
    npu_output(g, "y", npu_add(g, y, w));
    npu_text first = json_of(g), second = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_parse_json(&again, first.data, first.len, npu_test_graph_desc(), NULL), NPU_OK);
    if (again) {
        second = json_of(again);
        NPU_CHECK_STR(second.data, first.data);
    }
    npu_graph_destroy(again);
    npu_text_free(&first);
    npu_text_free(&second);
    npu_graph_destroy(g);
}

static void test_print_dynamic(void)
{
    for (int i = 0; i < 2; i++) { /* a dim without a symbol has no name to be written by */
        npu_graph *g = npu_graph_create(npu_test_graph_desc());
        npu_text text = npu_text_init(NULL);
        int64_t n = i ? NPU_DYNAMIC_DIM : npu_graph_add_symbol(g, "N", 1, 8);
        npu_output(g, "y", npu_relu(g, npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, &n))));
        NPU_CHECK_STATUS(npu_graph_print_json(g, &text), i ? NPU_ERR_DYNAMIC_SHAPE : NPU_OK);
        NPU_CHECK(i || (strstr(text.data, "\"shape\": [\"N\"]") && strstr(text.data, "\"N\": {\"min_val\": 1, \"max_val\": 8}")));
        npu_text_free(&text);
        npu_graph_destroy(g);
    }
}

/* A number that counts from the end is no symbol, whatever symbols there are. */
static void test_print_ends(void)
{
    npu_graph *g = NULL;
    const char *text = "graph main\nsymbol n 1 8\ninput x : f32[n,8]\ns = aten.slice.Tensor(x, 1, 0, -2)\noutput y = s\n";
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), NULL), NPU_OK);
    npu_text json = json_of(g);
    NPU_CHECK(strstr(json.data, "\"end\": -2"));
    npu_text_free(&json);
    npu_graph_destroy(g);
}

/* ---- converters and executors ---- */

/* y = alpha x for each of its results; takes any op. */
static npu_status run_scale(void *ctx, const npu_op_info *op, const void *const *in, void *const *out)
{
    double alpha = npu_op_float(op, "alpha", 100);
    size_t len = 0;
    npu_spec_len(op->in[0], &len);
    for (uint32_t k = 0; k < op->num_out; k++) {
        for (size_t i = 0; i < len; i++) {
            ((float *)out[k])[i] = (float)((k + 1) * alpha) * ((const float *)in[0])[i];
        }
    }
    ++*(int *)ctx;
    return NPU_OK;
}

/* A registry with one executor, and a CPU that asks it. */
typedef struct custom {
    npu_registry *registry;
    npu_backend *cpu;
    int calls;
} custom;

static void custom_begin(custom *c, const char *pattern, uint32_t num_results)
{
    memset(c, 0, sizeof *c);
    npu_executor e = { pattern, run_scale, &c->calls, num_results };
    NPU_CHECK_STATUS(npu_registry_create(&c->registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_executor(c->registry, &e, NULL), NPU_OK);
    npu_ref_desc desc = { .registry = c->registry };
    NPU_CHECK_STATUS(npu_ref_create(&c->cpu, &desc), NPU_OK);
}

static void custom_end(custom *c)
{
    npu_ref_destroy(c->cpu);
    npu_registry_destroy(c->registry);
}

/* Runs a document on it; status of making the exec. */
static npu_status custom_run(custom *c, const document *d, const float *want, size_t len)
{
    npu_graph_desc desc = { .registry = c->registry };
    npu_graph *g = load_with(d, &desc);
    const npu_backend *cpu = c->cpu;
    run r;
    memset(&r, 0, sizeof r);
    npu_status status = npu_exec_create_simple(&r.exec, g, &cpu, 1, &r.diag);
    if (status == NPU_OK) {
        npu_test_input_at(r.exec, 0, x6, sizeof x6);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_floats(&r, 0, want, len);
    }
    npu_exec_destroy(r.exec);
    npu_graph_destroy(g);
    return status;
}

static void test_executor(void)
{
    document d = {
        "x=float32[2,3]", "", "y=float32[2,3]", NULL, { "y | my_custom_op | x | y=float32[2,3] | 'alpha': 2.0" }
    };
    custom c;
    NPU_ITEM("S0.41");
    NPU_ITEM("S0.44");
    NPU_ITEM("S0.45");
    npu_graph *g = load(&d); /* without an executor the op loads, and cannot run */
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_ERR_NOT_IMPLEMENTED);
    npu_graph_destroy(g);
    custom_begin(&c, "my_custom_op", 0);
    NPU_CHECK_STATUS(custom_run(&c, &d, FLOATS(2, 4, 6, 8, 10, 12)), NPU_OK);
    NPU_CHECK_EQ(c.calls, 1);
    d.nodes[0] = "y | my_custom_op | x | y=float32[2,3] | "; /* what the file does not give, the executor decides */
    NPU_CHECK_STATUS(custom_run(&c, &d, FLOATS(100, 200, 300, 400, 500, 600)), NPU_OK);
    custom_end(&c);
}

/* Results are a list, of one or of several; their number is checked. */
static void test_executor_results(void)
{
    document one = {
        "x=float32[2,3]", "", "y=float32[2,3]", NULL, { "y | my_op | x | y=float32[2,3] | 'alpha': 1.0" }
    };
    document two = { "x=float32[2,3]",
                     "",
                     "y_1=float32[2,3]",
                     NULL,
                     { "y | my_op | x | y_0=float32[2,3] y_1=float32[2,3] | 'alpha': 1.0" } };
    custom c;
    NPU_ITEM("S0.46");
    custom_begin(&c, "my_op", 0);
    NPU_CHECK_STATUS(custom_run(&c, &one, FLOATS(1, 2, 3, 4, 5, 6)), NPU_OK);
    NPU_CHECK_STATUS(custom_run(&c, &two, FLOATS(2, 4, 6, 8, 10, 12)), NPU_OK);
    custom_end(&c);
    custom_begin(&c, "my_op", 2);
    NPU_CHECK_STATUS(custom_run(&c, &one, NULL, 0), NPU_ERR_NOT_IMPLEMENTED);
    NPU_CHECK_STATUS(custom_run(&c, &two, FLOATS(2, 4, 6, 8, 10, 12)), NPU_OK);
    custom_end(&c);
}

/* An executor wins over the kernel of an ATen op; the most special pattern serves. */
static void test_executor_cascade(void)
{
    static const struct { const char *pattern; bool takes_relu, takes_add;
    } rows[] = {
        { "aten.relu.default", true, false },
        { "aten::relu", true, false },
        { "torch.ops.aten.relu.other", true, false },
        { "aten.add", false, true },
        { "aten.add.Scalar", false, true },
        { "aten.rel", false, false },
        { "aten.relu6", false, false },
    };
    document relu = { "x=float32[2,3]", "", "y=float32[2,3]", NULL, { "y | aten::relu | x | y=float32[2,3] | " } };
    NPU_ITEM("S0.47");
    NPU_ITEM("R0.14");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        custom c;
        custom_begin(&c, rows[i].pattern, 0);
        NPU_CHECK_STATUS(
            custom_run(&c, &relu, rows[i].takes_relu ? (const float[]){ 100, 200, 300, 400, 500, 600 } : x6, 6),
            NPU_OK);
        NPU_CHECK_EQ(c.calls, rows[i].takes_relu);
        NPU_CHECK_EQ(npu_registry_find_executor(c.registry, "aten.add.Tensor") != NULL, rows[i].takes_add);
        custom_end(&c);
    }
    custom c;
    npu_executor general = { "aten.relu", run_scale, NULL, 0 };
    custom_begin(&c, "aten.relu.other", 0);
    NPU_CHECK_STATUS(npu_registry_add_executor(c.registry, &general, NULL), NPU_OK);
    NPU_CHECK_STR(npu_registry_find_executor(c.registry, "aten.relu.default")->pattern, "aten.relu");
    NPU_CHECK_STR(npu_registry_find_executor(c.registry, "aten.relu.other")->pattern, "aten.relu.other");
    custom_end(&c);
}

/* relu becomes clamp_min(x, 0) + bias of the attribute; neg is refused. */
static npu_status convert_relu(void *ctx, npu_graph *g, const npu_node *node, npu_value *results)
{
    double bias = 0;
    (void)ctx;
    for (uint32_t i = 0; i < node->num_attrs; i++) {
        if (strcmp(node->attrs[i].name, "bias") == 0 && node->attrs[i].form == NPU_ARG_FLOAT) {
            bias = node->attrs[i].as.f;
        }
    }
    if (strstr(node->op_type, "neg") || node->num_results != 1 || node->num_in != 1) {
        npu_relu(g, (npu_value){ 0 }); /* a failure on the way must not stay in the graph */
        return NPU_ERR_UNSUPPORTED;
    }
    results[0] = npu_add(g, npu_clamp(g, node->in[0], 0, 1e9), npu_number(g, npu_scalar_float(bias)));
    return npu_graph_status(g);
}

static void test_converter(void)
{
    document d = { "x=float32[2,3]",
                   "",
                   "y=float32[2,3]",
                   NULL,
                   { "y | aten.relu | x | y=float32[2,3] | 'bias': 10.0", "n | aten.neg | y.0 | n=float32[2,3] | " } };
    npu_registry *registry = NULL;
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    NPU_ITEM("R0.15");
    for (int strict = 0; strict < 2; strict++) {
        npu_converter relu = { "aten.relu", convert_relu, NULL, false },
                      neg = { "aten.neg.default", convert_relu, NULL, strict };
        NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add_converter(registry, &relu, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add_converter(registry, &neg, NULL), NPU_OK);
        npu_graph_desc desc = { .registry = registry };
        NPU_CHECK_STATUS(try_document(&g, &d, &desc, &diag), strict ? NPU_ERR_CONVERSION : NPU_OK);
        if (strict) {
            NPU_CHECK(strstr(diag.message, "node 'n'"));
        } else { /* neg is read by its schema after all */
            run r = run_graph(g, DATA(x6));
            check_floats(&r, 0, FLOATS(11, 12, 13, 14, 15, 16));
            NPU_CHECK_EQ(npu_graph_num_ops(g), 3);
            npu_exec_destroy(r.exec);
            npu_graph_destroy(g);
        }
        npu_registry_destroy(registry);
    }
}

static void test_extensions_list(void)
{
    npu_registry *registry = NULL;
    npu_converter converter = { "aten.relu", convert_relu, NULL, false };
    npu_executor executor = { "my_op", run_scale, NULL, 0 };
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_ITEM("S0.48");
    NPU_ITEM("S0.49");
    NPU_ITEM("S0.50");
    NPU_CHECK_EQ(npu_registry_num_extensions(registry, NPU_EXTENSION_CONVERTER), 0);
    NPU_CHECK_EQ(npu_registry_num_extensions(registry, NPU_EXTENSION_EXECUTOR), 1);
    NPU_CHECK_STR(npu_registry_extension(registry, NPU_EXTENSION_EXECUTOR, 0), "<built-in function getitem>");
    NPU_CHECK_STATUS(npu_registry_add_converter(registry, &converter, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_executor(registry, &executor, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_registry_num_extensions(registry, NPU_EXTENSION_CONVERTER), 1);
    NPU_CHECK_EQ(npu_registry_num_extensions(registry, NPU_EXTENSION_EXECUTOR), 2);
    NPU_CHECK_STR(npu_registry_extension(registry, NPU_EXTENSION_CONVERTER, 0), "aten.relu");
    NPU_CHECK_STR(npu_registry_extension(registry, NPU_EXTENSION_EXECUTOR, 1), "my_op");
    NPU_CHECK(npu_registry_extension(registry, NPU_EXTENSION_EXECUTOR, 2) == NULL);
    NPU_CHECK_STATUS(npu_registry_add_executor(registry, &executor, NULL), NPU_ERR_DUPLICATE);
    executor.pattern = "";
    NPU_CHECK_STATUS(npu_registry_add_executor(registry, &executor, NULL), NPU_ERR_INVALID_ARGUMENT);
    converter.convert = NULL;
    NPU_CHECK_STATUS(npu_registry_add_converter(registry, &converter, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_graph_desc desc = { .registry = registry };
    npu_graph *g = npu_graph_create(&desc);
    executor.pattern = "late";
    NPU_CHECK_STATUS(npu_registry_add_executor(registry, &executor, NULL), NPU_ERR_STATE);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* ---- what a file needs ---- */

typedef struct needs {
    npu_op_need all[64];
    char names[64][64];
    uint32_t num;
} needs;

static void note_need(void *ctx, const npu_op_need *need)
{
    needs *n = ctx;
    if (n->num < 64) {
        snprintf(n->names[n->num], sizeof n->names[0], "%s", need->op_type);
        n->all[n->num++] = *need;
    }
}

static npu_status check_needs(needs *n, const document *d, const npu_graph_desc *desc, const npu_backend *backend,
                              npu_diag *diag)
{
    npu_text text = document_text(d);
    npu_status status = npu_graph_check_json(text.data, text.len, desc, &backend, 1, note_need, n, diag);
    npu_text_free(&text);
    return status;
}

/* All ops of a file that do not load and run, with their numbers, in one call: not the first alone. */
static void test_needs(void)
{
    static const struct { const char *op_type; uint32_t count; npu_status status; } want[] = {
        { "aten.relu.default", 2, NPU_OK }, { "my_op", 2, NPU_ERR_NOT_FOUND },
        { "aten.add_.Tensor", 1, NPU_OK }, { "<built-in function getitem>", 1, NPU_OK },
        { "aten.bogus_.default", 1, NPU_ERR_NOT_FOUND }, { "my.bare", 1, NPU_ERR_NOT_IMPLEMENTED },
        { "aten.relu.bogus", 1, NPU_ERR_NOT_FOUND }, { "taken", 1, NPU_OK }, { "aten.add.out", 1, NPU_OK },
    };
    document d = { "x=float32[2]", "", "", NULL,
                   { "a | aten.relu.default | nowhere | a=float32[2] | ", "b | my_op | a | b=float32[2] | ",
                     "c | aten.add_.Tensor | a b | c=float32[2] | ", "d | my_op | x | b=float32[2] | ",
                     "e | aten.relu.default | x x | a=float32[3] | ", "f | <built-in function getitem> | x | | ",
                     "g | aten.bogus_.default | x | | ", "h | my.bare | x | | ", "i | aten.relu.bogus | x | | ",
                     "j | taken | x | | ", "k | aten.add.out | x x x | | " } };
    static const npu_op_row bare = { NPU_NS_USER << 16 | 1, 0, NULL, "bare(Tensor x) -> Tensor", "", NULL };
    npu_executor taken = { "taken", run_scale, NULL, 0 };
    npu_graph_desc desc = { .name = NULL };
    static needs n;
    npu_registry *registry = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "my", &bare, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add_executor(registry, &taken, NULL), NPU_OK);
    desc.registry = registry;
    n.num = 0;
    NPU_CHECK_STATUS(check_needs(&n, &d, &desc, npu_ref_backend(), &diag), NPU_ERR_NOT_FOUND);
    NPU_CHECK(strstr(diag.message, "my_op"));
    NPU_CHECK_EQ(diag.line, 3);
    NPU_CHECK_EQ(n.num, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < n.num && i < sizeof want / sizeof want[0]; i++) {
        NPU_CHECK_STR(n.names[i], want[i].op_type);
        NPU_CHECK_EQ(n.all[i].count, want[i].count);
        NPU_CHECK_STATUS(n.all[i].status, want[i].status);
    }
    npu_registry_destroy(registry);
    NPU_CHECK_STATUS(npu_graph_check_json("{\"nodes\": [{}]}", 15, NULL, NULL, 0, note_need, &n, &diag), NPU_ERR_PARSE);
    static const char list[] = "{\"nodes\": [{\"op_type\": \"a\", \"attrs\": [1]}]}";
    NPU_CHECK_STATUS(npu_graph_check_json("{", 1, NULL, NULL, 0, NULL, NULL, &diag), NPU_ERR_PARSE);
    NPU_CHECK_STATUS(npu_graph_check_json(list, sizeof list - 1, NULL, NULL, 0, note_need, &n, &diag), NPU_ERR_PARSE);
    NPU_CHECK_EQ(n.num, sizeof want / sizeof want[0]); /* nothing was reported of them */
}

/* The lists of ops that earlier versions of the original project wrote by hand. */
static void test_early_ops(void)
{
    static const char *const names[] = {
        "aten._conv_depthwise2d.default", "aten.hardsigmoid.default", "aten.clamp_min.default", "aten.clamp_max.default",
        "aten._unsafe_view.default", "aten.split_with_sizes.default", "aten.scatter.value", "aten.le.Tensor",
        "aten.ge.Scalar", "aten._scaled_dot_product_flash_attention.default",
        "aten._scaled_dot_product_efficient_attention.default", "aten.native_dropout.default",
        "aten._native_batch_norm_legit.default", "aten._native_batch_norm_legit_no_training.default",
        "aten.native_layer_norm.default", "aten.to.device", "aten.to.dtype_layout", "aten.add_.Tensor",
        "aten.relu_.default"
    };
    NPU_ITEM("R0.25");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char node[128];
        static needs n;
        snprintf(node, sizeof node, "n | %s | x | | ", names[i]);
        document d = { "x=float32[2]", "", "", NULL, { node } };
        npu_diag diag = { 0 };
        NPU_CHECK_THAT(check_needs(&n, &d, NULL, npu_ref_backend(), &diag) == NPU_OK, "%s: %s", names[i], diag.message);
    }
}

/* ---- the manual ---- */

/* The manual says how operators are read, which there are, how they are added and what the limits are; a new category
   or extension point that it does not name fails here. */
static void test_manual(void)
{
    static const char *const words[] = {
        "Tensor[], List[Tensor]", "Tensor?[], List[Optional[Tensor]]", "Tensor?, Optional[Tensor]", "after \"*\"",
        "_tensor_list_sizes", "_tensor_list_none_masks", "_optional_tensor_mask", "x * 0.5", "\"meta\"",
        "<built-in function getitem>", "npu_registry_add_executor", "npu_registry_num_extensions", "NPU_ERR_DTYPE",
        "NPU_ERR_DYNAMIC_SHAPE", "NPU_ERR_CONVERSION", "register a buffer", "ADDING AN OP", "examples/05_custom_op.c"
    };
    static char manual[1 << 14];
    char line[256];
    bool inside = false;
    uint32_t num_tables;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    FILE *file = fopen("npu_ir.h", "rb");
    NPU_CHECK(file);
    while (file && fgets(line, sizeof line, file) && strncmp(line, "*/", 2) != 0) {
        inside = inside || strncmp(line, "   OPERATORS", 12) == 0;
        if (inside && strlen(manual) + sizeof line < sizeof manual) {
            strcat(manual, line);
        }
    }
    if (file) {
        fclose(file);
    }
    NPU_ITEM("S0.55");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!strstr(manual, words[i])) {
            NPU_CHECK_STR("the manual", words[i]);
        }
    }
    for (uint32_t i = 0; i < num_tables; i++) {
        if (strcmp(tables[i].space, "aten") == 0 && !strstr(manual, tables[i].category)) {
            NPU_CHECK_STR("the manual's categories", tables[i].category);
        }
    }
}

/* Out of memory at any moment: a status, and nothing is left. */
static void test_no_memory(void)
{
    document d = {
        "x=float32[3,2]",
        "fc.weight=float32[1,2]",
        "y=float32[3,1]",
        "'weight_name_mapping': {'p_fc_weight': 'fc.weight'}, 'constants': {'k': {'data': [1], 'dtype': 'float32'}}, ",
        { "y | aten.linear.default | x.0 p_fc_weight | y=float32[3,1] | ",
          "u | my.op | y.0 | u=float32[3] | 'a': [1, 2]" }
    };
    npu_text text = document_text(&d);
    npu_status status = NPU_ERR_NO_MEMORY;
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 4000; n++) {
        npu_alloc_counter counter = { .fail_at = n };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_graph_desc desc = { .allocator = &allocator };
        npu_registry_desc rd = { .allocator = NULL };
        npu_registry *registry = NULL;
        NPU_CHECK_STATUS(npu_registry_create(&registry, &rd, NULL), NPU_OK);
        desc.registry = registry;
        npu_graph *g = NULL;
        npu_text printed = npu_text_init(&allocator);
        npu_array given = { "given", npu_spec_tensor(NPU_F32, 0, NULL), x6 };
        desc.constants = &given;
        desc.num_constants = 1;
        const npu_backend *cpu = npu_ref_backend();
        status = npu_graph_check_json(text.data, text.len, &desc, &cpu, 1, NULL, NULL, NULL);
        status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status; /* my.op */
        status = status ? status : npu_graph_parse_json(&g, text.data, text.len, &desc, NULL);
        status = status ? status : npu_graph_print_json(g, &printed);
        npu_text_free(&printed);
        npu_graph_destroy(g);
        npu_registry_destroy(registry);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    npu_text_free(&text);
}

int main(void)
{
    NPU_RUN(test_quantisation);
    NPU_RUN(test_schema_alone);
    NPU_RUN(test_lists_and_keywords);
    NPU_RUN(test_overloads);
    NPU_RUN(test_unknown_op);
    NPU_RUN(test_execution);
    NPU_RUN(test_positional_and_keyword);
    NPU_RUN(test_results);
    NPU_RUN(test_scalar_in_tensor_slot);
    NPU_RUN(test_scalar_promotion);
    NPU_RUN(test_tensor_lists);
    NPU_RUN(test_list_holes);
    NPU_RUN(test_optional_tensors);
    NPU_RUN(test_missing_optional);
    NPU_RUN(test_defaults);
    NPU_RUN(test_meta_device);
    NPU_RUN(test_getitem);
    NPU_RUN(test_unused_results);
    NPU_RUN(test_none_results);
    NPU_RUN(test_output_names);
    NPU_RUN(test_getitem_of_a_part);
    NPU_RUN(test_storage);
    NPU_RUN(test_print_storage);
    NPU_RUN(test_weights);
    NPU_RUN(test_constants);
    NPU_RUN(test_bad_constants);
    NPU_RUN(test_constant_without_data);
    NPU_RUN(test_given_constants);
    NPU_RUN(test_decoder_idioms);
    NPU_RUN(test_static_shapes);
    NPU_RUN(test_symbolic);
    NPU_RUN(test_data_decided);
    NPU_RUN(test_data_bound);
    NPU_RUN(test_states);
    NPU_RUN(test_bad_dims);
    NPU_RUN(test_mixed_precision);
    NPU_RUN(test_bad_graphs);
    NPU_RUN(test_bad_names);
    NPU_RUN(test_bad_text);
    NPU_RUN(test_places);
    NPU_RUN(test_files);
    NPU_RUN(test_output_positions);
    NPU_RUN(test_shadowed_names);
    NPU_RUN(test_repeated_output);
    NPU_RUN(test_print);
    NPU_RUN(test_print_names);
    NPU_RUN(test_print_dynamic);
    NPU_RUN(test_print_ends);
    NPU_RUN(test_executor);
    NPU_RUN(test_executor_results);
    NPU_RUN(test_executor_cascade);
    NPU_RUN(test_converter);
    NPU_RUN(test_extensions_list);
    NPU_RUN(test_needs);
    NPU_RUN(test_early_ops);
    NPU_RUN(test_manual);
    NPU_RUN(test_no_memory);
    return npu_test_done();
}
