/* bench.c - what the library costs: bench [PART]   parts: executor graphs plan gemm int8 squares passes kernels; default
   all.
   bench kernels [WORD]...   only ops, or groups of them, that contain a word.
   bench peers, bench models [FILE.onnx]...   beside other libraries, see bench_peers.h; only where asked for.

   One thread, processor time, median of 9 repetitions of at least 20 ms each (kernels: 5 ms; graphs: of 3, 1 for a million
   ops). Compare numbers of one run only: machines differ, and so do hours of one machine. */
#define _GNU_SOURCE /* dlopen, clock_gettime, fork */
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include "bench_kernels.h"
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* other programs disturb it less than the wall clock */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

/* Seconds of one call: calls are counted so that a repetition takes `least` seconds. */
static double measure(void (*call)(void *ctx), void *ctx, double least)
{
    double times[9];
    long calls = 1;
    call(ctx);
    for (;;) {
        double begin = now();
        for (long i = 0; i < calls; i++) {
            call(ctx);
        }
        if (now() - begin > least || calls > 100000000) {
            break;
        }
        calls *= 2;
    }
    for (int k = 0; k < 9; k++) {
        double begin = now();
        for (long i = 0; i < calls; i++) {
            call(ctx);
        }
        times[k] = (now() - begin) / (double)calls;
    }
    return median(times, 9);
}

/* Zeroed, on a cache line, as tensors of the library and of PyTorch are. */
static void *take(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memset(p, 0, size);
}

static float *numbers(size_t n)
{
    float *x = (float *)take(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(i * 2654435761u >> 8 & 1023) / 1024.0f - 0.5f;
    }
    return x;
}

static void require(npu_status status, const char *message)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", npu_status_name(status), message);
        exit(1);
    }
}

/* An exec of a finished graph on the CPU, its inputs bound to pseudo-random floats (never freed: the program ends soon). */
static npu_exec *make_exec(const npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    require(npu_graph_status(g), npu_graph_diag(g)->message);
    require(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), diag.message);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        npu_spec spec = *npu_value_spec(g, npu_graph_input(g, i));
        size_t len = 0;
        int64_t min;
        for (uint32_t k = 0; k < spec.rank; k++) {
            npu_graph_dim_bounds(g, spec.dims[k], &min, &spec.dims[k]);
        }
        npu_spec_len(&spec, &len);
        require(npu_exec_set_input_at(exec, i, &(npu_array){ NULL, spec, numbers(len) }), "input");
    }
    return exec;
}

static void run_exec(void *ctx)
{
    require(npu_exec_run((npu_exec *)ctx), npu_exec_diag((npu_exec *)ctx)->message);
}

/* ---- executor ---------------------------------------------------------------------------------------------- */

/* With a symbol each op is deduced and prepared in every run. */
static npu_graph *chain(uint32_t num_ops, bool symbol)
{
    npu_graph *g = npu_graph_create(NULL);
    const int64_t one = symbol ? npu_graph_add_symbol(g, "n", 0, 1) : 1;
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, &one)), y = x;
    for (uint32_t i = 0; i < num_ops; i++) {
        y = npu_add(g, y, x);
    }
    npu_output(g, "y", y);
    return g;
}

static void bench_executor(void)
{
    static const char *const names[] = { "executor, chain of 1000 adds of one element", "the same, of [n] with n from 0 to 1" };
    for (int symbol = 0; symbol < 2; symbol++) {
        npu_graph *g = chain(1000, symbol != 0);
        npu_exec *exec = make_exec(g);
        printf("%-50s   %10.1f ns/op\n", names[symbol], measure(run_exec, exec, 0.02) / 1000 * 1e9);
        npu_exec_destroy(exec);
        npu_graph_destroy(g);
    }
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */

/* A residual network of small layers, so that not all is one chain: value i uses i - 1 and i - 7. */
static npu_graph *wide(uint32_t num_ops)
{
    const int64_t dims[2] = { 4, 16 };
    npu_graph *g = npu_graph_create(NULL);
    npu_value last[8];
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        last[i] = npu_input(g, name, npu_spec_tensor(NPU_F32, 2, dims));
    }
    for (uint32_t i = 0; i < num_ops; i++) {
        npu_value a = last[(i + 7) % 8], b = last[(i + 1) % 8];
        last[i % 8] = i % 3 == 0 ? npu_add(g, a, b) : i % 3 == 1 ? npu_relu(g, a) : npu_mul(g, a, b);
    }
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof name, "y%d", i);
        npu_output(g, name, last[i]);
    }
    return g;
}

enum { BUILD, PARTITION, PLAN, NUM_TIMES };

/* Build with deduction; partition and plan in one call, the program (compile, exact memory) as the second time. */
static size_t time_graph(uint32_t num_ops, double *times)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_diag diag;
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.backends = &cpu;
    desc.num_backends = 1;
    double t0 = now();
    npu_graph *g = wide(num_ops);
    double t1 = now();
    require(npu_graph_status(g), npu_graph_diag(g)->message);
    require(npu_plan_create(&plan, g, &desc, &diag), diag.message);
    double t2 = now();
    require(npu_program_create(&program, plan, &diag), diag.message);
    times[BUILD] = t1 - t0;
    times[PARTITION] = t2 - t1;
    times[PLAN] = now() - t2;
    size_t bytes = npu_graph_memory(g);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return bytes;
}

static void bench_graphs(void)
{
    static const char *const names[NUM_TIMES] = { "build and deduce", "partition and plan memory", "compile program" };
    static const uint32_t sizes[2] = { 100000, 1000000 };
    double times[2][NUM_TIMES];
    size_t bytes[2];
    for (int s = 0; s < 2; s++) {
        double all[NUM_TIMES][3], one[NUM_TIMES];
        int repetitions = s == 0 ? 3 : 1;
        for (int k = 0; k < repetitions; k++) {
            bytes[s] = time_graph(sizes[s], one);
            for (int i = 0; i < NUM_TIMES; i++) {
                all[i][k] = one[i];
            }
        }
        for (int i = 0; i < NUM_TIMES; i++) {
            times[s][i] = median(all[i], repetitions);
        }
    }
    printf("graphs                              100000 ops   1000000 ops   exponent\n");
    for (int i = 0; i < NUM_TIMES; i++) {
        printf("  %-30s %10.1f ms %10.1f ms %10.2f\n", names[i], times[0][i] * 1e3, times[1][i] * 1e3, log10(times[1][i] / times[0][i]));
    }
    printf("  %-30s %10.1f    %10.1f\n", "bytes per op", (double)bytes[0] / sizes[0], (double)bytes[1] / sizes[1]);
}

/* ---- plan: groups, placement by cost, memory ------------------------------------------------------------- */

static npu_status refuse_relu(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx;
    answer->reason = op->kind == NPU_ATEN_RELU ? NPU_REASON_OP : NPU_REASON_CLAIMED;
    return NPU_OK;
}

/* Every fourth op is one that the device refuses. */
static npu_graph *long_chain(uint32_t num_ops)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 64 }));
    for (uint32_t i = 0; i < num_ops; i++) {
        x = i % 4 == 3 ? npu_relu(g, x) : npu_abs(g, x);
    }
    npu_output(g, "y", x);
    return g;
}

/* 64 values alive at any time, so that no single value cuts it. */
static npu_graph *tangle(uint32_t num_ops)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value last[64];
    uint64_t seed = 1;
    for (int i = 0; i < 64; i++) {
        last[i] = i ? last[0] : npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, (const int64_t[]){ 64 }));
    }
    for (uint32_t i = 0; i < num_ops; i++) {
        uint32_t r = (uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33);
        npu_value a = last[r % 64], b = last[r / 64 % 64], *to = &last[r / 4096 % 64];
        *to = r / 262144 % 4 == 0 ? npu_relu(g, a) : r / 262144 % 4 == 1 ? npu_abs(g, a) : npu_maximum(g, a, b);
    }
    for (int i = 0; i < 64; i++) {
        char name[8];
        snprintf(name, sizeof name, "y%d", i);
        npu_output(g, name, last[i]);
    }
    return g;
}

/* Seconds of planning on a device and the CPU, the better of two. */
static double time_plan(const npu_graph *g, const npu_rates *const *rates, uint32_t *num_groups)
{
    npu_backend device = *npu_ref_backend();
    const npu_backend *backends[2] = { &device, npu_ref_backend() };
    npu_plan_desc desc;
    npu_diag diag;
    double least = 1e9;
    memset(&desc, 0, sizeof desc);
    device.name = "device";
    device.traits = 0;
    device.supports = refuse_relu;
    desc.backends = backends;
    desc.num_backends = 2;
    desc.rates = rates;
    for (int k = 0; k < 2; k++) {
        npu_plan *plan = NULL;
        double begin = now();
        require(npu_plan_create(&plan, g, &desc, &diag), diag.message);
        least = fmin(least, now() - begin);
        *num_groups = 0;
        for (uint32_t i = 0; i < npu_plan_num_steps(plan); i++) {
            *num_groups += npu_plan_step(plan, i)->type == NPU_STEP_PARTITION;
        }
        npu_plan_destroy(plan);
    }
    return least;
}

static void bench_plan(void)
{
    static const npu_rates cheap = { .launch_ns = 100, .transfer_ns = 50, .up = 4e9, .down = 4e9, .num_rows = 1,
                                     .rows = { { NULL, 100, 0.01, 0.01 } } };
    static const npu_rates dear = { .launch_ns = 2000, .transfer_ns = 1000, .up = 1e9, .down = 1e9, .num_rows = 1,
                                    .rows = { { NULL, 100, 0.01, 0.01 } } };
    static const npu_rates cpu = { .num_rows = 1, .rows = { { NULL, 400, 0.1, 0.1 } } };
    static const struct { const char *what; const npu_rates *rates[2]; } rows[] = {
        { "without costs", { NULL, NULL } }, { "cheap launches", { &cheap, &cpu } }, { "dear launches", { &dear, &cpu } }
    };
    static const struct { const char *what; npu_graph *(*make)(uint32_t); } graphs[] = { { "chain", long_chain }, { "tangle", tangle } };
    printf("plan, a device and the CPU            100000 ops   1000000 ops   exponent     groups of both\n");
    for (size_t k = 0; k < sizeof graphs / sizeof graphs[0]; k++) {
        npu_graph *small = graphs[k].make(100000), *large = graphs[k].make(1000000);
        require(npu_graph_status(large), "graph");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const npu_rates *const *rates = rows[i].rates[0] ? rows[i].rates : NULL;
            uint32_t groups[2];
            double a = time_plan(small, rates, &groups[0]), b = time_plan(large, rates, &groups[1]);
            printf("  %-10s %-20s %10.1f ms %10.1f ms %10.2f %10u %10u\n", graphs[k].what, rows[i].what, a * 1e3, b * 1e3,
                   log10(b / a), (unsigned)groups[0], (unsigned)groups[1]);
        }
        npu_graph_destroy(small);
        npu_graph_destroy(large);
    }
}

/* ---- gemm -------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define PEAK_BODY(vector, set1, fmadd)                                                             \
    vector a[12], b = set1(0.999f), c = set1(1e-3f);                                               \
    for (int i = 0; i < 12; i++) {                                                                 \
        a[i] = set1((float)i * 0.1f);                                                              \
    }                                                                                              \
    for (long k = 0; k < rounds; k++) {                                                            \
        a[0] = fmadd(a[0], b, c); a[1] = fmadd(a[1], b, c); a[2] = fmadd(a[2], b, c);              \
        a[3] = fmadd(a[3], b, c); a[4] = fmadd(a[4], b, c); a[5] = fmadd(a[5], b, c);              \
        a[6] = fmadd(a[6], b, c); a[7] = fmadd(a[7], b, c); a[8] = fmadd(a[8], b, c);              \
        a[9] = fmadd(a[9], b, c); a[10] = fmadd(a[10], b, c); a[11] = fmadd(a[11], b, c);          \
        __asm__ volatile("" ::"v"(a[0]));                                                          \
    }                                                                                              \
    for (int i = 0; i < 12; i++) {                                                                 \
        __asm__ volatile("" ::"v"(a[i]));                                                          \
    }

__attribute__((target("avx512f"))) static void peak512(long rounds)
{
    PEAK_BODY(__m512, _mm512_set1_ps, _mm512_fmadd_ps)
}

__attribute__((target("avx2,fma"))) static void peak256(long rounds)
{
    PEAK_BODY(__m256, _mm256_set1_ps, _mm256_fmadd_ps)
}

/* GFLOP/s of independent multiply-adds, the better of the two widths; 0 = not measured on this machine. */
static double fma_peak(void)
{
    double best = 0;
    for (int k = 0; k < 9; k++) {
        double begin = now();
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
            peak256(2000000);
            best = fmax(best, 2e6 * 12 * 16 / (now() - begin) * 1e-9);
        }
        begin = now();
        if (__builtin_cpu_supports("avx512f")) {
            peak512(2000000);
            best = fmax(best, 2e6 * 12 * 32 / (now() - begin) * 1e-9);
        }
    }
    return best;
}
#else
static double fma_peak(void) { return 0; }
#endif

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                         int ldb, float beta, float *c, int ldc);
typedef struct blas_call { sgemm_fn sgemm; int m, k, n; float *a, *b, *c; } blas_call;

static void run_blas(void *ctx)
{
    blas_call *x = (blas_call *)ctx;
    x->sgemm(101, 111, 111, x->m, x->n, x->k, 1, x->a, x->k, x->b, x->n, 0, x->c, x->n);
}

/* The function of that name in a library; false = it has none. `function` points to a function pointer. */
static bool find_function(void *library, const char *name, void *function)
{
    void *symbol = library ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol); /* ISO C has no cast from data to function pointers */
    return symbol != NULL;
}

/* NULL where OpenBLAS is not installed. One thread. */
static sgemm_fn find_blas(void)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so", "libcblas.so.3" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        sgemm_fn sgemm;
        void (*set_threads)(int);
        if (find_function(library, "cblas_sgemm", &sgemm)) {
            if (find_function(library, "openblas_set_num_threads", &set_threads)) {
                set_threads(1);
            }
            return sgemm;
        }
    }
    return NULL;
}

/* Seconds of a product m x k x n; b: the second matrix as a constant, NULL = it is an input. */
static double time_gemm(int m, int k, int n, const float *b)
{
    npu_spec spec = npu_spec_tensor(NPU_F32, 2, (int64_t[]){ k, n });
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "a", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ m, k }));
    npu_output(g, "c", npu_mm(g, x, b ? npu_constant_ref(g, "b", spec, b) : npu_input(g, "b", spec)));
    npu_exec *exec = make_exec(g);
    double seconds = measure(run_exec, exec, 0.02);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return seconds;
}

static void bench_gemm(void)
{
    static const int sizes[] = { 32, 64, 128, 256, 512, 1024 };
    sgemm_fn sgemm = find_blas();
    double peak = fma_peak();
    printf("gemm f32, FMA peak of this core %.1f GFLOP/s%s\n", peak, sgemm ? "" : "; OpenBLAS is not installed");
    printf("       n     GFLOP/s   of peak%s\n", sgemm ? "    OpenBLAS" : "");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int n = sizes[i];
        double work = 2e-9 * n * n * n, rate = work / time_gemm(n, n, n, NULL), blas = 0;
        if (sgemm) {
            blas_call call = { sgemm, n, n, n, numbers((size_t)n * (size_t)n), numbers((size_t)n * (size_t)n), numbers((size_t)n * (size_t)n) };
            blas = work / measure(run_blas, &call, 0.02);
            free(call.a);
            free(call.b);
            free(call.c);
        }
        printf("  %6d  %10.1f  %7.1f%%", n, rate, peak > 0 ? rate / peak * 100 : 0.0);
        if (sgemm) {
            printf("  %10.1f", blas);
        }
        printf("\n");
        fflush(stdout);
    }
}

/* ---- weights of small integers ----------------------------------------------------------------------------- */

enum { LEAN_SIZE = 4096, LEAN_LAYERS = 6 }; /* together larger than the last cache in every form */
typedef enum lean_form { LEAN_F32, LEAN_INT8, LEAN_INT4_128, LEAN_INT4_32, LEAN_FORMS } lean_form;

static npu_value lean_constant(npu_graph *g, npu_dtype dtype, uint32_t rank, const int64_t *dims, double *bytes)
{
    npu_spec spec = npu_spec_tensor(dtype, rank, dims);
    size_t size = 0;
    npu_spec_size(&spec, &size);
    char *data = (char *)malloc(size);
    require(data ? NPU_OK : NPU_ERR_NO_MEMORY, "weights");
    memset(data, 17, size); /* the numbers do not matter; zeros might all be one page */
    *bytes += (double)size;
    return npu_constant_ref(g, NULL, spec, data);
}

/* Scales of symmetric groups: their zeros, which are all 0, are not read. */
static npu_value lean_scales(npu_graph *g, int64_t groups, double *bytes)
{
    double size = 0.0;
    npu_value v = lean_constant(g, NPU_F32, 3, (int64_t[]){ groups, LEAN_SIZE, 2 }, &size);
    float *scales = (float *)(uintptr_t)npu_value_data(g, v, NULL);
    for (int64_t i = 0; i < groups * LEAN_SIZE; i++) {
        scales[2 * i + 1] = 0.0f;
    }
    *bytes += size / 2;
    return v;
}

static npu_value lean_layer(npu_graph *g, npu_value x, lean_form form, double *bytes)
{
    const int64_t n = LEAN_SIZE, group = form == LEAN_INT4_32 ? 32 : 128;
    npu_arg args[4] = { npu_arg_tensor("self", x) };
    npu_value none = { 0 };
    switch (form) {
    case LEAN_F32: return npu_linear(g, x, lean_constant(g, NPU_F32, 2, (int64_t[]){ n, n }, bytes), none);
    case LEAN_INT8:
        args[1] = npu_arg_tensor("mat2", lean_constant(g, NPU_I8, 2, (int64_t[]){ n, n }, bytes));
        args[2] = npu_arg_tensor("scales", lean_constant(g, NPU_F32, 1, &n, bytes));
        return npu_op_result(g, npu_emit(g, NPU_ATEN_WEIGHT_INT8PACK_MM, args, 3), 0);
    default:
        args[1] = npu_arg_tensor("mat2", lean_constant(g, NPU_U8, 2, (int64_t[]){ n, n / 2 }, bytes));
        args[2] = npu_arg_int("qGroupSize", group);
        args[3] = npu_arg_tensor("qScaleAndZeros", lean_scales(g, n / group, bytes));
        return npu_op_result(g, npu_emit(g, NPU_ATEN_WEIGHT_INT4PACK_MM_FOR_CPU, args, 4), 0);
    }
}

/* A graph and its constants. */
static void lean_free(npu_graph *g)
{
    for (uint32_t v = 1; v <= npu_graph_num_values(g); v++) {
        if (npu_value_role(g, (npu_value){ v }) == NPU_ROLE_CONSTANT) {
            free((void *)(uintptr_t)npu_value_data(g, (npu_value){ v }, NULL));
        }
    }
    npu_graph_destroy(g);
}

/* Seconds of one linear; *rate = the bytes of its weight and scales per second, in GB. */
static double time_lean(lean_form form, int64_t rows, double *rate)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value y = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ rows, LEAN_SIZE }));
    double bytes = 0.0;
    for (int i = 0; i < LEAN_LAYERS; i++) {
        y = lean_layer(g, y, form, &bytes);
    }
    npu_output(g, "y", y);
    npu_exec *exec = make_exec(g);
    double seconds = measure(run_exec, exec, 0.1);
    *rate = bytes / seconds * 1e-9;
    npu_exec_destroy(exec);
    lean_free(g);
    return seconds / LEAN_LAYERS;
}

/* ---- a token of GPT-2 small, 256 before it ---- */

enum { GPT_WIDTH = 768, GPT_HEADS = 12, GPT_LAYERS = 12, GPT_TOKENS = 256, GPT_WORDS = 50257 };

static npu_value gpt_numbers(npu_graph *g, int64_t rows, int64_t cols)
{
    npu_spec spec = npu_spec_tensor(NPU_F32, cols ? 2 : 1, (int64_t[]){ rows, cols });
    return npu_constant_ref(g, NULL, spec, numbers((size_t)(rows * (cols ? cols : 1))));
}

static npu_value gpt_linear(npu_graph *g, npu_value x, int64_t from, int64_t to)
{
    return npu_linear(g, x, gpt_numbers(g, to, from), gpt_numbers(g, to, 0));
}

static npu_value gpt_norm(npu_graph *g, npu_value x)
{
    return npu_layer_norm(g, x, gpt_numbers(g, GPT_WIDTH, 0), gpt_numbers(g, GPT_WIDTH, 0), 1, 1e-5);
}

static npu_value gpt_attention(npu_graph *g, npu_value x)
{
    const int64_t head[4] = { 1, GPT_HEADS, 1, GPT_WIDTH / GPT_HEADS }, row[2] = { 1, GPT_WIDTH };
    npu_value qkv = gpt_linear(g, x, GPT_WIDTH, 3 * GPT_WIDTH), part[3];
    for (int i = 0; i < 3; i++) {
        npu_value now = npu_slice(g, qkv, 1, i * GPT_WIDTH, (i + 1) * GPT_WIDTH, 1);
        part[i] = npu_reshape(g, now, head, 4);
        if (i) {
            npu_spec past = npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, head[1], GPT_TOKENS, head[3] });
            part[i] = npu_cat(g, (npu_value[]){ npu_input(g, NULL, past), part[i] }, 2, 2);
            npu_output(g, NULL, part[i]);
        }
    }
    npu_value y = npu_scaled_dot_product_attention(g, part[0], part[1], part[2], (npu_value){ 0 }, NULL);
    return gpt_linear(g, npu_reshape(g, y, row, 2), GPT_WIDTH, GPT_WIDTH);
}

static npu_graph *gpt_graph(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, (int64_t[]){ 1, GPT_WIDTH })), none = { 0 };
    for (int i = 0; i < GPT_LAYERS; i++) {
        x = npu_add(g, x, gpt_attention(g, gpt_norm(g, x)));
        npu_value y = npu_gelu(g, gpt_linear(g, gpt_norm(g, x), GPT_WIDTH, 4 * GPT_WIDTH), NULL);
        x = npu_add(g, x, gpt_linear(g, y, 4 * GPT_WIDTH, GPT_WIDTH));
    }
    x = npu_linear(g, gpt_norm(g, x), gpt_numbers(g, GPT_WORDS, GPT_WIDTH), none);
    npu_value_set_name(g, x, "head");
    npu_output(g, "y", x);
    require(npu_graph_status(g), npu_graph_diag(g)->message);
    return g;
}

/* Weights of 4 bits in groups of 32, those of the head of 8. */
static npu_graph *gpt_small(const npu_graph *g)
{
    const npu_backend *cpu = npu_ref_backend();
    const npu_quantize_rule head = { .op = "head" };
    npu_quantize_desc desc = { .backends = &cpu, .num_backends = 1, .form = NPU_QUANTIZE_WEIGHTS4, .rules = &head,
                               .num_rules = 1 };
    npu_graph *most = NULL, *all = NULL;
    npu_diag diag = { 0 };
    require(npu_graph_quantize(&most, g, &desc, &diag), diag.message);
    desc.form = NPU_QUANTIZE_WEIGHTS8, desc.num_rules = 0;
    require(npu_graph_quantize(&all, most, &desc, &diag), diag.message);
    npu_graph_destroy(most);
    return all;
}

static void bench_gpt(void)
{
    npu_graph *graphs[2] = { gpt_graph(), NULL }, *fast[2] = { NULL, NULL };
    npu_exec *execs[2];
    double least[2] = { 1e9, 1e9 };
    graphs[1] = gpt_small(graphs[0]);
    for (int k = 0; k < 2; k++) {
        npu_diag diag = { 0 };
        require(npu_graph_optimize(&fast[k], graphs[k], NULL, NULL, &diag), diag.message);
        execs[k] = make_exec(fast[k]);
    }
    for (int i = 0; i < 20; i++) {
        double begin = now();
        run_exec(execs[i % 2]);
        least[i % 2] = fmin(least[i % 2], now() - begin);
    }
    printf("a token of GPT-2 small, %d before it   f32 %.2f ms; int4, groups of 32, and an int8 head %.2f ms: %.2f\n",
           GPT_TOKENS, least[0] * 1e3, least[1] * 1e3, least[0] / least[1]);
    for (int k = 0; k < 2; k++) {
        npu_exec_destroy(execs[k]);
        npu_graph_destroy(fast[k]);
    }
    npu_graph_destroy(graphs[1]);
    lean_free(graphs[0]);
}

/* ---- products of bytes -------------------------------------------------------------------------------------- */

/* Convolutions of [1, in, size, size]; size 0: `kernel` rows of `in` times a weight of `out` rows. */
typedef struct byte_row { const char *name; int64_t in, out, size, kernel, stride, groups; } byte_row;
static const byte_row byte_rows[] = {
    { "GEMM 256", 256, 256, 0, 256, 1, 1 },
    { "GEMM 512", 512, 512, 0, 512, 1, 1 },
    { "GEMM 1024", 1024, 1024, 0, 1024, 1, 1 },
    { "one row of 4096 times 4096", 4096, 4096, 0, 1, 1, 1 },
    { "ResNet-50 conv1 7x7/2", 3, 64, 224, 7, 2, 1 },
    { "ResNet-50 3x3, 64 at 56", 64, 64, 56, 3, 1, 1 },
    { "ResNet-50 1x1, 64 to 256 at 56", 64, 256, 56, 1, 1, 1 },
    { "ResNet-50 3x3/2, 128 at 56", 128, 128, 56, 3, 2, 1 },
    { "ResNet-50 3x3, 128 at 28", 128, 128, 28, 3, 1, 1 },
    { "ResNet-50 3x3, 256 at 14", 256, 256, 14, 3, 1, 1 },
    { "ResNet-50 1x1, 1024 to 256 at 14", 1024, 256, 14, 1, 1, 1 },
    { "ResNet-50 3x3, 512 at 7", 512, 512, 7, 3, 1, 1 },
    { "ResNet-50 1x1, 512 to 2048 at 7", 512, 2048, 7, 1, 1, 1 },
    { "MobileNetV2 3x3/2, 3 to 32 at 224", 3, 32, 224, 3, 2, 1 },
    { "MobileNetV2 depthwise 32 at 112", 32, 32, 112, 3, 1, 32 },
    { "MobileNetV2 depthwise/2 96 at 112", 96, 96, 112, 3, 2, 96 },
    { "MobileNetV2 depthwise 384 at 14", 384, 384, 14, 3, 1, 384 },
    { "MobileNetV2 depthwise 960 at 7", 960, 960, 7, 3, 1, 960 },
    { "MobileNetV2 1x1, 24 to 144 at 56", 24, 144, 56, 1, 1, 1 },
    { "MobileNetV2 1x1, 384 to 96 at 14", 384, 96, 14, 1, 1, 1 },
    { "MobileNetV2 1x1, 960 to 320 at 7", 960, 320, 7, 1, 1, 1 },
};

/* The row in i8 or f32, with weights that are constants. */
static npu_graph *byte_graph(const byte_row *r, bool is_int8)
{
    npu_graph *g = npu_graph_create(NULL);
    const npu_dtype dtype = is_int8 ? NPU_I8 : NPU_F32;
    const int64_t pad = r->kernel / 2, zero = 3;
    const double one = 1.0, half = 0.005;
    double unused = 0.0;
    npu_spec x = r->size ? npu_spec_tensor(dtype, 4, (int64_t[]){ 1, r->in, r->size, r->size })
                         : npu_spec_tensor(dtype, 2, (int64_t[]){ r->kernel, r->in });
    npu_arg args[20] = {
        npu_arg_tensor("input", npu_input(g, "x", x)),
        npu_arg_tensor("weight", lean_constant(g, dtype, r->size ? 4 : 2, (int64_t[]){ r->out, r->in / r->groups, r->kernel, r->kernel }, &unused)),
        npu_arg_tensor("bias", lean_constant(g, is_int8 ? NPU_I32 : NPU_F32, 1, &r->out, &unused)),
    };
    const npu_arg conv[] = {
        npu_arg_ints("stride", (int64_t[]){ r->stride, r->stride }, 2), npu_arg_ints("padding", (int64_t[]){ pad, pad }, 2),
        npu_arg_ints("dilation", (int64_t[]){ 1, 1 }, 2), npu_arg_bool("transposed", false),
        npu_arg_ints("output_padding", (int64_t[]){ 0, 0 }, 2), npu_arg_int("groups", r->groups),
    };
    const npu_arg quantised[] = {
        npu_arg_floats("w_scales", &half, 1), npu_arg_floats("in_scales", &one, 1), npu_arg_ints("in_zeros", &zero, 1),
        npu_arg_float("scale", 1.0), npu_arg_int("zero", 5),
    };
    const uint32_t num_conv = r->size ? sizeof conv / sizeof *conv : 0, num_quantised = is_int8 ? sizeof quantised / sizeof *quantised : 0;
    const npu_kind kinds[2][2] = { { NPU_ATEN_LINEAR, NPU_NPU_QLINEAR }, { NPU_ATEN_CONVOLUTION, NPU_NPU_QCONV } };
    memcpy(args + 3, conv, num_conv * sizeof *conv);
    memcpy(args + 3 + num_conv, quantised, num_quantised * sizeof *quantised);
    npu_op op = npu_emit(g, kinds[r->size > 0][is_int8], args, 3 + num_conv + num_quantised);
    npu_output(g, "y", npu_op_result(g, op, 0));
    require(npu_graph_status(g), npu_graph_diag(g)->message);
    return g;
}

static double time_byte_row(const byte_row *r, bool is_int8, const npu_backend *cpu)
{
    npu_graph *g = byte_graph(r, is_int8);
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    const npu_spec *x = npu_value_spec(g, npu_graph_input(g, 0));
    size_t size = 0;
    npu_spec_size(x, &size);
    void *data = take(size);
    require(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), diag.message);
    require(npu_exec_set_input_at(exec, 0, &(npu_array){ NULL, *x, data }), "input");
    double seconds = measure(run_exec, exec, 0.01);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    free(data);
    return seconds;
}

/* Each row in 8 bits beside f32, under every instruction set of this machine. */
static void bench_bytes(void)
{
    npu_backend *sets[8] = { NULL };
    uint32_t num = 0;
    printf("products of bytes   f32 ms, then of each set i8 ms and times as fast as f32 (%s)\n", npu_ref_isa(0));
    for (; num < 8 && npu_ref_isa(num); num++) {
        require(npu_ref_create(&sets[num], &(npu_ref_desc){ .isa = npu_ref_isa(num), .with_built_in = true }), "backend");
    }
    for (size_t i = 0; i < sizeof byte_rows / sizeof byte_rows[0]; i++) {
        double f32 = time_byte_row(&byte_rows[i], false, sets[0]);
        printf("  %-36s %8.3f", byte_rows[i].name, f32 * 1e3);
        for (uint32_t k = 0; k < num; k++) {
            double i8 = time_byte_row(&byte_rows[i], true, sets[k]);
            printf("  %s %8.3f %5.2f", npu_ref_isa(k), i8 * 1e3, f32 / i8);
            fflush(stdout);
        }
        printf("\n");
    }
    for (uint32_t k = 0; k < num; k++) {
        npu_ref_destroy(sets[k]);
    }
}

/* Each row of 3 x 3 at every pixel without Winograd's squares, with those of 2 x 2 results, and of 4 x 4. */
static void bench_squares(void)
{
    static const npu_ref_desc descs[3] = { { .without = "winograd" }, { .without = "winograd4" }, { .variant = "winograd4" } };
    npu_backend *cpus[3] = { NULL };
    printf("convolutions of 3 x 3, f32   without squares ms, then of 2 x 2 and 4 x 4 ms and times as fast (%s)\n", npu_ref_isa(0));
    for (int k = 0; k < 3; k++) {
        require(npu_ref_create(&cpus[k], &descs[k]), "backend");
    }
    for (size_t i = 0; i < sizeof byte_rows / sizeof byte_rows[0]; i++) {
        const byte_row *r = &byte_rows[i];
        double least[3] = { 1e9, 1e9, 1e9 };
        for (int k = 0; k < 9 && r->size && r->kernel == 3 && r->stride == 1 && r->groups == 1; k++) {
            least[k % 3] = fmin(least[k % 3], time_byte_row(r, false, cpus[k % 3]));
        }
        if (least[0] < 1e9) {
            printf("  %-36s %8.3f  %8.3f %5.2f  %8.3f %5.2f\n", r->name, least[0] * 1e3, least[1] * 1e3, least[0] / least[1],
                   least[2] * 1e3, least[0] / least[2]);
            fflush(stdout);
        }
    }
    for (int k = 0; k < 3; k++) {
        npu_ref_destroy(cpus[k]);
    }
}

static void bench_int8(void)
{
    static const char *const names[LEAN_FORMS] = { "f32", "int8", "int4, groups of 128", "int4, groups of 32" };
    static const int64_t rows[] = { 1, 2, 4, 8 };
    printf("linear %d x %d, weights beyond the last cache   ms, GB/s of weights, times as fast as f32\n", LEAN_SIZE, LEAN_SIZE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double f32 = 0.0;
        for (lean_form form = LEAN_F32; form < LEAN_FORMS; form = (lean_form)(form + 1)) {
            double rate, seconds = time_lean(form, rows[i], &rate);
            f32 = form == LEAN_F32 ? seconds : f32;
            printf("  %lld row%s  %-20s  %8.3f  %6.1f  %6.2f\n", (long long)rows[i], rows[i] == 1 ? " " : "s", names[form],
                   seconds * 1e3, rate, f32 / seconds);
            fflush(stdout);
        }
    }
    bench_gpt();
    bench_bytes();
}

/* ---- kernels ----------------------------------------------------------------------------------------------- */

/* A Python that has PyTorch, answering on pipes; `in` is NULL where there is none. */
typedef struct torch_pipe { FILE *in, *out; } torch_pipe;

static torch_pipe torch_start(void)
{
    static const char *const commands[] = { "python3", "/usr/bin/python3" };
    torch_pipe torch = { NULL, NULL };
    for (size_t i = 0; i < 2 && !torch.in; i++) {
        int to[2], from[2];
        char probe[80];
        snprintf(probe, sizeof probe, "%s -c 'import torch' 2> /dev/null", commands[i]);
        if (system(probe) != 0 || pipe(to) != 0 || pipe(from) != 0) {
            continue;
        }
        if (fork() == 0) {
            dup2(to[0], 0);
            dup2(from[1], 1);
            close(to[1]);
            close(from[0]);
            /* results come from memory that is already mapped, as ours do */
            setenv("MALLOC_MMAP_THRESHOLD_", "1073741824", 1);
            setenv("MALLOC_TRIM_THRESHOLD_", "4294967296", 1);
            execlp(commands[i], commands[i], "tests/bench_torch.py", (char *)NULL);
            _exit(1);
        }
        close(to[0]);
        close(from[1]);
        torch.in = fdopen(to[1], "w");
        torch.out = fdopen(from[0], "r");
    }
    return torch;
}

static int operand_index(char name)
{
    for (size_t i = 0; i < sizeof bench_operands / sizeof bench_operands[0]; i++) {
        if (bench_operands[i].name == name) {
            return (int)i;
        }
    }
    return -1;
}

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* The operands of a row: its words of one letter, each once. */
static size_t find_operands(const char *op, int *found)
{
    size_t n = 0;
    for (size_t i = 1; op[i]; i++) {
        int index = in_word(op[i - 1]) || in_word(op[i + 1]) ? -1 : operand_index(op[i]);
        for (size_t k = 0; k < n; k++) {
            index = found[k] == index ? -1 : index;
        }
        if (index >= 0) {
            found[n++] = index;
        }
    }
    return n;
}

static void fill(void *data, const npu_spec *spec, int values)
{
    size_t len = 0;
    npu_spec_len(spec, &len);
    for (size_t i = 0; i < len; i++) {
        uint32_t bits = (uint32_t)(i * 2654435761u) >> 8;
        float u = (float)(bits % 1021 + 1) / 1024.0f, x = values == POSITIVE ? 4 * u : u - 0.5f;
        int64_t whole = values == BELOW_1000 ? bits % 1000 : 1 + bits % 6;
        switch (spec->dtype) {
        case NPU_F32: ((float *)data)[i] = x; break;
        case NPU_F64: ((double *)data)[i] = (double)x; break;
        case NPU_C64: ((float *)data)[2 * i] = x, ((float *)data)[2 * i + 1] = 0.25f - x * x; break;
        case NPU_F16: ((uint16_t *)data)[i] = npu_f32_to_f16(x); break;
        case NPU_BF16: ((uint16_t *)data)[i] = npu_f32_to_bf16(x); break;
        case NPU_I64: ((int64_t *)data)[i] = whole; break;
        case NPU_I32: ((int32_t *)data)[i] = (int32_t)whole; break;
        case NPU_U8: ((uint8_t *)data)[i] = (uint8_t)whole; break;
        default: ((uint8_t *)data)[i] = bits & 1; break;
        }
    }
}

static void replace(npu_text *text, const char *from, const char *dtype)
{
    for (; *from; from++) {
        npu_text_printf(text, *from == '@' ? "%s" : "%.1s", *from == '@' ? dtype : from);
    }
}

/* What a row without results begins with. */
static const char *result_of(const char *op)
{
    return strchr(op, '=') && strchr(op, '=') < strchr(op, '(') ? "" : "y = ";
}

/* The row as a graph of one op; NULL = it says why. */
static npu_graph *parse_row(const char *op, const char *dtype, const int *operands, size_t num_operands)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    npu_text_printf(&text, "npu_ir 1\ngraph main\n");
    for (size_t k = 0; k < num_operands; k++) {
        npu_text_printf(&text, "input %c : ", bench_operands[operands[k]].name);
        replace(&text, bench_operands[operands[k]].type, dtype);
        npu_text_printf(&text, "\n");
    }
    npu_text_printf(&text, "%s", result_of(op));
    for (const char *c = op; *c; c++) {
        npu_text_printf(&text, "%.1s", *c == ';' ? "\n" : c); /* a space may begin a line */
    }
    npu_text_printf(&text, "\noutput y = y\n");
    if (npu_graph_parse(&g, text.data, text.len, NULL, &diag)) {
        fprintf(stderr, "%s\n%s\n", text.data, diag.message);
    }
    npu_text_free(&text);
    return g;
}

/* Seconds of the row on this backend. */
static double time_row(npu_graph *g, const int *operands)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_exec *exec = NULL;
    npu_diag diag;
    double seconds;
    memset(&diag, 0, sizeof diag);
    require(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), diag.message);
    void *data[8] = { NULL };
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        size_t size = 0;
        npu_spec_size(spec, &size);
        data[i] = take(size);
        fill(data[i], spec, bench_operands[operands[i]].values);
        require(npu_exec_set_input_at(exec, i, &(npu_array){ NULL, *spec, data[i] }), "input");
    }
    seconds = measure(run_exec, exec, 0.005);
    npu_exec_destroy(exec);
    for (size_t i = 0; i < 8; i++) {
        free(data[i]);
    }
    return seconds;
}

/* Asks PyTorch for the row: the answer is a line, seconds or why it has no such op. */
static void ask_torch(torch_pipe torch, const char *op, const char *dtype, const int *operands, size_t num_operands,
                      char answer[120])
{
    for (size_t k = 0; k < num_operands; k++) {
        const char *type = bench_operands[operands[k]].type, *dims = strchr(type, '[') + 1;
        int len = (int)(dims - 1 - type);
        fprintf(torch.in, "%c:%.*s:%.*s:%d ", bench_operands[operands[k]].name, *type == '@' ? (int)strlen(dtype) : len,
                *type == '@' ? dtype : type, (int)strlen(dims) - 1, dims, bench_operands[operands[k]].values);
    }
    fprintf(torch.in, "\t%s%s\n", result_of(op), op);
    fflush(torch.in);
    if (!fgets(answer, 120, torch.out)) {
        answer[0] = '\0';
    }
    answer[strcspn(answer, "\n")] = '\0';
}

static void bench_row(const bench_group *group, const char *op, const char *dtype, torch_pipe torch, int *counts)
{
    int operands[8];
    size_t num_operands = find_operands(op, operands);
    npu_graph *g = parse_row(op, dtype, operands, num_operands);
    char answer[120] = "";
    double ours, ratio;
    if (torch.in) {
        ask_torch(torch, op, dtype, operands, num_operands, answer);
    }
    if (!g) {
        return;
    }
    ours = time_row(g, operands);
    ratio = atof(answer) / ours;
    npu_graph_destroy(g);
    printf("  %-4s %-72s %9.4f", dtype, op, ours * 1e3);
    if (ratio > 0) {
        counts[0]++;
        counts[1] += ratio < group->target;
        printf(" %9.4f %6.2f%s\n", atof(answer) * 1e3, ratio, ratio < group->target ? "  < target" : "");
    } else {
        printf("  %s\n", answer);
    }
    fflush(stdout);
}

/* Kernels of a million elements beside PyTorch's, one thread each. `wanted` = parts of ops; none = all. */
static void bench_kernels(char **wanted, int num_wanted)
{
    torch_pipe torch = torch_start();
    int counts[2] = { 0, 0 };
    if (!torch.in) {
        printf("SKIP  no python3 here has PyTorch: its columns are missing\n");
    }
    for (size_t k = 0; k < sizeof bench_groups / sizeof bench_groups[0]; k++) {
        const bench_group *group = &bench_groups[k];
        printf("%-79s   ours ms  torch ms  ratio   target %.2f\n", group->name, group->target);
        for (size_t i = 0; i < group->num_ops; i++) {
            bool chosen = num_wanted == 0;
            char dtypes[64];
            for (int w = 0; w < num_wanted; w++) {
                chosen = chosen || strstr(group->ops[i], wanted[w]) || strstr(group->name, wanted[w]);
            }
            snprintf(dtypes, sizeof dtypes, "%s", group->dtypes);
            for (char *dtype = strtok(dtypes, " "); chosen && dtype; dtype = strtok(NULL, " ")) {
                bench_row(group, group->ops[i], dtype, torch, counts);
            }
        }
    }
    if (torch.in) {
        printf("%d of %d kernels are under their target\n", counts[1], counts[0]);
        fclose(torch.in);
        fclose(torch.out);
        wait(NULL);
    }
}

#include "bench_passes.h"
#include "bench_peers.h"

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        { "executor", bench_executor }, { "graphs", bench_graphs }, { "plan", bench_plan }, { "gemm", bench_gemm }, { "int8", bench_int8 }, { "squares", bench_squares }, { "passes", bench_passes }
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            fflush(stdout);
        }
    }
    if (argc < 2 || strcmp(argv[1], "kernels") == 0) {
        bench_kernels(argv + 2, argc < 2 ? 0 : argc - 2);
    }
    if (argc >= 2 && strcmp(argv[1], "peers") == 0) {
        bench_peers();
    }
    if (argc >= 2 && strcmp(argv[1], "models") == 0) {
        bench_models(argv + 2, argc - 2);
    }
    return 0;
}
