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
    npu_text text = npu_text_make(NULL);
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
    static const npu_op_row row = { 0x01000001, NPU_EFFECT, NULL, "store(Tensor x) -> ()", "keeps x" };
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
    NPU_CHECK_STATUS(npu_param_bind(g, "w", data, sizeof data), NPU_OK);
    c = npu_constant_ref(g, "borrowed", npu_spec_tensor(NPU_F32, 1, dims), data);
    npu_constant(g, "owned", npu_spec_tensor(NPU_F32, 1, dims), owned);
    npu_output(g, "y", npu_add(npu_graph_at(g, "model.c", 12), x, c));
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, NULL, NULL, NULL), NPU_OK);
    npu_graph_destroy(g);
    NPU_CHECK(npu_value_data(now, npu_graph_find(now, "w"), &size) == data);
    NPU_CHECK_EQ(size, sizeof data);
    NPU_CHECK(npu_value_data(now, npu_graph_find(now, "borrowed"), NULL) == data);
    NPU_CHECK(memcmp(npu_value_data(now, npu_graph_find(now, "owned"), NULL), owned, sizeof owned) == 0);
    NPU_CHECK_EQ(npu_op_location(now, op, &file), 12);
    NPU_CHECK_STR(file, "model.c");
    npu_graph_destroy(now);
}

/* Every allocation fails once. */
static void test_out_of_memory(void)
{
    npu_status status = NPU_ERR_NO_MEMORY;
    npu_registry *registry = NULL;
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (uint64_t n = 1; status && n < 5000; n++) {
        npu_alloc_counter counter = { 0, 0, 0, 0 };
        npu_allocator allocator = npu_counting_allocator(&counter);
        npu_graph_desc desc = { 0 };
        npu_graph *g = NULL, *now = NULL;
        desc.allocator = &allocator;
        desc.registry = registry;
        NPU_CHECK_STATUS(npu_graph_parse(&g, EVERYTHING, strlen(EVERYTHING), &desc, NULL), NPU_OK);
        counter.fail_at = counter.num_calls + n;
        status = npu_graph_rewrite(&now, g, copy, NULL, NULL);
        if (status) {
            NPU_CHECK_STATUS(status, NPU_ERR_NO_MEMORY);
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    npu_registry_destroy(registry);
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
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_specialize);
    NPU_RUN(test_specialize_rejections);
    NPU_RUN(test_specialize_contradiction);
    return npu_test_done();
}
