/* npu_test.h - the checks of the tests. A test file is:

       #include "npu_test.h"
       static void test_relu(void) { NPU_ITEM("S1.18"); NPU_CHECK_EQ(1 + 1, 2); }
       int main(void) { NPU_RUN(test_relu); return npu_test_done(); }

   A failing check prints file, line, expression and values, and the test goes on. NPU_ITEM names requirement items that the
   test covers (at most three); the items of a test that passed are appended to the file named by the environment
   variable NPU_ITEMS. NPU_SKIP("why") marks the test as skipped: return after it. NPU_CHECK_GOLDEN("plan.txt", text)
   compares with tests/golden/plan.txt, which `make record` (NPU_RECORD=1) writes anew. Tests run in the repository's root. */
#ifndef NPU_TEST_H
#define NPU_TEST_H

#ifndef NPU_IR_H
#include "../npu_ir.h"
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npu_test_state {
    int passed, failed, skipped; /* tests, not checks */
    int bad_checks, is_skipped;  /* of the running test */
    const char *items[8];
    int num_items;
    const char *name;
} npu_test;

/* True when ok; else counts the failure and prints where it is. The caller adds the values and ends the line. */
static inline int npu_test_ok(int ok, const char *file, int line, const char *expression)
{
    if (!ok) {
        npu_test.bad_checks++;
        fprintf(stderr, "%s:%d: %s: %s", file, line, npu_test.name ? npu_test.name : "(no test)", expression);
    }
    return ok;
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
    npu_test.bad_checks = npu_test.is_skipped = npu_test.num_items = 0;
    test();
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
