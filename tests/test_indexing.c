/* Ops that pick and place by index against one loop over positions, for elements of every size, around the limits of
   strips and in several dims, under every instruction set; and what indices outside give. */
#include "isa.h"
#include "npu_test.h"

enum { MAX_LEN = 9500 };
static uint32_t isa; /* number of the instruction set, as isa_cpu counts */

/* What a position does: y = the element of self that its index says, or is placed on it. */
enum { PICK, SET, ADD, MOST };

/* a is self, i the indices, b what is placed. */
typedef struct row {
    const char *op;
    const char *self, *index, *near; /* dims; near: of what is placed, or of the result that is picked */
    int dim;                         /* -1 = indices are positions in self */
    bool along;                      /* an index for every position, not one for every place along dim */
    bool wraps;                      /* negative indices count from the end */
    int what;
} row;

static const row rows[] = {
    { "gather.default(a, 1, i)", "20,30", "19,300", "19,300", 1, true, false, PICK },
    { "gather.default(a, 0, i)", "20,30", "300,30", "300,30", 0, true, false, PICK },
    { "gather.default(a, 1, i)", "3,20,5", "3,300,4", "3,300,4", 1, true, false, PICK },
    { "gather.default(a, -1, i)", "3,4,20", "2,3,1", "2,3,1", 2, true, false, PICK },
    { "gather.default(a, 0, i)", "300", "700", "700", 0, true, false, PICK },
    { "take_along_dim.default(a, i, 1)", "20,30", "20,300", "20,300", 1, true, false, PICK },
    { "index_select.default(a, 0, i)", "20,300", "31", "31,300", 0, false, false, PICK },
    { "index_select.default(a, 1, i)", "9,300", "513", "9,513", 1, false, false, PICK },
    { "index_select.default(a, 1, i)", "3,300,7", "31", "3,31,7", 1, false, false, PICK },
    { "embedding.default(a, i)", "20,3", "300", "300,3", 0, false, false, PICK },
    { "embedding.default(a, i)", "20,1", "300", "300,1", 0, false, false, PICK },
    { "take.default(a, i)", "20,30", "600", "600", -1, true, true, PICK },
    { "index.Tensor(a, [none, i])", "7,300", "300", "7,300", 1, false, true, PICK },
    { "index.Tensor(a, [i])", "300,9", "300", "300,9", 0, false, true, PICK },
    { "scatter.src(a, 1, i, b)", "20,30", "19,300", "20,301", 1, true, false, SET },
    { "scatter.src(a, 0, i, b)", "20,30", "300,30", "301,30", 0, true, false, SET },
    { "scatter_add.default(a, 1, i, b)", "20,30", "19,300", "20,301", 1, true, false, ADD },
    { "scatter_add.default(a, 1, i, b)", "3,20,5", "3,300,4", "3,300,4", 1, true, false, ADD },
    { "scatter_reduce.two(a, 1, i, b, 'amax')", "20,30", "19,300", "20,301", 1, true, false, MOST },
    { "index_add.default(a, 0, i, b)", "20,300", "31", "31,300", 0, false, false, ADD },
    { "index_add.default(a, 1, i, b)", "3,300,7", "31", "3,31,7", 1, false, false, ADD },
    { "index_copy.default(a, 0, i, b)", "20,300", "31", "31,300", 0, false, false, SET },
    { "index_copy.default(a, 1, i, b)", "9,300", "513", "9,513", 1, false, false, SET },
    { "put.default(a, i, b)", "20,30", "600", "600", -1, true, true, SET },
    { "put.default(a, i, b, true)", "20,30", "600", "600", -1, true, true, ADD },
    { "index_put.default(a, [i], b)", "300,9", "300", "300,9", 0, false, true, SET },
    { "index_put.default(a, [none, i], b, true)", "7,300", "301", "7,301", 1, false, true, ADD }
};
#define COUNT(a) (sizeof a / sizeof a[0])

static const npu_dtype dtypes[] = { NPU_U8, NPU_F16, NPU_I32, NPU_F32, NPU_I64, NPU_F64 };

static uint64_t seed;

/* Whole numbers that every dtype holds exactly. */
static void store(void *data, npu_dtype dtype, size_t i, int64_t x)
{
    switch (dtype) {
    case NPU_U8: ((uint8_t *)data)[i] = (uint8_t)x; break;
    case NPU_F16: ((uint16_t *)data)[i] = npu_f32_to_f16((float)x); break;
    case NPU_I32: ((int32_t *)data)[i] = (int32_t)x; break;
    case NPU_F32: ((float *)data)[i] = (float)x; break;
    case NPU_I64: ((int64_t *)data)[i] = x; break;
    default: ((double *)data)[i] = (double)x; break;
    }
}

static uint32_t dims_of(const char *text, int64_t *dims)
{
    uint32_t rank = 0;
    for (char *end = NULL; !end || *end; text = end + 1) {
        dims[rank++] = strtoll(text, &end, 10);
    }
    return rank;
}

static size_t len_of(const char *text)
{
    int64_t dims[NPU_MAX_RANK];
    uint32_t rank = dims_of(text, dims);
    size_t len = 1;
    for (uint32_t i = 0; i < rank; i++) {
        len *= (size_t)dims[i];
    }
    return len;
}

static int64_t limit_of(const row *r)
{
    int64_t dims[NPU_MAX_RANK];
    dims_of(r->self, dims);
    return r->dim < 0 ? (int64_t)len_of(r->self) : dims[r->dim];
}

/* One position after the other: y is the picked, or begins as self. */
static void expect(const row *r, int64_t *y, const int64_t *a, const int64_t *index, const int64_t *b)
{
    int64_t self[NPU_MAX_RANK], near[NPU_MAX_RANK], over[NPU_MAX_RANK], at[NPU_MAX_RANK] = { 0 };
    uint32_t rank = dims_of(r->near, over);
    size_t len = len_of(r->along ? r->index : r->near);
    dims_of(r->self, self);
    dims_of(r->near, near);
    if (r->along) {
        dims_of(r->index, over);
    }
    for (size_t i = 0; i < len; i++) {
        size_t rest = i;
        for (uint32_t d = rank; d-- > 0; rest /= (size_t)over[d]) {
            at[d] = (int64_t)(rest % (size_t)over[d]);
        }
        int64_t k = index[r->along ? (int64_t)i : at[r->dim]], far = 0, from = 0;
        k = k < 0 ? k + limit_of(r) : k;
        for (uint32_t d = 0; d < rank; d++) {
            far = r->dim < 0 ? k : far * self[d] + ((int)d == r->dim ? k : at[d]);
            from = from * near[d] + at[d];
        }
        switch (r->what) {
        case PICK: y[i] = a[far]; break;
        case SET: y[far] = b[from]; break;
        case ADD: y[far] += b[from]; break;
        default: y[far] = b[from] > y[far] ? b[from] : y[far]; break;
        }
    }
}

static npu_graph *build(const row *r, npu_dtype dtype, npu_dtype index)
{
    char text[400];
    npu_graph *g = NULL;
    npu_diag diag;
    int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput a : %s[%s]\ninput i : %s[%s]\n",
                       npu_dtype_name(dtype), r->self, npu_dtype_name(index), r->index);
    if (r->what != PICK) {
        len += snprintf(text + len, sizeof text - (size_t)len, "input b : %s[%s]\n", npu_dtype_name(dtype), r->near);
    }
    len += snprintf(text + len, sizeof text - (size_t)len, "y = aten.%s\noutput y = y\n", r->op);
    memset(&diag, 0, sizeof diag);
    if (npu_graph_parse(&g, text, (size_t)len, npu_test_graph_desc(), &diag)) {
        NPU_CHECK_STR(diag.message, r->op);
    }
    return g;
}

typedef struct memory {
    int64_t a[MAX_LEN], b[MAX_LEN], i[MAX_LEN], y[MAX_LEN]; /* as numbers */
    /* as their dtypes have them */
    int64_t data_a[MAX_LEN], data_b[MAX_LEN], data_i[MAX_LEN], data_y[MAX_LEN], want_y[MAX_LEN];
} memory;

static memory m;

static void random_numbers(const row *r, npu_dtype dtype, npu_dtype index)
{
    int64_t limit = limit_of(r);
    for (size_t i = 0; i < MAX_LEN; i++) {
        m.a[i] = (int64_t)(npu_test_random(&seed) % 7);
        m.b[i] = (int64_t)(npu_test_random(&seed) % 7);
        m.i[i] = (int64_t)(npu_test_random(&seed) % (uint64_t)limit);
        m.i[i] -= r->wraps && npu_test_random(&seed) % 4 == 0 ? limit : 0;
        store(m.data_a, dtype, i, m.a[i]);
        store(m.data_b, dtype, i, m.b[i]);
        store(m.data_i, index, i, m.i[i]);
    }
}

/* The row on these numbers, its result bound to data_y, which holds something else before; NULL = it failed. */
static npu_exec *start(npu_graph *g, size_t *size)
{
    const npu_backend *cpu = isa_cpu(isa) ? isa_cpu(isa) : npu_ref_backend();
    const void *data[] = { m.data_a, m.data_i, m.data_b };
    npu_exec *e = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &cpu, 1, NULL), NPU_OK);
    for (uint32_t i = 0; e && i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), size);
        NPU_CHECK_STATUS(npu_test_input_at(e, i, data[i], *size), NPU_OK);
    }
    npu_spec_size(npu_value_spec(g, npu_graph_output(g, 0)), size);
    memset(m.data_y, 0x5a, sizeof m.data_y);
    NPU_CHECK_STATUS(e ? npu_exec_set_output_at(e, 0, m.data_y, *size) : NPU_ERR_NO_MEMORY, NPU_OK);
    return e;
}

static void check_row(const row *r, npu_dtype dtype, npu_dtype index)
{
    npu_graph *g = build(r, dtype, index);
    random_numbers(r, dtype, index);
    memcpy(m.y, m.a, sizeof m.y);
    expect(r, m.y, m.a, m.i, m.b);
    for (isa = 0; isa_cpu(isa); isa++) {
        size_t size = 0;
        npu_exec *e = g ? start(g, &size) : NULL;
        NPU_CHECK_STATUS(e ? npu_exec_run(e) : NPU_ERR_PARSE, NPU_OK);
        for (size_t i = 0; i < size * 8 / npu_dtype_bits(dtype); i++) {
            store(m.want_y, dtype, i, m.y[i]);
        }
        NPU_CHECK_THAT(memcmp(m.data_y, m.want_y, size) == 0, "%s of %s under set %s", r->op, npu_dtype_name(dtype),
                       npu_ref_isa(isa));
        npu_exec_destroy(e);
    }
    npu_graph_destroy(g);
}

/* An index outside, wherever it is, is found before anything is written. */
static void check_outside(const row *r)
{
    npu_graph *g = build(r, NPU_F32, NPU_I64);
    size_t size = 0, len = len_of(r->index);
    int64_t limit = limit_of(r);
    const int64_t bad[] = { limit, r->wraps ? -limit - 1 : -1, INT64_MIN, INT64_MAX };
    random_numbers(r, NPU_F32, NPU_I64);
    npu_exec *e = g ? start(g, &size) : NULL;
    memset(m.want_y, 0x5a, sizeof m.want_y);
    for (size_t k = 0; e && k < 4 * COUNT(bad); k++) {
        size_t at = k < 4 ? len - 1 - k % len : (size_t)(npu_test_random(&seed) % len);
        m.data_i[at] = bad[k % COUNT(bad)];
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_ERR_RANGE);
        NPU_CHECK_BYTES(m.data_y, m.want_y, size);
        m.data_i[at] = m.i[at];
    }
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

static void test_positions(void)
{
    NPU_ITEM("F59");
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t t = 0; t < COUNT(dtypes); t++) {
            bool is_index = strncmp(rows[i].op, "index", 5) == 0 && strncmp(rows[i].op, "index_copy", 10) != 0;
            check_row(&rows[i], dtypes[t], NPU_I64);
            if (is_index || strncmp(rows[i].op, "embedding", 9) == 0) {
                check_row(&rows[i], dtypes[t], NPU_I32);
            }
        }
    }
}

static void test_indices_outside(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        check_outside(&rows[i]);
    }
}

/* The indices of some random truths, over more than one strip. */
static void test_nonzero(void)
{
    static const char text[] = "npu_ir 1\ngraph main\ninput a : u8[7,3,40]\n"
                               "y = aten.nonzero.default(a)\noutput y = y\n";
    enum { LEN = 7 * 3 * 40 };
    const npu_backend *cpu = npu_ref_backend();
    uint8_t a[LEN];
    npu_graph *g = NULL;
    npu_exec *e = NULL;
    size_t size = 0, found = 0;
    for (size_t i = 0; i < LEN; i++) {
        a[i] = npu_test_random(&seed) % 3 == 0;
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_STATUS(g ? npu_exec_create_simple(&e, g, &cpu, 1, NULL) : NPU_ERR_PARSE, NPU_OK);
    if (e) {
        NPU_CHECK_STATUS(npu_test_input_at(e, 0, a, sizeof a), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
        const int64_t *y = npu_exec_output(e, 0, &size);
        for (int64_t i = 0; y && i < LEN; i++) {
            if (a[i] && (found + 1) * 3 * sizeof *y <= size) {
                NPU_CHECK_EQ(y[3 * found] * 120 + y[3 * found + 1] * 40 + y[3 * found + 2], i);
                NPU_CHECK(y[3 * found + 1] < 3 && y[3 * found + 2] < 40);
            }
            found += a[i];
        }
        NPU_CHECK_EQ(found * 3 * sizeof *y, size);
    }
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

/* Rows that repeat, more of them than a block holds, in parts. */
static void test_repeated_rows(void)
{
    static const char text[] = "npu_ir 1\ngraph main\ninput a : f32[3,1,700]\n"
                               "y = aten.repeat.default(a, [1, 50, 1])\noutput y = y\n";
    static float a[3 * 700];
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = NULL;
    npu_exec *e = NULL;
    size_t size = 0, wrong = 0;
    for (size_t i = 0; i < COUNT(a); i++) {
        a[i] = (float)i;
    }
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, sizeof text - 1, npu_test_graph_desc(), NULL), NPU_OK);
    NPU_CHECK_STATUS(g ? npu_exec_create_simple(&e, g, &cpu, 1, NULL) : NPU_ERR_PARSE, NPU_OK);
    if (e) {
        NPU_CHECK_STATUS(npu_test_input_at(e, 0, a, sizeof a), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
        const float *y = npu_exec_output(e, 0, &size);
        NPU_CHECK_EQ(size, sizeof a * 50);
        for (size_t i = 0; y && i < size / sizeof *y; i++) {
            wrong += y[i] != a[i / 35000 * 700 + i % 700];
        }
        NPU_CHECK_EQ(wrong, 0);
    }
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

/* ---- nothing to pick, nothing to pick from, and what lies outside, in every op that reads indices ---- */

/* Operands are ones, those of integers `index`. */
typedef struct edge {
    const char *inputs, *op;
    int64_t index;
    npu_status status;
} edge;

static const edge edges[] = {
    { "a : f32[0,5,4]", "gather.default(a, 2, a)", 0, NPU_OK },
    { "a : f32[0,4]\ninput i : f16[0,4]", "gather.default(a, 1, i)", 0, NPU_OK },
    { "a : f32[3,4]\ninput i : i64[0,4]", "gather.default(a, 0, i)", 0, NPU_OK },
    { "a : f32[0,4]\ninput i : i64[2,4]", "gather.default(a, 0, i)", 0, NPU_ERR_RANGE },
    { "a : f32[0,4]\ninput i : i64[0]", "index_select.default(a, 0, i)", 0, NPU_OK },
    { "a : f32[0,4]\ninput i : i64[2]", "index_select.default(a, 0, i)", 0, NPU_ERR_RANGE },
    { "a : f32[3,4]\ninput i : i32[2]", "index_select.default(a, 0, i)", 3, NPU_ERR_RANGE },
    { "a : f32[0]\ninput i : i64[0]", "take.default(a, i)", 0, NPU_OK },
    { "a : f32[3]\ninput i : i64[2]", "take.default(a, i)", -4, NPU_ERR_RANGE },
    { "a : f32[7]\ninput i : i64[]", "narrow.Tensor(a, 0, i, 2)", -2, NPU_OK },
    { "a : f32[7]\ninput i : i64[]", "narrow.Tensor(a, 0, i, 2)", -1, NPU_ERR_RANGE },
    { "a : f32[7]\ninput i : i32[]", "narrow.Tensor(a, 0, i, 2)", -8, NPU_ERR_RANGE },
    { "a : f32[7]\ninput i : i64[]", "narrow.Tensor(a, 0, i, 2)", 6, NPU_ERR_RANGE },
    { "a : f32[7]\ninput i : i64[]", "narrow.Tensor(a, 0, i, 0)", -1, NPU_OK },
    { "a : f32[0,3]\ninput i : i64[0]", "embedding.default(a, i)", 0, NPU_OK },
    { "a : f32[0,3]\ninput i : i64[1]", "embedding.default(a, i)", 0, NPU_ERR_RANGE },
    { "a : f32[4,0]\ninput i : i64[2]", "embedding.default(a, i)", 3, NPU_OK },
    { "a : f32[4,0]\ninput i : i64[2]", "embedding.default(a, i)", 4, NPU_ERR_RANGE },
    { "a : f32[0,4]\ninput i : i64[0]", "index.Tensor(a, [i])", 0, NPU_OK },
    { "a : f32[0,4]\ninput i : i64[2]", "index.Tensor(a, [i])", 0, NPU_ERR_RANGE },
    { "a : f32[0,4]\ninput i : i64[0,4]\ninput b : f32[0,4]", "scatter.src(a, 0, i, b)", 0, NPU_OK },
    { "a : f32[0,4]\ninput i : i64[2,4]\ninput b : f32[2,4]", "scatter_add.default(a, 0, i, b)", 0, NPU_ERR_RANGE },
    { "a : f32[0,4]\ninput i : i64[0]\ninput b : f32[0,4]", "index_add.default(a, 0, i, b)", 0, NPU_OK },
    { "a : f32[3,4]\ninput i : i64[0]\ninput b : f32[0,4]", "index_copy.default(a, 0, i, b)", 0, NPU_OK },
    { "a : f32[3,4]\ninput i : i64[0]", "index_fill.int_Scalar(a, 0, i, 2)", 0, NPU_OK },
    { "a : f32[3,4]\ninput i : i64[1]", "index_fill.int_Scalar(a, 0, i, 2)", 3, NPU_ERR_RANGE },
    { "a : f32[0]\ninput i : i64[0]\ninput b : f32[0]", "put.default(a, i, b)", 0, NPU_OK },
    { "a : i64[5,0,2]", "_unsafe_index_put.default(a, [], a, true)", 0, NPU_OK },
    { "a : i64[5,3,2]", "_unsafe_index_put.default(a, [], a, true)", 9, NPU_OK },
    { "a : f32[2,3]", "index_put.default(a, [], a)", 0, NPU_OK },
    { "a : f32[0,3]\ninput i : i64[0]", "nll_loss.default(a, i)", 0, NPU_OK },
    { "a : f32[2,3]\ninput i : i64[2]", "nll_loss.default(a, i)", 3, NPU_ERR_RANGE },
    { "a : f32[2,3]\ninput i : i64[2]", "cross_entropy_loss.default(a, i)", -1, NPU_ERR_RANGE },
    { "a : f32[2,3]\ninput i : i64[2]", "multi_margin_loss.default(a, i)", 3, NPU_ERR_RANGE },
    { "a : f32[2,3]\ninput i : i64[2,3]", "multilabel_margin_loss.default(a, i)", -2, NPU_ERR_RANGE },
    { "a : f32[3,4]\ninput i : i64[0]", "_embedding_bag.default(a, i, i)", 0, NPU_OK },
    { "i : i64[2]\ninput a : f32[3,4]\ninput o : i64[1]", "embedding_bag.default(a, i, o)", 3, NPU_ERR_RANGE },
    { "a : f32[1,2,2]\ninput b : f32[1,4,4]\ninput i : i64[1,2,2]",
      "max_pool2d_with_indices_backward.default(a, b, [2, 2], [2, 2], [0, 0], [1, 1], false, i)", 16, NPU_ERR_RANGE },
    { "a : f32[3,0]", "masked_select.default(a, a)", 0, NPU_ERR_DTYPE },
};

static void check_edge(const edge *r)
{
    static int64_t whole[64];
    static int32_t narrow[64];
    static float ones[64];
    const npu_backend *cpu = npu_ref_backend();
    char text[400];
    npu_graph *g = NULL;
    npu_exec *e = NULL;
    int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput %s\n%s = aten.%s\noutput y = y\n", r->inputs,
                       strstr(r->op, "embedding_bag") ? "y, b, c, m" : "y", r->op);
    npu_status status = npu_graph_parse(&g, text, (size_t)len, npu_test_graph_desc(), NULL);
    for (size_t i = 0; i < COUNT(ones); i++) {
        whole[i] = r->index;
        narrow[i] = (int32_t)r->index;
        ones[i] = 1;
    }
    status = status ? status : npu_exec_create_simple(&e, g, &cpu, 1, NULL);
    for (uint32_t i = 0; !status && i < npu_graph_num_inputs(g); i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        size_t size = 0;
        npu_spec_size(spec, &size);
        const void *from = spec->dtype == NPU_I64 ? (void *)whole : spec->dtype == NPU_I32 ? (void *)narrow : ones;
        status = npu_test_input_at(e, i, from, size);
    }
    status = status ? status : npu_exec_run(e);
    NPU_CHECK_THAT(status == r->status, "%s: %s, expected %s", r->op, npu_status_name(status), npu_status_name(r->status));
    snprintf(text, sizeof text, " holds %lld to %lld", (long long)r->index, (long long)r->index);
    if (r->status == NPU_ERR_RANGE && e) { /* what came, and where it would have gone */
        const char *words = npu_exec_diag(e)->message;
        NPU_CHECK_THAT(strstr(words, text) && strchr(words, '('), "%s: %s, expected%s", r->op, words, text);
    }
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

/* The message of a run names the op, what it found, and the operands. */
static void test_words(void)
{
    static const int64_t ids[] = { 4, 7, -3 };
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    npu_value table = npu_input(g, "table", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 5, 2 }));
    npu_value i = npu_input(g, "ids", npu_spec_tensor(NPU_I64, 1, (int64_t[]){ 3 }));
    npu_exec *e = NULL;
    float weight[10] = { 0 };
    npu_output(g, "y", npu_embedding(g, table, i));
    NPU_CHECK_STATUS(npu_exec_create_simple(&e, g, &cpu, 1, NULL), NPU_OK);
    npu_test_input_at(e, 0, weight, sizeof weight);
    npu_test_input_at(e, 1, ids, sizeof ids);
    NPU_CHECK_STATUS(npu_exec_run(e), NPU_ERR_RANGE);
    NPU_CHECK_STR(npu_exec_diag(e)->message,
                  "step 0 on cpu: aten.embedding.default: index or number out of range: operand 1 holds -3 to 7 "
                  "(weight 'table' f32[5,2], indices 'ids' i64[3])");
    npu_exec_destroy(e);
    npu_graph_destroy(g);
}

static void test_edges(void)
{
    NPU_ITEM("F4");
    NPU_ITEM("F5");
    for (size_t i = 0; i < COUNT(edges); i++) {
        check_edge(&edges[i]);
    }
}

int main(void)
{
    seed = npu_test_seed();
    NPU_RUN(test_positions);
    NPU_RUN(test_indices_outside);
    NPU_RUN(test_edges);
    NPU_RUN(test_words);
    NPU_RUN(test_nonzero);
    NPU_RUN(test_repeated_rows);
    isa_free();
    return npu_test_done();
}
