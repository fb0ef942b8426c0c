/* ops_ways.h - what is done with a random graph: checked, printed and read again, optimised, lowered, extracted, planned
   over simulated devices, run, run again, captured, with threads, with memory that runs out. Where the manual promises
   equal bits, bits are compared; else numbers, where all are tame. */
#ifndef OPS_WAYS_H
#define OPS_WAYS_H

#define NPU_SIM_IMPLEMENTATION
#include "../../examples/sim/npu_sim.h"
#include "ops_fit.h"

/* ---- findings ---- */

static struct ops_now { uint64_t seed; const char *stage; uint64_t num_findings; } ops_now;

static void ops_stage(const ops_case *c, const char *name)
{
    ops_now.stage = name;
    if (c->w->verbose) {
        printf("-- %s\n", name);
        fflush(stdout);
    }
}

static void ops_finding(const char *format, ...) NPU_IR_PRINTF(1, 2);
static void ops_finding(const char *format, ...)
{
    va_list args;
    ops_now.num_findings++;
    printf("FINDING seed %llu, %s: ", (unsigned long long)ops_now.seed, ops_now.stage);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

/* A failure must be one that input or memory can be blamed for, with words. */
static bool ops_is_ok(ops_case *c, npu_status status, const npu_diag *diag)
{
    if (status == NPU_ERR_NO_MEMORY && !c->w->memory.refused) {
        ops_finding("NO_MEMORY although no memory was refused: %s", diag->message);
    } else if (status && status != NPU_ERR_NO_MEMORY && (!diag->message[0] || diag->status != status)) {
        ops_finding("%s has the message \"%s\" of %s", npu_status_name(status), diag->message, npu_status_name(diag->status));
    } else if (status == NPU_ERR_INTERNAL) {
        ops_finding("INTERNAL: %s", diag->message);
    }
    return status == NPU_OK;
}

/* A step that must work, unless memory is out. */
static bool ops_must(ops_case *c, npu_status status, const npu_diag *diag)
{
    if (ops_is_ok(c, status, diag)) {
        return true;
    }
    if (status != NPU_ERR_NO_MEMORY) {
        ops_finding("%s: %s", npu_status_name(status), diag->message);
    }
    return false;
}

/* ---- results ---- */

enum { OPS_MAX_OUTS = 40 };
typedef struct ops_result {
    npu_status status;
    npu_diag diag;
    uint32_t num;
    struct { npu_spec spec; size_t size; uint8_t *data; } outs[OPS_MAX_OUTS];
} ops_result;

static void ops_result_free(ops_result *r)
{
    for (uint32_t i = 0; i < r->num; i++) {
        free(r->outs[i].data);
    }
    memset(r, 0, sizeof *r);
}

static void ops_result_take(ops_result *r, const npu_exec *exec, uint32_t num)
{
    for (r->num = 0; r->num < num && r->num < OPS_MAX_OUTS; r->num++) {
        uint32_t i = r->num;
        const void *data = npu_exec_output(exec, i, &r->outs[i].size);
        r->outs[i].spec = *npu_exec_output_spec(exec, i);
        r->outs[i].spec.quant = NULL;
        r->outs[i].data = (uint8_t *)malloc(r->outs[i].size + 1);
        if (r->outs[i].size) {
            memcpy(r->outs[i].data, data, r->outs[i].size);
        }
    }
}

/* Bytes equal: memcmp, or NaN on both sides where nan_is_nan. near: also numbers that differ by little of the largest. */
typedef enum ops_equality { OPS_BITS, OPS_NUMBERS, OPS_NEAR } ops_equality;

static double ops_largest(npu_dtype t, const uint8_t *data, size_t n, size_t width)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double x = fabs(ops_float_at(t, data + i * width));
        most = isfinite(x) && x > most ? x : most;
    }
    return most;
}

static bool ops_same_out(const ops_result *got, const ops_result *want, uint32_t i, ops_equality how)
{
    npu_dtype t = (npu_dtype)want->outs[i].spec.dtype;
    bool is_complex = npu_dtype_is_complex(t), is_float = (npu_dtype_is_float(t) && npu_dtype_bits(t) >= 16) || is_complex;
    size_t width = npu_dtype_bits(t) / 8 / (is_complex ? 2 : 1), n = width ? want->outs[i].size / width : 0;
    const uint8_t *a = got->outs[i].data, *b = want->outs[i].data;
    double most = is_float && how == OPS_NEAR ? ops_largest(t, b, n, width) : 0;
    double near = t == NPU_F64 || t == NPU_C128 ? 1e-8 : t == NPU_F16 ? 2e-2 : t == NPU_BF16 ? 1e-1 : 1e-3;
    for (size_t k = 0; k < n; k++) {
        double x = is_float ? ops_float_at(t, a + k * width) : 0, y = is_float ? ops_float_at(t, b + k * width) : 0;
        if (memcmp(a + k * width, b + k * width, width) == 0 || (how != OPS_BITS && is_float && isnan(x) && isnan(y)) ||
            (how == OPS_NEAR && is_float && fabs(x - y) <= near * (most + 1e-2))) {
            continue;
        }
        if (is_float) {
            ops_finding("output %u, %s, element %u of %u: got %.9g, want %.9g", (unsigned)i, npu_dtype_name(t), (unsigned)k, (unsigned)n, x, y);
        } else {
            ops_finding("output %u, %s, element %u of %u: got byte %u, want %u", (unsigned)i, npu_dtype_name(t), (unsigned)k, (unsigned)n, a[k * width], b[k * width]);
        }
        return false;
    }
    return true;
}

static void ops_other_spec(const ops_result *got, const ops_result *want, uint32_t i)
{
    npu_text text = npu_text_init(NULL);
    npu_spec_print(&text, &got->outs[i].spec);
    npu_text_printf(&text, " of %llu bytes, want ", (unsigned long long)got->outs[i].size);
    npu_spec_print(&text, &want->outs[i].spec);
    ops_finding("output %u: %s of %llu bytes", (unsigned)i, text.data, (unsigned long long)want->outs[i].size);
    npu_text_free(&text);
}

static bool ops_same(const ops_result *got, const ops_result *want, ops_equality how)
{
    if (got->num != want->num) {
        ops_finding("%u outputs, want %u", (unsigned)got->num, (unsigned)want->num);
        return false;
    }
    for (uint32_t i = 0; i < want->num; i++) {
        if (!npu_spec_equal(&got->outs[i].spec, &want->outs[i].spec) || got->outs[i].size != want->outs[i].size) {
            ops_other_spec(got, want, i);
            return false;
        }
        if (want->outs[i].size && memcmp(got->outs[i].data, want->outs[i].data, want->outs[i].size) != 0 && !ops_same_out(got, want, i, how)) {
            return false;
        }
    }
    return true;
}

/* ---- running ---- */

typedef struct ops_way {
    const npu_backend *const *backends;
    uint32_t num_backends;
    const npu_parallel *threads;
    npu_plan_desc plan;
    bool again, captured, profile, other_dims;
} ops_way;

static ops_way ops_way_of(const npu_backend *const *backends, uint32_t num)
{
    ops_way way;
    memset(&way, 0, sizeof way);
    way.backends = backends;
    way.num_backends = num;
    return way;
}

static void ops_print_plan(ops_case *c, const npu_plan *plan)
{
    npu_text text = npu_text_init(&c->w->allocator);
    npu_plan_print(plan, &text);
    npu_plan_print_ops(plan, &text);
    npu_plan_print_memory(plan, &text);
    npu_plan_print_slots(plan, &text);
    npu_plan_print_dot(plan, &text);
    npu_text_free(&text);
}

/* Inputs by name, so that a graph made from this one can have them in another order, or lack some. */
static npu_status ops_feed(ops_case *c, npu_exec *exec, bool other)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < c->num_inputs && !status; i++) {
        ops_input *in = &c->inputs[i];
        npu_spec now = in->now;
        size_t size = in->size;
        uint8_t *data = in->data;
        for (uint32_t k = 0; k < now.rank && other; k++) {
            for (uint32_t s = 0; s < c->num_symbols; s++) {
                now.dims[k] = in->spec.dims[k] == c->symbols[s].dim ? c->symbols[s].other : now.dims[k];
            }
        }
        if (other) {
            if (npu_spec_size(&now, &size) != NPU_OK || size > OPS_MAX_BLOCK) {
                return NPU_ERR_CANCELLED; /* more than this machine should hold */
            }
            data = (uint8_t *)ops_take(&c->keep, size);
            ops_fill(&c->r, (npu_dtype)now.dtype, data, size, c->tame);
        }
        status = npu_exec_set_input(exec, &(npu_array){ in->name, now, data });
        status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status;
    }
    return status;
}

static void ops_run_again(ops_case *c, npu_exec *exec, const ops_result *first)
{
    ops_result r;
    memset(&r, 0, sizeof r);
    npu_exec_reset_state(exec);
    if (ops_must(c, npu_exec_run(exec), npu_exec_diag(exec))) {
        ops_result_take(&r, exec, first->num);
        if (!c->is_random) {
            ops_same(&r, first, OPS_BITS);
        }
    }
    ops_result_free(&r);
}

static void ops_run_captured(ops_case *c, npu_exec *exec, const ops_result *first)
{
    npu_capture *capture = NULL;
    ops_result r;
    memset(&r, 0, sizeof r);
    npu_exec_reset_state(exec);
    npu_status status = npu_capture_create(&capture, exec);
    if (status == NPU_ERR_UNSUPPORTED || !ops_must(c, status, npu_exec_diag(exec))) {
        return;
    }
    npu_exec_reset_state(exec);
    if (ops_must(c, npu_capture_replay(capture), npu_exec_diag(exec))) {
        ops_result_take(&r, exec, first->num);
        if (!c->is_random) {
            ops_same(&r, first, OPS_BITS);
        }
    }
    ops_result_free(&r);
    npu_capture_destroy(capture);
}

/* Other dims, whatever comes of it, and then the first ones again: the same as before. */
static void ops_run_other(ops_case *c, npu_exec *exec, const ops_result *first)
{
    npu_status status = ops_feed(c, exec, true);
    if (status != NPU_ERR_CANCELLED) {
        ops_is_ok(c, status ? status : npu_exec_run(exec), npu_exec_diag(exec));
    }
    if (ops_must(c, ops_feed(c, exec, false), npu_exec_diag(exec))) {
        ops_run_again(c, exec, first);
    }
}

/* A second program with the weights of the first, and an exec with its states, all of which must have names. */
static void ops_run_beside(ops_case *c, const npu_graph *g, const ops_way *way, npu_exec *exec, const ops_result *first)
{
    npu_plan_desc desc = way->plan;
    npu_exec_desc exec_desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *beside = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    memset(&exec_desc, 0, sizeof exec_desc);
    desc.backends = way->backends;
    desc.num_backends = way->num_backends;
    desc.weights_of = npu_exec_program(exec);
    exec_desc.states_of = exec;
    exec_desc.parallel = way->threads;
    desc.allocator = exec_desc.allocator = &c->w->allocator;
    npu_status status = npu_plan_create(&plan, g, &desc, &diag);
    status = status ? status : npu_program_create(&program, plan, &diag);
    status = status ? status : npu_exec_create(&beside, program, &exec_desc, &diag);
    if (status != NPU_ERR_NOT_FOUND && ops_must(c, status, &diag) &&
        ops_must(c, ops_feed(c, beside, false), npu_exec_diag(beside))) {
        ops_run_again(c, beside, first);
    }
    npu_exec_destroy(beside);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
}

static void ops_run_ways(ops_case *c, const npu_graph *g, const ops_way *way, npu_exec *exec, const ops_result *r)
{
    if (way->again) {
        ops_run_again(c, exec, r);
    }
    if (way->again && way->num_backends) {
        ops_run_beside(c, g, way, exec, r);
    }
    if (way->captured) {
        ops_run_captured(c, exec, r);
    }
    if (way->other_dims && c->num_symbols) {
        ops_run_other(c, exec, r);
    }
    if (way->profile) {
        npu_text text = npu_text_init(&c->w->allocator);
        npu_exec_print_profile(exec, &text);
        npu_exec_print_trace(exec, &text);
        npu_text_free(&text);
    }
}

static bool ops_step(ops_result *r, npu_status status)
{
    r->status = r->status ? r->status : status;
    return r->status == NPU_OK;
}

static ops_result ops_run(ops_case *c, const npu_graph *g, const ops_way *way)
{
    ops_result r;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_plan_desc desc = way->plan;
    npu_exec_desc exec_desc;
    memset(&r, 0, sizeof r);
    memset(&exec_desc, 0, sizeof exec_desc);
    desc.backends = way->backends;
    desc.num_backends = way->num_backends;
    desc.allocator = exec_desc.allocator = &c->w->allocator;
    exec_desc.parallel = way->threads;
    exec_desc.profile = way->profile;
    if (ops_step(&r, npu_plan_create(&plan, g, &desc, &r.diag))) {
        ops_print_plan(c, plan);
        ops_step(&r, npu_program_create(&program, plan, &r.diag));
    }
    if (r.status == NPU_OK && ops_step(&r, npu_exec_create(&exec, program, &exec_desc, &r.diag)) && !c->is_huge) {
        ops_print_plan(c, npu_program_plan(program));
        if (!ops_step(&r, ops_feed(c, exec, false)) || !ops_step(&r, npu_exec_run(exec))) {
            r.diag = *npu_exec_diag(exec);
        } else {
            ops_result_take(&r, exec, npu_graph_num_outputs(g));
            ops_run_ways(c, g, way, exec, &r);
        }
    }
    ops_is_ok(c, r.status, &r.diag);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return r;
}

/* Runs g, which stands for c->g, and compares with what that gave. A graph that ran must run in every way; what failed
   fails again, or an op that failed was not needed. */
static void ops_run_like(ops_case *c, const npu_graph *g, const ops_way *way, const ops_result *want, ops_equality how)
{
    ops_result r = ops_run(c, g, way);
    if (want->status == NPU_OK && !c->is_huge && ops_must(c, r.status, &r.diag) && !c->is_random) {
        ops_same(&r, want, how);
    }
    ops_result_free(&r);
}

/* ---- forms ---- */

static void ops_report(void *ctx, const npu_diag *diag)
{
    const ops_case *c = (const ops_case *)ctx;
    if (diag->status != NPU_ERR_NO_MEMORY || !c->w->memory.refused) {
        ops_finding("%s: %s", npu_status_name(diag->status), diag->message);
    }
}

static npu_graph_desc ops_graph_desc(ops_case *c)
{
    npu_graph_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.registry = c->w->registry;
    desc.allocator = &c->w->allocator;
    return desc;
}

static void ops_bind_params(ops_case *c, npu_graph *g)
{
    uint32_t n = npu_graph_num_values(c->g);
    for (uint32_t i = 1; i <= n; i++) {
        npu_value v = { i };
        size_t size = 0;
        const void *data = npu_value_data(c->g, v, &size);
        if (data && npu_value_role(c->g, v) == NPU_ROLE_PARAM) {
            npu_graph_bind_param(g, npu_value_name(c->g, v), data, size);
        }
    }
    npu_graph_clear_error(g);
}

typedef npu_status (*ops_print_fn)(const npu_graph *g, npu_text *text);
typedef npu_status (*ops_parse_fn)(npu_graph **out, const char *text, size_t len, const npu_graph_desc *desc, npu_diag *diag);

static void ops_round_trip(ops_case *c, ops_print_fn print, ops_parse_fn parse, const ops_result *want)
{
    npu_graph_desc desc = ops_graph_desc(c);
    npu_text first = npu_text_init(&c->w->allocator), second = npu_text_init(&c->w->allocator);
    npu_graph *again = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    npu_status status = print(c->g, &first);
    if (status && status != NPU_ERR_NO_MEMORY && (print == npu_graph_print || (status != NPU_ERR_DYNAMIC_SHAPE && status != NPU_ERR_UNSUPPORTED))) {
        ops_finding("printing: %s", npu_status_name(status));
    } else if (!status) {
        char *copy = (char *)ops_take(&c->keep, first.len); /* no NUL: reading past the end is seen */
        memcpy(copy, first.data, first.len);
        status = parse(&again, copy, first.len, &desc, &diag);
    }
    if (first.status == NPU_OK && status != NPU_ERR_DYNAMIC_SHAPE && status != NPU_ERR_UNSUPPORTED && ops_must(c, status, &diag)) {
        npu_graph_validate(again, ops_report, c);
        status = print(again, &second);
        if (print == npu_graph_print_json && c->writes) {
            status = NPU_ERR_UNSUPPORTED; /* nothing to compare with */
        }
        if (!status && (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)) {
            ops_finding("printed again, it is another text");
            if (c->w->verbose) {
                printf("%s\n----\n%s\n", first.data, second.data);
            }
        }
        if (want && !status && npu_graph_num_outputs(again) == npu_graph_num_outputs(c->g)) {
            const npu_backend *cpu = c->w->cpu;
            ops_way way = ops_way_of(&cpu, 1);
            ops_bind_params(c, again);
            ops_run_like(c, again, &way, want, OPS_NUMBERS);
        }
    }
    npu_graph_destroy(again);
    npu_text_free(&first);
    npu_text_free(&second);
}

/* The file with an op in its form that writes to an operand: whatever comes of it, it is a valid graph or a status. */
static void ops_in_place(ops_case *c)
{
    npu_graph_desc desc = ops_graph_desc(c);
    npu_text json = npu_text_init(&c->w->allocator), changed = npu_text_init(&c->w->allocator);
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    if (npu_graph_print_json(c->g, &json) == NPU_OK) {
        const char *from = json.data, *at;
        while ((at = strstr(from, "\"aten.")) != NULL) {
            size_t word = 6 + strcspn(at + 6, ".\"");
            npu_text_append(&changed, from, (size_t)(at - from) + word);
            npu_text_append(&changed, "_", at[word] == '.' && ops_chance(&c->r, 50));
            from = at + word;
        }
        npu_text_append(&changed, from, strlen(from));
        if (changed.status == NPU_OK && ops_is_ok(c, npu_graph_parse_json(&g, changed.data, changed.len, &desc, &diag), &diag)) {
            const npu_backend *cpu = c->w->cpu;
            ops_way way = ops_way_of(&cpu, 1);
            way.again = true;
            npu_graph_validate(g, ops_report, c);
            ops_bind_params(c, g);
            ops_result r = ops_run(c, g, &way);
            ops_result_free(&r);
        }
    }
    npu_graph_destroy(g);
    npu_text_free(&json);
    npu_text_free(&changed);
}

static void ops_print_all(ops_case *c)
{
    npu_text text = npu_text_init(&c->w->allocator);
    npu_op_storage storage;
    npu_op_info info;
    memset(&storage, 0, sizeof storage);
    npu_graph_print_short(c->g, &text);
    npu_graph_print_dot(c->g, &text);
    npu_graph_print_mermaid(c->g, NULL, &text);
    npu_graph_print_stats(c->g, &text);
    npu_graph_print_pie(c->g, 3, &text);
    for (uint32_t i = 1; i <= npu_graph_num_ops(c->g); i++) {
        npu_op op = { i };
        npu_op_print_keywords(c->g, op, &text);
        if (npu_op_describe(c->g, op, &info, &storage) == NPU_OK) {
            uint8_t blob[64];
            uint32_t kind, schema, size;
            npu_abi_encode(npu_abi_aicf(), &info, &kind, &schema, blob, sizeof blob, &size);
        }
    }
    npu_op_storage_free(&storage);
    npu_text_free(&text);
}

/* ---- other graphs from this one ---- */

static void ops_optimize(ops_case *c, const ops_result *want)
{
    const uint32_t rounding = 1u << NPU_PASS_BATCH_NORM | 1u << NPU_PASS_RMS_NORM | 1u << NPU_PASS_ATTENTION |
                              1u << NPU_PASS_GEMM | 1u << NPU_PASS_ATEN_TO_AICF | 1u << NPU_PASS_AICF_TO_ATEN;
    const npu_backend *cpu = c->w->cpu;
    ops_way way = ops_way_of(&cpu, 1);
    npu_optimize_desc desc;
    npu_pass_options options;
    npu_graph *g = NULL;
    npu_diag diag;
    bool exact = ops_chance(&c->r, 70);
    memset(&desc, 0, sizeof desc);
    memset(&options, 0, sizeof options);
    memset(&diag, 0, sizeof diag);
    options.validate = true;
    desc.backends = ops_chance(&c->r, 85) ? &cpu : NULL;
    desc.num_backends = desc.backends ? 1 : 0;
    desc.frozen = ops_below(&c->r, 3);
    desc.keep_unused = ops_chance(&c->r, 20);
    desc.passes = ops_chance(&c->r, 60) ? 0 : (uint32_t)ops_next(&c->r) & 0x107ffe;
    desc.skip = exact ? rounding : 0;
    desc.max_constant_bytes = ops_chance(&c->r, 80) ? 0 : 1 + ops_below(&c->r, 1000);
    if (ops_must(c, npu_graph_optimize(&g, c->g, &desc, &options, &diag), &diag)) {
        if (exact) {
            ops_run_like(c, g, &way, want, OPS_NUMBERS);
        } else if (c->tame && c->num_ops < 6) {
            ops_run_like(c, g, &way, want, OPS_NEAR);
        } else {
            ops_result r = ops_run(c, g, &way);
            ops_result_free(&r);
        }
    }
    npu_graph_destroy(g);
}

static void ops_count_ran(ops_case *c, const npu_graph *g)
{
    for (uint32_t i = 1; i <= npu_graph_num_ops(g); i++) {
        npu_op op = { i };
        uint32_t at = ops_index_of(c->w, npu_op_definition(g, op));
        if (at < c->w->num_ops) {
            c->w->ran[at]++;
        }
    }
    for (uint32_t i = 0; i < npu_graph_num_children(g); i++) {
        ops_count_ran(c, npu_graph_child(g, i));
    }
}

static void ops_lower(ops_case *c, const ops_result *want)
{
    const char *const names[] = { "convert-aten-to-linalg", "convert-gawee-to-linalg" };
    npu_pass passes[2];
    npu_pass_options options;
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&options, 0, sizeof options);
    memset(&diag, 0, sizeof diag);
    options.validate = true;
    passes[0] = *npu_conversion_pass(names[0]);
    passes[1] = *npu_conversion_pass(names[1]);
    npu_status status = npu_graph_run_passes(&g, c->g, passes, 2, &options, &diag);
    if (status != NPU_ERR_NOT_LEGAL && ops_must(c, status, &diag)) {
        const npu_backend *cpu = c->w->cpu;
        ops_way way = ops_way_of(&cpu, 1);
        if (c->tame && c->num_ops == 1 && want->status == NPU_OK) {
            ops_run_like(c, g, &way, want, OPS_NEAR);
            ops_count_ran(c, g);
        } else {
            ops_result r = ops_run(c, g, &way);
            ops_result_free(&r);
        }
        ops_round_trip(c, npu_graph_print, npu_graph_parse, NULL);
    }
    npu_graph_destroy(g);
}

static void ops_specialize(ops_case *c, const ops_result *want)
{
    const char *names[OPS_MAX_SYMBOLS];
    int64_t dims[OPS_MAX_SYMBOLS];
    const npu_backend *cpu = c->w->cpu;
    ops_way way = ops_way_of(&cpu, 1);
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    for (uint32_t i = 0; i < c->num_symbols; i++) {
        names[i] = c->symbols[i].name;
        dims[i] = c->symbols[i].value;
    }
    npu_status status = npu_graph_specialize(&g, c->g, names, dims, c->num_symbols, &diag);
    if (want->status == NPU_OK && !c->is_huge ? ops_must(c, status, &diag) : ops_is_ok(c, status, &diag)) {
        npu_graph_validate(g, ops_report, c);
        ops_run_like(c, g, &way, want, OPS_NUMBERS);
    }
    npu_graph_destroy(g);
}

/* A graph of that share of the ops; NULL where none is in it. */
static npu_graph *ops_extract_some(ops_case *c, uint32_t percent)
{
    npu_op ops[64];
    uint32_t n = 0;
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    for (uint32_t i = 1; i <= npu_graph_num_ops(c->g) && n < 64; i++) {
        ops[n].id = i;
        n += ops_chance(&c->r, percent);
    }
    return n && ops_must(c, npu_graph_extract(&g, c->g, ops, n, &diag), &diag) ? g : NULL;
}

static void ops_extract(ops_case *c)
{
    npu_graph *g = ops_extract_some(c, 50);
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    if (g) {
        npu_graph_validate(g, ops_report, c);
        npu_graph_destroy(g);
        g = NULL;
    }
    if (ops_must(c, npu_graph_rewrite(&g, c->g, NULL, NULL, &diag), &diag)) {
        npu_graph_validate(g, ops_report, c);
    }
    npu_graph_destroy(g);
}

static void ops_tiles(ops_case *c)
{
    npu_tile_desc desc;
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.allocator = &c->w->allocator;
    desc.overlapping = ops_below(&c->r, 128);
    for (uint32_t i = 0; i < npu_graph_num_children(c->g); i++) {
        npu_tile_check(npu_graph_child(c->g, i), &desc, NULL, NULL);
    }
    if (npu_graph_num_children(c->g) && ops_is_ok(c, npu_tile_sync(&g, c->g, &desc, &diag), &diag)) {
        npu_graph_validate(g, ops_report, c);
    }
    npu_graph_destroy(g);
}

/* ---- devices ---- */

typedef struct ops_devices { npu_sim *sims[3]; const npu_backend *backends[4]; uint32_t num; ops_random r; } ops_devices;

/* 1 to 3 devices that compute as the CPU does, and refuse some of the ops. */
static bool ops_devices_make(ops_case *c, ops_devices *d, const char *const *denied)
{
    uint32_t n = 1 + ops_below(&c->r, 3);
    memset(d, 0, sizeof *d);
    for (d->num = 0; d->num < n; d->num++) {
        npu_sim_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.emulate = c->w->cpu;
        desc.emulate_all = true;
        desc.async = ops_chance(&c->r, 25);
        desc.plans_inner = ops_chance(&c->r, 30);
        desc.keeps_weights = ops_chance(&c->r, 30);
        desc.in_place = ops_chance(&c->r, 30);
        desc.alignment = ops_chance(&c->r, 50) ? 0 : 256;
        desc.scratch = ops_chance(&c->r, 30) ? 100 : 0;
        desc.deny = denied + d->num;
        desc.num_deny = ops_chance(&c->r, 60);
        desc.refuse = ops_chance(&c->r, 15) ? denied[3 + d->num] : NULL;
        desc.capacity = 16 << 20;
        if (npu_sim_create(&d->sims[d->num], &desc) != NPU_OK) {
            return false;
        }
        d->backends[d->num] = npu_sim_backend(d->sims[d->num]);
    }
    d->backends[d->num++] = c->w->cpu;
    return true;
}

static void ops_devices_end(ops_devices *d)
{
    for (uint32_t i = 0; i < 3 && d->sims[i]; i++) {
        npu_sim_counters n = npu_sim_count(d->sims[i]);
        if (n.live_buffers || n.live_programs) {
            ops_finding("device %u keeps %u buffers and %u programs", (unsigned)i, (unsigned)n.live_buffers, (unsigned)n.live_programs);
        }
        npu_sim_destroy(d->sims[i]);
    }
}

static int ops_place(void *ctx, const npu_op_info *op, const char *label)
{
    ops_devices *d = (ops_devices *)ctx;
    ops_random r = d->r;
    (void)label;
    r.state += op->op * 977u;
    return (int)ops_below(&r, d->num + 1) - 1;
}

static const char *ops_some_name(ops_case *c)
{
    npu_op op = { 1 + ops_below(&c->r, npu_graph_num_ops(c->g)) };
    return npu_op_definition(c->g, op)->name;
}

static void ops_split(ops_case *c, const ops_result *want)
{
    const char *denied[6];
    ops_devices d;
    for (uint32_t i = 0; i < 6; i++) {
        denied[i] = ops_some_name(c);
    }
    if (ops_devices_make(c, &d, denied)) {
        ops_way way = ops_way_of(d.backends, d.num);
        d.r = c->r;
        c->w->memory.refused = true; /* the devices are small */
        way.threads = ops_chance(&c->r, 50) ? c->w->threads[0] : NULL;
        way.again = way.captured = ops_chance(&c->r, 50);
        way.other_dims = way.profile = ops_chance(&c->r, 30);
        way.plan.override = ops_chance(&c->r, 50) ? ops_place : NULL;
        way.plan.override_ctx = &d;
        way.plan.min_group_ops = ops_chance(&c->r, 80) ? 0 : 2;
        way.plan.max_groups = ops_chance(&c->r, 80) ? 0 : 1;
        way.plan.no_inplace = ops_chance(&c->r, 20);
        ops_run_like(c, c->g, &way, want, OPS_NUMBERS);
    }
    ops_devices_end(&d);
}

static void ops_other_runs(ops_case *c, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu, *plain = c->w->plain;
    ops_way way = ops_way_of(&cpu, 1);
    ops_stage(c, "threads");
    way.threads = c->w->threads[ops_below(&c->r, 3)];
    way.captured = true;
    ops_run_like(c, c->g, &way, want, OPS_BITS);
    ops_stage(c, "no in-place");
    way = ops_way_of(&cpu, 1);
    way.plan.no_inplace = way.profile = true;
    ops_run_like(c, c->g, &way, want, OPS_NUMBERS);
    ops_stage(c, "plain");
    way = ops_way_of(&plain, 1);
    if (c->tame && c->num_ops == 1) {
        ops_run_like(c, c->g, &way, want, OPS_NEAR);
    } else {
        ops_result r = ops_run(c, c->g, &way);
        ops_result_free(&r);
    }
}

/* ---- the rest of the interface ---- */

/* The cache gives one program for one graph. */
static void ops_cache(ops_case *c)
{
    const npu_backend *cpu = c->w->cpu;
    npu_program_cache_desc desc;
    npu_plan_desc plan;
    npu_program_cache *cache = NULL;
    npu_program *first = NULL, *second = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&plan, 0, sizeof plan);
    memset(&diag, 0, sizeof diag);
    desc.allocator = plan.allocator = &c->w->allocator;
    plan.backends = &cpu;
    plan.num_backends = 1;
    if (npu_program_cache_create(&cache, &desc) == NPU_OK && ops_is_ok(c, npu_program_cache_acquire(cache, &first, c->g, &plan, &diag), &diag)) {
        if (ops_must(c, npu_program_cache_acquire(cache, &second, c->g, &plan, &diag), &diag) && first != second) {
            ops_finding("the cache made two programs");
        }
        npu_program_cache_release(cache, second);
        npu_program_cache_release(cache, first);
    }
    npu_program_cache_destroy(cache);
}

/* The CPU agrees with itself. */
static void ops_find_wrong(ops_case *c, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu;
    npu_array arrays[OPS_MAX_INPUTS];
    npu_tolerance tolerance;
    npu_op op;
    npu_diag diag;
    memset(&tolerance, 0, sizeof tolerance);
    memset(&diag, 0, sizeof diag);
    memset(arrays, 0, sizeof arrays);
    tolerance.has_rtol = tolerance.has_atol = tolerance.equal_nan = true;
    for (uint32_t i = 0; i < c->num_inputs; i++) {
        arrays[i].name = c->inputs[i].name;
        arrays[i].spec = c->inputs[i].now;
        arrays[i].data = c->inputs[i].data;
    }
    if (want->status == NPU_OK && !c->is_huge && !c->is_random) {
        npu_status status = npu_graph_find_wrong_op(c->g, &cpu, 1, cpu, arrays, c->num_inputs, &tolerance, &op, NULL, &diag);
        if (status != NPU_ERR_DTYPE) { /* 4 and 8 bit floats are no plain numbers */
            ops_must(c, status, &diag);
        }
    }
}

static void ops_check_json(ops_case *c)
{
    const npu_backend *cpu = c->w->cpu;
    npu_graph_desc desc = ops_graph_desc(c);
    npu_text json = npu_text_init(&c->w->allocator);
    if (npu_graph_print_json(c->g, &json) == NPU_OK) {
        npu_graph_check_json(json.data, json.len, &desc, &cpu, 1, NULL, NULL, NULL);
    }
    npu_text_free(&json);
}

/* ---- all of it ---- */

static void ops_main_ways(ops_case *c, const ops_result *want)
{
    for (uint32_t n = ops_between(&c->r, 3, 5); n; n--) {
        switch (ops_below(&c->r, 12)) {
        case 0: ops_stage(c, "text"); ops_round_trip(c, npu_graph_print, npu_graph_parse, want); break;
        case 1: ops_stage(c, "json"); ops_round_trip(c, npu_graph_print_json, npu_graph_parse_json, want); break;
        case 2: ops_stage(c, "in place"); ops_in_place(c); break;
        case 3: ops_stage(c, "optimise"); ops_optimize(c, want); break;
        case 4: ops_stage(c, "lower"); ops_lower(c, want); break;
        case 5: ops_stage(c, "extract"); ops_extract(c); ops_stage(c, "tiles"); ops_tiles(c); break;
        case 6: ops_stage(c, "split"); ops_split(c, want); break;
        case 7: ops_stage(c, "specialise"); ops_specialize(c, want); break;
        case 8: ops_stage(c, "cache"); ops_cache(c); break;
        case 9: ops_stage(c, "find wrong op"); ops_find_wrong(c, want); break;
        case 10: ops_stage(c, "check json"); ops_check_json(c); break;
        default: ops_other_runs(c, want); break;
        }
    }
}

/* The same again with the n-th allocation refused: NO_MEMORY somewhere, nothing else, and nothing is lost. */
static void ops_with_failures(ops_case *c)
{
    const npu_backend *cpu = c->w->cpu;
    ops_way way = ops_way_of(&cpu, 1);
    ops_result whole, r;
    ops_stage(c, "out of memory");
    uint64_t before = c->w->memory.calls;
    whole = ops_run(c, c->g, &way);
    uint64_t calls = c->w->memory.calls - before;
    for (int i = 0; i < 4 && calls; i++) {
        c->w->memory.fail_at = c->w->memory.calls + 1 + ops_next(&c->r) % calls;
        r = ops_run(c, c->g, &way);
        c->w->memory.fail_at = 0;
        if (r.status != whole.status && r.status != NPU_ERR_NO_MEMORY) {
            ops_finding("%s: %s; with memory %s", npu_status_name(r.status), r.diag.message, npu_status_name(whole.status));
        }
        ops_result_free(&r);
    }
    ops_result_free(&whole);
    for (int i = 0; i < 6; i++) {
        c->w->memory.fail_at = c->w->memory.calls + 1 + ops_below(&c->r, i < 3 ? 40 : 300);
        whole.status = NPU_ERR_NO_MEMORY; /* nothing to compare with */
        i % 3 == 0 ? ops_optimize(c, &whole) : i % 3 == 1 ? ops_lower(c, &whole) : ops_round_trip(c, i & 1 ? npu_graph_print : npu_graph_print_json, i & 1 ? npu_graph_parse : npu_graph_parse_json, NULL);
        c->w->memory.fail_at = 0;
    }
}

#endif
