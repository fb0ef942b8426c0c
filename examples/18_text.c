/* 18_text: a text that goes on. A transformer over characters, trained on Perl's manual (text/train.py), in the model DSL:
   each run reads one character and scores the next. Keys and values of what was read are states of the graph, which a run
   writes in place: nothing is computed twice, nothing but a character and its place goes in. A second graph reads
   sixteen characters at a time, for prompts: its weights and its states are those of the first.
   cc -O2 -I.. 18_text.c -lm -lpthread      (run it from the repository's root)

       18_text "If you want to " 400 --temperature 0.5
       18_text --check examples/text         the likeliest characters after some prompts are PyTorch's

   --temperature T   0 takes the likeliest character each time; the higher, the more surprising: default 0.5
   --seed N          another text: default 1
   --model DIR       where weights.safetensors is: default examples/text */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "files/npu_map.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The alphabet is a newline and what can be printed, from blank to tilde. */
enum { CONTEXT = 256, ALPHABET = 96, WIDTH = 80, HEADS = 5, HIDDEN = 320, LAYERS = 3, BLOCK = 16 };

/* The model for so many characters at a time. */
typedef struct text_graph {
    int64_t rows;
    npu_model *model;
    npu_program *program;
    npu_exec *exec;
} text_graph;

typedef struct text_model {
    npu_map weights;
    text_graph step, block;
    int64_t tokens[CONTEXT]; /* what is known of the text, and how much of it was read */
    int64_t places[CONTEXT]; /* 0, 1, 2 ... */
    int64_t num_known, num_read;
} text_model;

static int64_t token_of(char c) { return c == '\n' ? 0 : c - 31; }
static char char_of(int64_t token) { return token == 0 ? '\n' : (char)(token + 31); }

static bool is_readable(const char *text)
{
    for (; *text; text++) {
        if (*text != '\n' && (*text < 32 || *text > 126)) {
            return false;
        }
    }
    return true;
}

/* ---- the model ---- */

static const char *join(char *out, size_t size, const char *layer, const char *name)
{
    snprintf(out, size, "%s.%s", layer, name);
    return out;
}

/* x + attention(norm(x)) over all that was read, then x + feed forward(norm(x)). */
static npu_value decoder_layer(npu_model *m, npu_value x, npu_value position, const char *name)
{
    npu_graph *g = npu_model_graph(m);
    char names[4][40];
    npu_layer_layer_norm norm1 = npu_layer_layer_norm_init(join(names[0], 40, name, "norm1"), WIDTH);
    npu_layer_cached_attention attention = npu_layer_cached_attention_init(name, WIDTH, HEADS, CONTEXT);
    npu_layer_layer_norm norm2 = npu_layer_layer_norm_init(join(names[1], 40, name, "norm2"), WIDTH);
    npu_layer_linear up = npu_layer_linear_init(join(names[2], 40, name, "linear1"), WIDTH, HIDDEN);
    npu_layer_linear down = npu_layer_linear_init(join(names[3], 40, name, "linear2"), HIDDEN, WIDTH);
    npu_value read[2] = { npu_model_add(m, &norm1.base, x), position };
    x = npu_add(g, x, npu_model_add_list(m, &attention.base, read, 2));
    npu_value h = npu_model_add(m, &up.base, npu_model_add(m, &norm2.base, x));
    return npu_add(g, x, npu_model_add(m, &down.base, npu_gelu(g, h, NULL)));
}

static npu_model *build(int64_t rows)
{
    npu_model *m = npu_model_create(NULL);
    npu_graph *g = npu_model_graph(m);
    npu_layer_embedding embedding = npu_layer_embedding_init("embedding", ALPHABET, WIDTH);
    npu_layer_embedding places = npu_layer_embedding_init("position", CONTEXT, WIDTH);
    npu_layer_layer_norm norm = npu_layer_layer_norm_init("norm", WIDTH);
    npu_layer_linear head = npu_layer_linear_init("head", WIDTH, ALPHABET);
    npu_value token = npu_model_input(m, "token", npu_spec_tensor(NPU_I64, 2, (int64_t[]){ 1, rows }));
    npu_value position = npu_model_input(m, "place", npu_spec_tensor(NPU_I64, 1, &rows));
    npu_value x = npu_add(g, npu_model_add(m, &embedding.base, token), npu_model_add(m, &places.base, position));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "layers.%d", i);
        x = decoder_layer(m, x, position, name);
    }
    npu_model_output(m, "scores", npu_model_add(m, &head.base, npu_model_add(m, &norm.base, x)));
    return m;
}

static void complain(void *ctx, const npu_diag *diag)
{
    (void)ctx;
    fprintf(stderr, "%s\n", diag->message);
}

/* beside: the graph whose weights and states this one has, NULL = none. */
static bool load_graph(text_graph *t, int64_t rows, const npu_bytes *weights, const text_graph *beside)
{
    const npu_backend *cpu = npu_ref_backend();
    npu_plan_desc plan_desc = { .backends = &cpu, .num_backends = 1, .weights_of = beside ? beside->program : NULL };
    npu_exec_desc exec_desc = { .states_of = beside ? beside->exec : NULL };
    npu_plan *plan = NULL;
    npu_diag diag = { 0 };
    t->rows = rows;
    t->model = build(rows);
    npu_graph *g = npu_model_graph(t->model);
    if (npu_graph_bind_safetensors(g, weights, 1, complain, NULL)) {
        return false;
    }
    npu_status status = npu_plan_create(&plan, g, &plan_desc, &diag);
    status = status ? status : npu_program_create(&t->program, plan, &diag);
    status = status ? status : npu_exec_create(&t->exec, t->program, &exec_desc, &diag);
    npu_plan_destroy(plan);
    if (status) {
        complain(NULL, &diag);
    }
    return !status;
}

static void unload_graph(text_graph *t)
{
    npu_exec_destroy(t->exec);
    npu_program_destroy(t->program);
    npu_model_destroy(t->model);
}

static bool load(text_model *t, const char *dir)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/weights.safetensors", dir);
    if (npu_map_open(&t->weights, path)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    for (int64_t i = 0; i < CONTEXT; i++) {
        t->places[i] = i;
    }
    return load_graph(&t->step, 1, &t->weights.bytes, NULL) &&
           load_graph(&t->block, BLOCK, &t->weights.bytes, &t->step);
}

static void unload(text_model *t)
{
    unload_graph(&t->block);
    unload_graph(&t->step);
    npu_map_close(&t->weights);
}

/* ---- text ---- */

/* Adds a character to the text. Where the context is full the older half is forgotten. */
static void know(text_model *t, int64_t token)
{
    if (t->num_known == CONTEXT) {
        memmove(t->tokens, t->tokens + CONTEXT / 2, CONTEXT / 2 * sizeof *t->tokens);
        t->num_known = CONTEXT / 2;
        t->num_read = 0;
    }
    t->tokens[t->num_known++] = token;
}

/* Reads what is known: the scores of all characters that may follow. */
static const float *read_known(text_model *t)
{
    const float *scores = NULL;
    if (t->num_read == 0) {
        npu_exec_reset_state(t->step.exec);
    }
    while (t->num_read < t->num_known) {
        const text_graph *g = t->num_known - t->num_read < BLOCK ? &t->step : &t->block;
        npu_spec tokens = npu_spec_tensor(NPU_I64, 2, (int64_t[]){ 1, g->rows });
        npu_spec places = npu_spec_tensor(NPU_I64, 1, &g->rows);
        npu_exec_set_input(g->exec, &(npu_array){ "token", tokens, t->tokens + t->num_read });
        npu_exec_set_input(g->exec, &(npu_array){ "place", places, t->places + t->num_read });
        if (npu_exec_run(g->exec)) {
            complain(NULL, npu_exec_diag(g->exec));
            return NULL;
        }
        t->num_read += g->rows;
        scores = (const float *)npu_exec_output(g->exec, 0, NULL) + (g->rows - 1) * ALPHABET;
    }
    return scores;
}

static const float *read_token(text_model *t, int64_t token)
{
    know(t, token);
    return read_known(t);
}

static const float *read_text(text_model *t, const char *text)
{
    for (t->num_known = t->num_read = 0; *text; text++) {
        know(t, token_of(*text));
    }
    return read_known(t);
}

static int64_t likeliest(const float *scores)
{
    int64_t best = 0;
    for (int64_t i = 1; i < ALPHABET; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}

/* Numbers from 0 to 1, the same on every machine: a 64-bit xorshift, of which the upper bits are taken. */
static double random_number(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* Each as often as exp(score / temperature) says. */
static int64_t choose(const float *scores, double temperature, uint64_t *seed)
{
    double weights[ALPHABET], sum = 0, best = (double)scores[likeliest(scores)];
    if (temperature <= 0) {
        return likeliest(scores);
    }
    for (int i = 0; i < ALPHABET; i++) {
        sum += weights[i] = exp(((double)scores[i] - best) / temperature);
    }
    double left = random_number(seed) * sum;
    int64_t token = 0;
    while (token + 1 < ALPHABET && left >= weights[token]) {
        left -= weights[token++];
    }
    return token;
}

static int write_text(text_model *t, const char *prompt, long count, double temperature, uint64_t seed)
{
    const float *scores = read_text(t, prompt);
    clock_t begin = clock();
    printf("%s", prompt);
    for (long i = 0; i < count && scores; i++) {
        int64_t token = choose(scores, temperature, &seed);
        putchar(char_of(token));
        fflush(stdout);
        scores = read_token(t, token);
    }
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("\n\n%ld characters, %.0f per second of processor time\n", count, seconds > 0 ? (double)count / seconds : 0);
    return scores ? 0 : 1;
}

/* ---- against PyTorch ---- */

/* The line's next character: \n stands for a newline, and \\ for itself. */
static char next_char(const char **line)
{
    char c = *(*line)++;
    if (c == '\\') {
        c = *(*line)++;
        return c == 'n' ? '\n' : c;
    }
    return c;
}

/* line: a prompt, a tab, what PyTorch continues it with. */
static bool agrees(text_model *t, char *line)
{
    char *expected = strchr(line, '\t');
    if (!expected) {
        fprintf(stderr, "expected.txt: a line without a tab: %s\n", line);
        return false;
    }
    *expected++ = '\0';
    const float *scores = read_text(t, line);
    int count = 0;
    for (const char *at = expected; *at && scores; count++) {
        int64_t token = likeliest(scores);
        char want = next_char(&at);
        if (char_of(token) != want) {
            printf("%s: character %d is '%c', expected '%c'\n", line, count, char_of(token), want);
            return false;
        }
        scores = read_token(t, token);
    }
    printf("%3d characters as in PyTorch: %s%s\n", count, line, expected);
    return scores && count > 0;
}

static int check(text_model *t, const char *dir)
{
    char path[1024], line[2048];
    int count = 0, failed = 0;
    snprintf(path, sizeof path, "%s/expected.txt", dir);
    FILE *file = fopen(path, "r");
    for (; file && fgets(line, sizeof line, file); count++) {
        line[strcspn(line, "\r\n")] = '\0';
        failed += !agrees(t, line);
    }
    if (file) {
        fclose(file);
    } else {
        fprintf(stderr, "%s: cannot be read\n", path);
    }
    printf("%d prompts, %d failed\n", count, failed);
    return failed || !count;
}

static int usage(void)
{
    fprintf(stderr, "18_text [PROMPT [CHARACTERS]] [--temperature T] [--seed N] [--model DIR] | --check DIR\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *prompt = "If you want to ", *dir = "examples/text", *checked = NULL;
    double temperature = 0.5;
    uint64_t seed = 1;
    long count = 600;
    for (int i = 1, given = 0; i < argc; i++) {
        bool is_option = argv[i][0] == '-' && argv[i][1] == '-';
        const char *value = is_option ? argv[i + 1] : argv[i];
        if (is_option && !value) {
            return usage();
        } else if (!strcmp(argv[i], "--temperature")) {
            temperature = atof(value);
        } else if (!strcmp(argv[i], "--seed")) {
            seed = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "--model")) {
            dir = value;
        } else if (!strcmp(argv[i], "--check")) {
            dir = checked = value;
        } else if (is_option || given > 1) {
            return usage();
        } else if (given++) {
            count = strtol(value, NULL, 10);
        } else {
            prompt = value;
        }
        i += is_option;
    }
    if (!*prompt || !is_readable(prompt) || count < 0) {
        fprintf(stderr, "a prompt is one character or more, of ASCII\n");
        return usage();
    }
    text_model t;
    memset(&t, 0, sizeof t);
    int status = 1;
    if (load(&t, dir)) {
        status = checked ? check(&t, checked) : write_text(&t, prompt, count, temperature, seed * 0x9e3779b97f4a7c15u + 1);
    }
    unload(&t);
    return status;
}
