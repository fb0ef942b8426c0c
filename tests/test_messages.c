/* What a user reads when something goes wrong, or takes its time: messages, NULL handles, the commands of the Makefile. */
#include "npu_test.h"
#include "../npu_ir_backend_ref.h"
#include <math.h>

/* Runs a command of the shell, its output in `out`; false where there is no shell, or it fails. */
static bool run(const char *command, char *out, size_t size)
{
    char line[512], path[256];
    const char *build = getenv("BUILD");
    FILE *file;
    size_t n;
    snprintf(path, sizeof path, "%s/messages.out", build ? build : "build");
    snprintf(line, sizeof line, "%s > %s 2> /dev/null", command, path);
    if (system(line) != 0 || (file = fopen(path, "rb")) == NULL) {
        return false;
    }
    n = fread(out, 1, size - 1, file);
    out[n] = 0;
    fclose(file);
    return true;
}

/* make says what takes long before it begins, and in a line each; a result is shown before the next one is there. */
static void test_commands(void)
{
    static char out[1 << 16];
    char *slow, *quick;
    NPU_ITEM("F43");
    if (!run("make -n -B run", out, sizeof out)) {
        NPU_SKIP("no make here");
        return;
    }
    NPU_CHECK(strstr(out, "echo \"CC examples/02_digits.c (with an implementation: up to half a minute"));
    NPU_CHECK(run("make -n -B V=1 run", out, sizeof out) && !strstr(out, "echo \"CC"));
    NPU_CHECK(run("make -n -B OP=conv ops", out, sizeof out) && strstr(out, "/ops -o \"conv\""));
    NPU_CHECK(run("env BUILD=${BUILD:-build}/messages RUN= JOBS=2 sh -c 'mkdir -p $BUILD && sh tests/run.sh "
                  "\"sleep 1\" \"echo 3 passed, 0 failed, 1 skipped\"; :'", out, sizeof out));
    slow = strstr(out, "FAIL sleep 1 ("); /* says nothing */
    quick = strstr(out, "ok   echo 3 passed");
    NPU_CHECK(quick && slow && quick < slow);
    NPU_CHECK(strstr(out, "\n3 passed, 1 failed, 1 skipped\n"));
}

/* A compiler of another make is named before any of its headers can fail. Files without the implementation are quiet. */
static void test_compilers(void)
{
    static char out[1 << 16];
    NPU_ITEM("F41");
    NPU_ITEM("F42");
    if (!run("gcc --version", out, sizeof out)) {
        NPU_SKIP("no gcc here");
        return;
    }
    run("gcc -U__GNUC__ -D_MSC_VER=1930 -fsyntax-only tests/npu_impl.c 2>&1 | grep -m 1 error", out, sizeof out);
    NPU_CHECK(strstr(out, "MSVC cannot compile the implementation"));
    run("gcc -U__GNUC__ -fsyntax-only tests/npu_impl.c 2>&1 | grep -m 1 error", out, sizeof out);
    NPU_CHECK(strstr(out, "this compiler cannot compile the implementation"));
    NPU_CHECK(run("gcc -DNPU_IR_STATIC -std=c99 -Wall -Wextra -Wconversion -Wsign-conversion -fsyntax-only "
                  "tests/compile/types_only.c 2>&1", out, sizeof out));
    NPU_CHECK_STR(out, "");
}

/* ---- the usual mistakes ---- */

/* What a mistake is made with, and where its diagnostic is left. */
typedef struct setup {
    npu_graph *g;
    npu_value x, image, wide, none;
    const npu_backend *cpu;
    npu_exec *exec;
    npu_diag diag;
} setup;

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }
#define SPEC(dtype, ...) npu_spec_tensor(dtype, sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), DIMS(__VA_ARGS__))
#define HERE NPU_AT(s->g)

static npu_status of_graph(setup *s)
{
    s->diag = *npu_graph_diag(s->g);
    return npu_graph_status(s->g);
}

static npu_status of_exec(setup *s, npu_status status)
{
    s->diag = *npu_exec_diag(s->exec);
    return status;
}

static npu_status make(setup *s) { return npu_exec_create_simple(&s->exec, s->g, &s->cpu, 1, &s->diag); }

static npu_value param(setup *s, const char *name, npu_spec spec) { return npu_param(s->g, name, spec); }

/* relu of x f32[8,32], ready to run. */
static npu_status ready(setup *s)
{
    npu_output(s->g, "y", npu_relu(s->g, s->x));
    return make(s);
}

static float data[1024];

/* building */
static npu_status linear_shape(setup *s)
{
    npu_linear(HERE, s->x, param(s, "w2", SPEC(NPU_F32, 10, 31)), s->none);
    return of_graph(s);
}

static npu_status conv_channels(setup *s)
{
    npu_conv2d(HERE, s->image, param(s, "k", SPEC(NPU_F32, 8, 4, 3, 3)), s->none, NULL);
    return of_graph(s);
}

static npu_status conv_groups(setup *s)
{
    npu_conv2d(HERE, s->image, param(s, "k", SPEC(NPU_F32, 8, 3, 3, 3)), s->none, &(npu_conv2d_attrs){ .groups = 2 });
    return of_graph(s);
}

static npu_status conv_rank(setup *s)
{
    npu_conv2d(HERE, s->x, param(s, "k", SPEC(NPU_F32, 8, 3, 3, 3)), s->none, NULL);
    return of_graph(s);
}

static npu_status matmul_shape(setup *s)
{
    npu_matmul(HERE, s->x, param(s, "b", SPEC(NPU_F32, 31, 10)));
    return of_graph(s);
}

static npu_status add_broadcast(setup *s)
{
    npu_add(HERE, s->x, npu_input(s->g, "q", SPEC(NPU_F32, 8, 5)));
    return of_graph(s);
}

static npu_status linear_dtype(setup *s)
{
    npu_linear(HERE, s->x, param(s, "half", SPEC(NPU_F16, 10, 32)), s->none);
    return of_graph(s);
}

static npu_status softmax_axis(setup *s)
{
    npu_softmax(HERE, s->x, 2);
    return of_graph(s);
}

static npu_status embedding_indices(setup *s)
{
    npu_embedding(HERE, param(s, "table", SPEC(NPU_F32, 100, 16)), s->x);
    return of_graph(s);
}

static npu_status reshape_count(setup *s)
{
    npu_reshape(HERE, s->x, DIMS(5, 50), 2);
    return of_graph(s);
}

static npu_status reshape_rest(setup *s)
{
    npu_reshape(HERE, s->x, DIMS(5, -1), 2);
    return of_graph(s);
}

static npu_status cat_dims(setup *s)
{
    npu_cat(HERE, (const npu_value[]){ s->x, s->wide }, 2, 0);
    return of_graph(s);
}

static npu_status split_size(setup *s)
{
    npu_split(HERE, s->x, -1, 0);
    return of_graph(s);
}

static npu_status norm_shape(setup *s)
{
    npu_layer_norm(HERE, s->x, param(s, "gain", SPEC(NPU_F32, 31)), s->none, 1, 1e-5);
    return of_graph(s);
}

static npu_status operand_missing(setup *s)
{
    npu_arg x = npu_arg_tensor("input", s->x);
    npu_emit_name(HERE, "aten.linear.default", &x, 1);
    return of_graph(s);
}

static npu_status operand_is_none(setup *s)
{
    npu_relu(HERE, s->none);
    return of_graph(s);
}

static npu_status too_many(setup *s)
{
    npu_arg args[3] = { npu_arg_tensor(NULL, s->x), npu_arg_tensor(NULL, s->x), npu_arg_tensor(NULL, s->x) };
    npu_emit_name(HERE, "aten.relu.default", args, 3);
    return of_graph(s);
}

static npu_status op_typo(setup *s)
{
    npu_arg x = npu_arg_tensor("self", s->x);
    npu_emit_name(HERE, "aten.leaky_rleu.default", &x, 1);
    return of_graph(s);
}

static npu_status op_typo_bare(setup *s)
{
    npu_arg x = npu_arg_tensor("self", s->x);
    npu_emit_name(HERE, "sofmax", &x, 1);
    return of_graph(s);
}

static npu_status op_typo_short(setup *s)
{
    npu_arg x = npu_arg_tensor("self", s->x);
    npu_emit_name(HERE, "aten.sofmax", &x, 1);
    return of_graph(s);
}

static npu_status attribute_typo(setup *s)
{
    npu_arg args[2] = { npu_arg_tensor("self", s->x), npu_arg_float("negative_slop", 0.1) };
    npu_emit_name(HERE, "aten.leaky_relu.default", args, 2);
    return of_graph(s);
}

static npu_status attribute_missing(setup *s)
{
    npu_max_pool2d(HERE, s->image, NULL);
    return of_graph(s);
}

static npu_status attribute_type(setup *s)
{
    npu_arg args[2] = { npu_arg_tensor("self", s->x), npu_arg_str("dim", "rows") };
    npu_emit_name(HERE, "aten.softmax.int", args, 2);
    return of_graph(s);
}

static npu_status emit(setup *s, const char *op, const npu_arg *args, uint32_t num)
{
    npu_emit_name(HERE, op, args, num);
    return of_graph(s);
}

static npu_status attribute_count(setup *s)
{
    npu_arg args[3] = { npu_arg_tensor("input", s->image), npu_arg_tensor("weight", s->image),
                        npu_arg_ints("stride", DIMS(1, 1, 1), 3) };
    return emit(s, "aten.conv2d.default", args, 3);
}

static npu_status attribute_word(setup *s)
{
    npu_gelu(HERE, s->x, &(npu_gelu_attrs){ "tahn" });
    return of_graph(s);
}

static npu_status attribute_dtype(setup *s)
{
    npu_to(HERE, s->x, (npu_dtype)99);
    return of_graph(s);
}

static npu_status overload_typo(setup *s)
{
    npu_arg args[2] = { npu_arg_tensor(NULL, s->x), npu_arg_tensor(NULL, s->x) };
    return emit(s, "aten.add.default", args, 2);
}

static npu_status module_name(setup *s)
{
    npu_arg x = npu_arg_tensor(NULL, s->x);
    return emit(s, "torch.nn.functional.relu", &x, 1);
}

static npu_status einsum(setup *s, const char *equation)
{
    npu_einsum(HERE, equation, (const npu_value[]){ s->x, s->x }, 2);
    return of_graph(s);
}

static npu_status einsum_dims(setup *s) { return einsum(s, "ij,jk->ik"); }
static npu_status einsum_label(setup *s) { return einsum(s, "ij,kj->iz"); }
static npu_status einsum_twice(setup *s) { return einsum(s, "ij,kj->ii"); }

static npu_status lstm_gates(setup *s)
{
    npu_value h = npu_input(s->g, "h0", SPEC(NPU_F32, 1, 2, 7)), x = npu_input(s->g, "seq", SPEC(NPU_F32, 5, 2, 6));
    npu_value weights[2] = { param(s, "w_ih", SPEC(NPU_F32, 32, 6)), param(s, "w_hh", SPEC(NPU_F32, 32, 8)) };
    npu_lstm(HERE, x, h, h, weights, 2, &(npu_rnn_attrs){ .num_layers = 1 });
    return of_graph(s);
}

static npu_status shuffle_channels(setup *s)
{
    npu_pixel_shuffle(HERE, s->image, 2);
    return of_graph(s);
}

static npu_status results_given(setup *s)
{
    npu_arg x = npu_arg_tensor(NULL, s->x);
    npu_spec spec = SPEC(NPU_F32, 8, 31);
    npu_emit_typed(HERE, "aten.relu.default", &x, 1, &spec, 1);
    return of_graph(s);
}

static npu_value cache(setup *s) { return npu_state(s->g, "cache", SPEC(NPU_F32, 4, 32)); }

static npu_status update_shape(setup *s)
{
    npu_value y = npu_relu(s->g, s->x), state = cache(s);
    npu_value_set_name(s->g, y, "y");
    npu_update(HERE, state, y);
    return of_graph(s);
}

static npu_status update_input(setup *s)
{
    npu_update(HERE, s->x, npu_relu(s->g, s->x));
    return of_graph(s);
}

static npu_status update_nothing(setup *s)
{
    npu_update(HERE, cache(s), s->none);
    return of_graph(s);
}

static npu_status named_twice(setup *s)
{
    npu_value_set_name(HERE, s->x, "image");
    return of_graph(s);
}

static npu_status layer_heads(setup *s)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_attention a = npu_layer_attention_init("att", 8, 3);
    npu_model_add(m, &a.base, npu_model_input(m, "in", SPEC(NPU_F32, 2, 4, 8)));
    s->diag = *npu_graph_diag(npu_model_graph(m));
    npu_model_destroy(m);
    return s->diag.status;
}

static npu_status text_op(setup *s)
{
    static const char text[] = "npu_ir 1\ngraph main\ninput x : f32[2]\n%2 = aten.rleu.default(self=x)\noutput y = %2\n";
    npu_graph *g = NULL;
    return npu_graph_parse(&g, text, sizeof text - 1, NULL, &s->diag);
}

static npu_status text_value(setup *s)
{
    static const char text[] = "npu_ir 1\ngraph main\ninput picture : f32[2]\ny = aten.relu.default(pictur)\noutput y = y\n";
    npu_graph *g = NULL;
    return npu_graph_parse(&g, text, sizeof text - 1, NULL, &s->diag);
}

static npu_status json_broken(setup *s)
{
    npu_graph *g = NULL;
    return npu_graph_parse_json(&g, "{\"nodes\": }", 12, NULL, &s->diag);
}

static npu_status json_dtype(setup *s)
{
    static const char text[] = "{\"graph_inputs\": [{\"name\": \"x\", \"shape\": [2], \"dtype\": \"flaot32\"}], "
                               "\"graph_outputs\": [], \"weights\": [], \"nodes\": []}";
    npu_graph *g = NULL;
    return npu_graph_parse_json(&g, text, sizeof text - 1, NULL, &s->diag);
}

static npu_status plan_written_by_none(setup *s)
{
    npu_plan_write_desc desc = { 0 };
    npu_text file = npu_text_init(NULL);
    npu_status status = ready(s);
    status = status ? NPU_OK : npu_plan_write(npu_program_plan(npu_exec_program(s->exec)), &desc, &file, &s->diag);
    npu_text_free(&file);
    return status;
}

static npu_status attribute_nan(setup *s)
{
    npu_dropout(HERE, s->x, (double)NAN);
    return of_graph(s);
}

static npu_status foreign_value(setup *s)
{
    npu_graph *other = npu_graph_create(NULL);
    npu_value v = npu_input(other, "a", SPEC(NPU_F32, 1));
    for (int i = 0; i < 20; i++) {
        v = npu_relu(other, v);
    }
    npu_relu(HERE, v);
    npu_graph_destroy(other);
    return of_graph(s);
}

/* The first failure is the one that is kept, whatever is built on it. */
static npu_status failed_handle(setup *s)
{
    npu_value y = npu_linear(HERE, s->x, param(s, "w2", SPEC(NPU_F32, 10, 31)), s->none);
    npu_output(s->g, "y", npu_softmax(NPU_AT(s->g), npu_relu(NPU_AT(s->g), y), -1));
    return of_graph(s);
}

static npu_status duplicate_name(setup *s)
{
    npu_input(HERE, "x", SPEC(NPU_F32, 1));
    return of_graph(s);
}

static npu_status param_twice(setup *s)
{
    param(s, "w", SPEC(NPU_F32, 10, 32));
    npu_param(HERE, "w", SPEC(NPU_F32, 10, 31));
    return of_graph(s);
}

static npu_status negative_size(setup *s)
{
    npu_input(HERE, "n", SPEC(NPU_F32, 4, -5));
    return of_graph(s);
}

static npu_status constant_without_data(setup *s)
{
    npu_constant(HERE, "c", SPEC(NPU_F32, 4), NULL);
    return of_graph(s);
}

static npu_status layer_features(setup *s)
{
    npu_model *m = npu_model_create(NULL);
    npu_layer_linear fc = npu_layer_linear_init("fc", 7, 3);
    npu_model_add(m, &fc.base, npu_model_input(m, "in", SPEC(NPU_F32, 2, 8)));
    s->diag = *npu_graph_diag(npu_model_graph(m));
    npu_model_destroy(m);
    return s->diag.status;
}

/* weights */
static npu_status weight_typo(setup *s)
{
    param(s, "fc.weight", SPEC(NPU_F32, 4));
    npu_graph_bind_param(HERE, "fc.wieght", data, 16);
    return of_graph(s);
}

static npu_status weight_size(setup *s)
{
    param(s, "fc.weight", SPEC(NPU_F32, 4, 8));
    npu_graph_bind_param(HERE, "fc.weight", data, 64);
    return of_graph(s);
}

static npu_status weights_missing(setup *s)
{
    npu_value y = npu_linear(s->g, s->x, param(s, "w1", SPEC(NPU_F32, 16, 32)), param(s, "b1", SPEC(NPU_F32, 16)));
    npu_output(s->g, "y", npu_linear(s->g, y, param(s, "w2", SPEC(NPU_F32, 4, 16)), s->none));
    npu_graph_bind_param(s->g, "w1", data, 16 * 32 * 4);
    return make(s);
}

static npu_status checkpoint(setup *s, npu_dtype dtype, uint32_t count)
{
    npu_array arrays[2];
    npu_output(s->g, "y", npu_add(s->g, s->x, param(s, "bias", SPEC(NPU_F32, 32))));
    for (int i = 0; i < 2; i++) {
        arrays[i].name = "bias";
        arrays[i].spec = dtype == NPU_F32 && count == 1 ? SPEC(NPU_F32, 31) : SPEC(dtype, 32);
        arrays[i].data = data;
    }
    npu_graph_bind_weights(HERE, arrays, count, NULL, NULL);
    return of_graph(s);
}

static npu_status weight_shape(setup *s) { return checkpoint(s, NPU_F32, 1); }
static npu_status weight_dtype(setup *s) { return checkpoint(s, NPU_F16, 1); }
static npu_status weight_twice(setup *s) { return checkpoint(s, NPU_F32, 2); }

/* planning */
static npu_status no_outputs(setup *s)
{
    npu_relu(HERE, s->x);
    return make(s);
}

static npu_status output_of_failed(setup *s)
{
    npu_output(HERE, "y", s->none);
    return of_graph(s);
}

static npu_status plan_of_failed(setup *s)
{
    linear_shape(s);
    memset(&s->diag, 0, sizeof s->diag);
    return make(s);
}

static npu_status rewrite_of_failed(setup *s)
{
    npu_graph *out = NULL;
    linear_shape(s);
    memset(&s->diag, 0, sizeof s->diag);
    return npu_graph_optimize(&out, s->g, NULL, NULL, &s->diag);
}

static npu_status no_backends(setup *s)
{
    npu_output(s->g, "y", npu_relu(s->g, s->x));
    return npu_exec_create_simple(&s->exec, s->g, &s->cpu, 0, &s->diag);
}

static npu_status null_backend(setup *s)
{
    const npu_backend *both[2] = { s->cpu, NULL };
    npu_output(s->g, "y", npu_relu(s->g, s->x));
    return npu_exec_create_simple(&s->exec, s->g, both, 2, &s->diag);
}

static npu_status backend_without_slot(setup *s)
{
    npu_backend b = *s->cpu;
    const npu_backend *backend = &b;
    b.submit = NULL;
    npu_output(s->g, "y", npu_relu(s->g, s->x));
    return npu_exec_create_simple(&s->exec, s->g, &backend, 1, &s->diag);
}

static npu_status nobody_takes(setup *s)
{
    npu_arg a = npu_arg_tensor("x", s->x);
    npu_spec spec = SPEC(NPU_F32, 8, 32);
    npu_output(s->g, "y", npu_op_result(s->g, npu_emit_typed(HERE, "acme.magic", &a, 1, &spec, 1), 0));
    return make(s);
}

static npu_status json_op(setup *s)
{
#define TENSOR(name) "{\"name\": \"" name "\", \"shape\": [2], \"dtype\": \"float32\"}"
    static const char *const text =
        "{\"graph_inputs\": [" TENSOR("a") "], \"weights\": [], \"graph_outputs\": [" TENSOR("b") "],\n"
        " \"nodes\": [{\"name\": \"b\", \"op_type\": \"my_lib.thing\", \"attrs\": {},\n"
        "            \"inputs\": [" TENSOR("a") "], \"outputs\": [" TENSOR("b") "]}]}";
#undef TENSOR
    npu_graph *g = NULL;
    npu_status status = npu_graph_parse_json(&g, text, strlen(text), NULL, &s->diag);
    status = status ? status : npu_exec_create_simple(&s->exec, g, &s->cpu, 1, &s->diag);
    npu_graph_destroy(g);
    return status;
}

static npu_status json_attribute(setup *s)
{
#define TENSOR(name) "{\"name\": \"" name "\", \"shape\": [2], \"dtype\": \"float32\"}"
    static const char text[] =
        "{\"graph_inputs\": [" TENSOR("a") "], \"weights\": [], \"graph_outputs\": [" TENSOR("b") "],\n"
        " \"nodes\": [{\"name\": \"b\", \"op_type\": \"aten.leaky_relu.default\", \"attrs\": {\"negative_slop\": 0.5},\n"
        "            \"inputs\": [" TENSOR("a") "], \"outputs\": [" TENSOR("b") "]}]}";
#undef TENSOR
    npu_graph *g = NULL;
    return npu_graph_parse_json(&g, text, sizeof text - 1, NULL, &s->diag);
}

/* Of an input, by its producer and by its name alone. */
static npu_status read_json_of(setup *s, const char *producer)
{
#define TENSOR(name) "{\"name\": \"" name "\", \"shape\": [2], \"dtype\": \"float32\""
    char text[600];
    npu_graph *g = NULL;
    int len = snprintf(text, sizeof text,
                       "{\"graph_inputs\": [" TENSOR("picture") "}], \"weights\": [], \"graph_outputs\": [" TENSOR("b") "}],\n"
                       " \"nodes\": [{\"name\": \"b\", \"op_type\": \"aten.relu.default\", \"attrs\": {},\n"
                       "            \"inputs\": [" TENSOR("pitcure") "%s}], \"outputs\": [" TENSOR("b") "}]}]}",
                       producer);
#undef TENSOR
    return npu_graph_parse_json(&g, text, (size_t)len, NULL, &s->diag);
}
static npu_status json_producer(setup *s) { return read_json_of(s, ", \"producer_node\": \"pitcure\""); }
static npu_status json_name(setup *s) { return read_json_of(s, ""); }

static npu_status symbol_typo(setup *s)
{
    static const char text[] = "npu_ir 1\ngraph main\nsymbol batch 1 4\ninput x : f32[batch]\n"
                               "y = aten.relu.default(x)\noutput y = y\n";
    const char *name = "bacth";
    const int64_t size = 2;
    npu_graph *g = NULL, *out = NULL;
    npu_status status = npu_graph_parse(&g, text, sizeof text - 1, NULL, &s->diag);
    status = status ? status : npu_graph_specialize(&out, g, &name, &size, 1, &s->diag);
    npu_graph_destroy(g);
    return status;
}

static npu_status missing_file(setup *s)
{
    npu_text text = npu_text_init(NULL);
    npu_status status = npu_text_load(&text, "tests/there_is_none.json");
    (void)s;
    npu_text_free(&text);
    return status;
}

static npu_status unknown_pass(setup *s)
{
    npu_graph *out = NULL;
    npu_pass pass = { .name = "fold-constant" };
    return npu_graph_run_passes(&out, s->g, &pass, 1, NULL, &s->diag);
}

static npu_status too_large(setup *s)
{
    int64_t huge = (int64_t)1 << 40;
    npu_relu(HERE, npu_input(s->g, "big", SPEC(NPU_F32, huge, huge)));
    return of_graph(s);
}

/* running */
static void bind_all(setup *s)
{
    npu_test_input(s->exec, "x", data, 1024);
    npu_test_input(s->exec, "image", data, 768);
    npu_test_input(s->exec, "wide", data, 992);
}

static npu_status unbound(setup *s) { return ready(s) ? NPU_OK : of_exec(s, npu_exec_run(s->exec)); }

static npu_status bind_narrow(setup *s)
{
    npu_array narrow = { "x", SPEC(NPU_F32, 8, 31), data };
    return of_exec(s, npu_exec_set_input(s->exec, &narrow));
}

static npu_status input_dims(setup *s) { return ready(s) ? NPU_OK : bind_narrow(s); }

static npu_status input_typo(setup *s) { return ready(s) ? NPU_OK : of_exec(s, npu_test_input(s->exec, "xx", data, 1024)); }

static npu_status output_small(setup *s) { return ready(s) ? NPU_OK : of_exec(s, npu_exec_set_output(s->exec, "y", data, 1000)); }

static npu_status input_null(setup *s) { return ready(s) ? NPU_OK : of_exec(s, npu_test_input(s->exec, "x", NULL, 1024)); }

/* Refused, and not looked at: the run says it. */
static npu_status refused_input(setup *s)
{
    npu_status status = ready(s);
    bind_narrow(s);
    npu_exec_set_output(s->exec, "y", data, 1024);
    return status ? NPU_OK : of_exec(s, npu_exec_run(s->exec));
}

static npu_status refused_name(setup *s)
{
    npu_status status = ready(s);
    npu_test_input(s->exec, "image0", data, 1024);
    return status ? NPU_OK : of_exec(s, npu_exec_run(s->exec));
}

static npu_status refused_output(setup *s)
{
    npu_status status = ready(s);
    bind_all(s);
    npu_exec_set_output(s->exec, "y", data, 1000);
    return status ? NPU_OK : of_exec(s, npu_exec_run(s->exec));
}

static npu_status overlap(setup *s)
{
    npu_status status = ready(s);
    npu_test_input(s->exec, "x", data, 1024);
    npu_exec_set_output(s->exec, "y", data + 1, 1024);
    return status ? NPU_OK : of_exec(s, npu_exec_run(s->exec));
}

static void symbolic(setup *s)
{
    int64_t n = npu_graph_add_symbol(s->g, "N", 1, 8);
    npu_value a = npu_input(s->g, "a", SPEC(NPU_F32, n, 4)), b = npu_input(s->g, "b", SPEC(NPU_F32, n, 4));
    npu_output(s->g, "sum", npu_add(s->g, a, b));
}

static npu_status symbol_bounds(setup *s)
{
    symbolic(s);
    return make(s) ? NPU_OK : of_exec(s, npu_test_input_dims(s->exec, "a", 2, DIMS(9, 4), data));
}

static npu_status symbols_disagree(setup *s)
{
    npu_status status;
    symbolic(s);
    status = make(s);
    bind_all(s);
    npu_test_input_dims(s->exec, "a", 2, DIMS(2, 4), data);
    npu_test_input_dims(s->exec, "b", 2, DIMS(3, 4), data);
    return status ? NPU_OK : of_exec(s, npu_exec_run(s->exec));
}

static npu_status symbolic_as_fixed(setup *s)
{
    symbolic(s);
    return make(s) ? NPU_OK : of_exec(s, npu_exec_set_input(s->exec, &(npu_array){ "a", *npu_value_spec(s->g, npu_graph_find(s->g, "a")), data }));
}

/* A plan, or a planned model, of a text. */
static npu_status plan_text(setup *s, const char *text, bool write)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_graph *g = NULL;
    npu_plan *plan = NULL;
    npu_text file = npu_text_init(NULL);
    npu_status status = npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &s->diag);
    npu_plan_desc of_cpu = { .backends = &s->cpu, .num_backends = 1 };
    status = status ? status : npu_plan_create(&plan, g, &of_cpu, &s->diag);
    if (status == NPU_OK && write) {
        npu_plan_write_desc desc = { .libraries = &library, .num_libraries = 1 };
        status = npu_plan_write(plan, &desc, &file, &s->diag);
    }
    npu_text_free(&file);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return status;
}

#if SIZE_MAX > UINT32_MAX /* elsewhere no value is so large that some of them do not fit 64 bits */
static npu_status memory_too_large(setup *s)
{
    return plan_text(s, "npu_ir 1\ngraph main\nx = aten.ones.default(size=[9223372036854775807], dtype=u8)\n"
                        "y = aten.neg.default(x)\nz = aten.neg.default(y)\noutput z = z\n", false);
}
#endif

static npu_status planned_dynamic(setup *s)
{
    return plan_text(s, "npu_ir 1\ngraph main\nsymbol N 1 4\ninput rows : f32[N]\ny = aten.relu.default(rows)\n"
                        "output y = y\n", true);
}

static npu_status foreach_counts(setup *s)
{
    return plan_text(s, "npu_ir 1\ngraph main\ninput x : f32[2]\na, b = aten._foreach_add.List([x, x], [x])\n"
                        "output y = a\n", false);
}

static npu_status norm_of_many(setup *s)
{
    static const int64_t many[100];
    npu_arg args[] = { npu_arg_tensor("input", s->x), npu_arg_ints("normalized_shape", many, 100),
                       npu_arg_none("weight"), npu_arg_none("eps") };
    npu_emit_name(HERE, "aten._fused_rms_norm", args, 4);
    return of_graph(s);
}

static npu_status scatter_part(setup *s)
{
    npu_arg args[] = { npu_arg_tensor("self", s->x), npu_arg_tensor("src", s->wide), npu_arg_int("dim", 0),
                       npu_arg_int("index", 0) };
    npu_emit_name(HERE, "aten.select_scatter", args, 4);
    return of_graph(s);
}

static npu_status range_nan(setup *s)
{
    npu_arange(HERE, NPU_F32, npu_scalar_float((double)NAN), npu_scalar_int(4), npu_scalar_int(1));
    return of_graph(s);
}

static npu_status window_length(setup *s)
{
    npu_arg args[] = { npu_arg_int("window_length", -4) };
    npu_emit_name(HERE, "aten.hann_window", args, 1);
    return of_graph(s);
}

static npu_status many_indices(setup *s)
{
    npu_value i = npu_input(s->g, "i", SPEC(NPU_I64, 2));
    npu_index(HERE, s->x, (npu_value[]){ i, i, i }, 3);
    return of_graph(s);
}

/* located: the message begins with this file and the line of HERE */
static const struct {
    const char *mistake;
    npu_status (*make)(setup *s);
    npu_status status;
    bool is_located;
    const char *words[5];
} mistakes[] = {
    { "linear shape", linear_shape, NPU_ERR_SHAPE, true,
      { "linear: weight dim 1 is 31, expected last dim of input = 32", "input 'x' f32[8,32]", "weight 'w2' f32[10,31]" } },
    { "conv channels", conv_channels, NPU_ERR_SHAPE, true,
      { "conv2d: weight dim 1 is 4, expected channels / groups = 3", "input 'image' f32[1,3,8,8]", "weight 'k' f32[8,4,3,3]" } },
    { "conv groups", conv_groups, NPU_ERR_SHAPE, true, { "conv2d: ", "groups", "input 'image' f32[1,3,8,8]" } },
    { "conv rank", conv_rank, NPU_ERR_RANK, true, { "conv2d: ", "expected", "input 'x' f32[8,32]" } },
    { "matmul shape", matmul_shape, NPU_ERR_SHAPE, true,
      { "matmul: ", "expected", "self 'x' f32[8,32]", "other 'b' f32[31,10]" } },
    { "add broadcast", add_broadcast, NPU_ERR_SHAPE, true,
      { "add: other dim 1 is 5, expected 32 or 1", "self 'x' f32[8,32]", "other 'q' f32[8,5]" } },
    { "linear dtype", linear_dtype, NPU_ERR_DTYPE, true,
      { "linear: weight is f16, expected f32 like input", "'x' f32[8,32]", "'half' f16[10,32]" } },
    { "softmax axis", softmax_axis, NPU_ERR_AXIS, true,
      { "softmax: dim is 2, expected -2 to 1", "self 'x' f32[8,32]" } },
    { "embedding indices", embedding_indices, NPU_ERR_DTYPE, true,
      { "embedding: indices", "expected", "indices 'x' f32[8,32]" } },
    { "reshape count", reshape_count, NPU_ERR_SHAPE, true, { "reshape: ", "256", "250", "self 'x' f32[8,32]" } },
    { "reshape rest", reshape_rest, NPU_ERR_SHAPE, true, { "reshape: shape has 5 elements for each of its -1, self has 256", "self 'x' f32[8,32]" } },
    { "cat dims", cat_dims, NPU_ERR_SHAPE, true,
      { "cat: ", "expected", "tensors 'x' f32[8,32]", "tensors 'wide' f32[8,31]" } },
    { "split size", split_size, NPU_ERR_ATTRIBUTE, true, { "split: ", "split_size", "-1", "self 'x' f32[8,32]" } },
    { "norm shape", norm_shape, NPU_ERR_SHAPE, true, { "layer_norm: ", "31", "32", "input 'x' f32[8,32]" } },
    { "operand missing", operand_missing, NPU_ERR_ARITY, true,
      { "aten.linear.default: operand 'weight' is missing" } },
    { "operand is none", operand_is_none, NPU_ERR_ARITY, true,
      { "aten.relu.default: operand 'self' is missing: its handle has id 0" } },
    { "too many", too_many, NPU_ERR_ARITY, true, { "aten.relu takes fewer than 2 arguments by position" } },
    { "op typo", op_typo, NPU_ERR_NOT_FOUND, true,
      { "'aten.leaky_rleu.default'", "did you mean 'aten.leaky_relu.default'?" } },
    { "op typo bare", op_typo_bare, NPU_ERR_NOT_FOUND, true, { "'sofmax'", "did you mean '", "softmax" } },
    { "op typo without an overload", op_typo_short, NPU_ERR_NOT_FOUND, true,
      { "'aten.sofmax'", "did you mean 'aten.softmax." } },
    { "attribute typo", attribute_typo, NPU_ERR_ATTRIBUTE, true,
      { "aten.leaky_relu has no 'negative_slop'", "did you mean 'negative_slope'?" } },
    { "attribute missing", attribute_missing, NPU_ERR_ATTRIBUTE, true,
      { "max_pool2d requires 'kernel_size', which is int[]" } },
    { "attribute type", attribute_type, NPU_ERR_ATTRIBUTE, true, { "aten.softmax takes 'dim' only as int" } },
    { "attribute count", attribute_count, NPU_ERR_ATTRIBUTE, true,
      { "aten.conv2d takes 'stride' only as SymInt list of 2, a list of 3 is given" } },
    { "attribute word", attribute_word, NPU_ERR_ATTRIBUTE, true,
      { "gelu: approximate is 'tahn', expected 'none' or 'tanh'" } },
    { "attribute dtype", attribute_dtype, NPU_ERR_ATTRIBUTE, true,
      { "aten.to takes 'dtype' only as ScalarType, dtype 99 is given" } },
    { "overload typo", overload_typo, NPU_ERR_NOT_FOUND, true, { "did you mean 'aten.add.Tensor'?" } },
    { "module name", module_name, NPU_ERR_NOT_FOUND, true, { "did you mean 'aten.relu.default'?" } },
    { "einsum dims", einsum_dims, NPU_ERR_SHAPE, true,
      { "einsum: tensor 1 dim 0 is 8, expected 32 like others of label 'j'" } },
    { "einsum label", einsum_label, NPU_ERR_ATTRIBUTE, true, { "einsum: label 'z' of the result is in no term" } },
    { "einsum twice", einsum_twice, NPU_ERR_ATTRIBUTE, true, { "einsum: label 'i' of the result is there twice" } },
    { "lstm gates", lstm_gates, NPU_ERR_SHAPE, true,
      { "lstm: w_ih (operand 3) dim 0 is 32, expected 28", "hx 'h0' f32[1,2,7]", "params 'w_ih' f32[32,6]" } },
    { "shuffle channels", shuffle_channels, NPU_ERR_SHAPE, true,
      { "pixel_shuffle: self dim 1 is 3, expected a multiple of 4" } },
    { "results given", results_given, NPU_ERR_SHAPE, true,
      { "relu.default: result 0 is given as f32[8,31], its type rule gives f32[8,32]" } },
    { "update shape", update_shape, NPU_ERR_SHAPE, true,
      { "update: state 'cache' is f32[4,32], its next value 'y' f32[8,32]" } },
    { "update input", update_input, NPU_ERR_INVALID_ARGUMENT, true, { "update: 'x' is no state", "npu_state" } },
    { "named twice", named_twice, NPU_ERR_INVALID_ARGUMENT, true,
      { "name 'image': the value is called 'x' already", "npu_value_add_name" } },
    { "update nothing", update_nothing, NPU_ERR_INVALID_ARGUMENT, true, { "update: there is no value 0", "failed" } },
    { "layer heads", layer_heads, NPU_ERR_SHAPE, false, { "attention att: 3 heads must divide 8 features" } },
    { "text op", text_op, NPU_ERR_NOT_FOUND, false,
      { "'aten.rleu.default' is not registered", "did you mean 'aten.relu.default'?" } },
    { "text value", text_value, NPU_ERR_NOT_FOUND, false,
      { "value 'pictur' is not defined before this line", "did you mean 'picture'?" } },
    { "json producer", json_producer, NPU_ERR_NOT_FOUND, false,
      { "'pitcure' is no graph input or node before this one", "did you mean 'picture'?" } },
    { "json name", json_name, NPU_ERR_NOT_FOUND, false,
      { "'pitcure' is no weight, input or result", "did you mean 'picture'?" } },
    { "symbol typo", symbol_typo, NPU_ERR_NOT_FOUND, false,
      { "specialize: the graph has no symbol 'bacth'", "did you mean 'batch'?" } },
    { "json broken", json_broken, NPU_ERR_PARSE, false, { "column 11: expected a value" } },
    { "json dtype", json_dtype, NPU_ERR_DTYPE, false, { "'x': 'flaot32' is no dtype" } },
    { "plan written by none", plan_written_by_none, NPU_ERR_INVALID_ARGUMENT, false,
      { "planned model: the desc has no libraries", "npu_ref_planned()" } },
    { "attribute nan", attribute_nan, NPU_ERR_ATTRIBUTE, true, { "dropout: p is nan", "expected 0 to 1" } },
    { "foreign value", foreign_value, NPU_ERR_INVALID_ARGUMENT, true,
      { "aten.relu.default: operand 0 is value", "does not exist in graph main", "of another graph?" } },
    { "failed handle", failed_handle, NPU_ERR_SHAPE, true, { "linear: weight dim 1 is 31", "'w2' f32[10,31]" } },
    { "duplicate name", duplicate_name, NPU_ERR_DUPLICATE, true, { "a value named 'x' already exists" } },
    { "param twice", param_twice, NPU_ERR_SHAPE, true, { "param 'w'", "f32[10,31]", "f32[10,32]" } },
    { "negative size", negative_size, NPU_ERR_SHAPE, true, { "input 'n'", "-5" } },
    { "constant without data", constant_without_data, NPU_ERR_CONVERSION, true, { "constant 'c'", "data" } },
    { "layer features", layer_features, NPU_ERR_SHAPE, false,
      { "linear fc: x's last dim is 8, expected in_features 7" } },
    { "weight typo", weight_typo, NPU_ERR_NOT_FOUND, true, { "param 'fc.wieght'", "did you mean 'fc.weight'?" } },
    { "weight size", weight_size, NPU_ERR_SHAPE, true,
      { "param 'fc.weight': 64 bytes given, expected 128 for f32[4,8]" } },
    { "weights missing", weights_missing, NPU_ERR_MISSING_WEIGHT, false,
      { "2 parameters have no data", "'b1' f32[16]", "'w2' f32[4,16]", "npu_graph_bind_param" } },
    { "weight shape", weight_shape, NPU_ERR_SHAPE, true, { "'bias'", "f32[31]", "f32[32]" } },
    { "weight dtype", weight_dtype, NPU_ERR_DTYPE, true, { "'bias'", "f16[32]", "f32[32]" } },
    { "weight twice", weight_twice, NPU_ERR_DUPLICATE, true, { "'bias'" } },
    { "no outputs", no_outputs, NPU_ERR_GRAPH, false, { "graph main has no output", "npu_output" } },
    { "output of failed", output_of_failed, NPU_ERR_INVALID_ARGUMENT, true, { "output 'y'", "no value 0" } },
    { "plan of failed", plan_of_failed, NPU_ERR_GRAPH, true,
      { "linear: weight dim 1 is 31", "input 'x' f32[8,32]", "weight 'w2' f32[10,31]" } },
    { "rewrite of failed", rewrite_of_failed, NPU_ERR_GRAPH, true,
      { "linear: weight dim 1 is 31", "input 'x' f32[8,32]", "weight 'w2' f32[10,31]" } },
    { "a backend that was not created", null_backend, NPU_ERR_INVALID_ARGUMENT, false, { "backends[1] of 2 is NULL" } },
    { "no backends", no_backends, NPU_ERR_INVALID_ARGUMENT, false, { "0 backends, expected 1 to 32", "npu_ref_backend()" } },
    { "backend without slot", backend_without_slot, NPU_ERR_INVALID_ARGUMENT, false, { "submit" } },
    { "nobody takes", nobody_takes, NPU_ERR_NOT_IMPLEMENTED, true,
      { "no backend takes 1 op: acme.magic (op not supported)" } },
    { "json attribute typo", json_attribute, NPU_ERR_ATTRIBUTE, false,
      { "node 'b': aten.leaky_relu.default has no 'negative_slop'", "did you mean 'negative_slope'?" } },
    { "json op", json_op, NPU_ERR_NOT_IMPLEMENTED, false, { "no backend takes 1 op: my_lib.thing" } },
    { "missing file", missing_file, NPU_ERR_IO, false, { NULL } },
    { "unknown pass", unknown_pass, NPU_ERR_NOT_FOUND, false,
      { "pass fold-constant", "did you mean 'fold-constants'?" } },
    { "too large", too_large, NPU_ERR_OVERFLOW, true, { "'big'", "f32[1099511627776,1099511627776]" } },
#if SIZE_MAX > UINT32_MAX
    { "memory too large", memory_too_large, NPU_ERR_OVERFLOW, false,
      { "plan of memory: 'x' has 9223372036854775807 bytes" } },
#endif
    { "planned, dynamic", planned_dynamic, NPU_ERR_DYNAMIC_SHAPE, false, { "the size of 'rows' is not known" } },
    { "foreach counts", foreach_counts, NPU_ERR_ARITY, false, { "_foreach_add: self has 2 tensors, expected 1" } },
    { "norm of many dims", norm_of_many, NPU_ERR_UNSUPPORTED, true,
      { "_fused_rms_norm: normalized_shape is too long, dynamic, or no argument" } },
    { "scatter part", scatter_part, NPU_ERR_SHAPE, true,
      { "select_scatter: src has 2 dims, expected 1", "f32[8,31]" } },
    { "range nan", range_nan, NPU_ERR_ATTRIBUTE, true, { "arange: a range from nan to 4 by 1", "expected finite" } },
    { "window length", window_length, NPU_ERR_ATTRIBUTE, true, { "window_length is -4", "expected at least 0" } },
    { "many indices", many_indices, NPU_ERR_RANK, true,
      { "index: more indices than the 2 dims of self", "f32[8,32]" } },
    { "unbound", unbound, NPU_ERR_MISSING_FEED, false,
      { "input 0 ('x') is not bound: npu_exec_set_input with f32[8,32]" } },
    { "input dims", input_dims, NPU_ERR_SHAPE, false,
      { "input 0 ('x'): f32[8,31] given, expected f32[8,32]" } },
    { "input typo", input_typo, NPU_ERR_NOT_FOUND, false,
      { "input 'xx': the graph has no such input, did you mean 'x'?" } },
    { "output small", output_small, NPU_ERR_SHAPE, false,
      { "output 0 ('y'): 1000 bytes given, expected 1024 for f32[8,32]" } },
    { "input null", input_null, NPU_ERR_INVALID_ARGUMENT, false, { "input 0 ('x')", "data is NULL" } },
    { "refused input", refused_input, NPU_ERR_MISSING_FEED, false,
      { "input 0 ('x') is not bound, as this was refused: ", "f32[8,31] given, expected f32[8,32]" } },
    { "refused name", refused_name, NPU_ERR_MISSING_FEED, false,
      { "input 0 ('x') is not bound, as this was refused: input 'image0'", "did you mean 'image'?" } },
    { "refused output", refused_output, NPU_ERR_SHAPE, false,
      { "output 0 ('y'): 1000 bytes given", "refused, and is not bound" } },
    { "overlap", overlap, NPU_ERR_INVALID_ARGUMENT, false, { "'x'", "'y'", "overlap" } },
    { "symbol bounds", symbol_bounds, NPU_ERR_RANGE, false, { "('a'): dim 0 is 9, expected 1 to 8" } },
    { "symbols disagree", symbols_disagree, NPU_ERR_SHAPE, false, { "N", "3", "2" } },
    { "symbolic as fixed", symbolic_as_fixed, NPU_ERR_DYNAMIC_SHAPE, false,
      { "('a')", "f32[N,4]" } },
};

static void check_mistake(size_t row)
{
    setup s;
    char place[64];
    npu_status status;
    memset(&s, 0, sizeof s);
    s.cpu = npu_ref_backend();
    s.g = npu_graph_create(NULL);
    s.x = npu_input(s.g, "x", SPEC(NPU_F32, 8, 32));
    s.image = npu_input(s.g, "image", SPEC(NPU_F32, 1, 3, 8, 8));
    s.wide = npu_input(s.g, "wide", SPEC(NPU_F32, 8, 31));
    status = mistakes[row].make(&s);
    if (getenv("NPU_SHOW")) {
        printf("%-24s %s\n", mistakes[row].mistake, s.diag.message);
    }
    if (!npu_test_ok(status == mistakes[row].status, __FILE__, __LINE__, mistakes[row].mistake)) {
        fprintf(stderr, ": got %s, expected %s\n", npu_status_name(status), npu_status_name(mistakes[row].status));
    }
    snprintf(place, sizeof place, "test_messages.c:%d: ", (int)s.diag.line);
    if (mistakes[row].is_located && (s.diag.line == 0 || strncmp(s.diag.message, place, strlen(place)) != 0)) {
        npu_test_str(__FILE__, __LINE__, mistakes[row].mistake, s.diag.message, place);
    }
    for (int i = 0; i < 5 && mistakes[row].words[i]; i++) {
        if (!strstr(s.diag.message, mistakes[row].words[i])) {
            npu_test_str(__FILE__, __LINE__, mistakes[row].mistake, s.diag.message, mistakes[row].words[i]);
        }
    }
    npu_exec_destroy(s.exec);
    npu_graph_destroy(s.g);
}

/* Each message says op or object, source line, operand by name, what came and what was expected, and what to do. */
static void test_mistakes(void)
{
    NPU_ITEM("F33");
    NPU_ITEM("F34");
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        check_mistake(i);
    }
}

/* ---- what the README claims ---- */

static uint32_t count_cases(const char *op)
{
    static char text[1 << 22];
    char path[256];
    FILE *file;
    uint32_t n = 0;
    snprintf(path, sizeof path, "tests/vectors/%s.cases", op);
    file = fopen(path, "rb");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        for (const char *p = text; (p = strstr(p, "case ")) != NULL; p++) {
            n += p == text || p[-1] == '\n';
        }
    }
    return n;
}

/* Schemas print back unchanged; ops, overloads and cases are as many as it says. */
static void test_readme(void)
{
#define NPU_X(number, symbol, traits, rule, schema, doc) { (npu_kind)symbol, schema },
#define NPU_FAMILY(space, name, category, table) table(NPU_X)
    static const struct { npu_kind kind; const char *schema; } rows[] = { NPU_IR_FAMILIES(NPU_FAMILY) { 0, "" } };
#undef NPU_FAMILY
#undef NPU_X
    static char readme[1 << 16];
    char words[160];
    uint32_t ops = 0, overloads = 0, cases = 0, tested = 0;
    npu_registry *registry = NULL;
    FILE *file = fopen("README.md", "rb");
    NPU_ITEM("F46");
    NPU_CHECK(file != NULL);
    if (file) {
        readme[fread(readme, 1, sizeof readme - 1, file)] = 0;
        fclose(file);
    }
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (size_t i = 0; rows[i].kind; i++) {
        const npu_op_def *def = npu_registry_find_kind(registry, rows[i].kind);
        npu_text text = npu_text_init(NULL);
        npu_schema_print(&text, def->schema);
        NPU_CHECK_STR(text.data, rows[i].schema);
        npu_text_free(&text);
        if (strcmp(def->space, "aten") == 0) {
            uint32_t n = count_cases(def->name);
            overloads++;
            cases += n;
            tested += n > 0;
        }
    }
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        bool seen = strcmp(def->space, "aten") != 0;
        for (uint32_t k = 0; k < i && !seen; k++) {
            const npu_op_def *other = npu_registry_op(registry, k);
            seen = strcmp(other->space, "aten") == 0 && strcmp(other->schema->name, def->schema->name) == 0;
        }
        ops += !seen;
    }
    snprintf(words, sizeof words, "%u overloads of %u ops", (unsigned)overloads, (unsigned)ops);
    NPU_CHECK_THAT(strstr(readme, words), "README lacks: %s", words);
    snprintf(words, sizeof words, "all %u,%03u cases of %u overloads", (unsigned)cases / 1000, (unsigned)cases % 1000, (unsigned)tested);
    NPU_CHECK_THAT(strstr(readme, words), "README lacks: %s", words);
    NPU_CHECK(!strstr(readme, "shared/")); /* a plain clone is enough */
    npu_registry_destroy(registry);
}

int main(void)
{
    NPU_RUN(test_mistakes);
    NPU_RUN(test_readme);
    NPU_RUN(test_commands);
    NPU_RUN(test_compilers);
    return npu_test_done();
}
