/* Structured loops: index maps, reassociations, the rules of generic, and the kernels against plain loops. */
#include "rig.h"

static npu_graph *parse(const char *text)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag)) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
    }
    NPU_CHECK(g);
    return g;
}

static npu_status parse_status(const char *text)
{
    npu_graph *g = NULL;
    npu_status status = npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), NULL);
    npu_graph_destroy(g);
    return status;
}

/* Runs a graph with one output on both sets of kernels: in[i] for input i; the result of the last one stays. */
static void run(const npu_graph *g, const void *const *in, void *out, size_t out_size)
{
    for (int plain = 1; plain >= 0; plain--) {
        npu_ref_desc desc = { 0 };
        npu_backend *cpu = NULL;
        const npu_backend *backend;
        npu_exec *exec = NULL;
        npu_diag diag = { 0 };
        desc.variant = plain ? "plain" : NULL;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
        backend = cpu;
        if (npu_exec_create_simple(&exec, g, &backend, 1, &diag)) {
            fprintf(stderr, "%s\n", diag.message);
        }
        NPU_CHECK(exec);
        for (uint32_t i = 0; exec && i < npu_graph_num_inputs(g); i++) {
            size_t size = 0;
            npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
            NPU_CHECK_STATUS(npu_test_input(exec, npu_value_name(g, npu_graph_input(g, i)), in[i], size), NPU_OK);
        }
        if (exec) {
            memset(out, 0xee, out_size);
            NPU_CHECK_STATUS(npu_exec_set_output(exec, npu_graph_output_name(g, 0), out, out_size), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        }
        npu_exec_destroy(exec);
        npu_ref_destroy(cpu);
    }
}

/* ---- maps ---- */

static void test_map_text(void)
{
    static const struct { const char *text, *printed; } rows[] = {
        { "(n, c, h, w) -> (c)", "(d0, d1, d2, d3) -> (d1)" },
        { "(n,c,oh,ow,kh,kw)->(n , c, 2*oh + kh, ow*3+kw*2 - 1)",
          "(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 3 + d5 * 2 - 1)" },
        { "() -> ()", "() -> ()" }, { "(i) -> ()", "(d0) -> ()" }, { "(i) -> (0)", "(d0) -> (0)" },
        { "(i, j) -> (7 - i, 2 * 3 + i - i)", "(d0, d1) -> (-d0 + 7, 6)" }, { "(d0_) -> (-d0_)", "(d0) -> (-d0)" },
    };
    NPU_ITEM("S4.32");
    NPU_ITEM("S4.33");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_affine_map map, again;
        npu_text text = npu_text_init(NULL);
        NPU_CHECK_STATUS(npu_affine_map_parse(&map, rows[i].text, strlen(rows[i].text), NULL), NPU_OK);
        NPU_CHECK_EQ(map.num_symbols, 0);
        npu_affine_map_print(&text, &map);
        NPU_CHECK_STR(text.data, rows[i].printed);
        NPU_CHECK_STATUS(npu_affine_map_parse(&again, text.data, text.len, NULL), NPU_OK);
        NPU_CHECK_BYTES(&map, &again, sizeof map);
        npu_text_free(&text);
    }
}

static void test_map_dims(void)
{
    static const uint32_t c[] = { 1 };
    npu_affine_map bias = npu_affine_map_projection(4, c, 1), identity = npu_affine_map_projection(4, NULL, 0), parsed;
    const char *text = "(n, c, h, w) -> (c)";
    NPU_ITEM("S4.34");
    NPU_ITEM("S4.35");
    NPU_CHECK_STATUS(npu_affine_map_parse(&parsed, text, strlen(text), NULL), NPU_OK);
    NPU_CHECK_BYTES(&parsed, &bias, sizeof bias);
    NPU_CHECK_EQ(npu_affine_expr_dim(&parsed.results[0]), 1); /* n is 0, c is 1 */
    NPU_CHECK_EQ(identity.num_results, 4);
    for (int i = 0; i < 4; i++) {
        NPU_CHECK_EQ(npu_affine_expr_dim(&identity.results[i]), i);
    }
    identity.results[0].constant = 1;
    NPU_CHECK_EQ(npu_affine_expr_dim(&identity.results[0]), -1);
    identity.results[1].factors[2] = 1;
    NPU_CHECK_EQ(npu_affine_expr_dim(&identity.results[1]), -1);
}

static void test_map_rejections(void)
{
    static const struct { const char *text; npu_status status; } rows[] = {
        { "", NPU_ERR_PARSE }, { "(n, c) -> (c", NPU_ERR_PARSE }, { "(n, c) (c)", NPU_ERR_PARSE },
        { "(n, n) -> (n)", NPU_ERR_PARSE }, { "(n) -> (m)", NPU_ERR_PARSE }, { "(n) -> (n) x", NPU_ERR_PARSE },
        { "(n)[s] -> (n)", NPU_ERR_PARSE }, { "(n) -> (n * n)", NPU_ERR_PARSE }, { "(n) -> (n,)", NPU_ERR_PARSE },
        { "(n, 2) -> (n)", NPU_ERR_PARSE }, { "(n) -> (n mod 2)", NPU_ERR_PARSE }, { "(n) -> (2147483648)",
          NPU_ERR_PARSE },
        { "(n) -> (65536 * 65536 * n)", NPU_ERR_PARSE }, { "(n) -> ()extra", NPU_ERR_PARSE }, { "(,n) -> (n)",
          NPU_ERR_PARSE },
        { "(a, b, c, d, e, f, g, h, i, j, k, l, m) -> (a)", NPU_ERR_RANK },
        { "(a) -> (a, a, a, a, a, a, a, a, a)", NPU_ERR_RANK },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_affine_map map;
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_affine_map_parse(&map, rows[i].text, strlen(rows[i].text), &diag), rows[i].status);
        NPU_CHECK_STATUS(diag.status, rows[i].status);
    }
}

/* ---- reassociations ---- */

static void test_reassociation(void)
{
    static const struct { uint32_t rank; const char *text; npu_status status; uint32_t groups, first; } rows[] = {
        { 4, "[[0], [1, 2, 3]]", NPU_OK, 2, 1 }, { 4, "[[0,1],[2],[3]]", NPU_OK, 3, 2 }, { 1, "[[0]]", NPU_OK, 1, 1 },
        { 2, "[]", NPU_OK, 0, 0 }, { 0, "[]", NPU_OK, 0, 0 },
        { 4, "[[0], [1, 2]]", NPU_ERR_SHAPE, 0, 0 }, { 3, "[[0], [2], [1]]", NPU_ERR_SHAPE, 0, 0 },
        { 3, "[[0], [0, 1, 2]]", NPU_ERR_SHAPE, 0, 0 }, { 3, "[[0], [], [1, 2]]", NPU_ERR_SHAPE, 0, 0 },
        { 2, "[[0], [1, 2]]", NPU_ERR_SHAPE, 0, 0 }, { 3, "[[1, 2]]", NPU_ERR_SHAPE, 0, 0 },
        { 2, "[[0], [1]", NPU_ERR_PARSE, 0, 0 }, { 2, "[0, 1]", NPU_ERR_PARSE, 0, 0 }, { 2, "", NPU_ERR_PARSE, 0, 0 },
        { 2, "[[0] [1]]", NPU_ERR_PARSE, 0, 0 }, { 2, "[[0], [1]] 2", NPU_ERR_PARSE, 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t sizes[NPU_MAX_RANK] = { 0 }, groups = 0;
        npu_status status =
            npu_reassociation_parse(sizes, &groups, rows[i].rank, rows[i].text, strlen(rows[i].text), NULL);
        NPU_CHECK_STATUS(status, rows[i].status);
        if (status == NPU_OK) {
            NPU_CHECK_EQ(groups, rows[i].groups);
            NPU_CHECK_EQ(sizes[0], rows[i].first);
        }
    }
}

/* Every rule of the shapes: what a line of text is worth. */
static void test_shape_rejections(void)
{
    static const struct { const char *op; npu_status status; } rows[] = {
        { "tensor.collapse_shape(x, reassociation='[[0], [1, 2]]')", NPU_OK },
        { "tensor.collapse_shape(x, reassociation='[[0], [1]]')", NPU_ERR_SHAPE },
        { "tensor.collapse_shape(x, reassociation='[]')", NPU_ERR_SHAPE },
        { "tensor.collapse_shape(x, reassociation='[[0], [1, 2]')", NPU_ERR_PARSE },
        { "tensor.expand_shape(x, reassociation='[[0], [1, 2], [3]]', output_shape=[2, 3, 1, 4])", NPU_OK },
        { "tensor.expand_shape(x, reassociation='[[0], [1, 2], [3]]', output_shape=[2, 3, 2, 4])", NPU_ERR_SHAPE },
        { "tensor.expand_shape(x, reassociation='[[0], [1, 2, 3]]', output_shape=[2, 3, 1, 4])", NPU_ERR_RANK },
        { "tensor.expand_shape(x, reassociation='[[0], [1], [2]]', output_shape=[2, 3, 1, 4])", NPU_ERR_SHAPE },
        { "tensor.expand_shape(x, reassociation='[[0], [1, 2], [3]]', output_shape=[2, 3, -1, 4])",
          NPU_ERR_ATTRIBUTE },
        { "tensor.pad(x, low=[0, 1, 2], high=[0, 0, 0])", NPU_OK },
        { "tensor.pad(x, low=[0, 1], high=[0, 0, 0])", NPU_ERR_RANK },
        { "tensor.pad(x, low=[0, 1, -1], high=[0, 0, 0])", NPU_ERR_ATTRIBUTE },
        { "tensor.pad(k, low=[1], high=[0], value=0.5)", NPU_ERR_ATTRIBUTE },
        { "tensor.pad(k, low=[1], high=[0], value=128)", NPU_ERR_ATTRIBUTE },
        { "tensor.pad(k, low=[1], high=[0], value=-128)", NPU_OK },
        { "tensor.empty(size=[2, -1], dtype=f32)", NPU_ERR_ATTRIBUTE },
        { "tensor.empty(size=[1, 1, 1, 1, 1, 1, 1, 1, 1], dtype=f32)", NPU_ERR_RANK },
        { "tensor.concat([x, x], dim=2)", NPU_OK }, { "tensor.concat([x, x], dim=3)", NPU_ERR_AXIS },
        { "tensor.concat([x, y], dim=0)", NPU_ERR_RANK }, { "tensor.concat([y, q], dim=0)", NPU_ERR_SHAPE },
        { "tensor.extract_slice(x, offsets=[1, 0, 1], sizes=[1, 2, 2], strides=[1, 2, 2])", NPU_OK },
        { "tensor.extract_slice(x, offsets=[1, 0, 1], sizes=[1, 2, 2], strides=[1, 2, 3])", NPU_ERR_RANGE },
        { "tensor.extract_slice(y, offsets=[2, 0], sizes=[1, 3])", NPU_ERR_RANGE },
        { "tensor.extract_slice(y, offsets=[2, 0], sizes=[0, 3])", NPU_OK },
        { "tensor.extract_slice(y, offsets=[0, -1], sizes=[2, 3])", NPU_ERR_ATTRIBUTE },
        { "tensor.extract_slice(y, offsets=[0, 0], sizes=[2, -3])", NPU_ERR_ATTRIBUTE },
        { "tensor.extract_slice(y, offsets=[0, 0], sizes=[2, 3], strides=[1, 0])", NPU_ERR_ATTRIBUTE },
        { "tensor.extract_slice(y, offsets=[0], sizes=[2, 3])", NPU_ERR_RANK },
        { "tensor.extract_slice(y, offsets=[0, 0], sizes=[2, 3], strides=[1])", NPU_ERR_RANK },
        { "tensor.concat([], dim=0)", NPU_ERR_ARITY }, { "tensor.concat([y, q])", NPU_ERR_ATTRIBUTE },
        { "linalg.fill(300, k)", NPU_ERR_ATTRIBUTE }, { "linalg.fill(0.5, k)", NPU_ERR_ATTRIBUTE },
        { "linalg.fill(-inf, x)", NPU_OK },
        { "linalg.add(x, x, x)", NPU_OK }, { "linalg.add(x, x, k)", NPU_ERR_DTYPE }, { "linalg.add(x, y, x)",
          NPU_ERR_SHAPE },
        { "linalg.exp(k, k)", NPU_ERR_DTYPE }, { "linalg.add(b, b, b)", NPU_ERR_DTYPE },
        { "linalg.transpose(y, y, permutation=[1, 0])", NPU_ERR_SHAPE },
        { "linalg.transpose(y, y, permutation=[0])", NPU_ERR_RANK },
        { "linalg.transpose(y, y, permutation=[0, 0])", NPU_ERR_AXIS },
        { "linalg.matmul(y, y, y)", NPU_ERR_SHAPE }, { "linalg.matmul(x, y, y)", NPU_ERR_RANK },
        { "linalg.matmul_transpose_b(y, y, y)", NPU_ERR_SHAPE }, { "linalg.matmul_transpose_b(y, y, q)", NPU_OK },
        { "linalg.batch_matmul(x, x, x)", NPU_ERR_SHAPE },
        { "linalg.conv_1d_ncw_fcw(x, x, x)", NPU_ERR_SHAPE },
        { "linalg.conv_1d_ncw_fcw(x, y, x)", NPU_ERR_RANK },
        { "linalg.conv_1d_ncw_fcw(x, f, o)", NPU_OK },
        { "linalg.conv_1d_ncw_fcw(x, f, o, strides=2)", NPU_ERR_SHAPE },
        { "linalg.conv_1d_ncw_fcw(x, f, o, strides=0)", NPU_ERR_ATTRIBUTE },
        { "linalg.pooling_ncw_max(x, p, kernel_size=[2])", NPU_OK },
        { "linalg.pooling_ncw_max(x, p, kernel_size=[5])", NPU_ERR_SHAPE },
        { "linalg.pooling_ncw_sum(x, p, kernel_size=[2], dilations=[2])", NPU_ERR_SHAPE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        npu_status status;
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32[2,3,4]\ninput y : f32[2,3]\ninput q : f32[2,2]\ninput k : i8[4]\n"
                 "input b : bool[2]\ninput f : f32[5,3,2]\ninput o : f32[2,5,3]\ninput p : f32[2,3,3]\n"
                 "r = %s\noutput r = r\n", rows[i].op);
        status = parse_status(text);
        NPU_CHECK_STATUS(status, rows[i].status);
        if (status != rows[i].status) {
            fprintf(stderr, "  %s\n", rows[i].op);
        }
    }
}

/* ---- generic ---- */

#define BODIES \
    "graph main\nchild add scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n  input d : scalar f32[]\n" \
    "  y = arith.addf(a, b)\n  output y = y\nend\n" \
    "child fold scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  y = arith.addf(d, a)\n" \
    "  output y = y\nend\n" \
    "child tensors\n  input a : f32[]\n  input d : f32[]\n  y = aten.add.Tensor(d, a)\n  output y = y\nend\n" \
    "child halves scalar\n  input a : scalar f16[]\n  input d : scalar f16[]\n  y = arith.addf(d, a)\n" \
    "  output y = y\nend\n"

#define IJ "'(i, j) -> (i, j)'"
#define I "'(i, j) -> (i)'"
#define PP "iterators=['parallel', 'parallel'], body=graph "
#define PR "iterators=['parallel', 'reduction'], body=graph "
#define RR "iterators=['reduction', 'reduction'], body=graph "

static void test_generic_rules(void)
{
    static const struct { const char *op; npu_status status; } rows[] = {
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (j)', " IJ "], " PP "0", NPU_OK },
        { "[x], [v], maps=[" IJ ", " I "], " PR "1", NPU_OK },
        /* one map per operand, a known word per loop */
        { "[x, b], [o], maps=[" IJ ", " IJ "], " PP "0", NPU_ERR_ARITY },
        { "[x], [], maps=[" IJ "], " PP "1", NPU_ERR_ARITY },
        { "[x], [v], maps=[" IJ ", " I "], iterators=['parallel', 'window'], body=graph 1", NPU_ERR_ATTRIBUTE },
        { "[x], [v], maps=[" IJ ", " I "], iterators=['parallel'], body=graph 1", NPU_ERR_RANK },
        { "[x], [v], maps=[" IJ ", '(i) -> (i)'], " PR "1", NPU_ERR_RANK },
        { "[x], [v], maps=[" I ", " I "], " PR "1", NPU_ERR_RANK },
        { "[x], [v], maps=['(i, j) -> (i, k)', " I "], " PR "1", NPU_ERR_PARSE },
        /* loops have a length, and reach no further than the operands */
        { "[x], [v], maps=['(i, j) -> (i, 2 * j)', " I "], " PR "1", NPU_ERR_ATTRIBUTE },
        { "[x, b], [o], maps=[" IJ ", " I ", " IJ "], " PP "0", NPU_ERR_SHAPE },
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (j + 1)', " IJ "], " PP "0", NPU_ERR_RANGE },
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (1 - j)', " IJ "], " PP "0", NPU_ERR_RANGE },
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (2 - j)', " IJ "], " PP "0", NPU_OK },
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (3)', " IJ "], " PP "0", NPU_ERR_RANGE },
        { "[x, b], [o], maps=[" IJ ", '(i, j) -> (0)', " IJ "], " PP "0", NPU_OK },
        /* a destination's element belongs to one parallel iteration */
        { "[x], [v], maps=[" IJ ", " I "], iterators=['reduction', 'parallel'], body=graph 1", NPU_ERR_ATTRIBUTE },
        { "[x], [v], maps=[" IJ ", " I "], " PP "1", NPU_ERR_ATTRIBUTE },
        { "[x, b], [s], maps=['(i, j) -> (j, i)', " I ", '(i, j) -> (i, i)'], " PR "0", NPU_ERR_ATTRIBUTE },
        { "[x], [v], maps=[" IJ ", '(i, j) -> (2 - i)'], " PR "1", NPU_ERR_RANGE },
        { "[x], [v], maps=[" IJ ", '(i, j) -> (1 - i)'], " PR "1", NPU_ERR_ATTRIBUTE },
        { "[x], [v], maps=[" IJ ", '(i, j) -> (0)'], " RR "1", NPU_ERR_ATTRIBUTE },
        { "[x], [one], maps=[" IJ ", '(i, j) -> (0)'], " RR "1", NPU_OK },
        /* the body fits */
        { "[x], [v], maps=[" IJ ", " I "], " PR "0", NPU_ERR_ARITY },
        { "[x], [v], maps=[" IJ ", " I "], " PR "2", NPU_ERR_GRAPH },
        { "[x], [v], maps=[" IJ ", " I "], " PR "3", NPU_ERR_DTYPE },
        { "[x], [v], maps=[" IJ ", " I "], " PR "9", NPU_ERR_INVALID_ARGUMENT },
    };
    NPU_ITEM("S4.41");
    NPU_ITEM("S4.36");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1200];
        npu_status status;
        snprintf(text, sizeof text, BODIES "input x : f32[2,3]\ninput b : f32[3]\ninput o : f32[2,3]\n"
            "input v : f32[2]\n"
                 "input s : f32[3,3]\ninput one : f32[1]\nr = linalg.generic(%s)\noutput r = r\n", rows[i].op);
        status = parse_status(text);
        NPU_CHECK_STATUS(status, rows[i].status);
        if (status != rows[i].status) {
            fprintf(stderr, "  %s\n", rows[i].op);
        }
    }
}

/* ---- kernels ---- */

enum { MAX_ELEMENTS = 20000 };

static void put(npu_dtype dtype, void *data, size_t i, double x)
{
    switch (dtype) {
    case NPU_F32: ((float *)data)[i] = (float)x; break;
    case NPU_F64: ((double *)data)[i] = x; break;
    case NPU_F16: ((uint16_t *)data)[i] = npu_f32_to_f16((float)x); break;
    case NPU_BF16: ((uint16_t *)data)[i] = npu_f32_to_bf16((float)x); break;
    case NPU_I32: ((int32_t *)data)[i] = (int32_t)x; break;
    case NPU_I8: ((int8_t *)data)[i] = (int8_t)x; break;
    case NPU_U8: ((uint8_t *)data)[i] = (uint8_t)(int)x; break;
    default: NPU_CHECK(!"a dtype of the tests");
    }
}

static double get(npu_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case NPU_F32: return (double)((const float *)data)[i];
    case NPU_F64: return ((const double *)data)[i];
    case NPU_F16: return (double)npu_f16_to_f32(((const uint16_t *)data)[i]);
    case NPU_BF16: return (double)npu_bf16_to_f32(((const uint16_t *)data)[i]);
    case NPU_I32: return ((const int32_t *)data)[i];
    case NPU_U8: return ((const uint8_t *)data)[i];
    default: return ((const int8_t *)data)[i];
    }
}

/* Small whole numbers: sums of some hundred products are exact in every dtype that takes part. */
static double number(size_t i, uint32_t seed) { return (double)((i * 2654435761u >> 7) % 5u + seed % 2u) - 2.0; }

typedef struct nest {
    const char *op;           /* after the operands */
    int64_t x[6], f[6], y[6]; /* n, g, c, d, h, w; f: g, f, c, d, h, w (the window of a pool) */
    int64_t stride[3], dilation[3];
    bool max;
} nest;

static int64_t at6(const int64_t *dims, const int64_t *i)
{
    int64_t at = 0;
    for (int k = 0; k < 6; k++) {
        at = at * dims[k] + i[k];
    }
    return at;
}

/* One result element of a convolution (weights) or a pool (weights NULL), from `start`. */
static double nest_element(const nest *t, const double *x, const double *w, const int64_t *o, double start)
{
    double sum = start;
    for (int64_t c = 0; c < (w ? t->x[2] : 1); c++) {
        for (int64_t k = 0; k < t->f[3] * t->f[4] * t->f[5]; k++) {
            int64_t tap[3] = { k / t->f[5] / t->f[4], k / t->f[5] % t->f[4], k % t->f[5] };
            int64_t xi[6] = { o[0], o[1], w ? c : o[2], 0, 0, 0 }, wi[6] = { o[1], o[2], c, tap[0], tap[1], tap[2] };
            for (int i = 0; i < 3; i++) {
                xi[3 + i] = o[3 + i] * t->stride[i] + tap[i] * t->dilation[i];
            }
            if (w) {
                sum += x[at6(t->x, xi)] * w[at6(t->f, wi)];
            } else {
                sum = t->max ? fmax(sum, x[at6(t->x, xi)]) : sum + x[at6(t->x, xi)];
            }
        }
    }
    return sum;
}

static const nest nests[] = {
    { "linalg.conv_2d_nchw_fchw(x, w, d, strides=[2, 1], dilations=[1, 2])", { 2, 1, 3, 1, 9, 8 }, { 1, 4, 3, 1, 3,
      2 },
      { 2, 1, 4, 1, 4, 6 }, { 1, 2, 1 }, { 1, 1, 2 }, false },
    { "linalg.conv_2d_nchw_fchw(x, w, d)", { 2, 1, 3, 1, 5, 4 }, { 1, 4, 3, 1, 1, 1 }, { 2, 1, 4, 1, 5, 4 }, { 1, 1,
      1 },
      { 1, 1, 1 }, false },
    { "linalg.conv_2d_nchw_fchw(x, w, d)", { 1, 1, 8, 1, 14, 14 }, { 1, 24, 8, 1, 3, 3 }, { 1, 1, 24, 1, 12, 12 },
      { 1, 1, 1 }, { 1, 1, 1 }, false },
    { "linalg.conv_1d_ncw_fcw(x, w, d, strides=3)", { 2, 1, 3, 1, 1, 20 }, { 1, 5, 3, 1, 1, 4 }, { 2, 1, 5, 1, 1, 6 },
      { 1, 1, 3 }, { 1, 1, 1 }, false },
    { "linalg.conv_3d_ncdhw_fcdhw(x, w, d, dilations=[2, 1, 1])", { 1, 1, 2, 5, 4, 6 }, { 1, 3, 2, 2, 3, 2 },
      { 1, 1, 3, 3, 2, 5 }, { 1, 1, 1 }, { 2, 1, 1 }, false },
    { "linalg.conv_2d_ngchw_gfchw(x, w, d, strides=2)", { 2, 3, 2, 1, 7, 6 }, { 3, 2, 2, 1, 3, 2 }, { 2, 3, 2, 1, 3,
      3 },
      { 1, 2, 2 }, { 1, 1, 1 }, false },
    { "linalg.conv_2d_ngchw_gfchw(x, w, d)", { 1, 6, 1, 1, 7, 9 }, { 6, 1, 1, 1, 3, 3 }, { 1, 6, 1, 1, 5, 7 }, { 1,
      1, 1 },
      { 1, 1, 1 }, false },
    { "linalg.pooling_nchw_max(x, d, kernel_size=[3, 2], strides=[2, 1], dilations=[1, 3])", { 2, 1, 3, 1, 7, 9 },
      { 0, 0, 0, 1, 3, 2 }, { 2, 1, 3, 1, 3, 6 }, { 1, 2, 1 }, { 1, 1, 3 }, true },
    { "linalg.pooling_nchw_sum(x, d, kernel_size=[2, 2], strides=2)", { 1, 1, 4, 1, 6, 4 }, { 0, 0, 0, 1, 2, 2 },
      { 1, 1, 4, 1, 3, 2 }, { 1, 2, 2 }, { 1, 1, 1 }, false },
    { "linalg.pooling_ncw_max(x, d, kernel_size=[3])", { 1, 1, 4, 1, 1, 8 }, { 0, 0, 0, 1, 1, 3 }, { 1, 1, 4, 1, 1,
      6 },
      { 1, 1, 1 }, { 1, 1, 1 }, true },
    { "linalg.pooling_ncw_sum(x, d, kernel_size=[2], strides=2)", { 1, 1, 4, 1, 1, 8 }, { 0, 0, 0, 1, 1, 2 },
      { 1, 1, 4, 1, 1, 4 }, { 1, 1, 2 }, { 1, 1, 1 }, false },
    { "linalg.pooling_ncdhw_max(x, d, kernel_size=[2, 2, 3])", { 1, 1, 2, 4, 3, 5 }, { 0, 0, 0, 2, 2, 3 },
      { 1, 1, 2, 3, 2, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, true },
    { "linalg.pooling_ncdhw_sum(x, d, kernel_size=[2, 1, 3], strides=[2, 1, 1])", { 1, 1, 2, 4, 3, 5 },
      { 0, 0, 0, 2, 1, 3 }, { 1, 1, 2, 2, 3, 3 }, { 2, 1, 1 }, { 1, 1, 1 }, false },
    { "linalg.matmul(x, w, d)", { 1, 1, 7, 1, 1, 6 }, { 1, 9, 1, 1, 1, 6 }, { 1, 1, 9, 1, 1, 7 }, { 1, 1, 1 }, { 1,
      1, 1 }, false },
};

/* Dims of an operand as its op writes them: without what the named op has not. */
static uint32_t nest_dims(const nest *t, const int64_t *six, bool is_filter, int64_t *dims)
{
    bool grouped = strstr(t->op, "ngchw") != NULL;
    uint32_t rank = 0, spatial = strstr(t->op, "ncdhw") ? 3 : strstr(t->op, "nchw") || grouped ? 2 : 1;
    if (grouped || !is_filter) {
        dims[rank++] = six[0];
    }
    if (grouped || is_filter) {
        dims[rank++] = six[1];
    }
    dims[rank++] = six[2];
    for (uint32_t i = 3 - spatial; i < 3; i++) {
        dims[rank++] = six[3 + i];
    }
    return rank;
}

static size_t nest_input(const nest *t, npu_text *text, npu_dtype dtype, const char *name, const int64_t *six,
    bool is_filter,
                         double *values, void *data)
{
    int64_t dims[6];
    uint32_t rank = nest_dims(t, six, is_filter, dims);
    npu_spec spec = npu_spec_tensor(dtype, rank, dims);
    size_t n = 0;
    npu_spec_len(&spec, &n);
    NPU_CHECK(n <= MAX_ELEMENTS);
    npu_text_printf(text, "input %s : ", name);
    npu_spec_print(text, &spec);
    npu_text_append(text, "\n", 1);
    for (size_t i = 0; i < n; i++) {
        values[i] = number(i, (uint32_t)name[0]);
        put(dtype, data, i, values[i]);
    }
    return n;
}

static void check_nest(const nest *t, npu_dtype dtype)
{
    static double x[MAX_ELEMENTS], w[MAX_ELEMENTS], d[MAX_ELEMENTS], buffers[4][MAX_ELEMENTS];
    const void *in[3] = { buffers[0], buffers[1], buffers[2] };
    bool has_weights = t->f[0] > 0;
    npu_text text = npu_text_init(NULL);
    size_t n;
    npu_graph *g;
    npu_text_printf(&text, "graph main\n");
    nest_input(t, &text, dtype, "x", t->x, false, x, buffers[0]);
    if (has_weights) {
        nest_input(t, &text, dtype, "w", t->f, true, w, buffers[1]);
    }
    n = nest_input(t, &text, dtype, "d", t->y, false, d, buffers[has_weights ? 2 : 1]);
    npu_text_printf(&text, "y = %s\noutput y = y\n", t->op);
    g = parse(text.data);
    run(g, in, buffers[3], n * npu_dtype_bits(dtype) / 8);
    for (size_t i = 0; i < n; i++) {
        int64_t o[6], rest = (int64_t)i;
        for (int k = 6; k-- > 0; rest /= t->y[k]) {
            o[k] = rest % t->y[k];
        }
        double expected = nest_element(t, x, has_weights ? w : NULL, o, d[i]), got = get(dtype, buffers[3], i);
        if (got != expected) {
            fprintf(stderr, "%s %s [%zu]:", t->op, npu_dtype_name(dtype), i);
            NPU_CHECK_NEAR(got, expected, 0);
            break;
        }
    }
    npu_graph_destroy(g);
    npu_text_free(&text);
}

/* Every named op begins at what its destination holds. */
static void test_named_loops(void)
{
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F16, NPU_BF16, NPU_F64, NPU_I32 };
    NPU_ITEM("S4.17");
    for (size_t i = 0; i + 1 < sizeof nests / sizeof nests[0]; i++) {
        for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
            check_nest(&nests[i], dtypes[k]);
        }
    }
}

/* [m,k] [k,n] three ways, and with a batch, on top of a destination. */
static void test_matrix_loops(void)
{
    static const struct { const char *text; int batch, m, n, k; bool transposed; } rows[] = {
        { "input a : %s[7,6]\ninput b : %s[6,9]\ninput d : %s[7,9]\ny = linalg.matmul(a, b, d)\n", 1, 7, 9, 6,
          false },
        { "input a : %s[1,60]\ninput b : %s[60,9]\ninput d : %s[1,9]\ny = linalg.matmul(a, b, d)\n", 1, 1, 9, 60,
          false },
        { "input a : %s[40,33]\ninput b : %s[33,50]\ninput d : %s[40,50]\ny = linalg.matmul(a, b, d)\n", 1, 40, 50,
          33, false },
        { "input a : %s[7,6]\ninput b : %s[9,6]\ninput d : %s[7,9]\ny = linalg.matmul_transpose_b(a, b, d)\n", 1, 7,
          9, 6, true },
        { "input a : %s[3,7,6]\ninput b : %s[3,6,9]\ninput d : %s[3,7,9]\ny = linalg.batch_matmul(a, b, d)\n", 3, 7,
          9, 6, false },
        { "child mac scalar\n  input a : scalar %s[]\n  input b : scalar %s[]\n  input d : scalar %s[]\n"
            "  p = aten.mul.Tensor(a, b)\n"
          "  y = aten.add.Tensor(d, p)\n  output y = y\nend\ninput a : %s[3,7,6]\ninput b : %s[3,6,9]\n"
          "input d : %s[3,7,9]\n"
          "y = linalg.generic([a, b], [d], maps=['(b, m, n, k) -> (b, m, k)', '(b, m, n, k) -> (b, k, n)', "
          "'(b, m, n, k) -> (b, m, n)'], iterators=['parallel', 'parallel', 'parallel', "
          "'reduction'], body=graph 0)\n", 3, 7, 9, 6, false },
    };
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F16, NPU_F64, NPU_I32, NPU_I8 };
    static double buffers[4][MAX_ELEMENTS];
    NPU_ITEM("R4.10");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
            int m = rows[r].m, n = rows[r].n, kk = rows[r].k, sizes[3] = { m * kk, kk * n, m * n };
            const char *name = npu_dtype_name(dtypes[t]);
            const void *in[3] = { buffers[0], buffers[1], buffers[2] };
            char text[1600] = "graph main\n";
            npu_graph *g;
            snprintf(text + strlen(text), sizeof text - 64, rows[r].text, name, name, name, name, name, name);
            strcat(text, "output y = y\n");
            g = parse(text);
            for (int i = 0; i < 3; i++) {
                for (size_t j = 0; j < (size_t)(sizes[i] * rows[r].batch); j++) {
                    put(dtypes[t], buffers[i], j, number(j, (uint32_t)i));
                }
            }
            run(g, in, buffers[3], (size_t)(m * n * rows[r].batch) * npu_dtype_bits(dtypes[t]) / 8);
            for (int i = 0; i < m * n * rows[r].batch; i++) {
                int b = i / (m * n), row = i / n % m, col = i % n;
                double sum = number((size_t)i, 2);
                for (int k = 0; k < kk; k++) {
                    sum += number((size_t)((b * m + row) * kk + k), 0) *
                           number((size_t)(rows[r].transposed ? col * kk + k : (b * kk + k) * n + col), 1);
                }
                NPU_CHECK_NEAR(get(dtypes[t], buffers[3], (size_t)i),
                    dtypes[t] == NPU_I8 ? (double)(int8_t)(int)sum : sum, 0);
            }
            npu_graph_destroy(g);
        }
    }
}

/* Inputs first, then destinations; what the body yields is the result, whatever it is. */
static void test_body_order(void)
{
    npu_graph *g = parse(
        "graph main\nchild order scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n"
        "  input d : scalar f32[]\n"
        "  const half : scalar f32[] {0.5}\n  s = arith.subf(a, b)\n  m = arith.mulf(d, half)\n"
        "  y = arith.divf(s, m)\n"
        "  output y = y\nend\ninput a : f32[2,3]\ninput b : f32[3]\ninput d : f32[2,3]\n"
        "y = linalg.generic([a, b], [d], maps=['(i, j) -> (i, j)', '(i, j) -> (j)', '(i, j) -> (i, j)'], "
        "iterators=['parallel', 'parallel'], body=graph 0)\noutput y = y\n");
    static const float a[6] = { 5, 6, 7, 8, 9, 10 }, b[3] = { 1, 2, 3 }, d[6] = { 2, 4, 8, 2, 4, 8 };
    const void *in[3] = { a, b, d };
    float y[6];
    NPU_ITEM("S4.39");
    NPU_ITEM("S4.40");
    NPU_ITEM("S4.38");
    run(g, in, y, sizeof y);
    for (int i = 0; i < 6; i++) {
        NPU_CHECK_NEAR(y[i], (a[i] - b[i % 3]) / (0.5f * d[i]), 0);
    }
    npu_graph_destroy(g);
}

/* Bodies that yield an operand, a constant, the destination or one value twice; nests with constant, reversed and
   shifted indices, without parallel loops, and without iterations. */
static void test_odd_nests(void)
{
    static const struct { const char *text; double expected[6]; } rows[] = {
        { "child c scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  output y = a\nend\n"
            "input x : f32[2,3]\ninput d : f32[3,2]\n"
          "y = linalg.generic([x], [d], maps=['(i, j) -> (j, i)', '(i, j) -> (i, j)'], "
          "iterators=['parallel', 'parallel'], body=graph 0)\n",
          { 1, 4, 2, 5, 3, 6 } },
        { "child c scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  const k : scalar f32[] {7}\n"
            "  output y = k\nend\n"
          "input x : f32[2,3]\ninput d : f32[6]\ny = linalg.generic([x], [d], maps=['(i) -> (0, 1)', '(i) -> (i)'], "
          "iterators=['parallel'], body=graph 0)\n", { 7, 7, 7, 7, 7, 7 } },
        { "child c scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  output y = d\nend\n"
            "input x : f32[2,3]\ninput d : f32[6]\n"
          "y = linalg.generic([x], [d], maps=['(i) -> (0, 1)', '(i) -> (i)'], iterators=['parallel'], "
          "body=graph 0)\n",
          { 10, 20, 30, 40, 50, 60 } },
        { "child c scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n  input d : scalar f32[]\n"
            "  y = arith.addf(a, b)\n  output y = y\nend\n"
          "input x : f32[2,3]\ninput d : f32[6]\nz = tensor.collapse_shape(x, reassociation='[[0, 1]]')\n"
          "y = linalg.generic([z, x], [d], maps=['(i) -> (5 - i)', '(i) -> (1, 2)', "
          "'(i) -> (i)'], iterators=['parallel'], body=graph 0)\n",
          { 12, 11, 10, 9, 8, 7 } },
        { "child c scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  y = arith.subf(a, d)\n"
            "  output y = y\nend\ninput x : f32[2,3]\n"
          "input d : f32[1,6,1]\nz = tensor.expand_shape(x, reassociation='[[0], [1, 2]]', output_shape=[2, 1, 3])\n"
          "y = linalg.generic([z], [d], maps=['(i, k, j) -> (i, 0, j)', '(i, k, j) -> (0, k, 0)'], "
          "iterators=['reduction', 'parallel', 'reduction'], body=graph 0)\n",
          /* 6 - (5 - (4 - (3 - (2 - (1 - d))))) */ { 13, 23, 33, 43, 53, 63 } },
        { "child c scalar\n  input a : scalar f32[]\n  input w : scalar f32[]\n  input d : scalar f32[]\n"
            "  y = arith.addf(a, d)\n  output y = y\nend\n"
          "input x : f32[2,3]\ninput d : f32[6]\nz = tensor.collapse_shape(x, reassociation='[[0, 1]]')\n"
          "w = tensor.empty(size=[3], dtype=f32)\n"
          "p = tensor.pad(z, low=[1], high=[1], value=100)\n"
          "r = linalg.generic([p, w], [d], maps=['(i, k) -> (i + k)', '(i, k) -> (k)', '(i, k) -> (i)'], "
          "iterators=['parallel', 'reduction'], body=graph 0)\ny = tensor.collapse_shape(r, reassociation='[[0]]')\n",
          { 113, 26, 39, 52, 65, 171 } },
        { "child c scalar\n  input a : scalar f32[]\n  input d : scalar f32[]\n  y = arith.addf(a, d)\n"
            "  output y = y\nend\ninput x : f32[2,3]\n"
          "input d : f32[6]\nz = tensor.empty(size=[6, 0], dtype=f32)\n"
          "y = linalg.generic([z], [d], maps=['(i, k) -> (i, k)', '(i, k) -> (i)'], "
          "iterators=['parallel', 'reduction'], body=graph 0)\n",
          { 10, 20, 30, 40, 50, 60 } },
    };
    static const float x[6] = { 1, 2, 3, 4, 5, 6 }, d[6] = { 10, 20, 30, 40, 50, 60 };
    const void *in[2] = { x, d };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char text[1200];
        float y[6];
        npu_graph *g;
        snprintf(text, sizeof text, "graph main\n%soutput y = y\n", rows[r].text);
        g = parse(text);
        run(g, in, y, sizeof y);
        for (int i = 0; i < 6; i++) {
            NPU_CHECK_NEAR(y[i], rows[r].expected[i], 0);
        }
        npu_graph_destroy(g);
    }
}

/* Two results in one nest; the second destination is read after the first result was made. */
static void test_two_results(void)
{
    npu_graph *g = parse(
        "graph main\nchild both scalar\n  input a : scalar f32[]\n  input s : scalar f32[]\n"
        "  input m : scalar f32[]\n"
        "  t = arith.addf(s, a)\n  u = arith.maximumf(m, a)\n  v = arith.addf(u, s)\n  output s2 = t\n"
        "  output m2 = v\nend\n"
        "input x : f32[3,2]\ninput s : f32[3]\ninput m : f32[3]\n"
        "p, q = linalg.generic([x], [s, m], maps=['(i, j) -> (i, j)', '(i, j) -> (i)', '(i, j) -> (i)'], "
        "iterators=['parallel', 'reduction'], body=graph 0)\ny = aten.sub.Tensor(p, q, alpha=100)\noutput y = y\n");
    static const float x[6] = { 1, 2, 3, 1, -5, -6 }, s[3] = { 1, 2, 3 }, m[3] = { 0, 10, 0 };
    const void *in[3] = { x, s, m };
    float y[3];
    run(g, in, y, sizeof y);
    for (int i = 0; i < 3; i++) {
        float a = s[i], b = m[i];
        for (int j = 0; j < 2; j++) {
            b = (x[2 * i + j] > b ? x[2 * i + j] : b) + a;
            a += x[2 * i + j];
        }
        NPU_CHECK_NEAR(y[i], a - 100 * b, 0);
    }
    npu_graph_destroy(g);
}

/* Rows of 5000 elements: strips that end inside rows, loops that merge, and f16 that rounds at every step. */
static void test_long_strips(void)
{
    enum { ROWS = 3, COLS = 5000 };
    static uint16_t x[ROWS * COLS], b[ROWS], y[ROWS * COLS];
    const void *in[2] = { x, b };
    npu_graph *g = parse(
        "graph main\nchild c scalar\n  input a : scalar f16[]\n  input b : scalar f16[]\n"
        "  input d : scalar f16[]\n  s = arith.mulf(a, b)\n"
        "  y = arith.addf(s, a)\n  output y = y\nend\ninput x : f16[3,50,100]\ninput b : f16[3]\n"
        "d = tensor.empty(size=[3, 50, 100], dtype=f16)\n"
        "y = linalg.generic([x, b], [d], maps=['(n, i, j) -> (n, i, j)', '(n, i, j) "
        "-> (n)', '(n, i, j) -> (n, i, j)'], "
        "iterators=['parallel', 'parallel', 'parallel'], body=graph 0)\noutput y = y\n");
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] = npu_f32_to_f16((float)(i % 77) * 0.013f - 0.4f);
        b[i / COLS] = npu_f32_to_f16(0.3f + (float)(i / COLS));
    }
    run(g, in, y, sizeof y);
    for (int i = 0; i < ROWS * COLS; i++) {
        float s = npu_f16_to_f32(npu_f32_to_f16(npu_f16_to_f32(x[i]) * npu_f16_to_f32(b[i / COLS])));
        NPU_CHECK_EQ(y[i], npu_f32_to_f16(s + npu_f16_to_f32(x[i])));
    }
    npu_graph_destroy(g);
}

/* Few results of many elements: the order of the reductions is kept, so sums of floats are the same bits. */
static void test_folds(void)
{
    enum { ROWS = 40, COLS = 60 };
    static const struct { const char *body, *maps; } cases[] = {
        { "  p = arith.mulf(a, b)\n"
            "  y = arith.addf(d, p)\n", "'(i, j) -> (i, j)', '(i, j) -> (i, j)', '(i, j) -> (0)'" },
        { "  y = arith.addf(b, d)\n", "'(i, j) -> (i, j)', '(i, j) -> (39 - i, 59 - j)', '(i, j) -> (0)'" },
        { "  p = arith.addf(a, b)\n  y = arith.maximumf(p, d)\n", "'(i, j) -> (i, "
            "j)', '(i, j) -> (i, 0)', '(i, j) -> (0)'" },
        { "  y = arith.minimumf(d, a)\n", "'(i, j) -> (i, j)', '(i, j) -> (i, j)', '(i, j) -> (0)'" },
        { "  p = arith.mulf(d, a)\n"
            "  y = arith.addf(p, b)\n", "'(i, j) -> (i, j)', '(i, j) -> (i, j)', '(i, j) -> (0)'" },
    };
    static float x[ROWS * COLS], w[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        x[i] = (float)(i * 7919 % 1009) * 0.00173f - 0.9f;
        w[i] = (float)(i * 104729 % 997) * 0.00091f - 0.4f;
    }
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        static const float start[1] = { 0.25f };
        const void *in[3] = { x, w, start };
        char text[1000];
        float y = 0, expected = start[0];
        npu_graph *g;
        snprintf(text, sizeof text,
                 "graph main\nchild c scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n"
                 "  input d : scalar f32[]\n"
                 "%s  output y = y\nend\ninput x : f32[40,60]\ninput w : f32[40,60]\ninput d : f32[1]\n"
                 "y = linalg.generic([x, w], [d], maps=[%s], iterators=['reduction', 'reduction'], body=graph 0)\n"
                 "output y = y\n",
                 cases[k].body, cases[k].maps);
        g = parse(text);
        run(g, in, &y, sizeof y);
        for (int i = 0; i < ROWS * COLS; i++) {
            float p = x[i] * w[i], q = x[i] + w[i / COLS * COLS], r = expected * x[i];
            expected = k == 0   ? expected + p
                       : k == 1 ? w[ROWS * COLS - 1 - i] + expected
                       : k == 2 ? (q > expected ? q : expected)
                       : k == 3 ? (x[i] < expected ? x[i] : expected) : r + w[i];
        }
        NPU_CHECK_BYTES(&y, &expected, sizeof y);
        npu_graph_destroy(g);
    }
}

/* The same along the inner dim of many rows, in several dtypes. */
static void test_folds_of_rows(void)
{
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F64, NPU_F16, NPU_I32, NPU_U8 };
    static double in_data[MAX_ELEMENTS], out_data[64], zeros[64];
    const void *in[2] = { in_data, zeros };
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        const char *name = npu_dtype_name(dtypes[t]);
        char text[700];
        npu_graph *g;
        for (size_t i = 0; i < 20 * 70; i++) {
            put(dtypes[t], in_data, i, number(i, 0));
        }
        snprintf(text, sizeof text,
                 "graph main\nchild c scalar\n  input a : scalar %s[]\n  input d : scalar %s[]\n"
                 "  y = aten.add.Tensor(d, a)\n"
                 "  output y = y\nend\ninput x : %s[20,70]\ninput d : %s[20]\ny = linalg.generic([x], [d], "
                 "maps=['(i, j) -> (i, j)', '(i, j) -> (i)'], iterators=['parallel', 'reduction'], body=graph 0)\n"
                 "output y = y\n", name, name, name, name);
        g = parse(text);
        run(g, in, out_data, 20 * npu_dtype_bits(dtypes[t]) / 8);
        for (size_t i = 0; i < 20; i++) {
            double sum = 0;
            for (size_t j = 0; j < 70; j++) {
                sum += number(i * 70 + j, 0);
            }
            NPU_CHECK_NEAR(get(dtypes[t], out_data, i), dtypes[t] == NPU_U8 ? (double)(uint8_t)(int)sum : sum, 0);
        }
        npu_graph_destroy(g);
    }
}

static void test_register_ops(void)
{
    static const struct { const char *op; int32_t a, b, y; } rows[] = {
        { "divsi", -7, 2, -3 }, { "floordivsi", -7, 2, -4 }, { "ceildivsi", -7, 2, -3 }, { "ceildivsi", 7, 2, 4 },
        { "ceildivsi", -7, -2, 4 }, { "ceildivsi", 6, 3, 2 }, { "remsi", -7, 2, -1 }, { "maxsi", -7, 2, 2 },
          { "minsi", -7, 2, -7 },
        { "andi", 12, 10, 8 }, { "ori", 12, 10, 14 }, { "xori", 12, 10, 6 }, { "shli", 3, 2, 12 }, { "shrsi", -8, 1,
          -4 },
        { "addi", INT32_MAX, 1, INT32_MIN }, { "subi", 3, 5, -2 }, { "muli", 65536, 65536, 0 }
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const void *in[2] = { &rows[r].a, &rows[r].b };
        char text[600];
        int32_t y = 99;
        npu_graph *g;
        snprintf(text, sizeof text,
                 "graph main\nchild c scalar\n  input a : scalar i32[]\n  input b : scalar i32[]\n"
                 "  input d : scalar i32[]\n  y = arith.%s(a, b)\n"
                 "  output y = y\nend\ninput a : i32[]\ninput b : i32[]\nd = tensor.empty(size=[], dtype=i32)\n"
                 "y = linalg.generic([a, b], [d], maps=['() -> ()', '() -> ()', '() "
                 "-> ()'], iterators=[], body=graph 0)\noutput y = y\n",
                 rows[r].op);
        g = parse(text);
        run(g, in, &y, sizeof y);
        NPU_CHECK_EQ(y, rows[r].y);
        npu_graph_destroy(g);
    }
}

static void test_compare_and_select(void)
{
    static const struct { const char *op; float y[4]; } rows[] = {
        { "cmpf(a, b, predicate='olt')", { 1, 0, 0, 0 } }, { "cmpf(a, b, predicate='ole')", { 1, 1, 0, 0 } },
        { "cmpf(a, b, predicate='ogt')", { 0, 0, 1, 0 } }, { "cmpf(a, b, predicate='oge')", { 0, 1, 1, 0 } },
        { "cmpf(a, b, predicate='oeq')", { 0, 1, 0, 0 } }, { "cmpf(a, b, predicate='une')", { 1, 0, 1, 1 } }
    };
    static const float a[4] = { 1, 2, 3, NAN }, b[4] = { 2, 2, 2, 2 };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const void *in[2] = { a, b };
        char text[800];
        float y[4];
        npu_graph *g;
        snprintf(text, sizeof text,
                 "graph main\nchild c scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n"
                 "  input d : scalar f32[]\n"
                 "  const one : scalar f32[] {1}\n  const zero : scalar f32[] {0}\n  c = arith.%s\n"
                 "  y = arith.select(c, one, zero)\n"
                 "  output y = y\nend\ninput a : f32[4]\ninput b : f32[4]\nd = tensor.empty(size=[4], dtype=f32)\n"
                 "y = linalg.generic([a, b], [d], maps=['(i) -> (i)', '(i) -> (i)', "
                 "'(i) -> (i)'], iterators=['parallel'], body=graph 0)\n"
                 "output y = y\n", rows[r].op);
        g = parse(text);
        run(g, in, y, sizeof y);
        for (int i = 0; i < 4; i++) {
            NPU_CHECK_NEAR(y[i], rows[r].y[i], 0);
        }
        npu_graph_destroy(g);
    }
}

/* The rules of registers. */
static void test_register_rejections(void)
{
    static const struct { const char *op; npu_status status; } rows[] = {
        { "addf(f, f)", NPU_OK }, { "addf(k, k)", NPU_ERR_DTYPE }, { "addf(f, h)", NPU_ERR_DTYPE }, { "addi(f, f)",
          NPU_ERR_DTYPE },
        { "andi(t, t)", NPU_OK }, { "andi(f, f)", NPU_ERR_DTYPE }, { "maxsi(t, t)", NPU_ERR_DTYPE },
        { "cmpf(f, f, predicate='lt')", NPU_ERR_ATTRIBUTE }, { "cmpi(k, k, predicate='slt')", NPU_OK },
        { "cmpi(f, f, predicate='slt')", NPU_ERR_DTYPE }, { "select(t, f, f)", NPU_OK }, { "select(f, f, f)",
          NPU_ERR_DTYPE },
        { "select(t, f, h)", NPU_ERR_DTYPE }, { "extf(h, dtype=f32)", NPU_OK }, { "extf(f, dtype=f16)",
          NPU_ERR_DTYPE },
        { "truncf(f, dtype=f16)", NPU_OK }, { "truncf(h, dtype=f32)", NPU_ERR_DTYPE }, { "extsi(k, dtype=i64)",
          NPU_OK },
        { "extsi(u, dtype=i64)", NPU_ERR_DTYPE }, { "extui(t, dtype=i32)", NPU_OK }, { "extui(t, dtype=u8)", NPU_OK },
        { "trunci(k, dtype=i64)", NPU_ERR_DTYPE }, { "sitofp(k, dtype=i64)", NPU_ERR_DTYPE }, { "fptosi(f, "
            "dtype=u8)", NPU_ERR_DTYPE },
        { "uitofp(k, dtype=f32)", NPU_ERR_DTYPE }, { "fptoui(f, dtype=u8)", NPU_OK }
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        npu_status status;
        snprintf(text, sizeof text,
                 "graph main\nchild c scalar\n  input f : scalar f32[]\n  input h : scalar f16[]\n"
                 "  input k : scalar i32[]\n"
                 "  input u : scalar u8[]\n  input t : scalar bool[]\n  r = arith.%s\n  output r = r\nend\n",
                 rows[i].op);
        status = parse_status(text);
        NPU_CHECK_STATUS(status, rows[i].status);
        if (status != rows[i].status) {
            fprintf(stderr, "  %s\n", rows[i].op);
        }
    }
}

/* ---- identities ---- */

static void test_identity_table(void)
{
    static const struct { npu_kind kind; npu_dtype dtype; double value; } rows[] = {
        { NPU_ARITH_ADDF, NPU_F32, 0 }, { NPU_LINALG_CONV_2D_NCHW_FCHW, NPU_F16, 0 },
        { NPU_LINALG_POOLING_NCHW_SUM, NPU_I32, 0 }, { NPU_ARITH_MULF, NPU_F32, 1 },
        { NPU_ARITH_MULI, NPU_I8, 1 }, { NPU_LINALG_POOLING_NCHW_MAX, NPU_F32, -(double)INFINITY },
        { NPU_ARITH_MAXIMUMF, NPU_F16, -(double)INFINITY }, { NPU_ARITH_MAXIMUMF, NPU_BF16, -(double)INFINITY },
        { NPU_ARITH_MAXSI, NPU_I8, -128 }, { NPU_LINALG_POOLING_NCHW_MAX, NPU_I32, INT32_MIN },
        { NPU_ARITH_MAXSI, NPU_I64, (double)INT64_MIN }, { NPU_LINALG_MAX, NPU_U8, 0 },
        { NPU_ARITH_MINIMUMF, NPU_F32, (double)INFINITY }, { NPU_LINALG_MIN, NPU_U8, 255 },
        { NPU_ARITH_MINSI, NPU_I16, 32767 }
    };
    npu_scalar value;
    NPU_ITEM("S4.29");
    NPU_ITEM("S4.28");
    NPU_ITEM("F49");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        NPU_CHECK(npu_kind_identity(rows[i].kind, rows[i].dtype, &value));
        NPU_CHECK_NEAR(npu_scalar_value(value), rows[i].value, 0);
        NPU_CHECK_EQ(value.is_float, npu_dtype_is_float(rows[i].dtype));
    }
    NPU_CHECK(!npu_kind_identity(NPU_ARITH_SUBF, NPU_F32, &value));
    NPU_CHECK(!npu_kind_identity(NPU_ARITH_ADDF, NPU_BOOL, &value));
}

/* Borders and filled destinations of reducing ops hold the identity, or the graph is not valid. */
static void test_identity_is_checked(void)
{
    static const struct { const char *pad, *fill, *op; npu_status status; } rows[] = {
        { "-inf", "-inf", "pooling_nchw_max(p, f, kernel_size=[2, 2])", NPU_OK },
        { "0", "-inf", "pooling_nchw_max(p, f, kernel_size=[2, 2])", NPU_ERR_ATTRIBUTE },
        { "-inf", "0", "pooling_nchw_max(p, f, kernel_size=[2, 2])", NPU_ERR_ATTRIBUTE },
        { "0", "0", "pooling_nchw_sum(p, f, kernel_size=[2, 2])", NPU_OK },
        { "0.5", "0", "pooling_nchw_sum(p, f, kernel_size=[2, 2])", NPU_ERR_ATTRIBUTE },
        { "0", "nan", "pooling_nchw_sum(p, f, kernel_size=[2, 2])", NPU_ERR_ATTRIBUTE },
        { "0", "0", "conv_2d_nchw_fchw(p, w, f)", NPU_OK },
        { "1", "0", "conv_2d_nchw_fchw(p, w, f)", NPU_ERR_ATTRIBUTE },
    };
    NPU_ITEM("S4.30");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[600];
        npu_graph *g;
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32[1,1,2,2]\ninput w : f32[1,1,2,2]\n"
                 "p = tensor.pad(x, low=[0, 0, 1, 1], high=[0, 0, 1, 1], value=%s)\n"
                 "e = tensor.empty(size=[1, 1, 3, 3], dtype=f32)\nf = linalg.fill(%s, e)\ny = linalg.%s\n"
                 "output y = y\n",
                 rows[i].pad, rows[i].fill, rows[i].op);
        g = parse(text);
        NPU_CHECK_STATUS(npu_graph_validate(g, NULL, NULL), rows[i].status);
        npu_graph_destroy(g);
    }
}

static void count_violation(void *ctx, const npu_diag *diag)
{
    NPU_CHECK(diag->status != NPU_OK && diag->op == 4 && diag->message[0]);
    ++*(uint32_t *)ctx;
}

/* Every violation is reported, not the first alone; what the validator returns is the status of the first. */
static void test_all_violations(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[1,1,2,2]\n"
                         "p = tensor.pad(x, low=[0, 0, 1, 1], high=[0, 0, 1, 1], value=1)\n"
                         "e = tensor.empty(size=[1, 1, 3, 3], dtype=f32)\nf = linalg.fill(2, e)\n"
                         "y = linalg.pooling_nchw_max(p, f, kernel_size=[2, 2])\noutput y = y\n");
    uint32_t count = 0;
    NPU_ITEM("R0.17");
    NPU_CHECK_STATUS(npu_graph_validate(g, count_violation, &count), NPU_ERR_ATTRIBUTE);
    NPU_CHECK_EQ(count, 2);
    npu_graph_destroy(g);
}

/* tensor.empty, linalg.fill and the op share one buffer: the result is the destination. */
static void test_destination_is_in_place(void)
{
    npu_graph *g = parse(
        "graph main\ninput x : f32[1,4,34,34]\ninput w : f32[8,4,3,3]\n"
        "e = tensor.empty(size=[1, 8, 32, 32], dtype=f32)\n"
        "f = linalg.fill(0, e)\nc = linalg.conv_2d_nchw_fchw(x, w, f)\nr = aten.relu.default(c)\noutput y = r\n");
    static const char *const names[] = { "e", "f", "c" };
    rig r = rig_start(NULL, 0);
    uint64_t first = 0;
    NPU_ITEM("S4.16");
    NPU_ITEM("S4.13");
    NPU_ITEM("R4.15");
    npu_graph_destroy(r.graph);
    r.graph = g;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t offset = 0, size = 0;
        uint32_t from, to;
        NPU_CHECK_STATUS(npu_plan_value_memory(npu_program_plan(r.program), npu_graph_find(g, names[i]), 0, &offset,
            &size, &from, &to), NPU_OK);
        NPU_CHECK_EQ(size, 8 * 32 * 32 * sizeof(float));
        first = i ? first : offset;
        NPU_CHECK_EQ(offset, first);
    }
    rig_end(&r);
}

int main(void)
{
    NPU_RUN(test_map_text);
    NPU_RUN(test_map_dims);
    NPU_RUN(test_map_rejections);
    NPU_RUN(test_reassociation);
    NPU_RUN(test_shape_rejections);
    NPU_RUN(test_generic_rules);
    NPU_RUN(test_named_loops);
    NPU_RUN(test_matrix_loops);
    NPU_RUN(test_body_order);
    NPU_RUN(test_odd_nests);
    NPU_RUN(test_two_results);
    NPU_RUN(test_long_strips);
    NPU_RUN(test_folds);
    NPU_RUN(test_folds_of_rows);
    NPU_RUN(test_register_ops);
    NPU_RUN(test_compare_and_select);
    NPU_RUN(test_register_rejections);
    NPU_RUN(test_identity_table);
    NPU_RUN(test_identity_is_checked);
    NPU_RUN(test_all_violations);
    NPU_RUN(test_destination_is_in_place);
    return npu_test_done();
}
