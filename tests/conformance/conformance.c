/* conformance.c - runs ATen test vectors through the public API.

       conformance [-a] [-c] [-j N] [-k] [-o OP]... [-r] [-t FILE] [-v] [DIRECTORY]

       DIRECTORY  pairs of <namespace>.<op>.cases and .bin; default tests/vectors
       -a         all ways to run a case, not the first three alone
       -c         on the CPU backend alone, the first way
       -j N       N processes at a time (an op is a process, so that a crash costs one op); 0 = none, for a debugger
       -k         npu_backend_test.h, on the accelerator alone
       -o OP      this op only; may be repeated
       -r         only ops that have a row
       -t FILE    a table: op, passed, failed, skipped, first message, separated by tabs
       -v         every failing case with its message

   Each case is emitted by op name; its result specs must be as expected; then it runs three times: on the CPU backend, on an
   accelerator between ops on the CPU so that every operand and result is moved, and after printing and parsing the graph.
   With -a it also runs after printing and parsing it as JSON, and as structured loops where "convert-aten-to-linalg" makes
   some of it. An op whose result specs may depend on data gets its operands as constants in these; with -a it runs once
   more with inputs, where the run must tell the dims, unless its type rule says by DYNAMIC_SHAPE that it must know the
   data; and every op runs with a symbol for every dim over 1 of its operands, equal ones for equal dims, unless a rule or
   the plan says by DYNAMIC_SHAPE that it must know them. The CPU runs it with the plain kernels alone, with functions for
   less than its instruction sets, and with an allocator that fails at the first, second ... call, which must be a status
   and leave nothing behind. Numbers are fed by tensors, one after the other. Last, operands are
   constants, and permutations of what is stored transposed, which changes no bit.
   A case whose results are all `skip` counts as skipped when it ran. */
#define _POSIX_C_SOURCE 200809L /* fork, getopt */
#define _FILE_OFFSET_BITS 64 /* places in a folder have as many on some file systems */
#include "accelerator.h"
#include "cases.h"
#include "npu_backend_test.h"
#include "../isa.h"
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>


typedef struct tally {
    int passed, failed, skipped;
    char message[600]; /* of the first failure */
} tally;

typedef struct options {
    const char *directory, *table, *ops[256];
    int num_ops, jobs;
    bool verbose, registered_only, all_ways, cpu_alone, kit;
} options;

static npu_graph_desc shared; /* one registry for all graphs: there are tens of thousands */

/* ---- building ---------------------------------------------------------------------------------------------- */

typedef struct built {
    npu_graph *graph;
    npu_op op;
    bool moved;   /* operands and results pass through a clone, which stays on the CPU */
    bool symbols; /* operands have symbols for dims */
    bool strided; /* operands are permutations of inputs */
} built;

/* The dim itself, or the symbol for it, which may be somewhat larger. */
static int64_t make_dim(built *b, int64_t dim)
{
    char name[32];
    snprintf(name, sizeof name, "s%lld", (long long)dim);
    return b->symbols && dim > 1 ? npu_graph_add_symbol(b->graph, name, 0, dim + 3) : dim;
}

static npu_value make_value(built *b, const conf_tensor *t, const char *name, bool constant)
{
    npu_spec spec = npu_spec_tensor(t->dtype, t->rank, t->dims);
    npu_value none = { 0 };
    if (t->absent) {
        return none;
    }
    if (constant) {
        return npu_constant_ref(b->graph, name, spec, t->data);
    }
    for (uint32_t i = 0; i < spec.rank; i++) {
        spec.dims[i] = make_dim(b, spec.dims[i]);
    }
    npu_value v = npu_input(b->graph, name, spec);
    if (b->strided && spec.rank >= 2) {
        int64_t reversed[NPU_MAX_RANK];
        for (uint32_t i = 0; i < spec.rank; i++) {
            reversed[i] = spec.rank - 1 - i;
        }
        v = npu_permute(b->graph, v, reversed, spec.rank);
    }
    return b->moved ? npu_clone(b->graph, v) : v;
}

static npu_arg make_arg(built *b, conf_case *c, const conf_arg *a, bool constant)
{
    npu_arg arg = a->arg;
    npu_value *values = conf_keep(c, (a->num_tensors + 1) * sizeof *values);
    for (uint32_t i = 0; i < a->num_tensors; i++) {
        char name[80];
        snprintf(name, sizeof name, arg.form == NPU_ARG_TENSORS ? "%s.%u" : "%s", arg.name, (unsigned)i);
        values[i] = make_value(b, &a->tensors[i], name, constant);
    }
    if (arg.form == NPU_ARG_TENSOR) {
        arg.as.value = values[0];
    } else if (arg.form == NPU_ARG_TENSORS) {
        arg.as.values = values;
    }
    return arg;
}

static bool depends_on_data(const npu_graph *g, const char *op)
{
    const npu_op_def *def = npu_registry_find(npu_graph_registry(g), op);
    return def && (def->traits & NPU_DATA);
}

enum { BUILD_PLAIN, BUILD_MOVED, BUILD_INPUTS, BUILD_SYMBOLS, BUILD_FED, BUILD_STRIDED, BUILD_CONSTANT };

static npu_status build(built *b, conf_case *c, const char *op, int how)
{
    npu_arg args[CONF_MAX_ARGS];
    bool moved = how == BUILD_MOVED;
    b->graph = npu_graph_create(&shared);
    b->moved = moved;
    b->symbols = how == BUILD_SYMBOLS;
    b->strided = how == BUILD_STRIDED;
    bool constant = how == BUILD_CONSTANT || (how < BUILD_INPUTS && b->graph && depends_on_data(b->graph, op));
    for (uint32_t i = 0; i < c->num_args; i++) {
        args[i] = make_arg(b, c, &c->args[i], constant);
    }
    b->op = npu_emit_name(b->graph, op, args, c->num_args);
    for (uint32_t i = 0; b->op.id && i < npu_op_num_results(b->graph, b->op); i++) {
        char name[32];
        npu_value v = npu_op_result(b->graph, b->op, i);
        snprintf(name, sizeof name, "out%u", (unsigned)i);
        npu_output(b->graph, name, moved ? npu_clone(b->graph, v) : v);
    }
    return npu_graph_status(b->graph);
}

/* ---- checking ---------------------------------------------------------------------------------------------- */

/* Each check returns true when all is well, else writes why. */
static bool check_spec(const npu_spec *spec, const conf_out *out, uint32_t i, char *why, size_t size)
{
    const conf_tensor *t = &out->tensor;
    bool same = spec->dtype == (uint8_t)t->dtype && spec->rank == t->rank &&
                memcmp(spec->dims, t->dims, t->rank * sizeof t->dims[0]) == 0;
    if (same || out->form == CONF_OUT_SKIP || out->form == CONF_OUT_NONE) {
        return true;
    }
    npu_text text = npu_text_init(NULL);
    npu_spec expected = npu_spec_tensor(t->dtype, t->rank, t->dims);
    npu_text_printf(&text, "result %u is ", (unsigned)i);
    npu_spec_print(&text, spec);
    npu_text_printf(&text, ", expected ");
    npu_spec_print(&text, &expected);
    snprintf(why, size, "%s", text.data ? text.data : "out of memory");
    npu_text_free(&text);
    return false;
}

static bool check_specs(const built *b, const conf_case *c, char *why, size_t size)
{
    uint32_t n = npu_op_num_results(b->graph, b->op);
    if (n != c->num_outs) {
        snprintf(why, size, "%u results, expected %u", (unsigned)n, (unsigned)c->num_outs);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!check_spec(npu_value_spec(b->graph, npu_op_result(b->graph, b->op, i)), &c->outs[i], i, why, size)) {
            return false;
        }
    }
    return true;
}

/* Dims that only the run has told. */
static bool check_shapes(const npu_exec *exec, const conf_case *c, char *why, size_t size)
{
    bool ok = true;
    for (uint32_t i = 0; i < c->num_outs && ok; i++) {
        ok = check_spec(npu_exec_output_spec(exec, i), &c->outs[i], i, why, size);
    }
    return ok;
}

static bool check_data(const npu_exec *exec, const conf_case *c, char *why, size_t size)
{
    for (uint32_t i = 0; i < c->num_outs; i++) {
        size_t bytes = 0;
        const conf_out *out = &c->outs[i];
        const void *got = npu_exec_output(exec, i, &bytes);
        if (out->form != CONF_OUT_TENSOR) {
            continue;
        }
        if (bytes != out->tensor.size || (!got && bytes)) {
            snprintf(why, size, "result %u has %zu bytes, expected %zu", (unsigned)i, bytes, out->tensor.size);
            return false;
        }
        size_t bad = conf_compare(&out->tensor, got, c->rtol, c->atol);
        if (bad != SIZE_MAX) {
            char a[40], e[40];
            conf_element_text(out->tensor.dtype, got, bad, a, sizeof a);
            conf_element_text(out->tensor.dtype, out->tensor.data, bad, e, sizeof e);
            snprintf(why, size, "result %u element %zu is %s, expected %s", (unsigned)i, bad, a, e);
            return false;
        }
    }
    return true;
}

/* ---- running ----------------------------------------------------------------------------------------------- */

/* Constants are no inputs, so names that are not found are fine as long as the run finds all it needs. */
static npu_status feed(npu_exec *exec, const conf_case *c)
{
    for (uint32_t i = 0; i < c->num_args; i++) {
        const conf_arg *a = &c->args[i];
        for (uint32_t k = 0; k < a->num_tensors; k++) {
            char name[80];
            snprintf(name, sizeof name, a->arg.form == NPU_ARG_TENSORS ? "%s.%u" : "%s", a->arg.name, (unsigned)k);
            const conf_tensor *t = &a->tensors[k];
            npu_array input = { name, npu_spec_tensor(t->dtype, t->rank, t->dims), t->data };
            npu_status status = t->absent ? NPU_OK : npu_exec_set_input(exec, &input);
            if (status && status != NPU_ERR_NOT_FOUND) {
                return status;
            }
        }
    }
    return NPU_OK;
}

/* Runs a made exec and compares; destroys it. */
static bool run_exec(npu_exec *exec, npu_status made, const npu_diag *diag, const conf_case *c, char *why, size_t size)
{
    npu_status status = made;
    bool ok = false;
    if (made) {
        snprintf(why, size, "%s: %s", npu_status_name(made), diag->message);
    } else if ((status = feed(exec, c)) != NPU_OK || (status = npu_exec_run(exec)) != NPU_OK) {
        snprintf(why, size, "%s: %s", npu_status_name(status), npu_exec_diag(exec)->message);
    } else {
        ok = check_shapes(exec, c, why, size) && check_data(exec, c, why, size);
    }
    npu_exec_destroy(exec);
    return ok;
}

static bool run_on(const npu_backend *cpu, const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_exec_create_simple(&exec, g, &cpu, 1, &diag);
    return run_exec(exec, status, &diag, c, why, size);
}

static bool run_on_cpu(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    return run_on(npu_ref_backend(), g, c, why, size);
}

static bool run_plain(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    static npu_backend *plain;
    npu_ref_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.variant = "plain";
    if (!plain && npu_ref_create(&plain, &desc)) {
        snprintf(why, size, "no backend of plain kernels");
        return false;
    }
    return run_on(plain, g, c, why, size);
}

/* Under every instruction set but the best one, which the default backend takes. */
static bool run_sets(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    bool ok = true;
    for (uint32_t i = 1; ok && npu_ref_isa(i); i++) {
        ok = isa_cpu(i) && run_on(isa_cpu(i), g, c, why, size);
        if (!ok) {
            size_t len = strlen(why);
            snprintf(why + len, size - len, " (%s)", npu_ref_isa(i));
        }
    }
    return ok;
}

/* On a CPU backend whose nth allocation fails; what is expected is that status, or the result where there were fewer. */
static bool run_without(const npu_graph *g, const conf_case *c, uint64_t n, npu_alloc_counter *counter, char *why, size_t size)
{
    npu_allocator a = npu_allocator_counting(counter);
    npu_backend *cpu = NULL;
    npu_ref_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(counter, 0, sizeof *counter);
    desc.allocator = &a;
    counter->fail_at = n;
    npu_status status = npu_ref_create(&cpu, &desc);
    bool ok = cpu ? run_on(cpu, g, c, why, size) : status == NPU_ERR_NO_MEMORY;
    npu_ref_destroy(cpu);
    if (cpu && counter->num_calls >= n) {
        ok = !ok && strncmp(why, "NPU_ERR_NO_MEMORY: ", 19) == 0;
    }
    if (counter->live_bytes) {
        snprintf(why, size, "%zu bytes are left when allocation %d of the CPU failed", counter->live_bytes, (int)n);
        ok = false;
    }
    return ok;
}

static bool run_out_of_memory(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    npu_alloc_counter counter;
    uint64_t n = 0;
    bool ok;
    do {
        ok = run_without(g, c, ++n, &counter, why, size);
    } while (ok && counter.num_calls >= n);
    return ok;
}

static int place_op(void *ctx, const npu_op_info *op, const char *label)
{
    (void)label;
    return op->op == *(const uint32_t *)ctx ? 0 : 1;
}

static bool run_planned(npu_plan *plan, const conf_case *c, char *why, size_t size)
{
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    npu_status status = npu_program_create(&program, plan, &diag);
    status = status ? status : npu_exec_create(&exec, program, NULL, &diag);
    bool ok = run_exec(exec, status, &diag, c, why, size);
    npu_program_destroy(program);
    return ok;
}

static bool run_split(conf_case *c, const char *op, char *why, size_t size)
{
    const npu_backend *backends[2] = { conformance_accelerator(), npu_ref_backend() };
    npu_diag diag = { 0 };
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    built b;
    npu_status status = build(&b, c, op, BUILD_MOVED);
    bool ok = false;
    memset(&desc, 0, sizeof desc);
    desc.backends = backends;
    desc.num_backends = 2;
    desc.override = place_op;
    desc.override_ctx = &b.op.id;
    if (status) {
        snprintf(why, size, "%s: %s", npu_status_name(status), npu_graph_diag(b.graph)->message);
    } else if ((status = npu_plan_create(&plan, b.graph, &desc, &diag)) != NPU_OK) {
        snprintf(why, size, "%s: %s", npu_status_name(status), diag.message);
    } else {
        ok = run_planned(plan, c, why, size);
    }
    npu_plan_destroy(plan);
    npu_graph_destroy(b.graph);
    return ok;
}

/* A form that graphs are written in and read from. */
typedef struct form {
    npu_status (*print)(const npu_graph *g, npu_text *text);
    npu_status (*parse)(npu_graph **out, const char *text, size_t len, const npu_graph_desc *desc, npu_diag *diag);
} form;

static const form form_text = { npu_graph_print, npu_graph_parse };
static const form form_json = { npu_graph_print_json, npu_graph_parse_json };

/* JSON has no place for unknown dims, and reads an op that writes to an operand as another one. */
static bool has_json(const npu_graph *g)
{
    npu_text text = npu_text_init(NULL);
    npu_status status = npu_graph_print_json(g, &text);
    bool writes = false;
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        const npu_schema *schema = npu_op_definition(g, (npu_op){ i })->schema;
        for (uint32_t a = 0; a < schema->num_args; a++) {
            writes = writes || (schema->args[a].type.alias && strchr(schema->args[a].type.alias, '!'));
        }
    }
    npu_text_free(&text);
    return !writes && status != NPU_ERR_DYNAMIC_SHAPE && status != NPU_ERR_UNSUPPORTED;
}

static bool run_form(const npu_graph *g, const form *f, const conf_case *c, char *why, size_t size)
{
    npu_text first = npu_text_init(NULL), second = npu_text_init(NULL);
    npu_diag diag = { 0 };
    npu_graph *again = NULL;
    bool ok = false;
    npu_status status = f->print(g, &first);
    status = status ? status : f->parse(&again, first.data, first.len, &shared, &diag);
    status = status ? status : f->print(again, &second);
    if (status) {
        snprintf(why, size, "%s: line %d: %s", npu_status_name(status), (int)diag.line, diag.message);
    } else if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0) {
        snprintf(why, size, "printed again, the text differs");
    } else {
        ok = run_on_cpu(again, c, why, size);
    }
    npu_graph_destroy(again);
    npu_text_free(&second);
    npu_text_free(&first);
    return ok;
}

static bool run_json(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    return !has_json(g) || run_form(g, &form_json, c, why, size);
}

/* As structured loops, where the pass makes them of it. */
static bool run_lowered(const npu_graph *g, const conf_case *c, char *why, size_t size)
{
    npu_pass_options validated = { NULL, NULL, true, 0 };
    npu_diag diag = { 0 };
    npu_graph *now = NULL;
    npu_status status = npu_graph_run_passes(&now, g, npu_conversion_pass("convert-aten-to-linalg"), 1, &validated, &diag);
    bool lowered = false, ok = status == NPU_OK;
    for (uint32_t i = 1; ok && i <= npu_graph_num_ops(now); i++) {
        npu_op op = { i };
        lowered = lowered || strcmp(npu_op_definition(now, op)->space, "aten") != 0;
    }
    if (!ok) {
        snprintf(why, size, "%s: %s", npu_status_name(status), diag.message);
    } else if (lowered) {
        ok = run_on_cpu(now, c, why, size);
    }
    npu_graph_destroy(now);
    return ok;
}

/* With inputs where the other stages have constants, or with symbols for dims: nothing is known before the run. */
static bool run_unknown(conf_case *c, const char *op, int how, char *why, size_t size)
{
    built b;
    npu_status status = build(&b, c, op, how);
    bool ok = (how == BUILD_INPUTS && !depends_on_data(b.graph, op)) || status == NPU_ERR_DYNAMIC_SHAPE;
    if (!ok && status) {
        snprintf(why, size, "%s: %s", npu_status_name(status), npu_graph_diag(b.graph)->message);
    } else if (!ok) {
        ok = run_on_cpu(b.graph, c, why, size) || strncmp(why, "NPU_ERR_DYNAMIC_SHAPE: ", 23) == 0;
    }
    npu_graph_destroy(b.graph);
    return ok;
}

/* Each number of the call once by an element of a tensor, which only the run knows. A rule or the plan may say that it
   must know it, by name; where it runs, the results are those of the number. */
static bool run_fed(conf_case *c, const char *op, char *why, size_t size)
{
    bool ok = true;
    for (uint32_t i = 0; i < c->num_args && ok; i++) {
        conf_arg *a = &c->args[i], before = *a;
        if (a->arg.form != NPU_ARG_INT) {
            continue;
        }
        int64_t *number = conf_keep(c, sizeof *number);
        *number = a->arg.as.i;
        a->tensors = conf_keep(c, sizeof *a->tensors);
        a->tensors->dtype = NPU_I64;
        a->tensors->data = number;
        a->tensors->size = sizeof *number;
        a->num_tensors = 1;
        a->arg = npu_arg_tensor(before.arg.name, (npu_value){ 0 });
        ok = run_unknown(c, op, BUILD_FED, why, size) || strstr(why, " is dynamic, ");
        *a = before;
    }
    return ok;
}

/* The operands are stored with their dims in reverse; what is smaller than a byte stays as it is. */
static void transpose(conf_case *c, conf_tensor *t)
{
    size_t bytes = npu_dtype_bits(t->dtype) / 8, from[NPU_MAX_RANK], len = bytes ? t->size / bytes : 0;
    char *data = conf_keep(c, t->size + 1);
    conf_tensor old = *t;
    size_t step = bytes;
    for (uint32_t i = t->rank; i-- > 0;) {
        from[t->rank - 1 - i] = step;
        t->dims[t->rank - 1 - i] = old.dims[i];
        step *= (size_t)old.dims[i];
    }
    for (size_t i = 0; i < len; i++) {
        size_t rest = i, at = 0;
        for (uint32_t d = t->rank; d-- > 0; rest /= (size_t)t->dims[d]) {
            at += rest % (size_t)t->dims[d] * from[d];
        }
        memcpy(data + i * bytes, (const char *)old.data + at, bytes);
    }
    t->data = data;
}

/* The results of the CPU become what is expected, bit for bit. */
static bool expect_own(conf_case *c, const npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    bool ok = !npu_exec_create_simple(&exec, g, &cpu, 1, NULL) && !feed(exec, c) && !npu_exec_run(exec);
    c->rtol = c->atol = 0;
    for (uint32_t i = 0; i < c->num_outs && ok; i++) {
        conf_tensor *t = &c->outs[i].tensor;
        size_t bytes;
        const void *own = npu_exec_output(exec, i, &bytes);
        if (c->outs[i].form == CONF_OUT_TENSOR && bytes) {
            t->data = memcpy(conf_keep(c, bytes), own, bytes);
        }
    }
    npu_exec_destroy(exec);
    return ok;
}

/* Neither what is known before a run nor where elements lie decides anything: the bits are those of dense inputs. Ends the
   use of the case for other ways. */
static bool run_strided(conf_case *c, const char *op, const npu_graph *dense, char *why, size_t size)
{
    if (!expect_own(c, dense)) {
        snprintf(why, size, "dense operands do not run again");
        return false;
    }
    if (!run_unknown(c, op, BUILD_CONSTANT, why, size)) {
        return false;
    }
    for (uint32_t i = 0; i < c->num_args; i++) {
        for (uint32_t k = 0; k < c->args[i].num_tensors; k++) {
            if (!c->args[i].tensors[k].absent && c->args[i].tensors[k].rank >= 2) {
                transpose(c, &c->args[i].tensors[k]);
            }
        }
    }
    return run_unknown(c, op, BUILD_STRIDED, why, size);
}

/* The stages of a case, in order; `why` begins with the name of the stage that failed. */
static bool run_case(const options *o, conf_case *c, const char *op, char *why, size_t size)
{
    static const char *const stages[] = { "emit", "spec", "cpu", "split", "text", "json", "lowered", "unknown", "symbols",
                                          "plain", "sets", "memory", "fed", "strided" };
    char text[300] = "";
    built b;
    bool ok = build(&b, c, op, BUILD_PLAIN) == NPU_OK;
    int stage = 0, end = o->all_ways ? 14 : o->cpu_alone ? 3 : 5;
    end = npu_graph_num_outputs(b.graph) ? end : 2; /* without a result there is nothing to run */
    if (!ok) {
        snprintf(text, sizeof text, "%s: %s", npu_status_name(npu_graph_status(b.graph)), npu_graph_diag(b.graph)->message);
    }
    while (ok && ++stage < end) {
        ok = stage == 1   ? check_specs(&b, c, text, sizeof text)
             : stage == 2 ? run_on_cpu(b.graph, c, text, sizeof text)
             : stage == 3 ? run_split(c, op, text, sizeof text)
             : stage == 4 ? run_form(b.graph, &form_text, c, text, sizeof text)
             : stage == 5 ? run_json(b.graph, c, text, sizeof text)
             : stage == 6 ? run_lowered(b.graph, c, text, sizeof text)
             : stage <= 8 ? run_unknown(c, op, stage == 7 ? BUILD_INPUTS : BUILD_SYMBOLS, text, sizeof text)
             : stage == 9 ? run_plain(b.graph, c, text, sizeof text)
             : stage == 10 ? run_sets(b.graph, c, text, sizeof text)
             : stage == 11 ? run_out_of_memory(b.graph, c, text, sizeof text)
             : stage == 12 ? run_fed(c, op, text, sizeof text)
                           : run_strided(c, op, b.graph, text, sizeof text);
    }
    npu_graph_destroy(b.graph);
    if (!ok) {
        snprintf(why, size, "%s: %s", stages[stage], text);
    }
    return ok;
}

static bool nothing_promised(const conf_case *c)
{
    for (uint32_t i = 0; i < c->num_outs; i++) {
        if (c->outs[i].form != CONF_OUT_SKIP) {
            return false;
        }
    }
    return c->num_outs > 0;
}

/* ---- ops --------------------------------------------------------------------------------------------------- */

static void count_failure(tally *t, const options *o, const char *op, const char *label, const char *why)
{
    t->failed++;
    if (!t->message[0]) {
        snprintf(t->message, sizeof t->message, "%.150s: %.400s", label, why);
    }
    if (o->verbose) {
        printf("FAIL %s %s: %s\n", op, label, why);
    }
}

static void run_op(const options *o, const char *op, tally *t)
{
    conf_file file;
    conf_case c;
    char why[400];
    memset(t, 0, sizeof *t);
    if (!conf_open(&file, o->directory, op)) {
        count_failure(t, o, op, "file", file.error);
        conf_close(&file);
        return;
    }
    while (conf_next(&file, &c)) {
        if (!run_case(o, &c, op, why, sizeof why)) {
            count_failure(t, o, op, c.label, why);
        } else if (nothing_promised(&c)) {
            t->skipped++;
        } else {
            t->passed++;
        }
        conf_free(&c);
    }
    if (file.error[0]) {
        count_failure(t, o, op, "file", file.error);
    } else if (t->passed + t->failed + t->skipped == 0) {
        count_failure(t, o, op, "file", "it has no case");
    }
    conf_close(&file);
    fflush(stdout);
}

typedef struct job {
    pid_t pid;
    int fd;
    int op; /* index */
} job;

static job start_job(const options *o, const char *op, int index)
{
    job j = { -1, -1, index };
    int fds[2];
    fflush(stdout);
    if (pipe(fds) != 0) {
        return j;
    }
    j.pid = fork();
    j.fd = fds[0];
    if (j.pid == 0) {
        tally t;
        run_op(o, op, &t);
        ssize_t n = write(fds[1], &t, sizeof t); /* less than PIPE_BUF: in one piece, and it never waits */
        exit(n == (ssize_t)sizeof t ? 0 : 1); /* not _exit: what a compiler adds counts coverage and looks for leaks then */
    }
    close(fds[1]);
    return j;
}

static void finish_job(job *j, int state, tally *t)
{
    if (read(j->fd, t, sizeof *t) != (ssize_t)sizeof *t) {
        memset(t, 0, sizeof *t);
        t->failed = 1;
        snprintf(t->message, sizeof t->message, "the process ended with %s %d", WIFSIGNALED(state) ? "signal" : "status",
                 WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state));
    }
    close(j->fd);
    j->pid = -1;
}

static void run_jobs(const options *o, char **ops, int num_ops, tally *tallies)
{
    job jobs[64];
    int running = 0, next = 0, width = o->jobs < 64 ? o->jobs : 64;
    while (next < num_ops || running) {
        while (next < num_ops && running < width) {
            jobs[running] = start_job(o, ops[next], next);
            next++;
            running++;
        }
        int state = 0;
        pid_t pid = wait(&state);
        for (int i = 0; i < running; i++) {
            if (jobs[i].pid == pid) {
                finish_job(&jobs[i], state, &tallies[jobs[i].op]);
                jobs[i] = jobs[--running];
                break;
            }
        }
    }
}

/* ---- the list of ops --------------------------------------------------------------------------------------- */

static bool is_wanted(const options *o, const npu_registry *registry, const char *op)
{
    if (o->registered_only && !npu_registry_find(registry, op)) {
        return false;
    }
    for (int i = 0; i < o->num_ops; i++) {
        if (strcmp(o->ops[i], op) == 0) {
            return true;
        }
    }
    return o->num_ops == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the ops of a directory, sorted. */
static char **list_ops(const options *o, int *count)
{
    DIR *dir = opendir(o->directory);
    char **ops = NULL;
    *count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t len = strlen(entry->d_name);
        if (len < 12 || strcmp(entry->d_name + len - 6, ".cases") != 0) {
            continue;
        }
        char *op = conf_copy(entry->d_name, len - 6);
        if (!is_wanted(o, shared.registry, op)) {
            free(op);
            continue;
        }
        ops = conf_grow(ops, ((size_t)*count + 1) * sizeof *ops);
        ops[(*count)++] = op;
    }
    if (dir) {
        closedir(dir);
    }
    if (ops) {
        qsort(ops, (size_t)*count, sizeof *ops, by_name);
    }
    return ops;
}

static void print_tallies(const options *o, char **ops, int num_ops, const tally *tallies, tally *total)
{
    FILE *table = o->table ? fopen(o->table, "w") : NULL;
    for (int i = 0; i < num_ops; i++) {
        const tally *t = &tallies[i];
        printf("%s %d %d %d%s%s\n", ops[i], t->passed, t->failed, t->skipped, t->failed ? "  " : "", t->failed ? t->message : "");
        if (table) {
            fprintf(table, "%s\t%d\t%d\t%d\t%s\n", ops[i], t->passed, t->failed, t->skipped, t->message);
        }
        total->passed += t->passed;
        total->failed += t->failed;
        total->skipped += t->skipped;
    }
    if (table) {
        fclose(table);
    }
}

static bool read_options(options *o, int argc, char **argv)
{
    int letter;
    memset(o, 0, sizeof *o);
    o->directory = "tests/vectors";
    o->jobs = 1;
    while ((letter = getopt(argc, argv, "acj:ko:rt:v")) != -1) {
        switch (letter) {
        case 'j': o->jobs = atoi(optarg); break;
        case 'o':
            if (o->num_ops < 256) {
                o->ops[o->num_ops++] = optarg;
            }
            break;
        case 'a': o->all_ways = true; break;
        case 'c': o->cpu_alone = true; break;
        case 'k': o->kit = true; break;
        case 'r': o->registered_only = true; break;
        case 't': o->table = optarg; break;
        case 'v': o->verbose = true; break;
        default: return false;
        }
    }
    if (optind < argc) {
        o->directory = argv[optind];
    }
    return true;
}

static int run_kit(const options *o)
{
    npu_backend_test_desc kit = { .backend = conformance_accelerator(), .vectors = o->directory, .rtol = 1e-4, .atol = 1e-4 };
    int failed = kit.backend ? npu_backend_test(&kit) : 1;
    printf("%s: %d checks of the kit failed\n", kit.backend ? kit.backend->name : "no accelerator", failed);
    return failed != 0;
}

int main(int argc, char **argv)
{
    options o;
    tally total;
    int num_ops = 0;
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: conformance [-a] [-c] [-j N] [-k] [-o OP]... [-r] [-t FILE] [-v] [DIRECTORY]\n");
        return 2;
    }
    if (o.kit) {
        return run_kit(&o);
    }
    memset(&total, 0, sizeof total);
    npu_registry_create(&shared.registry, NULL, NULL); /* without one each graph makes its own */
    char **ops = list_ops(&o, &num_ops);
    tally *tallies = conf_grow(NULL, ((size_t)num_ops + 1) * sizeof *tallies);
    if (o.jobs > 0) {
        run_jobs(&o, ops, num_ops, tallies);
    }
    for (int i = 0; o.jobs <= 0 && i < num_ops; i++) {
        run_op(&o, ops[i], &tallies[i]);
    }
    print_tallies(&o, ops, num_ops, tallies, &total);
    if (num_ops == 0) {
        total.failed = 1;
        printf("%s: no vectors of the wanted ops\n", o.directory);
    }
    printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped);
    for (int i = 0; i < num_ops; i++) {
        free(ops[i]);
    }
    free(ops);
    free(tallies);
    npu_registry_destroy(shared.registry);
    return total.failed != 0;
}
