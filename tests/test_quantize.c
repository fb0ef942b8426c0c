/* Quantisation by rows of the text form whose results are worked out by hand: ties, ends of ranges, what torch rounds
   when, and what it leaves open; refused parameters; linears with weights of small integers against sums written here. */
#include "../npu_ir_backend_ref.h"
#include "isa.h"
#include "npu_test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define QD "quantized_decomposed."

/* ---- rows ---- */

typedef struct row {
    const char *lines;  /* of a graph whose output is y */
    npu_status status;
    const char *want;   /* the numbers of y, which are exact */
} row;

static double element(const npu_spec *spec, const void *data, size_t i)
{
    switch (spec->dtype) {
    case NPU_BOOL: case NPU_U8: return ((const uint8_t *)data)[i];
    case NPU_I8: return ((const int8_t *)data)[i];
    case NPU_I16: return ((const int16_t *)data)[i];
    case NPU_U16: return ((const uint16_t *)data)[i];
    case NPU_I32: return ((const int32_t *)data)[i];
    case NPU_I64: return (double)((const int64_t *)data)[i];
    case NPU_F16: return (double)npu_f16_to_f32(((const uint16_t *)data)[i]);
    case NPU_BF16: return (double)npu_bf16_to_f32(((const uint16_t *)data)[i]);
    case NPU_F32: return (double)((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

static npu_status run_lines(npu_text *out, const npu_backend *cpu, const char *lines, npu_diag *diag)
{
    npu_text text = npu_text_init(NULL);
    npu_graph *g = NULL;
    npu_exec *exec = NULL;
    npu_text_printf(&text, "npu_ir 1\ngraph main\n%soutput y = y\n", lines);
    npu_status status = npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), diag);
    status = status ? status : npu_exec_create_simple(&exec, g, &cpu, 1, diag);
    status = status ? status : npu_exec_run(exec);
    if (!status) {
        const npu_spec *spec = npu_value_spec(g, npu_graph_output(g, 0));
        const void *y = npu_exec_output(exec, 0, NULL);
        size_t len = 0;
        npu_spec_len(spec, &len);
        for (size_t i = 0; i < len; i++) {
            double number = element(spec, y, i);
            int digits = npu_dtype_is_integer((npu_dtype)spec->dtype) ? 10 : 9;
            npu_text_printf(out, "%s%.*g", i ? " " : "", digits, number != number ? (double)NAN : number + 0.0);
        }
    }
    npu_exec_destroy(exec);
    npu_graph_destroy(g);
    npu_text_free(&text);
    return status;
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        npu_text got = npu_text_init(NULL);
        npu_diag diag = { 0 };
        npu_status status = run_lines(&got, npu_ref_backend(), rows[i].lines, &diag);
        NPU_CHECK_THAT(status == rows[i].status, "%s: %s (%s), expected %s", rows[i].lines, npu_status_name(status),
                       diag.message, npu_status_name(rows[i].status));
        NPU_CHECK_THAT(!status || diag.message[0], "%s: refused without words", rows[i].lines);
        if (!status && rows[i].want) {
            NPU_CHECK_THAT(strcmp(got.data ? got.data : "", rows[i].want) == 0, "%s: %s, expected %s", rows[i].lines,
                           got.data ? got.data : "", rows[i].want);
        }
        npu_text_free(&got);
    }
}

/* ---- rounding ---- */

#define X6 "const x : f32[6] {0.5, 1.5, -0.5, -2.5, inf, -inf}\n"
static void test_quantise(void)
{
    static const row rows[] = {
        { X6 "y = " QD "quantize_per_tensor.default(x, 1.0, 0, -128, 127, i8)\n", NPU_OK, "0 2 0 -2 127 -128" },
        { X6 "y = " QD "quantize_per_tensor.default(x, 1.0, 1, 0, 3, u8)\n", NPU_OK, "1 3 1 0 3 0" },
        { X6 "y = " QD "quantize_per_tensor.default(x, 1.0, 0, -2147483648, 2147483647, i32)\n", NPU_OK,
          "0 2 0 -2 2147483647 -2147483648" }, /* 2^31 in f32, which does not fit: torch leaves open what comes */
        { "const x : f32[2] {nan, 70000.0}\ny = " QD "quantize_per_tensor.default(x, 1.0, 5, 0, 65535, u16)\n", NPU_OK,
          "0 65535" },
        { "const x : f32[1] {1.0}\ny = " QD "quantize_per_tensor.default(x, 1e-40, 0, -100, 100, i16)\n", NPU_OK, "100" },
        /* 0.3 / 0.1f is 2.9999999 in f32 by its inverse, 2.5 beyond that: the inverse of a number is taken in double */
        { "const x : f32[2] {0.25, 0.35}\ny = " QD "quantize_per_tensor.default(x, 0.1, 0, -9, 9, i8)\n", NPU_OK, "2 4" },
        /* zero points before rounding: 0.5 + 1 and 1.5 + 1 go to 2; after it: 0 + 1 and 2 + 1 */
        { "const x : f32[1,2] {0.5, 1.5}\nconst s : f32[1,1] {1.0}\nconst z : i32[1,1] {1}\n"
          "y = " QD "quantize_per_token.default(x, s, z, -9, 9, i8)\n", NPU_OK, "2 2" },
        { "const x : f32[1,2] {0.5, 1.5}\nconst s : f32[1,1] {1.0}\nconst z : i32[1,1] {1}\n"
          "y = " QD "quantize_per_channel_group.default(x, s, z, -9, 9, i8, 2)\n", NPU_OK, "2 2" },
        { "const x : f32[1,2] {0.5, 1.5}\nconst s : f32[1] {1.0}\nconst z : i32[1] {1}\n"
          "y = " QD "quantize_per_channel.default(x, s, z, -2, -9, 9, i8)\n", NPU_OK, "1 3" },
        /* as many scales as rows may lie along the rows, where they broadcast there */
        { "const x : f32[2,2] {4.0, 4.0, 6.0, 6.0}\nconst s : f32[2] {1.0, 2.0}\nconst z : f32[2,1] {0.0, 1.0}\n"
          "y = " QD "quantize_per_token.default(x, s, z, -9, 9, i8)\n", NPU_OK, "4 2 7 4" },
        /* halves per token stay halves: 2049 is no f16, and 16.0078125 none of bf16 */
        { "const x : f16[1,1] {2048.0}\nconst s : f16[1] {1.0}\nconst z : f16[1] {1.0}\n"
          "y = " QD "quantize_per_token.default(x, s, z, -9999, 9999, i16)\n", NPU_OK, "2048" },
        { "const x : f16[1,1] {2048.0}\nconst s : f32[1] {1.0}\nconst z : f32[1] {1.0}\n"
          "y = " QD "quantize_per_token.default(x, s, z, -9999, 9999, i16)\n", NPU_OK, "2049" },
        { "const x : f16[1] {2048.0}\ny = " QD "quantize_per_tensor.default(x, 1.0, 1, -9999, 9999, i16)\n", NPU_OK, "2049" },
        /* one group beyond the row, and one scale for all groups */
        { "const x : f32[2,2] {4.0, 5.0, 6.0, 7.0}\nconst s : f32[2,1] {1.0, 2.0}\nconst z : i8[2,1] {0, 1}\n"
          "y = " QD "quantize_per_channel_group.default(x, s, z, -9, 9, i8, 128)\n", NPU_OK, "4 5 4 4" },
        { "const x : f32[2,4] {4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0}\nconst s : f32[1] {2.0}\nconst z : i8[1] {1}\n"
          "y = " QD "quantize_per_channel_group.default(x, s, z, -9, 9, i8, 2)\n", NPU_OK, "3 4 4 4 5 6 6 6" },
        { "input x : f32[0,3]\nconst s : f32[3] {1.0, 1.0, 1.0}\nconst z : i32[3] {0, 0, 0}\n"
          "y = " QD "quantize_per_channel.default(x, s, z, 1, 0, 9, u8)\n", NPU_OK, "" },
        /* operands that lie in another order */
        { "const x : f32[2,3] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}\nt = aten.permute.default(x, [1, 0])\n"
          "const s : f32[3] {1.0, 2.0, 4.0}\nconst z : i64[3] {0, 1, 2}\n"
          "y = " QD "quantize_per_channel.default(t, s, z, 0, 0, 99, u8)\n", NPU_OK, "1 4 2 3 3 4" },
        /* told by the run alone: the inverse of 0 is inf, and 0 times that is NaN */
        { "const x : f32[3] {0.0, 1.0, -1.0}\nconst one : f32[1] {1.0}\ns = aten.sub.Tensor(one, one)\nconst z : i64[1] {3}\n"
          "y = " QD "quantize_per_tensor.tensor(x, s, z, -9, 9, i8)\n", NPU_OK, "0 9 -9" },
        { "const x : f32[3] {0.0, 1.0, -1.0}\nconst one : f32[] {-1.0}\ns = aten.mul.Tensor(one, 0.5)\nconst z : i64[1] {3}\n"
          "y = " QD "quantize_per_tensor.tensor(x, s, z, -9, 9, i8)\n", NPU_OK, "3 1 5" },
        { "const x : f32[2] {5.0, -5.0}\nconst s : f32[] {1.0}\nconst z : i64[] {0}\nconst l : i64[] {-3}\nconst h : i32[1] {4}\n"
          "y = " QD "quantize_per_tensor.tensor2(x, s, z, l, h, i8)\n", NPU_OK, "4 -3" },
        { "const x : f32[2] {500.0, -500.0}\nconst s : f32[] {1.0}\nconst z : i64[] {0}\nconst l : i64[] {-300}\nconst h : i32[1] {400}\n"
          "y = " QD "quantize_per_tensor.tensor2(x, s, z, l, h, i8)\n", NPU_OK, "127 -128" },
    };
    NPU_ITEM("S1.41");
    check_rows(rows, COUNT(rows));
}

static void test_dequantise(void)
{
    static const row rows[] = {
        { "const x : i8[3] {-128, 0, 127}\ny = " QD "dequantize_per_tensor.default(x, 0.5, -128, -128, 127, i8)\n", NPU_OK,
          "0 64 127.5" },
        { "const x : u16[2] {0, 65535}\ny = " QD "dequantize_per_tensor.default(x, 2.0, 32768, 0, 65535, u16)\n", NPU_OK,
          "-65536 65534" },
        /* integers take the result's type first: 2049 is no f16 and 16777217 no f32 */
        { "const x : i16[1] {2049}\ny = " QD "dequantize_per_tensor.default(x, 1.0, 0, -9999, 9999, i16, out_dtype=f16)\n", NPU_OK,
          "2048" },
        { "const x : i32[1] {16777217}\ny = " QD "dequantize_per_tensor.default(x, 1.0, 1, -9, 9, i32)\n", NPU_OK, "16777215" },
        { "const x : i32[1] {16777217}\ny = " QD "dequantize_per_tensor.default(x, 1.0, 1, -9, 9, i32, out_dtype=f64)\n", NPU_OK,
          "16777216" },
        /* per channel the difference is one of integers, in their common type */
        { "const x : i8[1,1] {-100}\nconst s : f32[1] {1.0}\nconst z : i8[1] {100}\n"
          "y = " QD "dequantize_per_channel.default(x, s, z, 0, -128, 127, i8)\n", NPU_OK, "56" },
        { "const x : i8[1,1] {-100}\nconst s : f32[1] {1.0}\nconst z : i16[1] {100}\n"
          "y = " QD "dequantize_per_channel.default(x, s, z, 0, -128, 127, i8)\n", NPU_OK, "-200" },
        { "const x : u16[1,1] {7}\nconst s : f32[1] {1.0}\nconst z : i32[1] {100}\n"
          "y = " QD "dequantize_per_channel.default(x, s, z, 0, 0, 127, u16)\n", NPU_OK, "-93" },
        { "const x : i8[2,2] {1, 2, 3, 4}\nconst s : f32[2] {0.5, 2.0}\n"
          "y = " QD "dequantize_per_channel.default(x, s, none, -1, -128, 127, i8, out_dtype=bf16)\n", NPU_OK, "0.5 4 1.5 8" },
        { "const x : i8[2,1] {1, 2}\nconst s : f64[2,1] {0.1, 0.2}\nconst z : i64[2,1] {0, 1}\n"
          "y = " QD "dequantize_per_token.default(x, s, z, -128, 127, i8, f64)\n", NPU_OK, "0.1 0.2" },
        { "const x : u8[2,2] {1, 2, 3, 4}\nconst s : f32[2] {0.5, 2.0}\nconst z : f32[2] {0.5, 1.0}\n"
          "y = " QD "dequantize_per_channel_group.default(x, s, z, 0, 127, u8, 2, f32)\n", NPU_OK, "0.25 0.75 4 6" },
        { "const x : i8[2,2] {1, 2, 3, 4}\nconst s : f32[2] {0.5, 2.0}\n"
          "y = " QD "dequantize_per_channel_group.default(x, s, none, 0, 127, i8, 2, f16)\n", NPU_OK, "0.5 1 6 8" },
        /* and back */
        { "const x : f32[3] {1.0, -7.0, 400.0}\nq = " QD "quantize_per_tensor.default(x, 0.5, 10, 0, 255, u8)\n"
          "y = " QD "dequantize_per_tensor.default(q, 0.5, 10, 0, 255, u8)\n", NPU_OK, "1 -5 122.5" },
    };
    check_rows(rows, COUNT(rows));
}

#define FAKE "y = aten.fake_quantize_per_tensor_affine"
static void test_fake_quantise(void)
{
    static const row rows[] = {
        { X6 FAKE ".default(x, 1.0, 1, 0, 3)\n", NPU_OK, "0 2 0 -1 2 -1" },
        { "const x : f32[2] {nan, 1.0}\n" FAKE ".default(x, 1.0, 1, -2, 3)\n", NPU_OK, "-3 1" },
        { "const x : bf16[2] {0.3, 100.0}\n" FAKE ".default(x, 0.25, 0, -2, 3)\n", NPU_OK, "0.25 0.75" },
        { "const x : f32[2] {0.3, 100.0}\nconst s : f32[1] {0.25}\nconst z : i32[1] {0}\nconst on : i64[1] {0}\n"
          "y, m = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default(x, s, z, on, -2, 3)\n", NPU_OK,
          "0.300000012 100" },
        { "const x : f32[3] {0.3, 100.0, nan}\nv, y = aten.fake_quantize_per_tensor_affine_cachemask.default(x, 0.25, 0, -2, 3)\n",
          NPU_OK, "1 0 0" },
        /* zero points that are floats are added before rounding: 0.5 + 0.25 goes to 1 */
        { "const x : f32[2] {0.5, 1.5}\nconst s : f32[2] {1.0, 1.0}\nconst z : f32[2] {0.25, 0.0}\n"
          "y = aten.fake_quantize_per_channel_affine.default(x, s, z, -1, 0, 9)\n", NPU_OK, "0.75 2" },
        { "const x : f32[2,2] {nan, 1.5, 2.5, 9.0}\nconst s : f32[2] {1.0, 2.0}\nconst z : f32[2] {1.9, 0.0}\n"
          "y = " QD "fake_quant_per_channel.default(x, s, z, 1, 0, 3)\n", NPU_OK, "nan 2 2 6" },
    };
    check_rows(rows, COUNT(rows));
}

static void test_choose_qparams(void)
{
    static const row rows[] = {
        { "const x : f32[3] {-1.0, 0.0, 0.9921875}\ns, y = " QD "choose_qparams.tensor(x, -128, 127, 1e-9, i8)\n", NPU_OK, "0" },
        { "const x : f32[2] {2.0, 5.1}\ny, z = " QD "choose_qparams.tensor(x, 0, 255, 1e-9, u8)\n", NPU_OK, "0.0199999996" },
        { "const x : f32[2] {2.0, 5.1}\ny, z = " QD "choose_qparams.tensor(x, 0, 255, 0.5, u8)\n", NPU_OK, "0.5" },
        { "const x : f32[2] {-3.0, 2.0}\ns, y = " QD "choose_qparams_symmetric.tensor(x, 0, 255, 1e-9, u8)\n", NPU_OK, "128" },
        { "const x : f32[2] {-3.0, 2.0}\ny, z = " QD "choose_qparams_symmetric.tensor(x, -127, 127, 1e-9, i8)\n", NPU_OK,
          "0.0236220472" },
        { "const x : f32[2] {nan, 2.0}\ns, y = " QD "choose_qparams.tensor(x, 3, 3, 1e-9, i8)\n", NPU_ERR_RANGE, NULL },
        { "const x : f32[2] {nan, 2.0}\ny, z = " QD "choose_qparams.tensor(x, -3, 3, 1e-9, i8)\n", NPU_OK, "nan" },
        { "const x : f32[2] {nan, 2.0}\ns, y = " QD "choose_qparams.tensor(x, -3, 3, 1e-9, i8)\n", NPU_OK, "-3" },
        { "const x : f32[2] {-inf, 2.0}\ns, y = " QD "choose_qparams.tensor(x, -3, 3, 1e-9, i8)\n", NPU_OK, "-3" },
        { "const x : f32[2] {-inf, 2.0}\ny, z = " QD "choose_qparams_symmetric.tensor(x, -3, 3, 1e-9, i8)\n", NPU_OK, "inf" },
        { "const x : f16[2,2] {-127.0, 2.0, 0.0, 0.0}\ny, z = " QD "choose_qparams_per_token.default(x, i8)\n", NPU_OK,
          "1 7.87401575e-08" },
        { "const x : bf16[1] {nan}\ny, z = " QD "choose_qparams_per_token.default(x, i8)\n", NPU_OK, "nan" },
        { "const x : f32[2,2] {-1.0, 1.55, nan, 0.0}\ns, y = " QD "choose_qparams_per_token_asymmetric.default(x, u8)\n", NPU_OK,
          "-28 0" },
        { "const x : f32[] {2.55}\ny, z = " QD "_choose_qparams_per_token_asymmetric_impl.default(x, i8)\n", NPU_OK,
          "0.00999999978" },
    };
    check_rows(rows, COUNT(rows));
}

/* The same in every run: whole numbers from -limit to limit. */
static int number(uint32_t *seed, int limit)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (int)(*seed >> 8) % (2 * limit + 1) - limit;
}

/* fake_quantize of many elements under every instruction set: the bits of the plain variant, masks, too. Halves, what is
   beyond all ranges, NaN; zero points and ranges that f32 does not round. */
static void test_fast_fake(void)
{
    static const char *const calls[] = {
        "y = aten.fake_quantize_per_tensor_affine.default(x, 0.03125, 3, -128, 127)\n",
        "y = aten.fake_quantize_per_tensor_affine.default(x, 1e-40, 7, 0, 255)\n",
        "y = aten.fake_quantize_per_tensor_affine.default(x, 0.7, 30000, -32768, 32767)\n",
        "y = aten.fake_quantize_per_tensor_affine.default(x, 1e-6, 5, -8000000, 8000000)\n",
        "y, m = aten.fake_quantize_per_tensor_affine_cachemask.default(x, 0.05, -2, -100, 90)\noutput m = m\n",
        "y, m = aten.fake_quantize_per_channel_affine_cachemask.default(x, s, z, 1, -128, 127)\noutput m = m\n",
        "y = aten.fake_quantize_per_channel_affine.default(x, s, v, 1, 0, 255)\n",
        "y = " QD "fake_quant_per_channel.default(x, s, z, 1, -4, 100)\n",
    };
    static float x[2 * 3 * 111];
    uint32_t seed = 5;
    for (size_t i = 0; i < COUNT(x); i++) {
        x[i] = (float)(i % 3 ? number(&seed, 600) : number(&seed, 100000)) / 64.0f;
        x[i] = i % 50 == 7 ? NAN : i % 50 == 8 ? INFINITY : i % 50 == 9 ? -3e38f : i % 50 == 10 ? -0.0f : x[i];
    }
    for (size_t k = 0; k < COUNT(calls); k++) {
        npu_text text = npu_text_init(NULL);
        npu_backend *plain = NULL;
        npu_graph *g = NULL;
        npu_exec *exec[2] = { NULL, NULL };
        npu_diag diag = { 0 };
        size_t size = 0;
        npu_text_printf(&text, "npu_ir 1\ngraph main\ninput x : f32[2,3,111]\nconst s : f32[3] {0.5, 0.125, 0.3}\n"
                               "const z : i32[3] {0, -3, 100}\nconst v : f32[3] {0.0, 0.5, 7.0}\n%soutput y = y\n", calls[k]);
        NPU_CHECK_STATUS(npu_ref_create(&plain, &(npu_ref_desc){ .variant = "plain" }), NPU_OK);
        NPU_CHECK_THAT(npu_graph_parse(&g, text.data, text.len, npu_test_graph_desc(), &diag) == NPU_OK, "%s%s", calls[k], diag.message);
        for (uint32_t i = 0; g && i <= ISA_MAX; i++) {
            const npu_backend *cpu = i ? isa_cpu(i - 1) : plain;
            if (!cpu || npu_exec_create_simple(&exec[i > 0], g, &cpu, 1, &diag)) {
                continue;
            }
            NPU_CHECK_STATUS(npu_test_input(exec[i > 0], "x", x, sizeof x), NPU_OK);
            NPU_CHECK_STATUS(npu_exec_run(exec[i > 0]), NPU_OK);
            for (uint32_t o = 0; i && o < npu_graph_num_outputs(g); o++) {
                const void *want = npu_exec_output(exec[0], o, &size), *got = npu_exec_output(exec[1], o, &size);
                NPU_CHECK_THAT(memcmp(want, got, size) == 0, "%son %s: output %u has other bits", calls[k], npu_ref_isa(i - 1), (unsigned)o);
            }
            npu_exec_destroy(i ? exec[1] : NULL);
        }
        npu_exec_destroy(exec[0]);
        npu_graph_destroy(g);
        npu_ref_destroy(plain);
        npu_text_free(&text);
    }
}

/* ---- what is refused where it is known ---- */

static void test_known_parameters(void)
{
    static const struct { const char *scales, *zeros; npu_status status; } rows[] = {
        { "0.5, 1.0", "0, 0", NPU_OK }, { "1e-40, 3e38", "-128, 127", NPU_OK },
        { "0.0, 1.0", "0, 0", NPU_ERR_ATTRIBUTE }, { "1.0, -0.5", "0, 0", NPU_ERR_ATTRIBUTE },
        { "1.0, nan", "0, 0", NPU_ERR_ATTRIBUTE }, { "inf, 1.0", "0, 0", NPU_ERR_ATTRIBUTE },
        { "1.0, 1.0", "0, 128", NPU_ERR_RANGE }, { "1.0, 1.0", "-129, 0", NPU_ERR_RANGE }
    };
    static const char *const calls[] = {
        "y = " QD "quantize_per_channel.default(x, s, z, 1, -128, 127, i8)\n",
        "t = aten.permute.default(x, [1, 0])\nsr = aten.view.default(s, [2, 1])\n"
        "q = " QD "quantize_per_tensor.default(t, 1.0, 0, -128, 127, i8)\n"
        "y = " QD "dequantize_per_channel.default(q, s, z, 0, -128, 127, i8)\n",
        "y = " QD "quantize_per_token.default(x, s, z, -128, 127, i8)\n",
        "y = " QD "quantize_per_channel_group.default(x, s, z, -128, 127, i8, 2)\n",
        "y = aten.fake_quantize_per_channel_affine.default(x, s, z, 1, -128, 127)\n"
    };
    for (size_t k = 0; k < COUNT(calls); k++) {
        for (size_t i = 0; i < COUNT(rows); i++) {
            char lines[600];
            snprintf(lines, sizeof lines, "const x : f32[2,2] {1.0, 2.0, 3.0, 4.0}\nconst s : f32[2] {%s}\nconst z : i32[2] {%s}\n%s",
                     rows[i].scales, rows[i].zeros, calls[k]);
            row r = { lines, rows[i].status, NULL };
            check_rows(&r, 1);
        }
    }
}

/* ---- linears with weights of small integers ---- */

enum { MOST = 320, ROWS = 24 };

/* What a linear is made of: self [m,k], integers [n,k] and what else it takes. */
typedef struct linear {
    uint32_t m, n, k, group;
    float x[ROWS * MOST], scales[80 * 10], zeros[80 * 10], bias[80];
    int w[80 * MOST];
} linear;

static void fill_linear(linear *l, uint32_t m, uint32_t n, uint32_t k, uint32_t group, int limit)
{
    uint32_t seed = m * 31 + n * 7 + k;
    l->m = m, l->n = n, l->k = k, l->group = group;
    for (uint32_t i = 0; i < m * k; i++) {
        l->x[i] = (float)number(&seed, 1000) / 512.0f;
    }
    for (uint32_t i = 0; i < n * k; i++) {
        l->w[i] = number(&seed, limit);
    }
    for (uint32_t i = 0; i < n * (k / group); i++) {
        l->scales[i] = (float)(number(&seed, 100) + 150) / 4096.0f;
        l->zeros[i] = (float)number(&seed, 100) / 256.0f;
    }
    for (uint32_t i = 0; i < n; i++) {
        l->bias[i] = (float)number(&seed, 100) / 16.0f;
    }
}

static npu_value constant(npu_graph *g, npu_dtype dtype, uint32_t rank, int64_t a, int64_t b, int64_t c, const void *data)
{
    int64_t dims[3] = { a, b, c };
    return npu_constant(g, NULL, npu_spec_tensor(dtype, rank, dims), data);
}


/* y on that backend; the graph has the one input x. */
static void run_linear(const npu_graph *g, const linear *l, const npu_backend *cpu, float *y)
{
    npu_exec *exec = NULL;
    npu_diag diag = { 0 };
    NPU_CHECK_STATUS(npu_exec_create_simple(&exec, g, &cpu, 1, &diag), NPU_OK);
    NPU_CHECK_STR(diag.message, "");
    NPU_CHECK_STATUS(npu_test_input(exec, "x", l->x, l->m * l->k * sizeof(float)), NPU_OK);
    NPU_CHECK_STATUS(npu_exec_run(exec), NPU_OK);
    const void *got = npu_exec_output(exec, 0, NULL);
    memset(y, 0, l->m * l->n * sizeof *y);
    if (got) {
        memcpy(y, got, l->m * l->n * sizeof *y);
    }
    npu_exec_destroy(exec);
}

/* All instruction sets, and the plain variant. `sums` are those of the magnitudes, which errors are measured by. */
static void check_linear(const char *what, npu_graph *g, const linear *l, const double *want, const double *sums)
{
    static float y[ROWS * 80];
    npu_backend *plain = NULL;
    npu_ref_desc desc = { .variant = "plain" };
    NPU_CHECK_STATUS(npu_ref_create(&plain, &desc), NPU_OK);
    NPU_CHECK_STATUS(npu_graph_status(g), NPU_OK);
    for (uint32_t i = 0; i <= ISA_MAX; i++) {
        const npu_backend *cpu = i < ISA_MAX ? isa_cpu(i) : plain;
        double worst = 0.0;
        if (!cpu) {
            continue;
        }
        run_linear(g, l, cpu, y);
        for (uint32_t k = 0; k < l->m * l->n; k++) {
            bool is_endless = !isfinite(want[k]) && (isnan(want[k]) ? isnan(y[k]) : (double)y[k] == want[k]);
            double error = is_endless ? 0.0 : fabs((double)y[k] - want[k]) / (sums[k] + 1e-30);
            worst = error > worst || error != error ? error : worst;
        }
        NPU_CHECK_THAT(worst < 1e-6, "%s %ux%ux%u groups of %u on %s: error %g of the sum of magnitudes", what, l->m, l->n, l->k,
                       l->group, i < ISA_MAX ? npu_ref_isa(i) : "plain", worst);
    }
    npu_ref_destroy(plain);
}

static npu_graph *start(const linear *l, npu_value *x)
{
    npu_graph *g = npu_graph_create(npu_test_graph_desc());
    int64_t dims[2] = { l->m, l->k };
    *x = npu_input(g, "x", npu_spec_tensor(NPU_F32, 2, dims));
    return g;
}

static void finish(npu_graph *g, npu_op op, const char *what, const linear *l, const double *want, const double *sums)
{
    npu_output(g, "y", npu_op_result(g, op, 0));
    check_linear(what, g, l, want, sums);
    npu_graph_destroy(g);
}

static void check_int8(const linear *l)
{
    static int8_t w[80 * MOST];
    static double want[ROWS * 80], sums[ROWS * 80];
    npu_value x;
    npu_graph *g = start(l, &x);
    for (uint32_t i = 0; i < l->n * l->k; i++) {
        w[i] = (int8_t)l->w[i];
    }
    for (uint32_t i = 0; i < l->m * l->n; i++) {
        want[i] = sums[i] = 0.0;
        for (uint32_t k = 0; k < l->k; k++) {
            double product = (double)l->x[i / l->n * l->k + k] * w[i % l->n * l->k + k] * (double)l->scales[i % l->n];
            want[i] += product;
            sums[i] += fabs(product);
        }
    }
    npu_arg args[3] = { npu_arg_tensor("self", x), npu_arg_tensor("mat2", constant(g, NPU_I8, 2, l->n, l->k, 0, w)),
                        npu_arg_tensor("scales", constant(g, NPU_F32, 1, l->n, 0, 0, l->scales)) };
    finish(g, npu_emit(g, NPU_ATEN_WEIGHT_INT8PACK_MM, args, 3), "int8", l, want, sums);
}

/* Blocks of 64 rows, each column of which is 32 bytes: row i and row i + 32; then pairs of rows. */
static const uint8_t *pack_int4(const linear *l)
{
    static uint8_t bytes[80 * MOST / 2];
    uint8_t *to = bytes;
    for (uint32_t first = 0; first < l->n; first += 64) {
        uint32_t rows = l->n - first < 64 ? l->n - first : 64;
        for (uint32_t k = 0; k < l->k; k++) {
            for (uint32_t i = 0; i < rows / 2; i++) {
                uint32_t low = rows == 64 ? i : 2 * i, high = rows == 64 ? i + 32 : 2 * i + 1;
                *to++ = (uint8_t)((l->w[(first + low) * l->k + k] + 8) | (l->w[(first + high) * l->k + k] + 8) << 4);
            }
        }
    }
    return bytes;
}

static void check_int4(const linear *l, bool is_known)
{
    static int32_t w[80 * MOST];
    static float q[2 * 80 * 10];
    static double want[ROWS * 80], sums[ROWS * 80];
    uint32_t groups = l->k / l->group;
    npu_value x;
    npu_graph *g = start(l, &x);
    for (uint32_t i = 0; i < l->n * l->k; i++) {
        w[i] = l->w[i] + 8;
    }
    for (uint32_t i = 0; i < l->n * groups; i++) { /* [groups,n,2] */
        uint32_t at = 2 * (i % groups * l->n + i / groups);
        q[at] = l->scales[i], q[at + 1] = l->zeros[i];
    }
    for (uint32_t i = 0; i < l->m * l->n; i++) {
        want[i] = sums[i] = 0.0;
        for (uint32_t k = 0; k < l->k; k++) {
            uint32_t n = i % l->n, at = n * groups + k / l->group;
            double xk = (double)l->x[i / l->n * l->k + k];
            want[i] += xk * (l->w[n * l->k + k] * (double)l->scales[at] + (double)l->zeros[at]);
            sums[i] += fabs(xk) * (8.0 * (double)l->scales[at] + fabs((double)l->zeros[at]));
        }
    }
    npu_arg pack[2] = { npu_arg_tensor("self", constant(g, NPU_I32, 2, l->n, l->k, 0, w)), npu_arg_int("innerKTiles", 2) };
    npu_value packed = is_known ? constant(g, NPU_U8, 2, l->n, l->k / 2, 0, pack_int4(l))
                                : npu_op_result(g, npu_emit(g, NPU_ATEN_CONVERT_WEIGHT_TO_INT4PACK_FOR_CPU, pack, 2), 0);
    npu_arg args[4] = { npu_arg_tensor("self", x), npu_arg_tensor("mat2", packed), npu_arg_int("qGroupSize", l->group),
                        npu_arg_tensor("qScaleAndZeros", constant(g, NPU_F32, 3, groups, l->n, 2, q)) };
    finish(g, npu_emit(g, NPU_ATEN_WEIGHT_INT4PACK_MM_FOR_CPU, args, 4), "int4", l, want, sums);
}

/* Row m of x as integers less their zero point; returns the scale. */
static double rounded_row(const linear *l, uint32_t m, int *q)
{
    const float *x = l->x + m * l->k;
    float least = 0.0f, most = 0.0f;
    for (uint32_t k = 0; k < l->k; k++) {
        least = fminf(least, x[k]), most = fmaxf(most, x[k]);
    }
    float steps = least == most ? 1.0f : 255.0f / (most - least), inverse = 1.0f / steps;
    float zero = (-128.0f + least * steps) + (127.0f + most * steps) > 0 ? -128.0f - least * steps : 127.0f - most * steps;
    int whole = (int)lrintf(fminf(fmaxf(zero, -128.0f), 127.0f));
    for (uint32_t k = 0; k < l->k; k++) {
        int v = (int)roundf(x[k] * steps) + whole;
        q[k] = (v < -128 ? -128 : v > 127 ? 127 : v) - whole;
    }
    return (double)inverse;
}

static void check_dynamic(const linear *l, bool has_bias)
{
    static uint8_t w[80 * MOST / 2];
    static double want[ROWS * 80], sums[ROWS * 80];
    int q[MOST];
    uint32_t groups = l->k / l->group;
    npu_value x;
    npu_graph *g = start(l, &x);
    for (uint32_t i = 0; i < l->n * l->k; i++) {
        w[i / 2] = (uint8_t)(i % 2 ? w[i / 2] | (l->w[i] + 8) << 4 : l->w[i] + 8);
    }
    for (uint32_t i = 0; i < l->m * l->n; i++) {
        uint32_t n = i % l->n;
        double scale = rounded_row(l, i / l->n, q);
        want[i] = has_bias ? (double)l->bias[n] : 0.0;
        sums[i] = fabs(want[i]);
        for (uint32_t k = 0; k < l->k; k++) {
            double product = (double)q[k] * l->w[n * l->k + k] * (double)l->scales[n * groups + k / l->group] * scale;
            want[i] += product;
            sums[i] += fabs(product);
        }
    }
    npu_value none = { 0 }, bias = has_bias ? constant(g, NPU_F32, 1, l->n, 0, 0, l->bias) : none;
    npu_arg sizes[3] = { npu_arg_int("block_size", l->group), npu_arg_int("in_features", l->k),
                         npu_arg_int("out_features", l->n) };
    npu_arg pack[6] = { npu_arg_tensor("weights", constant(g, NPU_U8, 2, l->n, l->k / 2, 0, w)),
                        npu_arg_tensor("scales_zeros", constant(g, NPU_F32, 2, l->n, groups, 0, l->scales)),
                        npu_arg_tensor("bias", bias), sizes[0], sizes[1], sizes[2] };
    npu_value packed = npu_op_result(g, npu_emit(g, NPU_ATEN_DYN_QUANT_PACK_4BIT_WEIGHT, pack, 6), 0);
    npu_arg args[5] = { npu_arg_tensor("inp", x), npu_arg_tensor("packed_weights", packed), sizes[0], sizes[1], sizes[2] };
    finish(g, npu_emit(g, NPU_ATEN_DYN_QUANT_MATMUL_4BIT, args, 5), "dynamic", l, want, sums);
}

/* x so small or so large that what weights are multiplied by before they are floats would not fit; then infinite. */
static void check_int4_range(linear *l)
{
    for (int power = -120; power <= 120; power += 240) {
        linear far = *l;
        for (uint32_t i = 0; i < l->m * l->k; i++) {
            far.x[i] = ldexpf(l->x[i], power);
        }
        for (uint32_t i = 0; i < l->n * (l->k / l->group); i++) {
            far.scales[i] = ldexpf(l->scales[i], -power), far.zeros[i] = ldexpf(l->zeros[i], -power);
        }
        check_int4(&far, true);
    }
    l->x[l->k / 2] = INFINITY;
    check_int4(l, true);
}

static void test_linears(void)
{
    static const uint32_t sizes[][4] = { /* m, n, k, group */
        { 1, 64, 64, 32 }, { 1, 80, 320, 64 }, { 3, 16, 128, 128 }, { 8, 48, 256, 32 }, { 5, 80, 96, 32 },
        { 2, 64, 256, 256 }, { 1, 16, 224, 32 },
        { 7, 32, 96, 32 }, { 12, 32, 128, 64 }, /* two rows of the weight are left by tiles of three */
        { 17, 64, 96, 32 }, { 24, 80, 320, 64 } /* so many that weights become floats */
    };
    static linear l;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        fill_linear(&l, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], 127);
        check_int8(&l);
        fill_linear(&l, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], 7);
        check_int4(&l, true);
        check_int4(&l, false);
        memset(l.zeros, 0, sizeof l.zeros);
        check_int4(&l, true);
        check_dynamic(&l, i % 2 == 0);
        check_int4_range(&l);
    }
    for (uint32_t k = 1; k < 200; k += 33) { /* any rows and columns */
        fill_linear(&l, 1 + k % (k % 2 ? 8 : ROWS), 1 + k % 79, k, k, 127);
        check_int8(&l);
    }
}

int main(void)
{
    NPU_RUN(test_quantise);
    NPU_RUN(test_dequantise);
    NPU_RUN(test_fake_quantise);
    NPU_RUN(test_fast_fake);
    NPU_RUN(test_choose_qparams);
    NPU_RUN(test_known_parameters);
    NPU_RUN(test_linears);
    isa_free();
    return npu_test_done();
}
