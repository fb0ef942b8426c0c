/* The device kinds, each called standalone with its device blob and compared with a naive reference in double. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

enum { CAPACITY = 1024, MAX_OPERANDS = 8 };

/* A tensor: what memory holds, and the same as numbers. */
typedef struct tensor {
    npu_tensor t;
    npu_buffer buffer;
    double v[CAPACITY];
    size_t len;
    union { uint8_t bytes[CAPACITY * 8]; double aligned; } memory;
} tensor;

typedef struct blob {
    uint8_t bytes[32];
    uint32_t size;
} blob;

static uint64_t seed;
static tensor in[MAX_OPERANDS], out[3];
static const npu_dtype float_types[] = { NPU_F32, NPU_F16, NPU_BF16 };
/* Those that gradients of a mean and plain steps take. */
static const npu_dtype step_types[] = { NPU_F32, NPU_F16, NPU_BF16, NPU_F64 };

/* ---- tensors and blobs ------------------------------------------------------------------------------------- */

static void write_element(uint8_t *to, npu_dtype dtype, double x)
{
    float f = (float)x;
    uint16_t half = dtype == NPU_F16 ? npu_f32_to_f16(f) : npu_f32_to_bf16(f);
    int32_t i32 = (int32_t)x;
    int64_t i64 = (int64_t)x;
    switch (dtype) {
    case NPU_F64: memcpy(to, &x, 8); break;
    case NPU_F32: memcpy(to, &f, 4); break;
    case NPU_I32: memcpy(to, &i32, 4); break;
    case NPU_I64: memcpy(to, &i64, 8); break;
    default: memcpy(to, &half, 2); break;
    }
}

static double read_element(const uint8_t *from, npu_dtype dtype)
{
    double x;
    float f;
    uint16_t half;
    int32_t i32;
    int64_t i64;
    switch (dtype) {
    case NPU_F64: memcpy(&x, from, 8); return x;
    case NPU_F32: memcpy(&f, from, 4); return (double)f;
    case NPU_I32: memcpy(&i32, from, 4); return (double)i32;
    case NPU_I64: memcpy(&i64, from, 8); return (double)i64;
    default: memcpy(&half, from, 2); return (double)(dtype == NPU_F16 ? npu_f16_to_f32(half) : npu_bf16_to_f32(half));
    }
}

/* Memory to numbers, and numbers to memory and back, so that both are the same. */
static void read_back(tensor *x)
{
    size_t size = npu_dtype_bits((npu_dtype)x->t.dtype) / 8;
    for (size_t i = 0; i < x->len; i++) {
        x->v[i] = read_element(x->memory.bytes + i * size, (npu_dtype)x->t.dtype);
    }
}

static void write_down(tensor *x)
{
    size_t size = npu_dtype_bits((npu_dtype)x->t.dtype) / 8;
    for (size_t i = 0; i < x->len; i++) {
        write_element(x->memory.bytes + i * size, (npu_dtype)x->t.dtype, x->v[i]);
    }
    read_back(x);
}

static double random_number(double low, double high)
{
    return low + (high - low) * (double)(npu_test_random(&seed) >> 11) * (1.0 / 9007199254740992.0);
}

/* dims end at the first 0; all elements are random in [-2, 2). */
static tensor *make(tensor *x, npu_dtype dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    int64_t dims[4];
    uint32_t rank = 0;
    dims[0] = d0, dims[1] = d1, dims[2] = d2, dims[3] = d3;
    x->len = 1;
    while (rank < 4 && dims[rank]) {
        x->len *= (size_t)dims[rank++];
    }
    NPU_CHECK(x->len <= CAPACITY);
    NPU_CHECK_STATUS(npu_tensor_set_host(&x->t, &x->buffer, dtype, rank, dims, x->memory.bytes), NPU_OK);
    for (size_t i = 0; i < x->len; i++) {
        x->v[i] = random_number(-2, 2);
    }
    write_down(x);
    return x;
}

static tensor *make_like(tensor *x, const tensor *y, npu_dtype dtype)
{
    const int64_t *dims = y->t.dims;
    uint32_t rank = y->t.rank;
    return make(x, dtype, rank > 0 ? dims[0] : 0, rank > 1 ? dims[1] : 0, rank > 2 ? dims[2] : 0, rank > 3 ? dims[3] : 0);
}

static void make_hole(tensor *x) { memset(&x->t, 0, sizeof x->t); }

static void put_bytes(blob *b, uint64_t bits, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        b->bytes[b->size++] = (uint8_t)(bits >> 8 * i);
    }
}

static blob no_blob(void)
{
    blob b;
    memset(&b, 0, sizeof b);
    return b;
}

static blob blob_q(int64_t x)
{
    blob b = no_blob();
    put_bytes(&b, (uint64_t)x, 8);
    return b;
}

static blob blob_ints(int a, int b, int c, uint32_t n)
{
    blob x = no_blob();
    int values[3];
    values[0] = a, values[1] = b, values[2] = c;
    for (uint32_t i = 0; i < n; i++) {
        put_bytes(&x, (uint32_t)values[i], 4);
    }
    return x;
}

static void put_float(blob *b, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    put_bytes(b, bits, 4);
}

static blob blob_floats(float a, float b, float c, float d, uint32_t n)
{
    blob x = no_blob();
    float values[4];
    values[0] = a, values[1] = b, values[2] = c, values[3] = d;
    for (uint32_t i = 0; i < n; i++) {
        put_float(&x, values[i]);
    }
    return x;
}

/* ---- calling ----------------------------------------------------------------------------------------------- */

static npu_status call(npu_kind kind, uint32_t num_in, uint32_t num_out, uint32_t schema, const blob *b, uint32_t size)
{
    npu_tensor operands[MAX_OPERANDS], results[3];
    npu_diag diag;
    npu_status status;
    memset(&diag, 0, sizeof diag);
    for (uint32_t i = 0; i < num_in; i++) {
        operands[i] = in[i].t;
    }
    for (uint32_t i = 0; i < num_out; i++) {
        results[i] = out[i].t;
    }
    status = npu_op_call(npu_ref_backend(), NPU_TEST_CALL(kind, operands, num_in, results, num_out, schema, b->bytes, size), &diag);
    for (uint32_t i = 0; i < num_out && !status; i++) {
        read_back(&out[i]);
    }
    return status;
}

/* A right call, and next to it what the device form must refuse: another schema, a longer and a shorter blob. */
static void run(npu_kind kind, uint32_t num_in, uint32_t num_out, uint32_t schema, blob b)
{
    NPU_CHECK_STATUS(call(kind, num_in, num_out, schema ^ 0x20u, &b, b.size), NPU_ERR_BAD_SCHEMA);
    NPU_CHECK_STATUS(call(kind, num_in, num_out, schema, &b, b.size + 1), NPU_ERR_BAD_ATTR_SIZE);
    if (b.size) {
        NPU_CHECK_STATUS(call(kind, num_in, num_out, schema, &b, b.size - 1), NPU_ERR_BAD_ATTR_SIZE);
    }
    NPU_CHECK_STATUS(call(kind, num_in, num_out, schema, &b, b.size), NPU_OK);
}

/* Within the rounding of the result's dtype, of numbers up to a few units. */
static double tolerance(const tensor *x)
{
    return x->t.dtype == NPU_F64 ? 1e-14 : x->t.dtype == NPU_F32 ? 2e-6 : x->t.dtype == NPU_F16 ? 1e-3 : 8e-3;
}

static void check(const tensor *got, const double *expected)
{
    for (size_t i = 0; i < got->len; i++) {
        NPU_CHECK_NEAR(got->v[i], expected[i], tolerance(got) * (1 + fabs(expected[i])));
    }
}

#define EACH_FLOAT(t) for (size_t t = 0; t < sizeof float_types / sizeof float_types[0]; t++)

/* ---- elementwise -------------------------------------------------------------------------------------------- */

typedef double (*pair_fn)(double a, double b);
static double pair_add(double a, double b) { return a + b; }
static double pair_relu(double a, double b) { return (void)b, a > 0 ? a : 0; }
static double pair_copy(double a, double b) { return (void)b, a; }
static double pair_zero(double a, double b) { return (void)a, (void)b, 0; }
static double pair_relu_bwd(double a, double b) { return b > 0 ? a : 0; }
static double pair_sgd(double a, double b) { return a - 0.125 * b; }
static double pair_mse_grad(double a, double b) { return 2.0 / 315 * (a - b); }
static double pair_mse_grad_scaled(double a, double b) { return 0.75 * (a - b); }

static void check_pairs(npu_kind kind, uint32_t num_in, uint32_t schema, blob b, pair_fn fn)
{
    double expected[CAPACITY];
    bool is_step = kind == NPU_AICF_SGD_STEP || kind == NPU_AICF_MSE_GRAD;
    for (size_t t = 0; t < sizeof step_types / sizeof step_types[0] - !is_step; t++) {
        for (uint32_t i = 0; i < num_in; i++) {
            make(&in[i], step_types[t], 7, 9, 5, 0);
        }
        make_like(&out[0], &in[0], step_types[t]);
        for (size_t i = 0; i < in[0].len; i++) {
            expected[i] = fn(in[0].v[i], in[1].v[i]);
        }
        run(kind, num_in, 1, schema, b);
        check(&out[0], expected);
    }
}

static void test_add(void)
{
    NPU_ITEM("S2.24");
    check_pairs(NPU_AICF_ADD, 2, 0, no_blob(), pair_add);
    make(&in[0], NPU_F32, 2, 3, 0, 0);
    make(&in[1], NPU_F32, 3, 0, 0, 0);
    make(&out[0], NPU_F32, 2, 3, 0, 0);
    blob b = no_blob();
    NPU_CHECK_STATUS(call(NPU_AICF_ADD, 2, 1, 0, &b, 0), NPU_ERR_SHAPE); /* the device does not broadcast */
}

static void test_relu(void)
{
    NPU_ITEM("S2.24");
    check_pairs(NPU_AICF_RELU, 1, 0, no_blob(), pair_relu);
}

static void test_copy(void) { check_pairs(NPU_AICF_COPY, 1, 0, no_blob(), pair_copy); }
static void test_grad_zero(void) { check_pairs(NPU_AICF_GRAD_ZERO, 1, 0, no_blob(), pair_zero); }
static void test_relu_bwd(void) { check_pairs(NPU_AICF_RELU_BWD, 2, 0, no_blob(), pair_relu_bwd); }

static void test_sgd_step(void)
{
    check_pairs(NPU_AICF_SGD_STEP, 2, NPU_FOURCC('S', 'G', 'D', 'S'), blob_floats(0.125f, 0, 0, 0, 1), pair_sgd);
}

/* Two forms of one kind: without a scale it is 2 / elements. */
static void test_mse_grad(void)
{
    check_pairs(NPU_AICF_MSE_GRAD, 2, 0, no_blob(), pair_mse_grad);
    check_pairs(NPU_AICF_MSE_GRAD, 2, NPU_FOURCC('M', 'S', 'E', 'G'), blob_floats(0.75f, 0, 0, 0, 1), pair_mse_grad_scaled);
}

static void test_bias_add(void)
{
    NPU_ITEM("S2.17");
    NPU_ITEM("S2.22");
    double expected[CAPACITY];
    EACH_FLOAT(t) {
        make(&in[0], float_types[t], 4, 3, 11, 0);
        make(&in[1], float_types[t], 11, 0, 0, 0);
        make_like(&out[0], &in[0], float_types[t]);
        for (size_t i = 0; i < in[0].len; i++) {
            expected[i] = in[0].v[i] + in[1].v[i % 11];
        }
        run(NPU_AICF_BIAS_ADD, 2, 1, 0x44444142u, blob_q(-1));
        check(&out[0], expected);
        run(NPU_AICF_BIAS_ADD, 2, 1, NPU_FOURCC('B', 'A', 'D', 'D'), blob_q(2));
        check(&out[0], expected);
    }
    blob wrong = blob_q(0);
    NPU_CHECK_STATUS(call(NPU_AICF_BIAS_ADD, 2, 1, NPU_FOURCC('B', 'A', 'D', 'D'), &wrong, 8), NPU_ERR_AXIS);
}

/* ---- matrix product ----------------------------------------------------------------------------------------- */

/* op(A) [M,K] times op(B) [K,N], plus bias, then relu; returns the largest sum of the products' absolute values. */
static double gemm_expected(double *c, int64_t m, int64_t n, int64_t k, bool ta, bool tb, const double *bias, bool relu)
{
    double largest = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = bias ? bias[j] : 0, size = fabs(sum);
            for (int64_t l = 0; l < k; l++) {
                double product = in[0].v[ta ? l * m + i : i * k + l] * in[1].v[tb ? j * k + l : l * n + j];
                sum += product;
                size += fabs(product);
            }
            c[i * n + j] = relu && sum < 0 ? 0 : sum;
            largest = size > largest ? size : largest;
        }
    }
    return largest;
}

/* A sum of K products in float may be off by K half units in the last place of their absolute sum, in any order. */
static void check_gemm_result(const double *expected, int64_t k, double size)
{
    for (size_t i = 0; i < out[0].len; i++) {
        NPU_CHECK_NEAR(out[0].v[i], expected[i], tolerance(&out[0]) * (1 + fabs(expected[i])) + (double)k * size / 16777216);
    }
}

static void check_gemm(npu_dtype dtype, int64_t m, int64_t n, int64_t k, int flags)
{
    double expected[CAPACITY];
    bool ta = flags & 1, tb = (flags & 2) != 0, relu = (flags & 4) != 0;
    make(&in[0], dtype, ta ? k : m, ta ? m : k, 0, 0);
    make(&in[1], dtype, tb ? n : k, tb ? k : n, 0, 0);
    make(&in[2], dtype, n, 0, 0, 0);
    make(&out[0], dtype, m, n, 0, 0);
    run(NPU_AICF_GEMM, 2, 1, 0, blob_ints(ta, tb, 0, 2));
    double size = gemm_expected(expected, m, n, k, ta, tb, NULL, false);
    check_gemm_result(expected, k, size);
    run(NPU_AICF_GEMM_EPILOGUE, 3, 1, NPU_FOURCC('G', 'M', 'E', 'P'), blob_ints(ta, tb, relu, 3));
    size = gemm_expected(expected, m, n, k, ta, tb, in[2].v, relu);
    check_gemm_result(expected, k, size);
}

static void test_gemm(void)
{
    NPU_ITEM("S2.18");
    NPU_ITEM("S2.23");
    EACH_FLOAT(t) {
        for (int flags = 0; flags < 8; flags++) {
            check_gemm(float_types[t], 5, 7, 9, flags);
            check_gemm(float_types[t], 1, 31, 16, flags);
            check_gemm(float_types[t], 24, 24, 24, flags);
        }
    }
    make(&in[0], NPU_F32, 5, 8, 0, 0);
    blob b = blob_ints(0, 0, 0, 2);
    make(&in[1], NPU_F32, 9, 7, 0, 0);
    make(&out[0], NPU_F32, 5, 7, 0, 0);
    NPU_CHECK_STATUS(call(NPU_AICF_GEMM, 2, 1, 0, &b, 8), NPU_ERR_SHAPE); /* K differs */
}

/* ---- reductions, losses ------------------------------------------------------------------------------------- */

static void check_reduce_sum(npu_dtype dtype, int64_t axis)
{
    double expected[CAPACITY] = { 0 };
    size_t d[3] = { 6, 5, 9 }, at[3];
    make(&in[0], dtype, 6, 5, 9, 0);
    make(&out[0], dtype, axis == 0 ? 5 : 6, axis == 2 ? 5 : 9, 0, 0);
    for (size_t i = 0; i < in[0].len; i++) {
        at[0] = i / 45, at[1] = i / 9 % 5, at[2] = i % 9;
        size_t high = axis == 0 ? at[1] : at[0], low = axis == 2 ? at[1] : at[2];
        expected[high * d[axis == 2 ? 1 : 2] + low] += in[0].v[i];
    }
    run(NPU_AICF_REDUCE_SUM, 1, 1, NPU_FOURCC('R', 'S', 'U', 'M'), blob_q(axis));
    check(&out[0], expected);
    run(NPU_AICF_REDUCE_SUM, 1, 1, NPU_FOURCC('R', 'S', 'U', 'M'), blob_q(axis - 3));
    check(&out[0], expected);
}

static void test_reduce_sum(void)
{
    NPU_ITEM("S2.25");
    EACH_FLOAT(t) {
        for (int64_t axis = 0; axis < 3; axis++) {
            check_reduce_sum(float_types[t], axis);
        }
    }
    /* axis is required: without it the op is refused, not summed over axis 0 */
    npu_graph *g = npu_graph_create(NULL);
    int64_t dims[2] = { 2, 3 };
    npu_arg x = npu_arg_tensor("x", npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims)));
    NPU_CHECK_EQ(npu_emit(g, NPU_AICF_REDUCE_SUM, &x, 1).id, 0);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_ATTRIBUTE);
    npu_graph_destroy(g);
    blob none = no_blob();
    NPU_CHECK_STATUS(call(NPU_AICF_REDUCE_SUM, 1, 1, NPU_FOURCC('R', 'S', 'U', 'M'), &none, 0), NPU_ERR_BAD_ATTR_SIZE);
}

static void softmax_expected(double *y, const double *x, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += y[i] = exp(x[i]);
        }
        for (size_t i = 0; i < n; i++) {
            y[i] /= sum;
        }
    }
}

static void test_softmax(void)
{
    double expected[CAPACITY];
    EACH_FLOAT(t) {
        make(&in[0], float_types[t], 3, 4, 17, 0);
        make_like(&out[0], &in[0], float_types[t]);
        softmax_expected(expected, in[0].v, 12, 17);
        run(NPU_AICF_SOFTMAX, 1, 1, 0, no_blob());
        check(&out[0], expected);
    }
}

static void test_softmax_bwd(void)
{
    double expected[CAPACITY];
    EACH_FLOAT(t) {
        make(&in[0], float_types[t], 12, 17, 0, 0);
        softmax_expected(in[0].v, in[0].v, 12, 17);
        write_down(&in[0]);
        make_like(&in[1], &in[0], float_types[t]);
        make_like(&out[0], &in[0], float_types[t]);
        for (size_t r = 0; r < 12; r++) {
            double dot = 0;
            for (size_t i = r * 17; i < (r + 1) * 17; i++) { dot += in[0].v[i] * in[1].v[i]; }
            for (size_t i = r * 17; i < (r + 1) * 17; i++) { expected[i] = in[0].v[i] * (in[1].v[i] - dot); }
        }
        run(NPU_AICF_SOFTMAX_BWD, 2, 1, 0, no_blob());
        check(&out[0], expected);
    }
}

static void test_mse_loss(void)
{
    EACH_FLOAT(t) {
        double expected = 0;
        make(&in[0], float_types[t], 13, 21, 0, 0);
        make_like(&in[1], &in[0], float_types[t]);
        make(&out[0], float_types[t], 0, 0, 0, 0);
        for (size_t i = 0; i < in[0].len; i++) {
            expected += (in[0].v[i] - in[1].v[i]) * (in[0].v[i] - in[1].v[i]) / 273;
        }
        run(NPU_AICF_MSE_LOSS, 2, 1, 0, no_blob());
        check(&out[0], &expected);
    }
}

static void make_targets(npu_dtype dtype, int64_t rows, int64_t classes)
{
    make(&in[1], dtype, rows, 0, 0, 0);
    for (size_t i = 0; i < in[1].len; i++) {
        in[1].v[i] = (double)(npu_test_random(&seed) % (uint64_t)classes);
    }
    write_down(&in[1]);
}

static void check_bad_target(npu_kind kind, uint32_t num_out, double target)
{
    blob b = no_blob();
    double kept = in[1].v[3];
    in[1].v[3] = target;
    write_down(&in[1]);
    NPU_CHECK_STATUS(call(kind, 2, num_out, 0, &b, 0), NPU_ERR_RANGE);
    in[1].v[3] = kept;
    write_down(&in[1]);
}

static void test_cross_entropy(void)
{
    double softmax[CAPACITY], loss;
    EACH_FLOAT(t) {
        make(&in[0], float_types[t], 8, 19, 0, 0);
        make_targets(t ? NPU_I32 : NPU_I64, 8, 19);
        make(&out[0], float_types[t], 0, 0, 0, 0);
        make_like(&out[1], &in[0], float_types[t]);
        softmax_expected(softmax, in[0].v, 8, 19);
        loss = 0;
        for (size_t r = 0; r < 8; r++) {
            loss -= log(softmax[r * 19 + (size_t)in[1].v[r]]) / 8;
        }
        run(NPU_AICF_CROSS_ENTROPY_FWD, 2, 2, 0, no_blob());
        check(&out[0], &loss);
        check(&out[1], softmax);
        check_bad_target(NPU_AICF_CROSS_ENTROPY_FWD, 2, 19);
        check_bad_target(NPU_AICF_CROSS_ENTROPY_FWD, 2, -1);
        make_like(&out[0], &in[0], float_types[t]);
        memcpy(softmax, in[0].v, sizeof softmax); /* any matrix will do */
        for (size_t i = 0; i < in[0].len; i++) {
            softmax[i] = (softmax[i] - (in[1].v[i / 19] == (double)(i % 19))) / 8;
        }
        run(NPU_AICF_CROSS_ENTROPY_BWD, 2, 1, 0, no_blob());
        check(&out[0], softmax);
        check_bad_target(NPU_AICF_CROSS_ENTROPY_BWD, 1, 19);
    }
}

/* ---- training ----------------------------------------------------------------------------------------------- */

static void test_adam_step(void)
{
    double expected[3][CAPACITY];
    const double b1 = (double)0.9f, b2 = (double)0.999f;
    EACH_FLOAT(t) {
        for (uint32_t i = 0; i < 4; i++) {
            make(&in[i], float_types[t], 11, 13, 0, 0);
        }
        for (size_t i = 0; i < in[3].len; i++) {
            in[3].v[i] = fabs(in[3].v[i]) + 0.5; /* v is a mean of squares */
        }
        write_down(&in[3]);
        make(&in[4], NPU_F32, 0, 0, 0, 0)->v[0] = 1.5;
        make(&in[5], NPU_F32, 0, 0, 0, 0)->v[0] = 2.5;
        write_down(&in[4]);
        write_down(&in[5]);
        for (uint32_t i = 0; i < 3; i++) {
            make_like(&out[i], &in[0], float_types[t]);
        }
        for (size_t i = 0; i < in[0].len; i++) {
            double g = in[1].v[i], m = b1 * in[2].v[i] + (1 - b1) * g, v = b2 * in[3].v[i] + (1 - b2) * g * g;
            expected[0][i] = in[0].v[i] - (double)0.01f * (m * 1.5) / (sqrt(v * 2.5) + (double)1e-8f);
            expected[1][i] = m;
            expected[2][i] = v;
        }
        run(NPU_AICF_ADAM_STEP, 6, 3, NPU_FOURCC('A', 'D', 'A', 'M'), blob_floats(0.01f, 0.9f, 0.999f, 1e-8f, 4));
        for (uint32_t i = 0; i < 3; i++) {
            check(&out[i], expected[i]);
        }
    }
}

static void test_step_inc(void)
{
    make(&in[0], NPU_I32, 0, 0, 0, 0)->v[0] = 41;
    make(&out[0], NPU_I32, 0, 0, 0, 0);
    write_down(&in[0]);
    run(NPU_AICF_STEP_INC, 1, 1, 0, no_blob());
    NPU_CHECK_EQ(out[0].v[0], 42);
}

static void test_bias_corr(void)
{
    make(&in[0], NPU_I32, 0, 0, 0, 0)->v[0] = 7;
    write_down(&in[0]);
    make(&out[0], NPU_F32, 0, 0, 0, 0);
    make(&out[1], NPU_F32, 0, 0, 0, 0);
    run(NPU_AICF_BIAS_CORR, 1, 2, NPU_FOURCC('B', 'C', 'O', 'R'), blob_floats(0.9f, 0.999f, 0, 0, 2));
    NPU_CHECK_NEAR(out[0].v[0], 1 / (1 - pow((double)0.9f, 7)), 1e-6);
    NPU_CHECK_NEAR(out[1].v[0], 1 / (1 - pow((double)0.999f, 7)), 1e-4);
}

/* ---- normalisation ------------------------------------------------------------------------------------------ */

/* How elements share statistics and gammas: element i of x belongs to statistic group(i) and has the gamma gamma_of(i). */
typedef struct layout {
    bool batch;           /* else layer norm of [M, N] */
    size_t len, groups, gammas, inner; /* inner: elements of one channel of one image, or N */
} layout;

static size_t group_of(const layout *l, size_t i) { return l->batch ? i / l->inner % l->groups : i / l->inner; }
static size_t gamma_of(const layout *l, size_t i) { return l->batch ? i / l->inner % l->groups : i % l->inner; }

static void norm_moments(const layout *l, const double *x, double eps, double *mean, double *rstd)
{
    double share = (double)l->groups / (double)l->len;
    memset(mean, 0, l->groups * sizeof *mean);
    memset(rstd, 0, l->groups * sizeof *rstd);
    for (size_t i = 0; i < l->len; i++) { mean[group_of(l, i)] += x[i] * share; }
    for (size_t i = 0; i < l->len; i++) { rstd[group_of(l, i)] += pow(x[i] - mean[group_of(l, i)], 2) * share; }
    for (size_t g = 0; g < l->groups; g++) { rstd[g] = 1 / sqrt(rstd[g] + eps); }
}

static void check_norm_fwd(const layout *l, npu_kind kind, npu_dtype dtype, bool affine, bool running)
{
    double mean[64], rstd[64], expected[CAPACITY];
    uint32_t num_in = l->batch ? 5 : 3;
    blob b = blob_floats(0.01f, 0, 0, 0, 1);
    if (l->batch) {
        put_bytes(&b, running, 4);
    }
    make(&in[0], dtype, l->batch ? 3 : (int64_t)l->groups, (int64_t)l->gammas, l->batch ? 4 : 0, l->batch ? 5 : 0);
    for (uint32_t i = 1; i < num_in; i++) {
        make(&in[i], dtype, (int64_t)l->gammas, 0, 0, 0);
        if (i < 3 ? !affine : !running) {
            make_hole(&in[i]);
        }
    }
    make_like(&out[0], &in[0], dtype);
    make(&out[1], NPU_F32, (int64_t)l->groups, 0, 0, 0);
    make(&out[2], NPU_F32, (int64_t)l->groups, 0, 0, 0);
    norm_moments(l, in[0].v, (double)0.01f, mean, rstd);
    if (running) {
        for (size_t g = 0; g < l->groups; g++) { in[4].v[g] = fabs(in[4].v[g]) + 0.5; }
        write_down(&in[4]);
        for (size_t g = 0; g < l->groups; g++) { mean[g] = in[3].v[g], rstd[g] = 1 / sqrt(in[4].v[g] + (double)0.01f); }
    }
    for (size_t i = 0; i < l->len; i++) {
        double xhat = (in[0].v[i] - mean[group_of(l, i)]) * rstd[group_of(l, i)];
        expected[i] = affine ? xhat * in[1].v[gamma_of(l, i)] + in[2].v[gamma_of(l, i)] : xhat;
    }
    run(kind, num_in, 3, l->batch ? NPU_FOURCC('B', 'N', 'E', 'P') : NPU_FOURCC('L', 'N', 'E', 'P'), b);
    check(&out[0], expected);
    check(&out[1], mean);
    check(&out[2], rstd);
}

/* Gradients by the chain rule through mean and deviation, written apart from the kernel's formula:
   dL/dx = sum over the group of dL/dxhat(j) dxhat(j)/dx(i), with dxhat(j)/dx(i) = rstd (d_ij - 1/n - xhat(i) xhat(j) / n). */
static void norm_gradient(const layout *l, const double *xhat, const double *d, const double *rstd, double *dx)
{
    double share = (double)l->groups / (double)l->len;
    for (size_t i = 0; i < l->len; i++) {
        dx[i] = 0;
        for (size_t j = 0; j < l->len; j++) {
            if (group_of(l, i) == group_of(l, j)) {
                dx[i] += d[j] * rstd[group_of(l, i)] * ((i == j) - share - xhat[i] * xhat[j] * share);
            }
        }
    }
}

static void check_norm_bwd(const layout *l, npu_kind kind, npu_dtype dtype, bool affine)
{
    double mean[64], rstd[64], xhat[CAPACITY], d[CAPACITY], dx[CAPACITY], dgamma[64] = { 0 }, dbeta[64] = { 0 };
    make(&in[0], dtype, l->batch ? 3 : (int64_t)l->groups, (int64_t)l->gammas, l->batch ? 4 : 0, l->batch ? 5 : 0);
    make_like(&in[1], &in[0], dtype);
    make(&in[2], dtype, (int64_t)l->gammas, 0, 0, 0);
    make(&in[3], NPU_F32, (int64_t)l->groups, 0, 0, 0);
    make_like(&in[4], &in[3], NPU_F32);
    norm_moments(l, in[0].v, 0.01, mean, rstd);
    memcpy(in[3].v, mean, l->groups * sizeof *mean);
    memcpy(in[4].v, rstd, l->groups * sizeof *rstd);
    write_down(&in[3]);
    write_down(&in[4]);
    for (size_t i = 0; i < l->len; i++) {
        double dy = in[1].v[i];
        xhat[i] = (in[0].v[i] - mean[group_of(l, i)]) * rstd[group_of(l, i)];
        d[i] = affine ? dy * in[2].v[gamma_of(l, i)] : dy;
        dgamma[gamma_of(l, i)] += dy * xhat[i];
        dbeta[gamma_of(l, i)] += dy;
    }
    norm_gradient(l, xhat, d, rstd, dx);
    make_like(&out[0], &in[0], dtype);
    make_like(&out[1], &in[2], dtype);
    make_like(&out[2], &in[2], dtype);
    if (!affine) {
        make_hole(&in[2]);
    }
    run(kind, 5, 3, 0, no_blob());
    check(&out[0], dx);
    check(&out[1], dgamma);
    check(&out[2], dbeta);
}

static const layout layer = { false, 9 * 23, 9, 23, 23 }, batch = { true, 3 * 6 * 20, 6, 6, 20 };

static void test_layernorm(void)
{
    EACH_FLOAT(t) {
        check_norm_fwd(&layer, NPU_AICF_LAYERNORM_FWD, float_types[t], true, false);
        check_norm_fwd(&layer, NPU_AICF_LAYERNORM_FWD, float_types[t], false, false);
        check_norm_bwd(&layer, NPU_AICF_LAYERNORM_BWD, float_types[t], true);
        check_norm_bwd(&layer, NPU_AICF_LAYERNORM_BWD, float_types[t], false);
    }
}

static void test_batchnorm(void)
{
    EACH_FLOAT(t) {
        check_norm_fwd(&batch, NPU_AICF_BATCHNORM_FWD, float_types[t], true, false);
        check_norm_fwd(&batch, NPU_AICF_BATCHNORM_FWD, float_types[t], false, false);
        check_norm_fwd(&batch, NPU_AICF_BATCHNORM_FWD, float_types[t], true, true);
        check_norm_bwd(&batch, NPU_AICF_BATCHNORM_BWD, float_types[t], true);
        check_norm_bwd(&batch, NPU_AICF_BATCHNORM_BWD, float_types[t], false);
    }
}

/* ---- the mapping -------------------------------------------------------------------------------------------- */

typedef struct kind_row {
    const char *name;
    uint32_t id;
    const char *schema; /* "" = 0 */
} kind_row;

static const kind_row kind_rows[] = {
    { "add", 0, "" }, { "relu", 1, "" }, { "gemm", 2, "" }, { "bias_add", 3, "BADD" }, { "reduce_sum", 4, "RSUM" },
    { "mse_grad", 5, "" }, { "relu_bwd", 6, "" }, { "sgd_step", 7, "SGDS" }, { "copy", 8, "" }, { "grad_zero", 9, "" },
    { "adam_step", 10, "ADAM" }, { "step_inc", 11, "" }, { "bias_corr", 12, "BCOR" }, { "layernorm_fwd", 13, "LNEP" },
    { "layernorm_bwd", 14, "" }, { "batchnorm_fwd", 15, "BNEP" }, { "batchnorm_bwd", 16, "" },
    { "gemm_epilogue", 17, "GMEP" }, { "softmax", 18, "" }, { "softmax_bwd", 19, "" }, { "mse_loss", 20, "" },
    { "cross_entropy_fwd", 21, "" }, { "cross_entropy_bwd", 22, "" }
};

/* Halves are summed in f32: 4096 ones are 4096, where a sum in f16 stays at 2048 and one in bf16 at 256. A tensor of rank 0
   has one element. */
static void test_sums_of_halves(void)
{
    enum { LEN = 4096 };
    static uint16_t ones[LEN];
    static const npu_dtype dtypes[2] = { NPU_F16, NPU_BF16 };
    NPU_ITEM("R2.10");
    for (int t = 0; t < 2; t++) {
        uint16_t y = 0;
        npu_buffer buffers[3];
        npu_tensor x[2], sum;
        int64_t row[2] = { 1, LEN }, col[2] = { LEN, 1 }, one[2] = { 1, 1 };
        static const uint8_t axis[8] = { 0 }, plain[8] = { 0 };
        for (int i = 0; i < LEN; i++) {
            ones[i] = t ? npu_f32_to_bf16(1) : npu_f32_to_f16(1);
        }
        npu_tensor_set_host(&x[0], &buffers[0], dtypes[t], 2, row, ones);
        npu_tensor_set_host(&x[1], &buffers[1], dtypes[t], 2, col, ones);
        npu_tensor_set_host(&sum, &buffers[2], dtypes[t], 2, one, &y);
        NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), NPU_TEST_CALL(NPU_AICF_GEMM, x, 2, &sum, 1, 0, plain, 8), NULL), NPU_OK);
        NPU_CHECK_NEAR(t ? npu_bf16_to_f32(y) : npu_f16_to_f32(y), LEN, 0);
        npu_tensor_set_host(&sum, &buffers[2], dtypes[t], 1, one, &y);
        NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), NPU_TEST_CALL(NPU_AICF_REDUCE_SUM, &x[1], 1, &sum, 1, NPU_FOURCC('R', 'S', 'U', 'M'), axis, 8), NULL), NPU_OK);
        NPU_CHECK_NEAR(t ? npu_bf16_to_f32(y) : npu_f16_to_f32(y), LEN, 0);
        npu_tensor_set_host(&x[0], &buffers[0], dtypes[t], 0, NULL, ones);
        npu_tensor_set_host(&sum, &buffers[2], dtypes[t], 0, NULL, &y);
        NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), NPU_TEST_CALL(NPU_AICF_COPY, x, 1, &sum, 1, 0, NULL, 0), NULL), NPU_OK);
        NPU_CHECK_EQ(y, ones[0]);
    }
}

/* The first row of the built-in table for a kind. */
static const npu_abi_row *abi_row(npu_kind kind)
{
    const npu_abi *abi = npu_abi_aicf();
    for (uint32_t i = 0; i < abi->num_rows; i++) {
        if (abi->rows[i].kind == kind) {
            return &abi->rows[i];
        }
    }
    return NULL;
}

static void test_kinds(void)
{
    NPU_ITEM("S2.14");
    NPU_ITEM("S2.15");
    NPU_ITEM("S2.16");
    npu_graph *g = npu_graph_create(NULL);
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
        const kind_row *k = &kind_rows[i];
        char name[64];
        snprintf(name, sizeof name, "aicf.%s", k->name);
        const npu_op_def *def = npu_registry_find(npu_graph_registry(g), name);
        const npu_abi_row *row = abi_row((npu_kind)NPU_NS_AICF << 16 | k->id);
        const char *s = k->schema;
        NPU_CHECK(def != NULL && row != NULL);
        if (def && row) {
            NPU_CHECK_EQ(def->kind, (npu_kind)NPU_NS_AICF << 16 | k->id);
            NPU_CHECK_EQ(row->device_kind, k->id);
            NPU_CHECK_EQ(row->attr_schema, *s ? NPU_FOURCC(s[0], s[1], s[2], s[3]) : 0);
        }
    }
    npu_graph_destroy(g);
}

static void test_unknown_kind(void)
{
    NPU_ITEM("S2.19");
    blob b = no_blob();
    npu_graph *g = npu_graph_create(NULL);
    NPU_CHECK(npu_registry_find(npu_graph_registry(g), "aicf.gelu") == NULL);
    npu_graph_destroy(g);
    make(&in[0], NPU_F32, 4, 0, 0, 0);
    make(&out[0], NPU_F32, 4, 0, 0, 0);
    NPU_CHECK_STATUS(call((npu_kind)NPU_NS_AICF << 16 | 23, 1, 1, 0, &b, 0), NPU_ERR_NOT_FOUND);
}

/* A backend takes its device only when it is called: the reference backend is a constant. */
static void test_bridge(void)
{
    NPU_ITEM("S2.28");
    const npu_backend *cpu = npu_ref_backend();
    NPU_CHECK(cpu == npu_ref_backend());
    NPU_CHECK_EQ(cpu->stream ? cpu->stream(cpu->ctx) : 0, 0);
    check_pairs(NPU_AICF_ADD, 2, 0, no_blob(), pair_add);
    blob b = no_blob();
    make(&out[0], (npu_dtype)in[0].t.dtype, 2, 0, 0, 0);
    NPU_CHECK_STATUS(call(NPU_AICF_ADD, 2, 1, 0, &b, 0), NPU_ERR_SHAPE);
    NPU_CHECK_STATUS(call(NPU_AICF_ADD, 1, 1, 0, &b, 0), NPU_ERR_ARITY);
}

/* The device form of an op in a graph, byte by byte. */
static void check_encoded(npu_graph *g, npu_op op, uint32_t schema, const uint8_t *bytes, uint32_t size)
{
    npu_op_storage storage;
    npu_op_info info;
    uint8_t got[64];
    uint32_t kind = 99, got_schema = 99, got_size = 99;
    memset(&storage, 0, sizeof storage);
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
    NPU_CHECK_STATUS(npu_abi_encode(npu_abi_aicf(), &info, &kind, &got_schema, got, sizeof got, &got_size), NPU_OK);
    NPU_CHECK_EQ(kind, NPU_KIND_NUMBER(info.kind));
    NPU_CHECK_EQ(got_schema, schema);
    NPU_CHECK_EQ(got_size, size);
    NPU_CHECK(got_size == size && memcmp(got, bytes, size) == 0);
    npu_op_storage_free(&storage);
}

static void test_packing(void)
{
    NPU_ITEM("S2.20");
    NPU_ITEM("S2.21");
    NPU_ITEM("S2.26");
    static const uint8_t minus_one[8] = { 255, 255, 255, 255, 255, 255, 255, 255 }, trans_b[8] = { 0, 0, 0, 0, 1, 0, 0, 0 };
    static const uint8_t one[8] = { 1 };
    int64_t dims[2] = { 3, 4 }, bias_dims[1] = { 3 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    npu_value b = npu_input(g, "b", npu_spec_tensor(NPU_F32, 1, bias_dims));
    npu_aicf_gemm_attrs attrs = { false, true };
    npu_value y = npu_aicf_gemm(g, x, x, &attrs), z = npu_aicf_bias_add(g, y, b);
    npu_value sum = npu_aicf_reduce_sum(g, z, 1), r = npu_aicf_relu(g, sum), a = npu_aicf_add(g, r, r);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    check_encoded(g, npu_value_producer(g, y, NULL), 0, trans_b, 8);
    check_encoded(g, npu_value_producer(g, z, NULL), NPU_FOURCC('B', 'A', 'D', 'D'), minus_one, 8);
    check_encoded(g, npu_value_producer(g, sum, NULL), NPU_FOURCC('R', 'S', 'U', 'M'), one, 8);
    check_encoded(g, npu_value_producer(g, r, NULL), 0, one, 0);
    check_encoded(g, npu_value_producer(g, a, NULL), 0, one, 0);
    npu_graph_destroy(g);
}

/* Every kind has a kernel: a standalone call never ends in NOT_IMPLEMENTED, whatever else is wrong with it. */
static void test_every_kind_has_a_kernel(void)
{
    NPU_ITEM("S2.37");
    NPU_ITEM("S2.48");
    NPU_ITEM("R2.23");
    npu_registry *registry = NULL;
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "aicf.%s", kind_rows[i].name);
        NPU_CHECK_THAT(npu_backend_supports(npu_ref_backend(), registry, name), "%s has no kernel", name);
    }
    npu_registry_destroy(registry);
}

int main(void)
{
    seed = npu_test_seed();
    NPU_RUN(test_add);
    NPU_RUN(test_relu);
    NPU_RUN(test_copy);
    NPU_RUN(test_grad_zero);
    NPU_RUN(test_relu_bwd);
    NPU_RUN(test_sgd_step);
    NPU_RUN(test_mse_grad);
    NPU_RUN(test_bias_add);
    NPU_RUN(test_gemm);
    NPU_RUN(test_reduce_sum);
    NPU_RUN(test_softmax);
    NPU_RUN(test_softmax_bwd);
    NPU_RUN(test_mse_loss);
    NPU_RUN(test_cross_entropy);
    NPU_RUN(test_adam_step);
    NPU_RUN(test_step_inc);
    NPU_RUN(test_bias_corr);
    NPU_RUN(test_layernorm);
    NPU_RUN(test_batchnorm);
    NPU_RUN(test_kinds);
    NPU_RUN(test_sums_of_halves);
    NPU_RUN(test_unknown_kind);
    NPU_RUN(test_bridge);
    NPU_RUN(test_packing);
    NPU_RUN(test_every_kind_has_a_kernel);
    return npu_test_done();
}
