/* Every op refuses what cannot be right: the cases of tests/vectors, spoiled one argument at a time. Whatever the spoiled call
   says, it says it by status and message, the graph stays usable, and no memory outside the tensors is touched (the
   sanitizers run this too). What each type rule refuses in detail is in test_deduce.c. */
#define _POSIX_C_SOURCE 200809L /* opendir, fork */
#define _FILE_OFFSET_BITS 64 /* places in a folder have as many on some file systems */
#include "../npu_ir_backend_ref.h"
#include "conformance/cases.h"
#include "npu_test.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

/* A size that no memory has is refused by malloc, and not an end of the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

typedef struct call {
    const char *op;
    conf_case *c;
    npu_graph *graph;
    npu_arg args[CONF_MAX_ARGS + 1];
    uint32_t num_args;
} call;

/* ---- a call ---- */

static npu_value operand(call *k, const conf_tensor *t)
{
    npu_value hole = { 0 };
    if (t->absent) {
        return hole;
    }
    return npu_constant_ref(k->graph, NULL, npu_spec_tensor(t->dtype, t->rank, t->dims), t->data);
}

/* The case as it is; every tensor a constant, so that data-dependent rules see it. */
static void begin(call *k, const char *op, conf_case *c)
{
    k->op = op;
    k->c = c;
    k->graph = npu_graph_create(npu_test_graph_desc());
    k->num_args = c->num_args;
    for (uint32_t i = 0; i < c->num_args; i++) {
        const conf_arg *a = &c->args[i];
        npu_value *values = conf_keep(c, (a->num_tensors + 1) * sizeof *values);
        k->args[i] = a->arg;
        for (uint32_t t = 0; t < a->num_tensors; t++) {
            values[t] = operand(k, &a->tensors[t]);
        }
        if (a->arg.form == NPU_ARG_TENSOR) {
            k->args[i].as.value = values[0];
        } else if (a->arg.form == NPU_ARG_TENSORS) {
            k->args[i].as.values = values;
        }
    }
}

static npu_op emit(call *k) { return npu_emit_name(k->graph, k->op, k->args, k->num_args); }

/* Emits the spoiled call: refused, with a message that names the op, and nothing added to the graph. */
static void check_refused(call *k, const char *how, const char *what)
{
    const char *name = strchr(k->op, '.') + 1;
    uint32_t num_ops = npu_graph_num_ops(k->graph);
    size_t len = strcspn(name, ".");
    char text[600], want[80];
    snprintf(text, sizeof text, "%s %s '%s' of %s: %s", k->op, how, what, k->c->label,
             emit(k).id ? "accepted" : npu_graph_diag(k->graph)->message);
    snprintf(want, sizeof want, "%.*s", (int)len, name);
    if (npu_graph_status(k->graph) == NPU_OK || !strstr(npu_graph_diag(k->graph)->message, want) ||
        npu_graph_num_ops(k->graph) != num_ops) {
        NPU_CHECK_STR(text, "refused, with a message");
    }
    npu_graph_clear_error(k->graph);
}

/* ---- ways to spoil ---- */

static void unknown_argument(call *k)
{
    k->args[k->num_args++] = npu_arg_int("nonesuch", 1);
    check_refused(k, "with", "nonesuch");
    k->num_args--;
}

/* Each required operand left out. */
static void missing_operands(call *k)
{
    const npu_schema *schema = npu_registry_find(npu_graph_registry(k->graph), k->op)->schema;
    for (uint32_t i = 0; i < k->num_args; i++) {
        int at = npu_schema_find_arg(schema, k->args[i].name);
        const npu_schema_arg *arg = at < 0 ? NULL : &schema->args[at];
        npu_arg kept = k->args[i];
        if (!arg || arg->type.base != NPU_T_TENSOR || arg->type.optional || kept.form != NPU_ARG_TENSOR) {
            continue;
        }
        k->args[i] = k->args[k->num_args - 1];
        k->num_args--;
        check_refused(k, "without", kept.name);
        k->num_args++;
        k->args[i] = kept;
    }
}

/* Each operand as a tile, and as a tensor of eight-byte complex numbers or of a rank that no op takes with it. */
static void wrong_operands(call *k)
{
    for (uint32_t i = 0; i < k->num_args; i++) {
        npu_value kept = k->args[i].as.value;
        const conf_tensor *t = k->c->args[i].tensors;
        if (k->args[i].form == NPU_ARG_TENSOR && !t->absent) {
            k->args[i].as.value = npu_input(k->graph, NULL, npu_spec_tile(t->dtype, t->rank, t->dims));
            check_refused(k, "with a tile for", k->args[i].name);
            k->args[i].as.value = kept;
        }
    }
}

static bool is_dim_name(const char *name)
{
    static const char *const names[] = { "dim", "dim0", "dim1", "axis", "start_dim", "end_dim", "axis0", "axis1" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Each dim far outside the rank, on both sides. */
static void wrong_dims(call *k)
{
    static const int64_t dims[] = { 99, -99, INT64_MAX, INT64_MIN + 1 };
    for (uint32_t i = 0; i < k->num_args; i++) {
        npu_arg kept = k->args[i];
        bool is_list = kept.form == NPU_ARG_INTS && kept.count > 0;
        for (size_t d = 0; is_dim_name(kept.name) && (is_list || kept.form == NPU_ARG_INT) && d < 4; d++) {
            k->args[i] = is_list ? npu_arg_ints(kept.name, &dims[d], 1) : npu_arg_int(kept.name, dims[d]);
            check_refused(k, "with a dim outside for", kept.name);
            k->args[i] = kept;
        }
    }
}

/* Dims of what was accepted are known, as its operands are constants: no number stands for a dim told by the run. */
static void check_known_dims(call *k, npu_op op)
{
    for (uint32_t i = 0; i < npu_op_num_results(k->graph, op); i++) {
        const npu_spec *r = npu_value_spec(k->graph, npu_op_result(k->graph, op, i));
        for (uint32_t d = 0; d < r->rank; d++) {
            if (r->dims[d] < 0) {
                char text[600];
                snprintf(text, sizeof text, "%s of %s: result %u dim %u", k->op, k->c->label, (unsigned)i, (unsigned)d);
                NPU_CHECK_STR(text, "a number");
            }
        }
    }
}

/* Runs what was accepted; any status will do. */
static void run_whatever(call *k, npu_op op)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_status status;
    for (uint32_t i = 0; i < npu_op_num_results(k->graph, op); i++) {
        char name[24];
        snprintf(name, sizeof name, "r%u", (unsigned)i);
        npu_output(k->graph, name, npu_op_result(k->graph, op, i));
    }
    status = npu_exec_create_simple(&exec, k->graph, &cpu, 1, &diag);
    status = status ? status : npu_exec_run(exec);
    if (status && !diag.message[0] && !npu_exec_diag(exec)->message[0]) {
        NPU_CHECK_STR(k->op, "an error with a message");
    }
    npu_exec_destroy(exec);
}

/* Other numbers where sizes, counts and positions stand: refused, or run without harm. */
static void odd_numbers(conf_case *c, const char *op)
{
    static const int64_t odd[] = { -1, INT64_MAX, INT64_MIN + 1, INT64_MIN, 0 };
    for (uint32_t i = 0; i < c->num_args; i++) {
        for (size_t d = 0; d < 5 && (c->args[i].arg.form == NPU_ARG_INT || c->args[i].arg.form == NPU_ARG_INTS); d++) {
            call k;
            npu_op emitted;
            int64_t ints[NPU_MAX_RANK];
            uint32_t count = c->args[i].arg.count < NPU_MAX_RANK ? c->args[i].arg.count : NPU_MAX_RANK;
            begin(&k, op, c);
            for (uint32_t n = 0; n < count; n++) {
                ints[n] = n == 0 || c->args[i].arg.form == NPU_ARG_INT ? odd[d] : c->args[i].arg.as.ints[n];
            }
            k.args[i] = c->args[i].arg.form == NPU_ARG_INT ? npu_arg_int(c->args[i].arg.name, odd[d])
                                                           : npu_arg_ints(c->args[i].arg.name, ints, count);
            emitted = emit(&k);
            if (emitted.id) {
                check_known_dims(&k, emitted);
                run_whatever(&k, emitted);
            } else if (!npu_graph_diag(k.graph)->message[0]) {
                NPU_CHECK_STR(op, "an error with a message");
            }
            npu_graph_destroy(k.graph);
        }
    }
}

/* Lists of more numbers than a tensor has dims: refused, or run without harm. */
static void long_lists(conf_case *c, const char *op)
{
    for (uint32_t i = 0; i < c->num_args; i++) {
        const npu_arg *a = &c->args[i].arg;
        int64_t ints[3 * NPU_MAX_RANK];
        call k;
        npu_op emitted;
        if (a->form != NPU_ARG_INTS || !a->count) {
            continue;
        }
        for (uint32_t n = 0; n < 3 * NPU_MAX_RANK; n++) {
            ints[n] = a->as.ints[n % a->count];
        }
        begin(&k, op, c);
        k.args[i] = npu_arg_ints(a->name, ints, 3 * NPU_MAX_RANK);
        emitted = emit(&k);
        if (emitted.id) {
            run_whatever(&k, emitted);
        } else if (!npu_graph_diag(k.graph)->message[0]) {
            NPU_CHECK_STR(op, "an error with a message");
        }
        npu_graph_destroy(k.graph);
    }
}

/* Index operands that point far outside: an error, or a result that does not depend on them. */
static void odd_indices(conf_case *c, const char *op)
{
    static const int64_t odd[] = { INT64_MAX / 2, -1000000007, INT64_MIN };
    for (uint32_t i = 0; i < c->num_args; i++) {
        for (uint32_t t = 0; t < c->args[i].num_tensors; t++) {
            conf_tensor *x = &c->args[i].tensors[t], kept = *x;
            for (size_t d = 0; d < 3 && x->dtype == NPU_I64 && !x->absent && x->size; d++) {
                int64_t *data = conf_keep(c, x->size);
                call k;
                npu_op emitted;
                for (size_t n = 0; n < x->size / sizeof *data; n++) {
                    data[n] = n % 2 ? ((const int64_t *)kept.data)[n] : odd[d];
                }
                x->data = data;
                begin(&k, op, c);
                emitted = emit(&k);
                if (emitted.id) {
                    run_whatever(&k, emitted);
                }
                npu_graph_destroy(k.graph);
                *x = kept;
            }
        }
    }
}

static void spoil(const char *op, conf_case *c)
{
    call k;
    begin(&k, op, c);
    unknown_argument(&k);
    missing_operands(&k);
    wrong_operands(&k);
    wrong_dims(&k);
    if (!emit(&k).id) { /* the graph took no harm */
        NPU_CHECK_STR(npu_graph_diag(k.graph)->message, "accepted");
    }
    npu_graph_destroy(k.graph);
    odd_numbers(c, op);
    long_lists(c, op);
    odd_indices(c, op);
}

enum { NUM_CASES = 4 }; /* of an op */

/* The first cases of an op that have tensors with elements. */
static void spoil_file(const char *op)
{
    conf_file file;
    conf_case c;
    int num_cases = 0;
    if (conf_open(&file, "tests/vectors", op)) {
        while (num_cases < NUM_CASES && conf_next(&file, &c)) {
            if (c.num_args > 0 && (c.args[0].num_tensors == 0 || c.args[0].tensors[0].size > 8)) {
                spoil(op, &c);
                num_cases++;
            }
            conf_free(&c);
        }
    }
    conf_close(&file);
}

/* In a process of its own, so that a crash costs one op. */
static void spoil_op(const char *op)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        npu_test.bad_checks = 0;
        alarm(60); /* a loop without end is a failure, too */
        spoil_file(op);
        exit(npu_test.bad_checks != 0);
    }
    if (child < 0 || waitpid(child, &state, 0) != child || !WIFEXITED(state) || WEXITSTATUS(state)) {
        NPU_CHECK_STR(op, WIFSIGNALED(state) ? "no crash" : "no failed check");
    }
}

static void test_spoiled_calls(void)
{
    int num_ops = 0;
#ifdef __SANITIZE_THREAD__
    NPU_SKIP("each call runs on one thread, and forks are slow under this sanitizer");
    return;
#endif
    DIR *dir = opendir("tests/vectors");
    NPU_CHECK(npu_test_graph_desc()); /* before processes part */
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t len = strlen(entry->d_name);
        if (len > 12 && strcmp(entry->d_name + len - 6, ".cases") == 0) {
            char op[256];
            snprintf(op, sizeof op, "%.*s", (int)(len - 6), entry->d_name);
            spoil_op(op);
            num_ops++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    NPU_CHECK(num_ops > 500);
}

int main(void)
{
    NPU_RUN(test_spoiled_calls);
    return npu_test_done();
}
