/* npu_test.h - the checks of the tests. A test file is:

       #include "npu_test.h"
       static void test_relu(void) { NPU_ITEM("S1.18"); NPU_CHECK_EQ(1 + 1, 2); }
       int main(void) { NPU_RUN(test_relu); return npu_test_done(); }

   A failing check prints file, line, expression and values, and the test goes on; a test without a check fails. What an
   oracle found is said by NPU_CHECK_THAT(ok, format, ...), and NPU_CHECK_BYTES shows the first that differ. NPU_ITEM names requirement items that the
   test covers (at most three); the items of a test that passed are appended to the file named by the environment
   variable NPU_ITEMS. NPU_SKIP("why") marks the test as skipped: return after it. NPU_CHECK_GOLDEN("plan.txt", text)
   compares with tests/golden/plan.txt, which `make record` (NPU_RECORD=1) writes anew. Tests run in the repository's root. */
#ifndef NPU_TEST_H
#define NPU_TEST_H

#ifndef NPU_IR_H
#include "../npu_ir.h"
#endif
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npu_test_state {
    int passed, failed, skipped; /* tests, not checks */
    int checks, bad_checks, is_skipped; /* of the running test */
    const char *items[8];
    int num_items;
    const char *name;
} npu_test;

/* True when ok; else counts the failure and prints where it is. The caller adds the values and ends the line. */
static inline int npu_test_ok(int ok, const char *file, int line, const char *expression)
{
    npu_test.checks++;
    if (!ok) {
        npu_test.bad_checks++;
        fprintf(stderr, "%s:%d: %s: %s", file, line, npu_test.name ? npu_test.name : "(no test)", expression);
    }
    return ok;
}

static inline void npu_test_that(int ok, const char *file, int line, const char *what, const char *format, ...) NPU_IR_PRINTF(5, 6);
static inline void npu_test_that(int ok, const char *file, int line, const char *what, const char *format, ...)
{
    if (!npu_test_ok(ok, file, line, what)) {
        va_list args;
        va_start(args, format);
        fputs(": ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
}

/* Bytes that differ are shown by four, as they would be numbers, too. */
static inline void npu_test_bytes(const char *file, int line, const char *what, const void *got, const void *expected, size_t size)
{
    const unsigned char *a = (const unsigned char *)got, *b = (const unsigned char *)expected;
    size_t at = 0;
    while (a && b && at < size && a[at] == b[at]) {
        at++;
    }
    if (!npu_test_ok(at == size, file, line, what) && a && b) {
        size_t first = at / 4 * 4, n = size - first < 4 ? size - first : 4;
        uint32_t x[2] = { 0, 0 };
        float f[2];
        memcpy(&x[0], a + first, n);
        memcpy(&x[1], b + first, n);
        memcpy(f, x, sizeof f);
        fprintf(stderr, ": byte %lu of %lu differs: at %lu got 0x%08lx (%.9g), expected 0x%08lx (%.9g)\n", (unsigned long)at, (unsigned long)size,
                (unsigned long)first, (unsigned long)x[0], (double)f[0], (unsigned long)x[1], (double)f[1]);
    } else if (at != size) {
        fputs(": one is NULL\n", stderr);
    }
}

/* One op standalone, in the members' order. */
#define NPU_TEST_CALL(kind_, in_, num_in_, out_, num_out_, schema_, blob_, blob_size_)                                  \
    &(npu_op_call_desc){ .kind = (kind_), .in = (in_), .num_in = (num_in_), .out = (out_), .num_out = (num_out_),       \
                         .attr_schema = (schema_), .blob = (blob_), .blob_size = (blob_size_) }

/* For thousands of graphs: to make a registry for each takes longer than what most of them are for. It is never
   destroyed. */
static inline const npu_graph_desc *npu_test_graph_desc(void)
{
    static npu_graph_desc desc;
    if (!desc.registry && npu_registry_create(&desc.registry, NULL, NULL)) {
        return NULL;
    }
    return &desc;
}

/* Input i of an exec with the spec that its graph says, for tests of other things than types: `size` bytes, or dims. What
   has another size is bound as so many bytes, which no input is. */
static inline npu_array npu_test_array(const npu_exec *exec, npu_value v, const void *data, size_t size)
{
    const npu_graph *g = npu_plan_graph(npu_program_plan(npu_exec_program(exec)));
    const npu_spec *spec = npu_value_spec(g, v);
    int64_t bytes = (int64_t)size;
    size_t expected = size;
    npu_array a = { NULL, npu_spec_tensor(NPU_U8, 1, &bytes), data };
    if (spec && (npu_spec_size(spec, &expected) || expected == size)) {
        a.spec = *spec;
    }
    return a;
}

static inline npu_status npu_test_input(npu_exec *exec, const char *name, const void *data, size_t size)
{
    const npu_graph *g = npu_plan_graph(npu_program_plan(npu_exec_program(exec)));
    npu_array a = npu_test_array(exec, npu_graph_find(g, name), data, size);
    a.name = name;
    return npu_exec_set_input(exec, &a);
}

static inline npu_status npu_test_input_at(npu_exec *exec, uint32_t i, const void *data, size_t size)
{
    const npu_graph *g = npu_plan_graph(npu_program_plan(npu_exec_program(exec)));
    npu_array a = npu_test_array(exec, npu_graph_input(g, i), data, size);
    return npu_exec_set_input_at(exec, i, &a);
}

static inline npu_status npu_test_input_dims(npu_exec *exec, const char *name, uint32_t rank, const int64_t *dims,
                                             const void *data)
{
    const npu_graph *g = npu_plan_graph(npu_program_plan(npu_exec_program(exec)));
    const npu_spec *spec = npu_value_spec(g, npu_graph_find(g, name));
    npu_array a = { name, npu_spec_tensor(spec ? (npu_dtype)spec->dtype : NPU_F32, rank, dims), data };
    a.spec.cls = spec ? spec->cls : a.spec.cls;
    return npu_exec_set_input(exec, &a);
}

/* Does something with that allocator alone; the first status that is not OK, or OK when it all worked. */
typedef npu_status (*npu_test_scenario)(const npu_allocator *a);

/* Lets the first, second, ... allocation fail until one run needs fewer: each run before says so, and leaves nothing
   behind. Returns the number of allocations that a whole run needs. may_go_on: a run may do without what it got no
   memory for. */
static inline uint64_t npu_test_fail_each(npu_test_scenario run, bool may_go_on)
{
    npu_alloc_counter c;
    npu_status status = NPU_ERR_NO_MEMORY;
    int bad = npu_test.bad_checks;
    uint64_t n = 0;
    do {
        npu_allocator a = npu_allocator_counting(&c);
        memset(&c, 0, sizeof c);
        c.fail_at = ++n;
        status = run(&a);
        int ok = status == (c.num_calls < n || (may_go_on && !status) ? NPU_OK : NPU_ERR_NO_MEMORY);
        npu_test_that(ok && c.live_bytes == 0, __FILE__, __LINE__, "fail_each", "allocation %llu: %s, %llu bytes left",
                      (unsigned long long)n, npu_status_name(status), (unsigned long long)c.live_bytes);
    } while (c.num_calls >= n && npu_test.bad_checks == bad);
    return n - 1;
}

static inline void npu_test_int(const char *file, int line, const char *what, long long got, long long expected)
{
    if (!npu_test_ok(got == expected, file, line, what)) {
        fprintf(stderr, ": got %lld (0x%llx), expected %lld\n", got, (unsigned long long)got, expected);
    }
}

static inline void npu_test_str(const char *file, int line, const char *what, const char *got, const char *expected)
{
    int same = got && expected ? strcmp(got, expected) == 0 : got == expected;
    if (!npu_test_ok(same, file, line, what)) {
        fprintf(stderr, ":\n  got      \"%s\"\n  expected \"%s\"\n", got ? got : "(null)", expected ? expected : "(null)");
    }
}

static inline void npu_test_status(const char *file, int line, const char *what, npu_status got, npu_status expected)
{
    if (!npu_test_ok(got == expected, file, line, what)) {
        fprintf(stderr, ": got %s, expected %s\n", npu_status_name(got), npu_status_name(expected));
    }
}

static inline void npu_test_near(const char *file, int line, const char *what, double got, double expected, double tolerance)
{
    int near = got == expected || (isnan(got) && isnan(expected)) || fabs(got - expected) <= tolerance;
    if (!npu_test_ok(near, file, line, what)) {
        fprintf(stderr, ": got %.17g, expected %.17g, tolerance %g\n", got, expected, tolerance);
    }
}

#define NPU_CHECK(x) do { if (!npu_test_ok(!!(x), __FILE__, __LINE__, #x)) { fputc('\n', stderr); } } while (0)
#define NPU_CHECK_THAT(ok, ...) npu_test_that(!!(ok), __FILE__, __LINE__, #ok, __VA_ARGS__)
#define NPU_CHECK_BYTES(got, expected, size) npu_test_bytes(__FILE__, __LINE__, #got, got, expected, size)
#define NPU_CHECK_EQ(a, b) npu_test_int(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))
#define NPU_CHECK_STR(a, b) npu_test_str(__FILE__, __LINE__, #a, a, b)
#define NPU_CHECK_STATUS(x, status) npu_test_status(__FILE__, __LINE__, #x, x, status)
#define NPU_CHECK_NEAR(a, b, tolerance) npu_test_near(__FILE__, __LINE__, #a, (double)(a), (double)(b), tolerance)
#define NPU_CHECK_GOLDEN(name, text) npu_test_golden(__FILE__, __LINE__, name, text)
#define NPU_SKIP(why) npu_test_skip(__FILE__, __LINE__, why)
#define NPU_ITEM(item) npu_test_item(item)
#define NPU_RUN(test) npu_test_run(#test, test)

static inline void npu_test_skip(const char *file, int line, const char *why)
{
    npu_test.is_skipped = 1;
    printf("SKIP: %s:%d: %s: %s\n", file, line, npu_test.name, why);
}

static inline void npu_test_item(const char *item)
{
    if (npu_test.num_items < (int)(sizeof npu_test.items / sizeof npu_test.items[0])) {
        npu_test.items[npu_test.num_items++] = item;
    }
}

static inline void npu_test_write_items(void)
{
    const char *path = getenv("NPU_ITEMS");
    FILE *file = path && npu_test.num_items ? fopen(path, "a") : NULL;
    for (int i = 0; file && i < npu_test.num_items; i++) {
        fprintf(file, "%s\n", npu_test.items[i]);
    }
    if (file) {
        fclose(file);
    }
}

static inline void npu_test_run(const char *name, void (*test)(void))
{
    npu_test.name = name;
    npu_test.checks = npu_test.bad_checks = npu_test.is_skipped = npu_test.num_items = 0;
    test();
    if (!npu_test.checks && !npu_test.is_skipped) {
        npu_test_ok(0, __FILE__, __LINE__, "it checks nothing\n");
    }
    if (npu_test.bad_checks) {
        npu_test.failed++;
        fprintf(stderr, "FAIL: %s\n", name);
    } else if (npu_test.is_skipped) {
        npu_test.skipped++;
    } else {
        npu_test.passed++;
        npu_test_write_items();
    }
}

static inline int npu_test_done(void)
{
    printf("%d passed, %d failed, %d skipped\n", npu_test.passed, npu_test.failed, npu_test.skipped);
    return npu_test.failed != 0;
}

static inline void npu_test_golden(const char *file, int line, const char *name, const char *text)
{
    static char expected[1 << 18];
    char path[256];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    FILE *golden = fopen(path, getenv("NPU_RECORD") ? "wb" : "rb");
    if (golden && getenv("NPU_RECORD")) {
        fputs(text, golden);
    } else {
        size_t n = golden ? fread(expected, 1, sizeof expected - 1, golden) : 0;
        expected[n] = 0;
        npu_test_str(file, line, path, text, expected);
    }
    if (golden) {
        fclose(golden);
    }
}

/* Random numbers of a test: the seed is that of NPU_SEED, or 1, so that a run can be repeated; it is printed. */
static inline uint64_t npu_test_seed(void)
{
    const char *text = getenv("NPU_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
    printf("NPU_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* splitmix64: the next number of *state. */
static inline uint64_t npu_test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

#endif
