/* Tile programs: type rules, text, running them, the checker and its oracle. */
#include "rig.h"

/* ---- parsing programs ---- */

/* A graph whose child 0 is the tile program `body`; NULL where it does not parse, and why in *status. */
static npu_graph *parse_program(const char *body, npu_status *status)
{
    npu_text text = npu_text_make(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_text_printf(&text, "graph main\nchild program tile\n%send\n", body);
    *status = npu_graph_parse(&g, text.data, text.len, NULL, &diag);
    npu_text_free(&text);
    return g;
}

static npu_status parse_status(const char *body)
{
    npu_status status;
    npu_graph_destroy(parse_program(body, &status));
    return status;
}

/* Appends `line` to a program with a tensor x f32[8,16], its tile t, two registers and an i32 tile. */
static npu_status line_status(const char *line)
{
    npu_text text = npu_text_make(NULL);
    npu_status status;
    npu_text_printf(&text, "input x : f32[8,16]\ninput n : i32[4]\nb = block.get_block_idx()\nt = block.load(x, [0, 0], [4, 16])\n"
                           "u = block.load(n, [0], [4])\nf = arith.constant(value=0.5, dtype=f32)\n%s\n", line);
    status = parse_status(text.data);
    npu_text_free(&text);
    return status;
}

/* ---- type rules ---- */

static const struct {
    const char *line, *spec; /* of its result y */
} typed[] = {
    { "block.get_block_idx()", "scalar u64[]" },
    { "block.load(x, [4, 0], [4, 16])", "tile f32[4,16]" },
    { "block.load(x, [b, 0], [1, 16])", "tile f32[1,16]" },
    { "block.load(x, [b, b], [1, 1])", "tile f32[1,1]" },
    { "block.load(x, [0, 0], [4, 16], target_memory=3)", "tile f32[4,16] space=l1" },
    { "block.store(t, [4, 0], [4, 16], x)", "f32[8,16]" },
    { "block.create_tile([2, 3], dtype=f16)", "tile f16[2,3]" },
    { "block.full([2, 3], f, dtype=f16)", "tile f16[2,3]" },
    { "block.full([2, 3], 1, dtype=f16)", "tile f16[2,3]" },
    { "block.move(t, target_memory=4)", "tile f32[4,16] space=l0a" },
    { "block.move(t, target_memory=5, transpose=true)", "tile f32[16,4] space=l0b" },
    { "block.reshape(t, [64])", "tile f32[64]" },
    { "block.transpose(t, 0, -1)", "tile f32[16,4]" },
    { "block.add(t, t)", "tile f32[4,16]" },
    { "block.mul(u, t)", "error" },
    { "block.sub(u, u)", "tile i32[4]" },
    { "block.adds(t, 2)", "tile f32[4,16]" },
    { "block.adds(u, 2)", "tile i32[4]" },
    { "block.muls(u, 0.5)", "tile f32[4]" },
    { "block.divs(t, f)", "tile f32[4,16]" },
    { "block.subs(u, f)", "tile f32[4]" },
    { "block.sqrt(t)", "tile f32[4,16]" },
    { "block.sqrt(u)", "tile i32[4]" },
    { "block.cast(t, target_type=bf16)", "tile bf16[4,16]" },
    { "block.sum(t, axis=1, keepdim=true)", "tile f32[4,1]" },
    { "block.sum(t, axis=-1)", "tile f32[4]" },
    { "block.max(u, axis=0)", "scalar i32[]" },
    { "block.row_sum(t, t)", "tile f32[4,1]" },
    { "block.expands(t, 0)", "tile f32[4,16]" },
    { "arith.addi(b, b)", "scalar u64[]" },
};

static void test_types(void)
{
    NPU_ITEM("S3.53");
    NPU_ITEM("S3.56");
    NPU_ITEM("S3.58");
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        npu_text body = npu_text_make(NULL), out = npu_text_make(NULL);
        npu_status status;
        npu_text_printf(&body, "input x : f32[8,16]\ninput n : i32[4]\nb = block.get_block_idx()\nt = block.load(x, [0, 0], [4, 16])\n"
                               "u = block.load(n, [0], [4])\nf = arith.constant(value=0.5, dtype=f32)\ny = %s\n", typed[i].line);
        npu_graph *g = parse_program(body.data, &status);
        const npu_graph *program = npu_graph_child_at(g, 0);
        if (status == NPU_OK) {
            const char *at;
            NPU_CHECK_STATUS(npu_graph_print(g, &out), NPU_OK);
            at = strstr(out.data, "  y = ");
            at = at ? strstr(at, ") : ") : NULL;
            NPU_CHECK(at && strncmp(at + 4, typed[i].spec, strlen(typed[i].spec)) == 0 && at[4 + strlen(typed[i].spec)] == '\n');
            NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
            NPU_CHECK_EQ(npu_graph_level(program), NPU_LEVEL_TILE);
        } else {
            NPU_CHECK_STR("error", typed[i].spec);
        }
        npu_text_free(&body);
        npu_text_free(&out);
        npu_graph_destroy(g);
    }
}

static const struct {
    const char *line;
    npu_status status;
} rejected[] = {
    /* arity and classes */
    { "y = block.load(x, [0, 0])", NPU_ERR_ATTRIBUTE },
    { "y = block.load(x, [0, 0], [4, 16], 2)", NPU_ERR_ARITY },
    { "y = block.load(t, [0, 0], [4, 16])", NPU_ERR_CLASS },
    { "y = block.store(t, [0, 0], [4, 16])", NPU_ERR_ARITY },
    { "y = block.store(x, [0, 0], [4, 16], x)", NPU_ERR_CLASS },
    { "y = block.store(t, [0, 0], [4, 16], t)", NPU_ERR_CLASS },
    { "y = block.add(t, x)", NPU_ERR_CLASS },
    { "y = block.add(t, f)", NPU_ERR_CLASS },
    { "y = block.adds(t, t)", NPU_ERR_CLASS },
    { "y = block.adds(t, x)", NPU_ERR_CLASS },
    { "y = block.adds(t)", NPU_ERR_ATTRIBUTE },
    { "y = arith.addi(t, t)", NPU_ERR_CLASS },
    { "y = block.load(x, [t, 0], [4, 16])", NPU_ERR_CLASS },
    { "y = block.get_block_idx(t)", NPU_ERR_ARITY },
    /* offsets and shapes */
    { "y = block.load(x, [], [])", NPU_ERR_RANK },
    { "y = block.load(x, [0], [4, 16])", NPU_ERR_RANK },
    { "y = block.load(x, [0, 0, 0], [4, 16, 1])", NPU_ERR_RANK },
    { "y = block.load(x, [5, 0], [4, 16])", NPU_ERR_RANGE },
    { "y = block.load(x, [-1, 0], [4, 16])", NPU_ERR_RANGE },
    { "y = block.load(x, [b, 0], [9, 16])", NPU_ERR_RANGE },
    { "y = block.load(x, [0, 0], [0, 16])", NPU_ERR_SHAPE },
    { "y = block.load(x, [f, 0], [4, 16])", NPU_ERR_DTYPE },
    { "y = block.load(x, [0, 0], [4, 16], target_memory=4)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0, 0], [4, 8], x)", NPU_ERR_SHAPE },
    { "y = block.store(u, [0, 0], [1, 4], x)", NPU_ERR_DTYPE },
    { "y = block.store(t, [5, 0], [4, 16], x)", NPU_ERR_RANGE },
    { "y = block.create_tile([0], dtype=f32)", NPU_ERR_SHAPE },
    { "y = block.create_tile([2])", NPU_ERR_ATTRIBUTE },
    { "y = block.create_tile([b], dtype=f32)", NPU_ERR_SHAPE },
    { "y = block.full([-1], 0, dtype=f32)", NPU_ERR_SHAPE },
    /* tiles */
    { "y = block.add(t, u)", NPU_ERR_SHAPE },
    { "y = block.sum(t)", NPU_ERR_ATTRIBUTE },
    { "y = block.sum(t, axis=2)", NPU_ERR_AXIS },
    { "y = block.cast(t, target_type=f32, mode=7)", NPU_ERR_ATTRIBUTE },
    { "y = block.cast(t)", NPU_ERR_ATTRIBUTE },
    { "y = block.move(t, target_memory=1)", NPU_ERR_ATTRIBUTE },
    { "y = block.move(u, target_memory=4, transpose=true)", NPU_ERR_RANK },
    { "y = block.reshape(t, [63])", NPU_ERR_SHAPE },
    { "y = block.transpose(t, 1, 1)", NPU_ERR_AXIS },
    { "y = block.row_expand_add(t, t)", NPU_ERR_SHAPE },
    { "y = block.row_expand_add(u, u)", NPU_ERR_RANK },
    { "y = block.col_expand_mul(t, t)", NPU_ERR_SHAPE },
    { "y = block.matmul(t, t)", NPU_ERR_SHAPE },
    { "y = block.matmul(u, u)", NPU_ERR_RANK },
    { "y = block.row_sum(t, u)", NPU_ERR_DTYPE },
    { "y = arith.constant(value=1, dtype=f8)", NPU_ERR_DTYPE },
    { "y = arith.addi(f, f)", NPU_ERR_DTYPE },
    { "k = arith.constant(value=1, dtype=i32)\ny = arith.addi(b, k)", NPU_ERR_DTYPE },
    /* flags */
    { "system.sync_src(set_pipe=2, wait_pipe=4)", NPU_ERR_ATTRIBUTE },
    { "system.sync_src(set_pipe=2, event_id=0)", NPU_ERR_ATTRIBUTE },
    { "system.sync_src(set_pipe=7, wait_pipe=4, event_id=0)", NPU_ERR_ATTRIBUTE },
    { "system.sync_src(set_pipe=-1, wait_pipe=4, event_id=0)", NPU_ERR_ATTRIBUTE },
    { "system.sync_dst(set_pipe=4, wait_pipe=4, event_id=0)", NPU_ERR_ATTRIBUTE },
    { "system.sync_dst(set_pipe=2, wait_pipe=4, event_id=64)", NPU_ERR_ATTRIBUTE },
    { "system.sync_dst(set_pipe=2, wait_pipe=4, event_id=-1)", NPU_ERR_ATTRIBUTE },
    { "system.sync_dst(2, 4, 0)", NPU_ERR_ARITY },
    { "system.bar_all(t)", NPU_ERR_ARITY },
    { "y = system.bar_v()", NPU_ERR_ARITY },
    /* levels */
    { "y = aten.relu.default(x)", NPU_ERR_CLASS },
    { "y = npu.launch([x], blocks=1, body=graph 0)", NPU_ERR_INVALID_ARGUMENT },
};

static void test_rejections(void)
{
    NPU_ITEM("S3.54");
    NPU_ITEM("S3.55");
    NPU_ITEM("S3.57");
    for (size_t i = 0; i < sizeof rejected / sizeof rejected[0]; i++) {
        npu_status status = line_status(rejected[i].line);
        if (status != rejected[i].status) {
            printf("%s\n", rejected[i].line);
        }
        NPU_CHECK_STATUS(status, rejected[i].status);
    }
}

static void test_levels(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", F32(8, 16));
    npu_index at[] = { { 0, { 0 } }, { 0, { 0 } } };
    NPU_CHECK(!npu_block_load(g, x, at, DIMS(8, 16), 2, NPU_SPACE_UB).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_CLASS);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_system_bar_all(g).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_CLASS);
    npu_graph_destroy(g);
}

/* Synchronisation ops are statements: no operands, no results, for the scalar unit to issue. */
static void test_sync_ops(void)
{
    npu_status status;
    npu_graph *g = parse_program("system.bar_all()\nsystem.bar_v()\nsystem.bar_m()\nsystem.sync_src(set_pipe=2, wait_pipe=4, event_id=0)\n"
                                 "system.sync_dst(set_pipe=2, wait_pipe=4, event_id=0)\n", &status);
    npu_graph *program = npu_graph_child_at(g, 0);
    NPU_ITEM("S3.62");
    NPU_ITEM("S3.63");
    NPU_ITEM("S3.66");
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(program), 5);
    for (uint32_t op = 1; op <= 5; op++) {
        NPU_CHECK_EQ(npu_op_num_results(program, (npu_op){ op }), 0);
        NPU_CHECK_EQ(npu_op_num_operands(program, (npu_op){ op }), 0);
        NPU_CHECK(npu_op_definition(program, (npu_op){ op })->traits & NPU_EFFECT);
    }
    npu_graph_destroy(g);
}

static void test_flags(void)
{
    npu_graph *g = npu_graph_create(NULL), *program = npu_graph_child(g, "p", NPU_LEVEL_TILE, NULL);
    npu_op set = npu_system_sync_src(program, NPU_PIPE_MTE3, NPU_PIPE_V, 0);
    npu_op wait = npu_system_sync_dst(program, NPU_PIPE_MTE3, NPU_PIPE_V, 0);
    npu_op_storage storage = { 0 };
    npu_op_info info;
    NPU_ITEM("S3.64");
    NPU_ITEM("S3.65");
    NPU_ITEM("S3.67");
    NPU_CHECK_STATUS(npu_op_describe(program, set, &info, &storage), NPU_OK);
    NPU_CHECK_STR(info.name, "system.sync_src");
    NPU_CHECK_EQ(npu_op_int(&info, "set_pipe", -1), 2);
    NPU_CHECK_EQ(npu_op_int(&info, "wait_pipe", -1), 4);
    NPU_CHECK_EQ(npu_op_int(&info, "event_id", -1), 0);
    NPU_CHECK_STATUS(npu_op_describe(program, wait, &info, &storage), NPU_OK);
    NPU_CHECK_STR(info.name, "system.sync_dst");
    NPU_CHECK_STR(npu_pipe_name(2), "MTE3");
    NPU_CHECK_STR(npu_pipe_name(4), "V");
    NPU_CHECK_STR(npu_pipe_name(8), "");
    npu_op_storage_free(&storage);
    npu_graph_destroy(g);
}

/* ---- text ---- */

static const char program_text[] =
    "npu_ir 1\ngraph main\nchild program tile\n  input a : f32[128,128]\n  input out : f32[128,1]\n"
    "  %3 = block.get_block_idx() : scalar u64[]\n"
    "  %4 = arith.constant(value=32, dtype=u64) : scalar u64[]\n"
    "  %5 = arith.muli(lhs=%3, rhs=%4) : scalar u64[]\n"
    "  %6 = block.load(tensor=a, offsets=[%5, 0], shapes=[32, 128]) : tile f32[32,128] space=ub offset=0\n"
    "  %7 = block.load(tensor=a, offsets=[0, 0], shapes=[32, 128]) : tile f32[32,128]\n"
    "  system.sync_src(set_pipe=1, wait_pipe=4, event_id=3)\n"
    "  system.sync_dst(set_pipe=1, wait_pipe=4, event_id=3)\n"
    "  %8 = block.mul(lhs=%6, rhs=%7) : tile f32[32,128] space=ub offset=16384\n"
    "  %9 = block.full(shape=[1], value=1.5, dtype=f32) : tile f32[1]\n"
    "  %10 = block.sum(tile=%9, axis=0) : scalar f32[]\n"
    "  %11 = block.adds(lhs=%8, rhs=%10) : tile f32[32,128]\n"
    "  %12 = block.sum(tile=%11, axis=1, keepdim=true) : tile f32[32,1]\n"
    "  %13 = block.move(tile=%12, target_memory=3) : tile f32[32,1] space=l1\n"
    "  system.bar_all()\n"
    "  %14 = block.store(tile=%12, offsets=[%5, 0], shapes=[32, 1], output_tensor=out) : f32[128,1]\n"
    "  output out = %14\nend\n"
    "input a : f32[128,128]\ninput out : f32[128,1]\n"
    "%3 = npu.launch(args=[a, out], blocks=4, body=graph 0) : f32[128,1]\noutput y = %3\n";

/* Registers in lists and as numbers, and places of tiles, survive print, parse and rewriting. */
static void test_text(void)
{
    npu_graph *g = NULL, *copy = NULL;
    npu_text text = npu_text_make(NULL), again = npu_text_make(NULL);
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse(&g, program_text, sizeof program_text - 1, NULL, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STR(text.data, program_text);
    NPU_CHECK_STATUS(npu_graph_rewrite(&copy, g, NULL, NULL, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_validate(copy, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(copy, &again), NPU_OK);
    NPU_CHECK(strstr(again.data, "offsets=[%5, 0], shapes=[32, 128]) : tile f32[32,128] space=ub offset=0\n") != NULL);
    NPU_CHECK(strstr(again.data, "block.adds(lhs=%8, rhs=%10)") != NULL);
    npu_text_free(&text);
    npu_text_free(&again);
    npu_graph_destroy(g);
    npu_graph_destroy(copy);
}

static void test_place(void)
{
    npu_graph *g = npu_graph_create(NULL), *program = npu_graph_child(g, "p", NPU_LEVEL_TILE, NULL);
    npu_value t = npu_block_create_tile(program, NPU_F32, 1, DIMS(8), NPU_SPACE_UB);
    npu_value l = npu_block_create_tile(program, NPU_F32, 1, DIMS(8), NPU_SPACE_L1);
    NPU_CHECK_STATUS(npu_value_place(program, t, NPU_SPACE_UB, 64), NPU_OK);
    NPU_CHECK_EQ(npu_value_spec(program, t)->offset, 64);
    NPU_CHECK_STATUS(npu_value_place(program, t, NPU_SPACE_UB, -1), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_value_place(program, t, NPU_SPACE_L1, 0), NPU_ERR_SHAPE);
    NPU_CHECK_STATUS(npu_value_place(program, l, NPU_SPACE_L1, 0), NPU_OK);
    NPU_CHECK_STATUS(npu_value_place(program, npu_block_get_block_idx(program), NPU_SPACE_UB, 0), NPU_ERR_CLASS);
    npu_graph_clear_error(program);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
}

/* ---- the launch ---- */

static const struct {
    const char *body, *call;
    npu_status status;
} launches[] = {
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2, body=graph 0)", NPU_OK },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p], blocks=2, body=graph 0)", NPU_ERR_ARITY },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, r], blocks=2, body=graph 0)", NPU_ERR_SHAPE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=0, body=graph 0)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], body=graph 0)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2, buffer_size=0, body=graph 0)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2, body=graph 1)", NPU_ERR_CLASS },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = a\n", "npu.launch([p, q], blocks=2, body=graph 0)", NPU_ERR_GRAPH },
    { "output y = t\n", "npu.launch([p, q], blocks=2, body=graph 0)", NPU_ERR_GRAPH },
};

static void test_launch_rejections(void)
{
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        npu_text text = npu_text_make(NULL);
        npu_graph *g = NULL;
        npu_text_printf(&text, "graph main\nchild program tile\ninput a : f32[4]\ninput b : f32[4]\nt = block.load(a, [0], [4])\n%send\n"
                               "child other\nend\ninput p : f32[4]\ninput q : f32[4]\ninput r : f32[5]\nz = %s\noutput z = z\n",
                        launches[i].body, launches[i].call);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), launches[i].status);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

int main(void)
{
    NPU_RUN(test_types);
    NPU_RUN(test_rejections);
    NPU_RUN(test_levels);
    NPU_RUN(test_sync_ops);
    NPU_RUN(test_flags);
    NPU_RUN(test_text);
    NPU_RUN(test_place);
    NPU_RUN(test_launch_rejections);
    return npu_test_done();
}
