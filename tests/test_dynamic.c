/* Shapes that depend on data: the symbols that results get, and their bounds; plans at the bound; runs with the dims
   that come up, from input to output. */
#include "rig.h"

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
    npu_text text = npu_text_make(NULL), symbols = npu_text_make(NULL);
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
    for (int64_t dim = -4; strcmp(npu_graph_symbol_name(g, dim), "?") != 0; dim--) {
        bool bounded = npu_graph_dim_bounds(g, dim, &min, &max);
        NPU_CHECK_EQ(min, 0);
        npu_text_printf(&symbols, symbols.len ? " %s" : "%s", npu_graph_symbol_name(g, dim));
        npu_text_printf(&symbols, bounded ? "<=%lld" : "", (long long)max);
    }
    NPU_CHECK_STR(symbols.data ? symbols.data : "", row->symbols);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    /* the text form says the same when it is read and written once more */
    text = npu_text_make(NULL);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK(strstr(text.data, row->spec));
    if (!strstr(text.data, row->spec)) {
        fprintf(stderr, "%s\n", text.data);
    }
    NPU_CHECK_STATUS(npu_graph_parse(&again, text.data, text.len, NULL, NULL), NPU_OK);
    npu_text twice = npu_text_make(NULL);
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
        { "r = aten.repeat.default(x, [3, 1])", "d2<=192", "f32[d2,4]" },
        { "r = aten.cat.default([z, z])", "d2", "f32[d2,4]" },
        { "c, d = aten.tensor_split.indices(x, [3])", "d2<=3 d3<=61", "f32[d2,4], f32[d3,4]" },
        { "n = aten.nonzero.default(y)\nv = aten.squeeze.dim(n, 1)\nr = aten.index_select.default(y, 0, v)", "d2<=8",
          "index=v) : f32[d2]" },
        /* no symbol stands for an anonymous dim, nor for what is computed from one */
        { "r = aten.cat.default([a, a])", "", "f32[?]" },
        { "r = aten.nonzero.default(a)", "d2", "i64[d2,1]" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_symbols(&rows[i]);
    }
}

/* What no rule can say is an error that names the op and the operand. */
static void test_rejected_shapes(void)
{
    static const struct { const char *op, *operand; } rows[] = {
        { "r = aten.add.Tensor(x, z)", "other" },
        { "n = aten.masked_select.default(y, m)\nr = aten.add.Tensor(n, y)", "other" },
        { "r = aten.index.Tensor(x, [k, k])", "indices" },
        { "r = aten.unbind.int(x)", "self" },
        { "r = aten.split.Tensor(x, 2)", "self" },
        { "r = aten.chunk.default(x, 2)", "self" },
        { "r = aten.tensor_split.tensor_indices_or_sections(y, p)", "tensor_indices_or_sections" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_make(NULL);
        npu_graph *g = NULL;
        npu_diag diag;
        npu_text_printf(&text, "%s%s\n", sources, rows[i].op);
        npu_status status = npu_graph_parse(&g, text.data, text.len, NULL, &diag);
        if (i == 2) { /* more dims than x has: no question of symbols */
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
    int64_t few = npu_graph_symbol(g, "few", 0, 5);
    npu_arg self = npu_arg_tensor("self", npu_input(g, "x", F32(10)));
    npu_spec good = npu_spec_tensor(NPU_I64, 2, DIMS(few, 1)), number = npu_spec_tensor(NPU_I64, 2, DIMS(5, 1));
    npu_op op = npu_emit_typed(g, "aten.nonzero.default", &self, 1, &good, 1);
    NPU_CHECK_EQ(npu_value_spec(g, npu_op_result(g, op, 0))->dims[0], few);
    NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_emit_typed(g, "aten.nonzero.default", &self, 1, &number, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_SHAPE);
    npu_graph_destroy(g);
}

/* Values for symbols reach what was deduced from them: bounds shrink, or numbers come out. */
static void test_specialized(void)
{
    static const char *const name = "s";
    npu_text text = npu_text_make(NULL);
    npu_graph *g = NULL, *now = NULL;
    npu_text_printf(&text, "%s%s", sources,
                    "n = aten.nonzero.default(x)\nc = aten.cat.default([x, x])\nd = aten.reshape.default(c, [-1, 2])\n"
                    "e = aten.add.Tensor(n, n)\noutput n = n\noutput d = d\noutput e = e\n");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_specialize(&now, g, &name, DIMS(3), 1, NULL), NPU_OK);
    npu_text_free(&text);
    text = npu_text_make(NULL);
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
    const float *got = npu_exec_output_by_name(r->exec, name, &size);
    npu_text text = npu_text_make(NULL);
    for (uint32_t i = 0; i < npu_graph_num_outputs(r->graph); i++) {
        if (strcmp(npu_graph_output_name(r->graph, i), name) == 0) {
            npu_spec_print(&text, npu_exec_output_shape(r->exec, i));
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
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "m", m, sizeof m), NPU_OK);
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
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "x", x, sizeof x), NPU_OK);
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

/* What is there once: elements put back by their places are those that came. Columns are (x, 1 - x). */
static void test_unique(void)
{
    rig r = rig_text("graph main\ninput x : f32[6]\ninput y : f32[2,6]\ninput i : i64[6]\n"
                     "v, p, c = aten._unique2.default(x, return_inverse=true, return_counts=true)\n"
                     "back = aten.index_select.default(v, 0, p)\nnum = aten.to.dtype(c, f32)\n"
                     "columns, q, k = aten.unique_dim.default(y, 1)\n"
                     "b = aten.bincount.default(i)\nbins = aten.to.dtype(b, f32)\n"
                     "output v = v\noutput back = back\noutput num = num\noutput columns = columns\n"
                     "output bins = bins\n", 0);
    float x[6], y[2][6];
    int64_t numbers[6];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "x", x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "y", y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input(r.exec, "i", numbers, sizeof numbers), NPU_OK);
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

int main(void)
{
    NPU_RUN(test_rows_of_a_mask);
    NPU_RUN(test_indices);
    NPU_RUN(test_unique);
    NPU_RUN(test_symbols);
    NPU_RUN(test_rejected_shapes);
    NPU_RUN(test_given_symbols);
    NPU_RUN(test_specialized);
    return npu_test_done();
}
