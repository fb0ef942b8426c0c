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
#include <time.h>

static const char help[] =
    "npu_run MODEL.json|MODEL.onnx|MODEL.txt [WEIGHTS.safetensors ...] [OPTION ...]\n"
    "  --input [NAME=]X.npy    an input, by name or in order; without any: numbers that are always the same\n"
    "  --known NAME=X.npy      an ONNX input that is known while the model is read\n"
    "  --dim NAME=N            the size of a dim with a name\n"
    "  --f16-as-f32            f16 of an ONNX model is computed in f32, as ONNX Runtime's CPU does it\n"
    "  --output [NAME=]Y.npy   where an output goes, by name or in order\n"
    "  --verify [NAME=]Y.npy   what an output must be; --rtol X and --atol X, default 1e-4 and 1e-5\n"
    "  --backend sim,ref       who runs it, by falling priority (default ref; ref is always the last)\n"
    "  --threads N             of the CPU backend (default 1)\n"
    "  --optimize              fuse ops and fold constants first\n"
    "  --quantize DIR          to 8 bits first, by the samples DIR/INPUT.0.npy, DIR/INPUT.1.npy ... of each input\n"
    "  --integer               ops on 8 bits of a quantised model's, and which stay in floats, and why\n"
    "  --find-wrong-op         the first op that the backends get wrong, against the CPU alone\n"
    "  --runs N                so many runs, before outputs are looked at; states go on (default 1)\n"
    "  --bench N               the least and the middle time of N runs\n"
    "  --profile T.json        times of all steps, for chrome://tracing or Perfetto\n"
    "  --report PAGE.html      the plan as a page: graph, memory, times, what to implement next\n"
    "  --plan-out MODEL.npum   the model as a planned file, for machines without an operating system\n"
    "  --emit-c MODEL.c        the same as C calls; the file's name is the model's\n"
    "  --plan, --memory, --stats, --text, --dot   print the plan, its memory, how many ops, the graph, the plan as Graphviz\n"
    "  --help\n"
    "Exit: 0 done, 1 the model or a file cannot be used, 2 wrong usage, 3 a result differs.\n";

enum { RUN_OK, RUN_FAILED, RUN_USAGE, RUN_DIFFERS, RUN_MAX = 512, RUN_SAMPLES = 256, RUN_MEASURED = 4 };

/* A file of an option, and the tensor in it. */
typedef struct run_file {
    const char *name, *path; /* of the input or output; NULL = in order */
    npu_map map;
    npu_array array;
    void *own;
} run_file;

typedef struct run_list { run_file files[RUN_MAX]; uint32_t count; } run_list;

typedef struct run_state {
    const char *model, *weights[RUN_MAX], *backends, *trace, *page, *samples, *planned, *calls;
    uint32_t num_weights, threads, runs, bench;
    run_list inputs, known, outputs, expected;
    npu_onnx_dim dims[RUN_MAX];
    uint32_t num_dims;
    bool plan, memory, stats, text, dot, integer, optimizes, finds, widens;
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
    npu_diag diag;
} run_state;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* NAME=PATH, or PATH. */
static bool add_file(run_list *list, char *text)
{
    char *equals = strchr(text, '=');
    if (list->count == RUN_MAX) {
        return false;
    }
    run_file *f = &list->files[list->count++];
    f->name = equals ? text : NULL;
    f->path = equals ? equals + 1 : text;
    if (equals) {
        *equals = 0;
    }
    return f->path[0] != 0;
}

static bool add_dim(run_state *s, char *text)
{
    char *equals = strchr(text, '='), *end;
    if (!equals || s->num_dims == RUN_MAX) {
        return false;
    }
    npu_onnx_dim dim = { text, strtoll(equals + 1, &end, 10) };
    if (*end || end == equals + 1 || dim.size < 0) {
        return false;
    }
    *equals = 0;
    s->dims[s->num_dims++] = dim;
    return true;
}

static bool set_number(uint32_t *out, const char *text)
{
    char *end;
    long x = strtol(text, &end, 10);
    *out = (uint32_t)x;
    return *end == 0 && x > 0 && x < 1000000000;
}

static bool set_real(double *out, const char *text)
{
    char *end;
    *out = strtod(text, &end);
    return *end == 0 && end > text && *out >= 0;
}

static bool set_flag(run_state *s, const char *name)
{
    const struct { const char *name; bool *flag; } flags[] = {
        { "--plan", &s->plan }, { "--memory", &s->memory }, { "--stats", &s->stats }, { "--text", &s->text },
        { "--dot", &s->dot }, { "--integer", &s->integer }, { "--optimize", &s->optimizes }, { "--find-wrong-op", &s->finds },
        { "--f16-as-f32", &s->widens }
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(name, flags[i].name) == 0) {
            return *flags[i].flag = true;
        }
    }
    return false;
}

/* An option with a value; false = there is none of that name, or the value is none. */
static bool set_option(run_state *s, const char *name, char *value)
{
    return strcmp(name, "--input") == 0     ? add_file(&s->inputs, value)
           : strcmp(name, "--known") == 0   ? add_file(&s->known, value)
           : strcmp(name, "--output") == 0  ? add_file(&s->outputs, value)
           : strcmp(name, "--verify") == 0  ? add_file(&s->expected, value)
           : strcmp(name, "--dim") == 0     ? add_dim(s, value)
           : strcmp(name, "--backend") == 0 ? (s->backends = value) != NULL
           : strcmp(name, "--quantize") == 0 ? (s->samples = value) != NULL
           : strcmp(name, "--profile") == 0 ? (s->trace = value) != NULL
           : strcmp(name, "--report") == 0  ? (s->page = value) != NULL
           : strcmp(name, "--plan-out") == 0 ? (s->planned = value) != NULL
           : strcmp(name, "--emit-c") == 0  ? (s->calls = value) != NULL
           : strcmp(name, "--threads") == 0 ? set_number(&s->threads, value)
           : strcmp(name, "--runs") == 0    ? set_number(&s->runs, value)
           : strcmp(name, "--bench") == 0   ? set_number(&s->bench, value)
           : strcmp(name, "--rtol") == 0    ? set_real(&s->rtol, value)
           : strcmp(name, "--atol") == 0    ? set_real(&s->atol, value)
                                            : false;
}

/* Says what the option takes, which is its line of the help. */
static int refuse_option(const char *name, const char *value)
{
    char word[32];
    snprintf(word, sizeof word, " %.24s ", name);
    const char *line = strstr(help, word);
    while (line && line[-1] != '\n') {
        line--;
    }
    fprintf(stderr, line ? "npu_run: %s %s: expected\n%.*s\n" : "npu_run: %s: no such option; npu_run --help\n", name, value,
            line ? (int)strcspn(line, "\n") : 0, line ? line : "");
    return RUN_USAGE;
}

static int read_options(run_state *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (!s->model) {
                s->model = argv[i];
            } else if (s->num_weights < RUN_MAX) {
                s->weights[s->num_weights++] = argv[i];
            } else {
                fprintf(stderr, "npu_run: %s: more than %d files of weights\n", argv[i], (int)RUN_MAX);
                return RUN_USAGE;
            }
        } else if (!set_flag(s, argv[i])) {
            if (i + 1 == argc || !set_option(s, argv[i], argv[i + 1])) {
                return refuse_option(argv[i], i + 1 < argc ? argv[i + 1] : "");
            }
            i++;
        }
    }
    return s->model ? RUN_OK : RUN_USAGE;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static void say_stage(const char *what, const char *name);

static int fail(const run_state *s, const char *what)
{
    const char *words = s->diag.status == NPU_ERR_IO && errno ? strerror(errno) : npu_status_text(s->diag.status);
    char line[16] = "";
    if (s->diag.line && s->diag.message[0]) {
        snprintf(line, sizeof line, ":%u:", (unsigned)s->diag.line);
        line[strstr(s->diag.message, line) ? 0 : strlen(line) - 1] = 0; /* a message may say it */
    }
    say_stage(NULL, NULL);
    fprintf(stderr, "npu_run: %s%s: %s\n", what, line, s->diag.message[0] ? s->diag.message : words);
    return RUN_FAILED;
}

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

static int load_files(run_state *s, run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        run_file *f = &list->files[i];
        s->diag.status = npu_map_open(&f->map, f->path);
        s->diag.message[0] = 0;
        f->map.bytes.name = NULL; /* fail() says it */
        if (s->diag.status || npu_npy_read(&f->map.bytes, &f->array, &f->own, &s->diag)) {
            return fail(s, f->path);
        }
        f->array.name = f->name;
    }
    return RUN_OK;
}

static void say(void *ctx, const npu_diag *diag)
{
    (void)ctx;
    fprintf(stderr, "  %s: %s\n", npu_status_name(diag->status), diag->message);
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

/* What sizes the model leaves open may stay so; where that cannot be, they are those of the files of --input. */
static npu_status read_onnx(run_state *s)
{
    npu_array known[RUN_MAX], shapes[RUN_MAX];
    npu_onnx_desc desc;
    memset(&desc, 0, sizeof desc);
    for (uint32_t i = 0; i < s->known.count; i++) {
        known[i] = s->known.files[i].array;
    }
    for (uint32_t i = 0; i < s->inputs.count; i++) {
        shapes[i] = s->inputs.files[i].array;
    }
    desc.backend = npu_ref_backend();
    desc.dims = s->dims;
    desc.num_dims = s->num_dims;
    desc.inputs = known;
    desc.num_inputs = s->known.count;
    desc.f16_as_f32 = s->widens;
    desc.external = open_beside;
    desc.external_ctx = s;
    desc.report = say;
    npu_status status = npu_onnx_read(&s->graph, s->model_map.bytes.data, s->model_map.bytes.size, &desc, &s->diag);
    if ((status == NPU_ERR_DYNAMIC_SHAPE || status == NPU_ERR_CONVERSION) && !s->inputs.count) {
        fprintf(stderr, "npu_run: sizes that the model leaves open come from --dim NAME=N, or from the files of --input\n");
    }
    if (status && status != NPU_ERR_NOT_FOUND && s->inputs.count) { /* which has been reported */
        desc.shapes = shapes;
        desc.num_shapes = s->inputs.count;
        status = npu_onnx_read(&s->graph, s->model_map.bytes.data, s->model_map.bytes.size, &desc, &s->diag);
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

static int no_dim(const char *name)
{
    fprintf(stderr, "npu_run: --dim %s: the model has no dim of this name\n", name);
    return RUN_USAGE;
}

/* Says which name of --dim or --known an ONNX file, or of --known any other, has nowhere. */
static int check_names(const run_state *s, bool is_onnx)
{
    const npu_bytes *b = &s->model_map.bytes;
    for (uint32_t i = 0; is_onnx && i < s->num_dims; i++) {
        if (!has_dim(b, s->dims[i].name)) {
            return no_dim(s->dims[i].name);
        }
    }
    for (uint32_t i = 0; i < s->known.count; i++) {
        const run_file *f = &s->known.files[i];
        if (!is_onnx || !f->name || !has_text(b, 1, f->name, strlen(f->name))) {
            fprintf(stderr, "npu_run: --known %s=%s: the model has no input of this name\n", f->name ? f->name : "", f->path);
            return RUN_USAGE;
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

static bool has_symbol(const npu_graph *g, const char *name)
{
    const char *symbol;
    bool has = false;
    for (int64_t dim = -2; !has && (symbol = npu_graph_symbol_name(g, dim)) != NULL; dim--) {
        has = strcmp(symbol, name) == 0;
    }
    return has;
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
        if (!has_symbol(s->graph, names[i])) {
            return no_dim(names[i]);
        }
    }
    npu_graph_specialize(&g, s->graph, names, sizes, s->num_dims, &s->diag);
    return replace_graph(s, g, "--dim");
}

/* By its suffix, or, where that says nothing, by what it begins with: a field of protobuf, a brace, a word. */
static int read_model(run_state *s)
{
    say_stage("reading", s->model);
    const npu_bytes *b = &s->model_map.bytes;
    s->diag.status = npu_map_open(&s->model_map, s->model);
    if (s->diag.status) {
        return fail(s, s->model);
    }
    size_t first = leading_bytes(b, " \t\r\n");
    char c = (char)(first < b->size ? ((const char *)b->data)[first] : 0);
    bool is_onnx = ends_with(s->model, ".onnx") || (c > 0 && c < ' ');
    if (check_names(s, is_onnx)) {
        return RUN_USAGE;
    }
    bool is_weights = ends_with(s->model, ".safetensors"), is_archive = b->size > 1 && memcmp(b->data, "PK", 2) == 0;
    if (is_weights || is_archive) { /* torch.save and torch.export make archives */
        fprintf(stderr, "npu_run: %s: %s; a model is .json, .onnx or .txt\n", s->model,
                is_weights ? "weights, which stand behind the model" : "an archive: write files of it by examples/pytorch/export.py");
        return RUN_USAGE;
    }
    npu_status status = is_onnx ? read_onnx(s)
                        : ends_with(s->model, ".json") || c == '{'
                            ? npu_graph_parse_json(&s->graph, (const char *)b->data, b->size, NULL, &s->diag)
                            : npu_graph_parse(&s->graph, (const char *)b->data, b->size, NULL, &s->diag);
    return status ? fail(s, s->model) : is_onnx || !s->num_dims ? RUN_OK : set_dims(s);
}

static int read_weights(run_state *s)
{
    npu_bytes files[RUN_MAX];
    for (uint32_t i = 0; i < s->num_weights; i++) {
        s->diag.status = npu_map_open(&s->weight_maps[i], s->weights[i]);
        if (s->diag.status) {
            return fail(s, s->weights[i]);
        }
        files[i] = s->weight_maps[i].bytes;
    }
    for (uint32_t i = 0; !s->num_weights && i < npu_graph_num_params(s->graph); i++) {
        npu_value v = npu_graph_param(s->graph, i);
        if (!npu_value_data(s->graph, v, NULL)) {
            fprintf(stderr, "npu_run: %s: weight '%s' and maybe others have no data: name the file that has them, "
                    "as in npu_run MODEL.json WEIGHTS.safetensors\n", s->model, npu_value_name(s->graph, v));
            return RUN_USAGE;
        }
    }
    if (s->num_weights && npu_graph_bind_safetensors(s->graph, files, s->num_weights, say, NULL)) {
        s->diag = *npu_graph_diag(s->graph);
        return fail(s, s->diag.file[0] ? s->diag.file : s->weights[0]);
    }
    return RUN_OK;
}

/* ---- quantising -------------------------------------------------------------------------------------------------- */

/* Values of the inputs, one sample after the other. */
typedef struct run_samples { run_file files[RUN_SAMPLES]; npu_array arrays[RUN_SAMPLES]; uint32_t count; } run_samples;

/* Sample k of an input; *is_there = false where there is no such file. */
static int load_sample(run_state *s, run_samples *samples, const char *input, uint32_t k, bool *is_there)
{
    char path[1024];
    run_file *f = &samples->files[samples->count];
    snprintf(path, sizeof path, "%s/%s.%u.npy", s->samples, input, (unsigned)k);
    *is_there = npu_map_open(&f->map, path) == NPU_OK;
    if (!*is_there) {
        return RUN_OK;
    }
    samples->count++;
    f->map.bytes.name = input;
    return npu_npy_read(&f->map.bytes, &samples->arrays[samples->count - 1], &f->own, &s->diag) ? fail(s, path) : RUN_OK;
}

/* As many as there are whole samples. */
static int load_samples(run_state *s, run_samples *samples)
{
    uint32_t inputs = npu_graph_num_inputs(s->graph);
    bool is_there = inputs > 0;
    int result = RUN_OK;
    for (uint32_t k = 0; is_there && !result && samples->count + inputs <= RUN_SAMPLES; k++) {
        for (uint32_t i = 0; i < inputs && is_there && !result; i++) {
            result = load_sample(s, samples, npu_value_name(s->graph, npu_graph_input(s->graph, i)), k, &is_there);
        }
    }
    if (!result && samples->count < (inputs ? inputs : 1)) {
        fprintf(stderr, "npu_run: --quantize %s: no INPUT.0.npy there for each input\n", s->samples);
        return RUN_FAILED;
    }
    return result;
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
    desc.num_samples = samples->count / inputs;
    desc.num_measured = desc.num_samples < RUN_MEASURED ? desc.num_samples : RUN_MEASURED;
    desc.progress = say_runs;
    desc.report = print_quantised;
    s->diag.status = npu_graph_quantize(&quantised, s->graph, &desc, &s->diag);
    return replace_graph(s, quantised, "--quantize");
}

static int quantize(run_state *s)
{
    static run_samples samples;
    int result = s->samples ? load_samples(s, &samples) : RUN_OK;
    result = result || !s->samples ? result : quantize_by(s, &samples);
    for (uint32_t i = 0; i < samples.count; i++) {
        free(samples.files[i].own);
        npu_map_close(&samples.files[i].map);
    }
    return result;
}

/* What stays in floats, and why. */
static void print_refusals(void *ctx, const npu_pass_report *report)
{
    (void)ctx;
    for (uint32_t i = 0; i < report->num_refusals; i++) {
        const npu_pass_refusal *r = &report->refusals[i];
        printf("in floats: %s '%s': %s\n", r->name, r->value, r->reason);
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
    desc.report = s->integer ? print_refusals : NULL;
    s->diag.status = npu_graph_optimize(&better, s->graph, &desc, NULL, &s->diag);
    return replace_graph(s, better, "optimize");
}

static int improve(run_state *s)
{
    int result = s->integer || s->samples ? optimize(s, 1u << NPU_PASS_INTEGER) : RUN_OK;
    return result || !s->optimizes ? result : optimize(s, 0);
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

/* Kernels of planned models take plain ops, and those on integers. */
static npu_status write_planned(run_state *s, npu_text *file, npu_text *calls)
{
    const npu_planned_library *library = npu_ref_planned();
    const npu_backend *cpu = npu_ref_backend();
    npu_optimize_desc optimize;
    npu_plan_desc plan_desc;
    npu_plan_write_desc desc;
    npu_graph *g = NULL;
    npu_plan *plan = NULL;
    char name[64];
    memset(&optimize, 0, sizeof optimize);
    memset(&plan_desc, 0, sizeof plan_desc);
    memset(&desc, 0, sizeof desc);
    optimize.passes = 1u << NPU_PASS_DEAD_CODE | 1u << NPU_PASS_NO_OPS | 1u << NPU_PASS_COMMON |
                      1u << NPU_PASS_SIGNED_BYTES | 1u << NPU_PASS_INTEGER | 1u << NPU_PASS_BATCH_NORM |
                      1u << NPU_PASS_CONSTANTS;
    optimize.backends = plan_desc.backends = &cpu;
    optimize.num_backends = plan_desc.num_backends = 1;
    name_of_file(s->calls ? s->calls : s->planned, name);
    desc.libraries = &library;
    desc.num_libraries = 1;
    desc.calls = s->calls ? calls : NULL;
    desc.name = name;
    s->diag.status = npu_graph_optimize(&g, s->graph, &optimize, NULL, &s->diag);
    s->diag.status = s->diag.status ? s->diag.status : npu_plan_create(&plan, g, &plan_desc, &s->diag);
    s->diag.status = s->diag.status ? s->diag.status : npu_plan_write(plan, &desc, file, &s->diag);
    npu_plan_destroy(plan);
    npu_graph_destroy(g);
    return s->diag.status;
}

static int save_planned(run_state *s)
{
    npu_text file = npu_text_init(NULL), calls = npu_text_init(NULL);
    const char *what = s->planned ? s->planned : s->calls;
    if ((s->planned || s->calls) && write_planned(s, &file, &calls) == NPU_OK) {
        s->diag.status = s->planned ? npu_text_save(&file, s->planned) : NPU_OK;
        if (s->diag.status == NPU_OK && s->calls) {
            what = s->calls;
            s->diag.status = npu_text_save(&calls, s->calls);
        }
    }
    npu_text_free(&file);
    npu_text_free(&calls);
    return what && s->diag.status ? fail(s, what) : RUN_OK;
}

static int choose_backends(run_state *s)
{
    if (s->backends && strcmp(s->backends, "sim,ref") == 0) {
        s->diag.status = npu_sim_create(&s->sim, NULL);
        if (s->diag.status) {
            return fail(s, "sim");
        }
        s->list[s->num_backends++] = npu_sim_backend(s->sim);
    } else if (s->backends && strcmp(s->backends, "ref") != 0) {
        fprintf(stderr, "npu_run: --backend %s: ref, or sim,ref\n", s->backends);
        return RUN_USAGE;
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

/* Files for what the model has not, or two for one input, before anything runs. */
static int check_ports(const run_state *s, const run_list *list, const char *option)
{
    bool is_input = list == &s->inputs;
    uint32_t count = is_input ? npu_graph_num_inputs(s->graph) : npu_graph_num_outputs(s->graph);
    for (uint32_t i = 0; i < list->count; i++) {
        const run_file *f = &list->files[i];
        uint32_t k = index_of(s, list, i), other = 0;
        while (other < i && index_of(s, list, other) != k) {
            other++;
        }
        if (k != UINT32_MAX && (other == i || !is_input)) {
            continue;
        }
        fprintf(stderr, "npu_run: %s %s%s%s: %s; the model's are", option, f->name ? f->name : "", f->name ? "=" : "", f->path,
                k == UINT32_MAX ? "the model has no such value" : "given twice");
        for (uint32_t n = 0; n < count; n++) {
            fprintf(stderr, "%s %s", n ? "," : "", port_name(s, n, is_input));
        }
        fprintf(stderr, "%s\n", count ? "" : " none");
        return RUN_USAGE;
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
        fprintf(stderr, "npu_run: the model has %u inputs, expected at most %d\n", (unsigned)count, (int)RUN_MAX);
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
            fprintf(stderr, "npu_run: input '%s' has dims that are not known: --input or --dim\n", npu_value_name(s->graph, v));
            return RUN_USAGE;
        }
        if (npu_exec_set_input_at(s->exec, k, &arrays[k])) {
            s->diag = *npu_exec_diag(s->exec);
            return fail(s, "--input");
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
                fprintf(stderr, "npu_run: the size %s is open: its ops are prepared in each run, with --dim %s=N once\n", name, name);
                return;
            }
        }
    }
}

static int bench(run_state *s)
{
    say_open(s);
    double *times = (double *)malloc((size_t)s->bench * sizeof *times);
    s->diag.status = times ? NPU_OK : NPU_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < s->bench && !s->diag.status; i++) {
        double begin = now();
        s->diag.status = npu_exec_run(s->exec);
        times[i] = now() - begin;
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
    printf("%s\n", s->diag.message);
    return op.id ? RUN_DIFFERS : RUN_FAILED;
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
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(help, stdout);
            return RUN_OK;
        }
    }
    int result = read_options(&s, argc, argv);
    if (result) {
        fputs(s.model ? "" : help, stderr);
        return result;
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
    return result;
}
