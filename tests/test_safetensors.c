/* Weights in safetensors files: bound where they lie, reported all at once, refused with the place where a file lies. Files
   are made here, byte by byte; npu_array_print_safetensors is compared with bytes written by hand. */
#include "npu_test.h"
#include "../examples/files/npu_map.h"

#define DIMS(...) (const int64_t[]){ __VA_ARGS__ }

/* A file at a multiple of 64, whose data begins at `skew` beyond one of 8. */
typedef struct st_file {
    uint64_t room[512];
    npu_bytes bytes;
} st_file;

static void file_make(st_file *f, const char *header, size_t header_len, const void *data, size_t size)
{
    uint8_t *at = (uint8_t *)f->room;
    size_t len = strlen(header);
    memset(f, 0, sizeof *f);
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)((uint64_t)header_len >> (8 * i));
    }
    memcpy(at + 8, header, len);
    if (size) {
        memcpy(at + 8 + len, data, size);
    }
    f->bytes.data = at;
    f->bytes.size = 8 + len + size;
}

static void file_of(st_file *f, const char *header, const void *data, size_t size)
{
    file_make(f, header, strlen(header), data, size);
}

static npu_graph *two_params(void)
{
    npu_graph *g = npu_graph_create(NULL);
    npu_value w = npu_param(g, "fc.weight", npu_spec_tensor(NPU_F32, 2, DIMS(2, 1)));
    npu_value n = npu_param(g, "n", npu_spec_tensor(NPU_I16, 1, DIMS(2)));
    npu_output(g, "y", npu_relu(g, w));
    npu_output(g, "z", npu_relu(g, n));
    return g;
}

static const uint8_t ones[] = { 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 5, 0, 0xff, 0xff }; /* 1.0, 2.0; 5, -1 */
#define GOOD                                                                                                           \
    "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"                                       \
    "\"__metadata__\":{\"format\":\"pt\"},\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[8,12]}}"

static void check_bound(npu_graph *g)
{
    size_t size = 0;
    float w[2];
    int16_t n[2];
    const void *data = npu_value_data(g, npu_graph_find(g, "fc.weight"), &size);
    NPU_CHECK_EQ(size, 8);
    memcpy(w, data, 8);
    NPU_CHECK(w[0] == 1 && w[1] == 2);
    NPU_CHECK((uintptr_t)data % 4 == 0);
    data = npu_value_data(g, npu_graph_find(g, "n"), &size);
    NPU_CHECK_EQ(size, 4);
    memcpy(n, data, 4);
    NPU_CHECK(n[0] == 5 && n[1] == -1);
}

/* Without a copy where elements lie at multiples of their size and in the host's order, from any memory else. */
static void test_bind(void)
{
    static st_file f;
    const uint16_t one = 1;
    char header[256] = GOOD;
    NPU_ITEM("R0.11");
    NPU_ITEM("S1.27");
    for (size_t blanks = 0; blanks < 9; blanks++) {
        npu_graph *g = two_params();
        file_of(&f, header, ones, sizeof ones);
        NPU_CHECK_STATUS(npu_graph_bind_safetensors(g, &f.bytes, 1, NULL, NULL), NPU_OK);
        check_bound(g);
        const uint8_t *in_file = (const uint8_t *)f.room + 8 + strlen(header);
        bool is_shared = npu_value_data(g, npu_graph_find(g, "fc.weight"), NULL) == (const void *)in_file;
        NPU_CHECK_EQ(is_shared, *(const uint8_t *)&one == 1 && (uintptr_t)in_file % 4 == 0);
        npu_graph *other = NULL; /* what lies in one graph's memory is not what another one reads */
        NPU_CHECK_STATUS(npu_graph_rewrite(&other, g, NULL, NULL, NULL), NPU_OK);
        bool is_same = npu_value_data(other, npu_graph_find(other, "fc.weight"), NULL) == npu_value_data(g, npu_graph_find(g, "fc.weight"), NULL);
        NPU_CHECK_EQ(is_same, is_shared);
        npu_graph_destroy(g);
        check_bound(other);
        npu_graph_destroy(other);
        strcat(header, " ");
    }
}

/* Two shards are one checkpoint; each alone lacks what the other has, and binds nothing. */
static void test_shards(void)
{
    static st_file a, b;
    npu_graph *g = two_params();
    file_of(&a, "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}", ones, 8);
    file_of(&b, "{\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]}}", ones + 8, 4);
    npu_bytes both[2] = { a.bytes, b.bytes };
    NPU_CHECK_STATUS(npu_graph_bind_safetensors(g, &a.bytes, 1, NULL, NULL), NPU_ERR_MISSING_WEIGHT);
    NPU_CHECK_STR(npu_graph_diag(g)->message, "weight 'n' is missing");
    NPU_CHECK(npu_value_data(g, npu_graph_find(g, "fc.weight"), NULL) == NULL);
    npu_graph_clear_error(g);
    NPU_CHECK_STATUS(npu_graph_bind_safetensors(g, both, 2, NULL, NULL), NPU_OK);
    check_bound(g);
    npu_graph_destroy(g);
}

typedef struct heard { char text[1024]; } heard;
static void hear(void *ctx, const npu_diag *diag)
{
    heard *h = (heard *)ctx;
    size_t len = strlen(h->text);
    snprintf(h->text + len, sizeof h->text - len, "%s: %s\n", npu_status_name(diag->status), diag->message);
}

/* All that is wrong is said in one go. */
static void test_report(void)
{
    static st_file f;
    heard h = { "" };
    npu_graph *g = two_params();
    npu_output(g, "u", npu_relu(g, npu_param(g, "gone", npu_spec_tensor(NPU_F32, 1, DIMS(3)))));
    NPU_ITEM("R0.20");
    file_of(&f,
            "{\"fc.weight\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
            "\"more\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[12,13]},"
            "\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[8,12]}}",
            "0123456789abc", 13);
    NPU_CHECK_STATUS(npu_graph_bind_safetensors(g, &f.bytes, 1, hear, &h), NPU_ERR_SHAPE);
    NPU_CHECK_STR(h.text, "NPU_ERR_SHAPE: weight 'fc.weight' is f16[2,2], expected f32[2,1]\n"
                          "NPU_ERR_DTYPE: weight 'fc.weight' is f16[2,2], expected f32[2,1]\n"
                          "NPU_ERR_MISSING_WEIGHT: weight 'gone' is missing\n"
                          "NPU_ERR_NOT_FOUND: weight 'more' is unexpected: no parameter has that name\n");
    NPU_CHECK(npu_value_data(g, npu_graph_find(g, "n"), NULL) == NULL);
    npu_graph_destroy(g);
}

#define ENTRY(dtype, shape, offsets) "{\"n\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    const char *header;
    size_t size; /* of the data */
    npu_status status;
    const char *words;
} bad[] = {
    { "[]", 0, NPU_ERR_PARSE, "byte 10: the header is more or other than one object" },
    { "{} {}", 0, NPU_ERR_PARSE, "byte 11: the header is more or other than one object" },
    { "{\"n\":", 0, NPU_ERR_PARSE, "expected a value, the text ends" },
    { "{\"n\":7}", 0, NPU_ERR_PARSE, "byte 13: 'n' is no object" },
    { "{\"n\":{}}", 0, NPU_ERR_PARSE, "\"shape\" is missing" },
    { ENTRY("I16", "[2]", "[0,4]"), 3, NPU_ERR_PARSE, "the offsets of 'n' lie outside the 3 bytes of data" },
    { ENTRY("I16", "[2]", "[4,0]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[0]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[0,4,8]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[-4,0]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[0,18446744073709551615]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[9223372036854775804,9223372036854775807]"), 4, NPU_ERR_PARSE, "outside" },
    { ENTRY("I16", "[2]", "[0,4]"), 5, NPU_ERR_PARSE, "byte 8: the tensors end at 4 of 5 bytes of data" },
    { ENTRY("I16", "[2]", "[1,5]"), 5, NPU_ERR_PARSE, "'n' begins at 1 of the data, the tensor before it ends at 0" },
    { ENTRY("I16", "[3]", "[0,4]"), 4, NPU_ERR_PARSE, "'n' has 4 bytes of data, its shape and dtype take 6" },
    { ENTRY("I16", "[4294967296,4294967296]", "[0,0]"), 0, NPU_ERR_OVERFLOW, "'n' has 0 bytes" },
    { ENTRY("I16", "[2,-1]", "[0,4]"), 4, NPU_ERR_PARSE, "the shape of 'n' holds what is no size" },
    { ENTRY("I16", "[2.0]", "[0,4]"), 4, NPU_ERR_PARSE, "the shape of 'n' holds what is no size" },
    { ENTRY("I16", "[1,1,1,1,1,1,1,1,2]", "[0,4]"), 4, NPU_ERR_RANK, "'n' has 9 dims, at most 8 are possible" },
    { ENTRY("F8_E5M2", "[4]", "[0,4]"), 4, NPU_ERR_DTYPE, "byte 13: 'n' is of dtype \"F8_E5M2\", which is none here" },
    { ENTRY("i16", "[2]", "[0,4]"), 4, NPU_ERR_DTYPE, "\"i16\"" },
    { "{\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]},\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[4,8]}}", 8,
      NPU_ERR_PARSE, "\"n\" stands twice in one object" },
    { "{\"n\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]},\"m\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}", 5,
      NPU_ERR_PARSE, "'m' begins at 3 of the data, the tensor before it ends at 4" },
};

/* A copy in a block of its own, so that sanitizers see a read past it. */
static npu_status bind_copy(const void *data, size_t size, npu_diag *diag, heard *h)
{
    npu_graph *g = two_params();
    void *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    npu_bytes file = { "dir/w.safetensors", copy, size };
    npu_status status = npu_graph_bind_safetensors(g, &file, 1, hear, h);
    *diag = *npu_graph_diag(g);
    npu_graph_destroy(g);
    free(copy);
    return status;
}

static void test_bad_files(void)
{
    static st_file f;
    NPU_ITEM("R0.20");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        heard h = { "" };
        npu_diag d;
        file_of(&f, bad[i].header, "01234567", bad[i].size);
        NPU_CHECK_STATUS(bind_copy(f.bytes.data, f.bytes.size, &d, &h), bad[i].status);
        NPU_CHECK_THAT(strstr(d.message, bad[i].words) && strstr(h.text, bad[i].words), "%s\n  got %s", bad[i].header,
                       d.message);
        NPU_CHECK(d.line == 1 && d.column > 0 && strcmp(d.file, "dir/w.safetensors") == 0);
    }
}

/* Every length that is too short, and header lengths that are absurd. */
static void test_truncated(void)
{
    static st_file f;
    static const uint64_t lengths[] = { 0, UINT64_MAX, INT64_MAX, (uint64_t)1 << 32, 1000, 100000001 };
    heard h = { "" };
    npu_diag d;
    file_of(&f, GOOD, ones, sizeof ones);
    NPU_CHECK_STATUS(bind_copy(f.bytes.data, f.bytes.size, &d, &h), NPU_OK);
    for (size_t size = 0; size < f.bytes.size; size++) {
        NPU_CHECK_STATUS(bind_copy(f.bytes.data, size, &d, &h), NPU_ERR_PARSE);
        NPU_CHECK_EQ(d.line, size + sizeof ones < f.bytes.size ? 0 : 1); /* bytes that are no text yet have no lines */
        NPU_CHECK(d.message[0]);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t *at = (uint8_t *)f.room;
        for (int k = 0; k < 8; k++) {
            at[k] = (uint8_t)(lengths[i] >> (8 * k));
        }
        NPU_CHECK_STATUS(bind_copy(at, f.bytes.size, &d, &h), NPU_ERR_PARSE);
        NPU_CHECK(strstr(d.message, "byte 0: a header of ") != NULL);
    }
}

/* The bytes that the format asks for, written by hand, and what is refused. */
static void test_print(void)
{
    static const float w[2] = { 1, 2 };
    static const int16_t n[2] = { 5, -1 };
    static const uint8_t b[3] = { 7, 8, 9 };
    const char *header = "{\"w\": {\"dtype\": \"F32\", \"shape\": [2, 1], \"data_offsets\": [0, 8]}, "
                         "\"n\\u0001\": {\"dtype\": \"I16\", \"shape\": [2], \"data_offsets\": [8, 12]}, "
                         "\"b\": {\"dtype\": \"U8\", \"shape\": [3], \"data_offsets\": [12, 15]}}";
    npu_array arrays[3] = { { "b", npu_spec_tensor(NPU_U8, 1, DIMS(3)), b },
                            { "n\1", npu_spec_tensor(NPU_I16, 1, DIMS(2)), n },
                            { "w", npu_spec_tensor(NPU_F32, 2, DIMS(2, 1)), w } };
    npu_text text = npu_text_init(NULL);
    NPU_CHECK_STATUS(npu_array_print_safetensors(arrays, 3, &text), NPU_OK);
    size_t len = strlen(header), padded = (len + 7) / 8 * 8;
    NPU_CHECK_EQ(text.len, 8 + padded + 15);
    NPU_CHECK(text.len > 8 && (uint8_t)text.data[0] == padded % 256 && (uint8_t)text.data[1] == padded / 256);
    NPU_CHECK_BYTES(text.data + 8, header, len);
    NPU_CHECK_BYTES(text.data + 8 + padded, ones, 12);
    NPU_CHECK_BYTES(text.data + 8 + padded + 12, b, 3);
    npu_text_free(&text);
}

static void test_print_refuses(void)
{
    static const struct { npu_array arrays[2]; npu_status status; } rows[] = {
        { { { NULL, { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" } }, NPU_ERR_INVALID_ARGUMENT },
        { { { "\xff", { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" } }, NPU_ERR_INVALID_ARGUMENT },
        { { { "__metadata__", { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" } }, NPU_ERR_INVALID_ARGUMENT },
        { { { "x", { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, NULL } }, NPU_ERR_INVALID_ARGUMENT },
        { { { "x", { NPU_CLASS_TENSOR, NPU_I4, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" } }, NPU_ERR_DTYPE },
        { { { "x", { NPU_CLASS_TENSOR, NPU_U8, 1, 0, 0, { 0 }, { -1 }, 0, NULL }, "a" } }, NPU_ERR_DYNAMIC_SHAPE },
        { { { "x", { NPU_CLASS_TENSOR, NPU_U8, 2, 0, 0, { 0 }, { INT64_MAX, 3 }, 0, NULL }, "a" } }, NPU_ERR_OVERFLOW },
        { { { "x", { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" },
            { "x", { NPU_CLASS_TENSOR, NPU_U8, 0, 0, 0, { 0 }, { 0 }, 0, NULL }, "a" } }, NPU_ERR_DUPLICATE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_text text = npu_text_init(NULL);
        npu_text_append(&text, "kept", 4);
        NPU_CHECK_STATUS(npu_array_print_safetensors(rows[i].arrays, rows[i].arrays[1].name ? 2 : 1, &text), rows[i].status);
        NPU_CHECK_STR(text.data, "kept");
        npu_text_free(&text);
    }
}

/* What memory runs out on is taken back, and said. */
static void test_memory(void)
{
    static st_file f;
    file_of(&f, GOOD, ones, sizeof ones);
    for (uint64_t fail_at = 1, failed = 1; failed; fail_at++) {
        npu_alloc_counter counter = { 0 };
        npu_allocator a = npu_allocator_counting(&counter);
        npu_graph *g = npu_graph_create(&(npu_graph_desc){ .allocator = &a });
        npu_param(g, "fc.weight", npu_spec_tensor(NPU_F32, 2, DIMS(2, 1)));
        npu_param(g, "n", npu_spec_tensor(NPU_I16, 1, DIMS(2)));
        counter.fail_at = counter.num_calls + fail_at;
        npu_status status = npu_graph_bind_safetensors(g, &f.bytes, 1, NULL, NULL);
        failed = counter.num_calls >= counter.fail_at;
        NPU_CHECK_STATUS(status, failed ? NPU_ERR_NO_MEMORY : NPU_OK);
        npu_graph_destroy(g);
        NPU_CHECK_EQ(counter.live_bytes, 0);
    }
}

/* A file that is mapped, or read, is the memory. */
static void test_map(void)
{
    static st_file f;
    char path[256];
    npu_map map;
    npu_graph *g = two_params();
    snprintf(path, sizeof path, "%s/npu_test.safetensors", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    file_of(&f, GOOD, ones, sizeof ones);
    FILE *file = fopen(path, "wb");
    NPU_CHECK(file && fwrite(f.bytes.data, 1, f.bytes.size, file) == f.bytes.size);
    if (file) {
        fclose(file);
    }
    NPU_CHECK_STATUS(npu_map_open(&map, path), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_bind_safetensors(g, &map.bytes, 1, NULL, NULL), NPU_OK);
    check_bound(g);
    npu_graph_destroy(g);
    npu_map_close(&map);
    remove(path);
    NPU_CHECK_STATUS(npu_map_open(&map, path), NPU_ERR_IO);
    npu_map_close(&map);
    NPU_CHECK(npu_map_open(&map, ".") == NPU_ERR_IO && !map.bytes.data);
    npu_map_close(&map);
}

int main(void)
{
    NPU_RUN(test_bind);
    NPU_RUN(test_shards);
    NPU_RUN(test_report);
    NPU_RUN(test_bad_files);
    NPU_RUN(test_truncated);
    NPU_RUN(test_print);
    NPU_RUN(test_print_refuses);
    NPU_RUN(test_memory);
    NPU_RUN(test_map);
    return npu_test_done();
}
