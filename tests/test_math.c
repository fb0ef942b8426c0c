/* The backend's own functions of libm: errors against long double, special values by C99's Annex F, arguments that are
   hard to reduce, and what is exact held against the C library bit for bit. */
#define NPU_IR_HAS_KERNEL(kind)                                                                                        \
    ((kind) == NPU_ATEN_ACOSH || (kind) == NPU_ATEN_ASINH || (kind) == NPU_ATEN_ATANH || (kind) == NPU_ATEN_DIGAMMA || \
     (kind) == NPU_ATEN_ERF || (kind) == NPU_ATEN_ERFC || (kind) == NPU_ATEN_LGAMMA || (kind) == NPU_ATEN_POW)
#define NPU_IR_BACKEND_REF_IMPLEMENTATION
#include "../npu_ir_backend_ref.h"
#include "npu_test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef double (*one_fn)(double);
typedef double (*two_fn)(double, double);
typedef long double (*one_long_fn)(long double);
typedef long double (*two_long_fn)(long double, long double);

/* Numbers of one row: where long double is emulated, fewer. */
#if LDBL_MANT_DIG == 64
enum { TRIES = 20000 };
#else
enum { TRIES = 400 };
#endif

static uint64_t state = 1;

static double between(double low, double high)
{
    return low + (high - low) * ((double)(npu_test_random(&state) >> 11) * 0x1p-53);
}

/* Any finite number, all exponents alike. */
static double any(void)
{
    double x = 0;
    do {
        uint64_t u = npu_test_random(&state);
        memcpy(&x, &u, sizeof x);
    } while (x - x != 0);
    return x;
}

/* |got - expected| in units in the last place of the expected double */
static double units(double got, long double expected)
{
    double nearest = (double)expected, size = fabs(nearest) < DBL_MIN ? DBL_MIN : fabs(nearest);
    int exponent;
    if (nearest - nearest != 0) {
        return got == nearest || (got != got && nearest != nearest) ? 0 : 1e300;
    }
    frexp(size, &exponent);
    return (double)(fabsl((long double)got - expected) / ldexpl(1, exponent - 53));
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

enum { EVENLY, BY_SIZE, ANYWHERE };

typedef struct one_row {
    const char *name;
    one_fn own;
    one_long_fn exact;
    int spread;
    double low, high; /* BY_SIZE: of |x|, and both signs where `low` of the row is negative */
    double limit;
} one_row;

#define ONE(name, spread, low, high, limit) { #name, npu__math_##name, name##l, spread, low, high, limit }
static const one_row one_rows[] = {
    ONE(exp, EVENLY, -708, 709, 0.52), ONE(exp, EVENLY, -745, -708, 1), ONE(exp, ANYWHERE, 0, 0, 1),
    ONE(exp2, EVENLY, -1022, 1024, 0.52), ONE(exp2, EVENLY, -1075, -1022, 1), ONE(exp2, EVENLY, -1, 1, 0.52),
    ONE(expm1, EVENLY, -1, 1, 1), ONE(expm1, EVENLY, -50, 700, 1), ONE(expm1, BY_SIZE, -1e-20, 1, 1),
    ONE(log, EVENLY, 0.5, 2, 0.52), ONE(log, EVENLY, 0.98, 1.02, 0.52), ONE(log, ANYWHERE, 0, 0, 0.52),
    ONE(log2, EVENLY, 0.5, 2, 0.51), ONE(log2, ANYWHERE, 0, 0, 0.51),
    ONE(log10, EVENLY, 0.5, 2, 0.51), ONE(log10, ANYWHERE, 0, 0, 0.51),
    ONE(log1p, EVENLY, -1, 1, 0.7), ONE(log1p, BY_SIZE, -1e-20, 0.9, 0.7), ONE(log1p, BY_SIZE, 1e-20, 1e20, 0.7),
    ONE(sin, EVENLY, -10, 10, 1), ONE(sin, EVENLY, -1e6, 1e6, 1), ONE(sin, ANYWHERE, 0, 0, 1), ONE(sin, BY_SIZE, -1e-9, 1, 1),
    ONE(cos, EVENLY, -10, 10, 1), ONE(cos, EVENLY, -1e6, 1e6, 1), ONE(cos, ANYWHERE, 0, 0, 1),
    ONE(tan, EVENLY, -10, 10, 1.25), ONE(tan, ANYWHERE, 0, 0, 1.25), ONE(tan, BY_SIZE, -1e-9, 1, 1.25),
    ONE(asin, EVENLY, -1, 1, 0.7), ONE(asin, BY_SIZE, -1e-9, 1, 0.7), ONE(acos, EVENLY, -1, 1, 0.7),
    ONE(atan, EVENLY, -2, 2, 0.9), ONE(atan, BY_SIZE, -1e-3, 1e3, 0.9), ONE(atan, ANYWHERE, 0, 0, 0.9),
    ONE(sinh, EVENLY, -3, 3, 0.9), ONE(sinh, EVENLY, -711, 711, 0.9), ONE(sinh, BY_SIZE, -1e-9, 1, 0.9),
    ONE(cosh, EVENLY, -3, 3, 0.9), ONE(cosh, EVENLY, -711, 711, 0.9),
    ONE(tanh, EVENLY, -3, 3, 1), ONE(tanh, BY_SIZE, -1e-9, 30, 1),
    ONE(asinh, EVENLY, -3, 3, 1.5), ONE(asinh, BY_SIZE, -1e-9, 1e9, 1.5), ONE(asinh, ANYWHERE, 0, 0, 1.5),
    ONE(acosh, EVENLY, 1, 3, 1.6), ONE(acosh, BY_SIZE, 1, 1e30, 1.6),
    ONE(atanh, EVENLY, -1, 1, 1.5), ONE(atanh, BY_SIZE, -1e-9, 1, 1.5),
    ONE(erf, EVENLY, -3, 3, 1.4), ONE(erf, EVENLY, -7, 7, 1.4), ONE(erf, BY_SIZE, -1e-9, 1, 1.4),
    ONE(erfc, EVENLY, -3, 3, 5), ONE(erfc, EVENLY, -7, 26, 5), ONE(erfc, EVENLY, 26, 27.2, 5),
    ONE(lgamma, EVENLY, 0, 3, 4.5), ONE(lgamma, EVENLY, 3, 30, 3), ONE(lgamma, BY_SIZE, 1e-10, 1e10, 4.5),
    ONE(lgamma, EVENLY, 0.9, 1.1, 4.5), ONE(lgamma, EVENLY, 1.9, 2.1, 4.5)
};

static double one_argument(const one_row *r)
{
    double x;
    if (r->spread == ANYWHERE) {
        return any();
    }
    if (r->spread == EVENLY) {
        return between(r->low, r->high);
    }
    x = exp(between(log(fabs(r->low)), log(r->high)));
    return r->low < 0 && npu_test_random(&state) & 1024 ? -x : x;
}

static void test_functions_of_one_number(void)
{
    NPU_ITEM("F50");
    for (size_t i = 0; i < COUNT(one_rows); i++) {
        const one_row *r = &one_rows[i];
        double worst = 0, at = 0;
        for (int k = 0; k < TRIES; k++) {
            double x = one_argument(r), error = units(r->own(x), r->exact((long double)x));
            at = error > worst ? x : at;
            worst = error > worst ? error : worst;
        }
        NPU_CHECK_THAT(worst <= r->limit, "%s: %g units in the last place at %.17g, limit %g", r->name, worst, at, r->limit);
    }
}

/* Below 0 terms cancel near the zeros: the error is one of the larger of 1 and the terms. */
static void test_lgamma_below_0(void)
{
    NPU_ITEM("F50");
    for (int i = 0; i < TRIES; i++) {
        double x = between(-30, 0), y = npu__math_lgamma(x), above = npu__math_lgamma(-x);
        double size = fabs(y) + fabs(above) + 1;
        NPU_CHECK_THAT(fabsl((long double)y - lgammal((long double)x)) <= (long double)(4.5 * DBL_EPSILON * size), "lgamma %.17g: %.17g", x, y);
    }
}

typedef struct two_row {
    const char *name;
    two_fn own;
    two_long_fn exact;
    double low[2], high[2]; /* both 0: any numbers */
    double limit;
} two_row;

#define TWO(name, low, high, low2, high2, limit) { #name, npu__math_##name, name##l, { low, low2 }, { high, high2 }, limit }
static const two_row two_rows[] = {
    TWO(pow, 0, 10, -20, 20, 0.6), TWO(pow, 0.9, 1.1, -6000, 6000, 0.6), TWO(pow, 0.999, 1.001, -1e5, 1e5, 0.6),
    TWO(pow, 0, 1e300, -1, 1, 0.6),
    TWO(atan2, -2, 2, -2, 2, 1), TWO(atan2, -1, 1, 0, 100, 1), TWO(atan2, 0, 0, 0, 0, 1),
    TWO(hypot, -2, 2, -2, 2, 0.52), TWO(hypot, 0, 0, 0, 0, 0.52), TWO(hypot, 0, 1, 1e6, 1e8, 0.52),
    TWO(fmod, 0, 0, 0, 0, 0), TWO(fmod, -100, 100, -3, 3, 0), TWO(fmod, -1e30, 1e30, -1, 1, 0)
};

static void test_functions_of_two_numbers(void)
{
    NPU_ITEM("F50");
    for (size_t i = 0; i < COUNT(two_rows); i++) {
        const two_row *r = &two_rows[i];
        double worst = 0, at[2] = { 0, 0 };
        bool is_anywhere = r->low[0] == r->high[0];
        for (int k = 0; k < TRIES; k++) {
            double x = is_anywhere ? any() : between(r->low[0], r->high[0]);
            double y = is_anywhere ? any() : between(r->low[1], r->high[1]);
            double error = units(r->own(x, y), r->exact((long double)x, (long double)y));
            at[0] = error > worst ? x : at[0];
            at[1] = error > worst ? y : at[1];
            worst = error > worst ? error : worst;
        }
        NPU_CHECK_THAT(worst <= r->limit, "%s: %g units in the last place at %.17g, %.17g, limit %g", r->name, worst,
                       at[0], at[1], r->limit);
    }
}

/* ---- what is exact ---------------------------------------------------------------------------------------------- */

static bool is_same(double a, double b) { return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0; }

static void check_exact(double x, double y, int n)
{
    int own = 0, libc = 0;
    double own_part = npu__math_frexp(x, &own), libc_part = frexp(x, &libc);
    float f = (float)x;
    NPU_CHECK_THAT(is_same(npu__math_rint(x), rint(x)), "rint %.17g", x);
    NPU_CHECK_THAT(is_same(npu__math_floor(x), floor(x)), "floor %.17g", x);
    NPU_CHECK_THAT(is_same(npu__math_ceil(x), ceil(x)), "ceil %.17g", x);
    NPU_CHECK_THAT(is_same(npu__math_trunc(x), trunc(x)), "trunc %.17g", x);
    NPU_CHECK_THAT(is_same(npu__math_round(x), round(x)), "round %.17g", x);
    NPU_CHECK_THAT(is_same((double)npu__math_rintf(f), (double)rintf(f)), "rintf %.17g", (double)f);
    NPU_CHECK_THAT(is_same((double)npu__math_floorf(f), (double)floorf(f)), "floorf %.17g", (double)f);
    NPU_CHECK_THAT(is_same((double)npu__math_ceilf(f), (double)ceilf(f)), "ceilf %.17g", (double)f);
    NPU_CHECK_THAT(is_same((double)npu__math_truncf(f), (double)truncf(f)), "truncf %.17g", (double)f);
    NPU_CHECK_THAT(is_same((double)npu__math_nextafterf(f, (float)y), (double)nextafterf(f, (float)y)), "nextafterf %.17g", (double)f);
    NPU_CHECK_THAT(is_same(npu__math_nextafter(x, y), nextafter(x, y)), "nextafter %.17g, %.17g", x, y);
    NPU_CHECK_THAT(is_same(npu__math_ldexp(x, n), ldexp(x, n)), "ldexp %.17g, %d", x, n);
    NPU_CHECK_THAT(is_same(npu__math_fmod(x, y), fmod(x, y)), "fmod %.17g, %.17g", x, y);
    if (fabs(y) < 1e200 && (y == 0 || fabs(y) > 1e-200) && (f == 0 || fabsf(f) > 1e-30f)) { /* its parts stay in the range */
        double sum = fma((double)f, (double)n, y);
        NPU_CHECK_THAT(is_same(npu__math_fma((double)f, (double)n, y), sum), "fma %.17g, %d, %.17g", (double)f, n, y);
    }
    NPU_CHECK_THAT(is_same(own_part, libc_part) && (own == libc || !(x - x == 0)), "frexp %.17g", x);
}

static const double special[] = {
    0.0, -0.0, 1, -1, 0.5, -0.5, 0.49999999999999994, 1.5, 2.5, -2.5, 2, -2, 3, -3, 8, 1e300, -1e300, 0x1p52, 0x1p53, -0x1p53,
    0x1.fffffffffffffp52, 0x1p-1074, -0x1p-1074, DBL_MIN, DBL_MAX, -DBL_MAX, 1 + DBL_EPSILON, 1 - DBL_EPSILON / 2, 0x1p-30,
    HUGE_VAL, -HUGE_VAL, (double)NAN
};

static void test_exact_functions(void)
{
    NPU_ITEM("F50");
    for (size_t i = 0; i < COUNT(special); i++) {
        for (size_t k = 0; k < COUNT(special); k++) {
            check_exact(special[i], special[k], (int)k * 80 - 1200);
        }
    }
    for (int i = 0; i < TRIES; i++) {
        check_exact(i % 2 ? any() : between(-10, 10), any(), (int)(npu_test_random(&state) % 4400) - 2200);
    }
}

/* ---- special values --------------------------------------------------------------------------------------------- */

typedef struct value_row {
    const char *name;
    one_fn own;
    double x, y;
} value_row;

#define VALUE(name, x, y) { #name, npu__math_##name, x, y }
#define INF HUGE_VAL
static const value_row value_rows[] = {
    VALUE(exp, -INF, 0), VALUE(exp, INF, INF), VALUE(exp, 0.0, 1), VALUE(exp, -0.0, 1), VALUE(exp, 710, INF), VALUE(exp, -746, 0),
    VALUE(exp, -745.13, 0x1p-1074), VALUE(exp2, -INF, 0), VALUE(exp2, INF, INF), VALUE(exp2, 10, 1024), VALUE(exp2, 1024, INF),
    VALUE(exp2, -1074, 0x1p-1074), VALUE(exp2, -1076, 0), VALUE(exp2, 1023, 0x1p1023),
    VALUE(expm1, -0.0, -0.0), VALUE(expm1, -INF, -1), VALUE(expm1, INF, INF), VALUE(expm1, 0x1p-1074, 0x1p-1074),
    VALUE(log, 1, 0), VALUE(log, 0.0, -INF), VALUE(log, -0.0, -INF), VALUE(log, INF, INF), VALUE(log, -1, (double)NAN),
    VALUE(log, -INF, (double)NAN), VALUE(log2, 1, 0), VALUE(log2, 8, 3), VALUE(log2, 0x1p-1074, -1074), VALUE(log2, 0.0, -INF),
    VALUE(log2, 0x1p1023, 1023), VALUE(log10, 1000, 3), VALUE(log10, 1e22, 22), VALUE(log10, 1, 0), VALUE(log10, -1, (double)NAN),
    VALUE(log10, INF, INF), VALUE(log1p, -0.0, -0.0), VALUE(log1p, -1, -INF), VALUE(log1p, -2, (double)NAN), VALUE(log1p, INF, INF),
    VALUE(log1p, 0x1p-1074, 0x1p-1074),
    VALUE(sin, -0.0, -0.0), VALUE(sin, INF, (double)NAN), VALUE(sin, 0x1p-1074, 0x1p-1074), VALUE(cos, 0.0, 1), VALUE(cos, -INF, (double)NAN),
    VALUE(tan, -0.0, -0.0), VALUE(tan, INF, (double)NAN),
    /* of all doubles the one nearest to a multiple of pi / 2, large ones, pi itself */
    VALUE(cos, 0x1.6ac5b262ca1ffp+849, -0x1.14ae72e6ba22fp-61), VALUE(tan, 0x1.6ac5b262ca1ffp+849, -0x1.d9ba9a7975636p+60),
    VALUE(sin, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), VALUE(sin, DBL_MAX, 0x1.452fc98b34e97p-8),
    VALUE(cos, DBL_MAX, -0x1.fffe62ecfab75p-1), VALUE(sin, 1e22, -0x1.b453ab76bf397p-1),
    VALUE(asin, -0.0, -0.0), VALUE(asin, 1, 0x1.921fb54442d18p+0), VALUE(asin, -1, -0x1.921fb54442d18p+0), VALUE(asin, 2, (double)NAN),
    VALUE(acos, 1, 0), VALUE(acos, -1, 0x1.921fb54442d18p+1), VALUE(acos, 0.0, 0x1.921fb54442d18p+0), VALUE(acos, -2, (double)NAN),
    VALUE(atan, -0.0, -0.0), VALUE(atan, INF, 0x1.921fb54442d18p+0), VALUE(atan, -INF, -0x1.921fb54442d18p+0),
    VALUE(atan, 0x1p-1074, 0x1p-1074), VALUE(atan, 1, 0x1.921fb54442d18p-1),
    VALUE(sinh, -0.0, -0.0), VALUE(sinh, -INF, -INF), VALUE(sinh, 711, INF), VALUE(cosh, 0.0, 1), VALUE(cosh, -INF, INF),
    VALUE(cosh, -711, INF), VALUE(tanh, -0.0, -0.0), VALUE(tanh, INF, 1), VALUE(tanh, -30, -1), VALUE(tanh, 0x1p-1074, 0x1p-1074),
    VALUE(asinh, -0.0, -0.0), VALUE(asinh, -INF, -INF), VALUE(acosh, 1, 0), VALUE(acosh, 0.5, (double)NAN), VALUE(acosh, INF, INF),
    VALUE(atanh, -0.0, -0.0), VALUE(atanh, 1, INF), VALUE(atanh, -1, -INF), VALUE(atanh, 1.5, (double)NAN),
    VALUE(erf, -0.0, -0.0), VALUE(erf, INF, 1), VALUE(erf, -7, -1), VALUE(erfc, 0.0, 1), VALUE(erfc, INF, 0), VALUE(erfc, -INF, 2),
    VALUE(erfc, 28, 0), VALUE(lgamma, 1, 0), VALUE(lgamma, 2, 0), VALUE(lgamma, 0.0, INF), VALUE(lgamma, -3, INF),
    VALUE(lgamma, INF, INF), VALUE(lgamma, -INF, INF), VALUE(lgamma, 1e308, INF),
    VALUE(exp, (double)NAN, (double)NAN), VALUE(exp2, (double)NAN, (double)NAN), VALUE(expm1, (double)NAN, (double)NAN),
    VALUE(log, (double)NAN, (double)NAN), VALUE(log2, (double)NAN, (double)NAN), VALUE(log10, (double)NAN, (double)NAN),
    VALUE(log1p, (double)NAN, (double)NAN), VALUE(sin, (double)NAN, (double)NAN), VALUE(cos, (double)NAN, (double)NAN),
    VALUE(tan, (double)NAN, (double)NAN), VALUE(asin, (double)NAN, (double)NAN), VALUE(acos, (double)NAN, (double)NAN),
    VALUE(atan, (double)NAN, (double)NAN), VALUE(sinh, (double)NAN, (double)NAN), VALUE(cosh, (double)NAN, (double)NAN),
    VALUE(tanh, (double)NAN, (double)NAN), VALUE(asinh, (double)NAN, (double)NAN), VALUE(acosh, (double)NAN, (double)NAN),
    VALUE(atanh, (double)NAN, (double)NAN), VALUE(erf, (double)NAN, (double)NAN), VALUE(erfc, (double)NAN, (double)NAN),
    VALUE(lgamma, (double)NAN, (double)NAN)
};

/* atan2 and hypot and pow agree with the C library's where results are exact, infinite, signed zeros or angles of axes. */
static void check_pair(double x, double y)
{
    double power = npu__math_pow(x, y), angle = npu__math_atan2(x, y), length = npu__math_hypot(x, y);
    NPU_CHECK_THAT(is_same(power, pow(x, y)) || units(power, (long double)pow(x, y)) <= 1, "pow %a, %a: %a", x, y, power);
    NPU_CHECK_THAT(is_same(angle, atan2(x, y)) || units(angle, (long double)atan2(x, y)) <= 1, "atan2 %a, %a: %a", x, y, angle);
    NPU_CHECK_THAT(is_same(length, hypot(x, y)) || units(length, (long double)hypot(x, y)) <= 1, "hypot %a, %a: %a", x, y, length);
    NPU_CHECK_EQ(signbit(power) != 0 && power == power, signbit(pow(x, y)) != 0 && power == power);
    NPU_CHECK_EQ(signbit(angle) != 0 && angle == angle, signbit(atan2(x, y)) != 0 && angle == angle);
}

static void test_special_values(void)
{
    NPU_ITEM("F50");
    for (size_t i = 0; i < COUNT(value_rows); i++) {
        const value_row *r = &value_rows[i];
        NPU_CHECK_THAT(is_same(r->own(r->x), r->y), "%s %a: %a, expected %a", r->name, r->x, r->own(r->x), r->y);
    }
    for (size_t i = 0; i < COUNT(special); i++) {
        for (size_t k = 0; k < COUNT(special); k++) {
            check_pair(special[i], special[k]);
        }
    }
}

/* ---- loops of a wider instruction set, whose text is another ------------------------------------------------------ */

#ifdef NPU__REF_HAS_AVX2
enum { STRIP_LEN = 512 };

typedef struct loop_row {
    const char *name;
    npu__ref_map_fn loop;
    one_fn own;
    two_fn own_of_two;
    double low, high;
} loop_row;

static const loop_row float_rows[] = {
    { "pow", npu__ref_map_pow_fast_f32, NULL, npu__math_pow, 0, 9 }, { "pow", npu__ref_map_pow_fast_f32, NULL, npu__math_pow, -3, 3 },
    { "asinh", npu__ref_map_asinh_fast_f32, npu__math_asinh, NULL, -5, 5 }, { "asinh", npu__ref_map_asinh_fast_f32, npu__math_asinh, NULL, -3e38, 3e38 },
    { "acosh", npu__ref_map_acosh_fast_f32, npu__math_acosh, NULL, 0.9, 4 }, { "acosh", npu__ref_map_acosh_fast_f32, npu__math_acosh, NULL, 1, 3e38 },
    { "atanh", npu__ref_map_atanh_fast_f32, npu__math_atanh, NULL, -1.1, 1.1 }, { "atanh", npu__ref_map_atanh_fast_f32, npu__math_atanh, NULL, -1e-6, 1e-6 },
    { "erfc", npu__ref_map_erfc_fast_f32, npu__math_erfc, NULL, -5, 9 }, { "erfc", npu__ref_map_erfc_fast_f32, npu__math_erfc, NULL, 0, 1e-3 },
    { "lgamma", npu__ref_map_lgamma_fast_f32, npu__math_lgamma, NULL, -2, 9 }, { "lgamma", npu__ref_map_lgamma_fast_f32, npu__math_lgamma, NULL, 0.999, 1.001 },
    { "lgamma", npu__ref_map_lgamma_fast_f32, npu__math_lgamma, NULL, 1e3, 1e30 }, { "digamma", npu__ref_map_digamma_fast_f32, npu__ref_digamma, NULL, 0, 20 },
    { "digamma", npu__ref_map_digamma_fast_f32, npu__ref_digamma, NULL, 1.46, 1.463 }
};

static void test_loops_of_floats(void)
{
    NPU_ITEM("F50");
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        NPU_SKIP("this processor has no AVX2");
        return;
    }
    for (size_t i = 0; i < COUNT(float_rows); i++) {
        const loop_row *r = &float_rows[i];
        float x[STRIP_LEN], y[STRIP_LEN], z[STRIP_LEN];
        const void *operands[4] = { x, y, x, x };
        for (int k = 0; k < STRIP_LEN; k++) {
            x[k] = k < (int)COUNT(special) ? (float)special[k] : (float)between(r->low, r->high);
            y[k] = (float)between(-9, 9);
        }
        r->loop(z, operands, STRIP_LEN);
        for (int k = 0; k < STRIP_LEN; k++) {
            double exact = r->own ? r->own((double)x[k]) : r->own_of_two((double)x[k], (double)y[k]);
            float nearest = (float)exact, unit = nextafterf(fabsf(nearest), INFINITY) - fabsf(nearest);
            bool ok = z[k] == nearest || (z[k] != z[k] && exact != exact) || fabs((double)z[k] - exact) <= 2 * (double)unit;
            NPU_CHECK_THAT(ok, "%s %.9g, %.9g: %.9g, expected %.9g", r->name, (double)x[k], (double)y[k], (double)z[k], exact);
        }
    }
}

static void test_loops_of_doubles(void)
{
    NPU_ITEM("F50");
    double x[STRIP_LEN], y[STRIP_LEN], z[STRIP_LEN], worst = 0;
    const void *operands[4] = { x, y, x, x };
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        NPU_SKIP("this processor has no AVX2");
        return;
    }
    for (int round = 0; round < 100; round++) {
        for (int k = 0; k < STRIP_LEN; k++) {
            x[k] = k < (int)COUNT(special) ? special[k] : round % 2 ? between(0, 10) : between(0.9, 1.1);
            y[k] = k < (int)COUNT(special) ? special[round % COUNT(special)] : round % 2 ? between(-150, 150) : between(-6000, 6000);
        }
        npu__ref_map_pow_fast_f64(z, operands, STRIP_LEN);
        for (int k = 0; k < STRIP_LEN; k++) {
            double error = units(z[k], (long double)npu__math_pow(x[k], y[k]));
            worst = error > worst ? error : worst;
        }
        npu__ref_map_erf_fast_f64(z, operands, STRIP_LEN);
        for (int k = 0; k < STRIP_LEN; k++) {
            double error = units(z[k], (long double)npu__math_erf(x[k]));
            worst = error > worst ? error : worst;
        }
    }
    NPU_CHECK_THAT(worst <= 3, "%g units in the last place", worst);
}
#endif

int main(void)
{
    NPU_RUN(test_functions_of_one_number);
    NPU_RUN(test_lgamma_below_0);
    NPU_RUN(test_functions_of_two_numbers);
    NPU_RUN(test_exact_functions);
    NPU_RUN(test_special_values);
#ifdef NPU__REF_HAS_AVX2
    NPU_RUN(test_loops_of_floats);
    NPU_RUN(test_loops_of_doubles);
#endif
    return npu_test_done();
}
