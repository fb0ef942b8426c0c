/* The registry of ops, and the device's form of attributes byte for byte. */
#include "npu_test.h"

static npu_registry *built_in(void)
{
    npu_registry *registry = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    return registry;
}

/* ---- lookup ---- */

static void test_every_spelling_of_a_name(void)
{
    static const struct { const char *text, *name; } rows[] = {
        { "aten.conv2d.default", "aten.conv2d.default" }, { "aten.conv2d", "aten.conv2d.default" },
        { "aten::conv2d", "aten.conv2d.default" }, { "aten::conv2d.padding", "aten.conv2d.padding" },
        { "torch.ops.aten.conv2d.padding", "aten.conv2d.padding" }, { "torch.ops.aten.conv2d",
          "aten.conv2d.default" },
        { "aten.where", "aten.where.self" }, { "aten.where.default", "aten.where.default" },
        { "aten._to_copy", "aten._to_copy.default" }, { "gemm", "aicf.gemm" }, { "aicf.gemm", "aicf.gemm" },
        { "aicf::gemm", "aicf.gemm" }, { "relu", "aicf.relu" }, { "tensor.add", "tensor.add" },
        { "<built-in function getitem>", "npu.getitem" }, { "npu.getitem", "npu.getitem" },
        { "aten.conv2d.nonesuch", NULL }, { "aten.conv2d.", NULL }, { "aten.conv2", NULL }, { "aten.",
          NULL }, { "aten", NULL },
        { "conv2d", NULL }, { "conv2d.default", NULL }, { "", NULL }, { "torch.ops.", NULL },
        { "torch.ops.gemm", NULL },
        { "aten:conv2d", NULL }, { "aten.conv2d.default ", NULL }, { "aten.conv2d.defaul", NULL }, { "a",
          NULL }, { ".", NULL }
    };
    npu_registry *registry = built_in();
    NPU_ITEM("S0.4");
    NPU_ITEM("S0.42");
    NPU_ITEM("S2.19");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const npu_op_def *def = npu_registry_find(registry, rows[i].text);
        NPU_CHECK_STR(def ? def->name : NULL, rows[i].name);
    }
    NPU_CHECK(npu_registry_find(registry, NULL) == NULL);
    NPU_CHECK(npu_registry_find(NULL, "gemm") == NULL);
    npu_registry_destroy(registry);
}

static void test_every_row_is_found(void)
{
    npu_registry *registry = built_in();
    uint32_t num_tables, at = 0;
    const npu_op_table *tables = npu_op_tables(&num_tables);
    NPU_ITEM("S0.5");
    for (uint32_t t = 0; t < num_tables; t++) {
        for (uint32_t i = 0; i < tables[t].num_rows; i++, at++) {
            const npu_op_row *row = &tables[t].rows[i];
            const npu_op_def *def = npu_registry_op(registry, at);
            npu_text text = npu_text_init(NULL);
            NPU_CHECK_EQ(def->kind, row->kind);
            NPU_CHECK(npu_registry_find_kind(registry, row->kind) == def &&
                      npu_registry_find(registry, def->name) == def);
            NPU_CHECK(def->rule == row->rule && def->traits == row->traits && !def->is_custom);
            NPU_CHECK_STR(def->space, tables[t].space);
            NPU_CHECK_STR(def->category, tables[t].category);
            npu_schema_print(&text, def->schema);
            NPU_CHECK_STR(text.data, row->schema);
            npu_text_free(&text);
        }
    }
    NPU_CHECK_EQ(npu_registry_num_ops(registry), at);
    NPU_CHECK(npu_registry_op(registry, at) == NULL);
    NPU_CHECK(npu_registry_find_kind(registry, 0) == NULL && npu_registry_find_kind(registry, 0x00020fff) == NULL);
    npu_registry_destroy(registry);
}

/* Every aten row is a line of PyTorch's own file, but for what its code generator adds: resize, embedding_renorm, ops named
   .._functional; and for what earlier versions had. */
static void test_aten_rows_are_native_lines(void)
{
    static const char *const former[] = { "cholesky", "qr" };
    static char file_text[1 << 20];
    FILE *file = fopen("../shared/ops/native_schemas.txt", "rb");
    npu_registry *registry;
    if (!file) {
        NPU_SKIP("no ../shared/ops/native_schemas.txt");
        return;
    }
    file_text[0] = '\n';
    file_text[1 + fread(file_text + 1, 1, sizeof file_text - 2, file)] = 0;
    fclose(file);
    registry = built_in();
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        npu_text text = npu_text_init(NULL);
        npu_text_printf(&text, "\n");
        npu_schema_print(&text, def->schema);
        npu_text_printf(&text, "\n");
        bool generated = strstr(def->schema->name, "_functional") || strcmp(def->schema->name, "resize") == 0 ||
                         strcmp(def->schema->name, "embedding_renorm") == 0;
        for (size_t k = 0; k < sizeof former / sizeof former[0]; k++) {
            generated = generated || strcmp(def->schema->name, former[k]) == 0;
        }
        if (strcmp(def->space, "aten") == 0 && !generated && !strstr(file_text, text.data)) {
            NPU_CHECK_STR("not a native line", text.data);
        }
        npu_text_free(&text);
    }
    npu_registry_destroy(registry);
}

static void test_numbers_are_permanent(void)
{
    NPU_ITEM("S2.15");
    NPU_ITEM("R2.2");
    NPU_CHECK_EQ(NPU_AICF_ADD, 0x00010000);
    NPU_CHECK_EQ(NPU_AICF_GEMM, 0x00010002);
    NPU_CHECK_EQ(NPU_AICF_GEMM_EPILOGUE, 0x00010011);
    NPU_CHECK_EQ(NPU_AICF_CROSS_ENTROPY_BWD, 0x00010016);
    NPU_CHECK_EQ(NPU_ATEN_CONV2D, 0x00020003);
    NPU_CHECK_EQ(NPU_ATEN_RELU, 0x00020040);
    NPU_CHECK_EQ(NPU_TENSOR_ADD, 0x00030001);
    NPU_CHECK_EQ(NPU_NPU_GETITEM, 0x00090002);
}

static void test_definitions(void)
{
    npu_registry *registry = built_in();
    const npu_op_def *conv = npu_registry_find_kind(registry, NPU_ATEN_CONV2D),
                     *sum = npu_registry_find_kind(registry, NPU_AICF_REDUCE_SUM);
    uint8_t blob[128];
    uint32_t size;
    NPU_CHECK_EQ(conv->num_operand_args, 3);
    NPU_CHECK_EQ(conv->defaults_size, 7 * 8);
    NPU_CHECK_STATUS(npu_blob_pack(conv->schema, NULL, 0, blob, sizeof blob, &size, NULL), NPU_OK);
    NPU_CHECK(size == conv->defaults_size && memcmp(blob, conv->defaults, size) == 0);
    NPU_CHECK(sum->defaults == NULL && sum->defaults_size == 0);
    NPU_CHECK(npu_registry_find_kind(registry, NPU_ATEN_MM)->defaults != NULL);
    NPU_CHECK_EQ(npu_registry_find_kind(registry, NPU_ATEN_MM)->defaults_size, 0);
    npu_registry_destroy(registry);
}

/* What a compiler wants to know of an op before it knows the op: whether it maps elements, only looks, cuts, has an
   effect; and its family. */
static void test_classes_of_ops(void)
{
    static const struct { npu_kind kind; uint32_t traits; const char *category; } rows[] = {
        { NPU_ATEN_CONV2D, 0, "convolution" }, { NPU_ATEN_MM, 0, "matrix" }, { NPU_ATEN_SUM_DIM, 0, "reduction" },
        { NPU_ATEN_ADD, NPU_ELEMENTWISE, "elementwise" }, { NPU_ATEN_RELU, NPU_ELEMENTWISE, "activation" },
        { NPU_ATEN_VIEW, NPU_VIEW, "shape" }, { NPU_ATEN_UNSQUEEZE, NPU_VIEW, "shape" },
        { NPU_ATEN_SPLIT, NPU_SLICE, "shape" }, { NPU_ATEN_SOFTMAX, 0, "reduction" },
        { NPU_SYSTEM_BAR_ALL, NPU_EFFECT, "SyncOp" }, { NPU_NPU_GETITEM, NPU_VIEW, "structure" }
    };
    const uint32_t mask = NPU_ELEMENTWISE | NPU_VIEW | NPU_SLICE | NPU_EFFECT;
    npu_registry *registry = built_in();
    NPU_ITEM("R1.28");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const npu_op_def *def = npu_registry_find_kind(registry, rows[i].kind);
        NPU_CHECK_EQ(def->traits & mask, rows[i].traits);
        NPU_CHECK_STR(def->category, rows[i].category);
    }
    npu_registry_destroy(registry);
}

/* ---- custom rows ---- */

enum { KIND_MINE = NPU_NS_USER << 16 | 1, KIND_OTHER = NPU_NS_USER << 16 | 2 };

static void test_custom_rows(void)
{
    static const npu_op_row mine = { KIND_MINE, 0, NULL, "swish.out(Tensor x, *, float beta=1.0) -> Tensor",
                                     NULL, NULL };
    static const npu_op_row bare = { KIND_OTHER, NPU_EFFECT, NULL, "swish(Tensor x) -> Tensor", "no beta", NULL };
    npu_registry *registry = built_in();
    uint32_t count = npu_registry_num_ops(registry);
    const npu_op_def *def;
    NPU_ITEM("S2.51");
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &mine, NULL), NPU_OK);
    def = npu_registry_find_kind(registry, KIND_MINE);
    NPU_CHECK(def && def->is_custom && def->rule == NULL);
    NPU_CHECK_STR(def->name, "mine.swish.out");
    NPU_CHECK_STR(def->category, "custom");
    NPU_CHECK_STR(def->doc, "");
    NPU_CHECK_EQ(def->defaults_size, 8);
    NPU_CHECK(npu_registry_find(registry, "mine::swish.out") == def &&
              npu_registry_find(registry, "mine.swish") == def);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &bare, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_registry_find(registry, "mine.swish")->kind, KIND_OTHER);
    NPU_CHECK(npu_registry_find(registry, "mine.swish.out") == def);
    NPU_CHECK(npu_registry_find(registry, "swish") == NULL);
    NPU_CHECK_EQ(npu_registry_num_ops(registry), count + 2);
    NPU_CHECK(npu_registry_op(registry, count) == def);
    npu_registry_destroy(registry);
}

static void test_rows_that_are_refused(void)
{
    static const struct { npu_op_row row; const char *space; npu_status status; const char *message; } rows[] = {
        { { KIND_MINE, 0, NULL, "g(Tensor x) -> Tensor", NULL, NULL }, "mine", NPU_ERR_DUPLICATE,
          "mine.g: kind 0x01000001 is that of mine.f" },
        { { KIND_OTHER, 0, NULL, "f(Tensor x) -> Tensor", NULL, NULL }, "mine", NPU_ERR_DUPLICATE,
          "mine.f: the name is that of kind 0x01000001" },
        { { NPU_ATEN_RELU, 0, NULL, "g(Tensor x) -> Tensor", NULL, NULL }, "mine", NPU_ERR_DUPLICATE,
          "mine.g: kind 0x00020040 is that of aten.relu.default" },
        { { KIND_OTHER, 0, NULL, "relu(Tensor self) -> Tensor", NULL, NULL }, "aten", NPU_ERR_DUPLICATE,
          "aten.relu.default: the name is that of kind 0x00020040" },
        { { KIND_OTHER, 0, NULL, "g(Tensor x -> Tensor", NULL, NULL }, "mine", NPU_ERR_PARSE,
          "schema column 11: expected ', ' or ')' in \"g(Tensor x -> Tensor\"" },
        { { 7, 0, NULL, "g() -> ()", NULL, NULL }, "mine", NPU_ERR_INVALID_ARGUMENT,
          "registry: kind 0x00000007 lacks a namespace or schema" },
        { { KIND_OTHER, 0, NULL, NULL, NULL, NULL }, "mine", NPU_ERR_INVALID_ARGUMENT,
          "registry: kind 0x01000002 lacks a namespace or schema" },
        { { KIND_OTHER, 0, NULL, "g() -> ()", NULL, NULL }, "", NPU_ERR_INVALID_ARGUMENT,
          "registry: kind 0x01000002 lacks a namespace or schema" },
    };
    static const npu_op_row first = { KIND_MINE, 0, NULL, "f(Tensor x) -> Tensor", NULL, NULL };
    npu_registry *registry = built_in();
    uint32_t count = npu_registry_num_ops(registry) + 1;
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &first, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_registry_add(registry, rows[i].space, &rows[i].row, &diag), rows[i].status);
        NPU_CHECK_STR(diag.message, rows[i].message);
        NPU_CHECK_EQ(npu_registry_num_ops(registry), count);
    }
    NPU_CHECK_STATUS(npu_registry_add(NULL, "mine", &first, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_registry_destroy(registry);
}

static void test_a_graph_freezes(void)
{
    static const npu_op_row row = { KIND_MINE, 0, NULL, "f(Tensor x) -> Tensor", NULL, NULL };
    npu_registry *registry = built_in();
    npu_graph_desc desc = { 0 };
    npu_graph *graph;
    desc.registry = registry;
    graph = npu_graph_create(&desc);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_ERR_STATE);
    npu_graph_destroy(graph);
    npu_registry_destroy(registry);
}

/* An op that nothing says the results of is no op without results. */
static void test_results_are_given(void)
{
    static const npu_op_row row = { KIND_MINE, 0, NULL, "f(Tensor x) -> Tensor", NULL, NULL };
    npu_registry *registry = built_in();
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_OK);
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
    npu_spec spec = npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 3 });
    npu_arg x = npu_arg_tensor("x", npu_input(g, "x", spec));
    NPU_CHECK_EQ(npu_emit_name(g, "mine.f", &x, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_ARITY);
    NPU_CHECK(strstr(npu_graph_diag(g)->message, "mine.f: its row has no type rule and no shapes"));
    npu_graph_clear_error(g);
    npu_op op = npu_emit_typed(g, "mine.f", &x, 1, &spec, 1);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 1);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

static void test_chosen_tables(void)
{
    static const npu_op_row rows[] = {
        { KIND_MINE, 0, NULL, "a(Tensor x) -> Tensor", "first", NULL }, { KIND_OTHER, 0, NULL,
          "b(Tensor x) -> Tensor", "second", NULL }
    };
    static const npu_op_row twice[] = {
        { KIND_MINE, 0, NULL, "a(Tensor x) -> Tensor", "first", NULL }, { KIND_MINE, 0, NULL,
          "b(Tensor x) -> Tensor", "second", NULL }
    };
    npu_op_table table = { "mine", "tests", rows, 2 };
    npu_registry_desc desc = { 0 };
    npu_registry *registry = NULL;
    npu_diag diag = { 0 };
    desc.tables = &table;
    desc.num_tables = 1;
    NPU_CHECK_STATUS(npu_registry_create(&registry, &desc, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_registry_num_ops(registry), 2);
    NPU_CHECK_STR(npu_registry_op(registry, 1)->name, "mine.b");
    NPU_CHECK(npu_registry_find(registry, "aten.relu") == NULL);
    NPU_CHECK(npu_registry_find(registry, "<built-in function getitem>") == NULL);
    npu_registry_destroy(registry);
    table.rows = twice;
    NPU_CHECK_STATUS(npu_registry_create(&registry, &desc, &diag), NPU_ERR_DUPLICATE);
    NPU_CHECK(registry == NULL);
    NPU_CHECK_STR(diag.message, "mine.b: kind 0x01000001 is that of mine.a");
    desc.tables = NULL;
    NPU_CHECK_STATUS(npu_registry_create(&registry, &desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    desc.num_tables = 0;
    desc._canary = 1;
    NPU_CHECK_STATUS(npu_registry_create(&registry, &desc, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_registry_destroy(NULL);
}

static void test_many_custom_rows(void)
{
    enum { MANY = 2000 };
    static char schemas[MANY][40];
    npu_registry *registry = built_in();
    uint32_t count = npu_registry_num_ops(registry);
    for (uint32_t i = 0; i < MANY; i++) {
        npu_op_row row = { KIND_MINE + i, 0, NULL, schemas[i], NULL, NULL };
        snprintf(schemas[i], sizeof schemas[i], "op%u(Tensor x) -> Tensor", (unsigned)i);
        NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_OK);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "mine.op%u", (unsigned)i);
        NPU_CHECK(npu_registry_find(registry, name) == npu_registry_op(registry, count + i));
        NPU_CHECK(npu_registry_find_kind(registry, KIND_MINE + i) == npu_registry_op(registry, count + i));
    }
    NPU_CHECK_STR(npu_registry_find(registry, "gemm")->name, "aicf.gemm");
    npu_registry_destroy(registry);
}

/* Every allocation fails once: the status says so and nothing is left behind. */
static void test_out_of_memory(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_registry_desc desc = { 0 };
    npu_registry *registry = NULL;
    npu_status status = NPU_ERR_NO_MEMORY;
    desc.allocator = &allocator;
    for (uint64_t at = 1; status == NPU_ERR_NO_MEMORY && at < 120; at++) {
        counter.num_calls = 0;
        counter.fail_at = at;
        status = npu_registry_create(&registry, &desc, NULL);
        NPU_CHECK(status == NPU_OK || (status == NPU_ERR_NO_MEMORY && !registry && counter.live_bytes == 0));
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK(counter.num_calls < 100);
    npu_registry_destroy(registry);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* ---- device ABI ---- */

typedef struct abi_case {
    npu_kind kind;
    uint32_t device_kind, attr_schema;
    const char *hex;
    npu_arg args[4];
} abi_case;

#define INT(name, x) { name, NPU_ARG_INT, 0, { x } }
#define BOOL(name) { name, NPU_ARG_BOOL, 0, { 1 } }
#define FLOAT(name, x) { name, NPU_ARG_FLOAT, 0, { .f = x } }

/* Schema ids are written out, so that a wrong byte order shows: "BADD" is 0x44444142. */
static const abi_case abi_cases[] = {
    { NPU_AICF_ADD, 0, 0, "", { { 0 } } },
    { NPU_AICF_RELU, 1, 0, "", { { 0 } } },
    { NPU_ATEN_RELU, 1, 0, "", { { 0 } } },
    { NPU_AICF_GEMM, 2, 0, "0000000000000000", { { 0 } } },
    { NPU_AICF_GEMM, 2, 0, "0000000001000000", { BOOL("transB") } },
    { NPU_AICF_GEMM, 2, 0, "0100000000000000", { BOOL("transA") } },
    { NPU_AICF_BIAS_ADD, 3, 0x44444142, "ffffffffffffffff", { { 0 } } },
    { NPU_AICF_BIAS_ADD, 3, 0x44444142, "0100000000000000", { INT("axis", 1) } },
    { NPU_AICF_REDUCE_SUM, 4, 0x4d555352, "0000000000000000", { INT("axis", 0) } },
    { NPU_AICF_MSE_GRAD, 5, 0, "", { { 0 } } },
    { NPU_AICF_MSE_GRAD, 5, 0x4745534d, "0000003f", { FLOAT("scale", 0.5) } },
    { NPU_AICF_RELU_BWD, 6, 0, "", { { 0 } } },
    { NPU_AICF_SGD_STEP, 7, 0x53444753, "cdcccc3d", { FLOAT("lr", 0.1) } },
    { NPU_AICF_COPY, 8, 0, "", { { 0 } } },
    { NPU_AICF_GRAD_ZERO, 9, 0, "", { { 0 } } },
    { NPU_AICF_ADAM_STEP, 10, 0x4d414441, "6f12833a" "6666663f" "77be7f3f" "77cc2b32", { { 0 } } },
    { NPU_AICF_STEP_INC, 11, 0, "", { { 0 } } },
    { NPU_AICF_BIAS_CORR, 12, 0x524f4342, "6666663f" "77be7f3f", { { 0 } } },
    { NPU_AICF_LAYERNORM_FWD, 13, 0x50454e4c, "acc52737", { { 0 } } },
    { NPU_AICF_LAYERNORM_BWD, 14, 0, "", { { 0 } } },
    { NPU_AICF_BATCHNORM_FWD, 15, 0x50454e42, "acc52737" "00000000", { { 0 } } },
    { NPU_AICF_BATCHNORM_FWD, 15, 0x50454e42, "0000803f" "ffffffff",
      { FLOAT("eps", 1.0), INT("flags", 4294967295) } },
    { NPU_AICF_BATCHNORM_BWD, 16, 0, "", { { 0 } } },
    { NPU_AICF_GEMM_EPILOGUE, 17, 0x50454d47, "00000000" "00000000" "01000000", { { 0 } } },
    { NPU_AICF_SOFTMAX, 18, 0, "", { { 0 } } },
    { NPU_AICF_SOFTMAX_BWD, 19, 0, "", { { 0 } } },
    { NPU_AICF_MSE_LOSS, 20, 0, "", { { 0 } } },
    { NPU_AICF_CROSS_ENTROPY_FWD, 21, 0, "", { { 0 } } },
    { NPU_AICF_CROSS_ENTROPY_BWD, 22, 0, "", { { 0 } } },
};

static void print_hex(char *out, const uint8_t *bytes, uint32_t size)
{
    *out = 0;
    for (uint32_t i = 0; i < size; i++) {
        sprintf(out + 2 * i, "%02x", bytes[i]);
    }
}

/* An op without a graph: attributes packed and bound, operands as many as its schema has. */
typedef struct bare_op {
    npu_op_info info;
    npu_bound_arg args[NPU_MAX_ARGS];
    uint8_t blob[128];
} bare_op;

static void make_op(bare_op *op, const npu_op_def *def, const npu_arg *args, uint32_t num_args)
{
    memset(op, 0, sizeof *op);
    NPU_CHECK_STATUS(
        npu_blob_pack(def->schema, args, num_args, op->blob, sizeof op->blob, &op->info.attrs_size, NULL),
        NPU_OK);
    NPU_CHECK_STATUS(npu_blob_bind(def->schema, op->blob, op->info.attrs_size, NULL, def->num_operand_args,
                                   op->args, NULL),
                     NPU_OK);
    op->info.kind = def->kind;
    op->info.num_args = def->schema->num_args;
    op->info.args = op->args;
    op->info.num_in = def->num_operand_args;
}

static void check_abi_case(const npu_registry *registry, const abi_case *c)
{
    const npu_op_def *def = npu_registry_find_kind(registry, c->kind);
    bare_op op;
    uint32_t num_args = 0, device_kind = 99, attr_schema = 99, size = 99, again_size = 0, n;
    const npu_abi *abi = npu_abi_aicf();
    uint8_t blob[64], packed[128];
    char hex[129];
    while (num_args < 4 && c->args[num_args].name) {
        num_args++;
    }
    make_op(&op, def, c->args, num_args);
    NPU_CHECK_STATUS(
        npu_abi_encode(abi, &op.info, &device_kind, &attr_schema, blob, sizeof blob, &size),
        NPU_OK);
    print_hex(hex, blob, size);
    NPU_CHECK_STR(hex, c->hex);
    NPU_CHECK_EQ(device_kind, c->device_kind);
    NPU_CHECK_EQ(attr_schema, c->attr_schema);
    NPU_CHECK_STATUS(
        npu_abi_decode(abi, def, attr_schema, blob, size, packed, sizeof packed, &again_size),
        NPU_OK);
    NPU_CHECK_EQ(again_size, op.info.attrs_size);
    NPU_CHECK_STATUS(npu_blob_bind(def->schema, packed, again_size, NULL, op.info.num_in, op.args, NULL),
                     NPU_OK);
    NPU_CHECK_STATUS(
        npu_abi_encode(abi, &op.info, &device_kind, &attr_schema, packed, sizeof packed, &n),
        NPU_OK);
    NPU_CHECK(n == size && memcmp(packed, blob, n) == 0);
    NPU_CHECK_STATUS(
        npu_abi_decode(abi, def, attr_schema ^ 1, blob, size, packed, sizeof packed, &n),
        NPU_ERR_BAD_SCHEMA);
    NPU_CHECK_STATUS(
        npu_abi_decode(abi, def, attr_schema, blob, size + 1, packed, sizeof packed, &n),
        NPU_ERR_BAD_ATTR_SIZE);
    for (uint32_t len = 0; len < size; len++) {
        NPU_CHECK_STATUS(
            npu_abi_decode(abi, def, attr_schema, blob, len, packed, sizeof packed, &n),
            NPU_ERR_BAD_ATTR_SIZE);
        NPU_CHECK_STATUS(
            npu_abi_encode(abi, &op.info, &device_kind, &attr_schema, packed, len, &n),
            NPU_ERR_OVERFLOW);
    }
}

static void test_device_blobs_byte_for_byte(void)
{
    npu_registry *registry = built_in();
    NPU_ITEM("R2.3");
    NPU_ITEM("S2.22");
    NPU_ITEM("S2.23");
    for (size_t i = 0; i < sizeof abi_cases / sizeof abi_cases[0]; i++) {
        check_abi_case(registry, &abi_cases[i]);
    }
    npu_registry_destroy(registry);
}

static void test_schema_ids(void)
{
    const npu_abi_row *rows = npu_abi_aicf()->rows;
    uint32_t num_rows = npu_abi_aicf()->num_rows;
    NPU_ITEM("S2.17");
    NPU_ITEM("S2.18");
    NPU_ITEM("R2.5");
    NPU_CHECK_EQ(NPU_FOURCC('B', 'A', 'D', 'D'), 0x44444142);
    NPU_CHECK_EQ(NPU_FOURCC(0xff, 0, 0, 0xff), 0xff0000ff);
    NPU_CHECK_EQ(num_rows, 25); /* 23 kinds, mse_grad with a scale, aten.relu */
    for (uint32_t i = 0; i < num_rows; i++) {
        NPU_CHECK((rows[i].attr_schema == 0) ==
                  (rows[i].layout[0] == 0 || rows[i].kind == (npu_kind)NPU_AICF_GEMM));
        NPU_CHECK(NPU_KIND_NAMESPACE(rows[i].kind) != NPU_NS_AICF ||
                  rows[i].device_kind == NPU_KIND_NUMBER(rows[i].kind));
    }
}

static void test_what_a_device_cannot_take(void)
{
    static const npu_abi_row rows[] = {
        { KIND_MINE, 9, 7, "<iIBf" }, { KIND_OTHER, 1, 0, "<d" }
    };
    static const npu_abi abi = NPU_ABI(rows);
    static const npu_op_row op_rows[] = {
        { KIND_MINE, 0, NULL, "f(int i=0, int u=0, int b=0, float f=0.0) -> ()", NULL, NULL },
        { KIND_OTHER, 0, NULL, "g(int[1] xs=[]) -> ()", NULL, NULL }
    };
    static const struct { npu_arg arg; npu_status status; } values[] = {
        { INT("i", 2147483647), NPU_OK }, { INT("i", 2147483648), NPU_ERR_OVERFLOW }, { INT("i",
          -2147483648), NPU_OK },
        { INT("i", -2147483649), NPU_ERR_OVERFLOW }, { INT("u", -1), NPU_ERR_OVERFLOW }, { INT("u",
          4294967295), NPU_OK },
        { INT("u", 4294967296), NPU_ERR_OVERFLOW }, { INT("b", 255), NPU_OK }, { INT("b", 256),
          NPU_ERR_OVERFLOW },
        { INT("b", -1), NPU_ERR_OVERFLOW }, { FLOAT("f", 1e38), NPU_OK }, { FLOAT("f", 1e39),
          NPU_ERR_OVERFLOW },
        { FLOAT("f", -(double)INFINITY), NPU_OK }, { FLOAT("f", (double)NAN), NPU_OK }
    };
    npu_registry *registry = built_in();
    const npu_op_def *def;
    uint32_t kind, schema, size;
    uint8_t blob[64];
    bare_op op;
    NPU_ITEM("S2.57");
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &op_rows[0], NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &op_rows[1], NULL), NPU_OK);
    def = npu_registry_find_kind(registry, KIND_MINE);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        make_op(&op, def, &values[i].arg, 1);
        NPU_CHECK_STATUS(npu_abi_encode(&abi, &op.info, &kind, &schema, blob, sizeof blob, &size),
                         values[i].status);
        NPU_CHECK_EQ(size, values[i].status ? 0 : 13);
    }
    make_op(&op, npu_registry_find_kind(registry, KIND_OTHER), NULL, 0); /* a list has no letter */
    NPU_CHECK_STATUS(npu_abi_encode(&abi, &op.info, &kind, &schema, blob, sizeof blob, &size),
                     NPU_ERR_NOT_FOUND);
    def = npu_registry_find_kind(registry, NPU_ATEN_MM);
    make_op(&op, def, NULL, 0);
    NPU_CHECK_STATUS(
        npu_abi_encode(npu_abi_aicf(), &op.info, &kind, &schema, blob, sizeof blob, &size),
        NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_abi_decode(npu_abi_aicf(), def, 0, blob, 0, blob, sizeof blob, &size),
                     NPU_ERR_NOT_FOUND);
    npu_registry_destroy(registry);
}

int main(void)
{
    NPU_RUN(test_every_spelling_of_a_name);
    NPU_RUN(test_every_row_is_found);
    NPU_RUN(test_aten_rows_are_native_lines);
    NPU_RUN(test_numbers_are_permanent);
    NPU_RUN(test_definitions);
    NPU_RUN(test_classes_of_ops);
    NPU_RUN(test_custom_rows);
    NPU_RUN(test_rows_that_are_refused);
    NPU_RUN(test_a_graph_freezes);
    NPU_RUN(test_results_are_given);
    NPU_RUN(test_chosen_tables);
    NPU_RUN(test_many_custom_rows);
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_device_blobs_byte_for_byte);
    NPU_RUN(test_schema_ids);
    NPU_RUN(test_what_a_device_cannot_take);
    return npu_test_done();
}
