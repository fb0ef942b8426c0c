/* What a form writes it reads: every op, called as the cases of tests/vectors call it, with each of its numbers at the ends of
   its range and fed by a value, through text and JSON and compared op by op. */
#define _POSIX_C_SOURCE 200809L /* opendir */
#define _FILE_OFFSET_BITS 64 /* places in a folder have as many on some file systems */
#include "conformance/cases.h"
#include "npu_test.h"
#include <dirent.h>

enum { NUM_CASES = 3 }; /* of an op */

static const struct form {
    const char *name;
    npu_status (*print)(const npu_graph *g, npu_text *text);
    npu_status (*parse)(npu_graph **out, const char *text, size_t len, const npu_graph_desc *desc, npu_diag *diag);
} forms[] = { { "text", npu_graph_print, npu_graph_parse }, { "JSON", npu_graph_print_json, npu_graph_parse_json } };

static npu_graph_desc with_registry; /* one for all graphs: to make it takes longer than a graph */

/* ---- comparing ---- */

/* Type and data of a value, and whether an op makes it. */
static bool same_value(const npu_graph *g, npu_value a, const npu_graph *h, npu_value b)
{
    const void *x, *y;
    size_t size = 0, other = 0;
    if (!a.id || !b.id) {
        return a.id == b.id;
    }
    x = npu_value_data(g, a, &size);
    y = npu_value_data(h, b, &other);
    return npu_spec_equal(npu_value_spec(g, a), npu_value_spec(h, b)) && size == other && !x == !y &&
           npu_value_producer(g, a, NULL).id == npu_value_producer(h, b, NULL).id && (!x || memcmp(x, y, size) == 0);
}

/* The same kind, attributes bit for bit, operands and results. */
static bool same_op(const npu_graph *g, const npu_graph *h, npu_op op)
{
    npu_op_info a, b;
    npu_op_storage mine = { .capacity = 0 }, theirs = mine;
    bool same = npu_op_describe(g, op, &a, &mine) == NPU_OK && npu_op_describe(h, op, &b, &theirs) == NPU_OK &&
                strcmp(a.name, b.name) == 0 && a.attrs_size == b.attrs_size && a.num_in == b.num_in &&
                a.num_out == b.num_out && (!a.attrs_size || memcmp(a.attrs, b.attrs, a.attrs_size) == 0);
    for (uint32_t i = 0; same && i < a.num_in; i++) {
        same = same_value(g, npu_op_operand_value(g, op, i), h, npu_op_operand_value(h, op, i));
    }
    for (uint32_t i = 0; same && i < a.num_out; i++) {
        same = same_value(g, npu_op_result(g, op, i), h, npu_op_result(h, op, i));
    }
    npu_op_storage_free(&mine);
    npu_op_storage_free(&theirs);
    return same;
}

/* What a form has no place for, it says before it writes. */
static bool has_no_place(npu_status status) { return status == NPU_ERR_UNSUPPORTED || status == NPU_ERR_DYNAMIC_SHAPE; }

/* Returns whether it was written. */
static bool check_form(const npu_graph *g, const struct form *f, const char *label)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *again = NULL;
    npu_diag diag = { 0 };
    npu_status status = f->print(g, &text);
    bool written = status == NPU_OK, same = written;
    status = status ? status : f->parse(&again, text.data, text.len, &with_registry, &diag);
    same = status == NPU_OK && npu_graph_num_ops(g) == npu_graph_num_ops(again);
    for (uint32_t op = 1; same && op <= npu_graph_num_ops(g); op++) {
        same = same_op(g, again, (npu_op){ op });
    }
    if (!same && !(has_no_place(status) && !written)) {
        fprintf(stderr, "%s as %s: %s: %s\n%s\n", label, f->name, npu_status_name(status), diag.message, text.data);
        NPU_CHECK_STR(label, "the same when it is read");
    }
    npu_graph_destroy(again);
    npu_text_free(&text);
    return written;
}

/* ---- calls ---- */

static npu_value operand(npu_graph *g, const conf_tensor *t)
{
    npu_value hole = { 0 };
    return t->absent ? hole : npu_constant_ref(g, NULL, npu_spec_tensor(t->dtype, t->rank, t->dims), t->data);
}

/* The case with argument `changed` replaced, through both forms. Returns whether the op takes it and JSON has it. */
static bool check_call(const char *op, conf_case *c, uint32_t changed, const npu_arg *by, const char *how)
{
    npu_graph *g = npu_graph_create(&with_registry);
    npu_arg args[CONF_MAX_ARGS];
    char label[400];
    npu_op made;
    bool written = false;
    for (uint32_t i = 0; i < c->num_args; i++) {
        const conf_arg *a = &c->args[i];
        npu_value *values = conf_keep(c, (a->num_tensors + 1) * sizeof *values);
        args[i] = i == changed ? *by : a->arg;
        for (uint32_t t = 0; t < a->num_tensors; t++) {
            values[t] = operand(g, &a->tensors[t]);
        }
        if (a->arg.form == NPU_ARG_TENSOR) {
            args[i].as.value = values[0];
        } else if (a->arg.form == NPU_ARG_TENSORS) {
            args[i].as.values = values;
        } else if (i == changed && by->form == NPU_ARG_TENSOR) {
            static const int64_t number = 1;
            args[i].as.value = npu_constant(g, "number", npu_spec_tensor(NPU_I64, 0, NULL), &number);
        } else if (i == changed && by->form == NPU_ARG_ITEMS) {
            static const int64_t number = 1;
            npu_arg *items = conf_keep(c, by->count * sizeof *items);
            for (uint32_t k = 0; k < by->count; k++) {
                items[k] = npu_arg_int(NULL, a->arg.form == NPU_ARG_INTS ? a->arg.as.ints[k] : 1);
            }
            items[by->count - 1] = npu_arg_tensor(
                NULL, npu_constant(g, "number", npu_spec_tensor(NPU_I64, 0, NULL), &number));
            args[i].as.items = items;
        }
    }
    made = npu_emit_name(g, op, args, c->num_args);
    snprintf(label, sizeof label, "%s %s (%s)", op, how, c->label);
    for (uint32_t i = 0; made.id && i < npu_op_num_results(g, made); i++) {
        char name[24];
        snprintf(name, sizeof name, "r%u", (unsigned)i);
        npu_output(g, name, npu_op_result(g, made, i));
    }
    if (made.id) {
        check_form(g, &forms[0], label);
        written = check_form(g, &forms[1], label);
    }
    npu_graph_destroy(g);
    return written;
}

static int num_written, num_fed;

/* Each number at the ends of its range, then as what a value feeds. */
static void check_numbers(const char *op, conf_case *c)
{
    static const int64_t ints[] = { 0, 1, -1, 6, 255, 256, 0x101, INT64_MAX, INT64_MIN + 1, INT64_MIN };
    static const double floats[] = { 0.0, -0.0, 1e-320, -1.5, 1e300, HUGE_VAL, -HUGE_VAL, (double)NAN, 2.0 };
    for (uint32_t i = 0; i < c->num_args; i++) {
        const npu_arg *a = &c->args[i].arg;
        bool is_list = a->form == NPU_ARG_INTS && a->count && a->count <= NPU_MAX_RANK;
        for (size_t k = 0; k < sizeof ints / sizeof ints[0] && (a->form == NPU_ARG_INT || is_list); k++) {
            int64_t list[NPU_MAX_RANK];
            npu_arg odd = npu_arg_int(a->name, ints[k]);
            if (is_list) {
                memcpy(list, a->as.ints, a->count * sizeof *list);
                list[0] = ints[k];
                odd = npu_arg_ints(a->name, list, a->count);
            }
            num_written += check_call(op, c, i, &odd, "with an odd integer");
        }
        for (size_t k = 0; k < sizeof floats / sizeof floats[0] && a->form == NPU_ARG_FLOAT; k++) {
            npu_arg odd = npu_arg_float(a->name, floats[k]);
            num_written += check_call(op, c, i, &odd, "with an odd float");
        }
        if (a->form == NPU_ARG_INT || is_list) {
            npu_arg fed = npu_arg_none(a->name);
            fed.form = is_list ? NPU_ARG_ITEMS : NPU_ARG_TENSOR;
            fed.count = is_list ? a->count : 0;
            num_fed += check_call(op, c, i, &fed, "dynamic");
        }
    }
}

/* Attributes that the cases leave to their defaults, with what files and programs may say. */
static void check_defaults(const char *op, conf_case *c, const npu_schema *schema)
{
    static const int64_t numbers[] = { 0, 1, 6, 255, 257, -1, INT64_MAX, INT64_MIN };
    for (uint32_t s = 0; s < schema->num_args; s++) {
        const npu_schema_arg *arg = &schema->args[s];
        bool given = arg->type.base == NPU_T_TENSOR || arg->type.list || c->num_args == CONF_MAX_ARGS;
        conf_arg *more = &c->args[c->num_args];
        for (uint32_t i = 0; i < c->num_args; i++) {
            given = given || strcmp(c->args[i].arg.name, arg->name) == 0;
        }
        for (size_t k = 0; !given && k < sizeof numbers / sizeof numbers[0]; k++) {
            memset(more, 0, sizeof *more);
            more->arg = arg->type.base == NPU_T_DTYPE ? npu_arg_dtype(arg->name, (npu_dtype)numbers[k])
                        : arg->type.base == NPU_T_BOOL ? npu_arg_bool(arg->name, k & 1)
                        : arg->type.base == NPU_T_FLOAT ? npu_arg_float(arg->name, (double)numbers[k])
                                                        : npu_arg_int(arg->name, numbers[k]);
            c->num_args++;
            num_written += check_call(op, c, c->num_args, NULL, "with an attribute more");
            c->num_args--;
        }
    }
}

/* The first cases of an op. */
static void check_op(const char *op, const npu_schema *schema)
{
    conf_file file;
    conf_case c;
    int num_cases = 0;
    if (conf_open(&file, "tests/vectors", op)) {
        while (num_cases++ < NUM_CASES && conf_next(&file, &c)) {
            num_written += check_call(op, &c, c.num_args, NULL, "as it is");
            if (num_cases == 1) {
                check_numbers(op, &c);
                check_defaults(op, &c, schema);
            }
            conf_free(&c);
        }
    }
    conf_close(&file);
}

static void test_calls(void)
{
    npu_registry *registry = NULL;
    NPU_ITEM("F13");
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    with_registry.registry = registry;
    for (uint32_t i = 0; i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        bool writes = false;
        for (uint32_t a = 0; a < def->schema->num_args; a++) { /* JSON reads those as others */
            writes = writes || (def->schema->args[a].type.alias && strchr(def->schema->args[a].type.alias, '!'));
        }
        if (!writes) {
            check_op(def->name, def->schema);
        }
    }
    NPU_CHECK(num_written > 5000);
    NPU_CHECK(num_fed > 20); /* the sizes among them; other numbers cannot be fed */
    with_registry.registry = NULL;
    npu_registry_destroy(registry);
}

/* The graph of every op, those of devices and of lowering, too: without the child graphs and the symbol that JSON has no
   place for. */
static void test_every_op(void)
{
    npu_text golden = npu_text_init(NULL), text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag = { 0 };
    bool in_child = false;
    NPU_ITEM("F13");
    NPU_CHECK_STATUS(npu_text_load(&golden, "tests/golden/every_op.txt"), NPU_OK);
    for (const char *line = golden.data; line && *line; line += strcspn(line, "\n") + 1) {
        size_t len = strcspn(line, "\n") + 1;
        char copy[600];
        snprintf(copy, sizeof copy, "%.*s", (int)len, line);
        in_child = in_child || strncmp(copy, "child", 5) == 0;
        for (char *n = strstr(copy, "[N,"); n; n = strstr(n, "[N,")) {
            n[1] = '2';
        }
        if (!in_child && strncmp(copy, "symbol", 6) != 0 && !strstr(copy, "body=graph")) {
            npu_text_append(&text, copy, strlen(copy));
        }
        in_child = in_child && strncmp(copy, "end", 3) != 0;
    }
    if (npu_graph_parse(&g, text.data, text.len, NULL, &diag)) {
        fprintf(stderr, "line %d: %s\n", (int)diag.line, diag.message);
    }
    NPU_CHECK(npu_graph_num_ops(g) > 250);
    check_form(g, &forms[0], "every op");
    NPU_CHECK(check_form(g, &forms[1], "every op"));
    npu_graph_destroy(g);
    npu_text_free(&text);
    npu_text_free(&golden);
}

int main(void)
{
    NPU_RUN(test_calls);
    NPU_RUN(test_every_op);
    return npu_test_done();
}
