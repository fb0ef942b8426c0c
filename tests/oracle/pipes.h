/* pipes.h - runs one block of a tile program as a core would: a queue per pipe, real memory, and delays that a seed decides. Each
   op reads its tiles at some time after it started and writes its result at some later time. Written apart from the
   checker and the CPU backend: it knows the ops of examples/tiles/programs.h, on f32. */
#ifndef NPU_PIPES_H
#define NPU_PIPES_H

#include "../npu_test.h"

enum { PIPES_OPS = 160, PIPES_LEN = 128, PIPES_MEMORY = 1 << 10, PIPES_VALUES = 256, PIPES_FLAGS = 8 * 8 * 64 };
enum { WAITING, STARTED, HAS_READ, IS_DONE };

typedef struct pipes_op {
    uint32_t kind, pipe, flag;
    uint32_t in[3], out, num_in;
    int64_t offsets[2], shape[2]; /* of load and store */
    uint32_t fed[2];              /* registers of the offsets, 0 = none */
    int64_t rows, cols, axis;     /* of operand 0 */
    double number;
    uint32_t scalar;          /* register that holds the number, 0 = none */
    bool transpose;
} pipes_op;

typedef struct pipes {
    pipes_op ops[PIPES_OPS];
    uint32_t num_ops; /* ids 1 .. */
    npu_tile_place places[PIPES_VALUES];
    int64_t dims[PIPES_VALUES][2];
    uint32_t root[PIPES_VALUES]; /* of tensors: index of the input + 1 */
    uint32_t overlapping;
    /* one run */
    uint64_t random;
    float *tensors[8]; /* by input */
    unsigned char memory[7][PIPES_MEMORY];
    int64_t registers[PIPES_VALUES];
    double scalars[PIPES_VALUES]; /* registers that the vector unit makes */
    double numbers[PIPES_OPS];    /* of ops with a number, as it was when they were issued */
    uint8_t state[PIPES_OPS], flags[PIPES_FLAGS];
    int64_t start[PIPES_OPS]; /* element of the tensor, decided when the op is issued */
    float results[PIPES_OPS][PIPES_LEN];
    uint32_t queue[8][PIPES_OPS], head[8], tail[8];
    int64_t block, blocks;
} pipes;

static inline void pipes_decode_op(pipes *p, const npu_graph *g, uint32_t id, npu_op_storage *storage)
{
    pipes_op *o = &p->ops[id];
    npu_op op = { id };
    npu_op_info info;
    NPU_CHECK_STATUS(npu_op_describe(g, op, &info, storage), NPU_OK);
    o->kind = info.kind;
    o->num_in = info.num_in < 3 ? info.num_in : 3;
    for (uint32_t i = 0; i < o->num_in; i++) {
        o->in[i] = npu_op_operand_value(g, op, i).id;
    }
    o->out = npu_op_result(g, op, 0).id;
    o->pipe = npu_tile_pipe(g, op);
    o->number = npu_op_float(&info, info.kind == NPU_ARITH_CONSTANT ? "value" : "rhs", 0);
    if (info.kind == NPU_BLOCK_MULS || info.kind == NPU_BLOCK_ADDS) {
        int fed = npu_op_dynamic_operand(&info, "rhs", 0);
        o->scalar = fed < 0 ? 0 : npu_op_operand_value(g, op, (uint32_t)fed).id;
    }
    o->axis = npu_op_int(&info, "axis", 0);
    o->transpose = npu_op_int(&info, "transpose", 0) != 0;
    if (info.kind == NPU_SYSTEM_SYNC_SRC || info.kind == NPU_SYSTEM_SYNC_DST) {
        uint32_t set = (uint32_t)npu_op_int(&info, "set_pipe", 0), wait = (uint32_t)npu_op_int(&info, "wait_pipe", 0);
        o->pipe = info.kind == NPU_SYSTEM_SYNC_SRC ? set : wait;
        o->flag = (set * 8 + wait) * 64 + (uint32_t)npu_op_int(&info, "event_id", 0);
    }
    o->pipe = info.kind == NPU_SYSTEM_BAR_V   ? (uint32_t)NPU_PIPE_V
              : info.kind == NPU_SYSTEM_BAR_M ? (uint32_t)NPU_PIPE_M
                                              : o->pipe;
    for (uint32_t i = 0; i < 2 && (info.kind == NPU_BLOCK_LOAD || info.kind == NPU_BLOCK_STORE); i++) {
        int fed = npu_op_dynamic_operand(&info, "offsets", i);
        o->offsets[i] = npu_op_int_at(&info, "offsets", i);
        o->shape[i] = npu_op_int_at(&info, "shapes", i);
        o->fed[i] = fed < 0 ? 0 : npu_op_operand_value(g, op, (uint32_t)fed).id;
    }
    if (info.kind == NPU_BLOCK_STORE) {
        o->in[1] = npu_op_operand_value(g, op, info.num_in - 1).id;
    }
    if (o->out && info.kind == NPU_BLOCK_STORE) {
        p->root[o->out] = p->root[o->in[1]];
    }
}

static inline void pipes_decode(pipes *p, const npu_graph *g, uint32_t overlapping)
{
    npu_op_storage storage = { 0 };
    npu_tile_desc desc = { 0 };
    memset(p, 0, sizeof *p);
    p->num_ops = npu_graph_num_ops(g);
    p->overlapping = overlapping;
    NPU_CHECK(p->num_ops < PIPES_OPS && npu_graph_num_values(g) < PIPES_VALUES);
    NPU_CHECK_STATUS(npu_tile_plan(g, &desc, p->places, NULL), NPU_OK);
    for (uint32_t i = 0; i < npu_graph_num_inputs(g); i++) {
        p->root[npu_graph_input(g, i).id] = i + 1;
    }
    for (uint32_t v = 1; v <= npu_graph_num_values(g); v++) {
        const npu_spec *s = npu_value_spec(g, (npu_value){ v });
        p->dims[v][0] = s->rank ? s->dims[0] : 1;
        p->dims[v][1] = s->rank > 1 ? s->dims[1] : 1;
    }
    for (uint32_t v = 1; v <= npu_graph_num_values(g); v++) {
        NPU_CHECK(p->places[v].offset + p->places[v].size <= PIPES_MEMORY);
    }
    for (uint32_t op = 1; op <= p->num_ops; op++) {
        pipes_decode_op(p, g, op, &storage);
    }
    npu_op_storage_free(&storage);
}

static inline float *pipes_tile(pipes *p, uint32_t value)
{
    return (float *)(void *)(p->memory[p->places[value].space] + p->places[value].offset);
}

/* Computes what the op at this time sees. */
static inline void pipes_read(pipes *p, uint32_t id)
{
    const pipes_op *o = &p->ops[id];
    float *y = p->results[id];
    int64_t rows = p->dims[o->out][0], cols = p->dims[o->out][1];
    const float *a = o->num_in && p->places[o->in[0]].space ? pipes_tile(p, o->in[0]) : NULL;
    const float *b = o->num_in > 1 && p->places[o->in[1]].space ? pipes_tile(p, o->in[1]) : NULL;
    const float *c = o->num_in > 2 && p->places[o->in[2]].space ? pipes_tile(p, o->in[2]) : NULL;
    int64_t inner = o->num_in ? p->dims[o->in[0]][1] : 0;
    if (a && !p->places[o->out].space && o->kind == NPU_BLOCK_SUM) {
        inner *= p->dims[o->in[0]][0]; /* all of it, into a register */
    }
    if (o->kind == NPU_BLOCK_STORE) {
        memcpy(y, a, (size_t)(o->shape[0] * o->shape[1]) * sizeof *y);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double x = a ? (double)a[i * cols + j] : 0, sum = 0;
            switch ((int)o->kind) {
            case NPU_BLOCK_LOAD:
                x = (double)p->tensors[p->root[o->in[0]] - 1][p->start[id] + i * p->dims[o->in[0]][1] + j];
                break;
            case NPU_BLOCK_MOVE: case NPU_BLOCK_UB_COPY: break;
            case NPU_BLOCK_ADD: x += (double)b[i * cols + j]; break;
            case NPU_BLOCK_MUL: x *= (double)b[i * cols + j]; break;
            case NPU_BLOCK_MULS: x *= p->numbers[id]; break;
            case NPU_BLOCK_ADDS: x += p->numbers[id]; break;
            case NPU_BLOCK_EXP: x = exp(x); break;
            case NPU_BLOCK_RSQRT: x = 1 / sqrt(x); break;
            case NPU_BLOCK_ROW_EXPAND_SUB: x -= (double)b[i]; break;
            case NPU_BLOCK_ROW_EXPAND_MUL: x *= (double)b[i]; break;
            case NPU_BLOCK_ROW_EXPAND_DIV: x /= (double)b[i]; break;
            case NPU_BLOCK_COL_EXPAND_MUL: x *= (double)b[j]; break;
            case NPU_BLOCK_COL_EXPAND_ADD: x += (double)b[j]; break;
            case NPU_BLOCK_SUM:
            case NPU_BLOCK_MAX:
                sum = (double)a[i * inner];
                for (int64_t k = 1; k < inner; k++) {
                    double next = (double)a[i * inner + k];
                    sum = o->kind == NPU_BLOCK_SUM ? sum + next : fmax(sum, next);
                }
                x = sum;
                break;
            case NPU_BLOCK_MATMUL:
                for (int64_t k = 0; k < inner; k++) {
                    sum += (double)a[i * inner + k] * (double)b[k * cols + j];
                }
                x = sum;
                break;
            case NPU_BLOCK_MATMUL_ACC:
                inner = p->dims[o->in[1]][1];
                for (int64_t k = 0; k < inner; k++) {
                    sum += (double)b[i * inner + k] * (double)c[k * cols + j];
                }
                x += sum;
                break;
            default: NPU_CHECK_EQ(o->kind, 0); break;
            }
            y[i * cols + j] = (float)x;
        }
    }
}

static inline void pipes_write(pipes *p, uint32_t id)
{
    const pipes_op *o = &p->ops[id];
    if (o->kind == NPU_BLOCK_STORE) {
        float *to = p->tensors[p->root[o->out] - 1] + p->start[id];
        for (int64_t i = 0; i < o->shape[0]; i++) {
            memcpy(to + i * p->dims[o->out][1], p->results[id] + i * o->shape[1], (size_t)o->shape[1] * sizeof *to);
        }
    } else if (!p->places[o->out].space) {
        p->scalars[o->out] = (double)p->results[id][0];
    } else {
        memcpy(pipes_tile(p, o->out), p->results[id],
               (size_t)(p->dims[o->out][0] * p->dims[o->out][1]) * sizeof(float));
    }
}

static inline bool pipes_is_sync(const pipes_op *o) { return NPU_KIND_NAMESPACE(o->kind) == NPU_NS_SYSTEM; }

/* Whether all ops of a pipe that were queued before `until` are done. */
static inline bool pipes_is_idle(const pipes *p, uint32_t pipe, uint32_t until)
{
    for (uint32_t i = 0; i < until; i++) {
        if (p->state[p->queue[pipe][i]] != IS_DONE) {
            return false;
        }
    }
    return true;
}

/* The scalar unit does or queues op `id`; false = it must wait. */
static inline bool pipes_issue(pipes *p, uint32_t id)
{
    const pipes_op *o = &p->ops[id];
    int64_t a = o->num_in ? p->registers[o->in[0]] : 0, b = o->num_in > 1 ? p->registers[o->in[1]] : 0;
    if (o->pipe == NPU_PIPE_NONE) {
        return true;
    }
    if (o->pipe != NPU_PIPE_S) {
        p->numbers[id] = o->scalar ? p->scalars[o->scalar] : o->number;
        if (o->kind == NPU_BLOCK_LOAD || o->kind == NPU_BLOCK_STORE) {
            int64_t row = o->fed[0] ? p->registers[o->fed[0]] : o->offsets[0],
                    col = o->fed[1] ? p->registers[o->fed[1]] : o->offsets[1];
            p->start[id] = row * p->dims[o->kind == NPU_BLOCK_LOAD ? o->in[0] : o->out][1] + col;
        }
        p->queue[o->pipe][p->tail[o->pipe]++] = id;
        return true;
    }
    switch ((int)o->kind) {
    case NPU_BLOCK_GET_BLOCK_IDX: p->registers[o->out] = p->block; return true;
    case NPU_ARITH_CONSTANT: p->registers[o->out] = (int64_t)o->number; return true;
    case NPU_ARITH_MULI: p->registers[o->out] = a * b; return true;
    case NPU_ARITH_ADDI: p->registers[o->out] = a + b; return true;
    case NPU_SYSTEM_BAR_ALL:
        for (uint32_t pipe = 0; pipe < 8; pipe++) {
            if (!pipes_is_idle(p, pipe, p->tail[pipe])) {
                return false;
            }
        }
        return true;
    case NPU_SYSTEM_SYNC_SRC: p->flags[o->flag] = 1; return true;
    case NPU_SYSTEM_SYNC_DST:
        if (p->flags[o->flag]) {
            p->flags[o->flag] = 0;
            return true;
        }
        return false;
    default: NPU_CHECK_EQ(o->kind, 0); return true;
    }
}

/* The next entry of a queue starts; false = it must wait. */
static inline bool pipes_begin(pipes *p, uint32_t pipe)
{
    uint32_t at = p->head[pipe], id = at < p->tail[pipe] ? p->queue[pipe][at] : 0;
    const pipes_op *o = &p->ops[id];
    bool in_order = !(p->overlapping >> pipe & 1u);
    if (!id || ((in_order || (pipes_is_sync(o) && o->kind != NPU_SYSTEM_SYNC_DST)) && !pipes_is_idle(p, pipe, at))) {
        return false;
    }
    if (o->kind == NPU_SYSTEM_SYNC_DST && !p->flags[o->flag]) {
        return false;
    }
    p->flags[o->flag] = o->kind == NPU_SYSTEM_SYNC_SRC ? 1 : o->kind == NPU_SYSTEM_SYNC_DST ? 0 : p->flags[o->flag];
    p->state[id] = pipes_is_sync(o) ? IS_DONE : STARTED;
    p->head[pipe]++;
    return true;
}

/* One thing that a pipe can do now: start an entry, or go on with an op that started. False = nothing. */
static inline bool pipes_step(pipes *p, uint32_t pipe)
{
    uint32_t running[PIPES_OPS], n = 0, id;
    for (uint32_t i = 0; i < p->head[pipe]; i++) {
        id = p->queue[pipe][i];
        if (p->state[id] == STARTED || p->state[id] == HAS_READ) {
            running[n++] = id;
        }
    }
    if ((n == 0 || npu_test_random(&p->random) % 2) && pipes_begin(p, pipe)) {
        return true;
    }
    if (n == 0) {
        return false;
    }
    id = running[npu_test_random(&p->random) % n];
    if (p->state[id] == STARTED) {
        pipes_read(p, id);
        p->state[id] = HAS_READ;
    } else {
        pipes_write(p, id);
        p->state[id] = IS_DONE;
    }
    return true;
}

/* Every op is done before the next one is issued; sync ops have nothing to do. */
static inline bool pipes_run_in_order(pipes *p)
{
    for (uint32_t id = 1; id <= p->num_ops; id++) {
        if (!pipes_is_sync(&p->ops[id]) && pipes_issue(p, id) && p->ops[id].pipe < NPU_PIPE_ALL) {
            while (pipes_step(p, p->ops[id].pipe)) {
            }
        }
    }
    return true;
}

/* What was left in memory before: other numbers in each run, from one table, since there are a million runs. */
static inline void pipes_leave(pipes *p)
{
    enum { WORDS = sizeof p->memory / sizeof(float) };
    static float rest[2 * WORDS];
    const float *from = rest + npu_test_random(&p->random) % (WORDS - PIPES_VALUES);
    uint64_t random = 1;
    for (int i = 0; i < 2 * WORDS && rest[2 * WORDS - 1] == 0.0f; i++) {
        rest[i] = (float)(npu_test_random(&random) % 1000 + 1) / 250.0f;
    }
    memcpy(p->memory, from, sizeof p->memory);
    for (int i = 0; i < PIPES_VALUES; i++) {
        p->scalars[i] = (double)from[WORDS + i];
    }
}

/* Whether nothing is left to issue or to start. */
static inline bool pipes_is_over(const pipes *p, uint32_t next)
{
    bool is_over = next > p->num_ops;
    for (uint32_t pipe = 0; pipe < 8; pipe++) {
        is_over = is_over && p->head[pipe] == p->tail[pipe];
    }
    return is_over;
}

/* One of the pipes, or the scalar unit as NPU_PIPE_S, goes on; they are asked by weight until one can. False = none can. */
static inline bool pipes_go_on(pipes *p, const uint32_t *weights, uint32_t *next)
{
    uint32_t left[8], total = 0;
    for (uint32_t actor = 0; actor < 8; actor++) {
        left[actor] = weights[actor];
        total += weights[actor];
    }
    while (total > 0) {
        uint32_t pick = (uint32_t)(npu_test_random(&p->random) % total), actor = 0;
        for (; pick >= left[actor]; actor++) {
            pick -= left[actor];
        }
        if (actor != NPU_PIPE_S && pipes_step(p, actor)) {
            return true;
        }
        if (actor == NPU_PIPE_S && *next <= p->num_ops && pipes_issue(p, *next)) {
            ++*next;
            return true;
        }
        total -= left[actor];
        left[actor] = 0;
    }
    return false;
}

/* One run; tensors are the inputs, which stores change. False = deadlock. Seed 0 runs in program order. */
static inline bool pipes_run(pipes *p, uint64_t seed)
{
    uint32_t next = 1, weights[8];
    p->random = seed;
    memset(p->state, 0, sizeof p->state);
    memset(p->flags, 0, sizeof p->flags);
    memset(p->head, 0, sizeof p->head);
    memset(p->tail, 0, sizeof p->tail);
    pipes_leave(p);
    if (seed == 0) {
        return pipes_run_in_order(p);
    }
    for (int i = 0; i < 8; i++) {
        weights[i] = 1u << npu_test_random(&p->random) % 8;
    }
    while (pipes_go_on(p, weights, &next)) {
    }
    return pipes_is_over(p, next);
}

#endif
