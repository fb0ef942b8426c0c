/* bench_peers.h - the library beside others that are installed, in one run, as tab-separated lines with ratios.

   `bench peers`: products, of narrow numbers too, and convolutions with weights that are constants, beside OpenBLAS,
   oneDNN, PyTorch.
   `bench models [FILE.onnx]...`: whole models, on one thread and on two, beside ONNX Runtime, whose library ORT_LIB
   names; without files some of torchvision's, which are exported first. What of a file is quantised (QDQ) runs in 8
   bits, as there. The least of interleaved repetitions. */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#define NPU_ONNX_IMPLEMENTATION
#include "../examples/onnx/npu_onnx.h"
#include "../examples/files/npu_map.h"

/* ---- limits of the machine ---- */

/* GB per second that one thread reads of memory that no cache holds. */
static double read_bandwidth(void)
{
    const size_t n = (size_t)1 << 25; /* 256 MiB */
    uint64_t *x = (uint64_t *)take(n * sizeof *x), sum = 0;
    double best = 0;
    for (int k = 0; k < 5; k++) {
        double begin = now();
        for (size_t i = 0; i < n; i++) {
            sum += x[i];
        }
        __asm__ volatile("" ::"r"(sum));
        best = fmax(best, (double)(n * sizeof *x) / (now() - begin) * 1e-9);
    }
    free(x);
    return best;
}

/* ---- products ---- */

typedef int (*dnnl_sgemm_fn)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                             int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef struct dnnl_call { dnnl_sgemm_fn sgemm; const blas_call *of; } dnnl_call;

static void run_dnnl(void *ctx)
{
    const dnnl_call *call = (const dnnl_call *)ctx;
    const blas_call *x = call->of;
    call->sgemm('N', 'N', x->m, x->n, x->k, 1, x->a, x->k, x->b, x->n, 0, x->c, x->n);
}

/* Leaves NULL where oneDNN is not installed, or has no function of that name. */
static void find_dnnl(const char *name, void *function)
{
    static const char *const names[] = { "libdnnl.so.3", "libdnnl.so.2", "libdnnl.so" };
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) {
        found = find_function(dlopen(names[i], RTLD_NOW), name, function);
    }
}

/* name, unit, limit, ours, the others', ratio to the best of them. */
static void print_peers(const char *name, const char *unit, double limit, double ours, const double *others, int num)
{
    double best = 0;
    printf("%s\t%s\t%.1f\t%.1f", name, unit, limit, ours);
    for (int i = 0; i < num; i++) {
        printf(others[i] > 0 ? "\t%.1f" : "\t-", others[i]);
        best = fmax(best, others[i]);
    }
    printf(best > 0 ? "\t%.2f\n" : "\t-\n", best > 0 ? ours / best : 0);
    fflush(stdout);
}

static void bench_products(double peak, sgemm_fn blas, dnnl_sgemm_fn dnnl)
{
    static const int rows[][3] = { /* m, k, n */
        { 32, 32, 32 }, { 64, 64, 64 }, { 128, 128, 128 }, { 256, 256, 256 }, { 512, 512, 512 }, { 1024, 1024, 1024 },
        { 2048, 2048, 2048 }, { 1, 1024, 1024 }, { 1, 4096, 4096 }, { 8, 1024, 1024 }, { 8, 4096, 4096 },
        { 128, 3072, 768 }, { 197, 768, 768 }
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        blas_call x = { blas, rows[i][0], rows[i][1], rows[i][2], NULL, NULL, NULL };
        double work = 2e-9 * x.m * x.k * x.n, others[2] = { 0, 0 };
        char name[40];
        x.a = numbers((size_t)x.m * (size_t)x.k);
        x.b = numbers((size_t)x.k * (size_t)x.n);
        x.c = numbers((size_t)x.m * (size_t)x.n);
        others[0] = blas ? work / measure(run_blas, &x, 0.02) : 0;
        others[1] = dnnl ? work / measure(run_dnnl, &(dnnl_call){ dnnl, &x }, 0.02) : 0;
        snprintf(name, sizeof name, "product %d x %d x %d", x.m, x.k, x.n);
        print_peers(name, "GFLOP/s", peak, work / time_gemm(x.m, x.k, x.n, x.b), others, 2);
        free(x.a), free(x.b), free(x.c);
    }
}

/* ---- products of bf16, f16 and bytes: bf16 to bf16 here, to f32 there; i8 to i32 in both ---- */

typedef int (*dnnl_bf16_fn)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const void *a,
                            int64_t lda, const void *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef int (*dnnl_i8_fn)(char trans_a, char trans_b, char offset, int64_t m, int64_t n, int64_t k, float alpha,
                          const int8_t *a, int64_t lda, int8_t zero_a, const int8_t *b, int64_t ldb, int8_t zero_b,
                          float beta, int32_t *c, int64_t ldc, const int32_t *offsets);
typedef struct narrow_call {
    dnnl_bf16_fn bf16;
    dnnl_i8_fn i8;
    npu_dtype dtype;
    int64_t m, k, n;
    void *a, *b, *c; /* each begins a line of the cache */
} narrow_call;

static void run_narrow_dnnl(void *ctx)
{
    const narrow_call *x = (const narrow_call *)ctx;
    const int32_t none = 0;
    if (x->dtype == NPU_BF16) {
        x->bf16('N', 'N', x->m, x->n, x->k, 1, x->a, x->k, x->b, x->n, 0, (float *)x->c, x->n);
    } else {
        x->i8('N', 'N', 'F', x->m, x->n, x->k, 1, (const int8_t *)x->a, x->k, 0, (const int8_t *)x->b, x->n, 0, 0,
              (int32_t *)x->c, x->n, &none);
    }
}

/* Seconds of the product, whose second matrix is a constant. */
static double time_narrow(const narrow_call *x)
{
    const bool is_i8 = x->dtype == NPU_I8;
    npu_graph *g = npu_graph_create(NULL);
    npu_spec a = npu_spec_tensor(x->dtype, 2, (int64_t[]){ x->m, x->k }), b = npu_spec_tensor(x->dtype, 2, (int64_t[]){ x->k, x->n });
    npu_arg args[] = { npu_arg_tensor("self", npu_input(g, "a", a)), npu_arg_tensor("mat2", npu_constant_ref(g, "b", b, x->b)) };
    npu_output(g, "c", npu_op_result(g, npu_emit(g, is_i8 ? NPU_ATEN_INT_MM : NPU_ATEN_MM, args, 2), 0));
    npu_exec *exec = make_exec(g);
    npu_array input = { "a", a, x->a };
    require(npu_exec_set_input(exec, &input), npu_exec_diag(exec)->message);
    double seconds = measure(run_exec, exec, 0.02);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    return seconds;
}

static void *take_lines(size_t size, int byte)
{
    void *p = NULL;
    require(posix_memalign(&p, 4096, size) == 0 ? NPU_OK : NPU_ERR_NO_MEMORY, "matrices");
    memset(p, byte, size);
    return p;
}

static void bench_narrow_products(double peak)
{
    static const int64_t rows[][3] = { /* m, k, n */
        { 64, 64, 64 }, { 128, 128, 128 }, { 256, 256, 256 }, { 512, 512, 512 }, { 1024, 1024, 1024 }, { 2048, 2048, 2048 },
        { 1, 4096, 4096 }, { 8, 4096, 4096 }, { 128, 768, 3072 }, { 197, 768, 768 }
    };
    static const struct { npu_dtype dtype; const char *name; } kinds[] = { { NPU_BF16, "bf16" }, { NPU_F16, "f16" }, { NPU_I8, "i8" } };
    dnnl_bf16_fn bf16 = NULL;
    dnnl_i8_fn i8 = NULL;
    find_dnnl("dnnl_gemm_bf16bf16f32", &bf16);
    find_dnnl("dnnl_gemm_s8s8s32", &i8);
    printf("work\tunit\tlimit in f32\tnpu_ir\toneDNN\tratio\n");
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        const int64_t *r = rows[i / 3];
        narrow_call x = { bf16, i8, kinds[i % 3].dtype, r[0], r[1], r[2], NULL, NULL, NULL };
        const bool has_peer = x.dtype == NPU_BF16 ? bf16 != NULL : x.dtype == NPU_I8 && i8;
        const size_t size = npu_dtype_bits(x.dtype) / 8;
        double work = 2e-9 * (double)(x.m * x.k * x.n), theirs;
        char name[60];
        x.a = take_lines((size_t)(x.m * x.k) * size, 1), x.b = take_lines((size_t)(x.k * x.n) * size, 2);
        x.c = take_lines((size_t)(x.m * x.n) * 4, 0);
        theirs = has_peer ? work / measure(run_narrow_dnnl, &x, 0.02) : 0;
        snprintf(name, sizeof name, "%s product %d x %d x %d", kinds[i % 3].name, (int)x.m, (int)x.k, (int)x.n);
        print_peers(name, "GFLOP/s", peak, work / time_narrow(&x), &theirs, 1);
        free(x.a), free(x.b), free(x.c);
    }
}

/* ---- convolutions ---- */

/* Asks PyTorch for the row of byte_rows in f32: seconds, or 0. */
static double torch_conv(torch_pipe torch, const byte_row *r)
{
    char answer[120] = "";
    long long pad = (long long)r->kernel / 2, stride = (long long)r->stride;
    fprintf(torch.in, "x:f32:1,%lld,%lld,%lld:0 w:f32:%lld,%lld,%lld,%lld:0 b:f32:%lld:0\t"
                      "y = aten.convolution.default(x, w, b, [%lld, %lld], [%lld, %lld], [1, 1], false, [0, 0], "
                      "%lld)\n",
            (long long)r->in, (long long)r->size, (long long)r->size, (long long)r->out, (long long)(r->in / r->groups),
            (long long)r->kernel, (long long)r->kernel, (long long)r->out, stride, stride, pad, pad,
            (long long)r->groups);
    fflush(torch.in);
    return fgets(answer, sizeof answer, torch.out) ? atof(answer) : 0;
}

static void bench_convolutions(double peak, torch_pipe torch)
{
    for (size_t i = 0; i < sizeof byte_rows / sizeof byte_rows[0]; i++) {
        const byte_row *r = &byte_rows[i];
        int64_t out = r->size ? (r->size - 1) / r->stride + 1 : 0;
        double work = 2e-9 * (double)(out * out * r->out * (r->in / r->groups) * r->kernel * r->kernel), theirs;
        if (!r->size) {
            continue;
        }
        theirs = torch.in ? torch_conv(torch, r) : 0;
        theirs = theirs > 0 ? work / theirs : 0;
        print_peers(r->name, "GFLOP/s", peak, work / time_byte_row(r, false, npu_ref_backend()), &theirs, 1);
    }
}

static void bench_peers(void)
{
    sgemm_fn blas = find_blas();
    dnnl_sgemm_fn dnnl = NULL;
    torch_pipe torch = torch_start();
    double peak = fma_peak();
    setenv("OMP_NUM_THREADS", "1", 1);
    find_dnnl("dnnl_sgemm", &dnnl);
    printf("%s%s%s", blas ? "" : "SKIP  OpenBLAS is not installed\n", dnnl ? "" : "SKIP  oneDNN is not installed\n",
           torch.in ? "" : "SKIP  no python3 here has PyTorch\n");
    printf("one thread, %s; multiply-adds %.1f GFLOP/s, reading %.1f GB/s\n", npu_ref_isa(0), peak, read_bandwidth());
    printf("work\tunit\tlimit\tnpu_ir\tOpenBLAS\toneDNN\tratio\n");
    bench_products(peak, blas, dnnl);
    bench_narrow_products(peak);
    printf("work\tunit\tlimit\tnpu_ir\tPyTorch\tratio\n");
    bench_convolutions(peak, torch);
    if (torch.in) {
        fclose(torch.in);
        fclose(torch.out);
        wait(NULL);
    }
}

/* ---- whole models beside ONNX Runtime ----   Its C interface is a table of functions, which only grows at its end. */

enum {
    ORT_API = 11, ORT_ERROR_MESSAGE = 2, ORT_CREATE_ENV = 3, ORT_CREATE_SESSION = 7, ORT_RUN = 9,
    ORT_CREATE_OPTIONS = 10, ORT_SET_INTRA_OP_THREADS = 24, ORT_OUTPUT_COUNT = 31, ORT_OUTPUT_NAME = 37,
    ORT_CREATE_TENSOR = 49, ORT_CREATE_CPU_MEMORY = 69, ORT_DEFAULT_ALLOCATOR = 78, ORT_RELEASE_SESSION = 95,
    ORT_RELEASE_VALUE = 96
};
enum { BENCH_MAX_PORTS = 64 };

typedef struct ort_base { void *const *(*api)(uint32_t version); const char *(*version)(void); } ort_base;
typedef void *ort_status; /* NULL = ok */
typedef struct ort_table {
    const char *(*error_message)(ort_status status);
    ort_status (*create_env)(int level, const char *id, void **env);
    ort_status (*create_session)(void *env, const char *path, void *options, void **session);
    ort_status (*run)(void *session, void *options, const char *const *in_names, void *const *in, size_t num_in,
                      const char *const *out_names, size_t num_out, void **out);
    ort_status (*create_options)(void **options);
    ort_status (*set_intra_op_threads)(void *options, int num);
    ort_status (*output_count)(void *session, size_t *num);
    ort_status (*output_name)(void *session, size_t i, void *allocator, char **name);
    ort_status (*create_tensor)(void *memory, void *data, size_t size, const int64_t *dims, size_t rank, int type,
                                void **value);
    ort_status (*create_cpu_memory)(int allocator, int type, void **memory);
    ort_status (*default_allocator)(void **allocator);
    void (*release_session)(void *session);
    void (*release_value)(void *value);
    void *env;
} ort_table;

/* A model with its inputs, as ONNX Runtime has it. */
typedef struct ort_model {
    const ort_table *ort;
    void *session, *in[BENCH_MAX_PORTS];
    const char *in_names[BENCH_MAX_PORTS], *out_names[BENCH_MAX_PORTS];
    size_t num_in, num_out;
} ort_model;

/* False = it said why. */
static bool ort_did(const ort_table *ort, ort_status status)
{
    if (status) {
        printf("ONNX Runtime: %s\n", ort->error_message(status));
    }
    return !status;
}

static bool ort_open(ort_table *ort)
{
    const char *path = getenv("ORT_LIB");
    void *library = dlopen(path ? path : "libonnxruntime.so", RTLD_NOW);
    const ort_base *(*base)(void);
    void *const *api;
    const struct { int index; void *function; } slots[] = {
        { ORT_ERROR_MESSAGE, &ort->error_message }, { ORT_CREATE_ENV, &ort->create_env },
        { ORT_CREATE_SESSION, &ort->create_session }, { ORT_RUN, &ort->run },
        { ORT_CREATE_OPTIONS, &ort->create_options },
        { ORT_SET_INTRA_OP_THREADS, &ort->set_intra_op_threads }, { ORT_OUTPUT_COUNT, &ort->output_count },
        { ORT_OUTPUT_NAME, &ort->output_name }, { ORT_CREATE_TENSOR, &ort->create_tensor },
        { ORT_CREATE_CPU_MEMORY, &ort->create_cpu_memory }, { ORT_DEFAULT_ALLOCATOR, &ort->default_allocator },
        { ORT_RELEASE_SESSION, &ort->release_session }, { ORT_RELEASE_VALUE, &ort->release_value }
    };
    memset(ort, 0, sizeof *ort);
    api = find_function(library, "OrtGetApiBase", &base) ? base()->api(ORT_API) : NULL;
    for (size_t i = 0; api && i < sizeof slots / sizeof slots[0]; i++) {
        memcpy(slots[i].function, &api[slots[i].index], sizeof api[0]);
    }
    return api && ort_did(ort, ort->create_env(3, "bench", &ort->env));
}

static int ort_type(npu_dtype t)
{
    static const struct { npu_dtype dtype; int type; } rows[] = {
        { NPU_F32, 1 }, { NPU_U8, 2 }, { NPU_I8, 3 }, { NPU_I32, 6 }, { NPU_I64, 7 }, { NPU_BOOL, 9 },
        { NPU_F16, 10 }, { NPU_F64, 11 }
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].dtype == t) {
            return rows[i].type;
        }
    }
    return 0;
}

/* The session of a file with the inputs that the graph has. */
static bool ort_load(ort_model *m, const ort_table *ort, const char *path, const npu_graph *g, void *const *data,
                     int threads)
{
    void *options, *memory, *allocator;
    memset(m, 0, sizeof *m);
    m->ort = ort;
    bool ok = ort_did(ort, ort->create_options(&options)) &&
              ort_did(ort, ort->set_intra_op_threads(options, threads)) &&
              ort_did(ort, ort->create_session(ort->env, path, options, &m->session)) &&
              ort_did(ort, ort->create_cpu_memory(0, 0, &memory)) && ort_did(ort, ort->default_allocator(&allocator)) &&
              ort_did(ort, ort->output_count(m->session, &m->num_out));
    for (uint32_t i = 0; ok && i < npu_graph_num_inputs(g); i++) {
        npu_value v = npu_graph_input(g, i);
        const npu_spec *spec = npu_value_spec(g, v);
        size_t size = 0;
        npu_spec_size(spec, &size);
        m->in_names[m->num_in] = npu_value_name(g, v);
        ok = ort_did(ort, ort->create_tensor(memory, data[i], size, spec->dims, spec->rank,
                                             ort_type((npu_dtype)spec->dtype), &m->in[m->num_in++]));
    }
    for (size_t i = 0; ok && i < m->num_out && i < BENCH_MAX_PORTS; i++) {
        char *name = NULL;
        ok = ort_did(ort, ort->output_name(m->session, i, allocator, &name));
        m->out_names[i] = name;
    }
    return ok && m->num_out <= BENCH_MAX_PORTS;
}

static void ort_run_model(void *ctx)
{
    ort_model *m = (ort_model *)ctx;
    void *out[BENCH_MAX_PORTS] = { NULL };
    if (!ort_did(m->ort, m->ort->run(m->session, NULL, m->in_names, m->in, m->num_in, m->out_names, m->num_out, out))) {
        exit(1);
    }
    for (size_t i = 0; i < m->num_out; i++) {
        m->ort->release_value(out[i]);
    }
}

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_calls(void (*call)(void *ctx), void *ctx, int num)
{
    double begin = wall();
    for (int i = 0; i < num; i++) {
        call(ctx);
    }
    return (wall() - begin) / num;
}

/* Least seconds of a call of each, in turn; call[1] may be NULL. The threads of one that still look for work would take cores
   from the other: each begins when they sleep. */
static void race(void (*const call[2])(void *ctx), void *const ctx[2], double least[2])
{
    int num[2] = { 1, 1 };
    for (int k = 0; k < 2 && call[k]; k++) {
        least[k] = time_calls(call[k], ctx[k], 2);
        num[k] = (int)fmin(1000, fmax(1, 0.05 / least[k]));
    }
    for (int i = 0; i < 15; i++) {
        for (int k = 0; k < 2 && call[k]; k++) {
            nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
            least[k] = fmin(least[k], time_calls(call[k], ctx[k], num[k]));
        }
    }
}

/* The model on so many threads. */
static npu_exec *model_exec(const npu_graph *g, npu_parallel *threads, npu_program **program)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc desc = { .backends = &cpu, .num_backends = 1, .num_workers = threads ? threads->width : 1 };
    npu_exec_desc exec_desc = { .parallel = threads };
    npu_plan *plan = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    require(npu_plan_create(&plan, g, &desc, &diag), diag.message);
    require(npu_program_create(program, plan, &diag), diag.message);
    require(npu_exec_create(&exec, *program, &exec_desc, &diag), diag.message);
    npu_plan_destroy(plan);
    return exec;
}

static void bench_model_threads(const char *path, const npu_graph *g, void *const *data, const ort_table *ort,
                                uint32_t num_threads)
{
    npu_parallel *threads = NULL;
    npu_program *program = NULL;
    ort_model theirs;
    double least[2] = { 0, 0 };
    if (num_threads > 1) {
        require(npu_threads_create(&threads, &(npu_threads_desc){ .width = num_threads }), "threads");
    }
    npu_exec *exec = model_exec(g, threads, &program);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        require(npu_exec_set_input_at(exec, i, &(npu_array){ NULL, *spec, data[i] }), "input");
    }
    bool has_theirs = ort && ort_load(&theirs, ort, path, g, data, (int)num_threads);
    race((void (*const[2])(void *)){ run_exec, has_theirs ? ort_run_model : NULL }, (void *const[2]){ exec, &theirs },
         least);
    printf("%s\t%u\t%.3f", path, (unsigned)num_threads, least[0] * 1e3);
    printf(has_theirs ? "\t%.3f\t%.2f\n" : "\t-\t-\n", least[1] * 1e3, least[0] > 0 ? least[1] / least[0] : 0);
    fflush(stdout);
    if (has_theirs) {
        ort->release_session(theirs.session);
    }
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_threads_destroy(threads);
}

static void bench_model(const char *path, const ort_table *ort)
{
    npu_onnx_desc desc = { .backend = npu_ref_backend() };
    const npu_backend *cpu = desc.backend;
    const npu_optimize_desc integer = { .backends = &cpu, .num_backends = 1, .passes = 1u << NPU_PASS_INTEGER };
    const npu_optimize_desc all = { .backends = &cpu, .num_backends = 1 }; /* what is constant is computed by it */
    npu_graph *read = NULL, *quantised = NULL, *g = NULL;
    npu_diag diag = { 0 };
    npu_map file;
    void *data[BENCH_MAX_PORTS] = { NULL };
    if (npu_map_open(&file, path)) {
        printf("%s: cannot be read\n", path);
        return;
    }
    npu_status status = npu_onnx_read(&read, file.bytes.data, file.bytes.size, &desc, &diag);
    status = status ? status : npu_graph_optimize(&quantised, read, &integer, NULL, &diag);
    status = status ? status : npu_graph_optimize(&g, quantised, &all, NULL, &diag);
    bool fits = !status && npu_graph_num_inputs(g) <= BENCH_MAX_PORTS;
    for (uint32_t i = 0; fits && i < npu_graph_num_inputs(g); i++) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_input(g, i));
        size_t size = 0;
        fits = npu_spec_size(spec, &size) == NPU_OK;
        data[i] = take(fits ? size : 1);
        fill(data[i], spec, ANY);
    }
    for (uint32_t threads = 1; fits && threads <= 2; threads++) {
        bench_model_threads(path, g, data, ort, threads);
    }
    if (!fits) {
        printf("%s: %s\n", path, status ? diag.message : "its dims must be known");
    }
    for (size_t i = 0; i < BENCH_MAX_PORTS; i++) {
        free(data[i]);
    }
    npu_graph_destroy(g);
    npu_graph_destroy(quantised);
    npu_graph_destroy(read);
    npu_map_close(&file);
}

static const char *const exported_models[] = { "resnet18", "resnet50", "mobilenet_v2" };

/* Exports a model of torchvision as a file; false = that cannot be done here. */
static bool export_model(const char *name, char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");
    char command[600];
    snprintf(path, size, "%s/npu_bench_%s.onnx", folder ? folder : "/tmp", name);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "%s -c 'import torch, torchvision; torch.manual_seed(1); "
                 "torch.onnx.export(torchvision.models.%s().eval(), torch.zeros(1, 3, 224, 224), \"%s\")' "
                 "> /dev/null 2>&1",
                 i ? "/usr/bin/python3" : "python3", name, path);
        if (system(command) == 0) {
            return true;
        }
    }
    return false;
}

static void bench_models(char **files, int num)
{
    ort_table ort;
    bool has_ort = ort_open(&ort);
    char path[300];
    printf("%s", has_ort ? "" : "SKIP  ONNX Runtime: ORT_LIB names no libonnxruntime.so (onnxruntime-node has one)\n");
    printf("model\tthreads\tnpu_ir ms\tONNX Runtime ms\tratio\n");
    for (int i = 0; i < num; i++) {
        bench_model(files[i], has_ort ? &ort : NULL);
    }
    for (size_t i = 0; num == 0 && i < sizeof exported_models / sizeof exported_models[0]; i++) {
        if (!export_model(exported_models[i], path, sizeof path)) {
            printf("SKIP  %s: python3 with torch and torchvision exports it\n", exported_models[i]);
            continue;
        }
        bench_model(path, has_ort ? &ort : NULL);
        remove(path);
    }
}

#endif
