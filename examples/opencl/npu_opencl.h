/* npu_opencl.h - a backend for any OpenCL 1.2 device: a real driver below the interface of npu_ir.h, in the
   shape that a backend of your own will have.

       #define NPU_OPENCL_IMPLEMENTATION
       #include "npu_ir.h"
       #include "opencl/npu_opencl.h"

   before you include it in one C file; link with -lOpenCL. Debian: ocl-icd-opencl-dev, and a device's driver
   (pocl-opencl-icd makes the CPU one). One op is one row of npu_opencl__rows and one kernel of
   npu_opencl__source; what is no row, and what a row's function refuses, runs elsewhere, and the plan says
   why. Tensors are f32; a queue runs everything in order.

   CONTENTS  kernels - ops - support - memory - programs - devices
*/
#ifndef NPU_OPENCL_H
#define NPU_OPENCL_H

#include "npu_ir.h"

/* Opens the first device whose name has `name` in it (NULL = any), GPUs before others. Errors: NOT_FOUND (no
   such device), BACKEND (the driver failed, with its words), NO_MEMORY. The backend must outlive the programs
   that use it, and may be used by several threads. */
npu_status npu_opencl_create(npu_backend **out, const char *name, npu_diag *diag);
void npu_opencl_destroy(npu_backend *backend); /* NULL is fine */
/* The device's own name. Valid as long as the backend. */
const char *npu_opencl_device(const npu_backend *backend);

#endif

#ifdef NPU_OPENCL_IMPLEMENTATION

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ----

   The first argument holds the numbers of the op, written by its row's function; the others are a pointer and
   an offset in elements per operand and result. An absent operand is a null pointer. */

#define NPU_OPENCL_NUMBERS 32
typedef struct npu_opencl__numbers {
    cl_int n[NPU_OPENCL_NUMBERS];
    cl_float f[2];
} npu_opencl__numbers;

#define NPU_OPENCL_LINE(...) #__VA_ARGS__ "\n"
static const char *const npu_opencl__source[] = {
    "#define IN(p) __global const float *p, ulong p##_at\n"
    "#define OUT(p) __global float *p, ulong p##_at\n"
    "#define AT(p, i) p[p##_at + (i)]\n"
    "#define UNARY(name, value) __kernel void name(numbers s, IN(in), OUT(out)) \\\n"
    "    { float x = AT(in, get_global_id(0)); AT(out, get_global_id(0)) = value; }\n"
    "#define BINARY(name, value) __kernel void name(numbers s, IN(in), IN(other), OUT(out)) \\\n"
    "    { size_t a, b; operands(&s, &a, &b); float x = AT(in, a), y = AT(other, b); \\\n"
    "      AT(out, get_global_id(0)) = value; }\n",
    NPU_OPENCL_LINE(typedef struct { int n[32]; float f[2]; } numbers;)
    NPU_OPENCL_LINE(
        /* n: rank, then from 1, 9 and 17 on dims of the result, strides of both operands (0 = repeated) */
        void operands(const numbers *s, size_t *a, size_t *b) {
            size_t rest = get_global_id(0);
            *a = *b = 0;
            for (int d = s->n[0]; d > 0; d--) {
                *a += rest % s->n[d] * s->n[8 + d];
                *b += rest % s->n[d] * s->n[16 + d];
                rest /= s->n[d];
            }
        })
    "UNARY(copy, x)\n"
    "UNARY(relu, isnan(x) ? x : max(x, 0.0f))\n"
    "UNARY(sigmoid, 1.0f / (1.0f + exp(-x)))\n"
    "UNARY(silu, x / (1.0f + exp(-x)))\n"
    "UNARY(hyperbolic_tangent, tanh(x))\n"
    "UNARY(gelu, 0.5f * x * (1.0f + erf(x * 0.70710678f)))\n"
    "UNARY(gelu_tanh, 0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x))))\n"
    "BINARY(add, x + s.f[0] * y)\n"
    "BINARY(subtract, x - s.f[0] * y)\n"
    "BINARY(multiply, x * y)\n"
    "BINARY(divide, x / y)\n",
    NPU_OPENCL_LINE(
        /* n: rows, inner, columns, stride of w along inner, along columns; an item per element of the result */
        __kernel void product(numbers s, IN(in), IN(w), IN(bias), OUT(out)) {
            size_t column = get_global_id(0), row = get_global_id(1), batch = get_global_id(2);
            size_t first = (batch * s.n[0] + row) * s.n[1], other = batch * s.n[1] * s.n[2] + column * s.n[4];
            float sum = 0.0f;
            for (int k = 0; k < s.n[1]; k++) {
                sum += AT(in, first + k) * AT(w, other + (size_t)k * s.n[3]);
            }
            AT(out, (batch * s.n[0] + row) * s.n[2] + column) = sum + (bias ? AT(bias, column) : 0.0f);
        })
    NPU_OPENCL_LINE(
        /* n: as npu_opencl__window writes them, then channels of an input group, channels of a result group */
        __kernel void convolution(numbers s, IN(in), IN(w), IN(bias), OUT(out)) {
            int ox = get_global_id(0) % s.n[3];
            int oy = get_global_id(0) / s.n[3];
            size_t o = get_global_id(1), n = get_global_id(2), groups = get_global_size(1) / s.n[13];
            size_t channel = (n * groups + o / s.n[13]) * s.n[12];
            float sum = bias ? AT(bias, o) : 0.0f;
            for (int c = 0; c < s.n[12]; c++) {
                for (int ky = 0; ky < s.n[4]; ky++) {
                    int y = oy * s.n[6] - s.n[8] + ky * s.n[10];
                    for (int kx = 0; kx < s.n[5]; kx++) {
                        int x = ox * s.n[7] - s.n[9] + kx * s.n[11];
                        if (y >= 0 && y < s.n[0] && x >= 0 && x < s.n[1]) {
                            sum += AT(in, ((channel + c) * s.n[0] + y) * s.n[1] + x)
                                   * AT(w, ((o * s.n[12] + c) * s.n[4] + ky) * s.n[5] + kx);
                        }
                    }
                }
            }
            AT(out, (n * get_global_size(1) + o) * get_global_size(0) + get_global_id(0)) = sum;
        })
    NPU_OPENCL_LINE(
        __kernel void max_pool(numbers s, IN(in), OUT(out)) {
            int ox = get_global_id(0) % s.n[3];
            int oy = get_global_id(0) / s.n[3];
            float best = -INFINITY;
            for (int ky = 0; ky < s.n[4]; ky++) {
                int y = oy * s.n[6] - s.n[8] + ky * s.n[10];
                for (int kx = 0; kx < s.n[5]; kx++) {
                    int x = ox * s.n[7] - s.n[9] + kx * s.n[11];
                    if (y >= 0 && y < s.n[0] && x >= 0 && x < s.n[1]) {
                        float value = AT(in, (get_global_id(1) * s.n[0] + y) * s.n[1] + x);
                        best = value > best || isnan(value) ? value : best;
                    }
                }
            }
            AT(out, get_global_id(1) * get_global_size(0) + get_global_id(0)) = best;
        })
    NPU_OPENCL_LINE(
        /* f: eps */
        __kernel void batch_norm(numbers s, IN(in), IN(w), IN(bias), IN(mean), IN(variance), OUT(out)) {
            size_t c = get_global_id(1);
            size_t i = (get_global_id(2) * get_global_size(1) + c) * get_global_size(0) + get_global_id(0);
            float scale = (w ? AT(w, c) : 1.0f) / sqrt(AT(variance, c) + s.f[0]);
            AT(out, i) = (AT(in, i) - AT(mean, c)) * scale + (bias ? AT(bias, c) : 0.0f);
        }),
    NPU_OPENCL_LINE(
        /* n: columns; f: eps; an item per row */
        __kernel void layer_norm(numbers s, IN(in), IN(w), IN(bias), OUT(out)) {
            size_t first = get_global_id(0) * s.n[0];
            float mean = 0.0f, variance = 0.0f;
            for (int i = 0; i < s.n[0]; i++) {
                mean += AT(in, first + i) / s.n[0];
            }
            for (int i = 0; i < s.n[0]; i++) {
                float x = AT(in, first + i) - mean;
                variance += x * x / s.n[0];
            }
            for (int i = 0; i < s.n[0]; i++) {
                float x = (AT(in, first + i) - mean) / sqrt(variance + s.f[0]);
                AT(out, first + i) = x * (w ? AT(w, i) : 1.0f) + (bias ? AT(bias, i) : 0.0f);
            }
        })
    NPU_OPENCL_LINE(
        /* n: columns; an item per row */
        __kernel void softmax(numbers s, IN(in), OUT(out)) {
            size_t first = get_global_id(0) * s.n[0];
            float largest = AT(in, first), sum = 0.0f;
            for (int i = 1; i < s.n[0]; i++) {
                largest = max(largest, AT(in, first + i));
            }
            for (int i = 0; i < s.n[0]; i++) {
                sum += exp(AT(in, first + i) - largest);
            }
            for (int i = 0; i < s.n[0]; i++) {
                AT(out, first + i) = exp(AT(in, first + i) - largest) / sum;
            }
        })
};

/* ---- ops ----

   A row's function writes what its kernel needs to know, and returns NULL, or words: why the device does not
   take this op. */

enum { NPU_OPENCL_OPERANDS = 6 }; /* operands and results of one op */
typedef struct npu_opencl__op {
    const char *kernel;
    npu_opencl__numbers numbers;
    size_t items[3];
} npu_opencl__op;

static cl_int npu_opencl__product(const int64_t *dims, uint32_t from, uint32_t to)
{
    int64_t product = 1;
    for (uint32_t d = from; d < to; d++) {
        product *= dims[d];
    }
    return (cl_int)product; /* supports refuses tensors of more elements */
}

static cl_int npu_opencl__len(const npu_spec *spec) { return npu_opencl__product(spec->dims, 0, spec->rank); }

static const char *npu_opencl__unary(const npu_op_info *op, npu_opencl__op *o)
{
    o->items[0] = (size_t)npu_opencl__len(op->out[0]);
    return NULL;
}

static const char *npu_opencl__gelu(const npu_op_info *op, npu_opencl__op *o)
{
    o->kernel = npu_op_str_is(op, "approximate", "tanh") ? "gelu_tanh" : "gelu";
    return npu_opencl__unary(op, o);
}

static const char *npu_opencl__binary(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *out = op->out[0];
    cl_int *n = o->numbers.n;
    n[0] = out->rank;
    o->numbers.f[0] = (cl_float)npu_op_float(op, "alpha", 1);
    o->items[0] = (size_t)npu_opencl__len(out);
    for (uint32_t d = 0; d < out->rank; d++) {
        n[1 + d] = (cl_int)out->dims[d];
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t before = out->rank - (uint32_t)op->in[k]->rank;
            bool repeated = d < before || op->in[k]->dims[d - before] == 1;
            n[9 + 8 * k + d] = repeated ? 0 : npu_opencl__product(op->in[k]->dims, d - before + 1, op->in[k]->rank);
        }
    }
    return NULL;
}

/* n: rows and columns of the input, of the result, of the kernel; stride, padding, dilation, rows first */
static void npu_opencl__window(const npu_op_info *op, const int64_t *kernel, npu_opencl__op *o)
{
    static const char *const names[] = { "stride", "padding", "dilation" };
    const npu_spec *in = op->in[0], *out = op->out[0];
    for (int d = 0; d < 2; d++) {
        int64_t pairs[3][2] = { { kernel[0], kernel[1] }, { 0, 0 }, { 1, 1 } }; /* no stride: that of the window */
        o->numbers.n[d] = (cl_int)in->dims[in->rank - 2 + d];
        o->numbers.n[2 + d] = (cl_int)out->dims[out->rank - 2 + d];
        o->numbers.n[4 + d] = (cl_int)kernel[d];
        for (int k = 0; k < 3; k++) {
            npu_op_ints(op, names[k], pairs[k], 2);
            o->numbers.n[6 + 2 * k + d] = (cl_int)pairs[k][d];
        }
    }
    o->items[0] = (size_t)npu_opencl__product(out->dims, out->rank - 2u, out->rank);
}

static const char *npu_opencl__convolution(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *in = op->in[0], *weight = op->in[1];
    if (in->rank != 4) {
        return "an input without a batch";
    }
    npu_opencl__window(op, weight->dims + 2, o);
    o->numbers.n[12] = (cl_int)weight->dims[1];
    o->numbers.n[13] = (cl_int)(weight->dims[0] / npu_op_int(op, "groups", 1));
    o->items[1] = (size_t)weight->dims[0];
    o->items[2] = (size_t)in->dims[0];
    return NULL;
}

static const char *npu_opencl__max_pool(const npu_op_info *op, npu_opencl__op *o)
{
    int64_t kernel[2];
    npu_op_ints(op, "kernel_size", kernel, 2);
    npu_opencl__window(op, kernel, o);
    o->items[1] = (size_t)npu_opencl__product(op->out[0]->dims, 0, op->out[0]->rank - 2u);
    return NULL;
}

static const char *npu_opencl__products(npu_opencl__op *o, cl_int batch, cl_int rows, cl_int inner, cl_int columns)
{
    cl_int *n = o->numbers.n;
    n[0] = rows, n[1] = inner, n[2] = columns, n[3] = columns, n[4] = 1;
    o->items[0] = (size_t)columns, o->items[1] = (size_t)rows, o->items[2] = (size_t)batch;
    return NULL;
}

static const char *npu_opencl__linear(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *in = op->in[0], *weight = op->in[1];
    if (weight->rank != 2) {
        return "a weight of one row";
    }
    cl_int inner = (cl_int)weight->dims[1];
    npu_opencl__products(o, 1, npu_opencl__product(in->dims, 0, in->rank - 1u), inner, (cl_int)weight->dims[0]);
    o->numbers.n[3] = 1, o->numbers.n[4] = inner;
    return NULL;
}

static const char *npu_opencl__matmul(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *a = op->in[0], *b = op->in[1];
    cl_int batch = a->rank == 3 ? (cl_int)a->dims[0] : 1;
    return npu_opencl__products(o, batch, (cl_int)a->dims[a->rank - 2], (cl_int)a->dims[a->rank - 1],
                                (cl_int)b->dims[b->rank - 1]);
}

static const char *npu_opencl__batch_norm(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *in = op->in[0];
    if (npu_op_int(op, "training", 0) || !op->in[3] || !op->in[4]) {
        return "statistics of the batch";
    }
    o->numbers.f[0] = (cl_float)npu_op_float(op, "eps", 1e-5);
    o->items[0] = (size_t)npu_opencl__product(in->dims, 2, in->rank);
    o->items[1] = (size_t)in->dims[1];
    o->items[2] = (size_t)in->dims[0];
    return NULL;
}

static const char *npu_opencl__layer_norm(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *in = op->in[0];
    uint32_t outer = in->rank - npu_op_list_len(op, "normalized_shape");
    o->numbers.n[0] = npu_opencl__product(in->dims, outer, in->rank);
    o->numbers.f[0] = (cl_float)npu_op_float(op, "eps", 1e-5);
    o->items[0] = (size_t)npu_opencl__product(in->dims, 0, outer);
    return NULL;
}

static const char *npu_opencl__softmax(const npu_op_info *op, npu_opencl__op *o)
{
    const npu_spec *in = op->in[0];
    int64_t dim = npu_op_int(op, "dim", -1);
    if (in->rank == 0 || (dim != -1 && dim != in->rank - 1)) {
        return "a dim that is not the last";
    }
    o->numbers.n[0] = (cl_int)in->dims[in->rank - 1];
    o->items[0] = (size_t)npu_opencl__product(in->dims, 0, in->rank - 1u);
    return NULL;
}

typedef struct npu_opencl__row {
    npu_kind kind;
    uint32_t num_in; /* operands that the kernel has; an op may have fewer */
    const char *kernel;
    const char *(*init)(const npu_op_info *op, npu_opencl__op *o);
} npu_opencl__row;

static const npu_opencl__row npu_opencl__rows[] = {
    { NPU_ATEN_RELU, 1, "relu", npu_opencl__unary },
    { NPU_ATEN_SIGMOID, 1, "sigmoid", npu_opencl__unary },
    { NPU_ATEN_SILU, 1, "silu", npu_opencl__unary },
    { NPU_ATEN_TANH, 1, "hyperbolic_tangent", npu_opencl__unary },
    { NPU_ATEN_GELU, 1, "gelu", npu_opencl__gelu },
    { NPU_ATEN_ADD, 2, "add", npu_opencl__binary },
    { NPU_ATEN_SUB, 2, "subtract", npu_opencl__binary },
    { NPU_ATEN_MUL, 2, "multiply", npu_opencl__binary },
    { NPU_ATEN_DIV, 2, "divide", npu_opencl__binary },
    { NPU_ATEN_CONV2D, 3, "convolution", npu_opencl__convolution },
    { NPU_ATEN_MAX_POOL2D, 1, "max_pool", npu_opencl__max_pool },
    { NPU_ATEN_LINEAR, 3, "product", npu_opencl__linear },
    { NPU_ATEN_MM, 3, "product", npu_opencl__matmul },
    { NPU_ATEN_BMM, 3, "product", npu_opencl__matmul },
    { NPU_ATEN_BATCH_NORM, 5, "batch_norm", npu_opencl__batch_norm },
    { NPU_ATEN_LAYER_NORM, 3, "layer_norm", npu_opencl__layer_norm },
    { NPU_ATEN_SOFTMAX, 1, "softmax", npu_opencl__softmax },
    { NPU_ATEN_RESHAPE, 1, "copy", npu_opencl__unary }, /* where the result cannot stand in its operand's memory */
    { NPU_ATEN_VIEW, 1, "copy", npu_opencl__unary },
    { NPU_ATEN_FLATTEN, 1, "copy", npu_opencl__unary },
    { NPU_ATEN_UNSQUEEZE, 1, "copy", npu_opencl__unary },
    { NPU_ATEN_SQUEEZE, 1, "copy", npu_opencl__unary },
};

/* ---- support ---- */

static const npu_opencl__row *npu_opencl__find(uint32_t kind)
{
    for (size_t i = 0; i < sizeof npu_opencl__rows / sizeof npu_opencl__rows[0]; i++) {
        if (npu_opencl__rows[i].kind == kind) {
            return &npu_opencl__rows[i];
        }
    }
    return NULL;
}

static uint32_t npu_opencl__answer(npu_support *answer, uint32_t reason, const char *text)
{
    answer->reason = reason;
    snprintf(answer->text, sizeof answer->text, "%s", text);
    return reason;
}

/* Sizes are ints in the kernels. */
static uint32_t npu_opencl__spec_reason(const npu_spec *spec, npu_support *answer)
{
    int64_t len = 1;
    if (spec->dtype != NPU_F32 || spec->cls != NPU_CLASS_TENSOR) {
        return npu_opencl__answer(answer, NPU_REASON_DTYPE, "only f32 tensors");
    }
    for (uint32_t d = 0; d < spec->rank; d++) {
        len = len > INT32_MAX || spec->dims[d] > INT32_MAX ? INT64_C(1) << 32 : len * spec->dims[d];
    }
    return len < 1 || len > INT32_MAX ? npu_opencl__answer(answer, NPU_REASON_SHAPE, "1 to 2147483647 elements") : 0;
}

static npu_status npu_opencl__supports(void *ctx, const npu_op_info *op, npu_support *answer)
{
    const npu_opencl__row *row = npu_opencl__find(op->kind);
    uint32_t reason = 0;
    npu_opencl__op o;
    (void)ctx;
    memset(&o, 0, sizeof o);
    if (!row) {
        npu_opencl__answer(answer, NPU_REASON_OP, "no kernel");
        return NPU_OK;
    }
    for (uint32_t k = 0; k < op->num_in && !reason; k++) {
        reason = op->in[k] ? npu_opencl__spec_reason(op->in[k], answer) : 0;
    }
    for (uint32_t k = 0; k < op->num_out && !reason; k++) {
        reason = npu_opencl__spec_reason(op->out[k], answer);
    }
    if (!reason && op->num_out) { /* else only the kind is asked about */
        const char *words = row->init(op, &o);
        npu_opencl__answer(answer, words ? NPU_REASON_ATTRIBUTE : 0, words ? words : "");
    }
    return NPU_OK;
}

/* ---- memory ----

   A buffer of the plan is one cl_mem; values are at offsets. */

typedef struct npu_opencl {
    npu_backend backend;
    npu_region region;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program kernels;
    pthread_mutex_t lock; /* a kernel's arguments are its own until it is queued; of the fences, too */
    npu_fence fences;     /* given so far */
    char name[128];
} npu_opencl;

static npu_status npu_opencl__status(cl_int error)
{
    switch (error) {
    case CL_SUCCESS: return NPU_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: case CL_OUT_OF_RESOURCES: case CL_OUT_OF_HOST_MEMORY:
        return NPU_ERR_NO_MEMORY;
    default: return NPU_ERR_BACKEND;
    }
}

static npu_status npu_opencl__alloc(void *ctx, const npu_allocation *what, npu_buffer *out)
{
    npu_opencl *d = ctx;
    cl_int error;
    if (what->region) {
        return NPU_ERR_INVALID_ARGUMENT;
    }
    out->region = 0;
    out->bytes = what->bytes; /* a cl_mem has the alignment of the region */
    out->handle = clCreateBuffer(d->context, CL_MEM_READ_WRITE, what->bytes ? (size_t)what->bytes : 1, NULL, &error);
    return npu_opencl__status(error);
}

static void npu_opencl__free(void *ctx, npu_buffer *buffer)
{
    (void)ctx;
    if (buffer->handle) {
        clReleaseMemObject(buffer->handle);
    }
}

/* A fence means: everything that was queued. Each call has one of its own. */
static npu_status npu_opencl__queued(npu_opencl *d, cl_int error, npu_fence *fence)
{
    if (!error) {
        error = fence ? clFlush(d->queue) : clFinish(d->queue);
    }
    if (!error && fence) {
        pthread_mutex_lock(&d->lock);
        *fence = ++d->fences;
        pthread_mutex_unlock(&d->lock);
    }
    return npu_opencl__status(error);
}

static npu_status npu_opencl__upload(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_opencl *d = ctx;
    cl_int error = t->bytes == 0 ? CL_SUCCESS : clEnqueueWriteBuffer(
        d->queue, t->to->handle, CL_FALSE, (size_t)t->to_offset, (size_t)t->bytes, t->from_host, 0, NULL, NULL);
    return npu_opencl__queued(d, error, fence);
}

static npu_status npu_opencl__download(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_opencl *d = ctx;
    cl_int error = t->bytes == 0 ? CL_SUCCESS : clEnqueueReadBuffer(
        d->queue, t->from->handle, CL_FALSE, (size_t)t->from_offset, (size_t)t->bytes, t->to_host, 0, NULL, NULL);
    return npu_opencl__queued(d, error, fence);
}

static npu_status npu_opencl__copy(void *ctx, const npu_transfer *t, npu_fence *fence)
{
    npu_opencl *d = ctx;
    cl_int error = t->bytes == 0 ? CL_SUCCESS : clEnqueueCopyBuffer(
        d->queue, t->from->handle, t->to->handle, (size_t)t->from_offset, (size_t)t->to_offset, (size_t)t->bytes, 0,
        NULL, NULL);
    return npu_opencl__queued(d, error, fence);
}

static npu_status npu_opencl__wait(void *ctx, npu_fence fence, uint64_t timeout_ns)
{
    npu_opencl *d = ctx;
    (void)fence, (void)timeout_ns; /* OpenCL 1.2 cannot give up waiting */
    return npu_opencl__status(clFinish(d->queue));
}

/* ---- programs ---- */

typedef struct npu_opencl__step {
    cl_kernel kernel;
    npu_opencl__op op;
    uint32_t id;    /* of the op in the graph */
    uint32_t num_values, values[NPU_OPENCL_OPERANDS]; /* of the group; NPU_NO_INDEX = absent */
    bool is_view;
} npu_opencl__step;

typedef struct npu_opencl__program {
    uint32_t num_steps, num_pairs;
    npu_inplace *pairs;
    npu_opencl__step steps[];
} npu_opencl__program;

static void npu_opencl__release(void *ctx, void *program)
{
    npu_opencl__program *p = program;
    (void)ctx;
    for (uint32_t i = 0; i < p->num_steps; i++) {
        if (p->steps[i].kernel) {
            clReleaseKernel(p->steps[i].kernel);
        }
    }
    free(p->pairs);
    free(p);
}

static npu_status npu_opencl__step_init(npu_opencl *d, const npu_group_op *op, npu_opencl__step *step)
{
    const npu_opencl__row *row = npu_opencl__find(op->info->kind);
    cl_int error;
    if (!row) {
        return NPU_ERR_NOT_IMPLEMENTED;
    }
    step->op.kernel = row->kernel;
    step->id = op->info->op;
    if (row->init(op->info, &step->op)) {
        return NPU_ERR_UNSUPPORTED;
    }
    for (uint32_t k = 0; k < row->num_in; k++) {
        step->values[step->num_values++] = k < op->info->num_in ? op->in[k] : NPU_NO_INDEX;
    }
    step->values[step->num_values++] = op->out[0];
    step->is_view = strcmp(row->kernel, "copy") == 0;
    for (int i = 0; i < 3; i++) {
        step->op.items[i] += step->op.items[i] == 0; /* dims that the row does not use */
    }
    step->kernel = clCreateKernel(d->kernels, step->op.kernel, &error);
    return npu_opencl__status(error);
}

static npu_status npu_opencl__compile(void *ctx, const npu_group *group, npu_compiled *out)
{
    npu_opencl *d = ctx;
    npu_opencl__program *p = calloc(1, sizeof *p + group->num_ops * sizeof p->steps[0]);
    npu_status status = p ? NPU_OK : NPU_ERR_NO_MEMORY;
    uint32_t i = 0;
    if (p) {
        p->num_steps = group->num_ops;
        p->pairs = calloc(group->num_ops + 1u, sizeof *p->pairs);
        status = p->pairs ? NPU_OK : NPU_ERR_NO_MEMORY;
    }
    for (; i < group->num_ops && !status; i++) {
        status = npu_opencl__step_init(d, group->ops[i], &p->steps[i]);
        if (!status && npu_opencl__find(group->ops[i]->info->kind)->init == npu_opencl__unary) {
            p->pairs[p->num_pairs].size = sizeof p->pairs[0];
            p->pairs[p->num_pairs++].op = i; /* result 0 may take the memory of operand 0 */
        }
    }
    if (status) {
        out->failed_op = p && i ? group->ops[i - 1]->info->op : 0;
        snprintf(out->text, sizeof out->text, "%s", npu_status_text(status));
        if (p) {
            npu_opencl__release(d, p);
        }
        return status;
    }
    out->program = p;
    out->num_inplace = p->num_pairs;
    out->inplace = p->pairs;
    return NPU_OK;
}

static cl_int npu_opencl__bind(const npu_opencl__step *step, const npu_binding *binding)
{
    cl_int error = clSetKernelArg(step->kernel, 0, sizeof step->op.numbers, &step->op.numbers);
    for (uint32_t k = 0; k < step->num_values && !error; k++) {
        bool absent = step->values[k] == NPU_NO_INDEX;
        const npu_place *place = absent ? NULL : npu_place_at(binding->places, step->values[k]);
        cl_mem memory = absent ? NULL : binding->buffers[place->buffer]->handle;
        cl_ulong at = absent ? 0 : place->offset / sizeof(cl_float);
        error = clSetKernelArg(step->kernel, 1 + 2 * k, sizeof memory, absent ? NULL : &memory);
        error = error ? error : clSetKernelArg(step->kernel, 2 + 2 * k, sizeof at, &at);
    }
    return error;
}

static cl_int npu_opencl__step_run(npu_opencl *d, const npu_opencl__step *step, const npu_binding *binding)
{
    cl_int error;
    if (step->is_view && npu_place_at(binding->places, step->values[1])->alias) {
        return CL_SUCCESS;
    }
    pthread_mutex_lock(&d->lock);
    error = npu_opencl__bind(step, binding);
    if (!error) {
        error = clEnqueueNDRangeKernel(d->queue, step->kernel, 3, NULL, step->op.items, NULL, 0, NULL, NULL);
    }
    pthread_mutex_unlock(&d->lock);
    return error;
}

/* A profiled run waits for every op: its time is that of its kernel and of starting it. */
static npu_status npu_opencl__submit(void *ctx, void *program, const npu_binding *binding, npu_fence *fence)
{
    npu_opencl *d = ctx;
    const npu_opencl__program *p = program;
    for (uint32_t i = 0; i < p->num_steps; i++) {
        uint64_t begin = binding->op_done ? binding->clock() : 0;
        cl_int error = npu_opencl__step_run(d, &p->steps[i], binding);
        if (!error && binding->op_done) {
            error = clFinish(d->queue);
            binding->op_done(binding->op_done_ctx, p->steps[i].id, begin, binding->clock());
        }
        if (error) {
            *binding->failed_op = p->steps[i].id;
            return npu_opencl__status(error);
        }
    }
    return npu_opencl__queued(d, CL_SUCCESS, fence);
}

/* ---- devices ---- */

static bool npu_opencl__find_device(cl_device_type type, const char *name, npu_opencl *d)
{
    cl_platform_id platforms[16];
    cl_uint num_platforms = 0;
    clGetPlatformIDs(16, platforms, &num_platforms);
    for (cl_uint i = 0; i < num_platforms && i < 16; i++) {
        cl_device_id devices[16];
        cl_uint num_devices = 0;
        clGetDeviceIDs(platforms[i], type, 16, devices, &num_devices);
        for (cl_uint k = 0; k < num_devices && k < 16; k++) {
            d->device = devices[k];
            clGetDeviceInfo(d->device, CL_DEVICE_NAME, sizeof d->name - 1, d->name, NULL);
            if (!name || strstr(d->name, name)) {
                return true;
            }
        }
    }
    return false;
}

static npu_status npu_opencl__fail(npu_diag *diag, npu_status status, const char *what, const char *words)
{
    if (diag) {
        memset(diag, 0, sizeof *diag);
        diag->status = status;
        snprintf(diag->message, sizeof diag->message, "opencl: %s: %.180s", what, words);
    }
    return status;
}

static npu_status npu_opencl__build(npu_opencl *d, npu_diag *diag)
{
    cl_uint num = (cl_uint)(sizeof npu_opencl__source / sizeof npu_opencl__source[0]);
    const char *source[sizeof npu_opencl__source / sizeof npu_opencl__source[0]];
    char log[1024] = "";
    cl_int error;
    memcpy(source, npu_opencl__source, sizeof source);
    d->kernels = clCreateProgramWithSource(d->context, num, source, NULL, &error);
    error = error ? error : clBuildProgram(d->kernels, 1, &d->device, "", NULL, NULL);
    if (error && d->kernels) {
        clGetProgramBuildInfo(d->kernels, d->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    }
    return error ? npu_opencl__fail(diag, NPU_ERR_BACKEND, "the kernels do not compile", log) : NPU_OK;
}

static void npu_opencl__fill(npu_opencl *d)
{
    cl_ulong largest = 0;
    cl_uint bits = 0;
    npu_backend *b = &d->backend;
    clGetDeviceInfo(d->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    clGetDeviceInfo(d->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    d->region.size = sizeof d->region;
    d->region.name = "global";
    d->region.capacity = largest;
    d->region.alignment = bits < 512 ? 64 : bits / 8;
    b->size = sizeof *b;
    b->api_version = NPU_BACKEND_API;
    b->name = "opencl";
    b->num_regions = 1;
    b->regions = &d->region;
    b->supports = npu_opencl__supports;
    b->alloc = npu_opencl__alloc;
    b->free = npu_opencl__free;
    b->upload = npu_opencl__upload;
    b->download = npu_opencl__download;
    b->copy = npu_opencl__copy;
    b->compile = npu_opencl__compile;
    b->submit = npu_opencl__submit;
    b->release = npu_opencl__release;
    b->wait = npu_opencl__wait;
}

npu_status npu_opencl_create(npu_backend **out, const char *name, npu_diag *diag)
{
    npu_opencl *d = calloc(1, sizeof *d);
    cl_int error = CL_SUCCESS;
    npu_status status;
    *out = NULL;
    if (!d || pthread_mutex_init(&d->lock, NULL)) {
        free(d);
        return npu_opencl__fail(diag, NPU_ERR_NO_MEMORY, "create", "out of memory");
    }
    d->backend.ctx = d;
    if (!npu_opencl__find_device(CL_DEVICE_TYPE_GPU, name, d) &&
        !npu_opencl__find_device(CL_DEVICE_TYPE_ALL, name, d)) {
        npu_opencl_destroy(&d->backend);
        return npu_opencl__fail(diag, NPU_ERR_NOT_FOUND, "no device", name ? name : "of any name");
    }
    npu_opencl__fill(d);
    d->context = clCreateContext(NULL, 1, &d->device, NULL, NULL, &error);
    d->queue = error ? NULL : clCreateCommandQueue(d->context, d->device, 0, &error);
    status = error ? npu_opencl__fail(diag, npu_opencl__status(error), d->name, "cannot be opened")
                   : npu_opencl__build(d, diag);
    if (status) {
        npu_opencl_destroy(&d->backend);
        return status;
    }
    *out = &d->backend;
    return NPU_OK;
}

void npu_opencl_destroy(npu_backend *backend)
{
    npu_opencl *d = backend ? backend->ctx : NULL;
    if (!d) {
        return;
    }
    if (d->kernels) {
        clReleaseProgram(d->kernels);
    }
    if (d->queue) {
        clReleaseCommandQueue(d->queue);
    }
    if (d->context) {
        clReleaseContext(d->context);
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
}

const char *npu_opencl_device(const npu_backend *backend)
{
    const npu_opencl *d = backend->ctx;
    return d->name;
}

#endif
