/* Ops on 8 bits that stand for (stored - zero) scale: every result against tests/oracle/quantised.h, for both roundings, and
   what their type rules refuse. */
#include "../npu_ir_backend_ref.h"
#include "isa.h"
#include "npu_test.h"
#include "oracle/quantised.h"

enum { MOST = 4096, MAX_IN = 4 };

static npu_registry *registry; /* one for all graphs */
static uint64_t rng = 1;

static int pick(int low, int high) { return low + (int)(npu_test_random(&rng) % (uint64_t)(high - low + 1)); }
/* A scale that a calibration could give: 2^-9 to 2^-2, and more of its bits. */
static double pick_scale(void) { return (double)(float)ldexp(1.0 + pick(0, 1 << 20) / 1048576.0, pick(-9, -3)); }

/* What an op says of its numbers besides its shapes. */
typedef struct numbers {
    bool is_signed, twice;
    double in[MAX_IN], out;
    int in_zero[MAX_IN], zero, low, high;
} numbers;

static numbers pick_numbers(void)
{
    numbers n = { .is_signed = pick(0, 1) == 1, .twice = pick(0, 1) == 1, .out = pick_scale() };
    int least = n.is_signed ? -128 : 0;
    for (int i = 0; i < MAX_IN; i++) {
        n.in[i] = pick_scale();
        n.in_zero[i] = least + pick(0, 255);
    }
    n.zero = least + pick(0, 255);
    n.low = pick(0, 3) ? least : n.zero;
    n.high = pick(0, 3) ? least + 255 : pick(n.low, least + 255);
    return n;
}

static const char *dtype_of(const numbers *n) { return n->is_signed ? "i8" : "u8"; }

/* "in_scales=[..], .., rounding='..'" for `num` operands. */
static const char *scales_of(const numbers *n, int num)
{
    static char text[600];
    int len = snprintf(text, sizeof text, "in_scales=[%.17g", n->in[0]);
    for (int i = 1; i < num; i++) {
        len += snprintf(text + len, sizeof text - (size_t)len, ", %.17g", n->in[i]);
    }
    len += snprintf(text + len, sizeof text - (size_t)len, "], in_zeros=[%d", n->in_zero[0]);
    for (int i = 1; i < num; i++) {
        len += snprintf(text + len, sizeof text - (size_t)len, ", %d", n->in_zero[i]);
    }
    snprintf(text + len, sizeof text - (size_t)len, "], scale=%.17g, zero=%d, low=%d, high=%d, rounding='%s'", n->out, n->zero,
             n->low, n->high, n->twice ? "double" : "single");
    return text;
}

static uint8_t bytes[MAX_IN][MOST];
static int8_t weights[MOST];
static int32_t bias[64];
static int expected[MOST];

static void fill_bytes(void)
{
    for (int i = 0; i < MAX_IN * MOST; i++) {
        bytes[i / MOST][i % MOST] = (uint8_t)npu_test_random(&rng);
    }
    for (int i = 0; i < MOST; i++) {
        weights[i] = (int8_t)pick(-127, 127);
    }
    for (int i = 0; i < 64; i++) {
        bias[i] = pick(-20000, 20000);
    }
}

/* Element i of operand k, its zero taken off. */
static int element(const numbers *n, int k, int i)
{
    return (n->is_signed ? (int8_t)bytes[k][i] : bytes[k][i]) - n->in_zero[k];
}

/* Runs "y = <call>" on inputs x0 .. of those specs and holds y against expected[0 .. count-1]. */
static void check_call(const numbers *n, const char *inputs, const char *call, const void *const *data, int count)
{
    static char text[3000];
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    size_t size = 0, bits;
    int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\n%sy = %s\noutput y = y\n", inputs, call);
    npu_status status = npu_graph_parse(&g, text, (size_t)len, &(npu_graph_desc){ .registry = registry }, &diag);
    status = status ? status : npu_exec_create_simple(&exec, g, &cpu, 1, &diag);
    for (uint32_t i = 0; status == NPU_OK && i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &bits);
        status = npu_test_input_at(exec, i, data[i], bits);
    }
    status = status ? status : npu_exec_run(exec);
    const uint8_t *y = status ? NULL : (const uint8_t *)npu_exec_output(exec, 0, &size);
    NPU_CHECK_THAT(status == NPU_OK && size == (size_t)count, "%s%s: %s %s, %lu elements, expected %d", inputs, call,
                   npu_status_name(status), diag.message, (unsigned long)size, count);
    for (int i = 0; y && i < count && size == (size_t)count; i++) {
        int got = n->is_signed ? (int8_t)y[i] : y[i];
        if (got != expected[i]) {
            NPU_CHECK_THAT(false, "%s%s: element %d is %d, expected %d", inputs, call, i, got, expected[i]);
            break;
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* ---- requantisation ---- */

enum { CHANNELS = 8192 };

/* Sums are biases here, since all weights are 0; each channel has a factor of its own. */
static void check_products(bool twice, int zero, npu_graph *g, npu_exec **exec)
{
    static double factors[CHANNELS];
    static int32_t sums[CHANNELS], multiplier[CHANNELS];
    static int8_t zeros[CHANNELS];
    static int shift[CHANNELS];
    const npu_backend *cpu = npu_ref_backend();
    const double one = 1.0;
    const int64_t none = 0;
    int64_t dims[2] = { CHANNELS, 1 };
    int8_t x = 0;
    npu_diag diag = { 0 };
    size_t size;
    for (int i = 0; i < CHANNELS; i++) {
        shift[i] = pick(-31, 30);
        multiplier[i] = (1 << 30) + pick(0, (1 << 30) - 1);
        factors[i] = ldexp(multiplier[i], shift[i] - 31);
        /* results of all sizes around 8 bits; a product of more than 32 bits before the division is nobody's */
        int digits = pick(0, 31 - (shift[i] > 0 ? shift[i] : 0));
        sums[i] = (int32_t)(npu_test_random(&rng) & ((1u << digits) - 1));
        sums[i] = pick(0, 1) ? sums[i] : -sums[i];
        if (pick(0, 3) == 0) { /* halves */
            multiplier[i] = 1 << 30;
            factors[i] = ldexp(0.5, shift[i]);
        }
    }
    npu_arg args[] = {
        npu_arg_tensor("input", npu_input(g, "x", npu_spec_tensor(NPU_I8, 2, (int64_t[]){ 1, 1 }))),
        npu_arg_tensor("weight", npu_constant(g, NULL, npu_spec_tensor(NPU_I8, 2, dims), zeros)),
        npu_arg_tensor("bias", npu_constant(g, NULL, npu_spec_tensor(NPU_I32, 1, dims), sums)),
        npu_arg_floats("w_scales", factors, CHANNELS), npu_arg_floats("in_scales", &one, 1), npu_arg_ints("in_zeros", &none, 1),
        npu_arg_float("scale", 1.0), npu_arg_int("zero", zero), npu_arg_str("rounding", twice ? "double" : "single"),
    };
    npu_op op = npu_emit(g, NPU_NPU_QLINEAR, args, sizeof args / sizeof args[0]);
    npu_output(g, "y", npu_op_result(g, op, 0));
    NPU_CHECK_THAT(npu_exec_create_simple(exec, g, &cpu, 1, &diag) == NPU_OK, "%s", diag.message);
    NPU_CHECK_STATUS(npu_test_input_at(*exec, 0, &x, 1), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(*exec), NPU_OK);
    const int8_t *y = (const int8_t *)npu_exec_output(*exec, 0, &size);
    for (int i = 0; y && i < CHANNELS; i++) {
        int right = oracle_clamp(oracle_scale(sums[i], multiplier[i], shift[i], twice), zero, -128, 127);
        if (y[i] != right) {
            NPU_CHECK_THAT(false, "%d times %d 2^(%d - 31), zero %d, %s: %d, expected %d", (int)sums[i], (int)multiplier[i],
                           shift[i], zero, twice ? "double" : "single", y[i], right);
            return;
        }
    }
}

/* A million products: all shifts, zeros at both ends. */
static void test_products(void)
{
    static const int zero[] = { -128, 127, 0 };
    for (int i = 0; i < 1000000 / CHANNELS + 1; i++) {
        npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
        npu_exec *exec = NULL;
        check_products(i % 2 == 0, zero[i / 2 % 3], g, &exec);
        npu_exec_destroy(exec);
        npu_graph_destroy(g);
    }
}

/* ---- convolution, linear ---- */

static int out_dim(const oracle_conv *c, int d, int extra)
{
    int reach = (c->k[d] - 1) * c->dilation[d] + 1;
    return c->transposed ? (c->n[d] - 1) * c->stride[d] - 2 * c->pad[d] + reach + extra
                         : (c->n[d] + 2 * c->pad[d] - reach) / c->stride[d] + (c->n[d] + 2 * c->pad[d] >= reach);
}

/* One that has results; *extra is the output padding. */
static oracle_conv pick_conv(int rank, int *extra)
{
    for (;;) {
        oracle_conv c = { .images = pick(1, 2), .groups = pick(1, 3), .in = pick(1, 4), .out = pick(1, 3), .transposed = pick(0, 2) == 0 };
        bool fits = true;
        if (pick(0, 3) == 0) { /* depthwise */
            c.groups = pick(1, 8), c.in = 1, c.out = pick(1, 2);
        }
        *extra = 0;
        for (int d = 0; d < 3; d++) {
            bool is_there = d >= 3 - rank;
            c.n[d] = is_there ? pick(1, 7) : 1;
            c.k[d] = is_there ? pick(1, 3) : 1;
            c.stride[d] = is_there ? pick(1, 3) : 1;
            c.dilation[d] = is_there ? pick(1, 2) : 1;
            c.pad[d] = is_there ? pick(0, 2) : 0;
        }
        *extra = c.transposed && c.stride[2] > 1 && pick(0, 1); /* of the last dim */
        for (int d = 0; d < 3; d++) {
            c.m[d] = out_dim(&c, d, d == 2 ? *extra : 0);
            fits = fits && c.m[d] > 0;
        }
        fits = fits && c.images * c.groups * c.in * c.n[0] * c.n[1] * c.n[2] <= MOST;
        if (fits && c.images * c.groups * c.out * c.m[0] * c.m[1] * c.m[2] <= MOST) {
            return c;
        }
    }
}

static const char *list_of(const int *x, int rank)
{
    static char texts[4][40];
    static int next;
    char *text = texts[next++ % 4];
    int len = snprintf(text, sizeof texts[0], "[%d", x[3 - rank]);
    for (int d = 4 - rank; d < 3; d++) {
        len += snprintf(text + len, sizeof texts[0] - (size_t)len, ",%d", x[d]);
    }
    snprintf(text + len, sizeof texts[0] - (size_t)len, "]");
    return text;
}

/* Scales of weights as text; one for all, or one per channel. */
static const char *weight_scales(double *scales, int channels, bool is_per_channel)
{
    static char text[2000];
    int len = 0;
    for (int i = 0; i < channels; i++) {
        scales[i] = i == 0 || is_per_channel ? pick_scale() : scales[0];
        if (i == 0 || is_per_channel) {
            len += snprintf(text + len, sizeof text - (size_t)len, "%s%.17g", i ? ", " : "", scales[i]);
        }
    }
    return text;
}

static void check_sums(const numbers *n, const int64_t *sums, const double *w, int channels, int places, int count)
{
    for (int i = 0; i < count; i++) {
        expected[i] = oracle_requantise(sums[i], n->in[0] * w[i / places % channels] / n->out, n->zero, n->low, n->high, n->twice);
    }
}

static void check_conv(int rank)
{
    static int64_t sums[MOST];
    static int x[MOST];
    char inputs[200], call[2800];
    int extra, unused[3] = { 0, 0, 0 };
    oracle_conv c = pick_conv(rank, &extra);
    numbers n = pick_numbers();
    double w[64];
    int size = c.images * c.groups * c.in * c.n[0] * c.n[1] * c.n[2], places = c.m[0] * c.m[1] * c.m[2];
    int channels = c.groups * c.out, count = c.images * channels * places;
    n.out *= 64; /* sums are larger than elements */
    fill_bytes();
    for (int i = 0; i < size; i++) {
        x[i] = element(&n, 0, i);
    }
    for (int i = 0; i < count; i++) {
        sums[i] = bias[i / places % channels];
    }
    oracle_convolve(&c, x, weights, sums);
    unused[2] = extra;
    int len = snprintf(inputs, sizeof inputs, "input x : %s[%d,%d", dtype_of(&n), c.images, c.groups * c.in);
    for (int d = 3 - rank; d < 3; d++) {
        len += snprintf(inputs + len, sizeof inputs - (size_t)len, ",%d", c.n[d]);
    }
    len += snprintf(inputs + len, sizeof inputs - (size_t)len, "]\ninput w : i8[%d,%d", c.transposed ? c.groups * c.in : channels,
                    c.transposed ? c.out : c.in);
    for (int d = 3 - rank; d < 3; d++) {
        len += snprintf(inputs + len, sizeof inputs - (size_t)len, ",%d", c.k[d]);
    }
    snprintf(inputs + len, sizeof inputs - (size_t)len, "]\ninput b : i32[%d]\n", channels);
    const char *w_scales = weight_scales(w, channels, pick(0, 1) == 1);
    check_sums(&n, sums, w, channels, places, count);
    len = snprintf(call, sizeof call, "npu.qconv(x, w, b, %s, %s, ", list_of(c.stride, rank), list_of(c.pad, rank));
    snprintf(call + len, sizeof call - (size_t)len, "%s, %s, %s, %d, w_scales=[%s], %s)", list_of(c.dilation, rank),
             c.transposed ? "true" : "false", list_of(unused, rank), c.groups, w_scales, scales_of(&n, 1));
    check_call(&n, inputs, call, (const void *const[]){ bytes[0], weights, bias }, count);
}

static void test_convolutions(void)
{
    for (int i = 0; i < 450; i++) {
        check_conv(1 + i % 3);
    }
}

static void test_linear(void)
{
    for (int i = 0; i < 150; i++) {
        static int64_t sums[MOST];
        char inputs[200], call[2800];
        double w[64];
        int rows = pick(0, 9), depth = pick(1, 60), channels = pick(1, 60);
        numbers n = pick_numbers();
        n.out *= 64;
        fill_bytes();
        for (int o = 0; o < rows * channels; o++) {
            sums[o] = i % 2 ? bias[o % channels] : 0;
            for (int k = 0; k < depth; k++) {
                sums[o] += element(&n, 0, o / channels * depth + k) * weights[o % channels * depth + k];
            }
        }
        snprintf(inputs, sizeof inputs, "input x : %s[%d,1,%d]\ninput w : i8[%d,%d]\ninput b : i32[%d]\n", dtype_of(&n), rows, depth,
                 channels, depth, channels);
        const char *w_scales = weight_scales(w, channels, i % 4 < 2);
        check_sums(&n, sums, w, channels, 1, rows * channels);
        snprintf(call, sizeof call, "npu.qlinear(x, w, %s, w_scales=[%s], %s)", i % 2 ? "b" : "none", w_scales, scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0], weights, bias }, rows * channels);
    }
}

/* ---- two operands ---- */

static void test_pairs(void)
{
    static const char *const dims[][2] = { { "[3,5,7]", "[3,5,7]" }, { "[3,5,7]", "[7]" }, { "[3,1,7]", "[5,1]" }, { "[3,5,1]", "[3,5,7]" },
                                           { "[1,5,7]", "[3,1,1]" }, { "[3,5,7]", "[]" } };
    static const int strides[][2][3] = { { { 35, 7, 1 }, { 35, 7, 1 } }, { { 35, 7, 1 }, { 0, 0, 1 } }, { { 7, 0, 1 }, { 0, 1, 0 } },
                                         { { 5, 1, 0 }, { 35, 7, 1 } }, { { 0, 7, 1 }, { 1, 0, 0 } }, { { 35, 7, 1 }, { 0, 0, 0 } } };
    static const char *const names[] = { "npu.qadd", "npu.qmul", "npu.qsub" };
    for (int i = 0; i < 360; i++) {
        char inputs[200], call[800];
        bool is_sum = i % 3 != 1;
        numbers n = pick_numbers();
        const int(*s)[3] = strides[i / 3 % 6];
        n.out = is_sum ? n.out : n.in[0] * n.in[1] * pick(20, 300);
        if (i % 24 == 0 || i % 24 == 2) { /* a half of all sums are ties */
            n.in[0] = n.in[1] = n.out / 2;
        }
        fill_bytes();
        for (int e = 0; e < 105; e++) {
            int at[2];
            for (int k = 0; k < 2; k++) {
                at[k] = element(&n, k, e / 35 * s[k][0] + e / 7 % 5 * s[k][1] + e % 7 * s[k][2]);
            }
            expected[e] = is_sum ? oracle_add(at[0], at[1], n.in[0], n.in[1], n.out, n.zero, n.low, n.high, n.twice, i % 3 == 2)
                                 : oracle_requantise(at[0] * at[1], n.in[0] * n.in[1] / n.out, n.zero, n.low, n.high, n.twice);
        }
        snprintf(inputs, sizeof inputs, "input a : %s%s\ninput b : %s%s\n", dtype_of(&n), dims[i / 3 % 6][0], dtype_of(&n), dims[i / 3 % 6][1]);
        snprintf(call, sizeof call, "%s(a, b, %s)", names[i % 3], scales_of(&n, 2));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0], bytes[1] }, 105);
    }
}

/* Rows that are longer than what is read at a time, with one byte for each, as gates and biases of channels are. */
static void test_long_pairs(void)
{
    static const char *const names[] = { "npu.qadd", "npu.qmul", "npu.qsub" };
    enum { NUM = 3 };
    for (int i = 0; i < 96; i++) {
        const int row = i / 12 % 2 ? 512 : 1100;
        char inputs[200], call[800], large[40];
        bool is_sum = i % 3 != 1, is_first = i / 3 % 2 == 1, is_number = i / 6 % 2 == 1;
        numbers n = pick_numbers();
        n.out = is_sum ? n.out : n.in[0] * n.in[1] * pick(20, 300);
        fill_bytes();
        for (int e = 0; e < NUM * row; e++) {
            int one = is_number ? 0 : e / row, at[2] = { element(&n, 0, is_first ? one : e), element(&n, 1, is_first ? e : one) };
            expected[e] = is_sum ? oracle_add(at[0], at[1], n.in[0], n.in[1], n.out, n.zero, n.low, n.high, n.twice, i % 3 == 2)
                                 : oracle_requantise(at[0] * at[1], n.in[0] * n.in[1] / n.out, n.zero, n.low, n.high, n.twice);
        }
        const char *small = is_number ? "[]" : "[3,1,1]";
        snprintf(large, sizeof large, "[3,%d,4]", row / 4);
        snprintf(inputs, sizeof inputs, "input a : %s%s\ninput b : %s%s\n", dtype_of(&n), is_first ? small : large, dtype_of(&n),
                 is_first ? large : small);
        snprintf(call, sizeof call, "%s(a, b, %s)", names[i % 3], scales_of(&n, 2));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0], bytes[1] }, NUM * row);
    }
}

/* ---- windows, means ---- */

/* Sum and maximum of a window of 2 dims, and its size with padding and without. */
static void walk_window(const numbers *n, const oracle_conv *c, int plane, int o, int *sum, int *most, int *count, int *padded)
{
    int y = o / c->m[2] * c->stride[1] - c->pad[1], x = o % c->m[2] * c->stride[2] - c->pad[2];
    *sum = *count = *padded = 0;
    *most = -1000;
    for (int i = y; i < y + c->k[1] * c->dilation[1]; i += c->dilation[1]) {
        for (int k = x; k < x + c->k[2] * c->dilation[2]; k += c->dilation[2]) {
            *padded += i < c->n[1] + c->pad[1] && k < c->n[2] + c->pad[2];
            if (i >= 0 && i < c->n[1] && k >= 0 && k < c->n[2]) {
                int e = element(n, 0, (plane * c->n[1] + i) * c->n[2] + k);
                *sum += e;
                *most = e > *most ? e : *most;
                ++*count;
            }
        }
    }
}

static int mean_of(const numbers *n, int sum, int count)
{
    if (n->twice && n->in[0] == n->out && n->in_zero[0] == n->zero) { /* AveragePool of TFLite */
        int stored = sum + n->zero * count;
        stored = stored > 0 ? (stored + count / 2) / count : (stored - count / 2) / count;
        return oracle_clamp(stored, 0, n->low, n->high);
    }
    return oracle_requantise(sum, n->in[0] / n->out / count, n->zero, n->low, n->high, n->twice);
}

static void check_pool(bool is_max)
{
    char inputs[100], call[900], last[60];
    numbers n = pick_numbers();
    int extra;
    oracle_conv c = pick_conv(2, &extra);
    bool with_padding = pick(0, 1) == 1;
    int planes = pick(1, 5);
    for (int d = 1; d < 3; d++) {
        c.dilation[d] = is_max ? c.dilation[d] : 1;
        c.n[d] += 5;
        c.pad[d] = pick(0, c.k[d] / 2);
        c.m[d] = (c.n[d] + 2 * c.pad[d] - (c.k[d] - 1) * c.dilation[d] - 1) / c.stride[d] + 1;
    }
    if (is_max || pick(0, 1)) {
        n.out = n.in[0], n.zero = n.in_zero[0];
        n.low = n.is_signed ? -128 : 0;
        n.high = n.low + pick(100, 255);
    }
    fill_bytes();
    for (int i = 0; i < planes * c.m[1] * c.m[2]; i++) {
        int sum, most, count, padded;
        walk_window(&n, &c, i / (c.m[1] * c.m[2]), i % (c.m[1] * c.m[2]), &sum, &most, &count, &padded);
        expected[i] = is_max ? oracle_clamp(most, n.zero, n.low, n.high) : mean_of(&n, sum, with_padding ? padded : count);
    }
    snprintf(inputs, sizeof inputs, "input x : %s[1,%d,%d,%d]\n", dtype_of(&n), planes, c.n[1], c.n[2]);
    snprintf(last, sizeof last, is_max ? "dilation=%s" : "count_include_pad=%s",
             is_max ? list_of(c.dilation, 2) : with_padding ? "true" : "false");
    snprintf(call, sizeof call, "%s(x, %s, %s, %s, %s, %s)", is_max ? "npu.qmax_pool" : "npu.qavg_pool", list_of(c.k, 2),
             list_of(c.stride, 2), list_of(c.pad, 2), last, scales_of(&n, 1));
    check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, planes * c.m[1] * c.m[2]);
}

static void test_pools(void)
{
    for (int i = 0; i < 300; i++) {
        check_pool(i % 2 == 0);
    }
}

/* [3,4,5,6]: over the last two dims, over dims 0 and 2, over all; adaptive windows of 2 x 3. */
static void test_means(void)
{
    static const char *const calls[] = { "npu.qmean(x, [2,3], ", "npu.qmean(x, [0,-2], ", "npu.qmean(x, none, ",
                                         "npu.qadaptive_avg_pool(x, [2,4], " };
    static const int results[] = { 12, 24, 1, 96 };
    for (int i = 0; i < 80; i++) {
        char inputs[100], call[900];
        numbers n = pick_numbers();
        int sums[96] = { 0 }, counts[96] = { 0 }, way = i % 4;
        fill_bytes();
        for (int e = 0; e < 360; e++) {
            int p = e / 30, h = e / 6 % 5, w = e % 6;
            for (int o = 0; o < (way == 3 ? 8 : 1); o++) { /* windows overlap: floor(o n / m) to ceil((o + 1) n / m) */
                int at = way == 0 ? p : way == 1 ? p % 4 * 6 + w : way == 2 ? 0 : p * 8 + o, y = o / 4, x = o % 4;
                if (way < 3 || (h >= y * 5 / 2 && h < ((y + 1) * 5 + 1) / 2 && w >= x * 6 / 4 && w < ((x + 1) * 6 + 3) / 4)) {
                    sums[at] += element(&n, 0, e);
                    counts[at]++;
                }
            }
        }
        for (int o = 0; o < results[way]; o++) {
            expected[o] = mean_of(&n, sums[o], counts[o]);
        }
        snprintf(inputs, sizeof inputs, "input x : %s[3,4,5,6]\n", dtype_of(&n));
        snprintf(call, sizeof call, "%s%s)", calls[way], scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, results[way]);
    }
}

/* ---- one element, joined operands ---- */

static int nearest(const numbers *n, double real)
{
    return oracle_clamp((int64_t)nearbyint(fmax(fmin(real / n->out, 1e6), -1e6)), n->zero, n->low, n->high);
}

static double apply(int function, double x)
{
    switch (function) {
    case 0: return 1 / (1 + exp(-x));
    case 1: return tanh(x);
    case 2: return x * fmin(fmax(x + 3, 0), 6) / 6;
    case 3: return fmin(fmax(x + 3, 0), 6) / 6;
    case 4: return x / (1 + exp(-x));
    case 5: return x > 0 ? x : x * 0.2;
    default: return x * 0.5 * (1 + erf(x / sqrt(2)));
    }
}

static void test_maps(void)
{
    static const char *const names[] = { "npu.qsigmoid", "npu.qtanh", "npu.qhardswish", "npu.qhardsigmoid", "npu.qsilu",
                                         "npu.qleaky_relu", "npu.qgelu", "npu.requantise" };
    for (int i = 0; i < 160; i++) {
        char inputs[100], call[800];
        numbers n = pick_numbers();
        for (int e = 0; e < 256; e++) {
            bytes[0][e] = (uint8_t)e;
            expected[e] = i % 8 == 7 ? oracle_requantise(element(&n, 0, e), n.in[0] / n.out, n.zero, n.low, n.high, n.twice)
                                     : nearest(&n, apply(i % 8, n.in[0] * element(&n, 0, e)));
        }
        snprintf(inputs, sizeof inputs, "input x : %s[2,128]\n", dtype_of(&n));
        snprintf(call, sizeof call, "%s(x, %s%s)", names[i % 8], i % 8 == 5 ? "0.2, " : "", scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, 256);
    }
}

/* i8 as u8 and back. */
static void test_other_dtype(void)
{
    for (int i = 0; i < 2; i++) {
        char inputs[100], call[800];
        numbers n = { .is_signed = i == 0, .in = { 0.5 }, .out = 0.5, .in_zero = { i == 0 ? 3 : -125 }, .zero = i == 0 ? -125 : 3 };
        n.low = i == 0 ? -128 : 0, n.high = n.low + 255;
        for (int e = 0; e < 256; e++) {
            bytes[0][e] = (uint8_t)e;
            expected[e] = (i == 0 ? e : (int8_t)e) + n.zero - n.in_zero[0];
        }
        snprintf(inputs, sizeof inputs, "input x : %s[256]\n", i == 0 ? "u8" : "i8");
        snprintf(call, sizeof call, "npu.requantise(x, dtype=%s, %s)", dtype_of(&n), scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, 256);
    }
}

static void test_cat(void)
{
    for (int i = 0; i < 30; i++) {
        char inputs[200], call[900];
        numbers n = pick_numbers();
        static const int len[] = { 2, 5, 1 };
        fill_bytes();
        for (int e = 0; e < 3 * 8 * 4; e++) { /* [3, 2 + 5 + 1, 4] */
            int k = e / 4 % 8 < 2 ? 0 : e / 4 % 8 < 7 ? 1 : 2, from = e / 4 % 8 - (k == 0 ? 0 : k == 1 ? 2 : 7);
            expected[e] = oracle_requantise(element(&n, k, (e / 32 * len[k] + from) * 4 + e % 4), n.in[k] / n.out, n.zero, n.low, n.high, n.twice);
        }
        snprintf(inputs, sizeof inputs, "input a : %s[3,2,4]\ninput b : %s[3,5,4]\ninput c : %s[3,1,4]\n", dtype_of(&n), dtype_of(&n), dtype_of(&n));
        snprintf(call, sizeof call, "npu.qcat([a, b, c], -2, %s)", scales_of(&n, 3));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0], bytes[1], bytes[2] }, 96);
    }
}

/* ---- computed in double ---- */

/* Rows of [2,6,3], along dim 1. What is rounded twice is held against another library's code, and here against real numbers. */
static void test_softmax(void)
{
    for (int i = 0; i < 60; i++) {
        char inputs[100], call[900];
        numbers n = pick_numbers();
        n.twice = false;
        fill_bytes();
        for (int e = 0; e < 36; e++) {
            double sum = 0;
            for (int k = 0; k < 6; k++) {
                sum += exp(n.in[0] * (element(&n, 0, e / 18 * 18 + k * 3 + e % 3) - element(&n, 0, e)));
            }
            expected[e] = nearest(&n, 1 / sum);
        }
        snprintf(inputs, sizeof inputs, "input x : %s[2,6,3]\n", dtype_of(&n));
        snprintf(call, sizeof call, "npu.qsoftmax(x, 1, %s)", scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, 36);
    }
}

/* Where the fixed-point softmax is within a step of real numbers for all rows of two elements a given way apart. */
static void test_softmax_twice(void)
{
    static const int8_t right[] = { 0, 0, 6, -6, 31, -31, 59, -59, 85, -85, 119, -119, 127, -128 }; /* 256 / (1 + exp(-d / 10)) - 128 */
    static const int apart[] = { 0, 1, 5, 10, 16, 33, 127 };
    numbers n = { .is_signed = true, .twice = true, .in = { 0.1 }, .out = 1.0 / 256, .zero = -128, .low = -128, .high = 127 };
    for (int i = 0; i < 14; i++) {
        bytes[0][i] = i % 2 ? 0 : (uint8_t)apart[i / 2];
        expected[i] = right[i];
    }
    char call[900];
    snprintf(call, sizeof call, "npu.qsoftmax(x, -1, %s)", scales_of(&n, 1));
    check_call(&n, "input x : i8[7,2]\n", call, (const void *const[]){ bytes[0] }, 14);
}

/* Long rows of equal elements: 256 / n, which from 513 on is nothing. */
static void test_softmax_twice_long(void)
{
    static const struct { uint32_t len; int8_t right; } rows[] = {
        { 64, -124 }, { 100, -125 }, { 400, -127 }, { 500, -127 }, { 520, -128 }, { 600, -128 }, { 1000, -128 }, { 2100, -128 }, { 4095, -128 }
    };
    numbers n = { .is_signed = true, .twice = true, .in = { 0.001 }, .out = 1.0 / 256, .zero = -128, .low = -128, .high = 127 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char inputs[64], call[900];
        for (uint32_t k = 0; k < rows[i].len; k++) {
            bytes[0][k] = 127;
            expected[k] = rows[i].right;
        }
        snprintf(inputs, sizeof inputs, "input x : i8[1,%u]\n", (unsigned)rows[i].len);
        snprintf(call, sizeof call, "npu.qsoftmax(x, -1, %s)", scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, rows[i].len);
    }
}

static void test_layer_norm(void)
{
    for (int i = 0; i < 60; i++) {
        float w[10], b[10];
        char call[900];
        numbers n = pick_numbers();
        fill_bytes();
        for (int k = 0; k < 10; k++) {
            w[k] = (float)pick(-30, 30) / 16.0f;
            b[k] = (float)pick(-30, 30) / 64.0f;
        }
        for (int e = 0; e < 40; e++) {
            double mean = 0, var = 0;
            for (int k = 0; k < 10; k++) {
                mean += n.in[0] * element(&n, 0, e / 10 * 10 + k) / 10;
            }
            for (int k = 0; k < 10; k++) {
                double d = n.in[0] * element(&n, 0, e / 10 * 10 + k) - mean;
                var += d * d / 10;
            }
            expected[e] = nearest(&n, (n.in[0] * element(&n, 0, e) - mean) / sqrt(var + 1e-5) * (double)w[e % 10] + (double)b[e % 10]);
        }
        char inputs[100];
        snprintf(inputs, sizeof inputs, "input x : %s[4,2,5]\ninput w : f32[2,5]\ninput b : f32[2,5]\n", dtype_of(&n));
        snprintf(call, sizeof call, "npu.qlayer_norm(x, [2,5], w, b, %s)", scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0], w, b }, 40);
    }
}

/* One row of columns [4] to [8]: half-pixel centres, and the nearest one below. */
static void test_resize(void)
{
    for (int i = 0; i < 40; i++) {
        bool is_linear = i % 2 == 0;
        char inputs[100], call[900];
        numbers n = pick_numbers();
        fill_bytes();
        for (int e = 0; e < 3 * 2 * 8; e++) {
            double at = fmax((e % 8 + 0.5) / 2 - 0.5, 0), y;
            int row = e / 8 / 2 * 4, low = (int)at, high = low < 3 ? low + 1 : 3;
            y = element(&n, 0, row + low) * (1 - (at - low)) + element(&n, 0, row + high) * (at - low);
            expected[e] = nearest(&n, n.in[0] * (is_linear ? y : element(&n, 0, row + e % 8 / 2)));
        }
        snprintf(inputs, sizeof inputs, "input x : %s[1,3,1,4]\n", dtype_of(&n));
        snprintf(call, sizeof call, "%s(x, [2,8], %s%s)", is_linear ? "npu.qupsample_bilinear2d" : "npu.qupsample_nearest2d",
                 is_linear ? "false, " : "", scales_of(&n, 1));
        check_call(&n, inputs, call, (const void *const[]){ bytes[0] }, 48);
    }
}

/* ---- fast variants: the bytes of the plain one, under every instruction set ---- */

enum { LARGE = 1 << 18, THREADS = 3 };
static int8_t large_w[LARGE], large_x[LARGE];
static int32_t large_bias[512];
static double large_scales[512];

/* Weights as they are trained: small, or just so that two with the largest x fit 16 bits, and few that do not. */
static int8_t trained_weight(bool is_small)
{
    return (int8_t)(pick(0, 39) == 0 ? (pick(0, 1) ? 127 : -128) : is_small ? pick(-64, 64) : pick(0, 1) ? 64 : -64);
}

/* Sums as large as they can be, or any; biases that make them saturate; factors beside what a double holds exactly. */
static void fill_large(numbers *n)
{
    int kind = pick(0, 5), most = n->is_signed ? 127 : -1;
    for (int i = 0; i < LARGE; i++) {
        large_x[i] = (int8_t)(kind == 0 || (kind == 4 && pick(0, 3)) ? most : (int)npu_test_random(&rng));
        large_w[i] = kind == 0 ? -128 : kind == 1 ? (int8_t)(pick(0, 1) ? 127 : -128) : (int8_t)npu_test_random(&rng);
        large_w[i] = kind > 3 ? trained_weight(kind == 5) : large_w[i];
    }
    n->out = pick(0, 2) ? n->in[0] * ldexp(1.0, pick(0, 12)) : n->out;
    for (int i = 0; i < 512; i++) {
        large_bias[i] = kind == 1 ? (pick(0, 1) ? INT32_MAX : INT32_MIN) : pick(-20000, 20000);
        large_scales[i] = kind == 2 ? ldexp(1.0, pick(-9, -3)) : pick_scale(); /* of 2: products that are halves */
        large_scales[i] *= kind == 3 ? ldexp(1.0, -pick(0, 9)) : 1.0;
    }
}

typedef struct variant_run {
    npu_program *program;
    npu_exec *exec;
} variant_run;

static variant_run run_variant(const npu_graph *g, const npu_backend *cpu, npu_parallel *threads, const void *x)
{
    variant_run r = { NULL, NULL };
    npu_plan *plan = NULL;
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1, .num_workers = THREADS };
    npu_exec_desc exec_desc = { .parallel = threads };
    npu_diag diag = { 0 };
    size_t bits;
    npu_status status = npu_plan_create(&plan, g, &plan_desc, &diag);
    status = status ? status : npu_program_create(&r.program, plan, &diag);
    status = status ? status : npu_exec_create(&r.exec, r.program, &exec_desc, &diag);
    npu_plan_destroy(plan);
    for (uint32_t i = 0; status == NPU_OK && i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &bits);
        status = npu_test_input_at(r.exec, i, i ? large_w : x, bits);
    }
    status = status ? status : npu_exec_run(r.exec);
    NPU_CHECK_THAT(status == NPU_OK, "%s: %s", npu_status_name(status), diag.message);
    return r;
}

static void end_variant(variant_run *r)
{
    npu_exec_destroy(r->exec);
    npu_program_destroy(r->program);
}

static uint32_t ways = 1; /* 2 = on several threads, too */

/* Every set against the plain variant. */
static void check_variants(const npu_graph *g, const char *what, const void *x)
{
    npu_ref_desc desc = { .variant = "plain", .with_built_in = true };
    npu_backend *plain = NULL;
    size_t size = 0, fast_size = 0;
    npu_parallel *threads = NULL;
    NPU_CHECK_STATUS(npu_ref_create(&plain, &desc), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = THREADS }), NPU_OK);
    variant_run right = run_variant(g, plain, NULL, x);
    const uint8_t *a = (const uint8_t *)npu_exec_output(right.exec, 0, &size);
    for (uint32_t i = 0; isa_cpu(i / ways); i++) {
        variant_run fast = run_variant(g, isa_cpu(i / ways), i % ways ? threads : NULL, x);
        const uint8_t *b = (const uint8_t *)npu_exec_output(fast.exec, 0, &fast_size);
        size_t wrong = 0;
        while (a && b && wrong < size && a[wrong] == b[wrong]) {
            wrong++;
        }
        NPU_CHECK_THAT(size && size == fast_size && wrong == size,
                       "%s: set %s, %d threads: byte %lu of %lu is %d, expected %d", what, npu_ref_isa(i / ways),
                       i % ways ? THREADS : 1, (unsigned long)wrong, (unsigned long)size, b[wrong % size], a[wrong % size]);
        end_variant(&fast);
    }
    end_variant(&right);
    npu_threads_destroy(threads);
    npu_ref_destroy(plain);
}

/* A graph of one op on x, with constants for weight and bias; attributes are those of `list`, then the quantised ones. */
static void check_fast_channels(npu_kind kind, numbers *n, npu_spec x, npu_spec w, int64_t channels, const npu_arg *list,
                                uint32_t num, const char *what)
{
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
    int64_t zero = n->in_zero[0];
    npu_arg args[20];
    bool is_fed = pick(0, 7) == 0;
    size_t x_size = 0, w_size = 0;
    fill_large(n);
    NPU_CHECK(npu_spec_size(&x, &x_size) == NPU_OK && npu_spec_size(&w, &w_size) == NPU_OK && x_size <= LARGE && w_size <= LARGE &&
              channels <= 512);
    x.dtype = n->is_signed ? NPU_I8 : NPU_U8;
    args[0] = npu_arg_tensor("input", npu_input(g, "x", x));
    args[1] = npu_arg_tensor("weight", is_fed ? npu_input(g, "w", w) : npu_constant(g, NULL, w, large_w));
    args[2] = npu_arg_tensor("bias", npu_constant(g, NULL, npu_spec_tensor(NPU_I32, 1, &channels), large_bias));
    for (uint32_t i = 0; i < num; i++) {
        args[3 + i] = list[i];
    }
    const npu_arg quantised[] = { npu_arg_floats("w_scales", large_scales, pick(0, 1) ? (uint32_t)channels : 1),
                                  npu_arg_floats("in_scales", n->in, 1), npu_arg_ints("in_zeros", &zero, 1),
                                  npu_arg_float("scale", n->out), npu_arg_int("zero", n->zero), npu_arg_int("low", n->low),
                                  npu_arg_int("high", n->high), npu_arg_str("rounding", n->twice ? "double" : "single") };
    memcpy(args + 3 + num, quantised, sizeof quantised);
    npu_op op = npu_emit(g, kind, args, 3 + num + sizeof quantised / sizeof *quantised);
    npu_output(g, "y", npu_op_result(g, op, 0));
    NPU_CHECK_THAT(npu_graph_status(g) == NPU_OK, "%s: %s", what, npu_graph_diag(g)->message);
    check_variants(g, what, large_x);
    npu_graph_destroy(g);
}

static void check_fast(npu_kind kind, numbers *n, npu_spec x, npu_spec w, const npu_arg *list, uint32_t num, const char *what)
{
    check_fast_channels(kind, n, x, w, w.dims[0], list, num, what);
}

/* Sums times 2^31 factors that lie so near a half of 2^shift that a double holds the half: rounded once they go to `y`. */
static const struct { int32_t sum, multiplier; int shift, y; } near_halves[] = {
    { 8811711, 1477376831, 47, 93 },   { 8761343, 1501933569, 47, 93 },   { 7252661, 1930792035, 47, 99 },
    { 10656395, 1446150877, 47, 109 }, { 6090213, 1640724499, 48, 35 },   { 8866267, 1793690195, 48, 57 },
    { 14666067, 1141939493, 48, 59 },  { 21744213, 1080892675, 48, 83 },
};

/* Channel i has the i-th of them, in turn, at every place. */
static void check_near_halves(npu_kind kind, npu_spec x, npu_spec w, const char *what)
{
    enum { NUM = sizeof near_halves / sizeof near_halves[0] };
    npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
    const double one = 1.0;
    const int64_t none[2] = { 0 }, ones[2] = { 1, 1 }, channels = w.dims[0];
    size_t size = 0;
    memset(large_w, 0, LARGE);
    for (int64_t i = 0; i < channels; i++) {
        large_bias[i] = near_halves[i % NUM].sum;
        large_scales[i] = ldexp(near_halves[i % NUM].multiplier, -near_halves[i % NUM].shift);
    }
    npu_arg args[] = {
        npu_arg_tensor("input", npu_input(g, "x", x)), npu_arg_tensor("weight", npu_constant(g, NULL, w, large_w)),
        npu_arg_tensor("bias", npu_constant(g, NULL, npu_spec_tensor(NPU_I32, 1, &channels), large_bias)),
        npu_arg_floats("w_scales", large_scales, (uint32_t)channels), npu_arg_floats("in_scales", &one, 1),
        npu_arg_ints("in_zeros", none, 1), npu_arg_float("scale", 1.0), npu_arg_int("zero", 0),
        npu_arg_str("rounding", "single"), npu_arg_ints("stride", ones, 2), npu_arg_ints("padding", none, 2),
        npu_arg_ints("dilation", ones, 2), npu_arg_bool("transposed", false), npu_arg_ints("output_padding", none, 2),
        npu_arg_int("groups", x.dims[1] / w.dims[1])
    };
    npu_output(g, "y", npu_op_result(g, npu_emit(g, kind, args, kind == NPU_NPU_QLINEAR ? 9 : 15), 0));
    variant_run run = run_variant(g, npu_ref_backend(), NULL, large_x);
    const int8_t *y = (const int8_t *)npu_exec_output(run.exec, 0, &size);
    for (size_t i = 0; i < size; i++) {
        size_t k = i / (size / (size_t)channels) % NUM;
        NPU_CHECK_THAT(y[i] == near_halves[k].y, "%s: %d times %d 2^-%d is %d, expected %d", what,
                       (int)near_halves[k].sum, (int)near_halves[k].multiplier, near_halves[k].shift, y[i],
                       near_halves[k].y);
    }
    end_variant(&run);
    check_variants(g, what, large_x);
    npu_graph_destroy(g);
}

static void test_near_halves(void)
{
    const npu_spec row = npu_spec_tensor(NPU_I8, 2, (int64_t[]){ 8, 1 });
    check_near_halves(NPU_NPU_QLINEAR, npu_spec_tensor(NPU_I8, 2, (int64_t[]){ 1, 1 }), row, "qlinear");
    check_near_halves(NPU_NPU_QCONV, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 1, 1, 9, 9 }),
                      npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 8, 1, 1, 1 }), "qconv");
    check_near_halves(NPU_NPU_QCONV, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 1, 16, 9, 9 }),
                      npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 16, 1, 2, 2 }), "depthwise qconv");
    check_near_halves(NPU_NPU_QCONV, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 1, 160, 7, 7 }),
                      npu_spec_tensor(NPU_I8, 4, (int64_t[]){ 64, 160, 1, 1 }), "qconv of a small image");
}

static void test_fast_linear(void)
{
    for (int i = 0; i < 60; i++) {
        numbers n = pick_numbers();
        int64_t m = pick(1, i % 3 ? 40 : 200), k = pick(1, i % 5 ? 200 : 1000), out = pick(1, 250);
        char what[80];
        snprintf(what, sizeof what, "qlinear %d x %d x %d", (int)m, (int)k, (int)out);
        check_fast(NPU_NPU_QLINEAR, &n, npu_spec_tensor(NPU_I8, 2, (int64_t[]){ m, k }),
                   npu_spec_tensor(NPU_I8, 2, (int64_t[]){ out, k }), NULL, 0, what);
    }
}

static void test_fast_convolution(void)
{
    for (int i = 0; i < 150; i++) {
        numbers n = pick_numbers();
        bool is_depthwise = i % 4 == 0;
        int64_t groups = is_depthwise ? pick(1, 40) : pick(1, 3), in = is_depthwise ? 1 : pick(1, 18);
        int64_t out = is_depthwise ? pick(1, 2) : pick(1, 45), kernel[2] = { pick(1, 4), i % 7 ? pick(1, 4) : 7 };
        int64_t stride[2] = { pick(1, 3), pick(1, 3) }, pad[2], dilation[2] = { pick(1, 2), pick(1, 2) }, size[2];
        bool is_deep = i % 10 == 5; /* of more channels than a block of words has */
        char what[200];
        if (is_deep) {
            in = pick(50, 130), out = pick(1, 60), groups = pick(1, 2);
            kernel[0] = pick(1, 3), kernel[1] = pick(1, 3);
        }
        if (i % 5 == 1) {
            kernel[0] = kernel[1] = 1;
        }
        if (i % 8 == 4) {
            kernel[0] = pick(2, 9);
            groups = pick(1, 3); /* one of them in two is wide */
        }
        for (int d = 0; d < 2; d++) {
            stride[d] = i % 3 ? 1 : stride[d];
            pad[d] = pick(0, 1) ? pick(0, (int)kernel[d]) : 0;
            size[d] = pick(1, is_deep ? 12 : i % 16 == 12 && d ? 600 : i % 6 == 3 ? (d ? 160 : 8) : 40) +
                      (kernel[d] - 1) * dilation[d];
        }
        snprintf(what, sizeof what, "qconv x %dx%d, %d groups %d to %d, kernel %dx%d stride %d,%d pad %d,%d dilation %d,%d",
                 (int)size[0], (int)size[1], (int)groups, (int)in, (int)out, (int)kernel[0], (int)kernel[1], (int)stride[0],
                 (int)stride[1], (int)pad[0], (int)pad[1], (int)dilation[0], (int)dilation[1]);
        const int64_t none[2] = { 0 };
        const npu_arg list[] = { npu_arg_ints("stride", stride, 2), npu_arg_ints("padding", pad, 2),
                                 npu_arg_ints("dilation", dilation, 2), npu_arg_bool("transposed", false),
                                 npu_arg_ints("output_padding", none, 2), npu_arg_int("groups", groups) };
        check_fast(NPU_NPU_QCONV, &n, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ pick(1, 2), groups * in, size[0], size[1] }),
                   npu_spec_tensor(NPU_I8, 4, (int64_t[]){ groups * out, in, kernel[0], kernel[1] }), list,
                   sizeof list / sizeof *list, what);
    }
}

/* Over three dims, or transposed: strides that do not divide kernels, results that end between those, what is padded
   beside inputs of one place, rows that are joined but where the result has more. */
static void test_fast_slices(void)
{
    for (int i = 0; i < 240; i++) {
        numbers n = pick_numbers();
        uint32_t rank = i % 4 ? 3 : i % 8 ? 2 : 1;
        bool is_transposed = rank < 3 || pick(0, 2) == 0;
        int64_t groups = pick(1, 3), in = pick(1, i % 5 ? 9 : 40), out = pick(1, i % 7 ? 9 : 40), images = pick(1, 2);
        int64_t x[5] = { images, groups * in }, w[5] = { groups * (is_transposed ? in : out), is_transposed ? out : in };
        int64_t stride[3], pad[3], dilation[3], extra[3];
        char what[300];
        for (uint32_t d = 0; d < rank; d++) {
            w[2 + d] = pick(1, 4);
            stride[d] = pick(1, 3), dilation[d] = pick(0, 2) ? 1 : 2;
            pad[d] = pick(0, (int)w[2 + d] - 1);
            extra[d] = is_transposed && stride[d] > 1 ? pick(0, (int)stride[d] - 1) : 0;
            x[2 + d] = pick(0, 5) ? pick(1, rank == 3 ? 6 : 20) : 1;
            x[2 + d] += is_transposed ? pad[d] : (w[2 + d] - 1) * dilation[d];
        }
        int len = snprintf(what, sizeof what, "qconv%s, %d groups %d to %d", is_transposed ? " transposed" : "", (int)groups, (int)in, (int)out);
        for (uint32_t d = 0; d < rank; d++) {
            len += snprintf(what + len, sizeof what - (size_t)len, "; x %d kernel %d stride %d pad %d + %d dilation %d", (int)x[2 + d],
                            (int)w[2 + d], (int)stride[d], (int)pad[d], (int)extra[d], (int)dilation[d]);
        }
        const npu_arg list[] = { npu_arg_ints("stride", stride, rank), npu_arg_ints("padding", pad, rank),
                                 npu_arg_ints("dilation", dilation, rank), npu_arg_bool("transposed", is_transposed),
                                 npu_arg_ints("output_padding", extra, rank), npu_arg_int("groups", groups) };
        ways = 1 + (i % 3 == 0);
        check_fast_channels(NPU_NPU_QCONV, &n, npu_spec_tensor(NPU_I8, rank + 2, x), npu_spec_tensor(NPU_I8, rank + 2, w), groups * out,
                            list, sizeof list / sizeof *list, what);
        ways = 1;
    }
}

/* Means of windows in 1 to 3 dims: strides, windows that hang over the end, divisors that padding changes or none. */
static void test_fast_means(void)
{
    for (int i = 0; i < 200; i++) {
        numbers n = pick_numbers();
        uint32_t rank = (uint32_t)pick(1, 3);
        npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
        int64_t x[5] = { pick(1, 2), pick(1, 4) }, kernel[3], stride[3], pad[3], zero = n.in_zero[0];
        bool is_same = pick(0, 1) == 1, with_divisor = pick(0, 3) == 0;
        char what[300];
        fill_large(&n);
        n.out = is_same ? n.in[0] : n.out, n.zero = is_same ? (int)zero : n.zero;
        int len = snprintf(what, sizeof what, "qavg_pool");
        for (uint32_t d = 0; d < rank; d++) {
            kernel[d] = pick(1, 5), stride[d] = pick(1, 4), pad[d] = pick(0, 1) ? pick(0, (int)kernel[d] / 2) : 0;
            x[2 + d] = kernel[d] + pick(0, d + 1 == rank && pick(0, 1) ? 400 : 9);
            len += snprintf(what + len, sizeof what - (size_t)len, "; x %d kernel %d stride %d pad %d", (int)x[2 + d], (int)kernel[d],
                            (int)stride[d], (int)pad[d]);
        }
        npu_arg args[] = { npu_arg_tensor("self", npu_input(g, "x", npu_spec_tensor(n.is_signed ? NPU_I8 : NPU_U8, rank + 2, x))),
                           npu_arg_ints("kernel_size", kernel, rank), npu_arg_ints("stride", stride, rank),
                           npu_arg_ints("padding", pad, rank), npu_arg_bool("ceil_mode", pick(0, 1)),
                           npu_arg_bool("count_include_pad", pick(0, 1)), npu_arg_floats("in_scales", n.in, 1),
                           npu_arg_ints("in_zeros", &zero, 1), npu_arg_float("scale", n.out), npu_arg_int("zero", n.zero),
                           npu_arg_int("low", n.low), npu_arg_int("high", n.high),
                           npu_arg_str("rounding", n.twice ? "double" : "single"), npu_arg_int("divisor_override", pick(-3, 9) * 2 + 1) };
        npu_op op = npu_emit(g, NPU_NPU_QAVG_POOL, args, sizeof args / sizeof *args - !with_divisor);
        npu_output(g, "y", npu_op_result(g, op, 0));
        NPU_CHECK_THAT(npu_graph_status(g) == NPU_OK, "%s: %s", what, npu_graph_diag(g)->message);
        ways = 1 + (i % 8 == 0);
        check_variants(g, what, large_x);
        ways = 1;
        npu_graph_destroy(g);
    }
}

/* Images of sevens and eights, of which rows of places leave much unused, with whole panels of output channels; some of
   so many channels that chunks of them share what threads make of the input before. */
static void test_fast_small_images(void)
{
    for (int i = 0; i < 60; i++) {
        numbers n = pick_numbers();
        bool is_shared = i % 6 == 5, is_deep = i % 12 == 5;
        int64_t kernel = is_shared ? 1 : i % 3 ? 2 * pick(0, 1) + 1 : pick(1, 4), groups = kernel == 1 ? 1 : pick(1, 2);
        int64_t in = is_deep ? 1024 : is_shared ? pick(200, 240) : kernel == 1 ? pick(100, 240) : pick(1, 40);
        int64_t out = 32 * (is_deep ? 8 : is_shared ? pick(6, 8) : pick(1, 5));
        int64_t stride[2] = { pick(1, 2), pick(1, 2) }, pad[2], dilation[2] = { 1, pick(1, 2) }, size[2];
        char what[120];
        for (int d = 0; d < 2; d++) {
            int64_t wide = (i % 2 ? 7 : 8) * pick(1, 2), high = pick(1, i % 4 || kernel == 1 ? 9 : 18);
            int64_t result = is_deep ? 4 : is_shared ? pick(12, 14) : d ? wide : high;
            stride[d] = is_deep ? 2 : stride[d]; /* rows are not joined: what is written behind each is the next one's */
            pad[d] = pick(0, (int)kernel / 2);
            size[d] = (result - 1) * stride[d] + (kernel - 1) * dilation[d] + 1 - 2 * pad[d];
            pad[d] = size[d] < 1 ? 0 : pad[d];
            size[d] = (result - 1) * stride[d] + (kernel - 1) * dilation[d] + 1 - 2 * pad[d];
        }
        snprintf(what, sizeof what, "qconv small x %dx%d, %d groups %d to %d, kernel %d stride %d,%d pad %d,%d",
                 (int)size[0], (int)size[1], (int)groups, (int)in, (int)out, (int)kernel, (int)stride[0],
                 (int)stride[1], (int)pad[0], (int)pad[1]);
        const int64_t none[2] = { 0 };
        const npu_arg list[] = { npu_arg_ints("stride", stride, 2), npu_arg_ints("padding", pad, 2),
                                 npu_arg_ints("dilation", dilation, 2), npu_arg_bool("transposed", false),
                                 npu_arg_ints("output_padding", none, 2), npu_arg_int("groups", groups) };
        int64_t images = 2 * groups * in * size[0] * size[1] > LARGE ? 1 : pick(1, 2);
        npu_spec x = npu_spec_tensor(NPU_I8, 4, (int64_t[]){ images, groups * in, size[0], size[1] });
        npu_spec w = npu_spec_tensor(NPU_I8, 4, (int64_t[]){ groups * out, in, kernel, kernel });
        ways = is_shared ? 2 : 1;
        check_fast(NPU_NPU_QCONV, &n, x, w, list, sizeof list / sizeof *list, what);
        ways = 1;
    }
}

/* Kernels of 3 x 3 at every place, which squares of results do; rows and columns of squares that overlap the end, input
   channels without a pair, bands, chunks of output channels, and sums as large as the data allows. */
static void test_fast_squares(void)
{
    for (int i = 0; i < 60; i++) {
        numbers n = pick_numbers();
        bool is_deep = i % 6 == 1, is_high = i % 6 == 2, is_wide = i % 12 == 3;
        int64_t in = is_deep ? pick(800, 900) : pick(32, is_high ? 36 : 130), out = pick(32, is_deep ? 32 : 120), pad[2];
        int64_t size[2], images = pick(1, 2), most = is_deep ? 14 : is_high ? 50 : LARGE / (images * in) > 400 ? 20 : 14;
        char what[120];
        if (is_wide) {
            images = 1, in = pick(60, 64), out = pick(380, 400), most = 20;
        }
        for (int d = 0; d < 2; d++) {
            pad[d] = pick(0, 3);
            size[d] = pick(is_wide ? 18 : is_deep ? 12 : i % 3 ? 9 : pad[d] ? 1 : 3, (int)most);
        }
        while (images * in * size[0] * size[1] > LARGE) {
            size[0]--;
        }
        snprintf(what, sizeof what, "squares %d x %dx%dx%d to %d, pad %d,%d", (int)images, (int)in, (int)size[0],
                 (int)size[1], (int)out, (int)pad[0], (int)pad[1]);
        const int64_t none[2] = { 0 }, ones[2] = { 1, 1 };
        const npu_arg list[] = { npu_arg_ints("stride", ones, 2), npu_arg_ints("padding", pad, 2),
                                 npu_arg_ints("dilation", ones, 2), npu_arg_bool("transposed", false),
                                 npu_arg_ints("output_padding", none, 2), npu_arg_int("groups", 1) };
        ways = is_wide ? 2 : 1;
        check_fast(NPU_NPU_QCONV, &n, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ images, in, size[0], size[1] }),
                   npu_spec_tensor(NPU_I8, 4, (int64_t[]){ out, in, 3, 3 }), list, sizeof list / sizeof *list, what);
        ways = 1;
    }
}

/* Channels that share vectors, and bands of rows that share them with others. */
static void test_fast_depthwise(void)
{
    for (int i = 0; i < 60; i++) {
        numbers n = pick_numbers();
        bool is_high = i % 5 == 0;
        int64_t channels = is_high ? pick(12, 40) : pick(12, 200), kernel[2] = { pick(2, i % 3 ? 3 : 9), pick(1, 5) };
        int64_t stride[2] = { pick(1, i % 2 ? 1 : 3), pick(1, i % 2 ? 1 : 3) };
        int64_t dilation[2] = { pick(1, 1 + (i % 4 == 3)), pick(1, 2) };
        int64_t pad[2], size[2], images = pick(1, 2), extent[2] = { is_high ? 90 : 20, is_high ? 60 : 20 };
        char what[120];
        for (int d = 0; d < 2; d++) {
            pad[d] = pick(0, (int)kernel[d]);
            size[d] = pick(1, (int)extent[d]) + (kernel[d] - 1) * dilation[d];
        }
        while (images * channels * size[0] * size[1] > LARGE) {
            size[0] = size[0] > size[1] ? size[0] - 1 : size[0];
            size[1] = size[1] >= size[0] ? size[1] - 1 : size[1];
        }
        pad[0] = size[0] + 2 * pad[0] < (kernel[0] - 1) * dilation[0] + 1 ? kernel[0] * dilation[0] : pad[0];
        pad[1] = size[1] + 2 * pad[1] < (kernel[1] - 1) * dilation[1] + 1 ? kernel[1] * dilation[1] : pad[1];
        snprintf(what, sizeof what, "depthwise %d x %dx%dx%d, kernel %dx%d stride %d,%d pad %d,%d dilation %d,%d",
                 (int)images, (int)channels, (int)size[0], (int)size[1], (int)kernel[0], (int)kernel[1], (int)stride[0],
                 (int)stride[1], (int)pad[0], (int)pad[1], (int)dilation[0], (int)dilation[1]);
        const int64_t none[2] = { 0 };
        const npu_arg list[] = { npu_arg_ints("stride", stride, 2), npu_arg_ints("padding", pad, 2),
                                 npu_arg_ints("dilation", dilation, 2), npu_arg_bool("transposed", false),
                                 npu_arg_ints("output_padding", none, 2), npu_arg_int("groups", channels) };
        check_fast(NPU_NPU_QCONV, &n, npu_spec_tensor(NPU_I8, 4, (int64_t[]){ images, channels, size[0], size[1] }),
                   npu_spec_tensor(NPU_I8, 4, (int64_t[]){ channels, 1, kernel[0], kernel[1] }), list,
                   sizeof list / sizeof *list, what);
    }
}

/* i8 times i8 in 32 bits: all sums at their limits, and any. */
static void test_fast_int_mm(void)
{
    for (int i = 0; i < 40; i++) {
        numbers n = { .is_signed = true, .in = { 1.0 }, .out = 1.0 };
        int64_t m = pick(1, 70), k = pick(1, 300), cols = i % 4 ? pick(1, 130) : 32 * pick(1, 9); /* whole panels */
        npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
        npu_spec spec = npu_spec_tensor(NPU_I8, 2, (int64_t[]){ k, cols });
        char what[80];
        fill_large(&n);
        if (i % 3 == 0) {
            memset(large_x, -128, sizeof large_x);
        }
        snprintf(what, sizeof what, "_int_mm %d x %d x %d", (int)m, (int)k, (int)cols);
        npu_arg args[] = { npu_arg_tensor("self", npu_input(g, "x", npu_spec_tensor(NPU_I8, 2, (int64_t[]){ m, k }))),
                           npu_arg_tensor("mat2", i % 2 ? npu_input(g, "w", spec) : npu_constant(g, NULL, spec, large_w)) };
        npu_output(g, "y", npu_op_result(g, npu_emit(g, NPU_ATEN_INT_MM, args, 2), 0));
        check_variants(g, what, large_x);
        npu_graph_destroy(g);
    }
}

/* What quantize_per_tensor says of one element: steps in f32, rounded to even; NaN is 0. */
static int quantised(const numbers *n, float x)
{
    float whole = nearbyintf(x * (float)(1.0 / n->out)) + (float)n->zero;
    return whole != whole ? 0 : whole < (float)n->low ? n->low : whole > (float)n->high ? n->high : (int)whole;
}

enum { REALS = 600 };

/* y = <op>_per_tensor(x); the op's own result, against every set's. */
static variant_run run_affine(const numbers *n, npu_graph **g, const char *op, const char *dtype, const void *x)
{
    char text[400];
    npu_diag diag = { 0 };
    int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput x : %s[%d]\n"
                       "y = quantized_decomposed.%s_per_tensor.default(x, %.17g, %d, %d, %d, %s)\noutput y = y\n",
                       dtype, REALS, op, n->out, n->zero, n->low, n->high, dtype_of(n));
    npu_status status = npu_graph_parse(g, text, (size_t)len, &(npu_graph_desc){ .registry = registry }, &diag);
    NPU_CHECK_THAT(status == NPU_OK, "%s: %s", text, diag.message);
    check_variants(*g, op, x);
    return run_variant(*g, npu_ref_backend(), NULL, x);
}

/* Halves, their neighbours, numbers beyond all integers, infinite ones and NaN. */
static void test_quantise(void)
{
    static const float special[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -1e-45f, -0.0f, 8388607.5f,
                                     -8388607.5f, 1048576.0f, -1048577.0f, 2147483648.0f, -2147483904.0f };
    static float x[REALS];
    for (int i = 0; i < 60; i++) {
        numbers n = pick_numbers();
        npu_graph *g = NULL;
        size_t size;
        n.out = i % 2 ? n.out : ldexp(1.0, pick(-12, 4)); /* a power of two makes halves exact */
        for (int e = 0; e < REALS; e++) {
            float half = (float)((pick(-300, 300) + 0.5) * n.out), any = (float)(pick(-4000, 4000) * n.out / 16);
            x[e] = e % 3 == 0 ? half : e % 3 == 1 ? nextafterf(half, pick(0, 1) ? INFINITY : -INFINITY) : any;
            x[e] = e % 40 == 39 ? special[e / 40 % 14] : x[e];
        }
        variant_run run = run_affine(&n, &g, "quantize", "f32", x);
        const uint8_t *y = (const uint8_t *)npu_exec_output(run.exec, 0, &size);
        for (int e = 0; y && e < REALS; e++) {
            int got = n.is_signed ? (int8_t)y[e] : y[e];
            NPU_CHECK_THAT(got == quantised(&n, x[e]), "%a by %a + %d: %d, expected %d", (double)x[e], n.out, n.zero, got,
                           quantised(&n, x[e]));
        }
        end_variant(&run);
        npu_graph_destroy(g);
    }
}

static void test_dequantise(void)
{
    for (int i = 0; i < 20; i++) {
        numbers n = pick_numbers();
        npu_graph *g = NULL;
        size_t size;
        fill_bytes();
        n.in_zero[0] = n.zero;
        variant_run run = run_affine(&n, &g, "dequantize", dtype_of(&n), bytes[0]);
        const float *y = (const float *)npu_exec_output(run.exec, 0, &size);
        for (int e = 0; y && e < REALS; e++) {
            float right = (float)element(&n, 0, e) * (float)n.out;
            NPU_CHECK_THAT(y[e] == right, "element %d is %a, expected %a", e, (double)y[e], (double)right);
        }
        end_variant(&run);
        npu_graph_destroy(g);
    }
}

/* Scales and zero points of channels, tokens and groups: some are left to the plain variant, a part of the run or all. */
static void test_affine_parts(void)
{
    static const char *const rows[] = {
        "const s : f32[4] {0.1, 0.25, 3, 0.01}\nconst z : i32[4] {0, 127, -128, 5}\n"
        "y = quantized_decomposed.quantize_per_channel.default(x, s, z, 0, -128, 127, i8)\n",
        "const s : f32[6] {0.1, 0.25, 3, 0.01, 0.5, 7}\nconst c : i64[6] {0, -1, 1, 0, 2, -3000}\n"
        "z = aten.mul.Scalar(c, 1000003)\n"
        "y = quantized_decomposed.quantize_per_channel.default(x, s, z, 1, 3, 250, u8)\n",
        "const s : f64[5] {0.1, 0.3, 3, 0.01, 0.7}\nconst z : i32[5] {0, 127, -128, 5, 1}\n"
        "y = quantized_decomposed.quantize_per_channel.default(x, s, z, 2, -128, 127, i8)\n",
        "const s : f32[1] {0.1}\nconst z : i64[1] {-3}\n"
        "y = quantized_decomposed.quantize_per_tensor.tensor(x, s, z, -128, 127, i8)\n",
        "const s : f32[1] {0.1}\nconst z : i64[1] {-3}\nconst l : i64[1] {-100}\nconst h : i64[1] {90}\n"
        "y = quantized_decomposed.quantize_per_tensor.tensor2(x, s, z, l, h, i8)\n",
        "const s : f32[1] {0.1}\nconst z : i64[1] {-3}\nconst l : i64[1] {90}\nconst h : i64[1] {-100}\n"
        "y = quantized_decomposed.quantize_per_tensor.tensor2(x, s, z, l, h, i8)\n",
        "p = aten.amax.default(x, [2], true)\ns = aten.full_like.default(p, 0.3)\nz = aten.full_like.default(p, 7)\n"
        "y = quantized_decomposed.quantize_per_token.default(x, s, z, -128, 127, i8)\n",
        "const s : f32[4] {0.1, 0.25, 3, 0.01}\nconst z : i32[4] {0, 127, -128, 5}\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, z, 0, -128, 127, i8)\n",
        "const s : f32[6] {0.1, 0.25, 3, 0.01, 0.5, 7}\nconst c : i64[6] {0, -1, 1, 0, 2, -3000}\n"
        "z = aten.mul.Scalar(c, 1000003)\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, z, 1, -128, 127, i8)\n",
        "const s : f32[5] {0.1, 0.3, 3, 0.01, 0.7}\nconst z : i8[5] {0, 127, -128, 5, 1}\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, z, 2, -128, 127, i8)\n",
        "const s : f32[5] {0.1, 0.3, 3, 0.01, 0.7}\nconst z : f32[5] {0, 0.5, -100.25, 5, 1}\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, z, 2, -128, 127, i8)\n",
        "const s : f32[6] {0.1, 0.25, 3, 0.01, 0.5, 7}\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, none, 1, -128, 127, i8)\n",
        "const s : f64[4] {0.1, 0.25, 3, 0.01}\nconst z : i32[4] {0, 127, -128, 5}\n"
        "y = quantized_decomposed.dequantize_per_channel.default(b, s, z, 0, -128, 127, i8)\n",
        "const s : f32[1] {0.1}\nconst z : i64[1] {-3}\n"
        "y = quantized_decomposed.dequantize_per_tensor.tensor(b, s, z, -128, 127, i8)\n",
    };
    static float x[4 * 6 * 5];
    for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
        char text[700];
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        for (int e = 0; e < 4 * 6 * 5; e++) {
            x[e] = (float)pick(-4000, 4000) / (e % 2 ? 20.0f : 32.0f);
        }
        x[pick(0, 4 * 6 * 5 - 1)] = NAN;
        int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput x : f32[4,6,5]\n"
                           "b = quantized_decomposed.quantize_per_tensor.default(x, 1.0, 0, -128, 127, i8)\n%soutput y = y\n",
                           rows[i / 4]);
        npu_status status = npu_graph_parse(&g, text, (size_t)len, &(npu_graph_desc){ .registry = registry }, &diag);
        NPU_CHECK_THAT(status == NPU_OK, "%s: %s", text, diag.message);
        check_variants(g, text, x);
        npu_graph_destroy(g);
    }
}

/* 4-bit weights with and without a bias; a weight that is fed is not packed. Some are no bytes, some rows no
   numbers. */
static void test_fast_dynamic(void)
{
    static const float wrong[] = { INFINITY, NAN, -INFINITY, 1e30f };
    static float packed[1 << 16], x[1 << 14];
    for (int i = 0; i < 40; i++) {
        bool is_whole = i % 4 == 3; /* a group is all of a row, of any even length */
        int64_t group = is_whole ? 2 * pick(1, 60) : 32 * pick(1, 2), k = is_whole ? group : group * pick(1, 4);
        int64_t n = pick(1, 100), m = pick(1, 30);
        int64_t pairs = n * k / 2, dims = pairs + n * (k / group) + (i % 3 ? 0 : n);
        npu_graph *g = npu_graph_create(&(npu_graph_desc){ .registry = registry });
        npu_spec spec = npu_spec_tensor(NPU_F32, 1, &dims);
        char what[80];
        for (int64_t j = 0; j < dims; j++) {
            packed[j] = j < pairs ? (float)pick(0, 255) : (float)pick(-1000, 1000) / 512.0f;
        }
        for (int64_t j = 0; j < m * k; j++) {
            x[j] = (float)pick(-1000, 1000 * (i % 4)) / 64.0f;
        }
        for (int j = 0; j < 4 && i % 8 == 5; j++) {
            packed[j] = wrong[j];
            x[pick(0, (int)(m * k) - 1)] = wrong[j];
        }
        snprintf(what, sizeof what, "_dyn_quant_matmul_4bit %d x %d x %d, groups of %d", (int)m, (int)k, (int)n, (int)group);
        npu_arg args[] = { npu_arg_tensor("inp", npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ m, k }))),
                           npu_arg_tensor("packed_weights", npu_constant(g, NULL, spec, packed)),
                           npu_arg_int("block_size", group), npu_arg_int("in_features", k), npu_arg_int("out_features", n) };
        npu_output(g, "y", npu_op_result(g, npu_emit(g, NPU_ATEN_DYN_QUANT_MATMUL_4BIT, args, 5), 0));
        NPU_CHECK_THAT(npu_graph_status(g) == NPU_OK, "%s: %s", what, npu_graph_diag(g)->message);
        check_variants(g, what, x);
        npu_graph_destroy(g);
    }
}

/* A mean by more than any sum is 0. */
static void test_mean_of_little(void)
{
    static const char text[] =
        "npu_ir 1\ngraph g\ninput x : u8[1,1,2,2]\n"
        "y = npu.qavg_pool(x, kernel_size=[1, 2], divisor_override=4611686018427387904, in_scales=[1.0], "
        "in_zeros=[29], scale=1.0, zero=29, rounding='double')\noutput y = y\n";
    static const uint8_t x[4] = { 0, 255, 255, 255 };
    npu_graph *g = NULL;
    npu_diag diag;
    size_t size = 0;
    npu_status status = npu_graph_parse(&g, text, sizeof text - 1, &(npu_graph_desc){ .registry = registry }, &diag);
    NPU_CHECK_THAT(status == NPU_OK, "%s", diag.message);
    variant_run run = run_variant(g, isa_cpu(0), NULL, x);
    const uint8_t *y = (const uint8_t *)npu_exec_output(run.exec, 0, &size);
    NPU_CHECK(size == 2 && y[0] == 29 && y[1] == 29);
    end_variant(&run);
    npu_graph_destroy(g);
}

/* ---- bad input ---- */

#define GOOD "in_scales=[0.5], in_zeros=[0], scale=0.5, zero=0"
#define PAIR "in_scales=[0.5, 0.5], in_zeros=[0, 0], scale=0.5, zero=0"

static const struct { const char *inputs, *call; npu_status status; const char *words; } refused[] = {
    { "i8[4]", "npu.requantise(x, in_scales=[0.0], in_zeros=[0], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "in_scales is 0, expected a finite number above 0" },
    { "i8[4]", "npu.requantise(x, in_scales=[-1.0], in_zeros=[0], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "in_scales is -1, expected a finite" },
    { "i8[4]", "npu.requantise(x, in_scales=[nan], in_zeros=[0], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "nan, expected a finite" },
    { "i8[4]", "npu.requantise(x, in_scales=[0.5], in_zeros=[0], scale=inf, zero=0)", NPU_ERR_ATTRIBUTE, "scale is inf, expected a finite" },
    { "i8[4]", "npu.requantise(x, in_scales=[0.5], in_zeros=[128], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "in_zeros is 128, expected -128 to 127 of i8" },
    { "i8[1,4]\ninput w : i8[3,4]", "npu.qlinear(x, w, w_scales=[0.5], in_scales=[0.5], in_zeros=[9223372036854775807], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "in_zeros is 9223372036854775807, expected -128 to 127" },
    { "u8[4]", "npu.requantise(x, in_scales=[0.5], in_zeros=[0], scale=0.5, zero=-1)", NPU_ERR_ATTRIBUTE, "zero is -1, expected 0 to 255 of u8" },
    { "u8[4]", "npu.requantise(x, in_scales=[0.5], in_zeros=[0], scale=0.5, zero=200, dtype=i8)", NPU_ERR_ATTRIBUTE, "zero is 200, expected -128 to 127 of i8" },
    { "i8[4]", "npu.requantise(x, " GOOD ", low=-129)", NPU_ERR_ATTRIBUTE, "low is -129" },
    { "i8[4]", "npu.requantise(x, " GOOD ", low=5, high=4)", NPU_ERR_ATTRIBUTE, "low is more than high" },
    { "i8[4]", "npu.requantise(x, " GOOD ", rounding='up')", NPU_ERR_ATTRIBUTE, "rounding is 'up', expected 'single' or 'double'" },
    { "i8[4]", "npu.requantise(x, " GOOD ", dtype=i16)", NPU_ERR_DTYPE, "dtype is i16, expected i8 or u8" },
    { "i8[4]", "npu.requantise(x, " PAIR ")", NPU_ERR_ATTRIBUTE, "in_scales has 2 numbers, expected operands = 1" },
    { "i8[4]", "npu.requantise(x, in_scales=[0.5], in_zeros=[], scale=0.5, zero=0)", NPU_ERR_ATTRIBUTE, "in_zeros has 0 numbers, expected operands = 1" },
    { "f32[4]", "npu.qsigmoid(x, " GOOD ")", NPU_ERR_DTYPE, "self is f32, expected i8 or u8" },
    { "i8[4]", "npu.qadd(x, x, " GOOD ")", NPU_ERR_ATTRIBUTE, "in_scales has 1 numbers, expected operands = 2" },
    { "i8[4]", "npu.qcat([], 0, in_scales=[], in_zeros=[], scale=0.5, zero=0)", NPU_ERR_ARITY, "" },
    { "i8[4]", "npu.qcat([x, x, x], 0, " PAIR ")", NPU_ERR_ATTRIBUTE, "in_scales has 2 numbers, expected operands = 3" },
    { "i8[1,4]\ninput w : i8[3,4]", "npu.qlinear(x, w, w_scales=[0.5, 0.5], " GOOD ")", NPU_ERR_ATTRIBUTE, "w_scales has 2 numbers, expected 1, or output channels = 3" },
    { "i8[1,4]\ninput w : i8[3,4]", "npu.qlinear(x, w, w_scales=[0.5, -0.5, 1.0], " GOOD ")", NPU_ERR_ATTRIBUTE, "w_scales is -0.5" },
    { "i8[1,4]\ninput w : u8[3,4]", "npu.qlinear(x, w, w_scales=[0.5], " GOOD ")", NPU_ERR_DTYPE, "weight" },
    { "i8[1,4]\ninput w : i8[3,4]\ninput b : f32[3]", "npu.qlinear(x, w, b, w_scales=[0.5], " GOOD ")", NPU_ERR_DTYPE, "bias" },
    { "i8[1,132000]\ninput w : i8[1,132000]", "npu.qlinear(x, w, w_scales=[0.5], " GOOD ")", NPU_ERR_OVERFLOW, "a sum of 132000 products may exceed the 32 bits of its accumulator, expected at most 131071" },
    { "i8[1,3]\ninput w : i8[1,3]", "npu.qlinear(x, w, w_scales=[], " GOOD ")", NPU_ERR_ATTRIBUTE, "w_scales has 0 numbers" },
    { "i8[1,70000,1,1]\ninput w : i8[1,70000,1,2]", "npu.qconv(x, w, none, [1,1], [0,1], [1,1], false, [0,0], 1, w_scales=[0.5], " GOOD ")", NPU_ERR_OVERFLOW, "a sum of 140000 products" },
    { "f32[1,2,4]\ninput w : i8[2,2,1]", "npu.qconv(x, w, none, [1], [0], [1], false, [0], 1, w_scales=[0.5], " GOOD ")", NPU_ERR_DTYPE, "input is f32, expected i8 or u8" },
    { "i8[1,2,4]\ninput w : f32[2,2,1]", "npu.qconv(x, w, none, [1], [0], [1], false, [0], 1, w_scales=[0.5], " GOOD ")", NPU_ERR_DTYPE, "weight is f32, expected i8" },
    { "i8[1,2,4,4]", "npu.qmax_pool(x, [2,2], in_scales=[0.5], in_zeros=[0], scale=0.25, zero=0)", NPU_ERR_ATTRIBUTE, "scale and zero are not those of the operand" },
    { "i8[1,8]", "npu.qsoftmax(x, 1, " GOOD ", rounding='double')", NPU_ERR_ATTRIBUTE, "expected 1/256 and -128 for 'double'" },
    { "i8[1,5000]", "npu.qsoftmax(x, 1, in_scales=[0.5], in_zeros=[0], scale=0.00390625, zero=-128, rounding='double')", NPU_ERR_OVERFLOW, "expected at most 4095" },
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char text[1000];
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput x : %s\ny = %s\noutput y = y\n", refused[i].inputs, refused[i].call);
        npu_status status = npu_graph_parse(&g, text, (size_t)len, &(npu_graph_desc){ .registry = registry }, &diag);
        NPU_CHECK_THAT(status == refused[i].status && strstr(diag.message, refused[i].words), "%s: %s: %s, expected %s: %s", refused[i].call,
                       npu_status_name(status), diag.message, npu_status_name(refused[i].status), refused[i].words);
        npu_graph_destroy(g);
    }
}

int main(void)
{
    rng = npu_test_seed();
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_RUN(test_products);
    NPU_RUN(test_convolutions);
    NPU_RUN(test_linear);
    NPU_RUN(test_pairs);
    NPU_RUN(test_long_pairs);
    NPU_RUN(test_pools);
    NPU_RUN(test_means);
    NPU_RUN(test_maps);
    NPU_RUN(test_other_dtype);
    NPU_RUN(test_cat);
    NPU_RUN(test_softmax);
    NPU_RUN(test_softmax_twice);
    NPU_RUN(test_softmax_twice_long);
    NPU_RUN(test_layer_norm);
    NPU_RUN(test_resize);
    NPU_RUN(test_near_halves);
    NPU_RUN(test_fast_linear);
    NPU_RUN(test_fast_convolution);
    NPU_RUN(test_fast_slices);
    NPU_RUN(test_fast_means);
    NPU_RUN(test_fast_small_images);
    NPU_RUN(test_fast_squares);
    NPU_RUN(test_fast_depthwise);
    NPU_RUN(test_fast_int_mm);
    NPU_RUN(test_quantise);
    NPU_RUN(test_dequantise);
    NPU_RUN(test_affine_parts);
    NPU_RUN(test_fast_dynamic);
    NPU_RUN(test_mean_of_little);
    NPU_RUN(test_refused);
    isa_free();
    npu_registry_destroy(registry);
    return npu_test_done();
}
