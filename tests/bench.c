/* bench.c - what the library costs: bench [PART]...   parts: executor graphs gemm kernels; default all.

   One thread, median of 9 repetitions of at least 20 ms each (graphs: of 3, 1 for a million ops). Compare numbers of one run
   only: machines differ, and so do hours of one machine. */
#define _GNU_SOURCE /* dlopen, clock_gettime */
#include "../npu_ir.h"
#include "../npu_ir_backend_ref.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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

/* Seconds of one call: calls are counted so that a repetition takes 20 ms. */
static double measure(void (*call)(void *ctx), void *ctx)
{
    double times[9];
    long calls = 1;
    call(ctx);
    for (;;) {
        double begin = now();
        for (long i = 0; i < calls; i++) {
            call(ctx);
        }
        if (now() - begin > 0.02 || calls > 100000000) {
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

static void *take(size_t size)
{
    void *p = calloc(1, size);
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
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
        size_t len = 0;
        npu_spec_len(npu_value_spec(g, npu_graph_input(g, i)), &len);
        require(npu_exec_set_input_at(exec, i, numbers(len), len * sizeof(float)), "input");
    }
    return exec;
}

static void run_exec(void *ctx)
{
    require(npu_exec_run((npu_exec *)ctx), npu_exec_diag((npu_exec *)ctx)->message);
}

/* ---- executor ---------------------------------------------------------------------------------------------- */

static npu_graph *chain(uint32_t num_ops)
{
    const int64_t one = 1;
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 1, &one)), y = x;
    for (uint32_t i = 0; i < num_ops; i++) {
        y = npu_add(g, y, x);
    }
    npu_output(g, "y", y);
    return g;
}

static void bench_executor(void)
{
    npu_graph *g = chain(1000);
    npu_exec *exec = make_exec(g);
    printf("executor, chain of 1000 adds of one element          %10.1f ns/op\n", measure(run_exec, exec) / 1000 * 1e9);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
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
typedef struct blas_call { sgemm_fn sgemm; int n; float *a, *b, *c; } blas_call;

static void run_blas(void *ctx)
{
    blas_call *x = (blas_call *)ctx;
    x->sgemm(101, 111, 111, x->n, x->n, x->n, 1, x->a, x->n, x->b, x->n, 0, x->c, x->n);
}

/* NULL where OpenBLAS is not installed. One thread. */
static sgemm_fn find_blas(void)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so", "libcblas.so.3" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        void *symbol = library ? dlsym(library, "cblas_sgemm") : NULL, *threads = library ? dlsym(library, "openblas_set_num_threads") : NULL;
        sgemm_fn sgemm;
        void (*set_threads)(int);
        if (symbol) {
            memcpy(&sgemm, &symbol, sizeof sgemm); /* ISO C has no cast from data to function pointers */
            if (threads) {
                memcpy(&set_threads, &threads, sizeof set_threads);
                set_threads(1);
            }
            return sgemm;
        }
    }
    return NULL;
}

static double time_gemm(int n)
{
    const int64_t dims[2] = { n, n };
    npu_graph *g = npu_graph_create(NULL);
    npu_value a = npu_input(g, "a", npu_spec_tensor(NPU_F32, 2, dims)), b = npu_input(g, "b", npu_spec_tensor(NPU_F32, 2, dims));
    npu_output(g, "c", npu_mm(g, a, b));
    npu_exec *exec = make_exec(g);
    double seconds = measure(run_exec, exec);
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
        double work = 2e-9 * n * n * n, rate = work / time_gemm(n), blas = 0;
        if (sgemm) {
            blas_call call = { sgemm, n, numbers((size_t)n * (size_t)n), numbers((size_t)n * (size_t)n), numbers((size_t)n * (size_t)n) };
            blas = work / measure(run_blas, &call);
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

/* ---- kernels ----------------------------------------------------------------------------------------------- */

#define ROWS 1024
#define COLUMNS 1024

static npu_value emit_add(npu_graph *g, npu_value x)
{
    const int64_t dims[2] = { ROWS, COLUMNS };
    return npu_add(g, x, npu_input(g, "other", npu_spec_tensor(NPU_F32, 2, dims)));
}

static npu_value emit_gelu(npu_graph *g, npu_value x) { return npu_gelu(g, x, NULL); }
static npu_value emit_softmax(npu_graph *g, npu_value x) { return npu_softmax(g, x, -1); }
static npu_value emit_relu(npu_graph *g, npu_value x) { return npu_relu(g, x); }
static npu_value emit_transpose(npu_graph *g, npu_value x) { return npu_transpose(g, x, 0, 1); }
static npu_value emit_sum(npu_graph *g, npu_value x)
{
    const int64_t dim = 1;
    return npu_sum(g, x, &dim, 1, false);
}

static npu_value emit_layer_norm(npu_graph *g, npu_value x)
{
    const npu_value none = { 0 };
    return npu_layer_norm(g, x, none, none, 1, 1e-5);
}

/* Bytes are those of inputs and outputs, each counted once. */
static void bench_kernel(const char *name, npu_value (*emit)(npu_graph *, npu_value))
{
    const int64_t dims[2] = { ROWS, COLUMNS };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims)), y = emit(g, x);
    size_t bytes = 0, size = 0;
    npu_output(g, "y", y);
    npu_exec *exec = make_exec(g);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, i)), &size);
        bytes += size;
    }
    npu_spec_size(npu_value_spec(g, y), &size);
    double seconds = measure(run_exec, exec);
    printf("  %-12s %10.3f ms %10.2f GB/s\n", name, seconds * 1e3, (double)(bytes + size) / seconds * 1e-9);
    fflush(stdout);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void bench_kernels(void)
{
    printf("kernels, f32[%d,%d]\n", ROWS, COLUMNS);
    bench_kernel("add", emit_add);
    bench_kernel("relu", emit_relu);
    bench_kernel("gelu", emit_gelu);
    bench_kernel("softmax", emit_softmax);
    bench_kernel("layer_norm", emit_layer_norm);
    bench_kernel("sum", emit_sum);
    bench_kernel("transpose", emit_transpose);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } parts[] = {
        { "executor", bench_executor }, { "graphs", bench_graphs }, { "gemm", bench_gemm }, { "kernels", bench_kernels }
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) {
            wanted = wanted || strcmp(argv[k], parts[i].name) == 0;
        }
        if (wanted) {
            parts[i].run();
            fflush(stdout);
        }
    }
    return 0;
}
