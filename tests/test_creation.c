/* Ops that make elements of nothing, where vectors promise dtype and shape only: what random numbers are worth,
   and that results of several parts are whole. Also divisions by zero. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

enum { LEN = 100000 };

static union results {
    float f32[LEN];
    double f64[LEN];
    int64_t i64[LEN];
    uint16_t u16[LEN];
} results;
static uint8_t kept[LEN];

/* Runs one op of the graph alone on the CPU; results go to `results` and `kept`. */
static npu_status run(npu_graph *g, npu_op op)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_status status;
    for (uint32_t i = 0; i < npu_op_num_results(g, op); i++) {
        npu_output(g, i ? "kept" : "y", npu_op_result(g, op, i));
    }
    status = npu_exec_create_simple(&exec, g, &cpu, 1, NULL);
    status = status ? status : npu_exec_run(exec);
    for (uint32_t i = 0; i < npu_op_num_results(g, op) && !status; i++) {
        size_t size = 0;
        const void *data = npu_exec_output(exec, i, &size);
        NPU_CHECK(size <= (i ? sizeof kept : sizeof results));
        memcpy(i ? (void *)kept : (void *)&results, data, size);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return status;
}

static npu_value value_of(npu_graph *g, const char *op, const npu_arg *args, uint32_t num_args)
{
    return npu_op_result(g, npu_emit_name(g, op, args, num_args), 0);
}

static npu_status make(const char *op, const npu_arg *args, uint32_t num_args)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    return run(g, npu_emit_name(g, op, args, num_args));
}

static void moments(double *mean, double *variance)
{
    *mean = *variance = 0;
    for (int i = 0; i < LEN; i++) {
        *mean += results.f64[i] / LEN;
    }
    for (int i = 0; i < LEN; i++) {
        *variance += (results.f64[i] - *mean) * (results.f64[i] - *mean) / LEN;
    }
}

static void test_random(void)
{
    int64_t size = LEN;
    npu_arg args[2] = { npu_arg_ints("size", &size, 1), npu_arg_dtype("dtype", NPU_F64) };
    double mean, variance, first;
    uint32_t outside = 0;
    NPU_CHECK_STATUS(make("aten.rand.default", args, 2), NPU_OK);
    moments(&mean, &variance);
    NPU_CHECK(fabs(mean - 0.5) < 0.005 && fabs(variance - 1 / 12.0) < 0.002);
    first = results.f64[0];
    NPU_CHECK_STATUS(make("aten.rand.default", args, 2), NPU_OK);
    NPU_CHECK(results.f64[0] == first && results.f64[1] != first);
    NPU_CHECK_STATUS(make("aten.randn.default", args, 2), NPU_OK);
    moments(&mean, &variance);
    NPU_CHECK(fabs(mean) < 0.015 && fabs(variance - 1) < 0.02);
    args[1] = npu_arg_dtype("dtype", NPU_F16);
    NPU_CHECK_STATUS(make("aten.rand.default", args, 2), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        outside += !(npu_f16_to_f32(results.u16[i]) >= 0 && npu_f16_to_f32(results.u16[i]) < 1);
    }
    NPU_CHECK_EQ(outside, 0);
}

static void test_random_order(void)
{
    npu_arg n = npu_arg_int("n", LEN);
    uint32_t twice = 0, fixed = 0;
    NPU_CHECK_STATUS(make("aten.randperm.default", &n, 1), NPU_OK);
    memset(kept, 0, sizeof kept);
    for (int i = 0; i < LEN; i++) {
        int64_t at = results.i64[i];
        twice += at < 0 || at >= LEN || kept[at]++;
        fixed += at == i;
    }
    NPU_CHECK_EQ(twice, 0);
    NPU_CHECK(fixed < 20);
}

/* A quarter is dropped, the rest is scaled. */
static void test_dropout(void)
{
    int64_t dims = LEN;
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_arg args[3], size = npu_arg_ints("size", &dims, 1);
    uint32_t count = 0, wrong = 0;
    args[0] = npu_arg_tensor("input", value_of(g, "aten.ones.default", &size, 1));
    args[1] = npu_arg_float("p", 0.25);
    args[2] = npu_arg_bool("train", true);
    NPU_CHECK_STATUS(run(g, npu_emit_name(g, "aten.native_dropout.default", args, 3)), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        count += kept[i];
        wrong += results.f32[i] != (kept[i] ? (float)(1 / 0.75) : 0.0f);
    }
    NPU_CHECK_EQ(wrong, 0);
    NPU_CHECK(count > 0.74 * LEN && count < 0.76 * LEN);
}

/* Of 1000 channels of 100 elements each is whole or gone; what alpha_dropout makes of zeros has mean 0. */
static void test_dropout_of_channels(void)
{
    int64_t dims[3] = { 10, 100, 100 };
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_arg args[3], size = npu_arg_ints("size", dims, 3);
    double mean = 0;
    uint32_t wrong = 0, gone = 0;
    args[0] = npu_arg_tensor("input", value_of(g, "aten.ones.default", &size, 1));
    args[1] = npu_arg_float("p", 0.5);
    args[2] = npu_arg_bool("train", true);
    NPU_CHECK_STATUS(run(g, npu_emit_name(g, "aten.feature_dropout.default", args, 3)), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        gone += results.f32[i] == 0;
        wrong += results.f32[i] != results.f32[i / 100 * 100];
    }
    NPU_CHECK_EQ(wrong, 0);
    NPU_CHECK(gone > 0.4 * LEN && gone < 0.6 * LEN);
    g = npu_graph_create(npu_test_graph_desc());
    args[0] = npu_arg_tensor("input", value_of(g, "aten.zeros.default", &size, 1));
    NPU_CHECK_STATUS(run(g, npu_emit_name(g, "aten.alpha_dropout.default", args, 3)), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        mean += (double)results.f32[i] / LEN;
    }
    NPU_CHECK(fabs(mean) < 0.01);
}

static void test_ranges(void)
{
    npu_arg args[3] = { npu_arg_float("start", 5.0), npu_arg_int("end", LEN + 5), npu_arg_int("steps", LEN) };
    uint32_t wrong = 0;
    NPU_CHECK_STATUS(make("aten.arange.start", args, 2), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        wrong += results.f32[i] != (float)(i + 5);
    }
    args[1] = npu_arg_int("end", LEN + 4);
    NPU_CHECK_STATUS(make("aten.linspace.default", args, 3), NPU_OK);
    for (int i = 0; i < LEN; i++) {
        wrong += results.f32[i] != (float)(i + 5);
    }
    NPU_CHECK_EQ(wrong, 0);
}

/* Ones where row and column are equal, constants everywhere: of strips, and parts, that begin anywhere. */
static void test_patterns(void)
{
    static const int64_t sizes[][2] = { { 40, 33 }, { 33, 40 }, { 300, 300 }, { 1, 700 }, { 700, 1 } };
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        npu_arg args[] = { npu_arg_int("n", sizes[k][0]), npu_arg_int("m", sizes[k][1]) };
        int wrong = 0;
        NPU_CHECK_STATUS(make("aten.eye.m", args, 2), NPU_OK);
        for (int64_t i = 0; i < sizes[k][0] * sizes[k][1]; i++) {
            wrong += results.f32[i] != (float)(i / sizes[k][1] == i % sizes[k][1]);
        }
        NPU_CHECK_EQ(wrong, 0);
    }
    for (int64_t len = 99990; len <= LEN; len++) { /* several parts */
        npu_arg args[] = { npu_arg_ints("size", &len, 1), npu_arg_float("fill_value", 2.5) };
        int wrong = 0;
        NPU_CHECK_STATUS(make("aten.full.default", args, 2), NPU_OK);
        for (int64_t i = 0; i < len; i++) {
            wrong += results.f32[i] != 2.5f;
        }
        NPU_CHECK_EQ(wrong, 0);
    }
}

/* Halves of every row, and of the rows. */
static void test_glu(void)
{
    int64_t dims[2] = { 4, 2 * LEN / 4 };
    for (int64_t dim = 0; dim < 2; dim++) {
        npu_graph *g = npu_graph_create(npu_test_graph_desc());
        npu_arg end = npu_arg_float("end", 2.0 * LEN), args[2];
        npu_arg shape[2];
        uint32_t wrong = 0;
        shape[0] = npu_arg_tensor("self", value_of(g, "aten.arange.default", &end, 1));
        shape[1] = npu_arg_ints("shape", dims, 2);
        args[0] = npu_arg_tensor("self", value_of(g, "aten.reshape.default", shape, 2));
        args[1] = npu_arg_int("dim", dim);
        NPU_CHECK_STATUS(run(g, npu_emit_name(g, "aten.glu.default", args, 2)), NPU_OK);
        for (int i = 100; i < LEN; i++) { /* the sigmoid of what is large is 1 */
            int64_t half = dim ? dims[1] / 2 : LEN;
            wrong += results.f32[i] != (float)(i / half * half + i);
        }
        NPU_CHECK_EQ(wrong, 0);
    }
}

static void test_division_by_zero(void)
{
    static const char *const ops[] = { "aten.fmod.Scalar", "aten.remainder.Scalar",
                                       "aten.floor_divide.Scalar" };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        npu_graph *g = npu_graph_create(npu_test_graph_desc());
        npu_arg end = npu_arg_int("end", 5), args[2];
        args[0] = npu_arg_tensor("self", value_of(g, "aten.arange.default", &end, 1));
        args[1] = npu_arg_int("other", 0);
        NPU_CHECK_STATUS(run(g, npu_emit_name(g, ops[i], args, 2)), NPU_ERR_NUMERICAL);
    }
}

int main(void)
{
    NPU_RUN(test_random);
    NPU_RUN(test_random_order);
    NPU_RUN(test_dropout);
    NPU_RUN(test_dropout_of_channels);
    NPU_RUN(test_ranges);
    NPU_RUN(test_patterns);
    NPU_RUN(test_glu);
    NPU_RUN(test_division_by_zero);
    return npu_test_done();
}
