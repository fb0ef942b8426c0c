/* Fused elementwise ops, and the optimising passes: before and after, numbers, and what must stay as it is. */
#include "rig.h"

static npu_graph *parse(const char *text, npu_status expected)
{
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag);
    if (status != expected) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
    }
    NPU_CHECK_STATUS(status, expected);
    return g;
}

/* ---- the fused op ---- */

#define BODY \
    "child body scalar\n  input a : scalar f32[]\n  input b : scalar f32[]\n" \
    "  const h : scalar f32[] wrapped {0.5}\n" \
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
        npu_text text = npu_text_init(NULL);
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
      "s = aten.add.Tensor(a, b)\nt = aten.relu.default(s)\nu = aten.mul.Tensor(t, c)\n"
      "v = aten.mul.Scalar(u, 0.5)\n"
      "y = aten.sub.Tensor(v, a, alpha=2)\noutput y = y\n" },
    { "large", { "f32[70001]", "f32[1]", "f32[]" },
      "s = aten.exp.default(a)\nt = aten.add.Tensor(s, b)\nu = aten.tanh.default(t)\n"
      "y = aten.maximum.default(u, c)\n"
      "output y = y\n" },
    { "two results", { "f32[5,33]", "f32[5,33]", "f32[33]" },
      "s = aten.mul.Tensor(a, b)\nt = aten.add.Tensor(s, c)\nu = aten.sigmoid.default(a)\n"
      "v = aten.mul.Tensor(u, t)\n"
      "output v = v\noutput s = s\n" },
    { "first result early", { "f32[40,64]", "f32[40,64]", "f32[64]" },
      "s = aten.neg.default(a)\nt = aten.mul.Tensor(a, b)\nu = aten.add.Tensor(t, c)\noutput s = s\n"
      "output u = u\n" },
    { "half", { "f16[4,300]", "f16[300]", "f16[4,1]" },
      "s = aten.add.Tensor(a, b)\nt = aten.silu.default(s)\nu = aten.mul.Tensor(t, c)\n"
      "y = aten.add.Scalar(u, 1.5)\n"
      "output y = y\n" },
    { "bfloat and casts", { "bf16[9,31]", "f32[31]", "bf16[1]" },
      "s = aten.to.dtype(a, f32)\nt = aten.mul.Tensor(s, b)\nu = aten.to.dtype(t, bf16)\n"
      "y = aten.sub.Tensor(u, c)\n"
      "output y = y\noutput t = t\n" },
    { "double", { "f64[6,50]", "f64[6,50]", "f64[50]" },
      "s = aten.div.Tensor(a, b)\nt = aten.sqrt.default(s)\nu = aten.pow.Tensor_Scalar(t, 3)\n"
      "y = aten.add.Tensor(u, c)\n"
      "output y = y\n" },
    { "integers", { "i32[7,90]", "i32[90]", "i32[7,1]" },
      "s = aten.mul.Tensor(a, b)\nt = aten.clamp.default(s, -20, 30)\ny = aten.floor_divide.default(t, c)\n"
      "output y = y\n" },
    { "comparison", { "f32[8,40]", "f32[40]", "f32[8,40]" },
      "s = aten.gt.Tensor(a, b)\nt = aten.where.self(s, a, c)\nu = aten.logical_not.default(s)\n"
      "y = aten.masked_fill.Scalar(t, u, -1)\n"
      "output y = y\noutput u = u\n" },
    { "wide functions", { "f32[2000]", "f32[2000]", "f32[1]" },
      "s = aten.sin.default(a)\nt = aten.atan2.default(s, b)\ny = aten.leaky_relu.default(t, 0.2)\n"
      "z = aten.mul.Tensor(y, c)\n"
      "output z = z\n" },
    { "more bytes than caches hold", { "f64[560,1000]", "f64[560,1000]", "f64[1]" },
      "s = aten.add.Tensor(a, b)\ny = aten.mul.Tensor(s, c)\noutput y = y\n" },
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
        case NPU_U8: ((uint8_t *)to)[i] = (uint8_t)(128 + 8 * n); break;
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
            NPU_CHECK_STATUS(npu_test_input_at(exec, i, inputs[i], size), NPU_OK);
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
        NPU_CHECK_THAT(false, "%s: not the same bits", name);
        NPU_CHECK_BYTES(y, x, num_x < num_y ? num_x : num_y);
    }
    free(x);
    free(y);
}

static void test_fused_numbers(void)
{
    NPU_ITEM("F59");
    npu_ref_desc plain_desc = { 0 };
    npu_backend *plain = NULL;
    npu_parallel *threads = NULL;
    const npu_backend *backends[2];
    plain_desc.variant = "plain";
    NPU_CHECK_STATUS(npu_ref_create(&plain, &plain_desc), NPU_OK);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }), NPU_OK);
    backends[0] = npu_ref_backend();
    backends[1] = plain;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        npu_text one = npu_text_init(NULL), all = npu_text_init(NULL);
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

/* ---- passes: before and after ---- */

#define PASS(id) (1u << NPU_PASS_##id)

static const struct {
    const char *name;
    uint32_t passes;      /* bits */
    double tolerance;     /* of the results, relative; 0 = the same bits */
    const char *before;   /* without its first two lines */
    const char *after;    /* NULL = nothing changes */
} rows[] = {
    { "dead code goes", PASS(DEAD_CODE), 0,
      "input x : f32[2]\nstate h : f32[2]\na = aten.relu.default(self=x) : f32[2]\n"
      "b = aten.neg.default(self=a) : f32[2]\n"
      "c = aten.abs.default(self=x) : f32[2]\nupdate h = c\noutput y = a\n",
      "input x : f32[2]\nstate h : f32[2]\na = aten.relu.default(self=x) : f32[2]\n"
      "c = aten.abs.default(self=x) : f32[2]\n"
      "update h = c\noutput y = a\n" },
    { "nothing is dead", PASS(DEAD_CODE), 0,
      "input x : f32[2]\na = aten.relu.default(self=x) : f32[2]\noutput y = a\n", NULL },
    { "no-ops go, outputs name what they copied", PASS(NO_OPS), 0,
      "input x : f32[2,3]\na = aten.clone.default(self=x) : f32[2,3]\n"
      "b = aten.view.default(self=a, size=[2, 3]) : f32[2,3]\n"
      "c = aten.dropout.default(input=b, p=0.5, train=false) : f32[2,3]\n"
      "d = aten.to.dtype(self=c, dtype=f32) : f32[2,3]\n"
      "e = aten.relu.default(self=d) : f32[2,3]\nf = aten.slice.Tensor(self=e, start=0, end=9) : f32[2,3]\n"
      "output y = f\n"
      "output z = a\n",
      "input x : f32[2,3]\ne = aten.relu.default(self=x) : f32[2,3]\noutput y = e\noutput z = x\n" },
    { "views and casts that change something stay", PASS(NO_OPS), 0,
      "input x : f32[2,3]\na = aten.view.default(self=x, size=[3, 2]) : f32[3,2]\n"
      "b = aten.to.dtype(self=a, dtype=f16) : f16[3,2]\n"
      "c = aten.slice.Tensor(self=b, start=1) : f16[2,2]\noutput y = c\n", NULL },
    { "equal ops are computed once", PASS(COMMON), 0,
      "input x : f32[2]\nconst h : f32[] {0.5}\na = aten.exp.default(self=x) : f32[2]\n"
      "b = aten.exp.default(self=x) : f32[2]\n"
      "c = aten.mul.Scalar(self=a, other=2) : f32[2]\nd = aten.mul.Scalar(self=b, other=2) : f32[2]\n"
      "e = aten.mul.Scalar(self=b, other=3) : f32[2]\nf = aten.add.Tensor(self=c, other=d) : f32[2]\n"
      "g = aten.add.Tensor(self=e, other=f) : f32[2]\noutput y = g\n",
      "input x : f32[2]\nconst h : f32[] {0.5}\na = aten.exp.default(self=x) : f32[2]\n"
      "c = aten.mul.Scalar(self=a, other=2) : f32[2]\ne = aten.mul.Scalar(self=a, other=3) : f32[2]\n"
      "f = aten.add.Tensor(self=c, other=c) : f32[2]\ng = aten.add.Tensor(self=e, other=f) : f32[2]\n"
      "output y = g\n" },
    { "random ops are not equal", PASS(COMMON), 0,
      "a = aten.rand.default(size=[2]) : f32[2]\nb = aten.rand.default(size=[2]) : f32[2]\n"
      "c = aten.lt.Tensor(self=a, other=b) : bool[2]\noutput y = c\n", NULL },
    { "constants are computed", PASS(CONSTANTS), 0,
      "input x : f32[2]\nconst a : f32[2] {1.0, 2.0}\nconst b : f32[2] {0.5, 4.0}\n"
      "c = aten.mul.Tensor(self=a, other=b) : f32[2]\n"
      "d = aten.add.Scalar(self=c, other=1) : f32[2]\ne = aten.add.Tensor(self=x, other=d) : f32[2]\n"
      "output y = e\n",
      "input x : f32[2]\nconst a : f32[2] {1.0, 2.0}\nconst b : f32[2] {0.5, 4.0}\n"
      "const c : f32[2] {0.5, 8.0}\n"
      "const d : f32[2] {1.5, 9.0}\ne = aten.add.Tensor(self=x, other=d) : f32[2]\noutput y = e\n" },
    { "other dims and means of constants, too", PASS(CONSTANTS), 0,
      "input x : f32[2]\nconst a : f32[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 9.0}\n"
      "b = aten.reshape.default(self=a, shape=[3, 2]) : f32[3,2]\n"
      "c = aten.mean.dim(self=b, dim=[0]) : f32[2]\nd = aten.add.Tensor(self=x, other=c) : f32[2]\noutput y = d\n",
      "input x : f32[2]\nconst a : f32[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 9.0}\n"
      "const b : f32[3,2] {1.0, 2.0, 3.0, 4.0, 5.0, 9.0}\nconst c : f32[2] {3.0, 5.0}\n"
      "d = aten.add.Tensor(self=x, other=c) : f32[2]\noutput y = d\n" },
    { "random numbers and what fails are not", PASS(CONSTANTS), 0,
      "const a : i32[2] {1, 2}\nconst b : i32[2] {1, 0}\n%3 = aten.rand.default(size=[2]) : f32[2]\n"
      "output y = %3\n", NULL },
    { "elementwise ops become one", PASS(FUSE), 0,
      "input x : f32[4,8]\ninput b : f32[8]\n%3 = aten.add.Tensor(self=x, other=b) : f32[4,8]\n"
      "%4 = aten.relu.default(self=%3) : f32[4,8]\nconst %5 : f32[] wrapped {0.5}\n"
      "%6 = aten.mul.Tensor(self=%4, other=%5) : f32[4,8]\nr = aten.mul.Tensor(self=%6, other=x) : f32[4,8]\n"
      "output y = r\n",
      "child fused scalar\n  input x0 : scalar f32[]\n  input x1 : scalar f32[]\n"
      "  %3 = aten.add.Tensor(self=x0, other=x1) : scalar f32[]\n"
      "  %4 = aten.relu.default(self=%3) : scalar f32[]\n"
      "  const %5 : scalar f32[] wrapped {0.5}\n  %6 = aten.mul.Tensor(self=%4, other=%5) : scalar f32[]\n"
      "  %7 = aten.mul.Tensor(self=%6, other=x0) : scalar f32[]\n  output y0 = %7\nend\n"
      "input x : f32[4,8]\ninput b : f32[8]\nconst %3 : f32[] wrapped {0.5}\n"
      "r = npu.fused(inputs=[x, b], body=graph 0) : f32[4,8]\noutput y = r\n" },
    { "what others need is a result, the last one first", PASS(FUSE), 0,
      "input x : f32[8]\na = aten.exp.default(self=x) : f32[8]\nb = aten.neg.default(self=a) : f32[8]\n"
      "c = aten.softmax.int(self=a, dim=0) : f32[8]\noutput y = b\noutput z = c\n",
      "child fused scalar\n  input x0 : scalar f32[]\n  %2 = aten.exp.default(self=x0) : scalar f32[]\n"
      "  %3 = aten.neg.default(self=%2) : scalar f32[]\n  output y0 = %3\n  output y1 = %2\nend\n"
      "input x : f32[8]\nb, a = npu.fused(inputs=[x], body=graph 0) : f32[8], f32[8]\n"
      "c = aten.softmax.int(self=a, dim=0) : f32[8]\noutput y = b\noutput z = c\n" },
    { "nothing is fused across an op that reads", PASS(FUSE), 0,
      "input x : f32[8]\na = aten.exp.default(self=x) : f32[8]\nb = aten.softmax.int(self=a, dim=0) : f32[8]\n"
      "c = aten.add.Tensor(self=a, other=b) : f32[8]\noutput y = c\n", NULL },
    { "other shapes and mixed dtypes stay apart", PASS(FUSE), 0,
      "input x : f32[4,8]\ninput b : f32[8]\ninput h : f16[4,8]\na = aten.exp.default(self=b) : f32[8]\n"
      "c = aten.add.Tensor(self=x, other=a) : f32[4,8]\nd = aten.add.Tensor(self=c, other=h) : f32[4,8]\n"
      "output y = d\n", NULL },
    { "saved values stay", PASS(FUSE), 0,
      "input x : f32[8]\na = aten.exp.default(self=x) : f32[8]\nb = aten.neg.default(self=a) : f32[8]\n"
      "c = aten.softmax.int(self=b, dim=0) : f32[8]\nsave c = a\noutput y = c\n",
      "child fused scalar\n  input x0 : scalar f32[]\n  %2 = aten.exp.default(self=x0) : scalar f32[]\n"
      "  %3 = aten.neg.default(self=%2) : scalar f32[]\n  output y0 = %3\n  output y1 = %2\nend\n"
      "input x : f32[8]\nb, a = npu.fused(inputs=[x], body=graph 0) : f32[8], f32[8]\n"
      "c = aten.softmax.int(self=b, dim=0) : f32[8]\nsave c = a\noutput y = c\n" },
    { "gemm, bias_add and relu become one", PASS(GEMM), 0,
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "%4 = aicf.gemm(a=x, b=w, transB=true) : f32[2,4]\n"
      "%5 = aicf.bias_add(x=%4, bias=b) : f32[2,4]\ny = aicf.relu(x=%5) : f32[2,4]\noutput y = y\n",
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "y = aicf.gemm_epilogue(a=x, b=w, bias=b, transB=true) : f32[2,4]\noutput y = y\n" },
    { "gemm and bias_add, relu has another user to mind", PASS(GEMM), 0,
      "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\n%4 = aicf.gemm(a=x, b=w) : f32[2,4]\n"
      "s = aicf.bias_add(x=%4, bias=b) : f32[2,4]\ny = aicf.relu(x=s) : f32[2,4]\noutput y = y\noutput s = s\n",
      "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\n"
      "s = aicf.gemm_epilogue(a=x, b=w, bias=b, relu=false) : f32[2,4]\ny = aicf.relu(x=s) : f32[2,4]\n"
      "output y = y\noutput s = s\n" },
    { "a gemm with two users stays", PASS(GEMM), 0,
      "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\nm = aicf.gemm(a=x, b=w) : f32[2,4]\n"
      "s = aicf.bias_add(x=m, bias=b) : f32[2,4]\ny = aicf.add(a=s, c=m) : f32[2,4]\noutput y = y\n", NULL },
    { "a gemm that is an output, or saved, stays", PASS(GEMM), 0,
      "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\nm = aicf.gemm(a=x, b=w) : f32[2,4]\n"
      "s = aicf.bias_add(x=m, bias=b) : f32[2,4]\nn = aicf.gemm(a=x, b=w) : f32[2,4]\n"
      "t = aicf.bias_add(x=n, bias=b) : f32[2,4]\n"
      "save t = n\noutput m = m\noutput s = s\noutput t = t\n", NULL },
    { "batch norm goes into the convolution", PASS(BATCH_NORM) | PASS(CONSTANTS), 1e-5,
      "input x : f32[1,2,3,3]\nconst w : f32[2,2,1,1] {1.0, 2.0, 3.0, 4.0}\nconst b : f32[2] {0.5, -0.5}\n"
      "const g : f32[2] {2.0, 1.0}\n"
      "const h : f32[2] {0.25, 1.0}\nconst m : f32[2] {1.0, -1.0}\nconst v : f32[2] {4.0, 0.25}\n"
      "%8 = aten.conv2d.default(input=x, weight=w, bias=b) : f32[1,2,3,3]\n"
      "y = aten.batch_norm.default(input=%8, weight=g, bias=h, running_mean=m, running_var=v, training=false, momentum=0.1, eps=0.0, cudnn_enabled=false) : f32[1,2,3,3]\n"
      "output y = y\n",
      "input x : f32[1,2,3,3]\nconst w : f32[2,2,1,1] {1.0, 2.0, 3.0, 4.0}\nconst b : f32[2] {0.5, -0.5}\n"
      "const g : f32[2] {2.0, 1.0}\n"
      "const h : f32[2] {0.25, 1.0}\nconst m : f32[2] {1.0, -1.0}\nconst v : f32[2] {4.0, 0.25}\n"
      "const %8 : f64[] wrapped {0.0}\nconst %9 : f32[2] {4.0, 0.25}\nconst %10 : f32[2] {0.5, 2.0}\n"
      "const %11 : f32[2] {1.0, 2.0}\n"
      "const %12 : f32[2,1,1,1] {1.0, 2.0}\nconst w.folded : f32[2,2,1,1] {1.0, 2.0, 6.0, 8.0}\n"
      "const %14 : f32[2] {-0.5, 0.5}\n"
      "const %15 : f32[2] {-0.5, 1.0}\nconst b.folded : f32[2] {-0.25, 2.0}\n"
      "y = aten.conv2d.default(input=x, weight=w.folded, bias=b.folded) : f32[1,2,3,3]\noutput y = y\n" },
    { "a folded constant leaves its name to a value that has it", PASS(CONSTANTS), 0,
      "input x : f32[2]\nconst w : f32[2] {1.0, 2.0}\nn = aten.neg.default(self=w) : f32[2]\n"
      "input w.folded : f32[2]\n%5 = aten.mul.Tensor(self=x, other=n) : f32[2]\n"
      "y = aten.add.Tensor(self=%5, other=w.folded) : f32[2]\noutput y = y\n",
      "input x : f32[2]\nconst w : f32[2] {1.0, 2.0}\nconst n : f32[2] {-1.0, -2.0}\n"
      "input w.folded : f32[2]\n%5 = aten.mul.Tensor(self=x, other=n) : f32[2]\n"
      "y = aten.add.Tensor(self=%5, other=w.folded) : f32[2]\noutput y = y\n" },
    { "batch norm of a convolution that is an output stays", PASS(BATCH_NORM), 0,
      "input x : f32[1,1,2,2]\nconst w : f32[1,1,1,1] {1.0}\nconst v : f32[1] {4.0}\n"
      "c = aten.conv2d.default(input=x, weight=w) : f32[1,1,2,2]\n"
      "n = aten.batch_norm.default(input=c, weight=none, bias=none, running_mean=v, running_var=v, training=false, momentum=0.1, eps=0.0, cudnn_enabled=false) : f32[1,1,2,2]\n"
      "output n = n\noutput c = c\n", NULL },
    { "the spelling of RMS norm", PASS(RMS_NORM), 1e-5,
      "input x : f32[2,8]\ninput w : f32[8]\n%3 = aten.pow.Tensor_Scalar(self=x, exponent=2) : f32[2,8]\n"
      "%4 = aten.mean.dim(self=%3, dim=[-1], keepdim=true) : f32[2,1]\n"
      "%5 = aten.add.Scalar(self=%4, other=1e-06) : f32[2,1]\n"
      "%6 = aten.rsqrt.default(self=%5) : f32[2,1]\n%7 = aten.mul.Tensor(self=x, other=%6) : f32[2,8]\n"
      "y = aten.mul.Tensor(self=w, other=%7) : f32[2,8]\noutput y = y\n",
      "input x : f32[2,8]\ninput w : f32[8]\n"
      "y = aten.rms_norm.default(input=x, normalized_shape=[8], weight=w, eps=1e-06) : f32[2,8]\noutput y = y\n" },
    { "a mean over another dim is no RMS norm", PASS(RMS_NORM), 0,
      "input x : f32[8,8]\ninput w : f32[8]\n%3 = aten.pow.Tensor_Scalar(self=x, exponent=2) : f32[8,8]\n"
      "%4 = aten.mean.dim(self=%3, dim=[0], keepdim=true) : f32[1,8]\n"
      "%5 = aten.add.Scalar(self=%4, other=1e-06) : f32[1,8]\n"
      "%6 = aten.rsqrt.default(self=%5) : f32[1,8]\n%7 = aten.mul.Tensor(self=x, other=%6) : f32[8,8]\n"
      "y = aten.mul.Tensor(self=w, other=%7) : f32[8,8]\noutput y = y\n", NULL },
    { "the spelling of layer norm", PASS(LAYER_NORM), 1e-5,
      "input x : f32[2,8]\ninput w : f32[8]\ninput b : f32[8]\n"
      "%4 = aten.mean.dim(self=x, dim=[-1], keepdim=true) : f32[2,1]\n%5 = aten.sub.Tensor(self=x, other=%4) : f32[2,8]\n"
      "%6 = aten.pow.Tensor_Scalar(self=%5, exponent=2) : f32[2,8]\n"
      "%7 = aten.mean.dim(self=%6, dim=[-1], keepdim=true) : f32[2,1]\n"
      "%8 = aten.add.Scalar(self=%7, other=2e-05) : f32[2,1]\n%9 = aten.sqrt.default(self=%8) : f32[2,1]\n"
      "%10 = aten.div.Tensor(self=%5, other=%9) : f32[2,8]\n%11 = aten.mul.Tensor(self=%10, other=w) : f32[2,8]\n"
      "y = aten.add.Tensor(self=%11, other=b) : f32[2,8]\noutput y = y\n",
      "input x : f32[2,8]\ninput w : f32[8]\ninput b : f32[8]\n"
      "y = aten.layer_norm.default(input=x, normalized_shape=[8], weight=w, bias=b, eps=2e-05) : f32[2,8]\noutput y = y\n" },
    { "the spelling of gelu", PASS(GELU), 1e-5,
      "input x : f32[2,8]\n%2 = aten.div.Scalar(self=x, other=1.4142135) : f32[2,8]\n"
      "%3 = aten.erf.default(self=%2) : f32[2,8]\n%4 = aten.add.Scalar(self=%3, other=1) : f32[2,8]\n"
      "%5 = aten.mul.Tensor(self=x, other=%4) : f32[2,8]\ny = aten.mul.Scalar(self=%5, other=0.5) : f32[2,8]\noutput y = y\n",
      "input x : f32[2,8]\ny = aten.gelu.default(self=x) : f32[2,8]\noutput y = y\n" },
    { "zeros before a convolution", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 2, 2]) : f32[1,2,10,9]\n"
      "y = aten.conv2d.default(input=p, weight=w) : f32[1,3,8,7]\noutput y = y\n", 
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "y = aten.conv2d.default(input=x, weight=w, padding=[2, 1]) : f32[1,3,8,7]\noutput y = y\n" },
    { "a softmax but where all are -infinity, spelt out", PASS(SAFE_SOFTMAX), 0,
      "input x : f32[2,3,5]\n"
      "%2 = aten._softmax.default(self=x, dim=-1, half_to_float=false) : f32[2,3,5]\n"
      "%3 = aten.eq.Scalar(self=x, other=-inf) : bool[2,3,5]\n"
      "%4 = aten.logical_not.default(self=%3) : bool[2,3,5]\n"
      "%5 = aten.any.dim(self=%4, dim=2, keepdim=true) : bool[2,3,1]\n"
      "%6 = aten.logical_not.default(self=%5) : bool[2,3,1]\n"
      "%7 = aten.full_like.default(self=%2, fill_value=0) : f32[2,3,5]\n"
      "y = aten.where.self(condition=%6, self=%7, other=%2) : f32[2,3,5]\noutput y = y\n",
      "input x : f32[2,3,5]\n"
      "y = aten._safe_softmax.default(self=x, dim=-1) : f32[2,3,5]\noutput y = y\n" },
    { "the same along another dim", PASS(SAFE_SOFTMAX), 0,
      "input x : f32[2,3,5]\n"
      "%2 = aten._softmax.default(self=x, dim=-1, half_to_float=false) : f32[2,3,5]\n"
      "%3 = aten.eq.Scalar(self=x, other=-inf) : bool[2,3,5]\n"
      "%4 = aten.logical_not.default(self=%3) : bool[2,3,5]\n"
      "%5 = aten.any.dim(self=%4, dim=1, keepdim=true) : bool[2,1,5]\n"
      "%6 = aten.logical_not.default(self=%5) : bool[2,1,5]\n"
      "%7 = aten.full_like.default(self=%2, fill_value=0) : f32[2,3,5]\n"
      "y = aten.where.self(condition=%6, self=%7, other=%2) : f32[2,3,5]\noutput y = y\n",
      NULL },
    { "the same of a scalar, which has no dim to choose along", PASS(SAFE_SOFTMAX), 0,
      "input x : f32[]\n"
      "%2 = aten._softmax.default(self=x, dim=-1, half_to_float=false) : f32[]\n"
      "%3 = aten.eq.Scalar(self=x, other=-inf) : bool[]\n"
      "%4 = aten.logical_not.default(self=%3) : bool[]\n"
      "%5 = aten.any.dim(self=%4, dim=0, keepdim=true) : bool[]\n"
      "%6 = aten.logical_not.default(self=%5) : bool[]\n"
      "%7 = aten.full_like.default(self=%2, fill_value=0) : f32[]\n"
      "y = aten.where.self(condition=%6, self=%7, other=%2) : f32[]\noutput y = y\n",
      NULL },
    { "the same of another number than 0", PASS(SAFE_SOFTMAX), 0,
      "input x : f32[2,3,5]\n"
      "%2 = aten._softmax.default(self=x, dim=-1, half_to_float=false) : f32[2,3,5]\n"
      "%3 = aten.eq.Scalar(self=x, other=-inf) : bool[2,3,5]\n"
      "%4 = aten.logical_not.default(self=%3) : bool[2,3,5]\n"
      "%5 = aten.any.dim(self=%4, dim=2, keepdim=true) : bool[2,3,1]\n"
      "%6 = aten.logical_not.default(self=%5) : bool[2,3,1]\n"
      "%7 = aten.full_like.default(self=%2, fill_value=1) : f32[2,3,5]\n"
      "y = aten.where.self(condition=%6, self=%7, other=%2) : f32[2,3,5]\noutput y = y\n",
      NULL },
    { "the same where all are infinity", PASS(SAFE_SOFTMAX), 0,
      "input x : f32[2,3,5]\n"
      "%2 = aten._softmax.default(self=x, dim=-1, half_to_float=false) : f32[2,3,5]\n"
      "%3 = aten.eq.Scalar(self=x, other=inf) : bool[2,3,5]\n"
      "%4 = aten.logical_not.default(self=%3) : bool[2,3,5]\n"
      "%5 = aten.any.dim(self=%4, dim=2, keepdim=true) : bool[2,3,1]\n"
      "%6 = aten.logical_not.default(self=%5) : bool[2,3,1]\n"
      "%7 = aten.full_like.default(self=%2, fill_value=0) : f32[2,3,5]\n"
      "y = aten.where.self(condition=%6, self=%7, other=%2) : f32[2,3,5]\noutput y = y\n",
      NULL },
    { "a product with a matrix turned around", PASS(LINEAR), 0,
      "input x : f32[7,33]\ninput w : f32[20,33]\n"
      "t = aten.transpose.int(self=w, dim0=0, dim1=1) : f32[33,20]\ny = aten.mm.default(self=x, mat2=t) : f32[7,20]\noutput y = y\n",
      "input x : f32[7,33]\ninput w : f32[20,33]\n"
      "y = aten.linear.default(input=x, weight=w) : f32[7,20]\noutput y = y\n" },
    { "the same of rows in batches, and one row", PASS(LINEAR), 1e-5,
      "input x : f32[2,3,33]\ninput z : f32[1,33]\ninput w : f32[20,33]\n"
      "t = aten.permute.default(self=w, dims=[1, 0]) : f32[33,20]\n"
      "y = aten.matmul.default(self=x, other=t) : f32[2,3,20]\nv = aten.mm.default(self=z, mat2=t) : f32[1,20]\n"
      "output y = y\noutput v = v\n",
      "input x : f32[2,3,33]\ninput z : f32[1,33]\ninput w : f32[20,33]\n"
      "y = aten.linear.default(input=x, weight=w) : f32[2,3,20]\nv = aten.linear.default(input=z, weight=w) : f32[1,20]\n"
      "output y = y\noutput v = v\n" },
    { "a bias and a product with a matrix turned around", PASS(LINEAR), 0,
      "input x : f32[70,33]\ninput w : f32[40,33]\ninput b : f32[40]\n"
      "t = aten.t.default(self=w) : f32[33,40]\ny = aten.addmm.default(self=b, mat1=x, mat2=t) : f32[70,40]\noutput y = y\n",
      "input x : f32[70,33]\ninput w : f32[40,33]\ninput b : f32[40]\n"
      "y = aten.linear.default(input=x, weight=w, bias=b) : f32[70,40]\noutput y = y\n" },
    { "the same of half floats", PASS(LINEAR), 0,
      "input x : bf16[9,33]\ninput w : bf16[20,33]\ninput b : bf16[20]\n"
      "t = aten.t.default(self=w) : bf16[33,20]\ny = aten.addmm.default(self=b, mat1=x, mat2=t) : bf16[9,20]\noutput y = y\n",
      "input x : bf16[9,33]\ninput w : bf16[20,33]\ninput b : bf16[20]\n"
      "y = aten.linear.default(input=x, weight=w, bias=b) : bf16[9,20]\noutput y = y\n" },
    { "a sum of rows, scaled, and a product", PASS(LINEAR), 0,
      "input x : f32[7,33]\ninput w : f32[20,33]\ninput b : f32[20]\ninput c : f32[7,1]\n"
      "t = aten.t.default(self=w) : f32[33,20]\n"
      "y = aten.addmm.default(self=b, mat1=x, mat2=t, beta=2) : f32[7,20]\nv = aten.addmm.default(self=c, mat1=x, mat2=t) : f32[7,20]\n"
      "output y = y\noutput v = v\n", NULL },
    { "products of a matrix that lies as it is, and of one that stays as it is", PASS(LINEAR), 0,
      "input x : f32[20,20]\ninput w : f32[20,20]\n"
      "t = aten.permute.default(self=w, dims=[0, 1]) : f32[20,20]\n"
      "y = aten.mm.default(self=x, mat2=w) : f32[20,20]\nv = aten.mm.default(self=x, mat2=t) : f32[20,20]\n"
      "output y = y\noutput v = v\n", NULL },
    { "a max pool whose indices nobody reads", PASS(POOL), 0,
      "input x : f32[1,2,8,9]\n"
      "y, i = aten.max_pool2d_with_indices.default(self=x, kernel_size=[3, 2], padding=[1, 0], ceil_mode=true) : f32[1,2,3,5], i64[1,2,3,5]\n"
      "output y = y\n",
      "input x : f32[1,2,8,9]\n"
      "y = aten.max_pool2d.default(self=x, kernel_size=[3, 2], padding=[1, 0], ceil_mode=true) : f32[1,2,3,5]\noutput y = y\n" },
    { "a max pool whose indices are read", PASS(POOL), 0,
      "input x : f32[2,2,9]\n"
      "y, i = aten.max_pool1d_with_indices.default(self=x, kernel_size=[3]) : f32[2,2,3], i64[2,2,3]\n"
      "output y = y\noutput i = i\n", NULL },
    { "zeros before a convolution that pads, too", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 2, 2]) : f32[1,2,10,9]\n"
      "y = aten.conv2d.default(input=p, weight=w, padding=[1, 0]) : f32[1,3,10,7]\noutput y = y\n", 
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "y = aten.conv2d.default(input=x, weight=w, padding=[3, 1]) : f32[1,3,10,7]\noutput y = y\n" },
    { "zeros before an average pool", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[2, 2, 1, 1]) : f32[1,2,8,11]\n"
      "y = aten.avg_pool2d.default(self=p, kernel_size=[3, 5], stride=[1, 1]) : f32[1,2,6,7]\noutput y = y\n", 
      "input x : f32[1,2,6,7]\n"
      "y = aten.avg_pool2d.default(self=x, kernel_size=[3, 5], stride=[1, 1], padding=[1, 2]) : f32[1,2,6,7]\noutput y = y\n" },
    { "zeros before a convolution of any kind", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 2, 2]) : f32[1,2,10,9]\n"
      "y = aten.convolution.default(input=p, weight=w, bias=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1) : f32[1,3,8,7]\noutput y = y\n", 
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "y = aten.convolution.default(input=x, weight=w, bias=none, stride=[1, 1], padding=[2, 1], dilation=[1, 1], transposed=false, output_padding=[0, 0], groups=1) : f32[1,3,8,7]\noutput y = y\n" },
    { "zeros before a transposed convolution", PASS(PAD), 1e-5,
      "input x : f32[1,3,4,5]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 1, 1]) : f32[1,3,6,7]\n"
      "y = aten.convolution.default(input=p, weight=w, bias=none, stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=true, output_padding=[0, 0], groups=1) : f32[1,2,8,9]\noutput y = y\n", NULL },
    { "zeros before an average pool of lines", PASS(PAD), 1e-5,
      "input x : f32[1,2,6]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1]) : f32[1,2,8]\n"
      "y = aten.avg_pool1d.default(self=p, kernel_size=[3], stride=[1]) : f32[1,2,6]\noutput y = y\n", 
      "input x : f32[1,2,6]\n"
      "y = aten.avg_pool1d.default(self=x, kernel_size=[3], stride=[1], padding=[1]) : f32[1,2,6]\noutput y = y\n" },
    { "ones before a convolution", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 2, 2], value=1) : f32[1,2,10,9]\n"
      "y = aten.conv2d.default(input=p, weight=w) : f32[1,3,8,7]\noutput y = y\n", NULL },
    { "zeros after an image alone", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[0, 1, 0, 1]) : f32[1,2,7,8]\n"
      "y = aten.conv2d.default(input=p, weight=w) : f32[1,3,5,6]\noutput y = y\n", NULL },
    { "more zeros than an average pool may pad", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 2, 2]) : f32[1,2,10,9]\n"
      "y = aten.avg_pool2d.default(self=p, kernel_size=[3, 5], stride=[1, 1]) : f32[1,2,8,5]\noutput y = y\n", NULL },
    { "zeros before an average pool that leaves its own out", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1, 1, 1]) : f32[1,2,8,9]\n"
      "y = aten.avg_pool2d.default(self=p, kernel_size=[3, 5], stride=[1, 1], padding=[0, 1], count_include_pad=false) : f32[1,2,6,7]\noutput y = y\n", NULL },
    { "zeros around the channels", PASS(PAD), 1e-5,
      "input x : f32[1,2,6,7]\ninput w : f32[3,4,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[0, 0, 0, 0, 1, 1]) : f32[1,4,6,7]\n"
      "y = aten.conv2d.default(input=p, weight=w) : f32[1,3,4,5]\noutput y = y\n", NULL },
    { "zeros around a single image", PASS(PAD), 1e-5,
      "input x : f32[2,6,7]\ninput w : f32[3,2,3,3]\n"
      "p = aten.constant_pad_nd.default(self=x, pad=[1, 1]) : f32[2,6,9]\n"
      "y = aten.conv2d.default(input=p, weight=w) : f32[3,4,7]\noutput y = y\n", NULL },
    { "einsum of matrices, the second one transposed", PASS(EINSUM), 1e-5,
      "input a : f32[2,3,4,8]\ninput b : f32[2,3,5,8]\n"
      "y = aten.einsum.default(equation='bhid,bhjd->bhij', tensors=[a, b]) : f32[2,3,4,5]\noutput y = y\n",
      "input a : f32[2,3,4,8]\ninput b : f32[2,3,5,8]\n"
      "%3 = aten.transpose.int(self=b, dim0=-2, dim1=-1) : f32[2,3,8,5]\n"
      "y = aten.matmul.default(self=a, other=%3) : f32[2,3,4,5]\noutput y = y\n" },
    { "einsum of matrices the other way round, with dots", PASS(EINSUM), 1e-5,
      "input a : f32[2,8,5]\ninput b : f32[2,4,8]\n"
      "y = aten.einsum.default(equation='...dj, ...id -> ...ij', tensors=[a, b]) : f32[2,4,5]\noutput y = y\n",
      "input a : f32[2,8,5]\ninput b : f32[2,4,8]\n"
      "y = aten.matmul.default(self=b, other=a) : f32[2,4,5]\noutput y = y\n" },
    { "einsum of columns", PASS(EINSUM), 0,
      "input a : f32[2,8,4]\ninput b : f32[2,8,5]\n"
      "y = aten.einsum.default(equation='bci,bcj->bij', tensors=[a, b]) : f32[2,4,5]\noutput y = y\n", NULL },
    { "einsum of batches in another order", PASS(EINSUM), 0,
      "input a : f32[2,3,4,8]\ninput b : f32[3,2,8,5]\n"
      "y = aten.einsum.default(equation='abid,badj->abij', tensors=[a, b]) : f32[2,3,4,5]\noutput y = y\n", NULL },
    { "einsum of a diagonal", PASS(EINSUM), 0,
      "input a : f32[4,4]\ninput b : f32[4,5]\n"
      "y = aten.einsum.default(equation='ii,ij->ij', tensors=[a, b]) : f32[4,5]\noutput y = y\n", NULL },
    { "einsum of matrices that one batch has alone", PASS(EINSUM), 0,
      "input a : f32[2,4,8]\ninput b : f32[8,5]\n"
      "y = aten.einsum.default(equation='bid,dj->bij', tensors=[a, b]) : f32[2,4,5]\noutput y = y\n", NULL },
    { "silu gate", PASS(SILU_GATE), 0,
      "input g : f32[2,8]\ninput u : f32[2,8]\ns = aten.silu.default(self=g) : f32[2,8]\n"
      "v = aten.exp.default(self=u) : f32[2,8]\n"
      "y = aten.mul.Tensor(self=s, other=v) : f32[2,8]\noutput y = y\n",
      "child silu_gate scalar\n  input x0 : scalar f32[]\n  %2 = aten.silu.default(self=x0) : scalar f32[]\n"
      "  input x1 : scalar f32[]\n"
      "  %4 = aten.mul.Tensor(self=%2, other=x1) : scalar f32[]\n  output y0 = %4\nend\n"
      "input g : f32[2,8]\ninput u : f32[2,8]\nv = aten.exp.default(self=u) : f32[2,8]\n"
      "y = npu.fused(inputs=[g, v], body=graph 0) : f32[2,8]\noutput y = y\n" },
    { "a silu that another op reads is no gate", PASS(SILU_GATE), 0,
      "input g : f32[8]\ns = aten.silu.default(self=g) : f32[8]\nv = aten.exp.default(self=s) : f32[8]\n"
      "y = aten.mul.Tensor(self=s, other=v) : f32[8]\noutput y = y\n", NULL },
    { "attention with a mask", PASS(ATTENTION), 1e-5,
      "input q : f32[1,2,4,8]\ninput k : f32[1,2,6,8]\ninput v : f32[1,2,6,8]\ninput m : f32[4,6]\n"
      "%5 = aten.transpose.int(self=k, dim0=-2, dim1=-1) : f32[1,2,8,6]\n"
      "%6 = aten.matmul.default(self=q, other=%5) : f32[1,2,4,6]\n"
      "%7 = aten.div.Scalar(self=%6, other=4) : f32[1,2,4,6]\n"
      "%8 = aten.add.Tensor(self=%7, other=m) : f32[1,2,4,6]\n"
      "%9 = aten.softmax.int(self=%8, dim=-1) : f32[1,2,4,6]\n"
      "y = aten.matmul.default(self=%9, other=v) : f32[1,2,4,8]\noutput y = y\n",
      "input q : f32[1,2,4,8]\ninput k : f32[1,2,6,8]\ninput v : f32[1,2,6,8]\ninput m : f32[4,6]\n"
      "y = aten.scaled_dot_product_attention.default(query=q, key=k, value=v, attn_mask=m, scale=0.25) : f32[1,2,4,8]\n"
      "output y = y\n" },
    { "attention of batches of matrices, its scores an output", PASS(ATTENTION), 0,
      "input q : f32[2,4,8]\ninput k : f32[2,6,8]\n"
      "%3 = aten.transpose.int(self=k, dim0=1, dim1=2) : f32[2,8,6]\n"
      "%4 = aten.bmm.default(self=q, mat2=%3) : f32[2,4,6]\ns = aten.softmax.int(self=%4, dim=2) : f32[2,4,6]\n"
      "y = aten.bmm.default(self=s, mat2=k) : f32[2,4,8]\noutput y = y\noutput s = s\n", NULL },
    { "aicf to aten", PASS(AICF_TO_ATEN), 1e-6,
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "%4 = aicf.gemm_epilogue(a=x, b=w, bias=b, transB=true) : f32[2,4]\n"
      "%5 = aicf.add(a=%4, c=%4) : f32[2,4]\n"
      "y = aicf.softmax(x=%5) : f32[2,4]\noutput y = y\n",
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "%4 = aten.linear.default(input=x, weight=w, bias=b) : f32[2,4]\n"
      "%5 = aten.relu.default(self=%4) : f32[2,4]\n"
      "%6 = aten.add.Tensor(self=%5, other=%5) : f32[2,4]\ny = aten.softmax.int(self=%6, dim=-1) : f32[2,4]\n"
      "output y = y\n" },
    { "training kinds to aten", PASS(AICF_TO_ATEN), 1e-5,
      "input p : f32[4,3]\ninput g : f32[4,3]\ninput w : f32[3]\n"
      "s = aicf.sgd_step(p=p, g=g, lr=0.5) : f32[4,3]\n"
      "n, m, r = aicf.layernorm_fwd(x=s, gamma=w, beta=w) : f32[4,3], f32[4], f32[4]\n"
      "t = aicf.reduce_sum(x=n, axis=0) : f32[3]\n"
      "z = aicf.grad_zero(g=t) : f32[3]\noutput t = t\noutput z = z\n",
      "input p : f32[4,3]\ninput g : f32[4,3]\ninput w : f32[3]\n"
      "s = aten.sub.Tensor(self=p, other=g, alpha=0.5) : f32[4,3]\n"
      "n = aten.layer_norm.default(input=s, normalized_shape=[3], weight=w, bias=w) : f32[4,3]\n"
      "t = aten.sum.dim_IntList(self=n, dim=[0]) : f32[3]\nz = aten.zeros_like.default(self=t) : f32[3]\n"
      "output t = t\noutput z = z\n" },
    { "a step has the bits of the difference that stands for it", PASS(AICF_TO_ATEN), 0, /* no product is contracted */
      "input p : f32[64,5]\ninput g : f32[64,5]\ny = aicf.sgd_step(p=p, g=g, lr=0.3) : f32[64,5]\noutput y = y\n",
      "input p : f32[64,5]\ninput g : f32[64,5]\n"
      "y = aten.sub.Tensor(self=p, other=g, alpha=0.3) : f32[64,5]\noutput y = y\n" },
    { "a norm whose mean is needed stays aicf", PASS(AICF_TO_ATEN), 0,
      "input x : f32[4,3]\n"
      "n, m, r = aicf.layernorm_fwd(x=x, gamma=none, beta=none) : f32[4,3], f32[4], f32[4]\noutput n = n\n"
      "output m = m\n", NULL },
    { "aten to aicf, then the epilogue", PASS(ATEN_TO_AICF) | PASS(GEMM), 1e-6,
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "%4 = aten.linear.default(input=x, weight=w, bias=b) : f32[2,4]\n"
      "%5 = aten.relu.default(self=%4) : f32[2,4]\n"
      "%6 = aten.add.Tensor(self=%5, other=%5, alpha=2) : f32[2,4]\n"
      "y = aten.softmax.int(self=%6, dim=1) : f32[2,4]\noutput y = y\n",
      "input x : f32[2,3]\ninput w : f32[4,3]\ninput b : f32[4]\n"
      "%4 = aicf.gemm_epilogue(a=x, b=w, bias=b, transB=true) : f32[2,4]\n"
      "%5 = aten.add.Tensor(self=%4, other=%4, alpha=2) : f32[2,4]\ny = aicf.softmax(x=%5) : f32[2,4]\n"
      "output y = y\n" },
    { "complex numbers stay aten", PASS(ATEN_TO_AICF), 0,
      "input x : c64[2]\ny = aten.add.Tensor(self=x, other=x) : c64[2]\noutput y = y\n", NULL },
    { "convolution and activation", PASS(CONV_ACTIVATION), 0,
      "input x : f32[1,2,5,5]\ninput w : f32[3,2,3,3]\ninput b : f32[3]\n"
      "%4 = aten.conv2d.default(input=x, weight=w, bias=b) : f32[1,3,3,3]\n"
      "y = aten.leaky_relu.default(self=%4, negative_slope=0.5) : f32[1,3,3,3]\noutput y = y\n",
      "child conv_leaky_relu\n  input x0 : f32[1,2,5,5]\n  input x1 : f32[3,2,3,3]\n  input x2 : f32[3]\n"
      "  %4 = aten.conv2d.default(input=x0, weight=x1, bias=x2) : f32[1,3,3,3]\n"
      "  %5 = aten.leaky_relu.default(self=%4, negative_slope=0.5) : f32[1,3,3,3]\n  output y0 = %5\nend\n"
      "input x : f32[1,2,5,5]\ninput w : f32[3,2,3,3]\ninput b : f32[3]\n"
      "y = npu.call(args=[x, w, b], body=graph 0) : f32[1,3,3,3]\n"
      "output y = y\n" },
    { "convolution, sum and activation", PASS(CONV_ACTIVATION), 0,
      "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\n"
      "%3 = aten.conv2d.default(input=x, weight=w) : f32[1,2,5,5]\n"
      "%4 = aten.neg.default(self=x) : f32[1,2,5,5]\n"
      "%5 = aten.add.Tensor(self=%4, other=%3) : f32[1,2,5,5]\n"
      "y = aten.relu.default(self=%5) : f32[1,2,5,5]\noutput y = y\n",
      "child conv_add_relu\n  input x0 : f32[1,2,5,5]\n  input x1 : f32[2,2,1,1]\n"
      "  %3 = aten.conv2d.default(input=x0, weight=x1) : f32[1,2,5,5]\n  input x2 : f32[1,2,5,5]\n"
      "  %5 = aten.add.Tensor(self=x2, other=%3) : f32[1,2,5,5]\n"
      "  %6 = aten.relu.default(self=%5) : f32[1,2,5,5]\n  output y0 = %6\nend\n"
      "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\n%3 = aten.neg.default(self=x) : f32[1,2,5,5]\n"
      "y = npu.call(args=[x, w, %3], body=graph 0) : f32[1,2,5,5]\noutput y = y\n" },
    { "a convolution with two users stays", PASS(CONV_ACTIVATION), 0,
      "input x : f32[1,2,5,5]\ninput w : f32[3,2,3,3]\n"
      "c = aten.conv2d.default(input=x, weight=w) : f32[1,3,3,3]\n"
      "y = aten.relu.default(self=c) : f32[1,3,3,3]\nz = aten.neg.default(self=c) : f32[1,3,3,3]\n"
      "output y = y\noutput z = z\n", NULL },
    { "sum and layer norm, the sum needed later", PASS(ADD_NORM), 0,
      "input a : f32[4,8]\ninput b : f32[4,8]\ns = aten.add.Tensor(self=a, other=b) : f32[4,8]\n"
      "n = aten.layer_norm.default(input=s, normalized_shape=[8]) : f32[4,8]\n"
      "t = aten.add.Tensor(self=s, other=n) : f32[4,8]\noutput t = t\n",
      "child add_layer_norm\n  input x0 : f32[4,8]\n  input x1 : f32[4,8]\n"
      "  %3 = aten.add.Tensor(self=x0, other=x1) : f32[4,8]\n"
      "  %4 = aten.layer_norm.default(input=%3, normalized_shape=[8]) : f32[4,8]\n  output y0 = %4\n"
      "  output y1 = %3\nend\n"
      "input a : f32[4,8]\ninput b : f32[4,8]\n"
      "n, %4 = npu.call(args=[a, b], body=graph 0) : f32[4,8], f32[4,8]\n"
      "t = aten.add.Tensor(self=%4, other=n) : f32[4,8]\noutput t = t\n" },
    { "a sum that is needed earlier stays", PASS(ADD_NORM), 0,
      "input a : f32[4,8]\ninput b : f32[4,8]\ns = aten.add.Tensor(self=a, other=b) : f32[4,8]\n"
      "e = aten.exp.default(self=s) : f32[4,8]\n"
      "n = aten.layer_norm.default(input=s, normalized_shape=[8]) : f32[4,8]\noutput e = e\noutput n = n\n", NULL },
    { "a call becomes the ops of its body", PASS(INLINE), 0,
      "child twice\n  input x : f32[3]\n  const c : f32[3] {1.0, 2.0, 3.0}\n"
      "  y = aten.add.Tensor(self=x, other=c) : f32[3]\n"
      "  z = aten.mul.Tensor(self=y, other=y) : f32[3]\n  output a = y\n  output b = z\nend\n"
      "input v : f32[3]\np, q = npu.call(args=[v], body=graph 0) : f32[3], f32[3]\n"
      "r, s = npu.call(args=[q], body=graph 0) : f32[3], f32[3]\noutput p = p\noutput r = r\noutput s = s\n",
      "child twice\n  input x : f32[3]\n  const c : f32[3] {1.0, 2.0, 3.0}\n"
      "  y = aten.add.Tensor(self=x, other=c) : f32[3]\n"
      "  z = aten.mul.Tensor(self=y, other=y) : f32[3]\n  output a = y\n  output b = z\nend\n"
      "input v : f32[3]\nconst %2 : f32[3] {1.0, 2.0, 3.0}\np = aten.add.Tensor(self=v, other=%2) : f32[3]\n"
      "q = aten.mul.Tensor(self=p, other=p) : f32[3]\nconst %5 : f32[3] {1.0, 2.0, 3.0}\n"
      "r = aten.add.Tensor(self=q, other=%5) : f32[3]\ns = aten.mul.Tensor(self=r, other=r) : f32[3]\n"
      "output p = p\noutput r = r\noutput s = s\n" },
};

/* With both texts and numbers: the new graph gives what the old one gave. */
static void check_numbers(const char *name, const npu_graph *a, const npu_graph *b, double tolerance)
{
    const npu_backend *cpu = npu_ref_backend();
    setting s = { &cpu, 1, NULL, false };
    uint8_t *x, *y;
    size_t num_x, num_y;
    if (tolerance == 0) {
        check_same_bits(name, a, b, &s);
        return;
    }
    num_x = run_graph(a, &s, &x);
    num_y = run_graph(b, &s, &y);
    NPU_CHECK_EQ(num_x, num_y);
    for (size_t i = 0; i + sizeof(float) <= num_x && num_x == num_y; i += sizeof(float)) {
        float old, now;
        memcpy(&old, x + i, sizeof old);
        memcpy(&now, y + i, sizeof now);
        NPU_CHECK_NEAR(now, old, tolerance * (1 + fabs((double)old)));
    }
    free(x);
    free(y);
}

static void check_pass(size_t i)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { 0 };
    npu_pass_options options = { 0 };
    npu_graph *before, *after = NULL;
    npu_diag diag = { 0 };
    npu_text text = npu_text_init(NULL), expected = npu_text_init(NULL);
    npu_text_printf(&text, "npu_ir 1\ngraph main\n%s", rows[i].before);
    npu_text_printf(&expected, "npu_ir 1\ngraph main\n%s", rows[i].after ? rows[i].after : rows[i].before);
    before = parse(text.data, NPU_OK);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.passes = rows[i].passes;
    options.validate = true;
    NPU_CHECK_STATUS(npu_graph_optimize(&after, before, &desc, &options, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    text.len = 0;
    NPU_CHECK_STATUS(npu_graph_print(after, &text), NPU_OK);
    if (strcmp(text.data, expected.data) != 0) {
        NPU_CHECK_STR(rows[i].name, "");
        NPU_CHECK_STR(text.data, expected.data);
    }
    if (before && after) {
        check_numbers(rows[i].name, before, after, rows[i].tolerance);
    }
    npu_graph_destroy(before);
    npu_graph_destroy(after);
    npu_text_free(&text);
    npu_text_free(&expected);
}

/* A dim with a symbol may be 1 in a run, which then says that the squeeze was planned otherwise. */
static void test_squeeze_of_symbol(void)
{
    static const char *const sizes[] = { "n", "4" };
    for (uint32_t i = 0; i < 2; i++) {
        npu_optimize_desc desc = { .passes = PASS(NO_OPS) };
        npu_text text = npu_text_init(NULL);
        npu_graph *before, *after = NULL;
        npu_diag diag = { 0 };
        npu_text_printf(&text, "npu_ir 1\ngraph main\nsymbol n 0 9\ninput x : f32[%s,3]\n"
                               "y = aten.squeeze.default(x)\noutput y = y\n", sizes[i]);
        before = parse(text.data, NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&after, before, &desc, NULL, &diag), NPU_OK);
        NPU_CHECK_EQ(npu_graph_num_ops(after), i == 0);
        npu_graph_destroy(after);
        npu_graph_destroy(before);
        npu_text_free(&text);
    }
}

static void test_passes(void)
{
    NPU_ITEM("S2.62");
    NPU_ITEM("R1.22");
    NPU_ITEM("R2.20");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_pass(i);
    }
}

/* What a pass takes and what it leaves, condition by condition: the kinds of ops afterwards, and the same numbers. */
static void test_neighbours(void)
{
    static const struct { uint32_t passes; const char *before, *kinds; } near[] = {
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ny = aten.mm.default(x, w)",
          "aicf.gemm" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\ny = aten.addmm.default(b, x, w)",
          "aicf.gemm aicf.bias_add" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\ny = aten.addmm.default(b, x, w, beta=2)",
          "aten.addmm.default" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\ny = aten.addmm.default(b, x, w, alpha=2)",
          "aten.addmm.default" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[2,4]\ny = aten.addmm.default(b, x, w)",
          "aten.addmm.default" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[1]\ny = aten.addmm.default(b, x, w)",
          "aten.addmm.default" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput w : f32[4,3]\ny = aten.linear.default(x, w)",
          "aicf.gemm" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,2,3]\ninput w : f32[4,3]\ny = aten.linear.default(x, w)",
          "aten.linear.default" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ny = aten.softmax.int(x, -1)",
          "aicf.softmax" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ny = aten.softmax.int(x, 0)",
          "aten.softmax.int" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ny = aten.softmax.int(x, 1, f64)",
          "aten.softmax.int" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3,4]\ny = aten.softmax.int(x, -1)",
          "aten.softmax.int" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f32[3]\ny = aten.add.Tensor(x, b)",
          "aicf.bias_add" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f32[3]\ny = aten.add.Tensor(b, x)",
          "aten.add.Tensor" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f32[3]\ny = aten.add.Tensor(x, b, alpha=2)",
          "aten.add.Tensor" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f32[2,1]\ny = aten.add.Tensor(x, b)",
          "aten.add.Tensor" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f64[3]\ny = aten.add.Tensor(x, b)",
          "aten.add.Tensor" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[2,3]\ninput b : f32[1]\ny = aten.add.Tensor(x, b)",
          "aten.add.Tensor" },
        { PASS(ATEN_TO_AICF),
          "input x : f32[3]\ninput b : f32[1]\ny = aten.add.Tensor(x, b)",
          "aten.add.Tensor" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ny = aicf.copy(x)",
          "aten.clone.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[3,2]\ninput w : f32[3,4]\ny = aicf.gemm(x, w, transA=true)",
          "aten.transpose.int aten.mm.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ninput w : f32[4,3]\ny = aicf.gemm(x, w, transB=true)",
          "aten.linear.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\ny = aicf.gemm_epilogue(x, w, b)",
          "aten.transpose.int aten.linear.default aten.relu.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ninput w : f32[3,4]\ninput b : f32[4]\n"
          "y = aicf.gemm_epilogue(x, w, b, relu=false)",
          "aten.transpose.int aten.linear.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ninput b : f32[3]\ny = aicf.bias_add(x, b)",
          "aten.add.Tensor" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ny = aicf.softmax(x)",
          "aten.softmax.int" },
        { PASS(AICF_TO_ATEN),
          "input x : i32[]\ny = aicf.step_inc(x)",
          "aten.add.Scalar" },
        { PASS(AICF_TO_ATEN), /* the mean is an output */
          "input x : f32[2,3]\ninput w : f32[3]\nn, m, r = aicf.layernorm_fwd(x, w, w)\noutput m = m\n"
          "y = aten.neg.default(n)",
          "aicf.layernorm_fwd aten.neg.default" },
        { PASS(AICF_TO_ATEN),
          "input x : f32[2,3]\ninput w : f32[3]\nn, m, r = aicf.layernorm_fwd(x, w, w)\ny = aten.neg.default(n)",
          "aten.layer_norm.default aten.neg.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,3,3]\n"
          "c = aten.convolution.default(x, w, none, [1, 1], [0, 0], [1, 1], true, [0, 0], 1)\n"
          "y = aten.relu.default(c)",
          "aten.convolution.default aten.relu.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,3,3]\n"
          "c = aten.convolution.default(x, w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n"
          "y = aten.relu.default(c)",
          "npu.call" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5]\ninput w : f32[2,2,3]\nc = aten.conv1d.default(x, w)\ny = aten.relu.default(c)",
          "npu.call" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,4,4,4]\ninput w : f32[2,2,2,2,2]\nc = aten.conv3d.default(x, w)\n"
          "y = aten.relu.default(c)",
          "npu.call" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,3,3]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.sigmoid.default(c)\ny = aten.mul.Tensor(s, c)",
          "aten.conv2d.default aten.sigmoid.default aten.mul.Tensor" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,3,3]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.sigmoid.default(c)\ny = aten.mul.Tensor(c, s)",
          "aten.conv2d.default aten.sigmoid.default aten.mul.Tensor" },
        { PASS(CONV_ACTIVATION), /* what is between is an output */
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.add.Tensor(c, x)\noutput s = s\ny = aten.relu.default(s)",
          "npu.call aten.relu.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.add.Tensor(c, x, alpha=2)\ny = aten.relu.default(s)",
          "aten.conv2d.default aten.add.Tensor aten.relu.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\ninput k : f32[2,1,1]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.add.Tensor(c, k)\ny = aten.relu.default(s)",
          "aten.conv2d.default aten.add.Tensor aten.relu.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,1,1]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.add.Tensor(c, c)\ny = aten.relu.default(s)",
          "aten.conv2d.default aten.add.Tensor aten.relu.default" },
        { PASS(CONV_ACTIVATION),
          "input x : f32[1,2,5,5]\ninput w : f32[2,2,3,3]\nc = aten.conv2d.default(x, w)\n"
          "s = aten.sigmoid.default(c)\ny = aten.mul.Tensor(s, s)",
          "npu.call aten.mul.Tensor" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, true, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\nz = aten.abs.default(c)\noutput z = z\n"
          "n = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.conv2d.default aten.abs.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.relu.default(x)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.relu.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM), /* of an op with other results, of which none, one or another is read */
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\n"
          "n, s, i = aten._native_batch_norm_legit_no_training.default(c, m, m, m, m, 0.1, 1e-5)\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\n"
          "n, s, i = aten.native_batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5)\nz = aten.abs.default(s)\n"
          "output z = z\ny = aten.neg.default(n)",
          "aten.conv2d.default aten.native_batch_norm.default aten.abs.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\n"
          "n, s, i = aten.native_batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5)\noutput i = i\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.native_batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst m : f32[2] {1, 2}\n"
          "n = aten.batch_norm.default(x, m, m, m, m, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.batch_norm.default aten.neg.default" },
        { PASS(RMS_NORM), /* floats, of which halves are asked for */
          "input x : f32[2,8]\nconst w : f16[8] {1, 2, 3, 4, 5, 6, 7, 8}\n"
          "s = aten.pow.Tensor_Scalar(x, 2)\nm = aten.mean.dim(s, [-1], true)\na = aten.add.Scalar(m, 1e-6)\n"
          "r = aten.rsqrt.default(a)\nn = aten.mul.Tensor(x, r)\nc = aten._to_copy.default(n, dtype=f16)\n"
          "v = aten.mul.Tensor(c, w)\ny = aten.to.dtype(v, f32)",
          "aten.pow.Tensor_Scalar aten.mean.dim aten.add.Scalar aten.rsqrt.default aten.mul.Tensor "
          "aten._to_copy.default aten.mul.Tensor aten.to.dtype" },
        { PASS(COMMON), /* lists of other lengths, other attributes, other numbers of operands */
          "input x : f32[2,2]\na = aten.cat.default([x, x], 0)\nb = aten.cat.default([x, x], 0)\n"
          "c = aten.cat.default([x, x], 1)\nd = aten.cat.default([x, x, x], 0)\ne = aten.cat.default([a, b, d], 0)\n"
          "z = aten.flatten.using_ints(c)\noutput z = z\ny = aten.neg.default(e)",
          "aten.cat.default aten.cat.default aten.cat.default aten.cat.default aten.flatten.using_ints "
          "aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\ninput m : f32[2]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\n"
          "c = aten.conv2d.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.convolution.default(x, k, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n"
          "n = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.convolution.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.convolution.default(x, k, none, [1, 1], [0, 0], [1, 1], true, [0, 0], 1)\n"
          "n = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.convolution.default aten.neg.default" },
        /* groups: channels of results, and of operands, are dims of the weights in their own ways */
        { PASS(BATCH_NORM),
          "input x : f32[2,4,5]\n"
          "const k : f32[4,2,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, -4, 5, 6, 7, 8, 9, 1, -2, 3, 4, 5, 6}\n"
          "const b : f32[4] {3, 4, -1, 2}\nconst m : f32[4] {1, 2, -3, 4}\nconst v : f32[4] {1, 2, 3, 0.25}\n"
          "c = aten.conv_transpose1d.default(x, k, b, [2], [1], [1], 2)\n"
          "n = aten.batch_norm.default(c, v, m, b, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.conv_transpose1d.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[2,4,5]\n"
          "const k : f32[4,2,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, -4, 5, 6, 7, 8, 9, 1, -2, 3, 4, 5, 6}\n"
          "const b : f32[4] {3, 4, -1, 2}\nconst m : f32[4] {1, 2, -3, 4}\nconst v : f32[4] {1, 2, 3, 0.25}\n"
          "n = aten.batch_norm.default(x, v, m, b, v, false, 0.1, 1e-5, false)\n"
          "c = aten.conv1d.default(n, k, b, [2], [0], [2], 2)\ny = aten.neg.default(c)",
          "aten.conv1d.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[3,2]\nconst k : f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}\nconst b : f32[4] {3, 4, -1, 2}\n"
          "const m : f32[2] {1, 2}\nconst v : f32[4] {1, 2, 3, 0.25}\n"
          "const k2 : f32[4,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7}\n"
          "n = aten.batch_norm.default(x, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "c = aten.linear.default(n, k, b)\nr = aten.relu.default(c)\nl = aten.linear.default(r, k2)\n"
          "o, p, q = aten.native_batch_norm.default(l, v, b, b, v, false, 0.1, 1e-5)\ny = aten.neg.default(o)",
          "aten.linear.default aten.relu.default aten.linear.default aten.neg.default" },
        /* a row of weights for each of several rows: channels are not the last dim; one image: rows are its channels */
        { PASS(BATCH_NORM),
          "input x : f32[3,2,2]\nconst k : f32[2,2] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.linear.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.linear.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[2,2,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.neg.default(n)",
          "aten.conv2d.default aten.batch_norm.default aten.neg.default" },
        /* rows, taken apart for the norm: products with a matrix, turned around or not, become linears */
        { PASS(BATCH_NORM),
          "input x : f32[2,4,3]\nconst k : f32[2,3] {1, 2, 3, -4, 5, 6}\nconst b : f32[2] {3, 4}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.linear.default(x, k, b)\nf = aten.flatten.using_ints(c, 0, 1)\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.reshape.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[2,4,3]\nconst k : f32[3,2] {1, 2, 3, -4, 5, 6}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.matmul.default(x, k)\nf = aten.reshape.default(c, [8, 2])\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.reshape.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[8,3]\nconst k : f32[2,3] {1, 2, 3, -4, 5, 6}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "t = aten.t.default(k)\nc = aten.mm.default(x, t)\n"
          "e = aten._unsafe_view.default(c, [2, 4, 2])\nf = aten._reshape_alias.default(e, [8, 2], [2, 1])\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[8,3]\nconst k : f32[3,2] {1, 2, 3, -4, 5, 6}\nconst b : f32[2] {3, 4}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.addmm.default(b, x, k)\n"
          "n = aten.batch_norm.default(c, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.neg.default" },
        /* a view that mixes channels with rows; a bias that is no row of channels; a batch of matrices */
        { PASS(BATCH_NORM),
          "input x : f32[2,3]\nconst k : f32[4,3] {1, 2, 3, -4, 5, 6, 7, 8, 9, 1, 2, 3}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.linear.default(x, k)\nf = aten.reshape.default(c, [4, 2])\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.reshape.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[4,3]\nconst k : f32[3,2] {1, 2, 3, -4, 5, 6}\nconst b : f32[4,1] {3, 4, 5, 6}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.addmm.default(b, x, k)\n"
          "n = aten.batch_norm.default(c, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.addmm.default aten.batch_norm.default aten.neg.default" },
        { PASS(BATCH_NORM),
          "input x : f32[2,4,3]\nconst k : f32[2,3,2] {1, 2, 3, -4, 5, 6, 7, 8, 9, 1, 2, 3}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.matmul.default(x, k)\nf = aten.reshape.default(c, [8, 2])\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.matmul.default aten.reshape.default aten.batch_norm.default aten.neg.default" },
        /* what is taken apart has another reader */
        { PASS(BATCH_NORM),
          "input x : f32[2,4,3]\nconst k : f32[2,3] {1, 2, 3, -4, 5, 6}\n"
          "const g : f32[2] {1, -2}\nconst h : f32[2] {0.5, 3}\nconst m : f32[2] {1, 2}\nconst v : f32[2] {3, 0.25}\n"
          "c = aten.linear.default(x, k)\nf = aten.reshape.default(c, [8, 2])\noutput c = c\n"
          "n = aten.batch_norm.default(f, g, h, m, v, false, 0.1, 1e-5, false)\ny = aten.neg.default(n)",
          "aten.linear.default aten.reshape.default aten.batch_norm.default aten.neg.default" },
        /* padding is of zeros, not of what the norm makes of them; another reader */
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "n = aten.batch_norm.default(x, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.conv2d.default(n, k, none, [1,1], [0,1])",
          "aten.batch_norm.default aten.conv2d.default" },
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "n = aten.batch_norm.default(x, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "c = aten.conv2d.default(n, k)\ny = aten.add.Tensor(c, n)",
          "aten.batch_norm.default aten.conv2d.default aten.add.Tensor" },
        /* between two: the first one takes it */
        { PASS(BATCH_NORM),
          "input x : f32[1,2,5,5]\nconst k : f32[2,2,1,1] {1, 2, 3, 4}\nconst m : f32[2] {1, 2}\n"
          "c = aten.conv2d.default(x, k)\nn = aten.batch_norm.default(c, m, m, m, m, false, 0.1, 1e-5, false)\n"
          "y = aten.conv2d.default(n, k)",
          "aten.conv2d.default aten.conv2d.default" },
    };
    const npu_backend *cpu = npu_ref_backend();
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = near[i].passes };
        npu_pass_options options = { .validate = true };
        npu_text text = npu_text_init(NULL), kinds = npu_text_init(NULL);
        npu_graph *after = NULL, *before;
        npu_text_printf(&text, "graph main\n%s\noutput y = y\n", near[i].before);
        before = parse(text.data, NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&after, before, &desc, &options, NULL), NPU_OK);
        for (uint32_t k = 1; k <= npu_graph_num_ops(after); k++) {
            npu_op op = { k };
            npu_text_printf(&kinds, "%s%s", k > 1 ? " " : "", npu_op_definition(after, op)->name);
        }
        NPU_CHECK_THAT(strcmp(kinds.data, near[i].kinds) == 0, "%s\n-> %s", text.data, kinds.data);
        check_numbers(near[i].before, before, after, 1e-5);
        npu_graph_destroy(after);
        npu_graph_destroy(before);
        npu_text_free(&kinds);
        npu_text_free(&text);
    }
}

/* ---- passes and accelerators ---- */

#define SPLIT \
    "npu_ir 1\ngraph main\ninput x : f32[4,8]\ninput b : f32[8]\n" \
    "s = aten.add.Tensor(self=x, other=b) : f32[4,8]\n" \
    "t = aten.relu.default(self=s) : f32[4,8]\nu = aten.exp.default(self=t) : f32[4,8]\n" \
    "v = aten.neg.default(self=u) : f32[4,8]\n" \
    "w = aten.abs.default(self=v) : f32[4,8]\noutput w = w\n"

static uint32_t count_kind(const npu_graph *g, npu_kind kind)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        npu_op op = { i };
        n += npu_op_kind(g, op) == kind;
    }
    return n;
}

/* What an accelerator takes stays what it takes: only ops of the CPU are fused, and the numbers agree however they are
   split. */
static void test_split(void)
{
    static const char *const allow[] = { "aten.add.Tensor", "aten.relu.default" };
    npu_sim_desc sim = { 0 };
    npu_optimize_desc desc = { 0 };
    npu_graph *g = parse(SPLIT, NPU_OK), *now = NULL;
    rig r;
    setting split;
    sim.allow = allow;
    sim.num_allow = 2;
    r = rig_start(&sim, 1);
    desc.backends = r.backends;
    desc.num_backends = 2;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_ADD), 1);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_RELU), 1);
    NPU_CHECK_EQ(count_kind(now, NPU_NPU_FUSED), 1);
    NPU_CHECK_EQ(npu_graph_num_ops(now), 3);
    memset(&split, 0, sizeof split);
    split.backends = r.backends;
    split.num_backends = 2;
    check_same_bits("split", g, now, &split);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    rig_end(&r);
}

/* Calls among other ops that work in place, on one thread and on three: what the inlined ops give. */
static void test_calls(void)
{
    npu_graph *g = parse(
        "npu_ir 1\ngraph main\nchild body\ninput x : f32[1,8,40,40]\ninput w : f32[8,8,3,3]\n"
        "const h : f32[] {0.5}\n"
        "c = aten.conv2d.default(x, w, padding=[1, 1])\nv = aten.view.default(c, [8, 1600])\n"
        "r = aten.gelu.default(v)\n"
        "s = aten.mul.Tensor(r, h)\nt = aten.view.default(s, [1, 8, 40, 40])\noutput t = t\noutput s = s\nend\n"
        "input x : f32[1,8,40,40]\ninput w : f32[8,8,3,3]\na = aten.exp.default(x)\n"
        "b, c = npu.call([a, w], body=graph 0)\n"
        "d = aten.neg.default(b)\ne, f = npu.call([d, w], body=graph 0)\ni = aten.abs.default(e)\n"
        "j = aten.relu.default(f)\n"
        "output i = i\noutput j = j\noutput c = c\n", NPU_OK);
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { 0 };
    npu_parallel *threads = NULL;
    npu_graph *flat = NULL;
    setting s = { &cpu, 1, NULL, false };
    desc.passes = PASS(INLINE);
    NPU_CHECK_STATUS(npu_graph_optimize(&flat, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(count_kind(flat, NPU_NPU_CALL), 0);
    NPU_CHECK_EQ(npu_graph_num_ops(flat), 14);
    NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = 3 }), NPU_OK);
    check_same_bits("calls", flat, g, &s);
    s.parallel = threads;
    check_same_bits("calls, threads", flat, g, &s);
    npu_threads_destroy(threads);
    npu_graph_destroy(flat);
    npu_graph_destroy(g);
}

/* Taken one by one, any set of passes gives the same numbers: how a wrong one would be found. */
static void test_skip(void)
{
    npu_graph *g = parse(SPLIT, NPU_OK);
    const npu_backend *cpu = npu_ref_backend();
    NPU_ITEM("R1.27");
    for (uint32_t id = 1; id < 32; id++) {
        npu_optimize_desc desc = { 0 };
        npu_graph *now = NULL;
        desc.backends = &cpu;
        desc.num_backends = 1;
        desc.skip = npu_pass_init((npu_pass_id)id, NULL).run ? 1u << id : 0;
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
        NPU_CHECK_EQ(count_kind(now, NPU_NPU_FUSED), id != NPU_PASS_FUSE);
        check_numbers("skip", g, now, 1e-6);
        npu_graph_destroy(now);
    }
    npu_graph_destroy(g);
}

/* The default passes one after the other: no-ops go, outputs included, the batch norm goes into the convolution whose
   weights are parameters, and what is elementwise after it becomes one op. */
static void test_pipeline(void)
{
    static const float w[2] = { 1.5f, -2 }, scale[2] = { 0.5f, 2 }, mean[2] = { 0.25f, -1 }, variance[2] = { 4, 0.5f };
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { 0 };
    npu_graph *now = NULL;
    npu_graph *g = parse(
        "npu_ir 1\ngraph main\ninput x : f32[1,1,4,4]\nparam w : f32[2,1,1,1]\nparam s : f32[2]\n"
        "param m : f32[2]\nparam v : f32[2]\n"
        "a = aten.alias.default(x)\nc = aten.conv2d.default(a, w)\n"
        "n = aten.batch_norm.default(c, s, none, m, v, false, 0.1, 0.001, false)\n"
        "d = aten.dropout.default(n, 0.5, false)\n"
        "r = aten.relu.default(d)\ne = aten.clone.default(r)\nh = aten.mul.Scalar(e, 0.5)\n"
        "i = aten.add.Tensor(h, r)\n"
        "j = aten.detach.default(i)\noutput y = j\n", NPU_OK);
    NPU_ITEM("R1.20");
    npu_graph_bind_param(g, "w", w, sizeof w);
    npu_graph_bind_param(g, "s", scale, sizeof scale);
    npu_graph_bind_param(g, "m", mean, sizeof mean);
    npu_graph_bind_param(g, "v", variance, sizeof variance);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.frozen = NPU_FROZEN_NONE;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_BATCH_NORM), 1);
    npu_graph_destroy(now);
    desc.frozen = NPU_FROZEN_DEFAULT;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(now), 2);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_CONV2D), 1);
    NPU_CHECK_EQ(count_kind(now, NPU_NPU_FUSED), 1);
    NPU_CHECK_STR(npu_graph_output_name(now, 0), "y");
    check_numbers("pipeline", g, now, 1e-5);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* What compilers of this kind have got wrong before. */
static const struct {
    const char *what, *text;
    npu_kind there, gone; /* kinds that the result has, and has not; 0 = no matter */
} regressions[] = {
    { "an op that writes becomes one that does not, before anything is fused",
      "x0 = aten.clone.default(x)\na = aten.relu_.default(x0)\nb = aten.mul.Tensor(x0, x)\noutput y = b\n", NPU_NPU_FUSED, NPU_ATEN_RELU },
    { "the gate stands where its last operand is there, not where silu was",
      "s = aten.silu.default(x)\nu = aten.softmax.int(x, 1)\ny = aten.mul.Tensor(s, u)\noutput y = y\n", NPU_NPU_FUSED, NPU_ATEN_SILU },
    { "a transposition stays an op of its own", "t = aten.transpose.int(x, 0, 1)\ny = aten.matmul.default(t, x)\noutput y = y\n",
      NPU_ATEN_TRANSPOSE, 0 },
    { "an empty operand of cat", "e = aten.slice.Tensor(x, 0, 0, 0)\nc = aten.cat.default([x, e])\ny = aten.neg.default(c)\noutput y = y\n",
      NPU_ATEN_CAT, 0 },
    { "bf16 is fused like any other", "h = aten.to.dtype(x, bf16)\ni = aten.relu.default(h)\nj = aten.mul.Tensor(i, h)\noutput y = j\n",
      NPU_NPU_FUSED, NPU_ATEN_RELU },
};

static void test_regressions(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { 0 };
    setting s = { &cpu, 1, NULL, false };
    NPU_ITEM("R1.23");
    desc.backends = &cpu;
    desc.num_backends = 1;
    for (size_t i = 0; i < sizeof regressions / sizeof regressions[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_graph *g, *now = NULL;
        npu_text_printf(&text, "graph main\ninput x : f32[6,6]\n%s", regressions[i].text);
        g = parse(text.data, NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
        if (!g || !now || (regressions[i].there && !count_kind(now, regressions[i].there)) || count_kind(now, regressions[i].gone)) {
            NPU_CHECK_STR(regressions[i].what, "as expected");
        }
        if (g && now) {
            check_same_bits(regressions[i].what, g, now, &s);
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
}

/* Dims that one op decides by its data are equal, before and after. */
static void test_equal_counts(void)
{
    npu_graph *now = NULL, *g = parse("npu_ir 1\ngraph main\ninput x : u8[2,3,4]\n%2, %3, %4 = aten.where.default(x)\n"
              "%5 = aten.add.Tensor(%4, %2)\n%6, %7, %8 = aten.where.default(x)\n%9 = aten.mul.Tensor(%5, %7)\noutput y = %9\n", NPU_OK);
    NPU_ITEM("F14");
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_WHERE_INDICES), 1);
    NPU_CHECK_STR(npu_graph_symbol_name(now, npu_value_spec(now, npu_graph_output(now, 0))->dims[0]), "d0");
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* ---- what folding leaves, and what it says ---- */

static npu_pass_report reports[40];
static uint32_t num_reports;

static void keep_report(void *ctx, const npu_pass_report *report)
{
    (void)ctx;
    NPU_CHECK_EQ(report->size, sizeof *report);
    reports[num_reports++ % 40] = *report;
}

/* The first report of a pass. */
static const npu_pass_report *report_of(npu_pass_id id)
{
    static const npu_pass_report none = { 0, 0, "", 99, 0, 0, "", NULL, 0 };
    for (uint32_t i = 0; i < num_reports; i++) {
        if (reports[i].id == id) {
            return &reports[i];
        }
    }
    return &none;
}

static npu_graph *convolution(const float *w, const float *s)
{
    npu_graph *g = parse(
        "npu_ir 1\ngraph main\ninput x : f32[1,1,4,4]\nparam conv1.weight : f32[2,1,1,1]\nparam bn1.weight : f32[2]\n"
        "param bn1.bias : f32[2]\nparam bn1.running_mean : f32[2]\nparam bn1.running_var : f32[2]\nparam fc.weight : f32[2,4]\n"
        "param never : f32[2,4]\nconst c : f32[2] {1, 2}\nd = aten.relu.default(never)\n"
        "h = aten.conv2d.default(x, conv1.weight)\n"
        "n = aten.batch_norm.default(h, bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var, false, 0.1, 0.001, false)\n"
        "%8 = aten.t.default(fc.weight)\n%9 = aten.neg.default(%8)\n%10 = aten.exp.default(%9)\n"
        "y = aten.matmul.default(n, %10)\noutput y = y\n", NPU_OK);
    npu_graph_bind_param(g, "conv1.weight", w, 8);
    npu_graph_bind_param(g, "fc.weight", w, 32);
    npu_graph_bind_param(g, "bn1.weight", s, 8);
    npu_graph_bind_param(g, "bn1.bias", s, 8);
    npu_graph_bind_param(g, "bn1.running_mean", s, 8);
    npu_graph_bind_param(g, "bn1.running_var", w, 8);
    return g;
}

static void keep_log(void *ctx, int level, const char *message)
{
    npu_text_printf((npu_text *)ctx, "%d %s\n", level, message);
}

/* A note per pass that ran; a warning where it left something out. Copies log where the first graph does. */
static void test_logged(void)
{
    NPU_ITEM("F54");
    npu_text log = npu_text_init(NULL);
    npu_logger logger = { &log, keep_log };
    npu_graph *g = NULL, *now = NULL;
    static const char text[] = "graph g\ninput x : f32[2]\nu = aten.neg.default(x)\ny = aten.relu.default(x)\n"
                               "output y = y\n";
    npu_optimize_desc desc = { .passes = 1u << NPU_PASS_DEAD_CODE | 1u << NPU_PASS_CONSTANTS };
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, &(npu_graph_desc){ .logger = &logger }, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK_STR(log.data, "2 pass dead-code: 1 changes, 2 ops before, 1 after\n"
                            "1 pass fold-constants: 0 changes, 1 ops before, 1 after: "
                            "no backend of the desc is host memory and runs single ops\n"
                            "2 pass dead-code: 0 changes, 1 ops before, 1 after\n");
    npu_graph_destroy(now);
    log.len = 0;
    desc.passes |= 1u << NPU_PASS_INLINE; /* the first of the table: dead-code is the last one all the same */
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
    NPU_CHECK(strstr(log.data, "fold-constants") && strstr(strstr(log.data, "fold-constants"), "2 pass dead-code"));
    npu_text_free(&log);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

/* A size that folding makes known, and that an op refuses, keeps the graph as it is. */
/* What was valid stays as it is where a pass finds out what a type rule would have refused. */
static void test_known_too_late(void)
{
    static const char sizes[] = "graph g\nsymbol d0 0 0\ninput x : i64[]\ninput scalar : i64[]\nconst k : i64[] {0}\n"
                                "r = %s : i64[]\ny = aten.repeat_interleave.self_Tensor(x, r) : i64[d0]\n"
                                "m, at = aten.nanmedian.dim(y, dim=0) : i64[], i64[]\noutput m = m\n";
    static const char data[] = "graph g\ninput z : i64[]\ninput q : i8[2]\nconst k : f32[] {0}\ns = aten.%s.default(k) : f32[]\n"
                               "t = aten.abs.default(s) : f32[]\ny = quantized_decomposed.dequantize_per_tensor.tensor(q, t, z, "
                               "quant_min=-128, quant_max=127, dtype=i8) : f32[2]\noutput y = y\n";
    static const struct { npu_pass_id pass; const char *text, *op, *reason; } refused[] = {
        { NPU_PASS_NO_OPS, sizes, "aten.expand_as.default(k, scalar)", "nanmedian: self dim 0 is 0, expected elements to reduce" },
        { NPU_PASS_CONSTANTS, sizes, "aten.neg.default(k)", "nanmedian: self dim 0 is 0, expected elements to reduce" },
        { NPU_PASS_CONSTANTS, data, "sin", "dequantize_per_tensor: scale is 0, expected a positive number" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        npu_text text = npu_text_init(NULL), log = npu_text_init(NULL);
        const npu_backend *cpu = npu_ref_backend();
        npu_logger logger = { &log, keep_log };
        npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << refused[i].pass };
        npu_graph *g = NULL, *now = NULL;
        npu_text_printf(&text, refused[i].text, refused[i].op);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, strlen(text.data), &(npu_graph_desc){ .logger = &logger }, NULL),
                         NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, &(npu_pass_options){ .validate = true }, NULL), NPU_OK);
        NPU_CHECK_EQ(npu_graph_num_ops(now), 3);
        NPU_CHECK(log.data && strstr(log.data, ": 0 changes, 3 ops before, 3 after: ") && strstr(log.data, refused[i].reason));
        npu_text_free(&text);
        npu_text_free(&log);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
    }
}

/* u8 as i8: the same bits, in ops on integers or before; u8 is left at inputs and outputs alone. */
static void test_signed_bytes(void)
{
#define U8 "127, 0, 255, u8)\n"
#define Q_ "quantized_decomposed.quantize_per_tensor.default("
#define D_ "quantized_decomposed.dequantize_per_tensor.default("
    /* The zero point of v is not 128: with 0 as i8 its linear became aten._weight_int8pack_mm, which rounds elsewhere. */
    static const char text[] =
        "npu_ir 1\ngraph main\ninput x : u8[1,2,6,6]\ninput r : f32[1,3,4,4]\n"
        "const k : i8[3,2,3,3] {1, -2, 3, 4, 5, -6, 7, 8, 9, -1, 2, 3, -4, 5, 6, 7, -8, 9, 1, -2, 3, 4, "
        "5, 6, 7, 8, -9, 1, 2, 3, -4, 5, 6, 7, 8, 9, 1, -2, 3, 4, -5, 6, 7, 8, 9, 1, 2, -3, 4, 5, 6, -7, 8, 9}\n"
        "const u : u8[2,3] {0, 255, 128, 129, 100, 7}\n"
        "w = " D_ "k, 0.01, 0, -127, 127, i8)\nv = " D_ "u, 0.02, 120, 0, 255, u8)\n"
        "a = " D_ "x, 0.031, " U8 "c = aten.conv2d.default(a, w)\nd = aten.relu.default(c)\n"
        "e = " Q_ "d, 0.04, 3, 0, 255, u8)\nf = " D_ "e, 0.04, 3, 0, 255, u8)\n"
        "g = " Q_ "r, 0.01, " U8 "h = " D_ "g, 0.01, " U8
        "i = aten.add.Tensor(f, h)\nj = " Q_ "i, 0.05, 100, 10, 240, u8)\nl = " D_ "j, 0.05, 100, 10, 240, u8)\n"
        "m = aten.max_pool2d.default(l, [4,4])\n"
        "n = " Q_ "m, 0.05, 100, 0, 255, u8)\no = " D_ "n, 0.05, 100, 0, 255, u8)\n"
        "p = aten.flatten.using_ints(o, 1)\nq = aten.linear.default(p, v)\ns = " Q_ "q, 0.03, 60, 0, 255, u8)\n"
        "t = " D_ "s, 0.03, 60, 0, 255, u8)\nz = aten.softmax.int(t, 1)\noutput z = z\noutput j = j\noutput q = q\n";
#undef U8
#undef Q_
#undef D_
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = parse(text, NPU_OK);
    for (uint32_t rounding = NPU_ROUNDING_SINGLE; rounding <= NPU_ROUNDING_DOUBLE; rounding++) {
        npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .rounding = rounding };
        npu_graph *as_u8 = NULL, *as_i8 = NULL, *alone = NULL, *again = NULL;
        uint32_t num_u8 = 0;
        desc.report = keep_report;
        desc.passes = PASS(INTEGER);
        NPU_CHECK_STATUS(npu_graph_optimize(&as_u8, g, &desc, NULL, NULL), NPU_OK);
        desc.passes |= PASS(SIGNED_BYTES) | PASS(CONSTANTS);
        num_reports = 0;
        NPU_CHECK_STATUS(npu_graph_optimize(&as_i8, g, &desc, &(npu_pass_options){ .validate = true }, NULL), NPU_OK);
        NPU_CHECK(report_of(NPU_PASS_SIGNED_BYTES)->num_changes > 0);
        desc.passes = PASS(SIGNED_BYTES) | PASS(DEAD_CODE);
        NPU_CHECK_STATUS(npu_graph_optimize(&alone, g, &desc, NULL, NULL), NPU_OK);
        num_reports = 0;
        NPU_CHECK_STATUS(npu_graph_optimize(&again, alone, &desc, NULL, NULL), NPU_OK);
        NPU_CHECK_EQ(report_of(NPU_PASS_SIGNED_BYTES)->num_changes, 0);
        check_numbers("signed bytes, integers", as_u8, as_i8, 0);
        check_numbers("signed bytes", g, alone, 0);
        NPU_CHECK_EQ(count_kind(as_i8, NPU_NPU_QCONV), 1);
        NPU_CHECK_EQ(count_kind(as_i8, NPU_NPU_QADD), 1);
        NPU_CHECK_EQ(count_kind(as_i8, NPU_NPU_QMAX_POOL), 1);
        for (uint32_t i = 1; i <= npu_graph_num_ops(as_i8); i++) {
            num_u8 += npu_value_spec(as_i8, npu_op_result(as_i8, (npu_op){ i }, 0))->dtype == NPU_U8;
        }
        NPU_CHECK_EQ(num_u8, 1); /* output j */
        npu_graph_destroy(as_u8);
        npu_graph_destroy(as_i8);
        npu_graph_destroy(alone);
        npu_graph_destroy(again);
    }
    npu_graph_destroy(g);
}

/* A graph without a tensor: an assertion of a number is optimised, planned and run. */
static void test_no_tensors(void)
{
    npu_graph *g = parse("graph g\naten.sym_constrain_range.default(3, min=1, max=4)\n", NPU_OK), *now = NULL;
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(now), 1);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, now, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    npu_exec_destroy(exec);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

static void check_folding(npu_optimize_desc *desc, uint32_t num_params, uint32_t num_norms, const char *names, const char *reason)
{
    static const float w[8] = { 1.5f, 2, 0.5f, -1, 0.25f, 1, 2, -0.5f }, s[2] = { 0.5f, 2 };
    npu_graph *g = convolution(w, s), *now = NULL;
    npu_text got = npu_text_init(NULL);
    uint32_t params = 0;
    num_reports = 0;
    desc->report = keep_report;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, desc, NULL, NULL), NPU_OK);
    npu_text_printf(&got, "%s", "");
    for (uint32_t i = 1; i < npu_graph_num_values(now) + 1; i++) {
        npu_value v = { i };
        params += npu_value_role(now, v) == NPU_ROLE_PARAM;
        if (npu_value_role(now, v) == NPU_ROLE_CONSTANT) {
            npu_text_printf(&got, "%s ", npu_value_name(now, v));
        }
    }
    NPU_CHECK_EQ(params, num_params);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_BATCH_NORM), num_norms);
    NPU_CHECK_EQ(count_kind(now, NPU_ATEN_MUL), 0);
    NPU_CHECK_STR(got.data, names);
    if (reason) {
        NPU_CHECK(strstr(report_of(NPU_PASS_BATCH_NORM)->reason, reason));
        NPU_CHECK_EQ(report_of(NPU_PASS_BATCH_NORM)->num_changes, 1 - num_norms);
    }
    if (desc->num_backends && !desc->keep_unused) {
        npu_graph_bind_param(g, "never", w, sizeof w);
        check_numbers("folding", g, now, 1e-5);
    }
    npu_text_free(&got);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
}

static void test_folding(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { 0 };
    NPU_ITEM("F25");
    NPU_ITEM("F35");
    check_folding(&desc, 6, 1, "", "backend");
    desc.backends = &cpu;
    desc.num_backends = 1;
    check_folding(&desc, 0, 0, "conv1.weight.folded bn1.bias.folded fc.weight.folded ", "");
    NPU_CHECK_EQ(report_of(NPU_PASS_DEAD_CODE)->num_changes, 3); /* d, never, c */
    NPU_CHECK_EQ(report_of(NPU_PASS_CONSTANTS)->num_changes, 3);
    NPU_CHECK_EQ(report_of(NPU_PASS_CONSTANTS)->num_ops_before - report_of(NPU_PASS_CONSTANTS)->num_ops_after, 3);
    NPU_CHECK_STR(reports[num_reports - 1].name, "dead-code");
    desc.max_constant_bytes = 7;
    check_folding(&desc, 6, 1, "", "max_constant_bytes");
    desc.max_constant_bytes = 8; /* the weight of the convolution, not the other one */
    check_folding(&desc, 1, 0, "conv1.weight.folded bn1.bias.folded ", "");
    desc.skip = PASS(CONSTANTS);
    check_folding(&desc, 1, 0, "conv1.weight.folded bn1.bias.folded ", "");
    desc.frozen = NPU_FROZEN_NONE;
    check_folding(&desc, 6, 1, "", "bind");
    desc.keep_unused = true;
    check_folding(&desc, 7, 1, "c ", NULL);
}

/* Ops with effects stay, all of them, in order, and see the values that they saw. */
static void test_effects(void)
{
    static const npu_op_row row = { 0x01000001, NPU_EFFECT, NULL, "show(Tensor x, *, int n=0) -> ()", "prints x", NULL };
    static const char before[] =
        "npu_ir 1\ngraph main\ninput x : f32[4]\na = aten.exp.default(self=x) : f32[4]\nmine.show(x=a)\n"
        "mine.show(x=a)\n"
        "b = aten.neg.default(self=a) : f32[4]\nc = aten.exp.default(self=x) : f32[4]\n"
        "d = aten.abs.default(self=b) : f32[4]\n"
        "mine.show(x=c, n=1)\noutput d = d\n";
    static const char after[] =
        "npu_ir 1\ngraph main\nchild fused scalar\n  input x0 : scalar f32[]\n"
        "  %2 = aten.neg.default(self=x0) : scalar f32[]\n"
        "  %3 = aten.abs.default(self=%2) : scalar f32[]\n  output y0 = %3\nend\n"
        "input x : f32[4]\na = aten.exp.default(self=x) : f32[4]\nmine.show(x=a)\nmine.show(x=a)\n"
        "d = npu.fused(inputs=[a], body=graph 0) : f32[4]\nmine.show(x=a, n=1)\noutput d = d\n";
    npu_registry *registry = NULL;
    npu_graph_desc desc = { 0 };
    npu_graph *g = NULL, *now = NULL;
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_registry_add(registry, "mine", &row, NULL), NPU_OK);
    desc.registry = registry;
    NPU_CHECK_STATUS(npu_graph_parse(&g, before, sizeof before - 1, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, NULL, NULL, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_print(now, &text), NPU_OK);
    NPU_CHECK_STR(text.data, after);
    npu_text_free(&text);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    npu_registry_destroy(registry);
}

/* ---- random graphs ---- */

/* The text of a graph of elementwise ops of several shapes and dtypes, with some that read whole rows between. */
static void write_random(npu_text *text, uint64_t *seed)
{
    static const char *const inputs[] = { "f32[4,6]", "f32[4,6]", "f32[6]", "f32[4,1]", "f16[4,6]", "f32[]" };
    static const char *const unary[] = { "relu", "exp", "neg", "abs", "tanh", "sigmoid", "clone", "softmax.int" };
    static const char *const binary[] = { "add.Tensor", "mul.Tensor", "sub.Tensor", "maximum", "add.Tensor", "mul.Tensor" };
    uint32_t num = 6, num_ops = 5 + (uint32_t)(npu_test_random(seed) % 30);
    npu_text_printf(text, "npu_ir 1\ngraph main\n");
    for (uint32_t i = 0; i < num; i++) {
        npu_text_printf(text, "input v%u : %s\n", (unsigned)i, inputs[i]);
    }
    for (uint32_t i = 0; i < num_ops; i++, num++) {
        uint32_t recent = npu_test_random(seed) % 2 ? 4 : num; /* chains are likely */
        uint32_t a = num - 1 - (uint32_t)(npu_test_random(seed) % recent), b = (uint32_t)(npu_test_random(seed) % num);
        uint32_t which = (uint32_t)(npu_test_random(seed) % 16);
        if (which < 8) {
            npu_text_printf(text, "v%u = aten.%s(v%u%s)\n", (unsigned)num, unary[which], (unsigned)a, which == 7 ? ", -1" : "");
        } else if (which < 14) {
            npu_text_printf(text, "v%u = aten.%s(v%u, v%u)\n", (unsigned)num, binary[which - 8], (unsigned)a, (unsigned)b);
        } else {
            npu_text_printf(text, "v%u = aten.%s(v%u, 0.25)\n", (unsigned)num, which == 14 ? "mul.Scalar" : "add.Scalar", (unsigned)a);
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        npu_text_printf(text, "output o%u = v%u\n", (unsigned)i, (unsigned)(num - 1 - npu_test_random(seed) % num_ops));
    }
}

/* Whatever the passes that promise the same bits do to a graph, it is valid and gives the same bits. */
static void test_random(void)
{
    const npu_backend *cpu = npu_ref_backend();
    uint64_t seed = npu_test_seed();
    uint32_t num_fused = 0;
    npu_optimize_desc desc = { 0 };
    npu_pass_options options = { 0 };
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.passes = PASS(DEAD_CODE) | PASS(NO_OPS) | PASS(COMMON) | PASS(CONSTANTS) | PASS(SILU_GATE) | PASS(FUSE);
    options.validate = true;
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t at = seed + i;
        npu_text text = npu_text_init(NULL);
        npu_graph *g = NULL, *now = NULL;
        char name[64];
        setting s = { &cpu, 1, NULL, (i & 1) != 0 };
        write_random(&text, &at);
        snprintf(name, sizeof name, "graph of NPU_SEED=%llu", (unsigned long long)(seed + i));
        if (npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), NULL) == NPU_OK) { /* broadcasts fit always, ranks too */
            NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, &options, NULL), NPU_OK);
            num_fused += now ? count_kind(now, NPU_NPU_FUSED) : 0;
            check_same_bits(name, g, now, &s);
        } else {
            NPU_CHECK_STR(text.data, "a graph");
        }
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        npu_text_free(&text);
    }
    NPU_CHECK(num_fused > 200);
}

static void test_optimize_rejections(void)
{
    npu_graph *g = parse(SPLIT, NPU_OK), *now = NULL;
    npu_optimize_desc desc = { 0 };
    npu_diag diag = { 0 };
    npu_pass none = npu_pass_init(NPU_PASS_NONE, NULL);
    desc.passes = 1u << 31;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, &diag), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK(!now);
    desc.passes = 0;
    desc.rounding = NPU_ROUNDING_DOUBLE + 1;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    desc.rounding = NPU_ROUNDING_SINGLE;
    desc._canary = 1;
    NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_graph_run_passes(&now, g, &none, 1, NULL, NULL), NPU_ERR_NOT_FOUND);
    NPU_CHECK_STATUS(npu_graph_optimize(&now, NULL, NULL, NULL, NULL), NPU_ERR_GRAPH);
    NPU_CHECK(!now);
    npu_graph_destroy(g);
}

/* Wherever memory runs out, there is a status, no graph, and nothing is left behind. */
static void test_out_of_memory(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_alloc_counter counter = { 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    npu_graph_desc graph_desc = { 0 };
    npu_optimize_desc desc = { 0 };
    npu_graph *g = NULL, *now = NULL;
    npu_status status = NPU_ERR_NO_MEMORY;
    size_t before;
    graph_desc.allocator = &a;
    desc.backends = &cpu;
    desc.num_backends = 1;
    NPU_CHECK_STATUS(npu_graph_parse(&g, SPLIT, sizeof SPLIT - 1, &graph_desc, NULL), NPU_OK);
    before = counter.live_bytes;
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY && n < 100000; n++) {
        counter.num_calls = 0;
        counter.fail_at = n;
        status = npu_graph_optimize(&now, g, &desc, NULL, NULL);
        NPU_CHECK(status == NPU_OK || !now);
        NPU_CHECK(status == NPU_OK || counter.live_bytes == before);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* Symbols of a body have no meaning in the graph around it: the call stays. */
static void test_inline_symbols(void)
{
    NPU_ITEM("F60");
    static const char text[] =
        "graph g\nchild c0\n  symbol d0 0 4\n  input a : f32[4]\n  %2 = aten.nonzero.default(a) : i64[d0,1]\n"
        "  %3 = aten.relu.default(a) : f32[4]\n  output y = %3\nend\ninput x : f32[4]\n"
        "y = npu.call(args=[x], body=graph 0) : f32[4]\noutput y = y\n";
    npu_graph *g = NULL, *h = NULL;
    npu_optimize_desc desc;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.passes = 1u << NPU_PASS_INLINE;
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), &diag), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_optimize(&h, g, &desc, NULL, &diag), NPU_OK);
    NPU_CHECK_EQ(npu_graph_num_ops(h), 1);
    NPU_CHECK_EQ(npu_op_kind(h, (npu_op){ 1 }), NPU_NPU_CALL);
    npu_graph_destroy(h);
    npu_graph_destroy(g);
}

/* ---- spellings ---- */

/* The spelling in lines, each the usual one where the case has none of its own, and whether it becomes one op. */
enum { MAX_LINES = 5 };
typedef struct spelling { bool is_fused; const char *lines[MAX_LINES]; } spelling;

/* Wherever a dim or an operand may be taken for another one, sizes agree: only the pattern can tell. */
static const char norm_head[] = "graph g\ninput x : f32[8,8]\ninput z : f32[8,8]\ninput w : f32[8]\ninput b : f32[8]\n"
                                "input w2 : f32[1,8]\ninput h : f16[8]\nconst half : f32[] {0.5}\nconst one : f32[] {1}\n"
                                "const root : f32[] {1.4142135}\n";
static const char *const norm_usual[MAX_LINES] = { "c = aten.mean.dim(x, [-1], true)\nd = aten.sub.Tensor(x, c)",
                                                   "s = aten.pow.Tensor_Scalar(d, 2)\nm = aten.mean.dim(s, [-1], true)",
                                                   "a = aten.add.Scalar(m, 1e-5)\nr = aten.sqrt.default(a)",
                                                   "n = aten.div.Tensor(d, r)\nt = aten.mul.Tensor(n, w)",
                                                   "y = aten.add.Tensor(t, b)" };
static const spelling layer_norms[] = {
    { true, { NULL } },
    { true, { "c = aten.mean.dim(x, [1], true)\nd = aten.sub.Tensor(x, c)" } },
    { false, { "c = aten.mean.dim(x, [0], true)\nd = aten.sub.Tensor(x, c)" } },
    { false, { "c = aten.mean.dim(z, [-1], true)\nd = aten.sub.Tensor(x, c)" } },
    { false, { "c = aten.mean.dim(x, [-1], true)\nd = aten.sub.Tensor(c, x)" } },
    { false, { "c = aten.mean.dim(x, [-1], true)\nd = aten.sub.Tensor(x, c, alpha=2)" } },
    { false, { "c = aten.mean.dim(x, [-1], true)\nd = aten.add.Tensor(x, c)" } },
    { false, { "c = aten.mean.dim(x, [-1], true)\nd = aten.sub.Tensor(x, c)\noutput d = d" } },
    { false, { "c = aten.mean.dim(x, [-1], true)\nd = aten.sub.Tensor(x, c)\nu = aten.neg.default(d)\noutput u = u" } },
    { true, { NULL, "s = aten.mul.Tensor(d, d)\nm = aten.mean.dim(s, [-1], true)" } },
    { true, { NULL, "s = aten.square.default(d)\nm = aten.mean.dim(s, [-1], true)" } },
    { false, { NULL, "s = aten.pow.Tensor_Scalar(x, 2)\nm = aten.mean.dim(s, [-1], true)" } },
    { false, { NULL, "s = aten.pow.Tensor_Scalar(d, 2)\nm = aten.mean.dim(s, [0], true)" } },
    { true, { NULL, NULL, "a = aten.add.Tensor(m, one)\nr = aten.sqrt.default(a)" } },
    { true, { NULL, NULL, "a = aten.add.Scalar(m, 1e-5)\nr = aten.rsqrt.default(a)", "n = aten.mul.Tensor(r, d)\nt = aten.mul.Tensor(w, n)" } },
    { false, { NULL, NULL, "a = aten.add.Scalar(m, 1e-5)\nr = aten.rsqrt.default(a)" } },
    { false, { NULL, NULL, NULL, "n = aten.mul.Tensor(d, r)\nt = aten.mul.Tensor(n, w)" } },
    { false, { NULL, NULL, NULL, "n = aten.div.Tensor(r, d)\nt = aten.mul.Tensor(n, w)" } },
    { false, { NULL, NULL, NULL, "n = aten.div.Tensor(x, r)\nt = aten.mul.Tensor(n, w)" } },
    { false, { NULL, NULL, NULL, "n = aten.div.Tensor(d, r)\nt = aten.mul.Tensor(n, w2)" } },
    { false, { NULL, NULL, NULL, "n = aten.div.Tensor(d, r)\nt = aten.mul.Tensor(n, h)" } },
    { true, { NULL, NULL, NULL, NULL, "y = aten.add.Tensor(b, t)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.add.Tensor(t, b, alpha=2)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.add.Tensor(t, w2)" } },
};
static const char *const gelu_usual[MAX_LINES] = { "t = aten.div.Tensor(x, root)", "e = aten.erf.default(t)", "o = aten.add.Tensor(e, one)",
                                                   "m = aten.mul.Tensor(x, o)", "y = aten.mul.Tensor(m, half)" };
static const spelling gelus[] = {
    { true, { NULL } },
    { true, { "t = aten.mul.Scalar(x, 0.70710678)" } },
    { true, { "t = aten.div.Scalar(x, 1.41421356)" } },
    { false, { "t = aten.mul.Scalar(x, 1.4142135)" } },
    { false, { "t = aten.div.Tensor(root, x)" } },
    { false, { "t = aten.div.Scalar(z, 1.4142135)" } },
    { false, { NULL, "e = aten.tanh.default(t)" } },
    { false, { NULL, "e = aten.erf.default(x)" } },
    { false, { NULL, "e = aten.erf.default(t)\noutput e = e" } },
    { true, { NULL, NULL, "o = aten.add.Scalar(e, 1)" } },
    { true, { NULL, NULL, "o = aten.add.Tensor(one, e)" } },
    { false, { NULL, NULL, "o = aten.add.Scalar(e, 2)" } },
    { false, { NULL, NULL, "o = aten.sub.Scalar(e, 1)" } },
    { false, { NULL, NULL, "o = aten.add.Tensor(e, half)" } },
    { true, { NULL, NULL, NULL, "m = aten.mul.Tensor(half, x)", "y = aten.mul.Tensor(m, o)" } },
    { true, { NULL, NULL, NULL, "m = aten.mul.Scalar(o, 0.5)", "y = aten.mul.Tensor(m, x)" } },
    { true, { NULL, NULL, NULL, "m = aten.mul.Tensor(o, x)", "y = aten.mul.Scalar(m, 0.5)" } },
    { false, { NULL, NULL, NULL, "m = aten.mul.Tensor(z, o)" } },
    { false, { NULL, NULL, NULL, "m = aten.mul.Tensor(x, o)\noutput m = m" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.mul.Scalar(m, 2)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.mul.Tensor(m, x)" } },
    { true, { NULL, NULL, NULL, NULL, "k = aten.mul.Tensor(m, half)\ny = aten.mul.Tensor(k, z)\noutput k = k" } },
};

static const char rms_head[] = "graph g\ninput x : f32[8,8]\ninput z : f32[8,8]\ninput w : f32[8]\n"
                               "input w2 : f32[1,8]\ninput e : f32[]\n"
                               "input h : f16[8,8]\ninput wh : f16[8]\n";
static const char *const rms_usual[MAX_LINES] = { "s = aten.square.default(x)", "m = aten.mean.dim(s, [-1], true)", "a = aten.add.Scalar(m, 1e-5)",
                                                  "n = aten.mul.Tensor(x, r)", "y = aten.mul.Tensor(n, w)" };
static const spelling rms_norms[] = {
    { true, { NULL } },
    { true, { "s = aten.pow.Tensor_Scalar(x, 2)" } },
    { true, { "s = aten.mul.Tensor(x, x)" } },
    { false, { "s = aten.pow.Tensor_Scalar(x, 3)" } },
    { false, { "s = aten.mul.Tensor(x, z)" } },
    { false, { "s = aten.mul.Tensor(z, z)" } },
    { false, { "s = aten.neg.default(x)" } },
    { true, { NULL, "m = aten.mean.dim(s, [1], true)" } },
    { false, { NULL, "m = aten.mean.dim(s, [0], true)" } },
    { false, { NULL, "m = aten.mean.dim(s, [0, 1], true)" } },
    { false, { NULL, "m = aten.mean.dim(s, [-1], false)" } },
    { false, { NULL, "m = aten.mean.dim(s, [-1], true, dtype=f32)" } },
    { false, { NULL, "m = aten.amax.default(s, [-1], true)" } },
    { false, { NULL, NULL, "a = aten.add.Tensor(m, e)" } },
    { false, { NULL, NULL, "a = aten.add.Scalar(m, 1e-5, 2)" } },
    { true, { NULL, NULL, NULL, "n = aten.mul.Tensor(r, x)" } },
    { false, { NULL, NULL, NULL, "n = aten.mul.Tensor(z, r)" } },
    { true, { NULL, NULL, NULL, NULL, "y = aten.mul.Tensor(w, n)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.mul.Tensor(n, w2)" } },
    /* halves that are normalised as floats; and floats of which halves are asked for */
    { true, { "j = aten.to.dtype(h, f32)\ns = aten.square.default(j)", NULL, NULL, "n = aten.mul.Tensor(j, r)",
              "o = aten.to.dtype(n, f16)\ny = aten.mul.Tensor(wh, o)" } },
    { true, { "j = aten._to_copy.default(h, dtype=f32)\ns = aten.mul.Tensor(j, j)", NULL, NULL,
              "n = aten.mul.Tensor(j, r)",
              "o = aten._to_copy.default(n, dtype=f16)\ny = aten.mul.Tensor(o, wh)" } },
    { false, { NULL, NULL, NULL, NULL, "o = aten.to.dtype(n, f16)\ny = aten.mul.Tensor(wh, o)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.mul.Tensor(n, wh)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.mul.Tensor(n, e)" } },
};

static const char attention_head[] = "graph g\ninput q : f32[4,4,4]\ninput k : f32[4,4,4]\ninput v : f32[4,4,4]\ninput m : f32[4,4]\n"
                                     "input f : f16[4,4]\ninput one : f32[1,4,4]\ninput e : f32[]\n"
                                     "const half : f32[] {0.5}\nconst no : f32[] {0}\nconst three : i32[] {3}\n"
                                     "const double : f64[] {0.25}\nconst list : f32[1] {0.5}\n"
                                     "const yes : bool[] {true}\n"
                                     "const short : f16[] {0.5}\n"
                                     "input c : bool[4,4]\n";
static const char *const attention_usual[MAX_LINES] = { "t = aten.transpose.int(k, -2, -1)", "d = aten.mul.Scalar(p, 0.5)",
                                                        "a = aten.add.Tensor(d, m)", "s = aten.softmax.int(a, -1)", "y = aten.matmul.default(s, v)" };
static const spelling attentions[] = {
    { true, { NULL } },
    { true, { "t = aten.transpose.int(k, 1, 2)" } },
    { true, { "t = aten.transpose.int(k, 2, -2)" } },
    { false, { "t = aten.transpose.int(k, 0, 1)" } },
    { false, { "t = aten.transpose.int(k, 0, -1)" } },
    { false, { "t = aten.neg.default(k)" } },
    { false, { "t = aten.transpose.int(one, 1, 2)" } },
    { true, { NULL, "d = aten.div.Scalar(p, 4.0)" } },
    { true, { NULL, "d = aten.mul.Tensor(p, half)" } },
    { true, { NULL, "d = aten.mul.Tensor(half, p)" } },
    { false, { NULL, "d = aten.div.Tensor(half, p)" } },
    { true, { NULL, "d = aten.mul.Tensor(p, three)" } },
    { true, { NULL, "d = aten.mul.Tensor(p, double)" } },
    { false, { NULL, "d = aten.mul.Tensor(p, list)" } },
    { false, { NULL, "d = aten.mul.Tensor(p, yes)" } },
    { false, { NULL, "d = aten.mul.Tensor(p, short)" } },
    { true, { NULL, "d = aten.div.Tensor(p, half)" } },
    { false, { NULL, "d = aten.mul.Tensor(p, m)" } },
    { false, { NULL, "d = aten.mul.Tensor(p, e)" } },
    { false, { NULL, "d = aten.mul.Scalar(p, 0)" } },
    { false, { NULL, "d = aten.div.Tensor(p, no)" } },
    { false, { NULL, "d = aten.neg.default(p)" } },
    { false, { NULL, NULL, "a = aten.add.Tensor(d, m, alpha=2)" } },
    { false, { NULL, NULL, "a = aten.add.Tensor(d, e)" } },
    { false, { NULL, NULL, "a = aten.sub.Tensor(d, m)" } },
    { false, { NULL, NULL, "a = aten.add.Tensor(d, f)" } },
    { true, { NULL, NULL, NULL, "s = aten.softmax.int(a, 2)" } },
    { true, { NULL, NULL, NULL, "s = aten._softmax.default(a, -1, false)" } },
    { true, { NULL, NULL, NULL, "s = aten._safe_softmax.default(a, -1)" } },
    { true, { NULL, NULL, NULL, "u = aten.softmax.int(a, -1)\ns = aten.dropout.default(u, 0.0, false)" } },
    { false, { NULL, NULL, NULL, "s = aten.softmax.int(a, 1)" } },
    { false, { NULL, NULL, NULL, "s = aten.softmax.int(a, -1, f32)" } },
    { false, { NULL, NULL, NULL, "s = aten.log_softmax.int(a, -1)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.matmul.default(s, one)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.matmul.default(s, m)" } },
    { false, { NULL, NULL, NULL, NULL, "y = aten.matmul.default(v, s)" } },
    { true, { "t = aten.permute.default(k, [0, 2, 1])" } },
    { true, { "t = aten.permute.default(k, [0, -1, 1])" } },
    { true, { "t = aten.permute.default(k, [1, 2, 0])" } }, /* of keys in another order */
    { true, { "j = aten.mul.Scalar(k, 0.25)\nt = aten.transpose.int(j, 1, 2)" } },
    { true, { "j = aten.transpose.int(k, 1, 2)\nt = aten.div.Scalar(j, 2.0)" } },
    { true, { "j = aten.view.default(k, [4, 4, 4])\nt = aten.transpose.int(j, 1, 2)" } },
    { true, { "j = aten.transpose.int(k, 1, 2)\nt = aten.expand.default(j, [4, 4, 4])" } },
    { false, { "j = aten.transpose.int(k, 1, 2)\nt = aten.view.default(j, [4, 4, 4])\nz = aten.neg.default(j)\n"
               "output z = z" } },
    { true, { NULL, "d = aten.clone.default(p)" } },
    { true, { NULL, NULL, "a = aten.add.Tensor(m, d)" } },
    { true, { NULL, NULL, "a = aten.where.ScalarOther(c, d, -1e9)" } },
    { true, { NULL, NULL, "a = aten.where.self(c, d, no)" } },
    { false, { NULL, NULL, "a = aten.where.self(c, d, e)" } },
    { false, { NULL, NULL, "a = aten.where.self(c, m, d)" } },
    { true, { NULL, NULL, "a = aten.masked_fill.Scalar(d, c, -1e9)" } },
    { true, { NULL, NULL, "a = aten.masked_fill.Tensor(d, c, half)" } },
    { true, { NULL, NULL, NULL, "j = aten.view.default(a, [2, 2, 4, 4])\ns = aten.softmax.int(j, -1)",
              "i = aten.view.default(s, [4, 4, 4])\ny = aten.matmul.default(i, v)" } },
};

/* As they are exported: GPT with its batches taken apart, BERT with its key permuted once, Llama with repeated heads. The
   same numbers, to what rounding allows. */
static const struct { const char *name, *text; } exported_attentions[] = {
    { "BERT",
      "input x : f32[2,5,12]\ninput w : f32[2,5,12]\ninput u : f32[2,5,12]\ninput m : f32[2,1,1,5]\n"
      "a = aten.view.default(x, [2, 5, 3, 4])\nq = aten.permute.default(a, [0, 2, 1, 3])\n"
      "b = aten.view.default(w, [2, 5, 3, 4])\nt = aten.permute.default(b, [0, 2, 3, 1])\n"
      "d = aten.view.default(u, [2, 5, 3, 4])\nv = aten.permute.default(d, [0, 2, 1, 3])\n"
      "p = aten.matmul.default(q, t)\ns = aten.div.Scalar(p, 2.0)\nz = aten.add.Tensor(s, m)\n"
      "e = aten.softmax.int(z, -1)\nr = aten.matmul.default(e, v)\noutput r = r\n" },
    { "GPT",
      "input q : f32[2,3,5,4]\ninput k : f32[2,3,5,4]\ninput v : f32[2,3,5,4]\ninput m : bool[1,1,5,5]\n"
      "t = aten.transpose.int(k, -1, -2)\na = aten.expand.default(q, [2, 3, 5, 4])\nb = aten.view.default(a, [6, 5, 4])\n"
      "d = aten.expand.default(t, [2, 3, 4, 5])\ne = aten.view.default(d, [6, 4, 5])\np = aten.bmm.default(b, e)\n"
      "f = aten._unsafe_view.default(p, [2, 3, 5, 5])\ng = aten.div.Scalar(f, 2.0)\n"
      "h = aten.where.ScalarOther(m, g, -1e30)\ns = aten._softmax.default(h, -1, false)\n"
      "i = aten.expand.default(s, [2, 3, 5, 5])\nj = aten.view.default(i, [6, 5, 5])\n"
      "l = aten.view.default(v, [6, 5, 4])\ny = aten.bmm.default(j, l)\n"
      "r = aten._unsafe_view.default(y, [2, 3, 5, 4])\noutput r = r\n" },
    { "Llama",
      "input q : f32[2,6,5,4]\ninput k : f32[2,2,7,4]\ninput v : f32[2,2,7,4]\ninput m : f32[2,1,5,7]\n"
      "a = aten.unsqueeze.default(k, 2)\nb = aten.expand.default(a, [2, 2, 3, 7, 4])\n"
      "d = aten.clone.default(b)\ne = aten._unsafe_view.default(d, [2, 6, 7, 4])\n"
      "f = aten.unsqueeze.default(v, 2)\ng = aten.expand.default(f, [2, 2, 3, 7, 4])\n"
      "h = aten.reshape.default(g, [2, 6, 7, 4])\nt = aten.transpose.int(e, 2, 3)\n"
      "p = aten.matmul.default(q, t)\ns = aten.mul.Scalar(p, 0.5)\nz = aten.add.Tensor(s, m)\n"
      "i = aten.softmax.int(z, -1)\nr = aten.matmul.default(i, h)\noutput r = r\n" },
    { "scaled before",
      "input q : f32[2,6,5,4]\ninput k : f32[2,6,7,4]\ninput v : f32[2,6,7,8]\n"
      "a = aten.mul.Scalar(q, 0.7)\nt = aten.transpose.int(k, -2, -1)\nb = aten.mul.Scalar(t, 0.7)\n"
      "p = aten.matmul.default(a, b)\ni = aten.softmax.int(p, -1)\nr = aten.matmul.default(i, v)\noutput r = r\n" },
    { "keys alone repeated",
      "input q : f32[1,4,5,4]\ninput k : f32[1,2,3,4]\ninput v : f32[1,4,3,4]\n"
      "a = aten.unsqueeze.default(k, 2)\nb = aten.expand.default(a, [1, 2, 2, 3, 4])\n"
      "e = aten.reshape.default(b, [1, 4, 3, 4])\nt = aten.transpose.int(e, 2, 3)\n"
      "p = aten.matmul.default(q, t)\ni = aten.softmax.int(p, -1)\nr = aten.matmul.default(i, v)\noutput r = r\n" },
};

/* Random inputs; of masks as many true as false, the first of a row true. */
static void feed_attention(npu_exec *e, const npu_graph *g)
{
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        static float x[1024];
        static uint8_t truths[1024];
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        bool is_mask = spec->dtype == NPU_BOOL;
        size_t n = 0;
        npu_spec_len(spec, &n);
        for (size_t j = 0; j < n; j++) {
            x[j] = (float)((j * 2654435761u + i * 40503u) % 4001u) / 1000.0f - 2.0f;
            truths[j] = j % 5 == 0 || x[j] > 0;
        }
        npu_test_input(e, npu_value_name(g, npu_graph_input(g, i)), is_mask ? (void *)truths : x,
                       is_mask ? n : n * sizeof *x);
    }
}

static void test_exported_attention(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_ATTENTION };
    for (size_t i = 0; i < sizeof exported_attentions / sizeof exported_attentions[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_exec *e[2] = { NULL, NULL };
        npu_graph *graphs[2] = { NULL, NULL };
        npu_text_printf(&text, "graph g\n%s", exported_attentions[i].text);
        graphs[0] = parse(text.data, NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&graphs[1], graphs[0], &desc, NULL, NULL), NPU_OK);
        NPU_CHECK_THAT(count_kind(graphs[1], NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION) == 1, "%s",
                       exported_attentions[i].name);
        NPU_CHECK_THAT(count_kind(graphs[1], NPU_ATEN_SOFTMAX) == 0, "%s", exported_attentions[i].name);
        for (int k = 0; k < 2; k++) {
            NPU_CHECK_STATUS(npu_exec_create_simple(&e[k], graphs[k], &cpu, 1, NULL), NPU_OK);
            feed_attention(e[k], graphs[k]);
            NPU_CHECK_STATUS(npu_exec_run(e[k]), NPU_OK);
        }
        size_t size = 0, other = 0;
        const float *want = npu_exec_output(e[0], 0, &size), *got = npu_exec_output(e[1], 0, &other);
        NPU_CHECK(size == other && size);
        for (size_t j = 0; j < size / sizeof *want; j++) {
            NPU_CHECK_NEAR(got[j], want[j], 2e-6);
        }
        for (int k = 0; k < 2; k++) {
            npu_exec_destroy(e[k]);
            npu_graph_destroy(graphs[k]);
        }
        npu_text_free(&text);
    }
}

/* Keys and values that are repeated in another way than heads for those of q: whatever becomes of them, it is not
   attention with fewer heads, and the numbers stay. */
static void test_no_repeated_heads(void)
{
    static const struct { const char *name, *narrow, *wide; bool is_one; } near[] = {
        { "heads", "2,2,1,7,4", "2,2,3,7,4", false },
        { "heads of one batch", "2,2,1,7,4", "2,2,3,7,4", true },
        { "no dim for the copies", "2,1,7,4", "2,6,7,4", false },
        { "new dims in front", "3,7,4", "2,2,3,7,4", false },
        { "heads as a whole", "2,1,3,7,4", "2,2,3,7,4", false },
        { "batches, too", "1,2,1,7,4", "2,2,3,7,4", false },
        { "batches as heads", "1,4,1,7,4", "1,4,3,7,4", false },
        { "all heads of one", "2,1,1,7,4", "2,2,3,7,4", false },
        { "rows", "2,2,1,1,4", "2,2,3,7,4", false },
        { "columns", "2,2,1,7,1", "2,2,3,7,4", false },
        { "half a head", "2,4,1,7,2", "2,4,3,7,2", false },
    };
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_ATTENTION };
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        npu_text text = npu_text_init(NULL), after = npu_text_init(NULL);
        npu_graph *now = NULL, *g;
        const char *dims = near[i].is_one ? "12" : "2,6";
        npu_text_printf(&text, "graph g\ninput q : f32[%s,5,4]\ninput k : f32[%s]\ninput v : f32[%s]\n", dims,
                        near[i].narrow, near[i].narrow);
        npu_text_printf(&text, "a = aten.expand.default(k, [%s])\nb = aten.reshape.default(a, [%s,7,4])\n",
                        near[i].wide, dims);
        npu_text_printf(&text, "c = aten.expand.default(v, [%s])\nd = aten.reshape.default(c, [%s,7,4])\n",
                        near[i].wide, dims);
        npu_text_printf(&text, "t = aten.transpose.int(b, -2, -1)\np = aten.matmul.default(q, t)\n"
                               "s = aten.softmax.int(p, -1)\ny = aten.matmul.default(s, d)\noutput y = y\n");
        g = parse(text.data, NPU_OK);
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
        npu_graph_print(now, &after);
        NPU_CHECK_THAT((strstr(after.data, "enable_gqa") != NULL) == (i == 0), "%s: %s", near[i].name, after.data);
        check_numbers(near[i].name, g, now, 1e-5);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        npu_text_free(&after);
        npu_text_free(&text);
    }
}

/* between: what stands after the line of that number. */
static void check_spelling(const spelling *c, const char *head, const char *const *usual, int at, const char *between, npu_pass_id pass, npu_kind kind)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc desc = { .backends = &cpu, .num_backends = 1, .passes = 1u << pass };
    npu_text text = npu_text_init(NULL);
    npu_graph *now = NULL;
    npu_text_printf(&text, "%s", head);
    for (int i = 0; i < MAX_LINES; i++) {
        npu_text_printf(&text, "%s\n%s", c->lines[i] ? c->lines[i] : usual[i], i == at ? between : "");
    }
    npu_text_printf(&text, "output y = y\n");
    npu_graph *g = parse(text.data, NPU_OK);
    if (g) {
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, &desc, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_graph_validate(now, NULL, NULL), NPU_OK);
        NPU_CHECK_THAT((count_kind(now, kind) == 1) == c->is_fused, "%s", text.data);
    }
    npu_graph_destroy(now);
    npu_graph_destroy(g);
    npu_text_free(&text);
}

static void test_spellings(void)
{
    NPU_ITEM("F59");
    for (size_t i = 0; i < sizeof rms_norms / sizeof rms_norms[0]; i++) {
        check_spelling(&rms_norms[i], rms_head, rms_usual, 2, "r = aten.rsqrt.default(a)\n", NPU_PASS_RMS_NORM, NPU_ATEN_RMS_NORM);
    }
    for (size_t i = 0; i < sizeof layer_norms / sizeof layer_norms[0]; i++) {
        check_spelling(&layer_norms[i], norm_head, norm_usual, -1, "", NPU_PASS_LAYER_NORM, NPU_ATEN_LAYER_NORM);
    }
    for (size_t i = 0; i < sizeof gelus / sizeof gelus[0]; i++) {
        check_spelling(&gelus[i], norm_head, gelu_usual, -1, "", NPU_PASS_GELU, NPU_ATEN_GELU);
    }
    for (size_t i = 0; i < sizeof attentions / sizeof attentions[0]; i++) {
        check_spelling(&attentions[i], attention_head, attention_usual, 0, "p = aten.matmul.default(q, t)\n", NPU_PASS_ATTENTION,
                       NPU_ATEN_SCALED_DOT_PRODUCT_ATTENTION);
    }
}

static npu_status type_self(npu_deduce *d) { return npu_deduce_add_result(d, npu_deduce_spec(d, "self")); }

/* An op from outside is a no-op where its row says that it keeps what it does not change. */
static void test_keeping_row(void)
{
    static const uint32_t traits[] = { 0, NPU_KEEPS, NPU_VIEW, NPU_KEEPS | NPU_EFFECT };
    NPU_ITEM("F49");
    for (uint32_t i = 0; i < 4; i++) {
        npu_op_row row = { NPU_NS_USER << 16, traits[i], type_self, "same(Tensor self) -> Tensor", "itself", NULL };
        npu_graph_desc desc = { 0 };
        npu_registry *registry = NULL;
        npu_graph *now = NULL;
        NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add(registry, "my", &row, NULL), NPU_OK);
        desc.registry = registry;
        npu_graph *g = npu_graph_create(&desc);
        npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (int64_t[]){ 4 }));
        npu_output(g, "y", npu_op_result(g, npu_emit_name(g, "my.same", (npu_arg[]){ npu_arg_tensor("self", npu_neg(g, x)) }, 1), 0));
        NPU_CHECK_STATUS(npu_graph_optimize(&now, g, NULL, NULL, NULL), NPU_OK);
        NPU_CHECK_EQ(npu_graph_num_ops(now), i % 3 ? 1 : 2);
        npu_graph_destroy(now);
        npu_graph_destroy(g);
        npu_registry_destroy(registry);
    }
}

int main(void)
{
    NPU_RUN(test_split);
    NPU_RUN(test_calls);
    NPU_RUN(test_skip);
    NPU_RUN(test_pipeline);
    NPU_RUN(test_logged);
    NPU_RUN(test_known_too_late);
    NPU_RUN(test_signed_bytes);
    NPU_RUN(test_no_tensors);
    NPU_RUN(test_folding);
    NPU_RUN(test_equal_counts);
    NPU_RUN(test_regressions);
    NPU_RUN(test_effects);
    NPU_RUN(test_random);
    NPU_RUN(test_no_repeated_heads);
    NPU_RUN(test_spellings);
    NPU_RUN(test_exported_attention);
    NPU_RUN(test_optimize_rejections);
    NPU_RUN(test_out_of_memory);
    NPU_RUN(test_fused_types);
    NPU_RUN(test_fused_numbers);
    NPU_RUN(test_passes);
    NPU_RUN(test_squeeze_of_symbol);
    NPU_RUN(test_neighbours);
    NPU_RUN(test_inline_symbols);
    NPU_RUN(test_keeping_row);
    return npu_test_done();
}
