/* The kit for those who write a backend: what is right passes it, and each broken backend fails it with the right words. */
#include "rig.h"
#include "conformance/npu_backend_test.h"

/* ---- backends that are right -------------------------------------------------------------------------------------- */

typedef struct heard {
    char words[800]; /* of the first check that fails */
    uint32_t num_variants;
} heard;

static void hear(void *ctx, const char *check, const char *words)
{
    heard *h = (heard *)ctx;
    h->num_variants += strchr(check, '(') != NULL;
    if (words[0] && !h->words[0]) {
        snprintf(h->words, sizeof h->words, "%s: %s", check, words);
    }
}

static int run_kit(const npu_backend *b, const char *vectors)
{
    npu_backend_test_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backend = b;
    desc.vectors = vectors;
    desc.num_cases = 1;
    return npu_backend_test(&desc);
}

static const char *const views[] = { "aten.view.default", "aten.reshape.default", "aten.unsqueeze.default", "aten.squeeze.dim" };

static void test_simulated(void)
{
    NPU_ITEM("F54");
    for (int i = 0; i < 9; i++) {
        npu_sim_desc desc;
        npu_sim *sim = NULL;
        memset(&desc, 0, sizeof desc);
        desc.async = i == 1;
        desc.in_place = i == 2;
        desc.plans_inner = i == 3;
        desc.keeps_weights = i == 3;
        desc.capacity = i == 4 ? 1 << 20 : 0;
        desc.on_chip = i == 4 ? 4096 : 0;
        desc.op_scratch = i == 5 ? 1000 : 0;
        desc.alignment = i == 5 ? 256 : 0;
        desc.maps = i == 2;
        desc.passes_views = i > 5;
        desc.deny = views;
        desc.num_deny = i > 5 ? 4 : 0;
        desc.plans_inner |= i == 7;
        desc.in_place |= i == 8;
        NPU_CHECK_STATUS(npu_sim_create(&sim, &desc), NPU_OK);
        NPU_CHECK_EQ(run_kit(npu_sim_backend(sim), i == 0 ? "tests/vectors" : NULL), 0);
        npu_sim_counters c = npu_sim_count(sim);
        NPU_CHECK_EQ(c.live_buffers, 0);
        NPU_CHECK_EQ(c.live_programs, 0);
        npu_sim_destroy(sim);
    }
}

/* It takes every variant. */
static void test_cpu(void)
{
    heard h = { "", 0 };
    npu_backend_test_desc kit = { .backend = npu_ref_backend(), .report = hear, .ctx = &h };
    int failed = npu_backend_test(&kit);
    NPU_CHECK_THAT(failed == 0, "%d checks fail, says '%s'", failed, h.words);
    NPU_CHECK_EQ(h.num_variants, NPU_BT_NUM_VARIANTS);
}

/* The small door, over plain memory. */
static void *door_alloc(void *ctx, uint64_t bytes)
{
    (void)ctx;
    return bytes <= 1 << 20 ? calloc(1, (size_t)bytes + 64) : NULL;
}

static void door_free(void *ctx, void *handle)
{
    (void)ctx;
    free(handle);
}

static npu_status door_upload(void *ctx, void *to, uint64_t offset, const void *from, uint64_t bytes)
{
    (void)ctx;
    memcpy((char *)to + offset, from, (size_t)bytes);
    return NPU_OK;
}

static npu_status door_download(void *ctx, void *to, void *from, uint64_t offset, uint64_t bytes)
{
    (void)ctx;
    memcpy(to, (const char *)from + offset, (size_t)bytes);
    return NPU_OK;
}

static npu_status door_call(void *ctx, const npu_call *call)
{
    (void)ctx;
    return npu_ref_backend()->op_call(npu_ref_backend()->ctx, call);
}

static npu_accel door(void)
{
    static const char *const ops[] = { "aten.relu.default", "aten.add.Tensor", "aten.mul.Tensor", "aten.softmax.int" };
    npu_accel accel = { .size = sizeof accel, .name = "door", .ops = ops, .num_ops = 4, .alloc = door_alloc, .free = door_free,
                        .upload = door_upload, .download = door_download, .op_call = door_call, .capacity = 1 << 20 };
    return accel;
}

static void test_door(void)
{
    npu_accel accel = door();
    npu_backend *b = NULL;
    NPU_CHECK_STATUS(npu_accel_create(&b, &accel, NULL), NPU_OK);
    NPU_CHECK_EQ(run_kit(b, "tests/vectors"), 0);
    npu_accel_destroy(b);
}

/* ---- broken ones: the simulated accelerator with one slot that is wrong ------------------------------------------- */

static struct broken {
    npu_sim *sim;
    const npu_backend *real;
    npu_fence latest;
    pthread_mutex_t lock;
} broken = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define REAL broken.real

static npu_status takes_all(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx, (void)op;
    answer->reason = NPU_REASON_CLAIMED;
    return NPU_OK;
}

static npu_status takes_every_other(void *ctx, const npu_op_info *op, npu_support *answer)
{
    static int n;
    n++;
    npu_status status = REAL->supports(ctx, op, answer);
    answer->reason = n % 2 ? answer->reason : NPU_REASON_OP;
    return status;
}

static npu_status takes_nothing(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx, (void)op;
    answer->reason = NPU_REASON_OP;
    return NPU_OK;
}

static npu_status alloc_less(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    npu_allocation less = *a;
    less.bytes /= 2;
    return REAL->alloc(ctx, &less, out);
}

static npu_status alloc_always(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    npu_allocation less = *a;
    less.bytes = a->bytes > 1 << 24 ? 64 : a->bytes;
    npu_status status = REAL->alloc(ctx, &less, out);
    out->bytes = a->bytes;
    return status;
}

static npu_status upload_at_0(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_transfer wrong = *t;
    wrong.to_offset = t->to_offset <= t->to->bytes && t->bytes <= t->to->bytes - t->to_offset ? 0 : t->to_offset;
    return REAL->upload(ctx, &wrong, fence);
}

static npu_status upload_anywhere(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_status status = REAL->upload(ctx, t, fence);
    return status == NPU_ERR_RANGE ? NPU_OK : status;
}

static npu_status download_anywhere(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_status status = REAL->download(ctx, t, fence);
    return status == NPU_ERR_RANGE ? NPU_OK : status;
}

static npu_status alloc_in_pages(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    npu_allocation more = *a;
    more.bytes = (a->bytes + 4095) / 4096 * 4096;
    npu_status status = REAL->alloc(ctx, &more, out);
    out->bytes = status ? out->bytes : more.bytes;
    return status;
}

static npu_status copy_anywhere(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_status status = REAL->copy(ctx, t, fence);
    return status == NPU_ERR_RANGE ? NPU_OK : status;
}

static npu_status copy_nothing(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    (void)ctx, (void)t, (void)fence;
    return NPU_OK;
}

static void *map_nothing(void *ctx, npu_buffer *buffer)
{
    (void)ctx, (void)buffer;
    return NULL;
}

static npu_status wait_never(void *ctx, npu_fence fence, uint64_t ns)
{
    REAL->wait(ctx, fence, ns);
    return NPU_ERR_TIMEOUT;
}

/* Fences that are older than the last one waited for are forgotten. */
static npu_status wait_in_order(void *ctx, npu_fence fence, uint64_t ns)
{
    if (fence < broken.latest) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    broken.latest = fence;
    return REAL->wait(ctx, fence, ns);
}

static npu_status poll_never(void *ctx, npu_fence fence, uint32_t *done)
{
    (void)ctx, (void)fence;
    *done = 0;
    return NPU_OK;
}

static npu_status refuse_groups(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_status status = REAL->compile(ctx, group, out);
    if (status || group->num_ops == 1) {
        return status;
    }
    REAL->release(ctx, out->program);
    out->program = NULL;
    snprintf(out->text, sizeof out->text, "one op at a time");
    return NPU_ERR_NOT_IMPLEMENTED;
}

static npu_status lie_in_place(void *ctx, const npu_group *group, npu_compiled *out)
{
    static const npu_inplace pair = { sizeof pair, 99, 0, 0 };
    npu_status status = REAL->compile(ctx, group, out);
    out->inplace = &pair;
    out->num_inplace = 1;
    return status;
}

static npu_status submit_wrong(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    npu_sim_corrupt(broken.sim, 1);
    return REAL->submit(ctx, program, b, fence);
}

static npu_status submit_past_end(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    npu_status status = REAL->submit(ctx, program, b, NULL);
    npu_buffer *arena = b->buffers[0];
    npu_transfer t = { .size = sizeof t, .to = arena, .to_offset = arena->bytes - NPU_BT_GUARD + 8, .from_host = "pastpast",
                       .bytes = 8 };
    *(fence ? fence : &(npu_fence){ 0 }) = 0;
    return arena->bytes > NPU_BT_GUARD ? REAL->upload(ctx, &t, NULL) : status;
}

/* Remembers the buffers of a program's first exec. */
static void *known_program;

static void release_forgets(void *ctx, void *program)
{
    known_program = known_program == program ? NULL : known_program;
    REAL->release(ctx, program);
}

static npu_status submit_first_buffers(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    static npu_buffer *known[8];
    npu_binding other = *b;
    pthread_mutex_lock(&broken.lock);
    if (known_program != program) {
        known_program = program;
        memcpy(known, b->buffers, (b->num_buffers < 8 ? b->num_buffers : 8) * sizeof *known);
    }
    other.buffers = known;
    npu_status status = REAL->submit(ctx, program, &other, fence);
    pthread_mutex_unlock(&broken.lock);
    return status;
}

static npu_status submit_fails(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    static int n;
    return ++n % 3 == 0 ? NPU_ERR_BACKEND : REAL->submit(ctx, program, b, fence);
}

/* Where it may be late, it brings nothing. */
static npu_status download_early(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_status status = REAL->download(ctx, t, fence);
    if (fence) {
        status = *fence ? REAL->wait(ctx, *fence, UINT64_MAX) : status;
        memset(t->to_host, 0, (size_t)t->bytes);
        *fence = 0;
    }
    return status;
}

/* With dims of its first run for ever: what others leave is not computed. */
static npu_status submit_first_dims(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    static uint32_t n;
    return b->dynamic && n++ ? NPU_OK : REAL->submit(ctx, program, b, fence);
}

/* Of groups that begin with a convolution whose rows and columns have other dilations, results are wrong. */
static void *known_wrong;

static npu_status compile_conv(void *ctx, const npu_group *group, npu_compiled *out)
{
    const npu_op_info *op = group->ops[0]->info;
    npu_status status = REAL->compile(ctx, group, out);
    if (status == NPU_OK && op->kind == NPU_ATEN_CONV2D && npu_op_int_at(op, "dilation", 0) != npu_op_int_at(op, "dilation", 1)) {
        known_wrong = out->program;
    }
    return status;
}

static bool has_view(const npu_group *group)
{
    bool has = false;
    for (uint32_t i = 0; i < group->num_ops; i++) {
        has |= (group->ops[i]->info->traits & NPU_VIEW) != 0;
    }
    return has;
}

static npu_status compile_no_view(void *ctx, const npu_group *group, npu_compiled *out)
{
    if (has_view(group)) {
        snprintf(out->text, sizeof out->text, "no views");
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    return REAL->compile(ctx, group, out);
}

/* Of groups with a view inside, results are wrong. */
static npu_status compile_view(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_status status = REAL->compile(ctx, group, out);
    known_wrong = status == NPU_OK && has_view(group) ? out->program : known_wrong == out->program ? NULL : known_wrong;
    return status;
}

static npu_status submit_conv(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    npu_sim_corrupt(broken.sim, program == known_wrong);
    return REAL->submit(ctx, program, b, fence);
}

static npu_status cost_drifts(void *ctx, const npu_op_info *op, npu_cost *answer)
{
    static uint64_t n;
    (void)ctx, (void)op;
    answer->ns = 1000 + n++;
    return NPU_OK;
}

static npu_status cost_ages(void *ctx, const npu_op_info *op, npu_cost *answer)
{
    (void)ctx, (void)op;
    answer->ns = UINT64_MAX;
    return NPU_OK;
}

static npu_status load_never(void *ctx, const npu_group *group, const void *bytes, uint64_t size, npu_compiled *out)
{
    (void)ctx, (void)group, (void)bytes, (void)size, (void)out;
    return NPU_ERR_BACKEND;
}

static npu_status capture_end(void *ctx, void **capture)
{
    (void)ctx;
    *capture = NULL;
    return NPU_OK;
}

static const struct {
    const char *what, *words;
    npu_backend slots; /* those that are not NULL replace the real ones */
    bool no_wait, no_load, async, maps;
    bool views; /* it refuses them, and passes over them */
    bool cpu;   /* instead of the simulated accelerator */
} rows[] = {
    { "no load", "struct: save without load", .slots = { 0 }, .no_load = true },
    { "half a capture", "struct: 1 of the four slots of captures", .slots = { .capture_end = capture_end } },
    { "a map without unmap", "struct: map without unmap", .slots = { .map = map_nothing } },
    { "takes all", "supports: supports takes an op that it cannot know", .slots = { .supports = takes_all } },
    { "takes every other", "supports: supports of aten.", .slots = { .supports = takes_every_other } },
    { "takes nothing", "supports: it takes none of relu", .slots = { .supports = takes_nothing } },
    { "gives less", "buffers: alloc gave ", .slots = { .alloc = alloc_less } },
    { "gives what it has not", "ranges: alloc of 2^60 bytes was OK", .slots = { .alloc = alloc_always } },
    { "uploads to the begin", "buffers: 1 bytes do not come back|buffers: 3 bytes do not come back", .slots = { .upload = upload_at_0 } },
    { "uploads anywhere", "ranges: upload of 5 bytes at 60 of a buffer of 64 was OK", .slots = { .upload = upload_anywhere } },
    { "downloads anywhere", "ranges: download of 5 bytes at 60", .slots = { .download = download_anywhere } },
    { "uploads anywhere, in pages", "ranges: upload of 5 bytes at 4092 of a buffer of 4096 was OK",
      .slots = { .upload = upload_anywhere, .alloc = alloc_in_pages } },
    { "copies anywhere", "copies: copy of 80 bytes to one byte past the end was OK",
      .slots = { .copy = copy_anywhere } },
    { "copies nothing", "copies: copy of 80 bytes from 3 to 8 did something else", .slots = { .copy = copy_nothing } },
    { "maps nothing", "copies: map gave NULL", .slots = { .map = map_nothing }, .maps = true },
    { "fences without wait", "fences: upload set a fence, but there is no wait", .slots = { 0 }, .no_wait = true, .async = true },
    { "never done", "fences: wait for fence 3 of 3", .slots = { .wait = wait_never }, .async = true },
    { "fences in order only", "fences: wait for fence 2 of 3, the last one first", .slots = { .wait = wait_in_order }, .async = true },
    { "polls for ever", "fences: poll says that a fence is not done", .slots = { .poll = poll_never }, .async = true },
    { "refuses groups", "graphs: compile refuses a group of ops that supports takes: one op at a time", .slots = { .compile = refuse_groups } },
    { "lies about places", "graphs: sim: compile gave inplace[0] = {size 16, op 99", .slots = { .compile = lie_in_place } },
    { "wrong numbers", "graphs: wrong result: op 1, aten.", .slots = { .submit = submit_wrong } },
    { "writes past the end", "graphs: a program wrote 8 bytes behind the end of a buffer", .slots = { .submit = submit_past_end } },
    { "fails now and then", "graphs: run ", .slots = { .submit = submit_fails } },
    { "one exec for all", "two execs: ", .slots = { .submit = submit_first_buffers, .release = release_forgets } },
    { "downloads too early", "overlap: a run that overlaps gives other bits", .slots = { .download = download_early }, .async = true },
    { "keeps its first dims", "dynamic: runtime dims, ", .slots = { .submit = submit_first_dims }, .cpu = true },
    { "wrong dilation",
      "aten.conv2d.default(input=f32[2,4,9,7], weight=#f32[6,4,3,2], stride=[1,3], padding=[0,2], dilation=[2,1]): "
      "numbers: element ",
      .slots = { .compile = compile_conv, .submit = submit_conv } },
    { "passes over no views",
      "views: it has NPU_BACKEND_VIEWS, but compile refuses a group with views: op 2, aten.reshape.default: no views",
      .slots = { .compile = compile_no_view }, .views = true },
    { "reads views elsewhere", "views: wrong result", .slots = { .compile = compile_view, .submit = submit_conv }, .views = true },
    { "costs drift", "supports: cost of aten.", .slots = { .cost = cost_drifts } },
    { "costs for ever", "supports: planning fails: ", .slots = { .cost = cost_ages } },
    { "loads nothing", "saved: load does not take what save gave", .slots = { .load = load_never } },
};

#define TAKE(slot) b.slot = rows[i].slots.slot ? rows[i].slots.slot : b.slot

static void test_broken(void)
{
    NPU_ITEM("F54");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_sim_desc desc;
        heard h = { "", 0 };
        memset(&desc, 0, sizeof desc);
        desc.async = rows[i].async;
        desc.maps = rows[i].maps;
        desc.deny = views;
        desc.num_deny = rows[i].views ? 4 : 0;
        desc.passes_views = rows[i].views;
        broken.latest = 0;
        known_wrong = NULL;
        NPU_CHECK_STATUS(npu_sim_create(&broken.sim, &desc), NPU_OK);
        REAL = rows[i].cpu ? npu_ref_backend() : npu_sim_backend(broken.sim);
        npu_backend b = *REAL;
        TAKE(supports), TAKE(alloc), TAKE(upload), TAKE(download), TAKE(copy), TAKE(map), TAKE(wait), TAKE(poll), TAKE(compile);
        TAKE(submit), TAKE(release), TAKE(load), TAKE(capture_end), TAKE(cost);
        b.wait = rows[i].no_wait ? NULL : b.wait;
        b.load = rows[i].no_load ? NULL : b.load;
        npu_backend_test_desc kit = { .backend = &b, .report = hear, .ctx = &h };
        int failed = npu_backend_test(&kit);
        char first[200];
        const char *other = strchr(rows[i].words, '|');
        snprintf(first, sizeof first, "%.*s", other ? (int)(other - rows[i].words) : 199, rows[i].words);
        NPU_CHECK_THAT(failed && (strncmp(h.words, first, strlen(first)) == 0 || (other && strncmp(h.words, other + 1, strlen(other + 1)) == 0)),
                       "%s: %d checks fail, says '%s', expected '%s'", rows[i].what, failed, h.words, rows[i].words);
        npu_sim_destroy(broken.sim);
    }
}

/* ---- broken ops: the small door, where one ignores an attribute or errs in some numbers ------------------------- */

typedef struct fault {
    const char *op, *ignores; /* an attribute: what it is read as says fault_reads; NULL = none */
    void (*spoil)(const npu_call *call, float *y, const float *x, int64_t len);
    const char *words;
} fault;

static const fault *has_fault;
static bool is_honest; /* it refuses what it ignores */

static float *tensor_data(const npu_tensor *t) { return (float *)(void *)((char *)t->buffer->handle + t->offset); }

static int64_t fault_reads(void)
{
    return strcmp(has_fault->ignores, "alpha") == 0 || strcmp(has_fault->ignores, "dilation") == 0;
}

static void no_less_than_0(const npu_call *call, float *y, const float *x, int64_t len)
{
    (void)call, (void)x;
    for (int64_t i = 0; i < len; i++) {
        y[i] = y[i] < 0 ? 0 : y[i];
    }
}

static void no_nan(const npu_call *call, float *y, const float *x, int64_t len)
{
    (void)call, (void)x;
    for (int64_t i = 0; i < len; i++) {
        y[i] = isnan(y[i]) ? 0 : y[i];
    }
}

/* As many rows as without ceil_mode: nobody computes the others. */
static void no_last_row(const npu_call *call, float *y, const float *x, int64_t len)
{
    int64_t row = call->out[0]->dims[call->out[0]->rank - 1];
    (void)x;
    if (npu_op_int(call->op, "ceil_mode", 0)) {
        memset(y + len - row, 0, (size_t)row * sizeof *y);
    }
}

/* Without the largest of a row taken off before. */
static void plain_softmax(const npu_call *call, float *y, const float *x, int64_t len)
{
    int64_t n = call->out[0]->dims[call->out[0]->rank - 1];
    for (int64_t i = 0; i < len && npu_op_int(call->op, "dim", 0) == -1; i++) {
        float sum = 0;
        for (int64_t k = i - i % n; k < i - i % n + n; k++) {
            sum += expf(x[k]);
        }
        y[i] = expf(x[i]) / sum;
    }
}

static npu_status faulty_call(void *ctx, const npu_call *call)
{
    static const uint8_t ones[16] = { 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0 };
    const fault *f = has_fault;
    npu_bound_arg args[16];
    npu_op_info op = *call->op;
    npu_call other = *call;
    int64_t len = 1;
    if (strcmp(op.name, f->op) != 0) {
        return door_call(ctx, call);
    }
    for (uint32_t i = 0; i < op.num_args; i++) {
        args[i] = *npu_op_arg_at(&op, i);
        if (f->ignores && strcmp(args[i].name, f->ignores) == 0) {
            args[i].i = fault_reads();
            args[i].f = (double)args[i].i;
            args[i].data = strcmp(f->ignores, "dilation") == 0 ? ones : args[i].data;
        }
    }
    op.args = args;
    op.arg_size = sizeof args[0];
    other.op = &op;
    npu_status status = door_call(ctx, &other);
    for (uint32_t i = 0; i < call->out[0]->rank; i++) {
        len *= call->out[0]->dims[i];
    }
    if (f->spoil) {
        f->spoil(call, tensor_data(call->out[0]), tensor_data(call->in[0]), len);
    }
    return status == NPU_ERR_RANGE ? NPU_OK : status; /* as one that does not look */
}

static npu_status faulty_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    bool has = strcmp(op->name, has_fault->op) == 0 && has_fault->ignores && npu_op_has(op, has_fault->ignores);
    uint32_t len = has ? npu_op_list_len(op, has_fault->ignores) : 0;
    double off = has && !len ? fabs(npu_op_float(op, has_fault->ignores, 0) - (double)fault_reads()) : 0;
    (void)ctx;
    for (uint32_t i = 0; i < len; i++) {
        off += fabs((double)(npu_op_int_at(op, has_fault->ignores, i) - fault_reads()));
    }
    answer->reason = is_honest && off > 0 ? NPU_REASON_ATTRIBUTE : NPU_REASON_CLAIMED;
    return NPU_OK;
}

static const fault faults[] = {
    { "aten.max_pool2d.default", NULL, no_less_than_0, "7,7], kernel_size=[3,3]): numbers below 0: element 0 is 0, " },
    { "aten.max_pool2d.default", NULL, no_nan, "kernel_size=[3,3]): with NaN: element 0 is 0, expected nan" },
    { "aten.max_pool2d.default", "ceil_mode", no_last_row, "ceil_mode=true): numbers: element 44 is 0, expected 1" },
    { "aten.max_pool2d.default", "dilation", NULL, "padding=[1,1], dilation=[2,1]): numbers: element " },
    { "aten.avg_pool2d.default", "count_include_pad", NULL, "stride=[2,1], padding=[1,1]): numbers: element 0 is " },
    { "aten.avg_pool2d.default", "divisor_override", NULL, "divisor_override=3): numbers: element 0 is " },
    { "aten.add.Tensor", "alpha", NULL, "(self=f32[3,5], other=f32[3,5], alpha=2): numbers: element 0 is " },
    { "aten.sub.Tensor", "alpha", NULL, "(self=f32[3,5], other=f32[3,5], alpha=2): numbers: element 0 is " },
    { "aten.relu.default", NULL, no_nan, "(self=f32[3,5]): with NaN: element 3 is 0, expected nan" },
    { "aten.clamp.default", NULL, no_nan, "min=-1, max=0.5): with NaN: element 3 is 0, expected nan" },
    { "aten.maximum.default", NULL, no_nan, "other=f32[5]): with NaN: element 1 is 0, expected nan" },
    { "aten.amax.default", NULL, no_less_than_0, "dim=[1]): numbers: element 0 is 0, expected -" },
    { "aten.softmax.int", NULL, plain_softmax, "dim=-1): numbers up to 2000: element " },
    { "aten.layer_norm.default", "eps", NULL, "eps=0.5): numbers: element 0 is " },
    { "aten.embedding.default", NULL, NULL, "an index past the end: the run is OK, expected NPU_ERR_RANGE" },
    { "aten.gather.default", NULL, NULL, "an index past the end: the run is OK, expected NPU_ERR_RANGE" },
};

static int run_faulty(const fault *f, heard *h)
{
    const char *ops[] = { "aten.relu.default", f->op };
    npu_accel accel = door();
    npu_backend *b = NULL;
    accel.ops = ops;
    accel.num_ops = 2;
    accel.op_call = faulty_call;
    accel.supports = faulty_supports;
    has_fault = f;
    memset(h, 0, sizeof *h);
    NPU_CHECK_STATUS(npu_accel_create(&b, &accel, NULL), NPU_OK);
    npu_backend_test_desc kit = { .backend = b, .report = hear, .ctx = h };
    int failed = npu_backend_test(&kit);
    npu_accel_destroy(b);
    return failed;
}

static void test_faulty_ops(void)
{
    NPU_ITEM("F54");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        heard h;
        is_honest = false;
        int failed = run_faulty(&faults[i], &h);
        bool says = strncmp(h.words, faults[i].op, strlen(faults[i].op)) == 0 && strstr(h.words, faults[i].words);
        NPU_CHECK_THAT(failed && says, "%s: %d checks fail, says '%s', expected '%s'", faults[i].op, failed, h.words,
                       faults[i].words);
        is_honest = true;
        failed = faults[i].ignores ? run_faulty(&faults[i], &h) : 0;
        NPU_CHECK_THAT(failed == 0, "%s refused: %d checks fail, says '%s'", faults[i].ignores, failed, h.words);
    }
}

/* Of what these devices remember: the kit runs two execs at once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const npu_dynamic *full; /* of the submit that has the lock */

/* Of what unique_consecutive finds, the last value and its count are missing. */
static npu_status set_less(void *ctx, uint32_t op, const int64_t (*dims)[NPU_MAX_RANK])
{
    int64_t less[3][NPU_MAX_RANK];
    memcpy(less, dims, sizeof less);
    less[0][0]--;
    less[2][0]--;
    return full->set_result_dims(ctx, op, (const int64_t(*)[NPU_MAX_RANK])less);
}

static npu_status takes_few(void *ctx, const npu_op_info *op, npu_support *answer)
{
    bool is_taken = op->kind == NPU_ATEN_RELU || op->kind == NPU_ATEN_UNIQUE_CONSECUTIVE;
    (void)ctx;
    answer->reason = is_taken ? NPU_REASON_CLAIMED : NPU_REASON_OP;
    return NPU_OK;
}

static npu_status submit_less(void *ctx, void *program, const npu_binding *b, npu_fence *fence)
{
    npu_binding other = *b;
    npu_dynamic dynamic;
    npu_status status;
    pthread_mutex_lock(&lock);
    full = b->dynamic;
    if (full) {
        dynamic = *full;
        dynamic.set_result_dims = set_less;
        other.dynamic = &dynamic;
    }
    status = REAL->submit(ctx, program, &other, fence);
    pthread_mutex_unlock(&lock);
    return status;
}

static void test_short_results(void)
{
    heard h = { "", 0 };
    REAL = npu_ref_backend();
    npu_backend b = *REAL;
    b.submit = submit_less;
    b.supports = takes_few;
    npu_backend_test_desc kit = { .backend = &b, .report = hear, .ctx = &h };
    int failed = npu_backend_test(&kit);
    NPU_CHECK_THAT(failed == 1 && strstr(h.words, "return_counts=true): numbers: result 0 has 48 bytes, expected 56"),
                   "%d checks fail, says '%s'", failed, h.words);
}

/* A device may forget a fence once wait has said how it ended: the last ones are no longer known to it. */
static npu_fence ended[64];
static uint32_t num_ended;

static bool has_ended(npu_fence fence)
{
    bool is = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < 64; i++) {
        is = is || (ended[i] && ended[i] == fence);
    }
    pthread_mutex_unlock(&lock);
    return is;
}

static npu_status wait_and_forget(void *ctx, npu_fence fence, uint64_t ns)
{
    npu_status status = has_ended(fence) ? NPU_ERR_INVALID_ARGUMENT : REAL->wait(ctx, fence, ns);
    if (status == NPU_OK) {
        pthread_mutex_lock(&lock);
        ended[num_ended++ % 64] = fence;
        pthread_mutex_unlock(&lock);
    }
    return status;
}

static npu_status poll_known(void *ctx, npu_fence fence, uint32_t *done)
{
    return has_ended(fence) ? NPU_ERR_INVALID_ARGUMENT : REAL->poll(ctx, fence, done);
}

static void test_forgotten_fences(void)
{
    npu_sim_desc desc = { .async = true };
    heard h = { "", 0 };
    NPU_CHECK_STATUS(npu_sim_create(&broken.sim, &desc), NPU_OK);
    REAL = npu_sim_backend(broken.sim);
    npu_backend b = *REAL;
    b.wait = wait_and_forget;
    b.poll = poll_known;
    npu_backend_test_desc kit = { .backend = &b, .report = hear, .ctx = &h };
    int failed = npu_backend_test(&kit);
    NPU_CHECK_THAT(failed == 0 && num_ended > 0, "%d checks fail, says '%s'", failed, h.words);
    npu_sim_destroy(broken.sim);
}

int main(void)
{
    NPU_RUN(test_broken);
    NPU_RUN(test_faulty_ops);
    NPU_RUN(test_short_results);
    NPU_RUN(test_forgotten_fences);
    NPU_RUN(test_simulated);
    NPU_RUN(test_cpu);
    NPU_RUN(test_door);
    return npu_test_done();
}
