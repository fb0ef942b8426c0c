/* ONNX files: whatever reads is a valid graph, and a file that is refused leaves nothing and says where it lies. Nothing is
   computed while reading: sizes that a file names would take as long as they say. */
#define NPU_ONNX_IMPLEMENTATION
#include "../../examples/onnx/npu_onnx.h"
#include "fuzz.h"

static void fuzz_onnx_refused(void *ctx, const npu_diag *diag)
{
    ++*(uint32_t *)ctx;
    FUZZ_REQUIRE(diag->status == NPU_ERR_NOT_FOUND && diag->message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_graph_desc graph = fuzz_desc(&allocator);
    npu_onnx_desc desc;
    npu_onnx_dim batch = { "batch", 2 };
    npu_diag diag;
    npu_graph *g = NULL;
    uint32_t refused = 0;
    uint8_t *copy = (uint8_t *)fuzz_copy(data, size);
    memset(&desc, 0, sizeof desc);
    memset(&diag, 0, sizeof diag);
    desc.graph = &graph;
    desc.dims = &batch;
    desc.num_dims = 1;
    desc.report = fuzz_onnx_refused;
    desc.report_ctx = &refused;
    npu_status status = npu_onnx_read(&g, copy, size, &desc, &diag);
    FUZZ_REQUIRE((status == NPU_OK) == (g != NULL) && diag.status == status && (status == NPU_OK || diag.message[0]));
    FUZZ_REQUIRE(status || !refused);
    FUZZ_REQUIRE(!g || npu_graph_validate(g, NULL, NULL) == NPU_OK);
    npu_graph_destroy(g);
    FUZZ_REQUIRE(memory.live == 0);
    free(copy);
    return 0;
}
