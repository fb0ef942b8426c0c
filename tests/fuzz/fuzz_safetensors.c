/* Weights: what binds lies in the file or in the graph, and is the same when it is written and bound again. */
#include "fuzz.h"

static npu_graph *weights_graph(const npu_allocator *allocator)
{
    static const struct { const char *name; npu_dtype dtype; uint32_t rank; int64_t dims[2]; } params[] = {
        { "w", NPU_F32, 2, { 2, 1 } }, { "n", NPU_I16, 1, { 2 } }, { "b", NPU_U8, 0, { 0 } }, { "e", NPU_F64, 1, { 0 } }
    };
    npu_graph_desc desc = fuzz_desc(allocator);
    npu_graph *g = npu_graph_create(&desc);
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        npu_value v = npu_param(g, params[i].name, npu_spec_tensor(params[i].dtype, params[i].rank, params[i].dims));
        npu_output(g, NULL, v);
    }
    FUZZ_REQUIRE(npu_graph_status(g) == NPU_OK);
    return g;
}

static uint32_t weights_of(const npu_graph *g, npu_array *out)
{
    for (uint32_t i = 0; i < npu_graph_num_params(g); i++) {
        npu_value v = npu_graph_param(g, i);
        out[i].name = npu_value_name(g, v);
        out[i].spec = *npu_value_spec(g, v);
        out[i].data = npu_value_data(g, v, NULL);
    }
    return npu_graph_num_params(g);
}

/* Bound, written, and bound again: the same file. */
static void weights_twice(const npu_graph *g, const npu_allocator *allocator)
{
    npu_array arrays[8];
    npu_text first = npu_text_init(allocator), second = npu_text_init(allocator);
    npu_graph *again = weights_graph(allocator);
    FUZZ_REQUIRE(npu_array_print_safetensors(arrays, weights_of(g, arrays), &first) == NPU_OK);
    npu_bytes file = { NULL, NULL, 0 };
    file.data = first.data;
    file.size = first.len;
    FUZZ_REQUIRE(npu_graph_bind_safetensors(again, &file, 1, NULL, NULL) == NPU_OK);
    FUZZ_REQUIRE(npu_array_print_safetensors(arrays, weights_of(again, arrays), &second) == NPU_OK);
    FUZZ_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    npu_graph_destroy(again);
    npu_text_free(&first);
    npu_text_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_bytes file = { "fuzz", NULL, 0 };
    uint8_t *copy = (uint8_t *)fuzz_copy(data, size);
    if (size >= 8 && copy[7] == 'L') { /* the corpus is text: the length is what the header's braces say */
        const uint8_t *end = copy + 8;
        for (const uint8_t *p = end; p < copy + size; p++) {
            end = *p == '}' ? p + 1 : end;
        }
        memset(copy, 0, 8);
        copy[0] = (uint8_t)(end - copy - 8);
        copy[1] = (uint8_t)((end - copy - 8) >> 8);
    }
    file.data = copy;
    file.size = size;
    npu_graph *g = weights_graph(&allocator);
    npu_status status = npu_graph_bind_safetensors(g, &file, 1, NULL, NULL);
    FUZZ_REQUIRE(npu_graph_status(g) == status && (status == NPU_OK || npu_graph_diag(g)->message[0]));
    if (status == NPU_OK) {
        weights_twice(g, &allocator);
    }
    npu_graph_destroy(g);
    FUZZ_REQUIRE(memory.live == 0);
    free(copy);
    return 0;
}
