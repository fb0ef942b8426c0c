/* Rewriting: copies, replacements, dead ops, and symbols that get values. */
#include "npu_test.h"

static npu_graph *parse(const char *text)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse(&g, text, strlen(text), NULL, &diag)) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
    }
    NPU_CHECK(g);
    return g;
}

static void check_text(const npu_graph *g, const char *expected)
{
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STR(text.data, expected);
    npu_text_free(&text);
}

static void check_rewrite(const char *before, npu_rewrite_fn fn, void *ctx, const char *after)
{
    npu_graph *g = parse(before), *now = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, fn, ctx, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    npu_graph_destroy(g); /* the new graph needs nothing of the old one */
    if (now) {
        check_text(now, after);
    }
    npu_graph_destroy(now);
}

#define EVERYTHING \
    "npu_ir 1\ngraph main\nsymbol N 1 64\nchild body tile\n  input x : tile f16[2] space=ub\n" \
    "  %2 = my.tile(x=x) : tile f16[2]\nend\n" \
    "input x : f32[N,3]\nparam w : f32[4,3]\nstate h : f32[N,4]\nconst %4 : f32[2] {0.5, nan}\n" \
    "y = aten.linear.default(input=x, weight=w) @\"fc\" !inplace_ok : f32[N,4]\n" \
    "%6 = aten.add.Tensor(self=y, other=h, alpha=2) : f32[N,4]\n" \
    "%7 = aten.cat.default(tensors=[y, %6], dim=1) : f32[N,8]\n" \
    "%8, %9 = \"my::op\"(a=[y, none], s='x', g=graph 0) : i8[2], f32[N,?]\n" \
    "save y = x\nsave %8 = y\nupdate h = %6\noutput z = %7\noutput \"%8\" = %9\n"

static void test_copy(void) { check_rewrite(EVERYTHING, NULL, NULL, EVERYTHING); }

static npu_status copy(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    (void)from;
    npu_rewrite_copy(rw, op);
    return NPU_OK;
}

static void test_copy_by_callback(void) { check_rewrite(EVERYTHING, copy, NULL, EVERYTHING); }

static void test_dead_ops(void)
{
    check_rewrite(
        "graph main\ninput x : f32[2]\nstate h : f32[2]\na = aten.relu.default(x)\ndead = aten.relu.default(a)\n"
        "deader = aten.neg.default(dead)\n"
        "next = aten.abs.default(x)\nb = aten.neg.default(a)\nsave a = dead\nsave b = a\nupdate h = next\n"
        "output y = b\n",
        NULL, NULL,
        "npu_ir 1\ngraph main\ninput x : f32[2]\nstate h : f32[2]\na = aten.relu.default(self=x) : f32[2]\n"
        "next = aten.abs.default(self=x) : f32[2]\nb = aten.neg.default(self=a) : f32[2]\nsave b = a\n"
        "update h = next\noutput y = b\n");
}

/* An op whose row has the trait NPU_EFFECT stays, and what it needs. */
static void test_effects(void)
{
    static const npu_op_row row = { 0x01000001, NPU_EFFECT, NULL, "store(Tensor x) -> ()", "keeps x", NULL };
    npu_registry *registry = NULL;
    npu_graph_desc desc = { 0 };
    npu_graph *g, *now = NULL;
    int64_t dims[1] = { 2 };
    npu_value x, y;
    npu_arg arg;
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_OK);
    desc.registry = registry;
    g = npu_graph_create(&desc);
    x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, dims));
    y = npu_relu(g, x);
    npu_neg(g, x);
    arg = npu_arg_tensor("x", y);
    NPU_CHECK(npu_emit_typed(g, "mine.store", &arg, 1, NULL, 0).id);
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, NULL, NULL, NULL), NPU_OK);
    check_text(
        now,
        "npu_ir 1\ngraph main\ninput x : f32[2]\n%2 = aten.relu.default(self=x) : f32[2]\nmine.store(x=%2)\n");
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* gemm + bias_add + relu -> gemm_epilogue where nothing else needs what lies between. */
static npu_status fuse(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op relu)
{
    npu_value y = npu_op_result(from, relu, 0), sum, product, x[3];
    npu_op add, gemm;
    uint32_t *count = (uint32_t *)ctx;
    sum = npu_op_operand_value(from, relu, 0);
    add = npu_value_producer(from, sum, NULL);
    product = npu_op_operand_value(from, add, 0);
    gemm = npu_value_producer(from, product, NULL);
    if (npu_op_kind(from, relu) != NPU_AICF_RELU || npu_op_kind(from, add) != NPU_AICF_BIAS_ADD ||
        npu_op_kind(from, gemm) != NPU_AICF_GEMM || npu_value_num_users(from, sum) != 1 ||
        npu_value_num_users(from, product) != 1) {
        npu_rewrite_copy(rw, relu);
        return NPU_OK;
    }
    x[0] = npu_rewrite_value(rw, npu_op_operand_value(from, gemm, 0));
    x[1] = npu_rewrite_value(rw, npu_op_operand_value(from, gemm, 1));
    x[2] = npu_rewrite_value(rw, npu_op_operand_value(from, add, 1));
    npu_arg args[4];
    args[0] = npu_arg_tensor(NULL, x[0]);
    args[1] = npu_arg_tensor(NULL, x[1]);
    args[2] = npu_arg_tensor(NULL, x[2]);
    args[3] = npu_arg_bool("transB", true);
    npu_rewrite_replace(rw, y,
                        npu_op_result(npu_rewrite_target(rw),
                                      npu_emit(npu_rewrite_target(rw), NPU_AICF_GEMM_EPILOGUE, args, 4), 0));
    ++*count;
    return NPU_OK;
}

static void test_fuse(void)
{
    uint32_t count = 0;
    NPU_ITEM("S2.62");
    check_rewrite(
        "graph main\ninput x : f32[2,3]\nparam w : f32[4,3]\nparam b : f32[4]\n"
        "g1 = aicf.gemm(x, w, transB=true)\ns1 = aicf.bias_add(g1, b)\n"
        "y1 = aicf.relu(s1)\noutput y = y1\n",
        fuse, &count,
        "npu_ir 1\ngraph main\ninput x : f32[2,3]\nparam w : f32[4,3]\nparam b : f32[4]\n"
        "y1 = aicf.gemm_epilogue(a=x, b=w, bias=b, transB=true) : f32[2,4]\noutput y = y1\n");
    NPU_CHECK_EQ(count, 1);
}

/* Two users of the sum: nothing is fused, nothing lost. */
static void test_fuse_needs_one_user(void)
{
    static const char *const text =
        "npu_ir 1\ngraph main\ninput x : f32[2,3]\nparam w : f32[4,3]\nparam b : f32[4]\n"
        "g1 = aicf.gemm(a=x, b=w, transB=true) : f32[2,4]\n"
        "s1 = aicf.bias_add(x=g1, bias=b) : f32[2,4]\ny1 = aicf.relu(x=s1) : f32[2,4]\n"
        "y2 = aicf.add(a=y1, c=s1) : f32[2,4]\noutput y = y2\n";
    uint32_t count = 0;
    check_rewrite(text, fuse, &count, text);
    NPU_CHECK_EQ(count, 0);
}

/* Replacing by a value that exists already: an identity disappears and keeps nobody's name. */
static npu_status skip_clones(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    if (npu_op_kind(from, op) == NPU_ATEN_CLONE) {
        npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_rewrite_value(rw, npu_op_operand_value(from, op, 0)));
    } else {
        npu_rewrite_copy(rw, op);
    }
    return NPU_OK;
}

static void test_replace_by_operand(void)
{
    check_rewrite(
        "graph main\ninput x : f32[2]\nc = aten.clone.default(x)\nr = aten.relu.default(c)\noutput a = c\n"
        "output b = r\n",
        skip_clones, NULL,
        "npu_ir 1\ngraph main\ninput x : f32[2]\nr = aten.relu.default(self=x) : f32[2]\noutput a = x\n"
        "output b = r\n");
}

static npu_status do_nothing(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)rw;
    (void)from;
    (void)op;
    return *(npu_status *)ctx;
}

static npu_status emit_wrong(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu_value none = { 0 };
    (void)ctx;
    npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_relu(npu_rewrite_target(rw), none));
    return NPU_OK;
}

static npu_status copy_relu_only(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    if (npu_op_kind(from, op) == NPU_ATEN_RELU) {
        npu_rewrite_copy(rw, op);
    }
    return NPU_OK;
}

static void check_failure(npu_rewrite_fn fn, npu_status answer, npu_status expected)
{
    npu_graph
        *g = parse(
            "graph main\ninput x : f32[2]\na = aten.neg.default(x)\nb = aten.relu.default(a)\noutput y = b\n"),
        *now = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, fn, &answer, &diag), expected);
    NPU_CHECK_STATUS(diag.status, expected);
    NPU_CHECK(!now);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_graph_destroy(g);
}

static void test_failures(void)
{
    npu_graph *now = NULL;
    check_failure(do_nothing, NPU_ERR_NOT_LEGAL, NPU_ERR_NOT_LEGAL);
    check_failure(do_nothing, NPU_OK, NPU_ERR_INVALID_ARGUMENT); /* the output has no value */
    check_failure(emit_wrong, NPU_OK, NPU_ERR_ARITY);
    check_failure(copy_relu_only, NPU_OK, NPU_ERR_GRAPH); /* its operand is missing */
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, NULL, NULL, NULL, NULL), NPU_ERR_GRAPH);
}

static void test_bound_params_and_locations(void)
{
    static const float data[2] = { 1, 2 };
    npu_graph *g = npu_graph_create(NULL), *now = NULL;
    int64_t dims[1] = { 2 };
    npu_value x = npu_param(g, "w", npu_spec_tensor(NPU_F32, 1, dims)), c;
    npu_op op = { 1 };
    const char *file = NULL;
    float owned[2] = { 3, 4 };
    size_t size = 0;
    NPU_CHECK_STATUS(npu_graph_bind_param(g, "w", data, sizeof data), NPU_OK);
    c = npu_constant_ref(g, "borrowed", npu_spec_tensor(NPU_F32, 1, dims), data);
    npu_constant(g, "owned", npu_spec_tensor(NPU_F32, 1, dims), owned);
    npu_output(g, "y", npu_add(npu_graph_set_location(g, "model.c", 12), x, c));
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, NULL, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
    NPU_CHECK(npu_value_data(now, npu_graph_find(now, "w"), &size) == data);
    NPU_CHECK_EQ(size, sizeof data);
    NPU_CHECK(npu_value_data(now, npu_graph_find(now, "borrowed"), NULL) == data);
    NPU_CHECK_BYTES(npu_value_data(now, npu_graph_find(now, "owned"), NULL), owned, sizeof owned);
    NPU_CHECK_EQ(npu_op_location(now, op, &file), 12);
    NPU_CHECK_STR(file, "model.c");
    npu_graph_destroy(now);
}

/* ---- extraction ---- */

#define BODY \
    "npu_ir 1\ngraph main\nsymbol N 1 64\nchild body tile\n  input x : tile f16[2] space=ub\n" \
    "  %2 = my.tile(x=x) : tile f16[2]\nend\n"

static void check_extract(const char *before, const uint32_t *ids, uint32_t num_ids, const char *after)
{
    npu_graph *g = parse(before), *now = NULL;
    npu_op ops[8];
    npu_diag diag = { 0 };
    for (uint32_t i = 0; i < num_ids; i++) {
        ops[i].id = ids[i];
    }
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, ops, num_ids, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    npu_graph_destroy(g);
    if (now) {
        check_text(now, after);
    }
    npu_graph_destroy(now);
}

/* Inputs are what comes from elsewhere, a state too; outputs what goes elsewhere. */
static void test_extract(void)
{
    static const uint32_t first[] = { 1 }, middle[] = { 2, 3 }, last[] = { 4 }, ends[] = { 1, 4 };
    NPU_ITEM("R1.15");
    check_extract(EVERYTHING, first, 1,
                  BODY "input x : f32[N,3]\nparam w : f32[4,3]\n"
                  "y = aten.linear.default(input=x, weight=w) @\"fc\" !inplace_ok : f32[N,4]\nsave y = x\n"
                  "output y = y\n");
    check_extract(EVERYTHING, middle, 2,
                  BODY "input y : f32[N,4]\ninput h : f32[N,4]\n"
                  "%3 = aten.add.Tensor(self=y, other=h, alpha=2) : f32[N,4]\n"
                  "%4 = aten.cat.default(tensors=[y, %3], dim=1) : f32[N,8]\noutput v6 = %3\noutput v7 = %4\n");
    check_extract(EVERYTHING, last, 1,
                  BODY "input y : f32[N,4]\n%2, %3 = \"my::op\"(a=[y, none], s='x', g=graph 0) : i8[2], f32[N,?]\n"
                  "save %2 = y\noutput v8 = %2\noutput v9 = %3\n");
    check_extract(EVERYTHING, ends, 2,
                  BODY "input x : f32[N,3]\nparam w : f32[4,3]\n"
                  "y = aten.linear.default(input=x, weight=w) @\"fc\" !inplace_ok : f32[N,4]\n"
                  "%4, %5 = \"my::op\"(a=[y, none], s='x', g=graph 0) : i8[2], f32[N,?]\nsave y = x\nsave %4 = y\n"
                  "output y = y\noutput v8 = %4\noutput v9 = %5\n");
    static const uint32_t second[] = { 2 }; /* a size that only the op before it knows; a name that is taken */
    check_extract("npu_ir 1\ngraph main\ninput v2_ : f32[4]\n%2 = aten.nonzero.default(v2_)\n"
                  "input v2 : i64[1]\n%4 = aten.mul.Tensor(%2, v2)\noutput y = %4\n", second, 1,
                  "npu_ir 1\ngraph main\nsymbol d0 0 4\ninput v2__ : i64[d0,1]\ninput v2 : i64[1]\n"
                  "%3 = aten.mul.Tensor(self=v2__, other=v2) : i64[d0,1]\noutput v4 = %3\n");
}

static void test_extract_rejections(void)
{
    npu_graph *g = parse(EVERYTHING), *now = g;
    npu_op none = { 0 }, far = { 5 }, twice[2] = { { 2 }, { 2 } }, down[2] = { { 2 }, { 1 } };
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, NULL, 0, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(!now && diag.message[0]);
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, &none, 1, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, &far, 1, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, twice, 2, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_extract(&now, g, down, 2, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_extract(&now, NULL, &far, 1, NULL), NPU_ERR_GRAPH);
    npu_graph_destroy(g);
}

/* ---- patterns ---- */

/* x -> x where the op is a clone; its name is free again. */
static npu_status drop(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_rewrite_operand(rw, op, 0));
    return NPU_OK;
}

/* relu(relu(x)) -> relu(x), else says what it saw. */
static npu_status merge_relu(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu_op before = npu_value_producer(from, npu_op_operand_value(from, op, 0), NULL);
    if (npu_op_kind(from, before) != NPU_ATEN_RELU) {
        return npu_rewrite_no_match(rw, "operand is no relu");
    }
    return drop(ctx, rw, from, op);
}

/* Becomes the op whose kind is in ctx, with the same operand. */
static npu_status become(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu_arg arg = npu_arg_tensor(NULL, npu_rewrite_operand(rw, op, 0));
    npu_op now = npu_emit(npu_rewrite_target(rw), *(const npu_kind *)ctx, &arg, 1);
    npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_op_result(npu_rewrite_target(rw), now, 0));
    return NPU_OK;
}

/* Matches leaky_relu with slope 0 only: an attribute of the old op decides. */
static npu_status flat_leak(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    const npu_op_info *info = npu_rewrite_info(rw, op);
    if (!info) {
        return NPU_ERR_NO_MEMORY;
    }
    if (npu_op_float(info, "negative_slope", 1) != 0) {
        return npu_rewrite_no_match(rw, "slope is %g", npu_op_float(info, "negative_slope", 1));
    }
    return become(ctx, rw, from, op);
}

static npu_status never(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)from;
    (void)op;
    ++*(uint32_t *)ctx;
    return npu_rewrite_no_match(rw, "never");
}

static npu_kind k_relu = NPU_ATEN_RELU, k_neg = NPU_ATEN_NEG, k_abs = NPU_ATEN_ABS, k_exp = NPU_ATEN_EXP;

static const npu_pattern clean[] = {
    { "merge-relu", NPU_ATEN_RELU, NULL, 0, merge_relu, NULL },
    { "drop-clone", 0, "aten.clone", 0, drop, NULL },
    { "flat-leak", NPU_ATEN_LEAKY_RELU, NULL, 0, flat_leak, &k_relu },
};

static void test_patterns(void)
{
    npu_graph *g = parse(
        "graph main\ninput x : f32[2]\na = aten.relu.default(x)\nb = aten.clone.default(a)\n"
        "c = aten.leaky_relu.default(b, negative_slope=0)\nd = aten.leaky_relu.default(c)\noutput y = d\n");
    npu_graph *now = NULL;
    uint32_t counts[3] = { 0 };
    npu_pattern_stats stats = { 0, 0, counts };
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, clean, 3, NULL, &stats, &diag), NPU_OK);
    check_text(now, "npu_ir 1\ngraph main\ninput x : f32[2]\na = aten.relu.default(self=x) : f32[2]\n"
                    "d = aten.leaky_relu.default(self=a) : f32[2]\noutput y = d\n");
    NPU_CHECK_EQ(stats.num_sweeps, 3);   /* the clone and the slope, then the two relus, then nothing */
    NPU_CHECK_EQ(stats.num_rewrites, 3);
    NPU_CHECK_EQ(counts[0], 1);
    NPU_CHECK_EQ(counts[1], 1);
    NPU_CHECK_EQ(counts[2], 1);
    NPU_CHECK_EQ(npu_graph_num_ops(g), 4); /* the old graph is as it was */
    npu_graph_destroy(now);
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, clean, 3, NULL, &stats, &diag), NPU_OK);
    NPU_CHECK_EQ(stats.num_rewrites, 3); /* of this run alone */
    NPU_CHECK_EQ(counts[0], 1);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* The highest benefit first, equal ones in order; a pattern without a root is tried on every op. */
static void test_benefit(void)
{
    uint32_t asked = 0;
    const npu_pattern patterns[] = {
        { "low", NPU_ATEN_NEG, NULL, 1, become, &k_abs },
        { "high", NPU_ATEN_NEG, NULL, 2, become, &k_exp },
        { "high-too", NPU_ATEN_NEG, NULL, 2, become, &k_relu },
        { "any", 0, NULL, 9, never, NULL },
        { "not-there", 0, "aten.no_such_op", 9, drop, NULL },
        { "by-name", 0, "my.op", 0, drop, NULL },
    };
    npu_pattern mine[6];
    npu_graph *g = parse("graph main\ninput x : f32[2]\na = aten.neg.default(x)\nb = my.op(a) : f32[2]\n"
                         "output y = b\n");
    npu_graph *now = NULL;
    memcpy(mine, patterns, sizeof mine);
    mine[3].ctx = &asked;
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, mine, 6, NULL, NULL, NULL), NPU_OK);
    check_text(now, "npu_ir 1\ngraph main\ninput x : f32[2]\na = aten.exp.default(self=x) : f32[2]\n"
                    "output y = a\n");
    NPU_CHECK_EQ(asked, 3); /* two ops in the first sweep, one in the second */
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* neg -> abs -> neg never ends: a named error, and the graph is as it was. */
static void test_no_fixed_point(void)
{
    const npu_pattern patterns[] = {
        { "to-abs", NPU_ATEN_NEG, NULL, 0, become, &k_abs }, { "to-neg", NPU_ATEN_ABS, NULL, 0, become, &k_neg }
    };
    static const char *const text =
        "npu_ir 1\ngraph main\ninput x : f32[2]\na = aten.neg.default(self=x) : f32[2]\noutput y = a\n";
    npu_pattern_options options = { 5, 0 };
    npu_pattern_stats stats = { 0, 0, NULL };
    npu_graph *g = parse(text), *now = g;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, patterns, 2, &options, &stats, &diag), NPU_ERR_NO_FIXED_POINT);
    NPU_CHECK(!now);
    NPU_CHECK_EQ(stats.num_sweeps, 5);
    NPU_CHECK_EQ(diag.op, 1);
    NPU_CHECK(strstr(diag.message, "to-abs"));
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, patterns, 2, NULL, NULL, NULL), NPU_ERR_NO_FIXED_POINT);
    options._canary = 1;
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, patterns, 2, &options, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, NULL, patterns, 2, NULL, NULL, NULL), NPU_ERR_GRAPH);
    check_text(g, text);
    npu_graph_destroy(g);
}

/* A pattern's own failure, and one that emits what is rejected, stop the rewrite. */
static void test_pattern_failures(void)
{
    npu_status status = NPU_ERR_RANGE;
    const npu_pattern fails = { "fails", NPU_ATEN_NEG, NULL, 0, do_nothing, &status };
    const npu_pattern emits = { "emits", NPU_ATEN_NEG, NULL, 0, emit_wrong, NULL };
    npu_graph *g = parse("graph main\ninput x : f32[2]\na = aten.neg.default(x)\noutput y = a\n"), *now = NULL;
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, &fails, 1, NULL, NULL, NULL), NPU_ERR_RANGE);
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, &emits, 1, NULL, NULL, NULL), NPU_ERR_ARITY);
    NPU_CHECK(!now);
    npu_graph_destroy(g);
}

/* ---- conversion ---- */

static npu_legality short_ones(void *ctx, const npu_graph *g, npu_op op)
{
    const npu_spec *spec = npu_value_spec(g, npu_op_result(g, op, 0));
    (void)ctx;
    return spec->dims[0] < 4 ? NPU_LEGAL : NPU_ILLEGAL;
}

static const npu_legality_rule rules[] = {
    { "aten", NPU_ILLEGAL, NULL, NULL },
    { "aten.relu.default", NPU_LEGAL, NULL, NULL },
    { "aten.neg.default", NPU_LEGALITY_UNKNOWN, short_ones, NULL },
};
static const npu_conversion_target partial = { rules, 3, false }, full = { rules, 3, true };

#define CONVERTIBLE \
    "graph main\ninput x : f32[2]\ninput z : f32[4]\na = aten.abs.default(x)\nb = aten.neg.default(a)\n" \
    "c = aten.neg.default(z)\nd = aten.relu.default(c)\n"

static void test_convert(void)
{
    const npu_pattern patterns[] = {
        { "abs", NPU_ATEN_ABS, NULL, 0, become, &k_exp }, /* illegal itself: converted in the next sweep */
        { "exp", NPU_ATEN_EXP, NULL, 0, become, &k_relu },
        { "neg", NPU_ATEN_NEG, NULL, 0, become, &k_relu },
        { "relu", NPU_ATEN_RELU, NULL, 0, become, &k_abs }, /* legal ops are left alone */
        { "my", 0, "my.small", 0, become, &k_relu },
    };
    npu_graph *g = parse(CONVERTIBLE "e = my.op(d) : f32[4]\nf = my.small(e) : f32[4]\noutput y = b\noutput w = f\n");
    npu_graph *now = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_convert(&now, g, &partial, patterns, 5, NULL, NULL, &diag), NPU_OK);
    check_text(now, "npu_ir 1\ngraph main\ninput x : f32[2]\ninput z : f32[4]\na = aten.relu.default(self=x) : f32[2]\n"
                    "b = aten.neg.default(self=a) : f32[2]\nc = aten.relu.default(self=z) : f32[4]\n"
                    "d = aten.relu.default(self=c) : f32[4]\ne = my.op(arg0=d) : f32[4]\n"
                    "f = aten.relu.default(self=e) : f32[4]\noutput y = b\noutput w = f\n");
    npu_graph_destroy(now);
    NPU_CHECK_STATUS(npu_graph_convert(&now, g, &full, patterns, 5, NULL, NULL, &diag), NPU_ERR_NOT_LEGAL);
    NPU_CHECK(!now);
    NPU_CHECK(strstr(diag.message, "my.op (e)"));
    NPU_CHECK_EQ(npu_conversion_target_legality(&partial, g, npu_value_producer(g, npu_graph_find(g, "c"), NULL)), NPU_ILLEGAL);
    npu_graph_destroy(g);
}

/* An illegal op that is left is named, with the pattern's reason; the graph is as it was. */
static void test_convert_leaves_illegal(void)
{
    const npu_legality_rule no_aten = { "aten", NPU_ILLEGAL, NULL, NULL };
    npu_conversion_target target = { NULL, 1, false };
    npu_graph *g = parse("graph main\ninput x : f32[2]\na = aten.leaky_relu.default(x)\noutput y = a\n"), *now = NULL;
    npu_diag diag = { 0 };
    target.rules = &no_aten;
    NPU_CHECK_STATUS(npu_graph_convert(&now, g, &target, clean, 3, NULL, NULL, &diag), NPU_ERR_NOT_LEGAL);
    NPU_CHECK(!now);
    NPU_CHECK_EQ(diag.op, 1);
    NPU_CHECK_STR(diag.message,
                  "text:3: aten.leaky_relu.default (a) must be converted, but no pattern matches: slope is 0.01");
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    npu_graph_destroy(g);
}

/* ---- passes ---- */

static npu_status run_clean(void *ctx, npu_graph **out, const npu_graph *g, npu_diag *diag)
{
    (void)ctx;
    return npu_graph_apply_patterns(out, g, clean, 3, NULL, NULL, diag);
}

static npu_status run_to_kind(void *ctx, npu_graph **out, const npu_graph *g, npu_diag *diag)
{
    npu_pattern pattern = { "become", NPU_ATEN_LEAKY_RELU, NULL, 0, become, NULL };
    pattern.ctx = ctx;
    return npu_graph_apply_patterns(out, g, &pattern, 1, NULL, NULL, diag);
}

static void note(void *ctx, const npu_pass *pass, bool is_after, const npu_graph *g)
{
    npu_text_printf((npu_text *)ctx, "%s%s %u;", pass->name, is_after ? " after" : "",
                    (unsigned)npu_graph_num_ops(g));
}

static void test_passes(void)
{
    static const char *const device[] = { "aicf", NULL };
    static npu_kind k_device = NPU_AICF_RELU;
    npu_pass passes[] = { { "clean", NULL, run_clean, NULL }, { "device", device, run_to_kind, NULL } };
    npu_text log = npu_text_init(NULL);
    npu_pass_options options = { note, NULL, true, 0 };
    npu_graph *g = parse(
        "graph main\ninput x : f32[2]\nb = aten.clone.default(x)\nd = aten.leaky_relu.default(b)\noutput y = d\n");
    npu_graph *now = NULL;
    npu_diag diag = { 0 };
    options.ctx = &log;
    passes[1].ctx = &k_device;
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, passes, 2, &options, &diag), NPU_OK);
    check_text(now, "npu_ir 1\ngraph main\ninput x : f32[2]\nd = aicf.relu(x=x) : f32[2]\noutput y = d\n");
    NPU_CHECK_STR(log.data, "clean 2;clean after 1;device 1;device after 1;");
    npu_graph_destroy(now);
    passes[1].namespaces = NULL; /* brings in what it does not declare */
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, passes, 2, NULL, &diag), NPU_ERR_GRAPH);
    NPU_CHECK(!now);
    NPU_CHECK_STR(diag.message, "pass device: it makes aicf ops, which it does not declare");
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, NULL, 0, NULL, &diag), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(now), 2);
    npu_graph_destroy(now);
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, NULL, NULL, 0, NULL, NULL), NPU_ERR_GRAPH);
    options._canary = 1;
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, NULL, 0, &options, NULL), NPU_ERR_INVALID_ARGUMENT);
    npu_text_free(&log);
    npu_graph_destroy(g);
}

/* ---- every allocation fails once ---- */

static npu_registry *shared; /* making one is not what is tested */

/* Does something with a graph of that text; the graph which that makes, if any, is dropped. */
static npu_status with_graph(const npu_allocator *a, const char *text, npu_status (*run)(npu_graph **now, npu_graph *g))
{
    npu_graph *g = NULL, *now = NULL;
    npu_graph_desc desc = { .allocator = a, .registry = shared };
    npu_status status = npu_graph_parse(&g, text, strlen(text), &desc, NULL);
    status = status ? status : run(&now, g);
    NPU_CHECK_EQ(status == NPU_OK, now != NULL);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    return status;
}

static npu_status rewrite(npu_graph **now, npu_graph *g) { return npu_graph_rewrite(now, g, copy, NULL, NULL); }
static npu_status rewritten(const npu_allocator *a) { return with_graph(a, EVERYTHING, rewrite); }

static npu_status extract(npu_graph **now, npu_graph *g)
{
    static const npu_op parts[2] = { { 1 }, { 4 } };
    return npu_graph_extract(now, g, parts, 2, NULL);
}
static npu_status extracted(const npu_allocator *a) { return with_graph(a, EVERYTHING, extract); }

static npu_status sweep(npu_graph **now, npu_graph *g)
{
    return npu_graph_apply_patterns(now, g, clean, 3, NULL, NULL, NULL);
}
static npu_status swept(const npu_allocator *a)
{
    return with_graph(a, CONVERTIBLE "e = aten.leaky_relu.default(c, 0)\noutput y = d\noutput z = e\n", sweep);
}

/* ---- registries ---- */

static npu_status keep_all(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    (void)from;
    return npu_rewrite_copy(rw, op).id ? NPU_OK : NPU_ERR_GRAPH;
}

/* A registry that a graph made for itself, of some hundred KB, is that of all graphs made of it, whichever goes last. */
static void test_one_registry(void)
{
    npu_alloc_counter c = { 0 };
    npu_allocator a = npu_allocator_counting(&c);
    for (int last = 0; last < 4; last++) {
        npu_graph *g[4] = { npu_graph_create(&(npu_graph_desc){ .allocator = &a }) };
        size_t one = c.live_bytes;
        npu_output(g[0], "y", npu_relu(g[0], npu_input(g[0], "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 4 }))));
        for (int i = 1; i < 4; i++) {
            NPU_CHECK_STATUS(npu_graph_rewrite(&g[i], g[i - 1], keep_all, NULL, NULL), NPU_OK);
            NPU_CHECK(npu_graph_registry(g[i]) == npu_graph_registry(g[0]));
        }
        NPU_CHECK(c.live_bytes < one + one / 4);
        for (int i = 0; i < 4; i++) {
            npu_graph_destroy(i == last ? NULL : g[i]);
        }
        npu_output(g[last], "z", npu_neg(g[last], npu_graph_input(g[last], 0)));
        NPU_CHECK_STATUS(npu_graph_status(g[last]), NPU_OK);
        npu_graph_destroy(g[last]);
        NPU_CHECK_EQ(c.live_bytes, 0);
    }
}

static void test_out_of_memory(void)
{
    NPU_CHECK_STATUS(npu_registry_create(&shared, NULL, NULL), NPU_OK);
    NPU_CHECK(npu_test_fail_each(rewritten, false) > 10);
    NPU_CHECK(npu_test_fail_each(extracted, false) > 10);
    NPU_CHECK(npu_test_fail_each(swept, false) > 10);
    npu_registry_destroy(shared);
}

/* ---- symbols ---- */

static const char *const symbolic =
    "graph main\nsymbol N 1 64\nsymbol L 0 0\nchild body\n  symbol N 0 0\n  input x : f32[N]\nend\n"
    "input x : f32[N,L,4]\n"
    "input m : f32[L,4]\nparam w : f32[5,4]\na = aten.linear.default(x, w)\nb = aten.add.Tensor(x, m)\n"
    "c = aten.cat.default([b, b], 2)\nu = my.op(a) : f32[N,L]\noutput y = a\noutput z = c\noutput t = u\n";

static void test_specialize(void)
{
    static const char *const names[] = { "L", "N" };
    static const int64_t dims[] = { 7, 2 };
    npu_graph *g = parse(symbolic), *all = NULL, *some = NULL;
    NPU_CHECK_STATUS(npu_graph_specialize(&all, g, names, dims, 2, NULL), NPU_OK);
    check_text(
        all,
        "npu_ir 1\ngraph main\nchild body\n  input x : f32[2]\nend\ninput x : f32[2,7,4]\ninput m : f32[7,4]\n"
        "param w : f32[5,4]\n"
        "a = aten.linear.default(input=x, weight=w) : f32[2,7,5]\n"
        "b = aten.add.Tensor(self=x, other=m) : f32[2,7,4]\n"
        "c = aten.cat.default(tensors=[b, b], dim=2) : f32[2,7,8]\nu = my.op(arg0=a) : f32[2,7]\n"
        "output y = a\noutput z = c\noutput t = u\n");
    NPU_CHECK_STATUS(npu_graph_specialize(&some, g, names + 1, dims + 1, 1, NULL), NPU_OK);
    check_text(
        some,
        "npu_ir 1\ngraph main\nsymbol L 0 0\nchild body\n  input x : f32[2]\nend\ninput x : f32[2,L,4]\n"
        "input m : f32[L,4]\nparam w : f32[5,4]\n"
        "a = aten.linear.default(input=x, weight=w) : f32[2,L,5]\n"
        "b = aten.add.Tensor(self=x, other=m) : f32[2,L,4]\n"
        "c = aten.cat.default(tensors=[b, b], dim=2) : f32[2,L,8]\nu = my.op(arg0=a) : f32[2,L]\n"
        "output y = a\noutput z = c\noutput t = u\n");
    npu_graph_destroy(all);
    npu_graph_destroy(some);
    npu_graph_destroy(g);
}

static void test_specialize_rejections(void)
{
    static const struct { const char *name; int64_t dim; npu_status status; } rows[] = {
        { "N", 0, NPU_ERR_RANGE }, { "N", 65, NPU_ERR_RANGE }, { "L", -1, NPU_ERR_RANGE }, { "M", 1, NPU_ERR_NOT_FOUND }
    };
    npu_graph *g = parse(symbolic), *now = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_graph_specialize(&now, g, &rows[i].name, &rows[i].dim, 1, &diag), rows[i].status);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
        NPU_CHECK(!now);
    }
    npu_graph_destroy(g);
}

/* Dims that did not contradict each other while they had no value. */
static void test_specialize_contradiction(void)
{
    static const char *const names[] = { "N", "M" };
    static const int64_t good[] = { 3, 3 }, bad[] = { 3, 4 };
    npu_graph *
        g = parse(
           "graph main\nsymbol N 1 9\nsymbol M 1 9\ninput x : f32[2,N]\ninput y : f32[M,2]\n"
           "z = aten.mm.default(x, y)\noutput z = z\n"),
       *now = NULL;
    NPU_CHECK_STATUS(npu_graph_specialize(&now, g, names, good, 2, NULL), NPU_OK);
    npu_graph_destroy(now);
    NPU_CHECK_STATUS(npu_graph_specialize(&now, g, names, bad, 2, NULL), NPU_ERR_SHAPE);
    npu_graph_destroy(g);
}

int main(void)
{
    NPU_RUN(test_copy);
    NPU_RUN(test_copy_by_callback);
    NPU_RUN(test_dead_ops);
    NPU_RUN(test_effects);
    NPU_RUN(test_fuse);
    NPU_RUN(test_fuse_needs_one_user);
    NPU_RUN(test_replace_by_operand);
    NPU_RUN(test_failures);
    NPU_RUN(test_bound_params_and_locations);
    NPU_RUN(test_extract);
    NPU_RUN(test_extract_rejections);
    NPU_RUN(test_patterns);
    NPU_RUN(test_benefit);
    NPU_RUN(test_no_fixed_point);
    NPU_RUN(test_pattern_failures);
    NPU_RUN(test_convert);
    NPU_RUN(test_convert_leaves_illegal);
    NPU_RUN(test_passes);
    NPU_RUN(test_one_registry);
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_specialize);
    NPU_RUN(test_specialize_rejections);
    NPU_RUN(test_specialize_contradiction);
    return npu_test_done();
}
