/* The pass integer-ops: dequantise, op, quantise become one op on 8 bits; what it makes, how far numbers go, what stays and why. */
#include "rig.h"

static npu_registry *registry; /* one for all graphs */

#define Q(x, name, scale, zero) name " = quantized_decomposed.quantize_per_tensor.default(" x ", " scale ", " zero ", -128, 127, i8)\n"
#define DQ(x, name, scale, zero) name " = quantized_decomposed.dequantize_per_tensor.default(" x ", " scale ", " zero ", -128, 127, i8)\n"
#define CHANNELS_OF(w, name, axis) name " = quantized_decomposed.dequantize_per_channel.default(" w ", s, z, " axis ", -127, 127, i8)\n"
#define OUT Q("y", "qy", "0.031", "-7") DQ("qy", "dy", "0.031", "-7") "output o = dy\n"

/* d, e: [1,4,6,6] of scales 0.05 and 0.02. w, v: weights of 4 channels, s, z, b: theirs. What the pass makes of it, "" where it
   leaves the op, and why. */
static const struct { const char *text, *made, *reason; } regions[] = {
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv2d.default(d, dw, b, [1,1], [1,1])\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w", "dw", "0") "c = aten.conv2d.default(d, dw, b, [2], [1], [1])\ny = aten.relu.default(c)\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w", "dw", "0") "c = aten.conv2d.default(d, dw, none)\ny = aten.hardtanh.default(c, -0.5, 1.25)\n" OUT, "npu.qconv", NULL },
    { DQ("w", "dw", "0.03", "0") "c = aten.convolution.default(d, dw, b, [1,1], [0,0], [1,1], false, [0,0], 1)\n"
      "y = aten.relu6.default(c)\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w", "dw", "1") "y = aten.conv_transpose2d.input(d, dw, b, [2,2], [1,1], [1,1])\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("v", "dv", "0") "y = aten.conv2d.default(d, dv, b, [1,1], [1,1], [1,1], 4)\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("l", "dl", "0") "y = aten.linear.default(d, dl, b)\n" OUT, "npu.qlinear", NULL },
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv2d.padding(d, dw, b, [1,1], 'same')\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv2d.padding(d, dw, none, [2,2], 'valid')\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv2d.padding(d, dw, b, [1,1], 'same', [2,2])\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("l", "dl", "0") "t = aten.t.default(dl)\ny = aten.matmul.default(d, t)\n" OUT, "npu.qlinear", NULL },
    { CHANNELS_OF("l", "dl", "0") "k = aten.view.default(d, [24, 6])\n" Q("k", "qk", "0.05", "3") DQ("qk", "dk", "0.05", "3")
      "t = aten.transpose.int(dl, 0, 1)\nc = aten.addmm.default(b, dk, t)\ny = aten.relu.default(c)\n" OUT,
      "aten.view.default npu.qlinear", NULL },
    { CHANNELS_OF("l", "dl", "0") "k = aten.view.default(d, [24, 6])\n" Q("k", "qk", "0.05", "3") DQ("qk", "dk", "0.05", "3")
      "t = aten.permute.default(dl, [1, 0])\ny = aten.mm.default(dk, t)\n" OUT, "aten.view.default npu.qlinear", NULL },
    { "y = aten.add.Tensor(d, e)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp.default(a, none, 1.5)\n" OUT, "npu.qadd", NULL },
    { "st = quantized_decomposed.quantize_per_tensor.tensor(x, s1, z1, -128, 127, i8)\n"
      "dt = quantized_decomposed.dequantize_per_tensor.tensor2(st, s1, z1, low, high, i8)\ny = aten.add.Tensor(dt, e)\n"
      "qt = quantized_decomposed.quantize_per_tensor.tensor2(y, s1, z1, low, high, i8)\n" DQ("qt", "dy", "0.0625", "5") "output o = dy\n",
      "npu.qadd", NULL },
    { "y = aten.sub.Tensor(d, e)\n" OUT, "npu.qsub", NULL },
    { "a = aten.sub.Tensor(d, e)\ny = aten.relu.default(a)\n" OUT, "npu.qsub", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp_max.default(a, 1.5)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp_min.default(a, -0.75)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp.Tensor(a, k0, k1)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp.Tensor(a, none, k1)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp_min.Tensor(a, k0)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp_max.Tensor(a, k1)\n" OUT, "npu.qadd", NULL },
    { "a = aten.add.Tensor(d, e)\ny = aten.minimum.default(a, k1)\n" OUT, "npu.qadd", NULL },
    { "y = aten.maximum.default(d, k0)\n" OUT, "npu.requantise", NULL },
    { "y = aten.mul.Tensor(d, e)\n" OUT, "npu.qmul", NULL },
    { "y = aten.mul.Tensor(d, ue)\n" OUT, "npu.requantise npu.qmul", NULL },
    { "y = aten.sub.Tensor(ue, e)\n" OUT, "npu.requantise npu.qsub", NULL },
    { "y = aten.cat.default([d, ue, d], 1)\n" OUT, "npu.requantise npu.qcat", NULL },
    { "y = aten.sigmoid.default(ue)\n" OUT, "npu.requantise npu.qsigmoid", NULL },
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv2d.default(ue, dw, b)\n" OUT, "npu.requantise npu.qconv", NULL },
    { "y = aten.add.Tensor(d, e)\nqy = quantized_decomposed.quantize_per_tensor.default(y, 0.05, 133, 0, 255, u8)\n"
      "dy = quantized_decomposed.dequantize_per_tensor.default(qy, 0.05, 133, 0, 255, u8)\noutput o = dy\n",
      "npu.requantise npu.requantise npu.qadd", NULL },
    { CHANNELS_OF("v", "dv", "0") "y = aten.conv_transpose2d.input(d, dv, b, [2,2], [1,1], [1,1], 4)\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w4", "dw", "1") "y = aten.conv_transpose2d.input(d, dw, b8, [2,2], [1,1], [1,1], 2)\n" OUT, "npu.qconv", NULL },
    { CHANNELS_OF("w2", "dw", "0") "y = aten.conv_transpose2d.input(d, dw, b8, [2,2], [1,1], [1,1], 4)\n" OUT, "npu.qconv", NULL },
    { "y = aten.max_pool2d.default(d, [2,2])\n" OUT, "npu.qmax_pool npu.requantise", NULL },
    { "y = aten.max_pool2d.default(d, [2,2])\n" Q("y", "qy", "0.05", "3") DQ("qy", "dy", "0.05", "3") "output o = dy\n", "npu.qmax_pool", NULL },
    { "y, i = aten.max_pool2d_with_indices.default(d, [2,2], [1,1], [1,1])\n" OUT, "npu.qmax_pool npu.requantise", NULL },
    { "y, i = aten.max_pool2d_with_indices.default(d, [2,2])\noutput i = i\n" OUT, "", "no op on integers stands for it" },
    { "y = aten.avg_pool2d.default(d, [3,3], [2,2], [1,1], true, false)\n" OUT, "npu.qavg_pool", NULL },
    { "y = aten.adaptive_avg_pool2d.default(d, [1,1])\n" OUT, "npu.qadaptive_avg_pool", NULL },
    { "y = aten.mean.dim(d, [2,3], true)\n" OUT, "npu.qmean", NULL },
    { "y = aten.cat.default([d, e, d], 1)\n" OUT, "npu.qcat", NULL },
    { "y = aten.softmax.int(d, 1)\n" Q("y", "qy", "0.00390625", "-128") DQ("qy", "dy", "0.00390625", "-128") "output o = dy\n", "npu.qsoftmax", NULL },
    { "y = aten.sigmoid.default(d)\n" OUT, "npu.qsigmoid", NULL },
    { "y = aten.tanh.default(d)\n" OUT, "npu.qtanh", NULL },
    { "y = aten.hardswish.default(d)\n" OUT, "npu.qhardswish", NULL },
    { "y = aten.hardsigmoid.default(d)\n" OUT, "npu.qhardsigmoid", NULL },
    { "y = aten.silu.default(d)\n" OUT, "npu.qsilu", NULL },
    { "y = aten.gelu.default(d)\n" OUT, "npu.qgelu", NULL },
    { "y = aten.leaky_relu.default(d, 0.1)\n" OUT, "npu.qleaky_relu", NULL },
    { "y = aten.relu.default(d)\n" OUT, "npu.requantise", NULL },
    { "y = aten.layer_norm.default(d, [6], g, h)\n" OUT, "npu.qlayer_norm", NULL },
    { "y = aten.upsample_bilinear2d.vec(d, none, false, [2.0, 2.0])\n" OUT, "npu.qupsample_bilinear2d", NULL },
    { "y = aten.upsample_nearest2d.default(d, [9, 9])\n" OUT, "npu.qupsample_nearest2d", NULL },
    { "y = aten.view.default(d, [4, 36])\n" Q("y", "qy", "0.05", "3") DQ("qy", "dy", "0.05", "3") "output o = dy\n", "aten.view.default", NULL },
    { "y = aten.permute.default(d, [0, 2, 3, 1])\n" OUT, "aten.permute.default npu.requantise", NULL },
    { Q("d", "qy", "0.031", "-7") DQ("qy", "dy", "0.031", "-7") "output o = dy\n", "npu.requantise", NULL },
    /* what stays */
    { "y = aten.exp.default(d)\n" OUT, "", "no op on integers stands for it" },
    { "y = aten.add.Tensor(d, e, alpha=2)\n" OUT, "", "it has an argument that its integer twin has not" },
    { "y = aten.gelu.default(d, approximate='tanh')\n" OUT, "", "it has an argument that its integer twin has not" },
    { "y = aten.add.Tensor(d, x)\n" OUT, "", "an operand is not dequantised, from i8 or u8, per tensor" },
    { "y = aten.add.Tensor(d, e)\noutput p = y\n" OUT, "", "its result is needed in floating point, too" },
    { "y = aten.add.Tensor(d, e)\noutput p = y\n", "", "its result is not quantised, to numbers that are known, alone" },
    { "a = aten.add.Tensor(d, e)\ny = aten.hardswish.default(a)\n" OUT, "", "what follows it is no activation that bounds stand for" },
    { "y = aten.conv2d.default(d, f, b)\n" OUT, "", "its weight is not dequantised from i8" },
    { DQ("w", "dw", "0.03", "5") "y = aten.conv2d.default(d, dw, b)\n" OUT, "", "its weight is not symmetric: a zero point is not 0" },
    { CHANNELS_OF("w", "dw", "1") "y = aten.conv2d.default(d, dw, b)\n" OUT, "", "the axis of its weight's scales is not that of output channels" },
    { CHANNELS_OF("w", "dw", "0") "k = aten.neg.default(b)\ny = aten.conv2d.default(d, dw, k)\n" OUT, "", "its bias is no f32 that is known: bind parameters first" },
    { DQ("w", "dw", "1e-12", "0") "y = aten.conv2d.default(d, dw, b)\n" OUT, "", "its bias does not fit the 32 bits of its accumulator" },
    { CHANNELS_OF("u", "du", "0") "y = aten.conv2d.padding(d, du, b, [1,1], 'same')\n" OUT, "", "no op on integers stands for it" },
    { CHANNELS_OF("w", "dw", "0") "y = aten.conv_transpose2d.input(d, dw, none, [2,2], [1,1], [1,1], 2)\n" OUT, "",
      "the axis of its weight's scales is not that of output channels" },
    { "a = aten.add.Tensor(d, e)\ny = aten.minimum.default(a, e)\n" OUT, "", "what follows it is no activation that bounds stand for" },
    { "a = aten.add.Tensor(d, e)\ny = aten.clamp.Tensor(a, k1, k0)\n" OUT, "", "what follows it is no activation that bounds stand for" },
    { "y = aten.sub.Tensor(d, e, alpha=2)\n" OUT, "", "it has an argument that its integer twin has not" },
};

static void add_constant(npu_text *text, const char *name, const char *spec, int count, double scale, bool is_float)
{
    npu_text_printf(text, "const %s : %s {", name, spec);
    for (int i = 0; i < count; i++) {
        int k = (i * 37 + (int)name[0] * 11) % 201 - 100;
        npu_text_printf(text, is_float ? "%s%.6f" : "%s%.0f", i ? ", " : "", k * scale);
    }
    npu_text_printf(text, "}\n");
}

static npu_graph *region_graph(const char *statements)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_text_printf(&text, "npu_ir 1\ngraph main\ninput x : f32[1,4,6,6]\n");
    add_constant(&text, "w", "i8[4,4,3,3]", 144, 1, false);
    add_constant(&text, "v", "i8[4,1,3,3]", 36, 1, false);
    add_constant(&text, "l", "i8[4,6]", 24, 1, false);
    add_constant(&text, "u", "i8[4,4,2,2]", 64, 1, false);
    add_constant(&text, "w4", "i8[4,4,3,3]", 144, 1, false);
    add_constant(&text, "w2", "i8[4,2,3,3]", 72, 1, false);
    add_constant(&text, "b", "f32[4]", 4, 0.01, true);
    add_constant(&text, "b8", "f32[8]", 8, 0.01, true);
    add_constant(&text, "g", "f32[6]", 6, 0.01, true);
    add_constant(&text, "h", "f32[6]", 6, 0.005, true);
    add_constant(&text, "f", "f32[4,4,3,3]", 144, 0.01, true);
    npu_text_printf(&text, "const s1 : f32[1] {0.0625}\nconst z1 : i64[1] {5}\nconst low : i64[1] {-128}\nconst high : i64[1] {127}\n"
                    "const k0 : f32[] {-0.5}\nconst k1 : f32[1] {1.25}\n"
                    "const s : f32[4] {0.004, 0.0013, 0.02, 0.007}\nconst z : i64[4] {0, 0, 0, 0}\n%s",
                    Q("x", "qd", "0.05", "3") DQ("qd", "d", "0.05", "3") Q("x", "qe", "0.02", "-20") DQ("qe", "e", "0.02", "-20"));
    npu_text_printf(&text, "qu = quantized_decomposed.quantize_per_tensor.default(x, 0.03, 99, 0, 255, u8)\n"
                    "ue = quantized_decomposed.dequantize_per_tensor.default(qu, 0.03, 99, 0, 255, u8)\n");
    npu_text_printf(&text, "%s", statements);
    NPU_CHECK_THAT(npu_graph_parse(&g, text.data, text.len, &(npu_graph_desc){ .registry = registry }, &diag) == NPU_OK, "%s%s", statements,
                   diag.message);
    npu_text_free(&text);
    return g;
}

/* The first reason of the report, and the number of them. */
typedef struct told { const char *reason; uint32_t count, changes; } told;

static void keep_report(void *ctx, const npu_pass_report *report)
{
    told *t = (told *)ctx;
    t->count = report->num_refusals;
    t->changes = report->num_changes;
    t->reason = t->count ? report->refusals[0].reason : NULL;
    for (uint32_t i = 0; i < report->num_refusals; i++) { /* the op of that name is there */
        NPU_CHECK(report->refusals[i].op.id && report->refusals[i].name[0]);
    }
}

/* The names of ops between the first quantise and the last dequantise, one space between them. */
static const char *made_of(const npu_graph *g)
{
    static char text[300];
    text[0] = 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        npu_op op = { i };
        const char *name = npu_op_definition(g, op)->name;
        if (!strstr(name, "quantized_decomposed") && strlen(text) + strlen(name) + 2 < sizeof text) {
            strcat(strcat(text, text[0] ? " " : ""), name);
        }
    }
    return text;
}

/* Runs g on 144 numbers; the results, copied. */
static size_t run_region(const npu_graph *g, const npu_backend *const *backends, uint32_t num_backends, float *out, size_t capacity)
{
    float x[144];
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    size_t size = 0;
    for (int i = 0; i < 144; i++) {
        x[i] = (float)(i * 53 % 289 - 144) / 50.0f;
    }
    NPU_CHECK_THAT(npu_exec_create_simple(&exec, g, backends, num_backends, &diag) == NPU_OK, "%s", diag.message);
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const void *y = npu_exec_output(exec, 0, &size);
    NPU_CHECK(y && size <= capacity * sizeof *out);
    if (y && size <= capacity * sizeof *out) {
        memcpy(out, y, size);
    }
    npu_exec_destroy(exec);
    return size / sizeof *out;
}

static npu_graph *make_integer(const npu_graph *g, uint32_t rounding, told *t)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER, .rounding = rounding,
                               .report = keep_report, .report_ctx = t };
    npu_graph *now = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_THAT(npu_graph_optimize(&now, g, &desc, &(npu_pass_options){ .validate = true }, &diag) == NPU_OK, "%s", diag.message);
    return now;
}

/* The scale of the first output, which is dequantised. */
static double output_scale(const npu_graph *g)
{
    npu_op_storage storage;
    npu_op_info info;
    double scale = 0;
    memset(&storage, 0, sizeof storage);
    if (npu_op_describe(g, npu_value_producer(g, npu_graph_output(g, 0), NULL), &info, &storage) == NPU_OK) {
        scale = npu_op_float(&info, "scale", 0);
    }
    npu_op_storage_free(&storage);
    return scale;
}

/* Numbers stay within a step of the result's scale. */
static void check_steps(const npu_graph *a, const npu_graph *b, const char *what)
{
    static float y[2][2048];
    const npu_backend *cpu = npu_ref_backend();
    size_t n = run_region(a, &cpu, 1, y[0], 2048), m = run_region(b, &cpu, 1, y[1], 2048);
    double step = output_scale(a);
    bool varies = false;
    NPU_CHECK(step > 0);
    NPU_CHECK_EQ(n, m);
    for (size_t i = 0; i < n && n == m; i++) {
        varies = varies || y[0][i] != y[0][0];
        if (!(fabs((double)y[0][i] - (double)y[1][i]) <= step * 1.001)) {
            NPU_CHECK_THAT(false, "%s: element %d is %g, was %g", what, (int)i, (double)y[1][i], (double)y[0][i]);
            return;
        }
    }
    NPU_CHECK_THAT(varies, "%s: all results are alike", what);
}

static void test_regions(void)
{
    for (size_t i = 0; i < sizeof regions / sizeof regions[0]; i++) {
        for (uint32_t rounding = 0; rounding < 2; rounding++) {
            told t = { 0 };
            bool is_made = regions[i].made[0] != 0;
            npu_graph *g = region_graph(regions[i].text), *now = make_integer(g, rounding, &t);
            if (is_made) {
                NPU_CHECK_THAT(now && strcmp(made_of(now), regions[i].made) == 0, "%s: %s, expected %s (%s)", regions[i].text,
                               now ? made_of(now) : "", regions[i].made, t.reason ? t.reason : "");
                NPU_CHECK_EQ(t.count, 0);
                check_steps(g, now, regions[i].text);
            } else {
                NPU_CHECK_EQ(t.changes, 0);
                NPU_CHECK(t.count >= 1);
                NPU_CHECK_THAT(t.reason && strcmp(t.reason, regions[i].reason) == 0, "%s: %s, expected %s", regions[i].text,
                               t.reason ? t.reason : "nothing", regions[i].reason);
            }
            npu_graph_destroy(now);
            npu_graph_destroy(g);
        }
    }
}

/* Linears to weights of i8 whose results are not quantised: a few rows read those as they are. */
#define ROWS(n, dims) \
    "r1 = aten.view.default(d, [24, 6])\nr2 = aten.slice.Tensor(r1, 0, 0, " n ")\nr = aten.view.default(r2, " dims ")\n"
static const struct { const char *text, *made; } leans[] = {
    { ROWS("2", "[2, 6]") CHANNELS_OF("l", "dl", "0") "y = aten.linear.default(r, dl, b)\noutput o = y\n",
      "aten._weight_int8pack_mm.default aten.add.Tensor" },
    { ROWS("8", "[2, 4, 6]") DQ("l", "dl", "0.02", "0") "y = aten.linear.default(r, dl, b)\noutput o = y\n",
      "aten.reshape.default aten._weight_int8pack_mm.default aten.add.Tensor aten.reshape.default" },
    { ROWS("1", "[6]") CHANNELS_OF("l", "dl", "0") "y = aten.linear.default(r, dl)\n"
      "z2 = aten.exp.default(y)\noutput o = z2\n",
      "aten.reshape.default aten._weight_int8pack_mm.default aten.reshape.default aten.exp.default" },
    { ROWS("9", "[9, 6]") CHANNELS_OF("l", "dl", "0") "y = aten.linear.default(r, dl, b)\noutput o = y\n", NULL },
    { ROWS("2", "[2, 6]") DQ("l", "dl", "0.02", "3") "y = aten.linear.default(r, dl, b)\noutput o = y\n", NULL },
    { ROWS("2", "[2, 6]") Q("r", "qr", "0.05", "3") DQ("qr", "dr", "0.05", "3") CHANNELS_OF("l", "dl", "0")
      "y = aten.linear.default(dr, dl, b)\nr3 = aten.relu.default(y)\n" Q("r3", "qy", "0.05", "3")
      DQ("qy", "dy", "0.05", "3")
      "output o = dy\n", "npu.qlinear" },
};

static void test_lean_linears(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof leans / sizeof leans[0]; i++) {
        told t = { 0 };
        npu_graph *g = region_graph(leans[i].text), *now = make_integer(g, NPU_ROUNDING_SINGLE, &t);
        float y[2][64];
        if (leans[i].made) {
            size_t n = run_region(g, &cpu, 1, y[0], 64), m = run_region(now, &cpu, 1, y[1], 64);
            NPU_CHECK_THAT(strstr(made_of(now), leans[i].made), "%s: %s", leans[i].text, made_of(now));
            NPU_CHECK_EQ(n, m);
            for (size_t k = 0; k < n && i + 1 < sizeof leans / sizeof leans[0]; k++) {
                NPU_CHECK_NEAR(y[1][k], y[0][k], 1e-5 * (1 + fabs((double)y[0][k])));
            }
        } else {
            NPU_CHECK_EQ(t.changes, 0);
            NPU_CHECK(!now || strstr(made_of(now), "linear"));
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* A net of which nothing stays in floating point runs on an accelerator whole. */
static const char *const net =
    CHANNELS_OF("w", "dw", "0") "c = aten.conv2d.default(d, dw, b, [1,1], [1,1])\nr = aten.relu.default(c)\n" Q("r", "q1", "0.04", "-128")
    DQ("q1", "d1", "0.04", "-128") CHANNELS_OF("v", "dv", "0") "c2 = aten.conv2d.default(d1, dv, b, [1,1], [1,1], [1,1], 4)\n"
    Q("c2", "q2", "0.1", "0") DQ("q2", "d2", "0.1", "0") "a = aten.add.Tensor(d2, d1)\n" Q("a", "q3", "0.1", "0") DQ("q3", "d3", "0.1", "0")
    "m = aten.max_pool2d.default(d3, [2,2])\n" Q("m", "q4", "0.1", "0") DQ("q4", "d4", "0.1", "0")
    "p = aten.mean.dim(d4, [2,3])\n" Q("p", "q5", "0.05", "0") DQ("q5", "d5", "0.05", "0")
    "y = aten.softmax.int(d5, 1)\n" Q("y", "q6", "0.00390625", "-128") DQ("q6", "d6", "0.00390625", "-128") "output o = d6\n";

static void test_net_on_accelerator(void)
{
    for (uint32_t rounding = 0; rounding < 2; rounding++) {
        told t = { 0 };
        npu_sim_desc desc = { .emulate = npu_ref_backend() };
        rig r = rig_start(&desc, 1);
        npu_graph *g = region_graph(net);
        float y[2][4];
        npu_graph_destroy(r.graph);
        r.graph = make_integer(g, rounding, &t);
        NPU_CHECK_STR(made_of(r.graph), "npu.qconv npu.qconv npu.qadd npu.qmax_pool npu.qmean npu.qsoftmax");
        NPU_CHECK_EQ(t.count, 0);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        for (uint32_t i = 0; r.plan && i < npu_plan_num_steps(r.plan); i++) {
            const npu_step *step = npu_plan_step(r.plan, i);
            NPU_CHECK(step->type != NPU_STEP_PARTITION || step->backend == 0);
        }
        NPU_CHECK_EQ(run_region(r.graph, r.backends, 2, y[0], 4), 4);
        NPU_CHECK_EQ(run_region(r.graph, r.backends + 1, 1, y[1], 4), 4);
        NPU_CHECK_BYTES(y[0], y[1], sizeof y[0]);
        npu_graph_destroy(g);
        rig_end(&r);
    }
}

int main(void)
{
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_RUN(test_regions);
    NPU_RUN(test_lean_linears);
    NPU_RUN(test_net_on_accelerator);
    npu_registry_destroy(registry);
    return npu_test_done();
}
