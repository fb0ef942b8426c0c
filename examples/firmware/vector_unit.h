/* A small accelerator beside a microcontroller, as kernels of planned models: registers and a memory in an address range
   of their own, and a program of commands on vectors in that memory. A step uploads, runs or downloads; the run answers
   BUSY until the unit is done, TIMEOUT if it never is. On a machine that has the unit, VECTOR_UNIT is its address; without
   it, or where VECTOR_UNIT_IS_MEMORY alone, the unit is simulated: it does one command whenever it is asked whether it is
   done. */
#ifndef VECTOR_UNIT_H
#define VECTOR_UNIT_H

enum { VECTOR_UNIT_LEN = 1024, VECTOR_UNIT_POLLS = 1000, VECTOR_UNIT_COMMANDS = 32 };
enum { VECTOR_RELU = 1, VECTOR_ADD, VECTOR_MUL };
typedef struct vector_command { uint32_t op, y, a, b, len; } vector_command; /* places are elements of the memory */
typedef struct vector_unit {
    volatile uint32_t num_commands;   /* written last: begins */
    volatile uint32_t done;           /* commands that are done */
    vector_command commands[VECTOR_UNIT_COMMANDS];
    float memory[VECTOR_UNIT_LEN];
} vector_unit;

#ifdef VECTOR_UNIT
static vector_unit *vector_unit_at(void) { return (vector_unit *)VECTOR_UNIT; }
#else
static vector_unit *vector_unit_at(void)
{
    static vector_unit unit;
    return &unit;
}
#endif

static bool vector_unit_hangs; /* a broken one, for tests */

static void vector_unit_simulate(vector_unit *u)
{
    const vector_command *c = &u->commands[u->done];
    for (uint32_t i = 0; i < c->len; i++) {
        float a = u->memory[c->a + i], b = u->memory[c->b + i];
        u->memory[c->y + i] = c->op == VECTOR_ADD ? a + b : c->op == VECTOR_MUL ? a * b : a > 0.0f ? a : 0.0f;
    }
    u->done++;
}

/* ---- kernels: numbers, and the words of their steps ---- */

enum { VECTOR_UPLOAD = NPU_PLANNED_ACCELERATOR, VECTOR_RUN, VECTOR_DOWNLOAD };
enum { NPU_PLANNED_vector_upload = VECTOR_UPLOAD, NPU_PLANNED_vector_run = VECTOR_RUN, /* as lists name them */
       NPU_PLANNED_vector_download = VECTOR_DOWNLOAD };
typedef struct vector_transfer_words { uint32_t place, at, len; } vector_transfer_words;
typedef struct vector_run_words { uint32_t program, num_commands, work; } vector_run_words;

/* The door to the other address range: `len` floats of the unit, or NULL. */
static float *vector_unit_range(uint32_t at, uint32_t len)
{
    return at <= VECTOR_UNIT_LEN && len <= VECTOR_UNIT_LEN - at ? vector_unit_at()->memory + at : NULL;
}

static npu_status npu_planned_vector_upload(const npu_planned *m, const uint32_t *words, uint32_t num_words,
                                            uint32_t *work)
{
    const vector_transfer_words *s = (const vector_transfer_words *)(const void *)words;
    const float *from = num_words == 3 ? (const float *)npu_planned_read(m, s->place, s->len, 4) : NULL;
    float *to = from ? vector_unit_range(s->at, s->len) : NULL;
    if (!from || !to) {
        return NPU_ERR_RANGE;
    }
    for (uint32_t i = 0; i < s->len && !work; i++) {
        to[i] = from[i];
    }
    if (work) {
        *work = npu_planned_add(*work, s->len);
    }
    return NPU_OK;
}

static npu_status npu_planned_vector_download(const npu_planned *m, const uint32_t *words, uint32_t num_words,
                                              uint32_t *work)
{
    const vector_transfer_words *s = (const vector_transfer_words *)(const void *)words;
    float *to = num_words == 3 ? (float *)npu_planned_write(m, s->place, s->len, 4) : NULL;
    const float *from = to ? vector_unit_range(s->at, s->len) : NULL;
    if (!from || !to) {
        return NPU_ERR_RANGE;
    }
    for (uint32_t i = 0; i < s->len && !work; i++) {
        to[i] = from[i];
    }
    if (work) {
        *work = npu_planned_add(*work, s->len);
    }
    return NPU_OK;
}

/* Constants are not read when a file is opened, so a program is checked each time before the unit sees it. */
static npu_status vector_unit_begin(const vector_command *c, uint32_t num)
{
    vector_unit *u = vector_unit_at();
    for (uint32_t i = 0; i < num; i++) {
        if (!vector_unit_range(c[i].y, c[i].len) || !vector_unit_range(c[i].a, c[i].len) ||
            !vector_unit_range(c[i].b, c[i].len)) {
            return NPU_ERR_RANGE;
        }
        u->commands[i] = c[i];
    }
    u->done = 0;
    u->num_commands = num;
    return NPU_OK;
}

static npu_status npu_planned_vector_run(const npu_planned *m, const uint32_t *words, uint32_t num_words, uint32_t *work)
{
    const vector_run_words *s = (const vector_run_words *)(const void *)words;
    vector_unit *u = vector_unit_at();
    const vector_command *c = num_words == 3 && s->num_commands <= VECTOR_UNIT_COMMANDS ?
        (const vector_command *)npu_planned_constant(m, s->program, s->num_commands * 5, 4) : NULL;
    npu_status status = c ? NPU_OK : NPU_ERR_RANGE;
    if (work && c) {
        *work = npu_planned_add(*work, s->work);
    }
    if (!work && c && m->waits == 0) {
        status = vector_unit_begin(c, s->num_commands);
    }
    if (work || status != NPU_OK) {
        return status;
    }
#if !defined(VECTOR_UNIT) || defined(VECTOR_UNIT_IS_MEMORY)
    if (u->done < u->num_commands && !vector_unit_hangs) {
        vector_unit_simulate(u);
    }
#endif
    return u->done == u->num_commands ? NPU_OK : m->waits >= VECTOR_UNIT_POLLS ? NPU_ERR_TIMEOUT : NPU_ERR_BUSY;
}

#ifndef NPU_IR_RUNTIME_ONLY
/* ---- its compiler, on the host ---- */

typedef struct vector_compiler {
    npu_planned_writer *w;
    npu_value values[VECTOR_UNIT_COMMANDS * 3];
    uint32_t places[VECTOR_UNIT_COMMANDS * 3], num_values, end;
    vector_command commands[VECTOR_UNIT_COMMANDS];
    uint32_t num_commands;
} vector_compiler;

/* Where a value lies in the unit's memory; VECTOR_UNIT_LEN = it does not fit. A new one is uploaded, if it is not made
   there. */
static uint32_t vector_place(vector_compiler *c, const npu_graph *g, npu_value v, bool uploads)
{
    const npu_spec *spec = npu_value_spec(g, v);
    vector_transfer_words words = { 0, c->end, 0 };
    int64_t len = 1;
    for (uint32_t i = 0; i < c->num_values; i++) {
        if (c->values[i].id == v.id) {
            return c->places[i];
        }
    }
    for (uint32_t i = 0; i < spec->rank; i++) {
        len *= spec->dims[i];
    }
    if (c->num_values == VECTOR_UNIT_COMMANDS * 3 || spec->dtype != NPU_F32 || len <= 0 ||
        len > VECTOR_UNIT_LEN - (int64_t)c->end) {
        return VECTOR_UNIT_LEN;
    }
    c->values[c->num_values] = v;
    c->places[c->num_values++] = c->end;
    words.len = (uint32_t)len;
    c->end += words.len;
    if (uploads) {
        words.place = npu_planned_value(c->w, v);
        npu_planned_emit(c->w, VECTOR_UPLOAD, &words, sizeof words, 1, 0);
    }
    return words.at;
}

/* A sum of a and alpha times b is none of the unit's. */
static bool vector_has_alpha(const npu_graph *g, npu_op op)
{
    npu_op_storage storage;
    npu_op_info info;
    bool has;
    memset(&storage, 0, sizeof storage);
    has = npu_op_describe(g, op, &info, &storage) != NPU_OK ||
          npu_scalar_value(npu_op_scalar(&info, "alpha", npu_scalar_int(1))) != 1.0;
    npu_op_storage_free(&storage);
    return has;
}

static npu_status vector_compile_op(vector_compiler *c, const npu_graph *g, npu_op op)
{
    const char *name = npu_op_definition(g, op)->name;
    npu_value a = npu_op_operand_value(g, op, 0), b = npu_op_operand_value(g, op, 1), y = npu_op_result(g, op, 0);
    vector_command *to = &c->commands[c->num_commands];
    if (c->num_commands == VECTOR_UNIT_COMMANDS || vector_has_alpha(g, op) ||
        !npu_spec_equal(npu_value_spec(g, a), npu_value_spec(g, y)) ||
        (b.id && !npu_spec_equal(npu_value_spec(g, b), npu_value_spec(g, y)))) {
        return NPU_ERR_UNSUPPORTED;
    }
    c->num_commands++;
    to->op = strcmp(name, "aten.add.Tensor") == 0   ? VECTOR_ADD
             : strcmp(name, "aten.mul.Tensor") == 0 ? VECTOR_MUL
             : strcmp(name, "aten.relu.default") == 0 ? VECTOR_RELU : 0;
    to->a = vector_place(c, g, a, true);
    to->b = b.id ? vector_place(c, g, b, true) : to->a;
    to->y = vector_place(c, g, y, false);
    to->len = c->end - to->y;
    return to->op && to->a < VECTOR_UNIT_LEN && to->b < VECTOR_UNIT_LEN && to->y < VECTOR_UNIT_LEN
               ? NPU_OK
               : NPU_ERR_UNSUPPORTED;
}

static npu_status vector_lower_partition(npu_planned_writer *w, const npu_plan *plan, const npu_step *step)
{
    static vector_compiler c;
    const npu_graph *g = npu_plan_graph(plan);
    vector_run_words run;
    npu_status status = NPU_OK;
    memset(&c, 0, sizeof c);
    c.w = w;
    for (uint32_t i = 0; i < step->num_ops && status == NPU_OK; i++) {
        status = vector_compile_op(&c, g, step->ops[i]);
    }
    if (status) {
        return status;
    }
    run.program = npu_planned_add_data(w, NPU_I32, c.num_commands * sizeof c.commands[0] / 4, c.commands);
    run.num_commands = c.num_commands;
    run.work = 0;
    for (uint32_t i = 0; i < c.num_commands; i++) {
        run.work += c.commands[i].len;
    }
    status = npu_planned_emit(w, VECTOR_RUN, &run, sizeof run, 1, 0);
    for (uint32_t i = 0; i < step->num_outputs && status == NPU_OK; i++) {
        vector_transfer_words words = { npu_planned_value(w, step->outputs[i]), 0, 0 };
        size_t size = 0;
        words.at = vector_place(&c, g, step->outputs[i], false);
        npu_spec_size(npu_value_spec(g, step->outputs[i]), &size);
        words.len = (uint32_t)(size / 4);
        status = npu_planned_emit(w, VECTOR_DOWNLOAD, &words, sizeof words, 1, 0);
    }
    return status;
}

static const npu_planned_library *vector_unit_library(void)
{
    static const npu_planned_kernel kernels[] = { { VECTOR_UPLOAD, npu_planned_vector_upload },
                                                  { VECTOR_RUN, npu_planned_vector_run },
                                                  { VECTOR_DOWNLOAD, npu_planned_vector_download } };
    static const char *const names[] = { "vector_upload", "vector_run", "vector_download" };
    static const npu_planned_library library = { sizeof library, 3, 0, kernels, names, NULL, NULL,
                                                 vector_lower_partition };
    return &library;
}
#endif
#endif
