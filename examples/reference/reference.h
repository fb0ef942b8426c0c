/* Weights from a formula and outputs recorded with PyTorch: what the model examples share. See reference/README.md. */
#ifndef NPU_EXAMPLE_REFERENCE_H
#define NPU_EXAMPLE_REFERENCE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t reference_seed(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    while (*name) {
        h = (h ^ (uint8_t)*name++) * 0x100000001b3u;
    }
    return h;
}

/* Element i of the tensor with that seed, in [-1, 1): splitmix64, its upper 24 bits. */
static float reference_uniform(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (float)(z >> 40) * (1.0f / 8388608.0f) - 1.0f;
}

static int reference_ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* offset + scale * u; volatile keeps the compiler from fusing the two roundings into one. */
static float reference_affine(float u, float scale, float offset)
{
    volatile float scaled = u * scale;
    return scaled + offset;
}

/* A parameter's data by its name and dims; `norm` = it belongs to a normalisation. The caller frees it. */
static float *reference_make(const char *name, const npu_spec *spec, int norm)
{
    uint64_t seed = reference_seed(name), len = 1, fan_in = 1;
    float scale = 1.0f, offset = 0.0f, *data;
    for (uint32_t i = 0; i < spec->rank; i++) {
        len *= (uint64_t)spec->dims[i];
        fan_in *= i ? (uint64_t)spec->dims[i] : 1;
    }
    if (norm) {
        int var = reference_ends_with(name, "running_var"), weight = reference_ends_with(name, "weight");
        scale = var ? 0.5f : weight ? 0.2f : 0.1f;
        offset = var || weight ? 1.0f : 0.0f;
    } else if (spec->rank == 1) {
        scale = 0.1f;
    } else if (!strstr(name, "embedding") && !strstr(name, "position") && strcmp(name, "input") != 0) {
        scale = (float)sqrt(3.0 / (double)fan_in);
    }
    data = malloc(len * sizeof *data + 1);
    for (uint64_t i = 0; data && i < len; i++) {
        data[i] = reference_affine(reference_uniform(seed, i), scale, offset);
    }
    return data;
}

/* Binds every parameter of a graph; returns the bytes, 0 on failure. The data lives until the program ends. */
static size_t reference_bind(npu_graph *g, const char *(*torch_name)(const char *name, char *buf, size_t size), int (*is_norm)(const char *name))
{
    size_t total = 0;
    for (uint32_t id = 1; id <= npu_graph_num_values(g); id++) {
        npu_value v = { id };
        char buf[128];
        const char *name = npu_value_name(g, v);
        size_t size;
        float *data;
        if (npu_value_role(g, v) != NPU_ROLE_PARAM || npu_spec_size(npu_value_spec(g, v), &size)) {
            continue;
        }
        data = reference_make(torch_name ? torch_name(name, buf, sizeof buf) : name, npu_value_spec(g, v), is_norm(name));
        if (!data || npu_graph_bind_param(g, name, data, size)) {
            return 0;
        }
        total += size;
    }
    return total;
}

/* Compares got with the recorded tensor `name`: the largest difference over the largest value, or -1 when it cannot be read. */
static double reference_compare(const char *path, const char *name, const float *got, size_t len)
{
    FILE *file = fopen(path, "r");
    char line[256];
    double worst = 0, largest = 0;
    size_t found = 0;
    int inside = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strchr(line, ' ')) { /* a header: name rank dims */
            inside = strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ';
        } else if (inside && found < len) {
            double want = strtod(line, NULL), difference = fabs((double)got[found] - want);
            worst = difference > worst ? difference : worst;
            largest = fabs(want) > largest ? fabs(want) : largest;
            found++;
        }
    }
    if (file) {
        fclose(file);
    }
    return found == len && largest > 0 ? worst / largest : -1;
}

#endif
