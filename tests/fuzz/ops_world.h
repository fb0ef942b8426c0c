/* ops_world.h - what all random graphs share: registry, backends, threads, and the calls of tests/vectors. */
#ifndef OPS_WORLD_H
#define OPS_WORLD_H

#include "ops_far.h"

/* Keeps the arguments alone: a conf_case takes many times their memory. */
static void ops_keep_vector(ops_world *w, const conf_case *call)
{
    if (w->num_vectors == w->max_vectors) {
        w->max_vectors = w->max_vectors ? 2 * w->max_vectors : 1024;
        w->vectors = (ops_vector *)conf_grow(w->vectors, w->max_vectors * sizeof *w->vectors);
    }
    ops_vector *v = &w->vectors[w->num_vectors++];
    v->num_args = call->num_args;
    v->blocks = call->blocks;
    v->args = (conf_arg *)conf_grow(NULL, call->num_args * sizeof *v->args);
    memcpy(v->args, call->args, call->num_args * sizeof *v->args);
}

static void ops_read_vectors(ops_world *w, const char *name)
{
    static conf_case call;
    conf_file file;
    char path[256];
    FILE *there = NULL;
    if (snprintf(path, sizeof path, "tests/vectors/%s.cases", name) < (int)sizeof path) {
        there = fopen(path, "rb");
    }
    if (!there) {
        return;
    }
    fclose(there);
    if (conf_open(&file, "tests/vectors", name)) {
        while (conf_next(&file, &call)) {
            ops_keep_vector(w, &call);
        }
    }
    free(file.text);
    w->files = (void **)conf_grow(w->files, (w->num_files + 1) * sizeof *w->files);
    w->files[w->num_files++] = file.bin; /* which the arguments point into */
}

static bool ops_world_make(ops_world *w)
{
    npu_registry_desc registry;
    npu_ref_desc cpu, plain;
    memset(&registry, 0, sizeof registry);
    memset(&cpu, 0, sizeof cpu);
    memset(&plain, 0, sizeof plain);
    w->allocator.ctx = &w->memory;
    w->allocator.resize = ops_resize;
    registry.allocator = cpu.allocator = plain.allocator = &w->allocator;
    plain.variant = "plain";
    bool ok = npu_registry_create(&w->registry, &registry, NULL) == NPU_OK && npu_ref_create(&w->cpu, &cpu) == NPU_OK &&
              npu_ref_create(&w->plain, &plain) == NPU_OK;
    for (uint32_t i = 0; i < 3 && ok; i++) {
        ok = npu_threads_create(&w->threads[i], &(npu_threads_desc){ .width = i + 2 }) == NPU_OK;
    }
    if (!ok) {
        return false;
    }
    w->num_ops = npu_registry_num_ops(w->registry);
    w->tried = (uint64_t *)conf_grow(NULL, 3 * w->num_ops * sizeof *w->tried);
    memset(w->tried, 0, 3 * w->num_ops * sizeof *w->tried);
    w->accepted = w->tried + w->num_ops;
    w->ran = w->accepted + w->num_ops;
    w->first_vector = (uint32_t *)conf_grow(NULL, (w->num_ops + 1) * sizeof *w->first_vector);
    for (uint32_t i = 0; i < w->num_ops; i++) {
        w->first_vector[i] = w->num_vectors;
        ops_read_vectors(w, npu_registry_op(w->registry, i)->name);
    }
    w->first_vector[w->num_ops] = w->num_vectors;
    return true;
}

static void ops_world_end(ops_world *w)
{
    for (uint32_t i = 0; i < w->num_vectors; i++) {
        conf_case call;
        call.blocks = w->vectors[i].blocks;
        conf_free(&call);
        free(w->vectors[i].args);
    }
    for (uint32_t i = 0; i < w->num_files; i++) {
        free(w->files[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        npu_threads_destroy(w->threads[i]);
    }
    npu_ref_destroy(w->cpu);
    npu_ref_destroy(w->plain);
    npu_registry_destroy(w->registry);
    free(w->vectors);
    free(w->files);
    free(w->first_vector);
    free(w->tried);
}

#endif
