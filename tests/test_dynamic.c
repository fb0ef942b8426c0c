/* Shapes that depend on data: the symbols that results get, and their bounds; plans at the bound; runs with the dims
   that come up, from input to output. */
#include "rig.h"
#include <pthread.h>

/* ---- deduction: symbols and bounds ---- */

/* A graph in text and the symbols that it has in the end: name and bound, "-" where there is none. */
typedef struct symbols_row {
    const char *ops, *symbols, *spec; /* of the last value */
} symbols_row;

static const char *const sources =
    "graph main\nsymbol s 1 64\nsymbol t 0 0\ninput x : f32[s,4]\ninput y : f32[8]\ninput m : bool[8]\n"
    "input i : i64[3]\ninput z : f32[t,4]\ninput k : bool[s,4]\ninput a : f32[?]\ninput p : i64[]\n";

static void check_symbols(const symbols_row *row)
{
    npu_text text = npu_text_init(NULL), symbols = npu_text_init(NULL);
    npu_graph *g = NULL, *again = NULL;
    npu_diag diag;
    int64_t min, max;
    npu_text_printf(&text, "%s%s\n", sources, row->ops);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, &diag), NPU_OK);
    npu_text_free(&text);
    if (!g) {
        fprintf(stderr, "%s: %s\n", row->ops, diag.message);
        return;
    }
    for (int64_t dim = -4; npu_graph_symbol_name(g, dim); dim--) {
        bool bounded = npu_graph_dim_bounds(g, dim, &min, &max);
        NPU_CHECK_EQ(min, 0);
        npu_text_printf(&symbols, symbols.len ? " %s" : "%s", npu_graph_symbol_name(g, dim));
        if (bounded) {
            npu_text_printf(&symbols, "<=%lld", (long long)max);
        }
    }
    NPU_CHECK_STR(symbols.data ? symbols.data : "", row->symbols);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    /* the text form says the same when it is read and written once more */
    text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK(strstr(text.data, row->spec));
    if (!strstr(text.data, row->spec)) {
        fprintf(stderr, "%s\n", text.data);
    }
    NPU_CHECK_STATUS(npu_graph_parse(&again, text.data, text.len, NULL, NULL), NPU_OK);
    npu_text twice = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(again, &twice), NPU_OK);
    NPU_CHECK_STR(twice.data, text.data);
    NPU_CHECK_STATUS(npu_graph_validate(again, NULL, NULL), NPU_OK);
    npu_text_free(&text);
    npu_text_free(&twice);
    npu_text_free(&symbols);
    npu_graph_destroy(g);
    npu_graph_destroy(again);
}

static void test_symbols(void)
{
    static const symbols_row rows[] = {
        /* what data decides */
        { "r = aten.nonzero.default(y)", "d2<=8", "i64[d2,1]" },
        { "r = aten.nonzero.default(x)", "d2<=256", "i64[d2,2]" },
        { "r = aten.nonzero.default(z)", "d2", "i64[d2,2]" },
        { "r = aten.argwhere.default(m)", "d2<=8", "i64[d2,1]" },
        { "r = aten.masked_select.default(y, m)", "d2<=8", "f32[d2]" },
        { "r = aten.masked_select.default(x, k)", "d2<=256", "f32[d2]" },
        { "c, d = aten.where.default(x)", "d2<=256", "i64[d2], i64[d2]" },
        { "r = aten.index.Tensor(y, [m])", "d2<=8", "f32[d2]" },
        { "r = aten.index.Tensor(x, [k])", "d2<=256", "f32[d2]" },
        /* one count of one mask, whoever asks for it */
        { "n = aten.nonzero.default(m)\nv = aten.masked_select.default(y, m)\nw = aten.index.Tensor(y, [m])\n"
          "r = aten.mul.Tensor(v, w)", "d2<=8", "other=w) : f32[d2]" },
        { "n = aten.masked_select.default(x, k)\nr = aten.index.Tensor(x, [k])", "d2<=256", "indices=[k]) : f32[d2]" },
        { "input u : bool[s,1]\nn = aten.nonzero.default(u)\nr = aten.masked_select.default(x, u)", "d2<=64 d3<=256",
          "f32[d3]" }, /* which is spread here */
        { "r = aten.index.Tensor(x, [none, i])", "", "f32[s,3]" },
        { "r = aten.one_hot.default(i)", "d2", "i64[3,d2]" },
        { "r = aten.one_hot.default(i, 5)", "", "i64[3,5]" },
        { "r = aten.repeat_interleave.Tensor(i)", "d2", "i64[d2]" },
        { "r = aten.repeat_interleave.Tensor(i, output_size=9)", "", "i64[9]" },
        { "c, d, e, f = aten.tensor_split.tensor_indices_or_sections(y, i)", "d2<=8 d3<=8 d4<=8 d5<=8",
          "f32[d2], f32[d3], f32[d4], f32[d5]" },
        { "r = aten.bincount.default(i)", "d2", "i64[d2]" },
        { "c, d, e = aten._unique2.default(x, return_counts=true)", "d2<=256", "f32[d2], i64[0], i64[d2]" },
        { "c, d, e = aten.unique_dim.default(x, 0)", "d2<=64", "f32[d2,4], i64[0], i64[0]" },
        { "c, d, e = aten.unique_consecutive.default(z, return_inverse=true, dim=1)", "d2<=4",
          "f32[t,d2], i64[4], i64[0]" },
        /* what follows from it: equal symbols are equal dims, computed ones are fresh */
        { "n = aten.masked_select.default(y, m)\nr = aten.add.Tensor(n, n)", "d2<=8", "other=n) : f32[d2]" },
        { "n = aten.masked_select.default(y, m)\nr = aten.cat.default([n, y])", "d2<=8 d3<=16", "f32[d3]" },
        { "r = aten.cat.default([x, x])", "d2<=128", "f32[d2,4]" },
        { "r = aten.reshape.default(x, [-1])", "d2<=256", "f32[d2]" },
        { "r = aten.reshape.default(x, [-1, 2, 2])", "", "f32[s,2,2]" },
        { "r = aten.flatten.using_ints(x)", "d2<=256", "f32[d2]" },
        { "r = aten.slice.Tensor(x, 0, 1, -1)", "d2<=62", "f32[d2,4]" },
        { "r = aten.slice.Tensor(x, 0, 0, 64, 2)", "d2<=32", "f32[d2,4]" },
        { "r = aten.slice.Tensor(x, 0, 64)", "d2<=1", "f32[d2,4]" },
        { "r = aten.slice.Tensor(y, 0, p)", "d2<=8", "f32[d2]" },
        { "r = aten.slice.Tensor(x, 0, 0, p, 3)", "d2<=22", "f32[d2,4]" },
        { "r = aten.repeat.default(x, [3, 1])", "d2<=192", "f32[d2,4]" },
        { "r = aten.cat.default([z, z])", "d2", "f32[d2,4]" },
        { "c, d = aten.tensor_split.indices(x, [3])", "d2<=3 d3<=61", "f32[d2,4], f32[d3,4]" },
        { "c, d, e = aten.tensor_split.sections(x, 3)", "d2<=22 d3<=21 d4<=21", "f32[d2,4], f32[d3,4], f32[d4,4]" },
        /* an op that refuses the largest dims, and one of which a dim makes less */
        { "u = aten.slice.Tensor(x, 0, 1)\nr = aten.glu.default(u, 0)", "d2<=63 d3<=31", "f32[d3,4]" },
        { "symbol v 0 5\ninput w : f32[1,1,v,4]\nu = aten.reshape.default(x, [1, 1, -1, 4])\n"
          "r = aten.conv2d.default(u, w, none, [1, 1], [1, 1])", "v<=5 d3<=66", "f32[1,1,d3,3]" },
        { "n = aten.nonzero.default(y)\nv = aten.squeeze.dim(n, 1)\nr = aten.index_select.default(y, 0, v)", "d2<=8",
          "index=v) : f32[d2]" },
        /* a bound from the end that meets one from the start: most is in between */
        { "r = aten.slice.Tensor(x, 0, -40, 50)", "d2<=40", "f32[d2,4]" },
        { "r = aten.slice.Tensor(x, 0, -11, 28, 2)", "d2<=6", "f32[d2,4]" },
        { "c, d, e = aten.tensor_split.indices(x, [-40, 50])", "d2<=24 d3<=40 d4<=14",
          "f32[d2,4], f32[d3,4], f32[d4,4]" },
        /* a function of t that is another one's where t is not 0 */
        { "d = aten.reshape.default(z, [-1])\ns = aten.slice.Tensor(d, 0, 3, -1, 4)\nq = aten.slice.Tensor(y, 0, 0, 4)\n"
          "r = aten.cat.default([q, s, s, s, s])", "d2 d3 d4", "f32[d4]" },
        /* what is the same function of other sizes is the same size, whatever ops lead there */
        { "c = aten.slice.Tensor(z, 0, 1)\nd = aten.slice.Tensor(z, 0, 0, -1)\nr = aten.add.Tensor(c, d)", "d2", "f32[d2,4]" },
        { "c = aten.slice.Tensor(x, 0, 1)\nd = aten.slice.Tensor(x, 0, 0, -1)\nr = aten.add.Tensor(c, d)", "d2<=63",
          "other=d) : f32[d2,4]" },
        /* what is alike at few sizes, or where there is nothing, is not the same */
        { "symbol v 0 0\ninput w : f32[v,4]\nc = aten.slice.Tensor(z, 0, -1, 2)\nr = aten.slice.Tensor(w, 0, -1, 2)", "v d3 d4",
          "f32[d4,4]" },
        { "c = aten.slice.Tensor(z, 0, -1, 2)\nn = aten.nonzero.default(c)\nr = aten.nonzero.default(n)", "d2 d3 d4",
          "i64[d4,2]" },
        { "c = aten.constant_pad_nd.default(z, [0, 0, 2, 0])\nd = aten.slice.Tensor(c, 0, 2)\nr = aten.add.Tensor(d, z)", "d2",
          "other=z) : f32[t,4]" },
        { "v = aten.t.default(z)\nc = aten.max_pool1d.default(v, [3], [2], [1])\nd = aten.slice.Tensor(v, 1, 0, step=2)\n"
          "r = aten.add.Tensor(c, d)", "d2", "other=d) : f32[4,d2]" },
        { "v = aten.t.default(z)\nc = aten.avg_pool1d.default(v, [2])\nd = aten.avg_pool1d.default(c, [4])\n"
          "e = aten.avg_pool1d.default(v, [8])\nr = aten.mul.Tensor(d, e)", "d2 d3", "other=e) : f32[4,d3]" },
        { "n = aten.masked_select.default(y, m)\nu = aten.cat.default([n, y])\nv = aten.cat.default([y, n])\n"
          "r = aten.add.Tensor(u, v)", "d2<=8 d3<=16", "other=v) : f32[d3]" },
        /* no symbol stands for an anonymous dim, nor for what is computed from one */
        { "r = aten.cat.default([a, a])", "", "f32[?]" },
        { "r = aten.nonzero.default(a)", "d2", "i64[d2,1]" },
    };
    NPU_ITEM("R3.6");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_symbols(&rows[i]);
    }
}

/* What no rule can say is an error that names the op and the operand. */
static void test_rejected_shapes(void)
{
    static const struct { const char *op, *operand; } rows[] = {
        { "r = aten.add.Tensor(x, z)", "other" }, /* two symbols */
        { "c = aten.slice.Tensor(z, 0, 0, 8)\nd = aten.slice.Tensor(z, 0, 2, 10)\nr = aten.add.Tensor(c, d)", "other" },
        { "c = aten.slice.Tensor(z, 0, 0, step=32)\nd = aten.slice.Tensor(z, 0, 31, step=32)\nr = aten.add.Tensor(c, d)", "other" },
        { "c = aten.slice.Tensor(x, 0, 0, step=16)\nd = aten.slice.Tensor(x, 0, 1, step=16)\nr = aten.add.Tensor(c, d)", "other" },
        { "c = aten.slice.Tensor(x, 0, 1)\nd = aten.slice.Tensor(z, 0, 1)\nr = aten.add.Tensor(c, d)", "other" },
        { "c = aten.slice.Tensor(z, 0, 0, 500000)\nr = aten.add.Tensor(c, z)", "other" },
        { "c = aten.nonzero.default(y)\nd = aten.nonzero.default(m)\nr = aten.add.Tensor(c, d)", "other" },
        { "n = aten.masked_select.default(y, m)\nr = aten.add.Tensor(n, y)", "other" },
        { "r = aten.index.Tensor(x, [k, k])", "indices" },
        { "r = aten.unbind.int(x)", "self" },
        { "r = aten.split.Tensor(x, 2)", "self" },
        { "r = aten.chunk.default(x, 2)", "self" },
        { "r = aten.tensor_split.tensor_indices_or_sections(y, p)", "tensor_indices_or_sections" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL;
        npu_diag diag;
        npu_text_printf(&text, "%s%s\n", sources, rows[i].op);
        npu_status status = npu_graph_parse(&g, text.data, text.len, NULL, &diag);
        if (strstr(rows[i].op, "[k, k]")) { /* more dims than x has: no question of symbols */
            NPU_CHECK_STATUS(status, NPU_ERR_SHAPE);
        } else {
            NPU_CHECK_STATUS(status, NPU_ERR_DYNAMIC_SHAPE);
        }
        NPU_CHECK_STR(diag.operand, rows[i].operand);
        npu_text_free(&text);
        npu_graph_destroy(g);
    }
}

/* A symbol of the caller's for a dim that data decides, and what is no such dim. */
static void test_given_symbols(void)
{
    npu_graph *g = npu_graph_create(NULL);
    int64_t few = npu_graph_add_symbol(g, "few", 0, 5);
    npu_arg self = npu_arg_tensor("self", npu_input(g, "x", F32(10)));
    npu_spec good = npu_spec_tensor(NPU_I64, 2, DIMS(few, 1)), number = npu_spec_tensor(NPU_I64, 2, DIMS(5, 1));
    npu_op op = npu_emit_typed(g, "aten.nonzero.default", &self, 1, &good, 1);
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, op, 0))->dims[0], few);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_emit_typed(g, "aten.nonzero.default", &self, 1, &number, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_graph_destroy(g);
}

/* Replaces the second of two equal ops: what its symbol said of others is then said by that of the first. */
static npu_status keep_one(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    npu_op *first = ctx;
    if (npu_op_kind(from, op) == NPU_ATEN_REPEAT_INTERLEAVE && first->id) {
        npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_rewrite_value(rw, npu_op_result(from, *first, 0)));
        return NPU_OK;
    }
    if (npu_op_kind(from, op) == NPU_ATEN_REPEAT_INTERLEAVE) {
        *first = op;
    }
    return npu_rewrite_copy(rw, op).id ? NPU_OK : npu_graph_status(npu_rewrite_target(rw));
}

static void test_rewritten(void)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL, *now = NULL;
    npu_op first = { 0 };
    npu_text_printf(&text, "%s%s", sources,
                    "symbol e 0 0\nq = aten.repeat_interleave.Tensor(i) : i64[e]\n"
                    "b = aten.repeat_interleave.Tensor(i)\nr = my.op(b) : f32[d3,2]\noutput q = q\noutput r = r\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_rewrite(&now, g, keep_one, &first, NULL), NPU_OK);
    npu_text_free(&text);
    text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(now, &text), NPU_OK);
    NPU_CHECK(strstr(text.data, "r = my.op(arg0=q) : f32[e,2]\n"));
    NPU_CHECK_STATUS(npu_graph_validate(now, NULL, NULL), NPU_OK);
    npu_text_free(&text);
    npu_graph_destroy(g);
    npu_graph_destroy(now);
}

/* Values for symbols reach what was deduced from them: bounds shrink, or numbers come out. */
static void test_specialized(void)
{
    static const char *const name = "s";
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL, *now = NULL;
    npu_text_printf(&text, "%s%s", sources,
                    "n = aten.nonzero.default(x)\nc = aten.cat.default([x, x])\nd = aten.reshape.default(c, [-1, 2])\n"
                    "e = aten.add.Tensor(n, n)\noutput n = n\noutput d = d\noutput e = e\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_specialize(&now, g, &name, DIMS(3), 1, NULL), NPU_OK);
    npu_text_free(&text);
    text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(now, &text), NPU_OK);
    NPU_CHECK(strstr(text.data, "symbol d1 0 12\n"));
    NPU_CHECK(strstr(text.data, "n = aten.nonzero.default(self=x) : i64[d1,2]\n"));
    NPU_CHECK(strstr(text.data, "f32[6,4]\n"));
    NPU_CHECK(strstr(text.data, "f32[12,2]\n"));
    NPU_CHECK(strstr(text.data, "e = aten.add.Tensor(self=n, other=n) : i64[d1,2]\n"));
    npu_text_free(&text);
    npu_graph_destroy(g);
    npu_graph_destroy(now);
}

/* ---- running ---- */

static rig rig_text(const char *text, uint32_t num_sims)
{
    rig r = rig_start(NULL, num_sims);
    npu_graph_destroy(r.graph);
    r.graph = NULL;
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), NULL, &r.diag), NPU_OK);
    return r;
}

static void check_output(rig *r, const char *name, const char *dims, const float *expected, size_t num)
{
    size_t size = 0;
    const float *got = npu_exec_find_output(r->exec, name, &size);
    npu_text text = npu_text_init(NULL);
    for (uint32_t i = 0; i < npu_graph_num_outputs(r->graph); i++) {
        if (strcmp(npu_graph_output_name(r->graph, i), name) == 0) {
            npu_spec_print(&text, npu_exec_output_spec(r->exec, i));
        }
    }
    NPU_CHECK_STR(text.data, dims);
    npu_text_free(&text);
    NPU_CHECK_EQ(size, num * sizeof *expected);
    for (size_t i = 0; i < num && size == num * sizeof *expected; i++) {
        NPU_CHECK_NEAR(got[i], expected[i], 1e-5);
    }
}

static const char *format(char buf[32], const char *spec, size_t n)
{
    snprintf(buf, 32, spec, (unsigned)n);
    return buf;
}

/* Bit i of the pattern is element i: none, all, and some of them. */
static const uint32_t patterns[] = { 0, 0x3f, 0x15, 0x20, 0, 0x01, 0x3e, 0x3f };

/* Rows that a mask picks, times a matrix, summed. */
static void test_rows_of_a_mask(void)
{
    rig r = rig_text("graph main\ninput x : f32[6,4]\ninput m : bool[6]\n"
                     "const w : f32[4,2] {1.0, 0.0, 0.5, 1.0, -1.0, 2.0, 0.0, -3.0}\n"
                     "p = aten.index.Tensor(x, [m])\nq = aten.mm.default(p, w)\ns = aten.sum.dim_IntList(q, [0])\n"
                     "t = aten.relu.default(q)\noutput p = p\noutput q = q\noutput s = s\noutput t = t\n", 0);
    static const float w[4][2] = { { 1, 0 }, { 0.5f, 1 }, { -1, 2 }, { 0, -3 } };
    float x[6][4];
    uint8_t m[6];
    fill(&x[0][0], 24, 3);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "m", m, sizeof m), NPU_OK);
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        float p[24], q[12], s[2] = { 0 }, t[12];
        char dims[32];
        size_t n = 0;
        for (int i = 0; i < 6; i++) {
            m[i] = patterns[k] >> i & 1;
            for (int j = 0; m[i] && j < 4; j++) {
                p[n * 4 + (size_t)j] = x[i][j];
            }
            for (int c = 0; m[i] && c < 2; c++) {
                q[n * 2 + (size_t)c] = x[i][0] * w[0][c] + x[i][1] * w[1][c] + x[i][2] * w[2][c] + x[i][3] * w[3][c];
                t[n * 2 + (size_t)c] = q[n * 2 + (size_t)c] > 0 ? q[n * 2 + (size_t)c] : 0;
                s[c] += q[n * 2 + (size_t)c];
            }
            n += m[i];
        }
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "p", format(dims, "f32[%u,4]", n), p, n * 4);
        check_output(&r, "q", format(dims, "f32[%u,2]", n), q, n * 2);
        check_output(&r, "t", format(dims, "f32[%u,2]", n), t, n * 2);
        check_output(&r, "s", "f32[2]", s, 2);
    }
    rig_end(&r);
}

/* Indices of what is not zero, and what is picked by them: three ways to one vector. */
static void test_indices(void)
{
    rig r = rig_text("graph main\ninput x : f32[2,3]\n"
                     "n = aten.nonzero.default(x)\ni, j = aten.where.default(x)\n"
                     "c = aten.ne.Scalar(x, 0)\na = aten.masked_select.default(x, c)\n"
                     "b = aten.index.Tensor(x, [i, j])\nf = aten.flatten.using_ints(x)\n"
                     "col = aten.select.int(n, 1, 1)\nrow = aten.select.int(n, 1, 0)\n"
                     "at = aten.add.Tensor(col, row, alpha=3)\ng = aten.gather.default(f, 0, at)\n"
                     "both = aten.cat.default([a, g])\nnum = aten.sum.default(both)\n"
                     "output a = a\noutput b = b\noutput g = g\noutput both = both\noutput num = num\n", 0);
    float x[6], picked[6], twice[12];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        char dims[32];
        size_t n = 0;
        float sum = 0;
        for (int i = 0; i < 6; i++) {
            x[i] = patterns[k] >> i & 1 ? (float)(i + 1) * 0.5f : 0;
            if (x[i] != 0) {
                picked[n++] = x[i];
                sum += 2 * x[i];
            }
        }
        memcpy(twice, picked, n * sizeof *picked);
        memcpy(twice + n, picked, n * sizeof *picked);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "a", format(dims, "f32[%u]", n), picked, n);
        check_output(&r, "b", format(dims, "f32[%u]", n), picked, n);
        check_output(&r, "g", format(dims, "f32[%u]", n), picked, n);
        check_output(&r, "both", format(dims, "f32[%u]", 2 * n), twice, 2 * n);
        check_output(&r, "num", "f32[]", &sum, 1);
    }
    rig_end(&r);
}

/* What is there once of n elements, which are 6: put back by their places they are those that came. Columns are
   (x, 1 - x). */
static void check_unique(const char *symbol, const char *dim)
{
    char text[700];
    snprintf(text, sizeof text, "graph main\n%sinput x : f32[%s]\ninput y : f32[2,%s]\ninput i : i64[6]\n%s", symbol, dim, dim,
                     "v, p, c = aten._unique2.default(x, return_inverse=true, return_counts=true)\n"
                     "back = aten.index_select.default(v, 0, p)\nnum = aten.to.dtype(c, f32)\n"
                     "columns, q, k = aten.unique_dim.default(y, 1)\n"
                     "b = aten.bincount.default(i)\nbins = aten.to.dtype(b, f32)\n"
                     "output v = v\noutput back = back\noutput num = num\noutput columns = columns\n"
                     "output bins = bins\n");
    rig r = rig_text(text, 0);
    float x[6], y[2][6];
    int64_t numbers[6];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 1, DIMS(6), x), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "y", 2, DIMS(2, 6), y[0]), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "i", numbers, sizeof numbers), NPU_OK);
    for (size_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
        float values[2], columns[4], num[2], bins[5] = { 0 };
        char dims[32];
        size_t n = 0, large = 0;
        for (int i = 0; i < 6; i++) {
            bool is_large = patterns[k] >> i & 1;
            x[i] = y[0][i] = is_large ? 2.0f : 0.5f;
            y[1][i] = 1 - x[i];
            numbers[i] = is_large ? 4 : 1;
            large += is_large;
        }
        for (int is_large = 0; is_large < 2; is_large++) {
            if (is_large ? large : 6 - large) {
                values[n] = is_large ? 2.0f : 0.5f;
                num[n++] = bins[is_large ? 4 : 1] = (float)(is_large ? large : 6 - large);
            }
        }
        for (size_t i = 0; i < n; i++) {
            columns[i] = values[i];
            columns[n + i] = 1 - values[i];
        }
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "v", format(dims, "f32[%u]", n), values, n);
        check_output(&r, "back", "f32[6]", x, 6);
        check_output(&r, "num", format(dims, "f32[%u]", n), num, n);
        check_output(&r, "columns", format(dims, "f32[2,%u]", n), columns, 2 * n);
        check_output(&r, "bins", large ? "f32[5]" : "f32[2]", bins, large ? 5 : 2);
    }
    numbers[2] = -1;
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_RANGE);
    rig_end(&r);
}

/* What the kernel tells has room for as many as this run's operands may give, bounded before or not. */
static void test_unique(void)
{
    static const struct { const char *symbol, *n; } rows[] = { { "", "6" }, { "symbol n 0 6\n", "n" }, { "symbol n 0 0\n", "n" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_unique(rows[i].symbol, rows[i].n);
    }
}

/* Pieces between indices of run time. */
static void test_pieces(void)
{
    static const int64_t cuts[][2] = { { 0, 0 }, { 2, 4 }, { 5, 9 }, { 3, 1 }, { -1, 5 } };
    rig r = rig_text("graph main\ninput x : f32[5]\ninput i : i64[2]\n"
                     "a, b, c = aten.tensor_split.tensor_indices_or_sections(x, i)\nd = aten.neg.default(b)\n"
                     "output a = a\noutput d = d\noutput c = c\n", 0);
    float x[5], d[5];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    fill(x, 5, 9);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    for (size_t k = 0; k < sizeof cuts / sizeof cuts[0]; k++) {
        char dims[32];
        int64_t at[2];
        for (int i = 0; i < 2; i++) {
            at[i] = cuts[k][i] < 0 ? cuts[k][i] + 5 : cuts[k][i] > 5 ? 5 : cuts[k][i];
        }
        size_t n = (size_t)(at[1] > at[0] ? at[1] - at[0] : 0), last = (size_t)(5 - at[1]);
        for (size_t i = 0; i < n; i++) {
            d[i] = -x[(size_t)at[0] + i];
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "i", cuts[k], sizeof cuts[k]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "a", format(dims, "f32[%u]", (size_t)at[0]), x, (size_t)at[0]);
        check_output(&r, "d", format(dims, "f32[%u]", n), d, n);
        check_output(&r, "c", format(dims, "f32[%u]", last), x + 5 - last, last);
    }
    rig_end(&r);
}

/* ---- what nothing bounds ---- */

static void test_repeats(void)
{
    static const int64_t repeats[][3] = { { 1, 2, 3 }, { 0, 0, 0 }, { 50, 0, 70 }, { 0, 1, 0 }, { 40, 41, 42 } };
    rig r = rig_text("graph main\ninput x : f32[3]\ninput r : i64[3]\n"
                     "a = aten.repeat_interleave.self_Tensor(x, r)\nb = aten.add.Tensor(a, a)\n"
                     "c = aten.cumsum.default(b, 0)\ns = aten.sum.default(b)\noutput c = c\noutput s = s\n", 0);
    static float c[128];
    uint64_t bytes, most = 0;
    uint32_t backend;
    npu_memory memory;
    float x[3] = { 0.5f, -1, 2 };
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    for (size_t k = 0; k < sizeof repeats / sizeof repeats[0]; k++) {
        char dims[32];
        size_t n = 0;
        float sum = 0;
        for (int i = 0; i < 3; i++) {
            for (int64_t j = 0; j < repeats[k][i]; j++) {
                sum += 2 * x[i];
                c[n++] = sum;
            }
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "r", repeats[k], sizeof repeats[k]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "c", format(dims, "f32[%u]", n), c, n);
        check_output(&r, "s", "f32[]", &sum, 1);
        /* a buffer named after the first value in it, which never shrinks: b takes the memory of a */
        NPU_CHECK_STR(npu_exec_unbounded(r.exec, 0, &backend, &bytes), "a");
        NPU_CHECK_EQ(backend, 0);
        NPU_CHECK(bytes >= n * 4 && bytes >= most);
        most = bytes;
        NPU_CHECK(!npu_exec_unbounded(r.exec, 1, &backend, &bytes)); /* c is the output's own memory */
    }
    npu_text text = npu_text_init(NULL);
    npu_plan_print_memory(npu_program_plan(r.program), &text);
    NPU_CHECK(strstr(text.data, "  0 values with runtime dims") && strstr(text.data, "and 3 unbounded ones"));
    npu_text_free(&text);
    /* and no part of the plan */
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &memory), NPU_OK);
    NPU_CHECK_EQ(memory.activations, memory.scratch);
    rig_end(&r);
}

static void test_classes(void)
{
    static const int64_t classes[][4] = { { 0, 1, 2, 1 }, { 0, 0, 0, 0 }, { 9, 3, 9, 9 }, { 1, 0, 1, 1 } };
    rig r = rig_text("graph main\ninput i : i64[4]\nh = aten.one_hot.default(i)\n"
                     "f = aten.to.dtype(h, f32)\nn = aten.sum.dim_IntList(f, [0])\noutput n = n\n", 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (size_t k = 0; k < sizeof classes / sizeof classes[0]; k++) {
        float n[10] = { 0 };
        char dims[32];
        size_t num = 0;
        for (int i = 0; i < 4; i++) {
            n[classes[k][i]]++;
            num = (size_t)classes[k][i] + 1 > num ? (size_t)classes[k][i] + 1 : num;
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "i", classes[k], sizeof classes[k]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "n", format(dims, "f32[%u]", num), n, num);
    }
    rig_end(&r);
}

/* ---- a kernel that tells the size itself ---- */

enum { MINE_DISTINCT = NPU_NS_USER << 16 | 1 };

static npu_status type_distinct(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "x");
    npu_spec y = *x, at = npu_spec_tensor(NPU_I64, 1, x->dims);
    y.dims[0] = npu_deduce_data_dim(0, x->dims[0]);
    npu_status status = npu_deduce_add_result(d, &y);
    return status ? status : npu_deduce_add_result(d, &at);
}

static const npu_op_row distinct_row = { MINE_DISTINCT, NPU_DATA, type_distinct, "distinct(Tensor x) -> (Tensor, Tensor)",
                                         "runs of equal elements, and the run of each", NULL };

static npu_status run_distinct(const npu_launch *l, uint32_t part, uint32_t parts)
{
    const float *x = l->x[0];
    int64_t n = 0;
    (void)part;
    (void)parts;
    for (int64_t i = 0; i < l->in[0].dims[0]; i++) {
        n += i == 0 || x[i] != x[i - 1];
        ((float *)l->y[0])[n - 1] = x[i];
        ((int64_t *)l->y[1])[i] = n - 1;
    }
    if (!l->dims) {
        return NPU_ERR_INTERNAL;
    }
    l->dims[0][0] = n;
    return NPU_OK;
}

static const npu_kernel distinct_kernels[] = {
    { .kind = MINE_DISTINCT, .variant = "plain", .launch = run_distinct }
};

static void test_kernel_tells(void)
{
    static const char text[] =
        "graph main\ninput x : f32[6]\ny, at = mine.distinct(x)\nz = aten.mul.Scalar(y, 2)\n"
        "back = aten.index_select.default(y, 0, at)\noutput z = z\noutput back = back\n";
    static const float rows[][6] = { { 1, 1, 2, 2, 2, 1 }, { 3, 3, 3, 3, 3, 3 }, { 1, 2, 3, 4, 5, 6 }, { 0, 0, 0, 0, 0, 1 } };
    npu_kernel_table tables[64];
    npu_graph_desc desc;
    npu_ref_desc ref_desc;
    npu_registry *registry = NULL;
    npu_backend *cpu = NULL;
    uint32_t num_tables;
    const npu_kernel_table *built_in = npu_ref_kernels(&num_tables);
    rig r = rig_start(NULL, 0);
    memset(&desc, 0, sizeof desc);
    memset(&ref_desc, 0, sizeof ref_desc);
    tables[0].version = NPU_IR_VERSION;
    tables[0].kernels = distinct_kernels;
    tables[0].num_kernels = 1;
    memcpy(tables + 1, built_in, num_tables * sizeof *built_in);
    ref_desc.tables = tables;
    ref_desc.num_tables = num_tables + 1;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &ref_desc), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &distinct_row, NULL), NPU_OK);
    npu_graph_destroy(r.graph);
    desc.registry = registry;
    r.backends[0] = cpu;
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, sizeof text - 1, &desc, &r.diag), NPU_OK);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        float z[6];
        char dims[32];
        size_t n = 0;
        for (int i = 0; i < 6; i++) {
            if (i == 0 || rows[k][i] != rows[k][i - 1]) {
                z[n++] = 2 * rows[k][i];
            }
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", rows[k], sizeof rows[k]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "z", format(dims, "f32[%u]", n), z, n);
        check_output(&r, "back", "f32[6]", rows[k], 6);
    }
    rig_end(&r);
    npu_ref_destroy(cpu);
    npu_registry_destroy(registry);
}

/* ---- numbers that values feed ---- */

/* A row, and the rows between two; where they begin and end is data. */
static void test_fed(void)
{
    static const int64_t rows[][2] = { { 0, 5 }, { 1, 3 }, { 4, 4 }, { 3, 1 }, { -2, 5 }, { 2, 9 } };
    rig r = rig_text("graph main\ninput x : f32[5,3]\ninput i : i64[]\ninput j : i32[]\n"
                     "a = aten.select.int(x, 0, i)\nb = aten.slice.Tensor(x, 0, i, j)\nc = aten.neg.default(b)\n"
                     "w = aten.narrow.default(x, 0, i, 1)\noutput w = w\nk = aten.sym_size.int(c, 0)\nn = aten.add.Scalar(k, 0)\nf = aten.full.default([n, 2], 7.0)\ns = aten.sum.dim_IntList(b, [0])\n"
                     "output a = a\noutput c = c\noutput f = f\noutput s = s\n", 1);
    float x[5][3];
    uint32_t reason;
    fill(x[0], 15, 3);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    npu_op op = npu_value_producer(r.graph, npu_graph_find(r.graph, "a"), NULL);
    NPU_CHECK_EQ(npu_plan_op_backend(r.plan, op, &reason, NULL), 1); /* although its dims are all known */
    NPU_CHECK_EQ(reason, NPU_REASON_DYNAMIC);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        int32_t end = (int32_t)rows[k][1];
        int64_t from = rows[k][0] < 0 ? rows[k][0] + 5 : rows[k][0], to = end > 5 ? 5 : end;
        size_t n = (size_t)(to > from ? to - from : 0);
        float c[15], f[10], s[3] = { 0 };
        char dims[32];
        for (size_t i = 0; i < n; i++) {
            f[2 * i] = f[2 * i + 1] = 7;
            for (size_t d = 0; d < 3; d++) {
                c[3 * i + d] = -x[(size_t)from + i][d];
                s[d] += x[(size_t)from + i][d];
            }
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "i", &rows[k][0], 8), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "j", &end, 4), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "a", "f32[3]", x[from], 3);
        check_output(&r, "w", "f32[1,3]", x[from], 3);
        check_output(&r, "c", format(dims, "f32[%u,3]", n), c, 3 * n);
        check_output(&r, "f", format(dims, "f32[%u,2]", n), f, 2 * n);
        check_output(&r, "s", "f32[3]", s, 3);
    }
    int64_t outside = 5;
    NPU_CHECK_STATUS(npu_test_input(r.exec, "i", &outside, 8), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_RANGE);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "select"));
    rig_end(&r);
}

/* Numbers of every integer type feed, as they are; one that i64 does not hold is out of range. */
static void test_fed_types(void)
{
    static const struct { const char *dtype; uint64_t bits; int64_t row; } rows[] = { /* row -1: RANGE */
        { "i8", 0xfe, 3 }, { "i8", 4, 4 }, { "i16", 0xfffe, 3 }, { "i32", 0xfffffffe, 3 }, { "i64", (uint64_t)-2, 3 },
        { "u8", 3, 3 }, { "u8", 0xfe, -1 }, { "u16", 0x0102, -1 }, { "u16", 2, 2 }, { "u32", 1, 1 },
        { "u32", 0xfffffffe, -1 }, { "u64", 4, 4 }, { "u64", 1ull << 63 | 1, -1 }, { "bool", 1, 1 },
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        char text[160];
        float x[5][3];
        uint8_t bytes[8];
        size_t size = 0;
        snprintf(text, sizeof text, "graph main\ninput x : f32[5,3]\ninput i : %s[]\ny = aten.select.int(x, 0, i)\n"
                                    "output y = y\n", rows[k].dtype);
        rig r = rig_text(text, 0);
        fill(x[0], 15, 3);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        npu_spec_size(npu_value_spec(r.graph, npu_graph_find(r.graph, "i")), &size);
        for (size_t n = 0; n < size; n++) { /* as the machine has them */
            const uint16_t one = 1;
            bytes[*(const uint8_t *)&one ? n : size - 1 - n] = (uint8_t)(rows[k].bits >> 8 * n);
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "i", bytes, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), rows[k].row < 0 ? NPU_ERR_RANGE : NPU_OK);
        if (rows[k].row >= 0) {
            check_output(&r, "y", "f32[3]", x[rows[k].row], 3);
        }
        rig_end(&r);
    }
}

/* Sizes can be fed, which ATen calls SymInt; other numbers, int, cannot. */
static void test_not_fed(void)
{
    static const struct { const char *line, *name; } rows[] = {
        { "y = aten.gather.default(x, i, k)", "dim" },
        { "y = aten.flip.default(x, [i])", "dims" },
        { "y = aten._cdist_forward.default(x, x, 2.0, i)", "compute_mode" },
        { "y = aten.diagonal.default(x, i)", "offset" },
        { "y = aten.as_strided.default(x, [2], [1], i)", "storage_offset" },
        { "y = aten.narrow.default(x, 0, 0, i)", "length" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        char text[300], wanted[64];
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput x : f32[5,3]\ninput i : i64[]\ninput k : i64[2,3]\n%s\noutput y = y\n",
                 rows[k].line);
        snprintf(wanted, sizeof wanted, "%s is dynamic, expected a number", rows[k].name);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, &diag), NPU_ERR_ATTRIBUTE);
        NPU_CHECK(strstr(diag.message, wanted));
        npu_graph_destroy(g);
    }
}

/* Sizes that say again what dims say, and borders as wide as a dim. */
static void test_fed_sizes(void)
{
    static const char text[] =
        "graph main\nsymbol n 1 4\nsymbol m 1 8\ninput x : f32[n,4,m]\n"
        "rows = aten.sym_size.int(x, 0)\nsize = aten.sym_size.int(x, 2)\n"
        "y, mean, rstd = aten.native_group_norm.default(x, N=rows, C=4, HxW=size, group=2, eps=1e-05)\n"
        "z = aten.group_norm.default(x, 2)\n"
        "wide = aten.constant_pad_nd.default(x, [0, size], 7.0)\nlong = aten.replication_pad1d.default(x, [size, 1])\n"
        "output y = y\noutput z = z\noutput mean = mean\noutput wide = wide\noutput long = long\n";
    static const struct { size_t n, m; const char *y, *mean, *wide, *is_long; } rows[] = {
        { 2, 3, "f32[2,4,3]", "f32[2,2]", "f32[2,4,6]", "f32[2,4,7]" },
        { 1, 8, "f32[1,4,8]", "f32[1,2]", "f32[1,4,16]", "f32[1,4,17]" },
        { 4, 1, "f32[4,4,1]", "f32[4,2]", "f32[4,4,2]", "f32[4,4,3]" },
    };
    rig r = rig_text(text, 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        size_t n = rows[k].n * 4, m = rows[k].m;
        float x[32], mean[8] = { 0 }, wide[64], is_long[16 * 5 + 64];
        fill(x, n * m, 3 + (int)k);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < m; j++) {
                mean[i / 2] += x[i * m + j] / (2 * (float)m);
                wide[i * 2 * m + j] = x[i * m + j];
                wide[i * 2 * m + m + j] = 7;
            }
            for (size_t j = 0; j < 2 * m + 1; j++) {
                is_long[i * (2 * m + 1) + j] = x[i * m + (j < m ? 0 : j < 2 * m ? j - m : m - 1)];
            }
        }
        NPU_CHECK_STATUS(npu_exec_set_input_at(r.exec, 0, &(npu_array){ NULL, npu_spec_tensor(NPU_F32, 3, (int64_t[]){
                             (int64_t)rows[k].n, 4, (int64_t)m }), x }), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "y", rows[k].y, (const float *)npu_exec_output(r.exec, 1, NULL), n * m);
        check_output(&r, "mean", rows[k].mean, mean, n / 2);
        check_output(&r, "wide", rows[k].wide, wide, n * 2 * m);
        check_output(&r, "long", rows[k].is_long, is_long, n * (2 * m + 1));
    }
    rig_end(&r);
}

/* ---- inputs with symbols ---- */

static const char layers[] =
    "graph main\nsymbol n 0 9\ninput x : f32[n,3]\ninput y : f32[n,3]\n"
    "const w : f32[2,3] {1.0, -1.0, 0.5, 0.25, 2.0, -0.5}\n"
    "a = aten.add.Tensor(x, y)\nl = aten.linear.default(a, w)\ns = aten.softmax.int(l, 1)\n"
    "f = aten.reshape.default(s, [-1])\nm = aten.sum.dim_IntList(a, [0])\n"
    "output f = f\noutput m = m\noutput x = x\n";

static void check_layers(rig *r, size_t n, const float *x, const float *y)
{
    static const float w[2][3] = { { 1, -1, 0.5f }, { 0.25f, 2, -0.5f } };
    float f[18], m[3] = { 0 };
    char dims[32];
    for (size_t i = 0; i < n; i++) {
        double l[2] = { 0, 0 };
        for (int k = 0; k < 3; k++) {
            float a = x[i * 3 + (size_t)k] + y[i * 3 + (size_t)k];
            m[k] += a;
            l[0] += (double)(w[0][k] * a);
            l[1] += (double)(w[1][k] * a);
        }
        f[2 * i] = (float)(1 / (1 + exp(l[1] - l[0])));
        f[2 * i + 1] = (float)(1 / (1 + exp(l[0] - l[1])));
    }
    check_output(r, "f", format(dims, "f32[%u]", 2 * n), f, 2 * n);
    check_output(r, "m", "f32[3]", m, 3);
    check_output(r, "x", format(dims, "f32[%u,3]", n), x, 3 * n);
}

static void run_layers(rig *r)
{
    static const int64_t sizes[] = { 4, 0, 9, 1, 9, 2 };
    float x[28], y[28];
    fill(x, 28, 4);
    fill(y, 28, 5);
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int64_t n = sizes[k], dims[2];
        dims[0] = n;
        dims[1] = 3;
        float *unaligned = k % 2 ? (float *)(void *)((char *)y + 1) : y; /* staged */
        memmove(unaligned, y, 27 * sizeof *y);
        NPU_CHECK_STATUS(npu_test_input_dims(r->exec, "x", 2, dims, x), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input_dims(r->exec, "y", 2, dims, unaligned), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r->exec), NPU_OK);
        float copy[27];
        memcpy(copy, unaligned, sizeof copy);
        check_layers(r, (size_t)n, x, copy);
        fill(y, 28, 5);
    }
}

/* Two ways to every second row of what is padded; and what differs where no sample is, which the run finds. */
static void test_same_sizes(void)
{
    static const struct { const char *text; npu_status status[5]; } rows[] = {
        { "graph main\nsymbol n 0 0\ninput x : f32[2,n]\na = aten.max_pool1d.default(x, [3], [2], [1])\n"
          "b = aten.slice.Tensor(x, 1, 0, step=2)\nr = aten.add.Tensor(a, b)\noutput r = r\n",
          { NPU_OK, NPU_OK, NPU_OK, NPU_OK, NPU_OK } },
        { "graph main\nsymbol n 0 0\ninput x : f32[2,n]\na = aten.slice.Tensor(x, 1, 1048576)\n"
          "b = aten.cat.default([x, a], 1)\nr = aten.add.Tensor(b, x)\noutput r = r\n",
          { NPU_OK, NPU_OK, NPU_OK, NPU_OK, NPU_ERR_SHAPE } },
    };
    static const int64_t sizes[] = { 1, 2, 7, 64, 1048577 };
    static float x[2 * 1048577];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_text(rows[i].text, 0);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(2, sizes[k]), x), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), rows[i].status[k]);
        }
        rig_end(&r);
    }
}

static void test_inputs(void)
{
    rig r = rig_text(layers, 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    run_layers(&r);
    rig_end(&r);
}

/* Threads share the parts of a launch that was prepared for one run. */
static void test_threads(void)
{
    npu_parallel *threads = NULL;
    rig r = rig_text(layers, 0);
    if (npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }) == NPU_OK) {
        r.exec_desc.parallel = threads;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        run_layers(&r);
    }
    rig_end(&r);
    npu_threads_destroy(threads);
}

/* Two threads run one program, each in an exec of its own, at sizes of its own. */
typedef struct runner {
    npu_exec *exec;
    int64_t from;
    int wrong;
} runner;

static void *run_many(void *arg)
{
    runner *r = arg;
    float x[27], y[27];
    fill(x, 27, 6);
    fill(y, 27, 7);
    for (int k = 0; k < 200; k++) {
        int64_t n = (r->from + k) % 10, dims[2];
        dims[0] = n;
        dims[1] = 3;
        size_t bytes = 0;
        float sum = 0;
        npu_status status = npu_test_input_dims(r->exec, "x", 2, dims, x);
        status = status ? status : npu_test_input_dims(r->exec, "y", 2, dims, y);
        status = status ? status : npu_exec_run(r->exec);
        const float *f = npu_exec_output(r->exec, 0, &bytes);
        for (int64_t i = 0; i < 2 * n && bytes == (size_t)n * 8; i++) {
            sum += f[i];
        }
        r->wrong += status != NPU_OK || bytes != (size_t)n * 8 || fabsf(sum - (float)n) > 1e-4f;
    }
    return NULL;
}

static void test_two_threads(void)
{
    rig r = rig_text(layers, 0);
    runner runners[2] = { { NULL, 0, 0 }, { NULL, 5, 0 } };
    pthread_t threads[2];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (int i = 0; i < 2; i++) {
        NPU_CHECK_STATUS(npu_exec_create(&runners[i].exec, r.program, NULL, NULL), NPU_OK);
        NPU_CHECK_EQ(pthread_create(&threads[i], NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        NPU_CHECK_EQ(runners[i].wrong, 0);
        npu_exec_destroy(runners[i].exec);
    }
    rig_end(&r);
}

static void test_bad_bindings(void)
{
    static const struct { const char *name; npu_dtype dtype; uint32_t rank; int64_t dims[2]; npu_status status; } rows[] = {
        { "z", NPU_F32, 2, { 2, 3 }, NPU_ERR_NOT_FOUND },  { "x", NPU_F32, 1, { 2, 3 }, NPU_ERR_RANK },
        { "x", NPU_F32, 2, { 2, 4 }, NPU_ERR_SHAPE },      { "x", NPU_F32, 2, { 10, 3 }, NPU_ERR_RANGE },
        { "x", NPU_F32, 2, { -1, 3 }, NPU_ERR_DYNAMIC_SHAPE }, { "x", NPU_I32, 2, { 2, 3 }, NPU_ERR_DTYPE },
        { "x", NPU_NONE, 2, { 2, 3 }, NPU_ERR_CLASS },     { "x", NPU_F32, 2, { 2, 3 }, NPU_OK },
    };
    float x[40] = { 0 }, f[18];
    rig r = rig_text(layers, 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK(npu_exec_output_spec(r.exec, 0)->dims[0] < NPU_DYNAMIC_DIM); /* a symbol, before the first run */
    NPU_CHECK(!npu_exec_output_spec(r.exec, 3));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_array input = { rows[i].name, npu_spec_tensor(rows[i].dtype, rows[i].rank, rows[i].dims), x };
        NPU_CHECK_STATUS(npu_exec_set_input(r.exec, &input), rows[i].status);
        input.name = "nobody"; /* by index it is not read */
        NPU_CHECK_STATUS(npu_exec_set_input_at(r.exec, 0, &input), i ? rows[i].status : NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_input_at(r.exec, 2, &input), NPU_ERR_NOT_FOUND);
    }
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_exec_set_input_at(r.exec, 0, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "y", 2, DIMS(2, 3), NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "y", x, 24), NPU_ERR_DYNAMIC_SHAPE);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_MISSING_FEED);
    /* two inputs share n */
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "y", 2, DIMS(3, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "y") && strstr(npu_exec_diag(r.exec)->message, "expected 2"));
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "y", 2, DIMS(2, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    /* memory of an output: too small for one run, enough for the next */
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "f", f, 12), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_SHAPE);
    NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "output 0 ('f'): 16 bytes"));
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "f", f, 16), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    size_t size;
    NPU_CHECK(npu_exec_output(r.exec, 0, &size) == f && size == 16);
    NPU_CHECK_NEAR(f[3], 0.5, 1e-6);
    rig_end(&r);
}

/* Memory of an output whose op tells its dims itself: what a run makes must fit, not the most that it could make. */
static void test_small_outputs(void)
{
    static const char text[] = "npu_ir 1\ngraph main\nsymbol k 0 4\ninput x : f32[4]\n"
                               "n = aten.nonzero.default(x) : i64[k,1]\noutput n = n\n";
    static const struct { float x[4]; size_t size; npu_status status; } rows[] = {
        { { 0, 0, 5, 0 }, 8, NPU_OK },  { { 0, 1, 5, 0 }, 8, NPU_ERR_SHAPE },  { { 0, 7, 0, 0 }, 8, NPU_OK },
        { { 0, 0, 1, 0 }, 32, NPU_OK }, { { 0, 0, 0, 0 }, 0, NPU_OK },         { { 0, 0, 0, 2 }, 0, NPU_ERR_SHAPE },
        { { 0, 0, 5, 0 }, 11, NPU_OK }, { { 1, 1, 1, 1 }, 24, NPU_ERR_SHAPE }, { { 0, 3, 5, 0 }, 31, NPU_OK },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig r = rig_text(text, 0);
        int64_t first = -1, want = 0;
        uint8_t *room = (uint8_t *)malloc(rows[i].size + 1); /* of no more: what is written past it is seen */
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(r.exec, "x", rows[i].x, sizeof rows[i].x), NPU_OK);
        for (int again = 0; again < 2; again++) {
            NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "n", room, rows[i].size), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), rows[i].status);
        }
        if (rows[i].size >= 8 && rows[i].status == NPU_OK) {
            memcpy(&first, room, sizeof first);
            while (rows[i].x[want] == 0) {
                want++;
            }
            NPU_CHECK_EQ(first, want);
        }
        free(room);
        rig_end(&r);
    }
}

/* Weights that turn out to have no rows: a result without elements. */
static void test_no_channels(void)
{
    static const struct { const char *line, *type; uint32_t rank; int64_t dims[4]; } rows[] = {
        { "y = aten.conv1d.padding(x, w, stride=[2])", "f32[2,0,3]", 3, { 0, 3, 1 } },
        { "y = aten.conv1d.default(x, w, padding=[1])", "f32[2,0,5]", 3, { 0, 3, 3 } },
        { "y = aten.matmul.default(w, x)", "f32[2,0,5]", 3, { 1, 0, 3 } },
        { "y = aten.linear.default(x, w)", "f32[2,3,0]", 2, { 0, 5 } },
    };
    float x[30] = { 0 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int is_static = 0; is_static < 2; is_static++) {
            char text[400], dims[64];
            int n = 0;
            for (uint32_t k = 0; k < rows[i].rank; k++) {
                n += rows[i].dims[k] || is_static ? snprintf(dims + n, 9, k ? ",%d" : "%d", (int)rows[i].dims[k])
                                                  : snprintf(dims + n, 9, k ? ",n" : "n");
            }
            snprintf(text, sizeof text, "npu_ir 1\ngraph main\nsymbol n 0 4\ninput x : f32[2,3,5]\n"
                                        "input w : f32[%s]\n%s\noutput y = y\n", dims, rows[i].line);
            rig r = rig_text(text, 0);
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
            NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "w", rows[i].rank, rows[i].dims, x), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            check_output(&r, "y", rows[i].type, x, 0);
            rig_end(&r);
        }
    }
}

/* ---- what only a run can refuse ---- */

static void test_refused_by_the_run(void)
{
    static const struct { const char *text, *words; npu_status status; } rows[] = {
        /* fewer were promised than there are */
        { "symbol few 0 2\ninput x : f32[4]\nn = aten.nonzero.default(x) : i64[few,1]\noutput n = n\n", "few in 0..2",
          NPU_ERR_RANGE },
        /* two sizes were promised to be equal */
        { "symbol k 0 4\ninput x : f32[4]\nn = aten.nonzero.default(x) : i64[k,1]\nh = aten.ge.Scalar(x, 2)\n"
          "p = aten.masked_select.default(x, h) : f32[k]\noutput n = n\noutput p = p\n", "k", NPU_ERR_SHAPE },
        /* dims that were not known do not fit: the words of the type rule */
        { "input x : f32[4]\nconst w : f32[2,4] {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}\n"
          "h = aten.ge.Scalar(x, 2)\np = aten.masked_select.default(x, h)\nq = aten.mv.default(w, p)\noutput q = q\n",
          "mv: ", NPU_ERR_SHAPE },
        { "input x : f32[4]\nh = aten.ge.Scalar(x, 2)\nk = aten.ge.Scalar(x, 1)\np = aten.masked_select.default(x, h)\n"
          "q = aten.masked_select.default(x, k)\nr = aten.view.default(p, [-1,1,1])\ns = aten.view.default(q, [-1,1,1])\n"
          "b = aten.bmm.default(r, s)\noutput b = b\n", "bmm: ", NPU_ERR_SHAPE },
        /* what the kernel finds */
        { "input x : f32[4]\nn = aten.nonzero.default(x)\nc = aten.select.int(n, 1, 0)\nd = aten.add.Scalar(c, 1)\n"
          "p = aten.index_select.default(x, 0, d)\noutput p = p\n", "index_select", NPU_ERR_RANGE },
        /* a dim that turns out to be 1, and counted as none */
        { "input x : f32[4]\nh = aten.ge.Scalar(x, 4)\np = aten.masked_select.default(x, h)\n"
          "q = aten.squeeze.default(p)\noutput q = q\n", "0 dims in this run, planned are 1", NPU_ERR_SHAPE },
        /* one status for what its words say */
        { "input x : f32[4]\na = aten.to.dtype(x, i64)\ni = aten.neg.default(a)\no = aten.one_hot.default(i)\noutput o = o\n",
          "one_hot: self has an element -1", NPU_ERR_RANGE },
        /* more numbers than one feed one */
        { "input x : f32[4]\na = aten.to.dtype(x, i64)\nu, v, w = aten._unique2.default(a)\ns = aten.select.int(x, 0, u)\n"
          "output s = s\n", "dynamic index is no number", NPU_ERR_DYNAMIC_SHAPE },
        /* a body whose ops only a run could describe */
        { "child c\n  input a : f32[3]\n  const k : i64[] {2}\n  v, i = aten.kthvalue.default(a, k, 0)\n  output v = v\nend\n"
          "input x : f32[3]\ny = npu.call([x], body=graph 0)\noutput y = y\n", "aten.kthvalue.default", NPU_ERR_NOT_IMPLEMENTED },
        { "child c\n  input a : f32[3]\n  n = aten.nonzero.default(a)\n  s = aten.sum.default(n)\n  output s = s\nend\n"
          "input x : f32[3]\ny = npu.call([x], body=graph 0)\noutput y = y\n", "aten.nonzero.default", NPU_ERR_NOT_IMPLEMENTED },
        /* an op of nobody's that makes what nothing bounds */
        { "symbol u 0 0\ninput x : f32[4]\nn = my.op(x) : f32[u]\noutput n = n\n", "my.op", NPU_ERR_NOT_IMPLEMENTED },
        /* fewer were promised than an op makes that says so itself */
        { "symbol one 0 1\ninput x : f32[4]\nu, v, w = aten.unique_consecutive.default(x, return_counts=true) : "
          "f32[one], i64[0], i64[one]\noutput u = u\noutput w = w\n", "one in 0..1", NPU_ERR_RANGE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const float x[4] = { 1, 2, 3, 4 }, zero[4];
        char text[512];
        snprintf(text, sizeof text, "graph main\n%s", rows[i].text);
        rig r = rig_text(text, 0);
        npu_status status = rig_make(&r);
        const npu_diag *diag = &r.diag;
        if (status == NPU_OK) {
            NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
            status = npu_exec_run(r.exec);
            diag = npu_exec_diag(r.exec);
            NPU_CHECK(diag->op != 0);
        }
        NPU_CHECK_STATUS(status, rows[i].status);
        NPU_CHECK(strstr(diag->message, rows[i].words));
        if (!strstr(diag->message, rows[i].words)) {
            fprintf(stderr, "%s\n", diag->message);
        }
        if (r.exec && i != 2) { /* the exec stays usable */
            NPU_CHECK_STATUS(npu_test_input(r.exec, "x", zero, sizeof zero), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        }
        rig_end(&r);
    }
}

/* Named errors of planning: sources that must be known, dims that no symbol stands for, and sizes that no memory has. */
static void test_refused_by_the_plan(void)
{
    static const struct { const char *text, *words; npu_status status; } rows[] = {
        { "state t : f32[s]\noutput t = t\n", "t: only inputs", NPU_ERR_DYNAMIC_SHAPE },
        { "param p : f32[s]\nr = aten.relu.default(p)\noutput r = r\n", "p: only inputs", NPU_ERR_DYNAMIC_SHAPE },
        { "input a : f32[?]\noutput a = a\n", "a: a dim", NPU_ERR_DYNAMIC_SHAPE },
        { "input a : f32[2]\nr = my.op(a) : f32[?]\noutput r = r\n", "my.op", NPU_ERR_DYNAMIC_SHAPE },
        { "symbol big 0 4611686018427387904\ninput a : f32[big]\noutput a = a\n", "a: ", NPU_ERR_OVERFLOW },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "graph main\nsymbol s 1 8\n%s", rows[i].text);
        rig r = rig_text(text, 0);
        NPU_CHECK_STATUS(rig_plan(&r), rows[i].status);
        NPU_CHECK(strstr(r.diag.message, rows[i].words));
        if (!strstr(r.diag.message, rows[i].words)) {
            fprintf(stderr, "%s\n", r.diag.message);
        }
        rig_end(&r);
    }
}

/* A dim that is always 0 stands beside dims whose product fits nowhere. */
static void test_nothing_beside_large_dims(void)
{
    rig r = rig_text("graph main\nsymbol s 0 0\ninput x : f32[1,s,4,5]\n"
                     "y = aten.upsample_bilinear2d.vec(x, [3, 9223372036854775807], false, none)\noutput y = y\n", 0);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    rig_end(&r);
}

/* ---- accelerators ---- */

/* A device whose memory is the heap and whose kernels are the CPU's; it counts the bytes that pass. */
typedef struct door {
    uint64_t up, down;
    int calls, live;
} door;

static void *door_alloc(void *ctx, uint64_t bytes)
{
    ((door *)ctx)->live++;
    return malloc((size_t)bytes);
}

static void door_free(void *ctx, void *handle)
{
    ((door *)ctx)->live--;
    free(handle);
}

static npu_status door_upload(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes)
{
    ((door *)ctx)->up += bytes;
    memcpy((char *)to + offset, from, (size_t)bytes);
    return NPU_OK;
}

static npu_status door_download(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes)
{
    ((door *)ctx)->down += bytes;
    memcpy(to, (char *)from + offset, (size_t)bytes);
    return NPU_OK;
}

static npu_status door_call(void *ctx, const npu_call *call)
{
    ((door *)ctx)->calls++;
    return npu_ref_backend()->op_call(npu_ref_backend()->ctx, call);
}

static npu_backend *door_make(door *d, bool dynamic, const char *const *ops, uint32_t num_ops)
{
    npu_accel accel;
    npu_backend *backend = NULL;
    memset(&accel, 0, sizeof accel);
    accel.size = sizeof accel;
    accel.name = "door";
    accel.ctx = d;
    accel.ops = ops;
    accel.num_ops = num_ops;
    accel.alloc = door_alloc;
    accel.free = door_free;
    accel.upload = door_upload;
    accel.download = door_download;
    accel.op_call = door_call;
    accel.dynamic = dynamic;
    NPU_CHECK_STATUS(npu_accel_create(&backend, &accel, NULL), NPU_OK);
    return backend;
}

static void check_place(rig *r, const char *value, int backend, uint32_t reason, const char *words)
{
    uint32_t why;
    const char *said;
    npu_op op = npu_value_producer(r->graph, npu_graph_find(r->graph, value), NULL);
    NPU_CHECK_EQ(npu_plan_op_backend(r->plan, op, &why, &said), backend);
    NPU_CHECK_EQ(why, reason);
    NPU_CHECK_STR(said, words);
}

static const char *const door_ops[] = { "aten.relu.default", "aten.add.Tensor", "aten.mm.default", "aten.nonzero.default",
                                        "aten.masked_select.default", "aten.reshape.default" };
static const char split_text[] =
    "graph main\nsymbol n 0 9\ninput x : f32[n,3]\nconst w : f32[3,2] {1.0, 0.0, 0.5, 1.0, -1.0, 2.0}\n"
    "k = aten.relu.default(w)\na = aten.relu.default(x)\nb = aten.mm.default(a, w)\nc = aten.tanh.default(b)\n"
    "d = aten.add.Tensor(c, b)\nh = aten.gt.Scalar(d, 0.1)\ne = aten.masked_select.default(d, h)\n"
    "f = aten.relu.default(e)\ng = aten.reshape.default(d, [-1])\noutput k = k\noutput d = d\noutput f = f\noutput g = g\n";

/* Runs a split graph beside the same on the CPU alone: all outputs are the same bytes. */
static void compare_split(rig *r, int64_t n)
{
    rig cpu = rig_text(split_text, 0);
    float x[27];
    fill(x, 27, (uint32_t)n);
    NPU_CHECK_STATUS(rig_make(&cpu), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(cpu.exec, "x", 2, DIMS(n, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(r->exec, "x", 2, DIMS(n, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(cpu.exec), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r->exec), NPU_OK);
    for (uint32_t i = 0; i < npu_graph_num_outputs(r->graph); i++) {
        size_t size, expected;
        const void *got = npu_exec_output(r->exec, i, &size), *want = npu_exec_output(cpu.exec, i, &expected);
        NPU_CHECK_EQ(size, expected);
        NPU_CHECK(npu_spec_equal(npu_exec_output_spec(r->exec, i), npu_exec_output_spec(cpu.exec, i)));
        NPU_CHECK(size != expected || memcmp(got, want, size) == 0);
    }
    rig_end(&cpu);
}

/* Without the trait nothing dynamic is offered; with it, all but what data decides. */
static void test_split(void)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        door d = { 0 };
        npu_backend *accel = door_make(&d, dynamic != 0, door_ops, sizeof door_ops / sizeof door_ops[0]);
        rig r = rig_text(split_text, 0);
        r.backends[0] = accel;
        r.backends[1] = npu_ref_backend();
        r.desc.num_backends = 2;
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        check_place(&r, "k", 0, NPU_REASON_CLAIMED, "");
        check_place(&r, "a", !dynamic, dynamic ? NPU_REASON_CLAIMED : NPU_REASON_DYNAMIC, "");
        check_place(&r, "b", !dynamic, dynamic ? NPU_REASON_CLAIMED : NPU_REASON_DYNAMIC, "");
        check_place(&r, "c", 1, dynamic ? NPU_REASON_OP : NPU_REASON_DYNAMIC, "");
        check_place(&r, "e", 1, NPU_REASON_DYNAMIC, dynamic ? "data decides sizes or attributes of it" : "");
        check_place(&r, "f", !dynamic, dynamic ? NPU_REASON_CLAIMED : NPU_REASON_DYNAMIC, "");
        check_place(&r, "g", !dynamic, dynamic ? NPU_REASON_CLAIMED : NPU_REASON_DYNAMIC, "");
        for (int64_t n = 9; n >= 0; n -= 3) {
            d.up = d.down = 0;
            compare_split(&r, n);
            if (dynamic) { /* x, c, e; b, d once, though it is an output and moved, f, g and k: what there is, not what was planned */
                size_t e_bytes;
                npu_exec_find_output(r.exec, "f", &e_bytes);
                NPU_CHECK_EQ(d.up, (uint64_t)n * 12 + (uint64_t)n * 8 + e_bytes);
                NPU_CHECK_EQ(d.down, 3 * (uint64_t)n * 8 + e_bytes + 24);
            }
        }
        NPU_CHECK_EQ(d.calls > 4, dynamic);
        rig_end(&r);
        npu_accel_destroy(accel);
        NPU_CHECK_EQ(d.live, 0);
    }
}

/* What nothing bounds grows on a device, too, and on the way between two of them. */
static void test_unbounded_split(void)
{
    static const char *const first_ops[] = { "aten.relu.default" }, *const second_ops[] = { "aten.add.Tensor" };
    static const int64_t repeats[][2] = { { 1, 1 }, { 0, 0 }, { 300, 200 }, { 2, 3 } };
    door doors[2] = { { 0 } };
    float x[2] = { -1, 2 };
    static float y[512];
    rig r = rig_text("graph main\ninput x : f32[2]\ninput r : i64[2]\na = aten.repeat_interleave.self_Tensor(x, r)\n"
                     "b = aten.relu.default(a)\ny = aten.add.Tensor(b, b)\noutput y = y\n", 0);
    npu_backend *first = door_make(&doors[0], true, first_ops, 1), *second = door_make(&doors[1], true, second_ops, 1);
    r.backends[0] = first;
    r.backends[1] = second;
    r.backends[2] = npu_ref_backend();
    r.desc.num_backends = 3;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "x", x, sizeof x), NPU_OK);
    for (size_t k = 0; k < sizeof repeats / sizeof repeats[0]; k++) {
        char dims[32];
        size_t n = (size_t)(repeats[k][0] + repeats[k][1]);
        for (size_t i = 0; i < n; i++) {
            y[i] = i < (size_t)repeats[k][0] ? 0 : 4;
        }
        NPU_CHECK_STATUS(npu_test_input(r.exec, "r", repeats[k], sizeof repeats[k]), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        check_output(&r, "y", format(dims, "f32[%u]", n), y, n);
    }
    NPU_CHECK_EQ(doors[0].calls + doors[1].calls, 8);
    rig_end(&r);
    npu_accel_destroy(first);
    npu_accel_destroy(second);
    NPU_CHECK_EQ(doors[0].live + doors[1].live, 0);
}

/* ---- memory ---- */

/* The plan has room for the largest dims, no more and no less, and shares it by lifetime as ever. */
static void test_planned_bytes(void)
{
    rig r = rig_text("graph main\nsymbol n 1 100\ninput x : f32[n,16]\na = aten.relu.default(x)\n"
                     "b = aten.cat.default([a, a])\nc = aten.exp.default(b)\nd = aten.sum.dim_IntList(c, [0])\n"
                     "output d = d\n", 0);
    static const uint64_t expected[] = { 6400, 12800, 12800 };
    uint64_t offset[3], size;
    uint32_t first, last;
    npu_memory memory;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    const npu_plan *plan = npu_program_plan(r.program);
    for (uint32_t i = 0; i < 3; i++) {
        npu_value v = npu_op_result(r.graph, (npu_op){ i + 1 }, 0);
        NPU_CHECK_STATUS(npu_plan_value_memory(plan, v, 0, &offset[i], &size, &first, &last), NPU_OK);
        NPU_CHECK_EQ(size, expected[i]);
    }
    NPU_CHECK(offset[2] == offset[1]); /* exp writes over its operand: their dims are one symbol */
    NPU_CHECK_STATUS(npu_plan_memory(plan, 0, &memory), NPU_OK);
    NPU_CHECK_EQ(memory.activations - memory.scratch, 6400 + 12800);
    NPU_CHECK_EQ(memory.inputs, 6400);
    NPU_CHECK_EQ(memory.outputs, 64);
    rig_end(&r);
}

/* Runs at all sizes, after the first one even: no call of an allocator but for what grows. */
static void test_runs_do_not_allocate(void)
{
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_ref_desc ref_desc;
    npu_backend *cpu = NULL;
    memset(&ref_desc, 0, sizeof ref_desc);
    ref_desc.allocator = &a;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &ref_desc), NPU_OK);
    rig r = rig_text("graph main\nsymbol n 0 64\ninput x : f32[n,32]\ninput k : i64[2]\n"
                     "h = aten.gt.Scalar(x, 0)\np = aten.masked_select.default(x, h)\nq = aten.exp.default(p)\n"
                     "t = aten.t.default(x)\nm = aten.mm.default(x, t)\ns = aten.softmax.int(m, -1)\n"
                     "l, at = aten.sort.default(q)\nu = aten.sum.default(s)\ng = aten.repeat_interleave.Tensor(k)\n"
                     "e = aten.add.Scalar(g, 1)\noutput s = s\noutput u = u\noutput e = e\noutput q = q\n", 0);
    static float x[64 * 32], s[64 * 64], q[64 * 32];
    static int64_t e[1024];
    fill(x, 64 * 32, 2);
    r.backends[0] = cpu;
    r.desc.allocator = &a;
    r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "s", s, sizeof s), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "q", q, sizeof q), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "e", e, sizeof e), NPU_OK);
    for (int round = 0; round < 2; round++) {
        uint64_t before = counter.num_calls, grown = 0;
        for (int64_t n = 0; n <= 64; n++) {
            int64_t repeats[2] = { round ? 500 : 1, 0 }; /* more than before in the first run of a round */
            NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(n, 32), x), NPU_OK);
            NPU_CHECK_STATUS(npu_test_input(r.exec, "k", repeats, sizeof repeats), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            grown = n == 0 ? counter.num_calls - before : grown;
        }
        NPU_CHECK(grown > 0);
        NPU_CHECK_EQ(counter.num_calls - before, grown);
    }
    rig_end(&r);
    npu_ref_destroy(cpu);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* One run at n rows and images of r x r, whose results are appended to y; returns how many there are then. */
static size_t packed_run(npu_exec *exec, int64_t n, int64_t r, const float *x, float *y, size_t len)
{
    NPU_CHECK_STATUS(npu_test_input_dims(exec, "x", 2, DIMS(n, 96), x), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(exec, "i", 4, DIMS(1, 32, r, r), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    for (uint32_t i = 0; i < 3; i++) {
        size_t size = 0;
        const float *from = (const float *)npu_exec_output(exec, i, &size);
        memcpy(y + len, from, from ? size : 0);
        len += size / sizeof *y;
    }
    return len;
}

/* Weights are packed with the program, not in each run, which allocates nothing, whatever variant its dims want; the
   bits are those of fixed dims. `symbol` says what bounds n. */
static void check_packed(const char *symbol, bool is_bounded)
{
    static float x[32 * 40 * 40], w[96 * 80], k[48 * 32 * 9], y[2][48 * 40 * 40 * 3 + 200000];
    static const int64_t sizes[][2] = { { 1, 40 }, { 7, 3 }, { 40, 16 }, { 2, 7 }, { 40, 40 } };
    const char *const names[] = { "n", "r" };
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_ref_desc ref_desc = { .allocator = &a };
    npu_backend *cpu = NULL;
    npu_memory memory;
    npu_text text = npu_text_init(NULL);
    uint64_t before = 0;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &ref_desc), NPU_OK);
    npu_text_printf(&text, "graph main\n%s\nsymbol r 3 40\ninput x : f32[n,96]\ninput i : f32[1,32,r,r]\n"
                           "param w : f32[80,96]\nparam k : f32[48,32,3,3]\nparam p : f32[48,32,1,1]\n"
                           "y = aten.linear.default(x, w)\nz = aten.conv2d.default(i, k, none, [1, 1], [1, 1])\n"
                           "u = aten.conv2d.default(i, p)\noutput y = y\noutput z = z\noutput u = u\n", symbol);
    rig r = rig_text(text.data, 0);
    fill(x, sizeof x / sizeof *x, 3), fill(w, sizeof w / sizeof *w, 5), fill(k, sizeof k / sizeof *k, 7);
    NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "w", w, sizeof w), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "k", k, sizeof k), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_param(r.graph, "p", k, 48 * 32 * sizeof *k), NPU_OK);
    r.backends[0] = cpu, r.desc.allocator = &a, r.exec_desc.allocator = &a;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &memory), NPU_OK);
    NPU_CHECK_THAT(memory.prepared >= sizeof w + sizeof k, "%s: %llu bytes", symbol, (unsigned long long)memory.prepared);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        rig fixed = { .desc = { .num_backends = 1 } };
        before = i ? before : counter.num_calls;
        size_t len = packed_run(r.exec, sizes[i][0], sizes[i][1], x, y[0], 0);
        NPU_CHECK_THAT(!is_bounded || counter.num_calls == before, "%d rows, %d pixels: %d calls", (int)sizes[i][0],
                       (int)sizes[i][1], (int)(counter.num_calls - before));
        NPU_CHECK_STATUS(npu_graph_specialize(&fixed.graph, r.graph, names, sizes[i], 2, NULL), NPU_OK);
        fixed.backends[0] = cpu;
        NPU_CHECK_STATUS(rig_make(&fixed), NPU_OK);
        NPU_CHECK_EQ(packed_run(fixed.exec, sizes[i][0], sizes[i][1], x, y[1], 0), len);
        NPU_CHECK_THAT(memcmp(y[0], y[1], len * sizeof y[0][0]) == 0, "%d rows, %d pixels differ", (int)sizes[i][0],
                       (int)sizes[i][1]);
        rig_end(&fixed);
        before = counter.num_calls;
    }
    npu_text_free(&text);
    rig_end(&r);
    npu_ref_destroy(cpu);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* The ops that a run took time for: one that ran on pieces of another's result is not among them. */
static uint32_t timed_ops(const npu_exec *exec, uint32_t ops[64])
{
    uint32_t count = 0, num = 0;
    const npu_profile_step *steps = npu_exec_profile(exec, &count);
    for (uint32_t i = 0; i < count && num < 64; i++) {
        if (steps[i].op) {
            ops[num++] = steps[i].op;
        }
    }
    return num;
}

static const char *const net_text =
    "input i : f32[n,8,r,r]\nparam k : f32[16,8,3,3]\nparam p : f32[8,16,1,1]\nparam d : f32[8,1,3,3]\n"
    "param q : f32[8,8]\nc = aten.conv2d.default(i, k, none, [1, 1], [1, 1])\na = aten.relu.default(c)\n"
    "e = aten.conv2d.default(a, p)\ns = aten.add.Tensor(e, i)\n"
    "f = aten.conv2d.default(s, d, none, [1, 1], [1, 1], [1, 1], 8)\nh = aten.hardtanh.default(f, 0.0, 6.0)\n"
    "v = aten.flatten.using_ints(h, 2)\nt = aten.transpose.int(v, 1, 2)\nl = aten.linear.default(t, q)\n"
    "g = aten.gelu.default(l)\nm = aten.mul.Tensor(g, t)\nu = aten.softmax.int(m, -1)\nz = aten.mul.Tensor(u, u)\n"
    "b = aten.mul.Tensor(z, m)\noutput b = b\noutput h = h\n";

static rig net_make(npu_graph *g, const float *w)
{
    static const struct { const char *name; size_t len; } params[] = {
        { "k", 16 * 8 * 9 }, { "p", 16 * 8 }, { "d", 8 * 9 }, { "q", 64 }
    };
    rig r = { .graph = g, .desc = { .num_backends = 1 }, .exec_desc = { .profile = true } };
    r.backends[0] = npu_ref_backend();
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        NPU_CHECK_STATUS(npu_graph_bind_param(g, params[i].name, w, params[i].len * sizeof *w), NPU_OK);
    }
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    return r;
}

static size_t net_run(npu_exec *exec, int64_t n, int64_t r, const float *x, float *y)
{
    size_t len = 0, size = 0;
    NPU_CHECK_STATUS(npu_test_input_dims(exec, "i", 4, DIMS(n, 8, r, r), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    for (uint32_t i = 0; i < 2; i++) {
        const float *from = (const float *)npu_exec_output(exec, i, &size);
        memcpy(y + len, from, from ? size : 0);
        len += size / sizeof *y;
    }
    return len;
}

/* With open sizes a net has the bits, and the ops on pieces of others' results, that it has with fixed ones; and values
   that nothing bounds share buffers. */
static void test_open_net(void)
{
    static const struct { const char *sizes; uint32_t num_grown; } nets[] = {
        { "symbol n 0 5\nsymbol r 3 20\n", 0 }, { "symbol n 0 0\nsymbol r 3 20\n", 2 }, { "symbol n 0 0\nsymbol r 3 0\n", 2 }
    };
    static const int64_t rows[][2] = { { 2, 12 }, { 1, 3 }, { 5, 20 }, { 0, 8 }, { 1, 20 }, { 4, 5 } };
    static float x[5 * 8 * 20 * 20], w[16 * 8 * 9], y[2][5 * 8 * 20 * 20 * 2];
    const char *const names[] = { "n", "r" };
    fill(x, sizeof x / sizeof *x, 3), fill(w, sizeof w / sizeof *w, 5);
    for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL, *now = NULL;
        uint32_t backend, num_grown = 0;
        uint64_t bytes;
        npu_text_printf(&text, "graph main\n%s%s", nets[k].sizes, net_text);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), NPU_OK);
        rig open = net_make(g, w);
        NPU_CHECK_STATUS(npu_plan_validate(npu_program_plan(open.program), NULL), NPU_OK);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            uint32_t ops[2][64], num;
            NPU_CHECK_STATUS(npu_graph_specialize(&now, g, names, rows[i], 2, NULL), NPU_OK);
            rig fixed = net_make(now, w);
            size_t len = net_run(open.exec, rows[i][0], rows[i][1], x, y[0]);
            NPU_CHECK_EQ(net_run(fixed.exec, rows[i][0], rows[i][1], x, y[1]), len);
            NPU_CHECK_THAT(memcmp(y[0], y[1], len * sizeof y[0][0]) == 0, "%s%d x %d differs", nets[k].sizes,
                           (int)rows[i][0], (int)rows[i][1]);
            num = timed_ops(open.exec, ops[0]);
            NPU_CHECK(num > 0 && (num < 14 || rows[i][0] == 0));
            NPU_CHECK_EQ(timed_ops(fixed.exec, ops[1]), num);
            NPU_CHECK(memcmp(ops[0], ops[1], num * sizeof ops[0][0]) == 0);
            rig_end(&fixed);
        }
        while (npu_exec_unbounded(open.exec, num_grown, &backend, &bytes)) {
            num_grown++;
        }
        NPU_CHECK_EQ(num_grown, nets[k].num_grown);
        npu_text_free(&text);
        rig_end(&open);
    }
}

static void test_packed_once(void)
{
    check_packed("symbol n 1 40", true);
    check_packed("symbol n 1 0", false);
}

/* Sizes among attributes are symbols, too: they keep their meaning where symbols get other numbers or values. */
static void test_sizes_of_symbols(void)
{
    static const char *const names[] = { "a", "b" };
    static const char text[] = "graph main\nsymbol a 1 9\nsymbol b 1 9\ninput x : f32[a,b,4]\n"
                               "r = aten.reshape.default(x, [-3, 4, -1])\noutput r = r\n";
    static const char *const expected[] = { "shape=[-2, 4, -1]) : f32[b,4,3]", "shape=[3, 4, -1]) : f32[3,4,a]" };
    rig r = rig_text(text, 0);
    for (int i = 0; i < 2; i++) {
        npu_graph *now = NULL;
        npu_text out = npu_text_init(NULL);
        NPU_CHECK_STATUS(npu_graph_specialize(&now, r.graph, &names[i], DIMS(3), 1, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_print(now, &out), NPU_OK);
        NPU_CHECK(strstr(out.data, expected[i]));
        npu_text_free(&out);
        npu_graph_destroy(now);
    }
    float x[2 * 5 * 4];
    fill(x, 40, 1);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 3, DIMS(2, 5, 4), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    check_output(&r, "r", "f32[5,4,2]", x, 40);
    rig_end(&r);
}

/* A size may be a symbol that no operand of the op has: a batch that is made, spread, or found again in what was
   flattened. Whether it is right the run sees. */
static void test_symbols_of_others(void)
{
    rig r = rig_text("graph main\nsymbol n 0 9\ninput x : f32[n,3]\nconst b : f32[1,3] {1.0, 2.0, 3.0}\n"
                     "ones = aten.ones.default([-2, 3])\ne = aten.expand.default(b, [-2, 3])\n"
                     "f = aten.flatten.using_ints(x)\nu = aten.view.default(f, [-2, 3])\n"
                     "p = aten.add.Tensor(u, e)\ny = aten.add.Tensor(p, ones)\noutput y = y\n"
                     "input z : f32[6]\nw = aten.view.default(z, [-2, 3])\noutput w = w\n", 0);
    float x[27], y[27], z[6];
    fill(x, 27, 8);
    fill(z, 6, 9);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input(r.exec, "z", z, sizeof z), NPU_OK);
    for (int64_t n = 1; n <= 3; n++) {
        NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(n, 3), x), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), n == 2 ? NPU_OK : NPU_ERR_SHAPE); /* z has two rows of 3 */
        NPU_CHECK(n == 2 || strstr(npu_exec_diag(r.exec)->message, "view: size has"));
    }
    for (int i = 0; i < 6; i++) {
        y[i] = x[i] + (float)(i % 3 + 1) + 1;
    }
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(2, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    check_output(&r, "y", "f32[2,3]", y, 6);
    check_output(&r, "w", "f32[2,3]", z, 6);
    rig_end(&r);
}

/* A symbol of no input and of no earlier result stands for no size, wherever it stands; one that a result before gives
   does, and so does one of an input that comes later. */
static void test_symbols_of_nothing(void)
{
    static const struct { const char *text, *words; } rows[] = {
        { "input x : f32[6]\ny = aten.view.default(x, [-2, 3])\n", "view.default (op 1): a size is 'n'" },
        { "input x : f32[1,3]\ny = aten.expand.default(x, [-2, 3])\n", "expand.default (op 1): a size is 'n'" },
        { "input x : f32[6]\nz = aten.relu.default(x)\ny = aten.new_zeros.default(z, [2, -2])\n", "(op 2): a size is 'n'" },
        { "input x : f32[m]\ny = aten.ones.default([-3, -2])\n", "ones.default (op 1): a size is 'n'" },
        { "input x : f32[6]\ny = aten.ones.default([-2])\nz = aten.nonzero.default(x) : i64[n,1]\n", "a size is 'n'" },
        { "input x : f32[6]\nz = aten.nonzero.default(x) : i64[n,1]\ny = aten.ones.default([-2])\n", NULL },
        { "y = aten.ones.default([-2])\ninput x : f32[n]\n", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_status status = rows[i].words ? NPU_ERR_DYNAMIC_SHAPE : NPU_OK;
        char text[512];
        snprintf(text, sizeof text, "graph main\nsymbol n 1 8\nsymbol m 1 8\n%soutput y = y\n", rows[i].text);
        rig r = rig_text(text, 0);
        NPU_CHECK_STATUS(npu_graph_validate(r.graph, NULL, NULL), status);
        NPU_CHECK_STATUS(rig_plan(&r), status);
        NPU_CHECK(!rows[i].words || strstr(r.diag.message, rows[i].words));
        rig_end(&r);
    }
}

/* What an exporter writes for a size: the dim of a value, asked for. It is as good as the symbol or the number. */
static void test_asked_sizes(void)
{
    static const char *const expected[] = { "v = aten.view.default(self=f, size=[-2, 3]) : f32[n,3]\n",
                                            "e = aten.expand.default(self=b, size=[-2, 3]) : f32[n,3]\n",
                                            "z = aten.zeros.default(size=[3, -2], dtype=f32) : f32[3,n]\n" };
    rig r = rig_text("graph main\nsymbol n 1 9\ninput x : f32[n,3]\nconst b : f32[1,3] {1.0, 2.0, 3.0}\n"
                     "s = aten.sym_size.int(x, 0)\nt = aten.sym_size.int(x, -1)\nf = aten.flatten.using_ints(x)\n"
                     "v = aten.view.default(f, [s, t])\ne = aten.expand.default(b, [s, t])\n"
                     "z = aten.zeros.default([t, s], dtype=f32)\np = aten.add.Tensor(v, e)\n"
                     "y = aten.mm.default(p, z)\noutput p = p\noutput y = y\n", 0);
    npu_text text = npu_text_init(NULL);
    float x[6], p[6], y[4] = { 0 };
    NPU_CHECK_STATUS(npu_graph_print(r.graph, &text), NPU_OK);
    for (int i = 0; i < 3; i++) {
        NPU_CHECK(strstr(text.data, expected[i]));
    }
    npu_text_free(&text);
    fill(x, 6, 2);
    for (int i = 0; i < 6; i++) {
        p[i] = x[i] + (float)(i % 3 + 1);
    }
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_dims(r.exec, "x", 2, DIMS(2, 3), x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    check_output(&r, "p", "f32[2,3]", p, 6);
    check_output(&r, "y", "f32[2,2]", y, 4);
    rig_end(&r);
}

/* A size of run time takes no value, whether the graph named its symbol or the caller did. */
static void test_specialize_rejections(void)
{
    static const struct { const char *name; npu_status status; } rows[] = {
        { "d3", NPU_ERR_DYNAMIC_SHAPE }, { "few", NPU_ERR_DYNAMIC_SHAPE }, { "d4", NPU_ERR_NOT_FOUND }, { "s", NPU_OK }
    };
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL, *now = NULL;
    npu_diag diag;
    npu_text_printf(&text, "%s%s", sources,
                    "symbol few 0 3\nn = aten.nonzero.default(y)\nc = aten.nonzero.default(x) : i64[few,2]\n"
                    "r = aten.relu.default(n)\noutput r = r\noutput c = c\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        NPU_CHECK_STATUS(npu_graph_specialize(&now, g, &rows[i].name, DIMS(2), 1, &diag), rows[i].status);
        NPU_CHECK((now != NULL) == (rows[i].status == NPU_OK));
        NPU_CHECK(now || strstr(diag.message, rows[i].name));
        npu_graph_destroy(now);
    }
    npu_text_free(&text);
    npu_graph_destroy(g);
}

int main(void)
{
    NPU_RUN(test_rows_of_a_mask);
    NPU_RUN(test_indices);
    NPU_RUN(test_unique);
    NPU_RUN(test_pieces);
    NPU_RUN(test_repeats);
    NPU_RUN(test_classes);
    NPU_RUN(test_kernel_tells);
    NPU_RUN(test_fed);
    NPU_RUN(test_fed_types);
    NPU_RUN(test_not_fed);
    NPU_RUN(test_fed_sizes);
    NPU_RUN(test_same_sizes);
    NPU_RUN(test_inputs);
    NPU_RUN(test_threads);
    NPU_RUN(test_two_threads);
    NPU_RUN(test_bad_bindings);
    NPU_RUN(test_small_outputs);
    NPU_RUN(test_no_channels);
    NPU_RUN(test_refused_by_the_run);
    NPU_RUN(test_refused_by_the_plan);
    NPU_RUN(test_nothing_beside_large_dims);
    NPU_RUN(test_split);
    NPU_RUN(test_unbounded_split);
    NPU_RUN(test_planned_bytes);
    NPU_RUN(test_runs_do_not_allocate);
    NPU_RUN(test_packed_once);
    NPU_RUN(test_open_net);
    NPU_RUN(test_symbols);
    NPU_RUN(test_rejected_shapes);
    NPU_RUN(test_given_symbols);
    NPU_RUN(test_rewritten);
    NPU_RUN(test_specialized);
    NPU_RUN(test_specialize_rejections);
    NPU_RUN(test_sizes_of_symbols);
    NPU_RUN(test_symbols_of_others);
    NPU_RUN(test_symbols_of_nothing);
    NPU_RUN(test_asked_sizes);
    return npu_test_done();
}
