/* The graph: ids, producers and users, names, specs, states, symbols, child graphs, validation. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"
#include <time.h>

static npu_spec f32(uint32_t rank, int64_t a, int64_t b)
{
    int64_t dims[2];
    dims[0] = a;
    dims[1] = b;
    return npu_spec_tensor(NPU_F32, rank, dims);
}

/* ---- values and ops ---- */

static void test_values(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), w = npu_param(g, "w", f32(2, 4, 3)),
              y = npu_linear(g, x, w, (npu_value){ 0 });
    uint32_t index = 7;
    NPU_ITEM("S2.5");
    NPU_ITEM("S2.4");
    NPU_CHECK_EQ(x.id, 1);
    NPU_CHECK_EQ(npu_graph_num_values(g), 3);
    NPU_CHECK_STR(npu_value_name(g, x), "x");
    NPU_CHECK_STR(npu_value_name(g, y), "%3");
    NPU_CHECK(npu_value_has_name(g, w) && !npu_value_has_name(g, y));
    NPU_CHECK_EQ(npu_value_role(g, x), NPU_ROLE_INPUT);
    NPU_CHECK_EQ(npu_value_role(g, w), NPU_ROLE_PARAM);
    NPU_CHECK_EQ(npu_value_role(g, y), NPU_ROLE_TEMPORARY);
    NPU_CHECK_EQ(npu_value_producer(g, x, NULL).id, 0);
    NPU_CHECK_EQ(npu_value_producer(g, y, &index).id, 1);
    NPU_CHECK_EQ(index, 0);
    NPU_CHECK_EQ(npu_value_spec(g, y)->dims[1], 4);
    NPU_CHECK_EQ(npu_value_num_users(g, x), 1);
    NPU_CHECK_EQ(npu_value_user(g, x, 0).id, 1);
    npu_graph_destroy(g);
}

/* Users in order of emission; an op that uses a value twice counts twice. */
static void test_users(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(1, 2, 0)), y = npu_add(g, x, x), z = npu_mul(g, x, y);
    NPU_ITEM("S2.5");
    NPU_ITEM("R2.12");
    NPU_CHECK_EQ(npu_value_num_users(g, x), 3);
    NPU_CHECK_EQ(npu_value_user(g, x, 0).id, 1);
    NPU_CHECK_EQ(npu_value_user(g, x, 1).id, 1);
    NPU_CHECK_EQ(npu_value_user(g, x, 2).id, 2);
    NPU_CHECK_EQ(npu_value_user(g, x, 3).id, 0);
    NPU_CHECK_EQ(npu_value_num_users(g, z), 0);
    npu_graph_destroy(g);
}

static void test_op_fields(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), w = npu_input(g, "w", f32(2, 4, 3));
    npu_aicf_gemm_attrs attrs = { false, true };
    npu_op op = npu_value_producer(g, npu_aicf_gemm(g, x, w, &attrs), NULL);
    uint32_t size = 0;
    const uint8_t *blob = npu_op_attrs(g, op, &size);
    NPU_ITEM("S2.6");
    NPU_CHECK_EQ(npu_op_kind(g, op), NPU_AICF_GEMM);
    NPU_CHECK_STR(npu_op_definition(g, op)->name, "aicf.gemm");
    NPU_CHECK_EQ(npu_op_num_operands(g, op), 2);
    NPU_CHECK_EQ(npu_op_operand_value(g, op, 1).id, w.id);
    NPU_CHECK_EQ(npu_op_operand_value(g, op, 2).id, 0);
    NPU_CHECK_EQ(npu_op_num_results(g, op), 1);
    NPU_CHECK_EQ(npu_op_result(g, op, 0).id, 3);
    NPU_CHECK_EQ(size, 2);
    NPU_CHECK(blob && blob[0] == 0 && blob[1] == 1);
    NPU_CHECK_STR(npu_op_name(g, op), "");
    NPU_CHECK_STATUS(npu_op_set_name(g, op, "fc"), NPU_OK);
    NPU_CHECK_STR(npu_op_name(g, op), "fc");
    NPU_CHECK_EQ(npu_op_constraints(g, op), 0);
    NPU_CHECK_STATUS(npu_op_set_constraints(g, op, NPU_CONSTRAINT_INPLACE_OK), NPU_OK);
    NPU_CHECK_EQ(npu_op_constraints(g, op), NPU_CONSTRAINT_INPLACE_OK);
    npu_graph_destroy(g);
}

/* What passes and backends see of an op has its constraints, in copies of the graph too. */
static void test_constraints_are_seen(void)
{
    NPU_ITEM("F54");
    npu_graph *g = npu_graph_create(NULL), *copy = NULL;
    npu_op op = npu_value_producer(g, npu_relu(g, npu_input(g, "x", f32(1, 4, 0))), NULL);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    npu_output(g, "y", npu_op_result(g, op, 0));
    npu_op_set_constraints(g, op, NPU_CONSTRAINT_INPLACE_OK | NPU_HINT_PREFER_EPILOGUE);
    NPU_CHECK_STATUS(npu_graph_rewrite(&copy, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.constraints, NPU_CONSTRAINT_INPLACE_OK | NPU_HINT_PREFER_EPILOGUE);
    NPU_CHECK_STATUS(npu_op_describe(copy, op, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.constraints, NPU_CONSTRAINT_INPLACE_OK | NPU_HINT_PREFER_EPILOGUE);
    npu_op_storage_free(&storage);
    npu_graph_destroy(copy);
    npu_graph_destroy(g);
}

static void test_describe(void)
{
    static const float two[1] = { 2 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(1, 1, 0)), c = npu_constant(g, "c", f32(1, 1, 0), two);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    npu_add(g, x, c);
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.kind, NPU_ATEN_ADD);
    NPU_CHECK_EQ(info.num_in, 2);
    NPU_CHECK_EQ(info.num_out, 1);
    NPU_CHECK(!info.in_data[0]);
    NPU_CHECK(info.in_data[1] && ((const float *)info.in_data[1])[0] == 2);
    NPU_CHECK_EQ(npu_op_int(&info, "alpha", 0), 1);
    NPU_CHECK_EQ(npu_op_operand(&info, "other"), 1);
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 2 }, &info, &storage), NPU_ERR_INVALID_ARGUMENT);
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* Arrays of no operands and no results are arrays all the same. */
static void test_describe_nothing(void)
{
    NPU_ITEM("F11");
    uint32_t index = 0;
    npu_graph *g = npu_graph_create(NULL), *tiles = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, &index);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    npu_op op = npu_system_bar_all(tiles);
    NPU_CHECK_STATUS(npu_op_describe(tiles, op, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.num_in + info.num_out, 0);
    NPU_CHECK(info.in && info.out && info.in_data);
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* Ids that do not exist give nothing, not a crash. */
static void test_bad_ids(void)
{
    npu_graph *graphs[2];
    graphs[0] = NULL;
    graphs[1] = npu_graph_create(NULL);
    for (int i = 0; i < 2; i++) {
        const npu_graph *g = graphs[i];
        npu_value v = { 99 };
        npu_op op = { 99 };
        NPU_CHECK(!npu_value_spec(g, v) && !npu_value_data(g, v, NULL) && !npu_op_definition(g, op) &&
                  !npu_op_attrs(g, op, NULL));
        NPU_CHECK_STR(npu_value_name(g, v), "");
        NPU_CHECK_STR(npu_op_name(g, op), "");
        NPU_CHECK_STR(npu_graph_output_name(g, 0), "");
        NPU_CHECK_EQ(npu_value_role(g, v), NPU_ROLE_NONE);
        NPU_CHECK_EQ(npu_value_num_users(g, v) + npu_op_num_operands(g, op) + npu_op_num_results(g, op) +
                         npu_op_num_saved(g, op),
                     0);
        NPU_CHECK_EQ(npu_value_user(g, v, 0).id + npu_op_result(g, op, 0).id + npu_op_saved(g, op, 0).id +
                         npu_graph_input(g, 0).id,
                     0);
        NPU_CHECK_EQ(npu_graph_find(g, "x").id + npu_op_location(g, op, NULL) + npu_graph_num_children(g), 0);
        NPU_CHECK(!npu_graph_child(g, 0));
        NPU_CHECK(!npu_graph_symbol_name(g, -2));
    }
    NPU_CHECK_STATUS(npu_graph_status(NULL), NPU_ERR_NO_MEMORY);
    NPU_CHECK_STATUS(npu_graph_diag(NULL)->status, NPU_ERR_NO_MEMORY);
    NPU_CHECK_STATUS(npu_graph_validate(NULL, NULL, NULL), NPU_ERR_NO_MEMORY);
    NPU_CHECK_EQ(npu_input(NULL, "x", f32(1, 1, 0)).id, 0);
    npu_graph_destroy(graphs[1]);
    npu_graph_destroy(NULL);
}

/* ---- interface ---- */

static void test_inputs_and_outputs(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", f32(1, 2, 0)), p = npu_param(g, "p", f32(1, 2, 0)),
              b = npu_input(g, "b", f32(1, 2, 0));
    npu_value y = npu_add(g, a, b);
    NPU_ITEM("S2.10");
    npu_output(g, "y", y);
    npu_output(g, NULL, b);
    npu_output(g, "y again", y);
    NPU_CHECK_EQ(npu_graph_num_inputs(g), 2); /* parameters are found by name */
    NPU_CHECK_EQ(npu_graph_input(g, 0).id, a.id);
    NPU_CHECK_EQ(npu_graph_input(g, 1).id, b.id);
    NPU_CHECK_EQ(npu_graph_find(g, "p").id, p.id);
    NPU_CHECK_EQ(npu_graph_num_outputs(g), 3);
    NPU_CHECK_EQ(npu_graph_output(g, 0).id, y.id);
    NPU_CHECK_STR(npu_graph_output_name(g, 1), "b");
    NPU_CHECK_EQ(npu_graph_output(g, 2).id, y.id);
    NPU_CHECK_EQ(npu_graph_num_values(g), 4);
    NPU_CHECK_EQ(npu_graph_num_ops(g), 1);
    npu_graph_destroy(g);
}

/* ---- rejections: each names its status; the graph keeps the first and stays usable ---- */

static npu_graph *fresh(npu_value *x)
{
    npu_graph *g = npu_graph_create(NULL);
    *x = npu_input(g, "x", f32(1, 2, 0));
    return g;
}

static void test_rejections(void)
{
    npu_value x, none = { 0 }, missing = { 99 };
    npu_graph *g = fresh(&x);
    float data[3] = { 1, 2, 3 };
    int64_t bad[2] = { 2, -5 }, dynamic[1] = { -1 };
    NPU_ITEM("R2.12");
#define NPU_REJECT(expression, expected)                       \
    do {                                                       \
        npu_graph_clear_error(g);                              \
        (void)(expression);                                    \
        NPU_CHECK_STATUS(npu_graph_status(g), expected);       \
        NPU_CHECK(npu_graph_diag(g)->message[0]);              \
    } while (0)
    NPU_REJECT(npu_input(g, "x", f32(1, 2, 0)), NPU_ERR_DUPLICATE);
    NPU_REJECT(npu_state(g, "x", f32(1, 2, 0)), NPU_ERR_DUPLICATE);
    NPU_REJECT(npu_input(g, "s", npu_spec_tensor(NPU_F32, 2, bad)), NPU_ERR_SHAPE);
    NPU_REJECT(npu_param(g, NULL, f32(1, 2, 0)), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT((npu_param(g, "p", f32(1, 2, 0)), npu_param(g, "p", f32(1, 3, 0))), NPU_ERR_SHAPE);
    NPU_REJECT(npu_graph_bind_param(g, "q", data, 8), NPU_ERR_NOT_FOUND);
    NPU_REJECT(npu_graph_bind_param(g, "p", data, 12), NPU_ERR_SHAPE);
    NPU_REJECT(npu_graph_bind_param(g, "p", NULL, 8), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_graph_bind_param(g, "x", data, 8), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_constant(g, "c", f32(1, 2, 0), NULL), NPU_ERR_CONVERSION);
    NPU_REJECT(npu_constant(g, "c", npu_spec_tensor(NPU_F32, 1, dynamic), data), NPU_ERR_DYNAMIC_SHAPE);
    NPU_REJECT(npu_output(g, "y", none), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_output(g, "y", missing), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT((npu_output(g, "y", x), npu_output(g, "y", x)), NPU_ERR_DUPLICATE);
    NPU_REJECT(npu_update(g, x, x), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_update(g, npu_state(g, "h", f32(1, 3, 0)), x), NPU_ERR_SHAPE);
    NPU_REJECT(npu_value_set_name(g, x, "again"), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_value_set_name(g, npu_relu(g, x), "x"), NPU_ERR_DUPLICATE);
    NPU_REJECT(npu_relu(g, missing), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_op_set_name(g, (npu_op){ 99 }, "op"), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_op_add_saved(g, (npu_op){ 1 }, none), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_graph_add_symbol(g, "", 0, 0), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_graph_add_symbol(g, "N", 3, 2), NPU_ERR_INVALID_ARGUMENT);
    NPU_REJECT(npu_emit(g, 0x7fff0001u, NULL, 0), NPU_ERR_NOT_FOUND);
    NPU_REJECT(npu_emit_name(g, "aten.nothing", NULL, 0), NPU_ERR_NOT_FOUND);
#undef NPU_REJECT
    npu_graph_clear_error(g);
    NPU_CHECK(npu_relu(g, x).id);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

/* A failed handle fails what is built from it, and the first failure is the one that is kept. */
static void test_failed_handles(void)
{
    npu_value x, y;
    npu_graph *g = fresh(&x);
    y = npu_relu(g, npu_matmul(g, npu_unsqueeze(g, x, 0), npu_input(g, "w", f32(2, 3, 3))));
    NPU_CHECK_EQ(y.id, 0);
    NPU_CHECK_EQ(npu_add(g, y, x).id, 0);
    NPU_CHECK(npu_output(g, "y", y) != NPU_OK);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(npu_graph_diag(g)->message, "matmul"));
    NPU_CHECK_EQ(npu_graph_num_ops(g), 1);
    npu_graph_destroy(g);
}

static void test_bad_desc(void)
{
    npu_graph_desc desc = { 0 };
    desc._canary = 1;
    NPU_CHECK(!npu_graph_create(&desc));
    desc._canary = 0;
    desc.level = 3;
    NPU_CHECK(!npu_graph_create(&desc));
}

static void count_message(void *ctx, int level, const char *message)
{
    *(int *)ctx += message[0] != 0 && level == 0;
}

static void test_logger(void)
{
    int count = 0;
    npu_logger logger = { &count, count_message };
    npu_graph_desc desc = { 0 };
    npu_graph *g;
    npu_value none = { 0 };
    desc.logger = &logger;
    g = npu_graph_create(&desc);
    npu_output(g, "a", none);
    npu_output(g, "b", none);
    NPU_CHECK_EQ(count, 2);
    npu_graph_destroy(g);
}

/* ---- locations ---- */

static void test_locations(void)
{
    npu_value x, y;
    npu_graph *g = fresh(&x);
    const char *file = NULL;
    y = npu_relu(g, x);
    NPU_CHECK_EQ(npu_op_location(g, npu_value_producer(g, y, NULL), &file), 0);
    NPU_CHECK(!file);
    y = npu_relu(NPU_AT(g), y);
    NPU_CHECK_EQ(npu_op_location(g, npu_value_producer(g, y, NULL), &file), __LINE__ - 1);
    NPU_CHECK_STR(file, __FILE__);
    npu_matmul(NPU_AT(g), y, npu_input(g, "w", f32(2, 5, 5)));
    NPU_CHECK_EQ(npu_graph_diag(g)->line, __LINE__ - 1);
    NPU_CHECK(strstr(npu_graph_diag(g)->file, "test_graph.c"));
    npu_graph_destroy(g);
}

/* ---- data, states, saved values ---- */

static void test_data(void)
{
    npu_value x, c, r;
    npu_graph *g = fresh(&x);
    float own[2] = { 1, 2 };
    static const float borrowed[2] = { 3, 4 };
    size_t size = 0;
    c = npu_constant(g, "c", f32(1, 2, 0), own);
    r = npu_constant_ref(g, "r", f32(1, 2, 0), borrowed);
    own[0] = 9; /* the graph has its own copy */
    NPU_CHECK(((const float *)npu_value_data(g, c, &size))[0] == 1);
    NPU_CHECK_EQ(size, 8);
    NPU_CHECK(npu_value_data(g, r, NULL) == borrowed);
    NPU_CHECK(!npu_value_data(g, x, &size));
    NPU_CHECK_EQ(size, 0);
    npu_graph_destroy(g);
}

/* A type may depend on a constant, but not on what happens to be bound to a parameter. */
static void test_data_and_types(void)
{
    static const uint8_t truth[3] = { 1, 0, 1 };
    int64_t dims[1] = { 3 };
    npu_graph *g = npu_graph_create(NULL), *again = NULL;
    npu_arg arg = npu_arg_tensor("condition", npu_param(g, "p", npu_spec_tensor(NPU_BOOL, 1, dims)));
    npu_text text = npu_text_init(NULL);
    npu_op of_param, of_constant;
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "p", truth, sizeof truth), NPU_OK);
    of_param = npu_emit_name(g, "aten.where.default", &arg, 1);
    arg.as.value = npu_constant(g, "c", npu_spec_tensor(NPU_BOOL, 1, dims), truth);
    of_constant = npu_emit_name(g, "aten.where.default", &arg, 1);
    NPU_CHECK(npu_value_spec(g, npu_op_result(g, of_param, 0))->dims[0] < NPU_DYNAMIC_DIM);
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, of_constant, 0))->dims[0], 2);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_parse(&again, text.data, text.len, NULL, NULL), NPU_OK);
    npu_text_free(&text);
    npu_graph_destroy(again);
    npu_graph_destroy(g);
}

static void test_number(void)
{
    npu_value x, n, y;
    npu_graph *g = fresh(&x);
    n = npu_number(g, npu_scalar_float(0.5));
    y = npu_mul(g, x, n);
    NPU_ITEM("S0.20");
    NPU_CHECK_EQ(npu_value_spec(g, n)->wrapped, 1);
    NPU_CHECK_EQ(npu_value_spec(g, n)->dtype, NPU_F64);
    NPU_CHECK_EQ(npu_value_spec(g, y)->dtype, NPU_F32); /* a wrapped number does not widen */
    NPU_CHECK_EQ(npu_value_spec(g, npu_number(g, npu_scalar_bool(true)))->dtype, NPU_BOOL);
    NPU_CHECK_EQ(npu_value_spec(g, npu_number(g, npu_scalar_int(1)))->dtype, NPU_I64);
    npu_graph_destroy(g);
}

static void test_saved(void)
{
    npu_value x, y, z;
    npu_graph *g = fresh(&x);
    npu_op first, second;
    y = npu_relu(g, x);
    z = npu_relu(g, y);
    first = npu_value_producer(g, y, NULL);
    second = npu_value_producer(g, z, NULL);
    NPU_ITEM("S2.42");
    npu_op_add_saved(g, second, z);
    npu_op_add_saved(g, first, y);
    npu_op_add_saved(g, second, y);
    NPU_CHECK_EQ(npu_op_num_saved(g, first), 1);
    NPU_CHECK_EQ(npu_op_num_saved(g, second), 2);
    NPU_CHECK_EQ(npu_op_saved(g, first, 0).id, y.id);
    NPU_CHECK_EQ(npu_op_saved(g, second, 0).id, z.id);
    NPU_CHECK_EQ(npu_op_saved(g, second, 1).id, y.id);
    NPU_CHECK_EQ(npu_op_saved(g, second, 2).id, 0);
    npu_graph_destroy(g);
}

static void test_symbols(void)
{
    npu_value x;
    npu_graph *g = fresh(&x);
    int64_t n = npu_graph_add_symbol(g, "N", 1, 8), m = npu_graph_add_symbol(g, "M", 0, 0), dims[2];
    NPU_CHECK_EQ(n, -2);
    NPU_CHECK_EQ(m, -3);
    NPU_CHECK_EQ(npu_graph_add_symbol(g, "N", 1, 8), n);
    NPU_CHECK_STR(npu_graph_symbol_name(g, m), "M");
    NPU_CHECK(!npu_graph_symbol_name(g, m - 1) && !npu_graph_symbol_name(g, NPU_DYNAMIC_DIM) && !npu_graph_symbol_name(g, 3));
    dims[0] = n;
    dims[1] = 3;
    x = npu_relu(g, npu_input(g, NULL, npu_spec_tensor(NPU_F32, 2, dims)));
    NPU_CHECK_EQ(npu_value_spec(g, x)->dims[0], n);
    npu_graph_destroy(g);
}

static void test_children(void)
{
    npu_graph *g = npu_graph_create(NULL), *a, *b;
    uint32_t index = 9;
    a = npu_graph_add_child(g, "a", NPU_LEVEL_TILE, &index);
    NPU_CHECK_EQ(index, 0);
    b = npu_graph_add_child(g, NULL, NPU_LEVEL_SCALAR, &index);
    NPU_CHECK_EQ(index, 1);
    NPU_CHECK(npu_graph_child(g, 0) == a && npu_graph_child(g, 1) == b);
    NPU_CHECK_EQ(npu_graph_num_children(g), 2);
    NPU_CHECK_STR(npu_graph_name(a), "a");
    npu_output(b, "y", (npu_value){ 3 });
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL),
                     NPU_ERR_INVALID_ARGUMENT); /* a child's failure is its parent's */
    npu_graph_destroy(g);
}

/* Operands and results of a scalar graph are registers, whatever the schema calls them. */
static void test_scalar_graph(void)
{
    npu_graph *g = npu_graph_create(NULL), *body = npu_graph_add_child(g, "body", NPU_LEVEL_SCALAR, NULL);
    npu_value x = npu_input(body, "x", npu_spec_scalar(NPU_F32)), t = npu_input(body, "t", f32(0, 0, 0));
    npu_value y = npu_add(body, x, npu_relu(body, x));
    NPU_CHECK_EQ(npu_value_spec(body, y)->cls, NPU_CLASS_SCALAR);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK(!npu_relu(body, t).id);
    NPU_CHECK_STATUS(npu_graph_status(body), NPU_ERR_CLASS);
    npu_graph_destroy(g);
}

static const struct {
    const char *call;
    npu_status status;
} bad_calls[] = {
    { "npu.call([x, y], body=graph 0)", NPU_OK },
    { "npu.call([x], body=graph 0)", NPU_ERR_ARITY },
    { "npu.call([y, x], body=graph 0)", NPU_ERR_SHAPE },
    { "npu.call([x, x], body=graph 0)", NPU_ERR_SHAPE },
    { "npu.call([x, y], body=graph 1)", NPU_ERR_INVALID_ARGUMENT },
    { "npu.call([x, y])", NPU_ERR_ATTRIBUTE },
};

static void test_call(void)
{
    for (size_t i = 0; i < sizeof bad_calls / sizeof bad_calls[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_text_printf(&text, "graph main\nchild body\ninput a : f32[2]\ninput b : i64[]\nc = aten.add.Tensor(a, b)\noutput c = c\n"
                               "end\ninput x : f32[2]\ninput y : i64[]\nz = %s\noutput z = z\n", bad_calls[i].call);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), bad_calls[i].status);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

/* ---- the weights of a checkpoint ---- */

typedef struct differences {
    npu_status status[12];
    uint32_t value[12], num;
} differences;

static void note_difference(void *ctx, const npu_diag *diag)
{
    differences *d = ctx;
    NPU_CHECK(diag->message[0]);
    if (d->num < 12) {
        d->status[d->num] = diag->status;
        d->value[d->num++] = diag->value;
    }
}

/* Parameters a, which also goes by "A", b, c and d of one shape, one without elements, one that nothing uses. */
static npu_graph *weighted(npu_value *v)
{
    npu_graph *g = npu_graph_create(NULL);
    const char *const names[] = { "a", "b", "c", "d" };
    npu_value sum = npu_input(g, "x", f32(2, 2, 3));
    for (int i = 0; i < 4; i++) {
        v[i] = npu_param(g, names[i], f32(2, 2, 3));
        sum = npu_add(g, sum, v[i]);
    }
    npu_output(g, "y", sum);
    npu_output(g, "z", npu_relu(g, npu_param(g, "empty", f32(2, 0, 3))));
    npu_param(g, "unused", f32(1, 4, 0));
    NPU_CHECK_STATUS(npu_value_add_name(g, v[0], "A"), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    return g;
}

/* Everything that is wrong with a checkpoint is said, parameters first. */
static void test_check_weights(void)
{
    static const float data[6];
    npu_value v[4];
    npu_graph *g = weighted(v);
    differences d = { .num = 0 };
    npu_array weights[] = {
        { "stranger", f32(1, 1, 0), data }, { "b", npu_spec_tensor(NPU_F16, 2, (int64_t[]){ 2, 3 }), data },
        { "A", f32(2, 3, 2), NULL },        { "x", f32(2, 2, 3), data },
        { "a", f32(2, 2, 3), data },        { "d", npu_spec_tensor(NPU_I32, 1, (int64_t[]){ 6 }), NULL },
        { NULL, f32(1, 1, 0), data }
    };
    static const npu_status status[] = { NPU_ERR_SHAPE,     NPU_ERR_DTYPE,     NPU_ERR_MISSING_WEIGHT,
                                         NPU_ERR_SHAPE,     NPU_ERR_DTYPE,     NPU_ERR_DUPLICATE,
                                         NPU_ERR_NOT_FOUND, NPU_ERR_NOT_FOUND, NPU_ERR_NOT_FOUND };
    const uint32_t value[] = { v[0].id, v[1].id, v[2].id, v[3].id, v[3].id, v[0].id, 0, 0, 0 };
    NPU_ITEM("R0.20");
    NPU_CHECK_STATUS(npu_graph_check_weights(g, weights, 7, note_difference, &d), NPU_ERR_SHAPE);
    NPU_CHECK_EQ(d.num, 9);
    for (uint32_t i = 0; i < d.num && i < 9; i++) {
        NPU_CHECK_STATUS(d.status[i], status[i]);
        NPU_CHECK_EQ(d.value[i], value[i]);
    }
    static const char *const names[] = { "d", "c", "b", "A" };
    for (uint32_t i = 0; i < 4; i++) {
        weights[i].name = names[i];
        weights[i].spec = f32(2, 2, 3);
    }
    NPU_CHECK_STATUS(npu_graph_check_weights(g, weights, 4, NULL, NULL), NPU_OK); /* data is not asked for */
    weights[4].name = "stranger";
    NPU_CHECK_STATUS(npu_graph_check_weights(g, weights, 5, NULL, NULL), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_graph_check_weights(NULL, weights, 4, NULL, NULL), NPU_ERR_NO_MEMORY);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK); /* a check is no failure of the graph */
    npu_graph_destroy(g);
}

/* All or none; what is unexpected is told and left out. */
static void test_bind_weights(void)
{
    static const float data[4][6] = { { 1 }, { 2 }, { 3 }, { 4 } };
    npu_value v[4];
    npu_graph *g = weighted(v);
    differences d = { .num = 0 };
    npu_array weights[] = { { "A", f32(2, 2, 3), data[0] },
                            { "b", f32(2, 2, 3), data[1] },
                            { "c", f32(2, 2, 3), NULL },
                            { "stranger", f32(2, 2, 3), data[0] },
                            { "d", f32(2, 2, 3), data[3] } };
    NPU_CHECK_STATUS(npu_graph_bind_weights(g, weights, 5, note_difference, &d), NPU_ERR_MISSING_WEIGHT);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_MISSING_WEIGHT);
    NPU_CHECK_EQ(npu_graph_diag(g)->value, v[2].id);
    NPU_CHECK(d.num == 2 && d.status[1] == NPU_ERR_NOT_FOUND);
    NPU_CHECK(!npu_value_data(g, v[0], NULL) && !npu_value_data(g, v[1], NULL));
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "c", data[2], sizeof data[2]), NPU_OK); /* bound before: not missing */
    d.num = 0;
    NPU_CHECK_STATUS(npu_graph_bind_weights(g, weights, 5, note_difference, &d), NPU_OK);
    NPU_CHECK(d.num == 1 && d.status[0] == NPU_ERR_NOT_FOUND);
    for (int i = 0; i < 4; i++) {
        size_t size = 0;
        NPU_CHECK(npu_value_data(g, v[i], &size) == data[i]);
        NPU_CHECK_EQ(size, sizeof data[i]);
    }
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_weights(NULL, weights, 4, NULL, NULL), NPU_ERR_NO_MEMORY);
    npu_graph_destroy(g);
}

/* ---- validation, growth, memory ---- */

static void test_validate(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 4, 4));
    NPU_ITEM("S2.5");
    for (int i = 0; i < 200; i++) {
        x = i % 3 ? npu_add(g, x, x) : npu_relu(g, x);
    }
    npu_output(g, "y", x);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    for (uint32_t op = 1; op <= npu_graph_num_ops(g); op++) {
        for (uint32_t i = 0; i < npu_op_num_operands(g, (npu_op){ op }); i++) {
            NPU_CHECK(npu_value_producer(g, npu_op_operand_value(g, (npu_op){ op }, i), NULL).id < op);
        }
    }
    npu_graph_destroy(g);
}

/* A spec that is not what deduction gives: the report names the op, and the status comes out. */
static void count_report(void *ctx, const npu_diag *diag)
{
    NPU_CHECK_EQ(diag->op, 1);
    ++*(int *)ctx;
}

static void test_validate_finds(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), w = npu_param(g, "w", f32(2, 4, 3));
    npu_value y = npu_linear(g, x, w, (npu_value){ 0 });
    int reports = 0;
    NPU_ITEM("R2.17");
    npu_output(g, "y", y);
    NPU_CHECK_STATUS(npu_graph_validate(g, count_report, &reports), NPU_OK);
    NPU_CHECK_EQ(reports, 0);
    ((npu_spec *)(uintptr_t)npu_value_spec(g, y))->dims[1] = 5; /* as a wild store would */
    NPU_CHECK_STATUS(npu_graph_validate(g, count_report, &reports), NPU_ERR_SHAPE);
    NPU_CHECK(reports > 0);
    npu_graph_destroy(g);
}

/* A long chain: building stays linear, and the names and specs of many values do not collide. */
static void test_many_ops(void)
{
    enum { OPS = 100000 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(1, 4, 0));
    char name[16];
    for (int i = 0; i < OPS; i++) {
        x = npu_relu(g, x);
        if (i % 8 == 0) {
            snprintf(name, sizeof name, "v%d", i);
            npu_value_set_name(g, x, name);
        }
    }
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(g), OPS);
    NPU_CHECK_EQ(npu_graph_find(g, "v99992").id, 99994);
    NPU_CHECK(npu_graph_memory(g) < (size_t)OPS * 200);
    npu_graph_destroy(g);
}

static npu_status build(npu_graph *g)
{
    static const float data[3] = { 1, 2, 3 };
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), h = npu_state(g, "h", f32(2, 2, 3)), y[2];
    y[0] = npu_add(NPU_AT(g), x, npu_constant(g, "c", f32(1, 3, 0), data));
    y[1] = npu_mul(NPU_AT(g), h, npu_number(g, npu_scalar_float(0.5)));
    npu_value_set_name(g, y[0], "sum");
    npu_op_add_saved(g, npu_value_producer(g, y[0], NULL), x);
    npu_op_set_name(g, npu_value_producer(g, y[1], NULL), "half");
    npu_update(g, h, y[0]);
    npu_graph_add_symbol(g, "N", 0, 0);
    npu_output(g, "y", npu_cat(g, y, 2, 0));
    npu_graph_add_child(g, "child", NPU_LEVEL_TENSOR, NULL);
    return npu_graph_status(g);
}

/* Every allocation fails once: a status, a graph that is valid or can at least be destroyed, no leak. */
static void test_out_of_memory(void)
{
    npu_status status = NPU_ERR_NO_MEMORY;
    for (uint64_t n = 1; status && n < 100000; n += n < 50 ? 1 : 7) {
        npu_alloc_counter counter = { 0, 0, 0, 0 };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_graph_desc desc = { 0 };
        npu_graph *g;
        counter.fail_at = n;
        desc.allocator = &allocator;
        g = npu_graph_create(&desc);
        status = g ? build(g) : NPU_ERR_NO_MEMORY;
        if (status) {
            NPU_CHECK_STATUS(status, NPU_ERR_NO_MEMORY);
        }
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
}

/* ---- nine dims ---- */

static npu_status nine_results(struct npu_deduce *d)
{
    npu_spec spec = *npu_deduce_spec(d, "x");
    spec.rank = 9;
    return npu_deduce_add_result(d, &spec);
}

/* Each says how many there are. */
static void test_rank_nine(void)
{
    static const npu_op_row row = { 0x01000001, 0, nine_results, "nine(Tensor x) -> Tensor", "a wrong rule", NULL };
    static const int64_t ones[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const float data[9] = { 0 };
    npu_registry *registry = NULL;
    npu_graph_desc desc = { 0 };
    npu_spec nine = npu_spec_tensor(NPU_F32, 9, ones), huge = npu_spec_tensor(NPU_F32, 1000, ones), by_hand = f32(1, 1, 0);
    npu_tensor tensor;
    npu_buffer buffer;
    npu_text text = npu_text_init(NULL);
    npu_value x, xs[2];
    npu_graph *g;
    size_t size;
    NPU_ITEM("F29");
    npu_registry_create(&registry, NULL, NULL);
    npu_registry_add(registry, "mine", &row, NULL);
    desc.registry = registry;
    g = npu_graph_create(&desc);
    x = npu_input(g, "x", f32(1, 1, 0));
    by_hand.rank = 9;
    for (int i = 0; i < 14; i++) {
        npu_arg args[1];
        args[0] = npu_arg_tensor("x", x);
        xs[0] = xs[1] = npu_reshape(g, x, ones, 8);
        npu_graph_clear_error(g);
        switch (i) {
        case 0: npu_input(g, "r", nine); break;
        case 1: npu_param(g, "r", nine); break;
        case 2: npu_state(g, "r", nine); break;
        case 3: npu_constant(g, "r", nine, data); break;
        case 4: npu_constant_ref(g, "r", nine, data); break;
        case 5: npu_reshape(g, x, ones, 9); break;
        case 6: npu_expand(g, x, ones, 9); break;
        case 7: npu_repeat(g, x, ones, 9); break;
        case 8: npu_stack(g, xs, 2, 0); break;
        case 9: npu_unsqueeze(g, xs[0], 0); break;
        case 10: npu_emit_typed(g, "other.op", args, 1, &nine, 1); break;
        case 11: npu_input(g, "r", by_hand); break;
        case 12: npu_emit_name(g, "mine.nine", args, 1); break;
        case 13: npu_returns(g, &nine, 1); break;
        default: break;
        }
        NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_RANK);
        if (!strstr(npu_graph_diag(g)->message, "9 dims")) {
            NPU_CHECK_STR(npu_graph_diag(g)->message, "the number of dims, which is 9");
        }
    }
    npu_graph_clear_error(g);
    npu_input(g, "r", huge);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_RANK);
    NPU_CHECK_STATUS(npu_spec_len(&nine, &size), NPU_ERR_RANK);
    NPU_CHECK_STATUS(npu_spec_size(&nine, &size), NPU_ERR_RANK);
    NPU_CHECK_STATUS(npu_tensor_set_host(&tensor, &buffer, NPU_F32, 9, ones, data), NPU_ERR_RANK);
    npu_spec_print(&text, &nine);
    NPU_CHECK(!npu_spec_equal(&nine, &nine));
    npu_graph_clear_error(g);
    memset(&by_hand, 0, sizeof by_hand);
    npu_input(g, "r", by_hand);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_DTYPE);
    npu_graph_clear_error(g);
    by_hand.dtype = NPU_F32;
    npu_input(g, "r", by_hand);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_CLASS);
    npu_text_free(&text);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* ---- names ---- */

/* Further names: of a value that is there, none of them empty, no two alike; and bounds of dims, one or both. */
static void test_more_names(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), y = npu_input(g, "y", f32(2, 2, 3)), none = { 0 }, other = { 9 };
    const struct { npu_value v; const char *name; npu_status status; } names[] = {
        { x, "a", NPU_OK }, { y, "b", NPU_OK }, { y, "c", NPU_OK }, { none, "d", NPU_ERR_INVALID_ARGUMENT },
        { other, "d", NPU_ERR_INVALID_ARGUMENT }, { x, NULL, NPU_ERR_INVALID_ARGUMENT },
        { x, "", NPU_ERR_INVALID_ARGUMENT }, { x, "a", NPU_ERR_DUPLICATE }, { x, "y", NPU_ERR_DUPLICATE },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        npu_graph_clear_error(g);
        NPU_CHECK_STATUS(npu_value_add_name(g, names[i].v, names[i].name), names[i].status);
        NPU_CHECK_STATUS(npu_graph_status(g), names[i].status);
    }
    npu_graph_clear_error(g);
    NPU_CHECK_STR(npu_value_other_name(g, y, 0), "b");
    NPU_CHECK_STR(npu_value_other_name(g, y, 1), "c");
    NPU_CHECK(!npu_value_other_name(g, y, 2) && !npu_value_other_name(g, none, 0) && !npu_value_other_name(NULL, y, 0));
    NPU_CHECK_EQ(npu_graph_find(g, "c").id, y.id);
    const struct { int64_t dim, min, max; bool is_bounded; } dims[] = {
        { 5, 5, 5, true }, { 0, 0, 0, true }, { npu_graph_add_symbol(g, "n", 2, 9), 2, 9, true },
        { npu_graph_add_symbol(g, "m", 3, 0), 3, 0, false }, { NPU_DYNAMIC_DIM, 0, 0, false }, { -9, 0, 0, false },
    };
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        int64_t min = 77, max = 77;
        NPU_CHECK_EQ(npu_graph_dim_bounds(g, dims[i].dim, &min, NULL), dims[i].is_bounded);
        NPU_CHECK_EQ(npu_graph_dim_bounds(g, dims[i].dim, NULL, &max), dims[i].is_bounded);
        NPU_CHECK_EQ(npu_graph_dim_bounds(g, dims[i].dim, NULL, NULL), dims[i].is_bounded);
        NPU_CHECK_THAT(min == dims[i].min && max == dims[i].max, "dim %lld: %lld to %lld", (long long)dims[i].dim,
                       (long long)min, (long long)max);
    }
    npu_graph_destroy(g);
}

/* ---- a finished graph ---- */

enum { NUM_EDITS = 17 };

/* Edit i of a graph with values x (1), state h (2), op 1; OK for none of them where the graph has a plan. */
static npu_status edit(npu_graph *g, npu_graph *child, int i)
{
    npu_value x = { 1 }, h = { 2 }, y = { 3 };
    npu_op op = { 1 };
    float data[6] = { 0 };
    npu_graph_clear_error(g);
    switch (i) {
    case 0: npu_input(g, "x2", f32(2, 2, 3)); break;
    case 1: npu_param(g, "w2", f32(2, 2, 3)); break;
    case 2: npu_constant(g, "c2", f32(2, 2, 3), data); break;
    case 3: npu_constant_ref(g, "c3", f32(2, 2, 3), data); break;
    case 4: npu_state(g, "h2", f32(2, 2, 3)); break;
    case 5: npu_relu(g, x); break;
    case 6: npu_mul(g, x, npu_number(g, npu_scalar_int(2))); break;
    case 7: return npu_output(g, "z", x);
    case 8: return npu_update(g, h, x);
    case 9: return npu_value_set_name(g, y, "sum");
    case 10: return npu_value_add_name(g, x, "x3");
    case 11: return npu_op_set_name(g, op, "add");
    case 12: return npu_op_set_constraints(g, op, 1);
    case 13: return npu_op_add_saved(g, op, x);
    case 14: npu_graph_add_symbol(g, "N", 0, 0); break;
    case 15: npu_graph_add_child(g, "more", NPU_LEVEL_TENSOR, NULL); break;
    case 16:
        npu_graph_clear_error(child);
        npu_input(child, "x", f32(2, 2, 3));
        return npu_graph_status(child);
    default: break;
    }
    return npu_graph_status(g);
}

/* x + h as output y, w as another, and a child without ops. */
static npu_graph *editable(npu_graph **child)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(2, 2, 3)), h = npu_state(g, "h", f32(2, 2, 3));
    npu_output(g, "y", npu_add(g, x, h));
    npu_output(g, "w", npu_param(g, "w", f32(1, 6, 0)));
    *child = npu_graph_add_child(g, "child", NPU_LEVEL_TENSOR, NULL);
    return g;
}

/* What programs and execs read stays as it was when the graph was planned. */
static void test_finished(void)
{
    static const float x[6] = { 1, 2, 3, 4, 5, 6 };
    float y[6] = { 0 }, w[6];
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *child, *g, *copy = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    NPU_ITEM("F6");
    for (int i = 0; i < NUM_EDITS; i++) {
        g = editable(&child);
        NPU_CHECK_STATUS(edit(g, child, i), NPU_OK);
        npu_graph_destroy(g);
    }
    g = editable(&child);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "w", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(exec, "y", y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(exec, "w", w, sizeof w), NPU_OK);
    for (int i = 0; i < NUM_EDITS; i++) {
        NPU_CHECK_STATUS(edit(g, child, i), NPU_ERR_STATE);
    }
    NPU_CHECK_EQ(npu_graph_num_values(g), 4);
    NPU_CHECK_EQ(npu_graph_num_outputs(g), 2);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    NPU_CHECK_NEAR(y[5], 6, 0);
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "w", y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_rewrite(&copy, g, NULL, NULL, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_output(copy, "z", npu_graph_find(copy, "x")), NPU_OK);
    npu_exec_destroy(exec);
    npu_graph_destroy(copy);
    npu_graph_destroy(g);
}

/* ---- sizes ---- */

/* All that looks at children of children can rely on how few there are. */
static void test_deep_children(void)
{
    npu_graph *g = npu_graph_create(NULL), *p = g, *copy = NULL;
    npu_text text = npu_text_init(NULL);
    NPU_ITEM("F12");
    for (int i = 0; i < NPU_MAX_GRAPH_DEPTH; i++) {
        p = npu_graph_add_child(p, "c", NPU_LEVEL_TENSOR, NULL);
        NPU_CHECK(p);
    }
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_rewrite(&copy, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK(!npu_graph_add_child(p, "c", NPU_LEVEL_TENSOR, NULL));
    NPU_CHECK_STATUS(npu_graph_status(p), NPU_ERR_OVERFLOW);
    npu_text_free(&text);
    npu_graph_destroy(copy);
    npu_graph_destroy(g);
}

/* Names are looked up, not compared with all others. */
static void test_many_outputs(void)
{
    enum { COUNT = 100000 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", f32(1, 2, 0));
    clock_t begin = clock();
    NPU_ITEM("F17");
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[24];
        npu_value h;
        snprintf(name, sizeof name, "y%u", (unsigned)i);
        h = npu_state(g, name, f32(1, 2, 0));
        npu_update(g, h, x);
        NPU_CHECK_STATUS(npu_output(g, name, i % 2 ? x : h), NPU_OK);
    }
    NPU_CHECK(clock() - begin < 10 * CLOCKS_PER_SEC); /* 0.1 s; each with each would be a minute */
    NPU_CHECK_EQ(npu_graph_num_outputs(g), COUNT);
    NPU_CHECK_STATUS(npu_output(g, "y77", x), NPU_ERR_DUPLICATE);
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_update(g, npu_graph_find(g, "y77"), x), NPU_ERR_DUPLICATE);
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_output(g, "x", x), NPU_OK); /* as a value is called */
    NPU_CHECK_EQ(npu_graph_find(g, "x").id, x.id);
    npu_graph_destroy(g);
}

/* Names of any bytes come back from text as they were; what is no UTF-8 is written in escapes. */
static void test_names_of_bytes(void)
{
    static const struct { const char *name, *written; } rows[] = {
        { "\xc3\xa4", "\xc3\xa4" },                 { "\xe2\x82\xac", "\xe2\x82\xac" },
        { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" }, { "\xe0\xa0\x80", "\xe0\xa0\x80" },
        { "\xed\x9f\xbf", "\xed\x9f\xbf" },         { "\xf0\x90\x80\x80", "\xf0\x90\x80\x80" },
        { "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" }, { "\xff", "\\xff" },
        { "\x80", "\\x80" },                         { "\xc0\xaf", "\\xc0\\xaf" },
        { "\xc3", "\\xc3" },                         { "\xc3(", "\\xc3(" },
        { "\xe0\x80\xaf", "\\xe0\\x80\\xaf" },     { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { "\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf" }, { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
        { "\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80" }, { "\xe2\x82", "\\xe2\\x82" },
    };
    NPU_ITEM("F59");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = npu_graph_create(NULL), *again = NULL;
        npu_text text = npu_text_init(NULL);
        npu_output(g, "y", npu_input(g, rows[i].name, npu_spec_tensor(NPU_F32, 0, NULL)));
        NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
        NPU_CHECK_THAT(strstr(text.data, rows[i].written), "row %d in %s", (int)i, text.data);
        NPU_CHECK_STATUS(npu_graph_parse(&again, text.data, text.len, NULL, NULL), NPU_OK);
        NPU_CHECK(again && npu_graph_find(again, rows[i].name).id == 1);
        npu_graph_destroy(again);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

int main(void)
{
    NPU_RUN(test_values);
    NPU_RUN(test_users);
    NPU_RUN(test_op_fields);
    NPU_RUN(test_constraints_are_seen);
    NPU_RUN(test_describe);
    NPU_RUN(test_describe_nothing);
    NPU_RUN(test_bad_ids);
    NPU_RUN(test_inputs_and_outputs);
    NPU_RUN(test_rejections);
    NPU_RUN(test_failed_handles);
    NPU_RUN(test_bad_desc);
    NPU_RUN(test_logger);
    NPU_RUN(test_locations);
    NPU_RUN(test_data);
    NPU_RUN(test_data_and_types);
    NPU_RUN(test_number);
    NPU_RUN(test_saved);
    NPU_RUN(test_symbols);
    NPU_RUN(test_children);
    NPU_RUN(test_scalar_graph);
    NPU_RUN(test_call);
    NPU_RUN(test_check_weights);
    NPU_RUN(test_bind_weights);
    NPU_RUN(test_validate);
    NPU_RUN(test_validate_finds);
    NPU_RUN(test_many_ops);
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_more_names);
    NPU_RUN(test_rank_nine);
    NPU_RUN(test_finished);
    NPU_RUN(test_deep_children);
    NPU_RUN(test_many_outputs);
    NPU_RUN(test_names_of_bytes);
    return npu_test_done();
}
