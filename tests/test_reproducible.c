/* The instruction set "base" gives the same bits on every machine: every op runs on the operands of its vectors, and a
   digest of its results is held against tests/golden/reproducible.txt, which one machine wrote for all. A result that is
   meant to change is recorded anew (make record); one that differs on one machine only is a mistake there. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* as in the implementation */
#endif
#include "../npu_ir_backend_ref.h"
#include "conformance/cases.h"
#include "npu_test.h"
#include <float.h>

enum { MAX_TENSORS = 64, MAX_TEXT = 1 << 17 };

/* ---- graphs of one op ------------------------------------------------------------------------------------------- */

typedef struct run_data {
    const conf_tensor *inputs[MAX_TENSORS];
    uint32_t num_inputs;
} run_data;

static npu_value add_input(npu_graph *g, run_data *data, const conf_tensor *t)
{
    npu_value none = { 0 };
    if (t->absent || data->num_inputs == MAX_TENSORS) {
        return none;
    }
    data->inputs[data->num_inputs++] = t;
    return npu_input(g, NULL, npu_spec_tensor(t->dtype, t->rank, t->dims));
}

/* NULL = the type rule refuses it. */
static npu_graph *make_graph(npu_registry *registry, const char *name, conf_case *c, run_data *data)
{
    static npu_value values[CONF_MAX_ARGS][MAX_TENSORS];
    npu_graph_desc desc = { 0 };
    npu_arg args[CONF_MAX_ARGS];
    desc.registry = registry;
    npu_graph *g = npu_graph_create(&desc);
    data->num_inputs = 0;
    for (uint32_t i = 0; i < c->num_args; i++) {
        const conf_arg *from = &c->args[i];
        args[i] = from->arg;
        for (uint32_t k = 0; k < from->num_tensors && k < MAX_TENSORS; k++) {
            values[i][k] = add_input(g, data, &from->tensors[k]);
        }
        if (from->arg.form == NPU_ARG_TENSOR) {
            args[i].as.value = values[i][0];
        } else if (from->arg.form == NPU_ARG_TENSORS) {
            args[i].as.values = values[i];
        }
    }
    npu_op op = npu_emit_name(g, name, args, c->num_args);
    for (uint32_t i = 0; op.id && i < npu_op_num_results(g, op); i++) {
        npu_output(g, NULL, npu_op_result(g, op, i));
    }
    if (npu_graph_status(g)) {
        npu_graph_destroy(g);
        return NULL;
    }
    return g;
}

/* ---- digests ---------------------------------------------------------------------------------------------------- */

/* An element as a number, whatever the byte order; every NaN is one, since machines choose its sign and its other bits. */
static uint64_t element_bits(npu_dtype dtype, const uint8_t *x, size_t size)
{
    uint64_t u = 0;
    bool is_little = conf_is_little_endian(), is_nan = false;
    for (size_t i = 0; i < size; i++) {
        u |= (uint64_t)x[i] << 8 * (is_little ? i : size - 1 - i);
    }
    switch (dtype) {
    case NPU_F16: is_nan = (u & 0x7fff) > 0x7c00; break;
    case NPU_BF16: is_nan = (u & 0x7fff) > 0x7f80; break;
    case NPU_F32: case NPU_C64: is_nan = (u & 0x7fffffff) > 0x7f800000; break;
    case NPU_F64: case NPU_C128: is_nan = (u & 0x7fffffffffffffffu) > 0x7ff0000000000000u; break;
    default: break;
    }
    return is_nan ? UINT64_MAX : u;
}

static uint64_t digest(uint64_t sum, npu_dtype dtype, const uint8_t *data, size_t bytes)
{
    size_t size = npu_dtype_bits(dtype) / (npu_dtype_is_complex(dtype) ? 16 : 8);
    size = size ? size : 1;
    for (size_t i = 0; i + size <= bytes; i += size) {
        sum = (sum ^ element_bits(dtype, data + i, size)) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

/* Adds the results of a run to the digest; false = it does not run. */
static bool digest_run(const npu_backend *base, const npu_graph *g, const run_data *data, uint64_t *sum)
{
    npu_exec *e = NULL;
    npu_status status = npu_exec_create_simple(&e, g, &base, 1, NULL);
    for (uint32_t i = 0; !status && i < data->num_inputs; i++) {
        const conf_tensor *t = data->inputs[i];
        npu_array input = { NULL, npu_spec_tensor(t->dtype, t->rank, t->dims), t->data };
        status = npu_exec_set_input_at(e, i, &input);
    }
    status = status ? status : npu_exec_run(e);
    for (uint32_t i = 0; !status && i < npu_graph_num_outputs(g); i++) {
        size_t bytes = 0;
        const uint8_t *y = (const uint8_t *)npu_exec_output(e, i, &bytes);
        *sum = digest(*sum, (npu_dtype)npu_exec_output_spec(e, i)->dtype, y, bytes);
    }
    npu_exec_destroy(e);
    return status == NPU_OK;
}

/* ---- larger operands -------------------------------------------------------------------------------------------- */

/* Past the sides of blocks, strips and parts, with full mantissas, and ops that no vectors are for; '@' is the dtype. */
#define X(dims) "input x : @" dims "\n"
#define XA(x, a) X(x) "input a : @" a "\n"
#define EACH(expression) X("[3000]") "p = aten.abs.default(x)\ny = aten." expression
static const char *const larger[] = {
    XA("[33,170]", "[170,75]") "y = aten.mm.default(x, a)",
    XA("[3,70]", "[70,9]") "input b : @[9]\ny = aten.addmm.default(b, x, a, beta=0.5, alpha=2.0)",
    XA("[5,17,20]", "[5,20,19]") "y = aten.bmm.default(x, a)", XA("[70,90]", "[90]") "y = aten.mv.default(x, a)",
    XA("[9,148]", "[35,148]") "input b : @[35]\ny = aten.linear.default(x, a, b)",
    XA("[2,5,33,37]", "[9,5,3,3]") "y = aten.conv2d.default(x, a, none, [1, 1], [1, 1])",
    XA("[2,7,31,32]", "[7,1,3,3]") "y = aten.conv2d.default(x, a, none, [1, 1], [1, 1], [1, 1], 7)",
    XA("[2,5,16,17]", "[5,4,3,3]") "y = aten.conv_transpose2d.input(x, a, none, [2, 2])",
    X("[2,3,70,16]") "y = aten.scaled_dot_product_attention.default(x, x, x, none, 0.0, true)",
    X("[40,1500]") "y = aten.softmax.int(x, 1)", X("[1500,40]") "y = aten.log_softmax.int(x, 0)",
    X("[40,3000]") "y = aten.sum.dim_IntList(x, [1])", X("[3000,30]") "y = aten.sum.dim_IntList(x, [0])",
    X("[50000]") "y = aten.sum.default(x)", X("[6,70,5,9]") "y = aten.mean.dim(x, [1, 3])",
    X("[30,700]") "y = aten.var.correction(x, [1], correction=1)", X("[30,700]") "y = aten.logsumexp.default(x, [1])",
    X("[30,700]") "y = aten.linalg_vector_norm.default(x, 3, [1])", X("[30,700]") "y = aten.cumsum.default(x, 1)",
    X("[30,500]") "input a : @[500]\ninput b : @[500]\ny = aten.layer_norm.default(x, [500], a, b)",
    X("[2,12,40,30]") "y = aten.group_norm.default(x, 3)", X("[2,5,40,30]") "y = aten.avg_pool2d.default(x, [3, 3], [2, 2], [1, 1])",
    X("[1,3,20,21]") "y = aten.upsample_bicubic2d.default(x, [33, 50], false)",
    X("[20,20]") "y = aten.linalg_det.default(x)", X("[20,20]") "y = aten.linalg_inv.default(x)",
    EACH("exp.default(x)"), EACH("exp2.default(x)"), EACH("expm1.default(x)"), EACH("log.default(p)"), EACH("log2.default(p)"),
    EACH("log10.default(p)"), EACH("log1p.default(p)"), EACH("sin.default(x)"), EACH("cos.default(x)"), EACH("tan.default(x)"),
    EACH("asin.default(x)"), EACH("acos.default(x)"), EACH("atan.default(x)"), EACH("sinh.default(x)"), EACH("cosh.default(x)"),
    EACH("tanh.default(x)"), EACH("asinh.default(x)"), EACH("acosh.default(p)"), EACH("atanh.default(x)"), EACH("erf.default(x)"),
    EACH("erfc.default(x)"), EACH("lgamma.default(x)"), EACH("digamma.default(x)"), EACH("pow.Tensor_Tensor(p, x)"),
    EACH("atan2.default(p, x)"), EACH("hypot.default(p, x)"), EACH("fmod.Tensor(p, x)"), EACH("gelu.default(x)"), EACH("silu.default(x)"),
    EACH("sqrt.default(p)"), EACH("logaddexp.default(p, x)"), EACH("erfinv.default(x)"), EACH("i0.default(x)"), EACH("round.default(x)"),
    EACH("sigmoid.default(x)"),
    X("[40,600]") "y = aicf.softmax(x)", X("[700,65]") "y = aicf.reduce_sum(x, axis=0)",
    X("[30,60]") "input a : @[60]\ny, z, w = aicf.layernorm_fwd(x, a, a)",
    X("[4,6,9,10]") "input a : @[6]\ny, z, w = aicf.batchnorm_fwd(x, a, a)",
    XA("[30,90]", "[40,90]") "y = aicf.gemm(x, a, transB=true)"
};

/* Of whole numbers: 24 and 53 digits where there are as many, eighths in the halves. */
static void fill(const npu_spec *spec, uint8_t *data, size_t bytes, uint64_t *state)
{
    npu_dtype dtype = (npu_dtype)spec->dtype;
    size_t size = npu_dtype_bits(dtype) / 8;
    for (size_t i = 0; i < bytes / size; i++) {
        int64_t random = (int64_t)npu_test_random(state);
        double d = (double)(random >> 11) * 0x1p-50;
        float f = (float)(random >> 40) * 0x1p-21f;
        uint16_t half = npu_f32_to_f16((float)(random >> 58) * 0.125f);
        memcpy(data + i * size, dtype == NPU_F64 ? (const void *)&d : dtype == NPU_F32 ? (const void *)&f : (const void *)&half, size);
    }
}

/* Reads a graph of `dtype`, and makes operands for it. */
static npu_graph *read_graph(const char *lines, const char *dtype, conf_tensor *tensors, run_data *data)
{
    char source[600] = "npu_ir 1\ngraph main\n";
    size_t len = strlen(source);
    npu_graph *g = NULL;
    uint64_t state = 1;
    for (const char *from = lines; *from && len + 40 < sizeof source; from++) {
        len += (size_t)snprintf(source + len, sizeof source - len, *from == '@' ? "%s" : "%.1s", *from == '@' ? dtype : from);
    }
    len += (size_t)snprintf(source + len, sizeof source - len, "\noutput y = y\n");
    npu_graph_parse(&g, source, len, npu_test_graph_desc(), NULL);
    data->num_inputs = g ? npu_graph_num_inputs(g) : 0;
    for (uint32_t i = 0; i < data->num_inputs; i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        conf_tensor *t = &tensors[i];
        t->dtype = (npu_dtype)spec->dtype;
        t->rank = spec->rank;
        memcpy(t->dims, spec->dims, sizeof t->dims);
        npu_spec_size(spec, &t->size);
        uint8_t *bytes = (uint8_t *)conf_grow(NULL, t->size);
        fill(spec, bytes, t->size, &state);
        t->data = bytes;
        data->inputs[i] = t;
    }
    return g;
}

/* The line of a graph: what makes y; false = it does not run, as some do not in halves or doubles. */
static bool digest_larger(const npu_backend *base, const char *lines, const char *dtype, char *line, size_t size)
{
    static conf_tensor tensors[MAX_TENSORS];
    static run_data data;
    const char *result = strrchr(lines, '\n') + 1;
    uint64_t sum = 0;
    npu_graph *g = read_graph(lines, dtype, tensors, &data);
    bool runs = g && digest_run(base, g, &data, &sum);
    for (uint32_t i = 0; i < data.num_inputs; i++) {
        union { const void *lent; void *own; } bytes = { tensors[i].data };
        free(bytes.own);
    }
    npu_graph_destroy(g);
    snprintf(line, size, "%s %.*s %016llx\n", dtype, (int)strcspn(result, "\n"), result, (unsigned long long)sum);
    return runs;
}

/* The line of an op; false = it has no vectors, or results that nobody wrote. */
static bool digest_op(const npu_backend *base, npu_registry *registry, const char *name, char *line, size_t size)
{
    conf_file file;
    static conf_case c;
    static run_data data;
    uint64_t sum = 0;
    unsigned num_runs = 0;
    bool found = !strstr(name, "empty") && conf_open(&file, "tests/vectors", name);
    while (found && conf_next(&file, &c)) {
        npu_graph *g = make_graph(registry, name, &c, &data);
        num_runs += g && digest_run(base, g, &data, &sum);
        npu_graph_destroy(g);
        conf_free(&c);
    }
    if (found) {
        conf_close(&file);
        snprintf(line, size, "%s %u %016llx\n", name, num_runs, (unsigned long long)sum);
    }
    return found && num_runs;
}

/* ---- the comparison --------------------------------------------------------------------------------------------- */

static char text[MAX_TEXT], golden[MAX_TEXT];

/* a * b + c in one step where the compiler may: then results are not those of other machines. */
static bool contracts(void)
{
    volatile double a = 1 + DBL_EPSILON, b = 1 - DBL_EPSILON, c = -1;
    double x = a, y = b, z = c;
    return x * y + z != 0;
}

static void read_golden(void)
{
    FILE *file = fopen("tests/golden/reproducible.txt", "rb");
    size_t n = file ? fread(golden, 1, sizeof golden - 1, file) : 0;
    golden[n] = 0;
    if (file) {
        fclose(file);
    }
}

/* Every line stands in the golden file, with a newline before it or at its begin. */
static void check_line(const char *line)
{
    const char *at = strstr(golden, line);
    int name = (int)strcspn(line, " ");
    NPU_CHECK_THAT(at && (at == golden || at[-1] == '\n'), "%.*s: other results than tests/golden/reproducible.txt says: %s", name,
                   line, line);
}

/* Why results here are not those of other machines; NULL = they are. */
static const char *excuse(void)
{
    return FLT_EVAL_METHOD != 0 ? "this compiler keeps more digits than a dtype has (-msse2 -mfpmath=sse helps on 32-bit x86)"
           : contracts() ? "this compiler joins products and sums (-std=c99 or -ffp-contract=off keep them apart)" : NULL;
}

static void take_line(const char *line)
{
    size_t len = strlen(text);
    snprintf(text + len, sizeof text - len, "%s", line);
    if (!getenv("NPU_RECORD")) {
        check_line(line);
    }
}

static npu_backend *base_backend(void)
{
    npu_backend *base = NULL;
    npu_ref_desc desc = { 0 };
    desc.isa = "base";
    NPU_CHECK_STATUS(npu_ref_create(&base, &desc), NPU_OK);
    return base;
}

static void test_every_op(void)
{
    npu_registry *registry = NULL;
    npu_backend *base = base_backend();
    uint32_t num_ops = 0;
    char line[200];
    NPU_ITEM("F50");
    if (excuse()) {
        NPU_SKIP(excuse());
        npu_ref_destroy(base);
        return;
    }
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        if (digest_op(base, registry, npu_registry_op(registry, i)->name, line, sizeof line)) {
            take_line(line);
            num_ops++;
        }
    }
    NPU_CHECK(num_ops > 500);
    npu_ref_destroy(base);
    npu_registry_destroy(registry);
}

static void test_larger_operands(void)
{
    static const char *const dtypes[] = { "f16", "f32", "f64" };
    npu_backend *base = base_backend();
    char line[400];
    NPU_ITEM("F50");
    if (excuse()) {
        NPU_SKIP(excuse());
        npu_ref_destroy(base);
        return;
    }
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            if (digest_larger(base, larger[i], dtypes[k], line, sizeof line)) {
                take_line(line);
            } else {
                NPU_CHECK_THAT(k != 1, "%s does not run", larger[i]);
            }
        }
    }
    npu_ref_destroy(base);
}

int main(void)
{
    read_golden();
    NPU_RUN(test_every_op);
    NPU_RUN(test_larger_operands);
    if (getenv("NPU_RECORD")) {
        NPU_CHECK_GOLDEN("reproducible.txt", text);
    }
    return npu_test_done();
}
