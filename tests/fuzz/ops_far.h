/* ops_far.h - what graphs of seeds from OPS_FAR on go through besides: bindings that are wrong or overlap, inputs
   as tensors, the text with something in it changed, ops cut out and run, calls of one op with spoilt tensors, and
   memory that runs out on the ways of ops_deep.h. */
#ifndef OPS_FAR_H
#define OPS_FAR_H

#include "ops_deep.h"

static npu_exec *ops_exec(ops_case *c, const npu_graph *g)
{
    const npu_backend *cpu = c->w->cpu;
    npu_exec *exec = NULL;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    return ops_is_ok(c, npu_exec_create_simple(&exec, g, &cpu, 1, &diag), &diag) ? exec : NULL;
}

static void ops_compare(ops_case *c, npu_exec *exec, const ops_result *want)
{
    ops_result r;
    memset(&r, 0, sizeof r);
    ops_result_take(&r, exec, want->num);
    if (!c->is_random) {
        ops_same(&r, want, OPS_NUMBERS);
    }
    ops_result_free(&r);
}

/* ---- wrong bindings ---- */

static npu_status ops_bind_wrong_input(ops_case *c, npu_exec *exec)
{
    const ops_input *in = &c->inputs[ops_below(&c->r, c->num_inputs)];
    npu_array array = { in->name, in->now, in->data };
    uint32_t at = ops_below(&c->r, array.spec.rank);
    size_t size;
    switch (ops_below(&c->r, 8)) {
    case 0: array.spec.dims[at] += ops_chance(&c->r, 50) ? 1 : -1; break;
    case 1: array.spec.dims[at] = ops_hostile_int(&c->r); break;
    case 2: array.spec.rank = (uint8_t)ops_below(&c->r, 12); break;
    case 3: array.spec.dtype = (uint8_t)ops_dtype(&c->r, true); break;
    case 4: array.spec.cls = (uint8_t)ops_below(&c->r, 5); break;
    case 5: array.name = ops_word(&c->r, true); break;
    case 6: return npu_exec_set_input_at(exec, ops_below(&c->r, 40), NULL);
    default: array.data = NULL; break;
    }
    if (array.data && array.spec.rank <= NPU_MAX_RANK && npu_spec_size(&array.spec, &size) == NPU_OK &&
        size != in->size) {
        if (size > OPS_MAX_BLOCK) {
            return NPU_OK;
        }
        array.data = ops_take(&c->keep, size); /* may be right, of a symbol */
    }
    return ops_chance(&c->r, 80) ? npu_exec_set_input(exec, &array)
                                 : npu_exec_set_input_at(exec, ops_below(&c->r, c->num_inputs + 1), &array);
}

static npu_status ops_bind_wrong_output(ops_case *c, npu_exec *exec, const ops_result *want)
{
    uint32_t i = ops_below(&c->r, want->num);
    size_t size = want->num ? want->outs[i].size : 0, odd = ops_below(&c->r, 3);
    size = ops_chance(&c->r, 50) ? size + odd : size < odd ? 0 : size - odd;
    void *room = ops_chance(&c->r, 90) ? ops_take(&c->keep, size) : NULL;
    return ops_chance(&c->r, 80) ? npu_exec_set_output_at(exec, i, room, size)
                                 : npu_exec_set_output(exec, ops_word(&c->r, true), room, size);
}

/* Whatever is bound is taken or refused in words; what is right afterwards runs as before. */
static void ops_misuse(ops_case *c, const ops_result *want)
{
    npu_exec *exec = want->status || c->is_huge || !c->num_inputs ? NULL : ops_exec(c, c->g);
    npu_status status = exec ? ops_feed(c, exec, false) : NPU_OK;
    for (uint32_t n = 8; n && exec && want->num; n--) {
        uint32_t way = ops_below(&c->r, 5);
        status = way < 2   ? ops_bind_wrong_input(c, exec)
                 : way < 4 ? ops_bind_wrong_output(c, exec, want)
                           : npu_exec_run(exec);
        ops_is_ok(c, status, npu_exec_diag(exec));
    }
    for (uint32_t i = 0; i < want->num && exec; i++) {
        status = npu_exec_set_output_at(exec, i, ops_take(&c->keep, want->outs[i].size), want->outs[i].size);
        ops_must(c, status, npu_exec_diag(exec));
    }
    if (exec && ops_must(c, ops_feed(c, exec, false), npu_exec_diag(exec))) {
        ops_is_ok(c, npu_exec_run(exec), npu_exec_diag(exec)); /* which may say, once, what was refused */
        npu_exec_reset_state(exec);
        if (ops_must(c, npu_exec_run(exec), npu_exec_diag(exec))) {
            ops_compare(c, exec, want);
        }
    }
    npu_exec_destroy(exec);
}

/* An output in the memory of an input, or over a part of it: refused, or right. */
static void ops_overlap(ops_case *c, const ops_result *want)
{
    npu_exec *exec = want->status || c->is_huge || !c->num_inputs || !want->num ? NULL : ops_exec(c, c->g);
    if (!exec) {
        return;
    }
    const ops_input *in = &c->inputs[ops_below(&c->r, c->num_inputs)];
    uint32_t out = ops_below(&c->r, want->num);
    size_t size = want->outs[out].size, at = ops_chance(&c->r, 60) ? 0 : ops_below(&c->r, (uint32_t)in->size + 1);
    uint8_t *room = (uint8_t *)ops_take(&c->keep, size > in->size ? size + at : in->size + size + at);
    if (in->size) {
        memcpy(room, in->data, in->size);
    }
    npu_status status = ops_feed(c, exec, false);
    npu_status bound = npu_exec_set_input(exec, &(npu_array){ in->name, in->now, room });
    status = status ? status : bound == NPU_ERR_NOT_FOUND ? NPU_OK : bound;
    status = status ? status : npu_exec_set_output_at(exec, out, room + at, size);
    status = status ? status : npu_exec_run(exec);
    if (status == NPU_ERR_INVALID_ARGUMENT ? ops_is_ok(c, status, npu_exec_diag(exec))
                                           : ops_must(c, status, npu_exec_diag(exec))) {
        ops_compare(c, exec, want);
    }
    npu_exec_destroy(exec);
}

/* Inputs as tensors, in buffers of the CPU: some are at an offset that is not theirs or have another dim. */
static void ops_buffers(ops_case *c, const ops_result *want)
{
    npu_exec *exec = want->status || c->is_huge ? NULL : ops_exec(c, c->g);
    npu_status status = exec ? ops_feed(c, exec, false) : NPU_OK;
    for (uint32_t i = 0; i < c->num_inputs && exec && !status; i++) {
        const ops_input *in = &c->inputs[i];
        npu_tensor t;
        npu_buffer buffer;
        npu_spec spec = in->now;
        if (in->size &&
            npu_tensor_set_host(&t, &buffer, (npu_dtype)spec.dtype, spec.rank, spec.dims, in->data) == NPU_OK) {
            npu_buffer *kept = (npu_buffer *)ops_take(&c->keep, sizeof *kept);
            *kept = buffer;
            t.buffer = kept;
            t.offset += ops_chance(&c->r, 5) ? ops_below(&c->r, 9) : 0;
            t.dims[0] += ops_chance(&c->r, 5);
            status = npu_exec_set_input_tensor(exec, in->name, ops_below(&c->r, 20) == 0, &t);
            bool is_wrong = t.offset || memcmp(t.dims, spec.dims, spec.rank * sizeof *t.dims) != 0;
            if (status == NPU_ERR_NOT_FOUND || status == NPU_ERR_UNSUPPORTED || is_wrong) {
                ops_is_ok(c, status, npu_exec_diag(exec));
                status = npu_exec_set_input(exec, &(npu_array){ in->name, in->now, in->data });
                status = status == NPU_ERR_NOT_FOUND ? NPU_OK : status;
                if (is_wrong) {
                    npu_exec_run(exec);
                }
            }
        }
    }
    status = status || !exec ? status : npu_exec_run(exec);
    if (exec && ops_must(c, status, npu_exec_diag(exec)) && !c->has_state) {
        ops_compare(c, exec, want);
    }
    npu_exec_destroy(exec);
}

/* ---- other graphs ---- */

/* Not more than a run of some seconds. */
static bool ops_is_small(const npu_graph *g)
{
    for (uint32_t i = 1; i <= npu_graph_num_values(g); i++) {
        npu_value v = { i };
        size_t len = 0;
        if (npu_spec_len(npu_value_spec(g, v), &len) == NPU_ERR_OVERFLOW || len > 4 * OPS_MAX_LEN) {
            return false;
        }
    }
    for (uint32_t i = 0; i < npu_graph_num_children(g); i++) {
        if (!ops_is_small(npu_graph_child(g, i))) {
            return false;
        }
    }
    return true;
}

/* A graph whose inputs are not those of the case: with random data, and any dims for symbols. */
static void ops_run_any(ops_case *c, const npu_graph *g)
{
    npu_exec *exec = ops_is_small(g) ? ops_exec(c, g) : NULL;
    npu_status status = NPU_OK;
    for (uint32_t i = 0; i < npu_graph_num_inputs(g) && exec && !status; i++) {
        npu_spec spec = *npu_value_spec(g, npu_graph_input(g, i));
        size_t size = 0;
        for (uint32_t k = 0; k < spec.rank; k++) {
            spec.dims[k] = spec.dims[k] < 0 ? ops_between(&c->r, 0, 3) : spec.dims[k];
        }
        if (npu_spec_size(&spec, &size) == NPU_OK && size <= OPS_MAX_BLOCK) {
            uint8_t *data = (uint8_t *)ops_take(&c->keep, size);
            ops_fill(&c->r, (npu_dtype)spec.dtype, data, size, c->tame);
            ops_is_ok(c, npu_exec_set_input_at(exec, i, &(npu_array){ NULL, spec, data }), npu_exec_diag(exec));
        }
    }
    for (int run = 0; run < 2 && exec; run++) {
        ops_is_ok(c, npu_exec_run(exec), npu_exec_diag(exec));
    }
    npu_exec_destroy(exec);
}

/* Somewhere in the text: another number, dtype or sign, a byte less, a line twice or not at all. */
static void ops_change_text(ops_case *c, const npu_text *from, npu_text *to)
{
    static const char *const words[] = {
        "-1", "0", "1", "2", "7", "9223372036854775807", "-9223372036854775808", "4294967296", "2147483648", "65536",
        "nan", "-inf", "1e300", "true", "none", "[]", "[0]", "f16", "i8", "bool", "c64", "u4", "f64", "i64", "%2", "%3",
        "=", ",", "(", "[" };
    size_t at = ops_below(&c->r, (uint32_t)from->len), end = at;
    while (at < from->len && strchr(" ,[](){}=:\n", from->data[at])) {
        at++;
    }
    while (at > 0 && !strchr(" ,[](){}=:\n", from->data[at - 1])) {
        at--;
    }
    end = at;
    while (end < from->len && !strchr(" ,[](){}=:\n", from->data[end])) {
        end++;
    }
    uint32_t way = ops_below(&c->r, 10);
    if (way == 9) {
        while (at > 0 && from->data[at - 1] != '\n') {
            at--;
        }
        while (end < from->len && from->data[end] != '\n') {
            end++;
        }
    }
    npu_text_append(to, from->data, at);
    if (way < 7) {
        npu_text_printf(to, "%s", OPS_PICK(&c->r, words));
    } else if (way == 7) {
        npu_text_printf(to, "%lld", (long long)ops_hostile_int(&c->r));
    }
    npu_text_append(to, from->data + end, from->len - end);
}

static void ops_changed_text(ops_case *c, bool is_json)
{
    npu_graph_desc desc = ops_graph_desc(c);
    npu_text text[2] = { npu_text_init(&c->w->allocator), npu_text_init(&c->w->allocator) };
    npu_status status = is_json ? npu_graph_print_json(c->g, &text[0]) : npu_graph_print(c->g, &text[0]);
    for (int n = 0; n < 12 && !status && text[0].len; n++) {
        npu_graph *g = NULL;
        npu_diag diag;
        memset(&diag, 0, sizeof diag);
        npu_text_free(&text[1]);
        ops_change_text(c, &text[0], &text[1]);
        if (text[1].status || !text[1].len) {
            break;
        }
        char *copy = (char *)ops_take(&c->keep, text[1].len); /* no NUL: reading past the end is seen */
        memcpy(copy, text[1].data, text[1].len);
        status = is_json ? npu_graph_parse_json(&g, copy, text[1].len, &desc, &diag)
                         : npu_graph_parse(&g, copy, text[1].len, &desc, &diag);
        if (ops_is_ok(c, status, &diag)) {
            npu_graph_validate(g, ops_report, c);
            ops_bind_params(c, g);
            ops_run_any(c, g);
            if (ops_chance(&c->r, 30)) { /* what was wrong stays, and another thing is */
                npu_text swap = text[0];
                text[0] = text[1];
                text[1] = swap;
            }
        }
        npu_graph_destroy(g);
        status = NPU_OK;
    }
    npu_text_free(&text[0]);
    npu_text_free(&text[1]);
}

static void ops_run_extracted(ops_case *c)
{
    npu_graph *g = ops_extract_some(c, 60);
    if (g) {
        ops_run_any(c, g);
    }
    npu_graph_destroy(g);
}

/* ---- one op with spoilt tensors ---- */

static void ops_spoil(ops_case *c, npu_tensor *t)
{
    uint32_t at = ops_below(&c->r, NPU_MAX_RANK);
    switch (ops_below(&c->r, 8)) {
    case 0: t->dims[at] = ops_hostile_int(&c->r); break;
    case 1: t->strides[at] = ops_chance(&c->r, 50) ? ops_between(&c->r, -3, 3) : ops_hostile_int(&c->r); break;
    case 2: t->offset = ops_chance(&c->r, 50) ? ops_below(&c->r, 17) : (uint64_t)ops_hostile_int(&c->r); break;
    case 3: t->dtype = (uint8_t)ops_dtype(&c->r, true); break;
    case 4: t->rank = (uint8_t)ops_below(&c->r, 12); break;
    case 5: t->buffer = ops_chance(&c->r, 30) ? NULL : t->buffer; break;
    case 6: t->dims[at] += ops_between(&c->r, -1, 1); break;
    default: t->size = ops_chance(&c->r, 30) ? 0 : t->size; break;
    }
}

static void ops_call_spoilt(ops_case *c)
{
    enum { MOST = 12 };
    npu_op op = { 1 + ops_below(&c->r, npu_graph_num_ops(c->g)) };
    npu_op_storage storage;
    npu_op_info info;
    npu_tensor tensors[2 * MOST], spoilt[2 * MOST];
    npu_buffer buffers[2 * MOST];
    npu_diag diag;
    npu_op_call_desc desc;
    memset(&storage, 0, sizeof storage);
    memset(&desc, 0, sizeof desc);
    memset(tensors, 0, sizeof tensors);
    bool ok = npu_op_describe(c->g, op, &info, &storage) == NPU_OK && info.num_in <= MOST && info.num_out <= MOST &&
              !c->is_huge && info.num_in + info.num_out;
    for (uint32_t i = 0; ok && i < info.num_in + info.num_out; i++) {
        const npu_spec *spec = i < info.num_in ? info.in[i] : info.out[i - info.num_in];
        size_t size = 0;
        const void *data = i < info.num_in ? npu_value_data(c->g, npu_op_operand_value(c->g, op, i), &size) : NULL;
        ok = ops_host_tensor(c, &tensors[i], &buffers[i], spec && spec->cls == NPU_CLASS_NONE ? NULL : spec, data);
    }
    for (int n = 0; n < 8 && ok; n++) {
        memcpy(spoilt, tensors, sizeof spoilt);
        for (uint32_t k = 1 + ops_below(&c->r, 2); k; k--) {
            ops_spoil(c, &spoilt[ops_below(&c->r, info.num_in + info.num_out)]);
        }
        desc.kind = ops_chance(&c->r, 98) ? info.kind : (npu_kind)ops_next(&c->r);
        desc.num_in = ops_chance(&c->r, 95) ? info.num_in : ops_below(&c->r, MOST);
        desc.num_out = ops_chance(&c->r, 95) ? info.num_out : ops_below(&c->r, MOST);
        desc.in = spoilt;
        desc.out = spoilt + info.num_in;
        desc.blob = info.attrs;
        desc.blob_size = ops_chance(&c->r, 95) ? info.attrs_size : ops_below(&c->r, info.attrs_size + 1);
        memset(&diag, 0, sizeof diag);
        ops_is_ok(c, npu_op_call(c->w->cpu, &desc, &diag), &diag);
    }
    npu_op_storage_free(&storage);
}

/* ---- all of it ---- */

/* The ways of ops_deep.h with the n-th allocation refused: nothing to compare with, and nothing is lost. */
static void ops_deep_failures(ops_case *c)
{
    ops_result none;
    memset(&none, 0, sizeof none);
    none.status = NPU_ERR_NO_MEMORY;
    for (int i = 0; i < 4; i++) {
        c->w->memory.fail_at = c->w->memory.calls + 1 + ops_below(&c->r, ops_chance(&c->r, 50) ? 60 : 600);
        switch (ops_below(&c->r, 6)) {
        case 0: case 1: ops_priced_split(c, &none); break;
        case 2: ops_planned(c, c->g, &none); break;
        case 3: ops_quantize(c, &none); break;
        case 4: ops_specialize(c, &none); break;
        default: ops_extract(c); break;
        }
        c->w->memory.fail_at = 0;
    }
}

static void ops_far_ways(ops_case *c, const ops_result *want)
{
    switch (ops_below(&c->r, 9)) {
    case 0: ops_stage(c, "misuse"); ops_misuse(c, want); break;
    case 1: ops_stage(c, "overlap"); ops_overlap(c, want); break;
    case 2: ops_stage(c, "buffers"); ops_buffers(c, want); break;
    case 3: case 4: ops_stage(c, "changed text"); ops_changed_text(c, false); break;
    case 5: ops_stage(c, "changed json"); ops_changed_text(c, true); break;
    case 6: ops_stage(c, "extracted"); ops_run_extracted(c); break;
    case 7: ops_stage(c, "spoilt call"); ops_call_spoilt(c); break;
    default: ops_stage(c, "deep failures"); ops_deep_failures(c); break;
    }
}

static void ops_one(ops_world *w, uint64_t seed)
{
    static ops_case c;
    size_t live = w->memory.live;
    const npu_backend *cpu = w->cpu;
    ops_way way = ops_way_of(&cpu, 1);
    ops_now.seed = seed;
    w->memory.refused = false;
    ops_now.stage = "make";
    if (ops_make(&c, w, seed)) {
        if (w->verbose) {
            npu_text text = npu_text_init(NULL);
            npu_graph_print(c.g, &text);
            printf("%s\nhostile %d, tame %d, huge %d\n", text.data ? text.data : "", c.hostile, c.tame, c.is_huge);
            npu_text_free(&text);
        }
        ops_stage(&c, "validate");
        if (c.not_typed) {
            ops_finding("a call was refused with the results said that it has");
        }
        npu_graph_validate(c.g, ops_report, &c);
        if (npu_graph_num_ops(c.g)) {
            ops_stage(&c, "print");
            ops_print_all(&c);
            ops_stage(&c, "run");
            way.again = true;
            way.captured = ops_chance(&c.r, 30);
            way.other_dims = true;
            ops_result want = ops_run(&c, c.g, &way);
            if (w->verbose) {
                printf("%s: %s\n", npu_status_name(want.status), want.diag.message);
            }
            if (want.status == NPU_OK && !c.is_huge) {
                ops_count_ran(&c, c.g);
            }
            ops_main_ways(&c, &want);
            if (c.deep) {
                ops_deep_ways(&c, &want);
            }
            for (uint32_t n = seed >= OPS_FAR ? ops_between(&c.r, 1, 3) : 0; n; n--) {
                ops_far_ways(&c, &want);
            }
            ops_result_free(&want);
            if (ops_chance(&c.r, 12)) {
                ops_with_failures(&c);
            }
        }
    }
    ops_now.stage = "end";
    npu_graph_destroy(c.g);
    ops_release(&c.keep);
    if (w->memory.live != live) {
        ops_finding("%lld bytes are lost", (long long)w->memory.live - (long long)live);
        w->memory.live = live;
    }
}

#endif
