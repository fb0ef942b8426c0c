/* The operator document's operator system: ops from outside, calls with positional and keyword arguments, its deduction
   and promotion, graphs as functions, and the kernels of tensor.*. Tile programs are in test_tiles.c. */
#include "rig.h"

static npu_registry *built_in(void)
{
    npu_registry *registry = NULL;
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    return registry;
}

static npu_spec spec(npu_dtype dtype, int64_t a, int64_t b)
{
    return npu_spec_tensor(dtype, 2, DIMS(a, b));
}

/* ---- registration ---- */

/* The op of the document's own tests: two arguments, a keyword of each common type, the first operand's type. */
static npu_status deduce_first(npu_deduce *d)
{
    return npu_deduce_add_result(d, npu_deduce_spec(d, "arg1"));
}

static npu_status deduce_nothing(npu_deduce *d)
{
    (void)d;
    return NPU_OK;
}

static const npu_op_attribute test_attributes_of_op[] = { { "device", "npu0" } };
static const char *const test_arg_docs[] = { "first", "second", "", "", "", "", "" };
static const npu_op_facts test_facts = { .category = "TestOp", .arg_docs = test_arg_docs,
                                         .attributes = test_attributes_of_op, .num_attributes = 1 };
static const npu_op_row test_row = { 0, 0, deduce_first,
    "op(Tensor arg1, Tensor arg2, *, int? int_attr=None, str? string_attr=None, bool? bool_attr=None, "
    "ScalarType? dtype_attr=None, float? double_attr=None) -> Tensor", "an op for tests", &test_facts };

static npu_registry *with_test_op(void)
{
    npu_registry *registry = built_in();
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_registry_add(registry, "test", &test_row, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    return registry;
}

static void test_row_and_facts(void)
{
    npu_registry *registry = with_test_op();
    const npu_op_def *def = npu_registry_find(registry, "test.op");
    npu_text line = npu_text_init(NULL);
    NPU_ITEM("S3.14");
    NPU_ITEM("S3.17");
    NPU_ITEM("S3.19");
    npu_schema_print(&line, def->schema);
    NPU_CHECK_STR(line.data, test_row.schema);
    NPU_ITEM("F56");
    NPU_CHECK_STATUS(npu_registry_add(registry, "test", &test_row, NULL), NPU_ERR_DUPLICATE); /* the name */
    NPU_CHECK_STR(def->arg_docs[0], "first");
    NPU_CHECK_STR(def->arg_docs[1], "second");
    NPU_CHECK_STR(def->arg_docs[2], "");
    NPU_CHECK_EQ(def->num_operand_args, 2);
    NPU_CHECK(def->is_custom && NPU_KIND_NAMESPACE(def->kind) == NPU_NS_USER);
    npu_text_free(&line);
    npu_registry_destroy(registry);
}

static void test_free_category_and_description(void)
{
    npu_registry *registry = with_test_op();
    const npu_op_def *def = npu_registry_find(registry, "test.op");
    NPU_ITEM("S3.2");
    NPU_ITEM("S3.15");
    NPU_ITEM("S3.16");
    NPU_CHECK_STR(def->category, "TestOp");
    NPU_CHECK_STR(def->doc, "an op for tests");
    NPU_CHECK_STR(npu_registry_find(registry, "tensor.add")->category, "TensorOp");
    npu_registry_destroy(registry);
}

/* Facts of the op, not of a call. */
static void test_attributes(void)
{
    npu_registry *registry = with_test_op();
    const npu_op_def *def = npu_registry_find(registry, "test.op");
    NPU_ITEM("S3.36");
    NPU_ITEM("R3.30");
    NPU_CHECK_STR(npu_op_def_attribute(def, "device"), "npu0");
    NPU_CHECK_STR(npu_op_def_attribute(def, "category"), "TestOp");
    NPU_CHECK_STR(npu_op_def_attribute(def, "description"), "an op for tests");
    NPU_CHECK(!npu_op_def_attribute(def, "pipe"));
    NPU_CHECK(!npu_op_def_attribute(def, "int_attr"));
    npu_registry_destroy(registry);
}

static void test_no_argument_and_pipe(void)
{
    static const npu_op_row row = { 0, NPU_EFFECT | NPU_ON_S, deduce_nothing, "barrier() -> ()", "waits for all", NULL };
    npu_registry *registry = built_in();
    const npu_op_def *def;
    npu_graph_desc desc = { .registry = registry };
    npu_graph *g;
    npu_op op;
    NPU_ITEM("S3.18");
    NPU_ITEM("S3.20");
    NPU_ITEM("S3.10");
    NPU_CHECK_STATUS(npu_registry_add(registry, "test", &row, NULL), NPU_OK);
    def = npu_registry_find(registry, "test.barrier");
    NPU_CHECK_EQ(def->pipe, NPU_PIPE_S);
    NPU_CHECK_STR(npu_op_def_attribute(def, "pipe"), "S");
    NPU_CHECK_EQ(def->schema->num_args, 0);
    g = npu_graph_create(&desc);
    op = npu_emit_name(g, "test.barrier", NULL, 0);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

static void test_lookup(void)
{
    npu_registry *registry = built_in();
    NPU_ITEM("S3.23");
    NPU_ITEM("S3.24");
    NPU_CHECK_STR(npu_registry_find(registry, "tensor.add")->name, "tensor.add");
    NPU_CHECK(!npu_registry_find(registry, "tensor.nonesuch"));
    npu_registry_destroy(registry);
}

/* The families of the document, in its order; every op of one works on the document's class of values. */
static void test_categories(void)
{
    static const char *const order[] = { "TensorOp", "BlockOp", "SyncOp" };
    uint32_t num_tables;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    size_t next = 0;
    NPU_ITEM("S3.1");
    for (uint32_t t = 0; t < num_tables && next < 3; t++) {
        next += strcmp(tables[t].category, order[next]) == 0;
    }
    NPU_CHECK_EQ(next, 3);
}

static bool takes(const npu_op_def *def, uint32_t base)
{
    for (uint32_t i = 0; i < def->schema->num_args; i++) {
        if (def->schema->args[i].type.base == base) {
            return true;
        }
    }
    return false;
}

static void test_classes_of_categories(void)
{
    npu_registry *registry = built_in();
    int num_block = 0, num_sync = 0;
    NPU_ITEM("S3.4");
    NPU_ITEM("S3.5");
    NPU_ITEM("S3.13");
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        bool is_block = strncmp(def->name, "block.", 6) == 0, is_sync = strncmp(def->name, "system.", 7) == 0;
        NPU_CHECK_EQ(strcmp(def->category, "BlockOp") == 0, is_block);
        NPU_CHECK_EQ(strcmp(def->category, "SyncOp") == 0, is_sync);
        if (is_sync) { /* no operand, no result, and never dropped */
            NPU_CHECK(!takes(def, NPU_T_TENSOR) && !takes(def, NPU_T_TILE) && def->schema->num_returns == 0);
            NPU_CHECK(def->traits & NPU_EFFECT);
        }
        NPU_CHECK(!takes(def, NPU_T_TILE) || is_block);
        num_block += is_block && takes(def, NPU_T_TILE);
        num_sync += is_sync;
    }
    NPU_CHECK(num_block >= 12);
    NPU_CHECK_EQ(npu_registry_find_kind(registry, NPU_SYSTEM_BAR_M)->pipe, NPU_PIPE_S); /* as the document registers them */
    NPU_CHECK(num_sync >= 5);
    npu_registry_destroy(registry);
}

/* The rule that was registered is the one that deduces; the manual says how to do this. */
static void test_rule_is_called(void)
{
    npu_registry *registry = with_test_op();
    npu_graph_desc desc = { .registry = registry };
    npu_graph *g = npu_graph_create(&desc);
    npu_value x = npu_input(g, "x", spec(NPU_I8, 3, 5)), y = npu_input(g, "y", spec(NPU_F32, 1, 1));
    npu_arg args[] = { npu_arg_tensor("arg1", x), npu_arg_tensor("arg2", y) };
    npu_op op = npu_emit_name(g, "test.op", args, 2);
    static char manual[10000];
    FILE *file = fopen("npu_ir.h", "rb");
    NPU_ITEM("S3.21");
    NPU_ITEM("R4.16");
    NPU_CHECK(npu_spec_equal(npu_value_spec(g, npu_op_result(g, op, 0)), npu_value_spec(g, x)));
    NPU_CHECK(file && fread(manual, 1, sizeof manual - 1, file) > 0);
    NPU_CHECK(strstr(manual, "ADDING AN OP") && strstr(manual, "npu_registry_add"));
    if (file) {
        fclose(file);
    }
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* What is wrong with a row; everything else is test_row's. */
static void test_bad_registrations(void)
{
    static const npu_op_attribute twice[] = { { "k", "v" }, { "k", "w" } }, no_key[] = { { NULL, "v" } }, no_value[] = { { "k", NULL } };
    static const npu_op_facts facts[] = { { .attributes = twice, .num_attributes = 2 }, { .attributes = no_key, .num_attributes = 1 },
                                          { .attributes = no_value, .num_attributes = 1 } };
    static const struct { const char *space, *schema; const npu_op_facts *facts; npu_status status; } rows[] = {
        { "tensor", "add(Tensor lhs, Tensor rhs) -> Tensor", NULL, NPU_ERR_DUPLICATE },
        { "test", "op(Tensor x) -> Tensor", &facts[0], NPU_ERR_DUPLICATE },
        { "test", "op(Tensor x) -> Tensor", &facts[1], NPU_ERR_INVALID_ARGUMENT },
        { "test", "op(Tensor x) -> Tensor", &facts[2], NPU_ERR_INVALID_ARGUMENT },
        { "", "op(Tensor x) -> Tensor", NULL, NPU_ERR_INVALID_ARGUMENT },
        { NULL, "op(Tensor x) -> Tensor", NULL, NPU_ERR_INVALID_ARGUMENT },
        { "test", NULL, NULL, NPU_ERR_INVALID_ARGUMENT },
        { "test", "op(Matrix x) -> Tensor", NULL, NPU_ERR_PARSE },
        { "test", "op(Tensor x, *, vector k) -> Tensor", NULL, NPU_ERR_PARSE }, /* keywords: bool, int, str, float (a double) */
        { "test", "op(Tensor x, *, double k) -> Tensor", NULL, NPU_ERR_PARSE }, /* and ScalarType, by these names */
        { "test", "op(Tensor) -> Tensor", NULL, NPU_ERR_PARSE },
        { "test", "op(Tensor x)", NULL, NPU_ERR_PARSE },
        { "test", "(Tensor x) -> Tensor", NULL, NPU_ERR_PARSE },
    };
    NPU_ITEM("S3.71");
    NPU_ITEM("R3.7");
    NPU_ITEM("R3.9");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_registry *registry = built_in();
        uint32_t count = npu_registry_num_ops(registry);
        npu_op_row row = test_row;
        npu_diag diag = { 0 };
        row.schema = rows[i].schema;
        row.facts = rows[i].facts;
        NPU_CHECK_STATUS(npu_registry_add(registry, rows[i].space, &row, &diag), rows[i].status);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
        NPU_CHECK(diag.message[0]);
        NPU_CHECK_EQ(npu_registry_num_ops(registry), count);
        NPU_CHECK(!npu_registry_find(registry, "test.op"));
        npu_registry_destroy(registry);
    }
}

/* Memory runs out at the n-th allocation: nothing is registered, and trying again works. */
static void test_registration_without_memory(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_registry_desc desc = { .allocator = &allocator };
    npu_registry *registry = NULL;
    npu_status status = NPU_ERR_NO_MEMORY;
    NPU_CHECK_STATUS(npu_registry_create(&registry, &desc, NULL), NPU_OK);
    for (uint64_t n = 1; status && n < 100; n++) {
        counter.fail_at = counter.num_calls + n;
        status = npu_registry_add(registry, "test", &test_row, NULL);
        NPU_CHECK(status == NPU_OK || (status == NPU_ERR_NO_MEMORY && !npu_registry_find(registry, "test.op")));
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK_STR(npu_registry_find(registry, "test.op")->category, "TestOp");
    npu_registry_destroy(registry);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* ---- calls ---- */

/* create_op_call: the type is deduced, the call knows where it stands, operands and keywords are apart. */
static void test_call(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", spec(NPU_F16, 64, 128)), b = npu_input(g, "b", spec(NPU_F16, 128, 64));
    npu_arg args[] = { npu_arg_tensor(NULL, a), npu_arg_tensor(NULL, b), npu_arg_dtype("out_dtype", NPU_F32) };
    npu_op op = npu_emit_name(npu_graph_set_location(g, "model.py", 17), "tensor.matmul", args, 3);
    const char *file = NULL;
    npu_op_info info;
    npu_op_storage storage = { 0 };
    NPU_ITEM("S3.25");
    NPU_ITEM("S3.34");
    NPU_ITEM("S3.35");
    NPU_CHECK_EQ(npu_op_location(g, op, &file), 17);
    NPU_CHECK_STR(file, "model.py");
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.num_in, 2);
    NPU_CHECK_EQ(npu_op_int(&info, "out_dtype", 0), NPU_F32);
    NPU_CHECK_EQ(info.out[0]->dtype, NPU_F32);
    NPU_CHECK(info.in[0] == npu_value_spec(g, a));
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* Keywords live in the blob, operands in the graph: neither is found under the other. */
static void test_operands_and_keywords_are_apart(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", spec(NPU_F32, 2, 2));
    npu_arg args[] = { npu_arg_tensor("lhs", a), npu_arg_tensor("rhs", a), npu_arg_bool("b_trans", true) };
    npu_op op = npu_emit_name(g, "tensor.matmul", args, 3);
    uint32_t size;
    NPU_ITEM("S3.37");
    NPU_ITEM("S3.72");
    NPU_CHECK_EQ(npu_op_num_operands(g, op), 2);
    npu_op_attrs(g, op, &size);
    NPU_CHECK_EQ(size, 4); /* out_dtype and a_trans absent: a byte each; b_trans present and its value */
    npu_graph_destroy(g);
}

static void check_keywords(const npu_arg *keywords, uint32_t num_keywords, const char *expected)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_arg args[8] = { npu_arg_tensor("lhs", npu_input(g, "a", spec(NPU_F16, 64, 64))),
                        npu_arg_tensor("rhs", npu_input(g, "b", spec(NPU_F16, 64, 64))) };
    npu_text text = npu_text_init(NULL);
    memcpy(args + 2, keywords, num_keywords * sizeof *keywords);
    NPU_CHECK_STATUS(npu_op_print_keywords(g, npu_emit_name(g, "tensor.matmul", args, 2 + num_keywords), &text),
                     NPU_OK);
    NPU_CHECK_STR(text.data, expected);
    npu_text_free(&text);
    npu_graph_destroy(g);
}

static void test_printed_keywords(void)
{
    npu_arg given[] = { npu_arg_bool("a_trans", true), npu_arg_dtype("out_dtype", NPU_F32) };
    npu_arg code[] = { npu_arg_int("out_dtype", 51), npu_arg_bool("a_trans", false) };
    NPU_ITEM("S3.30");
    NPU_ITEM("S3.31");
    NPU_ITEM("S3.22");
    check_keywords(given, 2, "{out_dtype: 51, a_trans: True}"); /* in schema order, whatever the order of the call */
    check_keywords(code, 2, "{out_dtype: 51, a_trans: False}"); /* a dtype or its code; false given is not absent */
    check_keywords(given, 0, "{}");
}

/* The operator document writes bool as code 0; the codes are those of the document. */
static void test_dtype_codes(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_arg args[] = { npu_arg_tensor("input", npu_input(g, "x", spec(NPU_F32, 2, 2))), npu_arg_int("target_type", 0) };
    npu_op op = npu_emit_name(g, "tensor.cast", args, 2);
    npu_text text = npu_text_init(NULL);
    NPU_ITEM("S3.73");
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, op, 0))->dtype, NPU_BOOL);
    NPU_CHECK_STATUS(npu_op_print_keywords(g, op, &text), NPU_OK);
    NPU_CHECK_STR(text.data, "{target_type: 0}");
    NPU_CHECK_EQ(NPU_F32, 51);
    npu_text_free(&text);
    npu_graph_destroy(g);
}

static const struct {
    const char *call;
    npu_status status;
    const char *message; /* NULL = any */
} bad_calls[] = {
    { "tensor.cast(x)", NPU_ERR_ATTRIBUTE, "tensor.cast requires 'target_type'" },
    { "tensor.cast(x, target_type=f16, mode=7)", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.cast(x, target_type=c64)", NPU_ERR_DTYPE, NULL },
    { "tensor.cast(x, target_type='sixteen')", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.cast(x, target_type=f16, axis=1)", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.add(x)", NPU_ERR_ARITY, NULL },
    { "tensor.add(x, x, x)", NPU_ERR_ARITY, NULL },
    { "tensor.add(x, t)", NPU_ERR_CLASS, NULL },
    { "tensor.add(x, v)", NPU_ERR_SHAPE, NULL },
    { "tensor.matmul(x, x)", NPU_ERR_SHAPE, NULL },
    { "tensor.exp(b)", NPU_ERR_DTYPE, NULL },
    { "tensor.row_sum(x, axis=2)", NPU_ERR_AXIS, NULL },
    { "tensor.row_sum(x, keepdim=false)", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.row_max(number)", NPU_ERR_RANK, NULL },
    { "tensor.row_max(b)", NPU_ERR_DTYPE, NULL },
    { "tensor.reshape(x, [4])", NPU_ERR_SHAPE, NULL },
    { "tensor.transpose(x, 0, -2)", NPU_ERR_AXIS, NULL },
    { "tensor.transpose(v, 0, 0)", NPU_ERR_RANK, NULL },
    { "tensor.matmul(x, x, a_trans=1.5)", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.matmul(x, x, trans=true)", NPU_ERR_ATTRIBUTE, NULL },
    { "tensor.matmul(x, x, a_trans=true, out_dtype=bool)", NPU_ERR_DTYPE, NULL },
    { "tensor.matmul(batch, v)", NPU_ERR_RANK, NULL },
    { "tensor.matmul(number, v)", NPU_ERR_RANK, NULL },
};

static void test_bad_calls(void)
{
    NPU_ITEM("S3.32");
    NPU_ITEM("R3.8");
    for (size_t i = 0; i < sizeof bad_calls / sizeof bad_calls[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        npu_text_printf(&text,
                        "graph main\ninput x : f32[2,3]\ninput v : f32[5]\ninput t : tile f32[2,3]\n"
                        "input b : bool[2]\ninput batch : f32[2,3,5]\ninput number : f32[]\ny = %s\noutput y = y\n",
                        bad_calls[i].call);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, &diag), bad_calls[i].status);
        NPU_CHECK(!bad_calls[i].message || strstr(diag.message, bad_calls[i].message));
        NPU_CHECK(!g);
        npu_text_free(&text);
    }
}

/* ---- deduction ---- */

typedef struct product {
    npu_dtype a_dtype, b_dtype, out_dtype; /* NPU_NONE = not given */
    bool a_trans, b_trans;
    uint32_t a_rank, b_rank;
    int64_t a[4], b[4];
    npu_status status;
    npu_dtype dtype;
    uint32_t rank;
    int64_t dims[4];
} product;

/* The document's own example has a^T [128,64] meet b [128,64]: refused; the shapes that fit stand below it. */
static const product products[] = {
    { NPU_F16, NPU_F16, NPU_F32, true, false, 2, 2, { 64, 128 }, { 128, 64 }, NPU_ERR_SHAPE, NPU_F32, 2, { 0 } },
    { NPU_F16, NPU_F16, NPU_F32, true, false, 2, 2, { 128, 128 }, { 128, 64 }, NPU_OK, NPU_F32, 2, { 128, 64 } },
    { NPU_F16, NPU_F16, NPU_NONE, false, false, 2, 2, { 4, 5 }, { 5, 6 }, NPU_OK, NPU_F16, 2, { 4, 6 } },
    { NPU_F16, NPU_F32, NPU_NONE, true, false, 2, 2, { 5, 4 }, { 5, 6 }, NPU_OK, NPU_F32, 2, { 4, 6 } },
    { NPU_I8, NPU_I32, NPU_NONE, false, true, 2, 2, { 4, 5 }, { 6, 5 }, NPU_OK, NPU_I32, 2, { 4, 6 } },
    { NPU_F16, NPU_BF16, NPU_NONE, true, true, 2, 2, { 5, 4 }, { 6, 5 }, NPU_OK, NPU_F16, 2, { 4, 6 } },
    { NPU_F32, NPU_F32, NPU_NONE, false, false, 1, 1, { 7 }, { 7 }, NPU_OK, NPU_F32, 0, { 0 } },
    { NPU_F32, NPU_F32, NPU_NONE, false, false, 2, 1, { 4, 7 }, { 7 }, NPU_OK, NPU_F32, 1, { 4 } },
    { NPU_F32, NPU_F32, NPU_NONE, false, false, 1, 2, { 7 }, { 7, 3 }, NPU_OK, NPU_F32, 1, { 3 } },
    { NPU_F32, NPU_F32, NPU_NONE, false, true, 4, 3, { 2, 1, 4, 5 }, { 3, 6, 5 }, NPU_OK, NPU_F32, 4, { 2, 3, 4, 6 } },
    { NPU_F32, NPU_F32, NPU_NONE, true, false, 3, 2, { 2, 5, 4 }, { 5, 6 }, NPU_OK, NPU_F32, 3, { 2, 4, 6 } },
    { NPU_F32, NPU_F32, NPU_NONE, true, true, 2, 3, { 5, 4 }, { 2, 6, 5 }, NPU_OK, NPU_F32, 3, { 2, 4, 6 } },
};

static npu_op emit_product(npu_graph *g, const product *p)
{
    npu_arg args[5] = { npu_arg_tensor("lhs", npu_input(g, "a", npu_spec_tensor(p->a_dtype, p->a_rank, p->a))),
                        npu_arg_tensor("rhs", npu_input(g, "b", npu_spec_tensor(p->b_dtype, p->b_rank, p->b))) };
    uint32_t n = 2;
    if (p->a_trans) {
        args[n++] = npu_arg_bool("a_trans", true);
    }
    if (p->b_trans) {
        args[n++] = npu_arg_bool("b_trans", true);
    }
    if (p->out_dtype) {
        args[n++] = npu_arg_dtype("out_dtype", p->out_dtype);
    }
    return npu_emit_name(g, "tensor.matmul", args, n);
}

static void test_matmul_types(void)
{
    NPU_ITEM("S3.28");
    NPU_ITEM("S3.29");
    NPU_ITEM("S3.51");
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const product *p = &products[i];
        npu_graph *g = npu_graph_create(NULL);
        npu_op op = emit_product(g, p);
        NPU_CHECK_STATUS(npu_graph_status(g), p->status);
        if (p->status == NPU_OK) {
            npu_spec want = npu_spec_tensor(p->dtype, p->rank, p->dims);
            NPU_CHECK(npu_spec_equal(npu_value_spec(g, npu_op_result(g, op, 0)), &want));
        }
        npu_graph_destroy(g);
    }
}

/* A bare number: with a fraction it is an f32, else it takes the other operand's dtype. */
static void test_numbers(void)
{
    static const struct { npu_dtype x, expected; bool is_float; } rows[] = {
        { NPU_F16, NPU_F32, true }, { NPU_I32, NPU_F32, true }, { NPU_F64, NPU_F64, true },
        { NPU_F16, NPU_F16, false }, { NPU_I8, NPU_I8, false }, { NPU_F32, NPU_F32, true },
    };
    NPU_ITEM("S3.33");
    NPU_ITEM("R3.27");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = npu_graph_create(NULL);
        npu_value x = npu_input(g, "x", spec(rows[i].x, 4, 8));
        npu_arg args[] = { npu_arg_tensor("lhs", x),
                           rows[i].is_float ? npu_arg_float("rhs", 2.0) : npu_arg_int("rhs", 2) };
        npu_value y = npu_op_result(g, npu_emit_name(g, "tensor.mul", args, 2), 0);
        npu_arg back[] = { args[1], args[0] };
        back[0].name = "lhs", back[1].name = "rhs";
        NPU_CHECK_EQ(npu_value_spec(g, y)->dtype, rows[i].expected);
        y = npu_op_result(g, npu_emit_name(g, "tensor.sub", back, 2), 0);
        NPU_CHECK_EQ(npu_value_spec(g, y)->dtype, rows[i].expected);
        npu_graph_destroy(g);
    }
    { /* the document's Python example */
        npu_graph *g = npu_graph_create(NULL);
        npu_arg args[] = { npu_arg_tensor(NULL, npu_input(g, "a", spec(NPU_F32, 4, 8))),
                           npu_arg_tensor(NULL, npu_input(g, "b", npu_spec_tensor(NPU_F32, 1, DIMS(8)))) };
        npu_spec want = spec(NPU_F32, 4, 8);
        NPU_CHECK(
            npu_spec_equal(npu_value_spec(g, npu_op_result(g, npu_emit_name(g, "tensor.add", args, 2), 0)), &want));
        npu_graph_destroy(g);
    }
}

/* ---- types ---- */

static void test_classes(void)
{
    npu_spec tensor = npu_spec_tensor(NPU_F32, 3, DIMS(2, 3, 4)), tile = npu_spec_tile(NPU_F16, 3, DIMS(2, 3, 4)),
             scalar = npu_spec_scalar(NPU_I32);
    int64_t dims[NPU_MAX_RANK];
    size_t len = 0;
    for (size_t i = 0; i < NPU_MAX_RANK; i++) {
        dims[i] = 2;
    }
    NPU_ITEM("S3.7");
    NPU_ITEM("S3.8");
    NPU_ITEM("S3.9");
    NPU_CHECK_EQ(tensor.cls, NPU_CLASS_TENSOR);
    NPU_CHECK_EQ(tile.cls, NPU_CLASS_TILE);
    NPU_CHECK_EQ(scalar.cls, NPU_CLASS_SCALAR);
    NPU_CHECK(tensor.rank == 3 && tile.rank == 3 && scalar.rank == 0); /* a scalar is 0-D: one element in a register */
    NPU_CHECK(scalar.dtype == NPU_I32 && npu_spec_len(&scalar, &len) == NPU_OK && len == 1);
    for (uint32_t rank = 0; rank <= NPU_MAX_RANK; rank++) {
        npu_spec any = npu_spec_tensor(NPU_F32, rank, dims);
        NPU_CHECK(any.rank == rank && npu_spec_len(&any, &len) == NPU_OK && len == (size_t)1 << rank);
        NPU_CHECK(rank == 0 || any.dims[rank ? rank - 1 : 0] == 2);
    }
    tile.dtype = NPU_F32;
    NPU_CHECK(!npu_spec_equal(&tensor, &tile)); /* a tile is no tensor */
}

/* Memory is optional; the dim that is not known is -1 and meets 1 and itself. */
static void test_memory_and_dynamic_dims(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_spec placed = npu_spec_tile(NPU_F16, 2, DIMS(16, 16)), open = spec(NPU_F32, NPU_DYNAMIC_DIM, 8);
    npu_value v, x = npu_input(g, "x", open), y = npu_input(g, "y", spec(NPU_F32, 1, 8));
    npu_arg same[] = { npu_arg_tensor("lhs", x), npu_arg_tensor("rhs", x) };
    npu_arg one[] = { npu_arg_tensor("lhs", x), npu_arg_tensor("rhs", y) };
    NPU_ITEM("S3.11");
    NPU_ITEM("S3.12");
    NPU_ITEM("S3.6");
    placed.space = NPU_SPACE_UB;
    placed.offset = 512;
    v = npu_input(g, "t", placed);
    NPU_CHECK_EQ(npu_value_spec(g, v)->offset, 512);
    NPU_CHECK_EQ(npu_value_spec(g, v)->space, NPU_SPACE_UB);
    NPU_CHECK_EQ(npu_value_spec(g, x)->space, NPU_SPACE_DEFAULT);
    NPU_CHECK_EQ(NPU_DYNAMIC_DIM, -1);
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, npu_emit_name(g, "tensor.add", same, 2), 0))->dims[0], -1);
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, npu_emit_name(g, "tensor.add", one, 2), 0))->dims[0], -1);
    npu_arg mixed[] = { npu_arg_tensor("lhs", npu_input(g, "p", spec(NPU_I32, 2, 1))), npu_arg_tensor("rhs", y) };
    npu_spec both = spec(NPU_F32, 2, 8); /* broadcast and promoted */
    NPU_CHECK(npu_spec_equal(npu_value_spec(g, npu_op_result(g, npu_emit_name(g, "tensor.add", mixed, 2), 0)), &both));
    npu_graph_destroy(g);
}

/* ---- graphs as functions ---- */

static npu_value tensor_op(npu_graph *g, const char *name, npu_value a, npu_value b)
{
    npu_arg args[] = { npu_arg_tensor("lhs", a), npu_arg_tensor("rhs", b) };
    return npu_op_result(g, npu_emit_name(g, name, args, 2), 0);
}

static void test_function(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_spec cube = npu_spec_tensor(NPU_F32, 3, DIMS(128, 64, 32));
    npu_value a = npu_input(g, "input_a", cube), b = npu_input(g, "input_b", cube), result;
    npu_text text = npu_text_init(NULL);
    NPU_ITEM("S3.52");
    NPU_CHECK_STATUS(npu_returns(g, &cube, 1), NPU_OK);
    result = npu_let(g, "result", tensor_op(g, "tensor.add", a, b));
    NPU_CHECK_STATUS(npu_return(g, &result, 1), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_print(g, &text);
    NPU_CHECK_STR(text.data,
                  "npu_ir 1\ngraph main\ninput input_a : f32[128,64,32]\ninput input_b : f32[128,64,32]\n"
                  "result = tensor.add(lhs=input_a, rhs=input_b) : f32[128,64,32]\noutput result = result\n");
    npu_text_free(&text);
    npu_graph_destroy(g);
}

static void test_bad_returns(void)
{
    static const struct { npu_dtype dtype; int64_t rows; uint32_t count; npu_status status; } rows[] = {
        { NPU_F32, 4, 1, NPU_OK }, { NPU_F16, 4, 1, NPU_ERR_DTYPE }, { NPU_F32, 5, 1, NPU_ERR_SHAPE },
        { NPU_F32, 4, 2, NPU_ERR_ARITY }, { NPU_F32, 4, 0, NPU_ERR_ARITY },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = npu_graph_create(NULL);
        npu_spec declared = spec(NPU_F32, 4, 2);
        npu_value v[2];
        v[0] = v[1] = npu_input(g, NULL, spec(rows[i].dtype, rows[i].rows, 2));
        NPU_CHECK_STATUS(npu_returns(g, &declared, 1), NPU_OK);
        NPU_CHECK_STATUS(npu_return(g, v, rows[i].count), rows[i].status);
        NPU_CHECK_EQ(npu_graph_num_outputs(g), rows[i].status == NPU_OK);
        npu_graph_destroy(g);
    }
    {
        npu_graph *g = npu_graph_create(NULL);
        npu_spec declared = spec(NPU_F32, 4, 2);
        npu_value v = npu_input(g, NULL, declared), line = npu_input(g, "line", npu_spec_tensor(NPU_F32, 1, DIMS(4)));
        NPU_CHECK_STATUS(npu_return(g, &v, 1), NPU_OK);
        NPU_CHECK_STR(npu_graph_output_name(g, 0), "return");
        NPU_CHECK_STATUS(npu_return(g, &v, 1), NPU_ERR_STATE);
        npu_graph_clear_error(g);
        NPU_CHECK_STATUS(npu_returns(g, &declared, 1), NPU_ERR_STATE);
        npu_graph_clear_error(g);
        NPU_CHECK(!npu_let(g, "line", v).id);
        NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_DUPLICATE);
        (void)line;
        npu_graph_destroy(g);
    }
    {
        npu_graph *g = npu_graph_create(NULL);
        npu_spec declared = spec(NPU_F32, 4, 2);
        npu_value v = npu_input(g, NULL, npu_spec_tensor(NPU_F32, 1, DIMS(4)));
        npu_returns(g, &declared, 1);
        NPU_CHECK_STATUS(npu_return(g, &v, 1), NPU_ERR_RANK);
        npu_graph_destroy(g);
    }
    {
        npu_graph *g = npu_graph_create(NULL);
        npu_spec declared[2];
        NPU_ITEM("F59");
        declared[0] = declared[1] = spec(NPU_F32, 4, 2);
        declared[1].dims[1] = INT64_MIN;
        NPU_CHECK_STATUS(npu_returns(NULL, declared, 1), NPU_ERR_NO_MEMORY);
        NPU_CHECK_STATUS(npu_returns(g, NULL, 1), NPU_ERR_INVALID_ARGUMENT);
        npu_graph_clear_error(g);
        NPU_CHECK(npu_returns(g, declared, 2) != NPU_OK); /* and none of the two is declared */
        npu_graph_clear_error(g);
        NPU_CHECK_STATUS(npu_returns(g, declared, 1), NPU_OK);
        NPU_CHECK_STATUS(npu_returns(g, declared, 1), NPU_ERR_STATE);
        npu_graph_destroy(g);
    }
    {
        /* nothing declared: any that exist, and numbers for those without a name */
        npu_graph *g = npu_graph_create(NULL);
        npu_value v[3];
        v[0] = v[2] = npu_input(g, NULL, spec(NPU_F32, 4, 2));
        v[1] = (npu_value){ 99 };
        NPU_CHECK_STATUS(npu_returns(g, NULL, 0), NPU_OK);
        NPU_CHECK_STATUS(npu_return(g, v, 3), NPU_ERR_INVALID_ARGUMENT);
        NPU_CHECK(strstr(npu_graph_diag(g)->message, "result 1 does not exist"));
        NPU_CHECK_STATUS(npu_return(g, v, 1), NPU_ERR_INVALID_ARGUMENT); /* as the graph has failed */
        npu_graph_clear_error(g);
        v[1] = npu_input(g, "own", spec(NPU_F32, 4, 2));
        NPU_CHECK_STATUS(npu_return(g, v, 3), NPU_OK);
        NPU_CHECK_STR(npu_graph_output_name(g, 0), "return");
        NPU_CHECK_STR(npu_graph_output_name(g, 1), "own");
        NPU_CHECK_STR(npu_graph_output_name(g, 2), "return.2");
        npu_graph_destroy(g);
    }
}

/* ---- kernels ---- */

static int64_t product_dim(const product *p, bool of_b, bool inner)
{
    uint32_t rank = of_b ? p->b_rank : p->a_rank;
    const int64_t *dims = of_b ? p->b : p->a;
    bool last = of_b ? (inner ? p->b_trans : !p->b_trans) : (inner ? !p->a_trans : p->a_trans);
    return rank == 1 ? (inner ? dims[0] : 1) : dims[last ? rank - 1 : rank - 2];
}

/* Element (batch, row, k) of an operand of integers, whose batch broadcasts to `batches`. */
static double element(const float *x, uint32_t rank, const int64_t *dims, bool trans, int64_t batch, int64_t batches,
                      int64_t row, int64_t col)
{
    int64_t rows = rank > 1 ? dims[rank - 2] : 1, cols = dims[rank - 1], own = 1;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        own *= dims[i];
    }
    /* of the shapes here a batch is whole, or is one, or is the last of two batch dims */
    batch = own == batches ? batch : own == 1 ? 0 : dims[0] == 1 || rank == 3 ? batch % own : batch / (batches / own);
    return (double)x[batch * rows * cols + (trans ? col * cols + row : row * cols + col)];
}

static void check_product(const product *p)
{
    rig r = rig_start(NULL, 0);
    product f = *p;
    float a[256], b[256], y[256];
    int64_t m = product_dim(p, false, false), n = product_dim(p, true, false), k = product_dim(p, false, true),
            batches = 1;
    f.a_dtype = f.b_dtype = NPU_F32;
    f.out_dtype = NPU_NONE;
    for (int i = 0; i < 256; i++) {
        a[i] = (float)(i * 7 % 11 - 5);
        b[i] = (float)(i * 5 % 13 - 6);
    }
    for (uint32_t i = 0; i + 2 < p->rank; i++) {
        batches *= p->dims[i];
    }
    npu_output(r.graph, "y", npu_op_result(r.graph, emit_product(r.graph, &f), 0));
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    {
        npu_spec sa = npu_spec_tensor(NPU_F32, p->a_rank, p->a), sb = npu_spec_tensor(NPU_F32, p->b_rank, p->b);
        size_t bytes_a = 0, bytes_b = 0;
        npu_spec_size(&sa, &bytes_a);
        npu_spec_size(&sb, &bytes_b);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "a", a, bytes_a), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "b", b, bytes_b), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y, (size_t)(batches * m * n) * sizeof *y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    for (int64_t i = 0; i < batches * m * n; i++) {
        double sum = 0.0;
        for (int64_t j = 0; j < k; j++) {
            sum += element(a, p->a_rank, p->a, p->a_trans, i / (m * n), batches, i / n % m, j) *
                   (p->b_rank == 1 ? (double)b[j]
                                   : element(b, p->b_rank, p->b, p->b_trans, i / (m * n), batches, j, i % n));
        }
        NPU_CHECK_NEAR(y[i], sum, 0.0);
    }
    rig_end(&r);
}

static void test_matmul_results(void)
{
    NPU_ITEM("R3.11");
    NPU_ITEM("S3.27");
    for (size_t i = 2; i < sizeof products / sizeof products[0]; i++) {
        check_product(&products[i]);
    }
}

/* Operands of two dtypes, a result of a third: products are exact in all of them. */
static void test_matmul_dtypes(void)
{
    static const struct { npu_dtype a, b, out; } rows[] = {
        { NPU_F16, NPU_F16, NPU_F32 }, { NPU_BF16, NPU_F32, NPU_NONE }, { NPU_I8, NPU_I8, NPU_I32 },
        { NPU_I8, NPU_F32, NPU_NONE }, { NPU_F64, NPU_F16, NPU_F32 }, { NPU_U8, NPU_I16, NPU_I64 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        float a[6] = { 1, -2, 3, 4, -5, 6 }, b[6] = { 2, 1, -1, 3, 0, 2 }, y[4], want[4];
        npu_value x = npu_input(r.graph, "a", spec(NPU_F32, 2, 3)), w = npu_input(r.graph, "b", spec(NPU_F32, 3, 2));
        npu_arg args[] = { npu_arg_tensor("lhs", npu_to(r.graph, x, rows[i].a)),
                           npu_arg_tensor("rhs", npu_to(r.graph, w, rows[i].b)),
                           npu_arg_dtype("out_dtype", rows[i].out) };
        if (rows[i].a == NPU_U8) {
            a[1] = 2, a[4] = 5;
        }
        for (int k = 0; k < 4; k++) {
            want[k] = a[k / 2 * 3] * b[k % 2] + a[k / 2 * 3 + 1] * b[2 + k % 2] + a[k / 2 * 3 + 2] * b[4 + k % 2];
        }
        npu_output(r.graph, "y",
                   npu_to(r.graph,
                          npu_op_result(r.graph, npu_emit_name(r.graph, "tensor.matmul", args, rows[i].out ? 3 : 2), 0),
                          NPU_F32));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "a", a, sizeof a);
        npu_test_input(r.exec, "b", b, sizeof b);
        npu_exec_set_output(r.exec, "y", y, sizeof y);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        for (int k = 0; k < 4; k++) {
            NPU_CHECK_NEAR(y[k], want[k], 0.0);
        }
        rig_end(&r);
    }
}

/* Elementwise results over promoted operands, broadcast both ways. */
static void test_elementwise_results(void)
{
    static const struct { const char *name; double y[4];
    } rows[] = { { "tensor.add", { 9, 4, 11, 6 } },
                 { "tensor.sub", { 5, 10, 7, 12 } },
                 { "tensor.mul", { 14, -21, 18, -27 } },
                 { "tensor.div", { 3.5, -7.0 / 3, 4.5, -3 } } };
    NPU_ITEM("S3.50");
    NPU_ITEM("S3.3");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        int32_t a[2] = { 7, 9 };
        float b[2] = { 2, -3 }, y[4];
        npu_value x = npu_input(r.graph, "a", spec(NPU_I32, 2, 1)),
                  w = npu_input(r.graph, "b", npu_spec_tensor(NPU_F32, 1, DIMS(2)));
        npu_output(r.graph, "y", tensor_op(r.graph, rows[i].name, x, w));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "a", a, sizeof a);
        npu_test_input(r.exec, "b", b, sizeof b);
        npu_exec_set_output(r.exec, "y", y, sizeof y);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        for (int k = 0; k < 4; k++) {
            NPU_CHECK_NEAR(y[k], rows[i].y[k], 1e-6);
        }
        rig_end(&r);
    }
}

/* Functions of one tensor: dtype and dims of the result, and its numbers. */
static void test_functions_of_one(void)
{
    static const struct { const char *call, *spec; npu_dtype x; double y[6]; int64_t len; } rows[] = {
        { "tensor.exp(x)", "f32[2,3]", NPU_I32,
          { 2.718281828459045, 0.36787944117144233, 20.085536923187668, 1, 7.38905609893065, 54.598150033144236 }, 6 },
        { "tensor.exp(x)", "f64[2,3]", NPU_F64,
          { 2.718281828459045, 0.36787944117144233, 20.085536923187668, 1, 7.38905609893065, 54.598150033144236 }, 6 },
        { "tensor.row_sum(x)", "f32[2,1]", NPU_F32, { 3, 6 }, 2 },
        { "tensor.row_sum(x, axis=0, keep_dim=false)", "i32[3]", NPU_I32, { 1, 1, 7 }, 3 },
        { "tensor.row_max(x, axis=-1, keep_dim=false)", "f32[2]", NPU_F32, { 3, 4 }, 2 },
        { "tensor.row_max(x, axis=0)", "i32[1,3]", NPU_I32, { 1, 2, 4 }, 3 },
        { "tensor.maximum(x, 1)", "f32[2,3]", NPU_F32, { 1, 1, 3, 1, 2, 4 }, 6 },
        { "tensor.reshape(x, [3, -1])", "f32[3,2]", NPU_F32, { 1, -1, 3, 0, 2, 4 }, 6 },
        { "tensor.transpose(x, -1, 0)", "f32[3,2]", NPU_F32, { 1, 0, -1, 2, 3, 4 }, 6 },
    };
    static const double x[6] = { 1, -1, 3, 0, 2, 4 };
    NPU_ITEM("R3.12");
    NPU_ITEM("R3.13");
    NPU_ITEM("R3.20");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_start(NULL, 0);
        double y[6] = { 0 };
        char text[200];
        npu_text spec = npu_text_init(NULL);
        npu_graph_destroy(r.graph);
        r.graph = NULL;
        snprintf(text, sizeof text,
                 "graph main\ninput d : f64[2,3]\nx = aten.to.dtype(d, %s)\nr = %s\ny = aten.to.dtype(r, f64)\n"
                 "output y = y\n", npu_dtype_name(rows[i].x), rows[i].call);
        NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag), NPU_OK);
        npu_spec_print(&spec, npu_value_spec(r.graph, npu_graph_find(r.graph, "r")));
        NPU_CHECK_STR(spec.data, rows[i].spec);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "d", x, sizeof x);
        npu_exec_set_output(r.exec, "y", y, (size_t)rows[i].len * sizeof *y);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        for (int64_t k = 0; k < rows[i].len; k++) {
            NPU_CHECK_NEAR(y[k], rows[i].y[k], 1e-5);
        }
        npu_text_free(&spec);
        rig_end(&r);
    }
}

/* x in f64, cast with a mode, the result read as f64. */
static const struct {
    double x;
    npu_dtype to;
    int64_t mode;
    double y;
} casts[] = {
    { 2.5, NPU_I32, 0, 2 },
    { 2.5, NPU_I32, 1, 2 },
    { 3.5, NPU_I32, 1, 4 },
    { 2.5, NPU_I32, 2, 3 },
    { -2.5, NPU_I32, 2, -3 },
    { -2.1, NPU_I8, 3, -3 },
    { -2.9, NPU_I8, 4, -2 },
    { -2.9, NPU_I64, 5, -2 },
    { 2.1, NPU_I32, 6, 3 },
    { 3.9, NPU_I32, 6, 3 },
    { -2.1, NPU_I32, 6, -3 },
    { 4.0, NPU_I32, 6, 4 },
    { 2049, NPU_F16, 1, 2048 },
    { 2051, NPU_F16, 1, 2052 },
    { 2049, NPU_F16, 2, 2050 },
    { 2049, NPU_F16, 3, 2048 },
    { 2049, NPU_F16, 4, 2050 },
    { -2049, NPU_F16, 3, -2050 },
    { -2049, NPU_F16, 5, -2048 },
    { 2049, NPU_F16, 6, 2050 },
    { 2051, NPU_F16, 6, 2050 },
    { 257, NPU_BF16, 4, 258 },
    { 16777217, NPU_F32, 3, 16777216 },
    { 16777217, NPU_F32, 4, 16777218 },
    { 5.960464477539063e-8 * 1.5, NPU_F16, 3, 5.960464477539063e-8 },
    { 0.0, NPU_F16, 4, 0.0 },
    { HUGE_VAL, NPU_F16, 3, HUGE_VAL },
    { 1.1, NPU_F64, 3, 1.1 },
};

static void test_cast_modes(void)
{
    NPU_ITEM("R3.19");
    for (size_t i = 0; i < sizeof casts / sizeof casts[0]; i++) {
        rig r = rig_start(NULL, 0);
        double x = casts[i].x, y = (double)NAN;
        npu_arg args[] = { npu_arg_tensor("input", npu_input(r.graph, "x", npu_spec_tensor(NPU_F64, 0, NULL))),
                           npu_arg_dtype("target_type", casts[i].to), npu_arg_int("mode", casts[i].mode) };
        npu_value v = npu_op_result(r.graph, npu_emit_name(r.graph, "tensor.cast", args, 3), 0);
        NPU_CHECK_EQ(npu_value_spec(r.graph, v)->dtype, casts[i].to);
        npu_output(r.graph, "y", npu_to(r.graph, v, NPU_F64));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_test_input(r.exec, "x", &x, sizeof x);
        npu_exec_set_output(r.exec, "y", &y, sizeof y);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_NEAR(y, casts[i].y, 0.0);
        rig_end(&r);
    }
}

int main(void)
{
    NPU_RUN(test_row_and_facts);
    NPU_RUN(test_free_category_and_description);
    NPU_RUN(test_attributes);
    NPU_RUN(test_no_argument_and_pipe);
    NPU_RUN(test_lookup);
    NPU_RUN(test_categories);
    NPU_RUN(test_classes_of_categories);
    NPU_RUN(test_rule_is_called);
    NPU_RUN(test_bad_registrations);
    NPU_RUN(test_registration_without_memory);
    NPU_RUN(test_call);
    NPU_RUN(test_operands_and_keywords_are_apart);
    NPU_RUN(test_printed_keywords);
    NPU_RUN(test_dtype_codes);
    NPU_RUN(test_bad_calls);
    NPU_RUN(test_matmul_types);
    NPU_RUN(test_numbers);
    NPU_RUN(test_classes);
    NPU_RUN(test_memory_and_dynamic_dims);
    NPU_RUN(test_function);
    NPU_RUN(test_bad_returns);
    NPU_RUN(test_matmul_results);
    NPU_RUN(test_matmul_dtypes);
    NPU_RUN(test_elementwise_results);
    NPU_RUN(test_functions_of_one);
    NPU_RUN(test_cast_modes);
    return npu_test_done();
}
