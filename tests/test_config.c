/* Statuses, sizes, texts, the counting allocator and the thread pool. That every allocation of the library may fail is shown
   in test_alloc.c; the configuration macros are exercised by `make check`. */
#include "npu_test.h"

static void test_statuses(void)
{
    static const struct { int number; npu_status status; const char *name; } rows[] = {
#define NPU_X(number, symbol, text) { number, symbol, #symbol },
        NPU_IR_STATUSES(NPU_X)
#undef NPU_X
    };
    size_t count = sizeof rows / sizeof rows[0];
    NPU_ITEM("R2.7");
    for (size_t i = 0; i < count; i++) {
        NPU_CHECK_EQ(rows[i].number, i); /* permanent, and without a hole */
        NPU_CHECK_EQ(rows[i].status, i);
        NPU_CHECK_STR(npu_status_name(rows[i].status), rows[i].name);
        NPU_CHECK(npu_status_text(rows[i].status)[0]);
    }
    NPU_CHECK_EQ(NPU_ERR_INVALID_ARGUMENT, 1); /* the numbers of the device kinds */
    NPU_CHECK_EQ(NPU_ERR_NOT_IMPLEMENTED, 2);
    NPU_CHECK_EQ(NPU_ERR_INTERNAL, 3);
    NPU_CHECK_STR(npu_status_text((npu_status)count), "unknown status");
    NPU_CHECK_STR(npu_status_text((npu_status)-1), "unknown status");
    NPU_CHECK(npu_status_name((npu_status)9999) != NULL);
}

/* The first line of the header names the version that its macro says. */
static void test_version(void)
{
    char line[80] = "", want[40];
    FILE *f = fopen("npu_ir.h", "rb");
    NPU_CHECK(f && fgets(line, sizeof line, f));
    snprintf(want, sizeof want, "/* npu_ir.h - %u.%u - ", NPU_IR_VERSION >> 16, NPU_IR_VERSION >> 8 & 0xff);
    line[strlen(want)] = 0;
    NPU_CHECK_STR(line, want);
    if (f) {
        fclose(f);
    }
}

static void test_sizes(void)
{
    static const struct { size_t a, b; bool fits;
    } sums[] = { { 0, 0, true },
                 { SIZE_MAX, 0, true },
                 { SIZE_MAX - 1, 1, true },
                 { SIZE_MAX, 1, false },
                 { 1, SIZE_MAX, false },
                 { SIZE_MAX, SIZE_MAX, false },
                 { SIZE_MAX / 2, SIZE_MAX / 2, true } };
    static const struct { size_t a, b; bool fits; } products[] = {
        { 0, 0, true }, { 0, SIZE_MAX, true }, { SIZE_MAX, 0, true }, { SIZE_MAX, 1, true }, { SIZE_MAX, 2, false },
        { SIZE_MAX / 3, 3, true }, { SIZE_MAX / 3 + 1, 3, false }, { (size_t)1 << (sizeof(size_t) * 4),
          (size_t)1 << (sizeof(size_t) * 4), false }
    };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        size_t out = 77;
        NPU_CHECK_EQ(npu_size_add(sums[i].a, sums[i].b, &out), sums[i].fits);
        NPU_CHECK(out == (sums[i].fits ? sums[i].a + sums[i].b : 0));
    }
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        size_t out = 77;
        NPU_CHECK_EQ(npu_size_mul(products[i].a, products[i].b, &out), products[i].fits);
        NPU_CHECK(out == (products[i].fits ? products[i].a * products[i].b : 0));
    }
}

/* ---- text ---- */

static void test_text(void)
{
    npu_text text = npu_text_init(NULL);
    char expected[4001];
    NPU_CHECK_EQ(text.len, 0);
    for (int i = 0; i < 1000; i++) {
        npu_text_printf(&text, "%04d", i);
        snprintf(expected + 4 * i, 5, "%04d", i);
    }
    NPU_CHECK_STR(text.data, expected);
    NPU_CHECK_EQ(text.len, 4000);
    npu_text_append(&text, "a\0b", 3); /* bytes as they are */
    NPU_CHECK_EQ(text.len, 4003);
    NPU_CHECK_BYTES(text.data + 4000, "a\0b", 4);
    NPU_CHECK_STATUS(text.status, NPU_OK);
    npu_text_free(&text);
    NPU_CHECK(!text.data && text.len == 0);
}

/* Out of memory: what was there stays, nothing more comes, and the status says why. */
static void test_text_without_memory(void)
{
    npu_alloc_counter counter = { 0, 0, 0, 2 };
    npu_allocator allocator = npu_allocator_counting(&counter);
    npu_text text = npu_text_init(&allocator);
    char line[5000];
    memset(line, 'x', sizeof line);
    npu_text_append(&text, "kept", 4);
    npu_text_append(&text, line, sizeof line);
    NPU_CHECK_STATUS(text.status, NPU_ERR_NO_MEMORY);
    NPU_CHECK(text.data && strncmp(text.data, "kept", 4) == 0 && strlen(text.data) == text.len);
    npu_text_free(&text);
    NPU_CHECK_EQ(counter.live_bytes, 0);
}

/* ---- allocator ---- */

static void test_counting_allocator(void)
{
    npu_alloc_counter counter = { 0, 0, 0, 0 };
    npu_allocator a = npu_allocator_counting(&counter);
    char *p = (char *)a.resize(a.ctx, NULL, 0, 100), *q;
    NPU_CHECK_EQ(counter.live_bytes, 100);
    memset(p, 7, 100);
    p = (char *)a.resize(a.ctx, p, 100, 300);
    NPU_CHECK(p[0] == 7 && p[99] == 7);
    NPU_CHECK_EQ(counter.live_bytes, 300);
    q = (char *)a.resize(a.ctx, NULL, 0, 50);
    NPU_CHECK_EQ(counter.live_bytes, 350);
    counter.fail_at = counter.num_calls + 1;
    NPU_CHECK(!a.resize(a.ctx, p, 300, 400)); /* p stays */
    NPU_CHECK(p[99] == 7);
    NPU_CHECK_EQ(counter.live_bytes, 350);
    NPU_CHECK(!a.resize(a.ctx, p, 300, 0));
    NPU_CHECK(!a.resize(a.ctx, q, 50, 0));
    NPU_CHECK_EQ(counter.live_bytes, 0);
    NPU_CHECK_EQ(counter.peak_bytes, 350);
}

/* ---- threads ---- */

enum { MAX_PARTS = 257 };
typedef struct marks { int seen[MAX_PARTS]; int busy[5]; uint32_t parts, width; } marks;

/* Each part has its own place: two runs of one part, or none, show. So does each worker: two at once, too. */
static void mark(void *arg, uint32_t part, uint32_t parts, uint32_t worker)
{
    marks *m = (marks *)arg;
    bool is_alone = worker < m->width && !__atomic_exchange_n(&m->busy[worker], 1, __ATOMIC_ACQUIRE);
    m->seen[part] += parts == m->parts && part < parts && is_alone ? 1 : 1000;
    __atomic_store_n(&m->busy[is_alone ? worker : 0], 0, __ATOMIC_RELEASE);
}

static void check_run(const npu_parallel *threads, uint32_t parts)
{
    marks m;
    memset(&m, 0, sizeof m);
    m.parts = parts;
    m.width = threads->width;
    threads->run(threads->ctx, mark, &m, parts);
    for (uint32_t i = 0; i < MAX_PARTS; i++) {
        if (m.seen[i] != (i < parts)) {
            NPU_CHECK_EQ(m.seen[i], i < parts);
        }
    }
}

static void test_threads(void)
{
    static const uint32_t widths[] = { 1, 2, 5 };
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
        npu_alloc_counter counter = { 0, 0, 0, 0 };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_parallel *threads = NULL;
        npu_status status = npu_threads_create(&threads, &(npu_threads_desc){ .width = widths[w], .allocator = &allocator });
        if (status == NPU_ERR_UNSUPPORTED) {
            NPU_SKIP("no threads in this build");
            return;
        }
        NPU_CHECK_STATUS(status, NPU_OK);
        NPU_CHECK_EQ(threads->width, widths[w]);
        for (uint32_t round = 0; round < 200; round++) {
            check_run(threads, round % MAX_PARTS);
        }
        npu_threads_destroy(threads);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
    npu_threads_destroy(NULL);
}

static void test_threads_without_memory(void)
{
    npu_status status = NPU_ERR_NO_MEMORY;
    for (uint64_t n = 1; status == NPU_ERR_NO_MEMORY; n++) {
        npu_alloc_counter counter = { 0, 0, 0, 0 };
        npu_allocator allocator = npu_allocator_counting(&counter);
        npu_parallel *threads = NULL;
        counter.fail_at = n;
        status = npu_threads_create(&threads, &(npu_threads_desc){ .width = 3, .allocator = &allocator });
        NPU_CHECK(status == NPU_OK || (!threads && (status == NPU_ERR_NO_MEMORY || status == NPU_ERR_UNSUPPORTED)));
        npu_threads_destroy(threads);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
}

static void checks_nothing(void) { }

/* An empty test fails; bytes that differ are found. Their words go where the others go. */
static void test_the_tests(void)
{
    struct npu_test_state before = npu_test;
    float x[3] = { 1, 2, 3 }, y[3] = { 1, 2, 4 };
    int bad[2];
    NPU_ITEM("F57");
    printf("two failures are meant to be:\n");
    npu_test_run("checks_nothing", checks_nothing);
    bad[0] = npu_test.failed - before.failed;
    npu_test = before;
    NPU_CHECK_BYTES(x, y, sizeof x);
    bad[1] = npu_test.bad_checks;
    npu_test = before;
    NPU_ITEM("F57");
    NPU_CHECK_EQ(bad[0], 1);
    NPU_CHECK_EQ(bad[1], 1);
    NPU_CHECK_BYTES(x, y, 2 * sizeof x[0]);
}

/* The nearest of some names, and none where nothing is near. */
static void test_nearest_name(void)
{
    static const char *const names[] = { "batch", NULL, "height", "width", "heights" };
    static const struct { const char *wanted, *nearest; size_t num_names; } rows[] = {
        { "batch", "batch", 5 }, { "bacth", "batch", 5 }, { "hieght", "height", 5 }, { "heigths", "heights", 5 },
        { "heights", "height", 4 }, { "depth", NULL, 5 }, { "", NULL, 5 }, { NULL, NULL, 5 }, { "batch", NULL, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *got = npu_name_nearest(rows[i].wanted, names, rows[i].num_names);
        NPU_CHECK_THAT(got && rows[i].nearest ? strcmp(got, rows[i].nearest) == 0 : got == rows[i].nearest,
                       "%s: %s", rows[i].wanted ? rows[i].wanted : "NULL", got ? got : "none");
    }
    NPU_CHECK(npu_name_nearest("batch", NULL, 5) == NULL);
}

int main(void)
{
    NPU_RUN(test_the_tests);
    NPU_RUN(test_statuses);
    NPU_RUN(test_version);
    NPU_RUN(test_sizes);
    NPU_RUN(test_text);
    NPU_RUN(test_nearest_name);
    NPU_RUN(test_text_without_memory);
    NPU_RUN(test_counting_allocator);
    NPU_RUN(test_threads);
    NPU_RUN(test_threads_without_memory);
    return npu_test_done();
}
