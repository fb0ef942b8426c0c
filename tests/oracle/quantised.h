/* quantised.h - integer ops as their definitions say, one element after the other: factors and roundings by TFLite's
   published formulas, convolutions by where each input element goes. Written apart from the kernels. */
#ifndef NPU_ORACLE_QUANTISED_H
#define NPU_ORACLE_QUANTISED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* QuantizeMultiplier of TFLite. */
static inline void oracle_multiplier(double real, int32_t *multiplier, int *shift)
{
    double q = frexp(real, shift);
    int64_t fixed = (int64_t)round(q * (double)(1LL << 31));
    if (fixed == (1LL << 31)) {
        fixed /= 2;
        ++*shift;
    }
    if (*shift < -31) {
        *shift = 0;
        fixed = 0;
    }
    if (*shift > 30) {
        *shift = 30;
        fixed = (1LL << 31) - 1;
    }
    *multiplier = (int32_t)fixed;
}

/* gemmlowp's SaturatingRoundingDoublingHighMul. */
static inline int32_t oracle_high_mul(int32_t a, int32_t b)
{
    bool overflow = a == b && a == INT32_MIN;
    int64_t ab = (int64_t)a * b, nudge = ab >= 0 ? 1 << 30 : 1 - (1 << 30);
    return overflow ? INT32_MAX : (int32_t)((ab + nudge) / (1LL << 31));
}

/* gemmlowp's RoundingDivideByPOT. */
static inline int32_t oracle_divide(int32_t x, int exponent)
{
    int32_t mask = (int32_t)((1LL << exponent) - 1), remainder = x & mask;
    int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    int64_t floor_of = x < 0 ? -((-(int64_t)x + mask) >> exponent) : (int64_t)x >> exponent;
    return (int32_t)(floor_of + (remainder > threshold ? 1 : 0));
}

/* x times the factor; twice: MultiplyByQuantizedMultiplier, else the nearest number, of two the even one. */
static inline int64_t oracle_scale(int32_t x, int32_t multiplier, int shift, bool twice)
{
    if (twice) {
        int left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
        return oracle_divide(oracle_high_mul((int32_t)((uint32_t)x * (1u << left)), multiplier), right);
    }
    int64_t product = (int64_t)x * multiplier, unit = (int64_t)1 << (31 - shift);
    int64_t low = product / unit - (product % unit < 0), over = product - low * unit;
    return over > unit - over || (over == unit - over && low % 2) ? low + 1 : low;
}

static inline int oracle_clamp(int64_t y, int zero, int low, int high)
{
    y += zero;
    return (int)(y < low ? low : y > high ? high : y);
}

static inline int oracle_requantise(int64_t acc, double real, int zero, int low, int high, bool twice)
{
    int32_t multiplier;
    int shift;
    oracle_multiplier(real, &multiplier, &shift);
    acc = acc > INT32_MAX ? INT32_MAX : acc < INT32_MIN ? INT32_MIN : acc;
    return oracle_clamp(oracle_scale((int32_t)acc, multiplier, shift, twice), zero, low, high);
}

/* AddElementwise and SubElementwise of TFLite for `twice`, else the real sum or difference in factors of 31 bits. */
static inline int oracle_add(int a, int b, double sa, double sb, double sy, int zero, int low, int high, bool twice, bool is_less)
{
    int32_t ma, mb, my;
    int ea, eb, ey;
    if (twice) {
        double most = 2 * fmax(sa, sb);
        oracle_multiplier(sa / most, &ma, &ea);
        oracle_multiplier(sb / most, &mb, &eb);
        oracle_multiplier(most / ((1 << 20) * sy), &my, &ey);
        int64_t x = oracle_scale(a * (1 << 20), ma, ea, true), y = oracle_scale(b * (1 << 20), mb, eb, true);
        return oracle_clamp(oracle_scale((int32_t)(is_less ? x - y : x + y), my, ey, true), zero, low, high);
    }
    double real = is_less ? a * (sa / sy) - b * (sb / sy) : a * (sa / sy) + b * (sb / sy);
    return oracle_clamp((int64_t)nearbyint(fmax(fmin(real, 1e6), -1e6)), zero, low, high);
}

/* A convolution in three dims: x [images, groups in, n], w [groups out, in, k], or [groups in, out, k] where transposed. */
typedef struct oracle_conv {
    int images, groups, in, out, n[3], k[3], m[3], stride[3], pad[3], dilation[3];
    bool transposed;
} oracle_conv;

/* The output index that input index i reaches by tap k of dim d; -1 = none. */
static inline int oracle_reach(const oracle_conv *c, int d, int i, int k)
{
    int o = c->transposed ? i * c->stride[d] - c->pad[d] + k * c->dilation[d] : i + c->pad[d] - k * c->dilation[d];
    if (!c->transposed) {
        o = o % c->stride[d] ? -1 : o / c->stride[d];
    }
    return o >= 0 && o < c->m[d] ? o : -1;
}

/* Adds what element (i0, i1, i2) of channel `ci` brings to the sums of channel `co` of the same group. */
static inline void oracle_spread(const oracle_conv *c, int x, const int8_t *w, const int *i, int64_t *sums)
{
    for (int k = 0; k < c->k[0] * c->k[1] * c->k[2]; k++) {
        int o0 = oracle_reach(c, 0, i[0], k / c->k[2] / c->k[1]), o1 = oracle_reach(c, 1, i[1], k / c->k[2] % c->k[1]);
        int o2 = oracle_reach(c, 2, i[2], k % c->k[2]);
        if (o0 >= 0 && o1 >= 0 && o2 >= 0) {
            sums[(o0 * c->m[1] + o1) * c->m[2] + o2] += (int64_t)x * w[k];
        }
    }
}

/* sums [images, groups out, m], at first the bias; x are bytes less their zero. */
static inline void oracle_convolve(const oracle_conv *c, const int *x, const int8_t *w, int64_t *sums)
{
    int n = c->n[0] * c->n[1] * c->n[2], m = c->m[0] * c->m[1] * c->m[2], taps = c->k[0] * c->k[1] * c->k[2];
    for (int image = 0; image < c->images; image++) {
        for (int co = 0; co < c->groups * c->out; co++) {
            for (int ci = 0; ci < c->in; ci++) {
                int g = co / c->out, at = c->transposed ? (g * c->in + ci) * c->out + co % c->out : co * c->in + ci;
                const int *plane = x + ((image * c->groups + g) * c->in + ci) * n;
                for (int e = 0; e < n; e++) {
                    int i[3] = { e / c->n[2] / c->n[1], e / c->n[2] % c->n[1], e % c->n[2] };
                    oracle_spread(c, plane[e], w + at * taps, i, sums + (image * c->groups * c->out + co) * m);
                }
            }
        }
    }
}

#endif
