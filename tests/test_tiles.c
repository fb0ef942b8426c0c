/* Tile programs: type rules, text, running them, the checker and its oracle. */
#include "rig.h"
#include "../examples/tiles/programs.h"
#include "oracle/pipes.h"
#include <time.h>

/* ---- parsing programs ---- */

/* A graph whose child 0 is the tile program `body`; NULL where it does not parse, and why in *status. */
static npu_graph *parse_program(const char *body, npu_status *status)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_text_printf(&text, "graph main\nchild program tile\n%send\n", body);
    *status = npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), &diag);
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
    npu_text text = npu_text_init(NULL);
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
    { "block.cmp(t, t, cmp_type=5)", "tile f32[4,16]" },
    { "block.cmps(u, 0.5, cmp_type=1)", "tile f32[4]" },
    { "block.view(t, [2, 3], [b, 13])", "tile f32[2,3]" },
    { "block.sum(t, axis=1, keepdim=true)", "tile f32[4,1]" },
    { "block.sum(t, axis=-1)", "tile f32[4]" },
    { "block.max(u, axis=0)", "scalar i32[]" },
    { "block.row_sum(t, t)", "tile f32[4,1]" },
    { "block.expands(t, 0)", "tile f32[4,16]" },
    { "block.batch_matmul(t4, t5)", "tile f32[2,3,4,1] space=l0c" },
    { "arith.addi(b, b)", "scalar u64[]" },
};

/* The spec of y where "y = line" ends the program of line_status, as it is printed; "error" where it is rejected. */
static void check_type(const char *line, const char *spec)
{
    npu_text body = npu_text_init(NULL), out = npu_text_init(NULL);
    npu_status status;
    npu_text_printf(&body, "input x : f32[8,16]\ninput n : i32[4]\nb = block.get_block_idx()\nt = block.load(x, [0, 0], [4, 16])\n"
                           "u = block.load(n, [0], [4])\nf = arith.constant(value=0.5, dtype=f32)\n"
                           "t4 = block.full([2, 1, 4, 5], 0, dtype=f32)\nt5 = block.full([3, 5, 1], 0, dtype=f32)\n"
                           "y = %s\n", line);
    npu_graph *g = parse_program(body.data, &status);
    if (status == NPU_OK) {
        NPU_CHECK_STATUS(npu_graph_print(g, &out), NPU_OK);
        const char *at = strstr(out.data, "  y = ");
        at = at ? strstr(at, ") : ") : NULL;
        NPU_CHECK(at && strncmp(at + 4, spec, strlen(spec)) == 0 && at[4 + strlen(spec)] == '\n');
        NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
        NPU_CHECK_EQ(npu_graph_level(npu_graph_child(g, 0)), NPU_LEVEL_TILE);
    } else {
        NPU_CHECK_STR("error", spec);
    }
    npu_text_free(&body);
    npu_text_free(&out);
    npu_graph_destroy(g);
}

static void test_types(void)
{
    NPU_ITEM("S3.53");
    NPU_ITEM("S3.56");
    NPU_ITEM("S3.58");
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        check_type(typed[i].line, typed[i].spec);
    }
}

/* What the source of the document does where the document is silent. */
static void test_reduction_rules(void)
{
    NPU_ITEM("R3.12");
    NPU_ITEM("R3.14");
    NPU_ITEM("R3.21");
    check_type("block.sum(t, axis=1)", "tile f32[4]");
    check_type("block.sum(t, axis=-2, keepdim=true)", "tile f32[1,16]");
    check_type("block.min(u, axis=0)", "scalar i32[]");
    NPU_CHECK_STATUS(line_status("y = block.sum(t)"), NPU_ERR_ATTRIBUTE);
    check_type("block.sqrt(u)", "tile i32[4]");
    check_type("block.row_max(t, t)", "tile f32[4,1]");
    NPU_CHECK_STATUS(line_status("y = block.row_max(t)"), NPU_ERR_ARITY);
    check_type("block.expands(t, f)", "tile f32[4,16]");
    NPU_CHECK_STATUS(line_status("v = block.full([3, 1], 0, dtype=f32)\ny = block.row_expand_mul(t, v)"), NPU_ERR_SHAPE);
}

/* What must be given and is not, by its name. */
static void test_missing_keyword(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *program = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, NULL);
    npu_arg tile = npu_arg_tensor("tile", npu_block_create_tile(program, NPU_F32, 1, DIMS(8), NPU_SPACE_UB));
    NPU_ITEM("R3.10");
    NPU_CHECK(!npu_emit_name(program, "block.sum", &tile, 1).id);
    NPU_CHECK_STATUS(npu_graph_status(program), NPU_ERR_ATTRIBUTE);
    NPU_CHECK(strstr(npu_graph_diag(program)->message, "axis"));
    npu_graph_destroy(g);
}

static void test_memory_rules(void)
{
    NPU_ITEM("R3.16");
    NPU_ITEM("R3.17");
    NPU_ITEM("R3.20");
    NPU_CHECK_STATUS(line_status("y = block.load(x, [0, 0])"), NPU_ERR_ATTRIBUTE);
    NPU_CHECK_STATUS(line_status("y = block.store(t, [0, 0], [4, 16], x, x)"), NPU_ERR_ARITY);
    NPU_CHECK_STATUS(line_status("y = block.load(x, [0], [4, 16])"), NPU_ERR_RANK);
    NPU_CHECK_STATUS(line_status("y = block.load(x, [], [])"), NPU_ERR_RANK);
    check_type("block.create_tile([2, 3], dtype=bf16)", "tile bf16[2,3]");
    NPU_CHECK_STATUS(line_status("y = block.create_tile([2, -3], dtype=bf16)"), NPU_ERR_SHAPE);
    check_type("block.reshape(t, [2, 32])", "tile f32[2,32]");
    NPU_CHECK_STATUS(line_status("y = block.reshape(t, [2, 31])"), NPU_ERR_SHAPE);
    check_type("block.transpose(t, -1, -2)", "tile f32[16,4]");
    NPU_CHECK_STATUS(line_status("y = block.transpose(u, 0, 0)"), NPU_ERR_RANK);
    check_type("block.view(t, [2, 16], [2, 0])", "tile f32[2,16]");
}

static void test_codes(void)
{
    NPU_ITEM("R3.15");
    NPU_ITEM("R3.18");
    NPU_ITEM("R3.23");
    check_type("block.get_block_idx()", "scalar u64[]");
    check_type("block.cmp(t, t, cmp_type=2)", "tile f32[4,16]");
    check_type("block.cmps(u, f, cmp_type=5)", "tile f32[4]");
    static const char *const names[] = { "MTE1", "MTE2", "MTE3", "M", "V", "S", "FIX", "ALL" };
    for (uint32_t i = 0; i < 8; i++) {
        NPU_CHECK_STR(npu_pipe_name(i), names[i]);
    }
    NPU_CHECK_EQ(NPU_SPACE_DDR, 1);
    NPU_CHECK_EQ(NPU_SPACE_L0C, 6);
}

/* The pipe of each op, by where its data comes from and goes to. */
static void test_pipes(void)
{
    static const struct { const char *line; uint32_t pipe; } rows[] = {
        { "y = block.load(x, [0, 0], [4, 16])", NPU_PIPE_MTE2 }, { "y = block.load(x, [0, 0], [4, 16], target_memory=3)", NPU_PIPE_MTE2 },
        { "y = block.store(t, [0, 0], [4, 16], x)", NPU_PIPE_MTE3 }, { "y = block.move(t, target_memory=3)", NPU_PIPE_MTE3 },
        { "l = block.load(x, [0, 0], [4, 4], target_memory=3)\ny = block.move(l, target_memory=4)", NPU_PIPE_MTE1 },
        { "l = block.load(x, [0, 0], [4, 4], target_memory=3)\na = block.move(l, target_memory=4)\nc = block.move(l, target_memory=5)\n"
          "y = block.matmul(a, c)", NPU_PIPE_M },
        { "l = block.full([2, 4, 4], 0, dtype=f32)\ny = block.batch_matmul(l, l)", NPU_PIPE_M },
        { "l = block.full([4, 4], 0, dtype=f32)\nm = block.matmul(l, l)\ny = block.move(m, target_memory=2)", NPU_PIPE_FIX },
        { "l = block.full([4, 4], 0, dtype=f32)\nm = block.matmul(l, l)\ny = block.store(m, [0, 0], [4, 4], x)", NPU_PIPE_FIX },
        { "y = block.move(t, target_memory=2)", NPU_PIPE_V }, { "y = block.exp(t)", NPU_PIPE_V }, { "y = block.full([4], 0, dtype=f32)", NPU_PIPE_V },
        { "y = block.get_block_num()", NPU_PIPE_S }, { "y = arith.addi(b, b)", NPU_PIPE_S }, { "y = block.reshape(t, [64])", NPU_PIPE_NONE },
        { "y = block.create_tile([4], dtype=f32)", NPU_PIPE_NONE }, { "y = my.op(t)", NPU_PIPE_V },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text body = npu_text_init(NULL);
        npu_status status;
        npu_text_printf(&body, "input x : f32[8,16]\nb = block.get_block_idx()\nt = block.load(x, [0, 0], [4, 16])\n%s%s\n", rows[i].line,
                        strstr(rows[i].line, "my.") ? " : tile f32[4,16]" : "");
        npu_graph *g = parse_program(body.data, &status), *p = npu_graph_child(g, 0);
        NPU_CHECK_STATUS(status, NPU_OK);
        NPU_CHECK_EQ(npu_tile_pipe(p, npu_value_producer(p, npu_graph_find(p, "y"), NULL)), rows[i].pipe);
        npu_graph_destroy(g);
        npu_text_free(&body);
    }
    NPU_CHECK_EQ(npu_tile_pipe(NULL, (npu_op){ 1 }), NPU_PIPE_NONE);
}

static npu_status deduce_tile(npu_deduce *d) { return npu_deduce_add_result(d, npu_deduce_spec(d, "tile")); }

/* An op from outside goes to the pipe that it was registered with. */
static void test_registered_pipe(void)
{
    static const npu_op_row row = { 0, NPU_ON_MTE3, deduce_tile, "scan(Tile tile) -> Tile", "running sums", NULL };
    npu_registry *registry = NULL;
    npu_graph_desc desc;
    npu_graph *g, *p;
    npu_value t;
    NPU_ITEM("R3.25");
    memset(&desc, 0, sizeof desc);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "test", &row, NULL), NPU_OK);
    desc.registry = registry;
    g = npu_graph_create(&desc);
    p = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, NULL);
    t = npu_block_create_tile(p, NPU_F32, 1, DIMS(8), NPU_SPACE_UB);
    npu_op op = npu_emit_name(p, "test.scan", (npu_arg[]){ npu_arg_tensor("tile", t) }, 1);
    NPU_CHECK_STATUS(npu_graph_status(p), NPU_OK);
    NPU_CHECK_EQ(npu_tile_pipe(p, op), NPU_PIPE_MTE3);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
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
    { "y = block.cmp(t, t)", NPU_ERR_ATTRIBUTE },
    { "y = block.cmp(t, t, cmp_type=6)", NPU_ERR_ATTRIBUTE },
    { "y = block.cmps(t, t, cmp_type=0)", NPU_ERR_CLASS },
    { "y = block.view(t, [4, 4], [0])", NPU_ERR_RANK },
    { "y = block.view(t, [4, 4], [0, 13])", NPU_ERR_RANGE },
    { "y = block.view(x, [4, 4], [0, 0])", NPU_ERR_CLASS },
    { "m = block.reshape(t, [16, 4])\np = block.matmul(t, m)\ny = block.matmul_acc(p, m, t)", NPU_ERR_SHAPE },
    { "m = block.reshape(t, [16, 4])\ny = block.matmul_acc(t, t, m)", NPU_ERR_SHAPE },
    { "m = block.full([16, 4], 0, dtype=f16)\ny = block.matmul(t, m)", NPU_ERR_DTYPE },
    { "m = block.full([4, 4], 0, dtype=f64)\ny = block.matmul(m, m)", NPU_ERR_DTYPE },
    { "m = block.reshape(t, [16, 4])\nh = block.full([4, 4], 0, dtype=f16)\ny = block.matmul_acc(h, t, m)", NPU_ERR_DTYPE },
    { "y = block.expands(x, 0)", NPU_ERR_CLASS },
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
    { "y = block.batch_matmul(t, t)", NPU_ERR_SHAPE },
    { "y = block.batch_matmul(u, t)", NPU_ERR_RANK },
    { "m = block.full([2, 4, 16], 0, dtype=f32)\nq = block.full([3, 16, 4], 0, dtype=f32)\n"
      "y = block.batch_matmul(m, q)", NPU_ERR_SHAPE },
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
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value x = npu_input(g, "x", F32(8, 16));
    npu_tile_index at[] = { { 0, { 0 } }, { 0, { 0 } } };
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
    npu_graph *program = npu_graph_child(g, 0);
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
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *program = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, NULL);
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
    npu_text text = npu_text_init(NULL), again = npu_text_init(NULL);
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse(&g, program_text, sizeof program_text - 1, npu_test_graph_desc(), &diag), NPU_OK);
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

/* Every builder emits the op that it is named after, operands in its own order. */
typedef npu_value tile_binary(npu_graph *g, npu_value lhs, npu_value rhs);
typedef npu_value tile_scalar(npu_graph *g, npu_value lhs, npu_scalar rhs);
typedef npu_value tile_unary(npu_graph *g, npu_value tile);
typedef npu_value tile_reduction(npu_graph *g, npu_value tile, int64_t axis, bool keepdim);

static void test_builders(void)
{
    static tile_binary *const binaries[] = { npu_block_add, npu_block_sub, npu_block_mul, npu_block_div, npu_block_maximum,
                                             npu_block_minimum, npu_block_matmul };
    static tile_binary *const expansions[] = { npu_block_row_expand_add, npu_block_row_expand_sub, npu_block_row_expand_mul,
                                               npu_block_row_expand_div, npu_block_col_expand_add, npu_block_col_expand_mul };
    static tile_scalar *const scalars[] = { npu_block_adds, npu_block_subs, npu_block_muls, npu_block_divs };
    static tile_unary *const unaries[] = { npu_block_sqrt, npu_block_rsqrt, npu_block_exp };
    static tile_reduction *const reductions[] = { npu_block_sum, npu_block_max, npu_block_min };
    const int64_t dims[] = { 32, 32, 1 }, batches[] = { 2, 4, 8 };
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .level = NPU_LEVEL_TILE });
    npu_value a = npu_input(g, "a", npu_spec_tensor(NPU_F32, 2, dims)), b = npu_input(g, "b", npu_spec_tensor(NPU_F32, 2, dims));
    npu_tile_index zero[2] = { { 0 } };
    npu_text text = npu_text_init(NULL);
    npu_block_get_block_num(g);
    npu_value x = npu_block_load(g, a, zero, dims, 2, NPU_SPACE_UB);
    npu_value y = npu_block_full(g, NPU_F32, 2, dims, npu_scalar_float(2.5));
    npu_value column = npu_block_create_tile(g, NPU_F32, 2, dims + 1, NPU_SPACE_UB);
    npu_value row = npu_block_create_tile(g, NPU_F32, 2, (const int64_t[]){ 1, 32 }, NPU_SPACE_UB);
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
        binaries[i](g, x, y);
    }
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        scalars[i](g, x, npu_scalar_float(1));
    }
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++) {
        unaries[i](g, x);
    }
    for (size_t i = 0; i < sizeof expansions / sizeof expansions[0]; i++) {
        expansions[i](g, x, i < 4 ? column : row);
    }
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) {
        reductions[i](g, x, 1, true);
    }
    npu_block_cast(g, x, NPU_F16);
    npu_block_transpose(g, column, 0, 1);
    npu_block_reshape(g, column, dims + 1, 1);
    npu_block_move(g, x, NPU_SPACE_L1, true);
    npu_value left = npu_block_create_tile(g, NPU_F32, 3, batches, NPU_SPACE_UB);
    npu_value right = npu_block_create_tile(g, NPU_F32, 3, (const int64_t[]){ 1, 8, 16 }, NPU_SPACE_UB);
    npu_block_batch_matmul(g, left, right);
    npu_block_matmul_acc(g, npu_block_matmul(g, x, y), y, x);
    npu_system_bar_m(g);
    npu_system_bar_v(g);
    npu_value stored = npu_block_store(g, x, zero, dims, 2, npu_block_store(g, y, zero, dims, 2, b));
    NPU_CHECK_EQ(npu_value_tile_root(g, stored).id, b.id);
    NPU_CHECK_EQ(npu_value_tile_root(g, x).id, x.id);
    npu_output(g, "out", stored);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_graph_print(g, &text);
    NPU_CHECK_GOLDEN("tile_builders.txt", text.data);
    npu_text_free(&text);
    npu_graph_destroy(g);
}

static void test_place(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *program = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, NULL);
    npu_value t = npu_block_create_tile(program, NPU_F32, 1, DIMS(8), NPU_SPACE_UB);
    npu_value l = npu_block_create_tile(program, NPU_F32, 1, DIMS(8), NPU_SPACE_L1);
    NPU_CHECK_STATUS(npu_value_set_place(program, t, NPU_SPACE_UB, 64), NPU_OK);
    NPU_CHECK_EQ(npu_value_spec(program, t)->offset, 64);
    NPU_CHECK_STATUS(npu_value_set_place(program, t, NPU_SPACE_UB, -1), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_value_set_place(program, t, NPU_SPACE_L1, 0), NPU_ERR_SHAPE);
    NPU_CHECK_STATUS(npu_value_set_place(program, l, NPU_SPACE_L1, 0), NPU_OK);
    NPU_CHECK_STATUS(npu_value_set_place(program, npu_block_get_block_idx(program), NPU_SPACE_UB, 0), NPU_ERR_CLASS);
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
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2147483648, body=graph 0)",
      NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], body=graph 0)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2, buffer_size=0, body=graph 0)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2, body=graph 1)", NPU_ERR_CLASS },
    { "y = block.store(t, [0], [4], b)\noutput y = y\n", "npu.launch([p, q], blocks=2)", NPU_ERR_ATTRIBUTE },
    { "y = block.store(t, [0], [4], b)\noutput y = a\n", "npu.launch([p, q], blocks=2, body=graph 0)", NPU_ERR_GRAPH },
    { "y = block.store(t, [0], [4], b)\nu = block.store(t, [0], [4], b)\noutput y = y\noutput u = u\n",
      "npu.launch([p, q], blocks=2, body=graph 0)", NPU_ERR_GRAPH },
    { "output y = t\n", "npu.launch([p, q], blocks=2, body=graph 0)", NPU_ERR_GRAPH },
};

static void test_launch_rejections(void)
{
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_text_printf(&text, "graph main\nchild program tile\ninput a : f32[4]\ninput b : f32[4]\nt = block.load(a, [0], [4])\n%send\n"
                               "child other\nend\ninput p : f32[4]\ninput q : f32[4]\ninput r : f32[5]\nz = %s\noutput z = z\n",
                        launches[i].body, launches[i].call);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), NULL), launches[i].status);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

/* ---- running ---- */

/* A graph of the text form, run on the CPU: inputs x0, x1 ... and outputs by index. */
typedef struct run_result {
    float out[1 << 14], second[1 << 14];
    npu_status status;
    char message[256];
} run_result;

static run_result result;

static void run_graph(const npu_graph *g, const npu_backend *backend, const npu_parallel *parallel, float *const *in)
{
    npu_plan_desc plan_desc = { .backends = &backend, .num_backends = 1 };
    npu_exec_desc exec_desc = { .parallel = parallel };
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    memset(&result, 0, sizeof result);
    result.status = npu_plan_create(&plan, g, &plan_desc, &diag);
    result.status = result.status ? result.status : npu_program_create(&program, plan, &diag);
    result.status = result.status ? result.status : npu_exec_create(&exec, program, &exec_desc, &diag);
    for (uint32_t i = 0; result.status == NPU_OK && i < npu_graph_num_inputs(g); i++) {
        size_t size;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        result.status = npu_test_input_at(exec, i, in[i], size);
    }
    if (result.status == NPU_OK) {
        size_t size = 0;
        const void *out;
        result.status = npu_exec_run(exec);
        diag = *npu_exec_diag(exec);
        out = npu_exec_output(exec, 0, &size);
        if (out && size <= sizeof result.out) {
            memcpy(result.out, out, size);
        }
        out = npu_exec_output(exec, 1, &size);
        if (out && size <= sizeof result.second) {
            memcpy(result.second, out, size);
        }
    }
    memcpy(result.message, diag.message, sizeof result.message);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
}

/* The example of the document: sqrt(a b), summed along rows, for a tile of 32 rows per block. */
static void test_document_example(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *p;
    uint32_t body;
    npu_value a = npu_input(g, "a", F32(128, 128)), b = npu_input(g, "b", F32(128, 128)), out = npu_input(g, "output", F32(128, 1));
    static float xa[128 * 128], xb[128 * 128], y[128];
    float *in[] = { xa, xb, y };
    NPU_ITEM("S3.59");
    NPU_ITEM("S3.60");
    NPU_ITEM("S3.61");
    p = npu_graph_add_child(g, "block_computation", NPU_LEVEL_TILE, &body);
    npu_value pa = npu_input(p, "input_a", F32(128, 128)), pb = npu_input(p, "input_b", F32(128, 128));
    npu_value po = npu_input(p, "output", F32(128, 1));
    npu_tile_index zero[] = { { 0, { 0 } }, { 0, { 0 } } };
    npu_value ta = npu_block_load(p, pa, zero, DIMS(32, 128), 2, NPU_SPACE_UB);
    npu_value tb = npu_block_load(p, pb, zero, DIMS(32, 128), 2, NPU_SPACE_UB);
    npu_value sum = npu_block_sum(p, npu_block_sqrt(p, npu_block_mul(p, ta, tb)), 1, true);
    npu_output(p, "result", npu_block_store(p, sum, zero, DIMS(32, 1), 2, po));
    NPU_CHECK_EQ(npu_value_spec(p, ta)->cls, NPU_CLASS_TILE);
    NPU_CHECK_EQ(npu_value_spec(p, sum)->dims[1], 1);
    NPU_CHECK_EQ(npu_value_spec(p, npu_graph_output(p, 0))->cls, NPU_CLASS_TENSOR);
    npu_output(g, "result", npu_op_result(g, npu_tile_launch(g, (npu_value[]){ a, b, out }, 3, 1, 0, body), 0));
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    for (int i = 0; i < 128 * 128; i++) {
        xa[i] = (float)(i % 7 + 1);
        xb[i] = (float)(i % 5);
    }
    for (int i = 0; i < 128; i++) {
        y[i] = -1;
    }
    run_graph(g, npu_ref_backend(), NULL, in);
    NPU_CHECK_STATUS(result.status, NPU_OK);
    NPU_CHECK_STR(result.message, "");
    for (int row = 0; row < 128; row++) {
        double expected = row < 32 ? 0 : -1; /* the rest of the output is as it was */
        for (int i = 0; i < 128 && row < 32; i++) {
            expected += sqrt((double)xa[row * 128 + i] * (double)xb[row * 128 + i]);
        }
        NPU_CHECK_NEAR(result.out[row], expected, 1e-3);
    }
    npu_graph_destroy(g);
}

/* A tile op on t f32[4,8], a = |t|, c = t as i32, s f32[4,1], h f32[1,8], r = 3 in a register, l and w = t and its transpose, w2 = 2 w,
   m = l w: name, line, columns of the result, its element in row k and column j. */
#define TILE_OPS(X)                                                                                    \
    X(add, "block.add(t, s)", 8, t[k * 8 + j] + s[k])                                                 \
    X(sub, "block.sub(t, h)", 8, t[k * 8 + j] - h[j])                                                 \
    X(mul, "block.mul(t, t)", 8, t[k * 8 + j] * t[k * 8 + j])                                         \
    X(div, "block.div(t, t)", 8, 1)                                                                   \
    X(maximum, "block.maximum(t, s)", 8, fmax(t[k * 8 + j], s[k]))                                    \
    X(minimum, "block.minimum(t, h)", 8, fmin(t[k * 8 + j], h[j]))                                    \
    X(adds, "block.adds(t, 2)", 8, t[k * 8 + j] + 2)                                                  \
    X(subs, "block.subs(t, r)", 8, t[k * 8 + j] - 3)                                                  \
    X(muls, "block.muls(t, r)", 8, t[k * 8 + j] * 3)                                                  \
    X(divs, "block.divs(t, 4)", 8, t[k * 8 + j] / 4)                                                  \
    X(maximums, "block.maximums(t, 0.5)", 8, fmax(t[k * 8 + j], 0.5))                                 \
    X(minimums, "block.minimums(t, r)", 8, fmin(t[k * 8 + j], 3))                                     \
    X(cmp, "block.cmp(t, s, cmp_type=2)", 8, t[k * 8 + j] < s[k])                                     \
    X(float_registers, "block.muls(t, q)", 8, t[k * 8 + j] * 0.75)                                    \
    X(cmps, "block.cmps(t, r, cmp_type=3)", 8, t[k * 8 + j] <= 3)                                     \
    X(sqrt, "block.sqrt(a)", 8, sqrt(fabs(t[k * 8 + j])))                                             \
    X(rsqrt, "block.rsqrt(a)", 8, 1 / sqrt(fabs(t[k * 8 + j])))                                       \
    X(exp, "block.exp(t)", 8, exp(t[k * 8 + j]))                                                      \
    X(log, "block.log(a)", 8, log(fabs(t[k * 8 + j])))                                                \
    X(neg, "block.neg(t)", 8, -t[k * 8 + j])                                                          \
    X(recip, "block.recip(t)", 8, 1 / t[k * 8 + j])                                                   \
    X(relu, "block.relu(t)", 8, fmax(t[k * 8 + j], 0))                                                \
    X(cast, "block.cast(c, target_type=f32)", 8, rint(t[k * 8 + j]))                                  \
    X(sum_row, "block.sum(t, axis=1, keepdim=true)", 1, sum_of(t + k * 8, 8, 1))                      \
    X(sum_col, "block.sum(t, axis=0)", 8, sum_of(t + j, 4, 8))                                        \
    X(max, "block.max(t, axis=-1)", 1, most(t + k * 8, 8, 1, 1))                                      \
    X(min, "block.min(t, axis=0, keepdim=true)", 8, most(t + j, 4, 8, -1))                            \
    X(row_sum, "block.row_sum(t, a)", 1, sum_of(t + k * 8, 8, 1))                                     \
    X(row_max, "block.row_max(t, a)", 1, most(t + k * 8, 8, 1, 1))                                    \
    X(row_min, "block.row_min(t, a)", 1, most(t + k * 8, 8, 1, -1))                                   \
    X(row_expand, "block.row_expand(t, s)", 8, s[k])                                                  \
    X(row_expand_add, "block.row_expand_add(t, s)", 8, t[k * 8 + j] + s[k])                           \
    X(row_expand_sub, "block.row_expand_sub(t, s)", 8, t[k * 8 + j] - s[k])                           \
    X(row_expand_mul, "block.row_expand_mul(t, s)", 8, t[k * 8 + j] * s[k])                           \
    X(row_expand_div, "block.row_expand_div(t, s)", 8, t[k * 8 + j] / s[k])                           \
    X(col_expand, "block.col_expand(t, h)", 8, h[j])                                                  \
    X(col_expand_add, "block.col_expand_add(t, h)", 8, t[k * 8 + j] + h[j])                           \
    X(col_expand_sub, "block.col_expand_sub(t, h)", 8, t[k * 8 + j] - h[j])                           \
    X(col_expand_mul, "block.col_expand_mul(t, h)", 8, t[k * 8 + j] * h[j])                           \
    X(col_expand_div, "block.col_expand_div(t, h)", 8, t[k * 8 + j] / h[j])                           \
    X(expands, "block.expands(t, r)", 8, 3)                                                           \
    X(full, "block.full([4, 8], r, dtype=f32)", 8, 3)                                                 \
    X(create_tile, "block.create_tile([4, 8], dtype=f32)", 8, 0)                                      \
    X(ub_copy, "block.ub_copy(t)", 8, t[k * 8 + j])                                                   \
    X(reshape, "block.reshape(t, [8, 4])", 8, t[k * 8 + j])                                           \
    X(transpose, "block.transpose(t, 0, 1)", 4, t[j * 8 + k])                                         \
    X(view, "block.view(t, [2, 3], [one, 4])", 3, t[(k + 1) * 8 + j + 4])                             \
    X(move, "block.move(t, target_memory=3, transpose=true)", 4, t[j * 8 + k])                        \
    X(matmul, "block.matmul(l, w)", 4, product(t + k * 8, t + j * 8, 8))                              \
    X(matmul_acc, "block.matmul_acc(m, l, w2)", 4, 3 * product(t + k * 8, t + j * 8, 8))              \
    X(batch_matmul, "block.batch_matmul(l2, w)", 4, product(t + k * 8, t + j * 8, 8))

static double sum_of(const double *x, int n, int stride)
{
    double y = 0;
    for (int i = 0; i < n; i++) {
        y += x[i * stride];
    }
    return y;
}

static double most(const double *x, int n, int stride, double sign)
{
    double y = sign * x[0];
    for (int i = 1; i < n; i++) {
        y = fmax(y, sign * x[i * stride]);
    }
    return sign * y;
}

static double product(const double *a, const double *b, int n)
{
    double y = 0;
    for (int i = 0; i < n; i++) {
        y += a[i] * b[i];
    }
    return y;
}

#define WANT(name, line, cols, expression)                                                              \
    static double want_##name(const double *t, const double *s, const double *h, int k, int j)          \
    {                                                                                                   \
        (void)t, (void)s, (void)h, (void)k, (void)j;                                                    \
        return expression;                                                                              \
    }
TILE_OPS(WANT)

#define ROW(name, line, cols, expression) { line, cols, want_##name },
static const struct tile_op {
    const char *line;
    int cols;
    double (*want)(const double *t, const double *s, const double *h, int k, int j);
} tile_ops[] = { TILE_OPS(ROW) };

/* The type of y in a program that ends with "y = line", and the program whole: y goes to an output of its elements. */
static npu_graph *tile_op_graph(const char *line, size_t *len)
{
    static const char *const head =
        "child p tile\ninput xt : f32[4,8]\ninput xs : f32[4,1]\ninput xh : f32[1,8]\n%s"
        "t = block.load(xt, [0, 0], [4, 8])\ns = block.load(xs, [0, 0], [4, 1])\nh = block.load(xh, [0, 0], [1, 8])\n"
        "a = block.abs(t)\nc = block.cast(t, target_type=i32, mode=1)\nr = arith.constant(value=3, dtype=i64)\n"
        "one = arith.constant(value=1, dtype=u8)\nf = arith.constant(value=0.25, dtype=f32)\nn = arith.sitofp(r, dtype=f32)\nq = arith.mulf(n, f)\nl = block.move(t, target_memory=4)\nw = block.move(t, target_memory=5, transpose=true)\nm = block.matmul(l, w)\nt2 = block.muls(t, 2)\n"
        "l2 = block.reshape(l, [2, 2, 8])\n"
        "w2 = block.move(t2, target_memory=5, transpose=true)\ny = %s\n";
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_text_printf(&text, "graph main\n");
    npu_text_printf(&text, head, "", line);
    npu_text_printf(&text, "end\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    npu_spec_len(npu_value_spec(npu_graph_child(g, 0), npu_graph_find(npu_graph_child(g, 0), "y")), len);
    npu_graph_destroy(g);
    npu_text_free(&text);
    npu_text_printf(&text, "graph main\n");
    char output[64];
    snprintf(output, sizeof output, "input out : f32[%u]\n", (unsigned)*len);
    npu_text_printf(&text, head, output, line);
    npu_text_printf(&text, "z = block.store(y, [0], [%u], out)\noutput z = z\nend\ninput t : f32[4,8]\ninput s : f32[4,1]\n"
                           "input h : f32[1,8]\ninput o : f32[%u]\nz = npu.launch([t, s, h, o], blocks=1, body=graph 0)\noutput z = z\n",
                    (unsigned)*len, (unsigned)*len);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), NULL), NPU_OK);
    npu_text_free(&text);
    return g;
}

/* ---- a tile op of the program's own, with a kernel of its own beside the built-in ones ---- */

static npu_status type_tile(npu_deduce *d) { return npu_deduce_add_result(d, npu_deduce_spec(d, "tile")); }

static npu_status launch_square(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const float *x = l->x[0];
    float *y = l->y[0];
    (void)part, (void)parts;
    for (int64_t i = 0; i < l->in[0].dims[0] * l->in[0].dims[1]; i++) {
        y[i] = x[i] * x[i];
    }
    return NPU_OK;
}

static const char square_program[] =
    "graph main\nchild body tile\n  input x : f32[8,4]\n  input y : f32[8,4]\n  four = arith.constant(value=4, dtype=u64)\n"
    "  b = block.get_block_idx()\n  row = arith.muli(b, four)\n  t = block.load(x, offsets=[row, 0], shapes=[4, 4])\n"
    "  system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n  system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n"
    "  s = my.square(t)\n"
    "  system.sync_src(set_pipe=4, wait_pipe=2, event_id=0)\n  system.sync_dst(set_pipe=4, wait_pipe=2, event_id=0)\n"
    "  z = block.store(s, offsets=[row, 0], shapes=[4, 4], output_tensor=y)\n  output z = z\nend\n"
    "input x : f32[8,4]\ninput y : f32[8,4]\nz = npu.launch([x, y], blocks=2, body=graph 0)\nw = aten.relu.default(z)\noutput w = w\n";

static void test_own_tile_op(void)
{
    static const npu_op_row square_row = { 0, NPU_ON_V, type_tile, "square(Tile tile) -> Tile", "tile times itself", NULL };
    static float x[32], y[32];
    npu_registry *registry = NULL;
    npu_backend *own = NULL;
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag;
    npu_graph_desc desc = { 0 };
    npu_ref_desc ref = { 0 };
    fill(x, 32, 3);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "my", &square_row, &diag), NPU_OK);
    npu_kernel kernel = { 0 };
    kernel.kind = npu_registry_find(registry, "my.square")->kind, kernel.variant = "plain", kernel.launch = launch_square;
    npu_kernel_table table = { &kernel, 1, NPU_IR_VERSION };
    desc.registry = registry;
    NPU_CHECK_STATUS(npu_graph_parse(&g, square_program, sizeof square_program - 1, &desc, &diag), NPU_OK);
    const npu_backend *built_in = npu_ref_backend(), *backend;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &built_in, 1, &diag), NPU_ERR_NOT_IMPLEMENTED);
    ref.tables = &table, ref.num_tables = 1, ref.with_built_in = true; /* the relu is a built-in one's */
    NPU_CHECK_STATUS(npu_ref_create(&own, &ref), NPU_OK);
    backend = own;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &backend, 1, &diag), NPU_OK);
    npu_test_input(exec, "x", x, sizeof x);
    npu_test_input(exec, "y", y, sizeof y);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const float *z = (const float *)npu_exec_output(exec, 0, NULL);
    NPU_CHECK(z != NULL);
    for (int i = 0; z && i < 32; i++) {
        NPU_CHECK(z[i] == x[i] * x[i]);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_ref_destroy(own);
    npu_registry_destroy(registry);
}

static void test_tile_ops(void)
{
    static float ft[32], fs[4], fh[8], fy[32];
    float *in[] = { ft, fs, fh, fy };
    double t[32], s[4], h[8];
    npu_backend *plain = NULL;
    npu_ref_desc desc = { .variant = "plain" };
    NPU_ITEM("R3.22");
    fill(ft, 32, 5);
    fill(fs, 4, 6);
    fill(fh, 8, 7);
    for (int i = 0; i < 32; i++) {
        t[i] = (double)ft[i];
        s[i % 4] = (double)fs[i % 4];
        h[i % 8] = (double)fh[i % 8];
    }
    NPU_CHECK_STATUS(npu_ref_create(&plain, &desc), NPU_OK);
    for (size_t i = 0; i < 2 * sizeof tile_ops / sizeof tile_ops[0]; i++) {
        const struct tile_op *op = &tile_ops[i / 2];
        size_t len = 0;
        npu_graph *g = tile_op_graph(op->line, &len);
        run_graph(g, i % 2 ? npu_ref_backend() : plain, NULL, in);
        NPU_CHECK_STR(result.message, "");
        for (int k = 0; k < (int)len; k++) {
            double want = op->want(t, s, h, k / op->cols, k % op->cols);
            if (fabs((double)result.out[k] - want) > 1e-5 * (1 + fabs(want))) {
                printf("%s [%d]\n", op->line, k);
                NPU_CHECK_NEAR(result.out[k], want, 1e-5 * (1 + fabs(want)));
                break;
            }
        }
        npu_graph_destroy(g);
    }
    npu_ref_destroy(plain);
}

/* Registers: block numbers and what arith makes of them, in offsets and as numbers. */
static void test_registers(void)
{
    static const char text[] =
        "graph main\nchild p tile\ninput x : f32[6,4]\ninput out : f32[6,4]\nb = block.get_block_idx()\nn = block.get_block_num()\n"
        "one = arith.constant(value=1, dtype=u64)\ntwo = arith.constant(value=2, dtype=u64)\nlast = arith.subi(n, one)\n"
        "mirror = arith.subi(last, b)\nrow = arith.muli(b, two)\nodd = arith.addi(row, one)\nhalf = arith.divsi(odd, two)\n"
        "rest = arith.remsi(odd, two)\nlow = arith.minsi(half, last)\nhigh = arith.maxsi(rest, b)\nfrom = arith.muli(mirror, two)\n"
        "t = block.load(x, [from, 0], [2, 4])\nu = block.muls(t, n)\nv = block.adds(u, low)\nw = block.adds(v, high)\n"
        "y = block.store(w, [row, 0], [2, 4], out)\noutput y = y\nend\n"
        "input x : f32[6,4]\ninput o : f32[6,4]\ny = npu.launch([x, o], blocks=3, body=graph 0)\noutput y = y\n";
    static float x[24], o[24];
    float *in[] = { x, o };
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_parallel *threads = NULL;
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }), NPU_OK);
    fill(x, 24, 3);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    for (int run = 0; run < 2; run++) {
        run_graph(g, npu_ref_backend(), run ? threads : NULL, in);
        NPU_CHECK_STR(result.message, "");
        for (int i = 0; i < 24; i++) {
            int b = i / 8;
            NPU_CHECK_NEAR(result.out[i], x[(2 - b) * 8 + i % 8] * 3 + (float)b + (float)(b > 1 ? b : 1), 1e-5);
        }
    }
    npu_threads_destroy(threads);
    npu_graph_destroy(g);
}

/* Example programs on the CPU: the aten result, and the same bits at any number of threads. */
static void check_example(npu_graph *g, uint32_t num_inputs)
{
    static float data[5][4096], first[4096];
    float *in[5];
    npu_parallel *threads = NULL;
    size_t len = 0;
    for (uint32_t i = 0; i < num_inputs; i++) {
        fill(data[i], 4096, i + 3);
        in[i] = data[i];
    }
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_spec_len(npu_value_spec(g, npu_graph_output(g, 0)), &len);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }), NPU_OK);
    run_graph(g, npu_ref_backend(), NULL, in);
    NPU_CHECK_STR(result.message, "");
    memcpy(first, result.out, len * sizeof *first);
    for (size_t i = 0; i < len; i++) {
        NPU_CHECK_NEAR(result.out[i], result.second[i], 1e-4);
    }
    run_graph(g, npu_ref_backend(), threads, in);
    NPU_CHECK_BYTES(first, result.out, len * sizeof *first);
    npu_threads_destroy(threads);
    npu_graph_destroy(g);
}

static void test_examples(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    uint32_t body;
    int64_t cols = 32;
    npu_value v[5] = { npu_input(g, "x", F32(60, 32)), npu_input(g, "out", F32(60, 32)) };
    build_softmax(g, 5, 3, 4, 32, false, &body);
    npu_output(g, "y", npu_op_result(g, npu_tile_launch(g, v, 2, 5, 0, body), 0));
    npu_output(g, "z", npu_softmax(g, v[0], 1));
    check_example(g, 2);
    g = npu_graph_create(npu_test_graph_desc());
    v[0] = npu_input(g, "a", F32(40, 48));
    v[1] = npu_input(g, "b", F32(48, 32));
    v[2] = npu_input(g, "c", F32(40, 32));
    build_matmul(g, 5, 3, 8, 16, 32, &body);
    npu_output(g, "y", npu_op_result(g, npu_tile_launch(g, v, 3, 5, 0, body), 0));
    npu_output(g, "z", npu_matmul(g, v[0], v[1]));
    check_example(g, 3);
    g = npu_graph_create(npu_test_graph_desc());
    for (int i = 0; i < 5; i++) {
        v[i] = npu_input(g, NULL, i == 2 || i == 3 ? F32(1, 32) : F32(20, 32));
    }
    build_add_layer_norm(g, 5, 4, 32, true, &body);
    npu_output(g, "y", npu_op_result(g, npu_tile_launch(g, v, 5, 5, 0, body), 0));
    npu_output(g, "z", npu_layer_norm(g, npu_add(g, v[0], v[1]), npu_reshape(g, v[2], &cols, 1), npu_reshape(g, v[3], &cols, 1), 1, 1e-5));
    check_example(g, 5);
}

/* The program in the manual of the section. */
static void test_manual(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    uint32_t body;
    npu_spec spec = F32(12, 8);
    int64_t rows = 12, blocks = 4, shape[2] = { 3, 8 };
    npu_graph *p = npu_graph_add_child(g, "double", NPU_LEVEL_TILE, &body);
    npu_value x = npu_input(p, "x", spec), y = npu_input(p, "y", spec);
    npu_value step = npu_arith_constant(p, NPU_U64, npu_scalar_int(rows / blocks));
    npu_value row = npu_arith_binary(p, NPU_ARITH_MULI, npu_block_get_block_idx(p), step);
    npu_tile_index at[2] = { { 0, row }, { 0, { 0 } } };
    npu_value t = npu_block_load(p, x, at, shape, 2, NPU_SPACE_UB);
    npu_system_sync_src(p, NPU_PIPE_MTE2, NPU_PIPE_V, 0);
    npu_system_sync_dst(p, NPU_PIPE_MTE2, NPU_PIPE_V, 0);
    t = npu_block_muls(p, t, npu_scalar_float(2));
    npu_system_sync_src(p, NPU_PIPE_V, NPU_PIPE_MTE3, 0);
    npu_system_sync_dst(p, NPU_PIPE_V, NPU_PIPE_MTE3, 0);
    npu_output(p, "y", npu_block_store(p, t, at, shape, 2, y));
    npu_value args[2] = { npu_input(g, "x", spec), npu_input(g, "y", spec) };
    npu_output(g, "y", npu_op_result(g, npu_tile_launch(g, args, 2, blocks, 0, body), 0));
    npu_output(g, "z", npu_add(g, args[0], args[0]));
    npu_tile_desc desc = { .blocks = blocks };
    NPU_CHECK_STATUS(npu_tile_check(p, &desc, NULL, NULL), NPU_OK);
    check_example(g, 2);
}

/* Blocks that add to one place of a tensor: each sees what the one before it left, at any number of threads. Sync ops
   order nothing on the CPU, and change nothing. */
static void test_blocks_in_order(void)
{
    static const char text[] =
        "graph main\nchild p tile\ninput x : f32[8]\ninput o : f32[8]\nt = block.load(x, [0], [8])\nu = block.load(o, [0], [8])\n"
        "system.bar_v()\nsystem.bar_m()\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n"
        "v = block.muls(u, 0.5)\nw = block.add(v, t)\nsystem.bar_all()\ny = block.store(w, [0], [8], o)\noutput y = y\nend\n"
        "input x : f32[8]\ninput o : f32[8]\ny = npu.launch([x, o], blocks=100, body=graph 0)\noutput y = y\n";
    static float x[8] = { 1, 1, 1, 1, 1, 1, 1, 1 }, o[8];
    float *in[] = { x, o };
    npu_graph *g = NULL;
    npu_parallel *threads = NULL;
    NPU_ITEM("S3.68");
    NPU_ITEM("S3.69");
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 4 }), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    for (uint32_t op = 3; op <= 6; op++) {
        NPU_CHECK_EQ(npu_op_definition(npu_graph_child(g, 0), (npu_op){ op })->pipe, NPU_PIPE_S);
    }
    NPU_CHECK_EQ(npu_tile_pipe(npu_graph_child(g, 0), (npu_op){ 5 }), NPU_PIPE_S);
    for (int run = 0; run < 3; run++) {
        run_graph(g, npu_ref_backend(), run ? threads : NULL, in);
        NPU_CHECK_STR(result.message, "");
        for (int i = 0; i < 8; i++) {
            NPU_CHECK(result.out[i] == 2.0f);
        }
    }
    npu_threads_destroy(threads);
    npu_graph_destroy(g);
}

static void *door_alloc(void *ctx, uint64_t bytes) { (void)ctx; return malloc((size_t)bytes); }
static void door_free(void *ctx, void *handle) { (void)ctx; free(handle); }
static npu_status door_move(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes)
{
    (void)ctx;
    memcpy((char *)to + offset, from, (size_t)bytes);
    return NPU_OK;
}
static npu_status door_move_back(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes)
{
    (void)ctx;
    memcpy(to, (char *)from + offset, (size_t)bytes);
    return NPU_OK;
}
static npu_status door_supports(void *ctx, const npu_op_info *op, npu_support *answer) { (void)ctx, (void)op, (void)answer; return NPU_OK; }
static npu_status door_call(void *ctx, const npu_call *call)
{
    (void)ctx, (void)call;
    return NPU_ERR_NOT_IMPLEMENTED;
}

/* A device that takes ops one by one does not get to see a program: the CPU runs it. */
static void test_small_door(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_backend *door = NULL;
    npu_accel accel = { .size = sizeof accel, .name = "npu0", .alloc = door_alloc, .free = door_free, .upload = door_move, .download = door_move_back, .op_call = door_call,
                        .supports = door_supports };
    uint32_t body, reason = 0;
    npu_value v[2] = { npu_input(g, "x", F32(24, 32)), npu_input(g, "out", F32(24, 32)) };
    build_softmax(g, 2, 3, 4, 32, false, &body);
    npu_op launch = npu_tile_launch(g, v, 2, 2, 0, body), relu = npu_value_producer(g, npu_relu(g, npu_op_result(g, launch, 0)), NULL);
    npu_output(g, "y", npu_op_result(g, relu, 0));
    NPU_CHECK_STATUS(npu_accel_create(&door, &accel, NULL), NPU_OK);
    const npu_backend *backends[] = { door, npu_ref_backend() };
    npu_plan_desc desc = { .backends = backends, .num_backends = 2 };
    npu_plan *plan = NULL;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_plan_op_backend(plan, launch, &reason, NULL), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);
    NPU_CHECK_EQ(npu_plan_op_backend(plan, relu, &reason, NULL), 0);
    npu_plan_destroy(plan);
    npu_accel_destroy(door);
    npu_graph_destroy(g);
}

/* What only running shows: an offset from a register, and memory that is too small. */
static void test_run_failures(void)
{
    static const struct {
        const char *line, *launch;
        npu_status status;
        const char *words;
    } rows[] = {
        { "t = block.load(x, [b], [8])", "blocks=2", NPU_OK, "" },
        { "t = block.load(x, [b], [8])", "blocks=10", NPU_ERR_RANGE, "" },
        { "t = block.load(x, [b], [8])", "blocks=2, buffer_size=31", NPU_ERR_OVERFLOW, "memory ub" },
        { "t = block.load(x, [b], [8], target_memory=3)", "blocks=2, buffer_size=31", NPU_OK, "" },
    };
    static float x[16], y[16];
    float *in[] = { x, y };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_text_printf(&text, "graph main\nchild p tile\ninput x : f32[16]\ninput o : f32[16]\nb = block.get_block_idx()\n%s\n"
                               "y = block.store(t, [0], [8], o)\noutput y = y\nend\ninput x : f32[16]\ninput o : f32[16]\n"
                               "y = npu.launch([x, o], %s, body=graph 0)\noutput y = y\n", rows[i].line, rows[i].launch);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), NULL), NPU_OK);
        run_graph(g, npu_ref_backend(), NULL, in);
        NPU_CHECK_STATUS(result.status, rows[i].status);
        NPU_CHECK(strstr(result.message, rows[i].words) != NULL);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

/* Tiles share memory only when they must, and never while both are used. */
static void test_plan(void)
{
    static const char body[] =
        "input x : f32[64]\na = block.load(x, [0], [64])\nb = block.neg(a)\nc = block.neg(b)\nd = block.reshape(c, [8, 8])\n"
        "e = block.neg(d)\nf = block.load(x, [0], [64], target_memory=3)\n";
    npu_tile_place p[16], q[16];
    npu_tile_desc desc = { .sizes = { [NPU_SPACE_UB] = 512 } };
    npu_diag diag = { 0 };
    npu_status status;
    npu_graph *g = parse_program(body, &status), *program = npu_graph_child(g, 0);
    NPU_CHECK_STATUS(npu_tile_plan(program, NULL, p, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_tile_plan(program, &desc, q, &diag), NPU_OK);
    NPU_CHECK_EQ(p[1].space, 0);
    for (uint32_t id = 2; id <= 4; id++) {
        NPU_CHECK_EQ(p[id].space, NPU_SPACE_UB);
        NPU_CHECK_EQ(p[id].size, 256);
        NPU_CHECK_EQ(p[id].offset, (id - 2) * 256);
        NPU_CHECK_EQ(q[id].offset, id % 2 * 256);
    }
    NPU_CHECK_EQ(p[5].root, 4);
    NPU_CHECK_EQ(p[5].offset, p[4].offset);
    NPU_CHECK_EQ(p[7].space, NPU_SPACE_L1);
    NPU_CHECK_EQ(p[7].offset, 0);
    desc.sizes[NPU_SPACE_UB] = 511;
    NPU_CHECK_STATUS(npu_tile_plan(program, &desc, q, &diag), NPU_ERR_OVERFLOW);
    NPU_CHECK_EQ(diag.op, 2);
    NPU_CHECK_STATUS(npu_value_set_place(program, npu_graph_find(program, "b"), NPU_SPACE_UB, 8), NPU_OK);
    NPU_CHECK_STATUS(npu_tile_plan(program, NULL, q, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_value_set_place(program, npu_graph_find(program, "b"), NPU_SPACE_UB, 196608), NPU_OK);
    NPU_CHECK_STATUS(npu_tile_plan(program, NULL, q, NULL), NPU_ERR_OVERFLOW);
    NPU_CHECK_STATUS(npu_tile_plan(g, NULL, q, NULL), NPU_ERR_CLASS);
    npu_graph_destroy(g);
}

/* ---- the checker ---- */

enum { MOST_FOUND = 64 };
typedef struct findings {
    npu_hazard list[MOST_FOUND];
    int count;
} findings;

static void find(void *ctx, const npu_hazard *h)
{
    findings *f = ctx;
    if (f->count < MOST_FOUND) {
        f->list[f->count] = *h;
    }
    f->count++;
}

/* Programs on x f32[8,16] and o f32[8,16]; what is found first, and the lines (from 1) of its two ops, 0 = none. */
static const struct hazard_case {
    const char *body;
    uint32_t kind;
    uint32_t op, other;
} hazard_cases[] = {
    { "t = block.load(x, [0, 0], [4, 16])\nu = block.neg(t)\n", NPU_HAZARD_READ, 2, 1 },
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.bar_all()\nu = block.neg(t)\n", 0, 0, 0 },
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.bar_v()\nu = block.neg(t)\n", NPU_HAZARD_READ, 3, 1 },
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nu = block.neg(t)\n", 0, 0, 0 },
    /* the wait comes too late, or the set too early */
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nu = block.neg(t)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n", NPU_HAZARD_READ, 3, 1 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nt = block.load(x, [0, 0], [4, 16])\n"
      "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nu = block.neg(t)\n", NPU_HAZARD_READ, 4, 2 },
    /* through a third pipe */
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.sync_src(set_pipe=1, wait_pipe=2, event_id=0)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=2, event_id=0)\nsystem.sync_src(set_pipe=2, wait_pipe=4, event_id=1)\n"
      "system.sync_dst(set_pipe=2, wait_pipe=4, event_id=1)\nu = block.neg(t)\n", 0, 0, 0 },
    /* through the scalar unit, which then issues what follows */
    { "t = block.load(x, [0, 0], [4, 16])\nsystem.sync_src(set_pipe=1, wait_pipe=5, event_id=0)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=5, event_id=0)\nu = block.neg(t)\n", 0, 0, 0 },
    /* flags */
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n", NPU_HAZARD_NO_WAIT, 1, 0 },
    { "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n", NPU_HAZARD_DEADLOCK, 1, 0 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=1)\n", NPU_HAZARD_DEADLOCK, 2, 0 },
    { "system.sync_dst(set_pipe=1, wait_pipe=5, event_id=0)\nsystem.sync_src(set_pipe=1, wait_pipe=5, event_id=0)\n", NPU_HAZARD_DEADLOCK, 1, 2 },
    { "system.sync_dst(set_pipe=4, wait_pipe=1, event_id=0)\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_src(set_pipe=4, wait_pipe=1, event_id=0)\n", NPU_HAZARD_DEADLOCK, 1, 4 },
    { "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.bar_all()\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n",
      NPU_HAZARD_DEADLOCK, 1, 3 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\n"
      "system.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n", NPU_HAZARD_PENDING, 2, 1 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n"
      "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n", NPU_HAZARD_PENDING, 3, 1 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.bar_all()\n"
      "system.sync_src(set_pipe=1, wait_pipe=4, event_id=0)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=0)\n", 0, 0, 0 },
    { "system.sync_src(set_pipe=1, wait_pipe=4, event_id=8)\nsystem.sync_dst(set_pipe=1, wait_pipe=4, event_id=8)\n", NPU_HAZARD_EVENT, 1, 0 },
    /* memory */
    { "t = block.create_tile([4, 16], dtype=f32)\nu = block.neg(t)\n", NPU_HAZARD_UNWRITTEN, 2, 1 },
    { "t = block.full([256, 256], 0, dtype=f32)\n", NPU_HAZARD_OVERFLOW, 1, 0 },
    { "t = block.full([4, 4], 0, dtype=f32)\nu = block.matmul(t, t)\n", NPU_HAZARD_SPACE, 2, 1 },
    { "t = block.full([4, 4], 0, dtype=f32)\nu = block.batch_matmul(t, t)\n", NPU_HAZARD_SPACE, 2, 1 },
    { "t = block.full([4, 16], 0, dtype=f32)\nu = block.move(t, target_memory=4)\n", NPU_HAZARD_SPACE, 2, 1 },
    { "t = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\nsystem.bar_all()\nu = block.neg(t)\n"
      "v = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\n", NPU_HAZARD_OVERWRITE, 4, 3 },
    { "t = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\nu = block.full([2, 4], 0, dtype=f32) : tile f32[2,4] space=ub offset=224\n",
      NPU_HAZARD_WRITES, 2, 1 },
    { "t = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\nu = block.full([2, 4], 0, dtype=f32) : tile f32[2,4] space=ub offset=256\n",
      0, 0, 0 },
    { "t = block.full([4], 1, dtype=f32) : tile f32[4] space=ub offset=0\nu = block.full([4], 2, dtype=f32) : tile f32[4] space=ub offset=0\n"
      "v = block.neg(t)\n", NPU_HAZARD_CLOBBERED, 3, 2 },
    { "t = block.full([4], 1, dtype=f32) : tile f32[4] space=ub offset=0\nu = block.neg(t) : tile f32[4] space=ub offset=0\nv = block.neg(u)\n", 0, 0, 0 },
    { "t = block.full([4, 8], 1, dtype=f32) : tile f32[4,8] space=ub offset=0\nu = block.transpose(t, 0, 1) : tile f32[8,4] space=ub offset=0\n",
      NPU_HAZARD_CLOBBERED, 2, 2 },
    { "t = block.full([4], 1, dtype=f32)\nu = block.full([4], 1, dtype=f32)\nv = block.full([4, 4], 1, dtype=f32)\nw = block.row_sum(v, v)\n"
      "y = block.neg(v)\n", NPU_HAZARD_CLOBBERED, 4, 4 },
    /* a register that the vector unit makes */
    { "t = block.full([4], 1, dtype=f32)\nr = block.sum(t, axis=0)\nu = block.adds(t, r)\n", NPU_HAZARD_READ, 3, 2 },
    { "t = block.full([4], 1, dtype=f32)\nr = block.sum(t, axis=0)\nsystem.sync_src(set_pipe=4, wait_pipe=5, event_id=0)\n"
      "system.sync_dst(set_pipe=4, wait_pipe=5, event_id=0)\nu = block.adds(t, r)\n", 0, 0, 0 },
    /* tensors */
    { "t = block.full([4, 16], 0, dtype=f32)\nsystem.bar_all()\no1 = block.store(t, [0, 0], [4, 16], o)\nu = block.load(o1, [3, 0], [4, 16])\n",
      NPU_HAZARD_READ, 4, 3 },
    { "t = block.full([4, 16], 0, dtype=f32)\nsystem.bar_all()\no1 = block.store(t, [0, 0], [4, 16], o)\nu = block.load(o, [4, 0], [4, 16])\n", 0, 0, 0 },
    { "t = block.full([4, 16], 0, dtype=f32)\nu = block.load(o, [0, 15], [8, 1])\nsystem.sync_src(set_pipe=4, wait_pipe=2, event_id=0)\n"
      "system.sync_dst(set_pipe=4, wait_pipe=2, event_id=0)\no1 = block.store(t, [0, 0], [4, 16], o)\n", NPU_HAZARD_OVERWRITE, 5, 2 },
    { "t = block.full([4, 16], 0, dtype=f32)\nu = block.load(o, [0, 15], [8, 1])\nsystem.bar_all()\no1 = block.store(t, [0, 0], [4, 16], o)\n", 0, 0, 0 },
    { "i = arith.constant(value=6, dtype=i32)\nt = block.load(x, [i, 0], [4, 16])\n", NPU_HAZARD_RANGE, 2, 0 },
    { "i = arith.constant(value=5, dtype=i32)\nj = arith.subi(i, i)\nk = arith.divsi(i, j)\nt = block.load(x, [k, 0], [4, 16])\n", 0, 0, 0 },
};

/* On a pipe that starts an op before the one before is done, an op in place may overwrite what the other still
   reads. */
static void test_hazard_of_overlapping_ops(void)
{
    static const char *const bodies[] = {
        "t = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\nsystem.bar_all()\nu = block.exp(t)\n"
        "v = block.neg(t) : tile f32[4,16] space=ub offset=0\n",
        "t = block.load(x, [0, 0], [4, 16]) : tile f32[4,16] space=ub offset=0\nsystem.bar_all()\nu = block.exp(t)\n"
        "system.bar_v()\nv = block.neg(t) : tile f32[4,16] space=ub offset=0\n",
    };
    for (int i = 0; i < 2; i++) {
        npu_tile_desc desc = { .overlapping = 1u << NPU_PIPE_V };
        npu_text text = npu_text_init(NULL);
        npu_status status;
        findings f = { 0 };
        npu_text_printf(&text, "input x : f32[8,16]\n%s", bodies[i]);
        npu_graph *g = parse_program(text.data, &status);
        NPU_CHECK_STATUS(status, NPU_OK);
        NPU_CHECK_STATUS(npu_tile_check(npu_graph_child(g, 0), &desc, find, &f), i ? NPU_OK : NPU_ERR_GRAPH);
        NPU_CHECK_EQ(f.count, i ? 0 : 1);
        NPU_CHECK(i || (f.list[0].kind == NPU_HAZARD_OVERWRITE && f.list[0].op.id == 4 && f.list[0].other.id == 3));
        NPU_CHECK_STATUS(npu_tile_check(npu_graph_child(g, 0), NULL, NULL, NULL), NPU_OK);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

/* What the checker knows of an op stands in its row, that of one from outside, too. */
static void test_traits_of_tile_ops(void)
{
    static const char in_place[] = "a = block.full([4], 1, dtype=f32) : tile f32[4] space=ub offset=0\n"
                                   "b = block.full([4], 1, dtype=f32) : tile f32[4] space=ub offset=64\n"
                                   "c = my.fold(a, b) : tile f32[4] space=ub offset=0\nd = block.neg(c)\n";
    static const char reads[] = "a = block.full([4], 1, dtype=f32)\nb = block.full([4], 1, dtype=f32)\nc = my.fold(a, b)\nd = block.neg(b)\n";
    static const struct { const char *body; uint32_t traits, pipe, hazard; } cases[] = {
        { in_place, 0, NPU_PIPE_V, NPU_HAZARD_CLOBBERED },    { in_place, NPU_INPLACE, NPU_PIPE_V, 0 },
        { reads, NPU_ON_V, NPU_PIPE_V, 0 },                   { reads, NPU_SCRATCH, NPU_PIPE_V, NPU_HAZARD_CLOBBERED },
        { in_place, NPU_ON_M, NPU_PIPE_M, NPU_HAZARD_SPACE }, { reads, NPU_ON_NONE, NPU_PIPE_NONE, 0 },
    };
    NPU_ITEM("F49");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npu_op_row row = { NPU_NS_USER << 16, cases[i].traits, type_tile, "fold(Tile tile, Tile other) -> Tile", "folded", NULL };
        npu_graph_desc desc = { 0 };
        npu_registry *registry = NULL;
        npu_graph *g = NULL;
        npu_diag diag;
        findings f = { 0 };
        npu_text text = npu_text_init(NULL);
        NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, &diag), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add(registry, "my", &row, &diag), NPU_OK);
        desc.registry = registry;
        npu_text_printf(&text, "graph main\nchild program tile\n%send\n", cases[i].body);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, &desc, &diag), NPU_OK);
        NPU_CHECK_EQ(npu_tile_pipe(npu_graph_child(g, 0), (npu_op){ 3 }), cases[i].pipe);
        npu_tile_check(npu_graph_child(g, 0), NULL, find, &f);
        NPU_CHECK_EQ(f.count ? f.list[0].kind : 0, cases[i].hazard);
        npu_graph_destroy(g);
        npu_registry_destroy(registry);
        npu_text_free(&text);
    }
}

/* The op of line `line` of a body; lines without a result count, too. */
static void test_hazards(void)
{
    for (size_t i = 0; i < sizeof hazard_cases / sizeof hazard_cases[0]; i++) {
        const struct hazard_case *c = &hazard_cases[i];
        npu_text text = npu_text_init(NULL);
        npu_status status;
        findings f = { 0 };
        npu_text_printf(&text, "input x : f32[8,16]\ninput o : f32[8,16]\n%s", c->body);
        npu_graph *g = parse_program(text.data, &status);
        NPU_CHECK_STATUS(status, NPU_OK);
        NPU_CHECK_STATUS(npu_tile_check(npu_graph_child(g, 0), NULL, find, &f), c->kind ? NPU_ERR_GRAPH : NPU_OK);
        if (f.count == 0 ? c->kind != 0 : f.list[0].kind != c->kind || f.list[0].op.id != c->op || f.list[0].other.id != c->other) {
            printf("%sfound: %s\n", c->body, f.list[0].message);
            NPU_CHECK_EQ(f.list[0].kind, c->kind);
            NPU_CHECK_EQ(f.list[0].op.id, c->op);
            NPU_CHECK_EQ(f.list[0].other.id, c->other);
        }
        for (int k = 0; k < f.count && k < MOST_FOUND; k++) { /* both ops by name */
            const npu_graph *p = npu_graph_child(g, 0);
            NPU_CHECK(strstr(f.list[k].message, npu_op_definition(p, f.list[k].op)->name) != NULL);
            NPU_CHECK(!f.list[k].other.id || strstr(f.list[k].message, npu_op_definition(p, f.list[k].other)->name) != NULL);
        }
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

static void test_check_arguments(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *p = npu_graph_add_child(g, "p", NPU_LEVEL_TILE, NULL);
    npu_tile_desc negative = { .blocks = -1 }, events = { .num_events = 65 }, canary = { ._canary = 1 };
    npu_alloc_counter counter = { 0 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_tile_desc desc = { .allocator = &allocator, .blocks = 2 };
    NPU_CHECK_STATUS(npu_tile_check(g, NULL, NULL, NULL), NPU_ERR_CLASS);
    NPU_CHECK_STATUS(npu_tile_check(NULL, NULL, NULL, NULL), NPU_ERR_CLASS);
    NPU_CHECK_STATUS(npu_tile_check(p, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_tile_check(p, &negative, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_tile_check(p, &events, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_tile_check(p, &canary, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STR(npu_hazard_text(99), "");
    uint32_t body;
    p = build_softmax(g, 2, 3, 2, 8, false, &body);
    npu_status status = NPU_ERR_NO_MEMORY;
    for (counter.fail_at = 1; status == NPU_ERR_NO_MEMORY && counter.fail_at < 200; counter.fail_at++) {
        counter.num_calls = 0;
        status = npu_tile_check(p, &desc, NULL, NULL);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    NPU_CHECK(counter.fail_at > 10);
    npu_graph_destroy(g);
}

/* Blocks that meet: the offset of the store is block * step + plus, of the load block * load. */
static void test_blocks(void)
{
    static const struct {
        int step, plus, load;
        const char *tensor;
        int64_t blocks;
        uint32_t kind;
    } rows[] = {
        { 2, 0, 0, "x", 4, 0 }, { 1, 0, 0, "x", 4, NPU_HAZARD_BLOCKS }, { 0, 0, 0, "x", 4, NPU_HAZARD_BLOCKS }, { 0, 0, 0, "x", 1, 0 },
        { 2, 0, 2, "o", 4, 0 }, { 2, 0, 0, "o", 4, NPU_HAZARD_BLOCKS }, { 2, 0, 1, "o", 4, NPU_HAZARD_BLOCKS }, { 2, 1, 2, "x", 4, NPU_HAZARD_RANGE },
        { 3, 0, 0, "x", 3, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int columns = 0; columns < 2; columns++) { /* along rows, or along columns */
            npu_text text = npu_text_init(NULL);
            npu_status status;
            findings f = { 0 };
            npu_tile_desc desc = { .blocks = rows[i].blocks };
            const char *at = columns ? "[0, %s], [8, 2]" : "[%s, 0], [2, 8]";
            npu_text_printf(&text, "input x : f32[8,8]\ninput o : f32[8,8]\nb = block.get_block_idx()\nk = arith.constant(value=%d, dtype=u64)\n"
                                   "p = arith.constant(value=%d, dtype=u64)\nm = arith.constant(value=%d, dtype=u64)\ns = arith.muli(b, k)\n"
                                   "to = arith.addi(s, p)\nl = arith.muli(b, m)\nt = block.load(%s, ", rows[i].step, rows[i].plus, rows[i].load, rows[i].tensor);
            npu_text_printf(&text, columns ? "[0, l], [8, 2])\n" : "[l, 0], [2, 8])\n");
            npu_text_printf(&text, "system.bar_all()\nu = block.store(t, %s, o)\n", columns ? "[0, to], [8, 2]" : "[to, 0], [2, 8]");
            (void)at;
            npu_graph *g = parse_program(text.data, &status);
            NPU_CHECK_STATUS(status, NPU_OK);
            NPU_CHECK_STATUS(npu_tile_check(npu_graph_child(g, 0), &desc, find, &f), rows[i].kind ? NPU_ERR_GRAPH : NPU_OK);
            NPU_CHECK_EQ(f.count ? f.list[0].kind : 0, rows[i].kind);
            if (rows[i].kind == NPU_HAZARD_BLOCKS) {
                NPU_CHECK(f.list[0].block != f.list[0].other_block);
            }
            npu_graph_destroy(g);
            npu_text_free(&text);
        }
    }
}

/* ---- the checker against random delays ---- */

enum { DELETE_OP, EXCHANGE_OPS, CHANGE_EVENT };
typedef struct mutation {
    int type;
    uint32_t a, b; /* ops */
    int64_t event;
} mutation;

static bool is_sync(const npu_graph *g, uint32_t op)
{
    return NPU_KIND_NAMESPACE(npu_op_kind(g, (npu_op){ op })) == NPU_NS_SYSTEM;
}

static int64_t flag_number(const npu_graph *g, uint32_t op, const char *name)
{
    npu_op_storage storage = { 0 };
    npu_op_info info;
    NPU_CHECK_STATUS(npu_op_describe(g, (npu_op){ op }, &info, &storage), NPU_OK);
    int64_t x = npu_op_int(&info, name, -1);
    npu_op_storage_free(&storage);
    return x;
}

static npu_status mutate(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    const mutation *m = ctx;
    if (m->type == DELETE_OP && op.id == m->a) {
        return NPU_OK;
    }
    if (m->type == CHANGE_EVENT && op.id == m->a) {
        npu_arg args[3] = { npu_arg_int("set_pipe", flag_number(from, op.id, "set_pipe")),
                            npu_arg_int("wait_pipe", flag_number(from, op.id, "wait_pipe")), npu_arg_int("event_id", m->event) };
        return npu_emit(npu_rewrite_target(rw), npu_op_kind(from, op), args, 3).id ? NPU_OK : NPU_ERR_GRAPH;
    }
    if (m->type == EXCHANGE_OPS && (op.id == m->a || op.id == m->b)) {
        op.id = op.id == m->a ? m->b : m->a;
    }
    npu_rewrite_copy(rw, op);
    return NPU_OK;
}

enum { SWEEP_LEN = 256, SWEEP_SEEDS = 1000 };
typedef struct sweep {
    const npu_graph *program;
    uint32_t overlapping;
    float inputs[8][SWEEP_LEN], tensors[8][SWEEP_LEN], expected[SWEEP_LEN];
    uint32_t num_inputs;
    pipes p;
    int mutants, reported, confirmed;
} sweep;

static sweep sw;

/* The output of block 1, whose tensor is the last input. */
static bool sweep_run(uint64_t seed)
{
    for (uint32_t i = 0; i < sw.num_inputs; i++) {
        memcpy(sw.tensors[i], sw.inputs[i], sizeof sw.inputs[i]);
        sw.p.tensors[i] = sw.tensors[i];
    }
    sw.p.block = 1;
    sw.p.blocks = 2;
    return pipes_run(&sw.p, seed);
}

static bool sweep_agrees(uint64_t seed)
{
    return sweep_run(seed) && memcmp(sw.tensors[sw.num_inputs - 1], sw.expected, sizeof sw.expected) == 0;
}

static void sweep_mutant(mutation m)
{
    npu_graph *mutant = NULL;
    npu_tile_desc desc = { .blocks = 2, .overlapping = sw.overlapping };
    npu_status status = npu_graph_rewrite(&mutant, sw.program, mutate, &m, NULL);
    NPU_CHECK_STATUS(status, NPU_OK);
    if (status) {
        return;
    }
    pipes_decode(&sw.p, mutant, sw.overlapping);
    status = npu_tile_check(mutant, &desc, NULL, NULL);
    sw.mutants++;
    sw.reported += status != NPU_OK;
    for (uint64_t seed = 1; seed <= SWEEP_SEEDS; seed++) {
        bool agrees = sweep_agrees(seed);
        if (!agrees && status == NPU_OK) {
            NPU_CHECK_THAT(agrees, "seed %d: mutation %d of ops %d, %d to %d is not reported", (int)seed, m.type, (int)m.a,
                           (int)m.b, (int)m.event);
        }
        if (!agrees) {
            sw.confirmed += status != NPU_OK;
            break;
        }
    }
    npu_graph_destroy(mutant);
}

/* Every deletion, exchange and change of event of the sync ops of a program. */
static void sweep_program(const npu_graph *program, uint32_t overlapping)
{
    npu_tile_desc desc = { .blocks = 2, .overlapping = overlapping };
    findings f = { 0 };
    uint32_t num_ops = npu_graph_num_ops(program);
    memset(&sw, 0, sizeof sw);
    sw.program = program;
    sw.overlapping = overlapping;
    sw.num_inputs = npu_graph_num_inputs(program);
    for (uint32_t i = 0; i < sw.num_inputs; i++) {
        fill(sw.inputs[i], SWEEP_LEN, i + 1);
    }
    NPU_CHECK_STATUS(npu_tile_check(program, &desc, find, &f), NPU_OK);
    NPU_CHECK_STR(f.list[0].message, "");
    pipes_decode(&sw.p, program, overlapping);
    NPU_CHECK(sweep_run(0));
    memcpy(sw.expected, sw.tensors[sw.num_inputs - 1], sizeof sw.expected);
    NPU_CHECK(memcmp(sw.expected, sw.inputs[sw.num_inputs - 1], sizeof sw.expected) != 0);
    for (uint64_t seed = 1; seed <= SWEEP_SEEDS; seed++) {
        NPU_CHECK(sweep_agrees(seed));
    }
    for (uint32_t op = 1; op <= num_ops; op++) {
        bool sync = is_sync(program, op);
        npu_kind kind = npu_op_kind(program, (npu_op){ op });
        if (sync) {
            sweep_mutant((mutation){ DELETE_OP, op, 0, 0 });
        }
        if (op < num_ops && (sync || is_sync(program, op + 1))) {
            sweep_mutant((mutation){ EXCHANGE_OPS, op, op + 1, 0 });
        }
        for (uint32_t b = op + 2; sync && b <= num_ops; b++) {
            if (is_sync(program, b)) {
                sweep_mutant((mutation){ EXCHANGE_OPS, op, b, 0 });
            }
        }
        for (int64_t event = 0; event < 3 && (kind == NPU_SYSTEM_SYNC_SRC || kind == NPU_SYSTEM_SYNC_DST); event++) {
            if (event != flag_number(program, op, "event_id")) {
                sweep_mutant((mutation){ CHANGE_EVENT, op, 0, event });
            }
        }
    }
    printf("%s: %d mutants, %d reported, %d of these give another result within %d seeds\n", npu_graph_name(program), sw.mutants,
           sw.reported, sw.confirmed, SWEEP_SEEDS);
    NPU_CHECK(sw.confirmed * 2 > sw.reported);
}

/* Tiles of 2 x 8 at multiples of 32 bytes, so that some overlap by half. */
enum { SLOTS = 8, RANDOM_PROGRAMS = 400, RANDOM_SEEDS = 100 };
typedef struct random_program {
    npu_graph *g;
    npu_value slots[SLOTS]; /* what lies whole at slot * 32 bytes; id 0 = nothing */
    npu_value in, out, scalar;
    uint64_t random;
    int care, event; /* how often order is made sure of, of 8; the last event */
} random_program;

static int any(random_program *r, int n) { return (int)(npu_test_random(&r->random) % (uint64_t)n); }

/* A slot that holds a tile; -1 = none does. */
static int full_slot(random_program *r)
{
    int first = any(r, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        int slot = (first + i) % SLOTS;
        if (r->slots[slot].id) {
            return slot;
        }
    }
    return -1;
}

/* Puts a new tile somewhere: what it overlaps is gone. */
static void fill_slot(random_program *r, npu_value tile)
{
    int slot = any(r, SLOTS);
    npu_value_set_place(r->g, tile, NPU_SPACE_UB, slot * 32);
    for (int i = slot > 0 ? slot - 1 : 0; i <= slot + 1 && i < SLOTS; i++) {
        r->slots[i].id = 0;
    }
    r->slots[slot] = tile;
}

static void random_order(random_program *r)
{
    static const npu_pipe of[] = { NPU_PIPE_MTE2, NPU_PIPE_V, NPU_PIPE_MTE3, NPU_PIPE_S };
    int from = any(r, 3), to = any(r, 4);
    if (any(r, 8) >= r->care) {
        return;
    }
    if (any(r, 2)) {
        npu_system_bar_all(r->g);
    }
    for (int i = 0; i < 2; i++, from = (from + 1) % 3, to = any(r, 4)) {
        if (from != to) {
            r->event = any(r, 8) ? r->event + 1 : r->event;
            npu_system_sync_src(r->g, of[from], of[to], r->event % 8);
            npu_system_sync_dst(r->g, of[from], of[to], r->event % 8);
        }
    }
    if (any(r, 4)) {
        npu_system_bar_v(r->g);
    }
}

static void random_op(random_program *r)
{
    npu_tile_index at[2] = { { any(r, 7), { 0 } }, { 0, { 0 } } };
    int a = full_slot(r), b = full_slot(r), kind = a < 0 ? 0 : any(r, 9);
    switch (kind) {
    case 7: /* a register from the vector unit, for later */
        r->scalar = npu_block_sum(r->g, r->slots[a], 1, true);
        r->scalar = npu_block_sum(r->g, npu_block_reshape(r->g, r->scalar, DIMS(2), 1), 0, false);
        break;
    case 8:
        if (r->scalar.id) {
            fill_slot(r, npu_block_scalar_binary(r->g, NPU_BLOCK_MULS, r->slots[a], r->scalar));
        }
        break;
    case 0: fill_slot(r, npu_block_load(r->g, r->in, at, DIMS(2, 8), 2, NPU_SPACE_UB)); break;
    case 1: fill_slot(r, npu_block_load(r->g, r->out, at, DIMS(2, 8), 2, NPU_SPACE_UB)); break;
    case 2: r->out = npu_block_store(r->g, r->slots[a], at, DIMS(2, 8), 2, r->out); break;
    case 3: fill_slot(r, npu_block_add(r->g, r->slots[a], r->slots[b])); break;
    case 4: fill_slot(r, npu_block_muls(r->g, r->slots[a], npu_scalar_float(0.5))); break;
    case 5: fill_slot(r, npu_op_result(r->g, npu_emit(r->g, NPU_BLOCK_UB_COPY, (npu_arg[]){ npu_arg_tensor("tile", r->slots[a]) }, 1), 0)); break;
    default: fill_slot(r, npu_block_exp(r->g, r->slots[a])); break;
    }
}

/* A graph with one tile program of num_ops ops, and the inputs of the sweep that runs it. */
static npu_graph *random_graph(random_program *r, int care, int num_ops)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    memset(r->slots, 0, sizeof r->slots);
    r->care = care;
    r->event = 0;
    r->scalar.id = 0;
    r->g = npu_graph_add_child(g, "random", NPU_LEVEL_TILE, NULL);
    r->in = npu_input(r->g, "x", F32(8, 8));
    r->out = npu_input(r->g, "o", F32(8, 8));
    for (int op = 0; op < num_ops; op++) {
        random_op(r);
        random_order(r);
    }
    npu_output(r->g, "y", r->out);
    NPU_CHECK_STATUS(npu_graph_status(r->g), NPU_OK);
    memset(&sw, 0, sizeof sw);
    sw.num_inputs = 2;
    fill(sw.inputs[0], SWEEP_LEN, 1);
    fill(sw.inputs[1], SWEEP_LEN, 2);
    return g;
}

/* Random programs: where the checker finds nothing, all delays agree with program order. */
static void test_random_programs(void)
{
    int clean = 0, wrong = 0;
    random_program r = { 0 };
    r.random = npu_test_seed();
    for (int i = 0; i < RANDOM_PROGRAMS; i++) {
        npu_graph *g = random_graph(&r, 4 + i % 5, 4 + i % 5);
        bool agrees = true;
        sw.overlapping = i % 2 ? 1u << NPU_PIPE_V | 1u << NPU_PIPE_MTE2 : 0;
        npu_tile_desc desc = { .overlapping = sw.overlapping };
        npu_status status = npu_tile_check(r.g, &desc, NULL, NULL);
        pipes_decode(&sw.p, r.g, sw.overlapping);
        sweep_run(0);
        memcpy(sw.expected, sw.tensors[1], sizeof sw.expected);
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS && agrees; seed++) {
            agrees = sweep_agrees(seed);
        }
        clean += status == NPU_OK;
        wrong += !agrees;
        if (!agrees && status == NPU_OK) {
            npu_text text = npu_text_init(NULL);
            npu_graph_print(g, &text);
            NPU_CHECK_THAT(agrees, "no hazard is reported, but another order gives another result:\n%s", text.data);
            npu_text_free(&text);
        }
        npu_graph_destroy(g);
    }
    printf("%d random programs: nothing found in %d, delays matter in %d\n", RANDOM_PROGRAMS, clean, wrong);
    NPU_CHECK(clean > RANDOM_PROGRAMS / 20 && wrong > RANDOM_PROGRAMS / 20);
}

static void test_delays(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    uint32_t body;
    sweep_program(build_softmax(g, 2, 3, 2, 8, false, &body), 0);
    sweep_program(build_matmul(g, 2, 3, 4, 4, 8, &body), 0);
    sweep_program(build_add_layer_norm(g, 2, 2, 8, false, &body), 0);
    sweep_program(build_softmax(g, 2, 2, 2, 8, true, &body), 1u << NPU_PIPE_V);
    sweep_program(build_add_layer_norm(g, 2, 2, 8, true, &body), 1u << NPU_PIPE_V | 1u << NPU_PIPE_MTE2);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_graph_destroy(g);
}

/* ---- synchronisation that is put in ---- */

static uint32_t count_sync(const npu_graph *program, npu_kind kind)
{
    uint32_t n = 0;
    for (uint32_t op = 1; op <= npu_graph_num_ops(program); op++) {
        n += kind ? npu_op_kind(program, (npu_op){ op }) == kind : is_sync(program, op);
    }
    return n;
}

/* The program that npu_tile_sync makes of child 0: it passes the check, any delays give what program order gives, and
   doing it again changes nothing. */
static npu_graph *check_sync(const npu_graph *g, uint32_t overlapping, uint32_t num_events, uint32_t allowed)
{
    npu_tile_desc desc = { .blocks = 2, .overlapping = overlapping, .num_events = num_events };
    npu_graph *now = NULL, *again = NULL;
    npu_diag diag = { 0 };
    findings f = { 0 };
    npu_text a = npu_text_init(NULL), b = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_tile_sync(&now, g, &desc, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    NPU_CHECK_STATUS(npu_tile_sync(&again, now, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_validate(now, NULL, NULL), NPU_OK);
    npu_graph_print(now, &a);
    npu_graph_print(again, &b);
    NPU_CHECK_STR(b.data, a.data);
    npu_tile_check(npu_graph_child(now, 0), &desc, find, &f);
    for (int i = 0; i < f.count && i < (int)(sizeof f.list / sizeof f.list[0]); i++) {
        NPU_CHECK(allowed >> f.list[i].kind & 1u);
    }
    npu_text_free(&a);
    npu_text_free(&b);
    npu_graph_destroy(again);
    return now;
}

static void test_sync(void)
{
    /* which program; its core; num: sync ops at most; has_barrier: for want of events */
    static const struct { int which; uint32_t overlapping, events, num; bool has_barrier; } rows[] = {
        { 0, 0, 8, 16, false }, { 0, 0, 1, 10, true }, { 1, 0, 8, 32, false }, { 1, 0, 1, 25, true },
        { 2, 0, 8, 8, false }, { 0, 1u << NPU_PIPE_V, 8, 28, false },
        { 2, 1u << NPU_PIPE_V | 1u << NPU_PIPE_MTE2, 8, 19, false },
        { 1, 1u << NPU_PIPE_M | 1u << NPU_PIPE_MTE1, 8, 32, false },
    };
    NPU_ITEM("R3.26");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = npu_graph_create(npu_test_graph_desc()), *now, *p;
        npu_tile_desc desc = { .blocks = 2, .overlapping = rows[i].overlapping, .num_events = rows[i].events };
        uint32_t body;
        p = rows[i].which == 0   ? build_softmax(g, 2, 3, 2, 8, false, &body)
            : rows[i].which == 1 ? build_matmul(g, 2, 3, 4, 4, 8, &body)
                                 : build_add_layer_norm(g, 2, 2, 8, false, &body);
        now = check_sync(g, rows[i].overlapping, rows[i].events, 0);
        NPU_CHECK_STATUS(npu_tile_check(npu_graph_child(now, 0), &desc, NULL, NULL), NPU_OK);
        memset(&sw, 0, sizeof sw);
        sw.num_inputs = npu_graph_num_inputs(p);
        for (uint32_t k = 0; k < sw.num_inputs; k++) {
            fill(sw.inputs[k], SWEEP_LEN, k + 1);
        }
        pipes_decode(&sw.p, p, 0);
        NPU_CHECK(sweep_run(0));
        memcpy(sw.expected, sw.tensors[sw.num_inputs - 1], sizeof sw.expected);
        pipes_decode(&sw.p, npu_graph_child(now, 0), rows[i].overlapping);
        for (uint64_t seed = 1; seed <= SWEEP_SEEDS; seed++) {
            NPU_CHECK(sweep_agrees(seed));
        }
        NPU_CHECK(count_sync(npu_graph_child(now, 0), 0) <= rows[i].num);
        NPU_CHECK_EQ(count_sync(npu_graph_child(now, 0), NPU_SYSTEM_BAR_ALL) > 0, rows[i].has_barrier);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* Of random programs, whatever synchronisation they had. */
static void test_random_sync(void)
{
    random_program r = { 0 };
    r.random = npu_test_seed() + 1;
    for (int i = 0; i < RANDOM_PROGRAMS; i++) {
        npu_graph *g = random_graph(&r, i % 3, 4 + i % 12), *now;
        uint32_t overlapping = i % 2 ? 1u << NPU_PIPE_V | 1u << NPU_PIPE_MTE2 : 0;
        bool agrees = true;
        /* the program is made for one block, and may overwrite what it still reads in its own order */
        now = check_sync(g, overlapping, 1 + (uint32_t)i % 4, 1u << NPU_HAZARD_BLOCKS | 1u << NPU_HAZARD_CLOBBERED);
        pipes_decode(&sw.p, npu_graph_child(now, 0), overlapping);
        sweep_run(0);
        memcpy(sw.expected, sw.tensors[1], sizeof sw.expected);
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS && agrees; seed++) {
            agrees = sweep_agrees(seed);
        }
        NPU_CHECK_THAT(agrees, "program %d: with all events put in, another order of the pipes gives another result", i);
        if (!agrees) {
            NPU_CHECK_BYTES(sw.tensors[sw.num_inputs - 1], sw.expected, sizeof sw.expected);
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

static void test_sync_arguments(void)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *now = g;
    npu_tile_desc negative = { .blocks = -1 }, events = { .num_events = 65 }, canary = { ._canary = 1 };
    npu_tile_desc small = { .sizes = { 0, 0, 64 } };
    uint32_t body;
    npu_diag diag = { 0 };
    npu_status status = NPU_ERR_NO_MEMORY;
    build_softmax(g, 2, 3, 2, 8, false, &body);
    NPU_CHECK_STATUS(npu_tile_sync(&now, NULL, NULL, NULL), NPU_ERR_GRAPH);
    NPU_CHECK(!now);
    NPU_CHECK_STATUS(npu_tile_sync(&now, g, &negative, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_tile_sync(&now, g, &events, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_tile_sync(&now, g, &canary, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_tile_sync(&now, g, &small, &diag), NPU_ERR_OVERFLOW);
    NPU_CHECK(!now && strstr(diag.message, "ub"));
    npu_graph_destroy(g);
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 2000; n++) {
        npu_alloc_counter counter = { 0 };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_graph_desc desc = { .allocator = &allocator };
        g = npu_graph_create(&desc);
        build_softmax(g, 2, 3, 2, 8, false, &body);
        counter.fail_at = counter.num_calls + n;
        status = npu_tile_sync(&now, g, NULL, NULL);
        NPU_CHECK(status == NPU_OK || (status == NPU_ERR_NO_MEMORY && !now));
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
}

/* 10,000 ops in 64 blocks: checked and run in less than a second. */
static void test_large_program(void)
{
    enum { BLOCKS = 64, TILES = 530, ROWS = 2, COLS = 32, LEN = BLOCKS * TILES * ROWS * COLS };
    npu_graph *g = npu_graph_create(npu_test_graph_desc()), *p;
    npu_tile_desc desc = { .blocks = BLOCKS };
    npu_spec spec = F32(BLOCKS * TILES * ROWS, COLS);
    npu_value x = npu_input(g, "x", spec), out = npu_input(g, "out", spec);
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    float *data = calloc(LEN, 2 * sizeof *data);
    uint32_t body;
    clock_t begin, checked, made, end;
    p = build_softmax(g, BLOCKS, TILES, ROWS, COLS, false, &body);
    npu_output(g, "y", npu_op_result(g, npu_tile_launch(g, (npu_value[]){ x, out }, 2, BLOCKS, 0, body), 0));
    NPU_CHECK(npu_graph_num_ops(p) >= 10000 && data);
    begin = clock();
    NPU_CHECK_STATUS(npu_tile_check(p, &desc, NULL, NULL), NPU_OK);
    checked = clock();
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
    made = clock();
    for (int i = 0; data && i < LEN; i++) {
        data[i] = (float)(i % 13);
    }
    npu_test_input_at(exec, 0, data, LEN * sizeof *data);
    npu_test_input_at(exec, 1, data + LEN, LEN * sizeof *data);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    end = clock();
    const float *y = npu_exec_output(exec, 0, NULL);
    for (int row = 0; y && data && row < BLOCKS * TILES * ROWS; row += 997) {
        double sum = 0;
        for (int i = 0; i < COLS; i++) {
            sum += exp((double)data[row * COLS + i]);
        }
        NPU_CHECK_NEAR(y[row * COLS + 5], exp((double)data[row * COLS + 5]) / sum, 1e-6);
    }
    printf("%u ops, %d blocks: checked in %.3f s, made ready in %.3f s, run in %.3f s\n", (unsigned)npu_graph_num_ops(p), BLOCKS,
           (double)(checked - begin) / CLOCKS_PER_SEC, (double)(made - checked) / CLOCKS_PER_SEC, (double)(end - made) / CLOCKS_PER_SEC);
    NPU_CHECK(end - begin < 8 * CLOCKS_PER_SEC); /* without optimisation, or with sanitizers, too */
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    free(data);
}

int main(void)
{
    NPU_RUN(test_types);
    NPU_RUN(test_reduction_rules);
    NPU_RUN(test_missing_keyword);
    NPU_RUN(test_memory_rules);
    NPU_RUN(test_codes);
    NPU_RUN(test_pipes);
    NPU_RUN(test_registered_pipe);
    NPU_RUN(test_rejections);
    NPU_RUN(test_levels);
    NPU_RUN(test_sync_ops);
    NPU_RUN(test_flags);
    NPU_RUN(test_text);
    NPU_RUN(test_builders);
    NPU_RUN(test_place);
    NPU_RUN(test_launch_rejections);
    NPU_RUN(test_document_example);
    NPU_RUN(test_tile_ops);
    NPU_RUN(test_own_tile_op);
    NPU_RUN(test_registers);
    NPU_RUN(test_examples);
    NPU_RUN(test_manual);
    NPU_RUN(test_blocks_in_order);
    NPU_RUN(test_run_failures);
    NPU_RUN(test_small_door);
    NPU_RUN(test_plan);
    NPU_RUN(test_hazards);
    NPU_RUN(test_traits_of_tile_ops);
    NPU_RUN(test_hazard_of_overlapping_ops);
    NPU_RUN(test_check_arguments);
    NPU_RUN(test_blocks);
    NPU_RUN(test_delays);
    NPU_RUN(test_sync);
    NPU_RUN(test_random_sync);
    NPU_RUN(test_sync_arguments);
    NPU_RUN(test_random_programs);
    NPU_RUN(test_large_program);
    return npu_test_done();
}
