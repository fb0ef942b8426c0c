/* Lowering to structured loops: what the passes make of layers and ATen ops, and that it computes the same. */
#include "rig.h"

static npu_graph *parse(const char *text)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag)) {
        fprintf(stderr, "line %d: %s\n%s\n", (int)diag.line, diag.message, text);
    }
    NPU_CHECK(g);
    return g;
}

static npu_graph *lower(const npu_graph *g, const char *pass)
{
    npu_pass_options options = { NULL, NULL, true, 0 };
    npu_graph *now = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_run_passes(&now, g, npu_conversion_pass(pass), 1, &options, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
    }
    NPU_CHECK(now);
    return now;
}

static const char *const gawee = "convert-gawee-to-linalg", *const aten = "convert-aten-to-linalg";

/* ---- running ---- */

enum { MAX_BYTES = 1 << 18, MAX_INPUTS = 8 };
static unsigned char inputs[MAX_INPUTS][MAX_BYTES], results[2][MAX_BYTES];

static double get(npu_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case NPU_F32: return (double)((const float *)data)[i];
    case NPU_F64: return ((const double *)data)[i];
    case NPU_F16: return (double)npu_f16_to_f32(((const uint16_t *)data)[i]);
    case NPU_BF16: return (double)npu_bf16_to_f32(((const uint16_t *)data)[i]);
    case NPU_I32: return ((const int32_t *)data)[i];
    case NPU_I64: return (double)((const int64_t *)data)[i];
    case NPU_BOOL: return ((const uint8_t *)data)[i];
    case NPU_U8: return ((const uint8_t *)data)[i];
    default: return ((const int8_t *)data)[i];
    }
}

static void put(npu_dtype dtype, void *data, size_t i, double x)
{
    switch (dtype) {
    case NPU_F32: ((float *)data)[i] = (float)x; break;
    case NPU_F64: ((double *)data)[i] = x; break;
    case NPU_F16: ((uint16_t *)data)[i] = npu_f32_to_f16((float)x); break;
    case NPU_BF16: ((uint16_t *)data)[i] = npu_f32_to_bf16((float)x); break;
    case NPU_I32: ((int32_t *)data)[i] = (int32_t)(x * 3); break;
    case NPU_I64: ((int64_t *)data)[i] = (int64_t)(x * 3); break;
    case NPU_BOOL: ((uint8_t *)data)[i] = x > 0; break;
    case NPU_U8: ((uint8_t *)data)[i] = x > 0 ? (uint8_t)(x * 3) : 0; break;
    default: ((int8_t *)data)[i] = (int8_t)(x * 3); break;
    }
}

/* Between -2 and 2, or all negative, or all positive. */
static void fill_inputs(const npu_graph *g, double low, double high)
{
    for (uint32_t k = 0; k < npu_graph_num_inputs(g); k++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, k));
        size_t n = 0, size = 0;
        npu_spec_len(spec, &n);
        npu_spec_size(spec, &size);
        NPU_CHECK(k < MAX_INPUTS && size <= MAX_BYTES);
        for (size_t i = 0; i < n; i++) {
            double u = (double)((i * 2654435761u + k * 40503u) % 4001u) / 4000.0;
            put((npu_dtype)spec->dtype, inputs[k], i, low + (high - low) * u);
        }
    }
}

static size_t run(const npu_graph *g, bool plain, void *out)
{
    npu_ref_desc desc = { 0 };
    npu_backend *cpu = NULL;
    const npu_backend *backend;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    size_t size = 0;
    desc.variant = plain ? "plain" : NULL;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
    backend = cpu;
    if (npu_exec_create_simple(&exec, g, &backend, 1, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
    }
    NPU_CHECK(exec);
    for (uint32_t i = 0; exec && i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        NPU_CHECK_STATUS(npu_test_input(exec, npu_value_name(g, npu_graph_input(g, i)), inputs[i], size), NPU_OK);
    }
    npu_spec_size(npu_value_spec(g, npu_graph_output(g, 0)), &size);
    NPU_CHECK(size <= MAX_BYTES);
    if (exec) {
        memset(out, 0xee, size);
        NPU_CHECK_STATUS(npu_exec_set_output(exec, npu_graph_output_name(g, 0), out, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    }
    npu_exec_destroy(exec);
    npu_ref_destroy(cpu);
    return size;
}

/* The outputs of two graphs agree, on all kernels. */
static void check_same(const npu_graph *expected, const npu_graph *got, double tolerance, const char *what)
{
    const npu_spec *spec = npu_value_spec(expected, npu_graph_output(expected, 0));
    npu_dtype dtype = (npu_dtype)spec->dtype;
    size_t n = 0;
    NPU_CHECK(npu_spec_equal(spec, npu_value_spec(got, npu_graph_output(got, 0))));
    npu_spec_len(spec, &n);
    run(expected, false, results[0]);
    for (int plain = 0; plain < 2; plain++) {
        run(got, plain, results[1]);
        for (size_t i = 0; i < n; i++) {
            double a = get(dtype, results[1], i), b = get(dtype, results[0], i);
            if (!(a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b)))) {
                fprintf(stderr, "%s, element %u%s:", what, (unsigned)i, plain ? ", plain" : "");
                NPU_CHECK_NEAR(a, b, tolerance);
                return;
            }
        }
    }
}

static uint32_t count_ops(const npu_graph *g, const char *name)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        npu_op op = { i };
        const npu_op_def *def = npu_op_definition(g, op);
        n += strcmp(def->name, name) == 0 || strcmp(def->space, name) == 0;
    }
    return n;
}

/* ---- ATen ---- */

typedef struct row {
    const char *x, *op; /* inputs and the op; %s is the dtype */
} row;

static double tolerance_of(npu_dtype dtype)
{
    return dtype == NPU_F32 ? 2e-5 : dtype == NPU_F64 ? 1e-10 : dtype == NPU_F16 ? 4e-3 : dtype == NPU_BF16 ? 3e-2 : 0;
}

/* What is made prints, and parses back to the same text. */
static void check_round_trip(const npu_graph *g)
{
    npu_text a = npu_text_init(NULL), b = npu_text_init(NULL);
    npu_graph *again;
    npu_graph_print(g, &a);
    again = parse(a.data);
    npu_graph_print(again, &b);
    NPU_CHECK_STR(b.data, a.data);
    npu_graph_destroy(again);
    npu_text_free(&a);
    npu_text_free(&b);
}

static void check_row(const row *r, npu_dtype dtype)
{
    char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text, "graph main\n");
    npu_graph *g, *now;
    for (const char *p = r->x; *p; p++) {
        at += (size_t)(*p == '%' ? snprintf(text + at, sizeof text - at, "%s", npu_dtype_name(dtype))
                                 : snprintf(text + at, sizeof text - at, "%c", *p));
    }
    snprintf(text + at, sizeof text - at, "y = aten.%s\noutput y = y\n", r->op);
    g = parse(text);
    now = lower(g, aten);
    fill_inputs(g, -2, 2);
    if (now) {
        NPU_CHECK_EQ(count_ops(now, "aten"), 0);
        NPU_CHECK_STATUS(npu_graph_validate(now, NULL, NULL), NPU_OK);
        check_round_trip(now);
        check_same(g, now, tolerance_of(dtype), r->op);
    }
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

static const row rows[] = {
    /* borders of the model's own, which are no identity: data */
    { "input x : %[1,2,5,5]\np = aten.constant_pad_nd.default(x, [1, 1, 0, 2])\n", "max_pool2d(p, [3, 3], [2, 2])" },
    { "input x : %[1,2,5,5]\np = aten.constant_pad_nd.default(x, [1, 1, 0, 2], -2)\n",
      "max_pool2d(p, [3, 3], [2, 2], [1, 0])" },
    { "input x : %[1,2,5,5]\np = aten.constant_pad_nd.default(x, [1, 1], 1)\n", "avg_pool2d(p, [2, 3])" },
    { "input x : %[1,2,5,5]\ninput w : %[3,2,3,3]\np = aten.constant_pad_nd.default(x, [1, 1, 1, 1], 1)\n",
      "conv2d(p, w, none)" },
    { "input x : %[2,3,4]\ninput w : %[2,6,3]\np = aten.constant_pad_nd.default(x, [1, 1], -2)\n", "bmm(p, w)" },
    { "input x : %[2,3,9,8]\ninput w : %[4,3,3,2]\ninput b : %[4]\n", "conv2d(x, w, "
        "b, stride=[2, 1], padding=[1, 1], dilation=[1, 2])" },
    { "input x : %[2,3,9,8]\ninput w : %[4,3,1,1]\n", "conv2d(x, w, none)" },
    { "input x : %[3,9,8]\ninput w : %[4,3,3,3]\ninput b : %[4]\n", "conv2d(x, w, b, padding=[1, 1])" },
    { "input x : %[2,6,9,8]\ninput w : %[4,3,3,3]\ninput b : %[4]\n", "conv2d(x, w, b, padding=[1, 0], groups=2)" },
    { "input x : %[1,6,9,8]\ninput w : %[6,1,3,3]\n", "conv2d(x, w, none, stride=[2, 2], padding=[1, 1], groups=6)" },
    { "input x : %[2,3,9,8]\ninput w : %[4,3,2,2]\n", "conv2d.padding(x, w, none, padding='same')" },
    { "input x : %[2,3,9,8]\ninput w : %[4,3,2,2]\n", "conv2d.padding(x, w, none, padding='valid')" },
    { "input x : %[2,3,12]\ninput w : %[4,3,3]\ninput b : %[4]\n", "conv1d(x, w, b, "
        "stride=[2], padding=[2], dilation=[2])" },
    { "input x : %[2,4,12]\ninput w : %[4,2,3]\ninput b : %[4]\n", "conv1d(x, w, b, groups=2)" },
    { "input x : %[1,2,5,6,5]\ninput w : %[3,2,2,3,2]\ninput b : %[3]\n", "conv3d(x, "
        "w, b, padding=[1, 0, 1], stride=[1, 2, 1])" },
    { "input x : %[1,4,5,6,5]\ninput w : %[4,2,2,3,2]\ninput b : %[4]\n", "conv3d(x, "
        "w, b, padding=[1, 0, 1], groups=2)" },
    { "input x : %[2,4,5,6]\ninput w : %[4,3,3,3]\ninput b : %[3]\n", "conv_transpose2d.input(x, "
        "w, b, stride=[2, 3], padding=[1, 0], output_padding=[1, 2])" },
    { "input x : %[2,4,5,6]\ninput w : %[4,3,3,3]\n", "conv_transpose2d.input(x, w, none)" },
    { "input x : %[2,4,5,6]\n"
        "input w : %[4,3,3,2]\n", "conv_transpose2d.input(x, w, none, padding=[2, 1], dilation=[2, 1])" },
    { "input x : %[2,4,5,6]\ninput w : %[4,3,2,2]\n", "conv_transpose2d.input(x, w, none, padding=[2, 2])" },
    { "input x : %[2,4,5,6]\ninput w : %[4,3,3,3]\ninput b : %[6]\n", "conv_transpose2d.input(x, "
        "w, b, stride=[2, 2], groups=2)" },
    { "input x : %[2,4,7]\ninput w : %[4,3,3]\n", "conv_transpose1d(x, w, none, stride=[2])" },
    { "input x : %[1,2,3,4,3]\ninput w : %[2,3,2,2,2]\n", "conv_transpose3d.input(x, w, none, stride=[2, 1, 2])" },
    { "input x : %[2,3,9,8]\n"
        "input w : %[4,3,3,2]\n", "convolution(x, w, none, [1, 1], [1, 0], [1, 1], false, [0, 0], 1)" },
    { "input x : %[2,4,5,6]\n"
        "input w : %[4,3,3,2]\n", "convolution(x, w, none, [2, 1], [1, 0], [1, 1], true, [0, 0], 1)" },
    { "input x : %[2,3,9,8]\n", "max_pool2d(x, [3, 2], [2, 2], [1, 1])" },
    { "input x : %[2,3,9,8]\n", "max_pool2d(x, [3, 2], [2, 2], [1, 1], [1, 2], true)" },
    { "input x : %[3,7,8]\n", "max_pool2d(x, [2, 2])" },
    { "input x : %[2,3,11]\n", "max_pool1d(x, [3], [2], [1], [1], true)" },
    { "input x : %[1,2,5,6,5]\n", "max_pool3d(x, [2, 3, 2], [2, 1, 2], [1, 1, 0])" },
    { "input x : %[2,3,9,8]\n", "avg_pool2d(x, [3, 2], [2, 2])" },
    { "input x : %[2,3,9,8]\n", "avg_pool2d(x, [3, 2], [2, 2], [1, 1])" },
    { "input x : %[2,3,9,8]\n", "avg_pool2d(x, [3, 2], [2, 2], [1, 1], false, false)" },
    { "input x : %[2,3,8,7]\n", "avg_pool2d(x, [3, 2], [2, 2], [1, 1], true, true)" },
    { "input x : %[2,3,8,7]\n", "avg_pool2d(x, [3, 3], [2, 2], [1, 1], true, false)" },
    { "input x : %[2,3,8,7]\n", "avg_pool2d(x, [3, 3], [2, 2], [1, 1], true, false, 5)" },
    { "input x : %[2,3,11]\n", "avg_pool1d(x, [3], [2], [1], true)" },
    { "input x : %[1,2,5,6,5]\n", "avg_pool3d(x, [2, 3, 2], [2, 1, 2], [1, 1, 0])" },
    { "input x : %[2,3,8,6]\n", "adaptive_avg_pool2d(x, [1, 1])" },
    { "input x : %[2,3,8,6]\n", "adaptive_avg_pool2d(x, [4, 3])" },
    { "input x : %[2,3,7,10]\n", "adaptive_avg_pool2d(x, [3, 4])" },
    { "input x : %[3,7,10]\n", "adaptive_avg_pool2d(x, [9, 4])" },
    { "input x : %[2,3,7]\n", "adaptive_avg_pool1d(x, [3])" },
    { "input x : %[1,2,4,5,6]\n", "adaptive_avg_pool3d(x, [2, 3, 3])" },
    { "input x : %[5,7]\ninput w : %[4,7]\ninput b : %[4]\n", "linear(x, w, b)" },
    { "input x : %[2,5,7]\ninput w : %[4,7]\n", "linear(x, w)" },
    { "input x : %[7]\ninput w : %[4,7]\ninput b : %[4]\n", "linear(x, w, b)" },
    { "input x : %[5,7]\ninput w : %[7,4]\n", "mm(x, w)" },
    { "input x : %[3,5,7]\ninput w : %[3,7,4]\n", "bmm(x, w)" },
    { "input x : %[3,5,7]\ninput w : %[7,4]\n", "matmul(x, w)" },
    { "input x : %[2,1,5,7]\ninput w : %[3,7,4]\n", "matmul(x, w)" },
    { "input x : %[1,5,7]\ninput w : %[3,7,4]\n", "matmul(x, w)" },
    { "input x : %[7]\ninput w : %[3,7,4]\n", "matmul(x, w)" },
    { "input x : %[3,5,7]\ninput w : %[7]\n", "matmul(x, w)" },
    { "input x : %[7]\ninput w : %[7]\n", "matmul(x, w)" },
    { "input c : %[5,4]\ninput x : %[5,7]\ninput w : %[7,4]\n", "addmm(c, x, w)" },
    { "input c : %[4]\ninput x : %[5,7]\ninput w : %[7,4]\n", "addmm(c, x, w)" },
    { "input c : %[5,1]\ninput x : %[5,7]\ninput w : %[7,4]\n", "addmm(c, x, w, beta=2, alpha=3)" },
    { "input x : %[2,3,4]\n", "flatten(x, 1)" }, { "input x : %[2,3,4]\n", "flatten(x, 0, 1)" }, { "input "
        "x : %[]\n", "flatten(x)" },
    { "input x : %[2,6,4]\n", "reshape(x, [4, 3, -1])" }, { "input x : %[2,6,4]\n", "view(x, [2, 2, 3, 4])" },
    { "input x : %[2,6,4]\n", "reshape(x, [48])" }, { "input x : %[2,6,4]\n", "reshape(x, [2, 6, 4, 1, 1])" },
    { "input x : %[1,1]\n", "reshape(x, [])" }, { "input x : %[]\n", "reshape(x, [1, 1, 1])" },
    { "input x : %[1,2,1,3,1]\n", "squeeze(x)" }, { "input x : %[2,3]\n", "unsqueeze(x, 1)" }, { "input "
        "x : %[2,3]\n", "unsqueeze(x, -1)" },
    { "input x : %[2,3,4]\n", "permute(x, [2, 0, -2])" }, { "input x : %[2,3,4]\n", "transpose.int(x, 0, -1)" },
      { "input x : %[3,4]\n", "t(x)" },
    { "input x : %[4,9,2]\n", "slice.Tensor(x, 1, 2, 8, 3)" }, { "input x : %[4,9]\n", "slice.Tensor(x, 0, -3)" },
    { "input x : %[4,9]\n", "slice.Tensor(x, 1, 0, 9223372036854775807, 4)" },
    { "input x : %[4,9,2]\n", "select.int(x, 1, -2)" },
    { "input x : %[9]\n", "select.int(x, 0, 3)" }, { "input x : %[4,9]\n", "narrow(x, -1, -4, 3)" },
    { "input x : %[4,3,2]\n", "flip(x, [0, -1])" }, { "input x : %[4]\n", "flip(x, [])" },
    { "input a : %[2,3]\ninput b : %[2,1]\n", "cat([a, b, a], 1)" },
    { "input a : %[2,3]\ninput b : %[1,3]\n", "cat([a, b], -2)" },
    { "input a : %[2,3]\ninput b : %[2,3]\n", "stack([a, b], -1)" },
    { "input a : %[]\ninput b : %[]\n", "stack([a, b])" },
    { "input a : %[2,3]\ninput b : bool[2,1]\n", "cat([b, a], 1)" },
    { "input x : %[2,7]\na, b, c = aten.split.Tensor(x, 3, 1)\n", "cat([c, a, b], 1)" },
    { "input x : %[7,2]\na, b = aten.split_with_sizes(x, [2, 5])\n", "cat([b, a])" },
    { "input x : %[2,7]\na, b = aten.chunk(x, 2, -1)\n", "cat([b, a], 1)" },
    { "input x : %[3,2]\na, b, c = aten.unbind.int(x)\n", "stack([c, a], 1)" },
    { "input a : %[2,3]\n", "repeat(a, [2, 1, 3])" }, { "input a : %[2,3]\n", "repeat(a, [1, 1])" },
    { "input a : %[2,3]\n", "tile(a, [2])" }, { "input a : %[2]\n", "tile(a, [2, 3, 2])" },
    { "input x : %[3,1]\n", "expand(x, [2, 3, 4])" }, { "input x : %[3,4]\n", "constant_pad_nd(x, [1, 2, 0, 1], 2)" },
    { "input x : bool[3,4]\n", "constant_pad_nd(x, [1, 2, 0, 1], 2)" }, /* as a truth value */
    { "input a : %[2,3,4]\ninput b : %[2,3,4]\n", "add.Tensor(a, b)" }, { "input a : %[2,3,4]\ninput b : %[3,1]\n",
      "add.Tensor(a, b)" },
    { "input a : %[2,3,4]\ninput b : %[3,1]\n", "sub.Tensor(a, b, alpha=2)" }, { "input a : %[4]\n"
        "input b : %[2,3,4]\n", "mul.Tensor(a, b)" },
    { "input a : %[2,3,4]\n", "add.Tensor(a, 2)" }, { "input a : %[2,3,4]\ninput b : %[]\n", "maximum(a, b)" },
    { "input a : %[2,3,4]\ninput b : %[2,1,4]\n", "minimum(a, b)" }, { "input a : %[2,3,4]\n", "relu(a)" },
      { "input a : %[5]\n", "clamp(a, -1, 1)" },
    { "input a : %[2,3,4]\ninput b : %[2,1,4]\n", "lt.Tensor(a, b)" }, { "input a : %[2,3,4]\ninput b : %[4]\n",
      "where.self(lt, a, b)" },
    { "input a : %[2,3,4]\n", "sum(a)" }, { "input a : %[2,3,4]\n", "sum.dim_IntList(a, [1])" },
    { "input a : %[2,3,4]\n", "sum.dim_IntList(a, [0, -1], true)" }, { "input a : %[2,3,4]\n", "amax(a, [1])" },
    { "input a : %[2,3,4]\n", "amin(a, [0, 2], true)" }, { "input a : %[2,3,4]\n", "amax(a)" }, { "input a : %[]\n",
      "amax(a)" },
};

/* Only of floats. */
static const row float_rows[] = {
    { "input x : %[2,3,4,5]\n", "upsample_nearest2d(x, [8, 15])" },
    { "input x : %[1,2,3]\n", "upsample_nearest1d(x, [3])" },
    { "input x : %[2,1,4,5]\n", "upsample_nearest2d.vec(x, none, [2.0, 3.0])" },
    { "input x : %[1,2,2,3,2]\n", "upsample_nearest3d(x, [4, 3, 6])" },
    { "input a : %[2,3,4]\n", "mean(a)" }, { "input a : %[2,3,4]\n", "mean.dim(a, [1, 2])" }, { "input "
        "a : %[2,3,4]\n", "mean.dim(a, [0], true)" },
    { "input a : %[2,3,4]\ninput b : %[4]\n", "div.Tensor(a, b)" }, { "input a : %[2,3,4]\n", "mul.Tensor(a, 0.5)" },
    { "input a : %[2,3,4]\n", "exp(a)" }, { "input a : %[2,3,4]\n", "gelu(a)" }, { "input a : %[2,3,4]\n", "gelu(a, "
        "approximate='tanh')" },
    { "input a : %[2,3,4]\n", "sigmoid(a)" }, { "input a : %[2,3,4]\n", "silu(a)" }, { "input a : %[2,3,4]\n",
      "tanh(a)" },
    { "input a : %[2,3,4]\n", "leaky_relu(a, 0.1)" }, { "input a : %[2,3,4]\n", "hardswish(a)" }, { "input "
        "a : %[2,3,4]\n", "elu(a)" },
    { "input a : %[2,3,4]\n", "softmax.int(a, 1)" }, { "input a : %[2,3,4]\n", "softmax.int(a, -1)" }, { "input "
        "a : %[3,50]\n", "log_softmax.int(a, -1)" },
    { "input x : %[2,3,4,2]\ninput w : %[3]\ninput b : %[3]\ninput m : %[3]\ninput v : %[3]\n"
        "vp = aten.mul.Tensor(v, v)\n",
      "batch_norm(x, w, b, m, vp, false, 0.1, 0.001, false)" },
    { "input x : %[2,3,4,2]\ninput b : %[3]\ninput m : %[3]\ninput v : %[3]\nvp = aten.mul.Tensor(v, v)\n",
      "batch_norm(x, none, b, m, vp, false, 0.1, 0.001, false)" },
    { "input x : %[2,3,4]\ninput w : %[3,4]\ninput b : %[3,4]\n", "layer_norm(x, [3, 4], w, b)" },
    { "input x : %[2,3,4]\ninput w : %[4]\n", "layer_norm(x, [4], w)" }, { "input x : %[2,3,4]\n", "layer_norm(x, "
        "[4])" },
};

static bool is_float_row(const row *r)
{
    return strstr(r->op, "pool") || strstr(r->op, "conv");
}

static void test_aten(void)
{
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F16, NPU_BF16, NPU_F64, NPU_I32, NPU_I64 };
    NPU_ITEM("R4.5");
    NPU_ITEM("R4.6");
    NPU_ITEM("R4.8");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
            if ((k < 4 || !is_float_row(&rows[i])) && !strstr(rows[i].op, "lt,")) {
                check_row(&rows[i], dtypes[k]);
            }
        }
    }
    for (size_t i = 0; i < sizeof float_rows / sizeof float_rows[0]; i++) {
        for (size_t k = 0; k < 4; k++) {
            check_row(&float_rows[i], dtypes[k]);
        }
    }
}

/* ---- random convolutions ---- */

typedef struct conv_case {
    uint32_t taps;
    bool transposed, batched, bias;
    int64_t groups, x[5], w[5], stride[3], padding[3], dilation[3], extra[3];
} conv_case;

static int64_t between(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(npu_test_random(state) % (uint64_t)(high - low + 1));
}

/* Sizes for which the result has an element at least. */
static conv_case random_conv(uint64_t *state)
{
    conv_case c = { 0 };
    int64_t in, out;
    c.taps = (uint32_t)between(state, 1, 3);
    c.transposed = between(state, 0, 2) > 0, c.batched = between(state, 0, 3) > 0, c.bias = between(state, 0, 1) > 0;
    c.groups = between(state, 1, c.taps == 3 ? 2 : 3), in = between(state, 1, 2), out = between(state, 1, 2);
    c.x[0] = c.batched ? between(state, 1, 2) : 1, c.x[1] = c.groups * in;
    c.w[0] = c.transposed ? c.groups * in : c.groups * out, c.w[1] = c.transposed ? out : in;
    for (uint32_t i = 0; i < c.taps; i++) {
        int64_t reach, last, apart;
        c.w[2 + i] = between(state, 1, 3), c.stride[i] = between(state, 1, 3), c.dilation[i] = between(state, 1, 3);
        apart = c.stride[i] > c.dilation[i] ? c.stride[i] : c.dilation[i];
        c.extra[i] = c.transposed ? between(state, 0, apart - 1) : 0;
        reach = c.dilation[i] * (c.w[2 + i] - 1);
        c.x[2 + i] = (c.transposed ? 0 : reach) + between(state, 1, 6 - c.taps);
        last = c.transposed ? (c.x[2 + i] - 1) * c.stride[i] + reach + c.extra[i] : 8;
        c.padding[i] = between(state, 0, last / 2 < 4 ? last / 2 : 4);
    }
    return c;
}

static void print_ints(npu_text *text, const char *before, const int64_t *list, uint32_t n)
{
    npu_text_printf(text, "%s", before);
    for (uint32_t i = 0; i < n; i++) {
        npu_text_printf(text, "%s%d", i ? "," : "[", (int)list[i]);
    }
    npu_text_printf(text, "]");
}

static npu_graph *conv_graph(const conv_case *c, npu_dtype dtype, bool general, npu_text *text)
{
    static const char *const kinds[2][3] = { { "conv1d", "conv2d", "conv3d" },
        { "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input" } };
    const char *name = npu_dtype_name(dtype);
    npu_text_printf(text, "graph main\ninput x : %s", name);
    print_ints(text, "", c->x + !c->batched, c->taps + 1 + c->batched);
    npu_text_printf(text, "\ninput w : %s", name);
    print_ints(text, "", c->w, c->taps + 2);
    if (c->bias) {
        npu_text_printf(text, "\ninput b : %s[%d]", name, (int)(c->transposed ? c->w[1] * c->groups : c->w[0]));
    }
    npu_text_printf(text, "\ny = aten.%s(x, w, %s", general ? "convolution" : kinds[c->transposed][c->taps - 1],
                    c->bias ? "b" : "none");
    print_ints(text, ", stride=", c->stride, c->taps);
    print_ints(text, ", padding=", c->padding, c->taps);
    print_ints(text, ", dilation=", c->dilation, c->taps);
    if (general) {
        npu_text_printf(text, ", transposed=%s", c->transposed ? "true" : "false");
    }
    if (general || c->transposed) {
        print_ints(text, ", output_padding=", c->extra, c->taps);
    }
    npu_text_printf(text, ", groups=%d)\noutput y = y\n", (int)c->groups);
    return parse(text->data);
}

/* Multiples of 1/32 from -2 to 2, 0 and both ends included: the sums of f32 are exact in any order, so that results are
   the same bit for bit, unless something is left out, read twice, or rounded twice. */
static void fill_exact(const npu_graph *g, uint64_t *state)
{
    for (uint32_t k = 0; k < npu_graph_num_inputs(g); k++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, k));
        size_t n = 0;
        npu_spec_len(spec, &n);
        NPU_CHECK(k < MAX_INPUTS && n * sizeof(double) <= MAX_BYTES);
        for (size_t i = 0; i < n; i++) {
            put((npu_dtype)spec->dtype, inputs[k], i, (double)between(state, -64, 64) / 32);
        }
    }
}

static void check_exact(npu_graph *g, uint64_t *state, const char *what)
{
    npu_graph *now = g ? lower(g, aten) : NULL;
    if (now) {
        fill_exact(g, state);
        NPU_CHECK_EQ(count_ops(now, "aten"), 0);
        check_same(g, now, 0, what);
    }
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

static void test_random_conv(void)
{
    static const npu_dtype dtypes[] = { NPU_F32, NPU_F64, NPU_F16, NPU_BF16 };
    uint64_t state = npu_test_seed();
    NPU_ITEM("R4.6");
    for (int i = 0; i < 400; i++) {
        conv_case c = random_conv(&state);
        npu_text text = npu_text_init(NULL);
        npu_graph *g = conv_graph(&c, dtypes[i % 4], i % 3 == 0, &text);
        check_exact(g, &state, text.data);
        npu_text_free(&text);
    }
}

/* Of half floats, too, the sum with the bias is rounded once. */
static void test_linear_bias(void)
{
    static const char *const graphs[] = {
        "graph main\ninput x : bf16[5,29]\ninput w : bf16[7,29]\ninput b : bf16[7]\n"
        "y = aten.linear(x, w, b)\noutput y = y\n",
        "graph main\ninput x : f16[2,3,29]\ninput w : f16[7,29]\ninput b : f16[7]\n"
        "y = aten.linear(x, w, b)\noutput y = y\n",
    };
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        check_exact(parse(graphs[i]), &state, graphs[i]);
    }
}

/* What a pass makes it makes in the order of its lines: no compiler's order of evaluation shows in the text. */
static void test_order(void)
{
    static const char *const kinds[] = { "tensor.collapse_shape", "linalg.fill", "linalg.matmul_transpose_b",
                                         "tensor.expand_shape" };
    npu_graph *g = parse("graph main\ninput x : f32[2,3,4]\ninput w : f32[5,4]\ny = aten.linear(x, w)\noutput y = y\n");
    npu_graph *now = lower(g, aten);
    npu_text text = npu_text_init(NULL);
    const char *at;
    NPU_ITEM("F37");
    npu_graph_print(now, &text);
    at = text.data;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && at; i++) {
        at = strstr(at, kinds[i]);
    }
    NPU_CHECK(at);
    if (!at) {
        fprintf(stderr, "%s", text.data);
    }
    npu_text_free(&text);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* ---- the table of the document ---- */

#define CONV_TEXT "graph main\ninput x : f32[1,3,8,8]\ninput w : f32[4,3,3,3]\ninput b : f32[4]\n"
#define IDENTITY "'(d0, d1, d2, d3) -> (d0, d1, d2, d3)'"
#define PARALLEL4 "iterators=['parallel', 'parallel', 'parallel', 'parallel']"

static void check_text(const npu_graph *g, const char *expected)
{
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_graph_print(g, &text), NPU_OK);
    NPU_CHECK_STR(text.data, expected);
    npu_text_free(&text);
}

static void check_lowering(const char *before, const char *after)
{
    npu_graph *g = parse(before), *now = lower(g, gawee);
    if (now) {
        check_text(now, after);
    }
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* Border, destination, identity, convolution, bias: in this order, and nothing else. */
static void test_conv(void)
{
    NPU_ITEM("S4.1");
    NPU_ITEM("S4.14");
    NPU_ITEM("S4.25");
    check_lowering(
        CONV_TEXT "y = gawee.conv(x, w, b, strides=[2, 1], padding=[1, 2], dilation=[1, 2])\noutput y = y\n",
        "npu_ir 1\ngraph main\nchild add_f32 scalar\n  input in0 : scalar f32[]\n  input in1 : scalar f32[]\n"
        "  input out : scalar f32[]\n  %4 = arith.addf(lhs=in0, rhs=in1) : scalar f32[]\n  output yield = %4\nend\n"
        "input x : f32[1,3,8,8]\ninput w : f32[4,3,3,3]\ninput b : f32[4]\n"
        "%4 = tensor.pad(source=x, low=[0, 0, 1, 2], high=[0, 0, 1, 2]) : f32[1,3,10,12]\n"
        "%5 = tensor.empty(size=[1, 4, 4, 8], dtype=f32) : f32[1,4,4,8]\n"
        "%6 = linalg.fill(value=0.0, outs=%5) : f32[1,4,4,8]\n"
        "%7 = linalg.conv_2d_nchw_fchw(input=%4, filter=w, outs=%6, strides=[2, 1], "
        "dilations=[1, 2]) : f32[1,4,4,8]\n"
        "%8 = tensor.empty(size=[1, 4, 4, 8], dtype=f32) : f32[1,4,4,8]\n"
        "y = linalg.generic(ins=[%7, b], outs=[%8], maps=[" IDENTITY ", '(d0, d1, "
        "d2, d3) -> (d1)', " IDENTITY "], " PARALLEL4
        ", body=graph 0) : f32[1,4,4,8]\noutput y = y\n");
}

/* Bias of one dim under a result of four. */
static void test_conv_bias_map(void)
{
    npu_graph *g = parse(CONV_TEXT "y = gawee.conv(x, w, b)\noutput y = y\n"), *now = lower(g, gawee);
    npu_op op = npu_value_producer(now, npu_graph_output(now, 0), NULL);
    npu_op_storage storage = { 0 };
    npu_op_info info;
    npu_affine_map map;
    uint32_t len;
    const char *text;
    NPU_ITEM("S4.31");
    NPU_ITEM("S4.32");
    NPU_ITEM("S4.18");
    NPU_CHECK_STATUS(npu_op_describe(now, op, &info, &storage), NPU_OK);
    NPU_CHECK_EQ(info.in[0]->rank, 4);
    NPU_CHECK_EQ(info.in[1]->rank, 1);
    for (uint32_t i = 0; i < 3; i++) {
        text = npu_op_str_at(&info, "maps", i, &len);
        NPU_CHECK_STATUS(npu_affine_map_parse(&map, text, len, NULL), NPU_OK);
        NPU_CHECK_EQ(map.num_dims, 4);
        NPU_CHECK_EQ(map.num_results, i == 1 ? 1 : 4);
        NPU_CHECK_EQ(npu_affine_expr_dim(&map.results[0]), i == 1);
    }
    NPU_CHECK_EQ(count_ops(now, "tensor.pad"), 0);
    NPU_CHECK_EQ(count_ops(now, "linalg.conv_2d_nchw_fchw"), 1);
    npu_op_storage_free(&storage);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* A border only where padding is not 0; [padH, padW], on both sides, around H and W alone. */
static void test_conv_padding(void)
{
    static const struct { int h, w; const char *border; } cases[] = {
        { 0, 0, NULL }, { 1, 0, "low=[0, 0, 1, 0], high=[0, 0, 1, 0]) : f32[1,3,10,8]" },
        { 0, 2, "low=[0, 0, 0, 2], high=[0, 0, 0, 2]) : f32[1,3,8,12]" }, { 3, 1, "low=[0, "
            "0, 3, 1], high=[0, 0, 3, 1]) : f32[1,3,14,10]" }
    };
    NPU_ITEM("S4.20");
    NPU_ITEM("S4.21");
    NPU_ITEM("S4.22");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        npu_graph *g, *now;
        npu_text printed = npu_text_init(NULL);
        snprintf(text, sizeof text, CONV_TEXT "y = gawee.conv(x, w, b, padding=[%d, %d])\noutput y = y\n",
            cases[i].h, cases[i].w);
        g = parse(text);
        now = lower(g, gawee);
        npu_graph_print(now, &printed);
        NPU_CHECK_EQ(count_ops(now, "tensor.pad"), cases[i].border != NULL);
        NPU_CHECK(!cases[i].border || strstr(printed.data, cases[i].border));
        npu_text_free(&printed);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* The numbers: zeros around the input, the first number of padding belongs to H. */
static void test_conv_padding_numbers(void)
{
    npu_graph *g = parse(CONV_TEXT "y = gawee.conv(x, w, b, padding=[2, 0])\noutput y = y\n"), *now = lower(g, gawee);
    npu_graph *same = parse(CONV_TEXT "y = aten.conv2d(x, w, b, padding=[2, 0])\noutput y = y\n");
    NPU_ITEM("S4.19");
    NPU_ITEM("S4.23");
    NPU_ITEM("R4.3");
    fill_inputs(g, -2, 2);
    check_same(same, now, 1e-5, "conv");
    npu_graph_destroy(same);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

static void test_relu_and_add(void)
{
    NPU_ITEM("S4.2");
    NPU_ITEM("S4.3");
    check_lowering("graph main\ninput x : f32[2,3]\nr = gawee.relu(x)\ny = gawee.add(r, x)\noutput y = y\n",
                   "npu_ir 1\ngraph main\nchild relu_f32 scalar\n  input in0 : scalar f32[]\n"
                   "  input out : scalar f32[]\n"
                   "  const %3 : scalar f32[] {0.0}\n  %4 = arith.maximumf(lhs=in0, rhs=%3) : scalar f32[]\n"
                   "  output yield = %4\nend\n"
                   "input x : f32[2,3]\n%2 = tensor.empty(size=[2, 3], dtype=f32) : f32[2,3]\n"
                   "r = linalg.generic(ins=[x], outs=[%2], maps=['(d0, d1) -> (d0, d1)', '(d0, d1) -> (d0, d1)'], "
                   "iterators=['parallel', 'parallel'], body=graph 0) : f32[2,3]\n"
                   "%4 = tensor.empty(size=[2, 3], dtype=f32) : f32[2,3]\n"
                   "y = linalg.add(lhs=r, rhs=x, outs=%4) : f32[2,3]\noutput y = y\n");
}

static void test_max_pool(void)
{
    NPU_ITEM("S4.4");
    NPU_ITEM("S4.15");
    check_lowering(
        "graph main\ninput x : f16[1,4,6,6]\n"
        "y = gawee.max_pool(x, kernelSize=[3, 3], strides=[2, 2], padding=[1, 1])\noutput y = y\n",
        "npu_ir 1\ngraph main\ninput x : f16[1,4,6,6]\n"
        "%2 = tensor.pad(source=x, low=[0, 0, 1, 1], high=[0, 0, 1, 1], value=-inf) : f16[1,4,8,8]\n"
        "%3 = tensor.empty(size=[1, 4, 3, 3], dtype=f16) : f16[1,4,3,3]\n"
        "%4 = linalg.fill(value=-inf, outs=%3) : f16[1,4,3,3]\n"
        "y = linalg.pooling_nchw_max(input=%2, outs=%4, kernel_size=[3, 3], strides=[2, 2]) : f16[1,4,3,3]\n"
        "output y = y\n");
}

/* All inputs negative: a border of 0 would win every window at the edge, every border element must be -inf. */
static void test_max_pool_of_negatives(void)
{
    static const char *const dtypes[] = { "f32", "f16", "bf16" };
    NPU_ITEM("S4.26");
    NPU_ITEM("S4.27");
    NPU_ITEM("S4.24");
    for (int i = 0; i < 3; i++) {
        char text[300];
        npu_graph *g, *now, *same, *wrong;
        size_t n, differ = 0;
        snprintf(text, sizeof text, "graph main\ninput x : %s[1,2,5,4]\n"
            "y = gawee.max_pool(x, kernelSize=[3, 3], strides=[2, 1], padding=[1, 1])\n"
                 "output y = y\n", dtypes[i]);
        g = parse(text);
        now = lower(g, gawee);
        snprintf(text, sizeof text, "graph main\ninput x : %s[1,2,5,4]\n"
            "y = aten.max_pool2d(x, [3, 3], [2, 1], [1, 1])\noutput y = y\n", dtypes[i]);
        same = parse(text);
        snprintf(text, sizeof text, "graph main\ninput x : %s[1,2,5,4]\n"
            "p = tensor.pad(x, low=[0, 0, 1, 1], high=[0, 0, 1, 1], value=0)\n"
                 "y = aten.max_pool2d(p, [3, 3], [2, 1])\noutput y = y\n", dtypes[i]);
        wrong = parse(text);
        fill_inputs(g, -3, -1);
        check_same(same, now, 0, "max_pool");
        n = run(wrong, false, results[1]);
        run(now, false, results[0]);
        for (size_t k = 0; k < n; k++) {
            differ += results[0][k] != results[1][k];
        }
        NPU_CHECK(differ > 0); /* the border was at work: zeros give something else */
        npu_graph_destroy(wrong);
        npu_graph_destroy(same);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

static void test_adaptive_pool(void)
{
    NPU_ITEM("S4.5");
    NPU_ITEM("S4.46");
    check_lowering(
        "graph main\ninput x : f32[1,4,6,9]\ny = gawee.ad_avg_pool(x, outputSize=[2, 3])\noutput y = y\n",
        "npu_ir 1\ngraph main\nchild div_9_f32 scalar\n  input in0 : scalar f32[]\n  input out : scalar f32[]\n"
        "  const %3 : scalar f32[] {9.0}\n  %4 = arith.divf(lhs=in0, rhs=%3) : scalar f32[]\n  output yield = %4\n"
        "end\n"
        "input x : f32[1,4,6,9]\n%2 = tensor.empty(size=[1, 4, 2, 3], dtype=f32) : f32[1,4,2,3]\n"
        "%3 = linalg.fill(value=0.0, outs=%2) : f32[1,4,2,3]\n"
        "%4 = linalg.pooling_nchw_sum(input=x, outs=%3, kernel_size=[3, 3], strides=[3, 3]) : f32[1,4,2,3]\n"
        "%5 = tensor.empty(size=[1, 4, 2, 3], dtype=f32) : f32[1,4,2,3]\n"
        "y = linalg.generic(ins=[%4], outs=[%5], maps=[" IDENTITY ", " IDENTITY "], "
        "" PARALLEL4 ", body=graph 0) : f32[1,4,2,3]\n"
        "output y = y\n");
}

/* Windows of several sizes, whole images, and a divisor of their elements. */
static void test_adaptive_pool_numbers(void)
{
    static const char *const sizes[] = { "[1, 1]", "[3, 3]", "[4, 2]", "[5, 7]" };
    NPU_ITEM("R4.4");
    for (int i = 0; i < 4; i++) {
        char text[300];
        npu_graph *g, *now, *same;
        snprintf(text, sizeof text, "graph main\ninput x : f32[2,3,6,7]\ny = gawee.ad_avg_pool(x, outputSize=%s)\n"
            "output y = y\n", sizes[i]);
        g = parse(text);
        now = lower(g, gawee);
        snprintf(text, sizeof text, "graph main\ninput x : f32[2,3,6,7]\ny = aten.adaptive_avg_pool2d(x, %s)\n"
            "output y = y\n", sizes[i]);
        same = parse(text);
        fill_inputs(g, -2, 2);
        check_same(same, now, 1e-5, sizes[i]);
        npu_graph_destroy(same);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

static void test_flatten(void)
{
    static const struct { const char *x; int start, end; const char *result; } cases[] = {
        { "1,512,1,1", 1, -1, "'[[0], [1, 2, 3]]') : f32[1,512]" }, { "2,3,4,5", 1, 2, "'[[0], "
            "[1, 2], [3]]') : f32[2,12,5]" },
        { "2,3,4,5", 0, -1, "'[[0, 1, 2, 3]]') : f32[120]" }, { "2,3,4,5", -2, -1, "'[[0], "
            "[1], [2, 3]]') : f32[2,3,20]" },
        { "2,3,4,5", -4, -3, "'[[0, 1], [2], [3]]') : f32[6,4,5]" }
    };
    NPU_ITEM("S4.42");
    NPU_ITEM("S4.43");
    NPU_ITEM("S4.44");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        npu_graph *g, *now;
        npu_text printed = npu_text_init(NULL);
        snprintf(text, sizeof text, "graph main\ninput x : f32[%s]\ny = gawee.flatten(x, startDim=%d, endDim=%d)\n"
            "output y = y\n", cases[i].x,
                 cases[i].start, cases[i].end);
        g = parse(text);
        now = lower(g, gawee);
        npu_graph_print(now, &printed);
        NPU_CHECK_EQ(npu_graph_num_ops(now), 1);
        if (!strstr(printed.data, cases[i].result)) {
            NPU_CHECK_STR(printed.data, cases[i].result);
        }
        npu_text_free(&printed);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* The collapsed value has the bytes of its operand, at the same place. */
static void test_flatten_is_a_view(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[2,3,4]\nr = gawee.relu(x)\nf = gawee.flatten(r)\n"
        "y = gawee.relu(f)\noutput y = y\n");
    rig r = rig_start(NULL, 0);
    uint64_t at[2], size[2];
    uint32_t first, last;
    NPU_ITEM("S4.6");
    NPU_ITEM("S4.45");
    npu_graph_destroy(r.graph);
    r.graph = lower(g, gawee);
    NPU_CHECK_EQ(count_ops(r.graph, "tensor.collapse_shape"), 1);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    for (int i = 0; i < 2; i++) {
        NPU_CHECK_STATUS(npu_plan_value_memory(npu_program_plan(r.program), npu_graph_find(r.graph, i ? "f" : "r"),
            0, &at[i], &size[i],
                                               &first, &last), NPU_OK);
    }
    NPU_CHECK_EQ(at[0], at[1]);
    NPU_CHECK_EQ(size[0], size[1]);
    rig_end(&r);
    npu_graph_destroy(g);
}

static void test_linear(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[3,4]\ninput w : f32[5,4]\ninput b : f32[5]\n"
        "y = gawee.linear(x, w, b)\noutput y = y\n");
    npu_graph *same = parse("graph main\ninput x : f32[3,4]\ninput w : f32[5,4]\ninput b : f32[5]\n"
        "y = aten.linear(x, w, b)\noutput y = y\n");
    npu_graph *now = lower(g, gawee);
    NPU_ITEM("S4.7");
    NPU_ITEM("S4.37");
    NPU_ITEM("S4.47");
    check_text(now,
               "npu_ir 1\ngraph main\nchild add_f32 scalar\n  input in0 : scalar f32[]\n  input in1 : scalar f32[]\n"
               "  input out : scalar f32[]\n  %4 = arith.addf(lhs=in0, rhs=in1) : scalar f32[]\n"
               "  output yield = %4\nend\n"
               "input x : f32[3,4]\ninput w : f32[5,4]\ninput b : f32[5]\n"
               "%4 = tensor.empty(size=[3, 5], dtype=f32) : f32[3,5]\n"
               "%5 = linalg.fill(value=0.0, outs=%4) : f32[3,5]\n"
               "%6 = linalg.matmul_transpose_b(lhs=x, rhs=w, outs=%5) : f32[3,5]\n"
               "%7 = tensor.empty(size=[3, 5], dtype=f32) : f32[3,5]\n"
               "y = linalg.generic(ins=[%6, b], outs=[%7], maps=['(d0, d1) -> (d0, "
               "d1)', '(d0, d1) -> (d1)', '(d0, d1) -> (d0, d1)'], "
               "iterators=['parallel', 'parallel'], body=graph 0) : f32[3,5]\noutput y = y\n");
    fill_inputs(g, -2, 2);
    check_same(same, now, 1e-5, "linear");
    npu_graph_destroy(now);
    npu_graph_destroy(same);
    npu_graph_destroy(g);
}

/* gawee ops beside what computes the same in ATen. */
static const struct { const char *x, *gawee, *aten; } gawee_cases[] = {
    { "input a : f32[2,3,7,6]\n", "average_pool(a, kernelSize=[3, 2], strides=[2, 1], padding=[1, 1])",
      "avg_pool2d(a, [3, 2], [2, 1], [1, 1])" },
    { "input a : f32[2,3,7,6]\n", "average_pool(a, kernelSize=[3, 2], padding=[1, "
        "1], ceilMode=true, countIncludePad=false)",
      "avg_pool2d(a, [3, 2], [], [1, 1], true, false)" },
    { "input a : f32[2,3,7,6]\n", "max_pool(a, kernelSize=[3, 2], dilation=[2, 1], ceilMode=true)",
      "max_pool2d(a, [3, 2], [], [0, 0], [2, 1], true)" },
    { "input a : f32[2,3,7,6]\n", "global_average_pool(a)", "adaptive_avg_pool2d(a, [1, 1])" },
    { "input a : f32[2,4,7,6]\ninput w : f32[6,2,3,3]\n", "conv(a, w, groups=2)", "conv2d(a, "
        "w, none, [1, 1], [0, 0], [1, 1], 2)" },
    { "input a : f32[2,3]\ninput b : f32[3]\n", "sub(a, b)", "sub.Tensor(a, b)" },
    { "input a : f32[2,3]\ninput b : f32[2,1]\n", "mul(a, b)", "mul.Tensor(a, b)" },
    { "input a : f32[2,3]\ninput b : f32[2,3]\n", "div(a, b)", "div.Tensor(a, b)" },
    { "input a : f32[2,3,4]\ninput b : f32[4,5]\n", "matmul(a, b)", "matmul(a, b)" },
    { "input a : f32[2,3,4]\n", "reduce_mean(a, axes=[1])", "mean.dim(a, [1], true)" },
    { "input a : f32[2,3,4]\n", "reduce_sum(a, axes=[0, -1], keepDims=false)", "sum.dim_IntList(a, [0, -1])" },
    { "input a : f32[2,3,4]\n", "transpose(a, perm=[2, 0, 1])", "permute(a, [2, 0, 1])" },
    { "input a : f32[2,1,4]\n", "squeeze(a, axes=[1])", "squeeze.dim(a, 1)" },
    { "input a : f32[2,3,4]\n", "softmax(a, axis=1)", "softmax.int(a, 1)" }, { "input a : f32[2,3,4]\n",
      "tanh(a)", "tanh(a)" },
    { "input a : f32[2,3,4]\n", "erf(a)", "erf(a)" }, { "input a : f32[2,3,4]\n", "sqrt(a)", "sqrt(a)" },
    { "input x : f32[2,3,4,2]\ninput w : f32[3]\ninput b : f32[3]\ninput m : f32[3]\ninput v : f32[3]\n",
      "batch_norm(x, w, b, m, v, eps=5)", "batch_norm(x, w, b, m, v, false, 0.1, 5, false)" },
    { "input x : f32[2,3,4,2]\ninput w : f32[3]\ninput b : f32[3]\ninput m : f32[3]\ninput v : f32[3]\n",
      "batch_norm(x, w, b, m, v, affine=false, eps=5)", "batch_norm(x, none, none, m, v, false, 0.1, 5, false)" },
    { "input a : i32[2,3]\ninput b : i32[3]\n", "add(a, b)", "add.Tensor(a, b)" },
    { "input a : i32[2,3]\n", "relu(a)", "relu(a)" },
    { "input a : f32[2,3]\ninput b : f32[2,1]\n", "cat([a, b], axis=-1)", "cat([a, b], 1)" },
    { "input a : f32[2,3,4]\n", "reshape(a, [6, -1])", "reshape(a, [6, -1])" },
    { "input a : f32[2,3]\n", "unsqueeze(a, axes=[-1, 0])", "reshape(a, [1, 2, 3, 1])" },
    { "input a : f32[2,3,4]\n", "shape(a, start=1)", "arange.start_step(3, 5, 1)" },
    { "input a : f32[2,3]\n", "sigmoid(a)", "sigmoid(a)" },
    { "input a : f32[2,3]\n", "hard_sigmoid(a, alpha=0.16666666666666666)", "hardsigmoid(a)" },
    { "input a : f16[2,3]\n", "hard_swish(a)", "hardswish(a)" },
    { "input a : f32[2,3]\n", "leaky_relu(a, alpha=0.3)", "leaky_relu(a, 0.3)" },
    { "input a : f32[2,3]\n", "gelu(a)", "gelu(a)" },
    { "input a : i32[5,3]\ninput b : i32[3]\n", "equal(a, b)", "eq.Tensor(a, b)" },
    { "input c : bool[2,3]\ninput a : f32[2,3]\ninput b : f32[3]\n", "where(c, a, b)", "where.self(c, a, b)" },
    { "input a : f32[2,3]\ninput b : f32[2,1]\n", "max([a, b, a])", "maximum(a, b)" },
    { "input a : i32[2,3]\ninput b : i32[3]\n", "min([a, b])", "minimum(a, b)" },
    { "input a : f32[3,1]\n", "expand(a, [2, 3, 4])", "expand(a, [2, 3, 4])" },
    { "input a : f32[2,4,3]\nconst i : i64[2,2] {0, -1, 3, -4}\n", "gather(a, i, axis=1)",
      "index.Tensor(a, [none, i])" },
    { "input a : i32[4]\nconst i : i32[3] {-2, 0, 3}\nj = aten.to.dtype(i, i64)\n", "gather(a, i)",
      "index.Tensor(a, [j])" },
    { "input a : f32[3,4]\nconst i : i64[2,2] {0, 3, 1, 1}\n", "gather_elements(a, i, axis=-1)",
      "gather(a, 1, i)" },
    { "", "range(1, 10, 3)", "arange.start_step(1, 10, 3)" },
    { "", "range(1.0, 0.0, -0.25)", "arange.start_step(1.0, 0.0, -0.25)" },
    { "input a : f32[1,2,3,2]\n", "resize(a, [1.0, 1.0, 2.0, 3.0])", "upsample_nearest2d(a, [6, 6])" },
    { "input a : f32[4,9]\n", "slice(a, [-3], [9223372036854775807], [1], [2])", "slice.Tensor(a, 1, -3, 99, 2)" },
    { "input a : f32[4,9]\n", "slice(a, [-1], [-9], [0], [-1])", "flip(a, [0])" },
    { "input a : f32[5,4]\nconst i : i64[2] {3, 1}\nb = aten.slice.Tensor(a, 1, 1, 3)\n",
      "slice(a, [3, 1], [0, 3], steps=[-2, 1])", "index.Tensor(b, [i])" },
    { "input a : f32[2,3]\n", "pad(a, [1, 0, 0, 2], 5)", "constant_pad_nd(a, [0, 2, 1, 0], 5)" },
    { "input a : f32[2,3]\n", "tile(a, [2, 3])", "repeat(a, [2, 3])" },
    { "input a : f32[2,3]\n", "cast(a, toType=f16)", "to.dtype(a, f16)" },
    { "input a : f32[2,3]\n", "cast(a, toType=bool)", "to.dtype(a, bool)" },
    { "input a : bool[2,3]\n", "cast(a, toType=f32)", "to.dtype(a, f32)" },
    { "const a : f32[3] {0, 2.75, 255}\n", "cast(a, toType=u8)", "to.dtype(a, u8)" },
    { "input a : bool[2,3]\ninput b : bool[3]\n", "equal(a, b)", "eq.Tensor(a, b)" },
    { "input a : bool[4]\nconst i : i64[2] {1, -1}\n", "gather(a, i)", "index.Tensor(a, [i])" },
};

/* Every gawee op computes what its ATen op does. */
static void test_gawee_numbers(void)
{
    NPU_ITEM("R4.2");
    NPU_ITEM("R4.9");
    NPU_ITEM("R4.11");
    for (size_t i = 0; i < sizeof gawee_cases / sizeof gawee_cases[0]; i++) {
        char text[600];
        npu_graph *g, *now, *same;
        snprintf(text, sizeof text, "graph main\n%sy = gawee.%s\noutput y = y\n", gawee_cases[i].x, gawee_cases[i].gawee);
        g = parse(text);
        now = lower(g, gawee);
        snprintf(text, sizeof text, "graph main\n%sy = aten.%s\noutput y = y\n", gawee_cases[i].x, gawee_cases[i].aten);
        same = parse(text);
        fill_inputs(g, -2, 2);
        if (now) {
            NPU_CHECK_EQ(count_ops(now, "gawee") + count_ops(now, "aten"), 0);
            check_same(same, now, 1e-5, gawee_cases[i].gawee);
        }
        npu_graph_destroy(same);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* Ops of several results, one result after the other; the second half of x is not finite or comes twice. */
static void test_gawee_results(void)
{
    static const char data[] = "{1, 5, 5, -2, nan, 3, inf, nan, -inf, 0, 5, inf}";
    static const struct { const char *dtype, *gawee, *aten, *names; } cases[] = {
        { "f32", "p, q = gawee.topk(x, k=4)\n", "p, q = aten.topk(x, 4)\n", "pq" },
        { "f16", "p, q = gawee.topk(x, k=2, axis=0)\n", "p, q = aten.topk(x, 2, 0)\n", "pq" },
        { "f32", "p, q = gawee.split(x, splitSizes=[2, 4], axis=-1)\n",
          "p, q = aten.split_with_sizes(x, [2, 4], 1)\n", "pq" },
        { "i32", "p, q = gawee.topk(x, k=6)\n", "p, q = aten.topk(x, 6)\n", "pq" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (const char *name = cases[i].names; *name; name++) {
            bool whole = cases[i].dtype[0] == 'i';
            const char *numbers = whole ? "{1, 5, 5, -2, 5, 3, 7, 7, 0, 0, 5, 7}" : data;
            char text[400];
            npu_graph *g, *same, *now;
            snprintf(text, sizeof text, "graph main\nconst x : %s[2,6] %s\n%soutput y = %c\n", cases[i].dtype, numbers,
                     cases[i].gawee, *name);
            g = parse(text);
            now = lower(g, gawee);
            snprintf(text, sizeof text, "graph main\nconst x : %s[2,6] %s\n%soutput y = %c\n", cases[i].dtype, numbers,
                     cases[i].aten, *name);
            same = parse(text);
            if (now) {
                NPU_CHECK_EQ(count_ops(now, "gawee") + count_ops(now, "aten"), 0);
                check_same(same, now, 0, cases[i].gawee);
            }
            npu_graph_destroy(same);
            npu_graph_destroy(now);
            npu_graph_destroy(g);
        }
    }
}

/* What is refused where it is built, and what has a type but no loops: the message says what. */
static void test_gawee_limits(void)
{
    static const struct { const char *call; npu_status status; const char *words; } cases[] = {
        { "unsqueeze(x, axes=[0, 0])", NPU_ERR_AXIS, "twice" }, { "unsqueeze(x, axes=[4])", NPU_ERR_AXIS, NULL },
        { "squeeze(x, axes=[5])", NPU_ERR_AXIS, NULL }, { "matmul(x, x)", NPU_ERR_SHAPE, NULL },
        { "max([])", NPU_ERR_ARITY, NULL }, { "max([x, i])", NPU_ERR_DTYPE, "one dtype" },
        { "min([x, x4])", NPU_ERR_SHAPE, NULL }, { "gather(x, x)", NPU_ERR_DTYPE, "i32 or i64" },
        { "gather(x, i, axis=2)", NPU_ERR_AXIS, NULL }, { "resize(x, [1.0])", NPU_ERR_RANK, NULL },
        { "resize(x, [0.1, 1.0])", NPU_ERR_ATTRIBUTE, "0.2 elements" },
        { "resize(x, [-1.0, 1.0])", NPU_ERR_ATTRIBUTE, NULL },
        { "slice(x, [0], [1, 2])", NPU_ERR_ATTRIBUTE, "ends" },
        { "slice(x, [0], [1], [0, 1])", NPU_ERR_ATTRIBUTE, "axes" },
        { "slice(x, [0], [1], steps=[0])", NPU_ERR_ATTRIBUTE, "steps" },
        { "slice(x, [0, 0], [1, 1], [1, -1])", NPU_ERR_AXIS, NULL },
        { "slice(x, [0, 0, 0], [1, 1, 1])", NPU_ERR_RANK, NULL }, { "pad(x, [1, 1])", NPU_ERR_RANK, NULL },
        { "pad(x, [0, 0, 0, -1])", NPU_ERR_ATTRIBUTE, NULL }, { "pad(i, [1, 1], 0.5)", NPU_ERR_ATTRIBUTE, NULL },
        { "pad(x, [0, 0, 0, 1], mode='reflect')", NPU_ERR_ATTRIBUTE, "constant" },
        { "tile(x, [2])", NPU_ERR_RANK, NULL },
        { "range(0, 5, 0)", NPU_ERR_ATTRIBUTE, NULL }, { "reshape(x, [4])", NPU_ERR_SHAPE, NULL },
        { "resize(x, [1.5, 1.0])", NPU_ERR_NOT_LEGAL, "scale 0 is 1.5" },
        { "resize(x, [2.0, 1.0], mode='linear')", NPU_ERR_NOT_LEGAL, "nearest" },
        { "tile(deep, [2, 2, 2, 2, 2])", NPU_ERR_NOT_LEGAL, "10 loops" },
        { "slice(x, [0], [0])", NPU_ERR_NOT_LEGAL, "size" }, { "add(x, h)", NPU_ERR_NOT_LEGAL, NULL },
    };
    NPU_ITEM("R4.7");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        npu_graph *g = NULL, *now = NULL;
        npu_diag diag = { 0 };
        npu_status status;
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32[2,3]\ninput x4 : f32[2,4]\ninput i : i64[2]\ninput h : f16[2,3]\n"
                 "input deep : f32[2,2,2,2,2]\ny = gawee.%s\noutput y = y\n", cases[i].call);
        status = npu_graph_parse(&g, text, strlen(text), NULL, &diag);
        if (status == NPU_OK) {
            status = npu_graph_run_passes(&now, g, npu_conversion_pass(gawee), 1, NULL, &diag);
        }
        NPU_CHECK_STATUS(status, cases[i].status);
        if (cases[i].words && !strstr(diag.message, cases[i].words)) {
            NPU_CHECK_STR(diag.message, cases[i].words);
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* ---- the pass ---- */

static void test_pass(void)
{
    static const char *const names[] = { "linalg", "arith", "tensor" };
    const npu_pass *pass = npu_conversion_pass("convert-gawee-to-linalg");
    NPU_ITEM("S4.48");
    NPU_ITEM("S4.49");
    NPU_CHECK(pass && npu_conversion_pass(aten) && !npu_conversion_pass("convert-nothing"));
    NPU_CHECK(!npu_conversion_pass(NULL));
    NPU_CHECK_STR(pass->name, "convert-gawee-to-linalg");
    for (int i = 0; i < 3; i++) {
        NPU_CHECK_STR(pass->namespaces[i], names[i]);
    }
    NPU_CHECK(!pass->namespaces[3]);
}

/* One pattern per op; it answers whether it matched. */
static void test_one_pattern_per_op(void)
{
    npu_pattern patterns[64];
    uint32_t n = npu_lowering_patterns(NPU_NS_GAWEE, patterns, 64), seen = 0;
    npu_registry *registry = NULL;
    npu_graph *g = parse("graph main\ninput x : f32[2,3]\nr = gawee.relu(x)\noutput y = r\n"), *now = NULL;
    npu_pattern_stats stats = { 0, 0, NULL };
    NPU_ITEM("S4.9");
    NPU_CHECK(n <= 64);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        uint32_t of_this = 0;
        for (uint32_t k = 0; k < n; k++) {
            of_this += patterns[k].root == def->kind;
        }
        NPU_CHECK_EQ(of_this, strcmp(def->space, "gawee") == 0);
        seen += of_this;
    }
    NPU_CHECK_EQ(seen, n);
    NPU_CHECK_EQ(npu_lowering_patterns(NPU_NS_GAWEE, NULL, 0), n);
    NPU_CHECK_EQ(npu_lowering_patterns(NPU_NS_AICF, NULL, 0), 0);
    NPU_CHECK_STATUS(npu_graph_apply_patterns(&now, g, patterns, n, NULL, &stats, NULL), NPU_OK);
    NPU_CHECK_EQ(stats.num_rewrites, 1);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* A pattern of the user among them: neg goes, its operand takes its place. */
static npu_status drop(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    (void)ctx;
    npu_rewrite_replace(rw, npu_op_result(from, op, 0), npu_rewrite_operand(rw, op, 0));
    return NPU_OK;
}

/* A layer reads its operand through the adaptor, as it is after what came before was converted (here x, and the
   result of another layer), and its attributes from the old op. */
static void test_adaptor(void)
{
    npu_pattern patterns[65];
    npu_legality_rule rules[] = { { "gawee", NPU_ILLEGAL, NULL, NULL }, { "aten.neg.default", NPU_ILLEGAL, NULL,
        NULL } };
    npu_conversion_target target = { NULL, 2, false };
    npu_graph *g = parse("graph main\ninput x : f32[1,2,3,4]\nn = aten.neg(x)\n"
        "f = gawee.flatten(n, startDim=2, endDim=3)\n"
                         "t = gawee.flatten(f, startDim=0, endDim=1)\noutput y = t\n");
    npu_graph *now = NULL;
    uint32_t n = npu_lowering_patterns(NPU_NS_GAWEE, patterns, 64);
    NPU_ITEM("S4.10");
    NPU_ITEM("S4.11");
    NPU_ITEM("S4.12");
    memset(&patterns[n], 0, sizeof patterns[n]);
    patterns[n].name = "drop";
    patterns[n].root = NPU_ATEN_NEG;
    patterns[n].rewrite = drop;
    target.rules = rules;
    NPU_CHECK_STATUS(npu_graph_convert(&now, g, &target, patterns, n + 1, NULL, NULL, NULL), NPU_OK);
    check_text(now, "npu_ir 1\ngraph main\ninput x : f32[1,2,3,4]\n"
                    "f = tensor.collapse_shape(src=x, reassociation='[[0], [1], [2, 3]]') : f32[1,2,12]\n"
                    "t = tensor.collapse_shape(src=f, reassociation='[[0, 1], [2]]') : f32[2,12]\noutput y = t\n");
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* What is left of gawee fails the pass and names the op; the graph is as it was. */
static void test_illegal_ops_fail(void)
{
    static const char *const text = "npu_ir 1\ngraph main\nsymbol N 1 8\ninput x : f32[N,3]\n"
        "r = gawee.relu(input=x) : f32[N,3]\noutput y = r\n";
    npu_graph *g = parse(text), *now = g;
    npu_diag diag = { 0 };
    NPU_ITEM("S4.51");
    NPU_ITEM("S4.50");
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, npu_conversion_pass(gawee), 1, NULL, &diag), NPU_ERR_NOT_LEGAL);
    NPU_CHECK(!now);
    NPU_CHECK_STR(diag.message, "pass convert-gawee-to-linalg: text:5: gawee.relu (r) must "
        "be converted, but no pattern matches: "
                                "a size or a dtype is not one that loops take");
    NPU_CHECK_EQ(diag.op, 1);
    check_text(g, text);
    npu_graph_destroy(g);
}

/* An index map holds numbers below 2^31: what needs larger ones stays as it is. 32 bits cannot have such a tensor. */
static void test_large_dims(void)
{
    const char *text = "graph main\ninput x : f32[2,2147483648]\ny = aten.flip(x, [1])\noutput y = y\n";
    npu_graph *g = NULL, *now;
    npu_diag diag = { 0 };
    NPU_ITEM("F14");
    if (sizeof(size_t) == 4) {
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, &diag), NPU_ERR_OVERFLOW);
        return;
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, &diag), NPU_OK);
    now = lower(g, aten);
    NPU_CHECK_EQ(count_ops(now, "aten"), 1);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* A number that a value holds is not known: such an op stays as it is, whatever its rule knows of its results. */
static void test_dynamic_attributes(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[5,4]\ninput n : i64[]\n"
                         "y = aten.narrow(x, 0, start=n, length=2)\noutput y = y\n");
    npu_graph *now = lower(g, aten);
    NPU_ITEM("F14");
    NPU_CHECK_EQ(count_ops(now, "aten"), 1);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* Legal ops stay as they are, unknown ones too. */
static void test_mixed_graphs(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[2,3]\nd = tensor.empty(size=[2, 3], dtype=f32)\n"
        "a = linalg.add(x, x, d)\nt = tensor.add(a, x)\n"
                         "r = gawee.relu(t)\nu = my.op(r) : f32[2,3]\nq = aten.relu(u)\noutput y = q\n");
    npu_graph *now = lower(g, gawee);
    NPU_ITEM("S4.52");
    NPU_ITEM("S4.53");
    NPU_ITEM("S4.8");
    NPU_CHECK_EQ(count_ops(now, "gawee"), 0);
    NPU_CHECK_EQ(count_ops(now, "linalg.add"), 1);
    NPU_CHECK_EQ(count_ops(now, "tensor.add"), 1);
    NPU_CHECK_EQ(count_ops(now, "my.op"), 1);
    NPU_CHECK_EQ(count_ops(now, "aten.relu.default"), 1);
    NPU_CHECK_EQ(count_ops(now, "linalg.generic"), 1);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* What ATen has and loops do not express is left, the rest is converted. */
static void test_partial_from_aten(void)
{
    npu_graph *g = parse("graph main\ninput x : f32[2,6]\na = aten.relu(x)\nb = aten.cumsum(a, 1)\n"
        "c = aten.add.Tensor(b, a)\ns, i = aten.sort(c)\noutput y = s\n");
    npu_graph *now = lower(g, aten);
    NPU_CHECK_EQ(count_ops(now, "aten"), 2);
    NPU_CHECK_EQ(count_ops(now, "aten.cumsum.default"), 1);
    NPU_CHECK_EQ(count_ops(now, "aten.sort.default"), 1);
    NPU_CHECK_EQ(count_ops(now, "linalg"), 2);
    fill_inputs(g, -2, 2);
    check_same(g, now, 1e-5, "partial");
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* A factor that f32 does not hold, one that is no number of elements, one that contradicts the size, more loops than
   there are, pieces that only ATen counts: left as they are. */
static void test_left_from_aten(void)
{
    static const char *const ops[] = {
        "x : f32[1,1,2]\ny = aten.upsample_nearest1d(x, [82])", "x : f32[1,1,2]\ny = aten.upsample_nearest1d(x, [5])",
        "x : f32[1,1,2]\ny = aten.upsample_nearest1d(x, [4], 3.0)",
        "x : f32[1,1,3]\ny = aten.upsample_nearest1d.vec(x, none, [1.4])",
        "x : f32[2,2,2,2,2]\ny = aten.repeat(x, [2, 2, 2, 2, 2])",
        "x : f32[4]\ny, z = aten.tensor_split.sections(x, 2)",
        "x : f32[2]\ninput i : i64[2]\ny = aten.index_select(x, 0, i)"
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        char text[200];
        npu_graph *g, *now;
        snprintf(text, sizeof text, "graph main\ninput %s\noutput y = y\n", ops[i]);
        g = parse(text);
        now = lower(g, aten);
        NPU_CHECK_EQ(count_ops(now, "aten"), 1);
        NPU_CHECK_EQ(npu_graph_num_ops(now), 1);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* Operands of more dims than the result, dims of 0-d tensors, and conditions that are numbers. */
static void test_odd_operands(void)
{
    static const char *const graphs[] = {
        "input x : f32[]\ninput y : i32[1]\nr = aten.type_as(x, y)", "input x : f32[2]\ninput y : bool[3,2]\nr = aten.type_as(x, y)",
        "input x : i32[2,3]\ninput y : f16[]\nr = aten.type_as(x, y)", "input x : f32[]\nr = aten.flip(x, [-1])",
        "input x : f32[]\nr = aten.flip(x, [])", "input x : f32[] wrapped\nr = aten.flip(x, [])", "input x : f32[2,3]\nr = aten.flip(x, [])",
        "input x : f32[]\nr = aten.softmax.int(x, -1)", "input x : f32[]\nr = aten._softmax(x, -1, false)",
        "input x : f32[]\nr = aten.sum.dim_IntList(x, [-1])", "input x : f32[]\nr = aten.transpose.int(x, -1, 0)",
    };
    NPU_ITEM("F2");
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
        char text[200];
        npu_graph *g, *now;
        snprintf(text, sizeof text, "graph main\n%s\noutput r = r\n", graphs[i]);
        g = parse(text);
        now = lower(g, aten);
        fill_inputs(g, -2, 2);
        check_same(g, now, 1e-5, graphs[i]);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

static void test_where_on_numbers(void)
{
    static const char *const conditions[] = { "u8[]", "u8[2,1]", "bool[3]" };
    NPU_ITEM("F14");
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        char text[200];
        npu_graph *g, *now, *expected;
        snprintf(text, sizeof text, "graph main\ninput c : %s\ninput x : f32[2,3]\ninput y : f32[3]\n"
                 "r = %s(c, x, y)\noutput r = r\n", conditions[i], "gawee.where");
        g = parse(text);
        now = lower(g, gawee);
        snprintf(text, sizeof text, "graph main\ninput c : %s\ninput x : f32[2,3]\ninput y : f32[3]\n"
                 "r = %s(c, x, y)\noutput r = r\n", conditions[i], "aten.where.self");
        expected = parse(text);
        NPU_CHECK_EQ(count_ops(now, "gawee"), 0);
        fill_inputs(expected, -1, 1);
        check_same(expected, now, 0, conditions[i]);
        npu_graph_destroy(expected);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* ---- a model ---- */

/* ResNet-18 with few channels: 20 convolutions, 17 relus, 8 additions, one pool of each kind, flatten, linear. */
typedef struct net {
    npu_text text;
    bool is_gawee;
    int next, channels;
} net;

static int net_conv(net *n, int x, int in, int out, int kernel, int stride)
{
    int id = n->next++;
    const char *op = n->is_gawee ? "gawee.conv" : "aten.conv2d.default", *name = n->is_gawee ? "strides" : "stride";
    npu_text_printf(&n->text, "param w%d : f32[%d,%d,%d,%d]\nparam b%d : f32[%d]\n", id, out, in, kernel, kernel,
        id, out);
    npu_text_printf(&n->text, "v%d = %s(v%d, w%d, b%d, %s=[%d, %d], padding=[%d, %d])\n", id, op, x, id, id, name,
        stride, stride,
                    kernel / 2, kernel / 2);
    return id;
}

static int net_op(net *n, const char *gawee_op, const char *aten_op, int x, int y)
{
    int id = n->next++;
    npu_text_printf(&n->text, "v%d = %s(v%d", id, n->is_gawee ? gawee_op : aten_op, x);
    npu_text_printf(&n->text, y ? ", v%d)\n" : ")\n", y);
    return id;
}

static int net_block(net *n, int x, int in, int out, int stride)
{
    int y = net_op(n, "gawee.relu", "aten.relu", net_conv(n, x, in, out, 3, stride), 0);
    y = net_conv(n, y, out, out, 3, 1);
    x = stride != 1 || in != out ? net_conv(n, x, in, out, 1, stride) : x;
    return net_op(n, "gawee.relu", "aten.relu", net_op(n, "gawee.add", "aten.add.Tensor", y, x), 0);
}

static npu_graph *net_graph(bool is_gawee, float *weights, size_t num_weights)
{
    net n;
    npu_graph *g;
    int x, channels = 4;
    memset(&n, 0, sizeof n);
    n.text = npu_text_init(NULL);
    n.is_gawee = is_gawee;
    n.next = 1;
    npu_text_printf(&n.text, "graph main\ninput v0 : f32[1,3,64,64]\n");
    x = net_op(&n, "gawee.relu", "aten.relu", net_conv(&n, 0, 3, channels, 7, 2), 0);
    npu_text_printf(&n.text, is_gawee ? "p = gawee.max_pool(v%d, kernelSize=[3, 3], strides=[2, 2], padding=[1, 1])\n"
                                      : "p = aten.max_pool2d(v%d, [3, 3], [2, 2], [1, 1])\n", x);
    npu_text_printf(&n.text, "v%d = aten.clone(p)\n", x = n.next++);
    for (int stage = 0; stage < 4; stage++) {
        x = net_block(&n, x, channels, stage ? channels * 2 : channels, stage ? 2 : 1);
        channels *= stage ? 2 : 1;
        x = net_block(&n, x, channels, channels, 1);
    }
    npu_text_printf(&n.text, is_gawee ? "a = gawee.ad_avg_pool(v%d, outputSize=[1, 1])\nf = gawee.flatten(a)\n"
                                      : "a = aten.adaptive_avg_pool2d(v%d, [1, 1])\n"
                                          "f = aten.flatten.using_ints(a, 1)\n", x);
    npu_text_printf(&n.text, "param wl : f32[10,%d]\nparam bl : f32[10]\ny = %s(f, wl, bl)\noutput y = y\n", channels,
                    is_gawee ? "gawee.linear" : "aten.linear");
    g = parse(n.text.data);
    npu_text_free(&n.text);
    for (uint32_t i = 1; i <= npu_graph_num_values(g); i++) {
        npu_value v = { i };
        size_t size = 0;
        if (npu_value_role(g, v) == NPU_ROLE_PARAM) {
            npu_spec_size(npu_value_spec(g, v), &size);
            NPU_CHECK(size <= num_weights * sizeof *weights);
            NPU_CHECK_STATUS(npu_graph_bind_param(g, npu_value_name(g, v), weights, size), NPU_OK);
        }
    }
    return g;
}

static void test_resnet(void)
{
    enum { NUM = 32 * 32 * 9 };
    static float weights_data[NUM];
    npu_graph *g, *now, *same;
    for (size_t i = 0; i < NUM; i++) {
        weights_data[i] = (float)((i * 2654435761u >> 8) % 1001u) / 1000.0f * 0.3f - 0.14f;
    }
    g = net_graph(true, weights_data, NUM);
    same = net_graph(false, weights_data, NUM);
    now = lower(g, gawee);
    NPU_CHECK_EQ(count_ops(g, "gawee.conv"), 20);
    NPU_CHECK_EQ(count_ops(g, "gawee.add"), 8);
    NPU_CHECK_EQ(count_ops(now, "linalg.conv_2d_nchw_fchw"), 20);
    NPU_CHECK_EQ(count_ops(now, "linalg.add"), 8);
    NPU_CHECK_EQ(npu_graph_num_children(now), 3); /* bodies are shared: bias, relu, division */
    fill_inputs(g, -2, 2);
    check_same(same, now, 1e-3, "resnet");
    npu_graph_destroy(now);
    now = lower(same, aten);
    NPU_CHECK_EQ(count_ops(now, "aten"), 1); /* the clone */
    check_same(same, now, 1e-3, "resnet from aten");
    npu_graph_destroy(now);
    npu_graph_destroy(same);
    npu_graph_destroy(g);
}

static npu_registry *shared; /* making one is not what is tested */

static npu_status lowered(const npu_allocator *a)
{
    static const char text[] =
        "graph main\ninput x : f32[1,2,5,5]\ninput w : f32[2,1,3,3]\nc = gawee.conv(x, w, groups=2, padding=[1, 1])\n"
        "a = gawee.ad_avg_pool(c, outputSize=[2, 3])\nr = gawee.relu(a)\nf = gawee.flatten(r)\n"
        "s = gawee.softmax(f)\nt, u = gawee.topk(s, k=2)\nv = gawee.cat([t, t], axis=1)\n"
        "p = gawee.gather(v, u, axis=1)\nq = gawee.sigmoid(p)\noutput y = q\n";
    npu_graph *g = NULL, *now = NULL;
    npu_graph_desc desc = { .allocator = a, .registry = shared };
    npu_status status = npu_graph_parse(&g, text, strlen(text), &desc, NULL);
    status = status ? status : npu_graph_run_passes(&now, g, npu_conversion_pass(gawee), 1, NULL, NULL);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    return status;
}

static void test_out_of_memory(void)
{
    NPU_CHECK_STATUS(npu_registry_create(&shared, NULL, NULL), NPU_OK);
    NPU_CHECK(npu_test_fail_each(lowered, false) > 100);
    npu_registry_destroy(shared);
}

int main(void)
{
    NPU_RUN(test_conv);
    NPU_RUN(test_conv_bias_map);
    NPU_RUN(test_conv_padding);
    NPU_RUN(test_conv_padding_numbers);
    NPU_RUN(test_relu_and_add);
    NPU_RUN(test_max_pool);
    NPU_RUN(test_max_pool_of_negatives);
    NPU_RUN(test_adaptive_pool);
    NPU_RUN(test_adaptive_pool_numbers);
    NPU_RUN(test_flatten);
    NPU_RUN(test_flatten_is_a_view);
    NPU_RUN(test_linear);
    NPU_RUN(test_gawee_numbers);
    NPU_RUN(test_gawee_results);
    NPU_RUN(test_gawee_limits);
    NPU_RUN(test_aten);
    NPU_RUN(test_random_conv);
    NPU_RUN(test_order);
    NPU_RUN(test_linear_bias);
    NPU_RUN(test_pass);
    NPU_RUN(test_one_pattern_per_op);
    NPU_RUN(test_adaptor);
    NPU_RUN(test_illegal_ops_fail);
    NPU_RUN(test_large_dims);
    NPU_RUN(test_dynamic_attributes);
    NPU_RUN(test_mixed_graphs);
    NPU_RUN(test_partial_from_aten);
    NPU_RUN(test_left_from_aten);
    NPU_RUN(test_odd_operands);
    NPU_RUN(test_where_on_numbers);
    NPU_RUN(test_resnet);
    NPU_RUN(test_out_of_memory);
    return npu_test_done();
}
