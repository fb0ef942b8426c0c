/* test_views.c - results without memory: those that are read where their operand is, at strides (random views under
   random readers), and those whose planes the next op takes as they come. The same graph with such a result among its
   outputs, where it has to be made, is what results are compared with. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

enum { MAX_RANK = 4, MAX_LEN = 80000, ROUNDS = 400 };

#define COUNT(a) (sizeof a / sizeof a[0])

static uint64_t seed;
static uint32_t below(uint32_t n) { return (uint32_t)(npu_test_random(&seed) % n); }

/* Dims of the value that the text has come to. */
typedef struct shape {
    uint32_t rank;
    int64_t dims[NPU_MAX_RANK];
} shape;

static int64_t shape_len(const shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++) {
        n *= s->dims[i];
    }
    return n;
}

static shape random_shape(void)
{
    static const int64_t dims[] = { 1, 2, 3, 8, 17, 40, 130, 300 };
    shape s;
    do {
        s.rank = 1 + below(MAX_RANK);
        for (uint32_t i = 0; i < s.rank; i++) {
            s.dims[i] = dims[below(8)];
        }
    } while (shape_len(&s) > MAX_LEN);
    return s;
}

static void write_dims(npu_text *text, const shape *s)
{
    npu_text_printf(text, "[");
    for (uint32_t i = 0; i < s->rank; i++) {
        npu_text_printf(text, "%s%d", i ? "," : "", (int)s->dims[i]);
    }
    npu_text_printf(text, "]");
}

/* ---- views: each writes an op whose operand is t<from>, and changes the shape ------------------------------------- */

static void view_permute(npu_text *text, unsigned from, shape *s)
{
    shape old = *s, order = *s;
    for (uint32_t i = 0; i < s->rank; i++) {
        uint32_t k = below(i + 1);
        order.dims[i] = order.dims[k];
        order.dims[k] = i;
    }
    for (uint32_t i = 0; i < s->rank; i++) {
        s->dims[i] = old.dims[order.dims[i]];
    }
    npu_text_printf(text, "aten.permute.default(t%u, ", from);
    write_dims(text, &order);
    npu_text_printf(text, ")\n");
}

static void view_slice(npu_text *text, unsigned from, shape *s)
{
    uint32_t dim = below(s->rank), step = 1 + below(3), start = below((uint32_t)s->dims[dim]);
    npu_text_printf(text, "aten.slice.Tensor(t%u, %u, %u, 1000, %u)\n", from, (unsigned)dim, (unsigned)start, (unsigned)step);
    s->dims[dim] = (s->dims[dim] - (int64_t)start + step - 1) / step;
}

static void view_flip(npu_text *text, unsigned from, shape *s)
{
    npu_text_printf(text, "aten.flip.default(t%u, [%u])\n", from, (unsigned)below(s->rank));
}

static void view_select(npu_text *text, unsigned from, shape *s)
{
    uint32_t dim = below(s->rank);
    npu_text_printf(text, "aten.select.int(t%u, %u, -1)\n", from, (unsigned)dim);
    for (s->rank--; dim < s->rank; dim++) {
        s->dims[dim] = s->dims[dim + 1];
    }
}

static void view_expand(npu_text *text, unsigned from, shape *s)
{
    shape old = *s;
    s->dims[0] = 5;
    for (uint32_t i = 0; i < old.rank; i++) {
        s->dims[i + 1] = old.dims[i] == 1 ? 3 : old.dims[i];
    }
    s->rank++;
    npu_text_printf(text, "aten.expand.default(t%u, ", from);
    write_dims(text, s);
    npu_text_printf(text, ")\n");
}

static void view_unfold(npu_text *text, unsigned from, shape *s)
{
    uint32_t dim = below(s->rank);
    int64_t size = s->dims[dim] > 1 ? 2 : 1;
    npu_text_printf(text, "aten.unfold.default(t%u, %u, %d, 1)\n", from, (unsigned)dim, (int)size);
    s->dims[dim] -= size - 1;
    s->dims[s->rank++] = size;
}

static void view_diagonal(npu_text *text, unsigned from, shape *s)
{
    uint32_t last = s->rank - 1;
    npu_text_printf(text, "aten.diagonal.default(t%u, 0, 0, %u)\n", from, (unsigned)last);
    int64_t n = s->dims[0] < s->dims[last] ? s->dims[0] : s->dims[last];
    for (uint32_t i = 1; i < last; i++) {
        s->dims[i - 1] = s->dims[i];
    }
    s->dims[--s->rank - 1] = n;
}

static const struct {
    void (*write)(npu_text *text, unsigned from, shape *s);
    uint32_t least, most; /* rank */
} views[] = {
    { view_permute, 2, 8 }, { view_permute, 2, 8 }, { view_permute, 2, 8 }, { view_slice, 1, 8 }, { view_flip, 1, 8 },
    { view_select, 2, 8 }, { view_expand, 1, 4 }, { view_unfold, 1, 4 }, { view_diagonal, 2, 8 }
};

/* ---- readers: @ is the view, # a dim of it ------------------------------------------------------------------------ */

static const char *const readers[] = {
    "y = aten.neg.default(@)\n",
    "y = aten.clamp.default(@, 0, 2)\n",
    "y = aten.to.dtype(@, f64)\n",
    "y = aten.to.dtype(@, u8)\n",
    "y = aten.lt.Scalar(@, 1)\n",
    "y = aten.mul.Tensor(@, @)\n",
    "s = aten.abs.default(@)\ny = aten.sub.Tensor(@, s)\n",
    "s = aten.gt.Scalar(@, 0)\nu = aten.add.Scalar(@, 3)\ny = aten.where.self(s, @, u)\n",
    "s = aten.select.int(@, 0, 0)\ny = aten.maximum.default(s, @)\n",
    "s = aten.sum.default(t0)\ny = aten.add.Tensor(@, s)\n",
    "y = aten.sum.dim_IntList(@, [#])\n",
    "y = aten.sum.default(@)\n",
    "y = aten.mean.dim(@, [#], false, dtype=f32)\n",
    "y = aten.amax.default(@, [#])\n",
    "y = aten.any.dim(@, #)\n",
    "y = aten.count_nonzero.dim_IntList(@, [#])\n",
    "y = aten.cumsum.default(@, #)\n"
};

static void write_reader(npu_text *text, const char *reader, unsigned view, const shape *s)
{
    for (; *reader; reader++) {
        if (*reader == '@') {
            npu_text_printf(text, "t%u", view);
        } else if (*reader == '#') {
            npu_text_printf(text, "%u", (unsigned)below(s->rank));
        } else {
            npu_text_printf(text, "%.1s", reader);
        }
    }
}

/* Up to three views of -x and a reader of the last, the number of which is returned. */
static unsigned random_graph(npu_text *text, const char *dtype)
{
    shape s = random_shape();
    unsigned count = 1 + below(3), from = 0;
    npu_text_printf(text, "npu_ir 1\ngraph main\ninput x : %s", dtype);
    write_dims(text, &s);
    npu_text_printf(text, "\nt0 = aten.neg.default(x)\n");
    while (from < count) {
        uint32_t k = below((uint32_t)COUNT(views));
        if (s.rank >= views[k].least && s.rank <= views[k].most) {
            npu_text_printf(text, "t%u = ", from + 1);
            views[k].write(text, from++, &s);
        }
    }
    write_reader(text, readers[below((uint32_t)COUNT(readers))], count, &s);
    npu_text_printf(text, "output y = y\n");
    return count;
}

/* ---- running ------------------------------------------------------------------------------------------------------ */

/* Whole numbers: whatever the order, sums are the same. */
static void *random_data(const npu_spec *spec, size_t *size)
{
    size_t len = 0;
    npu_spec_len(spec, &len);
    npu_spec_size(spec, size);
    uint8_t *data = (uint8_t *)malloc(*size + 1);
    for (size_t i = 0; i < len && data; i++) {
        int32_t whole = (int32_t)below(7) - 3;
        float x = (float)whole;
        double wide = (double)x;
        int64_t longest = whole;
        uint16_t half = spec->dtype == NPU_BF16 ? npu_f32_to_bf16(x) : npu_f32_to_f16(x);
        switch (spec->dtype) {
        case NPU_F32: memcpy(data + 4 * i, &x, 4); break;
        case NPU_F64: memcpy(data + 8 * i, &wide, 8); break;
        case NPU_I32: memcpy(data + 4 * i, &whole, 4); break;
        case NPU_I64: memcpy(data + 8 * i, &longest, 8); break;
        case NPU_U8: data[i] = (uint8_t)whole; break;
        default: memcpy(data + 2 * i, &half, 2); break;
        }
    }
    return data;
}

static npu_exec *make_exec(npu_graph **g, const npu_backend *cpu, const npu_text *text, const void *data, size_t size)
{
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_graph_parse(g, text->data, text->len, npu_test_graph_desc(), &diag);
    status = status ? status : npu_exec_create_simple(&exec, *g, &cpu, 1, &diag);
    status = status ? status : npu_test_input_at(exec, 0, data, size);
    status = status ? status : npu_exec_run(exec);
    if (status) {
        fprintf(stderr, "%s%s\n", text->data, diag.message);
    }
    NPU_CHECK_STATUS(status, NPU_OK);
    return exec;
}

/* True where the view was none of the program's values. */
static bool check_graph(const npu_text *text, unsigned view, const npu_backend *cpu)
{
    npu_graph *g[2] = { NULL, NULL };
    npu_text made = npu_text_init(NULL);
    npu_diag diag;
    char name[16];
    snprintf(name, sizeof name, "t%u", view);
    npu_text_printf(&made, "%soutput z = %s\n", text->data, name);
    NPU_CHECK_STATUS(npu_graph_parse(&g[0], text->data, text->len, npu_test_graph_desc(), &diag), NPU_OK);
    if (!g[0]) {
        fprintf(stderr, "%s%s\n", text->data, diag.message);
        npu_text_free(&made);
        return false;
    }
    size_t in_size = 0, size[2] = { 0, 0 };
    void *data = random_data(npu_value_spec(g[0], npu_graph_input(g[0], 0)), &in_size);
    npu_graph_destroy(g[0]);
    npu_exec *strided = make_exec(&g[0], cpu, text, data, in_size);
    npu_exec *dense = make_exec(&g[1], cpu, &made, data, in_size);
    const void *got = npu_exec_output(strided, 0, &size[0]), *expected = npu_exec_output(dense, 0, &size[1]);
    bool same = size[0] == size[1] && memcmp(got, expected, size[0]) == 0;
    NPU_CHECK_THAT(same, "%lu bytes, expected %lu, of\n%s", (unsigned long)size[0], (unsigned long)size[1], text->data);
    if (!same && size[0] == size[1]) {
        NPU_CHECK_BYTES(got, expected, size[0]);
    }
    bool is_view = npu_exec_value_address(strided, npu_graph_find(g[0], name), 0) == NULL;
    NPU_CHECK(npu_exec_value_address(dense, npu_graph_find(g[1], name), 0) != NULL);
    npu_exec_destroy(strided);
    npu_exec_destroy(dense);
    npu_graph_destroy(g[0]);
    npu_graph_destroy(g[1]);
    npu_text_free(&made);
    free(data);
    return is_view;
}

static void test_random(void)
{
    static const char *const dtypes[] = { "f32", "f64", "f16", "bf16", "i64", "i32", "u8" };
    npu_ref_desc desc;
    npu_backend *plain = NULL;
    memset(&desc, 0, sizeof desc);
    desc.variant = "plain";
    NPU_CHECK_STATUS(npu_ref_create(&plain, &desc), NPU_OK);
    int num_views = 0;
    for (int i = 0; i < ROUNDS && plain; i++) {
        npu_text text = npu_text_init(NULL);
        unsigned view = random_graph(&text, dtypes[below((uint32_t)COUNT(dtypes))]);
        num_views += check_graph(&text, view, i % 4 ? npu_ref_backend() : plain);
        npu_text_free(&text);
    }
    NPU_CHECK_THAT(num_views > ROUNDS / 16, "%d of %d", num_views, ROUNDS); /* most sums of floats want a copy */
    npu_ref_destroy(plain);
}

/* What must not be a view, or must not be overwritten while one is read. */
static void test_kept(void)
{
#define HEAD "npu_ir 1\ngraph main\ninput x : f32[40,300]\nt0 = aten.neg.default(x)\n"
#define FLIP HEAD "t1 = aten.flip.default(t0, [0])\n"
#define TURN HEAD "t1 = aten.t.default(t0)\n"
    static const struct { const char *text; bool is_view; } rows[] = {
        { FLIP "y = aten.add.Tensor(t0, t1)\noutput y = y\n", true },
        { FLIP "s = aten.add.Tensor(t0, t1)\ny = aten.abs.default(s)\noutput y = y\n", true },
        { FLIP "s = aten.add.Tensor(t1, t0)\ny = aten.mul.Tensor(s, t1)\noutput y = y\n", true },
        { FLIP "y = aten.view.default(t1, [12000])\noutput y = y\n", false },
        { FLIP "s = aten.abs.default(t1)\nu = aten.clone.default(t1)\ny = aten.add.Tensor(s, u)\noutput y = y\n", false },
        { FLIP "s = aten.softmax.int(t1, 1)\ny = aten.round.default(s)\noutput y = y\n", false },
        { TURN "y = aten.abs.default(t1)\noutput y = y\n", false },
        { TURN "y = aten.sum.dim_IntList(t1, [1])\noutput y = y\n", false }, /* its order would be another */
        { TURN "y = aten.amax.default(t1, [0])\noutput y = y\n", true },
        { HEAD "t1 = aten.select.int(t0, 0, 7)\ny = aten.abs.default(t1)\noutput y = y\n", false },
        { "npu_ir 1\ngraph main\ninput t0 : f32[40,300]\nt1 = aten.flip.default(t0, [0])\ny = aten.abs.default(t1)\n"
          "output y = y\n", true }
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        npu_text text = npu_text_init(NULL);
        npu_text_printf(&text, "%s", rows[i].text);
        NPU_CHECK_EQ(check_graph(&text, 1, npu_ref_backend()), rows[i].is_view);
        npu_text_free(&text);
    }
}

/* The memory of an input is no place for a result that is made from its view. */
static void test_bound_memory(void)
{
    static const char text[] = "npu_ir 1\ngraph main\ninput x : f32[2,300]\nt = aten.flip.default(x, [0])\n"
                               "y = aten.add.Tensor(x, t)\noutput y = y\n";
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    float x[600], y[600];
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    for (size_t i = 0; i < 600; i++) {
        x[i] = (float)i;
    }
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output_at(exec, 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_exec_set_output_at(exec, 0, y, sizeof y), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    NPU_CHECK_EQ(y[1], 1 + 301);
    NPU_CHECK_EQ(y[599], 599 + 299);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* A part of one element or none has any step, also one that no stride could hold. */
static void test_huge_steps(void)
{
    NPU_ITEM("F60");
    static const struct { const char *op; float want[12]; } rows[] = {
        { "y = aten.slice.Tensor(x, 0, 2, 9223372036854775807, 8349698388501780889)", { 9, 10, 11, 12 } },
        { "y = aten.slice.Tensor(x, 1, 1, 4, 9223372036854775807)", { 2, 6, 10 } },
        { "a = aten.slice.Tensor(x, 0, 2, 3, 8349698388501780889)\ny = aten.transpose.int(a, 0, 1)", { 9, 10, 11, 12 } },
        { "a = aten.slice.Tensor(x, 0, 2, 3)\ny = aten.slice_scatter.default(x, a, 0, 0, 1, 8349698388501780889)",
          { 9, 10, 11, 12, 5, 6, 7, 8, 9, 10, 11, 12 } } };
    static const float x[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[300];
        npu_graph *g = NULL;
        npu_exec *exec = NULL;
        const npu_backend *cpu = npu_ref_backend();
        npu_diag diag;
        size_t size = 0;
        snprintf(text, sizeof text, "graph g\ninput x : f32[3,4]\n%s\noutput y = y\n", rows[i].op);
        NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), npu_test_graph_desc(), &diag), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
        NPU_CHECK_STATUS(npu_test_input(exec, "x", x, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
        const float *y = (const float *)npu_exec_output(exec, 0, &size);
        NPU_CHECK(y && memcmp(y, rows[i].want, size) == 0);
        npu_exec_destroy(exec);
        npu_graph_destroy(g);
    }
}

/* ---- planes that are taken as they come ---- */

typedef struct stream {
    const char *first;            /* after the first convolution, which makes c; its result is m */
    int64_t images, from, to, side, taps, stride, pad;
    const char *behind;           /* after the second one, which makes d; its result is y */
    bool streams, is_fed;         /* is_fed: an op makes the weights of the first one */
    int64_t step, groups;         /* of the first one, which has 3 x 3 taps; 0: one tap */
    const char *pool;             /* in place of the second one, from m to d */
} stream;

/* n numbers from -2 to 2. */
static float *random_floats(size_t n)
{
    float *x = (float *)malloc((n + 1) * sizeof *x);
    for (size_t i = 0; x && i < n; i++) {
        x[i] = (float)((int32_t)below(2001) - 1000) / 500;
    }
    return x;
}

static int64_t stream_weights(const stream *s) { return s->from * s->to * (s->step ? 9 / s->groups : 1); }

/* The graph: x of i, c = one tap or 3 x 3 of x, m = `first` of c, d = a sum of each plane of m, y = `behind` of d. */
static npu_graph *stream_graph(const stream *s, bool shows, float *const w[4])
{
    static const char *const names[] = { "k", "b", "p", "q" };
    size_t sizes[] = { (size_t)stream_weights(s), (size_t)s->to, (size_t)(s->to * s->taps * s->taps), (size_t)s->to };
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag;
    npu_text_printf(&text, "graph main\ninput i : f32[%lld,%lld,%lld,%lld]\nparam k : f32[%lld,%lld,%d,%d]\n"
                           "param b : f32[%lld]\nparam p : f32[%lld,1,%lld,%lld]\nparam q : f32[%lld]\n",
                    (long long)s->images, (long long)s->from, (long long)s->side, (long long)s->side, (long long)s->to,
                    (long long)(s->from / (s->step ? s->groups : 1)), s->step ? 3 : 1, s->step ? 3 : 1,
                    (long long)s->to, (long long)s->to, (long long)s->taps, (long long)s->taps, (long long)s->to);
    npu_text_printf(&text, "j = aten.abs.default(k)\nx = aten.neg.default(i)\nc = aten.conv2d.default(x, %s, b",
                    s->is_fed ? "j" : "k");
    if (s->step) {
        npu_text_printf(&text, ", [%d, %d], [1, 1], [1, 1], %d", (int)s->step, (int)s->step, (int)s->groups);
    }
    npu_text_printf(&text, ")\n%s\n", s->first);
    if (s->pool) {
        npu_text_printf(&text, "%s\n", s->pool);
    } else {
        npu_text_printf(&text, "d = aten.conv2d.default(m, p, q, [%lld, %lld], [%lld, %lld], [1, 1], %lld)\n",
                        (long long)s->stride, (long long)s->stride, (long long)s->pad, (long long)s->pad,
                        (long long)s->to);
    }
    npu_text_printf(&text, "%s\noutput y = y\n%s", s->behind, shows ? "output m = m\n" : "");
    NPU_CHECK_STATUS(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), &diag), NPU_OK);
    for (int i = 0; g && i < 4; i++) {
        NPU_CHECK_STATUS(npu_graph_bind_param(g, names[i], w[i], sizes[i] * sizeof(float)), NPU_OK);
    }
    npu_text_free(&text);
    return g;
}

/* Runs g on `cpu`, twice where two runs have to be the same; its y goes to *y. Returns bytes that are planned, outputs among
   them. */
static uint64_t stream_run(npu_graph *g, const npu_backend *cpu, uint32_t planned, npu_parallel *threads, const float *x,
                           size_t size, float **y, size_t *len, bool *has_place)
{
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1, .num_workers = planned };
    npu_exec_desc exec_desc = { .parallel = threads };
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_plan *plan = NULL;
    npu_memory memory;
    size_t bytes = 0;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_plan_validate(npu_program_plan(program), NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&exec, program, &exec_desc, NULL), NPU_OK);
    for (int run = 0; run < 2; run++) {
        NPU_CHECK_STATUS(npu_test_input_at(exec, 0, x, size), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    }
    const void *got = npu_exec_output(exec, 0, &bytes);
    *y = (float *)malloc(bytes + 1), *len = bytes / sizeof **y;
    memcpy(*y, got, bytes);
    *has_place = npu_exec_value_address(exec, npu_graph_find(g, "m"), 0) != NULL;
    NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(program), 0, &memory), NPU_OK);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return memory.activations + memory.outputs;
}

static void check_stream(const stream *s, const npu_backend *cpu, const char *isa)
{
    size_t n = (size_t)(s->images * s->from * s->side * s->side), len[2];
    float *w[4] = { random_floats((size_t)stream_weights(s)), random_floats((size_t)s->to),
                    random_floats((size_t)(s->to * s->taps * s->taps)), random_floats((size_t)s->to) };
    float *x = random_floats(n), *y[2];
    npu_graph *shown = stream_graph(s, true, w), *hidden = stream_graph(s, false, w);
    bool has_place;
    uint64_t most = stream_run(shown, cpu, 1, NULL, x, n * sizeof *x, &y[0], &len[0], &has_place);
    NPU_CHECK(has_place || !s->images);
    for (uint32_t width = 1; width <= 4; width++) { /* memory for two threads is planned, and for others not */
        npu_parallel *threads = NULL;
        if (width > 1) {
            NPU_CHECK_STATUS(npu_threads_create(&threads, &(npu_threads_desc){ .width = width }), NPU_OK);
        }
        uint64_t bytes = stream_run(hidden, cpu, width < 2 ? 1 : 2, threads, x, n * sizeof *x, &y[1], &len[1],
                                    &has_place);
        bool same = len[0] == len[1] && memcmp(y[0], y[1], len[0] * sizeof *y[0]) == 0;
        NPU_CHECK_THAT(same, "%s, %u threads: %lld x %lld of %lld pixels, %s, %s", isa, (unsigned)width,
                       (long long)s->images, (long long)s->to, (long long)s->side, s->first, s->behind);
        if (s->images && strncmp(isa, "avx", 3) == 0) { /* which has loops for planes, */
            bool streams = s->streams && (!s->step || strncmp(isa, "avx2", 4) != 0); /* and for sums of some of them, or not */
            NPU_CHECK_THAT(has_place != streams, "%s: %s, %s, %s, %d threads", isa, s->first, s->pool ? s->pool : "planes",
                           s->behind, (int)width);
            NPU_CHECK_THAT(!streams || width > 1 || bytes < most, "%llu bytes, with the planes %llu",
                           (unsigned long long)bytes, (unsigned long long)most);
        }
        free(y[1]);
        npu_threads_destroy(threads);
    }
    for (int i = 0; i < 4; i++) {
        free(w[i]);
    }
    free(x), free(y[0]);
    npu_graph_destroy(shown);
    npu_graph_destroy(hidden);
}

static void test_streams(void)
{
#define CLAMP "m = aten.hardtanh.default(c, -2.0, 6.0)"
#define LAST "y = aten.relu.default(d)"
#define POOL(size, step, pad) "d = aten.max_pool2d.default(m, [" size "], [" step "], [" pad "])"
    static const stream rows[] = {
        { CLAMP, 1, 16, 96, 112, 3, 2, 1, LAST, true, false, 0, 0, NULL },
        { CLAMP, 1, 24, 145, 57, 3, 1, 1, "y = aten.hardswish.default(d)", true, false, 0, 0, NULL },
        { "m = aten.silu.default(c)", 3, 5, 50, 80, 5, 2, 2, LAST, true, false, 0, 0, NULL },
        { "m = aten.hardswish.default(c)", 2, 8, 73, 64, 3, 1, 0, LAST, true, false, 0, 0, NULL },
        /* the second one's sum with what the first one reads */
        { CLAMP, 2, 64, 64, 70, 3, 1, 1, "y = aten.add.Tensor(d, x)", true, false, 0, 0, NULL },
        { CLAMP, 2, 64, 64, 70, 3, 1, 1, "s = aten.add.Tensor(x, d)\ny = aten.neg.default(s)", true, false, 0, 0, NULL },
        { CLAMP, 1, 64, 64, 70, 3, 1, 1, "s = aten.mul.Tensor(d, x)\ny = aten.add.Tensor(s, x)", true, false, 0, 0, NULL },
        /* sums of some planes, and pools, of windows that overlap, of all pixels and by rows that are folded */
        { CLAMP, 1, 3, 32, 230, 3, 1, 1, LAST, true, false, 2, 1, NULL },
        { "m = aten.silu.default(c)", 2, 3, 45, 201, 5, 2, 2, LAST, true, false, 2, 1, NULL },
        { CLAMP, 1, 48, 48, 90, 3, 1, 1, LAST, true, false, 1, 3, NULL },
        { CLAMP, 1, 3, 64, 160, 0, 0, 0, LAST, true, false, 2, 1, POOL("3, 3", "2, 2", "0, 0") },
        { CLAMP, 2, 16, 65, 80, 0, 0, 0, LAST, true, false, 0, 0, POOL("3, 3", "2, 2", "1, 1") },
        { CLAMP, 2, 16, 96, 60, 0, 0, 0, LAST, true, false, 0, 0,
          "d = aten.avg_pool2d.default(m, [5, 5], [1, 1], [2, 2])" },
        { CLAMP, 1, 16, 96, 60, 0, 0, 0, "y, u = aten.max_pool2d_with_indices.default(m, [2, 2])", false, false, 0, 0,
          "d = aten.relu.default(m)" },
        { CLAMP, 1, 3, 64, 160, 0, 0, 0, LAST, false, false, 2, 1, POOL("3, 3", "3, 3", "0, 0") },
        /* another reader, small planes, another op between, no image, weights that are made */
        { CLAMP, 1, 16, 96, 112, 3, 2, 1, "u = aten.sum.default(m)\ny = aten.add.Tensor(d, u)", false, false, 0, 0, NULL },
        { CLAMP, 1, 16, 96, 40, 3, 1, 1, LAST, false, false, 0, 0, NULL },
        { "a = aten.relu.default(c)\nm = aten.tanh.default(a)", 1, 16, 96, 112, 3, 2, 1, LAST, false, false, 0, 0, NULL },
        { CLAMP, 0, 16, 96, 112, 3, 2, 1, LAST, false, false, 0, 0, NULL },
        { CLAMP, 1, 16, 96, 112, 3, 2, 1, LAST, false, true, 0, 0, NULL },
    };
    for (uint32_t k = 0; npu_ref_isa(k); k++) {
        npu_backend *cpu = NULL;
        NPU_CHECK_STATUS(npu_ref_create(&cpu, &(npu_ref_desc){ .isa = npu_ref_isa(k) }), NPU_OK);
        for (size_t i = 0; cpu && i < COUNT(rows); i++) {
            check_stream(&rows[i], cpu, npu_ref_isa(k));
        }
        npu_ref_destroy(cpu);
    }
}

/* ---- planes of kernels of one's own ---- */

enum { PLANES_OF_IMAGE = 3, PLANES = 2 * PLANES_OF_IMAGE, PLANE = 300 * 300 };
/* A build with loops for no other set than "base" has each op by itself. */
#if defined(__GNUC__) && !defined(NPU_IR_NO_ISA) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__))
enum { TAKES_PLANES = 1 };
#else
enum { TAKES_PLANES = 0 };
#endif

static npu_planes own_planes[2]; /* of neg, and of abs behind it */
static int own_fails;            /* which of the two planes fail, 0 = none */

static void own_range(const npu_launch *l, int which, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n && l->out[0].dtype == NPU_F32; i++) {
        float x = ((const float *)l->x[0])[i];
        ((float *)l->y[0])[i] = which ? (x < 0 ? -x : x) : -x;
    }
    for (int64_t i = first; i < first + n && l->out[0].dtype == NPU_F64; i++) {
        double x = ((const double *)l->x[0])[i];
        ((double *)l->y[0])[i] = which ? (x < 0 ? -x : x) : -x;
    }
}

static npu_status own_neg(const npu_launch *l, uint32_t part, uint32_t parts)
{
    own_range(l, 0, 0, part == 0 && parts == 1 ? (int64_t)PLANES * PLANE : 0);
    return NPU_OK;
}

static npu_status own_abs(const npu_launch *l, uint32_t part, uint32_t parts)
{
    own_range(l, 1, 0, part == 0 && parts == 1 ? (int64_t)PLANES * PLANE : 0);
    return NPU_OK;
}

static npu_status own_some(const npu_launch *l, int which, int64_t first, int64_t n)
{
    own_range(l, which, first * PLANE, n * PLANE);
    return own_fails == which + 1 ? npu_launch_fail(l, NPU_ERR_RANGE, "plane %d is odd", (int)first) : NPU_OK;
}

static npu_status own_neg_planes(const npu_launch *l, int64_t first, int64_t n) { return own_some(l, 0, first, n); }
static npu_status own_abs_planes(const npu_launch *l, int64_t first, int64_t n) { return own_some(l, 1, first, n); }

static uint32_t own_befores;
static npu_status own_before(const npu_launch *l, uint32_t part, uint32_t parts)
{
    (void)l;
    own_befores += part + 1 == parts;
    return NPU_OK;
}

static npu_status own_prepare(npu_prepare *p)
{
    p->planes = own_planes[p->mode];
    return NPU_OK;
}

/* As if there were no parts of anything. */
static npu_status own_prepare_none(npu_prepare *p)
{
    p->before = own_before;
    p->parts = p->before_parts = 0;
    return NPU_OK;
}

static const npu_kernel own_kernels[] = {
    { .kind = NPU_ATEN_NEG, .variant = "own", .prepare = own_prepare, .launch = own_neg, .mode = 0 },
    { .kind = NPU_ATEN_ABS, .variant = "own", .prepare = own_prepare, .launch = own_abs, .mode = 1 },
};
static const npu_kernel own_partless[] = {
    { .kind = NPU_ATEN_NEG, .variant = "own", .prepare = own_prepare_none, .launch = own_neg, .mode = 0 },
};

/* What the planes say, which is what the run makes of them: `streams` = both ops run together. */
static void check_planes(const npu_backend *cpu, npu_planes first, npu_planes second, const char *dtype, bool streams,
                         int fails)
{
    char text[200];
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    bool is_wide = strcmp(dtype, "f64") == 0;
    size_t size = is_wide ? sizeof(double) : sizeof(float), bytes = PLANES * PLANE * size, got = 0;
    uint8_t *x = (uint8_t *)malloc(bytes);
    own_planes[0] = first, own_planes[1] = second, own_fails = fails;
    streams = streams && TAKES_PLANES, fails = TAKES_PLANES ? fails : 0;
    for (size_t i = 0; i < PLANES * PLANE; i++) {
        float single = (float)(i % 1009) - 500.0f;
        double twice = (double)single;
        memcpy(x + i * size, is_wide ? (const void *)&twice : (const void *)&single, size);
    }
    snprintf(text, sizeof text, "graph main\ninput x : %s[2,%d,300,300]\nm = aten.neg.default(x)\n"
                                "y = aten.abs.default(m)\noutput y = y\n", dtype, PLANES_OF_IMAGE);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, strlen(text), NULL, NULL), NPU_OK);
    NPU_CHECK_THAT(npu_exec_create_simple(&exec, g, &cpu, 1, &diag) == NPU_OK, "%s", diag.message);
    NPU_CHECK_STATUS(npu_test_input_at(exec, 0, x, bytes), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), fails ? NPU_ERR_RANGE : NPU_OK);
    NPU_CHECK(!fails || strstr(npu_exec_diag(exec)->message, "is odd"));
    NPU_CHECK((npu_exec_value_address(exec, npu_graph_find(g, "m"), 0) == NULL) == streams);
    const uint8_t *y = (const uint8_t *)npu_exec_output(exec, 0, &got);
    NPU_CHECK_EQ(got, fails ? 0 : bytes);
    for (size_t i = 0; y && !fails && i < PLANES * PLANE; i++) {
        double want = i % 1009 < 500 ? 500.0 - (double)(i % 1009) : (double)(i % 1009) - 500.0;
        double have = is_wide ? ((const double *)y)[i] : (double)((const float *)y)[i];
        if (have != want) {
            NPU_CHECK_THAT(false, "element %u is %g, expected %g", (unsigned)i, have, want);
            break;
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    free(x);
}

/* What fits the result runs plane by plane, in any steps; what does not counts as if there were none. */
static void test_own_planes(void)
{
    static const struct { int64_t num, of_image, step; bool streams; } rows[] = {
        { PLANES, PLANES_OF_IMAGE, 1, true }, { PLANES, PLANES_OF_IMAGE, 2, true }, { PLANES, PLANES_OF_IMAGE, 3, true },
        { PLANES, PLANES_OF_IMAGE, 4, true }, { PLANES, PLANES_OF_IMAGE, INT64_MAX, true },
        { PLANES, PLANES_OF_IMAGE, 0, false }, { PLANES, PLANES_OF_IMAGE, -1, false },
        { PLANES, PLANES_OF_IMAGE, INT64_MIN, false }, { 0, PLANES_OF_IMAGE, 1, false }, { PLANES, 0, 1, false },
        { -PLANES, PLANES_OF_IMAGE, 1, false }, { PLANES, -PLANES_OF_IMAGE, 1, false }, { PLANES, 2, 1, false },
        { PLANES - 1, PLANES_OF_IMAGE, 1, false }, { 2 * PLANES, PLANES_OF_IMAGE, 1, false },
        { PLANES_OF_IMAGE, PLANES_OF_IMAGE, 1, false }, { INT64_MAX, PLANES_OF_IMAGE, 1, false },
        { PLANES, PLANES, 1, false },
    };
    static const npu_kernel_table table = NPU_KERNEL_TABLE(own_kernels), partless = NPU_KERNEL_TABLE(own_partless);
    const npu_planes good[2] = { { own_neg_planes, PLANES, PLANES_OF_IMAGE, 1, false },
                                 { own_abs_planes, PLANES, PLANES_OF_IMAGE, 1, true } };
    npu_backend *cpu = NULL;
    npu_planes other[2];
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &(npu_ref_desc){ .tables = &table, .num_tables = 1, .with_built_in = true }), NPU_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(other, good, sizeof other);
        for (int which = 0; which < 2; which++) {
            other[which].num = rows[i].num, other[which].of_image = rows[i].of_image, other[which].step = rows[i].step;
        }
        check_planes(cpu, other[0], other[1], "f32", rows[i].streams, 0);
        check_planes(cpu, good[0], other[1], "f32", rows[i].streams, 0);
    }
    memcpy(other, good, sizeof other);
    other[0].launch = other[1].launch = NULL;
    check_planes(cpu, other[0], good[1], "f32", false, 0);
    check_planes(cpu, good[0], other[1], "f32", false, 0);
    other[1] = good[1], other[1].is_apart = false;
    check_planes(cpu, good[0], other[1], "f32", false, 0);
    check_planes(cpu, good[0], good[1], "f64", false, 0);
    check_planes(cpu, good[0], good[1], "f32", true, 1);
    check_planes(cpu, good[0], good[1], "f32", true, 2);
    npu_ref_destroy(cpu);
    /* 0 parts are one */
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &(npu_ref_desc){ .tables = &partless, .num_tables = 1, .with_built_in = true }), NPU_OK);
    check_planes(cpu, good[0], good[1], "f32", false, 0);
    NPU_CHECK_EQ(own_befores, 1);
    npu_ref_destroy(cpu);
}

int main(void)
{
    seed = npu_test_seed();
    NPU_RUN(test_own_planes);
    NPU_RUN(test_streams);
    NPU_RUN(test_random);
    NPU_RUN(test_kept);
    NPU_RUN(test_bound_memory);
    NPU_RUN(test_huge_steps);
    return npu_test_done();
}
