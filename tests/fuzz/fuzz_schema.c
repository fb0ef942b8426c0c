/* Schema lines: whatever parses must print to a line that parses to the same print. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_memory memory;
    npu_allocator allocator = fuzz_allocator(&memory);
    npu_diag diag;
    npu_schema *schema = NULL, *again = NULL;
    char *line = (char *)malloc(size + 1);
    FUZZ_REQUIRE(line);
    memcpy(line, data, size);
    line[size] = 0;
    memset(&diag, 0, sizeof diag);
    npu_status status = npu_schema_parse(&schema, line, &allocator, &diag);
    FUZZ_REQUIRE((status == NPU_OK) == (schema != NULL) && diag.status == status);
    if (schema) {
        npu_text first = npu_text_init(&allocator), second = npu_text_init(&allocator);
        npu_attr_slot slots[64];
        size_t struct_size;
        npu_schema_attrs_layout(schema, slots, 64, &struct_size);
        npu_schema_print(&first, schema);
        FUZZ_REQUIRE(npu_schema_parse(&again, first.data, &allocator, &diag) == NPU_OK);
        npu_schema_print(&second, again);
        FUZZ_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        npu_text_free(&first);
        npu_text_free(&second);
    }
    npu_schema_free(again, &allocator);
    npu_schema_free(schema, &allocator);
    FUZZ_REQUIRE(memory.live == 0);
    free(line);
    return 0;
}
