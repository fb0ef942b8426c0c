/* npu_backend_test.h - what every npu_backend must keep, as one call, for those who write one:

       #define NPU_IR_IMPLEMENTATION              // or link with an object that has both
       #include "npu_ir.h"
       #include "npu_ir_backend_ref.h"
       #include "tests/conformance/npu_backend_test.h"

       npu_backend_test_desc desc = { .backend = my_backend(), .vectors = "tests/vectors" };
       int main(void) { return npu_backend_test(&desc) != 0; }

   It says on stderr what is wrong and where. Three parts, in this order, since a later one trusts the earlier: slots by
   hand (the struct, answers of supports, buffers, ranges, copies, maps, fences, capacities), whole graphs of ops that
   the backend takes, compared with the CPU (odd sizes, memory that is full of NaN and guarded behind its end, weights
   that stay, views passed over, two execs at once, overlap and replays, saved programs, runtime dims; a wrong result
   is told by its op), and each op that it takes by itself: the variants of variants.h and the vectors. A check of a
   variant is named by the call, and says with which numbers it goes wrong:

     npu0: aten.max_pool2d.default(self=f32[1,3,7,7], kernel_size=[3,3]): numbers below 0: element 0 is 0, expected -1.5

   A backend answers for what it takes. What it cannot do with some attribute, dtype or dim, supports or compile
   refuses: the op runs elsewhere then, and no check of it fails. Nothing can be refused for its numbers, which nobody
   knows at that time: results are the CPU's, which are PyTorch's, within rtol and atol, NaN and infinities where
   variants.h has them, too, and a run with an index outside its dim fails.

   The backend must take one of relu, neg, abs, sigmoid, tanh, add, sub, mul of f32. Needs POSIX threads. */
#ifndef NPU_BACKEND_TEST_H
#define NPU_BACKEND_TEST_H

#include "../../npu_ir_backend_ref.h"
#include "cases.h"
#include "variants.h"
#include <pthread.h>

typedef struct npu_backend_test_desc {
    const npu_backend *backend;   /* required */
    const char *vectors;          /* directory of .cases and .bin files; NULL = none */
    uint32_t num_cases;           /* of each op that it takes, at most; 0 = 8 */
    double rtol, atol;            /* where a result is compared with the CPU's; 0 = 1e-4, 1e-5 */
    /* hears of each check; words: what is wrong, "" = nothing. NULL = what is wrong goes to stderr */
    void (*report)(void *ctx, const char *check, const char *words);
    void *ctx;
} npu_backend_test_desc;

enum { NPU_BT_SIDE = 7, NPU_BT_LEN = NPU_BT_SIDE * NPU_BT_SIDE, NPU_BT_GUARD = 256, NPU_BT_BUFFERS = 64 };

typedef struct npu_bt {
    const npu_backend_test_desc *desc;
    const npu_backend *real;
    npu_backend guarded;          /* the real one, but buffers are filled with NaN and end in a guard */
    npu_buffer buffers[NPU_BT_BUFFERS];
    uint64_t asked[NPU_BT_BUFFERS];
    uint32_t num_buffers;
    uint32_t takes[16], num_takes; /* of npu_bt_ops */
    const char *check;
    int num_failed;
    bool failed;                  /* the check that runs */
} npu_bt;

static npu_bt *npu_bt_now;        /* slots that are replaced have the context of the real backend */

static inline void npu_bt_say(npu_bt *t, const char *format, ...) NPU_IR_PRINTF(2, 3);
static inline void npu_bt_say(npu_bt *t, const char *format, ...)
{
    char words[600];
    va_list args;
    if (t->failed) {
        return; /* the first of a check is its cause */
    }
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    t->failed = true;
    t->num_failed++;
    if (t->desc->report) {
        t->desc->report(t->desc->ctx, t->check, words);
    } else {
        fprintf(stderr, "%s: %s: %s\n", t->real->name, t->check, words);
    }
}

/* ---- slots by hand ---------------------------------------------------------------------------------------------- */

static inline npu_status npu_bt_alloc(const npu_backend *b, uint32_t region, uint64_t bytes, npu_buffer *out)
{
    npu_allocation a = { .size = sizeof a, .region = region, .bytes = bytes,
                         .alignment = npu_region_at(b->regions, region < b->num_regions ? region : 0)->alignment };
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->region = region;
    out->bytes = bytes;
    return b->alloc(b->ctx, &a, out);
}

static inline npu_status npu_bt_upload(const npu_backend *b, npu_buffer *to, uint64_t at, const void *from, uint64_t bytes,
                                       npu_fence *fence)
{
    npu_transfer x = { .size = sizeof x, .to = to, .to_offset = at, .from_host = from, .bytes = bytes };
    return b->upload(b->ctx, &x, fence);
}

static inline npu_status npu_bt_download(const npu_backend *b, void *to, npu_buffer *from, uint64_t at, uint64_t bytes)
{
    npu_transfer x = { .size = sizeof x, .to_host = to, .from = from, .from_offset = at, .bytes = bytes };
    return b->download(b->ctx, &x, NULL);
}

static inline void npu_bt_struct(npu_bt *t)
{
    const npu_backend *b = t->real;
    npu_diag diag = { 0 };
    int captures;
    if (npu_backend_check(b, &diag)) {
        npu_bt_say(t, "%s", diag.message);
        return;
    }
    captures = (b->capture_begin != NULL) + (b->capture_end != NULL) + (b->replay != NULL) + (b->release_capture != NULL);
    if (captures != 0 && captures != 4) {
        npu_bt_say(t, "%d of the four slots of captures: all or none", captures);
    } else if (!b->save != !b->load) {
        npu_bt_say(t, "%s without %s", b->save ? "save" : "load", b->save ? "load" : "save");
    } else if (!b->map != !b->unmap) {
        npu_bt_say(t, "%s without %s", b->map ? "map" : "unmap", b->map ? "unmap" : "map");
    }
}

static inline void npu_bt_bytes(uint8_t *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (uint8_t)(i * 37 + i / 251 + seed);
    }
}

/* What was uploaded comes back, piece by piece, and nothing beside it changes; two buffers are two. */
static inline void npu_bt_buffers(npu_bt *t)
{
    static const uint64_t sizes[] = { 1, 3, 64, 4097, 70000 };
    static uint8_t in[70000], out[70000], other[70000];
    for (uint32_t r = 0; r < t->real->num_regions; r++) {
        uint64_t capacity = npu_region_at(t->real->regions, r)->capacity;
        for (uint32_t i = 0; i < 5 && (!capacity || 2 * sizes[i] <= capacity); i++) {
            npu_buffer a, b;
            size_t n = (size_t)sizes[i], half = n / 2;
            if (npu_bt_alloc(t->real, r, n, &a) || npu_bt_alloc(t->real, r, n, &b)) {
                npu_bt_say(t, "alloc of two buffers of %u bytes in region %u fails", (unsigned)n, (unsigned)r);
                return;
            }
            if (a.bytes < n || a.region != r) {
                npu_bt_say(t, "alloc gave %u bytes of region %u, asked for %u of %u", (unsigned)a.bytes, (unsigned)a.region,
                           (unsigned)n, (unsigned)r);
            } else if ((t->real->traits & NPU_BACKEND_HOST) &&
                       (uintptr_t)a.handle % npu_region_at(t->real->regions, r)->alignment) {
                npu_bt_say(t, "alloc gave an address that is not aligned to %u",
                           (unsigned)npu_region_at(t->real->regions, r)->alignment);
            }
            npu_bt_bytes(in, n, 1);
            npu_bt_bytes(other, n, 100);
            npu_status status = t->failed ? NPU_OK : npu_bt_upload(t->real, &a, 0, in, half, NULL);
            status = status || t->failed ? status : npu_bt_upload(t->real, &a, half, in + half, n - half, NULL);
            status = status || t->failed ? status : npu_bt_upload(t->real, &b, 0, other, n, NULL);
            status = status || t->failed ? status : npu_bt_download(t->real, out + half, &a, half, n - half);
            status = status || t->failed ? status : npu_bt_download(t->real, out, &a, 0, half);
            if (status || (!t->failed && memcmp(in, out, n))) {
                npu_bt_say(t, status ? "a transfer of %u bytes fails: %s" : "%u bytes do not come back as they were%s",
                           (unsigned)n, status ? npu_status_name(status) : "");
            }
            t->real->free(t->real->ctx, &a);
            t->real->free(t->real->ctx, &b);
            if (t->failed) {
                return;
            }
        }
    }
}

/* What is not inside a buffer, which may be larger than was asked for, is refused, and what cannot be had. */
static inline void npu_bt_ranges(npu_bt *t)
{
    npu_buffer a, huge;
    if (npu_bt_alloc(t->real, 0, 64, &a)) {
        npu_bt_say(t, "alloc of 64 bytes fails");
        return;
    }
    const uint64_t n = a.bytes;
    const struct { uint64_t at, bytes; } rows[] = {
        { n - 4, 5 }, { n + 1, 1 }, { 0, n + 1 }, { UINT64_MAX, 2 }, { 2, UINT64_MAX }
    };
    uint8_t *x = (uint8_t *)calloc(1, (size_t)n + 64);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0] && x; i++) {
        bool up = npu_bt_upload(t->real, &a, rows[i].at, x, rows[i].bytes, NULL) == NPU_OK;
        bool down = npu_bt_download(t->real, x, &a, rows[i].at, rows[i].bytes) == NPU_OK;
        if (up || down) {
            npu_bt_say(t, "%s of %llu bytes at %llu of a buffer of %llu was OK, expected NPU_ERR_RANGE",
                       up ? "upload" : "download", (unsigned long long)rows[i].bytes, (unsigned long long)rows[i].at,
                       (unsigned long long)n);
        }
    }
    free(x);
    t->real->free(t->real->ctx, &a);
    if (npu_bt_alloc(t->real, t->real->num_regions, 64, &huge) == NPU_OK) {
        npu_bt_say(t, "alloc in region %u was OK, which it does not have", (unsigned)t->real->num_regions);
    } else if (!(t->real->traits & NPU_BACKEND_HOST) && npu_bt_alloc(t->real, 0, (uint64_t)1 << 60, &huge) == NPU_OK) {
        /* memory of the host is the C library's: sanitizers end a program that asks for so much */
        npu_bt_say(t, "alloc of 2^60 bytes was OK");
    }
}

static inline void npu_bt_capacity(npu_bt *t)
{
    for (uint32_t r = 0; r < t->real->num_regions; r++) {
        uint64_t capacity = npu_region_at(t->real->regions, r)->capacity;
        npu_buffer a;
        if (capacity && capacity < (uint64_t)1 << 40 && npu_bt_alloc(t->real, r, capacity + 1, &a) == NPU_OK) {
            t->real->free(t->real->ctx, &a);
            npu_bt_say(t, "region %u gave more than its capacity of %llu bytes", (unsigned)r, (unsigned long long)capacity);
        }
    }
}

static inline void npu_bt_copies(npu_bt *t)
{
    const npu_backend *b = t->real;
    uint8_t in[96], out[96] = { 0 };
    npu_buffer x, y;
    if ((!b->copy && !b->map) || npu_bt_alloc(b, 0, 96, &x)) {
        return;
    }
    npu_bt_bytes(in, sizeof in, 5);
    if (npu_bt_alloc(b, 0, 96, &y) == NPU_OK) {
        npu_transfer copy = { .size = sizeof copy, .to = &y, .to_offset = 8, .from = &x, .from_offset = 3, .bytes = 80 };
        bool ok = npu_bt_upload(b, &x, 0, in, 96, NULL) == NPU_OK && npu_bt_upload(b, &y, 0, out, 96, NULL) == NPU_OK;
        ok = ok && (!b->copy || (b->copy(b->ctx, &copy, NULL) == NPU_OK && npu_bt_download(b, out, &y, 0, 96) == NPU_OK));
        if (!ok || (b->copy && (memcmp(out + 8, in + 3, 80) || out[7] || out[88]))) {
            npu_bt_say(t, "copy of 80 bytes from 3 to 8 did something else");
        }
        for (int end = 0; end < 2 && b->copy; end++) {
            copy.to_offset = end ? 0 : y.bytes - 79;
            copy.from_offset = end ? x.bytes - 79 : 0;
            if (b->copy(b->ctx, &copy, NULL) == NPU_OK) {
                npu_bt_say(t, "copy of 80 bytes %s one byte past the end was OK, expected NPU_ERR_RANGE",
                           end ? "from" : "to");
            }
        }
        b->free(b->ctx, &y);
    }
    if (b->map && !t->failed) {
        uint8_t *seen = (uint8_t *)b->map(b->ctx, &x);
        bool same = seen && memcmp(seen, in, 96) == 0;
        if (seen) {
            seen[9] = 0xee;
            b->unmap(b->ctx, &x);
        }
        if (!seen || !same || npu_bt_download(b, out, &x, 0, 96) || out[9] != 0xee) {
            npu_bt_say(t, !seen ? "map gave NULL" : same ? "what the host wrote into a map is not there after unmap"
                                                         : "map does not show what was uploaded");
        }
    }
    b->free(b->ctx, &x);
}

/* Fences are waited for in any order, and poll knows what is done. */
static inline void npu_bt_fences(npu_bt *t)
{
    const npu_backend *b = t->real;
    static uint8_t in[3][4096], out[4096];
    npu_buffer x[3];
    npu_fence fences[3] = { 0, 0, 0 };
    uint32_t made = 0;
    for (; made < 3 && npu_bt_alloc(b, 0, 4096, &x[made]) == NPU_OK; made++) {
        npu_bt_bytes(in[made], 4096, made + 1);
        if (npu_bt_upload(b, &x[made], 0, in[made], 4096, &fences[made])) {
            npu_bt_say(t, "upload with a fence fails");
        }
    }
    for (uint32_t i = made; i-- > 0 && !t->failed;) {
        uint32_t done = 1;
        /* Calls on a stream end in their order: one before a call that has been waited for is done. */
        bool polls = i + 1 < made && fences[i] && fences[i + 1] && b->poll;
        npu_status polled = polls ? b->poll(b->ctx, fences[i], &done) : NPU_OK;
        npu_status status = !fences[i] ? NPU_OK : b->wait ? b->wait(b->ctx, fences[i], 2000000000u) : NPU_ERR_BACKEND;
        if (fences[i] && !b->wait) {
            npu_bt_say(t, "upload set a fence, but there is no wait");
        } else if (status) {
            npu_bt_say(t, "wait for fence %u of %u, the last one first: %s", (unsigned)i + 1, (unsigned)made,
                       npu_status_name(status));
        } else if (polled || !done) {
            npu_bt_say(t, "poll says that a fence is not done, but a later one of its stream is");
        } else if (npu_bt_download(b, out, &x[i], 0, 4096) || memcmp(out, in[i], 4096)) {
            npu_bt_say(t, "an upload is not there when its fence is done");
        }
    }
    for (uint32_t i = 0; i < made; i++) {
        b->free(b->ctx, &x[i]);
    }
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

typedef struct npu_bt_op {
    const char *name;
    npu_value (*unary)(npu_graph *g, npu_value x);
    npu_value (*binary)(npu_graph *g, npu_value x, npu_value y);
} npu_bt_op;

static inline npu_value npu_bt_add(npu_graph *g, npu_value x, npu_value y) { return npu_add(g, x, y); }
static inline npu_value npu_bt_sub(npu_graph *g, npu_value x, npu_value y) { return npu_sub(g, x, y); }

static const npu_bt_op npu_bt_ops[] = {
    { "aten.relu.default", npu_relu, NULL },    { "aten.neg.default", npu_neg, NULL },
    { "aten.abs.default", npu_abs, NULL },      { "aten.sigmoid.default", npu_sigmoid, NULL },
    { "aten.tanh.default", npu_tanh, NULL },    { "aten.add.Tensor", NULL, npu_bt_add },
    { "aten.sub.Tensor", NULL, npu_bt_sub },    { "aten.mul.Tensor", NULL, npu_mul },
};
#define NPU_BT_NUM_OPS (uint32_t)(sizeof npu_bt_ops / sizeof npu_bt_ops[0])

static inline npu_spec npu_bt_spec(void)
{
    const int64_t dims[2] = { NPU_BT_SIDE, NPU_BT_SIDE };
    return npu_spec_tensor(NPU_F32, 2, dims);
}

static inline const float *npu_bt_numbers(uint32_t seed)
{
    static float x[4][NPU_BT_LEN];
    for (uint32_t i = 0; i < NPU_BT_LEN; i++) {
        x[seed % 4][i] = (float)((i * 2654435761u + seed * 40503u) % 4001u) / 1000.0f - 2.0f;
    }
    return x[seed % 4];
}

/* Only a view that nobody asks for can be passed over. */
static inline int npu_bt_here(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)label;
    return (npu_bt_now->real->traits & NPU_BACKEND_VIEWS) && (op->traits & NPU_VIEW) ? -1 : 0;
}

/* Why a backend does not take the op of a graph with one op, 0 = it does; and what its cost slot says. */
static inline uint32_t npu_bt_ask(npu_bt *t, const npu_graph *g, double *ns)
{
    const npu_backend *backends[2] = { t->real, npu_ref_backend() };
    npu_plan_desc desc;
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    uint32_t reason = NPU_REASON_OP;
    memset(&desc, 0, sizeof desc);
    desc.backends = backends;
    desc.num_backends = 2;
    desc.override = npu_bt_here;
    if (npu_plan_create(&plan, g, &desc, &diag)) {
        npu_bt_say(t, "planning fails: %s", diag.message);
    } else if (npu_plan_op_backend(plan, (npu_op){ 1 }, &reason, NULL) == 0) {
        reason = NPU_REASON_CLAIMED;
        *ns = npu_plan_op_ns(plan, (npu_op){ 1 }, 0);
    }
    npu_plan_destroy(plan);
    return reason;
}

static inline npu_graph *npu_bt_single(uint32_t op)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_bt_spec()), y = npu_input(g, "y", npu_bt_spec());
    npu_output(g, "z", npu_bt_ops[op].unary ? npu_bt_ops[op].unary(g, x) : npu_bt_ops[op].binary(g, x, y));
    return g;
}

/* Answers are the same every time, and of an op that nobody knows a no. */
static inline void npu_bt_supports(npu_bt *t)
{
    npu_support answer;
    for (uint32_t i = 0; i < NPU_BT_NUM_OPS; i++) {
        npu_graph *g = npu_bt_single(i);
        double ns[2] = { 0, 0 };
        uint32_t first = npu_bt_ask(t, g, &ns[0]), again = npu_bt_ask(t, g, &ns[1]);
        if (first == NPU_REASON_CLAIMED) {
            t->takes[t->num_takes++] = i;
        }
        if (first != again) {
            npu_bt_say(t, "supports of %s says: %s, then: %s", npu_bt_ops[i].name, npu_reason_text(first), npu_reason_text(again));
        } else if (ns[0] < ns[1] || ns[0] > ns[1]) {
            npu_bt_say(t, "cost of %s says %.0f ns, then %.0f", npu_bt_ops[i].name, ns[0], ns[1]);
        }
        npu_graph_destroy(g);
    }
    if (!t->num_takes) {
        npu_bt_say(t, "it takes none of relu, neg, abs, sigmoid, tanh, add, sub, mul of f32");
    }
    npu_op_info unknown;
    memset(&unknown, 0, sizeof unknown);
    memset(&answer, 0, sizeof answer);
    answer.size = sizeof answer;
    unknown.size = sizeof unknown;
    unknown.kind = (npu_kind)0x7ffffff0;
    unknown.name = "test.unknown.default";
    if (t->real->supports(t->real->ctx, &unknown, &answer) == NPU_OK && answer.reason == NPU_REASON_CLAIMED) {
        npu_bt_say(t, "supports takes an op that it cannot know, test.unknown.default");
    }
}

/* Ops that it takes on inputs x and y and a weight, with values that live long, and outputs from the middle. */
static inline npu_graph *npu_bt_graph(const npu_bt *t, uint64_t seed, uint32_t num_ops)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value pool[64];
    uint32_t num = 3;
    pool[0] = npu_input(g, "x", npu_bt_spec());
    pool[1] = npu_input(g, "y", npu_bt_spec());
    pool[2] = npu_constant(g, "w", npu_bt_spec(), npu_bt_numbers(3));
    for (uint32_t i = 0; i < num_ops && num < 64; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const npu_bt_op *op = &npu_bt_ops[t->takes[(seed >> 33) % t->num_takes]];
        npu_value a = pool[num - 1 - (seed >> 40) % (num < 4 ? num : 4)], b = pool[(seed >> 50) % num];
        pool[num++] = op->unary ? op->unary(g, a) : op->binary(g, a, b);
    }
    npu_output(g, "last", pool[num - 1]);
    npu_output(g, "middle", pool[3 + num_ops / 2]);
    return g;
}

typedef struct npu_bt_made {
    npu_plan *plan;
    npu_program *program;
    npu_exec *exec;
} npu_bt_made;

/* Every third op on the CPU, so that values go to the device and from it, while it is at work if it has fences. */
static inline int npu_bt_in_turns(void *ctx, const npu_op_info *op, const char *label)
{
    (void)ctx, (void)label;
    return op->op % 3 == 2;
}

static inline npu_status npu_bt_make_as(const npu_graph *g, const npu_backend *first, bool overlap, npu_bt_made *m, npu_diag *diag)
{
    npu_exec_desc how;
    memset(&how, 0, sizeof how);
    how.overlap = overlap;
    const npu_backend *backends[2] = { first, npu_ref_backend() };
    npu_plan_desc desc;
    memset(&desc, 0, sizeof desc);
    memset(m, 0, sizeof *m);
    desc.backends = backends;
    desc.num_backends = 2;
    desc.override = overlap ? npu_bt_in_turns : npu_bt_here;
    desc.overlap = how.overlap;
    desc.num_execs = 2;
    npu_status status = npu_plan_create(&m->plan, g, &desc, diag);
    status = status ? status : npu_program_create(&m->program, m->plan, diag);
    return status ? status : npu_exec_create(&m->exec, m->program, &how, diag);
}

static inline npu_status npu_bt_make(const npu_graph *g, const npu_backend *first, npu_bt_made *m, npu_diag *diag)
{
    return npu_bt_make_as(g, first, false, m, diag);
}

static inline void npu_bt_unmake(npu_bt_made *m)
{
    npu_exec_destroy(m->exec);
    npu_program_destroy(m->program);
    npu_plan_destroy(m->plan);
}

static inline npu_status npu_bt_feed(npu_exec *e, uint32_t seed)
{
    npu_array x = { "x", npu_bt_spec(), npu_bt_numbers(seed) }, y = { "y", npu_bt_spec(), npu_bt_numbers(seed + 1) };
    npu_status status = npu_exec_set_input(e, &x);
    return status ? status : npu_exec_set_input(e, &y);
}

/* Runs and keeps both outputs. */
static inline npu_status npu_bt_run(npu_exec *e, uint32_t seed, float out[2 * NPU_BT_LEN])
{
    npu_status status = npu_bt_feed(e, seed);
    status = status ? status : npu_exec_run(e);
    for (uint32_t i = 0; i < 2 && !status; i++) {
        const void *data = npu_exec_output(e, i, NULL);
        memcpy(out + i * NPU_BT_LEN, data, NPU_BT_LEN * sizeof *out);
    }
    return status;
}

static inline bool npu_bt_close(const npu_bt *t, const float *got, const float *want)
{
    double rtol = t->desc->rtol > 0 ? t->desc->rtol : 1e-4, atol = t->desc->atol > 0 ? t->desc->atol : 1e-5;
    for (uint32_t i = 0; i < 2 * NPU_BT_LEN; i++) {
        if (!conf_is_near((double)got[i], (double)want[i], rtol, atol)) {
            return false;
        }
    }
    return true;
}

/* Which op is wrong, by itself. */
static inline void npu_bt_say_wrong(npu_bt *t, const npu_graph *g)
{
    const npu_backend *backends[2] = { t->real, npu_ref_backend() };
    npu_array in[2] = { { "x", npu_bt_spec(), npu_bt_numbers(1) }, { "y", npu_bt_spec(), npu_bt_numbers(2) } };
    npu_tolerance tolerance = { .rtol = t->desc->rtol > 0 ? t->desc->rtol : 1e-4, .atol = t->desc->atol > 0 ? t->desc->atol : 1e-5 };
    npu_difference d;
    npu_diag diag = { 0 };
    npu_op op = { 0 };
    npu_status status = npu_graph_find_wrong_op(g, backends, 2, npu_ref_backend(), in, 2, &tolerance, &op, &d, &diag);
    if (status && op.id) {
        npu_bt_say(t, "wrong result: op %u, %s: got %.9g, expected %.9g", (unsigned)op.id, npu_op_definition(g, op)->name, d.got,
                   d.want);
    } else {
        npu_bt_say(t, "wrong result, but every op alone is right: in groups, or where values share memory");
    }
}

/* ---- guards ---- */

static inline npu_status npu_bt_guarded_alloc(void *ctx, const npu_allocation *a, npu_buffer *out)
{
    npu_bt *t = npu_bt_now;
    npu_allocation more = *a;
    more.bytes += NPU_BT_GUARD;
    npu_status status = t->real->alloc(ctx, &more, out);
    if (status || t->num_buffers == NPU_BT_BUFFERS) {
        return status;
    }
    uint8_t *fill = (uint8_t *)malloc((size_t)more.bytes);
    memset(fill, 0xff, (size_t)a->bytes); /* NaN */
    memset(fill + a->bytes, 0xa7, NPU_BT_GUARD);
    status = npu_bt_upload(t->real, out, 0, fill, more.bytes, NULL);
    free(fill);
    t->asked[t->num_buffers] = a->bytes;
    t->buffers[t->num_buffers++] = *out;
    return status;
}

static inline void npu_bt_guarded_free(void *ctx, npu_buffer *b)
{
    npu_bt *t = npu_bt_now;
    for (uint32_t i = 0; i < t->num_buffers; i++) {
        if (t->buffers[i].handle == b->handle && t->buffers[i].region == b->region) {
            t->buffers[i] = t->buffers[--t->num_buffers];
            t->asked[i] = t->asked[t->num_buffers];
        }
    }
    t->real->free(ctx, b);
}

static inline void npu_bt_check_guards(npu_bt *t)
{
    for (uint32_t i = 0; i < t->num_buffers && !t->failed; i++) {
        uint8_t guard[NPU_BT_GUARD];
        npu_status status = npu_bt_download(t->real, guard, &t->buffers[i], t->asked[i], NPU_BT_GUARD);
        for (uint32_t k = 0; k < NPU_BT_GUARD; k++) {
            if (status || guard[k] != 0xa7) {
                npu_bt_say(t, "a program wrote %u bytes behind the end of a buffer of %llu", (unsigned)k,
                           (unsigned long long)t->asked[i]);
                break;
            }
        }
    }
}

/* ---- whole graphs ---- */

/* One graph, three runs of different numbers and the first ones again. */
static inline void npu_bt_check_graph(npu_bt *t, const npu_graph *g)
{
    npu_bt_made made, cpu;
    npu_diag diag = { 0 }, other = { 0 };
    float got[2 * NPU_BT_LEN], first[2 * NPU_BT_LEN], want[2 * NPU_BT_LEN];
    npu_status status = npu_bt_make(g, &t->guarded, &made, &diag), plain = npu_bt_make(g, npu_ref_backend(), &cpu, &other);
    if (status || plain) {
        npu_bt_say(t, "%s", status ? diag.message : other.message);
    } else if (npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ 1 }, NULL, NULL) != 0) {
        const char *words = "";
        npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ 1 }, NULL, &words);
        npu_bt_say(t, "compile refuses a group of ops that supports takes: %s", words);
    }
    for (uint32_t run = 0; run < 4 && !t->failed; run++) {
        status = npu_bt_run(made.exec, run % 3 + 1, got);
        npu_bt_run(cpu.exec, run % 3 + 1, want);
        if (status) {
            npu_bt_say(t, "run %u: %s", (unsigned)run + 1, npu_exec_diag(made.exec)->message);
        } else if (!npu_bt_close(t, got, want)) {
            npu_bt_check_guards(t); /* that is the cause, if it is so */
            npu_bt_say_wrong(t, g);
        } else if (run == 3 && memcmp(got, first, sizeof got)) {
            npu_bt_say(t, "the same numbers give other bits after other runs");
        }
        memcpy(first, run ? first : got, sizeof first);
    }
    npu_bt_check_guards(t);
    npu_bt_unmake(&made);
    npu_bt_unmake(&cpu);
}

static inline void npu_bt_graphs(npu_bt *t)
{
    for (uint32_t i = 0; i < 12 && !t->failed; i++) {
        npu_graph *g = npu_bt_graph(t, i + 1, i < 3 ? i + 1 : 3 * i);
        npu_bt_check_graph(t, g);
        npu_graph_destroy(g);
    }
}

static inline npu_value npu_bt_next(const npu_bt *t, npu_graph *g, uint32_t *i, npu_value a, npu_value b)
{
    const npu_bt_op *op = &npu_bt_ops[t->takes[(*i)++ % t->num_takes]];
    return op->unary ? op->unary(g, a) : op->binary(g, a, b);
}

/* Views of what lives on, of views and of what an op reads twice, each between ops that the backend takes. */
static inline npu_graph *npu_bt_view_graph(const npu_bt *t, uint32_t first)
{
    static const int64_t line[] = { NPU_BT_LEN }, block[] = { 1, NPU_BT_SIDE, NPU_BT_SIDE };
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_bt_spec()), y = npu_input(g, "y", npu_bt_spec()), a, b, c;
    a = npu_bt_next(t, g, &first, x, y);
    b = npu_reshape(g, a, line, 1);
    b = npu_bt_next(t, g, &first, b, b);
    c = npu_unsqueeze(g, npu_reshape(g, b, block + 1, 2), 0);
    c = npu_bt_next(t, g, &first, c, npu_reshape(g, a, block, 3));
    c = npu_bt_next(t, g, &first, npu_squeeze(g, c, 0), a);
    npu_output(g, "last", c);
    npu_output(g, "middle", b);
    return g;
}

/* Those that it refuses are in its groups all the same, as it promises. */
static inline void npu_bt_views(npu_bt *t)
{
    for (uint32_t i = 0; i < t->num_takes && (t->real->traits & NPU_BACKEND_VIEWS) && !t->failed; i++) {
        npu_graph *g = npu_bt_view_graph(t, i);
        npu_bt_made made;
        npu_diag diag = { 0 };
        npu_status status = npu_bt_make(g, t->real, &made, &diag);
        if (status) {
            npu_bt_say(t, "%s", diag.message);
        }
        for (uint32_t id = 1; id <= npu_graph_num_ops(g) && !status; id++) {
            const char *words = "";
            if (npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ id }, NULL, &words) != 0) {
                npu_bt_say(t, "it has NPU_BACKEND_VIEWS, but compile refuses a group with views: op %u, %s: %s", (unsigned)id,
                           npu_op_definition(g, (npu_op){ id })->name, words);
            }
        }
        npu_bt_unmake(&made);
        if (!t->failed) {
            npu_bt_check_graph(t, g);
        }
        npu_graph_destroy(g);
    }
}

typedef struct npu_bt_thread {
    npu_exec *exec;
    uint32_t seed;
    float expected[2 * NPU_BT_LEN];
    bool wrong;
    npu_status status;
} npu_bt_thread;

/* Inputs were bound before: numbers are shared between threads. */
static inline void *npu_bt_run_often(void *arg)
{
    npu_bt_thread *x = (npu_bt_thread *)arg;
    for (int i = 0; i < 20 && !x->status && !x->wrong; i++) {
        x->status = npu_exec_run(x->exec);
        for (uint32_t k = 0; k < 2 && !x->status; k++) {
            const void *out = npu_exec_output(x->exec, k, NULL);
            x->wrong = x->wrong || memcmp(out, x->expected + k * NPU_BT_LEN, NPU_BT_LEN * sizeof(float)) != 0;
        }
    }
    return NULL;
}

/* Two execs of one program: one after the other, then from two threads. */
static inline void npu_bt_two_execs(npu_bt *t)
{
    npu_graph *g = npu_bt_graph(t, 77, 12);
    npu_bt_made made;
    npu_diag diag = { 0 };
    npu_bt_thread x[2];
    pthread_t threads[2];
    npu_status status = npu_bt_make(g, t->real, &made, &diag);
    memset(x, 0, sizeof x);
    x[0].exec = made.exec;
    status = status ? status : npu_exec_create(&x[1].exec, made.program, NULL, &diag);
    for (uint32_t i = 0; i < 2 && !status; i++) {
        x[i].seed = 2 * i; /* x and y of both */
        status = npu_bt_run(x[i].exec, x[i].seed, x[i].expected);
    }
    if (status) {
        npu_bt_say(t, "two execs: %s: %s", npu_status_name(status), diag.message);
    }
    for (uint32_t i = 0; i < 2 && !status; i++) {
        float alone[2 * NPU_BT_LEN];
        npu_bt_made other;
        if (npu_bt_make(g, t->real, &other, &diag) == NPU_OK && npu_bt_run(other.exec, x[i].seed, alone) == NPU_OK &&
            memcmp(alone, x[i].expected, sizeof alone)) {
            npu_bt_say(t, "exec %u of two gives other bits than one alone", (unsigned)i + 1);
        }
        npu_bt_unmake(&other);
    }
    for (uint32_t i = 0; i < 2 && !status; i++) {
        status = pthread_create(&threads[i], NULL, npu_bt_run_often, &x[i]) ? NPU_ERR_BACKEND : NPU_OK;
    }
    for (uint32_t i = 0; i < 2 && !status; i++) {
        pthread_join(threads[i], NULL);
        if (x[i].status || x[i].wrong) {
            npu_bt_say(t, "two execs that run at once: %s", x[i].status ? npu_status_name(x[i].status) : "a wrong result");
        }
    }
    npu_exec_destroy(x[1].exec);
    npu_bt_unmake(&made);
    npu_graph_destroy(g);
}

/* In runs that overlap several calls are under way at once, and replays submit again: with the bits of runs in order. */
static inline void npu_bt_check_overlap(npu_bt *t, const npu_graph *g)
{
    static float in[2][NPU_BT_LEN];
    npu_bt_made made;
    npu_exec *ordered = NULL;
    npu_capture *capture = NULL;
    npu_diag diag = { 0 };
    const npu_array x = { "x", npu_bt_spec(), in[0] }, y = { "y", npu_bt_spec(), in[1] };
    npu_status status = npu_bt_make_as(g, t->real, true, &made, &diag);
    status = status ? status : npu_exec_create(&ordered, made.program, NULL, &diag);
    status = status ? status : npu_exec_set_input(made.exec, &x);
    status = status ? status : npu_exec_set_input(made.exec, &y);
    for (uint32_t run = 0; run < 10 && !status && !t->failed; run++) {
        float want[2 * NPU_BT_LEN];
        memcpy(in[0], npu_bt_numbers(run), sizeof in[0]);
        memcpy(in[1], npu_bt_numbers(run + 1), sizeof in[1]);
        status = npu_bt_run(ordered, run, want);
        status = status || run != 5 ? status : npu_capture_create(&capture, made.exec);
        status = status ? status : capture ? npu_capture_replay(capture) : npu_exec_run(made.exec);
        diag = status ? *npu_exec_diag(made.exec) : diag;
        for (uint32_t i = 0; i < 2 && !status; i++) {
            if (memcmp(npu_exec_output(made.exec, i, NULL), want + i * NPU_BT_LEN, NPU_BT_LEN * sizeof *want)) {
                npu_bt_say(t, "%s gives other bits than one in order", capture ? "a replay" : "a run that overlaps");
            }
        }
    }
    if (status) {
        npu_bt_say(t, "%s: %s: %s", capture ? "replay" : "overlap", npu_status_name(status), diag.message);
    }
    npu_capture_destroy(capture);
    npu_exec_destroy(ordered);
    npu_bt_unmake(&made);
}

static inline void npu_bt_overlaps(npu_bt *t)
{
    for (uint32_t i = 0; i < 6 && !t->failed; i++) {
        npu_graph *g = npu_bt_graph(t, 31 + i, 20);
        npu_bt_check_overlap(t, g);
        npu_graph_destroy(g);
    }
}

/* Every result as the CPU's. */
static inline void npu_bt_compare(npu_bt *t, const npu_exec *got, const npu_exec *want, const char *what)
{
    const npu_spec *spec;
    double rtol = t->desc->rtol > 0 ? t->desc->rtol : 1e-4, atol = t->desc->atol > 0 ? t->desc->atol : 1e-5;
    for (uint32_t i = 0; (spec = npu_exec_output_spec(want, i)) != NULL && !t->failed; i++) {
        conf_tensor expected;
        size_t size = 0, bad = SIZE_MAX;
        char result[24] = "", a[40], e[40];
        const void *data = npu_exec_output(got, i, &size);
        memset(&expected, 0, sizeof expected);
        expected.dtype = spec->dtype;
        expected.data = npu_exec_output(want, i, &expected.size);
        if (size != expected.size) {
            npu_bt_say(t, "%s: result %u has %u bytes, expected %u", what, (unsigned)i, (unsigned)size,
                       (unsigned)expected.size);
        } else if ((bad = conf_compare(&expected, data, rtol, atol)) != SIZE_MAX) {
            conf_element_text(expected.dtype, data, bad, a, sizeof a);
            conf_element_text(expected.dtype, expected.data, bad, e, sizeof e);
            if (i) {
                snprintf(result, sizeof result, "result %u, ", (unsigned)i);
            }
            npu_bt_say(t, "%s: %selement %u is %s, expected %s", what, result, (unsigned)bad, a, e);
        }
    }
}

/* Both on the same inputs. What the CPU refuses to compute is refused. */
static inline void npu_bt_run_both(npu_bt *t, npu_exec *exec, npu_exec *cpu, const npu_array *in, uint32_t num_in,
                                   const char *what)
{
    npu_status status = NPU_OK, expected = NPU_OK;
    for (uint32_t i = 0; i < num_in; i++) {
        status = status ? status : npu_exec_set_input(exec, &in[i]);
        expected = expected ? expected : npu_exec_set_input(cpu, &in[i]);
    }
    status = status ? status : npu_exec_run(exec);
    expected = expected ? expected : npu_exec_run(cpu);
    if (status && !expected) {
        npu_bt_say(t, "%s: %s", what, npu_exec_diag(exec)->message);
    } else if (expected && !status) {
        npu_bt_say(t, "%s: the run is OK, expected %s: %s", what, npu_status_name(expected),
                   npu_exec_diag(cpu)->message);
    } else if (!status) {
        npu_bt_compare(t, exec, cpu, what);
    }
}

/* ---- variants ---- */

static inline npu_status npu_bt_bind_weights(npu_graph *g, const npu_bt_operand *operands, uint32_t num)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < num && !status; i++) {
        const char name[2] = { (char)('a' + i), 0 };
        size_t size = 0;
        status = npu_spec_size(&operands[i].spec, &size);
        status = status || !operands[i].is_weight ? status : npu_graph_bind_param(g, name, operands[i].data, size);
    }
    return status;
}

static inline void npu_bt_run_variant(npu_bt *t, const npu_bt_variant *v, const npu_bt_made *made,
                                      const npu_bt_made *cpu, npu_bt_operand *operands, uint32_t num)
{
    static const char names[NPU_BT_MAX_OPERANDS][2] = { "a", "b", "c", "d", "e", "f" };
    npu_array in[NPU_BT_MAX_OPERANDS];
    for (size_t k = 0; k <= strlen(v->values) && !t->failed; k++) {
        uint32_t num_in = 0;
        char values = k ? v->values[k - 1] : ' ';
        for (uint32_t i = 0; i < num; i++) {
            if (!operands[i].is_weight) {
                const npu_array x = { names[i], operands[i].spec, operands[i].data };
                npu_bt_fill(&operands[i], i, values);
                in[num_in++] = x;
            }
        }
        npu_bt_run_both(t, made->exec, cpu->exec, in, num_in, npu_bt_values_text(values));
    }
    npu_bt_check_guards(t);
}

/* Does it take the op so? What supports or compile refuses runs on the CPU, and is no fault. */
static inline bool npu_bt_variant_passes(npu_bt *t, const npu_bt_variant *v, const npu_graph_desc *with_registry)
{
    static npu_bt_operand operands[NPU_BT_MAX_OPERANDS];
    npu_graph *g = NULL;
    npu_bt_made made, cpu;
    npu_diag diag = { 0 };
    uint32_t num = 0;
    bool takes = false;
    memset(&made, 0, sizeof made);
    memset(&cpu, 0, sizeof cpu);
    npu_status status = npu_bt_variant_graph(&g, v, operands, &num, with_registry, &diag);
    for (uint32_t i = 0; i < num; i++) {
        npu_bt_fill(&operands[i], i, ' ');
    }
    status = status ? status : npu_bt_bind_weights(g, operands, num);
    status = status ? status : npu_bt_make(g, &t->guarded, &made, &diag);
    takes = !status && npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ 1 }, NULL, NULL) == 0;
    status = status || !takes ? status : npu_bt_make(g, npu_ref_backend(), &cpu, &diag);
    if (status && status != NPU_ERR_NOT_FOUND) { /* that is an op left out of this build */
        npu_bt_say(t, "%s", diag.message);
    } else if (takes) {
        npu_bt_run_variant(t, v, &made, &cpu, operands, num);
    }
    npu_bt_unmake(&made);
    npu_bt_unmake(&cpu);
    npu_graph_destroy(g);
    return takes;
}

/* A check for each, named by its call: one that is wrong hides no other. */
static inline void npu_bt_variants_of_ops(npu_bt *t)
{
    npu_graph_desc with_registry; /* one for all: to make it takes longer than a graph */
    memset(&with_registry, 0, sizeof with_registry);
    npu_registry_create(&with_registry.registry, NULL, NULL);
    for (uint32_t i = 0; i < NPU_BT_NUM_VARIANTS; i++) {
        t->check = npu_bt_variants[i].call;
        t->failed = false;
        bool takes = npu_bt_variant_passes(t, &npu_bt_variants[i], &with_registry);
        if (takes && !t->failed && t->desc->report) {
            t->desc->report(t->desc->ctx, t->check, "");
        }
    }
    npu_registry_destroy(with_registry.registry);
}

/* Runs of different sizes, for a backend that says it takes them. */
static inline void npu_bt_dynamic(npu_bt *t)
{
    static const int64_t sizes[] = { 64, 1, 7, 64, 33 };
    static float numbers[64 * NPU_BT_SIDE];
    npu_graph *g = npu_graph_create(NULL);
    const int64_t rows = npu_graph_add_symbol(g, "rows", 1, 64), dims[2] = { rows, NPU_BT_SIDE };
    npu_value x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims)), y = x;
    npu_bt_made made, cpu;
    npu_diag diag = { 0 };
    for (uint32_t i = 0; i < t->num_takes; i++) {
        const npu_bt_op *op = &npu_bt_ops[t->takes[i]];
        y = op->unary ? op->unary(g, y) : op->binary(g, y, x);
    }
    npu_output(g, "z", y);
    memset(&cpu, 0, sizeof cpu);
    npu_status status = npu_bt_make(g, t->real, &made, &diag);
    status = status ? status : npu_bt_make(g, npu_ref_backend(), &cpu, &diag);
    if (status) {
        npu_bt_say(t, "runtime dims: %s", diag.message);
    }
    bool takes = !status && npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ 1 }, NULL, NULL) == 0;
    for (uint32_t i = 0; i < 5 && takes && (t->real->traits & NPU_BACKEND_DYNAMIC); i++) {
        const int64_t known[2] = { sizes[i], NPU_BT_SIDE };
        const npu_array in = { "x", npu_spec_tensor(NPU_F32, 2, known), numbers };
        char what[40];
        for (uint32_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            numbers[k] = npu_bt_number(k, i, false, ' ');
        }
        snprintf(what, sizeof what, "runtime dims, %u rows", (unsigned)sizes[i]);
        npu_bt_run_both(t, made.exec, cpu.exec, &in, 1, what);
    }
    npu_bt_unmake(&made);
    npu_bt_unmake(&cpu);
    npu_graph_destroy(g);
}

/* A saved program is the same one; what is no program is refused. */
static inline void npu_bt_saved(npu_bt *t)
{
    if (!t->real->save || !t->real->load) {
        return;
    }
    npu_graph *g = npu_bt_graph(t, 5, 10);
    npu_bt_made made;
    npu_diag diag = { 0 };
    npu_load_report report;
    npu_program *again = NULL;
    npu_exec *exec = NULL;
    uint64_t size = 0;
    float want[2 * NPU_BT_LEN], got[2 * NPU_BT_LEN];
    npu_status status = npu_bt_make(g, t->real, &made, &diag);
    status = status ? status : npu_bt_run(made.exec, 1, want);
    status = status ? status : npu_program_save(made.program, NULL, &size);
    uint8_t *bytes = (uint8_t *)malloc((size_t)size + 1);
    status = status ? status : npu_program_save(made.program, bytes, &size);
    status = status ? status : npu_program_load(&again, made.plan, bytes, size, &report, &diag);
    npu_exec_destroy(made.exec); /* room for one more */
    made.exec = NULL;
    status = status ? status : npu_exec_create(&exec, again, NULL, &diag);
    status = status ? status : npu_bt_run(exec, 1, got);
    if (status) {
        npu_bt_say(t, "save and load: %s: %s", npu_status_name(status), diag.message);
    } else if (report.num_compiled) {
        npu_bt_say(t, "load does not take what save gave: %s", report.text);
    } else if (memcmp(want, got, sizeof got)) {
        npu_bt_say(t, "a program gives other bits when it was loaded");
    }
    npu_exec_destroy(exec);
    npu_program_destroy(again);
    npu_bt_unmake(&made);
    free(bytes);
    npu_graph_destroy(g);
}

/* A group with an op that supports refuses: compile refuses it, too, or what comes out is right; and the backend goes on. */
static npu_status npu_bt_eager_supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    (void)ctx, (void)op;
    answer->reason = NPU_REASON_CLAIMED;
    return NPU_OK;
}

static inline void npu_bt_refusals(npu_bt *t)
{
    npu_backend eager = *t->real;
    npu_graph *g = npu_graph_create(NULL);
    npu_value x = npu_input(g, "x", npu_bt_spec());
    npu_bt_made made;
    npu_diag diag = { 0 };
    npu_arg args[2] = { npu_arg_tensor("self", x), npu_arg_tensor("other", x) }; /* x + log 2 */
    npu_output(g, "last", npu_op_result(g, npu_emit_name(g, "aten.logaddexp.default", args, 2), 0));
    double ns;
    if (npu_bt_ask(t, g, &ns) != NPU_REASON_CLAIMED) {
        eager.supports = npu_bt_eager_supports;
        npu_status status = npu_bt_make(g, &eager, &made, &diag);
        const float *in_data = npu_bt_numbers(1);
        npu_array in = { "x", npu_bt_spec(), in_data };
        if (!status && npu_exec_set_input(made.exec, &in) == NPU_OK && npu_exec_run(made.exec) == NPU_OK) {
            const float *got = (const float *)npu_exec_output(made.exec, 0, NULL);
            for (uint32_t i = 0; i < NPU_BT_LEN; i++) {
                if (!conf_is_near((double)got[i], (double)in_data[i] + 0.69314718056, 1e-4, 1e-5)) {
                    npu_bt_say(t, "an op that supports refuses runs, and is wrong: %.9g, expected %.9g", (double)got[i],
                               (double)in_data[i] + 0.69314718056);
                    break;
                }
            }
        }
        npu_bt_unmake(&made);
    }
    npu_graph_destroy(g);
    if (!t->failed) {
        g = npu_bt_graph(t, 9, 5);
        npu_bt_check_graph(t, g);
        npu_graph_destroy(g);
    }
}

/* ---- vectors ---------------------------------------------------------------------------------------------------- */

static inline npu_value npu_bt_tensor(npu_graph *g, const conf_tensor *x, const char *name, bool constant)
{
    npu_value none = { 0 };
    npu_spec spec = npu_spec_tensor(x->dtype, x->rank, x->dims);
    return x->absent ? none : constant ? npu_constant_ref(g, name, spec, x->data) : npu_input(g, name, spec);
}

static inline npu_graph *npu_bt_case_graph(conf_case *c, const char *op)
{
    npu_graph *g = npu_graph_create(NULL);
    const npu_op_def *def = npu_registry_find(npu_graph_registry(g), op);
    npu_arg args[CONF_MAX_ARGS];
    for (uint32_t i = 0; i < c->num_args; i++) {
        npu_value *values = (npu_value *)conf_keep(c, (c->args[i].num_tensors + 1) * sizeof *values);
        args[i] = c->args[i].arg;
        for (uint32_t k = 0; k < c->args[i].num_tensors; k++) {
            char name[80];
            snprintf(name, sizeof name, "%s.%u", args[i].name, (unsigned)k);
            values[k] = npu_bt_tensor(g, &c->args[i].tensors[k], name, def && (def->traits & NPU_DATA));
        }
        if (args[i].form == NPU_ARG_TENSOR) {
            args[i].as.value = values[0];
        } else if (args[i].form == NPU_ARG_TENSORS) {
            args[i].as.values = values;
        }
    }
    npu_op made = npu_emit_name(g, op, args, c->num_args);
    for (uint32_t i = 0; made.id && i < npu_op_num_results(g, made); i++) {
        char name[32];
        snprintf(name, sizeof name, "out%u", (unsigned)i);
        npu_output(g, name, npu_op_result(g, made, i));
    }
    return g;
}

static inline npu_status npu_bt_case_feed(npu_exec *e, const conf_case *c)
{
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < c->num_args && !status; i++) {
        for (uint32_t k = 0; k < c->args[i].num_tensors && !status; k++) {
            const conf_tensor *x = &c->args[i].tensors[k];
            char name[80];
            snprintf(name, sizeof name, "%s.%u", c->args[i].arg.name, (unsigned)k);
            npu_array in = { name, npu_spec_tensor(x->dtype, x->rank, x->dims), x->data };
            status = x->absent ? NPU_OK : npu_exec_set_input(e, &in);
            status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status; /* a constant */
        }
    }
    return status ? status : npu_exec_run(e);
}

/* A case of an op, which must be as expected. Does it take the op with these types? */
static inline bool npu_bt_case(npu_bt *t, conf_case *c, const char *op)
{
    npu_graph *g = npu_bt_case_graph(c, op);
    npu_bt_made made;
    npu_diag diag = { 0 };
    memset(&made, 0, sizeof made);
    bool takes = npu_graph_status(g) == NPU_OK && npu_bt_make(g, t->real, &made, &diag) == NPU_OK &&
                 npu_plan_op_backend(npu_program_plan(made.program), (npu_op){ 1 }, NULL, NULL) == 0;
    if (takes) {
        npu_status status = npu_bt_case_feed(made.exec, c);
        if (status) {
            npu_bt_say(t, "%s, %s: %s", op, c->label, npu_exec_diag(made.exec)->message);
        }
        for (uint32_t i = 0; i < c->num_outs && !status; i++) {
            const conf_out *out = &c->outs[i];
            size_t bytes = 0, bad;
            const void *got = npu_exec_output(made.exec, i, &bytes);
            double rtol = c->rtol > t->desc->rtol ? c->rtol : t->desc->rtol, atol = c->atol > t->desc->atol ? c->atol : t->desc->atol;
            if (out->form != CONF_OUT_TENSOR || bytes != out->tensor.size) {
                continue;
            }
            bad = conf_compare(&out->tensor, got, rtol, atol);
            if (bad != SIZE_MAX) {
                char a[40], e[40];
                conf_element_text(out->tensor.dtype, got, bad, a, sizeof a);
                conf_element_text(out->tensor.dtype, out->tensor.data, bad, e, sizeof e);
                npu_bt_say(t, "%s, %s: result %u element %u is %s, expected %s", op, c->label, (unsigned)i, (unsigned)bad, a, e);
            }
        }
    }
    npu_bt_unmake(&made);
    npu_graph_destroy(g);
    return takes;
}

/* A check for each op: one that is wrong hides no other. */
static inline void npu_bt_vectors(npu_bt *t)
{
    npu_graph *g = npu_graph_create(NULL);
    const npu_registry *registry = npu_graph_registry(g);
    for (uint32_t i = 0; i < npu_registry_num_ops(registry) && t->desc->vectors; i++) {
        const npu_op_def *def = npu_registry_op(registry, i);
        conf_file file;
        conf_case c;
        if (!def || !npu_backend_supports(t->real, registry, def->name)) {
            continue;
        }
        t->check = def->name;
        t->failed = false;
        if (conf_open(&file, t->desc->vectors, def->name)) {
            for (uint32_t k = 0; k < (t->desc->num_cases ? t->desc->num_cases : 8) && conf_next(&file, &c);) {
                k += npu_bt_case(t, &c, def->name);
                conf_free(&c);
            }
        }
        conf_close(&file);
        if (!t->failed && t->desc->report) {
            t->desc->report(t->desc->ctx, t->check, "");
        }
    }
    npu_graph_destroy(g);
}

/* How many checks failed. */
static inline int npu_backend_test(const npu_backend_test_desc *desc)
{
    static const struct { const char *name; void (*run)(npu_bt *t); } checks[] = {
        { "struct", npu_bt_struct },     { "supports", npu_bt_supports }, { "buffers", npu_bt_buffers },
        { "ranges", npu_bt_ranges },     { "capacity", npu_bt_capacity }, { "copies", npu_bt_copies },
        { "fences", npu_bt_fences },     { "graphs", npu_bt_graphs },     { "views", npu_bt_views },
        { "two execs", npu_bt_two_execs },
        { "overlap", npu_bt_overlaps },  { "saved", npu_bt_saved },       { "refusals", npu_bt_refusals },
        { "dynamic", npu_bt_dynamic },
    };
    npu_bt t;
    memset(&t, 0, sizeof t);
    t.desc = desc;
    t.real = desc->backend;
    npu_bt_now = &t;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && (i == 0 || t.num_failed == 0); i++) {
        t.check = checks[i].name;
        t.failed = false;
        if (i == 1) {
            t.guarded = *t.real;
            t.guarded.alloc = npu_bt_guarded_alloc;
            t.guarded.free = npu_bt_guarded_free;
        }
        checks[i].run(&t);
        if (!t.failed && desc->report) {
            desc->report(desc->ctx, t.check, "");
        }
    }
    if (!t.num_failed) {
        npu_bt_variants_of_ops(&t);
        npu_bt_vectors(&t);
    }
    npu_bt_now = NULL;
    return t.num_failed;
}

#endif
