/* NULL handles: every public function that takes a handle fails with a status, gives nothing, or does nothing; none reads it.
   test_all_are_here compares the rows with the declarations of the headers. */
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

static union {
    npu_graph *graph;
    npu_plan *plan;
    npu_program *program;
    npu_program_cache *program_cache;
    npu_exec *exec;
    npu_capture *capture;
    npu_registry *registry;
    npu_schema *schema;
    npu_backend *backend;
    npu_parallel *parallel;
} made;
static npu_text text;
static npu_diag diag;
static npu_spec spec;
static npu_affine_map map;
static npu_value v;
static npu_op op;
static npu_scalar number;
static size_t num_bytes;

static void check_nothing(int line, const char *call, bool is_nothing)
{
    npu_test_that(is_nothing && !text.len, __FILE__, line, call, "gives something%s%s", text.len ? ": " : "", text.len ? text.data : "");
    text.len = 0;
}

/* What a diag holds before a call: an earlier failure of something else. */
static const npu_diag stale = { NPU_ERR_CHECKSUM, 7, 7, 7, 7, "stale", "stale", "stale" };

/* The call fails with a status, its diag (if it has one) says so in words of its own, and nothing is made. */
static void check_status(int line, const char *call, npu_status status, bool is_expected)
{
    bool has_diag = strstr(call, "&diag") != NULL, is_stale = memcmp(&diag, &stale, sizeof diag) == 0;
    if (!is_expected) {
        npu_test_ok(0, __FILE__, line, call);
        fprintf(stderr, ": got %s\n", npu_status_name(status));
    }
    check_nothing(line, call, true);
    NPU_CHECK_THAT(!made.graph && diag.status == (has_diag ? status : stale.status) && is_stale == !has_diag &&
                       (diag.message[0] != 0) == (diag.status != NPU_OK), "%s: '%s'", call, diag.message);
    diag = stale;
}

static npu_status last;
#define STATUS(call, expected) (diag = stale, last = call, check_status(__LINE__, #call, last, last == expected))
#define FAILS(call) (diag = stale, last = call, check_status(__LINE__, #call, last, last != NPU_OK))
#define HANDLE(call) check_nothing(__LINE__, #call, (call).id == 0)
#define NO_POINTER(call) check_nothing(__LINE__, #call, (call) == NULL)
#define TEXT(call, expected) check_nothing(__LINE__, #call, strcmp(call, expected) == 0)
#define NUMBER(call, expected) check_nothing(__LINE__, #call, (call) == expected)
#define STRUCT(call) ((void)call, check_nothing(__LINE__, #call, true))
#define NOTHING(call) (call, check_nothing(__LINE__, #call, true))

/* Texts, registries, backends: what graphs are made of. */
static void test_objects(void)
{
    NPU_ITEM("F15");
    npu_text zeros;
    memset(&zeros, 0, sizeof zeros);
    npu_text_printf(&zeros, "%d", 12);
    NPU_CHECK(zeros.status == NPU_OK && strcmp(zeros.data, "12") == 0);
    npu_text_free(&zeros);
    STATUS(npu_threads_create(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_threads_create(&made.parallel, NULL), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_threads_destroy(NULL));
    NOTHING(npu_text_printf(NULL, "%s", "x"));
    NOTHING(npu_text_append(NULL, NULL, 0));
    NOTHING(npu_text_free(NULL));
    STATUS(npu_text_load(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_text_load(NULL, "tests/test_null.c"), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_text_save(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_text_save(NULL, "/dev/null"), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_spec_print(NULL, &spec));
    NOTHING(npu_spec_print(&text, NULL)); /* the spec of a value that was not made */
    NUMBER(npu_spec_is_static(NULL), false);
    NUMBER(npu_spec_equal(NULL, &spec), false);
    NUMBER(npu_spec_equal(&spec, NULL), false);
    STATUS(npu_spec_len(NULL, &num_bytes), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_spec_size(NULL, &num_bytes), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_schema_parse(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_schema_parse(&made.schema, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_schema_free(NULL, NULL));
    NOTHING(npu_schema_print(&text, NULL));
    NUMBER(npu_schema_find_arg(NULL, NULL), -1);
    NUMBER(npu_schema_attrs_layout(NULL, NULL, 0, NULL), 0);
    NOTHING(npu_affine_map_print(NULL, &map));
    STATUS(npu_registry_create(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_registry_destroy(NULL));
    STATUS(npu_registry_add(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_registry_add(NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NO_POINTER(npu_registry_find(NULL, NULL));
    NO_POINTER(npu_registry_find_kind(NULL, 0));
    NUMBER(npu_registry_num_ops(NULL), 0);
    NO_POINTER(npu_registry_op(NULL, 0));
    STATUS(npu_registry_add_converter(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_registry_add_converter(NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_registry_add_executor(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_registry_add_executor(NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NO_POINTER(npu_registry_find_converter(NULL, NULL));
    NO_POINTER(npu_registry_find_executor(NULL, NULL));
    NUMBER(npu_registry_num_extensions(NULL, (npu_extension)0), 0);
    NO_POINTER(npu_registry_extension(NULL, (npu_extension)0, 0));
    STATUS(npu_blob_bind(NULL, NULL, 0, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_blob_bind(NULL, NULL, 0, NULL, 0, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_blob_pack(NULL, NULL, 0, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_blob_pack(NULL, NULL, 0, NULL, 0, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_blob_pack_struct(NULL, NULL, 0, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_blob_pack_struct(NULL, NULL, 0, NULL, 0, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NO_POINTER(npu_op_definition(NULL, op));
    NOTHING(npu_op_storage_free(NULL));
    FAILS(npu_backend_check(NULL, NULL));
    FAILS(npu_backend_check(NULL, &diag));
    NUMBER(npu_backend_supports(NULL, NULL, NULL), 0);
    FAILS(npu_op_call(NULL, NULL, NULL));
    FAILS(npu_op_call(NULL, NULL, &diag));
    FAILS(npu_op_call(NULL, NPU_TEST_CALL(0, NULL, 0, NULL, 0, 0, NULL, 0), &diag));
    FAILS(npu_op_call(npu_ref_backend(), NULL, &diag));
    STATUS(npu_program_cache_create(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_program_cache_destroy(NULL));
    STATUS(npu_program_cache_acquire(NULL, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_program_cache_acquire(NULL, &made.program, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_program_cache_release(NULL, NULL));
    NOTHING(npu_program_cache_clear(NULL));
    STRUCT(npu_program_cache_get_stats(NULL));
    STATUS(npu_ref_create(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_ref_create(NULL, &(npu_ref_desc){ .diag = &diag }), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_ref_destroy(NULL));
    STATUS(npu_accel_create(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_accel_create(NULL, &(npu_accel){ .diag = &diag }, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_accel_create(&made.backend, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_accel_destroy(NULL));
}

/* A graph that is NULL is one that there was no memory for. */
static void test_graphs(void)
{
    NPU_ITEM("F15");
    NOTHING(npu_graph_destroy(NULL));
    STATUS(npu_graph_status(NULL), NPU_ERR_NO_MEMORY);
    NPU_CHECK(npu_graph_diag(NULL)->status != NPU_OK && npu_graph_diag(NULL)->message[0]);
    NOTHING(npu_graph_clear_error(NULL));
    NO_POINTER(npu_graph_registry(NULL));
    TEXT(npu_graph_name(NULL), "");
    NUMBER(npu_graph_level(NULL), 0);
    NO_POINTER(npu_graph_set_location(NULL, NULL, 0));
    NO_POINTER(npu_graph_add_child(NULL, NULL, (npu_level)0, NULL));
    NO_POINTER(npu_graph_child(NULL, 0));
    NUMBER(npu_graph_num_children(NULL), 0);
    NUMBER(npu_graph_num_values(NULL), 0);
    NUMBER(npu_graph_num_ops(NULL), 0);
    NUMBER(npu_graph_num_inputs(NULL), 0);
    NUMBER(npu_graph_num_outputs(NULL), 0);
    TEXT(npu_graph_output_name(NULL, 0), "");
    NUMBER(npu_graph_memory(NULL), 0);
    NO_POINTER(npu_value_spec(NULL, v));
    TEXT(npu_value_name(NULL, v), "");
    NUMBER(npu_value_has_name(NULL, v), 0);
    STATUS(npu_value_set_place(NULL, v, (npu_space)0, 0), NPU_ERR_NO_MEMORY);
    NUMBER(npu_value_role(NULL, v), 0);
    NUMBER(npu_value_num_users(NULL, v), 0);
    NO_POINTER(npu_value_data(NULL, v, NULL));
    NUMBER(npu_op_kind(NULL, op), 0);
    TEXT(npu_op_name(NULL, op), "");
    NUMBER(npu_op_num_operands(NULL, op), 0);
    NUMBER(npu_op_num_results(NULL, op), 0);
    NO_POINTER(npu_op_attrs(NULL, op, NULL));
    NUMBER(npu_op_location(NULL, op, NULL), 0);
    STATUS(npu_op_describe(NULL, op, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_op_set_name(NULL, op, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_op_set_constraints(NULL, op, 0), NPU_ERR_NO_MEMORY);
    NUMBER(npu_op_constraints(NULL, op), 0);
    STATUS(npu_op_add_saved(NULL, op, v), NPU_ERR_NO_MEMORY);
    NUMBER(npu_op_num_saved(NULL, op), 0);
    STATUS(npu_graph_validate(NULL, NULL, NULL), NPU_ERR_NO_MEMORY);
    NUMBER(npu_graph_add_symbol(NULL, NULL, 0, 0), 0);
    NUMBER(npu_graph_symbol_name(NULL, 0), NULL);
    NUMBER(npu_graph_dim_bounds(NULL, 0, NULL, NULL), 1);
    STATUS(npu_graph_specialize(NULL, NULL, NULL, NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_specialize(&made.graph, NULL, NULL, NULL, 0, &diag), NPU_ERR_GRAPH);
    STATUS(npu_graph_bind_param(NULL, NULL, NULL, 0), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_check_weights(NULL, NULL, 0, NULL, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_bind_weights(NULL, NULL, 0, NULL, NULL), NPU_ERR_NO_MEMORY);
}

/* What a graph is written to and made into. */
static void test_graph_forms(void)
{
    NPU_ITEM("F15");
    STATUS(npu_update(NULL, v, v), NPU_ERR_NO_MEMORY);
    STATUS(npu_output(NULL, NULL, v), NPU_ERR_NO_MEMORY);
    STATUS(npu_value_set_name(NULL, v, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_value_add_name(NULL, v, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_returns(NULL, NULL, 0), NPU_ERR_NO_MEMORY);
    STATUS(npu_return(NULL, NULL, 0), NPU_ERR_NO_MEMORY);
    NOTHING(npu_model_destroy(NULL));
    NO_POINTER(npu_model_graph(NULL));
    STATUS(npu_model_output(NULL, NULL, v), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_print(NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_parse(NULL, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_parse(&made.graph, NULL, 0, NULL, &diag), NPU_ERR_PARSE);
    STATUS(npu_op_print_keywords(NULL, op, &text), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_short(NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_print_dot(NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_print_mermaid(NULL, NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_parse_json(NULL, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_parse_json(&made.graph, NULL, 0, NULL, &diag), NPU_ERR_PARSE);
    STATUS(npu_graph_print_json(NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_bind_safetensors(NULL, NULL, 0, NULL, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_array_print_safetensors(NULL, 1, &text), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_array_print_safetensors(NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_check_alias(NULL, op, 0, 0, NULL), NPU_ERR_RANGE);
    STATUS(npu_graph_check_alias(NULL, op, 0, 0, &diag), NPU_ERR_RANGE);
    STATUS(npu_graph_check_json(NULL, 0, NULL, NULL, 0, NULL, NULL, NULL), NPU_ERR_PARSE);
    STATUS(npu_graph_check_json(NULL, 0, NULL, NULL, 0, NULL, NULL, &diag), NPU_ERR_PARSE);
    STATUS(npu_graph_rewrite(NULL, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_rewrite(&made.graph, NULL, NULL, NULL, &diag), NPU_ERR_GRAPH);
    STATUS(npu_graph_extract(NULL, NULL, NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_extract(&made.graph, NULL, NULL, 0, &diag), NPU_ERR_GRAPH);
    STATUS(npu_graph_apply_patterns(NULL, NULL, NULL, 0, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_apply_patterns(&made.graph, NULL, NULL, 0, NULL, NULL, &diag), NPU_ERR_GRAPH);
    NUMBER(npu_conversion_target_legality(NULL, NULL, op), 0);
    STATUS(npu_graph_convert(NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_convert(&made.graph, NULL, NULL, NULL, 0, NULL, NULL, &diag), NPU_ERR_GRAPH);
    STATUS(npu_graph_run_passes(NULL, NULL, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_run_passes(&made.graph, NULL, NULL, 0, NULL, &diag), NPU_ERR_GRAPH);
    NUMBER(npu_lowering_patterns((npu_namespace)0, NULL, 0), 0);
    STATUS(npu_graph_optimize(NULL, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_optimize(&made.graph, NULL, NULL, NULL, &diag), NPU_ERR_GRAPH);
    STRUCT(npu_graph_get_stats(NULL));
    STATUS(npu_graph_count_ops(NULL, NULL, 0, NULL), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_print_stats(NULL, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_print_pie(NULL, 0, &text), NPU_ERR_NO_MEMORY);
    STATUS(npu_graph_quantize(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_quantize(&made.graph, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_quantize_report_print(NULL, &text));
    STATUS(npu_graph_find_wrong_op(NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_find_wrong_op(NULL, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NUMBER(npu_tile_pipe(NULL, op), 255);
    STATUS(npu_tile_plan(NULL, NULL, NULL, NULL), NPU_ERR_CLASS);
    STATUS(npu_tile_plan(NULL, NULL, NULL, &diag), NPU_ERR_CLASS);
    STATUS(npu_tile_check(NULL, NULL, NULL, NULL), NPU_ERR_CLASS);
    STATUS(npu_tile_sync(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_tile_sync(&made.graph, NULL, NULL, &diag), NPU_ERR_GRAPH);
}

/* A failed graph makes failed handles. */
static void test_builders(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_graph_input(NULL, 0));
    HANDLE(npu_graph_output(NULL, 0));
    NUMBER(npu_graph_num_params(NULL), 0);
    HANDLE(npu_graph_param(NULL, 0));
    NO_POINTER(npu_value_other_name(NULL, v, 0));
    STRUCT(npu_layer_sequential_init(NULL, NULL, 2));
    STRUCT(npu_layer_residual_init(NULL, NULL));
    HANDLE(npu_layer_param(NULL, NULL, NULL, (npu_dtype)0, 0, NULL));
    HANDLE(npu_graph_find(NULL, NULL));
    NUMBER(npu_value_tile_root(NULL, v).id, v.id);
    HANDLE(npu_value_producer(NULL, v, NULL));
    HANDLE(npu_value_user(NULL, v, 0));
    HANDLE(npu_op_operand_value(NULL, op, 0));
    HANDLE(npu_op_result(NULL, op, 0));
    HANDLE(npu_op_saved(NULL, op, 0));
    HANDLE(npu_input(NULL, NULL, spec));
    HANDLE(npu_param(NULL, NULL, spec));
    HANDLE(npu_constant(NULL, NULL, spec, NULL));
    HANDLE(npu_constant_ref(NULL, NULL, spec, NULL));
    HANDLE(npu_number(NULL, number));
    HANDLE(npu_state(NULL, NULL, spec));
    HANDLE(npu_let(NULL, NULL, v));
    HANDLE(npu_emit(NULL, 0, NULL, 0));
    HANDLE(npu_emit_name(NULL, NULL, NULL, 0));
    HANDLE(npu_emit_typed(NULL, NULL, NULL, 0, &spec, 0));
    NPU_CHECK(npu_op_expand(NULL, NULL, NULL) == NULL);
    NPU_CHECK(npu_op_compose(NULL, "neg self", NULL, NULL) == NULL);
    HANDLE(npu_emit_struct(NULL, 0, NULL, 0, NULL, NULL, 0));
}

/* Convolutions, products, activations. */
static void test_builders_of_matrices_and_activations(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_conv1d(NULL, v, v, v, NULL));
    HANDLE(npu_conv2d(NULL, v, v, v, NULL));
    HANDLE(npu_conv_transpose2d(NULL, v, v, v, NULL));
    HANDLE(npu_linear(NULL, v, v, v));
    HANDLE(npu_mm(NULL, v, v));
    HANDLE(npu_bmm(NULL, v, v));
    HANDLE(npu_matmul(NULL, v, v));
    HANDLE(npu_addmm(NULL, v, v, v, NULL));
    HANDLE(npu_relu(NULL, v));
    HANDLE(npu_silu(NULL, v));
    HANDLE(npu_sigmoid(NULL, v));
    HANDLE(npu_tanh(NULL, v));
    HANDLE(npu_hardswish(NULL, v));
    HANDLE(npu_gelu(NULL, v, NULL));
    HANDLE(npu_leaky_relu(NULL, v, NULL));
    HANDLE(npu_hardtanh(NULL, v, NULL));
    HANDLE(npu_elu(NULL, v, NULL));
    HANDLE(npu_conv3d(NULL, v, v, v, NULL));
    HANDLE(npu_conv_transpose1d(NULL, v, v, v, NULL));
    HANDLE(npu_conv_transpose3d(NULL, v, v, v, NULL));
    HANDLE(npu_convolution(NULL, v, v, v, NULL));
    HANDLE(npu_baddbmm(NULL, v, v, v, NULL));
    HANDLE(npu_einsum(NULL, NULL, NULL, 0));
}

/* Functions of one operand. */
static void test_builders_of_functions(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_relu6(NULL, v));
    HANDLE(npu_selu(NULL, v));
    HANDLE(npu_mish(NULL, v));
    HANDLE(npu_hardsigmoid(NULL, v));
    HANDLE(npu_log_sigmoid(NULL, v));
    HANDLE(npu_softplus(NULL, v, NULL));
    HANDLE(npu_prelu(NULL, v, v));
    HANDLE(npu_glu(NULL, v, 0));
    HANDLE(npu_instance_norm(NULL, v, v, v, 0));
    HANDLE(npu_max_pool1d(NULL, v, NULL));
    HANDLE(npu_max_pool3d(NULL, v, NULL));
    HANDLE(npu_avg_pool1d(NULL, v, NULL));
    HANDLE(npu_avg_pool3d(NULL, v, NULL));
    HANDLE(npu_adaptive_max_pool2d(NULL, v, 0, 0));
    HANDLE(npu_upsample_nearest2d(NULL, v, 0, 0));
    HANDLE(npu_upsample_bilinear2d(NULL, v, 0, 0, false));
    HANDLE(npu_cos(NULL, v));
    HANDLE(npu_sin(NULL, v));
    HANDLE(npu_logical_not(NULL, v));
    HANDLE(npu_logical_and(NULL, v, v));
    HANDLE(npu_logical_or(NULL, v, v));
    HANDLE(npu_rsub(NULL, v, v));
    HANDLE(npu_lerp(NULL, v, v, v));
    HANDLE(npu_addcmul(NULL, v, v, v, number));
    HANDLE(npu_addcdiv(NULL, v, v, v, number));
    HANDLE(npu_masked_fill(NULL, v, v, number));
    HANDLE(npu_flip(NULL, v, NULL, 0));
    HANDLE(npu_roll(NULL, v, NULL, NULL, 0));
    HANDLE(npu_pad(NULL, v, NULL, 0, 0));
    HANDLE(npu_pixel_shuffle(NULL, v, 0));
    HANDLE(npu_tril(NULL, v, 0));
    HANDLE(npu_triu(NULL, v, 0));
    HANDLE(npu_unbind(NULL, v, 0));
    HANDLE(npu_split_with_sizes(NULL, v, NULL, 0, 0));
    HANDLE(npu_max(NULL, v));
    HANDLE(npu_min(NULL, v));
    HANDLE(npu_min_dim(NULL, v, 0, false));
    HANDLE(npu_argmin(NULL, v, 0, false));
    HANDLE(npu_prod(NULL, v, 0, false));
    HANDLE(npu_var(NULL, v, NULL, 0, 0, false));
    HANDLE(npu_std(NULL, v, NULL, 0, 0, false));
    HANDLE(npu_frobenius_norm(NULL, v, NULL, 0, false));
    HANDLE(npu_cumsum(NULL, v, 0));
    HANDLE(npu_topk(NULL, v, 0, 0, false));
    HANDLE(npu_sort(NULL, v, 0, false));
    HANDLE(npu_argsort(NULL, v, 0, false));
    HANDLE(npu_cosine_similarity(NULL, v, v, 0, 0));
    HANDLE(npu_index(NULL, v, NULL, 0));
    HANDLE(npu_index_put(NULL, v, NULL, 0, v, false));
    HANDLE(npu_index_select(NULL, v, 0, v));
    HANDLE(npu_index_copy(NULL, v, 0, v, v));
    HANDLE(npu_scatter_add(NULL, v, 0, v, v));
    HANDLE(npu_zeros(NULL, (npu_dtype)0, 0, NULL));
    HANDLE(npu_ones(NULL, (npu_dtype)0, 0, NULL));
    HANDLE(npu_full(NULL, (npu_dtype)0, 0, NULL, number));
    HANDLE(npu_zeros_like(NULL, v));
    HANDLE(npu_ones_like(NULL, v));
    HANDLE(npu_arange(NULL, (npu_dtype)0, number, number, number));
    HANDLE(npu_lstm(NULL, v, v, v, NULL, 0, NULL));
    HANDLE(npu_gru(NULL, v, v, NULL, 0, NULL));
    HANDLE(npu_rnn_tanh(NULL, v, v, NULL, 0, NULL));
    HANDLE(npu_rnn_relu(NULL, v, v, NULL, 0, NULL));
    HANDLE(npu_rms_norm(NULL, v, v, 0, 0));
}

/* Norms, pools, elementwise ops. */
static void test_builders_of_norms_and_elements(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_batch_norm(NULL, v, v, v, v, v, 0));
    HANDLE(npu_layer_norm(NULL, v, v, v, 0, 0));
    HANDLE(npu_group_norm(NULL, v, 0, v, v, 0));
    HANDLE(npu_max_pool2d(NULL, v, NULL));
    HANDLE(npu_avg_pool2d(NULL, v, NULL));
    HANDLE(npu_adaptive_avg_pool2d(NULL, v, 0, 0));
    HANDLE(npu_add(NULL, v, v));
    HANDLE(npu_sub(NULL, v, v));
    HANDLE(npu_mul(NULL, v, v));
    HANDLE(npu_div(NULL, v, v));
    HANDLE(npu_pow(NULL, v, v));
    HANDLE(npu_maximum(NULL, v, v));
    HANDLE(npu_minimum(NULL, v, v));
    HANDLE(npu_sqrt(NULL, v));
    HANDLE(npu_rsqrt(NULL, v));
    HANDLE(npu_neg(NULL, v));
    HANDLE(npu_abs(NULL, v));
    HANDLE(npu_exp(NULL, v));
    HANDLE(npu_log(NULL, v));
    HANDLE(npu_clamp(NULL, v, 0, 0));
    HANDLE(npu_eq(NULL, v, v));
    HANDLE(npu_ne(NULL, v, v));
    HANDLE(npu_lt(NULL, v, v));
    HANDLE(npu_le(NULL, v, v));
    HANDLE(npu_gt(NULL, v, v));
    HANDLE(npu_ge(NULL, v, v));
    HANDLE(npu_where(NULL, v, v, v));
}

/* Shapes, reductions, lookup, memory. */
static void test_builders_of_shapes_and_reductions(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_reshape(NULL, v, NULL, 0));
    HANDLE(npu_permute(NULL, v, NULL, 0));
    HANDLE(npu_transpose(NULL, v, 0, 0));
    HANDLE(npu_flatten(NULL, v, 0, 0));
    HANDLE(npu_squeeze(NULL, v, 0));
    HANDLE(npu_unsqueeze(NULL, v, 0));
    HANDLE(npu_expand(NULL, v, NULL, 0));
    HANDLE(npu_repeat(NULL, v, NULL, 0));
    HANDLE(npu_cat(NULL, NULL, 0, 0));
    HANDLE(npu_stack(NULL, NULL, 0, 0));
    HANDLE(npu_split(NULL, v, 0, 0));
    HANDLE(npu_chunk(NULL, v, 0, 0));
    HANDLE(npu_select(NULL, v, 0, 0));
    HANDLE(npu_slice(NULL, v, 0, 0, 0, 0));
    HANDLE(npu_sum(NULL, v, NULL, 0, false));
    HANDLE(npu_mean(NULL, v, NULL, 0, false));
    HANDLE(npu_amax(NULL, v, NULL, 0, false));
    HANDLE(npu_amin(NULL, v, NULL, 0, false));
    HANDLE(npu_max_dim(NULL, v, 0, false));
    HANDLE(npu_argmax(NULL, v, 0, false));
    HANDLE(npu_softmax(NULL, v, 0));
    HANDLE(npu_log_softmax(NULL, v, 0));
    HANDLE(npu_scaled_dot_product_attention(NULL, v, v, v, v, NULL));
    HANDLE(npu_embedding(NULL, v, v));
    HANDLE(npu_gather(NULL, v, 0, v));
    HANDLE(npu_to(NULL, v, (npu_dtype)0));
    HANDLE(npu_clone(NULL, v));
    HANDLE(npu_dropout(NULL, v, 0));
}

/* Device kinds, tile programs, models. */
static void test_builders_of_tiles_and_models(void)
{
    NPU_ITEM("F15");
    HANDLE(npu_aicf_add(NULL, v, v));
    HANDLE(npu_aicf_relu(NULL, v));
    HANDLE(npu_aicf_gemm(NULL, v, v, NULL));
    HANDLE(npu_aicf_bias_add(NULL, v, v));
    HANDLE(npu_aicf_reduce_sum(NULL, v, 0));
    HANDLE(npu_block_get_block_idx(NULL));
    HANDLE(npu_block_get_block_num(NULL));
    HANDLE(npu_arith_constant(NULL, (npu_dtype)0, number));
    HANDLE(npu_arith_binary(NULL, 0, v, v));
    HANDLE(npu_block_load(NULL, v, NULL, NULL, 0, (npu_space)0));
    HANDLE(npu_block_store(NULL, v, NULL, NULL, 0, v));
    HANDLE(npu_block_create_tile(NULL, (npu_dtype)0, 0, NULL, (npu_space)0));
    HANDLE(npu_block_full(NULL, (npu_dtype)0, 0, NULL, number));
    HANDLE(npu_block_move(NULL, v, (npu_space)0, false));
    HANDLE(npu_block_reshape(NULL, v, NULL, 0));
    HANDLE(npu_block_transpose(NULL, v, 0, 0));
    HANDLE(npu_block_add(NULL, v, v));
    HANDLE(npu_block_sub(NULL, v, v));
    HANDLE(npu_block_mul(NULL, v, v));
    HANDLE(npu_block_div(NULL, v, v));
    HANDLE(npu_block_maximum(NULL, v, v));
    HANDLE(npu_block_minimum(NULL, v, v));
    HANDLE(npu_block_adds(NULL, v, number));
    HANDLE(npu_block_subs(NULL, v, number));
    HANDLE(npu_block_muls(NULL, v, number));
    HANDLE(npu_block_divs(NULL, v, number));
    HANDLE(npu_block_scalar_binary(NULL, 0, v, v));
    HANDLE(npu_block_sqrt(NULL, v));
    HANDLE(npu_block_rsqrt(NULL, v));
    HANDLE(npu_block_exp(NULL, v));
    HANDLE(npu_block_cast(NULL, v, (npu_dtype)0));
    HANDLE(npu_block_sum(NULL, v, 0, false));
    HANDLE(npu_block_max(NULL, v, 0, false));
    HANDLE(npu_block_min(NULL, v, 0, false));
    HANDLE(npu_block_row_expand_add(NULL, v, v));
    HANDLE(npu_block_row_expand_sub(NULL, v, v));
    HANDLE(npu_block_row_expand_mul(NULL, v, v));
    HANDLE(npu_block_row_expand_div(NULL, v, v));
    HANDLE(npu_block_col_expand_add(NULL, v, v));
    HANDLE(npu_block_col_expand_mul(NULL, v, v));
    HANDLE(npu_block_matmul(NULL, v, v));
    HANDLE(npu_block_matmul_acc(NULL, v, v, v));
    HANDLE(npu_block_batch_matmul(NULL, v, v));
    HANDLE(npu_system_bar_all(NULL));
    HANDLE(npu_system_bar_v(NULL));
    HANDLE(npu_system_bar_m(NULL));
    HANDLE(npu_system_sync_src(NULL, (npu_pipe)0, (npu_pipe)0, 0));
    HANDLE(npu_system_sync_dst(NULL, (npu_pipe)0, (npu_pipe)0, 0));
    HANDLE(npu_tile_launch(NULL, NULL, 0, 0, 0, 0));
    HANDLE(npu_model_input(NULL, NULL, spec));
    HANDLE(npu_model_add(NULL, NULL, v));
    HANDLE(npu_model_add_list(NULL, NULL, &v, 1));
    HANDLE(npu_model_add_list(NULL, NULL, NULL, 2));
}

/* Plans, programs, execs. */
static void test_runs(void)
{
    NPU_ITEM("F15");
    STATUS(npu_plan_create(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_plan_create(&made.plan, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_plan_destroy(NULL));
    NO_POINTER(npu_plan_graph(NULL));
    NUMBER(npu_plan_num_steps(NULL), 0);
    NO_POINTER(npu_plan_step(NULL, 0));
    NUMBER(npu_plan_num_backends(NULL), 0);
    NO_POINTER(npu_plan_backend(NULL, 0));
    NUMBER(npu_plan_op_backend(NULL, op, NULL, NULL), -1);
    NUMBER(npu_plan_op_refusal(NULL, op, 0, NULL), NPU_REASON_CLAIMED);
    NUMBER(npu_plan_op_ns(NULL, op, 0), 0);
    NO_POINTER(npu_plan_body(NULL, op, 0));
    STATUS(npu_plan_predict(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NUMBER(npu_op_work(NULL).macs, 0);
    STATUS(npu_rates_calibrate(NULL, NULL, NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_rates_refine(NULL, NULL, 0), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_rates_print(NULL, &text));
    STATUS(npu_plan_advise(NULL, NULL, NULL, 0, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_plan_print_advice(NULL, NULL, 1, &text));
    STATUS(npu_plan_validate(NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_plan_write(NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_plan_memory(NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_plan_value_memory(NULL, v, 0, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_plan_region_memory(NULL, 0, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_EQ(npu_plan_value_region(NULL, v, 0), NPU_NO_INDEX);
    NOTHING(npu_plan_print_slots(NULL, &text));
    STATUS(npu_program_create(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_program_create(&made.program, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_program_destroy(NULL));
    NO_POINTER(npu_program_plan(NULL));
    NO_POINTER(npu_program_op_variant(NULL, op));
    STATUS(npu_program_save(NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_program_load(NULL, NULL, NULL, 0, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_create(NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_create(&made.exec, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_create_simple(NULL, NULL, NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_create_simple(&made.exec, NULL, NULL, 0, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_exec_destroy(NULL));
    NO_POINTER(npu_exec_program(NULL));
    STATUS(npu_exec_set_input(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_input_at(NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_output(NULL, NULL, NULL, 0), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_output_at(NULL, 0, NULL, 0), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_input_tensor(NULL, NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_input_tensor_at(NULL, 0, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_output_tensor(NULL, NULL, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_set_output_tensor_at(NULL, 0, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    NO_POINTER(npu_exec_output_spec(NULL, 0));
    NO_POINTER(npu_exec_unbounded(NULL, 0, NULL, NULL));
    NO_POINTER(npu_exec_output(NULL, 0, NULL));
    NO_POINTER(npu_exec_find_output(NULL, NULL, NULL));
    STATUS(npu_exec_run(NULL), NPU_ERR_INVALID_ARGUMENT);
    NO_POINTER(npu_exec_value_address(NULL, v, 0));
    STATUS(npu_capture_create(NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_capture_create(&made.capture, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_capture_replay(NULL), NPU_ERR_INVALID_ARGUMENT);
    NUMBER(npu_capture_num_actions(NULL), 0);
    NOTHING(npu_capture_destroy(NULL));
    NPU_CHECK(npu_exec_diag(NULL)->status != NPU_OK && npu_exec_diag(NULL)->message[0]);
    STATUS(npu_exec_reset_state(NULL), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_plan_print_json(NULL, &text));
    NOTHING(npu_plan_print(NULL, &text));
    NOTHING(npu_plan_print_ops(NULL, &text));
    NOTHING(npu_plan_print_memory(NULL, &text));
    NOTHING(npu_plan_print_dot(NULL, &text));
    NO_POINTER(npu_exec_profile(NULL, NULL));
    NOTHING(npu_exec_print_profile(NULL, &text));
    NOTHING(npu_exec_print_trace(NULL, &text));
    STATUS(npu_exec_verify(NULL, NULL, 0, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_verify(NULL, NULL, 0, NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_compare(NULL, NULL, NULL, NULL, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_exec_compare(NULL, NULL, NULL, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
}

/* ---- lists and results that are NULL beside a handle that is not ---- */

static void test_lists(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 2 }));
    npu_arg none = npu_arg_ints("dim", NULL, 3), typed = npu_arg_tensors("inputs", NULL, 2), self = npu_arg_tensor("self", x);
    npu_arg sum[2];
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1 };
    npu_optimize_desc optimize_desc = { .num_backends = 1 };
    npu_advice advice = { .backend = 7 };
    npu_pass unknown;
    npu_tensor tensor;
    npu_buffer buffer;
    const char *null_name = NULL;
    const int64_t four[1] = { 4 };
    float numbers[4] = { 1, 2, 3, 4 };
    sum[0] = self;
    sum[1] = none;
    NPU_ITEM("F15");
#define REFUSED(call) \
    do { \
        call; \
        NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT); \
        npu_graph_clear_error(g); \
    } while (0)
    REFUSED(npu_cat(g, NULL, 3, 0));
    REFUSED(npu_stack(g, NULL, 1, 0));
    REFUSED(npu_reshape(g, x, NULL, 3));
    REFUSED(npu_emit(g, NPU_ATEN_RELU, NULL, 3));
    REFUSED(npu_emit_name(g, "aten.sum.dim_IntList", sum, 2));
    REFUSED(npu_emit_typed(g, "my.op", NULL, 0, NULL, 3));
    REFUSED(npu_emit_typed(g, "my.op", NULL, 1, &spec, 1));
    REFUSED(npu_emit_typed(g, "my.op", &typed, 1, &spec, 1));
    REFUSED(npu_emit_struct(g, NPU_ATEN_ADD, NULL, 2, NULL, NULL, 0));
    REFUSED(npu_graph_bind_weights(g, NULL, 3, NULL, NULL));
#undef REFUSED
    STATUS(npu_graph_check_weights(g, NULL, 3, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_extract(&made.graph, g, NULL, 1, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_specialize(&made.graph, g, NULL, NULL, 1, &diag), NPU_ERR_INVALID_ARGUMENT);
    /* lists whose entries are NULL, and counts without a list */
    STATUS(npu_graph_specialize(&made.graph, g, &null_name, four, 1, &diag), NPU_ERR_NOT_FOUND);
    npu_output(g, "y", x);
    plan_desc.num_force_last = 1;
    STATUS(npu_plan_create(&made.plan, g, &plan_desc, &diag), NPU_ERR_INVALID_ARGUMENT);
    plan_desc.force_last = &null_name;
    STATUS(npu_plan_create(&made.plan, g, &plan_desc, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_optimize(&made.graph, g, &optimize_desc, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    npu_text words = npu_text_init(NULL);
    npu_plan_print_advice(&plan_desc, &advice, 1, &words);
    NPU_CHECK_STR(words.data, "?: ? x 0: groups 0 -> 0, moves 0 B instead of 0 B\n");
    npu_text_free(&words);
    STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_RELU, NULL, 1, NULL, 1, 0, NULL, 0), &diag), NPU_ERR_INVALID_ARGUMENT);
    /* dims that reach beyond the buffer */
    NPU_CHECK_STATUS(npu_tensor_set_host(&tensor, &buffer, NPU_F32, 1, four, numbers), NPU_OK);
    tensor.dims[0] = 100000;
    STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_RELU, &tensor, 1, &tensor, 1, 0, NULL, 0), &diag), NPU_ERR_SHAPE);
    tensor.dims[0] = 4;
    tensor.offset = 4;
    STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_RELU, &tensor, 1, &tensor, 1, 0, NULL, 0), &diag), NPU_ERR_SHAPE);
    tensor.offset = 0;
    STATUS(npu_op_call(cpu, NPU_TEST_CALL(NPU_ATEN_RELU, &tensor, 1, &tensor, 1, 0, NULL, 0), &diag), NPU_OK);
    /* a pass without a function is the built-in one of that name */
    STATUS(npu_graph_run_passes(&made.graph, g, npu_conversion_pass("zz"), 1, NULL, &diag), NPU_ERR_NOT_FOUND);
    memset(&unknown, 0, sizeof unknown);
    STATUS(npu_graph_run_passes(&made.graph, g, &unknown, 1, NULL, NULL), NPU_ERR_NOT_FOUND);
    unknown.name = "dead-cod";
    NPU_CHECK_STATUS(npu_graph_run_passes(&made.graph, g, &unknown, 1, NULL, &diag), NPU_ERR_NOT_FOUND);
    NPU_CHECK(strstr(diag.message, "pass dead-cod:") && strstr(diag.message, "did you mean 'dead-code'?"));
    memset(&diag, 0, sizeof diag);
    unknown.name = "dead-code";
    NPU_CHECK_STATUS(npu_graph_run_passes(&made.graph, g, &unknown, 1, NULL, &diag), NPU_OK);
    npu_graph_destroy(made.graph);
    unknown.name = "convert-gawee-to-linalg";
    NPU_CHECK_STATUS(npu_graph_run_passes(&made.graph, g, &unknown, 1, NULL, &diag), NPU_OK);
    npu_graph_destroy(made.graph);
    made.graph = NULL;
    npu_graph_destroy(g);
}

/* ---- is every function here? ---- */

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = (size_t)1 << 22;
    char *data = file ? (char *)malloc(capacity + 1) : NULL;
    if (data) {
        data[fread(data, 1, capacity, file)] = 0;
    }
    if (file) {
        fclose(file);
    }
    return data;
}

/* Whether the arguments have a handle among them. A rewrite is given to a callback that the library calls. */
static bool takes_handle(const char *begin, const char *end)
{
    static const char *const handles[] = { "graph", "plan", "program", "program_cache", "exec", "capture", "model", "layer",
                                           "registry", "text", "schema", "backend", "parallel", "pattern", "pass",
                                           "op_storage" };
    char word[40];
    bool found = false;
    for (size_t i = 0; i < sizeof handles / sizeof handles[0] && !found; i++) {
        const char *at;
        snprintf(word, sizeof word, "npu_%s *", handles[i]);
        at = strstr(begin, word);
        found = at && at < end;
    }
    return found;
}

static uint32_t check_header(const char *path, const char *rows)
{
    char *header = read_file(path), name[80];
    uint32_t count = 0;
    NPU_CHECK(header != NULL);
    for (char *p = header; p && (p = strstr(p, "\nNPU_IR_API ")) != NULL; p++) {
        char *open = strchr(p, '('), *end = open ? strpbrk(open, "{;") : NULL, *word = open;
        while (word && word[-1] != ' ' && word[-1] != '*') {
            word--;
        }
        if (!end || *end == '{' || !takes_handle(open, end)) {
            continue;
        }
        snprintf(name, sizeof name, "(%.*s(", (int)(open - word), word);
        count++;
        if (!strstr(rows, name)) {
            npu_test_ok(0, path, 0, name);
            fprintf(stderr, ": has no row in %s\n", __FILE__);
        }
    }
    free(header);
    return count;
}

static void test_all_are_here(void)
{
    char *rows = read_file("tests/test_null.c");
    NPU_ITEM("F15");
    NPU_CHECK(rows != NULL);
    if (rows) {
        NPU_CHECK(check_header("npu_ir.h", rows) + check_header("npu_ir_backend_ref.h", rows) > 300);
    }
    free(rows);
}

/* ---- one NULL among what is there, and graphs with an error ---- */

#define UNLESS(turn, number, x) ((turn) == (number) ? NULL : (x))

static npu_graph *relu_graph(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_output(g, "y", npu_relu(g, npu_input(g, "x", npu_spec_tensor(NPU_F32, 0, NULL))));
    return g;
}

/* Each pointer of a call is NULL in turn. */
static void test_each_in_turn(void)
{
    static const float one = 1;
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = relu_graph();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan *plan = NULL;
    npu_program_cache *cache = NULL;
    npu_program *program = NULL;
    npu_array array = { .name = "y", .spec = npu_spec_tensor(NPU_F32, 0, NULL), .data = &one }, bare = array;
    npu_difference difference;
    npu_ranking ranking;
    npu_memory memory;
    uint64_t offset, size;
    uint32_t first, until;
    NPU_ITEM("F59");
    bare.data = NULL;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, NULL), NPU_OK);
    for (int turn = 0; turn <= 5; turn++) {
        npu_status cached, asked, compared, ranked, summed;
        npu_plan_desc of = desc;
        of.backends = turn == 5 ? NULL : desc.backends;
        cached = npu_program_cache_acquire(UNLESS(turn, 1, cache), UNLESS(turn, 2, &program), UNLESS(turn, 3, g), UNLESS(turn, 4, &of), NULL);
        asked = npu_plan_value_memory(UNLESS(turn, 1, plan), v, 0, UNLESS(turn, 2, &offset), UNLESS(turn, 3, &size), UNLESS(turn, 4, &first),
                                      UNLESS(turn, 5, &until));
        compared = npu_array_compare(UNLESS(turn, 1, &array), UNLESS(turn, 2, &array), NULL, UNLESS(turn, 3, &difference));
        ranked = npu_array_compare_ranking(UNLESS(turn, 1, &array), UNLESS(turn, 2, &array), 1, UNLESS(turn, 3, &ranking));
        summed = npu_plan_memory(UNLESS(turn, 1, plan), 0, UNLESS(turn, 2, &memory));
        NPU_CHECK_THAT((cached == NPU_OK) == (turn == 0), "turn %d: %s", turn, npu_status_name(cached));
        NPU_CHECK_THAT((asked == NPU_OK) == (turn == 0), "turn %d: %s", turn, npu_status_name(asked));
        NPU_CHECK_THAT((compared == NPU_OK) == (turn == 0 || turn > 3), "turn %d: %s", turn, npu_status_name(compared));
        NPU_CHECK_THAT((ranked == NPU_OK) == (turn == 0 || turn > 3), "turn %d: %s", turn, npu_status_name(ranked));
        NPU_CHECK_THAT((summed == NPU_OK) == (turn == 0 || turn > 2), "turn %d: %s", turn, npu_status_name(summed));
        if (cached == NPU_OK) {
            npu_program_cache_release(cache, program);
        }
    }
    NPU_CHECK(npu_array_compare(&bare, &array, NULL, &difference) && npu_array_compare(&array, &bare, NULL, &difference));
    NPU_CHECK(npu_array_compare_ranking(&bare, &array, 1, &ranking) && npu_array_compare_ranking(&array, &bare, 1, &ranking));
    NPU_CHECK(npu_array_compare_ranking(&array, &array, 0, &ranking) && npu_array_compare_ranking(&array, &array, NPU_MAX_TOP + 1, &ranking));
    npu_program_cache_destroy(cache);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
}

/* What is NULL beside objects that are there: texts to print to, results, what is read. */
static void test_texts_and_results(void)
{
    static const int64_t two[1] = { 2 };
    npu_graph *g = relu_graph();
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan *plan = NULL;
    npu_text nothing = npu_text_init(NULL);
    uint32_t n, size;
    int64_t dims[NPU_MAX_RANK];
    NPU_ITEM("F15");
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    STATUS(npu_graph_print(g, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_op_print_keywords(g, (npu_op){ 1 }, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_short(g, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_dot(g, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_mermaid(g, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_json(g, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_stats(g, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_print_pie(g, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_count_ops(g, NULL, 1, &n), NPU_OK);
    NOTHING(npu_plan_print_dot(plan, NULL));
    NOTHING(npu_text_append(&nothing, NULL, 1));
    NPU_CHECK_STATUS(nothing.status, NPU_ERR_INVALID_ARGUMENT);
    NUMBER(npu_size_add(1, SIZE_MAX, NULL), false);
    NUMBER(npu_size_mul(2, 2, NULL), true);
    NUMBER(npu_dtype_parse(NULL), NPU_NONE);
    STATUS(npu_spec_len(&spec, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_spec_size(&spec, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_dims_broadcast(NULL, 1, two, 1, dims, &n, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_dims_broadcast(two, 1, NULL, 1, dims, &n, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_dims_broadcast(two, 1, two, 1, NULL, &n, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_dims_broadcast(two, 1, two, 1, dims, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_affine_map_parse(NULL, "(d0) -> (d0)", 12, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_affine_map_parse(&map, NULL, 12, &diag), NPU_ERR_INVALID_ARGUMENT);
    NOTHING(npu_affine_map_print(&text, NULL));
    NUMBER(npu_affine_expr_dim(NULL), -1);
    STATUS(npu_reassociation_parse(NULL, &n, 1, "[[0]]", 5, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_reassociation_parse(&size, NULL, 1, "[[0]]", 5, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_reassociation_parse(&size, &n, 1, NULL, 5, &diag), NPU_ERR_INVALID_ARGUMENT);
    npu_text_free(&nothing);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
}

/* The same of an op and what is said of it: its definition, its blob for a device, patterns. */
static void test_ops_and_results(void)
{
    static const int64_t two[1] = { 2 };
    const npu_abi *abi = npu_abi_aicf();
    npu_graph *g = relu_graph();
    const npu_op_def *def = npu_op_definition(g, (npu_op){ 1 });
    npu_op_storage storage = { 0 };
    npu_op_info info;
    npu_tensor tensor;
    npu_buffer buffer;
    npu_conversion_target target = { 0 };
    npu_pattern idle = { .name = "idle", .root = NPU_AICF_RELU };
    uint8_t bytes[8] = { 0 };
    uint32_t kind, schema, size;
    NPU_ITEM("F15");
    NUMBER(npu_schema_attrs_layout(def->schema, NULL, 8, NULL), 0);
    NO_POINTER(npu_op_def_attribute(NULL, "pipe"));
    NO_POINTER(npu_op_def_attribute(def, NULL));
    NPU_CHECK(npu_op_tables(NULL) && npu_ref_kernels(NULL));
    STATUS(npu_op_describe(g, (npu_op){ 1 }, NULL, &storage), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ 1 }, &info, &storage), NPU_OK);
    NO_POINTER(npu_op_arg(NULL, "x"));
    NO_POINTER(npu_op_arg(&info, NULL));
    NO_POINTER(npu_op_str_at(&info, "x", 0, NULL));
    NUMBER(npu_op_str_is(&info, "x", NULL), false);
    NUMBER(npu_op_may_alias(NULL, 0, 0), false);
    STATUS(npu_abi_encode(NULL, &info, &kind, &schema, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_encode(abi, NULL, &kind, &schema, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_encode(abi, &info, NULL, &schema, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_encode(abi, &info, &kind, NULL, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_encode(abi, &info, &kind, &schema, NULL, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_encode(abi, &info, &kind, &schema, bytes, 8, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_decode(NULL, def, 0, bytes, 0, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_decode(abi, NULL, 0, bytes, 0, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_decode(abi, def, 0, NULL, 4, bytes, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_decode(abi, def, 0, bytes, 0, NULL, 8, &size), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_abi_decode(abi, def, 0, bytes, 0, bytes, 8, NULL), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_tensor_set_host(NULL, &buffer, NPU_F32, 1, two, bytes), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_tensor_set_host(&tensor, NULL, NPU_F32, 1, two, bytes), NPU_ERR_INVALID_ARGUMENT);
    NUMBER(npu_conversion_target_legality(NULL, g, (npu_op){ 1 }), NPU_LEGALITY_UNKNOWN);
    STATUS(npu_graph_convert(&made.graph, g, NULL, NULL, 0, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    STATUS(npu_graph_convert(&made.graph, g, &target, &idle, 1, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&made.graph, g, &idle, 1, NULL, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STR(diag.message, "patterns: 'idle' (number 0) has no rewrite");
    memset(&diag, 0, sizeof diag);
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* Whatever would be made of a graph with an error is refused, and nothing is made. */
static void test_failed_graphs(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = relu_graph();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_tile_desc tiles = { 0 };
    npu_program_cache *cache = NULL;
    npu_op first = { 1 };
    NPU_ITEM("F59");
    NPU_CHECK_STATUS(npu_program_cache_create(&cache, NULL), NPU_OK);
    npu_returns(g, NULL, 1);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_plan_create(&made.plan, g, &desc, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_program_cache_acquire(cache, &made.program, g, &desc, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_graph_specialize(&made.graph, g, NULL, NULL, 0, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_graph_extract(&made.graph, g, &first, 1, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_graph_rewrite(&made.graph, g, NULL, NULL, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_graph_optimize(&made.graph, g, NULL, NULL, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_tile_sync(&made.graph, g, &tiles, NULL), NPU_ERR_GRAPH);
    NPU_CHECK_STATUS(npu_return(g, &v, 1), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(!made.graph);
    npu_program_cache_destroy(cache);
    npu_graph_destroy(g);
}

int main(void)
{
    text = npu_text_init(NULL);
    spec = npu_spec_tensor(NPU_F32, 0, NULL);
    v.id = op.id = 1;
    NPU_RUN(test_objects);
    NPU_RUN(test_graphs);
    NPU_RUN(test_graph_forms);
    NPU_RUN(test_builders);
    NPU_RUN(test_builders_of_matrices_and_activations);
    NPU_RUN(test_builders_of_functions);
    NPU_RUN(test_builders_of_norms_and_elements);
    NPU_RUN(test_builders_of_shapes_and_reductions);
    NPU_RUN(test_builders_of_tiles_and_models);
    NPU_RUN(test_runs);
    NPU_RUN(test_lists);
    NPU_RUN(test_all_are_here);
    NPU_RUN(test_each_in_turn);
    NPU_RUN(test_texts_and_results);
    NPU_RUN(test_ops_and_results);
    NPU_RUN(test_failed_graphs);
    npu_text_free(&text);
    return npu_test_done();
}
