/* .npy files: an array that is read lies in the file or in memory of its own, and is the same when it is written and read
   again. */
#include "../../examples/files/npu_npy.h"
#include "fuzz.h"

static void npy_twice(const npu_array *x, const npu_allocator *allocator)
{
    npu_text text = npu_text_init(allocator);
    npu_bytes file = { "again", NULL, 0 };
    npu_array again;
    void *own = NULL;
    size_t size = 0;
    FUZZ_REQUIRE(npu_npy_print(x, &text) == NPU_OK);
    file.data = text.data;
    file.size = text.len;
    FUZZ_REQUIRE(npu_npy_read(&file, &again, &own, NULL) == NPU_OK && npu_spec_equal(&x->spec, &again.spec));
    FUZZ_REQUIRE(npu_spec_size(&x->spec, &size) == NPU_OK && memcmp(x->data, again.data, size) == 0);
    free(own);
    npu_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_bytes file = { "fuzz", NULL, 0 };
    npu_array x;
    npu_diag diag;
    void *own = NULL;
    uint8_t *copy = (uint8_t *)fuzz_copy(data, size);
    file.data = copy;
    file.size = size;
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_npy_read(&file, &x, &own, &diag);
    FUZZ_REQUIRE(diag.status == status && (status == NPU_OK || diag.message[0]));
    if (status == NPU_OK) {
        npy_twice(&x, &allocator);
    }
    free(own);
    FUZZ_REQUIRE(memory.live == 0);
    free(copy);
    return 0;
}
