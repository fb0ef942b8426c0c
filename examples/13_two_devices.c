/* 13_two_devices.c - two accelerators and the CPU: a model with two branches is placed by cost, runs with both devices at
   work at once, and is explained: the plan, what to implement next, the time with and without overlap, a page.

       cc -std=c99 -O2 examples/13_two_devices.c -lm -lpthread && ./a.out [plan.html | --numbers]

   The devices are simulated, latency and bandwidth included; time is that of their clock, so that every run says the same. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#define NPU_SIM_IMPLEMENTATION
#include "sim/npu_sim.h"
#include "report/npu_report.h"

/* What each backend costs: here it is known; npu_rates_calibrate measures it. A device starts a group in 20 us, moves a
   value in 5 us and 1 GB/s, and takes 2 us for an op; the CPU does a multiply-add in 1 ns. */
static const npu_rates device_rates = { .launch_ns = 20000, .transfer_ns = 5000, .up = 1e9, .down = 1e9, .num_rows = 1,
                                        .rows = { { NULL, 2000, 0, 0 } } };
static const npu_rates cpu_rates = { .num_rows = 1, .rows = { { NULL, 500, 1, 0.1 } } };
static const npu_rates *const rates[3] = { &device_rates, &device_rates, &cpu_rates };

/* ---- the CPU on the clock of the devices: a group takes what its rates say ---- */

static struct { void *program; double ns; } timed[64];
static uint32_t num_timed;

static npu_status cpu_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_status status = npu_ref_backend()->compile(ctx, group, out);
    double ns = 0;
    for (uint32_t i = 0; i < group->num_ops; i++) {
        npu_work work = npu_op_work(group->ops[i]->info);
        double by_bytes = work.bytes * cpu_rates.rows[0].byte_ns;
        ns += cpu_rates.rows[0].fixed_ns + (work.macs > by_bytes ? work.macs : by_bytes);
    }
    if (status == NPU_OK && num_timed < sizeof timed / sizeof timed[0]) {
        timed[num_timed].program = out->program;
        timed[num_timed++].ns = ns;
    }
    return status;
}

static npu_status cpu_submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    npu_status status = npu_ref_backend()->submit(ctx, program, binding, fence);
    for (uint32_t i = 0; i < num_timed; i++) {
        npu_sim_advance(timed[i].program == program ? (uint64_t)timed[i].ns : 0);
    }
    return status;
}

/* ---- the model: an image by one branch, sound by the other, then both together ---- */

static const char *const model =
    "graph two_branches\n"
    "input image : f32[1,8,32,32]\ninput sound : f32[1,256]\n"
    "param c1 : f32[16,8,3,3]\nparam c2 : f32[16,16,3,3]\nparam c3 : f32[16,16,3,3]\n"
    "param l1 : f32[512,256]\nparam l2 : f32[512,512]\nparam l3 : f32[256,512]\nparam head : f32[10,1280]\n"
    "%1 = aten.conv2d.default(image, c1, padding=[1, 1])\n%2 = aten.relu.default(%1)\n"
    "%3 = aten.conv2d.default(%2, c2, padding=[1, 1])\n%4 = aten.relu.default(%3)\n"
    "%5 = aten.conv2d.default(%4, c3, padding=[1, 1])\n%6 = aten.relu.default(%5)\n"
    "%7 = aten.max_pool2d.default(%6, [4, 4])\nseen = aten.flatten.using_ints(%7, 1)\n"
    "%9 = aten.linear.default(sound, l1)\n%10 = aten.gelu.default(%9)\n"
    "%11 = aten.linear.default(%10, l2)\n%12 = aten.gelu.default(%11)\nheard = aten.linear.default(%12, l3)\n"
    "both = aten.cat.default([seen, heard], 1)\n%15 = aten.linear.default(both, head)\n"
    "p = aten.softmax.int(%15, 1)\noutput p = p\n";

static float numbers[512 * 512]; /* all weights and inputs begin here: what they are does not matter */

static npu_status bind(npu_graph *g)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < npu_graph_num_params(g) && status == NPU_OK; i++) {
        npu_value param = npu_graph_param(g, i);
        size_t size = 0;
        status = npu_spec_size(npu_value_spec(g, param), &size);
        status = status ? status : npu_graph_bind_param(g, npu_value_name(g, param), numbers, size);
    }
    return status;
}

/* Of the second of two runs, in nanoseconds of the devices' clock; 0 = it failed. */
static uint64_t time_of_run(npu_exec *exec, const npu_graph *g)
{
    uint64_t begin = 0;
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        npu_array a = { NULL, *npu_value_spec(g, npu_graph_input(g, i)), numbers };
        npu_exec_set_input_at(exec, i, &a);
    }
    for (int run = 0; run < 2; run++) {
        begin = npu_sim_clock();
        if (npu_exec_run(exec)) {
            return 0;
        }
    }
    return npu_sim_clock() - begin;
}

/* ---- what is said ---- */

typedef struct demo {
    npu_sim *sims[2];
    npu_backend cpu;
    const npu_backend *backends[3];
    npu_graph *graph;
    npu_plan_desc plan_desc;
    npu_plan *plan;
    npu_program *program;
    npu_exec *execs[2]; /* in order, overlapped */
    uint64_t ns[2];     /* of a run of each */
    npu_advice advice[8];
    uint32_t num_advice;
    npu_diag diag;
} demo;

static void say_numbers(const demo *d)
{
    npu_prediction p;
    uint32_t groups[3] = { 0 };
    const npu_plan *plan = npu_program_plan(d->program);
    npu_plan_predict(plan, &p);
    for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
        const npu_step *s = npu_plan_step(plan, i);
        groups[s->backend] += s->type == NPU_STEP_PARTITION;
    }
    printf("two devices: groups on camera %u, audio %u, cpu %u; %u values up, %u down, %.1f KiB moved\n", groups[0], groups[1],
           groups[2], p.num_up, p.num_down, (double)(p.up_bytes + p.down_bytes) / 1024);
    printf("two devices: predicted %.1f us, on the CPU alone %.1f us\n", p.ns / 1e3, p.last_ns / 1e3);
    printf("two devices: measured %.1f us in order, %.1f us overlapped\n", (double)d->ns[0] / 1e3, (double)d->ns[1] / 1e3);
}

static void say_all(const demo *d)
{
    npu_text text = npu_text_init(NULL);
    npu_plan_print(npu_program_plan(d->program), &text);
    npu_text_printf(&text, "\nwhat to implement next\n");
    npu_plan_print_advice(&d->plan_desc, d->advice, d->num_advice < 8 ? d->num_advice : 8, &text);
    npu_text_printf(&text, "\nthe overlapped run\n");
    npu_exec_print_profile(d->execs[1], &text);
    printf("%s\n", text.data ? text.data : "");
    npu_text_free(&text);
}

static npu_status write_page(const demo *d, const char *path)
{
    npu_report_desc desc = { .plan = npu_program_plan(d->program), .exec = d->execs[1], .advice = d->advice,
                             .num_advice = d->num_advice < 8 ? d->num_advice : 8, .title = "Two devices and the CPU" };
    npu_text page = npu_text_init(NULL);
    npu_status status = npu_report_print(&desc, &page);
    status = status ? status : npu_text_save(&page, path);
    npu_text_free(&page);
    return status;
}

/* ---- all of it ---- */

static npu_status make_devices(demo *d)
{
    static const char *const camera[] = { "aten.conv2d.default", "aten.relu.default", "aten.max_pool2d.default",
                                          "aten.flatten.using_ints" };
    static const char *const audio[] = { "aten.linear.default", "aten.gelu.default", "aten.relu.default" };
    npu_sim_desc desc = { .name = "camera", .allow = camera, .num_allow = 4, .emulate = npu_ref_backend(), .virtual_time = true,
                          .submit_ns = 20000, .op_ns = 2000, .transfer_ns = 5000, .bandwidth = 1000000000, .capacity = 4 << 20 };
    npu_status status = npu_sim_create(&d->sims[0], &desc);
    desc.name = "audio";
    desc.allow = audio;
    desc.num_allow = 3;
    status = status ? status : npu_sim_create(&d->sims[1], &desc);
    if (status == NPU_OK) {
        d->cpu = *npu_ref_backend();
        d->cpu.compile = cpu_compile;
        d->cpu.submit = cpu_submit;
        d->backends[0] = npu_sim_backend(d->sims[0]);
        d->backends[1] = npu_sim_backend(d->sims[1]);
        d->backends[2] = &d->cpu;
    }
    return status;
}

static npu_status run(demo *d)
{
    npu_status status = make_devices(d);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        numbers[i] = (float)(i * 2654435761u % 2001u) / 20000.0f - 0.05f;
    }
    status = status ? status : npu_graph_parse(&d->graph, model, strlen(model), NULL, &d->diag);
    status = status ? status : bind(d->graph);
    d->plan_desc.backends = d->backends;
    d->plan_desc.num_backends = 3;
    d->plan_desc.rates = rates;
    d->plan_desc.overlap = true; /* memory for steps that meet */
    status = status ? status : npu_plan_create(&d->plan, d->graph, &d->plan_desc, &d->diag);
    status = status ? status : npu_plan_advise(d->graph, &d->plan_desc, d->advice, 8, &d->num_advice, &d->diag);
    status = status ? status : npu_program_create(&d->program, d->plan, &d->diag);
    for (int i = 0; i < 2 && status == NPU_OK; i++) {
        npu_exec_desc desc = { .overlap = i == 1, .profile = true, .clock = npu_sim_clock };
        status = npu_exec_create(&d->execs[i], d->program, &desc, &d->diag);
        d->ns[i] = status ? 0 : time_of_run(d->execs[i], d->graph);
    }
    return status;
}

static void clean_up(demo *d)
{
    npu_exec_destroy(d->execs[0]);
    npu_exec_destroy(d->execs[1]);
    npu_program_destroy(d->program);
    npu_plan_destroy(d->plan);
    npu_graph_destroy(d->graph);
    npu_sim_destroy(d->sims[0]);
    npu_sim_destroy(d->sims[1]);
}

int main(int argc, char **argv)
{
    static demo d;
    npu_status status = run(&d);
    bool ok = status == NPU_OK && d.ns[0] && d.ns[1] && d.ns[1] <= d.ns[0];
    if (!ok) {
        printf("two devices: %s\n", d.diag.message[0] ? d.diag.message : npu_status_text(status));
    } else if (argc > 1 && strcmp(argv[1], "--numbers") == 0) {
        say_numbers(&d);
    } else {
        say_all(&d);
        say_numbers(&d);
        status = argc > 1 ? write_page(&d, argv[1]) : NPU_OK;
    }
    clean_up(&d);
    return ok && status == NPU_OK ? 0 : 1;
}
