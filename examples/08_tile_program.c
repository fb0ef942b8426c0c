/* 08_tile_program.c - programs for the cores of an accelerator: explicit moves between memories, pipes that work side by
   side, and flags that order them. Softmax, a matrix product and the layer norm of a sum run over blocks and are
   compared with the aten ops; then one flag of the softmax is left out, and the checker says what would go wrong.

       cc -std=c99 examples/08_tile_program.c -lm -lpthread && ./a.out

   The programs themselves are in examples/tiles/programs.h. */
#define NPU_IR_IMPLEMENTATION
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include "tiles/programs.h"
#include <stdio.h>

enum { BLOCKS = 4 };

/* Runs a graph whose first output is the program's and whose second is aten's; prints how far they are apart. */
static int compare(npu_graph *g, const npu_parallel *threads)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1 };
    npu_exec_desc exec_desc = { .parallel = threads };
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    static float data[1 << 14];
    double worst = 0;
    size_t size = 0;
    for (int i = 0; i < 1 << 14; i++) {
        data[i] = (float)(i * 2654435761u % 4001u) / 1000.0f - 2.0f;
    }
    if (npu_plan_create(&plan, g, &plan_desc, &diag) || npu_program_create(&program, plan, &diag) ||
        npu_exec_create(&exec, program, &exec_desc, &diag)) {
        printf("%s\n", diag.message);
        return 1;
    }
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        npu_exec_set_input_at(exec, i, &(npu_array){ NULL, *npu_value_spec(g, npu_graph_input(g, i)), data + 97 * i });
    }
    if (npu_exec_run(exec)) {
        printf("%s\n", npu_exec_diag(exec)->message);
        return 1;
    }
    const float *tiles = npu_exec_output(exec, 0, &size), *aten = npu_exec_output(exec, 1, NULL);
    for (size_t i = 0; i < size / sizeof *tiles; i++) {
        double apart = fabs((double)tiles[i] - (double)aten[i]);
        worst = apart > worst ? apart : worst;
    }
    printf("%-14s %u ops, %d blocks: largest difference from aten %.1e\n",
           npu_graph_name(npu_graph_child(g, 0)), (unsigned)npu_graph_num_ops(npu_graph_child(g, 0)),
           BLOCKS, worst);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    return !(worst < 1e-4);
}

static void print_hazard(void *ctx, const npu_hazard *h)
{
    (void)ctx;
    printf("  %s\n", h->message);
}

/* The program must have no hazard on the core that it is written for. */
static int check(const npu_graph *program)
{
    npu_tile_desc desc = { .blocks = BLOCKS };
    return npu_tile_check(program, &desc, print_hazard, NULL) != NPU_OK;
}

static npu_value launch(npu_graph *g, uint32_t body, const npu_value *args, uint32_t num_args)
{
    return npu_op_result(g, npu_tile_launch(g, args, num_args, BLOCKS, 0, body), 0);
}

static int softmax(const npu_parallel *threads)
{
    npu_graph *g = npu_graph_create(NULL);
    uint32_t body;
    int failed = check(build_softmax(g, BLOCKS, 3, 8, 64, false, &body));
    npu_value args[2];
    args[0] = npu_input(g, "x", matrix(BLOCKS * 3 * 8, 64));
    args[1] = npu_input(g, "out", matrix(BLOCKS * 3 * 8, 64));
    npu_output(g, "tiles", launch(g, body, args, 2));
    npu_output(g, "aten", npu_softmax(g, args[0], -1));
    failed |= compare(g, threads);
    npu_graph_destroy(g);
    return failed;
}

static int matmul(const npu_parallel *threads)
{
    npu_graph *g = npu_graph_create(NULL);
    uint32_t body;
    int failed = check(build_matmul(g, BLOCKS, 3, 16, 16, 32, &body));
    npu_value args[3];
    args[0] = npu_input(g, "a", matrix(BLOCKS * 16, 48));
    args[1] = npu_input(g, "b", matrix(48, 32));
    args[2] = npu_input(g, "c", matrix(BLOCKS * 16, 32));
    npu_output(g, "tiles", launch(g, body, args, 3));
    npu_output(g, "aten", npu_matmul(g, args[0], args[1]));
    failed |= compare(g, threads);
    npu_graph_destroy(g);
    return failed;
}

static int add_layer_norm(const npu_parallel *threads)
{
    npu_graph *g = npu_graph_create(NULL);
    uint32_t body;
    int failed = check(build_add_layer_norm(g, BLOCKS, 8, 64, false, &body));
    npu_value args[5];
    int64_t cols = 64;
    args[0] = npu_input(g, "x", matrix(BLOCKS * 8, 64));
    args[1] = npu_input(g, "r", matrix(BLOCKS * 8, 64));
    args[2] = npu_input(g, "w", matrix(1, 64));
    args[3] = npu_input(g, "b", matrix(1, 64));
    args[4] = npu_input(g, "out", matrix(BLOCKS * 8, 64));
    npu_output(g, "tiles", launch(g, body, args, 5));
    npu_value sum = npu_add(g, args[0], args[1]);
    npu_value weight = npu_reshape(g, args[2], &cols, 1);
    npu_value bias = npu_reshape(g, args[3], &cols, 1);
    npu_output(g, "aten", npu_layer_norm(g, sum, weight, bias, 1, 1e-5));
    failed |= compare(g, threads);
    npu_graph_destroy(g);
    return failed;
}

/* Leaves out the first wait of the vector unit. */
static npu_status forget(void *ctx, npu_rewrite *rw, const npu_graph *from, npu_op op)
{
    bool *forgotten = ctx;
    if (npu_op_kind(from, op) == NPU_SYSTEM_SYNC_DST && !*forgotten) {
        *forgotten = true;
        return NPU_OK;
    }
    npu_rewrite_copy(rw, op);
    return NPU_OK;
}

static int broken(void)
{
    npu_graph *g = npu_graph_create(NULL), *without = NULL;
    bool forgotten = false;
    uint32_t body;
    npu_diag diag = { 0 };
    if (npu_graph_rewrite(&without, build_softmax(g, BLOCKS, 1, 8, 64, false, &body), forget, &forgotten,
                          &diag)) {
        printf("%s\n", diag.message);
        return 1;
    }
    printf("softmax without its first wait:\n");
    int found = check(without);
    npu_graph_destroy(without);
    npu_graph_destroy(g);
    return !found;
}

int main(void)
{
    npu_parallel *threads = NULL;
    if (npu_threads_create(&threads, &(npu_threads_desc){ .width = 2 })) {
        threads = NULL; /* none in this build: serial */
    }
    int failed = softmax(threads) | matmul(threads) | add_layer_norm(threads) | broken();
    npu_threads_destroy(threads);
    return failed;
}
