/* Graph text: whatever parses must be valid, print, parse again and print the same. Tile programs can be checked. */
#include "fuzz.h"

/* Checks the graph, if it is a tile program, and its children; what is found does not matter. */
static void check_tiles(const npu_graph *g, const npu_allocator *allocator, int depth)
{
    npu_tile_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.blocks = 3;
    desc.overlapping = 1u << NPU_PIPE_V;
    desc.allocator = allocator;
    FUZZ_REQUIRE((npu_tile_check(g, &desc, NULL, NULL) == NPU_ERR_CLASS) == (npu_graph_level(g) != NPU_LEVEL_TILE));
    for (uint32_t i = 0; i < npu_graph_num_children(g) && depth < 4; i++) {
        check_tiles(npu_graph_child(g, i), allocator, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_graph_desc desc = fuzz_desc(&allocator);
    npu_diag diag;
    npu_graph *g = NULL, *again = NULL;
    char *copy = (char *)fuzz_copy(data, size);
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_graph_parse(&g, copy, size, &desc, &diag);
    FUZZ_REQUIRE((status == NPU_OK) == (g != NULL) && diag.status == status);
    FUZZ_REQUIRE(status == NPU_OK || (diag.line > 0 && diag.column > 0 && diag.message[0]));
    if (g) {
        npu_text first = npu_text_init(&allocator), second = npu_text_init(&allocator);
        FUZZ_REQUIRE(npu_graph_validate(g, NULL, NULL) == NPU_OK);
        FUZZ_REQUIRE(npu_graph_print(g, &first) == NPU_OK);
        status = npu_graph_parse(&again, first.data, first.len, &desc, &diag);
        if (status) {
            fprintf(stderr, "%s: line %d: %s\n%s", npu_status_name(status), (int)diag.line, diag.message, first.data);
        }
        FUZZ_REQUIRE(status == NPU_OK && npu_graph_print(again, &second) == NPU_OK);
        FUZZ_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        npu_text_free(&first);
        npu_text_free(&second);
        check_tiles(g, &allocator, 0);
    }
    npu_graph_destroy(again);
    npu_graph_destroy(g);
    FUZZ_REQUIRE(memory.live == 0);
    free(copy);
    return 0;
}
