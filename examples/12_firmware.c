/* 12_firmware: a keyword spotter as a microcontroller runs it. Only its six kinds of ops and its dtype are linked, and no
   part that it does not use; there are no files and no threads, and all memory comes from one static pool: nothing can
   reach malloc.
   What it takes is printed as it is taken, and the runs take nothing.
   cc -Os -I.. 12_firmware.c -lm
   For a Cortex-M4 (-mcpu=cortex-m4 -mthumb -ffunction-sections -fdata-sections -Wl,--gc-sections) it links 190 KB of
   code and constants, C library included; with all ops it would be 823 KB, and 606 KB of memory for the graph instead
   of 26. It takes 9.5 KB of stack. With NPU_IR_STATIC the compiler drops what this file, which alone calls the library,
   does not. */
#define NPU_IR_STATIC
#define NPU_IR_NO_STDIO
#define NPU_IR_NO_THREADS
#define NPU_IR_NO_TEXT
#define NPU_IR_NO_DIAGRAMS
#define NPU_IR_NO_JSON
#define NPU_IR_NO_REWRITE
#define NPU_IR_NO_LOWERING
#define NPU_IR_NO_REPORT
#define NPU_IR_NO_TILES
#define NPU_IR_NO_LAYERS
#define NPU_IR_NO_COSTS
#define NPU_IR_NO_OVERLAP
#define NPU_IR_NO_DEVICES
#define NPU_IR_NO_SYMBOLS
#define NPU_IR_NO_STATES
#define NPU_IR_NO_QUANT
#define NPU_IR_HAS_DTYPE(dtype) ((dtype) == NPU_F32)
#define NPU_IR_STRIP 32
#define NPU_IR_MALLOC(n) ((void)(n), (void *)0)
#define NPU_IR_REALLOC(p, n) ((void)(p), (void)(n), (void *)0)
#define NPU_IR_FREE(p) ((void)(p))
#define NPU_IR_HAS_OP(kind)                                                                        \
    ((kind) == NPU_ATEN_CONV2D || (kind) == NPU_ATEN_RELU || (kind) == NPU_ATEN_LINEAR ||          \
     (kind) == NPU_ATEN_SOFTMAX || (kind) == NPU_ATEN_ADAPTIVE_AVG_POOL2D || (kind) == NPU_ATEN_FLATTEN)
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include <stdio.h>

/* ---- a pool: holes by address, the first that fits. Blocks need no heads, sizes come with every call ---- */

typedef struct hole {
    struct hole *next;
    size_t size;
} hole;

static union {
    hole first;
    double aligned;
    unsigned char bytes[256 * 1024];
} pool;
static hole *holes = &pool.first;
static size_t in_use, most_in_use;

static void *pool_take(size_t size)
{
    for (hole **at = &holes; *at; at = &(*at)->next) {
        hole *h = *at;
        if (h->size >= size) {
            hole *rest = (hole *)(void *)((unsigned char *)h + size), *next = h->next;
            size_t left = h->size - size;
            if (left) {
                rest->next = next;
                rest->size = left;
            }
            *at = left ? rest : next;
            in_use += size;
            most_in_use = in_use > most_in_use ? in_use : most_in_use;
            return h;
        }
    }
    return NULL;
}

static void pool_give(void *p, size_t size)
{
    hole **at = &holes, *h = p, *before = NULL;
    while (*at && *at < h) {
        before = *at;
        at = &before->next;
    }
    h->next = *at;
    h->size = size;
    *at = h;
    if (h->next && (unsigned char *)h + size == (unsigned char *)h->next) {
        h->size += h->next->size;
        h->next = h->next->next;
    }
    if (before && (unsigned char *)before + before->size == (unsigned char *)h) {
        before->size += h->size;
        before->next = h->next;
    }
    in_use -= size;
}

static void *pool_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    void *now = new_size ? pool_take((new_size + 15) / 16 * 16) : NULL;
    (void)ctx;
    if (p && now) {
        memcpy(now, p, old_size < new_size ? old_size : new_size);
    }
    if (p && (now || !new_size)) {
        pool_give(p, (old_size + 15) / 16 * 16);
    }
    return now;
}

static const npu_allocator allocator = { NULL, pool_resize };

#include "firmware/spotter.h"

static void tell(const char *what)
{
    static size_t before;
    printf("%-10s %6u bytes, %6u in all\n", what, (unsigned)(in_use - before), (unsigned)in_use);
    before = in_use;
}

static int run(npu_exec *exec)
{
    static float sound[FRAMES * COEFFICIENTS], words[WORDS];
    double sum = 0;
    int64_t dims[4] = { 1, 1, FRAMES, COEFFICIENTS };
    npu_exec_set_input(exec, &(npu_array){ "sound", npu_spec_tensor(NPU_F32, 4, dims), sound });
    npu_exec_set_output(exec, "words", words, sizeof words);
    size_t before = most_in_use = in_use;
    for (int n = 0; n < 3; n++) {
        fill_sound(sound, n);
        if (npu_exec_run(exec)) {
            printf("%s\n", npu_exec_diag(exec)->message);
            return 1;
        }
    }
    for (int i = 0; i < WORDS; i++) {
        sum += (double)words[i];
    }
    printf("3 runs took %u bytes more; the words' probabilities add up to %.4f\n",
           (unsigned)(most_in_use - before), sum);
    return most_in_use != before || fabs(sum - 1) > 1e-5;
}

/* Its frames, which are large, are gone when runs begin: so it stays a function of its own. */
__attribute__((noinline)) static npu_exec *prepare(npu_graph *g, npu_backend **cpu, npu_program **program)
{
    npu_plan *plan = NULL;
    npu_exec *exec = NULL;
    npu_memory memory;
    npu_diag diag = { 0 };
    npu_ref_desc ref_desc = { .allocator = &allocator };
    if (npu_graph_status(g) || npu_ref_create(cpu, &ref_desc)) {
        printf("%s\n", npu_graph_diag(g)->message);
        return NULL;
    }
    const npu_backend *backends[1] = { *cpu };
    npu_plan_desc plan_desc = { .backends = backends, .num_backends = 1, .allocator = &allocator };
    npu_exec_desc exec_desc = { .allocator = &allocator };
    if (npu_plan_create(&plan, g, &plan_desc, &diag) || npu_program_create(program, plan, &diag)) {
        printf("%s\n", diag.message);
        return NULL;
    }
    npu_plan_destroy(plan); /* the program has its own */
    tell("program");
    npu_plan_memory(npu_program_plan(*program), 0, &memory);
    printf("  planned: activations and scratch %u, weights packed for kernels %u, weights %u in flash\n",
           (unsigned)memory.activations, (unsigned)memory.prepared, (unsigned)memory.weights);
    if (npu_exec_create(&exec, *program, &exec_desc, &diag)) {
        printf("%s\n", diag.message);
    }
    tell("exec");
    return exec;
}

int main(void)
{
    npu_backend *cpu = NULL;
    npu_program *program = NULL;
    pool.first.next = NULL;
    pool.first.size = sizeof pool;
    npu_graph *g = spotter(&allocator);
    tell("graph");
    npu_exec *exec = prepare(g, &cpu, &program);
    int failed = !exec || run(exec);
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_ref_destroy(cpu);
    npu_graph_destroy(g);
    return failed || in_use != 0;
}
