/* ops_deep.h - what graphs of seeds from OPS_DEEP on go through besides: plans by cost on devices of all kinds, checked
   by npu_plan_validate and by what the devices counted; overlap; programs saved, spoilt and loaded; two execs at once;
   memory of the caller at odd addresses; planned models; 8 bits; one op called alone, with spoilt attributes, too. */
#ifndef OPS_DEEP_H
#define OPS_DEEP_H

#include "ops_ways.h"
#include <pthread.h>

/* ---- devices with costs ---- */

typedef struct ops_priced {
    ops_devices d;
    npu_rates rates[3];
    const npu_rates *each[4];
    npu_expect expect;
    bool counts; /* what moves is what the plan says */
} ops_priced;

static double ops_price(ops_case *c)
{
    static const double usual[] = { 0, 0, 1, 10, 1e3, 1e4, 1e5, 1e7 };
    return OPS_PICK(&c->r, usual);
}

static npu_rates ops_rates(ops_case *c)
{
    npu_rates rates;
    memset(&rates, 0, sizeof rates);
    rates.launch_ns = ops_price(c);
    rates.transfer_ns = ops_price(c);
    rates.up = ops_chance(&c->r, 50) ? 0 : 1e6 + 1e9 * ops_below(&c->r, 20);
    rates.down = ops_chance(&c->r, 50) ? rates.up : 1e9;
    rates.num_rows = ops_below(&c->r, 3);
    for (uint32_t i = 0; i < rates.num_rows; i++) {
        rates.rows[i] = (npu_rate){ i ? NULL : ops_some_name(c), ops_price(c), ops_price(c) / 1e3, ops_price(c) / 1e4 };
    }
    return rates;
}

static npu_sim_desc ops_odd_device(ops_case *c, const char *const *denied)
{
    static const uint64_t sizes[] = { 0, 0, 0, 64, 256, 1024, 4096, 65536 };
    npu_sim_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.emulate = c->w->cpu;
    desc.emulate_all = true;
    desc.virtual_time = ops_chance(&c->r, 60);
    desc.async = !desc.virtual_time && ops_chance(&c->r, 50);
    desc.is_late = desc.virtual_time && ops_chance(&c->r, 50);
    desc.transfer_ns = desc.virtual_time ? ops_below(&c->r, 1000) : 0;
    desc.op_ns = desc.virtual_time ? ops_below(&c->r, 1000) : 0;
    desc.plans_inner = ops_chance(&c->r, 20);
    desc.keeps_weights = ops_chance(&c->r, 20);
    desc.in_place = ops_chance(&c->r, 30);
    desc.capacity = OPS_PICK(&c->r, sizes);
    desc.on_chip = ops_chance(&c->r, 30) ? OPS_PICK(&c->r, sizes) : 0;
    desc.hides_capacity = ops_chance(&c->r, 15);
    desc.alignment = ops_chance(&c->r, 50) ? 0 : 16u << ops_below(&c->r, 6);
    desc.scratch = ops_chance(&c->r, 20) ? 100 : 0;
    desc.op_scratch = ops_chance(&c->r, 20) ? 40 : 0;
    desc.worker_scratch = ops_chance(&c->r, 10) ? 24 : 0;
    desc.pads_channels = ops_chance(&c->r, 20);
    desc.core_converts = desc.pads_channels && ops_chance(&c->r, 50);
    desc.maps = ops_chance(&c->r, 20);
    desc.no_copy = ops_chance(&c->r, 20);
    desc.deny = denied;
    desc.num_deny = ops_chance(&c->r, 60);
    desc.refuse = ops_chance(&c->r, 15) ? denied[1] : NULL;
    return desc;
}

static bool ops_priced_make(ops_case *c, ops_priced *p, const char *const *denied)
{
    uint32_t n = 1 + ops_below(&c->r, 3);
    memset(p, 0, sizeof *p);
    p->counts = c->num_symbols == 0;
    for (uint32_t i = 1; i <= npu_graph_num_ops(c->g); i++) {
        npu_kind kind = npu_op_kind(c->g, (npu_op){ i });
        p->counts &= kind != NPU_NPU_IF && kind != NPU_NPU_WHILE; /* their bodies have plans of their own */
    }
    for (p->d.num = 0; p->d.num < n; p->d.num++) {
        npu_sim_desc desc = ops_odd_device(c, denied + p->d.num);
        if (npu_sim_create(&p->d.sims[p->d.num], &desc) != NPU_OK) {
            return false;
        }
        p->counts &= !desc.maps && !desc.pads_channels;
        p->d.backends[p->d.num] = npu_sim_backend(p->d.sims[p->d.num]);
        p->rates[p->d.num] = ops_rates(c);
        p->each[p->d.num] = ops_chance(&c->r, 80) ? &p->rates[p->d.num] : NULL;
    }
    p->d.backends[p->d.num++] = c->w->cpu;
    return true;
}

static void ops_odd_plan(ops_case *c, ops_priced *p, npu_plan_desc *plan)
{
    plan->rates = ops_chance(&c->r, 75) ? p->each : NULL;
    plan->min_group_ops = ops_chance(&c->r, 80) ? 0 : 1 + ops_below(&c->r, 4);
    plan->max_groups = ops_chance(&c->r, 80) ? 0 : 1 + ops_below(&c->r, 3);
    plan->max_transfer_bytes = ops_chance(&c->r, 90) ? 0 : 1 + ops_below(&c->r, 4096);
    plan->no_fallback = ops_chance(&c->r, 8);
    plan->no_inplace = ops_chance(&c->r, 20);
    plan->contiguous = ops_chance(&c->r, 20);
    plan->overlap = ops_chance(&c->r, 40);
    plan->num_execs = ops_below(&c->r, 3);
    plan->stream_weights = ops_chance(&c->r, 30);
    plan->max_compiles = ops_chance(&c->r, 70) ? 0 : 1 + ops_below(&c->r, 3);
    plan->max_exhaustive_ops = ops_chance(&c->r, 50) ? 0 : 1;
    if (ops_chance(&c->r, 10)) {
        p->expect.max_groups = ops_below(&c->r, 3);
        p->expect.max_bytes = ops_below(&c->r, 2000);
        p->expect.has_max_bytes = true;
        plan->expect = &p->expect;
    }
}

static npu_sim_counters ops_moved(const ops_devices *d)
{
    npu_sim_counters sum;
    memset(&sum, 0, sizeof sum);
    for (uint32_t i = 0; i < 3 && d->sims[i]; i++) {
        npu_sim_counters n = npu_sim_count(d->sims[i]);
        sum.bytes_up += n.bytes_up;
        sum.bytes_down += n.bytes_down;
        sum.calls[NPU_SIM_UPLOAD] += n.calls[NPU_SIM_UPLOAD];
        sum.calls[NPU_SIM_DOWNLOAD] += n.calls[NPU_SIM_DOWNLOAD];
    }
    return sum;
}

static void ops_compare_moves(const ops_priced *p, const npu_program *program, npu_sim_counters before)
{
    npu_sim_counters after = ops_moved(&p->d);
    npu_prediction said;
    uint64_t up = after.bytes_up - before.bytes_up, down = after.bytes_down - before.bytes_down;
    npu_plan_predict(npu_program_plan(program), &said);
    if (p->counts && (up != said.up_bytes || down != said.down_bytes)) {
        ops_finding("%llu bytes went up and %llu down, the plan says %llu and %llu", (unsigned long long)up,
                    (unsigned long long)down, (unsigned long long)said.up_bytes, (unsigned long long)said.down_bytes);
    }
}

/* Bytes of a program, sometimes spoilt, make the same program again. */
static npu_program *ops_reload(ops_case *c, npu_program *program)
{
    uint64_t size = 0;
    npu_program *again = NULL;
    npu_load_report report;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    if (npu_program_save(program, NULL, &size) != NPU_OK || size > OPS_MAX_BLOCK) {
        return program;
    }
    uint8_t *bytes = (uint8_t *)ops_take(&c->keep, (size_t)size);
    if (npu_program_save(program, bytes, &size) != NPU_OK) {
        return program;
    }
    for (uint32_t n = ops_chance(&c->r, 40) ? 1 + ops_below(&c->r, 4) : 0; n && size; n--) {
        bytes[ops_below(&c->r, (uint32_t)size)] ^= (uint8_t)(1u << ops_below(&c->r, 8));
    }
    size -= ops_chance(&c->r, 10) ? ops_below(&c->r, (uint32_t)size + 1) : 0;
    if (!ops_must(c, npu_program_load(&again, npu_program_plan(program), bytes, size, &report, &diag), &diag)) {
        return program;
    }
    npu_program_destroy(program);
    return again;
}

static void ops_check_plan(ops_case *c, const npu_plan *plan, const npu_plan_desc *desc)
{
    npu_diag diag;
    npu_prediction said;
    npu_text text = npu_text_init(&c->w->allocator);
    memset(&diag, 0, sizeof diag);
    ops_must(c, npu_plan_validate(plan, &diag), &diag);
    npu_plan_print_json(plan, &text);
    npu_text_free(&text);
    if (npu_plan_predict(plan, &said) == NPU_OK && said.has_times && !desc->no_fallback &&
        said.ns > said.last_ns * (1 + 1e-9) + 1e-6) {
        ops_finding("predicted to take %.17g, without devices %.17g", said.ns, said.last_ns);
    }
}

static void ops_advise(ops_case *c, const npu_plan_desc *desc)
{
    npu_advice rows[4];
    uint32_t n = 0;
    npu_diag diag;
    npu_text text = npu_text_init(&c->w->allocator);
    memset(&diag, 0, sizeof diag);
    if (ops_is_ok(c, npu_plan_advise(c->g, desc, rows, 4, &n, &diag), &diag)) {
        npu_plan_print_advice(desc, rows, n < 4 ? n : 4, &text);
    }
    npu_text_free(&text);
}

/* A limit of the desc, or of a device. */
static bool ops_is_limited(npu_status status)
{
    return status == NPU_ERR_BUDGET || status == NPU_ERR_NO_MEMORY;
}

static void ops_run_priced(ops_case *c, ops_priced *p, npu_program *program, const npu_exec_desc *desc,
                           const ops_result *want)
{
    npu_exec *exec = NULL;
    npu_diag diag;
    ops_result r;
    memset(&diag, 0, sizeof diag);
    memset(&r, 0, sizeof r);
    npu_status status = npu_exec_create(&exec, program, desc, &diag);
    if ((!ops_is_limited(status) && !ops_must(c, status, &diag)) || status || c->is_huge) {
        npu_exec_destroy(exec);
        return;
    }
    status = ops_feed(c, exec, false);
    npu_sim_counters before = ops_moved(&p->d);
    r.status = status ? status : npu_exec_run(exec);
    if (want->status == NPU_OK && ops_must(c, r.status, npu_exec_diag(exec))) {
        ops_compare_moves(p, program, before);
        ops_result_take(&r, exec, npu_graph_num_outputs(c->g));
        if (!c->is_random) {
            ops_same(&r, want, OPS_NUMBERS);
        }
        ops_way way = ops_way_of(NULL, 0);
        way.again = way.captured = way.other_dims = true;
        way.profile = desc->profile;
        ops_run_ways(c, c->g, &way, exec, &r);
        if (desc->profile) {
            npu_rates_refine(&p->rates[0], exec, 0);
        }
    }
    ops_result_free(&r);
    npu_exec_destroy(exec);
}

static void ops_priced_split(ops_case *c, const ops_result *want)
{
    const char *denied[4];
    ops_priced p;
    npu_plan_desc desc;
    npu_exec_desc exec;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&exec, 0, sizeof exec);
    memset(&diag, 0, sizeof diag);
    for (uint32_t i = 0; i < 4; i++) {
        denied[i] = ops_some_name(c);
    }
    c->w->memory.refused = true; /* the devices are small */
    if (ops_priced_make(c, &p, denied)) {
        desc.backends = p.d.backends;
        desc.num_backends = p.d.num;
        desc.allocator = exec.allocator = &c->w->allocator;
        ops_odd_plan(c, &p, &desc);
        exec.overlap = ops_chance(&c->r, desc.overlap ? 90 : 30);
        exec.profile = ops_chance(&c->r, 30);
        exec.clock = npu_sim_clock;
        exec.parallel = ops_chance(&c->r, 30) && desc.num_workers ? c->w->threads[0] : NULL;
        if (ops_chance(&c->r, 10)) {
            ops_advise(c, &desc);
        }
        npu_status status = npu_plan_create(&plan, c->g, &desc, &diag);
        if (ops_is_ok(c, status, &diag)) {
            ops_check_plan(c, plan, &desc);
            status = npu_program_create(&program, plan, &diag);
        }
        if (want->status == NPU_OK && !ops_is_limited(status) && status != NPU_OK &&
            !(desc.no_fallback || c->is_huge)) {
            ops_finding("%s: %s", npu_status_name(status), diag.message);
        }
        if (program) {
            ops_must(c, npu_plan_validate(npu_program_plan(program), &diag), &diag);
            ops_print_plan(c, npu_program_plan(program));
            program = ops_chance(&c->r, 40) ? ops_reload(c, program) : program;
            ops_run_priced(c, &p, program, &exec, want);
        }
        npu_program_destroy(program);
        npu_plan_destroy(plan);
    }
    ops_devices_end(&p.d);
}

/* ---- two execs of one program, memory of the caller ---- */

typedef struct ops_side {
    npu_exec *exec;
    npu_status status;
} ops_side;

static void *ops_side_run(void *data)
{
    ops_side *side = (ops_side *)data;
    for (int i = 0; i < 3 && side->status == NPU_OK; i++) {
        npu_exec_reset_state(side->exec);
        side->status = npu_exec_run(side->exec);
    }
    return NULL;
}

static void ops_two_execs(ops_case *c, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu;
    npu_plan_desc desc;
    npu_exec_desc exec;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_diag diag;
    ops_side side[2];
    pthread_t thread;
    memset(&desc, 0, sizeof desc);
    memset(&exec, 0, sizeof exec);
    memset(&diag, 0, sizeof diag);
    memset(side, 0, sizeof side);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.allocator = exec.allocator = &c->w->allocator;
    bool ok = want->status == NPU_OK && !c->is_huge && ops_must(c, npu_plan_create(&plan, c->g, &desc, &diag), &diag) &&
              ops_must(c, npu_program_create(&program, plan, &diag), &diag);
    for (int i = 0; i < 2 && ok; i++) {
        ok = ops_must(c, npu_exec_create(&side[i].exec, program, &exec, &diag), &diag) &&
             ops_must(c, ops_feed(c, side[i].exec, false), npu_exec_diag(side[i].exec));
    }
    if (ok && pthread_create(&thread, NULL, ops_side_run, &side[1]) == 0) {
        ops_side_run(&side[0]);
        pthread_join(thread, NULL);
        for (int i = 0; i < 2; i++) {
            ops_result r;
            memset(&r, 0, sizeof r);
            if (ops_must(c, side[i].status, npu_exec_diag(side[i].exec)) && !c->is_random) {
                ops_result_take(&r, side[i].exec, want->num);
                ops_same(&r, want, OPS_BITS);
            }
            ops_result_free(&r);
        }
    }
    npu_exec_destroy(side[0].exec);
    npu_exec_destroy(side[1].exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
}

/* Inputs and outputs at odd addresses, at the end of their blocks. */
static void ops_odd_memory(ops_case *c, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu;
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    if (want->status || c->is_huge || !ops_must(c, npu_exec_create_simple(&exec, c->g, &cpu, 1, &diag), &diag)) {
        return;
    }
    npu_status status = NPU_OK;
    uint8_t *rooms[OPS_MAX_OUTS] = { NULL };
    for (uint32_t i = 0; i < c->num_inputs && !status; i++) {
        const ops_input *in = &c->inputs[i];
        size_t odd = ops_below(&c->r, 2);
        uint8_t *data = (uint8_t *)ops_take(&c->keep, in->size + odd) + odd;
        if (in->size) {
            memcpy(data, in->data, in->size);
        }
        status = npu_exec_set_input(exec, &(npu_array){ in->name, in->now, data });
        status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status;
    }
    for (uint32_t i = 0; i < want->num && !status; i++) {
        size_t odd = ops_below(&c->r, 2);
        rooms[i] = (uint8_t *)ops_take(&c->keep, want->outs[i].size + odd) + odd;
        status = npu_exec_set_output_at(exec, i, rooms[i], want->outs[i].size);
    }
    status = status ? status : npu_exec_run(exec);
    if (ops_must(c, status, npu_exec_diag(exec)) && !c->is_random) {
        for (uint32_t i = 0; i < want->num; i++) {
            bool differs =
                rooms[i] && want->outs[i].size && memcmp(rooms[i], want->outs[i].data, want->outs[i].size) != 0;
            ops_result got = *want;
            got.outs[i].data = rooms[i];
            if (differs) {
                ops_same_out(&got, want, i, OPS_NUMBERS);
            }
        }
    }
    npu_exec_destroy(exec);
}

/* ---- planned models ---- */

static void ops_planned_run(ops_case *c, const npu_text *file, const ops_result *want)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_planned_desc d;
    npu_planned m;
    memset(&d, 0, sizeof d);
    npu_planned_head head;
    memcpy(&head, file->data, sizeof head);
    uint8_t *copy = (uint8_t *)ops_take(&c->keep, file->len), *arena = (uint8_t *)ops_take(&c->keep, head.arena_size);
    memcpy(copy, file->data, file->len);
    memset(arena, 0xa5, head.arena_size);
    d.file = copy;
    d.size = file->len;
    d.arena = arena;
    d.arena_size = head.arena_size;
    d.kernels = library->kernels;
    d.num_kernels = library->num_kernels;
    npu_status status = npu_planned_open(&m, &d);
    status = status ? status : npu_planned_check_data(&m);
    if (status) {
        ops_finding("a planned model does not open: %s", npu_status_name(status));
        return;
    }
    for (int run = 0; run < 2 && !status; run++) {
        for (uint32_t i = 0; npu_planned_port_at(&m, i); i++) {
            const npu_planned_port *port = npu_planned_port_at(&m, i);
            for (uint32_t k = 0; k < c->num_inputs && port->role == NPU_PORT_INPUT; k++) {
                if (c->inputs[k].size == port->bytes &&
                    strcmp((const char *)copy + port->name, c->inputs[k].name) == 0 && port->bytes) {
                    memcpy(npu_planned_data(&m, i), c->inputs[k].data, port->bytes);
                }
            }
        }
        npu_planned_start(&m);
        status = npu_planned_run(&m);
    }
    if (status && want->status == NPU_OK && status != NPU_ERR_RANGE) {
        ops_finding("a planned model does not run: %s", npu_status_name(status));
    }
    ops_result r = *want;
    uint32_t first = npu_graph_num_inputs(c->g);
    for (uint32_t i = 0;
         i < want->num && !status && want->status == NPU_OK && c->tame && !c->has_state && !c->is_random; i++) {
        r.outs[i].data = (uint8_t *)npu_planned_data(&m, first + i);
        if (npu_planned_port_at(&m, first + i)->bytes != want->outs[i].size) {
            ops_finding("port %u has %u bytes, want %u", (unsigned)i,
                        (unsigned)npu_planned_port_at(&m, first + i)->bytes, (unsigned)want->outs[i].size);
        } else if (want->outs[i].size && c->num_ops < 6) {
            ops_same_out(&r, want, i, OPS_NEAR);
        }
    }
}

static void ops_planned(ops_case *c, const npu_graph *g, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu;
    const npu_planned_library *library = npu_ref_planned();
    npu_plan_desc plan_desc;
    npu_plan_write_desc desc;
    npu_plan *plan = NULL;
    npu_diag diag;
    npu_text file = npu_text_init(&c->w->allocator), code = npu_text_init(&c->w->allocator);
    memset(&plan_desc, 0, sizeof plan_desc);
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    plan_desc.backends = &cpu;
    plan_desc.num_backends = desc.num_libraries = 1;
    plan_desc.allocator = desc.allocator = &c->w->allocator;
    desc.libraries = &library;
    desc.alignment = ops_chance(&c->r, 50) ? 0 : 16;
    desc.scratch = desc.alignment ? 4096 : 0;
    desc.big_endian = ops_chance(&c->r, 10);
    desc.code = ops_chance(&c->r, 20) ? &code : NULL;
    if (ops_is_ok(c, npu_plan_create(&plan, g, &plan_desc, &diag), &diag) &&
        ops_is_ok(c, npu_plan_write(plan, &desc, &file, &diag), &diag) && !desc.big_endian &&
        file.len < OPS_MAX_BLOCK) {
        ops_planned_run(c, &file, want);
    }
    npu_plan_destroy(plan);
    npu_text_free(&file);
    npu_text_free(&code);
}

/* ---- 8 bits ---- */

static void ops_on_report(void *ctx, const npu_quantize_report *report)
{
    ops_case *c = (ops_case *)ctx;
    npu_text text = npu_text_init(&c->w->allocator);
    npu_quantize_report_print(report, &text);
    npu_text_free(&text);
}

/* The array of each input of the graph, by name. */
static bool ops_sample(ops_case *c, npu_array *arrays)
{
    for (uint32_t i = 0; i < npu_graph_num_inputs(c->g); i++) {
        const char *name = npu_value_name(c->g, npu_graph_input(c->g, i));
        uint32_t k = 0;
        while (k < c->num_inputs && strcmp(c->inputs[k].name, name) != 0) {
            k++;
        }
        if (k == c->num_inputs) {
            return false;
        }
        arrays[i] = (npu_array){ name, c->inputs[k].now, c->inputs[k].data };
    }
    return true;
}

static void ops_quantize(ops_case *c, const ops_result *want)
{
    const npu_backend *cpu = c->w->cpu;
    npu_array arrays[OPS_MAX_INPUTS];
    npu_quantize_desc desc;
    npu_optimize_desc integer;
    npu_graph *q = NULL, *q8 = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&integer, 0, sizeof integer);
    memset(&diag, 0, sizeof diag);
    desc.backends = integer.backends = &cpu;
    desc.num_backends = integer.num_backends = desc.num_samples = 1;
    desc.inputs = arrays;
    desc.form = ops_chance(&c->r, 60) ? 0 : ops_below(&c->r, 4);
    desc.dtype = ops_chance(&c->r, 50) ? 0 : NPU_U8;
    desc.per_tensor = ops_chance(&c->r, 30);
    desc.asymmetric = ops_chance(&c->r, 30);
    desc.percentile = ops_chance(&c->r, 80) ? 0 : 99;
    desc.correct_bias = ops_chance(&c->r, 20);
    desc.num_measured = ops_below(&c->r, 2);
    desc.report = ops_on_report;
    desc.report_ctx = c;
    integer.passes = 1u << NPU_PASS_INTEGER;
    integer.frozen = ops_chance(&c->r, 80);
    if (c->is_huge || npu_graph_num_inputs(c->g) > OPS_MAX_INPUTS || !ops_sample(c, arrays)) {
        return;
    }
    if (ops_is_ok(c, npu_graph_quantize(&q, c->g, &desc, &diag), &diag)) {
        npu_graph_validate(q, ops_report, c);
        if (ops_must(c, npu_graph_optimize(&q8, q, &integer, NULL, &diag), &diag)) {
            ops_way way = ops_way_of(&cpu, 1);
            npu_graph_validate(q8, ops_report, c);
            ops_result none, r = ops_run(c, q8, &way);
            memset(&none, 0, sizeof none);
            none.status = r.status ? r.status : NPU_ERR_MISMATCH; /* nothing to compare with */
            if (want->status == NPU_OK) {
                ops_must(c, r.status, &r.diag);
            }
            ops_planned(c, q8, &none);
            ops_result_free(&r);
        }
    }
    npu_graph_destroy(q);
    npu_graph_destroy(q8);
}

/* ---- one op alone ---- */

static bool ops_host_tensor(ops_case *c, npu_tensor *t, npu_buffer *buffer, const npu_spec *spec, const void *data)
{
    size_t size = 0;
    void *room = NULL;
    memset(t, 0, sizeof *t);
    t->size = sizeof *t;
    if (!spec) {
        return true;
    }
    if (npu_spec_size(spec, &size) != NPU_OK || size > OPS_MAX_BLOCK || spec->cls != NPU_CLASS_TENSOR) {
        return false;
    }
    room = ops_take(&c->keep, size);
    if (data) {
        memcpy(room, data, size);
    } else {
        ops_fill(&c->r, (npu_dtype)spec->dtype, (uint8_t *)room, size, c->tame);
    }
    return npu_tensor_set_host(t, buffer, (npu_dtype)spec->dtype, spec->rank, spec->dims, room) == NPU_OK;
}

/* As it stands in the graph, and with its attributes spoilt: a status with words, whatever they are. */
static void ops_call_alone(ops_case *c)
{
    enum { MOST = 40 };
    npu_op op = { 1 + ops_below(&c->r, npu_graph_num_ops(c->g)) };
    npu_op_storage storage;
    npu_op_info info;
    npu_tensor in[MOST], out[MOST];
    npu_buffer buffers[2 * MOST];
    npu_diag diag;
    npu_op_call_desc desc;
    memset(&storage, 0, sizeof storage);
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    bool ok = npu_op_describe(c->g, op, &info, &storage) == NPU_OK && info.num_in <= MOST && info.num_out <= MOST &&
              !c->is_huge;
    for (uint32_t i = 0; ok && i < info.num_in; i++) {
        size_t size = 0;
        const void *data = npu_value_data(c->g, npu_op_operand_value(c->g, op, i), &size);
        ok = ops_host_tensor(c, &in[i], &buffers[i], info.in[i], data);
    }
    for (uint32_t i = 0; ok && i < info.num_out; i++) {
        ok = ops_host_tensor(c, &out[i], &buffers[MOST + i], info.out[i]->cls == NPU_CLASS_NONE ? NULL : info.out[i],
                             NULL);
    }
    if (ok) {
        desc.kind = info.kind;
        desc.num_in = info.num_in;
        desc.num_out = info.num_out;
        desc.in = in;
        desc.out = out;
        desc.blob_size = info.attrs_size;
        uint8_t *blob = (uint8_t *)ops_take(&c->keep, info.attrs_size);
        if (info.attrs_size) {
            memcpy(blob, info.attrs, info.attrs_size);
        }
        desc.blob = blob;
        ops_is_ok(c, npu_op_call(c->w->cpu, &desc, &diag), &diag);
        for (int n = 0; n < 4 && info.attrs_size; n++) {
            blob[ops_below(&c->r, info.attrs_size)] =
                (uint8_t)(ops_chance(&c->r, 50) ? ops_below(&c->r, 256) : 0xff * ops_below(&c->r, 2));
            memset(&diag, 0, sizeof diag);
            ops_is_ok(c, npu_op_call(c->w->cpu, &desc, &diag), &diag);
        }
    }
    npu_op_storage_free(&storage);
}

static void ops_deep_ways(ops_case *c, const ops_result *want)
{
    for (uint32_t n = 1 + ops_below(&c->r, 3); n; n--) {
        switch (ops_below(&c->r, 8)) {
        case 0:
        case 1:
        case 2:
            ops_stage(c, "priced split");
            ops_priced_split(c, want);
            break;
        case 3:
            ops_stage(c, "planned");
            ops_planned(c, c->g, want);
            break;
        case 4:
            ops_stage(c, "quantise");
            ops_quantize(c, want);
            break;
        case 5:
            ops_stage(c, "two execs");
            ops_two_execs(c, want);
            break;
        case 6:
            ops_stage(c, "odd memory");
            ops_odd_memory(c, want);
            break;
        default:
            ops_stage(c, "alone");
            ops_call_alone(c);
            break;
        }
    }
}

#endif
