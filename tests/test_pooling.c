/* Pools over all small sizes, kernels, strides, borders, dilations and roundings, held against windows that are walked one
   after the other. */
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

enum { MOST = 12, CHANNELS = 2 };

static npu_registry *registry; /* one for all graphs */

typedef struct window {
    int kernel, stride, padding, dilation;
    bool ceil_mode, count_include_pad; /* the latter of means */
} window;

/* How many windows there are: one more as long as it ends inside the border; with ceil_mode, as long as the one before left
   something and it starts before the border behind the data. */
static int count_windows(const window *w, int n)
{
    int reach = (w->kernel - 1) * w->dilation + 1, count = 0;
    for (;; count++) {
        int start = count * w->stride;
        bool fits = w->ceil_mode ? start - w->stride + reach < n + 2 * w->padding && start < n + w->padding
                                 : start + reach <= n + 2 * w->padding;
        if (!fits) {
            return count;
        }
    }
}

/* Where the k-th window over n numbers begins and ends, and how many of its places a mean counts. */
static void walk(const window *w, int n, int k, int *first, int *end, int *divisor)
{
    int start = k * w->stride - w->padding, last = start + (w->kernel - 1) * w->dilation + 1;
    *first = start;
    *end = last < n + w->padding ? last : n + w->padding;
    *divisor = 0;
    for (int i = *first; i < *end; i += w->dilation) {
        *divisor += w->count_include_pad || (i >= 0 && i < n);
    }
}

static float pool_at(const window *w, bool is_max, const float *x, const int dims[2], int row, int column)
{
    int rows[3], columns[3];
    float most = -INFINITY, sum = 0;
    walk(w, dims[0], row, &rows[0], &rows[1], &rows[2]);
    walk(w, dims[1], column, &columns[0], &columns[1], &columns[2]);
    for (int i = rows[0]; i < rows[1]; i += w->dilation) {
        for (int k = columns[0]; k < columns[1]; k += w->dilation) {
            if (i >= 0 && i < dims[0] && k >= 0 && k < dims[1]) {
                most = fmaxf(most, x[i * dims[1] + k]);
                sum += x[i * dims[1] + k];
            }
        }
    }
    return is_max ? most : sum / (float)(rows[2] * columns[2]);
}

static void check_values(const npu_exec *exec, const char *call, const window *w, bool is_max, const float *x, const int dims[2])
{
    int rows = count_windows(w, dims[0]), columns = count_windows(w, dims[1]);
    size_t size = 0;
    const float *y = (const float *)npu_exec_output(exec, 0, &size);
    NPU_CHECK_THAT(size == (size_t)(CHANNELS * rows * columns) * sizeof *y, "%s: %lu bytes, expected %d rows of %d", call,
                   (unsigned long)size, rows, columns);
    for (int i = 0; i < CHANNELS * rows * columns && size == (size_t)(CHANNELS * rows * columns) * sizeof *y; i++) {
        const float *from = x + i / (rows * columns) * dims[0] * dims[1];
        float expected = pool_at(w, is_max, from, dims, i / columns % rows, i % columns);
        if (y[i] != expected && !(fabsf(y[i] - expected) < 1e-5f)) {
            NPU_CHECK_THAT(false, "%s: element %d is %g, expected %g", call, i, (double)y[i], (double)expected);
            return;
        }
    }
}

static void check_pool(const window *w, bool is_max, int n, int m)
{
    static float x[CHANNELS * MOST * MOST];
    const npu_backend *cpu = npu_ref_backend();
    const int dims[2] = { n, m };
    char call[400], last[80];
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    bool none = count_windows(w, n) == 0 || count_windows(w, m) == 0;
    for (int i = 0; i < CHANNELS * n * m; i++) {
        x[i] = (float)(i * 37 % 101 - 50);
    }
    snprintf(last, sizeof last, "dilation=[%d,%d]", w->dilation, w->dilation);
    if (!is_max) {
        snprintf(last, sizeof last, "count_include_pad=%s", w->count_include_pad ? "true" : "false");
    }
    int len = snprintf(call, sizeof call, "npu_ir 1\ngraph main\ninput x : f32[1,%d,%d,%d]\n"
                       "y = aten.%s.default(x, kernel_size=[%d,%d], stride=[%d,%d], padding=[%d,%d], ceil_mode=%s, %s)\noutput y = y\n",
                       CHANNELS, n, m, is_max ? "max_pool2d" : "avg_pool2d", w->kernel, w->kernel, w->stride, w->stride, w->padding,
                       w->padding, w->ceil_mode ? "true" : "false", last);
    npu_status status = npu_graph_parse(&g, call, (size_t)len, &(npu_graph_desc){ .registry = registry }, &diag);
    NPU_CHECK_THAT(none == (status != NPU_OK), "%s: %s %s", call, npu_status_name(status), diag.message);
    if (status == NPU_OK) {
        status = npu_exec_create_simple(&exec, g, &cpu, 1, &diag);
        status = status ? status : npu_test_input(exec, "x", x, (size_t)(CHANNELS * n * m) * sizeof x[0]);
        status = status ? status : npu_exec_run(exec);
        NPU_CHECK_THAT(status == NPU_OK, "%s: %s", call, npu_status_name(status));
        check_values(exec, call, w, is_max, x, dims);
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
}

/* Rows of all sizes, columns of another one. */
static void check_sizes(const window *w, bool is_max)
{
    for (int n = 1; n <= MOST; n++) {
        check_pool(w, is_max, n, 1 + (n * 5 + w->kernel) % MOST);
    }
}

static void check_all(bool is_max)
{
    for (int i = 0; i < 4 * 3 * 3 * 2 * 2; i++) {
        window w = { 1 + i % 4, 1 + i / 4 % 3, i / 12 % 3, 1, i / 36 % 2 == 1, i / 72 == 1 };
        if (is_max) {
            w.dilation = 1 + i / 72;
        }
        if (w.padding <= w.kernel / 2) { /* more is refused */
            check_sizes(&w, is_max);
        }
    }
}

static void test_maxima(void)
{
    NPU_ITEM("F57");
    check_all(true);
}

static void test_means(void)
{
    NPU_ITEM("F57");
    check_all(false);
}

int main(void)
{
    NPU_CHECK_STATUS(npu_registry_create(&registry, NULL, NULL), NPU_OK);
    NPU_RUN(test_maxima);
    NPU_RUN(test_means);
    npu_registry_destroy(registry);
    return npu_test_done();
}
