/* npu_run: a model from a file, run, looked at, checked and timed, without a program of one's own. examples/README.md has
   its options at length; npu_run --help is the short list.
   cc -O2 -I.. npu_run.c -lm -lpthread -o npu_run */
#define _POSIX_C_SOURCE 200809L
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#define NPU_ONNX_IMPLEMENTATION
#include "onnx/npu_onnx.h"
#define NPU_SIM_IMPLEMENTATION
#include "sim/npu_sim.h"
#include "files/npu_map.h"
#include "files/npu_npy.h"
#include "report/npu_report.h"
#include <errno.h>
#include <stdarg.h>
#include <time.h>

static const char help[] =
    "npu_run MODEL.json|MODEL.onnx|MODEL.txt [WEIGHTS.safetensors ...] [OPTION ...]\n"
    "  --input [NAME=]X.npy    an input, by name or in order; without any: numbers that are always the same\n"
    "  --known NAME=X.npy      of ONNX models: an input that is known while the model is read\n"
    "  --dim NAME=N            the size of a dim with a name, once for each\n"
    "  --f16-as-f32            of ONNX models: f16 is computed in f32, as ONNX Runtime's CPU does it\n"
    "  --output [NAME=]Y.npy   where an output goes, by name or in order\n"
    "  --verify [NAME=]Y.npy   what an output must be; --rtol X and --atol X, default 1e-4 and 1e-5\n"
    "  --backend sim,ref       who runs it, by falling priority: sim, a simulated accelerator, and ref, the CPU, which\n"
    "                          is always the last (default ref)\n"
    "  --threads N             of the CPU backend (default 1)\n"
    "  --optimize              fuse ops and fold constants first, as --bench does unasked\n"
    "  --no-optimize           with --bench: times the graph as it is\n"
    "  --pass NAME             one pass or lowering then, as convert-aten-to-linalg; once for each, in order\n"
    "  --quantize DIR          to 8 bits first, by the samples DIR/INPUT.0.npy, DIR/INPUT.1.npy ... of each input\n"
    "  --quantize-weights BITS weights of linears alone, to 8 or 4 bits, without samples\n"
    "  --integer               ops on 8 bits of a quantised model's, and which stay in floats, and why\n"
    "  --find-wrong-op         the first op that the backends get wrong, against the CPU alone\n"
    "  --runs N                so many runs, before outputs are looked at; states go on (default 1)\n"
    "  --bench N               the least and the middle time of N runs\n"
    "  --profile T.json        times of all steps, for chrome://tracing or Perfetto\n"
    "  --report PAGE.html      the plan as a page: graph, memory, times, what to implement next\n"
    "  --plan-out MODEL.npum   the model as a planned file, for machines without an operating system\n"
    "  --emit-array MODEL.h    that file as an array in C; the file's name is the model's\n"
    "  --emit-c MODEL.c        the model as C calls instead; the file's name is the model's\n"
    "  --plan, --memory, --stats, --text, --dot   print the plan, its memory, how many ops, the graph, the plan as Graphviz\n"
    "  --help\n"
    "Exit: 0 done; 1 failed: a file cannot be read, used or written, or the model has not what an option names;\n"
    "2 wrong usage, which the command line alone shows, before a file is read; 3 a result differs (--verify,\n"
    "--find-wrong-op).\n";

enum {
    RUN_OK, RUN_FAILED, RUN_USAGE, RUN_DIFFERS,
    RUN_MAX = 512, RUN_SAMPLES = 256, RUN_MEASURED = 4,
    RUN_PASSES = 32,
    RUN_GAP = 10000 /* numbers of samples behind the last one, of which none may be there */
};

/* A file of an option, and the tensor in it. */
typedef struct run_file {
    const char *name, *path; /* of the input or output; NULL = in order */
    npu_map map;
    npu_array array;
    void *own;
} run_file;

typedef struct run_list { run_file files[RUN_MAX]; uint32_t count; } run_list;

typedef struct run_state {
    const char *model, *weights[RUN_MAX], *backends, *trace, *page, *samples, *planned, *array, *calls;
    npu_pass passes[RUN_PASSES];
    uint32_t num_weights, num_passes, threads, runs, bench, weight_bits;
    run_list inputs, known, outputs, expected;
    npu_onnx_dim dims[RUN_MAX];
    uint32_t num_dims;
    bool plan, memory, stats, text, dot, integer, optimizes, stays, finds, widens, helps;
    double rtol, atol;
    npu_map model_map, weight_maps[RUN_MAX], beside[RUN_MAX]; /* beside: files that an ONNX model names */
    uint32_t num_beside;
    npu_graph *graph;
    npu_sim *sim;
    const npu_backend *list[2];
    uint32_t num_backends;
    npu_parallel *parallel;
    npu_plan *made_plan;
    npu_program *program;
    npu_exec *exec;
    void *filled[RUN_MAX]; /* inputs that are made up */
    npu_diag diag, said;   /* said: the first of what a call lists */
    uint32_t num_said;
} run_state;

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* What takes a while, in one line that the next one takes the place of; on a terminal alone. NULL = it is done. */
static void say_stage(const char *what, const char *name)
{
#ifdef NPU_MAP_POSIX
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, what ? "\r\033[K%s %s ..." : "\r\033[K", what ? what : "", name ? name : "");
    }
#else
    (void)what;
    (void)name;
#endif
}

/* One line, behind all that was printed before. */
static void say_line(const char *format, ...) NPU_IR_PRINTF(1, 2);
static void say_line(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    say_stage(NULL, NULL);
    fputs("npu_run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static int fail(const run_state *s, const char *what)
{
    const char *words = s->diag.status == NPU_ERR_IO && errno ? strerror(errno) : npu_status_text(s->diag.status);
    char line[16] = "";
    if (s->diag.line && s->diag.message[0]) {
        snprintf(line, sizeof line, ":%u:", (unsigned)s->diag.line);
        line[strstr(s->diag.message, line) ? 0 : strlen(line) - 1] = 0; /* a message may say it */
    }
    say_line("%s%s: %s", what, line, s->diag.message[0] ? s->diag.message : words);
    return RUN_FAILED;
}

static void print_diag(const npu_diag *diag)
{
    fprintf(stderr, "  %s: %s\n", npu_status_name(diag->status), diag->message);
}

/* Of what a call lists: one alone may be the failure itself, which is said once. */
static void say(void *ctx, const npu_diag *diag)
{
    run_state *s = (run_state *)ctx;
    if (s->num_said++ == 0) {
        s->said = *diag;
        return;
    }
    if (s->num_said == 2) {
        print_diag(&s->said);
    }
    print_diag(diag);
}

static int fail_listed(const run_state *s, const char *what)
{
    if (s->num_said < 2) {
        return fail(s, what);
    }
    say_line("%s: cannot be used, for these %u reasons", what, (unsigned)s->num_said);
    return RUN_FAILED;
}

/* A full disk behind what is printed is no success, either. */
static int finish(int result)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return result;
    }
    say_line("what is printed cannot be written: %s", strerror(errno));
    return result ? result : RUN_FAILED;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef enum run_takes {
    TAKES_NOTHING, TAKES_TEXT, TAKES_COUNT, TAKES_REAL, TAKES_DIM, TAKES_FILE, TAKES_PASS
} run_takes;
typedef struct run_option {
    const char *name;
    run_takes takes;
    void *to;
    uint32_t most; /* of a count, which is at least 1 */
} run_option;

/* NAME=PATH, or PATH. */
static bool add_file(run_list *list, char *text)
{
    char *equals = strchr(text, '='), *path = equals ? equals + 1 : text;
    if (list->count == RUN_MAX || !path[0]) {
        return false;
    }
    if (equals) {
        *equals = 0;
    }
    run_file *f = &list->files[list->count++];
    f->name = equals ? text : NULL;
    f->path = path;
    return true;
}

/* Two sizes of one name would leave one out. */
static bool add_dim(run_state *s, char *text)
{
    char *equals = strchr(text, '='), *end;
    if (!equals || equals == text || s->num_dims == RUN_MAX) {
        return false;
    }
    errno = 0;
    size_t len = (size_t)(equals - text);
    npu_onnx_dim dim = { text, strtoll(equals + 1, &end, 10) };
    bool is_size = *end == 0 && end > equals + 1 && dim.size >= 0 && errno == 0;
    for (uint32_t i = 0; i < s->num_dims && is_size; i++) {
        is_size = strlen(s->dims[i].name) != len || strncmp(s->dims[i].name, text, len) != 0;
    }
    if (is_size) {
        *equals = 0;
        s->dims[s->num_dims++] = dim;
    }
    return is_size;
}

static bool add_pass(run_state *s, const char *name)
{
    if (s->num_passes == RUN_PASSES) {
        return false;
    }
    s->passes[s->num_passes++].name = name;
    return name[0] != 0;
}

static bool set_count(uint32_t *out, const char *text, uint32_t most)
{
    char *end;
    long x = strtol(text, &end, 10);
    *out = (uint32_t)x;
    return *end == 0 && x > 0 && (unsigned long)x <= most;
}

static bool set_real(double *out, const char *text)
{
    char *end;
    *out = strtod(text, &end);
    return *end == 0 && end > text && *out >= 0;
}

/* False = the value is none. */
static bool set_option(run_state *s, const run_option *o, char *value)
{
    switch (o->takes) {
    case TAKES_NOTHING: *(bool *)o->to = true; break;
    case TAKES_TEXT: *(const char **)o->to = value; break;
    case TAKES_COUNT: return set_count((uint32_t *)o->to, value, o->most);
    case TAKES_REAL: return set_real((double *)o->to, value);
    case TAKES_DIM: return add_dim(s, value);
    case TAKES_FILE: return add_file((run_list *)o->to, value);
    case TAKES_PASS: return add_pass(s, value);
    }
    return !value || value[0];
}

/* Says what the option takes, which is its line of the help. */
static int refuse_value(const run_option *o, const char *value)
{
    char word[32];
    snprintf(word, sizeof word, " %.24s ", o->name);
    const char *line = strstr(help, word);
    while (line && line[-1] != '\n') {
        line--;
    }
    say_line("%s %s: expected", o->name, value ? value : "without a value");
    if (line) {
        fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
    if (o->takes == TAKES_COUNT) {
        fprintf(stderr, "  with a number from 1 to %u\n", (unsigned)o->most);
    } else if (o->takes == TAKES_DIM) {
        fputs("  with a number from 0 on, and each name once\n", stderr);
    }
    return RUN_USAGE;
}

static const run_option *find_option(const run_option *options, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(options[i].name, name) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

/* "--threads=2" is an option and a value, too, of which nobody knows here. */
static int refuse_name(const run_option *options, size_t count, const char *name)
{
    const char *names[64], *nearest;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "="), name);
    for (size_t i = 0; i < count; i++) {
        names[i] = options[i].name;
    }
    nearest = npu_name_nearest(word, names, count);
    if (nearest && strcmp(nearest, word) == 0) {
        say_line("%s: no such option: a value follows its option as a word of its own, as in %s %s", name, word,
                 strchr(name, '=') + 1);
    } else {
        say_line("%s: no such option%s%s%s", name, nearest ? ", did you mean " : "; npu_run --help lists them",
                 nearest ? nearest : "", nearest ? "?" : "");
    }
    return RUN_USAGE;
}

static int add_argument(run_state *s, const char *path)
{
    if (!s->model) {
        s->model = path;
    } else if (s->num_weights < RUN_MAX) {
        s->weights[s->num_weights++] = path;
    } else {
        say_line("%s: more than %d files of weights", path, (int)RUN_MAX);
        return RUN_USAGE;
    }
    return RUN_OK;
}

/* Of the words of an option: 1, or 2 with a value; 0 = they are refused, as what is there once at most is the second
   time. */
static int read_option(run_state *s, const run_option *options, size_t count, char **words, uint64_t *given)
{
    const run_option *o = find_option(options, count, words[0]);
    if (!o) {
        return refuse_name(options, count, words[0]), 0;
    }
    uint64_t bit = (uint64_t)1 << (o - options);
    bool is_single = o->takes == TAKES_TEXT || o->takes == TAKES_COUNT || o->takes == TAKES_REAL;
    if (is_single && (*given & bit)) {
        return say_line("%s: given twice", o->name), 0;
    }
    *given |= bit;
    char *value = o->takes == TAKES_NOTHING ? NULL : words[1];
    bool is_missing = o->takes != TAKES_NOTHING && (!value || strncmp(value, "--", 2) == 0);
    if (is_missing || !set_option(s, o, value)) {
        return refuse_value(o, is_missing ? NULL : value), 0;
    }
    return value ? 2 : 1;
}

static int check_usage(const run_state *s)
{
    const char *b = s->backends;
    if (!s->model) {
        fputs(help, stderr);
        say_line("no MODEL is named");
    } else if (b && strcmp(b, "ref") != 0 && strcmp(b, "sim") != 0 && strcmp(b, "sim,ref") != 0) {
        say_line("--backend %s: expected ref (the CPU), sim (a simulated accelerator) or sim,ref; what sim does not "
                 "take is left to ref, which is always the last", b);
    } else if (s->samples && s->weight_bits) {
        say_line("--quantize and --quantize-weights: one of them");
    } else if (s->optimizes && s->stays) {
        say_line("--optimize and --no-optimize: one of them");
    } else if (s->weight_bits && s->weight_bits != 8 && s->weight_bits != 4) {
        say_line("--quantize-weights %u: expected 8 or 4", (unsigned)s->weight_bits);
    } else {
        return RUN_OK;
    }
    return RUN_USAGE;
}

static int read_options(run_state *s, char **words)
{
    const run_option options[] = {
        { "--input", TAKES_FILE, &s->inputs, 0 }, { "--known", TAKES_FILE, &s->known, 0 },
        { "--output", TAKES_FILE, &s->outputs, 0 }, { "--verify", TAKES_FILE, &s->expected, 0 },
        { "--dim", TAKES_DIM, NULL, 0 }, { "--pass", TAKES_PASS, NULL, 0 },
        { "--backend", TAKES_TEXT, &s->backends, 0 }, { "--quantize", TAKES_TEXT, &s->samples, 0 },
        { "--profile", TAKES_TEXT, &s->trace, 0 }, { "--report", TAKES_TEXT, &s->page, 0 },
        { "--plan-out", TAKES_TEXT, &s->planned, 0 }, { "--emit-array", TAKES_TEXT, &s->array, 0 },
        { "--emit-c", TAKES_TEXT, &s->calls, 0 },
        { "--threads", TAKES_COUNT, &s->threads, 1024 }, { "--runs", TAKES_COUNT, &s->runs, 1000000000 },
        { "--bench", TAKES_COUNT, &s->bench, 10000000 }, { "--quantize-weights", TAKES_COUNT, &s->weight_bits, 8 },
        { "--rtol", TAKES_REAL, &s->rtol, 0 }, { "--atol", TAKES_REAL, &s->atol, 0 },
        { "--plan", TAKES_NOTHING, &s->plan, 0 }, { "--memory", TAKES_NOTHING, &s->memory, 0 },
        { "--stats", TAKES_NOTHING, &s->stats, 0 }, { "--text", TAKES_NOTHING, &s->text, 0 },
        { "--dot", TAKES_NOTHING, &s->dot, 0 }, { "--integer", TAKES_NOTHING, &s->integer, 0 },
        { "--optimize", TAKES_NOTHING, &s->optimizes, 0 }, { "--no-optimize", TAKES_NOTHING, &s->stays, 0 },
        { "--find-wrong-op", TAKES_NOTHING, &s->finds, 0 },
        { "--f16-as-f32", TAKES_NOTHING, &s->widens, 0 }, { "--help", TAKES_NOTHING, &s->helps, 0 }
    };
    uint64_t given = 0;
    while (*words) {
        bool is_option = words[0][0] == '-';
        int used = is_option ? read_option(s, options, sizeof options / sizeof options[0], words, &given)
                             : add_argument(s, words[0]) == RUN_OK;
        if (!used) {
            return RUN_USAGE;
        }
        words += used;
    }
    return s->helps ? RUN_OK : check_usage(s);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static int load_array(run_state *s, run_file *f, const char *path)
{
    s->diag.status = npu_map_open_most(&f->map, path, npu_npy_most);
    s->diag.message[0] = 0;
    f->map.bytes.name = "";
    if (s->diag.status || npu_npy_read(&f->map.bytes, &f->array, &f->own, &s->diag)) {
        return fail(s, path);
    }
    return RUN_OK;
}

static int load_files(run_state *s, run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        run_file *f = &list->files[i];
        if (load_array(s, f, f->path)) {
            return RUN_FAILED;
        }
        f->array.name = f->name;
    }
    return RUN_OK;
}

/* A file in the model's folder. */
static npu_status open_beside(void *ctx, const char *location, npu_bytes *out)
{
    run_state *s = (run_state *)ctx;
    char path[1024];
    const char *slash = strrchr(s->model, '/');
    npu_status status;
    for (uint32_t i = 0; i < s->num_beside; i++) {
        size_t len = strlen(s->beside[i].bytes.name), tail = strlen(location);
        if (len >= tail && strcmp(s->beside[i].bytes.name + len - tail, location) == 0) {
            *out = s->beside[i].bytes;
            return NPU_OK;
        }
    }
    int len = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - s->model + 1) : 0, s->model, location);
    char *kept = len < (int)sizeof path && s->num_beside < RUN_MAX ? (char *)malloc((size_t)len + 1) : NULL;
    if (!kept) {
        return NPU_ERR_NO_MEMORY;
    }
    memcpy(kept, path, (size_t)len + 1);
    status = npu_map_open(&s->beside[s->num_beside], kept);
    if (status) { /* not kept: a second try of the reader would find an empty file */
        free(kept);
        s->beside[s->num_beside].bytes.name = NULL;
        return status;
    }
    *out = s->beside[s->num_beside++].bytes;
    return NPU_OK;
}

static npu_onnx_desc onnx_desc(run_state *s)
{
    npu_onnx_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backend = npu_ref_backend();
    desc.f16_as_f32 = s->widens;
    desc.external = open_beside;
    desc.external_ctx = s;
    return desc;
}

/* What sizes the model leaves open may stay so; where that cannot be, they are those of the files of --input. */
static npu_status read_onnx(run_state *s)
{
    npu_array known[RUN_MAX], shapes[RUN_MAX];
    npu_onnx_desc desc = onnx_desc(s);
    for (uint32_t i = 0; i < s->known.count; i++) {
        known[i] = s->known.files[i].array;
    }
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        shapes[i] = s->inputs.files[i].array;
    }
    desc.dims = s->dims;
    desc.num_dims = s->num_dims;
    desc.inputs = known;
    desc.num_inputs = s->known.count;
    desc.report = say;
    desc.report_ctx = s;
    npu_status status = npu_onnx_read(&s->graph, s->model_map.bytes.data, s->model_map.bytes.size, &desc, &s->diag);
    if (status == NPU_ERR_DYNAMIC_SHAPE && !s->inputs.count) {
        say_line("sizes that the model leaves open come from --dim NAME=N, or from the files of --input");
    }
    if (status && status != NPU_ERR_NOT_FOUND && s->inputs.count) { /* which has been reported */
        desc.shapes = shapes;
        desc.num_shapes = s->inputs.count;
        status = npu_onnx_read(&s->graph, s->model_map.bytes.data, s->model_map.bytes.size, &desc, &s->diag);
    }
    if (status == NPU_ERR_CONVERSION) {
        say_line("an input that must be known while the model is read comes from --known NAME=X.npy");
    }
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* How many bytes in front are among those. */
static size_t leading_bytes(const npu_bytes *b, const char *among)
{
    size_t n = 0;
    while (n < b->size && ((const char *)b->data)[n] && strchr(among, ((const char *)b->data)[n])) {
        n++;
    }
    return n;
}

/* Is a field 1 or 2 of some message of an ONNX model this text? Longer texts than 127 bytes pass. */
static bool has_text(const npu_bytes *b, uint32_t number, const char *text, size_t len)
{
    char field[2 + 128] = { (char)(number << 3 | 2), (char)len };
    size_t at = 0;
    memcpy(field + 2, text, len < 128 ? len : 0);
    while (len < 128 && at + 2 + len <= b->size && memcmp((const char *)b->data + at, field, 2 + len)) {
        at++;
    }
    return len >= 128 || at + 2 + len <= b->size;
}

/* A dim's name is its field 2; one without a name is called by its input's, which is a field 1, and its number. */
static bool has_dim(const npu_bytes *b, const char *name)
{
    const char *dot = strrchr(name, '.');
    bool is_numbered = dot && dot[1] && dot[1 + strspn(dot + 1, "0123456789")] == 0;
    return has_text(b, 2, name, strlen(name)) || (is_numbered && has_text(b, 1, name, (size_t)(dot - name)));
}

static int refuse_known(const run_file *f, bool is_onnx)
{
    const char *equals = f->name ? "=" : "";
    say_line("--known %s%s%s: %s", f->name ? f->name : "", equals, f->path,
             is_onnx ? "the model has no input of this name"
                     : "for ONNX models, which compute shapes from inputs; here --input gives an input its data");
    return RUN_FAILED;
}

/* With the names that there are, where the model can be read without that size. */
static int refuse_dim(run_state *s, const char *name)
{
    enum { SHOWN = 16 };
    const char *names[SHOWN];
    uint32_t count = 0;
    npu_onnx_desc desc = onnx_desc(s);
    npu_text list = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_onnx_read(&g, s->model_map.bytes.data, s->model_map.bytes.size, &desc, &s->diag);
    while (count < SHOWN && (names[count] = npu_graph_symbol_name(g, -2 - (int64_t)count)) != NULL) {
        npu_text_printf(&list, "%s %s", count ? "," : "; the model's are", names[count]);
        count++;
    }
    const char *nearest = npu_name_nearest(name, names, count);
    say_line("--dim %s: the model has no dim of this name%s%s%s%s", name, nearest ? ", did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "", list.data ? list.data : "");
    npu_text_free(&list);
    npu_graph_destroy(g);
    return RUN_FAILED;
}

/* Says which name of --dim or --known an ONNX file has nowhere, and what is for such files alone. */
static int check_names(run_state *s, bool is_onnx)
{
    const npu_bytes *b = &s->model_map.bytes;
    if (s->widens && !is_onnx) {
        say_line("--f16-as-f32: for ONNX models");
        return RUN_FAILED;
    }
    for (uint32_t i = 0; is_onnx && i < s->num_dims; i++) {
        if (!has_dim(b, s->dims[i].name)) {
            return refuse_dim(s, s->dims[i].name);
        }
    }
    for (uint32_t i = 0; i < s->known.count; i++) {
        const run_file *f = &s->known.files[i];
        if (!is_onnx || !f->name || !has_text(b, 1, f->name, strlen(f->name))) {
            return refuse_known(f, is_onnx);
        }
    }
    return RUN_OK;
}

/* The model's graph becomes another, which a call made. */
static int replace_graph(run_state *s, npu_graph *g, const char *what)
{
    if (!g) {
        return fail(s, what);
    }
    npu_graph_destroy(s->graph);
    s->graph = g;
    return RUN_OK;
}

/* Sizes of --dim, in a graph whose dims with names are symbols; the reader of ONNX has them already. */
static int set_dims(run_state *s)
{
    const char *names[RUN_MAX];
    int64_t sizes[RUN_MAX];
    npu_graph *g = NULL;
    for (uint32_t i = 0; i < s->num_dims; i++) {
        names[i] = s->dims[i].name;
        sizes[i] = s->dims[i].size;
    }
    npu_graph_specialize(&g, s->graph, names, sizes, s->num_dims, &s->diag);
    return replace_graph(s, g, "--dim");
}

/* A size of 0, as caches have it that are empty at first, is one like others; but a model may compute nothing then. */
static void note_empty(const run_state *s)
{
    uint32_t count = npu_graph_num_outputs(s->graph), num_empty = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t len = 1;
        npu_spec_len(npu_value_spec(s->graph, npu_graph_output(s->graph, i)), &len);
        num_empty += len == 0;
    }
    for (uint32_t i = 0; i < s->num_dims && count && num_empty == count; i++) {
        if (s->dims[i].size == 0) {
            say_line("--dim %s=0: no output has an element then", s->dims[i].name);
        }
    }
}

/* What else people name: where it says so, its bytes, and the words for it. */
static const struct { uint32_t at, len; const char *bytes, *words; } no_models[] = {
    /* torch.save and torch.export make them */
    { 0, 2, "PK", "an archive: write files of it by examples/pytorch/export.py" },
    { 0, 6, "\x93NUMPY", "an array, which --input takes" },
    { 0, 4, "NPUM", "a planned model, which npu_planned_open runs" },
    { 0, 4, "\x89HDF", "an HDF5 file: export the model to ONNX" },
    { 4, 4, "TFL3", "a TensorFlow Lite file: export the model to ONNX" },
    { 4, 5, "\0\0\0\0{", "weights, which stand behind the model" }
};

/* What the file is instead of a model; NULL = it may be one. */
static const char *words_of_other(const run_state *s, bool is_text)
{
    const npu_bytes *b = &s->model_map.bytes;
    for (size_t i = 0; i < sizeof no_models / sizeof no_models[0]; i++) {
        uint32_t at = no_models[i].at, len = no_models[i].len;
        if (b->size >= at + len && memcmp((const char *)b->data + at, no_models[i].bytes, len) == 0) {
            return no_models[i].words;
        }
    }
    return ends_with(s->model, ".safetensors") ? no_models[sizeof no_models / sizeof no_models[0] - 1].words
           : is_text && memchr(b->data, 0, b->size < 512 ? b->size : 512) ? "no text, and no ONNX model" : NULL;
}

/* Bytes of a model that comes from no file but a pipe or device: no text has a zero, no message of protobuf 2 GB. */
static size_t most_of_model(const void *data, size_t size)
{
    size_t last = size < NPU_MAP_CHUNK ? size : NPU_MAP_CHUNK;
    bool is_onnx = size && *(const char *)data > 0 && *(const char *)data < ' ';
    return !is_onnx && memchr((const char *)data + size - last, 0, last) ? 0 : INT32_MAX;
}

/* By its suffix, or, where that says nothing, by what it begins with: a field of protobuf, a brace, a word. */
static int read_model(run_state *s)
{
    say_stage("reading", s->model);
    const npu_bytes *b = &s->model_map.bytes;
    s->diag.status = npu_map_open_most(&s->model_map, s->model, most_of_model);
    if (s->diag.status) {
        return fail(s, s->model);
    }
    size_t first = leading_bytes(b, " \t\r\n");
    char c = (char)(first < b->size ? ((const char *)b->data)[first] : 0);
    bool is_onnx = ends_with(s->model, ".onnx") || (c > 0 && c < ' ');
    const char *other = words_of_other(s, !is_onnx);
    if (other) {
        say_line("%s: %s; a model is .json, .onnx or .txt", s->model, other);
        return RUN_FAILED;
    }
    if (check_names(s, is_onnx)) {
        return RUN_FAILED;
    }
    npu_status status = is_onnx ? read_onnx(s)
                        : ends_with(s->model, ".json") || c == '{'
                            ? npu_graph_parse_json(&s->graph, (const char *)b->data, b->size, NULL, &s->diag)
                            : npu_graph_parse(&s->graph, (const char *)b->data, b->size, NULL, &s->diag);
    int result = status ? fail_listed(s, s->model) : is_onnx || !s->num_dims ? RUN_OK : set_dims(s);
    if (result == RUN_OK) {
        memset(&s->diag, 0, sizeof s->diag); /* of a first try to read it */
        note_empty(s);
    }
    return result;
}

static const char *port_name(const run_state *s, uint32_t k, bool is_input)
{
    return is_input ? npu_value_name(s->graph, npu_graph_input(s->graph, k)) : npu_graph_output_name(s->graph, k);
}

/* The number of an input or output that a file is for; files without names are in order. */
static uint32_t index_of(const run_state *s, const run_list *list, uint32_t i)
{
    bool is_input = list == &s->inputs;
    uint32_t count = is_input ? npu_graph_num_inputs(s->graph) : npu_graph_num_outputs(s->graph);
    for (uint32_t k = 0; k < count && list->files[i].name; k++) {
        if (strcmp(port_name(s, k, is_input), list->files[i].name) == 0) {
            return k;
        }
    }
    return list->files[i].name || i >= count ? UINT32_MAX : i;
}

/* Of input k; NULL = it has none. */
static const run_file *file_of(const run_state *s, uint32_t k)
{
    uint32_t i = 0;
    while (i < s->inputs.count && index_of(s, &s->inputs, i) != k) {
        i++;
    }
    return i < s->inputs.count ? &s->inputs.files[i] : NULL;
}

/* A size of an input that is open: --dim says it, or, where that will do, the file of --input. */
static int check_sizes(const run_state *s, const char *what, bool files_do)
{
    for (uint32_t k = 0; k < npu_graph_num_inputs(s->graph); k++) {
        npu_value v = npu_graph_input(s->graph, k);
        const npu_spec *spec = npu_value_spec(s->graph, v);
        for (uint32_t d = 0; d < spec->rank && !(files_do && file_of(s, k)); d++) {
            const char *symbol = spec->dims[d] < 0 ? npu_graph_symbol_name(s->graph, spec->dims[d]) : NULL;
            if (spec->dims[d] < 0) {
                say_line("%s: size %u of input '%s' is open: give it by --dim %s=N%s", what, (unsigned)d,
                         npu_value_name(s->graph, v), symbol ? symbol : "NAME",
                         files_do ? ", or by a file of --input" : "");
                return RUN_FAILED;
            }
        }
    }
    return RUN_OK;
}

static int check_weights(const run_state *s)
{
    for (uint32_t i = 0; !s->num_weights && i < npu_graph_num_params(s->graph); i++) {
        npu_value v = npu_graph_param(s->graph, i);
        if (!npu_value_data(s->graph, v, NULL)) {
            say_line("%s: weight '%s' and maybe others have no data: name the file that has them, as in npu_run "
                     "MODEL.json WEIGHTS.safetensors", s->model, npu_value_name(s->graph, v));
            return RUN_FAILED;
        }
    }
    return RUN_OK;
}

static int read_weights(run_state *s)
{
    npu_bytes files[RUN_MAX];
    for (uint32_t i = 0; i < s->num_weights; i++) {
        s->diag.status = npu_map_open_most(&s->weight_maps[i], s->weights[i], npu_map_most_of_safetensors);
        s->diag.message[0] = 0;
        if (s->diag.status) {
            return fail(s, s->weights[i]);
        }
        files[i] = s->weight_maps[i].bytes;
    }
    s->num_said = 0;
    if (s->num_weights && npu_graph_bind_safetensors(s->graph, files, s->num_weights, say, s)) {
        s->diag = *npu_graph_diag(s->graph);
        s->diag.line = 0; /* the message says the byte */
        return fail_listed(s, s->diag.file[0] ? s->diag.file : s->weights[0]);
    }
    if (s->num_said == 1) {
        print_diag(&s->said);
    }
    return check_weights(s);
}

/* ---- quantising -------------------------------------------------------------------------------------------------- */

/* Values of the inputs, one sample after the other. */
typedef struct run_samples { run_file files[RUN_SAMPLES]; npu_array arrays[RUN_SAMPLES]; uint32_t count; } run_samples;

/* The file of sample k of an input. */
static void sample_path(const run_state *s, char path[1024], uint32_t input, uint32_t k)
{
    const char *name = npu_value_name(s->graph, npu_graph_input(s->graph, input));
    snprintf(path, 1024, "%s/%s.%u.npy", s->samples, name, (unsigned)k);
}

/* What is there but cannot be read is not missing. */
static bool is_missing(const char *path)
{
    FILE *file = fopen(path, "rb");
    bool is_there = file || errno != ENOENT;
    if (file) {
        fclose(file);
    }
    return !is_there;
}

/* Sample k lacks a file; that is the end, or, where there are others of it or behind it, a gap. */
static int end_samples(const run_state *s, uint32_t k, const char *missing)
{
    char path[1024];
    for (uint32_t n = k; n < k + RUN_GAP; n++) {
        for (uint32_t i = 0; i < npu_graph_num_inputs(s->graph); i++) {
            sample_path(s, path, i, n);
            if (!is_missing(path)) {
                say_line("--quantize %s: %s is missing, but %s is there: samples are numbered from 0 without gaps, and "
                         "each has a file for each input", s->samples, missing, path);
                return RUN_FAILED;
            }
        }
    }
    if (k == 0) {
        say_line("--quantize %s: no samples there: the first file would be %s", s->samples, missing);
    }
    return k ? RUN_OK : RUN_FAILED;
}

static int check_folder(run_state *s)
{
#ifdef NPU_MAP_POSIX
    struct stat st;
    bool is_there = stat(s->samples, &st) == 0;
    if (!is_there || !S_ISDIR(st.st_mode)) {
        say_line("--quantize %s: %s", s->samples, is_there ? "expected a folder of samples" : strerror(errno));
        return RUN_FAILED;
    }
#endif
    if (npu_graph_num_inputs(s->graph) == 0 || npu_graph_num_inputs(s->graph) > RUN_SAMPLES) {
        say_line("--quantize %s: the model has %u inputs, expected 1 to %d", s->samples,
                 (unsigned)npu_graph_num_inputs(s->graph), (int)RUN_SAMPLES);
        return RUN_FAILED;
    }
    return check_sizes(s, "--quantize", true);
}

/* Whole samples, as many as there are, or as there is room for. */
static int load_samples(run_state *s, run_samples *samples)
{
    uint32_t inputs = npu_graph_num_inputs(s->graph), k = 0;
    char path[1024];
    for (; samples->count + inputs <= RUN_SAMPLES; k++) {
        for (uint32_t i = 0; i < inputs; i++) {
            run_file *f = &samples->files[samples->count];
            sample_path(s, path, i, k);
            if (is_missing(path)) {
                return end_samples(s, k, path);
            }
            samples->count++;
            if (load_array(s, f, path)) {
                return RUN_FAILED;
            }
            samples->arrays[samples->count - 1] = f->array;
        }
    }
    sample_path(s, path, 0, k);
    if (!is_missing(path)) {
        say_line("--quantize %s: the first %u samples are taken, of at most %d files", s->samples, (unsigned)k,
                 (int)RUN_SAMPLES);
    }
    return RUN_OK;
}

static void print_quantised(void *ctx, const npu_quantize_report *report)
{
    npu_text text = npu_text_init(NULL);
    (void)ctx;
    say_stage(NULL, NULL);
    npu_quantize_report_print(report, &text);
    fputs(text.data ? text.data : "", stdout);
    npu_text_free(&text);
}

static bool say_runs(void *ctx, uint32_t done, uint32_t total)
{
    char text[64];
    (void)ctx;
    snprintf(text, sizeof text, "%u of %u runs", (unsigned)done, (unsigned)total);
    say_stage("quantising:", text);
    return true;
}

static int quantize_by(run_state *s, const run_samples *samples)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_graph *quantised = NULL;
    npu_quantize_desc desc;
    uint32_t inputs = npu_graph_num_inputs(s->graph);
    memset(&desc, 0, sizeof desc);
    desc.backends = &cpu;
    desc.num_backends = 1;
    desc.inputs = samples->arrays;
    desc.num_samples = inputs ? samples->count / inputs : 0;
    desc.num_measured = desc.num_samples < RUN_MEASURED ? desc.num_samples : RUN_MEASURED;
    desc.form = s->weight_bits == 8 ? NPU_QUANTIZE_WEIGHTS8
                : s->weight_bits    ? NPU_QUANTIZE_WEIGHTS4
                                    : NPU_QUANTIZE_8BIT;
    desc.progress = say_runs;
    desc.report = print_quantised;
    s->diag.status = npu_graph_quantize(&quantised, s->graph, &desc, &s->diag);
    return replace_graph(s, quantised, s->weight_bits ? "--quantize-weights" : "--quantize");
}

static int quantize(run_state *s)
{
    static run_samples samples;
    int result = s->samples ? check_folder(s) : RUN_OK;
    result = result || !s->samples ? result : load_samples(s, &samples);
    result = result || !(s->samples || s->weight_bits) ? result : quantize_by(s, &samples);
    for (uint32_t i = 0; i < samples.count; i++) {
        free(samples.files[i].own);
        npu_map_close(&samples.files[i].map);
    }
    return result;
}

/* How many ops are on 8 bits; what stays in floats, and why. */
static void print_integers(void *ctx, const npu_pass_report *report)
{
    (void)ctx;
    if (report->id != NPU_PASS_INTEGER) {
        return;
    }
    for (uint32_t i = 0; i < report->num_refusals; i++) {
        const npu_pass_refusal *r = &report->refusals[i];
        printf("in floats: %s '%s': %s\n", r->name, r->value, r->reason);
    }
    printf("%u ops on 8 bits, %u in floats%s%s\n", (unsigned)report->num_changes, (unsigned)report->num_refusals,
           report->reason[0] ? ": " : "", report->reason);
    if (!report->num_changes && !report->num_refusals) {
        printf("no op stands between dequantize and quantize ops: --quantize DIR makes such a model\n");
    }
}

/* By some passes; 0 = those that run unasked. */
static int optimize(run_state *s, uint32_t passes)
{
    npu_graph *better = NULL;
    npu_optimize_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.backends = s->list;
    desc.num_backends = s->num_backends;
    desc.passes = passes;
    desc.report = s->integer ? print_integers : NULL;
    s->diag.status = npu_graph_optimize(&better, s->graph, &desc, NULL, &s->diag);
    return replace_graph(s, better, "optimize");
}

static int run_passes(run_state *s)
{
    npu_graph *g = NULL;
    s->diag.status = npu_graph_run_passes(&g, s->graph, s->passes, s->num_passes, NULL, &s->diag);
    return replace_graph(s, g, "--pass");
}

static int improve(run_state *s)
{
    int result = s->integer || s->samples ? optimize(s, 1u << NPU_PASS_INTEGER) : RUN_OK;
    bool optimizes = s->optimizes || (s->bench && !s->stays); /* what is timed is what a program would run */
    result = result || !optimizes ? result : optimize(s, 0);
    return result || !s->num_passes ? result : run_passes(s);
}

/* The file's name without its folder, from the first dot on: as far as it is an identifier. */
static void name_of_file(const char *path, char out[64])
{
    const char *slash = path ? strrchr(path, '/') : NULL, *from = slash ? slash + 1 : path;
    size_t n = 0;
    for (; from && n < 63 && *from && *from != '.'; from++) {
        bool ok = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') || (n && *from >= '0' && *from <= '9');
        out[n++] = ok ? *from : '_';
    }
    memcpy(out + n, n ? "" : "model", n ? 1 : 6);
}

typedef enum run_form { FORM_FILE, FORM_ARRAY, FORM_CALLS } run_form;

static int write_planned(run_state *s, const npu_plan *plan, run_form form, const char *path)
{
    const npu_planned_library *library = npu_ref_planned();
    npu_text file = npu_text_init(NULL), code = npu_text_init(NULL);
    npu_plan_write_desc desc;
    char name[64];
    memset(&desc, 0, sizeof desc);
    name_of_file(path, name);
    desc.libraries = &library;
    desc.num_libraries = 1;
    desc.code = form == FORM_ARRAY ? &code : NULL;
    desc.calls = form == FORM_CALLS ? &code : NULL;
    desc.name = name;
    s->diag.status = npu_plan_write(plan, &desc, &file, &s->diag);
    s->diag.status = s->diag.status ? s->diag.status : npu_text_save(form == FORM_FILE ? &file : &code, path);
    npu_text_free(&file);
    npu_text_free(&code);
    return s->diag.status ? fail(s, path) : RUN_OK;
}

/* Kernels of planned models take plain ops, and those on integers. */
static npu_status plan_for_kernels(run_state *s, npu_graph **g, npu_plan **plan)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc optimize;
    npu_plan_desc desc;
    memset(&optimize, 0, sizeof optimize);
    memset(&desc, 0, sizeof desc);
    optimize.passes = 1u << NPU_PASS_DEAD_CODE | 1u << NPU_PASS_NO_OPS | 1u << NPU_PASS_COMMON |
                      1u << NPU_PASS_SIGNED_BYTES | 1u << NPU_PASS_INTEGER | 1u << NPU_PASS_BATCH_NORM |
                      1u << NPU_PASS_CONSTANTS;
    optimize.backends = desc.backends = &cpu;
    optimize.num_backends = desc.num_backends = 1;
    s->diag.status = npu_graph_optimize(g, s->graph, &optimize, NULL, &s->diag);
    return s->diag.status ? s->diag.status : npu_plan_create(plan, *g, &desc, &s->diag);
}

static int save_planned(run_state *s)
{
    const char *const paths[] = { s->planned, s->array, s->calls }; /* by form */
    const char *what = s->planned ? "--plan-out" : s->array ? "--emit-array" : "--emit-c";
    npu_graph *g = NULL;
    npu_plan *plan = NULL;
    int result = RUN_OK;
    if (!s->planned && !s->array && !s->calls) {
        return RUN_OK;
    }
    result = check_sizes(s, what, false);
    result = result || plan_for_kernels(s, &g, &plan) == NPU_OK ? result : fail(s, what);
    for (uint32_t i = 0; i < sizeof paths / sizeof paths[0] && !result; i++) {
        result = paths[i] ? write_planned(s, plan, (run_form)i, paths[i]) : RUN_OK;
    }
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return result;
}

static int choose_backends(run_state *s)
{
    if (s->backends && strcmp(s->backends, "ref") != 0) {
        s->diag.status = npu_sim_create(&s->sim, NULL);
        if (s->diag.status) {
            return fail(s, "sim");
        }
        s->list[s->num_backends++] = npu_sim_backend(s->sim);
    }
    s->list[s->num_backends++] = npu_ref_backend();
    return RUN_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static int make_exec(run_state *s)
{
    npu_plan_desc plan;
    npu_exec_desc exec;
    npu_threads_desc threads;
    memset(&plan, 0, sizeof plan);
    memset(&exec, 0, sizeof exec);
    memset(&threads, 0, sizeof threads);
    plan.backends = s->list;
    plan.num_backends = s->num_backends;
    threads.width = s->threads;
    threads.diag = &s->diag;
    exec.profile = s->trace || s->page;
    if (s->threads > 1 && npu_threads_create(&s->parallel, &threads)) {
        return fail(s, "--threads");
    }
    plan.num_workers = s->threads;
    exec.parallel = s->parallel;
    say_stage("planning", s->model);
    if (npu_plan_create(&s->made_plan, s->graph, &plan, &s->diag) || npu_program_create(&s->program, s->made_plan, &s->diag) ||
        npu_exec_create(&s->exec, s->program, &exec, &s->diag)) {
        return fail(s, "plan");
    }
    say_stage(NULL, NULL);
    return RUN_OK;
}

/* With the names that there are, the first ones of many. */
static int refuse_port(const run_state *s, const run_file *f, const char *option, bool is_input, bool is_unknown)
{
    enum { SHOWN = 16 };
    uint32_t count = is_input ? npu_graph_num_inputs(s->graph) : npu_graph_num_outputs(s->graph);
    const char **names = (const char **)calloc(count + 1, sizeof *names);
    npu_text list = npu_text_init(NULL);
    for (uint32_t i = 0; i < count && names; i++) {
        names[i] = port_name(s, i, is_input);
        if (i <= SHOWN) {
            npu_text_printf(&list, "%s %s", i ? "," : "", i < SHOWN ? names[i] : "...");
        }
    }
    const char *nearest = is_unknown && f->name ? npu_name_nearest(f->name, names, count) : NULL;
    say_line("%s %s%s%s: %s%s%s%s; the model's are%s", option, f->name ? f->name : "", f->name ? "=" : "", f->path,
             is_unknown ? "the model has no such value" : "given twice", nearest ? ", did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "", count && list.data ? list.data : " none");
    npu_text_free(&list);
    free((void *)names);
    return RUN_FAILED;
}

/* Files for what the model has not, or two for one input, before anything runs. */
static int check_ports(const run_state *s, const run_list *list, const char *option)
{
    bool is_input = list == &s->inputs;
    for (uint32_t i = 0; i < list->count; i++) {
        const run_file *f = &list->files[i];
        uint32_t k = index_of(s, list, i), other = 0;
        while (other < i && index_of(s, list, other) != k) {
            other++;
        }
        if (k != UINT32_MAX && (other == i || !is_input)) {
            continue;
        }
        return refuse_port(s, f, option, is_input, k == UINT32_MAX);
    }
    return RUN_OK;
}

/* Numbers between -1 and 1 for floats, 1 and 0 in turn for all others, which every table has rows for (the kinds of a
   token are two), the same in every run. */
static void *make_up(const npu_spec *spec)
{
    size_t size = 0, len = 0;
    if (npu_spec_size(spec, &size) || npu_spec_len(spec, &len)) {
        return NULL;
    }
    uint8_t *data = (uint8_t *)calloc(size ? size : 1, 1);
    for (size_t i = 0; data && i < len; i++) {
        float x = (float)((i * 2654435761u + 12345u) % 2001u) / 1000.0f - 1.0f;
        double wide = (double)x;
        uint16_t half = spec->dtype == NPU_F16 ? npu_f32_to_f16(x) : npu_f32_to_bf16(x);
        size_t bytes = size / len;
        switch ((int)spec->dtype) {
        case NPU_F32: memcpy(data + i * 4, &x, 4); break;
        case NPU_F64: memcpy(data + i * 8, &wide, 8); break;
        case NPU_F16:
        case NPU_BF16: memcpy(data + i * 2, &half, 2); break;
        case NPU_BOOL: data[i] = 1; break;
        default: data[i * bytes] = (uint8_t)((i + 1) % 2); break; /* 0 on big-endian hosts' high byte: still small there */
        }
    }
    return data;
}

static int set_inputs(run_state *s, npu_array *arrays)
{
    uint32_t count = npu_graph_num_inputs(s->graph);
    memset(arrays, 0, RUN_MAX * sizeof *arrays);
    if (count > RUN_MAX) {
        say_line("the model has %u inputs, expected at most %d", (unsigned)count, (int)RUN_MAX);
        return RUN_FAILED;
    }
    if (check_sizes(s, "run", true)) {
        return RUN_FAILED;
    }
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        arrays[index_of(s, &s->inputs, i)] = s->inputs.files[i].array;
    }
    for (uint32_t k = 0; k < count; k++) {
        npu_value v = npu_graph_input(s->graph, k);
        if (!arrays[k].data) {
            arrays[k].spec = *npu_value_spec(s->graph, v);
            arrays[k].data = s->filled[k] = make_up(&arrays[k].spec);
        }
        if (!arrays[k].data) {
            say_line("input '%s': no memory for made-up numbers; --input takes a file", npu_value_name(s->graph, v));
            return RUN_FAILED;
        }
        if (npu_exec_set_input_at(s->exec, k, &arrays[k])) {
            s->diag = *npu_exec_diag(s->exec);
            return fail(s, file_of(s, k) ? file_of(s, k)->path : "--input");
        }
    }
    return RUN_OK;
}

static npu_array output_of(const run_state *s, uint32_t i)
{
    npu_array a = { NULL, *npu_exec_output_spec(s->exec, i), npu_exec_output(s->exec, i, NULL) };
    return a;
}

static void show(npu_text *text)
{
    fputs(text->data ? text->data : "", stdout);
    npu_text_free(text);
}

static int write_outputs(run_state *s)
{
    for (uint32_t i = 0; i < s->outputs.count; i++) {
        npu_text text = npu_text_init(NULL);
        npu_array a = output_of(s, index_of(s, &s->outputs, i));
        s->diag.message[0] = 0;
        s->diag.status = npu_npy_print(&a, &text);
        s->diag.status = s->diag.status ? s->diag.status : npu_text_save(&text, s->outputs.files[i].path);
        npu_text_free(&text);
        if (s->diag.status) {
            return fail(s, s->outputs.files[i].path);
        }
    }
    return RUN_OK;
}

static int verify(run_state *s)
{
    const npu_tolerance t = { .rtol = s->rtol, .has_rtol = true, .atol = s->atol, .has_atol = true, .equal_nan = true };
    int result = RUN_OK;
    for (uint32_t i = 0; i < s->expected.count; i++) {
        const npu_array *want = &s->expected.files[i].array;
        uint32_t k = index_of(s, &s->expected, i);
        npu_difference d;
        npu_array got = output_of(s, k);
        npu_status status = npu_array_compare(&got, want, &t, &d);
        result = status ? RUN_DIFFERS : result;
        if (status && status != NPU_ERR_MISMATCH) {
            npu_text text = npu_text_init(NULL);
            npu_spec_print(&text, &got.spec);
            npu_text_printf(&text, ", expected ");
            npu_spec_print(&text, &want->spec);
            npu_text_printf(&text, "\n");
            printf("%s: %s: ", npu_graph_output_name(s->graph, k), npu_status_text(status));
            show(&text);
            continue;
        }
        printf("%s: %s: %llu of %llu elements differ, at most by %g (element %llu: %g, expected %g)\n", npu_graph_output_name(s->graph, k),
               status ? npu_status_text(status) : "the same", (unsigned long long)d.num_wrong, (unsigned long long)d.num_elements,
               d.max_diff, (unsigned long long)d.worst, d.got, d.want);
    }
    return result;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Ops with a size that is open are prepared in each run, which can take longer than what they compute. */
static void say_open(const run_state *s)
{
    for (uint32_t i = 0; i < npu_graph_num_inputs(s->graph); i++) {
        const npu_spec *spec = npu_value_spec(s->graph, npu_graph_input(s->graph, i));
        for (uint32_t d = 0; d < spec->rank; d++) {
            const char *name = spec->dims[d] < 0 ? npu_graph_symbol_name(s->graph, spec->dims[d]) : NULL;
            if (name) {
                say_line("the size %s is open: its ops are prepared in each run, with --dim %s=N once", name, name);
                return;
            }
        }
    }
}

/* A quantised model is rounded to 8 bits and back between ops on floats, which takes longer than floats alone. */
static void say_quantised(const run_state *s)
{
    uint32_t count = 0;
    for (npu_op op = { 1 }; op.id <= npu_graph_num_ops(s->graph); op.id++) {
        count += NPU_KIND_NAMESPACE(npu_op_kind(s->graph, op)) == NPU_NS_QUANTIZED;
    }
    if (count && !s->integer && !s->samples) {
        say_line("%u ops quantise and dequantise, those between are on floats: --integer turns them into ops on 8 bits",
                 (unsigned)count);
    }
}

static int bench(run_state *s)
{
    say_open(s);
    say_quantised(s);
    double *times = (double *)malloc((size_t)s->bench * sizeof *times);
    s->diag.status = times ? NPU_OK : NPU_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < s->bench && !s->diag.status; i++) {
        double begin = now();
        s->diag.status = npu_exec_run(s->exec);
        times[i] = now() - begin;
    }
    if (s->diag.status && times) {
        s->diag = *npu_exec_diag(s->exec);
    }
    if (!s->diag.status) {
        qsort(times, s->bench, sizeof *times, compare_times);
        printf("%u runs: least %.3f ms, middle %.3f ms\n", (unsigned)s->bench, times[0] * 1e3, times[s->bench / 2] * 1e3);
    }
    free(times);
    return s->diag.status ? fail(s, "--bench") : RUN_OK;
}

static int find_wrong_op(run_state *s, const npu_array *inputs)
{
    const npu_tolerance t = { .rtol = s->rtol, .has_rtol = true, .atol = s->atol, .has_atol = true };
    npu_op op = { 0 };
    npu_status status = npu_graph_find_wrong_op(s->graph, s->list, s->num_backends, npu_ref_backend(), inputs,
                                                npu_graph_num_inputs(s->graph), &t, &op, NULL, &s->diag);
    if (!status) {
        printf("all ops agree\n");
        return RUN_OK;
    }
    if (!op.id) {
        return fail(s, "--find-wrong-op");
    }
    printf("%s\n", s->diag.message);
    return RUN_DIFFERS;
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static void print_graph(const run_state *s)
{
    npu_text text = npu_text_init(NULL);
    if (s->stats) {
        npu_graph_print_stats(s->graph, &text);
    }
    if (s->text) {
        npu_graph_print(s->graph, &text);
    }
    show(&text);
}

static void print_plan(const run_state *s)
{
    const npu_plan *plan = npu_program_plan(s->program);
    npu_text text = npu_text_init(NULL);
    if (s->plan) {
        npu_plan_print(plan, &text);
    }
    if (s->memory) {
        npu_plan_print_memory(plan, &text);
    }
    if (s->dot) {
        npu_plan_print_dot(plan, &text);
    }
    show(&text);
}

static int write_trace(run_state *s)
{
    npu_text text = npu_text_init(NULL);
    if (s->trace) {
        npu_exec_print_trace(s->exec, &text);
        s->diag.status = npu_text_save(&text, s->trace);
    }
    npu_text_free(&text);
    return s->trace && s->diag.status ? fail(s, s->trace) : RUN_OK;
}

static int write_page(run_state *s)
{
    npu_advice advice[16];
    npu_plan_desc plan;
    npu_report_desc desc;
    npu_text text = npu_text_init(NULL);
    memset(&plan, 0, sizeof plan);
    memset(&desc, 0, sizeof desc);
    plan.backends = s->list;
    plan.num_backends = s->num_backends;
    desc.plan = npu_program_plan(s->program);
    desc.exec = s->exec;
    desc.advice = advice;
    s->diag.status = npu_plan_advise(s->graph, &plan, advice, 16, &desc.num_advice, &s->diag);
    desc.num_advice = desc.num_advice < 16 ? desc.num_advice : 16;
    s->diag.status = s->diag.status ? s->diag.status : npu_report_print(&desc, &text);
    s->diag.status = s->diag.status ? s->diag.status : npu_text_save(&text, s->page);
    npu_text_free(&text);
    return s->diag.status ? fail(s, s->page) : RUN_OK;
}

/* Without files for them, outputs are said in a line each. */
static void print_outputs(const run_state *s)
{
    for (uint32_t i = 0; i < npu_graph_num_outputs(s->graph) && !s->outputs.count && !s->expected.count; i++) {
        npu_text text = npu_text_init(NULL);
        npu_spec_print(&text, npu_exec_output_spec(s->exec, i));
        npu_text_printf(&text, "\n");
        printf("%s : ", npu_graph_output_name(s->graph, i));
        show(&text);
    }
}

static int run_model(run_state *s)
{
    npu_array inputs[RUN_MAX];
    int result = make_exec(s);
    result = result ? result : set_inputs(s, inputs);
    if (result) {
        return result;
    }
    print_plan(s);
    for (uint32_t i = 0; i < s->runs; i++) {
        if (npu_exec_run(s->exec)) {
            s->diag = *npu_exec_diag(s->exec);
            return fail(s, "run");
        }
    }
    print_outputs(s);
    result = write_outputs(s);
    result = result ? result : verify(s);
    result = result || !s->finds ? result : find_wrong_op(s, inputs);
    result = result || !s->bench ? result : bench(s);
    result = result ? result : write_trace(s);
    return result || !s->page ? result : write_page(s);
}

static void clean_list(run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->files[i].own);
        npu_map_close(&list->files[i].map);
    }
}

static void clean_up(run_state *s)
{
    npu_exec_destroy(s->exec);
    npu_program_destroy(s->program);
    npu_plan_destroy(s->made_plan);
    npu_threads_destroy(s->parallel);
    npu_sim_destroy(s->sim);
    npu_graph_destroy(s->graph);
    for (uint32_t i = 0; i < RUN_MAX; i++) {
        free(s->filled[i]);
        npu_map_close(&s->weight_maps[i]);
        free((void *)(uintptr_t)s->beside[i].bytes.name);
        npu_map_close(&s->beside[i]);
    }
    npu_map_close(&s->model_map);
    clean_list(&s->inputs);
    clean_list(&s->known);
    clean_list(&s->outputs);
    clean_list(&s->expected);
}

int main(int argc, char **argv)
{
    static run_state s;
    s.rtol = 1e-4;
    s.atol = 1e-5;
    s.threads = s.runs = 1;
    int result = read_options(&s, argv + (argc > 0));
    if (result || s.helps) {
        fputs(s.helps ? help : "", stdout);
        return finish(result);
    }
    result = load_files(&s, &s.inputs);
    result = result ? result : load_files(&s, &s.known);
    result = result ? result : load_files(&s, &s.expected);
    result = result ? result : choose_backends(&s);
    result = result ? result : read_model(&s);
    result = result ? result : check_ports(&s, &s.inputs, "--input");
    result = result ? result : check_ports(&s, &s.outputs, "--output");
    result = result ? result : check_ports(&s, &s.expected, "--verify");
    result = result ? result : read_weights(&s);
    result = result ? result : quantize(&s);
    result = result ? result : save_planned(&s);
    result = result ? result : improve(&s);
    if (result == RUN_OK) {
        print_graph(&s);
        result = run_model(&s);
    }
    clean_up(&s);
    return finish(result);
}
