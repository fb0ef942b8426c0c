/* ops.c - lists every registered op: name, symbol and number of its kind, category, schema, what it does, dtypes,
   kernels, where it is tested.

       ops [-o PART] [TEST FILE...]     `make ops` gives all tests/test_*.c; PART: only ops with that in their name

   shapes: the pattern of operands and results, where it says the type rule. kernels: the variants of the CPU backend,
   "view" where none is needed, "-" where none exists. traits: those of its row, NPU_IR_TRAITS. dtypes: those that the
   type rule and the CPU backend take for the first tensor of a case of tests/vectors, and for the operands of the same
   dtype. tests: cases of tests/vectors and the test files that name the op or its symbol; an op without any is a failure. */
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include "conformance/cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPU_X(number, symbol, traits, rule, schema, doc) { (npu_kind)symbol, #symbol },
#define NPU_FAMILY(space, name, category, table) table(NPU_X)
static const struct { npu_kind kind; const char *name; } symbols[] = { NPU_IR_FAMILIES(NPU_FAMILY) { 0, "" } };
#undef NPU_FAMILY
#undef NPU_X

static const char *symbol_of(npu_kind kind)
{
    size_t i = 0;
    while (symbols[i].kind && symbols[i].kind != kind) {
        i++;
    }
    return symbols[i].name;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = (size_t)1 << 22;
    char *text = file ? (char *)malloc(capacity + 1) : NULL;
    if (text) {
        text[fread(text, 1, capacity, file)] = 0;
    }
    if (file) {
        fclose(file);
    }
    return text;
}

/* Whether `word` stands in the text, not as part of a longer one. */
static bool has_word(const char *text, const char *word)
{
    static const char *const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t len = strlen(word);
    for (const char *p = text; len && (p = strstr(p, word)) != NULL; p++) {
        bool begins = p == text || !strchr(letters, p[-1]), ends = !p[len] || !strchr(letters, p[len]);
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

static void print_kernels(const npu_op_def *def)
{
    uint32_t num_tables = 0, n = 0;
    const npu_kernel_table *tables = npu_ref_kernels(&num_tables);
    for (uint32_t t = 0; t < num_tables; t++) {
        for (uint32_t i = 0; i < tables[t].num_kernels; i++) {
            if (tables[t].kernels[i].kind == def->kind) {
                printf("%s%s", n++ ? " " : "", tables[t].kernels[i].variant);
            }
        }
    }
    if (n == 0) {
        printf("%s", def->traits & NPU_NO_KERNEL ? "structural" : def->traits & NPU_VIEW ? "view" : "-");
    }
}

/* ---- dtypes ---- */

static npu_value operand(npu_graph *g, const conf_tensor *t, npu_dtype from, npu_dtype to, bool constant)
{
    npu_spec spec = npu_spec_tensor(t->dtype == from ? to : t->dtype, t->rank, t->dims);
    npu_value hole = { 0 };
    return t->absent ? hole : constant && t->dtype != from ? npu_constant_ref(g, NULL, spec, t->data) : npu_input(g, NULL, spec);
}

/* Whether the case's op is accepted, by type rule and CPU backend, with `to` wherever it has `from`. */
static bool takes(const npu_op_def *def, conf_case *c, npu_dtype from, npu_dtype to)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_arg args[CONF_MAX_ARGS];
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1 };
    npu_plan *plan = NULL;
    npu_op op;
    bool ok;
    for (uint32_t i = 0; i < c->num_args; i++) {
        npu_value *values = (npu_value *)conf_keep(c, (c->args[i].num_tensors + 1) * sizeof *values);
        for (uint32_t t = 0; t < c->args[i].num_tensors; t++) {
            values[t] = operand(g, &c->args[i].tensors[t], from, to, (def->traits & NPU_DATA) != 0);
        }
        args[i] = c->args[i].arg;
        if (args[i].form == NPU_ARG_TENSOR) {
            args[i].as.value = values[0];
        } else if (args[i].form == NPU_ARG_TENSORS) {
            args[i].as.values = values;
        }
    }
    op = npu_emit_name(g, def->name, args, c->num_args);
    for (uint32_t i = 0; i < npu_op_num_results(g, op); i++) {
        npu_output(g, NULL, npu_op_result(g, op, i));
    }
    ok = op.id && npu_plan_create(&plan, g, &desc, NULL) == NPU_OK && npu_plan_op_backend(plan, op, NULL, NULL) >= 0;
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return ok;
}

static npu_dtype first_dtype(const conf_case *c)
{
    for (uint32_t i = 0; i < c->num_args; i++) {
        if (c->args[i].num_tensors && !c->args[i].tensors[0].absent) {
            return c->args[i].tensors[0].dtype;
        }
    }
    return NPU_NONE;
}

static void print_dtypes(const npu_op_def *def)
{
    static const npu_dtype dtypes[] = { NPU_F64, NPU_F32, NPU_F16, NPU_BF16, NPU_I64, NPU_I32, NPU_I16, NPU_I8, NPU_U8, NPU_BOOL };
    conf_file file;
    conf_case c;
    if (conf_open(&file, "tests/vectors", def->name) && conf_next(&file, &c)) {
        for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0] && first_dtype(&c); i++) {
            if (takes(def, &c, first_dtype(&c), dtypes[i])) {
                printf(" %s", npu_dtype_name(dtypes[i]));
            }
        }
        conf_free(&c);
    }
    conf_close(&file);
}

/* ---- tests ---- */

static uint32_t count_vectors(const char *op)
{
    char path[256];
    uint32_t n = 0;
    snprintf(path, sizeof path, "tests/vectors/%s.cases", op);
    char *text = read_file(path);
    for (const char *p = text; p && (p = strstr(p, "\ncase ")) != NULL; p++) {
        n++;
    }
    free(text);
    return n;
}

static bool print_tests(const npu_op_def *def, char **files, char **texts, int num_files)
{
    uint32_t vectors = count_vectors(def->name);
    bool found = vectors > 0;
    if (vectors) {
        printf(" vectors:%u", (unsigned)vectors);
    }
    for (int i = 0; i < num_files; i++) {
        if (texts[i] && (has_word(texts[i], def->name) || has_word(texts[i], symbol_of(def->kind)))) {
            const char *base = strrchr(files[i], '/');
            printf(" %s", base ? base + 1 : files[i]);
            found = true;
        }
    }
    if (!found) {
        printf(" NONE");
    }
    return found;
}

static void print_traits(const npu_op_def *def)
{
#define NPU_X(symbol, bits) { symbol, #symbol },
    static const struct { uint32_t bits; const char *name; } traits[] = { NPU_IR_TRAITS(NPU_X) };
#undef NPU_X
    static const uint32_t one_of[] = { NPU_IDENTITY, NPU_ON, NPU_ALIAS };
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++) {
        uint32_t mask = traits[i].bits;
        for (size_t k = 0; k < sizeof one_of / sizeof one_of[0]; k++) {
            mask = traits[i].bits & one_of[k] ? one_of[k] : mask;
        }
        if ((def->traits & mask) == traits[i].bits) {
            printf(" %s", traits[i].name);
        }
    }
}

static void print_op(const npu_op_def *def)
{
    npu_text schema = npu_text_init(NULL);
    npu_schema_print(&schema, def->schema);
    printf("%s  %s 0x%08x  %s\n    %s\n    %s\n    ", def->name, symbol_of(def->kind), (unsigned)def->kind, def->category,
           schema.data ? schema.data : "", def->doc);
    npu_text_free(&schema);
    if (def->shapes) {
        printf("shapes: %s\n    ", def->shapes);
    }
    printf("kernels: ");
    print_kernels(def);
    printf("   traits:");
    print_traits(def);
    printf("   dtypes:");
    print_dtypes(def);
    printf("   tests:");
}

int main(int argc, char **argv)
{
    npu_registry *registry = NULL;
    npu_diag diag = { 0 };
    uint32_t listed = 0, untested = 0;
    bool is_part = argc > 2 && strcmp(argv[1], "-o") == 0;
    char **files = argv + (is_part ? 3 : 1), **texts;
    int num_files = argc - (is_part ? 3 : 1);
    if (npu_registry_create(&registry, NULL, &diag)) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    texts = (char **)malloc((size_t)argc * sizeof *texts);
    for (int i = 0; texts && i < num_files; i++) {
        texts[i] = read_file(files[i]);
    }
    for (uint32_t i = 0; texts && i < npu_registry_num_ops(registry); i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        if (!is_part || strstr(def->name, argv[2])) {
            print_op(def);
            untested += !print_tests(def, files, texts, num_files);
            printf("\n");
            listed++;
        }
    }
    printf("%u ops, %u without a test\n", (unsigned)listed, (unsigned)untested);
    for (int i = 0; texts && i < num_files; i++) {
        free(texts[i]);
    }
    free(texts);
    npu_registry_destroy(registry);
    return (is_part && listed == 0) || untested > 0;
}
