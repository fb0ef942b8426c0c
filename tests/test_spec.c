/* Dtypes with their codes, names and sizes; conversions of half precision against a slow oracle, bit by bit; specs. */
#include "npu_test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- dtypes ---- */

/* The operator document's codes, which files and devices rely on. */
static void test_codes(void)
{
    static const struct { int code; npu_dtype dtype; uint32_t bits; const char *name, *torch; } rows[] = {
        { 0x01, NPU_BOOL, 8, "bool", "torch.bool" },      { 0x10, NPU_I4, 4, "i4", NULL },
        { 0x11, NPU_I8, 8, "i8", "torch.int8" },          { 0x12, NPU_I16, 16, "i16", "torch.int16" },
        { 0x13, NPU_I32, 32, "i32", "torch.int32" },      { 0x14, NPU_I64, 64, "i64", "torch.int64" },
        { 0x20, NPU_U4, 4, "u4", NULL },                  { 0x21, NPU_U8, 8, "u8", "torch.uint8" },
        { 0x22, NPU_U16, 16, "u16", "torch.uint16" },     { 0x23, NPU_U32, 32, "u32", "torch.uint32" },
        { 0x24, NPU_U64, 64, "u64", "torch.uint64" },     { 0x30, NPU_F4, 4, "f4", NULL },
        { 0x31, NPU_F8, 8, "f8", NULL },                  { 0x32, NPU_F16, 16, "f16", "torch.float16" },
        { 0x33, NPU_F32, 32, "f32", "torch.float32" },    { 0x34, NPU_F64, 64, "f64", "torch.float64" },
        { 0x40, NPU_BF16, 16, "bf16", "torch.bfloat16" }, { 0x41, NPU_HF4, 4, "hf4", NULL },
        { 0x42, NPU_HF8, 8, "hf8", NULL },                { 0x50, NPU_C64, 64, "c64", "torch.complex64" },
        { 0x51, NPU_C128, 128, "c128", "torch.complex128" }
    };
    int valid = 0;
    NPU_ITEM("S3.73");
    NPU_ITEM("R3.2");
    NPU_ITEM("R3.3");
    for (size_t i = 0; i < COUNT(rows); i++) {
        NPU_CHECK_EQ(rows[i].dtype, rows[i].code);
        NPU_CHECK(npu_dtype_is_valid((uint32_t)rows[i].code));
        NPU_CHECK_EQ(npu_dtype_bits(rows[i].dtype), rows[i].bits);
        NPU_CHECK_STR(npu_dtype_name(rows[i].dtype), rows[i].name);
        NPU_CHECK_EQ(npu_dtype_parse(rows[i].name), rows[i].code);
        if (rows[i].torch) {
            NPU_CHECK_EQ(npu_dtype_parse(rows[i].torch), rows[i].code);
            NPU_CHECK_EQ(npu_dtype_parse(rows[i].torch + strlen("torch.")), rows[i].code);
        }
    }
    for (uint32_t code = 0; code < 600; code++) {
        valid += npu_dtype_is_valid(code);
    }
    NPU_CHECK_EQ(valid, COUNT(rows));
}

static void test_names_that_are_none(void)
{
    static const char *const names[] = {
        "", "f", "f3", "f322", "torch.", "float33", "none", "F32", "torch.f32x", " f32"
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        NPU_CHECK_EQ(npu_dtype_parse(names[i]), NPU_NONE);
    }
    NPU_CHECK_STR(npu_dtype_name((npu_dtype)200), "?");
    NPU_CHECK_EQ(npu_dtype_bits((npu_dtype)200), 0);
    NPU_CHECK_EQ(npu_dtype_parse("Half"), NPU_F16);
    NPU_CHECK_EQ(npu_dtype_parse("Long"), NPU_I64);
}

static void test_kinds(void)
{
    static const struct { npu_dtype dtype; const char *kinds; /* f float, i integer, s signed, c complex */ } rows[] = {
        { NPU_BOOL, "" }, { NPU_I8, "is" }, { NPU_U8, "i" }, { NPU_U64, "i" }, { NPU_I64, "is" }, { NPU_F16, "f" },
        { NPU_BF16, "f" }, { NPU_F64, "f" }, { NPU_C64, "c" }, { NPU_NONE, "" }, { NPU_I4, "is" }, { NPU_F8, "f" }
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        NPU_CHECK_EQ(npu_dtype_is_float(rows[i].dtype), strchr(rows[i].kinds, 'f') != NULL);
        NPU_CHECK_EQ(npu_dtype_is_integer(rows[i].dtype), strchr(rows[i].kinds, 'i') != NULL);
        NPU_CHECK_EQ(npu_dtype_is_signed(rows[i].dtype), strchr(rows[i].kinds, 's') != NULL);
        NPU_CHECK_EQ(npu_dtype_is_complex(rows[i].dtype), strchr(rows[i].kinds, 'c') != NULL);
    }
}

/* ---- half precision ---- */

/* The value of a format with `mantissa` bits and this exponent bias, from its definition. */
static double half_value(uint32_t bits, int mantissa, int bias)
{
    int exponent_bits = 15 - mantissa, exponent = (int)(bits >> mantissa & ((1u << exponent_bits) - 1));
    double fraction = (double)(bits & ((1u << mantissa) - 1)), sign = bits >> 15 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) {
        return fraction != 0.0 ? (double)NAN : sign * HUGE_VAL;
    }
    return sign * (exponent ? ldexp(fraction + ldexp(1.0, mantissa), exponent - bias - mantissa)
                            : ldexp(fraction, 1 - bias - mantissa));
}

static double f16_value(uint32_t bits) { return half_value(bits, 10, 15); }
static double bf16_value(uint32_t bits) { return half_value(bits, 7, 127); }

/* Every value there is, and its way back. */
static void test_halves_exactly(void)
{
    int bad = 0;
    for (uint32_t bits = 0; bits < 0x10000u; bits++) {
        double f = f16_value(bits), b = bf16_value(bits);
        float got_f = npu_f16_to_f32((uint16_t)bits), got_b = npu_bf16_to_f32((uint16_t)bits);
        bad += isnan(f) ? !isnan(got_f) : (double)got_f != f || !signbit(got_f) != !signbit(f);
        bad += isnan(b) ? !isnan(got_b) : (double)got_b != b || !signbit(got_b) != !signbit(b);
        bad += isnan(f) ? !isnan(f16_value(npu_f32_to_f16(got_f))) : npu_f32_to_f16(got_f) != bits;
        bad += isnan(b) ? !isnan(bf16_value(npu_f32_to_bf16(got_b))) : npu_f32_to_bf16(got_b) != bits;
    }
    NPU_CHECK_EQ(bad, 0);
}

/* Between two neighbours of the format: below, at and above the middle; ties go to the even one. */
static void check_rounding(uint32_t bits, double (*value)(uint32_t), uint16_t (*convert)(float), int *bad)
{
    double low = value(bits), high = value(bits + 1), middle;
    if (!isfinite(low) || !isfinite(high)) {
        return;
    }
    middle = (low + high) / 2;
    if ((double)(float)middle == middle) {
        *bad += convert((float)middle) != bits + (bits & 1u);
        *bad += convert(nextafterf((float)middle, -HUGE_VALF)) != (low < high ? bits : bits + 1);
        *bad += convert(nextafterf((float)middle, HUGE_VALF)) != (low < high ? bits + 1 : bits);
    }
}

static void test_rounding_to_nearest_even(void)
{
    int bad = 0;
    for (uint32_t bits = 0; bits < 0xffffu; bits++) {
        if (bits != 0x7fffu) { /* the next one has the other sign */
            check_rounding(bits, f16_value, npu_f32_to_f16, &bad);
            check_rounding(bits, bf16_value, npu_f32_to_bf16, &bad);
        }
    }
    NPU_CHECK_EQ(bad, 0);
    NPU_CHECK_EQ(npu_f32_to_f16(65519.996f), 0x7bff); /* the largest, and what rounds past it */
    NPU_CHECK_EQ(npu_f32_to_f16(65520.0f), 0x7c00);
    NPU_CHECK_EQ(npu_f32_to_f16(-1e30f), 0xfc00);
    NPU_CHECK_EQ(npu_f32_to_f16(1e-30f), 0);
    NPU_CHECK_EQ(npu_f32_to_f16(-1e-30f), 0x8000);
    NPU_CHECK_EQ(npu_f32_to_bf16(3.4e38f), 0x7f80);
}

/* ---- specs ---- */

static void test_sizes(void)
{
    NPU_ITEM("F60");
    static const struct {
        npu_dtype dtype;
        uint32_t rank;
        int64_t dims[3];
        npu_status status;
        size_t len, size;
    } rows[] = { { NPU_F32, 0, { 0 }, NPU_OK, 1, 4 },
                 { NPU_F16, 3, { 2, 3, 4 }, NPU_OK, 24, 48 },
                 { NPU_BOOL, 1, { 7 }, NPU_OK, 7, 7 },
                 { NPU_C128, 1, { 2 }, NPU_OK, 2, 32 },
                 { NPU_I4, 2, { 3, 5 }, NPU_OK, 15, 9 }, /* rows are padded to a byte */
                 { NPU_I4, 2, { 3, 4 }, NPU_OK, 12, 6 },
                 { NPU_F32, 2, { 0, 5 }, NPU_OK, 0, 0 },
                 { NPU_F32, 2, { 1000000, 0 }, NPU_OK, 0, 0 },
                 { NPU_F32, 2, { NPU_DYNAMIC_DIM, 5 }, NPU_ERR_DYNAMIC_SHAPE, 0, 0 },
                 { NPU_F32, 2, { INT64_MAX, 2 }, NPU_ERR_OVERFLOW, 0, 0 },
                 { NPU_F64, 1, { INT64_MAX / 8 + 1 }, NPU_ERR_OVERFLOW, 0, 0 },
                 { NPU_I4, 3, { 0, INT64_MAX / 2 + 1, 2 }, NPU_ERR_OVERFLOW, 0, 0 }, /* empty, but strides must fit */
                 { NPU_F64, 2, { INT64_MAX / 8 + 1, 2 }, NPU_ERR_OVERFLOW, 0, 0 } };
    for (size_t i = 0; i < COUNT(rows); i++) {
        npu_spec s = npu_spec_tensor(rows[i].dtype, rows[i].rank, rows[i].dims);
        size_t len = 1, size = 1;
        NPU_CHECK_STATUS(npu_spec_size(&s, &size), rows[i].status);
        NPU_CHECK_EQ(size, rows[i].size);
        if (rows[i].status != NPU_ERR_OVERFLOW) { /* the elements may fit where their bytes do not */
            NPU_CHECK_STATUS(npu_spec_len(&s, &len), rows[i].status);
            NPU_CHECK_EQ(len, rows[i].len);
        }
        NPU_CHECK_EQ(npu_spec_is_static(&s), rows[i].status != NPU_ERR_DYNAMIC_SHAPE);
    }
}

static void test_invalid_specs(void)
{
    int64_t dims[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    npu_spec deep = npu_spec_tensor(NPU_F32, 9, dims), none = npu_spec_tensor(NPU_NONE, 1, dims);
    npu_graph *g = npu_graph_create(NULL);
    NPU_CHECK(!npu_input(g, "deep", deep).id);
    NPU_CHECK(npu_graph_status(g) != NPU_OK);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_input(g, "none", none).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_DTYPE);
    npu_graph_clear_error(g);
    NPU_CHECK(!npu_input(g, "no dims", npu_spec_tensor(NPU_F32, 2, NULL)).id);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_ERR_DTYPE);
    npu_graph_destroy(g);
}

/* Each member counts. */
static void test_equality(void)
{
    int64_t dims[2] = { 2, 3 };
    npu_spec base = npu_spec_tile(NPU_F32, 2, dims), other;
    npu_quant quant = { 1, 0, 0, 0, NULL, NULL };
    NPU_CHECK(npu_spec_equal(&base, &base));
#define DIFFERS(change) do { other = base; other.change; NPU_CHECK(!npu_spec_equal(&base, &other)); } while (0)
    DIFFERS(cls = NPU_CLASS_TENSOR);
    DIFFERS(dtype = NPU_F16);
    DIFFERS(rank = 1);
    DIFFERS(dims[1] = 4);
    DIFFERS(wrapped = 1);
    DIFFERS(space = NPU_SPACE_L1);
    DIFFERS(quant = &quant);
    other = base;
    other.dims[5] = 9; /* past the rank */
    NPU_CHECK(npu_spec_equal(&base, &other));
}

/* Quantisation is compared by content, not by pointer. */
static void test_equal_quants(void)
{
    static const float scales[2] = { 0.5f, 1 }, same_scales[2] = { 0.5f, 1 }, other_scales[2] = { 0.5f, 2 };
    static const int32_t zeros[2] = { 0, 3 }, same_zeros[2] = { 0, 3 }, other_zeros[2] = { 1, 3 };
    const npu_quant base = { 1, 0, 4, 2, scales, zeros };
    static const struct { npu_quant quant; bool is_equal; } rows[] = {
        { { 1, 0, 4, 2, scales, zeros }, true },        { { 1, 0, 4, 2, same_scales, same_zeros }, true },
        { { 2, 0, 4, 2, scales, zeros }, false },       { { 1, 1, 4, 2, scales, zeros }, false },
        { { 1, 0, 8, 2, scales, zeros }, false },       { { 1, 0, 4, 1, scales, zeros }, false },
        { { 1, 0, 4, 2, other_scales, zeros }, false }, { { 1, 0, 4, 2, scales, other_zeros }, false },
        { { 1, 0, 4, 2, scales, NULL }, false },
    };
    npu_spec a = npu_spec_tensor(NPU_I8, 0, NULL), b = a;
    NPU_ITEM("F59");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        a.quant = &base;
        b.quant = &rows[i].quant;
        NPU_CHECK_THAT(npu_spec_equal(&a, &b) == rows[i].is_equal, "row %d", (int)i);
        NPU_CHECK_THAT(npu_spec_equal(&b, &a) == rows[i].is_equal, "row %d", (int)i);
        a.quant = NULL;
        NPU_CHECK(!npu_spec_equal(&a, &b) && !npu_spec_equal(&b, &a));
    }
}

/* i8[2,64], or of the dtype given, with that quantisation: a value of it, or a refusal that says why. */
static void test_quants_that_cannot_be(void)
{
    static const float scales[4] = { 0.5f, 1, 2, 3 }, zero[1] = { 0 }, below[2] = { 1, -1 }, nan[1] = { NAN }, endless[1] = { INFINITY };
    static const int32_t zeros[4] = { 0, -128, 127, 5 }, large[1] = { 128 }, small[1] = { -129 };
    static const struct { npu_quant quant; npu_dtype dtype; const char *words; } rows[] = {
        { { 1, 0, 0, 1, scales, zeros }, NPU_I8, NULL },
        { { 2, 0, 0, 2, scales, zeros }, NPU_I8, NULL },
        { { 3, 1, 32, 4, scales, zeros }, NPU_I8, NULL },
        { { 3, 1, 32, 4, scales, NULL }, NPU_I4, NULL },
        { { 0, 0, 0, 0, NULL, NULL }, NPU_F32, NULL },
        { { 4, 0, 0, 1, scales, NULL }, NPU_I8, "scheme is none" },
        { { 1, 0, 8, 1, scales, NULL }, NPU_I8, "a block that does not fit" },
        { { 3, 1, 0, 4, scales, NULL }, NPU_I8, "a block that does not fit" },
        { { 1, 1, 0, 1, scales, NULL }, NPU_I8, "axis is none" },
        { { 2, 2, 0, 2, scales, NULL }, NPU_I8, "axis is none" },
        { { 2, -1, 0, 2, scales, NULL }, NPU_I8, "axis is none" },
        { { 3, 1, 48, 2, scales, NULL }, NPU_I8, "block does not divide" },
        { { 2, 0, 0, 1, scales, NULL }, NPU_I8, "not as many scales" },
        { { 3, 1, 32, 3, scales, NULL }, NPU_I8, "not as many scales" },
        { { 1, 0, 0, 1, NULL, NULL }, NPU_I8, "not as many scales" },
        { { 1, 0, 0, 1, zero, NULL }, NPU_I8, "no finite number above 0" },
        { { 2, 0, 0, 2, below, NULL }, NPU_I8, "no finite number above 0" },
        { { 1, 0, 0, 1, nan, NULL }, NPU_I8, "no finite number above 0" },
        { { 1, 0, 0, 1, endless, NULL }, NPU_I8, "no finite number above 0" },
        { { 1, 0, 0, 1, scales, large }, NPU_I8, "zero point is no number of its dtype" },
        { { 1, 0, 0, 1, scales, small }, NPU_I8, "zero point is no number of its dtype" },
        { { 1, 0, 0, 1, scales, zeros + 1 }, NPU_U8, "zero point is no number of its dtype" },
        { { 1, 0, 0, 1, scales, zeros }, NPU_F32, "no integers" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t dims[2] = { 2, 64 };
        npu_graph *g = npu_graph_create(NULL);
        npu_spec spec = npu_spec_tensor(rows[i].dtype, 2, dims);
        spec.quant = &rows[i].quant;
        npu_value v = npu_input(g, "x", spec);
        NPU_CHECK_THAT((v.id != 0) == !rows[i].words, "row %d: %s", (int)i, npu_graph_diag(g)->message);
        NPU_CHECK_STATUS(npu_graph_status(g), rows[i].words ? NPU_ERR_ATTRIBUTE : NPU_OK);
        NPU_CHECK_THAT(!rows[i].words || strstr(npu_graph_diag(g)->message, rows[i].words), "row %d: %s", (int)i, npu_graph_diag(g)->message);
        npu_graph_destroy(g);
    }
}

static void test_printing(void)
{
    int64_t dims[2] = { 32, NPU_DYNAMIC_DIM };
    static const char *const expected[] = { "f16[32,?]", "tile f16[32,?]", "scalar i64[]", "f64[]", "i8[] scale=0.5 zero=-3",
                                            "i4[32,?] scales=2 axis=1 block=16" };
    static const float scales[2] = { 0.5f, 1 };
    static const int32_t zeros[1] = { -3 };
    const npu_quant one = { 1, 0, 0, 1, scales, zeros }, blocks = { 3, 1, 16, 2, scales, NULL };
    npu_spec specs[6];
    specs[0] = npu_spec_tensor(NPU_F16, 2, dims);
    specs[1] = npu_spec_tile(NPU_F16, 2, dims);
    specs[2] = npu_spec_scalar(NPU_I64);
    specs[3] = npu_spec_tensor(NPU_F64, 0, NULL);
    specs[4] = npu_spec_tensor(NPU_I8, 0, NULL);
    specs[4].quant = &one;
    specs[5] = npu_spec_tensor(NPU_I4, 2, dims);
    specs[5].quant = &blocks;
    for (size_t i = 0; i < COUNT(specs); i++) {
        npu_text text = npu_text_init(NULL);
        npu_spec_print(&text, &specs[i]);
        NPU_CHECK_STR(text.data, expected[i]);
        npu_text_free(&text);
    }
}

/* Expected by hand from the rule of the operator document. */
static void test_promotion_of_the_tensor_namespace(void)
{
    static const struct {
        npu_dtype a, b, expected;
    } rows[] = {
        { NPU_F16, NPU_I64, NPU_F16 },  { NPU_I8, NPU_F32, NPU_F32 }, { NPU_F16, NPU_F32, NPU_F32 },
        { NPU_I16, NPU_I32, NPU_I32 },  { NPU_U8, NPU_I8, NPU_I8 },   { NPU_I32, NPU_U32, NPU_I32 },
        { NPU_F16, NPU_BF16, NPU_F16 }, { NPU_BF16, NPU_F16, NPU_BF16 },
        { NPU_BOOL, NPU_U8, NPU_U8 },   { NPU_BOOL, NPU_BOOL, NPU_BOOL }, { NPU_NONE, NPU_F32, NPU_NONE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        NPU_CHECK_EQ(npu_dtype_promote_tensor(rows[i].a, rows[i].b), rows[i].expected);
    }
}

/* As numpy.broadcast_shapes; -1 and symbols (below -1) only match themselves and 1. */
static void test_broadcasting(void)
{
    static const struct {
        uint32_t rank_a, rank_b;
        int64_t a[3], b[3];
        npu_status status;
        uint32_t rank, bad; /* bad: from the right */
        int64_t out[3];
    } rows[] = {
        { 2, 2, { 2, 3 }, { 2, 3 }, NPU_OK, 2, 0, { 2, 3 } },
        { 2, 1, { 2, 3 }, { 3 }, NPU_OK, 2, 0, { 2, 3 } },
        { 1, 3, { 3 }, { 4, 1, 1 }, NPU_OK, 3, 0, { 4, 1, 3 } },
        { 0, 2, { 0 }, { 5, 6 }, NPU_OK, 2, 0, { 5, 6 } },
        { 2, 2, { 0, 3 }, { 1, 3 }, NPU_OK, 2, 0, { 0, 3 } },
        { 2, 2, { -1, 3 }, { 1, 3 }, NPU_OK, 2, 0, { -1, 3 } },
        { 2, 2, { -2, 3 }, { -2, 1 }, NPU_OK, 2, 0, { -2, 3 } },
        { 2, 2, { 2, 3 }, { 2, 4 }, NPU_ERR_SHAPE, 0, 0, { 0 } },
        { 2, 2, { 2, 3 }, { 4, 3 }, NPU_ERR_SHAPE, 0, 1, { 0 } },
        { 2, 2, { 0, 3 }, { 2, 3 }, NPU_ERR_SHAPE, 0, 1, { 0 } },
        { 1, 1, { -2 }, { -3 }, NPU_ERR_SHAPE, 0, 0, { 0 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t out[3] = { 0 };
        uint32_t rank = 99, bad = 99;
        NPU_CHECK_STATUS(npu_dims_broadcast(rows[i].a, rows[i].rank_a, rows[i].b, rows[i].rank_b, out, &rank, &bad), rows[i].status);
        if (rows[i].status) {
            NPU_CHECK_EQ(bad, rows[i].bad);
            continue;
        }
        NPU_CHECK_EQ(rank, rows[i].rank);
        NPU_CHECK_BYTES(out, rows[i].out, rank * sizeof out[0]);
    }
}

int main(void)
{
    NPU_RUN(test_codes);
    NPU_RUN(test_names_that_are_none);
    NPU_RUN(test_kinds);
    NPU_RUN(test_halves_exactly);
    NPU_RUN(test_rounding_to_nearest_even);
    NPU_RUN(test_sizes);
    NPU_RUN(test_invalid_specs);
    NPU_RUN(test_equality);
    NPU_RUN(test_equal_quants);
    NPU_RUN(test_quants_that_cannot_be);
    NPU_RUN(test_printing);
    NPU_RUN(test_promotion_of_the_tensor_namespace);
    NPU_RUN(test_broadcasting);
    return npu_test_done();
}
