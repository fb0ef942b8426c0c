/* npu_graph_quantize: scales from calibration inputs, what is quantised and what stays, weights alone, what is refused. */
#include "rig.h"

enum { SAMPLES = 4, MOST = 768 };

static npu_registry *registry;
static npu_text report_text;
static npu_quantize_value kept_values[32]; /* of the last report, without names */
static char kept_names[32][24];
static npu_quantize_op kept_ops[32];
static uint32_t num_values, num_ops, num_calls;
static npu_difference kept_loss;

static void keep_report(void *ctx, const npu_quantize_report *r)
{
    (void)ctx;
    NPU_CHECK(r->size == sizeof *r && r->num_values <= 32 && r->num_ops <= 32);
    num_values = r->num_values, num_ops = r->num_ops, num_calls++;
    kept_loss = r->loss;
    for (uint32_t i = 0; i < num_values && i < 32; i++) {
        kept_values[i] = r->values[i];
        snprintf(kept_names[i], sizeof kept_names[i], "%.20s", r->values[i].name);
    }
    memcpy(kept_ops, r->ops, (num_ops < 32 ? num_ops : 32) * sizeof *kept_ops);
    npu_text_free(&report_text);
    report_text = npu_text_init(NULL);
    npu_quantize_report_print(r, &report_text);
}

static const npu_quantize_value *value_called(const char *name)
{
    static const npu_quantize_value none;
    for (uint32_t i = 0; i < num_values; i++) {
        if (strcmp(kept_names[i], name) == 0) {
            return &kept_values[i];
        }
    }
    NPU_CHECK_THAT(false, "the report has no value %s", name);
    return &none;
}

/* ---- graphs and inputs ---- */

static void add_numbers(npu_text *text, const char *name, const char *spec, int count, double scale)
{
    npu_text_printf(text, "const %s : %s {", name, spec);
    for (int i = 0; i < count; i++) {
        npu_text_printf(text, "%s%.6f", i ? ", " : "", scale * ((i * 37 + (int)name[0] * 11) % 201 - 100));
    }
    npu_text_printf(text, "}\n");
}

/* x: [2,4,6,6]; w: [4,4,3,3]; b: [4]; l: [5,36]; m: [3,64]; k: [3]; b5: [5]; n5: [36,5]; d1: [4,1,3,3]; top: [] */
static npu_graph *make_graph(const char *statements, const npu_allocator *allocator)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_graph_desc desc = { .registry = registry, .allocator = allocator };
    npu_text_printf(&text, "npu_ir 1\ngraph main\ninput x : f32[2,4,6,6]\n");
    add_numbers(&text, "w", "f32[4,4,3,3]", 144, 0.002);
    add_numbers(&text, "b", "f32[4]", 4, 0.01);
    add_numbers(&text, "l", "f32[5,36]", 180, 0.003);
    add_numbers(&text, "m", "f32[3,64]", 192, 0.003);
    add_numbers(&text, "k", "f32[3]", 3, 0.01);
    add_numbers(&text, "b5", "f32[5]", 5, 0.01);
    add_numbers(&text, "n5", "f32[36,5]", 180, 0.003);
    add_numbers(&text, "d1", "f32[4,1,3,3]", 36, 0.002);
    npu_text_printf(&text, "const top : f32[] {0.1}\n");
    npu_text_printf(&text, "const mean : f32[4] {0.1, -0.2, 0.05, 0}\nconst var : f32[4] {1, 0.01, 2, 0.0004}\n%s", statements);
    npu_status status = npu_graph_parse(&g, text.data, text.len, &desc, &diag);
    NPU_CHECK_THAT(status == NPU_OK || (allocator && status == NPU_ERR_NO_MEMORY), "%s%s", statements, diag.message);
    npu_text_free(&text);
    return g;
}

static float numbers[SAMPLES][MOST];
static npu_array inputs[SAMPLES];

/* Numbers from -1 to 2, of which -1 and 2 are among the first of the last sample. */
static void make_inputs(void)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < MOST; i++) {
            numbers[s][i] = (float)((i * 97 + s * 31) % 301) / 100.0f - 1.0f;
        }
        inputs[s] = (npu_array){ "x", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 2, 4, 6, 6 }), numbers[s] };
    }
    numbers[SAMPLES - 1][0] = -1.0f;
    numbers[SAMPLES - 1][1] = 2.0f;
}

static npu_quantize_desc default_desc(const npu_backend *const *cpu)
{
    return (npu_quantize_desc){ .backends = cpu, .num_backends = 1, .inputs = inputs, .num_samples = SAMPLES, .report = keep_report };
}

static npu_graph *quantise(const npu_graph *g, const npu_quantize_desc *desc)
{
    npu_graph *q = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_THAT(npu_graph_quantize(&q, g, desc, &diag) == NPU_OK, "%s", diag.message);
    NPU_CHECK_STATUS(q ? npu_graph_validate(q, NULL, NULL) : NPU_ERR_GRAPH, NPU_OK);
    return q;
}

/* Names of ops but quantize and dequantize, with one space between. */
static const char *made_of(const npu_graph *g)
{
    static char text[400];
    text[0] = 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        const char *name = npu_op_definition(g, (npu_op){ i })->name;
        if (!strstr(name, "quantized_decomposed") && strlen(text) + strlen(name) + 2 < sizeof text) {
            strcat(strcat(text, text[0] ? " " : ""), name);
        }
    }
    return text;
}

static npu_graph *integer(const npu_graph *q)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER };
    npu_graph *now = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_THAT(npu_graph_optimize(&now, q, &desc, NULL, &diag) == NPU_OK, "%s", diag.message);
    return now;
}

/* Output 0 on sample s; its number of elements. */
static size_t run_graph(const npu_graph *g, int s, float *out, size_t capacity)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    size_t size = 0;
    NPU_CHECK_THAT(npu_exec_create_simple(&exec, g, &cpu, 1, &diag) == NPU_OK, "%s", diag.message);
    NPU_CHECK_STATUS(npu_exec_set_input_at(exec, 0, &inputs[s]), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const void *y = npu_exec_output(exec, 0, &size);
    NPU_CHECK(y && size <= capacity * sizeof *out);
    if (y && size <= capacity * sizeof *out) {
        memcpy(out, y, size);
    }
    npu_exec_destroy(exec);
    return size / sizeof *out;
}

/* ---- what becomes of a graph ---- */

#define NET                                                                                                                        \
    "c = aten.conv2d.default(x, w, b, [1,1], [1,1])\nn = aten.batch_norm.default(c, none, none, mean, var, false, 0.1, 1e-5, true)\n" \
    "r = aten.relu.default(n)\np = aten.max_pool2d.default(r, [2,2])\nf = aten.flatten.using_ints(p, 1, -1)\n"                     \
    "h = aten.linear.default(f, l)\ny = aten.softmax.int(h, 1)\noutput o = y\n"

static const npu_quantize_rule keep_softmax[] = { { .op = "aten.softmax.int" } };
static const npu_quantize_rule keep_r[] = { { .value = "r" } };
static const npu_quantize_rule keep_weight[] = { { .value = "w" } };
static const npu_quantize_rule range_of_t2[] = { { .value = "t2", .low = -1, .high = 50 } };
static const npu_quantize_rule keep_p[] = { { .op = "p" } };

static const struct { const char *text; const npu_quantize_rule *rule; const char *made; } nets[] = {
    { NET, NULL, "npu.qconv npu.qmax_pool aten.flatten.using_ints npu.qlinear npu.qsoftmax" },
    { NET, keep_softmax, "npu.qconv npu.qmax_pool aten.flatten.using_ints npu.qlinear aten.softmax.int" },
    { NET, keep_r, "npu.qconv aten.relu.default aten.max_pool2d.default aten.flatten.using_ints npu.qlinear npu.qsoftmax" },
    { NET, keep_p, "npu.qconv aten.max_pool2d.default aten.flatten.using_ints npu.qlinear npu.qsoftmax" },
    { "c = aten.conv2d.default(x, w, b)\noutput o = c\n", keep_weight, "aten.conv2d.default" },
    { "a = aten.sigmoid.default(x)\nt = aten.tanh.default(x)\nd = aten.cat.default([a, t], 1)\ne = aten.add.Tensor(a, t)\n"
      "m2 = aten.mul.Tensor(e, x)\noutput o = d\noutput z = m2\n", NULL, "npu.qsigmoid npu.qtanh npu.qcat npu.qadd npu.qmul" },
    { "e = aten.exp.default(x)\na = aten.add.Tensor(e, x)\nr = aten.relu.default(a)\noutput o = r\noutput z = a\n", NULL,
      "aten.exp.default npu.qadd npu.requantise" }, /* an activation whose operand is needed, too */
    { "v = aten.view.default(x, [8, 36])\nt = aten.t.default(l)\nm1 = aten.addmm.default(b5, v, t)\noutput o = m1\n", NULL,
      "aten.view.default npu.qlinear" },
    { "v = aten.view.default(x, [2, 4, 36])\nm1 = aten.matmul.default(v, n5)\noutput o = m1\n", NULL, "aten.view.default npu.qlinear" },
    { "a = aten.add.Tensor(x, x)\np, i = aten.max_pool2d_with_indices.default(a, [2,2])\noutput o = p\n", NULL, "npu.qadd npu.qmax_pool" },
    { "c = aten.conv2d.padding(x, w, b, [1,1], 'same')\noutput o = c\n", NULL, "npu.qconv" },
    { "v = aten.constant_pad_nd.default(x, [1,1,1,1])\nc = aten.conv2d.default(v, w, b)\noutput o = c\n", NULL, "npu.qconv" },
    { "q = aten.matmul.default(x, x)\nd = aten.add.Tensor(q, top)\ns = aten.softmax.int(d, -1)\nm1 = aten.matmul.default(s, x)\n"
      "output o = m1\n", NULL, "aten.matmul.default aten.add.Tensor aten.softmax.int aten.matmul.default" },
    { "q = aten.matmul.default(x, x)\ns = aten.softmax.int(q, -1)\nc = aten.conv2d.default(s, w, b)\noutput o = c\n", NULL,
      "aten.matmul.default npu.qsoftmax npu.qconv" },
    { "d = aten.mul.Scalar(x, 1e-9)\na = aten.add.Tensor(d, d)\noutput o = a\n", NULL, "aten.mul.Scalar npu.qadd" },
    { "s = aten.div.Scalar(x, 1.4142135623730951)\ne = aten.erf.default(s)\na = aten.add.Scalar(e, 1.0)\nm1 = aten.mul.Tensor(x, a)\n"
      "g = aten.mul.Scalar(m1, 0.5)\noutput o = g\n", NULL, "npu.qgelu" },
    { "r = aten.relu.default(x)\ne = aten.exp.default(r)\noutput o = e\n", NULL, "aten.relu.default aten.exp.default" },
    { "c = aten.conv_transpose2d.input(x, w, b, [2,2])\nh = aten.hardtanh.default(c, -0.5, 0.5)\ng = aten.gelu.default(h)\noutput o = g\n",
      NULL, "npu.qconv npu.qgelu" },
    { "c = aten.conv_transpose2d.input(x, d1, b, [2,2], [0,0], [0,0], 4)\nh = aten.minimum.default(c, top)\ng = aten.gelu.default(h)\n"
      "output o = g\n", NULL, "npu.qconv npu.qgelu" },
    { "a = aten.sigmoid.default(x)\ns = aten.sub.Tensor(x, a)\nh = aten.clamp_max.default(s, 0.25)\noutput o = h\n", NULL,
      "npu.qsigmoid npu.qsub" },
    { "v = aten.view.default(x, [8, 36])\nh = aten.linear.default(v, l)\n"
      "p, q, r = aten.split_with_sizes.default(h, [2, 2, 1], -1)\nm1 = aten.mul.Tensor(p, q)\noutput o = m1\n", NULL,
      "aten.view.default npu.qlinear aten.slice.Tensor aten.slice.Tensor npu.qmul" },
    { "a = aten.sigmoid.default(x)\nt, v = aten.chunk.default(a, 2, 1)\ne = aten.add.Tensor(t, v)\noutput o = e\noutput z = t\n",
      NULL, "npu.qsigmoid aten.slice.Tensor aten.slice.Tensor npu.qadd" },
    { "a = aten.tanh.default(x)\np = aten.constant_pad_nd.default(a, [2,0,-1,1])\ne = aten.mul.Tensor(p, p)\noutput o = e\n", NULL,
      "npu.qtanh aten.constant_pad_nd.default npu.qmul" },
    { "a = aten.tanh.default(x)\np = aten.constant_pad_nd.default(a, [2,0], 1)\ne = aten.mul.Tensor(p, p)\noutput o = e\n", NULL,
      "npu.qtanh aten.constant_pad_nd.default npu.qmul" }, /* 1 stays in f32 */
    { "a = aten.tanh.default(x)\ng = aten.glu.default(a, 1)\noutput o = g\n", NULL,
      "npu.qtanh aten.slice.Tensor npu.qsigmoid aten.slice.Tensor npu.qmul" },
    { "u, v = aten.unbind.int(x, 0)\na = aten.sigmoid.default(u)\ne = aten.add.Tensor(a, v)\ns = aten.stack.default([a, e], -2)\n"
      "output o = s\n", NULL, "aten.select.int aten.select.int npu.qsigmoid npu.qadd aten.unsqueeze.default "
      "aten.unsqueeze.default npu.qcat" },
};

static void test_what_is_made(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(nets[i].text, NULL), *q, *now;
        float y[2][2048];
        desc.rules = nets[i].rule;
        desc.num_rules = nets[i].rule != NULL;
        desc.dtype = i % 2 ? NPU_U8 : NPU_NONE;
        q = quantise(g, &desc);
        now = integer(q);
        NPU_CHECK_STR(made_of(now), nets[i].made);
        NPU_CHECK_STR(npu_graph_output_name(now, 0), "o");
        size_t n = run_graph(g, 1, y[0], 2048), m = run_graph(now, 1, y[1], 2048);
        double most = 0, worst = 0;
        NPU_CHECK_EQ(n, m);
        for (size_t k = 0; k < n; k++) {
            most = fmax(most, fabs((double)y[0][k]));
            worst = fmax(worst, fabs((double)y[0][k] - (double)y[1][k]));
        }
        NPU_CHECK_THAT(worst <= 0.06 * most && most > 0, "%s: off by %g of %g", nets[i].text, worst, most);
        npu_graph_destroy(now);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* Along which dim of a weight its scales lie; -1 = it has one scale. */
static const struct { const char *text; int64_t axis; } axes[] = {
    { "c = aten.conv2d.default(x, w, b)\noutput o = c\n", 0 },
    { "c = aten.conv2d.default(x, d1, b, [1,1], [0,0], [1,1], 4)\noutput o = c\n", 0 },
    { "c = aten.conv_transpose2d.input(x, w, b)\noutput o = c\n", 1 },
    { "c = aten.conv_transpose2d.input(x, d1, b, [1,1], [0,0], [0,0], 4)\noutput o = c\n", 0 },
    { "c = aten.conv_transpose2d.input(x, w, none, [1,1], [0,0], [0,0], 2)\noutput o = c\n", -1 },
};

static void test_weight_axes(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(axes[i].text, NULL), *q = quantise(g, &desc);
        int64_t axis = -1;
        for (uint32_t k = 1; q && k <= npu_graph_num_ops(q); k++) {
            npu_op_storage storage;
            npu_op_info info;
            memset(&storage, 0, sizeof storage);
            if (npu_op_kind(q, (npu_op){ k }) == NPU_QUANTIZED_DEQUANTIZE_PER_CHANNEL) {
                NPU_CHECK_STATUS(npu_op_describe(q, (npu_op){ k }, &info, &storage), NPU_OK);
                axis = npu_op_int(&info, "axis", -1);
            }
            npu_op_storage_free(&storage);
        }
        NPU_CHECK_THAT(axis == axes[i].axis, "%s: axis %d, expected %d", axes[i].text, (int)axis, (int)axes[i].axis);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* ---- scales ---- */

/* Steps of one weight of 36 elements a channel, with 12 bytes of their own each: of four steps scales are shared, also of
   s, which no product reads. */
static const struct { int steps; const npu_quantize_rule *rule; bool is_shared; } loops[] = {
    { 3, NULL, false }, { 4, NULL, true }, { 4, range_of_t2, true }
};

static void test_loops(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_text_printf(&text, "t0 = aten.mul.Tensor(x, x)\ns0 = aten.tanh.default(x)\n");
        for (int k = 1; k <= loops[i].steps; k++) {
            npu_text_printf(&text, "c%d = aten.conv2d.default(t%d, w, b, [1,1], [1,1])\nh%d = aten.add.Tensor(c%d, t0)\n"
                            "t%d = aten.hardswish.default(h%d)\n", k, k - 1, k, k, k, k);
            npu_text_printf(&text, "s%d = aten.add.Tensor(t%d, s%d)\n", k, k, k - 1);
        }
        npu_text_printf(&text, "output o = s%d\n", loops[i].steps);
        npu_graph *g = make_graph(text.data, NULL), *q;
        npu_quantize_desc desc = default_desc(&cpu);
        desc.rules = loops[i].rule;
        desc.num_rules = loops[i].rule != NULL;
        q = quantise(g, &desc);
        for (const char *name = loops[i].rule ? "cht" : "chts"; *name; name++) { /* with a rule t2 is no longer as t1 */
            const char a[] = { *name, '1', 0 }, b[] = { *name, '3', 0 };
            bool is_shared = value_called(a)->scale == value_called(b)->scale && value_called(a)->zero == value_called(b)->zero;
            NPU_CHECK_THAT(is_shared == loops[i].is_shared, "%d steps: %s and %s have scales %g and %g", loops[i].steps, a, b,
                           value_called(a)->scale, value_called(b)->scale);
        }
        NPU_CHECK(!loops[i].rule || value_called("t2")->scale == (double)(float)(51.0 / 255.0));
        npu_text_free(&text);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* Layers that only look alike keep scales of their own: one step is no loop, whatever its weight has. */
static void test_no_loop(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    npu_graph *g = make_graph("a = aten.conv2d.default(x, d1, b, [1,1], [1,1], [1,1], 4)\ns = aten.add.Tensor(a, x)\n"
                              "c = aten.conv2d.default(s, w, b, [1,1], [1,1])\nt = aten.add.Tensor(c, s)\n"
                              "e = aten.conv2d.default(t, w, b, [1,1], [1,1])\nu = aten.add.Tensor(e, t)\noutput o = u\n", NULL);
    npu_graph_destroy(quantise(g, &desc));
    NPU_CHECK(value_called("a")->scale != value_called("c")->scale && value_called("s")->scale != value_called("t")->scale &&
              value_called("t")->scale != value_called("u")->scale);
    npu_graph_destroy(g);
}

/* The range of numbers that are known, by hand. */
static void test_scales(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    static const npu_quantize_rule range[] = { { .value = "t", .low = -0.5, .high = 2.0 } };
    npu_graph *g = make_graph("r = aten.relu.default(x)\na = aten.add.Tensor(x, x)\nt = aten.tanh.default(a)\ns = aten.sigmoid.default(a)\n"
                              "v = aten.view.default(a, [2, 144])\noutput o = t\noutput z = s\noutput u = v\noutput i = r\n", NULL), *q;
    const npu_quantize_value *v;
    num_calls = 0;
    npu_graph_destroy(quantise(g, &desc));
    NPU_CHECK_EQ(num_calls, 1);
    v = value_called("x"); /* -1 to 2 */
    NPU_CHECK_NEAR(v->low, -1.0, 0);
    NPU_CHECK_NEAR(v->high, 2.0, 0);
    NPU_CHECK_NEAR(v->scale, 3.0 / 255, 1e-9);
    NPU_CHECK_EQ(v->zero, -128 + 85);
    NPU_CHECK_NEAR(v->saturated, 0.0, 0);
    NPU_CHECK(v->snr > 40 && v->snr < 60);
    NPU_CHECK_NEAR(value_called("a")->scale, 6.0 / 255, 1e-8);
    NPU_CHECK_NEAR(value_called("v")->scale, value_called("a")->scale, 0); /* a view */
    NPU_CHECK_EQ(value_called("v")->zero, value_called("a")->zero);
    NPU_CHECK_NEAR(value_called("t")->scale, 1.0 / 128, 0);
    NPU_CHECK_EQ(value_called("t")->zero, 0);
    NPU_CHECK_NEAR(value_called("s")->scale, 1.0 / 256, 0);
    NPU_CHECK_EQ(value_called("s")->zero, -128);
    NPU_CHECK(strstr(report_text.data, "aten.relu.default") && strstr(report_text.data, "stays: what it reads is in floating point"));
    NPU_CHECK_THAT(strstr(report_text.data, " ops are quantised: no losses, as none were measured\n"), "%s", report_text.data);
    desc.dtype = NPU_U8;
    desc.rules = range, desc.num_rules = 1;
    q = quantise(g, &desc);
    NPU_CHECK_EQ(value_called("x")->zero, 85);
    NPU_CHECK_NEAR(value_called("t")->scale, 2.5 / 255, 1e-9);
    NPU_CHECK_EQ(value_called("t")->zero, 51);
    NPU_CHECK(value_called("t")->saturated > 0.1); /* what lies below -0.5 */
    npu_graph_destroy(q);
    npu_graph_destroy(g);
}

/* One element in 1152 is 50: nearly all others lie in the range that holds 99 %. */
static void test_percentile(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    npu_graph *g = make_graph("a = aten.add.Tensor(x, x)\noutput o = a\n", NULL);
    numbers[2][7] = 50.0f;
    npu_graph_destroy(quantise(g, &desc));
    NPU_CHECK_NEAR(value_called("x")->scale, 51.0 / 255, 1e-7);
    double snr = value_called("x")->snr;
    desc.percentile = 99.0;
    npu_graph_destroy(quantise(g, &desc));
    NPU_CHECK_THAT(fabs(value_called("x")->scale - 3.0 / 255) < 0.06 / 255, "%g", value_called("x")->scale);
    NPU_CHECK(value_called("x")->saturated > 0.0005 && value_called("x")->saturated < 0.02);
    NPU_CHECK_NEAR(value_called("x")->high, 50.0, 0); /* what was observed */
    NPU_CHECK(value_called("x")->snr < snr); /* that one element weighs more than all others */
    npu_graph_destroy(g);
    make_inputs();
}

/* Every channel of a weight of its own scale: the largest becomes 127, and all are within half a step. */
static void test_weights(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(NET, NULL), *q;
        uint32_t found = 0;
        desc.per_tensor = per_tensor != 0;
        q = quantise(g, &desc);
        for (uint32_t i = 1; i <= npu_graph_num_ops(q); i++) {
            npu_value stored = npu_op_operand_value(q, (npu_op){ i }, 0);
            const char *name = npu_op_definition(q, (npu_op){ i })->name;
            const int8_t *w = (const int8_t *)npu_value_data(q, stored, NULL);
            const npu_spec *spec = npu_value_spec(q, stored);
            int most = 0;
            if (!w || spec->dtype != NPU_I8) {
                continue;
            }
            found++;
            NPU_CHECK(strstr(name, per_tensor ? "dequantize_per_tensor" : "dequantize_per_channel"));
            size_t len = 1;
            for (uint32_t k = 0; k < spec->rank; k++) {
                len *= (size_t)spec->dims[k];
            }
            size_t row = len / (size_t)spec->dims[0];
            for (size_t k = 0; k < len; k++) {
                most = abs(w[k]) > most ? abs(w[k]) : most;
                if ((k + 1) % row == 0 && !per_tensor) {
                    NPU_CHECK_EQ(most, 127);
                    most = 0;
                }
            }
            NPU_CHECK_EQ(per_tensor ? most : 127, 127);
        }
        NPU_CHECK_EQ(found, 2);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* What every op costs alone, and all together; the one that costs most stands first. */
static void test_losses(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    /* t's range leaves out most of it: that op hurts */
    npu_quantize_rule narrow = { .value = "t", .low = 0.0, .high = 0.1 };
    npu_graph *g = make_graph("a = aten.add.Tensor(x, x)\nt = aten.tanh.default(a)\ny = aten.mul.Tensor(t, x)\noutput o = y\n", NULL);
    desc.num_measured = 2;
    desc.rules = &narrow, desc.num_rules = 1;
    npu_graph_destroy(quantise(g, &desc));
    NPU_CHECK_EQ(num_ops, 3);
    for (uint32_t i = 0; i < num_ops; i++) {
        NPU_CHECK(kept_ops[i].is_measured && !kept_ops[i].reason);
        NPU_CHECK_EQ(kept_ops[i].loss.num_elements, 2 * 288);
    }
    NPU_CHECK(kept_ops[1].loss.mean_diff > 10 * kept_ops[0].loss.mean_diff && kept_ops[0].loss.mean_diff > 0);
    NPU_CHECK(kept_loss.mean_diff > 10 * kept_ops[0].loss.mean_diff && kept_loss.num_elements == 2 * 288);
    const char *tanh_at = strstr(report_text.data, "aten.tanh.default"), *add_at = strstr(report_text.data, "aten.add.Tensor");
    NPU_CHECK(tanh_at && add_at && tanh_at < add_at && strstr(add_at, "all: mean loss"));
    NPU_CHECK(!strstr(report_text.data, "no losses"));
    npu_graph_destroy(g);
}

/* Other numbers, other sizes: how many different ones there are, nobody can compare. What has its size is measured. */
static void test_losses_of_other_sizes(void)
{
    static const struct { const char *text, *words; uint64_t num; } rows[] = {
        { "t = aten.tanh.default(x)\nu, p, q = aten._unique2.default(t)\noutput u = u\n", "all: not comparable", 0 },
        { "t = aten.tanh.default(x)\nu, p, q = aten._unique2.default(t)\noutput u = u\noutput t = t\n",
          "; not comparable: outputs of other sizes\naten._unique2", 2 * 288 },
    };
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_rule narrow = { .value = "t", .low = 0.0, .high = 0.1 }; /* most elements become one */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(rows[i].text, NULL);
        desc.num_measured = 2;
        desc.rules = &narrow, desc.num_rules = 1;
        npu_graph_destroy(quantise(g, &desc));
        NPU_CHECK_THAT(strstr(report_text.data, rows[i].words), "%s", report_text.data);
        NPU_CHECK_EQ(kept_loss.num_elements, rows[i].num);
        NPU_CHECK_EQ(kept_loss.status, NPU_ERR_SHAPE);
        NPU_CHECK(kept_ops[0].is_measured && kept_ops[0].loss.status == NPU_ERR_SHAPE);
        NPU_CHECK_EQ(kept_ops[0].loss.num_elements, rows[i].num);
        NPU_CHECK((kept_ops[0].loss.mean_diff > 0) == (rows[i].num > 0));
        npu_graph_destroy(g);
    }
}

/* The mean of each channel comes nearer, over what was calibrated on. */
static double mean_error(bool correct_bias)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    npu_graph *g = make_graph("c = aten.conv2d.default(x, w, b)\noutput o = c\n", NULL), *q;
    double sum = 0;
    float y[2][256];
    desc.correct_bias = correct_bias;
    desc.per_tensor = true;
    q = quantise(g, &desc);
    for (int channel = 0; channel < 4; channel++) {
        double error = 0;
        for (int s = 0; s < SAMPLES; s++) {
            run_graph(g, s, y[0], 256);
            run_graph(q, s, y[1], 256);
            for (int k = 0; k < 128; k++) {
                error += k / 16 % 4 == channel ? (double)y[0][k] - (double)y[1][k] : 0;
            }
        }
        sum += fabs(error);
    }
    npu_graph_destroy(q);
    npu_graph_destroy(g);
    return sum;
}

static void test_bias_correction(void)
{
    double before = mean_error(false), after = mean_error(true);
    NPU_CHECK_THAT(after < 0.7 * before, "%g, was %g", after, before);
}

/* ---- weights alone ---- */

/* [2,4,6,6] as rows of 36 or 64: what rounding weights, of at most 0.3, by half a step may change. */
static void test_weights_alone(void)
{
    static const char *const texts[] = {
        "v = aten.view.default(x, [2, 4, 36])\ny = aten.linear.default(v, l)\noutput o = y\n",
        "v = aten.view.default(x, [8, 36])\nc = aten.slice.Tensor(v, 1, 0, 32)\nd = aten.cat.default([c, c], 1)\n"
        "y = aten.linear.default(d, m, k)\noutput o = y\n",
    };
    static const struct { uint32_t form, text, group; bool asymmetric; const char *made; double bound; } rows[] = {
        { NPU_QUANTIZE_WEIGHTS8, 0, 0, false, "aten._weight_int8pack_mm.default", 0.3 / 254 },
        { NPU_QUANTIZE_WEIGHTS8, 1, 0, false, "aten._weight_int8pack_mm.default", 0.3 / 254 },
        { NPU_QUANTIZE_WEIGHTS4, 1, 0, false, "aten._weight_int4pack_mm_for_cpu.default", 0.3 / 14 },
        { NPU_QUANTIZE_WEIGHTS4, 1, 64, false, "aten._weight_int4pack_mm_for_cpu.default", 0.3 / 14 },
        { NPU_QUANTIZE_WEIGHTS4, 1, 64, true, "aten._weight_int4pack_mm_for_cpu.default", 0.6 / 30 },
    };
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .form = rows[i].form, .group = rows[i].group,
                                   .asymmetric = rows[i].asymmetric };
        npu_graph *g = make_graph(texts[rows[i].text], NULL), *q = quantise(g, &desc);
        float y[2][64];
        size_t n = run_graph(g, 0, y[0], 64), m = run_graph(q, 0, y[1], 64);
        double worst = 0, sum = 64 * 2.0; /* the most that a row of x makes of the error of each weight */
        NPU_CHECK(strstr(made_of(q), rows[i].made) && !strstr(made_of(q), "linear"));
        NPU_CHECK_EQ(n, m);
        for (size_t k = 0; k < n; k++) {
            worst = fmax(worst, fabs((double)y[0][k] - (double)y[1][k]));
        }
        NPU_CHECK_THAT(worst <= sum * rows[i].bound && worst > 0, "row %d: off by %g, at most %g", (int)i, worst, sum * rows[i].bound);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* What a rule leaves is no slower than it was: a weight is turned around once, however large it is. */
static void test_large_weight(void)
{
    enum { K = 64, N = 70000 };
    const npu_backend *cpu = npu_ref_backend();
    const npu_quantize_rule rule = { .op = "aten.linear.default" };
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .form = NPU_QUANTIZE_WEIGHTS8, .rules = &rule,
                               .num_rules = 1 };
    float *w = (float *)calloc((size_t)K * N, sizeof *w);
    NPU_CHECK(w != NULL);
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, K }));
    npu_spec spec = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ K, N });
    npu_output(g, "y", npu_matmul(g, x, npu_constant_ref(g, NULL, spec, w)));
    npu_graph *q = quantise(g, &desc);
    NPU_CHECK_STR(made_of(q), "aten.linear.default");
    npu_graph_destroy(q);
    npu_graph_destroy(g);
    free(w);
}

/* ---- the same at any number of threads ---- */

static void test_threads(void)
{
    npu_text text[2] = { npu_text_init(NULL), npu_text_init(NULL) };
    for (uint32_t i = 0; i < 2; i++) {
        const npu_backend *cpu = npu_ref_backend();
        npu_quantize_desc desc = default_desc(&cpu);
        npu_parallel *parallel = NULL;
        npu_graph *g = make_graph(NET, NULL), *q;
        NPU_CHECK_STATUS(npu_threads_create(&parallel, &(npu_threads_desc){ .width = i ? 3 : 1 }), NPU_OK);
        desc.parallel = parallel;
        desc.percentile = 99.9;
        desc.correct_bias = true;
        desc.num_measured = 2;
        q = quantise(g, &desc);
        npu_graph_print(q, &text[i]);
        npu_text_append(&text[i], report_text.data, report_text.len);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
        npu_threads_destroy(parallel);
    }
    NPU_CHECK_STR(text[0].data, text[1].data);
    npu_text_free(&text[0]);
    npu_text_free(&text[1]);
}

/* ---- what is refused ---- */

static bool cancel_third(void *ctx, uint32_t done, uint32_t total)
{
    uint32_t *calls = (uint32_t *)ctx;
    NPU_CHECK_EQ(done, ++*calls);
    NPU_CHECK_EQ(total, 2 * SAMPLES); /* ranges and noise */
    return *calls < 3;
}

static const npu_quantize_rule unknown_op[] = { { .op = "aten.conv3d.default" } }, unknown_value[] = { { .value = "nobody" } };
static const npu_quantize_rule no_range[] = { { .value = "x", .low = 1, .high = -1 } }, nan_range[] = { { .value = "x", .high = (double)NAN } };
static const npu_quantize_rule endless[] = { { .value = "x", .high = (double)INFINITY } }, both[] = { { .op = "a", .value = "x" } };

typedef enum spoil {
    GOOD, NO_DATA, ALL_NAN, ONE_INF, ALL_ALIKE, WRONG_DIMS, NO_INPUTS, HAS_CANARY, FAILED_GRAPH, NO_HOST,
    NO_BACKENDS, NULL_BACKENDS, MANY_BACKENDS, BAD_BACKEND
} spoil;
#define ADD "a = aten.add.Tensor(x, x)\noutput o = a\n"
static const struct { const char *name; npu_quantize_desc desc; spoil how; npu_status status; const char *words; } refused[] = {
    { "no samples", { .num_samples = 0 }, GOOD, NPU_ERR_MISSING_FEED, "0 samples are given" },
    { "no inputs", { .num_samples = 2 }, NO_INPUTS, NPU_ERR_MISSING_FEED, "0 samples are given, expected at least 1" },
    { "fewer samples than are measured", { .num_samples = 2, .num_measured = 3 }, GOOD, NPU_ERR_MISSING_FEED, "expected at least 3" },
    { "an input without data", { .num_samples = 2 }, NO_DATA, NPU_ERR_MISSING_FEED, "sample 1: input 'x' has no data" },
    { "NaN", { .num_samples = 2 }, ALL_NAN, NPU_ERR_RANGE, "sample 1: value 'x' has NaN or infinity" },
    { "infinity", { .num_samples = 2 }, ONE_INF, NPU_ERR_RANGE, "sample 1: value 'x' has NaN or infinity" },
    { "constant", { .num_samples = 2 }, ALL_ALIKE, NPU_ERR_RANGE, "input 'x' is 0.5 everywhere" },
    { "other dims", { .num_samples = 2 }, WRONG_DIMS, NPU_ERR_RANK, "sample 1" },
    { "form", { .num_samples = 2, .form = 3 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "form is 3" },
    { "dtype", { .num_samples = 2, .dtype = NPU_I16 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "dtype is i16, expected i8 or u8" },
    { "group", { .num_samples = 2, .group = 48 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "group is 48, expected 32, 64 or 128" },
    { "percentile", { .num_samples = 2, .percentile = 100.5 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "percentile is 100.5" },
    { "percentile NaN", { .num_samples = 2, .percentile = (double)NAN }, GOOD, NPU_ERR_INVALID_ARGUMENT, "percentile" },
    { "canary", { .num_samples = 2 }, HAS_CANARY, NPU_ERR_INVALID_ARGUMENT, "not zeroed" },
    { "a failed graph", { .num_samples = 2 }, FAILED_GRAPH, NPU_ERR_GRAPH, "" },
    { "no host", { .num_samples = 2 }, NO_HOST, NPU_ERR_UNSUPPORTED, "host memory" },
    { "a rule for no op", { .num_samples = 2, .rules = unknown_op, .num_rules = 1 }, GOOD, NPU_ERR_NOT_FOUND, "no op 'aten.conv3d.default', a kind, an op's name or" },
    { "a rule for no value", { .num_samples = 2, .rules = unknown_value, .num_rules = 1 }, GOOD, NPU_ERR_NOT_FOUND, "no value 'nobody'" },
    { "a rule for both", { .num_samples = 2, .rules = both, .num_rules = 1 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "one of op and value" },
    { "a range that is none", { .num_samples = 2, .rules = no_range, .num_rules = 1 }, GOOD, NPU_ERR_RANGE, "1 to -1" },
    { "a range of NaN", { .num_samples = 2, .rules = nan_range, .num_rules = 1 }, GOOD, NPU_ERR_RANGE, "is none" },
    { "a range without end", { .num_samples = 2, .rules = endless, .num_rules = 1 }, GOOD, NPU_ERR_RANGE, "is none" },
    { "no backends", { .num_samples = 2 }, NO_BACKENDS, NPU_ERR_INVALID_ARGUMENT, "has 0 backends" },
    { "backends that are NULL", { .num_samples = 2 }, NULL_BACKENDS, NPU_ERR_INVALID_ARGUMENT, "has 0 backends" },
    { "too many backends", { .num_samples = 2 }, MANY_BACKENDS, NPU_ERR_INVALID_ARGUMENT, "backends, expected 1 to 32" },
    { "a backend that is none", { .num_samples = 2 }, BAD_BACKEND, NPU_ERR_INVALID_ARGUMENT, "'supports' is required" },
    { "a percentile below 0", { .num_samples = 2, .percentile = -1 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "percentile" },
    { "u8, groups of 32", { .dtype = NPU_U8, .group = 32 }, GOOD, NPU_ERR_MISSING_FEED, "0 samples are given" },
    { "i8, groups of 64", { .dtype = NPU_I8, .group = 64 }, GOOD, NPU_ERR_MISSING_FEED, "0 samples are given" },
    { "groups of 128", { .group = 128 }, GOOD, NPU_ERR_MISSING_FEED, "0 samples are given" },
    { "rules that are NULL", { .num_samples = 2, .num_rules = 1 }, GOOD, NPU_ERR_INVALID_ARGUMENT, "rules is NULL" },
};

static void refuse(npu_quantize_desc desc, spoil how, npu_status status, const char *words, const char *name)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_backend device = *cpu;
    const npu_backend *no_host = &device;
    npu_array arrays[2] = { inputs[0], inputs[1] };
    npu_graph *g = make_graph(ADD, NULL), *q = (npu_graph *)&device;
    npu_diag diag = { 0 };
    float spoiled[288], alike[288];
    memcpy(spoiled, numbers[1], sizeof spoiled);
    for (int i = 0; i < 288; i++) {
        spoiled[i] = how == ALL_NAN ? NAN : spoiled[i];
        alike[i] = 0.5f;
    }
    spoiled[200] = how == ONE_INF ? INFINITY : spoiled[200];
    arrays[1].data = how == NO_DATA ? NULL : spoiled;
    arrays[1].spec.rank = how == WRONG_DIMS ? 3 : 4;
    arrays[0].data = how == ALL_ALIKE ? alike : arrays[0].data;
    arrays[1].data = how == ALL_ALIKE ? alike : arrays[1].data;
    device.op_call = NULL;
    if (how == BAD_BACKEND) {
        device.supports = NULL;
    }
    desc.backends = how == NULL_BACKENDS ? NULL : how == NO_HOST || how == BAD_BACKEND ? &no_host : &cpu;
    desc.num_backends = how == NO_BACKENDS ? 0 : how == MANY_BACKENDS ? 1000 : 1;
    desc.inputs = how == NO_INPUTS ? NULL : arrays;
    desc._canary = how == HAS_CANARY;
    if (how == FAILED_GRAPH) {
        npu_relu(g, (npu_value){ 99 });
    }
    NPU_CHECK_THAT(npu_graph_quantize(&q, g, &desc, &diag) == status, "%s: %s, %s", name, npu_status_text(diag.status), diag.message);
    NPU_CHECK_THAT(diag.status == status && strstr(diag.message, words), "%s: \"%s\", expected \"%s\"", name, diag.message, words);
    NPU_CHECK(!q);
    npu_graph_destroy(g);
}

/* A mask of minus infinity: what makes it, adds to it and takes its softmax stays, the rest is quantised as without. */
static void test_infinite_masks(void)
{
    static const char *const masked[] = {
        "v = aten.view.default(x, [2,4,36])\ns = aten.linear.default(v, l, b5)\n"
        "const n : bool[5] {false,true,false,false,true}\nf = aten.masked_fill.Scalar(s, n, -inf)\n"
        "p = aten.softmax.int(f, -1)\ny = aten.mul.Tensor(p, p)\noutput y = y\n",
        "v = aten.view.default(x, [2,4,36])\ns = aten.linear.default(v, l, b5)\nconst n : f32[5] {0,-inf,0,0,-inf}\n"
        "f = aten.add.Tensor(s, n)\np = aten.softmax.int(f, -1)\ny = aten.mul.Tensor(p, p)\noutput y = y\n",
    };
    for (size_t i = 0; i < sizeof masked / sizeof masked[0]; i++) {
        const npu_backend *cpu = npu_ref_backend();
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(masked[i], NULL), *q = quantise(g, &desc);
        npu_text text = npu_text_init(NULL);
        npu_graph_print(q, &text);
        NPU_CHECK_THAT(strstr(report_text.data, "stays: a value that it makes or reads has NaN or infinity"), "%s",
                       report_text.data);
        NPU_CHECK_THAT(text.data && strstr(text.data, "dequantize_per_channel"), "net %u: its linear is not quantised",
                       (unsigned)i);
        npu_text_free(&text);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

static void test_refusals(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_quantize_desc desc = default_desc(&cpu);
    npu_graph *g = make_graph(ADD, NULL), *q = NULL;
    npu_diag diag = { 0 };
    uint32_t calls = 0;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        refuse(refused[i].desc, refused[i].how, refused[i].status, refused[i].words, refused[i].name);
    }
    NPU_CHECK_STATUS(npu_graph_quantize(NULL, g, &desc, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_quantize(&q, g, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_quantize(&q, NULL, &desc, NULL), NPU_ERR_GRAPH);
    desc.progress = cancel_third;
    desc.progress_ctx = &calls;
    NPU_CHECK_STATUS(npu_graph_quantize(&q, g, &desc, &diag), NPU_ERR_CANCELLED);
    NPU_CHECK(!q && calls == 3);
    npu_graph_destroy(g);
    /* no value at all: nothing to do */
    desc = (npu_quantize_desc){ .backends = &cpu, .num_backends = 1, .form = NPU_QUANTIZE_WEIGHTS4 };
    g = npu_graph_create(npu_test_graph_desc());
    npu_emit_name(g, "aten.sym_constrain_range.default", &(npu_arg){ .name = "size", .form = NPU_ARG_INT }, 1);
    npu_graph_destroy(quantise(g, &desc));
    npu_graph_destroy(g);
}

/* Ops stay, and the report says why. */
static const struct { const char *text, *reason; } stay[] = {
    { "a = aten.add.Tensor(x, x, alpha=2)\noutput o = a\n", "it has an argument that its integer twin has not" },
    { "e = aten.exp.default(x)\noutput o = e\n", "no op on integers stands for it" },
    { "a = aten.add.Tensor(x, 1.5)\noutput o = a\n", "an operand" },
    { "d = aten.to.dtype(x, f64)\na = aten.add.Tensor(d, d)\noutput o = a\n", "its result is not f32" },
};

static void test_what_stays(void)
{
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++) {
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(stay[i].text, NULL), *q = quantise(g, &desc);
        NPU_CHECK_EQ(num_values, 0);
        NPU_CHECK_THAT(strstr(report_text.data, stay[i].reason), "%s: %s", stay[i].reason, report_text.data);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* One op or value that cannot be quantised, or has no elements, refuses nothing: the others are quantised as they would
   be without it. */
static void test_one_stays(void)
{
#define ROWS64 "v = aten.view.default(x, [4, 72])\nr = aten.slice.Tensor(v, 1, 0, 64)\n"
#define TWO(bad) ROWS64 "h = aten.linear.default(r, m, k)\n" bad "\noutput o = h\noutput y = y\n"
    static const struct { uint32_t form; const char *text, *reason, *made; } rows[] = {
        { NPU_QUANTIZE_WEIGHTS4, TWO("e = aten.view.default(x, [8, 36])\ny = aten.linear.default(e, l)"), "groups do not divide",
          "aten.linear.default" },
        { NPU_QUANTIZE_WEIGHTS4, TWO("e = aten.full.default([3, 64], nan)\ny = aten.linear.default(r, e)"), "NaN", "aten.linear.default" },
        { NPU_QUANTIZE_WEIGHTS8, TWO("e = aten.full.default([3, 64], -inf)\ny = aten.linear.default(r, e)"), "NaN", "aten.linear.default" },
        { NPU_QUANTIZE_WEIGHTS8, TWO("s = aten.slice.Tensor(r, 1, 0, 0)\ne = aten.zeros.default([3, 0])\ny = aten.linear.default(s, e)"),
          "no elements", "aten.linear.default" },
        { NPU_QUANTIZE_8BIT, TWO("e = aten.full.default([3, 64], nan)\ny = aten.linear.default(r, e)"), "NaN", "aten.linear.default" },
        { NPU_QUANTIZE_8BIT, TWO("e = aten.sqrt.default(r)\ny = aten.add.Tensor(e, e)"), "NaN", "aten.add.Tensor" },
        { NPU_QUANTIZE_8BIT, TWO("e = aten.slice.Tensor(h, 0, 4)\ny = aten.add.Tensor(e, e)"), NULL, "npu.qadd" },
        { NPU_QUANTIZE_8BIT, TWO("c = aten.gt.Scalar(r, 1e9)\ne = aten.masked_select.default(r, c)\ny = aten.add.Tensor(e, e)"), NULL, "npu.qadd" },
        { NPU_QUANTIZE_8BIT, TWO("s = aten.slice.Tensor(r, 0, 4)\ny = aten.linear.default(s, m, k)"), NULL, "npu.qlinear" },
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const npu_backend *cpu = npu_ref_backend();
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g = make_graph(rows[i / 2].text, NULL), *q, *now;
        float y[2][64];
        size_t n;
        desc.form = rows[i / 2].form;
        desc.num_measured = i % 2; /* plainly, and with all there is */
        desc.correct_bias = i % 2;
        desc.percentile = i % 2 ? 99.9 : 0.0;
        q = quantise(g, &desc);
        now = integer(q);
        NPU_CHECK_THAT(strstr(made_of(now), rows[i / 2].made), "row %d: %s", (int)i / 2, made_of(now));
        NPU_CHECK_THAT(strstr(made_of(now), desc.form == NPU_QUANTIZE_8BIT ? "npu.qlinear" : "pack_mm"), "row %d: %s", (int)i / 2, made_of(now));
        NPU_CHECK_THAT(rows[i / 2].reason ? strstr(report_text.data, rows[i / 2].reason) != NULL : !strstr(report_text.data, "nan"),
                       "row %d: %s", (int)i / 2, report_text.data);
        n = run_graph(g, 0, y[0], 64);
        NPU_CHECK_EQ(run_graph(now, 0, y[1], 64), n);
        for (size_t k = 0; k < n; k++) {
            NPU_CHECK_THAT(fabs((double)y[0][k] - (double)y[1][k]) < 1.5, "row %d: %g, was %g", (int)i / 2, (double)y[1][k], (double)y[0][k]);
        }
        npu_graph_destroy(now);
        npu_graph_destroy(q);
        npu_graph_destroy(g);
    }
}

/* A sum of 66,000 products may exceed 32 bits: the op stays. */
static void test_accumulator(void)
{
    static float row[66000];
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry }), *q;
    npu_quantize_desc desc = default_desc(&cpu);
    npu_spec spec = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, 66000 });
    npu_array in = { "x", spec, row };
    npu_value none = { 0 }, x = npu_input(g, "x", spec);
    row[0] = 1.0f;
    npu_output(g, "o", npu_linear(g, x, npu_constant(g, "w", spec, row), none));
    desc.inputs = &in;
    desc.num_samples = 1;
    q = quantise(g, &desc);
    NPU_CHECK(kept_ops[0].reason && strstr(kept_ops[0].reason, "32 bits"));
    npu_graph_destroy(q);
    npu_graph_destroy(g);
}

/* Every allocation fails in turn: NO_MEMORY, and nothing is left. */
static void test_no_memory(void)
{
    const npu_backend *cpu = npu_ref_backend();
    uint64_t n = 0;
    npu_status status = NPU_ERR_NO_MEMORY;
    while (status != NPU_OK && n < 100000) {
        npu_alloc_counter c;
        npu_allocator a = npu_allocator_counting(&c);
        npu_quantize_desc desc = default_desc(&cpu);
        npu_graph *g, *q = NULL;
        npu_diag diag = { 0 };
        memset(&c, 0, sizeof c);
        g = make_graph("c = aten.conv2d.default(x, w, b)\nr = aten.relu.default(c)\noutput o = r\n", &a);
        desc.num_samples = 1;
        desc.report = NULL;
        c.num_calls = 0;
        n += n < 40 ? 1 : 7;
        c.fail_at = n;
        status = npu_graph_quantize(&q, g, &desc, &diag);
        NPU_CHECK_THAT(status == NPU_OK || status == NPU_ERR_NO_MEMORY, "allocation %d: %s", (int)n, diag.message);
        NPU_CHECK((status == NPU_OK) == (q != NULL));
        status = status == NPU_OK && c.num_calls >= n ? NPU_ERR_NO_MEMORY : status; /* it did without */
        npu_graph_destroy(q);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(c.live_bytes, 0);
    }
    NPU_CHECK(n > 50 && status == NPU_OK);
}

int main(void)
{
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    report_text = npu_text_init(NULL);
    make_inputs();
    NPU_RUN(test_what_is_made);
    NPU_RUN(test_weight_axes);
    NPU_RUN(test_loops);
    NPU_RUN(test_no_loop);
    NPU_RUN(test_scales);
    NPU_RUN(test_percentile);
    NPU_RUN(test_weights);
    NPU_RUN(test_losses);
    NPU_RUN(test_losses_of_other_sizes);
    NPU_RUN(test_bias_correction);
    NPU_RUN(test_weights_alone);
    NPU_RUN(test_large_weight);
    NPU_RUN(test_threads);
    NPU_RUN(test_infinite_masks);
    NPU_RUN(test_refusals);
    NPU_RUN(test_one_stays);
    NPU_RUN(test_what_stays);
    NPU_RUN(test_accumulator);
    NPU_RUN(test_no_memory);
    npu_text_free(&report_text);
    npu_registry_destroy(registry);
    return npu_test_done();
}
