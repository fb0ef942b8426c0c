/* examples/files/npu_npy.h: files as NumPy writes them, byte by byte, and those that it does not write. */
#include "npu_test.h"
#include "../examples/files/npu_map.h"
#include "../examples/files/npu_npy.h"

/* A file of version 1 (or 2) with that header and so many bytes of data: 0, 1, 2 ... */
static npu_bytes make(uint8_t *room, int version, const char *header, size_t size)
{
    size_t len = strlen(header), start = version == 1 ? 10 : 12;
    npu_bytes b = { "x.npy", room, start + len + size };
    memcpy(room, "\x93NUMPY", 6);
    room[6] = (uint8_t)version;
    memset(room + 7, 0, 5);
    room[8] = (uint8_t)len;
    memcpy(room + start, header, len);
    for (size_t i = 0; i < size; i++) {
        room[start + len + i] = (uint8_t)i;
    }
    return b;
}

/* From a block of its own, so that sanitizers see a read past its end. */
static npu_status read_copy(const npu_bytes *b, npu_spec *spec, uint8_t *data, npu_diag *diag)
{
    npu_array a;
    void *own = NULL, *copy = malloc(b->size ? b->size : 1);
    npu_bytes file = { b->name, copy, b->size };
    size_t size = 0;
    memcpy(copy, b->data, b->size);
    memset(diag, 0, sizeof *diag);
    npu_status status = npu_npy_read(&file, &a, &own, diag);
    if (status == NPU_OK) {
        *spec = a.spec;
        npu_spec_size(spec, &size);
        memcpy(data, a.data, size);
    }
    free(own);
    free(copy);
    return status;
}

/* How much of a pipe is read: all of what its first bytes promise, and nothing of what is no such file. */
static void test_most(void)
{
    static const struct { int version; const char *header; size_t data, cut, most; } rows[] = { /* cut: of what is there */
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24, 0, 97 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 4, 0, 97 },
        { 2, "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000,), }", 0, 0, 1000075 },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 0, 1, SIZE_MAX },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 0, 64, SIZE_MAX },
        { 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }   \n", 24, 0, 0 },
        { 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24, 0, 0 },
    };
    static const uint8_t zeros[64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t room[256];
        npu_bytes b = make(room, rows[i].version == 2 ? 2 : 1, rows[i].header, rows[i].data);
        room[6] = (uint8_t)rows[i].version;
        NPU_CHECK_EQ(npu_npy_most(b.data, b.size - rows[i].cut), rows[i].most);
    }
    NPU_CHECK_EQ(npu_npy_most(zeros, sizeof zeros), 0);
}

/* The same of safetensors: a length, a header, data up to the last offset. */
static void test_most_of_safetensors(void)
{
    static const struct { const char *header; uint64_t len; size_t cut, most; } rows[] = { /* len 0: the header's */
        { "{\"w\":{\"data_offsets\":[0,16],\"shape\":[99]},\"v\":{\"data_offsets\": [16, 24 ]}}", 0, 0, 8 + 74 + 24 },
        { "{\"w\":{\"data_offsets\":[0,16],\"shape\":[99]},\"v\":{\"data_offsets\": [16, 24 ]}}", 0, 1, SIZE_MAX },
        { "{\"w\":{\"data_offsets\":[0,99999999999999999999999999]}}", 0, 0, SIZE_MAX - 1 },
        { "{\"w\":{\"data_offsets\"", 0, 0, 8 + 20 },
        { "{}", 0, 0, 10 },
        { "{}", 0, 3, SIZE_MAX },
        { "", 0, 0, 8 },
        { "{}", 100000001, 0, 8 },
        { "{}", UINT64_MAX, 0, 8 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t header = strlen(rows[i].header), size = 8 + header - rows[i].cut;
        uint64_t len = rows[i].len ? rows[i].len : header;
        uint8_t *file = (uint8_t *)malloc(size); /* sanitizers see a read past its end */
        uint8_t head[8];
        for (int k = 0; k < 8; k++) {
            head[k] = (uint8_t)(len >> (8 * k));
        }
        memcpy(file, head, size < 8 ? size : 8);
        if (size > 8) {
            memcpy(file + 8, rows[i].header, size - 8);
        }
        NPU_CHECK_EQ(npu_map_most_of_safetensors(file, size), rows[i].most);
        free(file);
    }
}

static void test_read(void)
{
    static const struct { int version; const char *header; size_t size; const char *spec; uint32_t swapped; } rows[] = {
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24, "f32[2,3]", 4 },
        { 2, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", 16, "i64[2]", 8 },
        { 3, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", 3, "u8[3]", 1 },
        { 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 8, "f64[]", 8 },
        { 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 2), }\n", 0, "bool[0,2]", 1 },
        { 1, "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }\n", 8, "c64[1]", 4 },
        { 1, "{'descr':'<f2','fortran_order':False,'shape':(1,2)}", 4, "f16[1,2]", 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int is_big = 0; is_big < 2; is_big++) {
            uint8_t room[256], data[32];
            char header[128];
            npu_spec spec;
            npu_diag diag;
            npu_text text = npu_text_init(NULL);
            strcpy(header, rows[i].header);
            *strpbrk(header, "<|") = rows[i].swapped == 1 ? '|' : is_big ? '>' : '<';
            npu_bytes b = make(room, rows[i].version, header, rows[i].size);
            NPU_CHECK_STATUS(read_copy(&b, &spec, data, &diag), NPU_OK);
            npu_spec_print(&text, &spec);
            NPU_CHECK_STR(text.data, rows[i].spec);
            bool swaps = rows[i].swapped > 1 && (is_big != 0) != npu_npy_host_is_big();
            for (uint8_t k = 0; k < rows[i].size; k++) {
                uint8_t from = (uint8_t)(swaps ? k / rows[i].swapped * rows[i].swapped + rows[i].swapped - 1 - k % rows[i].swapped : k);
                NPU_CHECK_EQ(data[k], from);
            }
            npu_text_free(&text);
        }
    }
}

#define SHAPE(text) "{'descr': '<f4', 'fortran_order': False, 'shape': " text ", }\n"
#define DESCR(text) "{'descr': " text ", 'fortran_order': False, 'shape': (1,), }\n"

static void test_bad(void)
{
    static const struct { int version; const char *header; size_t size; npu_status status; const char *words; } rows[] = {
        { 0, SHAPE("(1,)"), 4, NPU_ERR_VERSION, "a version that is not known" },
        { 4, SHAPE("(1,)"), 4, NPU_ERR_VERSION, "a version that is not known" },
        { 1, "", 4, NPU_ERR_PARSE, "byte 10: expected {'descr':" },
        { 1, "{'shape': (1,)}", 4, NPU_ERR_PARSE, "byte 11: expected {'descr':" },
        { 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 4, NPU_ERR_UNSUPPORTED, "byte 48: the elements lie column by column" },
        { 1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", 4, NPU_ERR_PARSE, "expected False" },
        { 1, "{'descr': '<f4'}", 4, NPU_ERR_PARSE, "expected 'fortran_order':" },
        { 1, DESCR("[('a', '<f4')]"), 4, NPU_ERR_UNSUPPORTED, "expected a plain dtype" },
        { 1, DESCR("'|O'"), 4, NPU_ERR_UNSUPPORTED, "no dtype of this library" },
        { 1, DESCR("'<U5'"), 4, NPU_ERR_UNSUPPORTED, "no dtype of this library" },
        { 1, DESCR("'<f16'"), 16, NPU_ERR_UNSUPPORTED, "no dtype of this library" },
        { 1, SHAPE("(2,)"), 4, NPU_ERR_SHAPE, "the data is not of the size" },
        { 1, SHAPE("(1,)"), 5, NPU_ERR_SHAPE, "the data is not of the size" },
        { 1, SHAPE("(-1,)"), 4, NPU_ERR_PARSE, "expected a size" },
        { 1, SHAPE("(1"), 4, NPU_ERR_PARSE, "expected" },
        { 1, SHAPE("1"), 4, NPU_ERR_PARSE, "expected a shape in brackets" },
        { 1, SHAPE("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, NPU_ERR_RANK, "more dims than are possible" },
        { 1, SHAPE("(99999999999999999999,)"), 4, NPU_ERR_OVERFLOW, "a size does not fit" },
        { 1, SHAPE("(4294967296, 4294967296)"), 0, NPU_ERR_OVERFLOW, "a size does not fit" },
        { 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, NPU_ERR_PARSE, "expected }" },
    };
    uint8_t room[256], data[32];
    npu_spec spec;
    npu_diag diag;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npu_bytes b = make(room, rows[i].version, rows[i].header, rows[i].size);
        npu_status status = read_copy(&b, &spec, data, &diag);
        NPU_CHECK_THAT(status == rows[i].status && diag.status == status && strstr(diag.message, rows[i].words), "%s: %s: %s",
                       rows[i].header, npu_status_name(status), diag.message);
    }
    npu_bytes b = make(room, 2, SHAPE("(1,)"), 4);
    for (size_t size = b.size; size--;) { /* every file that ends too early */
        npu_bytes less = { "x.npy", room, size };
        NPU_CHECK(read_copy(&less, &spec, data, &diag) != NPU_OK && diag.message[0]);
    }
    room[0] = 'P';
    NPU_CHECK_STATUS(read_copy(&b, &spec, data, &diag), NPU_ERR_PARSE);
}

/* What is written is what NumPy writes: data at a multiple of 64, and it reads back. */
static void test_print(void)
{
    static const int16_t x[6] = { 1, -2, 3, -4, 5, -6 };
    npu_array a = { NULL, npu_spec_tensor(NPU_I16, 2, (int64_t[]){ 2, 3 }), x }, back;
    npu_text text = npu_text_init(NULL);
    npu_diag diag;
    void *own = NULL;
    NPU_CHECK_STATUS(npu_npy_print(&a, &text), NPU_OK);
    NPU_CHECK_EQ((text.len - sizeof x) % 64, 0);
    npu_bytes b = { "x.npy", text.data, text.len };
    NPU_CHECK_STATUS(npu_npy_read(&b, &back, &own, &diag), NPU_OK);
    NPU_CHECK(npu_spec_equal(&a.spec, &back.spec));
    NPU_CHECK_BYTES(back.data, x, sizeof x);
    free(own);
    npu_text_free(&text);
    a.spec.dtype = NPU_BF16;
    NPU_CHECK_STATUS(npu_npy_print(&a, &text), NPU_ERR_DTYPE);
    a.spec.dims[0] = -1;
    NPU_CHECK_STATUS(npu_npy_print(&a, &text), NPU_ERR_DYNAMIC_SHAPE);
    npu_text_free(&text);
}

int main(void)
{
    NPU_RUN(test_read);
    NPU_RUN(test_most);
    NPU_RUN(test_most_of_safetensors);
    NPU_RUN(test_bad);
    NPU_RUN(test_print);
    return npu_test_done();
}
