/* Graphs in JSON: whatever loads must be valid, and what is written of it must load again and be written the same. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_graph_desc desc = fuzz_desc(&allocator);
    npu_diag diag;
    npu_graph *g = NULL, *again = NULL;
    char *copy = (char *)fuzz_copy(data, size);
    memset(&diag, 0, sizeof diag);
    npu_status needs = npu_graph_check_json(copy, size, &desc, NULL, 0, NULL, NULL, &diag);
    FUZZ_REQUIRE(diag.status == needs);
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_graph_parse_json(&g, copy, size, &desc, &diag);
    FUZZ_REQUIRE((status == NPU_OK) == (g != NULL) && diag.status == status);
    FUZZ_REQUIRE(status == NPU_OK || (diag.line > 0 && diag.column > 0 && diag.message[0]));
    if (g) {
        npu_text first = npu_text_init(&allocator), second = npu_text_init(&allocator);
        FUZZ_REQUIRE(needs == NPU_OK || needs == NPU_ERR_NOT_FOUND || needs == NPU_ERR_NOT_IMPLEMENTED);
        FUZZ_REQUIRE(npu_graph_validate(g, NULL, NULL) == NPU_OK);
        FUZZ_REQUIRE(npu_graph_print_mermaid(g, NULL, &second) == NPU_OK);
        FUZZ_REQUIRE(npu_graph_print_stats(g, &second) == NPU_OK);
        npu_text_free(&second);
        status = npu_graph_print_json(g, &first);
        if (status == NPU_OK) {
            status = npu_graph_parse_json(&again, first.data, first.len, &desc, &diag);
            if (status) {
                fprintf(stderr, "%s: line %d: %s\n%s", npu_status_name(status), (int)diag.line, diag.message,
                        first.data);
            }
            FUZZ_REQUIRE(status == NPU_OK && npu_graph_print_json(again, &second) == NPU_OK);
            if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0) {
                fprintf(stderr, "%s\n%s", first.data, second.data);
            }
            FUZZ_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        } else {
            FUZZ_REQUIRE(status == NPU_ERR_DYNAMIC_SHAPE || /* the size of a result may hang on data */
                         status == NPU_ERR_UNSUPPORTED);    /* as_strided of what a write has made */
        }
        npu_text_free(&first);
        npu_text_free(&second);
    }
    npu_graph_destroy(again);
    npu_graph_destroy(g);
    FUZZ_REQUIRE(memory.live == 0);
    free(copy);
    return 0;
}
