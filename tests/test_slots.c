/* Every slot of a backend that moves memory: buffers of a device bound as inputs and outputs, copies on the device,
   memory that the host sees, and what crosses to a device with each of them. */
#include "rig.h"
#include "buffers.h"

/* A buffer of a device with some floats, as a tensor. */
typedef struct held {
    const npu_backend *backend;
    npu_buffer buffer;
    npu_tensor tensor;
} held;

static held hold(const npu_backend *b, uint64_t bytes, uint64_t offset, uint32_t rank, const int64_t *dims)
{
    held h;
    int64_t stride = 1;
    memset(&h, 0, sizeof h);
    h.backend = b;
    NPU_CHECK_STATUS(buffer_alloc(b, 0, bytes, &h.buffer), NPU_OK);
    h.tensor.size = sizeof h.tensor;
    h.tensor.dtype = NPU_F32;
    h.tensor.rank = rank;
    h.tensor.offset = offset;
    for (uint32_t i = rank; i-- > 0; stride *= dims[i]) {
        h.tensor.dims[i] = dims[i];
        h.tensor.strides[i] = stride;
    }
    return h;
}

static npu_tensor *tensor_of(held *h)
{
    h->tensor.buffer = &h->buffer;
    return &h->tensor;
}

static void drop(held *h) { h->backend->free(h->backend->ctx, &h->buffer); }

/* x -> relu on the accelerator -> y; and exp of x on the CPU -> z where `shared`. */
static const char *const deny_exp[] = { "aten.exp.default" };

static rig bound_rig(bool shared, bool async, uint32_t sims)
{
    npu_sim_desc desc[2];
    rig r;
    memset(desc, 0, sizeof desc);
    desc[0].deny = deny_exp;
    desc[0].num_deny = 1;
    desc[0].async = async;
    desc[1] = desc[0];
    r = rig_start(desc, sims);
    npu_value x = npu_input(r.graph, "x", F32(4, 6));
    npu_output(r.graph, "y", npu_relu(r.graph, x));
    if (shared) {
        npu_output(r.graph, "z", npu_exp(r.graph, x));
    }
    return r;
}

/* The only transfers are those that others need: none, or one download for the CPU. */
static void test_bound(void)
{
    NPU_ITEM("F54");
    for (int shared = 0; shared < 2; shared++) {
        for (int async = 0; async < 2; async++) {
            rig r = bound_rig(shared, async, 1);
            float x[24], y[24];
            const npu_backend *b = r.backends[0];
            held in = hold(b, 200, 64, 2, DIMS(4, 6)), out = hold(b, 200, 100, 2, DIMS(4, 6));
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_set_input_tensor(r.exec, "x", 0, tensor_of(&in)), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_set_output_tensor(r.exec, "y", 0, tensor_of(&out)), NPU_OK);
            for (uint32_t run = 0; run < 3; run++) {
                fill(x, 24, run);
                NPU_CHECK_STATUS(buffer_upload(b, &in.buffer, 64, x, sizeof x), NPU_OK);
                npu_sim_counters before = npu_sim_count(r.sims[0]);
                NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
                npu_sim_counters after = npu_sim_count(r.sims[0]);
                NPU_CHECK_EQ(after.bytes_up - before.bytes_up, 0);
                NPU_CHECK_EQ(after.bytes_down - before.bytes_down, shared ? sizeof x : 0);
                NPU_CHECK_EQ(after.bytes_copied - before.bytes_copied, 2 * sizeof x);
                NPU_CHECK_STATUS(buffer_download(b, y, &out.buffer, 100, sizeof y), NPU_OK);
                NPU_CHECK(!npu_exec_output(r.exec, 0, NULL));
                const float *z = (const float *)npu_exec_output(r.exec, 1, NULL);
                for (int i = 0; i < 24; i++) {
                    NPU_CHECK_EQ(y[i], x[i] > 0 ? x[i] : 0);
                    NPU_CHECK(!shared || fabs((double)z[i] - exp((double)x[i])) < 1e-5);
                }
            }
            /* host memory again */
            npu_test_input(r.exec, "x", x, sizeof x);
            NPU_CHECK_STATUS(npu_exec_set_output(r.exec, "y", y, sizeof y), NPU_OK);
            x[0] = 5;
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            NPU_CHECK_EQ(y[0], 5);
            drop(&in);
            drop(&out);
            rig_end(&r);
        }
    }
}

/* One program's output is the next one's input, and nothing of it comes to the host; with a capture, too. */
static void test_chained(void)
{
    NPU_ITEM("F54");
    rig r = bound_rig(false, true, 1);
    npu_exec *next = NULL;
    npu_capture *capture = NULL;
    const npu_backend *b = r.backends[0];
    held middle = hold(b, 96, 0, 2, DIMS(4, 6));
    float x[24], y[24];
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_create(&next, r.program, NULL, NULL), NPU_OK);
    npu_test_input(r.exec, "x", x, sizeof x);
    NPU_CHECK_STATUS(npu_exec_set_output_tensor_at(r.exec, 0, 0, tensor_of(&middle)), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input_tensor_at(next, 0, 0, tensor_of(&middle)), NPU_OK);
    npu_exec_set_output(next, "y", y, sizeof y);
    NPU_CHECK_STATUS(npu_capture_create(&capture, next), NPU_OK);
    for (uint32_t run = 0; run < 4; run++) {
        npu_sim_counters before = npu_sim_count(r.sims[0]), after;
        fill(x, 24, run);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(run % 2 ? npu_capture_replay(capture) : npu_exec_run(next), NPU_OK);
        after = npu_sim_count(r.sims[0]);
        NPU_CHECK_EQ(after.bytes_up - before.bytes_up, sizeof x);
        NPU_CHECK_EQ(after.bytes_down - before.bytes_down, sizeof y);
        NPU_CHECK_EQ(y[5], x[5] > 0 ? x[5] : 0);
    }
    npu_capture_destroy(capture);
    npu_exec_destroy(next);
    drop(&middle);
    rig_end(&r);
}

/* What is bound on one device and used on another, or made by the CPU for a device, crosses once each way. */
static void test_bound_elsewhere(void)
{
    NPU_ITEM("F54");
    rig r = bound_rig(true, false, 2); /* everything but exp runs on backend 0, exp on the CPU, which is 2 */
    const npu_backend *b = r.backends[1];
    held in = hold(b, 96, 0, 2, DIMS(4, 6)), out = hold(b, 96, 0, 2, DIMS(4, 6)), cpu = hold(r.backends[2], 96, 0, 2, DIMS(4, 6));
    float x[24], y[24], z[24];
    fill(x, 24, 3);
    NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
    NPU_CHECK_STATUS(buffer_upload(b, &in.buffer, 0, x, sizeof x), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_input_tensor(r.exec, "x", 1, tensor_of(&in)), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output_tensor(r.exec, "z", 1, tensor_of(&out)), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_set_output_tensor(r.exec, "y", 2, tensor_of(&cpu)), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
    NPU_CHECK_STATUS(buffer_download(b, z, &out.buffer, 0, sizeof z), NPU_OK);
    memcpy(y, cpu.buffer.handle, sizeof y);
    for (int i = 0; i < 24; i++) {
        NPU_CHECK_EQ(y[i], x[i] > 0 ? x[i] : 0);
        NPU_CHECK_NEAR(z[i], exp((double)x[i]), 1e-5);
    }
    NPU_CHECK_EQ(npu_sim_count(r.sims[1]).bytes_up, 2 * sizeof x); /* the one above, and z */
    NPU_CHECK_EQ(npu_sim_count(r.sims[1]).bytes_down, 2 * sizeof x);
    drop(&in);
    drop(&out);
    drop(&cpu);
    rig_end(&r);
}

/* What cannot be bound is refused, with words, and what was bound stays. */
static void test_bound_wrong(void)
{
    static const struct {
        const char *what;
        npu_status status;
    } cases[] = {
        { "backend", NPU_ERR_NOT_FOUND }, { "null", NPU_ERR_INVALID_ARGUMENT }, { "size", NPU_ERR_INVALID_ARGUMENT },
        { "rank", NPU_ERR_INVALID_ARGUMENT }, { "dtype", NPU_ERR_DTYPE }, { "dims", NPU_ERR_SHAPE },
        { "fewer", NPU_ERR_RANK }, { "outside", NPU_ERR_RANGE }, { "far", NPU_ERR_RANGE },
        { "strides", NPU_ERR_UNSUPPORTED }, { "odd", NPU_ERR_UNSUPPORTED }, { "copy", NPU_ERR_UNSUPPORTED },
    };
    NPU_ITEM("F54");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int is_output = 0; is_output < 2; is_output++) {
            rig r = bound_rig(false, false, 1);
            npu_backend plain = *r.backends[0];
            const char *what = cases[i].what;
            held h = hold(r.backends[0], 128, 0, 2, DIMS(4, 6));
            npu_tensor *t = tensor_of(&h);
            uint32_t backend = strcmp(what, "backend") == 0 ? 2 : 0;
            float x[24], y[24];
            plain.copy = strcmp(what, "copy") == 0 ? NULL : plain.copy;
            r.backends[0] = &plain;
            t->size = strcmp(what, "size") == 0 ? 8 : t->size;
            t->rank = strcmp(what, "rank") == 0 ? 99 : strcmp(what, "fewer") == 0 ? 1 : t->rank;
            t->dtype = strcmp(what, "dtype") == 0 ? NPU_I32 : t->dtype;
            t->dims[0] = strcmp(what, "dims") == 0 ? 3 : t->dims[0];
            t->offset = strcmp(what, "outside") == 0 ? 36 : strcmp(what, "far") == 0 ? UINT64_MAX - 3
                : strcmp(what, "odd") == 0 ? 2 : 0;
            t->strides[0] = strcmp(what, "strides") == 0 ? 7 : t->strides[0];
            t = strcmp(what, "null") == 0 ? NULL : t;
            fill(x, 24, 1);
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            npu_test_input(r.exec, "x", x, sizeof x);
            npu_exec_set_output(r.exec, "y", y, sizeof y);
            NPU_CHECK_STATUS(is_output ? npu_exec_set_output_tensor(r.exec, "y", backend, t)
                                       : npu_exec_set_input_tensor(r.exec, "x", backend, t), cases[i].status);
            NPU_CHECK_THAT(npu_exec_diag(r.exec)->status == cases[i].status &&
                           strstr(npu_exec_diag(r.exec)->message, is_output ? "output 0 ('y')" : "input 0 ('x')"),
                           "%s: %s", what, npu_exec_diag(r.exec)->message);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), cases[i].status); /* once */
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            NPU_CHECK_EQ(y[3], x[3] > 0 ? x[3] : 0);
            drop(&h);
            rig_end(&r);
        }
    }
}

/* Between two devices of which one lets the host see its memory, nothing passes through memory of the exec. */
static void test_map(void)
{
    static const char *const allow[2] = { "aten.relu.default", "aten.abs.default" };
    NPU_ITEM("F54");
    for (int mapped = 0; mapped < 3; mapped++) { /* 0: none of them */
        npu_sim_desc desc[2];
        memset(desc, 0, sizeof desc);
        for (int i = 0; i < 2; i++) {
            desc[i].allow = &allow[i];
            desc[i].num_allow = 1;
            desc[i].maps = mapped == i + 1;
            desc[i].emulate = npu_ref_backend();
        }
        rig r = rig_start(desc, 2);
        npu_value x = npu_input(r.graph, "x", F32(24));
        float in[24], out[24];
        npu_output(r.graph, "y", npu_abs(r.graph, npu_relu(r.graph, x)));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        fill(in, 24, 9);
        npu_test_input(r.exec, "x", in, sizeof in);
        npu_exec_set_output(r.exec, "y", out, sizeof out);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_EQ(out[7], in[7] > 0 ? in[7] : 0);
        npu_sim_counters a = npu_sim_count(r.sims[0]), b = npu_sim_count(r.sims[1]);
        NPU_CHECK_EQ(a.calls[NPU_SIM_MAP], mapped == 1);
        NPU_CHECK_EQ(b.calls[NPU_SIM_MAP], mapped == 2);
        NPU_CHECK_EQ(a.bytes_down, mapped == 1 ? 0 : sizeof in);
        NPU_CHECK_EQ(b.bytes_up, mapped == 2 ? 0 : sizeof in);
        if (mapped) { /* a map that gives nothing, and the run after it */
            npu_sim_fail(r.sims[mapped - 1], NPU_SIM_MAP, 1, NPU_ERR_IO);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_ERR_BACKEND);
            NPU_CHECK(strstr(npu_exec_diag(r.exec)->message, "copy of '"));
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        }
        rig_end(&r);
    }
}

/* ---- forms of the device's own ---------------------------------------------------------------------------- */

/* conv -> relu -> [cat on the CPU, or refused] -> abs -> pool, on values of rank 4, and one of rank 3 beside. */
static void build_formed(npu_graph *g)
{
    npu_value none = { 0 }, x = npu_input(g, "x", F32(2, 3, 6, 5)), h = npu_state(g, "h", F32(2, 4, 6, 5));
    npu_value y = npu_relu(g, npu_conv2d(g, x, W(4, 3, 3, 3), none, &(npu_conv2d_attrs){ .padding = { 1, 1 } }));
    y = npu_add(g, y, h);
    npu_update(g, h, y);
    npu_value both[2] = { y, npu_abs(g, y) };
    npu_output(g, "y", npu_relu(g, npu_cat(g, both, 2, 1)));
    npu_output(g, "z", npu_reshape(g, npu_neg(g, y), DIMS(2, 4, 30), 3));
    npu_output(g, "x2", npu_abs(g, x));
}

/* The numbers are those of the CPU alone, whoever converts, with what is bound as a buffer, in order or overlapped; memory
   is planned by the size of the forms, and nothing is converted between two groups of the device. */
static void test_forms(void)
{
    NPU_ITEM("R1.18");
    NPU_ITEM("S1.31");
    for (int k = 0; k < 48; k++) {
        npu_sim_desc desc[2];
        bool core = k & 1, split = k & 2, overlap = k & 4, late = k & 8;
        uint32_t sims = k < 16 ? 1 : 2; /* with two, convolutions and abs are on the second, which is dense from 32 on */
        static const char *const first[] = { "aten.relu.default", "aten.add.Tensor", "aten.neg.default" };
        static const char *const deny[] = { "aten.cat.default" };
        rig r, c = rig_start(NULL, 0);
        float x[180], y[2][480], z[2][240], x2[2][180];
        memset(desc, 0, sizeof desc);
        for (int i = 0; i < 2; i++) {
            desc[i].emulate = npu_ref_backend();
            desc[i].emulate_all = true;
            desc[i].pads_channels = i == 0 || k < 32;
            desc[i].core_converts = core;
            desc[i].virtual_time = true;
            desc[i].is_late = late;
            desc[i].deny = deny;
            desc[i].num_deny = split;
        }
        if (sims == 2) {
            desc[0].allow = first;
            desc[0].num_allow = 3;
        }
        r = rig_start(desc, sims);
        r.exec_desc.overlap = r.desc.overlap = overlap;
        r.exec_desc.clock = npu_sim_clock;
        build_formed(r.graph);
        build_formed(c.graph);
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        NPU_CHECK_STR(r.diag.message, "");
        NPU_CHECK_STATUS(rig_make(&c), NPU_OK);
        for (int i = 0; i < 2 && r.exec; i++) {
            npu_exec *e = i ? c.exec : r.exec;
            npu_test_input(e, "x", x, sizeof x);
            npu_exec_set_output(e, "y", y[i], sizeof y[i]);
            npu_exec_set_output(e, "z", z[i], sizeof z[i]);
            npu_exec_set_output(e, "x2", x2[i], sizeof x2[i]);
        }
        for (uint32_t run = 0; run < 3 && r.exec; run++) {
            fill(x, 180, run);
            NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(c.exec), NPU_OK);
            NPU_CHECK_BYTES(y[0], y[1], sizeof y[0]);
            NPU_CHECK_BYTES(z[0], z[1], sizeof z[0]);
            NPU_CHECK_BYTES(x2[0], x2[1], sizeof x2[0]);
        }
        if (k == 0 || k == 1) { /* x and h up; y, z, x2 and h down: the core moves the padding, too, where it converts */
            npu_sim_counters n = npu_sim_count(r.sims[0]);
            npu_memory m;
            uint64_t form = 2 * 6 * 5 * 32 * 4, weights = 4 * 3 * 3 * 3 * 4;
            NPU_CHECK_EQ(n.bytes_up, weights + 3 * (core ? 2 * form : (180 + 240) * 4));
            NPU_CHECK_EQ(n.bytes_down, 3 * (core ? 3 * form + 960 : (480 + 240 + 180 + 240) * 4));
            NPU_CHECK_STATUS(npu_plan_memory(npu_program_plan(r.program), 0, &m), NPU_OK);
            NPU_CHECK(m.activations >= 4 * form && m.activations % 32 == 0);
        }
        rig_end(&r);
        rig_end(&c);
        NPU_CHECK_THAT(!npu_test.bad_checks, "case %d", k);
    }
}

/* A dense buffer of the device as an input that has a form there, and as an output. */
static void test_forms_bound(void)
{
    NPU_ITEM("R1.18");
    for (int core = 0; core < 2; core++) {
        npu_sim_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.pads_channels = true;
        desc.core_converts = core;
        rig r = rig_start(&desc, 1);
        float x[24], y[24];
        npu_output(r.graph, "y", npu_relu(r.graph, npu_input(r.graph, "x", F32(1, 3, 2, 4))));
        NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
        held in = hold(r.backends[0], 96, 0, 4, DIMS(1, 3, 2, 4)), out = hold(r.backends[0], 96, 0, 4, DIMS(1, 3, 2, 4));
        NPU_CHECK_STATUS(npu_exec_set_input_tensor(r.exec, "x", 0, tensor_of(&in)), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_set_output_tensor(r.exec, "y", 0, tensor_of(&out)), NPU_OK);
        fill(x, 24, 5);
        NPU_CHECK_STATUS(buffer_upload(r.backends[0], &in.buffer, 0, x, sizeof x), NPU_OK);
        NPU_CHECK_STATUS(npu_exec_run(r.exec), NPU_OK);
        NPU_CHECK_STATUS(buffer_download(r.backends[0], y, &out.buffer, 0, sizeof y), NPU_OK);
        for (int i = 0; i < 24; i++) {
            NPU_CHECK_EQ(y[i], x[i] > 0 ? x[i] : 0);
        }
        drop(&in);
        drop(&out);
        rig_end(&r);
    }
}

/* Forms that make no sense, each with its words. */
static struct {
    const npu_backend *sim;
    int lie;
    npu_form form;
    int64_t dims[4];
    uint32_t order[4];
} liar;

static npu_status lying_compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_status status = liar.sim->compile(ctx, group, out);
    npu_form *f = &liar.form;
    uint32_t order[4] = { 0, 2, 3, 1 };
    int64_t dims[4] = { 1, 2, 4, 32 };
    npu_form form = { sizeof form, 0, 9, NPU_FORM_BY_CORE, 2 * 4 * 32 * 4, liar.dims, liar.order };
    memcpy(liar.dims, dims, sizeof dims);
    memcpy(liar.order, order, sizeof order);
    *f = form;
    out->forms = f;
    out->num_forms = 1;
    switch (liar.lie) {
    case 0: f->value = 99; break;
    case 1: f->id = 0; break;
    case 2: f->bytes = 0; break;
    case 3: f->bytes = UINT64_MAX; break;
    case 4: f->conversion = 2; break;
    case 5: f->dims = NULL; break;
    case 6: liar.dims[3] = 2; break;
    case 7: liar.dims[0] = INT64_MAX; break;
    case 8: liar.order[3] = 2; break;
    case 9: liar.order[0] = 4; break;
    case 10: f->bytes -= 4; break;
    case 11: f->size = 20; break;
    case 12: out->forms = NULL; break;
    case 13: f->size = (uint32_t)offsetof(npu_form, dims); break; /* older: without dims */
    case 14: f->value = 1; break; /* a weight */
    case 15: liar.dims[1] = -2; break;
    default: out->forms = NULL, out->num_forms = 0;
    }
    return status;
}

static void test_forms_wrong(void)
{
    static const char *const words[] = {
        "value 99, id 9, conversion 1, bytes 1024}: the group has fewer values", "id or bytes cannot be", "id or bytes cannot be", "id or bytes cannot be",
        "no such conversion", "dims, order and bytes", "dims, order and bytes", "dims, order and bytes",
        "dims, order and bytes", "dims, order and bytes", "dims, order and bytes", "1 forms, but their size is 20",
        "1 forms, but no array", "dims, order and bytes", "it is a weight", "dims, order and bytes", "",
    };
    NPU_ITEM("R1.18");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        rig r = rig_start(NULL, 1);
        npu_graph *g = r.graph;
        npu_backend b = *r.backends[0];
        bool is_right = i + 1 == sizeof words / sizeof words[0];
        liar.sim = r.backends[0];
        liar.lie = (int)i;
        b.compile = lying_compile;
        r.backends[0] = &b;
        npu_output(g, "y", npu_add(g, npu_input(g, "x", F32(1, 3, 2, 4)), W(1, 3, 2, 4)));
        NPU_CHECK_STATUS(rig_make(&r), is_right ? NPU_OK : NPU_ERR_BACKEND);
        NPU_CHECK_THAT(strstr(r.diag.message, words[i]) != NULL, "%d: %s", (int)i, r.diag.message);
        rig_end(&r);
    }
}

/* ---- tables and contexts of devices ------------------------------------------------------------------------ */

/* Two devices of one make with tables of their own: each takes what its table says, its groups come back from a context
   without compiling, and that of the other device is of no use to it. */
static void test_contexts(void)
{
    static const char *const tables[2][2] = { { "aten.relu.default", "aten.abs.default" }, { "aten.abs.default" } };
    static const char *const names[2] = { "soc0", "soc1" };
    static uint8_t contexts[2][1 << 14];
    uint64_t sizes[2];
    NPU_ITEM("S1.41");
    NPU_ITEM("S1.43");
    for (int pass = 0; pass < 2; pass++) { /* to save, then to load one's own and the other's */
        for (int k = 0; k < 2; k++) {
            npu_sim_desc desc;
            npu_load_report report;
            memset(&desc, 0, sizeof desc);
            desc.name = names[k];
            desc.allow = tables[k];
            desc.num_allow = k ? 1 : 2;
            desc.emulate = npu_ref_backend();
            rig r = rig_start(&desc, 1);
            npu_graph *g = r.graph;
            npu_value x = npu_input(g, "x", F32(4, 6)), a = npu_relu(g, x), b = npu_abs(g, npu_neg(g, a));
            npu_output(g, "y", b);
            NPU_CHECK_STATUS(rig_make(&r), NPU_OK);
            NPU_CHECK_EQ(npu_plan_op_backend(r.plan, npu_value_producer(g, a, NULL), NULL, NULL), k);
            NPU_CHECK_EQ(npu_plan_op_backend(r.plan, npu_value_producer(g, b, NULL), NULL, NULL), 0);
            if (pass == 0) {
                sizes[k] = sizeof contexts[k];
                NPU_CHECK_STATUS(npu_program_save(r.program, contexts[k], &sizes[k]), NPU_OK);
            }
            for (int from = 0; pass && from < 2; from++) {
                npu_program *loaded = NULL;
                uint64_t compiles = npu_sim_count(r.sims[0]).calls[NPU_SIM_COMPILE];
                NPU_CHECK_STATUS(npu_program_load(&loaded, r.plan, contexts[from], sizes[from], &report, &r.diag), NPU_OK);
                NPU_CHECK_EQ(report.num_loaded, from == k ? 2 - k : 0);
                NPU_CHECK_EQ(npu_sim_count(r.sims[0]).calls[NPU_SIM_COMPILE] - compiles, from == k ? 0 : 2 - k);
                npu_program_destroy(loaded);
            }
            rig_end(&r);
        }
    }
}

int main(void)
{
    NPU_RUN(test_bound);
    NPU_RUN(test_chained);
    NPU_RUN(test_bound_elsewhere);
    NPU_RUN(test_bound_wrong);
    NPU_RUN(test_map);
    NPU_RUN(test_forms);
    NPU_RUN(test_forms_bound);
    NPU_RUN(test_forms_wrong);
    NPU_RUN(test_contexts);
    return npu_test_done();
}
