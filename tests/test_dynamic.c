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

int main(void)
{
    NPU_RUN(test_symbols);
    NPU_RUN(test_rejected_shapes);
    NPU_RUN(test_given_symbols);
    NPU_RUN(test_specialized);
    return npu_test_done();
}
