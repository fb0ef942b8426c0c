/* Attribute blobs: two bytes choose an op, the rest is a packed blob and a device blob; whatever binds must read without leaving it. */
#include "fuzz.h"

static void read_all(const npu_schema *schema, const npu_bound_arg *args)
{
    npu_op_info op;
    memset(&op, 0, sizeof op);
    op.size = (uint32_t)sizeof op;
    op.args = args;
    op.num_args = schema->num_args;
    for (uint32_t i = 0; i < schema->num_args; i++) {
        const char *name = schema->args[i].name;
        int64_t ints[8];
        uint32_t len = npu_op_list_len(&op, name);
        for (uint32_t k = 0; k < len && args[i].form != NPU_ARG_TENSORS && args[i].form != NPU_ARG_STR; k++) {
            npu_op_int_at(&op, name, k);
            npu_op_float_at(&op, name, k);
        }
        npu_op_ints(&op, name, ints, 8);
        npu_op_str_is(&op, name, "tanh");
        npu_op_scalar(&op, name, npu_scalar_int(1));
    }
}

static void bind(const npu_op_def *def, const uint8_t *blob, uint32_t size)
{
    npu_bound_arg args[64];
    uint32_t counts[64] = { 0 }, operands = 0;
    npu_diag diag;
    memset(&diag, 0, sizeof diag);
    for (uint32_t i = 0; i < def->schema->num_args; i++) {
        operands += def->schema->args[i].type.base == NPU_T_TENSOR;
    }
    FUZZ_REQUIRE(def->schema->num_args <= 64);
    if (npu_blob_bind(def->schema, blob, size, counts, operands, args, &diag) == NPU_OK) {
        read_all(def->schema, args);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static npu_registry *registry; /* made once: it is the same for every input */
    const npu_abi *abi = npu_abi_aicf();
    if (size < 6 || (!registry && npu_registry_create(&registry, NULL, NULL) != NPU_OK)) {
        return 0;
    }
    const npu_op_def *def = npu_registry_op(registry, (uint32_t)(data[0] | data[1] << 8) % npu_registry_num_ops(registry));
    uint8_t *blob = (uint8_t *)malloc(size - 1); /* its own block: reading past its end is seen */
    FUZZ_REQUIRE(blob);
    memcpy(blob, data + 2, size - 2);
    bind(def, blob, (uint32_t)(size - 2));
    uint8_t packed[256];
    uint32_t packed_size = 0, schema_id = NPU_FOURCC(data[2], data[3], data[4], data[5]);
    for (uint32_t i = 0; i < abi->num_rows; i++) {
        uint32_t id = data[0] & 1 ? abi->rows[i].attr_schema : schema_id;
        if (npu_abi_decode(abi, npu_registry_find_kind(registry, abi->rows[i].kind), id, blob, (uint32_t)(size - 2), packed, sizeof packed,
                           &packed_size) == NPU_OK) {
            bind(npu_registry_find_kind(registry, abi->rows[i].kind), packed, packed_size);
        }
    }
    free(blob);
    return 0;
}
