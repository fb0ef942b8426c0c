/* Ops that write to their operands become functional when a file is read: whoever names a tensor later, its base or a
   view of it reads what was written. Expected numbers are written by hand, as a machine with one memory would compute
   them. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

#define HEAD "npu_ir 1\ngraph m\ninput x : f32[2,3]\n"
#define MAX_OUT 16

/* Loads text, runs it with x = 1 .. 6 and compares the floats of output `name`. */
static void check_text(const char *label, const char *text, const char *name, const float *want, size_t len)
{
    static const float x[] = { 1, 2, 3, 4, 5, 6 };
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL, *again = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_text printed = npu_text_init(NULL);
    size_t size = 0;
    if (npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag) || npu_graph_validate(g, NULL, NULL) ||
        npu_graph_print(g, &printed) || npu_graph_parse(&again, printed.data, printed.len, npu_test_graph_desc(), &diag) ||
        npu_exec_create_simple(&exec, again, &cpu, 1, &diag)) {
        fprintf(stderr, "%s: %s: line %d: %s\n", label, npu_status_name(diag.status), (int)diag.line, diag.message);
        NPU_CHECK(exec);
    } else {
        npu_test_input(exec, "x", x, sizeof x);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        const float *got = (const float *)npu_exec_find_output(exec, name, &size);
        NPU_CHECK_EQ(size, len * sizeof(float));
        for (size_t i = 0; got && i < len && size == len * sizeof(float); i++) {
            if (fabs((double)got[i] - (double)want[i]) > 1e-6) {
                fprintf(stderr, "%s, output %s:\n%s", label, name, printed.data);
                NPU_CHECK_NEAR(got[i], want[i], 1e-6);
                break;
            }
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(again);
    npu_graph_destroy(g);
    npu_text_free(&printed);
}

typedef struct program {
    const char *label, *text, *output;
    float want[MAX_OUT];
    size_t len;
} program;

static const program programs[] = {
    /* the written tensor, by its old name and by that of the result */
    { "old name", HEAD "a = aten.neg(x)\nb = aten.add_.Tensor(a, 10)\noutput y = a\n", "y", { 9, 8, 7, 6, 5, 4 }, 6 },
    { "result", HEAD "a = aten.neg(x)\nb = aten.add_.Tensor(a, 10)\noutput y = b\n", "y", { 9, 8, 7, 6, 5, 4 }, 6 },
    { "before and after",
      HEAD "a = aten.neg(x)\nc = aten.clone(a)\nb = aten.relu_(a)\ny = aten.add.Tensor(c, a)\noutput y = y\n",
      "y",
      { -1, -2, -3, -4, -5, -6 },
      6 },
    { "through the result",
      HEAD "a = aten.neg(x)\nb = aten.add_.Tensor(a, 1)\nc = aten.mul_.Tensor(b, 2)\noutput y = a\n",
      "y",
      { 0, -2, -4, -6, -8, -10 },
      6 },
    { "twice",
      HEAD "a = aten.neg(x)\nb = aten.add_.Tensor(a, 1)\nc = aten.add_.Tensor(a, a)\noutput y = b\n",
      "y",
      { 0, -2, -4, -6, -8, -10 },
      6 },
    /* a view made before a write to its base, and after */
    { "view of a written base",
      HEAD "a = aten.neg(x)\nv = aten.view(a, [6])\nb = aten.add_.Tensor(a, 10)\noutput y = v\n",
      "y",
      { 9, 8, 7, 6, 5, 4 },
      6 },
    { "view made later",
      HEAD "a = aten.neg(x)\nb = aten.add_.Tensor(a, 10)\nv = aten.view(a, [6])\noutput y = v\n",
      "y",
      { 9, 8, 7, 6, 5, 4 },
      6 },
    { "view of a view",
      HEAD "a = aten.neg(x)\nv = aten.transpose.int(a, 0, 1)\nw = aten.select.int(v, 0, 1)\nb = aten.mul_.Tensor(a, "
           "2)\noutput y = w\n",
      "y",
      { -4, -10 },
      2 },
    { "split of a written base",
      HEAD "a = aten.neg(x)\ns1, s2 = aten.split.Tensor(a, 1)\nb = aten.zero_(a)\nc = aten.add_.Tensor(a, 3)\noutput y "
           "= s2\n",
      "y",
      { 3, 3, 3 },
      3 },
    /* a write through a view */
    { "select",
      HEAD "a = aten.clone(x)\nv = aten.select.int(a, 1, -1)\nb = aten.zero_(v)\noutput y = a\n",
      "y",
      { 1, 2, 0, 4, 5, 0 },
      6 },
    { "slice",
      HEAD "a = aten.clone(x)\nv = aten.slice.Tensor(a, 1, 0, 3, 2)\nb = aten.fill_.Scalar(v, 9)\noutput y = a\n",
      "y",
      { 9, 2, 9, 9, 5, 9 },
      6 },
    { "slice to the end",
      HEAD "a = aten.clone(x)\nv = aten.slice.Tensor(a, 0, 1)\nb = aten.neg_(v)\noutput y = a\n",
      "y",
      { 1, 2, 3, -4, -5, -6 },
      6 },
    { "narrow",
      HEAD "a = aten.clone(x)\nv = aten.narrow(a, 1, 1, 2)\nb = aten.neg_(v)\noutput y = a\n",
      "y",
      { 1, -2, -3, 4, -5, -6 },
      6 },
    { "view",
      HEAD
      "a = aten.clone(x)\nv = aten.view(a, [3, 2])\nw = aten.select.int(v, 0, 1)\nb = aten.zero_(w)\noutput y = a\n",
      "y",
      { 1, 2, 0, 0, 5, 6 },
      6 },
    { "transpose",
      HEAD "a = aten.clone(x)\nv = aten.transpose.int(a, 0, 1)\nw = aten.select.int(v, 0, 1)\nb = "
           "aten.zero_(w)\noutput y = a\n",
      "y",
      { 1, 0, 3, 4, 0, 6 },
      6 },
    { "t",
      HEAD "a = aten.clone(x)\nv = aten.t(a)\nb = aten.mul_.Tensor(v, 2)\noutput y = a\n",
      "y",
      { 2, 4, 6, 8, 10, 12 },
      6 },
    { "permute",
      HEAD "a = aten.view(x, [1, 2, 3])\nc = aten.clone(a)\nv = aten.permute(c, [2, 0, 1])\nw = aten.select.int(v, 0, "
           "0)\nb = aten.zero_(w)\noutput y = c\n",
      "y",
      { 0, 2, 3, 0, 5, 6 },
      6 },
    { "unsqueeze",
      HEAD "a = aten.clone(x)\nv = aten.unsqueeze(a, 0)\nb = aten.neg_(v)\noutput y = a\n",
      "y",
      { -1, -2, -3, -4, -5, -6 },
      6 },
    { "chunk",
      HEAD "a = aten.clone(x)\np, q = aten.chunk(a, 2, 1)\nb = aten.zero_(q)\noutput y = a\n",
      "y",
      { 1, 2, 0, 4, 5, 0 },
      6 },
    { "unbind",
      HEAD
      "a = aten.clone(x)\np, q = aten.unbind.int(a)\nb = aten.zero_(q)\nc = aten.add_.Tensor(p, q)\noutput y = a\n",
      "y",
      { 1, 2, 3, 0, 0, 0 },
      6 },
    { "getitem",
      HEAD "a = aten.clone(x)\np, q = aten.unbind.int(a)\ni = npu.getitem([p, q], index=1)\nb = aten.zero_(i)\noutput "
           "y = a\n",
      "y",
      { 1, 2, 3, 0, 0, 0 },
      6 },
    { "diagonal",
      HEAD "a = aten.clone(x)\nv = aten.diagonal(a)\nb = aten.zero_(v)\noutput y = a\n",
      "y",
      { 0, 2, 3, 4, 0, 6 },
      6 },
    { "as_strided",
      HEAD "a = aten.clone(x)\nv = aten.as_strided(a, [2], [3], 1)\nb = aten.zero_(v)\noutput y = a\n",
      "y",
      { 1, 0, 3, 4, 0, 6 },
      6 },
    { "sibling views",
      HEAD "a = aten.clone(x)\nv = aten.select.int(a, 0, 0)\nw = aten.slice.Tensor(a, 1, 0, 1)\nb = "
           "aten.zero_(v)\noutput y = w\n",
      "y",
      { 0, 4 },
      2 },
    { "detach", HEAD "a = aten.clone(x)\nd = aten.detach(a)\nb = aten.zero_(d)\noutput y = a\n", "y", { 0 }, 6 },
    { "contiguous of a dense tensor",
      HEAD "a = aten.clone(x)\nd = aten.contiguous(a)\nb = aten.zero_(d)\noutput y = a\n",
      "y",
      { 0 },
      6 },
    { "contiguous of a transposed one",
      HEAD "a = aten.clone(x)\nt = aten.t(a)\nd = aten.contiguous(t)\nb = aten.zero_(d)\noutput y = a\n",
      "y",
      { 1, 2, 3, 4, 5, 6 },
      6 },
    { "reshape of a dense tensor",
      HEAD "a = aten.clone(x)\nd = aten.reshape(a, [-1])\nb = aten.zero_(d)\noutput y = a\n",
      "y",
      { 0 },
      6 },
    { "to the same dtype",
      HEAD "a = aten.clone(x)\nd = aten.to.dtype(a, f32)\nb = aten.zero_(d)\noutput y = a\n",
      "y",
      { 0 },
      6 },
    { "a cast is a copy",
      HEAD "a = aten.clone(x)\nd = aten.to.dtype(a, f64)\nb = aten.zero_(d)\noutput y = a\n",
      "y",
      { 1, 2, 3, 4, 5, 6 },
      6 },
    { "expand reads",
      HEAD
      "a = aten.clone(x)\ns = aten.select.int(a, 0, 0)\ne = aten.expand(s, [2, 3])\nb = aten.zero_(s)\noutput y = e\n",
      "y",
      { 0 },
      6 },
    /* dtypes, operands, forms */
    { "keeps its dtype",
      HEAD "a = aten.to.dtype(x, f16)\nb = aten.add_.Tensor(a, x)\ny = aten.to.dtype(a, f32)\noutput y = y\n",
      "y",
      { 2, 4, 6, 8, 10, 12 },
      6 },
    { "comparison in place",
      HEAD "a = aten.clone(x)\nb = aten.gt_.Scalar(a, 3)\noutput y = a\n",
      "y",
      { 0, 0, 0, 1, 1, 1 },
      6 },
    { "copy_",
      HEAD "a = aten.clone(x)\nr = aten.select.int(x, 0, 1)\nb = aten.copy_(a, r)\noutput y = a\n",
      "y",
      { 4, 5, 6, 4, 5, 6 },
      6 },
    { "copy_ to a view",
      HEAD "a = aten.clone(x)\nv = aten.select.int(a, 0, 0)\nr = aten.select.int(x, 0, 1)\nb = aten.copy_(v, "
           "r)\noutput y = a\n",
      "y",
      { 4, 5, 6, 4, 5, 6 },
      6 },
    { "index_put_",
      HEAD "const i : i64[2] {0, 2}\nconst z : f32[] {7}\na = aten.clone(x)\nb = aten.index_put_(a, [none, i], "
           "z)\noutput y = a\n",
      "y",
      { 7, 2, 7, 7, 5, 7 },
      6 },
    { "masked_fill_",
      HEAD "m = aten.gt.Scalar(x, 4)\na = aten.clone(x)\nb = aten.masked_fill_.Scalar(a, m, -1)\noutput y = a\n",
      "y",
      { 1, 2, 3, 4, -1, -1 },
      6 },
    { "clamp_", HEAD "a = aten.clone(x)\nb = aten.clamp_(a, 2, 4)\noutput y = a\n", "y", { 2, 2, 3, 4, 4, 4 }, 6 },
    { "pow_", HEAD "a = aten.clone(x)\nb = aten.pow_.Scalar(a, 2)\noutput y = a\n", "y", { 1, 4, 9, 16, 25, 36 }, 6 },
    { "bernoulli_",
      HEAD "a = aten.empty_like(x)\nb = aten.bernoulli_.float(a, 1)\nc = aten.clone(a)\n"
           "d = aten.bernoulli_.float(a, 0)\ne = aten.add.Tensor(c, a)\noutput y = e\n",
      "y",
      { 1, 1, 1, 1, 1, 1 },
      6 },
    { "bernoulli_ of a half", /* of many that are all 0 or 1, neither all nor none are 1 */
      HEAD "a = aten.full([64], 0.0)\nb = aten.bernoulli_.float(a)\nc = aten.mean(a)\nd = aten.sub.Scalar(c, 0.5)\n"
           "e = aten.abs(d)\nf = aten.lt.Scalar(e, 0.49)\ng = aten._to_copy(f, dtype=f32)\noutput y = g\n",
      "y",
      { 1 },
      1 },
    { "unsqueeze_",
      HEAD
      "a = aten.clone(x)\nb = aten.unsqueeze_(a, 0)\nc = aten.squeeze.dim(a, 0)\nd = aten.zero_(c)\noutput y = b\n",
      "y",
      { 0 },
      6 },
    { "out=",
      HEAD "o = aten.empty_like(x)\nb = aten.add.out(x, x, out=o)\noutput y = o\n",
      "y",
      { 2, 4, 6, 8, 10, 12 },
      6 },
    { "out= of a view",
      HEAD "a = aten.clone(x)\no = aten.select.int(a, 0, 1)\nr = aten.select.int(x, 0, 0)\nb = aten.mul.out(r, r, "
           "out=o)\noutput y = a\n",
      "y",
      { 1, 2, 3, 1, 4, 9 },
      6 },
    { "__iand__",
      HEAD "m = aten.gt.Scalar(x, 2)\nn = aten.lt.Scalar(x, 5)\nb = aten.__iand__.Tensor(m, n)\n"
           "y = aten.to.dtype(m, f32)\noutput y = y\n",
      "y",
      { 0, 0, 1, 1, 0, 0 },
      6 },
    { "__ixor__ of a view",
      HEAD "m = aten.gt.Scalar(x, 2)\nv = aten.select.int(m, 0, 0)\nb = aten.__ixor__.Tensor(v, v)\n"
           "y = aten.to.dtype(m, f32)\noutput y = y\n",
      "y",
      { 0, 0, 0, 1, 1, 1 },
      6 },
    { "out= of two results",
      HEAD "c = aten.clone(x)\nv = aten.select.int(c, 1, 0)\ni = aten.to.dtype(v, i64)\n"
           "p, q = aten.max.dim_max(x, 1, max=v, max_values=i)\noutput y = c\n",
      "y",
      { 3, 2, 3, 6, 5, 6 },
      6 },
    { "values= and indices=",
      HEAD "c = aten.neg(x)\nv = aten.clone(x)\ni = aten.to.dtype(x, i64)\n"
           "p, q = aten.sort.values(c, 1, values=v, indices=i)\ny = aten.add.Tensor(v, i)\noutput y = y\n",
      "y",
      { -1, -1, -1, -4, -4, -4 },
      6 },
    { "unbind",
      HEAD "a = aten.clone(x)\nv, w = aten.unbind.int(a, 0)\nb = aten.zero_(w)\noutput y = a\n",
      "y",
      { 1, 2, 3, 0, 0, 0 },
      6 },
    { "an input",
      HEAD "b = aten.add_.Tensor(x, 1)\ny = aten.mul.Tensor(x, 2)\noutput y = y\n",
      "y",
      { 4, 6, 8, 10, 12, 14 },
      6 },
    { "an input's new content",
      HEAD "b = aten.add_.Tensor(x, 1)\ny = aten.mul.Tensor(x, 2)\noutput y = y\n",
      "x.new",
      { 2, 3, 4, 5, 6, 7 },
      6 },
};

static void test_programs(void)
{
    NPU_ITEM("R1.21");
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        check_text(programs[i].label, programs[i].text, programs[i].output, programs[i].want, programs[i].len);
    }
}

/* Random programs of views and writes against a machine with memory: every tensor is an offset and strides. */
typedef struct machine {
    float memory[4][24];
    struct { int block, rank, dims[3], strides[3], offset; } t[64];
    int num;
} machine;

static float *element(machine *m, int t, int i, int j, int k)
{
    return &m->memory[m->t[t].block]
                     [m->t[t].offset + i * m->t[t].strides[0] + j * m->t[t].strides[1] + k * m->t[t].strides[2]];
}

static int pick(uint64_t *random, int n) { return (int)(npu_test_random(random) % (uint64_t)n); }

/* Appends a view of tensor t, chosen at random, to the program and the machine. */
static void random_view(machine *m, npu_text *text, uint64_t *random, int t)
{
    int r = m->num++, rank = m->t[t].rank, dim = pick(random, rank), other = pick(random, rank);
    m->t[r] = m->t[t];
    switch (pick(random, 4)) {
    case 0: {
        int d = m->t[r].dims[dim], s = m->t[r].strides[dim];
        m->t[r].dims[dim] = m->t[r].dims[other];
        m->t[r].strides[dim] = m->t[r].strides[other];
        m->t[r].dims[other] = d;
        m->t[r].strides[other] = s;
        npu_text_printf(text, "t%d = aten.transpose.int(t%d, %d, %d)\n", r, t, dim, other - rank);
        break;
    }
    case 1: {
        int index = pick(random, m->t[t].dims[dim]);
        if (rank == 1) {
            npu_text_printf(text, "t%d = aten.alias(t%d)\n", r, t);
            break;
        }
        m->t[r].offset += index * m->t[t].strides[dim];
        for (int i = dim; i < 2; i++) {
            m->t[r].dims[i] = m->t[t].dims[i + 1];
            m->t[r].strides[i] = m->t[t].strides[i + 1];
        }
        m->t[r].rank--;
        m->t[r].dims[2] = 1;
        m->t[r].strides[2] = 0;
        npu_text_printf(text, "t%d = aten.select.int(t%d, %d, %d)\n", r, t, dim, index);
        break;
    }
    case 2: {
        int start = pick(random, m->t[t].dims[dim]), step = 1 + pick(random, 2), end = start + 1 + pick(random, 3);
        end = end > m->t[t].dims[dim] ? m->t[t].dims[dim] : end;
        m->t[r].offset += start * m->t[t].strides[dim];
        m->t[r].dims[dim] = (end - start + step - 1) / step;
        m->t[r].strides[dim] *= step;
        npu_text_printf(text, "t%d = aten.slice.Tensor(t%d, %d, %d, %d, %d)\n", r, t, dim, start, end, step);
        break;
    }
    default:
        if (rank == 3) {
            npu_text_printf(text, "t%d = aten.detach(t%d)\n", r, t);
            break;
        }
        for (int i = 2; i > dim; i--) {
            m->t[r].dims[i] = m->t[t].dims[i - 1];
            m->t[r].strides[i] = m->t[t].strides[i - 1];
        }
        m->t[r].rank++;
        m->t[r].dims[dim] = 1;
        m->t[r].strides[dim] = 0;
        npu_text_printf(text, "t%d = aten.unsqueeze(t%d, %d)\n", r, t, dim);
        break;
    }
}

/* t = t alpha + beta in place: as two writes. */
static void random_write(machine *m, npu_text *text, uint64_t *random, int t)
{
    int alpha = pick(random, 3) - 1, beta = pick(random, 9);
    npu_text_printf(text, "w%da = aten.mul_.Tensor(t%d, %d)\nw%db = aten.add_.Tensor(t%d, %d)\n", m->num, t, alpha,
                    m->num, t, beta);
    for (int i = 0; i < m->t[t].dims[0]; i++) {
        for (int j = 0; j < m->t[t].dims[1]; j++) {
            for (int k = 0; k < m->t[t].dims[2]; k++) {
                float *e = element(m, t, i, j, k);
                *e = *e * (float)alpha + (float)beta;
            }
        }
    }
    npu_text_printf(text, "t%d = aten.alias(w%db)\n", m->num, m->num);
    m->t[m->num++] = m->t[t];
}

static void test_random_programs(void)
{
    uint64_t random = npu_test_seed();
    for (int round = 0; round < 60; round++) {
        machine m;
        npu_text text = npu_text_init(NULL);
        char name[16];
        memset(&m, 0, sizeof m);
        npu_text_printf(&text, HEAD "c = aten.clone(x)\nt0 = aten.view(c, [1, 2, 3])\n");
        for (int i = 0; i < 6; i++) {
            m.memory[0][i] = (float)(i + 1);
        }
        m.t[0].rank = 3;
        for (int i = 0, stride = 6; i < 3; i++) {
            m.t[0].dims[i] = i + 1;
            m.t[0].strides[i] = stride /= i + 1;
        }
        m.num = 1;
        for (int step = 0; step < 12; step++) {
            if (pick(&random, 3)) {
                random_view(&m, &text, &random, pick(&random, m.num));
            } else {
                random_write(&m, &text, &random, pick(&random, m.num));
            }
        }
        for (int t = 0; t < m.num; t++) {
            npu_text_printf(&text, "output o%d = t%d\n", t, t);
        }
        for (int t = 0; t < m.num; t++) {
            float want[24];
            size_t len = 0;
            for (int i = 0; i < m.t[t].dims[0]; i++) {
                for (int j = 0; j < m.t[t].dims[1]; j++) {
                    for (int k = 0; k < m.t[t].dims[2]; k++) {
                        want[len++] = *element(&m, t, i, j, k);
                    }
                }
            }
            snprintf(name, sizeof name, "o%d", t);
            check_text("random", text.data, name, want, len);
        }
        npu_text_free(&text);
    }
}

/* A chain of reshapes is walked once, however long: each is a view only if what is before it is dense. */
static void test_long_chain(void)
{
    npu_text text = npu_text_init(NULL);
    NPU_ITEM("F21");
    npu_text_printf(&text, HEAD "v0 = aten.clone(x)\n");
    for (int i = 1; i < 60; i++) {
        npu_text_printf(&text, "v%d = aten.reshape(v%d, [%d, -1])\n", i, i - 1, 1 + i % 3);
    }
    npu_text_printf(&text, "b = aten.add_.Tensor(v59, 1)\noutput y = v0\n");
    check_text("60 reshapes", text.data, "y", (const float[]){ 2, 3, 4, 5, 6, 7 }, 6);
    npu_text_free(&text);
}

/* What cannot be followed is said, not dropped. */
static void test_refused(void)
{
    static const struct { npu_status status; const char *words, *text;
    } rows[] = {
        { NPU_ERR_UNSUPPORTED, "aten.normal_", HEAD "b = aten.normal_(x)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.expand", HEAD "a = aten.expand(x, [2, 2, 3])\nb = aten.zero_(a)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.reshape", HEAD "a = aten.t(x)\nr = aten.reshape(a, [6])\nb = aten.zero_(r)\n" },
        /* elementwise ops keep strides: what they make of a transposed tensor is no row-major one */
        { NPU_ERR_UNSUPPORTED, "aten.reshape", HEAD "t = aten.t(x)\na = aten.relu(t)\nr = aten.reshape(a, [6])\n"
                                                    "b = aten.zero_(r)\noutput y = a\n" },
        { NPU_ERR_UNSUPPORTED, "aten.flatten", HEAD "t = aten.t(x)\nu = aten.relu(t)\na = aten.neg(u)\n"
                                                    "r = aten.flatten.using_ints(a)\nb = aten.zero_(a)\noutput y = r\n" },
        { NPU_ERR_UNSUPPORTED, "aten.reshape",
          HEAD "a = aten.t(x)\nr = aten.reshape(a, [6])\nb = aten.zero_(x)\noutput y = r\n" },
        { NPU_ERR_SHAPE, "shape", HEAD "a = aten.select.int(x, 0, 0)\nb = aten.add_.Tensor(a, x)\n" },
        { NPU_ERR_DTYPE, "f32", HEAD "a = aten.to.dtype(x, i32)\nb = aten.add_.Tensor(a, x)\n" },
        { NPU_ERR_ARITY, "tensors", HEAD "b = aten.add.out(x, x)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.nothing_", HEAD "b = aten.nothing_(x)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.__inothing__", HEAD "b = aten.__inothing__.Tensor(x, x)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.nothing.out", HEAD "o = aten.neg(x)\nb = aten.nothing.out(x, out=o)\n" },
        { NPU_ERR_UNSUPPORTED, "aten.swapdims", HEAD "v = aten.swapdims(x, 0, 1)\nb = aten.zero_(v)\n" },
        { NPU_ERR_ARITY, "writes to 2 tensors, 1 are given",
          HEAD "o = aten.neg(x)\nb = aten.sort.dim_values(x, values=o)\n" },
        { NPU_ERR_ARITY, "results", HEAD "a, b = aten.add_.Tensor(x, x)\n" },
    };
    NPU_ITEM("F21");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_graph *g = NULL;
        npu_diag diag = { 0 };
        NPU_CHECK_STATUS(npu_graph_parse(&g, rows[i].text, strlen(rows[i].text), npu_test_graph_desc(), &diag), rows[i].status);
        NPU_CHECK(g == NULL);
        if (!strstr(diag.message, rows[i].words)) {
            NPU_CHECK_STR(diag.message, rows[i].words);
        }
    }
}

/* A state that is written has that in the next run. */
static void test_state(void)
{
    static const char text[] = "npu_ir 1\ngraph m\nstate s : f32[2]\na = aten.add_.Tensor(s, 1)\noutput y = a\n";
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    for (int i = 1; exec && i < 4; i++) {
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        NPU_CHECK_NEAR(((const float *)npu_exec_output(exec, 0, NULL))[1], i, 0);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* Arguments that a schema marks: the twin returns what it wrote after its other results. */
static void test_marked_arguments(void)
{
    static const char json[] =
        "{\"graph_inputs\": [{\"name\": \"x\", \"shape\": [2, 2], \"dtype\": \"float32\"}],"
        " \"weights\": [{\"name\": \"w\", \"shape\": [2], \"dtype\": \"float32\"}, {\"name\": \"m\", \"shape\": [2], "
        "\"dtype\": \"float32\"},"
        "  {\"name\": \"v\", \"shape\": [2], \"dtype\": \"float32\"}],"
        " \"graph_outputs\": [{\"name\": \"r\", \"shape\": [2], \"dtype\": \"float32\"}],"
        " \"nodes\": [{\"name\": \"n\", \"op_type\": \"aten._native_batch_norm_legit.default\","
        "  \"inputs\": [{\"name\": \"x\"}, {\"name\": \"w\"}, {\"name\": \"w\"}, {\"name\": \"m\"}, {\"name\": \"v\"}],"
        "  \"outputs\": [{\"name\": \"n_0\", \"shape\": [2, 2], \"dtype\": \"float32\"}, {\"name\": \"n_1\", "
        "\"shape\": [2], \"dtype\": \"float32\"},"
        "   {\"name\": \"n_2\", \"shape\": [2], \"dtype\": \"float32\"}], \"attrs\": {\"training\": true, "
        "\"momentum\": 0.5, \"eps\": 1e-05}},"
        "  {\"name\": \"r\", \"op_type\": \"aten.mul.Tensor\", \"inputs\": [{\"name\": \"m\"}],"
        "   \"outputs\": [{\"name\": \"r\", \"shape\": [2], \"dtype\": \"float32\"}], \"attrs\": {\"other\": 2}}]}";
    static const float x[] = { 1, 10, 3, 30 }, w[] = { 1, 1 }, m[] = { 4, 8 }, v[] = { 1, 1 };
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse_json(&g, json, sizeof json - 1, npu_test_graph_desc(), &diag), NPU_OK);
    if (!g) {
        fprintf(stderr, "%s\n", diag.message);
        return;
    }
    npu_graph_bind_param(g, "w", w, sizeof w);
    npu_graph_bind_param(g, "m", m, sizeof m);
    npu_graph_bind_param(g, "v", v, sizeof v);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
    npu_test_input(exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const float *r = (const float *)npu_exec_output(exec, 0, NULL);
    const float *moved = (const float *)npu_exec_find_output(exec, "m.new", NULL);
    NPU_CHECK(r && r[0] == 6 && r[1] == 28);         /* twice the mean of old and new: (4 + 2) / 2, (8 + 20) / 2 */
    NPU_CHECK(moved && moved[0] == 3 && moved[1] == 14);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* What an in-place op does not say, of JSON files: bernoulli_ means a half. */
static void test_implied(void)
{
    static const char json[] =
        "{\"graph_inputs\": [{\"name\": \"x\", \"shape\": [4], \"dtype\": \"float32\"}],"
        " \"graph_outputs\": [{\"name\": \"n\", \"shape\": [4], \"dtype\": \"float32\"}], \"weights\": [],"
        " \"nodes\": [{\"name\": \"n\", \"op_type\": \"aten.bernoulli_.float\", \"inputs\": [{\"name\": \"x\"}],"
        "  \"outputs\": [{\"name\": \"n\", \"shape\": [4], \"dtype\": \"float32\"}], \"attrs\": {}}]}";
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_graph_parse_json(&g, json, sizeof json - 1, npu_test_graph_desc(), &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    NPU_CHECK_STR(g ? npu_op_definition(g, (npu_op){ 1 })->name : "", "aten.bernoulli.p");
    npu_graph_destroy(g);
}

static npu_status deduce_row(npu_deduce *d)
{
    const npu_spec *x = npu_deduce_spec(d, "self");
    npu_spec y = npu_spec_tensor((npu_dtype)x->dtype, 1, x->dims + 1);
    return npu_deduce_add_result(d, &y);
}

/* A write goes through a view that an op from outside made, where its row says which part of its operand that is. */
static void test_registered_view(void)
{
    static const char text[] = HEAD "a = aten.neg(x)\nv = my.row(a, 0, 1)\nb = aten.add_.Tensor(v, 10)\noutput y = a\n";
    static const struct { uint32_t traits; npu_status status; const char *op; } cases[] = {
        { 0, NPU_ERR_UNSUPPORTED, "" }, { NPU_ALIAS_SELECTED, NPU_OK, "aten.select_scatter.default" }
    };
    NPU_ITEM("F49");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        npu_op_row row = { NPU_NS_USER << 16, cases[i].traits, deduce_row, "row(Tensor(a) self, int dim, int index) -> Tensor(a)",
                           "a row", NULL };
        npu_graph_desc desc = { 0 };
        npu_registry *registry = NULL;
        npu_graph *g = NULL;
        NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
        NPU_CHECK_STATUS(npu_registry_add(registry, "my", &row, NULL), NPU_OK);
        desc.registry = registry;
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, &desc, NULL), cases[i].status);
        if (g) {
            npu_op last = { npu_graph_num_ops(g) };
            NPU_CHECK_STR(npu_op_definition(g, last)->name, cases[i].op);
        }
        npu_graph_destroy(g);
        npu_registry_destroy(registry);
    }
}

int main(void)
{
    NPU_RUN(test_programs);
    NPU_RUN(test_random_programs);
    NPU_RUN(test_long_chain);
    NPU_RUN(test_refused);
    NPU_RUN(test_state);
    NPU_RUN(test_marked_arguments);
    NPU_RUN(test_implied);
    NPU_RUN(test_registered_view);
    return npu_test_done();
}
