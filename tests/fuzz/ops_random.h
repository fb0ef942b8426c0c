/* ops_random.h - what the fuzzer of graphs draws from: memory that is bounded and can fail, numbers, dims, dtypes,
   strings and data, sane ones and hostile ones. Everything follows from the seed. */
#ifndef OPS_RANDOM_H
#define OPS_RANDOM_H

#include "../../npu_ir.h"
#include "../../npu_ir_backend_ref.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

enum { OPS_MAX_BLOCK = 48 << 20, OPS_MAX_LIVE = 160 << 20 }; /* bytes: more is NO_MEMORY */

typedef struct ops_memory {
    size_t live;
    uint64_t calls, fail_at; /* fail_at: the call that returns NULL, 0 = none */
    bool refused;            /* something was too large, or failed on purpose */
} ops_memory;

/* Also called by the threads of a pool. */
static inline void *ops_resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    ops_memory *m = (ops_memory *)ctx;
    size_t had = ptr ? old_size : 0;
    if (new_size == 0) {
        __atomic_sub_fetch(&m->live, had, __ATOMIC_RELAXED);
        free(ptr);
        return NULL;
    }
    uint64_t call = __atomic_add_fetch(&m->calls, 1, __ATOMIC_RELAXED);
    bool fails = new_size > OPS_MAX_BLOCK || __atomic_load_n(&m->live, __ATOMIC_RELAXED) + new_size > OPS_MAX_LIVE ||
                 (m->fail_at && call == m->fail_at);
    void *p = fails ? NULL : realloc(ptr, new_size);
    if (!p) {
        __atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
        return NULL;
    }
    __atomic_add_fetch(&m->live, new_size, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&m->live, had, __ATOMIC_RELAXED);
    return p;
}

/* Blocks that live as long as a graph: of exactly their size, so that reading past one is seen. */
typedef struct ops_keep { void **blocks; size_t count, capacity; } ops_keep;

static inline void *ops_take(ops_keep *k, size_t size)
{
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 64;
        k->blocks = (void **)realloc(k->blocks, k->capacity * sizeof *k->blocks);
    }
    void *p = k->blocks ? calloc(1, size ? size : 1) : NULL;
    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return k->blocks[k->count++] = p;
}

static inline void ops_release(ops_keep *k)
{
    for (size_t i = 0; i < k->count; i++) {
        free(k->blocks[i]);
    }
    free(k->blocks);
    memset(k, 0, sizeof *k);
}

/* ---- numbers ---- */

typedef struct ops_random { uint64_t state; } ops_random;

static inline uint64_t ops_next(ops_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint32_t ops_below(ops_random *r, uint32_t n) { return n ? (uint32_t)(ops_next(r) % n) : 0; }
static inline bool ops_chance(ops_random *r, uint32_t percent) { return ops_below(r, 100) < percent; }
static inline int64_t ops_between(ops_random *r, int64_t a, int64_t b) { return a + (int64_t)ops_below(r, (uint32_t)(b - a + 1)); }

#define OPS_PICK(r, array) (array)[ops_below(r, (uint32_t)(sizeof(array) / sizeof *(array)))]

static inline int64_t ops_hostile_int(ops_random *r)
{
    static const int64_t edges[] = {
        0, 1, -1, 2, -2, 3, -3, 7, 8, 9, -8, -9, 63, 64, 65, 127, 128, 255, 256, 4096, 65535, 65536, 100000,
        INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX / 4, INT64_MAX / 8 + 1,
        INT32_MAX, INT32_MIN, (int64_t)1 << 31, (int64_t)1 << 32, -((int64_t)1 << 31), -((int64_t)1 << 32), UINT32_MAX,
        (int64_t)1 << 40, -((int64_t)1 << 40), (int64_t)1 << 62, -((int64_t)1 << 62), (int64_t)1 << 53, 3037000500, 1 << 20
    };
    return ops_chance(r, 85) ? OPS_PICK(r, edges) : (int64_t)ops_next(r);
}

static inline double ops_hostile_float(ops_random *r)
{
    static const double edges[] = {
        0, -0.0, 1, -1, 0.5, -0.5, 2, 3, 1e-3, 1e-5, 1e-8, 1e-12, 1e-40, 5e-324, 65504, 65520, 1e5, 3e38, 3.5e38, -3e38, 1e300,
        -1e308, 2147483648.0, 4294967296.0, 9223372036854775808.0, -9223372036854775808.0, 1e19, 255, 256, 1.5, 2.5, 0.1
    };
    uint32_t k = ops_below(r, 20);
    return k == 0 ? (double)NAN : k == 1 ? (double)INFINITY : k == 2 ? -(double)INFINITY : OPS_PICK(r, edges);
}

static inline double ops_sane_float(ops_random *r)
{
    static const double usual[] = { 0, 1, 0.5, 2, 1e-5, 0.1, -1, 3, 0.25, 1.5 };
    return ops_chance(r, 60) ? OPS_PICK(r, usual) : (double)ops_between(r, -400, 400) / 200;
}

/* ---- dtypes, strings ---- */

static inline npu_dtype ops_dtype(ops_random *r, bool hostile)
{
    static const npu_dtype usual[] = { NPU_F32, NPU_F32, NPU_F32, NPU_F32, NPU_F64, NPU_F16, NPU_BF16, NPU_I64, NPU_I64, NPU_I32, NPU_BOOL, NPU_U8, NPU_I8, NPU_I16 };
    static const npu_dtype rare[] = { NPU_U16, NPU_U32, NPU_U64, NPU_C64, NPU_C128, NPU_F8, NPU_HF8, NPU_F4, NPU_HF4, NPU_I4, NPU_U4, NPU_NONE };
    return ops_chance(r, hostile ? 60 : 93) ? OPS_PICK(r, usual) : OPS_PICK(r, rare);
}

static const char *const ops_words[] = {
    "none", "mean", "sum", "tanh", "same", "valid", "constant", "reflect", "replicate", "circular", "floor", "trunc", "ij,jk->ik",
    "ij->ji", "ii->i", "...i,i->...", "i,i->", "ij,jk", "bij,bjk->bik", "a...,...b->ab", "linear", "lower", "higher", "midpoint",
    "nearest", "left", "right", "prod", "amax", "amin", "fro", "nuc", "max", "min", "asymmetric", "[[0], [1]]", "[[0, 1]]", "[[0], [1, 2]]",
    "[[0, 1], [2]]", "[]", "(d0) -> (d0)", "(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)", "(d0, d1) -> (d0)", "(d0, d1, d2) -> (d0, d2)",
    "parallel", "reduction", "eq", "ne", "slt", "sle", "sgt", "ult", "oeq", "olt", "oge", "une", "ord", "uno", "" };
static const char *const ops_ugly_words[] = {
    "xx", "\xff\xfe", "a\"b\\\n\t", "\xc3\xa9", "\x01", "->", "...", ",", "....", "i->", "->i", "ab,bc,cd,de->ae", "%1", "x y", "# x",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ->", "[[0], [0]]", "[[1], [0]]", "[[0], [99999999999]]", "(d0) -> (d0 * 9223372036854775807)",
    "(d0, d1) -> (d0 + d1 * -9223372036854775807)", "(d0) -> (-1)", "() -> ()", "(d0) -> (d1)", "(d0", "cuda:1", "a\r\nb",
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789" };

static inline const char *ops_word(ops_random *r, bool hostile)
{
    return ops_chance(r, hostile ? 60 : 98) ? OPS_PICK(r, ops_words) : OPS_PICK(r, ops_ugly_words);
}

/* ---- data ---- */

static inline void ops_store(npu_dtype t, uint8_t *to, double x, int64_t i)
{
    float f = (float)x;
    uint16_t h;
    switch (t) {
    case NPU_F64: memcpy(to, &x, 8); break;
    case NPU_F32: memcpy(to, &f, 4); break;
    case NPU_F16: h = npu_f32_to_f16(f); memcpy(to, &h, 2); break;
    case NPU_BF16: h = npu_f32_to_bf16(f); memcpy(to, &h, 2); break;
    case NPU_C64: memcpy(to, &f, 4); f = 1 - f; memcpy(to + 4, &f, 4); break;
    case NPU_C128: memcpy(to, &x, 8); x = 0.25 - x; memcpy(to + 8, &x, 8); break;
    case NPU_BOOL: to[0] = i & 1; break;
    case NPU_I8: case NPU_U8: case NPU_F8: case NPU_HF8: to[0] = (uint8_t)i; break;
    case NPU_I16: case NPU_U16: { int16_t v = (int16_t)(uint16_t)i; memcpy(to, &v, 2); break; }
    case NPU_I32: case NPU_U32: { int32_t v = (int32_t)(uint32_t)i; memcpy(to, &v, 4); break; }
    default: memcpy(to, &i, 8); break;
    }
}

/* Tame data: floats in -2 .. 2, small numbers from 0 on, for use as indices; else every tenth element is an edge. */
static inline void ops_fill(ops_random *r, npu_dtype t, uint8_t *data, size_t size, bool tame)
{
    size_t width = npu_dtype_bits(t) / 8;
    if (!width) {
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)ops_next(r);
        }
        return;
    }
    for (size_t i = 0; i + width <= size; i += width) {
        double x = (double)ops_between(r, -2000, 2000) / 1000;
        int64_t n = ops_between(r, 0, 3);
        if (!tame && ops_chance(r, 10)) {
            x = ops_hostile_float(r);
            n = ops_hostile_int(r);
        }
        ops_store(t, data + i, x, n);
    }
}

static inline double ops_float_at(npu_dtype t, const uint8_t *p)
{
    double x;
    float f;
    uint16_t h;
    switch (t) {
    case NPU_F64: case NPU_C128: memcpy(&x, p, 8); return x;
    case NPU_F32: case NPU_C64: memcpy(&f, p, 4); return (double)f;
    case NPU_F16: memcpy(&h, p, 2); return (double)npu_f16_to_f32(h);
    default: memcpy(&h, p, 2); return (double)npu_bf16_to_f32(h);
    }
}

#endif
