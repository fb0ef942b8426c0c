/* A small device made with the declarations of 0.2 alone, as somebody's binary from then would be: f32 relu and add, in
   memory that nobody else may touch. tests/test_frozen.c runs models on it with today's core. */
#include "frozen_0_2.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FROZEN_BACKEND
#define FROZEN_BACKEND frozen_backend
#endif

const void *FROZEN_BACKEND(unsigned counts[4]);

typedef struct step {
    uint32_t in[2], out; /* values of the group; in[1] V02_NO_INDEX = relu */
    uint32_t id;
    size_t len;
    float alpha;
} step;

typedef struct program {
    uint32_t num_steps, num_pairs, num_values;
    step *steps;
    v02_inplace *pairs;
    const char **variants;
} program;

static struct {
    v02_backend backend;
    v02_region regions[2];
    unsigned *counts; /* submits, places, uploads, ops in a place of their operand */
} device;

static const v02_abi_row rows[] = { { .kind = 0x20040, .device_kind = 7, .layout = "" },
                                    { .kind = 0x20001, .device_kind = 8, .layout = "" } };
static const v02_abi abi = { .size = sizeof abi, .row_size = sizeof rows[0], .num_rows = 2, .rows = rows };

static size_t length(const v02_spec *spec)
{
    size_t n = 1;
    for (uint32_t i = 0; i < spec->rank; i++) {
        n *= (size_t)spec->dims[i];
    }
    return n;
}

static const char *refusal(const v02_op_info *op)
{
    bool is_add = strcmp(op->name, "aten.add.Tensor") == 0;
    if (!is_add && strcmp(op->name, "aten.relu.default") != 0) {
        return "neither relu nor add";
    }
    for (uint32_t i = 0; op->args && i < op->num_in + op->num_out; i++) {
        const v02_spec *spec = i < op->num_in ? op->in[i] : op->out[i - op->num_in];
        if (!spec || spec->dtype != V02_F32 || spec->quant || length(spec) != length(op->out[0])) {
            return "f32 of one size";
        }
    }
    return !is_add && op->args && op->device_kind != 7 ? "relu is 7" : NULL;
}

static v02_status supports(void *ctx, const v02_op_info *op, v02_support *answer)
{
    const char *words = refusal(op);
    (void)ctx;
    answer->reason = words ? V02_REASON_OP : 0;
    snprintf(answer->text, sizeof answer->text, "%s", words ? words : "");
    return V02_OK;
}

static v02_status allocate(void *ctx, const v02_allocation *a, v02_buffer *out)
{
    char *block = calloc(1, (size_t)a->bytes + 64);
    (void)ctx;
    out->handle = block ? block + 1 : NULL; /* no address of the host */
    out->region = a->region;
    out->bytes = a->bytes;
    return block ? V02_OK : V02_ERR_NO_MEMORY;
}

static void release_buffer(void *ctx, v02_buffer *buffer)
{
    (void)ctx;
    free((char *)buffer->handle - 1);
}

static v02_status upload(void *ctx, const v02_transfer *t, v02_fence *fence)
{
    (void)ctx, (void)fence;
    device.counts[2]++;
    memcpy((char *)t->to->handle - 1 + t->to_offset, t->from_host, (size_t)t->bytes);
    return t->to_offset + t->bytes <= t->to->bytes ? V02_OK : V02_ERR_RANGE;
}

static v02_status download(void *ctx, const v02_transfer *t, v02_fence *fence)
{
    (void)ctx, (void)fence;
    memcpy(t->to_host, (const char *)t->from->handle - 1 + t->from_offset, (size_t)t->bytes);
    return t->from_offset + t->bytes <= t->from->bytes ? V02_OK : V02_ERR_RANGE;
}

static void release(void *ctx, void *made)
{
    program *p = made;
    (void)ctx;
    free(p->steps);
    free(p->pairs);
    free((void *)p->variants);
    free(p);
}

static void compile_op(program *p, uint32_t index, const v02_group_op *op)
{
    step *s = &p->steps[p->num_steps++];
    v02_inplace *pair = &p->pairs[p->num_pairs++];
    memset(pair, 0xa5, sizeof *pair); /* what 0.2 does not know is never read */
    pair->size = sizeof *pair;
    pair->op = index;
    pair->operand = pair->result = 0;
    s->id = op->info->op;
    s->in[0] = op->in[0];
    s->in[1] = op->info->num_in > 1 ? op->in[1] : V02_NO_INDEX;
    s->out = op->out[0];
    s->len = length(op->info->out[0]);
    for (uint32_t i = 0; i < op->info->num_args; i++) {
        const v02_bound_arg *arg = v02_op_arg_at(op->info, i);
        s->alpha = strcmp(arg->name, "alpha") == 0 ? (float)arg->f : s->alpha;
    }
    p->variants[index] = "frozen";
}

static v02_status compile(void *ctx, const v02_group *group, v02_compiled *out)
{
    program *p = calloc(1, sizeof *p);
    (void)ctx;
    p->num_values = group->num_values;
    p->steps = calloc(group->num_ops, sizeof *p->steps);
    p->pairs = calloc(group->num_ops, sizeof *p->pairs);
    p->variants = calloc(group->num_ops, sizeof *p->variants);
    for (uint32_t i = 0; i < group->num_ops; i++) {
        if (group->values[group->ops[i]->out[0]]->role == V02_GROUP_WEIGHT) {
            out->failed_op = group->ops[i]->info->op;
            release(ctx, p);
            return V02_ERR_UNSUPPORTED;
        }
        compile_op(p, i, group->ops[i]);
    }
    out->program = p;
    out->scratch = 100;
    out->scratch_alignment = 128;
    out->inplace = p->pairs;
    out->num_inplace = p->num_pairs;
    out->variants = p->variants;
    return V02_OK;
}

static v02_status place(void *ctx, void *made, const v02_places *places)
{
    const program *p = made;
    (void)ctx;
    device.counts[1]++;
    return places->num_values == p->num_values && places->scratch->offset % 128 == 0 ? V02_OK : V02_ERR_RANGE;
}

static float *address(const v02_binding *b, uint32_t value)
{
    const v02_place *at = v02_place_at(b->places, value);
    return (float *)(void *)((char *)b->buffers[at->buffer]->handle - 1 + at->offset);
}

static v02_status submit(void *ctx, void *made, const v02_binding *b, v02_fence *fence)
{
    const program *p = made;
    const v02_place *scratch = b->places->scratch;
    (void)ctx, (void)fence;
    device.counts[0]++;
    memset((char *)b->buffers[scratch->buffer]->handle - 1 + scratch->offset, 0xee, 100);
    for (uint32_t i = 0; i < p->num_steps; i++) {
        const step *s = &p->steps[i];
        const float *x = address(b, s->in[0]), *z = s->in[1] == V02_NO_INDEX ? NULL : address(b, s->in[1]);
        float *y = address(b, s->out);
        device.counts[3] += x == y;
        for (size_t k = 0; k < s->len; k++) {
            y[k] = z ? x[k] + s->alpha * z[k] : x[k] > 0 ? x[k] : 0;
        }
        if (b->op_done) {
            b->op_done(b->op_done_ctx, s->id, b->clock(), b->clock());
        }
    }
    return V02_OK;
}

const void *FROZEN_BACKEND(unsigned counts[4])
{
    memset(&device, 0xa5, sizeof device); /* past what 0.2 knows, too */
    device.counts = counts;
    for (uint32_t i = 0; i < 2; i++) {
        v02_region region = { .size = sizeof region, .id = i, .name = "memory", .alignment = i ? 64 : 32 };
        device.regions[i] = region;
    }
    v02_backend backend = { .size = sizeof backend, .api_version = V02_BACKEND_API, .name = "frozen", .num_regions = 2,
                            .regions = device.regions, .abi = &abi, .supports = supports, .alloc = allocate,
                            .free = release_buffer, .upload = upload, .download = download, .compile = compile,
                            .place = place, .submit = submit, .release = release };
    device.backend = backend;
    return &device.backend;
}
