/* Elements, expressions and strided copies of the CPU backend, from inside: conversions against the public
   ones, the loops of every instruction set against the plain ones, broadcasting and copies against loops over indices. */
#define NPU_IR_BACKEND_REF_IMPLEMENTATION
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* ---- conversions ---- */

static void test_every_half_is_read_as_published(void)
{
    uint32_t wrong = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        float f16 = npu__ref_from_f16((uint16_t)h), bf16 = npu__ref_from_bf16((uint16_t)h);
        float want_f16 = npu_f16_to_f32((uint16_t)h), want_bf16 = npu_bf16_to_f32((uint16_t)h);
        wrong += f16 == f16 ? memcmp(&f16, &want_f16, 4) != 0 : want_f16 == want_f16;
        wrong += bf16 == bf16 ? memcmp(&bf16, &want_bf16, 4) != 0 : want_bf16 == want_bf16;
    }
    NPU_CHECK_EQ(wrong, 0);
}

static void test_floats_become_halves_as_published(void)
{
    uint32_t wrong = 0;
    for (uint64_t u = 0; u <= 0xffffffffu; u += 977) {
        float x = npu__ref_from_bits((uint32_t)u);
        if (x == x) {
            wrong += npu__ref_to_f16(x) != npu_f32_to_f16(x);
            wrong += npu__ref_to_bf16(x) != npu_f32_to_bf16(x);
        } else {
            float f16 = npu_f16_to_f32(npu__ref_to_f16(x)), bf16 = npu_bf16_to_f32(npu__ref_to_bf16(x));
            wrong += f16 == f16 || bf16 == bf16;
        }
    }
    NPU_CHECK_EQ(wrong, 0);
}

static void test_floats_become_integers_as_on_x86(void)
{
    static const struct { double from; npu_dtype to; int64_t want; } rows[] = {
        { -1.9, NPU_I32, -1 }, { 1.9, NPU_U8, 1 }, { 300, NPU_U8, 44 }, { -1, NPU_U8, 255 },
        { 3e9, NPU_I32, INT32_MIN }, { -2147483648.5, NPU_I32, INT32_MIN },
        { 2147483647.5, NPU_I32, INT32_MAX }, { 1e30, NPU_I64, INT64_MIN }, { 3e9, NPU_U32, 3000000000 },
        { 200, NPU_I8, -56 }, { 1e-30, NPU_BOOL, 1 }, { -0.0, NPU_BOOL, 0 }, { -5, NPU_I16, -5 },
        { 1e19, NPU_U64, -8446744073709551616.0 }
    };
    for (size_t i = 0; i < NPU__REF_COUNT(rows); i++) {
        uint64_t memory = 0;
        int64_t got = 0;
        npu__ref_store_f64(&memory, rows[i].to, 0, 1, &rows[i].from, 1);
        npu__ref_load_i64(&got, &memory, rows[i].to, 0, 1, 1);
        NPU_CHECK_EQ(got, rows[i].want);
    }
}

static const npu_dtype all_dtypes[] = {
    NPU_BOOL, NPU_I8, NPU_I16, NPU_I32, NPU_I64, NPU_U8, NPU_U16, NPU_U32, NPU_U64, NPU_F16, NPU_BF16,
    NPU_F32, NPU_F64
};

static void check_round_trip(npu_dtype dtype, int64_t stride, npu__ref_load_fn load, npu__ref_store_fn store)
{
    uint64_t memory[256];
    npu__ref_strip from, to;
    int cls = npu__ref_compute_class(dtype);
    memset(memory, 0xa5, sizeof memory);
    for (int i = 0; i < 37; i++) {
        int x = dtype == NPU_BOOL ? i % 2 : i * 3;
        from.f64[i] = x;
        if (cls == NPU__F32) { from.f32[i] = (float)x; }
        if (cls == NPU__I64) { from.i64[i] = x; }
    }
    memset(&to, 0, sizeof to);
    store(cls, memory, dtype, 3, stride, &from, 37);
    load(cls, &to, memory, dtype, 3, stride, 37);
    NPU_CHECK_THAT(memcmp(&from, &to, 37 * (cls == NPU__F32 ? 4 : 8)) == 0, "%s, a step of %d", npu_dtype_name(dtype), (int)stride);
    NPU_CHECK_BYTES(&to, &from, 37 * (cls == NPU__F32 ? 4 : 8));
}

static void test_all_dtypes_survive_memory(void)
{
    for (size_t i = 0; i < NPU__REF_COUNT(all_dtypes); i++) {
        for (int64_t stride = 1; stride <= 3; stride++) {
            for (uint32_t isa = 0; npu__ref_has_isa(isa); isa++) {
                const npu__ref_element_loops *loops = &npu__ref_element_loops_of[isa];
                check_round_trip(all_dtypes[i], stride, loops->load, loops->store);
            }
        }
    }
}

/* ---- the loops of every instruction set ---- */

static const float edges[] = {
    0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 3.0f, -3.0f, 1e-40f, -1e-40f, 1.17549435e-38f, 1e-20f, 88.0f, 88.8f,
    89.5f, -87.5f, -90.0f, -103.0f, -105.0f, 1e10f, -1e10f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY, NAN, 4.0f,
    -4.0f, 0.70710677f, 1.4142135f, 0.99999994f
};

static float random_operand(uint32_t i)
{
    if (i < 900) {
        return edges[i % 900 / 30];
    }
    return ((float)random_below(2000001) / 1000000 - 1) * (float)(1u << random_below(5));
}

static bool is_close(float got, float want)
{
    /* the sum of a rounding error of erf or tanh near -1 and 1 */
    float tolerance = 4e-6f * fabsf(want) + 3e-7f * (fabsf(want) < 10) + 1e-38f;
    bool overflows = fabsf(want) > 1e38f && fabsf(got) > 3.4e38f; /* on the way */
    return (got != got && want != want) || got == want || overflows || fabsf(got - want) <= tolerance;
}

/* The plain variant in float, or in double where it has no other. */
static void run_plain(const npu__ref_expression *op, float *y, float x[4][2048 + 8], size_t shift, size_t n)
{
    static double wide[4][2048], result[2048];
    npu__ref_map_fn loop = npu__ref_map_loop(op, NPU__F32, 0);
    const void *from[4];
    for (uint32_t k = 0; k < 4; k++) {
        from[k] = loop ? (const void *)(x[k] + shift) : wide[k];
        for (size_t i = 0; i < n; i++) {
            wide[k][i] = (double)x[k][i + shift];
        }
    }
    if (loop) {
        loop(y + shift, from, n);
        return;
    }
    npu__ref_map_compute(npu__ref_map_code(op, NPU__F64, 0), result, from, n);
    for (size_t i = 0; i < n; i++) {
        y[i + shift] = (float)result[i];
    }
}

static void check_fast(npu__ref_map_fn fast, const npu__ref_expression *op, npu_kind kind, size_t n, size_t shift)
{
    static float x[4][2048 + 8], plain[2048 + 8];
    const void *from[4];
    uint32_t wrong = 0;
    for (uint32_t k = 0; k < 4; k++) {
        from[k] = x[k] + shift;
        for (uint32_t i = 0; i < n; i++) {
            x[k][i + shift] = k == 0 ? random_operand(i) : k == 1 && i < 900 ? edges[i % 30] : 0.25f;
        }
    }
    run_plain(op, plain, x, shift, n);
    fast(x[0] + shift, from, n); /* in place */
    for (size_t i = 0; i < n; i++) {
        if (!is_close(x[0][i + shift], plain[i + shift])) {
            wrong++;
            fprintf(stderr, "kind %u.%u, element %u: %.9g instead of %.9g\n", kind >> 16, kind & 0xffffu, (unsigned)i,
                    (double)x[0][i + shift],
                    (double)plain[i + shift]);
        }
    }
    NPU_CHECK_EQ(wrong, 0);
}

/* The expressions that the kinds of the table may compute. */
typedef void (*visit_fn)(const npu__ref_expression *op, npu_kind kind, uint32_t isa);

static void visit_expressions(visit_fn visit, uint32_t isa)
{
    for (size_t i = 0; i < NPU__REF_COUNT(npu__ref_map_rows); i++) {
        const npu__ref_map_row *row = &npu__ref_map_rows[i];
        for (uint32_t k = 0; row->op->choose && k < row->op->num_others; k++) {
            visit(row->op->others[k], row->kind, isa);
        }
        if (!row->op->choose) {
            visit(row->op, row->kind, isa);
        }
    }
}

static void visit_fast(const npu__ref_expression *op, npu_kind kind, uint32_t isa)
{
    npu__ref_map_fn fast = op->loops[isa][NPU__F32];
    for (size_t n = 0; fast && n < 20; n++) {
        check_fast(fast, op, kind, n, n % 7);
    }
    if (fast) {
        check_fast(fast, op, kind, 2048, 0);
    }
}

static void test_sets_agree_with_plain(void)
{
    NPU_ITEM("S0.29");
    for (uint32_t isa = 0; npu__ref_has_isa(isa); isa++) {
        visit_expressions(visit_fast, isa);
    }
}

/* The low bits of what int64 computes, the numbers being those of the dtype. */
static void check_narrow(npu__ref_map_fn narrow_fn, npu__ref_map_fn wide_fn, npu_dtype dtype)
{
    static int64_t wide[4][300], want[300];
    static int32_t narrow[4][300], got[300], low[300];
    const void *from[4], *wide_from[4];
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < 300; i++) {
            int64_t any = (int64_t)random_below(0x80000000u) * 2 - 0x7fffffff, x = random_below(3) ? random_below(4) : any;
            npu__ref_store_i64(&wide[k][i], dtype, 0, 1, &x, 1);
            npu__ref_load_i64(&wide[k][i], &wide[k][i], dtype, 0, 1, 1);
        }
        npu__ref_store_i64(narrow[k], dtype, 0, 1, wide[k], 300);
        from[k] = narrow[k];
        wide_from[k] = wide[k];
    }
    wide_fn(want, wide_from, 300);
    npu__ref_store_i64(low, dtype, 0, 1, want, 300);
    narrow_fn(got, from, 300);
    NPU_CHECK_BYTES(got, low, 300 * npu__ref_size(dtype));
}

static void visit_narrow(const npu__ref_expression *op, npu_kind kind, uint32_t isa)
{
    (void)kind;
    if (op->loops[isa][NPU__I32]) {
        check_narrow(op->loops[isa][NPU__I32], op->loops[0][NPU__I64], NPU_I32);
        check_narrow(op->loops[isa][NPU__U8], op->loops[0][NPU__I64], NPU_U8);
    }
}

static void test_narrow_integers_agree_with_wide(void)
{
    uint32_t isa = 0;
    for (; npu__ref_has_isa(isa); isa++) {
        visit_expressions(visit_narrow, isa);
    }
    if (!npu__ref_op_add.loops[isa > 1][NPU__I32]) {
        NPU_SKIP("no instruction set here has loops of narrow integers");
    }
}

/* Binary search finds a row of any kind. */
static void test_kinds_are_sorted(void)
{
    NPU_ITEM("F51");
    for (size_t i = 1; i < NPU__REF_COUNT(npu__ref_map_rows); i++) {
        NPU_CHECK(npu__ref_map_rows[i - 1].kind < npu__ref_map_rows[i].kind);
    }
}

/* ---- copies: every byte where a loop over indices puts it ---- */

typedef struct job {
    npu_prepare p;
    npu_op_info op;
    npu_bound_arg args[4];
    npu_tensor in, out;
    npu_allocator allocator;
    size_t size;
    uint8_t *from, *to;
} job;

static void *resize_block(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

static void set_dims(npu_tensor *t, npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    int64_t stride = 1;
    memset(t, 0, sizeof *t);
    t->dtype = dtype;
    t->rank = rank;
    for (uint32_t i = rank; i-- > 0; stride *= dims[i]) {
        t->dims[i] = dims[i];
        t->strides[i] = stride;
    }
}

static void check_permute(npu_dtype dtype, uint32_t rank, const int64_t *dims, const int64_t *order)
{
    job j = { 0 };
    npu_launch l = { 0 };
    const void *x[1];
    void *y[1];
    int64_t out_dims[NPU_MAX_RANK], n = 1, wrong = 0;
    uint8_t packed[NPU_MAX_RANK * 8];
    j.size = npu_dtype_bits(dtype) / 8;
    for (uint32_t i = 0; i < rank; i++) {
        out_dims[i] = dims[order[i]];
        n *= dims[i];
        for (int b = 0; b < 8; b++) {
            packed[8 * i + (uint32_t)b] = (uint8_t)((uint64_t)order[i] >> (8 * b));
        }
    }
    set_dims(&j.in, dtype, rank, dims);
    set_dims(&j.out, dtype, rank, out_dims);
    j.from = malloc((size_t)n * j.size + 1);
    j.to = malloc((size_t)n * j.size + 1);
    for (size_t i = 0; i < (size_t)n * j.size; i++) {
        j.from[i] = (uint8_t)random_below(256);
    }
    j.args[0] = (npu_bound_arg){ .name = "self", .form = NPU_ARG_TENSOR };
    j.args[1] = (npu_bound_arg){ .name = "dims", .form = NPU_ARG_INTS, .count = rank, .data = packed };
    j.op = (npu_op_info){ .kind = NPU_ATEN_PERMUTE, .num_args = 2, .num_in = 1, .num_out = 1,
                          .args = j.args };
    j.allocator.resize = resize_block;
    j.p = (npu_prepare){ .op = &j.op, .in = &j.in, .out = &j.out, .parts = 1, .allocator = &j.allocator };
    NPU_CHECK_STATUS(npu__ref_copy_prepare(&j.p), NPU_OK);
    x[0] = j.from;
    y[0] = j.to;
    l = (npu_launch){ .in = &j.in, .out = &j.out, .num_in = 1, .num_out = 1, .x = x, .y = y,
                      .state = j.p.state };
    for (uint32_t part = 0; part < 3; part++) {
        NPU_CHECK_STATUS(npu__ref_copy_launch(&l, part, 3), NPU_OK);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (uint32_t d = 0; d < rank; d++) {
            at += i / j.out.strides[d] % out_dims[d] * j.in.strides[order[d]];
        }
        wrong += memcmp(j.to + (size_t)i * j.size, j.from + (size_t)at * j.size, j.size) != 0;
    }
    NPU_CHECK_EQ(wrong, 0);
    npu__ref_free_blocks(&j.allocator, j.p.blocks);
    free(j.from);
    free(j.to);
}

static void test_permutations_of_random_shapes(void)
{
    static const npu_dtype dtypes[] = { NPU_I8, NPU_F16, NPU_F32, NPU_F64, NPU_C128 };
    NPU_ITEM("S0.30");
    for (int round = 0; round < 300; round++) {
        uint32_t rank = 1 + random_below(5), limit = rank == 2 ? 150 : rank < 4 ? 40 : 9;
        int64_t dims[NPU_MAX_RANK], order[NPU_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t other = random_below(i + 1);
            dims[i] = 1 + random_below(limit);
            order[i] = order[other];
            order[other] = i;
        }
        check_permute(dtypes[round % 5], rank, dims, order);
    }
}

/* ---- broadcasting: each element from the operands' elements that an index names ---- */

typedef npu_status (*prepare_fn)(npu_prepare *p);

enum { MOST_ELEMENTS = 8192 };

typedef struct binary {
    npu_tensor in[2], out;
    npu_spec specs[3];
    uint64_t memory[3][3 * MOST_ELEMENTS];
} binary;

static void set_operand(npu_tensor *t, npu_spec *spec, npu_dtype dtype, uint32_t rank, const int64_t *dims)
{
    set_dims(t, dtype, rank, dims);
    *spec = npu_spec_tensor(dtype, rank, dims);
}

static npu_status run_binary(binary *b, npu_kind kind, const char *mode, prepare_fn prepare)
{
    const npu_spec *in[2] = { &b->specs[0], &b->specs[1] }, *out[1] = { &b->specs[2] };
    const void *x[2] = { b->memory[0], b->memory[1] };
    void *y[1] = { b->memory[2] };
    npu_allocator allocator = { NULL, resize_block };
    npu_bound_arg args[3] = {
        { .name = "self", .form = NPU_ARG_TENSOR }, { .name = "other", .form = NPU_ARG_TENSOR, .first = 1 },
        { .name = "rounding_mode", .form = NPU_ARG_STR, .count = (uint32_t)strlen(mode),
          .data = (const uint8_t *)mode }
    };
    npu_op_info op = { .kind = kind, .num_args = 3, .num_in = 2, .num_out = 1, .args = args, .in = in,
                       .out = out };
    npu_prepare p = { .op = &op, .in = b->in, .out = &b->out, .parts = 1, .allocator = &allocator };
    npu_status status = prepare(&p);
    npu_launch l = { .in = b->in, .out = &b->out, .num_in = 2, .num_out = 1, .x = x, .y = y,
                     .state = p.state };
    for (uint32_t part = 0; part < 3 && status == NPU_OK; part++) {
        status = npu__ref_map_launch(&l, part, 3);
    }
    npu__ref_free_blocks(&allocator, p.blocks);
    return status;
}

static void random_dims(uint32_t rank, const int64_t *out, uint32_t *operand_rank, int64_t *dims)
{
    *operand_rank = random_below(4) ? rank : random_below(rank + 1);
    for (uint32_t i = 0; i < *operand_rank; i++) {
        dims[i] = random_below(3) ? out[rank - *operand_rank + i] : 1;
    }
}

/* Short rows and long ones, of which a strip holds many, a few or a part. */
static void random_shape(uint32_t rank, int64_t *dims)
{
    static const int64_t sizes[] = { 1, 2, 3, 5, 8, 9, 16, 50, 64, 130, 257, 700, 1100, 2050 };
    int64_t len = 1;
    for (uint32_t i = 0; i < rank; i++) {
        do {
            dims[i] = sizes[random_below(sizeof sizes / sizeof sizes[0])];
        } while (len * dims[i] > MOST_ELEMENTS);
        len *= dims[i];
    }
}

/* Rows end to begin, or elements apart, as views of other values have them. */
static void random_strides(npu_tensor *t)
{
    int64_t step = random_below(4) ? 1 : 2 + random_below(2);
    uint32_t a = random_below(t->rank + !t->rank), b = random_below(t->rank + !t->rank);
    bool swaps = t->rank && random_below(4) == 0;
    int64_t order[NPU_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) {
        order[i] = i;
    }
    if (swaps) {
        order[a] = b, order[b] = a;
    }
    for (uint32_t i = t->rank; i-- > 0; step *= t->dims[order[i]]) {
        t->strides[order[i]] = step;
    }
}

static int64_t operand_index(const npu_tensor *t, const npu_tensor *out, int64_t pos)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = out->rank - t->rank + i;
        at += t->dims[i] == 1 ? 0 : pos / out->strides[d] % out->dims[d] * t->strides[i];
    }
    return at;
}

static double element(const npu_tensor *t, const void *memory, int64_t i)
{
    double x;
    npu__ref_load_f64(&x, memory, t->dtype, i, 1, 1);
    return x;
}

/* Operands of random shapes, of small integers, so that products are exact in every dtype; pairs are two each. */
static void random_binary(binary *t, npu_dtype a, npu_dtype b)
{
    uint32_t rank = 1 + random_below(5), ranks[2];
    int64_t out[NPU_MAX_RANK], dims[NPU_MAX_RANK];
    random_shape(rank, out);
    out[0] = random_below(50) ? out[0] : 0;
    set_operand(&t->out, &t->specs[2], npu_dtype_promote(a, b), rank, out);
    for (uint32_t k = 0; k < 2; k++) {
        npu_dtype dtype = k ? b : a;
        random_dims(rank, out, &ranks[k], dims);
        set_operand(&t->in[k], &t->specs[k], dtype, ranks[k], dims);
        random_strides(&t->in[k]);
        for (int64_t i = 0; i < 3 * npu__ref_len(&t->in[k]) * (1 + npu_dtype_is_complex(dtype)); i++) {
            double x = random_below(11);
            npu__ref_store_f64(t->memory[k], dtype == NPU_C64 ? NPU_F32 : dtype, i, 1, &x, 1);
        }
    }
}

static void check_mul(npu_dtype a, npu_dtype b, prepare_fn prepare)
{
    static binary t;
    int64_t wrong = 0;
    random_binary(&t, a, b);
    NPU_CHECK_STATUS(run_binary(&t, NPU_ATEN_MUL, "", prepare), NPU_OK);
    for (int64_t i = 0; i < npu__ref_len(&t.out); i++) {
        double want = element(&t.in[0], t.memory[0], operand_index(&t.in[0], &t.out, i)) *
                      element(&t.in[1], t.memory[1], operand_index(&t.in[1], &t.out, i));
        wrong += element(&t.out, t.memory[2], i) != (t.out.dtype == NPU_BOOL ? want != 0 : want);
    }
    NPU_CHECK_EQ(wrong, 0);
}

static uint32_t isa_of_pairs;
static npu_status prepare_pairs(npu_prepare *p)
{
    p->isa = isa_of_pairs;
    return npu__ref_pairs_prepare(p);
}

static void check_mul_pairs(uint32_t set)
{
    static binary t;
    const float *a = (const float *)(void *)t.memory[0], *b = (const float *)(void *)t.memory[1];
    const float *y = (const float *)(void *)t.memory[2];
    int64_t wrong = 0;
    random_binary(&t, NPU_C64, NPU_C64);
    isa_of_pairs = set;
    NPU_CHECK_STATUS(run_binary(&t, NPU_ATEN_MUL, "", prepare_pairs), NPU_OK);
    for (int64_t i = 0; i < npu__ref_len(&t.out); i++) {
        int64_t j = 2 * operand_index(&t.in[0], &t.out, i), k = 2 * operand_index(&t.in[1], &t.out, i);
        wrong += y[2 * i] != a[j] * b[k] - a[j + 1] * b[k + 1] || y[2 * i + 1] != a[j] * b[k + 1] + a[j + 1] * b[k];
    }
    NPU_CHECK_EQ(wrong, 0);
}

static npu_status prepare_best(npu_prepare *p)
{
    p->isa = npu__ref_isa(&npu__ref_default);
    return npu__ref_map_prepare_fast(p);
}

static void test_broadcasting_of_random_shapes(void)
{
    uint32_t n = NPU__REF_COUNT(all_dtypes);
    NPU_ITEM("S0.29");
    for (uint32_t round = 0; round < 1500; round++) {
        npu_dtype a = all_dtypes[random_below(n)], b = random_below(2) ? a : all_dtypes[random_below(n)];
        if (npu_dtype_promote(a, b) == NPU_NONE) {
            continue;
        }
        check_mul(a, b, npu__ref_map_prepare);
        check_mul(a, b, prepare_best);
        check_mul_pairs(round % 2 ? npu__ref_isa(&npu__ref_default) : (uint32_t)NPU__REF_ISA_base);
    }
}

static void check_divide(const char *mode, int64_t a, int64_t b, npu_status status, int64_t want)
{
    static binary t;
    const int64_t dims[1] = { 1 };
    for (uint32_t k = 0; k < 3; k++) {
        set_operand(k < 2 ? &t.in[k] : &t.out, &t.specs[k], NPU_I64, 1, dims);
    }
    memcpy(t.memory[0], &a, 8);
    memcpy(t.memory[1], &b, 8);
    NPU_CHECK_STATUS(run_binary(&t, NPU_ATEN_DIV_MODE, mode, npu__ref_map_prepare), status);
    if (status == NPU_OK) {
        NPU_CHECK_BYTES(t.memory[2], &want, 8);
    }
}

static void test_integer_division(void)
{
    NPU_ITEM("S0.29");
    check_divide("floor", -7, 2, NPU_OK, -4);
    check_divide("trunc", -7, 2, NPU_OK, -3);
    check_divide("floor", 7, -2, NPU_OK, -4);
    check_divide("floor", -8, 2, NPU_OK, -4);
    check_divide("floor", INT64_MIN, -1, NPU_OK, INT64_MIN);
    check_divide("trunc", INT64_MIN, -1, NPU_OK, INT64_MIN);
    check_divide("floor", 1, 0, NPU_ERR_NUMERICAL, 0);
    check_divide("trunc", 0, 0, NPU_ERR_NUMERICAL, 0);
}

int main(void)
{
    NPU_RUN(test_every_half_is_read_as_published);
    NPU_RUN(test_floats_become_halves_as_published);
    NPU_RUN(test_floats_become_integers_as_on_x86);
    NPU_RUN(test_all_dtypes_survive_memory);
    NPU_RUN(test_sets_agree_with_plain);
    NPU_RUN(test_narrow_integers_agree_with_wide);
    NPU_RUN(test_kinds_are_sorted);
    NPU_RUN(test_permutations_of_random_shapes);
    NPU_RUN(test_broadcasting_of_random_shapes);
    NPU_RUN(test_integer_division);
    return npu_test_done();
}
