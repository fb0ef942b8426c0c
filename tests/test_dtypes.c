/* Which dtypes the CPU takes: every op with every dtype, as type rules and kernels have it. What it accepts runs on small
   operands and gives the same results whatever lay in its memory before; what has no kernel is refused in words. The
   arguments are those of the vectors; other ops get operands of a few common shapes. */
#include "../npu_ir_backend_ref.h"
#include "conformance/cases.h"
#include "npu_test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { MAX_BYTES = 1 << 14, MAX_TENSORS = 64 };

static npu_registry *registry;

static const npu_dtype dtypes[] = {
#define X(code, symbol, name, bits, letter, aten) symbol,
    NPU_IR_DTYPES(X)
#undef X
};

/* Which of a case's tensors get the dtype: all, floats (so that indices stay) or one; or its `dtype` does. */
enum { ALL, FLOATS, FIRST, SECOND, THIRD, ATTRIBUTE, NUM_WAYS };

static uint8_t poison; /* what memory holds before it is written */

/* Random data that decides sizes asks for more than there is: that is NO_MEMORY, before a sanitizer ends the program. */
static const size_t MAX_BLOCK = (size_t)1 << 28;

static void *bounded_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    return new_size <= MAX_BLOCK ? realloc(ptr, new_size) : NULL;
}

static void *poisoned_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    uint8_t *fresh = NULL;
    (void)ctx;
    if (new_size && new_size <= MAX_BLOCK && (fresh = malloc(new_size)) != NULL) {
        memset(fresh, poison, new_size);
        if (ptr) {
            memcpy(fresh, ptr, old_size < new_size ? old_size : new_size);
        }
    }
    if (!new_size || fresh) {
        free(ptr);
    }
    return fresh;
}

/* ---- graphs of one op ---- */

typedef struct attempt {
    const char *op;
    conf_case *c;
    npu_dtype dtype;
    int way;
    uint32_t num_tensors; /* met so far */
    bool changed;         /* another dtype than the case has stands somewhere */
} attempt;

static npu_value make_value(npu_graph *g, attempt *a, const conf_tensor *t)
{
    npu_value none = { 0 };
    uint32_t i = t->absent ? 0 : a->num_tensors++;
    bool changes = a->way == ALL || (a->way == FLOATS && npu_dtype_is_float(t->dtype)) ||
                   (a->way >= FIRST && a->way <= THIRD && i == (uint32_t)(a->way - FIRST));
    a->changed = a->changed || (changes && t->dtype != a->dtype);
    return t->absent ? none : npu_input(g, NULL, npu_spec_tensor(changes ? a->dtype : t->dtype, t->rank, t->dims));
}

/* NULL = the type rule refuses it. */
static npu_graph *make_graph(attempt *a)
{
    npu_graph_desc desc = { 0 };
    npu_allocator bounded = { NULL, bounded_resize }; /* of the exec, too */
    desc.registry = registry;
    desc.allocator = &bounded;
    npu_graph *g = npu_graph_create(&desc);
    npu_arg args[CONF_MAX_ARGS];
    npu_value values[CONF_MAX_ARGS][MAX_TENSORS];
    a->num_tensors = 0;
    a->changed = false;
    for (uint32_t i = 0; i < a->c->num_args; i++) {
        conf_arg *from = &a->c->args[i];
        args[i] = from->arg;
        for (uint32_t k = 0; k < from->num_tensors && k < MAX_TENSORS; k++) {
            values[i][k] = make_value(g, a, &from->tensors[k]);
        }
        if (from->arg.form == NPU_ARG_TENSOR) {
            args[i].as.value = values[i][0];
        } else if (from->arg.form == NPU_ARG_TENSORS) {
            args[i].as.values = values[i];
        } else if (from->arg.form == NPU_ARG_DTYPE && a->way == ATTRIBUTE) {
            args[i].as.i = (int64_t)a->dtype;
            a->changed = true;
        }
    }
    npu_op op = npu_emit_name(g, a->op, args, a->c->num_args);
    for (uint32_t i = 0; op.id && i < npu_op_num_results(g, op); i++) {
        npu_output(g, NULL, npu_op_result(g, op, i));
    }
    if (npu_graph_status(g)) {
        npu_graph_destroy(g);
        return NULL;
    }
    return g;
}

/* ---- running ---- */

/* Zeros are fine as indices, and what only looks at bits meets all of them. */
static void fill(uint8_t *data, size_t size, npu_dtype dtype, bool random, uint32_t seed)
{
    uint64_t state = seed;
    for (size_t i = 0; i < size; i++) {
        data[i] = random ? (uint8_t)(npu_test_random(&state) >> 24) : 0;
        data[i] &= dtype == NPU_BOOL ? 1 : 0xff;
    }
}

static void say(const attempt *a, const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "%s %s way %d: %s", a->op, npu_dtype_name(a->dtype), a->way, what);
    NPU_CHECK_STR(text, "as it should be");
}

/* Hashes of the results in `sums`; the status of what failed. */
static npu_status run(const attempt *a, const npu_graph *g, bool random, uint8_t before, uint64_t *sums)
{
    static uint8_t data[MAX_TENSORS][MAX_BYTES];
    npu_ref_desc desc = { 0 };
    npu_allocator allocator = { NULL, poisoned_resize };
    npu_backend *cpu = NULL;
    npu_exec *e = NULL;
    size_t size = 0;
    poison = before;
    desc.allocator = &allocator;
    NPU_CHECK_STATUS(npu_ref_create(&cpu, &desc), NPU_OK);
    const npu_backend *backend = cpu;
    npu_status status = npu_exec_create_simple(&e, g, &backend, 1, NULL);
    for (uint32_t i = 0; !status && i < npu_graph_num_inputs(g) && i < MAX_TENSORS; i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        npu_spec_size(spec, &size);
        fill(data[i], size, (npu_dtype)spec->dtype, random, i);
        status = npu_test_input_at(e, i, data[i], size);
    }
    status = status ? status : npu_exec_run(e);
    *sums = 0;
    for (uint32_t i = 0; !status && i < npu_graph_num_outputs(g); i++) {
        const uint8_t *y = npu_exec_output(e, i, &size);
        for (size_t k = 0; k < size; k++) {
            *sums = (*sums ^ y[k]) * 0x100000001b3u + 1;
        }
    }
    if (status == NPU_ERR_INTERNAL) {
        say(a, npu_exec_diag(e)->message);
    }
    npu_exec_destroy(e);
    npu_ref_destroy(cpu);
    return status;
}

static npu_support answer_of(const npu_graph *g)
{
    npu_op_storage storage;
    npu_op_info info;
    npu_op op = { npu_graph_num_ops(g) };
    npu_support answer = { sizeof answer, 0, "" };
    memset(&storage, 0, sizeof storage);
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, &storage), NPU_OK);
    NPU_CHECK_STATUS(npu_ref_backend()->supports(npu_ref_backend()->ctx, &info, &answer), NPU_OK);
    npu_op_storage_free(&storage);
    return answer;
}

static bool is_small(const npu_graph *g)
{
    bool small = true;
    for (uint32_t i = 1; i <= npu_graph_num_values(g); i++) {
        npu_value v = { i };
        size_t size = 0;
        npu_status status = npu_spec_size(npu_value_spec(g, v), &size);
        small = small && (status == NPU_OK || status == NPU_ERR_DYNAMIC_SHAPE) && size <= MAX_BYTES;
    }
    return small;
}

static bool has_only_numbers(const npu_graph *g)
{
    bool numbers = true;
    for (uint32_t i = 1; i <= npu_graph_num_values(g); i++) {
        npu_value v = { i };
        npu_dtype t = (npu_dtype)npu_value_spec(g, v)->dtype;
        bool narrow = npu_dtype_bits(t) < 8 || t == NPU_F8 || t == NPU_HF8;
        numbers = numbers && !narrow && !npu_dtype_is_complex(t);
    }
    return numbers;
}

static long num_refused, num_run;

static void check_refusal(const npu_graph *g, const npu_support *answer)
{
    num_refused++;
    if (answer->reason != NPU_REASON_OP && !has_only_numbers(g)) {
        NPU_CHECK_EQ(answer->reason, NPU_REASON_DTYPE);
        NPU_CHECK(strncmp(answer->text, "no kernel for ", 14) == 0);
    }
}

static void check_runs(const attempt *a, const npu_graph *g)
{
    bool is_defined = !strstr(a->op, "empty"); /* whatever was there */
    for (int random = 0; random < 2; random++) {
        uint64_t first = 0, second = 0;
        npu_status status = run(a, g, random, 0x00, &first), again = run(a, g, random, 0xd7, &second);
        num_run++;
        if (status != again || (is_defined && first != second)) {
            say(a, random ? "reads what nobody wrote (random)" : "reads what nobody wrote");
        }
    }
}

static void check_attempt(attempt *a)
{
    npu_graph *g = make_graph(a);
    if (g && a->changed) {
        npu_support answer = answer_of(g);
        if (answer.reason) {
            check_refusal(g, &answer);
        } else if (is_small(g)) {
            check_runs(a, g);
        }
    }
    npu_graph_destroy(g);
}

static void check_case(const char *op, conf_case *c)
{
    for (size_t t = 1; t < COUNT(dtypes); t++) {
        for (int way = 0; way < NUM_WAYS; way++) {
            attempt a = { op, c, dtypes[t], way, 0, false };
            check_attempt(&a);
        }
    }
}

/* The first case of the op's vectors; false = it has none. */
static bool check_vectors(const char *op)
{
    conf_file file;
    conf_case c;
    bool found = conf_open(&file, "tests/vectors", op) && conf_next(&file, &c);
    if (found) {
        check_case(op, &c);
        conf_free(&c);
    }
    conf_close(&file);
    return found;
}

/* Tensors of these dims for all operands, ones for the numbers that must be given. */
static void check_shape(const npu_op_def *def, uint32_t rank, const int64_t *dims)
{
    static const int64_t ones[NPU_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static conf_case c;
    conf_tensor tensors[2] = { { .dtype = NPU_F32, .rank = rank } };
    memset(&c, 0, sizeof c);
    memcpy(tensors[0].dims, dims, rank * sizeof dims[0]);
    tensors[1] = tensors[0];
    for (uint32_t i = 0; i < def->schema->num_args && i < CONF_MAX_ARGS; i++) {
        const npu_schema_arg *arg = &def->schema->args[i];
        conf_arg *a = &c.args[c.num_args];
        bool is_tensor = arg->type.base == NPU_T_TENSOR, is_list = arg->type.list != 0;
        if (arg->default_form != NPU_DEFAULT_REQUIRED) {
            continue;
        }
        a->tensors = tensors;
        a->num_tensors = is_tensor ? 1 + is_list : 0;
        a->arg = is_list ? npu_arg_ints(arg->name, ones, rank) : npu_arg_int(arg->name, 1);
        if (is_tensor) {
            a->arg.form = is_list ? NPU_ARG_TENSORS : NPU_ARG_TENSOR;
            a->arg.count = a->num_tensors;
        } else if (arg->type.base == NPU_T_DTYPE) {
            a->arg = npu_arg_dtype(arg->name, NPU_F32);
        }
        c.num_args++;
    }
    check_case(def->name, &c);
}

static void test_every_row(void)
{
    static const int64_t dims[] = { 2, 2, 2, 2 };
    NPU_ITEM("F3");
    NPU_ITEM("F61");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        for (uint32_t rank = 0; !check_vectors(def->name) && rank <= 4; rank++) {
            check_shape(def, rank, dims);
        }
    }
    npu_registry_destroy(registry);
    NPU_CHECK(num_refused > 1000 && num_run > 10000);
}

/* ---- what only moves bytes moves those of any dtype ---- */

enum { MOVED = 24 }; /* elements of a, which is [4,6] */

/* y of the rows on elements whose bytes follow from their numbers; false = refused. */
static bool move(const char *lines, npu_dtype dtype, const uint8_t *a, uint8_t *y, size_t size)
{
    char text[400];
    npu_graph *g = NULL;
    npu_exec *e = NULL;
    const npu_backend *cpu = npu_ref_backend();
    size_t bytes = 0;
    int len = snprintf(text, sizeof text, "npu_ir 1\ngraph main\ninput a : %s[4,6]\n%s\noutput y = y\n",
                       npu_dtype_name(dtype), lines);
    NPU_CHECK_STATUS(npu_graph_parse(&g, text, (size_t)len, NULL, NULL), NPU_OK);
    npu_status status = npu_exec_create_simple(&e, g, &cpu, 1, NULL);
    if (!status) {
        NPU_CHECK_STATUS(npu_test_input_at(e, 0, a, (size_t)MOVED * npu_dtype_bits(dtype) / 8), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(e), NPU_OK);
        const void *got = npu_exec_output(e, 0, &bytes);
        memcpy(y, got, bytes < size ? bytes : size);
    }
    npu_exec_destroy(e);
    npu_graph_destroy(g);
    return status == NPU_OK;
}

static void check_move(const char *lines, npu_dtype dtype)
{
    uint8_t elements[MOVED * 16], y[4 * MOVED * 16];
    int64_t numbers[MOVED], order[4 * MOVED];
    size_t width = npu_dtype_bits(dtype) / 8;
    memset(order, 0xff, sizeof order);
    for (size_t i = 0; i < MOVED; i++) {
        numbers[i] = (int64_t)i;
        for (size_t k = 0; k < width; k++) {
            elements[i * width + k] = (uint8_t)(i * 7 + k * 61);
        }
    }
    NPU_CHECK(move(lines, NPU_I64, (const uint8_t *)numbers, (uint8_t *)order, sizeof order));
    if (!move(lines, dtype, elements, y, sizeof y)) {
        NPU_CHECK_STR(lines, npu_dtype_name(dtype));
    }
    for (size_t i = 0; i < 4 * MOVED && order[i] >= 0; i++) {
        NPU_CHECK_BYTES(y + i * width, elements + (size_t)order[i] * width, width);
    }
}

static void test_moves(void)
{
    static const char *const rows[] = {
        "y = aten.permute.default(a, [1, 0])", "y = aten.select.int(a, 0, 2)", "y = aten.slice.Tensor(a, 1, 1, 5, 2)",
        "y = aten.cat.default([a, a], 1)", "y = aten.stack.default([a, a], 1)", "y = aten.flip.default(a, [0, 1])",
        "y = aten.repeat.default(a, [2, 2])", "y = aten.unfold.default(a, 1, 3, 1)", "y = aten.diagonal.default(a, 1)",
        "y = aten.reshape.default(a, [3, 8])", "y = aten.clone.default(a)", "y = aten.resolve_conj.default(a)",
        "s = aten.slice.Tensor(a, 0, 1, 4)\nt = aten.select.int(s, 1, 2)\ny = aten.flip.default(t, [0])",
        "s = aten.slice.Tensor(a, 1, 2, 5)\nt = aten.transpose.int(s, 0, 1)\ny = aten.reshape.default(t, [12])",
        "s = aten.select.int(a, 0, 3)\ny = aten.select_scatter.default(a, s, 0, 1)"
    };
    static const npu_dtype moved[] = { NPU_F8, NPU_HF8, NPU_F16, NPU_C64, NPU_C128 };
    NPU_ITEM("F3");
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t t = 0; t < COUNT(moved); t++) {
            check_move(rows[i], moved[t]);
        }
    }
}

int main(void)
{
    NPU_RUN(test_every_row);
    NPU_RUN(test_moves);
    return npu_test_done();
}
