/* Fused elementwise ops, and the optimising passes: before and after, numbers, and what must stay as it is. */
#include "npu_test.h"
#include "../npu_ir_backend_ref.h"

static npu_graph *parse(const char *text, npu_status expected)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, text, strlen(text), NULL, &diag);
    if (status != expected) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
    }
    NPU_CHECK_STATUS(status, expected);
    return g;
}

/* ---- the fused op ---- */

#define BODY \
    "child body scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n  const h : scalar f32[] wrapped {0.5}\n" \
    "  s = aten.add.Tensor(a, b)\n  r = aten.relu.default(s)\n  t = aten.mul.Tensor(r, h)\n" \
    "  u = aten.sub.Tensor(t, a, alpha=2)\n  output o = u\nend\n"

static const struct {
    const char *name, *text;
    npu_status status;
} fused_types[] = {
    { "broadcast", BODY "input x : f32[3,1]\ninput y : f32[4]\nz = npu.fused([x, y], body=graph 0) : f32[3,4]\noutput z = z\n", NPU_OK },
    { "arity", BODY "input x : f32[3]\nz = npu.fused([x], body=graph 0)\noutput z = z\n", NPU_ERR_ARITY },
    { "dtype", BODY "input x : f32[3]\ninput y : f16[3]\nz = npu.fused([x, y], body=graph 0)\noutput z = z\n", NPU_ERR_DTYPE },
    { "shape", BODY "input x : f32[3]\ninput y : f32[4]\nz = npu.fused([x, y], body=graph 0)\noutput z = z\n", NPU_ERR_SHAPE },
    { "level", "child body\n  input a : f32[3]\n  output a = a\nend\ninput x : f32[3]\nz = npu.fused([x], body=graph 0)\noutput z = z\n",
      NPU_ERR_CLASS },
    { "no child", "input x : f32[3]\nz = npu.fused([x], body=graph 0)\noutput z = z\n", NPU_ERR_INVALID_ARGUMENT },
};

static void test_fused_types(void)
{
    for (size_t i = 0; i < sizeof fused_types / sizeof fused_types[0]; i++) {
        npu_text text = npu_text_make(NULL);
        npu_text_printf(&text, "graph main\n%s", fused_types[i].text);
        npu_graph_destroy(parse(text.data, fused_types[i].status));
        npu_text_free(&text);
    }
}

/* ---- the fused op against its ops one by one ---- */

/* Statements over inputs a, b, c, written once for a scalar body and once for tensors. */
static const struct {
    const char *name, *inputs[3], *statements;
} bodies[] = {
    { "chain", { "f32[3,700]", "f32[700]", "f32[3,1]" },
      "s = aten.add.Tensor(a, b)\nt = aten.relu.default(s)\nu = aten.mul.Tensor(t, c)\nv = aten.mul.Scalar(u, 0.5)\n"
      "y = aten.sub.Tensor(v, a, alpha=2)\noutput y = y\n" },
    { "large", { "f32[70001]", "f32[1]", "f32[]" },
      "s = aten.exp.default(a)\nt = aten.add.Tensor(s, b)\nu = aten.tanh.default(t)\ny = aten.maximum.default(u, c)\n"
      "output y = y\n" },
    { "two results", { "f32[5,33]", "f32[5,33]", "f32[33]" },
      "s = aten.mul.Tensor(a, b)\nt = aten.add.Tensor(s, c)\nu = aten.sigmoid.default(a)\nv = aten.mul.Tensor(u, t)\n"
      "output v = v\noutput s = s\n" },
    { "first result early", { "f32[40,64]", "f32[40,64]", "f32[64]" },
      "s = aten.neg.default(a)\nt = aten.mul.Tensor(a, b)\nu = aten.add.Tensor(t, c)\noutput s = s\noutput u = u\n" },
    { "half", { "f16[4,300]", "f16[300]", "f16[4,1]" },
      "s = aten.add.Tensor(a, b)\nt = aten.silu.default(s)\nu = aten.mul.Tensor(t, c)\ny = aten.add.Scalar(u, 1.5)\n"
      "output y = y\n" },
    { "bfloat and casts", { "bf16[9,31]", "f32[31]", "bf16[1]" },
      "s = aten.to.dtype(a, f32)\nt = aten.mul.Tensor(s, b)\nu = aten.to.dtype(t, bf16)\ny = aten.sub.Tensor(u, c)\n"
      "output y = y\noutput t = t\n" },
    { "double", { "f64[6,50]", "f64[6,50]", "f64[50]" },
      "s = aten.div.Tensor(a, b)\nt = aten.sqrt.default(s)\nu = aten.pow.Tensor_Scalar(t, 3)\ny = aten.add.Tensor(u, c)\n"
      "output y = y\n" },
    { "integers", { "i32[7,90]", "i32[90]", "i32[7,1]" },
      "s = aten.mul.Tensor(a, b)\nt = aten.clamp.default(s, -20, 30)\ny = aten.floor_divide.default(t, c)\noutput y = y\n" },
    { "comparison", { "f32[8,40]", "f32[40]", "f32[8,40]" },
      "s = aten.gt.Tensor(a, b)\nt = aten.where.self(s, a, c)\nu = aten.logical_not.default(s)\ny = aten.masked_fill.Scalar(t, u, -1)\n"
      "output y = y\noutput u = u\n" },
    { "wide functions", { "f32[2000]", "f32[2000]", "f32[1]" },
      "s = aten.sin.default(a)\nt = aten.atan2.default(s, b)\ny = aten.leaky_relu.default(t, 0.2)\nz = aten.mul.Tensor(y, c)\n"
      "output z = z\n" },
    { "one element", { "f32[]", "f32[1]", "f32[]" }, "s = aten.add.Tensor(a, b)\ny = aten.mul.Tensor(s, c)\noutput y = y\n" },
    { "none", { "f32[0,4]", "f32[4]", "f32[4]" }, "s = aten.add.Tensor(a, b)\ny = aten.mul.Tensor(s, c)\noutput y = y\n" },
};

/* Inputs go through a copy of themselves first, so that operands are temporaries and a result may take their place. */
static void write_head(npu_text *text, const char *const inputs[3])
{
    for (int i = 0; i < 3; i++) {
        npu_text_printf(text, "input %c0 : %s\n%c = aten.clone.default(%c0)\n", 'a' + i, inputs[i], 'a' + i, 'a' + i);
    }
}

static void write_fused(npu_text *text, const char *const inputs[3], const char *statements)
{
    int num_outputs = 0;
    npu_text_printf(text, "graph main\nchild body scalar\n");
    for (int i = 0; i < 3; i++) {
        npu_text_printf(text, "input %c : scalar %.*s[]\n", 'a' + i, (int)strcspn(inputs[i], "["), inputs[i]);
    }
    npu_text_printf(text, "%send\n", statements);
    write_head(text, inputs);
    for (const char *p = statements; (p = strstr(p, "output ")) != NULL; p++) {
        npu_text_printf(text, num_outputs ? ", r%d" : "r%d", num_outputs);
        num_outputs++;
    }
    npu_text_printf(text, " = npu.fused([a, b, c], body=graph 0)\n");
    for (int i = 0; i < num_outputs; i++) {
        npu_text_printf(text, "output o%d = r%d\n", i, i);
    }
}

/* Small whole numbers and halves, never 0, in any dtype; bits of exp make enough others. */
static void fill_input(void *to, const npu_spec *spec, uint32_t seed)
{
    size_t len = 0;
    npu_spec_len(spec, &len);
    for (size_t i = 0; i < len; i++) {
        int n = (int)((i * 2654435761u + seed * 40503u) % 31u) - 15;
        float x = (float)(n ? n : 16) / 4;
        switch (spec->dtype) {
        case NPU_F32: ((float *)to)[i] = x; break;
        case NPU_F64: ((double *)to)[i] = (double)x; break;
        case NPU_F16: ((uint16_t *)to)[i] = npu_f32_to_f16(x); break;
        case NPU_BF16: ((uint16_t *)to)[i] = npu_f32_to_bf16(x); break;
        default: ((int32_t *)to)[i] = n ? n : 16; break;
        }
    }
}

typedef struct setting {
    const npu_backend *const *backends;
    uint32_t num_backends;
    const npu_parallel *parallel;
    bool no_inplace;
} setting;

/* Runs a graph on numbers of its own; the bytes of all outputs follow one another in *out, which the caller frees. */
static size_t run_graph(const npu_graph *g, const setting *s, uint8_t **out)
{
    npu_plan_desc plan_desc = { 0 };
    npu_exec_desc exec_desc = { 0 };
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    size_t total = 0;
    void *inputs[16] = { NULL };
    plan_desc.backends = s->backends;
    plan_desc.num_backends = s->num_backends;
    plan_desc.no_inplace = s->no_inplace;
    exec_desc.parallel = s->parallel;
    *out = NULL;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &plan_desc, &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    if (program && npu_exec_create(&exec, program, &exec_desc, &diag) == NPU_OK) {
        for (uint32_t i = 0; i < npu_graph_num_inputs(g) && i < 16; i++) {
            const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
            size_t size = 0;
            npu_spec_size(spec, &size);
            inputs[i] = calloc(1, size + 1);
            fill_input(inputs[i], spec, i + 1);
            NPU_CHECK_STATUS(npu_exec_set_input_at(exec, i, inputs[i], size), NPU_OK);
        }
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        for (uint32_t i = 0; i < npu_graph_num_outputs(g); i++) {
            size_t size = 0;
            const void *data = npu_exec_output(exec, i, &size);
            *out = (uint8_t *)realloc(*out, total + size + 1);
            memcpy(*out + total, data, size);
            total += size;
        }
    }
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    for (int i = 0; i < 16; i++) {
        free(inputs[i]);
    }
    return total;
}

static void check_same_bits(const char *name, const npu_graph *a, const npu_graph *b, const setting *s)
{
    uint8_t *x, *y;
    size_t num_x = run_graph(a, s, &x), num_y = run_graph(b, s, &y);
    NPU_CHECK_EQ(num_x, num_y);
    if (num_x != num_y || (num_x && memcmp(x, y, num_x) != 0)) {
        NPU_CHECK_STR(name, "the same bits");
    }
    free(x);
    free(y);
}

static void test_fused_numbers(void)
{
    npu_ref_desc plain_desc = { 0 };
    npu_backend *plain = NULL;
    npu_parallel *threads = NULL;
    const npu_backend *backends[2];
    plain_desc.variant = "plain";
    NPU_CHECK_STATUS(npu_ref_create(&plain, &plain_desc), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, 3, NULL), NPU_OK);
    backends[0] = npu_ref_backend();
    backends[1] = plain;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        npu_text one = npu_text_make(NULL), all = npu_text_make(NULL);
        npu_graph *fused, *apart;
        npu_text_printf(&one, "graph main\n");
        write_head(&one, bodies[i].inputs);
        npu_text_printf(&one, "%s", bodies[i].statements);
        write_fused(&all, bodies[i].inputs, bodies[i].statements);
        apart = parse(one.data, NPU_OK);
        fused = parse(all.data, NPU_OK);
        for (int k = 0; fused && apart && k < 8; k++) {
            setting s = { &backends[k & 1], 1, k & 2 ? threads : NULL, (k & 4) != 0 };
            check_same_bits(bodies[i].name, apart, fused, &s);
        }
        npu_graph_destroy(fused);
        npu_graph_destroy(apart);
        npu_text_free(&one);
        npu_text_free(&all);
    }
    npu_threads_destroy(threads);
    npu_ref_destroy(plain);
}

int main(void)
{
    NPU_RUN(test_fused_types);
    NPU_RUN(test_fused_numbers);
    return npu_test_done();
}
