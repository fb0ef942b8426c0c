/* Ops that exporters write for others: flash attention, depthwise convolutions, max and min of two tensors, resized
   storage. Each is compared with what it means in ops that PyTorch's vectors test. Fourier transforms against their
   definition. */
#include "isa.h"
#include "rig.h"

static float numbers[4096];

/* The graph of a text; its inputs are bound to the same numbers. */
static npu_exec *exec_of(const char *text, npu_graph **g)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    if (npu_graph_parse(g, text, strlen(text), NULL, &diag) || npu_exec_create_simple(&exec, *g, &cpu, 1, &diag)) {
        fprintf(stderr, "%s\n%s\n", text, diag.message);
        NPU_CHECK(exec);
        return NULL;
    }
    for (uint32_t i = 0; i < npu_graph_num_inputs(*g); i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(*g, npu_graph_input(*g, i)), &size);
        NPU_CHECK_STATUS(npu_test_input_at(exec, i, numbers + i, size), NPU_OK);
    }
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    return exec;
}

static npu_array output_of(const npu_exec *exec, uint32_t i)
{
    npu_array a = { NULL, *npu_exec_output_spec(exec, i), npu_exec_output(exec, i, NULL) };
    return a;
}

/* Output 2 i of the text against output 2 i + 1. */
static void check_pairs(const char *text, double tolerance)
{
    const npu_tolerance t = { .rtol = tolerance, .has_rtol = true, .atol = tolerance, .has_atol = true };
    npu_graph *g = NULL;
    npu_exec *exec = exec_of(text, &g);
    for (uint32_t i = 0; exec && i < npu_graph_num_outputs(g); i += 2) {
        npu_array got = output_of(exec, i), want = output_of(exec, i + 1);
        npu_difference d;
        if (npu_array_compare(&got, &want, &t, &d)) {
            fprintf(stderr, "%s\noutput %u, element %u: %g, expected %g\n", text, (unsigned)i, (unsigned)d.worst, d.got,
                    d.want);
            NPU_CHECK_STATUS(d.status, NPU_OK);
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

#define ATTENTION_IN                                                                                                  \
    "graph main\ninput q : f32[2,3,5,8]\ninput k : f32[2,3,7,8]\ninput v : f32[2,3,7,4]\ninput m : f32[5,7]\n"
/* w: the sums, as logarithms */
#define SUMS                                                                                                          \
    "t = aten.transpose.int(k, -2, -1)\np = aten.matmul.default(q, t)\ns = aten.mul.Tensor(p, 0.25)\n"                \
    "n = aten.add.Tensor(s, m)\nw = aten.logsumexp.default(n, [-1])\n"                                                \
    "z = aten.scaled_dot_product_attention.default(q, k, v, m, scale=0.25)\n"

/* The same bits as scaled_dot_product_attention, and sums that are those of its scores. */
static void test_attention(void)
{
    check_pairs(ATTENTION_IN "y, l = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v)\n"
                             "z = aten.scaled_dot_product_attention.default(q, k, v)\noutput y = y\noutput z = z\n",
                0);
    check_pairs(ATTENTION_IN
                "y, l = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, v, attn_mask=m, scale=0.25)\n"
                SUMS "output y = y\noutput z = z\noutput l = l\noutput w = w\n",
                1e-5);
    check_pairs(ATTENTION_IN
                "y, l, a, b = aten._scaled_dot_product_efficient_attention.default(q, k, v, m, true, scale=0.25)\n"
                SUMS "o = aten.slice.Tensor(l, 2, 0, 5)\noutput y = y\noutput z = z\noutput o = o\noutput w = w\n"
                "output a = a\noutput b = b\n",
                1e-5);
    check_pairs(ATTENTION_IN
                "y, l, c0, c1, a, b, r, u, e = aten._scaled_dot_product_flash_attention.default(q, k, v, 0.0, true)\n"
                "z = aten.scaled_dot_product_attention.default(q, k, v, is_causal=true)\n"
                "five = aten.scalar_tensor.default(5, dtype=i64)\nseven = aten.scalar_tensor.default(7, dtype=i64)\n"
                "output y = y\noutput z = z\noutput a = a\noutput five = five\noutput b = b\noutput seven = seven\n"
                "output c0 = c0\noutput c1 = c1\n",
                0);
}

/* A row that is masked everywhere: zeros, and a sum of 0, as torch 2.6 has it. */
static void test_masked_row(void)
{
    npu_graph *g = NULL;
    npu_exec *exec = exec_of("graph main\ninput q : f32[1,1,2,4]\nk = aten.ones_like.default(q)\n"
                             "const m : f32[2,1] {-inf, 0}\n"
                             "y, l = aten._scaled_dot_product_flash_attention_for_cpu.default(q, k, k, attn_mask=m)\n"
                             "output y = y\noutput l = l\n",
                             &g);
    if (exec) {
        const float *y = npu_exec_output(exec, 0, NULL), *l = npu_exec_output(exec, 1, NULL);
        NPU_CHECK(y[0] == 0 && y[3] == 0 && y[4] == 1 && l[0] == 0 && l[1] != 0);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_other_names(void)
{
    check_pairs("graph main\ninput x : f32[2,4,6,6]\ninput w : f32[8,1,3,2]\ninput b : f32[8]\n"
                "y = aten._conv_depthwise2d.default(x, w, [3, 2], b, [2, 1], [1, 0], [1, 2])\n"
                "z = aten.conv2d.default(x, w, b, stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=4)\n"
                "output y = y\noutput z = z\n",
                0);
    check_pairs("graph main\ninput x : f32[1,4,3,3]\ninput w : f32[4,1,1,1]\n"
                "y = aten._conv_depthwise2d.default(x, w, [1, 1], none, [1, 1], [0, 0], [1, 1])\n"
                "z = aten.conv2d.default(x, w, groups=4)\noutput y = y\noutput z = z\n",
                0);
    check_pairs("graph main\ninput a : f32[3,4]\ninput b : f32[4]\n"
                "y = aten.max.other(a, b)\nz = aten.maximum.default(a, b)\n"
                "u = aten.min.other(a, b)\nv = aten.minimum.default(a, b)\noutput y = y\noutput z = z\noutput u = u\n"
                "output v = v\n",
                0);
}

/* Smaller, larger (new elements are 0), and in place: who names the tensor afterwards reads it in its new shape. */
static void test_resize(void)
{
    check_pairs("graph main\ninput a : f32[3,4]\ny = aten.resize.default(a, [2, 5])\nf = aten.flatten.using_ints(a)\n"
                "p = aten.slice.Tensor(f, 0, 0, 10)\nz = aten.view.default(p, [2, 5])\noutput y = y\noutput z = z\n",
                0);
    check_pairs("graph main\ninput a : f32[3]\ny = aten.resize.default(a, [2, 2])\n"
                "q = aten.constant_pad_nd.default(a, [0, 1])\nz = aten.view.default(q, [2, 2])\n"
                "output y = y\noutput z = z\n",
                0);
    check_pairs("graph main\ninput x : f32[3,4]\na = aten.relu.default(x)\nr = aten.resize_.default(a, [2, 2])\n"
                "y = aten.neg.default(a)\nb = aten.relu.default(x)\ns = aten.select.int(b, 0, 0)\n"
                "w = aten.view.default(s, [2, 2])\nz = aten.neg.default(w)\noutput y = y\noutput z = z\n",
                0);
}

/* ---- Fourier transforms ---- */

enum { FFT_MAX = 4096 };

/* The definition, over the dims of `mask`: numbers are pairs. */
static void transform(const double *x, double *y, const int64_t *dims, uint32_t rank, uint32_t mask, int sign)
{
    int64_t len = 1;
    for (uint32_t i = 0; i < rank; i++) {
        len *= dims[i];
    }
    for (int64_t k = 0; k < len; k++) {
        y[2 * k] = y[2 * k + 1] = 0;
        for (int64_t j = 0; j < len; j++) {
            double turn = 0;
            bool meets = true;
            int64_t a = k, b = j;
            for (uint32_t i = rank; i-- > 0; a /= dims[i], b /= dims[i]) {
                int64_t p = a % dims[i], q = b % dims[i];
                turn += mask >> i & 1 ? (double)(p * q % dims[i]) / (double)dims[i] : 0;
                meets = meets && (mask >> i & 1 || p == q);
            }
            if (meets) {
                double c = cos(2 * acos(-1.0) * turn), s = sign * sin(2 * acos(-1.0) * turn);
                y[2 * k] += x[2 * j] * c - x[2 * j + 1] * s;
                y[2 * k + 1] += x[2 * j] * s + x[2 * j + 1] * c;
            }
        }
    }
}

typedef struct fft_case {
    uint32_t rank;
    int64_t dims[4];
    const char *list; /* dims listed */
    uint32_t mask, last;
} fft_case;

static const fft_case fft_cases[] = {
    { 1, { 1 }, "[0]", 1, 0 },        { 1, { 2 }, "[0]", 1, 0 },         { 1, { 7 }, "[-1]", 1, 0 },
    { 1, { 12 }, "[0]", 1, 0 },       { 1, { 30 }, "[0]", 1, 0 },        { 1, { 64 }, "[0]", 1, 0 },
    { 1, { 35 }, "[0]", 1, 0 },       { 1, { 98 }, "[0]", 1, 0 },        { 1, { 400 }, "[0]", 1, 0 },
    { 1, { 11 }, "[0]", 1, 0 },       { 1, { 26 }, "[0]", 1, 0 },        { 1, { 101 }, "[0]", 1, 0 },
    { 2, { 17, 13 }, "[1]", 2, 1 },   { 2, { 22, 9 }, "[0]", 1, 0 },     { 2, { 17, 14 }, "[0, 1]", 3, 1 },
    { 2, { 3, 8 }, "[1]", 2, 1 },     { 2, { 6, 3 }, "[0]", 1, 0 },      { 2, { 4, 5 }, "[0, 1]", 3, 1 },
    { 2, { 4, 5 }, "[1, 0]", 3, 0 },  { 3, { 2, 9, 4 }, "[0, 2]", 5, 2 }, { 3, { 5, 2, 6 }, "[2, 0, 1]", 7, 1 },
    { 4, { 2, 3, 4, 5 }, "[-1, -3]", 10, 1 },
};

/* "[2,3,5]" with the dim `at` as `size`, and ",2" behind it for pairs. */
static const char *dims_text(char *buf, const fft_case *c, uint32_t at, int64_t size, const char *end)
{
    int n = snprintf(buf, 64, "[");
    for (uint32_t i = 0; i < c->rank; i++) {
        n += snprintf(buf + n, 64 - (size_t)n, "%s%d", i ? "," : "", (int)(i == at ? size : c->dims[i]));
    }
    snprintf(buf + n, 64 - (size_t)n, "%s]", end);
    return buf;
}

/* Output 0 of the text, real numbers, is `want`, which is laid out as `whole` with `at` cut to `kept`. */
static void check_numbers(const char *text, const double *want, const fft_case *c, int64_t kept, double scale)
{
    npu_graph *g = NULL;
    npu_exec *exec = exec_of(text, &g);
    const float *got = exec ? (const float *)npu_exec_output(exec, 0, NULL) : NULL;
    int64_t inner = 1, outer = 1, len = c->dims[c->last];
    for (uint32_t i = 0; i < c->rank; i++) {
        inner *= i > c->last ? c->dims[i] : 1;
        outer *= i < c->last ? c->dims[i] : 1;
    }
    for (int64_t i = 0; got && i < outer * kept * inner; i++) {
        int64_t from = (i / (kept * inner) * len + i / inner % kept) * inner + i % inner;
        for (int64_t part = 0; part < 2; part++) {
            double expected = want[2 * from + part] * scale;
            if (fabs((double)got[2 * i + part] - expected) > 1e-4 * scale * (1 + fabs(expected))) {
                fprintf(stderr, "%s", text);
                NPU_CHECK_NEAR(got[2 * i + part], expected, 1e-4);
            }
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* Real to complex, one-sided and whole, and complex to complex in both directions, in all normalisations. */
static void test_fft(void)
{
    static double x[2 * FFT_MAX], y[2 * FFT_MAX];
    for (size_t i = 0; i < sizeof fft_cases / sizeof fft_cases[0]; i++) {
        const fft_case *c = &fft_cases[i];
        char text[400], dims[64];
        int64_t len = 1, signal = 1, size = c->dims[c->last];
        for (uint32_t k = 0; k < c->rank; k++) {
            len *= c->dims[k];
            signal *= c->mask >> k & 1 ? c->dims[k] : 1;
        }
        const double scales[3] = { 1, 1 / sqrt((double)signal), 1 / (double)signal };
        for (int way = 0; way < 12; way++) {
            int norm = way % 3, kind = way / 3; /* one-sided, whole, forward, inverse */
            for (int64_t k = 0; k < 2 * len; k++) {
                x[k] = kind > 1 ? (double)numbers[k] : k % 2 ? 0 : (double)numbers[k / 2];
            }
            transform(x, y, c->dims, c->rank, c->mask, kind == 3 ? 1 : -1);
            if (kind < 2) {
                snprintf(text, sizeof text,
                         "graph main\ninput x : f32%s\nf = aten._fft_r2c.default(x, %s, %d, %s)\n"
                         "y = aten.view_as_real.default(f)\noutput y = y\n",
                         dims_text(dims, c, 9, 0, ""), c->list, norm, kind ? "false" : "true");
            } else {
                snprintf(text, sizeof text,
                         "graph main\ninput x : f32%s\nz = aten.view_as_complex.default(x)\n"
                         "f = aten._fft_c2c.default(z, %s, %d, %s)\ny = aten.view_as_real.default(f)\noutput y = y\n",
                         dims_text(dims, c, 9, 0, ",2"), c->list, norm, kind == 2 ? "true" : "false");
            }
            check_numbers(text, y, c, kind ? size : size / 2 + 1, scales[norm]);
        }
    }
}

/* The inverse gives back what was transformed; imaginary parts that cannot be there do not count. */
static void test_fft_to_real(void)
{
    for (size_t i = 0; i < sizeof fft_cases / sizeof fft_cases[0]; i++) {
        const fft_case *c = &fft_cases[i];
        char text[400], dims[64];
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32%s\nf = aten._fft_r2c.default(x, %s, 0, true)\n"
                 "y = aten._fft_c2r.default(f, %s, 2, %d)\noutput y = y\noutput x = x\n",
                 dims_text(dims, c, 9, 0, ""), c->list, c->list, (int)c->dims[c->last]);
        check_pairs(text, 1e-5);
    }
    check_pairs("graph main\ninput x : f64[4,2]\nconst m : f64[3,2] {1, 0, 1, 1, 1, 0}\n"
                "h = aten.slice.Tensor(x, 0, 0, 3)\ni = aten.mul.Tensor(h, m)\nz = aten.view_as_complex.default(h)\n"
                "r = aten.view_as_complex.default(i)\ny = aten._fft_c2r.default(z, [0], 0, 4)\n"
                "w = aten._fft_c2r.default(r, [0], 0, 4)\noutput y = y\noutput w = w\n",
                0);
}

/* Products and sizes of more numbers than a strip has, one operand repeated, are what real numbers make of them. */
static void test_complex_strips(void)
{
    check_pairs("graph main\ninput x : f32[3,150,2]\nz = aten.view_as_complex.default(x)\n"
                "s = aten.slice.Tensor(z, 0, 1, 2)\np = aten.mul.Tensor(z, s)\ny = aten.view_as_real.default(p)\n"
                "h = aten.abs.default(z)\na = aten.select.int(x, 2, 0)\nb = aten.select.int(x, 2, 1)\n"
                "c = aten.slice.Tensor(a, 0, 1, 2)\nd = aten.slice.Tensor(b, 0, 1, 2)\n"
                "e = aten.mul.Tensor(a, c)\nf = aten.mul.Tensor(b, d)\ng = aten.sub.Tensor(e, f)\n"
                "i = aten.mul.Tensor(a, d)\nj = aten.mul.Tensor(b, c)\nk = aten.add.Tensor(i, j)\n"
                "w = aten.stack.default([g, k], 2)\nl = aten.hypot.default(a, b)\n"
                "output y = y\noutput w = w\noutput h = h\noutput l = l\n",
                1e-5);
}

/* The sum of real numbers and that with alternating signs are real: no angle of theirs is -pi. */
static void test_fft_real_ends(void)
{
    static const int lens[] = { 1, 2, 3, 4, 6, 7, 10, 11, 22, 64, 101 };
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32[5,%d]\nf = aten._fft_r2c.default(x, [1], 0, true)\ni = aten.imag.default(f)\n"
                 "r = aten.reciprocal.default(i)\na = aten.slice.Tensor(r, 1, 0, 1)\nb = aten.slice.Tensor(r, 1, %d, %d)\n"
                 "w = aten.full.default([5,1], inf, dtype=f32)\noutput a = a\noutput w = w\noutput b = b\noutput v = w\n",
                 lens[i], lens[i] % 2 ? 0 : lens[i] / 2, lens[i] % 2 ? 1 : lens[i] / 2 + 1);
        check_pairs(text, 0);
    }
}

/* Ops that move complex numbers do with them what they do with their parts. */
static void test_complex_moves(void)
{
    static const char *const ops[] = {
        "index.Tensor(%s, [none, i])", "index.Tensor(%s, [i, i])", "_unsafe_index.Tensor(%s, [i])", "index.Tensor(%s, [m])",
        "gather.default(%s, 0, k)", "masked_select.default(%s, m)", "repeat_interleave.self_int(%s, 3, 1)",
        "repeat_interleave.self_Tensor(%s, n, 0)", "tril.default(%s, 1)", "triu.default(%s)",
        "index_put.default(%s, [i], %s)", "_unsafe_index_put.default(%s, [none, i], %s)", "index_copy.default(%s, 0, i, %s)",
        "scatter.src(%s, 0, k, %s)", "put.default(%s, j, %s)", "masked_scatter.default(%s, m, %s)",
    };
    for (size_t i = 0; i < 2 * (sizeof ops / sizeof ops[0]); i++) {
        const char *dtype = i % 2 ? "f64" : "f32", *op = ops[i / 2];
        char text[1600], part[3][160];
        for (int k = 0; k < 3; k++) {
            static const char *const of[3] = { "z", "a", "b" };
            snprintf(part[k], sizeof part[k], op, of[k], of[k]);
        }
        snprintf(text, sizeof text,
                 "graph main\nconst i : i64[3] {2, 0, 1}\nconst j : i64[3,3] {8, 0, 1, 7, 2, -4, 6, 4, 3}\nconst k : i64[2,3] {1, 0, 2, 0, 2, 1}\nconst n : i64[3] {2, 0, 1}\n"
                 "const m : bool[3,3] {true, false, true, true, false, false, true, true, false}\ninput x : %s[3,3,2]\n"
                 "z = aten.view_as_complex.default(x)\na = aten.select.int(x, 2, 0)\nb = aten.select.int(x, 2, 1)\n"
                 "c = aten.%s\ny = aten.view_as_real.default(c)\np = aten.%s\nq = aten.%s\n"
                 "w = aten.stack.default([p, q], -1)\noutput y = y\noutput w = w\n",
                 dtype, part[0], part[1], part[2]);
        check_pairs(text, 0);
    }
}

/* Whether column `at` of [n,batch] complex numbers is the row. */
static bool is_column(const float *whole, const float *row, int64_t n, int64_t batch, int64_t at)
{
    bool same = true;
    for (int64_t i = 0; i < n; i++) {
        same = same && memcmp(whole + 2 * (i * batch + at), row + 2 * i, 2 * sizeof *row) == 0;
    }
    return same;
}

/* What comes of the last of `batch` lines has the same bits in the batch, alone, and along another dim; and all have
   those of the first set. */
static void check_lines(int64_t n, int64_t batch, uint32_t isa, float *first)
{
    static float x[FFT_MAX];
    const npu_backend *cpu = isa_cpu(isa);
    char text[1000];
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    snprintf(text, sizeof text,
             "graph main\ninput x : f32[%d,%d]\na = aten.slice.Tensor(x, 0, %d, %d)\nt = aten.t.default(x)\n"
             "y = aten._fft_r2c.default(x, [1], 0, false)\nl = aten._fft_r2c.default(a, [1], 0, false)\n"
             "m = aten._fft_r2c.default(t, [0], 0, false)\nu = aten._fft_c2c.default(y, [1], 1, false)\n"
             "v = aten._fft_c2c.default(l, [1], 1, false)\nw = aten._fft_c2c.default(m, [0], 1, false)\n"
             "h = aten.slice.Tensor(y, 1, 0, %d)\ni = aten.slice.Tensor(h, 0, %d, %d)\n"
             "r = aten._fft_c2r.default(h, [1], 2, %d)\ns = aten._fft_c2r.default(i, [1], 2, %d)\n"
             "output y = y\noutput l = l\noutput m = m\noutput u = u\noutput v = v\noutput w = w\noutput r = r\n"
             "output s = s\n",
             (int)batch, (int)n, (int)batch - 1, (int)batch, (int)n / 2 + 1, (int)batch - 1, (int)batch, (int)n,
             (int)n);
    for (int64_t i = 0; i < batch * n; i++) {
        x[i] = numbers[i * 7 % FFT_MAX];
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, x, (size_t)(batch * n) * sizeof *x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    for (uint32_t i = 0; i < 8; i += 3) {
        size_t size;
        const float *whole = npu_exec_output(exec, i, &size), *row = npu_exec_output(exec, i + 1, NULL);
        size_t len = size / sizeof *whole / (size_t)batch;
        NPU_CHECK_THAT(memcmp(whole + (size_t)(batch - 1) * len, row, len * sizeof *row) == 0,
                       "set %s: output %u of %d lines of %d differs alone", npu_ref_isa(isa), i, (int)batch, (int)n);
        NPU_CHECK(i == 6 || is_column(npu_exec_output(exec, i + 2, NULL), row, n, batch, batch - 1));
        NPU_CHECK_THAT(isa == 0 || memcmp(first + i * FFT_MAX, whole, size) == 0, "set %s: output %u of %d lines of %d",
                       npu_ref_isa(isa), i, (int)batch, (int)n);
        memcpy(first + i * FFT_MAX, whole, size);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_fft_lines(void)
{
    static const int64_t lens[] = { 1, 2, 3, 4, 5, 7, 9, 13, 16, 25, 38, 49, 60, 64, 101, 120, 202 };
    static const int64_t batches[] = { 1, 7, 8, 17 };
    static float first[8 * FFT_MAX];
    for (size_t i = 0; i < sizeof lens / sizeof lens[0] * 4; i++) {
        for (uint32_t isa = 0; isa_cpu(isa); isa++) {
            check_lines(lens[i / 4], batches[i % 4], isa, first);
        }
    }
    isa_free();
}

static int alternate(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)label;
    return (int)(op->op % 2);
}

/* Complex tensors cross between two devices in both directions: the bits stay. */
static void test_complex_transfers(void)
{
    static const char text[] =
        "graph main\ninput x : f64[4,6]\na = aten._fft_r2c.default(x, [0, 1], 1, true)\n"
        "b = aten._fft_c2c.default(a, [0], 0, true)\nc = aten.view_as_real.default(b)\n"
        "d = aten.view_as_complex.default(c)\ny = aten._fft_c2r.default(d, [1], 2, 6)\noutput y = y\noutput b = b\n";
    static double x[24];
    npu_sim_desc desc = { .emulate = npu_ref_backend() };
    npu_tolerance exact = { .has_rtol = true, .has_atol = true };
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *whole = NULL;
    npu_difference total;
    rig r = rig_start(&desc, 1);
    npu_graph_destroy(r.graph);
    NPU_CHECK_STATUS(npu_graph_parse(&r.graph, text, strlen(text), NULL, NULL), NPU_OK);
    r.desc.override = alternate;
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&whole, r.graph, &cpu, 1, NULL), NPU_OK);
    for (size_t i = 0; i < 24; i++) {
        x[i] = (double)numbers[i] / 3;
    }
    NPU_CHECK_STATUS(npu_test_input_at(r.exec, 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_test_input_at(whole, 0, x, sizeof x), NPU_OK);
    NPU_CHECK(npu_plan_num_steps(npu_program_plan(r.program)) >= 9); /* five partitions and what moves between them */
    NPU_CHECK_STATUS(npu_exec_compare(r.exec, whole, &exact, NULL, &total, &r.diag), NPU_OK);
    NPU_CHECK_EQ(total.num_elements, 24 + 16);
    npu_exec_destroy(whole);
    rig_end(&r);
}

/* What the type rules refuse. */
static void test_refused(void)
{
    static const struct { const char *op; npu_status status; } rows[] = {
        { "aten._conv_depthwise2d.default(x, w, [2, 3], none, [1, 1], [0, 0], [1, 1])", NPU_ERR_SHAPE },
        { "aten._conv_depthwise2d.default(c, w, [3, 3], none, [1, 1], [0, 0], [1, 1])", NPU_ERR_SHAPE },
        { "aten._conv_depthwise2d.default(m, w, [3, 3], none, [1, 1], [0, 0], [1, 1])", NPU_ERR_RANK },
        { "aten._scaled_dot_product_flash_attention_for_cpu.default(x, x, w)", NPU_ERR_SHAPE },
        { "aten._scaled_dot_product_efficient_attention.default(x, x, x, m, true, 0.0, true)", NPU_ERR_ATTRIBUTE },
        { "aten._scaled_dot_product_flash_attention.default(x, x, x, 0.5)", NPU_ERR_UNSUPPORTED },
        { "aten.resize.default(x, [-1, 2])", NPU_ERR_ATTRIBUTE },
        { "aten._fft_r2c.default(x, [4], 0, true)", NPU_ERR_AXIS },
        { "aten._fft_r2c.default(x, [1, 1], 0, true)", NPU_ERR_AXIS },
        { "aten._fft_r2c.default(x, [], 0, true)", NPU_ERR_ATTRIBUTE },
        { "aten._fft_r2c.default(x, [1], 3, true)", NPU_ERR_ATTRIBUTE },
        { "aten._fft_c2c.default(x, [1], 0, true)", NPU_ERR_DTYPE },
        { "aten.view_as_real.default(x)", NPU_ERR_DTYPE },
        { "aten.view_as_complex.default(x)", NPU_ERR_SHAPE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[300];
        npu_graph *g = NULL;
        snprintf(text, sizeof text,
                 "graph main\ninput x : f32[1,2,4,4]\ninput w : f32[4,1,3,3]\ninput m : f32[4,4]\n"
                 "input c : f32[1,3,4,4]\n%s\n",
                 rows[i].op);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, NULL), rows[i].status);
        npu_graph_destroy(g);
    }
}

int main(void)
{
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        numbers[i] = (float)(npu_test_random(&seed) % 4001) / 1000.0f - 2.0f;
    }
    NPU_RUN(test_attention);
    NPU_RUN(test_masked_row);
    NPU_RUN(test_other_names);
    NPU_RUN(test_resize);
    NPU_RUN(test_fft);
    NPU_RUN(test_fft_to_real);
    NPU_RUN(test_complex_strips);
    NPU_RUN(test_fft_real_ends);
    NPU_RUN(test_complex_moves);
    NPU_RUN(test_fft_lines);
    NPU_RUN(test_complex_transfers);
    NPU_RUN(test_refused);
    return npu_test_done();
}
