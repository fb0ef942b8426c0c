/* examples/onnx/npu_onnx.h: models written here field by field, what reading them makes, and files that lie. That each op is
   right is said by the ONNX project's own tests (make onnx), where they are installed. */
#define NPU_ONNX_IMPLEMENTATION
#include "../examples/onnx/npu_onnx.h"
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

/* ---- writing protobuf -------------------------------------------------------------------------------------------- */

typedef struct pb { uint8_t at[4096]; size_t len; } pb;

static void pb_byte(pb *m, unsigned byte)
{
    if (m->len < sizeof m->at) {
        m->at[m->len++] = (uint8_t)byte;
    }
}

static void pb_varint(pb *m, uint64_t x)
{
    for (; x > 127; x >>= 7) {
        pb_byte(m, (unsigned)(x & 127) | 128);
    }
    pb_byte(m, (unsigned)x);
}

static void pb_int(pb *m, unsigned field, int64_t x)
{
    pb_varint(m, field << 3);
    pb_varint(m, (uint64_t)x);
}

static void pb_bytes(pb *m, unsigned field, const void *data, size_t len)
{
    pb_varint(m, field << 3 | 2);
    pb_varint(m, len);
    for (size_t i = 0; i < len; i++) {
        pb_byte(m, ((const uint8_t *)data)[i]);
    }
}

static void pb_str(pb *m, unsigned field, const char *text) { pb_bytes(m, field, text, strlen(text)); }
static void pb_put(pb *m, unsigned field, const pb *inner) { pb_bytes(m, field, inner->at, inner->len); }

/* Words, one field for each. */
static void pb_words(pb *m, unsigned field, const char *words)
{
    for (; *words; words += strspn(words, " ")) {
        size_t len = strcspn(words, " ");
        pb_bytes(m, field, words, *words == '-' ? 0 : len); /* "-" is a hole */
        words += len;
    }
}

static pb pb_attr_int(const char *name, int64_t x)
{
    pb a = { .len = 0 };
    pb_str(&a, 1, name);
    pb_int(&a, 3, x);
    return a;
}

static pb pb_attr_float(const char *name, float x)
{
    pb a = { .len = 0 };
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    pb_str(&a, 1, name);
    pb_varint(&a, 2 << 3 | 5);
    for (size_t k = 0; k < 4; k++) {
        pb_byte(&a, bits >> 8 * k & 255);
    }
    return a;
}

static pb pb_attr_text(const char *name, const char *text)
{
    pb a = { .len = 0 };
    pb_str(&a, 1, name);
    pb_str(&a, 4, text);
    return a;
}

static pb pb_attr_ints(const char *name, const int64_t *x, size_t n)
{
    pb a = { .len = 0 };
    pb_str(&a, 1, name);
    for (size_t i = 0; i < n; i++) {
        pb_int(&a, 8, x[i]);
    }
    return a;
}

/* A node with up to two attributes. */
static void pb_node(pb *graph, const char *op, const char *in, const char *out, const pb *a, const pb *b)
{
    pb n = { .len = 0 };
    pb_words(&n, 1, in);
    pb_words(&n, 2, out);
    pb_str(&n, 4, op);
    if (a) {
        pb_put(&n, 5, a);
    }
    if (b) {
        pb_put(&n, 5, b);
    }
    pb_put(graph, 1, &n);
}

/* An initializer; raw data is little-endian, so floats of a variable go through pb_floats. */
static pb pb_tensor(const char *name, int dtype, const char *dims, const void *raw, size_t len)
{
    pb t = { .len = 0 };
    for (const char *d = dims; *d; d++) {
        pb_int(&t, 1, *d - '0');
    }
    pb_int(&t, 2, dtype);
    pb_str(&t, 8, name);
    pb_bytes(&t, 9, raw, len);
    return t;
}

/* At most eight numbers. */
static pb pb_floats(const char *name, const char *dims, const float *x, size_t n)
{
    uint8_t raw[32] = { 0 };
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        for (size_t k = 0; k < 4; k++) {
            raw[4 * i + k] = (uint8_t)(bits >> 8 * k);
        }
    }
    return pb_tensor(name, 1, dims, raw, 4 * n);
}

static pb pb_ints(const char *name, const int64_t *x, int n)
{
    pb t = { .len = 0 };
    pb_int(&t, 1, n);
    pb_int(&t, 2, 7);
    pb_str(&t, 8, name);
    for (int i = 0; i < n; i++) {
        pb_int(&t, 7, x[i]);
    }
    return t;
}

/* An input or output: dims are digits, or a letter for a name. */
static void pb_value(pb *graph, unsigned field, const char *name, int dtype, const char *dims)
{
    pb shape = { .len = 0 }, tensor = { .len = 0 }, type = { .len = 0 }, info = { .len = 0 };
    for (const char *d = dims ? dims : ""; *d; d++) {
        pb dim = { .len = 0 };
        if (*d >= '0' && *d <= '9') {
            pb_int(&dim, 1, *d - '0');
        } else {
            pb_bytes(&dim, 2, d, 1);
        }
        pb_put(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, dtype);
    if (dims) { /* NULL = the shape is not said */
        pb_put(&tensor, 2, &shape);
    }
    pb_put(&type, 1, &tensor);
    pb_str(&info, 1, name);
    pb_put(&info, 2, &type);
    pb_put(graph, field, &info);
}

static pb pb_model(const pb *graph, int64_t opset)
{
    pb m = { .len = 0 }, set = { .len = 0 };
    pb_int(&set, 2, opset);
    pb_int(&m, 1, 8);
    pb_put(&m, 8, &set);
    pb_put(&m, 7, graph);
    return m;
}

/* ---- models that are read ---------------------------------------------------------------------------------------- */

static npu_onnx_desc reading(void)
{
    npu_onnx_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backend = npu_ref_backend();
    return desc;
}

/* From a block of its own, so that sanitizers see a read past its end; a graph may use it until it is destroyed. */
static npu_graph *read_from(const void *block, size_t len, const npu_onnx_desc *desc, npu_diag *diag)
{
    npu_graph *g = NULL;
    memset(diag, 0, sizeof *diag);
    npu_status status = npu_onnx_read(&g, block, len, desc, diag);
    NPU_CHECK((status == NPU_OK) == (g != NULL));
    NPU_CHECK_THAT(diag->status == status && (status == NPU_OK || diag->message[0]), "%s: %s", npu_status_name(status), diag->message);
    return g;
}

/* Runs a graph on one input of f32, and gives its output. */
static void run(const npu_graph *g, const npu_array *in, const float *want, size_t len, const char *spec)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag;
    npu_text text = npu_text_init(NULL);
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_exec_create_simple(&exec, g, &cpu, 1, &diag);
    NPU_CHECK_THAT(status == NPU_OK, "%s", diag.message);
    if (status == NPU_OK) {
        NPU_CHECK_STATUS(npu_exec_set_input(exec, in), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        npu_spec_print(&text, npu_exec_output_spec(exec, 0));
        NPU_CHECK_STR(text.data, spec);
        NPU_CHECK_BYTES(npu_exec_output(exec, 0, NULL), want, len * sizeof *want);
    }
    npu_text_free(&text);
    npu_exec_destroy(exec);
}

/* y = relu(x W + b) with the batch by name, W without a copy where that is possible. */
static pb mlp(void)
{
    static const uint8_t w[16] = { 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0x40, 0, 0, 0, 0 }; /* 1 -1; 2 0 */
    static const uint8_t b[8] = { 0, 0, 0, 0x3f, 0, 0, 0, 0 };                                      /* 0.5 0 */
    pb g = { .len = 0 }, tw = pb_tensor("w", 1, "22", w, 16), tb = pb_tensor("b", 1, "2", b, 8);
    pb_node(&g, "MatMul", "x w", "h", NULL, NULL);
    pb_node(&g, "Add", "h b", "s", NULL, NULL);
    pb_node(&g, "Relu", "s", "y", NULL, NULL);
    pb_put(&g, 5, &tw);
    pb_put(&g, 5, &tb);
    pb_value(&g, 11, "x", 1, "N2");
    pb_value(&g, 12, "y", 1, "N2");
    return pb_model(&g, 13);
}

static void test_small_model(void)
{
    static const float x[4] = { 1, 2, -3, 0 }, y[4] = { 5.5f, 0, 0, 3 };
    npu_onnx_desc desc = reading();
    npu_onnx_dim two = { "N", 2 };
    npu_diag diag;
    pb m = mlp();
    for (desc.num_dims = 0; desc.num_dims < 2; desc.num_dims++) {
        desc.dims = &two;
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_EQ(npu_graph_num_ops(g), 3);
        NPU_CHECK(npu_graph_find(g, "h").id && npu_graph_find(g, "s").id);
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, 0));
        NPU_CHECK(spec && (desc.num_dims ? spec->dims[0] == 2 : spec->dims[0] < -1));
        if (desc.num_dims) {
            run(g, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 2, 2 }), x }, y, 4, "f32[2,2]");
        }
        npu_graph_destroy(g);
    }
}

/* Sizes of an input, by its name, by its place, of another one, and of one whose shape the model does not say. */
static void test_known_shapes(void)
{
    const npu_spec spec = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 3, 2 });
    const npu_array shapes[] = { { "x", spec, NULL }, { NULL, spec, NULL }, { "z", spec, NULL } };
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb g = { .len = 0 };
        pb_node(&g, "Relu", "x", "y", NULL, NULL);
        pb_value(&g, 11, "x", 1, i < 3 ? "N2" : NULL);
        pb_value(&g, 12, "y", 1, "N2");
        pb m = pb_model(&g, 13);
        desc.shapes = &shapes[i % 3];
        desc.num_shapes = 1;
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        const npu_spec *got = npu_value_spec(read, npu_graph_input(read, 0));
        NPU_CHECK(got && (i % 3 < 2 ? got->rank == 2 && got->dims[0] == 3 : i < 3 ? got->dims[0] < 0 : got->rank == 0));
        npu_graph_destroy(read);
    }
}

/* 2048 added and taken away again leaves of a small f16 what f16 has of the sum, or all where it is computed in f32. */
static void test_halves(void)
{
    static const uint16_t x[2] = { 0x3c00, 0x4200 }, want[2][2] = { { 0, 0x4400 }, { 0x3c00, 0x4200 } }; /* 1 3; 0 4 */
    const npu_backend *cpu = npu_ref_backend();
    const npu_array in = { "x", npu_spec_tensor(NPU_F16, 1, (int64_t[]){ 2 }), x };
    pb g = { .len = 0 }, c = pb_tensor("c", 10, "", "\0\x68", 2), to = pb_attr_int("to", 10);
    pb_node(&g, "Add", "x c", "s", NULL, NULL);
    pb_node(&g, "Cast", "s", "h", &to, NULL);
    pb_node(&g, "Sub", "h c", "y", NULL, NULL);
    pb_put(&g, 5, &c);
    pb_value(&g, 11, "x", 10, "2");
    pb_value(&g, 12, "y", 10, "2");
    pb m = pb_model(&g, 17);
    for (int i = 0; i < 4; i++) { /* the input known or not, and wide or not */
        npu_onnx_desc desc = reading();
        npu_exec *exec = NULL;
        npu_diag diag;
        desc.f16_as_f32 = i % 2 == 1;
        desc.inputs = &in;
        desc.num_inputs = i > 1;
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(npu_exec_create_simple(&exec, read, &cpu, 1, &diag) == NPU_OK, "%s", diag.message);
        NPU_CHECK(i > 1 || npu_exec_set_input(exec, &in) == NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        NPU_CHECK_EQ(npu_exec_output_spec(exec, 0)->dtype, NPU_F16);
        NPU_CHECK_BYTES(npu_exec_output(exec, 0, NULL), want[i % 2], sizeof want[0]);
        npu_exec_destroy(exec);
        npu_graph_destroy(read);
    }
}

/* What exporters compute of shapes is numbers: Shape, Gather, Concat leave no op that is used. */
static pb shapes(void)
{
    static const int64_t zero = 0, minus = -1;
    pb g = { .len = 0 }, t0 = pb_ints("zero", &zero, 1), t1 = pb_ints("minus", &minus, 1), axis = pb_attr_int("axis", 0);
    pb_node(&g, "Shape", "x", "shape", NULL, NULL);
    pb_node(&g, "Gather", "shape zero", "first", &axis, NULL);
    pb_node(&g, "Concat", "first minus", "want", &axis, NULL);
    pb_node(&g, "Reshape", "x want", "y", NULL, NULL);
    pb_put(&g, 5, &t0);
    pb_put(&g, 5, &t1);
    pb_value(&g, 11, "x", 1, "222");
    pb_value(&g, 12, "y", 1, "24");
    return pb_model(&g, 17);
}

static void test_shapes(void)
{
    static const float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    npu_graph *live = NULL;
    pb m = shapes();
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_STATUS(npu_graph_rewrite(&live, g, NULL, NULL, &diag), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(live), 1);
    run(g, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 3, (int64_t[]){ 2, 2, 2 }), x }, x, 8, "f32[2,4]");
    npu_graph_destroy(live);
    npu_graph_destroy(g);
    desc.backend = NULL; /* nobody computes the shape */
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_CONVERSION);
    NPU_CHECK(strstr(diag.message, "Reshape '': the shape must be known") != NULL);
}

/* A border of nothing, which exporters write before pools, is no op: it would keep a pool off bytes. */
static void test_no_border(void)
{
    static const int64_t pads[2][4] = { { 0, 0, 0, 0 }, { 0, 1, 0, -1 } };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    for (uint32_t i = 0; i < 2; i++) {
        pb g = { .len = 0 }, a = pb_attr_ints("pads", pads[i], 4);
        pb_node(&g, "Pad", "x", "p", &a, NULL);
        pb_node(&g, "Relu", "p", "y", NULL, NULL);
        pb_value(&g, 11, "x", 1, "22");
        pb_value(&g, 12, "y", 1, "22");
        pb m = pb_model(&g, 2);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_EQ(npu_graph_num_ops(read), 1 + i);
        npu_graph_destroy(read);
    }
}

static pb branch(const char *op)
{
    pb g = { .len = 0 }, a = { .len = 0 };
    pb_node(&g, op, "x", "r", NULL, NULL);
    pb_value(&g, 12, "r", 1, "2");
    (void)a;
    return g;
}

static pb graph_attr(const char *name, const pb *graph)
{
    pb a = { .len = 0 };
    pb_str(&a, 1, name);
    pb_put(&a, 6, graph);
    return a;
}

/* An If is the branch that is taken, and nothing of the other. */
static void test_if(void)
{
    static const float x[2] = { -1, 4 }, want[2][2] = { { -1, 4 }, { 1, 4 } };
    static const char *const ops[2] = { "aten.neg.default", "aten.abs.default" };
    pb then = branch("Abs"), other = branch("Neg"), g = { .len = 0 };
    pb a = graph_attr("then_branch", &then), b = graph_attr("else_branch", &other);
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    npu_diag diag;
    npu_onnx_desc desc = reading();
    for (int i = 0; i < 2; i++) {
        const bool is_true = i;
        float y[2] = { i ? want[1][0] : 1, i ? 4 : -4 };
        npu_array known = { "c", npu_spec_tensor(NPU_BOOL, 0, NULL), &is_true };
        desc.inputs = &known;
        desc.num_inputs = 1;
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_EQ(npu_graph_num_ops(read), 1);
        npu_op op = { 1 };
        NPU_CHECK(read && strcmp(npu_op_definition(read, op)->name, ops[i]) == 0);
        run(read, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x }, y, 2, "f32[2]");
        npu_graph_destroy(read);
    }
}

/* A loop: v doubles each turn, and each turn gives it out. */
static pb loop(int64_t turns, const char *op)
{
    pb body = { .len = 0 }, g = { .len = 0 }, t = pb_ints("turns", &turns, 1);
    pb_node(&body, "Identity", "more", "again", NULL, NULL);
    pb_node(&body, op, op[0] == 'A' ? "v v" : "v", "w", NULL, NULL);
    pb_node(&body, "Identity", "w", "scan", NULL, NULL);
    pb_value(&body, 11, "turn", 7, "");
    pb_value(&body, 11, "more", 9, "");
    pb_value(&body, 11, "v", 1, "2");
    pb_value(&body, 12, "again", 9, "");
    pb_value(&body, 12, "w", 1, "2");
    pb_value(&body, 12, "scan", 1, "2");
    pb a = graph_attr("body", &body);
    pb_node(&g, "Loop", turns ? "turns - x" : "- - x", "last all", &a, NULL);
    pb_put(&g, 5, &t);
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "all", 1, "32");
    return pb_model(&g, 13);
}

static void test_loop(void)
{
    static const float x[2] = { 1, 3 }, all[6] = { 2, 6, 4, 12, 8, 24 };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = loop(3, "Add");
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s", diag.message);
    run(g, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x }, all, 6, "f32[3,2]");
    npu_graph_destroy(g);
    m = loop(0, "Identity"); /* without a number of turns or a condition that is ever false */
    g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(!g && diag.status == NPU_ERR_BUDGET, "%s", diag.message);
}

/* Runs a graph on a few inputs, in order, and checks the f32 of output 0. */
static void run_all(const npu_graph *g, const void *const *inputs, const float *want, size_t len)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_THAT(npu_exec_create_simple(&exec, g, &cpu, 1, &diag) == NPU_OK, "%s", diag.message);
    for (uint32_t i = 0; exec && i < npu_graph_num_inputs(g); i++) {
        npu_array in = { NULL, *npu_value_spec(g, npu_graph_input(g, i)), inputs[i] };
        NPU_CHECK_STATUS(npu_exec_set_input_at(exec, i, &in), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    size_t size = 0;
    const void *got = npu_exec_output(exec, 0, &size);
    NPU_CHECK_EQ(size, len * sizeof *want);
    NPU_CHECK_BYTES(got, want, len * sizeof *want);
    npu_exec_destroy(exec);
}

/* Branches of which a run takes one, and branches in a branch; what they read is captured, also two levels up. */
static void test_if_of_data(void)
{
    static const float x[2] = { -1, 4 }, w[2] = { 4, 3 };
    pb deep = { .len = 0 }, other = { .len = 0 }, then = { .len = 0 }, plain = branch("Neg"), g = { .len = 0 };
    npu_diag diag;
    npu_onnx_desc desc = reading();
    pb_node(&deep, "Sub", "h x", "t", NULL, NULL); /* h of the branch around it, x of the graph around that */
    pb_node(&deep, "Sub", "t w", "d", NULL, NULL);
    pb_value(&deep, 12, "d", 1, "2");
    pb_node(&other, "Add", "h w", "e", NULL, NULL);
    pb_value(&other, 12, "e", 1, "2");
    pb a = graph_attr("then_branch", &deep), b = graph_attr("else_branch", &other);
    pb_node(&then, "Sub", "x w", "h", NULL, NULL);
    pb_node(&then, "If", "k", "r2", &a, &b);
    pb_value(&then, 12, "r2", 1, "2");
    a = graph_attr("then_branch", &then), b = graph_attr("else_branch", &plain);
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "k", 9, "");
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 11, "w", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    npu_graph *read = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(read, "%s", diag.message);
    for (int i = 0; i < 4; i++) {
        const bool c = i > 1, k = i % 2 == 1;
        float y[2];
        for (int at = 0; at < 2; at++) {
            float h = x[at] - w[at];
            y[at] = !c ? -x[at] : k ? h - x[at] - w[at] : h + w[at];
        }
        run_all(read, (const void *const[]){ &c, &k, x, w }, y, 2);
    }
    NPU_CHECK(read && strcmp(npu_op_definition(read, (npu_op){ 1 })->name, "npu.if") == 0);
    npu_graph_destroy(read);
    g.len = 0; /* dims that are not known */
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "k", 9, "");
    pb_value(&g, 11, "x", 1, "N");
    pb_value(&g, 11, "w", 1, "N");
    pb_value(&g, 12, "y", 1, "N");
    m = pb_model(&g, 17);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_DYNAMIC_SHAPE && strstr(diag.message, "in dims of the desc"));
}

/* One of the branches of an If makes three elements of x, which has two: no run can take it. */
static npu_status run_with_condition(const npu_graph *g, const bool *c, const float *x, const float *want)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    npu_array in[2] = { { "c", npu_spec_tensor(NPU_BOOL, 0, NULL), c },
                        { "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x } };
    NPU_CHECK_STATUS(npu_exec_set_input(exec, &in[0]), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(exec, &in[1]), NPU_OK);
    npu_status status = npu_exec_run(exec);
    if (status == NPU_OK) {
        NPU_CHECK_BYTES(npu_exec_output(exec, 0, NULL), want, 2 * sizeof *want);
    }
    npu_exec_destroy(exec);
    return status;
}

static void test_branch_of_other_sizes(void)
{
    static const float x[2] = { -1, 4 }, want[2] = { 1, -4 };
    static const int64_t three[1] = { 3 };
    static const bool yes = true, no = false;
    npu_onnx_desc desc = reading();
    npu_diag diag;
    for (int bad = 0; bad < 3; bad++) { /* the first branch, the second, both */
        pb other = { .len = 0 }, fits = branch("Neg"), g = { .len = 0 }, shape = pb_ints("three", three, 1);
        pb_node(&other, "Reshape", "x three", "r", NULL, NULL);
        pb_put(&other, 5, &shape);
        pb_value(&other, 12, "r", 1, "3");
        pb a = graph_attr("then_branch", bad == 1 ? &fits : &other);
        pb b = graph_attr("else_branch", bad == 0 ? &fits : &other);
        pb_node(&g, "If", "c", "y", &a, &b);
        pb_value(&g, 11, "c", 9, "");
        pb_value(&g, 11, "x", 1, "2");
        pb_value(&g, 12, "y", 1, "2");
        pb m = pb_model(&g, 17);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        if (bad == 2) {
            NPU_CHECK(!read && diag.status == NPU_ERR_SHAPE && strstr(diag.message, "neither branch fits"));
            continue;
        }
        NPU_CHECK_THAT(read, "%s", diag.message);
        NPU_CHECK_STATUS(run_with_condition(read, bad ? &yes : &no, x, want), NPU_OK);
        NPU_CHECK_STATUS(run_with_condition(read, bad ? &no : &yes, x, want), NPU_ERR_RANGE);
        npu_graph_destroy(read);
    }
}

/* Constants that the file does not hold as they are, in branches within branches: copies that live as long as the graph. */
static void test_constants_of_branches(void)
{
    static const float x[2] = { -1, 4 }, want[2] = { 6, 12 };
    static const int64_t k[2] = { 3, 4 };
    static const bool yes = true;
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb deep = { .len = 0 }, then = { .len = 0 }, other = branch("Neg"), g = { .len = 0 };
    pb t = pb_ints("k", k, 2), to = pb_attr_int("to", 1);
    pb_node(&deep, "Add", "x f", "s", NULL, NULL);
    pb_node(&deep, "Add", "s f", "d", NULL, NULL);
    pb_value(&deep, 12, "d", 1, "2");
    pb a = graph_attr("then_branch", &deep), b = graph_attr("else_branch", &other);
    pb_node(&then, "If", "c", "u", &a, &b);
    pb_node(&then, "Add", "u one", "v", NULL, NULL);
    pb_value(&then, 12, "v", 1, "2");
    a = graph_attr("then_branch", &then), b = graph_attr("else_branch", &other);
    pb one = { .len = 0 };
    pb_int(&one, 2, 1);
    pb_str(&one, 8, "one");
    pb_varint(&one, 4 << 3 | 5); /* 1 as a field of its own, not as raw data */
    pb_byte(&one, 0), pb_byte(&one, 0), pb_byte(&one, 0x80), pb_byte(&one, 0x3f);
    pb_node(&g, "Cast", "k", "f", &to, NULL);
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_put(&g, 5, &t);
    pb_put(&g, 5, &one);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    npu_graph *read = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(read, "%s", diag.message);
    float sum[2] = { want[0], want[1] + 1 };
    NPU_CHECK_STATUS(read ? run_with_condition(read, &yes, x, sum) : NPU_OK, NPU_OK);
    npu_graph_destroy(read);
}

/* v doubles until its largest element is over a limit, or for so many turns; of the first turn a run decides, too. */
static pb doubling(bool has_scan, bool has_first)
{
    pb body = { .len = 0 }, g = { .len = 0 }, keep = pb_attr_int("keepdims", 0);
    pb_node(&body, "Add", "v v", "w", NULL, NULL);
    pb_node(&body, "ReduceMax", "w", "top", &keep, NULL);
    pb_node(&body, "Less", "top limit", "again", NULL, NULL);
    pb_value(&body, 11, "turn", 7, "");
    pb_value(&body, 11, "more", 9, "");
    pb_value(&body, 11, "v", 1, "2");
    pb_value(&body, 12, "again", 9, "");
    pb_value(&body, 12, "w", 1, "2");
    if (has_scan) {
        pb_value(&body, 12, "top", 1, "");
    }
    pb a = graph_attr("body", &body);
    pb_node(&g, "Loop", has_first ? "turns first x" : "turns - x", has_scan ? "last all" : "last", &a, NULL);
    pb_value(&g, 11, "turns", 7, "");
    if (has_first) {
        pb_value(&g, 11, "first", 9, "");
    }
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 11, "limit", 1, "");
    pb_value(&g, 12, has_scan ? "all" : "last", 1, has_scan ? "n" : "2");
    return pb_model(&g, 13);
}

static void test_loop_of_data(void)
{
    static const float x[2] = { 1, 3 }, seven = 7;
    static const struct { int64_t turns; float limit, y[2]; } rows[] = {
        { 10, 20, { 8, 24 } }, { 2, 1000, { 4, 12 } }, { 0, 1000, { 1, 3 } }, { 10, 1, { 2, 6 } },
    };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = doubling(false, false);
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s", diag.message);
    for (size_t i = 0; i < 4; i++) {
        run_all(g, (const void *const[]){ &rows[i].turns, x, &rows[i].limit }, rows[i].y, 2);
    }
    npu_graph_destroy(g);
    const int64_t three = 3; /* the number of turns is known, the condition is after the first alone */
    desc.inputs = &(npu_array){ "turns", npu_spec_tensor(NPU_I64, 0, NULL), &three };
    desc.num_inputs = 1;
    g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s", diag.message);
    run_all(g, (const void *const[]){ x, &rows[0].limit }, rows[0].y, 2);
    run_all(g, (const void *const[]){ x, &rows[3].limit }, rows[3].y, 2);
    npu_graph_destroy(g);
    m = doubling(true, false); /* what each turn gives out, of at most three */
    g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s", diag.message);
    run_all(g, (const void *const[]){ x, &rows[1].limit }, (const float[]){ 6, 12, 24 }, 3);
    run_all(g, (const void *const[]){ x, &seven }, (const float[]){ 6, 12 }, 2);
    run_all(g, (const void *const[]){ x, &rows[3].limit }, (const float[]){ 6 }, 1);
    npu_graph_destroy(g);
    m = doubling(true, true); /* of at most three, and perhaps none */
    g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s", diag.message);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    static const bool yes = true, no = false;
    run_all(g, (const void *const[]){ &yes, x, &rows[1].limit }, (const float[]){ 6, 12, 24 }, 3);
    run_all(g, (const void *const[]){ &no, x, &rows[1].limit }, x, 0);
    run_all(g, (const void *const[]){ &yes, x, &seven }, (const float[]){ 6, 12 }, 2);
    npu_graph_destroy(g);
    desc.num_inputs = 0;
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_UNSUPPORTED && strstr(diag.message, "gives out something in each turn"));
}

/* A function of the model, whose attribute is that of the call, and whose names are its own. */
static void test_function(void)
{
    static const float x[2] = { -10, 4 }, y[2] = { -5, 4 };
    pb f = { .len = 0 }, attr = { .len = 0 }, node = { .len = 0 }, g = { .len = 0 }, call = { .len = 0 }, half = { .len = 0 };
    pb_str(&f, 1, "Soft");
    pb_str(&f, 4, "y");
    pb_str(&f, 5, "x");
    pb_str(&f, 6, "slope");
    pb_str(&attr, 1, "alpha");
    pb_str(&attr, 21, "slope");
    pb_str(&node, 1, "y");
    pb_str(&node, 2, "x");
    pb_str(&node, 4, "LeakyRelu");
    pb_put(&node, 5, &attr);
    pb_put(&f, 7, &node);
    pb_str(&f, 10, "mine");
    pb_str(&half, 1, "slope");
    pb_varint(&half, 2 << 3 | 5);
    pb_varint(&half, 0);
    pb_byte(&half, 0);
    pb_byte(&half, 0);
    pb_byte(&half, 0x3f); /* 0.5 */
    pb_str(&call, 1, "x");
    pb_str(&call, 2, "y");
    pb_str(&call, 4, "Soft");
    pb_str(&call, 7, "mine");
    pb_put(&call, 5, &half);
    pb_put(&g, 1, &call);
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    pb_put(&m, 25, &f);
    npu_diag diag;
    npu_graph *read = read_from(m.at, m.len, NULL, &diag);
    run(read, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x }, y, 2, "f32[2]");
    npu_graph_destroy(read);
}

/* ---- quantised models -------------------------------------------------------------------------------------------- */

/* Scales and zero points that the nodes of quantised models name: one s and z (u8 10), ones for weights of two channels. */
static void quantised_params(pb *g)
{
    static const uint8_t half[4] = { 0, 0, 0, 0x3f }, two[8] = { 0, 0, 0, 0x3f, 0, 0, 0, 0x3e }, ten[1] = { 10 }, zeros[2] = { 0, 0 }, zu[2] = { 131, 128 };
    static const uint8_t w[4] = { 1, 0xfe, 3, 100 }, bias[8] = { 4, 0, 0, 0, 0xf8, 0xff, 0xff, 0xff }, bw[2] = { 130, 126 };
    pb params[] = { pb_tensor("s", 1, "", half, 4),  pb_tensor("z", 2, "", ten, 1),   pb_tensor("sw", 1, "2", two, 8),
                    pb_tensor("zw", 3, "2", zeros, 2), pb_tensor("w", 3, "22", w, 4), pb_tensor("w4", 3, "2211", w, 4),
                    pb_tensor("bias", 6, "2", bias, 8), pb_tensor("u", 2, "2", bw, 2), pb_tensor("s0", 1, "2", "\0\0\0\0\0\0\0\0", 8),
                    pb_tensor("zu", 2, "2", zu, 2), pb_tensor("low", 1, "", "\0\0\0\0", 4),
                    pb_tensor("high", 1, "", "\0\0\xc0\x40", 4) };
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        pb_put(g, 5, &params[i]);
    }
}

/* The names of the ops of a graph, "?" where there is none. */
static void op_names(const npu_graph *g, char *out, size_t size)
{
    out[0] = 0;
    for (npu_op op = { 1 }; op.id <= npu_graph_num_ops(g); op.id++) {
        size_t len = strlen(out);
        const char *name = npu_op_definition(g, op)->name;
        snprintf(out + len, size - len, "%s%s", len ? " " : "", strchr(name, '.') ? strchr(name, '.') + 1 : name);
    }
}

typedef struct qdq_node { const char *op, *in, *out; int64_t axis; } qdq_node;

/* x f32, quantised by s and z as q and again as d; y is what the nodes make of it. */
static pb qdq_model(const char *dims, const qdq_node *nodes, size_t count)
{
    pb g = { .len = 0 };
    quantised_params(&g);
    pb_node(&g, "QuantizeLinear", "x s z", "q", NULL, NULL);
    pb_node(&g, "DequantizeLinear", "q s z", "d", NULL, NULL);
    for (size_t i = 0; i < count && nodes[i].op; i++) {
        pb axis = pb_attr_int("axis", nodes[i].axis);
        pb_node(&g, nodes[i].op, nodes[i].in, nodes[i].out, nodes[i].axis >= 0 ? &axis : NULL, NULL);
    }
    pb_value(&g, 11, "x", 1, dims);
    pb_value(&g, 12, "y", 1, dims);
    return pb_model(&g, 21);
}

/* Quantised models are read as PyTorch exports them, and the pass finds its integers. Weights are [[1, -2], [3, 100]] times
   0.5 and 0.125 along the axis; x is quantised exactly; results are u8 10 + .., times 0.5. */
static void test_quantised(void)
{
    static const struct { const char *dims, *ops; float x[2], y[2]; qdq_node nodes[5]; } rows[] = {
        /* [2, 4] W: 2 0.5 + 4 1.5, 2 (-0.25) + 4 12.5 = 49.5 */
        { "12", "quantize_per_tensor.default qlinear dequantize_per_tensor.default", { 2, 4 }, { 7, 49.5f },
          { { "DequantizeLinear", "w sw zw", "v", 1 }, { "MatMul", "d v", "m", -1 }, { "QuantizeLinear", "m s z", "r", -1 },
            { "DequantizeLinear", "r s z", "y", -1 } } },
        { "12", "quantize_per_tensor.default qlinear dequantize_per_tensor.default", { 2, 4 }, { 7, 49.5f },
          { { "DequantizeLinear", "w sw zw", "v", 1 }, { "Gemm", "d v", "m", -1 }, { "QuantizeLinear", "m s z", "r", -1 },
            { "DequantizeLinear", "r s z", "y", -1 } } },
        /* rows: 2 0.5 - 4 1, 2 0.375 + 4 12.5 = 50.75, which lies between 50.5 and 51: to even */
        { "1211", "quantize_per_tensor.default qconv dequantize_per_tensor.default", { 2, 4 }, { -3, 51 },
          { { "DequantizeLinear", "w4 sw zw", "v", 0 }, { "Conv", "d v", "m", -1 }, { "QuantizeLinear", "m s z", "r", -1 },
            { "DequantizeLinear", "r s z", "y", -1 } } },
        /* between 0 and 6, bounds that are tensors of one element: those of the convolution's result */
        { "1211", "quantize_per_tensor.default qconv dequantize_per_tensor.default", { 2, 4 }, { 0, 6 },
          { { "DequantizeLinear", "w4 sw zw", "v", 0 }, { "Conv", "d v", "m", -1 }, { "Clip", "m low high", "c", -1 },
            { "QuantizeLinear", "c s z", "r", -1 }, { "DequantizeLinear", "r s z", "y", -1 } } },
        { "2", "clamp.default", { 2, 9 }, { 2, 6 }, { { "Clip", "x low high", "y", -1 } } },
        { "2", "clamp.Tensor", { 2, 9 }, { 2, 6 }, { { "Add", "high s0", "h", -1 }, { "Clip", "x low h", "y", -1 } } },
        /* the same with a bias of 4 0.25 and -8 0.0625: 50.25, to even 50 */
        { "1211", "quantize_per_tensor.default qconv dequantize_per_tensor.default", { 2, 4 }, { -2, 50 },
          { { "QLinearConv", "q s z w4 sw zw s z bias", "r", -1 }, { "DequantizeLinear", "r s z", "y", -1 } } },
        { "12", "quantize_per_tensor.default qlinear dequantize_per_tensor.default", { 2, 4 }, { 7, 49.5f },
          { { "QLinearMatMul", "q s z w sw zw s z", "r", -1 }, { "DequantizeLinear", "r s z", "y", -1 } } },
        /* 130 - 131 and 126 - 128 are below 0, though all are u8; what is known is computed while the file is read */
        { "2", "add.Tensor", { 2, 4 }, { 1.5f, 3.75f }, { { "DequantizeLinear", "u sw zu", "v", 0 }, { "Add", "x v", "y", -1 } } },
        { "2", "add.Tensor", { 2, 4 }, { 2, 4 }, { { "DequantizeLinear", "u s0 zu", "v", 0 }, { "Add", "x v", "y", -1 } } },
    };
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc integers = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER | 1u << NPU_PASS_DEAD_CODE };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        npu_graph *fast = NULL;
        char names[512];
        uint32_t rank = (uint32_t)strlen(rows[i].dims);
        pb m = qdq_model(rows[i].dims, rows[i].nodes, 5);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(g, "%s", diag.message);
        NPU_CHECK_STATUS(npu_graph_optimize(&fast, g, &integers, NULL, &diag), NPU_OK);
        op_names(fast, names, sizeof names);
        NPU_CHECK_STR(names, rows[i].ops);
        npu_array x = { "x", npu_spec_tensor(NPU_F32, rank, rank > 1 ? (int64_t[]){ 1, 2, 1, 1 } : (int64_t[]){ 2 }), rows[i].x };
        const char *spec = rank == 1 ? "f32[2]" : rank == 2 ? "f32[1,2]" : "f32[1,2,1,1]";
        run(g, &x, rows[i].y, 2, spec);
        run(fast, &x, rows[i].y, 2, spec);
        npu_graph_destroy(fast);
        npu_graph_destroy(g);
    }
}

/* ONNX divides by the scale: 1.2047939 / 0.009449365 is 127.49999, times one over it 127.5. A product of integers behind
   it, by the unit matrix, still finds the scale. */
static void test_quantised_input(void)
{
    static const float scale = 0.009449365f, half = 0.5f, x[2] = { 1.2047939f, -1.2047939f };
    const float y[2] = { 127 * scale, -127 * scale };
    const npu_backend *cpu = npu_ref_backend();
    const npu_optimize_desc integers = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER };
    pb params[] = { pb_floats("s", "", &scale, 1), pb_tensor("z", 3, "", "", 1), pb_floats("h", "", &half, 1),
                    pb_tensor("w", 3, "22", "\2\0\0\2", 4) };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    npu_graph *fast = NULL;
    char names[512];
    pb g = { .len = 0 };
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        pb_put(&g, 5, &params[i]);
    }
    pb_node(&g, "QuantizeLinear", "x s z", "q", NULL, NULL);
    pb_node(&g, "DequantizeLinear", "q s z", "d", NULL, NULL);
    pb_node(&g, "DequantizeLinear", "w h z", "v", NULL, NULL);
    pb_node(&g, "MatMul", "d v", "m", NULL, NULL);
    pb_node(&g, "QuantizeLinear", "m s z", "r", NULL, NULL);
    pb_node(&g, "DequantizeLinear", "r s z", "y", NULL, NULL);
    pb_value(&g, 11, "x", 1, "12");
    pb_value(&g, 12, "y", 1, "12");
    pb m = pb_model(&g, 21);
    npu_graph *read = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(read, "%s", diag.message);
    NPU_CHECK_STATUS(npu_graph_optimize(&fast, read, &integers, NULL, &diag), NPU_OK);
    op_names(fast, names, sizeof names);
    NPU_CHECK_STR(names, "div.Scalar quantize_per_tensor.default qlinear dequantize_per_tensor.default");
    npu_array in = { "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, 2 }), x };
    run(read, &in, y, 2, "f32[1,2]");
    run(fast, &in, y, 2, "f32[1,2]");
    npu_graph_destroy(fast);
    npu_graph_destroy(read);
}

/* ---- products of bytes ------------------------------------------------------------------------------------------- */

enum { BYTE_ROWS = 2, BYTE_LEN = 4, BYTE_COLS = 3 };

typedef struct byte_row { bool a_signed, b_signed, is_batch, is_square; uint32_t num_za, num_zb; } byte_row;

static int byte_value(const uint8_t *x, size_t i, bool is_signed) { return is_signed ? (int8_t)x[i] : x[i]; }

/* y = float(MatMulInteger(a, b, za, zb)); b is a weight, or a's own transpose. */
static pb byte_model(const byte_row *row, const uint8_t *b, const uint8_t *za, const uint8_t *zb)
{
    pb g = { .len = 0 }, to = pb_attr_int("to", 1);
    pb w = pb_tensor("b", row->b_signed ? 3 : 2, "43", b, BYTE_LEN * BYTE_COLS);
    pb p = pb_tensor("za", row->a_signed ? 3 : 2, row->num_za == 1 ? "" : "2", za, row->num_za);
    pb q = pb_tensor("zb", row->b_signed ? 3 : 2, row->num_zb == 1 ? "" : row->is_square ? "2" : "3", zb, row->num_zb);
    char in[16];
    const char *zeros = row->num_za ? "za" : "-";
    snprintf(in, sizeof in, "a %c %s %s", row->is_square ? 't' : 'b', zeros, row->num_zb ? "zb" : "-");
    if (row->is_square) {
        pb_node(&g, "Transpose", "a", "t", NULL, NULL);
    }
    pb_node(&g, "MatMulInteger", in, "m", NULL, NULL);
    pb_node(&g, "Cast", "m", "y", &to, NULL);
    pb_put(&g, 5, &w);
    if (row->num_za) {
        pb_put(&g, 5, &p);
    }
    if (row->num_zb) {
        pb_put(&g, 5, &q);
    }
    pb_value(&g, 11, "a", row->a_signed ? 3 : 2, row->is_batch ? "124" : "24");
    pb_value(&g, 12, "y", 1, row->is_batch ? "123" : row->is_square ? "22" : "23");
    return pb_model(&g, 13);
}

/* All sums are exact, with signs and without, whatever is taken from the bytes of all, of a row or of a column. */
static void test_byte_products(void)
{
    static const uint8_t a[BYTE_ROWS * BYTE_LEN] = { 0, 255, 128, 127, 17, 200, 3, 254 };
    static const uint8_t b[BYTE_LEN * BYTE_COLS] = { 255, 0, 128, 1, 127, 129, 200, 30, 255, 254, 5, 77 };
    static const uint8_t za[2] = { 131, 250 }, zb[3] = { 128, 3, 255 };
    static const byte_row rows[] = {
        { false, true, false, false, 1, 0 }, { false, true, true, false, 1, 1 }, { false, false, false, false, 1, 1 },
        { true, true, false, false, 0, 0 },  { true, false, true, false, 2, 3 }, { false, false, true, false, 2, 3 },
        { false, false, false, false, 0, 0 }, { true, true, false, false, 1, 3 }, { false, false, false, true, 1, 1 },
        { true, true, false, true, 2, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const byte_row *row = &rows[i];
        const size_t cols = row->is_square ? BYTE_ROWS : BYTE_COLS;
        npu_onnx_desc desc = reading();
        npu_diag diag;
        float y[BYTE_ROWS * BYTE_COLS];
        for (size_t at = 0; at < BYTE_ROWS * cols; at++) {
            size_t m = at / cols, n = at % cols;
            int p = row->num_za ? byte_value(za, row->num_za > 1 ? m : 0, row->a_signed) : 0, sum = 0;
            int q = row->num_zb ? byte_value(zb, row->num_zb > 1 ? n : 0, row->b_signed) : 0;
            for (size_t k = 0; k < BYTE_LEN; k++) {
                int other = row->is_square ? byte_value(a, n * BYTE_LEN + k, row->a_signed)
                                           : byte_value(b, k * BYTE_COLS + n, row->b_signed);
                sum += (byte_value(a, m * BYTE_LEN + k, row->a_signed) - p) * (other - q);
            }
            y[at] = (float)sum;
        }
        pb m = byte_model(row, b, za, zb);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(g, "%u: %s", (unsigned)i, diag.message);
        const int64_t dims[] = { 1, BYTE_ROWS, BYTE_LEN };
        const npu_dtype dtype = row->a_signed ? NPU_I8 : NPU_U8;
        const npu_array in = { "a", npu_spec_tensor(dtype, row->is_batch ? 3 : 2, dims + !row->is_batch), a };
        run(g, &in, y, BYTE_ROWS * cols, row->is_batch ? "f32[1,2,3]" : row->is_square ? "f32[2,2]" : "f32[2,3]");
        npu_graph_destroy(g);
    }
}

/* A convolution of bytes with three filters. */
typedef struct long_row { const char *x, *w; int64_t group, pads[6], stride, dilation; bool x_signed, w_signed; char x_zero, w_zero; } long_row;

/* Rows of bytes of more bytes than there are addresses: what fails first has no dims that could be gone by. */
static void test_too_many_bytes(void)
{
    static const uint8_t w[4] = { 1, 2, 3, 4 };
    const npu_onnx_dim huge = { "a", (int64_t)1 << 62 };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb g = { .len = 0 }, weight = pb_tensor("w", 3, "22", w, sizeof w);
    desc.dims = &huge;
    desc.num_dims = 1;
    pb_node(&g, "MatMulInteger", "x w", "y", NULL, NULL);
    pb_put(&g, 5, &weight);
    pb_value(&g, 11, "x", 2, "a2");
    pb_value(&g, 12, "y", 6, "22");
    pb m = pb_model(&g, 17);
    NPU_CHECK_THAT(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_OVERFLOW, "%s", diag.message);
}

static uint8_t long_byte(size_t i) { return (uint8_t)(i * 2654435761u >> 13); }

static int64_t digit(const char *dims, size_t i) { return i < strlen(dims) ? dims[i] - '0' : 1; }

/* x minus its zero point: - none, k known, u not known, the largest byte; of channels, c. */
static int64_t long_value(size_t at, bool is_signed, char zero, int64_t channel)
{
    uint8_t x = long_byte(at), z = zero == 'k' ? 77 : zero == 'u' ? (is_signed ? 127 : 255) : (uint8_t)(50 * channel + 90);
    return (is_signed ? (int8_t)x : x) - (zero == '-' ? 0 : is_signed ? (int8_t)z : z);
}

/* One element of the convolution of x with filter o, where the windows begin. */
static int64_t long_sum(const long_row *row, const char *x_dims, int64_t batch, int64_t o, const int64_t *begin)
{
    const int64_t channels = digit(x_dims, 1), each = digit(row->w, 1), first = o / (digit(row->w, 0) / row->group) * each;
    const int64_t x1 = digit(x_dims, 2), x2 = digit(x_dims, 3), x3 = digit(x_dims, 4);
    const int64_t k1 = digit(row->w, 2), k2 = digit(row->w, 3), k3 = digit(row->w, 4);
    int64_t sum = 0;
    for (int64_t k = 0; k < each * k1 * k2 * k3; k++) {
        int64_t c = k / (k1 * k2 * k3), a = begin[0] + k / (k2 * k3) % k1 * row->dilation;
        int64_t b = begin[1] + k / k3 % k2 * row->dilation, d = begin[2] + k % k3 * row->dilation;
        size_t at = (size_t)((((batch * channels + first + c) * x1 + a) * x2 + b) * x3 + d);
        if (a >= 0 && a < x1 && b >= 0 && b < x2 && d >= 0 && d < x3) {
            sum += long_value(at, row->x_signed, row->x_zero, 0) *
                   long_value((size_t)(o * each * k1 * k2 * k3 + k), row->w_signed, row->w_zero, o);
        }
    }
    return sum;
}

static pb long_model(const long_row *row, size_t rank, const uint8_t *w, size_t len)
{
    static const uint8_t zx = 77, zw[3] = { 90, 140, 190 };
    int64_t stride[3] = { row->stride, row->stride, row->stride }, dilation[3] = { row->dilation, row->dilation, row->dilation };
    pb g = { .len = 0 }, n = { .len = 0 }, to = pb_attr_int("to", 1), keep = pb_attr_int("keepdims", 0);
    pb attrs[4] = { pb_attr_ints("pads", row->pads, 2 * rank), pb_attr_ints("strides", stride, rank),
                    pb_attr_ints("dilations", dilation, rank), pb_attr_int("group", row->group) };
    pb t[3] = { pb_tensor("w", row->w_signed ? 3 : 2, row->w, w, len), pb_tensor("zx", row->x_signed ? 3 : 2, "", &zx, 1),
                pb_tensor("zw", row->w_signed ? 3 : 2, "3", zw, 3) };
    char in[32];
    snprintf(in, sizeof in, "x w %s %s", row->x_zero == '-' ? "-" : row->x_zero == 'k' ? "zx" : "most", row->w_zero == '-' ? "-" : "zw");
    pb_node(&g, "ReduceMax", "x", "most", &keep, NULL);
    pb_words(&n, 1, in);
    pb_words(&n, 2, "m");
    pb_str(&n, 4, "ConvInteger");
    for (size_t i = 0; i < 4; i++) {
        pb_put(&n, 5, &attrs[i]);
    }
    pb_put(&g, 1, &n);
    pb_node(&g, "Cast", "m", "y", &to, NULL);
    for (size_t i = 0; i < 3; i++) {
        pb_put(&g, 5, &t[i]);
    }
    pb_value(&g, 11, "x", row->x_signed ? 3 : 2, row->x);
    pb_value(&g, 12, "y", 1, "");
    return pb_model(&g, 13);
}

/* Sums that f32 does not hold are exact, too: in parts, or in f64. */
static void test_long_convolutions(void)
{
    static const long_row rows[] = {
        { "1988", "3966", 1, { 0 }, 1, 1, false, true, '-', '-' }, { "2988", "3966", 1, { 1, 2, 0, 1 }, 1, 1, false, true, 'k', '-' },
        { "2988", "3966", 1, { 1, 2, 0, 1 }, 2, 1, true, true, 'u', 'c' }, { "1997", "3966", 1, { 3, 3, 3, 3 }, 1, 2, false, false, 'u', 'c' },
        { "1988", "3966", 1, { 2, 0, 0, 2 }, 1, 1, false, false, '-', '-' }, { "19555", "39444", 1, { 0, 1, 0, 1, 0, 0 }, 1, 1, true, true, 'k', '-' },
        { "N988", "3966", 1, { 1, 1, 1, 1 }, 1, 1, false, true, 'k', 'c' }, { "N988", "3977", 1, { 0 }, 1, 1, true, false, 'u', '-' },
        { "1999", "3399", 3, { 4, 4, 4, 4 }, 1, 1, false, true, 'k', '-' }, { "N988", "3388", 3, { 0 }, 1, 1, false, true, '-', '-' },
        { "1933", "3911", 1, { 0 }, 1, 1, false, true, 'k', 'c' },
    };
    static uint8_t x[2048], w[4096];
    static float y[2048];
    for (size_t i = 0; i < sizeof x; i++) {
        x[i] = long_byte(i);
    }
    for (size_t i = 0; i < sizeof w; i++) {
        w[i] = long_byte(i);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const long_row *row = &rows[i];
        const size_t rank = strlen(row->x) - 2;
        int64_t dims[5] = { 1, 1, 1, 1, 1 }, steps[3] = { 1, 1, 1 };
        size_t num = 1, len = 0;
        char x_dims[8], spec[64];
        npu_onnx_desc desc = reading();
        npu_diag diag;
        snprintf(x_dims, sizeof x_dims, "%s", row->x);
        x_dims[0] = x_dims[0] == 'N' ? '2' : x_dims[0];
        for (size_t k = 0; k < rank + 2; k++) {
            dims[k] = digit(x_dims, k);
            num *= (size_t)digit(row->w, k);
        }
        pb m = long_model(row, rank, w, num);
        for (size_t k = 0; k < rank; k++) {
            steps[k] = (dims[k + 2] + row->pads[k] + row->pads[k + rank] - (digit(row->w, k + 2) - 1) * row->dilation - 1) / row->stride + 1;
        }
        for (int64_t at = 0; at < dims[0] * 3 * steps[0] * steps[1] * steps[2]; at++) {
            int64_t begin[3] = { at / (steps[2] * steps[1]) % steps[0], at / steps[2] % steps[1], at % steps[2] };
            for (size_t k = 0; k < 3; k++) {
                begin[k] = begin[k] * row->stride - (k < rank ? row->pads[k] : 0);
            }
            int64_t o = at / (steps[0] * steps[1] * steps[2]);
            y[len++] = (float)long_sum(row, x_dims, o / 3, o % 3, begin);
        }
        int end = snprintf(spec, sizeof spec, "f32[%d,3", (int)dims[0]);
        for (size_t k = 0; k < rank; k++) {
            end += snprintf(spec + end, sizeof spec - (size_t)end, ",%d", (int)steps[k]);
        }
        snprintf(spec + end, sizeof spec - (size_t)end, "]");
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(g, "%u: %s", (unsigned)i, diag.message);
        const npu_array in = { "x", npu_spec_tensor(row->x_signed ? NPU_I8 : NPU_U8, (uint32_t)rank + 2, dims), x };
        run(g, &in, y, len, spec);
        npu_graph_destroy(g);
    }
}

/* Parts of what does not fit are no product. */
static void test_long_and_short(void)
{
    static const long_row rows[] = { { "1788", "3966", 1, { 0 }, 1, 1, false, true, '-', '-' },
                                     { "1988", "3866", 1, { 0 }, 1, 1, false, true, '-', '-' } };
    static const uint8_t w[3 * 9 * 36];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = long_model(&rows[i], 2, w, i ? 3 * 8 * 36 : sizeof w);
        NPU_CHECK_THAT(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_SHAPE, "%s", diag.message);
    }
}

/* ---- forms of one op --------------------------------------------------------------------------------------------- */

/* x f32[1,2,2] is 1 -2 3 -4, of dims that a converter wrote as -1; c f32[2] 2 10; e f32[0,2]; w 4 bits [2,3], s its
   scales; row f32[3], more, wider: what it and x are made larger by; p f32[1,1,1,2] a picture, o offsets in it; i its identity; u and t the picture's numbers in other dims; n1,
   n2 .. sizes. */
static pb form_model(const char *op, const char *in, int64_t opset, const pb *attrs)
{
    static const float c[2] = { 2, 10 }, scales[4] = { 1, 10, 100, 1000 };
    static const uint8_t nibbles[3] = { 0x21, 0x7f, 0x38 }; /* 1 2 -1, 7 -8 3: without a gap between the rows */
    static const float picture[2] = { 2, 4 }, three = 3, offsets[4] = { 0, 0, 0.5f, -1 };
    static const float identity[6] = { 1, 0, 0, 0, 1, 0 };
    static const float row[3] = { 1, 2, 3 }, more = 5.0f / 3, wider[3] = { 1, 1, 1.75f };
    static const int64_t sizes[4] = { 1, 1, 1, 2 }, pair[2] = { 1, 3 };
    const pb values[] = {
        pb_floats("p", "1112", picture, 2), pb_floats("k", "1111", &three, 1),
        pb_floats("o", "1212", offsets, 4), pb_floats("i", "123", identity, 6),
        pb_ints("n1112", sizes, 4), pb_ints("n13", pair, 2), pb_ints("n3", pair + 1, 1), pb_ints("n2", sizes + 3, 1),
        pb_floats("c", "2", c, 2), pb_floats("e", "02", c, 0), pb_tensor("w", 22, "23", nibbles, 3),
        pb_floats("row", "3", row, 3), pb_floats("more", "1", &more, 1), pb_floats("wider", "3", wider, 3),
        pb_floats("s", "22", scales, 4), pb_floats("u", "112", picture, 2), pb_floats("t", "121", picture, 2)
    };
    pb g = { .len = 0 }, n = { .len = 0 }, dim = { .len = 0 }, shape = { .len = 0 }, tensor = { .len = 0 };
    pb type = { .len = 0 }, info = { .len = 0 };
    pb_words(&n, 1, in);
    pb_str(&n, 2, "y");
    pb_str(&n, 4, op);
    if (strncmp(op, "Fused", 5) == 0) {
        pb_str(&n, 7, "com.microsoft");
    }
    for (int i = 0; i < 4 && attrs[i].len; i++) {
        pb_put(&n, 5, &attrs[i]);
    }
    pb_put(&g, 1, &n);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        pb_put(&g, 5, &values[i]);
    }
    pb_int(&dim, 1, -1);
    pb_put(&shape, 1, &dim);
    pb_put(&shape, 1, &dim);
    pb_put(&shape, 1, &dim);
    pb_int(&tensor, 1, 1);
    pb_put(&tensor, 2, &shape);
    pb_put(&type, 1, &tensor);
    pb_str(&info, 1, "x");
    pb_put(&info, 2, &type);
    pb_put(&g, 11, &info);
    pb_value(&g, 12, "y", 1, "2");
    return pb_model(&g, opset);
}

typedef struct form {
    const char *op, *in;
    int64_t opset;
    pb attrs[4];
    const char *spec; /* of the result, and its numbers */
    float y[6];
    size_t len;
} form;

static void check_form(const form *f)
{
    static const float x[4] = { 1, -2, 3, -4 };
    npu_onnx_desc desc = reading();
    npu_onnx_dim dims[3] = { { "x.0", 1 }, { "x.1", 2 }, { "x.2", 2 } };
    npu_diag diag;
    desc.dims = dims;
    desc.num_dims = 3;
    pb m = form_model(f->op, f->in, f->opset, f->attrs);
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g, "%s: %s", f->op, diag.message);
    if (g) {
        const npu_array in = { "x", npu_spec_tensor(NPU_F32, 3, (int64_t[]){ 1, 2, 2 }), x };
        run(g, &in, f->y, f->len, f->spec);
    }
    npu_graph_destroy(g);
}

static void test_forms(void)
{
    static const int64_t two = 2, zero = 0;
    const pb kernel = pb_attr_ints("kernel_shape", &two, 1), dilation = pb_attr_ints("dilations", &two, 1);
    const pb pads = pb_attr_ints("pads", (const int64_t[]){ 2, 2 }, 2), stride = pb_attr_ints("strides", &two, 1);
    const pb far = pb_attr_ints("dilations", (const int64_t[]){ 3 }, 1), axes = pb_attr_ints("axes", &zero, 1);
    const pb before = pb_attr_ints("pads", (const int64_t[]){ 1, 0 }, 2), one = pb_attr_int("p", 1);
    const pb third = pb_attr_ints("strides", (const int64_t[]){ 3 }, 1), ceil = pb_attr_int("ceil_mode", 1);
    const pb around = pb_attr_ints("pads", (const int64_t[]){ 1, 1 }, 2);
    const pb both = pb_attr_ints("axes", (const int64_t[]){ 1, 2 }, 2);
    const pb keep = pb_attr_int("keepdims", 0), counted = pb_attr_int("count_include_pad", 1);
    pb leaky = { .len = 0 };
    pb_str(&leaky, 1, "activation");
    pb_str(&leaky, 4, "LeakyRelu");
    const pb heads = pb_attr_int("q_num_heads", 1), keys = pb_attr_int("kv_num_heads", 1);
    const pb causal = pb_attr_int("is_causal", 1), exclusive = pb_attr_int("exclusive", 1);
    const pb window[2] = { pb_attr_int("left_window_size", 0), pb_attr_int("right_window_size", 0) };
    const pb border = pb_attr_ints("border", (const int64_t[]){ 1, 0, 0, 0 }, 4);
    pb circle = { .len = 0 }, bias = { .len = 0 };
    pb_str(&bias, 1, "bias");
    pb_bytes(&bias, 7, "\0\0\0\x3f", 4); /* 0.5 */
    pb_str(&circle, 1, "mode");
    pb_str(&circle, 4, "circular");
    pb linear = { .len = 0 }, corners = { .len = 0 };
    pb_str(&linear, 1, "mode");
    pb_str(&linear, 4, "linear");
    pb_str(&corners, 1, "coordinate_transformation_mode");
    pb_str(&corners, 4, "align_corners");
    const pb least = pb_attr_ints("starts", (const int64_t[]){ INT64_MIN }, 1);
    const form rows[] = {
        { "Slice", "x", 9, { least, pb_attr_ints("ends", (const int64_t[]){ 1 }, 1) }, "f32[1,2,2]", { 1, -2, 3, -4 }, 4 },
        { "Resize", "row - more", 13, { { .len = 0 } }, "f32[5]", { 1, 1, 2, 3, 3 }, 5 },
        { "Resize", "x - wider", 13, { linear, corners }, "f32[1,2,3]", { 1, -0.5f, -2, 3, -0.5f, -4 }, 6 },
        { "Add", "x c", 6, { pb_attr_int("broadcast", 1), pb_attr_int("axis", 1) }, "f32[1,2,2]", { 3, 0, 13, 6 }, 4 },
        { "Add", "x c", 7, { { .len = 0 } }, "f32[1,2,2]", { 3, 8, 5, 6 }, 4 },
        { "PRelu", "x c", 6, { { .len = 0 } }, "f32[1,2,2]", { 1, -4, 3, -40 }, 4 },
        { "PRelu", "x c", 7, { { .len = 0 } }, "f32[1,2,2]", { 1, -20, 3, -40 }, 4 },
        { "AveragePool", "x", 19, { kernel, dilation, pads, stride }, "f32[1,2,2]", { 1, 1, 3, 3 }, 4 },
        { "AveragePool", "x", 19, { kernel, far, pads, counted }, "f32[1,2,3]", { -1, 0, 0.5f, -2, 0, 1.5f }, 6 },
        { "LpPool", "x", 18, { kernel, one, ceil, before }, "f32[1,2,2]", { 1, 3, 3, 7 }, 4 },
        { "LpPool", "x", 18, { kernel, one, ceil, third }, "f32[1,2,1]", { 3, 7 }, 2 },
        { "ReduceMax", "e", 13, { axes, keep }, "f32[2]", { -HUGE_VALF, -HUGE_VALF }, 2 },
        { "ReduceMin", "e", 13, { axes, keep }, "f32[2]", { HUGE_VALF, HUGE_VALF }, 2 },
        { "DequantizeLinear", "w s", 21, { pb_attr_int("block_size", 2), pb_attr_int("axis", 1) }, "f32[2,3]",
          { 1, 2, -10, 700, -800, 3000 }, 6 },
        { "CenterCropPad", "x n13", 18, { both }, "f32[1,1,3]", { 1, -2, 0 }, 3 },
        { "Col2Im", "x n3 n2", 18, { { .len = 0 } }, "f32[1,1,3]", { 1, 1, -4 }, 3 },
        { "Col2Im", "x n2 n2", 18, { around, stride }, "f32[1,1,2]", { 3, -2 }, 2 },
        { "AffineGrid", "i n1112", 20, { pb_attr_int("align_corners", 1) }, "f32[1,1,2,2]", { -1, 0, 1, 0 }, 4 },
        { "FusedMatMul", "x x", 13, { pb_attr_int("transB", 1) }, "f32[1,2,2]", { 5, 11, 11, 25 }, 4 },
        { "FusedMatMul", "x x", 13, { pb_attr_int("transA", 1) }, "f32[1,2,2]", { 10, -14, -14, 20 }, 4 },
        { "FusedConv", "p k", 13, { leaky }, "f32[1,1,1,2]", { 6, 12 }, 2 },
        { "DeformConv", "p k o", 19, { { .len = 0 } }, "f32[1,1,1,2]", { 9, 6 }, 2 },
        { "Affine", "x", 8, { { .len = 0 } }, "f32[1,2,2]", { 1, -2, 3, -4 }, 4 },
        { "ImageScaler", "p", 8, { bias }, "f32[1,1,1,2]", { 2.5f, 4.5f }, 2 },
        { "ConstantFill", "x", 8, { pb_attr_float("value", 3) }, "f32[1,2,2]", { 3, 3, 3, 3 }, 4 },
        { "ConstantFill", "n13", 8, { pb_attr_int("input_as_shape", 1),
                                      pb_attr_ints("extra_shape", (const int64_t[]){ 2 }, 1) },
          "f32[1,3,2]", { 0 }, 6 },
        { "Crop", "p", 8, { border }, "f32[1,1,1,1]", { 4 }, 1 },
        { "Pow", "x n2", 15, { { .len = 0 } }, "f32[1,2,2]", { 1, 4, 9, 16 }, 4 },
        { "CumSum", "x n2", 14, { exclusive }, "f32[1,2,2]", { 0, 1, 0, 3 }, 4 },
        { "CumProd", "x n2", 26, { exclusive }, "f32[1,2,2]", { 1, 1, 1, 3 }, 4 },
        { "CumProd", "x n2", 26, { pb_attr_int("reverse", 1) }, "f32[1,2,2]", { -2, -2, -12, -4 }, 4 },
        { "BitCast", "x", 26, { pb_attr_int("to", 1) }, "f32[1,2,2]", { 1, -2, 3, -4 }, 4 },
        { "Attention", "x x x", 25, { heads, keys, causal, window[0] }, "f32[1,2,2]", { 1, -2, 3, -4 }, 4 },
        { "Attention", "x x x", 25, { heads, keys, window[0], window[1] }, "f32[1,2,2]", { 1, -2, 3, -4 }, 4 },
        { "RotaryEmbedding", "x t t", 23, { pb_attr_int("num_heads", 1) }, "f32[1,2,2]", { 6, -2, 28, -4 }, 4 },
        { "RotaryEmbedding", "x t t", 23, { pb_attr_int("num_heads", 1), pb_attr_int("interleaved", 1) }, "f32[1,2,2]",
          { 6, -2, 28, -4 }, 4 },
        { "TensorScatter", "x u n2", 24, { circle }, "f32[1,2,2]", { 2, 4, 3, -4 }, 4 },
        { "TensorScatter", "x u", 24, { { .len = 0 } }, "f32[1,2,2]", { 2, 4, 3, -4 }, 4 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_form(&rows[i]);
    }
}

/* A batch with a name that is given no size: ops that do not need it run with any. */
static void test_named_batch(void)
{
    static const float x[4] = { 1, 2, 3, 4 }, scales[4] = { 1, 1, 1, 2 };
    static const int64_t half[2] = { 1, 2 };
    const pb block = pb_attr_int("blocksize", 2), axis = pb_attr_int("axis", 2), p = pb_attr_int("p", 1);
    const pb kernel = pb_attr_ints("kernel_shape", half, 2);
    const struct { const char *op, *in, *dims; pb attrs[2]; const char *spec; float y[8]; size_t len; } rows[] = {
        { "Upsample", "x s", "N122", { { .len = 0 } }, "f32[1,1,2,4]", { 1, 1, 2, 2, 3, 3, 4, 4 }, 8 },
        { "Resize", "x s", "N122", { { .len = 0 } }, "f32[1,1,2,4]", { 1, 1, 2, 2, 3, 3, 4, 4 }, 8 },
        { "DepthToSpace", "x", "N411", { block }, "f32[1,1,2,2]", { 1, 2, 3, 4 }, 4 },
        { "SpaceToDepth", "x", "N122", { block }, "f32[1,4,1,1]", { 1, 2, 3, 4 }, 4 },
        { "Hardmax", "x", "N122", { axis }, "f32[1,1,2,2]", { 0, 0, 0, 1 }, 4 },
        { "LpPool", "x", "N122", { p, kernel }, "f32[1,1,2,1]", { 3, 7 }, 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb g = { .len = 0 }, s = pb_floats("s", "4", scales, 4);
        const char *d = rows[i].dims;
        npu_array in = { "x", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, d[1] - '0', d[2] - '0', d[3] - '0' }), x };
        pb_node(&g, rows[i].op, rows[i].in, "y", rows[i].attrs[0].len ? &rows[i].attrs[0] : NULL,
                rows[i].attrs[1].len ? &rows[i].attrs[1] : NULL);
        pb_put(&g, 5, &s);
        pb_value(&g, 11, "x", 1, rows[i].dims);
        pb_value(&g, 12, "y", 1, "");
        pb m = pb_model(&g, i ? 10 : 9);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(read, "%s: %s", rows[i].op, diag.message);
        if (read) {
            run(read, &in, rows[i].y, rows[i].len, rows[i].spec);
        }
        npu_graph_destroy(read);
    }
}

static void test_composed(void)
{
    static const char *const rows[][3] = {
        { "Swish", "x", "silu.default" },
        { "Pow", "x n2", "pow.Tensor_Scalar" },
        { "ScaledTanh", "x", "mul.Scalar tanh.default mul.Scalar" },
        { "RMSNormalization", "x c", "_fused_rms_norm.default mul.Tensor" },
        { "SimplifiedLayerNormalization", "x c", "_fused_rms_norm.default mul.Tensor" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pb none[4] = { { .len = 0 } };
        npu_onnx_dim dims[3] = { { "x.0", 1 }, { "x.1", 2 }, { "x.2", 2 } };
        npu_onnx_desc desc = reading();
        npu_diag diag;
        char names[128];
        desc.dims = dims;
        desc.num_dims = 3;
        pb m = form_model(rows[i][0], rows[i][1], 24, none);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(g, "%s: %s", rows[i][0], diag.message);
        op_names(g, names, sizeof names);
        NPU_CHECK_STR(names, rows[i][2]);
        npu_graph_destroy(g);
    }
}

/* ---- ONNX Runtime's ops ------------------------------------------------------------------------------------------ */

/* One of tests/vectors/onnx_runtime.pb, which onnx_runtime.py made: a model of one op, and what ONNX Runtime made of
   it. */
typedef struct runtime_case { char name[64]; onnx_span model; npu_array in[16], out[4]; uint32_t num_in,
                              num_out; } runtime_case;

static void runtime_tensor(onnx_reader *r, onnx_span message, npu_array *out)
{
    npu_value v = onnx_tensor(r, message);
    out->name = onnx_str(r, onnx_member(r, message, ONNX_TENSOR_NAME));
    out->spec = *npu_value_spec(r->g, v);
    out->data = npu_value_data(r->g, v, NULL);
}

static void runtime_case_read(onnx_reader *r, onnx_span message, runtime_case *c)
{
    onnx_field f;
    memset(c, 0, sizeof *c);
    while (onnx_next(r, &message, &f)) {
        if (f.number == 1) {
            snprintf(c->name, sizeof c->name, "%.*s", ONNX_TEXT(f.bytes));
        } else if (f.number == 2) {
            c->model = f.bytes;
        } else if (f.number == 3 && c->num_in < 16) {
            runtime_tensor(r, f.bytes, &c->in[c->num_in++]);
        } else if (f.number == 4 && c->num_out < 4) {
            runtime_tensor(r, f.bytes, &c->out[c->num_out++]);
        }
    }
}

/* Files as quantisers and ONNX Runtime at its highest level write them: ops on bytes, and parts of them, are all that is
   left. */
static void check_is_integer(const char *name, const npu_graph *g)
{
    npu_optimize_desc desc = { .passes = 1u << NPU_PASS_INTEGER };
    npu_graph *integer = NULL;
    NPU_CHECK_STATUS(npu_graph_optimize(&integer, g, &desc, NULL, NULL), NPU_OK);
    for (npu_op op = { 1 }; op.id <= npu_graph_num_ops(integer); op.id++) {
        npu_kind kind = npu_op_kind(integer, op);
        NPU_CHECK_THAT(kind >> 16 == NPU_NS_NPU || kind == NPU_ATEN_SLICE, "%s: %s", name, npu_op_definition(integer, op)->name);
    }
    npu_graph_destroy(integer);
}

static void check_runtime_case(const runtime_case *c)
{
    const npu_tolerance t = { .rtol = 1e-3, .atol = 1e-5, .has_rtol = true, .has_atol = true, .equal_nan = true };
    const npu_backend *cpu = npu_ref_backend();
    npu_onnx_desc desc = reading();
    npu_exec *exec = NULL;
    npu_diag diag;
    npu_graph *g = read_from(c->model.at, onnx_len(c->model), &desc, &diag);
    npu_status status = g ? npu_exec_create_simple(&exec, g, &cpu, 1, &diag) : diag.status;
    for (uint32_t i = 0; i < c->num_in && status == NPU_OK; i++) {
        status = npu_exec_set_input(exec, &c->in[i]);
    }
    status = status ? status : npu_exec_run(exec);
    NPU_CHECK_THAT(status == NPU_OK && c->num_out == npu_graph_num_outputs(g), "%s: %s", c->name, diag.message);
    for (uint32_t i = 0; i < c->num_out && status == NPU_OK; i++) {
        npu_difference d = { 0 };
        npu_array got = { NULL, *npu_exec_output_spec(exec, i), npu_exec_output(exec, i, NULL) };
        status = npu_array_compare(&got, &c->out[i], &t, &d);
        NPU_CHECK_THAT(status == NPU_OK, "%s: output %u, element %u: %g, expected %g", c->name, (unsigned)i,
                       (unsigned)d.worst,
                       d.got, d.want);
    }
    if (strncmp(c->name, "qnet", 4) == 0) {
        check_is_integer(c->name, g);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_runtime_ops(void)
{
    static const npu_onnx_desc none;
    npu_text file = npu_text_init(NULL);
    onnx_reader r;
    onnx_field f;
    runtime_case c;
    uint32_t count = 0;
    NPU_CHECK_STATUS(npu_text_load(&file, "tests/vectors/onnx_runtime.pb"), NPU_OK);
    memset(&r, 0, sizeof r);
    r.desc = &none;
    r.g = npu_graph_create(NULL);
    r.allocator.resize = onnx_resize_block;
    r.file = (const uint8_t *)file.data;
    for (onnx_span all = { r.file, r.file + file.len }; onnx_next(&r, &all, &f); count++) {
        runtime_case_read(&r, f.bytes, &c);
        check_runtime_case(&c);
    }
    NPU_CHECK(r.status == NPU_OK && count > 50);
    onnx_free_blocks(&r);
    npu_graph_destroy(r.g);
    npu_text_free(&file);
}

/* x f32[1,2,2] as in forms; b a byte, b8 eight, f a float, d f32[2,2]. */
static pb runtime_model(const char *op, const char *in, const pb *attrs)
{
    static const float d[4] = { 1, 2, 3, 4 };
    static const int64_t two = 2;
    const pb values[] = { pb_tensor("b", 2, "1", "1", 1), pb_tensor("b8", 2, "8", "12345678", 8),
                          pb_floats("f", "1", d, 1), pb_floats("d", "22", d, 4),
                          pb_ints("n2", &two, 1), pb_floats("p", "1111", d, 1) };
    pb g = { .len = 0 }, n = { .len = 0 };
    pb_words(&n, 1, in);
    pb_str(&n, 2, "y");
    pb_str(&n, 4, op);
    pb_str(&n, 7, "com.microsoft");
    for (int i = 0; i < 4 && attrs[i].len; i++) {
        pb_put(&n, 5, &attrs[i]);
    }
    pb_put(&g, 1, &n);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        pb_put(&g, 5, &values[i]);
    }
    pb_value(&g, 11, "x", 1, "122");
    pb_value(&g, 12, "y", 1, "2");
    return pb_model(&g, 17);
}

static void test_bad_runtime_ops(void)
{
    const pb heads = pb_attr_int("num_heads", 1), groups = pb_attr_int("kv_num_heads", 1),
        many = pb_attr_int("num_heads", 3);
    const pb n = pb_attr_int("N", 1), k = pb_attr_int("K", 2), block = pb_attr_int("block_size", 16),
        bits = pb_attr_int("bits", 3);
    const pb huge = pb_attr_int("N", INT64_MAX), rotary = pb_attr_int("do_rotary", 1),
        wide = pb_attr_int("rotary_embedding_dim", 8);
    const pb ndim = pb_attr_int("signal_ndim", 2), odd = pb_attr_int("future", 0), twice = pb_attr_int("transA", 2);
    const pb level = pb_attr_int("accuracy_level", 4), ends = pb_attr_int("unidirectional", -1);
    const struct { const char *op, *in; pb attrs[4]; npu_status status; const char *words; } rows[] = {
        { "FusedMatMul", "x d", { odd }, NPU_ERR_ATTRIBUTE, "attribute 'future' is unknown" },
        { "FusedMatMul", "x d", { twice }, NPU_ERR_ATTRIBUTE, "transA is 2, expected 0 or 1" },
        { "MatMulNBits", "x b8 f", { n, k, block, odd }, NPU_ERR_ATTRIBUTE, "attribute 'future' is unknown" },
        { "MatMulNBits", "x b8 f", { n, k, block, level }, NPU_OK, "" }, /* of how it is computed, not what */
        { "MultiHeadAttention", "x x x", { heads, ends }, NPU_ERR_ATTRIBUTE, "unidirectional is -1, expected 0 or 1" },
        { "GroupQueryAttention", "x x x", { heads, groups, pb_attr_text("k_quant_type", "PER_TENSOR") }, NPU_ERR_ATTRIBUTE,
          "k_quant_type is 'PER_TENSOR', expected one of: NONE" },
        { "CDist", "d d", { pb_attr_text("metric", "cosine") }, NPU_ERR_ATTRIBUTE, "metric is 'cosine', expected one of" },
        { "GroupNorm", "p f f", { pb_attr_int("activation", 2) }, NPU_ERR_ATTRIBUTE, "activation is 2, expected 0 or 1" },
        { "MatMulNBits", "x b f", { { .len = 0 } }, NPU_ERR_UNSUPPORTED, "0 x 0, 4 bits in blocks of 0" },
        { "MatMulNBits", "x b f", { n, k, block, bits }, NPU_ERR_UNSUPPORTED, "1 x 2, 3 bits in blocks of 16" },
        { "MatMulNBits", "x b f", { huge, k, block }, NPU_ERR_UNSUPPORTED, "is not supported" },
        { "MatMulNBits", "x b f", { n, k, block }, NPU_ERR_SHAPE, "the weight: 1 of u8, expected 8 bytes" },
        { "MatMulNBits", "x d f", { n, k, block }, NPU_ERR_SHAPE, "the weight: 4 of f32, expected 8 bytes" },
        { "MatMulNBits", "x x f", { n, k, block }, NPU_ERR_CONVERSION, "the weight must be known" },
        { "MatMulNBits", "x b8 f - n2", { n, k, block }, NPU_ERR_SHAPE, "g_idx has 1 elements, expected K = 2" },
        { "MatMulNBits", "-", { n, k, block }, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "MatMulBnb4", "x b f", { n, k, block }, NPU_ERR_UNSUPPORTED, "a weight of this form" },
        { "GatherBlockQuantized", "x n2 f", { { .len = 0 } }, NPU_ERR_UNSUPPORTED, "a table of this form" },
        { "MultiHeadAttention", "x x x", { { .len = 0 } }, NPU_ERR_UNSUPPORTED, "no number of heads" },
        { "MultiHeadAttention", "x x x", { many }, NPU_ERR_SHAPE, "" },
        { "MultiHeadAttention", "x - x", { heads }, NPU_ERR_UNSUPPORTED, "no number of heads" },
        { "MultiHeadAttention", "x x x - p", { heads }, NPU_ERR_UNSUPPORTED, "a mask of this form" },
        { "Attention", "x d", { heads }, NPU_ERR_SHAPE, "rows of 2 elements are not queries, keys and values" },
        { "Attention", "x d", { heads, rotary }, NPU_ERR_UNSUPPORTED, "rotary embedding" },
        { "GroupQueryAttention", "x x x - - f n2", { heads }, NPU_ERR_UNSUPPORTED,
          "heads that do not go into each other" },
        { "GroupQueryAttention", "x x x - - f x", { heads, groups }, NPU_ERR_CONVERSION,
          "total_sequence_length must be known" },
        { "GroupQueryAttention", "x x x - - f n2", { heads, groups, rotary }, NPU_ERR_RANK, "an operand has no dim 1" },
        { "RotaryEmbedding", "x n2 d d", { heads, wide }, NPU_ERR_UNSUPPORTED,
          "rotary_embedding_dim of more than a head's" },
        { "EmbedLayerNormalization", "- - d d - f f", { { .len = 0 } }, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "SkipLayerNormalization", "x x", { { .len = 0 } }, NPU_ERR_RANK, "an operand has no dim 0" },
        { "GroupNorm", "x f f", { { .len = 0 } }, NPU_ERR_UNSUPPORTED, "not four dims" },
        { "Rfft", "x", { ndim }, NPU_ERR_UNSUPPORTED, "more than one dim" },
        { "Irfft", "f", { { .len = 0 } }, NPU_ERR_UNSUPPORTED, "a spectrum without pairs" },
        { "BeamSearch", "x", { { .len = 0 } }, NPU_ERR_NOT_FOUND, "searches for words are not supported" },
        { "Snpe", "x", { { .len = 0 } }, NPU_ERR_NOT_FOUND, "no op of that name is known" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = runtime_model(rows[i].op, rows[i].in, rows[i].attrs);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(!g == (rows[i].status != NPU_OK) && diag.status == rows[i].status &&
                           strstr(diag.message, rows[i].words) && !diag.message[0] == !!g, "%s %s: %s: %s",
                       rows[i].op, rows[i].in, npu_status_name(diag.status), diag.message);
        npu_graph_destroy(g);
    }
}

/* ---- data beside the model --------------------------------------------------------------------------------------- */

static const uint8_t beside[12] = { 9, 9, 9, 9, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40 };

static npu_status open_beside(void *ctx, const char *location, npu_bytes *out)
{
    (void)ctx;
    out->data = beside;
    out->size = sizeof beside;
    return strcmp(location, "sub/w.bin") == 0 ? NPU_OK : NPU_ERR_IO;
}

static pb external(const char *location, const char *offset, const char *length)
{
    pb g = { .len = 0 }, t = { .len = 0 };
    const char *const entries[3][2] = { { "location", location }, { "offset", offset }, { "length", length } };
    pb_int(&t, 1, 2);
    pb_int(&t, 2, 1);
    pb_str(&t, 8, "w");
    pb_int(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        pb entry = { .len = 0 };
        pb_str(&entry, 1, entries[i][0]);
        pb_str(&entry, 2, entries[i][1]);
        pb_put(&t, 13, &entry);
    }
    pb_node(&g, "Add", "x w", "y", NULL, NULL);
    pb_put(&g, 5, &t);
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    return pb_model(&g, 17);
}

static void test_external(void)
{
    static const float x[2] = { 1, 1 }, y[2] = { 2, 3 };
    static const struct { const char *location, *offset, *length; npu_status status; const char *words; } bad[] = {
        { "../w.bin", "4", "8", NPU_ERR_UNSUPPORTED, "outside the model's folder" },
        { "sub/../../w.bin", "4", "8", NPU_ERR_UNSUPPORTED, "outside the model's folder" },
        { "/etc/passwd", "4", "8", NPU_ERR_UNSUPPORTED, "outside the model's folder" },
        { "C:w.bin", "4", "8", NPU_ERR_UNSUPPORTED, "outside the model's folder" },
        { "", "4", "8", NPU_ERR_UNSUPPORTED, "outside the model's folder" },
        { "other.bin", "4", "8", NPU_ERR_IO, "'other.bin' cannot be read" },
        { "sub/w.bin", "5", "8", NPU_ERR_SHAPE, "8 bytes from 5 of 'sub/w.bin', which has 12, for a tensor of 8" },
        { "sub/w.bin", "18446744073709551615", "8", NPU_ERR_PARSE, "which is no number" },
        { "sub/w.bin", "1844674407370955160", "8", NPU_ERR_SHAPE, "which has 12" },
        { "sub/w.bin", "4", "4", NPU_ERR_SHAPE, "4 bytes from 4" },
        { "sub/w.bin", "-4", "8", NPU_ERR_PARSE, "offset of data beside the model is '-4', which is no number" },
    };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = external("sub/w.bin", "4", "8");
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_UNSUPPORTED && strstr(diag.message, "set external"));
    desc.external = open_beside;
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    run(g, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x }, y, 2, "f32[2]");
    npu_graph_destroy(g);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        m = external(bad[i].location, bad[i].offset, bad[i].length);
        NPU_CHECK(!read_from(m.at, m.len, &desc, &diag));
        NPU_CHECK_THAT(diag.status == bad[i].status && strstr(diag.message, bad[i].words), "%s %s %s: %s", bad[i].location, bad[i].offset,
                       bad[i].length, diag.message);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

typedef struct heard { char text[512]; } heard;
static void hear(void *ctx, const npu_diag *diag)
{
    heard *h = (heard *)ctx;
    size_t len = strlen(h->text);
    snprintf(h->text + len, sizeof h->text - len, "%s\n", strchr(diag->message, ':') ? strchr(diag->message, ':') + 2 : "");
}

/* A dim that must be known is called what the file calls it; one that is computed, after those of the inputs. */
static void check_unknown(pb *g, npu_status status, const char *words)
{
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = pb_model(g, 11);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == status);
    NPU_CHECK_THAT(strstr(diag.message, words) != NULL, "%s", diag.message);
}

static void test_unknown_dims(void)
{
    static const struct { const char *in, *words; } rows[] = { { "x", "give 'a' a size" }, { "xx", "give 'a', 'b' a size" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb g = { .len = 0 }, axis = pb_attr_int("axis", 0);
        pb_value(&g, 11, "x", 1, "ab");
        pb_node(&g, "Concat", "x x", "xx", &axis, NULL);
        pb_node(&g, "Split", rows[i].in, "y z", &axis, NULL);
        pb_value(&g, 12, "y", 1, "ab");
        check_unknown(&g, NPU_ERR_DYNAMIC_SHAPE, rows[i].words);
    }
    pb squeeze = { .len = 0 }, axes = pb_attr_ints("axes", (const int64_t[]){ 1 }, 1);
    pb_value(&squeeze, 11, "x", 1, "ab");
    pb_node(&squeeze, "Squeeze", "x", "y", &axes, NULL);
    pb_value(&squeeze, 12, "y", 1, "a");
    check_unknown(&squeeze, NPU_ERR_DYNAMIC_SHAPE, "give 'b' a size");
    static const int64_t shape[2] = { 2, 3 };
    pb expand = { .len = 0 }, to = pb_ints("to", shape, 2);
    pb_put(&expand, 5, &to);
    pb_value(&expand, 11, "x", 1, "ab");
    pb_node(&expand, "Expand", "x to", "y", NULL, NULL);
    pb_value(&expand, 12, "y", 1, "23");
    check_unknown(&expand, NPU_ERR_DYNAMIC_SHAPE, "give 'b' a size");
    pb shape_of = { .len = 0 };
    pb_value(&shape_of, 11, "x", 1, "ab");
    pb_node(&shape_of, "Shape", "x", "y", NULL, NULL);
    pb_value(&shape_of, 12, "y", 7, "2");
    check_unknown(&shape_of, NPU_ERR_DYNAMIC_SHAPE, "give 'a' a size");
    pb places = { .len = 0 }, second = pb_attr_int("axis", 1);
    pb_value(&places, 11, "x", 1, "23");
    pb_node(&places, "NonZero", "x", "n", NULL, NULL);
    pb_node(&places, "Split", "n", "y z", &second, NULL);
    pb_value(&places, 12, "y", 7, "22");
    check_unknown(&places, NPU_ERR_CONVERSION, "dim 1 must be known when the model is read; it is as long as data says");
}

static void pb_node_of(pb *graph, const char *domain, const char *op)
{
    pb n = { .len = 0 };
    pb_str(&n, 4, op);
    pb_str(&n, 7, domain);
    pb_put(graph, 1, &n);
}

/* All ops that cannot be read, those in branches, too, before anything is built. */
static void test_all_refused(void)
{
    pb then = branch("Bernoulli"), other = branch("Relu"), g = { .len = 0 };
    pb a = graph_attr("then_branch", &then), b = graph_attr("else_branch", &other);
    heard h = { "" };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb_node(&g, "Nowhere", "gone", "q", NULL, NULL);
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_node(&g, "MaxRoiPool", "y", "z", NULL, NULL);
    pb_node_of(&g, "ai.onnx.ml", "Scaler");
    pb_node_of(&g, "ai.onnx.preview.training", "Adam");
    pb_node_of(&g, "com.microsoft.nchwc", "ReorderInput");
    desc.report = hear;
    desc.report_ctx = &h;
    pb m = pb_model(&g, 17);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_NOT_FOUND);
    NPU_CHECK_STR(h.text, "Nowhere '': no op of that name is known\n"
                          "Bernoulli '': random numbers, which an input may hold instead, are not supported\n"
                          "MaxRoiPool '': pools of regions whose sizes data decides are not supported\n"
                          "ai.onnx.ml.Scaler '': trees and other classic models are not supported\n"
                          "ai.onnx.preview.training.Adam '': training ops are not supported\n"
                          "com.microsoft.nchwc.ReorderInput '': weights lie as one processor wants them; let ONNX Runtime save the model at the "
                          "level extended\n");
}

/* A graph of one node, or of what else the row says, with x f32[2] and k i64[1] = 1. */
static pb one_node(const char *op, const char *in, const char *out, const pb *attr)
{
    static const int64_t one = 1, twice[2] = { 0, 0 };
    pb g = { .len = 0 }, k = pb_ints("k", &one, 1), kk = pb_ints("kk", twice, 2);
    pb_node(&g, op, in, out, attr, NULL);
    pb_put(&g, 5, &k);
    pb_put(&g, 5, &kk);
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    return g;
}

/* Numbers of a file that are no sizes, or that lie beyond all of them. */
static void test_sizes_of_floats(void)
{
    static const struct { const char *op, *in, *mode; float at[8]; npu_status status; } rows[] = {
        { "Resize", "x - f", "linear", { 1, 1, 2, 2 }, NPU_OK }, { "Resize", "x - f", "linear", { 1, 1, 1e30f, 2 }, NPU_ERR_UNSUPPORTED },
        { "Resize", "x - f", "cubic", { 1, 1, NAN, 2 }, NPU_ERR_UNSUPPORTED },
        { "Resize", "x - f", "nearest", { 1, 1, 2, (float)HUGE_VAL }, NPU_ERR_UNSUPPORTED },
        { "Resize", "x - f", "nearest", { 1, 1, -2, 2 }, NPU_ERR_UNSUPPORTED },
        { "Resize", "x - f", "linear", { 1, 1, 0, 2 }, NPU_ERR_UNSUPPORTED },
        { "Resize", "x e s", "linear", { 0, 0, 0, 0, 1, 1, 1e30f, 1e30f }, NPU_OK },
        { "Resize", "x e s", "cubic", { 0, 0, -1e30f, 1e30f, 1, 1, NAN, 1 }, NPU_OK },
    };
    static const float twos[4] = { 1, 1, 2, 2 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool crops = strcmp(rows[i].in, "x e s") == 0;
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb g = { .len = 0 }, mode = { .len = 0 }, how = { .len = 0 }, f = pb_floats("f", "4", rows[i].at, 4);
        pb e = pb_floats("e", "8", rows[i].at, 8), s = pb_floats("s", "4", twos, 4);
        pb_str(&mode, 1, "mode");
        pb_str(&mode, 4, rows[i].mode);
        pb_str(&how, 1, "coordinate_transformation_mode");
        pb_str(&how, 4, "tf_crop_and_resize");
        pb_node(&g, rows[i].op, rows[i].in, "y", &mode, crops ? &how : NULL);
        pb_put(&g, 5, &f);
        pb_put(&g, 5, &e);
        pb_put(&g, 5, &s);
        pb_value(&g, 11, "x", 1, "1144");
        pb_value(&g, 12, "y", 1, "");
        pb m = pb_model(&g, 17);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(diag.status == rows[i].status, "%u: %s: %s", (unsigned)i, npu_status_name(diag.status), diag.message);
        npu_graph_destroy(read);
    }
}

/* Words that no op has for its attribute, and attributes that the op has not. */
static void test_bad_words(void)
{
    static const struct { const char *op, *in, *name, *word; npu_status status; const char *words; } rows[] = {
        { "Conv", "x x", "auto_pad", "SAME", NPU_ERR_ATTRIBUTE, "auto_pad is 'SAME', expected one of: NOTSET SAME_UPPER" },
        { "MaxPool", "x", "auto_pad", "valid", NPU_ERR_ATTRIBUTE, "auto_pad is 'valid'" },
        { "Resize", "x - x", "mode", "area", NPU_ERR_ATTRIBUTE, "mode is 'area'" },
        { "Resize", "x - x", "coordinate_transformation_mode", "half", NPU_ERR_ATTRIBUTE, "mode is 'half'" },
        { "Resize", "x - x", "nearest_mode", "round", NPU_ERR_ATTRIBUTE, "nearest_mode is 'round'" },
        { "Resize", "x - x", "keep_aspect_ratio_policy", "larger", NPU_ERR_ATTRIBUTE, "policy is 'larger'" },
        { "Upsample", "x x", "mode", "cubic", NPU_ERR_ATTRIBUTE, "mode is 'cubic'" },
        { "Pad", "x k", "mode", "symmetric", NPU_ERR_ATTRIBUTE, "mode is 'symmetric'" },
        { "DepthToSpace", "x", "mode", "CDR", NPU_ERR_ATTRIBUTE, "mode is 'CDR'" },
        { "GridSample", "x x", "mode", "area", NPU_ERR_ATTRIBUTE, "mode is 'area'" },
        { "GridSample", "x x", "padding_mode", "wrap", NPU_ERR_ATTRIBUTE, "padding_mode is 'wrap'" },
        { "ScatterElements", "x k x", "reduction", "mean", NPU_ERR_ATTRIBUTE, "reduction is 'mean'" },
        { "ScatterND", "x k x", "reduction", "sum", NPU_ERR_ATTRIBUTE, "reduction is 'sum'" },
        { "SoftmaxCrossEntropyLoss", "x k", "reduction", "add", NPU_ERR_ATTRIBUTE, "reduction is 'add'" },
        { "BitShift", "k k", "direction", "forward", NPU_ERR_ATTRIBUTE, "direction is 'forward', expected one of: LEFT RIGHT" },
        { "LSTM", "x x x", "direction", "LEFT", NPU_ERR_ATTRIBUTE, "direction is 'LEFT'" },
        { "Relu", "x", "auto_pad", "VALID", NPU_ERR_ATTRIBUTE, "Relu '': attribute 'auto_pad' is unknown" },
        { "Softmax", "x", "axes", "1", NPU_ERR_ATTRIBUTE, "Softmax '': attribute 'axes' is unknown, and could change the result, did you mean 'axis'?" },
        { "Dropout", "x", "momentum", "1", NPU_ERR_ATTRIBUTE, "Dropout '': attribute 'momentum' is unknown" },
        { "Dropout", "x", "seed", "1", NPU_OK, "" },
        { "Relu", "x", "__tool", "1", NPU_OK, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb attr = { .len = 0 };
        pb_str(&attr, 1, rows[i].name);
        pb_str(&attr, 4, rows[i].word);
        pb g = one_node(rows[i].op, rows[i].in, "y", &attr), m = pb_model(&g, 17);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(diag.status == rows[i].status && strstr(diag.message, rows[i].words), "%s %s: %s", rows[i].op, rows[i].word,
                       diag.message);
        npu_graph_destroy(read);
    }
}

/* Borders that cut more than there is, or that no memory holds, at either end. */
static void test_bad_pads(void)
{
    static const char *const modes[] = { "reflect", "edge", "wrap", "constant" };
    static const int64_t borders[] = { INT64_MIN, INT64_MAX, -3, (int64_t)1 << 40 };
    for (size_t i = 0; i < 4 * 2 * sizeof borders / sizeof borders[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        int64_t pads[4] = { 0, 0, 0, 0 };
        bool is_constant = i % 4 == 3, is_far = is_constant && borders[i / 8] != -3;
        pads[i / 4 % 2 * 2] = borders[i / 8];
        pb mode = { .len = 0 }, border = pb_attr_ints("pads", pads, 4), g = { .len = 0 };
        pb_str(&mode, 1, "mode");
        pb_str(&mode, 4, modes[i % 4]);
        pb_node(&g, "Pad", "x", "y", &mode, &border);
        pb_value(&g, 11, "x", 1, "24");
        pb_value(&g, 12, "y", 1, "");
        pb m = pb_model(&g, 10);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        if (is_constant && borders[i / 8] == (int64_t)1 << 40) { /* which has a size, if no memory, where one holds it */
            NPU_CHECK_THAT(SIZE_MAX > UINT32_MAX ? read != NULL : diag.status == NPU_ERR_OVERFLOW, "%s", diag.message);
        } else {
            NPU_CHECK_THAT(!read && diag.status == (is_far ? NPU_ERR_OVERFLOW : is_constant ? NPU_ERR_SHAPE : NPU_ERR_UNSUPPORTED) &&
                               strstr(diag.message, is_far ? "computed from pad does not fit" : is_constant ? "pad leaves -1"
                                                                                         : "a border of that size"),
                           "%s %lld: %s", modes[i % 4], (long long)borders[i / 8], diag.message);
        }
        npu_graph_destroy(read);
    }
}

/* What runtimes make of both is not the same: a region that is cut out, made smaller with a smoothed kernel. */
static void test_smoothed_crop(void)
{
    static const float roi[4] = { 0, 0.2f, 1, 0.8f }, scales[2] = { 1, 0.5f };
    const pb attrs[] = { pb_attr_text("coordinate_transformation_mode", "tf_crop_and_resize"), pb_attr_int("antialias", 1) };
    static const char *const modes[] = { "linear", "cubic", "nearest" };
    for (size_t i = 0; i < 3; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        const pb mode = pb_attr_text("mode", modes[i]), e = pb_floats("e", "4", roi, 4), s = pb_floats("s", "2", scales, 2);
        pb g = { .len = 0 }, n = { .len = 0 };
        pb_words(&n, 1, "x e s");
        pb_str(&n, 2, "y");
        pb_str(&n, 4, "Resize");
        pb_put(&n, 5, &attrs[0]);
        pb_put(&n, 5, &attrs[1]);
        pb_put(&n, 5, &mode);
        pb_put(&g, 1, &n);
        pb_put(&g, 5, &e);
        pb_put(&g, 5, &s);
        pb_value(&g, 11, "x", 1, "28");
        pb_value(&g, 12, "y", 1, "");
        pb m = pb_model(&g, 18);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(i == 2 ? read != NULL : !read && diag.status == NPU_ERR_UNSUPPORTED &&
                           strstr(diag.message, "antialias with tf_crop_and_resize") != NULL, "%s: %s", modes[i], diag.message);
        npu_graph_destroy(read);
    }
}

static void test_bad_nodes(void)
{
    static const int64_t two_axes[2] = { 0, 0 }, zero = 0;
    const pb far = pb_attr_int("axis", 9), twice = pb_attr_ints("axes", two_axes, 2), strides = pb_attr_ints("strides", &zero, 1);
    const pb first = pb_attr_ints("axes", &zero, 1);
    const pb string = pb_attr_int("to", 8), blocks = pb_attr_int("block_size", 32), none = { .len = 0 };
    const struct { const char *op, *in, *out; const pb *attr; npu_status status; const char *words; } rows[] = {
        { "Relu", "later", "y", &none, NPU_ERR_NOT_FOUND, "Relu '': nothing before it makes 'later'" },
        { "Relu", "y", "y", &none, NPU_ERR_NOT_FOUND, "nothing before it makes 'y'" },
        { "Relu", "x", "x", &none, NPU_ERR_DUPLICATE, "'x' is there twice" },
        { "Relu", "x", "z", &none, NPU_ERR_NOT_FOUND, "nothing makes the output 'y'" },
        { "Relu", "", "y", &none, NPU_ERR_ARITY, "Relu '': " },
        { "Softmax", "x", "y", &far, NPU_ERR_AXIS, "axis 9 of 1 dims" },
        { "ReduceMax", "x", "y", &twice, NPU_ERR_AXIS, "axis 0 is there twice" },
        { "ReduceMax", "-", "y", &first, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "Squeeze", "-", "y", &first, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "Flatten", "-", "y", &none, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "Shape", "-", "y", &none, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "Size", "", "y", &none, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "LayerNormalization", "x", "y", &none, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { "RMSNormalization", "x -", "y", &none, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { "BatchNormalization", "x - x x x", "y", &none, NPU_ERR_ARITY, "operand 1 of 5 is missing" },
        { "BatchNormalization", "x x - x x", "y", &none, NPU_ERR_ARITY, "operand 2 of 5 is missing" },
        { "InstanceNormalization", "x - x", "y", &none, NPU_ERR_ARITY, "operand 1 of 3 is missing" },
        { "InstanceNormalization", "x x", "y", &none, NPU_ERR_ARITY, "operand 2 of 3 is missing" },
        { "GroupNormalization", "x x", "y", &none, NPU_ERR_ARITY, "operand 2 of 3 is missing" },
        { "QLinearConv", "k x - k x k x k", "y", &none, NPU_ERR_ARITY, "operand 2 of 8 is missing" },
        { "QLinearMatMul", "k x k k x - x k", "y", &none, NPU_ERR_ARITY, "operand 5 of 8 is missing" },
        { "TopK", "x", "y", &none, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { "Unsqueeze", "x -", "y", &first, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { "Slice", "x k -", "y", &none, NPU_ERR_ARITY, "operand 2 of 3 is missing" },
        { "Pad", "x", "y", &none, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { "LSTM", "x x", "y", &none, NPU_ERR_ARITY, "operand 2 of 3 is missing" },
        { "Unsqueeze", "x kk", "y", &none, NPU_ERR_AXIS, "axis 0 is there twice" },
        { "Slice", "x kk kk kk", "y", &none, NPU_ERR_AXIS, "axis 0 is there twice" },
        { "OneHot", "x k k", "y", &none, NPU_ERR_UNSUPPORTED, "a depth, or values" },
        { "DequantizeLinear", "x -", "y", &none, NPU_ERR_ARITY, "an operand is missing" },
        { "QuantizeLinear", "x - -", "y", &none, NPU_ERR_ARITY, "an operand is missing" },
        { "ScatterND", "- k x", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "CastLike", "x -", "y", &none, NPU_ERR_ARITY, "an operand is missing" },
        { "Where", "- x x", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Gather", "x -", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Gemm", "x -", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Clip", "- x", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Mod", "x -", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "OneHot", "k - x", "y", &none, NPU_ERR_ARITY, "operand 1 of 3 is missing" },
        { "Expand", "x -", "y", &none, NPU_ERR_ARITY, "the shape is missing" },
        { "ReverseSequence", "- k", "y", &none, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { "MatMulInteger", "- x", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Cast", "x", "y", &string, NPU_ERR_UNSUPPORTED, "tensors of strings are not supported" },
        { "QuantizeLinear", "x x", "y", &blocks, NPU_ERR_AXIS, "axis 1 of 1 dims" },
        { "DequantizeLinear", "k x", "y", &far, NPU_ERR_AXIS, "axis 9 of 1 dims" },
        { "Cast", "x", "y", &none, NPU_ERR_UNSUPPORTED, "dtype 0 is not supported" },
        { "Attention", "x x x x", "y", &none, NPU_ERR_UNSUPPORTED, "no number of heads, are not supported" },
        { "RotaryEmbedding", "x x x", "y", &none, NPU_ERR_UNSUPPORTED, "no number of heads, are not supported" },
        { "TensorScatter", "x x k", "y", &far, NPU_ERR_AXIS, "axis 9 of 1 dims" },
        { "Crop", "x", "y", &none, NPU_ERR_RANK, "an operand has no dim 2" },
        { "MatMulInteger", "x -", "y", &none, NPU_ERR_ARITY, "is missing" },
        { "Reshape", "x x", "y", &none, NPU_ERR_CONVERSION, "the shape must be known when the model is read" },
        { "Conv", "x x", "y", &strides, NPU_ERR_UNSUPPORTED, "a window needs 3 to 5 dims of its input, which has 1" },
        { "TopK", "x x", "y", &none, NPU_ERR_CONVERSION, "k must be known" },
        { "If", "k", "y", &none, NPU_ERR_ATTRIBUTE, "the graph 'then_branch' is missing" },
        { "Add", "x k", "y", &none, NPU_ERR_DTYPE, "operands of f32 and i64, expected one dtype" },
        { "Add", "x x", "y", &none, NPU_OK, "" },
    };
    npu_onnx_desc desc = reading();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_diag diag;
        pb g = one_node(rows[i].op, rows[i].in, rows[i].out, rows[i].attr->len ? rows[i].attr : NULL), m = pb_model(&g, 13);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(diag.status == rows[i].status && strstr(diag.message, rows[i].words), "%s: %s: %s", rows[i].op,
                       npu_status_name(diag.status), diag.message);
        npu_graph_destroy(read);
    }
}

/* Nodes of which attributes are numbers. */
typedef struct list_node { const char *op, *in, *out; struct { const char *name; int64_t value; } attrs[2]; } list_node;

/* A graph of x f32[2,3], and of numbers and sizes by name, that gives y. */
static pb list_graph(const list_node *nodes)
{
    static const struct { const char *name; int64_t value; } numbers[] = { { "zero", 0 }, { "one", 1 }, { "two", 2 }, { "five", 5 }, { "last", -1 } };
    static const int64_t uneven[2] = { 1, 2 }, wrong[2] = { 1, 1 }, below[2] = { 4, -1 }, each[5] = { 0, 1, 2, -1, -9 };
    pb g = { .len = 0 }, sizes[8] = { pb_ints("uneven", uneven, 2), pb_ints("wrong", wrong, 2),
                                      pb_ints("below", below, 2),
                                      pb_ints("[0]", each, 1), pb_ints("[1]", each + 1, 1), pb_ints("[2]", each + 2, 1),
                                      pb_ints("[-1]", each + 3, 1), pb_ints("[-9]", each + 4, 1) };
    for (size_t i = 0; nodes[i].op; i++) {
        pb attrs[2];
        for (size_t k = 0; k < 2; k++) {
            attrs[k] = pb_attr_int(nodes[i].attrs[k].name ? nodes[i].attrs[k].name : "", nodes[i].attrs[k].value);
        }
        pb_node(&g, nodes[i].op, nodes[i].in, nodes[i].out, nodes[i].attrs[0].name ? &attrs[0] : NULL, nodes[i].attrs[1].name ? &attrs[1] : NULL);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint8_t raw[8];
        for (size_t k = 0; k < 8; k++) {
            raw[k] = (uint8_t)((uint64_t)numbers[i].value >> 8 * k);
        }
        pb t = pb_tensor(numbers[i].name, 7, "", raw, sizeof raw);
        pb_put(&g, 5, &t);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pb_put(&g, 5, &sizes[i]);
    }
    pb_value(&g, 11, "x", 1, "23");
    pb_value(&g, 12, "y", 1, NULL);
    return pb_model(&g, 13);
}

/* Reads and runs the graph of a row, on 0 to 5. */
static void check_list(size_t row, const list_node *nodes, const float *want, size_t len, const char *spec)
{
    static const float x[6] = { 0, 1, 2, 3, 4, 5 };
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = list_graph(nodes);
    npu_graph *g = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(g != NULL, "row %u: %s", (unsigned)row, diag.message);
    if (g) {
        run(g, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 2, 3 }), x }, want, len, spec);
    }
    npu_graph_destroy(g);
}

static void check_bad_list(size_t row, const list_node *nodes, npu_status status, const char *words)
{
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb m = list_graph(nodes);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag));
    NPU_CHECK_STATUS(diag.status, status);
    NPU_CHECK_THAT(strstr(diag.message, words) != NULL, "row %u: %s", (unsigned)row, diag.message);
}

/* Sequences that are known while the model is read: what is taken out of them, or what joins them. */
static void test_sequences(void)
{
    static const struct { list_node nodes[6]; const char *spec; float want[12]; size_t len; } rows[] = {
        { { { "SplitToSequence", "x", "s", { { "axis", 1 } } }, { "SequenceAt", "s last", "y", { { 0 } } } }, "f32[2,1]", { 2, 5 }, 2 },
        { { { "SplitToSequence", "x", "s", { { "axis", -1 }, { "keepdims", 0 } } }, { "SequenceAt", "s one", "y", { { 0 } } } }, "f32[2]", { 1, 4 }, 2 },
        { { { "SplitToSequence", "x one", "s", { { "axis", 1 }, { "keepdims", 0 } } }, { "SequenceAt", "s zero", "y", { { 0 } } } }, "f32[2]", { 0, 3 }, 2 },
        { { { "SplitToSequence", "x two", "s", { { "axis", 1 }, { "keepdims", 0 } } }, { "SequenceAt", "s one", "y", { { 0 } } } }, "f32[2,1]", { 2, 5 }, 2 },
        { { { "SplitToSequence", "x uneven", "s", { { "axis", 1 } } }, { "SequenceAt", "s one", "y", { { 0 } } } }, "f32[2,2]", { 1, 2, 4, 5 }, 4 },
        { { { "SplitToSequence", "x", "s", { { 0 } } }, { "Identity", "s", "t", { { 0 } } },
            { "ConcatFromSequence", "t", "y", { { "axis", 1 } } } }, "f32[1,6]", { 0, 1, 2, 3, 4, 5 }, 6 },
        { { { "Neg", "x", "n", { { 0 } } }, { "SequenceConstruct", "x n", "s", { { 0 } } },
            { "ConcatFromSequence", "s", "y", { { "axis", -1 }, { "new_axis", 1 } } } }, "f32[2,3,2]",
          { 0, -0.0f, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5 }, 12 },
        { { { "SequenceEmpty", "", "e", { { "dtype", 1 } } }, { "Neg", "x", "n", { { 0 } } }, { "SequenceInsert", "e n", "s", { { 0 } } },
            { "SequenceInsert", "s x zero", "t", { { 0 } } }, { "SequenceAt", "t zero", "y", { { 0 } } } }, "f32[2,3]", { 0, 1, 2, 3, 4, 5 }, 6 },
        { { { "SplitToSequence", "x", "s", { { "axis", 1 } } }, { "SequenceInsert", "s x last", "t", { { 0 } } },
            { "SequenceErase", "t", "u", { { 0 } } }, { "SequenceAt", "u two", "y", { { 0 } } } }, "f32[2,3]", { 0, 1, 2, 3, 4, 5 }, 6 },
        { { { "SplitToSequence", "x", "s", { { "axis", 1 } } }, { "SequenceErase", "s zero", "t", { { 0 } } },
            { "SequenceAt", "t zero", "y", { { 0 } } } }, "f32[2,1]", { 1, 4 }, 2 },
        { { { "SplitToSequence", "x", "s", { { "axis", 1 } } }, { "SequenceLength", "s", "n", { { 0 } } },
            { "Cast", "n", "f", { { "to", 1 } } }, { "Mul", "x f", "y", { { 0 } } } }, "f32[2,3]", { 0, 3, 6, 9, 12, 15 }, 6 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_list(i, rows[i].nodes, rows[i].want, rows[i].len, rows[i].spec);
    }
}

/* Sizes that data decides are counted in the run: as numbers, as bounds of slices, as sizes of a new shape, and in what
   PyTorch writes for x[x > 0] = -x[x > 0]; what is true is counted as PyTorch does. */
static void test_counted_sizes(void)
{
    static const struct { list_node nodes[11]; const char *spec; float want[12]; size_t len; } rows[] = {
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s one", "c", { { 0 } } },
            { "Cast", "c", "f", { { "to", 1 } } }, { "Mul", "x f", "y", { { 0 } } } }, "f32[2,3]", { 0, 5, 10, 15, 20, 25 }, 6 },
        { { { "Cast", "x", "b", { { "to", 9 } } }, { "CumSum", "b one", "c", { { 0 } } },
            { "Cast", "c", "y", { { "to", 1 } } } },
          "f32[2,3]", { 0, 1, 2, 1, 2, 3 }, 6 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { "start", 0 }, { "end", 1 } } },
            { "Cast", "s", "f", { { "to", 1 } } }, { "Mul", "x f", "y", { { 0 } } } }, "f32[2,3]", { 0, 2, 4, 6, 8, 10 }, 6 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Size", "n", "s", { { 0 } } }, { "Cast", "s", "f", { { "to", 1 } } },
            { "Mul", "x f", "y", { { 0 } } } }, "f32[2,3]", { 0, 10, 20, 30, 40, 50 }, 6 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Slice", "v [0] c [0]", "y", { { 0 } } } }, "f32[5]", { 0, 1, 2, 3, 4 }, 5 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [0]", "c", { { 0 } } },
            { "Size", "n", "all", { { 0 } } }, { "Div", "all five", "t", { { 0 } } }, { "Unsqueeze", "t [0]", "end", { { 0 } } },
            { "Slice", "x [0] end [-1]", "y", { { 0 } } } }, "f32[2,2]", { 0, 1, 3, 4 }, 4 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Concat", "c [2]", "to", { { "axis", 0 } } }, { "Cast", "n", "f", { { "to", 1 } } },
            { "Reshape", "f to", "y", { { 0 } } } }, "f32[5,2]", { 0, 0, 1, 1, 1, 1, 2, 0, 1, 2 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Transpose", "n", "p", { { 0 } } }, { "GatherND", "x p", "v", { { 0 } } },
            { "Neg", "v", "u", { { 0 } } }, { "Shape", "p", "s", { { 0 } } }, { "Gather", "s [0]", "c", { { 0 } } },
            { "Slice", "u [0] c [0]", "w", { { 0 } } }, { "ScatterND", "x p w", "y", { { 0 } } } },
          "f32[2,3]", { 0, -1, -2, -3, -4, -5 }, 6 },
        /* as many ones as there are, which may stand beside them; and a size that is computed of one, which has its own */
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [-1]", "c", { { 0 } } },
            { "Concat", "[2] c", "to", { { "axis", 0 } } }, { "ConstantOfShape", "to", "z", { { 0 } } },
            { "Cast", "n", "f", { { "to", 1 } } }, { "Add", "f z", "y", { { 0 } } } },
          "f32[2,5]", { 0, 0, 1, 1, 1, 1, 2, 0, 1, 2 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Size", "n", "s", { { 0 } } }, { "Unsqueeze", "s [0]", "c", { { 0 } } },
            { "ConstantOfShape", "c", "y", { { 0 } } } }, "f32[10]", { 0 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s one", "c", { { 0 } } },
            { "Range", "zero c one", "i", { { 0 } } }, { "Add", "i n", "t", { { 0 } } }, { "Cast", "t", "y", { { "to", 1 } } } },
          "f32[2,5]", { 0, 1, 3, 4, 5, 1, 3, 2, 4, 6 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s one", "c", { { 0 } } },
            { "Sub", "c two", "d", { { 0 } } }, { "Range", "zero d one", "i", { { 0 } } }, { "Cast", "i", "y", { { "to", 1 } } } },
          "f32[3]", { 0, 1, 2 }, 3 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Slice", "x [0] [1] [1]", "v", { { 0 } } }, { "Concat", "[1] c", "to", { { "axis", 0 } } },
            { "Expand", "v to", "y", { { 0 } } } }, "f32[2,5]", { 0, 0, 0, 0, 0, 3, 3, 3, 3, 3 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Cast", "n", "f", { { "to", 1 } } }, { "Expand", "f c", "y", { { 0 } } } },
          "f32[2,5]", { 0, 0, 1, 1, 1, 1, 2, 0, 1, 2 }, 10 },
        /* as PyTorch writes it: -1 would be 1 */
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Concat", "[2] [-1] c", "l", { { "axis", 0 } } }, { "Reshape", "l [-1]", "to", { { 0 } } },
            { "Equal", "to last", "e", { { 0 } } }, { "Where", "e one to", "w", { { 0 } } },
            { "Expand", "two w", "t", { { 0 } } },
            { "Cast", "t", "y", { { "to", 1 } } } }, "f32[2,1,5]", { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 }, 10 },
        /* two questions to one mask, the first k of all, a product of sizes, a place from the end */
        { { { "NonZero", "x", "n", { { 0 } } }, { "NonZero", "x", "m", { { 0 } } }, { "Add", "n m", "t", { { 0 } } },
            { "Cast", "t", "y", { { "to", 1 } } } }, "f32[2,5]", { 0, 0, 2, 2, 2, 2, 4, 0, 2, 4 }, 10 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } },
            { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "TopK", "v c", "a i", { { 0 } } },
            { "Cast", "i", "f", { { "to", 1 } } },
            { "Mul", "a f", "y", { { 0 } } } }, "f32[5]", { 25, 16, 9, 4, 1 }, 5 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Cast", "n", "f", { { "to", 1 } } },
            { "Flatten", "f", "y", { { "axis", 0 } } } },
          "f32[1,10]", { 0, 0, 1, 1, 1, 1, 2, 0, 1, 2 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Cast", "n", "f", { { "to", 1 } } },
            { "Unsqueeze", "uneven [1]", "u", { { 0 } } },
            { "Neg", "u", "i", { { 0 } } }, { "Cast", "i", "new", { { "to", 1 } } },
            { "ScatterElements", "f i new", "y", { { "axis", 1 } } } },
          "f32[2,5]", { 0, 0, 1, 1, -1, 1, 2, 0, -2, 2 }, 10 },
        /* more than one */
        { { { "Gather", "x one", "g", { { "axis", 1 } } }, { "NonZero", "g", "n", { { 0 } } },
            { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Concat", "c c", "to", { { "axis", 0 } } },
            { "ConstantOfShape", "to", "z", { { 0 } } },
            { "Cast", "n", "f", { { "to", 1 } } }, { "Add", "z f", "t", { { 0 } } },
            { "Concat", "c [1] c", "u", { { "axis", 0 } } },
            { "Reshape", "t u", "y", { { 0 } } } }, "f32[2,1,2]", { 0, 1, 0, 1 }, 4 },
        /* slices from and to where data says, which may count from the end, by steps */
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Slice", "x [1] c [0]", "y", { { 0 } } } }, "f32[1,3]", { 3, 4, 5 }, 3 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } },
            { "Slice", "x uneven s", "y", { { 0 } } } }, "f32[1,1]", { 5 }, 1 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } },
            { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Neg", "c", "d", { { 0 } } },
            { "Slice", "v [0] d", "y", { { 0 } } } }, "f32[1]", { 0 }, 1 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } },
            { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Neg", "c", "d", { { 0 } } },
            { "Slice", "v d [-1] [0] [2]", "y", { { 0 } } } },
          "f32[2]", { 1, 3 }, 2 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } },
            { "Shape", "n", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Slice", "v c [0] [0] [-1]", "y", { { 0 } } } }, "f32[5]",
          { 5, 4, 3, 2, 1 }, 5 },
        { { { "Reshape", "x [-1]", "v", { { 0 } } }, { "NonZero", "x", "n", { { 0 } } },
            { "Size", "n", "a", { { 0 } } },
            { "Unsqueeze", "a [0]", "c", { { 0 } } }, { "Neg", "[2]", "by", { { 0 } } },
            { "Slice", "v c [-9] [0] by", "y", { { 0 } } } },
          "f32[3]", { 5, 3, 1 }, 3 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Slice", "n [-1] [-9] [1] [-1]", "t", { { 0 } } },
            { "Cast", "t", "y", { { "to", 1 } } } },
          "f32[2,5]", { 1, 1, 1, 0, 0, 2, 1, 0, 2, 1 }, 10 },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Neg", "[2]", "by", { { 0 } } },
            { "Slice", "n by [0] [1] by", "t", { { 0 } } },
            { "Cast", "t", "y", { { "to", 1 } } } }, "f32[2,2]", { 1, 0, 1, 2 }, 4 },
    };
    static const struct { list_node nodes[6]; npu_status status; const char *words; } bad[] = {
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Slice", "x [0] [1] c", "y", { { 0 } } } }, NPU_ERR_CONVERSION,
          "axes must be known when the model is read" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } },
            { "Slice", "x [0] s", "y", { { 0 } } } },
          NPU_ERR_UNSUPPORTED, "starts, ends, axes and steps have other lengths" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Concat", "c c", "to", { { "axis", 0 } } }, { "Reshape", "x to", "y", { { 0 } } } },
          NPU_ERR_CONVERSION, "the shape must be known when the model is read" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s [1]", "c", { { 0 } } },
            { "Concat", "c [-1]", "to", { { "axis", 0 } } }, { "Reshape", "x to", "y", { { 0 } } } },
          NPU_ERR_CONVERSION, "the shape must be known when the model is read" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Expand", "x s", "y", { { 0 } } } },
          NPU_ERR_UNSUPPORTED, "a size that data decides meets a dim of another" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s one", "c", { { 0 } } },
            { "Range", "one c one", "y", { { 0 } } } }, NPU_ERR_CONVERSION, "start, limit and delta must be known" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Gather", "s one", "c", { { 0 } } },
            { "Range", "zero c two", "y", { { 0 } } } }, NPU_ERR_CONVERSION, "start, limit and delta must be known" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "NonZero", "n", "m", { { 0 } } }, { "Shape", "m", "s", { { 0 } } },
            { "Gather", "s [1]", "c", { { 0 } } }, { "Expand", "n c", "y", { { 0 } } } },
          NPU_ERR_UNSUPPORTED, "a size that data decides meets a dim of another" },
        { { { "NonZero", "x", "n", { { 0 } } }, { "Shape", "n", "s", { { 0 } } }, { "Add", "s s", "t", { { 0 } } },
            { "Concat", "t [1]", "to", { { "axis", 0 } } }, { "Reshape", "x to", "y", { { 0 } } } },
          NPU_ERR_CONVERSION, "the shape must be known when the model is read" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_list(i, rows[i].nodes, rows[i].want, rows[i].len, rows[i].spec);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_bad_list(i, bad[i].nodes, bad[i].status, bad[i].words);
    }
}

static void test_bad_sequences(void)
{
    static const struct { list_node nodes[4]; npu_status status; const char *words; } rows[] = {
        { { { "SequenceConstruct", "x x", "s", { { 0 } } }, { "SequenceAt", "s two", "y", { { 0 } } } },
          NPU_ERR_RANGE, "SequenceAt '': position 2 of a sequence of 2" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceInsert", "s x five", "t", { { 0 } } } }, NPU_ERR_RANGE, "position 5 of a sequence of 1" },
        { { { "SequenceEmpty", "", "s", { { 0 } } }, { "SequenceErase", "s", "t", { { 0 } } } }, NPU_ERR_RANGE, "position 0 of a sequence of 0" },
        { { { "SequenceEmpty", "", "s", { { "dtype", 8 } } } }, NPU_ERR_UNSUPPORTED, "strings" },
        { { { "SequenceEmpty", "", "s", { { 0 } } }, { "ConcatFromSequence", "s", "y", { { "axis", 0 } } } }, NPU_ERR_UNSUPPORTED, "an empty sequence" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "ConcatFromSequence", "s", "y", { { "axis", 2 } } } }, NPU_ERR_AXIS, "axis 2 of 2 dims" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "ConcatFromSequence", "s", "y", { { "axis", 0 }, { "new_axis", 2 } } } },
          NPU_ERR_ATTRIBUTE, "new_axis is 2, expected 0 or 1" },
        { { { "SequenceConstruct", "x one", "s", { { 0 } } } }, NPU_ERR_DTYPE, "a tensor of i64 in a sequence of f32" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceInsert", "s one", "t", { { 0 } } } }, NPU_ERR_DTYPE, "a tensor of i64 in a sequence of f32" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceAt", "s", "y", { { 0 } } } }, NPU_ERR_ARITY, "operand 1 of 2 is missing" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceAt", "s x", "y", { { 0 } } } }, NPU_ERR_CONVERSION, "the position must be known" },
        { { { "SequenceAt", "x zero", "y", { { 0 } } } }, NPU_ERR_UNSUPPORTED, "operand 0 is a tensor, expected a sequence" },
        { { { "SequenceLength", "-", "y", { { 0 } } } }, NPU_ERR_ARITY, "operand 0 of 1 is missing" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "Neg", "s", "y", { { 0 } } } }, NPU_ERR_UNSUPPORTED, "operand 0, 's', is a sequence, expected a tensor" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceAt", "s s", "y", { { 0 } } } }, NPU_ERR_UNSUPPORTED, "operand 1, 's', is a sequence" },
        { { { "SequenceConstruct", "x", "y", { { 0 } } } }, NPU_ERR_UNSUPPORTED, "the output 'y' is a sequence, expected a tensor" },
        { { { "SplitToSequence", "x wrong", "s", { { "axis", 1 } } } }, NPU_ERR_SHAPE, "SplitToSequence" },
        { { { "SplitToSequence", "x below", "s", { { "axis", 1 } } } }, NPU_ERR_ATTRIBUTE, "SplitToSequence" },
        { { { "SplitToSequence", "x zero", "s", { { "axis", 1 } } } }, NPU_ERR_ATTRIBUTE, "a dim of 3 split by 0" },
        { { { "SplitToSequence", "x", "s", { { "axis", 2 } } } }, NPU_ERR_AXIS, "axis 2 of 2 dims" },
        { { { "SequenceConstruct", "x", "s", { { 0 } } }, { "SequenceConstruct", "x", "s", { { 0 } } } }, NPU_ERR_DUPLICATE, "'s' is there twice" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_bad_list(i, rows[i].nodes, rows[i].status, rows[i].words);
    }
}

/* y = v - the largest of v, the elements of x that are not 0, or what a branch gives where a flag says so. */
static pb branch_of_counted(bool is_then, const char *const *other)
{
    pb g = { .len = 0 }, open = { .len = 0 }, closed = { .len = 0 }, keep = pb_attr_int("keepdims", 0);
    pb none = pb_floats("none", "0", NULL, 0), half = pb_floats("half", "1", (const float[]){ 0.5f }, 1);
    pb_node(&open, "ReduceMax", "v", "m", &keep, NULL);
    pb_node(&open, "Sub", "v m", "o", NULL, NULL);
    pb_value(&open, 12, "o", 1, NULL);
    pb_node(&closed, other[0], other[1], "p", NULL, NULL);
    pb_value(&closed, 12, "p", 1, NULL);
    pb then = graph_attr("then_branch", is_then ? &open : &closed);
    pb els = graph_attr("else_branch", is_then ? &closed : &open);
    pb_node(&g, "NonZero", "x", "n", NULL, NULL);
    pb_node(&g, "Transpose", "n", "t", NULL, NULL);
    pb_node(&g, "GatherND", "x t", "v", NULL, NULL);
    pb_node(&g, "If", "c", "y", &then, &els);
    pb_put(&g, 5, &none);
    pb_put(&g, 5, &half);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "x", 1, "3");
    pb_value(&g, 12, "y", 1, NULL);
    return pb_model(&g, 13);
}

/* A branch that takes values as long as data says stands in the graph around it, where the other one gives nothing, as what
   detectors answer where there are no boxes; its results are nothing then. */
static void test_if_of_counted(void)
{
    static const char *const others[][2] = { { "Identity", "none" }, { "Identity", "half" }, { "Abs", "x" } };
    static const float x[3] = { 2, 0, 5 }, zeros[3] = { 0 }, want[2] = { -3, 0 };
    static const bool flags[2] = { false, true };
    for (size_t i = 0; i < 6; i++) {
        bool is_then = i % 2 != 0, is_read = i / 2 == 0;
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = branch_of_counted(is_then, others[i / 2]);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT((g != NULL) == is_read, "row %u: %s", (unsigned)i, diag.message);
        if (g) {
            run_all(g, (const void *const[]){ &flags[is_then], x }, want, 2);
            run_all(g, (const void *const[]){ &flags[!is_then], x }, want, 0);
            run_all(g, (const void *const[]){ &flags[is_then], zeros }, want, 0);
        } else {
            NPU_CHECK_STATUS(diag.status, NPU_ERR_DYNAMIC_SHAPE);
            NPU_CHECK_THAT(strstr(diag.message, "a dim that is not known: it is as long as data says"), "%s",
                           diag.message);
        }
        npu_graph_destroy(g);
    }
}

/* y = the picks of boxes of which those are left that a mask has, as f32. */
static pb picking(const char *operands, float most, float least, bool has_middles)
{
    pb g = { .len = 0 }, common = pb_floats("common", "", &most, 1), score = pb_floats("score", "", &least, 1);
    pb middles = pb_attr_int("center_point_box", has_middles), to = pb_attr_int("to", 1);
    pb axis[2] = { pb_attr_int("axis", 1), pb_attr_int("axis", 2) };
    pb numbers[5] = { pb_ints("0", (const int64_t[]){ 0 }, 1), pb_ints("1", (const int64_t[]){ 1 }, 1),
                      pb_ints("2", (const int64_t[]){ 2 }, 1),
                      pb_ints("9", (const int64_t[]){ 9 }, 1), pb_ints("-1", (const int64_t[]){ -1 }, 1) };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        pb_put(&g, 5, &numbers[i]);
    }
    pb_put(&g, 5, &common);
    pb_put(&g, 5, &score);
    pb_node(&g, "NonZero", "mask", "n", NULL, NULL);
    pb_node(&g, "Squeeze", "n 0", "left", NULL, NULL);
    pb_node(&g, "Gather", "boxes left", "some", &axis[0], NULL);
    pb_node(&g, "Gather", "scores left", "theirs", &axis[1], NULL);
    pb_node(&g, "NonMaxSuppression", operands, "picks", &middles, NULL);
    pb_node(&g, "Cast", "picks", "y", &to, NULL);
    pb_value(&g, 11, "boxes", 1, "144");
    pb_value(&g, 11, "scores", 1, "124");
    pb_value(&g, 11, "mask", 1, "4");
    pb_value(&g, 11, "k", 7, "");
    pb_value(&g, 12, "y", 1, NULL);
    return pb_model(&g, 13);
}

/* Boxes are picked by their scores, of each class on its own; box 1 lies over 0 and 3, of which the corners are the other way
   round. */
static void test_picked_boxes(void)
{
    static const float boxes[16] = { 0, 0, 10, 10, 0, 1, 10, 11, 0, 20, 10, 30, 10, 10, 0, 2 };
    static const float middles[16] = { 5, 5, 10, 10, 5, 6, 10, 10, 5, 25, 10, 10, 5, 6, 10, 8 };
    static const float scores[8] = { 0.5f, 0.9f, 0.6f, 0.1f, 0.2f, 0.3f, 0.9f, 0.8f }, mask[4] = { 1, 1, 0, 1 };
    static const int64_t limit = 1;
    static const struct { const char *operands; float most, least, want[18]; size_t len; } rows[] = {
        { "boxes scores 2 common", 0.5f, 0, { 0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 3 }, 12 },
        { "boxes scores 9 common", 0.5f, 0, { 0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 3 }, 12 },
        { "boxes scores 9 common score", 0.5f, 0.7f, { 0, 0, 1, 0, 1, 2, 0, 1, 3 }, 9 },
        { "boxes scores 2 common score", 0.9f, 0.25f, { 0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 3 }, 12 },
        { "boxes scores k common", 0.5f, 0, { 0, 0, 1, 0, 1, 2 }, 6 },
        { "boxes scores 0 common", 0.5f, 0, { 0 }, 0 },
        { "boxes scores -1 common", 0.5f, 0, { 0 }, 0 },
        { "boxes scores", 0.5f, 0, { 0 }, 0 },
        { "boxes scores 9 common score", 0.5f, 2, { 0 }, 0 },
        { "boxes scores 1", 0, 0, { 0, 0, 1, 0, 1, 2 }, 6 },
        { "some theirs 9 common", 0.5f, 0, { 0, 0, 1, 0, 1, 2 }, 6 }, /* 0, 1 and 3 */
        { "some theirs 9 common", 0.81f, 0, { 0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 1 }, 12 },
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        bool has_middles = i % 2 != 0;
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = picking(rows[i / 2].operands, rows[i / 2].most, rows[i / 2].least, has_middles);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(g, "row %u: %s", (unsigned)i / 2, diag.message);
        run_all(g, (const void *const[]){ has_middles ? middles : boxes, scores, mask, &limit }, rows[i / 2].want,
                rows[i / 2].len);
        npu_graph_destroy(g);
    }
}

/* Regions of the second and third of three pictures [3,1], of which one lies beyond them, and what is not supported. */
static void test_regions(void)
{
    static const struct {
        const char *word, *text;
        int64_t each;
        float want[4];
        npu_status status;
        const char *words;
    } rows[] = {
        { NULL, NULL, 1, { 6, 7, 3.5f, 0 }, NPU_OK, "" },
        { "mode", "avg", 2, { 6.125f, 7, 3.5f, 0 }, NPU_OK, "" },
        { "coordinate_transformation_mode", "output_half_pixel", 1, { 6.5f, 7.5f, 4, 0 }, NPU_OK, "" },
        { "mode", "max", 1, { 0 }, NPU_ERR_UNSUPPORTED, "mode max" },
        { "mode", "sum", 1, { 0 }, NPU_ERR_ATTRIBUTE, "mode is 'sum', expected one of: avg max" },
        { "mode", "avg", 0, { 0 }, NPU_ERR_UNSUPPORTED, "sampling_ratio 0" },
    };
    static const float x[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    static const float regions[16] = { 0, 0, 1, 1, 0, 1, 1, 2, 0, 0, 1, 2, 0, 9, 1, 10 };
    static const int64_t pictures[4] = { 2, 2, 1, 1 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb g = { .len = 0 }, each = pb_attr_int("sampling_ratio", rows[i].each), word = { .len = 0 };
        npu_onnx_desc desc = reading();
        npu_diag diag;
        if (rows[i].word) {
            word = pb_attr_text(rows[i].word, rows[i].text);
        }
        pb_node(&g, "RoiAlign", "x regions pictures", "y", &each, rows[i].word ? &word : NULL);
        pb_value(&g, 11, "x", 1, "3131");
        pb_value(&g, 11, "regions", 1, "44");
        pb_value(&g, 11, "pictures", 7, "4");
        pb_value(&g, 12, "y", 1, "4111");
        pb m = pb_model(&g, 16);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
        NPU_CHECK_THAT(strstr(diag.message, rows[i].words), "row %u: %s", (unsigned)i, diag.message);
        if (read) {
            run_all(read, (const void *const[]){ x, regions, pictures }, rows[i].want, 4);
        }
        npu_graph_destroy(read);
    }
}

/* The middle of an element is where f32 has it: 1.5 / 0.6 is 2.5, and element 1 of the result is element 2. */
static void test_resize_counts_in_f32(void)
{
    static const float x[6] = { 0, 1, 2, 3, 4, 5 }, want[3] = { 0, 2, 3 };
    static const char *const transforms[] = { "half_pixel", "pytorch_half_pixel" };
    for (size_t i = 0; i < sizeof transforms / sizeof transforms[0]; i++) {
        pb g = { .len = 0 }, scales = pb_floats("scales", "1", (const float[]){ 0.6f }, 1);
        pb transform = pb_attr_text("coordinate_transformation_mode", transforms[i]);
        pb nearest = pb_attr_text("nearest_mode", "floor");
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb_node(&g, "Resize", "x - scales", "y", &transform, &nearest);
        pb_put(&g, 5, &scales);
        pb_value(&g, 11, "x", 1, "6");
        pb_value(&g, 12, "y", 1, NULL);
        pb m = pb_model(&g, 13);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(read, "%s", diag.message);
        run_all(read, (const void *const[]){ x }, want, 3);
        npu_graph_destroy(read);
    }
}

/* Before opset 14 who asks for the statistics trains: those of the batch normalise, and are given out. */
static void test_batch_norm_trains(void)
{
    static const float x[4] = { 1, 10, 3, 12 }, two[2] = { 2, 4 };
    static const float want[12] = { 1, 2, 3, 6, 2, 7.5f, 1.5f, 2.5f, 2, 11, 0.5f, 0.5f };
    pb g = { .len = 0 }, k = pb_floats("k", "2", two, 2), flat = pb_ints("flat", (const int64_t[]){ -1 }, 1);
    pb axis = pb_attr_int("axis", 0);
    pb epsilon = pb_attr_float("epsilon", 3), momentum = pb_attr_float("momentum", 0.5f);
    pb_node(&g, "BatchNormalization", "x k k k k", "n mean var saved inverse", &epsilon, &momentum);
    pb_node(&g, "Reshape", "n flat", "v", NULL, NULL);
    pb_node(&g, "Concat", "v mean var saved inverse", "y", &axis, NULL);
    pb_put(&g, 5, &k);
    pb_put(&g, 5, &flat);
    pb_value(&g, 11, "x", 1, "22");
    pb_value(&g, 12, "y", 1, NULL);
    for (int64_t opset = 7; opset < 15; opset++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = pb_model(&g, opset);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT((read != NULL) == (opset < 14), "opset %d: %s", (int)opset, diag.message);
        if (read) {
            run_all(read, (const void *const[]){ x }, want, 12);
        }
        npu_graph_destroy(read);
    }
}

/* A sequence of the graph around a branch, and of the one around that. */
static void test_sequences_in_branches(void)
{
    static const float x[2] = { -1, 4 };
    static const bool yes = true, no = false;
    pb deep = { .len = 0 }, then = { .len = 0 }, other = { .len = 0 }, g = { .len = 0 }, one = pb_ints("one", (const int64_t[]){ 1 }, 1);
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb_node(&deep, "Identity", "s", "f", NULL, NULL); /* what is a tensor in the other branch */
    pb_node(&deep, "SequenceAt", "f one", "d", NULL, NULL);
    pb_value(&deep, 12, "d", 1, "2");
    pb_node(&other, "SequenceInsert", "s x", "t", NULL, NULL);
    pb_node(&other, "SequenceLength", "t", "n", NULL, NULL);
    pb to = pb_attr_int("to", 1);
    pb_node(&other, "Cast", "n", "f", &to, NULL);
    pb_node(&other, "Mul", "x f", "e", NULL, NULL);
    pb_value(&other, 12, "e", 1, "2");
    pb a = graph_attr("then_branch", &deep), b = graph_attr("else_branch", &other);
    pb_node(&then, "If", "c", "r", &a, &b);
    pb_value(&then, 12, "r", 1, "2");
    pb_node(&g, "Neg", "x", "m", NULL, NULL);
    pb_node(&g, "SequenceConstruct", "x m", "s", NULL, NULL);
    a = graph_attr("then_branch", &then);
    pb_node(&g, "If", "c", "y", &a, &b);
    pb_put(&g, 5, &one);
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    npu_graph *read = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(read, "%s", diag.message);
    run_all(read, (const void *const[]){ &yes, x }, (const float[]){ 1, -4 }, 2);
    run_all(read, (const void *const[]){ &no, x }, (const float[]){ -3, 12 }, 2);
    npu_graph_destroy(read);
}

/* y = x and what two turns insert, their numbers times x, in a sequence that the turns hand on; what the nodes of the turn
   are is up to the row, and what the loop takes. c is a condition that only the run knows. */
static pb sequence_loop(const char *const (*nodes)[3], const char *in, const char *out, const char *gives)
{
    pb g = { .len = 0 }, turn = { .len = 0 }, trips = pb_ints("trips", (const int64_t[]){ 2 }, 1);
    pb axis = pb_attr_int("axis", 0), to = pb_attr_int("to", 1), body, yes = { .len = 0 };
    pb_value(&turn, 11, "i", 7, "");
    pb_value(&turn, 11, "go", 9, "");
    pb_value(&turn, 11, "u", 1, "2");
    pb_node(&turn, "Cast", "i", "f", &to, NULL);
    pb_node(&turn, "Mul", "x f", "p", NULL, NULL);
    pb_node(&turn, "SequenceInsert", "u p", "v", NULL, NULL);
    pb_node(&yes, "Identity", "v", "w", NULL, NULL);
    pb_value(&yes, 12, "w", 1, "2");
    pb then = graph_attr("then_branch", &yes), other = graph_attr("else_branch", &yes);
    for (; (*nodes)[0]; nodes++) {
        bool is_if = strcmp((*nodes)[0], "If") == 0;
        pb_node(&turn, (*nodes)[0], (*nodes)[1], (*nodes)[2], is_if ? &then : NULL, is_if ? &other : NULL);
    }
    for (; *gives; gives++) {
        pb_value(&turn, 12, *gives == 'g' ? "go" : (const char[]){ *gives, 0 }, 1, "2");
    }
    body = graph_attr("body", &turn);
    pb_node(&g, "SequenceConstruct", "x", "s", NULL, NULL);
    pb_node(&g, "Loop", in, out, &body, NULL);
    pb_node(&g, "ConcatFromSequence", "r", "y", &axis, NULL);
    pb_put(&g, 5, &trips);
    pb_value(&g, 11, "x", 1, "2");
    pb_value(&g, 11, "c", 9, "");
    pb_value(&g, 12, "y", 1, "6");
    return pb_model(&g, 17);
}

/* A sequence that turns hand on, one in which data decides that, and one as a row of what all turns give out. */
static void test_sequences_in_loops(void)
{
    static const struct { const char *nodes[2][3], *in, *out, *gives; npu_status status; const char *words; } rows[] = {
        { { { NULL } }, "trips - s", "r", "gv", NPU_OK, "" },
        { { { "If", "go", "r" } }, "trips - s", "r", "gr", NPU_OK, "" },
        { { { NULL } }, "trips c s", "r", "gv", NPU_ERR_UNSUPPORTED,
          "value 2 that a graph takes or gives is a sequence" },
        { { { "If", "c", "r" } }, "trips - s", "r", "gr", NPU_ERR_UNSUPPORTED,
          "If '': value 0 that a graph takes or gives is a sequence" },
        { { { NULL } }, "trips - s", "r q", "gvv", NPU_ERR_UNSUPPORTED,
          "Loop '': value 0 that a graph takes or gives is a sequence" },
        { { { NULL } }, "trips - s", "r", "vv", NPU_ERR_UNSUPPORTED,
          "Loop '': value 0 that a graph takes or gives is a sequence" },
        { { { NULL } }, "s - s", "r", "gv", NPU_ERR_UNSUPPORTED, "operand 0, 's', is a sequence" },
        { { { "Neg", "u", "n" } }, "trips - s", "r", "gv", NPU_ERR_UNSUPPORTED, "operand 0, 'u', is a sequence" },
    };
    static const float x[2] = { -1, 4 };
    static const bool no = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb m = sequence_loop(rows[i].nodes, rows[i].in, rows[i].out, rows[i].gives);
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
        NPU_CHECK_THAT(strstr(diag.message, rows[i].words), "row %u: %s", (unsigned)i, diag.message);
        if (g) {
            run_all(g, (const void *const[]){ x, &no }, (const float[]){ -1, 4, -0.0f, 0, -1, 4 }, 6);
        }
        npu_graph_destroy(g);
    }
}

/* y = the columns of x, each plus k and plus the column in its place of another sequence, joined. */
static void test_sequence_map(void)
{
    static const struct { const char *in; npu_status status; const char *words; } rows[] = {
        { "s s k", NPU_OK, "" },
        { "s few k", NPU_ERR_SHAPE, "operand 1 has 2 tensors, expected 3" },
        { "none none k", NPU_ERR_UNSUPPORTED, "a map of an empty sequence" },
        { "k s k", NPU_ERR_UNSUPPORTED, "operand 0 is a tensor, expected a sequence" },
    };
    static const float x[6] = { 0, 1, 2, 3, 4, 5 }, want[6] = { 10, 12, 14, 16, 18, 20 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb g = { .len = 0 }, each = { .len = 0 }, axis = pb_attr_int("axis", 1);
        pb ten = pb_floats("k", "1", (const float[]){ 10 }, 1);
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb_value(&each, 11, "a", 1, "21");
        pb_value(&each, 11, "b", 1, "21");
        pb_value(&each, 11, "c", 1, "1");
        pb_node(&each, "Add", "a b", "d", NULL, NULL);
        pb_node(&each, "Add", "d c", "e", NULL, NULL);
        pb_value(&each, 12, "a", 1, "21");
        pb_value(&each, 12, "e", 1, "21");
        pb body = graph_attr("body", &each);
        pb_node(&g, "SequenceEmpty", "", "none", NULL, NULL);
        pb_node(&g, "SplitToSequence", "x", "s", &axis, NULL);
        pb_node(&g, "SequenceErase", "s", "few", NULL, NULL);
        pb_node(&g, "SequenceMap", rows[i].in, "p r", &body, NULL);
        pb_node(&g, "ConcatFromSequence", "r", "y", &axis, NULL);
        pb_put(&g, 5, &ten);
        pb_value(&g, 11, "x", 1, "23");
        pb_value(&g, 12, "y", 1, "23");
        pb m = pb_model(&g, 17);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
        NPU_CHECK_THAT(strstr(diag.message, rows[i].words), "row %u: %s", (unsigned)i, diag.message);
        if (read) {
            run_all(read, (const void *const[]){ x }, want, 6);
        }
        npu_graph_destroy(read);
    }
}

/* Each turn copies a sequence of 4,000: few nodes could ask for any memory. */
static void test_too_many_sequences(void)
{
    static const int64_t turns[1] = { 2000 }, length[1] = { 4000 }, parts[1] = { 4097 };
    pb g = { .len = 0 }, turn = { .len = 0 }, trips = pb_ints("trips", turns, 1), many = pb_ints("many", length, 1), more = pb_ints("more", parts, 1);
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb_value(&turn, 11, "i", 7, "");
    pb_value(&turn, 11, "go", 9, "");
    pb_node(&turn, "SequenceInsert", "s first", "t", NULL, NULL);
    pb_value(&turn, 12, "go", 9, "");
    pb body = graph_attr("body", &turn);
    pb_node(&g, "ConstantOfShape", "many", "z", NULL, NULL);
    pb_node(&g, "SplitToSequence", "z", "s", NULL, NULL);
    pb_node(&g, "ConstantOfShape", "trips", "first", NULL, NULL);
    pb_node(&g, "Loop", "trips", "", &body, NULL);
    pb_put(&g, 5, &trips);
    pb_put(&g, 5, &many);
    pb m = pb_model(&g, 17);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_BUDGET);
    NPU_CHECK_THAT(strstr(diag.message, "values in sequences"), "%s", diag.message);
    g.len = 0;
    pb_node(&g, "ConstantOfShape", "more", "z", NULL, NULL);
    pb_node(&g, "SplitToSequence", "z", "s", NULL, NULL);
    pb_put(&g, 5, &more);
    m = pb_model(&g, 17);
    NPU_CHECK(!read_from(m.at, m.len, &desc, &diag) && diag.status == NPU_ERR_ATTRIBUTE);
    NPU_CHECK_THAT(strstr(diag.message, "a dim of 4097 split by 1"), "%s", diag.message);
}

/* Lengths of two rows, of sequences of three. */
static void test_sequence_lens(void)
{
    static const float numbers[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const struct { int64_t lens[3]; int count; npu_status status; const char *words; } rows[] = {
        { { 3, 0 }, 2, NPU_OK, "" },
        { { 3, 4 }, 2, NPU_ERR_ATTRIBUTE, "sequence_lens: number 1 is 4, expected 0 to 3" },
        { { -1, 3 }, 2, NPU_ERR_ATTRIBUTE, "sequence_lens: number 0 is -1" },
        { { 3 }, 1, NPU_ERR_SHAPE, "sequence_lens: expected one for each of 2 rows" },
        { { 3, 3, 3 }, 3, NPU_ERR_SHAPE, "sequence_lens: expected one for each of 2 rows" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_onnx_desc desc = reading();
        npu_diag diag;
        pb g = { .len = 0 }, w = pb_floats("w", "142", numbers, 8), u = pb_floats("u", "141", numbers, 4);
        pb lens = pb_ints("lens", rows[i].lens, rows[i].count);
        pb_node(&g, "LSTM", "x w u - lens", "y", NULL, NULL);
        pb_put(&g, 5, &w);
        pb_put(&g, 5, &u);
        pb_put(&g, 5, &lens);
        pb_value(&g, 11, "x", 1, "322");
        pb_value(&g, 12, "y", 1, "3121");
        pb m = pb_model(&g, 14);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(diag.status == rows[i].status && strstr(diag.message, rows[i].words), "%u: %s: %s", (unsigned)i,
                       npu_status_name(diag.status), diag.message);
        npu_graph_destroy(read);
    }
}

/* A node, "Op operand,operand result". */
static void pb_row(pb *graph, const char *row)
{
    char op[16], in[16], out[16];
    NPU_CHECK_EQ(sscanf(row, "%15s %15s %15s", op, in, out), 3);
    for (char *comma = strchr(in, ','); comma; comma = strchr(comma, ',')) {
        *comma = ' ';
    }
    if (out[0] == '>') {
        pb inner = { .len = 0 };
        pb_node(&inner, op, in, "r", NULL, NULL);
        pb_value(&inner, 12, "r", 1, "2");
        pb then = graph_attr("then_branch", &inner), other = graph_attr("else_branch", &inner);
        pb_node(graph, "If", "c", out + 1, &then, &other);
    } else {
        pb_node(graph, op, in, out, NULL, NULL);
    }
}

/* Nodes in any order, as converters that append casts leave them; '>' before a result makes the node an If of c, whose branch
   takes its operand from around it. Results are those of the sorted file, and what takes itself is refused. */
static void test_order(void)
{
    static const struct { const char *what, *nodes[6]; npu_status status; const char *words; } rows[] = {
        { "in order", { "Neg x a", "Exp a b", "Abs b y" }, NPU_OK, "" },
        { "backwards", { "Abs b y", "Exp a b", "Neg x a" }, NPU_OK, "" },
        { "the first last", { "Exp a b", "Abs b y", "Neg x a" }, NPU_OK, "" },
        { "taken twice", { "Abs d y", "Sub b,e d", "Sub b,b e", "Exp a b", "Neg x a" }, NPU_OK, "" },
        { "from within a branch", { "Abs b y", "Exp a >b", "Neg x a" }, NPU_OK, "" },
        { "a cycle", { "Abs b y", "Exp a b", "Neg b a" }, NPU_ERR_NOT_FOUND, "nothing before it makes 'b'" },
        { "a cycle through a branch", { "Abs b y", "Exp a >b", "Neg b a" }, NPU_ERR_NOT_FOUND, "nothing before it makes 'b'" },
        { "two of one name", { "Abs b y", "Exp x b", "Neg x b" }, NPU_ERR_DUPLICATE, "'b' is there twice" },
    };
    static const float x[2] = { -1, 0 }, want[2] = { 2.7182817f, 1 };
    static const bool is_true = true;
    npu_array known = { "c", npu_spec_tensor(NPU_BOOL, 0, NULL), &is_true };
    npu_onnx_desc desc = reading();
    desc.inputs = &known;
    desc.num_inputs = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb g = { .len = 0 };
        npu_diag diag;
        for (const char *const *node = rows[i].nodes; *node; node++) {
            pb_row(&g, *node);
        }
        pb_value(&g, 11, "x", 1, "2");
        pb_value(&g, 11, "c", 9, "");
        pb_value(&g, 12, "y", 1, "2");
        pb m = pb_model(&g, 17);
        npu_graph *read = read_from(m.at, m.len, &desc, &diag);
        NPU_CHECK_THAT(diag.status == rows[i].status && strstr(diag.message, rows[i].words), "%s: %s", rows[i].what, diag.message);
        if (read) {
            run(read, &(npu_array){ "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }), x }, want, 2, "f32[2]");
        }
        npu_graph_destroy(read);
    }
}

/* What is given back twice is one output, where it was named first; so are inputs and initializers. */
static void test_output_twice(void)
{
    static const char *const want[] = { "y", "x", "k", "z" };
    const int64_t one = 1;
    pb g = { .len = 0 }, k = pb_ints("k", &one, 1);
    npu_onnx_desc desc = reading();
    npu_diag diag;
    pb_node(&g, "Neg", "x", "y", NULL, NULL);
    pb_node(&g, "Abs", "y", "z", NULL, NULL);
    pb_put(&g, 5, &k);
    pb_value(&g, 11, "x", 1, "2");
    for (const char *name = "yxykzxky"; *name; name++) {
        pb_value(&g, 12, (char[]){ *name, 0 }, *name == 'k' ? 7 : 1, *name == 'k' ? "1" : "2");
    }
    pb m = pb_model(&g, 17);
    npu_graph *read = read_from(m.at, m.len, &desc, &diag);
    NPU_CHECK_THAT(read != NULL, "%s", diag.message);
    NPU_CHECK_EQ(npu_graph_num_outputs(read), 4);
    for (uint32_t i = 0; i < 4; i++) {
        NPU_CHECK_STR(npu_graph_output_name(read, i), want[i]);
    }
    npu_graph_destroy(read);
}

static void check_bad(const pb *m, npu_status status, const char *words)
{
    npu_diag diag;
    uint8_t *copy = (uint8_t *)malloc(m->len ? m->len : 1);
    memcpy(copy, m->at, m->len);
    npu_graph *g = read_from(copy, m->len, NULL, &diag);
    NPU_CHECK_THAT(!g && diag.status == status && strstr(diag.message, words), "%s: %s", npu_status_name(diag.status), diag.message);
    npu_graph_destroy(g);
    free(copy);
}

static void test_bad_signal(void)
{
    pb g = { .len = 0 };
    pb_node(&g, "DFT", "x", "y", NULL, NULL);
    pb_value(&g, 11, "x", 1, "143");
    pb_value(&g, 12, "y", 1, "2");
    pb m = pb_model(&g, 17);
    check_bad(&m, NPU_ERR_SHAPE, "the signal's last dim is 3, expected 1 (numbers) or 2 (pairs)");
}

/* A tensor that is wrong, as the initializer w of a graph. */
static pb with_tensor(const pb *tensor)
{
    pb g = { .len = 0 };
    pb_put(&g, 5, tensor);
    return pb_model(&g, 13);
}

static void test_bad_tensors(void)
{
    pb t = pb_tensor("w", 1, "3", "12345678", 8), m = with_tensor(&t);
    check_bad(&m, NPU_ERR_SHAPE, "a tensor of 12 bytes has 8 bytes of data");
    t = pb_tensor("w", 24, "3", "", 0);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_UNSUPPORTED, "dtype 24 is not supported");
    const int64_t huge[2] = { (int64_t)1 << 31, (int64_t)1 << 31 }; /* their bits do not fit a size */
    t = (pb){ .len = 0 };
    pb_int(&t, 1, huge[0]);
    pb_int(&t, 1, huge[1]);
    pb_int(&t, 2, 17);
    pb_bytes(&t, 9, "", 0);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_SHAPE, "a tensor: ");
    t = pb_tensor("w", 23, "3", "1", 1);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_SHAPE, "a tensor of 2 bytes has 1 bytes of data");
    t = pb_tensor("w", 1, "111111111", "1234", 4);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_PARSE, "field 1: too many numbers");
    t.len = 0;
    pb_int(&t, 1, -1);
    pb_int(&t, 2, 1);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_SHAPE, "dim 0 of a tensor is below 0");
    t.len = 0;
    pb_int(&t, 1, INT64_MAX);
    pb_int(&t, 1, 8);
    pb_int(&t, 2, 1);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_OVERFLOW, "a tensor: a size does not fit");
    t.len = 0;
    pb_int(&t, 1, (int64_t)1 << 28); /* no data, and no memory taken for it */
    pb_int(&t, 2, 1);
    m = with_tensor(&t);
    check_bad(&m, NPU_ERR_SHAPE, "has less data");
}

/* Every prefix, and single fields that lie. */
static void test_malformed(void)
{
    static const struct { const char *bytes; size_t len; const char *words; } rows[] = {
        { "", 0, "it has no graph" },
        { "\x08", 1, "field 1 is longer" },
        { "\x3a\x05\x0a", 3, "field 7 is longer" },
        { "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "field 7 is longer" },
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "field 1 is longer" },
        { "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "field 1 is longer" },
        { "\x3b\x00", 2, "malformed" },
        { "\x00\x00", 2, "no field of a message begins here" },
        { "\x38\x01", 2, "field 7 is a number" },
        { "\x3d\x00\x00\x00", 4, "field 7 is longer" },
    };
    pb m = mlp();
    npu_diag diag;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pb bad = { .len = rows[i].len };
        memcpy(bad.at, rows[i].bytes, rows[i].len);
        check_bad(&bad, NPU_ERR_PARSE, rows[i].words);
    }
    for (size_t len = 0; len < m.len; len++) {
        uint8_t *copy = (uint8_t *)malloc(len ? len : 1);
        memcpy(copy, m.at, len);
        NPU_CHECK(!read_from(copy, len, NULL, &diag) && (diag.status == NPU_ERR_PARSE || diag.status == NPU_ERR_NOT_FOUND));
        free(copy);
    }
    pb g = { .len = 0 };
    m = pb_model(&g, 99);
    check_bad(&m, NPU_ERR_VERSION, "opset 99, expected 1 to 28");
}

/* Graphs in graphs have an end. */
static void test_depth(void)
{
    pb g = branch("Relu");
    npu_diag diag;
    for (int i = 0; i < 20; i++) {
        pb outer = { .len = 0 }, a = graph_attr("then_branch", &g);
        pb_node(&outer, "If", "c", "y", &a, NULL);
        g = outer;
    }
    pb m = pb_model(&g, 17);
    NPU_CHECK(!read_from(m.at, m.len, NULL, &diag) && diag.status == NPU_ERR_PARSE && strstr(diag.message, "more than 16 graphs in graphs"));
}

/* What stands in front of the `len` bytes that follow it, put before `at`. */
static uint8_t *put_before(uint8_t *at, const pb *head, unsigned field, size_t len)
{
    pb all = *head;
    pb_varint(&all, field << 3 | 2);
    pb_varint(&all, len);
    return (uint8_t *)memcpy(at - all.len, all.at, all.len);
}

/* No depth of a file takes the stack of who reads it. */
static void test_abyss(void)
{
    enum { LEVELS = 200000, BYTES = LEVELS * 64 };
    uint8_t *file = (uint8_t *)malloc(BYTES), *end = file + BYTES, *at = end;
    pb none = { .len = 0 }, node = { .len = 0 }, attribute = { .len = 0 }, model = { .len = 0 }, opset = { .len = 0 };
    npu_diag diag;
    pb_str(&node, 1, "c");
    pb_str(&node, 2, "y");
    pb_str(&node, 4, "If");
    pb_str(&attribute, 1, "then_branch");
    pb_int(&opset, 2, 17);
    pb_int(&model, 1, 8);
    pb_put(&model, 8, &opset);
    for (int i = 0; i < LEVELS; i++) {
        at = put_before(at, &attribute, 6, (size_t)(end - at));
        at = put_before(at, &node, 5, (size_t)(end - at));
        at = put_before(at, &none, 1, (size_t)(end - at));
    }
    at = put_before(at, &model, 7, (size_t)(end - at));
    NPU_CHECK(!read_from(at, (size_t)(end - at), NULL, &diag));
    NPU_CHECK_THAT(diag.status == NPU_ERR_PARSE, "%s: %s", npu_status_name(diag.status), diag.message);
    free(file);
}

/* What memory runs out on is said, and nothing is left. */
static void check_memory(pb m)
{
    for (uint64_t fail_at = 1, failed = 1; failed; fail_at += 1 + fail_at / 16) {
        npu_alloc_counter counter;
        memset(&counter, 0, sizeof counter);
        npu_allocator a = npu_allocator_counting(&counter);
        npu_graph_desc gd;
        memset(&gd, 0, sizeof gd);
        gd.allocator = &a;
        npu_onnx_desc desc = reading();
        desc.graph = &gd;
        counter.fail_at = fail_at;
        npu_diag diag;
        npu_graph *g = read_from(m.at, m.len, &desc, &diag);
        failed = counter.num_calls >= fail_at;
        NPU_CHECK(!g == (diag.status != NPU_OK));
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
}

static void test_memory(void)
{
    check_memory(shapes());
    check_memory(doubling(false, false));
}

/* The table is searched by halves, so it must be in order. */
static void test_table(void)
{
    for (size_t i = 1; i < sizeof onnx_rows / sizeof onnx_rows[0]; i++) {
        NPU_CHECK_THAT(strcmp(onnx_rows[i - 1].op, onnx_rows[i].op) < 0, "%s, %s", onnx_rows[i - 1].op, onnx_rows[i].op);
        NPU_CHECK(onnx_row_of(onnx_literal(onnx_rows[i].op), onnx_literal("")) == &onnx_rows[i]);
    }
    for (size_t i = 0; i < sizeof onnx_runtime_rows / sizeof onnx_runtime_rows[0]; i++) {
        const onnx_row *row = &onnx_runtime_rows[i];
        NPU_CHECK_THAT(!i || strcmp(row[-1].op, row->op) < 0, "%s", row->op);
        NPU_CHECK(onnx_row_of(onnx_literal(row->op), onnx_literal("com.microsoft")) == row);
    }
    NPU_CHECK(!onnx_row_of(onnx_literal("Add"), onnx_literal("of.another")));
}

int main(void)
{
    NPU_RUN(test_small_model);
    NPU_RUN(test_known_shapes);
    NPU_RUN(test_shapes);
    NPU_RUN(test_halves);
    NPU_RUN(test_no_border);
    NPU_RUN(test_if);
    NPU_RUN(test_loop);
    NPU_RUN(test_if_of_data);
    NPU_RUN(test_branch_of_other_sizes);
    NPU_RUN(test_constants_of_branches);
    NPU_RUN(test_loop_of_data);
    NPU_RUN(test_function);
    NPU_RUN(test_quantised);
    NPU_RUN(test_quantised_input);
    NPU_RUN(test_byte_products);
    NPU_RUN(test_too_many_bytes);
    NPU_RUN(test_long_convolutions);
    NPU_RUN(test_long_and_short);
    NPU_RUN(test_forms);
    NPU_RUN(test_named_batch);
    NPU_RUN(test_composed);
    NPU_RUN(test_runtime_ops);
    NPU_RUN(test_bad_runtime_ops);
    NPU_RUN(test_external);
    NPU_RUN(test_all_refused);
    NPU_RUN(test_unknown_dims);
    NPU_RUN(test_sizes_of_floats);
    NPU_RUN(test_bad_words);
    NPU_RUN(test_bad_pads);
    NPU_RUN(test_smoothed_crop);
    NPU_RUN(test_bad_nodes);
    NPU_RUN(test_sequences);
    NPU_RUN(test_counted_sizes);
    NPU_RUN(test_bad_sequences);
    NPU_RUN(test_if_of_counted);
    NPU_RUN(test_picked_boxes);
    NPU_RUN(test_regions);
    NPU_RUN(test_resize_counts_in_f32);
    NPU_RUN(test_batch_norm_trains);
    NPU_RUN(test_sequences_in_branches);
    NPU_RUN(test_sequences_in_loops);
    NPU_RUN(test_sequence_map);
    NPU_RUN(test_too_many_sequences);
    NPU_RUN(test_sequence_lens);
    NPU_RUN(test_order);
    NPU_RUN(test_bad_signal);
    NPU_RUN(test_output_twice);
    NPU_RUN(test_bad_tensors);
    NPU_RUN(test_malformed);
    NPU_RUN(test_depth);
    NPU_RUN(test_abyss);
    NPU_RUN(test_memory);
    NPU_RUN(test_table);
    return npu_test_done();
}
