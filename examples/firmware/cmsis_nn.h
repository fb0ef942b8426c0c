/* Planned models over CMSIS-NN: a table of kernels whose products of bytes, sums and products are arm_* calls, where a
   step rounds twice ('double'), as CMSIS-NN does; the bits are those of the library's kernels. Everything else goes to
   those, which also check all words when a file is opened: nothing here runs before.

       static const npu_planned_kernel kernels[] = { CMSIS_NN_KERNELS MODEL_KERNELS(NPU_PLANNED_KERNEL) };

   The first row of a number wins. Images are [N, C, H, W] here and [N, H, W, C] there: so convolutions are products
   with columns (conv_columns_i8, of files written with `scratch`), and pools, softmax and depthwise ones, which have
   nothing to gain, stay. CMSIS-NN is not part of this library: firmware.sh builds with it where CMSIS_NN names its
   folder, with arm_nn_mat_mult_nt_t_s8.c, arm_elementwise_add_s8.c and arm_elementwise_mul_s8.c of its Source. */
#ifndef CMSIS_NN_H
#define CMSIS_NN_H
#include "npu_ir.h"
#include "npu_ir_backend_ref.h"
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"

enum { CMSIS_CHANNELS = 16 }; /* at a time: multipliers and shifts stand apart there, as pairs in the file */

typedef struct cmsis_factors { int32_t multipliers[CMSIS_CHANNELS], shifts[CMSIS_CHANNELS]; } cmsis_factors;

static uint32_t cmsis_take_factors(cmsis_factors *f, const int32_t *pairs, uint32_t left)
{
    uint32_t n = left < CMSIS_CHANNELS ? left : CMSIS_CHANNELS;
    for (uint32_t i = 0; i < n; i++) {
        f->multipliers[i] = pairs[2 * i];
        f->shifts[i] = pairs[2 * i + 1];
    }
    return n;
}

/* Bytes of `n` weights for each channel, its bias and its factor. */
typedef struct cmsis_weights {
    const int8_t *w;
    const int32_t *b, *factors; /* b NULL = 0 */
    uint32_t channels, n;
} cmsis_weights;

/* One row of n bytes, or two, times the weights of all channels: channel c of row k goes to y + c channel + k row. */
static void cmsis_multiply(const cmsis_weights *p, const npu_planned_byte_words *q, int32_t x_zero, const int8_t *x,
                           uint32_t rows, int8_t *y, uint32_t channel, uint32_t row)
{
    int8_t results[2 * CMSIS_CHANNELS];
    cmsis_factors f;
    for (uint32_t c = 0, n; c < p->channels; c += n) {
        n = cmsis_take_factors(&f, p->factors + 2 * c, p->channels - c);
        arm_nn_mat_mult_nt_t_s8(x, p->w + c * p->n, p->b ? p->b + c : NULL, results, f.multipliers, f.shifts,
                                (int32_t)rows, (int32_t)n, (int32_t)p->n, -x_zero, q->zero, q->low, q->high,
                                (int32_t)n, (int32_t)p->n);
        for (uint32_t k = 0; k < n; k++, y += channel) {
            y[0] = results[k];
            y[(rows - 1) * row] = results[(rows - 1) * n + k];
        }
    }
}

static npu_status cmsis_linear_i8(const npu_planned *m, const uint32_t *words, uint32_t num_words, uint32_t *work)
{
    const npu_planned_linear_i8_words *s = (const npu_planned_linear_i8_words *)(const void *)words;
    if (work || !s->q.is_twice) {
        return npu_planned_linear_i8(m, words, num_words, work);
    }
    int8_t *y = (int8_t *)npu_planned_write(m, s->y, s->rows * s->n, 1);
    const int8_t *x = (const int8_t *)npu_planned_read(m, s->x, s->rows * s->k, 1);
    cmsis_weights p = { (const int8_t *)npu_planned_read(m, s->w, s->n * s->k, 1), NULL,
                        (const int32_t *)npu_planned_constant(m, s->factors, 2 * s->n, 4), s->n, s->k };
    p.b = s->b == NPU_PLANNED_NONE ? NULL : (const int32_t *)npu_planned_read(m, s->b, s->n, 4);
    for (uint32_t i = 0; i < s->rows; i += 2) {
        cmsis_multiply(&p, &s->q, s->x_zero, x + i * s->k, s->rows - i < 2 ? 1 : 2, y + i * s->n, 1, s->n);
    }
    return NPU_OK;
}

/* The elements that a result's window covers, one channel after another; the zero where it is padded. */
static void cmsis_column(const npu_planned_conv_i8_words *s, const int8_t *x, uint32_t oy, uint32_t ox, int8_t *to)
{
    const npu_planned_window_words *d = &s->c.window;
    uint32_t top = oy * d->stride[0] - d->pad[0], left = ox * d->stride[1] - d->pad[1]; /* wrap before the first ones */
    for (uint32_t c = 0; c < s->c.in_channels; c++, x += d->in[0] * d->in[1]) {
        for (uint32_t i = 0, row = top; i < d->kernel[0]; i++, row += d->dilation[0]) {
            for (uint32_t k = 0, column = left; k < d->kernel[1]; k++, column += d->dilation[1]) {
                bool is_there = row < d->in[0] && column < d->in[1];
                *to++ = is_there ? x[row * d->in[1] + column] : (int8_t)s->x_zero;
            }
        }
    }
}

/* Two results of all channels of a group at a time; the bias of the words is already that of stored bytes. */
static void cmsis_conv_group(const npu_planned_conv_i8_words *s, const cmsis_weights *p, int8_t *y, const int8_t *x,
                             int8_t *columns)
{
    uint32_t width = s->c.window.out[1], area = s->c.window.out[0] * width;
    for (uint32_t o = 0, oy = 0, ox = 0, both; o < area; o += both) {
        both = area - o < 2 ? 1 : 2;
        for (uint32_t k = 0; k < both; k++) {
            cmsis_column(s, x, oy, ox, columns + k * p->n);
            ox++;
            oy += ox == width;
            ox = ox == width ? 0 : ox;
        }
        cmsis_multiply(p, &s->q, 0, columns, both, y + o, area, 1);
    }
}

static npu_status cmsis_conv_columns_i8(const npu_planned *m, const uint32_t *words, uint32_t num_words, uint32_t *work)
{
    const npu_planned_conv_i8_words *s = (const npu_planned_conv_i8_words *)(const void *)words;
    const npu_planned_conv_words *c = &s->c;
    const npu_planned_window_words *d = &c->window;
    if (work || !s->q.is_twice || s->b == NPU_PLANNED_NONE) {
        return npu_planned_conv_columns_i8(m, words, num_words, work);
    }
    uint32_t y_group = c->out_channels * d->out[0] * d->out[1], x_group = c->in_channels * d->in[0] * d->in[1];
    uint32_t depth = c->in_channels * d->kernel[0] * d->kernel[1], channels = c->groups * c->out_channels;
    uint32_t groups = c->images * c->groups;
    int8_t *y = (int8_t *)npu_planned_write(m, s->y, groups * y_group, 1);
    int8_t *columns = (int8_t *)npu_planned_write(m, s->scratch, 2 * depth, 1);
    const int8_t *x = (const int8_t *)npu_planned_read(m, s->x, groups * x_group, 1);
    const cmsis_weights all = { (const int8_t *)npu_planned_read(m, s->w, channels * depth, 1),
                                (const int32_t *)npu_planned_read(m, s->b, channels, 4),
                                (const int32_t *)npu_planned_constant(m, s->factors, 2 * channels, 4),
                                c->out_channels, depth };
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t first = i % c->groups * c->out_channels;
        const cmsis_weights p = { all.w + first * depth, all.b + first, all.factors + 2 * first, all.channels, depth };
        cmsis_conv_group(s, &p, y + i * y_group, x + i * x_group, columns);
    }
    return NPU_OK;
}

/* Operands of one shape lie as one row. */
static bool cmsis_is_row(const npu_planned_pair_words *p)
{
    return p->dims[0] * p->dims[1] * p->dims[2] == 1 && p->a_steps[3] == 1 && p->b_steps[3] == 1;
}

static npu_status cmsis_add_i8(const npu_planned *m, const uint32_t *words, uint32_t num_words, uint32_t *work)
{
    const npu_planned_add_i8_words *s = (const npu_planned_add_i8_words *)(const void *)words;
    uint32_t n = s->pair.dims[3];
    if (work || !s->q.is_twice || !cmsis_is_row(&s->pair) || s->b_factor[0] < 0) {
        return npu_planned_add_i8(m, words, num_words, work);
    }
    arm_elementwise_add_s8((const int8_t *)npu_planned_read(m, s->pair.a, n, 1),
                           (const int8_t *)npu_planned_read(m, s->pair.b, n, 1), -s->a_zero, s->a_factor[0],
                           s->a_factor[1], -s->b_zero, s->b_factor[0], s->b_factor[1], 20,
                           (int8_t *)npu_planned_write(m, s->pair.y, n, 1), s->q.zero, s->factor[0], s->factor[1],
                           s->q.low, s->q.high, (int32_t)n);
    return NPU_OK;
}

static npu_status cmsis_mul_i8(const npu_planned *m, const uint32_t *words, uint32_t num_words, uint32_t *work)
{
    const npu_planned_add_i8_words *s = (const npu_planned_add_i8_words *)(const void *)words;
    uint32_t n = s->pair.dims[3];
    if (work || !s->q.is_twice || !cmsis_is_row(&s->pair)) {
        return npu_planned_mul_i8(m, words, num_words, work);
    }
    arm_elementwise_mul_s8((const int8_t *)npu_planned_read(m, s->pair.a, n, 1),
                           (const int8_t *)npu_planned_read(m, s->pair.b, n, 1), -s->a_zero, -s->b_zero,
                           (int8_t *)npu_planned_write(m, s->pair.y, n, 1), s->q.zero, s->factor[0], s->factor[1],
                           s->q.low, s->q.high, (int32_t)n);
    return NPU_OK;
}

#define CMSIS_NN_KERNELS                                                                                      \
    { NPU_PLANNED_linear_i8, cmsis_linear_i8 }, { NPU_PLANNED_conv_columns_i8, cmsis_conv_columns_i8 },       \
    { NPU_PLANNED_add_i8, cmsis_add_i8 }, { NPU_PLANNED_mul_i8, cmsis_mul_i8 },
#endif
