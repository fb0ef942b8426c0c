/* npu_accel, the small door: a device of five functions. Its memory is the heap, its handles are numbers, so
   that nothing can take them for addresses. */
#include "../npu_ir_backend_ref.h"
#include "buffers.h"
#ifdef __unix__
#include <sys/select.h>
#endif

/* ---- a device ------------------------------------------------------------------------------------------ */

enum { BLOCKS = 16 };
typedef struct device {
    void *blocks[BLOCKS]; /* handle n is blocks[n - 1] */
    int live, allocs, uploads, downloads, calls, finishes;
    int fail_alloc, fail_upload, fail_download, fail_call; /* at that call, 0 = never */
    uint32_t kind, schema, blob_size, num_in, num_out;     /* of the last op_call */
    uint64_t stream;
    uint8_t blob[64];
    int wait_us; /* that each op takes, at work elsewhere */
} device;

static void *device_alloc(void *ctx, uint64_t bytes)
{
    device *d = ctx;
    for (uintptr_t i = 0; i < BLOCKS && ++d->allocs != d->fail_alloc; i++) {
        if (!d->blocks[i]) {
            d->blocks[i] = malloc((size_t)bytes);
            d->live++;
            return (void *)(i + 1);
        }
        d->allocs--;
    }
    return NULL;
}

static char *device_at(device *d, const void *handle, uint64_t offset)
{
    return (char *)d->blocks[(uintptr_t)handle - 1] + offset;
}

static void device_free(void *ctx, void *handle)
{
    device *d = ctx;
    free(device_at(d, handle, 0));
    d->blocks[(uintptr_t)handle - 1] = NULL;
    d->live--;
}

static npu_status device_upload(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes)
{
    device *d = ctx;
    memcpy(device_at(d, to, offset), from, (size_t)bytes);
    return ++d->uploads == d->fail_upload ? NPU_ERR_IO : NPU_OK;
}

static npu_status device_download(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes)
{
    device *d = ctx;
    memcpy(to, device_at(d, from, offset), (size_t)bytes);
    return ++d->downloads == d->fail_download ? NPU_ERR_IO : NPU_OK;
}

static int64_t elements(const npu_tensor *t)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= t->dims[i];
    }
    return n;
}

static void gemm(const float *a, const float *b, float *y, const npu_tensor *in, const npu_tensor *out,
                 bool flip_b)
{
    int64_t k = in->dims[1], n = out->dims[1];
    for (int64_t i = 0; i < out->dims[0] * n; i++) {
        y[i] = 0;
        for (int64_t l = 0; l < k; l++) {
            y[i] += a[i / n * k + l] * (flip_b ? b[i % n * k + l] : b[l * n + i % n]);
        }
    }
}

static void device_wait(const device *d)
{
#ifdef __unix__
    struct timeval t = { 0, d->wait_us };
    if (d->wait_us) {
        select(0, NULL, NULL, NULL, &t);
    }
#else
    (void)d;
#endif
}

/* Knows two ops in ATen's form and three in the device's. */
static npu_status device_call(void *ctx, const npu_call *call)
{
    device *d = ctx;
    const npu_op_info *op = call->op;
    const npu_tensor *const *in = call->in, *out = call->out[0];
    d->kind = op->device_kind;
    d->schema = op->device_schema;
    d->blob_size = op->device_size;
    d->num_in = op->num_in;
    d->num_out = op->num_out;
    d->stream = call->stream;
    memcpy(d->blob, op->device_attrs, op->device_size < sizeof d->blob ? op->device_size : sizeof d->blob);
    if (++d->calls == d->fail_call) {
        return NPU_ERR_TIMEOUT;
    }
    const float *a = (const void *)device_at(d, in[0]->buffer->handle, in[0]->offset);
    const float *b = op->num_in > 1 ? (const void *)device_at(d, in[1]->buffer->handle, in[1]->offset) : a;
    float *y = (void *)device_at(d, out->buffer->handle, out->offset);
    int64_t n = elements(out);
    device_wait(d);
    switch (op->device_kind) {
    case 1: case NPU_ATEN_RELU:
        for (int64_t i = 0; i < n; i++) {
            y[i] = a[i] > 0 ? a[i] : 0;
        }
        return NPU_OK;
    case 2: gemm(a, b, y, in[0], out, npu_op_int(op, "transB", 0) != 0); return NPU_OK;
    case 3: case NPU_ATEN_ADD:
        for (int64_t i = 0; i < n; i++) {
            y[i] = a[i] + b[i % elements(in[1])];
        }
        return NPU_OK;
    default: return NPU_ERR_NOT_IMPLEMENTED;
    }
}

static npu_status device_finish(void *ctx, uint64_t stream)
{
    device *d = ctx;
    d->finishes++;
    return stream == d->stream ? NPU_OK : NPU_ERR_STATE;
}

static const npu_abi_row device_rows[] = {
    { NPU_AICF_RELU, 1, 0, "" },
    { NPU_AICF_GEMM, 2, 0, "<ii" },
    { NPU_AICF_BIAS_ADD, 3, NPU_FOURCC('B', 'A', 'D', 'D'), "<q" },
};
static const npu_abi device_abi = NPU_ABI(device_rows);
static const char *const device_ops[] = { "aten.relu.default", "aten.add.Tensor" };

static npu_accel device_desc(device *d)
{
    npu_accel a;
    memset(&a, 0, sizeof a);
    memset(d, 0, sizeof *d);
    a.size = sizeof a;
    a.name = "tiny";
    a.ctx = d;
    a.abi = &device_abi;
    a.ops = device_ops;
    a.num_ops = 2;
    a.alloc = device_alloc;
    a.free = device_free;
    a.upload = device_upload;
    a.download = device_download;
    a.op_call = device_call;
    return a;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }

static const float weight[12] = { 1, -2, 3, 0.5f, 4, -1, 2, 2, -3, 1, 0, 5 };
static const float bias[4] = { 0.5f, -1, 2, 0 };
static const float input[6] = { 1, 2, 3, -1, 0.5f, -4 };

/* x [2,3] -> gemm -> bias_add -> flatten -> relu -> y [8]: all on the device. */
static npu_graph *layer(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(2, 3)));
    npu_value w = npu_constant(g, "w", npu_spec_tensor(NPU_F32, 2, DIMS(4, 3)), weight);
    npu_value b = npu_constant(g, "b", npu_spec_tensor(NPU_F32, 1, DIMS(4)), bias);
    npu_value y = npu_aicf_bias_add(g, npu_aicf_gemm(g, x, w, &(npu_aicf_gemm_attrs){ false, true }), b);
    npu_output(g, "y", npu_relu(g, npu_flatten(g, y, 0, 1)));
    return g;
}

static const float expected[8] = { 6.5f, 4.5f, 0, 16, 0, 4.5f, 13, 0 };

static npu_status run(npu_exec *exec, float *y, size_t size)
{
    memset(y, 0, size);
    npu_test_input(exec, "x", input, sizeof input);
    npu_exec_set_output(exec, "y", y, size);
    return npu_exec_run(exec);
}

static void check_output(const float *y)
{
    for (int i = 0; i < 8; i++) {
        NPU_CHECK_NEAR(y[i], expected[i], 1e-6);
    }
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void test_expected(void)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *g = layer();
    npu_exec *exec = NULL;
    float y[8];
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
    check_output(y);
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

static void test_create(void)
{
    device d;
    npu_accel good = device_desc(&d), a;
    npu_backend *b = NULL;
    NPU_CHECK_STATUS(npu_accel_create(&b, &good, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_backend_check(b, NULL), NPU_OK);
    NPU_CHECK_STR(b->name, "tiny");
    NPU_CHECK_EQ(b->regions[0].alignment, 64);
    npu_accel_destroy(b);
    npu_accel_destroy(NULL);
    NPU_CHECK_STATUS(npu_accel_create(NULL, &good, NULL), NPU_ERR_INVALID_ARGUMENT);
    NPU_CHECK_STATUS(npu_accel_create(&b, NULL, NULL), NPU_ERR_INVALID_ARGUMENT);
#define WITH(member, value) do { \
        a = good; \
        a.member = value; \
        NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_ERR_INVALID_ARGUMENT); \
        NPU_CHECK(b == NULL); \
    } while (0)
    WITH(name, NULL);
    WITH(alloc, NULL);
    WITH(free, NULL);
    WITH(upload, NULL);
    WITH(download, NULL);
    WITH(op_call, NULL);
    WITH(ops, NULL);
    WITH(alignment, 48);
#undef WITH
    a = good;
    a.abi = NULL;
    a.num_ops = 0; /* nothing to take, and nobody to ask */
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_ERR_INVALID_ARGUMENT);
}

static void test_memory_of_the_door(void)
{
    device d;
    npu_accel a = device_desc(&d);
    for (uint64_t n = 1;; n++) {
        npu_alloc_counter counter;
        memset(&counter, 0, sizeof counter);
        counter.fail_at = n;
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_backend *b = NULL;
        npu_exec *exec = NULL;
        npu_graph *g = layer();
        npu_status status = npu_accel_create(&b, &a, &allocator);
        if (status == NPU_OK) {
            status = npu_exec_create_simple(&exec, g, (const npu_backend *const *)&b, 1, NULL);
            npu_exec_destroy(exec);
        }
        NPU_CHECK(status == NPU_OK || status == NPU_ERR_NO_MEMORY);
        npu_accel_destroy(b);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
        NPU_CHECK_EQ(d.live, 0);
        if (status == NPU_OK) {
            NPU_CHECK(n > 3);
            return;
        }
    }
}

static void test_run(void)
{
    device d;
    npu_accel a = device_desc(&d);
    NPU_ITEM("F26");
    a.finish = device_finish;
    a.stream = 77;
    npu_backend *b = NULL;
    npu_exec *exec = NULL;
    npu_graph *g = layer();
    float y[8];
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, (const npu_backend *const *)&b, 1, NULL), NPU_OK);
    NPU_CHECK_EQ(d.uploads, 2); /* the weights, once */
    for (int i = 0; i < 3; i++) {
        NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
        check_output(y);
    }
    NPU_CHECK_EQ(d.calls, 3 * 3); /* the view is no call */
    NPU_CHECK_EQ(d.uploads, 2 + 3);
    NPU_CHECK_EQ(d.downloads, 3);
    NPU_CHECK_EQ(d.finishes, 3);
    NPU_CHECK_EQ(d.kind, NPU_ATEN_RELU); /* the last op has no form of the device */
    NPU_CHECK_EQ(d.schema, 0);
    NPU_CHECK_EQ(b->stream(b->ctx), 77);
    NPU_CHECK_EQ(d.stream, 77);
    npu_exec_destroy(exec);
    NPU_CHECK_EQ(d.live, 0);
    npu_accel_destroy(b);
    npu_graph_destroy(g);
}

/* Standalone calls: what reaches the device is exactly its own form, or the packed blob. */
static void test_forms(void)
{
    device d;
    npu_accel a = device_desc(&d);
    npu_backend *b = NULL;
    npu_buffer buffers[4];
    npu_tensor in[3], out;
    static const uint8_t packed_alpha[9] = { 1, 1 }, axis[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    npu_tensor_set_host(&in[0], &buffers[0], NPU_F32, 2, DIMS(2, 3), NULL);
    npu_tensor_set_host(&in[1], &buffers[1], NPU_F32, 1, DIMS(3), NULL);
    npu_tensor_set_host(&out, &buffers[2], NPU_F32, 2, DIMS(2, 3), NULL);
    for (int i = 0; i < 3; i++) {
        NPU_CHECK_STATUS(buffer_alloc(b, 0, 24, &buffers[i]), NPU_OK);
    }
    float y[6];
    buffer_upload(b, &buffers[0], 0, input, sizeof input);
    buffer_upload(b, &buffers[1], 0, bias, 12);
    uint32_t badd = NPU_FOURCC('B', 'A', 'D', 'D');
    npu_op_call_desc call = { .kind = NPU_AICF_BIAS_ADD, .num_in = 2, .num_out = 1, .in = in, .out = &out,
                              .attr_schema = badd, .blob_size = 8, .blob = axis, .stream = 5 };
    NPU_CHECK_STATUS(npu_op_call(b, &call, NULL), NPU_OK);
    NPU_CHECK_EQ(d.kind, 3);
    NPU_CHECK_EQ(d.schema, badd);
    NPU_CHECK_EQ(d.blob_size, 8);
    NPU_CHECK_BYTES(d.blob, axis, 8);
    NPU_CHECK_EQ(d.stream, 5);
    buffer_download(b, y, &buffers[2], 0, sizeof y);
    NPU_CHECK_NEAR(y[5], -2, 0);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_AICF_BIAS_ADD, in, 2, &out, 1, 0, axis, 8), NULL),
                     NPU_ERR_BAD_SCHEMA);
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_ATEN_ADD, in, 2, &out, 1, 0, packed_alpha, 9), NULL), NPU_OK);
    NPU_CHECK_EQ(d.kind, NPU_ATEN_ADD);
    NPU_CHECK_EQ(d.blob_size, 9);
    NPU_CHECK_BYTES(d.blob, packed_alpha, 9);
    int calls = d.calls;
    NPU_CHECK_STATUS(npu_op_call(b, NPU_TEST_CALL(NPU_ATEN_CLONE, in, 1, &out, 1, 0, NULL, 0), NULL), NPU_OK);
    NPU_CHECK_EQ(d.calls, calls); /* a view: copied by the door */
    buffer_download(b, y, &buffers[2], 0, sizeof y);
    NPU_CHECK_BYTES(y, input, sizeof y);
    for (int i = 0; i < 3; i++) {
        b->free(b->ctx, &buffers[i]);
    }
    NPU_CHECK_EQ(d.live, 0);
    npu_accel_destroy(b);
}

/* Which backend gets y = op(x), and why. */
static int placed(npu_backend *b, npu_dtype dtype, npu_value (*build)(npu_graph *g, npu_value x),
                  uint32_t *reason)
{
    const npu_backend *backends[2] = { b, npu_ref_backend() };
    npu_graph *g = npu_graph_create(NULL);
    npu_value y = build(g, npu_input(g, "x", npu_spec_tensor(dtype, 2, DIMS(3, 4))));
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    memset(&desc, 0, sizeof desc);
    desc.backends = backends;
    desc.num_backends = 2;
    npu_output(g, "y", y);
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &desc, NULL), NPU_OK);
    int backend = npu_plan_op_backend(plan, npu_value_producer(g, y, NULL), reason, NULL);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return backend;
}

static npu_value build_relu(npu_graph *g, npu_value x) { return npu_relu(g, x); }
static npu_value build_tanh(npu_graph *g, npu_value x) { return npu_tanh(g, x); }
static npu_value build_flatten(npu_graph *g, npu_value x) { return npu_flatten(g, x, 0, 1); }
static npu_value build_double(npu_graph *g, npu_value x) { return npu_add(g, x, x); }

static npu_value build_wide(npu_graph *g, npu_value x)
{
    npu_value xs[NPU_ACCEL_MAX_TENSORS];
    for (int i = 0; i < NPU_ACCEL_MAX_TENSORS; i++) {
        xs[i] = x;
    }
    return npu_cat(g, xs, NPU_ACCEL_MAX_TENSORS, 0);
}

static npu_status refuse_add(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx;
    answer->reason = op->kind == NPU_ATEN_ADD ? NPU_REASON_SHAPE : NPU_REASON_CLAIMED;
    return NPU_OK;
}

static void test_supports(void)
{
    device d;
    npu_accel a = device_desc(&d);
    npu_backend *b = NULL;
    uint32_t reason = 0;
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    NPU_CHECK_EQ(placed(b, NPU_F32, build_relu, &reason), 0);
    NPU_CHECK_EQ(placed(b, NPU_F64, build_flatten, &reason), 0);
    NPU_CHECK_EQ(placed(b, NPU_F32, build_tanh, &reason), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_OP);
    NPU_CHECK_EQ(placed(b, NPU_F64, build_relu, &reason), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_DTYPE);
    npu_graph *g = npu_graph_create(NULL);
    NPU_CHECK(npu_backend_supports(b, npu_graph_registry(g), "aten.add.Tensor"));
    NPU_CHECK(npu_backend_supports(b, npu_graph_registry(g), "aicf.gemm"));
    NPU_CHECK(npu_backend_supports(b, npu_graph_registry(g), "aten.view"));
    NPU_CHECK(!npu_backend_supports(b, npu_graph_registry(g), "aten.mm"));
    npu_graph_destroy(g);
    npu_accel_destroy(b);
    a.supports = refuse_add;
    a.abi = NULL;
    a.num_ops = 0; /* any op, as far as supports allows */
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    NPU_CHECK_EQ(placed(b, NPU_F64, build_tanh, &reason), 0);
    NPU_CHECK_EQ(placed(b, NPU_F32, build_double, &reason), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_SHAPE);
    NPU_CHECK_EQ(placed(b, NPU_F32, build_wide, &reason), 1);
    NPU_CHECK_EQ(reason, NPU_REASON_SHAPE);
    npu_accel_destroy(b);
}

/* A device that fails somewhere: a status with a message, and everything works again. */
static void test_failures(void)
{
    static const npu_status made[4] = { NPU_ERR_NO_MEMORY, NPU_ERR_IO, NPU_ERR_IO, NPU_ERR_TIMEOUT };
    for (int slot = 0; slot < 4; slot++) {
        for (int n = 1; n <= (slot == 2 ? 1 : slot == 3 ? 3 : 2); n++) {
            device d;
            npu_accel a = device_desc(&d);
            npu_backend *b = NULL;
            npu_exec *exec = NULL;
            npu_diag diag;
            npu_graph *g = layer();
            float y[8];
            NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
            *(slot == 0   ? &d.fail_alloc
              : slot == 1 ? &d.fail_upload
              : slot == 2 ? &d.fail_download
                          : &d.fail_call) = n;
            npu_status status = npu_exec_create_simple(&exec, g, (const npu_backend *const *)&b, 1, &diag);
            NPU_CHECK_STATUS(status, slot < 2 ? made[slot] : NPU_OK);
            NPU_CHECK(status == NPU_OK || strstr(diag.message, "tiny"));
            if (status) {
                NPU_CHECK_EQ(d.live, 0);
                NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, (const npu_backend *const *)&b, 1, &diag),
                                 NPU_OK);
            } else {
                NPU_CHECK_STATUS(run(exec, y, sizeof y), made[slot]);
                NPU_CHECK(strstr(npu_exec_diag(exec)->message, "tiny"));
                NPU_CHECK(slot != 2 || strstr(npu_exec_diag(exec)->message, "download of '"));
                NPU_CHECK(slot < 3 || npu_exec_diag(exec)->op == (n == 3 ? 4u : (uint32_t)n));
            }
            NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
            check_output(y);
            npu_exec_destroy(exec);
            NPU_CHECK_EQ(d.live, 0);
            npu_accel_destroy(b);
            npu_graph_destroy(g);
        }
    }
}

/* A view that is an output, of a graph input: nothing to compute, and still the bytes must arrive. */
static void test_view_of_an_input(void)
{
    device d;
    npu_accel a = device_desc(&d);
    npu_backend *b = NULL;
    npu_exec *exec = NULL;
    npu_graph *g = npu_graph_create(NULL);
    float y[6];
    npu_output(g, "y", npu_flatten(g, npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, DIMS(2, 3))), 0, 1));
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, (const npu_backend *const *)&b, 1, NULL), NPU_OK);
    NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
    NPU_CHECK_BYTES(y, input, sizeof y);
    npu_exec_destroy(exec);
    npu_accel_destroy(b);
    npu_graph_destroy(g);
}

static void test_profile(void)
{
    device d;
    npu_accel a = device_desc(&d);
    npu_backend *b = NULL;
    npu_graph *g = layer();
    npu_plan_desc plan_desc;
    npu_exec_desc desc;
    npu_plan *plan = NULL;
    npu_program *program = NULL;
    npu_exec *exec = NULL;
    float y[8];
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    memset(&plan_desc, 0, sizeof plan_desc);
    memset(&desc, 0, sizeof desc);
    plan_desc.backends = (const npu_backend *const *)&b;
    plan_desc.num_backends = 1;
    desc.profile = true;
    NPU_CHECK_STATUS(npu_plan_create(&plan, g, &plan_desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_program_create(&program, plan, NULL), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&exec, program, &desc, NULL), NPU_OK);
    NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
    uint32_t count = 0, ops = 0;
    const npu_profile_step *steps = npu_exec_profile(exec, &count);
    for (uint32_t i = 0; i < count; i++) {
        ops += steps[i].op != 0;
        NPU_CHECK(steps[i].end_ns >= steps[i].begin_ns);
    }
    NPU_CHECK_EQ(ops, 4);
#ifdef __unix__ /* time in which the processor rests counts, under strict C99 too */
    uint64_t spent = 0;
    d.wait_us = 5000;
    NPU_CHECK_STATUS(run(exec, y, sizeof y), NPU_OK);
    steps = npu_exec_profile(exec, &count);
    for (uint32_t i = 0; i < count; i++) {
        spent += steps[i].op ? steps[i].end_ns - steps[i].begin_ns : 0;
    }
    NPU_CHECK(spent >= 4000000);
#endif
    npu_exec_destroy(exec);
    npu_program_destroy(program);
    npu_plan_destroy(plan);
    npu_accel_destroy(b);
    npu_graph_destroy(g);
}

/* ---- an op with two tensor lists: its info says which tensors are whose ---- */

static npu_status forward_call(void *ctx, const npu_call *call)
{
    device *d = ctx;
    d->calls++;
    npu_tensor tensors[16];
    npu_buffer buffers[16];
    const npu_tensor *pointers[16];
    npu_call on_host = *call;
    d->num_in = npu_op_list_len(call->op, "hx") * 10 + npu_op_list_len(call->op, "params");
    for (uint32_t i = 0; i < call->op->num_in + call->op->num_out; i++) {
        tensors[i] = i < call->op->num_in ? *call->in[i] : *call->out[i - call->op->num_in];
        buffers[i] = *tensors[i].buffer;
        buffers[i].handle = device_at(d, buffers[i].handle, 0);
        tensors[i].buffer = &buffers[i];
        pointers[i] = &tensors[i];
    }
    on_host.in = pointers;
    on_host.out = pointers + call->op->num_in;
    return npu_ref_backend()->op_call(npu_ref_backend()->ctx, &on_host);
}

static npu_status take_all(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx, (void)op, (void)answer;
    return NPU_OK;
}

enum { LSTM_IN = 7, LSTM_OUT = 3 };
static const int64_t lstm_dims[LSTM_IN + LSTM_OUT][3] = { { 5, 2, 3 }, { 1, 2, 4 }, { 1, 2, 4 }, { 16, 3 }, { 16, 4 },
                                                          { 16 }, { 16 }, { 5, 2, 4 }, { 1, 2, 4 }, { 1, 2, 4 } };
static const uint32_t lstm_ranks[LSTM_IN + LSTM_OUT] = { 3, 3, 3, 2, 2, 1, 1, 3, 3, 3 };
static const char *const lstm_names[LSTM_IN] = { "x", "h", "c", "wi", "wh", "bi", "bh" };

static npu_op build_lstm(npu_graph *g)
{
    npu_value v[LSTM_IN];
    for (int i = 0; i < LSTM_IN; i++) {
        v[i] = npu_input(g, lstm_names[i], npu_spec_tensor(NPU_F32, lstm_ranks[i], lstm_dims[i]));
    }
    npu_arg args[] = { npu_arg_tensor("input", v[0]), npu_arg_tensors("hx", v + 1, 2), npu_arg_tensors("params", v + 3, 4),
                       npu_arg_bool("has_biases", true), npu_arg_int("num_layers", 1), npu_arg_float("dropout", 0),
                       npu_arg_bool("train", false), npu_arg_bool("bidirectional", false),
                       npu_arg_bool("batch_first", false) };
    npu_op op = npu_emit_name(g, "aten.lstm.input", args, 9);
    npu_output(g, "y", npu_op_result(g, op, 0));
    return op;
}

static float lstm_data[LSTM_IN + LSTM_OUT][64];

static void run_lstm(const npu_graph *g, const npu_backend *first, float y[40])
{
    const npu_backend *backends[2] = { first, npu_ref_backend() };
    npu_exec *exec = NULL;
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, backends, 2, NULL), NPU_OK);
    for (int i = 0; i < LSTM_IN; i++) {
        size_t size = 0;
        npu_spec_size(npu_value_spec(g, npu_graph_input(g, (uint32_t)i)), &size);
        npu_test_input(exec, lstm_names[i], lstm_data[i], size);
    }
    npu_exec_set_output(exec, "y", y, 40 * sizeof *y);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    npu_exec_destroy(exec);
}

static void test_two_lists(void)
{
    device d;
    npu_accel a = device_desc(&d);
    npu_backend *b = NULL;
    npu_graph *g = npu_graph_create(NULL);
    npu_op op = build_lstm(g);
    npu_tensor tensors[LSTM_IN + LSTM_OUT];
    npu_buffer buffers[LSTM_IN + LSTM_OUT];
    npu_diag diag;
    float expect[40], y[40];
    NPU_ITEM("F24");
    NPU_ITEM("F38");
    for (int i = 0; i < LSTM_IN + LSTM_OUT; i++) {
        for (int k = 0; k < 64; k++) {
            lstm_data[i][k] = (float)((k * 7 + i * 13) % 11) / 8.0f - 0.6f;
        }
        NPU_CHECK_STATUS(npu_tensor_set_host(&tensors[i], &buffers[i], NPU_F32, lstm_ranks[i], lstm_dims[i], lstm_data[i]),
                         NPU_OK);
    }
    run_lstm(g, npu_ref_backend(), expect);
    a.abi = NULL;
    a.num_ops = 0;
    a.supports = take_all;
    a.op_call = forward_call;
    NPU_CHECK_STATUS(npu_accel_create(&b, &a, NULL), NPU_OK);
    run_lstm(g, b, y);
    NPU_CHECK_EQ(d.calls, 1);
    NPU_CHECK_EQ(d.num_in, 24); /* two and four */
    NPU_CHECK_BYTES(y, expect, sizeof y);
    npu_op_call_desc call = { .kind = NPU_ATEN_LSTM, .in = tensors, .num_in = LSTM_IN, .out = tensors + LSTM_IN,
                              .num_out = LSTM_OUT };
    call.blob = npu_op_attrs(g, op, &call.blob_size);
    static const uint32_t sizes[][3] = { { 2, 4, 0 }, { 2, 5, 0 }, { 3, 3, 0 } };
    static const struct { uint32_t row, num; npu_status status; const char *words; } rows[] = {
        { 0, 2, NPU_OK, "" },
        { 0, 0, NPU_ERR_ARITY, "has 2 tensor lists, but the call says the sizes of 0" },
        { 0, 3, NPU_ERR_ARITY, "has 2 tensor lists, but the call says the sizes of 3" },
        { 1, 2, NPU_ERR_ARITY, "7 operands given, expected 1 and 7 in lists" },
        { 2, 2, NPU_ERR_ARITY, "lstm" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        call.list_sizes = rows[i].num ? sizes[rows[i].row] : NULL;
        call.num_lists = rows[i].num;
        NPU_CHECK_STATUS(npu_op_call(npu_ref_backend(), &call, &diag), rows[i].status);
        NPU_CHECK(strstr(diag.message, rows[i].words));
    }
    NPU_CHECK_BYTES(lstm_data[LSTM_IN], expect, sizeof expect);
    npu_accel_destroy(b);
    npu_graph_destroy(g);
}

int main(void)
{
    NPU_RUN(test_expected);
    NPU_RUN(test_create);
    NPU_RUN(test_memory_of_the_door);
    NPU_RUN(test_run);
    NPU_RUN(test_forms);
    NPU_RUN(test_supports);
    NPU_RUN(test_failures);
    NPU_RUN(test_view_of_an_input);
    NPU_RUN(test_profile);
    NPU_RUN(test_two_lists);
    return npu_test_done();
}
