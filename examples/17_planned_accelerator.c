/* 17_planned_accelerator: one planned model on a microcontroller's core and on an accelerator beside it, whose memory is
   an address range of its own. The plan places ops on the simulated accelerator of sim/, firmware/vector_unit.h compiles
   them to a program of the unit, and uploads, the run and downloads are steps of the file beside those of the core. The
   core does other things while a step answers BUSY.
   cc -O2 -I.. 17_planned_accelerator.c -lm -lpthread
   usage: 17_planned_accelerator [folder for accelerator.h and accelerator_cases.h, which firmware/run.c runs] */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#define NPU_SIM_IMPLEMENTATION
#include "sim/npu_sim.h"
#include "firmware/vector_unit.h"

static const char graph_text[] =
    "npu_ir 1\ngraph main\ninput x : f32[4,4]\nconst w : f32[4,4] {1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, -4.0, 0.5, 0.5, "
    "0.5, 0.5, 1.0, 0.0, 1.0, 0.0}\n"
    "m = aten.matmul.default(x, w)\na = aten.add.Tensor(m, x)\nb = aten.mul.Tensor(a, m)\nc = aten.relu.default(b)\n"
    "y = aten.softmax.int(c, 1)\noutput y = y\n";
static const char *const on_device[] = { "aten.add.Tensor", "aten.mul.Tensor", "aten.relu.default" };
static uint64_t file_memory[1 << 10], arena[1 << 8];

/* The plan with the accelerator in it, as a file. */
static npu_status write_file(const npu_graph *g, npu_text *file, npu_text *code, npu_text *calls, npu_diag *diag)
{
    const npu_planned_library *libraries[2] = { vector_unit_library(), npu_ref_planned() };
    npu_plan_write_desc desc = { .libraries = libraries, .num_libraries = 2, .code = code, .calls = calls };
    npu_sim_desc sim_desc = { .allow = on_device, .num_allow = 3 };
    npu_plan *plan = NULL;
    npu_sim *sim = NULL;
    npu_status status = npu_sim_create(&sim, &sim_desc);
    if (status == NPU_OK) {
        const npu_backend *backends[2] = { npu_sim_backend(sim), npu_ref_backend() };
        npu_plan_desc plan_desc = { .backends = backends, .num_backends = 2 };
        status = npu_plan_create(&plan, g, &plan_desc, diag);
        status = status ? status : npu_plan_write(plan, &desc, file, diag);
    }
    npu_plan_destroy(plan);
    npu_sim_destroy(sim);
    return status;
}

static void put_words(npu_text *text, const char *what, const void *data)
{
    npu_text_printf(text, "%s", what);
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)data + 4 * i, 4);
        npu_text_printf(text, " 0x%08lxu,", (unsigned long)bits);
    }
}

/* The model as an array and as C calls, and an input with its result. */
static npu_status save(const char *folder, const npu_text *code, const npu_text *calls, const float *x, const void *y)
{
    npu_text path = npu_text_init(NULL), cases = npu_text_init(NULL);
    npu_status status;
    npu_text_printf(&path, "%s/accelerator.h", folder);
    status = npu_text_save(code, path.data);
    path.len = 0;
    npu_text_printf(&path, "%s/accelerator.c", folder);
    status = status ? status : npu_text_save(calls, path.data);
    put_words(&cases, "#include <stdint.h>\nstatic const uint32_t case_inputs[1][16] = {{", x);
    put_words(&cases, "}};\nstatic const uint32_t case_outputs[1][16] = {{", y);
    npu_text_printf(&cases, "}};\n");
    path.len = 0;
    npu_text_printf(&path, "%s/accelerator_cases.h", folder);
    status = status ? status : npu_text_save(&cases, path.data);
    npu_text_free(&path);
    npu_text_free(&cases);
    return status;
}

/* The core's loop: steps, and what else it has to do. */
static npu_status run_loop(npu_planned *model, uint32_t *free_turns)
{
    npu_status status = NPU_OK;
    npu_planned_start(model);
    while (!npu_planned_is_done(model) && (status == NPU_OK || status == NPU_ERR_BUSY)) {
        status = npu_planned_step(model);
        *free_turns += status == NPU_ERR_BUSY;
    }
    return status;
}

static int compare(const npu_graph *g, npu_planned *model, const float *x)
{
    const npu_backend *cpu = npu_ref_backend();
    const float *got = (const float *)npu_planned_data(model, 1), *want;
    npu_exec *exec = NULL;
    npu_array input = { "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 4, 4 }), x };
    size_t size = 0;
    int differ = npu_exec_create_simple(&exec, g, &cpu, 1, NULL) || npu_exec_set_input(exec, &input) ||
                 npu_exec_run(exec);
    want = differ ? NULL : (const float *)npu_exec_output(exec, 0, &size);
    for (size_t i = 0; want && i < size / 4; i++) {
        float d = got[i] - want[i];
        differ |= !(d <= 1e-6f && d >= -1e-6f);
    }
    npu_exec_destroy(exec);
    return differ;
}

int main(int argc, char **argv)
{
    const npu_planned_library *of_unit = vector_unit_library(), *of_core = npu_ref_planned();
    npu_planned_kernel kernels[64];
    npu_planned_desc desc = { file_memory, 0, arena, sizeof arena, kernels,
                              of_unit->num_kernels + of_core->num_kernels, 0, 0 };
    npu_text file = npu_text_init(NULL), code = npu_text_init(NULL), calls = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_planned model;
    npu_diag diag = { 0 };
    uint32_t free_turns = 0;
    float x[16];
    npu_status status = npu_graph_parse(&g, graph_text, sizeof graph_text - 1, NULL, &diag);
    status = status ? status : write_file(g, &file, &code, &calls, &diag);
    if (status || file.len > sizeof file_memory || desc.num_kernels > 64) {
        fprintf(stderr, "%s\n", diag.message);
        return 1;
    }
    memcpy(file_memory, file.data, file.len);
    memcpy(kernels, of_unit->kernels, of_unit->num_kernels * sizeof *kernels);
    memcpy(kernels + of_unit->num_kernels, of_core->kernels, of_core->num_kernels * sizeof *kernels);
    desc.size = file.len;
    status = npu_planned_open(&model, &desc);
    for (int i = 0; i < 16; i++) {
        x[i] = (float)(i % 5) - 2.0f;
    }
    if (status == NPU_OK) {
        memcpy(npu_planned_data(&model, 0), x, sizeof x);
        status = run_loop(&model, &free_turns);
    }
    int differ = status || compare(g, &model, x);
    printf("status %s, %u turns free while the unit worked, %s\n", npu_status_name(status), (unsigned)free_turns,
           differ ? "another result than the CPU's" : "the CPU's result");
    if (argc > 1 && !differ && save(argv[1], &code, &calls, x, npu_planned_data(&model, 1))) {
        fprintf(stderr, "%s: cannot be written\n", argv[1]);
        return 1;
    }
    desc.kernels += of_unit->num_kernels; /* a machine without the unit */
    desc.num_kernels -= of_unit->num_kernels;
    status = npu_planned_open(&model, &desc);
    printf("without the unit: %s\n", npu_status_name(status));
    npu_graph_destroy(g);
    npu_text_free(&file);
    npu_text_free(&code);
    npu_text_free(&calls);
    return differ || free_turns == 0 || status != NPU_ERR_NOT_FOUND;
}
