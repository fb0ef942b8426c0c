/* fuzz.h - what the fuzz targets share. A target is LLVMFuzzerTestOneInput: build it with libFuzzer, or with fuzz_main.c,
   which replays files and mutates a corpus for a bounded time. Both say how many inputs they tried; a target makes what is
   the same for all inputs once, so that texts go through it at more than 1,000 a second with both sanitizers.

       clang -O1 -g -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_graph.c tests/compile/core_only.c -lm -lpthread
       ./a.out -max_total_time=60 tests/fuzz/corpus/graph */
#ifndef FUZZ_H
#define FUZZ_H

#include "../../npu_ir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise ends the program, as a crash does. */
#define FUZZ_REQUIRE(x)                                                                            \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#ifndef NPU_IR_RUNTIME_ONLY
/* Input that asks for gigabytes must get NO_MEMORY here, not the machine's memory; live must be 0 at the end. */
typedef struct fuzz_memory { size_t live; } fuzz_memory;

static inline void *fuzz_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    fuzz_memory *memory = (fuzz_memory *)ctx;
    if (new_size == 0) {
        memory->live -= ptr ? old_size : 0;
        free(ptr);
        return NULL;
    }
    if (new_size > (size_t)64 << 20) {
        return NULL;
    }
    void *p = realloc(ptr, new_size);
    if (p) {
        memory->live += new_size - (ptr ? old_size : 0);
    }
    return p;
}

static inline npu_allocator fuzz_allocator(fuzz_memory *memory)
{
    npu_allocator a;
    memory->live = 0;
    a.ctx = memory;
    a.resize = fuzz_resize;
    return a;
}

/* Of a graph with that allocator. The registry is made once: it takes a hundred times as long as a small graph. */
static inline npu_graph_desc fuzz_desc(const npu_allocator *allocator)
{
    static npu_registry *registry;
    npu_graph_desc desc;
    FUZZ_REQUIRE(registry || npu_registry_create(&registry, NULL, NULL) == NPU_OK);
    memset(&desc, 0, sizeof desc);
    desc.allocator = allocator;
    desc.registry = registry;
    return desc;
}

/* Freed by the caller. Without a NUL: reading past the end is seen. */
static inline void *fuzz_copy(const uint8_t *data, size_t size)
{
    void *copy = malloc(size ? size : 1);
    FUZZ_REQUIRE(copy);
    memcpy(copy, data, size);
    return copy;
}
#endif /* NPU_IR_RUNTIME_ONLY */

#endif
