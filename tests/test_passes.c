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
      "input x : f32[2]\nstate h : f32[2]\na = aten.relu.default(self=x) : f32[2]\nb = aten.neg.default(self=a) : f32[2]\n"
      "c = aten.abs.default(self=x) : f32[2]\nupdate h = c\noutput y = a\n",
      "input x : f32[2]\nstate h : f32[2]\na = aten.relu.default(self=x) : f32[2]\nc = aten.abs.default(self=x) : f32[2]\n"
      "update h = c\noutput y = a\n" },
    { "nothing is dead", PASS(DEAD_CODE), 0,
      "input x : f32[2]\na = aten.relu.default(self=x) : f32[2]\noutput y = a\n", NULL },
    { "no-ops go, outputs name what they copied", PASS(NO_OPS), 0,
      "input x : f32[2,3]\na = aten.clone.default(self=x) : f32[2,3]\nb = aten.view.default(self=a, size=[2, 3]) : f32[2,3]\n"
      "c = aten.dropout.default(input=b, p=0.5, train=false) : f32[2,3]\nd = aten.to.dtype(self=c, dtype=f32) : f32[2,3]\n"
      "e = aten.relu.default(self=d) : f32[2,3]\nf = aten.slice.Tensor(self=e, start=0, end=9) : f32[2,3]\noutput y = f\n"
      "output z = a\n",
      "input x : f32[2,3]\ne = aten.relu.default(self=x) : f32[2,3]\noutput y = e\noutput z = x\n" },
    { "views and casts that change something stay", PASS(NO_OPS), 0,
      "input x : f32[2,3]\na = aten.view.default(self=x, size=[3, 2]) : f32[3,2]\nb = aten.to.dtype(self=a, dtype=f16) : f16[3,2]\n"
      "c = aten.slice.Tensor(self=b, start=1) : f16[2,2]\noutput y = c\n", NULL },
    { "equal ops are computed once", PASS(COMMON), 0,
      "input x : f32[2]\nconst h : f32[] {0.5}\na = aten.exp.default(self=x) : f32[2]\nb = aten.exp.default(self=x) : f32[2]\n"
      "c = aten.mul.Scalar(self=a, other=2) : f32[2]\nd = aten.mul.Scalar(self=b, other=2) : f32[2]\n"
      "e = aten.mul.Scalar(self=b, other=3) : f32[2]\nf = aten.add.Tensor(self=c, other=d) : f32[2]\n"
      "g = aten.add.Tensor(self=e, other=f) : f32[2]\noutput y = g\n",
      "input x : f32[2]\nconst h : f32[] {0.5}\na = aten.exp.default(self=x) : f32[2]\n"
      "c = aten.mul.Scalar(self=a, other=2) : f32[2]\ne = aten.mul.Scalar(self=a, other=3) : f32[2]\n"
      "f = aten.add.Tensor(self=c, other=c) : f32[2]\ng = aten.add.Tensor(self=e, other=f) : f32[2]\noutput y = g\n" },
    { "random ops are not equal", PASS(COMMON), 0,
      "a = aten.rand.default(size=[2]) : f32[2]\nb = aten.rand.default(size=[2]) : f32[2]\n"
      "c = aten.lt.Tensor(self=a, other=b) : bool[2]\noutput y = c\n", NULL },
    { "constants are computed", PASS(CONSTANTS), 0,
      "input x : f32[2]\nconst a : f32[2] {1.0, 2.0}\nconst b : f32[2] {0.5, 4.0}\nc = aten.mul.Tensor(self=a, other=b) : f32[2]\n"
      "d = aten.add.Scalar(self=c, other=1) : f32[2]\ne = aten.add.Tensor(self=x, other=d) : f32[2]\noutput y = e\n",
      "input x : f32[2]\nconst a : f32[2] {1.0, 2.0}\nconst b : f32[2] {0.5, 4.0}\nconst c : f32[2] {0.5, 8.0}\n"
      "const d : f32[2] {1.5, 9.0}\ne = aten.add.Tensor(self=x, other=d) : f32[2]\noutput y = e\n" },
    { "random numbers and what fails are not", PASS(CONSTANTS), 0,
      "const a : i32[2] {1, 2}\nconst b : i32[2] {1, 0}\n%3 = aten.rand.default(size=[2]) : f32[2]\noutput y = %3\n", NULL },
    { "elementwise ops become one", PASS(FUSE), 0,
      "input x : f32[4,8]\ninput b : f32[8]\n%3 = aten.add.Tensor(self=x, other=b) : f32[4,8]\n"
      "%4 = aten.relu.default(self=%3) : f32[4,8]\nconst %5 : f32[] wrapped {0.5}\n"
      "%6 = aten.mul.Tensor(self=%4, other=%5) : f32[4,8]\nr = aten.mul.Tensor(self=%6, other=x) : f32[4,8]\noutput y = r\n",
      "child fused scalar\n  input x0 : scalar f32[]\n  input x1 : scalar f32[]\n"
      "  %3 = aten.add.Tensor(self=x0, other=x1) : scalar f32[]\n  %4 = aten.relu.default(self=%3) : scalar f32[]\n"
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
      "c = aten.add.Tensor(self=x, other=a) : f32[4,8]\nd = aten.add.Tensor(self=c, other=h) : f32[4,8]\noutput y = d\n", NULL },
    { "saved values stay", PASS(FUSE), 0,
      "input x : f32[8]\na = aten.exp.default(self=x) : f32[8]\nb = aten.neg.default(self=a) : f32[8]\n"
      "c = aten.softmax.int(self=b, dim=0) : f32[8]\nsave c = a\noutput y = c\n",
      "child fused scalar\n  input x0 : scalar f32[]\n  %2 = aten.exp.default(self=x0) : scalar f32[]\n"
      "  %3 = aten.neg.default(self=%2) : scalar f32[]\n  output y0 = %3\n  output y1 = %2\nend\n"
      "input x : f32[8]\nb, a = npu.fused(inputs=[x], body=graph 0) : f32[8], f32[8]\n"
      "c = aten.softmax.int(self=b, dim=0) : f32[8]\nsave c = a\noutput y = c\n" },
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
    npu_text text = npu_text_make(NULL), expected = npu_text_make(NULL);
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

static void test_passes(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_pass(i);
    }
}

int main(void)
{
    NPU_RUN(test_fused_types);
    NPU_RUN(test_fused_numbers);
    NPU_RUN(test_passes);
    return npu_test_done();
}
