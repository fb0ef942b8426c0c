/* A fixed part of what `make fuzz` does for hours: random graphs of all ops, taken through everything that the library does
   with a graph, and texts, JSON, schemas and blobs, mutated. The seeds are those that reach code which others do not. */
#define LLVMFuzzerTestOneInput fuzz_graph
#include "fuzz/fuzz_graph.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_json
#include "fuzz/fuzz_json.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_schema
#include "fuzz/fuzz_schema.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_blob
#include "fuzz/fuzz_blob.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_safetensors
#include "fuzz/fuzz_safetensors.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_npy
#include "fuzz/fuzz_npy.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_onnx
#include "fuzz/fuzz_onnx.c"
#undef LLVMFuzzerTestOneInput
#include "fuzz/fuzz_mutate.h"
#include "fuzz/ops_world.h"

/* ---- random graphs ---------------------------------------------------------------------------------------------- */

static const uint32_t seeds[] = {
#include "fuzz/reach.txt"
};
/* Those that failed once and are no smaller numbers, and the first of OPS_DEEP, OPS_FAR and OPS_FIT. */
static const uint64_t large_seeds[] = {
    10000001559, 10000020326, 20000003299, 20000015779, 20000021643, 20000039258, 1000000000185, 1000000000668,
    1000000002263, 1000000007068, 1000001000126, 3141592653595326, 3141592653601401, 3141592653595862, 3141592653613110,
    3141592653614847, 10000000000000190, 10000000000000239, 10000000000000445, 10000000000001378, 1000099003641,
    30000000000001497, 100000000000003046, 100000000000003087, 100000000000004354
};
enum { FIRST_SEEDS = 60 };

static void check_graph(ops_world *w, uint64_t seed)
{
    ops_one(w, seed);
    NPU_CHECK_THAT(ops_now.num_findings == 0, "seed %llu, %s", (unsigned long long)seed, ops_now.stage);
    ops_now.num_findings = 0;
}

static void test_graphs(void)
{
    static ops_world w;
    NPU_ITEM("F59");
#ifdef __SANITIZE_THREAD__
    NPU_SKIP("thousands of short threads take minutes under this sanitizer");
    return;
#endif
    NPU_CHECK(ops_world_make(&w));
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        check_graph(&w, seeds[i]);
    }
    for (size_t i = 0; i < sizeof large_seeds / sizeof large_seeds[0]; i++) {
        check_graph(&w, large_seeds[i]);
    }
    for (uint64_t i = 0; i < FIRST_SEEDS; i++) {
        check_graph(&w, OPS_DEEP + i);
        check_graph(&w, OPS_FAR + i);
        check_graph(&w, OPS_FIT + i);
    }
    ops_world_end(&w);
}

/* ---- mutated inputs --------------------------------------------------------------------------------------------- */

typedef struct target {
    int (*one)(const uint8_t *data, size_t size); /* ends the program when a promise is broken */
    const char *folder, *files;
    int rounds;
} target;

static const target targets[] = {
    { fuzz_graph, "graph", "everything linear split tiles writes", 3000 },
    { fuzz_json, "json", "lists optional writes", 3000 },
    { fuzz_schema, "schema", "conv copy max mixed own split", 20000 },
    { fuzz_blob, "blob", "device dtype ints list scalar scalars str", 10000 },
    { fuzz_safetensors, "safetensors", "small skewed", 10000 },
    { fuzz_npy, "npy", "plain big_endian", 10000 },
    { fuzz_onnx, "onnx",
      "picture shapes loop sequence branches attention_past attention_places bnb_float dynamic_columns_i8 "
      "dynamic_lstm embed_u8 gather_blocks_4 group_query_step_packed group_query_window matmul_batches "
      "multi_head_past_bias nbits_4 nbits_8_zeros qattention_u8 qaverage_last_u8 qconcat_u8 rotary_part "
      "weight_17 weight_25 round_22 cast_19_0 order", 6000 },
};

/* The files of a target, as they are. */
static void read_corpus(const target *t)
{
    char path[160];
    fuzz_num_inputs = 0;
    for (const char *name = t->files; *name; name += strspn(name, " ")) {
        size_t len = strcspn(name, " ");
        snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%.*s", t->folder, (int)len, name);
        fuzz_read_input(path);
        name += len;
    }
}

static void test_mutations(void)
{
    static fuzz_input input;
    uint64_t random = npu_test_seed();
    NPU_ITEM("F59");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const target *t = &targets[i];
        read_corpus(t);
        for (size_t k = 0; k < fuzz_num_inputs; k++) {
            NPU_CHECK_EQ(t->one(fuzz_corpus[k].data, fuzz_corpus[k].size), 0);
        }
        for (int round = 0; round < t->rounds; round++) {
            input = fuzz_corpus[fuzz_below(&random, fuzz_num_inputs)];
            for (size_t n = fuzz_below(&random, 6) + 1; n; n--) {
                fuzz_mutate(&input, &random);
            }
            NPU_CHECK_EQ(t->one(input.data, input.size), 0);
        }
    }
}

int main(void)
{
    NPU_RUN(test_graphs);
    NPU_RUN(test_mutations);
    return npu_test_done();
}
